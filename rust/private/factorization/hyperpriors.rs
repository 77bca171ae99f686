//! Learnt gamma priors: a shape for each factor, and a rate for each factor or for each of its rows.
//!
//! Entries x ~ Gamma(a, b), with a ~ Gamma(1, 1) within [1/20, 100] and b ~ Gamma(1, 1); with a rate for each row this is the
//! prior of hierarchical Poisson factorization. Given n entries that share a rate,
//!   b ~ Gamma(1 + n a, 1 + sum x),       p(a) ~ exp(-a) prod (b x)^a / Gamma(a), over all entries of the factor,
//! the latter by slice sampling of ln a. An ascent has points of both, which maximize its bound: the same with E x and E ln x, at
//! the modes b = n a / (1 + sum E x) and sum (ln b + E ln x - psi(a)) = 1. The least shape keeps entries above the least double.
//!
//! Source: P. Gopalan, J. Hofman, D. Blei (2015), Scalable recommendation with hierarchical Poisson factorization; the
//! conditionals are those of the gamma law, written out here.

use super::dispersion::slice;
use super::factor_matrix::FactorMatrix;
use super::gammas::Prior;
use crate::distributions::gamma;
use crate::numeric::special::gamma::{digamma, log_gamma};
use crate::stream::Xoshiro;

/// The bounds of ln a: shapes from 1/20 to 100.
const BOUNDS: [f64; 2] = [-2.995_732_273_553_991, 4.605_170_185_988_092];
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
struct Group {
    number: f64,
    sum: f64,
    logs: f64,
}

/// The groups of a factor; of a symmetric matrix the entries from the diagonal on.
fn groups(entries: &FactorMatrix, log: impl Fn(usize, usize) -> f64, symmetric: bool, rates: Rates) -> Vec<Group> {
    let of_row = |row: usize| {
        let own = if symmetric { row } else { 0 }..entries.width;
        let logs = own.clone().map(|k| log(row, k)).sum();
        Group { number: own.len() as f64, sum: entries.row(row)[own].iter().sum(), logs }
    };
    let rows: Vec<_> = (0..entries.rows).map(of_row).collect();
    match rates {
        Rates::Rows => rows,
        Rates::Factor => {
            let add =
                |a: Group, b: Group| Group { number: a.number + b.number, sum: a.sum + b.sum, logs: a.logs + b.logs };
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
    let draw = |group: &Group| gamma::draw(1.0 + group.number * shape, 1.0 + group.sum, rng);
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
    let [mut low, mut high] = BOUNDS;
    while high - low > 1e-14 {
        let middle = 0.5 * (low + high);
        *(if slope - 1.0 > number * digamma(middle.exp()) { &mut low } else { &mut high }) = middle;
    }
    prior.shape[0] = (0.5 * (low + high)).exp();
}

/// The number of entries, and the sum of ln b + ln x over them.
fn moments(groups: &[Group], rates: &[f64]) -> (f64, f64) {
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
