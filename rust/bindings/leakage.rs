//! Channels and their leakage: from Python to the core and back.

use crate::arrays::{self, LentRow, LentTable, Row};
use crate::automorphisms::PairOrbits;
use crate::boundary::{compute, raise};
use numpy::{PyArray1, PyReadwriteArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quincunx::leakage::{self, ChannelMatrix, divergence};

/// Lower bound, upper bound, the distribution that reaches the lower one, and the number of steps.
type Capacity<'py> = (f64, f64, Row<'py, f64>, u64);

fn view<'a>(py: Python<'_>, matrix: &'a LentTable<'_, f64>) -> PyResult<ChannelMatrix<'a>> {
    let (rows, cols) = matrix.as_array().dim();
    let entries = matrix.as_slice().map_err(|_| not_contiguous("matrix"))?;
    ChannelMatrix::new(entries, rows, cols).map_err(|error| raise(py, error))
}

fn not_contiguous(name: &str) -> PyErr {
    PyValueError::new_err(format!("`{name}` must be C-contiguous"))
}

/// Checks a matrix; see `quincunx.leakage.Channel`.
#[pyfunction]
pub fn check_channel(py: Python<'_>, matrix: LentTable<'_, f64>, atol: f64) -> PyResult<()> {
    let matrix = view(py, &matrix)?;
    compute(py, None, |_| leakage::check_channel(matrix, atol))
}

/// The largest weighted entry of each column and its row; see `quincunx.leakage.Channel.bayes_vulnerability`.
#[pyfunction]
#[pyo3(signature = (matrix, weights))]
pub fn column_maxima<'py>(
    py: Python<'py>,
    matrix: LentTable<'py, f64>,
    weights: Option<LentRow<'py, f64>>,
) -> PyResult<(Row<'py, f64>, Row<'py, i64>)> {
    let matrix = view(py, &matrix)?;
    let weights = weights.as_ref().map(|weights| weights.as_slice()).transpose()?;
    let (maxima, places) = compute(py, None, |_| leakage::column_maxima(matrix, weights))?;
    Ok((PyArray1::from_vec(py, maxima), PyArray1::from_vec(py, places)))
}

/// See `quincunx.leakage.Channel.mutual_information`.
#[pyfunction]
pub fn mutual_information(py: Python<'_>, matrix: LentTable<'_, f64>, prior: LentRow<'_, f64>) -> PyResult<f64> {
    let (matrix, prior) = (view(py, &matrix)?, prior.as_slice()?);
    compute(py, None, |_| leakage::mutual_information(matrix, prior))
}

/// See `quincunx.leakage.Channel.shannon_capacity`.
#[pyfunction]
pub fn shannon_capacity<'py>(
    py: Python<'py>,
    matrix: LentTable<'py, f64>,
    tolerance: f64,
    most: u64,
) -> PyResult<Capacity<'py>> {
    let matrix = view(py, &matrix)?;
    let found = compute(py, None, |monitor| leakage::shannon_capacity(matrix, tolerance, most, monitor))?;
    Ok((found.lower, found.upper, PyArray1::from_vec(py, found.prior), found.iterations))
}

/// Levels of a channel over the edges of a graph on its inputs, and the core's functions that find them.
macro_rules! over_edges {
    ($($(#[$about:meta])* $name:ident($($argument:ident)?) = $level:path;)*) => {$(
        $(#[$about])*
        #[pyfunction]
        pub fn $name(
            py: Python<'_>,
            matrix: LentTable<'_, f64>,
            edges: LentTable<'_, i64>,
            $($argument: f64,)?
            threads: usize,
        ) -> PyResult<f64> {
            let matrix = view(py, &matrix)?;
            let graph = arrays::graph(py, matrix.rows(), &edges)?;
            compute(py, None, |monitor| $level(matrix, &graph, $($argument,)? threads, monitor))
        }
    )*};
}

over_edges! {
    /// See `quincunx.leakage.Channel.dp_epsilon`.
    channel_epsilon() = divergence::epsilon;
    /// See `quincunx.leakage.Channel.dp_delta`.
    channel_delta(epsilon) = divergence::delta;
    /// See `quincunx.leakage.Channel.renyi_dp`.
    channel_renyi(alpha) = divergence::renyi;
}

/// See `quincunx.leakage.Channel.metric_epsilon`.
#[pyfunction]
pub fn metric_epsilon(
    py: Python<'_>,
    matrix: LentTable<'_, f64>,
    distances: LentTable<'_, f64>,
    threads: usize,
) -> PyResult<f64> {
    let matrix = view(py, &matrix)?;
    let distances = distances.as_slice().map_err(|_| not_contiguous("metric"))?;
    compute(py, None, |monitor| divergence::metric_epsilon(matrix, distances, threads, monitor))
}

/// Averages over the group of these orbits on pairs; see `quincunx.leakage.Channel.symmetrize`.
#[pyfunction]
pub fn average_channel(
    py: Python<'_>,
    matrix: LentTable<'_, f64>,
    orbits: &PairOrbits,
    mut output: PyReadwriteArray2<'_, f64>,
    threads: usize,
) -> PyResult<()> {
    let matrix = view(py, &matrix)?;
    let output = output.as_slice_mut().map_err(|_| not_contiguous("out"))?;
    compute(py, None, |monitor| leakage::average(matrix, orbits.orbitals(), output, threads, monitor))
}

/// Averages over the automorphisms of a Hamming graph; see `quincunx.leakage.Channel.symmetrize`.
#[pyfunction]
pub fn average_hamming(
    py: Python<'_>,
    matrix: LentTable<'_, f64>,
    length: usize,
    alphabet_size: usize,
    mut output: PyReadwriteArray2<'_, f64>,
    threads: usize,
) -> PyResult<()> {
    let matrix = view(py, &matrix)?;
    let output = output.as_slice_mut().map_err(|_| not_contiguous("out"))?;
    compute(py, None, |monitor| leakage::average_hamming(matrix, length, alphabet_size, output, threads, monitor))
}

/// See `quincunx.leakage.renyi_entropy`.
#[pyfunction]
pub fn renyi_entropy(py: Python<'_>, probabilities: LentRow<'_, f64>, alpha: f64) -> PyResult<f64> {
    let probabilities = probabilities.as_slice()?;
    compute(py, None, |_| leakage::renyi_entropy(probabilities, alpha))
}
