//! Privacy: from Python to the core and back. The documentation is in `quincunx.privacy`.

use crate::arrays::{LentRow, Row};
use crate::boundary::{compute, raise};
use numpy::{Element, IntoPyArray};
use pyo3::prelude::*;
use quincunx::Result;
use quincunx::monitor::Monitor;
use quincunx::privacy::laplace::RoundedLaplace;
use quincunx::privacy::loss::Pair;
use quincunx::privacy::noise::{Decay, DiscreteGaussian, GeometricNoise};
use quincunx::privacy::normal::RoundedNormal;
use quincunx::privacy::response;
use quincunx::privacy::source::Generator;
use quincunx::privacy::{calibration, composition, discrete, mechanism, records, sensitivity, supports, zcdp};

/// The seed of a generator that is not to be secret, or none.
pub type Seed = Option<[u64; 2]>;

/// A copy of some values.
pub fn copied<T: Copy + Element>(values: &LentRow<'_, T>) -> Vec<T> {
    values.as_slice().map_or_else(|_| values.as_array().iter().copied().collect(), <[T]>::to_vec)
}

/// Values that `act` makes by bits of a fresh generator.
pub fn drawn<T: Send + Element>(
    py: Python<'_>,
    insecure_seed: Seed,
    act: impl FnOnce(&mut Generator, &mut dyn Monitor) -> Result<Vec<T>> + Send,
) -> PyResult<Row<'_, T>> {
    let values = compute(py, None, |monitor| act(&mut Generator::new(insecure_seed)?, monitor))?;
    Ok(values.into_pyarray(py))
}

/// What `act` makes of a copy of some values by bits of a fresh generator.
pub fn made<'py, T: Copy + Send + Sync + Element, U: Send + Element>(
    py: Python<'py>,
    values: &LentRow<'py, T>,
    insecure_seed: Seed,
    act: impl FnOnce(&[T], &mut Generator, &mut dyn Monitor) -> Result<Vec<U>> + Send,
) -> PyResult<Row<'py, U>> {
    let values = copied(values);
    drawn(py, insecure_seed, |source, monitor| act(&values, source, monitor))
}

/// A copy of some values after `act` has changed them by bits of a fresh generator.
pub fn released<'py, T: Copy + Send + Element>(
    py: Python<'py>,
    values: &LentRow<'py, T>,
    insecure_seed: Seed,
    act: impl FnOnce(&mut [T], &mut Generator, &mut dyn Monitor) -> Result<()> + Send,
) -> PyResult<Row<'py, T>> {
    let mut values = copied(values);
    drawn(py, insecure_seed, |source, monitor| act(&mut values, source, monitor).map(|()| values))
}

/// Functions of numbers alone, which are those of the core with that name.
macro_rules! of_numbers {
    ($($(#[$about:meta])* $place:ident::$name:ident($($argument:ident: $kind:ty),*) -> $found:ty;)*) => {$(
        $(#[$about])*
        #[pyfunction]
        pub fn $name(py: Python<'_>, $($argument: $kind),*) -> PyResult<$found> {
            result(py, $place::$name($($argument),*))
        }
    )*};
}

/// Functions of an array that draw, which are those of the core with that name: `made` returns another array, `released` changes
/// a copy.
macro_rules! of_values {
    ($($(#[$about:meta])* $way:ident $place:ident::$name:ident(
        $values:ident: [$of:ty], $($argument:ident: $kind:ty),*
    ) -> [$found:ty];)*) => {$(
        $(#[$about])*
        #[pyfunction]
        #[pyo3(signature = ($values, $($argument,)* insecure_seed=None))]
        pub fn $name<'py>(
            py: Python<'py>,
            $values: LentRow<'py, $of>,
            $($argument: $kind,)*
            insecure_seed: Seed,
        ) -> PyResult<Row<'py, $found>> {
            $way(py, &$values, insecure_seed, |values, source, monitor| {
                $place::$name(values, $($argument,)* source, monitor)
            })
        }
    )*};
}
pub(crate) use of_values;

/// Rows of counts, flat, of a sum of at most `bound` each.
#[pyfunction]
pub fn clip_records<'py>(
    py: Python<'py>,
    counts: LentRow<'py, i64>,
    width: usize,
    bound: u64,
) -> PyResult<Row<'py, i64>> {
    let mut counts = copied(&counts);
    let counts = compute(py, None, |monitor| {
        records::clip_records(&mut counts, width, bound, monitor)?;
        Ok(counts)
    })?;
    Ok(counts.into_pyarray(py))
}

/// A law of whole noise, with its tables.
enum WholeLaw {
    Geometric(GeometricNoise),
    DiscreteGaussian(DiscreteGaussian),
}

/// Whole noise, added to whole numbers or to multiples of a step.
#[pyclass(frozen, module = "quincunx._core")]
pub struct WholeSampler(WholeLaw);

#[pymethods]
impl WholeSampler {
    /// Two-sided geometric noise whose decay is a rational number, or its exponent is.
    #[staticmethod]
    fn geometric(py: Python<'_>, numerator: u64, denominator: u64, exponential: bool) -> PyResult<Self> {
        let decay = if exponential {
            Decay::Exponential { numerator, denominator }
        } else {
            Decay::Rational { numerator, denominator }
        };
        result(py, GeometricNoise::new(decay)).map(|law| Self(WholeLaw::Geometric(law)))
    }

    /// Discrete Gaussian noise of a rational variance.
    #[staticmethod]
    fn discrete_gaussian(py: Python<'_>, numerator: u64, denominator: u64) -> PyResult<Self> {
        let law = DiscreteGaussian::new(numerator, denominator);
        result(py, law).map(|law| Self(WholeLaw::DiscreteGaussian(law)))
    }

    #[pyo3(signature = (values, lower, upper, insecure_seed=None))]
    fn add<'py>(
        &self,
        py: Python<'py>,
        values: LentRow<'py, i64>,
        lower: i64,
        upper: i64,
        insecure_seed: Seed,
    ) -> PyResult<Row<'py, i64>> {
        released(py, &values, insecure_seed, |values, source, monitor| match &self.0 {
            WholeLaw::Geometric(law) => mechanism::add_whole(values, (lower, upper), || law.attempt(source), monitor),
            WholeLaw::DiscreteGaussian(law) => {
                mechanism::add_whole(values, (lower, upper), || Ok((law.draw(source)?, true)), monitor)
            }
        })
    }

    #[pyo3(signature = (values, bounds, step, insecure_seed=None))]
    fn add_on_grid<'py>(
        &self,
        py: Python<'py>,
        values: LentRow<'py, f64>,
        bounds: (f64, f64),
        step: f64,
        insecure_seed: Seed,
    ) -> PyResult<Row<'py, f64>> {
        released(py, &values, insecure_seed, |values, source, monitor| match &self.0 {
            WholeLaw::Geometric(law) => mechanism::add_on_grid(values, bounds, step, || law.draw(source), monitor),
            WholeLaw::DiscreteGaussian(law) => {
                mechanism::add_on_grid(values, bounds, step, || law.draw(source), monitor)
            }
        })
    }
}

/// A law of real noise that is rounded to steps, with its tables.
enum RoundedLaw {
    Normal(RoundedNormal),
    Laplace(RoundedLaplace),
}

/// Real noise, rounded to a grid.
#[pyclass(frozen, module = "quincunx._core")]
pub struct RoundedSampler(RoundedLaw);

#[pymethods]
impl RoundedSampler {
    /// Normal noise of a deviation in steps.
    #[staticmethod]
    fn normal(py: Python<'_>, deviation: f64) -> PyResult<Self> {
        result(py, RoundedNormal::new(deviation)).map(|law| Self(RoundedLaw::Normal(law)))
    }

    /// Laplace noise of a rational decay for each step.
    #[staticmethod]
    fn laplace(py: Python<'_>, numerator: u64, denominator: u64) -> PyResult<Self> {
        result(py, RoundedLaplace::new(numerator, denominator)).map(|law| Self(RoundedLaw::Laplace(law)))
    }

    #[pyo3(signature = (values, step, insecure_seed=None))]
    fn add_on_grid<'py>(
        &self,
        py: Python<'py>,
        values: LentRow<'py, f64>,
        step: f64,
        insecure_seed: Seed,
    ) -> PyResult<Row<'py, f64>> {
        released(py, &values, insecure_seed, |values, source, monitor| match &self.0 {
            RoundedLaw::Normal(law) => mechanism::add_rounded(values, step, |rest| law.draw(rest, source), monitor),
            RoundedLaw::Laplace(law) => mechanism::add_rounded(values, step, |rest| law.draw(rest, source), monitor),
        })
    }
}

fn result<T>(py: Python<'_>, outcome: Result<T>) -> PyResult<T> {
    outcome.map_err(|error| raise(py, error))
}

of_numbers! {
    /// The chance of a flip, in units of 2^-64.
    response::flip_chance(epsilon: f64) -> u64;
    /// The chance of a redraw, in units of 2^-64.
    response::redraw_chance(epsilon: f64, categories: u64) -> u64;
    /// The chance of a report that does not support the truth, in units of 2^-64.
    response::miss_chance(epsilon: f64, inside: u64, outside: u64) -> u64;
    /// The least sigma of the Gaussian mechanism.
    calibration::gaussian_sigma(epsilon: f64, delta: f64, sensitivity: f64) -> f64;
    /// The same beside a release of randomized response.
    composition::gaussian_sigma_alongside(epsilon: f64, delta: f64, sensitivity: f64, alongside: f64) -> f64;
    /// The delta of the Gaussian mechanism.
    calibration::gaussian_delta(epsilon: f64, sigma: f64, sensitivity: f64) -> f64;
    /// The epsilon of the Gaussian mechanism.
    calibration::gaussian_epsilon(delta: f64, sigma: f64, sensitivity: f64) -> f64;
    /// The delta of a zero-concentrated guarantee.
    zcdp::zcdp_delta(rho: f64, epsilon: f64) -> f64;
    /// The epsilon of a zero-concentrated guarantee.
    zcdp::zcdp_epsilon(rho: f64, delta: f64) -> f64;
}

of_values! {
    /// Bits, some of them flipped.
    released response::flip_bits(bits: [u8], flip: u64) -> [u8];
    /// Categories, some of them drawn anew.
    released response::redraw_categories(values: [i64], categories: u64, redraw: u64) -> [i64];
    /// Noisy one-hot rows, flat.
    made response::encode_unary(values: [i64], categories: usize, flip: u64, one: u64) -> [u8];
    /// Hash functions and noisy hashes, flat.
    made supports::hash_categories(values: [i64], buckets: u64, miss: u64) -> [i64];
    /// Noisy subsets as rows of bits, flat.
    made supports::select_subsets(values: [i64], categories: usize, size: usize, miss: u64) -> [u8];
    /// Indices of Hadamard response.
    made supports::hadamard_responses(values: [i64], blocks: u64, columns: u64, miss: u64) -> [i64];
}

/// Parts of a composition: the kind of a pair of laws, its parameters, how often.
type Parts = Vec<(String, Vec<f64>, u64)>;

/// The law of the privacy loss of several releases together.
#[pyclass(frozen, module = "quincunx._core")]
pub struct PrivacyLosses(composition::Losses);

#[pymethods]
impl PrivacyLosses {
    #[new]
    fn new(py: Python<'_>, parts: Parts, ratio: f64) -> PyResult<Self> {
        let pairs: Result<Vec<_>> =
            parts.iter().map(|(kind, values, times)| Ok((Pair::named(kind, values)?, *times))).collect();
        let pairs = result(py, pairs)?;
        compute(py, None, |_| composition::Losses::new(&pairs, ratio)).map(Self)
    }

    fn delta(&self, py: Python<'_>, epsilon: f64) -> PyResult<f64> {
        compute(py, None, |_| Ok(self.0.delta(epsilon)))
    }

    fn epsilon(&self, py: Python<'_>, delta: f64) -> PyResult<f64> {
        compute(py, None, |_| self.0.epsilon(delta))
    }
}

/// The Renyi divergence of a pair of laws.
#[pyfunction]
pub fn renyi_divergence(py: Python<'_>, kind: &str, values: Vec<f64>, order: f64) -> PyResult<f64> {
    let pair = result(py, Pair::named(kind, &values))?;
    compute(py, None, |_| pair.renyi(order))
}

/// The delta of the discrete Gaussian mechanism.
#[pyfunction]
pub fn discrete_gaussian_delta(py: Python<'_>, epsilon: f64, variance: f64, sensitivity: u64) -> PyResult<f64> {
    compute(py, None, |_| discrete::discrete_gaussian_delta(epsilon, variance, sensitivity))
}

/// The sensitivity of linear-regression statistics, for records on a line or in more dimensions.
#[pyfunction]
pub fn linear_regression_sensitivity(
    py: Python<'_>,
    radius: f64,
    response: f64,
    cross: f64,
    square: f64,
    line: bool,
) -> PyResult<f64> {
    let of = if line { sensitivity::linear_regression_on_a_line } else { sensitivity::linear_regression };
    result(py, of(radius, response, cross, square))
}

/// The sensitivity of logistic-regression statistics, for records on a line or in more dimensions.
#[pyfunction]
pub fn logistic_regression_sensitivity(py: Python<'_>, radius: f64, ratio: f64, line: bool) -> PyResult<f64> {
    let of = if line { sensitivity::logistic_regression_on_a_line } else { sensitivity::logistic_regression };
    result(py, of(radius, ratio))
}
