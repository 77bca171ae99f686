//! The allocation step of a Gibbs sweep: draws every count given release and rate, and adds its parts up by component.
//!
//! Rows are independent given the factors, and each has its own stream of random words, addressed by (iteration, row). So the
//! tallies, which are whole numbers, do not depend on threads, on how rows are split, or on the order of rows.
//! A row is drawn by one of the [`RowMethod`]s, all exact; `Method::Auto` takes the one that the row's own rates make cheapest.
//! Where counts are overdispersed there is one, cell by cell, which keeps counts and rates for what follows.
//!
//! Source: A. Schein, Z. S. Wu, A. Schofield, M. Zhou, H. Wallach (2019), Locally private Bayesian inference for count
//! models; the auxiliary variables there are summed out but for one method, see `docs/mathematics/factorization.md`.

use super::alias::Aliases;
use super::allocation::{Allocation, Ratios, SweepAddress};
use super::dense_row::DenseRow;
use super::dispersion::Dispersion;
use super::events::Events;
use super::factor_matrix::{FactorMatrix, dot};
use super::model::Model;
use super::products::{Panels, TILE, tile_of};
use super::pseudo_counts::PAIR;
use super::published::Auxiliary;
use super::released_counts::{Alpha, Facts, ReleasedCounts};
use super::row::{HELD_OUT, Row};
use super::split::{LANES, Splitter};
use crate::distributions::bessel::Address;
use crate::distributions::{LARGEST, poisson, two_piece_poisson};
use crate::monitor::Progress;
use crate::numeric::dispatch::{Level, at_level, level};
use crate::stream::{Xoshiro, xoshiro};
use crate::{Error, Result, parallel};
use std::ops::Range;
use std::sync::Mutex;

/// The purpose of the words of the allocation.
const ALLOCATION: u64 = 0x616c_6c6f_6361_7465;
/// The purpose of the words of cells that are drawn eight at a time.
const EIGHT: u64 = 0x0065_6967_6874;
/// The purpose of the blocks of the Bessel draws.
const BESSEL: u64 = 0x0062_6573_7365_6c00;
/// The purpose of the words that split pseudo-counts.
const PSEUDO: u64 = 0x0070_7365_7564_6f00;
/// Cells a thread works on at a time: 0.3 to 4 ms of fifty components at mean counts of .02 to 3. Not tuned.
const BLOCK: usize = 1 << 16;

/// How counts are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The cheapest of the next three, row by row.
    Auto,
    /// Every cell from its two-piece Poisson law.
    Collapsed,
    /// Events where the release is not positive, single cells where it is.
    Split,
    /// Events everywhere.
    Event,
    /// The papers' auxiliary variables.
    Bessel,
}

/// How the counts of one row are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowMethod {
    /// Counts are known: there is no noise.
    Known,
    Dense,
    Split,
    Event,
    Auxiliary,
    Overdispersed,
}

/// What fell to each component: `rows x stride` whole numbers per tally of the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// One array per [`Model::tally_shapes`], padded as matrices are.
    pub parts: Vec<Vec<u64>>,
}

impl Tally {
    /// Nothing yet.
    pub fn new(model: &Model) -> Self {
        let size = |(rows, width): (usize, usize)| rows * width.next_multiple_of(LANES);
        Self { parts: model.tally_shapes().into_iter().map(|shape| vec![0; size(shape)]).collect() }
    }

    /// Adds another part of the same sweep.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.parts.iter_mut().zip(&other.parts) {
            mine.iter_mut().zip(theirs).for_each(|(a, b)| *a += b);
        }
    }

    /// The sum of some, if there are any.
    fn sum(mut all: impl Iterator<Item = Self>) -> Option<Self> {
        let mut sum = all.next()?;
        all.for_each(|tally| sum.add(&tally));
        Some(sum)
    }

    /// All counts.
    pub fn total(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.iter().sum())
    }
}

/// What a sweep keeps of each cell of some rows; each of it may be empty.
#[derive(Debug, Default)]
pub struct Kept<'a> {
    /// The counts of noise, with auxiliary variables.
    pub noise: &'a mut [[u32; 2]],
    /// The counts of overdispersed cells, zero where a cell is not observed.
    pub counts: &'a mut [u32],
    /// Their rates, likewise.
    pub rates: &'a mut [f64],
}

impl<'a> Kept<'a> {
    /// The same in blocks of so many cells.
    fn blocks(self, cells: usize, number: usize) -> Vec<Self> {
        let mut noise = self.noise.chunks_mut(cells);
        let mut counts = self.counts.chunks_mut(cells);
        let mut rates = self.rates.chunks_mut(cells);
        let mut next = || Kept {
            noise: noise.next().unwrap_or_default(),
            counts: counts.next().unwrap_or_default(),
            rates: rates.next().unwrap_or_default(),
        };
        (0..number).map(|_| next()).collect()
    }

    /// What is kept of a row of a block.
    fn row(&mut self, row: usize, cols: usize) -> Kept<'_> {
        fn part<T>(all: &mut [T], cells: Range<usize>) -> &mut [T] {
            all.get_mut(cells).unwrap_or_default()
        }
        let cells = row * cols..(row + 1) * cols;
        Kept {
            noise: part(self.noise, cells.clone()),
            counts: part(self.counts, cells.clone()),
            rates: part(self.rates, cells),
        }
    }
}

/// How counts are distributed and drawn.
#[derive(Clone, Copy, Debug)]
pub struct Laws<'a> {
    /// How they are drawn.
    pub method: Method,
    /// Shapes of multipliers, where counts are overdispersed.
    pub dispersion: Option<&'a Dispersion>,
    /// What is to be known of all shards.
    pub whole: Facts,
}

/// One allocation: what it reads.
pub struct Sweep<'a> {
    model: &'a Model,
    table: &'a ReleasedCounts,
    factors: &'a [FactorMatrix],
    method: Method,
    dispersion: Option<&'a Dispersion>,
    key: [u64; 2],
    iteration: u64,
    sums: Vec<f64>,
    panels: Panels,
    length: usize,
    aliases: Aliases,
    /// Positive releases to a row, of all shards.
    positive: f64,
    /// What a row pays for tables of aliases, in nanoseconds.
    shared: f64,
    level: Level,
    first_row: u64,
}

/// What a thread works with.
struct Worker {
    tally: Tally,
    left: Vec<f64>,
    rates: Vec<f64>,
    parts: Vec<u64>,
    splitter: Splitter,
    events: Events,
    auxiliary: Auxiliary,
    dense: DenseRow,
}

impl<'a> Sweep<'a> {
    /// Prepares the allocation of some rows in an iteration.
    pub fn new(
        model: &'a Model,
        table: &'a ReleasedCounts,
        factors: &'a [FactorMatrix],
        Laws { method, dispersion, whole }: Laws<'a>,
        SweepAddress { key, iteration, first_row }: SweepAddress,
        rows: Range<usize>,
    ) -> Self {
        let right = model.right(factors);
        let sums = right.sums();
        let mut sweep = Self {
            model,
            table,
            factors,
            method,
            dispersion,
            key,
            iteration,
            first_row,
            panels: Panels::default(),
            length: 0,
            aliases: Aliases::default(),
            positive: whole.positive as f64 / (whole.rows as f64).max(1.0),
            shared: 0.0,
            level: level(),
            sums,
        };
        sweep.share_aliases(&whole);
        let mut left = vec![0.0; right.stride];
        let (mut events, mut dense) = (false, false);
        for row in rows {
            model.left(factors, row, &mut left);
            match sweep.way(sweep.expected(&left)) {
                RowMethod::Known => {}
                RowMethod::Event | RowMethod::Split => events = true,
                RowMethod::Dense | RowMethod::Auxiliary | RowMethod::Overdispersed => dense = true,
            }
        }
        if dense {
            sweep.panels = Panels::new(right);
            sweep.length = right.rows;
        }
        if events {
            sweep.aliases = Aliases::new(right, sweep.sums.clone());
        }
        sweep
    }

    /// Rows share tables of aliases. Where a row of the mean count takes them, most rows do, and one more has them for nothing; else
    /// few do, each of which is to be worth twice a row's part of them.
    fn share_aliases(&mut self, whole: &Facts) {
        let (rows, cells) = (whole.rows as f64, whole.rows as f64 * self.table.cols() as f64);
        let observed = (cells - whole.held_out as f64).max(1.0);
        let part = 12.0 * (self.model.right(self.factors).width * self.table.cols()) as f64 / rows;
        self.shared = part;
        let mean_row = self.way((whole.total as f64).max(0.0) * cells / (rows * observed));
        self.shared = if mean_row == RowMethod::Dense { 2.0 * part } else { 0.0 };
    }

    /// The expected count of a row with these weights, were all its cells observed.
    fn expected(&self, left: &[f64]) -> f64 {
        left.iter().zip(&self.sums).map(|(weight, sum)| weight * sum).sum()
    }

    /// How a row is drawn whose rates have this sum.
    fn way(&self, expected: f64) -> RowMethod {
        let (cols, width) = (self.table.cols() as f64, self.model.right(self.factors).width as f64);
        if self.dispersion.is_some() {
            return RowMethod::Overdispersed;
        }
        let (least, greatest) = match self.table.alpha() {
            Alpha::One(0.0) => return RowMethod::Known,
            Alpha::One(alpha) => (*alpha, *alpha),
            Alpha::Each(_) => self.table.alpha_range(),
        };
        let (up, down) = (expected * greatest, expected / least);
        // Beyond this, a row of events would take more memory than its cells: draw them one by one.
        let most = 16.0 * cols + 4096.0;
        let fits = |way| match way {
            RowMethod::Event => down <= most,
            RowMethod::Split => up <= most,
            _ => true,
        };
        match self.method {
            Method::Bessel => RowMethod::Auxiliary,
            Method::Collapsed => RowMethod::Dense,
            Method::Event if fits(RowMethod::Event) => RowMethod::Event,
            Method::Split if fits(RowMethod::Split) => RowMethod::Split,
            Method::Event | Method::Split => RowMethod::Dense,
            Method::Auto => {
                // Nanoseconds per row beyond what all methods take, fitted on one machine to tables of 100 to 3000 columns, 5 to 100
                // components, means of .002 to 1.5, epsilons of .25 to 4: what is chosen takes 1.01 times the least on average.
                let (positive, shared) = (self.positive, self.shared);
                let ways = [
                    (450.0 + cols * (0.7 + 0.016 * width) + 6.3 * positive + 5.0 * expected, RowMethod::Dense),
                    (shared + 3.0 * width + 10.5 * down + 10.0 * expected, RowMethod::Event),
                    (
                        shared + 2.0 * width + 30.0 * up + positive * (20.0 + 0.08 * width) + 6.5 * expected,
                        RowMethod::Split,
                    ),
                ];
                let fitting = ways.into_iter().filter(|(_, way)| fits(*way));
                fitting.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(RowMethod::Dense, |(_, way)| way)
            }
        }
    }

    /// Allocates some rows, of which something may be kept.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; [`Error::Domain`] where rates have grown beyond 2^53.
    pub fn rows(&self, rows: Range<usize>, kept: Kept<'_>, progress: &Progress) -> Result<Tally> {
        let cols = self.table.cols();
        let tile = tile_of(cols);
        let block = (BLOCK / cols.max(1)).clamp(tile, 256).next_multiple_of(tile);
        let starts: Vec<usize> = rows.clone().step_by(block).collect();
        let kept = kept.blocks((block * cols).max(1), starts.len());
        let one = |worker: &mut Worker, (start, mut kept): (usize, Kept<'_>)| {
            let stop = rows.end.min(start + block);
            at_level!(self.level, self.block(start..stop, &mut kept, worker))?;
            progress.advance((stop - start) as u64)
        };
        let workers = with_workers(starts.into_iter().zip(kept).collect(), || self.worker(), one)?;
        Ok(Tally::sum(workers.into_iter().map(|worker| worker.tally)).unwrap_or_else(|| Tally::new(self.model)))
    }

    fn worker(&self) -> Worker {
        let size = tile_of(self.table.cols());
        let stride = self.model.right(self.factors).stride;
        Worker {
            tally: Tally::new(self.model),
            left: vec![0.0; size * stride],
            rates: vec![0.0; size * self.length],
            parts: vec![0; stride],
            splitter: Splitter::new(stride),
            events: Events::new(self.table.cols()),
            auxiliary: Auxiliary::new(if self.method == Method::Bessel { self.table.cols() } else { 0 }),
            dense: DenseRow::new(self.level, self.length),
        }
    }
}

impl Sweep<'_> {
    /// Allocates the rows of a block, tile by tile.
    #[inline(always)]
    fn block(&self, rows: Range<usize>, kept: &mut Kept<'_>, worker: &mut Worker) -> Result<()> {
        let stride = self.sums.len();
        let cols = self.table.cols();
        // Place p of a tile has its weights at `left[p * stride..]` and its rates at `rates[p * length..]`.
        let size = tile_of(cols);
        for start in rows.clone().step_by(size) {
            let tile = size.min(rows.end - start);
            let mut ways = [(RowMethod::Known, 0); TILE];
            // Rows whose rates are formed stand together at the front of the tile, the others at its end.
            let (mut formed, mut end) = (0, tile);
            for (i, way) in ways.iter_mut().enumerate().take(tile) {
                self.model.left(self.factors, start + i, &mut worker.left[formed * stride..(formed + 1) * stride]);
                let expected = self.expected(&worker.left[formed * stride..(formed + 1) * stride]);
                let limit = if self.method == Method::Bessel { 2_147_483_648.0 } else { LARGEST };
                if expected >= limit || expected.is_nan() {
                    let requirement = "of a sum that stays below 2^53 in a row (2^31 with auxiliary variables)";
                    return Err(Error::domain("rates", format_args!("{expected} in row {}", start + i), requirement));
                }
                let method = self.way(expected);
                if matches!(method, RowMethod::Dense | RowMethod::Auxiliary | RowMethod::Overdispersed) {
                    *way = (method, formed);
                    formed += 1;
                } else {
                    end -= 1;
                    worker.left.copy_within(formed * stride..(formed + 1) * stride, end * stride);
                    *way = (method, end);
                }
            }
            let Worker { left, rates, .. } = &mut *worker;
            self.panels.rates(self.level, &left[..formed * stride], stride, &mut rates[..formed * self.length]);
            for (i, (way, place)) in ways.into_iter().enumerate().take(tile) {
                self.row(start + i, place, way, kept.row(start - rows.start + i, cols), worker)?;
            }
        }
        Ok(())
    }

    /// Draws one row, at a place of its tile.
    #[inline(always)]
    fn row(&self, row: usize, place: usize, way: RowMethod, kept: Kept<'_>, worker: &mut Worker) -> Result<()> {
        let stride = self.sums.len();
        let right = self.model.right(self.factors);
        let Worker { tally, left, rates, parts, splitter, events, auxiliary, dense } = worker;
        let left = &left[place * stride..(place + 1) * stride];
        // The last tally is by column, and a row adds to it as it goes; the others are by an index of the row, and get its parts.
        let Some((last, others)) = tally.parts.split_last_mut() else { return Ok(()) };
        parts.fill(0);
        let row_there = self.first_row + row as u64;
        let mut words = xoshiro(self.key, ALLOCATION, self.iteration, row_there);
        let data = self.table.row(row);
        let one = if let Alpha::One(alpha) = self.table.alpha() { *alpha } else { 0.0 };
        let ratios = Ratios::new(one, self.table.alphas(row));
        let first = self.model.first_column(row);
        let mut share = Allocation { left, right, splitter, cells: last, parts };
        let positive = || data.codes.iter().enumerate().filter(|(_, code)| **code > 0);
        match way {
            RowMethod::Known => {
                for (column, &code) in positive() {
                    share.count(column, data.value(column, code) as u64, &mut words);
                }
            }
            RowMethod::Dense if ratios.own.is_none() => {
                let rates = &rates[place * self.length..(place + 1) * self.length];
                let address = (self.key, [EIGHT, self.iteration, row_there]);
                let cells = (&data, self.table.positive_cells().row(row));
                dense.draw(self.level, address, cells, (rates, one), &mut words, &mut share);
            }
            RowMethod::Overdispersed => {
                let rates = &rates[place * self.length..(place + 1) * self.length];
                let Some(dispersion) = self.dispersion else { return Ok(()) };
                let address = (self.key, [EIGHT, self.iteration, row_there]);
                let cells = (&data, self.table.positive_cells().row(row));
                let laws = (rates, dispersion.in_row(row), ratios);
                dense.draw_overdispersed(self.level, address, cells, laws, &mut words, &mut share);
                dense.keep(data.codes, rates, (kept.counts, kept.rates));
            }
            RowMethod::Dense => {
                let rates = &rates[place * self.length..(place + 1) * self.length];
                let cells = data.codes[first.min(data.codes.len())..].iter().zip(&rates[first.min(rates.len())..]);
                for (at, (&code, &rate)) in cells.enumerate() {
                    let column = first + at;
                    share.count(column, direct(&data, column, code, rate, &ratios, &mut words), &mut words);
                }
            }
            RowMethod::Auxiliary => {
                let rates = &rates[place * self.length..(place + 1) * self.length];
                let (key, iteration) = (self.key, self.iteration);
                let address = Address { key, purpose: BESSEL, iteration, row: row_there };
                let noise = kept.noise;
                auxiliary.draw_row(&data, rates, &ratios, noise, address, &mut words)?;
                for (column, &rate) in rates.iter().enumerate().take(self.table.cols()).skip(first) {
                    let (code, alpha) = (data.codes[column], ratios.at(column));
                    if code != HELD_OUT {
                        let value = data.value(column, code);
                        let count = if alpha > 0.0 {
                            auxiliary.count(column, value, rate, &mut noise[column], &mut words)
                        } else {
                            value as u64
                        };
                        share.count(column, count, &mut words);
                    }
                }
            }
            RowMethod::Split => {
                for (column, &code) in positive() {
                    let rate = dot(left, right.row(column));
                    share.count(column, direct(&data, column, code, rate, &ratios, &mut words), &mut words);
                }
                Events::where_not_positive(&self.aliases, left, &data, ratios, &mut words, &mut share);
            }
            RowMethod::Event => {
                if ratios.own.is_some() {
                    for (column, &code) in positive().filter(|(column, _)| ratios.at(*column) == 0.0) {
                        share.count(column, data.value(column, code) as u64, &mut words);
                    }
                }
                events.everywhere(&self.aliases, left, &data, ratios, &mut words, &mut share);
                for &column in &events.rejected {
                    let column = column as usize;
                    let rate = dot(left, right.row(column));
                    let code = data.codes[column];
                    share.count(column, direct(&data, column, code, rate, &ratios, &mut words), &mut words);
                }
            }
        }
        if self.table.held_out() > 0 && self.model.imputes() {
            let has_rate = |column: &usize| self.model.structure().has_rate(row, *column);
            for column in self.table.held_out_in(row).filter(has_rate) {
                let rate = dot(left, right.row(column));
                share.count(column, poisson::draw(rate, &mut words) as u64, &mut words);
            }
        }
        add_parts(self.model, row, parts, others);
        Ok(())
    }
}

/// Adds the parts of a row to the tallies by an index of the row.
#[inline(always)]
fn add_parts(model: &Model, row: usize, parts: &[u64], others: &mut [Vec<u64>]) {
    for (part, index) in model.places(row) {
        let sum = &mut others[part][index * parts.len()..(index + 1) * parts.len()];
        sum.iter_mut().zip(parts).for_each(|(sum, n)| *sum += n);
    }
}

/// Adds to a tally the pseudo-counts of some cells, in rising order, by component.
pub fn split_pseudo_counts(
    model: &Model,
    factors: &[FactorMatrix],
    cells: &[usize],
    SweepAddress { key, iteration, first_row }: SweepAddress,
    sum: &mut Tally,
) {
    let (right, level) = (model.right(factors), level());
    let (stride, cols) = (right.stride, right.rows.max(1));
    // The first worker adds to what is there.
    let there = Mutex::new(Some(std::mem::take(sum)));
    let take = || there.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
    let tally = || take().unwrap_or_else(|| Tally::new(model));
    let new = || (tally(), vec![0.0; stride], vec![0; stride], Splitter::new(stride));
    let one = |(tally, left, parts, splitter): &mut (Tally, Vec<f64>, Vec<u64>, _), cells: &[usize]| {
        let row = cells[0] / cols;
        let Some((last, others)) = tally.parts.split_last_mut() else { return Ok(()) };
        model.left(factors, row, left);
        parts.fill(0);
        let mut words = xoshiro(key, PSEUDO, iteration, first_row + row as u64);
        let mut share = Allocation { left, right, splitter, cells: last, parts };
        at_level!(level, cells.iter().for_each(|cell| share.count(cell % cols, PAIR, &mut words)));
        add_parts(model, row, parts, others);
        Ok(())
    };
    let rows = cells.chunk_by(|a, b| a / cols == b / cols).collect();
    let workers = with_workers(rows, new, one).expect("rows that cannot fail");
    *sum = Tally::sum(workers.into_iter().map(|(tally, ..)| tally).chain(take())).unwrap_or_default();
}

/// Does jobs by workers, of which there are as many as threads that work at a time; these.
fn with_workers<J: Send, W: Send>(
    jobs: Vec<J>,
    new: impl Fn() -> W + Sync + Send,
    work: impl Fn(&mut W, J) -> Result<()> + Sync + Send,
) -> Result<Vec<W>> {
    let workers = Mutex::new(Vec::new());
    let locked = || workers.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let one = |job: J| {
        let found = locked().pop();
        let mut worker = found.unwrap_or_else(&new);
        work(&mut worker, job)?;
        locked().push(worker);
        Ok(())
    };
    parallel::each(jobs, one)?;
    Ok(workers.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

/// The count of a cell, drawn from its law; nothing where it is held out.
#[inline(always)]
fn direct(data: &Row<'_>, column: usize, code: i8, rate: f64, ratios: &Ratios<'_>, rng: &mut Xoshiro) -> u64 {
    let alpha = ratios.at(column);
    if code > 0 {
        two_piece_poisson::draw_near(data.value(column, code), rate, alpha, rng) as u64
    } else if code != HELD_OUT {
        poisson::draw(alpha * rate, rng) as u64
    } else {
        0
    }
}
