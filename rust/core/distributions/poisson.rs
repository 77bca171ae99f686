//! The Poisson law, which the others are made of: log-mass, tails and a draw.
//!
//! p(k) = rate^k exp(-rate) / k!. Draws: inversion by sequential search below rate 10, from there on Hörmann's transformed
//! rejection with squeeze, whose acceptance test is written with the saddle-point mass so that it holds up to rate 2^53.
//!
//! Source: W. Hörmann (1993), The transformed rejection method for generating Poisson random variables, algorithm PTRS.

use crate::distributions::sums::{Shape, outward};
use crate::distributions::{Rng, Tail};
use crate::numeric::special::{FACTORIALS, LOG_FACTORIALS, log_poisson};

/// A Poisson law with rate > 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Poisson {
    /// Mean and variance.
    pub rate: f64,
    /// What the exact rate has beyond it, below half a unit in its last place.
    pub rest: f64,
    /// For a rate too small for a double, which is exp(lift) times this one; else zero.
    pub lift: f64,
}

impl From<f64> for Poisson {
    fn from(rate: f64) -> Self {
        Self { rate, rest: 0.0, lift: 0.0 }
    }
}

impl Shape for Poisson {
    #[inline]
    fn log_value(&self, x: f64) -> f64 {
        log_poisson(x, self.rate, (x - self.rate) - self.rest) + x * self.lift
    }

    #[inline]
    fn ratio(&self, x: f64, step: f64) -> f64 {
        if self.lift != 0.0 {
            let small = self.lift.exp() * self.rate;
            return if step > 0.0 { small / (x + 1.0) } else { x / small };
        }
        if step > 0.0 { self.rate / (x + 1.0) } else { x / self.rate }
    }
}

impl Poisson {
    /// The shorter tail at a count `k >= -1`.
    pub fn short_tail(&self, k: f64) -> Tail {
        if k < 0.0 {
            return Tail { lower: true, log: f64::NEG_INFINITY };
        }
        if self.rate == 0.0 {
            return Tail { lower: false, log: f64::NEG_INFINITY };
        }
        let lower = k < self.rate;
        let run = if lower { (k, -1.0, 0.0) } else { (k + 1.0, 1.0, f64::INFINITY) };
        Tail { lower, log: self.log_value(run.0) + outward(self, run, |_, _| [1.0])[0].ln() }
    }

    /// `(ln P(Y <= k), ln P(Y > k))`.
    pub fn log_tails(&self, k: f64) -> (f64, f64) {
        self.short_tail(k).both()
    }
}

/// A draw with rate in `[0, 2^53]`.
///
/// Always in line: most draws of a sparse sweep end at the first comparison.
#[inline(always)]
pub fn draw(rate: f64, words: &mut impl Rng) -> i64 {
    if rate >= 10.0 {
        return transformed_rejection(rate, words);
    }
    if rate == 0.0 {
        return 0;
    }
    let u = words.uniform();
    // exp(-rate) is at least 1 - rate: most small counts need no exponential
    if u < 1.0 - rate { 0 } else { invert_from(rate, u) }
}

/// [`invert`], out of the way.
#[inline(never)]
fn invert_from(rate: f64, u: f64) -> i64 {
    invert(rate, u, (-rate).exp())
}

/// Sequential search: the smallest n whose distribution function exceeds `u`, given `p = exp(-rate)`.
#[inline]
pub(super) fn invert(rate: f64, u: f64, mut p: f64) -> i64 {
    let (mut n, mut sum) = (0.0, p);
    while u >= sum {
        n += 1.0;
        p *= rate / n;
        sum += p;
        if p < 1e-18 {
            break; // beyond the last bit of u
        }
    }
    n as i64
}

#[inline(never)]
fn transformed_rejection(rate: f64, words: &mut impl Rng) -> i64 {
    let b = 0.931 + 2.53 * rate.sqrt();
    let a = -0.059 + 0.024_83 * b;
    let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    let factorials = &*LOG_FACTORIALS;
    let squeeze = 0.9277 - 3.6224 / (b - 2.0);
    loop {
        let u = words.uniform() - 0.5;
        let v = words.open_uniform();
        let edge = 0.5 - u.abs();
        let k = ((2.0 * a / edge + b) * u + rate + 0.43).floor();
        if edge >= 0.07 && v <= squeeze {
            return k as i64;
        }
        if k < 0.0 || (edge < 0.013 && v > edge) {
            continue;
        }
        let log = if k < FACTORIALS as f64 {
            k * rate.ln() - rate - factorials[k as usize]
        } else {
            log_poisson(k, rate, k - rate)
        };
        if (v * inverse_alpha / (a / (edge * edge) + b)).ln() <= log {
            return k as i64;
        }
    }
}
