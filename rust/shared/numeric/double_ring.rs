//! Rings of double-doubles for transfer kernels: numbers of about 106 bits, none of them negative.
//!
//! With u = 2^-53 and `x = hi + lo`, `|lo| <= u hi`, an operation here has relative error below `16 u^2 = 2^-102`:
//!
//! - A sum of two such numbers is `s + e` exactly for the high parts, `|e| <= u s`; rounding `lo + lo'` errs by at most
//!   `u^2 (hi + hi')`, adding `e` by at most `2 u^2 (1 + u) (hi + hi')`, and the last step is exact: `3 u^2` in all. (Terms of
//!   both signs would cancel, and need the longer sum of [`DoubleDouble`]'s `+`.)
//! - A product is `p + e` exactly for the high parts; rounding the two mixed products, their sum, and the sum with `e` errs
//!   by at most `(1 + 1 + 2 + 3) u^2`, and `lo lo'`, which is left out, is at most `u^2`: `8 u^2` in all, up to terms in u^3.
//!
//! That holds while products lie within 2^-900 and 2^960, where no low part that matters is lost; [`ScaledDoubleDoubles`] have an
//! exponent of their own and no such bounds.
//!
//! Source: M. Joldes, J.-M. Muller and V. Popescu (2017), Tight and rigorous error bounds for basic building blocks of
//! double-word arithmetic, ACM TOMS 44, algorithms 5 and 10.

use super::buffer::Zero;
use super::double_double::{DoubleDouble, fast_two_sum, two_sum};
use super::ring::Ring;

/// Most that one operation of either ring errs by, relative to its result.
pub const OPERATION_ERROR: f64 = 1.0 / (1u128 << 102) as f64;

/// Double-doubles as they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct DoubleDoubles;

/// The sum of two numbers that are not negative.
#[inline(always)]
fn sum(a: DoubleDouble, b: DoubleDouble) -> DoubleDouble {
    let (sum, error) = two_sum(a.hi, b.hi);
    let (hi, lo) = fast_two_sum(sum, error + (a.lo + b.lo));
    DoubleDouble { hi, lo }
}

impl Ring for DoubleDoubles {
    type Element = DoubleDouble;

    #[inline(always)]
    fn zero(&self) -> DoubleDouble {
        DoubleDouble::default()
    }

    #[inline(always)]
    fn one(&self) -> DoubleDouble {
        1.0.into()
    }

    #[inline(always)]
    fn add(&self, a: DoubleDouble, b: DoubleDouble) -> DoubleDouble {
        sum(a, b)
    }

    #[inline(always)]
    fn mul(&self, a: DoubleDouble, b: DoubleDouble) -> DoubleDouble {
        a * b
    }

    fn complement(&self, a: DoubleDouble) -> DoubleDouble {
        self.one() - a
    }
}

/// Double-doubles with an exponent of their own, so that nothing overflows or is lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScaledDoubleDoubles;

/// A number of [`ScaledDoubleDoubles`], `value * 2^exponent`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct ScaledDoubleDouble {
    /// Zero, or with its high part in `[1, 2)`.
    pub value: DoubleDouble,
    /// The power of two.
    pub exponent: i64,
}

// SAFETY: its zero bytes are the number zero.
unsafe impl Zero for ScaledDoubleDouble {}

/// `2^exponent` for the exponents of normal doubles.
#[inline(always)]
fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

impl ScaledDoubleDouble {
    /// The number `value * 2^exponent` of a value that is finite and not negative.
    pub fn new(value: DoubleDouble, exponent: i64) -> Self {
        // The smallest and the largest are first moved to where powers of two scale exactly.
        let lift = if value.hi < power_of_two(-600) {
            600
        } else if value.hi > power_of_two(600) {
            -600
        } else {
            0
        };
        let lifted = DoubleDouble { hi: value.hi * power_of_two(lift), lo: value.lo * power_of_two(lift) };
        Self { value: lifted, exponent: exponent - lift }.normal()
    }

    /// The logarithm to base 2, within 2^-52 of it relative to the larger of its parts; minus infinity for zero.
    pub fn log2(self) -> f64 {
        self.value.hi.log2() + self.exponent as f64
    }

    #[inline(always)]
    fn normal(self) -> Self {
        let DoubleDouble { hi, lo } = self.value;
        if hi == 0.0 {
            return Self::default();
        }
        let exponent = (hi.to_bits() >> 52) as i64 - 1023;
        let scale = power_of_two(-exponent);
        Self { value: DoubleDouble { hi: hi * scale, lo: lo * scale }, exponent: self.exponent + exponent }
    }
}

impl From<f64> for ScaledDoubleDouble {
    fn from(value: f64) -> Self {
        Self::new(value.into(), 0)
    }
}

impl Ring for ScaledDoubleDoubles {
    type Element = ScaledDoubleDouble;

    #[inline(always)]
    fn zero(&self) -> ScaledDoubleDouble {
        ScaledDoubleDouble::default()
    }

    #[inline(always)]
    fn one(&self) -> ScaledDoubleDouble {
        ScaledDoubleDouble { value: 1.0.into(), exponent: 0 }
    }

    #[inline(always)]
    fn add(&self, a: ScaledDoubleDouble, b: ScaledDoubleDouble) -> ScaledDoubleDouble {
        if a.value.hi == 0.0 {
            return b;
        }
        if b.value.hi == 0.0 {
            return a;
        }
        let (high, low) = if a.exponent >= b.exponent { (a, b) } else { (b, a) };
        // Shifted by 200 or more, the smaller number is far below what a sum errs by.
        let scale = power_of_two(-(high.exponent - low.exponent).min(200));
        let shifted = DoubleDouble { hi: low.value.hi * scale, lo: low.value.lo * scale };
        ScaledDoubleDouble { value: sum(high.value, shifted), exponent: high.exponent }.normal()
    }

    #[inline(always)]
    fn mul(&self, a: ScaledDoubleDouble, b: ScaledDoubleDouble) -> ScaledDoubleDouble {
        ScaledDoubleDouble { value: a.value * b.value, exponent: a.exponent + b.exponent }.normal()
    }

    fn complement(&self, a: ScaledDoubleDouble) -> ScaledDoubleDouble {
        let scale = power_of_two(a.exponent.clamp(-1000, 0));
        let shifted = DoubleDouble { hi: a.value.hi * scale, lo: a.value.lo * scale };
        ScaledDoubleDouble::new(DoubleDouble::from(1.0) - shifted, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigInt;
    use proptest::prelude::*;

    /// The number times 2^2000, exactly: arguments here are multiples of 2^-2000.
    fn exact(x: ScaledDoubleDouble) -> BigInt {
        let integer = |part: f64| {
            if part == 0.0 {
                return BigInt::ZERO;
            }
            let bits = part.abs().to_bits();
            let mantissa = BigInt::from((bits & ((1 << 52) - 1)) | (1 << 52));
            let size = mantissa << ((bits >> 52) as i64 - 1075 + x.exponent + 2000);
            if part < 0.0 { -size } else { size }
        };
        integer(x.value.hi) + integer(x.value.lo)
    }

    /// A number with a full low part of either sign, and one without.
    fn number() -> impl Strategy<Value = DoubleDouble> {
        (1.0..2.0f64, -1.0..1.0f64, prop::bool::ANY).prop_map(|(hi, lo, full)| {
            let (hi, lo) = fast_two_sum(hi, if full { lo * f64::EPSILON } else { 0.0 });
            DoubleDouble { hi, lo }
        })
    }

    fn within(found: &BigInt, wanted: &BigInt) -> bool {
        (found - wanted).magnitude() << 102u32 <= *wanted.magnitude()
    }

    proptest! {
        #[test]
        fn an_operation_errs_by_less_than_2_to_the_minus_102(
            x in number(), y in number(), e in -400i64..400, f in -400i64..400,
        ) {
            let (a, b) = (ScaledDoubleDouble::new(x, e), ScaledDoubleDouble::new(y, f));
            let total = exact(a) + exact(b);
            let product = (exact(a) * exact(b)) >> 2000;
            prop_assert!(within(&exact(ScaledDoubleDoubles.add(a, b)), &total));
            prop_assert!(within(&exact(ScaledDoubleDoubles.mul(a, b)), &product));
            let plain = |x: DoubleDouble, e: i64| {
                let scale = power_of_two(e);
                DoubleDouble { hi: x.hi * scale, lo: x.lo * scale }
            };
            let (a, b) = (plain(x, e), plain(y, f));
            let found = |x: DoubleDouble| exact(ScaledDoubleDouble::new(x, 0));
            prop_assert!(within(&found(DoubleDoubles.add(a, b)), &total));
            prop_assert!(within(&found(DoubleDoubles.mul(a, b)), &product));
            // A chain of operations adds the errors up.
            let sum = (0..64).fold(DoubleDoubles.zero(), |sum, _| DoubleDoubles.add(sum, a));
            prop_assert!(within(&(found(sum) >> 6), &(exact(ScaledDoubleDouble::new(x, e)))));
        }
    }

    #[test]
    fn numbers_beyond_the_doubles_are_scaled_and_zero_is_zero() {
        let ring = ScaledDoubleDoubles;
        for x in [5e-324, f64::MIN_POSITIVE, 1e-300, 1.0, 3.7, 1e300, f64::MAX] {
            let number = ScaledDoubleDouble::new(x.into(), 0);
            assert!((1.0..2.0).contains(&number.value.hi), "{x}");
            let halves = [number.exponent / 2, number.exponent - number.exponent / 2];
            assert_eq!(number.value.hi * 2f64.powi(halves[0] as i32) * 2f64.powi(halves[1] as i32), x);
            assert_eq!(ring.add(number, ring.zero()), number);
            assert_eq!(ring.add(ring.zero(), number), number);
            assert_eq!(ring.mul(number, ring.one()), number);
            assert_eq!(ring.mul(number, ring.zero()), ring.zero());
        }
        let giant = (0..5000).fold(ring.one(), |x, _| ring.mul(x, ScaledDoubleDouble::new(2f64.powi(100).into(), 0)));
        assert_eq!(giant, ScaledDoubleDouble { value: 1.0.into(), exponent: 500_000 });
        assert_eq!(ring.add(giant, ring.one()).exponent, 500_000);
        assert_eq!(ring.mul(giant, 8.0.into()).log2(), 500_003.0);
        let third = ScaledDoubleDouble::new(DoubleDouble::from(1.0) / DoubleDouble::from(3.0), 0);
        let rest = ring.add(third, ring.complement(third));
        assert!((rest.value - 1.0.into()).hi.abs() < 1e-30 && rest.exponent == 0, "{rest:?}");
    }
}
