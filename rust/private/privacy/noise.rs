//! Exact integer noise: two-sided geometric (discrete Laplace) and discrete Gaussian.
//!
//! P(x) = (1 - alpha) / (1 + alpha) alpha^|x|   and   P(x) proportional to exp(-x^2 / (2 variance)),   x an integer.
//!
//! A geometric variable with ratio alpha has independent digits: in base b its lowest digit d has probability proportional to
//! alpha^d and what stands above is geometric with ratio alpha^b. So a few lookups in exact tables ([`super::inverse_cdf`]) make
//! a draw at any scale, and their number does not depend on the outcome but for the rare step past the last table.
//! The sign is a fair bit; "minus zero" is drawn again. The discrete Gaussian rejects from a discrete Laplace as in
//! C. Canonne, G. Kamath, T. Steinke (2020), The discrete Gaussian for differential privacy, algorithms 1 and 3.

use super::inverse_cdf::{CumulativeLaw, InverseCdfTable};
use super::source::Source;
use crate::numeric::interval::Interval;
use crate::{Error, Result};
use num_bigint::BigUint;

/// Is true with probability `numerator / denominator <= 1`.
#[inline]
pub fn bernoulli(numerator: u64, denominator: u64, source: &mut impl Source) -> bool {
    source.below(denominator) < numerator
}

/// Is true with probability `exp(-numerator / denominator)`.
///
/// For an argument g <= 1: the first k for which a coin of probability g / k falls on "no" is odd with probability
/// 1 - g + g^2/2! - ... = exp(-g). Larger arguments take one such trial per unit.
pub fn bernoulli_exponential(numerator: u64, denominator: u64, source: &mut impl Source) -> bool {
    let units = numerator / denominator;
    (0..units).all(|_| below_one(1, 1, source)) && below_one(numerator % denominator, denominator, source)
}

fn below_one(numerator: u64, denominator: u64, source: &mut impl Source) -> bool {
    let mut k = 1;
    while bernoulli(numerator, denominator, source) && source.below(k) == 0 {
        k += 1;
    }
    k % 2 == 1
}

/// The ratio alpha of a geometric law, known exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decay {
    /// alpha = exp(-numerator / denominator).
    Exponential {
        /// Of the exponent.
        numerator: u64,
        /// Of the exponent.
        denominator: u64,
    },
    /// alpha = numerator / denominator.
    Rational {
        /// Of alpha.
        numerator: u64,
        /// Of alpha.
        denominator: u64,
    },
}

/// The rate of a law is -ln alpha. Beyond this one a draw other than 0 has probability below exp(-4096).
const MAX_RATE: u64 = 4096;
/// Scales, that is 1 / rate, up to 2^52 leave room for every draw in 64 bits.
const MIN_RATE: f64 = 1.0 / (1u64 << 52) as f64;

impl Decay {
    /// -ln alpha, rounded.
    pub fn exponent(&self) -> f64 {
        match *self {
            Self::Exponential { numerator, denominator } => numerator as f64 / denominator as f64,
            Self::Rational { numerator, denominator } => {
                -libm::log1p((numerator as f64 - denominator as f64) / denominator as f64)
            }
        }
    }

    fn checked(self) -> Result<Self> {
        let (sound, value) = match self {
            Self::Exponential { numerator, denominator } => (
                denominator > 0 && numerator > 0 && numerator / denominator < MAX_RATE,
                format!("exp(-{numerator}/{denominator})"),
            ),
            Self::Rational { numerator, denominator } => {
                (0 < numerator && numerator < denominator, format!("{numerator}/{denominator}"))
            }
        };
        let requirement = "in (0, 1), not below exp(-4096) and not above exp(-2^-52)";
        Error::require(sound && self.exponent() >= MIN_RATE, "alpha", value, requirement)?;
        Ok(self)
    }

    /// alpha^(2^doublings).
    fn enclose(&self, doublings: u32, precision: u64) -> Interval {
        match *self {
            Self::Exponential { numerator, denominator } => {
                Interval::exp_negative(&(BigUint::from(numerator) << doublings), &denominator.into(), precision)
            }
            Self::Rational { numerator, denominator } => {
                let work = precision + u64::from(doublings) + 8;
                Interval::ratio(&numerator.into(), &denominator.into(), work).power(1 << doublings).rounded(precision)
            }
        }
    }
}

/// One digit of a geometric variable: P(d) proportional to ratio^d with `ratio = alpha^(2^doublings)`.
#[derive(Clone, Debug)]
struct Digit {
    decay: Decay,
    doublings: u32,
    base: usize,
    /// Whether the law stops below `base`; else its last value stands for `base` and everything beyond.
    truncated: bool,
}

impl CumulativeLaw for Digit {
    fn cumulative(&self, precision: u64) -> Vec<Interval> {
        // 1 - ratio^base may be as small as 2^-52: that many bits cancel.
        let work = precision + 96;
        let ratio = self.decay.enclose(self.doublings, work);
        let mut powers = vec![ratio.clone()];
        for k in 1..self.base {
            powers.push(powers[k - 1].times(&ratio));
        }
        let whole = if self.truncated { powers.pop() } else { None };
        let whole = whole.map(|all| all.complement());
        let share = |power: &Interval| {
            let below = power.complement();
            whole.as_ref().map_or_else(|| below.clone(), |whole| below.over(whole)).rounded(precision)
        };
        powers.iter().map(share).collect()
    }
}

/// A two-sided geometric law with its tables.
#[derive(Clone, Debug)]
pub struct GeometricNoise {
    digits: Vec<InverseCdfTable<Digit>>, // from the lowest
    top: InverseCdfTable<Digit>,
    base_bits: u32,
    word_bits: u32,
}

impl GeometricNoise {
    /// The law of ratio alpha.
    ///
    /// # Errors
    /// [`Error::Domain`] if alpha is not in (0, 1) or its logarithm is beyond what 64-bit noise can carry.
    pub fn new(decay: Decay) -> Result<Self> {
        Ok(Self::with_tables(decay.checked()?, 8, 63))
    }

    /// Tables of `2^base_bits` entries, for words of `word_bits` bits.
    fn with_tables(decay: Decay, base_bits: u32, word_bits: u32) -> Self {
        // Enough digits that passing the end of the top table has probability below exp(-4).
        let per_table = decay.exponent() * f64::from(1u32 << base_bits);
        let mut levels = 0;
        while per_table * 2f64.powi((levels * base_bits) as i32) < 4.0 {
            levels += 1;
        }
        let table = |level: u32, truncated| {
            let digit = Digit { decay, doublings: level * base_bits, base: 1 << base_bits, truncated };
            InverseCdfTable::new(digit, word_bits)
        };
        Self { digits: (0..levels).map(|i| table(i, true)).collect(), top: table(levels, false), base_bits, word_bits }
    }

    /// A draw.
    ///
    /// # Errors
    /// [`Error::Check`] if the draw does not fit 62 bits, which happens with probability below 2^-1000.
    #[inline]
    pub fn draw(&self, source: &mut impl Source) -> Result<i64> {
        loop {
            if let (draw, true) = self.attempt(source)? {
                return Ok(draw);
            }
        }
    }

    /// A draw of the one-sided law on 0, 1, 2, ...: P(x) = (1 - alpha) alpha^x.
    ///
    /// # Errors
    /// As [`GeometricNoise::draw`].
    #[inline]
    pub fn draw_one_sided(&self, source: &mut impl Source) -> Result<i64> {
        let word = source.bits(self.word_bits);
        self.magnitude(word, source)
    }

    /// A geometric variable with a fair sign, and whether it is a draw: "minus zero" is none. Without a jump, which would be
    /// guessed wrong a third of the time.
    ///
    /// # Errors
    /// As [`GeometricNoise::draw`].
    #[inline(always)]
    pub fn attempt(&self, source: &mut impl Source) -> Result<(i64, bool)> {
        let word = source.bits(self.word_bits + 1);
        let (minus, magnitude) = ((word & 1) as i64, self.magnitude(word >> 1, source)?);
        Ok(((magnitude ^ -minus) + minus, (minus == 0) | (magnitude != 0)))
    }

    /// A one-sided geometric variable and a fair sign, independent.
    ///
    /// # Errors
    /// As [`Self::draw`].
    #[inline]
    pub(super) fn signed_magnitude(&self, source: &mut impl Source) -> Result<(bool, i64)> {
        let word = source.bits(self.word_bits + 1);
        Ok((word & 1 == 1, self.magnitude(word >> 1, source)?))
    }

    /// A one-sided geometric variable: P(x) = (1 - alpha) alpha^x.
    #[inline(always)]
    fn magnitude(&self, word: u64, source: &mut impl Source) -> Result<i64> {
        let mut high = self.top.value(word, source);
        if high >> self.base_bits > 0 {
            high = self.beyond(source)?;
        }
        for table in self.digits.iter().rev() {
            let word = source.bits(self.word_bits);
            high = (high << self.base_bits) | table.value(word, source);
        }
        Ok(high as i64)
    }

    /// A geometric variable forgets: given that it is beyond the table, what is beyond has the law of the whole.
    #[cold]
    fn beyond(&self, source: &mut impl Source) -> Result<u64> {
        let room = 62 - self.base_bits * self.digits.len() as u32;
        let mut high = 1u64 << self.base_bits;
        loop {
            let word = source.bits(self.word_bits);
            let value = self.top.value(word, source);
            high += value;
            if high >> room > 0 {
                return Err(Error::Check { what: "a noise draw", detail: "it does not fit 62 bits".into() });
            }
            if value >> self.base_bits == 0 {
                return Ok(high);
            }
        }
    }
}

/// A discrete Gaussian law of rational variance.
#[derive(Clone, Debug)]
pub struct DiscreteGaussian {
    laplace: GeometricNoise,
    scale: u128,
    numerator: u128,
    denominator: u128,
}

impl DiscreteGaussian {
    /// The law with `variance = numerator / denominator`.
    ///
    /// # Errors
    /// [`Error::Domain`] unless `0 < variance <= 2^40` with a denominator of at most 2^20.
    pub fn new(numerator: u64, denominator: u64) -> Result<Self> {
        let sound = numerator > 0 && (1..=1 << 20).contains(&denominator) && numerator.div_ceil(denominator) <= 1 << 40;
        let requirement = "positive and at most 2^40, with a denominator of at most 2^20";
        Error::require(sound, "variance", format_args!("{numerator}/{denominator}"), requirement)?;
        let scale = (numerator / denominator).isqrt() + 1; // floor(sigma) + 1
        let laplace = GeometricNoise::new(Decay::Exponential { numerator: 1, denominator: scale })?;
        Ok(Self { laplace, scale: scale.into(), numerator: numerator.into(), denominator: denominator.into() })
    }

    /// A draw: x from the discrete Laplace of scale t, kept with probability exp(-(|x| - variance/t)^2 / (2 variance)).
    ///
    /// # Errors
    /// [`Error::Check`] if a number does not fit 128 bits, which happens with probability below 2^-64.
    pub fn draw(&self, source: &mut impl Source) -> Result<i64> {
        // The exponent is (|x| t d - n)^2 / (2 n d t^2) for variance n / d.
        let step = self.scale * self.denominator;
        let below = 2 * self.numerator * step * self.scale;
        loop {
            let x = self.laplace.draw(source)?;
            let distance = (u128::from(x.unsigned_abs()) * step).abs_diff(self.numerator);
            let above = distance
                .checked_mul(distance)
                .ok_or_else(|| Error::Check { what: "a noise draw", detail: "it does not fit 128 bits".into() })?;
            let common = gcd(above, below);
            if wide_bernoulli_exponential(above / common, below / common, source) {
                return Ok(x);
            }
        }
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// As [`bernoulli_exponential`], for numbers of up to 127 bits.
fn wide_bernoulli_exponential(numerator: u128, denominator: u128, source: &mut impl Source) -> bool {
    if let (Ok(numerator), Ok(denominator)) = (u64::try_from(numerator), u64::try_from(denominator)) {
        return bernoulli_exponential(numerator, denominator, source);
    }
    let rest = numerator % denominator;
    let mut units = 0..numerator / denominator;
    units.all(|_| below_one(1, 1, source)) && {
        let mut k = 1;
        while wide_below(denominator, source) < rest && source.below(k) == 0 {
            k += 1;
        }
        k % 2 == 1
    }
}

/// A number below a bound of more than 32 and at most 127 bits, by rejection from the next power of two.
fn wide_below(bound: u128, source: &mut impl Source) -> u128 {
    let drop = (bound - 1).leading_zeros();
    loop {
        let number = ((u128::from(source.bits(64)) << 64) | u128::from(source.bits(64))) >> drop;
        if number < bound {
            return number;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::Generator;
    use super::super::source::tests::{DecisionTree, walk};
    use super::*;
    use crate::distributions::fit::{assert_bins_fit, pooled};
    use std::fmt::Debug;

    fn factorial(n: u32) -> BigUint {
        (1..=n).map(BigUint::from).product()
    }

    #[test]
    fn a_bernoulli_trial_has_its_rational_probability() {
        let tree = walk(1, 12u32.into(), |source| bernoulli(5, 12, source).into());
        assert_eq!((&tree.weights[&1], &tree.weights[&0], &tree.undecided), (&5u32.into(), &7u32.into(), &0u32.into()));
    }

    #[test]
    fn an_exponential_trial_decides_exactly_the_partial_sums_of_its_series() {
        // After the coins 1/2, 1/2 and 1/2, 1/3, ...: yes with 1 - 1/2 and then 1/8 - 1/48, no with 1/2 - 1/8, ...
        let whole = BigUint::from(1u32 << 6) * factorial(6);
        let tree = walk(11, whole.clone(), |source| bernoulli_exponential(1, 2, source).into());
        let term = |i: u32| &whole / (BigUint::from(1u32 << i) * factorial(i));
        let yes = term(0) - term(1) + term(2) - term(3) + term(4) - term(5);
        assert_eq!(tree.weights[&1], yes);
        assert_eq!(tree.undecided, term(6) * 6u32); // the die of the sixth round is still to be thrown
        assert_eq!(&tree.weights[&0] + &yes + &tree.undecided, whole);
    }

    #[test]
    fn enumerated_two_sided_geometric_noise_has_the_exact_rational_probabilities() {
        // Of one attempt, with p = (1 - n/d) / 2: each sign of x has probability p (n/d)^|x|, "minus zero" p as well. So a draw,
        // attempted until it is one, has (d - n) / (d + n) (n/d)^|x|.
        const NOTHING: i64 = i64::MIN;
        for (n, d, base_bits, word_bits, depth) in
            [(1u32, 2u32, 3, 7, 2), (1, 3, 2, 7, 2), (2, 3, 2, 6, 3), (1, 4, 3, 8, 2)]
        {
            let decay = Decay::Rational { numerator: n.into(), denominator: d.into() };
            let law = GeometricNoise::with_tables(decay, base_bits, word_bits);
            let whole = BigUint::from(1u32) << ((word_bits as usize + 1) * depth);
            let DecisionTree { weights, undecided, whole } = walk(depth, whole, |source| {
                let (draw, done) = law.attempt(source).unwrap();
                assert!(done || draw == 0);
                if done { draw } else { NOTHING }
            });
            assert!(&undecided * 12u32 < whole, "n/d = {n}/{d}: much is undecided, {undecided} of {whole}");
            for x in (-4i64..=4).chain([NOTHING]) {
                let power = if x == NOTHING { 0 } else { x.unsigned_abs() as u32 };
                let above = &whole * (d - n) * n.pow(power);
                let below = BigUint::from(2 * d) * d.pow(power);
                let decided = weights.get(&x).cloned().unwrap_or_default();
                assert!(&decided * &below <= above, "n/d = {n}/{d}, x = {x}");
                assert!(above <= (decided + &undecided) * below, "n/d = {n}/{d}, x = {x}");
            }
        }
    }

    #[test]
    fn digits_of_a_flat_law_have_the_exact_rational_probabilities() {
        // alpha = 15/16 with tables of four entries: two digits below the top.
        let law = GeometricNoise::with_tables(Decay::Rational { numerator: 15, denominator: 16 }, 2, 5);
        assert_eq!(law.digits.len(), 2);
        let digit = |level: usize| {
            walk(4, BigUint::from(1u32) << 20, |source| {
                let word = source.bits(5);
                law.digits[level].value(word, source) as i64
            })
        };
        for (level, tree) in [(0, digit(0)), (1, digit(1))] {
            let (n, d) = (BigUint::from(15u32).pow(4u32.pow(level)), BigUint::from(16u32).pow(4u32.pow(level)));
            let weights: Vec<_> = (0..4u32).map(|k| n.pow(k) * d.pow(3 - k)).collect();
            let sum: BigUint = weights.iter().sum();
            for (k, weight) in weights.iter().enumerate() {
                let decided = &tree.weights[&(k as i64)];
                assert!(decided * &sum <= &tree.whole * weight);
                assert!(&tree.whole * weight <= (decided + &tree.undecided) * &sum);
            }
        }
    }

    /// Asserts that counts fit masses up to a factor; false alarm 1e-6.
    fn assert_fit(counts: &[f64], masses: &[f64], case: &dyn Debug) {
        let scale = counts.iter().sum::<f64>() / masses.iter().sum::<f64>();
        assert_bins_fit(&pooled(counts.iter().zip(masses).map(|(&seen, mass)| (seen, scale * mass))), case);
    }

    #[test]
    fn draws_of_the_real_generator_fit_the_laws() {
        let mut source = Generator::insecure([20, 26]);
        for (s, t) in [(1, 1), (1, 40), (5, 2), (1, 1000)] {
            let alpha = (-(s as f64) / t as f64).exp();
            let law = GeometricNoise::new(Decay::Exponential { numerator: s, denominator: t }).unwrap();
            let (mut counts, mut squares) = (vec![0.0; 401], 0.0);
            let draws = 200_000;
            for _ in 0..draws {
                let x = law.draw(&mut source).unwrap();
                squares += (x * x) as f64;
                if x.abs() <= 200 {
                    counts[(x + 200) as usize] += 1.0;
                }
            }
            let variance = 2.0 * alpha / (1.0 - alpha).powi(2);
            assert!((squares / draws as f64 / variance - 1.0).abs() < 0.06, "s/t = {s}/{t}");
            let inside: f64 = counts.iter().sum();
            let raw: Vec<f64> = (-200i32..=200).map(|x| alpha.powi(x.abs())).collect();
            assert!(inside > 1000.0);
            assert_fit(&counts, &raw, &(s, t));
        }
        for (n, d) in [(1, 3), (4, 1), (2000, 7), (99_999_999_999, 1_000_000)] {
            let law = DiscreteGaussian::new(n, d).unwrap();
            let variance = n as f64 / d as f64;
            let mut counts = vec![0.0; 401];
            let cell = ((variance.sqrt() / 20.0) as i64).max(1);
            for _ in 0..100_000 {
                let x = law.draw(&mut source).unwrap().div_euclid(cell);
                if x.abs() <= 200 {
                    counts[(x + 200) as usize] += 1.0;
                }
            }
            let mass = |x: i64| (x * cell..(x + 1) * cell).map(|y| (-((y * y) as f64) / (2.0 * variance)).exp()).sum();
            let raw: Vec<f64> = (-200..=200).map(mass).collect();
            assert_fit(&counts, &raw, &(n, d));
        }
    }

    #[test]
    fn noise_that_64_bits_cannot_carry_is_refused() {
        for (s, t) in [(0, 1), (1, 0), (1, u64::MAX), (4096, 1)] {
            assert!(GeometricNoise::new(Decay::Exponential { numerator: s, denominator: t }).is_err());
        }
        for (n, d) in [(0, 1), (1, 1), (3, 2), (u64::MAX - 1, u64::MAX)] {
            assert!(GeometricNoise::new(Decay::Rational { numerator: n, denominator: d }).is_err());
        }
        assert!(DiscreteGaussian::new(0, 1).is_err() && DiscreteGaussian::new(1 << 41, 1).is_err());
    }

    #[test]
    fn laws_of_the_largest_and_the_smallest_rate_can_be_drawn() {
        let mut source = Generator::insecure([3, 4]);
        let steep = GeometricNoise::new(Decay::Exponential { numerator: 4095, denominator: 1 }).unwrap();
        assert!((0..1000).all(|_| steep.draw(&mut source) == Ok(0)));
        let flat = GeometricNoise::new(Decay::Exponential { numerator: 1, denominator: 1 << 52 }).unwrap();
        let mean = (0..1000).map(|_| flat.draw(&mut source).unwrap().abs() as f64 * MIN_RATE).sum::<f64>() / 1000.0;
        assert!((mean - 1.0).abs() < 0.2, "the mean distance from zero is the scale, found {mean}");
    }
}
