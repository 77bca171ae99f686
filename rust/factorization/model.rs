//! The models: a structure of factors with the sizes, the held-out cells and the priors of a table.
//!
//! Canonical polyadic ("cp"), modes m = 1..M:  mu_i = sum_k prod_m F^m[i_m, k]; the rows of the table are the first M - 1 modes.
//!   u_r = product over m < M of F^m[i_m], R = F^M. Two modes make the matrix model; weights of components are a mode of extent 1.
//! Directed blockmodel:  mu_ij = sum_cd T_ic P_cd T_jd, i != j;  u_i = P' T_i, R = T.
//! Undirected: the same for i < j only, with P symmetric.
//! Dynamical systems: canonical polyadic, where the first mode is time and its factor a chain; all else in [`super::dynamics`].
//! Topics in layers: a matrix, where the left factor has shapes of its own that are drawn, see [`super::layers`].
//!
//! A factor's exposure is the derivative of the sum of the observed rates by that entry; with the counts n that fell to it,
//! its conditional is Gamma(shape + n, rate + exposure). Held-out cells are taken off the exposure and never counted.
//! Source: A. Schein et al. (2019), section 4 of the appendix; the sums over pairs i < j are derived here.

use super::blockmodel::Blockmodel;
use super::cp::Cp;
use super::dynamics::Dynamics;
use super::factor_matrix::{FactorMatrix, ROWS};
use super::gammas::Prior;
use super::layers::Layers;
use super::released_counts::{Facts, ReleasedCounts};
use super::split::LANES;
use super::structure::{HeldOut, Layout, Structure};
use super::tucker::Tucker;
use crate::distributions::RandomSource;
use crate::stream::xoshiro;
use crate::{Error, Result, memory};
use std::sync::Arc;

/// All structures by name: matrices and tensors, networks of ordered pairs and of unordered ones, tensors with a core, dynamical
/// systems, topics in layers.
pub const STRUCTURES: &[(&str, &dyn Structure)] = &[
    ("cp", &Cp),
    ("directed", &Blockmodel { undirected: false }),
    ("undirected", &Blockmodel { undirected: true }),
    ("tucker", &Tucker { tied: false }),
    ("tucker-tied", &Tucker { tied: true }),
    ("dynamics", &Dynamics),
    ("layers", &Layers),
];

/// A structure, the extents of its modes or its number of actors, and its number of components.
pub type Sizes<'a> = (&'static dyn Structure, &'a [usize], usize);

/// Bytes for each entry of a factor: its value, and as much again for tallies of counts and what is worked out of it.
const BYTES: u128 = 32;
/// The purpose of the words of factors; those of factor m are at m + 1.
pub(super) const FACTORS: u64 = 0x0066_6163_746f_7200;

/// A model of a table: its structure, its sizes and what it must do without, its priors.
#[derive(Clone, Debug)]
pub struct Model {
    structure: &'static dyn Structure,
    layout: Layout,
    priors: Vec<Prior>,
}

impl Model {
    /// A model of these sizes for a table.
    ///
    /// # Errors
    /// [`Error::Shape`] where table, extents and priors do not fit; [`Error::Domain`] for a prior that is not positive;
    /// [`Error::TooLarge`] if the factors do not fit into memory.
    pub fn new(sizes: Sizes<'_>, priors: Vec<Prior>, table: &ReleasedCounts) -> Result<Self> {
        let mut model = Self::sized(sizes, priors)?;
        let (rows, cols) = (model.layout.rows, model.layout.cols);
        Error::require_shape("released", [rows, cols], [table.rows(), table.cols()])?;
        memory::charge("a model of so many components", BYTES * model.padded_entries())?;
        let shapes = model.shapes();
        Error::require_shape("priors", [shapes.len()], [model.priors.len()])?;
        shapes.iter().zip(&model.priors).try_for_each(|((rows, width), prior)| prior.check(rows * width))?;
        model.layout.held = model.held_out_cells(table);
        Ok(model)
    }

    /// The same with the held-out cells of another table.
    ///
    /// # Errors
    /// As [`Model::new`].
    pub fn with_table(&self, table: &ReleasedCounts) -> Result<Self> {
        Self::new((self.structure, &self.layout.extents, self.layout.width), self.priors.clone(), table)
    }

    /// A model for rates alone: no table, and no priors.
    ///
    /// # Errors
    /// [`Error::Domain`]
    pub fn without_data(sizes: Sizes<'_>) -> Result<Self> {
        Self::sized(sizes, vec![])
    }

    fn sized((structure, extents, width): Sizes<'_>, priors: Vec<Prior>) -> Result<Self> {
        Error::require(width > 0, "n_components", "0", "at least 1")?;
        let (rows, cols) = structure.table_shape(extents).ok_or_else(|| {
            Error::domain("extents", format_args!("{extents:?}"), "at least two modes, or the number of actors")
        })?;
        Ok(Self { structure, layout: Layout { extents: extents.to_vec(), width, rows, cols, held: vec![] }, priors })
    }

    /// The table with those cells held out that the model has no rate for.
    pub fn without_rateless_cells(&self, mut table: Arc<ReleasedCounts>) -> Arc<ReleasedCounts> {
        if !self.structure.has_rate(0, 0) {
            Arc::make_mut(&mut table).hide(|row, column| !self.structure.has_rate(row, column));
        }
        table
    }

    /// Nearly even factors whose rates sum to the sum of the observed release, or to a tenth of a count per cell if that is more.
    /// The table is told of by facts; of a shard they are those of the whole, and its first row there is given.
    pub fn start(&self, facts: &Facts, first_row: u64, key: [u64; 2]) -> Vec<FactorMatrix> {
        let cells = (facts.rows * self.layout.cols as u64) as f64;
        let observed = (cells - facts.held_out as f64).max(1.0);
        let total = (facts.total as f64).max(0.1 * observed) * (cells / observed).max(1.0);
        // A rate is a sum of products: over components in a factorization, over pairs of them in a blockmodel.
        let (terms, order) = self.structure.terms(&self.layout.extents, self.layout.width);
        // Entries of Dirichlet laws are one over the rows in the mean; the others make up for it.
        let known: Vec<_> = self
            .shapes()
            .iter()
            .zip(&self.priors)
            .enumerate()
            .filter(|(i, (_, prior))| prior.is_dirichlet() && !self.structure.is_redrawn_together(&self.layout, *i))
            .map(|(_, (shape, _))| shape.0 as f64)
            .collect();
        let free = (order - known.len() as f64).max(1.0);
        let scale = (total * known.iter().product::<f64>() / (terms * cells.max(1.0))).powf(1.0 / free);
        let start = |(factor, (rows, width)): (usize, (usize, usize))| {
            let mut matrix = FactorMatrix::new(rows, width);
            for row in 0..rows {
                let row_there = row as u64 + if factor == 0 { first_row } else { 0 };
                let mut words = xoshiro(key, FACTORS + 1 + factor as u64, 0, row_there);
                for entry in &mut matrix.row_mut(row)[..width] {
                    *entry = scale * (0.5 + words.uniform());
                }
            }
            for c in 0..if self.structure.is_symmetric(factor) { rows } else { 0 } {
                (0..c).for_each(|d| matrix.row_mut(c)[d] = matrix.row(d)[c]);
            }
            if self.priors[factor].is_dirichlet() {
                matrix.normalize();
            }
            matrix
        };
        let mut factors: Vec<_> = self.shapes().into_iter().enumerate().map(start).collect();
        self.structure.shape_start(&self.layout, &self.priors, &mut factors);
        factors
    }

    /// Entries of all factors as they lie in memory.
    pub(super) fn padded_entries(&self) -> u128 {
        let padded = |(rows, width): (usize, usize)| rows as u128 * width.next_multiple_of(LANES) as u128;
        self.shapes().into_iter().map(padded).sum()
    }

    /// Whether matrices are factors of this model.
    ///
    /// # Errors
    /// [`Error::Shape`]; [`Error::Domain`] for an entry that is negative or not finite.
    pub fn check(&self, matrices: &[FactorMatrix]) -> Result<()> {
        let shapes: Vec<_> = matrices.iter().map(|matrix| (matrix.rows, matrix.width)).collect();
        if shapes != self.shapes() {
            return Err(Error::shape("factors", format_args!("{:?}", self.shapes()), format_args!("{shapes:?}")));
        }
        matrices.iter().enumerate().try_for_each(|(factor, matrix)| self.check_factor(factor, matrix))
    }

    /// Whether a matrix is a factor of this model.
    ///
    /// # Errors
    /// [`Error::Shape`]; [`Error::Domain`] for an entry that is negative or not finite.
    pub fn check_factor(&self, factor: usize, matrix: &FactorMatrix) -> Result<()> {
        let (rows, width) = self.shapes()[factor];
        Error::require_shape("factors", [rows, width], [matrix.rows, matrix.width])?;
        let sound = |x: f64| x >= 0.0 && x.is_finite();
        Error::require_all(matrix.padded(), sound, "factors", "at least 0 and finite")
    }

    /// Refuses a row that parts of the first factor cannot begin with, or a model whose rows are not independent given the others.
    ///
    /// # Errors
    /// [`Error::Domain`]
    pub(super) fn split_from(&self, first_row: u64) -> Result<()> {
        Error::require(first_row.is_multiple_of(ROWS as u64), "first_row", first_row, "a multiple of 128")?;
        let (structure, requirement) = (self.structure, "a matrix or tensor");
        let fits = structure.is_split_by_rows();
        Error::require(fits, "model", format_args!("{structure:?}"), requirement)
    }

    /// Refuses a list that does not say of each factor whether it is fixed.
    ///
    /// # Errors
    /// [`Error::Shape`]
    pub fn check_fixed(&self, fixed: &[bool]) -> Result<()> {
        Error::require_shape("fixed", [self.priors.len()], [fixed.len()])
    }

    /// For each index of each mode, the cells that are held out and not imputed.
    fn held_out_cells(&self, table: &ReleasedCounts) -> Vec<HeldOut> {
        let extents = &self.layout.extents;
        let mut pairs = vec![vec![]; self.structure.indices(extents)];
        for row in (0..table.rows()).filter(|_| table.held_out() > 0 && !self.imputes()) {
            for column in table.held_out_in(row).filter(|&column| self.structure.has_rate(row, column)) {
                let cell = (row * table.cols() + column) as u64;
                for (number, pairs) in pairs.iter_mut().enumerate() {
                    pairs.push((self.structure.index(extents, number, row, column), cell));
                }
            }
        }
        let held = |(number, pairs)| HeldOut::new(self.structure.extent(extents, number), pairs);
        pairs.into_iter().enumerate().map(held).collect()
    }

    /// Whether the counts of cells held out are drawn, because some conditional needs every cell: exposures know of none then.
    pub fn imputes(&self) -> bool {
        self.structure.imputes() || self.priors.iter().any(Prior::is_dirichlet)
    }

    /// What the structure says of itself.
    pub fn structure(&self) -> &'static dyn Structure {
        self.structure
    }

    /// Sizes, and what is held out.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The prior of a factor.
    pub fn prior(&self, factor: usize) -> &Prior {
        &self.priors[factor]
    }

    /// The prior of a factor, to be learnt.
    pub(super) fn prior_mut(&mut self, factor: usize) -> &mut Prior {
        &mut self.priors[factor]
    }

    /// Sets a prior that is learnt: its shape, and its rates if any are given.
    ///
    /// # Errors
    /// As [`Prior::check`].
    pub(super) fn set_prior(&mut self, factor: usize, shape: f64, rate: Option<Vec<f64>>) -> Result<()> {
        let (rows, width) = self.shapes()[factor];
        let prior = Prior { shape: vec![shape], rate: rate.unwrap_or_default() };
        prior.check(rows * width)?;
        self.priors[factor].shape = prior.shape;
        if !prior.rate.is_empty() {
            self.priors[factor].rate = prior.rate;
        }
        Ok(())
    }

    /// The factors whose priors can be learnt: those that are neither fixed nor redrawn with others.
    ///
    /// # Errors
    /// [`Error::Domain`] where a factor has shapes of its own for entries.
    pub(super) fn learnable(&self, fixed: &[bool]) -> Result<Vec<usize>> {
        let own = |factor: &usize| !fixed[*factor] && !self.structure.is_redrawn_together(&self.layout, *factor);
        let found: Vec<_> = (0..self.priors.len()).filter(own).collect();
        if let Some(factor) = found.iter().find(|factor| self.priors[**factor].shape.len() != 1) {
            let requirement = "none where entries of a factor have shapes of their own";
            return Err(Error::domain("hyperpriors", format_args!("factor {factor}"), requirement));
        }
        Ok(found)
    }

    /// The priors of all factors.
    pub fn priors(&self) -> &[Prior] {
        &self.priors
    }

    /// Rows and components of each factor.
    pub fn shapes(&self) -> Vec<(usize, usize)> {
        self.structure.shapes(&self.layout.extents, self.layout.width)
    }

    /// Shapes of the tallies of a sweep: counts by component that fell to the left of the product, and to its right.
    pub fn tally_shapes(&self) -> Vec<(usize, usize)> {
        self.structure.tally_shapes(&self.layout.extents, self.layout.width)
    }

    /// The factor of the columns.
    pub fn right<'a>(&self, factors: &'a [FactorMatrix]) -> &'a FactorMatrix {
        &factors[self.structure.right(&self.layout.extents)]
    }

    /// The first column of a row that the model explains.
    pub fn first_column(&self, row: usize) -> usize {
        self.structure.first_column(row)
    }

    /// The weights of a row, u_r.
    #[inline]
    pub fn left(&self, factors: &[FactorMatrix], row: usize, out: &mut [f64]) {
        self.structure.left(&self.layout, factors, row, out);
    }

    /// Where the parts of a row are added: `(tally, index)` for each tally left of the product.
    #[inline]
    pub fn places(&self, row: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let structure = self.structure;
        let column = 0; // not looked at: only indices of the row are asked for
        (0..structure.left_tallies(&self.layout.extents))
            .map(move |tally| (tally, structure.index(&self.layout.extents, tally, row, column)))
    }

    /// The sum of the observed rates.
    pub fn total_rate(&self, factors: &[FactorMatrix]) -> f64 {
        self.structure.total_rate(&self.layout, factors).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Progress;
    use crate::pass;
    use crate::released_counts::Alpha;
    use crate::row::HELD_OUT;

    fn matrix(rows: usize, width: usize, seed: usize) -> FactorMatrix {
        let values: Vec<f64> = (0..rows * width).map(|i| 0.1 + ((i * 7 + seed * 5) % 11) as f64 / 7.0).collect();
        FactorMatrix::packed(rows, width, &values).unwrap()
    }

    fn prior() -> Prior {
        Prior { shape: vec![1.0], rate: vec![1.0] }
    }

    /// The sum of the observed rates, cell by cell.
    fn total(model: &Model, factors: &[FactorMatrix], table: &ReleasedCounts) -> f64 {
        let mut left = vec![0.0; model.right(factors).stride];
        let mut total = 0.0;
        for row in 0..table.rows() {
            model.left(factors, row, &mut left);
            for (column, _) in table.row(row).codes.iter().enumerate().filter(|(_, code)| **code != HELD_OUT) {
                total += left.iter().zip(model.right(factors).row(column)).map(|(a, b)| a * b).sum::<f64>();
            }
        }
        total
    }

    /// Exposures are derivatives of the total, and the total is linear in each entry (quadratic in an actor's own pair, which
    /// is held out), so a difference of totals is exact.
    fn check_exposures(name: &str, extents: &[usize], factors: &[FactorMatrix], held_out: &[u8]) {
        let structure = STRUCTURES.iter().find(|(known, _)| *known == name).unwrap().1;
        let (rows, cols) = structure.table_shape(extents).unwrap();
        let table = ReleasedCounts::new(&vec![1; rows * cols], rows, cols, Alpha::One(0.5), Some(held_out)).unwrap();
        let model = Model::new((structure, extents, 3), vec![prior(); factors.len()], &table).unwrap();
        let table = model.without_rateless_cells(Arc::new(table));
        let observed = total(&model, factors, &table);
        assert!((model.total_rate(factors) - observed).abs() < 1e-11);
        let sums: Vec<_> = factors.iter().map(FactorMatrix::sums).collect();
        let mut out = vec![0.0; 8];
        for (factor, matrix) in factors.iter().enumerate() {
            let symmetric = structure.is_symmetric(factor);
            for row in 0..matrix.rows {
                structure.exposure(model.layout(), (factor, row), factors, &sums, &mut out);
                let exposures = &out[..matrix.width];
                for (k, exposure) in exposures.iter().enumerate().skip(if symmetric { row } else { 0 }) {
                    let mut raised = factors.to_vec();
                    raised[factor].row_mut(row)[k] += 1.0;
                    if symmetric && row != k {
                        raised[factor].row_mut(k)[row] += 1.0;
                    }
                    let slope = total(&model, &raised, &table) - observed;
                    assert!((exposure - slope).abs() < 1e-11, "{name} {factor} {row} {k}");
                }
                // With a weight of one for each cell that is observed they are the same.
                let weights: Vec<_> = (0..rows).flat_map(|row| table.row(row).codes).collect();
                let weights: Vec<_> = weights.into_iter().map(|&code| f64::from(u8::from(code != HELD_OUT))).collect();
                let mut weighted = vec![0.0; matrix.stride];
                if structure.in_turn() {
                    structure.weighted_exposure(model.layout(), (factor, row), factors, &weights, &mut weighted);
                } else {
                    let here = (1, &Progress::default());
                    let all = pass::exposures(&model, &table, factors, (factor, &[]), &weights, here).unwrap();
                    weighted.copy_from_slice(&all[row * matrix.stride..(row + 1) * matrix.stride]);
                }
                let from = if symmetric { row } else { 0 };
                let pairs = weighted.iter().zip(exposures).skip(from);
                assert!(pairs.clone().all(|(a, b)| (a - b).abs() < 1e-11), "{name} {factor} {row}");
            }
        }
    }

    #[test]
    fn exposures_are_the_derivatives_of_the_observed_total() {
        let held_out: Vec<u8> = (0..24).map(|i| u8::from(i % 5 == 0 || i >= 20)).collect();
        let factors: Vec<_> = [2, 3, 4].into_iter().enumerate().map(|(m, extent)| matrix(extent, 3, m)).collect();
        check_exposures("cp", &[2, 3, 4], &factors, &held_out);
    }

    #[test]
    fn exposures_of_blockmodels_are_derivatives_too() {
        let held_out: Vec<u8> = (0..25).map(|i| u8::from(i % 7 == 2)).collect();
        let mut factors = vec![matrix(5, 3, 1), matrix(3, 3, 2)];
        check_exposures("directed", &[5], &factors, &held_out);
        for (c, d) in [(1, 0), (2, 0), (2, 1)] {
            factors[1].row_mut(c)[d] = factors[1].row(d)[c];
        }
        check_exposures("undirected", &[5], &factors, &held_out);
    }

    #[test]
    fn exposures_with_a_core_are_derivatives_whether_modes_are_tied_or_not() {
        let held_out: Vec<u8> = (0..48).map(|i| u8::from(i % 5 == 0 || i >= 44)).collect();
        let factors = vec![matrix(2, 2, 0), matrix(3, 3, 1), matrix(2, 2, 2), matrix(4, 3, 3), matrix(12, 3, 4)];
        check_exposures("tucker", &[2, 3, 2, 4, 2, 3, 2, 3, 0, 1, 2, 3], &factors, &held_out);
        check_exposures("tucker", &[2, 3, 2, 4, 2, 3, 2, 3, 0, 1, 2, 3], &factors, &[0; 48]);
        // Modes 1 and 3 are tied: no cell has the same index twice.
        let same = |i: usize| i % 4 == i / 8 % 4;
        let held_out: Vec<u8> = (0..64).map(|i| u8::from(same(i) || i % 7 == 0)).collect();
        let factors = vec![matrix(2, 2, 0), matrix(4, 3, 1), matrix(2, 2, 2), matrix(12, 3, 4)];
        check_exposures("tucker-tied", &[2, 4, 2, 4, 2, 3, 2, 3, 0, 1, 2, 1], &factors, &held_out);
    }
}
