//! Many draws of one law: a table looked up with sixteen bits a draw, with exact tails.
//!
//! Of 2^b cells the value i owns n(i) = floor(2^b p(i)), for the values that carry all but some 1e-9 of the mass. The R cells that
//! nobody owns stand for the remainder, where i has the mass 2^b p(i) - n(i) and "in a tail" that of the tails. So
//! p(i) = (n(i) + R r(i)) / 2^b with r the law of the remainder, and a draw needs the upper b of sixteen bits. One of a hundred,
//! of the widest laws one of eight, falls to the remainder and takes further words: one for an alias table, where cell c of 2^a keeps its
//! own outcome with probability t(c) and passes to another one else (Walker's, made as by Vose), compared with 64 - a bits; in a tail
//! those of a walk outward by exact masses.
//!
//! Sources: G. Marsaglia, W. Tsang, J. Wang (2004), Fast generation of discrete random variables; A. Walker (1977), An efficient
//! method for generating discrete random variables with general distributions; M. Vose (1991), A linear algorithm for generating
//! random numbers with a given distribution.

use super::{Distribution, RandomSource};
use crate::numeric::dispatch::{Level, at_level};
use std::sync::{Arc, Mutex};

/// Draws that share a word.
pub const PER_WORD: usize = 4;
/// The fewest and the most bits of a draw that name a cell: tables of 8 KiB, in the first cache, to 128 KiB, in the second.
const FEWEST_BITS: u32 = 12;
const MOST_BITS: u32 = 16;
/// Cells for each value where the bits suffice: then less than one draw of a hundred falls to the remainder.
const CELLS_PER_VALUE_BITS: u32 = 5;
/// The most values of a table, as a power of two: with more, one has fewer than four cells of the largest table, and more than a draw of
/// eight falls to the remainder.
const MOST_VALUES_BITS: u32 = 14;
/// Fewer draws than this get no table, however few values it would have. Not tuned.
const FEWEST: usize = 1024;
/// Draws for each value of a table that take as long as to make it.
const DRAWS_PER_VALUE: usize = 4;
/// Draws looked at together for one that falls to the remainder, as one of a hundred does. Not tuned.
const TOGETHER: usize = 32;
/// Draws at a time, whose places fit sixteen bits and the nearest cache.
pub const MOST_DRAWS: usize = 512;
/// What stands for the remainder in a cell, and for a tail in the remainder.
const REST: i16 = i16::MIN;

/// A law's table.
#[derive(Debug)]
pub struct AliasTable {
    /// The value of each cell less `first`, or [`REST`]. A power of two of them.
    cells: Vec<i16>,
    remainder: Remainder,
    /// Draws from which it is worth to be made.
    worth: usize,
    /// The value that an entry of 0 stands for.
    first: i64,
    /// The value after the last one in the table.
    end: i64,
    /// The probabilities of the tails below `first` and from `end` on.
    tails: [f64; 2],
}

/// A cell of an alias table: the threshold below which the rest of a word keeps the cell's own outcome, and the outcomes.
pub(super) type AliasCell = (u64, [i16; 2]);

/// The alias table for weights of any sum: the bits that name a cell, of which there is a power of two, and the cells.
pub(super) fn alias_cells(weights: &[f64], outcome: impl Fn(usize) -> i16) -> (u32, Vec<AliasCell>) {
    let bits = weights.len().next_power_of_two().trailing_zeros();
    let size = 1usize << bits;
    let value = |i: usize| outcome(i.min(weights.len() - 1));
    let scale = size as f64 / weights.iter().sum::<f64>();
    let mut left: Vec<f64> =
        weights.iter().map(|weight| weight * scale).chain(std::iter::repeat(0.0)).take(size).collect();
    let mut cells: Vec<_> = (0..size).map(|i| (u64::MAX, [value(i); 2])).collect();
    // Cells to fill up, and cells with something to give.
    let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..size).partition(|&i| left[i] < 1.0);
    while let (Some(&low), Some(&high)) = (small.last(), large.last()) {
        small.pop();
        // 2^64 times a weight below one: exact but for the bits below the last one of the word.
        cells[low] = ((left[low] * 18_446_744_073_709_551_616.0) as u64, [value(low), value(high)]);
        left[high] = (left[high] + left[low]) - 1.0;
        if left[high] < 1.0 {
            large.pop();
            small.push(high);
        }
    }
    // What is left is one but for rounding. Cells beyond the outcomes are never left: they are empty and come first.
    (bits, cells)
}

/// The outcome of a word.
#[inline]
pub(super) fn alias_outcome(cells: &[AliasCell], bits: u32, word: u64) -> i16 {
    let (cell, rest) = if bits == 0 { (0, word) } else { (word >> (64 - bits), word << bits) };
    let (threshold, [own, other]) = cells[cell as usize];
    if rest < threshold { own } else { other }
}

/// The law of the remainder, as an alias table.
#[derive(Debug)]
struct Remainder {
    bits: u32,
    cells: Vec<AliasCell>,
}

impl Remainder {
    /// The table for weights of any sum, the last of them that of the tails.
    fn new(weights: &[f64]) -> Self {
        let (bits, cells) = alias_cells(weights, |i| if i + 1 == weights.len() { REST } else { i as i16 });
        Self { bits, cells }
    }

    fn draw(&self, rng: &mut impl RandomSource) -> i16 {
        alias_outcome(&self.cells, self.bits, rng.word())
    }
}

/// Looks up sixteen bits for each draw, and lists the draws that fall to the remainder; says how many.
#[inline(always)]
fn look_up(cells: &[i16], first: i64, words: &[u64], out: &mut [i64], listed: &mut [u16]) -> usize {
    let last = cells.len() - 1;
    let shift = 16 - cells.len().trailing_zeros();
    let (groups, ends) = out.as_chunks_mut::<PER_WORD>();
    for (slots, &word) in groups.iter_mut().zip(words) {
        for i in 0..PER_WORD {
            let cell = ((word >> (16 * i)) as u16 >> shift) as usize & last;
            // SAFETY: `cell` is at most `last`, and there are cells: `split` makes 2^12 at the least.
            slots[i] = first + i64::from(unsafe { *cells.get_unchecked(cell) });
        }
    }
    for (i, slot) in ends.iter_mut().enumerate() {
        *slot = first + i64::from(cells[((words[groups.len()] >> (16 * i)) as u16 >> shift) as usize & last]);
    }
    let (rest, mut found) = (first + i64::from(REST), 0);
    for (group, slots) in out.chunks(TOGETHER).enumerate() {
        if slots.iter().fold(false, |any, &slot| any | (slot == rest)) {
            for (i, _) in slots.iter().enumerate().filter(|(_, slot)| **slot == rest) {
                listed[found] = (group * TOGETHER + i) as u16;
                found += 1;
            }
        }
    }
    found
}

impl AliasTable {
    /// The table of a law, unless it has too many values, or is not worth it for so many draws. Whether there is one depends on
    /// the law and on the number of draws alone, and so do the draws.
    pub fn new(law: &impl Distribution, draws: usize) -> Option<Self> {
        let [mean, variance, ..] = law.cumulants();
        let (least, greatest) = law.support();
        // Beyond six standard deviations and eight there is less than 1e-8 for every law of Poisson's kind.
        let reach = 6.0 * variance.sqrt() + 8.0;
        let (low, high) = ((mean - reach).floor().max(least), (mean + reach).ceil().min(greatest));
        let count = (high - low) as usize + 1;
        let value_bits = (count + 1).next_power_of_two().trailing_zeros();
        let worth = FEWEST.max(DRAWS_PER_VALUE << value_bits.min(MOST_VALUES_BITS));
        if value_bits > MOST_VALUES_BITS || draws < worth || low.abs().max(high.abs()) > super::LARGEST {
            return None;
        }
        let tails = [law.short_tail(low - 1.0).probability(true), law.short_tail(high).probability(false)];
        let mut masses: Vec<f64> = (0..count).map(|i| law.log_mass(low + i as f64).exp()).collect();
        masses.push(tails[0] + tails[1]);
        let bits = (value_bits + CELLS_PER_VALUE_BITS).clamp(FEWEST_BITS, MOST_BITS);
        let (cells, remainder) = split(masses, bits);
        Some(Self { cells, remainder, worth, first: low as i64, end: high as i64 + 1, tails })
    }

    /// At most [`MOST_DRAWS`] draws, [`PER_WORD`] to a word; those that fall to the remainder take further words, one after
    /// another.
    pub fn draw(
        &self,
        law: &impl Distribution,
        level: Level,
        words: &[u64],
        out: &mut [i64],
        further: &mut impl RandomSource,
    ) {
        let mut listed = [0; MOST_DRAWS];
        let found = at_level!(level, look_up(&self.cells, self.first, words, out, &mut listed));
        for &i in &listed[..found] {
            out[usize::from(i)] = self.draw_remainder(law, further);
        }
    }

    fn draw_remainder(&self, law: &impl Distribution, rng: &mut impl RandomSource) -> i64 {
        match self.remainder.draw(rng) {
            REST => self.draw_tail(law, rng),
            value => self.first + i64::from(value),
        }
    }

    /// A draw of the law given that it is in a tail: outward until the masses passed exceed a uniform part of both tails.
    #[cold]
    fn draw_tail(&self, law: &impl Distribution, rng: &mut impl RandomSource) -> i64 {
        let both = self.tails[0] + self.tails[1];
        let mut left = rng.uniform() * both;
        let (mut k, step) = if left < self.tails[0] { (self.first - 1, -1) } else { (self.end, 1) };
        if step > 0 {
            left -= self.tails[0];
        }
        loop {
            let mass = law.log_mass(k as f64).exp();
            left -= mass;
            // Rounding may leave a rest that no mass is left for.
            if left < 0.0 || mass < 1e-18 * both {
                return k;
            }
            k += step;
        }
    }
}

/// The cells for masses of which the last one is that of the tails, and the law of the remainder.
fn split(mut masses: Vec<f64>, bits: u32) -> (Vec<i16>, Remainder) {
    let size = f64::from(1 << bits);
    let mut cells = Vec::with_capacity(1 << bits);
    let tails = masses.len() - 1;
    for (i, mass) in masses.iter_mut().enumerate() {
        // Below the mass, so that there is a remainder whatever the law, and the tails are in it with all their mass.
        let owned = if i == tails { 0.0 } else { (*mass * size).ceil() - 1.0 }.clamp(0.0, size - cells.len() as f64);
        *mass = *mass * size - owned;
        cells.resize(cells.len() + owned as usize, i as i16);
    }
    cells.resize(1 << bits, REST);
    (cells, Remainder::new(&masses))
}

/// Tables kept, by the law's name and parameters.
static KEPT: Mutex<Vec<(Key, Arc<AliasTable>)>> = Mutex::new(Vec::new());
/// How many.
const MOST_KEPT: usize = 16;
type Key = (&'static str, [u64; 2]);

/// The table of a law of two parameters, made once. A thread that would have to wait makes its own.
pub fn kept(
    name: &'static str,
    parameters: [f64; 2],
    law: &impl Distribution,
    draws: usize,
) -> Option<Arc<AliasTable>> {
    let key = (name, parameters.map(f64::to_bits));
    if draws < FEWEST {
        return None;
    }
    if let Ok(mut all) = KEPT.try_lock()
        && let Some(place) = all.iter().position(|(known, _)| *known == key)
    {
        let found = all.remove(place);
        let table = Arc::clone(&found.1);
        all.push(found); // the one used last is the last to go
        return (draws >= table.worth).then_some(table);
    }
    let table = Arc::new(AliasTable::new(law, draws)?);
    if let Ok(mut all) = KEPT.try_lock() {
        if all.len() >= MOST_KEPT {
            all.remove(0);
        }
        all.push((key, Arc::clone(&table)));
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::Skellam;
    use crate::stream::Stream;
    use std::collections::BTreeMap;

    /// What a table gives each value, and each tail as [`REST`], with exact arithmetic on its integers.
    fn carried(table: &AliasTable) -> BTreeMap<i16, f64> {
        let size = table.cells.len() as f64;
        let mut carried = BTreeMap::new();
        for &value in table.cells.iter().filter(|value| **value != REST) {
            *carried.entry(value).or_insert(0.0) += 1.0 / size;
        }
        let remainder = table.cells.iter().filter(|value| **value == REST).count() as f64 / size;
        let whole = 2f64.powi(64) * table.remainder.cells.len() as f64;
        for &(threshold, [own, other]) in &table.remainder.cells {
            *carried.entry(own).or_insert(0.0) += remainder * (threshold as f64 / whole);
            *carried.entry(other).or_insert(0.0) += remainder * ((2f64.powi(64) - threshold as f64) / whole);
        }
        carried
    }

    #[test]
    fn cells_carry_the_masses() {
        for (plus, minus, share) in [
            (1e-20, 0.0, 25),
            (1e-5, 0.0, 25),
            (0.3, 0.1, 25),
            (0.0, 4.0, 25),
            (10.0, 12.0, 25),
            (700.0, 3.0, 25),
            (1e5, 2e4, 25),
            (0.0, 0.0, 25),
            (1e6, 8e5, 8),
        ] {
            let law = Skellam::new(plus, minus).unwrap();
            let table = AliasTable::new(&law, 1_000_000).unwrap();
            let carried = carried(&table);
            for (&value, &mass) in &carried {
                let expected = if value == REST {
                    table.tails[0] + table.tails[1]
                } else if table.first + i64::from(value) < table.end {
                    law.log_mass((table.first + i64::from(value)) as f64).exp()
                } else {
                    0.0
                };
                assert!((mass - expected).abs() < 1e-14, "{plus} {minus} {value}: {mass} for {expected}");
                assert!(mass + 1e-22 > 0.9 * expected, "{plus} {minus} {value}: {mass} for {expected}");
            }
            assert!((carried.values().sum::<f64>() - 1.0).abs() < 1e-13);
            assert!(table.tails.iter().all(|&tail| tail < 1e-8));
            let rest = table.cells.iter().filter(|value| **value == REST).count();
            assert!(rest > 0 && share * rest < table.cells.len(), "{plus} {minus}: {rest} of {}", table.cells.len());
        }
    }

    #[test]
    fn a_draw_in_a_tail_has_the_law_beyond_the_table() {
        let law = Skellam::new(3.0, 5.0).unwrap();
        let mut table = AliasTable::new(&law, 1_000_000).unwrap();
        // Cut short, so that the tails are worth a test.
        (table.first, table.end) = (-4, 1);
        table.tails = [law.short_tail(-5.0).probability(true), law.short_tail(0.0).probability(false)];
        let both = table.tails[0] + table.tails[1];
        let mut words = Stream::new([8, 8], 0, 0, 0);
        let mut counts = BTreeMap::new();
        let draws = 200_000;
        for _ in 0..draws {
            *counts.entry(table.draw_tail(&law, &mut words)).or_insert(0.0) += 1.0;
        }
        assert!(counts.keys().all(|k| !(-4..1).contains(k)));
        // A count is beyond six standard deviations and ten with probability below 1e-8, one of some forty below 1e-6.
        for (&k, &count) in &counts {
            let mean = law.log_mass(k as f64).exp() / both * f64::from(draws);
            assert!(f64::abs(count - mean) < 6.0 * mean.sqrt() + 10.0, "{k}: {count} for {mean}");
        }
    }

    #[test]
    fn a_draw_of_the_remainder_has_its_law() {
        let law = Skellam::new(3.0, 5.0).unwrap();
        let table = AliasTable::new(&law, 1_000_000).unwrap();
        let mut words = Stream::new([8, 7], 0, 0, 0);
        let (mut counts, draws) = (BTreeMap::new(), 200_000);
        for _ in 0..draws {
            *counts.entry(table.draw_remainder(&law, &mut words)).or_insert(0.0) += 1.0;
        }
        let size = table.cells.len() as f64;
        let cells = |value: i16| table.cells.iter().filter(|cell| **cell == value).count() as f64;
        let rest = cells(REST) / size;
        for (&k, &count) in &counts {
            let owned = if (table.first..table.end).contains(&k) { cells((k - table.first) as i16) } else { 0.0 };
            let mean = (law.log_mass(k as f64).exp() - owned / size) / rest * f64::from(draws);
            // As above.
            assert!(f64::abs(count - mean) < 6.0 * mean.sqrt() + 10.0, "{k}: {count} for {mean}");
        }
    }

    #[test]
    fn every_level_gives_the_same_draws() {
        let law = Skellam::new(7.0, 2.0).unwrap();
        let table = AliasTable::new(&law, 1_000_000).unwrap();
        let mut stream = Stream::new([8, 9], 0, 0, 0);
        let words: Vec<u64> = (0..12_800).map(|_| stream.word()).collect();
        let draws = [Level::Baseline, Level::Avx2, Level::Avx512].map(|level| {
            let mut out = vec![0; 4 * words.len() - 3];
            let mut further = Stream::new([8, 9], 1, 0, 0);
            for (words, out) in words.chunks(MOST_DRAWS / PER_WORD).zip(out.chunks_mut(MOST_DRAWS)) {
                table.draw(&law, level, words, out, &mut further);
            }
            out
        });
        assert!(draws[0] == draws[1] && draws[0] == draws[2]);
        let mean = draws[0].iter().sum::<i64>() as f64 / draws[0].len() as f64;
        assert!((mean - 5.0).abs() < 0.07, "five standard deviations of a mean of 5 with variance 9: {mean}");
    }

    #[test]
    fn laws_too_wide_and_draws_too_few_have_no_table() {
        let law = Skellam::new(1.0, 2.0).unwrap();
        assert!(AliasTable::new(&law, FEWEST - 1).is_none() && AliasTable::new(&law, FEWEST).is_some());
        assert!(AliasTable::new(&Skellam::new(1e9, 1.0).unwrap(), usize::MAX >> 14).is_none());
        let one = kept("skellam", [1.0, 2.0], &law, 5000).unwrap();
        assert!(Arc::ptr_eq(&one, &kept("skellam", [1.0, 2.0], &law, 6000).unwrap()));
    }
}
