//! Growth constants: from Python to the core and back.

use crate::boundary::{compute, dictionary, raise};
use num_bigint::BigUint;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use quincunx::counting::periodic::{self, PeriodicBond, Precision, Ratio};
use quincunx::entropy::corner::{self, Goal, PRECISION};
use quincunx::entropy::model::{FaceWeights, Rational, RowModel};
use quincunx::entropy::saved;
use quincunx::entropy::window::{self, CellOrder, WindowBounds, WindowCell};
use quincunx::lattices::NamedLattice;
use quincunx::parallel;
use std::path::PathBuf;
use std::time::Duration;

/// A rational number that is not negative, and the nearest double.
type RationalArgument = (BigUint, BigUint, f64);

fn rational((numerator, denominator, value): RationalArgument) -> Rational {
    Rational { numerator, denominator, value }
}

/// What lives on a lattice: independent sets or matchings, or letters with weights of neighbors in a row and of faces.
#[derive(FromPyObject)]
pub enum ModelArgument {
    /// A model that the lattice's row in the registry has an operator for.
    Named(String),
    /// Letters, their number first.
    Faces(usize, Vec<RationalArgument>, Vec<RationalArgument>),
}

/// Rounds of bounds by corner tensors; see `quincunx.entropy.entropy_bounds`.
#[pyfunction]
#[pyo3(signature = (
    lattice, form, activity, *, model, pair, gap, bond_dimension, max_bond_dimension, estimate, digits=None,
    factor=None, checkpoint=None, checkpoint_interval=None, progress=None
))]
#[allow(clippy::too_many_arguments)]
pub fn corner_bounds<'py>(
    py: Python<'py>,
    lattice: &str,
    form: usize,
    activity: RationalArgument,
    model: ModelArgument,
    pair: RationalArgument,
    gap: f64,
    bond_dimension: Option<usize>,
    max_bond_dimension: usize,
    estimate: bool,
    digits: Option<u32>,
    factor: Option<RationalArgument>,
    checkpoint: Option<PathBuf>,
    checkpoint_interval: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyList>> {
    let row = NamedLattice::named(lattice).map_err(|error| raise(py, error))?;
    let model = match model {
        ModelArgument::Named(name) => {
            let tensors = if name == "matchings" { row.matching_tensors } else { row.row_tensors };
            tensors.get(form).map(RowModel::new)
        }
        ModelArgument::Faces(letters, rows, faces) => {
            let [rows, faces] = [rows, faces].map(|weights| weights.into_iter().map(rational).collect());
            Some(RowModel::of_faces(&FaceWeights { letters, rows, faces }))
        }
    };
    let model =
        model.ok_or_else(|| PyValueError::new_err(format!("`lattice` must have a row operator, got {lattice:?}")))?;
    let model = RowModel { pair: rational(pair), ..model };
    let activity: Rational = rational(activity);
    let factor = factor.map(rational);
    let goal = Goal { gap, bond_dimension, max_bond_dimension, estimate, digits, factor };
    let interval = checkpoint_interval.map(Duration::from_secs_f64);
    let found = compute(py, progress, |monitor| {
        parallel::run(1, corner::tenths(gap), monitor, |progress| match &checkpoint {
            None => corner::bounds(&model, &activity, &goal, progress),
            Some(path) => saved::bounds(&model, &activity, &goal, path, interval, progress),
        })
    })?;
    let letters: Vec<Vec<usize>> = match model.bond_letters {
        Some(_) => model.steps.iter().map(|step| vec![step.from, step.to]).collect(),
        None => model.steps.iter().map(|step| vec![step.letter]).collect(),
    };
    let rounds = found.into_iter().map(|bounds| {
        let tensors: Vec<_> = bounds.tensors.into_iter().map(|m| (m.rows, m.cols, m.data)).collect();
        let round = dictionary!(
            py, bounds; lower, upper, sites, bond_dimension, steps, ring, rows, second, gap, cut, spectrum, density,
            occupied, decay, bits
        );
        round.set_item("precision", PRECISION)?;
        round.set_item("tensors", tensors)?;
        round.set_item("letters", &letters)?;
        Ok(round)
    });
    PyList::new(py, rounds.collect::<PyResult<Vec<_>>>()?)
}

/// The transfer operator of a period of a strip or ring; see `rust/exact/counting/periodic.rs`.
#[pyclass(frozen, module = "quincunx._core")]
pub struct PeriodicOperator {
    operator: periodic::PeriodicOperator,
}

#[pymethods]
impl PeriodicOperator {
    /// Sites of a period in the order they are introduced, bonds as site, site, periods between them.
    #[new]
    #[pyo3(signature = (sites, bonds, memory, *, progress=None))]
    fn new(
        py: Python<'_>,
        sites: usize,
        bonds: Vec<PeriodicBond>,
        memory: u128,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let operator = compute(py, progress, |monitor| {
            parallel::run(1, 0, monitor, |progress| periodic::PeriodicOperator::new(sites, &bonds, memory, progress))
        })?;
        Ok(Self { operator })
    }

    /// Sites of a period.
    #[getter]
    fn sites(&self) -> usize {
        self.operator.sites()
    }

    /// Sites between two periods that wait for a neighbor.
    #[getter]
    fn frontier(&self) -> usize {
        self.operator.frontier()
    }

    /// States between two periods.
    #[getter]
    fn states(&self) -> usize {
        self.operator.states()
    }

    /// At most and at least the Perron root, times a power of two, with its exponent; a weight for each site.
    #[pyo3(signature = (weights, precision, *, progress=None))]
    fn root(
        &self,
        py: Python<'_>,
        weights: Vec<Ratio>,
        precision: &str,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(BigUint, BigUint, u32)> {
        let precision = Precision::ALL.into_iter().find(|known| known.name() == precision);
        let precision = precision.ok_or_else(|| PyValueError::new_err("`precision` must be known"))?;
        let root = compute(py, progress, |monitor| {
            parallel::run(1, 0, monitor, |progress| self.operator.root(&weights, precision, progress))
        })?;
        Ok((root.lower, root.upper, periodic::PRECISION))
    }

    /// The number of independent sets of so many periods.
    #[pyo3(signature = (periods, *, progress=None))]
    fn count(&self, py: Python<'_>, periods: u64, progress: Option<Py<PyAny>>) -> PyResult<BigUint> {
        compute(py, progress, |monitor| {
            parallel::run(1, periods, monitor, |progress| self.operator.count(periods, progress))
        })
    }
}

/// Bounds by windows; see `quincunx.entropy.entropy_bounds`.
#[pyfunction]
#[pyo3(signature = (cell, order, activity, *, width, states, progress=None))]
pub fn window_bounds<'py>(
    py: Python<'py>,
    cell: CellArgument,
    order: CellOrder,
    activity: f64,
    width: usize,
    states: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (vectors, positions, bonds) = cell;
    let bonds = bonds.into_iter().map(|(u, v, (i, j))| (u, v, i, j)).collect();
    let cell = WindowCell { positions, vectors, bonds };
    let found: WindowBounds = compute(py, progress, |monitor| {
        parallel::run(1, 0, monitor, |progress| window::window_bounds(&cell, order, activity, width, states, progress))
    })?;
    Ok(dictionary!(py, found; lower, upper, window, frontier, states))
}

/// A unit cell: basis vectors, places of the sites, bonds.
type CellArgument = ([[f64; 2]; 2], Vec<[f64; 2]>, Vec<(usize, usize, (i64, i64))>);
