//! What several releases promise together, exactly: pure guarantees and Gaussian noise.
//!
//! Every epsilon-private release is a function of randomized response with that epsilon, whose privacy loss is +-epsilon with
//! probability p = e^epsilon / (1 + e^epsilon) of plus. Losses add, Gaussian ratios u^2 = (sensitivity / sigma)^2 add, so
//!
//! delta(epsilon) = sum over signs of P(signs) delta_u(epsilon - loss),   delta_0(x) = max(0, 1 - e^x).
//!
//! Source: P. Kairouz, S. Oh, P. Viswanath (2015), The composition theorem for differential privacy.

use super::calibration::{profile, profile_error};
use crate::{Error, Result};
use libm::{exp, expm1, log1p};

/// More loss values than this are not enumerated.
pub const MOST_LOSSES: usize = 20_000;

/// The law of a total privacy loss, but for its Gaussian part.
#[derive(Clone, Debug)]
pub struct Losses {
    atoms: Vec<(f64, f64)>, // loss and probability
    u: f64,
}

impl Losses {
    /// Pure guarantees, each given as an epsilon and how often, beside Gaussian noise of ratio `u = sensitivity / sigma >= 0`.
    ///
    /// # Errors
    /// [`Error::Domain`] for a negative or infinite number; [`Error::TooLarge`] for more than [`MOST_LOSSES`] different losses.
    pub fn new(pure: &[(f64, u32)], u: f64) -> Result<Self> {
        let all = pure.iter().map(|part| part.0).chain([u]);
        if let Some(bad) = all.into_iter().find(|x| !(*x >= 0.0 && x.is_finite())) {
            return Err(Error::Domain {
                name: "epsilon",
                value: bad.to_string(),
                requirement: "at least 0 and finite",
            });
        }
        let needed = pure.iter().fold(1usize, |n, part| n.saturating_mul(part.1 as usize + 1));
        if needed > MOST_LOSSES {
            let (needed, limit) = (16 * needed as u128, 16 * MOST_LOSSES as u128);
            return Err(Error::TooLarge { what: "the law of the total privacy loss", needed, limit });
        }
        let mut atoms = vec![(0.0, 1.0)];
        for &(epsilon, times) in pure {
            let signs = binomial(epsilon, times);
            atoms = atoms.iter().flat_map(|&(l, p)| signs.iter().map(move |&(m, q)| (l + m, p * q))).collect();
        }
        Ok(Self { atoms, u })
    }

    /// delta at epsilon, rounded upwards.
    pub fn delta(&self, epsilon: f64) -> f64 {
        let mut sum = 0.0;
        for &(loss, probability) in &self.atoms {
            let rest = epsilon - loss;
            sum += probability
                * if self.u > 0.0 {
                    profile(rest, self.u) * (1.0 + profile_error(rest, self.u))
                } else {
                    // A loss of exactly epsilon may come out a rounding below it.
                    (-expm1(rest - 4.0 * f64::EPSILON * (epsilon + loss.abs()))).max(0.0)
                };
        }
        (sum * (1.0 + 1e-14)).min(1.0)
    }

    /// The least epsilon >= 0 with `delta(epsilon) <= delta`, rounded upwards.
    ///
    /// # Errors
    /// [`Error::Domain`] unless `0 <= delta < 1`, and `delta > 0` beside Gaussian noise.
    pub fn epsilon(&self, delta: f64) -> Result<f64> {
        if !((0.0..1.0).contains(&delta) && (delta > 0.0 || self.u == 0.0)) {
            return Err(Error::Domain { name: "delta", value: delta.to_string(), requirement: "in (0, 1)" });
        }
        let largest = self.atoms.iter().fold(0.0, |most: f64, atom| most.max(atom.0));
        let above = match super::calibration::gaussian_epsilon(delta, 1.0, self.u) {
            Ok(gaussian) if self.u > 0.0 => largest + gaussian,
            Err(error) if self.u > 0.0 => return Err(error),
            _ => largest * (1.0 + 8.0 * f64::EPSILON),
        };
        Ok(bisect(0.0, above, |epsilon| self.delta(epsilon) <= delta))
    }
}

/// The losses of one guarantee used several times: (2k - times) epsilon with binomial probability.
fn binomial(epsilon: f64, times: u32) -> Vec<(f64, f64)> {
    let (log_yes, log_no) = (-log1p(exp(-epsilon)), -epsilon - log1p(exp(-epsilon)));
    let mut log_choose = 0.0;
    (0..=times)
        .map(|k| {
            if k > 0 {
                log_choose += libm::log(f64::from(times - k + 1) / f64::from(k));
            }
            let (yes, no) = (f64::from(k), f64::from(times - k));
            ((yes - no) * epsilon, exp(log_choose + yes * log_yes + no * log_no))
        })
        .collect()
}

/// The least point, up to rounding, from which on `holds` is true; it is true at `above`.
fn bisect(mut below: f64, mut above: f64, mut holds: impl FnMut(f64) -> bool) -> f64 {
    if holds(below) {
        return below;
    }
    while above - below > 4.0 * f64::EPSILON * above {
        let middle = 0.5 * (below + above);
        if holds(middle) { above = middle } else { below = middle }
    }
    above
}

/// The least sigma of Gaussian noise that, beside a release of randomized response with `alongside`, is (epsilon, delta)-private.
///
/// # Errors
/// [`Error::Domain`] as for the Gaussian mechanism alone, and unless `0 <= alongside < epsilon`.
pub fn gaussian_sigma_alongside(epsilon: f64, delta: f64, sensitivity: f64, alongside: f64) -> Result<f64> {
    if !(alongside >= 0.0 && alongside < epsilon) {
        let requirement = "at least 0 and below `epsilon`";
        return Err(Error::Domain { name: "alongside", value: alongside.to_string(), requirement });
    }
    // Adding both losses in the worst case is safe; no release beside it is not.
    let enough = super::calibration::gaussian_sigma(epsilon - alongside, delta, 1.0)?;
    let pure = [(alongside, 1)];
    let fits = |sigma: f64| Losses::new(&pure, 1.0 / sigma).is_ok_and(|losses| losses.delta(epsilon) <= delta);
    let found = bisect(0.5 * super::calibration::gaussian_sigma(epsilon, delta, 1.0)?, enough, fits);
    super::calibration::gaussian_sigma(epsilon, delta, sensitivity)?; // checks the sensitivity
    Ok(found * sensitivity * (1.0 + 2.0 * f64::EPSILON))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn randomized_response_beside_gaussian_noise_needs_the_known_sigma() {
        for (epsilon, alongside, exact) in [
            (1.0, 0.5, 6.80765495085),
            (0.5, 0.25, 12.7183232106),
            (2.0, 1.0, 3.65977278798),
            (1.0, 0.25, 4.67280510826),
        ] {
            let sigma = gaussian_sigma_alongside(epsilon, 1e-5, 1.0, alongside).unwrap();
            assert!((sigma / exact - 1.0).abs() < 1e-11, "{sigma}");
        }
        assert!(gaussian_sigma_alongside(1.0, 1e-5, 1.0, 1.0).is_err());
        assert!(gaussian_sigma_alongside(1.0, 1e-5, 1.0, f64::NAN).is_err());
    }

    #[test]
    fn nothing_beside_it_leaves_the_gaussian_calibration() {
        let alone = super::super::calibration::gaussian_sigma(1.0, 1e-5, 2.0).unwrap();
        let beside = gaussian_sigma_alongside(1.0, 1e-5, 2.0, 0.0).unwrap();
        assert!((beside / alone - 1.0).abs() < 1e-12);
    }

    #[test]
    fn pure_guarantees_compose_as_their_binomial_sum() {
        // Two of log 2: losses log 4, 0, -log 4 with probabilities 4/9, 4/9, 1/9; delta(log 2) = 4/9 (1 - 2/4) = 2/9.
        let losses = Losses::new(&[(2f64.ln(), 2)], 0.0).unwrap();
        assert!((losses.delta(2f64.ln()) - 2.0 / 9.0).abs() < 1e-14);
        assert!((losses.delta(0.0) - 1.0 / 3.0).abs() < 1e-14);
        assert!((losses.epsilon(2.0 / 9.0 + 1e-13).unwrap() - 2f64.ln()).abs() < 1e-11);
        assert!((losses.epsilon(0.0).unwrap() - 4f64.ln()).abs() < 1e-14);
        let apart = Losses::new(&[(2f64.ln(), 1), (2f64.ln(), 1)], 0.0).unwrap();
        assert!((apart.delta(0.3) - losses.delta(0.3)).abs() < 1e-15);
    }

    #[test]
    fn too_many_different_losses_are_refused() {
        assert!(matches!(Losses::new(&[(0.1, 1000), (0.2, 1000)], 0.0), Err(Error::TooLarge { .. })));
        assert!(Losses::new(&[(-0.1, 1)], 0.0).is_err() && Losses::new(&[], f64::NAN).is_err());
    }
}
