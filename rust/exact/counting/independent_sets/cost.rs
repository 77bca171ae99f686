//! What a count will take, before any of it is done.

use super::count::{IndependentSetMethod, IndependentSets, Quantity};
use super::{Engine, Problem};
use crate::Result;
use crate::counting::evaluation::{self, GRAIN, Options};
use crate::counting::exact::Plan;
use crate::counting::graph_sums::integers::INTEGERS;
use crate::counting::transfer::{Transfer, lanes_for};
use crate::monitor::Monitor;
use crate::numeric::dispatch::{Level, level};
use std::time::Instant;

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
/// As [`super::count_independent_sets`]; a memory limit that is too small is an error here too.
pub fn estimate_cost(problem: &Problem, options: &Options, monitor: &mut dyn Monitor) -> Result<Cost> {
    let start = Instant::now();
    let plan = Plan::new(IndependentSets::new(problem.clone(), Quantity::Count, None, options, monitor)?, monitor)?;
    let primes = plan.primes().len();
    // The count will plan once more, and for a small graph that is most of what it does.
    let planning = start.elapsed().as_secs_f64();
    let engine = match plan.quantity().method() {
        IndependentSetMethod::Engine(engine) => engine,
        IndependentSetMethod::Reflection(reflection) => {
            let (bytes, seconds) = reflection.forecast(primes, options)?;
            return Ok(Cost {
                engine: "square reflection",
                states: reflection.len() as u64,
                lanes: 1,
                bytes,
                primes: primes as u64,
                additions: reflection.additions() * primes as f64,
                seconds: planning + seconds,
            });
        }
        IndependentSetMethod::Integers(tree) => {
            return Ok(Cost {
                engine: INTEGERS,
                states: tree.states() as u64,
                lanes: 1,
                bytes: u64::try_from(tree.bytes()).unwrap_or(u64::MAX),
                primes: 1,
                additions: tree.elements(),
                seconds: planning + tree.seconds(),
            });
        }
        &IndependentSetMethod::Known { bytes, .. } => {
            return Ok(Cost {
                engine: "branching",
                states: 1,
                lanes: 1,
                bytes,
                primes: primes as u64,
                additions: 0.0,
                seconds: planning,
            });
        }
    };
    if let Some(half) = plan.quantity().half(engine, plan.primes(), options) {
        let additions = evaluation::work(engine) as f64;
        return Ok(Cost {
            engine: engine.name(),
            states: engine.len() as u64,
            lanes: half.all_lanes() as u64,
            bytes: half.bytes,
            primes: primes as u64,
            additions: additions * half.all_lanes() as f64,
            seconds: planning
                + additions * half.time * nanoseconds_per_addition(engine, 8) * 1e-9 / options.threads as f64,
        });
    }
    let layout = evaluation::layout(engine, primes, options)?;
    let (full, rest) = (primes / layout.lanes, lanes_for(primes % layout.lanes));
    let rest = if primes.is_multiple_of(layout.lanes) { 0 } else { rest };
    let additions = evaluation::work(engine) as f64 * (full * layout.lanes + rest) as f64;
    let threads = if engine.len() <= GRAIN { layout.concurrent } else { options.threads };
    Ok(Cost {
        engine: engine.name(),
        states: engine.len() as u64,
        lanes: layout.lanes as u64,
        bytes: layout.bytes,
        primes: primes as u64,
        additions,
        seconds: planning + additions * nanoseconds_per_addition(engine, layout.lanes) * 1e-9 / threads as f64,
    })
}

/// The nanoseconds of one addition of one residue on so many lanes, with the vector instructions in use.
fn nanoseconds_per_addition(engine: &Engine, lanes: usize) -> f64 {
    let narrow = evaluation::narrow(lanes);
    let vectors = match level() {
        Level::Avx512 => 1.0,
        Level::Avx2 => 1.5,
        Level::Baseline => 2.5,
    };
    engine.nanoseconds() * narrow * vectors
}
