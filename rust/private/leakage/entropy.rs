//! Renyi entropies in bits.
//!
//! H_a = log2(sum_x p_x^a) / (1 - a);  a = 1: -sum_x p_x log2 p_x (Shannon);  a = 0: log2 of the support;  a = inf:
//! -log2 max_x p_x.
//!
//! With t_x = (a - 1) ln p_x the sum is sum_x p_x e^(t_x). Near a = 1, where all t_x are small, its logarithm is taken as
//! log1p(sum_x p_x expm1(t_x)), which loses nothing in the limit; elsewhere the largest exponent is taken out.
//!
//! Source: A. Renyi (1961), On measures of entropy and information.

use crate::{Error, Result};
use std::f64::consts::LN_2;

/// The Renyi entropy of order `alpha` of probabilities that are known to be such, in bits.
///
/// # Errors
/// [`Error::Domain`] unless `alpha` is at least 0.
pub fn renyi_entropy(probabilities: &[f64], alpha: f64) -> Result<f64> {
    Error::require((0.0..=f64::INFINITY).contains(&alpha), "alpha", alpha, "at least 0")?;
    let support = || probabilities.iter().copied().filter(|&p| p > 0.0);
    let nats = if alpha == 0.0 {
        (support().count() as f64).ln()
    } else if alpha == f64::INFINITY {
        -support().fold(0.0, f64::max).ln()
    } else if alpha == 1.0 {
        -support().map(|p| p * p.ln()).sum::<f64>()
    } else {
        let exponent = |p: f64| (alpha - 1.0) * p.ln();
        if support().all(|p| exponent(p).abs() < 0.5) {
            -support().map(|p| p * exponent(p).exp_m1()).sum::<f64>().ln_1p() / (alpha - 1.0)
        } else {
            let powers = || support().map(|p| alpha * p.ln());
            let most = powers().fold(f64::NEG_INFINITY, f64::max);
            (most + powers().map(|power| (power - most).exp()).sum::<f64>().ln()) / (1.0 - alpha)
        }
    };
    // Rounding may leave a zero slightly negative.
    Ok((nats / LN_2).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_orders_are_support_shannon_collision_and_min_entropy() {
        let p = [0.5, 0.25, 0.25, 0.0];
        let entropy = |alpha| renyi_entropy(&p, alpha).unwrap();
        assert!((entropy(0.0) - 3f64.log2()).abs() < 1e-15);
        assert!((entropy(1.0) - 1.5).abs() < 1e-15);
        assert!((entropy(2.0) + 0.375f64.log2()).abs() < 1e-15);
        assert_eq!(entropy(f64::INFINITY), 1.0);
        assert!(renyi_entropy(&p, -1.0).is_err() && renyi_entropy(&p, f64::NAN).is_err());
    }

    #[test]
    fn it_is_continuous_at_one_and_at_infinity() {
        let p = [0.7, 0.2, 0.1];
        let shannon = renyi_entropy(&p, 1.0).unwrap();
        for gap in [1e-4, 1e-8, 1e-12, 1e-15] {
            for alpha in [1.0 - gap, 1.0 + gap] {
                assert!((renyi_entropy(&p, alpha).unwrap() - shannon).abs() < 1.0 * gap + 1e-14);
            }
        }
        let least = renyi_entropy(&p, f64::INFINITY).unwrap();
        assert!((renyi_entropy(&p, 1e12).unwrap() - least).abs() < 1e-11);
    }
}
