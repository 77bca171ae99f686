//! The profile of discrete Gaussian noise, P(y) proportional to exp(-y^2 / (2 variance)) on the integers, shifted by a whole D:
//!
//! delta(epsilon) = sum over y above the limit of P(y) (1 - e^(epsilon - loss(y))),   loss(y) = (2 y D + D^2) / (2 variance),
//! limit = epsilon variance / D - D/2.
//!
//! All terms are positive, so nothing cancels. Source: Canonne, Kamath, Steinke (2020), theorem 7, whose two tails do.

use super::ULP;
use super::calibration::check_epsilon;
use crate::{Error, Result};
use libm::{exp, expm1, sqrt};

/// The delta of discrete Gaussian noise on an integer of this sensitivity, rounded upwards.
///
/// An exponent e^-x errs by |x| times four half-ulps: at most 2 (scale + 800) ulps here. A loss near epsilon errs by three
/// roundings of both; four ulps are added to it. The sum stops 40 deviations beyond its first terms, where each term is below a
/// half of the one before, and what follows is below the last one; the normalizer without its tail is too small, which is safe.
///
/// # Errors
/// [`crate::Error::Domain`] unless epsilon is at least 0 and finite, `1e-3 < variance <= 1e10` and `1 <= sensitivity <= 2^40`.
pub fn discrete_gaussian_delta(epsilon: f64, variance: f64, sensitivity: u64) -> Result<f64> {
    check_epsilon(epsilon)?;
    Error::require(variance > 1e-3 && variance <= 1e10, "variance", variance, "above 1e-3 and at most 1e10")?;
    let shift = sensitivity as f64;
    Error::require((1..=1 << 40).contains(&sensitivity), "sensitivity", shift, "between 1 and 2^40")?;
    let reach = (40.0 * sqrt(variance)).ceil() + 1.0;
    let log_mass = |y: f64| -y * y / (2.0 * variance);
    let whole = 1.0 + 2.0 * (1..=reach as u64).map(|y| exp(log_mass(y as f64))).sum::<f64>();
    let limit = epsilon * variance / shift - 0.5 * shift;
    // A rounding below the limit: terms there are none or vanish.
    let first = (limit - 8.0 * ULP * (limit.abs() + shift)).max(-reach).floor();
    let scale = log_mass(first.max(0.0));
    let (mut sum, mut last, mut y) = (0.0, 0.0, first);
    while y <= first.max(0.0) + reach {
        let loss = (2.0 * y + shift) * shift / (2.0 * variance);
        last = exp(log_mass(y) - scale);
        sum += last * -expm1((epsilon - loss - 4.0 * ULP * (epsilon + loss.abs())).min(0.0));
        y += 1.0;
    }
    sum += last;
    let low_tail = if first <= -reach { 2.0 * exp(log_mass(reach)) } else { 0.0 };
    let margin = 1.0 + ULP * (4e3 + 4.0 * scale.abs() + 2.0 * reach);
    Ok(((exp(scale) * sum / whole + low_tail) * margin).next_up().clamp(f64::from_bits(1), 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_discrete_profile_is_the_sum_over_all_outcomes() {
        for (epsilon, variance, shift) in
            [(0.0f64, 1.0f64, 1), (0.5, 0.3, 1), (1.0, 9.0, 3), (0.1, 400.0, 2), (3.0, 2.5, 5)]
        {
            let mass = |y: i64| (-((y * y) as f64) / (2.0 * variance)).exp();
            let whole: f64 = (-900..=900).map(mass).sum();
            let excess = |y: i64| (mass(y) - epsilon.exp() * mass(y + shift)).max(0.0);
            let exact = (-900..=900).map(excess).sum::<f64>() / whole;
            let found = discrete_gaussian_delta(epsilon, variance, shift as u64).unwrap();
            assert!(found >= exact * (1.0 - 1e-13) && found <= exact * (1.0 + 1e-10), "{found} {exact}");
        }
        assert!(discrete_gaussian_delta(1.0, 0.0, 1).is_err() && discrete_gaussian_delta(1.0, f64::NAN, 1).is_err());
        assert!(discrete_gaussian_delta(1.0, 1.0, 0).is_err() && discrete_gaussian_delta(-1.0, 1.0, 1).is_err());
    }

    #[test]
    fn known_deltas_are_attained_and_never_missed() {
        let v = 7455117.0 / 1048576.0;
        for (variance, shift, epsilon, exact) in [
            (16.0, 1, 1.0, 3.0554546492668226426e-6),
            (v, 1, 2.0, 9.9999887839348193947e-9),
            (v, 2, 4.0, 3.9750032331136896223e-8),
            (v, 10, 20.0, 1.2276014924857678124e-4),
            (0.3, 2, 20.0 / 3.0, 0.13758499750378490488),
        ] {
            let found = discrete_gaussian_delta(epsilon, variance, shift).unwrap();
            assert!((0.0..1e-11).contains(&(found / exact - 1.0)), "{found} {exact}");
        }
    }
}
