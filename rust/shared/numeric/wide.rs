//! Functions of floats without a branch, which kernels compiled for wide vectors hold in registers.
//!
//! No operation is fused or reordered by the wider instructions, so every level computes the same bits.

/// `ln x` for normal positive numbers, without a branch: 2 atanh((m-1)/(m+1)) + e ln 2, x = m 2^e, m in [0.7, 1.42).
/// Absolute error below 3e-16 where |ln x| < 1, relative error below 3e-16 elsewhere; other arguments give nonsense.
#[inline(always)]
pub fn log_of_normal(x: f64) -> f64 {
    const HALF_ROOT: u64 = 0x3fe6_a09e_667f_3bcd;
    const LOG_TWO: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];
    // The exponent comes as 1024 + e, so that no shift has to be arithmetic.
    let shifted = x.to_bits().wrapping_sub(HALF_ROOT).wrapping_add(1024 << 52) >> 52;
    let mantissa = f64::from_bits(x.to_bits().wrapping_sub(shifted.wrapping_sub(1024) << 52));
    let exponent = f64::from_bits(0x4330_0000_0000_0000 | shifted) - (4_503_599_627_370_496.0 + 1024.0);
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let y = s * s;
    let y2 = y * y;
    let low = (2.0 / 3.0 + y * (2.0 / 5.0)) + y2 * (2.0 / 7.0 + y * (2.0 / 9.0));
    let high =
        (2.0 / 11.0 + y * (2.0 / 13.0)) + y2 * ((2.0 / 15.0 + y * (2.0 / 17.0)) + y2 * (2.0 / 19.0 + y * (2.0 / 21.0)));
    let tail = s * y * (low + y2 * y2 * high);
    exponent * LOG_TWO[0] + (2.0 * s + (tail + exponent * LOG_TWO[1]))
}

/// `exp x` for `x <= 700`, without a branch: relative error below 4e-16 down to -708, and never below `exp(-708)`.
#[inline(always)]
pub fn exp_of(x: f64) -> f64 {
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const LOG_TWO: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];
    let x = if x > -708.0 { x } else { -708.0 };
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    let r = (x - whole * LOG_TWO[0]) - whole * LOG_TWO[1];
    // Taylor's series; its rest at ln(2)/2 is 2e-17.
    let r2 = r * r;
    let r4 = r2 * r2;
    let low = (1.0 / 6.0 + r * (1.0 / 24.0)) + r2 * (1.0 / 120.0 + r * (1.0 / 720.0));
    let high = (1.0 / 5040.0 + r * (1.0 / 40_320.0)) + r2 * (1.0 / 362_880.0 + r * (1.0 / 3_628_800.0));
    let top = 1.0 / 39_916_800.0 + r * (1.0 / 479_001_600.0 + r * (1.0 / 6_227_020_800.0));
    let series = 1.0 + (r + r2 * (0.5 + r * (low + r4 * (high + r4 * top))));
    series * f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52)
}

/// `(x + 4) m(x)` as a polynomial in `(x - 4)/(x + 4)`, m Mills' ratio: Chebyshev's series to degree 24 in 60 digits.
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

/// Mills' ratio for `x >= 0`, without a branch: relative error below 2e-15.
#[inline(always)]
pub fn mills_of(x: f64) -> f64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_agree_with_the_system() {
        for x in
            [1.0, 0.5, 2.0, 1.0 + 1e-9, 0.707, 0.7072, 1.414, 1.4143, 3.25, 1e-300, 1e300, f64::MIN_POSITIVE, f64::MAX]
        {
            let expected = x.ln();
            assert!((log_of_normal(x) - expected).abs() <= 4e-16 * expected.abs().max(1.0), "{x}");
        }
        let mut x = 1e-8;
        while x < 1e8 {
            assert!((log_of_normal(x) - x.ln()).abs() <= 4e-16 * x.ln().abs().max(1.0), "{x}");
            x *= 1.0137;
        }
    }

    #[test]
    fn exponentials_and_mills_ratio_agree_with_the_system() {
        use crate::numeric::special::normal::mills;
        let mut x = 1e-9;
        while x < 705.0 {
            for x in [x, -x] {
                if x < 700.0 {
                    assert!((exp_of(x) / x.exp() - 1.0).abs() < 4e-16 + 2.3e-16, "{x}");
                }
            }
            assert!((mills_of(x) / mills(x) - 1.0).abs() < 6e-15, "{x}");
            x *= 1.01;
        }
        assert_eq!(exp_of(0.0), 1.0);
        assert!(exp_of(-1e300) > 0.0 && exp_of(f64::NEG_INFINITY) < 1e-307);
        assert!((mills_of(0.0) - 1.253_314_137_315_500_3).abs() < 1e-15);
        assert!((mills_of(1e8) * 1e8 - 1.0).abs() < 1e-14);
    }
}
