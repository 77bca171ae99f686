//! Rates of whole rows, and the log-likelihood of a table given its factors.
//!
//! mu_rv = sum_k u_rk R_vk for a row r, all columns v and components k; the likelihood sums [`super::cell::log_likelihood`]
//! over the observed cells. Source: A. Schein et al. (2019), the model of section 2, with the noise summed out.

use super::cell::log_likelihood;
use super::collapsed::CollapsedRow;
use super::dispersion::Dispersion;
use super::factor_matrix::{FactorMatrix, ROWS};
use super::model::Model;
use super::negative_binomial::Masses;
use super::products::{Panels, TILE, tile_of};
use super::released_counts::{Alpha, ReleasedCounts};
use super::row::HELD_OUT;
use crate::distributions::LARGEST;
use crate::monitor::{Monitor, Progress};
use crate::numeric::dispatch::{Level, level};
use crate::numeric::exact_sum::{self, LIMBS};
use crate::numeric::floats::float_work;
use crate::{Error, Result, parallel};
use std::ops::Range;

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
    Error::require_all(rates, |rate| (0.0..=LARGEST).contains(&rate), "rates", "in [0, 2^53]")?;
    let mut out = vec![0.0; rates.len()];
    let cols = table.cols().max(1);
    parallel::run(threads, table.rows() as u64, monitor, |progress| {
        parallel::pieces(
            &mut out,
            cols,
            || (),
            |(), row, out| {
                for (column, (out, &rate)) in out.iter_mut().zip(&rates[row * cols..]).enumerate() {
                    *out = cell(row, column, rate);
                    // Where the noise is wide, a cell alone sums millions of masses.
                    progress.check()?;
                }
                progress.advance(1)
            },
        )
    })?;
    Ok(out)
}

/// The rates of the cells of some rows, row by row.
///
/// # Errors
/// [`Error::Interrupted`]
pub fn rates_of(model: &Model, factors: &[FactorMatrix], of: Range<usize>, progress: &Progress) -> Result<Vec<f64>> {
    let right = model.right(factors);
    let panels = Panels::new(right);
    let (level, cols) = (level(), right.rows);
    let mut all = vec![0.0; of.len() * cols];
    let size = tile_of(cols);
    let fill = |(): &mut (), tile: usize, out: &mut [f64]| {
        let rows = of.start + tile * size..of.end.min(of.start + (tile + 1) * size);
        let number = rows.len() as u64;
        panels.rates(level, &lefts(model, factors, rows), right.stride, out);
        progress.advance(number)
    };
    let tile = (size * cols).max(1);
    parallel::pieces(&mut all, tile, || (), fill)?;
    Ok(all)
}

/// The weights of some rows, one after the other.
fn lefts(model: &Model, factors: &[FactorMatrix], rows: Range<usize>) -> Vec<f64> {
    let stride = model.right(factors).stride;
    let mut lefts = vec![0.0; rows.len() * stride];
    rows.zip(lefts.chunks_exact_mut(stride)).for_each(|(row, left)| model.left(factors, row, left));
    lefts
}

/// The log-likelihood of the observed cells given factors, and shapes where counts are overdispersed.
///
/// # Errors
/// [`Error::Interrupted`]
pub fn total(
    model: &Model,
    laws: (&[FactorMatrix], Option<&Dispersion>),
    table: &ReleasedCounts,
    progress: &Progress,
) -> Result<f64> {
    Ok(exact_sum::value(&exact_total(model, laws, table, progress)?))
}

/// The same unrounded: sums of rows, added up in order in each block of [`ROWS`], and those of the blocks exactly.
///
/// # Errors
/// [`Error::Interrupted`]
pub fn exact_total(
    model: &Model,
    (factors, dispersion): (&[FactorMatrix], Option<&Dispersion>),
    table: &ReleasedCounts,
    progress: &Progress,
) -> Result<Vec<i64>> {
    let right = model.right(factors);
    let panels = Panels::new(right);
    let level = level();
    let size = tile_of(right.rows);
    let tile_totals = |tile: usize| {
        progress.check()?;
        let rows = tile * size..table.rows().min((tile + 1) * size);
        let mut rates = vec![0.0; rows.len() * right.rows];
        panels.rates(level, &lefts(model, factors, rows.clone()), right.stride, &mut rates);
        let mut totals = [0.0; TILE];
        for ((row, rates), total) in rows.zip(rates.chunks_exact_mut(right.rows.max(1))).zip(&mut totals) {
            *total = of_row(table, row, rates, dispersion, level);
        }
        Ok(totals)
    };
    // One number a row, added up in the order of rows: not in that of threads.
    let tiles = table.rows().div_ceil(size);
    let found = parallel::try_map(tiles, tile_totals)?;
    let totals: Vec<f64> = found.iter().flat_map(|totals| &totals[..size]).copied().collect();
    let mut sum = vec![0; LIMBS];
    totals[..table.rows()].chunks(ROWS).for_each(|block| exact_sum::add(&mut sum, block.iter().sum()));
    Ok(sum)
}

/// The log-likelihood of a row of these rates, which are spoiled.
fn of_row(table: &ReleasedCounts, row: usize, rates: &mut [f64], dispersion: Option<&Dispersion>, level: Level) -> f64 {
    let data = table.row(row);
    if let Some(dispersion) = dispersion {
        let (shapes, mut masses) = (dispersion.in_row(row), Masses::default());
        let observed = data.codes.iter().enumerate().filter(|(_, code)| **code != HELD_OUT);
        let cell = |(column, code): (usize, &i8)| {
            let alpha = table.alpha_at(row * table.cols() + column);
            masses.moments(data.value(column, *code), rates[column], shapes.at(column), alpha).log_likelihood
        };
        return observed.map(cell).sum();
    }
    if let Alpha::One(alpha) = *table.alpha()
        && alpha > 0.0
    {
        let columns = data.codes.iter().zip(&*rates).filter(|(code, _)| **code != HELD_OUT);
        let sum: f64 = columns.map(|(_, rate)| rate).sum();
        let positive = table.positive_cells().row(row);
        return float_work(level, CollapsedRow { data, positive, alpha, rates, logarithms: true }) - sum;
    }
    let observed = data.codes.iter().enumerate().filter(|(_, code)| **code != HELD_OUT);
    let cell = |(column, code): (usize, &i8)| {
        let alpha = table.alpha_at(row * table.cols() + column);
        log_likelihood(data.value(column, *code), rates[column], alpha)
    };
    observed.map(cell).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::time::Duration;

    #[test]
    fn a_stop_is_heard_within_a_row() {
        let (cols, looked_at) = (100_000, AtomicUsize::new(0));
        let table = ReleasedCounts::new(&vec![0; cols], 1, cols, Alpha::One(0.5), None).unwrap();
        let slow = |_, _, rate| {
            looked_at.fetch_add(1, Relaxed);
            std::thread::sleep(Duration::from_millis(1));
            rate
        };
        let found = map_rates(&table, &vec![1.0; cols], 1, &mut |_, _| looked_at.load(Relaxed) < 10, slow);
        assert!(matches!(found, Err(Error::Interrupted)));
        assert!(looked_at.into_inner() < cols / 10);
    }
}
