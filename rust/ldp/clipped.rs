//! Numbers clipped to [a, b] and released with normal noise of deviation s.
//!
//! With f the law of X, G(x) = P(X > x) and n(x) = N(z; x, s^2), the release z of clip(X) has the density
//!   p(z) = P(X <= a) n(a) + P(X >= b) n(b) + I,   I the integral of f n over (a, b),
//!        = n(a) + the integral of G n' over (a, b),
//! by parts; so dp / d theta is the integral of (dG / d theta) n' with n' = n (z - x) / s^2, in which the atoms cancel: nothing
//! is lost where one of them has nearly all of the mass. Of a normal variable dG/d mu = f and dG/d sigma = f (x - mu) / sigma, of
//! an exponential one dG/d theta = -f x / theta; f n is a normal density of centre c and width w in x, so that I and both means
//! under it are differences of normal distribution functions and densities at its ends. Where these cancel (an interval
//! beyond four widths to one side, or much narrower than one) Gauss and Legendre's rule on what is left of the peak is exact to
//! rounding. Of counts the integral is a sum over x, with n(x + 1) - n(x) where n' is, and logarithms throughout.
//!
//! Source: T. Kulkarni, J. Jälkö, S. Kaski, A. Honkela, Locally differentially private Bayesian inference, lemma 3.2, for
//! densities with exponents of degree two; the derivatives are derived here.

use super::Likelihood;
use super::condensed::condensed;
use super::discrete::CountFamily;
use super::tractable::{LEGENDRE, shares};
use crate::numeric::special::HALF_LOG_TWO_PI;
use crate::numeric::special::normal::{cdf, density, log_cdf};
use crate::{Error, Result};
use std::sync::Arc;

/// Widths of the peak, to either side, beyond which normal densities do not count: e^-800 is below the least double.
const FAR: f64 = 40.0;
/// Widths between the bounds below which differences of distribution functions cancel: beyond, slopes keep eleven digits.
const NARROW: f64 = 1.0 / 16.0;
/// How far below its peak an integrand ends: e^-40 is 4e-18 of it.
const DEPTH: f64 = 40.0;
/// Whole bounds further apart would take too long, as each value takes the sum over all between.
pub const WIDEST: i64 = 1 << 16;

/// Normal noise on clipped numbers.
#[derive(Clone, Copy, Debug)]
struct ClippedNormal {
    lower: f64,
    upper: f64,
    sd: f64,
    /// `ln (s sqrt(2 pi))`.
    log_scale: f64,
}

impl ClippedNormal {
    fn new(lower: f64, upper: f64, sd: f64) -> Result<Self> {
        Error::require(lower < upper, "lower", format_args!("{lower} with upper = {upper}"), "below `upper`")?;
        Error::require(sd > 0.0 && sd.is_finite(), "sigma", sd, "positive and finite")?;
        Ok(Self { lower, upper, sd, log_scale: HALF_LOG_TWO_PI + sd.ln() })
    }

    /// `ln N(z; x, s^2)`.
    fn log_density(&self, away: f64) -> f64 {
        let far = away / self.sd;
        -0.5 * far * far - self.log_scale
    }
}

/// The law of a number before it is clipped, at one theta.
#[derive(Clone, Copy, Debug)]
pub enum UnclippedLaw {
    /// By its mean and standard deviation.
    Normal {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        sigma: f64,
    },
    /// By its rate; at least 0.
    Exponential {
        /// The rate.
        rate: f64,
    },
}

impl UnclippedLaw {
    /// `ln P(X <= x)` and `ln P(X >= x)`.
    fn log_tails(&self, lower: f64, upper: f64) -> [f64; 2] {
        match *self {
            Self::Normal { mean, sigma } => [lower - mean, mean - upper]
                .map(|away| if away == f64::NEG_INFINITY { away } else { log_cdf(away / sigma) }),
            Self::Exponential { rate } => [f64::NEG_INFINITY, -rate * upper],
        }
    }

    fn log_density(&self, x: f64) -> f64 {
        match *self {
            Self::Normal { mean, sigma } => {
                let far = (x - mean) / sigma;
                -0.5 * far * far - HALF_LOG_TWO_PI - sigma.ln()
            }
            Self::Exponential { rate } => rate.ln() - rate * x,
        }
    }

    /// The derivative of [`Self::log_density`].
    fn slope(&self, x: f64) -> f64 {
        match *self {
            Self::Normal { mean, sigma } => (mean - x) / sigma / sigma,
            Self::Exponential { rate } => -rate,
        }
    }

    /// `ln I`, and the means of z - x and (z - x)(x - o) under f n, o the mean or 0.
    fn inside(&self, noise: &ClippedNormal, z: f64) -> [f64; 3] {
        let s = noise.sd;
        // The logarithm of I without bounds, z - c, c - o and w.
        let (log, after, before, width) = match *self {
            Self::Normal { mean, sigma } => {
                let (both, away) = (sigma.hypot(s), z - mean);
                let (ours, theirs) = (sigma / both, s / both);
                let far = away / both;
                let log = -0.5 * far * far - HALF_LOG_TWO_PI - both.ln();
                (log, away * theirs * theirs, away * ours * ours, ours * s)
            }
            Self::Exponential { rate } => {
                let shift = rate * s * s;
                (rate.ln() - rate * (z - 0.5 * shift), shift, z - shift, s)
            }
        };
        let centre = z - after;
        let ends = [noise.lower, noise.upper].map(|end| ((end - centre) / width).clamp(-FAR, FAR));
        if !(ends[1] - ends[0] >= NARROW && ends[0] <= 4.0 && ends[1] >= -4.0) {
            return self.by_rule(noise, z, centre, width);
        }
        let [left, right] = ends;
        let mass = if left > 0.0 {
            cdf(-left) - cdf(-right)
        } else if right < 0.0 {
            cdf(right) - cdf(left)
        } else {
            1.0 - cdf(left) - cdf(-right)
        };
        let heights = ends.map(density);
        let first = width * (heights[0] - heights[1]) / mass;
        let second = width * width * (1.0 + (left * heights[0] - right * heights[1]) / mass);
        [log + mass.ln(), after - first, after * before + first * (after - before) - second]
    }

    /// The same by quadrature from the highest point of f n between the bounds.
    fn by_rule(&self, noise: &ClippedNormal, z: f64, centre: f64, width: f64) -> [f64; 3] {
        let (lower, upper, s) = (noise.lower, noise.upper, noise.sd);
        let origin = match *self {
            Self::Normal { mean, .. } => mean,
            Self::Exponential { .. } => 0.0,
        };
        let top = centre.clamp(lower, upper);
        let tilt = if top == centre { 0.0 } else { (self.slope(top) + (z - top) / s / s).abs() };
        // From the top, tilt y + (y / w)^2 / 2 = DEPTH.
        let reach = 2.0 * DEPTH / (tilt + (tilt * tilt + 2.0 * DEPTH / (width * width)).sqrt());
        let (from, to) = ((lower - top).max(-reach), (upper - top).min(reach));
        let (middle, half) = (0.5 * (from + to), 0.5 * (to - from));
        let (away, along) = (z - top, top - origin);
        let mut sums = [0.0; 3];
        for &[node, weight] in LEGENDRE.iter() {
            let y = middle + half * node;
            let mass = half * weight * (-tilt * y.abs() - 0.5 * (y / width) * (y / width)).exp();
            sums[0] += mass;
            sums[1] += mass * (away - y);
            sums[2] += mass * (away - y) * (along + y);
        }
        let log = self.log_density(top) + noise.log_density(away) + sums[0].ln();
        [log, sums[1] / sums[0], sums[2] / sums[0]]
    }
}

/// Users whose normal or exponential numbers were clipped and released with normal noise.
#[derive(Clone, Debug)]
pub struct Clipped {
    exponential: bool,
    noise: ClippedNormal,
    points: Arc<Vec<(f64, f64)>>,
}

impl Clipped {
    /// Arranges the released values; bounds may be infinite. `exact` keeps every value.
    ///
    /// # Errors
    /// [`Error::Domain`] for bounds or releases that cannot be.
    pub fn new(exponential: bool, (lower, upper): (f64, f64), sd: f64, released: &[f64], exact: bool) -> Result<Self> {
        let mut noise = ClippedNormal::new(lower, upper, sd)?;
        if exponential {
            let requirement = "at most 0 for an exponential variable, and `upper` above it";
            Error::require(lower <= 0.0 && upper > 0.0, "lower", lower, requirement)?;
            noise.lower = 0.0;
        }
        Ok(Self { exponential, noise, points: Arc::new(condensed(released, sd, noise.upper - noise.lower, exact)?) })
    }
}

impl Likelihood for Clipped {
    fn value(&mut self, natural: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let law = if self.exponential {
            UnclippedLaw::Exponential { rate: natural[0] }
        } else {
            UnclippedLaw::Normal { mean: natural[0], sigma: natural[1] }
        };
        let ClippedNormal { lower, upper, sd, .. } = self.noise;
        let tails = law.log_tails(lower, upper);
        let (mut total, mut slope) = (0.0, [0.0; 2]);
        for &(z, weight) in self.points.iter() {
            let [inside, first, second] = law.inside(&self.noise, z);
            let atoms = [self.noise.log_density(z - lower) + tails[0], self.noise.log_density(z - upper) + tails[1]];
            let (log, parts) = shares([atoms[0], inside, atoms[1]]);
            total += weight * log;
            if parts[1] > 0.0 {
                slope[0] += weight * parts[1] * first;
                slope[1] += weight * parts[1] * second;
            }
        }
        if let Some(gradient) = gradient {
            match law {
                UnclippedLaw::Normal { sigma, .. } => {
                    gradient[0] = slope[0] / sd / sd;
                    gradient[1] = slope[1] / sigma / sd / sd;
                }
                UnclippedLaw::Exponential { rate } => gradient[0] = -slope[1] / rate / sd / sd,
            }
        }
        total
    }

    fn parameters(&self) -> usize {
        if self.exponential { 1 } else { 2 }
    }
}

/// Users whose counts were clipped and released with normal noise.
#[derive(Clone, Debug)]
pub struct ClippedCounts {
    family: CountFamily,
    noise: ClippedNormal,
    points: Arc<Vec<(f64, f64)>>,
    /// ln f of the clipped count, and the logarithm of the derivative's size of P(X > x).
    tables: [Vec<f64>; 2],
}

impl ClippedCounts {
    /// Arranges the released values. `exact` keeps every value.
    ///
    /// # Errors
    /// [`Error::Domain`] for bounds or releases that cannot be.
    pub fn new(
        family: CountFamily,
        (lower, upper): (i64, i64),
        sd: f64,
        released: &[f64],
        exact: bool,
    ) -> Result<Self> {
        let sound = lower < upper && upper.saturating_sub(lower) <= WIDEST;
        let bounds = format_args!("{lower} with upper = {upper}");
        Error::require(sound, "lower", bounds, "below `upper` by at most 2**16, with Gaussian noise")?;
        let noise = ClippedNormal::new(lower as f64, upper as f64, sd)?;
        let tables = std::array::from_fn(|_| vec![0.0; (upper - lower) as usize + 1]);
        Ok(Self { family, noise, points: Arc::new(condensed(released, sd, noise.upper - noise.lower, exact)?), tables })
    }
}

impl Likelihood for ClippedCounts {
    fn value(&mut self, natural: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let theta = natural[0];
        let [logs, rises] = &mut self.tables;
        let last = logs.len() - 1;
        for (i, (log, rise)) in logs.iter_mut().zip(&mut *rises).enumerate() {
            let x = self.noise.lower + i as f64;
            *log = match i {
                0 => self.family.log_lower_tail(theta, x),
                _ if i == last => self.family.log_upper_tail(theta, x),
                _ => self.family.log_mass(theta, x),
            };
            *rise = if i == last { f64::NEG_INFINITY } else { self.family.log_rise(theta, x) };
        }
        let per = 0.5 / (self.noise.sd * self.noise.sd);
        let (mut total, mut slope) = (0.0, 0.0);
        for &(z, weight) in self.points.iter() {
            let away = |i: usize| z - self.noise.lower - i as f64;
            // Less the exponent of the nearest bound or number, so that a release far out leaves no zero.
            let near = away((z - self.noise.lower).round().clamp(0.0, last as f64) as usize);
            let exponent = |x: f64| -per * (x - near) * (x + near);
            let most =
                logs.iter().enumerate().map(|(i, log)| log + exponent(away(i))).fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = logs.iter().enumerate().map(|(i, log)| (log + exponent(away(i)) - most).exp()).sum();
            let log = most + sum.ln();
            total += weight * (log + self.noise.log_density(near));
            if gradient.is_none() {
                continue;
            }
            for (i, rise) in rises.iter().enumerate().take(last) {
                // n(x + 1) - n(x), by the larger of both.
                let (here, next) = (away(i), away(i) - 1.0);
                let step = per * (here + next);
                let base = if step > 0.0 { next } else { here };
                let change = -(-step.abs()).exp_m1() * (rise + exponent(base) - log).exp();
                slope += weight * change.copysign(step);
            }
        }
        if let Some(gradient) = gradient {
            gradient[0] = if self.family == CountFamily::Geometric { -slope } else { slope };
        }
        total
    }

    fn parameters(&self) -> usize {
        1
    }
}
