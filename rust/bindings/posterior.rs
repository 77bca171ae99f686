//! Posterior: from Python to the core and back. The documentation is in `quincunx.posterior`.

use crate::arrays::{LentRow, Row};
use crate::boundary::{compute, raise};
use crate::privacy::{Seed, copied, drawn, made, of_values, released};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use quincunx::posterior::ball::BallNormal;
use quincunx::posterior::covariance::{self, Cells, Clique, Law};
use quincunx::posterior::grid::{self, Coordinate};
use quincunx::posterior::infinity::InfinityNoise;
use quincunx::posterior::parities::{Norm, Parities};
use quincunx::posterior::records::{self, NoisyTables};
use quincunx::posterior::simplex::{self, TrimmedDirichlet};
use quincunx::posterior::tables::{self, BitColumns};
use quincunx::posterior::{quadrature, walsh};
use quincunx::privacy::choice;
use quincunx::privacy::source::Generator;
use quincunx::{memory, parallel};
use std::sync::Arc;

fn coordinate(logit: bool, width: f64, upper: f64) -> Coordinate {
    if logit { Coordinate::Logit { half: width } } else { Coordinate::Log { upper, width } }
}

/// A grid of parameters, on which posteriors are drawn from exactly.
#[pyclass(frozen, module = "quincunx._core")]
pub struct ParameterGrid(Arc<grid::ParameterGrid>);

#[pymethods]
impl ParameterGrid {
    #[new]
    fn new(py: Python<'_>, logit: bool, width: f64, upper: f64, points: usize) -> PyResult<Self> {
        let grid =
            grid::ParameterGrid::new(coordinate(logit, width, upper), points).map_err(|error| raise(py, error))?;
        Ok(Self(Arc::new(grid)))
    }

    fn parameters<'py>(&self, py: Python<'py>) -> Row<'py, f64> {
        self.0.parameters().to_vec().into_pyarray(py)
    }

    #[pyo3(signature = (x, y, size, insecure_seed=None))]
    fn draw<'py>(&self, py: Python<'py>, x: f64, y: f64, size: usize, insecure_seed: Seed) -> PyResult<Row<'py, f64>> {
        drawn(py, insecure_seed, |source, monitor| {
            let draws = self.0.posterior(x, y)?.draw_many(size, source, monitor)?;
            let parameters = self.0.parameters();
            Ok(draws.into_iter().map(|i| parameters[i]).collect())
        })
    }

    fn replace_epsilon(&self, py: Python<'_>, x: f64, y: f64, dx: f64, dy: f64) -> PyResult<f64> {
        compute(py, None, |_| Ok(self.0.replace_epsilon((x, y), (dx, dy))))
    }
}

/// The finite-n epsilon between two continuous posteriors.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn posterior_epsilon(
    py: Python<'_>,
    logit: bool,
    width: f64,
    upper: f64,
    x: f64,
    y: f64,
    dx: f64,
    dy: f64,
) -> PyResult<f64> {
    quadrature::replace_epsilon(coordinate(logit, width, upper), (x, y), (dx, dy)).map_err(|error| raise(py, error))
}

/// Trimmed Dirichlet vectors, flat.
#[pyfunction]
#[pyo3(signature = (alphas, trim, resolution, size, insecure_seed=None))]
pub fn trimmed_dirichlet<'py>(
    py: Python<'py>,
    alphas: LentRow<'py, f64>,
    trim: f64,
    resolution: usize,
    size: usize,
    insecure_seed: Seed,
) -> PyResult<Row<'py, f64>> {
    made(py, &alphas, insecure_seed, |alphas, source, monitor| {
        TrimmedDirichlet::new(alphas, trim, resolution)?.draw_many(size, source, monitor)
    })
}

/// A bound of the error of the logarithm of a trimmed Dirichlet vector's probability.
#[pyfunction]
pub fn trimmed_dirichlet_error(total: f64, categories: usize, trim: f64, resolution: usize) -> f64 {
    simplex::log_error(total, categories, trim, resolution)
}

/// Normal vectors truncated to a ball, in the eigenbasis, flat; and how many proposals they took.
#[pyfunction]
#[pyo3(signature = (eigenvalues, means, radius, size, insecure_seed=None))]
pub fn ball_normal<'py>(
    py: Python<'py>,
    eigenvalues: LentRow<'py, f64>,
    means: LentRow<'py, f64>,
    radius: f64,
    size: usize,
    insecure_seed: Seed,
) -> PyResult<(Row<'py, f64>, u64)> {
    let (eigenvalues, means) = (copied(&eigenvalues), copied(&means));
    let (rows, proposals) = compute(py, None, |monitor| {
        let law = BallNormal::new(&eigenvalues, &means, radius)?;
        let len = size.saturating_mul(means.len());
        let mut rows = memory::filled_patiently(0.0, len, "draws from a ball", monitor)?;
        let proposals = law.draw_rows(&mut rows, &mut Generator::new(insecure_seed)?, monitor)?;
        Ok((rows, proposals))
    })?;
    Ok((rows.into_pyarray(py), proposals))
}

/// Noise of constant probability on cubes.
#[pyclass(frozen, module = "quincunx._core")]
pub struct CubeNoise(InfinityNoise);

#[pymethods]
impl CubeNoise {
    #[new]
    fn new(py: Python<'_>, numerator: u64, denominator: u64, dimension: usize) -> PyResult<Self> {
        InfinityNoise::new(numerator, denominator, dimension).map(Self).map_err(|error| raise(py, error))
    }

    #[pyo3(signature = (rows, insecure_seed=None))]
    fn add<'py>(&self, py: Python<'py>, rows: LentRow<'py, i64>, insecure_seed: Seed) -> PyResult<Row<'py, i64>> {
        released(py, &rows, insecure_seed, |rows, source, monitor| self.0.add(rows, source, monitor))
    }
}

/// Cells of a table on their way here: the first of the table, its width, and of each row and place of a clique that of the table.
type CellParts<'py> = (usize, usize, LentRow<'py, u32>, LentRow<'py, u32>);
/// A clique: its separator, its parent with the separator in it, and its tables.
type CliqueParts<'py> = (CellParts<'py>, Option<(usize, CellParts<'py>)>, Vec<CellParts<'py>>);

/// The covariance of the numbers in the cells of tables, under a law on a junction tree.
#[pyclass(frozen, module = "quincunx._core")]
pub struct TableCovariance(covariance::TableCovariance);

#[pymethods]
impl TableCovariance {
    #[new]
    fn new(py: Python<'_>, cliques: Vec<CliqueParts<'_>>, weights: LentRow<'_, f64>, total: f64) -> PyResult<Self> {
        let cells = |(first, width, rows, places): &CellParts<'_>| Cells {
            first: *first,
            width: *width,
            rows: copied(rows),
            places: copied(places),
        };
        let clique = |(separator, parent, tables): &CliqueParts<'_>| Clique {
            separator: cells(separator),
            parent: parent.as_ref().map(|(parent, above)| (*parent, cells(above))),
            tables: tables.iter().map(cells).collect(),
        };
        let cliques = cliques.iter().map(clique).collect();
        covariance::TableCovariance::new(cliques, copied(&weights), total).map(Self).map_err(|error| raise(py, error))
    }

    fn times<'py>(
        &self,
        py: Python<'py>,
        marginals: LentRow<'py, f64>,
        given: LentRow<'py, f64>,
        direction: LentRow<'py, f64>,
    ) -> PyResult<Row<'py, f64>> {
        let law = Law { marginals: marginals.as_slice()?, given: given.as_slice()? };
        let direction = direction.as_slice()?;
        compute(py, None, |_| self.0.times(law, direction)).map(|found| found.into_pyarray(py))
    }

    #[expect(clippy::too_many_arguments, reason = "one function, one crossing")]
    fn solve<'py>(
        &self,
        py: Python<'py>,
        marginals: LentRow<'py, f64>,
        given: LentRow<'py, f64>,
        right: LentRow<'py, f64>,
        diagonal: LentRow<'py, f64>,
        tau: f64,
        share: f64,
        directions: usize,
    ) -> PyResult<Row<'py, f64>> {
        let law = Law { marginals: marginals.as_slice()?, given: given.as_slice()? };
        let sides = (right.as_slice()?, diagonal.as_slice()?);
        compute(py, None, |monitor| self.0.solve(law, sides, tau, (share, directions), monitor))
            .map(|found| found.into_pyarray(py))
    }
}

/// Columns of bits, 64 records a word.
#[pyclass(frozen, module = "quincunx._core")]
pub struct PackedBits(BitColumns);

#[pymethods]
impl PackedBits {
    #[new]
    fn new(py: Python<'_>, data: &Bound<'_, PyAny>, width: usize) -> PyResult<Self> {
        if let Ok(bytes) = data.extract::<LentRow<'_, u8>>() {
            let bytes = bytes.as_slice()?;
            return compute(py, None, |monitor| BitColumns::pack(bytes, width, monitor)).map(Self);
        }
        let whole = data.extract::<LentRow<'_, i64>>()?;
        let whole = whole.as_slice()?;
        compute(py, None, |monitor| BitColumns::pack(whole, width, monitor)).map(Self)
    }

    #[getter]
    fn rows(&self) -> usize {
        self.0.rows()
    }

    #[getter]
    fn width(&self) -> usize {
        self.0.width()
    }

    fn count<'py>(&self, py: Python<'py>, families: Vec<Vec<usize>>) -> PyResult<Vec<Row<'py, i64>>> {
        let tables = compute(py, None, |_| families.iter().map(|family| self.0.count(family)).collect())?;
        Ok(arrays(py, tables))
    }
}

fn arrays(py: Python<'_>, tables: Vec<Vec<i64>>) -> Vec<Row<'_, i64>> {
    tables.into_iter().map(|table| table.into_pyarray(py)).collect()
}

/// The tables of families of columns, flat.
#[pyfunction]
pub fn count_families<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    categories: Vec<u32>,
    families: Vec<Vec<usize>>,
) -> PyResult<Vec<Row<'py, i64>>> {
    let tables = if let Ok(bytes) = data.extract::<LentRow<'_, u8>>() {
        let bytes = bytes.as_slice()?;
        compute(py, None, |monitor| tables::count_families(bytes, &categories, &families, monitor))?
    } else {
        let whole = data.extract::<LentRow<'_, i64>>()?;
        let whole = whole.as_slice()?;
        compute(py, None, |monitor| tables::count_families(whole, &categories, &families, monitor))?
    };
    Ok(arrays(py, tables))
}

/// Draws of the records' tables and of probabilities given noisy tables: probabilities, counts, log-likelihoods and distances,
/// each of all chains, one after the other.
type RecordDraws<'py> = (Row<'py, f64>, Row<'py, i64>, Row<'py, f64>, Row<'py, f64>);

/// Sets of columns, their coefficients, the exponent of the noise, and whether it is of the largest offset or of their sum.
type NoisyParities = (Vec<Vec<usize>>, Vec<f64>, f64, bool);

/// Chains over the records that noisy tables may have counted, or whose parities were released.
#[pyfunction]
#[pyo3(signature = (network, released, noisy, concentrations, exponent, parities, starts, keys, schedule, known, threads, progress=None))]
#[expect(clippy::too_many_arguments, reason = "one function, one crossing")]
pub fn sample_records<'py>(
    py: Python<'py>,
    network: (Vec<usize>, Vec<Vec<usize>>),
    released: LentRow<'py, i64>,
    noisy: LentRow<'py, bool>,
    concentrations: Vec<f64>,
    exponent: f64,
    parities: Option<NoisyParities>,
    starts: Vec<LentRow<'py, u16>>,
    keys: Vec<(u64, u64)>,
    schedule: (u64, u64, u64),
    known: bool,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<RecordDraws<'py>> {
    let cells = (copied(&released), copied(&noisy));
    let starts: Vec<_> = starts.iter().map(copied).collect();
    let keys: Vec<_> = keys.into_iter().map(<[u64; 2]>::from).collect();
    let (warmup, draws, thin) = schedule;
    let schedule = records::Schedule { warmup, draws, thin, known };
    let found = compute(py, progress, |monitor| {
        let mut tables = NoisyTables::new(&network.0, &network.1, cells, concentrations, exponent)?;
        if let Some((sets, released, exponent, largest)) = parities {
            let norm = if largest { Norm::Largest } else { Norm::Sum };
            tables = tables.with_parities(Parities::new(sets, released, exponent, norm, network.0.len())?)?;
        }
        let total = starts.len() as u64 * (warmup + draws * thin);
        parallel::run(threads, total, monitor, |progress| tables.sample(starts, &keys, schedule, progress))
    })?;
    let theta = found.iter().flat_map(|chain| &chain.probabilities).copied().collect::<Vec<_>>();
    let counts = found.iter().flat_map(|chain| &chain.counts).copied().collect::<Vec<_>>();
    let likelihoods = found.iter().flat_map(|chain| &chain.log_likelihoods).copied().collect::<Vec<_>>();
    let distances = found.iter().flat_map(|chain| &chain.distances).copied().collect::<Vec<_>>();
    Ok((theta.into_pyarray(py), counts.into_pyarray(py), likelihoods.into_pyarray(py), distances.into_pyarray(py)))
}

/// The Walsh-Hadamard transform of whole numbers.
#[pyfunction]
pub fn walsh_transform<'py>(py: Python<'py>, values: LentRow<'py, i64>) -> PyResult<Row<'py, i64>> {
    let mut values = copied(&values);
    let values = compute(py, None, |_| walsh::transform(&mut values).map(|()| values))?;
    Ok(values.into_pyarray(py))
}

/// The most parities that replacing one record changes.
#[pyfunction]
pub fn parity_sensitivity(py: Python<'_>, masks: Vec<u64>, bits: u32) -> PyResult<u64> {
    compute(py, None, |_| walsh::parity_sensitivity(&masks, bits))
}

of_values! {
    /// One exact choice in each row of scores.
    made choice::choose(scores: [i64], options: usize, numerator: u64, denominator: u64) -> [i64];
}
