//! Independent sets: exact numbers, the independence polynomial, the hard-core partition function.

pub mod brute;
pub mod four_eight_eight;
pub mod frontier;
pub mod square;

/// How a lattice of `rows` by `cols` ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// Both extents are open.
    Free,
    /// The second extent is closed: `cols` is the circumference.
    Cylinder,
    /// Both extents are closed.
    Torus,
}
