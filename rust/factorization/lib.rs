//! Factorization of privatized counts: matrices, topics, tensors, networks, dynamics; Gibbs sweeps and coordinate ascent.
//!
//! A table of counts y_rv ~ Poisson(mu_rv) was released as o_rv = y_rv + two-sided geometric noise of ratio alpha. Every
//! [`structure`] gives each row a vector of weights u_r and each column one, R_v, with mu_rv = sum_k u_rk R_vk, so that one
//! [`sweep`] over rows serves them all: it draws y given o and mu, splits it over k, and adds up the parts. A [`gibbs`] chain
//! then redraws the factors, gamma or Dirichlet; [`coordinate_ascent`] does the same with expectations.
//!
//! Given mu and o, y has the two-piece Poisson law (see `distributions::two_piece_poisson`): the auxiliary variables of the
//! papers can be summed out, and are kept only by the method that reproduces them. Counts that spread more are Poisson given a
//! gamma multiplier of each cell, see [`dispersion`]; theirs is the law of [`negative_binomial`].
//! Source: A. Schein, Z. S. Wu, A. Schofield, M. Zhou, H. Wallach (2019), Locally private Bayesian inference for count models.

mod alias;
mod allocation;
mod blockmodel;
pub mod cell;
pub mod collapsed;
pub mod coordinate_ascent;
mod cp;
mod dense_row;
mod dirichlet;
pub mod dispersion;
mod dynamics;
mod events;
pub mod factor_matrix;
mod gamma_chain;
pub mod gammas;
pub mod gibbs;
pub mod hyperpriors;
mod layers;
pub mod likelihood;
pub mod model;
pub mod negative_binomial;
mod negative_binomial_cells;
mod pass;
mod positive_cells;
mod products;
mod pseudo_counts;
mod published;
pub mod released_counts;
pub mod row;
mod split;
mod split_cells;
pub mod structure;
mod sweep;
mod tucker;

pub(crate) use quincunx_private::distributions;
pub(crate) use quincunx_shared::{Error, Result, inference, memory, monitor, numeric, parallel, stream};

pub use coordinate_ascent::CoordinateAscent;
pub use gammas::Prior;
pub use gibbs::GibbsChain;
pub use model::Model;
pub use released_counts::ReleasedCounts;
