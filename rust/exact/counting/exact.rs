//! Exact integers from residues: plan once, residues anywhere, combine once.
//!
//! A job is a quantity that can be computed modulo any prime ([`Modular`]) and a bound on its size. [`Plan`] chooses the
//! largest primes below 2^55 with a product `P` beyond the bound, and one to spare. Residues can be computed here, with
//! threads and a checkpoint, or by other processes, a range of primes each. They are put together by the Chinese remainder
//! theorem, numbers of both signs in the range `-P/2 .. P/2`, and every result is compared with its residue modulo the
//! spare prime: one wrong residue passes unnoticed with probability about 2^-55.
//!
//! Source: J. von zur Gathen, J. Gerhard (2013), Modern Computer Algebra, 3rd ed., algorithms 5.4 and 10.22.

use super::checkpoint::{Checkpoint, FoundResidues, JobShape, fingerprint};
use super::evaluation::Options;
use super::lock::Lock;
use crate::graphs::Graph;
use crate::monitor::{Monitor, Progress};
use crate::numeric::big;
use crate::numeric::residue::{self, Modulus};
use crate::{Error, Result, memory, parallel};
use num_bigint::{BigInt, BigUint};
use std::ops::Range;
use std::time::Instant;

/// Integers that can be computed modulo any prime.
///
/// Values and integers may differ: a polynomial is evaluated at points, and its integers are the coefficients. Arrays of
/// residues hold the values of the first modulus, then those of the second, and so on.
pub trait Modular: Send + Sync {
    /// Words that tell this quantity from every other, for a checkpoint's fingerprint.
    fn description(&self) -> Vec<u64>;

    /// A proved bound: `log2` of a number that no integer sought exceeds in magnitude.
    fn bits(&self) -> f64;

    /// Whether an integer sought can be negative.
    fn is_signed(&self) -> bool {
        false
    }

    /// Whether the values exist modulo this prime: a denominator must not be divisible by it.
    fn allows(&self, _prime: Modulus) -> bool {
        true
    }

    /// Whether the primes are those below 2^52 instead of 2^55, for kernels with one prime at a time.
    fn is_short(&self) -> bool {
        false
    }

    /// The primes are 1 modulo this: their fields have roots of unity of this order.
    fn order(&self) -> u64 {
        1
    }

    /// How the values are computed: a name, bytes for one prime, and operations on words for one prime.
    fn method(&self) -> (&'static str, u128, f64) {
        ("", 0, 0.0)
    }

    /// Values per modulus.
    fn values(&self) -> usize {
        1
    }

    /// Primes that a task of an executor should have, if there are enough of them for all workers: those that cost little
    /// more together than one alone, and as many as are worth the way.
    fn side_by_side(&self) -> usize {
        LANES.max(worth(self.method().2))
    }

    /// The values modulo each of the moduli: `values()` words below the modulus for each.
    ///
    /// Engines over lanes use [`super::evaluation::residues`], everything else [`one_by_one`]; both keep checkpoints.
    ///
    /// # Errors
    /// [`Error::TooLarge`] before any work if memory does not suffice, [`Error::File`] for a checkpoint that cannot be
    /// used, the monitor's error when it stops the work.
    fn residues(&self, moduli: &[Modulus], options: &Options, monitor: &mut dyn Monitor) -> Result<Vec<u64>>;

    /// Parts of the values that are tasks of their own: they add up modulo each prime.
    fn parts(&self) -> usize {
        1
    }

    /// One part of [`Self::residues`], `part < parts()`.
    ///
    /// # Errors
    /// As there.
    fn part_residues(
        &self,
        _part: usize,
        moduli: &[Modulus],
        options: &Options,
        monitor: &mut dyn Monitor,
    ) -> Result<Vec<u64>> {
        self.residues(moduli, options, monitor)
    }

    /// The integers sought where they are found, and verified, without residues.
    ///
    /// # Errors
    /// [`Error::Check`] if they are wrong, the monitor's error.
    fn found(&self, _options: &Options, _monitor: &mut dyn Monitor) -> Result<Option<Vec<BigInt>>> {
        Ok(None)
    }

    /// The residues of the integers sought, from the values modulo one prime.
    fn integers(&self, _prime: Modulus, values: &[u64]) -> Vec<u64> {
        values.to_vec()
    }

    /// What is asked for is the integers divided by a power: its base, positive, and its exponent.
    fn denominator(&self) -> (BigUint, u64) {
        (BigUint::from(1u32), 0)
    }

    /// Drops integers that turned out not to belong to the answer, such as a polynomial's zeros above its degree.
    fn trim(&self, _integers: &mut Vec<BigInt>) {}
}

/// A quantity with the primes it is computed by, the spare one last.
#[derive(Debug)]
pub struct Plan<M: ?Sized> {
    primes: Vec<Modulus>,
    quantity: M,
}

impl<M: Modular> Plan<M> {
    /// Chooses the primes; many of them on the pool, where the search can be stopped.
    ///
    /// # Errors
    /// [`Error::Domain`] if so many primes do not exist below `2^55`, [`Error::TooLarge`] if the residues do not fit into
    /// memory, the monitor's error.
    pub fn new(quantity: M, monitor: &mut dyn Monitor) -> Result<Self> {
        // The sign takes one bit. The primes are above 2^54.999, short ones above 2^51.999; one part in a million more pays for
        // all rounding.
        let bits = quantity.bits() + f64::from(u8::from(quantity.is_signed()));
        let each = if quantity.is_short() { 51.999 } else { 54.999 };
        let count = (bits.max(1.0) * (1.0 + 1e-6) / each).ceil() as usize + 1;
        memory::charge("a count by so many residues", RESIDUE * count as u128 * quantity.values() as u128)?;
        Ok(Self { primes: chosen(&quantity, count, monitor)?, quantity })
    }
}

/// At least so many primes for a quantity, in falling order.
fn chosen(quantity: &(impl Modular + ?Sized), count: usize, monitor: &mut dyn Monitor) -> Result<Vec<Modulus>> {
    let mut primes: Vec<Modulus> = Vec::new();
    let mut asked = count;
    while primes.len() < count {
        let order = if quantity.is_short() { None } else { Some(quantity.order()) };
        let found = found(asked, order, &|prime| quantity.allows(prime), monitor);
        primes = found.map_err(|error| match error {
            Error::Domain { .. } => Error::domain(
                "graph",
                format!("{count} primes with roots of unity of order {}", quantity.order()),
                "so small that there are enough primes near 2**55",
            ),
            other => other,
        })?;
        asked += count - primes.len().min(count);
    }
    Ok(primes)
}

impl<M: Modular + ?Sized> Plan<M> {
    /// What is sought.
    pub fn quantity(&self) -> &M {
        &self.quantity
    }

    /// The primes, the spare one last.
    pub fn primes(&self) -> &[Modulus] {
        &self.primes
    }

    /// Computes, combines and verifies.
    ///
    /// # Errors
    /// As [`Modular::residues`] and [`Self::combine`]; [`Error::File`] where a checkpoint it went on from is contradicted.
    pub fn solve(&self, options: &Options, monitor: &mut dyn Monitor) -> Result<Vec<BigInt>> {
        if let Some(integers) = self.quantity.found(options, monitor)? {
            return self.trimmed(Ok(integers));
        }
        let resumed = options.checkpoint.as_deref().filter(|path| path.exists());
        let values = self.quantity.residues(&self.primes, options, monitor);
        let integers = values.and_then(|values| self.combine(&values, options, monitor));
        integers.map_err(|error| match (error, resumed) {
            (Error::Check { detail, .. }, Some(path)) => Error::File {
                what: "checkpoint",
                path: path.display().to_string(),
                reason: format!("held residues of no one number, so it was damaged or forged ({detail}); remove it"),
            },
            (error, _) => error,
        })
    }

    /// The primes and a second spare one, that a wrong residue is traced by.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn primes_and_another(&self, monitor: &mut dyn Monitor) -> Result<Vec<Modulus>> {
        let count = self.primes.len() + 1;
        let mut primes = chosen(&self.quantity, count, monitor)?;
        primes.truncate(count);
        Ok(primes)
    }

    /// One part of the values modulo some of the primes, or of those with another: what another process can do.
    ///
    /// # Errors
    /// [`Error::Domain`] for a range beyond the primes or a part there is not; otherwise as [`Modular::residues`].
    pub fn residues(
        &self,
        primes: Range<usize>,
        part: usize,
        options: &Options,
        monitor: &mut dyn Monitor,
    ) -> Result<Vec<u64>> {
        let value = format!("{primes:?}, part {part} of {}", self.quantity.parts());
        let refused = || Error::domain("part", value, "a range of the plan's primes");
        if part >= self.quantity.parts() || primes.end > self.primes.len() + 1 {
            return Err(refused());
        }
        let more = if primes.end > self.primes.len() { self.primes_and_another(monitor)? } else { Vec::new() };
        let moduli = if more.is_empty() { &self.primes } else { &more };
        let moduli = moduli.get(primes).ok_or_else(refused)?;
        self.quantity.part_residues(part, moduli, options, monitor)
    }

    /// The place of the one prime whose values are wrong, among values modulo [`Self::primes_and_another`]; none if they belong to
    /// one answer, or if more than one prime's are wrong.
    ///
    /// With n + 1 primes, the answer is below the product Q of the least n - 1. If the values of one prime alone are wrong, the
    /// others give the answer, which is below Q; left out any other prime, they would give a number below Q that is the answer
    /// modulo n - 1 primes, so the answer itself, which the wrong values contradict. So one prime is found, and the right one. If
    /// more are wrong, each prime passes with probability about 1/p.
    ///
    /// Source: F. Barsi, P. Maestrini (1973), Error correcting properties of redundant residue number systems, IEEE Trans.
    /// Comput. C-22.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there are values for every prime; the monitor's error.
    pub fn wrong_prime(&self, values: &[u64], options: &Options, monitor: &mut dyn Monitor) -> Result<Option<usize>> {
        let (primes, each) = (self.primes_and_another(monitor)?, self.quantity.values());
        if values.len() != primes.len() * each {
            return Err(Error::shape("residues", format!("{} x {each}", primes.len()), values.len()));
        }
        let all: BigUint = primes.iter().map(|prime| BigUint::from(prime.value())).product();
        let signed = self.quantity.is_signed();
        let mut falling: Vec<u64> = primes.iter().map(|prime| prime.value()).collect();
        falling.sort_unstable_by(|a, b| b.cmp(a));
        let least = falling.iter().take(2).fold(all.clone(), |product, &prime| product / prime);
        let fits = |value: &BigUint, modulus: &BigUint| match signed {
            false => *value < least,
            true => value << 1u32 < least || (modulus - value) << 1u32 < least,
        };
        let found = parallel::run(options.threads, 0, monitor, |progress| {
            let by_prime = parallel::try_map(primes.len(), |i| {
                progress.check()?;
                Ok(self.quantity.integers(primes[i], &values[i * each..(i + 1) * each]))
            })?;
            // Of each integer that is contradicted: the prime without which it is not.
            parallel::try_map(by_prime[0].len(), |k| {
                let pairs: Vec<(u64, u64)> =
                    primes.iter().map(|prime| prime.value()).zip(by_prime.iter().map(|all| all[k])).collect();
                let value = residue::stoppable_combine(&pairs, progress)?;
                if fits(&value, &all) {
                    return Ok(None);
                }
                for (i, &(prime, _)) in pairs.iter().enumerate() {
                    progress.check()?;
                    let others = &all / prime;
                    if fits(&(&value % &others), &others) {
                        return Ok(Some(Some(i)));
                    }
                }
                Ok(Some(None))
            })
        })?;
        let mut contradicted = found.into_iter().flatten();
        let first = contradicted.next().flatten();
        Ok(first.filter(|_| contradicted.all(|other| other == first)))
    }

    /// The integers with these values modulo all primes, each verified by the spare one.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there are values for every prime; [`Error::Check`] if a residue is wrong: a fault of a
    /// machine's memory, or a bug.
    pub fn combine(&self, values: &[u64], options: &Options, monitor: &mut dyn Monitor) -> Result<Vec<BigInt>> {
        let each = self.quantity.values();
        if values.len() != self.primes.len() * each {
            return Err(Error::shape("residues", format!("{} x {each}", self.primes.len()), values.len()));
        }
        let integers = |(i, &prime)| self.quantity.integers(prime, &values[i * each..(i + 1) * each]);
        let one = |by_prime: &[Vec<u64>], k: usize, progress: &Progress| {
            let residues: Vec<u64> = by_prime.iter().map(|integers| integers[k]).collect();
            combine_verified(&self.primes, &residues, self.quantity.is_signed(), progress)
        };
        if each == 1 && self.primes.len() <= FEW {
            let by_prime: Vec<Vec<u64>> = self.primes.iter().enumerate().map(integers).collect();
            let progress = Progress::default();
            return self.trimmed((0..by_prime[0].len()).map(|k| one(&by_prime, k, &progress)).collect());
        }
        self.trimmed(parallel::run(options.threads, 0, monitor, |progress| {
            let by_prime = parallel::try_map(self.primes.len(), |i| {
                progress.check()?;
                Ok(integers((i, &self.primes[i])))
            })?;
            parallel::try_map(by_prime[0].len(), |k| {
                progress.check()?;
                one(&by_prime, k, progress)
            })
        }))
    }

    /// An integer of [`Self::combine`] divided by the denominator, in lowest terms.
    ///
    /// # Errors
    /// The monitor's error.
    pub fn lowest_terms(&self, integer: BigInt, monitor: &mut dyn Monitor) -> Result<(BigInt, BigUint)> {
        let (base, exponent) = self.quantity.denominator();
        let reduce = |progress: &Progress| big::lowest_terms(integer, &base, exponent, progress);
        parallel::run_one(base.bits().saturating_mul(exponent) <= SHORT_DENOMINATOR, monitor, reduce)
    }

    fn trimmed(&self, integers: Result<Vec<BigInt>>) -> Result<Vec<BigInt>> {
        integers.map(|mut integers| {
            self.quantity.trim(&mut integers);
            integers
        })
    }

    /// The values a checkpoint of this job holds, whoever wrote it, those of a prime by parts if it is kept so; `None` where one is
    /// missing.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be read, is damaged, or belongs to another job; the monitor's error.
    pub fn load(&self, parts: bool, options: &Options, monitor: &mut dyn Monitor) -> Result<Vec<Option<u64>>> {
        parallel::run(1, 0, monitor, |progress| self.loaded(parts, options, progress))
    }

    fn loaded(&self, parts: bool, options: &Options, progress: &Progress) -> Result<Vec<Option<u64>>> {
        let each = self.quantity.values() * if parts { self.quantity.parts() } else { 1 };
        let mut found = FoundResidues::new(self.primes.len() * each);
        let checkpoint = self.checkpoint(parts, options);
        let shape = JobShape { moduli: &self.primes, each, vectors: None };
        if let Some(saved) = checkpoint.map(|c| c.load(shape, progress)).transpose()?.flatten() {
            found.extend(saved.finished);
        }
        Ok(found.0)
    }

    /// Writes the values that are known to the checkpoint of this job; removes it when all are.
    ///
    /// # Errors
    /// [`Error::File`] if it cannot be written.
    pub fn save(&self, parts: bool, options: &Options, found: Vec<Option<u64>>) -> Result<()> {
        let Some(mut checkpoint) = self.checkpoint(parts, options) else { return Ok(()) };
        match found.iter().all(Option::is_some) {
            true => checkpoint.remove(),
            false => checkpoint.save(&FoundResidues(found).finished(), [].into_iter()),
        }
    }

    fn checkpoint(&self, parts: bool, options: &Options) -> Option<Checkpoint> {
        let path = options.checkpoint.as_deref()?;
        let job = job(&self.quantity, &self.primes);
        let parts = parts.then(|| self.quantity.parts() as u64).filter(|&parts| parts > 1);
        Some(Checkpoint::new(path, parts.map_or(job, |parts| fingerprint([job, parts]))))
    }
}

/// Primes in the lanes of the widest vector unit.
pub const LANES: usize = 8;
/// Operations that are worth a task of their own: milliseconds.
const WORTH: f64 = 4e6;
/// Bytes that the residue of one value and one prime takes on its way: its point, its place among those found, itself.
const RESIDUE: u128 = 64;
/// Bits of a denominator that is worked on on the calling thread.
const SHORT_DENOMINATOR: u64 = 1 << 14;
/// Primes that are found, and combined, on the calling thread: a few milliseconds.
const FEW: usize = 1000;

/// How many primes of so many operations each are worth a task of an executor; one, where that is not known.
pub fn worth(operations: f64) -> usize {
    if operations > 0.0 { (WORTH / operations).ceil().min(1e6) as usize } else { 1 }
}

/// The largest primes below `2^55`, in falling order.
///
/// # Errors
/// As [`residue::stoppable_primes`], and the monitor's error.
pub fn primes(count: usize, monitor: &mut dyn Monitor) -> Result<Vec<u64>> {
    Ok(found(count, Some(1), &|_| true, monitor)?.into_iter().map(Modulus::value).collect())
}

/// The number with the given residues modulo coprime odd numbers.
///
/// # Errors
/// As [`residue::combine`], and the monitor's error.
pub fn combine_residues(residues: &[(u64, u64)], monitor: &mut dyn Monitor) -> Result<BigUint> {
    parallel::run_one(residues.len() <= FEW, monitor, |progress| residue::stoppable_combine(residues, progress))
}

/// The largest primes that are allowed: with roots of unity of an order, or short ones.
fn found(
    count: usize,
    order: Option<u64>,
    allows: &(dyn Fn(Modulus) -> bool + Sync),
    monitor: &mut dyn Monitor,
) -> Result<Vec<Modulus>> {
    let search = |progress: &Progress| {
        let mut primes = match order {
            Some(order) => residue::primes_with_roots(count, order, progress)?,
            None => residue::short_primes(count)?,
        };
        primes.retain(|&prime| !progress.is_stopping() && allows(prime));
        progress.check().map(|()| primes)
    };
    parallel::run_one(count <= FEW, monitor, search)
}

/// What tells a job from every other: its quantity and moduli.
pub fn job(quantity: &(impl Modular + ?Sized), moduli: &[Modulus]) -> u64 {
    fingerprint(quantity.description().into_iter().chain(moduli.iter().map(|modulus| modulus.value())))
}

fn checkpoint(quantity: &(impl Modular + ?Sized), moduli: &[Modulus], options: &Options) -> Option<Checkpoint> {
    let path = options.checkpoint.as_deref()?;
    Some(Checkpoint::new(path, job(quantity, moduli)).every(options.checkpoint_interval))
}

/// The integer with these residues modulo all but the last prime, verified by the last.
///
/// # Errors
/// [`Error::Check`] if the last prime contradicts the others.
fn combine_verified(primes: &[Modulus], residues: &[u64], signed: bool, progress: &Progress) -> Result<BigInt> {
    let (Some((spare, primes)), Some((&expected, residues))) = (primes.split_last(), residues.split_last()) else {
        return Ok(BigInt::ZERO);
    };
    let pairs: Vec<(u64, u64)> = primes.iter().map(|prime| prime.value()).zip(residues.iter().copied()).collect();
    let mut value = BigInt::from(residue::stoppable_combine(&pairs, progress)?);
    if signed {
        let product = BigInt::from(primes.iter().map(|prime| BigUint::from(prime.value())).product::<BigUint>());
        if &value << 1u32 > product {
            value -= product;
        }
    }
    let found = spare.residue_of_signed(&value);
    if found != expected {
        let detail = format!("modulo the spare prime {} it is {found}, computed was {expected}", spare.value());
        return Err(Error::Check { what: "an exact count", detail });
    }
    Ok(value)
}

/// Jobs of at most so many operations run on the calling thread: waking a pool would cost more.
const SHORT: u64 = 200_000;

/// The same options with no more threads than fit the memory limit, each taking so many bytes.
///
/// # Errors
/// [`Error::TooLarge`] if not even one fits.
pub fn fitting(options: &Options, bytes: u128, what: &'static str) -> Result<Options> {
    memory::check(what, bytes, options.memory_limit)?;
    let most = usize::try_from(u128::from(options.memory_limit) / bytes.max(1)).unwrap_or(usize::MAX);
    Ok(Options { threads: options.threads.min(most), ..options.clone() })
}

/// The words that tell the edges of a graph, for [`Modular::description`].
pub fn edge_words(graph: &Graph) -> impl Iterator<Item = u64> {
    graph.edges().iter().map(|&(u, v)| u64::from(u) << 32 | u64::from(v))
}

/// [`one_by_one`] for a quantity of one value; bytes and work for a modulus are those of its [`Modular::method`], and `held`
/// says what the bytes hold.
///
/// # Errors
/// [`Error::TooLarge`] if the memory does not suffice for one modulus; as [`one_by_one`].
pub fn one_value(
    quantity: &impl Modular,
    held: &'static str,
    moduli: &[Modulus],
    options: &Options,
    monitor: &mut dyn Monitor,
    value: impl Fn(Modulus, &Progress) -> Result<u64> + Sync,
) -> Result<Vec<u64>> {
    let (_, bytes, work) = quantity.method();
    let (options, work) = (&fitting(options, bytes, held)?, work.max(1.0) as u64);
    one_by_one(quantity, moduli, work, options, monitor, |modulus, progress| {
        let value = value(modulus, progress)?;
        progress.advance(work)?;
        Ok(vec![value])
    })
}

/// Residues of a quantity that is computed modulo one prime at a time, on one thread each, with a checkpoint of the finished
/// ones: `one(modulus, progress)` gives the values, looks at its progress now and then and advances it by `work` in all.
///
/// # Errors
/// Whatever `one` returned, [`Error::File`] for a checkpoint that cannot be used, the monitor's error.
pub fn one_by_one(
    quantity: &(impl Modular + ?Sized),
    moduli: &[Modulus],
    work: u64,
    options: &Options,
    monitor: &mut dyn Monitor,
    one: impl Fn(Modulus, &Progress) -> Result<Vec<u64>> + Sync,
) -> Result<Vec<u64>> {
    let each = quantity.values();
    let total = work.saturating_mul(moduli.len() as u64);
    if total <= SHORT && options.checkpoint.is_none() {
        monitor.tick(0, total)?;
        let all =
            |progress: &Progress| moduli.iter().map(|&modulus| one(modulus, progress)).collect::<Result<Vec<_>>>();
        let found = parallel::run_here(total, all)?;
        monitor.tick(total, total)?;
        return Ok(found.concat());
    }
    resumed(quantity, moduli, options, total, monitor, |found, checkpoint, progress| {
        let is_open = |i: &usize| found.0[i * each..(i + 1) * each].iter().any(Option::is_none);
        let open: Vec<usize> = (0..moduli.len()).filter(is_open).collect();
        progress.advance(work.saturating_mul((moduli.len() - open.len()) as u64))?;
        for wave in open.chunks(options.threads) {
            let answers: Vec<Result<Vec<u64>>> = parallel::map(wave.len(), |k| one(moduli[wave[k]], progress));
            let mut error = None;
            for (&i, answer) in wave.iter().zip(answers) {
                match answer {
                    Ok(residues) => found.extend((i * each..).zip(residues)),
                    Err(reason) => error = error.or(Some(reason)),
                }
            }
            if let Some(checkpoint) = checkpoint.as_mut().filter(|c| error.is_some() || c.due() <= Instant::now()) {
                checkpoint.save(&found.finished(), [].into_iter())?;
            }
            error.map_or(Ok(()), Err)?;
        }
        Ok(())
    })
}

/// Residues from those of a checkpoint on, if there is one: `fill` finds what is open and writes to the checkpoint, which is
/// removed at the end.
fn resumed(
    quantity: &(impl Modular + ?Sized),
    moduli: &[Modulus],
    options: &Options,
    total: u64,
    monitor: &mut dyn Monitor,
    fill: impl FnOnce(&mut FoundResidues, &mut Option<Checkpoint>, &Progress) -> Result<()> + Send,
) -> Result<Vec<u64>> {
    let each = quantity.values();
    let _lock = options.checkpoint.as_deref().map(Lock::hold).transpose()?;
    let mut checkpoint = checkpoint(quantity, moduli, options);
    checkpoint.iter().for_each(Checkpoint::sweep);
    let found = parallel::run(options.threads, total, monitor, |progress| {
        let mut found = FoundResidues::new(moduli.len() * each);
        let shape = JobShape { moduli, each, vectors: None };
        if let Some(saved) = checkpoint.as_ref().map(|c| c.load(shape, progress)).transpose()?.flatten() {
            found.extend(saved.finished);
        }
        fill(&mut found, &mut checkpoint, progress)?;
        Ok(found.all())
    })?;
    checkpoint.map_or(Ok(()), |checkpoint| checkpoint.remove())?;
    Ok(found)
}

/// Residues of a quantity whose values are computed one after the other, each with all threads and in the memory that `room`
/// makes once, with a checkpoint of the finished ones: `one(modulus, k, room, progress)` gives value k, looks at its progress
/// now and then and advances it by `work` in all.
///
/// # Errors
/// As [`one_by_one`], and whatever `room` returned.
pub fn in_turn<S>(
    quantity: &(impl Modular + ?Sized),
    moduli: &[Modulus],
    work: u64,
    options: &Options,
    monitor: &mut dyn Monitor,
    room: impl Fn() -> Result<S> + Sync,
    one: impl Fn(Modulus, usize, &mut S, &Progress) -> Result<u64> + Sync,
) -> Result<Vec<u64>> {
    let each = quantity.values();
    let total = work.saturating_mul((moduli.len() * each) as u64);
    resumed(quantity, moduli, options, total, monitor, |found, checkpoint, progress| {
        let mut room = room()?;
        for i in 0..moduli.len() * each {
            if found.0[i].is_some() {
                progress.advance(work)?;
                continue;
            }
            let answer = one(moduli[i / each], i % each, &mut room, progress);
            let answer = answer.map(|residue| found.extend([(i, residue)]));
            if let Some(checkpoint) = checkpoint.as_mut().filter(|c| answer.is_err() || c.due() <= Instant::now()) {
                checkpoint.save(&found.finished(), [].into_iter())?;
            }
            answer?;
        }
        Ok(())
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::monitor::Silent;
    use std::sync::Mutex;

    /// The first integer of a quantity.
    pub(crate) fn solve(quantity: impl Modular) -> BigInt {
        Plan::new(quantity, &mut Silent).unwrap().solve(&Options::default(), &mut Silent).unwrap().remove(0)
    }

    /// The integers themselves, one of them perhaps damaged modulo one prime.
    #[derive(Debug, Default)]
    struct Known {
        integers: Vec<BigInt>,
        signed: bool,
        forbidden: Option<u64>,
        damaged: Option<(usize, usize)>,
        computed: Mutex<Vec<u64>>,
    }

    impl Modular for Known {
        fn description(&self) -> Vec<u64> {
            self.integers.iter().flat_map(|x| x.magnitude().to_u64_digits()).collect()
        }
        fn bits(&self) -> f64 {
            self.integers.iter().map(|x| x.bits()).max().unwrap_or(0) as f64
        }
        fn is_signed(&self) -> bool {
            self.signed
        }
        fn allows(&self, prime: Modulus) -> bool {
            self.forbidden != Some(prime.value())
        }
        fn values(&self) -> usize {
            self.integers.len()
        }
        fn residues(&self, moduli: &[Modulus], options: &Options, monitor: &mut dyn Monitor) -> Result<Vec<u64>> {
            one_by_one(self, moduli, 1, options, monitor, |modulus, progress| {
                progress.advance(1)?;
                self.computed.lock().unwrap().push(modulus.value());
                let p = BigInt::from(modulus.value());
                let residue = |x: &BigInt| u64::try_from(((x % &p) + &p) % &p).unwrap(); // not by the code under test
                let mut residues: Vec<u64> = self.integers.iter().map(residue).collect();
                if let Some((_, k)) = self.damaged.filter(|&(i, _)| residue::primes(i + 1).unwrap()[i] == modulus) {
                    residues[k] = (residues[k] + 1) % modulus.value();
                }
                Ok(residues)
            })
        }
    }

    fn power(base: i64, exponent: u32) -> BigInt {
        BigInt::from(base).pow(exponent)
    }

    fn known(integers: &[BigInt]) -> Known {
        let signed = integers.iter().any(|x| x.sign() == num_bigint::Sign::Minus);
        Known { integers: integers.to_vec(), signed, ..Known::default() }
    }

    #[test]
    fn integers_of_both_signs_come_back_up_to_the_bound_itself() {
        for integers in [
            vec![BigInt::ZERO],
            vec![power(2, 300), BigInt::from(1), BigInt::ZERO],
            vec![power(-2, 301), power(2, 301), BigInt::from(-1)],
            vec![power(-3, 501)],
            (1..60).map(|k| power(2, k) - 1).collect(),
            (1..60).map(|k| 1 - power(2, 54 * k)).collect(),
        ] {
            let plan = Plan::new(known(&integers), &mut Silent).unwrap();
            assert_eq!(plan.solve(&Options { threads: 2, ..Options::default() }, &mut Silent).unwrap(), integers);
        }
    }

    #[test]
    fn one_wrong_residue_of_any_prime_is_noticed_whatever_the_sign() {
        for integers in [vec![power(7, 100), BigInt::from(3)], vec![power(-7, 101), BigInt::from(-3)]] {
            let count = Plan::new(known(&integers), &mut Silent).unwrap().primes().len();
            for (prime, k) in (0..count).flat_map(|prime| [(prime, 0), (prime, 1)]) {
                let plan = Plan::new(Known { damaged: Some((prime, k)), ..known(&integers) }, &mut Silent).unwrap();
                let outcome = plan.solve(&Options::default(), &mut Silent);
                assert!(matches!(outcome, Err(Error::Check { .. })), "prime {prime}, integer {k}: {outcome:?}");
            }
        }
    }

    #[test]
    fn parts_computed_elsewhere_make_the_whole_and_nothing_else_does() {
        let plan = Plan::new(known(&[power(-5, 333)]), &mut Silent).unwrap();
        let options = Options::default();
        let count = plan.primes().len();
        let parts = [0..3, 3..count].map(|part| plan.residues(part, 0, &options, &mut Silent).unwrap());
        assert_eq!(plan.combine(&parts.concat(), &options, &mut Silent).unwrap(), [power(-5, 333)]);
        assert!(matches!(plan.combine(&parts[1], &options, &mut Silent), Err(Error::Shape { .. })));
        assert!(matches!(plan.residues(0..count + 2, 0, &options, &mut Silent), Err(Error::Domain { .. })));
        assert!(matches!(plan.residues(0..count, 1, &options, &mut Silent), Err(Error::Domain { .. })));
    }

    #[test]
    fn the_prime_of_wrong_values_is_found_if_it_is_one_and_none_if_they_are_two() {
        for integers in
            [vec![power(7, 100), BigInt::from(3)], vec![power(-7, 101), BigInt::from(-3)], vec![BigInt::ZERO]]
        {
            let plan = Plan::new(known(&integers), &mut Silent).unwrap();
            let (options, each) = (Options::default(), integers.len());
            let count = plan.primes().len() + 1;
            let values = plan.residues(0..count, 0, &options, &mut Silent).unwrap();
            let primes = plan.primes_and_another(&mut Silent).unwrap();
            assert_eq!(primes[..count - 1], *plan.primes());
            let wrong = |values: &[u64]| plan.wrong_prime(values, &options, &mut Silent).unwrap();
            let damaged = |places: &[usize], by: u64| {
                let mut values = values.clone();
                for &place in places {
                    let by = by / (place as u64 + 1) + 1;
                    values[place] = (values[place] + by) % primes[place / each].value();
                }
                wrong(&values)
            };
            assert_eq!(wrong(&values), None);
            for by in [12345, 1 << 54] {
                for place in 0..values.len() {
                    assert_eq!(damaged(&[place], by), Some(place / each), "{integers:?} {place}");
                    for other in 0..place {
                        let same = (place / each == other / each).then_some(place / each);
                        assert_eq!(damaged(&[other, place], by), same, "{integers:?} {other} {place}");
                    }
                }
            }
            assert!(matches!(plan.wrong_prime(&values[1..], &options, &mut Silent), Err(Error::Shape { .. })));
        }
    }

    #[test]
    fn a_prime_that_is_not_allowed_is_replaced() {
        let integers = [power(3, 200)];
        let all = Plan::new(known(&integers), &mut Silent).unwrap();
        let forbidden = Some(all.primes()[2].value());
        let plan = Plan::new(Known { forbidden, ..known(&integers) }, &mut Silent).unwrap();
        assert_eq!(plan.primes().len(), all.primes().len());
        assert!(plan.primes().iter().all(|prime| Some(prime.value()) != forbidden));
        assert_eq!(plan.solve(&Options::default(), &mut Silent).unwrap(), integers);
    }

    #[test]
    fn a_stopped_job_keeps_its_finished_residues_and_computes_the_others_only() {
        let path = std::env::temp_dir().join(format!("quincunx-{}-exact", std::process::id()));
        let options = Options { checkpoint: Some(path.clone()), ..Options::default() };
        let plan = Plan::new(known(&[power(2, 2000)]), &mut Silent).unwrap();
        let quantity = plan.quantity();
        let outcome = one_by_one(quantity, plan.primes(), 1, &options, &mut Silent, |modulus, _| {
            let mut computed = quantity.computed.lock().unwrap();
            if computed.len() == 5 {
                return Err(Error::Interrupted);
            }
            computed.push(modulus.value());
            Ok(vec![modulus.residue_of(&(BigUint::from(1u32) << 2000u32))])
        });
        assert_eq!(outcome, Err(Error::Interrupted));
        assert!(path.exists());
        assert_eq!(plan.solve(&options, &mut Silent).unwrap(), [power(2, 2000)]);
        assert!(!path.exists());
        assert_eq!(plan.quantity().computed.lock().unwrap().len(), plan.primes().len(), "none was computed twice");
    }
}
