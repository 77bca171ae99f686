//! Variational inference by coordinate ascent: gamma factors with expectations in place of draws.
//!
//! With q(entry) = Gamma(A, B) and g = exp(E ln entry) = exp(psi(A)) / B, the optimal q of the counts of a cell has the law
//! the Gibbs sampler draws from, at the rate G = sum_k prod g: a sum of geometric means. So
//!   E[y_k] = W prod g,  W = E[y | o, G] / G,      A = shape + sum E[y_k],  B = rate + exposure at the means.
//! Every step maximizes the evidence lower bound over one block, which therefore never falls:
//!   sum_cells ln sum_y G^y / y! alpha^|o-y| + n ln((1-alpha)/(1+alpha)) - sum_cells E[mu] - sum_entries KL.
//!
//! [`Augmentation`] holds the alternatives of the literature, with q of the rates of the noise besides. `Published` is the
//! printed algorithm: its Bessel argument uses G[l+ + mu] by the delta method and is too large (the normalizers of binomial
//! and multinomial depend on m), so it is no coordinate ascent and its bound can fall.
//! Source: variational paper of A. Schein et al.; corrections derived in `docs/mathematics/factorization.md`.

use super::collapsed::CollapsedRow;
use super::gibbs::{start, without_rateless_cells};
use super::likelihood::{Rates, log_sum, scaled_mean};
use super::model::{FactorMatrix, Kind, Model, Prior};
use super::released_counts::{HELD_OUT, ReleasedCounts};
use super::split::LANES;
use crate::distributions::{Bessel, Distribution};
use crate::monitor::{Monitor, Progress};
use crate::numeric::dispatch::{Level, Work, level, work};
use crate::numeric::special::gamma::digamma;
use crate::numeric::special::log_factorial;
use crate::{Error, Result, memory, parallel};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Rows whose sums are formed one after the other; partial sums of such blocks are added in order.
const BLOCK: usize = 128;
/// Rows whose rates are formed together.
const TILE: usize = 4;
/// Shape of the factors a fit starts from: their logarithms vary little.
const START_SHAPE: f64 = 5.0;

/// What is known of the counts of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Augmentation {
    /// Nothing besides: the noise is summed out.
    Collapsed,
    /// Rates of the noise, and the mean of the Bessel law.
    BesselMean,
    /// The mode of the Bessel law instead.
    BesselMode,
    /// The mode, at the printed argument.
    Published,
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
    fn map(&self, of: impl Fn(f64, f64) -> f64) -> FactorMatrix {
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
}

/// Expected counts of noise of a cell, `[g+, g-]`.
pub type Noise = [f64; 2];

/// A fit: data, laws of the factors and how far it is.
#[derive(Clone, Debug)]
pub struct CoordinateAscent {
    table: Arc<ReleasedCounts>,
    pub(super) model: Model,
    pub(super) factors: Vec<Gammas>,
    pub(super) means: Vec<FactorMatrix>,
    pub(super) geometric: Vec<FactorMatrix>,
    digammas: Vec<FactorMatrix>,
    pub(super) fixed: Vec<bool>,
    augmentation: Augmentation,
    noise: Vec<Noise>,
    bounds: Vec<f64>,
    iteration: usize,
}

/// What a pass over all cells adds up.
#[derive(Clone, Copy)]
struct PassOutput {
    /// Weighted sums over columns, for this tally left of the product.
    left: Option<usize>,
    /// Weighted sums over rows.
    right: bool,
    /// The cells' part of the bound.
    bound: bool,
}

/// What a pass has added up.
#[derive(Default)]
pub struct Sums {
    /// Over columns, for a tally left of the product.
    pub(super) left: Vec<f64>,
    /// Over rows.
    pub(super) right: Vec<f64>,
    /// The cells' part of the bound.
    bound: f64,
}

/// Bytes for each entry of a factor: shapes, rates, three expectations, what an iteration keeps of the last, and its sums.
const FACTORS: u128 = 8 * 14;
/// Bytes for the noise of a cell: now, in the last iteration and in the next.
const NOISE: u128 = 3 * 16;

impl CoordinateAscent {
    /// A fit that starts from nearly even factors.
    ///
    /// # Errors
    /// As [`Model::new`].
    pub fn new(
        table: Arc<ReleasedCounts>,
        (kind, extents, width): (Kind, &[usize], usize),
        priors: Vec<Prior>,
        augmentation: Augmentation,
        key: [u64; 2],
        fixed: Vec<bool>,
    ) -> Result<Self> {
        let model = Model::new(kind, extents, width, priors, &table)?;
        let cells = if augmentation == Augmentation::Collapsed { 0 } else { table.rows() * table.cols() };
        memory::charge("an ascent with so many components", FACTORS * model.padded_entries() + NOISE * cells as u128)?;
        let gammas = |means: FactorMatrix| {
            let mut found = Gammas { shape: means.clone(), rate: means };
            for row in 0..found.shape.rows {
                for k in 0..found.shape.width {
                    let mean = found.shape.row(row)[k];
                    (found.shape.row_mut(row)[k], found.rate.row_mut(row)[k]) = (START_SHAPE, START_SHAPE / mean);
                }
            }
            found
        };
        let table = without_rateless_cells(&model, table);
        let factors: Vec<_> = start(&model, &table, key).into_iter().map(gammas).collect();
        if fixed.len() != factors.len() {
            let (expected, found) = (format!("({},)", factors.len()), format!("({},)", fixed.len()));
            return Err(Error::Shape { name: "fixed", expected, found });
        }
        let mut fit = Self {
            table,
            model,
            means: factors.iter().map(Gammas::means).collect(),
            geometric: factors.iter().map(Gammas::means).collect(),
            digammas: factors.iter().map(Gammas::means).collect(),
            factors,
            fixed,
            augmentation,
            noise: vec![[0.0; 2]; cells],
            bounds: vec![],
            iteration: 0,
        };
        (0..fit.factors.len()).for_each(|factor| fit.refresh(factor));
        Ok(fit)
    }

    /// Works out what passes ask of the laws of a factor.
    pub(super) fn refresh(&mut self, factor: usize) {
        let gammas = &self.factors[factor];
        self.means[factor] = gammas.means();
        self.digammas[factor] = gammas.map(|shape, _| digamma(shape));
        let digammas = &self.digammas[factor];
        let geometric = &mut self.geometric[factor];
        for row in 0..geometric.rows {
            for k in 0..geometric.width {
                geometric.row_mut(row)[k] = digammas.row(row)[k].exp() / gammas.rate.row(row)[k];
            }
        }
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
        for matrices in [
            factors.iter().map(|gammas| gammas.shape.clone()).collect::<Vec<_>>(),
            factors.iter().map(|gammas| gammas.rate.clone()).collect(),
        ] {
            self.model.check(&matrices)?;
            let mut entries =
                matrices.iter().flat_map(|matrix| (0..matrix.rows).flat_map(|row| &matrix.row(row)[..matrix.width]));
            if entries.any(|entry| *entry <= 0.0) {
                return Err(Error::Domain { name: "factors", value: "0".to_owned(), requirement: "positive" });
            }
        }
        (self.factors, self.iteration) = (factors, 0);
        (0..self.factors.len()).for_each(|factor| self.refresh(factor));
        self.bounds.clear();
        Ok(())
    }

    /// The expected counts of noise of each cell, where the augmentation keeps them.
    pub fn noise(&self) -> &[Noise] {
        &self.noise
    }

    /// Sets the expected counts of noise, so that a fit goes on where another one was.
    ///
    /// # Errors
    /// [`Error::Shape`]; [`Error::Domain`] for a count that is negative or not finite.
    pub fn set_noise(&mut self, noise: Vec<Noise>) -> Result<()> {
        if noise.len() != self.noise.len() {
            let (expected, found) = (format!("({},)", self.noise.len()), format!("({},)", noise.len()));
            return Err(Error::Shape { name: "noise", expected, found });
        }
        if let Some(count) = noise.iter().flatten().find(|count| !(count.is_finite() && **count >= 0.0)) {
            return Err(Error::Domain { name: "noise", value: count.to_string(), requirement: "at least 0" });
        }
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
                let before = (self.factors.clone(), self.noise.clone());
                if let Err(error) = self.iterate(threads, progress) {
                    (self.factors, self.noise) = before;
                    (0..self.factors.len()).for_each(|factor| self.refresh(factor));
                    return Err(error);
                }
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

    /// Whether the last two bounds agree.
    fn settled(&self, tolerance: f64) -> bool {
        matches!(self.bounds.as_slice(), [.., before, last] if (last - before).abs() < tolerance * last.abs())
    }

    /// Adds the bound after the last iteration.
    fn close(&mut self, threads: usize, progress: &Progress) -> Result<()> {
        if self.bounds.len() < self.iteration {
            let (sums, _) = self.pass(PassOutput { left: None, right: false, bound: true }, threads, progress)?;
            self.bounds.push(self.bound(sums.bound));
        }
        Ok(())
    }

    fn iterate(&mut self, threads: usize, progress: &Progress) -> Result<()> {
        let mut first = true;
        let mut pass = |fit: &mut Self, left: Option<usize>, right: bool| {
            let bound = first && fit.bounds.len() < fit.iteration;
            let (sums, noise) = fit.pass(PassOutput { left, right, bound }, threads, progress)?;
            if bound {
                fit.bounds.push(fit.bound(sums.bound));
            }
            first = false;
            fit.noise = noise;
            Ok::<_, Error>(sums)
        };
        self.model.structure().ascend(self, &mut pass)
    }

    /// The bound, given the part of the cells at the optimal law of their counts.
    fn bound(&self, cells: f64) -> f64 {
        let mut divergence = 0.0;
        for (factor, gammas) in self.factors.iter().enumerate() {
            // A fixed factor is a point: it has no law of its own.
            if self.fixed[factor] {
                continue;
            }
            let symmetric = self.model.structure().is_symmetric(factor);
            for row in 0..gammas.shape.rows {
                let from = if symmetric { row } else { 0 };
                divergence += (from..gammas.shape.width)
                    .map(|k| {
                        let prior = self.model.prior(factor).at(row * gammas.shape.width + k);
                        let law = (gammas.shape.row(row)[k], gammas.rate.row(row)[k]);
                        gamma_divergence(law, self.digammas[factor].row(row)[k], prior)
                    })
                    .sum::<f64>();
            }
        }
        cells - self.model.total_rate(&self.means) - divergence
    }

    /// Passes over all cells at the optimal law of their counts: what is wanted of them, and the new noise.
    fn pass(&self, wanted: PassOutput, threads: usize, progress: &Progress) -> Result<(Sums, Vec<Noise>)> {
        let (rows, cols) = (self.table.rows(), self.table.cols());
        let right = self.model.right(&self.geometric);
        let transposed = right.transposed();
        let published = (self.augmentation == Augmentation::Published).then(|| self.moments());
        let reads = PassInput { fit: self, right, transposed: &transposed, published, wanted };
        let blocks: Vec<Range<usize>> = (0..rows).step_by(BLOCK).map(|start| start..rows.min(start + BLOCK)).collect();
        let mut noise = self.noise.clone();
        let level = level();
        let mut sums = reads.nothing();
        let mut chunks = noise.chunks_mut((BLOCK * cols).max(1));
        // Partial sums are as large as what they add up to, so only as many are held as there are threads.
        for wave in blocks.chunks(threads) {
            progress.check()?;
            let jobs: Vec<_> = wave.iter().map(|rows| (rows.clone(), chunks.next().unwrap_or_default())).collect();
            let one = |(rows, noise): (Range<usize>, &mut [Noise])| reads.block(level, rows, noise);
            let parts: Vec<Sums> = if threads == 1 {
                jobs.into_iter().map(one).collect()
            } else {
                jobs.into_par_iter().map(one).collect()
            };
            for part in parts {
                sums.left.iter_mut().zip(part.left).for_each(|(sum, x)| *sum += x);
                sums.right.iter_mut().zip(part.right).for_each(|(sum, x)| *sum += x);
                sums.bound += part.bound;
            }
        }
        Ok((sums, noise))
    }

    /// Means, squared means and second moments of the factors, for the delta method.
    fn moments(&self) -> [Vec<FactorMatrix>; 3] {
        let second = |shape: f64, rate: f64| shape * (shape + 1.0) / (rate * rate);
        [
            self.factors.iter().map(Gammas::means).collect(),
            self.factors.iter().map(|gammas| gammas.map(|shape, rate| (shape / rate) * (shape / rate))).collect(),
            self.factors.iter().map(|gammas| gammas.map(second)).collect(),
        ]
    }
}

/// KL(Gamma(A, B) || Gamma(a, b)).
fn gamma_divergence((shape, rate): (f64, f64), digamma: f64, (prior_shape, prior_rate): (f64, f64)) -> f64 {
    (shape - prior_shape) * digamma - libm::lgamma(shape)
        + libm::lgamma(prior_shape)
        + prior_shape * (rate / prior_rate).ln()
        + shape * (prior_rate - rate) / rate
}

/// What a pass reads.
struct PassInput<'a> {
    fit: &'a CoordinateAscent,
    right: &'a FactorMatrix,
    transposed: &'a [f64],
    published: Option<[Vec<FactorMatrix>; 3]>,
    wanted: PassOutput,
}

impl PassInput<'_> {
    fn nothing(&self) -> Sums {
        let left = self.wanted.left.map_or(0, |tally| {
            let (rows, width) = self.fit.model.tally_shapes()[tally];
            rows * width.next_multiple_of(LANES)
        });
        let right = if self.wanted.right { self.right.rows * self.right.stride } else { 0 };
        Sums { left: vec![0.0; left], right: vec![0.0; right], bound: 0.0 }
    }

    fn block(&self, level: Level, rows: Range<usize>, noise: &mut [Noise]) -> Sums {
        let mut sums = self.nothing();
        let (stride, length, cols) = (self.right.stride, self.fit.table.cols(), self.fit.table.cols());
        let (mut left, mut weights) = (vec![0.0; TILE * stride], vec![0.0; TILE * length]);
        let mut products = vec![0.0; TILE * stride];
        for start in rows.clone().step_by(TILE) {
            let tile = start..rows.end.min(start + TILE);
            left.fill(0.0);
            for (row, left) in tile.clone().zip(left.chunks_exact_mut(stride)) {
                self.fit.model.left(&self.fit.geometric, row, left);
            }
            let transposed = self.transposed;
            work(level, Rates { left: &left, stride, transposed, out: &mut weights, cols });
            for (i, row) in tile.clone().enumerate() {
                let weights = &mut weights[i * length..(i + 1) * length];
                let at = (row - rows.start) * cols;
                let noise = if noise.is_empty() { &mut [] } else { &mut noise[at..at + cols] };
                sums.bound += self.row(level, row, &mut weights[..cols], noise);
                weights[cols..].fill(0.0);
            }
            if let Some(tally) = self.wanted.left {
                let right = self.right;
                work(level, OverColumns { weights: &weights, length, tile: tile.len(), right, out: &mut products });
                for (i, row) in tile.clone().enumerate() {
                    let (u, p) = (&left[i * stride..(i + 1) * stride], &products[i * stride..(i + 1) * stride]);
                    let is_product = self.fit.model.structure().is_product();
                    for (_, index) in self.fit.model.places(row).filter(|(part, _)| *part == tally) {
                        let sums = &mut sums.left[index * stride..(index + 1) * stride];
                        for ((sum, u), p) in sums.iter_mut().zip(u).zip(p) {
                            *sum += if is_product { u * p } else { *p };
                        }
                    }
                }
            }
            if self.wanted.right {
                let (tile, sums) = (tile.len(), &mut sums.right);
                work(level, OverRows { weights: &weights, length, tile, left: &left, stride, sums });
            }
        }
        sums
    }

    /// Turns the rates of a row into weights W; returns the row's part of the bound, if wanted.
    fn row(&self, level: Level, row: usize, rates: &mut [f64], noise: &mut [Noise]) -> f64 {
        let fit = self.fit;
        let data = fit.table.row(row);
        let alphas = fit.table.alphas(row);
        let one = fit.table.alpha_at(row * fit.table.cols());
        if fit.augmentation == Augmentation::Collapsed && alphas.is_none() && one > 0.0 {
            return work(level, CollapsedRow { data, alpha: one, rates, logarithms: self.wanted.bound });
        }
        let published = self.published.as_ref().map(|moments| self.rates_of_moments(moments, row));
        let mut bound = 0.0;
        for (column, rate) in rates.iter_mut().enumerate() {
            let code = data.codes[column];
            if code == HELD_OUT {
                *rate = 0.0;
                continue;
            }
            let alpha = alphas.map_or(one, |alphas| alphas[column]);
            let released = data.value(column, code);
            if alpha == 0.0 {
                bound += if released == 0 { 0.0 } else { released as f64 * rate.ln() - log_factorial(released as f64) };
                *rate = if released == 0 { 0.0 } else { released as f64 / rate.max(f64::MIN_POSITIVE) };
            } else if fit.augmentation == Augmentation::Collapsed {
                bound += ((1.0 - alpha) / (1.0 + alpha)).ln() + log_sum(released, *rate, alpha);
                *rate = scaled_mean(released, rate.max(f64::MIN_POSITIVE), alpha);
            } else {
                let moments = published.as_ref().map(|rows| [rows[0][column], rows[2][column] - rows[1][column]]);
                let (mean, part) = augmented(fit.augmentation, released, *rate, alpha, &mut noise[column], moments);
                bound += part;
                *rate = if mean > 0.0 { mean / rate.max(f64::MIN_POSITIVE) } else { 0.0 };
            }
        }
        bound
    }

    /// Rates of a row with means, squared means and second moments in place of the factors.
    fn rates_of_moments(&self, moments: &[Vec<FactorMatrix>; 3], row: usize) -> [Vec<f64>; 3] {
        let mut left = vec![0.0; self.right.stride];
        std::array::from_fn(|moment| {
            let factors = &moments[moment];
            self.fit.model.left(factors, row, &mut left);
            let right = self.fit.model.right(factors);
            (0..right.rows).map(|column| left.iter().zip(right.row(column)).map(|(a, b)| a * b).sum()).collect()
        })
    }
}

/// The cell's expected count, with its part of the bound before the update of `noise`.
fn augmented(
    augmentation: Augmentation,
    released: i64,
    rate: f64,
    alpha: f64,
    noise: &mut Noise,
    moments: Option<[f64; 2]>,
) -> (f64, f64) {
    let order = released.unsigned_abs() as f64;
    let shapes = noise.map(|count| 1.0 + count);
    let [plus, minus] = shapes.map(|shape| alpha * digamma(shape).exp());
    let argument = 2.0 * (minus * (plus + rate)).sqrt();
    let law = Bessel::unchecked(order, argument);
    let (smaller, normalizer) = match augmentation {
        Augmentation::BesselMean | Augmentation::Collapsed => {
            // ln I = order ln(a/2) - ln order! - ln p(0)
            (law.mean(), order * (0.5 * argument).ln() - log_factorial(order) - law.log_mass(0.0))
        }
        Augmentation::BesselMode | Augmentation::Published => {
            let mode = match moments {
                Some([mean, variance]) => {
                    let (mean, variance) = (mean + alpha * shapes[0], variance + alpha * alpha * shapes[0]);
                    let printed = (mean.ln() - 0.5 * variance / (mean * mean)).exp();
                    Bessel::unchecked(order, 2.0 * (minus * printed).sqrt()).mode()
                }
                None => law.mode(),
            };
            let logs = (2.0 * mode + order) * (0.5 * argument).ln();
            (mode, logs - log_factorial(mode) - log_factorial(mode + order))
        }
    };
    let prior = (1.0, (1.0 - alpha) / alpha);
    let shared: f64 =
        shapes.iter().map(|&shape| alpha * shape + gamma_divergence((shape, 1.0 / alpha), digamma(shape), prior)).sum();
    let bound = normalizer + 0.5 * released as f64 * ((plus + rate) / minus).ln() - shared;
    let sum = smaller + released.max(0) as f64;
    let mean = sum * (rate / (rate + plus));
    *noise = [sum - mean, smaller + released.min(0).unsigned_abs() as f64];
    (mean, bound)
}

/// `out_r = sum_v W_rv R_v` for the rows of a tile.
struct OverColumns<'a> {
    weights: &'a [f64],
    length: usize,
    tile: usize,
    right: &'a FactorMatrix,
    out: &'a mut [f64],
}

impl Work for OverColumns<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let stride = self.right.stride;
        for start in (0..stride).step_by(LANES) {
            let mut sums = [[0.0; LANES]; TILE];
            for (v, right) in self.right.padded().chunks_exact(stride).enumerate() {
                let right = &right[start..start + LANES];
                for (r, sums) in sums.iter_mut().enumerate() {
                    let weight = self.weights[r * self.length + v];
                    for (sum, x) in sums.iter_mut().zip(right) {
                        *sum += weight * x;
                    }
                }
            }
            for (r, sums) in sums.iter().enumerate().take(self.tile) {
                self.out[r * stride + start..][..LANES].copy_from_slice(sums);
            }
        }
    }
}

/// `sums_v += W_rv u_r` for the rows of a tile, one after the other.
struct OverRows<'a> {
    weights: &'a [f64],
    length: usize,
    tile: usize,
    left: &'a [f64],
    stride: usize,
    sums: &'a mut [f64],
}

impl Work for OverRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (v, sums) in self.sums.chunks_exact_mut(self.stride).enumerate() {
            for start in (0..self.stride).step_by(LANES) {
                let sums = &mut sums[start..start + LANES];
                let mut held = [0.0; LANES];
                held.copy_from_slice(sums);
                for r in 0..self.tile {
                    let weight = self.weights[r * self.length + v];
                    let left = &self.left[r * self.stride + start..][..LANES];
                    for (sum, x) in held.iter_mut().zip(left) {
                        *sum += weight * x;
                    }
                }
                sums.copy_from_slice(&held);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factorization::released_counts::Alpha;
    use crate::monitor::Silent;

    /// One cell, o = 3, the other factor fixed at 1, prior Gamma(1/2, 1/2), alpha = 1/e.
    fn single_cell(augmentation: Augmentation) -> (f64, f64) {
        let table = Arc::new(ReleasedCounts::new(&[3], 1, 1, Alpha::One((-1f64).exp()), None).unwrap());
        let prior = Prior { shape: vec![0.5], rate: vec![0.5] };
        let sizes = (Kind::Cp, [1, 1].as_slice(), 1);
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
