//! The registry: each lattice its operator between rows, any other graph its frontier.
//!
//! A lattice with an operator of its own is a file with a [`RowOperator`] and a line here. The rest of the room, the bindings
//! and Python ask the registry for its name.

use super::diagonal::{DiagonalRow, Diagonals};
use super::four_eight_eight::DiamondColumn;
use super::frontier::Frontier;
use super::square::SquareRow;
use super::tree::Tree;
use super::{Boundary, Problem};
use crate::counting::evaluation::work;
use crate::counting::graph_sums::planner::Planner;
use crate::counting::graph_sums::{Timed, quickest};
use crate::counting::strip::{RowOperator, Strip};
use crate::counting::transfer::{Transfer, Weight};
use crate::graphs::Graph;
use crate::monitor::Progress;
use crate::numeric::ring::Ring;
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

impl Engine {
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

/// Calls the same method on whichever engine it is.
macro_rules! each {
    ($self:ident, $engine:ident => $call:expr; $($kind:ident)*) => {
        match $self {
            $(Engine::$kind($engine) => $call,)*
            Engine::Frontier($engine) => $call,
            Engine::Tree($engine) => $call,
        }
    };
}

macro_rules! registry {
    ($($(#[$doc:meta])* $kind:ident, $name:literal: $row:ty, $links:expr, $label:literal, $nanoseconds:literal;)*) => {
        /// The lattices with an operator of their own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum StripKind {
            $($(#[$doc])* $kind,)*
        }

        impl StripKind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// Vertices of a section.
            pub fn vertices(self, rows: usize, cols: usize, boundary: Boundary) -> usize {
                match self { $(Self::$kind => <$row>::vertices(rows, cols, boundary),)* }
            }

            /// A size no independent set of a section exceeds.
            pub fn largest_set(self, rows: usize, cols: usize, boundary: Boundary) -> usize {
                match self { $(Self::$kind => <$row>::largest_set($links, rows, cols, boundary),)* }
            }

            /// The extents of a section that holds the half of one, up to the vector in its middle.
            pub fn half(self, rows: usize, cols: usize, boundary: Boundary) -> (usize, usize) {
                match self { $(Self::$kind => <$row>::half(rows, cols, boundary),)* }
            }

            /// Sections without the edges between them, and how many further edges lie between their vertices.
            pub fn pieces(self, rows: usize, cols: usize, boundary: Boundary) -> (Vec<(usize, usize, Boundary)>, usize) {
                match self { $(Self::$kind => <$row>::pieces(rows, cols, boundary),)* }
            }
        }

        /// The engine that works on a problem.
        #[derive(Debug)]
        pub enum Engine {
            $($(#[$doc])* $kind(Strip<$row>),)*
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
                Ok(match problem {
                    &Problem::Lattice { kind, rows, cols, boundary } => match kind {
                        $(StripKind::$kind => Self::$kind(Strip::with_links($links, rows, cols, boundary, states, planner.progress())?),)*
                    },
                    Problem::Graph { graph, order } => Self::for_graph(graph, order.as_deref(), None, states, planner)?,
                })
            }

            /// Its name, for a forecast.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => $label,)*
                    Self::Frontier(_) => "frontier",
                    Self::Tree(_) => "tree decomposition",
                }
            }

            /// The measured nanoseconds of one addition of one residue, eight lanes on one thread (`benches/counting.rs`).
            ///
            /// Hardly any of it depends on the size: the engines work in blocks that fit the caches.
            pub fn nanoseconds(&self) -> f64 {
                match self {
                    $(Self::$kind(_) => $nanoseconds,)*
                    Self::Frontier(_) => 0.6,
                    Self::Tree(_) => 5.0,
                }
            }
        }

        impl Transfer for Engine {
            fn len(&self) -> usize {
                each!(self, engine => engine.len(); $($kind)*)
            }

            fn steps(&self) -> u64 {
                each!(self, engine => engine.steps(); $($kind)*)
            }

            fn work(&self, step: u64) -> u64 {
                each!(self, engine => engine.work(step); $($kind)*)
            }

            fn roundings(&self) -> u64 {
                each!(self, engine => engine.roundings(); $($kind)*)
            }

            fn start<R: Ring>(&self, weight: &Weight<R>, state: &mut [R::Element]) {
                each!(self, engine => engine.start(weight, state); $($kind)*);
            }

            fn step<R: Ring>(
                &self,
                weight: &Weight<R>,
                step: u64,
                state: &mut [R::Element],
                progress: &Progress,
            ) -> Result<()> {
                each!(self, engine => engine.step(weight, step, state, progress); $($kind)*)
            }

            fn halves(&self) -> Option<Vec<Range<usize>>> {
                each!(self, engine => engine.halves(); $($kind)*)
            }

            fn finish<R: Ring>(&self, weight: &Weight<R>, state: &[R::Element]) -> R::Element {
                each!(self, engine => engine.finish(weight, state); $($kind)*)
            }
        }
    };
}

// Its name, its operator with the member of the family, the name of the engine, nanoseconds of an addition.
registry! {
    /// Four neighbours.
    Square, "square": SquareRow, (), "square butterfly", 0.18;
    /// The square lattice with both diagonals of every cell.
    King, "king": DiagonalRow, Diagonals::Both, "one-site", 0.16;
    /// The square lattice with the diagonal from (r, c) to (r+1, c+1).
    Triangular, "triangular": DiagonalRow, Diagonals::Falling, "one-site", 0.18;
    /// The truncated square tiling; its extents count octagons.
    FourEightEight, "4-8-8": DiamondColumn, (), "4-8-8 columns", 0.21;
}
