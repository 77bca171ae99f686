//! Independent sets of any graph, by a frontier that moves along an order of its vertices.
//!
//! Vertices come one after another; the *frontier* is those that came and still have neighbors to come. The table holds,
//! for each subset of the frontier that can be the occupied part, the sum of `z^size` over the independent sets of what
//! came that look like it there: a path decomposition, one element for each state of a bag. Before, vertices of degree two
//! or less are summed out ([`reduce`]); the order is chosen in [`order`]; the table is [`packed`], one element for every
//! subset, or [`listed`], one for every independent subset, whichever is cheaper. If it exceeds the memory allowed, some
//! vertices are *cut* out: the partition function is the sum over their occupations,
//!
//!   `Z(G) = sum over independent S in the cut of z^|S| Z(G - cut - N(S))`,
//!
//! each run with the same plan, where the activity of the vertices in `N(S)` is zero.

mod block;
mod bound;
mod cut;
mod family;
pub mod formula;
pub mod listed;
pub mod order;
pub mod packed;
pub mod reduce;
mod sums;
pub mod timeline;

pub use bound::independence;

use self::formula::{Formulas, Program, Value, read};
use self::listed::{Forecast, Listed};
use self::order::States;
use self::packed::Packed;
use self::reduce::Kernel;
use self::timeline::Timeline;
use crate::counting::transfer::{Transfer, Weight};
use crate::graphs::Graph;
use crate::monitor::Watch;
use crate::numeric::ring::Ring;
use crate::{Error, Result};

/// Instructions for weights done in one step.
const INSTRUCTIONS: usize = 1 << 12;
/// Most vertices in a cut.
const MOST_CUT: usize = 20;

/// The engine for one graph.
#[derive(Debug)]
pub struct Frontier {
    order: Vec<u32>,
    /// The order before any vertex was cut out: planned from it, the engine is the same.
    planned: Vec<u32>,
    width: usize,
    independence_bound: usize,
    /// The occupied vertices of the cut, a mask for each run.
    branches: Vec<u32>,
    program: Program,
    /// What the vertices summed out contribute.
    factor: Value,
    table: Table,
    roundings: u64,
}

#[derive(Debug)]
enum Table {
    Packed(Packed),
    Listed(Listed),
}

/// Evaluates an expression for whichever table it is.
macro_rules! with_table {
    ($table:expr, $name:ident => $body:expr) => {
        match $table {
            Table::Packed($name) => $body,
            Table::Listed($name) => $body,
        }
    };
}

impl Frontier {
    /// Plans the count for a graph, whose vertices come in the order given or in one that is searched for.
    ///
    /// The table has at most `max_states` elements; a graph that needs more is cut.
    ///
    /// # Errors
    /// [`Error::Domain`] if the order is not one of the vertices; [`Error::TooLarge`] if the cut would need more than a
    /// million runs.
    pub fn plan(graph: &Graph, order: Option<&[u32]>, max_states: usize) -> Result<Self> {
        let neighbors = graph.neighbors();
        let mut ranks = order.map(|order| ranks(order, graph.vertices())).transpose()?;
        let mut planned = order.unwrap_or_default().to_vec();
        let mut cut: Vec<u32> = Vec::new();
        loop {
            let mut formulas = Formulas::default();
            let kernel = Kernel::new(graph, &neighbors, &cut, &mut formulas);
            let links = kernel.neighbors();
            let mut sequences = Vec::new();
            match &ranks {
                Some(ranks) => {
                    sequences.push(order::by_rank(&links, |v| ranks[kernel.labels[v as usize] as usize]));
                }
                None => {
                    let (cost, sequence) = order::search(&links, States::Subsets);
                    sequences.push(sequence);
                    if cost > WORTHWHILE {
                        sequences.push(order::search(&links, States::Independent).1);
                    }
                }
            }
            let timelines = sequences.into_iter().map(|sequence| Timeline::new(&kernel, sequence));
            let choices = timelines.map(|timeline| (Choice::new(&timeline, max_states), timeline));
            let Some((choice, timeline)) = choices.min_by(|(a, _), (b, _)| a.cost.total_cmp(&b.cost)) else {
                unreachable!("there is at least one order");
            };
            match choice.table(&timeline, &mut formulas, max_states) {
                Some(table) => {
                    let mut engine = Self::finish(&neighbors, graph, &timeline, &cut, table, formulas)?;
                    if !cut.is_empty() {
                        engine.planned = planned;
                    }
                    return Ok(engine);
                }
                None => {
                    let most = max_states.max(1).ilog2() as usize;
                    let more = cut::heaviest(&timeline, most);
                    let label = |&v: &u32| kernel.labels[v as usize];
                    cut.extend(more.iter().map(label));
                    if cut.len() > MOST_CUT {
                        let widest = timeline.widths().into_iter().max().unwrap_or(0);
                        return Err(Error::TooLarge {
                            what: "the table of independent sets",
                            needed: 8u128.checked_shl(widest as u32).unwrap_or(u128::MAX),
                            limit: 8 * max_states as u128,
                        });
                    }
                    if ranks.is_none() {
                        planned = sequence_of(&timeline);
                        ranks = Some(self::ranks(&planned, graph.vertices())?);
                    }
                }
            }
        }
    }

    fn finish(
        neighbors: &[Vec<u32>],
        graph: &Graph,
        timeline: &Timeline,
        cut: &[u32],
        mut table: Table,
        formulas: Formulas,
    ) -> Result<Self> {
        let kernel = timeline.kernel;
        let branches = cut::assignments(neighbors, cut);
        let mut factor = kernel.factor;
        let roundings = [formulas.roundings(factor), cut.len() as u64, branches.len() as u64];
        let roundings = roundings.into_iter().fold(with_table!(&table, t => t.roundings), u64::saturating_add);
        let weights = with_table!(&mut table, t => &mut t.weights);
        let program = formulas.compile(weights.iter_mut().chain([&mut factor]));
        let order = sequence_of(timeline);
        Ok(Self {
            planned: order.clone(),
            order,
            width: timeline.widths().into_iter().max().unwrap_or(0),
            independence_bound: bound::independence(graph, neighbors),
            branches,
            program,
            factor,
            table,
            roundings,
        })
    }

    /// The vertices in the order they are dealt with: first those summed out or cut, then as they come to the frontier.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// An order from which the same engine is planned without a search.
    pub fn planned_order(&self) -> &[u32] {
        &self.planned
    }

    /// Vertices in the largest frontier.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Elements of the table where it is largest. The memory is [`Transfer::len`].
    pub fn states(&self) -> usize {
        with_table!(&self.table, table => table.states())
    }

    /// Runs, one for each occupation of the cut.
    pub fn branches(&self) -> usize {
        self.branches.len()
    }

    /// A number no independent set has more vertices than.
    pub fn independence_bound(&self) -> usize {
        self.independence_bound
    }

    /// Steps that compute weights, at least one.
    fn preparations(&self) -> u64 {
        self.program.length().div_ceil(INSTRUCTIONS).max(1) as u64
    }

    fn table_steps(&self) -> u64 {
        with_table!(&self.table, table => table.steps() as u64)
    }

    /// The run a step belongs to and its number there.
    fn position(&self, step: u64) -> (u32, u64) {
        let steps = self.preparations() + self.table_steps() + 1;
        (self.branches[(step / steps) as usize], step % steps)
    }

    fn instructions(&self, step: u64) -> std::ops::Range<usize> {
        let start = step as usize * INSTRUCTIONS;
        start..self.program.length().min(start + INSTRUCTIONS)
    }
}

/// The memory is the sum over the runs done, the registers of the weights, and the table.
impl Transfer for Frontier {
    fn len(&self) -> usize {
        1 + self.program.registers() + with_table!(&self.table, table => table.memory())
    }

    fn steps(&self) -> u64 {
        self.branches.len() as u64 * (self.preparations() + self.table_steps() + 1)
    }

    fn work(&self, step: u64) -> u64 {
        let (_, step) = self.position(step);
        let preparations = self.preparations();
        if step < preparations {
            self.instructions(step).len() as u64
        } else if step < preparations + self.table_steps() {
            with_table!(&self.table, table => table.work((step - preparations) as usize))
        } else {
            1
        }
    }

    fn roundings(&self) -> u64 {
        self.roundings
    }

    fn start<R: Ring>(&self, weight: &Weight<R>, state: &mut [R::Element]) {
        state[0] = weight.ring.zero();
    }

    fn step<R: Ring>(&self, weight: &Weight<R>, step: u64, state: &mut [R::Element], watch: &Watch) -> Result<()> {
        let ring = weight.ring;
        let (branch, step) = self.position(step);
        let preparations = self.preparations();
        let (total, rest) = state.split_at_mut(1);
        let (registers, table) = rest.split_at_mut(self.program.registers());
        if step < preparations {
            if step == 0 {
                table[0] = ring.one();
            }
            let instructions = self.instructions(step);
            let units = instructions.len() as u64;
            self.program.run(instructions, weight, branch, registers);
            watch.advance(units)
        } else if step < preparations + self.table_steps() {
            let step = (step - preparations) as usize;
            with_table!(&self.table, t => t.step(weight, step, registers, table, watch))
        } else {
            let place = match &self.table {
                Table::Packed(_) => 0,
                Table::Listed(listed) => listed.place(listed.steps()).start,
            };
            let mut result = ring.mul(table[place], read(ring, self.factor, registers));
            for _ in 0..branch.count_ones() {
                result = ring.mul(result, weight.activity);
            }
            total[0] = ring.fold(ring.add(total[0], result));
            watch.advance(1)
        }
    }

    fn finish<R: Ring>(&self, _: &Weight<R>, state: &[R::Element]) -> R::Element {
        state[0]
    }
}

/// The cheaper table for an order.
struct Choice {
    /// Its time, in additions of a full table; more than any other if it does not fit.
    cost: f64,
    /// Its sizes, if it is a short one.
    listed: Option<Forecast>,
}

impl Choice {
    fn new(timeline: &Timeline, most: usize) -> Self {
        let (bits, work) = Packed::forecast(timeline);
        let packed = if most.max(1).ilog2() >= bits { work } else { work * TOO_LARGE };
        let effort = work.min(1e8) as u64 / 16 + 64 * timeline.order.len() as u64;
        let listed = Forecast::new(timeline, most as u64, effort).filter(|forecast| forecast.states() <= most as u64);
        match listed.map(|forecast| (LISTED * forecast.work(), forecast)) {
            Some((cost, forecast)) if cost < packed => Self { cost, listed: Some(forecast) },
            _ => Self { cost: packed, listed: None },
        }
    }

    fn table(self, timeline: &Timeline, formulas: &mut Formulas, most: usize) -> Option<Table> {
        match self.listed {
            Some(forecast) => Some(Table::Listed(Listed::new(timeline, &forecast, formulas, listed::BLOCK))),
            None => Packed::new(timeline, formulas, packed::TILE, most.max(1).ilog2()).map(Table::Packed),
        }
    }
}

/// A cost that is worth another search.
const WORTHWHILE: f64 = 1e4;
/// The time of an element of a short table, in those of a full one.
const LISTED: f64 = 2.5;
/// How many times longer a table takes that has to be cut.
const TOO_LARGE: f64 = 1e6;

/// The vertices summed out, then the others as they come.
fn sequence_of(timeline: &Timeline) -> Vec<u32> {
    let kernel = timeline.kernel;
    let labels = timeline.order.iter().map(|&v| kernel.labels[v as usize]);
    kernel.eliminated.iter().copied().chain(labels).collect()
}

/// The place of each vertex in an order.
fn ranks(order: &[u32], vertices: usize) -> Result<Vec<u32>> {
    let refuse = |value: String| Error::Domain { name: "order", value, requirement: "each vertex of the graph once" };
    if order.len() != vertices {
        return Err(refuse(format!("{} vertices", order.len())));
    }
    let mut ranks = vec![u32::MAX; vertices];
    for (rank, &v) in (0..).zip(order) {
        match ranks.get_mut(v as usize) {
            Some(place) if *place == u32::MAX => *place = rank,
            _ => return Err(refuse(format!("vertex {v} at place {rank}"))),
        }
    }
    Ok(ranks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::independent_sets::brute;
    use crate::counting::transfer::{Point, evaluate, evaluate_lanes};
    use crate::numeric::residue::primes;
    use crate::numeric::ring::Real;
    use proptest::prelude::*;

    /// An engine with a table made as a test wants it.
    fn engine(graph: &Graph, seed: u64, table: impl Fn(&Timeline, &mut Formulas) -> Table) -> Frontier {
        let neighbors = graph.neighbors();
        let mut formulas = Formulas::default();
        let kernel = Kernel::new(graph, &neighbors, &[], &mut formulas);
        let rank = |v: u32| (u64::from(v) + 1).wrapping_mul(seed | 1) as u32;
        let timeline = Timeline::new(&kernel, order::by_rank(&kernel.neighbors(), rank));
        let table = table(&timeline, &mut formulas);
        Frontier::finish(&neighbors, graph, &timeline, &[], table, formulas).unwrap()
    }

    fn sparse_graph() -> impl Strategy<Value = Graph> {
        (4usize..=20).prop_flat_map(|n| {
            let edge = (0..n as u32, 0..n as u32).prop_filter("a loop", |(u, v)| u != v);
            prop::collection::vec(edge, n..=3 * n).prop_map(move |edges| Graph::new(n, edges).unwrap())
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

        #[test]
        fn tables_in_the_smallest_parts_agree_with_brute_force(graph in sparse_graph(), seed: u64, tile in 3u32..6, block in 1u32..8) {
            let coefficients = brute::polynomial(&graph).unwrap();
            let modulus = primes(1).unwrap()[0];
            let points = [1, 0, 2, modulus.value() - 5].map(|activity| Point::new(modulus, activity));
            let horner = |point: &Point| {
                let next = |sum, &c: &u64| modulus.residue(modulus.mul(sum, point.activity) + c);
                coefficients.iter().rev().fold(0, next)
            };
            let expected: Vec<u64> = points.iter().map(horner).collect();
            let packed = engine(&graph, seed, |timeline, formulas| {
                Table::Packed(Packed::new(timeline, formulas, tile, 40).unwrap())
            });
            let listed = engine(&graph, seed, |timeline, formulas| {
                let forecast = Forecast::new(timeline, u64::MAX, 1 << 30).unwrap();
                Table::Listed(Listed::new(timeline, &forecast, formulas, 1 << block))
            });
            for engine in [packed, listed] {
                let total = (0..engine.steps()).map(|step| engine.work(step)).sum();
                let watch = Watch::new(total);
                prop_assert_eq!(&evaluate_lanes::<4>(&engine, &points, &watch).unwrap(), &expected);
                prop_assert_eq!(watch.done(), total);
                let same = [points[0], points[0]];
                prop_assert_eq!(&evaluate_lanes::<2>(&engine, &same, &watch).unwrap(), &[expected[0], expected[0]]);
                let exact: u64 = coefficients.iter().sum();
                let real = evaluate(&engine, &Weight::new(Real, 1.0), &watch).unwrap();
                prop_assert_eq!(real, exact as f64);
            }
        }
    }
}
