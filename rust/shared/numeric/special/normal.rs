//! The normal law for inner loops: Mills' ratio from a table, and what is made of it without cancellation.
//!
//! m(x) = (1 - Phi(x)) / phi(x) = sqrt(pi/2) erfcx(x / sqrt 2) solves m' = x m - 1, so the Taylor series about any point
//! follows from its first coefficient: m_(k+1) = (x m_k + m_(k-1)) / (k+1). The table is stepped down from x = 20, where the
//! asymptotic series is exact: in this direction errors shrink like exp(-x^2/2).
//!
//! Source: NIST Digital Library of Mathematical Functions, 7.12.1 (the series at x = 20); the recurrence follows from m'.

use super::HALF_LOG_TWO_PI;
use std::sync::LazyLock;

const ENDS: f64 = 20.0;
const PER_UNIT: usize = 8;
const CELLS: usize = 20 * PER_UNIT;
const TERMS: usize = 11;

/// Taylor coefficients of Mills' ratio at the middle of each cell.
pub static TABLE: LazyLock<Vec<[f64; TERMS]>> = LazyLock::new(|| {
    let half = 0.5 / PER_UNIT as f64;
    let mut at_right = far(ENDS);
    let mut table = vec![[0.0; TERMS]; CELLS];
    for cell in (0..CELLS).rev() {
        let right = (cell + 1) as f64 / PER_UNIT as f64;
        let series = taylor(right, at_right);
        let (centre, left) = (sum(&series, -half), sum(&series, -2.0 * half));
        table[cell].copy_from_slice(&taylor(right - half, centre)[..TERMS]);
        at_right = left;
    }
    table
});

fn taylor(x: f64, value: f64) -> [f64; 24] {
    let mut terms = [0.0; 24];
    terms[0] = value;
    terms[1] = x * value - 1.0;
    for k in 1..23 {
        terms[k + 1] = (x * terms[k] + terms[k - 1]) / (k + 1) as f64;
    }
    // The recursion loses digits where x is large: the derivatives there are sums of terms of both signs, but so small
    // that the series over half a cell does not see them.
    terms
}

fn sum(terms: &[f64], t: f64) -> f64 {
    terms.iter().rev().fold(0.0, |total, term| total * t + term)
}

/// Mills' ratio from 20 on, by its asymptotic series: ten terms err by less than 1e-16, relative.
#[inline]
fn far(x: f64) -> f64 {
    (1.0 - far_rest(x)) / x
}

/// `1 - x m(x)` from 20 on, to full relative accuracy.
#[inline]
fn far_rest(x: f64) -> f64 {
    let y = 1.0 / (x * x);
    let mut rest = 0.0;
    for k in (1..=10).rev() {
        rest = (2 * k - 1) as f64 * y * (1.0 - rest);
    }
    rest
}

/// Mills' ratio for `x >= 0`.
#[inline]
fn mills_right(x: f64) -> f64 {
    let scaled = x * PER_UNIT as f64;
    if scaled < CELLS as f64 {
        let cell = scaled as usize;
        let t = x - (cell as f64 + 0.5) / PER_UNIT as f64;
        let c = &TABLE[cell];
        let (t2, t4) = (t * t, (t * t) * (t * t));
        let low = (c[0] + c[1] * t) + (c[2] + c[3] * t) * t2;
        let middle = (c[4] + c[5] * t) + (c[6] + c[7] * t) * t2;
        let high = (c[8] + c[9] * t) + c[10] * t2;
        low + t4 * (middle + t4 * high)
    } else {
        far(x)
    }
}

/// Mills' ratio `(1 - Phi(x)) / phi(x)`; infinite below about -38.
#[inline]
pub fn mills(x: f64) -> f64 {
    if x >= 0.0 { mills_right(x) } else { (0.5 * x * x + HALF_LOG_TWO_PI).exp() - mills_right(-x) }
}

/// `exp(shift) phi(y) m(x)` where `shift = (x^2 - y^2) / 2` is given by the caller without cancellation: never overflows.
///
/// `density` is `phi(y)`.
#[inline]
pub fn scaled_mills(x: f64, density: f64, shift: f64) -> f64 {
    if x >= 0.0 { density * mills_right(x) } else { shift.exp() - density * mills_right(-x) }
}

/// `1 - x m(x)`; to full relative accuracy from 20 on.
#[inline]
pub fn mills_rest(x: f64) -> f64 {
    if x >= ENDS { far_rest(x) } else { 1.0 - x * mills(x) }
}

/// The standard normal density.
#[inline]
pub fn density(x: f64) -> f64 {
    const SCALE: f64 = 0.398_942_280_401_432_7;
    SCALE * (-0.5 * x * x).exp()
}

/// The standard normal distribution function, to full relative accuracy in the left tail.
#[inline]
pub fn cdf(x: f64) -> f64 {
    if x <= 0.0 { density(x) * mills_right(-x) } else { 1.0 - density(x) * mills_right(x) }
}

/// The logarithm of the standard normal distribution function.
#[inline]
pub fn log_cdf(x: f64) -> f64 {
    if x <= 0.0 { mills_right(-x).ln() - 0.5 * x * x - HALF_LOG_TWO_PI } else { (-density(x) * mills_right(x)).ln_1p() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mills_ratio_agrees_with_forty_digits() {
        // mpmath: sqrt(pi/2) erfc(x/sqrt 2) exp(x^2/2).
        for (x, expected) in [
            (0.0, 1.253_314_137_315_500_3),
            (0.5, 0.876_364_456_453_692_9),
            (1.0, 0.655_679_542_418_798_5),
            (5.0, 0.192_808_104_715_315_8),
            (19.99, 0.049_900_753_107_506_0),
            (-3.0, 225.334_896_220_349_12),
        ] {
            let found = mills(x);
            assert!((found / expected - 1.0).abs() < 4e-15, "{x}: {found} {expected}");
        }
    }

    #[test]
    fn the_table_meets_the_series_at_its_seams() {
        for x in [0.125, 1.0, 5.0, 12.5, 19.875, 20.0] {
            let (below, above) = (mills(x * (1.0 - 1e-15)), mills(x * (1.0 + 1e-15)));
            assert!((below / above - 1.0).abs() < 2e-14, "{x}: {below} {above}");
        }
        assert!((far(20.0) / mills(19.999_999_999_999) - 1.0).abs() < 1e-13);
        assert!((cdf(-1.0) + cdf(1.0) - 1.0).abs() < 1e-15);
    }
}
