//! Exact counts on lattices and Bayesian inference on private counts: the mathematics, free of any interpreter.
//!
//! Each room is a module with the name it has in Python. What the rooms share: [`error`], [`memory`] (limits and
//! refusals), [`monitor`] (progress and interruption), [`parallel`] (our threads), [`stream`] (addressed random streams),
//! [`numeric`] and [`inference`] (chains). [`globals`] lists what is made once.

pub mod counting;
pub mod distributions;
pub mod entropy;
pub mod error;
pub mod factorization;
pub mod globals;
pub mod graphs;
pub mod inference;
pub mod lattices;
pub mod ldp;
pub mod leakage;
pub mod memory;
pub mod monitor;
pub mod numeric;
pub mod parallel;
pub mod posterior;
pub mod privacy;
pub mod stream;

pub use error::{Error, Result};
