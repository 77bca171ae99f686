//! The canonical polyadic structure of matrices and tensors: mu_i = sum_k prod_m F^m[i_m, k].
//!
//! The rows of the table are the first M - 1 modes, u_r = product over m < M of F^m[i_m], and R = F^M. Two modes make the
//! matrix model; weights of components are a mode of extent 1. A mode's entries are exposed to the products of the others:
//!   exposure of F^m[i, k] = sum over the observed cells with i_m = i of the product of F^l[i_l, k] over l /= m.
//!
//! Source: A. Schein et al. (2019), section 4 of the appendix.

use super::coordinate_ascent::CoordinateAscent;
use super::factor_matrix::FactorMatrix;
use super::gibbs::{GibbsChain, Tally};
use super::model::Model;
use super::split::LANES;
use super::structure::{Pass, Structure};
use crate::distributions::gamma;
use crate::numeric::dispatch::level;
use crate::{Result, parallel};

/// Rows of a factor that are redrawn together.
const BLOCK: usize = 16;

/// Matrices and tensors.
#[derive(Clone, Copy, Debug)]
pub struct Cp;

impl Cp {
    /// What the entries of one index of a mode are exposed to (cp), given the sums of all factors.
    pub fn exposure(
        &self,
        model: &Model,
        mode: usize,
        index: usize,
        factors: &[FactorMatrix],
        sums: &[Vec<f64>],
        out: &mut [f64],
    ) {
        // Over all cells the sum of products is a product of sums; the cells held out, which are few, are taken away.
        out.fill(1.0);
        for (_, sum) in sums.iter().enumerate().filter(|(other, _)| *other != mode) {
            out.iter_mut().zip(sum).for_each(|(out, x)| *out *= x);
        }
        let cells = model.held[mode].at(index);
        let (last, slice) =
            (model.extents().len() - 1, model.extents().iter().product::<usize>() / model.extents()[mode]);
        // Nothing of the slice is observed: zero, and nothing that rounding leaves of a difference.
        if cells.len() == slice {
            out.fill(0.0);
            return;
        }
        let mut product = vec![0.0; out.len()];
        for &cell in cells {
            let (row, column) = model.cell(cell, model.extents()[last]);
            product.fill(1.0);
            for other in (0..=last).filter(|&other| other != mode) {
                let entries = factors[other].row(self.index(model.extents(), other, row, column));
                product.iter_mut().zip(entries).for_each(|(product, x)| *product *= x);
            }
            out.iter_mut().zip(&product).for_each(|(out, x)| *out -= x);
        }
        out.iter_mut().for_each(|x| *x = x.max(0.0));
    }

    fn update_mode(&self, fit: &mut CoordinateAscent, mode: usize, sums: &[f64]) {
        let totals: Vec<_> = fit.means.iter().map(FactorMatrix::sums).collect();
        let geometric = &fit.geometric[mode];
        let (stride, width) = (geometric.stride, geometric.width);
        let mut exposure = vec![0.0; stride];
        let last = mode + 1 == fit.factors.len();
        for index in 0..geometric.rows {
            self.exposure(&fit.model, mode, index, &fit.means, &totals, &mut exposure);
            for k in 0..width {
                let (shape, rate) = fit.model.prior(mode).at(index * width + k);
                // A pass multiplies the sums to the left of the product by u_r already, those to its right not.
                let weight = if last { geometric.row(index)[k] } else { 1.0 };
                fit.factors[mode].shape.row_mut(index)[k] = shape + weight * sums[index * stride + k];
                fit.factors[mode].rate.row_mut(index)[k] = rate + exposure[k];
            }
        }
        fit.refresh(mode);
    }
}

impl Structure for Cp {
    fn table_shape(&self, extents: &[usize]) -> Option<(usize, usize)> {
        match extents {
            [first @ .., last] if !first.is_empty() => Some((first.iter().product(), *last)),
            _ => None,
        }
    }

    fn shapes(&self, extents: &[usize], width: usize) -> Vec<(usize, usize)> {
        extents.iter().map(|&extent| (extent, width)).collect()
    }

    fn tally_shapes(&self, extents: &[usize], width: usize) -> Vec<(usize, usize)> {
        self.shapes(extents, width)
    }

    fn left_tallies(&self, extents: &[usize]) -> usize {
        extents.len() - 1
    }

    fn right(&self, extents: &[usize]) -> usize {
        extents.len() - 1
    }

    fn index(&self, extents: &[usize], number: usize, row: usize, column: usize) -> usize {
        let last = extents.len() - 1;
        if number == last {
            return column;
        }
        // Rows are the first M - 1 modes in C order, the last of them fastest.
        let inner: usize = extents[number + 1..last].iter().product();
        row / inner % extents[number]
    }

    fn left(&self, factors: &[FactorMatrix], row: usize, out: &mut [f64]) {
        let (last, mut row) = (factors.len() - 1, row);
        let mut first = true;
        // Digits of the row in mixed radix, the fastest mode first.
        for factor in factors[..last].iter().rev() {
            let entries = factor.row(row % factor.rows);
            row /= factor.rows;
            if first {
                out.copy_from_slice(entries);
                first = false;
            } else {
                out.iter_mut().zip(entries).for_each(|(out, x)| *out *= x);
            }
        }
    }

    fn is_product(&self) -> bool {
        true
    }

    fn terms(&self, extents: &[usize], width: usize) -> (f64, f64) {
        (width as f64, extents.len() as f64)
    }

    fn total_rate(&self, model: &Model, factors: &[FactorMatrix]) -> f64 {
        let (mut total, cols) = (0.0, model.extents()[model.extents().len() - 1]);
        let sums: Vec<_> = factors.iter().map(FactorMatrix::sums).collect();
        total += (0..model.width()).map(|k| sums.iter().map(|sum| sum[k]).product::<f64>()).sum::<f64>();
        let mut left = vec![0.0; model.width().next_multiple_of(LANES)];
        for &cell in &model.held[0].cells {
            let (row, column) = model.cell(cell, cols);
            self.left(factors, row, &mut left);
            total -= left.iter().zip(model.right(factors).row(column)).map(|(a, b)| a * b).sum::<f64>();
        }
        total
    }

    /// Redraws the modes one after the other; exposures know what is held out, so that rates add up on the way.
    fn redraw(&self, chain: &mut GibbsChain, tally: &Tally) -> Option<f64> {
        let mut total_rate = None;
        let mut sums: Vec<_> = chain.factors.iter().map(FactorMatrix::sums).collect();
        for mode in (0..chain.factors.len()).filter(|&mode| !chain.fixed[mode]) {
            let (stride, width) = (chain.factors[mode].stride, chain.model.width());
            let prior = chain.model.prior(mode);
            let level = level();
            let redraw = |(block, (rows, totals)): (usize, (&mut [f64], &mut [f64]))| {
                // Entry k of row i of the block is at i * width + k among shapes and draws, at i * stride + k in the matrices.
                let entries = block * BLOCK * width..(block * BLOCK + totals.len()) * width;
                let mut exposures = vec![0.0; rows.len()];
                let (mut shapes, mut draws) = (vec![0.0; entries.len()], vec![0.0; entries.len()]);
                for (i, (shapes, exposure)) in
                    shapes.chunks_exact_mut(width).zip(exposures.chunks_exact_mut(stride)).enumerate()
                {
                    let index = block * BLOCK + i;
                    self.exposure(&chain.model, mode, index, &chain.factors, &sums, exposure);
                    for (k, (shape, &count)) in shapes.iter_mut().zip(&tally.parts[mode][index * stride..]).enumerate()
                    {
                        *shape = prior.at(index * width + k).0 + count as f64;
                    }
                }
                gamma::draw_many(level, &shapes, &mut chain.words_of_block(level, mode, block), &mut draws);
                let rows = rows.chunks_exact_mut(stride).zip(exposures.chunks_exact(stride));
                for (i, ((row, exposure), total)) in rows.zip(totals).enumerate() {
                    for k in 0..width {
                        let (_, rate) = prior.at(entries.start + i * width + k);
                        row[k] = draws[i * width + k] / (rate + exposure[k]);
                        *total += row[k] * exposure[k];
                    }
                }
            };
            let mut fresh = FactorMatrix::new(chain.factors[mode].rows, width);
            let mut totals = vec![0.0; fresh.rows];
            let blocks = fresh.padded_mut().chunks_mut(BLOCK * stride).zip(totals.chunks_mut(BLOCK)).enumerate();
            parallel::each(blocks.collect(), |block| {
                redraw(block);
                Ok(())
            })
            .expect("rows that cannot fail");
            sums[mode] = fresh.sums();
            chain.factors[mode] = fresh;
            // Exposures know what is held out, so this is the sum of the observed rates.
            total_rate = Some(totals.iter().sum());
        }
        total_rate
    }

    fn ascend(&self, fit: &mut CoordinateAscent, pass: &mut Pass<'_>) -> Result<()> {
        let last = fit.factors.len() - 1;
        for mode in (0..=last).filter(|&mode| !fit.fixed[mode]).collect::<Vec<_>>() {
            let sums = pass(fit, (mode < last).then_some(mode), mode == last)?;
            self.update_mode(fit, mode, if mode == last { &sums.right } else { &sums.left });
        }
        Ok(())
    }
}
