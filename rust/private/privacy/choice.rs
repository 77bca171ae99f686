//! Exact draws from finitely many weights that a formula gives to any precision.
//!
//! P(i) = w(i) / (w(0) + ... + w(m-1)),   w(i) = exp(-e(i)) with exponents e(i) that are known as enclosures.
//!
//! The answer is the i with F(i) <= r < F(i+1), F the cumulative shares and r uniform in [0, 1). The shares are summed once in
//! doubles with a bound of their error: a *band* about each. A word of 63 bits that lies in no band decides, after a search
//! whose length depends on m alone; one that lies in a band (probability about 2 m times the band) is drawn on, against
//! shares from integers with outward rounding, until it is clear. So the law is exact, whatever the doubles are worth.
//!
//! Time: a table is the same instructions for any weights (no branch on one, no subnormal number, no shortcut of a library's
//! function), and a search takes the path of its answer. What a word in a band takes beside does depend on the weights.
//!
//! Source: F. McSherry, K. Talwar (2007), Mechanism design via differential privacy.

use super::source::Source;
use crate::memory::reserved;
use crate::numeric::dispatch::{at_level, level};
use crate::numeric::elementary::exp_normal;
use crate::numeric::interval::Interval;
use crate::{Error, Result};
use num_bigint::BigUint;

/// Weights `exp(-e(i))`, each to any precision.
pub trait Weights {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// e(i), rounded.
    fn exponent(&self, i: usize) -> f64;

    /// A bound of the absolute error of [`Weights::exponent`].
    fn error(&self, i: usize) -> f64;

    /// An enclosure of e(i) from below and above, both at least zero, in units of `2^-precision`.
    fn enclose(&self, i: usize, precision: u64) -> (BigUint, BigUint);
}

/// Bits of the first word.
const BITS: u32 = 63;
/// Weights beyond exp(-60) of the largest are no part of the error bound of a sum: they are too small.
const FAR: f64 = 60.0;
/// Beyond exp(-100) all weights are taken for that, so that none is subnormal: it changes no sum that a double can show.
const LOST: f64 = 100.0;

/// Puts `exp(least - e)` in the place of each exponent e, by the same instructions for any: relative error below 4e-16
/// and what the difference was rounded, but never below `exp(-100)`.
pub fn weigh(exponents: &mut [f64], least: f64) {
    at_level!(level(), {
        for value in exponents {
            let gap = *value - least;
            *value = exp_normal(-if gap < LOST { gap } else { LOST });
        }
    })
}

/// A law on 0..m with its table.
#[derive(Clone, Debug)]
pub struct Choice<W> {
    weights: W,
    thresholds: Vec<u64>, // of F(1), ..., F(m-1), in units of 2^-63
    band: u64,
}

impl<W: Weights> Choice<W> {
    /// The table of a law.
    ///
    /// # Errors
    /// [`Error::Domain`] if there are no weights or an exponent is not finite.
    pub fn new(weights: W) -> Result<Self> {
        let m = weights.len();
        let mut sums: Vec<f64> = (0..m).map(|i| weights.exponent(i)).collect();
        let least = sums.iter().copied().fold(f64::INFINITY, f64::min);
        Error::require(least.is_finite(), "weights", least, "some finite numbers")?;
        // What rounding does to the exponents, and to the gaps and the exponentials (two units in the last place).
        let error = sums.iter().enumerate().fold(0.0f64, |most, (i, &exponent)| {
            let own = weights.error(i);
            most.max(if exponent - least <= FAR { own } else { 0.0 })
        }) + (FAR + 4.0) * f64::EPSILON;
        weigh(&mut sums, least);
        // Knuth's exact additions, which ask not which number is larger: the relative error of a sum is two roundings, however
        // many terms.
        let (mut sum, mut rest, mut last) = (0.0f64, 0.0f64, 0.0f64);
        for part in &mut sums {
            let next = sum + *part;
            let added = next - sum;
            rest += (sum - (next - added)) + (*part - added);
            sum = next;
            last = last.max(sum + rest);
            *part = last;
        }
        sums.pop();
        let unit = 2f64.powi(BITS as i32);
        let scale = unit / last;
        let thresholds = sums.iter().map(|part| (part * scale) as u64).collect();
        // Numerator and denominator each carry the error, and everything beyond `FAR` is below 2^-80 each.
        let band = ((2.1 * error + 16.0 * f64::EPSILON + 1e-20 * m as f64) * unit).min(unit) as u64 + 2;
        Ok(Self { weights, thresholds, band })
    }

    /// The weights.
    pub fn weights(&self) -> &W {
        &self.weights
    }

    /// A draw.
    #[inline]
    pub fn draw(&self, source: &mut impl Source) -> usize {
        let word = source.bits(BITS);
        let k = self.thresholds.partition_point(|&threshold| threshold <= word);
        let below = k > 0 && word - self.thresholds[k - 1] <= self.band;
        let above = k < self.thresholds.len() && self.thresholds[k] - word <= self.band;
        if below || above { self.undecided(word, source) } else { k }
    }

    /// Many draws.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if they do not fit the memory; whatever the monitor returned.
    pub fn draw_many(
        &self,
        size: usize,
        source: &mut impl Source,
        monitor: &mut dyn crate::monitor::Monitor,
    ) -> Result<Vec<usize>> {
        let mut draws = reserved(size as u128, "the draws")?;
        for i in 0..size {
            if i % (1 << 18) == (1 << 18) - 1 {
                monitor.tick(i as u64, size as u64)?;
            }
            draws.push(self.draw(source));
        }
        Ok(draws)
    }

    /// Draws further bits of the uniform number until it is clear between which two shares it lies.
    #[cold]
    fn undecided(&self, word: u64, source: &mut impl Source) -> usize {
        let (mut number, mut bits) = (BigUint::from(word), u64::from(BITS));
        loop {
            let (lower, upper) = self.sums(bits + 64);
            let (least, most) = (&lower[lower.len() - 1], &upper[upper.len() - 1]);
            let from = &number * least;
            let to = (&number + 1u32) * most;
            let below = upper[..upper.len() - 1].partition_point(|sum| (sum << bits) <= from);
            if below == upper.len() - 1 || to <= &lower[below] << bits {
                return below;
            }
            number = (number << BITS) + source.bits(BITS);
            bits += u64::from(BITS);
        }
    }

    /// Enclosures of the partial sums of the weights, in units of 2^-precision beyond the least exponent.
    fn sums(&self, precision: u64) -> (Vec<BigUint>, Vec<BigUint>) {
        let (m, work) = (self.weights.len(), precision + 64);
        let top = (0..m).min_by(|&i, &j| self.weights.exponent(i).total_cmp(&self.weights.exponent(j))).unwrap_or(0);
        let floor = self.weights.enclose(top, work).0;
        // The exponents are taken relative to the lower end of the least; one that is smaller still becomes zero or more.
        let slack = BigUint::from(1u32) << work;
        let scale = BigUint::from(1u32) << work;
        let (mut lower, mut upper) = (Vec::with_capacity(m), Vec::with_capacity(m));
        let (mut below, mut above) = (BigUint::ZERO, BigUint::ZERO);
        let least = self.weights.exponent(top);
        for i in 0..m {
            if (self.weights.exponent(i) - least) * (1.0 - 1e-6) - 4.0 > (work + 8) as f64 * std::f64::consts::LN_2 {
                above += 1u32; // below 2^-work, as sure as the exponent is right to a millionth
            } else {
                let (low, high) = self.weights.enclose(i, work);
                let gap = (&low + &slack) - &floor;
                let weight = Interval::exp_negative(&gap, &scale, work);
                above += &weight.upper;
                let width = high - low; // exp(-x - d) >= exp(-x) - d
                below += if weight.lower > width { weight.lower - width } else { BigUint::ZERO };
            }
            lower.push(below.clone());
            upper.push(above.clone());
        }
        (lower, upper)
    }
}

/// Exponents that are whole multiples of one fraction: `gap(i) numerator / denominator`.
#[derive(Clone, Debug)]
pub struct Multiples {
    /// What is multiplied.
    pub gaps: Vec<u64>,
    /// Of the unit.
    pub numerator: u64,
    /// Of the unit, positive.
    pub denominator: u64,
}

impl Weights for Multiples {
    fn len(&self) -> usize {
        self.gaps.len()
    }

    fn exponent(&self, i: usize) -> f64 {
        self.gaps[i] as f64 * (self.numerator as f64 / self.denominator as f64)
    }

    fn error(&self, i: usize) -> f64 {
        // No less for small gaps than for those that count: where the best one is 0 the band is the same for any others.
        self.exponent(i).max(FAR) * 4.0 * f64::EPSILON
    }

    fn enclose(&self, i: usize, precision: u64) -> (BigUint, BigUint) {
        let above = (BigUint::from(self.gaps[i]) * self.numerator) << precision;
        let whole = above / self.denominator;
        (whole.clone(), whole + 1u32)
    }
}

/// Exponents that are doubles, taken as they are.
#[derive(Clone, Debug)]
pub struct Doubles(pub Vec<f64>);

impl Weights for Doubles {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn exponent(&self, i: usize) -> f64 {
        self.0[i]
    }

    fn error(&self, _i: usize) -> f64 {
        0.0
    }

    fn enclose(&self, i: usize, precision: u64) -> (BigUint, BigUint) {
        let (numerator, denominator) = dyadic(self.0[i]);
        let whole = (numerator << precision) / denominator;
        (whole.clone(), whole + 1u32)
    }
}

/// A number of at least zero as a fraction of whole numbers, exactly.
pub fn dyadic(value: f64) -> (BigUint, BigUint) {
    let bits = value.to_bits();
    let exponent = (bits >> 52) as i64;
    let mantissa = bits & ((1 << 52) - 1) | u64::from(exponent > 0) << 52;
    let exponent = exponent.max(1) - 1075;
    let power = |n: i64| BigUint::from(1u32) << n.max(0) as u64;
    (BigUint::from(mantissa) * power(exponent), power(-exponent))
}

/// One choice among each row of scores: `P(i) = exp(score(i) numerator / denominator)`, normalized, by whole numbers.
///
/// # Errors
/// [`Error::Shape`] unless `scores` holds whole rows of `options >= 1`; [`Error::Domain`] for a denominator of zero.
pub fn choose(
    scores: &[i64],
    options: usize,
    numerator: u64,
    denominator: u64,
    source: &mut impl Source,
    monitor: &mut dyn crate::monitor::Monitor,
) -> Result<Vec<i64>> {
    let rows = Error::require_rows("scores", options, scores.len())? as u64;
    Error::require(denominator > 0, "denominator", "0", "positive")?;
    scores
        .chunks_exact(options)
        .enumerate()
        .map(|(row, scores)| {
            if row % 64 == 63 {
                monitor.tick(row as u64, rows)?;
            }
            let best = scores.iter().copied().max().unwrap_or(0);
            let gaps = scores.iter().map(|&score| best.abs_diff(score)).collect();
            let choice = Choice::new(Multiples { gaps, numerator, denominator })?;
            Ok(choice.draw(source) as i64)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::source::Generator;
    use super::*;

    fn shares(counts: &[usize], probabilities: &[f64]) {
        let total: usize = counts.iter().sum();
        for (count, probability) in counts.iter().zip(probabilities) {
            let mean = total as f64 * probability;
            let spread = (mean * (1.0 - probability)).sqrt();
            // 5.5 deviations and one: far beyond 1e-6 for all of them together.
            assert!((*count as f64 - mean).abs() < 5.5 * spread + 1.0, "{count} of {total}, expected {mean}");
        }
    }

    fn counted<W: Weights>(choice: &Choice<W>, draws: usize) -> Vec<usize> {
        let mut source = Generator::insecure([7, 11]);
        let mut counts = vec![0; choice.weights().len()];
        for _ in 0..draws {
            counts[choice.draw(&mut source)] += 1;
        }
        counts
    }

    #[test]
    fn draws_have_the_shares_of_the_weights_by_either_path() {
        let gaps = vec![0, 3, 1, 7, 0, 40, 2000];
        let weights = Multiples { gaps: gaps.clone(), numerator: 2, denominator: 5 };
        let raw: Vec<f64> = gaps.iter().map(|&gap| (-(gap as f64) * 0.4).exp()).collect();
        let sum: f64 = raw.iter().sum();
        let probabilities: Vec<f64> = raw.iter().map(|weight| weight / sum).collect();
        let mut choice = Choice::new(weights).unwrap();
        shares(&counted(&choice, 200_000), &probabilities);
        choice.band = 1 << 62; // every word is undecided: the integers decide all
        shares(&counted(&choice, 2_000), &probabilities);
        let doubles = Doubles(gaps.iter().map(|&gap| gap as f64 * 0.4).collect());
        let mut choice = Choice::new(doubles).unwrap();
        choice.band = 1 << 62;
        shares(&counted(&choice, 2_000), &probabilities);
    }

    /// Words from a list, then zeros.
    struct Given(Vec<u64>);

    impl Source for Given {
        fn bits(&mut self, count: u32) -> u64 {
            if self.0.is_empty() { 0 } else { self.0.remove(0) >> (64 - count) }
        }
    }

    #[test]
    fn a_word_in_a_band_is_decided_by_the_next_bits() {
        // Two equal weights: the share 1/2 is a word's edge; one word below it is the first, the edge itself the second.
        let choice = Choice::new(Multiples { gaps: vec![5, 5], numerator: 1, denominator: 1 }).unwrap();
        assert_eq!(choice.draw(&mut Given(vec![u64::MAX / 2, u64::MAX, u64::MAX])), 0);
        assert_eq!(choice.draw(&mut Given(vec![1 << 63, 1 << 40, 0])), 1);
        // Shares 1/3: the word 2^63 / 3 is undecided by itself, its next bits tell.
        let choice = Choice::new(Multiples { gaps: vec![0, 0, 0], numerator: 1, denominator: 1 }).unwrap();
        let edge = u64::MAX / 3; // its first 63 bits are those of 1/3
        assert_eq!(choice.draw(&mut Given(vec![edge, 0])), 0);
        assert_eq!(choice.draw(&mut Given(vec![edge, u64::MAX])), 1);
    }

    #[test]
    fn every_threshold_lies_within_its_band() {
        let exponents: Vec<f64> = (0..300).map(|i| (f64::from(i) - 130.7).powi(2) * 0.003).collect();
        let choice = Choice::new(Doubles(exponents)).unwrap();
        let (lower, upper) = choice.sums(200);
        let whole = (&lower[299] + &upper[299]) >> 1u32;
        for (k, &threshold) in choice.thresholds.iter().enumerate() {
            let exact = ((&lower[k] << 63u32) / &whole).to_string().parse::<u128>().unwrap();
            assert!(exact.abs_diff(threshold.into()) <= choice.band.into(), "threshold {k}");
        }
    }

    #[test]
    fn words_looks_and_bands_do_not_depend_on_the_scores() {
        use std::cell::Cell;
        /// Exponents that count how often they are looked at.
        struct Counted(Multiples, Cell<u64>);
        impl Weights for Counted {
            fn len(&self) -> usize {
                self.0.len()
            }
            fn exponent(&self, i: usize) -> f64 {
                self.1.set(self.1.get() + 1);
                self.0.exponent(i)
            }
            fn error(&self, i: usize) -> f64 {
                self.1.set(self.1.get() + 1);
                self.0.error(i)
            }
            fn enclose(&self, _i: usize, _precision: u64) -> (BigUint, BigUint) {
                unreachable!("no word is in a band")
            }
        }
        /// Words of a generator, counted.
        struct Words(Generator, u64);
        impl Source for Words {
            fn bits(&mut self, count: u32) -> u64 {
                self.1 += 1;
                self.0.bits(count)
            }
        }
        let work = |gaps: Vec<u64>| {
            let (numerator, denominator) = (1, 1000);
            let choice = Choice::new(Counted(Multiples { gaps, numerator, denominator }, Cell::new(0))).unwrap();
            let mut source = Words(Generator::insecure([5, 1]), 0);
            for _ in 0..100 {
                choice.draw(&mut source);
            }
            (choice.weights().1.get(), source.1, choice.band)
        };
        let flat = work(vec![0; 1000]);
        assert_eq!((flat.0, flat.1), (2000, 100));
        for gaps in [
            (0..1000).map(|i| u64::from(i > 0)).collect(),
            (0..1000).map(|i| i * i).collect(),
            (0..1000).map(|i| if i % 2 == 0 { 0 } else { 1 << 62 }).collect(),
            (0..1000).map(|i| i % 61_000).rev().collect(),
        ] {
            assert_eq!(work(gaps), flat);
        }
    }

    #[test]
    fn weights_are_normal_numbers_close_to_the_exponentials() {
        let mut exponents: Vec<f64> = (0..4000).map(|i| 3.0 + f64::from(i) * 0.05).collect();
        exponents.push(f64::INFINITY);
        let mut found = exponents.clone();
        weigh(&mut found, 3.0);
        for (exponent, weight) in exponents.iter().zip(found) {
            let exact = (-(exponent - 3.0).min(LOST)).exp();
            assert!((weight / exact - 1.0).abs() < 7e-16, "{exponent}: {weight}");
        }
    }

    #[test]
    fn nothing_to_choose_from_is_refused() {
        let mut source = Generator::insecure([1, 2]);
        let monitor = &mut crate::monitor::Silent;
        assert!(choose(&[1, 2, 3], 2, 1, 1, &mut source, monitor).is_err());
        assert!(choose(&[], 0, 1, 1, &mut source, monitor).is_err());
        assert!(choose(&[1], 1, 1, 0, &mut source, monitor).is_err());
        assert_eq!(choose(&[i64::MIN, i64::MAX, i64::MIN], 3, 1, 1, &mut source, monitor), Ok(vec![1]));
        assert!(Choice::new(Doubles(vec![])).is_err());
        assert!(Choice::new(Doubles(vec![f64::NAN])).is_err());
    }
}
