//! What can be asked about independent sets exactly: their number, their polynomial, `Z` at a rational activity, or at one for each vertex.
//!
//! All are values of `Z` modulo primes, put together by [`exact`]: at 1; at 1, 2, ..., d, interpolated modulo each prime,
//! where no independent set is larger than d; and at `a/b`, where `b^d Z(a/b)` is an integer. With an activity `a_v/b_v` for each vertex
//! the integer is
//!
//!   prod of b_v * Z = sum over independent sets S of prod over S of a_v * prod over the others of b_v.
//!
//! Source: J. von zur Gathen, J. Gerhard (2013), Modern Computer Algebra, 3rd ed., sections 5.2 (interpolation) and 5.4
//! (Chinese remainders).

use super::bound::{STATES, graph_log2, weights_log2};
use super::branching::Branching;
use super::reflection::Reflection;
use super::tree::integers::IndependentIntegers;
use super::{Engine, Problem, log2_bound};
use crate::counting::evaluation::{self, GRAIN, Options, SomeSteps};
use crate::counting::exact::{self, Modular, Plan};
use crate::counting::graph_sums::integers::INTEGERS;
use crate::counting::graph_sums::planner::{Planner, Rival};
use crate::counting::interpolation::interpolate;
use crate::counting::lifting::{self, HalfLayout, Halves};
use crate::counting::transfer::{Point, Transfer};
use crate::graphs::Graph;
use crate::monitor::{Monitor, Progress};
use crate::numeric::double_ring::ScaledDoubleDouble;
use crate::numeric::residue::Modulus;
use crate::{Error, Result, parallel};
use num_bigint::{BigInt, BigUint, Sign};
use std::ops::Range;

/// Bits of an activity, for all moduli, that are reduced on the calling thread.
const SHORT: u64 = 1 << 20;
/// Additions of a bound that is found on the calling thread.
const SHORT_WORK: u64 = 200_000;

/// Additions that a part of a sum over seams has at the least, a third of a second, and the most parts there are.
const PART: u64 = 2_000_000_000;
const MOST_PARTS: u64 = 1024;

/// A question about the independent sets of a problem.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// `Z(1)`, their number.
    Count,
    /// The coefficients of `Z`, up to the bound on the size of a set.
    Polynomial,
    /// `denominator^d Z(numerator / denominator)` with d the bound on the size of a set.
    Activity {
        /// The numerator of the activity.
        numerator: BigInt,
        /// Its denominator, not zero.
        denominator: BigUint,
    },
    /// The sum with weights of each vertex of a graph, out and in.
    Weights(Vec<[BigInt; 2]>),
}

/// How a quantity is found.
#[derive(Debug)]
pub enum IndependentSetMethod {
    /// By a transfer operator, some points side by side.
    Engine(Engine),
    /// On an open square lattice, one prime at a time.
    Reflection(Box<Reflection>),
    /// Over the integers, on a large graph of small treewidth.
    Integers(Box<IndependentIntegers>),
    /// Found already, by branching.
    Known {
        /// The number of independent sets.
        count: BigUint,
        /// Bytes that branching took.
        bytes: u64,
    },
}

/// A quantity of the independent sets of a problem, with the method that computes it.
#[derive(Debug)]
pub struct IndependentSets {
    problem: Problem,
    quantity: Quantity,
    method: IndependentSetMethod,
    /// A size no independent set exceeds.
    largest: usize,
    bits: f64,
    /// What is known of the vector in the middle.
    halves: Option<Halves>,
}

impl IndependentSets {
    /// Plans the engine and proves the bound, unless `bits` says it already.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if memory does not suffice; [`Error::Shape`] unless each vertex has its weights; [`Error::Domain`] for
    /// sizes that make no lattice, an order that is not one of the vertices or a zero denominator; the monitor's error when it
    /// stops the work.
    pub fn new(
        mut problem: Problem,
        quantity: Quantity,
        bits: Option<f64>,
        options: &Options,
        monitor: &mut dyn Monitor,
    ) -> Result<Self> {
        if matches!(&quantity, Quantity::Activity { denominator, .. } if *denominator == BigUint::ZERO) {
            return Err(Error::domain("activity", "a zero denominator", "a number"));
        }
        if let Quantity::Weights(weights) = &quantity
            && (weights.len() != problem.vertices() || matches!(problem, Problem::Lattice { .. }))
        {
            return Err(Error::shape("weights", format!("{} on a graph", problem.vertices()), weights.len()));
        }
        let method = IndependentSetMethod::new(&problem, &quantity, options, monitor)?;
        let largest = match &method {
            IndependentSetMethod::Engine(Engine::Frontier(frontier)) => frontier.independence_bound(),
            IndependentSetMethod::Engine(Engine::Tree(tree)) => tree.independence_bound(),
            _ => problem.largest_set_bound().unwrap_or_else(|| problem.vertices()),
        };
        let bits = match bits {
            Some(bits) => bits,
            None => quantity.bits(&problem, &method, largest, options, monitor)?,
        };
        if let (Problem::Graph { order, .. }, IndependentSetMethod::Engine(Engine::Frontier(frontier))) =
            (&mut problem, &method)
        {
            *order = Some(frontier.planned_order().to_vec());
        }
        let halves = match (&problem, &method) {
            (Problem::Lattice { .. }, IndependentSetMethod::Engine(engine)) if quantity == Quantity::Count => {
                halves(&problem, engine, options, monitor)?
            }
            _ => None,
        };
        Ok(Self { problem, quantity, method, largest, bits, halves })
    }

    /// The problem, a graph with the order it was planned with: planned again, it is the same engine without a search.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// What is asked.
    pub fn quantity(&self) -> &Quantity {
        &self.quantity
    }

    /// How it is found.
    pub fn method(&self) -> &IndependentSetMethod {
        &self.method
    }

    /// How half of the primes are laid out, where that is faster.
    pub fn half(&self, engine: &Engine, moduli: &[Modulus], options: &Options) -> Option<HalfLayout> {
        let halves = self.halves.as_ref()?;
        HalfLayout::new(engine, halves, moduli, engine.nanoseconds(), options)
    }

    /// The activities of one modulus.
    fn activities(&self, modulus: Modulus) -> Range<u64> {
        match &self.quantity {
            Quantity::Count | Quantity::Weights(_) => 1..2,
            Quantity::Polynomial => 1..self.largest as u64 + 1,
            Quantity::Activity { numerator, denominator } => {
                let inverse = modulus.inverse(modulus.residue_of(denominator));
                let activity = modulus.residue(modulus.mul(modulus.residue_of_signed(numerator), inverse));
                activity..activity + 1
            }
        }
    }

    /// The points of one modulus.
    fn points(&self, modulus: Modulus) -> impl Iterator<Item = Point> + use<> {
        self.activities(modulus).map(move |activity| Point::new(modulus, activity))
    }

    /// The values by a transfer operator.
    fn evaluated(
        &self,
        engine: &impl Transfer,
        moduli: &[Modulus],
        options: &Options,
        monitor: &mut dyn Monitor,
    ) -> Result<Vec<u64>> {
        let digits = match &self.quantity {
            Quantity::Activity { numerator, denominator } => numerator.bits() + denominator.bits(),
            _ => 0,
        };
        let points: Vec<Point> = if digits.saturating_mul(moduli.len() as u64) <= SHORT {
            moduli.iter().flat_map(|&modulus| self.points(modulus)).collect()
        } else {
            let point =
                |&modulus: &Modulus, progress: &Progress| progress.check().map(|()| self.points(modulus).next());
            let found = parallel::run(options.threads, 0, monitor, |progress| {
                parallel::try_map(moduli.len(), |i| point(&moduli[i], progress))
            })?;
            found.into_iter().flatten().collect()
        };
        let job = options.checkpoint.as_ref().map_or(0, |_| exact::job(self, moduli));
        evaluation::residues(engine, job, &points, options, monitor)
    }
}

impl IndependentSetMethod {
    /// The method for a quantity; a count on a graph is looked for by branching as long as its engine is planned and would work.
    fn new(problem: &Problem, quantity: &Quantity, options: &Options, monitor: &mut dyn Monitor) -> Result<Self> {
        let values = if matches!(quantity, Quantity::Polynomial) { problem.vertices() } else { 1 };
        let engine = |monitor: &mut dyn Monitor| {
            let mut engine = planned(problem, 1, values, options, monitor)?;
            if *quantity == Quantity::Count {
                stoppable(problem, monitor, |progress| engine.for_counts(progress))?;
            }
            Ok(Self::Engine(engine))
        };
        if let Some(reflection) = Reflection::for_problem(problem, quantity.activity_bits(), &Progress::default())? {
            // Besides its vector it needs tiles: of narrow lattices whole rows may fit where these do not.
            return match reflection.forecast(1, options) {
                Ok(_) => Ok(Self::Reflection(Box::new(reflection))),
                Err(Error::TooLarge { what, needed, limit }) if u128::from(reflection.row_bytes()) > limit => {
                    Err(Error::TooLarge { what, needed: needed.min(reflection.row_bytes().into()), limit })
                }
                Err(_) => engine(monitor),
            };
        }
        match (problem, quantity) {
            (Problem::Graph { graph, order: None }, Quantity::Count) => {
                let states = max_states(1, options);
                let plan = |progress: &Progress| match Self::by_integers(graph, options, progress)? {
                    Some(integers) => Ok(integers),
                    None => Self::for_count(problem, graph, states, options.threads, progress),
                };
                stoppable(problem, monitor, plan).map_err(|error| error.under(states, 1, options.memory_limit))
            }
            (Problem::Graph { graph, order }, Quantity::Weights(weights)) => {
                let (states, residues) = (max_states(1, options), weights_log2(weights) / 55.0 + 2.0);
                let engine = stoppable(problem, monitor, |progress| {
                    let planner = Planner::new(progress).for_residues(residues);
                    Engine::for_graph(graph, order.as_deref(), Some(weights), states, &planner)
                });
                engine.map(Self::Engine).map_err(|error| error.under(states, 1, options.memory_limit))
            }
            _ => engine(monitor),
        }
    }

    /// The method over the integers where it takes less time than one modulo primes; not with a checkpoint, which keeps residues.
    fn by_integers(graph: &Graph, options: &Options, progress: &Progress) -> Result<Option<Self>> {
        let limit = u128::from(options.memory_limit);
        if options.checkpoint.is_some()
            || !IndependentIntegers::is_for(graph)
            || IndependentIntegers::planning_bytes(graph) > limit
        {
            return Ok(None);
        }
        let found = IndependentIntegers::plan(graph, &Planner::new(progress))?;
        let is_better = |tree: &IndependentIntegers| tree.bytes() <= limit && tree.is_better(options.threads);
        Ok(found.filter(is_better).map(|tree| Self::Integers(Box::new(tree))))
    }

    pub(super) fn for_count(
        problem: &Problem,
        graph: &Graph,
        states: usize,
        threads: usize,
        progress: &Progress,
    ) -> Result<Self> {
        let bytes = states.saturating_mul(8);
        let mut branching = Branching::new(graph, bytes);
        let rival = branching.as_mut().map(|branching| branching as &mut dyn Rival);
        let planner = planner(problem, 1, progress).beside(rival, graph);
        let engine = if planner.is_beaten() { None } else { Some(Engine::new(problem, states, &planner)) };
        if let Some(Ok(engine)) = &engine {
            planner.make_seconds(engine.graph_seconds() / threads as f64);
        }
        progress.check()?;
        if planner.is_beaten()
            && let Some(branching) = branching
            && let Some(count) = branching.found()?
        {
            return Ok(Self::Known { count, bytes: branching.bytes() });
        }
        engine.unwrap_or(Err(Error::Interrupted)).map(Self::Engine)
    }
}

impl Quantity {
    /// Bits that an activity adds to each vertex of what is sought; none where there is no activity but 1.
    fn activity_bits(&self) -> Option<u64> {
        match self {
            Self::Count | Self::Weights(_) => None,
            Self::Polynomial => Some(0),
            Self::Activity { numerator, denominator } => Some(numerator.bits() + denominator.bits()),
        }
    }

    /// The bound on the integers sought.
    fn bits(
        &self,
        problem: &Problem,
        method: &IndependentSetMethod,
        largest: usize,
        options: &Options,
        monitor: &mut dyn Monitor,
    ) -> Result<f64> {
        if let IndependentSetMethod::Known { count, .. } = method {
            return Ok(count.bits() as f64);
        }
        if let IndependentSetMethod::Integers(_) = method {
            return Ok(problem.vertices() as f64); // primes are for an executor alone
        }
        if let Quantity::Weights(weights) = self {
            return Ok(weights_log2(weights));
        }
        let Quantity::Activity { numerator, denominator } = self else {
            // Every coefficient is at most their sum, the count.
            return bound(problem, 1.0, method, options, monitor);
        };
        let bits = match upper_quotient(numerator.magnitude(), denominator) {
            Some(activity) => bound(problem, activity, method, options, monitor)?,
            None => (problem.vertices() as u64 * (numerator.bits() + 1)) as f64,
        };
        Ok(bits + largest as f64 * denominator.bits() as f64)
    }
}

impl Modular for IndependentSets {
    fn description(&self) -> Vec<u64> {
        let mut words = self.problem.description();
        words.extend(match &self.method {
            IndependentSetMethod::Engine(engine) => [engine.len() as u64, engine.steps()],
            IndependentSetMethod::Reflection(reflection) => [reflection.len() as u64, 0],
            IndependentSetMethod::Integers(_) | IndependentSetMethod::Known { .. } => [0, 0],
        });
        match &self.quantity {
            Quantity::Count => words.push(0),
            Quantity::Polynomial => words.push(1),
            Quantity::Activity { numerator, denominator } => {
                words.extend([2, u64::from(numerator.sign() == Sign::Minus), numerator.bits()]);
                words.extend(numerator.iter_u64_digits().chain(denominator.iter_u64_digits()));
            }
            Quantity::Weights(weights) => {
                words.push(3);
                for weight in weights.iter().flatten() {
                    words.extend([u64::from(weight.sign() == Sign::Minus), weight.bits()]);
                    words.extend(weight.iter_u64_digits());
                }
            }
        }
        words
    }

    fn bits(&self) -> f64 {
        self.bits
    }

    fn method(&self) -> (&'static str, u128, f64) {
        match &self.method {
            IndependentSetMethod::Integers(tree) => (INTEGERS, tree.bytes(), tree.seconds() * 1e9),
            _ => ("", 0, 0.0),
        }
    }

    fn found(&self, options: &Options, monitor: &mut dyn Monitor) -> Result<Option<Vec<BigInt>>> {
        let IndependentSetMethod::Integers(tree) = &self.method else { return Ok(None) };
        let value = parallel::run(options.threads, tree.steps(), monitor, |progress| tree.value(progress))?;
        Ok(Some(vec![value.into()]))
    }

    fn is_short(&self) -> bool {
        matches!(self.method, IndependentSetMethod::Reflection(_))
    }

    fn is_signed(&self) -> bool {
        match &self.quantity {
            Quantity::Count | Quantity::Polynomial => false,
            Quantity::Activity { numerator, .. } => numerator.sign() == Sign::Minus,
            Quantity::Weights(weights) => weights.iter().flatten().any(|weight| weight.sign() == Sign::Minus),
        }
    }

    fn allows(&self, prime: Modulus) -> bool {
        !matches!(&self.quantity, Quantity::Activity { denominator, .. } if prime.residue_of(denominator) == 0)
    }

    fn values(&self) -> usize {
        if self.quantity == Quantity::Polynomial { self.largest } else { 1 }
    }

    fn side_by_side(&self) -> usize {
        match &self.method {
            IndependentSetMethod::Reflection(reflection) => exact::worth(reflection.additions()),
            IndependentSetMethod::Engine(engine) => {
                let points = self.values();
                exact::LANES.div_ceil(points).max(exact::worth(evaluation::work(engine) as f64 * points as f64))
            }
            _ => exact::LANES,
        }
    }

    /// Those of an engine whose steps are a sum, a part of the seams of a torus each.
    fn parts(&self) -> usize {
        match &self.method {
            IndependentSetMethod::Engine(engine) if engine.adds_up() && self.values() == 1 => {
                let most = engine.steps().min(MOST_PARTS);
                let worth = evaluation::work(engine).saturating_mul(exact::LANES as u64) / PART;
                worth.min(most).max(1) as usize
            }
            _ => 1,
        }
    }

    fn part_residues(
        &self,
        part: usize,
        moduli: &[Modulus],
        options: &Options,
        monitor: &mut dyn Monitor,
    ) -> Result<Vec<u64>> {
        match (&self.method, self.parts()) {
            (IndependentSetMethod::Engine(engine), parts) if parts > 1 => {
                self.evaluated(&SomeSteps::new(engine, part, parts), moduli, options, monitor)
            }
            _ => self.residues(moduli, options, monitor),
        }
    }

    fn residues(&self, moduli: &[Modulus], options: &Options, monitor: &mut dyn Monitor) -> Result<Vec<u64>> {
        let engine = match &self.method {
            IndependentSetMethod::Engine(engine) => engine,
            IndependentSetMethod::Reflection(reflection) => {
                let activity = |modulus, k| self.activities(modulus).start + k as u64;
                return reflection.residues(self, activity, moduli, options, monitor);
            }
            IndependentSetMethod::Integers(_) => {
                let count = self
                    .found(options, monitor)?
                    .map_or_else(BigUint::default, |mut all| all.swap_remove(0).into_parts().1);
                return Ok(moduli.iter().map(|modulus| modulus.residue_of(&count)).collect());
            }
            IndependentSetMethod::Known { count, .. } => {
                return Ok(moduli.iter().map(|modulus| modulus.residue_of(count)).collect());
            }
        };
        if let (Some(halves), Some(half)) = (&self.halves, self.half(engine, moduli, options)) {
            return lifting::residues(engine, halves, &half, moduli, options, monitor);
        }
        self.evaluated(engine, moduli, options, monitor)
    }

    fn integers(&self, prime: Modulus, values: &[u64]) -> Vec<u64> {
        match &self.quantity {
            Quantity::Count | Quantity::Weights(_) => values.to_vec(),
            Quantity::Polynomial => {
                let points: Vec<u64> = (0..=values.len() as u64).collect();
                interpolate(prime, &points, &[&[1][..], values].concat())
            }
            Quantity::Activity { denominator, .. } => {
                let power = prime.pow(prime.residue_of(denominator), self.largest as u64);
                values.iter().map(|&value| prime.residue(prime.mul(power, value))).collect()
            }
        }
    }

    fn denominator(&self) -> (BigUint, u64) {
        match &self.quantity {
            Quantity::Activity { denominator, .. } => (denominator.clone(), self.largest as u64),
            _ => (BigUint::from(1u32), 0),
        }
    }

    fn trim(&self, integers: &mut Vec<BigInt>) {
        if self.quantity == Quantity::Polynomial {
            let size = integers.iter().rposition(|c| *c != BigInt::ZERO).map_or(0, |last| last + 1);
            integers.truncate(size);
        }
    }
}

/// The number of independent sets, the empty one included.
///
/// # Errors
/// [`Error::TooLarge`] before any work if memory does not suffice; [`Error::File`] for a checkpoint that cannot be used;
/// [`Error::Check`] if the spare prime disagrees; the monitor's error when it stops the work.
pub fn count_independent_sets(problem: &Problem, options: &Options, monitor: &mut dyn Monitor) -> Result<BigUint> {
    let plan = Plan::new(IndependentSets::new(problem.clone(), Quantity::Count, None, options, monitor)?, monitor)?;
    Ok(plan.solve(options, monitor)?.swap_remove(0).into_parts().1)
}

/// The numbers of independent sets of 0, 1, 2, ... vertices, up to the largest there are.
///
/// # Errors
/// As [`count_independent_sets`].
pub fn independence_polynomial(
    problem: &Problem,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Vec<BigUint>> {
    let plan =
        Plan::new(IndependentSets::new(problem.clone(), Quantity::Polynomial, None, options, monitor)?, monitor)?;
    Ok(plan.solve(options, monitor)?.into_iter().map(|c| c.into_parts().1).collect())
}

/// Residues of `Z(activity)` at the given points.
///
/// # Errors
/// As [`count_independent_sets`].
pub fn residues(problem: &Problem, points: &[Point], options: &Options, monitor: &mut dyn Monitor) -> Result<Vec<u64>> {
    let engine = planned(problem, 1, 1, options, monitor)?;
    evaluation::residues(&engine, 0, points, options, monitor)
}

/// States a vector of one lane may have where so many share the memory limit.
fn max_states(vectors: u64, options: &Options) -> usize {
    usize::try_from(options.memory_limit / (8 * vectors)).unwrap_or(usize::MAX)
}

/// The engine for a problem, planned on the pool if that takes long: there it can be stopped. So many of its vectors of one
/// lane share the memory limit, and it will be asked for `values` values modulo each prime.
///
/// # Errors
/// As [`Engine::new`], with the limit of the options.
pub(super) fn planned(
    problem: &Problem,
    vectors: u64,
    values: usize,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Engine> {
    let states = max_states(vectors, options);
    stoppable(problem, monitor, |progress| Engine::new(problem, states, &planner(problem, values, progress)))
        .map_err(|error| error.under(states, vectors, options.memory_limit))
}

/// A planner for `values` values modulo each prime. There are about as many bits as vertices.
fn planner<'w>(problem: &Problem, values: usize, progress: &'w Progress) -> Planner<'w> {
    Planner::new(progress).for_residues((problem.vertices() as f64 / 55.0 + 2.0) * values as f64)
}

/// Plans on the pool, where it can be stopped, unless that is short.
fn stoppable<T: Send>(
    problem: &Problem,
    monitor: &mut dyn Monitor,
    plan: impl FnOnce(&Progress) -> Result<T> + Send,
) -> Result<T> {
    let is_short = match *problem {
        Problem::Lattice { rows, cols, .. } => rows.min(cols) <= 16,
        Problem::Graph { ref graph, .. } => graph.vertices() + graph.edges().len() <= 64,
    };
    parallel::run_one(is_short, monitor, plan)
}

/// The bound on `log2 Z`, found on the pool if finding it takes large vectors.
fn bound(
    problem: &Problem,
    activity: f64,
    method: &IndependentSetMethod,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<f64> {
    // The engine itself says it, unless it is so large that pieces of the graph are less work.
    if let IndependentSetMethod::Engine(engine) = method
        && (matches!(engine, Engine::Tree(_)) || matches!(engine, Engine::Frontier(_)) && engine.len() <= STATES)
        && (size_of::<ScaledDoubleDouble>() * engine.len()) as u128 <= u128::from(options.memory_limit)
    {
        let find = |progress: &Progress| graph_log2(engine, problem, activity, progress);
        return match evaluation::work(engine) <= SHORT_WORK {
            true => parallel::run_here(0, find),
            false => parallel::run(options.threads, 0, monitor, find),
        };
    }
    let is_short = matches!(method, IndependentSetMethod::Engine(engine) if engine.len() <= GRAIN);
    if is_short && problem.vertices() <= GRAIN && matches!(problem, Problem::Lattice { .. }) {
        return log2_bound(problem, activity, &Progress::default());
    }
    parallel::run(options.threads, 0, monitor, |progress| log2_bound(problem, activity, progress))
}

/// What is known of the vector in the middle of a large lattice with open rows.
fn halves(problem: &Problem, engine: &Engine, options: &Options, monitor: &mut dyn Monitor) -> Result<Option<Halves>> {
    let &Problem::Lattice { kind, rows, cols, boundary } = problem else { return Ok(None) };
    let Some(parts) = engine.halves().filter(|_| engine.len() > 8 * GRAIN) else { return Ok(None) };
    let (rows, cols) = kind.half(rows, cols, boundary);
    let half = Problem::Lattice { kind, rows, cols, boundary };
    let bits = parallel::run(options.threads, 0, monitor, |progress| log2_bound(&half, 1.0, progress))?;
    Ok(Some(Halves { parts, bits }))
}

/// A double no smaller than the quotient; `None` beyond the range of doubles.
fn upper_quotient(numerator: &BigUint, denominator: &BigUint) -> Option<f64> {
    let quotient = (numerator << 64u32) / denominator + 1u32;
    let bits = quotient.bits();
    if bits > 1000 {
        return None;
    }
    let shift = bits.saturating_sub(60);
    let leading = ((&quotient >> shift) + 1u32).iter_u64_digits().next().unwrap_or(0);
    Some(leading as f64 * (1.0 + f64::EPSILON) * 2f64.powi(shift as i32 - 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::independent_sets::tree::Tree;
    use crate::monitor::Silent;
    use crate::numeric::residue::primes;
    use proptest::prelude::*;

    /// The sum over all subsets.
    fn brute(graph: &Graph, weights: &[[BigInt; 2]]) -> BigInt {
        let n = graph.vertices();
        let independent = |set: u32| graph.edges().iter().all(|&(u, v)| set >> u & set >> v & 1 == 0);
        let weight = |set: u32| (0..n).map(|v| &weights[v][(set >> v & 1) as usize]).product::<BigInt>();
        (0..1u32 << n).filter(|&set| independent(set)).map(weight).sum()
    }

    proptest! {
        #[test]
        fn the_sum_is_that_over_all_subsets(
            n in 1u32..8,
            pairs in prop::collection::vec((0u32..8, 0u32..8), 0..14),
            values in prop::collection::vec((1i64..5, -7i64..8), 8),
            reversed: bool,
        ) {
            let graph = Graph::new(n as usize, pairs.into_iter().map(|(u, v)| (u % n, v % n)).collect()).unwrap();
            let weights: Vec<[BigInt; 2]> = values[..n as usize].iter().map(|&(b, a)| [b.into(), a.into()]).collect();
            let order: Vec<u32> = (0..n).rev().collect();
            let problem = Problem::Graph { graph: graph.clone(), order: reversed.then_some(order) };
            let expected = brute(&graph, &weights);
            // With memory for eight states a frontier cuts vertices out.
            for memory_limit in [u64::MAX, 64] {
                let (options, asked) = (Options { memory_limit, ..Options::default() }, Quantity::Weights(weights.clone()));
                let sets = IndependentSets::new(problem.clone(), asked, None, &options, &mut Silent).unwrap();
                let found = Plan::new(sets, &mut Silent).unwrap().solve(&Options::default(), &mut Silent).unwrap();
                prop_assert_eq!(&found[0], &expected);
            }
            let tree = Tree::plan(&graph, Some(&weights), 1 << 20, &Planner::new(&Progress::default())).unwrap().unwrap();
            let moduli = primes(1).unwrap();
            let found = evaluation::residues(&tree, 0, &[Point::new(moduli[0], 1)], &Options::default(), &mut Silent).unwrap();
            prop_assert_eq!(found[0], moduli[0].residue_of_signed(&expected));
        }
    }

    #[test]
    fn bad_weights_and_wide_graphs_are_refused() {
        let wide = crate::graphs::torus(&[3, 3, 3, 3]).unwrap();
        let problem = Problem::Graph { graph: wide, order: None };
        for (vertices, memory_limit) in [(1, u64::MAX), (81, 1 << 8)] {
            let (options, weights) =
                (Options { memory_limit, ..Options::default() }, vec![[1.into(), 2.into()]; vertices]);
            let asked = Quantity::Weights(weights);
            assert!(IndependentSets::new(problem.clone(), asked, None, &options, &mut Silent).is_err());
        }
    }
}
