//! Graphs: from Python to the core and back.

use crate::arrays::{self, LentTable, Table};
use crate::boundary::compute_unheard;

use pyo3::prelude::*;
use quincunx::graphs::{self, Graph};

/// The number of vertices and the edges, shape `(m, 2)`.
type Parts<'py> = (usize, Table<'py, i64>);

/// The parts of a graph of about so many vertices and edges.
fn parts(
    py: Python<'_>,
    size: usize,
    make: impl FnOnce() -> quincunx::Result<Graph> + Send + 'static,
) -> PyResult<Parts<'_>> {
    let (vertices, edges) = compute_unheard(py, size, || {
        let graph = make()?;
        Ok((graph.vertices(), arrays::edge_rows(graph.edges())?))
    })?;
    Ok((vertices, arrays::pairs(py, edges)?))
}

fn product(extents: &[usize]) -> usize {
    extents.iter().fold(1, |size: usize, &extent| size.saturating_mul(extent))
}

/// See `quincunx.graphs.grid`.
#[pyfunction]
pub fn grid(py: Python<'_>, shape: Vec<usize>) -> PyResult<Parts<'_>> {
    parts(py, product(&shape), move || graphs::grid(&shape))
}

/// See `quincunx.graphs.torus`.
#[pyfunction]
pub fn torus(py: Python<'_>, shape: Vec<usize>) -> PyResult<Parts<'_>> {
    parts(py, product(&shape), move || graphs::torus(&shape))
}

/// See `quincunx.graphs.complete`.
#[pyfunction]
pub fn complete(py: Python<'_>, n: usize) -> PyResult<Parts<'_>> {
    parts(py, n.saturating_mul(n), move || graphs::complete(n))
}

/// See `quincunx.graphs.hamming`.
#[pyfunction]
pub fn hamming(py: Python<'_>, length: usize, alphabet_size: usize) -> PyResult<Parts<'_>> {
    let size = alphabet_size.saturating_pow(length.try_into().unwrap_or(u32::MAX)).saturating_mul(length);
    parts(py, size, move || graphs::hamming(length, alphabet_size))
}

/// See `quincunx.lattices.clique_insert`.
#[pyfunction]
pub fn clique_insert<'py>(py: Python<'py>, n: usize, edges: LentTable<'py, i64>, k: u32) -> PyResult<Parts<'py>> {
    let graph = arrays::graph(py, n, &edges)?;
    let size = quincunx::lattices::clique_insertion_size(&graph.degrees(), k).1.try_into().unwrap_or(usize::MAX);
    parts(py, size, move || quincunx::lattices::clique_insert(&graph, k))
}
