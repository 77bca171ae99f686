//! The papers' schemes, which keep auxiliary variables of the noise of a cell: a sampler, and an ascent of expectations.
//!
//! Noise is the difference g+ - g- of two geometric counts, each Poisson given an exponential rate l+ or l-. Then
//! o = (y + g+) - g- is Skellam, and the smaller of its two counts has a Bessel law:
//!   l+- ~ Gamma(1 + g+-, rate 1/alpha),   m ~ Bessel(|o|, 2 sqrt(l- (l+ + mu))),
//!   y + g+ = m + max(o, 0),   g- = m + max(-o, 0),   y ~ Binomial(y + g+, mu / (mu + l+)).
//!
//! The sampler, [`Auxiliary`], draws from these four conditionals. The ascent, [`augmented`], has gamma laws of l+ and l-,
//! with E ln l = ln alpha + psi(1 + E g) in place of ln l, and the mean or the mode of m in place of m. The printed ascent
//! takes the mode at 2 sqrt(G[l-] G[l+ + mu]), the second factor by the delta method, ln E - Var / (2 E^2).
//!
//! Source: A. Schein et al. (2019), sections 4 and 5 of the appendix (equations 18 to 26); the ascents: the variational
//! paper of the same authors, with the corrections of `docs/mathematics/factorization.md`.

use super::allocation::Ratios;
use super::factor_matrix::FactorMatrix;
use super::gammas::{Gammas, divergence};
use super::row::{HELD_OUT, Row};
use super::split::binomial;
use crate::Result;
use crate::distributions::bessel::{Address, draw_many};
use crate::distributions::{Bessel, Distribution as _, gamma};
use crate::numeric::special::gamma::digamma;
use crate::numeric::special::log_factorial;
use crate::stream::Xoshiro;
use rand_distr::{Distribution, Exp1};

/// Up to here a gamma variable of whole shape is a sum of exponentials, which are cheaper.
const FEW: u32 = 4;

/// What the cells of a row keep between the steps of their draw.
#[derive(Clone, Debug)]
pub struct Auxiliary {
    plus: Vec<f64>,
    orders: Vec<f64>,
    arguments: Vec<f64>,
    smaller: Vec<i64>,
}

impl Auxiliary {
    /// For rows of so many columns.
    pub fn new(cols: usize) -> Self {
        Self { plus: vec![0.0; cols], orders: vec![0.0; cols], arguments: vec![0.0; cols], smaller: vec![0; cols] }
    }

    /// Draws the rates of the noise and then the smaller Skellam counts of all cells of a row.
    ///
    /// # Errors
    /// None that rates and releases below 2^31 could cause.
    #[inline(always)]
    pub fn draw_row(
        &mut self,
        data: &Row<'_>,
        rates: &[f64],
        ratios: &Ratios<'_>,
        noise: &[[u32; 2]],
        address: Address,
        rng: &mut Xoshiro,
    ) -> Result<()> {
        for (column, &code) in data.codes.iter().enumerate() {
            let alpha = ratios.at(column);
            if code == HELD_OUT || alpha == 0.0 {
                (self.orders[column], self.arguments[column]) = (0.0, 0.0);
                continue;
            }
            let [plus, minus] = noise[column].map(|count| alpha * standard_gamma(count, rng));
            self.plus[column] = plus;
            self.orders[column] = data.value(column, code).unsigned_abs() as f64;
            self.arguments[column] = 2.0 * (minus * (plus + rates[column])).sqrt();
        }
        draw_many(&self.orders, &self.arguments, address, 0, &mut self.smaller)
    }

    /// The count of a cell of a row that has been drawn; leaves the new noise in its place.
    #[inline(always)]
    pub fn count(&self, column: usize, released: i64, rate: f64, noise: &mut [u32; 2], rng: &mut Xoshiro) -> u64 {
        let smaller = self.smaller[column] as u64;
        let sum = smaller + released.max(0) as u64;
        let chance = rate / (rate + self.plus[column]);
        let count = match sum {
            0 => 0,
            1 => u64::from(crate::distributions::RandomSource::uniform(rng) < chance),
            _ => binomial(sum, chance, rng),
        };
        *noise = [narrow(sum - count), narrow(smaller + released.min(0).unsigned_abs())];
        count
    }
}

/// A gamma variable of shape `1 + count` and rate one.
#[inline(always)]
fn standard_gamma(count: u32, rng: &mut Xoshiro) -> f64 {
    if count < FEW {
        let exponentials = (0..=count).map(|_| {
            let exponential: f64 = Exp1.sample(rng);
            exponential
        });
        return exponentials.sum();
    }
    gamma::draw(1.0 + f64::from(count), 1.0, rng)
}

/// The callers see to it that releases and rates are below 2^31, so that nothing is cut.
fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// What an ascent keeps of the noise of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Augmentation {
    /// Nothing besides: the noise is summed out.
    Collapsed,
    /// Rates of the noise, and the mean of the Bessel law.
    BesselMean,
    /// The mode of the Bessel law instead.
    BesselMode,
    /// The mode, at the printed argument.
    Published,
}

/// Expected counts of noise of a cell, `[g+, g-]`.
pub type NoiseCounts = [f64; 2];

/// Means, squared means and second moments of the factors, for the delta method.
pub type FactorMoments = [Vec<FactorMatrix>; 3];

/// The [`FactorMoments`] of factors of these laws.
pub fn moments(factors: &[Gammas]) -> FactorMoments {
    let second = |shape: f64, rate: f64| shape * (shape + 1.0) / (rate * rate);
    [
        factors.iter().map(Gammas::means).collect(),
        factors.iter().map(|gammas| gammas.map(|shape, rate| (shape / rate) * (shape / rate))).collect(),
        factors.iter().map(|gammas| gammas.map(second)).collect(),
    ]
}

/// The cell's expected count, with its part of the bound before the update of `noise`.
pub fn augmented(
    augmentation: Augmentation,
    released: i64,
    rate: f64,
    alpha: f64,
    noise: &mut NoiseCounts,
    moments: Option<[f64; 2]>,
) -> (f64, f64) {
    let order = released.unsigned_abs() as f64;
    let shapes = noise.map(|count| 1.0 + count);
    let [plus, minus] = shapes.map(|shape| alpha * digamma(shape).exp());
    let argument = 2.0 * (minus * (plus + rate)).sqrt();
    let law = Bessel::unchecked(order, argument);
    let (smaller, normalizer) = match augmentation {
        Augmentation::BesselMean | Augmentation::Collapsed => {
            // ln I = order ln(a/2) - ln order! - ln p(0)
            (law.mean(), order * (0.5 * argument).ln() - log_factorial(order) - law.log_mass(0.0))
        }
        Augmentation::BesselMode | Augmentation::Published => {
            let mode = match moments {
                Some([mean, variance]) => {
                    let (mean, variance) = (mean + alpha * shapes[0], variance + alpha * alpha * shapes[0]);
                    let printed = (mean.ln() - 0.5 * variance / (mean * mean)).exp();
                    Bessel::unchecked(order, 2.0 * (minus * printed).sqrt()).mode()
                }
                None => law.mode(),
            };
            let logs = (2.0 * mode + order) * (0.5 * argument).ln();
            (mode, logs - log_factorial(mode) - log_factorial(mode + order))
        }
    };
    let prior = (1.0, (1.0 - alpha) / alpha);
    let shared: f64 =
        shapes.iter().map(|&shape| alpha * shape + divergence((shape, 1.0 / alpha), digamma(shape), prior)).sum();
    let bound = normalizer + 0.5 * released as f64 * ((plus + rate) / minus).ln() - shared;
    let sum = smaller + released.max(0) as f64;
    let mean = sum * (rate / (rate + plus));
    *noise = [sum - mean, smaller + released.min(0).unsigned_abs() as f64];
    (mean, bound)
}
