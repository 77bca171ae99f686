//! Traces of chains: arrays of the caller's that a chain of the core writes its draws into.

use crate::boundary::compute;
use numpy::{PyArray1, PyArrayMethods, PyReadwriteArray1};
use pyo3::prelude::*;
use quincunx::inference::{self as core, Chain, Steps};

type Array = Py<PyArray1<f64>>;

/// Arrays to be filled with draws, and how far they are; documented at `quincunx._inference`.
#[pyclass(module = "quincunx._core")]
pub struct Trace {
    draws: Vec<Array>,
    kept: Py<PyArray1<i64>>,
    of_draws: Vec<Array>,
    of_steps: Vec<Array>,
    filled: [usize; 2],
}

#[pymethods]
impl Trace {
    #[new]
    fn new(
        draws: Vec<Array>,
        kept: Py<PyArray1<i64>>,
        of_draws: Vec<Array>,
        of_steps: Vec<Array>,
        filled: (usize, usize),
    ) -> Self {
        Self { draws, kept, of_draws, of_steps, filled: filled.into() }
    }

    /// Draws and steps that are in the arrays.
    #[getter]
    fn filled(&self) -> (usize, usize) {
        self.filled.into()
    }
}

/// Lets a chain take steps into a trace.
pub fn run_chain<C: Chain>(
    py: Python<'_>,
    chain: &mut C,
    steps: Steps,
    trace: &mut Trace,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    type Lent<'py> = PyResult<Vec<PyReadwriteArray1<'py, f64>>>;
    let lend = |arrays: &[Array]| arrays.iter().map(|array| Ok(array.bind(py).try_readwrite()?)).collect::<Lent<'_>>();
    let [mut draws, mut of_draws, mut of_steps] = [lend(&trace.draws)?, lend(&trace.of_draws)?, lend(&trace.of_steps)?];
    let mut kept = trace.kept.bind(py).try_readwrite()?;
    let mut buffers = core::Trace {
        draws: draws.iter_mut().map(|array| array.as_slice_mut()).collect::<Result<_, _>>()?,
        kept: kept.as_slice_mut()?,
        of_draws: of_draws.iter_mut().map(|array| array.as_slice_mut()).collect::<Result<_, _>>()?,
        of_steps: of_steps.iter_mut().map(|array| array.as_slice_mut()).collect::<Result<_, _>>()?,
        filled: trace.filled,
    };
    let outcome = compute(py, progress, |monitor| core::run(chain, steps, &mut buffers, threads, monitor));
    trace.filled = buffers.filled;
    outcome
}
