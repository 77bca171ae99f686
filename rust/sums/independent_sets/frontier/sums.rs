//! The sums of one event over a block of the independent-set table.
//!
//! Within a block the subsets of the lowest few vertices come in runs that look the same wherever the same of them are
//! allowed. So the event is worked out once for each subset of these, as lists of sums with their places, and a block is a
//! sequence of such patterns.
//!
//! Source: that of [`super::set_table`].

use super::circuit::Factor;
use super::family::{Mask, walk};
use crate::numeric::dispatch::{Arithmetic, Kernel};
use crate::numeric::ring::Ring;

/// Most of the lowest vertices whose subsets are listed: an entry is a byte, and the two bits above say [`CLOSED`] and [`FRESH`].
pub const LOW: usize = 6;
/// Mark of a pattern whose higher part has a neighbor of the introduced vertex.
pub const CLOSED: u8 = 1 << LOW;
/// Mark of the first pattern after a change above the introduced vertex.
pub const FRESH: u8 = 1 << (LOW + 1);

/// Where results go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumStep {
    /// No vertex is introduced.
    Lose,
    /// One is introduced and forgotten at once.
    Merge,
    /// One is introduced among the lowest.
    Near,
    /// One is introduced above them.
    Far,
}

/// An event, worked out for each subset of the lowest vertices that may be allowed.
pub struct SubsetSums<E> {
    sum_step: SumStep,
    /// The weights of the introduced vertex, out and in.
    factors: [Factor<E>; 2],
    patterns: Vec<Pattern>,
    runs: Vec<SumRun>,
}

/// What happens where given ones of the lowest vertices are allowed.
#[derive(Clone, Copy, Debug, Default)]
struct Pattern {
    /// Elements before.
    before: u32,
    /// Subsets of what stays, and those of them without a neighbor of the introduced vertex.
    stays: u32,
    open: u32,
    /// Its runs: of one, two and more elements, each first those with a neighbor and then those without.
    classes: [u32; 7],
}

/// Elements that agree on what stays.
#[derive(Clone, Copy, Debug, Default)]
struct SumRun {
    first: u16,
    len: u16,
    /// The number of the run.
    number: u16,
    /// Where the sum goes, and where the first element goes if a vertex is introduced.
    sum: u16,
    inside: u16,
}

/// What an event does to the lowest vertices: masks over these.
pub struct Lowest<'r> {
    /// Their hard edges.
    pub rows: &'r [Mask<1>],
    /// Those that go.
    pub forgotten_now: Mask<1>,
    /// Those above the introduced vertex.
    pub above: Mask<1>,
    /// Its neighbors.
    pub hard: Mask<1>,
}

impl<E: Copy + PartialEq> SubsetSums<E> {
    /// Works an event out.
    pub fn new(sum_step: SumStep, lowest: &Lowest, factors: [Factor<E>; 2]) -> Self {
        let mut runs = Vec::new();
        let mut of = |allowed| pattern(sum_step, lowest, Mask([allowed]), &mut runs);
        let patterns = (0..1 << lowest.rows.len()).map(&mut of).collect();
        Self { sum_step, factors, patterns, runs }
    }
}

/// The runs where given ones of the lowest vertices are allowed, after those that are known. They are the same in any ring.
fn pattern(sum_step: SumStep, lowest: &Lowest, allowed: Mask<1>, runs: &mut Vec<SumRun>) -> Pattern {
    let &Lowest { rows, forgotten_now, above, hard } = lowest;
    let mut found: Vec<(SumRun, Mask<1>)> = Vec::new();
    let mut before = 0;
    walk(rows, 0, Mask::EMPTY, allowed, &mut |set, _| {
        match found.last_mut() {
            Some((run, _)) if set.meets(forgotten_now) => run.len += 1,
            _ => {
                let number = found.len() as u16;
                found.push((SumRun { first: before, len: 1, number, sum: number, inside: 0 }, set));
            }
        }
        before += 1;
    });
    let mut open = 0;
    let near = sum_step == SumStep::Near;
    let same = |a: &(SumRun, Mask<1>), b: &(SumRun, Mask<1>)| !near || a.1.and(above) == b.1.and(above);
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
    let class = |(run, set): &(SumRun, Mask<1>)| 2 * (usize::from(run.len.min(3)) - 1) + usize::from(!set.meets(hard));
    found.sort_by_key(class);
    let mut pattern =
        Pattern { before: before.into(), stays: found.len() as u32, open: open.into(), ..Pattern::default() };
    for (i, bound) in pattern.classes.iter_mut().enumerate() {
        *bound = (runs.len() + found.partition_point(|run| class(run) < i)) as u32;
    }
    runs.extend(found.iter().map(|(run, _)| run));
    pattern
}

/// A block, as the sequence of its patterns.
pub struct SumBlock<'t, R: Ring> {
    /// The ring computed in.
    pub ring: R,
    /// What happens.
    pub sums: &'t SubsetSums<R::Element>,
    /// The allowed of the lowest vertices, with marks.
    pub patterns: &'t [u8],
    /// The elements before.
    pub source: &'t [R::Element],
    /// Where they go.
    pub target: &'t mut [R::Element],
}

/// Answers with the length of the block afterwards.
impl<R: Ring> Kernel<R::Element> for SumBlock<'_, R> {
    type Output = usize;

    #[inline(always)]
    fn run<A: Arithmetic<Element = R::Element>>(self, a: A) -> usize {
        match self.sums.factors {
            [Factor::One, Factor::One] => self.walk::<A, false>(a),
            _ => self.walk::<A, true>(a),
        }
    }
}

impl<R: Ring> SumBlock<'_, R> {
    #[inline(always)]
    fn walk<A: Arithmetic<Element = R::Element>, const WEIGHTED: bool>(self, a: A) -> usize {
        let Self { ring, sums, patterns, source, target } = self;
        let pattern = |mark: &u8| &sums.patterns[usize::from(mark & (CLOSED - 1))];
        let (mut from, mut to, mut with) = (0, 0, 0);
        for (i, mark) in patterns.iter().enumerate() {
            let Pattern { before, stays, open, classes } = pattern(mark);
            let source = &source[from..from + *before as usize];
            from += source.len();
            if sums.sum_step == SumStep::Far && mark & FRESH != 0 {
                let group = patterns[i + 1..].iter().take_while(|&next| next & FRESH == 0);
                to = with;
                with += (stays + group.map(|mark| pattern(mark).stays).sum::<u32>()) as usize;
            }
            let mut ends = Ends { ring, a, sums, classes, source, target, to, with };
            let is_open = mark & CLOSED == 0;
            match sums.sum_step {
                SumStep::Merge if is_open => ends.all::<WEIGHTED, BY_NUMBER, MERGED>(),
                SumStep::Near if is_open => ends.all::<WEIGHTED, BY_SUM, BY_SUM_AND_FIRST>(),
                SumStep::Far if is_open => ends.all::<WEIGHTED, BY_NUMBER, APART>(),
                _ => ends.all::<WEIGHTED, BY_NUMBER, BY_NUMBER>(),
            }
            to += *stays as usize;
            match sums.sum_step {
                SumStep::Near if is_open => to += *open as usize,
                SumStep::Far if is_open => with += *open as usize,
                _ => {}
            }
        }
        to.max(with)
    }
}

/// Only the sum of a run goes anywhere: to the place of its number.
const BY_NUMBER: u8 = 0;
/// Only the sum goes anywhere, to its place among the others.
const BY_SUM: u8 = 1;
/// The sum goes to its place, the first element to its own.
const BY_SUM_AND_FIRST: u8 = 2;
/// The sum goes to the place of its number, the first element to a stretch of its own.
const APART: u8 = 3;
/// The sum and the first element go to the place of its number.
const MERGED: u8 = 4;

/// Where the elements of a pattern come from and go.
struct Ends<'t, R: Ring, A> {
    ring: R,
    a: A,
    sums: &'t SubsetSums<R::Element>,
    classes: &'t [u32; 7],
    source: &'t [R::Element],
    target: &'t mut [R::Element],
    to: usize,
    with: usize,
}

impl<R: Ring, A: Arithmetic<Element = R::Element>> Ends<'_, R, A> {
    /// Sums the runs; what becomes of those with a neighbor of the introduced vertex, and of the others.
    #[inline(always)]
    fn all<const WEIGHTED: bool, const SHUT: u8, const OPEN: u8>(&mut self) {
        let sums = self.sums;
        let class = |i: usize| &sums.runs[self.classes[i] as usize..self.classes[i + 1] as usize];
        let [shut_one, one, shut_two, two, shut_more, more] = std::array::from_fn(class);
        for run in shut_one {
            let x = self.load(run.first);
            self.emit::<WEIGHTED, SHUT>(run, x, x);
        }
        for run in one {
            let x = self.load(run.first);
            self.emit::<WEIGHTED, OPEN>(run, x, x);
        }
        for run in shut_two {
            let x = self.load(run.first);
            let sum = self.a.fold(self.a.add(x, self.load(run.first + 1)));
            self.emit::<WEIGHTED, SHUT>(run, sum, x);
        }
        for run in two {
            let x = self.load(run.first);
            let sum = self.a.fold(self.a.add(x, self.load(run.first + 1)));
            self.emit::<WEIGHTED, OPEN>(run, sum, x);
        }
        for run in shut_more {
            self.emit::<WEIGHTED, SHUT>(run, self.total(run), self.load(run.first));
        }
        for run in more {
            self.emit::<WEIGHTED, OPEN>(run, self.total(run), self.load(run.first));
        }
    }

    #[inline(always)]
    fn load(&self, i: u16) -> A::Register {
        self.a.read(&self.source[usize::from(i)])
    }

    #[inline(always)]
    fn total(&self, run: &SumRun) -> A::Register {
        let mut sum = self.load(run.first);
        for i in run.first + 1..run.first + run.len {
            sum = self.a.add(sum, self.load(i));
        }
        self.a.fold(sum)
    }

    #[inline(always)]
    fn emit<const WEIGHTED: bool, const HOW: u8>(&mut self, run: &SumRun, sum: A::Register, first: A::Register) {
        let place = self.to + usize::from(if HOW == BY_SUM || HOW == BY_SUM_AND_FIRST { run.sum } else { run.number });
        if HOW == MERGED && !WEIGHTED {
            return self.put(place, self.a.fold(self.a.add(sum, first)));
        }
        self.put(place, sum);
        if WEIGHTED {
            self.weigh(place, 0);
        }
        if HOW == MERGED {
            let before = self.target[place];
            self.put(place, first);
            self.weigh(place, 1);
            self.target[place] = self.ring.fold(self.ring.add(before, self.target[place]));
        }
        if HOW == BY_SUM_AND_FIRST || HOW == APART {
            let place = usize::from(run.inside) + if HOW == APART { self.with } else { self.to };
            self.put(place, first);
            if WEIGHTED {
                self.weigh(place, 1);
            }
        }
    }

    #[inline(always)]
    fn put(&mut self, place: usize, x: A::Register) {
        self.a.write(&mut self.target[place], x);
    }

    /// Multiplies an element by the weight of the introduced vertex, out or in.
    #[inline(always)]
    fn weigh(&mut self, place: usize, state: usize) {
        let factor = &self.sums.factors[state];
        if !matches!(factor, Factor::One) {
            self.target[place] = self.ring.fold(factor.times(self.ring, self.target[place]));
        }
    }
}
