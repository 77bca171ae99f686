//! Exact counts: independent sets and their polynomial.

pub mod checkpoint;
pub mod evaluation;
pub mod exact;
pub mod independent_sets;
pub mod strip;
pub mod transfer;
