//! The Gaussian mechanism, exactly: what it guarantees for a noise, and the least noise for a guarantee.
//!
//! With u = sensitivity / sigma:  delta(epsilon, u) = Phi(u/2 - epsilon/u) - e^epsilon Phi(-u/2 - epsilon/u)
//!                                                 = phi(x1) D,   D = m(x1) - m(x2),   x1, x2 = epsilon/u -+ u/2,
//! where m(x) = Phi(-x) / phi(x) is Mills' ratio; and d log delta / d log u = u / D.
//!
//! The first form overflows and cancels, the second does not; where x1 and x2 are close, D is the integral of 1 - t m(t) between
//! them. Results are rounded outwards: a sigma is never below the exact one, a delta or an epsilon never either.
//!
//! Newton's method needs no bracket and never ends on the wrong side but for rounding, which [`profile_error`] bounds:
//!  - log delta is concave in log u. Its slope is u / D, and D / u is the mean of 1 - t m(t) over [x1, x2]; that function is
//!    decreasing and convex (m is completely monotone), so the mean grows both as the interval moves left and as it widens.
//!  - log delta is concave in epsilon: delta(epsilon) is the tail of L - X for a normal L and an exponential X, a log-concave law.
//!
//! A tangent lies above a concave function, so where it meets log delta the profile is at most delta.
//! Source of the exact profile: B. Balle, Y.-X. Wang (2018), Improving the Gaussian mechanism for differential privacy.

use crate::{Error, Result};
use libm::{erfc, exp, log, log1p, sqrt};
use std::f64::consts::FRAC_1_SQRT_2;

/// `sqrt(pi / 2)`.
const SQRT_HALF_PI: f64 = 1.253_314_137_315_500_3;
/// `sqrt(2 pi)`.
const SQRT_TAU: f64 = 2.506_628_274_631_000_5;
/// `ln(sqrt(2 pi))`.
const LOG_SQRT_TAU: f64 = 0.918_938_533_204_672_7;

/// Four-point Gauss-Legendre rule, for intervals of length u <= 0.05. Its error is u^9 (4!)^4 / (9 (8!)^3) times the eighth
/// derivative of 1 - t m(t), which is E[s^9] / E[s] < 2e5 times the function for weights e^(-ts - s^2/2), t >= -1.05: relatively
/// below 5e-15 (u/0.1)^8 < 2e-17.
const LEGENDRE_SHORT: [(f64, f64); 2] =
    [(0.339_981_043_584_856_26, 0.652_145_154_862_546_1), (0.861_136_311_594_052_6, 0.347_854_845_137_453_85)];

/// Twelve-point rule, for u <= 1.8: in the same way relatively below 1e-17, as E[s^25] / E[s] < 1e15.
const LEGENDRE: [(f64, f64); 6] = [
    (0.125_233_408_511_468_9, 0.249_147_045_813_402_8),
    (0.367_831_498_998_180_2, 0.233_492_536_538_354_8),
    (0.587_317_954_286_617_4, 0.203_167_426_723_065_92),
    (0.769_902_674_194_304_7, 0.160_078_328_543_346_23),
    (0.904_117_256_370_474_9, 0.106_939_325_995_318_43),
    (0.981_560_634_246_719_3, 0.047_175_336_386_511_83),
];

/// exp(x^2 / 2) with the square in two parts, so that its rounding is not magnified.
fn exp_half_square(x: f64) -> f64 {
    // Veltkamp's splitting; |x| < 40 here.
    let high = {
        let scaled = x * 134_217_729.0;
        scaled - (scaled - x)
    };
    let (low, square) = (x - high, x * x);
    let rest = ((high * high - square) + 2.0 * high * low) + low * low;
    exp(0.5 * square) * (1.0 + 0.5 * rest)
}

/// 1 - t m(t) for t >= 5, a continued fraction: 1 / (t^2 + 3 - 6 / (t^2 + 7 - 20 / (t^2 + 11 - ...))).
fn far_rest(t: f64) -> f64 {
    let square = t * t;
    let mut value = square + 51.0;
    for k in (1..=12).rev() {
        let k = f64::from(k);
        value = (square + 4.0 * k - 1.0) - 2.0 * k * (2.0 * k + 1.0) / value;
    }
    1.0 / value
}

/// Mills' ratio Phi(-t) / phi(t).
pub(super) fn mills(t: f64) -> f64 {
    if t >= 5.0 {
        return (1.0 - far_rest(t)) / t;
    }
    if t < 0.0 {
        return SQRT_TAU * exp_half_square(t) - mills(-t);
    }
    // The argument of erfc is rounded; the exponential must be taken at the same rounded argument.
    let x = t * FRAC_1_SQRT_2;
    let root = exp_half_square(x);
    SQRT_HALF_PI * erfc(x) * root * root
}

/// 1 - t m(t).
fn rest(t: f64) -> f64 {
    if t >= 5.0 { far_rest(t) } else { 1.0 - t * mills(t) }
}

/// m(x1) - m(x2) for x1, x2 = center -+ u/2.
fn difference(center: f64, u: f64) -> f64 {
    if u > 1.8 {
        return plain_difference(center, u);
    }
    let half = 0.5 * u;
    let rule: &[(f64, f64)] = if u > 0.05 { &LEGENDRE } else { &LEGENDRE_SHORT };
    half * rule.iter().map(|(g, w)| w * (rest(center - half * g) + rest(center + half * g))).sum::<f64>()
}

/// The same by subtraction: enough to approach a root, not to end at it.
fn plain_difference(center: f64, u: f64) -> f64 {
    mills(center - 0.5 * u) - mills(center + 0.5 * u)
}

/// phi(x), for |x| < 40.
pub(super) fn density(x: f64) -> f64 {
    1.0 / (SQRT_TAU * exp_half_square(x))
}

fn log_density(x: f64) -> f64 {
    -0.5 * x * x - LOG_SQRT_TAU
}

/// log delta and D at epsilon >= 0, u > 0.
fn log_profile(epsilon: f64, u: f64) -> (f64, f64) {
    log_profile_with(epsilon, u, difference)
}

fn log_profile_with(epsilon: f64, u: f64, difference: fn(f64, f64) -> f64) -> (f64, f64) {
    let center = epsilon / u;
    let x1 = center - 0.5 * u;
    if x1 < -1.0 {
        // Nearly all is lost: from the complement, whose terms do not cancel.
        let log_delta = log1p(-exp(log_complement(epsilon, u).0));
        return (log_delta, exp(log_delta - log_density(x1)));
    }
    let difference = difference(center, u);
    (log_density(x1) + log(difference), difference)
}

/// log (1 - delta) and m(-x1) + m(x2), for 1 - delta = phi(x1) (m(-x1) + m(x2)).
fn log_complement(epsilon: f64, u: f64) -> (f64, f64) {
    let (x1, x2) = (epsilon / u - 0.5 * u, epsilon / u + 0.5 * u);
    let sum = mills(-x1) + mills(x2);
    (log_density(x1) + log(sum), sum)
}

/// The exact profile, for any epsilon (also negative) and u >= 0, to the accuracy that [`profile_error`] bounds.
pub(crate) fn profile(epsilon: f64, u: f64) -> f64 {
    if epsilon < 0.0 {
        // What exceeds e^epsilon one way is what exceeds e^-epsilon the other way, and the rest.
        return -libm::expm1(epsilon) + exp(epsilon) * profile(-epsilon, u);
    }
    if u <= 0.0 || epsilon / u > 1e150 {
        return 0.0;
    }
    let x1 = epsilon / u - 0.5 * u;
    if (-1.0..NEAR).contains(&x1) {
        return difference(epsilon / u, u) / (SQRT_TAU * exp_half_square(x1));
    }
    exp(log_profile(epsilon, u).0).min(1.0)
}

/// Up to this x1 the density phi(x1) is formed itself: where delta is small because u is, its logarithm would be too coarse.
/// Beyond, D / u is below 1e-3 and takes that many digits off the error of a logarithm.
const NEAR: f64 = 30.0;

/// log (delta(epsilon, u) / delta) and D.
fn residual(epsilon: f64, u: f64, delta: f64, difference: fn(f64, f64) -> f64) -> (f64, f64) {
    let x1 = epsilon / u - 0.5 * u;
    if (-1.0..NEAR).contains(&x1) {
        let difference = difference(epsilon / u, u);
        return (log(difference / delta / (SQRT_TAU * exp_half_square(x1))), difference);
    }
    let (value, difference) = log_profile_with(epsilon, u, difference);
    (value - log(delta), difference)
}

/// A bound of the relative error of [`profile`], for a u that is itself rounded to nearest.
///
/// In ulps, with exp and erfc each within one: Mills' ratio errs by at most 7 (constants and products included), so 1 - t m(t) by
/// 7 t m(t) / (1 - t m(t)) <= 7 (t^2 + 1) where t < 5, and by 2 beyond, where it is a continued fraction without cancellation.
/// The rule adds 8, the density 3, the rounding of x1 and x2 x1 x2 + 3, the density's argument x1^2. Beyond u = 1.8 the
/// subtraction of two ratios magnifies their errors by (m(x1) + m(x2)) / D <= 2.2 + x1, which is no more.
fn profile_error(epsilon: f64, u: f64) -> f64 {
    let (center, half) = (epsilon.abs() / u, 0.5 * u);
    if u <= 0.0 || center > 1e150 {
        return 0.0;
    }
    let (x1, x2) = ((center - half).abs(), center + half);
    if center - half < -1.0 {
        // The complement is at most 0.48 of the profile here, and its terms do not cancel.
        return f64::EPSILON * (3.0 + 0.5 * complement_error(x1, x2));
    }
    let ratios = if u > 1.8 { 2.2 + x1 } else { 1.0 + x2.min(5.0).powi(2) };
    f64::EPSILON * (14.0 + x1 * x1 + x1 * x2 + 7.0 * ratios)
}

/// A bound of the relative error of the complement, in ulps: ratios of positive arguments, and the density's.
fn complement_error(x1: f64, x2: f64) -> f64 {
    14.0 + x1 * x1 + x1.abs() * x2
}

/// Whether the profile is at most delta, for certain.
fn fits(epsilon: f64, u: f64, delta: f64) -> bool {
    let (x1, x2) = (epsilon / u - 0.5 * u, epsilon / u + 0.5 * u);
    if delta > 0.5 {
        // 1 - delta is exact.
        return exp(log_complement(epsilon, u).0) * (1.0 - f64::EPSILON * complement_error(x1, x2)) >= 1.0 - delta;
    }
    profile_upwards(epsilon, u) <= delta
}

/// Not below the exact profile.
pub(crate) fn profile_upwards(epsilon: f64, u: f64) -> f64 {
    if u.is_infinite() {
        return 1.0;
    }
    if epsilon < 0.0 {
        // Both terms are positive, and the first is exact but for its rounding: see `profile`.
        let other = exp(epsilon) * profile_upwards(-epsilon, u);
        return ((other - libm::expm1(epsilon)) * (1.0 + 4.0 * f64::EPSILON)).next_up().min(1.0);
    }
    (profile(epsilon, u) * (1.0 + profile_error(epsilon, u))).next_up().clamp(f64::from_bits(1), 1.0)
}

/// Newton's method for a monotone function of log u, safe between bounds that shrink: `residual` gives value and slope, and is
/// told when to be accurate, which is once the steps are small. Returns the root and the slope.
fn solve_log(start: f64, mut residual: impl FnMut(f64, bool) -> (f64, f64)) -> Option<(f64, f64)> {
    let (mut below, mut above, mut accurate) = (0.0, f64::INFINITY, false);
    let mut u = start;
    for _ in 0..200 {
        let (value, slope) = residual(u, accurate);
        let step = -value / slope;
        let next = u * exp(step.clamp(-5.0, 5.0));
        if step.abs() < 1e-7 {
            if accurate {
                return Some((next, slope));
            }
            (below, above, accurate, u) = (0.0, f64::INFINITY, true, next);
            continue;
        }
        (below, above) = if value < 0.0 { (u, above) } else { (below, u) };
        u = if next > below && next < above {
            next
        } else if below > 0.0 && above < f64::INFINITY {
            sqrt(below) * sqrt(above)
        } else {
            u * if value < 0.0 { 2.0 } else { 0.5 }
        };
    }
    None
}

/// About the x with Phi(-x) = tail, for a tail of at most 1/2 (Abramowitz and Stegun 26.2.22; a place to start from).
pub(super) fn tail_quantile(tail: f64) -> f64 {
    let t = sqrt(-2.0 * log(tail));
    t - (2.30753 + 0.27061 * t) / (1.0 + t * (0.99229 + 0.04481 * t))
}

/// A u = sensitivity / sigma with `delta(epsilon, u) <= delta`, the largest one up to rounding.
fn ratio(epsilon: f64, delta: f64) -> f64 {
    // The slope of log delta turns the error of the profile into that of u; the last step adds some of its own.
    let rounding = |u: f64, slope: f64| 1.0 - f64::EPSILON * 6.0 - profile_error(epsilon, u) / slope;
    match approximate_ratio(epsilon, delta) {
        Some((u, slope)) if delta <= 0.5 => u * rounding(u, slope),
        other => {
            // The complement is not convex, so what was found is tried.
            let mut u = other.map_or(delta, |found| found.0);
            let mut step = 2.0 * f64::EPSILON;
            while !fits(epsilon, u, delta) && step < 1.0 {
                u *= 1.0 - step;
                step *= 1.5;
            }
            u
        }
    }
}

fn approximate_ratio(epsilon: f64, delta: f64) -> Option<(f64, f64)> {
    if delta > 0.5 {
        let target = log1p(-delta);
        let z = tail_quantile(1.0 - delta);
        return solve_log((z + sqrt(z * z + 2.0 * epsilon)).max(1e-3), |u, _| {
            let (value, sum) = log_complement(epsilon, u);
            (target - value, u / sum)
        });
    }
    let z = tail_quantile(delta);
    let start = (2.0 * epsilon / (z + sqrt(z * z + 2.0 * epsilon))).max(delta * SQRT_TAU);
    solve_log(start, |u, accurate| {
        let way = if accurate || u < 1e-3 { difference } else { plain_difference };
        let (value, difference) = residual(epsilon, u, delta, way);
        (value, u / difference)
    })
}

pub(crate) fn check_epsilon(epsilon: f64) -> Result<()> {
    Error::require((0.0..=1e15).contains(&epsilon), "epsilon", epsilon, "at least 0 and at most 1e15")
}

fn check_delta(delta: f64) -> Result<()> {
    Error::require(delta > 0.0 && delta < 1.0, "delta", delta, "in (0, 1)")
}

/// Checks that a sensitivity or a sigma is positive and finite.
fn check_positive(name: &'static str, value: f64) -> Result<()> {
    Error::require(value > 0.0 && value.is_finite(), name, value, "positive and finite")
}

/// The least sigma for which Gaussian noise on a value of this L2 sensitivity is (epsilon, delta)-private, rounded upwards.
///
/// # Errors
/// [`Error::Domain`] unless `0 <= epsilon <= 1e15`, `0 < delta < 1` and the sensitivity is positive.
pub fn gaussian_sigma(epsilon: f64, delta: f64, sensitivity: f64) -> Result<f64> {
    check_epsilon(epsilon)?;
    check_delta(delta)?;
    check_positive("sensitivity", sensitivity)?;
    let sigma = sensitivity / ratio(epsilon, delta);
    // Below the normal doubles a quotient errs by more than its ulp.
    let sigma = if sigma < f64::MIN_POSITIVE { sigma.next_up() } else { sigma };
    Error::require(sigma.is_finite(), "delta", delta, "large enough for a finite sigma")?;
    Ok(sigma)
}

/// The delta of Gaussian noise at epsilon, rounded upwards.
///
/// # Errors
/// [`Error::Domain`] unless `0 <= epsilon <= 1e15` and sensitivity and sigma are positive.
pub fn gaussian_delta(epsilon: f64, sigma: f64, sensitivity: f64) -> Result<f64> {
    check_epsilon(epsilon)?;
    check_positive("sigma", sigma)?;
    check_positive("sensitivity", sensitivity)?;
    Ok(profile_upwards(epsilon, (sensitivity / sigma).next_up()))
}

/// The epsilon of Gaussian noise at delta, rounded upwards; 0 where delta already bounds the total variation.
///
/// # Errors
/// [`Error::Domain`] unless `0 < delta < 1` and sensitivity and sigma are positive.
pub fn gaussian_epsilon(delta: f64, sigma: f64, sensitivity: f64) -> Result<f64> {
    check_delta(delta)?;
    check_positive("sigma", sigma)?;
    check_positive("sensitivity", sensitivity)?;
    let u = (sensitivity / sigma).next_up();
    Error::require(u <= 1e7, "sensitivity", sensitivity, "at most 1e7 sigma")?;
    if profile_upwards(0.0, u) <= delta {
        return Ok(0.0);
    }
    // delta < Phi(-x1), so the epsilon at which Phi(-x1) = delta is too large. From above, Newton's steps only go down.
    let z = if delta > 0.5 { -tail_quantile(1.0 - delta) } else { tail_quantile(delta) };
    let above = (u * (z + 0.5 * u)).max(0.0) + 0.1 * u + f64::MIN_POSITIVE;
    let mut epsilon = above;
    for _ in 0..200 {
        let (value, difference) = residual(epsilon, u, delta, difference);
        let next = epsilon + value * difference / mills(epsilon / u + 0.5 * u);
        let step = (next - epsilon).abs();
        epsilon = if next > 0.0 { next } else { 0.5 * epsilon };
        if step <= 1e-9 * epsilon.min(u) {
            break;
        }
    }
    let (_, difference) = log_profile(epsilon, u);
    let slack = profile_error(epsilon, u) * difference / mills(epsilon / u + 0.5 * u);
    let found = (epsilon * (1.0 + 8.0 * f64::EPSILON) + 2.0 * slack).next_up();
    Ok(if found < above || profile_upwards(found, u) <= delta { found } else { above * (1.0 + 1e-9) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sigmas_agree_with_eighty_digit_arithmetic_and_are_never_below() {
        for (epsilon, delta, exact) in [
            (0.0, 1e-5, 39_894.228_039_098_84),
            (1e-6, 1e-30, 9_744_982.959_530_396),
            (0.1, 1e-5, 30.74956613197745),
            (0.5, 1e-5, 7.031_826_675_582_491),
            (1.0, 1e-5, 3.730_631_634_815_942),
            (1.0, 1e-20, 8.838_226_921_980_592),
            (2.0, 1e-6, 2.2304762711864173),
            (10.0, 1e-5, 0.499_888_619_709_008_5),
            (50.0, 1e-10, 0.18029422294241373),
            (100.0, 1e-30, 0.14764248196644436),
        ] {
            let excess = gaussian_sigma(epsilon, delta, 1.0).unwrap() / exact - 1.0;
            assert!((0.0..1e-14).contains(&excess), "epsilon {epsilon}, delta {delta}: relative excess {excess:e}");
        }
    }

    #[test]
    fn mills_ratio_is_known_at_its_seams() {
        // 40-digit arithmetic.
        for (t, exact) in [
            (-3.0, 225.334_896_220_349_12),
            (0.0, 1.253_314_137_315_500_3),
            (1.0, 0.655_679_542_418_798_5),
            (4.999, 0.192_844_070_698_244_9),
            (5.0, 0.192_808_104_715_315_74),
            (30.0, 0.033_296_419_072_497_21),
        ] {
            assert!((mills(t) / exact - 1.0).abs() < 1e-15, "t = {t}: {}", mills(t));
        }
    }

    #[test]
    fn arguments_outside_their_domain_are_refused() {
        for bad in [f64::NAN, f64::INFINITY, -1.0] {
            assert!(gaussian_sigma(bad, 1e-5, 1.0).is_err() && gaussian_sigma(1.0, 1e-5, bad).is_err());
            assert!(gaussian_delta(1.0, bad, 1.0).is_err() && gaussian_epsilon(1e-5, bad, 1.0).is_err());
        }
        for bad in [0.0, 1.0, f64::NAN, -0.1, 1.5] {
            assert!(gaussian_sigma(1.0, bad, 1.0).is_err() && gaussian_epsilon(bad, 1.0, 1.0).is_err());
        }
    }

    proptest! {
        #[test]
        fn sigma_delta_and_epsilon_agree(epsilon in 1e-4f64..60.0, log_delta in -200.0f64..-0.05) {
            let delta = log_delta.exp();
            let sigma = gaussian_sigma(epsilon, delta, 1.0).unwrap();
            let found = profile(epsilon, 1.0 / sigma);
            prop_assert!(found <= delta * (1.0 + profile_error(epsilon, 1.0 / sigma)) && found > delta * (1.0 - 1e-10));
            let back = gaussian_epsilon(delta, sigma, 1.0).unwrap();
            prop_assert!((back / epsilon - 1.0).abs() < 1e-9, "{back} {epsilon}");
        }

        #[test]
        fn a_negative_epsilon_obeys_the_duality(epsilon in 0.0f64..3.0, u in 0.05f64..3.0) {
            let direct = |e: f64| {
                let phi = |x: f64| 0.5 * erfc(-x * FRAC_1_SQRT_2);
                phi(0.5 * u - e / u) - e.exp() * phi(-0.5 * u - e / u)
            };
            prop_assert!((profile(-epsilon, u) - direct(-epsilon)).abs() < 1e-14);
            prop_assert!((profile(epsilon, u) - direct(epsilon)).abs() < 1e-14);
        }
    }
}
