//! Privacy by sampling a posterior, and for discrete Bayesian networks.
//!
//! [`grid`] draws exactly from one-parameter posteriors and accounts for them, [`quadrature`] does the accounts of the continuous
//! laws, [`simplex`] draws trimmed Dirichlet vectors, [`ball`] normals truncated to a ball. [`tables`] counts families of a
//! network, [`walsh`] transforms the counts, [`infinity`] is the noise of constant law on cubes. [`records`] samples the records that
//! noisy tables may have counted, with the probabilities they came from, by what [`parities`] knows where parities were released;
//! [`covariance`] is for laws fitted to such tables.

pub mod ball;
pub mod covariance;
pub mod grid;
pub mod infinity;
pub mod parities;
pub mod quadrature;
pub mod records;
pub mod simplex;
pub mod tables;
pub mod walsh;
