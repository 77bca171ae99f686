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
//! normalized series; for small l, or v large against l^2, a thinned Poisson(l); else ratio of uniforms.
//! Source: L. Yuan and J. Kalbfleisch (2000), On the Bessel distribution and related problems; L. Devroye (2002), Simulating
//! Bessel random variables; E. Stadlober (1990), The ratio of uniforms approach for generating discrete random variates.

use crate::Result;
use crate::distributions::sums::{Moments, Shape, outward};
use crate::distributions::{Distribution, LARGEST, Tail, Words, check_rate, check_whole, poisson};
use crate::numeric::special::bessel::{
    CUMULANTS_FROM, EXPANSION_FROM, cumulant_corrections, log_correction, log_series,
};
use crate::numeric::special::{
    FACTORIALS, LOG_FACTORIALS, deviance, exact_product, log_factorial, log_one_plus, log_poisson, stirling_error,
};
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

    pub(crate) fn unchecked(order: f64, argument: f64) -> Self {
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
    pub fn draw(&self, words: &mut impl Words) -> i64 {
        draw(self.order, self.argument, words)
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
            return Tail { lower: true, log: f64::NEG_INFINITY };
        }
        if self.argument == 0.0 {
            return Tail { lower: false, log: f64::NEG_INFINITY };
        }
        let lower = n < self.lower;
        let run = if lower { (n, -1.0, 0.0) } else { (n + 1.0, 1.0, f64::INFINITY) };
        Tail { lower, log: self.log_value(run.0) + outward(self, run, |_, _| [1.0])[0].ln() }
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
        let found = moments.summary();
        ([found.mean, found.variance, found.third, found.fourth], found.entropy)
    }
}

/// Terms of the power series that are enough for x up to 1, 6 and 16: those left out are below 1e-17 of the sum.
pub(super) const TERMS: [usize; 3] = [12, 18, 24];
/// Counts below this one are told by [`first_counts`].
pub(super) const FIRST_COUNTS: f64 = 4.0;

/// Which of [`TERMS`] serves a cell that is not zero at once; 3 where the series is not the way.
#[inline]
pub(super) fn regime(order: f64, x: f64) -> usize {
    // The bound on the order keeps the product of 24 denominators from overflowing.
    usize::from(x > 1.0) + usize::from(x > 6.0) + usize::from(x > 16.0 || (x > 6.0 && order > 1e9))
}

/// A draw of order in `0..=2^53` and argument in `[0, 2^53]`.
#[inline]
pub fn draw(order: f64, argument: f64, words: &mut impl Words) -> i64 {
    let x = 0.25 * argument * argument;
    let rate = x / (order + 1.0);
    let u = words.uniform();
    if u < 1.0 - rate {
        return 0;
    }
    let ([target], [count]) = match regime(order, x) {
        0 => first_counts::<{ TERMS[0] }, 1>([order], [x], [u]),
        1 => first_counts::<{ TERMS[1] }, 1>([order], [x], [u]),
        2 => first_counts::<{ TERMS[2] }, 1>([order], [x], [u]),
        _ => return draw_large(order, x, rate, u, words),
    };
    if count < FIRST_COUNTS { count as i64 } else { count_terms(order, x, target) }
}

/// `u S(x)`, and how many of the partial sums 1, 1 + x/(v+1), ... up to the fourth do not exceed it, for `L` cells.
///
/// S = 1 + x/(1 (v+1)) (1 + x/(2 (v+2)) (1 + ...)) is formed from the inside, numerator and denominator apart. The number of
/// terms depends on x alone, so that a cell gives the same bits alone and among others; there is no jump, so that the loops
/// over cells become vector instructions.
#[inline(always)]
pub(super) fn first_counts<const N: usize, const L: usize>(
    order: [f64; L],
    x: [f64; L],
    u: [f64; L],
) -> ([f64; L], [f64; L]) {
    let (mut numerator, mut denominator) = ([1.0; L], [1.0; L]);
    for j in (1..=N).rev() {
        let j = j as f64;
        for l in 0..L {
            denominator[l] *= j * (j + order[l]);
            numerator[l] = denominator[l] + x[l] * numerator[l];
        }
    }
    let (mut target, mut count) = ([0.0; L], [0.0; L]);
    for l in 0..L {
        target[l] = u[l] * (numerator[l] / denominator[l]);
        let first = x[l] / (1.0 + order[l]);
        let second = first * (x[l] / (2.0 * (2.0 + order[l])));
        let third = second * (x[l] / (3.0 * (3.0 + order[l])));
        let beyond = |sum: f64| if target[l] >= sum { 1.0 } else { 0.0 };
        let (two, three) = (1.0 + first, 1.0 + first + second);
        count[l] = beyond(1.0) + beyond(two) + beyond(three) + beyond(three + third);
    }
    (target, count)
}

/// The number of partial sums of the series that do not exceed `target`.
pub(super) fn count_terms(order: f64, x: f64, target: f64) -> i64 {
    let (mut sum, mut term, mut n) = (1.0, 1.0, 0.0);
    while target >= sum && term > 1e-17 {
        n += 1.0;
        term *= x / (n * (n + order));
        sum += term;
    }
    n as i64
}

/// The draw where the series is not the way, once its first uniform number `u` was not below `1 - rate`.
pub(super) fn draw_large(order: f64, x: f64, rate: f64, u: f64, words: &mut impl Words) -> i64 {
    if rate < 1.5 {
        thin(order, rate, u, words)
    } else if rate * (rate + 1.0) < order + 1.0 {
        loop {
            let n = poisson::draw(rate, words);
            if keep(order, n, words) {
                return n;
            }
        }
    } else {
        ratio_of_uniforms(order, x, u, words)
    }
}

/// Poisson(rate) thinned by the product of (v+1)/(v+j), j = 2..=n; `u` serves the first inversion.
fn thin(order: f64, rate: f64, mut u: f64, words: &mut impl Words) -> i64 {
    let zero = (-rate).exp();
    loop {
        let n = poisson::invert(rate, u, zero);
        if keep(order, n, words) {
            return n;
        }
        u = words.uniform();
        if u < 1.0 - rate {
            return 0;
        }
    }
}

/// Keeps a Poisson proposal with probability prod (v+1)/(v+j), j = 2..=n.
#[inline]
fn keep(order: f64, n: i64, words: &mut impl Words) -> bool {
    if n <= 1 {
        return true;
    }
    let u = words.uniform();
    let n = n as f64;
    let next = order + 1.0;
    // The product is at least 1 - n(n-1)/(2(v+1)).
    if u <= 1.0 - 0.5 * n * (n - 1.0) / next {
        return true;
    }
    let (mut product, mut j) = (1.0, 2.0);
    while j <= n && product > u {
        product *= next / (order + j);
        j += 1.0;
    }
    u < product
}

/// `ln(base! / k!)`, less `(k - base) ln base` where that is left to the caller.
struct FactorialRatio {
    base: f64,
    inverse: f64,
    tabled: bool,
    /// ln base!, or the error of Stirling's formula.
    at_base: f64,
}

impl FactorialRatio {
    #[inline]
    fn new(base: f64) -> Self {
        let tabled = base < 0.7 * FACTORIALS as f64;
        let inverse = 1.0 / base;
        let at_base = if tabled { LOG_FACTORIALS[base as usize] } else { far_error(inverse) };
        Self { base, inverse, tabled, at_base }
    }

    /// The factor to leave to the caller: the base, or one.
    #[inline]
    fn scale(&self) -> f64 {
        if self.tabled { 1.0 } else { self.base }
    }

    /// The value and a bound on its error, zero where it is as exact as doubles are.
    #[inline]
    fn quick_log(&self, k: f64) -> (f64, f64) {
        let d = k - self.base;
        let t = d * self.inverse;
        if self.tabled || t.abs() > 1.0 / 32.0 {
            return (self.log(k), 0.0);
        }
        // -base ((1+t) ln(1+t) - t) - ln(1+t)/2 - t/(12 base) + ..., the two logarithms as powers of t
        let t2 = t * t;
        let entropy = 0.5 - t / 6.0 + t2 * (1.0 / 12.0 - t / 20.0);
        let half = 0.5 - t / 4.0 + t2 / 6.0;
        // The terms left out are below base t^6 / 29, t^4 / 7 and t^2 / (11 base).
        let error = t2 * (t2 * (self.base * t2 / 29.0 + 1.0 / 7.0) + self.inverse);
        (t * self.inverse / 12.0 - d * t * entropy - t * half, error)
    }

    #[inline(never)]
    fn far_log(&self, k: f64) -> f64 {
        let d = k - self.base;
        let error = if k >= 100.0 { far_error(1.0 / k) } else { stirling_error(k) };
        d - (k + 0.5) * log_one_plus(d * self.inverse) - error + self.at_base
    }

    #[inline]
    fn log(&self, k: f64) -> f64 {
        if !self.tabled {
            // Below 1 is some thirty standard deviations off.
            return if k < 1.0 { f64::NEG_INFINITY } else { self.far_log(k) };
        }
        self.at_base - if k < FACTORIALS as f64 { LOG_FACTORIALS[k as usize] } else { log_factorial(k) }
    }
}

/// The error of Stirling's formula from 100 on, given the inverse of its argument.
#[inline]
fn far_error(inverse: f64) -> f64 {
    let square = inverse * inverse;
    inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0)))
}

/// Ratio of uniforms around the mode, for variance of about one and more; `first` is the first uniform number.
fn ratio_of_uniforms(order: f64, x: f64, first: f64, words: &mut impl Words) -> i64 {
    let radius = (order * order + 4.0 * x).sqrt();
    let shifted = order + 0.5;
    let center = 2.0 * x / (shifted + (shifted * shifted + 4.0 * x).sqrt()) + 0.5;
    // Stadlober's hat for log-concave masses; 1.001 covers the corners where the needed width was found 0.01 % below it.
    let width = 1.001 * (1.715_527_769_921_413_5 * (x / radius + 0.5).sqrt() + 0.898_916_162_058_898_8);
    let mode = (2.0 * x / (order + radius)) as i64 as f64; // a call less than `floor`
    let (low, high) = (FactorialRatio::new(mode), FactorialRatio::new(mode + order));
    let scale = low.scale() * high.scale();
    // ln(x / scale), close to zero where neither part is from the table
    let r = (x - scale) / scale;
    let log_step = if low.tabled {
        (x / scale).ln()
    } else {
        r * (1.0 - r * (0.5 - r * (1.0 / 3.0 - r * (0.25 - r * (0.2 - r / 6.0)))))
    };
    let mut v = first;
    loop {
        let u = words.open_uniform();
        let place = center + width * (v - 0.5) / u;
        if (0.0..=LARGEST).contains(&place) {
            let k = place as i64 as f64;
            let (low_log, low_error) = low.quick_log(k);
            let (high_log, high_error) = high.quick_log(k + order);
            let log = (k - mode) * log_step + low_log + high_log; // ln p(k) / p(mode)
            let error = low_error + high_error;
            if u * (4.0 - u) - 3.0 <= log - error {
                return k as i64;
            }
            if u * (u - log - error) < 1.0 {
                let log = if error > 0.0 { (k - mode) * log_step + low.log(k) + high.log(k + order) } else { log };
                if 2.0 * u.ln() <= log {
                    return k as i64;
                }
            }
        }
        v = words.uniform();
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

    #[test]
    fn quick_logarithms_are_within_their_bounds() {
        for base in [717.0, 5e3, 1e6, 3e9] {
            let part = FactorialRatio::new(base);
            for i in -300..=300i32 {
                let k = (base * (1.0 + f64::from(i) / 9600.0)).round();
                let (quick, error) = part.quick_log(k);
                assert!((quick - part.log(k)).abs() <= error + 1e-13 * (k - base).abs().max(1.0), "{base} {k}");
            }
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
