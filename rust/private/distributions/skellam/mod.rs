//! The Skellam distribution: the difference of two independent Poisson counts.
//!
//! p(k) = exp(-l1 - l2) (l1/l2)^(k/2) I_|k|(2 sqrt(l1 l2)),  k whole, rates l1, l2 >= 0.
//!
//! With a rate of zero the law is Poisson. One law's masses are those of [`law`], those of several are [`masses`], tails [`side_by_side`].
//!
//! Source: J. Skellam (1946), The frequency distribution of the difference between two Poisson variates.

mod law;
pub mod masses;
mod side_by_side;

use crate::distributions::sums::{Moments, Shape};
use crate::distributions::{Distribution, Tail};
use crate::numeric::special::log_poisson;
pub use law::{Skellam, draw};
pub(super) use side_by_side::{MOST_LAWS, values};

impl Distribution for Skellam {
    fn support(&self) -> (f64, f64) {
        let end = |rate: f64| if rate == 0.0 { 0.0 } else { f64::INFINITY };
        (-end(self.minus), end(self.plus))
    }

    fn log_mass(&self, k: f64) -> f64 {
        let one_sided = |k: f64, rate: f64| match () {
            () if k < 0.0 || (k > 0.0 && rate == 0.0) => f64::NEG_INFINITY,
            () if rate == 0.0 => 0.0,
            () => log_poisson(k, rate, k - rate),
        };
        if self.minus == 0.0 {
            one_sided(k, self.plus)
        } else if self.plus == 0.0 {
            one_sided(-k, self.minus)
        } else {
            self.log_value(k).min(0.0)
        }
    }

    fn short_tail(&self, k: f64) -> Tail {
        side_by_side::tail(*self, k)
    }

    fn cumulants(&self) -> [f64; 4] {
        let (difference, sum) = (self.plus - self.minus, self.plus + self.minus);
        [difference, sum, difference, sum]
    }

    fn entropy(&self) -> f64 {
        if self.plus == 0.0 && self.minus == 0.0 {
            return 0.0;
        }
        let mode = self.mode();
        let (least, greatest) = self.support();
        let mut moments = Moments::about(mode);
        let center = self.log_mass(mode);
        for (start, step, end) in [(mode + 1.0, 1.0, greatest), (mode - 1.0, -1.0, least)] {
            if start >= least && start <= greatest {
                moments.add(&Bounded(self), (start, step, end), (self.log_mass(start) - center).exp());
            }
        }
        moments.cumulants().entropy
    }

    fn mode(&self) -> f64 {
        let [mean, variance, third, _] = self.cumulants();
        if self.plus == 0.0 || self.minus == 0.0 || variance > 1e10 || third == 0.0 {
            // exact for a Poisson law; else the top of the smooth curve, right up to a relative 1e-10 of the largest mass
            return if self.minus == 0.0 {
                self.plus.floor()
            } else if self.plus == 0.0 {
                // of two equal masses the larger count, which is the smaller loss
                1.0 - self.minus.ceil().max(1.0)
            } else {
                (mean - 0.5 * third / variance).round()
            };
        }
        let mut mode = mean.round();
        while self.log_value(mode + 1.0) >= self.log_value(mode) {
            mode += 1.0;
        }
        while self.log_value(mode - 1.0) > self.log_value(mode) {
            mode -= 1.0;
        }
        mode
    }
}

/// The log-mass with the one-sided cases, as a shape.
struct Bounded<'a>(&'a Skellam);

impl Shape for Bounded<'_> {
    fn log_value(&self, x: f64) -> f64 {
        self.0.log_mass(x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::tests::assert_draws_fit;
    use crate::stream::Stream;

    #[test]
    fn log_masses_are_the_known_ones() {
        let known = [
            (1.0, 1.0, 0.0, -1.176_006_458_517_044),
            (2.0, 4.0, -3.0, -1.916_973_270_035_287),
            (1e-3, 1e-3, 1000.0, -12_819.885_457_469_301),
            (1e6, 1.0, 1e6, -7.826_695_395_516_477),
            (1e-300, 2.0, 5.0, -3_460.665_131_233_851),
        ];
        for (plus, minus, k, expected) in known {
            let found = Skellam::new(plus, minus).unwrap().log_mass(k);
            assert!((found / expected - 1.0).abs() < 1e-15, "{plus} {minus} {k}: {found}");
        }
    }

    #[test]
    fn swapping_the_rates_mirrors_the_law() {
        for (plus, minus) in [(0.3, 7.0), (200.0, 30.0), (0.0, 5.0), (1e5, 2e5)] {
            let (law, mirror) = (Skellam::new(plus, minus).unwrap(), Skellam::new(minus, plus).unwrap());
            for k in [-9.0, 0.0, 1.0, 40.0] {
                assert_eq!(law.log_mass(k), mirror.log_mass(-k));
            }
            assert!((law.entropy() - mirror.entropy()).abs() < 1e-13);
        }
    }

    #[test]
    fn draws_fit() {
        for (row, (plus, minus)) in [(0.4, 0.1), (15.0, 9.0), (300.0, 200.0)].into_iter().enumerate() {
            let law = Skellam::new(plus, minus).unwrap();
            let mut words = Stream::new([17, 5], 0, 0, row as u64);
            let draws: Vec<i64> = (0..40_000).map(|_| law.draw(&mut words)).collect();
            assert_draws_fit(&law, &draws);
        }
    }
}
