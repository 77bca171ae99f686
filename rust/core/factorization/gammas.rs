//! Gamma laws of the entries of a factor, and how far they are from their priors.
//!
//! For Gamma(A, B), of rate B: the mean is A / B, E ln entry = psi(A) - ln B, and
//!   KL(Gamma(A, B) || Gamma(a, b)) = (A - a) psi(A) - ln Gamma(A) + ln Gamma(a) + a ln(B / b) + A (b - B) / B.
//! Source: from the density by these two expectations.

use super::factor_matrix::FactorMatrix;

/// Gamma laws of the entries of a factor.
#[derive(Clone, Debug, PartialEq)]
pub struct Gammas {
    /// Shapes.
    pub shape: FactorMatrix,
    /// Rates.
    pub rate: FactorMatrix,
}

impl Gammas {
    /// A matrix of a function of shape and rate, entry by entry.
    pub fn map(&self, of: impl Fn(f64, f64) -> f64) -> FactorMatrix {
        let mut matrix = FactorMatrix::new(self.shape.rows, self.shape.width);
        for row in 0..matrix.rows {
            for k in 0..matrix.width {
                matrix.row_mut(row)[k] = of(self.shape.row(row)[k], self.rate.row(row)[k]);
            }
        }
        matrix
    }

    /// Expectations.
    pub fn means(&self) -> FactorMatrix {
        self.map(|shape, rate| shape / rate)
    }
}

/// KL(Gamma(A, B) || Gamma(a, b)), given psi(A).
pub fn divergence((shape, rate): (f64, f64), digamma: f64, (prior_shape, prior_rate): (f64, f64)) -> f64 {
    (shape - prior_shape) * digamma - libm::lgamma(shape)
        + libm::lgamma(prior_shape)
        + prior_shape * (rate / prior_rate).ln()
        + shape * (prior_rate - rate) / rate
}
