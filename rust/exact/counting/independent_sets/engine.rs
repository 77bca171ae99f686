//! Which engine works on a problem: each lattice with an operator between rows its own, any other graph a tree or a frontier.

use super::frontier::Frontier;
use super::tree::Tree;
use super::{Problem, StripKind};
use crate::counting::evaluation::work;
use crate::counting::graph_sums::planner::Planner;
use crate::counting::graph_sums::{Timed, quickest};
use crate::counting::transfer::{AnyRing, StepContext, Transfer, TransferRing, Weight};
use crate::graphs::Graph;
use crate::monitor::Progress;
use crate::{Result, memory};
use num_bigint::BigInt;
use std::ops::Range;

/// Seconds of one addition of eight residues, by tree and by frontier (`benches/counting.rs`).
const TREE_ADDITION: f64 = 4e-8;
const FRONTIER_ADDITION: f64 = 5e-9;
/// Seconds of a vertex on a frontier, however small.
const FRONTIER_VERTEX: f64 = 1e-5;
/// Bytes that planning takes for each vertex and edge, about, and the states whose room it may take however few are allowed.
const VERTEX: u32 = 256;
const EDGE: u32 = 32;
const LEAST: usize = 1 << 20;

/// The engine that works on a problem.
#[derive(Debug)]
pub enum Engine {
    /// A lattice with an operator between rows.
    Lattice(StripKind, Box<dyn AnyRing>),
    /// Any graph, along a path decomposition.
    Frontier(Box<Frontier>),
    /// Any graph, along a tree decomposition.
    Tree(Box<Tree>),
}

impl Engine {
    /// Picks the engine; a graph may use at most `states` states at once.
    ///
    /// # Errors
    /// [`crate::Error::Domain`] for sizes that make no lattice, [`crate::Error::TooLarge`] for one no memory could
    /// hold, [`crate::Error::Interrupted`] when the planner says so.
    pub fn new(problem: &Problem, states: usize, planner: &Planner<'_>) -> Result<Self> {
        match problem {
            &Problem::Lattice { kind, rows, cols, boundary } => {
                Ok(Self::Lattice(kind, kind.engine(rows, cols, boundary, states, planner.progress())?))
            }
            Problem::Graph { graph, order } => Self::for_graph(graph, order.as_deref(), None, states, planner),
        }
    }

    /// Whichever it is.
    fn any(&self) -> &dyn AnyRing {
        match self {
            Self::Lattice(_, engine) => &**engine,
            Self::Frontier(engine) => engine.over_rings(),
            Self::Tree(engine) => engine.over_rings(),
        }
    }

    /// Its name, for a forecast.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Lattice(kind, _) => kind.engine_name(),
            Self::Frontier(_) => "frontier",
            Self::Tree(_) => "tree decomposition",
        }
    }

    /// The measured nanoseconds of one addition of one residue, eight lanes on one thread (`benches/counting.rs`).
    pub fn nanoseconds(&self) -> f64 {
        match self {
            Self::Lattice(kind, _) => kind.nanoseconds(),
            Self::Frontier(_) => 0.6,
            Self::Tree(_) => 5.0,
        }
    }

    /// About how many seconds eight residues take on a graph.
    pub fn graph_seconds(&self) -> f64 {
        match self {
            Self::Tree(tree) => tree.total_work() as f64 * TREE_ADDITION,
            Self::Frontier(frontier) => frontier_seconds(frontier),
            engine => work(engine) as f64 * FRONTIER_ADDITION,
        }
    }

    /// The tree or the frontier, whichever forecasts less time ([`quickest`]); the frontier alone for an order of the user's. Vertices may
    /// have weights of their own, out and in.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn for_graph(
        graph: &Graph,
        order: Option<&[u32]>,
        weights: Option<&[[BigInt; 2]]>,
        states: usize,
        planner: &Planner<'_>,
    ) -> Result<Self> {
        let limit = 8 * states.max(LEAST) as u128;
        memory::check("planning the count on a graph", graph.bytes(VERTEX, EDGE), limit)?;
        memory::charge("planning the count on a graph", graph.bytes(VERTEX, EDGE))?;
        let frontier = |order| Frontier::plan(graph, order, weights, states, planner).map(Box::new);
        if order.is_some() {
            return frontier(order).map(Self::Frontier);
        }
        let tree = || {
            let tree = Tree::plan(graph, weights, states, planner)?.map(Box::new);
            Ok(tree.map(|tree| (tree.total_work() as f64 * TREE_ADDITION, Self::Tree(tree))))
        };
        let order = || frontier(None).map(|frontier| (frontier_seconds(&frontier), Self::Frontier(frontier)));
        quickest(graph.vertices(), planner, None::<Timed<fn() -> Result<Self>>>, tree, order)
    }
}

fn frontier_seconds(frontier: &Frontier) -> f64 {
    work(frontier) as f64 * FRONTIER_ADDITION + frontier.planned_order().len() as f64 * FRONTIER_VERTEX
}

impl Transfer for Engine {
    fn len(&self) -> usize {
        self.any().len()
    }

    fn steps(&self) -> u64 {
        self.any().steps()
    }

    fn work(&self, step: u64) -> u64 {
        self.any().work(step)
    }

    fn roundings(&self) -> u64 {
        self.any().roundings()
    }

    fn start<R: TransferRing>(&self, weight: &Weight<R>, state: &mut [R::Element]) {
        R::of(self.any()).start(weight, state);
    }

    fn advance<R: TransferRing>(&self, at: StepContext<'_, R>, state: &mut [R::Element]) -> Result<()> {
        R::of(self.any()).advance(at, state)
    }

    fn halves(&self) -> Option<Vec<Range<usize>>> {
        self.any().halves()
    }

    fn adds_up(&self) -> bool {
        self.any().adds_up()
    }

    fn for_counts(&mut self, progress: &Progress) -> Result<()> {
        if let Self::Lattice(_, engine) = self { engine.for_counts(progress) } else { Ok(()) }
    }

    fn slower(&self, points: usize, lanes: usize) -> f64 {
        self.any().slower(points, lanes)
    }

    fn finish<R: TransferRing>(&self, weight: &Weight<R>, state: &[R::Element]) -> R::Element {
        R::of(self.any()).finish(weight, state)
    }
}
