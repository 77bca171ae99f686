//! The canonical polyadic structure of matrices and tensors: mu_i = sum_k prod_m F^m[i_m, k].
//!
//! The rows of the table are the first M - 1 modes, u_r = product over m < M of F^m[i_m], and R = F^M. Two modes make the
//! matrix model; weights of components are a mode of extent 1. A mode's entries are exposed to the products of the others:
//!   exposure of F^m[i, k] = sum over the observed cells with i_m = i of the product of F^l[i_l, k] over l /= m.
//!
//! Source: A. Schein et al. (2019), section 4 of the appendix.

use super::factor_matrix::FactorMatrix;
use super::structure::{Entries, Factors, Layout, Structure};

/// Matrices and tensors.
#[derive(Clone, Copy, Debug)]
pub struct Cp;

/// What the entries of a mode are exposed to in all cells, where the sum of products is a product of sums.
pub(super) fn of_all_cells(mode: usize, sums: &[Vec<f64>], out: &mut [f64]) {
    out.fill(1.0);
    for (_, sum) in sums.iter().enumerate().filter(|(other, _)| *other != mode) {
        out.iter_mut().zip(sum).for_each(|(out, x)| *out *= x);
    }
}

/// Six times the power of two below a number: what numbers up to that one are added to so that they are rounded to 2^-50 of it.
pub(super) fn anchor(x: f64) -> f64 {
    6.0 * f64::from_bits(x.to_bits() & 0x7ff0_0000_0000_0000)
}

/// Adds numbers that are rounded by what they are added to.
#[inline(always)]
pub(super) fn add_rounded(sums: &mut [f64], numbers: &[f64], anchors: &[f64]) {
    for ((sum, x), anchor) in sums.iter_mut().zip(numbers).zip(anchors) {
        *sum += (x + anchor) - anchor;
    }
}

/// Takes what is held out from exposures.
pub(super) fn less(exposures: &mut [f64], held: &[f64]) {
    exposures.iter_mut().zip(held).for_each(|(x, held)| *x = (*x - held).max(0.0));
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

    fn left(&self, _layout: &Layout, factors: &Factors, row: usize, out: &mut [f64]) {
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

    fn is_split_by_rows(&self) -> bool {
        true
    }

    fn total_rate(&self, layout: &Layout, factors: &Factors) -> f64 {
        let sums: Vec<_> = factors.iter().map(FactorMatrix::sums).collect();
        let mut total = (0..layout.width).map(|k| sums.iter().map(|sum| sum[k]).product::<f64>()).sum::<f64>();
        let mut left = vec![0.0; factors[0].stride];
        for &cell in &layout.held[0].cells {
            let (row, column) = layout.cell(cell);
            self.left(layout, factors, row, &mut left);
            total -= left.iter().zip(factors[factors.len() - 1].row(column)).map(|(a, b)| a * b).sum::<f64>();
        }
        total
    }

    fn exposure(&self, layout: &Layout, (mode, index): Entries, factors: &Factors, sums: &[Vec<f64>], out: &mut [f64]) {
        // The cells held out, which are few, are taken from all.
        of_all_cells(mode, sums, out);
        let cells = layout.held[mode].at(index);
        // Nothing of the slice is observed: zero, and nothing that rounding leaves of a difference.
        if cells.len() == layout.extents.iter().product::<usize>() / layout.extents[mode] {
            out.fill(0.0);
            return;
        }
        if cells.is_empty() {
            return;
        }
        let mut held = vec![0.0; out.len()];
        self.add_held(layout, (mode, index), factors, out, &mut held);
        less(out, &held);
    }

    fn of_all_cells(&self, _: &Layout, (mode, _): Entries, _: &Factors, sums: &[Vec<f64>], out: &mut [f64]) {
        of_all_cells(mode, sums, out);
    }

    fn add_held(&self, layout: &Layout, (mode, index): Entries, factors: &Factors, whole: &[f64], held: &mut [f64]) {
        let anchors: Vec<f64> = whole.iter().map(|&x| anchor(x)).collect();
        let mut add = |entries: &[f64]| add_rounded(held, entries, &anchors);
        if let [left, right] = factors {
            for (row, column) in layout.held[mode].at(index).iter().map(|&cell| layout.cell(cell)) {
                add(if mode == 0 { right.row(column) } else { left.row(row) });
            }
            return;
        }
        let others = || factors.iter().enumerate().filter(|(other, _)| *other != mode);
        let mut product = vec![0.0; whole.len()];
        for &cell in layout.held[mode].at(index) {
            let (row, column) = layout.cell(cell);
            let entries = |(other, factor)| FactorMatrix::row(factor, self.index(&layout.extents, other, row, column));
            let mut several = others().map(entries);
            if let Some(one) = several.next() {
                product.copy_from_slice(one);
            }
            several.for_each(|next| product.iter_mut().zip(next).for_each(|(product, x)| *product *= x));
            add(&product);
        }
    }

    fn sums_for(&self, layout: &Layout, mode: usize) -> (Option<usize>, bool) {
        let last = mode + 1 == layout.extents.len();
        ((!last).then_some(mode), last)
    }

    fn expected_counts(
        &self,
        layout: &Layout,
        mode: usize,
        geometric: &Factors,
        (left, right): (&[f64], &[f64]),
    ) -> Vec<f64> {
        // A pass multiplies the sums to the left of the product by u_r already, those to its right not.
        if mode + 1 < layout.extents.len() {
            return left.to_vec();
        }
        geometric[mode].padded().iter().zip(right).map(|(weight, sum)| weight * sum).collect()
    }
}
