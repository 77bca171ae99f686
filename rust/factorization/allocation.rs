//! What the ways of drawing a row share: where its words are, where its counts go, and the ratios of its noise.
//!
//! A row r of a sweep has one count per column v and one weight per component k; a part of a count falls to a pair (v, k), and
//! is added to the pair's cell, to be read by column, and to the row's own sum of its component.
//! Plumbing between [`super::sweep`], [`super::events`] and [`super::published`]; the laws are there.

use super::factor_matrix::FactorMatrix;
use super::split::Splitter;
use crate::distributions::RandomSource;
use crate::stream::Xoshiro;
use std::ops::Range;

/// Where the words of a sweep are.
#[derive(Clone, Copy, Debug)]
pub struct SweepAddress {
    /// The key of the chain.
    pub key: [u64; 2],
    /// The sweep.
    pub iteration: u64,
    /// The row that the first one is in the table which this one is a shard of.
    pub first_row: u64,
}

/// Where the counts of a row go: to components, by column and in all.
pub struct Allocation<'a> {
    /// Weights of the row, a component each.
    pub left: &'a [f64],
    /// Weights of the columns.
    pub right: &'a FactorMatrix,
    /// Draws how a count falls to components.
    pub splitter: &'a mut Splitter,
    /// Sums by column and component, over all rows so far: `columns x stride`.
    pub cells: &'a mut [u64],
    /// Sums of this row by component.
    pub parts: &'a mut [u64],
}

impl Allocation<'_> {
    /// Splits a count over components.
    #[inline(always)]
    pub fn count(&mut self, column: usize, count: u64, rng: &mut Xoshiro) {
        if count > 0 {
            let stride = self.parts.len();
            let cell = &mut self.cells[column * stride..(column + 1) * stride];
            self.splitter.split(count, self.left, self.right.row(column), rng, cell, self.parts);
        }
    }

    /// Adds an event whose component is known.
    #[inline(always)]
    pub fn event(&mut self, column: usize, component: usize) {
        self.cells[column * self.parts.len() + component] += 1;
        self.parts[component] += 1;
    }
}

/// The ratios of the noise in a row.
#[derive(Clone, Copy, Debug)]
pub struct Ratios<'a> {
    /// One per column, where they differ.
    pub own: Option<&'a [f64]>,
    /// The least one above zero.
    pub least: f64,
    /// The greatest one.
    pub greatest: f64,
}

impl<'a> Ratios<'a> {
    /// The ratios of a row with one for all, or with its own.
    pub fn new(one: f64, own: Option<&'a [f64]>) -> Self {
        match own {
            None => Self { own, least: one, greatest: one },
            Some(all) => {
                let positive = all.iter().copied().filter(|&alpha| alpha > 0.0);
                let least = positive.clone().fold(1.0, f64::min);
                Self { own, least, greatest: positive.fold(0.0, f64::max) }
            }
        }
    }

    /// The ratios of some columns.
    #[inline(always)]
    pub fn part(&self, columns: Range<usize>) -> Self {
        Self { own: self.own.map(|own| &own[columns]), ..*self }
    }

    /// The ratio at a column.
    #[inline(always)]
    pub fn at(&self, column: usize) -> f64 {
        self.own.map_or(self.greatest, |own| own[column])
    }

    /// Keeps an event with a probability that depends on the column's own ratio; always where there is one for all.
    #[inline(always)]
    pub fn keep(&self, column: usize, chance: impl Fn(f64) -> f64, rng: &mut Xoshiro) -> bool {
        match self.own {
            None => true,
            // Where a cell has no noise its count is known, and no event serves it.
            Some(own) => own[column] > 0.0 && rng.uniform() < chance(own[column]),
        }
    }
}
