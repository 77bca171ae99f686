//! The two-sided geometric distribution, also known as the discrete Laplace: the noise of the geometric mechanism.
//!
//! p(k) = (1-alpha)/(1+alpha) alpha^|k| = tanh(e/2) exp(-e |k|),  alpha = exp(-e) in [0, 1),  k whole.
//!
//! Everything is written in the decay e = -ln alpha > 0, which keeps its digits where alpha is near one; e = infinity is
//! alpha = 0, the point mass at zero. A draw takes one word: its upper bits invert the law of |k|, its lowest is the sign.
//! These draws are for simulation; noise that protects comes from `privacy`.
//!
//! Source: A. Ghosh, T. Roughgarden, M. Sundararajan (2012), Universally utility-maximizing privacy mechanisms.

use crate::distributions::{Distribution, RandomSource, Tail, uniform_of};
use crate::{Error, Result};

/// A two-sided geometric distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoSidedGeometric {
    decay: f64,
}

impl TwoSidedGeometric {
    /// The law of this ratio alpha.
    ///
    /// # Errors
    /// [`Error::Domain`] outside [0, 1).
    pub fn new(alpha: f64) -> Result<Self> {
        Error::require((0.0..1.0).contains(&alpha), "alpha", alpha, "in [0, 1)")?;
        Ok(Self { decay: -alpha.ln() })
    }

    /// The law of this decay `e = -ln alpha`, the privacy loss per unit.
    ///
    /// # Errors
    /// [`Error::Domain`] unless it is at least 1e-16 (infinity is allowed): below, draws would not fit 64 bits.
    pub fn from_decay(decay: f64) -> Result<Self> {
        Error::require(decay >= 1e-16, "epsilon_per_unit", decay, "at least 1e-16")?;
        Ok(Self { decay })
    }

    pub(super) fn unchecked(decay: f64) -> Self {
        Self { decay }
    }

    /// The decay `-ln alpha`.
    pub fn decay(&self) -> f64 {
        self.decay
    }

    /// A draw.
    pub fn draw(&self, rng: &mut impl RandomSource) -> i64 {
        draw(self.decay, rng)
    }

    /// `ln P(X >= k)` for k >= 1: alpha^k / (1 + alpha).
    fn log_upper(&self, k: f64) -> f64 {
        -self.decay * k - (-self.decay).exp().ln_1p()
    }
}

impl Distribution for TwoSidedGeometric {
    fn support(&self) -> (f64, f64) {
        let end = if self.decay == f64::INFINITY { 0.0 } else { f64::INFINITY };
        (-end, end)
    }

    fn log_mass(&self, k: f64) -> f64 {
        let distance = if k == 0.0 { 0.0 } else { self.decay * k.abs() };
        // ln tanh(e/2) = ln(1 - alpha) - ln(1 + alpha)
        let alpha = (-self.decay).exp();
        let top = if self.decay < 1.0 { (0.5 * self.decay).tanh().ln() } else { (-alpha).ln_1p() - alpha.ln_1p() };
        top - distance
    }

    fn short_tail(&self, k: f64) -> Tail {
        if k < 0.0 { Tail::from_log(true, self.log_upper(-k)) } else { Tail::from_log(false, self.log_upper(k + 1.0)) }
    }

    fn cumulants(&self) -> [f64; 4] {
        let sine = 2.0 * (0.5 * self.decay).sinh();
        let variance = 2.0 / sine / sine;
        [0.0, variance, 0.0, variance * (1.0 + 3.0 * variance)]
    }

    fn entropy(&self) -> f64 {
        if self.decay > 700.0 {
            let root = (-0.5 * self.decay).exp();
            return 2.0 * (1.0 + self.decay.min(1600.0)) * root * root; // 0 at infinity
        }
        self.decay / self.decay.sinh() - self.log_mass(0.0)
    }

    fn mode(&self) -> f64 {
        0.0
    }
}

/// A draw with decay in `[1e-16, infinity]`.
#[inline]
pub fn draw(decay: f64, rng: &mut impl RandomSource) -> i64 {
    let word = rng.word();
    let v = uniform_of(word | 1 << 11);
    // P(|X| >= j) = 2 alpha^j / (1 + alpha) for j >= 1, so |X| = floor(ln(v (1 + alpha) / 2) / ln alpha), or 0 above 2 alpha/(1+alpha).
    let distance = ((v * (0.5 + 0.5 * (-decay).exp())).ln() / -decay) as i64;
    if word & 1 == 0 { distance } else { -distance }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::tests::assert_draws_fit;
    use crate::stream::Stream;

    #[test]
    fn a_half_gives_thirds_and_sixths() {
        let law = TwoSidedGeometric::new(0.5).unwrap();
        assert!((law.log_mass(0.0).exp() * 3.0 - 1.0).abs() < 1e-15);
        assert!((law.log_mass(-1.0).exp() * 6.0 - 1.0).abs() < 1e-15);
        assert!((law.cumulants()[1] - 4.0).abs() < 1e-14);
        assert!(TwoSidedGeometric::new(1.0).is_err() && TwoSidedGeometric::from_decay(f64::NAN).is_err());
    }

    #[test]
    fn draws_fit() {
        for (row, alpha) in [0.0, 0.1, 0.5, 0.99].into_iter().enumerate() {
            let law = TwoSidedGeometric::new(alpha).unwrap();
            let mut words = Stream::new([17, 6], 0, 0, row as u64);
            let draws: Vec<i64> = (0..40_000).map(|_| law.draw(&mut words)).collect();
            assert_draws_fit(&law, &draws);
        }
    }
}
