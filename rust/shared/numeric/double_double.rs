//! Double-double arithmetic: unevaluated sums of two doubles, about 32 decimal digits.
//!
//! `x = hi + lo` with `|lo| <= ulp(hi) / 2`. Sums and products have relative error at most 3 * 2^-106 and 7 * 2^-106, square
//! roots and quotients at most 2^-102 (M. Joldes, J.-M. Muller and V. Popescu (2017), Tight and rigorous error bounds for
//! basic building blocks of double-word arithmetic, ACM TOMS 44). Products are split as T. J. Dekker (1971) does it, not fused,
//! so that every machine gives the same bits; operands must stay below 2^970 in size.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

/// A number of about 106 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
#[repr(C)]
pub struct DoubleDouble {
    /// The nearest double.
    pub hi: f64,
    /// What it misses.
    pub lo: f64,
}

#[inline(always)]
pub(super) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let from_b = sum - a;
    (sum, (a - (sum - from_b)) + (b - from_b))
}

#[inline(always)]
pub(super) fn fast_two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, b - (sum - a))
}

#[inline(always)]
fn split(a: f64) -> (f64, f64) {
    let shifted = 134_217_729.0 * a; // 2^27 + 1
    let high = shifted - (shifted - a);
    (high, a - high)
}

#[inline(always)]
fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    let ((ah, al), (bh, bl)) = (split(a), split(b));
    (product, ((ah * bh - product) + ah * bl + al * bh) + al * bl)
}

impl DoubleDouble {
    /// The square root of a number that is not negative.
    #[inline]
    pub fn sqrt(self) -> Self {
        if self.hi <= 0.0 {
            return Self::default();
        }
        let root = self.hi.sqrt();
        let (square, error) = two_product(root, root);
        let rest = self - Self { hi: square, lo: error };
        let (hi, lo) = fast_two_sum(root, rest.hi / (2.0 * root));
        Self { hi, lo }
    }
}

impl From<f64> for DoubleDouble {
    #[inline(always)]
    fn from(hi: f64) -> Self {
        Self { hi, lo: 0.0 }
    }
}

impl Add for DoubleDouble {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let (sum, error) = two_sum(self.hi, other.hi);
        let (low, low_error) = two_sum(self.lo, other.lo);
        let (sum, error) = fast_two_sum(sum, error + low);
        let (hi, lo) = fast_two_sum(sum, error + low_error);
        Self { hi, lo }
    }
}

impl AddAssign for DoubleDouble {
    #[inline(always)]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Neg for DoubleDouble {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self { hi: -self.hi, lo: -self.lo }
    }
}

impl Sub for DoubleDouble {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for DoubleDouble {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        let (product, error) = two_product(self.hi, other.hi);
        let (hi, lo) = fast_two_sum(product, error + (self.hi * other.lo + self.lo * other.hi));
        Self { hi, lo }
    }
}

impl Div for DoubleDouble {
    type Output = Self;
    #[inline]
    fn div(self, other: Self) -> Self {
        let first = self.hi / other.hi;
        let rest = self - other * Self::from(first);
        let second = rest.hi / other.hi;
        let rest = rest - other * Self::from(second);
        let (hi, lo) = fast_two_sum(first, second);
        Self { hi, lo } + Self::from(rest.hi / other.hi)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigInt;
    use proptest::prelude::*;

    /// The number times 2^400, exactly: arguments here are multiples of 2^-400.
    fn exact(x: DoubleDouble) -> BigInt {
        let integer = |x: f64| {
            let bits = x.abs().to_bits();
            let (mantissa, exponent) = ((bits & ((1 << 52) - 1)) | (1 << 52), (bits >> 52) as i64 - 1075 + 400);
            let size = if x == 0.0 {
                BigInt::ZERO
            } else if exponent >= 0 {
                BigInt::from(mantissa) << exponent
            } else {
                BigInt::from(mantissa) >> -exponent
            };
            if x < 0.0 { -size } else { size }
        };
        integer(x.hi) + integer(x.lo)
    }

    fn number() -> impl Strategy<Value = DoubleDouble> {
        ((-1e3..1e3f64), (-1.0..1.0f64)).prop_map(|(a, b)| DoubleDouble::from(a) + DoubleDouble::from(b * 1e-17))
    }

    proptest! {
        #[test]
        fn sums_products_quotients_and_roots_are_right_to_a_hundred_bits(a in number(), b in number()) {
            let (x, y) = (exact(a), exact(b));
            let close = |found: BigInt, wanted: BigInt, scale: &BigInt| {
                (found - wanted).magnitude() << 100u32 <= scale.magnitude().clone() + 2u32.pow(20)
            };
            prop_assert!(close(exact(a + b), &x + &y, &(&x + &y)));
            prop_assert!(close(exact(a * b), (&x * &y) >> 400, &((&x * &y) >> 400)));
            prop_assume!(b.hi.abs() > 1e-3);
            prop_assert!(close(exact((a / b) * b), x.clone(), &(&x << 1)));
            let size = if a.hi < 0.0 { -a } else { a };
            prop_assert!(close(exact(size.sqrt() * size.sqrt()), exact(size), &(exact(size) << 1)));
        }
    }
}
