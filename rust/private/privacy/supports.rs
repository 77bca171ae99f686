//! Reports that support some of the categories: local hashing, subset selection, Hadamard response.
//!
//! Each category has a set of reports, a share `inside / (inside + outside)` of all of them. A report is uniform within the set of
//! the true category, or, with probability `miss`, uniform without; so its probability takes two values, of the ratio
//!   (1 - miss) outside / (miss inside) <= e^epsilon.
//! `miss` is a whole number of 2^-64, rounded upwards: towards more noise. All else is drawn by whole numbers below a bound.
//!
//! | protocol | a report | supports |
//! |---|---|---|
//! | local hashing | a hash function h of g values, and one of these | the categories that h maps there |
//! | subset selection | w categories | themselves |
//! | Hadamard response | an index below 2^m blocks, of a block and a column | of its block those whose row is +1 there |
//!
//! The hash functions are h(x) = ((a x + b) mod P) mod g for a, b below P = 2^31 - 1: for two categories below P the pair of
//! a x + b is uniform.
//!
//! Source: T. Wang, J. Blocki, N. Li, S. Jha (2017), Locally differentially private protocols for frequency estimation; M. Ye, A.
//! Barg (2018), Optimal schemes for discrete distribution estimation under locally differential privacy; J. Acharya, Z. Sun, H.
//! Zhang (2019), Hadamard response; R. Floyd, J. Bentley (1987), A sample of brilliance (uniform subsets).

use super::source::Source;
use crate::monitor::Monitor;
use crate::{Error, Result, memory};

/// The prime of the hash functions; a function is the number `a P + b`.
pub const PRIME: u64 = (1 << 31) - 1;
/// Draws between two looks at the monitor: 10 to 30 ms.
const BATCH: usize = 1 << 20;

/// A hash function and a noisy hash of each value, two numbers per value.
///
/// # Errors
/// [`Error::Domain`] for a value that is no category; [`Error::TooLarge`]; whatever the monitor returned.
pub fn hash_categories(
    values: &[i64],
    buckets: u64,
    miss: u64,
    source: &mut impl Source,
    monitor: &mut dyn Monitor,
) -> Result<Vec<i64>> {
    each(values, PRIME, (2, "hashes"), monitor, 1, |x, report| {
        let function = source.below(PRIME * PRIME);
        let (a, b) = (function / PRIME, function % PRIME);
        let hash = (a * x + b) % PRIME % buckets;
        report[0] = function as i64;
        report[1] = if source.bits(64) < miss { skip(source.below(buckets - 1), hash) } else { hash } as i64;
    })
}

/// A noisy subset of `size` of the `categories` for each value, one byte 0 or 1 per category.
///
/// # Errors
/// As [`hash_categories`].
pub fn select_subsets(
    values: &[i64],
    categories: usize,
    size: usize,
    miss: u64,
    source: &mut impl Source,
    monitor: &mut dyn Monitor,
) -> Result<Vec<u8>> {
    Error::require(size > 0 && size < categories, "size", size, "between 1 and categories - 1")?;
    let reports = (categories, "subsets of categories");
    each(values, categories as u64, reports, monitor, size + categories / 16, |x, row| {
        let hit = source.bits(64) >= miss;
        subset(row, x, size - usize::from(hit), source);
        row[x as usize] = hit.into();
    })
}

/// Marks a uniform subset of `size` categories other than `x`, by Floyd's method: a number for each.
fn subset(row: &mut [u8], x: u64, size: usize, source: &mut impl Source) {
    let others = row.len() as u64 - 1;
    for last in others - size as u64..others {
        let drawn = skip(source.below(last + 1), x) as usize;
        let place = if row[drawn] == 1 { skip(last, x) as usize } else { drawn };
        row[place] = 1;
    }
}

/// The number of that rank among those that are not `left_out`.
fn skip(rank: u64, left_out: u64) -> u64 {
    rank + u64::from(rank >= left_out)
}

/// For each value an index of a block and a column of the Hadamard matrix of order `columns`, a power of two. Category
/// x has the row `x % (columns - 1) + 1` of the block `x / (columns - 1)`.
///
/// # Errors
/// As [`hash_categories`].
pub fn hadamard_responses(
    values: &[i64],
    blocks: u64,
    columns: u64,
    miss: u64,
    source: &mut impl Source,
    monitor: &mut dyn Monitor,
) -> Result<Vec<i64>> {
    let sound = columns >= 2 && columns.is_power_of_two() && blocks > 0 && blocks.checked_mul(columns).is_some();
    let found = format_args!("{blocks} and {columns}");
    Error::require(sound, "blocks", found, "at least 1, with a power of two of columns")?;
    each(values, blocks * (columns - 1), (1, "responses"), monitor, 1, |x, report| {
        let (block, row) = (x / (columns - 1), x % (columns - 1) + 1);
        let miss = source.bits(64) < miss;
        // Those without are half of the own block, and all of the others.
        let rank = if miss { source.below((2 * blocks - 1) * (columns / 2)) } else { 0 };
        report[0] = if !miss || rank < columns / 2 {
            let column = source.below(columns);
            // The lowest bit of the row exchanges its columns of +1 and of -1, which are as many.
            let negative = (column & row).count_ones() % 2 == 1;
            block * columns + if negative == miss { column } else { column ^ (row & row.wrapping_neg()) }
        } else {
            let rank = rank - columns / 2;
            skip(rank / columns, block) * columns + rank % columns
        } as i64;
    })
}

/// A report of some width for each value below `bound`, zeros before it is written, which takes about `draws` draws.
fn each<T: Clone + Default>(
    values: &[i64],
    bound: u64,
    (width, what): (usize, &'static str),
    monitor: &mut dyn Monitor,
    draws: usize,
    mut write: impl FnMut(u64, &mut [T]),
) -> Result<Vec<T>> {
    let mut reports = memory::filled(T::default(), values.len().saturating_mul(width), what)?;
    Error::require_all(values, |value| u64::try_from(value).is_ok_and(|value| value < bound), "x", "a category")?;
    let (batch, total) = ((BATCH / draws).max(1), values.len() as u64);
    for (place, (values, reports)) in values.chunks(batch).zip(reports.chunks_mut(batch * width)).enumerate() {
        if place > 0 {
            monitor.tick((place * batch) as u64, total)?;
        }
        values.iter().zip(reports.chunks_exact_mut(width)).for_each(|(&value, report)| write(value as u64, report));
    }
    Ok(reports)
}

#[cfg(test)]
mod tests {
    use super::super::source::Generator;
    use super::super::source::tests::walk;
    use super::*;
    use crate::monitor::Silent;
    use num_bigint::BigUint;

    #[test]
    fn every_subset_of_the_others_is_equally_likely() {
        for (size, number) in [(0, 1u32), (1, 4), (2, 6), (3, 4), (4, 1)] {
            let tree = walk(size, BigUint::from(120u32), |source| {
                let mut row = [0; 5];
                subset(&mut row, 2, size, source);
                row.iter().fold(0, |word, &bit| 2 * word + i64::from(bit))
            });
            assert_eq!(tree.undecided, BigUint::ZERO);
            assert_eq!(tree.weights.len(), number as usize);
            assert!(tree.weights.values().all(|weight| *weight == BigUint::from(120 / number)));
            assert!(tree.weights.keys().all(|word| word & 0b00100 == 0 && word.count_ones() == size as u32));
        }
    }

    #[test]
    fn without_a_miss_and_with_nothing_else_reports_do_and_do_not_support_the_truth() {
        let mut source = Generator::insecure([7, 7]);
        let values: Vec<i64> = (0..14).cycle().take(1400).collect();
        for (miss, supported) in [(0, true), (u64::MAX, false)] {
            let reports = hash_categories(&values, 5, miss, &mut source, &mut Silent).unwrap();
            for (report, &x) in reports.chunks(2).zip(&values) {
                let (a, b) = (report[0] as u64 / PRIME, report[0] as u64 % PRIME);
                assert_eq!((a * x as u64 + b) % PRIME % 5 == report[1] as u64, supported);
                assert!((0..5).contains(&report[1]));
            }
            let rows = select_subsets(&values, 14, 3, miss, &mut source, &mut Silent).unwrap();
            for (row, &x) in rows.chunks(14).zip(&values) {
                assert_eq!((row[x as usize] == 1, row.iter().sum::<u8>()), (supported, 3));
            }
            let reports = hadamard_responses(&values, 2, 8, miss, &mut source, &mut Silent).unwrap();
            for (&report, &x) in reports.iter().zip(&values) {
                let even = ((report % 8) & (x % 7 + 1)).count_ones() % 2 == 0;
                assert!((0..16).contains(&report));
                assert_eq!(report / 8 == x / 7 && even, supported);
            }
        }
    }

    #[test]
    fn wrong_sizes_and_categories_are_refused() {
        let mut source = Generator::insecure([7, 7]);
        let mut select = |values: &[i64], size| select_subsets(values, 3, size, 1, &mut source, &mut Silent);
        assert!(select(&[0, 2], 1).is_ok_and(|rows| rows.len() == 6) && select(&[], 2) == Ok(vec![]));
        assert!(select(&[3], 1).is_err() && select(&[-1], 1).is_err());
        assert!(select(&[0], 0).is_err() && select(&[0], 3).is_err());
        let mut respond =
            |x: i64, blocks, columns| hadamard_responses(&[x], blocks, columns, 1, &mut source, &mut Silent);
        assert!(respond(5, 2, 4).is_ok() && respond(6, 2, 4).is_err());
        assert!(respond(0, 0, 4).is_err() && respond(0, 1, 3).is_err() && respond(0, 1, 0).is_err());
    }
}
