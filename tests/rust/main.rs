//! The public crate, used as a stranger would use it.

mod square;
