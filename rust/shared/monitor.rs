//! Progress and interruption, without knowing who watches.
//!
//! A [`Monitor`] lives on the thread that called: it hears how far the work is and may stop it. A [`Progress`] is what the
//! working threads share: they add to its counter and look at its flag, nothing else. `parallel::run` joins the two.

use crate::{Error, Result};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

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
pub struct Progress {
    stop: AtomicBool,
    done: AtomicU64,
    total: u64,
    /// How long work that has begun may go on after a stop.
    grace: OnceLock<Duration>,
    /// When it has to end.
    deadline: OnceLock<Instant>,
}

impl Progress {
    /// Progress through `total` units of work.
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
    /// [`Error::Interrupted`] once somebody asked to stop and the grace allowed is over.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.is_stopping() && self.deadline.get().is_none_or(|end| *end <= Instant::now()) {
            return Err(Error::Interrupted);
        }
        Ok(())
    }

    /// [`Self::check`] at every four thousandth of many steps.
    ///
    /// # Errors
    /// As [`Self::check`].
    #[inline]
    pub fn check_at(&self, step: usize) -> Result<()> {
        if step.is_multiple_of(1 << 12) { self.check() } else { Ok(()) }
    }

    /// Lets a step that has begun go on for so long after a stop, so that its state can be saved. The work looks at
    /// [`Self::is_stopping`] between its steps.
    pub fn allow(&self, grace: Duration) {
        self.grace.get_or_init(|| grace);
    }

    /// Whether somebody asked to stop.
    #[inline]
    pub fn is_stopping(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Asks every worker to stop: at its next unit, or within the grace allowed.
    pub fn cancel(&self) {
        if let Some(grace) = self.grace.get() {
            self.deadline.get_or_init(|| Instant::now() + *grace);
        }
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
