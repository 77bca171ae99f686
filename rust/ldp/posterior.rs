//! A posterior in unconstrained coordinates: priors, changes of variables and a likelihood.

use super::{Likelihood, PriorBlock};
use crate::{Error, Result};

/// The unnormalized log density of the parameters given the released values.
#[derive(Clone)]
pub struct Posterior {
    blocks: Vec<PriorBlock>,
    likelihood: Box<dyn Likelihood>,
    natural: Vec<f64>,
    slope: Vec<f64>,
    scratch: Vec<f64>,
}

impl Posterior {
    /// Joins parameters with a likelihood.
    ///
    /// # Errors
    /// [`Error::Shape`] where their numbers of natural parameters differ.
    pub fn new(blocks: Vec<PriorBlock>, likelihood: Box<dyn Likelihood>) -> Result<Self> {
        let naturals: usize = blocks.iter().map(PriorBlock::naturals).sum();
        Error::require_shape("blocks", [likelihood.parameters()], [naturals])?;
        let scratch = vec![0.0; blocks.iter().map(PriorBlock::scratch).sum()];
        let (natural, slope) = (vec![0.0; naturals], vec![0.0; naturals]);
        Ok(Self { blocks, likelihood, natural, slope, scratch })
    }

    /// The number of unconstrained coordinates.
    pub fn dimension(&self) -> usize {
        self.blocks.iter().map(PriorBlock::coordinates).sum()
    }

    /// The number of natural values.
    pub fn naturals(&self) -> usize {
        self.natural.len()
    }

    /// The parameters.
    pub fn blocks(&self) -> &[PriorBlock] {
        &self.blocks
    }

    /// The likelihood by itself.
    pub fn likelihood(&mut self) -> &mut dyn Likelihood {
        &mut *self.likelihood
    }

    /// Writes the natural values at `u`.
    pub fn natural(&mut self, u: &[f64], out: &mut [f64]) {
        let (mut from, mut to, mut scratch) = (0, 0, &mut self.scratch[..]);
        for block in &self.blocks {
            let (n, m) = (block.coordinates(), block.naturals());
            let (own, rest) = scratch.split_at_mut(block.scratch());
            block.natural(&u[from..from + n], &mut out[to..to + m], own);
            (from, to, scratch) = (from + n, to + m, rest);
        }
    }

    /// The coordinates of natural values.
    ///
    /// # Errors
    /// [`Error::Domain`] where they lie outside their domain.
    pub fn coordinates(&self, natural: &[f64]) -> Result<Vec<f64>> {
        let mut u = vec![0.0; self.dimension()];
        let (mut from, mut to) = (0, 0);
        for block in &self.blocks {
            let (n, m) = (block.coordinates(), block.naturals());
            block.coordinates_of(&natural[to..to + m], &mut u[from..from + n])?;
            (from, to) = (from + n, to + m);
        }
        Ok(u)
    }

    /// Where a search may start.
    pub fn start(&self) -> Vec<f64> {
        let mut u = vec![0.0; self.dimension()];
        let mut from = 0;
        for block in &self.blocks {
            let n = block.coordinates();
            block.start(&mut u[from..from + n]);
            from += n;
        }
        u
    }

    /// The log density; where a gradient is given it is overwritten. What is not a number counts as impossible.
    pub fn log_density(&mut self, u: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let (mut natural, mut slope) = (std::mem::take(&mut self.natural), std::mem::take(&mut self.slope));
        self.natural(u, &mut natural);
        let wanted = gradient.is_some();
        let mut value = self.likelihood.value(&natural, wanted.then_some(&mut slope[..]));
        value += self.pull(u, &natural, gradient.map(|gradient| (&slope[..], gradient)));
        (self.natural, self.slope) = (natural, slope);
        if value.is_nan() { f64::NEG_INFINITY } else { value }
    }

    /// The log-likelihood alone; overwrites the gradient with its derivatives.
    pub(crate) fn log_likelihood(&mut self, u: &[f64], gradient: &mut [f64]) -> f64 {
        let (mut natural, mut slope) = (std::mem::take(&mut self.natural), std::mem::take(&mut self.slope));
        self.natural(u, &mut natural);
        let value = self.likelihood.value(&natural, Some(&mut slope));
        // What is pulled back is linear in the likelihood's slope, beside the slope of the priors.
        let mut priors = vec![0.0; u.len()];
        self.pull(u, &natural, Some((&slope, gradient)));
        slope.fill(0.0);
        self.pull(u, &natural, Some((&slope, &mut priors)));
        gradient.iter_mut().zip(&priors).for_each(|(both, priors)| *both -= priors);
        (self.natural, self.slope) = (natural, slope);
        value
    }

    /// The log density of priors and changes of variables; overwrites the gradient with the derivatives of it and of the
    /// likelihood, whose natural derivatives come first.
    fn pull(&mut self, u: &[f64], natural: &[f64], mut slope_and_gradient: Option<(&[f64], &mut [f64])>) -> f64 {
        if let Some((_, gradient)) = &mut slope_and_gradient {
            gradient.fill(0.0);
        }
        let (mut from, mut to, mut scratch, mut value) = (0, 0, &mut self.scratch[..], 0.0);
        for block in &self.blocks {
            let (n, m) = (block.coordinates(), block.naturals());
            let (own, rest) = scratch.split_at_mut(block.scratch());
            let pair = slope_and_gradient
                .as_mut()
                .map(|(slope, gradient)| (&slope[to..to + m], &mut gradient[from..from + n]));
            value += block.pull(&u[from..from + n], &natural[to..to + m], pair, own);
            (from, to, scratch) = (from + n, to + m, rest);
        }
        value
    }

    /// The natural values of rows of coordinates.
    pub fn natural_rows(&mut self, rows: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; rows.len() / self.dimension() * self.naturals()];
        let width = self.naturals();
        for (u, natural) in rows.chunks_exact(self.dimension()).zip(out.chunks_exact_mut(width)) {
            self.natural(u, natural);
        }
        out
    }
}
