//! The short table: one element for each independent subset of the frontier, in rising order.
//!
//! Bits of a subset are ordered by the step at which their vertices go, the next to go lowest. The subsets that agree on
//! all but the going vertices `F` are then neighbors in the table, and a step reads it once from end to end: for each
//! subset `r` of what stays,
//!
//!   `y0 = sum of x[r + A] over A within F`,   `y1 = z x[r]` if no neighbor of `v` is in `r`,
//!
//! which are written where `v`, by the step it will go at itself, has its place. Nothing but the elements is stored: the
//! subsets are walked through anew at each step. The table moves between the two ends of its memory.

use super::family::{Mask, count, walk};
use super::formula::{Factor, Formulas, Value};
use super::packed::SOFT;
use super::timeline::Timeline;
use crate::Result;
use crate::counting::transfer::Weight;
use crate::monitor::Watch;
use crate::numeric::residue::HEADROOM;
use crate::numeric::ring::Ring;
use rayon::prelude::*;

/// Tables from this length on are cut into tasks.
const TASKS: u64 = 1 << 12;

/// One vertex comes, others go.
#[derive(Debug)]
struct Step {
    /// Vertices in the frontier before.
    width: usize,
    /// Their hard edges, `words` words each.
    rows: Vec<u64>,
    /// How many of the lowest go.
    going: usize,
    /// The place of the vertex that comes, among those that stay, unless it goes at once.
    place: Option<usize>,
    /// Its hard neighbors.
    hard: Vec<u64>,
    /// Its weights, out and in.
    weights: usize,
    /// Its soft edges, by groups.
    soft: Vec<Soft>,
    /// Elements before and after.
    lengths: [u64; 2],
}

/// Soft edges to some frontier vertices, with weights by their states and that of the vertex that comes.
#[derive(Debug)]
struct Soft {
    bits: Vec<usize>,
    weights: usize,
}

impl Soft {
    fn prepared<E>(&self, factor: impl Fn(usize) -> Factor<E>) -> Softening<'_, E> {
        let weights = self.weights..self.weights + (2 << self.bits.len());
        Softening { bits: &self.bits, factors: weights.map(factor).collect() }
    }
}

/// The schedule of a table with one element for each independent subset.
#[derive(Debug)]
pub struct Listed {
    steps: Vec<Step>,
    words: usize,
    len: usize,
    /// Weights used by the steps.
    pub weights: Vec<Value>,
    /// Most roundings on the way through.
    pub roundings: u64,
}

/// Sizes of a short table, found before it is planned.
#[derive(Debug)]
pub struct Forecast {
    /// The elements before the first step and after each.
    pub lengths: Vec<u64>,
}

impl Forecast {
    /// Elements of memory: two tables side by side.
    pub fn states(&self) -> u64 {
        self.lengths.windows(2).map(|pair| pair[0].saturating_add(pair[1])).max().unwrap_or(1)
    }

    /// Elements read and written altogether.
    pub fn work(&self) -> f64 {
        self.lengths.windows(2).map(|pair| pair[0] as f64 + pair[1] as f64).sum()
    }
}

/// The vertices of the frontier, those that go first in front.
struct Frontier<'t, 'k> {
    timeline: &'t Timeline<'k>,
    vertices: Vec<u32>,
}

impl Frontier<'_, '_> {
    /// How many go at a step.
    fn going(&self, step: usize) -> usize {
        self.vertices.iter().take_while(|&&u| self.timeline.goes[u as usize] as usize == step).count()
    }

    fn find(&self, vertex: u32) -> Option<usize> {
        self.vertices.iter().position(|&u| u == vertex)
    }

    /// The hard edges among them.
    fn rows(&self, words: usize) -> Vec<u64> {
        let mut rows = vec![0; words * self.vertices.len()];
        for (i, &v) in self.vertices.iter().enumerate() {
            for link in self.timeline.kernel.links[v as usize].iter().filter(|link| link.hard) {
                if let Some(j) = self.find(link.to) {
                    rows[words * i + j / 64] |= 1 << (j % 64);
                }
            }
        }
        rows
    }

    /// Lets the vertices of a step come and go; the place of the one that comes, if it stays.
    fn advance(&mut self, step: usize) -> Option<usize> {
        let vertex = self.timeline.order[step];
        let going = self.going(step);
        self.vertices.drain(..going);
        let goes = |u: u32| self.timeline.goes[u as usize];
        if goes(vertex) as usize == step {
            return None;
        }
        let place = self.vertices.partition_point(|&u| goes(u) <= goes(vertex));
        self.vertices.insert(place, vertex);
        Some(place)
    }
}

/// Evaluates an expression with `$w` the number of words of a mask.
macro_rules! with_words {
    ($words:expr, $w:ident => $body:expr) => {
        match $words {
            1 => {
                const $w: usize = 1;
                $body
            }
            2 => {
                const $w: usize = 2;
                $body
            }
            3..=4 => {
                const $w: usize = 4;
                $body
            }
            5..=8 => {
                const $w: usize = 8;
                $body
            }
            _ => {
                const $w: usize = 16;
                $body
            }
        }
    };
}

/// The widest frontier a mask can hold.
pub const WIDEST: usize = 16 * 64;

fn masks<const W: usize>(rows: &[u64], words: usize) -> Vec<Mask<W>> {
    rows.chunks_exact(words).map(Mask::from_words).collect()
}

impl Listed {
    /// Finds the sizes of a table, unless that takes more than `effort` branchings or a length exceeds `most`.
    pub fn forecast(timeline: &Timeline, most: u64, mut effort: u64) -> Option<Forecast> {
        let widest = timeline.widths().into_iter().max().unwrap_or(0);
        if widest > WIDEST {
            return None;
        }
        let words = widest.div_ceil(64).max(1);
        let mut frontier = Frontier { timeline, vertices: Vec::new() };
        let mut lengths = vec![1];
        for step in 0..timeline.order.len() {
            frontier.advance(step);
            let rows = frontier.rows(words);
            let all = frontier.vertices.len();
            let len = with_words!(words, W => count(&masks::<W>(&rows, words), Mask::below(all), &mut effort))?;
            lengths.push(Some(len).filter(|&len| len <= most)?);
        }
        Some(Forecast { lengths })
    }

    /// Plans a table.
    pub fn new(timeline: &Timeline, forecast: &Forecast, formulas: &mut Formulas) -> Self {
        let widest = timeline.widths().into_iter().max().unwrap_or(0);
        let words = widest.div_ceil(64).max(1);
        let mut schedule =
            Self { steps: Vec::new(), words, len: forecast.states() as usize, weights: Vec::new(), roundings: 0 };
        let mut frontier = Frontier { timeline, vertices: Vec::new() };
        for step in 0..timeline.order.len() {
            let vertex = timeline.order[step];
            let (width, going, rows) = (frontier.vertices.len(), frontier.going(step), frontier.rows(words));
            let place = |u: u32| frontier.find(u).expect("neighbors that came before are in the frontier");
            let mut hard = vec![0; words];
            for link in timeline.links_back(step).filter(|link| link.hard) {
                let bit = place(link.to);
                hard[bit / 64] |= 1 << (bit % 64);
            }
            let soft: Vec<_> =
                timeline.links_back(step).filter_map(|link| Some((place(link.to), link.soft?))).collect();
            let weights = schedule.keep(&timeline.kernel.weights[vertex as usize], formulas);
            let soft = soft.chunks(SOFT).map(|group| {
                let weights = formulas.table(group.iter().map(|(_, m)| m));
                let weights = schedule.keep(&weights, formulas);
                Soft { bits: group.iter().map(|&(bit, _)| bit).collect(), weights }
            });
            let soft = soft.collect();
            let place = frontier.advance(step);
            schedule.roundings = schedule.roundings.saturating_add(1u64.checked_shl(going as u32).unwrap_or(u64::MAX));
            let lengths = [forecast.lengths[step], forecast.lengths[step + 1]];
            schedule.steps.push(Step { width, rows, going, place, hard, weights, soft, lengths });
        }
        schedule
    }

    fn keep(&mut self, weights: &[Value], formulas: &Formulas) -> usize {
        let worst = weights.iter().map(|&value| match value {
            Value::Register(_) => formulas.roundings(value).saturating_add(1),
            _ => 0,
        });
        self.roundings = self.roundings.saturating_add(worst.max().unwrap_or(0));
        self.weights.extend(weights);
        self.weights.len() - weights.len()
    }

    /// Elements of memory.
    pub fn states(&self) -> usize {
        self.len
    }

    /// Steps there are.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Additions in one step.
    pub fn work(&self, step: usize) -> u64 {
        self.steps[step].lengths[0]
    }

    /// Where the table lies after so many steps.
    pub fn place(&self, steps: usize) -> std::ops::Range<usize> {
        let len = match steps {
            0 => self.steps.first().map_or(1, |step| step.lengths[0]),
            _ => self.steps[steps - 1].lengths[1],
        } as usize;
        if steps.is_multiple_of(2) { 0..len } else { self.len - len..self.len }
    }

    /// Does one step.
    pub fn step<R: Ring>(
        &self,
        weight: &Weight<R>,
        step: usize,
        registers: &[R::Element],
        table: &mut [R::Element],
        watch: &Watch,
    ) -> Result<()> {
        let (from, to) = (self.place(step), self.place(step + 1));
        let (left, right) = table.split_at_mut(from.end.min(to.end));
        let cut = left.len();
        let (source, target) = match step.is_multiple_of(2) {
            true => (&left[from], &mut right[to.start - cut..]),
            false => (&right[from.start - cut..], &mut left[to]),
        };
        with_words!(self.words, W => self.advance::<R, W>(weight.ring, step, registers, source, target, watch))
    }

    fn advance<R: Ring, const W: usize>(
        &self,
        ring: R,
        step: usize,
        registers: &[R::Element],
        source: &[R::Element],
        target: &mut [R::Element],
        watch: &Watch,
    ) -> Result<()> {
        let step = &self.steps[step];
        let factor = |i: usize| Factor::of(ring, self.weights[i], registers);
        let change = Change::<R, W> {
            ring,
            rows: masks(&step.rows, self.words),
            going: Mask::below(step.going),
            above: step.place.map(|place| Mask::below(step.width).without(Mask::below(step.going + place))),
            hard: Mask::from_words(&step.hard),
            factors: [factor(step.weights), factor(step.weights + 1)],
            soft: step.soft.iter().map(|soft| soft.prepared(factor)).collect(),
        };
        let tasks = change.tasks(step, source, target);
        if tasks.len() == 1 {
            tasks.into_iter().for_each(|task| change.run(task));
            return watch.advance(step.lengths[0]);
        }
        tasks.into_par_iter().try_for_each(|task| {
            let units = task.source.len() as u64;
            change.run(task);
            watch.advance(units)
        })
    }
}

/// A step in one ring.
struct Change<'a, R: Ring, const W: usize> {
    ring: R,
    rows: Vec<Mask<W>>,
    going: Mask<W>,
    /// The vertices above the one that comes, if it stays.
    above: Option<Mask<W>>,
    hard: Mask<W>,
    factors: [Factor<R::Element>; 2],
    soft: Vec<Softening<'a, R::Element>>,
}

/// Soft edges in one ring.
struct Softening<'a, E> {
    bits: &'a [usize],
    factors: Vec<Factor<E>>,
}

/// The sums over what goes, for one subset of what stays.
struct Sums<E, const W: usize> {
    subset: Mask<W>,
    out: E,
    inside: Option<E>,
    terms: u64,
}

/// A stretch of the table whose subsets share their highest members.
struct Task<'t, E, const W: usize> {
    set: Mask<W>,
    allowed: Mask<W>,
    source: &'t [E],
    /// Where the subsets without the new vertex go, or all of them.
    out: &'t mut [E],
    /// Where those with it go, if they lie apart.
    inside: Option<&'t mut [E]>,
}

impl<R: Ring, const W: usize> Change<'_, R, W> {
    fn count(&self, allowed: Mask<W>) -> usize {
        count(&self.rows, allowed, &mut u64::MAX.clone()).unwrap_or(0) as usize
    }

    /// How many subsets there are without and with the new vertex.
    fn counts(&self, set: Mask<W>, allowed: Mask<W>) -> [usize; 2] {
        let stays = allowed.without(self.going);
        let with = if set.meets(self.hard) { 0 } else { self.count(stays.without(self.hard)) };
        [self.count(stays), with]
    }

    /// Cuts a table into stretches by its highest bits.
    fn tasks<'t>(
        &self,
        step: &Step,
        mut source: &'t [R::Element],
        mut target: &'t mut [R::Element],
    ) -> Vec<Task<'t, R::Element, W>> {
        let mut cut = step.width;
        let mut heads = vec![(Mask::EMPTY, Mask::below(step.width))];
        let wanted = if step.lengths[0] < TASKS { 1 } else { 64.max(step.lengths[0] >> 14) };
        while (heads.len() as u64) < wanted && cut > step.going {
            cut -= 1;
            let split = |(set, allowed): (Mask<W>, Mask<W>)| {
                let fewer = allowed.and(Mask::below(cut));
                let with = (set.with(cut), fewer.without(self.rows[cut]));
                [Some((set, fewer)), allowed.has(cut).then_some(with)].into_iter().flatten()
            };
            heads = heads.into_iter().flat_map(split).collect();
        }
        // Heads that agree above the new vertex write to two stretches that lie apart, if it comes above the cut.
        let apart = step.place.is_some_and(|place| step.going + place > cut);
        let mut tasks = Vec::with_capacity(heads.len());
        let above = self.above.unwrap_or(Mask::EMPTY);
        let same = |a: &(Mask<W>, Mask<W>), b: &(Mask<W>, Mask<W>)| apart && a.0.and(above) == b.0.and(above);
        for group in heads.chunk_by(same) {
            let first = tasks.len();
            let counts: Vec<[usize; 2]> = group.iter().map(|&(set, allowed)| self.counts(set, allowed)).collect();
            for (&(set, allowed), counts) in group.iter().zip(&counts) {
                let here = source.split_off(..self.count(allowed)).unwrap_or(&[]);
                let len = counts[0] + if apart || self.above.is_none() { 0 } else { counts[1] };
                let out = target.split_off_mut(..len).unwrap_or(&mut []);
                tasks.push(Task { set, allowed, source: here, out, inside: None });
            }
            for (task, counts) in tasks[first..].iter_mut().zip(&counts).filter(|_| apart) {
                task.inside = target.split_off_mut(..counts[1]);
            }
        }
        tasks
    }

    fn run(&self, task: Task<R::Element, W>) {
        let Task { set, allowed, source, out, inside } = task;
        match (self.above, inside) {
            (None, _) => {
                let mut to = out.iter_mut();
                self.sums(set, allowed, source, |_, x, y| {
                    let sum = y.map_or(x, |y| self.ring.add(x, y));
                    *to.next().expect("as many as were counted") = self.ring.fold(sum);
                });
            }
            (Some(_), Some(inside)) => {
                let (mut to, mut inside) = (out.iter_mut(), inside.iter_mut());
                self.sums(set, allowed, source, |_, x, y| {
                    *to.next().expect("as many as were counted") = x;
                    if let Some(y) = y {
                        *inside.next().expect("as many as were counted") = y;
                    }
                });
            }
            (Some(above), None) => {
                let (mut head, mut without, mut with) = (None, 0, 0);
                self.sums(set, allowed, source, |r, x, y| {
                    if head != Some(r.and(above)) {
                        head = Some(r.and(above));
                        let beside = allowed.without(above).without(self.going);
                        let blocked = r.and(above).members().fold(Mask::EMPTY, |mask: Mask<W>, v| {
                            Mask(std::array::from_fn(|i| mask.0[i] | self.rows[v].0[i]))
                        });
                        without = with;
                        with += self.count(beside.without(blocked));
                    }
                    out[without] = x;
                    without += 1;
                    if let Some(y) = y {
                        out[with] = y;
                        with += 1;
                    }
                });
            }
        }
    }

    /// Gives each subset of what stays with its elements for the new vertex out and, if it may be, in; both folded.
    #[inline(always)]
    fn sums(
        &self,
        set: Mask<W>,
        allowed: Mask<W>,
        source: &[R::Element],
        mut give: impl FnMut(Mask<W>, R::Element, Option<R::Element>),
    ) {
        let ring = self.ring;
        let [out, inside] = &self.factors;
        let mut finish = |sums: Sums<R::Element, W>| {
            let x = ring.fold(out.times(ring, ring.fold(sums.out)));
            give(sums.subset, x, sums.inside.map(|y| ring.fold(inside.times(ring, ring.fold(y)))));
        };
        let mut elements = source.iter();
        let mut current: Option<Sums<R::Element, W>> = None;
        walk(&self.rows, set, allowed, &mut |s| {
            let element = *elements.next().expect("as many as were counted");
            let x = self.softened(s, 0, element);
            let y = (!s.meets(self.hard)).then(|| self.softened(s, 1, element));
            match &mut current {
                Some(sums) if s.meets(self.going) => {
                    if sums.terms == HEADROOM {
                        sums.terms = 1;
                        (sums.out, sums.inside) = (ring.fold(sums.out), sums.inside.map(|inside| ring.fold(inside)));
                    }
                    sums.terms += 1;
                    sums.out = ring.add(sums.out, x);
                    if let (Some(inside), Some(y)) = (&mut sums.inside, y) {
                        *inside = ring.add(*inside, y);
                    }
                }
                _ => {
                    if let Some(last) = current.replace(Sums { subset: s, out: x, inside: y, terms: 1 }) {
                        finish(last);
                    }
                }
            }
        });
        if let Some(last) = current {
            finish(last);
        }
    }

    /// An element times the soft edges of the new vertex, out or in.
    #[inline(always)]
    fn softened(&self, s: Mask<W>, state: usize, mut x: R::Element) -> R::Element {
        for Softening { bits, factors } in &self.soft {
            let pattern: usize = bits.iter().enumerate().filter(|&(_, &bit)| s.has(bit)).map(|(i, _)| 1 << i).sum();
            x = self.ring.fold(factors[pattern + (state << bits.len())].times(self.ring, x));
        }
        x
    }
}
