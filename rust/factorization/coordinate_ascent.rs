//! Variational inference by coordinate ascent: gamma factors with expectations in place of draws.
//!
//! With q(entry) = Gamma(A, B) and g = exp(E ln entry) = exp(psi(A)) / B, the optimal q of the counts of a cell has the law
//! the Gibbs sampler draws from, at the rate G = sum_k prod g: a sum of geometric means. So
//!   E[y_k] = W prod g,  W = E[y | o, G] / G,      A = shape + sum E[y_k],  B = rate + exposure at the means.
//! For a factor of Dirichlet laws q(component) = Dirichlet(concentration + sum E[y_k]), see [`super::dirichlet`]; the counts of
//! cells held out are then variables too, with E[y_k] = prod g and the bound's part G - E[mu].
//! Every step maximizes the evidence lower bound over one block, which therefore never falls:
//!   sum_cells ln sum_y G^y / y! alpha^|o-y| + n ln((1-alpha)/(1+alpha)) - sum_cells E[mu] - sum_entries KL.
//!
//! Where counts are overdispersed, q of a cell holds its count and its multiplier together; factors are exposed to expected
//! multipliers, and the shapes r are points that maximize the bound given the law of the multipliers.
//!
//! [`Augmentation`] holds the alternatives of the literature, with q of the rates of the noise besides. `Published` is the
//! printed algorithm: its Bessel argument uses G[l+ + mu] by the delta method and is too large (the normalizers of binomial
//! and multinomial depend on m), so it is no coordinate ascent and its bound can fall.
//! Source: variational paper of A. Schein et al.; corrections derived in `docs/mathematics/factorization.md`.

pub use super::gammas::Gammas;
pub use super::published::{Augmentation, NoiseCounts};

use super::dirichlet;
use super::dispersion::Dispersion;
use super::factor_matrix::{FactorMatrix, ROWS, sums_of_shards, unpadded};
use super::gammas::{Expectations, Prior};
use super::hyperpriors::{self, PRIOR_SUMS, Rates};
use super::model::{Model, Sizes};
use super::pass::{PassInput, PassOutput, Sums, add_fixed, exposures, part_of_exposures};
use super::published::moments;
use super::released_counts::{Facts, ReleasedCounts};
use crate::monitor::{Monitor, Progress};
use crate::numeric::dispatch::level;
use crate::numeric::exact_sum::{self, LIMBS};
use crate::{Error, Result, memory, parallel};
use std::ops::Range;
use std::sync::Arc;

/// Shape of the factors a fit starts from, of Dirichlet laws in the mean: their logarithms vary little.
const START_SHAPE: f64 = 5.0;

/// A fit: data, laws of the factors and how far it is.
#[derive(Clone, Debug)]
pub struct CoordinateAscent {
    table: Arc<ReleasedCounts>,
    model: Model,
    factors: Vec<Gammas>,
    means: Vec<FactorMatrix>,
    geometric: Vec<FactorMatrix>,
    digammas: Vec<FactorMatrix>,
    fixed: Vec<bool>,
    augmentation: Augmentation,
    dispersion: Option<Dispersion>,
    /// The factors whose priors are learnt, and what has a rate of its own.
    learnt: (Vec<usize>, Rates),
    /// Expected noise by the augmentation; of overdispersed counts E e and E e - E ln e of their multipliers.
    noise: Vec<NoiseCounts>,
    bounds: Vec<f64>,
    iteration: usize,
}

/// Bytes for each entry of a factor: shapes, rates, three expectations, what an iteration keeps of the last, and its sums.
const FACTORS: u128 = 8 * 14;
/// Bytes for the noise of a cell: now, in the last iteration and in the next.
const NOISE: u128 = 3 * 16;

/// The law of a factor that an ascent starts from, of these means.
fn start((means, prior): (FactorMatrix, &Prior)) -> Gammas {
    let mut found = Gammas { shape: means.clone(), rate: means };
    let rows = found.shape.rows as f64;
    for row in 0..found.shape.rows {
        for k in 0..found.shape.width {
            let mean = found.shape.row(row)[k];
            let shape = if prior.is_dirichlet() { START_SHAPE * rows * mean } else { START_SHAPE };
            (found.shape.row_mut(row)[k], found.rate.row_mut(row)[k]) = (shape, shape / mean);
        }
    }
    found
}

impl CoordinateAscent {
    /// A fit that starts from nearly even factors.
    ///
    /// # Errors
    /// As [`Model::new`]; [`Error::Domain`] for the printed algorithm with Dirichlet laws, for which it was not printed.
    pub fn new(
        table: Arc<ReleasedCounts>,
        sizes: Sizes<'_>,
        priors: Vec<Prior>,
        augmentation: Augmentation,
        key: [u64; 2],
        fixed: Vec<bool>,
    ) -> Result<Self> {
        let model = Model::new(sizes, priors, &table)?;
        let own = |factor| !model.structure().is_redrawn_together(model.layout(), factor);
        let all_own = (0..model.shapes().len()).all(own);
        Error::require(all_own, "model", "dynamics", "of factors with conditionals of their own")?;
        let cells = if augmentation == Augmentation::Collapsed { 0 } else { table.rows() * table.cols() };
        memory::charge("an ascent with so many components", FACTORS * model.padded_entries() + NOISE * cells as u128)?;
        let printed = augmentation != Augmentation::Published || !model.priors().iter().any(Prior::is_dirichlet);
        Error::require(printed, "method", "published", "another one where components have Dirichlet laws")?;
        let table = model.without_rateless_cells(table);
        let factors: Vec<_> = model.start(&table.facts(), 0, key).into_iter().zip(model.priors()).map(start).collect();
        model.check_fixed(&fixed)?;
        let mut fit = Self {
            table,
            model,
            means: factors.iter().map(Gammas::means).collect(),
            geometric: factors.iter().map(Gammas::means).collect(),
            digammas: factors.iter().map(Gammas::means).collect(),
            factors,
            fixed,
            augmentation,
            dispersion: None,
            learnt: (vec![], Rates::Factor),
            noise: vec![[0.0; 2]; cells],
            bounds: vec![],
            iteration: 0,
        };
        (0..fit.factors.len()).for_each(|factor| fit.refresh(factor));
        Ok(fit)
    }

    /// Makes the counts overdispersed.
    ///
    /// # Errors
    /// As [`super::GibbsChain::set_dispersion`]; [`Error::Domain`] for an augmentation other than the collapsed one.
    pub fn set_dispersion(&mut self, dispersion: Dispersion) -> Result<()> {
        let fits = self.augmentation == Augmentation::Collapsed;
        let found = format_args!("{:?}", self.augmentation);
        Error::require(fits, "method", found, "\"collapsed\" for overdispersed counts")?;
        dispersion.check(self.model.imputes(), &self.table)?;
        let cells = self.table.rows() * self.table.cols();
        if self.noise.len() != cells {
            memory::charge("laws of the multipliers of all cells", NOISE * cells as u128)?;
            self.noise = vec![[1.0; 2]; cells];
        }
        self.dispersion = Some(dispersion);
        Ok(())
    }

    /// Learns the priors, from those that the fit has.
    ///
    /// # Errors
    /// [`Error::Domain`] where a factor has shapes of its own for entries.
    pub fn learn_priors(&mut self, rates: Rates) -> Result<()> {
        self.learnt = (self.model.learnable(&self.fixed)?, rates);
        Ok(())
    }

    /// The model, with its priors.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The shapes of the multipliers, where counts are overdispersed.
    pub fn dispersion(&self) -> Option<&Dispersion> {
        self.dispersion.as_ref()
    }

    /// Works out what passes ask of the laws of a factor; the rates of Dirichlet laws follow from their shapes.
    fn refresh(&mut self, factor: usize) {
        let dirichlet = self.model.prior(factor).is_dirichlet();
        if dirichlet {
            dirichlet::set_rates(&mut self.factors[factor]);
        }
        let Expectations { means, digammas, mut geometric } = self.factors[factor].expectations(level());
        if dirichlet {
            dirichlet::correct(&self.factors[factor], &digammas, &mut geometric);
        }
        (self.means[factor], self.digammas[factor], self.geometric[factor]) = (means, digammas, geometric);
    }

    /// The release.
    pub fn table(&self) -> &ReleasedCounts {
        &self.table
    }

    /// The laws of the factors.
    pub fn factors(&self) -> &[Gammas] {
        &self.factors
    }

    /// Sets the laws of the factors; bounds found so far are forgotten.
    ///
    /// # Errors
    /// [`Error::Shape`]; [`Error::Domain`] for a shape or rate that is not positive and finite.
    pub fn set_factors(&mut self, factors: Vec<Gammas>) -> Result<()> {
        Error::require_shape("factors", [self.factors.len()], [factors.len()])?;
        factors.iter().enumerate().try_for_each(|(factor, gammas)| self.check(factor, gammas))?;
        (self.factors, self.iteration) = (factors, 0);
        (0..self.factors.len()).for_each(|factor| self.refresh(factor));
        self.bounds.clear();
        Ok(())
    }

    /// Whether laws are those of a factor.
    fn check(&self, factor: usize, gammas: &Gammas) -> Result<()> {
        [&gammas.shape, &gammas.rate].into_iter().try_for_each(|matrix| {
            self.model.check_factor(factor, matrix)?;
            let mut entries = (0..matrix.rows).flat_map(|row| &matrix.row(row)[..matrix.width]);
            Error::require(entries.all(|entry| *entry > 0.0), "factors", "0", "positive")
        })
    }

    /// The expected counts of noise of each cell, where the augmentation keeps them.
    pub fn noise(&self) -> &[NoiseCounts] {
        &self.noise
    }

    /// Sets the expected counts of noise, so that a fit goes on where another one was.
    ///
    /// # Errors
    /// [`Error::Shape`]; [`Error::Domain`] for a count that is negative or not finite.
    pub fn set_noise(&mut self, noise: Vec<NoiseCounts>) -> Result<()> {
        Error::require_shape("noise", [self.noise.len()], [noise.len()])?;
        Error::require_all(noise.as_flattened(), |count| count.is_finite() && count >= 0.0, "noise", "at least 0")?;
        self.noise = noise;
        Ok(())
    }

    /// The evidence lower bound after each iteration.
    pub fn bounds(&self) -> &[f64] {
        &self.bounds
    }

    /// Iterates until the bound's relative change falls below the tolerance; tells whether it did.
    ///
    /// # Errors
    /// [`Error::Interrupted`] leaves the fit as the last whole iteration left it.
    pub fn run(
        &mut self,
        iterations: usize,
        tolerance: f64,
        threads: usize,
        monitor: &mut dyn Monitor,
    ) -> Result<bool> {
        let total = iterations as u64;
        parallel::run(threads, total, monitor, |progress| {
            for _ in 0..iterations {
                self.iterate_or_restore(threads, progress)?;
                self.iteration += 1;
                progress.advance(1)?;
                if self.settled(tolerance) {
                    // The bound that settled is that before this iteration; the fit is one iteration better.
                    self.close(threads, progress)?;
                    return Ok(true);
                }
            }
            self.close(threads, progress)?;
            Ok(self.settled(tolerance))
        })
    }

    /// Iterates without forming bounds; those found so far are forgotten.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn settle(&mut self, iterations: usize, threads: usize, monitor: &mut dyn Monitor) -> Result<()> {
        self.iteration = 0;
        self.bounds.clear();
        parallel::run(threads, iterations as u64, monitor, |progress| {
            (0..iterations).try_for_each(|_| {
                self.iterate_or_restore(threads, progress)?;
                progress.advance(1)
            })
        })
    }

    /// Does one iteration, or none.
    fn iterate_or_restore(&mut self, threads: usize, progress: &Progress) -> Result<()> {
        let before = (self.factors.clone(), self.noise.clone(), self.dispersion.clone(), self.model.clone());
        self.iterate(threads, progress).inspect_err(|_| {
            (self.factors, self.noise, self.dispersion, self.model) = before;
            (0..self.factors.len()).for_each(|factor| self.refresh(factor));
        })
    }

    /// Whether the last two bounds agree. Both are zero where nothing is observed.
    fn settled(&self, tolerance: f64) -> bool {
        let close = |before: f64, last: f64| (last - before).abs() < tolerance * last.abs().max(f64::MIN_POSITIVE);
        matches!(self.bounds.as_slice(), [.., before, last] if close(*before, *last))
    }

    /// Adds the bound after the last iteration.
    fn close(&mut self, threads: usize, progress: &Progress) -> Result<()> {
        if self.bounds.len() < self.iteration {
            let (sums, _) =
                self.pass(PassOutput { left: None, right: false, bound: true, exact: false }, threads, progress)?;
            self.bounds.push(self.bound(sums.bound));
        }
        Ok(())
    }

    /// What these rows say of a factor at the laws as they are: the expected counts of its entries and what those are exposed
    /// to, without padding, and the bound less what is of the factor's own law. Sums over disjoint rows, as those of a batch.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; [`Error::Domain`] where counts are overdispersed or the augmentation keeps their noise.
    pub fn statistics(
        &self,
        factor: usize,
        threads: usize,
        monitor: &mut dyn Monitor,
    ) -> Result<(Vec<f64>, Vec<f64>, f64)> {
        self.refuse_other_methods()?;
        let requirement = "Poisson where statistics are summed over batches";
        Error::require(self.dispersion.is_none(), "likelihood", "negative binomial", requirement)?;
        let (structure, layout) = (self.model.structure(), self.model.layout());
        let (left, right) = structure.sums_for(layout, factor);
        let wanted = PassOutput { left, right, bound: true, exact: false };
        let (sums, _) = parallel::run(threads, 1, monitor, |progress| self.pass(wanted, threads, progress))?;
        let both = (sums.left.as_slice(), sums.right.as_slice());
        let counts = structure.expected_counts(layout, factor, &self.geometric, both);
        let width = self.means[factor].width;
        let column_sums: Vec<_> = self.means.iter().map(FactorMatrix::sums).collect();
        let exposures = self.exposures(factor, &column_sums);
        let own = if self.fixed[factor] { 0.0 } else { self.divergence(factor) };
        Ok((unpadded(&counts, width), exposures, self.bound(sums.bound) + own))
    }

    /// Makes the ascent one of several shards of the first factor's rows, at the start: from the row there that its first one is,
    /// and given what is to be known of the whole.
    ///
    /// # Errors
    /// [`Error::Domain`] for a row where no block of rows begins, or a model or method whose rows are not independent.
    pub fn place(&mut self, first_row: u64, whole: &Facts, key: [u64; 2]) -> Result<()> {
        self.refuse_other_methods()?;
        self.model.split_from(first_row)?;
        self.table = Arc::new(Arc::unwrap_or_clone(Arc::clone(&self.table)).among(whole));
        let factors = self.model.start(whole, first_row, key).into_iter().zip(self.model.priors()).map(start);
        self.set_factors(factors.collect())
    }

    /// The sums over rows of the means of the first factor, unrounded.
    pub fn row_sums(&self) -> Vec<i64> {
        self.means[0].exact_sums()
    }

    /// What the entries of a factor are exposed to, without padding, given the sums of all factors.
    fn exposures(&self, factor: usize, sums: &[Vec<f64>]) -> Vec<f64> {
        let FactorMatrix { rows, width, stride, .. } = self.means[factor];
        let (mut exposure, mut exposures) = (vec![0.0; stride], Vec::with_capacity(rows * width));
        for row in 0..rows {
            self.model.structure().exposure(self.model.layout(), (factor, row), &self.means, sums, &mut exposure);
            exposures.extend_from_slice(&exposure[..width]);
        }
        exposures
    }

    /// The same of a factor but the first in all cells of all shards, given the sums over their rows.
    pub fn shared_exposures(&self, factor: usize, sums: &[f64]) -> Vec<f64> {
        self.exposures(factor, &sums_of_shards(&self.means, sums))
    }

    /// What the entries of a factor are exposed to in the cells held out, given the sums over the rows of all shards, as of
    /// [`super::GibbsChain::held_exposures`].
    pub fn held_exposures(&self, factor: usize, sums: &[f64]) -> Vec<f64> {
        let all = sums_of_shards(&self.means, sums);
        self.model.structure().held_exposures(self.model.layout(), factor, &self.means, &all)
    }

    /// Sets the law of one factor; bounds found so far are forgotten.
    ///
    /// # Errors
    /// As [`Self::set_factors`].
    pub fn set_factor(&mut self, factor: usize, gammas: Gammas) -> Result<()> {
        self.check(factor, &gammas)?;
        (self.factors[factor], self.iteration) = (gammas, 0);
        self.refresh(factor);
        self.bounds.clear();
        Ok(())
    }

    /// The parts of the bound of a shard of the first factor's rows (cells, and the divergences of its rows, with what the rates and
    /// the shapes of rows lose by their own priors), after which, if asked for, those rows step to their optimum and say what the prior that they
    /// share is set by, if it is learnt. Sums over shards do not depend on how rows are split into them, if each begins at a
    /// multiple of 128.
    ///
    /// # Errors
    /// As [`Self::statistics`].
    pub fn shard_step(&mut self, step: bool, threads: usize, monitor: &mut dyn Monitor) -> Result<[Vec<i64>; 3]> {
        self.refuse_other_methods()?;
        let FactorMatrix { rows, width, .. } = self.factors[0].shape;
        let of_rows = self.learnt.1 == Rates::Rows && self.learnt.0.contains(&0);
        let mut divergences = vec![0; LIMBS];
        for first in (0..rows).step_by(ROWS) {
            let block = first..rows.min(first + ROWS);
            if of_rows {
                let rates = self.model.prior(0).rate.chunks(width).map(|rates| rates[0]);
                exact_sum::add(&mut divergences, rates.skip(first).take(block.len()).sum());
            }
            if let Some(dispersion) = self.dispersion.as_ref().filter(|dispersion| dispersion.is_of_rows()) {
                exact_sum::add(&mut divergences, -dispersion.log_prior_of(block.clone()));
            }
            exact_sum::add(&mut divergences, self.divergence_of_rows(0, block));
        }
        let bound = parallel::run(threads, 1, monitor, |progress| {
            let wanted = PassOutput { left: step.then_some(0), right: false, bound: true, exact: true };
            let (before, noise) = self.pass(wanted, threads, progress)?;
            if step {
                self.noise = noise;
                let (structure, layout) = (self.model.structure(), self.model.layout());
                let counts = structure.expected_counts(layout, 0, &self.geometric, (&before.left, &[]));
                self.update(0, &counts, (threads, progress))?;
            }
            Ok(before.exact_bound)
        })?;
        let of_prior = if step && self.learnt.0.contains(&0) { self.maximize_rates(0) } else { vec![] };
        Ok([bound, divergences, of_prior])
    }

    /// The expected counts of the entries of a factor but the first in a shard, in units of 2^-64, whose sums over shards do not
    /// depend on how rows are split either, and the largest of the expected multipliers that go with them.
    ///
    /// # Errors
    /// As [`Self::statistics`].
    pub fn shard_counts(
        &mut self,
        factor: usize,
        threads: usize,
        monitor: &mut dyn Monitor,
    ) -> Result<(Vec<i128>, f64)> {
        self.refuse_other_methods()?;
        let (structure, layout) = (self.model.structure(), self.model.layout());
        let (left, right) = structure.sums_for(layout, factor);
        let wanted = PassOutput { left, right, bound: false, exact: true };
        let (mut sums, noise) = parallel::run(threads, 1, monitor, |progress| self.pass(wanted, threads, progress))?;
        self.noise = noise;
        for first in (0..self.means[0].rows).step_by(ROWS) {
            let block = first..self.means[0].rows.min(first + ROWS);
            let counts = structure.counts_of_rows(layout, factor, &self.geometric, &sums.left, block);
            sums.fixed.resize(sums.fixed.len().max(counts.len()), 0);
            add_fixed(&mut sums.fixed, counts.into_iter());
        }
        let largest = self.noise.iter().fold(0.0, |most: f64, multiplier| most.max(multiplier[0]));
        Ok((unpadded(&sums.fixed, self.factors[factor].shape.width), largest))
    }

    /// What the entries of a factor but the first are exposed to in a shard of overdispersed counts, given the sums over the rows of
    /// all shards and the largest multiplier of all: sums over shards are exact.
    ///
    /// # Errors
    /// [`Error::Interrupted`]
    pub fn weighted_exposures(
        &self,
        factor: usize,
        sums: &[f64],
        largest: f64,
        threads: usize,
        monitor: &mut dyn Monitor,
    ) -> Result<Vec<f64>> {
        let Self { model, table, means, .. } = self;
        let all = sums_of_shards(means, sums);
        parallel::run(threads, 1, monitor, |progress| {
            let given = (factor, &all[..], largest);
            part_of_exposures(model, table, means, given, &self.multipliers(), (threads, progress))
        })
    }

    /// Ends an iteration of a shard of overdispersed counts: sets the shapes that rows have, and returns what its cells say of shapes
    /// that are shared, unrounded, of which there are none if they are known.
    pub fn shape_sums(&mut self) -> Vec<i64> {
        let Some(dispersion) = self.dispersion.as_mut().filter(|dispersion| dispersion.is_learnt()) else {
            return vec![];
        };
        let rows = self.table.rows();
        if dispersion.is_of_rows() {
            dispersion.maximize(&dispersion.sums(&self.table, &self.noise, 0..rows));
            return vec![];
        }
        let mut sums = vec![0; 2 * LIMBS * dispersion.shapes().len()];
        for first in (0..rows).step_by(ROWS) {
            let block = dispersion.sums(&self.table, &self.noise, first..rows.min(first + ROWS));
            let each = sums.chunks_exact_mut(LIMBS).zip(block.as_flattened());
            each.for_each(|(sum, &x)| exact_sum::add(sum, x));
        }
        sums
    }

    /// Sets the shapes that all rows share where the bound is largest, given what the cells of all shards say of them.
    ///
    /// # Errors
    /// [`Error::Shape`]
    pub fn maximize_shapes(&mut self, sums: &[i64]) -> Result<()> {
        let Some(dispersion) = &mut self.dispersion else { return Ok(()) };
        Error::require_shape("sums", [2 * LIMBS * dispersion.shapes().len()], [sums.len()])?;
        let sums: Vec<_> = sums.chunks_exact(LIMBS).map(exact_sum::value).collect();
        dispersion.maximize(sums.as_chunks().0);
        Ok(())
    }

    /// The log-density of the prior of shapes that all rows share.
    pub fn log_prior_of_shapes(&self) -> f64 {
        self.dispersion.as_ref().filter(|dispersion| !dispersion.is_of_rows()).map_or(0.0, Dispersion::log_prior)
    }

    fn refuse_other_methods(&self) -> Result<()> {
        let fits = self.augmentation == Augmentation::Collapsed;
        Error::require(fits, "method", format_args!("{:?}", self.augmentation), "\"collapsed\"")
    }

    /// What the rates of cells are multiplied by, where counts are overdispersed.
    fn multipliers(&self) -> Vec<f64> {
        self.dispersion.iter().flat_map(|_| &self.noise).map(|multiplier| multiplier[0]).collect()
    }

    /// Passes over all cells at the optimal law of their counts: what is wanted of them, and the new noise.
    fn pass(&self, wanted: PassOutput, threads: usize, progress: &Progress) -> Result<(Sums, Vec<NoiseCounts>)> {
        let Self { table, model, geometric, augmentation, .. } = self;
        let published = (*augmentation == Augmentation::Published).then(|| moments(&self.factors));
        let mut input = PassInput::new(table, model, geometric, (*augmentation, published), wanted);
        if let Some(dispersion) = &self.dispersion {
            input = input.overdispersed(dispersion, &self.means);
        }
        let mut noise = self.noise.clone();
        Ok((input.pass(&mut noise, threads, progress)?, noise))
    }

    /// Does one iteration: each factor's law at the optimum given the others.
    fn iterate(&mut self, threads: usize, progress: &Progress) -> Result<()> {
        let structure = self.model.structure();
        for (i, factor) in (0..self.factors.len()).filter(|&factor| !self.fixed[factor]).enumerate().collect::<Vec<_>>()
        {
            let (left, right) = structure.sums_for(self.model.layout(), factor);
            let bound = i == 0 && self.bounds.len() < self.iteration;
            let (sums, noise) = self.pass(PassOutput { left, right, bound, exact: false }, threads, progress)?;
            if bound {
                self.bounds.push(self.bound(sums.bound));
            }
            self.noise = noise;
            let sums = (sums.left.as_slice(), sums.right.as_slice());
            let counts = structure.expected_counts(self.model.layout(), factor, &self.geometric, sums);
            self.update(factor, &counts, (threads, progress))?;
            self.maximize_prior(factor);
        }
        if let Some(dispersion) = &mut self.dispersion {
            dispersion.maximize(&dispersion.sums(&self.table, &self.noise, 0..self.table.rows()));
        }
        Ok(())
    }

    /// Sets the prior of a factor, if it is learnt, where the bound is largest.
    pub fn maximize_prior(&mut self, factor: usize) {
        if self.learnt.0.contains(&factor) {
            if self.model.prior(factor).is_dirichlet() {
                let (laws, digammas) = (&self.factors[factor], &self.digammas[factor]);
                hyperpriors::maximize_concentration(self.model.prior_mut(factor), laws, digammas);
            } else {
                let sums = self.maximize_rates(factor);
                hyperpriors::maximize(self.model.prior_mut(factor), &sums, self.learnt.1);
            }
        }
    }

    /// Sets the rates that rows of a factor have of their own, and returns what they say of its prior.
    fn maximize_rates(&mut self, factor: usize) -> Vec<i64> {
        let symmetric = self.model.structure().is_symmetric(factor);
        let (means, geometric) = (&self.means[factor], &self.geometric[factor]);
        hyperpriors::maximize_rows(self.model.prior_mut(factor), means, geometric, symmetric, self.learnt.1)
    }

    /// Sets what all rows of a factor share of their prior where the bound is largest, given what those of all shards say of it.
    ///
    /// # Errors
    /// [`Error::Shape`]
    pub fn maximize_shared_prior(&mut self, factor: usize, sums: &[i64]) -> Result<()> {
        Error::require_shape("sums", [PRIOR_SUMS], [sums.len()])?;
        hyperpriors::maximize(self.model.prior_mut(factor), sums, self.learnt.1);
        Ok(())
    }

    /// As [`super::GibbsChain::set_prior`].
    ///
    /// # Errors
    /// As [`Prior::check`].
    pub fn set_prior(&mut self, factor: usize, shape: f64, rate: Option<Vec<f64>>) -> Result<()> {
        self.model.set_prior(factor, shape, rate)
    }

    /// The log-density of the hyperprior of a factor's prior, or 0 if it is known.
    pub fn log_prior(&self, factor: usize) -> f64 {
        let is_learnt = self.learnt.0.contains(&factor);
        let width = self.factors[factor].shape.width;
        if is_learnt { hyperpriors::log_density(self.model.prior(factor), width, self.learnt.1) } else { 0.0 }
    }

    /// Sets the laws of a factor given the expected counts of its entries. The means have those of the rows before, so that
    /// where rows are exposed to one another each is at an optimum of its own.
    fn update(&mut self, factor: usize, counts: &[f64], (threads, progress): (usize, &Progress)) -> Result<()> {
        // Multipliers, and what they make of the exposures where those do not depend on one another.
        let multipliers = self.multipliers();
        let Self { table, model, means, factors, dispersion, .. } = self;
        let (structure, layout, prior) = (model.structure(), model.layout(), model.prior(factor));
        let (width, stride) = (means[factor].width, means[factor].stride);
        let symmetric = structure.is_symmetric(factor);
        let mut sums: Vec<_> = means.iter().map(FactorMatrix::sums).collect();
        let mut exposure = vec![0.0; stride];
        let weighted = match dispersion {
            Some(_) if !structure.in_turn() => {
                Some(exposures(model, table, means, (factor, &[]), &multipliers, (threads, progress))?)
            }
            _ => None,
        };
        for row in 0..means[factor].rows {
            match &weighted {
                Some(weighted) => exposure.copy_from_slice(&weighted[row * stride..(row + 1) * stride]),
                None if dispersion.is_some() => {
                    structure.weighted_exposure(layout, (factor, row), means, &multipliers, &mut exposure);
                }
                None => structure.exposure(layout, (factor, row), means, &sums, &mut exposure),
            }
            for k in (if symmetric { row } else { 0 })..width {
                let (shape, rate) = prior.at(row * width + k);
                let (shape, rate) = (shape + counts[row * stride + k], rate + exposure[k]);
                let old = std::mem::replace(&mut means[factor].row_mut(row)[k], shape / rate);
                sums[factor][k] += shape / rate - old;
                for (row, k) in [(row, k), (k, row)].into_iter().take(if symmetric { 2 } else { 1 }) {
                    factors[factor].shape.row_mut(row)[k] = shape;
                    factors[factor].rate.row_mut(row)[k] = rate;
                }
            }
        }
        self.refresh(factor);
        Ok(())
    }

    /// How far the law of a factor is from its prior: the divergences of its entries or components, added up.
    pub fn divergence(&self, factor: usize) -> f64 {
        let (gammas, prior) = (&self.factors[factor], self.model.prior(factor));
        let total = self.divergence_of_rows(factor, 0..gammas.shape.rows);
        if prior.is_dirichlet() { total - dirichlet::divergence_of_sums(gammas, prior) } else { total }
    }

    /// The same of entries alone.
    fn divergence_of_rows(&self, factor: usize, rows: Range<usize>) -> f64 {
        let (gammas, prior) = (&self.factors[factor], self.model.prior(factor));
        let from = |row| if self.model.structure().is_symmetric(factor) { row } else { 0 };
        let digammas = &self.digammas[factor];
        rows.map(|row| gammas.divergence_of_row(level(), row, from(row), digammas, prior)).sum()
    }

    /// The bound, given the part of the cells at the optimal law of their counts.
    fn bound(&self, cells: f64) -> f64 {
        // A fixed factor is a point: it has no law of its own.
        let free = (0..self.factors.len()).filter(|&factor| !self.fixed[factor]);
        let total: f64 = free.map(|factor| self.divergence(factor)).sum();
        let total = total - self.learnt.0.iter().map(|&factor| self.log_prior(factor)).sum::<f64>();
        match &self.dispersion {
            Some(dispersion) => cells + dispersion.log_prior() - total,
            None => cells - self.model.total_rate(&self.means) - total,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::STRUCTURES;
    use crate::monitor::Silent;
    use crate::released_counts::Alpha;

    /// One cell, o = 3, the other factor fixed at 1, prior Gamma(1/2, 1/2), alpha = 1/e.
    fn single_cell(augmentation: Augmentation) -> (f64, f64) {
        let table = Arc::new(ReleasedCounts::new(&[3], 1, 1, Alpha::One((-1f64).exp()), None).unwrap());
        let prior = Prior { shape: vec![0.5], rate: vec![0.5] };
        let sizes = (STRUCTURES[0].1, [1, 1].as_slice(), 1);
        let mut fit =
            CoordinateAscent::new(table, sizes, vec![prior; 2], augmentation, [1, 2], vec![false, true]).unwrap();
        let one = |shape: f64, rate: f64| Gammas {
            shape: FactorMatrix::packed(1, 1, &[shape]).unwrap(),
            rate: FactorMatrix::packed(1, 1, &[rate]).unwrap(),
        };
        // A shape so large is a point at 1.
        fit.set_factors(vec![one(1.0, 1.0), one(1e16, 1e16)]).unwrap();
        fit.run(2000, 0.0, 1, &mut Silent).unwrap();
        (fit.factors()[0].means().row(0)[0], *fit.bounds().last().unwrap())
    }

    #[test]
    fn single_cells_have_the_known_means_and_bounds() {
        let known = [
            (Augmentation::Collapsed, 1.936_432_816_91, -2.964_359_979_26),
            (Augmentation::BesselMean, 1.987_526_539_4, -3.296_442_398_52),
            (Augmentation::BesselMode, 1.902_732_366_43, -3.411_616_926_94),
        ];
        for (augmentation, mean, bound) in known {
            let found = single_cell(augmentation);
            assert!((found.0 - mean).abs() < 2e-10 && (found.1 - bound).abs() < 1e-10, "{augmentation:?}: {found:?}");
        }
    }
}
