//! Half of the primes: the vector in the middle of a lattice holds numbers half as long as the count.
//!
//! A lattice with open rows is met in the middle, Z = u^T M u, and the elements of u count sets of one half. So `k` primes tell each
//! element x, where the count takes about twice as many:
//!
//!   x = sum of y_i P / p_i - q P,   y_i = x (P / p_i)^-1 mod p_i,   q = floor of sum of y_i / p_i,   P = p_1 .. p_k,
//!
//! with x / P < 1/4, far more than the rounding errors of the sum of fractions. The vectors by the `k` primes and a spare one are
//! computed side by side in lanes and finished; then the residues of each element by the other primes take their places, and
//! are finished likewise. Each element is compared modulo the spare prime, which the vector was computed by as well.
//!
//! Derivation: docs/mathematics/counting.md, "Half of the primes".

use super::evaluation::{GRAIN, Options, fresh, narrow, work};
use super::transfer::{Point, StepContext, Transfer, TransferRing, lane_weight, lanes_for};
use crate::monitor::{Monitor, Progress};
use crate::numeric::buffer::Buffer;
use crate::numeric::dispatch::{self, Arithmetic, Kernel, PRODUCTS, Products};
use crate::numeric::residue::{Modulus, inverse_modulo};
use crate::numeric::ring::{Lanes, Ring};
use crate::parallel::{self, Shared};
use crate::{Error, Result};
use std::ops::Range;

/// Bits of a prime, a little less.
const BITS: f64 = 54.999;
/// The most primes that elements are found by, and lanes of all vectors together.
const MOST_KNOWN: usize = 24;
const MOST_LANES: usize = 48;
/// Bits of `2^55 - p`, at most.
const EXCESS: u32 = 20;
const _: () = assert!(MOST_KNOWN < PRODUCTS);
/// Elements that are lifted at a time.
const BLOCK: usize = 1 << 8;
/// Nanoseconds of one product of the lift, about.
const PRODUCT: f64 = 1.0;

/// What is known of the vector before the last line: the elements that it reads, and a bound on their bits.
#[derive(Clone, Debug)]
pub struct Halves {
    /// The elements that [`Transfer::finish`] reads; all are non-negative numbers.
    pub parts: Vec<Range<usize>>,
    /// `log2` of a number that none exceeds.
    pub bits: f64,
}

/// How vectors are laid out.
#[derive(Clone, Debug, PartialEq)]
pub struct HalfLayout {
    /// Primes that elements are found by; the next is the spare one.
    known: usize,
    /// Lanes of each vector.
    lanes: Vec<usize>,
    /// Bytes of all vectors.
    pub bytes: u64,
    /// The time of all vectors, in that of one lane of eight, the lift included.
    pub time: f64,
}

impl HalfLayout {
    /// The layout for these primes, if it is faster than all primes on eight lanes and fits into memory. `nanoseconds` is the
    /// time of an addition.
    pub fn new(
        engine: &impl Transfer,
        halves: &Halves,
        moduli: &[Modulus],
        nanoseconds: f64,
        options: &Options,
    ) -> Option<Self> {
        let primes = moduli.len();
        let known = ((halves.bits.max(1.0) + 2.0) * (1.0 + 1e-6) / BITS).ceil() as usize;
        let is_near = moduli.iter().all(|prime| prime.excess() < 1 << EXCESS);
        if engine.len() <= 8 * GRAIN
            || !is_near
            || options.checkpoint.is_some()
            || known > MOST_KNOWN
            || known + 1 >= primes
        {
            return None;
        }
        let (lanes, others) = (groups(known + 1), primes - known - 1);
        let all: usize = lanes.iter().sum();
        let bytes = (engine.len() as u64).saturating_mul(8 * all as u64);
        let time = |lanes: &[usize]| lanes.iter().map(|&lanes| lanes as f64 * narrow(lanes)).sum::<f64>();
        let elements: usize = halves.parts.iter().map(ExactSizeIterator::len).sum();
        let products = (elements * known * (others + 2)) as f64;
        let time_of_half = time(&lanes) + products * PRODUCT / nanoseconds / work(engine) as f64;
        let is_better = time_of_half < time(&groups(primes)) && bytes <= options.memory_limit;
        (is_better && others <= all && all <= MOST_LANES).then_some(Self { known, lanes, bytes, time: time_of_half })
    }

    /// Lanes of all vectors.
    pub fn all_lanes(&self) -> usize {
        self.lanes.iter().sum()
    }
}

/// Groups of eight lanes, and one more.
fn groups(primes: usize) -> Vec<usize> {
    let rest = if primes.is_multiple_of(8) { None } else { Some(lanes_for(primes % 8)) };
    std::iter::repeat_n(8, primes / 8).chain(rest).collect()
}

/// Residues of the count modulo all moduli, in their order.
///
/// # Errors
/// [`Error::TooLarge`] without memory, [`Error::Check`] if an element contradicts the spare prime, the monitor's error.
pub fn residues(
    engine: &impl Transfer,
    halves: &Halves,
    layout: &HalfLayout,
    moduli: &[Modulus],
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Vec<u64>> {
    let work = work(engine);
    let total = work.saturating_mul(layout.lanes.len() as u64);
    parallel::run(options.threads, total, monitor, |progress| {
        let (first, others) = moduli.split_at(layout.known + 1);
        let mut vectors = Vec::new();
        for (points, &lanes) in first.chunks(8).zip(&layout.lanes) {
            let mut words = fresh(engine.len() * lanes, progress)?;
            with_lanes(lanes, Advance { engine, moduli: points, words: &mut words, progress })?;
            vectors.push((lanes, words));
        }
        let mut found = Vec::new();
        finish(engine, &mut vectors, first, &mut found);
        progress.check()?;
        if !others.is_empty() {
            Lifting::new(moduli, layout.known).lift(halves, &mut vectors, progress)?;
            finish(engine, &mut vectors, others, &mut found);
        }
        Ok(found)
    })
}

/// Appends the residues of vectors modulo so many moduli, one in each lane.
fn finish(engine: &impl Transfer, vectors: &mut [(usize, Buffer<u64>)], moduli: &[Modulus], found: &mut Vec<u64>) {
    let mut moduli = moduli;
    for (lanes, words) in vectors {
        let (here, rest) = moduli.split_at(moduli.len().min(*lanes));
        if !here.is_empty() {
            found.extend(with_lanes(*lanes, Finish { engine, moduli: here, words }));
        }
        moduli = rest;
    }
}

/// Work on a vector of some lanes.
trait OnLanes {
    type Output;
    fn run<const L: usize>(self) -> Self::Output
    where
        Lanes<L>: TransferRing<Element = [u64; L]>;
}

fn with_lanes<W: OnLanes>(lanes: usize, work: W) -> W::Output {
    match lanes {
        1 => work.run::<1>(),
        4 => work.run::<4>(),
        _ => work.run::<8>(),
    }
}

/// From the start to the last step.
struct Advance<'a, E> {
    engine: &'a E,
    moduli: &'a [Modulus],
    words: &'a mut Buffer<u64>,
    progress: &'a Progress,
}

impl<E: Transfer> OnLanes for Advance<'_, E> {
    type Output = Result<()>;

    fn run<const L: usize>(self) -> Result<()>
    where
        Lanes<L>: TransferRing<Element = [u64; L]>,
    {
        let weight = lane_weight::<L>(&points(self.moduli));
        let (state, _) = self.words.as_chunks_mut::<L>();
        self.engine.start(&weight, state);
        let at = |number| StepContext { weight: &weight, number, progress: self.progress };
        (0..self.engine.steps()).try_for_each(|number| self.engine.advance(at(number), state))
    }
}

/// The last line.
struct Finish<'a, E> {
    engine: &'a E,
    moduli: &'a [Modulus],
    words: &'a Buffer<u64>,
}

impl<E: Transfer> OnLanes for Finish<'_, E> {
    type Output = Vec<u64>;

    fn run<const L: usize>(self) -> Vec<u64>
    where
        Lanes<L>: TransferRing<Element = [u64; L]>,
    {
        let weight = lane_weight::<L>(&points(self.moduli));
        let value = self.engine.finish(&weight, self.words.as_chunks::<L>().0);
        self.moduli.iter().zip(value).map(|(modulus, x)| modulus.residue(x)).collect()
    }
}

fn points(moduli: &[Modulus]) -> Vec<Point> {
    moduli.iter().map(|&modulus| Point::new(modulus, 1)).collect()
}

/// From residues by some primes to those by others.
#[derive(Clone, Debug)]
pub struct Lifting {
    /// The primes that numbers are found by.
    pub known: Vec<Modulus>,
    /// The inverse of P / p_i modulo p_i.
    pub inverses: Vec<u64>,
    /// 1 / p_i.
    pub reciprocals: Vec<f64>,
    /// The others, the spare one first.
    pub others: Vec<Modulus>,
    /// By other prime: P / p_i for each i, and - P.
    pub products: Vec<Vec<u64>>,
}

impl Lifting {
    /// From `known` of the moduli, all prime, to the others.
    pub fn new(moduli: &[Modulus], known: usize) -> Self {
        let (known, others) = moduli.split_at(known);
        let product = |p: Modulus, without: Option<usize>| p.product_of(known, without);
        let inverse = |(i, &prime): (usize, &Modulus)| {
            inverse_modulo(product(prime, Some(i)), prime.value())
                .unwrap_or_else(|| unreachable!("primes are distinct"))
        };
        let row = |&prime: &Modulus| {
            let mut row: Vec<u64> = (0..known.len()).map(|i| product(prime, Some(i))).collect();
            row.push(prime.value() - product(prime, None));
            row
        };
        Self {
            inverses: known.iter().enumerate().map(inverse).collect(),
            reciprocals: known.iter().map(|prime| 1.0 / prime.value() as f64).collect(),
            products: others.iter().map(row).collect(),
            known: known.to_vec(),
            others: others.to_vec(),
        }
    }

    /// Writes the residues by the others over those of all elements.
    fn lift(&self, halves: &Halves, vectors: &mut [(usize, Buffer<u64>)], progress: &Progress) -> Result<()> {
        let places: Vec<(usize, Shared<u64>)> =
            vectors.iter_mut().map(|(lanes, words)| (*lanes, Shared::new(words))).collect();
        let known = self.known.len();
        let known: Vec<Digits> = (0..known.div_ceil(WIDE)).map(|group| self.digits(group * WIDE)).collect();
        let others: Vec<Others> =
            (0..self.others.len().div_ceil(WIDE)).map(|group| self.others(group * WIDE)).collect();
        for part in &halves.parts {
            let block = |room: &mut Room, block: usize| {
                let start = part.start + block * BLOCK;
                // SAFETY: each element is in one block of one part, and all vectors have it.
                unsafe { self.block(&places, &known, &others, start..part.end.min(start + BLOCK), room) }?;
                progress.check()
            };
            parallel::tiles(part.len().div_ceil(BLOCK), 1, || Ok(Room::new(known.len(), others.len())), block)?;
        }
        Ok(())
    }

    /// What is needed of eight known primes from this one on.
    fn digits(&self, first: usize) -> Digits {
        let of = |i: usize| (first + i < self.known.len()).then_some(first + i);
        Digits {
            ring: Lanes::new(std::array::from_fn(|i| self.known[of(i).unwrap_or(0)])),
            inverses: std::array::from_fn(|i| of(i).map_or(0, |i| self.inverses[i])),
            reciprocals: std::array::from_fn(|i| of(i).map_or(0.0, |i| self.reciprocals[i])),
        }
    }

    /// What is needed of eight others from this one on; the spare one comes last.
    fn others(&self, first: usize) -> Others {
        let of = |i: usize| if first + i + 1 < self.others.len() { first + i + 1 } else { 0 };
        Others {
            ring: Lanes::new(std::array::from_fn(|i| self.others[of(i)])),
            products: (0..=self.known.len()).map(|k| std::array::from_fn(|i| self.products[of(i)][k])).collect(),
        }
    }

    /// Some elements.
    ///
    /// # Safety
    /// The vectors have them, and nobody else works on them.
    unsafe fn block(
        &self,
        places: &[(usize, Shared<u64>)],
        groups: &[Digits],
        others: &[Others],
        elements: Range<usize>,
        room: &mut Room,
    ) -> Result<()> {
        let (known, level, len) = (self.known.len(), dispatch::level(), elements.len());
        // SAFETY: the caller's.
        let words = |group: usize| unsafe {
            let (lanes, words) = &places[group];
            (*lanes, words.part(elements.start * lanes, len * lanes))
        };
        room.fraction[..len].fill(2f64.powi(-20));
        // Groups of eight lanes come first: eight known primes lie side by side.
        for (group, factors) in groups.iter().enumerate() {
            let (lanes, words) = words(group);
            copy_lanes(lanes, words, &mut room.residues[..len], |words, residues| residues.copy_from_slice(words));
            let (digits, fraction) = (&mut room.digits[group][..len], &mut room.fraction[..len]);
            factors.ring.dispatch(level, DigitBlock { factors, residues: &room.residues[..len], digits, fraction });
        }
        for (other, lifted) in others.iter().zip(&mut room.lifted) {
            let (digits, fraction) = (&room.digits, &room.fraction[..len]);
            other.ring.dispatch(level, ResidueBlock { known, other, digits, fraction, lifted: &mut lifted[..len] });
        }
        let spare = self.others[0];
        let (lanes, swept) = words(known / places[0].0);
        let (lane, last) = (known % places[0].0, self.others.len() - 1);
        for (swept, lifted) in swept.chunks_exact(lanes).zip(&room.lifted[last / WIDE]) {
            let (residue, expected) = (lifted[last % WIDE], canonical(spare, spare.fold(swept[lane])));
            if residue != expected {
                let detail = format!("an element is {residue} modulo {}, computed was {expected}", spare.value());
                return Err(Error::Check { what: "the vector in the middle", detail });
            }
        }
        // In lanes that are left over stands the residue by the spare prime, or what stood there: nobody looks at it.
        for (group, lifted) in room.lifted.iter_mut().enumerate().take(places.len()) {
            let (lanes, words) = words(group);
            copy_lanes(lanes, words, &mut lifted[..len], |words, lifted| words.copy_from_slice(lifted));
        }
        Ok(())
    }
}

/// Copies between elements of some lanes and the first lanes of wide ones.
#[inline(always)]
fn copy_lanes(lanes: usize, words: &mut [u64], wide: &mut [[u64; WIDE]], copy: impl Fn(&mut [u64], &mut [u64])) {
    macro_rules! each {
        ($lanes:literal) => {
            words.as_chunks_mut::<$lanes>().0.iter_mut().zip(wide).for_each(|(x, y)| copy(x, &mut y[..$lanes]))
        };
    }
    match lanes {
        1 => each!(1),
        4 => each!(4),
        _ => copy(words, wide.as_flattened_mut()),
    }
}

/// Primes worked on side by side.
const WIDE: usize = 8;

/// Eight known primes, the first ones repeated where they are fewer.
struct Digits {
    ring: Lanes<WIDE>,
    inverses: [u64; WIDE],
    reciprocals: [f64; WIDE],
}

/// Eight others.
struct Others {
    ring: Lanes<WIDE>,
    /// By digit.
    products: Vec<[u64; WIDE]>,
}

/// What is found of a block of elements.
struct Room {
    residues: Vec<[u64; WIDE]>,
    /// By group of known primes.
    digits: Vec<Vec<[u64; WIDE]>>,
    /// The sums of digits over their primes, and a little more.
    fraction: Vec<f64>,
    /// By group of others.
    lifted: Vec<Vec<[u64; WIDE]>>,
}

impl Room {
    fn new(known: usize, others: usize) -> Self {
        let elements = || vec![[0; WIDE]; BLOCK];
        Self {
            residues: elements(),
            digits: (0..known).map(|_| elements()).collect(),
            fraction: vec![0.0; BLOCK],
            lifted: (0..others).map(|_| elements()).collect(),
        }
    }
}

/// Writes residues, which fit once folded, below their moduli.
#[inline(always)]
fn write_canonical<A: Arithmetic<Element = [u64; WIDE]>>(
    a: A,
    ring: &Lanes<WIDE>,
    to: &mut [u64; WIDE],
    x: A::Register,
) {
    a.write(to, a.fold(x));
    for (x, modulus) in to.iter_mut().zip(ring.moduli()) {
        *x = canonical(*modulus, *x);
    }
}

/// The digits of elements by eight primes: residues times inverses.
struct DigitBlock<'a> {
    factors: &'a Digits,
    residues: &'a [[u64; WIDE]],
    digits: &'a mut [[u64; WIDE]],
    fraction: &'a mut [f64],
}

impl Kernel<[u64; WIDE]> for DigitBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Products<Element = [u64; WIDE]>>(self, a: A) {
        let inverses = a.split(a.read(&self.factors.inverses));
        for ((residues, digits), fraction) in self.residues.iter().zip(self.digits).zip(self.fraction) {
            let product = a.add_product(a.no_products(), a.split(a.read(residues)), inverses);
            write_canonical(a, &self.factors.ring, digits, a.total(product));
            for k in 0..WIDE {
                *fraction += digits[k] as f64 * self.factors.reciprocals[k];
            }
        }
    }
}

/// The residues of elements by eight others: sums of digits times products of primes.
struct ResidueBlock<'a> {
    known: usize,
    other: &'a Others,
    digits: &'a [Vec<[u64; WIDE]>],
    fraction: &'a [f64],
    lifted: &'a mut [[u64; WIDE]],
}

impl Kernel<[u64; WIDE]> for ResidueBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Products<Element = [u64; WIDE]>>(self, a: A) {
        let mut products = [a.zero(); MOST_KNOWN + 1];
        for (split, product) in products.iter_mut().zip(&self.other.products) {
            *split = a.split(a.read(product));
        }
        // No closures: they would not be compiled for the level.
        for (i, (fraction, lifted)) in self.fraction.iter().zip(self.lifted).enumerate() {
            let mut sum =
                a.add_product(a.no_products(), products[self.known], a.split(a.read(&[*fraction as u64; WIDE])));
            for (k, product) in products[..self.known].iter().enumerate() {
                let digit = [self.digits[k / WIDE][i][k % WIDE]; WIDE];
                sum = a.add_product(sum, *product, a.split(a.read(&digit)));
            }
            write_canonical(a, &self.other.ring, lifted, a.total(sum));
        }
    }
}

/// The residue of a folded number.
#[inline(always)]
fn canonical(p: Modulus, x: u64) -> u64 {
    if x >= p.value() { x - p.value() } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::evaluation;
    use crate::counting::graph_sums::planner::Planner;
    use crate::counting::independent_sets::{Boundary, Engine, Problem, StripKind, log2_bound};
    use crate::monitor::Silent;
    use crate::numeric::residue::primes;

    fn engine(kind: StripKind, rows: usize, cols: usize, boundary: Boundary) -> (Engine, Halves) {
        let problem = |rows, cols| Problem::Lattice { kind, rows, cols, boundary };
        let progress = Progress::default();
        let engine = Engine::new(&problem(rows, cols), usize::MAX, &Planner::new(&progress)).unwrap();
        let (half_rows, half_cols) = kind.half(rows, cols, boundary);
        let bits = log2_bound(&problem(half_rows, half_cols), 1.0, &progress).unwrap();
        let parts = engine.halves().unwrap();
        (engine, Halves { parts, bits })
    }

    fn layout(known: usize) -> HalfLayout {
        HalfLayout { known, lanes: groups(known + 1), bytes: 0, time: 0.0 }
    }

    #[test]
    fn residues_by_half_of_the_primes_are_those_by_all() {
        let sizes = |kind| match kind {
            StripKind::FourEightEight => [(5, 6), (7, 5), (6, 6), (6, 5)],
            StripKind::Square => [(10, 12), (9, 12), (17, 9), (18, 9)],
            StripKind::King | StripKind::Triangular => [(9, 16), (17, 9), (12, 12), (13, 12)],
        };
        for (&kind, (rows, cols), boundary) in StripKind::ALL.iter().flat_map(|kind| {
            let boundaries = [Boundary::Free, Boundary::Cylinder];
            sizes(*kind).into_iter().flat_map(move |size| boundaries.map(|boundary| (kind, size, boundary)))
        }) {
            let (engine, halves) = engine(kind, rows, cols, boundary);
            let known = ((halves.bits + 2.0) / BITS).ceil() as usize;
            let moduli = primes(known + 8).unwrap();
            let points = points(&moduli);
            let expected = evaluation::residues(&engine, 0, &points, &Options::default(), &mut Silent).unwrap();
            for (known, others) in [(known, 0), (known, 1), (known, known + 1), (known + 4, 3)] {
                let moduli = &moduli[..moduli.len().min(known + 1 + others)];
                let found =
                    residues(&engine, &halves, &layout(known), moduli, &Options::default(), &mut Silent).unwrap();
                let job = format!("{kind:?} {rows} x {cols} {boundary:?}: {known} known, {others} others");
                assert_eq!(found, expected[..moduli.len()], "{job}");
            }
        }
    }

    #[test]
    fn elements_beyond_the_known_primes_contradict_the_spare_one() {
        for kind in [StripKind::King, StripKind::Triangular] {
            let (engine, halves) = engine(kind, 24, 12, Boundary::Free);
            // The largest elements have 68 and 77 bits.
            let moduli = primes(5).unwrap();
            let found = residues(&engine, &halves, &layout(1), &moduli[..4], &Options::default(), &mut Silent);
            assert!(matches!(found, Err(Error::Check { .. })));
            assert!(residues(&engine, &halves, &layout(2), &moduli, &Options::default(), &mut Silent).is_ok());
        }
    }

    #[test]
    fn layouts_are_chosen_where_they_save_time_and_fit() {
        let (engine, halves) = engine(StripKind::Triangular, 28, 28, Boundary::Free);
        let moduli = primes(9).unwrap();
        let all = HalfLayout::new(&engine, &halves, &moduli, 0.18, &Options::default()).unwrap();
        assert_eq!((all.known, all.all_lanes()), (4, 8));
        assert_eq!(all.bytes, 64 * engine.len() as u64);
        let limited = |memory_limit| Options { memory_limit, ..Options::default() };
        assert_eq!(HalfLayout::new(&engine, &halves, &moduli, 0.18, &limited(all.bytes)), Some(all.clone()));
        assert_eq!(HalfLayout::new(&engine, &halves, &moduli, 0.18, &limited(all.bytes - 1)), None);
        assert_eq!(HalfLayout::new(&engine, &halves, &moduli[..5], 0.18, &Options::default()), None);
        let checkpoint = Options { checkpoint: Some("somewhere".into()), ..Options::default() };
        assert_eq!(HalfLayout::new(&engine, &halves, &moduli, 0.18, &checkpoint), None);
    }
}
