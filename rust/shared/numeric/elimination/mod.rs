//! Sparse elimination: determinants and Pfaffians modulo a number, one plan for all of them.
//!
//! [`order`] finds an order of little fill, [`plan`] what is eliminated together; [`factor`] does it for one modulus, [`vectors`]
//! many columns at a time for one below 2^52, and [`conductance`] for the weights of an electrical network in floating point, where nothing
//! is ever subtracted.
//!
//! Source: T. Davis (2006), Direct Methods for Sparse Linear Systems, chapters 4 and 7.

pub mod conductance;
pub mod factor;
mod matrix;
pub mod order;
pub mod plan;
pub mod vectors;

pub use conductance::log_determinant;
pub use matrix::{MatrixKind, PlannedMatrix};
pub use plan::EliminationPlan;
