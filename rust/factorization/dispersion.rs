//! Overdispersion: how far counts spread beyond Poisson ones, and what each cell's rate is multiplied by.
//!
//! y_i ~ Poisson(mu_i e_i), e_i ~ Gamma(r, r) with an r for the table, for each row or for each column: the variance of a count is
//! mu + mu^2 / r. With the multipliers e summed out, the likelihood of r is
//!   sum_i sum_(j < y_i) ln(1 + j / r) - (r + y_i) ln(1 + mu_i / r),
//! and ln r is redrawn by slice sampling under a normal prior. Then e_i ~ Gamma(r + y_i, r + mu_i): with them the factors have
//! the conditionals of Poisson counts, exposed to e_i times what they were. Blocks of rows that are mostly empty have them as
//! [`super::pseudo_counts`] says. Multipliers are not kept beyond their sweep.
//!
//! Sources: the model of M. Zhou, L. Carin (2015), Negative binomial process count and mixture modeling; R. Neal (2003), Slice
//! sampling (doubling).

use super::allocation::SweepAddress;
use super::negative_binomial::LARGEST_RELEASE;
use super::pseudo_counts::{self, PseudoCounts};
use super::released_counts::ReleasedCounts;
use super::row::{HELD_OUT, RowShapes};
use crate::distributions::words::RowWords;
use crate::distributions::{RandomSource, gamma};
use crate::numeric::dispatch::{Level, at_level, level};
use crate::numeric::elementary::ln_normal;
use crate::numeric::exact_sum::{self, LIMBS};
use crate::numeric::floats::LANES;
use crate::numeric::places::places_of;
use crate::numeric::special::gamma::{digamma, log_gamma};
use crate::stream::{Xoshiro, xoshiro};
use crate::{Error, Result, parallel};
use std::ops::Range;
use std::sync::OnceLock;

/// The purpose of the words of multipliers.
const MULTIPLIERS: u64 = 0x006d_756c_7469_706c;
/// The purpose of the words of multipliers that are mostly one, and of pseudo-counts.
const PSEUDO_COUNTS: u64 = 0x7073_6575_646f_0000;
/// Rows whose pseudo-counts are drawn together if at all, with words of their own: draws depend on it.
const ROWS: usize = 16;
/// Cells whose multipliers are drawn each by itself and together, of whole rows: draws depend on it.
const TOGETHER: usize = 1 << 11;
/// The purpose of the words of r.
const SHAPES: u64 = 0x6469_7370_6572_7365;
/// The width of a slice of ln r before it is doubled, for a single positive count; for n of them it is a root of n less, as
/// the deviation of a posterior is, several of which take the fewest densities. It may depend on counts, which r is redrawn given.
const WIDTH: f64 = 60.0;
/// ln r stays within this of zero: beyond it counts cannot be told from Poisson ones, or from nothing.
const FARTHEST: f64 = 18.0;
/// So many cells are worth a table of the law of their multipliers: eight for each of its strips. Not tuned.
const WORTH: usize = 1 << 13;
/// Counts up to here have logarithms in common where there are [`MANY`].
const FEW: usize = 8;
const MANY: usize = 1024;
/// Cells whose positive counts are listed together, in 8 KiB. Not tuned.
const LISTED: usize = 1 << 11;
/// Counts up to here are looked up by how many are larger.
pub const SHORT: usize = 64;

/// What has an r of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispersionAxis {
    /// The table.
    Table,
    /// Each row.
    Rows,
    /// Each column.
    Columns,
}

/// The shapes r, and the prior of their logarithms where they are learnt.
#[derive(Clone, Debug, PartialEq)]
pub struct Dispersion {
    axis: DispersionAxis,
    shapes: Vec<f64>,
    prior: Option<[f64; 2]>,
}

impl Dispersion {
    /// Of a table: shapes r > 0 to start from, and mean and standard deviation of ln r where it is learnt.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of them; [`Error::Domain`] for one that is not in [exp(-18), exp(18)], or a prior
    /// without a positive deviation.
    pub fn new(
        axis: DispersionAxis,
        shapes: Vec<f64>,
        prior: Option<[f64; 2]>,
        table: &ReleasedCounts,
    ) -> Result<Self> {
        let expected = match axis {
            DispersionAxis::Table => 1,
            DispersionAxis::Rows => table.rows(),
            DispersionAxis::Columns => table.cols(),
        };
        Error::require_shape("dispersion", [expected], [shapes.len()])?;
        let sound = |r: f64| r > 0.0 && r.ln().abs() <= FARTHEST;
        Error::require_all(&shapes, sound, "dispersion", "between exp(-18) and exp(18) in its inverse")?;
        if let Some([mean, deviation]) = prior {
            let sound = mean.is_finite() && deviation > 0.0 && deviation.is_finite();
            let found = format_args!("({mean}, {deviation})");
            Error::require(sound, "dispersion_prior", found, "a mean and a positive deviation")?;
        }
        Ok(Self { axis, shapes, prior })
    }

    /// Refuses a model or a table whose counts cannot be overdispersed.
    ///
    /// # Errors
    /// [`Error::Domain`] for a release of 2^20 or more, or a model whose conditionals need Poisson counts.
    pub fn check(&self, imputes: bool, table: &ReleasedCounts) -> Result<()> {
        if let Some(value) = table.beyond(LARGEST_RELEASE) {
            return Err(Error::domain("released", value, "below 2^20 in size for overdispersed counts"));
        }
        Error::require(!imputes, "likelihood", "negative binomial", "Poisson where factors have Dirichlet laws")
    }

    /// All shapes.
    pub fn shapes(&self) -> &[f64] {
        &self.shapes
    }

    /// The shapes of a row.
    pub fn in_row(&self, row: usize) -> RowShapes<'_> {
        match self.axis {
            DispersionAxis::Rows => RowShapes::new(&self.shapes[row..=row]),
            DispersionAxis::Table | DispersionAxis::Columns => RowShapes::new(&self.shapes),
        }
    }

    /// Whether shapes are learnt that the cells of all rows tell of.
    pub fn is_shared(&self) -> bool {
        self.axis != DispersionAxis::Rows && self.prior.is_some()
    }

    /// Whether each row has a shape.
    pub fn is_of_rows(&self) -> bool {
        self.axis == DispersionAxis::Rows
    }

    /// Whether shapes are learnt.
    pub fn is_learnt(&self) -> bool {
        self.prior.is_some()
    }

    /// Sets all shapes.
    pub fn set_shapes(&mut self, shapes: &[f64]) {
        self.shapes.copy_from_slice(shapes);
    }

    /// A draw of the shape of a group, given how many counts of its cells are larger than 0, 1, ..., and what these cells say of some
    /// shapes besides that, as [`TableTails::sums`] has it of all rows.
    pub fn drawn(
        &self,
        (group, short): (usize, &[u64; SHORT]),
        address: SweepAddress,
        others: impl Fn(&[f64]) -> Vec<f64>,
    ) -> f64 {
        let [mean, deviation] = self.prior.unwrap_or([0.0, 1.0]);
        let first = if self.axis == DispersionAxis::Rows { address.first_row } else { 0 };
        let mut rng = xoshiro(address.key, SHAPES, address.iteration, first + group as u64);
        let densities = |logs: &[f64]| {
            let shapes: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
            let each = logs.iter().zip(&shapes).zip(others(&shapes));
            each.map(|((log, &r), others)| of_short(short, r) + others - 0.5 * ((log - mean) / deviation).powi(2))
                .collect()
        };
        let width = WIDTH / (1.0 + short[0] as f64).sqrt();
        slice::<3>(self.shapes[group].ln(), width, [-FARTHEST, FARTHEST], densities, &mut rng).exp()
    }

    /// Redraws shapes that are learnt, given rates and counts of all cells, both zero where a cell is not observed.
    pub fn redraw(&mut self, rates: &[f64], counts: &[u32], cols: usize, address: SweepAddress) {
        if self.prior.is_none() {
            return;
        }
        let of_table = |group: usize, rates: &[f64], tails: TableTails| {
            let values = |shapes: &[f64]| tails.sums(rates, shapes).iter().map(|sum| exact_sum::value(sum)).collect();
            self.drawn((group, &tails.short), address, values)
        };
        self.shapes = match self.axis {
            DispersionAxis::Table => vec![of_table(0, rates, TableTails::new(rates, counts, cols))],
            DispersionAxis::Columns => parallel::map(cols, |column| {
                let rates = column_of(rates, cols, column);
                of_table(column, &rates, TableTails::new(&rates, &column_of(counts, cols, column), 1))
            }),
            DispersionAxis::Rows => parallel::map(self.shapes.len(), |row| {
                let here = row * cols..(row + 1) * cols;
                let (rates, level) = (&rates[here.clone()], level());
                let tails = Tails::new(rates, &counts[here]);
                self.drawn((row, &tails.short), address, |shapes| at_level!(level, tails.of_shapes(rates, shapes)))
            }),
        };
    }

    /// What shapes that are learnt are set by, shape by shape: the number of observed cells in some rows and their sum of E e - E ln e,
    /// given E e and E e - E ln e of the multipliers of all cells.
    pub fn sums(&self, table: &ReleasedCounts, multipliers: &[[f64; 2]], rows: Range<usize>) -> Vec<[f64; 2]> {
        let mut sums = vec![[0.0; 2]; self.shapes.len()];
        let cols = table.cols();
        for row in rows {
            let codes = table.row(row).codes;
            let multipliers = &multipliers[row * cols..(row + 1) * cols];
            for (column, (multiplier, _)) in
                multipliers.iter().zip(codes).enumerate().filter(|(_, (_, code))| **code != HELD_OUT)
            {
                let group = [0, row, column][self.axis as usize];
                sums[group] = [sums[group][0] + 1.0, sums[group][1] + multiplier[1]];
            }
        }
        sums
    }

    /// Sets shapes that are learnt where the expected logarithm of their density is largest, given [`Self::sums`] over all rows:
    /// n (ln r + 1 - psi(r)) = sum (E e - E ln e), but for the prior.
    pub fn maximize(&mut self, sums: &[[f64; 2]]) {
        let Some([mean, deviation]) = self.prior else { return };
        for (r, &[number, sum]) in self.shapes.iter_mut().zip(sums) {
            let slope = |log: f64| {
                let r = log.exp();
                r * (number * (log + 1.0 - digamma(r)) - sum) - (log - mean) / (deviation * deviation)
            };
            let (mut low, mut high) = (-FARTHEST, FARTHEST);
            while high - low > 1e-14 * (1.0 + high.abs()) {
                let middle = 0.5 * (low + high);
                *(if slope(middle) > 0.0 { &mut low } else { &mut high }) = middle;
            }
            *r = (0.5 * (low + high)).exp();
        }
    }

    /// The log-density of the prior of what is learnt, but for a constant.
    pub fn log_prior(&self) -> f64 {
        self.log_prior_of(0..self.shapes.len())
    }

    /// The same of some shapes.
    pub fn log_prior_of(&self, which: Range<usize>) -> f64 {
        let Some([mean, deviation]) = self.prior else { return 0.0 };
        self.shapes[which].iter().map(|r| -0.5 * ((r.ln() - mean) / deviation).powi(2)).sum()
    }

    /// Turns the rates of all cells into multipliers, zero where a cell is not observed. Returns the cells that have pseudo-counts in
    /// place of none, in rising order, and the largest multiplier. A sum over the cells of a row costs as much as so many products
    /// that are summed; of all parts of the table there are so many cells.
    pub fn draw_multipliers(
        &self,
        table: &ReleasedCounts,
        counts: &[u32],
        rates: &mut [f64],
        address: SweepAddress,
        [summed, whole]: [usize; 2],
    ) -> (Vec<usize>, f64) {
        let (cols, level) = (table.cols(), level());
        // One shape serves all cells whose count is zero: made when a block first asks for it. A row's own does not, for what is here
        // may be the one row of a part.
        let many = whole >= WORTH && !self.is_of_rows();
        let table_of_shape = OnceLock::new();
        let common = || match self.shapes[..] {
            [r] if many => table_of_shape.get_or_init(|| gamma::ShapeTable::new(r)).as_ref().map(|table| (r, table)),
            _ => None,
        };
        let harmonic = |shapes: &[f64]| shapes.len() as f64 / shapes.iter().map(|r| 1.0 / r).sum::<f64>();
        let of_all = harmonic(&self.shapes);
        let scratch = || (MultiplierScratch::default(), PseudoCounts::default());
        let one_block = |(dense, sparse): &mut (MultiplierScratch, PseudoCounts),
                         block: usize,
                         cells: &mut [RowBlock<'_>]| {
            for RowBlock { rates, counts, pairs, most } in cells {
                let row = block * ROWS;
                // Other rows may be elsewhere.
                let typical = match self.axis {
                    DispersionAxis::Rows => harmonic(&self.shapes[row..row + counts.len() / cols.max(1)]),
                    DispersionAxis::Table | DispersionAxis::Columns => of_all,
                };
                let is_sparse = pseudo_counts::are_cheaper(level, counts, typical, summed);
                if is_sparse {
                    let first = address.first_row / ROWS as u64 + block as u64;
                    let mut words = RowWords::new(level, address.key, PSEUDO_COUNTS, address.iteration, first);
                    let rows = (0..).step_by(cols).zip(rates.chunks_mut(cols).zip(counts.chunks(cols)));
                    for (row, (start, (rates, counts))) in (row..).zip(rows) {
                        sparse.find(level, start, (counts, rates), self.in_row(row), &mut words);
                        at_level!(level, ones(table.row(row).codes, rates));
                    }
                    sparse.draw(level, rates, &mut words, |place| pairs.push(block * ROWS * cols + place as usize));
                    pairs.sort_unstable();
                } else {
                    let together = (TOGETHER / cols).clamp(1, ROWS);
                    let some = rates.chunks_mut(together * cols).zip(counts.chunks(together * cols));
                    for (row, (rates, counts)) in (row..).step_by(together).zip(some) {
                        let place = address.first_row + row as u64;
                        let words = RowWords::new(level, address.key, MULTIPLIERS, address.iteration, place);
                        let laws = (row..row + counts.len() / cols).map(|row| (table.row(row).codes, self.in_row(row)));
                        dense.draw_rows(level, (cols, counts, rates), laws, common(), words);
                    }
                }
                *most = at_level!(level, largest(rates));
            }
            Ok(())
        };
        let block = ROWS * cols.max(1);
        let blocks = rates.chunks_mut(block).zip(counts.chunks(block));
        let mut cells: Vec<_> =
            blocks.map(|(rates, counts)| RowBlock { rates, counts, pairs: vec![], most: 0.0 }).collect();
        parallel::pieces(&mut cells, 1, scratch, one_block).expect("rows that cannot fail");
        let most = cells.iter().fold(0.0, |most: f64, block| most.max(block.most));
        (cells.into_iter().flat_map(|block| block.pairs).collect(), most)
    }
}

/// A block of rows: rates, which multipliers replace, and counts; which cells have pseudo-counts, and the largest multiplier.
struct RowBlock<'a> {
    rates: &'a mut [f64],
    counts: &'a [u32],
    pairs: Vec<usize>,
    most: f64,
}

/// Multipliers of one, but zero where a cell is not observed.
#[inline(always)]
fn ones(codes: &[i8], multipliers: &mut [f64]) {
    for (multiplier, &code) in multipliers.iter_mut().zip(codes) {
        *multiplier = if code == HELD_OUT { 0.0 } else { 1.0 };
    }
}

/// What a thread draws the multipliers of some rows with, each by itself.
#[derive(Default)]
struct MultiplierScratch {
    places: Vec<u32>,
    small: Vec<u32>,
    shapes: Vec<f64>,
    draws: Vec<f64>,
    others: Vec<f64>,
    of_table: gamma::TableScratch,
}

impl MultiplierScratch {
    /// Replaces the rates of some rows, of these codes and shapes, by multipliers, with the table of the law of those of no count if
    /// there is one.
    fn draw_rows<'a>(
        &mut self,
        level: Level,
        (cols, counts, rates): (usize, &[u32], &mut [f64]),
        laws: impl Iterator<Item = (&'a [i8], RowShapes<'a>)> + Clone,
        common: Option<(f64, &gamma::ShapeTable)>,
        mut words: RowWords,
    ) {
        let Self { places, small, shapes, draws, others, of_table } = self;
        [&mut *shapes, &mut *draws, &mut *others].into_iter().for_each(|of_cells| of_cells.resize(counts.len(), 0.0));
        places.resize(counts.len() + LANES, 0);
        if let Some((r, table)) = common {
            table.draw_many(level, &mut words, draws, of_table);
            // A variable of shape r + y is one of shape r and one of shape y, which for the smallest counts is a logarithm.
            let number = places_of(level, counts, 0, places, |count| (1..=gamma::WHOLE).contains(&count));
            small.clear();
            small.extend(places[..number].iter().map(|&place| counts[place as usize]));
            gamma::draw_whole(level, small, &mut words, &mut others[..number]);
            places[..number].iter().zip(&*others).for_each(|(&place, &draw)| draws[place as usize] += draw);
            let number = places_of(level, counts, 0, places, |count| count > gamma::WHOLE);
            let cells = shapes.iter_mut().zip(&places[..number]);
            cells.for_each(|(shape, &place)| *shape = r + f64::from(counts[place as usize]));
            gamma::draw_many(level, &shapes[..number], &mut words, &mut others[..number]);
            places[..number].iter().zip(&*others).for_each(|(&place, &draw)| draws[place as usize] = draw);
        } else {
            for ((counts, shapes), (_, own)) in counts.chunks(cols).zip(shapes.chunks_mut(cols)).zip(laws.clone()) {
                for ((column, &count), shape) in counts.iter().enumerate().zip(shapes) {
                    *shape = own.at(column) + f64::from(count);
                }
            }
            gamma::draw_many(level, shapes, &mut words, draws);
        }
        for ((draws, rates), (codes, own)) in draws.chunks(cols).zip(rates.chunks_mut(cols)).zip(laws) {
            at_level!(level, divided(draws, own, codes, rates));
        }
    }
}

/// The multipliers of a row in place of its rates, from gamma variables of rate one.
#[inline(always)]
fn divided(draws: &[f64], shapes: RowShapes<'_>, codes: &[i8], rates: &mut [f64]) {
    #[inline(always)]
    fn each(draws: &[f64], shape: impl Fn(usize) -> f64, codes: &[i8], rates: &mut [f64]) {
        for (column, ((rate, &draw), &code)) in rates.iter_mut().zip(draws).zip(codes).enumerate() {
            let multiplier = draw / (shape(column) + *rate);
            *rate = if code == HELD_OUT { 0.0 } else { multiplier };
        }
    }
    match shapes.one() {
        Some(r) => each(draws, |_| r, codes, rates),
        None => each(draws, |column| shapes.at(column), codes, rates),
    }
}

/// `sum_i ln(1 + mu_i / r)` of each r: a logarithm for each product of 32 terms, or where one is beyond every double, of eight, each
/// of which is below 2^53 e^18.
#[inline(always)]
fn of_rates<const N: usize>(rates: &[f64], shapes: [f64; N]) -> [f64; N] {
    let mut sums = products::<32, N>(rates, shapes);
    for (sum, r) in sums.iter_mut().zip(shapes) {
        if sum.is_nan() {
            [*sum] = products::<8, 1>(rates, [r]);
        }
    }
    sums
}

#[inline(always)]
fn products<const TERMS: usize, const N: usize>(rates: &[f64], shapes: [f64; N]) -> [f64; N] {
    let inverse = shapes.map(|r| 1.0 / r);
    let mut sums = [[0.0; 8]; N];
    let (eights, rest) = rates.as_chunks::<8>();
    for eights in eights.chunks(TERMS) {
        let mut products = [[1.0; 8]; N];
        for rates in eights {
            for (products, inverse) in products.iter_mut().zip(inverse) {
                for lane in 0..8 {
                    products[lane] *= 1.0 + rates[lane] * inverse;
                }
            }
        }
        for (sums, products) in sums.iter_mut().zip(products) {
            for lane in 0..8 {
                // No number where the product is beyond every double.
                sums[lane] += ln_normal(products[lane]) + 0.0 * products[lane];
            }
        }
    }
    if !rest.is_empty() {
        let rest = eight(rest);
        for (sums, inverse) in sums.iter_mut().zip(inverse) {
            for lane in 0..8 {
                sums[lane] += ln_normal(1.0 + rest[lane] * inverse);
            }
        }
    }
    sums.map(|sums| sums.iter().sum())
}

/// Fewer than eight numbers, and zeros.
#[inline(always)]
fn eight(some: &[f64]) -> [f64; 8] {
    let mut found = [0.0; 8];
    found[..some.len()].copy_from_slice(some);
    found
}

/// The largest of some, which are not negative.
#[inline(always)]
fn largest(rates: &[f64]) -> f64 {
    let mut most = [0.0; 8];
    let (eights, rest) = rates.as_chunks::<8>();
    for rates in eights {
        for lane in 0..8 {
            most[lane] = if rates[lane] > most[lane] { rates[lane] } else { most[lane] };
        }
    }
    most.into_iter().chain(rest.iter().copied()).fold(0.0, f64::max)
}

/// `sum_i y_i ln(1 + mu_i / r)` over counts that are not zero.
#[inline(always)]
fn of_counts(rates: &[f64], counts: &[f64], r: f64) -> f64 {
    let inverse = 1.0 / r;
    let mut sums = [0.0; 8];
    let (eights, rest) = rates.as_chunks::<8>();
    let (counts, last) = counts.as_chunks::<8>();
    for (rates, counts) in eights.iter().zip(counts) {
        for lane in 0..8 {
            sums[lane] += counts[lane] * ln_normal(1.0 + rates[lane] * inverse);
        }
    }
    if !rest.is_empty() {
        let (rates, counts) = (eight(rest), eight(last));
        for lane in 0..8 {
            sums[lane] += counts[lane] * ln_normal(1.0 + rates[lane] * inverse);
        }
    }
    sums.iter().sum()
}

/// How many counts are larger than 0, 1, ..., the counts beyond, and the rates of all that are positive.
#[derive(Clone, Debug)]
struct Tails {
    short: [u64; SHORT],
    long: Vec<f64>,
    /// Rates of counts of 1, of 2, ..., of `FEW`, up to an end each, and then of the others, with these.
    rates: Vec<f64>,
    ends: [usize; FEW],
    counts: Vec<f64>,
}

impl Tails {
    fn new(all_rates: &[f64], counts: &[u32]) -> Self {
        let level = level();
        let mut short = [0; SHORT];
        at_level!(level, numbers_above(counts, &mut short[..1]));
        let number = short[0] as usize;
        let (mut own_rates, mut own_counts) = (Vec::with_capacity(number), Vec::with_capacity(number));
        let mut places = vec![0; counts.len().min(LISTED) + LANES];
        for (rates, counts) in all_rates.chunks(LISTED).zip(counts.chunks(LISTED)) {
            let found = places_of(level, counts, 0, &mut places, |count| count > 0);
            own_rates.extend(places[..found].iter().map(|&place| rates[place as usize]));
            own_counts.extend(places[..found].iter().map(|&place| counts[place as usize]));
        }
        let mut long = vec![];
        for &count in own_counts.iter().filter(|count| **count > FEW as u32) {
            short[(count as usize).min(SHORT) - 1] += 1;
            if count > SHORT as u32 {
                long.push(f64::from(count));
            }
        }
        (FEW..SHORT - 1).rev().for_each(|j| short[j] += short[j + 1]);
        at_level!(level, numbers_above(&own_counts, &mut short[..FEW]));
        // Rates in the order of their counts, where there are so many that logarithms of products are saved by it.
        let few = if number >= MANY { FEW } else { 0 };
        let mut next: [usize; FEW + 1] =
            std::array::from_fn(|class| if few > 0 { number - short[class] as usize } else { 0 });
        let mut rates = vec![0.0; number];
        for (&rate, &count) in own_rates.iter().zip(&own_counts) {
            let class = if count as usize <= few { count as usize - 1 } else { FEW };
            rates[next[class]] = rate;
            next[class] += 1;
        }
        let ends = std::array::from_fn(|class| next[class]);
        let counts = own_counts.into_iter().filter(|count| *count as usize > few).map(f64::from).collect();
        Self { short, long, rates, ends, counts }
    }

    /// The terms of counts beyond [`SHORT`] from there on.
    fn of_long(&self, r: f64) -> f64 {
        if self.long.is_empty() {
            return 0.0;
        }
        let start = log_gamma(r + SHORT as f64);
        self.long.iter().map(|y| log_gamma(r + y) - start - (y - SHORT as f64) * r.ln()).sum()
    }

    /// [`Self::others`] of any number of shapes.
    #[inline(always)]
    fn of_shapes(&self, all_rates: &[f64], shapes: &[f64]) -> Vec<f64> {
        if let &[a, b, c] = shapes {
            return self.others(all_rates, [a, b, c]).to_vec();
        }
        let mut values = vec![0.0; shapes.len()];
        for (value, &r) in values.iter_mut().zip(shapes) {
            [*value] = self.others(all_rates, [r]);
        }
        values
    }

    /// `sum_i sum_(j < y_i) ln(1 + j / r) - (r + y_i) ln(1 + mu_i / r)` of each r without the terms of j below [`SHORT`], given the
    /// rates of all cells once more.
    #[inline(always)]
    fn others<const N: usize>(&self, all_rates: &[f64], shapes: [f64; N]) -> [f64; N] {
        let (mut of_few, mut start) = ([0.0; N], 0);
        for (count, &end) in (1..).zip(&self.ends) {
            if start < end {
                let of_class = of_rates(&self.rates[start..end], shapes);
                of_few.iter_mut().zip(of_class).for_each(|(sum, x)| *sum += f64::from(count) * x);
            }
            start = end;
        }
        let of_all = of_rates(all_rates, shapes);
        let mut values = [0.0; N];
        for (i, value) in values.iter_mut().enumerate() {
            let of_counts = of_counts(&self.rates[start..], &self.counts, shapes[i]);
            *value = self.of_long(shapes[i]) - of_few[i] - of_counts - shapes[i] * of_all[i];
        }
        values
    }
}

/// How many counts are larger than 0, 1, ...
#[inline(always)]
fn numbers_above(counts: &[u32], numbers: &mut [u64]) {
    for (j, number) in (0..).zip(numbers) {
        *number = 0;
        for counts in counts.chunks(LISTED) {
            let mut some = 0;
            for &count in counts {
                some += u32::from(count > j);
            }
            *number += u64::from(some);
        }
    }
}

/// `sum_i sum_(j < y_i) ln(1 + j / r)` for j below [`SHORT`], given how many counts are larger than each.
fn of_short(short: &[u64; SHORT], r: f64) -> f64 {
    let short = short.iter().enumerate().skip(1).filter(|(_, number)| **number > 0);
    short.map(|(j, &number)| number as f64 * (j as f64 / r).ln_1p()).sum()
}

/// What the cells of a table say of a shape that they share: of each block of rows, whose sums are added without rounding, so that
/// parts of a table which begin at a block add up to the whole.
#[derive(Clone, Debug)]
pub struct TableTails {
    /// How many counts are larger than 0, 1, ...
    pub short: [u64; SHORT],
    blocks: Vec<Tails>,
    /// Cells of a block.
    cells: usize,
}

impl TableTails {
    /// Of rates and counts of all cells.
    pub fn new(rates: &[f64], counts: &[u32], cols: usize) -> Self {
        let cells = super::factor_matrix::ROWS * cols.max(1);
        let each: Vec<_> = rates.chunks(cells).zip(counts.chunks(cells)).collect();
        let blocks = parallel::map(each.len(), |block| Tails::new(each[block].0, each[block].1));
        let mut short = [0; SHORT];
        for block in &blocks {
            short.iter_mut().zip(block.short).for_each(|(sum, number)| *sum += number);
        }
        Self { short, blocks, cells }
    }

    /// The log-likelihoods of some shapes, but for what [`Self::short`] says, unrounded; given the rates of all cells once more.
    pub fn sums(&self, rates: &[f64], shapes: &[f64]) -> Vec<[i64; LIMBS]> {
        let (mut sums, level) = (vec![[0; LIMBS]; shapes.len()], level());
        let each: Vec<_> = rates.chunks(self.cells).zip(&self.blocks).collect();
        let of_block = |block: usize| at_level!(level, each[block].1.of_shapes(each[block].0, shapes));
        // Columns are side by side already, and their blocks short.
        let threaded = self.cells > super::factor_matrix::ROWS;
        let blocks =
            if threaded { parallel::map(each.len(), of_block) } else { (0..each.len()).map(of_block).collect() };
        for of_block in blocks {
            sums.iter_mut().zip(of_block).for_each(|(sum, x)| exact_sum::add(sum, x));
        }
        sums
    }
}

/// What the cells of a part of a table say of each shape that rows share; nothing where there is none to be learnt.
#[derive(Clone, Debug)]
pub struct SharedTails {
    /// With the rates of a column.
    groups: Vec<(Option<Vec<f64>>, TableTails)>,
}

impl SharedTails {
    /// Of rates and counts of all cells of the part.
    pub fn new(dispersion: &Dispersion, rates: &[f64], counts: &[u32], cols: usize) -> Self {
        let groups = match dispersion.axis {
            _ if !dispersion.is_shared() => vec![],
            DispersionAxis::Columns => parallel::map(cols, |column| {
                let rates = column_of(rates, cols, column);
                let tails = TableTails::new(&rates, &column_of(counts, cols, column), 1);
                (Some(rates), tails)
            }),
            _ => vec![(None, TableTails::new(rates, counts, cols))],
        };
        Self { groups }
    }

    /// How many counts are larger than 0, 1, ..., shape by shape.
    pub fn short(&self) -> Vec<[u64; SHORT]> {
        self.groups.iter().map(|(_, tails)| tails.short).collect()
    }

    /// What [`TableTails::sums`] are of some values of each shape, one after the other, given the rates of all cells once more.
    pub fn sums(&self, rates: &[f64], shapes: &[Vec<f64>]) -> Vec<i64> {
        let asked: Vec<_> = self.groups.iter().zip(shapes).filter(|(_, values)| !values.is_empty()).collect();
        let of_group = |group: usize| {
            let ((own, tails), values) = asked[group];
            tails.sums(own.as_deref().unwrap_or(rates), values).concat()
        };
        parallel::map(asked.len(), of_group).concat()
    }
}

/// A column of a table.
fn column_of<T: Copy>(cells: &[T], cols: usize, column: usize) -> Vec<T> {
    cells[column.min(cells.len())..].iter().step_by(cols).copied().collect()
}

/// Densities of a slice, one after another.
pub fn each(density: impl Fn(f64) -> f64) -> impl Fn(&[f64]) -> Vec<f64> {
    move |at| at.iter().map(|&x| density(x)).collect()
}

/// A draw from the slice below the density of the old value, within bounds to which the prior is cut: the interval is doubled until
/// both ends are below the slice, then shrunk towards the old value, and a value is taken from which the same interval could have come. So
/// a width that is a thousandth of the slice takes ten densities more, not a thousand. A chain may start from a value outside, and
/// then does so from the nearer bound. Of values on which it is shrunk, N densities are asked for at a
/// time, those not needed among them.
///
/// Source: R. Neal (2003), Slice sampling, Ann. Statist. 31, figures 4 and 6.
pub fn slice<const N: usize>(
    old: f64,
    width: f64,
    [least, most]: [f64; 2],
    densities: impl Fn(&[f64]) -> Vec<f64>,
    rng: &mut Xoshiro,
) -> f64 {
    let old = old.clamp(least, most);
    let below = rng.open_uniform().ln();
    let mut low = old - width * rng.uniform();
    let mut high = low + width;
    let first = densities(&[old, low.max(least), high.min(most)]);
    let level = first[0] + below;
    let is_in = |at: f64| (least..=most).contains(&at) && densities(&[at])[0] > level;
    // The intervals, each a half of the next, and whether their ends are in the slice.
    let mut halves = vec![([low, high], [low >= least && first[1] > level, high <= most && first[2] > level])];
    while let Some((_, [low_is_in, high_is_in])) = halves.last().copied().filter(|(_, ends)| ends[0] || ends[1]) {
        let more = high - low;
        let ends = if rng.uniform() < 0.5 {
            low -= more;
            [is_in(low), high_is_in]
        } else {
            high += more;
            [low_is_in, is_in(high)]
        };
        halves.push(([low, high], ends));
    }
    // Whether doubling from there would not have ended before the same interval: where its halves are not those of the old value.
    let could_come_from = |found: f64| {
        let holds = |&([low, high], _): &([f64; 2], [bool; 2])| low <= found && found < high;
        let Some(inner) = halves.iter().position(holds).unwrap_or(halves.len() - 1).checked_sub(1) else { return true };
        let ([low, high], ends) = halves[inner];
        let ([outer_low, outer_high], outer_ends) = halves[inner + 1];
        let (mut low, mut high, mut ends) = if low == outer_low {
            (high, outer_high, [ends[1], outer_ends[1]])
        } else {
            (outer_low, low, [outer_ends[0], ends[0]])
        };
        for _ in 0..inner {
            if !ends[0] && !ends[1] {
                return false;
            }
            let middle = 0.5 * (low + high);
            let end = usize::from(found < middle);
            *(if end == 1 { &mut high } else { &mut low }) = middle;
            ends[end] = is_in(middle);
        }
        ends[0] || ends[1]
    };
    let [mut low, mut high] = [low.max(least), high.min(most)];
    loop {
        // Where the next one is does not depend on the density of one that is refused.
        let next = [(); N].map(|()| {
            let found = low + (high - low) * rng.uniform();
            *(if found < old { &mut low } else { &mut high }) = found;
            found
        });
        let is_kept = |&(&found, density): &(&f64, f64)| found == old || density > level && could_come_from(found);
        if let Some((&found, _)) = next.iter().zip(densities(&next)).find(is_kept) {
            return found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::fit::gamma_distance;
    use crate::released_counts::Alpha;

    #[test]
    fn slices_have_the_law_of_their_density_whatever_the_width() {
        // A mixture of a wide and a narrow normal law far apart, cut on the left. From independent draws of it, steps keep it.
        let density = |x: f64| (0.7 * (-0.5 * x * x).exp() + 3.0 * (-50.0 * (x - 4.0) * (x - 4.0)).exp()).ln();
        let (least, points) = (-1.0, 12_000);
        let step = 8.0 / f64::from(points);
        let mut law = vec![0.0];
        for i in 0..points {
            law.push(law[i as usize] + density(least + (f64::from(i) + 0.5) * step).exp());
        }
        let total = law[points as usize];
        for (width, seed) in [(0.01, 1), (0.3, 2), (2.0, 3), (20.0, 4), (2.0, 5), (20.0, 6)] {
            let mut rng = xoshiro([seed, 5], SHAPES, 0, 0);
            let mut found: Vec<f64> = (0..4000)
                .map(|_| {
                    let target = rng.uniform() * total;
                    let mut x = least + step * law.partition_point(|&sum| sum < target) as f64;
                    for _ in 0..3 {
                        let bounds = [least, 7.0];
                        x = match seed {
                            ..5 => slice::<1>(x, width, bounds, each(density), &mut rng),
                            _ => slice::<3>(x, width, bounds, each(density), &mut rng),
                        };
                    }
                    x
                })
                .collect();
            found.sort_by(f64::total_cmp);
            // Kolmogorov and Smirnov at a false-alarm rate of 1e-6.
            let distance = found.iter().enumerate().map(|(i, &x)| {
                let share = law[((x - least) / step) as usize] / total;
                (share - (i as f64 + 0.5) / 4000.0).abs()
            });
            let distance = distance.fold(0.0, f64::max) * 4000f64.sqrt();
            assert!(distance < 2.693, "width {width}: {distance}");
        }
    }

    #[test]
    fn slices_of_wide_laws_take_few_densities() {
        let asked = std::cell::Cell::new(0u32);
        let mut rng = xoshiro([1, 2], SHAPES, 0, 0);
        let density = |x: f64| {
            asked.set(asked.get() + 1);
            -0.5 * x * x
        };
        let mut x = 0.0;
        for _ in 0..200 {
            x = slice::<1>(x, 1e-4, [-18.0, 18.0], each(density), &mut rng);
        }
        assert!(asked.get() < 200 * 45, "{}", asked.get());
    }

    #[test]
    fn multipliers_have_their_laws_given_counts_and_rates_with_a_table_and_without() {
        // Kolmogorov and Smirnov at a false-alarm rate of 1e-6 for each count: 2.693.
        let (rows, cols, r) = (560, 103, 0.6);
        let cells = rows * cols;
        let held_out: Vec<u8> = (0..cells).map(|cell| u8::from(cell % 11 == 3)).collect();
        let table = ReleasedCounts::new(&vec![0; cells], rows, cols, Alpha::One(0.4), Some(&held_out)).unwrap();
        // Rows with a positive count in every sixth cell, and rows with few.
        let count = |cell: usize| [1, 2, 4, 9][cell / 7 % 4] * u32::from(cell % [6, 40][cell / cols % 2] == 5);
        let counts: Vec<u32> = (0..cells).map(count).collect();
        let rates: Vec<f64> = (0..cells).map(|cell| [1e-3, 0.3, 20.0][cell % 3]).collect();
        for (axis, number) in [(DispersionAxis::Table, 1), (DispersionAxis::Columns, cols)] {
            let dispersion = Dispersion::new(axis, vec![r; number], None, &table).unwrap();
            let mut found = rates.clone();
            let common = dispersion.shapes().first().filter(|_| number == 1).and_then(|r| gamma::ShapeTable::new(*r));
            let words = RowWords::new(level(), [3, 5], MULTIPLIERS, 1, 0);
            let laws = (0..rows).map(|row| (table.row(row).codes, dispersion.in_row(row)));
            let common = common.as_ref().map(|table| (r, table));
            MultiplierScratch::default().draw_rows(level(), (cols, &counts, &mut found), laws, common, words);
            for count in [0, 1, 2, 4, 9] {
                let own = (0..cells).filter(|&cell| counts[cell] == count && held_out[cell] == 0);
                let draws: Vec<f64> = own.map(|cell| found[cell] * (r + rates[cell])).collect();
                assert!(draws.len() > 900, "{}", draws.len());
                let distance = gamma_distance(r + f64::from(count), draws);
                assert!(distance < 2.693, "{axis:?}, {count}: {distance}");
            }
            assert!((0..cells).all(|cell| held_out[cell] == 0 || found[cell] == 0.0));
        }
    }

    #[test]
    fn multipliers_of_a_row_are_the_same_in_a_part_of_the_table() {
        const COLS: usize = 500;
        let counts: Vec<u32> = (0..17 * COLS).map(|cell| [0, 1, 3][cell % 3]).collect();
        let drawn = |first_row: u64, counts: &[u32]| {
            let rows = counts.len() / COLS;
            let table = ReleasedCounts::new(&vec![0; counts.len()], rows, COLS, Alpha::One(0.4), None).unwrap();
            let dispersion = Dispersion::new(DispersionAxis::Rows, vec![0.6; rows], None, &table).unwrap();
            let address = SweepAddress { key: [3, 5], iteration: 1, first_row };
            let mut found = vec![0.7; counts.len()];
            dispersion.draw_multipliers(&table, counts, &mut found, address, [3, 17 * COLS]);
            found
        };
        assert_eq!(drawn(16, &counts[16 * COLS..]), drawn(0, &counts)[16 * COLS..]);
    }

    #[test]
    fn the_likelihood_of_a_shape_is_the_sum_over_cells_however_many() {
        for cells in [0, 1, 40, 900, 3000, 20_000] {
            let counts: Vec<u32> =
                (0..cells).map(|cell| [0, 1, 0, 2, 7, 8, 9, 63, 64, 65, 300][cell * cell % 11]).collect();
            for scale in [1e-4, 1.0, 1e9] {
                let rates: Vec<f64> = (0..cells).map(|cell| scale * (1.0 + (cell % 17) as f64)).collect();
                let (tails, level) = (Tails::new(&rates, &counts), level());
                for r in [1e-3_f64, 0.6, 50.0] {
                    let cell = |(&rate, &count): (&f64, &u32)| {
                        let tail: f64 = (0..count).map(|j| (f64::from(j) / r).ln_1p()).sum();
                        tail - f64::from(count) * (rate / r).ln_1p()
                    };
                    let sum: f64 = rates.iter().zip(&counts).map(cell).sum();
                    let [of_three, ..] = at_level!(level, tails.others(&rates, [r, 2.0 * r, 1e-3 * r]));
                    assert_eq!(of_three, at_level!(level, tails.others(&rates, [r]))[0]);
                    let of_all: f64 = rates.iter().map(|rate| (rate / r).ln_1p()).sum();
                    let (found, sum) = (of_short(&tails.short, r) + of_three, sum - r * of_all);
                    assert!((found - sum).abs() <= 1e-9 * (1.0 + sum.abs()), "{cells} {scale} {r}: {found} {sum}");
                    let sum: f64 = rates.iter().map(|rate| (rate / r).ln_1p()).sum();
                    let found = at_level!(level, of_rates(&rates, [r]))[0];
                    assert!((found - sum).abs() <= 1e-9 * (1.0 + sum.abs()), "{cells} {scale} {r}: {found} {sum}");
                }
            }
        }
    }
}
