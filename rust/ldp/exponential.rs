//! An exponential variable of rate theta, rectified to [0, b] and released with Laplace noise of scale s.
//!
//!   2 s p(z) = e^(-(b-z)/s) e^(-theta b)/(1 + theta s) + theta (e^(-theta z) - e^(-z/s))/(1/s - theta) + theta s e^(-theta z)/(1 + theta s)
//! for 0 <= z <= b: positive terms, with no singularity at theta = 1/s, where the middle one is theta z e^(-z/s).
//!
//! Source: T. Kulkarni, J. Jälkö, S. Kaski, A. Honkela, Locally differentially private Bayesian inference, equations 29 and 30,
//! with z where y is printed and the factor 1/(2s) restored.

use super::Likelihood;
use super::compressed::{ClippedLaplace, Marginal};

/// The rate of an exponential variable.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exponential;

/// What all values share at one rate.
pub struct ExponentialTerms {
    rate: f64,
    scale: f64,
    difference: f64,
    /// The first term's factor and its logarithmic derivative.
    edge: (f64, f64),
    share: f64,
}

/// `sum_n u^n / (n! (n + 2))`, the integral of t e^(u t) over the unit interval, for |u| <= 1/2.
fn first_moment_series(u: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 0.5);
    for n in 1..16 {
        term *= u / f64::from(n);
        sum += term / f64::from(n + 2);
    }
    sum
}

impl Marginal for Exponential {
    const PARAMETERS: usize = 1;
    type At = ExponentialTerms;

    fn at(&self, noise: &ClippedLaplace, natural: &[f64]) -> ExponentialTerms {
        let (rate, s) = (natural[0], noise.scale);
        let share = 1.0 / (1.0 + rate * s);
        let edge = ((-rate * noise.upper).exp() * share, -noise.upper - s * share);
        ExponentialTerms { rate, scale: s, difference: 1.0 / s - rate, edge, share }
    }

    #[inline(always)]
    fn density<const GRADIENT: bool>(
        at: &ExponentialTerms,
        z: f64,
        above_lower: f64,
        below_upper: f64,
    ) -> (f64, [f64; 2]) {
        let decay = (-at.rate * z).exp();
        let u = at.difference * z;
        // The integral of e^(-(z-x)/s) e^(-theta x) over [0, z], and its first moment in x.
        let small = u.abs() < 0.5;
        let mass = if small {
            let ratio = if u == 0.0 { 1.0 } else { u.exp_m1() / u };
            above_lower * z * ratio
        } else {
            (decay - above_lower) / at.difference
        };
        let first = below_upper * at.edge.0;
        let last = at.rate * at.scale * decay * at.share;
        let total = first + at.rate * mass + last;
        if !GRADIENT {
            return (total, [0.0; 2]);
        }
        // The derivative of theta mass, mass less theta times the moment, without their cancellation where theta is large.
        let middle = if small {
            mass - at.rate * above_lower * z * z * first_moment_series(u)
        } else {
            (decay * (1.0 - at.rate * at.scale * u) - above_lower) / (at.scale * at.difference * at.difference)
        };
        let slope = first * at.edge.1 + middle + decay * at.scale * at.share * (at.share - z * at.rate);
        (total, [slope / total, 0.0])
    }

    #[inline]
    fn resolves(at: &ExponentialTerms, left: f64, right: f64) -> bool {
        // Exponentials of both rates; the steeper of e^(-theta z) and e^(-z/s) is gone beyond 32 of its widths.
        (right - left) * at.rate <= 2.0 || -at.difference * left >= 34.0
    }
}

/// Exponential numbers released without noise.
#[derive(Clone, Copy, Debug)]
pub struct ExponentialSums {
    number: f64,
    sum: f64,
}

impl ExponentialSums {
    /// From the number of values and their sum.
    #[must_use]
    pub fn of_sums(number: f64, sum: f64) -> Self {
        Self { number, sum }
    }

    /// From the numbers.
    pub fn new(values: &[f64]) -> Self {
        Self { number: values.len() as f64, sum: values.iter().sum() }
    }
}

impl Likelihood for ExponentialSums {
    fn value(&mut self, natural: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let rate = natural[0];
        if let Some(gradient) = gradient {
            gradient[0] = self.number / rate - self.sum;
        }
        self.number * rate.ln() - rate * self.sum
    }

    fn parameters(&self) -> usize {
        1
    }
}
