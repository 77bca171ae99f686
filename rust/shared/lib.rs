//! What the crates of quincunx share: errors, [`memory`] (limits and refusals), [`monitor`] (progress and interruption),
//! [`parallel`] (our threads), [`stream`] (addressed random streams), [`numeric`] and [`inference`] (chains).

pub mod error;
pub mod inference;
pub mod memory;
pub mod monitor;
pub mod numeric;
pub mod parallel;
pub mod stream;

pub use error::{Error, Result};
