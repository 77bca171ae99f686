//! Randomized response: bits and categories that are told truly or not, by coins of exact probability.
//!
//! Randomized response flips with q = 1 / (e^epsilon + 1). Among k categories a value is replaced by a uniform one of the k
//! with probability r = k / (e^epsilon + k - 1). Unary encoding flips the zeros of a one-hot row with q, and its one with 1/2
//! (optimal), q (symmetric) or any other probability. Each probability is a whole number of 2^-64, rounded upwards: towards more noise.
//!
//! A biased coin compares random bytes with the bytes of its probability, from the highest; the first one nearly always decides,
//! so an array of coins is an array of random bytes, compared where it lies.
//!
//! Source: S. Warner (1965), Randomized response; T. Wang, J. Blocki, N. Li, S. Jha (2017), Locally differentially private
//! protocols for frequency estimation.

use super::choice::dyadic;
use super::source::Source;
use crate::monitor::Monitor;
use crate::numeric::interval::Interval;
use crate::{Error, Result, memory};
use num_bigint::BigUint;

/// Users between two looks at the monitor, which may have to wait for the interpreter: 10 to 30 ms, as for the bits below.
const BATCH: usize = 1 << 21;
const BITS: usize = 1 << 25;
/// Bits encoded together: they stay in the cache until their rows are finished.
const NEAR: usize = 1 << 14;
/// The chance of a fair coin.
const FAIR: u64 = 1 << 63;

/// ceil(2^64 k / (e^epsilon + k - 1)), the chance that a category is drawn anew, in units of 2^-64.
///
/// # Errors
/// [`Error::Domain`] for an epsilon that is not positive and finite, or so small that nothing of the value would be left.
pub fn redraw_chance(epsilon: f64, categories: u64) -> Result<u64> {
    chance(epsilon, categories, 1, categories - 1)
}

/// ceil(2^64 / (e^epsilon + 1)), the chance that a bit is flipped, in units of 2^-64; below one half.
///
/// # Errors
/// As [`redraw_chance`].
pub fn flip_chance(epsilon: f64) -> Result<u64> {
    miss_chance(epsilon, 1, 1)
}

/// ceil(2^64 outside / (inside e^epsilon + outside)), the chance of a report without the set of the truth, in units of 2^-64, where
/// sets and what is without are as `inside` to `outside`; below outside / (inside + outside).
///
/// # Errors
/// As [`redraw_chance`].
pub fn miss_chance(epsilon: f64, inside: u64, outside: u64) -> Result<u64> {
    let miss = chance(epsilon, outside, inside, outside)?;
    let (inside, outside) = (u128::from(inside), u128::from(outside));
    let told = u128::from(miss) * (inside + outside) < outside << 64;
    if told { Ok(miss) } else { Err(epsilon_error(epsilon)) }
}

fn epsilon_error(epsilon: f64) -> Error {
    let requirement = "finite, positive and large enough to be seen in probabilities of 64 bits";
    Error::domain("epsilon", epsilon, requirement)
}

/// ceil(2^64 above e / (base + others e)) for e = exp(-epsilon).
fn chance(epsilon: f64, above: u64, base: u64, others: u64) -> Result<u64> {
    if !(epsilon > 0.0 && epsilon.is_finite()) {
        return Err(epsilon_error(epsilon));
    }
    // Beyond 2^10 the smallest chance is reached; a smaller epsilon only makes more noise.
    let (numerator, denominator) = dyadic(epsilon.min(1024.0));
    let decay = Interval::exp_negative(&numerator, &denominator, 192);
    let of = |e: &BigUint, d: &BigUint| ((e * above) << 64u32) / ((BigUint::from(base) << 192u32) + d * others) + 1u32;
    u64::try_from(of(&decay.upper, &decay.lower)).map_err(|_| epsilon_error(epsilon))
}

/// Makes each byte a coin: 1 with probability `chance / 2^64`, else 0.
pub fn coins(chance: u64, bytes: &mut [u8], source: &mut impl Source) {
    let first = (chance >> 56) as u8;
    source.fill(bytes);
    for chunk in bytes.chunks_mut(32) {
        let tie = chunk.iter().fold(false, |tie, &byte| tie | (byte == first));
        if tie {
            for byte in chunk {
                *byte = u8::from(if *byte == first { undecided(chance, source) } else { *byte < first });
            }
        } else {
            chunk.iter_mut().for_each(|byte| *byte = u8::from(*byte < first));
        }
    }
}

/// Compares the further bytes of a uniform number, whose first is that of `chance`, with those of `chance`.
#[cold]
fn undecided(chance: u64, source: &mut impl Source) -> bool {
    let bytes = chance.to_be_bytes();
    let differing = bytes[1..].iter().map(|&byte| (source.bits(8) as u8).cmp(&byte)).find(|order| order.is_ne());
    differing.is_some_and(std::cmp::Ordering::is_lt)
}

/// Flips each bit with probability `flip / 2^64`; bits are bytes 0 and 1.
///
/// # Errors
/// Whatever the monitor returned.
pub fn flip_bits(bits: &mut [u8], flip: u64, source: &mut impl Source, monitor: &mut dyn Monitor) -> Result<()> {
    let total = bits.len() as u64;
    let mut flips = [0; 4096];
    for (batch, part) in bits.chunks_mut(flips.len()).enumerate() {
        if (batch + 1) % (BITS / 4096) == 0 {
            monitor.tick((batch * flips.len()) as u64, total)?;
        }
        let flips = &mut flips[..part.len()];
        coins(flip, flips, source);
        part.iter_mut().zip(flips).for_each(|(bit, flip)| *bit ^= *flip);
    }
    Ok(())
}

/// Replaces each category by a uniform one of `categories` with probability `redraw / 2^64`.
///
/// # Errors
/// Whatever the monitor returned.
pub fn redraw_categories(
    values: &mut [i64],
    categories: u64,
    redraw: u64,
    source: &mut impl Source,
    monitor: &mut dyn Monitor,
) -> Result<()> {
    let total = values.len() as u64;
    for (batch, part) in values.chunks_mut(BATCH).enumerate() {
        if batch > 0 {
            monitor.tick((batch * BATCH) as u64, total)?;
        }
        for value in part {
            if source.bits(64) < redraw {
                *value = source.below(categories) as i64;
            }
        }
    }
    Ok(())
}

/// The noisy one-hot row of each value, one byte 0 or 1 per category: a zero is told as a one with probability `flip / 2^64`, the
/// one with `one / 2^64`.
///
/// # Errors
/// [`Error::Domain`] for a value that is no category; [`Error::TooLarge`]; whatever the monitor returned.
pub fn encode_unary(
    values: &[i64],
    categories: usize,
    flip: u64,
    one: u64,
    source: &mut impl Source,
    monitor: &mut dyn Monitor,
) -> Result<Vec<u8>> {
    Error::require(categories > 0, "categories", categories, "at least 1")?;
    let mut rows = memory::filled(0, values.len().saturating_mul(categories), "a unary encoding")?;
    let total = values.len() as u64;
    let batch = NEAR.div_ceil(categories).next_multiple_of(64);
    for (place, (part, values)) in rows.chunks_mut(batch * categories).zip(values.chunks(batch)).enumerate() {
        if (place + 1) % (BITS / (batch * categories)).max(1) == 0 {
            monitor.tick((place * batch) as u64, total)?;
        }
        coins(flip, part, source);
        for (rows, values) in part.chunks_mut(64 * categories).zip(values.chunks(64)) {
            // 64 fair bits tell 64 rows' ones.
            let mut fair = if one == FAIR { source.bits(64) } else { 0 };
            for (row, &value) in rows.chunks_exact_mut(categories).zip(values) {
                let Some(bit) = usize::try_from(value).ok().and_then(|value| row.get_mut(value)) else {
                    return Err(Error::domain("x", value, "a category"));
                };
                *bit = match one {
                    FAIR => (fair & 1) as u8,
                    _ if one == flip.wrapping_neg() => *bit ^ 1,
                    _ => u8::from(source.bits(64) < one),
                };
                fair >>= 1;
            }
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::super::source::Generator;
    use super::super::source::tests::walk;
    use super::*;
    use crate::monitor::Silent;

    #[test]
    fn chances_are_those_of_the_formulas_rounded_upwards() {
        // k / (e^epsilon + k - 1) in 40-digit arithmetic.
        for (epsilon, categories, decimal) in
            [(1.0, 2, 0.537_882_842_739_990_2), (1.0, 4, 0.699_510_818_108_437_7), (0.5, 10, 0.939_079_890_044_161_5)]
        {
            let found = redraw_chance(epsilon, categories).unwrap() as f64 / 2f64.powi(64);
            assert!((found / decimal - 1.0).abs() < 1e-15, "{found} {decimal}");
        }
        assert_eq!(flip_chance(1e6), Ok(1));
        let half = flip_chance(1e-15).unwrap();
        assert!((1 << 62..1 << 63).contains(&half));
        assert!(flip_chance(1e-300).is_err() && flip_chance(0.0).is_err() && flip_chance(f64::NAN).is_err());
    }

    #[test]
    fn an_enumerated_coin_has_the_exact_probability() {
        // Three bytes of chance: every number of three bytes below it, and no other, is a one; what equals it is undecided.
        for chance in [1u32, 0x00_0100, 0x41_0203, 0x80_0000, 0xff_ffff] {
            let tree = walk(3, BigUint::from(1u32 << 24), |source| {
                let mut coin = [0];
                coins(u64::from(chance) << 40, &mut coin, source);
                coin[0].into()
            });
            assert_eq!(tree.weights[&1], chance.into());
            assert_eq!(tree.undecided, 1u32.into());
        }
    }

    #[test]
    fn equal_bytes_to_the_last_make_no_coin() {
        struct Equal(u64, u32);
        impl Source for Equal {
            fn bits(&mut self, count: u32) -> u64 {
                self.1 += count;
                self.0 << (self.1 - count) >> (64 - count)
            }
        }
        let chance = 0x1234_5678_9abc_def0;
        let coin = |number| {
            let mut coin = [9];
            coins(chance, &mut coin, &mut Equal(number, 0));
            coin[0]
        };
        assert_eq!((coin(chance - 1), coin(chance), coin(chance + 1)), (1, 0, 0));
    }

    #[test]
    fn frequencies_fit_at_a_false_alarm_rate_of_one_in_a_million() {
        // 4.9 standard deviations of a binomial are exceeded with probability 1e-6.
        let mut source = Generator::insecure([7, 7]);
        let within = |count: usize, n: usize, p: f64, what: &str| {
            let deviation = (n as f64 * p * (1.0 - p)).sqrt();
            assert!((count as f64 - n as f64 * p).abs() < 4.9 * deviation + 1.0, "{what}: {count} of {n}, p = {p}");
        };
        let (n, k) = (30_000, 7);
        let flip = flip_chance(1.0).unwrap();
        let q = flip as f64 / 2f64.powi(64);
        let values: Vec<i64> = (0..n as i64).map(|i| i % 3).collect();
        for (one, p) in [(FAIR, 0.5), (flip.wrapping_neg(), 1.0 - q), (3 << 62, 0.75)] {
            let rows = encode_unary(&values, k, flip, one, &mut source, &mut Silent).unwrap();
            let ones = |category: usize| rows.chunks(k).filter(|row| row[category] == 1).count();
            within(ones(0), n, (p + 2.0 * q) / 3.0, "first category");
            within(ones(6), n, q, "last category");
            let told = rows.chunks(k).zip(&values).filter(|(row, v)| row[**v as usize] == 1).count();
            within(told, n, p, "the true category");
        }
        let mut bits = vec![1u8; n];
        flip_bits(&mut bits, flip, &mut source, &mut Silent).unwrap();
        within(bits.iter().filter(|&&bit| bit == 0).count(), n, q, "flipped");
        let redraw = redraw_chance(1.0, 5).unwrap();
        let mut values = vec![2; n];
        redraw_categories(&mut values, 5, redraw, &mut source, &mut Silent).unwrap();
        let r = redraw as f64 / 2f64.powi(64);
        within(values.iter().filter(|&&value| value == 2).count(), n, 1.0 - 0.8 * r, "kept");
        within(values.iter().filter(|&&value| value == 4).count(), n, 0.2 * r, "another");
    }

    #[test]
    fn wrong_categories_are_refused() {
        let mut source = Generator::insecure([7, 7]);
        let mut encode =
            |values: &[i64], categories| encode_unary(values, categories, 1 << 62, FAIR, &mut source, &mut Silent);
        assert!(encode(&[0, 1], 3).is_ok_and(|rows| rows.len() == 6) && encode(&[], 3) == Ok(vec![]));
        assert!(encode(&[0, 3], 3).is_err() && encode(&[-1], 3).is_err() && encode(&[0], 0).is_err());
    }
}
