//! Distributions of counts and of the noise on them: Bessel, Skellam, two-sided geometric, two-piece Poisson.
//!
//! A law is a small value made by a checked constructor; after that nothing fails. Points are whole numbers held in an `f64`
//! (up to 2^53 in absolute value). Masses keep full relative accuracy far into the tails: see `docs/mathematics`.
//! Draws take words from an [`RandomSource`]; arrays of draws give each element its own address, see [`arrays`].

mod alias;
pub mod arrays;
pub mod bessel;
pub mod chinese_restaurant;
#[cfg(any(test, feature = "fit"))]
pub mod fit;
pub mod gamma;
pub mod poisson;
pub mod skellam;
pub mod sums;
pub mod two_piece_cells;
pub mod two_piece_poisson;
pub mod two_sided_geometric;
pub mod whole_rates;
pub mod words;

pub use bessel::Bessel;
pub use skellam::Skellam;
pub use two_piece_poisson::TwoPiecePoisson;
pub use two_sided_geometric::TwoSidedGeometric;

use crate::numeric::special::log_one_minus_exp;
use crate::stream::{Stream, Xoshiro};
use crate::{Error, Result};

/// The largest order, count or rate: whole numbers are exact up to here.
pub const LARGEST: f64 = 9_007_199_254_740_992.0;

/// A source of random words.
pub trait RandomSource {
    /// The next 64 random bits.
    fn word(&mut self) -> u64;

    /// A uniform number in `[0, 1)`, a multiple of 2^-53.
    #[inline]
    fn uniform(&mut self) -> f64 {
        uniform_of(self.word())
    }

    /// A uniform number in `(0, 1)`, an odd multiple of 2^-53.
    #[inline]
    fn open_uniform(&mut self) -> f64 {
        open_uniform_of(self.word())
    }
}

/// 2^-53
const ULP: f64 = f64::from_bits(0x3CA0_0000_0000_0000);

/// The upper 53 bits of a word as a number in `[0, 1)`.
#[inline]
fn uniform_of(word: u64) -> f64 {
    // Signed, because that conversion is one instruction.
    (word >> 11) as i64 as f64 * ULP
}

/// The upper 52 bits of a word as an odd multiple of 2^-53.
#[inline]
fn open_uniform_of(word: u64) -> f64 {
    uniform_of(word | 1 << 11)
}

impl RandomSource for Stream {
    #[inline]
    fn word(&mut self) -> u64 {
        Stream::word(self)
    }
}

impl RandomSource for Xoshiro {
    #[inline(always)]
    fn word(&mut self) -> u64 {
        rand_core::Rng::next_u64(self)
    }
}

/// The shorter tail of a law at a point k: P(X <= k) or P(X > k).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tail {
    /// Whether it is the lower one, P(X <= k).
    lower: bool,
    size: Size,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Size {
    Log(f64),
    Probability(f64),
}

impl Tail {
    /// The lower or the upper tail, by its logarithm.
    pub fn from_log(lower: bool, log: f64) -> Self {
        Self { lower, size: Size::Log(log.min(0.0)) }
    }

    /// The lower or the upper tail, by itself.
    pub fn from_probability(lower: bool, probability: f64) -> Self {
        Self { lower, size: Size::Probability(probability.min(1.0)) }
    }

    /// `(ln P(X <= k), ln P(X > k))`.
    pub fn both(self) -> (f64, f64) {
        let log = match self.size {
            Size::Log(log) => log,
            Size::Probability(probability) => probability.ln(),
        };
        let other = log_one_minus_exp(log);
        if self.lower { (log, other) } else { (other, log) }
    }

    fn probability(self, lower: bool) -> f64 {
        let short = match self.size {
            Size::Log(log) => log.exp(),
            Size::Probability(probability) => probability,
        };
        if self.lower == lower { short } else { 1.0 - short }
    }

    /// The value of a function of a law that belongs to its tails; none for a mass.
    fn value(self, function: Function) -> Option<f64> {
        match function {
            Function::Mass | Function::LogMass => None,
            Function::Cdf => Some(self.probability(true)),
            Function::LogCdf => Some(self.both().0),
            Function::Ccdf => Some(self.probability(false)),
            Function::LogCcdf => Some(self.both().1),
        }
    }
}

/// What every law here offers.
pub trait Distribution: Sync {
    /// The least and the greatest value of positive mass; may be infinite.
    fn support(&self) -> (f64, f64);
    /// Log-mass at a whole number.
    fn log_mass(&self, k: f64) -> f64;
    /// The shorter tail at a whole number.
    fn short_tail(&self, k: f64) -> Tail;
    /// Mean, variance, third and fourth cumulant.
    fn cumulants(&self) -> [f64; 4];
    /// Entropy in nats.
    fn entropy(&self) -> f64;
    /// The value of largest mass, the larger where two are equal.
    fn mode(&self) -> f64;
    /// The mean.
    fn mean(&self) -> f64 {
        self.cumulants()[0]
    }
    /// Third central moment over the variance to the power 3/2; not a number for a point mass.
    fn skewness(&self) -> f64 {
        let [_, variance, third, _] = self.cumulants();
        third / variance / variance.sqrt()
    }
    /// Fourth central moment over the squared variance, less the 3 of a normal; not a number for a point mass.
    fn excess_kurtosis(&self) -> f64 {
        let [_, variance, _, fourth] = self.cumulants();
        fourth / variance / variance
    }
}

/// A quantity with a value at every whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// P(X = k)
    Mass,
    /// ln P(X = k)
    LogMass,
    /// P(X <= k)
    Cdf,
    /// ln P(X <= k)
    LogCdf,
    /// P(X > k)
    Ccdf,
    /// ln P(X > k)
    LogCcdf,
}

/// A quantity of the law as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The mean.
    Mean,
    /// The variance.
    Variance,
    /// The square root of the variance.
    StandardDeviation,
    /// See [`Distribution::skewness`].
    Skewness,
    /// See [`Distribution::excess_kurtosis`].
    ExcessKurtosis,
    /// See [`Distribution::mode`].
    Mode,
    /// In nats.
    Entropy,
}

/// The value of a function of a law at a whole number.
pub fn evaluate(law: &impl Distribution, function: Function, k: f64) -> f64 {
    match function {
        Function::Mass => law.log_mass(k).exp(),
        Function::LogMass => law.log_mass(k),
        _ => law.short_tail(k).value(function).unwrap_or(f64::NAN),
    }
}

/// A statistic of a law.
pub fn statistic_of(law: &impl Distribution, statistic: Statistic) -> f64 {
    match statistic {
        Statistic::Mean => law.mean(),
        Statistic::Variance => law.cumulants()[1],
        Statistic::StandardDeviation => law.cumulants()[1].sqrt(),
        Statistic::Skewness => law.skewness(),
        Statistic::ExcessKurtosis => law.excess_kurtosis(),
        Statistic::Mode => law.mode(),
        Statistic::Entropy => law.entropy(),
    }
}

/// The smallest k with P(X <= k) >= probability (`lower`), or with P(X > k) <= probability (not `lower`).
///
/// At the ends of [0, 1] it is the end of the support. A bracket around a normal guess, then bisection: some ten tails.
pub fn quantile(law: &impl Distribution, probability: f64, lower: bool) -> f64 {
    let (least, greatest) = law.support();
    let end = |at: f64| if lower { probability == at } else { probability == 1.0 - at };
    if least == greatest || end(0.0) {
        return least;
    }
    if end(1.0) {
        return greatest;
    }
    let (least, greatest) = (least.max(-LARGEST), greatest.min(LARGEST));
    let enough = |k: f64| {
        let tail = law.short_tail(k);
        if lower { tail.probability(true) >= probability } else { tail.probability(false) <= probability }
    };
    let [mean, variance, third, _] = law.cumulants();
    let z = normal_quantile(probability) * if lower { 1.0 } else { -1.0 };
    let correction = if variance > 0.0 { third / variance * (z * z - 1.0) / 6.0 } else { 0.0 };
    let guess = (mean + z * variance.sqrt() + correction).round().clamp(least, greatest);
    // Invariant from here on: `good` is enough, `bad` is not.
    let (mut good, mut bad, mut stride) = (guess, guess, 1.0);
    if enough(guess) {
        loop {
            if good == least {
                return least; // at -2^53 there is no number below to try
            }
            bad = (good - stride).max(least);
            if !enough(bad) {
                break;
            }
            (good, stride) = (bad, 2.0 * stride);
        }
    } else {
        loop {
            good = (bad + stride).min(greatest);
            if good == greatest || enough(good) {
                break;
            }
            (bad, stride) = (good, 2.0 * stride);
        }
    }
    while good - bad > 1.0 {
        let middle = (0.5 * (good + bad)).floor();
        if enough(middle) { good = middle } else { bad = middle }
    }
    good
}

/// A normal quantile good to 0.001, for a first guess (Hastings; Abramowitz and Stegun 26.2.23).
fn normal_quantile(p: f64) -> f64 {
    let t = (-2.0 * p.min(1.0 - p).max(f64::MIN_POSITIVE).ln()).sqrt();
    let z =
        t - (2.515_517 + t * (0.802_853 + t * 0.010_328)) / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)));
    if p < 0.5 { -z } else { z }
}

/// 1/n for each n below `N`, and 0 for n = 0.
pub const fn reciprocals<const N: usize>() -> [f64; N] {
    let mut table = [0.0; N];
    let mut n = 1;
    while n < N {
        table[n] = 1.0 / n as f64;
        n += 1;
    }
    table
}

/// Whether `value` is a whole number in `[least, LARGEST]`.
fn check_whole(name: &'static str, value: f64, least: f64, requirement: &'static str) -> Result<()> {
    // through an integer: a call less than `floor`
    Error::require(value >= least && value <= LARGEST && value as i64 as f64 == value, name, value, requirement)
}

/// Whether `value` is in `[0, LARGEST]`.
fn check_rate(name: &'static str, value: f64) -> Result<()> {
    Error::require((0.0..=LARGEST).contains(&value), name, value, "in [0, 2^53]")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::fit::assert_bins_fit;
    use super::*;
    use proptest::prelude::*;

    /// Asserts that draws fit the masses in pooled bins, as [`assert_bins_fit`].
    pub(crate) fn assert_draws_fit(law: &impl Distribution, draws: &[i64]) {
        let (low, high) = (draws.iter().min().copied().unwrap_or(0), draws.iter().max().copied().unwrap_or(0));
        let mut observed = vec![0.0; (high - low + 1) as usize];
        draws.iter().for_each(|&x| observed[(x - low) as usize] += 1.0);
        let total = draws.len() as f64;
        let mut bins: Vec<(f64, f64)> = vec![(0.0, total * law.short_tail((low - 1) as f64).both().0.exp())];
        for (x, seen) in (low..=high).zip(observed) {
            if bins.last().is_some_and(|bin| bin.1 >= 25.0) {
                bins.push((0.0, 0.0));
            }
            if let Some(bin) = bins.last_mut() {
                *bin = (bin.0 + seen, bin.1 + total * law.log_mass(x as f64).exp());
            }
        }
        if let Some(bin) = bins.last_mut() {
            bin.1 += total * law.short_tail(high as f64).both().1.exp();
        }
        if let [.., before, last] = bins.as_mut_slice()
            && last.1 < 25.0
        {
            *before = (before.0 + last.0, before.1 + last.1);
            bins.pop();
        }
        assert_bins_fit(&bins, &(low, high));
    }

    proptest! {
        #[test]
        fn tails_are_sums_of_masses(plus in 0.01..60.0f64, minus in 0.0..60.0f64, k in -40..60i32) {
            let law = Skellam::new(plus, minus).unwrap();
            let k = f64::from(k);
            let lower: f64 = (0..400).map(|i| law.log_mass(k - f64::from(i)).exp()).sum();
            let (log_lower, log_upper) = law.short_tail(k).both();
            prop_assert!((log_lower.exp() - lower).abs() < 1e-13);
            prop_assert!((log_lower.exp() + log_upper.exp() - 1.0).abs() < 1e-15);
        }

        #[test]
        fn quantiles_are_the_first_values_that_reach(order in 0..2000u32, argument in 0.1..5000.0f64, p in 1e-9..0.999f64) {
            let law = Bessel::new(f64::from(order), argument).unwrap();
            let k = quantile(&law, p, true);
            prop_assert!(evaluate(&law, Function::Cdf, k) >= p && evaluate(&law, Function::Cdf, k - 1.0) < p);
        }
    }
}
