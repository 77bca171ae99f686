//! The count behind the release of a cell where counts are overdispersed.
//!
//! With y ~ Poisson(mu e), e ~ Gamma(r, r), the count is negative binomial, and given its release o has the masses
//!   w_y = c_y p^y alpha^|o - y|,   c_y = Gamma(r + y) / (Gamma(r) y!),   p = mu / (mu + r).
//! Its tail falls by p alpha a step, not faster as a Poisson tail does. For o <= 0 it is negative binomial, with z = alpha p
//! in place of p. For o > 0 its masses are summed away from o, relative to w_o, by their ratios
//!   w_(y+1) / w_y = (r + y) / (y + 1) z  for y >= o,      w_(y-1) / w_y = y / (r + y - 1) alpha / p  for y <= o.
//! Upwards the ratio tends to z < 1. Downwards it falls with y where r >= 1. Where r < 1 it rises, so that the masses are convex:
//! if alpha < p, each of the y below is at most w_y Gamma(y + 1) Gamma(r) / Gamma(y + r) <= w_y (y + 1) / r, else all are summed.
//!
//! Source: the law of y is derived here; M. Zhou, L. Carin (2015), Negative binomial process count and mixture modeling.

use crate::distributions::{RandomSource, gamma, poisson};
use crate::numeric::special::gamma::digamma;
use crate::numeric::special::{deviance, stirling_error};
use crate::stream::Xoshiro;
use std::f64::consts::TAU;

/// Releases from here on are refused: the masses up to them are summed one by one.
pub const LARGEST_RELEASE: u64 = 1 << 20;
/// What is left of the masses is below this share of their sum.
const SHARE: f64 = 1e-17;
/// The same of those above a release, where a draw seldom asks for them.
const SHARE_OF_DRAWS: f64 = 0.05;
/// Masses are divided by this where they exceed it, for away from a release they may grow beyond every double.
const LARGE: f64 = 1e270;
/// Means of negative binomial counts above this are drawn as gamma and Poisson, not by sequential search.
pub const SEARCHED: f64 = 16.0;

/// What the release of a cell says of its count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountMoments {
    /// `ln p(o | mu, r)`.
    pub log_likelihood: f64,
    /// E y.
    pub mean: f64,
    /// E digamma(r + y).
    pub digamma: f64,
}

/// Masses of the count of a cell relative to that of its release: w_o, w_(o+1), ... and w_(o-1), w_(o-2), ...
#[derive(Clone, Debug, Default)]
pub struct Masses {
    up: Vec<f64>,
    down: Vec<f64>,
    /// By which all of them were divided, as a logarithm.
    scale: f64,
}

impl Masses {
    /// The masses for a release `o > 0` and `0 < alpha < 1`, rate > 0, but for a share of those above; a bound of what is left of
    /// them.
    fn fill(&mut self, o: i64, rate: f64, r: f64, alpha: f64, share: f64) -> f64 {
        let p = rate / (rate + r);
        let Self { up, down, scale } = self;
        up.clear();
        down.clear();
        *scale = 0.0;
        let (z, inverse) = (alpha * p, alpha / p);
        let (mut mass, mut y, mut total) = (1.0, o as f64, 0.0);
        let mut above = loop {
            up.push(mass);
            total += mass;
            let ratio = (r + y) / (y + 1.0) * z;
            // From here on every ratio is at most this.
            let most = if r < 1.0 { z } else { ratio };
            if most < 1.0 && mass * most < share * (1.0 - most) * total {
                break mass * most / (1.0 - most);
            }
            mass *= ratio;
            y += 1.0;
            if mass > LARGE {
                up.iter_mut().for_each(|mass| *mass /= LARGE);
                (mass, total) = (mass / LARGE, total / LARGE);
                *scale += LARGE.ln();
            }
        };
        (mass, y) = (up[0], o as f64);
        while y > 0.0 {
            let ratio = y / (r + y - 1.0) * inverse;
            if mass * ratio > LARGE {
                // First, for one step may be nearly as large as a double.
                up.iter_mut().chain(&mut *down).for_each(|other| *other /= mass);
                (total, above) = (total / mass, above / mass);
                *scale += mass.ln();
                mass = 1.0;
            }
            mass *= ratio;
            y -= 1.0;
            down.push(mass);
            total += mass;
            let left = if r < 1.0 {
                if inverse < 1.0 { mass * y * (y + 1.0) / r } else { f64::INFINITY }
            } else if ratio < 1.0 {
                mass * ratio / (1.0 - ratio)
            } else {
                f64::INFINITY
            };
            if left < SHARE * total {
                break;
            }
        }
        above
    }

    /// A draw of the count, given its release.
    pub fn draw(&mut self, o: i64, rate: f64, r: f64, alpha: f64, rng: &mut Xoshiro) -> u64 {
        match () {
            () if alpha == 0.0 => o as u64,
            () if is_none(rate, r, alpha) => 0,
            () if o <= 0 => draw(rate, r, alpha, rng.uniform(), rng),
            () => {
                let above = self.fill(o, rate, r, alpha, SHARE_OF_DRAWS);
                let Self { up, down, .. } = self;
                let total = up.iter().sum::<f64>() + down.iter().sum::<f64>() + above;
                // Above what is listed the bound takes the place of the masses: where they end below it, another draw is made.
                loop {
                    let mut left = rng.uniform() * total;
                    let mut beyond = |mass: f64| {
                        left -= mass;
                        left < 0.0
                    };
                    if let Some(step) = up.iter().position(|&mass| beyond(mass)) {
                        return o as u64 + step as u64;
                    }
                    if let Some(step) = down.iter().position(|&mass| beyond(mass)) {
                        return o as u64 - 1 - step as u64;
                    }
                    let (z, mut mass) = (alpha * rate / (rate + r), up[up.len() - 1]);
                    for y in o as u64 + up.len() as u64.. {
                        mass *= (r + (y - 1) as f64) / y as f64 * z;
                        if beyond(mass) {
                            return y;
                        }
                        if mass < SHARE * above {
                            break;
                        }
                    }
                }
            }
        }
    }

    /// Likelihood and expectations of the count of a cell of this rate.
    pub fn moments(&mut self, o: i64, rate: f64, r: f64, alpha: f64) -> CountMoments {
        let noise = ((1.0 - alpha) / (1.0 + alpha)).ln();
        if alpha == 0.0 {
            let log_likelihood = log_mass(o as f64, rate, r);
            return CountMoments { log_likelihood, mean: o as f64, digamma: digamma(r + o as f64) };
        }
        if o <= 0 || is_none(rate, r, alpha) {
            // 1 - z = (r + mu (1 - alpha)) / (r + mu)
            let (kept, odds) = (rate * (1.0 - alpha), alpha * rate / (r + rate * (1.0 - alpha)));
            let log_likelihood = noise + o.unsigned_abs() as f64 * alpha.ln() - r * (kept / r).ln_1p();
            return CountMoments { log_likelihood, mean: r * odds, digamma: digamma(r) + odds.ln_1p() };
        }
        self.fill(o, rate, r, alpha, SHARE);
        let (mut total, mut above, mut shift) = (0.0, 0.0, 0.0);
        // digamma(r + y) away from digamma(r + o), one reciprocal a step.
        let mut step = 0.0;
        for (i, mass) in self.up.iter().enumerate() {
            total += mass;
            above += mass * i as f64;
            shift += mass * step;
            step += 1.0 / (r + (o + i as i64) as f64);
        }
        step = 0.0;
        for (i, mass) in self.down.iter().enumerate() {
            let y = (o - 1 - i as i64) as f64;
            step -= 1.0 / (r + y);
            total += mass;
            above -= mass * (i + 1) as f64;
            shift += mass * step;
        }
        CountMoments {
            log_likelihood: noise + log_mass(o as f64, rate, r) + total.ln() + self.scale,
            mean: (o as f64 + above / total).max(0.0),
            digamma: digamma(r + o as f64) + shift / total,
        }
    }
}

/// Whether a count is 0 whatever its release, but for chances below 1e-280.
fn is_none(rate: f64, r: f64, alpha: f64) -> bool {
    rate == 0.0 || alpha * (rate + r) > 1e290 * rate
}

/// A negative binomial count that noise of ratio alpha hides behind a release that is not positive, by a uniform number if that is
/// enough.
#[inline]
pub fn draw(rate: f64, r: f64, alpha: f64, u: f64, rng: &mut Xoshiro) -> u64 {
    // z / (1 - z), z = alpha mu / (mu + r)
    let odds = alpha * rate / (r + rate * (1.0 - alpha));
    if r * odds > SEARCHED {
        return poisson::draw(gamma::draw(r, 1.0, rng) * odds, rng) as u64;
    }
    // (1 - z)^r is at least 1 - r ln(1 / (1 - z)) >= 1 - r odds.
    if u < 1.0 - r * odds { 0 } else { search(u, r, odds) }
}

/// Sequential search: the smallest count whose distribution function exceeds `u`.
#[inline(never)]
fn search(u: f64, r: f64, odds: f64) -> u64 {
    let z = odds / (1.0 + odds);
    let mut mass = (-r * odds.ln_1p()).exp();
    let (mut y, mut sum) = (0.0, mass);
    while u >= sum {
        mass *= (r + y) / (y + 1.0) * z;
        y += 1.0;
        sum += mass;
        if mass < 1e-19 {
            break; // in the tail, for the mean is small: beyond the last bit of u
        }
    }
    y as u64
}

/// Log-mass of a negative binomial count of mean `rate` > 0, as a binomial one by Loader's saddle point.
fn log_mass(y: f64, rate: f64, r: f64) -> f64 {
    if y == 0.0 {
        return -r * (rate / r).ln_1p();
    }
    // Of r + y trials r at chance r / (r + mu) and y at mu / (r + mu); both are off their expectations by the same number.
    let (n, excess) = (r + y, r * (y - rate) / (r + rate));
    let deviances = deviance(-excess, n * r / (r + rate)) + deviance(excess, n * rate / (r + rate));
    stirling_error(n) - stirling_error(r) - stirling_error(y) - deviances + 0.5 * (r / (TAU * n * y)).ln()
}

/// `ln p(o | mu, r)`.
pub fn log_likelihood(o: i64, rate: f64, r: f64, alpha: f64) -> f64 {
    Masses::default().moments(o, rate, r, alpha).log_likelihood
}

/// E[y | o, mu, r].
pub fn expected_count(o: i64, rate: f64, r: f64, alpha: f64) -> f64 {
    Masses::default().moments(o, rate, r, alpha).mean
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::fit::{assert_bins_fit, pooled};
    use crate::stream::xoshiro;

    /// Masses of the counts below `end`, added up without ratios, over the largest; its logarithm.
    fn masses(o: i64, rate: f64, r: f64, alpha: f64, end: usize) -> (Vec<f64>, f64) {
        let noise = ((1.0 - alpha) / (1.0 + alpha)).ln();
        let log_p = -(r / rate).ln_1p();
        let mut log_c = 0.0;
        let mass = |y: usize| {
            let log = log_c + y as f64 * log_p - r * (rate / r).ln_1p();
            log_c += ((r + y as f64) / (y as f64 + 1.0)).ln();
            noise + log + (o - y as i64).abs() as f64 * alpha.ln()
        };
        let logs: Vec<f64> = (0..end).map(mass).collect();
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (logs.iter().map(|log| (log - most).exp()).collect(), most)
    }

    /// Of the last three the counts of the largest masses lie far above the release, the masses beyond every double.
    const CELLS: [(i64, f64, f64, f64); 13] = [
        (3, 0.5, 0.7, 0.37),
        (1, 0.01, 0.05, 0.37),
        (40, 0.3, 0.05, 0.37),
        (40, 30.0, 2.5, 0.9),
        (60, 1e-3, 0.2, 0.2),
        (200, 0.02, 0.04, 0.3),
        (-2, 1.25, 0.6, 0.37),
        (0, 4.0, 1.0, 0.5),
        (5, 1e-4, 3.0, 0.3),
        (12, 8.0, 1e6, 0.5),
        (5, 2000.0, 6e4, 0.6),
        (40, 983.544_111_161_88, 1e6, 0.885_403_380_255_394_8),
        (3, 3000.0, 300.0, 0.9),
    ];

    #[test]
    fn moments_are_those_of_the_sum_over_counts() {
        for (o, rate, r, alpha) in CELLS {
            let (masses, most) = masses(o, rate, r, alpha, 4000);
            let total: f64 = masses.iter().sum();
            let log = total.ln() + most;
            let expectation = |of: &dyn Fn(f64) -> f64| {
                masses.iter().enumerate().map(|(y, mass)| mass * of(y as f64)).sum::<f64>() / total
            };
            let found = Masses::default().moments(o, rate, r, alpha);
            let cell = (o, rate, r, alpha);
            assert!((found.log_likelihood - log).abs() < 1e-10 * (1.0 + log.abs()), "{cell:?} {found:?} {log}");
            assert!((found.mean - expectation(&|y| y)).abs() < 1e-10 * (1.0 + found.mean), "{cell:?} {found:?}");
            assert!((found.digamma - expectation(&|y| digamma(r + y))).abs() < 1e-9 * (1.0 + found.digamma.abs()));
        }
    }

    #[test]
    fn draws_have_these_masses() {
        // Chi-square over counts whose expectation is ten at least; false alarm 1e-6 per cell by the normal deviate.
        for (row, (o, rate, r, alpha)) in CELLS.into_iter().enumerate() {
            let number = 40_000;
            let (masses, _) = masses(o, rate, r, alpha, 4000);
            let total: f64 = masses.iter().sum();
            let (mut found, mut rng) = (vec![0.0; 4000], xoshiro([3, 5], 0, 0, row as u64));
            let mut law = Masses::default();
            (0..number).for_each(|_| found[(law.draw(o, rate, r, alpha, &mut rng) as usize).min(3999)] += 1.0);
            let due = masses.iter().map(|mass| mass / total * f64::from(number));
            assert_bins_fit(&pooled(found.into_iter().zip(due)), &row);
        }
    }

    #[test]
    fn counts_of_tiny_rates_are_nothing() {
        for o in [1, 3, 10, 60, 400] {
            for rate in [1e-30, 1e-40, 1e-103, 1e-160, 1e-289, 1e-300, 5e-324] {
                for (r, alpha) in [(2.0, 0.9), (1e-6, 0.1), (1e6, 0.5), (0.5, 1e-9)] {
                    let noise: f64 = (1.0 - alpha) / (1.0 + alpha);
                    let known = noise.ln() + o as f64 * f64::ln(alpha);
                    let found = Masses::default().moments(o, rate, r, alpha);
                    let cell = (o, rate, r, alpha);
                    assert!((found.log_likelihood - known).abs() < 1e-10 * known.abs(), "{cell:?} {found:?} {known}");
                    assert!(
                        found.mean < 1e-13 && (found.digamma / digamma(r) - 1.0).abs() < 1e-9,
                        "{cell:?} {found:?}"
                    );
                    assert_eq!(Masses::default().draw(o, rate, r, alpha, &mut xoshiro([3, 5], 0, 0, 1)), 0, "{cell:?}");
                }
            }
        }
    }

    #[test]
    fn masses_beyond_every_double_are_scaled() {
        // A count of nothing is 1e600 times as likely as that of the release.
        let found = Masses::default().moments(200, 1e-4, 0.5, 0.9);
        let direct = (0.1f64 / 1.9).ln() + 200.0 * 0.9f64.ln() - 0.5 * (1e-4f64 / 0.5).ln_1p();
        assert!((found.log_likelihood - direct).abs() < 1e-3 && found.mean < 1e-3, "{found:?} {direct}");
    }
}
