//! What a count will take, before any of it is done.

use super::count::{IndependentSetMethod, IndependentSets, Quantity};
use super::{Engine, Problem};
use crate::Result;
use crate::counting::evaluation::{self, GRAIN, Options};
use crate::counting::exact::{Modular, Plan};
use crate::counting::graph_sums::integers::INTEGERS;
use crate::counting::transfer::{Transfer, lanes_for};
use crate::monitor::Monitor;
use crate::numeric::dispatch::{Level, level};
use crate::numeric::residue::Modulus;
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
    /// Seconds on this many threads of a machine like the one the rates were measured on, without planning.
    pub seconds: f64,
    /// Seconds that planning took; the count will plan once more, and for a small graph that is most of what it does.
    pub planning: f64,
    /// What may be done to see: so many primes, their bytes, and the forecast of their seconds on one thread.
    pub trial: (usize, u64, f64),
}

/// What residues by some primes will take.
struct Residues {
    lanes: usize,
    bytes: u64,
    additions: f64,
    seconds: f64,
}

/// Forecasts what is asked of independent sets, without starting it.
///
/// # Errors
/// As [`super::count_independent_sets`]; a memory limit that is too small is an error here too.
pub fn estimate_cost(
    problem: &Problem,
    quantity: Quantity,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Cost> {
    let start = Instant::now();
    let plan = Plan::new(IndependentSets::new(problem.clone(), quantity, None, options, monitor)?, monitor)?;
    let planning = start.elapsed().as_secs_f64();
    let (sets, primes) = (plan.quantity(), plan.primes());
    let (engine, states, tried) = match sets.method() {
        IndependentSetMethod::Engine(engine) => {
            (engine.name(), engine.len(), primes.len().min(8_usize.div_ceil(sets.values().max(1))))
        }
        IndependentSetMethod::Reflection(reflection) => ("square reflection", reflection.len(), 1),
        IndependentSetMethod::Integers(tree) => (INTEGERS, tree.states(), 0),
        IndependentSetMethod::Known { .. } => ("branching", 1, 0),
    };
    let all = Residues::new(sets, primes, options)?;
    let alone = Options { threads: 1, ..options.clone() };
    let trial = Residues::new(sets, &primes[..tried], &alone)?;
    Ok(Cost {
        engine,
        states: states as u64,
        lanes: all.lanes as u64,
        bytes: all.bytes,
        primes: if engine == INTEGERS { 1 } else { primes.len() as u64 },
        additions: all.additions,
        seconds: all.seconds,
        planning,
        trial: (tried, trial.bytes, trial.seconds),
    })
}

impl Residues {
    fn new(sets: &IndependentSets, primes: &[Modulus], options: &Options) -> Result<Self> {
        let points = primes.len() * sets.values();
        let engine = match sets.method() {
            IndependentSetMethod::Engine(engine) => engine,
            IndependentSetMethod::Reflection(reflection) => {
                let (bytes, swept, seconds) = reflection.forecast(points, options)?;
                return Ok(Self { lanes: 1, bytes, additions: reflection.additions() * swept as f64, seconds });
            }
            IndependentSetMethod::Integers(tree) => {
                let bytes = u64::try_from(tree.bytes()).unwrap_or(u64::MAX);
                return Ok(Self { lanes: 1, bytes, additions: tree.elements(), seconds: tree.seconds() });
            }
            &IndependentSetMethod::Known { bytes, .. } => {
                return Ok(Self { lanes: 1, bytes, additions: 0.0, seconds: 0.0 });
            }
        };
        let work = evaluation::work(engine) as f64;
        let rate = nanoseconds_per_addition(engine) * 1e-9;
        if let Some(half) = sets.half(engine, primes, options) {
            let lanes = half.all_lanes();
            let seconds = work * half.time * rate / options.threads as f64;
            return Ok(Self { lanes, bytes: half.bytes, additions: work * lanes as f64, seconds });
        }
        let layout = evaluation::layout(engine, points, options)?;
        let (full, rest) = (points / layout.lanes, points % layout.lanes);
        let lanes = if rest == 0 { 0 } else { lanes_for(rest).min(layout.lanes) };
        let full = (full * layout.lanes) as f64 * engine.slower(layout.lanes, layout.lanes);
        let rest = if rest == 0 { 0.0 } else { lanes as f64 * engine.slower(rest, lanes) };
        let time = full * evaluation::narrow(layout.lanes) + rest * evaluation::narrow(lanes);
        let threads = if engine.len() <= GRAIN { layout.concurrent } else { options.threads };
        Ok(Self {
            lanes: layout.lanes,
            bytes: layout.bytes,
            additions: work * (full + rest),
            seconds: work * time * rate / threads as f64,
        })
    }
}

/// The nanoseconds of one addition of one residue on eight lanes, with the vector instructions in use.
fn nanoseconds_per_addition(engine: &Engine) -> f64 {
    let vectors = match level() {
        Level::Avx512 => 1.0,
        Level::Avx2 => 1.5,
        Level::Baseline => 2.5,
    };
    engine.nanoseconds() * vectors
}
