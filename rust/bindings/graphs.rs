//! Graphs: from Python to the core and back.

use crate::arrays;
use crate::boundary::compute;
use numpy::{PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use quincunx::graphs::{self, Graph};

/// The number of vertices and the edges, shape `(m, 2)`.
type Parts<'py> = (usize, Bound<'py, PyArray2<i64>>);

fn parts<'py>(py: Python<'py>, make: impl FnOnce() -> quincunx::Result<Graph> + Send) -> PyResult<Parts<'py>> {
    let graph = compute(py, None, |_| make())?;
    Ok((graph.vertices(), arrays::edges(py, graph.edges())?))
}

/// See `quincunx.graphs.grid`.
#[pyfunction]
pub fn grid(py: Python<'_>, shape: Vec<usize>) -> PyResult<Parts<'_>> {
    parts(py, || graphs::grid(&shape))
}

/// See `quincunx.graphs.torus`.
#[pyfunction]
pub fn torus(py: Python<'_>, shape: Vec<usize>) -> PyResult<Parts<'_>> {
    parts(py, || graphs::torus(&shape))
}

/// See `quincunx.graphs.complete`.
#[pyfunction]
pub fn complete(py: Python<'_>, n: usize) -> PyResult<Parts<'_>> {
    parts(py, || graphs::complete(n))
}

/// See `quincunx.graphs.hamming`.
#[pyfunction]
pub fn hamming(py: Python<'_>, length: usize, alphabet_size: usize) -> PyResult<Parts<'_>> {
    parts(py, || graphs::hamming(length, alphabet_size))
}

/// See `quincunx.lattices.clique_insert`.
#[pyfunction]
pub fn clique_insert<'py>(
    py: Python<'py>,
    n: usize,
    edges: PyReadonlyArray2<'py, i64>,
    k: u32,
) -> PyResult<Parts<'py>> {
    let graph = arrays::graph(py, n, &edges)?;
    parts(py, || quincunx::lattices::clique_insert(&graph, k))
}
