//! Special functions of the count distributions, arranged so that nothing large is subtracted from anything large.
//!
//! A Poisson mass is written as Loader's saddle point, ln p(k; r) = -delta(k) - D(k, r) - ln(2 pi k) / 2, with the error of
//! Stirling's formula delta(k) = ln k! - (k + 1/2) ln k + k - ln(2 pi) / 2 and the deviance D(k, r) = k ln(k/r) + r - k.
//!
//! Source: C. Loader (2000), Fast and accurate computation of binomial probabilities.

pub mod bessel;
pub mod gamma;
pub mod normal;

use super::elementary::ln;
use std::f64::consts::PI;
use std::sync::LazyLock;

/// `ln(2 pi) / 2`.
pub const HALF_LOG_TWO_PI: f64 = 0.918_938_533_204_672_8;

/// The error of Stirling's formula at 1..=15 (the entry at 0 is not used); 40 digits by multiple precision, rounded once.
#[rustfmt::skip]
const STIRLING_ERROR: [f64; 16] = [
    0.0, 0.08106146679532726, 0.0413406959554093, 0.02767792568499834, 0.020790672103765093, 0.016644691189821193,
    0.013876128823070748, 0.01189670994589177, 0.010411265261972096, 0.009255462182712733, 0.00833056343336287,
    0.007573675487951841, 0.00694284010720953, 0.006408994188004207, 0.0059513701127588475, 0.005554733551962801,
];

/// The error of Stirling's formula for `ln x!`, for x > 0. Absolute error below 1e-17 from 16 on.
#[inline]
pub fn stirling_error(x: f64) -> f64 {
    if x >= 16.0 {
        let inverse = 1.0 / x;
        let square = inverse * inverse;
        let tail = 1.0 / 1680.0 - square * (1.0 / 1188.0 - square * (691.0 / 360_360.0));
        inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square * tail)))
    } else if x == x.floor() {
        STIRLING_ERROR[x.max(0.0) as usize]
    } else {
        // delta(x) - delta(x + 1) = (x + 1/2) ln(1 + 1/x) - 1
        stirling_error(x + 1.0) + ((x + 0.5) * (1.0 / x).ln_1p() - 1.0)
    }
}

/// `ln k!` for whole `k < FACTORIALS`: for inner loops, absolute error below 1e-12.
pub static LOG_FACTORIALS: LazyLock<[f64; FACTORIALS]> = LazyLock::new(|| {
    let mut sum = 0.0;
    std::array::from_fn(|k| {
        sum += (k.max(1) as f64).ln();
        sum
    })
});

/// Length of [`LOG_FACTORIALS`].
pub const FACTORIALS: usize = 1024;

/// `ln k!`, relative error a few units in the last place.
pub fn log_factorial(k: f64) -> f64 {
    if k < 2.0 { 0.0 } else { (k + 0.5) * k.ln() - k + HALF_LOG_TWO_PI + stirling_error(k) }
}

/// The deviance `D(rate + excess, rate) = k ln(k / rate) + rate - k` of the count `k = rate + excess`, for rate > 0.
///
/// The excess is an argument of its own because the caller often knows it to full accuracy; the result then is, too.
#[inline]
pub fn deviance(excess: f64, rate: f64) -> f64 {
    let ratio = excess / rate;
    if ratio < 0.5 && ratio > -1.0 / 3.0 {
        // (1 + t) ln(1 + t) - t = t v + 2 (1 + t) (v^3/3 + v^5/5 + ...),  v = t / (2 + t), |v| <= 1/5
        let v = ratio / (2.0 + ratio);
        let square = v * v;
        rate * (ratio * v + 2.0 * (1.0 + ratio) * (v * square) * odd_series(square))
    } else if ratio <= -1.0 {
        rate
    } else if ratio < 1e15 {
        rate * ((1.0 + ratio) * ratio.ln_1p() - ratio)
    } else {
        let count = rate + excess;
        count * (count.ln() - rate.ln()) - excess
    }
}

/// [`deviance`] where `quotient = k / rate` is known to full accuracy, too: of a small one `1 + excess / rate` has no digit.
#[inline]
pub fn known_deviance(excess: f64, rate: f64, quotient: f64) -> f64 {
    if quotient < 0.5 {
        rate * (quotient * quotient.max(f64::MIN_POSITIVE).ln() - excess / rate)
    } else {
        deviance(excess, rate)
    }
}

/// [`known_deviance`] without a jump, for side by side: rates from 1e-150 on.
#[inline(always)]
pub fn lane_deviance(excess: f64, rate: f64, quotient: f64) -> f64 {
    let ratio = excess / rate;
    let v = ratio / (2.0 + ratio);
    let square = v * v;
    let near = ratio * v + 2.0 * (1.0 + ratio) * (v * square) * odd_series(square);
    let far = quotient * ln(quotient) - ratio;
    rate * if ratio < 0.5 && ratio > -1.0 / 3.0 { near } else { far }
}

/// `1/3 + w/5 + w^2/7 + ...` for 0 <= w <= 1/25, relative error below 1e-17 before rounding; by pairs, for speed.
#[inline(always)]
fn odd_series(w: f64) -> f64 {
    let (w2, w4) = (w * w, w * w * (w * w));
    let low = (1.0 / 3.0 + w / 5.0) + w2 * (1.0 / 7.0 + w / 9.0);
    let middle = (1.0 / 11.0 + w / 13.0) + w2 * (1.0 / 15.0 + w / 17.0);
    let high = (1.0 / 19.0 + w / 21.0) + w2 * (1.0 / 23.0 + w / 25.0);
    low + w4 * (middle + w4 * high)
}

/// `ln(1 + t)` by the same series where it applies: half the time of the system's function.
#[inline]
pub fn log_one_plus(t: f64) -> f64 {
    if t < 0.5 && t > -1.0 / 3.0 {
        let v = t / (2.0 + t);
        let square = v * v;
        2.0 * v * (1.0 + square * odd_series(square))
    } else {
        t.ln_1p()
    }
}

/// Log-mass of a Poisson count `k >= 0` at `rate > 0`, given `excess = k - rate` to full accuracy.
#[inline]
pub fn log_poisson(k: f64, rate: f64, excess: f64) -> f64 {
    if k > 0.0 {
        -stirling_error(k) - known_deviance(excess, rate, k / rate) - 0.5 * (2.0 * PI * k).ln()
    } else {
        -rate
    }
}

/// `ln(exp(a) + exp(b))`.
pub fn log_add_exp(a: f64, b: f64) -> f64 {
    let (small, large) = if a < b { (a, b) } else { (b, a) };
    if small == f64::NEG_INFINITY { large } else { large + (small - large).exp().ln_1p() }
}

/// `ln(1 - exp(a))` for a <= 0.
pub fn log_one_minus_exp(a: f64) -> f64 {
    if a > -std::f64::consts::LN_2 { (-a.exp_m1()).ln() } else { (-a.exp()).ln_1p() }
}

/// A product and its rounding error: `a * b = product + error` exactly (Dekker), barring overflow.
#[inline]
pub fn exact_product(a: f64, b: f64) -> (f64, f64) {
    let split = |x: f64| {
        let scaled = x * 134_217_729.0;
        let high = scaled - (scaled - x);
        (high, x - high)
    };
    let ((a1, a2), (b1, b2)) = (split(a), split(b));
    let product = a * b;
    (product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2)
}

/// A sum and its rounding error: `a + b = sum + error` exactly (Knuth).
#[inline(always)]
pub fn exact_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance * expected.abs(), "{found} instead of {expected}");
    }

    #[test]
    fn stirling_errors_agree_across_the_three_branches() {
        for x in 1..200u32 {
            let x = f64::from(x);
            let step = (x + 0.5) * (1.0 / x).ln_1p() - 1.0;
            assert!((stirling_error(x) - stirling_error(x + 1.0) - step).abs() < 2e-15 * (1.0 + x / 8.0));
        }
        // ln Gamma(3.5) by the duplication formula: Gamma(7/2) = 15 sqrt(pi) / 8
        let x = 2.5f64;
        let expected = (15.0 * PI.sqrt() / 8.0).ln() - (x + 0.5) * x.ln() + x - HALF_LOG_TWO_PI;
        assert!((stirling_error(x) - expected).abs() < 1e-15);
    }

    #[test]
    fn factorials_are_those_of_integers() {
        let mut sum = 0.0;
        for k in 1..100 {
            sum += f64::from(k).ln();
            close(log_factorial(f64::from(k)), sum, 1e-14);
        }
    }

    #[test]
    fn deviances_join_at_the_borders_of_their_branches() {
        for rate in [1e-300, 1e-5, 1.0, 7.0, 1e9] {
            for ratio in [-1.0 / 3.0, 0.5, 1e15] {
                let [below, above] = [0.999_999_999_999, 1.000_000_000_001].map(|f| deviance(ratio * f * rate, rate));
                close(below, above, 1e-11);
            }
        }
        close(deviance(1.0, 1.0), 2.0 * 2f64.ln() - 1.0, 1e-15);
        close(deviance(1e-8, 1.0), 0.5e-16 * (1.0 - 1e-8 / 3.0), 1e-15);
    }

    #[test]
    fn poisson_masses_sum_to_one() {
        for rate in [0.3, 5.0, 80.0] {
            let total: f64 = (0..400).map(|k| log_poisson(f64::from(k), rate, f64::from(k) - rate).exp()).sum();
            close(total, 1.0, 1e-14);
        }
    }

    #[test]
    fn products_and_sums_are_exact_with_their_errors() {
        let (a, b) = (1.0 + f64::EPSILON, 1.0 - f64::EPSILON);
        assert_eq!(exact_product(a, b), (1.0, -f64::EPSILON * f64::EPSILON));
        assert_eq!(exact_sum(1.0, 1e-30), (1.0, 1e-30));
        close(log_add_exp(-1000.0, -1000.0), -1000.0 + 2f64.ln(), 1e-15);
        assert_eq!(log_add_exp(f64::NEG_INFINITY, 3.0), 3.0);
        close(log_one_minus_exp(-1e-20), 1e-20f64.ln(), 1e-15);
    }
}
