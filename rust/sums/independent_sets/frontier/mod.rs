//! Independent sets of any graph, by a frontier that moves along an order of its vertices.
//!
//! Vertices are introduced one after another; the *frontier* is those introduced that still have neighbors to come. The table holds,
//! for each subset of the frontier that can be the occupied part, the sum of `z^size` over the independent sets of what
//! came that look like it there: a path decomposition, one element for each state of a bag. Before, vertices of degree two
//! or less are summed out ([`reduce`]); the order is chosen in [`search`]; the table is [`dense_table`], one element for every
//! subset, or [`set_table`], one for every independent subset, whichever is cheaper. If it exceeds the memory allowed, some
//! vertices are *cut* out: the partition function is the sum over their occupations,
//!
//!   `Z(G) = sum over independent S in the cut of z^|S| Z(G - cut - N(S))`,
//!
//! each run with the same plan, where the activity of the vertices in `N(S)` is zero. Vertices may also have weights of their own,
//! out and in.
//!
//! Source: H. Bodlaender (1998), A partial k-arboretum of graphs with bounded treewidth, Theoretical Computer Science 209
//! (path decompositions); T. Kloks (1994), Treewidth: Computations and Approximations, chapter 13 (introduce and forget).

mod block;
mod bound;
pub mod circuit;
mod cutset;
pub mod dense_table;
mod family;
pub mod path_decomposition;
pub mod reduce;
pub mod set_table;
mod stage;
mod sums;

pub use bound::independence;

use self::circuit::{Circuit, Node, Tape, read};
use self::dense_table::DenseTable;
use self::path_decomposition::PathDecomposition;
use self::reduce::ReducedGraph;
use self::set_table::{Forecast, IndependentSetTable};
use crate::error::subsets_bytes;
use crate::graphs::{Graph, Lists};
use crate::monitor::Progress;
use crate::planner::Planner;
use crate::search::{self, StateKind};
use crate::transfer::{AnyRing, StepContext, Transfer, TransferRing, Weight};
use crate::{Error, Result};
use num_bigint::BigInt;

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
    /// The weights of the vertices of the cut, out and in.
    cut: Vec<[Node; 2]>,
    tape: Tape,
    /// What the vertices summed out contribute.
    factor: Node,
    table: FrontierTable,
    roundings: u64,
}

#[derive(Debug)]
enum FrontierTable {
    DenseTable(DenseTable),
    IndependentSetTable(IndependentSetTable),
}

/// Evaluates an expression for whichever table it is.
macro_rules! with_table {
    ($table:expr, $name:ident => $body:expr) => {
        match $table {
            FrontierTable::DenseTable($name) => $body,
            FrontierTable::IndependentSetTable($name) => $body,
        }
    };
}

impl Frontier {
    /// Plans the count for a graph, whose vertices come in the order given or in one that is searched for; they may have
    /// weights of their own, out and in.
    ///
    /// The table has at most `max_states` elements; a graph that needs more is cut.
    ///
    /// # Errors
    /// [`Error::Domain`] if the order is not one of the vertices; [`Error::TooLarge`] if the cut would need more than a
    /// million runs; [`Error::Interrupted`] when the planner says so.
    pub fn plan(
        graph: &Graph,
        order: Option<&[u32]>,
        weights: Option<&[[BigInt; 2]]>,
        max_states: usize,
        planner: &Planner<'_>,
    ) -> Result<Self> {
        let neighbors = graph.stoppable_neighbors(planner.progress())?;
        let mut ranks = order.map(|order| ranks(order, graph.vertices())).transpose()?;
        let mut planned = order.unwrap_or_default().to_vec();
        let mut cut: Vec<u32> = Vec::new();
        loop {
            planner.check()?;
            let mut circuit = Circuit::new(weights);
            let reduced = ReducedGraph::new(graph, &neighbors, &cut, &mut circuit, planner.progress())?;
            let links = reduced.neighbors();
            let mut sequences = Vec::new();
            match &ranks {
                Some(ranks) => {
                    sequences.push(search::by_rank(&links, |v| ranks[reduced.labels[v as usize] as usize]));
                }
                None => {
                    let (cost, sequence) = search::search(&links, StateKind::Subsets, planner);
                    sequences.push(sequence);
                    if cost > WORTHWHILE {
                        sequences.push(search::search(&links, StateKind::Independent, planner).1);
                    }
                }
            }
            let decompositions = sequences.into_iter().map(|sequence| PathDecomposition::new(&reduced, sequence));
            let choices = decompositions
                .map(|decomposition| (TableChoice::new(&decomposition, max_states, planner), decomposition));
            let Some((choice, decomposition)) = choices.min_by(|(a, _), (b, _)| a.cost.total_cmp(&b.cost)) else {
                unreachable!("there is at least one order");
            };
            planner.check()?;
            match choice.table(&decomposition, &mut circuit, max_states) {
                Some(table) => {
                    let mut engine =
                        Self::finish(&neighbors, graph, &decomposition, &cut, table, circuit, planner.progress())?;
                    if !cut.is_empty() {
                        engine.planned = planned;
                    }
                    return Ok(engine);
                }
                None => {
                    let most = max_states.max(1).ilog2() as usize;
                    let widest = decomposition.widths().into_iter().max().unwrap_or(0);
                    // At least so many more vertices are chosen at once: far too wide a graph is known to be.
                    let least = widest.saturating_sub(most).div_ceil(2);
                    let more =
                        if cut.len() + least > MOST_CUT { Vec::new() } else { cutset::heaviest(&decomposition, most) };
                    let label = |&v: &u32| reduced.labels[v as usize];
                    cut.extend(more.iter().map(label));
                    if cut.len() > MOST_CUT || more.is_empty() {
                        let needed = subsets_bytes(widest as u32);
                        let what = planner.refused("the table of independent sets", needed);
                        return Err(Error::TooLarge { what, needed, limit: 8 * max_states as u128 });
                    }
                    if ranks.is_none() {
                        planned = sequence_of(&decomposition);
                        ranks = Some(self::ranks(&planned, graph.vertices())?);
                    }
                }
            }
        }
    }

    fn finish(
        neighbors: &Lists,
        graph: &Graph,
        decomposition: &PathDecomposition,
        cut: &[u32],
        mut table: FrontierTable,
        mut circuit: Circuit,
        progress: &Progress,
    ) -> Result<Self> {
        let reduced = decomposition.reduced;
        let branches = cutset::assignments(neighbors, cut);
        let mut chosen: Vec<[Node; 2]> = cut.iter().map(|&v| circuit.vertex(v, 0)).collect();
        let mut factor = reduced.factor;
        let roundings = [circuit.roundings(factor), cut.len() as u64, branches.len() as u64];
        let roundings = roundings.into_iter().fold(with_table!(&table, t => t.roundings), u64::saturating_add);
        let weights = with_table!(&mut table, t => &mut t.weights);
        let tape =
            circuit.compile(weights.iter_mut().chain(chosen.iter_mut().flatten()).chain([&mut factor]), progress)?;
        let order = sequence_of(decomposition);
        Ok(Self {
            planned: order.clone(),
            order,
            width: decomposition.widths().into_iter().max().unwrap_or(0),
            independence_bound: bound::independence(graph, neighbors, progress)?,
            branches,
            cut: chosen,
            tape,
            factor,
            table,
            roundings,
        })
    }

    /// The vertices in the order they are dealt with: first those summed out or cut, then as they come to the frontier.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The same over all rings behind one pointer: compiled here, not where it is called.
    #[inline(never)]
    pub fn over_rings(&self) -> &dyn AnyRing {
        self
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
        self.tape.steps().max(1)
    }

    fn table_steps(&self) -> u64 {
        with_table!(&self.table, table => table.steps() as u64)
    }

    /// The run a step belongs to and its number there.
    fn position(&self, step: u64) -> (u32, u64) {
        let steps = self.preparations() + self.table_steps() + 1;
        (self.branches[(step / steps) as usize], step % steps)
    }
}

/// The memory is the sum over the runs done, the registers of the weights, and the table.
impl Transfer for Frontier {
    fn len(&self) -> usize {
        1 + self.tape.registers() + with_table!(&self.table, table => table.memory())
    }

    fn steps(&self) -> u64 {
        self.branches.len() as u64 * (self.preparations() + self.table_steps() + 1)
    }

    fn work(&self, step: u64) -> u64 {
        let (_, step) = self.position(step);
        let preparations = self.preparations();
        if step < preparations {
            self.tape.work(step)
        } else if step < preparations + self.table_steps() {
            with_table!(&self.table, table => table.work((step - preparations) as usize))
        } else {
            1
        }
    }

    fn roundings(&self) -> u64 {
        self.roundings
    }

    fn start<R: TransferRing>(&self, weight: &Weight<R>, state: &mut [R::Element]) {
        state[0] = weight.ring.zero();
    }

    fn advance<R: TransferRing>(&self, at: StepContext<'_, R>, state: &mut [R::Element]) -> Result<()> {
        let ring = at.weight.ring;
        let (branch, step) = self.position(at.number);
        let preparations = self.preparations();
        let (total, rest) = state.split_at_mut(1);
        let (registers, table) = rest.split_at_mut(self.tape.registers());
        if step < preparations {
            if step == 0 {
                table[0] = ring.one();
            }
            self.tape.step(StepContext { number: step, ..at }, branch, registers)
        } else if step < preparations + self.table_steps() {
            let at = StepContext { number: step - preparations, ..at };
            with_table!(&self.table, t => t.step(at, registers, table))
        } else {
            let place = match &self.table {
                FrontierTable::DenseTable(_) => 0,
                FrontierTable::IndependentSetTable(set_table) => set_table.place(set_table.steps()).start,
            };
            let mut result = ring.mul(table[place], read(ring, self.factor, registers));
            for (place, weights) in self.cut.iter().enumerate() {
                match weights[(branch >> place & 1) as usize] {
                    Node::One => {}
                    weight => result = ring.mul(result, read(ring, weight, registers)),
                }
            }
            total[0] = ring.fold(ring.add(total[0], result));
            at.progress.advance(1)
        }
    }

    fn finish<R: TransferRing>(&self, _: &Weight<R>, state: &[R::Element]) -> R::Element {
        state[0]
    }
}

/// The cheaper table for an order.
struct TableChoice {
    /// Its time, in additions of a dense table; more than any other if it does not fit.
    cost: f64,
    /// Its sizes, if it is an independent-set table.
    set_table: Option<Forecast>,
}

impl TableChoice {
    fn new(decomposition: &PathDecomposition, most: usize, planner: &Planner<'_>) -> Self {
        let (bits, work) = DenseTable::forecast(decomposition);
        let dense_table = if most.max(1).ilog2() >= bits { work } else { work * TOO_LARGE };
        let effort = work.min(1e8) as u64 / 16 + 64 * decomposition.order.len() as u64;
        let set_table = Forecast::new(decomposition, most as u64, effort, planner)
            .filter(|forecast| forecast.states() <= most as u64);
        match set_table.map(|forecast| (LISTED * forecast.work(), forecast)) {
            Some((cost, forecast)) if cost < dense_table => Self { cost, set_table: Some(forecast) },
            _ => Self { cost: dense_table, set_table: None },
        }
    }

    fn table(self, decomposition: &PathDecomposition, circuit: &mut Circuit, most: usize) -> Option<FrontierTable> {
        match self.set_table {
            Some(forecast) => Some(FrontierTable::IndependentSetTable(IndependentSetTable::new(
                decomposition,
                &forecast,
                circuit,
                set_table::BLOCK,
            ))),
            None => DenseTable::new(decomposition, circuit, dense_table::TILE, most.max(1).ilog2())
                .map(FrontierTable::DenseTable),
        }
    }
}

/// A cost that is worth another search.
const WORTHWHILE: f64 = 1e4;
/// The time of an element of an independent-set table, in those of a dense one.
const LISTED: f64 = 2.5;
/// How many times longer a table takes that has to be cut.
const TOO_LARGE: f64 = 1e6;

/// The vertices summed out, then the others as they come.
fn sequence_of(decomposition: &PathDecomposition) -> Vec<u32> {
    let reduced = decomposition.reduced;
    let labels = decomposition.order.iter().map(|&v| reduced.labels[v as usize]);
    reduced.eliminated.iter().copied().chain(labels).collect()
}

/// The place of each vertex in an order.
fn ranks(order: &[u32], vertices: usize) -> Result<Vec<u32>> {
    let refuse = |value: String| Error::domain("order", value, "each vertex of the graph once");
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
    use crate::independent_sets::brute;
    use crate::numeric::ring::F64;
    use crate::transfer::{evaluate, evaluate_lanes};
    use proptest::prelude::*;

    /// An engine with a table made as a test wants it.
    fn engine(graph: &Graph, seed: u64, table: impl Fn(&PathDecomposition, &mut Circuit) -> FrontierTable) -> Frontier {
        let neighbors = graph.neighbors();
        let mut circuit = Circuit::default();
        let reduced = ReducedGraph::new(graph, &neighbors, &[], &mut circuit, &Progress::default()).unwrap();
        let rank = |v: u32| (u64::from(v) + 1).wrapping_mul(seed | 1) as u32;
        let decomposition = PathDecomposition::new(&reduced, search::by_rank(&reduced.neighbors(), rank));
        let table = table(&decomposition, &mut circuit);
        Frontier::finish(&neighbors, graph, &decomposition, &[], table, circuit, &Progress::default()).unwrap()
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
            let (coefficients, points, expected) = brute::values(&graph);
            let dense_table = engine(&graph, seed, |decomposition, circuit| {
                FrontierTable::DenseTable(DenseTable::new(decomposition, circuit, tile, 40).unwrap())
            });
            let set_table = engine(&graph, seed, |decomposition, circuit| {
                let forecast = Forecast::new(decomposition, u64::MAX, 1 << 30, &Planner::new(&Progress::default())).unwrap();
                FrontierTable::IndependentSetTable(IndependentSetTable::new(decomposition, &forecast, circuit, 1 << block))
            });
            for engine in [dense_table, set_table] {
                let total = (0..engine.steps()).map(|step| engine.work(step)).sum();
                let progress = Progress::new(total);
                prop_assert_eq!(&evaluate_lanes::<4>(&engine, &points, &progress).unwrap(), &expected);
                prop_assert_eq!(progress.done(), total);
                prop_assert_eq!(&evaluate_lanes::<1>(&engine, &points[..1], &progress).unwrap(), &expected[..1]);
                let exact: u64 = coefficients.iter().sum();
                let real = evaluate(&engine, &Weight::new(F64, 1.0), &progress).unwrap();
                prop_assert_eq!(real, exact as f64);
            }
        }
    }
}
