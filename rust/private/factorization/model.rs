//! The models: how factors make rates, how counts of a sweep are added up, and what each gamma factor is exposed to.
//!
//! Canonical polyadic ("cp"), modes m = 1..M:  mu_i = sum_k prod_m F^m[i_m, k]; the rows of the table are the first M - 1 modes.
//!   u_r = product over m < M of F^m[i_m], R = F^M. Two modes make the matrix model; weights of components are a mode of extent 1.
//! Directed blockmodel:  mu_ij = sum_cd T_ic P_cd T_jd, i != j;  u_i = P' T_i, R = T.
//! Undirected: the same for i < j only, with P symmetric.
//!
//! A factor's exposure is the derivative of the sum of the observed rates by that entry; with the counts n that fell to it,
//! its conditional is Gamma(shape + n, rate + exposure). Held-out cells are taken off the exposure and never counted.
//! Source: A. Schein et al. (2019), section 4 of the appendix; the sums over pairs i < j are derived here.

use super::blockmodel::Blockmodel;
use super::cp::Cp;
use super::factor_matrix::FactorMatrix;
use super::released_counts::{HELD_OUT, ReleasedCounts};
use super::split::LANES;
use super::structure::Structure;
use crate::{Error, Result, memory};

/// Which model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Matrices and tensors.
    Cp,
    /// Blockmodel of ordered pairs.
    Directed,
    /// Blockmodel of unordered pairs.
    Undirected,
}

impl Kind {
    /// What a kind says of itself: the one place that tells them apart.
    pub(super) fn structure(self) -> &'static dyn Structure {
        match self {
            Self::Cp => &Cp,
            Self::Directed => &Blockmodel { undirected: false },
            Self::Undirected => &Blockmodel { undirected: true },
        }
    }
}

/// The gamma prior of a factor: shapes and rates, one for all or one per entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Prior {
    /// Shapes.
    pub shape: Vec<f64>,
    /// Rates.
    pub rate: Vec<f64>,
}

impl Prior {
    /// Shape and rate of an entry.
    #[inline]
    pub fn at(&self, entry: usize) -> (f64, f64) {
        let pick = |values: &[f64]| if values.len() == 1 { values[0] } else { values[entry] };
        (pick(&self.shape), pick(&self.rate))
    }

    fn check(&self, entries: usize) -> Result<()> {
        for (name, values) in [("prior_shape", &self.shape), ("prior_rate", &self.rate)] {
            if values.len() != 1 && values.len() != entries {
                let (expected, found) = (format!("() or ({entries},)"), format!("({},)", values.len()));
                return Err(Error::Shape { name, expected, found });
            }
            if let Some(bad) = values.iter().find(|x| !(**x > 0.0 && x.is_finite())) {
                return Err(Error::Domain { name, value: bad.to_string(), requirement: "positive and finite" });
            }
        }
        Ok(())
    }
}

/// Cells held out of the model's own choosing left aside: for each index of each factor, which.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HeldOut {
    starts: Vec<usize>,
    /// All cells, those of one index after those of the one before.
    pub cells: Vec<u64>,
}

impl HeldOut {
    fn new(extent: usize, mut pairs: Vec<(usize, u64)>) -> Self {
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

/// Bytes for each entry of a factor: its value, and as much again for tallies of counts and what is worked out of it.
const FACTORS: u128 = 32;

/// A model of a table: sizes, priors, and which cells it must do without.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    kind: Kind,
    extents: Vec<usize>,
    width: usize,
    priors: Vec<Prior>,
    pub(super) held: Vec<HeldOut>,
}

impl Model {
    /// A model of these extents and number of components for a table.
    ///
    /// # Errors
    /// [`Error::Shape`] where table, extents and priors do not fit; [`Error::Domain`] for a prior that is not positive;
    /// [`Error::TooLarge`] if the factors do not fit into memory.
    pub fn new(
        kind: Kind,
        extents: &[usize],
        width: usize,
        priors: Vec<Prior>,
        table: &ReleasedCounts,
    ) -> Result<Self> {
        Self::sized(kind, extents, width, priors, (table.rows(), table.cols()), table)
    }

    fn sized(
        kind: Kind,
        extents: &[usize],
        width: usize,
        priors: Vec<Prior>,
        size: (usize, usize),
        table: &ReleasedCounts,
    ) -> Result<Self> {
        if width == 0 {
            let (value, requirement) = ("0".to_owned(), "at least 1");
            return Err(Error::Domain { name: "n_components", value, requirement });
        }
        let (rows, cols) = kind.structure().table_shape(extents).ok_or_else(|| {
            let requirement = "at least two modes, or the number of actors";
            Error::Domain { name: "extents", value: format!("{extents:?}"), requirement }
        })?;
        if (rows, cols) != size {
            let (expected, found) = (format!("({rows}, {cols})"), format!("{size:?}"));
            return Err(Error::Shape { name: "released", expected, found });
        }
        let mut model = Self { kind, extents: extents.to_vec(), width, priors, held: vec![] };
        memory::charge("a model of so many components", FACTORS * model.padded_entries())?;
        let shapes = model.shapes();
        if model.priors.len() != shapes.len() {
            let (expected, found) = (format!("({},)", shapes.len()), format!("({},)", model.priors.len()));
            return Err(Error::Shape { name: "priors", expected, found });
        }
        shapes.iter().zip(&model.priors).try_for_each(|((rows, width), prior)| prior.check(rows * width))?;
        model.held = model.held_out_cells(table);
        Ok(model)
    }

    /// Hides the cells of a table that the model has no rate for.
    pub fn hide(&self, table: &mut ReleasedCounts) {
        let structure = self.structure();
        table.hide(|row, column| !structure.has_rate(row, column));
    }

    /// Whether there are such cells.
    pub fn hides(&self) -> bool {
        !self.structure().has_rate(0, 0)
    }

    /// A model for rates alone: no table, and priors that are not looked at.
    ///
    /// # Errors
    /// As [`Model::new`].
    pub fn without_data(kind: Kind, extents: &[usize], width: usize) -> Result<Self> {
        let (rows, cols) = match extents {
            [actors] => (*actors, *actors),
            [first @ .., last] => (first.iter().product(), *last),
            [] => (0, 0),
        };
        let table = ReleasedCounts::new(&[0i64; 0], 0, 0, super::released_counts::Alpha::One(0.0), None)?;
        let prior = Prior { shape: vec![1.0], rate: vec![1.0] };
        let factors = kind.structure().shapes(extents, width).len();
        Self::sized(kind, extents, width, vec![prior; factors], (rows, cols), &table)
    }

    /// Entries of all factors as they lie in memory.
    pub(super) fn padded_entries(&self) -> u128 {
        let padded = |(rows, width): (usize, usize)| rows as u128 * width.next_multiple_of(LANES) as u128;
        self.shapes().into_iter().map(padded).sum()
    }

    /// Rows of the table.
    pub fn rows(&self) -> usize {
        match self.extents.as_slice() {
            [actors] => *actors,
            modes => modes[..modes.len() - 1].iter().product(),
        }
    }

    /// Cells of the table.
    pub fn cells(&self) -> usize {
        self.rows() * self.extents[self.extents.len() - 1]
    }

    /// Whether matrices are factors of this model.
    ///
    /// # Errors
    /// [`Error::Shape`]; [`Error::Domain`] for an entry that is negative or not finite.
    pub fn check(&self, matrices: &[FactorMatrix]) -> Result<()> {
        let shapes: Vec<_> = matrices.iter().map(|matrix| (matrix.rows, matrix.width)).collect();
        if shapes != self.shapes() {
            let (expected, found) = (format!("{:?}", self.shapes()), format!("{shapes:?}"));
            return Err(Error::Shape { name: "factors", expected, found });
        }
        let bad = matrices.iter().flat_map(FactorMatrix::padded).find(|x| !(**x >= 0.0 && x.is_finite()));
        bad.map_or(Ok(()), |bad| {
            Err(Error::Domain { name: "factors", value: bad.to_string(), requirement: "at least 0 and finite" })
        })
    }

    /// For each index of each factor, the cells that are held out.
    fn held_out_cells(&self, table: &ReleasedCounts) -> Vec<HeldOut> {
        let structure = self.structure();
        let mut pairs = vec![vec![]; self.extents.len().max(2)];
        if table.held_out() > 0 {
            for row in 0..table.rows() {
                let codes = table.row(row).codes.iter().enumerate();
                for (column, _) in codes.filter(|(column, code)| **code == HELD_OUT && structure.has_rate(row, *column))
                {
                    let cell = (row * table.cols() + column) as u64;
                    for (number, pairs) in pairs.iter_mut().enumerate() {
                        pairs.push((structure.index(&self.extents, number, row, column), cell));
                    }
                }
            }
        }
        let extent = |mode: usize| self.extents[mode.min(self.extents.len() - 1)];
        pairs.into_iter().enumerate().map(|(mode, pairs)| HeldOut::new(extent(mode), pairs)).collect()
    }

    /// What the kind of model says of itself.
    pub(super) fn structure(&self) -> &'static dyn Structure {
        self.kind.structure()
    }

    /// Which model.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The extents of the modes, or the number of actors.
    pub fn extents(&self) -> &[usize] {
        &self.extents
    }

    /// Number of components of a row and a column.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The prior of a factor.
    pub fn prior(&self, factor: usize) -> &Prior {
        &self.priors[factor]
    }

    /// Rows and components of each factor.
    pub fn shapes(&self) -> Vec<(usize, usize)> {
        self.structure().shapes(&self.extents, self.width)
    }

    /// Shapes of the tallies of a sweep: counts by component that fell to the left of the product, and to its right.
    pub fn tally_shapes(&self) -> Vec<(usize, usize)> {
        self.structure().tally_shapes(&self.extents, self.width)
    }

    /// The factor of the columns.
    pub fn right<'a>(&self, factors: &'a [FactorMatrix]) -> &'a FactorMatrix {
        &factors[self.structure().right(&self.extents)]
    }

    /// The first column of a row that the model explains.
    pub fn first_column(&self, row: usize) -> usize {
        self.structure().first_column(row)
    }

    /// The weights of a row, u_r.
    #[inline]
    pub fn left(&self, factors: &[FactorMatrix], row: usize, out: &mut [f64]) {
        self.structure().left(factors, row, out);
    }

    /// Where the parts of a row are added: `(tally, index)` for each tally left of the product.
    #[inline]
    pub fn places(&self, row: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let structure = self.structure();
        let column = 0; // not looked at: only indices of the row are asked for
        (0..structure.left_tallies(&self.extents))
            .map(move |tally| (tally, structure.index(&self.extents, tally, row, column)))
    }

    /// The sum of the observed rates.
    pub fn total_rate(&self, factors: &[FactorMatrix]) -> f64 {
        self.structure().total_rate(self, factors).max(0.0)
    }

    /// Row and column of a cell of a table with so many columns.
    pub(super) fn cell(&self, cell: u64, cols: usize) -> (usize, usize) {
        ((cell / cols as u64) as usize, (cell % cols as u64) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factorization::blockmodel::gram;
    use crate::factorization::released_counts::Alpha;

    fn matrix(rows: usize, width: usize, seed: usize) -> FactorMatrix {
        let values: Vec<f64> = (0..rows * width).map(|i| 0.1 + ((i * 7 + seed * 5) % 11) as f64 / 7.0).collect();
        FactorMatrix::packed(rows, width, &values).unwrap()
    }

    fn prior() -> Prior {
        Prior { shape: vec![1.0], rate: vec![1.0] }
    }

    /// The sum of the observed rates, cell by cell.
    fn total(model: &Model, factors: &[FactorMatrix], table: &ReleasedCounts) -> f64 {
        let mut left = vec![0.0; model.width().next_multiple_of(LANES)];
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
    fn slope(
        model: &Model,
        factors: &[FactorMatrix],
        table: &ReleasedCounts,
        factor: usize,
        row: usize,
        k: usize,
    ) -> f64 {
        let mut raised = factors.to_vec();
        raised[factor].row_mut(row)[k] += 1.0;
        if model.kind() == Kind::Undirected && factor == 1 && row != k {
            raised[factor].row_mut(k)[row] += 1.0;
        }
        total(model, &raised, table) - total(model, factors, table)
    }

    #[test]
    fn exposures_are_the_derivatives_of_the_observed_total() {
        let held_out: Vec<u8> = (0..24).map(|i| u8::from(i % 5 == 0 || i >= 20)).collect();
        let table = ReleasedCounts::new(&[1; 24], 6, 4, Alpha::One(0.5), Some(&held_out)).unwrap();
        let model = Model::new(Kind::Cp, &[2, 3, 4], 3, vec![prior(); 3], &table).unwrap();
        let factors: Vec<_> = [2, 3, 4].into_iter().enumerate().map(|(m, extent)| matrix(extent, 3, m)).collect();
        assert!((model.total_rate(&factors) - total(&model, &factors, &table)).abs() < 1e-12);
        let sums: Vec<_> = factors.iter().map(FactorMatrix::sums).collect();
        let mut out = vec![0.0; 8];
        for (mode, extent) in [2, 3, 4].into_iter().enumerate() {
            for index in 0..extent {
                Cp.exposure(&model, mode, index, &factors, &sums, &mut out);
                for (k, exposure) in out[..3].iter().enumerate() {
                    assert!((exposure - slope(&model, &factors, &table, mode, index, k)).abs() < 1e-11);
                }
            }
        }
    }

    #[test]
    fn exposures_of_blockmodels_are_derivatives_too() {
        for kind in [Kind::Directed, Kind::Undirected] {
            let undirected = kind == Kind::Undirected;
            let held_out: Vec<u8> = (0..25).map(|i| u8::from(i % 7 == 2)).collect();
            let mut table = ReleasedCounts::new(&[1; 25], 5, 5, Alpha::One(0.5), Some(&held_out)).unwrap();
            let model = Model::new(kind, &[5], 3, vec![prior(); 2], &table).unwrap();
            model.hide(&mut table);
            let mut factors = vec![matrix(5, 3, 1), matrix(3, 3, 2)];
            for c in 0..3 {
                for d in 0..c {
                    let mirrored = factors[1].row(d)[c];
                    if kind == Kind::Undirected {
                        factors[1].row_mut(c)[d] = mirrored;
                    }
                }
            }
            assert!((model.total_rate(&factors) - total(&model, &factors, &table)).abs() < 1e-11);
            let (sums, gram) = (factors[0].sums(), gram(&factors[0]));
            let mut out = vec![0.0; 8];
            for actor in 0..5 {
                Blockmodel { undirected }.exposure_of_actor(&model, actor, &factors, &sums, &mut out);
                for (k, exposure) in out[..3].iter().enumerate() {
                    assert!((exposure - slope(&model, &factors, &table, 0, actor, k)).abs() < 1e-11, "{kind:?}");
                }
            }
            for c in 0..3 {
                Blockmodel { undirected }.exposure_of_block(&model, c, &factors[0], &sums, &gram, &mut out);
                let from = if kind == Kind::Undirected { c } else { 0 };
                for (d, exposure) in out[..3].iter().enumerate().skip(from) {
                    assert!((exposure - slope(&model, &factors, &table, 1, c, d)).abs() < 1e-11, "{kind:?} {c} {d}");
                }
            }
        }
    }
}
