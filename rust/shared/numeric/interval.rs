//! Interval arithmetic: numbers known to lie between two integers over a power of two, all rounding outwards.
//!
//! exp(-y) = 1 - y + y^2/2! - ...   for 0 <= y <= 1/2, its terms rounded downwards and upwards, then squared back.
//!
//! A number is always inside. The precision is absolute (bits after the binary point), as thresholds of random bits need it;
//! numbers are at least 0.
//!
//! Source: R. Moore (1966), Interval Analysis.

use num_bigint::BigUint;

/// A number in `[lower, upper] / 2^precision`.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// The lower end, in units of `2^-precision`.
    pub lower: BigUint,
    /// The upper end, in units of `2^-precision`.
    pub upper: BigUint,
    /// Bits after the binary point.
    pub precision: u64,
}

fn ceiling(numerator: BigUint, denominator: &BigUint) -> BigUint {
    (numerator + denominator - 1u32) / denominator
}

fn shift_up(value: BigUint, bits: u64) -> BigUint {
    (value + ((BigUint::from(1u32) << bits) - 1u32)) >> bits
}

impl Interval {
    /// The number one.
    pub fn one(precision: u64) -> Self {
        let one = BigUint::from(1u32) << precision;
        Self { lower: one.clone(), upper: one, precision }
    }

    /// `numerator / denominator`; the denominator is positive.
    pub fn ratio(numerator: &BigUint, denominator: &BigUint, precision: u64) -> Self {
        let scaled = numerator << precision;
        Self { lower: &scaled / denominator, upper: ceiling(scaled, denominator), precision }
    }

    /// `exp(-numerator / denominator)`; the denominator is positive.
    pub fn exp_negative(numerator: &BigUint, denominator: &BigUint, precision: u64) -> Self {
        // Halve until the argument is at most 1/2; each squaring back doubles the error at most.
        let mut halvings = 0;
        while (numerator << 1u32) > (denominator << halvings) {
            halvings += 1;
        }
        let work = precision + halvings + 32;
        let denominator = denominator << halvings;
        let one = Self::one(work);
        let (mut even, mut odd) = (one.clone(), Self { lower: BigUint::ZERO, upper: BigUint::ZERO, precision: work });
        let mut term = one;
        for i in 1u32.. {
            let divisor = &denominator * i;
            term.lower = &term.lower * numerator / &divisor;
            term.upper = ceiling(&term.upper * numerator, &divisor);
            let sum = if i % 2 == 0 { &mut even } else { &mut odd };
            sum.lower += &term.lower;
            sum.upper += &term.upper;
            if term.upper <= BigUint::from(1u32) {
                break; // an alternating series: what is left is smaller than this last term
            }
        }
        let mut value =
            Self { lower: (even.lower - odd.upper) - 1u32, upper: (even.upper - odd.lower) + 1u32, precision: work };
        for _ in 0..halvings {
            value = value.times(&value);
        }
        value.rounded(precision)
    }

    /// The product with another number of the same precision.
    pub fn times(&self, other: &Self) -> Self {
        debug_assert_eq!(self.precision, other.precision);
        Self {
            lower: (&self.lower * &other.lower) >> self.precision,
            upper: shift_up(&self.upper * &other.upper, self.precision),
            precision: self.precision,
        }
    }

    /// The `exponent`-th power, by squaring.
    pub fn power(&self, mut exponent: u64) -> Self {
        let (mut result, mut square) = (Self::one(self.precision), self.clone());
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = result.times(&square);
            }
            exponent >>= 1;
            if exponent > 0 {
                square = square.times(&square);
            }
        }
        result
    }

    /// The sum with another number of the same precision.
    pub fn plus(&self, other: &Self) -> Self {
        Self { lower: &self.lower + &other.lower, upper: &self.upper + &other.upper, precision: self.precision }
    }

    /// One minus the number, which is at most one.
    pub fn complement(&self) -> Self {
        let one = BigUint::from(1u32) << self.precision;
        let lower = if self.upper > one { BigUint::ZERO } else { &one - &self.upper };
        Self { lower, upper: one - &self.lower, precision: self.precision }
    }

    /// The quotient by a positive number of the same precision.
    pub fn over(&self, other: &Self) -> Self {
        Self {
            lower: (&self.lower << self.precision) / &other.upper,
            upper: ceiling(&self.upper << self.precision, &other.lower),
            precision: self.precision,
        }
    }

    /// The same number with fewer bits.
    pub fn rounded(&self, precision: u64) -> Self {
        let drop = self.precision - precision;
        Self { lower: &self.lower >> drop, upper: shift_up(self.upper.clone(), drop), precision }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exp(numerator: u64, denominator: u64, precision: u64) -> Interval {
        Interval::exp_negative(&numerator.into(), &denominator.into(), precision)
    }

    #[test]
    fn the_exponential_of_minus_one_is_enclosed_to_the_last_bits() {
        // 1/e = 0.367879441171442321595523770161460867445811131031767834507836801697...
        let digits: BigUint = "367879441171442321595523770161460867445811131031767834507836801697".parse().unwrap();
        let power = BigUint::from(10u32).pow(66);
        let found = exp(1, 1, 200);
        assert!(&found.lower * &power <= (&digits + 1u32) << 200u32);
        assert!(&found.upper * &power >= &digits << 200u32);
        assert!(&found.upper - &found.lower <= BigUint::from(2u32));
    }

    #[test]
    fn a_power_and_a_quotient_stay_inside() {
        // (2/3)^5 = 32/243, and (1/3) / (2/3) = 1/2.
        let (two, three) = (BigUint::from(2u32), BigUint::from(3u32));
        let fifth = Interval::ratio(&two, &three, 100).power(5);
        assert!(&fifth.lower * 243u32 <= BigUint::from(32u32) << 100u32);
        assert!(&fifth.upper * 243u32 >= BigUint::from(32u32) << 100u32);
        let third = Interval::ratio(&1u32.into(), &three, 100);
        let half = third.over(&third.complement());
        assert!(half.lower <= BigUint::from(1u32) << 99u32 && half.upper >= BigUint::from(1u32) << 99u32);
    }

    proptest! {
        #[test]
        fn the_exponential_agrees_with_the_library_and_is_narrow(n in 0u64..1_000_000, d in 1u64..1_000_000) {
            let found = exp(n, d, 80);
            let scale = 2f64.powi(-80);
            let (lower, upper) = (to_f64(&found.lower) * scale, to_f64(&found.upper) * scale);
            let value = (-(n as f64) / d as f64).exp();
            prop_assert!(lower <= value * (1.0 + 1e-12) && value * (1.0 - 1e-12) <= upper + scale);
            prop_assert!(&found.upper - &found.lower <= BigUint::from(2u32));
        }
    }

    fn to_f64(value: &BigUint) -> f64 {
        value.to_string().parse().unwrap()
    }
}
