//! Long work on big integers that can be stopped: products, powers and fractions in lowest terms.
//!
//! One product of the library below takes as long as its factors ask; here factors above [`LONG`] bits are halved
//! (Karatsuba), and the progress is asked before each product of parts.
//!
//! Source: D. Knuth (1997), The Art of Computer Programming 2, 3rd ed., section 4.3.3.

use crate::Result;
use crate::monitor::Progress;
use num_bigint::{BigInt, BigUint};

/// Bits up to which a product takes a few milliseconds.
const LONG: u64 = 1 << 20;

/// `a b`.
///
/// # Errors
/// [`crate::Error::Interrupted`] when the progress says so.
pub fn product(a: &BigUint, b: &BigUint, progress: &Progress) -> Result<BigUint> {
    progress.check()?;
    let bits = a.bits().max(b.bits());
    if bits <= LONG {
        return Ok(a * b);
    }
    let half = bits / 2;
    let parts = |x: &BigUint| {
        let high = x >> half;
        let low = x - (&high << half);
        (high, low)
    };
    let ((a_high, a_low), (b_high, b_low)) = (parts(a), parts(b));
    let low = product(&a_low, &b_low, progress)?;
    if a_high == BigUint::ZERO || b_high == BigUint::ZERO {
        let (high, other) = if a_high == BigUint::ZERO { (b_high, a_low) } else { (a_high, b_low) };
        return Ok(low + (product(&high, &other, progress)? << half));
    }
    let high = product(&a_high, &b_high, progress)?;
    let mixed = product(&(a_high + a_low), &(b_high + b_low), progress)? - &high - &low;
    Ok((high << (2 * half)) + (mixed << half) + low)
}

/// `base^exponent`.
///
/// # Errors
/// As [`product`].
pub fn power(base: &BigUint, exponent: u64, progress: &Progress) -> Result<BigUint> {
    let mut value = BigUint::from(1u32);
    for bit in (0..u64::BITS - exponent.leading_zeros()).rev() {
        value = product(&value, &value, progress)?;
        if exponent >> bit & 1 == 1 {
            value = product(&value, base, progress)?;
        }
    }
    Ok(value)
}

/// `numerator / base^exponent` in lowest terms; `base` is positive.
///
/// Each of the factors `base` loses what it has in common with what is left of the numerator; once that is nothing, the rest
/// have nothing in common with it either. That is seen modulo `base`: for a large exponent much sooner than by the greatest
/// common divisor of both numbers.
///
/// # Errors
/// As [`product`].
pub fn lowest_terms(
    mut numerator: BigInt,
    base: &BigUint,
    exponent: u64,
    progress: &Progress,
) -> Result<(BigInt, BigUint)> {
    let mut denominator = BigUint::from(1u32);
    for done in 0..exponent {
        progress.check()?;
        let common = greatest_common_divisor(numerator.magnitude() % base, base.clone(), progress)?;
        if common == BigUint::from(1u32) {
            let rest = power(base, exponent - done, progress)?;
            return Ok((numerator, product(&denominator, &rest, progress)?));
        }
        denominator = product(&denominator, &(base / &common), progress)?;
        numerator /= BigInt::from(common);
    }
    Ok((numerator, denominator))
}

fn greatest_common_divisor(mut a: BigUint, mut b: BigUint, progress: &Progress) -> Result<BigUint> {
    while a != BigUint::ZERO {
        progress.check()?;
        (a, b) = (b % &a, a);
    }
    Ok(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number(words: &[u32]) -> BigUint {
        BigUint::new(words.to_vec())
    }

    proptest! {
        #[test]
        fn fractions_are_equal_and_in_lowest_terms(n: i64, b in 1u64..5000, exponent in 0u64..40) {
            let (base, progress) = (BigUint::from(b), Progress::default());
            let all = BigInt::from(base.pow(exponent as u32));
            for numerator in [BigInt::from(n), BigInt::from(n) * BigInt::from(base.pow(20)), BigInt::ZERO] {
                let (top, bottom) = lowest_terms(numerator.clone(), &base, exponent, &progress).unwrap();
                let common = greatest_common_divisor(top.magnitude().clone(), bottom.clone(), &progress).unwrap();
                prop_assert!(common == BigUint::from(1u32));
                prop_assert_eq!(top * &all, numerator * BigInt::from(bottom));
            }
        }

        #[test]
        fn powers_are_those_of_the_library(base: u64, exponent in 0u32..200) {
            let base = BigUint::from(base);
            prop_assert_eq!(power(&base, exponent.into(), &Progress::default()).unwrap(), base.pow(exponent));
        }
    }

    #[test]
    fn long_products_are_those_of_the_library_and_stop() {
        let progress = Progress::default();
        let words =
            |seed: u32, len: u32| -> Vec<u32> { (0..len).map(|i| (i ^ seed).wrapping_mul(0x9E37_79B9)).collect() };
        for (a, b) in [(100_000, 100_000), (70_000, 33), (33, 100_000), (50_000, 33_000), (0, 100_000)] {
            let (a, b) = (number(&words(1, a)), number(&words(2, b)));
            assert!(product(&a, &b, &progress).unwrap() == &a * &b);
        }
        progress.cancel();
        assert_eq!(power(&BigUint::from(3u32), 5, &progress), Err(crate::Error::Interrupted));
    }
}
