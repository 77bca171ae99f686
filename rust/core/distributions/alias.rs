//! Many draws of one law: a table that takes one word a draw, with exact tails.
//!
//! The values from `first` on, as many as carry all but some 1e-9 of the mass, and one more outcome for "in a tail" are n <= 2^b
//! outcomes of masses m(i). Cell c of 2^b keeps its own outcome with probability t(c) and passes to another one else, so that the
//! mass of i is t(i) 2^-b plus what others pass to it (Walker's alias table, made as by Vose). The upper b bits of a word name the
//! cell, the others are compared with t(c) 2^(64-b): an error below 2^-53 of the mass. A draw in a tail walks outward from the table
//! by exact masses.
//!
//! Sources: A. Walker (1977), An efficient method for generating discrete random variables with general distributions;
//! M. Vose (1991), A linear algorithm for generating random numbers with a given distribution.

use super::{Distribution, Rng};
use crate::numeric::dispatch::{Level, Work, work};
use std::sync::{Arc, Mutex};

/// The largest table, of 128 KiB: it stays in the second cache.
const MOST_BITS: u32 = 13;
/// Fewer draws than this are not worth a table.
const FEWEST: usize = 1024;
/// Draws for each cell of a table that take as long as to make it.
const DRAWS_PER_CELL: usize = 4;
/// What stands for a draw in a tail.
const TAIL: i32 = i32::MIN;

/// A law's table.
#[derive(Debug)]
pub struct AliasTable {
    cells: Cells,
    bits: u32,
    /// The value that an entry of 0 stands for.
    first: i64,
    /// The value after the last one in the table.
    end: i64,
    /// The probabilities of the tails below `first` and from `end` on.
    tails: [f64; 2],
}

/// Cells, a power of two of them: the value of a cell is its own where the rest of the word is below its threshold, else another's.
#[derive(Debug)]
struct Cells {
    thresholds: Vec<u64>,
    /// The own value in the lower half, the other one in the upper half.
    values: Vec<u64>,
}

impl Cells {
    fn set(&mut self, cell: usize, own: i32, other: i32) {
        self.values[cell] = u64::from(own as u32) | u64::from(other as u32) << 32;
    }

    /// The own and the other value.
    #[cfg(test)]
    fn pair(&self, cell: usize) -> (i32, i32) {
        (self.values[cell] as i32, (self.values[cell] >> 32) as i32)
    }
}

/// Looks up a word for each draw; says whether one of them is in a tail.
struct Lookup<'a> {
    cells: &'a Cells,
    bits: u32,
    first: i64,
    words: &'a [u64],
    out: &'a mut [i64],
}

impl Work for Lookup<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let Self { cells: Cells { thresholds, values }, bits, first, words, out } = self;
        let last = thresholds.len().min(values.len()) - 1;
        let (shift, mut tail) = (64 - bits, 0);
        for (slot, &word) in out.iter_mut().zip(words) {
            let cell = (word >> shift) as usize & last;
            // SAFETY: `cell` is at most `last`. With a check the loop would not become one of gathers, at 1.5 times the time.
            let (threshold, pair) = unsafe { (*thresholds.get_unchecked(cell), *values.get_unchecked(cell)) };
            let value = (if word << bits < threshold { pair << 32 } else { pair }) as i64 >> 32;
            tail |= i64::from(value == i64::from(TAIL));
            *slot = first + value;
        }
        tail != 0
    }
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
        let bits = (count + 1).next_power_of_two().trailing_zeros();
        if bits > MOST_BITS || draws < FEWEST.max(DRAWS_PER_CELL << bits) || low.abs().max(high.abs()) > super::LARGEST
        {
            return None;
        }
        let tails = [law.short_tail(low - 1.0).probability(true), law.short_tail(high).probability(false)];
        let mut masses: Vec<f64> = (0..count).map(|i| law.log_mass(low + i as f64).exp()).collect();
        masses.push(tails[0] + tails[1]);
        let (first, end) = (low as i64, high as i64 + 1);
        Some(Self { cells: cells(&masses, bits), bits, first, end, tails })
    }

    /// A draw per word; `further(i)` gives more words to draw i, which one in 1e8 asks for.
    pub fn draw<R: Rng>(
        &self,
        law: &impl Distribution,
        level: Level,
        words: &[u64],
        out: &mut [i64],
        further: impl Fn(usize) -> R,
    ) {
        let lookup = Lookup { cells: &self.cells, bits: self.bits, first: self.first, words, out };
        let tail = work(level, lookup);
        if tail {
            for (i, slot) in out.iter_mut().enumerate() {
                if *slot == self.first + i64::from(TAIL) {
                    *slot = self.draw_tail(law, &mut further(i));
                }
            }
        }
    }

    /// A draw of the law given that it is in a tail: outward until the masses passed exceed a uniform part of both tails.
    #[cold]
    fn draw_tail(&self, law: &impl Distribution, words: &mut impl Rng) -> i64 {
        let both = self.tails[0] + self.tails[1];
        let mut left = words.uniform() * both;
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

/// The cells of a table for masses that sum to about one, the last of them that of the tails.
fn cells(masses: &[f64], bits: u32) -> Cells {
    let size = 1usize << bits;
    let value = |i: usize| if i + 1 == masses.len() { TAIL } else { i as i32 };
    let scale = size as f64 / masses.iter().sum::<f64>();
    let mut weights: Vec<f64> =
        masses.iter().map(|mass| mass * scale).chain(std::iter::repeat(0.0)).take(size).collect();
    let mut cells = Cells { thresholds: vec![u64::MAX; size], values: vec![0; size] };
    (0..size).for_each(|i| cells.set(i, value(i), value(i)));
    // Cells to fill up, and cells with something to give.
    let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..size).partition(|&i| weights[i] < 1.0);
    while let (Some(&low), Some(&high)) = (small.last(), large.last()) {
        small.pop();
        // 2^64 times a weight below one: exact but for the bits below the last one of the word.
        cells.thresholds[low] = (weights[low] * 18_446_744_073_709_551_616.0) as u64;
        cells.set(low, value(low), value(high));
        weights[high] = (weights[high] + weights[low]) - 1.0;
        if weights[high] < 1.0 {
            large.pop();
            small.push(high);
        }
    }
    // What is left is one but for rounding. Cells beyond the outcomes are never left: they are empty and come first.
    cells
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
        return (draws >= DRAWS_PER_CELL << table.bits).then_some(table);
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

    #[test]
    fn cells_carry_the_masses_and_every_word_has_a_value() {
        for (plus, minus) in [(1e-5, 0.0), (0.3, 0.1), (0.0, 4.0), (10.0, 12.0), (700.0, 3.0), (0.0, 0.0)] {
            let law = Skellam::new(plus, minus).unwrap();
            let table = AliasTable::new(&law, 1_000_000).unwrap();
            let mut carried = BTreeMap::new();
            let whole = 2f64.powi(64) * table.cells.thresholds.len() as f64;
            for (cell, &threshold) in table.cells.thresholds.iter().enumerate() {
                let (own, other) = table.cells.pair(cell);
                *carried.entry(own).or_insert(0.0) += threshold as f64 / whole;
                *carried.entry(other).or_insert(0.0) += (2f64.powi(64) - threshold as f64) / whole;
            }
            for (&value, &mass) in &carried {
                let expected = if value == TAIL {
                    table.tails[0] + table.tails[1]
                } else if table.first + i64::from(value) < table.end {
                    law.log_mass((table.first + i64::from(value)) as f64).exp()
                } else {
                    0.0
                };
                assert!((mass - expected).abs() < 1e-14, "{plus} {minus} {value}: {mass} for {expected}");
            }
            assert!((carried.values().sum::<f64>() - 1.0).abs() < 1e-13);
            assert!(table.tails.iter().all(|&tail| tail < 1e-8));
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
    fn every_level_gives_the_same_draws() {
        let law = Skellam::new(7.0, 2.0).unwrap();
        let table = AliasTable::new(&law, 1_000_000).unwrap();
        let mut stream = Stream::new([8, 9], 0, 0, 0);
        let words: Vec<u64> = (0..10_007).map(|_| stream.word()).collect();
        let draws = [Level::Baseline, Level::Avx2, Level::Avx512].map(|level| {
            let mut out = vec![0; words.len()];
            table.draw(&law, level, &words, &mut out, |i| Stream::new([8, 9], 1, 0, i as u64));
            out
        });
        assert!(draws[0] == draws[1] && draws[0] == draws[2]);
        let mean = draws[0].iter().sum::<i64>() as f64 / words.len() as f64;
        assert!((mean - 5.0).abs() < 0.15, "five standard deviations of a mean of 5 with variance 9: {mean}");
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
