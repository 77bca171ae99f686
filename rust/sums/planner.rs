//! What planning may spend on one graph, and who may stop it.
//!
//! Orders are improved, and sizes counted, as long as the *effort* lasts: so many changes of a frontier or branchings, some
//! tens of nanoseconds each. It is counted and not timed, so that the same graph has the same plan everywhere. A graph has one
//! effort for all of its components, orders and tables. Work that has begun ends soon after a stop, with what it has; the
//! caller then asks [`Planner::check`] and forgets it.
//!
//! A count that needs no plan ([`Rival`]) may take turns with planning, each as long as the other: where it ends first, planning
//! stops. It goes on as long as it promises to end in time, by the part of its work that is done. Once one engine is planned, another
//! is looked for no longer than half of the time that the first will take. The aim is that no count takes longer than twice what the best engine
//! alone would, and a millisecond; a test measures that on graphs of many kinds.

use crate::error::COUNTLESS;
use crate::graphs::Graph;
use crate::monitor::Progress;
use crate::{Error, Result};
use std::cell::{Cell, RefCell};

/// Changes for one graph: a second or two.
const EFFORT: u64 = 1 << 25;
/// Changes of a turn: a tenth of a millisecond.
const TURN: u64 = 1 << 12;
/// Seconds of a change, about.
const CHANGE: f64 = 3e-8;
/// Additions of eight residues that take as long as a change, about.
const ADDITIONS: f64 = 6.0;
/// Changes that a rival is given before anything is planned: a quarter of a millisecond. Where it promises to end soon it is
/// given twice as many and, where edges are many, more.
const LEAD: u64 = 1 << 13;
/// A rival goes on beside planning as long as its forecast is so many times what both have made at most; once an engine is
/// planned, so many times what is left until that would be done. Forecasts are several times too high in the beginning.
const HOPE: f64 = 8.0;
const LAST_HOPE: f64 = 1.0;

fn changes_in(seconds: f64) -> u64 {
    (seconds / CHANGE) as u64
}

/// What is refused where a search ended so: the best order that is known may say nothing of the graph.
const SPENT: &str = "planning ended with its effort, before it had a tree decomposition (an `order` of small frontiers would \
                     help); the table of the best order it has";

/// A count without a plan; its effort is in changes of a frontier.
pub trait Rival: std::fmt::Debug {
    /// Works for about so much effort more.
    fn advance(&mut self, effort: u64);
    /// The effort so far.
    fn effort(&self) -> u64;
    /// About how much effort it will have been in all.
    fn forecast(&self) -> f64;
    /// Whether the count is found.
    fn has_found(&self) -> bool;
    /// Whether there is nothing more to do: the count is found, or given up.
    fn is_over(&self) -> bool;
}

/// The effort that is left for one graph.
#[derive(Debug)]
pub struct Planner<'w> {
    progress: &'w Progress,
    left: Cell<u64>,
    /// Whether a search that would have gone on was ended by its effort.
    is_spent: Cell<bool>,
    /// Groups of eight residues that the planned engine will compute.
    groups: f64,
    /// Changes made, those that are not spent yet among them.
    made: Cell<u64>,
    /// Changes made by when nothing is improved any more.
    until: Cell<u64>,
    /// What takes turns with planning, until it is over.
    rival: RefCell<Option<&'w mut dyn Rival>>,
    /// Whether it found the count.
    is_beaten: Cell<bool>,
}

impl<'w> Planner<'w> {
    /// The effort for one graph.
    pub fn new(progress: &'w Progress) -> Self {
        Self {
            progress,
            left: Cell::new(EFFORT),
            is_spent: Cell::new(false),
            groups: 1.0,
            made: Cell::new(0),
            until: Cell::new(u64::MAX),
            rival: RefCell::new(None),
            is_beaten: Cell::new(false),
        }
    }

    /// The same for an engine that will compute so many residues: the more, the longer it may be planned.
    pub fn for_residues(self, residues: f64) -> Self {
        Self { groups: (residues / 8.0).max(1.0), ..self }
    }

    /// The same in turns with a rival, which is a little ahead: by less than the first orders take on such a graph.
    pub fn beside(self, rival: Option<&'w mut dyn Rival>, graph: &Graph) -> Self {
        let planner = Self { rival: RefCell::new(rival), ..self };
        planner.make_hoping(LEAD, f64::INFINITY);
        planner.make(LEAD + LEAD * graph.edges().len() as u64 / (2 * graph.vertices().max(1) as u64));
        planner
    }

    /// Says that so many changes were made, and lets the rival catch up.
    #[inline]
    pub fn make(&self, changes: u64) {
        self.make_hoping(changes, HOPE);
    }

    fn make_hoping(&self, changes: u64, hope: f64) {
        let made = self.made.get().saturating_add(changes);
        self.made.set(made);
        let rival = &mut *self.rival.borrow_mut();
        if let Some(other) = rival {
            let goes_on = |other: &dyn Rival| {
                other.effort() + TURN <= made && !other.is_over() && other.forecast() <= hope * made as f64
            };
            while goes_on(&**other) && !self.progress.is_stopping() {
                other.advance(TURN);
            }
            if other.has_found() {
                self.is_beaten.set(true);
            } else if other.is_over() {
                *rival = None; // a number was too long
            }
        }
    }

    /// Lets the rival go on for so many seconds, those that the planned engine will take, but no longer than a graph may be
    /// planned: until then nothing is kept of a job, and a forecast waits for it.
    pub fn make_seconds(&self, seconds: f64) {
        self.make_hoping(changes_in(seconds).min(EFFORT), LAST_HOPE);
    }

    /// An engine is planned that takes so many seconds: from now on half of them may be spent on finding another.
    pub fn allow_seconds(&self, seconds: f64) {
        self.until.set(self.made.get().saturating_add(changes_in(0.5 * seconds)));
    }

    /// Whether nothing is improved any more.
    pub fn is_late(&self) -> bool {
        self.made.get() >= self.until.get()
    }

    /// How many additions of eight residues take as long as so many changes, when all residues make each of them.
    pub fn additions(&self, changes: u64) -> f64 {
        changes as f64 * ADDITIONS / self.groups
    }

    /// Not more than is wanted, nor than the given part of what is left.
    pub fn granted(&self, wanted: u64, part: u64) -> u64 {
        wanted.min(self.left.get() / part)
    }

    /// Takes what was used.
    pub fn spend(&self, used: u64) {
        self.left.set(self.left.get().saturating_sub(used));
    }

    /// Says that a search ended with its effort, not with an answer.
    pub fn run_out(&self) {
        self.is_spent.set(true);
    }

    /// What is refused: a table of so many bytes or, if no memory could hold it, what planning came to before its effort ran out.
    pub fn refused(&self, what: &'static str, needed: u128) -> &'static str {
        if self.is_spent.get() && needed == COUNTLESS { SPENT } else { what }
    }

    /// Who may stop it.
    pub fn progress(&self) -> &'w Progress {
        self.progress
    }

    /// Whether to come to an end.
    #[inline]
    pub fn is_stopping(&self) -> bool {
        self.progress.is_stopping() || self.is_beaten.get()
    }

    /// Whether the rival found the count.
    pub fn is_beaten(&self) -> bool {
        self.is_beaten.get()
    }

    /// Whether to go on.
    ///
    /// # Errors
    /// [`Error::Interrupted`] once somebody asked to stop, or the rival was faster.
    pub fn check(&self) -> Result<()> {
        if self.is_beaten.get() { Err(Error::Interrupted) } else { self.progress.check() }
    }
}
