//! What the crates of quincunx share: errors, [`memory`] (limits and refusals), [`monitor`] (progress and interruption),
//! [`parallel`] (our threads), [`stream`] (addressed random streams), [`numeric`], [`inference`] (chains) and [`transfer`] (what an
//! engine of exact counts is).

pub mod error;
pub mod inference;
pub mod memory;
pub mod monitor;
pub mod numeric;
pub mod parallel;
pub mod stream;
pub mod transfer;

pub use error::{Error, Result};
