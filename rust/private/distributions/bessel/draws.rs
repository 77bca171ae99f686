//! One draw at a time, by regime: a zero at once, inversion of the power series, a thinned Poisson count, or rejection.
//!
//! Source: that of [`super`]; which regime is chosen where is said there.

use super::rejection;
use crate::distributions::{RandomSource, poisson};

/// A power series of so many terms serves x and orders up to these.
///
/// The terms left out are below 1e-17 of the sum; the bound on the order keeps the denominators from overflowing.
#[derive(Clone, Copy)]
pub(super) struct Series {
    pub(super) x: f64,
    pub(super) order: f64,
    pub(super) terms: usize,
}

impl Series {
    #[inline(always)]
    pub(super) fn serves(&self, order: f64, x: f64) -> bool {
        (x <= self.x) & (order <= self.order)
    }
}

const SHORTEST: Series = Series { x: 1.0, order: 1e9, terms: 12 };
pub(super) const SHORT: Series = Series { x: 6.0, order: 1e9, terms: 18 };
pub(super) const MIDDLE: Series = Series { x: 16.0, order: 1e9, terms: 24 };
/// For many cells at once only: one alone would wait for each sum.
pub(super) const LONG: Series = Series { x: 64.0, order: 1e3, terms: 32 };
/// Likewise.
pub(super) const LONGEST: Series = Series { x: 400.0, order: 1e3, terms: 54 };
/// Counts below this one are told by [`first_counts`]. Not tuned: with more, every cell takes more sums and fewer go on alone.
pub(super) const FIRST_COUNTS: usize = 7;

/// A draw of order in `0..=2^53` and argument in `[0, 2^53]`.
#[inline]
pub fn draw(order: f64, argument: f64, rng: &mut impl RandomSource) -> i64 {
    let x = 0.25 * argument * argument;
    let u = rng.uniform();
    if !may_count(order, x, u) {
        return 0;
    }
    let ([target], [count]) = if SHORTEST.serves(order, x) {
        first_counts::<{ SHORTEST.terms }, 1>(&[order], &[x], &[u])
    } else if SHORT.serves(order, x) {
        first_counts::<{ SHORT.terms }, 1>(&[order], &[x], &[u])
    } else if MIDDLE.serves(order, x) {
        first_counts::<{ MIDDLE.terms }, 1>(&[order], &[x], &[u])
    } else {
        return draw_large(order, x, u, rng);
    };
    if count < FIRST_COUNTS as f64 { count as i64 } else { count_terms(order, x, target) }
}

/// Whether `u` is at least 1 - x/(order+1); else the draw is 0, for that is at most P(0).
#[inline(always)]
pub(super) fn may_count(order: f64, x: f64, u: f64) -> bool {
    let next = order + 1.0;
    u * next >= next - x
}

/// Partial sums 1, 1 + x/(v+1), ... as fractions over D_n = n! (v+1) ... (v+n): N_n = n (v+n) N_(n-1) + x^n.
#[derive(Clone, Copy)]
struct PartialSums<const L: usize> {
    numerator: [f64; L],
    denominator: [f64; L],
    power: [f64; L],
}

impl<const L: usize> PartialSums<L> {
    const ONE: Self = Self { numerator: [1.0; L], denominator: [1.0; L], power: [1.0; L] };

    #[inline(always)]
    fn add(&mut self, n: usize, order: &[f64; L], x: &[f64; L]) {
        let n = n as f64;
        for l in 0..L {
            let factor = n * (n + order[l]);
            self.power[l] *= x[l];
            self.denominator[l] *= factor;
            self.numerator[l] = self.numerator[l] * factor + self.power[l];
        }
    }

    #[inline(always)]
    fn times(&self, u: &[f64; L]) -> [f64; L] {
        std::array::from_fn(|l| u[l] * (self.numerator[l] / self.denominator[l]))
    }

    /// Adds one to the count of each cell whose target is not below this sum; whether there was one.
    #[inline(always)]
    fn count(&self, target: &[f64; L], count: &mut [f64; L]) -> bool {
        let mut any = false;
        for l in 0..L {
            let reached = target[l] * self.denominator[l] >= self.numerator[l];
            count[l] += if reached { 1.0 } else { 0.0 };
            any |= reached;
        }
        any
    }
}

/// `u S(x)`, and how many of the first [`FIRST_COUNTS`] partial sums do not exceed it, for `L` cells.
///
/// The number of terms does not depend on the neighbors, so a cell gives the same bits alone and among others; there is no
/// jump, so that the loops over cells become vector instructions.
#[inline(always)]
pub(super) fn first_counts<const N: usize, const L: usize>(
    order: &[f64; L],
    x: &[f64; L],
    u: &[f64; L],
) -> ([f64; L], [f64; L]) {
    let mut sums = [PartialSums::ONE; FIRST_COUNTS];
    for n in 1..FIRST_COUNTS {
        sums[n] = sums[n - 1];
        sums[n].add(n, order, x);
    }
    let mut sum = sums[FIRST_COUNTS - 1];
    for n in FIRST_COUNTS..=N {
        sum.add(n, order, x);
    }
    let (target, mut count) = (sum.times(u), [0.0; L]);
    for sum in &sums {
        sum.count(&target, &mut count);
    }
    (target, count)
}

/// `u S(x)`, and how many of the partial sums do not exceed it.
#[inline(always)]
pub(super) fn all_counts<const N: usize, const L: usize>(
    order: &[f64; L],
    x: &[f64; L],
    u: &[f64; L],
) -> ([f64; L], [f64; L]) {
    let mut sum = PartialSums::ONE;
    for n in 1..=N {
        sum.add(n, order, x);
    }
    let (target, mut count) = (sum.times(u), [0.0; L]);
    sum = PartialSums::ONE;
    for n in 1..=N {
        if !sum.count(&target, &mut count) {
            break;
        }
        sum.add(n, order, x);
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

/// The draw where the series is not the way and [`may_count`] said yes to `u`.
pub(super) fn draw_large(order: f64, x: f64, u: f64, rng: &mut impl RandomSource) -> i64 {
    let rate = x / (order + 1.0);
    if is_wide(order, x) {
        rejection::draw(order, x, u, rng)
    } else if rate < 1.5 {
        thin(order, rate, u, rng)
    } else {
        let (zero, mut u) = ((-rate).exp(), u);
        loop {
            let n = poisson::invert(rate, u, zero);
            if keep(order, n, rng) {
                return n;
            }
            u = rng.uniform();
        }
    }
}

/// Whether rejection is the way: a thinned Poisson count of rate x/(order+1) would be kept too rarely, or take too long.
#[inline]
pub(super) fn is_wide(order: f64, x: f64) -> bool {
    let next = order + 1.0;
    let rate = x / next;
    (rate >= 1.5) & ((rate >= 10.0) | (rate * (rate + 1.0) >= next))
}

/// Poisson(rate) thinned by the product of (v+1)/(v+j), j = 2..=n; `u` serves the first inversion.
fn thin(order: f64, rate: f64, mut u: f64, rng: &mut impl RandomSource) -> i64 {
    let zero = (-rate).exp();
    loop {
        let n = poisson::invert(rate, u, zero);
        if keep(order, n, rng) {
            return n;
        }
        u = rng.uniform();
        if u < 1.0 - rate {
            return 0;
        }
    }
}

/// Keeps a Poisson proposal with probability prod (v+1)/(v+j), j = 2..=n.
#[inline]
fn keep(order: f64, n: i64, rng: &mut impl RandomSource) -> bool {
    if n <= 1 {
        return true;
    }
    let u = rng.uniform();
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
