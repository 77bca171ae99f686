//! One stage of the independent-set table: blocks go through its events in the cache, segments of them go where they belong.
//!
//! For each independent set of outer vertices the block is found in the table, the patterns of each event by a walk over its higher
//! vertices alone ([`super::sums`]), and the places of its segments by sorting the segments of all blocks.
//!
//! Source: that of [`super::set_table`], whose worked example follows one block.

use super::circuit::{Factor, Node};
use super::family::{Mask, count, walk};
use super::stage::{Introduction, Location, NeighborRows, Stage, StageStep};
use super::sums::{CLOSED, FRESH, LOW, Lowest, SubsetSums, SumBlock, SumStep};
use crate::Result;
use crate::monitor::Progress;
use crate::numeric::buffer::Buffer;
use crate::numeric::dispatch::level;
use crate::numeric::ring::Ring;
use crate::parallel::{self, Shared};
use rayon::prelude::*;

/// Additions in one task, at the least.
const TASK: u64 = 1 << 16;
/// Heads looked at in one task, and segments from which on they are sorted by several threads.
const OUTER_SETS: usize = 256;
const SEGMENTS: usize = 1 << 14;
/// A stage in one ring.
pub struct StageWork<'a, R: Ring, const W: usize> {
    ring: R,
    stage: &'a Stage,
    rows: Vec<Mask<W>>,
    stages: Vec<PreparedEvent<R::Element, W>>,
    /// The vertices of a block at the end.
    end: LocalGraph<W>,
}

/// The vertices of a block.
struct LocalGraph<const W: usize> {
    width: usize,
    rows: Vec<Mask<W>>,
    touching: Vec<Mask<W>>,
}

/// An operation in one ring.
struct PreparedEvent<E, const W: usize> {
    sight: LocalGraph<W>,
    action: EventAction<E, W>,
}

enum EventAction<E, const W: usize> {
    Change(Change<E, W>),
    Multiply { places: Vec<Location>, factors: Vec<Factor<E>> },
}

struct Change<E, const W: usize> {
    sums: SubsetSums<E>,
    /// The lowest vertices, whose subsets are listed.
    low: usize,
    /// The vertices above the one introduced.
    above: Mask<W>,
    hard: Mask<W>,
    blocked: Mask<W>,
}

/// An independent set of outer vertices and the block that belongs to it.
struct OuterSet<const W: usize> {
    set: Mask<W>,
    first: usize,
    len: usize,
    /// The first of its segments.
    segments: usize,
}

/// Part of a block after a stage.
struct Segment<const W: usize> {
    /// Its outer vertices and the vertices above one, as bits of the table after the stage.
    key: Mask<W>,
    len: usize,
    first: usize,
}

impl<'a, R: Ring, const W: usize> StageWork<'a, R, W> {
    /// Prepares a stage.
    pub fn new(ring: R, stage: &'a Stage, weights: &[Node], registers: &[R::Element]) -> Self {
        let factor = |i: usize| Factor::of(ring, weights[i], registers);
        let sight = |i: usize| {
            let frame = &stage.frames[i];
            LocalGraph { width: frame.width, rows: frame.rows.masks(), touching: frame.touching.masks() }
        };
        let low = LOW.min(1 + stage.block.ilog2() as usize / 2);
        let stages = stage.operations.iter().enumerate().map(|(i, operation)| {
            let sight = sight(i);
            let action = match operation {
                StageStep::Change { forgotten_now, introduction } => {
                    let low = low.max(*forgotten_now).min(sight.width);
                    EventAction::Change(Change::new(&sight, low, *forgotten_now, introduction.as_ref(), &factor))
                }
                StageStep::Multiply { places, weights } => EventAction::Multiply {
                    places: places.clone(),
                    factors: (*weights..weights + (1 << places.len())).map(factor).collect(),
                },
            };
            PreparedEvent { sight, action }
        });
        Self { ring, stage, rows: stage.rows.masks(), stages: stages.collect(), end: sight(stage.operations.len()) }
    }

    /// Does the stage.
    pub fn run(&self, source: &[R::Element], target: &mut [R::Element], progress: &Progress) -> Result<()> {
        let (mut outer, segments) = listed(self.stage, &self.rows, &self.end);
        let operations = self.stages.len() as u64;
        let mut tasks: Vec<&[OuterSet<W>]> = Vec::new();
        let rest = &mut outer[..];
        let mut first = 0;
        for outer_set in rest.iter_mut() {
            outer_set.first = first;
            first += outer_set.len;
        }
        let mut rest = &*rest;
        while !rest.is_empty() {
            let mut size = 0;
            let enough = |outer_set: &OuterSet<W>| {
                size += outer_set.len as u64 * operations;
                size >= TASK
            };
            let (task, others) = rest.split_at(rest.iter().position(enough).map_or(rest.len(), |i| i + 1));
            tasks.push(task);
            rest = others;
        }
        let target = Shared::new(target);
        let block = || Buffer::zeroed(self.stage.block as usize);
        let task = |[one, other]: &mut [Buffer<R::Element>; 2], number: usize| {
            let outer = tasks[number];
            let patterns = Vec::new();
            let mut task = Task { work: self, segments: &segments, source, target: &target, one, other, patterns };
            outer.iter().for_each(|outer_set| task.run(outer_set));
            progress.advance(outer.iter().map(|outer_set| outer_set.len as u64 * operations).sum())
        };
        parallel::tiles(tasks.len(), 1, || Ok([block()?, block()?]), task)
    }
}

/// The independent sets of outer vertices in rising order, with all segments of their blocks. No ring is needed to list them.
fn listed<const W: usize>(stage: &Stage, rows: &[Mask<W>], end: &LocalGraph<W>) -> (Vec<OuterSet<W>>, Vec<Segment<W>>) {
    let mut sets = Vec::new();
    let all = Mask::below(stage.width);
    walk(rows, stage.local, Mask::EMPTY, all, &mut |set, allowed| sets.push((set, allowed)));
    let sized = |sets: &[(Mask<W>, Mask<W>)]| {
        let (mut outer, mut segments) = (Vec::with_capacity(sets.len()), Vec::new());
        for &(set, allowed) in sets {
            let set = set.shifted(stage.local);
            let len = count(rows, allowed, &mut { u64::MAX }).unwrap_or(0) as usize;
            outer.push(OuterSet { set, first: 0, len, segments: segments.len() });
            let above = set.members().fold(Mask::EMPTY, |key: Mask<W>, outer_set| key.with(stage.outer[outer_set]));
            walk(&end.rows, stage.near, Mask::EMPTY, end.allowed(set), &mut |far, allowed| {
                let far = far.shifted(stage.near);
                let key = far.members().fold(above, |key, bit| key.with(stage.far[bit]));
                let len = count(&end.rows, allowed, &mut { u64::MAX }).unwrap_or(0) as usize;
                segments.push(Segment { key, len, first: 0 });
            });
        }
        (outer, segments)
    };
    let found: Vec<_> = match sets.len() {
        0..OUTER_SETS => vec![sized(&sets)],
        _ => {
            let parts: Vec<_> = sets.chunks(OUTER_SETS).collect();
            parallel::map(parts.len(), |i| sized(parts[i]))
        }
    };
    let (mut outer, mut segments) = (Vec::with_capacity(sets.len()), Vec::new());
    for (some, more) in found {
        outer.extend(
            some.into_iter().map(|outer_set| OuterSet { segments: outer_set.segments + segments.len(), ..outer_set }),
        );
        segments.extend(more);
    }
    let mut order: Vec<(Mask<W>, u32)> = (0..).zip(&segments).map(|(i, segment)| (segment.key, i)).collect();
    match order.len() {
        0..SEGMENTS => order.sort_unstable(),
        _ => order.par_sort_unstable(),
    }
    let mut first = 0;
    for (_, i) in order {
        let segment = &mut segments[i as usize];
        segment.first = first;
        first += segment.len;
    }
    (outer, segments)
}

impl<const W: usize> LocalGraph<W> {
    /// The vertices of a block that are not neighbors of its outer vertices.
    fn allowed(&self, outer: Mask<W>) -> Mask<W> {
        outer.members().fold(Mask::below(self.width), |allowed, outer_set| allowed.without(self.touching[outer_set]))
    }
}

impl<E: Copy + PartialEq, const W: usize> Change<E, W> {
    fn new(
        sight: &LocalGraph<W>,
        low: usize,
        forgotten_now: usize,
        introduction: Option<&Introduction>,
        factor: &impl Fn(usize) -> Factor<E>,
    ) -> Self {
        let place = introduction.and_then(|introduction| introduction.place).map(|place| forgotten_now + place);
        let sum_step = match (introduction, place) {
            (None, _) => SumStep::Lose,
            (_, None) => SumStep::Merge,
            (_, Some(place)) if place <= low => SumStep::Near,
            _ => SumStep::Far,
        };
        let first = |rows: &NeighborRows| rows.masks()[0];
        let hard = introduction.map_or(Mask::EMPTY, |introduction| first(&introduction.hard));
        let blocked = introduction.map_or(Mask::EMPTY, |introduction| first(&introduction.blocked));
        let above = place.map_or(Mask::EMPTY, |place| Mask::below(sight.width).without(Mask::below(place)));
        let lowest = |mask: Mask<W>| Mask([mask.and(Mask::below(low)).0[0]]);
        let rows: Vec<Mask<1>> = sight.rows[..low].iter().map(|&row| lowest(row)).collect();
        let forgotten_now = Mask::below(forgotten_now);
        let lowest = Lowest { rows: &rows, forgotten_now, above: lowest(above), hard: lowest(hard) };
        let factors = [0, 1].map(|i| introduction.map_or(Factor::One, |introduction| factor(introduction.weights + i)));
        Self { sums: SubsetSums::new(sum_step, &lowest, factors), low, above, hard, blocked }
    }

    /// The patterns of a block, one after another.
    fn patterns(&self, sight: &LocalGraph<W>, outer: Mask<W>, list: &mut Vec<u8>) {
        list.clear();
        let closed = outer.meets(self.blocked);
        let mut last = None;
        walk(&sight.rows, self.low, Mask::EMPTY, sight.allowed(outer), &mut |set, allowed| {
            let mut mark = allowed.0[0] as u8;
            if closed || set.meets(self.hard) {
                mark |= CLOSED;
            }
            if last != Some(set.and(self.above)) {
                last = Some(set.and(self.above));
                mark |= FRESH;
            }
            list.push(mark);
        });
    }
}

/// Some blocks of a stage.
struct Task<'t, R: Ring, const W: usize> {
    work: &'t StageWork<'t, R, W>,
    segments: &'t [Segment<W>],
    source: &'t [R::Element],
    target: &'t Shared<R::Element>,
    one: &'t mut [R::Element],
    other: &'t mut [R::Element],
    patterns: Vec<u8>,
}

impl<R: Ring, const W: usize> Task<'_, R, W> {
    /// Takes the block of an independent set of outer vertices through the stage.
    fn run(&mut self, outer_set: &OuterSet<W>) {
        let work = self.work;
        let block = &self.source[outer_set.first..outer_set.first + outer_set.len];
        let (mut len, mut begun) = (outer_set.len, false);
        for stage in &work.stages {
            match &stage.action {
                EventAction::Change(change) => {
                    change.patterns(&stage.sight, outer_set.set, &mut self.patterns);
                    let source = if begun { &*self.one } else { block };
                    let (sums, patterns, target) = (&change.sums, &self.patterns[..], &mut *self.other);
                    len = work.ring.dispatch(level(), SumBlock { ring: work.ring, sums, patterns, source, target });
                    std::mem::swap(&mut self.one, &mut self.other);
                }
                EventAction::Multiply { places, factors } => {
                    if !begun {
                        self.one[..len].copy_from_slice(block);
                    }
                    multiply(work.ring, &stage.sight, outer_set.set, places, factors, &mut self.one[..len]);
                }
            }
            begun = true;
        }
        let mut rest = &self.one[..len];
        for segment in &self.segments[outer_set.segments..] {
            let Some(elements) = rest.split_off(..segment.len) else { break };
            // SAFETY: the segments of all blocks divide the table among them.
            unsafe { self.target.part(segment.first, segment.len) }.copy_from_slice(elements);
            if rest.is_empty() {
                break;
            }
        }
    }
}

/// Multiplies the elements of a block by the weights for their states.
fn multiply<R: Ring, const W: usize>(
    ring: R,
    sight: &LocalGraph<W>,
    outer: Mask<W>,
    places: &[Location],
    factors: &[Factor<R::Element>],
    block: &mut [R::Element],
) {
    let mut elements = block.iter_mut();
    walk(&sight.rows, 0, Mask::EMPTY, sight.allowed(outer), &mut |set, _| {
        let occupied = |place: &Location| match *place {
            Location::Local(bit) => set.has(bit),
            Location::OuterSet(outer_set) => outer.has(outer_set),
        };
        let pattern: usize = places.iter().enumerate().map(|(i, place)| usize::from(occupied(place)) << i).sum();
        if let Some(x) = elements.next()
            && !matches!(factors[pattern], Factor::One)
        {
            *x = ring.fold(factors[pattern].times(ring, *x));
        }
    });
}
