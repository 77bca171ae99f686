//! The wing of exact counts: graphs, lattices, what is counted on them, and its growth. Each room is a module.

pub mod counting;
pub mod entropy;
pub mod graphs;
pub mod lattices;

pub(crate) use quincunx_shared::{Error, Result, error, memory, monitor, numeric, parallel, stream};
