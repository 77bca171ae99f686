//! Masses and tails of one Skellam law, and its draws.
//!
//! For k >= 0 (else swap the rates) let h = sqrt(k^2 + 4 l1 l2), P = (h+k)/2, M = P - k, the sizes of the two counts that make
//! the difference k most likely. Then ln p(k) = -D(P, l1) - D(M, l2) - ln(2 pi h)/2 + W with Poisson deviances D and the
//! correction W of the uniform expansion of I_k. The excesses are P - l1 = 2 l1 e / (2 l1 - k + h) and
//! M - l2 = -2 l2 e / (2 l2 + k + h) with e = k - l1 + l2, so nothing is lost where rates are large and the mass is not small.
//! For small h: ln p(k) = ln pois(k; l1) - l2 + ln S, the power series.
//!
//! Source: J. Skellam (1946), The frequency distribution of the difference between two Poisson variates.

use crate::Result;
use crate::distributions::sums::{self, Shape};
use crate::distributions::{Distribution, RandomSource, Tail, check_rate, poisson};
use crate::numeric::special::bessel::{EXPANSION_FROM, log_correction, log_series};
use crate::numeric::special::{exact_sum, known_deviance, log_poisson};
use std::f64::consts::PI;

/// A Skellam distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Skellam {
    pub(super) plus: f64,
    pub(super) minus: f64,
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

    pub(in crate::distributions) fn unchecked(plus: f64, minus: f64) -> Self {
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
        2.0 * self.plus / (next + radius(next, self.plus, self.minus))
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
        let h = radius(k, l1, l2);
        if h < EXPANSION_FROM {
            return log_poisson(k, l1, k - l1) - l2 + log_series(k, l1 * l2);
        }
        let [excess, minus_excess] = excesses(k, l1, l2, h);
        let [quotient, minus_quotient] = quotients(k, l1, h);
        let deviances = known_deviance(excess, l1, quotient) + known_deviance(minus_excess, l2, minus_quotient);
        log_correction(k, h) - deviances - 0.5 * (2.0 * PI * h).ln()
    }
}

/// h = P + M.
#[inline(always)]
pub(super) fn radius(k: f64, l1: f64, l2: f64) -> f64 {
    (k * k + 4.0 * l1 * l2).sqrt()
}

/// P / l1 and M / l2.
#[inline(always)]
pub(super) fn quotients(k: f64, l1: f64, h: f64) -> [f64; 2] {
    [0.5 * (k + h) / l1, 2.0 * l1 / (k + h)]
}

/// P - l1 and M - l2.
#[inline(always)]
pub(super) fn excesses(k: f64, l1: f64, l2: f64, h: f64) -> [f64; 2] {
    // e = k - l1 + l2 in twice the precision
    let (difference, error) = exact_sum(l2, -l1);
    let (sum, rest) = exact_sum(k, difference);
    let e = sum + (rest + error);
    let slope = 2.0 * l1 - k;
    let quotient = 2.0 * l1 * e / (if slope >= 0.0 { slope } else { 0.0 } + h);
    let excess = if slope >= 0.0 { quotient } else { 0.5 * (h - slope) };
    [excess, -2.0 * l2 * e / (2.0 * l2 + k + h)]
}

/// A draw with rates in `[0, 2^53]`.
#[inline]
pub fn draw(plus: f64, minus: f64, rng: &mut impl RandomSource) -> i64 {
    poisson::draw(plus, rng) - poisson::draw(minus, rng)
}
