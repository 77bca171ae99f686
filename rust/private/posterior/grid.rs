//! Posteriors of one parameter on a fixed grid: exact draws in constant work, and the exact privacy of what is drawn.
//!
//! A posterior density is exp(-E), E = x f + y g, with natural statistics x, y >= 0 that depend on the data and two functions
//! that do not; the Jacobian of the grid's coordinate is part of it:
//!
//!   logit grid on [w, 1-w] (Beta):   f = -ln t,           g = -ln(1-t),  x = a + tau k,  y = b + tau (n-k)
//!   log grid on [c1, c2] (Gamma):    f = v = ln(c2 / t),  g = t,         x = shape,      y = rate
//!
//! The m points are the midpoints of equal cells in the coordinate. A grid prior is a prior like any other, so the bounds by the
//! range hold; the finite-n epsilon of the grid itself is [`ParameterGrid::replace_epsilon`].
//!
//! Source: derived here; the bounds by the range are those of Z. Zhang (2017), doctoral thesis, theorem 3.5.1, sharpened.

use crate::numeric::interval::Interval;
use crate::privacy::choice::{Choice, Weights, dyadic};
use crate::{Error, Result};
use num_bigint::BigUint;
use std::sync::Arc;

/// The coordinate in which points are equally spaced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Coordinate {
    /// u = ln(t / (1 - t)) in [-half, half].
    Logit {
        /// Half the width.
        half: f64,
    },
    /// v = ln(upper / t) in [0, width].
    Log {
        /// The largest parameter.
        upper: f64,
        /// The width.
        width: f64,
    },
}

/// A grid with its functions f and g.
#[derive(Clone, Debug)]
pub struct ParameterGrid {
    coordinate: Coordinate,
    first: Vec<f64>,
    second: Vec<f64>,
    parameters: Vec<f64>,
}

/// The largest number of points, of which a grid keeps three numbers each: 24 MiB.
pub const MAX_POINTS: usize = 1 << 20;

impl ParameterGrid {
    /// A grid of `points` midpoints, a power of two.
    ///
    /// # Errors
    /// [`Error::Domain`] for a width that is not in (0, 700), an upper end that is not positive, or too many points.
    pub fn new(coordinate: Coordinate, points: usize) -> Result<Self> {
        let (width, upper) = match coordinate {
            Coordinate::Logit { half } => (2.0 * half, 1.0),
            Coordinate::Log { upper, width } => (width, upper),
        };
        Error::require(width > 0.0 && width < 700.0, "width", width, "in (0, 700)")?;
        Error::require(upper > 0.0 && upper.is_finite(), "upper", upper, "positive and finite")?;
        let sound = points.is_power_of_two() && (2..=MAX_POINTS).contains(&points);
        Error::require(sound, "points", points, "a power of two between 2 and 2^20")?;
        let m = points as f64;
        let mut grid = Self { coordinate, first: vec![], second: vec![], parameters: vec![] };
        for i in 0..points {
            let odd = 2.0 * i as f64 + 1.0;
            let (f, g, t) = match coordinate {
                Coordinate::Logit { half } => {
                    let u = half * ((odd - m) / m);
                    let z = libm::exp(-u.abs());
                    let l = libm::log1p(z);
                    (l + (-u).max(0.0), l + u.max(0.0), if u < 0.0 { z / (1.0 + z) } else { 1.0 / (1.0 + z) })
                }
                Coordinate::Log { upper, width } => {
                    let v = width * ((2.0 * m - odd) / (2.0 * m));
                    let t = upper * libm::exp(-v);
                    (v, t, t)
                }
            };
            grid.first.push(f);
            grid.second.push(g);
            grid.parameters.push(t);
        }
        Ok(grid)
    }

    /// The parameters t, increasing.
    pub fn parameters(&self) -> &[f64] {
        &self.parameters
    }

    /// A bound of the relative error of f and g: the coordinate is rounded twice and enters an exponential, whose relative error
    /// is that of the coordinate times its size; every function of the library is within two units in the last place.
    fn relative_error(&self) -> f64 {
        let reach = match self.coordinate {
            Coordinate::Logit { half } => half,
            Coordinate::Log { width, .. } => width,
        };
        (2.0 * reach + 12.0) * f64::EPSILON
    }

    fn energy(&self, (x, y): (f64, f64), i: usize) -> f64 {
        x * self.first[i] + y * self.second[i]
    }

    fn top(&self, statistics: (f64, f64)) -> usize {
        // E is convex in the coordinate, and the points are a power of two: as many comparisons wherever it is least.
        let (mut low, mut half) = (0, self.first.len() / 2);
        while half > 0 {
            let middle = low + half;
            low += half * usize::from(self.energy(statistics, middle - 1) > self.energy(statistics, middle));
            half /= 2;
        }
        low
    }

    /// The posterior of statistics x, y, ready for draws.
    ///
    /// # Errors
    /// [`Error::Domain`] unless both are at least zero and below 2^62.
    pub fn posterior(self: &Arc<Self>, x: f64, y: f64) -> Result<Choice<GridPosterior>> {
        check(x, y)?;
        let top = self.top((x, y));
        Choice::new(GridPosterior { grid: Arc::clone(self), statistics: (x, y), top })
    }

    /// ln of the mean of exp(-(dx f + dy g)) under the posterior of x, y: what the normalizer changes by.
    pub fn log_ratio(&self, statistics: (f64, f64), (dx, dy): (f64, f64)) -> f64 {
        let top = self.top(statistics);
        let (f, g) = (self.first[top], self.second[top]);
        let (mut above, mut below) = (0.0, 0.0);
        let mut term = |i: usize| {
            let (df, dg) = (self.first[i] - f, self.second[i] - g);
            let weight = libm::exp(-(statistics.0 * df + statistics.1 * dg));
            above += weight * libm::exp(-(dx * df + dy * dg));
            below += weight;
            weight > 1e-40
        };
        // From the mode outwards, until nothing is left to add.
        let _ = (top..self.first.len()).all(&mut term);
        let _ = (0..top).rev().all(&mut term);
        libm::log(above / below) - (dx * f + dy * g)
    }

    /// The exact epsilon between the posteriors of `statistics` and `statistics + step`, rounded upwards: the largest absolute
    /// logarithm of the ratio of their probabilities. The function dx f + dy g must be monotone, which it is for (d, -d) on a
    /// logit grid and for (0, d) on a log grid.
    pub fn replace_epsilon(&self, statistics: (f64, f64), step: (f64, f64)) -> f64 {
        let ratio = self.log_ratio(statistics, step);
        let end = |i: usize| -(step.0 * self.first[i] + step.1 * self.second[i]);
        let (one, other) = (end(0), end(self.first.len() - 1));
        let (least, most) = (one.min(other), one.max(other));
        // Sums of positive terms in doubles; an error of the weights moves numerator and denominator by the same factor, whose
        // deviation from one is bounded by what it is on the terms that count.
        let energy = self.energy(statistics, self.top(statistics));
        let error = 2.0 * self.relative_error() * (2.0 * energy + 100.0) * (1.0 - libm::exp(least - most))
            + self.first.len() as f64 * 4.0 * f64::EPSILON
            + self.relative_error() * (least.abs() + most.abs());
        (most - ratio).max(ratio - least) + error
    }
}

fn check(x: f64, y: f64) -> Result<()> {
    for value in [x, y] {
        Error::require((0.0..2f64.powi(62)).contains(&value), "statistics", value, "at least 0 and below 2^62")?;
    }
    Ok(())
}

/// The weights of a posterior on a grid.
#[derive(Clone, Debug)]
pub struct GridPosterior {
    grid: Arc<ParameterGrid>,
    statistics: (f64, f64),
    top: usize,
}

impl GridPosterior {
    /// The parameter at a point.
    pub fn parameter(&self, i: usize) -> f64 {
        self.grid.parameters[i]
    }

    /// Enclosures of f(i) and g(i).
    fn functions(&self, i: usize, precision: u64) -> [(BigUint, BigUint); 2] {
        let m = self.grid.first.len() as u64;
        let odd = 2 * i as u64 + 1;
        let quotient = |(n, d): (BigUint, BigUint), up: u64, down: u64| (n * up, d * down);
        match self.grid.coordinate {
            Coordinate::Logit { half } => {
                let (n, d) = quotient(dyadic(half), odd.abs_diff(m), m);
                let z = Interval::exp_negative(&n, &d, precision);
                let (low, high) = log_one_plus(&z);
                let u = (n << precision) / d;
                let far = (&low + &u, &high + &u + 1u32);
                if odd < m { [far, (low, high)] } else { [(low, high), far] }
            }
            Coordinate::Log { upper, width } => {
                let (n, d) = quotient(dyadic(width), 2 * m - odd, 2 * m);
                let (top, bottom) = dyadic(upper);
                let spare = top.bits().saturating_sub(bottom.bits()) + 2;
                let z = Interval::exp_negative(&n, &d, precision + spare);
                let t = ((z.lower * &top / &bottom) >> spare, ((z.upper * top / bottom) >> spare) + 2u32);
                let v = (n << precision) / d;
                [(v.clone(), v + 1u32), t]
            }
        }
    }
}

/// ln(1 + z) for z in (0, 1]: 2 (s + s^3/3 + s^5/5 + ...) with s = z / (2 + z) <= 1/3.
fn log_one_plus(z: &Interval) -> (BigUint, BigUint) {
    let p = z.precision;
    let two = BigUint::from(2u32) << p;
    let series = |z: &BigUint, round: u32| {
        let s = (z << p) / (&two + z) + round;
        let square = ((&s * &s) >> p) + round;
        let (mut power, mut sum) = (s, BigUint::ZERO);
        for k in (1u32..).step_by(2) {
            sum += &power / k + round;
            power = ((&power * &square) >> p) + round;
            if power <= BigUint::from(2u32) {
                break;
            }
        }
        // What is left is below power / (1 - 1/9) and its roundings.
        (sum << 1u32) + 8 * round
    };
    (series(&z.lower, 0), series(&z.upper, 1))
}

impl Weights for GridPosterior {
    fn len(&self) -> usize {
        self.grid.first.len()
    }

    fn exponent(&self, i: usize) -> f64 {
        let (f, g) = (&self.grid.first, &self.grid.second);
        // The difference of each function first: less is lost.
        self.statistics.0 * (f[i] - f[self.top]) + self.statistics.1 * (g[i] - g[self.top])
    }

    fn error(&self, i: usize) -> f64 {
        let energy = self.grid.energy(self.statistics, i) + self.grid.energy(self.statistics, self.top);
        (self.grid.relative_error() + 4.0 * f64::EPSILON) * energy
    }

    fn enclose(&self, i: usize, precision: u64) -> (BigUint, BigUint) {
        let work = precision + 70;
        let [f, g] = self.functions(i, work);
        let times = |value: f64, (low, high): &(BigUint, BigUint)| {
            let (n, d) = dyadic(value);
            (low * &n / &d, high * n / d + 1u32)
        };
        let (one, other) = (times(self.statistics.0, &f), times(self.statistics.1, &g));
        ((one.0 + other.0) >> 70u32, ((one.1 + other.1) >> 70u32) + 1u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::source::Generator;

    fn logit(w: f64, points: usize) -> Arc<ParameterGrid> {
        Arc::new(ParameterGrid::new(Coordinate::Logit { half: ((1.0 - w) / w).ln() }, points).unwrap())
    }

    #[test]
    fn enclosures_hold_the_doubles_and_are_narrow() {
        let log = Arc::new(ParameterGrid::new(Coordinate::Log { upper: 2.0, width: 4f64.ln() }, 64).unwrap());
        for (grid, x, y) in [(logit(0.25, 64), 12.5, 40.0), (logit(0.01, 64), 3.0, 0.75), (log, 20.5, 7.25)] {
            let choice = grid.posterior(x, y).unwrap();
            let weights = choice.weights();
            let floor = weights.enclose(weights.top, 200).0;
            for i in 0..64 {
                let (low, high) = weights.enclose(i, 200);
                assert!(&high - &low < BigUint::from(1000u32), "point {i}: {}", &high - &low);
                let gap = (&high.max(floor.clone()) - &floor) >> 120u32;
                let gap = gap.to_string().parse::<f64>().unwrap() / 2f64.powi(80);
                assert!((gap - weights.exponent(i)).abs() <= weights.error(i) + 1e-20, "point {i}: {gap}");
            }
        }
    }

    #[test]
    fn the_logarithm_is_enclosed() {
        // ln 2 = 0.693147180559945309417232121458176568075500134360255254120680009...
        let (low, high) = log_one_plus(&Interval::one(200));
        let digits: BigUint = "693147180559945309417232121458176568075500134360255254120680009".parse().unwrap();
        let power = BigUint::from(10u32).pow(63);
        assert!(&low * &power <= (&digits + 1u32) << 200u32);
        assert!(&high * &power >= &digits << 200u32);
        assert!(high - low < BigUint::from(600u32));
    }

    #[test]
    fn the_epsilon_of_a_grid_lies_below_that_of_the_continuous_law_by_little() {
        // The specification's known answer at (1, 1, 50, w = 1/4): 2.1202635362 continuous, 2.120247 on 2^16 midpoints.
        let grid = logit(0.25, 1 << 16);
        let of = |k: f64| grid.replace_epsilon((1.0 + k, 1.0 + 50.0 - k), (1.0, -1.0));
        let found = of(0.0).max(of(49.0));
        assert!((found - 2.120_247).abs() < 2e-6, "{found}");
    }

    #[test]
    fn draws_have_the_moments_of_the_law() {
        let choice = logit(0.25, 1 << 12).posterior(11.0, 6.0).unwrap();
        let weights = choice.weights();
        let mass: Vec<f64> = (0..weights.len()).map(|i| (-weights.exponent(i)).exp()).collect();
        let whole: f64 = mass.iter().sum();
        let mean = mass.iter().enumerate().map(|(i, w)| w / whole * weights.parameter(i)).sum::<f64>();
        let square = mass.iter().enumerate().map(|(i, w)| w / whole * weights.parameter(i).powi(2)).sum::<f64>();
        let mut source = Generator::insecure([5, 6]);
        let draws = 100_000;
        let found = (0..draws).map(|_| weights.parameter(choice.draw(&mut source))).sum::<f64>() / f64::from(draws);
        let spread = ((square - mean * mean) / f64::from(draws)).sqrt();
        assert!((found - mean).abs() < 4.9 * spread, "{found} against {mean}");
    }

    #[test]
    fn what_is_no_grid_or_no_statistic_is_refused() {
        for half in [0.0, -1.0, f64::NAN, 400.0] {
            assert!(ParameterGrid::new(Coordinate::Logit { half }, 16).is_err());
        }
        assert!(ParameterGrid::new(Coordinate::Log { upper: 0.0, width: 1.0 }, 16).is_err());
        assert!(ParameterGrid::new(Coordinate::Logit { half: 1.0 }, 3).is_err());
        assert!(logit(0.25, 16).posterior(f64::NAN, 1.0).is_err());
        assert!(logit(0.25, 16).posterior(-1.0, 1.0).is_err());
    }
}
