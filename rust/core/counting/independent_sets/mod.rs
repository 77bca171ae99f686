//! Independent sets: exact numbers, the independence polynomial, the hard-core partition function.

pub mod diagonal;
pub mod four_eight_eight;

/// How a patch of `m x n` cells ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// Open on all sides.
    Free,
    /// The second extent is closed to a ring, the first is open.
    Cylinder,
    /// Both extents are closed.
    Torus,
}
