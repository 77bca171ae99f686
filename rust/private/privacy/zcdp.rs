//! From zero-concentrated privacy to (epsilon, delta): the least over orders a > 1 of
//!
//! B(rho; epsilon) = exp((a - 1)(a rho - epsilon)) (1 - 1/a)^a / (a - 1).
//!
//! Every order gives a valid bound, so the search needs no proof; only the value at the order found is rounded upwards, by eight
//! ulps of the sum of the absolute values of its terms. The search goes in t = ln(a - 1), so that no order is too near to one.
//! Source: C. Canonne, G. Kamath, T. Steinke (2020), The discrete Gaussian for differential privacy, corollary 13.

use super::ULP;
use crate::{Error, Result};
use libm::{exp, log, log1p};

/// The place where a function of t is least, about: the best of a grid, then a golden section.
fn minimize(function: impl Fn(f64) -> f64) -> f64 {
    /// `(sqrt(5) - 1) / 2`.
    const GOLDEN: f64 = 0.618_033_988_749_894_8;
    let place = |i: i32| f64::from(i);
    let value = |i: i32| function(place(i));
    let best = (-40..=345).step_by(5).min_by(|&i, &j| value(i).total_cmp(&value(j))).unwrap_or(0);
    let (mut below, mut above) = (place(best) - 5.0, place(best) + 5.0);
    let (mut left, mut right) = (above - GOLDEN * (above - below), below + GOLDEN * (above - below));
    let (mut at_left, mut at_right) = (function(left), function(right));
    for _ in 0..45 {
        if at_left < at_right {
            (above, right, at_right) = (right, left, at_left);
            left = above - GOLDEN * (above - below);
            at_left = function(left);
        } else {
            (below, left, at_left) = (left, right, at_right);
            right = below + GOLDEN * (above - below);
            at_right = function(right);
        }
    }
    0.5 * (below + above)
}

/// a - 1, a, ln a and ln(1 - 1/a) of t = ln(a - 1).
fn orders(t: f64) -> (f64, f64, f64, f64) {
    let less = exp(t);
    let log_order = if t > 0.0 { t + log1p(exp(-t)) } else { log1p(less) };
    let rest = if t > 0.0 { -log1p(exp(-t)) } else { t - log_order };
    (less, 1.0 + less, log_order, rest)
}

/// The least sum of the terms of an order, about, raised by what its rounding may have taken.
fn least(terms: impl Fn(f64) -> [f64; 4]) -> f64 {
    let best = terms(minimize(|t| terms(t).iter().sum()));
    let (sum, size) = (best.iter().sum::<f64>(), best.iter().map(|term| term.abs()).sum::<f64>());
    sum + 8.0 * ULP * size
}

/// A delta at epsilon, rounded upwards.
///
/// # Errors
/// [`Error::Domain`] unless both are at least 0 and finite.
pub fn zcdp_delta(rho: f64, epsilon: f64) -> Result<f64> {
    Error::require(rho >= 0.0 && rho.is_finite(), "rho", rho, "within its domain")?;
    Error::require(epsilon >= 0.0 && epsilon.is_finite(), "epsilon", epsilon, "within its domain")?;
    if rho == 0.0 {
        return Ok(0.0);
    }
    let terms = |t: f64| {
        let (less, order, log_order, rest) = orders(t);
        [less * order * rho, less * rest, -less * epsilon, -log_order]
    };
    Ok(exp(least(terms).min(0.0)).next_up().clamp(f64::from_bits(1), 1.0))
}

/// An epsilon at delta, rounded upwards.
///
/// # Errors
/// [`Error::Domain`] unless rho is at least 0 and finite and delta in (0, 1).
pub fn zcdp_epsilon(rho: f64, delta: f64) -> Result<f64> {
    Error::require(rho >= 0.0 && rho.is_finite(), "rho", rho, "within its domain")?;
    Error::require(delta > 0.0 && delta < 1.0, "delta", delta, "within its domain")?;
    if rho == 0.0 {
        return Ok(0.0);
    }
    let log_delta = log(delta);
    let terms = |t: f64| {
        let (less, order, log_order, rest) = orders(t);
        [rho * order, rest, -log_order / less, -log_delta / less]
    };
    Ok(least(terms).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_have_the_known_values_and_are_never_below() {
        let epsilon = zcdp_epsilon(0.125, 1e-6).unwrap();
        assert!((0.0..1e-12).contains(&(epsilon / 2.4190931768671950708 - 1.0)), "{epsilon}");
        let delta = zcdp_delta(0.125, 2.0).unwrap();
        assert!((0.0..1e-12).contains(&(delta / 3.9485085566836721595e-5 - 1.0)), "{delta}");
        let delta = zcdp_delta(0.016207616162090441187, 0.3).unwrap();
        assert!((delta / 0.01 - 1.0).abs() < 1e-12, "{delta}");
    }

    #[test]
    fn extreme_figures_stay_bounds() {
        assert_eq!((zcdp_delta(0.0, 1.0).unwrap(), zcdp_epsilon(0.0, 0.1).unwrap()), (0.0, 0.0));
        assert!(zcdp_delta(1e-300, 1.0).unwrap() > 0.0 && zcdp_epsilon(1e-300, 1e-6).unwrap() < 1e-100);
        assert!(zcdp_delta(1e300, 1.0).unwrap() == 1.0 && zcdp_epsilon(1e300, 1e-6).unwrap() >= 1e300);
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(zcdp_delta(bad, 1.0).is_err() && zcdp_delta(1.0, bad).is_err() && zcdp_epsilon(bad, 0.1).is_err());
        }
        assert!(zcdp_epsilon(1.0, 0.0).is_err() && zcdp_epsilon(1.0, 1.0).is_err());
    }
}
