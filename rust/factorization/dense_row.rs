//! Draws the counts of a row cell by cell, Poisson or overdispersed, and splits them, eight cells at a time.
//!
//! Where the release is not positive the count is Poisson(alpha mu), by inversion for all columns at once (the others at rate
//! zero). Positive releases come from [`super::positive_cells`] group by group; overdispersed counts likewise, see
//! [`super::negative_binomial_cells`]. Then the cells that hold a count are split. Words
//! are those of eight generators of the row; the few cells that the vectors leave over take theirs from the row's own.
//!
//! Source: the laws are those of `distributions::two_piece_poisson`, derived there.

use super::allocation::{Allocation, Ratios};
use super::negative_binomial::{Masses, draw};
use super::negative_binomial_cells::{
    Beyond, CoefficientRatios, NegativeBinomialDraws, search_many, uniform_of, unsettled,
};
use super::positive_cells::RowCells;
use super::row::{HELD_OUT, Row, RowShapes};
use super::split_cells::SplitCells;
use crate::distributions::two_piece_cells::{LARGEST_JOINT, TwoPieceDraws};
use crate::distributions::words::RowWords;
use crate::distributions::{poisson, two_piece_poisson};
use crate::numeric::dispatch::{Level, at_level};
use crate::numeric::floats::{LANES, float_work};
use crate::numeric::places::places_of;
use crate::stream::Xoshiro;

/// Cells whose words are made at a time, 4 KiB. Not tuned.
const BATCH: usize = 512;

/// What the cells of a row keep between the steps of their draw.
#[derive(Clone, Debug)]
pub struct DenseRow {
    words: RowWords,
    batch: Vec<u64>,
    means: Vec<f64>,
    counts: Vec<i64>,
    columns: Vec<u32>,
    left_over: Vec<u32>,
    beyond: Vec<Beyond>,
    coefficients: CoefficientRatios,
    masses: Masses,
}

impl DenseRow {
    /// For rows of so many columns.
    pub fn new(level: Level, cols: usize) -> Self {
        Self {
            words: RowWords::new(level, [0; 2], 0, 0, 0),
            batch: vec![0; BATCH],
            means: vec![0.0; cols],
            counts: vec![0; cols],
            columns: vec![0; cols + LANES],
            left_over: vec![],
            beyond: vec![],
            coefficients: CoefficientRatios::default(),
            masses: Masses::default(),
        }
    }

    /// Draws and splits the counts of a row whose noise has one ratio; `address` is that of its generators.
    pub fn draw(
        &mut self,
        level: Level,
        (key, [purpose, iteration, row]): ([u64; 2], [u64; 3]),
        (data, positive): (&Row<'_>, RowCells<'_>),
        (rates, alpha): (&[f64], f64),
        rng: &mut Xoshiro,
        share: &mut Allocation<'_>,
    ) {
        self.words.restart(key, purpose, iteration, row);
        // Means and counts have a place for each column; a place whose cell is held out, or drawn below, has mean zero here.
        let most = at_level!(level, means(data.codes, rates, alpha, &mut self.means));
        let batches = self.means.chunks(BATCH).zip(self.counts.chunks_mut(BATCH));
        for (means, counts) in batches {
            self.words.fill(&mut self.batch);
            poisson::invert_many(level, means, &self.batch[..means.len()], counts);
        }
        if most >= poisson::SMALL {
            for (&mean, count) in self.means.iter().zip(&mut self.counts).filter(|(mean, _)| **mean >= poisson::SMALL) {
                *count = poisson::draw(mean, rng);
            }
        }
        // Each positive column is in one group, or beyond them, so that each is written once.
        self.left_over.clear();
        let groups = positive.groups(LARGEST_JOINT);
        let (counts, left_over) = (&mut self.counts[..], &mut self.left_over);
        float_work(level, TwoPieceDraws { groups, rates, alpha, words: &mut self.words, counts, left_over });
        for &column in self.left_over.iter().chain(positive.beyond(LARGEST_JOINT)) {
            let column = column as usize;
            let released = data.value(column, data.codes[column]);
            self.counts[column] = two_piece_poisson::draw_near(released, rates[column], alpha, rng);
        }
        self.share(level, share, rng);
    }

    /// Draws and splits the counts of a row of overdispersed cells.
    pub fn draw_overdispersed(
        &mut self,
        level: Level,
        (key, [purpose, iteration, row]): ([u64; 2], [u64; 3]),
        (data, positive): (&Row<'_>, RowCells<'_>),
        (rates, shapes, ratios): (&[f64], RowShapes<'_>, Ratios<'_>),
        rng: &mut Xoshiro,
        share: &mut Allocation<'_>,
    ) {
        self.words.restart(key, purpose, iteration, row);
        self.counts.fill(0);
        for start in (0..rates.len()).step_by(BATCH) {
            let batch = start..rates.len().min(start + BATCH);
            let words = &mut self.batch[..batch.len()];
            self.words.fill(words);
            let (codes, rates) = (&data.codes[batch.clone()], &rates[batch.clone()]);
            let (shapes, ratios) = (shapes.part(batch.clone()), ratios.part(batch.clone()));
            let margins = &mut self.means[..words.len()];
            let laws = (codes, rates, shapes, ratios);
            let found = unsettled(level, laws, words, margins, &mut self.columns);
            if found > 0 {
                let (columns, counts) = (&self.columns[..found], &mut self.counts[batch]);
                self.left_over.clear();
                at_level!(level, search_many(columns, (rates, shapes, ratios), words, counts, &mut self.left_over));
                for column in self.left_over.iter().map(|&column| column as usize) {
                    let (rate, r, alpha, u) =
                        (rates[column], shapes.at(column), ratios.at(column), uniform_of(words[column]));
                    counts[column] = draw(rate, r, alpha, u, rng) as i64;
                }
            }
        }
        self.left_over.clear();
        self.beyond.clear();
        shapes.one().into_iter().for_each(|r| self.coefficients.set(r));
        let (words, counts) = (&mut self.words, &mut self.counts[..]);
        let (groups, coefficients) = (positive.groups(LARGEST_JOINT), &self.coefficients);
        let (left_over, beyond) = (&mut self.left_over, &mut self.beyond);
        float_work(
            level,
            NegativeBinomialDraws { groups, rates, shapes, coefficients, ratios, words, counts, left_over, beyond },
        );
        for cell in &self.beyond {
            match cell.count(shapes) {
                (column, Some(count)) => self.counts[column as usize] = count as i64,
                (column, None) => self.left_over.push(column),
            }
        }
        for &column in self.left_over.iter().chain(positive.beyond(LARGEST_JOINT)) {
            let column = column as usize;
            let (released, rate) = (data.value(column, data.codes[column]), rates[column]);
            let count = self.masses.draw(released, rate, shapes.at(column), ratios.at(column), rng);
            self.counts[column] = count as i64;
        }
        self.share(level, share, rng);
    }

    /// Writes down counts and rates of the last row, zero where it is not observed.
    pub fn keep(&self, codes: &[i8], rates: &[f64], (kept_counts, kept_rates): (&mut [u32], &mut [f64])) {
        let out = kept_counts.iter_mut().zip(kept_rates);
        for ((&code, (&count, &rate)), out) in codes.iter().zip(self.counts.iter().zip(rates)).zip(out) {
            let observed = code != HELD_OUT;
            (*out.0, *out.1) = (count as u32, if observed { rate } else { 0.0 });
        }
    }

    /// Splits the counts of the row.
    fn share(&mut self, level: Level, share: &mut Allocation<'_>, rng: &mut Xoshiro) {
        // From here on `columns[..found]` are those that hold a count, in rising order.
        let found = places_of(level, &self.counts, 0, &mut self.columns, |count| count > 0);
        self.left_over.clear();
        let split = SplitCells {
            left: share.left,
            right: share.right,
            columns: &self.columns[..found],
            counts: &self.counts,
            words: &mut self.words,
            cells: share.cells,
            parts: share.parts,
            left_over: &mut self.left_over,
        };
        float_work(level, split);
        for &column in &self.left_over {
            share.count(column as usize, self.counts[column as usize] as u64, rng);
        }
    }
}

/// The means of the counts of cells whose release is not positive, and zeros; the largest of them.
#[inline(always)]
fn means(codes: &[i8], rates: &[f64], alpha: f64, means: &mut [f64]) -> f64 {
    for ((mean, &code), &rate) in means.iter_mut().zip(codes).zip(rates) {
        let drawn = (code <= 0) & (code != HELD_OUT);
        *mean = if drawn { alpha * rate } else { 0.0 };
    }
    let mut most = [0.0f64; 8];
    for means in means.as_chunks::<8>().0 {
        most.iter_mut().zip(means).for_each(|(most, &mean)| *most = if mean > *most { mean } else { *most });
    }
    most.iter().chain(means.as_chunks::<8>().1).copied().fold(0.0, f64::max)
}
