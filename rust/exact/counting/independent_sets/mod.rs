//! Independent sets: exact numbers, the independence polynomial, the hard-core partition function.
//!
//! `Z(z) = sum over independent sets S of z^|S|`; the number of sets is `Z(1)`, the empty set included. A [`Problem`] says what
//! is counted on; [`Engine`] picks the transfer operator for it: a kernel of its own for the square, king, triangular and 4-8-8
//! lattices, the frontier of a vertex order for any other graph.
//!
//! Every exact result is computed modulo one prime more than its proved bound asks for, and compared with it.

mod bound;
mod cost;
mod count;
mod engine;
mod partition;
mod problem;
#[cfg(all(test, unix))]
mod promise;
pub mod reflection;

pub use crate::lattices::Boundary;
pub use bound::log2_bound;
pub use cost::{Cost, estimate_cost};
pub use count::{IndependentSets, Quantity, count_independent_sets, independence_polynomial, residues};
pub use engine::Engine;
pub use partition::{FloatActivity, FloatValue, hard_core_float};
pub use problem::Problem;
pub use quincunx_operators::{StripKind, diagonal, four_eight_eight, square};
pub use quincunx_sums::independent_sets::{branching, brute, frontier, tree};
