//! The public crate, used as a stranger would use it.

mod diagonal;
mod exact;
mod frontier;
mod known;
mod octagon;
mod square;
