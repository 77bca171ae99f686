//! Growth constants: certified bounds on `kappa = lim Z^(1/vertices)` of the hard-core lattice gas.
//!
//! Three families of proofs: corner tensors on a ring ([`corner`]: trial vectors from [`tensors`] for the row operators of
//! [`model`]), strips and rings by the transfer operator of `counting::periodic`, and windows ([`window`]).

pub mod corner;
pub mod dense;
pub mod layers;
pub mod model;
pub mod saved;
pub mod tensors;
pub mod torus;
pub mod window;
