//! From points to residues: which lanes run side by side, which groups at once, and what is saved on the way.
//!
//! Points are cut into groups of up to eight lanes, as many as memory allows. Small groups run concurrently, one per thread;
//! large ones one after another, each with all threads. Neither choice changes a residue.

use super::checkpoint::{Keeper, Saved, Vector, fingerprint};
use super::transfer::{Point, Transfer, lane_weight};
use crate::monitor::{Monitor, Watch};
use crate::numeric::buffer::Buffer;
use crate::{Error, Result, parallel};
use rayon::prelude::*;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

/// Vectors of at most so many elements stay on one thread; engines do not divide smaller blocks.
pub const GRAIN: usize = 1 << 12;
/// Jobs of at most so many additions run on the calling thread: waking a pool would cost more.
const SHORT: u64 = 200_000;
/// Groups per thread between two looks at the clock for a checkpoint, where small groups run concurrently.
const WAVE: usize = 16;

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
    let wanted = points.clamp(1, 8).next_power_of_two();
    let fitting =
        [8, 4, 2, 1].into_iter().find(|&lanes| lanes <= wanted && bytes(engine, lanes) <= options.memory_limit);
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

/// Additions of elements for one group, the unit of progress.
pub fn work(engine: &impl Transfer) -> u64 {
    (0..engine.steps()).map(|step| engine.work(step)).fold(0, u64::saturating_add)
}

/// Residues of the partition function at all points, in their order.
///
/// # Errors
/// [`Error::TooLarge`] before any work if the memory limit is too small, [`Error::File`] for a checkpoint that cannot be used,
/// [`Error::Interrupted`] (or the monitor's own error) when told to stop.
pub fn residues(
    engine: &impl Transfer,
    description: &[u64],
    points: &[Point],
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Vec<u64>> {
    let mut layout = layout(engine, points.len(), options)?;
    let total = work(engine).saturating_mul(points.len().div_ceil(layout.lanes) as u64);
    if total <= SHORT && engine.len() <= GRAIN && options.checkpoint.is_none() {
        monitor.tick(0, total)?;
        layout.concurrent = 1;
        let found = parallel::run_here(total, |watch| Evaluation { engine, points, watch }.all(layout, &mut None))?;
        monitor.tick(total, total)?;
        return Ok(found);
    }
    let mut keeper = options.checkpoint.as_deref().map(|path| {
        let points = points.iter().flat_map(|point| [point.modulus.value(), point.activity]);
        let engine = [engine.len() as u64, engine.steps()];
        let keeper = Keeper::new(path, fingerprint(description.iter().copied().chain(engine).chain(points)));
        options.checkpoint_interval.map_or(keeper.clone(), |interval| keeper.every(interval))
    });
    let found = parallel::run(options.threads, total, monitor, |watch| {
        Evaluation { engine, points, watch }.all(layout, &mut keeper)
    })?;
    keeper.map_or(Ok(()), |keeper| keeper.remove())?;
    Ok(found)
}

/// One run over an engine's points.
struct Evaluation<'a, E> {
    engine: &'a E,
    points: &'a [Point],
    watch: &'a Watch,
}

impl<E: Transfer> Evaluation<'_, E> {
    /// The residues at all points, from what a checkpoint holds onwards.
    fn all(&self, layout: Layout, keeper: &mut Option<Keeper>) -> Result<Vec<u64>> {
        let mut found = vec![None; self.points.len()];
        let mut counted = 0;
        if let Some(saved) = keeper.as_ref().map(Keeper::load).transpose()?.flatten() {
            counted = self.resume(saved, layout, &mut found, keeper)?;
        }
        let open: Vec<usize> = (0..found.len()).filter(|&index| found[index].is_none()).collect();
        let groups: Vec<Range<usize>> = open
            .chunk_by(|a, b| a + 1 == *b)
            .flat_map(|run| run.chunks(layout.lanes))
            .map(|group| group[0]..group[0] + group.len())
            .collect();
        let finished_before = self.points.len().div_ceil(layout.lanes).saturating_sub(groups.len());
        self.watch.advance(work(self.engine) * finished_before.saturating_sub(counted) as u64)?;
        for wave in groups.chunks(if layout.concurrent > 1 { WAVE * layout.concurrent } else { 1 }) {
            let run = |group: &Range<usize>| self.group(group.clone(), layout.lanes);
            let answers: Vec<Result<Vec<u64>>> = match wave {
                [group] => vec![self.kept_group(group.clone(), layout.lanes, None, &found, keeper)],
                several => several.par_iter().map(run).collect(),
            };
            for (group, answer) in wave.iter().zip(answers) {
                group.clone().zip(answer?).for_each(|(index, residue)| found[index] = Some(residue));
            }
            if let Some(keeper) = keeper.as_mut().filter(|keeper| keeper.is_due()) {
                keeper.save(&finished(&found), None)?;
            }
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// Takes over what a checkpoint holds, and brings its vector to the end; returns the groups the watch has heard of.
    fn resume(
        &self,
        saved: Saved,
        layout: Layout,
        found: &mut [Option<u64>],
        keeper: &mut Option<Keeper>,
    ) -> Result<usize> {
        let mut counted = saved.finished.len() / layout.lanes;
        self.watch.advance(work(self.engine) * counted as u64)?;
        for (index, residue) in saved.finished {
            found[index] = Some(residue);
        }
        if let Some(vector) = saved.vector {
            let group = vector.first..(vector.first + vector.lanes).min(self.points.len());
            let residues = self.kept_group(group.clone(), vector.lanes, Some(vector), found, keeper)?;
            group.zip(residues).for_each(|(index, residue)| found[index] = Some(residue));
            counted += 1;
        }
        Ok(counted)
    }

    fn group(&self, group: Range<usize>, lanes: usize) -> Result<Vec<u64>> {
        self.kept_group(group, lanes, None, &[], &mut None)
    }

    /// The residues of one group of neighbouring points, at most `lanes` of them.
    fn kept_group(
        &self,
        group: Range<usize>,
        lanes: usize,
        from: Option<Vector>,
        found: &[Option<u64>],
        keeper: &mut Option<Keeper>,
    ) -> Result<Vec<u64>> {
        let lanes = if from.is_some() { lanes } else { lanes.min(group.len().next_power_of_two()) };
        match lanes {
            1 => self.lanes::<1>(group, from, found, keeper),
            2 => self.lanes::<2>(group, from, found, keeper),
            4 => self.lanes::<4>(group, from, found, keeper),
            _ => self.lanes::<8>(group, from, found, keeper),
        }
    }

    /// One group on `L` lanes; missing lanes repeat the last point.
    fn lanes<const L: usize>(
        &self,
        group: Range<usize>,
        from: Option<Vector>,
        found: &[Option<u64>],
        keeper: &mut Option<Keeper>,
    ) -> Result<Vec<u64>> {
        let points = &self.points[group.clone()];
        let weight = lane_weight::<L>(points);
        let mut state = Buffer::<[u64; L]>::zeroed(self.engine.len())?;
        let first_step = match from {
            Some(vector) => {
                state.as_flattened_mut().copy_from_slice(&vector.words);
                vector.step
            }
            None => {
                self.engine.start(&weight, &mut state);
                0
            }
        };
        self.watch.advance((0..first_step).map(|step| self.engine.work(step)).sum())?;
        for step in first_step..self.engine.steps() {
            self.engine.step(&weight, step, &mut state, self.watch)?;
            if let Some(keeper) = keeper.as_mut().filter(|keeper| keeper.is_due()) {
                keeper.save(&finished(found), Some((group.start, L, step + 1, state.as_flattened())))?;
            }
        }
        let value = self.engine.finish(&weight, &state);
        Ok(points.iter().zip(value).map(|(point, x)| point.modulus.residue(x)).collect())
    }
}

/// The residues that are there, with their places.
fn finished(found: &[Option<u64>]) -> Vec<(usize, u64)> {
    found.iter().enumerate().filter_map(|(index, residue)| Some((index, (*residue)?))).collect()
}
