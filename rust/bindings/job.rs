//! How a long job may run, as Python says it: one object with the attributes that `quincunx._job.Job` has.

use pyo3::prelude::*;
use quincunx::counting::evaluation::Options;
use std::path::PathBuf;
use std::time::Duration;

/// Threads, memory, progress and checkpoint of a job.
#[derive(FromPyObject)]
pub struct Job {
    threads: usize,
    memory_limit: u64,
    report: Option<Py<PyAny>>,
    checkpoint: Option<PathBuf>,
    checkpoint_interval: Option<f64>,
}

impl Job {
    /// The options of the core, and the function that hears of progress.
    pub fn split(self) -> (Options, Option<Py<PyAny>>) {
        let Self { threads, memory_limit, report, checkpoint, checkpoint_interval } = self;
        let checkpoint_interval = checkpoint_interval.map(Duration::from_secs_f64);
        (Options { threads, memory_limit, checkpoint, checkpoint_interval }, report)
    }
}
