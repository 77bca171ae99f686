//! Rates of whole rows, and the log-likelihood of a table given its factors.
//!
//! mu_rv = sum_k u_rk R_vk for a row r, all columns v and components k; the likelihood sums [`super::cell::log_likelihood`]
//! over the observed cells. Source: A. Schein et al. (2019), the model of section 2, with the noise summed out.

use super::cell::log_likelihood;
use super::collapsed::CollapsedRow;
use super::model::{FactorMatrix, Model};
use super::released_counts::{Alpha, HELD_OUT, ReleasedCounts};
use super::split::LANES;
use crate::distributions::LARGEST;
use crate::monitor::{Monitor, Progress};
use crate::numeric::dispatch::{Work, level, work};
use crate::{Error, Result, parallel};
use rayon::prelude::*;

/// Columns that are worked on together, so that eight components of them stay in the nearest cache.
const BLOCK: usize = 256;
/// Components that are added in one go.
const BATCH: usize = 8;

/// The rates of some rows, as work for vectors.
///
/// Each rate is summed over components in order, so it does not depend on the rows it is formed with. The inner loop runs over
/// columns and has no shape known in advance: that is what compilers turn into vectors most dependably.
pub struct Rates<'a> {
    /// Weights of the rows, `stride` apart.
    pub left: &'a [f64],
    /// From one row of weights to the next.
    pub stride: usize,
    /// The factor of the columns, as [`FactorMatrix::transposed`] has it.
    pub transposed: &'a [f64],
    /// The rates: one row of columns after the other.
    pub out: &'a mut [f64],
    /// Number of columns.
    pub cols: usize,
}

impl Work for Rates<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { left, stride, transposed, out, cols } = self;
        out.fill(0.0);
        for start in (0..cols).step_by(BLOCK) {
            let end = cols.min(start + BLOCK);
            for (chunk, components) in transposed.chunks(BATCH * cols).enumerate() {
                for (left, out) in left.chunks_exact(stride).zip(out.chunks_exact_mut(cols)) {
                    let weights = &left[chunk * BATCH..];
                    let out = &mut out[start..end];
                    if components.len() == BATCH * cols {
                        let component = |k: usize| &components[k * cols + start..k * cols + end];
                        add_eight(out, std::array::from_fn(component), std::array::from_fn(|k| weights[k]));
                    } else {
                        for (component, weight) in components.chunks_exact(cols).zip(weights) {
                            out.iter_mut().zip(&component[start..end]).for_each(|(sum, x)| *sum += weight * x);
                        }
                    }
                }
            }
        }
    }
}

/// Adds eight multiples, one after the other, to each sum.
#[inline(always)]
fn add_eight(sums: &mut [f64], components: [&[f64]; BATCH], weights: [f64; BATCH]) {
    let n = sums.len();
    let [a, b, c, d, e, f, g, h] = components.map(|component| &component[..n]);
    for i in 0..n {
        let mut sum = sums[i];
        sum += weights[0] * a[i];
        sum += weights[1] * b[i];
        sum += weights[2] * c[i];
        sum += weights[3] * d[i];
        sum += weights[4] * e[i];
        sum += weights[5] * f[i];
        sum += weights[6] * g[i];
        sum += weights[7] * h[i];
        sums[i] = sum;
    }
}

/// `cell(row, column, rate)` for rates that are given, row by row.
///
/// # Errors
/// [`Error::Interrupted`]; [`Error::Domain`] for a rate that is negative or not finite.
pub fn map_rates(
    table: &ReleasedCounts,
    rates: &[f64],
    threads: usize,
    monitor: &mut dyn Monitor,
    cell: impl Fn(usize, usize, f64) -> f64 + Sync + Send,
) -> Result<Vec<f64>> {
    if let Some(bad) = rates.iter().find(|rate| !(**rate >= 0.0 && **rate <= LARGEST)) {
        return Err(Error::Domain { name: "rates", value: bad.to_string(), requirement: "in [0, 2^53]" });
    }
    let mut out = vec![0.0; rates.len()];
    let cols = table.cols().max(1);
    parallel::run(threads, table.rows() as u64, monitor, |progress| {
        let fill = |(row, (out, rates)): (usize, (&mut [f64], &[f64]))| {
            for (column, (out, &rate)) in out.iter_mut().zip(rates).enumerate() {
                *out = cell(row, column, rate);
            }
            progress.advance(1)
        };
        out.par_chunks_mut(cols).zip(rates.par_chunks(cols)).enumerate().try_for_each(fill)
    })?;
    Ok(out)
}

/// The rates of all cells, row by row.
///
/// # Errors
/// [`Error::Interrupted`]
pub fn all_rates(model: &Model, factors: &[FactorMatrix], threads: usize, progress: &Progress) -> Result<Vec<f64>> {
    let right = model.right(factors);
    let transposed = right.transposed();
    let (level, stride, cols) = (level(), right.stride, right.rows);
    let mut all = vec![0.0; model.cells()];
    let fill = |(row, out): (usize, &mut [f64])| {
        let mut left = vec![0.0; stride];
        model.left(factors, row, &mut left);
        work(level, Rates { left: &left, stride, transposed: &transposed, out, cols });
        progress.advance(1)
    };
    if threads == 1 {
        all.chunks_mut(cols.max(1)).enumerate().try_for_each(fill)?;
    } else {
        all.par_chunks_mut(cols.max(1)).enumerate().try_for_each(fill)?;
    }
    Ok(all)
}

/// The log-likelihood of the observed cells: sums of rows, added up in order.
///
/// # Errors
/// [`Error::Interrupted`]
pub fn total(
    model: &Model,
    factors: &[FactorMatrix],
    table: &ReleasedCounts,
    threads: usize,
    progress: &Progress,
) -> Result<f64> {
    let right = model.right(factors);
    let transposed = right.transposed();
    let level = level();
    let row_total = |row: usize| {
        progress.check()?;
        let mut left = vec![0.0; right.stride];
        let mut buffer = vec![0.0; right.rows];
        model.left(factors, row, &mut left);
        let (stride, cols) = (right.stride, right.rows);
        work(level, Rates { left: &left, stride, transposed: &transposed, out: &mut buffer, cols });
        let data = table.row(row);
        if let Alpha::One(alpha) = *table.alpha()
            && alpha > 0.0
        {
            let rates = &mut buffer[..right.rows];
            let columns = data.codes.iter().zip(&*rates).filter(|(code, _)| **code != HELD_OUT);
            let sum: f64 = columns.map(|(_, rate)| rate).sum();
            return Ok(work(level, CollapsedRow { data, alpha, rates, logarithms: true }) - sum);
        }
        let observed = data.codes.iter().enumerate().filter(|(_, code)| **code != HELD_OUT);
        let cell = |(column, code): (usize, &i8)| {
            let alpha = table.alpha_at(row * table.cols() + column);
            log_likelihood(data.value(column, *code), buffer[column], alpha)
        };
        Ok(observed.map(cell).sum())
    };
    let rows: Result<Vec<f64>, Error> = if threads == 1 {
        (0..table.rows()).map(row_total).collect()
    } else {
        (0..table.rows()).into_par_iter().map(row_total).collect()
    };
    Ok(rows?.iter().sum())
}

/// The dot product of two padded rows, summed in eight lanes.
#[inline(always)]
pub fn dot(left: &[f64], right: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    for (a, b) in left.as_chunks::<LANES>().0.iter().zip(right.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_do_not_depend_on_their_neighbors() {
        let left: Vec<f64> = (0..32).map(|i| f64::from(i) * 0.37).collect();
        let matrix =
            FactorMatrix::packed(21, 5, &(0..105).map(|i| f64::from(i % 13) * 0.11).collect::<Vec<_>>()).unwrap();
        let (transposed, cols) = (matrix.transposed(), matrix.rows);
        let (mut four, mut one) = (vec![0.0; 4 * cols], vec![0.0; cols]);
        Rates { left: &left, stride: 8, transposed: &transposed, out: &mut four, cols }.run();
        for r in 0..4 {
            Rates { left: &left[8 * r..8 * r + 8], stride: 8, transposed: &transposed, out: &mut one, cols }.run();
            assert_eq!(one, four[r * cols..(r + 1) * cols]);
            assert!((one[20] - dot(&left[8 * r..8 * r + 8], matrix.row(20))).abs() < 1e-12);
        }
    }
}
