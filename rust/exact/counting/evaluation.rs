//! From points to residues: which lanes run side by side, which groups at once, and what is saved on the way.
//!
//! Points are cut into groups of up to eight lanes, as many as memory allows. Small groups run concurrently, one per thread;
//! large ones one after another, each with all threads. Neither choice changes a residue. When a checkpoint is due, and when
//! the job is stopped, every group in hand ends its step and hands back its vector, which is saved with what is finished. A job
//! that goes on splits the groups of its checkpoint into as many lanes as its own limit allows, and reads each when its turn
//! comes.

use super::checkpoint::{Checkpoint, FoundResidues, InHand, JobShape, Stored, Vector};
use super::lock::Lock;
use super::transfer::{LANES, Point, StepContext, Transfer, TransferRing, Weight, lane_weight, lanes_for};
use crate::monitor::{Monitor, Progress};
use crate::numeric::buffer::Buffer;
use crate::numeric::residue::Modulus;
use crate::numeric::ring::Lanes;
use crate::parallel::{self, Shared};
use crate::{Error, Result};
use std::collections::VecDeque;
use std::hint::black_box;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Vectors of at most so many elements stay on one thread; engines do not divide smaller blocks.
pub const GRAIN: usize = 1 << 12;
/// Jobs of at most so many additions run on the calling thread: waking a pool would cost more.
const SHORT: u64 = 200_000;
/// How long the steps in hand may go on after a stop, so that their vectors can be saved.
const GRACE: Duration = Duration::from_millis(120);
/// Bytes of vectors that are saved at a stop; larger ones would keep the caller waiting for the disk.
const SAVED_AT_STOP: usize = 64 << 20;

/// How a job may run. Nothing here changes a result.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads to use.
    pub threads: usize,
    /// Bytes that working vectors may take together.
    pub memory_limit: u64,
    /// Where to keep a checkpoint.
    pub checkpoint: Option<PathBuf>,
    /// Time between two checkpoints; `None` leaves it to the size of the vector.
    pub checkpoint_interval: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self { threads: 1, memory_limit: u64::MAX, checkpoint: None, checkpoint_interval: None }
    }
}

/// How an engine's points are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Lanes side by side in a full group.
    pub lanes: usize,
    /// Groups that run at once.
    pub concurrent: usize,
    /// Bytes of all vectors at once.
    pub bytes: u64,
}

/// The bytes of one group's vector.
fn bytes(engine: &impl Transfer, lanes: usize) -> u64 {
    (engine.len() as u64).saturating_mul(8 * lanes as u64)
}

/// Chooses lanes and concurrency for `points` points within the memory limit.
///
/// # Errors
/// [`Error::TooLarge`] if not even a single lane fits.
pub fn layout(engine: &impl Transfer, points: usize, options: &Options) -> Result<Layout> {
    let wanted = lanes_for(points);
    let fitting = LANES.into_iter().find(|&lanes| lanes <= wanted && bytes(engine, lanes) <= options.memory_limit);
    let lanes = fitting.ok_or(Error::TooLarge {
        what: "the vector of partial sums",
        needed: u128::from(bytes(engine, 1)),
        limit: u128::from(options.memory_limit),
    })?;
    let one = bytes(engine, lanes).max(1);
    let concurrent = if engine.len() <= GRAIN * 8 {
        let fitting = usize::try_from(options.memory_limit / one).unwrap_or(usize::MAX).max(1);
        options.threads.min(points.div_ceil(lanes)).min(fitting).max(1)
    } else {
        1
    };
    Ok(Layout { lanes, concurrent, bytes: one * concurrent as u64 })
}

/// How many times longer an addition of one residue takes on so many lanes than on eight.
pub fn narrow(lanes: usize) -> f64 {
    match lanes {
        8 => 1.0,
        4 => 1.5,
        _ => 11.0,
    }
}

/// Words of a vector that are asked of the system at a time, and those of a page.
const BLOCK: usize = 1 << 17;
const PAGE: usize = 512;

/// A vector of zeros whose memory is there. The system takes seconds to give gigabytes: it is asked where a stop is heard.
///
/// # Errors
/// [`Error::TooLarge`] without memory, [`Error::Interrupted`] after a stop.
pub fn fresh(len: usize, progress: &Progress) -> Result<Buffer<u64>> {
    let mut words = Buffer::zeroed(len)?;
    if len > BLOCK {
        let shared = Shared::new(&mut words);
        let ask = |(): &mut (), block: usize| {
            let start = block * BLOCK;
            // SAFETY: each word is in one block.
            let block = unsafe { shared.part(start, BLOCK.min(len - start)) };
            block.iter_mut().step_by(PAGE).for_each(|word| *word = black_box(0));
            progress.check()
        };
        parallel::tiles(len.div_ceil(BLOCK), 1, || Ok(()), ask)?;
    }
    Ok(words)
}

/// Additions of elements for one group, the unit of progress.
pub fn work(engine: &impl Transfer) -> u64 {
    (0..engine.steps()).map(|step| engine.work(step)).fold(0, u64::saturating_add)
}

/// Some of the steps of an engine whose steps add up ([`Transfer::adds_up`]): its value is their part of the sum.
#[derive(Debug)]
pub struct SomeSteps<'a, E> {
    engine: &'a E,
    steps: Range<u64>,
}

impl<'a, E: Transfer> SomeSteps<'a, E> {
    /// The steps of one part of so many, `part < parts`.
    pub fn new(engine: &'a E, part: usize, parts: usize) -> Self {
        let end = |part: usize| (u128::from(engine.steps()) * part as u128 / parts as u128) as u64;
        Self { engine, steps: end(part)..end(part + 1) }
    }
}

impl<E: Transfer> Transfer for SomeSteps<'_, E> {
    fn len(&self) -> usize {
        self.engine.len()
    }

    fn steps(&self) -> u64 {
        self.steps.end - self.steps.start
    }

    fn work(&self, step: u64) -> u64 {
        self.engine.work(self.steps.start + step)
    }

    fn roundings(&self) -> u64 {
        self.engine.roundings()
    }

    fn start<R: TransferRing>(&self, weight: &Weight<R>, state: &mut [R::Element]) {
        self.engine.start(weight, state);
    }

    fn advance<R: TransferRing>(&self, at: StepContext<'_, R>, state: &mut [R::Element]) -> Result<()> {
        self.engine.advance(StepContext { number: self.steps.start + at.number, ..at }, state)
    }

    fn finish<R: TransferRing>(&self, weight: &Weight<R>, state: &[R::Element]) -> R::Element {
        self.engine.finish(weight, state)
    }
}

/// Residues of the partition function at all points, in their order; `job` is the fingerprint a checkpoint carries.
///
/// # Errors
/// [`Error::TooLarge`] before any work if the memory limit is too small, [`Error::File`] for a checkpoint that cannot be used,
/// [`Error::Interrupted`] (or the monitor's own error) when told to stop.
pub fn residues(
    engine: &impl Transfer,
    job: u64,
    points: &[Point],
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Vec<u64>> {
    let mut layout = layout(engine, points.len(), options)?;
    let work = work(engine);
    let total = work.saturating_mul(points.len().div_ceil(layout.lanes) as u64);
    let Some(path) = &options.checkpoint else {
        if total > SHORT || engine.len() > GRAIN {
            let all = |progress: &Progress| Evaluation { engine, points, layout, work, progress }.all(None);
            return parallel::run(options.threads, total, monitor, all);
        }
        monitor.tick(0, total)?;
        layout.concurrent = 1;
        let all = |progress: &Progress| Evaluation { engine, points, layout, work, progress }.all(None);
        let found = parallel::run_here(total, all)?;
        monitor.tick(total, total)?;
        return Ok(found);
    };
    let _lock = Lock::hold(path)?;
    let mut checkpoint = Checkpoint::new(path, job).every(options.checkpoint_interval);
    checkpoint.sweep();
    let found = parallel::run(options.threads, total, monitor, |progress| {
        progress.allow(GRACE);
        Evaluation { engine, points, layout, work, progress }.all(Some(&mut checkpoint))
    })?;
    checkpoint.remove()?;
    Ok(found)
}

/// One run over an engine's points.
struct Evaluation<'a, E> {
    engine: &'a E,
    points: &'a [Point],
    layout: Layout,
    /// Additions of one group.
    work: u64,
    progress: &'a Progress,
}

/// A group of neighbouring points: not begun, or in hand.
enum PointGroup {
    Fresh(Range<usize>),
    InHand(Vector),
    Stored(Stored),
}

impl PointGroup {
    /// What a checkpoint would say of it: nothing of one not begun.
    fn in_hand(&self) -> Option<InHand<'_>> {
        match self {
            Self::Fresh(_) => None,
            Self::InHand(vector) => Some(InHand::Vector(vector)),
            Self::Stored(stored) => Some(InHand::Stored(stored)),
        }
    }
}

/// What one worker leaves when it ends or pauses.
#[derive(Default)]
struct WorkerResult {
    finished: Vec<(usize, u64)>,
    paused: Option<Vector>,
    error: Option<Error>,
}

impl<E: Transfer> Evaluation<'_, E> {
    /// The residues at all points, from what a checkpoint holds onwards.
    fn all(&self, mut checkpoint: Option<&mut Checkpoint>) -> Result<Vec<u64>> {
        let mut found = FoundResidues::new(self.points.len());
        let mut vectors = Vec::new();
        if let Some(checkpoint) = &checkpoint {
            let moduli: Vec<Modulus> = self.points.iter().map(|point| point.modulus).collect();
            let vectors_of = Some((self.engine.len(), self.engine.steps().max(1)));
            let shape = JobShape { moduli: &moduli, each: 1, vectors: vectors_of };
            if let Some(saved) = checkpoint.load(shape, self.progress)? {
                found.extend(saved.finished);
                let parts = |stored: Stored| stored.split(self.layout.lanes, self.points.len());
                vectors = saved.vectors.into_iter().flat_map(parts).collect();
            }
        }
        let mut groups = self.groups(&found, vectors);
        let mut kept = self.gain(&found, groups.iter().filter_map(PointGroup::in_hand));
        let left = groups.iter().map(|group| self.left(group)).fold(0, u64::saturating_add);
        self.progress.advance(self.progress.total().saturating_sub(left))?;
        loop {
            let outcomes = self.wave(&mut groups, checkpoint.as_ref().map(|checkpoint| checkpoint.due()));
            let (mut paused, mut error) = (Vec::new(), None);
            for outcome in outcomes {
                found.extend(outcome.finished);
                paused.extend(outcome.paused);
                error = error.or(outcome.error);
            }
            if let Some(checkpoint) = checkpoint.as_mut().filter(|_| error.is_some() || !paused.is_empty()) {
                let waiting = groups.iter().filter_map(PointGroup::in_hand);
                let mut in_hand: Vec<InHand<'_>> = paused.iter().map(InHand::Vector).chain(waiting).collect();
                if error.is_some() && in_hand.iter().map(InHand::bytes).sum::<usize>() > SAVED_AT_STOP {
                    in_hand.clear();
                }
                // A stop may have cost a group its vector: then an older checkpoint can be worth more.
                let gain = self.gain(&found, in_hand.iter().copied());
                if gain >= kept {
                    checkpoint.save(&found.finished(), in_hand.into_iter())?;
                    kept = gain;
                }
            }
            if let Some(error) = error {
                return Err(error);
            }
            paused.into_iter().for_each(|vector| groups.push_front(PointGroup::InHand(vector)));
            if groups.is_empty() {
                return Ok(found.all());
            }
        }
    }

    /// What is to be done: the vectors in hand first, then the points that are neither finished nor in hand.
    fn groups(&self, found: &FoundResidues, vectors: Vec<Stored>) -> VecDeque<PointGroup> {
        let mut open: Vec<bool> = found.0.iter().map(Option::is_none).collect();
        for vector in &vectors {
            open[self.range(vector.first, vector.lanes)].fill(false);
        }
        let open: Vec<usize> = (0..open.len()).filter(|&index| open[index]).collect();
        let fresh = open.chunk_by(|a, b| a + 1 == *b).flat_map(|run| run.chunks(self.layout.lanes));
        let fresh = fresh.map(|group| PointGroup::Fresh(group[0]..group[0] + group.len()));
        vectors.into_iter().map(PointGroup::Stored).chain(fresh).collect()
    }

    fn points_of(&self, vector: &Vector) -> Range<usize> {
        self.range(vector.first, vector.lanes)
    }

    fn range(&self, first: usize, lanes: usize) -> Range<usize> {
        first..(first + lanes).min(self.points.len())
    }

    /// Additions up to a step.
    fn done(&self, step: u64) -> u64 {
        (0..step).map(|step| self.engine.work(step)).fold(0, u64::saturating_add)
    }

    /// Additions a group still takes.
    fn left(&self, group: &PointGroup) -> u64 {
        match group {
            PointGroup::Fresh(_) => self.work,
            PointGroup::InHand(vector) => self.work.saturating_sub(self.done(vector.step)),
            PointGroup::Stored(stored) => self.work.saturating_sub(self.done(stored.step)),
        }
    }

    /// The work that a checkpoint with these residues and vectors would save, counted by points.
    fn gain<'v>(&self, found: &FoundResidues, vectors: impl Iterator<Item = InHand<'v>>) -> u128 {
        let finished = found.0.iter().flatten().count() as u128 * u128::from(self.work.max(1));
        let in_hand = vectors.map(|vector| {
            let (first, lanes, step) = vector.place();
            self.range(first, lanes).len() as u128 * u128::from(self.done(step))
        });
        finished + in_hand.sum::<u128>()
    }

    /// Works on groups until all are done, a checkpoint is due or the caller says stop; leaves the groups not begun.
    fn wave(&self, groups: &mut VecDeque<PointGroup>, due: Option<Instant>) -> Vec<WorkerResult> {
        let queue = Mutex::new(std::mem::take(groups));
        let outcomes = match self.layout.concurrent {
            1 => vec![self.worker(&queue, due)],
            n => parallel::map(n, |_| self.worker(&queue, due)),
        };
        *groups = queue.into_inner().unwrap_or_else(|e| e.into_inner());
        outcomes
    }

    /// Takes one group after another.
    fn worker(&self, queue: &Mutex<VecDeque<PointGroup>>, due: Option<Instant>) -> WorkerResult {
        let mut outcome = WorkerResult::default();
        let mut idle = None; // the vector of the group before, whose memory serves the next
        while !self.pauses(due) || idle.is_none() {
            let Some(group) = queue.lock().unwrap_or_else(|e| e.into_inner()).pop_front() else { break };
            match self.group(group, idle.take(), due) {
                Ok((vector, Some(residues))) => {
                    outcome.finished.extend(self.points_of(&vector).zip(residues));
                    idle = Some(vector);
                }
                Ok((vector, None)) => {
                    outcome.paused = Some(vector);
                    break;
                }
                Err(error) => {
                    outcome.error = Some(error);
                    break;
                }
            }
        }
        if outcome.error.is_none() && self.progress.is_stopping() {
            outcome.error = Some(Error::Interrupted);
        }
        outcome
    }

    /// Whether the vectors in hand are wanted now.
    fn pauses(&self, due: Option<Instant>) -> bool {
        self.progress.is_stopping() || due.is_some_and(|due| due <= Instant::now())
    }

    /// Works on one group; the residues at its points if it came to its end.
    fn group(
        &self,
        group: PointGroup,
        idle: Option<Vector>,
        due: Option<Instant>,
    ) -> Result<(Vector, Option<Vec<u64>>)> {
        let mut vector = match group {
            PointGroup::InHand(vector) => vector,
            PointGroup::Stored(stored) => {
                drop(idle); // its memory is wanted
                stored.read(self.progress)?
            }
            PointGroup::Fresh(points) => {
                let lanes = self.layout.lanes.min(lanes_for(points.len()));
                let len = self.engine.len() * lanes;
                let words = match idle.map(|vector| vector.words).filter(|words| words.len() == len) {
                    Some(words) => words,
                    None => fresh(len, self.progress)?,
                };
                Vector { first: points.start, lanes, step: 0, words }
            }
        };
        let residues = match vector.lanes {
            1 => self.lanes::<1>(&mut vector, due),
            4 => self.lanes::<4>(&mut vector, due),
            _ => self.lanes::<8>(&mut vector, due),
        }?;
        Ok((vector, residues))
    }

    /// One group on `L` lanes; missing lanes repeat the last point.
    fn lanes<const L: usize>(&self, vector: &mut Vector, due: Option<Instant>) -> Result<Option<Vec<u64>>>
    where
        Lanes<L>: TransferRing<Element = [u64; L]>,
    {
        let points = &self.points[self.points_of(vector)];
        let weight = lane_weight::<L>(points);
        let (state, _) = vector.words.as_chunks_mut::<L>();
        if vector.step == 0 {
            self.engine.start(&weight, state);
        }
        while vector.step < self.engine.steps() {
            let at = StepContext { weight: &weight, number: vector.step, progress: self.progress };
            self.engine.advance(at, state)?;
            vector.step += 1;
            if self.pauses(due) && vector.step < self.engine.steps() {
                return Ok(None);
            }
        }
        let value = self.engine.finish(&weight, state);
        Ok(Some(points.iter().zip(value).map(|(point, x)| point.modulus.residue(x)).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::independent_sets::Boundary;
    use crate::counting::independent_sets::square::Square;

    #[test]
    fn lanes_and_threads_are_as_many_as_the_limit_holds() {
        let engine = Square::new(10, 10, Boundary::Free).unwrap();
        let one = bytes(&engine, 1);
        let laid = |memory_limit| {
            let options = Options { threads: 4, memory_limit, ..Options::default() };
            layout(&engine, 64, &options).map(|layout| (layout.lanes, layout.concurrent, layout.bytes))
        };
        assert_eq!(laid(u64::MAX), Ok((8, 4, 32 * one)));
        assert_eq!(laid(8 * one), Ok((8, 1, 8 * one)));
        for (limit, lanes) in [(8 * one - 1, 4), (4 * one, 4), (4 * one - 1, 1), (one, 1)] {
            let (found, _, taken) = laid(limit).unwrap();
            assert!(found == lanes && taken <= limit, "{found} lanes take {taken} bytes of {limit}");
        }
        let refused =
            Err(Error::TooLarge { what: "the vector of partial sums", needed: one.into(), limit: u128::from(one) - 1 });
        assert_eq!(laid(one - 1), refused);
    }
}
