//! The wing of private counts: laws of noise, mechanisms and their guarantees, models of what was released. Each room is a module.

pub mod distributions;
pub mod leakage;
pub mod posterior;
pub mod privacy;

pub(crate) use quincunx_graphs as graphs;
pub(crate) use quincunx_shared::{Error, Result, memory, monitor, numeric, parallel, stream};
