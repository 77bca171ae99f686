//! The digamma function and the logarithm of the gamma function, without a jump: loops over them become vectors.
//!
//! psi(x) = psi(x + 10) - sum_{i<10} 1/(x + i) carries x below 10 beyond it, where
//!   psi(y) = ln y - 1/(2y) - sum_k B_2k / (2k y^2k),   ln Gamma(y) = (y - 1/2) ln y - y + ln(2 pi)/2 + sum_k B_2k / (2k (2k-1) y^(2k-1));
//! eight terms leave less than 1e-17. With q = x (x + 9) the factors x + i and x + 9 - i have the product q + i (9 - i) and the
//! sum 2x + 9, so that ten steps take three divisions.
//!
//! Source: Abramowitz and Stegun 6.3.5, 6.3.18 and 6.1.41; the pairs are derived here.

use super::HALF_LOG_TWO_PI;
use crate::numeric::elementary::ln;

/// Where the asymptotic series start.
const FROM: f64 = 10.0;

/// B_2k / (2k), k = 1..8.
const TERMS: [f64; 8] =
    [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32760.0, 1.0 / 12.0, -3617.0 / 8160.0];

/// `i (9 - i)` for i = 1..4.
const PAIRS: [f64; 4] = [8.0, 14.0, 18.0, 20.0];

/// The logarithmic derivative of the gamma function at `x > 0`; absolute error below 2e-15 max(1, |psi|).
#[inline(always)]
pub fn digamma(x: f64) -> f64 {
    let below = x < FROM;
    let y = if below { x + FROM } else { x };
    let q = x * (x + 9.0);
    let [a, b, c, d] = PAIRS.map(|pair| q + pair);
    let steps = (2.0 * x + 9.0) * (1.0 / q + ((a + b) / (a * b) + (c + d) / (c * d)));
    let inverse = 1.0 / y;
    let square = inverse * inverse;
    let series = TERMS.iter().rev().fold(0.0, |sum, term| (sum + term) * square);
    ln(y) - 0.5 * inverse - series - if below { steps } else { 0.0 }
}

/// `ln Gamma(x)` for `x > 0`; absolute error below 2e-14 max(1, |ln Gamma|).
#[inline(always)]
pub fn log_gamma(x: f64) -> f64 {
    let below = x < FROM;
    let y = if below { x + FROM } else { x };
    let q = x * (x + 9.0);
    let [a, b, c, d] = PAIRS.map(|pair| q + pair);
    let steps = ln(if below { (q * (a * b)) * (c * d) } else { 1.0 });
    let inverse = 1.0 / y;
    let square = inverse * inverse;
    let term = |k: usize| TERMS[k] / (2 * k + 1) as f64;
    let series = (0..TERMS.len()).rev().fold(0.0, |sum, k| sum * square + term(k)) * inverse;
    ((y - 0.5) * ln(y) - y) + (HALF_LOG_TWO_PI + series) - steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_known_ones() {
        // mpmath 1.3, 30 digits
        let known = [
            (1e-8, -100_000_000.577_215_65),
            (0.1, -10.423754940411076),
            (0.5, -1.9635100260214235),
            (1.0, -0.5772156649015329),
            (3.7, 1.1671535393615114),
            (10.0, 2.251752589066721),
            (1e6, 13.815510057964191),
        ];
        for (x, value) in known {
            assert!((digamma(x) - value).abs() <= 2e-15 * f64::max(1.0, value.abs()), "{x}: {}", digamma(x));
        }
    }

    #[test]
    fn logarithms_are_those_of_the_mathematical_library() {
        for step in -2000..2000 {
            let x = (0.35 * f64::from(step)).exp();
            let (found, known) = (log_gamma(x), libm::lgamma(x));
            assert!((found - known).abs() <= 2e-14 * f64::max(1.0, known.abs()), "{x:e}: {found} {known}");
        }
    }

    #[test]
    fn digamma_is_the_slope_of_the_logarithm_and_steps_by_the_inverse() {
        for step in 1..400 {
            let x = 0.05 * f64::from(step);
            let (slope, step) = ((log_gamma(x + 1e-4) - log_gamma(x - 1e-4)) / 2e-4, digamma(x + 1.0) - digamma(x));
            assert!((slope - digamma(x)).abs() < 2e-8 * (1.0 + x.powi(-3)), "{x}");
            assert!((step * x - 1.0).abs() < 1e-14 * (1.0 + x * digamma(x).abs()), "{x}");
        }
    }
}
