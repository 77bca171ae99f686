//! What the release of a cell says given its rate: its likelihood and the expected count behind it.
//!
//! For a release o > 0 the masses of the count below o, and from o on, relative to the mass at zero, are
//!   B = sum_{y<o} x^y / y!,   A = x^o / o! (1 + z/(o+1) + z^2/((o+1)(o+2)) + ...),   x = mu / alpha,  z = alpha mu,
//! and then E[y] = mu (B/alpha + alpha A) / (A + B) and p(o) = (1-alpha)/(1+alpha) alpha^o exp(-mu) (A + B). For o <= 0 it is
//! E[y] = alpha mu and p(o) = (1-alpha)/(1+alpha) alpha^|o| exp(-(1-alpha) mu). Beyond the range where these sums are short
//! and safe, `distributions::TwoPiecePoisson` answers. Source: derived in that file.

use crate::distributions::{TwoPiecePoisson, reciprocals};
use crate::numeric::special::log_factorial;

/// Releases up to here have short sums. Not tuned: with more, tables of their coefficients are longer.
pub const SHORT: i64 = 64;

/// Whether the sums of a release are short and cannot overflow.
#[inline(always)]
fn is_short(o: i64, rate: f64, alpha: f64) -> bool {
    o <= SHORT && alpha * rate <= 32.0 && rate <= 300.0 * alpha
}

/// The largest rate whose sums are short for every release up to [`SHORT`].
pub fn most_short(alpha: f64) -> f64 {
    let most = (32.0 / alpha).min(300.0 * alpha);
    if is_short(1, most, alpha) { most } else { most.next_down() }
}

/// Reciprocals of 1..=SHORT.
const RECIPROCALS: [f64; SHORT as usize + 1] = reciprocals();

/// Masses below the joint `o > 0` and from it on, relative to the mass at zero.
#[inline(always)]
fn pieces(o: i64, rate: f64, alpha: f64) -> Option<(f64, f64)> {
    if !is_short(o, rate, alpha) {
        return None;
    }
    let (up, x) = (alpha * rate, rate / alpha);
    let (mut below, mut term) = (0.0, 1.0);
    for reciprocal in &RECIPROCALS[1..=o as usize] {
        below += term;
        term *= x * reciprocal;
    }
    let (mut above, mut next) = (term, o as f64);
    while term > 1e-17 * (above + below) {
        next += 1.0;
        term *= up / next;
        above += term;
    }
    Some((below, above))
}

/// E[y] / rate for a release, where alpha > 0.
#[inline(always)]
pub fn scaled_mean(o: i64, rate: f64, alpha: f64) -> f64 {
    if o <= 0 {
        return alpha;
    }
    match pieces(o, rate, alpha) {
        Some((below, above)) => (below / alpha + alpha * above) / (below + above),
        None => TwoPiecePoisson::unchecked(o as f64, rate, alpha).scaled_mean(),
    }
}

/// Logarithms of one ratio of the noise.
#[derive(Clone, Copy, Debug)]
pub struct Logarithms {
    alpha: f64,
    log_alpha: f64,
    constant: f64,
}

impl Logarithms {
    /// Of a ratio.
    #[inline(always)]
    pub fn new(alpha: f64) -> Self {
        Self { alpha, log_alpha: alpha.ln(), constant: ((1.0 - alpha) / (1.0 + alpha)).ln() }
    }

    /// ln sum_y mu^y / y! alpha^|o-y|: the log-likelihood without its constant and the rate.
    #[inline(always)]
    fn sum(&self, o: i64, rate: f64) -> f64 {
        let Self { alpha, log_alpha, constant } = *self;
        if o <= 0 {
            let noise = if o == 0 { 0.0 } else { -(o as f64) * log_alpha };
            return noise + alpha * rate;
        }
        match pieces(o, rate, alpha) {
            Some((below, above)) => o as f64 * log_alpha + (below + above).ln(),
            None => TwoPiecePoisson::unchecked(o as f64, rate, alpha).log_marginal().0 - constant + rate,
        }
    }

    /// `ln p(o | rate)`.
    #[inline(always)]
    pub fn likelihood(&self, o: i64, rate: f64) -> f64 {
        if self.alpha == 0.0 {
            return if o == 0 { -rate } else { o as f64 * rate.ln() - rate - log_factorial(o as f64) };
        }
        self.constant + self.sum(o, rate) - rate
    }
}

/// As [`Logarithms::sum`].
#[inline]
pub fn log_sum(o: i64, rate: f64, alpha: f64) -> f64 {
    Logarithms::new(alpha).sum(o, rate)
}

/// `ln p(o | rate)`.
#[inline]
pub fn log_likelihood(o: i64, rate: f64, alpha: f64) -> f64 {
    Logarithms::new(alpha).likelihood(o, rate)
}

/// E[y | o, rate].
#[inline]
pub fn expected_count(o: i64, rate: f64, alpha: f64) -> f64 {
    match () {
        () if alpha == 0.0 => o as f64,
        () if rate == 0.0 => 0.0,
        () => rate * scaled_mean(o, rate, alpha),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_sums_agree_with_the_law() {
        for (o, rate, alpha) in [
            (3, 0.5, 0.37),
            (1, 0.01, 0.37),
            (10, 4.0, 0.9),
            (60, 20.0, 0.2),
            (-2, 1.25, 0.37),
            (5, 1e-4, 0.3),
            (3, 1e-200, 0.3),
        ] {
            let law = TwoPiecePoisson::new(o as f64, rate, alpha).unwrap();
            assert!((scaled_mean(o, rate, alpha) / law.scaled_mean() - 1.0).abs() < 1e-13, "{o} {rate} {alpha}");
            assert!((log_likelihood(o, rate, alpha) / law.log_marginal().0 - 1.0).abs() < 1e-13, "{o} {rate} {alpha}");
        }
    }
}
