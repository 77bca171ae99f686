//! The hard-core partition function `Z(z)` in floating point, with a proved error.
//!
//! For `z >= 0` every term is positive: with k roundings on the longest path the relative error is at most
//! `(1 + 2^-53)^k - 1`.
//!
//! Source: N. Higham (2002), Accuracy and Stability of Numerical Algorithms, 2nd ed., lemma 3.1.

use super::Problem;
use super::count::planned;
use crate::counting::evaluation::{self, GRAIN, Options};
use crate::counting::transfer::{Transfer, Weight, evaluate};
use crate::monitor::{Monitor, Progress};
use crate::numeric::ring::{F64, ScaledF64, ScaledNumber};
use crate::{Error, Result, parallel};

/// A partition function in floating point, `mantissa * 2^exponent`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloatValue {
    /// Zero or in `[1, 2)`.
    pub mantissa: f64,
    /// The power of two.
    pub exponent: i64,
    /// A proved bound on the relative error.
    pub relative_error: f64,
}

/// `Z(activity)` in floating point for `activity >= 0`, where every term is positive and the error can be proved.
///
/// # Errors
/// [`Error::Domain`] for a negative or non-finite activity; otherwise as [`super::count_independent_sets`].
pub fn hard_core_float(
    problem: &Problem,
    activity: f64,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<FloatValue> {
    if !(activity >= 0.0 && activity.is_finite()) {
        let requirement = "finite and not negative in floating point";
        return Err(Error::Domain { name: "activity", value: activity.to_string(), requirement });
    }
    let engine = planned(problem, 2, 1, options, monitor)?;
    let needed = 16 * engine.len() as u128;
    if needed > u128::from(options.memory_limit) {
        let limit = u128::from(options.memory_limit);
        return Err(Error::TooLarge { what: "the vector of partial sums", needed, limit });
    }
    let overflows = problem.vertices() as f64 * (1.0 + activity).log2() > 1000.0;
    let run = |progress: &Progress| {
        if overflows {
            evaluate(&engine, &Weight::new(ScaledF64, ScaledNumber::new(activity)), progress)
        } else {
            evaluate(&engine, &Weight::new(F64, activity), progress).map(ScaledNumber::new)
        }
    };
    let total = evaluation::work(&engine);
    let value = if engine.len() <= GRAIN {
        let value = parallel::run_here(total, run)?;
        monitor.tick(total, total)?;
        Ok(value)
    } else {
        parallel::run(options.threads, total, monitor, run)
    }?;
    let roundings = engine.roundings() as f64;
    Ok(FloatValue {
        mantissa: value.mantissa,
        exponent: value.exponent,
        relative_error: (roundings * 2f64.powi(-53) * 1.01).exp_m1(),
    })
}
