//! One round of the short table: blocks go through its events in the cache, pieces of them go where they belong.
//!
//! Within a block the subsets of the lowest six vertices come in runs that look the same wherever the same of the six are
//! allowed. So each operation is worked out once for each of their 64 subsets, as lists of sums with their places, and a
//! block is a sequence of such patterns, found by a walk over its higher vertices alone.

use super::family::{Mask, count, walk};
use super::formula::{Factor, Value};
use super::listed::{Operation, Place, Round};
use super::scratch::{Scratch, Shared};
use crate::Result;
use crate::monitor::Watch;
use crate::numeric::ring::Ring;
use crate::numeric::simd::{Arithmetic, Kernel, level};
use rayon::prelude::*;

/// The lowest vertices, whose subsets are listed.
const LOW: usize = 6;
/// Additions in one task, at the least.
const TASK: u64 = 1 << 16;
/// Mark of a pattern whose higher part has a neighbor of the vertex that comes.
const CLOSED: u8 = 1 << 6;
/// Mark of the first pattern after a change above the vertex that comes.
const FRESH: u8 = 1 << 7;

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

/// Where results go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// No vertex comes.
    Lose,
    /// One comes and goes at once.
    Merge,
    /// One comes among the lowest.
    Near,
    /// One comes above them.
    Far,
}

struct Change<E, const W: usize> {
    manner: Manner,
    low: usize,
    /// The vertices above the one that comes.
    above: Mask<W>,
    hard: Mask<W>,
    blocked: Mask<W>,
    factors: [Factor<E>; 2],
    patterns: Vec<Pattern>,
    runs: Vec<Run>,
}

/// What happens where given ones of the lowest vertices are allowed.
#[derive(Clone, Copy, Debug, Default)]
struct Pattern {
    /// Elements before.
    before: u32,
    /// Subsets of what stays, and those of them without a neighbor of the vertex that comes.
    stays: u32,
    open: u32,
    /// Its runs: of one, two and more elements, each first those with a neighbor and then those without.
    classes: [u32; 7],
}

/// Elements that agree on what stays.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    first: u16,
    len: u16,
    /// The number of the run.
    number: u16,
    /// Where the sum goes, and where the first element goes if a vertex comes.
    sum: u16,
    inside: u16,
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
        let scratch = || [0; 2].map(|_| Scratch::new(self.round.block as usize));
        let task = |scratch: &mut [Scratch<R::Element>; 2], heads: &[Head<W>]| {
            let [one, other] = scratch.each_mut().map(Scratch::elements);
            let task = Task { work: self, heads, pieces: &pieces, source, target: &target, one, other };
            self.ring.dispatch(level(), task);
            watch.advance(heads.iter().map(|head| head.len as u64 * operations).sum())
        };
        match tasks[..] {
            [only] => task(&mut scratch(), only),
            _ => tasks.into_par_iter().try_for_each_init(scratch, task),
        }
    }

    /// The independent sets of heads in rising order, with all pieces of their blocks.
    fn heads(&self) -> (Vec<Head<W>>, Vec<Piece<W>>) {
        let mut sets = Vec::new();
        let all = Mask::below(self.round.width);
        walk(&self.rows, self.round.local, Mask::EMPTY, all, &mut |set, allowed| sets.push((set, allowed)));
        let sized = |&(set, allowed): &(Mask<W>, Mask<W>)| {
            let set = set.shifted(self.round.local);
            let len = count(&self.rows, allowed, &mut { u64::MAX }).unwrap_or(0) as usize;
            let mut pieces = Vec::new();
            let above = set.members().fold(Mask::EMPTY, |key: Mask<W>, head| key.with(self.round.heads[head]));
            walk(&self.end.rows, self.round.near, Mask::EMPTY, self.end.allowed(set), &mut |far, allowed| {
                let far = far.shifted(self.round.near);
                let key = far.members().fold(above, |key, bit| key.with(self.round.far[bit]));
                let len = count(&self.end.rows, allowed, &mut { u64::MAX }).unwrap_or(0) as usize;
                pieces.push(Piece { key, len, first: 0 });
            });
            (Head { set, first: 0, len, pieces: 0 }, pieces)
        };
        let found: Vec<_> = match sets.len() {
            0..64 => sets.iter().map(sized).collect(),
            _ => sets.par_iter().map(sized).collect(),
        };
        let mut heads = Vec::with_capacity(found.len());
        let mut pieces = Vec::new();
        for (mut head, more) in found {
            head.pieces = pieces.len();
            heads.push(head);
            pieces.extend(more);
        }
        let mut order: Vec<(Mask<W>, u32)> = (0..).zip(&pieces).map(|(i, piece)| (piece.key, i)).collect();
        order.sort();
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
        come: Option<&super::listed::Come>,
        factor: &impl Fn(usize) -> Factor<E>,
    ) -> Self {
        let place = come.and_then(|come| come.place).map(|place| going + place);
        let manner = match (come, place) {
            (None, _) => Manner::Lose,
            (_, None) => Manner::Merge,
            (_, Some(place)) if place <= low => Manner::Near,
            _ => Manner::Far,
        };
        let first = |rows: &super::listed::Rows| rows.masks()[0];
        let hard = come.map_or(Mask::EMPTY, |come| first(&come.hard));
        let above = place.map_or(Mask::EMPTY, |place| Mask::below(sight.width).without(Mask::below(place)));
        let mut change = Self {
            manner,
            low,
            above,
            hard,
            blocked: come.map_or(Mask::EMPTY, |come| first(&come.blocked)),
            factors: [0, 1].map(|i| come.map_or(Factor::One, |come| factor(come.weights + i))),
            patterns: Vec::with_capacity(1 << low),
            runs: Vec::new(),
        };
        let rows: Vec<Mask<1>> = sight.rows[..low].iter().map(|row| Mask([row.0[0]])).collect();
        for allowed in 0..1 << low {
            let pattern = change.pattern(&rows, Mask([allowed]), Mask::below(going));
            change.patterns.push(pattern);
        }
        change
    }

    /// The runs where given ones of the lowest vertices are allowed.
    fn pattern(&mut self, rows: &[Mask<1>], allowed: Mask<1>, going: Mask<1>) -> Pattern {
        let (above, hard) = (Mask([self.above.0[0]]), Mask([self.hard.0[0]]));
        let mut found: Vec<(Run, Mask<1>)> = Vec::new();
        let mut before = 0;
        walk(rows, 0, Mask::EMPTY, allowed, &mut |set, _| {
            match found.last_mut() {
                Some((run, _)) if set.meets(going) => run.len += 1,
                _ => {
                    let number = found.len() as u16;
                    found.push((Run { first: before, len: 1, number, sum: number, inside: 0 }, set));
                }
            }
            before += 1;
        });
        let mut open = 0;
        let near = self.manner == Manner::Near;
        let same = |a: &(Run, Mask<1>), b: &(Run, Mask<1>)| !near || a.1.and(above) == b.1.and(above);
        for group in found.chunk_by_mut(same) {
            let (start, len) = (group[0].0.number, group.len() as u16);
            let opened = open;
            for (run, set) in group {
                if near {
                    run.sum += opened;
                }
                if !set.meets(hard) {
                    run.inside = if near { start + len + open } else { open };
                    open += 1;
                }
            }
        }
        let class = |(run, set): &(Run, Mask<1>)| 2 * (usize::from(run.len.min(3)) - 1) + usize::from(!set.meets(hard));
        found.sort_by_key(class);
        let mut pattern =
            Pattern { before: before.into(), stays: found.len() as u32, open: open.into(), ..Pattern::default() };
        for (i, bound) in pattern.classes.iter_mut().enumerate() {
            *bound = (self.runs.len() + found.partition_point(|run| class(run) < i)) as u32;
        }
        self.runs.extend(found.iter().map(|(run, _)| run));
        pattern
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
    heads: &'t [Head<W>],
    pieces: &'t [Piece<W>],
    source: &'t [R::Element],
    target: &'t Shared<R::Element>,
    one: &'t mut [R::Element],
    other: &'t mut [R::Element],
}

impl<R: Ring, const W: usize> Kernel<R::Element> for Task<'_, R, W> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic<Element = R::Element>>(self, a: A) {
        let Task { work, heads, pieces, source, target, mut one, mut other } = self;
        let mut list = Vec::new();
        for head in heads {
            let mut len = head.len;
            one[..len].copy_from_slice(&source[head.first..head.first + len]);
            for stage in &work.stages {
                match &stage.action {
                    Action::Change(change) => {
                        change.patterns(&stage.sight, head.set, &mut list);
                        len = change.run(work.ring, a, &list, one, other);
                        std::mem::swap(&mut one, &mut other);
                    }
                    Action::Multiply { places, factors } => {
                        multiply(work.ring, &stage.sight, head.set, places, factors, &mut one[..len]);
                    }
                }
            }
            let mut first = 0;
            for piece in &pieces[head.pieces..] {
                if first == len {
                    break;
                }
                // SAFETY: the pieces of all blocks divide the table among them.
                let place = unsafe { target.part(piece.first, piece.len) };
                place.copy_from_slice(&one[first..first + piece.len]);
                first += piece.len;
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

impl<E: Copy, const W: usize> Change<E, W> {
    /// Does the change to a block, given its patterns; the length of the block afterwards.
    #[inline(always)]
    fn run<R: Ring<Element = E>, A: Arithmetic<Element = E>>(
        &self,
        ring: R,
        a: A,
        list: &[u8],
        source: &[E],
        target: &mut [E],
    ) -> usize
    where
        E: PartialEq,
    {
        let [out, inside] = &self.factors;
        let (mut from, mut to, mut with) = (0, 0, 0);
        for (i, mark) in list.iter().enumerate() {
            let pattern = &self.patterns[usize::from(mark & (CLOSED - 1))];
            let before = &source[from..from + pattern.before as usize];
            from += before.len();
            if self.manner == Manner::Far && mark & FRESH != 0 {
                let group = list[i + 1..].iter().take_while(|&next| next & FRESH == 0);
                let stays = |mark: &u8| self.patterns[usize::from(mark & (CLOSED - 1))].stays as usize;
                to = with;
                with += stays(mark) + group.map(stays).sum::<usize>();
            }
            let closed = mark & CLOSED != 0;
            let classes = &pattern.classes;
            match self.manner {
                Manner::Lose => self.sums(a, classes, before, |run, sum, _, _| {
                    put(ring, a, &mut target[to + usize::from(run.number)], sum, out);
                }),
                Manner::Merge => self.sums(a, classes, before, |run, sum, first, open| {
                    let place = &mut target[to + usize::from(run.number)];
                    put(ring, a, place, sum, out);
                    if open && !closed {
                        let sum = *place;
                        put(ring, a, place, first, inside);
                        *place = ring.fold(ring.add(*place, sum));
                    }
                }),
                _ if closed => self.sums(a, classes, before, |run, sum, _, _| {
                    put(ring, a, &mut target[to + usize::from(run.number)], sum, out);
                }),
                Manner::Near => self.sums(a, classes, before, |run, sum, first, open| {
                    put(ring, a, &mut target[to + usize::from(run.sum)], sum, out);
                    if open {
                        put(ring, a, &mut target[to + usize::from(run.inside)], first, inside);
                    }
                }),
                Manner::Far => self.sums(a, classes, before, |run, sum, first, open| {
                    put(ring, a, &mut target[to + usize::from(run.number)], sum, out);
                    if open {
                        put(ring, a, &mut target[with + usize::from(run.inside)], first, inside);
                    }
                }),
            }
            to += pattern.stays as usize;
            match self.manner {
                Manner::Near if !closed => to += pattern.open as usize,
                Manner::Far if !closed => with += pattern.open as usize,
                _ => {}
            }
        }
        to.max(with)
    }

    /// Gives the sum and the first element of each run, and whether it has no neighbor of the vertex that comes.
    #[inline(always)]
    fn sums<A: Arithmetic<Element = E>>(
        &self,
        a: A,
        classes: &[u32; 7],
        elements: &[E],
        mut give: impl FnMut(&Run, A::Register, A::Register, bool),
    ) {
        let class = |i: usize| &self.runs[classes[i] as usize..classes[i + 1] as usize];
        // SAFETY: references can be read.
        let load = |i: usize| unsafe { a.load(&elements[i]) };
        for open in [false, true] {
            for run in class(usize::from(open)) {
                let x = load(run.first.into());
                give(run, x, x, open);
            }
            for run in class(2 + usize::from(open)) {
                let first = usize::from(run.first);
                let x = load(first);
                give(run, a.fold(a.add(x, load(first + 1))), x, open);
            }
            for run in class(4 + usize::from(open)) {
                let first = usize::from(run.first);
                let x = load(first);
                let sum = (first + 1..first + usize::from(run.len)).fold(x, |sum, i| a.add(sum, load(i)));
                give(run, a.fold(sum), x, open);
            }
        }
    }
}

/// Writes an element times a factor.
#[inline(always)]
fn put<R: Ring, A: Arithmetic<Element = R::Element>>(
    ring: R,
    a: A,
    place: &mut R::Element,
    x: A::Register,
    factor: &Factor<R::Element>,
) {
    // SAFETY: a reference can be written.
    unsafe { a.store(place, x) };
    if !matches!(factor, Factor::One) {
        *place = ring.fold(factor.times(ring, *place));
    }
}
