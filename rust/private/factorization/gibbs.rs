//! Gibbs chains: sweeps of allocation and gamma conditionals over factors that live in the core.
//!
//! A sweep draws the counts and their parts given the factors (see [`super::sweep`]), then each factor given its counts:
//!   entry ~ Gamma(shape + counts, rate + exposure).
//! Modes are redrawn one after the other, rows of a mode independently. A blockmodel first shares the parts of each actor
//! between the blocks; memberships are then redrawn actor by actor, for each is exposed to all others.
//! Every draw has an address, (iteration, factor, row or block of rows), so a chain is a function of its key, whatever threads do.
//!
//! Source: A. Schein et al. (2019), section 4 of the appendix, with the auxiliary variables summed out.

use super::factor_matrix::FactorMatrix;
use super::likelihood;
use super::model::{Kind, Model, Prior};
use super::released_counts::ReleasedCounts;
use super::sweep::Sweep;
pub use super::sweep::{Method, Tally};
use crate::distributions::words::RowWords;
use crate::inference::Chain;
use crate::monitor::{Monitor, Progress};
use crate::numeric::dispatch::Level;
use crate::stream::{Xoshiro, xoshiro};
use crate::{Error, Result, parallel};
use std::ops::Range;
use std::sync::Arc;

/// The purpose of the words that start a chain; those of factor m follow at m + 1, of sharing between blocks at [`SHARES`].
const FACTORS: u64 = 0x0066_6163_746f_7200;
pub(super) const SHARES: u64 = 0x0073_6861_7265_7300;
/// The purpose of the words of gamma variables drawn side by side, for factor m at m more.
const GAMMAS: u64 = 0x6761_6d6d_6173_0000;

/// A chain: data, factors and how far it is.
#[derive(Clone, Debug)]
pub struct GibbsChain {
    table: Arc<ReleasedCounts>,
    pub(super) model: Model,
    pub(super) factors: Vec<FactorMatrix>,
    pub(super) fixed: Vec<bool>,
    noise: Vec<[u32; 2]>,
    method: Method,
    pub(super) key: [u64; 2],
    pub(super) iteration: u64,
    positive: f64,
    last: [f64; 2],
}

impl GibbsChain {
    /// A chain that starts from nearly even factors whose rates sum to the sum of the release.
    ///
    /// # Errors
    /// As [`Model::new`]; [`Error::Domain`] for a release beyond 2^31 where auxiliary variables are kept.
    pub fn new(
        table: Arc<ReleasedCounts>,
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
    pub fn set_table(&mut self, table: Arc<ReleasedCounts>) -> Result<()> {
        let (kind, width) = (self.model.kind(), self.model.width());
        let priors = (0..self.factors.len()).map(|factor| self.model.prior(factor).clone()).collect();
        let model = Model::new(kind, self.model.extents(), width, priors, &table)?;
        self.table = admitted(&model, table, self.method)?;
        self.model = model;
        (self.positive, self.noise) = (positive_share(&self.table), no_noise(&self.table, self.method));
        Ok(())
    }

    /// The factors as they are.
    pub fn factors(&self) -> &[FactorMatrix] {
        &self.factors
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The release.
    pub fn table(&self) -> &ReleasedCounts {
        &self.table
    }

    /// Sets the factors.
    ///
    /// # Errors
    /// [`Error::Shape`]; [`Error::Domain`] for an entry that is negative or not finite.
    pub fn set_factors(&mut self, factors: Vec<FactorMatrix>) -> Result<()> {
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
        let (tally, noise) = parallel::run(threads, total, monitor, |progress| self.allocate(rows.clone(), progress))?;
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
            self.finish(tally);
            Ok(())
        })
    }

    /// Draws the counts of some rows for the next sweep, and the noise they leave.
    fn allocate(&self, rows: Range<usize>, progress: &Progress) -> Result<(Tally, Vec<[u32; 2]>)> {
        let cols = self.table.cols();
        let mut noise = match self.method {
            Method::Bessel => self.noise[rows.start * cols..rows.end * cols].to_vec(),
            _ => vec![],
        };
        let address = (self.key, self.iteration + 1);
        let sweep = Sweep::new(&self.model, &self.table, &self.factors, self.method, address, self.positive);
        Ok((sweep.rows(rows, &mut noise, progress)?, noise))
    }

    /// Draws the factors given the tally of a whole sweep.
    fn finish(&mut self, tally: &Tally) {
        self.iteration += 1;
        let total_rate = self.model.structure().redraw(self, tally);
        let total_rate = total_rate.unwrap_or_else(|| self.model.total_rate(&self.factors));
        self.last = [total_rate, tally.total() as f64];
    }

    /// The words of a block of rows of a factor.
    pub(super) fn words_of_block(&self, level: Level, factor: usize, block: usize) -> RowWords {
        RowWords::new(level, self.key, GAMMAS + factor as u64, self.iteration, block as u64)
    }

    pub(super) fn words(&self, factor: usize, row: usize) -> Xoshiro {
        xoshiro(self.key, FACTORS + 1 + factor as u64, self.iteration, row as u64)
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

    fn step(&mut self, progress: &Progress) -> Result<()> {
        let (tally, noise) = self.allocate(0..self.table.rows(), progress)?;
        self.noise = noise;
        self.finish(&tally);
        Ok(())
    }

    fn describe(&self, statistics: &mut [f64]) {
        statistics.copy_from_slice(&self.last);
    }

    fn record(&mut self, variables: &mut [&mut [f64]], statistics: &mut [f64]) -> Result<()> {
        statistics[0] = likelihood::total(&self.model, &self.factors, &self.table, &Progress::default())?;
        for (variable, factor) in variables.iter_mut().zip(&self.factors) {
            factor.unpad_into(variable);
        }
        Ok(())
    }
}

/// The table as a chain of this method can take it.
fn admitted(model: &Model, table: Arc<ReleasedCounts>, method: Method) -> Result<Arc<ReleasedCounts>> {
    if method == Method::Bessel
        && let Some(value) = table.beyond(1 << 31)
    {
        let requirement = "below 2^31 in size for auxiliary variables";
        return Err(Error::Domain { name: "released", value: value.to_string(), requirement });
    }
    Ok(without_rateless_cells(model, table))
}

/// The share of cells with a positive release.
fn positive_share(table: &ReleasedCounts) -> f64 {
    table.positive() as f64 / (table.rows() * table.cols()).max(1) as f64
}

/// Counts of noise to start from, for the method that keeps them.
fn no_noise(table: &ReleasedCounts, method: Method) -> Vec<[u32; 2]> {
    if method == Method::Bessel { vec![[0; 2]; table.rows() * table.cols()] } else { vec![] }
}

/// The table with those cells held out that the model has no rate for.
pub(super) fn without_rateless_cells(model: &Model, mut table: Arc<ReleasedCounts>) -> Arc<ReleasedCounts> {
    if model.hides() {
        model.hide(Arc::make_mut(&mut table));
    }
    table
}

/// Nearly even factors whose rates sum to the sum of the observed release, or to a tenth of a count per cell if that is more.
pub(super) fn start(model: &Model, table: &ReleasedCounts, key: [u64; 2]) -> Vec<FactorMatrix> {
    let shapes = model.shapes();
    let cells = (table.rows() * table.cols()) as f64;
    let observed = (cells - table.held_out() as f64).max(1.0);
    let total = table.total().max(0.1 * observed) * (cells / observed).max(1.0);
    // A rate is a sum of products: over components in a factorization, over pairs of them in a blockmodel.
    let (terms, order) = model.structure().terms(model.extents(), model.width());
    let scale = (total / (terms * cells.max(1.0))).powf(1.0 / order);
    let mut matrices: Vec<FactorMatrix> = Vec::new();
    for (factor, &(rows, width)) in shapes.iter().enumerate() {
        let mut matrix = FactorMatrix::new(rows, width);
        for row in 0..rows {
            let mut words = xoshiro(key, FACTORS + 1 + factor as u64, 0, row as u64);
            for entry in &mut matrix.row_mut(row)[..width] {
                *entry = scale * (0.5 + crate::distributions::RandomSource::uniform(&mut words));
            }
        }
        matrices.push(matrix);
    }
    for (_, matrix) in matrices.iter_mut().enumerate().filter(|(factor, _)| model.structure().is_symmetric(*factor)) {
        for c in 0..matrix.width {
            for d in 0..c {
                matrix.row_mut(c)[d] = matrix.row(d)[c];
            }
        }
    }
    matrices
}
