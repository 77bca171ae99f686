//! The transfer operator for a problem: each lattice its kernel, any other graph its frontier.

use super::diagonal::{Diagonal, Diagonals};
use super::four_eight_eight::FourEightEight;
use super::frontier::Frontier;
use super::square::Square;
use super::tree::Tree;
use super::{Kind, Problem};
use crate::Result;
use crate::counting::evaluation::work;
use crate::counting::transfer::{Transfer, Weight};
use crate::graphs::Graph;
use crate::monitor::Watch;
use crate::numeric::ring::Ring;

/// Seconds of one addition of eight residues, by tree and by frontier (`benches/counting.rs`).
const TREE_ADDITION: f64 = 4e-8;
const FRONTIER_ADDITION: f64 = 5e-9;
/// Seconds for each vertex that a frontier takes to plan, about.
const PLANNING: f64 = 1e-4;

/// The engine that works on a problem.
#[derive(Debug)]
pub enum Engine {
    /// The square lattice.
    Square(Square),
    /// The king and triangular lattices.
    Diagonal(Diagonal),
    /// The 4-8-8 lattice.
    FourEightEight(FourEightEight),
    /// Any graph, along a path decomposition.
    Frontier(Box<Frontier>),
    /// Any graph, along a tree decomposition.
    Tree(Box<Tree>),
}

impl Engine {
    /// Picks the engine; a graph may use at most `states` states at once.
    ///
    /// # Errors
    /// [`crate::Error::Domain`] for sizes that make no lattice, [`crate::Error::TooLarge`] for one no memory could hold.
    pub fn new(problem: &Problem, states: usize) -> Result<Self> {
        Ok(match problem {
            &Problem::Lattice { kind, rows, cols, boundary } => match kind {
                Kind::Square => Self::Square(Square::new(rows, cols, boundary)?),
                Kind::King => Self::Diagonal(Diagonal::new(rows, cols, Diagonals::Both, boundary)?),
                Kind::Triangular => Self::Diagonal(Diagonal::new(rows, cols, Diagonals::Falling, boundary)?),
                Kind::FourEightEight => Self::FourEightEight(FourEightEight::new(rows, cols, boundary)?),
            },
            Problem::Graph { graph, order } => Self::for_graph(graph, order.as_deref(), states)?,
        })
    }

    /// The tree or the frontier, whichever forecasts less time; the frontier alone for an order of the user's.
    ///
    /// A frontier takes long to plan, so it is not looked for where the tree would be done sooner.
    fn for_graph(graph: &Graph, order: Option<&[u32]>, states: usize) -> Result<Self> {
        let tree = if order.is_none() { Tree::plan(graph, states) } else { None };
        let seconds = |tree: &Tree| tree.total_work() as f64 * TREE_ADDITION;
        match tree {
            Some(tree) if seconds(&tree) <= PLANNING * graph.vertices() as f64 => Ok(Self::Tree(Box::new(tree))),
            Some(tree) => match Frontier::plan(graph, None, states) {
                Ok(frontier) if work(&frontier) as f64 * FRONTIER_ADDITION <= seconds(&tree) => {
                    Ok(Self::Frontier(Box::new(frontier)))
                }
                _ => Ok(Self::Tree(Box::new(tree))),
            },
            None => Ok(Self::Frontier(Box::new(Frontier::plan(graph, order, states)?))),
        }
    }

    /// Its name, for a forecast.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Square(_) => "square butterfly",
            Self::Diagonal(_) => "one-site",
            Self::FourEightEight(_) => "4-8-8 columns",
            Self::Frontier(_) => "frontier",
            Self::Tree(_) => "tree decomposition",
        }
    }
}

/// Calls the same method on whichever engine it is.
macro_rules! each {
    ($self:ident, $engine:ident => $call:expr) => {
        match $self {
            Engine::Square($engine) => $call,
            Engine::Diagonal($engine) => $call,
            Engine::FourEightEight($engine) => $call,
            Engine::Frontier($engine) => $call,
            Engine::Tree($engine) => $call,
        }
    };
}

impl Transfer for Engine {
    fn len(&self) -> usize {
        each!(self, engine => engine.len())
    }

    fn steps(&self) -> u64 {
        each!(self, engine => engine.steps())
    }

    fn work(&self, step: u64) -> u64 {
        each!(self, engine => engine.work(step))
    }

    fn roundings(&self) -> u64 {
        each!(self, engine => engine.roundings())
    }

    fn start<R: Ring>(&self, weight: &Weight<R>, state: &mut [R::Element]) {
        each!(self, engine => engine.start(weight, state));
    }

    fn step<R: Ring>(&self, weight: &Weight<R>, step: u64, state: &mut [R::Element], watch: &Watch) -> Result<()> {
        each!(self, engine => engine.step(weight, step, state, watch))
    }

    fn finish<R: Ring>(&self, weight: &Weight<R>, state: &[R::Element]) -> R::Element {
        each!(self, engine => engine.finish(weight, state))
    }
}
