//! Noise-aware Bayesian inference under local differential privacy: each user releases a noisy value, the analyst knows the
//! noise and infers the parameters with the true values integrated out.
//!
//! A [`Likelihood`] is a function of natural parameters, a [`Posterior`] joins it with priors in unconstrained coordinates.
//! One or two coordinates are integrated by [`quadrature`]; more are sampled by [`nuts`].

pub mod cells;
pub mod clipped;
pub mod compressed;
mod condensed;
pub mod discrete;
pub mod exponential;
pub mod gaussian;
pub mod histogram;
pub mod linear;
pub mod logistic;
pub mod matrix;
pub mod mixture;
pub mod nuts;
pub mod panels;
pub mod parameters;
mod pooling;
pub mod population;
pub mod posterior;
pub mod quadrature;
mod simplex;
pub mod sums;
pub mod tractable;
pub mod vectors;
pub mod whiten;

pub(crate) use quincunx_shared::{Error, Result, monitor, numeric, parallel, stream};

pub use parameters::{PriorBlock, ScalarPrior, Support};
pub use posterior::Posterior;

/// The logarithm of the probability of all released values given natural parameters.
///
/// Scratch memory belongs to the value, so that nothing is allocated per call; data are shared between copies.
pub trait Likelihood: Copies + Send + Sync {
    /// The value; where a gradient is given it is overwritten with the derivatives in the natural parameters.
    fn value(&mut self, natural: &[f64], gradient: Option<&mut [f64]>) -> f64;

    /// The number of natural parameters.
    fn parameters(&self) -> usize;
}

/// What can be copied behind a pointer: every likelihood that can be copied at all.
pub trait Copies {
    /// A copy for another chain.
    fn boxed(&self) -> Box<dyn Likelihood>;
}

impl<L: Likelihood + Clone + 'static> Copies for L {
    fn boxed(&self) -> Box<dyn Likelihood> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Likelihood> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

/// The sum of independent parts: users with different mechanisms, each group compressed by itself.
#[derive(Clone)]
pub struct SummedLikelihood {
    parts: Vec<Box<dyn Likelihood>>,
    parameters: usize,
    part: Vec<f64>,
}

impl SummedLikelihood {
    /// The sum of parts with the same number of parameters.
    pub fn new(parts: Vec<Box<dyn Likelihood>>, parameters: usize) -> Self {
        Self { parts, parameters, part: vec![0.0; parameters] }
    }
}

impl Likelihood for SummedLikelihood {
    fn value(&mut self, natural: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let Some(gradient) = gradient else {
            return self.parts.iter_mut().map(|part| part.value(natural, None)).sum();
        };
        gradient.fill(0.0);
        let mut total = 0.0;
        for part in &mut self.parts {
            total += part.value(natural, Some(&mut self.part));
            for (sum, term) in gradient.iter_mut().zip(&self.part) {
                *sum += term;
            }
        }
        total
    }

    fn parameters(&self) -> usize {
        self.parameters
    }
}
