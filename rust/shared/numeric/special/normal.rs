//! The normal law for inner loops: Mills' ratio without a branch, and what is made of it without cancellation.
//!
//! m(x) = (1 - Phi(x)) / phi(x) = sqrt(pi/2) erfcx(x / sqrt 2); (x + 4) m(x) is smooth in (x - 4) / (x + 4) on [-1, 1), where
//! Chebyshev's series to degree 24 is a polynomial.
//!
//! Source: S. Johnson (2012), Faddeeva package (the change of variable); NIST Digital Library of Mathematical Functions, 7.12.1 (the
//! series from 20 on).

use super::HALF_LOG_TWO_PI;

/// From here on the series of NIST 7.12.1 is used.
const ENDS: f64 = 20.0;

/// `(x + 4) m(x)` as a polynomial in `(x - 4)/(x + 4)`, found in 60 digits.
#[rustfmt::skip]
const MILLS: [f64; 25] = [
    1.893_219_063_308_485_36, -1.523_770_910_819_983_44, 9.704_095_548_675_883_92e-1, -4.675_409_629_983_324_69e-1,
    1.513_917_623_124_434_73e-1, -1.890_045_086_171_125_80e-2, -8.722_295_274_260_124_25e-3, 4.087_855_681_200_071_37e-3,
    3.342_446_162_328_440_91e-4, -5.792_693_046_478_719_42e-4, -4.783_264_259_417_208_10e-6, 8.809_573_121_072_338_08e-5,
    1.796_397_121_404_077_78e-6, -1.484_327_767_908_029_36e-5, -1.578_766_565_467_737_38e-6, 2.568_755_311_229_722_30e-6,
    6.829_633_831_673_466_67e-7, -4.004_939_292_511_710_07e-7, -2.177_419_502_203_932_69e-7, 4.473_060_051_450_322_96e-8,
    5.371_103_765_158_957_38e-8, -1.472_299_892_374_630_69e-9, -9.351_340_444_824_340_61e-9, -3.007_397_967_239_876_50e-10,
    8.530_838_860_260_529_82e-10,
];

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

/// Mills' ratio for `x >= 0`, without a branch: relative error below 2e-15.
#[inline(always)]
pub fn mills_right(x: f64) -> f64 {
    let per = 1.0 / (x + 4.0);
    let y = (x - 4.0) * per;
    let y2 = y * y;
    let y4 = y2 * y2;
    let mut parts = [MILLS[20], MILLS[21], MILLS[22], MILLS[23]];
    parts[0] += y4 * MILLS[24];
    for block in [16, 12, 8, 4, 0] {
        for (part, c) in parts.iter_mut().zip(&MILLS[block..block + 4]) {
            *part = *part * y4 + c;
        }
    }
    ((parts[0] + y * parts[1]) + y2 * (parts[2] + y * parts[3])) * per
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
    /// `1 / sqrt(2 pi)`.
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
    fn ratio_and_series_meet() {
        for x in [20.0, 50.0, 1e3, 1e8] {
            assert!((mills(x) * x + far_rest(x) - 1.0).abs() < 4e-15, "{x}");
        }
        assert!((cdf(-1.0) + cdf(1.0) - 1.0).abs() < 1e-15);
    }
}
