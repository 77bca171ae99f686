//! Channels and what leaks through them: averaging over symmetries, privacy levels on a graph, certified capacity.
//!
//! A channel is a matrix whose rows are the inputs (secrets) and whose columns are the outputs: the entry at (x, y) is
//! P(y | x). Logarithms are natural in [`divergence`], as privacy levels are, and to base 2 elsewhere.

mod averaging;
mod capacity;
mod channel;
pub mod divergence;
mod entropy;
mod hamming;
mod sums;
mod vector;

pub use averaging::average;
pub use capacity::{Capacity, mutual_information, shannon_capacity};
pub use channel::{ChannelMatrix, check_channel, column_maxima};
pub use entropy::renyi_entropy;
pub use hamming::average_hamming;
