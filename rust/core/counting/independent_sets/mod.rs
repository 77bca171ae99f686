//! Independent sets: exact numbers, the independence polynomial, the hard-core partition function.
//!
//! `Z(z) = sum over independent sets S of z^|S|`; the number of sets is `Z(1)`, the empty set included. A [`Problem`] says what
//! is counted on; [`Engine`] picks the transfer operator for it: a kernel of its own for the square, king, triangular and 4-8-8
//! lattices, the frontier of a vertex order for any other graph.
//!
//! Every exact result is computed modulo one prime more than its proved bound asks for, and compared with it.

mod bound;
pub mod brute;
mod count;
pub mod diagonal;
mod engine;
pub mod four_eight_eight;
pub mod frontier;
mod partition;
mod polynomial;
mod problem;
pub mod square;

pub use bound::log2_bound;
pub use count::{Cost, count_independent_sets, estimate_cost, residues};
pub use engine::Engine;
pub use partition::{FloatValue, hard_core_float, hard_core_rational};
pub use polynomial::independence_polynomial;
pub use problem::{Boundary, Kind, Problem};
