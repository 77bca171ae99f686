//! Open square lattices and cylinders, one prime at a time: half of a symmetric vector, a start of low rank, half of the primes.
//!
//! The vector u_r after r rows does not change when the row is read backwards. So both halves of a row are read from the middle
//! outwards, and u_r is a symmetric matrix over the words of half a row (`axis`), which every level of the butterfly keeps
//! symmetric if it acts on both sides (`sweep`). It begins as a product of thin matrices after several rows (`start`), and ends
//! in the middle of the lattice with a sum of squares (`finish`). A row is one sweep over memory: with S the first symbols of
//! both sides and the middle, U the others, T = U S = S' U', rows go in pairs as in `path`: S' U', U S, S' U', ...
//!
//! An activity weighs each complete row (`activity`), and the halves of a ring meet twice (`ring`). Residues are those of one prime below 2^52 and lie beside each other, so registers are full whatever the number of primes
//! and the memory. Where the vectors by half of the primes fit in memory, the others are found from them at the end.
//!
//! Derivations: docs/mathematics/counting.md.

mod activity;
mod axis;
mod finish;
mod ring;
mod start;
mod sweep;
mod walk;

use super::square::program::{BlockPass, Course, Courses, Ending, order};
use super::square::words::{LONGEST, words};
use crate::counting::evaluation::Options;
use crate::counting::exact::{self, Modular};
use crate::counting::independent_sets::{Boundary, Problem, StripKind, log2_bound};
use crate::counting::lifting::Lifting;
use crate::monitor::{Monitor, Progress};
use crate::numeric::buffer::Buffer;
use crate::numeric::dispatch::{self, Level};
use crate::numeric::neighbors::{self, NeighborKernel, Neighbors, ShortPrime, TILE, TILE_WORDS};
use crate::numeric::residue::Modulus;
use crate::parallel::{self, Shared};
use crate::{Error, Result};
use activity::{ActivityPowers, HalfWeights};
use axis::{Axis, Symmetric};
use finish::{LONGEST_RUN, LiftedSquares, MOST_KNOWN, MOST_PRIMES, Signs, Squares};
use ring::LastSymbols;
use start::StartFactors;
use std::ops::RangeInclusive;
use sweep::{PlaceTile, RowEnd, RunBlock};

/// Symbols that may be consumed between two folds: at most f(i) f(16 - i) < 4095 elements are summed.
pub const SHORT_STRIDE: usize = 16;
/// The widths there are programs for, up to the longest rows whose states are numbered.
const WIDTHS: RangeInclusive<usize> = 8..=LONGEST;
/// From these widths on open lattices take this way, and closed rows: to count, and at other activities.
const WORTH: [[usize; 2]; 2] = [[17, 13], [24, 16]];
/// The most vertices that are counted this way, with 0.6 bits each, times the bits of an activity.
const MOST_BITS: u64 = 1 << 20;
/// The most words a middle column of the start can have, those of 14 symbols: sums of products have room for 4096.
const MOST_TERMS: usize = 987;
/// Seconds for each byte that is used for the first time.
const FIRST_USE: f64 = 5e-10;

/// A square lattice with open rows and a vertical mirror line.
#[derive(Clone, Debug)]
pub struct Reflection {
    rows: usize,
    width: usize,
    /// Rows of the product; one row if it is closed.
    start: usize,
    /// The last symbols of the words of each matrix, if rows are closed.
    last: Option<Vec<LastSymbols>>,
    /// The matrix of the words with 0 in the middle; that of those with 1, if there is a middle.
    halves: Vec<Symmetric>,
    /// A bound on the bits of an element in the middle.
    bits: f64,
    /// Whether activities are asked for, which need not be 1.
    weighed: bool,
    level: Level,
}

/// The programs of one matrix.
#[derive(Clone, Debug)]
pub struct AxisPrograms {
    open: Courses,
    closed: Courses,
    /// Of the longest runs, and of those shorter by one.
    runs: [Courses; 2],
    longest: usize,
}

impl AxisPrograms {
    fn new(axis: &Axis, order: usize) -> Self {
        let run = |length| Courses::new(length, order, SHORT_STRIDE, Ending::Whole);
        Self {
            open: Courses::new(axis.beginning, order, SHORT_STRIDE, Ending::Open),
            closed: Courses::new(axis.beginning - 1, order, SHORT_STRIDE, Ending::Closed),
            runs: [run(axis.longest), run(axis.longest - 1)],
            longest: axis.longest,
        }
    }

    /// The program for a run of so many symbols.
    fn run(&self, length: usize, course: Course) -> &[BlockPass] {
        self.runs[self.longest - length].course(course)
    }
}

/// Asks for the largest order of networks that the registers hold.
struct NeighborOrder;

impl NeighborKernel for NeighborOrder {
    type Output = usize;

    #[inline(always)]
    fn run<A: Neighbors>(self, _: A) -> usize {
        order(A::HELD)
    }
}

/// How residues by several primes are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PrimeMethod {
    /// One vector after the other, each to its end.
    Each,
    /// Vectors by so many primes and a spare one, and the other residues from those.
    Lifted(usize),
}

impl Reflection {
    /// The way for a problem, if it is an open square lattice or a cylinder of a size that is worth it: to count, or to find its
    /// residues at activities with so many bits in numerator and denominator.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the caller says so.
    pub fn for_problem(problem: &Problem, activity_bits: Option<u64>, progress: &Progress) -> Result<Option<Self>> {
        let (rows, width, closed) = match *problem {
            Problem::Lattice { kind: StripKind::Square, rows, cols, boundary: Boundary::Free } => {
                (rows.max(cols), rows.min(cols), false)
            }
            // Fewer rows are counted around, from all pairs of states of a column.
            Problem::Lattice { kind: StripKind::Square, rows, cols, boundary: Boundary::Cylinder }
                if rows >= cols.div_ceil(2) =>
            {
                (rows, cols, true)
            }
            _ => return Ok(None),
        };
        let worth = WORTH[usize::from(closed)][usize::from(activity_bits.is_some())];
        // So many bits need no more primes than there are below 2^52 within 2^20.
        let each = 1 + activity_bits.unwrap_or(0);
        if !(worth..=*WIDTHS.end()).contains(&width) || rows as u64 > MOST_BITS / each / width as u64 {
            return Ok(None);
        }
        Self::new(rows, width, closed, activity_bits.is_some(), None, None, progress).map(Some)
    }

    /// A lattice of `rows` by `width` vertices, `rows >= width` unless each row is closed; the rows of the start and the symbols of prefixes are chosen by their
    /// cost unless they are given.
    fn new(
        rows: usize,
        width: usize,
        closed: bool,
        weighed: bool,
        start: Option<usize>,
        beginning: Option<usize>,
        progress: &Progress,
    ) -> Result<Self> {
        let half = width / 2;
        // Runs of up to m = k - L + 1 symbols in the nearest caches, and tiles of f(L)^2 times 512 bytes in the next.
        let beginning =
            beginning.unwrap_or((half / 2).saturating_sub(3).max(2).max((half + 1).saturating_sub(LONGEST_RUN)));
        let has_middle = width % 2 == 1;
        let zero = Symmetric::new(Axis::new(half, beginning), !has_middle, 0, 0);
        let mut halves = vec![zero];
        if has_middle {
            let at = halves[0].len;
            halves.push(Symmetric::new(Axis::new(half - 1, beginning - 1), false, 1, at));
        }
        // The rows below row a of 2a - 1, or the first a of 2a.
        let boundary = if closed { Boundary::Cylinder } else { Boundary::Free };
        let strip = Problem::Lattice { kind: StripKind::Square, rows: rows / 2, cols: width, boundary };
        // A vertex adds about 0.6 bits.
        let out_of_reach = rows / 2 > 4 * 52 * MOST_KNOWN / width;
        let bits = match (weighed || out_of_reach, rows) {
            (true, _) => f64::INFINITY,
            (false, 1) => 0.0,
            _ => log2_bound(&strip, 1.0, progress)?,
        };
        let last = closed.then(|| halves.iter().map(LastSymbols::new).collect());
        let mut reflection = Self { rows, width, start: 1, last, halves, bits, weighed, level: dispatch::level() };
        if !closed {
            reflection.start = start.unwrap_or_else(|| reflection.best_start());
        }
        Ok(reflection)
    }

    /// The same with these vector instructions, or the best there are if they are less. Results do not depend on them.
    #[cfg(test)]
    fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Rows up to the middle.
    fn half_rows(&self) -> usize {
        self.rows.div_ceil(2)
    }

    /// Elements of a vector, padding included.
    #[expect(clippy::len_without_is_empty, reason = "a row has one state at the least")]
    pub fn len(&self) -> usize {
        self.halves.iter().map(|half| half.len).sum()
    }

    /// Nanoseconds of an element: for a row, for a term of the product, and for a product of the lift (`benches/counting.rs`).
    fn rates(&self) -> (f64, f64, f64) {
        let (row, term, product) = match self.level.min(Level::best()) {
            _ if neighbors::multiplies_fast(self.level) => (1.2, 0.04, 0.17),
            Level::Baseline => (4.0, 0.8, 1.0),
            _ => (2.5, 0.7, 0.9),
        };
        // A walk more for closed rows, products for activities.
        let walks = if self.last.is_some() { 1.2 } else { 1.0 };
        (row * if self.weighed { walks + 0.4 } else { walks }, term, product)
    }

    /// The rows of the start that make the least work.
    fn best_start(&self) -> usize {
        let (row, term, _) = self.rates();
        let cost = |&start: &usize| term * words(start - 1) as f64 + row * (self.half_rows() - start) as f64;
        let possible = (2..=self.half_rows()).take_while(|&start| words(start - 1) <= MOST_TERMS);
        possible.min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap_or(2)
    }

    /// Sweeps from the start to the middle, and over superset sums.
    fn sweeps(&self) -> usize {
        // The last symbols of the second row are part of the product.
        let left = self.half_rows() - self.start;
        let first = usize::from(self.last.is_some() && left > 0);
        first + left + if self.alternates() { 2 } else { 0 }
    }

    /// Units of work for one prime: elements times sweeps, the start and the squares one sweep each.
    fn work(&self) -> u64 {
        (self.len() * (self.sweeps() + 2)) as u64
    }

    /// Bytes of one vector.
    fn vector_bytes(&self) -> u64 {
        8 * self.len() as u64
    }

    /// Bytes of a vector of whole rows, which are swept without tiles.
    pub fn row_bytes(&self) -> u64 {
        8 * words(self.width) as u64
    }

    /// Bytes beside the vectors.
    fn room_bytes(&self, threads: usize) -> u64 {
        let tiles = self.halves.iter().map(|half| words(half.axis.beginning).pow(2) * TILE_WORDS).sum::<usize>();
        let runs = (words(self.halves[0].axis.longest) + TILE) * TILE;
        let weights = if self.weighed { ActivityPowers::len(self) } else { 0 };
        let factors = if self.last.is_some() { 0 } else { StartFactors::len(self, self.weighed, threads) };
        8 * (factors + weights + threads * (tiles + runs)) as u64
    }

    /// Seconds of one prime on one thread.
    fn prime_seconds(&self) -> f64 {
        let (row, term, _) = self.rates();
        let each = row * (self.sweeps() + 1) as f64 + term * words(self.start - 1) as f64;
        self.len() as f64 * each * 1e-9
    }

    /// Seconds for the residues by all primes from those by some, on one thread.
    fn lift_seconds(&self, known: usize, primes: usize) -> f64 {
        let (_, _, product) = self.rates();
        self.len() as f64 * 1e-9 * product * (known * (primes - known)) as f64
    }

    /// Primes that tell an element, at most one more than can.
    fn known(&self) -> usize {
        (((self.bits + 3.0) / 51.999).ceil() as usize).min(MOST_KNOWN + 1)
    }

    /// How residues by so many primes are found.
    fn method(&self, primes: usize, options: &Options) -> PrimeMethod {
        let known = self.known();
        let together = known as u64 + 1;
        let fits = together.saturating_mul(self.vector_bytes()).saturating_add(self.room_bytes(options.threads))
            <= options.memory_limit;
        if self.weighed
            || options.checkpoint.is_some()
            || !fits
            || known > MOST_KNOWN
            || !(known + 2..=MOST_PRIMES).contains(&primes)
        {
            return PrimeMethod::Each;
        }
        let pages = known as f64 * self.vector_bytes() as f64 * FIRST_USE;
        let lifted = together as f64 * self.prime_seconds() + self.lift_seconds(known, primes) + pages;
        if lifted < primes as f64 * self.prime_seconds() { PrimeMethod::Lifted(known) } else { PrimeMethod::Each }
    }

    /// Bytes, vectors that are swept and seconds for residues by so many primes.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if not even one vector fits the memory limit.
    pub fn forecast(&self, primes: usize, options: &Options) -> Result<(u64, usize, f64)> {
        let (vector, room) = (self.vector_bytes(), self.room_bytes(options.threads));
        if vector.saturating_add(room) > options.memory_limit {
            let (needed, limit) = (u128::from(vector) + u128::from(room), u128::from(options.memory_limit));
            return Err(Error::TooLarge { what: "the vector of partial sums", needed, limit });
        }
        let (vectors, swept, lift) = match self.method(primes, options) {
            PrimeMethod::Each => (1, primes, 0.0),
            PrimeMethod::Lifted(known) => (known + 1, known + 1, self.lift_seconds(known, primes)),
        };
        let bytes = vectors as u64 * vector + room;
        let seconds = swept as f64 * self.prime_seconds() + lift + bytes as f64 * FIRST_USE;
        Ok((bytes, swept, seconds / options.threads as f64))
    }

    /// Additions of one residue that a prime takes: a count of butterflies, and of the terms of the product.
    pub fn additions(&self) -> f64 {
        let row = 0.447 * self.width as f64;
        self.len() as f64 * (row * self.sweeps() as f64 + words(self.start - 1) as f64)
    }

    /// Bytes that a prime reads and writes: every sweep once, the start writes and the squares read.
    pub fn swept_bytes(&self) -> f64 {
        16.0 * self.len() as f64 * (self.sweeps() + 1) as f64
    }

    /// The blocks of all matrices.
    fn blocks(&self) -> Vec<(usize, (usize, usize))> {
        self.halves.iter().enumerate().flat_map(|(k, half)| half.blocks().map(move |block| (k, block))).collect()
    }

    fn block_len(&self, (k, (a, b)): (usize, (usize, usize))) -> usize {
        let runs = &self.halves[k].axis.runs;
        runs[a].tiles() * runs[b].tiles() * TILE_WORDS
    }

    /// `Z` modulo each of the primes, which are primes just below 2^52, at the activity of each value.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if memory does not suffice, [`Error::Domain`] for other moduli, [`Error::Check`] if an element
    /// contradicts the spare prime, [`Error::File`] for a checkpoint that cannot be used, the monitor's error when it stops.
    pub fn residues(
        &self,
        quantity: &impl Modular,
        activity: impl Fn(Modulus, usize) -> u64 + Sync,
        moduli: &[Modulus],
        options: &Options,
        monitor: &mut dyn Monitor,
    ) -> Result<Vec<u64>> {
        self.forecast(moduli.len(), options)?;
        let primes: Vec<ShortPrime> = moduli.iter().map(|&modulus| short(modulus)).collect::<Result<_>>()?;
        match self.method(primes.len(), options) {
            PrimeMethod::Each => {
                let programs = MatrixPrograms::new(self, primes[0]);
                let one = |modulus, value, (factors, vector): &mut (WalkFactors, Buffer<u64>), progress: &Progress| {
                    let run = PrimeJob::new(self, &programs, short(modulus)?, activity(modulus, value));
                    run.advance(factors, vector, progress)?;
                    run.squares(vector, progress)
                };
                let room = || Ok((self.factors()?, Buffer::zeroed(self.len())?));
                exact::in_turn(quantity, moduli, self.work(), options, monitor, room, one)
            }
            PrimeMethod::Lifted(known) => {
                let total = self.work() * (known as u64 + 1) + (self.len() * primes.len()) as u64;
                parallel::run(options.threads, total, monitor, |progress| self.lifted(&primes, known, progress))
            }
        }
    }

    /// Memory for the product that open lattices begin with.
    fn factors(&self) -> Result<WalkFactors> {
        if self.last.is_some() { Ok(None) } else { StartFactors::new(self, self.weighed).map(Some) }
    }

    /// Residues from the vectors by some of the primes and a spare one.
    fn lifted(&self, primes: &[ShortPrime], known: usize, progress: &Progress) -> Result<Vec<u64>> {
        let mut vectors = Vec::new();
        let mut factors = self.factors()?;
        let programs = MatrixPrograms::new(self, primes[0]);
        for &prime in &primes[..=known] {
            let mut vector = Buffer::zeroed(self.len())?;
            PrimeJob::new(self, &programs, prime, 1).advance(&mut factors, &mut vector, progress)?;
            vectors.push(vector);
        }
        drop(factors);
        let moduli: Vec<Modulus> = primes.iter().map(|prime| prime.modulus()).collect();
        let lifting = Lifting::new(&moduli, known);
        let pointers: Vec<Shared<u64>> = vectors.iter_mut().map(|vector| Shared::new(vector)).collect();
        let sums = self.by_block(progress, primes.len(), |k, block, signs| {
            let vectors: Vec<*const u64> = pointers.iter().map(|vector| vector.at(0).cast_const()).collect();
            let half = &self.halves[k];
            let kernel = LiftedSquares { primes, lifting: &lifting, half, signs, block, vectors: &vectors };
            neighbors::run(self.level, primes[0], kernel).ok_or_else(|| Error::Check {
                what: "the vector in the middle",
                detail: format!("an element contradicts its residue modulo {}", primes[known].value()),
            })
        })?;
        Ok(self.combined(primes, &sums))
    }

    /// Whether squares have signs: for an even number of rows.
    fn alternates(&self) -> bool {
        self.rows.is_multiple_of(2)
    }

    /// What a kernel finds for each block, with the signs of its matrix.
    fn by_block(
        &self,
        progress: &Progress,
        work: usize,
        kernel: impl Fn(usize, (usize, usize), &Signs) -> Result<Vec<u64>> + Sync,
    ) -> Result<Vec<(usize, Vec<u64>)>> {
        let signs: Vec<Signs> = self.halves.iter().map(|half| Signs::new(half, self.alternates())).collect();
        let blocks = self.blocks();
        let mut sums = vec![(0, Vec::new()); blocks.len()];
        let shared = Shared::new(&mut sums);
        parallel::tiles(
            blocks.len(),
            1,
            || Ok(()),
            |(), i| {
                let (k, block) = blocks[i];
                // SAFETY: each block has its own place.
                unsafe { shared.part(i, 1)[0] = (k, kernel(k, block, &signs[k])?) };
                progress.advance((self.block_len(blocks[i]) * work) as u64)
            },
        )?;
        Ok(sums)
    }

    /// The sums over all blocks; a vertex in the middle is one more to alternate by.
    fn combined(&self, primes: &[ShortPrime], sums: &[(usize, Vec<u64>)]) -> Vec<u64> {
        let total = |(j, prime): (usize, &ShortPrime)| {
            let p = prime.value();
            let signed = sums.iter().map(|(k, sum)| match self.halves[*k].middle {
                1 if self.alternates() => p - sum[j],
                _ => sum[j],
            });
            signed.fold(0, |total, x| (total + x) % p)
        };
        primes.iter().enumerate().map(total).collect()
    }
}

fn short(modulus: Modulus) -> Result<ShortPrime> {
    ShortPrime::new(modulus).ok_or_else(|| Error::domain("modulus", modulus.value(), "a prime within 2**20 of 2**52"))
}

/// The programs of all matrices and of the column of the start, for a level.
#[derive(Clone, Debug)]
struct MatrixPrograms {
    halves: Vec<AxisPrograms>,
    column: Courses,
}

impl MatrixPrograms {
    /// They depend on the level, and on no prime.
    fn new(reflection: &Reflection, prime: ShortPrime) -> Self {
        let order = neighbors::run(reflection.level, prime, NeighborOrder);
        let halves = reflection.halves.iter().map(|half| AxisPrograms::new(&half.axis, order)).collect();
        Self { halves, column: Courses::new(reflection.start - 1, order, SHORT_STRIDE, Ending::Whole) }
    }
}

/// What a sweep over the blocks of runs does; by default, the last symbols of a row.
#[derive(Clone, Copy)]
struct RunSweep<'a> {
    course: Course,
    supersets: bool,
    /// What a row that ends is weighed by, unless by nothing.
    weights: Option<&'a [HalfWeights]>,
    /// The last symbols, if a row ends whose sides meet there.
    last: Option<&'a [LastSymbols]>,
    /// Whether the next row begins after that.
    again: bool,
}

impl Default for RunSweep<'_> {
    fn default() -> Self {
        Self { course: Course::Down, supersets: false, weights: None, last: None, again: false }
    }
}

/// The factors of the start, if there are any.
type WalkFactors = Option<StartFactors>;

/// A reflection modulo one prime, at one activity.
struct PrimeJob<'a> {
    reflection: &'a Reflection,
    programs: &'a MatrixPrograms,
    prime: ShortPrime,
    /// None at the activity 1.
    weights: Option<ActivityPowers>,
}

impl<'a> PrimeJob<'a> {
    fn new(reflection: &'a Reflection, programs: &'a MatrixPrograms, prime: ShortPrime, activity: u64) -> Self {
        Self { reflection, programs, prime, weights: ActivityPowers::new(reflection, prime, activity) }
    }

    /// Whether the row of the start is weighed: unless it is the middle one of an odd number, whose squares are.
    fn weighs_start(&self) -> bool {
        self.reflection.start < self.reflection.half_rows() || self.reflection.alternates()
    }

    /// Whether the start is the product of a factor and its transpose.
    fn has_one_factor(&self) -> bool {
        self.reflection.halves.len() == 2 && self.weights.is_none()
    }

    /// Fills the vector with what stands in the middle, superset sums included.
    fn advance(&self, factors: &mut WalkFactors, vector: &mut [u64], progress: &Progress) -> Result<()> {
        let reflection = self.reflection;
        let mut left = reflection.half_rows() - reflection.start;
        if let Some(factors) = factors {
            factors.make(self, progress)?;
            factors.multiply(self, vector, progress)?;
        }
        let vector = Shared::new(vector);
        if let Some(last) = &reflection.last {
            self.first_row(vector, last, progress)?;
            if left > 0 {
                self.sweep(vector, RunSweep::default(), progress)?;
            }
        }
        while left > 0 {
            self.places(vector, true, if left > 1 { RowEnd::Row } else { RowEnd::Nothing }, progress)?;
            left -= 1;
            if left > 0 {
                self.runs(vector, left, progress)?;
                left -= 1;
            }
        }
        if reflection.alternates() {
            self.places(vector, false, RowEnd::Supersets, progress)?;
            self.supersets(vector, progress)?;
        }
        Ok(())
    }

    /// A sweep over the tiles of all prefixes.
    fn places(&self, vector: Shared<u64>, ends: bool, next: RowEnd, progress: &Progress) -> Result<()> {
        let halves = &self.reflection.halves;
        let count = halves[0].axis.places[0];
        let pairs: Vec<[usize; 2]> = (0..count).flat_map(|i| (i..count).map(move |j| [i, j])).collect();
        let work = (self.reflection.len() / pairs.len()) as u64;
        let room = |half: &Symmetric| Buffer::<u64>::zeroed(words(half.axis.beginning).pow(2) * TILE_WORDS);
        parallel::tiles(
            pairs.len(),
            4,
            || halves.iter().map(room).collect::<Result<Vec<_>>>(),
            |rooms, i| {
                let mut room = |k: usize| rooms.get_mut(k).map_or(std::ptr::null_mut(), |room| room.as_mut_ptr());
                let tile = PlaceTile {
                    halves,
                    programs: &self.programs.halves,
                    vector: vector.at(0),
                    rooms: [room(0), room(1)],
                    places: pairs[i],
                    ends,
                    weights: if ends { self.weights(next == RowEnd::Row) } else { None },
                    last: self.reflection.last.as_deref(),
                    next,
                };
                neighbors::run(self.reflection.level, self.prime, tile);
                progress.advance(work)
            },
        )
    }

    /// A sweep over the blocks of runs: a row ends, and if more are left the next begins.
    fn runs(&self, vector: Shared<u64>, left: usize, progress: &Progress) -> Result<()> {
        let (weights, last) = (self.weights(left > 1), self.reflection.last.as_deref());
        // With something to do between two rows they are not taken at once.
        let again = left > 1 && (weights.is_some() || last.is_some());
        let course = if left > 1 && !again { Course::Both } else { Course::Down };
        self.sweep(vector, RunSweep { course, supersets: false, weights, last, again }, progress)
    }

    /// The first row of a cylinder.
    fn first_row(&self, vector: Shared<u64>, last: &[LastSymbols], progress: &Progress) -> Result<()> {
        let reflection = self.reflection;
        let blocks = reflection.blocks();
        let weights = self.weights.as_ref().filter(|_| self.weighs_start());
        parallel::tiles(
            blocks.len(),
            1,
            || Ok(()),
            |(), i| {
                let (k, block) = blocks[i];
                // SAFETY: each block is in a place of its own.
                unsafe { ring::first_row(&reflection.halves[k], block, &last[k], weights, vector.at(0)) };
                progress.advance(reflection.block_len(blocks[i]) as u64)
            },
        )
    }

    /// A sweep over the blocks of runs: the last of the superset sums.
    fn supersets(&self, vector: Shared<u64>, progress: &Progress) -> Result<()> {
        self.sweep(vector, RunSweep { supersets: true, ..RunSweep::default() }, progress)
    }

    /// What the states of a row are weighed by, if others follow or it is not the middle one.
    fn weights(&self, goes_on: bool) -> Option<&[HalfWeights]> {
        let weights = self.weights.as_ref().filter(|_| goes_on || self.reflection.alternates());
        weights.map(|weights| weights.halves.as_slice())
    }

    fn sweep(&self, vector: Shared<u64>, how: RunSweep<'_>, progress: &Progress) -> Result<()> {
        let reflection = self.reflection;
        let blocks = reflection.blocks();
        parallel::tiles(
            blocks.len(),
            1,
            || Buffer::<u64>::zeroed((words(reflection.halves[0].axis.longest) + TILE) * TILE),
            |room, i| {
                let (k, block) = blocks[i];
                let half = &reflection.halves[k];
                let program = |run: usize| self.programs.halves[k].run(half.axis.runs[run].length, how.course);
                let programs = [program(block.0), program(block.1)];
                let kernel = RunBlock {
                    half,
                    block,
                    programs,
                    supersets: how.supersets,
                    weights: how.weights.map(|weights| &weights[k]),
                    last: how.last.map(|last| &last[k]),
                    again: how.again,
                    vector: vector.at(0),
                    room: room.as_mut_ptr(),
                };
                neighbors::run(reflection.level, self.prime, kernel);
                progress.advance(reflection.block_len(blocks[i]) as u64)
            },
        )
    }

    /// The sum of squares.
    fn squares(&self, vector: &mut [u64], progress: &Progress) -> Result<u64> {
        let reflection = self.reflection;
        let vector = Shared::new(vector);
        let sums = reflection.by_block(progress, 1, |k, block, signs| {
            let (half, prime) = (&reflection.halves[k], self.prime);
            let weights = self.weights.as_ref().filter(|_| !reflection.alternates()).map(|weights| &weights.halves[k]);
            let kernel = Squares { half, signs, block, vector: vector.at(0), prime, weights };
            Ok(vec![neighbors::run(reflection.level, prime, kernel)])
        })?;
        Ok(reflection.combined(&[self.prime], &sums)[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::independent_sets::square::Square;
    use crate::counting::transfer::{Point, evaluate_lanes};
    use crate::monitor::Silent;
    use crate::numeric::residue::short_primes;
    use proptest::prelude::*;

    const LEVELS: [Level; 3] = [Level::Baseline, Level::Avx2, Level::Avx512];

    fn reflection(rows: usize, width: usize, start: Option<usize>, beginning: Option<usize>) -> Reflection {
        Reflection::new(rows, width, false, false, start, beginning, &Progress::default()).unwrap()
    }

    /// The same for activities.
    fn weighed(reflection: Reflection) -> Reflection {
        Reflection { weighed: true, ..reflection }
    }

    /// Residues by the butterfly over whole rows.
    fn expected(rows: usize, width: usize, activity: u64, moduli: &[Modulus]) -> Vec<u64> {
        by_rows(Boundary::Free, rows, width, activity, moduli)
    }

    fn by_rows(boundary: Boundary, rows: usize, width: usize, activity: u64, moduli: &[Modulus]) -> Vec<u64> {
        let engine = Square::new(rows, width, boundary).unwrap();
        let points: Vec<Point> = moduli.iter().map(|&modulus| Point::new(modulus, activity)).collect();
        points
            .chunks(4)
            .flat_map(|points| evaluate_lanes::<4>(&engine, points, &Progress::default()).unwrap())
            .collect()
    }

    fn one(reflection: &Reflection, activity: u64, modulus: Modulus) -> u64 {
        let prime = short(modulus).unwrap();
        let programs = MatrixPrograms::new(reflection, prime);
        let (run, progress) = (PrimeJob::new(reflection, &programs, prime, activity), Progress::default());
        let mut factors = reflection.factors().unwrap();
        let mut vector = Buffer::zeroed(reflection.len()).unwrap();
        vector.fill(u64::MAX >> 3); // whatever was there before
        run.advance(&mut factors, &mut vector, &progress).unwrap();
        run.squares(&mut vector, &progress).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn every_start_and_cut_gives_the_residue_of_whole_rows(
            width in 8usize..16, more in 0usize..9, start in 2usize..9, beginning in 2usize..7, level in 0usize..3,
            k in 0usize..30, activity: u64,
        ) {
            let rows = width + more;
            let (start, beginning) = (start.min(rows.div_ceil(2)), beginning.min(width / 2 - 1));
            let modulus = short_primes(k + 1).unwrap()[k];
            let reflection = reflection(rows, width, Some(start), Some(beginning)).with_level(LEVELS[level]);
            let found = one(&reflection, 1, modulus);
            prop_assert_eq!(found, expected(rows, width, 1, &[modulus])[0], "{} {}", rows, width);
            let reflection = weighed(reflection);
            for activity in [0, 1, activity % modulus.value(), modulus.value() - 1] {
                let found = one(&reflection, activity, modulus);
                prop_assert_eq!(found, expected(rows, width, activity, &[modulus])[0], "{} {} {}", rows, width, activity);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn cylinders_have_the_residues_of_whole_rings(
            width in 8usize..16, rows in 1usize..16, beginning in 2usize..7, level in 0usize..3, k in 0usize..30, activity: u64,
        ) {
            let beginning = beginning.min(width / 2 - 1);
            let modulus = short_primes(k + 1).unwrap()[k];
            let reflection =
                Reflection::new(rows, width, true, false, None, Some(beginning), &Progress::default()).unwrap();
            let reflection = weighed(reflection.with_level(LEVELS[level]));
            for activity in [0, 1, activity % modulus.value(), modulus.value() - 1] {
                let found = one(&reflection, activity, modulus);
                let expected = by_rows(Boundary::Cylinder, rows, width, activity, &[modulus])[0];
                prop_assert_eq!(found, expected, "{} {} {}", rows, width, activity);
            }
        }
    }

    #[test]
    fn the_chosen_start_and_cut_give_the_residues_of_whole_rows() {
        let modulus = short_primes(1).unwrap()[0];
        for (rows, width) in [(16, 16), (17, 17), (18, 17), (19, 18), (20, 20), (21, 21), (22, 21), (23, 22), (24, 24)]
        {
            let expected = [1, 5].map(|activity| expected(rows, width, activity, &[modulus])[0]);
            for level in LEVELS {
                let reflection = reflection(rows, width, None, None).with_level(level);
                assert_eq!(one(&reflection, 1, modulus), expected[0], "{rows} x {width}, {level:?}");
                assert_eq!(one(&weighed(reflection), 5, modulus), expected[1], "{rows} x {width}, {level:?}");
            }
        }
    }

    #[test]
    fn prefixes_as_long_as_those_of_the_widest_rows_give_the_residues_of_whole_rows() {
        let modulus = short_primes(3).unwrap()[2];
        for (rows, width, beginning) in [(25, 25, 11), (26, 26, 12), (27, 27, 12)] {
            let reflection = reflection(rows, width, None, Some(beginning));
            assert_eq!(one(&reflection, 1, modulus), expected(rows, width, 1, &[modulus])[0], "{rows} {width}");
        }
    }

    #[test]
    fn the_widest_rows_have_every_state_once_and_blocks_side_by_side() {
        for (width, closed) in (40..=*WIDTHS.end()).flat_map(|width| [(width, false), (width, true)]) {
            let reflection = Reflection::new(width, width, closed, false, None, None, &Progress::default()).unwrap();
            let (mut states, mut end) = (0, 0);
            for half in &reflection.halves {
                let runs = &half.axis.runs;
                assert!(words(half.axis.longest) <= words(LONGEST_RUN));
                for (a, b) in half.blocks() {
                    // A block off the diagonal stands for its mirror image, too.
                    states += (words(runs[a].length) * words(runs[b].length)) as u128 * if a == b { 1 } else { 2 };
                    let corner = half.tile((a, b), runs[a].tiles() - 1, runs[b].tiles() - 1);
                    assert_eq!(half.tile((a, b), 0, 0), end);
                    end = corner + TILE_WORDS;
                }
            }
            assert_eq!(end, reflection.len());
            assert_eq!(states, words(width) as u128);
            let needed = 4.0 * words(width) as f64;
            assert!((1.0..1.4).contains(&(reflection.vector_bytes() as f64 / needed)), "{width}");
        }
    }

    /// Something to compute residues of.
    #[derive(Debug)]
    struct Nothing;

    impl Modular for Nothing {
        fn description(&self) -> Vec<u64> {
            vec![0]
        }
        fn bits(&self) -> f64 {
            0.0
        }
        fn residues(&self, _: &[Modulus], _: &Options, _: &mut dyn Monitor) -> Result<Vec<u64>> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn residues_depend_neither_on_the_way_nor_on_threads_nor_on_memory() {
        let (free, ring) = (Boundary::Free, Boundary::Cylinder);
        for (rows, width, boundary) in [
            (12, 12, free),
            (13, 13, free),
            (14, 13, free),
            (17, 16, free),
            (20, 19, free),
            (12, 12, ring),
            (13, 17, ring),
            (20, 17, ring),
            (21, 16, ring),
        ] {
            let closed = boundary == ring;
            let plain = Reflection::new(rows, width, closed, false, None, None, &Progress::default()).unwrap();
            let known = plain.known();
            let moduli = short_primes(2 * known + 1).unwrap();
            let primes: Vec<ShortPrime> = moduli.iter().map(|&modulus| short(modulus).unwrap()).collect();
            let expected = by_rows(boundary, rows, width, 1, &moduli);
            for level in LEVELS {
                let reflection = plain.clone().with_level(level);
                assert_eq!(
                    reflection.lifted(&primes, known, &Progress::default()).unwrap(),
                    expected,
                    "{rows} {width}"
                );
                for threads in 1..=3 {
                    let whole = Options { threads, ..Options::default() };
                    let short = Options {
                        memory_limit: reflection.vector_bytes() + reflection.room_bytes(threads),
                        ..whole.clone()
                    };
                    for options in [whole, short] {
                        let found = reflection.residues(&Nothing, |_, _| 1, &moduli, &options, &mut Silent).unwrap();
                        assert_eq!(found, expected, "{rows} x {width}, {options:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn elements_that_the_primes_do_not_tell_are_noticed_by_the_spare_one() {
        let reflection = reflection(20, 20, None, None);
        let primes: Vec<ShortPrime> =
            short_primes(9).unwrap().into_iter().map(|modulus| short(modulus).unwrap()).collect();
        // The 10 x 20 lattice has more than 2^115 sets; two primes tell 104 bits, three 156.
        let lifted = |known| reflection.lifted(&primes, known, &Progress::default());
        assert!(matches!(lifted(2), Err(Error::Check { .. })));
        assert!(reflection.known() >= 3 && lifted(3).is_ok());
    }

    #[test]
    fn a_vector_that_does_not_fit_is_refused_and_a_cancelled_watch_stops() {
        let reflection = reflection(30, 30, None, None);
        let options = Options { memory_limit: reflection.vector_bytes(), ..Options::default() };
        let moduli = short_primes(9).unwrap();
        let outcome = reflection.residues(&Nothing, |_, _| 1, &moduli, &options, &mut Silent);
        assert!(matches!(outcome, Err(Error::TooLarge { .. })));
        let stop = &mut |_: u64, _: u64| false;
        for memory_limit in [u64::MAX, 2 * reflection.vector_bytes()] {
            let options = Options { memory_limit, ..Options::default() };
            assert_eq!(reflection.residues(&Nothing, |_, _| 1, &moduli, &options, stop), Err(Error::Interrupted));
        }
        let foreign = crate::numeric::residue::primes(3).unwrap();
        let outcome = reflection.residues(&Nothing, |_, _| 1, &foreign, &Options::default(), &mut Silent);
        assert!(matches!(outcome, Err(Error::Domain { name: "modulus", .. })));
    }

    #[test]
    fn the_work_forecast_is_the_work_done() {
        for (rows, width, closed) in [(20, 20, false), (21, 21, false), (40, 18, false), (20, 20, true), (23, 21, true)]
        {
            let reflection = Reflection::new(rows, width, closed, false, None, None, &Progress::default()).unwrap();
            let progress = Progress::new(u64::MAX);
            let prime = short(short_primes(1).unwrap()[0]).unwrap();
            let programs = MatrixPrograms::new(&reflection, prime);
            let run = PrimeJob::new(&reflection, &programs, prime, 1);
            let mut vector = Buffer::zeroed(reflection.len()).unwrap();
            run.advance(&mut reflection.factors().unwrap(), &mut vector, &progress).unwrap();
            run.squares(&mut vector, &progress).unwrap();
            let (done, work) = (progress.done() as f64, reflection.work() as f64);
            assert!((done / work - 1.0).abs() < 0.02, "{rows} x {width}: {done} {work}");
        }
    }

    /// `cargo test --lib --features every-level records -- --ignored --nocapture`
    #[test]
    #[ignore = "takes minutes and gigabytes"]
    fn records_have_residues_by_another_prime_another_start_and_another_cut() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/quincunx/counting/records.json");
        let known: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let mut checked = 0;
        for record in known["square"].as_array().unwrap() {
            let n = record["size"].as_u64().unwrap() as usize;
            let chosen = reflection(n, n, None, None);
            let beginning = chosen.halves[0].axis.beginning;
            let other = reflection(n, n, Some(chosen.start - 1), Some(beginning + 1));
            if other.vector_bytes() + other.room_bytes(2) > crate::memory::available_now() {
                println!("{n} x {n} does not fit into memory");
                continue;
            }
            let modulus = short_primes(100).unwrap()[99]; // counts of 45 x 45 take 25
            let found = parallel::run(2, other.work(), &mut Silent, |_| Ok(one(&other, 1, modulus))).unwrap();
            let count: num_bigint::BigUint = record["count"].as_str().unwrap().parse().unwrap();
            assert_eq!(found, modulus.residue_of(&count), "{n} x {n}");
            println!("{n} x {n} is {found} modulo {}", modulus.value());
            checked += 1;
        }
        assert!(checked > 0);
    }

    #[test]
    fn small_and_other_lattices_go_another_way() {
        let lattice = |kind, rows, cols, boundary| Problem::Lattice { kind, rows, cols, boundary };
        let asked =
            |problem: &Problem, bits| Reflection::for_problem(problem, bits, &Progress::default()).unwrap().is_some();
        let found = |problem: Problem| asked(&problem, None);
        for (boundary, [worth, worth_weighed]) in [Boundary::Free, Boundary::Cylinder].into_iter().zip(WORTH) {
            for (cols, bits, expected) in [
                (worth, None, true),
                (worth - 1, None, false),
                (worth_weighed, Some(0), true),
                (worth_weighed - 1, Some(9), false),
            ] {
                let problem = lattice(StripKind::Square, 50, cols, boundary);
                assert_eq!(asked(&problem, bits), expected, "{problem:?} {bits:?}");
            }
        }
        assert!(found(lattice(StripKind::Square, WORTH[0][0], 50, Boundary::Free)));
        // More primes would be needed than there are.
        assert!(!asked(&lattice(StripKind::Square, 32, 32, Boundary::Free), Some(1 << 10)));
        assert!(!found(lattice(StripKind::Square, 60, 60, Boundary::Free)));
        assert!(!found(lattice(StripKind::Square, usize::MAX, WORTH[0][0], Boundary::Free)));
        assert!(!found(lattice(StripKind::King, 30, 30, Boundary::Free)));
        assert!(!found(lattice(StripKind::Square, 30, 30, Boundary::Torus)));
        assert!(found(lattice(StripKind::Square, 15, 30, Boundary::Cylinder)));
        assert!(!found(lattice(StripKind::Square, 14, 30, Boundary::Cylinder)));
    }
}
