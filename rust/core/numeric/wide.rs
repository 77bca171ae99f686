//! Kernels over floats compiled once more for wider vectors, and a logarithm that such kernels can hold in registers.
//!
//! No operation is fused or reordered by the wider instructions, so every level computes the same bits.

/// Defines a function whose body is also compiled for AVX-512 and AVX2 and runs at the level of the process.
macro_rules! for_wide_vectors {
    ($(#[$about:meta])* $sight:vis fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $(-> $result:ty)? $body:block) => {
        $(#[$about])*
        $sight fn $name($($argument: $kind),*) $(-> $result)? {
            #[inline(always)]
            fn plain($($argument: $kind),*) $(-> $result)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
                fn avx512($($argument: $kind),*) $(-> $result)? {
                    plain($($argument),*)
                }
                #[target_feature(enable = "avx2")]
                fn avx2($($argument: $kind),*) $(-> $result)? {
                    plain($($argument),*)
                }
                match $crate::numeric::dispatch::level() {
                    $crate::numeric::dispatch::Level::Avx512 => {
                        // SAFETY: a level is at most what the machine has.
                        return unsafe { avx512($($argument),*) };
                    }
                    $crate::numeric::dispatch::Level::Avx2 => {
                        // SAFETY: a level is at most what the machine has.
                        return unsafe { avx2($($argument),*) };
                    }
                    $crate::numeric::dispatch::Level::Baseline => {}
                }
            }
            plain($($argument),*)
        }
    };
}
pub(crate) use for_wide_vectors;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_agree_with_the_system() {
        for x in [
            1.0,
            0.5,
            2.0,
            1.0 + 1e-9,
            0.7071,
            0.7072,
            1.4142,
            1.4143,
            3.25,
            1e-300,
            1e300,
            f64::MIN_POSITIVE,
            f64::MAX,
        ] {
            let expected = x.ln();
            assert!((log_of_normal(x) - expected).abs() <= 4e-16 * expected.abs().max(1.0), "{x}");
        }
        let mut x = 1e-8;
        while x < 1e8 {
            assert!((log_of_normal(x) - x.ln()).abs() <= 4e-16 * x.ln().abs().max(1.0), "{x}");
            x *= 1.0137;
        }
    }
}
