//! Whole arrays at a time: answers, quantiles, summaries and draws for parameters that are shared or differ by element.
//!
//! Element i of an array of draws has an address of its own, so the result does not depend on threads or on how an array is
//! cut: its first word is word i mod 4 of the block at `[0, i / 4, 0, FIRST]`, all further words are those of the stream at
//! row i of purpose `FURTHER`. Most cells of a sparse sweep need one word, and then four of them share a block.

use super::{Bessel, Distribution, Question, Skellam, Summary, TwoPiecePoisson, TwoSidedGeometric, Words, uniform_of};
use super::{answer, bessel, quantile, skellam, summarize, two_piece_poisson, two_sided_geometric};
use crate::monitor::{Monitor, Watch};
#[cfg(target_arch = "x86_64")]
use crate::numeric::simd::{Level, level};
use crate::stream::{Stream, philox, philox_blocks};
use crate::{Error, Result, parallel};
use rayon::prelude::*;

/// The purpose of the blocks that hold first words.
const FIRST: u64 = 0x0066_6972_7374;
/// The purpose of the streams of further words.
const FURTHER: u64 = 0x0066_7572_7468_6572;
/// Elements a thread works on at a time; a multiple of four.
const BLOCK: usize = 4096;
/// Elements between two looks at the watch where one element may take a fraction of a millisecond.
const GLANCE: usize = 64;

/// The words of one element of an array of draws.
#[derive(Clone, Debug)]
pub struct Cell {
    first: Option<u64>,
    further: Stream,
}

impl Cell {
    /// The words of element `index`, whose first word is known.
    #[inline]
    pub fn new(key: [u64; 2], index: u64, first: u64) -> Self {
        Self { first: Some(first), further: Stream::new(key, FURTHER, 0, index) }
    }
}

impl Words for Cell {
    #[inline]
    fn word(&mut self) -> u64 {
        self.first.take().unwrap_or_else(|| self.further.word())
    }
}

/// Further words of one element, the first four of them made ahead: a block takes long to come but overlaps with others.
struct Ahead {
    key: [u64; 2],
    counter: [u64; 4],
    block: [u64; 4],
    used: usize,
}

impl Ahead {
    #[inline]
    fn new(key: [u64; 2], index: u64) -> Self {
        let counter = [0, index, 0, FURTHER];
        Self { key, counter, block: philox(key, counter), used: 0 }
    }
}

impl Words for Ahead {
    #[inline]
    fn word(&mut self) -> u64 {
        if self.used == 4 {
            self.counter[0] += 1;
            self.block = philox(self.key, self.counter);
            self.used = 0;
        }
        self.used += 1;
        self.block[self.used - 1]
    }
}

/// A family of laws with its columns of parameters, already checked; a column of length one is shared.
#[derive(Clone, Copy, Debug)]
pub enum Family<'a> {
    /// Order and argument.
    Bessel(&'a [f64], &'a [f64]),
    /// Rates of the positive and of the negative count.
    Skellam(&'a [f64], &'a [f64]),
    /// Decay.
    TwoSidedGeometric(&'a [f64]),
    /// Released value, rate and alpha.
    TwoPiecePoisson(&'a [f64], &'a [f64], &'a [f64]),
}

/// Entry i of a column that repeats.
#[inline]
fn at(column: &[f64], i: usize) -> f64 {
    if i < column.len() { column[i] } else { column[i % column.len()] }
}

impl<'a> Family<'a> {
    /// The family of this name with these columns.
    ///
    /// # Errors
    /// [`Error::Domain`] for another name or number of columns, and the first parameter a constructor refuses.
    pub fn named(name: &str, columns: &[&'a [f64]]) -> Result<Self> {
        let family = match (name, columns) {
            ("bessel", [order, argument]) => Self::Bessel(order, argument),
            ("skellam", [plus, minus]) => Self::Skellam(plus, minus),
            ("two_sided_geometric", [decay]) => Self::TwoSidedGeometric(decay),
            ("two_piece_poisson", [released, rate, alpha]) => Self::TwoPiecePoisson(released, rate, alpha),
            _ => {
                let requirement = "a family with its columns of parameters";
                return Err(Error::Domain { name: "family", value: name.to_string(), requirement });
            }
        };
        if let Some(longest) = columns.iter().map(|c| c.len()).max()
            && let Some(odd) = columns.iter().map(|c| c.len()).find(|&n| n != 1 && n != longest)
        {
            return Err(Error::Shape {
                name: "parameters",
                expected: format!("({longest},)"),
                found: format!("({odd},)"),
            });
        }
        family.check()?;
        Ok(family)
    }

    /// The number of different laws.
    pub fn len(&self) -> usize {
        let columns: &[&[f64]] = match self {
            Self::Bessel(a, b) | Self::Skellam(a, b) => &[a, b],
            Self::TwoSidedGeometric(a) => &[a],
            Self::TwoPiecePoisson(a, b, c) => &[a, b, c],
        };
        if columns.iter().any(|c| c.is_empty()) { 0 } else { columns.iter().map(|c| c.len()).max().unwrap_or(0) }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn check(&self) -> Result<()> {
        let whole = |name, column: &[f64], least| {
            column.iter().try_for_each(|&x| super::check_whole(name, x, least, "a whole number of size at most 2^53"))
        };
        let rate = |name, column: &[f64]| column.iter().try_for_each(|&x| super::check_rate(name, x));
        match self {
            Self::Bessel(order, argument) => whole("order", order, 0.0).and_then(|()| rate("argument", argument)),
            Self::Skellam(plus, minus) => rate("rate_plus", plus).and_then(|()| rate("rate_minus", minus)),
            Self::TwoSidedGeometric(decay) => {
                decay.iter().try_for_each(|&e| TwoSidedGeometric::from_decay(e).map(drop))
            }
            Self::TwoPiecePoisson(released, mu, alpha) => {
                whole("released", released, -super::LARGEST)?;
                rate("rate", mu)?;
                alpha.iter().try_for_each(|&a| TwoSidedGeometric::new(a).map(drop))?;
                if alpha.contains(&0.0) {
                    (0..self.len())
                        .try_for_each(|i| TwoPiecePoisson::new(at(released, i), at(mu, i), at(alpha, i)).map(drop))?;
                }
                Ok(())
            }
        }
    }

    /// Answers to one question: element i of `out` belongs to point i and law i (both repeat).
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the monitor says so.
    pub fn answers(
        &self,
        question: Question,
        points: &[f64],
        out: &mut [f64],
        threads: usize,
        monitor: &mut dyn Monitor,
    ) -> Result<()> {
        self.each(out, threads, monitor, |law, i| law.answer(question, at(points, i)))
    }

    /// Quantiles, see [`quantile`].
    ///
    /// # Errors
    /// As [`Self::answers`].
    pub fn quantiles(
        &self,
        lower: bool,
        probabilities: &[f64],
        out: &mut [f64],
        threads: usize,
        monitor: &mut dyn Monitor,
    ) -> Result<()> {
        self.each(out, threads, monitor, |law, i| law.quantile(at(probabilities, i), lower))
    }

    /// One summary of each law.
    ///
    /// # Errors
    /// As [`Self::answers`].
    pub fn summaries(
        &self,
        summary: Summary,
        out: &mut [f64],
        threads: usize,
        monitor: &mut dyn Monitor,
    ) -> Result<()> {
        self.each(out, threads, monitor, |law, _| law.summarize(summary))
    }

    /// Log-likelihood of each release of a two-piece Poisson family, and its derivative by the rate.
    ///
    /// # Errors
    /// [`Error::Domain`] for another family; as [`Self::answers`].
    pub fn log_marginals(&self, out: &mut [[f64; 2]], threads: usize, monitor: &mut dyn Monitor) -> Result<()> {
        let Self::TwoPiecePoisson(released, rate, alpha) = *self else {
            let requirement = "two_piece_poisson";
            return Err(Error::Domain { name: "family", value: "another".to_string(), requirement });
        };
        blocks(out, GLANCE, threads, monitor, |first, chunk| {
            for (i, slot) in chunk.iter_mut().enumerate().map(|(i, slot)| (first + i, slot)) {
                let law = TwoPiecePoisson::unchecked(at(released, i), at(rate, i), at(alpha, i));
                *slot = law.log_marginal().into();
            }
        })
    }

    /// Draws: element i belongs to law i mod [`Self::len`] and to address i of the key.
    ///
    /// # Errors
    /// As [`Self::answers`].
    pub fn draws(&self, key: [u64; 2], out: &mut [i64], threads: usize, monitor: &mut dyn Monitor) -> Result<()> {
        match *self {
            Self::Bessel(order, argument) => {
                blocks(out, BLOCK, threads, monitor, |start, chunk| bessel_cells((order, argument), key, start, chunk))
            }
            Self::Skellam(plus, minus) => {
                fill(out, key, threads, monitor, |i, cell| skellam::draw(at(plus, i), at(minus, i), cell))
            }
            Self::TwoSidedGeometric(decay) => {
                fill(out, key, threads, monitor, |i, cell| two_sided_geometric::draw(at(decay, i), cell))
            }
            Self::TwoPiecePoisson(released, rate, alpha) => fill(out, key, threads, monitor, |i, cell| {
                two_piece_poisson::draw(at(released, i), at(rate, i), at(alpha, i), cell)
            }),
        }
    }

    /// Applies `of` to law i for each element i, building a shared law once.
    fn each(
        &self,
        out: &mut [f64],
        threads: usize,
        monitor: &mut dyn Monitor,
        of: impl Fn(&dyn Law, usize) -> f64 + Sync,
    ) -> Result<()> {
        match *self {
            Self::Bessel(order, argument) => {
                apply(out, self.len(), threads, monitor, |i| Bessel::unchecked(at(order, i), at(argument, i)), of)
            }
            Self::Skellam(plus, minus) => {
                apply(out, self.len(), threads, monitor, |i| Skellam::unchecked(at(plus, i), at(minus, i)), of)
            }
            Self::TwoSidedGeometric(decay) => {
                apply(out, self.len(), threads, monitor, |i| TwoSidedGeometric::unchecked(at(decay, i)), of)
            }
            Self::TwoPiecePoisson(released, rate, alpha) => {
                let make = |i| TwoPiecePoisson::unchecked(at(released, i), at(rate, i), at(alpha, i));
                apply(out, self.len(), threads, monitor, make, of)
            }
        }
    }
}

/// A law behind one pointer: the loop over elements is compiled once for all families.
trait Law {
    fn answer(&self, question: Question, k: f64) -> f64;
    fn quantile(&self, probability: f64, lower: bool) -> f64;
    fn summarize(&self, summary: Summary) -> f64;
}

impl<L: Distribution> Law for L {
    fn answer(&self, question: Question, k: f64) -> f64 {
        answer(self, question, k)
    }
    fn quantile(&self, probability: f64, lower: bool) -> f64 {
        quantile(self, probability, lower)
    }
    fn summarize(&self, summary: Summary) -> f64 {
        summarize(self, summary)
    }
}

fn apply<L: Distribution>(
    out: &mut [f64],
    laws: usize,
    threads: usize,
    monitor: &mut dyn Monitor,
    make: impl Fn(usize) -> L + Sync,
    of: impl Fn(&dyn Law, usize) -> f64 + Sync,
) -> Result<()> {
    let shared = (laws == 1 && !out.is_empty()).then(|| make(0));
    blocks(out, GLANCE, threads, monitor, |first, chunk| {
        for (i, slot) in chunk.iter_mut().enumerate().map(|(i, slot)| (first + i, slot)) {
            *slot = shared.as_ref().map_or_else(|| of(&make(i), i), |law| of(law, i));
        }
    })
}

fn fill(
    out: &mut [i64],
    key: [u64; 2],
    threads: usize,
    monitor: &mut dyn Monitor,
    draw: impl Fn(usize, &mut Cell) -> i64 + Sync,
) -> Result<()> {
    blocks(out, BLOCK, threads, monitor, |start, chunk| {
        for (four, slots) in chunk.chunks_mut(4).enumerate() {
            let first = start + 4 * four;
            let words = philox(key, [0, first as u64 / 4, 0, FIRST]);
            for (lane, slot) in slots.iter_mut().enumerate() {
                *slot = draw(first + lane, &mut Cell::new(key, (first + lane) as u64, words[lane]));
            }
        }
    })
}

/// Cells taken through the steps of [`bessel_cells`] together.
const TOGETHER: usize = 256;

/// The draws of [`bessel::draw`] for many cells, step by step over all of them so that no step waits for the one before:
/// first words, zeros, sums of the series, counts, and at last the cells of large argument.
fn bessel_cells((order, argument): (&[f64], &[f64]), key: [u64; 2], start: usize, out: &mut [i64]) {
    let mut scratch = Scratch::default();
    for (group, slots) in out.chunks_mut(TOGETHER).enumerate() {
        let start = start + group * TOGETHER;
        repeat(order, start, &mut scratch.order[..slots.len()]);
        repeat(argument, start, &mut scratch.x[..slots.len()]);
        scratch.draw(key, start, slots);
    }
}

/// Copies entries `start, start + 1, ...` of a column that repeats.
fn repeat(column: &[f64], start: usize, to: &mut [f64]) {
    if let [only] = column {
        to.fill(*only);
    } else if let Some(part) = column.get(start..start + to.len()) {
        to.copy_from_slice(part);
    } else {
        to.iter_mut().enumerate().for_each(|(i, x)| *x = at(column, start + i));
    }
}

/// Working memory of [`bessel_cells`].
struct Scratch {
    order: [f64; TOGETHER],
    x: [f64; TOGETHER],
    uniform: [f64; TOGETHER],
    /// Places of the cells that are not zero at once, by [`bessel::regime`].
    left: [[u16; TOGETHER]; 4],
    packed: Packed,
}

/// Cells side by side for the series, with room for a last group that is not full.
#[derive(Clone, Copy)]
struct Packed {
    order: [f64; TOGETHER],
    x: [f64; TOGETHER],
    /// The uniform number, and after the series the sum to reach.
    target: [f64; TOGETHER],
    count: [f64; TOGETHER],
}

impl Default for Scratch {
    fn default() -> Self {
        let zero = [0.0; TOGETHER];
        let packed = Packed { order: zero, x: zero, target: zero, count: zero };
        Self { order: zero, x: zero, uniform: zero, left: [[0; TOGETHER]; 4], packed }
    }
}

impl Packed {
    /// Counts by inversion of the series with `N` terms, in the widest registers there are; all give the same bits.
    fn invert<const N: usize>(&mut self, len: usize) {
        #[cfg(target_arch = "x86_64")]
        if level() >= Level::Avx2 {
            // SAFETY: a level is never above what the processor has.
            return unsafe { self.invert_avx2::<N>(len) };
        }
        self.invert_groups::<N>(len);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn invert_avx2<const N: usize>(&mut self, len: usize) {
        self.invert_groups::<N>(len);
    }

    #[inline(always)]
    fn invert_groups<const N: usize>(&mut self, len: usize) {
        let groups = len.div_ceil(8);
        let (orders, xs) = (self.order.as_chunks::<8>().0, self.x.as_chunks::<8>().0);
        let (targets, counts) = (self.target.as_chunks_mut::<8>().0, self.count.as_chunks_mut::<8>().0);
        for (((order, x), target), count) in orders.iter().zip(xs).zip(targets).zip(counts).take(groups) {
            (*target, *count) = bessel::first_counts::<N, 8>(*order, *x, *target);
        }
    }
}

impl Scratch {
    fn draw(&mut self, key: [u64; 2], start: usize, out: &mut [i64]) {
        let count = out.len();
        for (eight, uniforms) in self.uniform[..count.next_multiple_of(8)].chunks_exact_mut(8).enumerate() {
            let block = (start / 4 + 2 * eight) as u64;
            let words = philox_blocks(key, [[0, block, 0, FIRST], [0, block + 1, 0, FIRST]]);
            uniforms.iter_mut().zip(words.as_flattened()).for_each(|(uniform, &word)| *uniform = uniform_of(word));
        }
        out.fill(0);
        let mut found = [0; 4];
        for i in 0..count {
            let x = 0.25 * self.x[i] * self.x[i];
            self.x[i] = x;
            let kind = bessel::regime(self.order[i], x);
            // Written always and kept where it is meant: no jump to guess wrong.
            self.left[kind][found[kind]] = i as u16;
            found[kind] += usize::from(self.uniform[i] >= 1.0 - x / (self.order[i] + 1.0));
        }
        self.invert::<{ bessel::TERMS[0] }>(0, found[0], out);
        self.invert::<{ bessel::TERMS[1] }>(1, found[1], out);
        self.invert::<{ bessel::TERMS[2] }>(2, found[2], out);
        self.draw_wide(key, start, found[3], out);
    }

    fn invert<const N: usize>(&mut self, kind: usize, found: usize, out: &mut [i64]) {
        let (places, packed) = (&self.left[kind][..found], &mut self.packed);
        for (n, &i) in places.iter().enumerate() {
            let i = usize::from(i);
            (packed.order[n], packed.x[n], packed.target[n]) = (self.order[i], self.x[i], self.uniform[i]);
        }
        packed.invert::<N>(found);
        for (n, &i) in places.iter().enumerate() {
            let count = packed.count[n];
            out[usize::from(i)] = if count < bessel::FIRST_COUNTS {
                count as i64
            } else {
                bessel::count_terms(packed.order[n], packed.x[n], packed.target[n])
            };
        }
    }

    fn draw_wide(&self, key: [u64; 2], start: usize, found: usize, out: &mut [i64]) {
        let row = |i: &u16| Ahead::new(key, (start + usize::from(*i)) as u64);
        let places = &self.left[3][..found];
        let mut ahead = places.first().map(row);
        for (n, &i) in places.iter().enumerate() {
            let i = usize::from(i);
            let next = places.get(n + 1).map(row);
            if let Some(mut words) = std::mem::replace(&mut ahead, next) {
                let (order, x, uniform) = (self.order[i], self.x[i], self.uniform[i]);
                out[i] = bessel::draw_large(order, x, x / (order + 1.0), uniform, &mut words);
            }
        }
    }
}

/// Runs `work(index of first element, elements)` over blocks, on this thread where the array is small.
fn blocks<T: Send>(
    out: &mut [T],
    glance: usize,
    threads: usize,
    monitor: &mut dyn Monitor,
    work: impl Fn(usize, &mut [T]) + Sync,
) -> Result<()> {
    let total = out.len() as u64;
    let run = |start: usize, block: &mut [T], watch: &Watch| {
        block.chunks_mut(glance).enumerate().try_for_each(|(i, chunk)| {
            work(start + i * glance, chunk);
            watch.advance(chunk.len() as u64)
        })
    };
    if out.len() <= 4 * glance {
        return parallel::run_here(total, |watch| run(0, out, watch));
    }
    let size = BLOCK.min(out.len().div_ceil(4 * threads)).next_multiple_of(glance);
    parallel::run(threads, total, monitor, |watch| {
        out.par_chunks_mut(size).enumerate().try_for_each(|(i, block)| run(i * size, block, watch))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Silent;

    const POINTS: [(f64, f64); 7] =
        [(0.0, 0.3), (2.0, 1.5), (0.0, 3.0), (1.0, 6.0), (300.0, 40.0), (4.0, 50.0), (1e4, 1e5)];

    #[test]
    fn a_cell_among_others_draws_what_it_draws_alone() {
        let (order, argument): (Vec<f64>, Vec<f64>) = POINTS.into_iter().unzip();
        let mut out = vec![0; 5003];
        Family::named("bessel", &[&order, &argument]).unwrap().draws([5, 6], &mut out, 2, &mut Silent).unwrap();
        for (i, &drawn) in out.iter().enumerate() {
            let first = philox([5, 6], [0, i as u64 / 4, 0, FIRST])[i % 4];
            let (order, argument) = POINTS[i % POINTS.len()];
            assert_eq!(drawn, bessel::draw(order, argument, &mut Cell::new([5, 6], i as u64, first)), "{i}");
        }
    }

    #[test]
    fn words_made_ahead_are_those_of_the_stream() {
        let (mut ahead, mut cell) = (Ahead::new([1, 2], 77), Cell::new([1, 2], 77, 0));
        cell.word();
        assert!((0..11).all(|_| ahead.word() == cell.word()));
    }

    #[test]
    fn registers_of_any_width_give_the_same_bits() {
        let mut wide = Scratch::default().packed;
        for i in 0..TOGETHER {
            let i_real = i as f64;
            (wide.order[i], wide.x[i], wide.target[i]) = (i_real % 5.0, 6.0 * i_real / 256.0, (0.618 * i_real).fract());
        }
        let mut narrow = wide;
        wide.invert::<18>(TOGETHER);
        narrow.invert_groups::<18>(TOGETHER);
        assert_eq!((wide.target, wide.count), (narrow.target, narrow.count));
    }

    #[test]
    fn columns_and_values_that_do_not_fit_are_refused() {
        assert!(matches!(Family::named("bessel", &[&[1.0], &[f64::NAN]]), Err(Error::Domain { name: "argument", .. })));
        assert!(matches!(Family::named("skellam", &[&[1.0; 3], &[1.0; 2]]), Err(Error::Shape { .. })));
        assert!(matches!(Family::named("normal", &[&[1.0]]), Err(Error::Domain { name: "family", .. })));
        assert!(Family::named("two_piece_poisson", &[&[-1.0], &[1.0], &[0.0]]).is_err());
    }

    #[test]
    fn a_monitor_that_objects_stops_the_draws() {
        let mut out = vec![0; 20_000_000];
        let family = Family::named("bessel", &[&[0.0], &[100.0]]).unwrap();
        let outcome = family.draws([1, 2], &mut out, 1, &mut |_: u64, _: u64| false);
        assert_eq!(outcome, Err(Error::Interrupted));
    }
}
