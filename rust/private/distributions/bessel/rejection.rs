//! Draws of a Bessel law whose variance is above one: transformed rejection with a squeeze.
//!
//! With s = sqrt(x/h), b = 0.931 + 2.53 s, a = 0.02483 b - 0.059 and the center c, a uniform number u in (-1/2, 1/2) proposes the
//! floor of G(u) = (2a / (1/2 - |u|) + b) u + c, kept if V C < G'(u) p(k) / p(mode), where G'(u) = a / (1/2 - |u|)^2 + b. That is
//! exact where C is at least G' p / p(mode) everywhere. The G is the one for Poisson and binomial counts; the third and fourth
//! cumulants of a Bessel law lie between theirs. C and the squeeze are ours: see `docs/mathematics/distributions.md`.
//!
//! ln p(k) / p(mode) comes from differences of logarithms, first by a short polynomial with a bound on its error.
//! Source: W. Hörmann (1993), The transformed rejection method for generating Poisson random variables; and (1993), The
//! generation of binomial random variates.

use crate::distributions::{LARGEST, RandomSource};
use crate::numeric::special::{FACTORIALS, LOG_FACTORIALS, log_factorial, log_one_plus, stirling_error};

/// Steps from the mode up to which the mass relative to it is a plain product, and the deviation up to which it is tried.
const NEAR: (f64, f64) = (16.0, 10.0);

/// The squeeze holds for 1 / (1/2 - |u|) up to this.
const SQUEEZED: f64 = 1.0 / 0.07;

/// What the proposals of a law are made from.
struct Hat {
    radius: f64,
    deviation: f64,
    slope: f64,
    bend: f64,
    center: f64,
    /// C
    ceiling: f64,
    /// V C below it is kept at once, unless u is near an end.
    squeeze: f64,
}

impl Hat {
    #[inline(always)]
    fn new(order: f64, x: f64) -> Self {
        let radius = (order * order + 4.0 * x).sqrt();
        let deviation = (x / radius).sqrt();
        let inverse = 1.0 / deviation;
        let shifted = order + 0.5;
        let slope = 0.931 + 2.53 * deviation;
        Self {
            radius,
            deviation,
            slope,
            bend: 0.024_83 * slope - 0.059,
            center: 2.0 * x / (shifted + (shifted * shifted + 4.0 * x).sqrt()) + 0.46,
            ceiling: 2.819 * deviation + 1.34 + inverse * (1.4 + 1.2 * inverse * inverse),
            squeeze: 2.6 * deviation - 4.0,
        }
    }

    /// G(u), and 1 / (1/2 - |u|).
    #[inline(always)]
    fn place(&self, u: f64) -> (f64, f64) {
        let inverse = 1.0 / (0.5 - u.abs());
        ((2.0 * self.bend * inverse + self.slope) * u + self.center, inverse)
    }
}

/// What [`draw`] would give if its first proposal, of the uniform numbers u and v, is under the squeeze, else -1; for `L` cells.
#[inline(always)]
pub(super) fn first_proposals<const L: usize>(order: &[f64; L], x: &[f64; L], u: &[f64; L], v: &[f64; L]) -> [f64; L] {
    let mut count = [0.0; L];
    for l in 0..L {
        let hat = Hat::new(order[l], x[l]);
        let u = u[l] - 0.5;
        let (place, inverse) = hat.place(u);
        let kept = (v[l] * hat.ceiling <= hat.squeeze) & (inverse <= SQUEEZED) & (0.0..=LARGEST).contains(&place);
        count[l] = if kept { place.floor() } else { -1.0 };
    }
    count
}

/// A draw for x = argument^2 / 4 and a variance x / h of at least 1.25; `first` is the first uniform number.
#[inline]
pub(super) fn draw(order: f64, x: f64, first: f64, rng: &mut impl RandomSource) -> i64 {
    let hat = Hat::new(order, x);
    let (mut mass, mut next) = (None, Some(first));
    loop {
        let u = next.take().unwrap_or_else(|| rng.uniform()) - 0.5;
        let v = rng.open_uniform();
        let (place, inverse) = hat.place(u);
        // At u = -1/2 there is no place.
        if !(0.0..=LARGEST).contains(&place) {
            continue;
        }
        let k = place as i64 as f64; // a call less than `floor`
        let level = v * hat.ceiling;
        if level <= hat.squeeze && inverse <= SQUEEZED {
            return k as i64;
        }
        let mass = mass.get_or_insert_with(|| Mass::new(order, x, &hat));
        if mass.reaches(k, level / (hat.bend * inverse * inverse + hat.slope)) {
            return k as i64;
        }
    }
}

/// The mass relative to that of the mode.
struct Mass {
    order: f64,
    x: f64,
    mode: f64,
    near: f64,
    logarithms: Option<LogMasses>,
}

impl Mass {
    #[inline]
    fn new(order: f64, x: f64, hat: &Hat) -> Self {
        let mode = (2.0 * x / (order + hat.radius)) as i64 as f64;
        let near = if hat.deviation < NEAR.1 { NEAR.0 } else { -1.0 };
        Self { order, x, mode, near, logarithms: None }
    }

    /// Whether `p(k) / p(mode)` is at least `level`.
    #[inline]
    fn reaches(&mut self, k: f64, level: f64) -> bool {
        if (k - self.mode).abs() <= self.near {
            return self.reaches_near(k, level);
        }
        let (order, x, mode) = (self.order, self.x, self.mode);
        self.logarithms.get_or_insert_with(|| LogMasses::new(order, x, mode)).reach(k, level.ln())
    }

    /// By the product of x / (j (j + order)) over the steps between, or its inverse.
    #[inline]
    fn reaches_near(&self, k: f64, level: f64) -> bool {
        let (mut power, mut product) = (1.0, 1.0);
        let mut j = k.min(self.mode);
        while j < k.max(self.mode) {
            j += 1.0;
            power *= self.x;
            product *= j * (j + self.order);
        }
        if k > self.mode { level * product <= power } else { level * power <= product }
    }
}

/// The logarithm of the mass relative to that of the mode.
struct LogMasses {
    order: f64,
    mode: f64,
    low: FactorialRatio,
    high: FactorialRatio,
    step: f64,
}

impl LogMasses {
    fn new(order: f64, x: f64, mode: f64) -> Self {
        let (low, high) = (FactorialRatio::new(mode), FactorialRatio::new(mode + order));
        let scale = low.scale() * high.scale();
        // ln(x / scale), close to zero where neither part is from the table
        let r = (x - scale) / scale;
        let step = if low.tabled {
            (x / scale).ln()
        } else {
            r * (1.0 - r * (0.5 - r * (1.0 / 3.0 - r * (0.25 - r * (0.2 - r / 6.0)))))
        };
        Self { order, mode, low, high, step }
    }

    /// Whether `ln p(k) / p(mode)` is at least `level`.
    #[inline]
    fn reach(&self, k: f64, level: f64) -> bool {
        let steps = (k - self.mode) * self.step;
        let (low, low_error) = self.low.quick_log(k);
        let (high, high_error) = self.high.quick_log(k + self.order);
        let (quick, error) = (steps + low + high, low_error + high_error);
        if (level - quick).abs() > error {
            return level <= quick;
        }
        level <= steps + self.low.log(k) + self.high.log(k + self.order)
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    /// G'(u) and 1/2 - |u| where G(u) = y.
    fn proposal_at(hat: &Hat, y: f64) -> (f64, f64) {
        // with e = 1/2 - |u|: slope e^2 + (|y - c| + 2 bend - slope / 2) e - bend = 0
        let middle = (y - hat.center).abs() + 2.0 * hat.bend - 0.5 * hat.slope;
        let root = (middle * middle + 4.0 * hat.bend * hat.slope).sqrt();
        let e = if middle > 0.0 { 2.0 * hat.bend / (middle + root) } else { (root - middle) / (2.0 * hat.slope) };
        (hat.bend / (e * e) + hat.slope, e)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn hats_lie_above_and_squeezes_below(log_variance in 0.225..10.0f64, log_order in -1.0..16.0f64) {
            let (variance, order) = (log_variance.exp(), log_order.exp().floor());
            let x = 2.0 * variance * variance * (1.0 + (1.0 + order * order / (4.0 * variance * variance)).sqrt());
            let hat = Hat::new(order, x);
            let mut mass = Mass::new(order, x, &hat);
            let logarithms = LogMasses::new(order, x, mass.mode);
            mass.near = 0.0;
            let (from, to) = ((mass.mode - 12.0 * hat.deviation - 8.0).max(0.0), mass.mode + 12.0 * hat.deviation + 20.0);
            let mut k = from.floor();
            while k < to {
                let log = (k - mass.mode) * logarithms.step
                    + logarithms.low.log(k)
                    + logarithms.high.log(k + order);
                let (ratio, (left, e), (right, f)) = (log.exp(), proposal_at(&hat, k), proposal_at(&hat, k + 1.0));
                prop_assert!(ratio * left.max(right) <= hat.ceiling * (1.0 + 1e-9), "hat at {k}: {order} {x}");
                let least = if k <= hat.center && hat.center <= k + 1.0 { hat.slope + 4.0 * hat.bend } else { left.min(right) };
                prop_assert!(e.max(f) < 0.07 || ratio * least >= hat.squeeze, "squeeze at {k}: {order} {x}");
                k += 1.0;
            }
        }

        #[test]
        fn near_products_are_exponentials_of_logarithms(order in 0..3000u32, x in 17.0..1e5f64, steps in -16..=16i32) {
            let (order, hat) = (f64::from(order), Hat::new(f64::from(order), x));
            prop_assume!(hat.deviation > 1.12 && hat.deviation < NEAR.1);
            let mass = Mass::new(order, x, &hat);
            let k = mass.mode + f64::from(steps);
            prop_assume!(k >= 0.0);
            let logarithms = LogMasses::new(order, x, mass.mode);
            let ratio = ((k - mass.mode) * logarithms.step + logarithms.low.log(k) + logarithms.high.log(k + order)).exp();
            prop_assert!(mass.reaches_near(k, ratio * (1.0 - 1e-9)) && !mass.reaches_near(k, ratio * (1.0 + 1e-9)));
        }
    }
}
