//! Parameters and their priors in unconstrained coordinates.
//!
//! A scalar is x = u, exp u, 1/(1 + exp -u) or -exp u by its support. A point of the simplex is softmax(V u) with V an
//! orthonormal basis of the vectors of sum zero (Helmert's), for which ln |J| = sum ln theta + ln(k)/2. A covariance is
//! S = diag(tau) L L' diag(tau), tau = exp u, L made row by row of the partial correlations z = tanh u:
//! L_ij = z_ij sqrt(1 - sum_{k<j} L_ik^2), ln |J| = sum ln(1 - z^2) + sum ln(1 - sum_{k<j} L_ik^2) / 2.
//!
//! Source of the latter: D. Lewandowski, D. Kurowicka, H. Joe (2009), Generating random correlation matrices based on vines
//! and extended onion method.

use super::matrix::dot;
use super::population;
use super::simplex::{helmert_transposed, simplex_pull, softmax};
use crate::numeric::special::{HALF_LOG_TWO_PI, normal};
use crate::{Error, Result};
use libm::lgamma;

/// The law of a scalar before the data.
#[expect(missing_docs, reason = "the fields have the names of the laws' parameters")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScalarPrior {
    /// Normal with a mean and a standard deviation, cut to the support.
    Normal { mean: f64, sd: f64 },
    /// The absolute value of a centred normal.
    HalfNormal { sd: f64 },
    /// Gamma with a shape and a rate.
    Gamma { shape: f64, rate: f64 },
    /// Beta.
    Beta { a: f64, b: f64 },
    /// The exponential of a normal with a mean and a standard deviation.
    LogNormal { mean: f64, sd: f64 },
}

impl ScalarPrior {
    /// The log density of a coordinate, that is with the change of variables, and its derivative.
    ///
    /// A gamma, a beta or a log-normal law is one of the coordinate itself, wherever that lies: the natural value ends at the
    /// doubles next to zero and one, where such a law may have much of its mass.
    pub fn log_density(&self, support: Support, u: f64) -> (f64, f64) {
        let (x, derivative, log_jacobian, jacobian_slope) = support.natural(u);
        let (value, slope) = match *self {
            ScalarPrior::Gamma { shape, rate } => {
                return (shape * (rate.ln() + u) - lgamma(shape) - rate * x, shape - rate * x);
            }
            ScalarPrior::Beta { a, b } => {
                // ln x and ln(1 - x)
                let less = (-u.abs()).exp().ln_1p();
                let (log, other) = (u.min(0.0) - less, (-u).min(0.0) - less);
                let slope = a * other.exp() - b * log.exp();
                return (a * log + b * other + lgamma(a + b) - lgamma(a) - lgamma(b), slope);
            }
            ScalarPrior::LogNormal { mean, sd } => {
                let z = (u - mean) / sd;
                return (-0.5 * z * z - HALF_LOG_TWO_PI - sd.ln(), -z / sd);
            }
            ScalarPrior::HalfNormal { sd } => {
                let z = x / sd;
                (-0.5 * z * z - HALF_LOG_TWO_PI - sd.ln() + std::f64::consts::LN_2, -z / sd)
            }
            ScalarPrior::Normal { mean, sd } => {
                let z = (x - mean) / sd;
                let mass = match support {
                    Support::Negative => normal::log_cdf(-mean / sd),
                    Support::Positive => normal::log_cdf(mean / sd),
                    Support::Real | Support::Unit => 0.0,
                };
                (-0.5 * z * z - HALF_LOG_TWO_PI - sd.ln() - mass, -z / sd)
            }
        };
        (value + log_jacobian, slope * derivative + jacobian_slope)
    }

    /// The scale on which the law of a positive number falls exponentially or faster, if it does: a wall in its logarithm.
    pub(super) fn wall(&self) -> Option<f64> {
        match *self {
            ScalarPrior::Normal { sd, .. } | ScalarPrior::HalfNormal { sd } => Some(sd),
            ScalarPrior::Gamma { shape, rate } => Some(shape.sqrt() / rate),
            ScalarPrior::Beta { .. } | ScalarPrior::LogNormal { .. } => None,
        }
    }

    /// A typical value.
    fn typical(&self) -> f64 {
        match *self {
            ScalarPrior::Normal { mean, .. } => mean,
            ScalarPrior::HalfNormal { sd } => 0.7 * sd,
            ScalarPrior::Gamma { shape, rate } => shape / rate,
            ScalarPrior::Beta { a, b } => a / (a + b),
            ScalarPrior::LogNormal { mean, .. } => mean.exp(),
        }
    }
}

/// Where a scalar lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// All real numbers.
    Real,
    /// Positive numbers.
    Positive,
    /// The open unit interval.
    Unit,
    /// Negative numbers.
    Negative,
}

impl Support {
    /// The natural value, its derivative by the coordinate, the log of that derivative's size and the slope of this log. Where
    /// the value would be zero, or one as the end of an interval, it is the double next to it, which has a logarithm.
    #[inline]
    pub fn natural(self, u: f64) -> (f64, f64, f64, f64) {
        match self {
            Support::Real => (u, 1.0, 0.0, 0.0),
            Support::Positive => {
                let x = u.exp().max(f64::MIN_POSITIVE);
                (x, x, u, 1.0)
            }
            Support::Negative => {
                let x = u.exp().max(f64::MIN_POSITIVE);
                (-x, -x, u, 1.0)
            }
            Support::Unit => {
                let e = (-u.abs()).exp();
                let (small, large) = (e / (1.0 + e), 1.0 / (1.0 + e));
                let x = if u >= 0.0 { large.min(1.0 - 0.5 * f64::EPSILON) } else { small.max(f64::MIN_POSITIVE) };
                (x, small * large, -u.abs() - 2.0 * e.ln_1p(), if u >= 0.0 { small - large } else { large - small })
            }
        }
    }

    /// The coordinate of a natural value.
    pub fn coordinate(self, x: f64) -> f64 {
        match self {
            Support::Real => x,
            Support::Positive => x.ln(),
            Support::Negative => (-x).ln(),
            Support::Unit => x.ln() - (-x).ln_1p(),
        }
    }
}

/// A group of natural parameters that are transformed together.
#[expect(missing_docs, reason = "the fields have the names of the parameters")]
#[derive(Clone, Debug, PartialEq)]
pub enum PriorBlock {
    /// One number.
    Scalar { support: Support, prior: ScalarPrior },
    /// Probabilities of `concentration.len()` categories under a Dirichlet law.
    Simplex { concentration: Vec<f64> },
    /// A covariance matrix: scales under one prior, correlations under LKJ(eta). Its natural values are all `d * d` entries.
    Covariance { dimension: usize, scales: ScalarPrior, eta: f64 },
    /// Numbers of `size` groups under a normal law of link(x), after the mean and the standard deviation of that law.
    Numbers { support: Support, centre: ScalarPrior, spread: ScalarPrior, size: usize },
    /// Shares of `size` groups under a Dirichlet law, after its mean and the sum of its parameters.
    Shares { concentration: Vec<f64>, strength: ScalarPrior, size: usize },
}

impl PriorBlock {
    /// The number of unconstrained coordinates.
    pub fn coordinates(&self) -> usize {
        match self {
            PriorBlock::Scalar { .. } => 1,
            PriorBlock::Simplex { concentration } => concentration.len() - 1,
            PriorBlock::Covariance { dimension, .. } => dimension * (dimension + 1) / 2,
            PriorBlock::Numbers { size, .. } => 2 + size,
            PriorBlock::Shares { concentration, size, .. } => concentration.len() + size * (concentration.len() - 1),
        }
    }

    /// The number of natural values.
    pub fn naturals(&self) -> usize {
        match self {
            PriorBlock::Scalar { .. } => 1,
            PriorBlock::Simplex { concentration } => concentration.len(),
            PriorBlock::Covariance { dimension, .. } => dimension * dimension,
            PriorBlock::Numbers { size, .. } => 2 + size,
            PriorBlock::Shares { concentration, size, .. } => concentration.len() * (size + 1) + 1,
        }
    }

    /// Scratch numbers of this block, which carry what [`Self::natural`] found to [`Self::pull`].
    pub fn scratch(&self) -> usize {
        match self {
            PriorBlock::Scalar { .. } | PriorBlock::Simplex { .. } | PriorBlock::Numbers { .. } => 0,
            PriorBlock::Covariance { dimension, .. } => 5 * dimension * dimension + dimension,
            PriorBlock::Shares { concentration, size, .. } => concentration.len() + size,
        }
    }

    /// Writes the natural values at `u`.
    pub fn natural(&self, u: &[f64], out: &mut [f64], scratch: &mut [f64]) {
        match self {
            PriorBlock::Scalar { support, .. } => out[0] = support.natural(u[0]).0,
            PriorBlock::Simplex { .. } => softmax(u, out),
            PriorBlock::Numbers { support, .. } => population::natural_numbers(*support, u, out),
            PriorBlock::Shares { concentration, .. } => population::natural_shares(concentration.len(), u, out),
            PriorBlock::Covariance { dimension, .. } => {
                let d = *dimension;
                let parts = CovarianceScratch::of(d, scratch);
                cholesky_of_correlation(d, &u[d..], parts.factor, parts.left, parts.bends);
                for i in 0..d {
                    parts.scales[i] = u[i].exp();
                    let scale = parts.scales[i];
                    let (scaled, row) = (&mut parts.product[i * d..=i * d + i], &parts.factor[i * d..=i * d + i]);
                    scaled.iter_mut().zip(row).for_each(|(scaled, entry)| *scaled = scale * entry);
                }
                for i in 0..d {
                    for j in 0..=i {
                        let sum = dot(&parts.product[i * d..=i * d + j], &parts.product[j * d..=j * d + j]);
                        out[i * d + j] = sum;
                        out[j * d + i] = sum;
                    }
                }
            }
        }
    }

    /// The coordinates of natural values.
    ///
    /// # Errors
    /// [`Error::Domain`] where a covariance is not positive definite.
    pub fn coordinates_of(&self, natural: &[f64], u: &mut [f64]) -> Result<()> {
        match self {
            PriorBlock::Scalar { support, .. } => u[0] = support.coordinate(natural[0]),
            PriorBlock::Simplex { .. } => {
                let logs: Vec<f64> = natural.iter().map(|x| x.ln()).collect();
                helmert_transposed(&logs, u);
            }
            PriorBlock::Numbers { support, .. } => population::coordinates_of_numbers(*support, natural, u),
            PriorBlock::Shares { concentration, .. } => {
                population::coordinates_of_shares(concentration.len(), natural, u)
            }
            PriorBlock::Covariance { dimension, .. } => {
                let d = *dimension;
                let mut at = d;
                for i in 0..d {
                    u[i] = 0.5 * natural[i * d + i].ln();
                }
                let scale = |i: usize| natural[i * d + i].sqrt();
                let mut factor = vec![0.0; d * d];
                for i in 0..d {
                    let mut left = 1.0f64;
                    for j in 0..i {
                        let dot: f64 = (0..j).map(|k| factor[i * d + k] * factor[j * d + k]).sum();
                        factor[i * d + j] = (natural[i * d + j] / (scale(i) * scale(j)) - dot) / factor[j * d + j];
                        u[at] = (factor[i * d + j] / left.sqrt()).atanh();
                        left -= factor[i * d + j] * factor[i * d + j];
                        at += 1;
                    }
                    Error::require(left > 0.0, "covariance", format_args!("{natural:?}"), "positive definite")?;
                    factor[i * d + i] = left.sqrt();
                }
            }
        }
        Ok(())
    }

    /// The log density of prior and change of variables at `u`, for which [`Self::natural`] has just filled `natural` and
    /// the scratch. Where gradients are given, adds to `gradient` the derivatives of that and of the likelihood, whose natural derivatives are `slope`.
    pub fn pull(
        &self,
        u: &[f64],
        natural: &[f64],
        slope_and_gradient: Option<(&[f64], &mut [f64])>,
        scratch: &mut [f64],
    ) -> f64 {
        match self {
            PriorBlock::Scalar { support, prior } => {
                let (log_prior, prior_slope) = prior.log_density(*support, u[0]);
                if let Some((slope, gradient)) = slope_and_gradient {
                    gradient[0] += slope[0] * support.natural(u[0]).1 + prior_slope;
                }
                log_prior
            }
            PriorBlock::Simplex { concentration } => simplex_pull(concentration, natural, slope_and_gradient),
            PriorBlock::Numbers { support, centre, spread, .. } => {
                population::pull_numbers(*support, [*centre, *spread], u, natural, slope_and_gradient)
            }
            PriorBlock::Shares { concentration, strength, .. } => {
                population::pull_shares(concentration, *strength, u, natural, slope_and_gradient, scratch)
            }
            PriorBlock::Covariance { dimension, scales, eta } => {
                covariance_pull(*dimension, *scales, *eta, u, slope_and_gradient, scratch)
            }
        }
    }

    /// Adds the coordinates from which a search may start.
    pub fn start(&self, u: &mut [f64]) {
        match self {
            PriorBlock::Scalar { support, prior } => {
                let x = prior.typical();
                let inside = match support {
                    Support::Real => true,
                    Support::Positive => x > 0.0,
                    Support::Negative => x < 0.0,
                    Support::Unit => x > 0.0 && x < 1.0,
                };
                u[0] = if inside { support.coordinate(x) } else { 0.0 };
            }
            PriorBlock::Simplex { .. } => u.fill(0.0),
            PriorBlock::Numbers { centre, spread, .. } => {
                u.fill(0.0);
                for (u, block) in u.chunks_exact_mut(1).zip(population::centre_and_spread(*centre, *spread)) {
                    block.start(u);
                }
            }
            PriorBlock::Shares { concentration, strength, .. } => {
                u.fill(0.0);
                u[concentration.len() - 1] = strength.typical().max(f64::MIN_POSITIVE).ln();
            }
            PriorBlock::Covariance { dimension, scales, .. } => {
                u.fill(0.0);
                u[..*dimension].fill((0.2 * scales.typical()).ln());
            }
        }
    }
}

/// The scratch of a covariance.
struct CovarianceScratch<'a> {
    /// The Cholesky factor of the correlations.
    factor: &'a mut [f64],
    /// What of a row's unit length is left before each column.
    left: &'a mut [f64],
    /// Partial correlations z below the diagonal, 1 - z^2 above it.
    bends: &'a mut [f64],
    product: &'a mut [f64],
    adjoint: &'a mut [f64],
    scales: &'a mut [f64],
}

impl<'a> CovarianceScratch<'a> {
    fn of(d: usize, scratch: &'a mut [f64]) -> Self {
        let (factor, rest) = scratch.split_at_mut(d * d);
        let (left, rest) = rest.split_at_mut(d * d);
        let (bends, rest) = rest.split_at_mut(d * d);
        let (product, rest) = rest.split_at_mut(d * d);
        let (adjoint, scales) = rest.split_at_mut(d * d);
        Self { factor, left, bends, product, adjoint, scales }
    }
}

/// The Cholesky factor of a correlation matrix from its partial correlations' coordinates.
fn cholesky_of_correlation(d: usize, u: &[f64], factor: &mut [f64], left: &mut [f64], bends: &mut [f64]) {
    let mut at = 0;
    factor.fill(0.0);
    for i in 0..d {
        let mut rest = 1.0f64;
        for j in 0..i {
            // tanh u and 1 - tanh^2 u from e^(-2|u|), without cancellation.
            let less = (-2.0 * u[at].abs()).exp_m1();
            let share = 1.0 / (2.0 + less);
            let z = (-less * share).copysign(u[at]);
            let bend = 4.0 * (1.0 + less) * share * share;
            bends[i * d + j] = z;
            bends[j * d + i] = bend;
            left[i * d + j] = rest;
            factor[i * d + j] = z * rest.sqrt();
            rest *= bend;
            at += 1;
        }
        left[i * d + i] = rest;
        factor[i * d + i] = rest.sqrt();
    }
}

/// The log of the normalizer of LKJ(eta) on d x d correlations.
fn log_lkj(d: usize, eta: f64) -> f64 {
    let edge = (d - 1) as f64;
    let mut value = edge * lgamma(eta + 0.5 * edge);
    for k in 1..d {
        let k = k as f64;
        value -= 0.5 * k * std::f64::consts::PI.ln() + lgamma(eta + 0.5 * (edge - k));
    }
    value
}

fn covariance_pull(
    d: usize,
    scales: ScalarPrior,
    eta: f64,
    u: &[f64],
    slope_and_gradient: Option<(&[f64], &mut [f64])>,
    scratch: &mut [f64],
) -> f64 {
    let CovarianceScratch { factor, left, bends, product, adjoint, scales: tau } = CovarianceScratch::of(d, scratch);
    let mut value = log_lkj(d, eta);
    for i in 0..d {
        value += scales.log_density(Support::Positive, u[i]).0;
    }
    // ln(1 - z^2) is in the change of variables itself and in ln left of all later columns of its row, of which the last,
    // the diagonal, has LKJ's power of L_ii, d - i - 1 + 2 eta - 2 with i from 0.
    let power = |i: usize| ((d - i - 1) as f64 + 2.0 * eta - 2.0) * 0.5;
    let mut at = d;
    for i in 0..d {
        for j in 0..i {
            value -= 2.0 * log_cosh(u[at]) * (1.0 + 0.5 * (i - j - 1) as f64 + power(i));
            at += 1;
        }
    }
    let Some((slope, gradient)) = slope_and_gradient else { return value };
    // S = A A', A = diag(tau) L: dA = 2 G A, G symmetric.
    for i in 0..d {
        let row = &mut adjoint[..d];
        row.fill(0.0);
        for k in 0..d {
            let weight = 2.0 * slope[i * d + k] * tau[k];
            for (sum, entry) in row.iter_mut().zip(&factor[k * d..=k * d + k]) {
                *sum += weight * entry;
            }
        }
        product[i * d..=i * d + i].copy_from_slice(&row[..=i]);
    }
    for i in 0..d {
        let tau = tau[i];
        let sum = dot(&product[i * d..=i * d + i], &factor[i * d..=i * d + i]);
        gradient[i] += tau * sum + scales.log_density(Support::Positive, u[i]).1;
        for j in 0..=i {
            adjoint[i * d + j] = tau * product[i * d + j];
        }
    }
    // Back along each row: left_(j+1) = left_j (1 - z_j^2), L_ij = z_j sqrt(left_j), L_ii = sqrt(left_i).
    let mut at = d + d * (d - 1) / 2;
    for i in (0..d).rev() {
        let rest = left[i * d + i];
        // The adjoint of ln left, which stays finite where left vanishes.
        let mut by_log = adjoint[i * d + i] * 0.5 * rest.sqrt() + if i > 0 { power(i) } else { 0.0 };
        for j in (0..i).rev() {
            at -= 1;
            let (z, bend) = (bends[i * d + j], bends[j * d + i]);
            let root = left[i * d + j].sqrt();
            // dz/du = 1 - z^2, d ln(1 - z^2)/du = -2 z.
            gradient[at] += adjoint[i * d + j] * root * bend - 2.0 * z * (by_log + 1.0);
            by_log += 0.5 * adjoint[i * d + j] * z * root + 0.5;
        }
    }
    value
}

fn log_cosh(x: f64) -> f64 {
    let y = x.abs();
    y + (-2.0 * y).exp().ln_1p() - std::f64::consts::LN_2
}
