//! Growth constants: certified bounds on `kappa = lim Z^(1/vertices)` of the hard-core lattice gas.
//!
//! Three families of proofs: corner tensors on a ring ([`corner`]: trial vectors from [`tensors`] for the row operators of
//! [`model`]), strips and rings by transfer operators, and windows.

pub mod corner;
pub mod dense;
pub mod layers;
pub mod model;
pub mod tensors;
pub mod torus;
