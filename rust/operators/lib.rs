//! Engines of lattices: operators between rows.
//!
//! An engine is a [`quincunx_shared::transfer::Transfer`], written once over a ring. Those of the lattices are compiled here, for all rings, behind one
//! pointer ([`quincunx_shared::transfer::AnyRing`]), so that this crate and those of exact counts are built side by side.
//! A lattice with an operator of its own is a file with a [`strip::RowOperator`] and a line in [`registry`].

mod boundary;
pub mod diagonal;
pub mod four_eight_eight;
pub mod low_rank;
pub mod registry;
pub mod square;
pub mod strip;

pub use boundary::Boundary;
pub use registry::StripKind;

pub(crate) use quincunx_shared::{Error, Result, error, memory, monitor, numeric, parallel, transfer};
