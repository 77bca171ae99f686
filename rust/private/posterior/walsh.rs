//! The Walsh-Hadamard transform in whole numbers, and how much parities can change.
//!
//! c(g) = sum_x n(x) (-1)^<g,x>, in place; applied twice it multiplies by the length. A record's parity <g,x> is odd or even, so
//! replacing one record by another changes the number q(g) = (n - c(g)) / 2 of odd ones by at most one, and their sum over a set N
//! of masks by at most M = max_z #{g in N : <g,z> odd} = max_z (|N| - s(z)) / 2, s the transform of the indicator of N.
//!
//! Source: B. Barak, K. Chaudhuri, C. Dwork, S. Kale, F. McSherry, K. Talwar (2007), Privacy, accuracy, and consistency too.

use crate::numeric::dispatch::{at_level, level};
use crate::{Error, Result};

/// What fits the first cache.
const NEAR: usize = 1 << 11;

/// Four blocks at a time: two levels in one pass over memory.
#[inline(always)]
fn quarters(values: &mut [i64]) {
    let quarter = values.len() / 4;
    let (low, high) = values.split_at_mut(2 * quarter);
    let ((a, b), (c, d)) = (low.split_at_mut(quarter), high.split_at_mut(quarter));
    for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
        let (p, q, r, s) = (*a + *b, *a - *b, *c + *d, *c - *d);
        (*a, *b, *c, *d) = (p + r, q + s, p - r, q - s);
    }
}

#[inline(always)]
fn halves(values: &mut [i64]) {
    let (a, b) = values.split_at_mut(values.len() / 2);
    for (a, b) in a.iter_mut().zip(b) {
        (*a, *b) = (*a + *b, *a - *b);
    }
}

#[inline(always)]
fn far(values: &mut [i64]) {
    let mut length = values.len();
    while length > NEAR {
        // One pass over everything in blocks of this length, four quarters each.
        values.chunks_exact_mut(length).for_each(quarters);
        length /= 4;
    }
    for block in values.chunks_exact_mut(length) {
        let mut length = block.len();
        while length >= 4 {
            block.chunks_exact_mut(length).for_each(quarters);
            length /= 4;
        }
        if length == 2 {
            block.chunks_exact_mut(2).for_each(halves);
        }
    }
}

/// The transform of a vector whose length is a power of two, in place. The sum of the absolute values must be below 2^63.
///
/// # Errors
/// [`Error::Shape`] for another length; [`Error::Domain`] for values so large that a sum might not fit.
pub fn transform(values: &mut [i64]) -> Result<()> {
    if !values.len().is_power_of_two() {
        return Err(Error::shape("values", "(2^w,)", format_args!("({},)", values.len())));
    }
    let largest = values.iter().fold(0, |all, value| all | value.unsigned_abs());
    if u128::from(largest) * values.len() as u128 >= 1 << 63 {
        let total: u128 = values.iter().map(|value| u128::from(value.unsigned_abs())).sum();
        Error::require(total < 1 << 63, "values", total, "numbers whose absolute values sum to less than 2^63")?;
    }
    at_level!(level(), far(values));
    Ok(())
}

/// M, the most parities of a set of masks that replacing one record can change; masks are below `2^bits`, `bits <= 24`.
///
/// # Errors
/// [`Error::Domain`] for too many bits or a mask beyond them.
pub fn parity_sensitivity(masks: &[u64], bits: u32) -> Result<u64> {
    Error::require(bits <= 24, "bits", bits, "at most 24")?;
    let mut indicator = vec![0; 1 << bits];
    for &mask in masks {
        let cell = indicator.get_mut(mask as usize);
        *cell.ok_or_else(|| Error::domain("masks", mask, "below 2^bits"))? = 1;
    }
    let size: i64 = indicator.iter().sum();
    transform(&mut indicator)?;
    let least = indicator.into_iter().min().unwrap_or(size);
    Ok(((size - least) / 2) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slowly(values: &[i64]) -> Vec<i64> {
        let sign = |g: usize, x: usize| if (g & x).count_ones().is_multiple_of(2) { 1 } else { -1 };
        (0..values.len()).map(|g| values.iter().enumerate().map(|(x, n)| sign(g, x) * n).sum()).collect()
    }

    proptest! {
        #[test]
        fn it_is_the_sum_over_signs(bits in 0u32..9, seed in proptest::collection::vec(-1000i64..1000, 512)) {
            let mut values = seed[..1 << bits].to_vec();
            let expected = slowly(&values);
            transform(&mut values).unwrap();
            prop_assert_eq!(values, expected);
        }
    }

    #[test]
    fn applied_twice_it_multiplies_by_the_length_at_every_size() {
        for bits in 0..17u32 {
            let before: Vec<i64> = (0..1i64 << bits).map(|i| i * i % 1009 - 500).collect();
            let mut values = before.clone();
            transform(&mut values).unwrap();
            transform(&mut values).unwrap();
            assert!(values.iter().zip(&before).all(|(after, before)| *after == before << bits), "{bits}");
        }
        assert!(transform(&mut [1, 2, 3]).is_err() && transform(&mut [i64::MIN, 1]).is_err());
    }

    #[test]
    fn parities_change_as_often_as_an_enumeration_says() {
        for masks in [vec![0u64], vec![0, 1, 2, 4], vec![0, 1, 2, 3, 4, 5], vec![0, 1, 3, 5, 9, 8, 2, 4]] {
            let changed = |z: u64| masks.iter().filter(|&&g| (g & z).count_ones() % 2 == 1).count() as u64;
            assert_eq!(parity_sensitivity(&masks, 4).unwrap(), (0..16).map(changed).max().unwrap());
        }
        assert!(parity_sensitivity(&[16], 4).is_err() && parity_sensitivity(&[], 25).is_err());
    }
}
