//! What sums over the structures of any graph have in common: orders of its vertices, trees of its bags, and how long to look for them.

pub mod elimination;
pub mod planner;
pub mod search;
