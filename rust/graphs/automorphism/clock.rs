//! When a long search looks up: for an interrupt every 50 ms, for its time limit every millisecond or so.

use crate::monitor::Monitor;
use crate::{Error, Result};
use std::time::{Duration, Instant};

/// Units of work (neighbors visited, images computed) between two looks at the time.
const UNITS: usize = 1 << 18;
/// The least time between two questions to the monitor.
const QUIET: Duration = Duration::from_millis(50);

/// The patience of the caller.
pub struct Clock<'a> {
    monitor: &'a mut dyn Monitor,
    what: &'static str,
    limit: Option<Duration>,
    start: Instant,
    asked: Instant,
    left: usize,
}

impl<'a> Clock<'a> {
    /// Starts now; `what` is named if the limit passes.
    pub fn new(what: &'static str, limit: Option<Duration>, monitor: &'a mut dyn Monitor) -> Self {
        let now = Instant::now();
        Self { monitor, what, limit, start: now, asked: now, left: UNITS }
    }

    /// Counts work done.
    ///
    /// # Errors
    /// [`Error::TimeLimit`] after the limit, or the monitor's own objection.
    #[inline]
    pub fn spend(&mut self, units: usize) -> Result<()> {
        match self.left.checked_sub(units) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => self.look(),
        }
    }

    #[cold]
    fn look(&mut self) -> Result<()> {
        self.left = UNITS;
        let now = Instant::now();
        if let Some(limit) = self.limit
            && now - self.start >= limit
        {
            return Err(Error::TimeLimit { what: self.what, seconds: limit.as_secs_f64() });
        }
        if now - self.asked >= QUIET {
            self.asked = now;
            self.monitor.tick(0, 1)?;
        }
        Ok(())
    }
}
