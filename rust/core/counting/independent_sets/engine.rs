//! The transfer operator for a problem: each lattice its kernel, any other graph its frontier.

use super::diagonal::{Diagonal, Diagonals};
use super::four_eight_eight::FourEightEight;
use super::frontier::Frontier;
use super::square::Square;
use super::{Kind, Problem};
use crate::Result;
use crate::counting::transfer::{Transfer, Weight};
use crate::monitor::Watch;
use crate::numeric::ring::Ring;

/// The engine that works on a problem.
#[derive(Debug)]
pub enum Engine {
    /// The square lattice.
    Square(Square),
    /// The king and triangular lattices.
    Diagonal(Diagonal),
    /// The 4-8-8 lattice.
    FourEightEight(FourEightEight),
    /// Any graph.
    Frontier(Box<Frontier>),
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
            Problem::Graph { graph, order } => {
                Self::Frontier(Box::new(Frontier::plan(graph, order.as_deref(), states)?))
            }
        })
    }

    /// Its name, for a forecast.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Square(_) => "square butterfly",
            Self::Diagonal(_) => "one-site",
            Self::FourEightEight(_) => "4-8-8 columns",
            Self::Frontier(_) => "frontier",
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
