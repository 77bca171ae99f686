//! The Skellam distribution: the difference of two independent Poisson counts.
//!
//! p(k) = exp(-l1 - l2) (l1/l2)^(k/2) I_|k|(2 sqrt(l1 l2)),  k whole, rates l1, l2 >= 0.
//!
//! For k >= 0 (else swap the rates) let h = sqrt(k^2 + 4 l1 l2), P = (h+k)/2, M = P - k, the sizes of the two counts that make
//! the difference k most likely. Then ln p(k) = -D(P, l1) - D(M, l2) - ln(2 pi h)/2 + W with Poisson deviances D and the
//! correction W of the uniform expansion of I_k. The excesses are P - l1 = 2 l1 e / (2 l1 - k + h) and
//! M - l2 = -2 l2 e / (2 l2 + k + h) with e = k - l1 + l2, so nothing is lost where rates are large and the mass is not small.
//! For small h: ln p(k) = ln pois(k; l1) - l2 + ln S, the power series. With a rate of zero the law is Poisson.
//!
//! Source: J. Skellam (1946), The frequency distribution of the difference between two Poisson variates.

use crate::Result;
use crate::distributions::sums::{self, Moments, Shape};
use crate::distributions::{Distribution, RandomSource, Tail, check_rate, poisson, side_by_side};
use crate::numeric::special::bessel::{EXPANSION_FROM, log_correction, log_series};
use crate::numeric::special::{deviance, exact_sum, log_poisson};
use std::f64::consts::PI;

/// A Skellam distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Skellam {
    plus: f64,
    minus: f64,
}

impl Skellam {
    /// The law of `Y - Z`, Y of rate `rate_plus`, Z of rate `rate_minus`.
    ///
    /// # Errors
    /// [`crate::Error::Domain`] for a rate outside `[0, 2^53]`.
    pub fn new(rate_plus: f64, rate_minus: f64) -> Result<Self> {
        check_rate("rate_plus", rate_plus)?;
        check_rate("rate_minus", rate_minus)?;
        Ok(Self::unchecked(rate_plus, rate_minus))
    }

    pub(super) fn unchecked(plus: f64, minus: f64) -> Self {
        Self { plus, minus }
    }

    pub(super) fn mirrored(&self) -> Self {
        Self { plus: self.minus, minus: self.plus }
    }

    /// A draw.
    pub fn draw(&self, rng: &mut impl RandomSource) -> i64 {
        draw(self.plus, self.minus, rng)
    }

    /// `P(X >= k) / P(X = k)` for k at or above the mode and both rates positive.
    ///
    /// Where few terms matter the masses come down to k by their recurrence, see [`Self::sum_down`]. Below zero it runs in the
    /// mirrored law, from k up to zero.
    fn upper_sum(&self, k: f64) -> f64 {
        if !self.is_small() {
            return sums::upper_sum(self, k);
        }
        let last = self.beyond(k.max(0.0), true);
        let start = k.max(0.0);
        let sum = self.sum_down(last, start, self.near_ratio(last));
        if k >= 0.0 {
            return sum;
        }
        // From k up to 0 the same recurrence runs in the mirrored law, with masses relative to p(k).
        let mirrored = self.mirrored();
        let (by, back) = (1.0 / mirrored.plus, mirrored.minus / mirrored.plus);
        let (mut mass, mut before, mut partial, mut i) = (1.0, mirrored.rising(-k), 0.0, -k);
        while i > 0.0 {
            partial += mass;
            (mass, before) = (i * by * mass + back * before, mass); // p(-i+1) from p(-i) and p(-i-1)
            i -= 1.0;
            if mass < 1e-19 * partial {
                return partial; // away from the mode masses fall faster and faster
            }
        }
        partial + mass * sum
    }

    /// `(p(start) + ... + p(last)) / p(start)` for 0 <= start <= last, given `p(last+1) / p(last)`.
    ///
    /// p(j-1) = (j p(j) + l2 p(j+1)) / l1, all positive, run down from one at `last` and without a division in its chain of
    /// operations. Masses that might leave the range of a double are ratios instead.
    fn sum_down(&self, last: f64, start: f64, first: f64) -> f64 {
        let (by, back) = (1.0 / self.plus, self.minus / self.plus);
        let mut j = last;
        if !(last * by + back < 1e8) {
            let (mut ratio, mut sum) = (first, 1.0);
            while j > start {
                ratio = self.plus / (j + self.minus * ratio); // r_(j-1)
                sum = 1.0 + ratio * sum;
                j -= 1.0;
            }
            return sum;
        }
        let (mut mass, mut above, mut sum) = (1.0, first, 1.0);
        while j > start {
            // Sixteen steps grow by less than 1e134.
            let end = (j - 16.0).max(start);
            while j > end {
                (mass, above) = ((j * by) * mass + back * above, mass);
                sum += mass;
                j -= 1.0;
            }
            if mass > 1e150 {
                (mass, above, sum) = (1.0, above / mass, sum / mass);
            }
        }
        sum / mass
    }

    /// Whether the recurrence forgets its first value within some tens of steps.
    fn is_small(&self) -> bool {
        self.plus + self.minus <= 40.0
    }

    /// A place above `start >= 0` from which the recurrence, run down, has forgotten its first value at `start`: an error of r_j
    /// becomes one of r_(j-1) times l2 r_j / (j + l2 r_j) <= l1 l2 / (j (j+1)). If `summed`, masses there are negligible, too:
    /// r_j <= l1 / (j+1).
    fn beyond(&self, start: f64, summed: bool) -> f64 {
        let (mut mass, mut memory, mut product, mut j) = (1.0, 1.0, 1.0, start);
        loop {
            j += 1.0;
            mass *= self.plus;
            memory *= self.plus * self.minus;
            product *= j;
            if memory <= 1e-17 * (product * product) && (!summed || mass <= 1e-18 * product) {
                return j;
            }
        }
    }

    /// r_j = l1 / (j + 1 + l2 r_(j+1)) as if r_(j+1) were equal to it.
    pub(super) fn near_ratio(&self, j: f64) -> f64 {
        let next = j + 1.0;
        2.0 * self.plus / (next + (next * next + 4.0 * self.plus * self.minus).sqrt())
    }

    /// `p(k+1) / p(k)` for k >= 0.
    fn rising(&self, k: f64) -> f64 {
        if !self.is_small() {
            return self.ratio(k, 1.0);
        }
        let mut j = self.beyond(k, false);
        let mut ratio = self.near_ratio(j);
        while j > k {
            ratio = self.plus / (j + self.minus * ratio);
            j -= 1.0;
        }
        ratio
    }

    /// The shorter tail, without company.
    pub(super) fn tail_alone(&self, k: f64) -> Tail {
        let (least, greatest) = self.support();
        if k < least || k >= greatest {
            return Tail::from_log(k < least, f64::NEG_INFINITY);
        }
        let lower = self.is_lower(k);
        Tail::from_log(lower, if lower { self.mirrored().log_above(-k - 1.0) } else { self.log_above(k) })
    }

    /// Whether the shorter tail at k is the lower one.
    pub(super) fn is_lower(&self, k: f64) -> bool {
        // Half a step aside: at k = 0 and rates near zero the lower tail is nearly one, and the upper one would be lost in it.
        k + 0.5 < self.plus - self.minus
    }

    /// The rates.
    pub(super) fn rates(&self) -> [f64; 2] {
        [self.plus, self.minus]
    }

    /// `ln P(X > k)` for k at or above the mode.
    fn log_above(&self, k: f64) -> f64 {
        if self.plus == 0.0 {
            // minus a Poisson count: P(Y < -k)
            return poisson::Poisson::from(self.minus).log_tails(-k - 1.0).0;
        }
        if self.minus == 0.0 {
            return poisson::Poisson::from(self.plus).log_tails(k).1;
        }
        sums::log_above(self, k, Self::upper_sum)
    }
}

impl Shape for Skellam {
    #[inline]
    fn log_value(&self, k: f64) -> f64 {
        let (k, l1, l2) = if k < 0.0 { (-k, self.minus, self.plus) } else { (k, self.plus, self.minus) };
        let h = (k * k + 4.0 * l1 * l2).sqrt();
        if h < EXPANSION_FROM {
            return log_poisson(k, l1, k - l1) - l2 + log_series(k, l1 * l2);
        }
        // e = k - l1 + l2 in twice the precision
        let (difference, error) = exact_sum(l2, -l1);
        let (sum, rest) = exact_sum(k, difference);
        let e = sum + (rest + error);
        let slope = 2.0 * l1 - k;
        let excess = if slope >= 0.0 { 2.0 * l1 * e / (slope + h) } else { 0.5 * (h - slope) };
        let minus_excess = -2.0 * l2 * e / (2.0 * l2 + k + h);
        log_correction(k, h) - deviance(excess, l1) - deviance(minus_excess, l2) - 0.5 * (2.0 * PI * h).ln()
    }
}

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

/// A draw with rates in `[0, 2^53]`.
#[inline]
pub fn draw(plus: f64, minus: f64, rng: &mut impl RandomSource) -> i64 {
    poisson::draw(plus, rng) - poisson::draw(minus, rng)
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
