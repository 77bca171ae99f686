//! Multipliers of overdispersed cells that are one, but for a few, where there is no count: so that few are drawn, and few are
//! in the sums that the factors are exposed to.
//!
//! With e ~ Gamma(r, r), whose mean is one, Taylor's formula at e = 1 gives the likelihood of an empty cell as
//!   E exp(-e mu) = exp(-mu) + int_0^inf mu^2 exp(-s mu) G(s) ds,    G(s) = E (s - e)_+ for s < 1, E (e - s)_+ for s > 1:
//! the cell is that of a Poisson count of zero, or, of two *pseudo-counts* at the multiplier s. Both are conjugate to the
//! factors. The second has the chance 1 - exp(r ln(1 + mu/r) - mu) <= mu^2 / (2 r), and then s has a density as exp(-s mu) G(s).
//!
//! With p the density of e, G(s) = s p(s) / r times 1 - R for s > 1, times s (1 - T) for s < 1, where
//!   R = E (1 + v)^(r - 1) exp(-r v), v ~ Exp(r (s - 1)),      T = E (1 - v)_+^r exp(r v), v ~ Exp(r (1 - s)),
//! are expectations of what is never above one. So s is drawn by rejection from Gamma(r + 1, r + mu), or where mu > 1 from
//! Gamma(r + 2, r + mu), with one v in place of the expectation. As mu falls to zero half of the former are kept, whatever r is.
//!
//! Source: derived here, see `docs/mathematics/factorization.md`. That most terms of a likelihood may be left out of a step is
//! an idea of D. Maclaurin, R. Adams (2014), Firefly Monte Carlo.

use super::row::RowShapes;
use crate::distributions::gamma;
use crate::distributions::words::{RowWords, uniform};
use crate::numeric::dispatch::{Level, at_level};
use crate::numeric::elementary::{exp, ln, ln_1p};
use crate::numeric::floats::LANES;
use crate::numeric::places::places_of;

/// The pseudo-counts of a cell that has any.
pub const PAIR: u64 = 2;

/// Some cells: their places, rates, shapes r, and shapes of the gamma variables that are drawn for them.
#[derive(Debug, Default)]
struct Cells {
    number: usize,
    places: Vec<u32>,
    rates: Vec<f64>,
    own: Vec<f64>,
    shapes: Vec<f64>,
}

impl Cells {
    /// Makes room for so many more, and eight that are written and not kept.
    fn reserve(&mut self, more: usize) {
        let size = self.number + more + LANES;
        if self.places.len() < size {
            self.places.resize(size, 0);
            [&mut self.rates, &mut self.own, &mut self.shapes].into_iter().for_each(|each| each.resize(size, 0.0));
        }
    }

    /// Keeps those cells that have a positive number.
    #[inline(always)]
    fn retain(&mut self, numbers: &[f64]) {
        let mut kept = 0;
        for (i, &number) in numbers[..self.number].iter().enumerate() {
            self.places[kept] = self.places[i];
            (self.rates[kept], self.own[kept], self.shapes[kept]) = (self.rates[i], self.own[i], self.shapes[i]);
            kept += usize::from(number > 0.0);
        }
        self.number = kept;
    }
}

/// The cells of some rows whose multipliers are to be drawn, and what a thread draws them with: places are in these rows.
#[derive(Debug, Default)]
pub struct PseudoCounts {
    counted: Cells,
    empty: Cells,
    /// Of each empty cell the number that its chance is compared with; then a one where it is kept, or waits on.
    numbers: Vec<f64>,
    draws: Vec<f64>,
    words: Vec<u64>,
}

/// Whether the multipliers of some rows are cheaper to draw so than each by itself: a choice by their counts and a typical shape,
/// which the factors are redrawn given, and not by their rates.
pub fn are_cheaper(level: Level, counts: &[u32], r: f64, summed: usize) -> bool {
    let (positive, total) = at_level!(level, positive_and_total(counts));
    let cells = counts.len().max(1) as f64;
    let (positive, mean) = (positive as f64 / cells, total as f64 / cells);
    let pairs = (1.0 - positive) * -(r * (mean / r).ln_1p() - mean).exp_m1();
    // Nanoseconds a cell that are added and saved, fitted to sweeps of 400 x 400 cells at means of .02 to .5, 10 and 50 components;
    // few digits are enough to choose well. Chains mix a tenth slower so, by the number of independent draws of rates at means of
    // .05 to .3: a nanosecond of ten is to be gained.
    positive * 20.0 + pairs * 30.0 + 1.0 < 2.1 + 0.018 * summed as f64
}

/// How many counts are positive, and the sum of all.
#[inline(always)]
fn positive_and_total(counts: &[u32]) -> (u64, u64) {
    let (mut positive, mut total) = (0, 0);
    for &count in counts {
        positive += u64::from(count > 0);
        total += u64::from(count);
    }
    (positive, total)
}

impl PseudoCounts {
    /// Finds cells of a row, the first of which has a place, that have a count, and empty ones that may have pseudo-counts by a bound
    /// of the chance.
    pub fn find(
        &mut self,
        level: Level,
        first: u32,
        (counts, rates): (&[u32], &[f64]),
        shapes: RowShapes<'_>,
        words: &mut RowWords,
    ) {
        let Self { counted, empty, numbers, draws: open, words: own } = self;
        let before = [counted.number, empty.number];
        counted.reserve(rates.len());
        empty.reserve(rates.len());
        numbers.resize(empty.places.len(), 0.0);
        open.resize(open.len().max(rates.len()), 0.0);
        own.resize(own.len().max(rates.len()), 0);
        let (open, own) = (&mut open[..rates.len()], &mut own[..rates.len().div_ceil(2)]);
        words.fill(own);
        match shapes.one() {
            Some(r) => at_level!(level, leave_open((counts, rates), |_| 0.5 / r, own, open)),
            None => at_level!(level, leave_open((counts, rates), |column| 0.5 / shapes.at(column), own, open)),
        }
        counted.number += places_of(level, counts, first, &mut counted.places[before[0]..], |n| n > 0);
        empty.number += places_of(level, open, first, &mut empty.places[before[1]..], |u| u < CLOSED);
        for i in before[1]..empty.number {
            numbers[i] = HALF_WORD * (open[(empty.places[i] - first) as usize] + words.uniform());
        }
        for (cells, before) in [counted, empty].into_iter().zip(before) {
            for i in before..cells.number {
                let column = (cells.places[i] - first) as usize;
                (cells.rates[i], cells.own[i]) = (rates[column], shapes.at(column));
                cells.shapes[i] = cells.own[i] + f64::from(counts[column]);
            }
        }
    }

    /// Draws the multipliers of all cells that were found, in place of their rates, and tells the places of those that have
    /// pseudo-counts: the multipliers of all others are one.
    pub fn draw(&mut self, level: Level, rates: &mut [f64], words: &mut RowWords, mut tell: impl FnMut(u32)) {
        let Self { counted, empty, numbers, draws, words: pairs } = self;
        at_level!(level, settle(empty, numbers));
        draws.resize(counted.number.max(empty.number).max(draws.len()), 0.0);
        pairs.resize((2 * empty.number).max(pairs.len()), 0);
        let number = std::mem::take(&mut counted.number);
        gamma::draw_many(level, &counted.shapes[..number], words, &mut draws[..number]);
        for (i, draw) in draws[..number].iter().enumerate() {
            rates[counted.places[i] as usize] = draw / (counted.own[i] + counted.rates[i]);
        }
        while empty.number > 0 {
            let (number, draws) = (empty.number, &mut draws[..empty.number]);
            gamma::draw_many(level, &empty.shapes[..number], words, draws);
            words.fill(&mut pairs[..2 * number]);
            at_level!(level, judge(empty, &pairs[..2 * number], draws, numbers));
            for (i, (&multiplier, waits)) in draws.iter().zip(&*numbers).enumerate() {
                if *waits == 0.0 {
                    rates[empty.places[i] as usize] = multiplier;
                    tell(empty.places[i]);
                }
            }
            empty.retain(numbers);
        }
    }
}

/// The least positive of the numbers that half of a word has the first bits of.
const HALF_WORD: f64 = 1.0 / (1u64 << 32) as f64;
/// What these bits are replaced by where a cell has no pseudo-counts: more than they ever are.
const CLOSED: f64 = (1u64 << 33) as f64;

/// The first bits of the uniform numbers of empty cells that may be below the bound mu^2 / (2 r) of the chance of pseudo-counts, given
/// 1 / (2 r): halves of words, each of which serves two cells.
#[inline(always)]
fn leave_open((counts, rates): (&[u32], &[f64]), half: impl Fn(usize) -> f64, words: &[u64], open: &mut [f64]) {
    let (low, high) = open.split_at_mut(words.len());
    for (start, open, shift) in [(0, low, 0), (words.len(), high, 32)] {
        let cells = counts[start..].iter().zip(&rates[start..]).zip(words).zip(open);
        for (column, (((&count, &rate), &word), open)) in (start..).zip(cells) {
            let bits = f64::from((word >> shift) as u32);
            *open = if (count == 0) & (HALF_WORD * bits < rate * rate * half(column)) { bits } else { CLOSED };
        }
    }
}

/// Keeps the empty cells whose number is below the chance of pseudo-counts.
#[inline(always)]
fn settle(empty: &mut Cells, numbers: &mut [f64]) {
    let numbers = &mut numbers[..empty.number];
    let cells = numbers.iter_mut().zip(&empty.rates).zip(empty.own.iter().zip(&mut empty.shapes));
    for ((number, &rate), (&r, shape)) in cells {
        let chance = 1.0 - exp(r * ln_1p(rate / r) - rate);
        *number = if *number < chance { 1.0 } else { 0.0 };
        *shape = r + if rate > 1.0 { 2.0 } else { 1.0 };
    }
    empty.retain(numbers);
}

/// Turns gamma variables into proposed multipliers, and says by ones which cells wait on.
#[inline(always)]
fn judge(empty: &Cells, words: &[u64], draws: &mut [f64], waits: &mut [f64]) {
    let (first, second) = words.split_at(draws.len());
    let cells = draws.iter_mut().zip(waits).zip(first.iter().zip(second)).zip(empty.rates.iter().zip(&empty.own));
    for (((draw, waits), (&first, &second)), (&rate, &r)) in cells {
        let s = *draw / (r + rate);
        *draw = s;
        let above = s > 1.0;
        // Beyond this, what it is the expectation of is nothing.
        let v = -ln(1.0 - uniform(first)) / (r * (s - 1.0).abs());
        let v = if v < 1e18 { v } else { 1e18 };
        let inside = above | (v < 1.0);
        let x = if above { v } else { -v };
        let log = ln_1p(if inside { x } else { 0.0 });
        let power = if above { (r - 1.0) * log - r * v } else { r * (log + v) };
        let missed = if inside { exp(if power < 0.0 { power } else { 0.0 }) } else { 0.0 };
        let excess = if rate > 1.0 { 1.0 / s } else { s };
        let chance = (1.0 - missed) * if excess < 1.0 { excess } else { 1.0 };
        *waits = if uniform(second) < chance { 0.0 } else { 1.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::fit::{assert_bins_fit, pooled};
    use crate::numeric::dispatch::level;

    const CELLS: usize = 60_000;

    /// Multipliers and pseudo-counts of empty cells of one rate and shape, with one shape for all or one for each.
    fn drawn(rate: f64, r: f64, each: bool, row: u64) -> (Vec<f64>, Vec<u64>) {
        let shapes = vec![r; if each { CELLS } else { 1 }];
        let mut words = RowWords::new(level(), [3, 7], 1, 0, row);
        let (mut counts, mut multipliers, mut cells) = (vec![0; CELLS], vec![1.0; CELLS], PseudoCounts::default());
        cells.find(level(), 0, (&vec![0; CELLS], &vec![rate; CELLS]), RowShapes::new(&shapes), &mut words);
        cells.draw(level(), &mut multipliers, &mut words, |place| counts[place as usize] = PAIR);
        (multipliers, counts)
    }

    /// G at many places below and above one, by sums of the density of the multiplier over a fine grid of its logarithm.
    fn remainder(r: f64, places: &[f64]) -> Vec<f64> {
        const STEP: f64 = 1e-3;
        let log_norm = r * r.ln() - crate::numeric::special::gamma::log_gamma(r);
        let grid: Vec<_> = (-60_000..6_000).map(|i| (f64::from(i) * STEP).exp()).collect();
        let mass: Vec<_> = grid.iter().map(|e| STEP * (log_norm + r * e.ln() - r * e).exp()).collect();
        // What is below the grid is nothing beside any place.
        let nothing = 1.0 - mass.iter().sum::<f64>();
        let at = |&s: &f64| -> f64 {
            let excess = |e: f64| if s < 1.0 { (s - e).max(0.0) } else { (e - s).max(0.0) };
            excess(0.0) * nothing + grid.iter().zip(&mass).map(|(&e, mass)| excess(e) * mass).sum::<f64>()
        };
        places.iter().map(at).collect()
    }

    #[test]
    fn empty_cells_have_the_law_of_the_second_term() {
        // Chi-square at a false-alarm rate of 1e-6: of the number of pairs, and of their multipliers, by the definition of G.
        let cells =
            [(0.3, 0.8), (0.9, 0.06), (1.4, 0.4), (3.0, 1.0), (30.0, 0.3), (4.0, 40.0), (200.0, 0.05), (0.8, 2.0)];
        for (row, (rate, r)) in (0..).zip(cells) {
            for each in [false, true] {
                let (multipliers, pairs) = drawn(rate, r, each, row);
                let own: Vec<f64> = multipliers.iter().zip(&pairs).filter(|(_, n)| **n > 0).map(|(s, _)| *s).collect();
                assert!(pairs.iter().zip(&multipliers).all(|(&n, &s)| n == PAIR || (n == 0 && s == 1.0)));
                let middles: Vec<_> = (-2400..800).map(|i| ((f64::from(i) + 0.5) * 5e-3).exp()).collect();
                let law = remainder(r, &middles);
                let mass = |(s, g): (&f64, &f64)| 5e-3 * s * rate * rate * (-s * rate).exp() * g;
                let masses: Vec<f64> = middles.iter().zip(&law).map(mass).collect();
                let total = (1.0 + rate / r).powf(-r);
                // Known answer: both terms are the whole.
                let sum: f64 = masses.iter().sum::<f64>() + (-rate).exp();
                assert!((sum / total - 1.0).abs() < 1e-4, "{rate} {r}: {sum} {total}");
                let mut found = vec![0.0; masses.len() + 1];
                for s in &own {
                    let bin = ((s.ln() / 5e-3).floor() + 2400.0).clamp(0.0, 3199.0);
                    found[bin as usize] += 1.0;
                }
                found[masses.len()] = (CELLS - own.len()) as f64;
                let none = (-rate).exp() / total;
                let due = masses.iter().map(|mass| mass / total * CELLS as f64).chain([none * CELLS as f64]);
                assert_bins_fit(&pooled(found.into_iter().zip(due)), &(rate, r, each));
            }
        }
    }

    #[test]
    fn few_proposals_are_needed_wherever_an_empty_cell_is_likely() {
        let sizes = |least: i32, most: i32| (10 * least..=10 * most).map(|i| (f64::from(i) / 10.0).exp());
        for (r, rate) in sizes(-18, 18).flat_map(|r| sizes(-10, 20).map(move |rate| (r, rate))) {
            let exponent = r * f64::ln_1p(rate / r);
            if exponent <= 30.0 && rate - exponent > 1e-9 {
                // The integrals of the density, mu^2 exp(-s mu) G(s), and of what is proposed, by closed forms.
                let integral = -(exponent - rate).exp_m1();
                let proposed = rate * rate / (r + rate) * if rate > 1.0 { (r + 1.0) / (r + rate) } else { 1.0 };
                assert!(integral / proposed > 1.0 / 13.0, "{r} {rate}");
            }
        }
    }
}
