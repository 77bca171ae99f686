//! The one door between the interpreter and the core: lets the interpreter go, asks for signals, calls progress, turns the
//! core's errors into Python's, and stops a panic from crossing.
//!
//! Arrays that are lent. NumPy's arrays of numbers to compute with (channels, rates, points, released values, and those
//! that results are written into) are not copied: work reads them while the interpreter is free, and nothing keeps another
//! Python thread from writing into them meanwhile. That is a data race, to which Rust gives no meaning; in practice each
//! number is read as it is at some moment, so the answer may belong to no state of the array, or the call may raise. A copy
//! would double the memory of the largest calls and cost as much as the shortest. What reaches memory without a check never
//! comes from a lent array: edges, orders, colors, permutations and bases of groups are copied and checked first (`arrays`,
//! `automorphisms`), so are priors, factors and parameters of models and distributions; kernels that look something up by a
//! number look at that number first, in the register it is used from. A test in `tests/test_boundary.py` writes into what is lent.

use crate::job::Job;
use num_bigint::{BigInt, BigUint};
use numpy::PyArrayMethods;
use pyo3::exceptions::{PyRuntimeError, PyTimeoutError, PyValueError};
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PySequence};
use quincunx::monitor::Monitor;
use quincunx::numeric::dispatch::{Level, level};
use quincunx::parallel;
use quincunx::{Error, memory};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A Python program that waits: its signals are honoured and its progress function is called.
struct PythonMonitor {
    progress: Option<Py<PyAny>>,
    raised: Option<PyErr>,
}

impl Monitor for PythonMonitor {
    fn tick(&mut self, done: u64, total: u64) -> quincunx::Result<()> {
        let answer = Python::attach(|py| {
            py.check_signals()?;
            // Work whose size is not known says a total of zero: its signals are honoured, but it has no progress to tell.
            let progress = self.progress.as_ref().filter(|_| total > 0);
            progress.map_or(Ok(()), |progress| progress.call1(py, (done, total)).map(drop))
        });
        answer.map_err(|error| {
            self.raised = Some(error);
            Error::Interrupted
        })
    }
}

/// Runs `work` without the interpreter. An exception of a signal or of `progress(done, total)` comes back as itself.
pub fn compute<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&mut dyn Monitor) -> quincunx::Result<T> + Send,
) -> PyResult<T> {
    let mut waiting = PythonMonitor { progress, raised: None };
    let outcome = py.detach(|| catch_unwind(AssertUnwindSafe(|| work(&mut waiting))));
    match (waiting.raised, outcome) {
        (Some(raised), _) => Err(raised),
        (None, Ok(result)) => result.map_err(|error| raise(py, error)),
        (None, Err(panic)) => {
            let said = panic.downcast_ref::<&str>().map(ToString::to_string);
            let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            Err(exception(py, "InternalError", format!("a bug in quincunx, please report it: {said}"), &[]))
        }
    }
}

/// Units of work, some nanoseconds each, below which nobody waits for an interrupt.
const BRIEF: usize = 1 << 20;

/// [`compute`] of work of so many units that hears nobody and owns all it needs; a long one is left when an interrupt comes.
pub fn compute_unheard<T: Send + 'static>(
    py: Python<'_>,
    units: usize,
    work: impl FnOnce() -> quincunx::Result<T> + Send + 'static,
) -> PyResult<T> {
    compute(py, None, |monitor| if units < BRIEF { work() } else { parallel::run_unheard(monitor, work) })
}

/// The Python exception for an error of the core.
pub fn raise(py: Python<'_>, error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Domain { .. } | Error::Shape { .. } => PyValueError::new_err(message),
        Error::TooLarge { needed, limit, .. } => {
            exception(py, "TooLargeError", message, &[("needed", needed), ("limit", limit)])
        }
        Error::NoConvergence { .. } => exception(py, "ConvergenceError", message, &[]),
        Error::File { .. } => exception(py, "CheckpointError", message, &[]),
        Error::TimeLimit { .. } => PyTimeoutError::new_err(message),
        Error::Check { .. } => exception(py, "InternalError", message, &[]),
        _ => PyRuntimeError::new_err(message),
    }
}

/// `dictionary!(py, value; a, b)`: the fields `a` and `b` of a value under their names.
macro_rules! dictionary {
    ($py:expr, $value:ident; $($field:ident),*) => {{
        let dictionary = pyo3::types::PyDict::new($py);
        $(dictionary.set_item(stringify!($field), $value.$field)?;)*
        dictionary
    }};
}
pub(crate) use dictionary;

/// The value that is meant by a word.
pub fn word<T: Copy>(name: &str, found: &str, words: &[(&str, T)]) -> PyResult<T> {
    let known = words.iter().find(|(word, _)| *word == found).map(|(_, value)| *value);
    known.ok_or_else(|| {
        let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        PyValueError::new_err(format!("`{name}` must be one of {words:?}, got {found:?}"))
    })
}

/// An exception of `quincunx.errors`, with attributes.
fn exception(py: Python<'_>, name: &str, message: String, attributes: &[(&str, u128)]) -> PyErr {
    let made = py.import("quincunx.errors").and_then(|module| module.getattr(name)).and_then(|class| {
        let keywords = attributes.iter().copied().into_py_dict(py)?;
        class.call((message.as_str(),), Some(&keywords))
    });
    made.map_or_else(|error| error, PyErr::from_value)
}

/// Threads a call uses when the user says nothing.
#[pyfunction]
pub fn available_threads() -> usize {
    parallel::available_threads()
}

/// Bytes this process could still get.
#[pyfunction]
pub fn available_memory() -> u64 {
    memory::available()
}

/// The decimal digits of a non-negative integer, however long: Python's own conversion refuses more than 4300 digits.
#[pyfunction]
pub fn to_decimal(py: Python<'_>, value: BigUint) -> String {
    py.detach(|| value.to_string())
}

/// Makes every global that is made when it is first asked for, the core's and those of PyO3: called before a fork.
///
/// PyO3 lets the interpreter go while it makes one of its own, and a thread that waits for the interpreter to fork gets it then.
#[pyfunction]
pub fn make_globals(py: Python<'_>) -> PyResult<()> {
    py.detach(|| {
        quincunx::globals::make_all();
        Python::attach(|_| ());
    });
    // The words and types of conversions: a job's attributes, long integers, sequences, truth values, errors.
    let attributes = ["threads", "memory_limit"].map(|name| (name, Some(1)));
    let others = ["report", "checkpoint", "checkpoint_interval"].map(|name| (name, None));
    let attributes = attributes.into_iter().chain(others).into_py_dict(py)?;
    py.import("types")?.getattr("SimpleNamespace")?.call((), Some(&attributes))?.extract::<Job>()?;
    BigInt::from(-1).into_pyobject(py)?.extract::<BigInt>()?;
    BigUint::from(1u8).into_pyobject(py)?.extract::<BigUint>()?;
    py.get_type::<PySequence>();
    py.get_type::<PanicException>();
    let refused = wrap_pyfunction!(to_decimal, py)?.call1(("no number",)).is_err();
    let refused = py.None().extract::<bool>(py).is_err() && refused;
    debug_assert!(refused);
    // NumPy's, once it is there: nobody can have given us an array before.
    let modules = py.import("sys")?.getattr("modules")?;
    if let Ok(numpy) = modules.get_item("numpy")
        && !numpy.getattr("__spec__")?.getattr("_initializing").is_ok_and(|busy| busy.is_truthy().unwrap_or(true))
    {
        numpy.getattr("True_")?.extract::<bool>()?;
        numpy::npyffi::is_numpy_2(py);
        let array = numpy::PyArray1::from_vec(py, vec![0.0]);
        drop(array.readonly());
    }
    Ok(())
}

/// Forgets the thread pools: called in the child of a fork.
#[pyfunction]
pub fn forget_pools() {
    parallel::forget_pools();
}

/// The vector instructions in use: "baseline", "avx2" or "avx512".
#[pyfunction]
pub fn simd_level() -> &'static str {
    match level() {
        Level::Baseline => "baseline",
        Level::Avx2 => "avx2",
        Level::Avx512 => "avx512",
    }
}
