//! Gibbs chains: sweeps of allocation and gamma conditionals over factors that live in the core.
//!
//! A sweep draws the counts and their parts given the factors (see [`super::sweep`]), then each factor given its counts:
//!   entry ~ Gamma(shape + counts, rate + exposure).
//! Modes are redrawn one after the other, rows of a mode independently. A blockmodel first shares the parts of each actor
//! between the blocks; memberships are then redrawn actor by actor, for each is exposed to all others.
//! Every draw has an address, (iteration, factor, row), so a chain is a function of its key, whatever threads do.
//!
//! Source: A. Schein et al. (2019), section 4 of the appendix, with the auxiliary variables summed out.

use super::likelihood;
use super::model::{Kind, Model, Panel, Prior, gram};
use super::split::binomials;
use super::sweep::Sweep;
pub use super::sweep::{Method, Tally};
use super::table::Table;
use crate::distributions::gamma::{self, Gamma};
use crate::inference::Chain;
use crate::monitor::{Monitor, Watch};
use crate::stream::Burst;
use crate::{Error, Result, parallel};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// The purpose of the words that start a chain; those of factor m follow at m + 1, of sharing between blocks at [`SHARES`].
const FACTORS: u64 = 0x0066_6163_746f_7200;
const SHARES: u64 = 0x0073_6861_7265_7300;

/// A chain: data, factors and how far it is.
#[derive(Clone, Debug)]
pub struct GibbsChain {
    table: Arc<Table>,
    model: Model,
    factors: Vec<Panel>,
    fixed: Vec<bool>,
    noise: Vec<[u32; 2]>,
    method: Method,
    key: [u64; 2],
    iteration: u64,
    positive: f64,
    last: [f64; 2],
}

impl GibbsChain {
    /// A chain that starts from nearly even factors whose rates sum to the sum of the release.
    ///
    /// # Errors
    /// As [`Model::new`]; [`Error::Domain`] for a release beyond 2^31 where auxiliary variables are kept.
    pub fn new(
        table: Arc<Table>,
        (kind, extents, width): (Kind, &[usize], usize),
        priors: Vec<Prior>,
        method: Method,
        key: [u64; 2],
        fixed: Vec<bool>,
    ) -> Result<Self> {
        let model = Model::new(kind, extents, width, priors, &table)?;
        let table = admitted(&model, table, method)?;
        let factors = start(&model, &table, key);
        if fixed.len() != factors.len() {
            let (expected, found) = (format!("({},)", factors.len()), format!("({},)", fixed.len()));
            return Err(Error::Shape { name: "fixed", expected, found });
        }
        let (positive, noise) = (positive_share(&table), no_noise(&table, method));
        Ok(Self { table, model, factors, fixed, noise, method, key, iteration: 0, positive, last: [0.0; 2] })
    }

    /// Gives the chain another release of the same shape; noise kept per cell starts at zero.
    ///
    /// # Errors
    /// As [`GibbsChain::new`].
    pub fn set_table(&mut self, table: Arc<Table>) -> Result<()> {
        let (kind, width) = (self.model.kind(), self.model.width());
        let priors = (0..self.factors.len()).map(|factor| self.model.prior(factor).clone()).collect();
        let model = Model::new(kind, self.model.extents(), width, priors, &table)?;
        self.table = admitted(&model, table, self.method)?;
        self.model = model;
        (self.positive, self.noise) = (positive_share(&self.table), no_noise(&self.table, self.method));
        Ok(())
    }

    /// The factors as they are.
    pub fn factors(&self) -> &[Panel] {
        &self.factors
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The release.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Sets the factors.
    ///
    /// # Errors
    /// [`Error::Shape`]; [`Error::Domain`] for an entry that is negative or not finite.
    pub fn set_factors(&mut self, factors: Vec<Panel>) -> Result<()> {
        self.model.check(&factors)?;
        self.factors = factors;
        Ok(())
    }

    /// The counts of noise of each cell, where the method keeps them.
    pub fn noise(&self) -> &[[u32; 2]] {
        &self.noise
    }

    /// Sets the counts of noise.
    ///
    /// # Errors
    /// [`Error::Shape`]
    pub fn set_noise(&mut self, noise: Vec<[u32; 2]>) -> Result<()> {
        if noise.len() != self.noise.len() {
            let (expected, found) = (format!("({},)", self.noise.len()), format!("({},)", noise.len()));
            return Err(Error::Shape { name: "noise", expected, found });
        }
        self.noise = noise;
        Ok(())
    }

    /// Sets the number of sweeps done, which addresses all further draws.
    pub fn set_iteration(&mut self, iteration: u64) {
        self.iteration = iteration;
    }

    /// One part of the next sweep: what falls to each component in some rows.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; [`Error::Domain`] where rates are too large, or rows are not there.
    pub fn tally(&mut self, rows: Range<usize>, threads: usize, monitor: &mut dyn Monitor) -> Result<Tally> {
        if rows.start > rows.end || rows.end > self.table.rows() {
            let requirement = "a range of rows of the table";
            return Err(Error::Domain { name: "rows", value: format!("{rows:?}"), requirement });
        }
        let total = rows.len() as u64;
        let (tally, noise) =
            parallel::run(threads, total, monitor, |watch| self.allocate(rows.clone(), threads, watch))?;
        let cols = self.table.cols();
        if !noise.is_empty() {
            self.noise[rows.start * cols..rows.end * cols].copy_from_slice(&noise);
        }
        Ok(tally)
    }

    /// Ends a sweep whose parts have been added up: the same as one step of the chain.
    ///
    /// # Errors
    /// [`Error::Shape`] for a tally of another model.
    pub fn advance(&mut self, tally: &Tally, threads: usize, monitor: &mut dyn Monitor) -> Result<()> {
        let fits = Tally::new(&self.model);
        let lengths = |tally: &Tally| tally.parts.iter().map(Vec::len).collect::<Vec<_>>();
        if lengths(tally) != lengths(&fits) {
            let (expected, found) = (format!("{:?}", lengths(&fits)), format!("{:?}", lengths(tally)));
            return Err(Error::Shape { name: "tallies", expected, found });
        }
        parallel::run(threads, 1, monitor, |_| {
            self.finish(tally, threads);
            Ok(())
        })
    }

    /// Draws the counts of some rows for the next sweep, and the noise they leave.
    fn allocate(&self, rows: Range<usize>, threads: usize, watch: &Watch) -> Result<(Tally, Vec<[u32; 2]>)> {
        let cols = self.table.cols();
        let mut noise = match self.method {
            Method::Bessel => self.noise[rows.start * cols..rows.end * cols].to_vec(),
            _ => vec![],
        };
        let address = (self.key, self.iteration + 1);
        let sweep = Sweep::new(&self.model, &self.table, &self.factors, self.method, address, self.positive, threads);
        Ok((sweep.rows(rows, &mut noise, threads, watch)?, noise))
    }

    /// Draws the factors given the tally of a whole sweep.
    fn finish(&mut self, tally: &Tally, threads: usize) {
        self.iteration += 1;
        let total_rate = match self.model.kind() {
            Kind::Cp => self.finish_modes(tally, threads),
            _ => {
                self.finish_blocks(tally);
                None
            }
        };
        let total_rate = total_rate.unwrap_or_else(|| self.model.total_rate(&self.factors));
        self.last = [total_rate, tally.total() as f64];
    }

    fn words(&self, factor: usize, row: usize) -> Burst {
        Burst::new(self.key, FACTORS + 1 + factor as u64, self.iteration, row as u64)
    }

    /// Redraws the modes; returns the sum of the observed rates if there was one to redraw.
    fn finish_modes(&mut self, tally: &Tally, threads: usize) -> Option<f64> {
        let mut total_rate = None;
        let mut sums: Vec<_> = self.factors.iter().map(Panel::sums).collect();
        for mode in (0..self.factors.len()).filter(|&mode| !self.fixed[mode]) {
            let (stride, width) = (self.factors[mode].stride, self.model.width());
            let prior = self.model.prior(mode);
            let empty = if let [shape] = prior.shape[..] { Some(Gamma::new(shape)) } else { None };
            let redraw = |(index, (row, total)): (usize, (&mut [f64], &mut f64))| {
                let mut words = self.words(mode, index);
                let mut exposure = vec![0.0; stride];
                self.model.exposure_of_mode(mode, index, &self.factors, &sums, &mut exposure);
                let counts = &tally.parts[mode][index * stride..(index + 1) * stride];
                for k in 0..width {
                    let (shape, rate) = prior.at(index * width + k);
                    // Most entries of a sparse table got no count, and share a law.
                    let law = match &empty {
                        Some(law) if counts[k] == 0 => *law,
                        _ => Gamma::new(shape + counts[k] as f64),
                    };
                    row[k] = law.draw(&mut words) / (rate + exposure[k]);
                    *total += row[k] * exposure[k];
                }
            };
            let mut fresh = Panel::new(self.factors[mode].rows, width);
            let mut totals = vec![0.0; fresh.rows];
            if threads == 1 {
                fresh.padded_mut().chunks_exact_mut(stride).zip(&mut totals).enumerate().for_each(redraw);
            } else {
                let rows = fresh.padded_mut().par_chunks_exact_mut(stride).zip(&mut totals);
                rows.enumerate().with_min_len(16).for_each(redraw);
            }
            sums[mode] = fresh.sums();
            self.factors[mode] = fresh;
            // Exposures know what is held out, so this is the sum of the observed rates.
            total_rate = Some(totals.iter().sum());
        }
        total_rate
    }

    fn finish_blocks(&mut self, tally: &Tally) {
        let (actors, width, stride) = (self.factors[0].rows, self.model.width(), self.factors[0].stride);
        let undirected = self.model.kind() == Kind::Undirected;
        // Counts by actor, as sender and receiver, and by block.
        let mut members = tally.parts[1].clone();
        let mut blocks = vec![0u64; width * width];
        let mut weights = vec![0.0; width];
        for actor in 0..actors {
            let mut words = Burst::new(self.key, SHARES, self.iteration, actor as u64);
            for d in 0..width {
                let count = tally.parts[0][actor * stride + d];
                if count == 0 {
                    continue;
                }
                for (c, weight) in weights.iter_mut().enumerate() {
                    *weight = self.factors[0].row(actor)[c] * self.factors[1].row(c)[d];
                }
                if weights.iter().all(|&weight| weight == 0.0) {
                    weights.fill(1.0); // all underflowed: any share will do until the next sweep
                }
                binomials(count, &weights, &mut words, |c, part| {
                    members[actor * stride + c] += part;
                    blocks[c * width + d] += part;
                });
            }
        }
        if !self.fixed[0] {
            let mut sums = self.factors[0].sums();
            let mut exposure = vec![0.0; stride];
            for actor in 0..actors {
                let mut words = self.words(0, actor);
                self.model.exposure_of_actor(actor, &self.factors, &sums, &mut exposure);
                for c in 0..width {
                    let (shape, rate) = self.model.prior(0).at(actor * width + c);
                    let counts = members[actor * stride + c] as f64;
                    let fresh = gamma::draw(shape + counts, rate + exposure[c], &mut words);
                    let old = std::mem::replace(&mut self.factors[0].row_mut(actor)[c], fresh);
                    sums[c] += fresh - old;
                }
            }
        }
        if !self.fixed[1] {
            let (sums, gram) = (self.factors[0].sums(), gram(&self.factors[0]));
            let mut exposure = vec![0.0; stride];
            for c in 0..width {
                let mut words = self.words(1, c);
                self.model.exposure_of_block(c, &self.factors[0], &sums, &gram, &mut exposure);
                for d in (if undirected { c } else { 0 })..width {
                    let (shape, rate) = self.model.prior(1).at(c * width + d);
                    let mut counts = blocks[c * width + d];
                    if undirected && d != c {
                        counts += blocks[d * width + c];
                    }
                    let fresh = gamma::draw(shape + counts as f64, rate + exposure[d], &mut words);
                    self.factors[1].row_mut(c)[d] = fresh;
                    if undirected {
                        self.factors[1].row_mut(d)[c] = fresh;
                    }
                }
            }
        }
    }
}

impl Chain for GibbsChain {
    fn iteration(&self) -> u64 {
        self.iteration
    }

    fn work_per_step(&self) -> u64 {
        self.table.rows() as u64
    }

    fn is_short(&self, steps: u64) -> bool {
        let cells = (self.table.rows() * self.table.cols()) as u64;
        steps.saturating_mul(cells + 1000) < 1 << 20
    }

    fn sizes(&self) -> Vec<usize> {
        self.model.shapes().into_iter().map(|(rows, width)| rows * width).collect()
    }

    /// A draw has the log-likelihood of the release; a step the sums of the observed rates and of the counts drawn.
    fn statistics(&self) -> [usize; 2] {
        [1, 2]
    }

    fn step(&mut self, threads: usize, watch: &Watch) -> Result<()> {
        let (tally, noise) = self.allocate(0..self.table.rows(), threads, watch)?;
        self.noise = noise;
        self.finish(&tally, threads);
        Ok(())
    }

    fn describe(&self, statistics: &mut [f64]) {
        statistics.copy_from_slice(&self.last);
    }

    fn record(&mut self, threads: usize, variables: &mut [&mut [f64]], statistics: &mut [f64]) -> Result<()> {
        statistics[0] = likelihood::total(&self.model, &self.factors, &self.table, threads, &Watch::default())?;
        for (variable, factor) in variables.iter_mut().zip(&self.factors) {
            factor.unpad_into(variable);
        }
        Ok(())
    }
}

/// The table as a chain of this method can take it.
fn admitted(model: &Model, table: Arc<Table>, method: Method) -> Result<Arc<Table>> {
    if method == Method::Bessel
        && let Some(value) = table.beyond(1 << 31)
    {
        let requirement = "below 2^31 in size for auxiliary variables";
        return Err(Error::Domain { name: "released", value: value.to_string(), requirement });
    }
    Ok(hidden_as(model, table))
}

/// The share of cells with a positive release.
fn positive_share(table: &Table) -> f64 {
    table.positive() as f64 / (table.rows() * table.cols()).max(1) as f64
}

/// Counts of noise to start from, for the method that keeps them.
fn no_noise(table: &Table, method: Method) -> Vec<[u32; 2]> {
    if method == Method::Bessel { vec![[0; 2]; table.rows() * table.cols()] } else { vec![] }
}

/// The table with the cells hidden that the model has no rate for.
pub(super) fn hidden_as(model: &Model, mut table: Arc<Table>) -> Arc<Table> {
    if model.kind() != Kind::Cp {
        model.hide(Arc::make_mut(&mut table));
    }
    table
}

/// Nearly even factors whose rates sum to the sum of the observed release, or to a tenth of a count per cell if that is more.
pub(super) fn start(model: &Model, table: &Table, key: [u64; 2]) -> Vec<Panel> {
    let shapes = model.shapes();
    let cells = (table.rows() * table.cols()) as f64;
    let observed = (cells - table.hidden() as f64).max(1.0);
    let total = table.total().max(0.1 * observed) * (cells / observed).max(1.0);
    // A rate is a sum of products: over components in a factorization, over pairs of them in a blockmodel.
    let (terms, order) = match model.kind() {
        Kind::Cp => (model.width() as f64, shapes.len() as f64),
        _ => ((model.width() * model.width()) as f64, 3.0),
    };
    let scale = (total / (terms * cells.max(1.0))).powf(1.0 / order);
    let mut panels: Vec<Panel> = Vec::new();
    for (factor, &(rows, width)) in shapes.iter().enumerate() {
        let mut panel = Panel::new(rows, width);
        for row in 0..rows {
            let mut words = Burst::new(key, FACTORS + 1 + factor as u64, 0, row as u64);
            for entry in &mut panel.row_mut(row)[..width] {
                *entry = scale * (0.5 + crate::distributions::Words::uniform(&mut words));
            }
        }
        panels.push(panel);
    }
    if model.kind() == Kind::Undirected {
        for c in 0..model.width() {
            for d in 0..c {
                panels[1].row_mut(c)[d] = panels[1].row(d)[c];
            }
        }
    }
    panels
}
