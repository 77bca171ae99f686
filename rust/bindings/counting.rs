//! Counting: from Python to the core and back.

use crate::arrays;
use crate::boundary::{compute, raise};
use num_bigint::{BigInt, BigUint};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use quincunx::counting::evaluation::Options;
use quincunx::counting::independent_sets::{self as counting, Boundary, Kind, Problem};
use quincunx::counting::transfer::Point;
use quincunx::numeric::residue::{self, Modulus};
use std::path::PathBuf;
use std::time::Duration;

/// What is counted on, as Python says it: a lattice by its name, or a graph by its edges and perhaps an order.
#[derive(FromPyObject)]
pub enum ProblemArgument<'py> {
    /// `(kind, rows, cols, boundary)`.
    #[pyo3(transparent)]
    Lattice((String, usize, usize, String)),
    /// `(n, edges, order or None)`.
    #[pyo3(transparent)]
    Graph((usize, PyReadonlyArray2<'py, i64>, Option<PyReadonlyArray1<'py, i64>>)),
}

impl ProblemArgument<'_> {
    fn problem(self, py: Python<'_>) -> PyResult<Problem> {
        match self {
            Self::Lattice((kind, rows, cols, boundary)) => {
                Ok(Problem::Lattice { kind: named_kind(&kind)?, rows, cols, boundary: named_boundary(&boundary)? })
            }
            Self::Graph((vertices, edges, order)) => Ok(Problem::Graph {
                graph: arrays::graph(py, vertices, &edges)?,
                order: order.map(|order| arrays::vertices(&order, "order")).transpose()?,
            }),
        }
    }
}

fn named_kind(kind: &str) -> PyResult<Kind> {
    match kind {
        "square" => Ok(Kind::Square),
        "king" => Ok(Kind::King),
        "triangular" => Ok(Kind::Triangular),
        "4-8-8" => Ok(Kind::FourEightEight),
        _ => Err(PyValueError::new_err(format!("`kind` must be a lattice with a kernel of its own, got {kind:?}"))),
    }
}

fn named_boundary(boundary: &str) -> PyResult<Boundary> {
    match boundary {
        "free" => Ok(Boundary::Free),
        "cylinder" => Ok(Boundary::Cylinder),
        "torus" => Ok(Boundary::Torus),
        _ => Err(PyValueError::new_err(format!("`boundary` must be 'free', 'cylinder' or 'torus', got {boundary:?}"))),
    }
}

/// How a job may run, as Python says it.
fn options(
    threads: usize,
    memory_limit: u64,
    checkpoint: Option<PathBuf>,
    checkpoint_interval: Option<f64>,
) -> Options {
    Options { threads, memory_limit, checkpoint, checkpoint_interval: checkpoint_interval.map(Duration::from_secs_f64) }
}

/// See `quincunx.counting.count_independent_sets`.
#[pyfunction]
#[pyo3(signature = (problem, *, threads, memory_limit, progress=None, checkpoint=None, checkpoint_interval=None))]
pub fn count_independent_sets(
    py: Python<'_>,
    problem: ProblemArgument<'_>,
    threads: usize,
    memory_limit: u64,
    progress: Option<Py<PyAny>>,
    checkpoint: Option<PathBuf>,
    checkpoint_interval: Option<f64>,
) -> PyResult<BigUint> {
    let problem = problem.problem(py)?;
    let options = options(threads, memory_limit, checkpoint, checkpoint_interval);
    compute(py, progress, |monitor| counting::count_independent_sets(&problem, &options, monitor))
}

/// See `quincunx.counting.independence_polynomial`.
#[pyfunction]
#[pyo3(signature = (problem, *, threads, memory_limit, progress=None, checkpoint=None, checkpoint_interval=None))]
pub fn independence_polynomial(
    py: Python<'_>,
    problem: ProblemArgument<'_>,
    threads: usize,
    memory_limit: u64,
    progress: Option<Py<PyAny>>,
    checkpoint: Option<PathBuf>,
    checkpoint_interval: Option<f64>,
) -> PyResult<Vec<BigUint>> {
    let problem = problem.problem(py)?;
    let options = options(threads, memory_limit, checkpoint, checkpoint_interval);
    compute(py, progress, |monitor| counting::independence_polynomial(&problem, &options, monitor))
}

/// `Z(numerator / denominator)` as a pair of integers; see `quincunx.counting.hard_core`.
#[pyfunction]
#[pyo3(signature = (problem, numerator, denominator, *, threads, memory_limit, progress=None, checkpoint=None, checkpoint_interval=None))]
#[allow(clippy::too_many_arguments)]
pub fn hard_core_rational(
    py: Python<'_>,
    problem: ProblemArgument<'_>,
    numerator: BigInt,
    denominator: BigUint,
    threads: usize,
    memory_limit: u64,
    progress: Option<Py<PyAny>>,
    checkpoint: Option<PathBuf>,
    checkpoint_interval: Option<f64>,
) -> PyResult<(BigInt, BigUint)> {
    let problem = problem.problem(py)?;
    let options = options(threads, memory_limit, checkpoint, checkpoint_interval);
    compute(py, progress, |monitor| counting::hard_core_rational(&problem, &numerator, &denominator, &options, monitor))
}

/// `Z(activity)` as mantissa, power of two and relative error; see `quincunx.counting.hard_core`.
#[pyfunction]
#[pyo3(signature = (problem, activity, *, threads, memory_limit, progress=None))]
pub fn hard_core_float(
    py: Python<'_>,
    problem: ProblemArgument<'_>,
    activity: f64,
    threads: usize,
    memory_limit: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<(f64, i64, f64)> {
    let problem = problem.problem(py)?;
    let options = options(threads, memory_limit, None, None);
    let value = compute(py, progress, |monitor| counting::hard_core_float(&problem, activity, &options, monitor))?;
    Ok((value.mantissa, value.exponent, value.relative_error))
}

/// Residues of `Z` at pairs of a modulus and an activity; see `quincunx.counting.residue`.
#[pyfunction]
#[pyo3(signature = (problem, points, *, threads, memory_limit, progress=None))]
pub fn residues(
    py: Python<'_>,
    problem: ProblemArgument<'_>,
    points: Vec<(u64, u64)>,
    threads: usize,
    memory_limit: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<u64>> {
    let problem = problem.problem(py)?;
    let options = options(threads, memory_limit, None, None);
    let point = |(modulus, activity)| Ok(Point { modulus: Modulus::new(modulus)?, activity });
    let points =
        points.into_iter().map(point).collect::<quincunx::Result<Vec<_>>>().map_err(|error| raise(py, error))?;
    compute(py, progress, |monitor| counting::residues(&problem, &points, &options, monitor))
}

/// The number with the given residues; see `quincunx.counting.combine_residues`.
#[pyfunction]
pub fn combine_residues(py: Python<'_>, residues: Vec<(u64, u64)>) -> PyResult<BigUint> {
    compute(py, None, |_| residue::combine(&residues))
}

/// The primes counts are taken modulo; see `quincunx.counting.primes`.
#[pyfunction]
pub fn primes(py: Python<'_>, count: usize) -> PyResult<Vec<u64>> {
    compute(py, None, |_| Ok(residue::primes(count)?.into_iter().map(Modulus::value).collect()))
}

/// A forecast as a dictionary; see `quincunx.counting.estimate_cost`.
#[pyfunction]
#[pyo3(signature = (problem, *, threads, memory_limit))]
pub fn estimate_cost<'py>(
    py: Python<'py>,
    problem: ProblemArgument<'_>,
    threads: usize,
    memory_limit: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let problem = problem.problem(py)?;
    let cost = compute(py, None, |_| counting::estimate_cost(&problem, &options(threads, memory_limit, None, None)))?;
    let answer = PyDict::new(py);
    answer.set_item("engine", cost.engine)?;
    answer.set_item("states", cost.states)?;
    answer.set_item("lanes", cost.lanes)?;
    answer.set_item("bytes", cost.bytes)?;
    answer.set_item("primes", cost.primes)?;
    answer.set_item("additions", cost.additions)?;
    answer.set_item("seconds", cost.seconds)?;
    Ok(answer)
}
