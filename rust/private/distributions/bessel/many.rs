//! Draws for many cells at once: what a sweep over a row calls.
//!
//! The cells of a group go together through each step, so that no step waits for the one before: first words, zeros, sums of
//! the series, counts, and at last the few cells of large argument. Zeros and sums run in the widest registers there are;
//! all widths give the same bits.
//!
//! Cell c takes its first word from the block at `[c / 4, row, iteration, purpose]`, word c mod 4, and the others from blocks
//! of its own, at `[2^63 + 2^20 c + i, row, iteration, purpose]`. So a draw depends on its address, its order and its argument
//! alone, however a row is cut.

use super::draws::{FIRST_COUNTS, LONG, LONGEST, MIDDLE, SHORT};
use super::draws::{all_counts, count_terms, draw_large, first_counts, is_wide, may_count};
use super::rejection::{self, first_proposals};
use crate::distributions::{LARGEST, RandomSource, ULP, check_rate, check_whole, open_uniform_of, uniform_of};
use crate::numeric::dispatch::{at_level, level};
use crate::stream::{fill_blocks, philox, philox_blocks};
use crate::{Error, Result};
use std::cell::RefCell;

/// Cells taken through the steps together, with 30 KiB of lists and words. Not tuned.
pub(crate) const BATCH: usize = 256;
/// Cells in a register when they are listed: the lists have room for one more.
const LANES: usize = 8;

/// Ways to draw a cell that needs more than the short series: three series, rejection, and one by one.
const KINDS: usize = 5;

/// Where the random words of a row of cells are found; see [`crate::stream`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The key of the whole job.
    pub key: [u64; 2],
    /// What the draws are for: a number that no other use of the key has.
    pub purpose: u64,
    /// The iteration, or 0.
    pub iteration: u64,
    /// The row, or 0.
    pub row: u64,
}

impl Address {
    #[inline]
    fn counter(&self, block: u64) -> [u64; 4] {
        [block, self.row, self.iteration, self.purpose]
    }
}

/// One draw for each cell: `counts[i]` is a Bessel count of order `orders[i]` and argument `arguments[i]`.
///
/// The cells are `first, first + 1, ...` of the row at `address`. A row drawn in parts, in any order and by any
/// threads, holds the same counts as one drawn at once. Some 5 ns a cell where most counts are zero; the slowest cells, of a
/// variance of about ten and too large for the series, take 80 to 90 ns
/// (`benches/distributions.rs`).
///
/// # Errors
/// [`Error::Shape`] where the lengths differ; [`Error::Domain`] for the first order that is not a whole number in `0..=2^53`, or
/// the first argument outside `[0, 2^53]`, or `first` above 2^42. Then nothing is written.
pub fn draw_many<O: Copy + Into<f64>>(
    orders: &[O],
    arguments: &[f64],
    address: Address,
    first: u64,
    counts: &mut [i64],
) -> Result<()> {
    for (name, found) in [("arguments", arguments.len()), ("counts", counts.len())] {
        Error::require_shape(name, [orders.len()], [found])?;
    }
    Error::require(first <= 1 << 42, "first", first, "at most 2^42")?;
    check(orders, arguments)?;
    let groups = orders.chunks(BATCH).zip(arguments.chunks(BATCH)).zip(counts.chunks_mut(BATCH));
    with_scratch(|scratch| {
        for (group, ((orders, arguments), counts)) in groups.enumerate() {
            scratch.order.iter_mut().zip(orders).for_each(|(to, &order)| *to = order.into());
            scratch.x[..arguments.len()].copy_from_slice(arguments);
            scratch.draw(address, first + (group * BATCH) as u64, counts);
        }
    });
    Ok(())
}

/// Looks at all values without a jump; if one is wrong, looks again for the first.
fn check<O: Copy + Into<f64>>(orders: &[O], arguments: &[f64]) -> Result<()> {
    let mut fine = true;
    for &order in orders {
        fine &= is_whole(order.into());
    }
    for argument in arguments {
        fine &= (0.0..=LARGEST).contains(argument);
    }
    if fine {
        return Ok(());
    }
    orders.iter().try_for_each(|&order| check_whole("orders", order.into(), 0.0, "whole numbers in [0, 2^53]"))?;
    arguments.iter().try_for_each(|&argument| check_rate("arguments", argument))
}

/// Whether `x` is a whole number in `0..=2^53`.
#[inline]
pub(crate) fn is_whole(x: f64) -> bool {
    const TWO_52: f64 = LARGEST / 2.0;
    // From 2^52 on every double is whole; below, adding 2^52 rounds to a whole number.
    (0.0..=LARGEST).contains(&x) & ((x >= TWO_52) | ((x + TWO_52) - TWO_52 == x))
}

/// Further words of one cell, the first block of them made ahead: a block takes long to come but overlaps with others.
struct Further {
    key: [u64; 2],
    counter: [u64; 4],
    block: [u64; 4],
    used: usize,
}

impl Further {
    fn counter(address: &Address, first: u64, place: u32) -> [u64; 4] {
        address.counter(1 << 63 | (first + u64::from(place)) << 20)
    }

    #[inline]
    fn new(address: &Address, first: u64, place: u32, block: [u64; 4]) -> Self {
        Self { key: address.key, counter: Self::counter(address, first, place), block, used: 0 }
    }
}

impl RandomSource for Further {
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

/// Working memory.
pub(crate) struct Scratch {
    /// Orders of the cells.
    pub(crate) order: [f64; BATCH],
    /// Arguments of the cells, and after the first step a quarter of their squares.
    pub(crate) x: [f64; BATCH],
    /// Blocks of first words, from that of the first cell on.
    words: [[u64; 4]; BATCH / 4 + 1],
    /// Places of the cells that need more than the short series, by the way they are drawn.
    kinds: [[u32; BATCH]; KINDS],
    /// First blocks of further words.
    further: [[u64; 4]; BATCH],
    left: Left,
}

/// The cells that are not zero at once, side by side.
struct Left {
    order: [f64; BATCH + LANES],
    x: [f64; BATCH + LANES],
    /// The uniform number, and after the series the sum to reach.
    target: [f64; BATCH + LANES],
    count: [f64; BATCH + LANES],
    place: [u32; BATCH + LANES],
    /// Places of those that need more than the short series.
    long: [u32; BATCH + LANES],
}

thread_local! {
    /// Kept for the next call: to clear it takes as long as two hundred draws.
    static SCRATCH: RefCell<Scratch> = const { RefCell::new(Scratch::EMPTY) };
}

/// Runs `work` with the working memory of this thread.
pub(crate) fn with_scratch<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    SCRATCH.with(|kept| match kept.try_borrow_mut() {
        Ok(mut scratch) => work(&mut scratch),
        Err(_) => {
            let mut fresh = Scratch::EMPTY;
            work(&mut fresh)
        }
    })
}

impl Scratch {
    const EMPTY: Self = Self {
        order: [0.0; BATCH],
        x: [0.0; BATCH],
        words: [[0; 4]; BATCH / 4 + 1],
        kinds: [[0; BATCH]; KINDS],
        further: [[0; 4]; BATCH],
        left: Left {
            order: [0.0; BATCH + LANES],
            x: [0.0; BATCH + LANES],
            target: [0.0; BATCH + LANES],
            count: [0.0; BATCH + LANES],
            place: [0; BATCH + LANES],
            long: [0; BATCH + LANES],
        },
    };

    /// Draws for the `counts.len()` cells from `first` on whose orders and arguments are in place.
    pub(crate) fn draw(&mut self, address: Address, first: u64, counts: &mut [i64]) {
        let skip = (first % 4) as usize;
        let blocks = (skip + counts.len()).div_ceil(4);
        fill_blocks(address.key, address.counter(first / 4), &mut self.words[..blocks]);
        counts.fill(0);
        let (short, long) = self.sieve(skip, counts.len());
        self.left.invert::<{ SHORT.terms }>(short, counts);
        if long > 0 {
            self.draw_long(&address, first, (skip, long), counts);
        }
    }

    /// Squares the arguments and lists the cells that are not zero at once: those of the short series, and the others.
    fn sieve(&mut self, skip: usize, count: usize) -> (usize, usize) {
        let all = self;
        #[cfg(target_arch = "x86_64")]
        return at_level!(
            level(),
            // SAFETY: this is what is done at the level.
            all => unsafe { all.sieve_avx512(skip, count) },
            all.sieve_from(0, skip, count, (0, 0)),
            all.sieve_from(0, skip, count, (0, 0))
        );
        #[cfg(not(target_arch = "x86_64"))]
        all.sieve_from(0, skip, count, (0, 0))
    }

    #[inline(always)]
    fn sieve_from(&mut self, start: usize, skip: usize, count: usize, found: (usize, usize)) -> (usize, usize) {
        let (mut short, mut long) = found;
        let (left, words) = (&mut self.left, self.words.as_flattened());
        for i in start..count {
            let (order, u) = (self.order[i], uniform_of(words[i + skip]));
            let x = 0.25 * self.x[i] * self.x[i];
            self.x[i] = x;
            let alive = may_count(order, x, u);
            let is_short = SHORT.serves(order, x);
            // Written always and kept where it is meant: no jump to guess wrong.
            (left.order[short], left.x[short], left.target[short]) = (order, x, u);
            (left.place[short], left.long[long]) = (i as u32, i as u32);
            short += usize::from(alive & is_short);
            long += usize::from(alive & !is_short);
        }
        (short, long)
    }

    /// # Safety
    /// The machine has AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn sieve_avx512(&mut self, skip: usize, count: usize) -> (usize, usize) {
        use std::arch::x86_64::*;
        let (mut short, mut long) = (0, 0);
        let left = &mut self.left;
        // SAFETY: the caller's.
        let (mut places, eight) = unsafe { (_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(8)) };
        for at in (0..count / 8).map(|i| 8 * i) {
            // SAFETY: `at + 8` is at most `count`, that is at most BATCH, and `skip` is below 4; the lists hold no more cells
            // than were looked at, and have room for LANES more.
            unsafe {
                let order = _mm512_loadu_pd(self.order.as_ptr().add(at));
                let argument = _mm512_loadu_pd(self.x.as_ptr().add(at));
                let words = _mm512_loadu_si512(self.words.as_flattened().as_ptr().add(at + skip).cast());
                let u = _mm512_mul_pd(_mm512_cvtepi64_pd(_mm512_srli_epi64::<11>(words)), _mm512_set1_pd(ULP));
                let x = _mm512_mul_pd(_mm512_mul_pd(_mm512_set1_pd(0.25), argument), argument);
                _mm512_storeu_pd(self.x.as_mut_ptr().add(at), x);
                let next = _mm512_add_pd(order, _mm512_set1_pd(1.0));
                let alive = _mm512_cmp_pd_mask::<_CMP_GE_OQ>(_mm512_mul_pd(u, next), _mm512_sub_pd(next, x));
                let is_short = _mm512_cmp_pd_mask::<_CMP_LE_OQ>(x, _mm512_set1_pd(SHORT.x))
                    & _mm512_cmp_pd_mask::<_CMP_LE_OQ>(order, _mm512_set1_pd(SHORT.order));
                let (shorts, longs) = (alive & is_short, alive & !is_short);
                _mm512_storeu_pd(left.order.as_mut_ptr().add(short), _mm512_maskz_compress_pd(shorts, order));
                _mm512_storeu_pd(left.x.as_mut_ptr().add(short), _mm512_maskz_compress_pd(shorts, x));
                _mm512_storeu_pd(left.target.as_mut_ptr().add(short), _mm512_maskz_compress_pd(shorts, u));
                let to = left.place.as_mut_ptr().add(short).cast();
                _mm256_storeu_si256(to, _mm256_maskz_compress_epi32(shorts, places));
                if longs != 0 {
                    let to = left.long.as_mut_ptr().add(long).cast();
                    _mm256_storeu_si256(to, _mm256_maskz_compress_epi32(longs, places));
                }
                short += shorts.count_ones() as usize;
                long += longs.count_ones() as usize;
                places = _mm256_add_epi32(places, eight);
            }
        }
        self.sieve_from(count / 8 * 8, skip, count, (short, long))
    }

    /// The cells that need more than the short series.
    fn draw_long(&mut self, address: &Address, first: u64, (skip, found): (usize, usize), counts: &mut [i64]) {
        let found = self.sort(found);
        if let Some(len) = self.gather(0, skip, &found) {
            self.left.invert::<{ MIDDLE.terms }>(len, counts);
        }
        if let Some(len) = self.gather(1, skip, &found) {
            self.left.invert_all::<{ LONG.terms }>(len, counts);
        }
        if let Some(len) = self.gather(2, skip, &found) {
            self.left.invert_all::<{ LONGEST.terms }>(len, counts);
        }
        if let Some(len) = self.gather(3, skip, &found) {
            self.draw_wide(address, first, len, counts);
        }
        if let Some(len) = self.gather(4, skip, &found) {
            self.draw_rest(address, first, len, counts);
        }
    }

    /// Lists the long cells by the way they are drawn.
    fn sort(&mut self, found: usize) -> [usize; KINDS] {
        let mut numbers = [0; KINDS];
        for n in 0..found {
            let place = self.left.long[n];
            let (order, x) = (self.order[place as usize], self.x[place as usize]);
            let kind = if MIDDLE.serves(order, x) {
                0
            } else if LONG.serves(order, x) {
                1
            } else if LONGEST.serves(order, x) {
                2
            } else {
                4 - usize::from(is_wide(order, x))
            };
            self.kinds[kind][numbers[kind]] = place;
            numbers[kind] += 1;
        }
        numbers
    }

    /// Puts the cells of a kind side by side; how many, if there are any.
    fn gather(&mut self, kind: usize, skip: usize, found: &[usize; KINDS]) -> Option<usize> {
        let (left, words) = (&mut self.left, self.words.as_flattened());
        for (n, &place) in self.kinds[kind][..found[kind]].iter().enumerate() {
            let i = place as usize;
            (left.order[n], left.x[n], left.target[n]) = (self.order[i], self.x[i], uniform_of(words[i + skip]));
            left.place[n] = place;
        }
        (found[kind] > 0).then_some(found[kind])
    }

    /// Rejection: the first proposals side by side, then one by one the cells whose proposal is not kept at once.
    fn draw_wide(&mut self, address: &Address, first: u64, len: usize, counts: &mut [i64]) {
        self.make_further(address, first, len);
        let left = &mut self.left;
        left.count.iter_mut().zip(&self.further[..len]).for_each(|(v, block)| *v = open_uniform_of(block[0]));
        left.propose(len);
        for (n, &block) in self.further[..len].iter().enumerate() {
            let place = left.place[n];
            counts[place as usize] = if left.count[n] >= 0.0 {
                left.count[n] as i64
            } else {
                let mut words = Further::new(address, first, place, block);
                rejection::draw(left.order[n], left.x[n], left.target[n], &mut words)
            };
        }
    }

    /// The others one by one.
    fn draw_rest(&mut self, address: &Address, first: u64, len: usize, counts: &mut [i64]) {
        self.make_further(address, first, len);
        let left = &self.left;
        for (n, &block) in self.further[..len].iter().enumerate() {
            let mut words = Further::new(address, first, left.place[n], block);
            counts[left.place[n] as usize] = draw_large(left.order[n], left.x[n], left.target[n], &mut words);
        }
    }

    /// The first blocks of further words of the cells side by side.
    #[inline(never)]
    fn make_further(&mut self, address: &Address, first: u64, len: usize) {
        let counter = |&place: &u32| Further::counter(address, first, place);
        let (pairs, rest) = self.left.place[..len].as_chunks::<2>();
        let (to, last) = self.further.split_at_mut(2 * pairs.len());
        for ([a, b], to) in pairs.iter().zip(to.as_chunks_mut::<2>().0) {
            *to = philox_blocks(address.key, [counter(a), counter(b)]);
        }
        if let ([place], [to, ..]) = (rest, last) {
            *to = philox(address.key, counter(place));
        }
    }
}

impl Left {
    /// Counts of the first `len` cells by inversion of the series with `N` terms.
    fn invert<const N: usize>(&mut self, len: usize, counts: &mut [i64]) {
        self.series::<N, false>(len);
        for n in 0..len {
            let count = self.count[n];
            counts[self.place[n] as usize] = if count < FIRST_COUNTS as f64 {
                count as i64
            } else {
                count_terms(self.order[n], self.x[n], self.target[n])
            };
        }
    }

    /// Likewise, where most counts are larger.
    fn invert_all<const N: usize>(&mut self, len: usize, counts: &mut [i64]) {
        self.series::<N, true>(len);
        for n in 0..len {
            counts[self.place[n] as usize] = self.count[n] as i64;
        }
    }

    /// The first proposals of the first `len` cells, whose second uniform numbers stand where the counts come.
    fn propose(&mut self, len: usize) {
        let left = self;
        at_level!(level(), left => left.propose_by_lanes::<8>(len), left.propose_by_lanes::<4>(len), left.propose_by_lanes::<2>(len));
    }

    #[inline(always)]
    fn propose_by_lanes<const L: usize>(&mut self, len: usize) {
        let (orders, xs) = (self.order.as_chunks::<L>().0, self.x.as_chunks::<L>().0);
        let (us, counts) = (self.target.as_chunks::<L>().0, self.count.as_chunks_mut::<L>().0);
        for (((order, x), u), count) in orders.iter().zip(xs).zip(us).zip(counts).take(len.div_ceil(L)) {
            *count = first_proposals::<L>(order, x, u, count);
        }
    }

    /// [`first_counts`] or [`all_counts`] of the first `len` cells, in the widest registers there are.
    fn series<const N: usize, const ALL: bool>(&mut self, len: usize) {
        let left = self;
        at_level!(
            level(),
            left => if ALL { left.by_lanes::<N, ALL, 8>(len) } else { left.by_lanes::<N, ALL, 16>(len) },
            left.by_lanes::<N, ALL, 8>(len),
            left.by_lanes::<N, ALL, 2>(len)
        );
    }

    #[inline(always)]
    fn by_lanes<const N: usize, const ALL: bool, const L: usize>(&mut self, len: usize) {
        let (orders, xs) = (self.order.as_chunks::<L>().0, self.x.as_chunks::<L>().0);
        let (targets, counts) = (self.target.as_chunks_mut::<L>().0, self.count.as_chunks_mut::<L>().0);
        for (((order, x), target), count) in orders.iter().zip(xs).zip(targets).zip(counts).take(len.div_ceil(L)) {
            (*target, *count) =
                if ALL { all_counts::<N, L>(order, x, target) } else { first_counts::<N, L>(order, x, target) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::bessel;
    use proptest::prelude::*;

    const ADDRESS: Address = Address { key: [5, 6], purpose: 7, iteration: 8, row: 9 };

    /// Orders and arguments of every regime, in an order that mixes them.
    fn mixed(cells: usize) -> (Vec<f64>, Vec<f64>) {
        let points = [
            (0.0, 0.3),
            (2.0, 1.5),
            (0.0, 3.0),
            (1.0, 6.0),
            (300.0, 40.0),
            (4.0, 15.0),
            (1.0, 39.0),
            (4.0, 50.0),
            (1e10, 0.1),
            (1e10, 3e5),
            (1e4, 1e5),
        ];
        (0..cells).map(|i| points[(i * i) % points.len()]).unzip()
    }

    fn drawn(orders: &[f64], arguments: &[f64], first: u64) -> Vec<i64> {
        let mut counts = vec![-1; orders.len()];
        draw_many(orders, arguments, ADDRESS, first, &mut counts).unwrap();
        counts
    }

    #[test]
    fn a_row_drawn_in_parts_is_the_row() {
        let (orders, arguments) = mixed(1201);
        let whole = drawn(&orders, &arguments, 0);
        let mut parts = Vec::new();
        for (start, end) in [(0, 1), (1, 7), (7, 260), (260, 771), (771, 1201)] {
            parts.extend(drawn(&orders[start..end], &arguments[start..end], start as u64));
        }
        assert_eq!(whole, parts);
        let alone: Vec<i64> = (0..1201).map(|i| drawn(&orders[i..=i], &arguments[i..=i], i as u64)[0]).collect();
        assert_eq!(whole, alone);
    }

    #[test]
    fn orders_of_any_kind_give_the_same_counts() {
        let orders: Vec<u8> = (0..500).map(|i| (i % 7) as u8).collect();
        let arguments: Vec<f64> = (0..500).map(|i| 0.02 * f64::from(i)).collect();
        let mut counts = vec![0; 500];
        draw_many(&orders, &arguments, ADDRESS, 3, &mut counts).unwrap();
        let floats: Vec<f64> = orders.iter().map(|&order| f64::from(order)).collect();
        assert_eq!(counts, drawn(&floats, &arguments, 3));
    }

    #[test]
    fn a_stream_of_its_own_gives_the_same_law() {
        for (order, argument) in [(0.0, 2.0), (1.0, 6.0), (3.0, 14.0), (0.0, 38.0), (20.0, 90.0)] {
            let counts = drawn(&vec![order; 40_000], &vec![argument; 40_000], 0);
            let law = bessel::Bessel::new(order, argument).unwrap();
            crate::distributions::tests::assert_draws_fit(&law, &counts);
        }
    }

    #[test]
    fn registers_of_any_width_give_the_same_bits() {
        let mut wide = Scratch::EMPTY;
        for i in 0..BATCH {
            let cell = i as f64;
            (wide.order[i], wide.x[i]) = (cell % 5.0, 45.0 * (cell / 256.0) * (cell / 256.0));
            wide.words[i / 4][i % 4] = (0x9E37_79B9_7F4A_7C15u64).wrapping_mul(i as u64 + 1);
        }
        let mut narrow = Scratch { order: wide.order, x: wide.x, words: wide.words, ..Scratch::EMPTY };
        for count in [BATCH - 5, 100, 3] {
            let found = (wide.sieve(2, count), narrow.sieve_from(0, 2, count, (0, 0)));
            assert_eq!(found.0, found.1);
            let (short, long) = found.0;
            for (a, b) in [(&wide.left.order, &narrow.left.order), (&wide.left.x, &narrow.left.x)] {
                assert_eq!(a[..short], b[..short]);
            }
            assert_eq!(wide.left.place[..short], narrow.left.place[..short]);
            assert_eq!(wide.left.long[..long], narrow.left.long[..long]);
            wide.left.series::<18, false>(short);
            narrow.left.by_lanes::<18, false, 2>(short);
            assert_eq!(wide.left.target[..short], narrow.left.target[..short]);
            assert_eq!(wide.left.count[..short], narrow.left.count[..short]);
            let found = (wide.sort(long), narrow.sort(long));
            assert_eq!(found.0, found.1);
            let long = wide.gather(2, 2, &found.0).unwrap_or(0);
            narrow.gather(2, 2, &found.1);
            wide.left.series::<54, true>(long);
            narrow.left.by_lanes::<54, true, 2>(long);
            assert_eq!(wide.left.count[..long], narrow.left.count[..long]);
            for (n, v) in wide.left.count[..long].iter_mut().enumerate() {
                (*v, wide.left.x[n]) = ((0.618 * n as f64).fract(), 40.0 * 1.1f64.powi(n as i32 % 200));
            }
            (narrow.left.count, narrow.left.x) = (wide.left.count, wide.left.x);
            narrow.left.target = wide.left.target.map(f64::fract);
            wide.left.target = narrow.left.target;
            wide.left.propose(long);
            narrow.left.propose_by_lanes::<1>(long);
            assert_eq!(wide.left.count[..long], narrow.left.count[..long]);
            (wide.x, narrow.x) = (wide.x.map(f64::sqrt), narrow.x.map(f64::sqrt));
        }
    }

    #[test]
    fn what_is_no_order_or_argument_is_refused_and_nothing_is_written() {
        let mut counts = [-7; 3];
        for (orders, arguments) in [
            ([0.0, -1.0, 0.0], [1.0; 3]),
            ([0.0, 0.5, 0.0], [1.0; 3]),
            ([0.0; 3], [1.0, f64::NAN, 1.0]),
            ([0.0; 3], [1.0, 1.0, f64::INFINITY]),
        ] {
            let refused = draw_many(&orders, &arguments, ADDRESS, 0, &mut counts);
            assert!(matches!(refused, Err(Error::Domain { name: "orders" | "arguments", .. })));
        }
        assert!(matches!(draw_many(&[0.0], &[1.0; 2], ADDRESS, 0, &mut counts), Err(Error::Shape { .. })));
        assert_eq!(counts, [-7; 3]);
    }

    proptest! {
        #[test]
        fn whole_numbers_are_those_that_floor_leaves(x in prop_oneof![-3.0..9.1e15f64, -3.0..100.0f64, any::<f64>()], whole: bool) {
            let x = if whole { x.round() } else { x };
            prop_assert_eq!(is_whole(x), (0.0..=LARGEST).contains(&x) && x.floor() == x);
        }
    }
}
