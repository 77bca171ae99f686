//! One pass of an ascent over all cells: weights W = E[y | o, G] / G, their weighted sums, and the cells' part of the bound.
//!
//! Cells are indexed (r, v), components k: a pass forms G_rv = sum_k u_rk R_vk of a tile of rows, turns them into W_rv in their
//! place, and adds up sum_v W_rv R_vk (to the left of the product) and sum_r W_rv u_rk (to its right). Rows come in blocks
//! whose partial sums are added in order, so that no sum depends on the number of threads.
//!
//! Source: the optimal laws of [`super`].

use super::super::cell::{log_sum, scaled_mean};
use super::super::collapsed::CollapsedRow;
use super::super::factor_matrix::FactorMatrix;
use super::super::model::Model;
use super::super::products::{Panels, over_columns, over_rows, tile_of};
use super::super::published::{Augmentation, Moments, Noise, augmented};
use super::super::released_counts::ReleasedCounts;
use super::super::row::HELD_OUT;
use super::super::split::LANES;
use crate::monitor::Progress;
use crate::numeric::dispatch::{Level, level};
use crate::numeric::floats::float_work;
use crate::numeric::special::log_factorial;
use crate::{Result, parallel};
use std::ops::Range;

/// Rows whose sums are formed one after the other; partial sums of such blocks are added in order.
const BLOCK: usize = 128;

/// What a pass over all cells adds up.
#[derive(Clone, Copy)]
pub struct PassOutput {
    /// Weighted sums over columns, for this tally left of the product.
    pub left: Option<usize>,
    /// Weighted sums over rows.
    pub right: bool,
    /// The cells' part of the bound.
    pub bound: bool,
}

/// What a pass has added up.
#[derive(Default)]
pub struct Sums {
    /// Over columns, for a tally left of the product.
    pub left: Vec<f64>,
    /// Over rows.
    pub right: Vec<f64>,
    /// The cells' part of the bound.
    pub bound: f64,
}

/// What a pass reads.
pub struct PassInput<'a> {
    table: &'a ReleasedCounts,
    model: &'a Model,
    geometric: &'a [FactorMatrix],
    right: &'a FactorMatrix,
    panels: Panels,
    augmentation: Augmentation,
    published: Option<Moments>,
    wanted: PassOutput,
}

impl<'a> PassInput<'a> {
    /// A pass at these geometric means; the printed ascent needs moments of the factors as well.
    pub fn new(
        table: &'a ReleasedCounts,
        model: &'a Model,
        geometric: &'a [FactorMatrix],
        (augmentation, published): (Augmentation, Option<Moments>),
        wanted: PassOutput,
    ) -> Self {
        let right = model.right(geometric);
        Self { table, model, geometric, right, panels: Panels::new(right), augmentation, published, wanted }
    }

    /// Passes over all cells at the optimal law of their counts, whose noise is set.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`]
    pub fn pass(&self, noise: &mut [Noise], threads: usize, progress: &Progress) -> Result<Sums> {
        let (rows, cols) = (self.table.rows(), self.table.cols());
        let blocks: Vec<Range<usize>> = (0..rows).step_by(BLOCK).map(|start| start..rows.min(start + BLOCK)).collect();
        let level = level();
        let mut sums = self.nothing();
        let mut chunks = noise.chunks_mut((BLOCK * cols).max(1));
        // Partial sums are as large as what they add up to, so only as many are held as there are threads.
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
                sums.left.iter_mut().zip(part.left).for_each(|(sum, x)| *sum += x);
                sums.right.iter_mut().zip(part.right).for_each(|(sum, x)| *sum += x);
                sums.bound += part.bound;
            }
        }
        Ok(sums)
    }

    fn nothing(&self) -> Sums {
        let left = self.wanted.left.map_or(0, |tally| {
            let (rows, width) = self.model.tally_shapes()[tally];
            rows * width.next_multiple_of(LANES)
        });
        let right = if self.wanted.right { self.right.rows * self.right.stride } else { 0 };
        Sums { left: vec![0.0; left], right: vec![0.0; right], bound: 0.0 }
    }

    fn block(&self, level: Level, rows: Range<usize>, noise: &mut [Noise]) -> Sums {
        let mut sums = self.nothing();
        let (stride, cols) = (self.right.stride, self.table.cols());
        let size = tile_of(cols);
        let (mut lefts, mut weights) = (vec![0.0; size * stride], vec![0.0; size * cols]);
        let mut products = vec![0.0; size * stride];
        for start in rows.clone().step_by(size) {
            let tile = start..rows.end.min(start + size);
            let left = &mut lefts[..tile.len() * stride];
            for (row, left) in tile.clone().zip(left.chunks_exact_mut(stride)) {
                self.model.left(self.geometric, row, left);
            }
            // `weights` holds G_rv and then, in its place, W_rv; both row by row, without padding.
            let weights = &mut weights[..tile.len() * cols];
            self.panels.rates(level, left, stride, weights);
            for (row, weights) in tile.clone().zip(weights.chunks_exact_mut(cols.max(1))) {
                let at = (row - rows.start) * cols;
                let noise = if noise.is_empty() { &mut [] } else { &mut noise[at..at + cols] };
                sums.bound += self.row(level, row, weights, noise);
            }
            if let Some(tally) = self.wanted.left {
                over_columns(level, weights, self.right, &mut products);
                for (i, row) in tile.clone().enumerate() {
                    let (u, p) = (&left[i * stride..(i + 1) * stride], &products[i * stride..(i + 1) * stride]);
                    let is_product = self.model.structure().is_product();
                    for (_, index) in self.model.places(row).filter(|(part, _)| *part == tally) {
                        let sums = &mut sums.left[index * stride..(index + 1) * stride];
                        for ((sum, u), p) in sums.iter_mut().zip(u).zip(p) {
                            *sum += if is_product { u * p } else { *p };
                        }
                    }
                }
            }
            if self.wanted.right {
                over_rows(level, weights, cols, left, stride, &mut sums.right);
            }
        }
        sums
    }

    /// Turns the rates of a row into weights W; returns the row's part of the bound, if wanted.
    fn row(&self, level: Level, row: usize, rates: &mut [f64], noise: &mut [Noise]) -> f64 {
        let data = self.table.row(row);
        let alphas = self.table.alphas(row);
        let one = self.table.alpha_at(row * self.table.cols());
        if self.augmentation == Augmentation::Collapsed && alphas.is_none() && one > 0.0 {
            let positive = self.table.positive_cells().row(row);
            return float_work(
                level,
                CollapsedRow { data, positive, alpha: one, rates, logarithms: self.wanted.bound },
            );
        }
        let published = self.published.as_ref().map(|moments| self.rates_of_moments(moments, row));
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
            } else if self.augmentation == Augmentation::Collapsed {
                bound += ((1.0 - alpha) / (1.0 + alpha)).ln() + log_sum(released, *rate, alpha);
                *rate = scaled_mean(released, rate.max(f64::MIN_POSITIVE), alpha);
            } else {
                let moments = published.as_ref().map(|rows| [rows[0][column], rows[2][column] - rows[1][column]]);
                let (mean, part) = augmented(self.augmentation, released, *rate, alpha, &mut noise[column], moments);
                bound += part;
                *rate = if mean > 0.0 { mean / rate.max(f64::MIN_POSITIVE) } else { 0.0 };
            }
        }
        bound
    }

    /// Rates of a row with means, squared means and second moments in place of the factors.
    fn rates_of_moments(&self, moments: &Moments, row: usize) -> [Vec<f64>; 3] {
        let mut left = vec![0.0; self.right.stride];
        std::array::from_fn(|moment| {
            let factors = &moments[moment];
            self.model.left(factors, row, &mut left);
            let right = self.model.right(factors);
            (0..right.rows).map(|column| left.iter().zip(right.row(column)).map(|(a, b)| a * b).sum()).collect()
        })
    }
}
