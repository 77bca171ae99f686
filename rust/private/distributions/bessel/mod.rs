//! The Bessel distribution: the smaller of two Poisson counts, given their difference.
//!
//! p(n) = (a/2)^(2n+v) / (n! (n+v)! I_v(a)),  n = 0, 1, 2, ...,  order v = 0, 1, 2, ..., argument a >= 0.
//!
//! With h = hypot(v, a), M = a^2 / (2 (v+h)) and P = M + v, so that M P = a^2/4 and M + P = h, the mass is a product of two
//! Poisson masses, p(n) = pois(n; M) pois(n+v; P) / Z, and no large parts cancel: ln Z = W - ln(2 pi h)/2 by the uniform
//! expansion, or for small h by the power series. The common excess d = n - M = n + v - P is 2e / (h + 2n + v) with
//! e = n(n+v) - a^2/4 formed exactly, so the mass has the accuracy of the two deviances whatever the condition number.
//!
//! Draws, by x = a^2/4 and l = x/(v+1): a uniform number below 1 - l is a zero at once. Else, for small x, inversion by the
//! normalized series; for small l, or v large against l^2, a thinned Poisson(l); else transformed rejection.
//! Source: L. Yuan and J. Kalbfleisch (2000), On the Bessel distribution and related problems; L. Devroye (2002), Simulating
//! Bessel random variables.

mod draws;
mod many;
mod rejection;

pub use draws::draw;
pub use many::{Address, draw_many};
pub(super) use many::{BATCH, is_whole, with_scratch};

use crate::Result;
use crate::distributions::sums::{Moments, Shape, log_above, outward, upper_sum};
use crate::distributions::{Distribution, RandomSource, Tail, check_rate, check_whole};
use crate::numeric::special::bessel::{
    CUMULANTS_FROM, EXPANSION_FROM, cumulant_corrections, log_correction, log_series,
};
use crate::numeric::special::{deviance, exact_product, log_poisson, stirling_error};
use std::f64::consts::PI;

/// Below this argument the mass is taken from the one at this argument: only the leading term of each mass is left.
const TINY: f64 = 1e-130;

/// A Bessel distribution with its constants worked out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bessel {
    order: f64,
    argument: f64,
    /// hypot(order, argument), at the argument raised to TINY.
    radius: f64,
    /// M, the mean up to less than one.
    lower: f64,
    /// ln Z
    log_normalizer: f64,
}

impl Bessel {
    /// The law of this order, a whole number, and argument.
    ///
    /// # Errors
    /// [`crate::Error::Domain`] outside `0..=2^53` and `[0, 2^53]`.
    pub fn new(order: f64, argument: f64) -> Result<Self> {
        check_whole("order", order, 0.0, "a whole number in [0, 2^53]")?;
        check_rate("argument", argument)?;
        Ok(Self::unchecked(order, argument))
    }

    /// The law of parameters that are known to be right.
    pub fn unchecked(order: f64, argument: f64) -> Self {
        let raised = argument.max(TINY);
        let radius = order.hypot(raised);
        let lower = raised / (order + radius) * raised * 0.5;
        let log_normalizer = if radius >= EXPANSION_FROM {
            log_correction(order, radius) - 0.5 * (2.0 * PI * radius).ln()
        } else {
            log_poisson(order, lower + order, -lower) - lower + log_series(order, 0.25 * raised * raised)
        };
        Self { order, argument, radius, lower, log_normalizer }
    }

    /// `n (n + order) - argument^2 / 4`, correctly signed and to full accuracy.
    fn excess_product(&self, n: f64, argument: f64) -> f64 {
        let (product, error) = exact_product(n, n + self.order);
        let (square, square_error) = exact_product(0.5 * argument, 0.5 * argument);
        (product - square) + (error - square_error)
    }

    /// Both modes: equal unless `n (n + order) = argument^2 / 4` has a whole solution.
    pub fn modes(&self) -> (f64, f64) {
        let mode = self.mode();
        let tie = mode > 0.0 && self.excess_product(mode, self.argument) == 0.0;
        (if tie { mode - 1.0 } else { mode }, mode)
    }

    /// A draw.
    pub fn draw(&self, rng: &mut impl RandomSource) -> i64 {
        draw(self.order, self.argument, rng)
    }
}

impl Shape for Bessel {
    #[inline]
    fn log_value(&self, n: f64) -> f64 {
        if n == 0.0 && self.lower < 10.0 {
            return -log_series(self.order, 0.25 * self.argument * self.argument);
        }
        let raised = self.argument.max(TINY);
        let high = n + self.order;
        let excess = 2.0 * self.excess_product(n, raised) / (self.radius + n + high);
        let upper = self.lower + self.order;
        let saddle = if n > 0.0 {
            -stirling_error(n)
                - stirling_error(high)
                - deviance(excess, self.lower)
                - deviance(excess, upper)
                - 0.5 * (4.0 * PI * PI * n * high).ln()
        } else {
            log_poisson(high, upper, excess) - self.lower
        };
        let log = saddle - self.log_normalizer;
        if self.argument >= TINY || n == 0.0 { log } else { log + 2.0 * n * (self.argument / TINY).ln() }
    }

    #[inline]
    fn ratio(&self, n: f64, step: f64) -> f64 {
        let half = 0.5 * self.argument;
        if step > 0.0 {
            half / (n + 1.0) * (half / (n + 1.0 + self.order))
        } else {
            n / half * ((n + self.order) / half)
        }
    }
}

impl Distribution for Bessel {
    fn support(&self) -> (f64, f64) {
        (0.0, if self.argument == 0.0 { 0.0 } else { f64::INFINITY })
    }

    fn log_mass(&self, n: f64) -> f64 {
        if n < 0.0 || (n > 0.0 && self.argument == 0.0) {
            f64::NEG_INFINITY
        } else if self.argument == 0.0 {
            0.0
        } else {
            self.log_value(n).min(0.0)
        }
    }

    fn short_tail(&self, n: f64) -> Tail {
        if n < 0.0 {
            return Tail::from_log(true, f64::NEG_INFINITY);
        }
        if self.argument == 0.0 {
            return Tail::from_log(false, f64::NEG_INFINITY);
        }
        // Half a step aside: near an argument of zero P(X = 0) is nearly one, and the upper tail would be lost in it.
        let lower = n + 0.5 < self.lower;
        let log = if lower {
            self.log_value(n) + outward(self, (n, -1.0, 0.0), |_, _| [1.0])[0].ln()
        } else {
            log_above(self, n, upper_sum)
        };
        Tail::from_log(lower, log)
    }

    fn cumulants(&self) -> [f64; 4] {
        let (order, a, h) = (self.order, self.argument, self.radius);
        if h < CUMULANTS_FROM {
            return self.by_summation().0;
        }
        let (s, c) = ((order / h) * (order / h), (a / h) * (a / h));
        let added = cumulant_corrections(order, a, h);
        [
            a / (order + h) * a * 0.5 - 0.25 * c + added[0],
            a / h * a * 0.25 - 0.25 * s * c + added[1],
            a / h * a * 0.125 * (1.0 + s) + 0.25 * s * c * (1.0 - 2.0 * s) + added[2],
            a / h * a * 0.0625 * (1.0 + 3.0 * s * s) - 0.25 * s * c * (1.0 - 6.0 * s + 6.0 * s * s) + added[3],
        ]
    }

    fn entropy(&self) -> f64 {
        if self.argument == 0.0 { 0.0 } else { self.by_summation().1 }
    }

    fn mode(&self) -> f64 {
        if self.argument < 1.0 {
            return 0.0;
        }
        let mut mode = self.lower.floor();
        while mode > 0.0 && self.excess_product(mode, self.argument) > 0.0 {
            mode -= 1.0;
        }
        while self.excess_product(mode + 1.0, self.argument) <= 0.0 {
            mode += 1.0;
        }
        mode
    }

    fn skewness(&self) -> f64 {
        if self.argument == 0.0 {
            return f64::NAN;
        }
        if self.argument < 1e-70 {
            return (self.order + 1.0).sqrt() / (0.5 * self.argument); // the Poisson limit, whose variance may underflow
        }
        let [_, variance, third, _] = self.cumulants();
        third / variance / variance.sqrt()
    }

    fn excess_kurtosis(&self) -> f64 {
        if self.argument == 0.0 {
            return f64::NAN;
        }
        if self.argument < 1e-70 {
            return (self.order + 1.0) / (0.5 * self.argument) / (0.5 * self.argument);
        }
        let [_, variance, _, fourth] = self.cumulants();
        fourth / variance / variance
    }
}

impl Bessel {
    fn by_summation(&self) -> ([f64; 4], f64) {
        if self.argument == 0.0 {
            return ([0.0; 4], 0.0);
        }
        let mode = self.mode();
        let mut moments = Moments::about(mode);
        for (start, step, end) in [(mode + 1.0, 1.0, f64::INFINITY), (mode - 1.0, -1.0, 0.0)] {
            if start >= 0.0 {
                moments.add(self, (start, step, end), self.ratio(mode, step));
            }
        }
        let found = moments.cumulants();
        ([found.mean, found.variance, found.third, found.fourth], found.entropy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::tests::assert_draws_fit;
    use crate::stream::Stream;
    use proptest::prelude::*;

    #[test]
    fn masses_and_moments_are_the_known_ones() {
        let law = Bessel::new(3.0, 5.0).unwrap();
        let known = [0.252_069_384_727_629, 0.393_858_413_636_92, 0.246_161_508_523_075, 0.085_472_746_014_956_6];
        for (n, mass) in known.into_iter().enumerate() {
            assert!((law.log_mass(n as f64).exp() / mass - 1.0).abs() < 1e-14);
        }
        assert!((law.mean() / 1.236_124_410_159_113 - 1.0).abs() < 1e-15);
        let wide = Bessel::new(10.0, 1e8).unwrap();
        assert!((wide.mean() / 49_999_994.750_000_25 - 1.0).abs() < 1e-15);
        assert!((wide.cumulants()[1] / 24_999_999.999_999_876 - 1.0).abs() < 1e-15);
        assert_eq!((wide.mode(), Bessel::new(0.0, 2.0).unwrap().modes()), (49_999_995.0, (0.0, 1.0)));
    }

    #[test]
    fn what_is_no_order_or_argument_is_refused() {
        for (order, argument) in [(-1.0, 1.0), (0.5, 1.0), (f64::NAN, 1.0), (1.0, -1.0), (1.0, f64::INFINITY)] {
            assert!(Bessel::new(order, argument).is_err());
        }
    }

    #[test]
    fn draws_fit_in_every_regime() {
        let points =
            [(0.0, 1.0), (0.0, 4.0), (1.0, 7.0), (100.0, 10.0), (1000.0, 120.0), (1.0, 30.0), (1e3, 1e3), (0.0, 1e4)];
        for (row, (order, argument)) in points.into_iter().enumerate() {
            let law = Bessel::new(order, argument).unwrap();
            let mut words = Stream::new([17, 4], 0, 0, row as u64);
            let draws: Vec<i64> = (0..40_000).map(|_| law.draw(&mut words)).collect();
            assert_draws_fit(&law, &draws);
        }
    }

    proptest! {
        #[test]
        fn second_moments_are_a_quarter_of_the_squared_argument(order in 0..5000u32, argument in 1e-6..1e5f64) {
            let law = Bessel::new(f64::from(order), argument).unwrap();
            let [mean, variance, ..] = law.cumulants();
            let second = variance + mean * mean + f64::from(order) * mean;
            prop_assert!((second / (argument * argument / 4.0) - 1.0).abs() < 1e-13);
        }
    }
}
