//! Laplace noise, rounded to a grid, exactly.
//!
//! An exponential variable of mean b grid steps is k + x: k geometric of ratio exp(-1/b), x in [0, 1) of density proportional to
//! exp(-x/b). x is uniform, kept with probability exp(-x/b): the first j at which a coin of probability x/(b j) falls on "no" is
//! odd with that probability.
//!
//! As with normal noise the variable is an exact real number, rounded after it is added: a release is a function of the ideal
//! one and has its privacy, in any dimension.
//!
//! Source: J. von Neumann (1951), Various techniques used in connection with random digits (the coins); C. Karney (2016),
//! Sampling exactly from the normal distribution (exponential variables as a whole part and a fraction).

use super::noise::{Decay, GeometricNoise, bernoulli};
use super::normal::Uniform;
use super::source::Source;
use crate::{Error, Result};

/// Laplace noise of a given scale in units of the grid, added and rounded exactly.
#[derive(Clone, Debug)]
pub struct RoundedLaplace {
    whole: GeometricNoise,
    numerator: u64,
    denominator: u64,
}

impl RoundedLaplace {
    /// Noise of scale `denominator / numerator` grid steps, at least one.
    ///
    /// # Errors
    /// [`Error::Domain`] for a scale below one step or beyond what 64-bit noise can carry.
    pub fn new(numerator: u64, denominator: u64) -> Result<Self> {
        let ratio = format_args!("{denominator}/{numerator}");
        Error::require(numerator <= denominator, "scale", ratio, "at least one grid step")?;
        Ok(Self { whole: GeometricNoise::new(Decay::Exponential { numerator, denominator })?, numerator, denominator })
    }

    /// floor(fraction / 2^64 + 1/2 + L): what a draw adds to the integer part of a value in grid steps.
    ///
    /// # Errors
    /// [`Error::Check`] if the draw does not fit 62 bits, which happens with probability below 2^-1000.
    #[inline]
    pub fn draw(&self, fraction: u64, source: &mut impl Source) -> Result<i64> {
        let (negative, k) = self.whole.signed_magnitude(source)?;
        let x = loop {
            let mut x = Uniform::new(source);
            if self.keeps(&mut x, source) {
                break x;
            }
        };
        // In units of 2^-64: the start is whole, x lies strictly between its first word and the next unit (almost surely).
        let start = i128::from(fraction) + (1 << 63);
        let first = i128::from(x.first);
        Ok(if negative { ((start - first - 1) >> 64) as i64 - k } else { ((start + first) >> 64) as i64 + k })
    }

    /// Is true with probability exp(-x / b).
    #[inline]
    fn keeps(&self, x: &mut Uniform, source: &mut impl Source) -> bool {
        let mut j = 1;
        while bernoulli(self.numerator, self.denominator, source)
            && Uniform::new(source).is_below(x, source)
            && source.below(j) == 0
        {
            j += 1;
        }
        j % 2 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::Generator;
    use super::*;

    #[test]
    fn draws_have_the_masses_of_the_rounded_law() {
        // floor(f + 1/2 + L) for b = 3 steps and f = 1/4; masses from the distribution function, 400000 draws, 6 deviations.
        let noise = RoundedLaplace::new(1, 3).unwrap();
        let mut source = Generator::insecure([3, 9]);
        let cdf = |x: f64| if x < 0.0 { 0.5 * (x / 3.0).exp() } else { 1.0 - 0.5 * (-x / 3.0).exp() };
        let count = 400_000;
        let mut seen = std::collections::HashMap::new();
        for _ in 0..count {
            *seen.entry(noise.draw(1 << 62, &mut source).unwrap()).or_insert(0u32) += 1;
        }
        for k in -9i64..=9 {
            let mass = cdf(k as f64 + 0.25) - cdf(k as f64 - 0.75);
            let deviation = (mass * (1.0 - mass) / f64::from(count)).sqrt();
            let found = f64::from(seen[&k]) / f64::from(count);
            assert!((found - mass).abs() < 6.0 * deviation, "{k}: {found} {mass}");
        }
        assert!(RoundedLaplace::new(2, 1).is_err() && RoundedLaplace::new(0, 1).is_err());
    }
}
