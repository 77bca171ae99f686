//! Shares of k categories from users of whom each has a likelihood for every category: any reports, one or many.
//!
//! With w_i(v) = P(all that user i released | category v) up to a factor of the user,
//!   ln L = constant + sum_i n_i ln(w_i.theta),   gradient sum_i n_i w_i / (w_i.theta),
//! for n_i users who released the same. One pass over the rows has both, as a row that was read is used twice.
//!
//! Source: D. Agrawal, C. C. Aggarwal (2001), On the design and quantification of privacy preserving data mining algorithms,
//! equation 4: shares enter by the mixture alone.

use super::Likelihood;
use super::matrix::add_multiple;
use crate::numeric::dispatch::{at_level, level};
use crate::{Error, Result};
use std::sync::Arc;

/// Sums that run beside each other.
const LANES: usize = 8;

/// Likelihoods of users by category, with counts.
#[derive(Clone, Debug)]
pub struct Mixture {
    categories: usize,
    /// Row by row: of each kind of user the likelihoods, of which the largest is 1.
    weights: Arc<Vec<f64>>,
    counts: Arc<Vec<f64>>,
    constant: f64,
}

impl Mixture {
    /// From rows of likelihoods divided by their largest, how many users have each, and the sum of the logarithms of what they were
    /// divided by.
    ///
    /// # Errors
    /// [`Error::Domain`] unless rows are between 0 and 1 and have a 1, counts are at least 0, and the constant is finite;
    /// [`Error::Shape`].
    pub fn new(categories: usize, weights: Vec<f64>, counts: Vec<f64>, constant: f64) -> Result<Self> {
        Error::require_shape("weights", [counts.len(), categories], [weights.len()])?;
        Error::require_all(&weights, |weight| (0.0..=1.0).contains(&weight), "weights", "between 0 and 1")?;
        Error::require_all(&counts, |count| (0.0..f64::INFINITY).contains(&count), "counts", "at least 0")?;
        let with_one = |row: &[f64]| row.contains(&1.0);
        let all = weights.chunks_exact(categories.max(1)).all(with_one);
        Error::require(all, "weights", "a row without", "rows whose largest is 1")?;
        Error::require(constant.is_finite(), "constant", constant, "finite")?;
        Ok(Self { categories, weights: Arc::new(weights), counts: Arc::new(counts), constant })
    }
}

/// The product of two vectors, in lanes.
#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
    ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7])) + rest
}

impl Likelihood for Mixture {
    fn value(&mut self, natural: &[f64], mut gradient: Option<&mut [f64]>) -> f64 {
        if let Some(gradient) = gradient.as_deref_mut() {
            gradient.fill(0.0);
        }
        at_level!(level(), {
            let mut total = self.constant;
            for (row, &count) in self.weights.chunks_exact(self.categories).zip(self.counts.iter()) {
                let mixed = dot(row, natural);
                total += count * mixed.ln();
                if let Some(gradient) = gradient.as_deref_mut() {
                    add_multiple(gradient, count / mixed, row);
                }
            }
            total
        })
    }

    fn parameters(&self) -> usize {
        self.categories
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gradient_is_that_of_the_value() {
        let weights = vec![1.0, 0.25, 0.5, 0.0, 1.0, 0.125, 0.75, 0.5, 1.0];
        let mut mixture = Mixture::new(3, weights, vec![4.0, 0.0, 7.0], -2.5).unwrap();
        let (theta, mut gradient) = ([0.5, 0.3, 0.2], [f64::NAN; 3]);
        let value = mixture.value(&theta, Some(&mut gradient));
        let by_hand = -2.5 + 4.0 * (0.5 + 0.075 + 0.1f64).ln() + 7.0 * (0.375 + 0.15 + 0.2f64).ln();
        assert!((value - by_hand).abs() < 1e-13);
        for k in 0..3 {
            let (step, mut beside) = (1e-6, [theta; 2]);
            beside[0][k] -= step;
            beside[1][k] += step;
            let slope = (mixture.value(&beside[1], None) - mixture.value(&beside[0], None)) / (2.0 * step);
            assert!((slope - gradient[k]).abs() < 1e-7, "{k}");
        }
    }

    #[test]
    fn rows_that_no_users_have_are_refused() {
        for (weights, count, constant) in
            [([0.5, 0.5], 1.0, 0.0), ([1.0, 1.5], 1.0, 0.0), ([1.0, -0.5], 1.0, 0.0), ([1.0, f64::NAN], 1.0, 0.0)]
                .into_iter()
                .chain([([1.0, 0.5], -1.0, 0.0), ([1.0, 0.5], 1.0, f64::NEG_INFINITY)])
        {
            assert!(Mixture::new(2, weights.to_vec(), vec![count], constant).is_err());
        }
        assert!(Mixture::new(2, vec![1.0], vec![1.0], 0.0).is_err());
    }
}
