//! Bayesian inference under local privacy: released values in, posteriors and draws out; the densities live in the core.

use crate::arrays::{LentRow, LentTable, Row, Table};
use crate::boundary::{compute, raise, word};
use num_bigint::BigInt;
use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use quincunx::ldp::cells::{Cells, Found};
use quincunx::ldp::clipped::{Clipped, ClippedCounts};
use quincunx::ldp::compressed::{ClippedLaplace, PatternGroup};
use quincunx::ldp::discrete::{self, CountFamily, CountNoise};
use quincunx::ldp::exponential::{self, Exponential};
use quincunx::ldp::gaussian::{self, Gaussian};
use quincunx::ldp::histogram::{self, Categories, ColumnSums, Patterns};
use quincunx::ldp::linear;
use quincunx::ldp::logistic;
use quincunx::ldp::mixture::Mixture;
use quincunx::ldp::nuts::{NutsDraws, Settings, sample_all};
use quincunx::ldp::population::Selected;
use quincunx::ldp::quadrature::{Computed, TOLERANCE};
use quincunx::ldp::sums::column_sums;
use quincunx::ldp::tractable::{self, Tractable};
use quincunx::ldp::vectors::Vectors;
use quincunx::ldp::{self as core, Likelihood, PriorBlock, ScalarPrior, Support};
use quincunx::parallel;

/// The log-likelihood of released values; documented at the models of `quincunx.ldp`.
///
/// Every call works on a copy, which has its own scratch memory and shares the data: threads need no lock.
#[pyclass(frozen, module = "quincunx._core")]
pub struct LdpLikelihood(Box<dyn Likelihood>);

impl LdpLikelihood {
    fn of(likelihood: impl Likelihood + 'static) -> Self {
        Self(Box::new(likelihood))
    }

    /// Reports as rows of bits, each with the number of its users if there are such.
    fn of_rows(
        py: Python<'_>,
        rows: &LentTable<'_, u8>,
        counts: Option<LentRow<'_, f64>>,
        make: impl FnOnce(usize, Vec<u8>, Vec<f64>) -> quincunx::Result<Patterns> + Send,
    ) -> PyResult<Self> {
        let (categories, bits) = (rows.shape()[1], rows.as_slice()?);
        let counts = counts.as_ref().map(|counts| counts.as_slice()).transpose()?;
        compute(py, None, |_| {
            let (masks, counts) = histogram::patterns(bits, categories, counts)?;
            make(categories, masks, counts)
        })
        .map(Self::of)
    }

    /// What was made at once.
    fn made(py: Python<'_>, likelihood: quincunx::Result<impl Likelihood + 'static>) -> PyResult<Self> {
        likelihood.map(Self::of).map_err(|error| raise(py, error))
    }
}

#[pymethods]
impl LdpLikelihood {
    /// Numbers clipped to bounds and released with Laplace noise.
    #[staticmethod]
    fn rectified(
        py: Python<'_>,
        model: &str,
        released: LentRow<'_, f64>,
        bounds: (f64, f64),
        scale: f64,
        exact: bool,
    ) -> PyResult<Self> {
        let (values, normal) = (released.as_slice()?, is_normal(model)?);
        compute(py, None, |_| {
            let noise = ClippedLaplace::new(bounds.0, bounds.1, scale)?;
            Ok(if normal {
                Self::of(PatternGroup::new(Gaussian, noise, values, exact)?)
            } else {
                Self::of(PatternGroup::new(Exponential, noise, values, exact)?)
            })
        })
    }

    /// The same, by what cells have of them.
    #[staticmethod]
    fn rectified_cells(
        py: Python<'_>,
        model: &str,
        bounds: (f64, f64),
        scale: f64,
        number: usize,
        cells: CellsOf<'_>,
    ) -> PyResult<Self> {
        let (normal, (ends, excess, index, sums)) = (is_normal(model)?, cells);
        let found = found(number, &index, &sums)?;
        compute(py, None, |_| {
            let noise = ClippedLaplace::new(bounds.0, bounds.1, scale)?;
            Ok(if normal {
                Self::of(PatternGroup::of_cells(Gaussian, noise, ends, excess, found))
            } else {
                Self::of(PatternGroup::of_cells(Exponential, noise, ends, excess, found))
            })
        })
    }

    /// Whole numbers clipped to bounds and released with geometric or Laplace noise.
    #[staticmethod]
    fn whole(
        py: Python<'_>,
        model: &str,
        noise: &str,
        decay: f64,
        bounds: (i64, i64),
        released: LentRow<'_, f64>,
        exact: bool,
    ) -> PyResult<Self> {
        let family = family(model)?;
        let noise = noise_of(noise, decay)?;
        let values = released.as_slice()?;
        compute(py, None, |_| discrete::UserGroup::new(family, bounds.0, bounds.1, noise, values, exact)).map(Self::of)
    }

    /// The same, by what cells have of them.
    #[staticmethod]
    fn whole_cells(
        py: Python<'_>,
        model: &str,
        noise: &str,
        decay: f64,
        bounds: (i64, i64),
        number: usize,
        cells: CellsOf<'_>,
    ) -> PyResult<Self> {
        let (family, noise, (ends, excess, index, sums)) = (family(model)?, noise_of(noise, decay)?, cells);
        let found = found(number, &index, &sums)?;
        compute(py, None, |_| discrete::UserGroup::of_cells(family, bounds, noise, ends, excess, found)).map(Self::of)
    }

    /// Numbers released without noise, by their number, and their mean and squares about it, or sums.
    #[staticmethod]
    fn plain_sums(model: &str, number: f64, first: f64, second: f64) -> PyResult<Self> {
        Ok(match model {
            "gaussian" => Self::of(gaussian::GaussianSums::of_sums(number, first, second)),
            "exponential" => Self::of(exponential::ExponentialSums::of_sums(number, first)),
            _ => Self::of(discrete::CountSums::of_sums(family(model)?, number, first, second)),
        })
    }

    /// Numbers released without noise.
    #[staticmethod]
    fn plain(model: &str, values: LentRow<'_, f64>) -> PyResult<Self> {
        let values = values.as_slice()?;
        Ok(match model {
            "gaussian" => Self::of(gaussian::GaussianSums::new(values)),
            "exponential" => Self::of(exponential::ExponentialSums::new(values)),
            _ => Self::of(discrete::CountSums::new(family(model)?, values)),
        })
    }

    /// Bits released by randomized response.
    #[staticmethod]
    fn bits(zeros: f64, ones: f64, keep: f64) -> Self {
        Self::of(discrete::Bits::new(zeros, ones, keep))
    }

    /// Rows of bits of unary encoding.
    #[staticmethod]
    fn rows(
        py: Python<'_>,
        rows: LentTable<'_, u8>,
        counts: Option<LentRow<'_, f64>>,
        p: f64,
        q: f64,
    ) -> PyResult<Self> {
        Self::of_rows(py, &rows, counts, |categories, masks, counts| Patterns::new(categories, masks, counts, p, q))
    }

    /// Reports as rows of the categories that they support.
    #[staticmethod]
    fn supports(
        py: Python<'_>,
        rows: LentTable<'_, u8>,
        counts: Option<LentRow<'_, f64>>,
        ratio: f64,
        log_outside: f64,
    ) -> PyResult<Self> {
        Self::of_rows(py, &rows, counts, |categories, masks, counts| {
            Patterns::of_supports(categories, masks, counts, ratio, log_outside)
        })
    }

    /// Likelihoods of users by category, divided by the largest of each, and the sum of the logarithms of these.
    #[staticmethod]
    fn mixture(py: Python<'_>, weights: LentTable<'_, f64>, counts: LentRow<'_, f64>, constant: f64) -> PyResult<Self> {
        let (categories, weights, counts) = (weights.shape()[1], weights.as_slice()?, counts.as_slice()?);
        compute(py, None, |_| Mixture::new(categories, weights.to_vec(), counts.to_vec(), constant)).map(Self::of)
    }

    /// Column sums of unary encoding.
    #[staticmethod]
    fn column_sums(py: Python<'_>, sums: Vec<f64>, users: f64, p: f64, q: f64) -> PyResult<Self> {
        Self::made(py, ColumnSums::new(sums, users, p, q))
    }

    /// How many of the subsets of a size hold each category.
    #[staticmethod]
    fn subset_sums(py: Python<'_>, sums: Vec<f64>, users: f64, p: f64, size: f64) -> PyResult<Self> {
        Self::made(py, ColumnSums::of_subsets(sums, users, p, size))
    }

    /// Counts of categories of generalized randomized response.
    #[staticmethod]
    fn categories(counts: Vec<f64>, keep: f64, other: f64) -> Self {
        Self::of(Categories::new(counts, keep, other))
    }

    /// Vectors, by their mean and their scatter about it.
    #[staticmethod]
    fn vectors(
        py: Python<'_>,
        mean: Vec<f64>,
        scatter: LentTable<'_, f64>,
        users: f64,
        noise: Vec<f64>,
    ) -> PyResult<Self> {
        Self::made(py, Vectors::new(mean, scatter.as_slice()?.to_vec(), users, noise))
    }

    /// Records of a linear regression, by their scatter matrix.
    #[staticmethod]
    fn linear_inputs(py: Python<'_>, scatter: LentTable<'_, f64>, users: f64, noise: Vec<f64>) -> PyResult<Self> {
        Self::made(py, linear::LinearRecords::new(scatter.as_slice()?.to_vec(), users, noise))
    }

    /// Summed second moments of a linear regression, as a matrix.
    #[staticmethod]
    fn linear_statistics(
        py: Python<'_>,
        total: LentTable<'_, f64>,
        users: f64,
        noise: f64,
        ratios: (f64, f64),
    ) -> PyResult<Self> {
        Self::made(py, linear::LinearSums::new(total.as_slice()?, total.shape()[0], users, noise, ratios))
    }

    /// Records of a logistic regression.
    #[staticmethod]
    fn logistic_inputs(
        py: Python<'_>,
        x: LentTable<'_, f64>,
        y: LentRow<'_, f64>,
        noise: Vec<f64>,
        keep: f64,
    ) -> PyResult<Self> {
        Self::made(py, logistic::LogisticRecords::new(x.as_slice()?, y.as_slice()?, noise, keep))
    }

    /// Summed moments of a logistic regression.
    #[staticmethod]
    fn logistic_statistics(
        py: Python<'_>,
        first: LentRow<'_, f64>,
        second: LentTable<'_, f64>,
        users: f64,
        noise: [f64; 2],
    ) -> PyResult<Self> {
        Self::made(py, logistic::LogisticSums::new(first.as_slice()?, second.as_slice()?, users, noise))
    }

    /// Numbers of the tractable family with normal noise.
    #[staticmethod]
    fn tractable(
        py: Python<'_>,
        released: LentRow<'_, f64>,
        g: Vec<f64>,
        interval: (f64, f64),
        clip: (f64, f64),
        sd: f64,
        exact: bool,
    ) -> PyResult<Self> {
        let values = released.as_slice()?;
        compute(py, None, |_| Tractable::new(values, g, interval, clip, sd, exact)).map(Self::of)
    }

    /// Numbers clipped to bounds and released with normal noise; real ones between any bounds, or counts.
    #[staticmethod]
    fn clipped(
        py: Python<'_>,
        model: &str,
        released: LentRow<'_, f64>,
        bounds: (f64, f64),
        sd: f64,
        exact: bool,
    ) -> PyResult<Self> {
        let values = released.as_slice()?;
        if let "gaussian" | "exponential" = model {
            let exponential = model == "exponential";
            return compute(py, None, |_| Clipped::new(exponential, bounds, sd, values, exact)).map(Self::of);
        }
        let (family, whole) = (family(model)?, (bounds.0 as i64, bounds.1 as i64));
        compute(py, None, |_| ClippedCounts::new(family, whole, sd, values, exact)).map(Self::of)
    }

    /// The same of some of more parameters, by their indices.
    fn selected(&self, which: Vec<usize>, parameters: usize) -> PyResult<Self> {
        if which.len() != self.0.parameters() || which.iter().any(|&i| i >= parameters) {
            let expected = self.0.parameters();
            return Err(PyValueError::new_err(format!("there must be {expected} indices below {parameters}")));
        }
        Ok(Self::of(Selected::new(self.0.clone(), which, parameters)))
    }

    /// The sum of independent groups.
    #[staticmethod]
    fn sum(py: Python<'_>, parts: Vec<Py<Self>>, parameters: usize) -> Self {
        let parts = parts.iter().map(|part| part.bind(py).get().0.clone()).collect();
        Self::of(core::SummedLikelihood::new(parts, parameters))
    }

    /// The value at natural parameters, with the derivatives where asked for.
    fn value<'py>(
        &self,
        py: Python<'py>,
        natural: LentRow<'py, f64>,
        gradient: bool,
    ) -> PyResult<(f64, Option<Row<'py, f64>>)> {
        let natural = natural.as_slice()?;
        let mut likelihood = self.0.clone();
        check_number(likelihood.parameters(), natural)?;
        let mut slope = vec![0.0; natural.len()];
        let value = compute(py, None, |_| Ok(likelihood.value(natural, gradient.then_some(&mut slope[..]))))?;
        Ok((value, gradient.then(|| slope.into_pyarray(py))))
    }
}

fn check_number(expected: usize, natural: &[f64]) -> PyResult<()> {
    if natural.len() == expected {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("there must be {expected} values, got {}", natural.len())))
}

/// How many lie beyond each bound, by how much in all, and the cells between that are not empty with their sums.
type CellsOf<'py> = ([f64; 2], f64, LentRow<'py, i64>, LentTable<'py, i64>);

fn found<'a>(number: usize, index: &'a LentRow<'_, i64>, sums: &'a LentTable<'_, i64>) -> PyResult<Found<'a>> {
    let (index, sums) = (index.as_slice()?, sums.as_slice()?.as_chunks::<4>());
    let rising = index.windows(2).all(|pair| pair[0] < pair[1]);
    let inside = index.first().is_none_or(|&first| first >= 0) && index.last().is_none_or(|&last| last < number as i64);
    if !(rising && inside && sums.1.is_empty() && sums.0.len() == index.len()) {
        return Err(PyValueError::new_err(format!("there must be rising indices below {number} with four sums each")));
    }
    Ok(Found { number, index, sums: sums.0 })
}

fn is_normal(model: &str) -> PyResult<bool> {
    word("model", model, &[("gaussian", true), ("exponential", false)])
}

fn noise_of(noise: &str, decay: f64) -> PyResult<CountNoise> {
    word("noise", noise, &[("geometric", CountNoise::Geometric(decay)), ("laplace", CountNoise::Laplace(decay))])
}

fn family(model: &str) -> PyResult<CountFamily> {
    let words = [
        ("poisson", CountFamily::Poisson),
        ("geometric", CountFamily::Geometric),
        ("bernoulli", CountFamily::Bernoulli),
    ];
    word("model", model, &words)
}

fn prior(name: &str, values: &[f64]) -> PyResult<ScalarPrior> {
    match (name, values) {
        ("normal", &[mean, sd]) => Ok(ScalarPrior::Normal { mean, sd }),
        ("half-normal", &[sd]) => Ok(ScalarPrior::HalfNormal { sd }),
        ("gamma", &[shape, rate]) => Ok(ScalarPrior::Gamma { shape, rate }),
        ("beta", &[a, b]) => Ok(ScalarPrior::Beta { a, b }),
        ("log-normal", &[mean, sd]) => Ok(ScalarPrior::LogNormal { mean, sd }),
        _ => Err(PyValueError::new_err(format!("no prior {name:?} of {} numbers", values.len()))),
    }
}

fn block(kind: &str, name: &str, values: &[f64]) -> PyResult<PriorBlock> {
    let support = match kind {
        "simplex" => return Ok(PriorBlock::Simplex { concentration: values.to_vec() }),
        "covariance" => {
            let [dimension, eta, rest @ ..] = values else {
                return Err(PyValueError::new_err("a covariance needs its dimension and eta"));
            };
            return Ok(PriorBlock::Covariance {
                dimension: *dimension as usize,
                scales: prior(name, rest)?,
                eta: *eta,
            });
        }
        "groups of shares" => {
            let [size, categories, rest @ ..] = values else {
                return Err(PyValueError::new_err("groups of shares need their number and that of categories"));
            };
            let Some((concentration, rest)) = rest.split_at_checked(*categories as usize) else {
                return Err(PyValueError::new_err("each category needs its concentration"));
            };
            let (size, concentration) = (*size as usize, concentration.to_vec());
            return Ok(PriorBlock::Shares { concentration, strength: prior(name, rest)?, size });
        }
        "groups of reals" | "groups of positives" | "groups of units" => {
            let [size, mean, sd, rest @ ..] = values else {
                return Err(PyValueError::new_err("groups need their number and the law of their mean"));
            };
            let support = match kind {
                "groups of reals" => Support::Real,
                "groups of positives" => Support::Positive,
                _ => Support::Unit,
            };
            let (centre, spread) = (ScalarPrior::Normal { mean: *mean, sd: *sd }, prior(name, rest)?);
            return Ok(PriorBlock::Numbers { support, centre, spread, size: *size as usize });
        }
        "real" => Support::Real,
        "positive" => Support::Positive,
        "unit" => Support::Unit,
        "negative" => Support::Negative,
        _ => return Err(PyValueError::new_err(format!("no block {kind:?}"))),
    };
    Ok(PriorBlock::Scalar { support, prior: prior(name, values)? })
}

/// A posterior density, used like [`LdpLikelihood`]; documented at the models of `quincunx.ldp`.
#[pyclass(frozen, module = "quincunx._core")]
pub struct LdpPosterior(core::Posterior);

#[pymethods]
impl LdpPosterior {
    #[new]
    fn new(py: Python<'_>, blocks: Vec<(String, String, Vec<f64>)>, likelihood: &LdpLikelihood) -> PyResult<Self> {
        let blocks = blocks.iter().map(|(kind, name, values)| block(kind, name, values)).collect::<PyResult<_>>()?;
        let made = core::Posterior::new(blocks, likelihood.0.clone());
        made.map(Self).map_err(|error| raise(py, error))
    }

    #[getter]
    fn dimension(&self) -> usize {
        self.0.dimension()
    }

    /// The log density and its gradient at unconstrained coordinates.
    fn log_density<'py>(&self, py: Python<'py>, u: LentRow<'py, f64>) -> PyResult<(f64, Row<'py, f64>)> {
        let u = u.as_slice()?;
        let mut posterior = self.0.clone();
        if u.len() != posterior.dimension() {
            let expected = posterior.dimension();
            return Err(PyValueError::new_err(format!("`u` must have shape ({expected},), got ({},)", u.len())));
        }
        let mut gradient = vec![0.0; u.len()];
        let value = compute(py, None, |_| Ok(posterior.log_density(u, Some(&mut gradient))))?;
        Ok((value, gradient.into_pyarray(py)))
    }

    /// Natural values of rows of coordinates.
    fn natural<'py>(&self, py: Python<'py>, rows: LentTable<'py, f64>) -> PyResult<Table<'py, f64>> {
        let mut posterior = self.0.clone();
        if rows.shape()[1] != posterior.dimension() {
            let expected = posterior.dimension();
            return Err(PyValueError::new_err(format!("`u` must have {expected} columns, got {}", rows.shape()[1])));
        }
        let out = posterior.natural_rows(rows.as_slice()?);
        PyArray1::from_vec(py, out).reshape([rows.shape()[0], posterior.naturals()])
    }

    /// The coordinates of natural values.
    fn coordinates<'py>(&self, py: Python<'py>, natural: LentRow<'py, f64>) -> PyResult<Row<'py, f64>> {
        let natural = natural.as_slice()?;
        check_number(self.0.naturals(), natural)?;
        self.0.coordinates(natural).map(|u| u.into_pyarray(py)).map_err(|error| raise(py, error))
    }

    /// The posterior by quadrature.
    #[pyo3(signature = (progress=None, tolerance=TOLERANCE))]
    fn compute(&self, py: Python<'_>, progress: Option<Py<PyAny>>, tolerance: f64) -> PyResult<LdpComputed> {
        let mut copy = self.0.clone();
        compute(py, progress, |monitor| {
            parallel::run(1, 1, monitor, |progress| Computed::new(&mut copy, tolerance, progress)).map(LdpComputed)
        })
    }
}

/// A computed posterior; documented at the models of `quincunx.ldp`.
#[pyclass(frozen, module = "quincunx._core")]
pub struct LdpComputed(Computed);

#[pymethods]
impl LdpComputed {
    /// What the quadrature found: means, standard deviations, log evidence, their error and the work.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        found.set_item("mean", PyArray1::from_slice(py, &self.0.mean))?;
        found.set_item("sd", PyArray1::from_slice(py, &self.0.sd))?;
        found.set_item("log_evidence", self.0.log_evidence)?;
        found.set_item("error", self.0.error)?;
        found.set_item("evaluations", self.0.evaluations)?;
        Ok(found)
    }

    /// Independent draws, as rows of unconstrained coordinates.
    fn draws<'py>(&self, py: Python<'py>, number: usize, key: (u64, u64)) -> PyResult<Table<'py, f64>> {
        let rows = compute(py, None, |_| {
            parallel::run_here(number as u64, |progress| self.0.draws(number, key.into(), progress))
        })?;
        PyArray1::from_vec(py, rows).reshape([number, self.0.dimension])
    }

    /// Probabilities that a scalar parameter is at most each value.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        parameter: usize,
        values: LentRow<'py, f64>,
    ) -> PyResult<Row<'py, f64>> {
        let found = self.0.probabilities(parameter, values.as_slice()?);
        found.map(|found| found.into_pyarray(py)).map_err(|error| raise(py, error))
    }

    /// Values below which a scalar parameter lies with each probability.
    fn quantiles<'py>(
        &self,
        py: Python<'py>,
        parameter: usize,
        probabilities: LentRow<'py, f64>,
    ) -> PyResult<Row<'py, f64>> {
        let found = self.0.quantiles(parameter, probabilities.as_slice()?);
        found.map(|found| found.into_pyarray(py)).map_err(|error| raise(py, error))
    }
}

/// Chains of the sampler; documented at the models of `quincunx.ldp`.
#[pyclass(module = "quincunx._core")]
pub struct LdpChains {
    keys: Vec<[u64; 2]>,
    chains: Vec<NutsDraws>,
}

#[pymethods]
impl LdpChains {
    #[new]
    fn new(keys: Vec<[u64; 2]>) -> Self {
        Self { chains: vec![NutsDraws::default(); keys.len()], keys }
    }

    /// Runs all chains; what was drawn stays on an interruption.
    #[pyo3(signature = (posterior, settings, starts, threads, progress=None))]
    fn run(
        &mut self,
        py: Python<'_>,
        posterior: &LdpPosterior,
        settings: (u64, u64, u64, f64),
        starts: Vec<Option<Vec<f64>>>,
        threads: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let (warmup, draws, max_depth, target_accept) = settings;
        let settings = Settings { warmup, draws, max_depth, target_accept };
        let Self { keys, chains } = self;
        compute(py, progress, |monitor| sample_all(&posterior.0, &settings, keys, &starts, chains, threads, monitor))
    }

    /// The draws of each chain with their statistics.
    fn take<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let one = |chain: &mut NutsDraws| -> PyResult<Bound<'py, PyDict>> {
            let chain = std::mem::take(chain);
            let number = chain.log_density.len();
            let width = chain.naturals.len().checked_div(number).unwrap_or(0);
            let found = PyDict::new(py);
            found.set_item("naturals", PyArray1::from_vec(py, chain.naturals).reshape([number, width])?)?;
            found.set_item("last", chain.last.into_pyarray(py))?;
            found.set_item("lp", chain.log_density.into_pyarray(py))?;
            found.set_item("diverging", chain.diverging.into_pyarray(py))?;
            found.set_item("tree_depth", chain.depth.into_pyarray(py))?;
            found.set_item("n_steps", chain.steps.into_pyarray(py))?;
            found.set_item("energy", chain.energy.into_pyarray(py))?;
            found.set_item("step_size", chain.step_size.into_pyarray(py))?;
            Ok(found)
        };
        PyList::new(py, self.chains.iter_mut().map(one).collect::<PyResult<Vec<_>>>()?)
    }
}

/// Log densities of the tractable family with their derivatives; documented at `quincunx.ldp.tractable_log_density`.
#[pyfunction]
pub fn ldp_tractable<'py>(
    py: Python<'py>,
    z: LentRow<'py, f64>,
    g: Vec<f64>,
    h: [f64; 3],
    interval: (f64, f64),
    sd: f64,
) -> PyResult<Table<'py, f64>> {
    let values = z.as_slice()?;
    let found = compute(py, None, |_| {
        values.iter().map(|&z| tractable::log_density(z, &g, h, interval, sd)).collect::<quincunx::Result<Vec<_>>>()
    })?;
    PyArray1::from_vec(py, found.into_flattened()).reshape([values.len(), 3])
}

/// The logistic-normal integral and its first two derivatives.
#[pyfunction]
pub fn ldp_logistic_normal(mean: f64, variance: f64) -> [f64; 3] {
    logistic::logistic_normal(mean, variance)
}

/// Releases by cells: numbers below and above, the exact sum beyond in units of 2^-2148, cells that are not empty, their sums.
#[pyfunction]
pub fn ldp_cells<'py>(
    py: Python<'py>,
    released: LentRow<'py, f64>,
    bounds: (f64, f64),
    number: usize,
) -> PyResult<Sorted<'py>> {
    let values = released.as_slice()?;
    let Cells { below, above, beyond, sums } = compute(py, None, |_| Cells::new(values, bounds, number))?;
    let index: Vec<i64> = (0..).zip(&sums).filter(|(_, sums)| sums[0] > 0).map(|(index, _)| index).collect();
    let kept: Vec<i64> = sums.iter().filter(|sums| sums[0] > 0).copied().flatten().collect();
    let sums = PyArray1::from_vec(py, kept).reshape([index.len(), 4])?;
    let beyond = BigInt::from_signed_bytes_le(&beyond.to_signed_bytes());
    Ok((below, above, beyond, index.into_pyarray(py), sums))
}

type Sorted<'py> = (u64, u64, BigInt, Row<'py, i64>, Table<'py, i64>);

/// Exact sums of columns, or of products of columns i <= j, in units of 2^-2148.
#[pyfunction]
pub fn ldp_exact_sums(py: Python<'_>, rows: LentTable<'_, f64>, products: bool) -> PyResult<Vec<BigInt>> {
    let (width, values) = (rows.shape()[1], rows.as_slice()?);
    let sums = compute(py, None, |_| Ok(column_sums(values, width.max(1), products)))?;
    Ok(sums.into_iter().map(|sum| BigInt::from_signed_bytes_le(&sum.to_signed_bytes())).collect())
}
