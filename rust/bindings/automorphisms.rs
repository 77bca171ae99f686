//! Automorphism groups and distances: from Python to the core and back.

use crate::arrays::{self, LentRow, LentTable, Row, Table, graph, vertices};
use crate::boundary::{compute, raise};
use num_bigint::BigUint;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use quincunx::graphs::automorphism::{self as core, Clock};
use quincunx::graphs::distances as kernels;
use std::sync::Arc;
use std::time::Duration;

/// Moves of all generators, the number of each one's moves, base, base points each generator fixes, whether the base is
/// whole, order, and number of points: what a group is restored from.
type State<'py> = (usize, Table<'py, i64>, Row<'py, i64>, Row<'py, i64>, Row<'py, i64>, bool, Option<BigUint>);

/// A permutation group; see `quincunx.graphs.AutomorphismGroup`.
#[pyclass(frozen, module = "quincunx._core")]
pub struct PermutationGroup(Arc<core::AutomorphismGroup>);

/// The orbits on pairs; see `quincunx.graphs.Orbitals`.
#[pyclass(frozen, module = "quincunx._core")]
pub struct PairOrbits(Arc<core::Orbitals>);

impl PairOrbits {
    /// What the core calls them, for functions of rooms above this one.
    pub fn orbitals(&self) -> &core::Orbitals {
        &self.0
    }
}

fn row<T: Copy + Into<i64>>(py: Python<'_>, values: impl IntoIterator<Item = T>) -> Row<'_, i64> {
    PyArray1::from_iter(py, values.into_iter().map(Into::into))
}

fn table<'py>(py: Python<'py>, values: Vec<i64>, rows: usize, columns: usize) -> PyResult<Table<'py, i64>> {
    PyArray1::from_vec(py, values).reshape([rows, columns])
}

/// Runs work that looks at the clock, without the interpreter.
fn with_clock<T: Send>(
    py: Python<'_>,
    what: &'static str,
    work: impl FnOnce(&mut Clock<'_>) -> quincunx::Result<T> + Send,
) -> PyResult<T> {
    compute(py, None, |monitor| work(&mut Clock::new(what, None, monitor)))
}

#[pymethods]
impl PermutationGroup {
    /// Searches for the automorphisms of a graph.
    #[staticmethod]
    #[pyo3(signature = (n, edges, colors, time_limit))]
    fn of_graph(
        py: Python<'_>,
        n: usize,
        edges: LentTable<'_, i64>,
        colors: Option<LentRow<'_, i64>>,
        time_limit: Option<f64>,
    ) -> PyResult<Self> {
        let graph = graph(py, n, &edges)?;
        let colors = colors.map(|colors| vertices(&colors, "colors")).transpose()?;
        let limit = time_limit.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
        let search = |monitor: &mut dyn quincunx::monitor::Monitor| {
            core::automorphism_group(&graph, colors.as_deref(), limit, monitor)
        };
        compute(py, None, search).map(|group| Self(Arc::new(group)))
    }

    /// The group that the rows of `images` generate, checked against a graph if there is one.
    #[staticmethod]
    #[pyo3(signature = (n, images, edges))]
    fn of_images(
        py: Python<'_>,
        n: usize,
        images: LentTable<'_, i64>,
        edges: Option<LentTable<'_, i64>>,
    ) -> PyResult<Self> {
        let graph = edges.map(|edges| graph(py, n, &edges)).transpose()?;
        let rows: Vec<Vec<i64>> = images.as_array().rows().into_iter().map(|row| row.to_vec()).collect();
        let make = || {
            let group = core::AutomorphismGroup::from_rows(n, &rows)?;
            graph.map_or(Ok(()), |graph| core::check_automorphisms(&graph, &group))?;
            Ok(group)
        };
        compute(py, None, |_| make()).map(|group| Self(Arc::new(group)))
    }

    /// The group of a Hamming graph.
    #[staticmethod]
    fn of_hamming(py: Python<'_>, length: u32, alphabet_size: u32) -> PyResult<Self> {
        let make = || core::AutomorphismGroup::hamming(length, alphabet_size);
        compute(py, None, |_| make()).map(|group| Self(Arc::new(group)))
    }

    /// What the group can be restored from.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<State<'py>> {
        let parts = self.0.parts();
        Ok((
            parts.points,
            arrays::edges(py, &parts.moves)?,
            row(py, parts.lengths),
            row(py, parts.base),
            row(py, parts.fixes),
            parts.complete,
            parts.order,
        ))
    }

    /// The group of a state.
    #[staticmethod]
    #[pyo3(signature = (n, moves, lengths, base, fixes, complete, order))]
    #[allow(clippy::too_many_arguments)] // one for each part of the state
    fn from_state(
        py: Python<'_>,
        n: usize,
        moves: LentTable<'_, i64>,
        lengths: LentRow<'_, i64>,
        base: LentRow<'_, i64>,
        fixes: LentRow<'_, i64>,
        complete: bool,
        order: Option<BigUint>,
    ) -> PyResult<Self> {
        let moves = graph(py, n, &moves)?.edges().to_vec();
        let parts = core::Parts {
            points: n,
            moves,
            lengths: vertices(&lengths, "lengths")?,
            base: vertices(&base, "base")?,
            fixes: vertices(&fixes, "fixes")?,
            complete,
            order,
        };
        compute(py, None, |_| core::AutomorphismGroup::from_parts(parts)).map(|group| Self(Arc::new(group)))
    }

    /// Number of points.
    #[getter]
    fn points(&self) -> usize {
        self.0.points()
    }

    /// Number of generators.
    #[getter]
    fn generator_count(&self) -> usize {
        self.0.generators().len()
    }

    /// Whether the order is there without further work.
    #[getter]
    fn is_order_known(&self) -> bool {
        self.0.is_order_known()
    }

    /// The images of all points under each generator, one row each.
    fn generators<'py>(&self, py: Python<'py>) -> PyResult<Table<'py, i64>> {
        let (rows, columns) = (self.0.generators().len(), self.0.points());
        let images = self.0.generators().iter().flat_map(|generator| generator.images(columns));
        table(py, arrays::gathered(py, rows * columns, images.map(i64::from))?, rows, columns)
    }

    /// The orbit of each point.
    fn orbits<'py>(&self, py: Python<'py>) -> Row<'py, i64> {
        row(py, self.0.orbits().iter().copied())
    }

    /// Whether there is at most one orbit.
    fn is_transitive(&self) -> bool {
        self.0.is_transitive()
    }

    /// The exact order.
    fn order(&self, py: Python<'_>) -> PyResult<BigUint> {
        with_clock(py, "the stabilizer chain", |clock| self.0.order(clock).cloned())
    }

    /// A base.
    fn base<'py>(&self, py: Python<'py>) -> PyResult<Row<'py, i64>> {
        with_clock(py, "the stabilizer chain", |clock| self.0.base(clock)).map(|base| row(py, base))
    }

    /// Whether a permutation belongs to the group.
    fn contains(&self, py: Python<'_>, images: LentRow<'_, i64>) -> PyResult<bool> {
        let images = vertices(&images, "permutation")?;
        with_clock(py, "the stabilizer chain", |clock| self.0.contains(&images, clock))
    }

    /// The subgroup that fixes a point.
    fn stabilizer(&self, py: Python<'_>, v: u32) -> PyResult<Self> {
        with_clock(py, "the stabilizer", |clock| self.0.stabilizer(v, clock)).map(|group| Self(Arc::new(group)))
    }

    /// The points of an orbit, and for each the images under an element that leads there.
    fn transversal<'py>(
        &self,
        py: Python<'py>,
        v: u32,
        memory_limit: u128,
    ) -> PyResult<(Row<'py, i64>, Table<'py, i64>)> {
        let (points, elements) = with_clock(py, "the transversal", |clock| self.0.transversal(v, memory_limit, clock))?;
        let images = elements.into_iter().flatten().map(i64::from);
        let images = arrays::gathered(py, points.len() * self.0.points(), images)?;
        let elements = table(py, images, points.len(), self.0.points())?;
        Ok((row(py, points), elements))
    }

    /// The number of orbits on pairs.
    fn rank(&self, py: Python<'_>, memory_limit: u128) -> PyResult<usize> {
        with_clock(py, "counting orbitals", |clock| self.0.rank(memory_limit, clock))
    }

    /// The orbits on pairs.
    fn orbitals(&self, py: Python<'_>, memory_limit: u128) -> PyResult<PairOrbits> {
        let work = |clock: &mut Clock<'_>| self.0.orbitals(memory_limit, clock);
        with_clock(py, "labelling orbitals", work).map(|orbitals| PairOrbits(Arc::new(orbitals)))
    }
}

#[pymethods]
impl PairOrbits {
    /// Number of points.
    #[getter]
    fn points(&self) -> usize {
        self.0.points()
    }

    /// Number of orbitals.
    #[getter]
    fn rank(&self) -> usize {
        self.0.rank()
    }

    /// Number of pairs in each orbital.
    fn sizes<'py>(&self, py: Python<'py>) -> PyResult<Row<'py, i64>> {
        Ok(PyArray1::from_iter(py, self.0.sizes().iter().map(|&size| size as i64)))
    }

    /// The first pair of each orbital.
    fn representatives<'py>(&self, py: Python<'py>) -> PyResult<Table<'py, i64>> {
        arrays::edges(py, self.0.representatives())
    }

    /// The labels of the pairs that begin with `v`.
    fn label_row<'py>(&self, py: Python<'py>, v: u32) -> PyResult<Row<'py, i64>> {
        let mut labels = vec![0; self.0.points()];
        self.0.label_row(v, &mut labels).map_err(|error| raise(py, error))?;
        Ok(row(py, labels))
    }

    /// The labels of all pairs.
    fn labels<'py>(&self, py: Python<'py>, threads: usize) -> PyResult<Table<'py, i32>> {
        let labels = compute(py, None, |monitor| self.0.labels(threads, monitor))?;
        PyArray1::from_vec(py, labels).reshape([self.0.points(), self.0.points()])
    }
}

/// See `quincunx.graphs.distances`.
#[pyfunction]
pub fn distances<'py>(
    py: Python<'py>,
    n: usize,
    edges: LentTable<'py, i64>,
    threads: usize,
    memory_limit: u128,
) -> PyResult<Table<'py, i32>> {
    let graph = graph(py, n, &edges)?;
    let table = compute(py, None, |monitor| kernels::distances(&graph, threads, memory_limit, monitor))?;
    PyArray1::from_vec(py, table).reshape([n, n])
}

/// The distances from one vertex; see `quincunx.graphs.spheres`.
#[pyfunction]
pub fn distances_from<'py>(py: Python<'py>, n: usize, edges: LentTable<'py, i64>, v: u32) -> PyResult<Row<'py, i32>> {
    let graph = graph(py, n, &edges)?;
    compute(py, None, |monitor| kernels::distances_from(&graph, v, monitor)).map(|row| PyArray1::from_vec(py, row))
}

/// See `quincunx.graphs.sphere_sizes`.
#[pyfunction]
pub fn sphere_sizes<'py>(
    py: Python<'py>,
    n: usize,
    edges: LentTable<'py, i64>,
    threads: usize,
    memory_limit: u128,
) -> PyResult<Table<'py, i64>> {
    let graph = graph(py, n, &edges)?;
    let (sizes, columns) = compute(py, None, |monitor| kernels::sphere_sizes(&graph, threads, memory_limit, monitor))?;
    table(py, sizes, n, columns)
}

/// See `quincunx.graphs.is_distance_degree_regular`.
#[pyfunction]
pub fn is_distance_degree_regular(
    py: Python<'_>,
    n: usize,
    edges: LentTable<'_, i64>,
    threads: usize,
) -> PyResult<bool> {
    let graph = graph(py, n, &edges)?;
    compute(py, None, |monitor| kernels::is_distance_degree_regular(&graph, threads, monitor))
}
