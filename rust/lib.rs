//! Exact counts on lattices and Bayesian inference on private counts: the mathematics, free of any interpreter.
//!
//! Each room is a module with the name it has in Python. What the rooms share: [`error`], [`memory`] (limits and
//! refusals), [`monitor`] (progress and interruption), [`parallel`] (our threads), [`stream`] (addressed random streams),
//! [`numeric`] and [`inference`] (chains). [`globals`] lists what is made once.
//!
//! The rooms lie in crates that are built side by side: `quincunx-exact` on `quincunx-operators` and `quincunx-sums`,
//! `quincunx-graphs`, `quincunx-factorization` on `quincunx-private`, and `quincunx-ldp`, all on `quincunx-shared`.

pub mod globals;

pub use quincunx_exact::{counting, entropy, lattices};
pub use quincunx_factorization as factorization;
pub use quincunx_graphs as graphs;
pub use quincunx_ldp as ldp;
pub use quincunx_private::{distributions, leakage, posterior, privacy};
pub use quincunx_shared::{Error, Result, error, inference, memory, monitor, numeric, parallel, stream};
