//! What a structure of factors (matrix or tensor, blockmodel) says of itself: sizes, rates, exposures, its conditionals.
//!
//! A new structure is one file with one implementation, and one line in [`super::model::Kind::structure`].

use super::coordinate_ascent::{CoordinateAscent, Sums};
use super::factor_matrix::FactorMatrix;
use super::gibbs::{GibbsChain, Tally};
use super::model::Model;
use crate::Result;

/// A pass of an ascent over all cells: sums for a tally left of the product, and to its right if asked for.
pub type Pass<'a> = dyn FnMut(&mut CoordinateAscent, Option<usize>, bool) -> Result<Sums> + 'a;

/// A way in which factors make rates.
pub trait Structure: Sync {
    /// Rows and columns of the table, if there can be such extents.
    fn table_shape(&self, extents: &[usize]) -> Option<(usize, usize)>;

    /// Rows and components of each factor.
    fn shapes(&self, extents: &[usize], width: usize) -> Vec<(usize, usize)>;

    /// Shapes of the tallies of a sweep, the last of them to the right of the product.
    fn tally_shapes(&self, extents: &[usize], width: usize) -> Vec<(usize, usize)>;

    /// How many tallies are left of the product.
    fn left_tallies(&self, extents: &[usize]) -> usize;

    /// The number of the factor of the columns.
    fn right(&self, extents: &[usize]) -> usize;

    /// Whether the model has a rate for a cell.
    fn has_rate(&self, _row: usize, _column: usize) -> bool {
        true
    }

    /// The first column of a row that may have a rate.
    fn first_column(&self, _row: usize) -> usize {
        0
    }

    /// The index of a cell in a mode, or in the tally of the same number.
    fn index(&self, extents: &[usize], number: usize, row: usize, column: usize) -> usize;

    /// The weights of a row, u_r.
    fn left(&self, factors: &[FactorMatrix], row: usize, out: &mut [f64]);

    /// Whether a row's weights are products of entries of factors, of each of which a rate has one.
    fn is_product(&self) -> bool {
        false
    }

    /// How many products a rate sums, and of how many entries each.
    fn terms(&self, extents: &[usize], width: usize) -> (f64, f64);

    /// Whether a factor is a symmetric matrix.
    fn is_symmetric(&self, _factor: usize) -> bool {
        false
    }

    /// The sum of the observed rates.
    fn total_rate(&self, model: &Model, factors: &[FactorMatrix]) -> f64;

    /// Draws the factors of a chain given the tally of a sweep; the sum of the observed rates, where it falls out.
    fn redraw(&self, chain: &mut GibbsChain, tally: &Tally) -> Option<f64>;

    /// Does one iteration of an ascent: each factor's law at the optimum given the others.
    fn ascend(&self, fit: &mut CoordinateAscent, pass: &mut Pass<'_>) -> Result<()>;
}
