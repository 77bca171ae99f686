//! Exact counts: independent sets and their polynomial, spanning trees, perfect and all matchings.

pub mod checkpoint;
pub mod clusters;
pub mod evaluation;
pub mod exact;
pub mod independent_sets;
pub mod interpolation;
pub mod lifting;
pub mod lock;
pub mod matchings;
pub mod perfect_matchings;
pub mod periodic;
pub mod spanning_trees;

pub use quincunx_operators::{low_rank, strip};
pub use quincunx_shared::transfer;
pub use quincunx_sums as graph_sums;
