//! The one error type of the core: few variants, each with the facts a good sentence needs.

/// What every fallible function of the core returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a computation was refused or stopped.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument lies outside its domain.
    #[error("`{name}` must be {requirement}, got {value}")]
    Domain {
        /// The argument, as the user wrote it.
        name: &'static str,
        /// The value found, printed.
        value: String,
        /// The rule, completing "must be ...".
        requirement: &'static str,
    },
    /// Two arguments do not fit together.
    #[error("`{name}` must have shape {expected}, got {found}")]
    Shape {
        /// The argument, as the user wrote it.
        name: &'static str,
        /// The shape that would fit.
        expected: String,
        /// The shape found.
        found: String,
    },
    /// The job is larger than the stated limit.
    #[error("{what} needs {needed} bytes, the limit is {limit} bytes")]
    TooLarge {
        /// What asked for the memory.
        what: &'static str,
        /// Bytes needed.
        needed: u128,
        /// Bytes allowed.
        limit: u128,
    },
    /// An iteration ended without reaching its tolerance.
    #[error("{what} did not converge in {iterations} iterations (residual {residual:e})")]
    NoConvergence {
        /// The iteration.
        what: &'static str,
        /// Iterations done.
        iterations: u64,
        /// What was left.
        residual: f64,
    },
    /// A file could not be read or written, or does not belong to this job.
    #[error("{what} {path}: {reason}")]
    File {
        /// What the file is for.
        what: &'static str,
        /// Its path.
        path: String,
        /// What went wrong.
        reason: String,
    },
    /// A result contradicts its own check: a fault of the machine or of this program, never of the input.
    #[error("{what} failed its own check: {detail}")]
    Check {
        /// The result that was checked.
        what: &'static str,
        /// How it failed.
        detail: String,
    },
    /// The time the caller allowed is over.
    #[error("{what} did not end within {seconds} seconds")]
    TimeLimit {
        /// The work.
        what: &'static str,
        /// Seconds allowed.
        seconds: f64,
    },
    /// The monitor asked the kernel to stop.
    #[error("interrupted")]
    Interrupted,
}
