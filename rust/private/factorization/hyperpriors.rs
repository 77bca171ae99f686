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

use super::dispersion::slice;
use super::factor_matrix::FactorMatrix;
use super::gammas::{Gammas, Prior};
use crate::distributions::{chinese_restaurant, gamma};
use crate::numeric::special::gamma::{digamma, log_gamma};
use crate::stream::Xoshiro;

/// The bounds of ln a: shapes from 1/20 to 100.
const BOUNDS: [f64; 2] = [-2.995_732_273_553_991, 4.605_170_185_988_092];
/// The bounds of ln eta in an ascent: exp psi(1/500), 1e-217, is a double yet.
const CONCENTRATIONS: [f64; 2] = [-6.214_608_098_422_191, 4.605_170_185_988_092];
/// The width of a slice of ln a before it is stepped out, for one entry; for n of them it is a root of n less.
const WIDTH: f64 = 3.0;

/// What has a rate of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rates {
    /// Each factor.
    Factor,
    /// Each row of a factor.
    Rows,
}

/// What the conditionals of a prior ask of the entries that share a rate: their number, and sums of x and of ln x.
struct SharedRate {
    number: f64,
    sum: f64,
    logs: f64,
}

/// The groups of a factor; of a symmetric matrix the entries from the diagonal on.
fn groups(entries: &FactorMatrix, log: impl Fn(usize, usize) -> f64, symmetric: bool, rates: Rates) -> Vec<SharedRate> {
    let of_row = |row: usize| {
        let own = if symmetric { row } else { 0 }..entries.width;
        let logs = own.clone().map(|k| log(row, k)).sum();
        SharedRate { number: own.len() as f64, sum: entries.row(row)[own].iter().sum(), logs }
    };
    let rows: Vec<_> = (0..entries.rows).map(of_row).collect();
    match rates {
        Rates::Rows => rows,
        Rates::Factor => {
            let add = |a: SharedRate, b: SharedRate| SharedRate {
                number: a.number + b.number,
                sum: a.sum + b.sum,
                logs: a.logs + b.logs,
            };
            rows.into_iter().reduce(add).into_iter().collect()
        }
    }
}

/// Puts the rates of groups into a prior.
fn set_rates(prior: &mut Prior, found: &[f64], width: usize, rates: Rates) {
    prior.rate = match rates {
        Rates::Factor => found.to_vec(),
        Rates::Rows => found.iter().flat_map(|&rate| std::iter::repeat_n(rate, width)).collect(),
    };
}

/// Redraws the prior of a factor given its entries.
pub fn redraw(prior: &mut Prior, entries: &FactorMatrix, symmetric: bool, rates: Rates, rng: &mut Xoshiro) {
    let log = |row: usize, k: usize| entries.row(row)[k].max(f64::MIN_POSITIVE).ln();
    let groups = groups(entries, log, symmetric, rates);
    let shape = prior.shape[0];
    let draw = |group: &SharedRate| gamma::draw(1.0 + group.number * shape, 1.0 + group.sum, rng);
    let found: Vec<f64> = groups.iter().map(draw).collect();
    set_rates(prior, &found, entries.width, rates);
    let (number, slope) = moments(&groups, &found);
    // In ln a, whose measure adds ln a.
    let density = |log: f64| log - log.exp() + slope * log.exp() - number * log_gamma(log.exp());
    prior.shape[0] = slice(shape.ln(), WIDTH / (1.0 + number).sqrt(), BOUNDS, density, rng).exp();
}

/// Sets the prior of a factor where the bound is largest, given expectations of its entries and of their logarithms.
pub fn maximize(prior: &mut Prior, means: &FactorMatrix, geometric: &FactorMatrix, symmetric: bool, rates: Rates) {
    let groups = groups(means, |row, k| geometric.row(row)[k].ln(), symmetric, rates);
    let found: Vec<f64> = groups.iter().map(|group| group.number * prior.shape[0] / (1.0 + group.sum)).collect();
    set_rates(prior, &found, means.width, rates);
    let (number, slope) = moments(&groups, &found);
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

/// The number of entries, and the sum of ln b + ln x over them.
fn moments(groups: &[SharedRate], rates: &[f64]) -> (f64, f64) {
    let each = groups.iter().zip(rates);
    each.fold((0.0, 0.0), |(number, slope), (group, rate)| {
        (number + group.number, slope + group.number * rate.ln() + group.logs)
    })
}

/// The log-density of the hyperpriors at a prior.
pub fn log_density(prior: &Prior, width: usize, rates: Rates) -> f64 {
    let step = if rates == Rates::Rows { width } else { 1 };
    -prior.shape[0] - prior.rate.iter().step_by(step).sum::<f64>()
}
