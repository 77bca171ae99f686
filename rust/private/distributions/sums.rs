//! Sums of a log-concave mass over runs of integers, away from its mode: tails, moments and entropies of every law here.
//!
//! Short runs are added term by term, from the largest term outward. Where more than a thousand terms would matter the mass
//! is smooth on the scale of a step, and the sum is an integral with Gauss's central corrections at its ends,
//!   sum_{j=a}^{b} f(j) = integral from a - 1/2 to b + 1/2 + E(b) - E(a),
//!   -E(a) = (1/24) D f - (17/5760) D^3 f + (367/967680) D^5 f,   D the central difference at a - 1/2,
//! whose next term is below 1e-15 there. So the cost is bounded: about 1000 ratios or 200 masses, whatever the variance.
//!
//! Source: F. Hildebrand, Introduction to Numerical Analysis, 5.9 (Gauss's summation formula); Gauss-Legendre rule.

use std::sync::LazyLock;

/// A log-concave function on the integers that extends smoothly to the reals between.
pub trait Shape {
    /// Its logarithm, up to a constant of the shape's own choosing.
    fn log_value(&self, x: f64) -> f64;

    /// `f(x + step) / f(x)` for a step of plus or minus one.
    #[inline]
    fn ratio(&self, x: f64, step: f64) -> f64 {
        (self.log_value(x + step) - self.log_value(x)).exp()
    }
}

/// Terms up to which a sum is taken term by term.
const DIRECT: f64 = 1000.0;
/// exp(-45 / [`DIRECT`]): a longer sum that is taken term by term falls faster.
const LEAST_FALL: f64 = 0.956;
/// 2^52: from here on x + 1 and x - 1 are not both doubles that differ from x.
const WHOLE: f64 = 4_503_599_627_370_496.0;
/// Nodes of the quadrature in each panel: with four panels its tails are those term by term to 1e-14 (the tests below).
const NODES: usize = 20;
/// Panels of the quadrature.
const PANELS: usize = 4;

/// Nodes in (0, 1) and weights of the Gauss-Legendre rule, by Newton's method on the Legendre polynomial.
pub static RULE: LazyLock<[(f64, f64); NODES]> = LazyLock::new(|| {
    std::array::from_fn(|i| {
        let mut x = (std::f64::consts::PI * (i as f64 + 0.75) / (NODES as f64 + 0.5)).cos();
        let mut slope = 1.0;
        for _ in 0..8 {
            let (mut last, mut value) = (1.0, x);
            for k in 2..=NODES {
                let k = k as f64;
                (last, value) = (value, ((2.0 * k - 1.0) * x * value - (k - 1.0) * last) / k);
            }
            slope = NODES as f64 * (x * value - last) / (x * x - 1.0);
            x -= value / slope;
        }
        (0.5 * (1.0 + x), 1.0 / ((1.0 - x * x) * slope * slope))
    })
});

/// Adds `weight(x, ln f(x) - ln f(start)) f(x) / f(start)` over `x = start, start + step, ..., end`.
///
/// The values must not rise on the way. `end` may be infinite. The first weight decides when a sum is complete, so it must
/// be constant; the others may grow like a power of x.
pub fn outward<const N: usize>(
    shape: &impl Shape,
    (start, step, end): (f64, f64, f64),
    weight: impl Fn(f64, f64) -> [f64; N],
) -> [f64; N] {
    let mut sums = [0.0; N];
    let length = (end - start) * step;
    if length < 0.0 {
        return sums;
    }
    // Far from the mode the logarithms may be so large that their differences have no digit; the ratios, which fall, have all.
    if length > DIRECT && shape.ratio(start, step) > LEAST_FALL {
        let first = shape.log_value(start);
        if shape.log_value(start + step * DIRECT) - first > -45.0 {
            return quadrature(shape, (start, step, length), first, weight);
        }
    }
    let (mut x, mut value) = (start, 1.0f64);
    loop {
        let factors = weight(x, value.ln());
        let mut settled = true;
        for (sum, factor) in sums.iter_mut().zip(factors) {
            let part = factor * value;
            *sum += part;
            settled &= part.abs() <= 1e-18 * sum.abs();
        }
        if x == end || settled && x != start || value == 0.0 {
            return sums;
        }
        let next = x + step;
        if next == x {
            // From 2^53 on doubles do not have every step: the rest is a geometric series, which falls by [`LEAST_FALL`].
            let ratio = shape.ratio(x, -step).recip().min(LEAST_FALL);
            let rest = value * ratio / (1.0 - ratio);
            sums.iter_mut().zip(factors).for_each(|(sum, factor)| *sum += factor * rest);
            return sums;
        }
        value *= shape.ratio(x, step);
        x = next;
        if value == 0.0 {
            return sums;
        }
    }
}

/// `ln (f(k + 1) + f(k + 2) + ...)` for k at or above the mode, where `sum(x)` is `(f(x) + f(x + 1) + ...) / f(x)`.
pub fn log_above<S: Shape>(shape: &S, k: f64, sum: impl Fn(&S, f64) -> f64) -> f64 {
    let next = k + 1.0;
    if next > k {
        return shape.log_value(next) + sum(shape, next).ln();
    }
    // At 2^53 the next number is no double.
    shape.log_value(k) + (sum(shape, k) - 1.0).max(f64::EPSILON).ln()
}

/// `(f(x) + f(x + 1) + ...) / f(x)`.
pub fn upper_sum(shape: &impl Shape, x: f64) -> f64 {
    outward(shape, (x, 1.0, f64::INFINITY), |_, _| [1.0])[0]
}

/// [`outward`] by integration; `first` is the logarithm at the start.
fn quadrature<const N: usize>(
    shape: &impl Shape,
    (start, step, length): (f64, f64, f64),
    first: f64,
    weight: impl Fn(f64, f64) -> [f64; N],
) -> [f64; N] {
    let mut reach = DIRECT;
    while reach < length && shape.log_value(start + step * reach) - first > -45.0 {
        reach *= 1.4;
    }
    let cut = reach >= length;
    let span = if cut { length + 1.0 } else { reach };
    let mut sums = [0.0; N];
    let mut gather = |offset: f64, scale: f64| {
        // Large places have coarse fractions: what x lost moves the logarithm by its slope.
        let x = start + step * offset;
        let lost = offset - (x - start) * step;
        let slope = match () {
            () if lost == 0.0 => 0.0,
            () if x.abs() < WHOLE => lost * shape.ratio(x, step).ln(),
            () => lost * step * (shape.log_value(x + 4.0) - shape.log_value(x - 4.0)) / 8.0,
        };
        let log = shape.log_value(x) - first + if slope.is_finite() { slope } else { 0.0 };
        let value = log.exp() * scale;
        if value != 0.0 {
            for (sum, factor) in sums.iter_mut().zip(weight(x, log)) {
                *sum += factor * value;
            }
        }
    };
    let width = span / PANELS as f64;
    for panel in 0..PANELS {
        for (node, share) in *RULE {
            gather(-0.5 + width * (panel as f64 + node), share * width);
        }
    }
    // The central differences at one end, written out in values at -3, ..., 2 steps from it.
    const END: [f64; 6] = {
        let (first, third, fifth) = (1.0 / 24.0, -17.0 / 5760.0, 367.0 / 967_680.0);
        [
            -fifth,
            -third + 5.0 * fifth,
            -first + 3.0 * third - 10.0 * fifth,
            first - 3.0 * third + 10.0 * fifth,
            third - 5.0 * fifth,
            fifth,
        ]
    };
    for (i, share) in END.into_iter().enumerate() {
        gather(i as f64 - 3.0, share);
        if cut {
            gather(length + 3.0 - i as f64, share);
        }
    }
    sums
}

/// Cumulants and entropy, from [`Moments`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cumulants {
    /// The mean.
    pub mean: f64,
    /// The variance.
    pub variance: f64,
    /// The third cumulant.
    pub third: f64,
    /// The fourth cumulant.
    pub fourth: f64,
    /// The entropy in nats.
    pub entropy: f64,
}

/// Sums that become moments and an entropy: the mode with mass one, kept apart so that a variance or an entropy near zero
/// keeps its digits, and runs of values on both sides of it.
pub struct Moments {
    mode: f64,
    sums: [f64; 6],
}

impl Moments {
    /// Nothing summed yet but the mode itself, with mass 1.
    pub fn about(mode: f64) -> Self {
        Self { mode, sums: [0.0; 6] }
    }

    /// Adds a run of values that does not contain the mode; `scale` is the mass at its start relative to the mode's.
    pub fn add(&mut self, shape: &impl Shape, run: (f64, f64, f64), scale: f64) {
        let (mode, log) = (self.mode, scale.ln());
        if scale == 0.0 || (run.2 - run.0) * run.1 < 0.0 {
            return;
        }
        let found = outward(shape, run, |x, relative| {
            let d = x - mode;
            [1.0, d, d * d, d * d * d, d * d * d * d, -(log + relative)]
        });
        for (sum, part) in self.sums.iter_mut().zip(found) {
            *sum += scale * part;
        }
    }

    /// The cumulants and the entropy.
    pub fn cumulants(&self) -> Cumulants {
        let [rest, raw @ .., surprise] = self.sums;
        let total = 1.0 + rest;
        let [m1, m2, m3, m4] = raw.map(|m: f64| m / total);
        let variance = m2 - m1 * m1;
        let third = m3 - 3.0 * m1 * m2 + 2.0 * m1 * m1 * m1;
        let fourth_central = m4 - 4.0 * m1 * m3 + 6.0 * m1 * m1 * m2 - 3.0 * m1 * m1 * m1 * m1;
        Cumulants {
            mean: self.mode + m1,
            variance,
            third,
            fourth: fourth_central - 3.0 * variance * variance,
            entropy: rest.ln_1p() + surprise / total,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A discretized normal shape: sums are known to be `sigma sqrt(2 pi)` up to exp(-2 pi^2 sigma^2).
    struct Normal(f64);
    impl Shape for Normal {
        fn log_value(&self, x: f64) -> f64 {
            -0.5 * (x / self.0) * (x / self.0)
        }
    }

    #[test]
    fn long_and_short_sums_give_the_area_of_a_normal() {
        for sigma in [3.0, 50.0, 109.0, 200.0, 1e4, 1e7] {
            let shape = Normal(sigma);
            let half = outward(&shape, (0.0, 1.0, f64::INFINITY), |_, _| [1.0])[0];
            let expected = 0.5 * (1.0 + sigma * (2.0 * std::f64::consts::PI).sqrt());
            assert!((half / expected - 1.0).abs() < 5e-15, "{sigma}: {half} {expected}");
        }
    }

    #[test]
    fn tails_by_integration_equal_tails_term_by_term() {
        for (sigma, from) in [(150.0, 100.0), (200.0, 1000.0), (400.0, 3000.0), (300.0, 2000.0)] {
            let shape = Normal(sigma);
            for end in [f64::INFINITY, from + 1500.0] {
                let fast = outward(&shape, (from, 1.0, end), |_, _| [1.0])[0];
                let slow: f64 = (0..9000)
                    .map(f64::from)
                    .take_while(|j| from + j <= end)
                    .map(|j| (shape.log_value(from + j) - shape.log_value(from)).exp())
                    .sum();
                assert!((fast / slow - 1.0).abs() < 1e-14, "{sigma} {from} {end}: {fast} {slow}");
            }
        }
    }
}
