//! Distributions: from Python to the core and back, one crossing per array.

use crate::arrays::{LentRow, collected};
use crate::boundary::{compute, raise, word};
use numpy::{PyReadwriteArray1, PyReadwriteArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quincunx::distributions::arrays::{Family, Output};
use quincunx::distributions::{Function, Statistic};

/// Columns of parameters, each of length one or of the common length.
type Columns<'py> = Vec<LentRow<'py, f64>>;

/// Copies, for a parameter that changes after it was checked could make a draw endless.
fn copied(py: Python<'_>, columns: &Columns<'_>) -> PyResult<Vec<Vec<f64>>> {
    columns.iter().map(|column| collected(py, column.as_slice()?.iter().copied())).collect()
}

fn family<'a>(py: Python<'_>, name: &str, columns: &'a [Vec<f64>]) -> PyResult<Family<'a>> {
    let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    Family::named(name, &slices).map_err(|error| raise(py, error))
}

/// Masses and distribution functions at whole numbers; documented at the classes of `quincunx.distributions`.
#[pyfunction]
pub fn distribution_values(
    py: Python<'_>,
    name: &str,
    columns: Columns<'_>,
    function: &str,
    points: LentRow<'_, f64>,
    mut out: PyReadwriteArray1<'_, f64>,
    threads: usize,
) -> PyResult<()> {
    let functions = [
        ("pmf", Function::Mass),
        ("logpmf", Function::LogMass),
        ("cdf", Function::Cdf),
        ("logcdf", Function::LogCdf),
        ("ccdf", Function::Ccdf),
        ("logccdf", Function::LogCcdf),
    ];
    let function = word("function", function, &functions)?;
    let columns = copied(py, &columns)?;
    let family = family(py, name, &columns)?;
    let (points, out) = (points.as_slice()?, out.as_slice_mut()?);
    compute(py, None, |monitor| family.values(function, points, Output { out, threads, monitor }))
}

/// Quantiles; documented at the classes of `quincunx.distributions`.
#[pyfunction]
pub fn distribution_quantiles(
    py: Python<'_>,
    name: &str,
    columns: Columns<'_>,
    lower: bool,
    probabilities: LentRow<'_, f64>,
    mut out: PyReadwriteArray1<'_, f64>,
    threads: usize,
) -> PyResult<()> {
    let columns = copied(py, &columns)?;
    let family = family(py, name, &columns)?;
    let probabilities = collected(py, probabilities.as_slice()?.iter().copied())?;
    let out = out.as_slice_mut()?;
    compute(py, None, |monitor| family.quantiles(lower, &probabilities, Output { out, threads, monitor }))
}

/// Means, variances and the like; documented at the classes of `quincunx.distributions`.
#[pyfunction]
pub fn distribution_statistics(
    py: Python<'_>,
    name: &str,
    columns: Columns<'_>,
    statistic: &str,
    mut out: PyReadwriteArray1<'_, f64>,
    threads: usize,
) -> PyResult<()> {
    let statistics = [
        ("mean", Statistic::Mean),
        ("variance", Statistic::Variance),
        ("standard_deviation", Statistic::StandardDeviation),
        ("skewness", Statistic::Skewness),
        ("excess_kurtosis", Statistic::ExcessKurtosis),
        ("mode", Statistic::Mode),
        ("entropy", Statistic::Entropy),
    ];
    let statistic = word("statistic", statistic, &statistics)?;
    let columns = copied(py, &columns)?;
    let family = family(py, name, &columns)?;
    let out = out.as_slice_mut()?;
    compute(py, None, |monitor| family.statistics(statistic, Output { out, threads, monitor }))
}

/// Draws; documented at the classes of `quincunx.distributions`.
#[pyfunction]
pub fn distribution_draws(
    py: Python<'_>,
    name: &str,
    columns: Columns<'_>,
    key: (u64, u64),
    mut out: PyReadwriteArray1<'_, i64>,
    threads: usize,
) -> PyResult<()> {
    let out = out.as_slice_mut()?;
    let slices = columns.iter().map(|column| column.as_slice()).collect::<Result<Vec<_>, _>>()?;
    let given = Family::unchecked(name, &slices).map_err(|error| raise(py, error))?;
    if given.draws_check() {
        return compute(py, None, |monitor| given.draws(key.into(), Output { out, threads, monitor }));
    }
    let columns = copied(py, &columns)?;
    let family = family(py, name, &columns)?;
    compute(py, None, |monitor| family.draws(key.into(), Output { out, threads, monitor }))
}

/// Log-likelihoods of releases with their derivatives, rows of two; documented at `TwoPiecePoisson.log_marginal`.
#[pyfunction]
pub fn two_piece_poisson_log_marginals(
    py: Python<'_>,
    columns: Columns<'_>,
    mut out: PyReadwriteArray2<'_, f64>,
    threads: usize,
) -> PyResult<()> {
    let columns = copied(py, &columns)?;
    let family = family(py, "two_piece_poisson", &columns)?;
    let (rows, rest) = out.as_slice_mut()?.as_chunks_mut::<2>();
    if !rest.is_empty() {
        return Err(PyValueError::new_err("`out` must have shape (n, 2)"));
    }
    compute(py, None, |monitor| family.log_marginals(Output { out: rows, threads, monitor }))
}
