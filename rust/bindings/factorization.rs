//! Poisson factorization: tables in, factors and traces out; chains and fits live in the core.

use crate::arrays::{LentRow, LentTable, Row, Table};
use crate::boundary::{compute, raise, word};
use crate::inference::{Trace, run_chain};
use numpy::{Element, IntoPyArray, PyArray1, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use quincunx::factorization::coordinate_ascent::{Augmentation, Gammas};
use quincunx::factorization::dispersion::{Dispersion, DispersionAxis, SHORT};
use quincunx::factorization::factor_matrix::{FactorMatrix, padded, unpadded};
use quincunx::factorization::gibbs::{Method, Tally};
use quincunx::factorization::hyperpriors::Rates;
use quincunx::factorization::model::{Model, STRUCTURES};
use quincunx::factorization::released_counts::{Alpha, Facts};
use quincunx::factorization::row::HELD_OUT;
use quincunx::factorization::structure::Structure;
use quincunx::factorization::{self as core, Prior, cell, likelihood, negative_binomial};
use quincunx::inference::{Chain, Records, Steps};
use quincunx::numeric::exact_sum::{self, LIMBS};
use quincunx::parallel;
use std::sync::Arc;

fn structure(model: &str) -> PyResult<&'static dyn Structure> {
    word("model", model, STRUCTURES)
}

/// Shapes and rates of the priors of all factors.
type Priors<'py> = Vec<(LentRow<'py, f64>, LentRow<'py, f64>)>;

fn priors(given: &Priors<'_>) -> PyResult<Vec<Prior>> {
    let prior = |(shape, rate): &(LentRow<'_, f64>, LentRow<'_, f64>)| {
        Ok(Prior { shape: shape.as_slice()?.to_vec(), rate: rate.as_slice()?.to_vec() })
    };
    given.iter().map(prior).collect()
}

fn matrices(py: Python<'_>, given: &[LentTable<'_, f64>]) -> PyResult<Vec<FactorMatrix>> {
    let matrix = |array: &LentTable<'_, f64>| {
        let [rows, width] = [array.shape()[0], array.shape()[1]];
        if !array.is_c_contiguous() {
            return Err(PyValueError::new_err("`factors` must be C-contiguous arrays"));
        }
        FactorMatrix::packed(rows, width, array.as_slice()?).map_err(|error| raise(py, error))
    };
    given.iter().map(matrix).collect()
}

/// An array of rows of components, given with their padding.
fn table<'py, T: Copy + Element>(py: Python<'py>, padded: &[T], width: usize) -> PyResult<Table<'py, T>> {
    let packed = unpadded(padded, width);
    let rows = packed.len() / width.max(1);
    PyArray1::from_vec(py, packed).reshape([rows, width])
}

fn arrays<'py>(py: Python<'py>, matrices: &[FactorMatrix]) -> PyResult<Bound<'py, PyList>> {
    let array = |matrix: &FactorMatrix| PyArray1::from_vec(py, matrix.unpadded()).reshape([matrix.rows, matrix.width]);
    PyList::new(py, matrices.iter().map(array).collect::<PyResult<Vec<_>>>()?)
}

/// What has a dispersion of its own, and the shapes of the gamma laws that rates are multiplied by.
type Shapes<'py> = (String, LentRow<'py, f64>);

fn dispersion(
    table: &core::ReleasedCounts,
    (axis, shapes): &Shapes<'_>,
    prior: Option<(f64, f64)>,
) -> PyResult<quincunx::Result<Dispersion>> {
    let axes = [("table", DispersionAxis::Table), ("rows", DispersionAxis::Rows), ("columns", DispersionAxis::Columns)];
    let axis = word("axis", axis, &axes)?;
    Ok(Dispersion::new(axis, shapes.as_slice()?.to_vec(), prior.map(Into::into), table))
}

fn rates(hyperpriors: &str) -> PyResult<Rates> {
    word("hyperpriors", hyperpriors, &[("factor", Rates::Factor), ("row", Rates::Rows)])
}

/// The rates of a prior that are given.
fn given(rate: Option<&LentRow<'_, f64>>) -> PyResult<Option<Vec<f64>>> {
    Ok(rate.map(|rate| rate.as_slice()).transpose()?.map(<[f64]>::to_vec))
}

/// Shapes and rates of the priors as they are.
fn priors_of<'py>(py: Python<'py>, model: &Model) -> PyResult<Bound<'py, PyList>> {
    let arrays = |prior: &Prior| (prior.shape.clone().into_pyarray(py), prior.rate.clone().into_pyarray(py));
    PyList::new(py, model.priors().iter().map(arrays))
}

/// Whole numbers as the estimators hold them: in the smallest integers that fit.
#[derive(FromPyObject)]
enum Integers<'py> {
    #[pyo3(transparent)]
    Bytes(LentRow<'py, i8>),
    #[pyo3(transparent)]
    Shorts(LentRow<'py, i16>),
    #[pyo3(transparent)]
    Words(LentRow<'py, i32>),
    #[pyo3(transparent)]
    Longs(LentRow<'py, i64>),
}

/// Rows, total, positive cells, cells held out, ratio of the noise if it is one, and its range.
type FactsTuple = (u64, i128, u64, u64, Option<f64>, (f64, f64));

fn facts((rows, total, positive, held_out, alpha, alpha_range): FactsTuple) -> Facts {
    Facts { rows, total, positive, held_out, alpha, alpha_range }
}

/// Sums without rounding as doubles; documented at `quincunx._inference`.
#[pyfunction]
pub fn exact_sums<'py>(py: Python<'py>, sums: LentTable<'_, i64>) -> PyResult<Row<'py, f64>> {
    if sums.shape()[1] != LIMBS {
        return Err(PyValueError::new_err(format!("`sums` must have {LIMBS} columns, got {}", sums.shape()[1])));
    }
    Ok(sums.as_slice()?.chunks_exact(LIMBS).map(exact_sum::value).collect::<Vec<_>>().into_pyarray(py))
}

/// Released counts in the core's layout; documented at the estimators of `quincunx.factorization`.
#[pyclass(frozen, module = "quincunx._core")]
pub struct ReleasedCounts(Arc<core::ReleasedCounts>);

#[pymethods]
impl ReleasedCounts {
    #[new]
    #[pyo3(signature = (values, rows, cols, alpha, held_out=None))]
    fn new(
        py: Python<'_>,
        values: Integers<'_>,
        rows: usize,
        cols: usize,
        alpha: LentRow<'_, f64>,
        held_out: Option<LentRow<'_, u8>>,
    ) -> PyResult<Self> {
        fn pack<T: Copy + Into<i64> + Sync + numpy::Element>(
            py: Python<'_>,
            values: &LentRow<'_, T>,
            (rows, cols): (usize, usize),
            alpha: Alpha,
            held_out: Option<&[u8]>,
        ) -> PyResult<core::ReleasedCounts> {
            let values = values.as_slice()?;
            compute(py, None, |_| core::ReleasedCounts::new(values, rows, cols, alpha, held_out))
        }
        let alpha = match alpha.as_slice()? {
            [one] => Alpha::One(*one),
            each => Alpha::Each(each.to_vec()),
        };
        let held_out = held_out.as_ref().map(|held_out| held_out.as_slice()).transpose()?;
        let table = match &values {
            Integers::Bytes(values) => pack(py, values, (rows, cols), alpha, held_out),
            Integers::Shorts(values) => pack(py, values, (rows, cols), alpha, held_out),
            Integers::Words(values) => pack(py, values, (rows, cols), alpha, held_out),
            Integers::Longs(values) => pack(py, values, (rows, cols), alpha, held_out),
        }?;
        Ok(Self(Arc::new(table)))
    }

    #[getter]
    fn rows(&self) -> usize {
        self.0.rows()
    }

    #[getter]
    fn cols(&self) -> usize {
        self.0.cols()
    }

    #[getter]
    fn nbytes(&self) -> usize {
        self.0.bytes()
    }

    /// What chains of shards ask of the whole.
    fn facts(&self) -> FactsTuple {
        let Facts { rows, total, positive, held_out, alpha, alpha_range } = self.0.facts();
        (rows, total, positive, held_out, alpha, alpha_range)
    }
}

/// What a sweep of a shard returns: tallies, sums over its rows, and what those say of their prior.
type ShardSweep<'py> = (Vec<Table<'py, u64>>, Table<'py, i64>, Row<'py, i64>);

/// A Gibbs chain; documented at the estimators of `quincunx.factorization`.
#[pyclass(module = "quincunx._core")]
pub struct GibbsChain {
    chain: core::GibbsChain,
    /// What was kept without a trace of the caller's, until it is taken.
    records: Records,
}

#[pymethods]
impl GibbsChain {
    #[new]
    #[pyo3(signature = (counts, model, extents, n_components, priors, method, key, fixed=None))]
    #[expect(clippy::too_many_arguments, reason = "one constructor, one crossing")]
    fn new(
        py: Python<'_>,
        counts: &ReleasedCounts,
        model: &str,
        extents: Vec<usize>,
        n_components: usize,
        priors: Priors<'_>,
        method: &str,
        key: (u64, u64),
        fixed: Option<Vec<bool>>,
    ) -> PyResult<Self> {
        let methods = [
            ("auto", Method::Auto),
            ("collapsed", Method::Collapsed),
            ("event", Method::Event),
            ("split", Method::Split),
            ("bessel", Method::Bessel),
        ];
        let method = word("method", method, &methods)?;
        let priors = self::priors(&priors)?;
        let fixed = fixed.unwrap_or_else(|| vec![false; priors.len()]);
        let model = (structure(model)?, extents.as_slice(), n_components);
        let made = core::GibbsChain::new(Arc::clone(&counts.0), model, priors, method, key.into(), fixed);
        let chain = made.map_err(|error| raise(py, error))?;
        Ok(Self { records: Records::of(&chain), chain })
    }

    #[pyo3(signature = (sweeps, keep_every, threads, progress=None, trace=None))]
    fn run(
        &mut self,
        py: Python<'_>,
        sweeps: u64,
        keep_every: u64,
        threads: usize,
        progress: Option<Py<PyAny>>,
        trace: Option<PyRefMut<'_, Trace>>,
    ) -> PyResult<()> {
        let (steps, Self { chain, records }) = (Steps { number: sweeps, keep_every }, self);
        match trace {
            Some(mut trace) => run_chain(py, chain, steps, &mut trace, threads, progress),
            None => compute(py, progress, |monitor| records.run(chain, steps, threads, monitor)),
        }
    }

    fn take<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let taken = std::mem::replace(&mut self.records, Records::of(&self.chain));
        let number = taken.kept.len();
        let shapes = self.chain.model().shapes();
        let own = self.chain.sizes().split_off(shapes.len()).into_iter().map(|length| (length, 1));
        let shapes = shapes.into_iter().chain(own);
        let draws = taken.draws.into_iter().zip(shapes);
        let draws = draws.map(|(all, (rows, width))| PyArray1::from_vec(py, all).reshape([number, rows, width]));
        let result = PyDict::new(py);
        result.set_item("draws", draws.collect::<PyResult<Vec<_>>>()?)?;
        result.set_item("kept", taken.kept.into_pyarray(py))?;
        let statistics = taken.of_draws.into_iter().chain(taken.of_steps);
        for (name, values) in ["log_likelihood", "total_rate", "total_count"].into_iter().zip(statistics) {
            result.set_item(name, values.into_pyarray(py))?;
        }
        Ok(result)
    }

    fn learn_priors(&mut self, py: Python<'_>, hyperpriors: &str) -> PyResult<()> {
        let rates = rates(hyperpriors)?;
        self.chain.learn_priors(rates).map_err(|error| raise(py, error))?;
        self.records = Records::of(&self.chain);
        Ok(())
    }

    fn priors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        priors_of(py, self.chain.model())
    }

    #[pyo3(signature = (shapes, prior=None))]
    fn set_dispersion(&mut self, py: Python<'_>, shapes: Shapes<'_>, prior: Option<(f64, f64)>) -> PyResult<()> {
        let made = dispersion(self.chain.table(), &shapes, prior)?;
        made.and_then(|dispersion| self.chain.set_dispersion(dispersion)).map_err(|error| raise(py, error))?;
        self.records = Records::of(&self.chain);
        Ok(())
    }

    fn dispersion<'py>(&self, py: Python<'py>) -> Option<Row<'py, f64>> {
        self.chain.dispersion().map(|dispersion| dispersion.shapes().to_vec().into_pyarray(py))
    }

    fn factors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        arrays(py, self.chain.factors())
    }

    fn set_factors(&mut self, py: Python<'_>, factors: Vec<LentTable<'_, f64>>) -> PyResult<()> {
        let matrices = matrices(py, &factors)?;
        self.chain.set_factors(matrices).map_err(|error| raise(py, error))
    }

    fn set_counts(&mut self, py: Python<'_>, counts: &ReleasedCounts) -> PyResult<()> {
        self.chain.set_table(Arc::clone(&counts.0)).map_err(|error| raise(py, error))
    }

    #[getter]
    fn iteration(&self) -> u64 {
        self.chain.iteration()
    }

    #[setter]
    fn set_iteration(&mut self, iteration: u64) {
        self.chain.set_iteration(iteration);
    }

    fn noise<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let noise = self.chain.noise();
        let side = |side: usize| noise.iter().map(|cell| i64::from(cell[side])).collect::<Vec<_>>().into_pyarray(py);
        PyList::new(py, if noise.is_empty() { vec![] } else { vec![side(0), side(1)] })
    }

    fn set_noise(&mut self, py: Python<'_>, noise: Vec<LentRow<'_, i64>>) -> PyResult<()> {
        let cells = match noise.as_slice() {
            [] => vec![],
            [plus, minus] => {
                let count = |count: &i64| {
                    u32::try_from(*count).map_err(|_| {
                        PyValueError::new_err(format!("`noise` must hold counts below 2**32, got {count}"))
                    })
                };
                let pair = |(plus, minus)| Ok([count(plus)?, count(minus)?]);
                plus.as_slice()?.iter().zip(minus.as_slice()?).map(pair).collect::<PyResult<_>>()?
            }
            _ => return Err(PyValueError::new_err("`noise` must be a list of two arrays, or empty")),
        };
        self.chain.set_noise(cells).map_err(|error| raise(py, error))
    }

    fn tally<'py>(
        &mut self,
        py: Python<'py>,
        first_row: usize,
        last_row: usize,
        threads: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let tally = compute(py, None, |monitor| self.chain.tally(first_row..last_row, threads, monitor))?;
        let array = |(part, (rows, width)): (&Vec<u64>, (usize, usize))| {
            let counts = unpadded(part, width).into_iter().map(|count| count as i64).collect();
            PyArray1::from_vec(py, counts).reshape([rows, width])
        };
        let shapes = self.chain.model().tally_shapes();
        PyList::new(py, tally.parts.iter().zip(shapes).map(array).collect::<PyResult<Vec<_>>>()?)
    }

    fn place(&mut self, py: Python<'_>, first_row: u64, whole: FactsTuple) -> PyResult<()> {
        self.chain.place(first_row, &facts(whole)).map_err(|error| raise(py, error))
    }

    #[pyo3(signature = (factor, shape, rate=None))]
    fn set_prior(&mut self, py: Python<'_>, factor: usize, shape: f64, rate: Option<LentRow<'_, f64>>) -> PyResult<()> {
        self.chain.set_prior(factor, shape, given(rate.as_ref())?).map_err(|error| raise(py, error))
    }

    fn redraw_prior(&mut self, py: Python<'_>, factor: usize, sums: LentRow<'_, i64>) -> PyResult<()> {
        self.chain.redraw_prior(factor, sums.as_slice()?).map_err(|error| raise(py, error))
    }

    /// The tallies of all factors but the first, and without rounding the sums over the rows of that, and those that its prior is
    /// redrawn by, of which there are none if it is known.
    fn shard_sweep<'py>(
        &mut self,
        py: Python<'py>,
        shared: Vec<LentTable<'_, f64>>,
        threads: usize,
    ) -> PyResult<ShardSweep<'py>> {
        let shared = matrices(py, &shared)?;
        let (tallies, of_prior) = compute(py, None, |monitor| self.chain.shard_sweep(shared, threads, monitor))?;
        self.swept(py, &tallies, of_prior)
    }

    /// How many counts of a shard are larger than 0, 1, ...
    fn begin_sweep<'py>(
        &mut self,
        py: Python<'py>,
        shared: Vec<LentTable<'_, f64>>,
        threads: usize,
    ) -> PyResult<Table<'py, u64>> {
        let shared = matrices(py, &shared)?;
        let short = compute(py, None, |monitor| self.chain.begin_sweep(shared, threads, monitor))?;
        PyArray1::from_slice(py, short.as_flattened()).reshape([short.len(), SHORT])
    }

    fn shape_sums<'py>(&self, py: Python<'py>, shapes: Vec<Vec<f64>>, threads: usize) -> PyResult<Table<'py, i64>> {
        let sums = compute(py, None, |monitor| self.chain.shape_sums(&shapes, threads, monitor))?;
        let rows = sums.len() / LIMBS;
        PyArray1::from_vec(py, sums).reshape([rows, LIMBS])
    }

    /// The next values of each shape whose likelihoods are asked for, none where it is drawn.
    fn redraw_shared_shapes(
        &mut self,
        py: Python<'_>,
        short: LentTable<'_, u64>,
        known: Vec<Vec<f64>>,
    ) -> PyResult<Vec<Vec<f64>>> {
        let (short, rest) = short.as_slice()?.as_chunks();
        if !rest.is_empty() {
            return Err(PyValueError::new_err(format!("`short` must have {SHORT} columns")));
        }
        self.chain.redraw_shared_shapes(short, &known).map_err(|error| raise(py, error))
    }

    /// As `shard_sweep`, with all counts that were drawn and the largest multiplier.
    #[pyo3(signature = (shapes, threads))]
    fn end_sweep<'py>(
        &mut self,
        py: Python<'py>,
        shapes: Option<LentRow<'_, f64>>,
        threads: usize,
    ) -> PyResult<(ShardSweep<'py>, u64, f64)> {
        let shapes = given(shapes.as_ref())?;
        let ended = compute(py, None, |monitor| self.chain.end_sweep(shapes.as_deref(), threads, monitor))?;
        Ok((self.swept(py, &ended.tallies, ended.of_prior)?, ended.total, ended.largest))
    }

    fn weighted_exposures<'py>(
        &mut self,
        py: Python<'py>,
        factor: usize,
        sums: LentRow<'_, f64>,
        largest: f64,
        shared: Option<Vec<LentTable<'_, f64>>>,
        threads: usize,
    ) -> PyResult<Table<'py, f64>> {
        if let Some(shared) = shared {
            self.chain.set_shared(matrices(py, &shared)?).map_err(|error| raise(py, error))?;
        }
        let sums = padded(sums.as_slice()?, self.chain.factors()[0].width);
        let found =
            compute(py, None, |monitor| self.chain.weighted_exposures(factor, &sums, largest, threads, monitor))?;
        table(py, &found, self.chain.factors()[factor].width)
    }

    fn held_exposures<'py>(
        &mut self,
        py: Python<'py>,
        factor: usize,
        sums: LentRow<'_, f64>,
        shared: Option<Vec<LentTable<'_, f64>>>,
    ) -> PyResult<Table<'py, f64>> {
        if let Some(shared) = shared {
            self.chain.set_shared(matrices(py, &shared)?).map_err(|error| raise(py, error))?;
        }
        let whole = padded(sums.as_slice()?, self.chain.factors()[0].width);
        let held = compute(py, None, |_| Ok(self.chain.held_exposures(factor, &whole)))?;
        table(py, &held, self.chain.factors()[factor].width)
    }

    fn exact_likelihood<'py>(
        &mut self,
        py: Python<'py>,
        shared: Vec<LentTable<'_, f64>>,
        threads: usize,
    ) -> PyResult<Table<'py, i64>> {
        self.chain.set_shared(matrices(py, &shared)?).map_err(|error| raise(py, error))?;
        let sum = compute(py, None, |monitor| self.chain.exact_likelihood(threads, monitor))?;
        PyArray1::from_vec(py, sum).reshape([1, LIMBS])
    }

    fn redraw_shared(
        &mut self,
        py: Python<'_>,
        factor: usize,
        tally: LentTable<'_, u64>,
        sums: LentRow<'_, f64>,
        exposures: (LentTable<'_, f64>, LentTable<'_, f64>),
        threads: usize,
    ) -> PyResult<f64> {
        let (width, of_first) = (self.chain.factors()[factor].width, self.chain.factors()[0].width);
        let (tally, sums) = (padded(tally.as_slice()?, width), padded(sums.as_slice()?, of_first));
        let held = padded(exposures.0.as_slice()?, width);
        let exposures = [held, padded(exposures.1.as_slice()?, width)];
        let exposures = [exposures[0].as_slice(), &exposures[1]];
        compute(py, None, |monitor| self.chain.redraw_shared(factor, &tally, &sums, exposures, threads, monitor))
    }

    fn advance(&mut self, py: Python<'_>, tallies: Vec<LentTable<'_, i64>>, threads: usize) -> PyResult<()> {
        let mut tally = Tally::new(self.chain.model());
        let shapes = self.chain.model().tally_shapes();
        let found: Vec<_> = tallies.iter().map(|part| (part.shape()[0], part.shape()[1])).collect();
        if found != shapes || !tallies.iter().all(|part| part.is_c_contiguous()) {
            return Err(PyValueError::new_err(format!(
                "`tallies` must be C-contiguous arrays of shapes {shapes:?}, got {found:?}"
            )));
        }
        let count = |&given: &i64| {
            u64::try_from(given).map_err(|_| PyValueError::new_err(format!("`tallies` must hold counts, got {given}")))
        };
        for ((part, given), (_, width)) in tally.parts.iter_mut().zip(&tallies).zip(shapes) {
            *part = padded(&given.as_slice()?.iter().map(count).collect::<PyResult<Vec<_>>>()?, width);
        }
        compute(py, None, |monitor| self.chain.advance(&tally, threads, monitor))?;
        self.records.add_step(&mut self.chain);
        Ok(())
    }
}

impl GibbsChain {
    fn swept<'py>(&self, py: Python<'py>, tallies: &[Vec<u64>], of_prior: Vec<i64>) -> PyResult<ShardSweep<'py>> {
        let (first, others) = (&self.chain.factors()[0], &self.chain.factors()[1..]);
        let sums = PyArray1::from_vec(py, first.exact_sums()).reshape([first.width, LIMBS])?;
        let each = tallies.iter().zip(others);
        let tallies = each.map(|(tally, factor)| table(py, tally, factor.width)).collect::<PyResult<_>>()?;
        Ok((tallies, sums, of_prior.into_pyarray(py)))
    }
}

/// Rates of all cells, or of some rows; documented at the estimators of `quincunx.factorization`.
#[pyfunction]
#[pyo3(signature = (model, extents, factors, threads, rows = None))]
pub fn factor_rates<'py>(
    py: Python<'py>,
    model: &str,
    extents: Vec<usize>,
    factors: Vec<LentTable<'_, f64>>,
    threads: usize,
    rows: Option<(usize, usize)>,
) -> PyResult<Row<'py, f64>> {
    let (structure, matrices) = (structure(model)?, matrices(py, &factors)?);
    let width = matrices.first().map_or(0, |matrix| matrix.width);
    let rates = compute(py, None, |monitor| {
        let model = Model::without_data((structure, &extents, width))?;
        model.check(&matrices)?;
        let (first, last) = rows.unwrap_or((0, model.layout().rows));
        let rows = first..last.min(model.layout().rows).max(first);
        parallel::run(threads, rows.len() as u64, monitor, |progress| {
            likelihood::rates_of(&model, &matrices, rows, progress)
        })
    })?;
    Ok(rates.into_pyarray(py))
}

/// Something of each cell given its rate.
fn of_rates<'py>(
    py: Python<'py>,
    counts: &ReleasedCounts,
    rates: &LentRow<'_, f64>,
    threads: usize,
    shapes: Option<&Shapes<'_>>,
    cell: impl Fn(i64, f64, f64, Option<f64>) -> f64 + Sync + Send,
    hidden: impl Fn(f64) -> f64 + Sync + Send,
) -> PyResult<Row<'py, f64>> {
    let (table, rates) = (&counts.0, rates.as_slice()?);
    if rates.len() != table.rows() * table.cols() {
        let (rows, cols) = (table.rows(), table.cols());
        return Err(PyValueError::new_err(format!(
            "`rates` must have shape ({rows} * {cols},), got ({},)",
            rates.len()
        )));
    }
    let shapes = shapes.map(|shapes| dispersion(table, shapes, None)).transpose()?;
    let out = compute(py, None, |monitor| {
        let shapes = shapes.transpose()?;
        likelihood::map_rates(table, rates, threads, monitor, |row, column, rate| {
            let data = table.row(row);
            let code = data.codes[column];
            if code == HELD_OUT {
                return hidden(rate);
            }
            let r = shapes.as_ref().map(|shapes| shapes.in_row(row).at(column));
            cell(data.value(column, code), rate, table.alpha_at(row * table.cols() + column), r)
        })
    })?;
    Ok(out.into_pyarray(py))
}

/// Expected counts given releases and rates; documented at the estimators of `quincunx.factorization`.
#[pyfunction]
#[pyo3(signature = (counts, rates, threads, shapes=None))]
pub fn expected_counts<'py>(
    py: Python<'py>,
    counts: &ReleasedCounts,
    rates: LentRow<'_, f64>,
    threads: usize,
    shapes: Option<Shapes<'_>>,
) -> PyResult<Row<'py, f64>> {
    let cell = |o, rate, alpha, r: Option<f64>| match r {
        Some(r) => negative_binomial::expected_count(o, rate, r, alpha),
        None => cell::expected_count(o, rate, alpha),
    };
    of_rates(py, counts, &rates, threads, shapes.as_ref(), cell, |rate| rate)
}

/// Log-likelihoods of releases given rates; documented at the estimators of `quincunx.factorization`.
#[pyfunction]
#[pyo3(signature = (counts, rates, threads, shapes=None))]
pub fn log_likelihoods<'py>(
    py: Python<'py>,
    counts: &ReleasedCounts,
    rates: LentRow<'_, f64>,
    threads: usize,
    shapes: Option<Shapes<'_>>,
) -> PyResult<Row<'py, f64>> {
    let one = if let Alpha::One(alpha) = counts.0.alpha() { Some(cell::Logarithms::new(*alpha)) } else { None };
    let cell = |o, rate, alpha, r: Option<f64>| match (r, &one) {
        (Some(r), _) => negative_binomial::log_likelihood(o, rate, r, alpha),
        (None, Some(one)) => one.likelihood(o, rate),
        (None, None) => cell::log_likelihood(o, rate, alpha),
    };
    of_rates(py, counts, &rates, threads, shapes.as_ref(), cell, |_| 0.0)
}

/// A variational fit; documented at the estimators of `quincunx.factorization`.
#[pyclass(module = "quincunx._core")]
pub struct CoordinateAscent(core::CoordinateAscent);

#[pymethods]
impl CoordinateAscent {
    #[new]
    #[pyo3(signature = (counts, model, extents, n_components, priors, method, key, fixed=None))]
    #[expect(clippy::too_many_arguments, reason = "one constructor, one crossing")]
    fn new(
        py: Python<'_>,
        counts: &ReleasedCounts,
        model: &str,
        extents: Vec<usize>,
        n_components: usize,
        priors: Priors<'_>,
        method: &str,
        key: (u64, u64),
        fixed: Option<Vec<bool>>,
    ) -> PyResult<Self> {
        let methods = [
            ("collapsed", Augmentation::Collapsed),
            ("bessel-mean", Augmentation::BesselMean),
            ("bessel-mode", Augmentation::BesselMode),
            ("published", Augmentation::Published),
        ];
        let method = word("method", method, &methods)?;
        let priors = self::priors(&priors)?;
        let fixed = fixed.unwrap_or_else(|| vec![false; priors.len()]);
        let model = (structure(model)?, extents.as_slice(), n_components);
        let made = core::CoordinateAscent::new(Arc::clone(&counts.0), model, priors, method, key.into(), fixed);
        made.map(Self).map_err(|error| raise(py, error))
    }

    fn learn_priors(&mut self, py: Python<'_>, hyperpriors: &str) -> PyResult<()> {
        let rates = rates(hyperpriors)?;
        self.0.learn_priors(rates).map_err(|error| raise(py, error))
    }

    fn priors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        priors_of(py, self.0.model())
    }

    #[pyo3(signature = (shapes, prior=None))]
    fn set_dispersion(&mut self, py: Python<'_>, shapes: Shapes<'_>, prior: Option<(f64, f64)>) -> PyResult<()> {
        let made = dispersion(self.0.table(), &shapes, prior)?;
        made.and_then(|dispersion| self.0.set_dispersion(dispersion)).map_err(|error| raise(py, error))
    }

    fn dispersion<'py>(&self, py: Python<'py>) -> Option<Row<'py, f64>> {
        self.0.dispersion().map(|dispersion| dispersion.shapes().to_vec().into_pyarray(py))
    }

    #[pyo3(signature = (iterations, tolerance, threads, progress=None))]
    fn run(
        &mut self,
        py: Python<'_>,
        iterations: usize,
        tolerance: f64,
        threads: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<bool> {
        compute(py, progress, |monitor| self.0.run(iterations, tolerance, threads, monitor))
    }

    fn place(&mut self, py: Python<'_>, first_row: u64, whole: FactsTuple, key: (u64, u64)) -> PyResult<()> {
        self.0.place(first_row, &facts(whole), key.into()).map_err(|error| raise(py, error))
    }

    fn set_factor(
        &mut self,
        py: Python<'_>,
        factor: usize,
        shape: LentTable<'_, f64>,
        rate: LentTable<'_, f64>,
    ) -> PyResult<()> {
        let mut both = matrices(py, &[shape, rate])?.into_iter();
        let (Some(shape), Some(rate)) = (both.next(), both.next()) else { unreachable!("two were given") };
        self.0.set_factor(factor, Gammas { shape, rate }).map_err(|error| raise(py, error))
    }

    #[pyo3(signature = (factor, shape, rate=None))]
    fn set_prior(&mut self, py: Python<'_>, factor: usize, shape: f64, rate: Option<LentRow<'_, f64>>) -> PyResult<()> {
        self.0.set_prior(factor, shape, given(rate.as_ref())?).map_err(|error| raise(py, error))
    }

    #[pyo3(signature = (factor, sums=None))]
    fn maximize_prior(&mut self, py: Python<'_>, factor: usize, sums: Option<LentRow<'_, i64>>) -> PyResult<()> {
        match sums {
            Some(sums) => self.0.maximize_shared_prior(factor, sums.as_slice()?).map_err(|error| raise(py, error)),
            None => {
                self.0.maximize_prior(factor);
                Ok(())
            }
        }
    }

    fn log_prior(&self, factor: usize) -> f64 {
        self.0.log_prior(factor)
    }

    /// The bound of the cells and the divergences of the rows, unrounded, and the sums that the rows' prior is set by, of which
    /// there are none if it is known.
    fn shard_step<'py>(
        &mut self,
        py: Python<'py>,
        step: bool,
        threads: usize,
    ) -> PyResult<(Table<'py, i64>, Row<'py, i64>)> {
        let [bound, divergences, of_prior] = compute(py, None, |monitor| self.0.shard_step(step, threads, monitor))?;
        let bound = PyArray1::from_vec(py, [bound, divergences].concat()).reshape([2, LIMBS])?;
        Ok((bound, of_prior.into_pyarray(py)))
    }

    /// Expected counts in units of 2^-64, as digits of 32 bits but for the first; and the largest multiplier.
    fn shard_counts<'py>(
        &mut self,
        py: Python<'py>,
        factor: usize,
        threads: usize,
    ) -> PyResult<(Table<'py, i64>, f64)> {
        let (counts, largest) = compute(py, None, |monitor| self.0.shard_counts(factor, threads, monitor))?;
        let digit = |count: i128| (count & ((1 << 32) - 1)) as i64;
        let digits =
            counts.iter().flat_map(|&count| [(count >> 64) as i64, digit(count >> 32), digit(count)]).collect();
        Ok((PyArray1::from_vec(py, digits).reshape([counts.len(), 3])?, largest))
    }

    fn weighted_exposures<'py>(
        &self,
        py: Python<'py>,
        factor: usize,
        sums: LentRow<'_, f64>,
        largest: f64,
        threads: usize,
    ) -> PyResult<Table<'py, f64>> {
        let whole = padded(sums.as_slice()?, self.0.factors()[0].shape.width);
        let found = compute(py, None, |monitor| self.0.weighted_exposures(factor, &whole, largest, threads, monitor))?;
        table(py, &found, self.0.factors()[factor].shape.width)
    }

    fn shape_sums<'py>(&mut self, py: Python<'py>) -> Row<'py, i64> {
        self.0.shape_sums().into_pyarray(py)
    }

    fn maximize_shapes(&mut self, py: Python<'_>, sums: LentRow<'_, i64>) -> PyResult<()> {
        self.0.maximize_shapes(sums.as_slice()?).map_err(|error| raise(py, error))
    }

    fn log_prior_of_shapes(&self) -> f64 {
        self.0.log_prior_of_shapes()
    }

    fn row_sums<'py>(&self, py: Python<'py>) -> PyResult<Table<'py, i64>> {
        let sums = self.0.row_sums();
        let rows = sums.len() / LIMBS;
        PyArray1::from_vec(py, sums).reshape([rows, LIMBS])
    }

    fn held_exposures<'py>(&self, py: Python<'py>, factor: usize, sums: LentRow<'_, f64>) -> PyResult<Table<'py, f64>> {
        let whole = padded(sums.as_slice()?, self.0.factors()[0].shape.width);
        let held = compute(py, None, |_| Ok(self.0.held_exposures(factor, &whole)))?;
        table(py, &held, self.0.factors()[factor].shape.width)
    }

    fn shared_exposures<'py>(
        &self,
        py: Python<'py>,
        factor: usize,
        sums: LentRow<'_, f64>,
    ) -> PyResult<Table<'py, f64>> {
        let whole = padded(sums.as_slice()?, self.0.factors()[0].shape.width);
        let exposures = self.0.shared_exposures(factor, &whole);
        let shape = &self.0.factors()[factor].shape;
        PyArray1::from_vec(py, exposures).reshape([shape.rows, shape.width])
    }

    fn settle(&mut self, py: Python<'_>, iterations: usize, threads: usize) -> PyResult<()> {
        compute(py, None, |monitor| self.0.settle(iterations, threads, monitor))
    }

    fn elbo<'py>(&self, py: Python<'py>) -> Row<'py, f64> {
        PyArray1::from_slice(py, self.0.bounds())
    }

    fn statistics<'py>(
        &self,
        py: Python<'py>,
        factor: usize,
        threads: usize,
    ) -> PyResult<(Table<'py, f64>, Table<'py, f64>, f64)> {
        let (counts, exposures, bound) = compute(py, None, |monitor| self.0.statistics(factor, threads, monitor))?;
        let shape = self.0.model().shapes()[factor];
        let table = |values: Vec<f64>| PyArray1::from_vec(py, values).reshape([shape.0, shape.1]);
        Ok((table(counts)?, table(exposures)?, bound))
    }

    fn divergence(&self, factor: usize) -> f64 {
        self.0.divergence(factor)
    }

    fn factors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let pairs = self.0.factors().iter().map(|gammas| {
            let pair = arrays(py, &[gammas.shape.clone(), gammas.rate.clone()])?;
            Ok((pair.get_item(0)?, pair.get_item(1)?))
        });
        PyList::new(py, pairs.collect::<PyResult<Vec<_>>>()?)
    }

    fn set_factors(&mut self, py: Python<'_>, factors: Vec<(LentTable<'_, f64>, LentTable<'_, f64>)>) -> PyResult<()> {
        let (shapes, rates): (Vec<_>, Vec<_>) = factors.into_iter().unzip();
        let both = matrices(py, &shapes)?.into_iter().zip(matrices(py, &rates)?);
        let gammas = both.map(|(shape, rate)| Gammas { shape, rate }).collect();
        self.0.set_factors(gammas).map_err(|error| raise(py, error))
    }

    fn noise<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let noise = self.0.noise();
        let side = |side: usize| noise.iter().map(|cell| cell[side]).collect::<Vec<_>>().into_pyarray(py);
        PyList::new(py, if noise.is_empty() { vec![] } else { vec![side(0), side(1)] })
    }

    fn set_noise(&mut self, py: Python<'_>, noise: Vec<LentRow<'_, f64>>) -> PyResult<()> {
        let cells = match noise.as_slice() {
            [] => vec![],
            [plus, minus] => {
                plus.as_slice()?.iter().zip(minus.as_slice()?).map(|(plus, minus)| [*plus, *minus]).collect()
            }
            _ => return Err(PyValueError::new_err("`noise` must be a list of two arrays, or empty")),
        };
        self.0.set_noise(cells).map_err(|error| raise(py, error))
    }
}
