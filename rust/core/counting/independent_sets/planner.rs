//! What planning may spend on one graph, and who may stop it.
//!
//! Orders are improved, and sizes counted, as long as the *effort* lasts: so many changes of a frontier or branchings, some
//! tens of nanoseconds each. It is counted and not timed, so that the same graph has the same plan everywhere. A graph has one
//! effort for all of its components, orders and tables. Work that has begun ends soon after a stop, with what it has; the
//! caller then asks [`Planner::check`] and forgets it.

use crate::Result;
use crate::monitor::Progress;
use std::cell::Cell;

/// Changes for one graph: a second or two.
const EFFORT: u64 = 1 << 25;

/// The effort that is left for one graph.
#[derive(Debug)]
pub struct Planner<'w> {
    progress: &'w Progress,
    left: Cell<u64>,
}

impl<'w> Planner<'w> {
    /// The effort for one graph.
    pub fn new(progress: &'w Progress) -> Self {
        Self { progress, left: Cell::new(EFFORT) }
    }

    /// Not more than is wanted, nor than the given part of what is left.
    pub fn granted(&self, wanted: u64, part: u64) -> u64 {
        wanted.min(self.left.get() / part)
    }

    /// Takes what was used.
    pub fn spend(&self, used: u64) {
        self.left.set(self.left.get().saturating_sub(used));
    }

    /// Who may stop it.
    pub fn progress(&self) -> &'w Progress {
        self.progress
    }

    /// Whether to come to an end.
    #[inline]
    pub fn is_stopping(&self) -> bool {
        self.progress.is_stopping()
    }

    /// Whether to go on.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] once somebody asked to stop.
    pub fn check(&self) -> Result<()> {
        self.progress.check()
    }
}
