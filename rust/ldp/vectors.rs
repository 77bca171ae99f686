//! Vectors released with normal noise, or without: x ~ N(mu, S), z | x ~ N(x, noise).
//!
//! The mean m of the released z and their scatter W about it are sufficient: with K = S + noise,
//!   ln L = -N/2 ln det(2 pi K) - tr(K^-1 M)/2,   M = W + N (m - mu)(m - mu)',
//! of which the derivative by mu is N K^-1 (m - mu) and that by S is (K^-1 M K^-1 - N K^-1)/2. Natural parameters: mu, S row
//! by row.
//!
//! Source: T. W. Anderson (2003), An introduction to multivariate statistical analysis, section 3.2.

use super::Likelihood;
use super::linear::Scattered;
use super::matrix::dot;
use crate::{Error, Result};

/// Vectors, by their mean and their scatter about it.
#[derive(Clone, Debug)]
pub struct Vectors {
    users: f64,
    mean: Vec<f64>,
    scatter: Vec<f64>,
    noise: Vec<f64>,
    /// m - mu, and M.
    apart: Vec<f64>,
    about: Vec<f64>,
    law: Scattered,
}

impl Vectors {
    /// From the mean of what was released, the scatter matrix about it, and the variances of the noise on each coordinate.
    ///
    /// # Errors
    /// [`Error::Shape`].
    pub fn new(mean: Vec<f64>, scatter: Vec<f64>, users: f64, noise: Vec<f64>) -> Result<Self> {
        let d = noise.len();
        Error::require_shape("mean", [d], [mean.len()])?;
        Error::require_shape("scatter", [d, d], [scatter.len()])?;
        let (apart, about) = (vec![0.0; d], vec![0.0; d * d]);
        Ok(Self { users, mean, scatter, noise, apart, about, law: Scattered::new(d, users) })
    }
}

impl Likelihood for Vectors {
    fn value(&mut self, natural: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let d = self.noise.len();
        let (mu, s) = natural.split_at(d);
        for ((apart, mean), mu) in self.apart.iter_mut().zip(&self.mean).zip(mu) {
            *apart = mean - mu;
        }
        for i in 0..d {
            for j in 0..d {
                self.about[i * d + j] = self.scatter[i * d + j] + self.users * self.apart[i] * self.apart[j];
            }
        }
        self.law.k.copy_from_slice(s);
        let value = self.law.value(&self.noise, &self.about, gradient.is_some());
        if let Some(gradient) = gradient {
            let (by_mu, by_s) = gradient.split_at_mut(d);
            for (by_mu, row) in by_mu.iter_mut().zip(self.law.inverse.chunks_exact(d)) {
                *by_mu = self.users * dot(row, &self.apart);
            }
            by_s.copy_from_slice(&self.law.g);
        }
        value
    }

    fn parameters(&self) -> usize {
        let d = self.noise.len();
        d + d * d
    }
}
