//! The hard-core partition function `Z(z)` in floating point, with a proved error.
//!
//! For `z >= 0` every term is positive: with k operations on the longest path that err by at most e each, the relative error
//! is at most `(1 + e)^k - 1`. Doubles have e = 2^-53, and 1e-14 is reached after 90 roundings; these are double-doubles, with
//! e = 2^-102, so that k may be anything.
//!
//! Every number on the way is a polynomial in z with natural coefficients, of degree at most the number n of vertices: it is
//! zero or at least `min(1, z)^n`. It belongs to a part of the graph and goes on to the result, where the rest may stay empty,
//! so it is at most Z. Within 2^-900 and 2^900 double-doubles lose nothing; beyond they have an exponent of their own.
//!
//! Source: N. Higham (2002), Accuracy and Stability of Numerical Algorithms, 2nd ed., lemma 3.1.

use super::count::planned;
use super::{Engine, Problem};
use crate::counting::evaluation::{self, GRAIN, Options};
use crate::counting::transfer::{Transfer, TransferRing, Weight, evaluate};
use crate::monitor::{Monitor, Progress};
use crate::numeric::double_double::DoubleDouble;
use crate::numeric::double_ring::{DoubleDoubles, OPERATION_ERROR, ScaledDoubleDouble, ScaledDoubleDoubles};
use crate::{Error, Result, memory, parallel};

/// The sizes up to which the value is expected within the range: lattices have about .6 bits for each bit of this.
const WORTH: f64 = 1500.0;
/// Between two to the minus this and two to this double-doubles lose nothing, in any operation.
const RANGE: f64 = 900.0;

/// An activity that is not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloatActivity {
    /// The activity, or a number within a relative 2^-105 of it.
    pub number: ScaledDoubleDouble,
    /// Whether it is the activity.
    pub is_exact: bool,
}

/// A partition function in floating point, `value * 2^exponent`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloatValue {
    /// Its high part, the nearest double, is in `[1, 2)`: the empty set counts.
    pub value: DoubleDouble,
    /// The power of two.
    pub exponent: i64,
    /// A proved bound on the relative error of both parts together.
    pub relative_error: f64,
}

impl FloatActivity {
    /// `(high + low) 2^exponent`.
    ///
    /// # Errors
    /// [`Error::Domain`] unless it is finite and not negative.
    pub fn new(high: f64, low: f64, exponent: i64, is_exact: bool) -> Result<Self> {
        if !(high >= 0.0 && high.is_finite() && low.is_finite()) {
            return Err(Error::domain("activity", high, "finite and not negative in floating point"));
        }
        Ok(Self { number: ScaledDoubleDouble::new(DoubleDouble { hi: high, lo: low }, exponent), is_exact })
    }

    /// The binary logarithms of `min(1, z)`, no more, and of `1 + z`; 0 for an activity of zero.
    fn log2(&self) -> [f64; 2] {
        let ScaledDoubleDouble { value, exponent } = self.number;
        if value.hi == 0.0 {
            return [0.0; 2];
        }
        let log = self.number.log2();
        let sum =
            if exponent > 1000 { log + 0.5 } else { (1.0 + value.hi * 2f64.powi(exponent.max(-1000) as i32)).log2() };
        [(log - 0.5).min(0.0), sum]
    }

    /// The same as a double-double, where that holds it.
    fn plain(&self) -> DoubleDouble {
        let DoubleDouble { hi, lo } = self.number.value;
        let scale = 2f64.powi(self.number.exponent as i32);
        DoubleDouble { hi: hi * scale, lo: lo * scale }
    }
}

/// `Z(activity)` in floating point, where every term is positive and the error can be proved.
///
/// # Errors
/// As [`super::count_independent_sets`].
pub fn hard_core_float(
    problem: &Problem,
    activity: FloatActivity,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<FloatValue> {
    let [least, most] = activity.log2();
    let degree = problem.vertices() as f64 + 2.0; // tables of powers go two beyond
    let fits = degree * least >= -RANGE && most <= RANGE;
    let is_plain = fits && degree * most <= WORTH;
    let engine = planned(problem, if is_plain { 2 } else { 3 }, 1, options, monitor)?;
    // An activity that was rounded has an error of its own, once for each vertex of a set.
    let own = if activity.is_exact { 0 } else { problem.vertices() as u64 };
    let operations = engine.roundings().saturating_add(own);
    let relative_error = (operations as f64 * OPERATION_ERROR * 1.01).exp_m1();
    if is_plain {
        let value = evaluated(&engine, DoubleDoubles, activity.plain(), options, monitor)?;
        if value.hi <= 2f64.powf(RANGE) && value.lo.is_finite() {
            let ScaledDoubleDouble { value, exponent } = ScaledDoubleDouble::new(value, 0);
            return Ok(FloatValue { value, exponent, relative_error });
        }
    }
    let found = evaluated(&engine, ScaledDoubleDoubles, activity.number, options, monitor)?;
    Ok(FloatValue { value: found.value, exponent: found.exponent, relative_error })
}

/// The partition function over a ring, on the pool if the vector is long.
fn evaluated<R: TransferRing>(
    engine: &Engine,
    ring: R,
    activity: R::Element,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<R::Element> {
    let needed = (size_of::<R::Element>() * engine.len()) as u128;
    memory::check("the vector of partial sums", needed, options.memory_limit)?;
    let run = |progress: &Progress| evaluate(engine, &Weight::new(ring, activity), progress);
    let total = evaluation::work(engine);
    if engine.len() <= GRAIN {
        let value = parallel::run_here(total, run)?;
        monitor.tick(total, total)?;
        return Ok(value);
    }
    parallel::run(options.threads, total, monitor, run)
}
