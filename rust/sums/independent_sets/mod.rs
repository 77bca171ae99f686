//! Independent sets of any graph: along an order of the vertices, along a tree of bags, by branching, and one by one.

pub mod branching;
pub mod brute;
pub mod frontier;
pub mod tree;
