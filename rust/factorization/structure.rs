//! What a structure of factors (matrix or tensor, blockmodel) says of itself: sizes, rates, and the conditionals of its entries.
//!
//! The conditional of an entry is Gamma(shape + counts, rate + exposure). A structure tells counts and exposures as values;
//! [`super::gibbs`] draws from them and [`super::coordinate_ascent`] puts expectations in their place.
//! A new structure is one file with one implementation, and one line in [`super::model::STRUCTURES`].

use super::factor_matrix::FactorMatrix;
use super::gammas::Prior;
use super::split::LANES;
use crate::stream::Xoshiro;
use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::Range;

/// The factors of a model.
pub type Factors = [FactorMatrix];
/// A factor and a row of it, or a mode and an index of it.
pub type Entries = (usize, usize);

/// Cells held out, those of the model's own choosing left aside: for each index of a mode, which.
#[derive(Clone, Debug)]
pub struct HeldOut {
    starts: Vec<usize>,
    /// All cells, those of one index after those of the one before.
    pub cells: Vec<u64>,
}

impl HeldOut {
    /// From pairs of an index below the extent and a cell.
    pub fn new(extent: usize, mut pairs: Vec<(usize, u64)>) -> Self {
        pairs.sort_unstable();
        let mut starts = vec![0; extent + 1];
        pairs.iter().for_each(|(index, _)| starts[index + 1] += 1);
        (0..extent).for_each(|i| starts[i + 1] += starts[i]);
        Self { starts, cells: pairs.into_iter().map(|(_, cell)| cell).collect() }
    }

    /// The cells of an index.
    pub fn at(&self, index: usize) -> &[u64] {
        &self.cells[self.starts[index]..self.starts[index + 1]]
    }
}

/// The sizes of a model, and which cells it must do without.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The extents of the modes, or the number of actors.
    pub extents: Vec<usize>,
    /// Number of components of a row and a column.
    pub width: usize,
    /// Rows of the table.
    pub rows: usize,
    /// Columns of the table.
    pub cols: usize,
    /// What is held out, by the modes or as senders and receivers.
    pub held: Vec<HeldOut>,
}

impl Layout {
    /// Components with their padding.
    pub fn stride(&self) -> usize {
        self.width.next_multiple_of(LANES)
    }

    /// Row and column of a cell.
    pub fn cell(&self, cell: u64) -> (usize, usize) {
        ((cell / self.cols as u64) as usize, (cell % self.cols as u64) as usize)
    }
}

/// The index of a cell in a mode, where the rows of the table are all modes but the last, in C order.
pub fn mode_index(extents: &[usize], mode: usize, row: usize, column: usize) -> usize {
    let last = extents.len() - 1;
    if mode == last {
        return column;
    }
    row / extents[mode + 1..last].iter().product::<usize>() % extents[mode]
}

/// A way in which factors make rates. What is not said otherwise is that of matrices and tensors, the rows of whose table are all
/// modes but the last, fastest last, and each of whose modes has a factor and a tally.
pub trait Structure: Debug + Sync {
    /// Rows and columns of the table, if there can be such extents.
    fn table_shape(&self, extents: &[usize]) -> Option<(usize, usize)>;

    /// Rows and components of each factor.
    fn shapes(&self, extents: &[usize], width: usize) -> Vec<(usize, usize)>;

    /// The extents of the modes of the table.
    fn modes<'e>(&self, extents: &'e [usize]) -> &'e [usize] {
        extents
    }

    /// Shapes of the tallies of a sweep, the last of them to the right of the product.
    fn tally_shapes(&self, extents: &[usize], width: usize) -> Vec<(usize, usize)> {
        self.modes(extents).iter().map(|&extent| (extent, width)).collect()
    }

    /// How many tallies are left of the product.
    fn left_tallies(&self, extents: &[usize]) -> usize {
        self.modes(extents).len() - 1
    }

    /// The number of the factor of the columns.
    fn right(&self, extents: &[usize]) -> usize {
        self.modes(extents).len() - 1
    }

    /// The number of ways to index a cell: modes, or sender and receiver.
    fn indices(&self, extents: &[usize]) -> usize {
        self.modes(extents).len().max(2)
    }

    /// The extent of an index of cells.
    fn extent(&self, extents: &[usize], number: usize) -> usize {
        extents[number.min(extents.len() - 1)]
    }

    /// Whether the counts of cells held out are drawn, because the conditionals need every cell.
    fn imputes(&self) -> bool {
        false
    }

    /// Whether the model has a rate for a cell.
    fn has_rate(&self, _row: usize, _column: usize) -> bool {
        true
    }

    /// The first column of a row that may have a rate.
    fn first_column(&self, _row: usize) -> usize {
        0
    }

    /// The index of a cell in a mode, or in the tally of the same number.
    fn index(&self, extents: &[usize], number: usize, row: usize, column: usize) -> usize {
        mode_index(self.modes(extents), number, row, column)
    }

    /// The weights of a row, u_r.
    fn left(&self, layout: &Layout, factors: &Factors, row: usize, out: &mut [f64]);

    /// Whether a row's weights are products of entries of factors, of each of which a rate has one.
    fn is_product(&self) -> bool {
        false
    }

    /// Whether rows of the first factor are independent given the others, which see of them sums alone.
    fn is_split_by_rows(&self) -> bool {
        false
    }

    /// How many products a rate sums, and of how many entries each.
    fn terms(&self, extents: &[usize], width: usize) -> (f64, f64) {
        (width as f64, self.modes(extents).len() as f64)
    }

    /// Whether a factor is a symmetric matrix.
    fn is_symmetric(&self, _factor: usize) -> bool {
        false
    }

    /// Whether rows of a factor are updated one after the other, for they are exposed to one another or share entries.
    fn in_turn(&self) -> bool {
        false
    }

    /// The sum of the observed rates.
    fn total_rate(&self, layout: &Layout, factors: &Factors) -> f64;

    /// What the entries at a place, (factor, row), are exposed to, given the sums over the rows of each factor: the derivatives
    /// of [`Structure::total_rate`]. Of a symmetric matrix nothing is written below the diagonal.
    fn exposure(&self, layout: &Layout, place: Entries, factors: &Factors, sums: &[Vec<f64>], out: &mut [f64]);

    /// What the entries at a place would be exposed to in all cells. Only asked of models that [`Structure::is_split_by_rows`].
    fn of_all_cells(
        &self,
        _layout: &Layout,
        _place: Entries,
        _factors: &Factors,
        _sums: &[Vec<f64>],
        _out: &mut [f64],
    ) {
    }

    /// Adds what they would be exposed to in the cells held out, given what they are in all. What is added is rounded to a unit of
    /// which all cells have less than 2^51, so that these sums are exact. Only asked of the same models.
    fn add_held(&self, _layout: &Layout, _place: Entries, _factors: &Factors, _whole: &[f64], _held: &mut [f64]) {}

    /// What the entries of a factor would be exposed to in the cells held out of a part of the first mode, given the sums over the
    /// rows of each factor in all parts: sums over parts are exact. Nothing where none are.
    fn held_exposures(&self, layout: &Layout, factor: usize, factors: &Factors, sums: &[Vec<f64>]) -> Vec<f64> {
        if layout.held[0].cells.is_empty() {
            return vec![];
        }
        let FactorMatrix { rows, stride, .. } = factors[factor];
        let (mut whole, mut held) = (vec![0.0; stride], vec![0.0; rows * stride]);
        for (row, held) in held.chunks_exact_mut(stride).enumerate() {
            whole.fill(0.0);
            self.of_all_cells(layout, (factor, row), factors, sums, &mut whole);
            self.add_held(layout, (factor, row), factors, &whole, held);
        }
        held
    }

    /// [`Structure::exposure`] where each cell, row by row, has a weight by which its rate is multiplied, zero where it is not
    /// observed. Only asked of models whose rows are updated in turn.
    fn weighted_exposure(
        &self,
        _layout: &Layout,
        _place: Entries,
        _factors: &Factors,
        _weights: &[f64],
        _out: &mut [f64],
    ) {
    }

    /// Whether a factor has no conditional of its own, gamma or Dirichlet, but is redrawn by [`Structure::redraw`].
    fn is_redrawn_together(&self, _layout: &Layout, _factor: usize) -> bool {
        false
    }

    /// Redraws those factors given the counts, all but the fixed ones; a generator has any number that is asked for.
    fn redraw(
        &self,
        _layout: &Layout,
        _priors: &[Prior],
        _fixed: &[bool],
        _counts: &[Vec<u64>],
        _factors: &mut Factors,
        _rng: &dyn Fn(usize) -> Xoshiro,
    ) {
    }

    /// Gives the factors that a chain starts from, nearly even ones, the form that the structure wants of them.
    fn shape_start(&self, _layout: &Layout, _priors: &[Prior], _factors: &mut Factors) {}

    /// The counts of the entries of each factor, padded as it is, given the tallies of a sweep; those of a symmetric matrix are
    /// sums over both halves. What the tallies leave open is drawn, by a generator for each row; here nothing is.
    fn counts<'t>(
        &self,
        _layout: &Layout,
        _factors: &Factors,
        tallies: &'t [Vec<u64>],
        _rng: &dyn Fn(usize) -> Xoshiro,
    ) -> Cow<'t, [Vec<u64>]> {
        Cow::Borrowed(tallies)
    }

    /// The weighted sums of a pass that the expected counts of a factor are made of: for a tally left of the product, and to
    /// its right. Not asked of models some factors of which are redrawn together: they are neither overdispersed nor fitted by
    /// ascents.
    fn sums_for(&self, _layout: &Layout, _factor: usize) -> (Option<usize>, bool) {
        (None, false)
    }

    /// The expected counts of the entries of a factor, padded as it is, given those sums and the factors' geometric means.
    fn expected_counts(
        &self,
        _layout: &Layout,
        _factor: usize,
        _geometric: &Factors,
        _sums: (&[f64], &[f64]),
    ) -> Vec<f64> {
        vec![]
    }

    /// The part that some rows of the first mode have in the expected counts of another factor, given the weighted sums left of the
    /// product. Nothing where those add up to them already.
    fn counts_of_rows(
        &self,
        _layout: &Layout,
        _factor: usize,
        _geometric: &Factors,
        _left: &[f64],
        _rows: Range<usize>,
    ) -> Vec<f64> {
        vec![]
    }
}
