//! Growth constants: from Python to the core and back.

use crate::boundary::compute;
use num_bigint::BigUint;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use quincunx::entropy::corner::{self, Goal, PRECISION};
use quincunx::entropy::layers::Activity;
use quincunx::entropy::model::Model;
use quincunx::parallel;

/// Rounds of bounds by corner tensors; see `quincunx.entropy.entropy_bounds`.
#[pyfunction]
#[pyo3(signature = (lattice, activity, *, gap, bond_dimension, max_bond_dimension, estimate, progress=None))]
#[allow(clippy::too_many_arguments)]
pub fn corner_bounds<'py>(
    py: Python<'py>,
    lattice: &str,
    activity: (BigUint, BigUint, f64),
    gap: f64,
    bond_dimension: Option<usize>,
    max_bond_dimension: usize,
    estimate: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyList>> {
    let model = Model::named(lattice)
        .ok_or_else(|| PyValueError::new_err(format!("`lattice` must have a row operator, got {lattice:?}")))?;
    let activity = Activity { numerator: activity.0, denominator: activity.1, value: activity.2 };
    let goal = Goal { gap, bond_dimension, max_bond_dimension, estimate };
    let found = compute(py, progress, |monitor| {
        parallel::run(1, 0, monitor, |progress| corner::bounds(&model, &activity, &goal, progress))
    })?;
    let rounds = found.into_iter().map(|bounds| {
        let round = PyDict::new(py);
        round.set_item("lower", bounds.lower)?;
        round.set_item("upper", bounds.upper)?;
        round.set_item("precision", PRECISION)?;
        round.set_item("sites", bounds.sites)?;
        round.set_item("bond_dimension", bounds.bond_dimension)?;
        round.set_item("steps", bounds.steps)?;
        round.set_item("ring", bounds.ring)?;
        round.set_item("rows", bounds.rows)?;
        round.set_item("second", bounds.second)?;
        round.set_item("gap", bounds.gap)?;
        round.set_item("cut", bounds.cut)?;
        round.set_item("spectrum", bounds.spectrum)?;
        round.set_item("density", bounds.density)?;
        round.set_item("decay", bounds.decay)?;
        Ok(round)
    });
    PyList::new(py, rounds.collect::<PyResult<Vec<_>>>()?)
}
