//! Whole records into an L1 ball, each by a rule that looks at it alone, in a time that does not depend on the counts.
//!
//! A row r of sum s becomes, with C its partial sums, t = min(s, A) and d = max(s, A),
//!   r'(i) = floor(C(i) A / d) - floor(C(i-1) A / d):
//! whole numbers next to r(i) t / s, of sum t. A row within the ball is what it was, by the same instructions: no branch and no
//! division of the processor's (whose time may tell) depends on a count. The quotients are carried as remainders below d.

use crate::monitor::Monitor;
use crate::{Error, Result};

/// Counts between two looks at the monitor.
const BATCH: usize = 1 << 18;
/// The largest bound.
const LARGEST: u64 = 1 << 62;

/// A number of 128 bits, rounded. The system's own conversion counts leading zeros.
#[inline]
fn rounded(number: u128) -> f64 {
    2f64.powi(64) * (number >> 64) as u64 as f64 + number as u64 as f64
}

/// `floor(above / below)` and the remainder, given the rounded inverse of `below`; for `above <= 2^62 below`.
#[inline]
fn divided(above: u128, below: u128, inverse: f64) -> (u64, u128) {
    // In doubles it errs by less than 2^13; so much is taken off, and the rest, at most 2^14, has an error below one.
    let first = (rounded(above) * inverse) as u64;
    let first = first.saturating_sub(1 << 13);
    let rest = above.wrapping_sub(below.wrapping_mul(first.into()));
    let second = (rounded(rest) * inverse) as u64;
    let rest = rest.wrapping_sub(below.wrapping_mul(second.into()));
    // Now in [-below, 2 below).
    let low = (rest as i128) >> 127;
    let rest = rest.wrapping_add(below & low as u128);
    let high = !((rest.wrapping_sub(below) as i128) >> 127);
    let rest = rest.wrapping_sub(below & high as u128);
    let quotient = (first + second).wrapping_add(low as u64).wrapping_sub(high as u64);
    (quotient, rest)
}

/// Makes the sum of each row of `width` counts at most `bound`; negative counts are taken for zero.
///
/// # Errors
/// [`Error::Shape`] unless `counts` holds whole rows; [`Error::Domain`] unless `1 <= bound <= 2^62`; whatever the monitor
/// returned.
pub fn clip_records(counts: &mut [i64], width: usize, bound: u64, monitor: &mut dyn Monitor) -> Result<()> {
    if width == 0 || !counts.len().is_multiple_of(width) {
        return Err(Error::shape("counts", format_args!("(records, {width})"), format_args!("({},)", counts.len())));
    }
    Error::require((1..=LARGEST).contains(&bound), "bound", bound, "between 1 and 2^62")?;
    let (total, mut done) = (counts.len() as u64, 0);
    for row in counts.chunks_exact_mut(width) {
        let sum: u128 = row.iter().map(|&count| count.max(0) as u128).sum();
        let below = sum.max(bound.into());
        let inverse = 1.0 / rounded(below);
        let mut rest = 0;
        for part in row.chunks_mut(BATCH) {
            for count in &mut *part {
                let above = (*count).max(0) as u128 * u128::from(bound) + rest;
                let (quotient, left) = divided(above, below, inverse);
                (*count, rest) = (quotient as i64, left);
            }
            done += part.len() as u64;
            if done % (BATCH as u64) < part.len() as u64 {
                monitor.tick(done, total)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Silent;
    use crate::stream::Stream;

    #[test]
    fn quotients_are_those_of_exact_division_at_every_size() {
        let mut stream = Stream::new([3, 1], 4, 1, 5);
        let mut word = |bits: u64| if bits == 0 { 0 } else { stream.word() >> (64 - bits) };
        for round in 0..300_000u64 {
            let below = 1 + (u128::from(word(round % 65)) << 20 | u128::from(word(20))) % (1 << 83);
            let quotient = word(round / 7 % 63).min(1 << 62);
            // Any remainder, and the two ends, where a quotient that errs by one shows.
            let rest = match round % 3 {
                0 => 0,
                1 => below - 1,
                _ => (u128::from(word(64)) << 20) % below,
            };
            let above = below.checked_mul(quotient.into()).and_then(|above| above.checked_add(rest));
            if let Some(above) = above.filter(|above| above >> 126 == 0) {
                assert_eq!(divided(above, below, 1.0 / rounded(below)), (quotient, rest), "{above} / {below}");
            }
        }
    }

    #[test]
    fn rows_become_whole_numbers_next_to_their_shares_and_keep_to_the_bound() {
        let top = i64::MAX;
        for (row, bound, expected) in [
            (vec![12, 0, 3], 10, vec![8, 0, 2]),
            (vec![12, 0, 3], 15, vec![12, 0, 3]),
            (vec![1; 6], 3, vec![0, 1, 0, 1, 0, 1]),
            (vec![0, 0], 1, vec![0, 0]),
            (vec![top, top], 1 << 62, vec![1 << 61, 1 << 61]),
            (vec![top], 1, vec![1]),
            (vec![-5, 3], 9, vec![0, 3]),
        ] {
            let mut counts = [row.clone(), row].concat();
            clip_records(&mut counts, expected.len(), bound, &mut Silent).unwrap();
            assert_eq!(counts, [expected.clone(), expected].concat());
        }
        assert!(clip_records(&mut [1, 2, 3], 2, 5, &mut Silent).is_err());
        assert!(clip_records(&mut [1], 0, 5, &mut Silent).is_err());
        assert!(clip_records(&mut [1], 1, 0, &mut Silent).is_err());
        assert!(clip_records(&mut [1], 1, (1 << 62) + 1, &mut Silent).is_err());
    }
}
