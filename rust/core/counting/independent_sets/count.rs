//! The number of independent sets: residues modulo enough primes, recombined and verified.

use super::{Engine, Problem, log2_bound};
use crate::counting::evaluation::{self, GRAIN, Options};
use crate::counting::transfer::{Point, Transfer};
use crate::monitor::{Monitor, Watch};
use crate::numeric::residue::{self, Modulus};
use crate::numeric::simd::{Level, level};
use crate::{Error, Result, parallel};
use num_bigint::BigUint;
use std::time::Instant;

/// The number of independent sets, the empty one included.
///
/// # Errors
/// [`Error::TooLarge`] before any work if memory does not suffice; [`Error::File`] for a checkpoint that cannot be used;
/// [`Error::Check`] if the spare prime disagrees; the monitor's error when it stops the work.
pub fn count_independent_sets(problem: &Problem, options: &Options, monitor: &mut dyn Monitor) -> Result<BigUint> {
    let engine = Engine::new(problem, most_states(options))?;
    let bits = bound(problem, 1.0, &engine, options, monitor)?;
    let primes = primes_beyond(bits)?;
    let points: Vec<Point> = primes.iter().map(|&modulus| Point { modulus, activity: 1 }).collect();
    let residues = evaluation::residues(&engine, &problem.description(), &points, options, monitor)?;
    combine_verified(&primes, &residues)
}

/// Residues of `Z(activity)` at the given points: the part of a count that another process can do.
///
/// # Errors
/// As [`count_independent_sets`].
pub fn residues(problem: &Problem, points: &[Point], options: &Options, monitor: &mut dyn Monitor) -> Result<Vec<u64>> {
    let engine = Engine::new(problem, most_states(options))?;
    evaluation::residues(&engine, &problem.description(), points, options, monitor)
}

/// States a vector of one lane may have.
pub(super) fn most_states(options: &Options) -> usize {
    usize::try_from(options.memory_limit / 8).unwrap_or(usize::MAX)
}

/// The bound on `log2 Z`, found on the pool if finding it takes large vectors.
pub(super) fn bound(
    problem: &Problem,
    activity: f64,
    engine: &Engine,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<f64> {
    if engine.len() <= GRAIN {
        return log2_bound(problem, activity, &Watch::default());
    }
    parallel::run(options.threads, 0, monitor, |watch| log2_bound(problem, activity, watch))
}

/// Enough primes for a number below `2^bits`, and one to spare.
///
/// # Errors
/// [`Error::Domain`] if so many primes do not exist below `2^55`.
pub fn primes_beyond(bits: f64) -> Result<Vec<Modulus>> {
    // The primes are above 2^54.999; one part in a million more pays for all rounding.
    residue::primes((bits.max(1.0) * (1.0 + 1e-6) / 54.999).ceil() as usize + 1)
}

/// The number with the residues modulo all but the last prime, verified by the last.
///
/// # Errors
/// [`Error::Check`] if it is not: a fault of the machine's memory, or a bug.
pub(super) fn combine_verified(primes: &[Modulus], residues: &[u64]) -> Result<BigUint> {
    let pairs: Vec<(u64, u64)> = primes.iter().map(|prime| prime.value()).zip(residues.iter().copied()).collect();
    let Some((&(spare, expected), needed)) = pairs.split_last() else { return Ok(BigUint::ZERO) };
    let value = residue::combine(needed)?;
    let found = primes[primes.len() - 1].residue_of(&value);
    if found != expected {
        let detail = format!("modulo the spare prime {spare} it is {found}, computed was {expected}");
        return Err(Error::Check { what: "an exact count", detail });
    }
    Ok(value)
}

/// What a count will take.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// The engine that will work.
    pub engine: &'static str,
    /// States in the working vector.
    pub states: u64,
    /// Lanes side by side.
    pub lanes: u64,
    /// Bytes of all working vectors at once.
    pub bytes: u64,
    /// Primes, the spare one included.
    pub primes: u64,
    /// Additions of one residue each.
    pub additions: f64,
    /// Seconds on this many threads of a machine like the one the rates were measured on.
    pub seconds: f64,
}

/// Forecasts [`count_independent_sets`] without starting it.
///
/// # Errors
/// As [`count_independent_sets`]; a memory limit that is too small is an error here too.
pub fn estimate_cost(problem: &Problem, options: &Options) -> Result<Cost> {
    let start = Instant::now();
    let engine = Engine::new(problem, most_states(options))?;
    let bits = bound(problem, 1.0, &engine, options, &mut crate::monitor::Silent)?;
    let primes = primes_beyond(bits)?.len();
    // The count will plan once more, and for a small graph that is most of what it does.
    let planning = start.elapsed().as_secs_f64();
    let layout = evaluation::layout(&engine, primes, options)?;
    let (full, rest) = (primes / layout.lanes, (primes % layout.lanes).next_power_of_two());
    let rest = if primes.is_multiple_of(layout.lanes) { 0 } else { rest };
    let additions = evaluation::work(&engine) as f64 * (full * layout.lanes + rest) as f64;
    let threads = if engine.len() <= GRAIN { layout.concurrent } else { options.threads };
    Ok(Cost {
        engine: engine.name(),
        states: engine.len() as u64,
        lanes: layout.lanes as u64,
        bytes: layout.bytes,
        primes: primes as u64,
        additions,
        seconds: planning + additions * nanoseconds_per_addition(&engine, layout.lanes) * 1e-9 / threads as f64,
    })
}

/// The measured nanoseconds of one addition of one residue (`benches/counting.rs`, one thread, all in one run).
///
/// Hardly any of it depends on the size: the engines work in blocks that fit the caches.
fn nanoseconds_per_addition(engine: &Engine, lanes: usize) -> f64 {
    let full = match engine {
        Engine::Square(_) => 0.18,
        Engine::FourEightEight(_) => 0.21,
        Engine::Diagonal(_) => 0.55,
        Engine::Frontier(_) => 0.6,
    };
    let narrow = match lanes {
        8 => 1.0,
        4 => 1.5,
        2 => 3.0,
        _ => 5.0,
    };
    let vectors = match level() {
        Level::Avx512 => 1.0,
        Level::Avx2 => 1.5,
        Level::Baseline => 2.5,
    };
    full * narrow * vectors
}
