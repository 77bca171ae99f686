//! Progress and interruption, without knowing who watches.
//!
//! A [`Monitor`] lives on the thread that called: it hears how far the work is and may stop it. A [`Watch`] is what the
//! working threads share: they add to its counter and look at its flag, nothing else. `parallel::run` joins the two.

use crate::{Error, Result};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Somebody who follows a computation and may end it.
pub trait Monitor {
    /// Hears that `done` of `total` units are done; an error stops the work and travels back to the caller.
    fn tick(&mut self, done: u64, total: u64) -> Result<()>;
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Monitor for Silent {
    fn tick(&mut self, _done: u64, _total: u64) -> Result<()> {
        Ok(())
    }
}

/// A closure that answers `false` to stop.
impl<F: FnMut(u64, u64) -> bool> Monitor for F {
    fn tick(&mut self, done: u64, total: u64) -> Result<()> {
        if self(done, total) { Ok(()) } else { Err(Error::Interrupted) }
    }
}

/// The side of a computation that its working threads see.
#[derive(Debug, Default)]
pub struct Watch {
    stop: AtomicBool,
    done: AtomicU64,
    total: u64,
}

impl Watch {
    /// A watch over `total` units of work.
    pub fn new(total: u64) -> Self {
        Self { total, ..Self::default() }
    }

    /// Adds finished units. Call it once per ten microseconds to ten milliseconds of work.
    ///
    /// # Errors
    /// [`Error::Interrupted`] once somebody asked to stop.
    #[inline]
    pub fn advance(&self, units: u64) -> Result<()> {
        self.done.fetch_add(units, Relaxed);
        self.check()
    }

    /// Asks whether to go on, without adding work.
    ///
    /// # Errors
    /// [`Error::Interrupted`] once somebody asked to stop.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.stop.load(Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Asks every worker to stop at its next unit.
    pub fn cancel(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Units done so far, never more than the total.
    pub fn done(&self) -> u64 {
        self.done.load(Relaxed).min(self.total)
    }

    /// Units there are.
    pub fn total(&self) -> u64 {
        self.total
    }
}
