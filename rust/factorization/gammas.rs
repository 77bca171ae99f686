//! Gamma laws of the entries of a factor, and how far they are from their priors.
//!
//! For Gamma(A, B), of rate B: the mean is A / B, E ln entry = psi(A) - ln B, and
//!   KL(Gamma(A, B) || Gamma(a, b)) = (A - a) psi(A) - ln Gamma(A) + ln Gamma(a) + a ln(B / b) + A (b - B) / B.
//! Source: from the density by these two expectations.

use super::factor_matrix::FactorMatrix;
use crate::numeric::dispatch::{Level, at_level};
use crate::numeric::elementary::{exp, ln};
use crate::numeric::special::gamma::{digamma, log_gamma};
use crate::{Error, Result};

/// The prior of a factor: gamma laws of its entries, or Dirichlet laws of its components, each a law over the rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Prior {
    /// Shapes of gamma laws or concentrations of Dirichlet laws, one for all or one per entry.
    pub shape: Vec<f64>,
    /// Rates, one for all or one per entry; none makes Dirichlet laws.
    pub rate: Vec<f64>,
}

impl Prior {
    /// Whether entries of a component add up to one over the rows.
    pub fn is_dirichlet(&self) -> bool {
        self.rate.is_empty()
    }

    /// Shape and rate of an entry. Those of a Dirichlet law are independent gammas of rate one over their sum, whatever the
    /// exposure.
    #[inline]
    pub fn at(&self, entry: usize) -> (f64, f64) {
        let pick = |values: &[f64]| match values {
            [] => 1.0,
            [one] => *one,
            each => each[entry],
        };
        (pick(&self.shape), pick(&self.rate))
    }

    /// Refuses a prior of another number of entries, or one that is not positive.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::Domain`]
    pub fn check(&self, entries: usize) -> Result<()> {
        let given = [("prior_shape", &self.shape), ("prior_rate", &self.rate)];
        for (name, values) in given.into_iter().take(if self.is_dirichlet() { 1 } else { 2 }) {
            if values.len() != 1 && values.len() != entries {
                let (expected, found) = (format_args!("() or ({entries},)"), format_args!("({},)", values.len()));
                return Err(Error::shape(name, expected, found));
            }
            Error::require_all(values, |x| x > 0.0 && x.is_finite(), name, "positive and finite")?;
        }
        Ok(())
    }
}

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

    /// Expectations, digammas of the shapes and exponentials of the expected logarithms, worked out together.
    pub fn expectations(&self, level: Level) -> Expectations {
        let empty = || FactorMatrix::new(self.shape.rows, self.shape.width);
        let mut found = Expectations { means: empty(), digammas: empty(), geometric: empty() };
        at_level!(level, each_entry(self, &mut found));
        found
    }

    /// The sum of [`divergence`] over a row, from an entry on, given the digammas of the shapes.
    pub fn divergence_of_row(
        &self,
        level: Level,
        row: usize,
        from: usize,
        digammas: &FactorMatrix,
        prior: &Prior,
    ) -> f64 {
        let width = self.shape.width;
        let entries = [&self.shape, &self.rate, digammas].map(|matrix| &matrix.row(row)[from..width]);
        let own = |values: &'_ Vec<f64>| if values.len() == 1 { 0..1 } else { row * width + from..(row + 1) * width };
        // Laws given their sum have the rates of their prior, whatever those are.
        let rate = if prior.is_dirichlet() { entries[1] } else { &prior.rate[own(&prior.rate)] };
        let shape = &prior.shape[own(&prior.shape)];
        at_level!(level, divergences(entries, [shape, rate]))
    }
}

/// What an ascent asks of gamma laws.
pub struct Expectations {
    /// E x.
    pub means: FactorMatrix,
    /// psi(A).
    pub digammas: FactorMatrix,
    /// exp E ln x.
    pub geometric: FactorMatrix,
}

#[inline(always)]
fn each_entry(gammas: &Gammas, Expectations { means, digammas, geometric }: &mut Expectations) {
    let laws = gammas.shape.padded().iter().zip(gammas.rate.padded());
    let out = means.padded_mut().iter_mut().zip(digammas.padded_mut()).zip(geometric.padded_mut());
    for ((&shape, &rate), ((mean, psi), geometric)) in laws.zip(out) {
        // What pads a row is zero and stays so.
        let entry = shape > 0.0;
        let (shape, rate) = if entry { (shape, rate) } else { (1.0, 1.0) };
        let expected = digamma(shape);
        *mean = if entry { shape / rate } else { 0.0 };
        *psi = if entry { expected } else { 0.0 };
        *geometric = if entry { exp(expected) / rate } else { 0.0 };
    }
}

/// The sum of [`divergence`]; the prior's shapes and rates are one for all or one each.
#[inline(always)]
fn divergences([shapes, rates, digammas]: [&[f64]; 3], prior: [&[f64]; 2]) -> f64 {
    let mut terms = [0.0; TERMS];
    let mut total = 0.0;
    for start in (0..shapes.len()).step_by(TERMS) {
        let here = start..shapes.len().min(start + TERMS);
        let laws = shapes[here.clone()].iter().zip(&rates[here.clone()]).zip(&digammas[here.clone()]);
        let terms = &mut terms[..here.len()];
        if let [&[shape], &[rate]] = prior {
            for (term, ((&a, &b), &psi)) in terms.iter_mut().zip(laws) {
                *term = divergence((a, b), psi, (shape, rate));
            }
        } else {
            let at = |values: &[f64], i: usize| if let [one] = values { *one } else { values[i] };
            for (i, (term, ((&a, &b), &psi))) in here.zip(terms.iter_mut().zip(laws)) {
                *term = divergence((a, b), psi, (at(prior[0], i), at(prior[1], i)));
            }
        }
        total += terms.iter().sum::<f64>();
    }
    total
}

/// Terms worked out before they are added up in order: vectors make them, and sums take them one by one. Not tuned.
const TERMS: usize = 64;

/// KL(Gamma(A, B) || Gamma(a, b)), given psi(A).
#[inline(always)]
pub fn divergence((shape, rate): (f64, f64), digamma: f64, (prior_shape, prior_rate): (f64, f64)) -> f64 {
    (shape - prior_shape) * digamma - log_gamma(shape)
        + log_gamma(prior_shape)
        + prior_shape * ln(rate / prior_rate)
        + shape * (prior_rate - rate) / rate
}
