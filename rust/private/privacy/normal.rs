//! Gaussian noise, rounded to a grid, exactly.
//!
//! P(|n| in k + [0, 1)) from the table of exp(-k^2/2); then x in [0, 1) is kept with probability exp(-x (2k + x) / 2), which is
//! k + 1 trials of probability exp(-x (2k + x) / (2k + 2)).
//!
//! The normal variable n = +-(k + x) is an exact real number: x has as many digits as a comparison, or the rounding of
//! `value + sigma n` to the grid, asks for. So a release is a function of the ideal real-valued release and has its privacy.
//! Source: C. Karney (2016), Sampling exactly from the normal distribution, ACM Trans. Math. Softw. 42, algorithms N and B.

use super::inverse_cdf::{CumulativeLaw, InverseCdfTable};
use super::source::Source;
use crate::numeric::interval::Interval;
use crate::{Error, Result};
use num_bigint::{BigInt, BigUint};
use std::cmp::Ordering;

/// A uniform number in [0, 1), known to as many words as were asked for.
#[derive(Clone, Debug)]
pub(super) struct Uniform {
    pub(super) first: u64,
    rest: Vec<u64>,
}

impl Uniform {
    #[inline]
    pub(super) fn new(source: &mut impl Source) -> Self {
        Self { first: source.bits(64), rest: Vec::new() }
    }

    #[inline]
    pub(super) fn is_below(&mut self, other: &mut Self, source: &mut impl Source) -> bool {
        match self.first.cmp(&other.first) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => self.is_below_in_the_rest(other, source),
        }
    }

    #[cold]
    fn is_below_in_the_rest(&mut self, other: &mut Self, source: &mut impl Source) -> bool {
        for place in 0.. {
            match self.digit(place, source).cmp(&other.digit(place, source)) {
                Ordering::Less => return true,
                Ordering::Greater => return false,
                Ordering::Equal => {}
            }
        }
        false
    }

    fn digit(&mut self, place: usize, source: &mut impl Source) -> u64 {
        while self.rest.len() <= place {
            self.rest.push(source.bits(64));
        }
        self.rest[place]
    }
}

/// P(k) proportional to exp(-k^2 / 2) on k = 0, 1, 2, ...
#[derive(Clone, Debug)]
struct HalfNormal;

impl CumulativeLaw for HalfNormal {
    fn cumulative(&self, precision: u64) -> Vec<Interval> {
        let work = precision + 32;
        let root = Interval::exp_negative(&1u32.into(), &2u32.into(), work);
        // exp(-k^2/2) by its ratios exp(-(2k + 1)/2), until a term is not seen; the tail is below two such terms.
        let (square, mut ratio, mut term) = (root.times(&root), root, Interval::one(work));
        let mut sums = vec![term.clone()];
        while term.lower > BigUint::ZERO {
            term = term.times(&ratio);
            ratio = ratio.times(&square);
            sums.push(sums[sums.len() - 1].plus(&term));
        }
        let mut whole = sums[sums.len() - 1].clone();
        whole.upper += &term.upper * 2u32 + 1u32;
        sums.iter().map(|sum| sum.over(&whole).rounded(precision)).collect()
    }
}

/// Normal noise of a given standard deviation in units of the grid, added and rounded exactly.
#[derive(Clone, Debug)]
pub struct RoundedNormal {
    halves: InverseCdfTable<HalfNormal>,
    mantissa: u64,
    exponent: i32,
}

/// Sums are formed in units of `2^-UNIT` grid steps: with a deviation below 2^22 and k below 2^6 they fit 127 bits.
const UNIT: u32 = 95;

impl RoundedNormal {
    /// Noise of standard deviation `deviation` grid steps, which is a number like any other: its bits are taken as they are.
    ///
    /// # Errors
    /// [`Error::Domain`] unless `2^-10 <= deviation < 2^22`.
    pub fn new(deviation: f64) -> Result<Self> {
        let sound = (2f64.powi(-10)..2f64.powi(22)).contains(&deviation);
        Error::require(sound, "sigma", deviation, "between 2^-10 and 2^22 grid steps")?;
        let bits = deviation.to_bits();
        let exponent = (bits >> 52) as i32 - 1075;
        Ok(Self {
            halves: InverseCdfTable::new(HalfNormal, 63),
            mantissa: (bits & ((1 << 52) - 1)) | (1 << 52),
            exponent,
        })
    }

    /// floor(fraction / 2^64 + 1/2 + deviation n): what a normal draw adds to the integer part of a value in grid steps.
    ///
    /// # Errors
    /// [`Error::Check`] if the draw does not fit 62 bits, which happens with probability below 2^-1000.
    #[inline]
    pub fn draw(&self, fraction: u64, source: &mut impl Source) -> Result<i64> {
        let (negative, k, x) = self.normal(source);
        if k < 64 {
            // deviation (k + x) lies in [from, from + mantissa) 2^(exponent - 64), and -62 <= exponent <= -31.
            let from = u128::from(self.mantissa) * ((u128::from(k) << 64) | u128::from(x.first));
            let drop = (-31 - self.exponent) as u32;
            let least = (from >> drop) as i128;
            let most = ((from + u128::from(self.mantissa)) >> drop) as i128 + 1;
            let start = (i128::from(fraction) << (UNIT - 64)) + (1 << (UNIT - 1));
            let (low, high) = if negative { (start - most, start - least) } else { (start + least, start + most) };
            if low >> UNIT == high >> UNIT {
                return Ok((low >> UNIT) as i64);
            }
        }
        self.rounded_late(negative, k, x, fraction, source)
    }

    /// The same with further digits of x, until they decide the rounding.
    #[cold]
    fn rounded_late(
        &self,
        negative: bool,
        k: u64,
        mut x: Uniform,
        fraction: u64,
        source: &mut impl Source,
    ) -> Result<i64> {
        let mut digits = (BigUint::from(k) << 64u32) + x.first;
        for place in 0.. {
            let unit = 64 * (place as u64 + 1) + self.exponent.unsigned_abs() as u64; // bits after the point
            let from = BigInt::from(&digits * self.mantissa);
            let to = &from + self.mantissa;
            let start = (BigInt::from(fraction) << (unit - 64)) + (BigInt::from(1) << (unit - 1));
            let (low, high) = if negative { (&start - to, &start - from) } else { (&start + from, start + to) };
            let (low, high) = (low >> unit, high >> unit);
            if low == high {
                return i64::try_from(low)
                    .ok()
                    .filter(|draw| draw.unsigned_abs() < 1 << 61)
                    .ok_or_else(|| Error::Check { what: "a noise draw", detail: "it does not fit 62 bits".into() });
            }
            digits = (digits << 64u32) + x.digit(place, source);
        }
        Ok(0)
    }

    /// The sign, the integer part and the fraction of a normal variable.
    #[inline]
    fn normal(&self, source: &mut impl Source) -> (bool, u64, Uniform) {
        loop {
            let word = source.bits(64);
            let k = self.halves.value(word >> 1, source);
            let mut x = Uniform::new(source);
            if (0..=k).all(|_| trial(k, &mut x, source)) {
                return (word & 1 == 1, k, x);
            }
        }
    }
}

/// Is true with probability exp(-x (2k + x) / (2k + 2)): the run of decreasing uniforms below x, each kept with probability
/// (2k + x) / (2k + 2), has even length.
#[inline]
fn trial(k: u64, x: &mut Uniform, source: &mut impl Source) -> bool {
    let mut even = true;
    let mut least: Option<Uniform> = None;
    loop {
        let mut next = Uniform::new(source);
        if !next.is_below(least.as_mut().unwrap_or(&mut *x), source) {
            return even;
        }
        let face = source.below(2 * k + 2);
        if face == 2 * k + 1 || (face == 2 * k && !Uniform::new(source).is_below(x, source)) {
            return even;
        }
        least = Some(next);
        even = !even;
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::Generator;
    use super::*;

    /// Words from a list, then from a generator.
    struct Begins<'a>(std::slice::Iter<'a, u64>, Generator);

    impl Source for Begins<'_> {
        fn bits(&mut self, count: u32) -> u64 {
            self.0.next().map_or_else(|| self.1.bits(count), |word| word >> (64 - count))
        }
    }

    #[test]
    fn a_draw_rounds_value_plus_noise_to_the_nearest_step() {
        // A first word of zero sign whose upper bits fall on k = 0, x = 1/2, and a next uniform above x: n = +-1/2.
        for (deviation, fraction, sum) in
            [(8.0, 0, 4), (8.0, 1 << 62, 4), (8.0, 3 << 62, 5), (7.5, 0, 4), (4194303.5, 0, 2097152)]
        {
            let noise = RoundedNormal::new(deviation).unwrap();
            for (sign, expected) in
                [(0u64, sum), (1, ((fraction as f64) / 2f64.powi(64) + 0.5 - deviation / 2.0).floor() as i64)]
            {
                let words = [(1 << 60) | sign, 1 << 63, u64::MAX];
                let mut source = Begins(words.iter(), Generator::insecure([1, 1]));
                assert_eq!(noise.draw(fraction, &mut source).unwrap(), expected, "{deviation} {fraction} {sign}");
            }
        }
    }

    #[test]
    fn a_rounding_on_the_edge_draws_further_digits() {
        // x = 1/2 and deviation 1: value + noise is within 2^-64 of 1/2, the next word of x decides nothing but that it is above.
        let noise = RoundedNormal::new(1.0).unwrap();
        let words = [1 << 60, 1 << 63, u64::MAX];
        assert_eq!(noise.draw(0, &mut Begins(words.iter(), Generator::insecure([1, 2]))), Ok(1));
        // Minus (1/2 + a little) rounds to -1; from a value 2^-64 higher only digits after 64 zeros could tell.
        let words = [(1 << 60) | 1, 1 << 63, u64::MAX];
        assert_eq!(noise.draw(0, &mut Begins(words.iter(), Generator::insecure([1, 2]))), Ok(-1));
        let words = [(1 << 60) | 1, 1 << 63, u64::MAX, 0, 0, 7];
        assert_eq!(noise.draw(1, &mut Begins(words.iter(), Generator::insecure([1, 2]))), Ok(0));
    }

    #[test]
    fn equal_first_words_are_told_apart_by_later_ones() {
        let words = [5, 5, 9, 9, 3, 4];
        let mut source = Begins(words.iter(), Generator::insecure([1, 2]));
        let (mut a, mut b) = (Uniform::new(&mut source), Uniform::new(&mut source));
        assert!(a.is_below(&mut b, &mut source));
        assert!(a.is_below(&mut b, &mut source) && !b.is_below(&mut a, &mut source));
        assert_eq!((a.rest, b.rest), (vec![9, 3], vec![9, 4]));
    }

    #[test]
    fn draws_fit_the_normal_law() {
        // Kolmogorov's distance of 200000 draws; its limit at a false-alarm rate of 1e-6 is 2.693 / sqrt(n).
        let n = 200_000;
        let mut source = Generator::insecure([8, 15]);
        for deviation in [0.7, 30.0, 1_500_000.25] {
            let noise = RoundedNormal::new(deviation).unwrap();
            let mut draws: Vec<i64> = (0..n).map(|_| noise.draw(1 << 63, &mut source).unwrap()).collect();
            draws.sort_unstable();
            let mut worst = 0.0f64;
            for (i, pair) in draws.windows(2).enumerate() {
                if pair[0] != pair[1] {
                    // The draws up to floor(1 + deviation n) = pair[0], that is deviation n < pair[0].
                    let below = 0.5 * libm::erfc(-(pair[0] as f64) / deviation / std::f64::consts::SQRT_2);
                    worst = worst.max((below - (i + 1) as f64 / f64::from(n)).abs());
                }
            }
            assert!(worst < 2.693 / f64::from(n).sqrt(), "deviation = {deviation}: {worst}");
        }
    }
}
