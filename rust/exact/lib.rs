//! The wing of exact counts: lattices, what is counted on them and on graphs, and its growth. Each room is a module.

pub mod counting;
pub mod entropy;
pub mod lattices;

pub use quincunx_graphs as graphs;

pub(crate) use quincunx_shared::{Error, Result, error, memory, monitor, numeric, parallel, stream};
