//! Exponential, logarithm, sine and cosine without a jump or a table: loops over them become vectors, of the same bits at every level.
//!
//! exp x = 2^n exp r with n = round(x / ln 2) and r the rest, at most ln(2)/2 in size, where the series ends after r^13 / 13!.
//! ln x = e ln 2 + ln m with m in [sqrt(1/2), sqrt 2), f = m - 1, s = f / (2 + f):
//!   ln m = f - s (f - R),  R = ln((1 + s)/(1 - s)) / s - 2 = 2 sum_k s^2k / (2k + 1),  s^2 < .0295: twelve terms.
//!
//! Source: the two series; the form of ln m, in which the largest part is exact, is that of fdlibm (Sun Microsystems 1993).

use std::f64::consts::LOG2_E;

/// 1.5 * 2^52: adding it rounds to a whole number, which then stands in the lowest bits.
pub const ROUND: f64 = 6_755_399_441_055_744.0;
const LN_2_HIGH: f64 = 0.693_147_180_369_123_8; // its last 21 bits are zero, so that small multiples are exact
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// 1/n!.
const INVERSE_FACTORIALS: [f64; 18] = {
    let mut inverses = [1.0; 18];
    let mut n = 1;
    while n < inverses.len() {
        inverses[n] = inverses[n - 1] / n as f64;
        n += 1;
    }
    inverses
};

/// The exponential of a number up to 709; relative error below 4e-16, where the result is a normal double.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    // Below this the result is zero.
    let (sum, shifted) = reduced_exp(if x < -746.0 { -746.0 } else { x });
    // Two powers of two, for one may be below every double.
    let whole = shifted - ROUND;
    let half = (0.5 * whole + ROUND) - ROUND;
    sum * power_of_two(half) * power_of_two(whole - half)
}

/// [`exp`] of a number from -708 to 709, where the result is normal; of others nonsense.
#[inline(always)]
pub fn exp_normal(x: f64) -> f64 {
    let (sum, shifted) = reduced_exp(x);
    sum * f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52)
}

/// `exp(r)` and `k + ROUND`, where x = k ln 2 + r.
#[inline(always)]
fn reduced_exp(x: f64) -> (f64, f64) {
    let shifted = x * LOG2_E + ROUND;
    let whole = shifted - ROUND;
    let r = (x - whole * LN_2_HIGH) - whole * LN_2_LOW;
    // The series in pairs (Estrin), so that few of its operations wait for another.
    let (square, c) = (r * r, &INVERSE_FACTORIALS);
    let fourth = square * square;
    let second = square * (c[2] + r * c[3]);
    let middle = (c[4] + r * c[5]) + square * (c[6] + r * c[7]);
    let high = ((c[8] + r * c[9]) + square * (c[10] + r * c[11])) + fourth * (c[12] + r * c[13]);
    (1.0 + (r + (second + fourth * (middle + fourth * high))), shifted)
}

/// `2^n` for whole n of which that is a normal double.
#[inline(always)]
fn power_of_two(n: f64) -> f64 {
    f64::from_bits((n + ROUND).to_bits().wrapping_add(1023) << 52)
}

/// The natural logarithm of a positive, finite number; error below 1 unit in the last place.
#[inline(always)]
pub fn ln(x: f64) -> f64 {
    /// `2^54`, which makes every subnormal number normal.
    const TWO_54: f64 = 18_014_398_509_481_984.0;
    let small = x < f64::MIN_POSITIVE;
    scaled_ln(if small { x * TWO_54 } else { x }, if small { 1023.0 + 54.0 } else { 1023.0 })
}

/// [`ln`] of a normal number.
#[inline(always)]
pub fn ln_normal(x: f64) -> f64 {
    scaled_ln(x, 1023.0)
}

/// `ln(1 + x)` for finite x > -1, with what is lost in the sum: error of a few units in the last place.
#[inline(always)]
pub fn ln_1p(x: f64) -> f64 {
    let sum = 1.0 + x;
    let log = ln(sum) * x / (if sum == 1.0 { 1.0 } else { sum - 1.0 });
    if sum == 1.0 { x } else { log }
}

/// `ln(2^(1023 - bias) x)` for normal x.
#[inline(always)]
fn scaled_ln(x: f64, bias: f64) -> f64 {
    /// The bits of `sqrt(1/2)`.
    const SQRT_HALF: u64 = 0x3FE6_A09E_667F_3BCD;
    let bits = x.to_bits();
    // The exponent e with m = x / 2^e, plus 1023: never negative, so that shifts need no sign.
    let biased = bits.wrapping_sub(SQRT_HALF).wrapping_add(1023 << 52) >> 52;
    let m = f64::from_bits(bits.wrapping_add(1023 << 52).wrapping_sub(biased << 52));
    // 2^52 + biased, as bits.
    let e = f64::from_bits(biased | 0x4330_0000_0000_0000) - (4_503_599_627_370_496.0 + bias);
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let (fourth, eighth) = (z * z, (z * z) * (z * z));
    let term = |k: usize| 2.0 / (2 * k + 1) as f64;
    let low = (term(1) + z * term(2)) + fourth * (term(3) + z * term(4));
    let middle = (term(5) + z * term(6)) + fourth * (term(7) + z * term(8));
    let high = (term(9) + z * term(10)) + fourth * (term(11) + z * term(12));
    let rest = z * (low + eighth * (middle + eighth * high));
    let half = 0.5 * f * f;
    e * LN_2_HIGH - ((half - (s * (half + rest) + e * LN_2_LOW)) - f)
}

/// Sine and cosine of `|t| <= pi/4`, by their series; absolute error below 2.3e-16.
#[inline(always)]
pub fn sin_cos(t: f64) -> (f64, f64) {
    let (square, c) = (t * t, &INVERSE_FACTORIALS);
    let series = |from: usize| (1..=8).rev().fold(0.0, |sum, k| (c[from + 2 * k] - sum) * square);
    (t - t * series(1), 1.0 - series(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::dispatch::{Level, at_level};
    use crate::stream::Stream;

    #[test]
    fn logarithms_of_sums_are_those_of_the_platform() {
        for x in [-0.9999f64, -0.3, -1e-9, -1e-17, 0.0, 1e-300, 1e-17, 3e-9, 0.4, 1e18] {
            assert!((ln_1p(x) - x.ln_1p()).abs() <= 4e-16 * x.ln_1p().abs(), "{x}");
        }
    }

    #[test]
    fn values_are_those_of_the_platform_to_a_unit_or_two() {
        let mut words = Stream::new([1, 2], 3, 4, 5);
        for _ in 0..200_000 {
            let x = f64::from_bits(words.word() >> 1);
            if x > 0.0 && x.is_finite() {
                assert!((ln(x) - x.ln()).abs() <= 2.3e-16 * x.ln().abs(), "ln {x:e}");
            }
            let near = 1.0 + 1e-3 * (words.uniform() - 0.5);
            assert!((ln(near) - near.ln()).abs() <= 2.3e-16 * near.ln().abs(), "ln {near}");
            let x = 709.0 * (1.0 - 1.999 * words.uniform());
            assert!((exp(x) - x.exp()).abs() <= 4e-16 * x.exp(), "exp {x}");
        }
        for step in -1000..=1000 {
            let t = std::f64::consts::FRAC_PI_4 * f64::from(step) / 1000.0;
            let (sine, cosine) = sin_cos(t);
            assert!((sine - t.sin()).abs() <= 2.3e-16 && (cosine - t.cos()).abs() <= 2.3e-16, "{t}");
        }
        let least = f64::from_bits(1);
        for (x, value) in [(1.0, 0.0), (least, least.ln()), (f64::MAX, f64::MAX.ln())] {
            assert_eq!(ln(x), value);
        }
        assert_eq!((exp(0.0), exp(-1e300), exp(f64::NEG_INFINITY)), (1.0, 0.0, 0.0));
        for x in [-707.9, -100.0, -1e-9, 0.0, 3.0, 708.9] {
            assert_eq!((exp_normal(x), ln_normal(x.exp())), (exp(x), ln(x.exp())));
        }
        assert!((exp(-740.0) - (-740f64).exp()).abs() <= least && exp(-746.0) == 0.0);
    }

    #[inline(always)]
    fn both(numbers: &[f64], exps: &mut [f64], lns: &mut [f64]) {
        for ((&x, exps), lns) in numbers.iter().zip(exps).zip(lns) {
            (*exps, *lns) = (exp(-x), ln(x));
        }
    }

    #[test]
    fn every_level_gives_the_same_bits() {
        let mut words = Stream::new([1, 2], 3, 4, 6);
        let numbers: Vec<f64> = (0..1001).map(|_| 800.0 * words.uniform()).collect();
        let of = |level| {
            let (mut exps, mut lns) = (vec![0.0; 1001], vec![0.0; 1001]);
            at_level!(level, both(&numbers, &mut exps, &mut lns));
            (exps, lns)
        };
        let expected: (Vec<f64>, Vec<f64>) = numbers.iter().map(|&x| (exp(-x), ln(x))).unzip();
        for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
            assert_eq!(of(level), expected);
        }
    }
}
