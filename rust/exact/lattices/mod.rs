//! Lattices: unit cells, their finite pieces with a boundary, clique insertion.
//!
//! A [`UnitCell`] says how a lattice repeats; a [`Lattice`] repeats it `extent` times, with each axis open or closed; a
//! [`Section`] is what comes out: edges, positions, and how each edge crosses the closed axes.

mod cell;
mod clique;
mod finite;
mod named;
mod section;

pub use cell::{Bond, UnitCell};
pub use clique::{clique_insert, clique_insertion_size};
pub use finite::Lattice;
pub use named::{LATTICES, Mirrors, NamedLattice, RowTensor};
pub use quincunx_operators::Boundary;
pub use section::{Section, aztec_diamond, four_eight_eight, generalized_aztec, triangulated_grid};
