//! The family p(x) ~ g(x) exp(h1 x + h2 x^2) on an interval, g a polynomial positive there, released with normal noise.
//!
//! The integral over x of g(x) exp(h0 + h1 x + h2 x^2) N(z; x, s^2) has a quadratic exponent: where it is concave, Gauss and
//! Legendre's rule with 48 points on the part of the interval within exp(-50) of its peak is exact to rounding, in any tail.
//! The derivative of its logarithm in (h1, h2) is the mean of (x, x^2) under it; that of the normalizer, the same without noise.
//! A clipped number has atoms at the bounds beside: three pieces, with masses q_j and means m_j of the statistic before and s_k,
//! M_k after the release is known. The derivative sum s_k M_k - sum q_j m_j is taken as the sum of s_k q_j (M_k - m_j), where
//! nothing cancels if one atom has nearly all of the mass.
//!
//! Source: T. Kulkarni et al., lemma 3.2, whose proof divides h by 2 s^2.

use super::Likelihood;
use super::condensed::condensed;
use super::matrix::gauss_rule;
use crate::numeric::special::HALF_LOG_TWO_PI;
use crate::{Error, Result};
use std::sync::{Arc, LazyLock};

/// Nodes of the rule of Gauss and Legendre: what is left of an integrand above e^-[`DEPTH`] they integrate to rounding.
const POINTS: usize = 48;
/// An integrand ends where it has fallen by e^-50 from its maximum, 2e-22 of it.
const DEPTH: f64 = 50.0;

/// Nodes and weights on [-1, 1].
pub static LEGENDRE: LazyLock<[[f64; 2]; POINTS]> = LazyLock::new(|| {
    let beside = |k: usize| {
        let square = (k * k) as f64;
        (square / (4.0 * square - 1.0)).sqrt()
    };
    gauss_rule(beside).map(|[node, weight]| [node, 2.0 * weight])
});

/// The logarithm of the integral of g(x) exp(c + b x + a x^2) over (left, right) and the means of x and x^2; minus infinity
/// for an empty interval.
fn integral(g: &[f64], a: f64, b: f64, c: f64, left: f64, right: f64) -> Result<[f64; 3]> {
    if !(left < right) {
        return Ok([f64::NEG_INFINITY, 0.0, 0.0]);
    }
    let exponent = |x: f64| c + x * (b + a * x);
    let mut pieces = Vec::with_capacity(24);
    let peak;
    if a < 0.0 {
        let spread = -0.5 / a;
        let top = (b * spread).clamp(left, right);
        peak = exponent(top);
        // From the top, kappa y + y^2 / (2 spread) = DEPTH.
        let slope = (b + 2.0 * a * top).abs();
        let reach = 2.0 * DEPTH / (slope + (slope * slope + 2.0 * DEPTH / spread).sqrt());
        pieces.push((left.max(top - reach), right.min(top + reach)));
    } else {
        let requirement = "such that the density has an integral: h2 below 1/(2 noise_sd^2) where an end is infinite";
        Error::require(left.is_finite() && right.is_finite(), "h", a, requirement)?;
        peak = exponent(left).max(exponent(right));
        pieces.extend((0..24).map(|k| {
            let at = |k: usize| left + (right - left) * k as f64 / 24.0;
            (at(k), at(k + 1))
        }));
    }
    let mut sums = [0.0; 3];
    for (from, to) in pieces {
        let (centre, half) = (0.5 * (from + to), 0.5 * (to - from));
        for &[node, weight] in LEGENDRE.iter() {
            let x = centre + half * node;
            let mass = half * weight * g.iter().rev().fold(0.0, |sum, g| sum * x + g) * (exponent(x) - peak).exp();
            sums[0] += mass;
            sums[1] += mass * x;
            sums[2] += mass * x * x;
        }
    }
    Error::require(sums[0] > 0.0, "g", format_args!("{g:?}"), "a polynomial that is positive on the interval")?;
    Ok([peak + sums[0].ln(), sums[1] / sums[0], sums[2] / sums[0]])
}

/// `ln` of the integral of g(x) exp(h0 + h1 x + h2 x^2) N(z; x, sd^2) over the interval, and its derivatives in h1 and h2.
///
/// # Errors
/// [`Error::Domain`] where it diverges or g is not positive.
pub fn log_density(z: f64, g: &[f64], h: [f64; 3], interval: (f64, f64), sd: f64) -> Result<[f64; 3]> {
    let per = 1.0 / (sd * sd);
    let constant = h[0] - 0.5 * z * z * per - HALF_LOG_TWO_PI - sd.ln();
    integral(g, h[2] - 0.5 * per, h[1] + z * per, constant, interval.0, interval.1)
}

/// The logarithm of the sum of pieces by their logarithms, and their shares of it.
pub(super) fn shares(logs: [f64; 3]) -> (f64, [f64; 3]) {
    let most = logs.into_iter().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return (most, [0.0; 3]);
    }
    let parts = logs.map(|log| (log - most).exp());
    let sum: f64 = parts.iter().sum();
    (most + sum.ln(), parts.map(|part| part / sum))
}

/// The likelihood of (t1, t2) given numbers with normal noise.
#[derive(Clone, Debug)]
pub struct Tractable {
    g: Vec<f64>,
    interval: (f64, f64),
    clip: (f64, f64),
    /// Zero for numbers released without noise.
    sd: f64,
    points: Arc<Vec<(f64, f64)>>,
    users: f64,
}

impl Tractable {
    /// From the released numbers; many are replaced by Chebyshev nodes in panels of the noise's width.
    ///
    /// # Errors
    /// [`Error::Domain`].
    pub fn new(
        released: &[f64],
        g: Vec<f64>,
        interval: (f64, f64),
        clip: (f64, f64),
        sd: f64,
        exact: bool,
    ) -> Result<Self> {
        let (low, high) = (interval.0.max(clip.0), interval.1.min(clip.1));
        Error::require(low < high, "interval", format_args!("{interval:?}"), "an interval that the clipping meets")?;
        let points = Arc::new(condensed(released, sd, high - low, exact)?);
        Ok(Self { g, interval, clip, sd, points, users: released.len() as f64 })
    }

    fn sum(&self, t1: f64, t2: f64) -> Result<(f64, [f64; 2])> {
        let (a, b) = self.interval;
        let (low, high) = (a.max(self.clip.0), b.min(self.clip.1));
        let whole = integral(&self.g, t2, t1, 0.0, a, b)?[0];
        let inside = integral(&self.g, t2, t1, 0.0, low, high)?;
        let below = integral(&self.g, t2, t1, 0.0, a, low)?;
        let above = integral(&self.g, t2, t1, 0.0, high, b)?;
        let before = [below, inside, above];
        let masses = shares(before.map(|part| part[0])).1;
        let (mut total, mut slope) = (-self.users * whole, [0.0; 2]);
        let [mean, square] = [1, 2].map(|i| before.iter().zip(masses).map(|(part, q)| q * part[i]).sum::<f64>());
        for &(z, weight) in self.points.iter() {
            if self.sd == 0.0 {
                total += weight * (z * (t1 + t2 * z) + self.g.iter().rev().fold(0.0, |sum, g| sum * z + g).ln());
                slope[0] += weight * (z - mean);
                slope[1] += weight * (z * z - square);
                continue;
            }
            let mut after = [below, log_density(z, &self.g, [0.0, t1, t2], (low, high), self.sd)?, above];
            for (part, bound) in [(0, low), (2, high)] {
                let far = (z - bound) / self.sd;
                after[part][0] -= 0.5 * far * far + HALF_LOG_TWO_PI + self.sd.ln();
            }
            let (log, posterior) = shares(after.map(|part| part[0]));
            total += weight * log;
            for (part, share) in after.iter().zip(posterior) {
                for (other, mass) in before.iter().zip(masses) {
                    slope[0] += weight * share * mass * (part[1] - other[1]);
                    slope[1] += weight * share * mass * (part[2] - other[2]);
                }
            }
        }
        Ok((total, slope))
    }
}

impl Likelihood for Tractable {
    fn value(&mut self, natural: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let (total, slope) = self.sum(natural[0], natural[1]).unwrap_or((f64::NAN, [f64::NAN; 2]));
        if let Some(gradient) = gradient {
            gradient.copy_from_slice(&slope);
        }
        total
    }

    fn parameters(&self) -> usize {
        2
    }
}
