//! Learnt priors: a shape for each factor, and a rate for each factor or for each of its rows; concentrations of Dirichlet laws.
//!
//! Entries x ~ Gamma(a, b), with a ~ Gamma(1, 1) within [1/20, 100] and b ~ Gamma(1, 1); with a rate for each row this is the
//! prior of hierarchical Poisson factorization. Given n entries that share a rate,
//!   b ~ Gamma(1 + n a, 1 + sum x),       p(a) ~ exp(-a) prod (b x)^a / Gamma(a), over all entries of the factor,
//! the latter by slice sampling of ln a. An ascent has points of both, which maximize its bound: the same with E x and E ln x, at
//! the modes b = n a / (1 + sum E x) and sum (ln b + E ln x - psi(a)) = 1. The least shape keeps entries above the least double.
//!
//! A Dirichlet prior has one concentration for all entries, eta ~ Gamma(1, 1), of which the counts n_vk tell with the components
//! summed out: with q_k ~ Beta(V eta, n_.k) and tables l_vk ~ CRT(n_vk, eta),
//!   eta ~ Gamma(1 + sum l, 1 - V sum_k ln q_k),
//! before the components are drawn. An ascent's eta is the mode sum (psi(V eta) - psi(eta) + E ln phi) = 1, from 1/500 on.
//!
//! Sources: P. Gopalan, J. Hofman, D. Blei (2015), Scalable recommendation with hierarchical Poisson factorization; M. Zhou,
//! L. Carin (2015), Negative binomial process count and mixture modeling (Dirichlet-multinomials by tables); the other
//! conditionals are those of the gamma law, written out here.

use super::dispersion::{each, slice};
use super::factor_matrix::{FactorMatrix, ROWS};
use super::gammas::{Gammas, Prior};
use crate::distributions::{chinese_restaurant, gamma};
use crate::numeric::exact_sum::{self, LIMBS};
use crate::numeric::special::gamma::{digamma, log_gamma};
use crate::stream::Xoshiro;

/// The bounds of ln a: shapes from 1/20 to 100.
const BOUNDS: [f64; 2] = [-2.995_732_273_553_991, 4.605_170_185_988_092];
/// The bounds of ln eta in an ascent: exp psi(1/500), 1e-217, is a double yet.
const CONCENTRATIONS: [f64; 2] = [-6.214_608_098_422_191, 4.605_170_185_988_092];
/// The width of a slice of ln a before it is doubled, for one entry; for n of them it is a root of n less.
const WIDTH: f64 = 3.0;

/// What has a rate of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rates {
    /// Each factor.
    Factor,
    /// Each row of a factor.
    Rows,
}

/// Numbers that hold what entries say of the prior that they share: how many there are, the sum of x, and the sum of ln b + ln x
/// with the rate b of their row, if it has one. Sums over blocks of rows are added without rounding, so that parts of a factor
/// which begin at a block add up to the whole.
pub const PRIOR_SUMS: usize = 3 * LIMBS;

/// Those sums, and the rate of each row given how many entries it has and their sum; none if rows have no rates of their own.
fn sums_over_rows(
    entries: &FactorMatrix,
    log: impl Fn(usize, usize) -> f64,
    symmetric: bool,
    mut rate: impl FnMut(usize, f64, f64) -> Option<f64>,
) -> (Vec<i64>, Vec<f64>) {
    let (mut sums, mut found) = (vec![0; PRIOR_SUMS], vec![]);
    for first in (0..entries.rows).step_by(ROWS) {
        let mut of_block = [0.0; 3];
        for row in first..entries.rows.min(first + ROWS) {
            // Of a symmetric matrix the entries from the diagonal on.
            let own = if symmetric { row } else { 0 }..entries.width;
            let (number, sum) = (own.len() as f64, entries.row(row)[own.clone()].iter().sum());
            let rate = rate(row, number, sum);
            let logs: f64 = own.map(|k| log(row, k)).sum();
            let scale = rate.map_or(0.0, |rate| number * rate.ln());
            of_block.iter_mut().zip([number, sum, scale + logs]).for_each(|(total, x)| *total += x);
            found.extend(rate);
        }
        sums.chunks_exact_mut(LIMBS).zip(of_block).for_each(|(sum, x)| exact_sum::add(sum, x));
    }
    (sums, found)
}

/// Puts the rates of rows into a prior, if there are any.
fn set_rates(prior: &mut Prior, found: &[f64], width: usize) {
    if !found.is_empty() {
        prior.rate = found.iter().flat_map(|&rate| std::iter::repeat_n(rate, width)).collect();
    }
}

/// Redraws the rates of the rows of a factor given its entries, if rows have rates of their own, from words of each; returns what
/// the rest of the prior is redrawn by.
pub fn redraw_rows(
    prior: &mut Prior,
    entries: &FactorMatrix,
    symmetric: bool,
    rates: Rates,
    words: impl Fn(usize) -> Xoshiro,
) -> Vec<i64> {
    let shape = prior.shape[0];
    let log = |row: usize, k: usize| entries.row(row)[k].max(f64::MIN_POSITIVE).ln();
    let (sums, found) = sums_over_rows(entries, log, symmetric, |row, number, sum| {
        (rates == Rates::Rows).then(|| gamma::draw(1.0 + number * shape, 1.0 + sum, &mut words(row)))
    });
    set_rates(prior, &found, entries.width);
    sums
}

/// Redraws what all entries of a factor share of their prior, given the sums over its rows.
pub fn redraw(prior: &mut Prior, sums: &[i64], rates: Rates, rng: &mut Xoshiro) {
    let shape = prior.shape[0];
    let [number, sum, mut slope] = std::array::from_fn(|i| exact_sum::value(&sums[i * LIMBS..][..LIMBS]));
    if rates == Rates::Factor {
        prior.rate = vec![gamma::draw(1.0 + number * shape, 1.0 + sum, rng)];
        slope += number * prior.rate[0].ln();
    }
    // In ln a, whose measure adds ln a.
    let density = |log: f64| log - log.exp() + slope * log.exp() - number * log_gamma(log.exp());
    prior.shape[0] = slice::<1>(shape.ln(), WIDTH / (1.0 + number).sqrt(), BOUNDS, each(density), rng).exp();
}

/// Sets the rates of the rows of a factor where the bound is largest, given expectations of its entries and of their logarithms;
/// as [`redraw_rows`].
pub fn maximize_rows(
    prior: &mut Prior,
    means: &FactorMatrix,
    geometric: &FactorMatrix,
    symmetric: bool,
    rates: Rates,
) -> Vec<i64> {
    let shape = prior.shape[0];
    let log = |row: usize, k: usize| geometric.row(row)[k].ln();
    let (sums, found) = sums_over_rows(means, log, symmetric, |_, number, sum| {
        (rates == Rates::Rows).then(|| number * shape / (1.0 + sum))
    });
    set_rates(prior, &found, means.width);
    sums
}

/// Sets what all entries of a factor share of their prior where the bound is largest, given the sums over its rows.
pub fn maximize(prior: &mut Prior, sums: &[i64], rates: Rates) {
    let [number, sum, mut slope] = std::array::from_fn(|i| exact_sum::value(&sums[i * LIMBS..][..LIMBS]));
    if rates == Rates::Factor {
        prior.rate = vec![number * prior.shape[0] / (1.0 + sum)];
        slope += number * prior.rate[0].ln();
    }
    prior.shape[0] = root(BOUNDS, |shape| slope - 1.0 - number * digamma(shape));
}

/// Where a falling function of a positive number changes its sign, between bounds of its logarithm.
fn root([mut low, mut high]: [f64; 2], falling: impl Fn(f64) -> f64) -> f64 {
    while high - low > 1e-14 {
        let middle = 0.5 * (low + high);
        *(if falling(middle.exp()) > 0.0 { &mut low } else { &mut high }) = middle;
    }
    (0.5 * (low + high)).exp()
}

/// Redraws the concentration of Dirichlet laws over rows given the counts of their entries, padded to a stride.
pub fn redraw_concentration(prior: &mut Prior, counts: &[u64], [rows, width, stride]: [usize; 3], rng: &mut Xoshiro) {
    let (concentration, all) = (prior.shape[0], prior.shape[0] * rows as f64);
    let (mut tables, mut exposure) = (0, 0.0);
    for k in 0..width {
        let counts = counts.iter().skip(k).step_by(stride);
        exposure += chinese_restaurant::exposure(counts.clone().sum(), all, rng);
        tables += counts.map(|&count| chinese_restaurant::draw(count, concentration, rng)).sum::<u64>();
    }
    prior.shape[0] = gamma::draw(1.0 + tables as f64, 1.0 + rows as f64 * exposure, rng);
}

/// Sets that concentration where the bound is largest, given the laws and the digammas of their shapes.
pub fn maximize_concentration(prior: &mut Prior, laws: &Gammas, digammas: &FactorMatrix) {
    let (rows, width) = (laws.shape.rows as f64, laws.shape.width);
    let of_sums: f64 = laws.shape.sums()[..width].iter().map(|&sum| digamma(sum)).sum();
    let logs = digammas.padded().iter().sum::<f64>() - rows * of_sums;
    let entries = rows * width as f64;
    let slope = |eta: f64| entries * (digamma(rows * eta) - digamma(eta)) + logs - 1.0;
    prior.shape[0] = root(CONCENTRATIONS, slope);
}

/// The log-density of the hyperpriors at a prior.
pub fn log_density(prior: &Prior, width: usize, rates: Rates) -> f64 {
    let step = if rates == Rates::Rows { width } else { 1 };
    -prior.shape[0] - prior.rate.iter().step_by(step).sum::<f64>()
}
