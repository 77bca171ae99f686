//! Conversions of arrays between NumPy, Python and the core.

use numpy::{Element, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quincunx::graphs::Graph;
use quincunx::memory;

/// An array of one dimension that is lent.
pub type LentRow<'py, T> = PyReadonlyArray1<'py, T>;
/// An array of two dimensions that is lent.
pub type LentTable<'py, T> = PyReadonlyArray2<'py, T>;
/// An array of one dimension that is returned.
pub type Row<'py, T> = Bound<'py, PyArray1<T>>;
/// An array of two dimensions that is returned.
pub type Table<'py, T> = Bound<'py, PyArray2<T>>;

/// A graph from its number of vertices and an array of edges, shape `(m, 2)`.
pub fn graph(py: Python<'_>, vertices: usize, edges: &LentTable<'_, i64>) -> PyResult<Graph> {
    let view = edges.as_array();
    if view.ncols() != 2 {
        return Err(PyValueError::new_err(format!("`edges` must have shape (m, 2), got {:?}", view.shape())));
    }
    // Bits above the lower 32 are set in a number too large as well as in a negative one.
    if view.fold(0, |all, &end| all | end) >> 32 != 0 {
        let end = view.iter().find(|&&end| end >> 32 != 0).copied().unwrap_or_default();
        return Err(PyValueError::new_err(format!("`edges` must be pairs of vertices in 0..n, got {end}")));
    }
    let edge = |ends: &[i64; 2]| (ends[0] as u32, ends[1] as u32);
    let pairs = match view.as_slice() {
        Some(ends) => collected(py, ends.as_chunks().0.iter().map(edge))?,
        None => collected(py, view.rows().into_iter().map(|row| edge(&[row[0], row[1]])))?,
    };
    Graph::new(vertices, pairs).map_err(|error| crate::boundary::raise(py, error))
}

/// Vertices from an array of integers.
pub fn vertices(array: &LentRow<'_, i64>, name: &str) -> PyResult<Vec<u32>> {
    let vertex = |&vertex: &i64| {
        u32::try_from(vertex).map_err(|_| PyValueError::new_err(format!("`{name}` must hold vertices, got {vertex}")))
    };
    array.as_array().iter().map(vertex).collect()
}

/// The rows of an array of two columns.
pub fn rows<T: Element + Copy>(array: &LentTable<'_, T>, name: &str) -> PyResult<Vec<[T; 2]>> {
    let view = array.as_array();
    if view.ncols() != 2 {
        return Err(PyValueError::new_err(format!("`{name}` must have shape (m, 2), got {:?}", view.shape())));
    }
    Ok(view.rows().into_iter().map(|row| [row[0], row[1]]).collect())
}

/// An array of two columns from pairs.
pub fn pairs<T: Element>(py: Python<'_>, values: Vec<[T; 2]>) -> PyResult<Table<'_, T>> {
    let rows = values.len();
    PyArray1::from_vec(py, values.into_flattened()).reshape([rows, 2])
}

/// The values of an iterator, if there is memory for them.
pub fn collected<T>(py: Python<'_>, values: impl ExactSizeIterator<Item = T>) -> PyResult<Vec<T>> {
    gathered(py, values.len(), values)
}

/// The same for an iterator that does not know that it has `len` values.
pub fn gathered<T>(py: Python<'_>, len: usize, values: impl Iterator<Item = T>) -> PyResult<Vec<T>> {
    memory::gathered(values, len, "an array").map_err(|error| crate::boundary::raise(py, error))
}

/// An array of edges, shape `(m, 2)`.
pub fn edges<'py>(py: Python<'py>, edges: &[(u32, u32)]) -> PyResult<Table<'py, i64>> {
    pairs(py, edge_rows(edges).map_err(|error| crate::boundary::raise(py, error))?)
}

/// The rows of [`edges`].
pub fn edge_rows(edges: &[(u32, u32)]) -> quincunx::Result<Vec<[i64; 2]>> {
    memory::gathered(edges.iter().map(|&(u, v)| [i64::from(u), i64::from(v)]), edges.len(), "an array")
}
