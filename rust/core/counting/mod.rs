//! Exact counts: independent sets and their polynomial.

pub mod independent_sets;
pub mod transfer;
