//! One round of the short table: blocks go through its events in the cache, pieces of them go where they belong.
//!
//! For each independent set of heads the block is found in the table, the patterns of each event by a walk over its higher
//! vertices alone ([`super::sums`]), and the places of its pieces by sorting the pieces of all blocks.

use super::family::{Mask, count, walk};
use super::formula::{Factor, Value};
use super::listed::{Come, Operation, Place, Round, Rows};
use super::sums::{Block, CLOSED, FRESH, LOW, Lowest, Manner, Sums};
use crate::Result;
use crate::monitor::Watch;
use crate::numeric::buffer::Buffer;
use crate::numeric::ring::Ring;
use crate::numeric::simd::level;
use crate::parallel::{self, Shared};
use rayon::prelude::*;

/// Additions in one task, at the least.
const TASK: u64 = 1 << 16;
/// Heads looked at in one task, and pieces from which on they are sorted by several threads.
const HEADS: usize = 256;
const PIECES: usize = 1 << 14;
/// A round in one ring.
pub struct Work<'a, R: Ring, const W: usize> {
    ring: R,
    round: &'a Round,
    rows: Vec<Mask<W>>,
    stages: Vec<Stage<R::Element, W>>,
    /// The vertices of a block at the end.
    end: Sight<W>,
}

/// The vertices of a block.
struct Sight<const W: usize> {
    width: usize,
    rows: Vec<Mask<W>>,
    touching: Vec<Mask<W>>,
}

/// An operation in one ring.
struct Stage<E, const W: usize> {
    sight: Sight<W>,
    action: Action<E, W>,
}

enum Action<E, const W: usize> {
    Change(Change<E, W>),
    Multiply { places: Vec<Place>, factors: Vec<Factor<E>> },
}

struct Change<E, const W: usize> {
    sums: Sums<E>,
    /// The lowest vertices, whose subsets are listed.
    low: usize,
    /// The vertices above the one that comes.
    above: Mask<W>,
    hard: Mask<W>,
    blocked: Mask<W>,
}

/// An independent set of heads and the block that belongs to it.
struct Head<const W: usize> {
    set: Mask<W>,
    first: usize,
    len: usize,
    /// The first of its pieces.
    pieces: usize,
}

/// Part of a block after a round.
struct Piece<const W: usize> {
    /// Its heads and the vertices above one, as bits of the table after the round.
    key: Mask<W>,
    len: usize,
    first: usize,
}

impl<'a, R: Ring, const W: usize> Work<'a, R, W> {
    /// Prepares a round.
    pub fn new(ring: R, round: &'a Round, weights: &[Value], registers: &[R::Element]) -> Self {
        let factor = |i: usize| Factor::of(ring, weights[i], registers);
        let sight = |i: usize| {
            let frame = &round.frames[i];
            Sight { width: frame.width, rows: frame.rows.masks(), touching: frame.touching.masks() }
        };
        let low = LOW.min(1 + round.block.ilog2() as usize / 2);
        let stages = round.operations.iter().enumerate().map(|(i, operation)| {
            let sight = sight(i);
            let action = match operation {
                Operation::Change { going, come } => {
                    let low = low.max(*going).min(sight.width);
                    Action::Change(Change::new(&sight, low, *going, come.as_ref(), &factor))
                }
                Operation::Multiply { places, weights } => Action::Multiply {
                    places: places.clone(),
                    factors: (*weights..weights + (1 << places.len())).map(factor).collect(),
                },
            };
            Stage { sight, action }
        });
        Self { ring, round, rows: round.rows.masks(), stages: stages.collect(), end: sight(round.operations.len()) }
    }

    /// Does the round.
    pub fn run(&self, source: &[R::Element], target: &mut [R::Element], watch: &Watch) -> Result<()> {
        let (mut heads, pieces) = self.heads();
        let operations = self.stages.len() as u64;
        let mut tasks: Vec<&[Head<W>]> = Vec::new();
        let rest = &mut heads[..];
        let mut first = 0;
        for head in rest.iter_mut() {
            head.first = first;
            first += head.len;
        }
        let mut rest = &*rest;
        while !rest.is_empty() {
            let mut size = 0;
            let enough = |head: &Head<W>| {
                size += head.len as u64 * operations;
                size >= TASK
            };
            let (task, others) = rest.split_at(rest.iter().position(enough).map_or(rest.len(), |i| i + 1));
            tasks.push(task);
            rest = others;
        }
        let target = Shared::new(target);
        let block = || Buffer::zeroed(self.round.block as usize);
        let task = |[one, other]: &mut [Buffer<R::Element>; 2], number: usize| {
            let heads = tasks[number];
            let patterns = Vec::new();
            let mut task = Task { work: self, pieces: &pieces, source, target: &target, one, other, patterns };
            heads.iter().for_each(|head| task.run(head));
            watch.advance(heads.iter().map(|head| head.len as u64 * operations).sum())
        };
        parallel::tiles(tasks.len(), 1, || Ok([block()?, block()?]), task)
    }

    /// The independent sets of heads in rising order, with all pieces of their blocks.
    fn heads(&self) -> (Vec<Head<W>>, Vec<Piece<W>>) {
        let mut sets = Vec::new();
        let all = Mask::below(self.round.width);
        walk(&self.rows, self.round.local, Mask::EMPTY, all, &mut |set, allowed| sets.push((set, allowed)));
        let sized = |sets: &[(Mask<W>, Mask<W>)]| {
            let (mut heads, mut pieces) = (Vec::with_capacity(sets.len()), Vec::new());
            for &(set, allowed) in sets {
                let set = set.shifted(self.round.local);
                let len = count(&self.rows, allowed, &mut { u64::MAX }).unwrap_or(0) as usize;
                heads.push(Head { set, first: 0, len, pieces: pieces.len() });
                let above = set.members().fold(Mask::EMPTY, |key: Mask<W>, head| key.with(self.round.heads[head]));
                walk(&self.end.rows, self.round.near, Mask::EMPTY, self.end.allowed(set), &mut |far, allowed| {
                    let far = far.shifted(self.round.near);
                    let key = far.members().fold(above, |key, bit| key.with(self.round.far[bit]));
                    let len = count(&self.end.rows, allowed, &mut { u64::MAX }).unwrap_or(0) as usize;
                    pieces.push(Piece { key, len, first: 0 });
                });
            }
            (heads, pieces)
        };
        let found: Vec<_> = match sets.len() {
            0..HEADS => vec![sized(&sets)],
            _ => sets.par_chunks(HEADS).map(sized).collect(),
        };
        let (mut heads, mut pieces) = (Vec::with_capacity(sets.len()), Vec::new());
        for (some, more) in found {
            heads.extend(some.into_iter().map(|head| Head { pieces: head.pieces + pieces.len(), ..head }));
            pieces.extend(more);
        }
        let mut order: Vec<(Mask<W>, u32)> = (0..).zip(&pieces).map(|(i, piece)| (piece.key, i)).collect();
        match order.len() {
            0..PIECES => order.sort_unstable(),
            _ => order.par_sort_unstable(),
        }
        let mut first = 0;
        for (_, i) in order {
            let piece = &mut pieces[i as usize];
            piece.first = first;
            first += piece.len;
        }
        (heads, pieces)
    }
}

impl<const W: usize> Sight<W> {
    /// The vertices of a block that are not neighbors of its heads.
    fn allowed(&self, heads: Mask<W>) -> Mask<W> {
        heads.members().fold(Mask::below(self.width), |allowed, head| allowed.without(self.touching[head]))
    }
}

impl<E: Copy + PartialEq, const W: usize> Change<E, W> {
    fn new(
        sight: &Sight<W>,
        low: usize,
        going: usize,
        come: Option<&Come>,
        factor: &impl Fn(usize) -> Factor<E>,
    ) -> Self {
        let place = come.and_then(|come| come.place).map(|place| going + place);
        let manner = match (come, place) {
            (None, _) => Manner::Lose,
            (_, None) => Manner::Merge,
            (_, Some(place)) if place <= low => Manner::Near,
            _ => Manner::Far,
        };
        let first = |rows: &Rows| rows.masks()[0];
        let hard = come.map_or(Mask::EMPTY, |come| first(&come.hard));
        let blocked = come.map_or(Mask::EMPTY, |come| first(&come.blocked));
        let above = place.map_or(Mask::EMPTY, |place| Mask::below(sight.width).without(Mask::below(place)));
        let lowest = |mask: Mask<W>| Mask([mask.and(Mask::below(low)).0[0]]);
        let rows: Vec<Mask<1>> = sight.rows[..low].iter().map(|&row| lowest(row)).collect();
        let going = Mask::below(going);
        let lowest = Lowest { rows: &rows, going, above: lowest(above), hard: lowest(hard) };
        let factors = [0, 1].map(|i| come.map_or(Factor::One, |come| factor(come.weights + i)));
        Self { sums: Sums::new(manner, &lowest, factors), low, above, hard, blocked }
    }

    /// The patterns of a block, one after another.
    fn patterns(&self, sight: &Sight<W>, heads: Mask<W>, list: &mut Vec<u8>) {
        list.clear();
        let closed = heads.meets(self.blocked);
        let mut last = None;
        walk(&sight.rows, self.low, Mask::EMPTY, sight.allowed(heads), &mut |set, allowed| {
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

/// Some blocks of a round.
struct Task<'t, R: Ring, const W: usize> {
    work: &'t Work<'t, R, W>,
    pieces: &'t [Piece<W>],
    source: &'t [R::Element],
    target: &'t Shared<R::Element>,
    one: &'t mut [R::Element],
    other: &'t mut [R::Element],
    patterns: Vec<u8>,
}

impl<R: Ring, const W: usize> Task<'_, R, W> {
    /// Takes the block of a set of heads through the round.
    fn run(&mut self, head: &Head<W>) {
        let work = self.work;
        let block = &self.source[head.first..head.first + head.len];
        let (mut len, mut begun) = (head.len, false);
        for stage in &work.stages {
            match &stage.action {
                Action::Change(change) => {
                    change.patterns(&stage.sight, head.set, &mut self.patterns);
                    let source = if begun { &*self.one } else { block };
                    let (sums, patterns, target) = (&change.sums, &self.patterns[..], &mut *self.other);
                    len = work.ring.dispatch(level(), Block { ring: work.ring, sums, patterns, source, target });
                    std::mem::swap(&mut self.one, &mut self.other);
                }
                Action::Multiply { places, factors } => {
                    if !begun {
                        self.one[..len].copy_from_slice(block);
                    }
                    multiply(work.ring, &stage.sight, head.set, places, factors, &mut self.one[..len]);
                }
            }
            begun = true;
        }
        let mut rest = &self.one[..len];
        for piece in &self.pieces[head.pieces..] {
            let Some(elements) = rest.split_off(..piece.len) else { break };
            // SAFETY: the pieces of all blocks divide the table among them.
            unsafe { self.target.part(piece.first, piece.len) }.copy_from_slice(elements);
            if rest.is_empty() {
                break;
            }
        }
    }
}

/// Multiplies the elements of a block by the weights for their states.
fn multiply<R: Ring, const W: usize>(
    ring: R,
    sight: &Sight<W>,
    heads: Mask<W>,
    places: &[Place],
    factors: &[Factor<R::Element>],
    block: &mut [R::Element],
) {
    let mut elements = block.iter_mut();
    walk(&sight.rows, 0, Mask::EMPTY, sight.allowed(heads), &mut |set, _| {
        let occupied = |place: &Place| match *place {
            Place::Local(bit) => set.has(bit),
            Place::Head(head) => heads.has(head),
        };
        let pattern: usize = places.iter().enumerate().map(|(i, place)| usize::from(occupied(place)) << i).sum();
        if let Some(x) = elements.next()
            && !matches!(factors[pattern], Factor::One)
        {
            *x = ring.fold(factors[pattern].times(ring, *x));
        }
    });
}
