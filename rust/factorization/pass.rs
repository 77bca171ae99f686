//! One pass over all cells: weights W = E[y | o, G] / G, their weighted sums, and the cells' part of the bound.
//!
//! Cells are indexed (r, v), components k: a pass forms G_rv = sum_k u_rk R_vk of a tile of rows, turns them into W_rv in their
//! place, and adds up sum_v W_rv R_vk (to the left of the product) and sum_r W_rv u_rk (to its right). Rows come in blocks
//! whose partial sums are added in order, so that no sum depends on the number of threads.
//!
//! With weights that are given, such as the multipliers of overdispersed cells, the same sums are exposures: of an entry to the
//! products of the others, weighted. Where most of them are one, only what the others differ by is summed cell by cell.
//!
//! Source: the optimal laws of [`super::coordinate_ascent`].

use super::cell::{log_sum, scaled_mean};
use super::collapsed::CollapsedRow;
use super::cp::{add_rounded, anchor};
use super::dispersion::Dispersion;
use super::factor_matrix::{FactorMatrix, ROWS};
use super::model::Model;
use super::negative_binomial::Masses;
use super::products::{Excesses, Panels, over_columns, over_rows, tile_of};
use super::published::{Augmentation, FactorMoments, NoiseCounts, augmented};
use super::released_counts::ReleasedCounts;
use super::row::HELD_OUT;
use crate::monitor::Progress;
use crate::numeric::dispatch::{Level, level};
use crate::numeric::exact_sum::{self, LIMBS};
use crate::numeric::floats::float_work;
use crate::numeric::special::log_factorial;
use crate::{Result, parallel};
use std::ops::Range;

/// Rows whose sums are formed one after the other; partial sums of such blocks are added in order, so that their bits depend on it.
const BLOCK: usize = 128;

/// What exposures are bounded by at the most, far from the largest double.
const LARGEST_BOUND: f64 = 1e300;

/// What a pass over all cells adds up.
#[derive(Clone, Copy)]
pub struct PassOutput {
    /// Weighted sums over columns, for this tally left of the product.
    pub left: Option<usize>,
    /// Weighted sums over rows.
    pub right: bool,
    /// The cells' part of the bound.
    pub bound: bool,
    /// Sums that parts of a table have as the whole does: expected counts of entries that see all of the first mode in
    /// [`Sums::fixed`], and the bound in [`Sums::exact_bound`].
    pub exact: bool,
}

impl PassOutput {
    /// Whether expected counts of a mode between the first and the last are summed exactly.
    fn fixes_left(&self) -> bool {
        self.exact && self.left.is_some_and(|tally| tally > 0)
    }
}

/// What a whole multiple of is added where sums are to be exact: 2^-64.
const UNIT: f64 = 1.0 / (1u128 << 64) as f64;

/// Adds numbers, rounded down to whole multiples of [`UNIT`].
pub fn add_fixed(sums: &mut [i128], numbers: impl Iterator<Item = f64>) {
    sums.iter_mut().zip(numbers).for_each(|(sum, x)| *sum += (x / UNIT) as i128);
}

/// What a pass has added up.
#[derive(Default)]
pub struct Sums {
    /// Over columns, for a tally left of the product: from an entry on, of a block of rows those that it adds to.
    pub left: Vec<f64>,
    first: usize,
    /// Over rows.
    pub right: Vec<f64>,
    /// The cells' part of the bound.
    pub bound: f64,
    /// Expected counts in units of 2^-64, each block of rows rounded once.
    pub fixed: Vec<i128>,
    /// The bound without rounding between blocks.
    pub exact_bound: Vec<i64>,
}

/// What a pass reads.
pub struct PassInput<'a> {
    table: &'a ReleasedCounts,
    model: &'a Model,
    geometric: &'a [FactorMatrix],
    right: &'a FactorMatrix,
    /// Sums over columns at weights of one, where weights are given.
    ones: Vec<f64>,
    panels: Panels,
    weights: CellWeights<'a>,
    wanted: PassOutput,
    /// What sums of blocks of rows are added to so that they are rounded to a unit, component by component, and add up exactly.
    anchors: Vec<f64>,
}

/// The weights of cells.
enum CellWeights<'a> {
    /// Those at the optimal law of their counts.
    Optimal(Augmentation, Option<FactorMoments>),
    /// The same where counts are overdispersed, given the factors' means as well.
    Overdispersed(&'a Dispersion, &'a [FactorMatrix], Panels),
    /// These, row by row.
    Given(&'a [f64]),
}

/// What the entries of a factor are exposed to where each cell has a weight by which its rate is multiplied, padded as it is. Given
/// a bound on them, or nothing, what blocks of rows add is rounded to 2^-50 of it, and exposures of parts of a table add up exactly.
///
/// # Errors
/// [`crate::Error::Interrupted`]
pub fn exposures(
    model: &Model,
    table: &ReleasedCounts,
    factors: &[FactorMatrix],
    (factor, bound): (usize, &[f64]),
    weights: &[f64],
    (threads, progress): (usize, &Progress),
) -> Result<Vec<f64>> {
    let structure = model.structure();
    // An expected count is an entry times what it is exposed to.
    let mut others = factors.to_vec();
    others[factor].set_ones();
    let (left, right) = structure.sums_for(model.layout(), factor);
    let (anchors, stride): (Vec<f64>, _) = (bound.iter().map(|&x| anchor(x)).collect(), factors[factor].stride);
    let by_rows = !anchors.is_empty() && !structure.is_product() && left.is_some();
    let input = PassInput {
        table,
        model,
        geometric: &others,
        right: model.right(&others),
        ones: model.right(&others).sums(),
        panels: Panels::default(),
        weights: CellWeights::Given(weights),
        wanted: PassOutput { left, right, bound: false, exact: false },
        // Sums over columns are those of rows of the table, which are of one part, unless rows share them.
        anchors: if by_rows { vec![] } else { anchors.get(..stride).unwrap_or_default().to_vec() },
    };
    let sums = input.pass(&mut [], threads, progress)?;
    if by_rows {
        let (mut found, rows) = (vec![0.0; anchors.len()], factors[0].rows);
        for first in (0..rows).step_by(ROWS) {
            let block = first..rows.min(first + ROWS);
            let own = structure.counts_of_rows(model.layout(), factor, &others, &sums.left, block);
            add_rounded(&mut found, &own, &anchors);
        }
        return Ok(found);
    }
    Ok(structure.expected_counts(model.layout(), factor, &others, (&sums.left, &sums.right)))
}

/// The same of a part of a table whose rows may be in several places, given the sums of all factors and the largest weight of all
/// parts: parts add up exactly.
///
/// # Errors
/// As [`exposures`].
pub fn part_of_exposures(
    model: &Model,
    table: &ReleasedCounts,
    factors: &[FactorMatrix],
    (factor, sums, largest): (usize, &[Vec<f64>], f64),
    weights: &[f64],
    here: (usize, &Progress),
) -> Result<Vec<f64>> {
    let mut bound = vec![];
    // Rows of the first factor are whole in one place.
    if factor > 0 && model.structure().is_split_by_rows() {
        let FactorMatrix { rows, stride, .. } = factors[factor];
        bound = vec![0.0; rows * stride];
        for (row, bound) in bound.chunks_exact_mut(stride).enumerate() {
            model.structure().of_all_cells(model.layout(), (factor, row), factors, sums, bound);
        }
        bound.iter_mut().for_each(|x| *x = (*x * largest).min(LARGEST_BOUND));
    }
    exposures(model, table, factors, (factor, &bound), weights, here)
}

impl<'a> PassInput<'a> {
    /// A pass at these geometric means; the printed ascent needs moments of the factors as well.
    pub fn new(
        table: &'a ReleasedCounts,
        model: &'a Model,
        geometric: &'a [FactorMatrix],
        (augmentation, published): (Augmentation, Option<FactorMoments>),
        wanted: PassOutput,
    ) -> Self {
        let right = model.right(geometric);
        let weights = CellWeights::Optimal(augmentation, published);
        let (ones, anchors, panels) = (vec![], vec![], Panels::new(right));
        Self { table, model, geometric, right, ones, panels, weights, wanted, anchors }
    }

    /// The same where counts are overdispersed, given the means of the factors.
    pub fn overdispersed(mut self, dispersion: &'a Dispersion, means: &'a [FactorMatrix]) -> Self {
        self.weights = CellWeights::Overdispersed(dispersion, means, Panels::new(self.model.right(means)));
        self
    }

    /// Passes over all cells at the optimal law of their counts, whose noise is set.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`]
    pub fn pass(&self, noise: &mut [NoiseCounts], threads: usize, progress: &Progress) -> Result<Sums> {
        let (rows, cols) = (self.table.rows(), self.table.cols());
        let blocks: Vec<Range<usize>> = (0..rows).step_by(BLOCK).map(|start| start..rows.min(start + BLOCK)).collect();
        let level = level();
        let mut sums = self.nothing(0..self.wanted.left.map_or(0, |tally| self.model.tally_shapes()[tally].0));
        let mut chunks = noise.chunks_mut((BLOCK * cols).max(1));
        // Partial sums may be as large as what they add up to, so only as many are held as there are threads.
        for wave in blocks.chunks(threads) {
            progress.check()?;
            let jobs: Vec<_> = wave.iter().map(|rows| (rows.clone(), chunks.next().unwrap_or_default())).collect();
            let mut parts: Vec<_> = jobs.into_iter().map(|job| (job, None)).collect();
            parallel::pieces(
                &mut parts,
                1,
                || (),
                |(), _, parts| {
                    for ((rows, noise), part) in parts {
                        *part = Some(self.block(level, rows.clone(), noise));
                    }
                    Ok(())
                },
            )?;
            for part in parts.into_iter().filter_map(|(_, part)| part) {
                if self.wanted.exact {
                    if self.wanted.fixes_left() {
                        add_fixed(&mut sums.fixed[part.first..], part.left.iter().copied());
                    } else {
                        let products = self.right.padded().iter().zip(&part.right).map(|(entry, sum)| entry * sum);
                        add_fixed(&mut sums.fixed, products);
                    }
                    exact_sum::add(&mut sums.exact_bound, part.bound);
                }
                sums.bound += part.bound;
                for (sums, part) in [(&mut sums.left[part.first..], part.left), (&mut sums.right, part.right)] {
                    if self.anchors.is_empty() {
                        sums.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
                        continue;
                    }
                    let stride = self.anchors.len();
                    for (sums, part) in sums.chunks_mut(stride).zip(part.chunks(stride)) {
                        add_rounded(sums, part, &self.anchors);
                    }
                }
            }
        }
        Ok(sums)
    }

    /// Nothing yet, for these indices of the tally left of the product.
    fn nothing(&self, indices: Range<usize>) -> Sums {
        let stride = self.right.stride;
        let right = if self.wanted.right { self.right.rows * stride } else { 0 };
        let (left, first) = (vec![0.0; indices.len() * stride], indices.start * stride);
        let of_left = if self.wanted.fixes_left() { left.len() } else { right };
        let lengths = if self.wanted.exact { (of_left, LIMBS) } else { (0, 0) };
        let (fixed, exact_bound) = (vec![0; lengths.0], vec![0; lengths.1]);
        Sums { left, first, right: vec![0.0; right], bound: 0.0, fixed, exact_bound }
    }

    /// The indices that some rows have in the tally left of the product.
    fn indices(&self, rows: Range<usize>) -> Range<usize> {
        let wanted = |tally: usize| self.wanted.left == Some(tally);
        let indices = rows.flat_map(|row| self.model.places(row)).filter(|(tally, _)| wanted(*tally));
        indices
            .fold(None, |range: Option<Range<usize>>, (_, at)| {
                Some(range.map_or(at..at + 1, |range| range.start.min(at)..range.end.max(at + 1)))
            })
            .unwrap_or_default()
    }

    fn block(&self, level: Level, rows: Range<usize>, noise: &mut [NoiseCounts]) -> Sums {
        let mut sums = self.nothing(self.indices(rows.clone()));
        let (stride, cols) = (self.right.stride, self.table.cols());
        let size = tile_of(cols);
        let formed = if matches!(self.weights, CellWeights::Given(_)) { 0 } else { size * cols };
        let (mut lefts, mut weights) = (vec![0.0; size * stride], vec![0.0; formed]);
        let mut products = vec![0.0; size * stride];
        let (mut excesses, mut of_ones) = (Excesses::default(), vec![0.0; stride]);
        let of_means = if matches!(self.weights, CellWeights::Overdispersed(..)) { size } else { 0 };
        let (mut lefts_of_means, mut rates) = (vec![0.0; of_means * stride], vec![0.0; of_means * cols]);
        for start in rows.clone().step_by(size) {
            let tile = start..rows.end.min(start + size);
            let left = &mut lefts[..tile.len() * stride];
            for (row, left) in tile.clone().zip(left.chunks_exact_mut(stride)) {
                self.model.left(self.geometric, row, left);
            }
            // `weights` holds G_rv and then, in its place, W_rv; both row by row, without padding.
            let weights = &mut weights[..formed.min(tile.len() * cols)];
            match &self.weights {
                CellWeights::Given(_) => {}
                CellWeights::Overdispersed(dispersion, means, panels) => {
                    self.panels.rates(level, left, stride, weights);
                    for (row, left) in tile.clone().zip(lefts_of_means.chunks_exact_mut(stride)) {
                        self.model.left(means, row, left);
                    }
                    panels.rates(level, &lefts_of_means[..tile.len() * stride], stride, &mut rates);
                    let each = weights.chunks_exact_mut(cols.max(1)).zip(rates.chunks_exact(cols.max(1)));
                    for (row, (weights, rates)) in tile.clone().zip(each) {
                        let at = (row - rows.start) * cols;
                        sums.bound +=
                            self.overdispersed_row(row, dispersion, (weights, rates), &mut noise[at..at + cols]);
                    }
                }
                CellWeights::Optimal(augmentation, published) => {
                    self.panels.rates(level, left, stride, weights);
                    for (row, weights) in tile.clone().zip(weights.chunks_exact_mut(cols.max(1))) {
                        let at = (row - rows.start) * cols;
                        let noise = if noise.is_empty() { &mut [] } else { &mut noise[at..at + cols] };
                        let laws = (*augmentation, published.as_ref());
                        sums.bound += self.whole_row(level, row, laws, weights, noise);
                    }
                }
            }
            let weights = match self.weights {
                CellWeights::Given(given) => &given[tile.start * cols..tile.end * cols],
                _ => &*weights,
            };
            let few = matches!(self.weights, CellWeights::Given(_)) && excesses.find(level, weights, cols.max(1));
            if let Some(tally) = self.wanted.left {
                if few {
                    excesses.over_columns(level, (self.right, &self.ones), &mut products);
                } else {
                    over_columns(level, weights, self.right, &mut products);
                }
                for (i, row) in tile.clone().enumerate() {
                    let (u, p) = (&left[i * stride..(i + 1) * stride], &products[i * stride..(i + 1) * stride]);
                    let is_product = self.model.structure().is_product();
                    for (_, index) in self.model.places(row).filter(|(part, _)| *part == tally) {
                        let at = index * stride - sums.first;
                        let sums = &mut sums.left[at..at + stride];
                        for ((sum, u), p) in sums.iter_mut().zip(u).zip(p) {
                            *sum += if is_product { u * p } else { *p };
                        }
                    }
                }
            }
            if self.wanted.right && few {
                excesses.over_rows(level, left, &mut of_ones, &mut sums.right);
            } else if self.wanted.right {
                over_rows(level, weights, cols, left, stride, &mut sums.right);
            }
        }
        if of_ones.iter().any(|&sum| sum > 0.0) {
            for sums in sums.right.chunks_exact_mut(stride) {
                // What differs from nothing by rounding may be below it.
                sums.iter_mut().zip(&of_ones).for_each(|(sum, &one)| *sum = (*sum + one).max(0.0));
            }
        }
        sums
    }

    /// The same where counts are overdispersed: sets E e and E e - E ln e of the multipliers. With the rates G of geometric means
    /// and M of means, the counts have the law of a rate r G / (r + M - G), and e ~ Gamma(r + y, r + M).
    fn overdispersed_row(
        &self,
        row: usize,
        dispersion: &Dispersion,
        (geometric, means): (&mut [f64], &[f64]),
        multipliers: &mut [NoiseCounts],
    ) -> f64 {
        let (data, shapes) = (self.table.row(row), dispersion.in_row(row));
        let (mut masses, mut bound) = (Masses::default(), 0.0);
        for (column, (weight, &mean)) in geometric.iter_mut().zip(means).enumerate() {
            let code = data.codes[column];
            if code == HELD_OUT {
                (*weight, multipliers[column]) = (0.0, [0.0; 2]);
                continue;
            }
            let (r, alpha) = (shapes.at(column), self.table.alpha_at(row * self.table.cols() + column));
            let excess = (mean - *weight).max(0.0);
            let rate = r * *weight / (r + excess);
            let found = masses.moments(data.value(column, code), rate, r, alpha);
            bound += found.log_likelihood - r * (excess / r).ln_1p();
            let expected = (r + found.mean) / (r + mean);
            multipliers[column] = [expected, expected - found.digamma + (r + mean).ln()];
            *weight = if found.mean > 0.0 { found.mean / weight.max(f64::MIN_POSITIVE) } else { 0.0 };
        }
        bound
    }

    /// Turns the rates of a row into weights W, where the model imputes also those of cells held out, whose counts are Poisson
    /// variables; returns the row's part of the bound, if wanted.
    fn whole_row(
        &self,
        level: Level,
        row: usize,
        laws: (Augmentation, Option<&FactorMoments>),
        rates: &mut [f64],
        noise: &mut [NoiseCounts],
    ) -> f64 {
        if !self.model.imputes() || self.table.held_out() == 0 {
            return self.row(level, row, laws, rates, noise);
        }
        let (codes, structure) = (self.table.row(row).codes, self.model.structure());
        let held = |column: usize| codes[column] == HELD_OUT && structure.has_rate(row, column);
        let imputed: f64 = (0..rates.len()).filter(|&column| held(column)).map(|column| rates[column]).sum();
        let bound = self.row(level, row, laws, rates, noise);
        (0..rates.len()).filter(|&column| held(column)).for_each(|column| rates[column] = 1.0);
        bound + imputed
    }

    /// The same for cells that are observed; weights of others are zero.
    fn row(
        &self,
        level: Level,
        row: usize,
        (augmentation, published): (Augmentation, Option<&FactorMoments>),
        rates: &mut [f64],
        noise: &mut [NoiseCounts],
    ) -> f64 {
        let data = self.table.row(row);
        let alphas = self.table.alphas(row);
        let one = self.table.alpha_at(row * self.table.cols());
        if augmentation == Augmentation::Collapsed && alphas.is_none() && one > 0.0 {
            let positive = self.table.positive_cells().row(row);
            return float_work(
                level,
                CollapsedRow { data, positive, alpha: one, rates, logarithms: self.wanted.bound },
            );
        }
        let published = published.map(|moments| self.rates_of_moments(moments, row));
        let mut bound = 0.0;
        for (column, rate) in rates.iter_mut().enumerate() {
            let code = data.codes[column];
            if code == HELD_OUT {
                *rate = 0.0;
                continue;
            }
            let alpha = alphas.map_or(one, |alphas| alphas[column]);
            let released = data.value(column, code);
            if alpha == 0.0 {
                bound += if released == 0 { 0.0 } else { released as f64 * rate.ln() - log_factorial(released as f64) };
                *rate = if released == 0 { 0.0 } else { released as f64 / rate.max(f64::MIN_POSITIVE) };
            } else if augmentation == Augmentation::Collapsed {
                bound += ((1.0 - alpha) / (1.0 + alpha)).ln() + log_sum(released, *rate, alpha);
                *rate = scaled_mean(released, rate.max(f64::MIN_POSITIVE), alpha);
            } else {
                let moments = published.as_ref().map(|rows| [rows[0][column], rows[2][column] - rows[1][column]]);
                let (mean, part) = augmented(augmentation, released, *rate, alpha, &mut noise[column], moments);
                bound += part;
                *rate = if mean > 0.0 { mean / rate.max(f64::MIN_POSITIVE) } else { 0.0 };
            }
        }
        bound
    }

    /// Rates of a row with means, squared means and second moments in place of the factors.
    fn rates_of_moments(&self, moments: &FactorMoments, row: usize) -> [Vec<f64>; 3] {
        let mut left = vec![0.0; self.right.stride];
        std::array::from_fn(|moment| {
            let factors = &moments[moment];
            self.model.left(factors, row, &mut left);
            let right = self.model.right(factors);
            (0..right.rows).map(|column| left.iter().zip(right.row(column)).map(|(a, b)| a * b).sum()).collect()
        })
    }
}
