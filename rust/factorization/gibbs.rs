//! Gibbs chains: sweeps of allocation and gamma conditionals over factors that live in the core.
//!
//! A sweep draws the counts and their parts given the factors (see [`super::sweep`]), then each factor given its counts:
//!   entry ~ Gamma(shape + counts, rate + exposure),
//! both as the [`super::structure`] tells them. Factors are redrawn one after the other, rows of a factor independently
//! unless they are exposed to one another.
//! Every draw has an address, (iteration, factor, row or block of rows), so a chain is a function of its key, whatever threads do.
//!
//! Source: A. Schein et al. (2019), section 4 of the appendix, with the auxiliary variables summed out.

use super::allocation::SweepAddress;
use super::cp::less;
use super::dirichlet;
use super::dispersion::{Dispersion, SHORT, SharedTails};
use super::factor_matrix::{FactorMatrix, sums_of_shards};
use super::gammas::Prior;
use super::hyperpriors::{self, PRIOR_SUMS, Rates};
use super::likelihood;
use super::model::{FACTORS, Model, Sizes};
use super::pass::part_of_exposures;
use super::released_counts::{Facts, ReleasedCounts};
use super::sweep::{Kept, Laws, Sweep, split_pseudo_counts};
pub use super::sweep::{Method, Tally};
use crate::distributions::gamma;
use crate::distributions::words::RowWords;
use crate::inference::Chain;
use crate::monitor::{Monitor, Progress};
use crate::numeric::dispatch::level;
use crate::stream::xoshiro;
use crate::{Error, Result, memory, parallel};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;

/// The purpose of the words that share what the tallies leave open.
const SHARES: u64 = 0x0073_6861_7265_7300;
/// The purpose of the words of priors that are learnt, and of the rates of rows, for factor m at m more.
const PRIORS: u64 = 0x0070_7269_6f72_7300;
const RATES: u64 = 0x0072_6174_6573_0000;
/// The purpose of the words of gamma variables drawn side by side, for factor m at m more.
const GAMMAS: u64 = 0x6761_6d6d_6173_0000;
/// Rows of a factor that are redrawn together, with words of their own: draws depend on it. Sixteen of sixteen components are what
/// gamma variables are drawn in at a time.
const BLOCK: usize = 16;

/// A chain: data, factors and how far it is.
#[derive(Clone, Debug)]
pub struct GibbsChain {
    table: Arc<ReleasedCounts>,
    model: Model,
    factors: Vec<FactorMatrix>,
    fixed: Vec<bool>,
    noise: Vec<[u32; 2]>,
    dispersion: Option<Dispersion>,
    /// The factors whose priors are learnt, and what has a rate of its own.
    learnt: (Vec<usize>, Rates),
    /// Counts of overdispersed cells and their rates, until multipliers replace these: of the sweep that goes on.
    cells: (Vec<u32>, Vec<f64>),
    /// The largest multiplier.
    largest: f64,
    /// Of a shard of overdispersed counts, between the parts of a sweep: the tally, and what the cells say of shared shapes.
    begun: Option<(Tally, SharedTails)>,
    method: Method,
    key: [u64; 2],
    iteration: u64,
    /// What is to be known of all shards.
    whole: Facts,
    last: [f64; 2],
    first_row: u64,
}

/// What a sweep of a shard of overdispersed counts returns.
#[derive(Clone, Debug)]
pub struct SweptShard {
    /// The tallies of all factors but the first.
    pub tallies: Vec<Vec<u64>>,
    /// What the rows say of their prior, where it is learnt.
    pub of_prior: Vec<i64>,
    /// All counts that were drawn.
    pub total: u64,
    /// The largest multiplier.
    pub largest: f64,
}

/// Bytes that overdispersed counts take for each cell: its count, and its rate or multiplier.
const CELL: u128 = 12;

impl GibbsChain {
    /// A chain that starts from nearly even factors whose rates sum to the sum of the release.
    ///
    /// # Errors
    /// As [`Model::new`]; [`Error::Domain`] for a release beyond 2^31 where auxiliary variables are kept.
    pub fn new(
        table: Arc<ReleasedCounts>,
        sizes: Sizes<'_>,
        priors: Vec<Prior>,
        method: Method,
        key: [u64; 2],
        fixed: Vec<bool>,
    ) -> Result<Self> {
        let model = Model::new(sizes, priors, &table)?;
        let table = admitted(&model, table, method)?;
        let whole = table.facts();
        let factors = model.start(&whole, 0, key);
        model.check_fixed(&fixed)?;
        let noise = no_noise(&table, method);
        let (dispersion, learnt, cells, last) = (None, (vec![], Rates::Factor), Default::default(), [0.0; 2]);
        let (iteration, first_row, begun, largest) = (0, 0, None, 0.0);
        Ok(Self {
            table,
            model,
            factors,
            fixed,
            noise,
            dispersion,
            learnt,
            cells,
            largest,
            begun,
            method,
            key,
            iteration,
            whole,
            last,
            first_row,
        })
    }

    /// Makes the chain one of several shards of the first factor's rows, which starts anew: from the row there that its first one
    /// is, and given what is to be known of the whole. Together with [`GibbsChain::redraw_shared`] of one of them their sweeps
    /// are those of the chain of the whole, bit for bit.
    ///
    /// # Errors
    /// [`Error::Domain`] for a row where no block of rows begins, or a model that is not [`Model::split_from`] there.
    pub fn place(&mut self, first_row: u64, whole: &Facts) -> Result<()> {
        self.model.split_from(first_row)?;
        self.table = Arc::new(Arc::unwrap_or_clone(Arc::clone(&self.table)).among(whole));
        self.whole = *whole;
        self.first_row = first_row;
        self.factors = self.model.start(whole, first_row, self.key);
        Ok(())
    }

    /// One sweep of a shard given all factors but the first: redraws its rows of the first, and returns the counts of the others,
    /// and what the rows say of their prior where it is learnt.
    ///
    /// # Errors
    /// [`Error::Interrupted`] and [`Error::Domain`] as of a step; [`Error::Shape`].
    pub fn shard_sweep(
        &mut self,
        shared: Vec<FactorMatrix>,
        threads: usize,
        monitor: &mut dyn Monitor,
    ) -> Result<(Vec<Vec<u64>>, Vec<i64>)> {
        self.set_shared(shared)?;
        let total = self.table.rows() as u64;
        let (counts, noise) = parallel::run(threads, total, monitor, |progress| {
            let (tally, noise) = self.allocate(0..self.table.rows(), progress)?;
            self.iteration += 1;
            Ok((self.redraw_rows(tally), noise))
        })?;
        self.noise = noise;
        let of_prior = if self.learns(0) { self.redraw_rates(0) } else { vec![] };
        Ok((counts.into_iter().skip(1).collect(), of_prior))
    }

    /// Redraws the rows of a shard given the tally of its sweep, and returns the counts of all factors.
    fn redraw_rows(&mut self, tally: Tally) -> Vec<Vec<u64>> {
        let own = match self.counts(&tally) {
            Cow::Owned(counts) => Some(counts),
            Cow::Borrowed(_) => None,
        };
        let counts = own.unwrap_or(tally.parts);
        let sums: Vec<_> = self.factors.iter().map(FactorMatrix::sums).collect();
        self.redraw(0, &counts[0], &sums, None);
        counts
    }

    /// Begins a sweep of a shard of overdispersed counts, given all factors but the first: draws its counts. Returns how many of
    /// them are larger than 0, 1, ..., which shared shapes are redrawn by.
    ///
    /// # Errors
    /// As [`Self::shard_sweep`].
    pub fn begin_sweep(
        &mut self,
        shared: Vec<FactorMatrix>,
        threads: usize,
        monitor: &mut dyn Monitor,
    ) -> Result<Vec<[u64; SHORT]>> {
        self.set_shared(shared)?;
        let total = self.table.rows() as u64;
        let (tally, tails) = parallel::run(threads, total, monitor, |progress| {
            let (tally, _) = self.allocate(0..self.table.rows(), progress)?;
            let (counts, rates) = (&self.cells.0, &self.cells.1);
            let tails = self.dispersion.as_ref().map(|own| SharedTails::new(own, rates, counts, self.table.cols()));
            Ok((tally, tails))
        })?;
        self.iteration += 1;
        let Some(tails) = tails else {
            return Err(Error::domain("likelihood", "Poisson", "negative binomial"));
        };
        let short = tails.short();
        self.begun = Some((tally, tails));
        Ok(short)
    }

    /// What the cells of a shard say besides of some values of each shared shape, one after the other, unrounded, within a sweep that was
    /// begun.
    pub fn shape_sums(&self, shapes: &[Vec<f64>], threads: usize, monitor: &mut dyn Monitor) -> Result<Vec<i64>> {
        let tails = self.begun.as_ref().map(|(_, tails)| tails);
        parallel::run(threads, 1, monitor, |_| Ok(tails.map_or(vec![], |tails| tails.sums(&self.cells.1, shapes))))
    }

    /// Ends a sweep of a shard of overdispersed counts, given the shapes that rows share if there are any: redraws its rows of the
    /// first factor. Returns what [`Self::shard_sweep`] does, all counts that were drawn, and the largest multiplier.
    ///
    /// # Errors
    /// As [`Self::shard_sweep`]; [`Error::Domain`] for a sweep that was not begun.
    pub fn end_sweep(
        &mut self,
        shared_shapes: Option<&[f64]>,
        threads: usize,
        monitor: &mut dyn Monitor,
    ) -> Result<SweptShard> {
        let Some((mut tally, _)) = self.begun.take() else {
            return Err(Error::domain("sweep", "none", "begun"));
        };
        let shared = self.dispersion.as_ref().filter(|own| own.is_shared()).map_or(0, |own| own.shapes().len());
        Error::require_shape("shapes", [shared], [shared_shapes.map_or(0, <[f64]>::len)])?;
        let total = tally.total();
        let counts = parallel::run(threads, 1, monitor, |_| {
            self.draw_multipliers(&mut tally, shared_shapes);
            Ok(self.redraw_rows(tally))
        })?;
        let of_prior = if self.learns(0) { self.redraw_rates(0) } else { vec![] };
        let tallies = counts.into_iter().skip(1).collect();
        Ok(SweptShard { tallies, of_prior, total, largest: self.largest })
    }

    /// What the entries of a factor are exposed to in a shard of overdispersed counts, given the sums over all rows and the largest
    /// multiplier of all shards; sums of these over shards are exact.
    pub fn weighted_exposures(
        &self,
        factor: usize,
        sums: &[f64],
        largest: f64,
        threads: usize,
        monitor: &mut dyn Monitor,
    ) -> Result<Vec<f64>> {
        let all = sums_of_shards(&self.factors, sums);
        parallel::run(threads, 1, monitor, |progress| self.weighted(factor, &all, largest, (threads, progress)))
    }

    /// Redraws the shapes that rows of all shards share, given for each how many counts are larger than 0, 1, ... and what the cells say
    /// besides of the shapes that were asked for, in their order. Returns what is to be asked for next of each, nothing where it is
    /// drawn; once all are they are set. Their address is that of the sweep that ends next.
    ///
    /// # Errors
    /// [`Error::Shape`]
    pub fn redraw_shared_shapes(&mut self, short: &[[u64; SHORT]], known: &[Vec<f64>]) -> Result<Vec<Vec<f64>>> {
        let address = SweepAddress { key: self.key, iteration: self.iteration + 1, first_row: 0 };
        let Some(dispersion) = &mut self.dispersion else { return Ok(vec![]) };
        let number = dispersion.shapes().len();
        Error::require_shape("short", [number, number], [short.len(), known.len()])?;
        let draw = |group: usize| {
            let (place, asked) = (Cell::new(0), RefCell::new(vec![]));
            let others = |shapes: &[f64]| {
                let start = place.replace(place.get() + shapes.len());
                known[group].get(start..place.get()).map_or_else(
                    || {
                        let mut asked = asked.borrow_mut();
                        if asked.is_empty() {
                            asked.extend_from_slice(shapes);
                        }
                        vec![f64::NAN; shapes.len()]
                    },
                    <[f64]>::to_vec,
                )
            };
            (dispersion.drawn((group, &short[group]), address, others), asked.take())
        };
        let (found, asked): (Vec<_>, Vec<Vec<f64>>) = (0..number).map(draw).unzip();
        if asked.iter().all(Vec::is_empty) {
            dispersion.set_shapes(&found);
        }
        Ok(asked)
    }

    /// Sets all factors but the first.
    ///
    /// # Errors
    /// As [`Self::set_factors`].
    pub fn set_shared(&mut self, shared: Vec<FactorMatrix>) -> Result<()> {
        Error::require_shape("factors", [self.factors.len() - 1], [shared.len()])?;
        shared.iter().zip(1..).try_for_each(|(matrix, factor)| self.model.check_factor(factor, matrix))?;
        self.factors.splice(1.., shared);
        Ok(())
    }

    /// What the entries of a factor would be exposed to in the cells that are held out of a shard, given the sums over the rows of
    /// all shards; sums of these over shards are exact. Nothing where none are, or their counts are drawn.
    pub fn held_exposures(&self, factor: usize, sums: &[f64]) -> Vec<f64> {
        let all = sums_of_shards(&self.factors, sums);
        self.model.structure().held_exposures(self.model.layout(), factor, &self.factors, &all)
    }

    /// The log-likelihood of a shard, unrounded.
    ///
    /// # Errors
    /// [`Error::Interrupted`]
    pub fn exact_likelihood(&self, threads: usize, monitor: &mut dyn Monitor) -> Result<Vec<i64>> {
        let laws = (&self.factors[..], self.dispersion.as_ref());
        parallel::run(threads, 1, monitor, |progress| likelihood::exact_total(&self.model, laws, &self.table, progress))
    }

    /// Ends a sweep of all shards, factor by factor from the second on: redraws one, given its tally, the sums over the rows of all
    /// shards, what is held out of it, which may be nothing, and of overdispersed counts what it is exposed to. Whose cells are all
    /// held out is exposed to nothing, and is said to be by infinity. The sum of the observed rates is returned, which is that of
    /// the sweep for the last factor.
    ///
    /// # Errors
    /// [`Error::Shape`]
    pub fn redraw_shared(
        &mut self,
        factor: usize,
        tally: &[u64],
        sums: &[f64],
        [held, weighted]: [&[f64]; 2],
        threads: usize,
        monitor: &mut dyn Monitor,
    ) -> Result<f64> {
        let FactorMatrix { width, stride, rows, .. } = self.factors[factor];
        let entries = rows * stride;
        let lengths = (tally.len(), sums.len(), held.len(), weighted.len());
        let weights = if self.dispersion.is_some() { entries } else { 0 };
        let of_first = self.factors[0].stride;
        let fits = (lengths.0, lengths.1, lengths.3) == (entries, of_first, weights);
        if !fits || !(held.is_empty() || held.len() == entries) {
            let expected = format_args!("({entries}, {of_first}, {entries}, {weights})");
            return Err(Error::shape("tally", expected, format_args!("{lengths:?}")));
        }
        self.iteration += u64::from(factor == 1);
        parallel::run(threads, 1, monitor, |_| {
            let mut all: Vec<_> = self.factors.iter().map(FactorMatrix::sums).collect();
            all[0].copy_from_slice(sums);
            self.redraw_concentration(factor, tally);
            let rate = self.redraw(factor, tally, &all, Some([held, weighted])).unwrap_or_else(|| {
                all[factor] = self.factors[factor].sums();
                (0..width).map(|k| all.iter().map(|sum| sum[k]).product::<f64>()).sum::<f64>().max(0.0)
            });
            if self.learns(factor) {
                let sums = self.redraw_rates(factor);
                self.redraw_prior(factor, &sums)?;
            }
            Ok(rate)
        })
    }

    /// Makes the counts overdispersed.
    ///
    /// # Errors
    /// [`Error::Domain`] for a release of 2^20 or more, auxiliary variables, or a model whose conditionals need Poisson counts;
    /// [`Error::TooLarge`] if a multiplier for each cell does not fit into memory.
    pub fn set_dispersion(&mut self, dispersion: Dispersion) -> Result<()> {
        let requirement = "without auxiliary variables for overdispersed counts";
        Error::require(self.method != Method::Bessel, "method", "bessel", requirement)?;
        dispersion.check(self.model.imputes(), &self.table)?;
        let cells = self.table.rows() * self.table.cols();
        memory::charge("a multiplier for each cell", CELL * cells as u128)?;
        self.cells = (vec![0; cells], vec![0.0; cells]);
        self.dispersion = Some(dispersion);
        Ok(())
    }

    /// Learns the priors, from those that the chain has.
    ///
    /// # Errors
    /// [`Error::Domain`] where a factor has shapes of its own for entries.
    pub fn learn_priors(&mut self, rates: Rates) -> Result<()> {
        self.learnt = (self.model.learnable(&self.fixed)?, rates);
        Ok(())
    }

    /// Sets a prior that is learnt: its shape, and its rates if any are given.
    ///
    /// # Errors
    /// As [`Prior::check`].
    pub fn set_prior(&mut self, factor: usize, shape: f64, rate: Option<Vec<f64>>) -> Result<()> {
        self.model.set_prior(factor, shape, rate)
    }

    /// Whether a gamma prior is learnt.
    fn learns(&self, factor: usize) -> bool {
        self.learnt.0.contains(&factor) && !self.model.prior(factor).is_dirichlet()
    }

    /// Redraws the concentration of a factor of Dirichlet laws, if it is learnt, given its counts.
    fn redraw_concentration(&mut self, factor: usize, counts: &[u64]) {
        if self.learnt.0.contains(&factor) && self.model.prior(factor).is_dirichlet() {
            let FactorMatrix { rows, width, stride, .. } = self.factors[factor];
            let mut words = xoshiro(self.key, PRIORS, self.iteration, factor as u64);
            hyperpriors::redraw_concentration(self.model.prior_mut(factor), counts, [rows, width, stride], &mut words);
        }
    }

    /// Redraws the rates that rows of a factor have of their own, and returns what they say of its prior.
    fn redraw_rates(&mut self, factor: usize) -> Vec<i64> {
        let (key, iteration) = (self.key, self.iteration);
        let first = if factor == 0 { self.first_row } else { 0 };
        let words = |row: usize| xoshiro(key, RATES + factor as u64, iteration, first + row as u64);
        let symmetric = self.model.structure().is_symmetric(factor);
        hyperpriors::redraw_rows(self.model.prior_mut(factor), &self.factors[factor], symmetric, self.learnt.1, words)
    }

    /// Redraws what all rows of a factor share of their prior, given what those of all shards say of it.
    ///
    /// # Errors
    /// [`Error::Shape`]
    pub fn redraw_prior(&mut self, factor: usize, sums: &[i64]) -> Result<()> {
        Error::require_shape("sums", [PRIOR_SUMS], [sums.len()])?;
        let mut words = xoshiro(self.key, PRIORS, self.iteration, factor as u64);
        hyperpriors::redraw(self.model.prior_mut(factor), sums, self.learnt.1, &mut words);
        Ok(())
    }

    /// Lengths of what is recorded of the priors: for each that is learnt its shape, and its rates if it has any.
    fn lengths_of_priors(&self) -> impl Iterator<Item = usize> + '_ {
        let (factors, rates) = &self.learnt;
        factors.iter().flat_map(|&factor| {
            let rates = if *rates == Rates::Rows { self.factors[factor].rows } else { 1 };
            [1, rates].into_iter().take(if self.model.prior(factor).is_dirichlet() { 1 } else { 2 })
        })
    }

    /// The shapes of the multipliers, where counts are overdispersed.
    pub fn dispersion(&self) -> Option<&Dispersion> {
        self.dispersion.as_ref()
    }

    /// Gives the chain another release of the same shape; noise kept per cell starts at zero.
    ///
    /// # Errors
    /// As [`GibbsChain::new`].
    pub fn set_table(&mut self, table: Arc<ReleasedCounts>) -> Result<()> {
        let model = self.model.with_table(&table)?;
        if let Some(dispersion) = &self.dispersion {
            dispersion.check(model.imputes(), &table)?;
        }
        self.table = admitted(&model, table, self.method)?;
        self.model = model;
        self.whole = self.table.facts();
        self.noise = no_noise(&self.table, self.method);
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
        Error::require_shape("noise", [self.noise.len()], [noise.len()])?;
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
        let there = rows.start <= rows.end && rows.end <= self.table.rows();
        Error::require(there, "rows", format_args!("{rows:?}"), "a range of rows of the table")?;
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
            let (expected, found) = (format_args!("{:?}", lengths(&fits)), format_args!("{:?}", lengths(tally)));
            return Err(Error::shape("tallies", expected, found));
        }
        parallel::run(threads, 1, monitor, |_| {
            self.finish(Cow::Borrowed(tally));
            Ok(())
        })
    }

    /// Draws the counts of some rows for the next sweep, and the noise they leave.
    fn allocate(&mut self, rows: Range<usize>, progress: &Progress) -> Result<(Tally, Vec<[u32; 2]>)> {
        let cols = self.table.cols();
        let cells = rows.start * cols..rows.end * cols;
        let mut noise = match self.method {
            Method::Bessel => self.noise[cells.clone()].to_vec(),
            _ => vec![],
        };
        let (mut counts, mut rates) = std::mem::take(&mut self.cells);
        let kept = Kept {
            noise: &mut noise,
            counts: counts.get_mut(cells.clone()).unwrap_or_default(),
            rates: rates.get_mut(cells).unwrap_or_default(),
        };
        // Rows of the table are those of the first factor, each as often as there are other indices to the left.
        let first_row = self.first_row * (self.table.rows() / self.factors[0].rows.max(1)) as u64;
        let place = SweepAddress { key: self.key, iteration: self.iteration + 1, first_row };
        let laws = Laws { method: self.method, dispersion: self.dispersion.as_ref(), whole: self.whole };
        let sweep = Sweep::new(&self.model, &self.table, &self.factors, laws, place, rows.clone());
        let tally = sweep.rows(rows, kept, progress);
        self.cells = (counts, rates);
        Ok((tally?, noise))
    }

    /// Redraws the shapes of overdispersed counts, unless those that rows share are given, then multipliers and pseudo-counts given
    /// rates and counts of all cells; these are added to the tally.
    fn draw_multipliers(&mut self, tally: &mut Tally, shared_shapes: Option<&[f64]>) {
        let Some(dispersion) = &mut self.dispersion else { return };
        let (counts, rates) = (&self.cells.0, &mut self.cells.1);
        let first_row = self.first_row * (self.table.rows() / self.factors[0].rows.max(1)) as u64;
        let address = SweepAddress { key: self.key, iteration: self.iteration, first_row };
        match shared_shapes {
            Some(shapes) => dispersion.set_shapes(shapes),
            None => dispersion.redraw(rates, counts, self.table.cols(), address),
        }
        // Rows in turn are exposed to sums of their own, over all cells.
        let summed = if self.model.structure().in_turn() { 0 } else { self.model.layout().width };
        let cells = self.whole.rows as usize * self.table.cols();
        let pairs;
        (pairs, self.largest) = dispersion.draw_multipliers(&self.table, counts, rates, address, [summed, cells]);
        split_pseudo_counts(&self.model, &self.factors, &pairs, address, tally);
    }

    /// What the entries of a factor are exposed to where cells have multipliers, given the sums of all factors. Where rows may be in
    /// several places, the parts of it add up exactly.
    fn weighted(&self, factor: usize, sums: &[Vec<f64>], largest: f64, here: (usize, &Progress)) -> Result<Vec<f64>> {
        part_of_exposures(&self.model, &self.table, &self.factors, (factor, sums, largest), &self.cells.1, here)
    }

    /// The counts of the entries of each factor given the tally of a sweep, which ends.
    fn counts<'t>(&self, tally: &'t Tally) -> Cow<'t, [Vec<u64>]> {
        let shares = |row: usize| xoshiro(self.key, SHARES, self.iteration, self.first_row + row as u64);
        self.model.structure().counts(self.model.layout(), &self.factors, &tally.parts, &shares)
    }

    /// Draws the factors given the tally of a whole sweep.
    fn finish(&mut self, mut tally: Cow<'_, Tally>) {
        self.iteration += 1;
        let total = tally.total();
        if self.dispersion.is_some() {
            self.draw_multipliers(tally.to_mut(), None);
        }
        let (structure, layout) = (self.model.structure(), self.model.layout());
        let counts = self.counts(&tally);
        let shares = |row: usize| xoshiro(self.key, SHARES, self.iteration, row as u64);
        let mut sums: Vec<_> = self.factors.iter().map(FactorMatrix::sums).collect();
        let mut total_rate = None;
        structure.redraw(layout, self.model.priors(), &self.fixed, &counts, &mut self.factors, &shares);
        let own = |factor: &usize| !self.fixed[*factor] && !structure.is_redrawn_together(layout, *factor);
        for factor in (0..self.factors.len()).filter(own).collect::<Vec<_>>() {
            self.redraw_concentration(factor, &counts[factor]);
            if structure.in_turn() {
                self.redraw_in_turn(factor, &counts[factor], &mut sums);
            } else {
                total_rate = self.redraw(factor, &counts[factor], &sums, None);
            }
            sums[factor] = self.factors[factor].sums();
        }
        let total_rate = total_rate.unwrap_or_else(|| self.model.total_rate(&self.factors));
        self.last = [total_rate, total as f64];
        for factor in (0..self.factors.len()).filter(|&factor| self.learns(factor)).collect::<Vec<_>>() {
            let sums = self.redraw_rates(factor);
            self.redraw_prior(factor, &sums).expect("sums of its own");
        }
    }

    /// Redraws a factor whose rows are independent given the others, but for the sums of Dirichlet laws. Exposures know what is
    /// held out, so that the sum of the observed rates, which is returned, adds up on the way. Where rows are elsewhere, of them
    /// only sums are known, and what of these is held out.
    fn redraw(
        &mut self,
        factor: usize,
        counts: &[u64],
        sums: &[Vec<f64>],
        elsewhere: Option<[&[f64]; 2]>,
    ) -> Option<f64> {
        let (structure, layout, prior) = (self.model.structure(), self.model.layout(), self.model.prior(factor));
        let mut fresh = FactorMatrix::new(self.factors[factor].rows, self.factors[factor].width);
        let dirichlet = prior.is_dirichlet();
        let held = elsewhere.map(|[held, _]| held);
        let weighted = self.dispersion.is_some().then(|| {
            let here = (parallel::threads(), &Progress::default());
            elsewhere.map_or_else(
                || self.weighted(factor, sums, self.largest, here).expect("no interruption"),
                |[_, weighted]| weighted.to_vec(),
            )
        });
        let is_last = factor + 1 == self.factors.len();
        let totals_wanted = weighted.is_none() || (is_last && structure.is_split_by_rows());
        let (stride, width, level) = (fresh.stride, fresh.width, level());
        let first_block = if factor == 0 { self.first_row / BLOCK as u64 } else { 0 };
        let redraw = |(block, (rows, totals)): (usize, (&mut [f64], &mut [f64]))| {
            // Entry k of row i of the block is at i * width + k among shapes and draws, at i * stride + k in the matrices.
            let first = block * BLOCK;
            let mut exposures = vec![0.0; rows.len()];
            let (mut shapes, mut draws) = (vec![0.0; totals.len() * width], vec![0.0; totals.len() * width]);
            let each = shapes.chunks_exact_mut(width).zip(exposures.chunks_exact_mut(stride));
            for (row, (shapes, exposure)) in (first..).zip(each) {
                if !dirichlet && totals_wanted {
                    structure.exposure(layout, (factor, row), &self.factors, sums, exposure);
                    let held = held.and_then(|held| held.get(row * stride..(row + 1) * stride));
                    held.iter().for_each(|held| less(exposure, held));
                }
                for (k, (shape, &count)) in shapes.iter_mut().zip(&counts[row * stride..]).enumerate() {
                    *shape = prior.at(row * width + k).0 + count as f64;
                }
            }
            let (purpose, block) = (GAMMAS + factor as u64, first_block + block as u64);
            gamma::draw_many(
                level,
                &shapes,
                &mut RowWords::new(level, self.key, purpose, self.iteration, block),
                &mut draws,
            );
            let rows = rows.chunks_exact_mut(stride).zip(exposures.chunks_exact(stride));
            for (i, ((row, exposure), total)) in rows.zip(totals).enumerate() {
                let multiplied =
                    weighted.as_ref().map_or(exposure, |weighted| &weighted[(first + i) * stride..][..stride]);
                for k in 0..width {
                    let (_, rate) = prior.at((first + i) * width + k);
                    row[k] = draws[i * width + k] / (rate + multiplied[k]);
                    *total += row[k] * exposure[k];
                }
            }
            Ok(())
        };
        let mut totals = vec![0.0; fresh.rows];
        let blocks = fresh.padded_mut().chunks_mut(BLOCK * stride).zip(totals.chunks_mut(BLOCK)).enumerate();
        parallel::each(blocks.collect(), redraw).expect("rows that cannot fail");
        if dirichlet {
            let mut words = xoshiro(self.key, FACTORS + 1 + factor as u64, self.iteration, 0);
            dirichlet::normalize(&mut fresh, prior, &mut words);
        }
        self.factors[factor] = fresh;
        (!dirichlet && totals_wanted).then(|| totals.iter().sum())
    }

    /// Redraws a factor row by row, each given the fresh rows before: a Gibbs step for each.
    fn redraw_in_turn(&mut self, factor: usize, counts: &[u64], sums: &mut [Vec<f64>]) {
        let (structure, layout, prior) = (self.model.structure(), self.model.layout(), self.model.prior(factor));
        let (width, stride) = (self.factors[factor].width, self.factors[factor].stride);
        let symmetric = structure.is_symmetric(factor);
        let mut exposure = vec![0.0; stride];
        for row in 0..self.factors[factor].rows {
            let mut words = xoshiro(self.key, FACTORS + 1 + factor as u64, self.iteration, row as u64);
            if self.dispersion.is_some() {
                structure.weighted_exposure(layout, (factor, row), &self.factors, &self.cells.1, &mut exposure);
            } else {
                structure.exposure(layout, (factor, row), &self.factors, sums, &mut exposure);
            }
            for k in (if symmetric { row } else { 0 })..width {
                let (shape, rate) = prior.at(row * width + k);
                let count = counts[row * stride + k] as f64;
                let fresh = gamma::draw(shape + count, rate + exposure[k], &mut words);
                let old = std::mem::replace(&mut self.factors[factor].row_mut(row)[k], fresh);
                sums[factor][k] += fresh - old;
                if symmetric {
                    self.factors[factor].row_mut(k)[row] = fresh;
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
        let shapes = self.dispersion.iter().map(|dispersion| dispersion.shapes().len());
        let entries = self.model.shapes().into_iter().map(|(rows, width)| rows * width);
        entries.chain(shapes).chain(self.lengths_of_priors()).collect()
    }

    /// A draw has the log-likelihood of the release; a step the sums of the observed rates and of the counts drawn.
    fn statistics(&self) -> [usize; 2] {
        [1, 2]
    }

    fn step(&mut self, progress: &Progress) -> Result<()> {
        let (tally, noise) = self.allocate(0..self.table.rows(), progress)?;
        self.noise = noise;
        self.finish(Cow::Owned(tally));
        Ok(())
    }

    fn describe(&self, statistics: &mut [f64]) {
        statistics.copy_from_slice(&self.last);
    }

    fn record(&mut self, variables: &mut [&mut [f64]], statistics: &mut [f64]) -> Result<()> {
        let laws = (&self.factors[..], self.dispersion.as_ref());
        statistics[0] = likelihood::total(&self.model, laws, &self.table, &Progress::default())?;
        let mut others = variables[self.factors.len()..].iter_mut();
        if let Some(dispersion) = &self.dispersion
            && let Some(variable) = others.next()
        {
            variable.iter_mut().zip(dispersion.shapes()).for_each(|(out, r)| *out = 1.0 / r);
        }
        for &factor in &self.learnt.0 {
            let prior = self.model.prior(factor);
            if let Some(shape) = others.next() {
                shape[0] = prior.shape[0];
            }
            if !prior.is_dirichlet()
                && let Some(rates) = others.next()
            {
                let step = prior.rate.len() / rates.len();
                rates.iter_mut().zip(prior.rate.iter().step_by(step)).for_each(|(out, rate)| *out = *rate);
            }
        }
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
        return Err(Error::domain("released", value, "below 2^31 in size for auxiliary variables"));
    }
    Ok(model.without_rateless_cells(table))
}

/// Counts of noise to start from, for the method that keeps them.
fn no_noise(table: &ReleasedCounts, method: Method) -> Vec<[u32; 2]> {
    if method == Method::Bessel { vec![[0; 2]; table.rows() * table.cols()] } else { vec![] }
}
