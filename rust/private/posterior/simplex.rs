//! Draws of a Dirichlet vector trimmed to {theta_k >= w}, on a lattice: exactly the law of the doubles that describe it.
//!
//! theta_k = w + (1 - K w) j_k / N with j_k >= 0 and sum j_k = N;   P(j) proportional to prod_k theta_k^(alpha_k - 1).
//!
//! The lattice is a prior of its own, so the bound by the range holds. Partial sums over the first k categories are convolutions; a
//! vector is drawn from the last category to the first, each coordinate by an exact choice among at most N + 1 weights
//! ([`crate::privacy::choice`]): the work depends on the vector drawn alone. The weights are exponentials of doubles, so what is drawn
//! differs from the law above by a factor within exp(+-[`log_error`]), which the caller adds to its epsilon twice.
//!
//! Source: derived here; the bound by the range: Z. Zhang (2017), doctoral thesis, theorem 3.5.1, sharpened.

use crate::memory::reserved;
use crate::monitor::Monitor;
use crate::numeric::dispatch::{at_level, level};
use crate::numeric::elementary::ln_normal;
use crate::privacy::choice::{Choice, Doubles, weigh};
use crate::privacy::source::Source;
use crate::{Error, Result};

/// The largest N: to make a law takes N^2 / 2 exponentials for each category but two, and to keep it 16 N bytes for each.
pub const MAX_RESOLUTION: usize = 1 << 12;

/// A trimmed Dirichlet law on a lattice.
#[derive(Clone, Debug)]
pub struct TrimmedDirichlet {
    trim: f64,
    values: Vec<f64>,       // theta at j = 0..=N
    terms: Vec<Vec<f64>>,   // (alpha_k - 1) ln theta(j)
    partial: Vec<Vec<f64>>, // ln of the sums over the first k + 1 categories
}

/// A bound of the absolute error of the logarithm of the probability of a vector, for counts of this total.
pub fn log_error(total: f64, categories: usize, trim: f64, resolution: usize) -> f64 {
    let (k, n) = (categories as f64, resolution as f64);
    let size = (total + k) * -libm::log(trim) + k * libm::log(n + 1.0);
    // Each of K levels: the terms, their sums (of up to N + 1 positive numbers), the differences handed to the choice.
    k * f64::EPSILON * (12.0 * size + 2.0 * n + 100.0)
}

impl TrimmedDirichlet {
    /// The law of parameters `alphas`, at least two.
    ///
    /// # Errors
    /// [`Error::Domain`] unless `0 < trim < 1/K`, the parameters are positive and finite and the resolution is in 1..=2^12.
    pub fn new(alphas: &[f64], trim: f64, resolution: usize) -> Result<Self> {
        let categories = alphas.len();
        Error::require(trim > 0.0 && trim * (categories as f64) < 1.0, "trim", trim, "in (0, 1/K)")?;
        Error::require_all(alphas, |alpha| alpha > 0.0 && alpha.is_finite(), "alphas", "positive and finite")?;
        let sound = categories >= 2 && (1..=MAX_RESOLUTION).contains(&resolution);
        let requirement = "two or more parameters, on a lattice of 1 to 2^12 steps";
        Error::require(sound, "alphas", format_args!("{categories}, {resolution}"), requirement)?;
        let room = 1.0 - categories as f64 * trim;
        let values: Vec<f64> = (0..=resolution).map(|j| trim + room * (j as f64 / resolution as f64)).collect();
        let logs: Vec<f64> = values.iter().map(|&value| libm::log(value)).collect();
        let terms: Vec<Vec<f64>> =
            alphas.iter().map(|alpha| logs.iter().map(|log| (alpha - 1.0) * log).collect()).collect();
        let mut partial = vec![terms[0].clone()];
        let mut scratch = vec![0.0; resolution + 1];
        for term in &terms[1..categories - 1] {
            let turned: Vec<f64> = partial[partial.len() - 1].iter().rev().copied().collect();
            let sums = (0..=resolution).map(|s| log_sum(&turned[resolution - s..], &term[..=s], &mut scratch[..=s]));
            partial.push(sums.collect());
        }
        Ok(Self { trim, values, terms, partial })
    }

    /// Draws vectors, one after another.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if they do not fit the memory; whatever the monitor returned.
    pub fn draw_many(&self, size: usize, source: &mut impl Source, monitor: &mut dyn Monitor) -> Result<Vec<f64>> {
        let width = self.terms.len();
        let mut vectors = reserved(size as u128 * width as u128, "the draws")?;
        vectors.resize(size * width, 0.0);
        for (i, vector) in vectors.chunks_exact_mut(width).enumerate() {
            if i % 256 == 255 {
                monitor.tick(i as u64, size as u64)?;
            }
            self.draw(vector, source)?;
        }
        Ok(vectors)
    }

    /// Draws one vector.
    ///
    /// # Errors
    /// None for a law that was made.
    pub fn draw(&self, vector: &mut [f64], source: &mut impl Source) -> Result<()> {
        let mut left = self.values.len() - 1;
        for k in (1..self.terms.len()).rev() {
            let before = &self.partial[k - 1];
            let logs = (0..=left).map(|j| self.terms[k][j] + before[left - j]);
            let most = logs.clone().fold(f64::NEG_INFINITY, f64::max);
            let choice = Choice::new(Doubles(logs.map(|log| most - log).collect()))?;
            let j = choice.draw(source);
            vector[k] = self.values[j];
            left -= j;
        }
        vector[0] = self.values[left];
        debug_assert!(vector.iter().all(|&value| value >= self.trim));
        Ok(())
    }
}

/// ln sum_j exp(a(j) + b(j)), by the same instructions for any numbers.
fn log_sum(a: &[f64], b: &[f64], scratch: &mut [f64]) -> f64 {
    at_level!(level(), {
        let mut least = f64::INFINITY;
        for ((gap, a), b) in scratch.iter_mut().zip(a).zip(b) {
            *gap = -(a + b);
            least = if *gap < least { *gap } else { least };
        }
        weigh(scratch, least);
        let (blocks, rest) = scratch.as_chunks::<8>();
        let mut lanes = [0.0; 8];
        for block in blocks {
            lanes.iter_mut().zip(block).for_each(|(sum, weight)| *sum += weight);
        }
        ln_normal(lanes.iter().chain(rest).sum()) - least
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::source::Generator;

    #[test]
    fn three_categories_have_the_enumerated_law() {
        let (alphas, trim, n) = ([2.5, 1.0, 6.0], 0.1, 6);
        let law = TrimmedDirichlet::new(&alphas, trim, n).unwrap();
        let theta = |j: usize| trim + (1.0 - 3.0 * trim) * j as f64 / n as f64;
        let mut mass = vec![];
        for i in 0..=n {
            for j in 0..=n - i {
                let parts = [i, j, n - i - j];
                mass.push((parts, parts.iter().zip(alphas).map(|(&p, a)| theta(p).powf(a - 1.0)).product::<f64>()));
            }
        }
        let whole: f64 = mass.iter().map(|(_, m)| m).sum();
        let mut source = Generator::insecure([8, 8]);
        let draws = 100_000;
        let mut counts = vec![0.0; mass.len()];
        let mut vector = [0.0; 3];
        for _ in 0..draws {
            law.draw(&mut vector, &mut source).unwrap();
            assert!((vector.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            let parts = vector.map(|v| ((v - trim) / (1.0 - 3.0 * trim) * n as f64).round() as usize);
            counts[mass.iter().position(|(p, _)| *p == parts).unwrap()] += 1.0;
        }
        for ((parts, m), count) in mass.iter().zip(counts) {
            let mean = f64::from(draws) * m / whole;
            assert!((count - mean).abs() < 5.5 * mean.sqrt() + 1.0, "{parts:?}: {count} against {mean}");
        }
    }

    #[test]
    fn sums_of_exponentials_are_those_of_the_library() {
        let a: Vec<f64> = (0..200).map(|i| -0.02 * f64::from(i * i)).collect();
        let b: Vec<f64> = (0..200).map(|i| 40.0 * f64::from(i).sin()).collect();
        for s in 0..200 {
            let exact = (0..=s).map(|j| (a[j] + b[j]).exp()).sum::<f64>().ln();
            let found = log_sum(&a[..=s], &b[..=s], &mut vec![0.0; s + 1]);
            assert!((found - exact).abs() < 1e-14 * (1.0 + exact.abs()), "{s}: {found} {exact}");
        }
    }

    #[test]
    fn what_is_no_law_is_refused() {
        for trim in [0.0, 1.0 / 3.0, -0.1, f64::NAN] {
            assert!(TrimmedDirichlet::new(&[1.0; 3], trim, 16).is_err());
        }
        assert!(TrimmedDirichlet::new(&[1.0], 0.1, 16).is_err());
        assert!(TrimmedDirichlet::new(&[1.0, 0.0], 0.1, 16).is_err());
        assert!(TrimmedDirichlet::new(&[1.0, 1.0], 0.1, 0).is_err());
        assert!(log_error(1e6, 5, 0.01, 512) < 1e-7);
    }
}
