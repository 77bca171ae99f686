//! The short table: one element for each independent subset of the frontier, in rising order.
//!
//! Bits of a subset are ordered by the step at which their vertices go, the next to go lowest. The subsets that agree on
//! all but the going vertices `F` are then neighbors in the table, and what comes of them is
//!
//!   `y0 = sum of x[r + A] over A within F`,   `y1 = z x[r]` if no neighbor of `v` is in `r`,
//!
//! for each subset `r` of what stays. The events of many steps are done in one *round*: the vertices that stay beyond it
//! and lie highest are its *heads*. For each independent set of heads the subsets of the rest are a block of the table,
//! small enough for the cache, which goes through all events of the round by itself ([`super::block`]). What comes out of
//! a block is cut into pieces by the vertices that came to lie above a head, and each piece is put where it belongs in the
//! table after the round. The table moves between the two ends of its memory.

use super::block;
use super::family::{Mask, count};
use super::formula::{Formulas, Value};
use super::reduce::Matrix;
use super::timeline::Timeline;
use crate::Result;
use crate::counting::transfer::Weight;
use crate::monitor::Watch;
use crate::numeric::ring::Ring;

/// Elements of a block before a round; twice as many are possible within.
pub const BLOCK: u64 = 1 << 11;
/// Pieces of a block, about, at the most: they are to be worth moving.
const PIECES: u64 = 128;
/// Most events in a round, so that a watch is heard.
const EVENTS: usize = 64;
/// Most vertices that go in one event.
pub const GOING: usize = 6;
/// Soft neighbors dealt with by one table of weights.
const SOFT: usize = 3;
/// The widest frontier a mask can hold.
pub const WIDEST: usize = 16 * 64;

/// Evaluates an expression with `$w` the number of words of a mask.
macro_rules! with_words {
    ($words:expr, $w:ident => $body:expr) => {
        match $words {
            1 => {
                const $w: usize = 1;
                $body
            }
            2..=4 => {
                const $w: usize = 4;
                $body
            }
            _ => {
                const $w: usize = 16;
                $body
            }
        }
    };
}

/// The hard edges of some vertices, `words` words for each.
#[derive(Clone, Debug)]
pub struct Rows {
    words: usize,
    bits: Vec<u64>,
}

impl Rows {
    /// The masks.
    pub fn masks<const W: usize>(&self) -> Vec<Mask<W>> {
        self.bits.chunks_exact(self.words).map(Mask::from_words).collect()
    }
}

/// Where a vertex is during a round.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// A bit of the block.
    Local(usize),
    /// One of the heads.
    Head(usize),
}

/// What happens to a block at once.
#[derive(Debug)]
pub enum Operation {
    /// The lowest vertices go, a vertex comes, or both.
    Change {
        /// How many go.
        going: usize,
        /// What comes.
        come: Option<Come>,
    },
    /// Each element is multiplied by the weight for the states at these places.
    Multiply {
        /// The places, the first the lowest bit of the index.
        places: Vec<Place>,
        /// The first of the weights.
        weights: usize,
    },
}

/// A vertex comes.
#[derive(Debug)]
pub struct Come {
    /// Its bit among those that stay, unless it goes at once.
    pub place: Option<usize>,
    /// Its hard neighbors in the block.
    pub hard: Rows,
    /// Its hard neighbors among the heads.
    pub blocked: Rows,
    /// Its weights, out and in.
    pub weights: usize,
}

/// The vertices of a block between events.
#[derive(Debug)]
pub struct Frame {
    /// Their number.
    pub width: usize,
    /// Their hard edges.
    pub rows: Rows,
    /// For each head, its hard neighbors among them.
    pub touching: Rows,
}

/// Events done together, block by block.
#[derive(Debug)]
pub struct Round {
    /// The frontier before.
    pub width: usize,
    /// Its hard edges.
    pub rows: Rows,
    /// How many of its lowest vertices are in the block.
    pub local: usize,
    /// What happens.
    pub operations: Vec<Operation>,
    /// The vertices of the block before each operation and at the end.
    pub frames: Vec<Frame>,
    /// How many of the lowest vertices of the block lie below all heads afterwards.
    pub near: usize,
    /// The bits of the others afterwards.
    pub far: Vec<usize>,
    /// The bits of the heads afterwards.
    pub heads: Vec<usize>,
    /// Elements before and after.
    pub lengths: [u64; 2],
    /// Most elements of a block.
    pub block: u64,
}

/// The schedule of a table with one element for each independent subset.
#[derive(Debug)]
pub struct Listed {
    rounds: Vec<Round>,
    words: usize,
    /// Elements of a block.
    block: u64,
    /// Elements of memory, and the most that the table has at any time.
    memory: usize,
    states: u64,
    /// Weights used by the rounds.
    pub weights: Vec<Value>,
    /// Most roundings on the way through.
    pub roundings: u64,
}

/// What is done to the frontier at once.
#[derive(Debug)]
enum Event {
    Change { step: usize, going: usize, comes: bool, stays: bool },
    Multiply { step: usize, edges: Vec<(u32, Matrix)> },
}

/// Events and table sizes, found before a table is planned.
#[derive(Debug)]
pub struct Forecast {
    events: Vec<Event>,
    /// The elements before the first event and after each.
    lengths: Vec<u64>,
}

impl Forecast {
    /// Finds the sizes of a table, unless that takes more than `effort` branchings or a length exceeds `most`.
    pub fn new(timeline: &Timeline, most: u64, mut effort: u64) -> Option<Self> {
        if timeline.widths().into_iter().max().unwrap_or(0) >= WIDEST {
            return None;
        }
        let events = events(timeline);
        let mut frontier = Line::new(timeline);
        let mut lengths = vec![1];
        for event in &events {
            frontier.apply(event);
            let words = frontier.words();
            let rows = frontier.rows(words, &frontier.vertices);
            let all = frontier.vertices.len();
            let len = with_words!(words, W => count::<W>(&rows.masks(), Mask::below(all), &mut effort))?;
            lengths.push(Some(len).filter(|&len| len <= most)?);
        }
        Some(Self { events, lengths })
    }

    /// Elements of memory, if every event were a round of its own: two tables side by side.
    pub fn states(&self) -> u64 {
        self.lengths.windows(2).map(|pair| pair[0].saturating_add(pair[1])).max().unwrap_or(1)
    }

    /// Additions.
    pub fn work(&self) -> f64 {
        self.lengths.iter().map(|&len| len as f64).sum()
    }
}

/// The events of all steps.
fn events(timeline: &Timeline) -> Vec<Event> {
    let mut events = Vec::new();
    for step in 0..timeline.order.len() {
        let vertex = timeline.order[step];
        let goes = |u: u32| timeline.goes[u as usize] as usize == step;
        let soft: Vec<(u32, Matrix)> =
            timeline.links_back(step).filter_map(|link| Some((link.to, link.soft?))).collect();
        let going = timeline.links_back(step).filter(|link| goes(link.to)).count();
        if soft.is_empty() && going <= GOING {
            events.push(Event::Change { step, going, comes: true, stays: !goes(vertex) });
            continue;
        }
        events.push(Event::Change { step, going: 0, comes: true, stays: true });
        events.extend(soft.chunks(SOFT).map(|edges| Event::Multiply { step, edges: edges.to_vec() }));
        let going = going + usize::from(goes(vertex));
        let parts = (0..going).step_by(GOING).map(|first| (going - first).min(GOING));
        events.extend(parts.map(|going| Event::Change { step, going, comes: false, stays: false }));
    }
    events
}

/// Vertices of the frontier, those that go first in front.
#[derive(Clone)]
struct Line<'t, 'k> {
    timeline: &'t Timeline<'k>,
    vertices: Vec<u32>,
}

impl<'t, 'k> Line<'t, 'k> {
    fn new(timeline: &'t Timeline<'k>) -> Self {
        Self { timeline, vertices: Vec::new() }
    }

    fn words(&self) -> usize {
        self.vertices.len().div_ceil(64).max(1)
    }

    fn find(&self, vertex: u32) -> Option<usize> {
        self.vertices.iter().position(|&u| u == vertex)
    }

    /// When a vertex goes, ties broken.
    fn key(&self, vertex: u32) -> (u32, u32) {
        (self.timeline.goes[vertex as usize], self.timeline.comes[vertex as usize])
    }

    /// The hard edges from some vertices to those of the line.
    fn rows(&self, words: usize, from: &[u32]) -> Rows {
        let mut bits = vec![0; words * from.len()];
        for (row, &v) in bits.chunks_exact_mut(words).zip(from) {
            for link in self.timeline.kernel.links[v as usize].iter().filter(|link| link.hard) {
                if let Some(j) = self.find(link.to) {
                    row[j / 64] |= 1 << (j % 64);
                }
            }
        }
        Rows { words, bits }
    }

    /// Lets vertices come and go; the place of the one that comes, if it stays.
    fn apply(&mut self, event: &Event) -> Option<usize> {
        let &Event::Change { step, going, comes, stays } = event else { return None };
        self.vertices.drain(..going);
        if !comes || !stays {
            return None;
        }
        let vertex = self.timeline.order[step];
        let place = self.vertices.partition_point(|&u| self.key(u) < self.key(vertex));
        self.vertices.insert(place, vertex);
        Some(place)
    }
}

/// The number of independent sets among the first `n` of some vertices.
fn size(rows: &Rows, n: usize) -> u64 {
    let mut effort = u64::MAX;
    with_words!(rows.words, W => count::<W>(&rows.masks(), Mask::below(n), &mut effort)).unwrap_or(u64::MAX)
}

impl Listed {
    /// Plans a table in blocks of about `block` elements.
    pub fn new(timeline: &Timeline, forecast: &Forecast, formulas: &mut Formulas, block: u64) -> Self {
        // A soft neighbor stays until the vertex that comes is there.
        let words = (timeline.widths().into_iter().max().unwrap_or(0) + 1).div_ceil(64);
        let states = forecast.lengths.iter().copied().max().unwrap_or(1);
        let rounds = Vec::new();
        let mut listed = Self { rounds, words, block, memory: 1, states, weights: Vec::new(), roundings: 0 };
        let mut frontier = Line::new(timeline);
        let mut done = 0;
        while done < forecast.events.len() {
            let round = listed.round(&mut frontier, forecast, done, formulas);
            done += round.operations.len();
            listed.memory = listed.memory.max((round.lengths[0] + round.lengths[1]) as usize);
            listed.rounds.push(round);
        }
        listed
    }

    /// As many events as fit into one round.
    fn round(&mut self, frontier: &mut Line, forecast: &Forecast, first: usize, formulas: &mut Formulas) -> Round {
        let timeline = frontier.timeline;
        let words = self.words;
        let width = frontier.vertices.len();
        let rows = frontier.rows(words, &frontier.vertices);
        let needed = match forecast.events[first] {
            Event::Change { going, .. } => going,
            Event::Multiply { .. } => 0,
        };
        let mut local = width;
        if forecast.lengths[first] > self.block {
            local = (needed..width).take_while(|&n| size(&rows, n + 1) <= self.block).last().map_or(needed, |n| n + 1);
        }
        let heads = frontier.vertices[local..].to_vec();
        let lowest = heads.iter().map(|&u| frontier.key(u)).min();
        let is_near = |line: &Line, u: u32| lowest.is_none_or(|lowest| line.key(u) < lowest);
        let mut line = Line { timeline, vertices: frontier.vertices[..local].to_vec() };
        let frame = |line: &Line| Frame {
            width: line.vertices.len(),
            rows: line.rows(words, &line.vertices),
            touching: line.rows(words, &heads),
        };
        let mut frames = vec![frame(&line)];
        let mut block = size(&frames[0].rows, local);
        let mut operations = Vec::new();
        for event in forecast.events[first..].iter().take(EVENTS) {
            if let &Event::Change { step, going, .. } = event
                && going > 0
                && lowest.is_some_and(|(goes, _)| goes as usize <= step)
                && !operations.is_empty()
            {
                break;
            }
            let mut next = line.clone();
            let place = next.apply(event);
            let after = frame(&next);
            let len = size(&after.rows, after.width);
            let near = next.vertices.iter().take_while(|&&u| is_near(&next, u)).count();
            let shredded = near < after.width && size(&after.rows, near) < self.block / PIECES;
            if !operations.is_empty() && (len > 2 * self.block || shredded) {
                break;
            }
            operations.push(self.operation(event, &line, place, &heads, formulas));
            frontier.apply(event);
            block = block.max(len);
            line = next;
            frames.push(after);
        }
        let place = |&u: &u32| frontier.find(u).expect("what stays is in the frontier");
        let near = line.vertices.iter().take_while(|&&u| is_near(&line, u)).count();
        let lengths = [forecast.lengths[first], forecast.lengths[first + operations.len()]];
        let far = line.vertices[near..].iter().map(place).collect();
        let heads = heads.iter().map(place).collect();
        Round { width, rows, local, operations, frames, near, far, heads, lengths, block }
    }

    fn operation(
        &mut self,
        event: &Event,
        line: &Line,
        place: Option<usize>,
        heads: &[u32],
        formulas: &mut Formulas,
    ) -> Operation {
        let timeline = line.timeline;
        match event {
            &Event::Change { going, comes: false, .. } => {
                self.roundings += (1 << going) - 1;
                Operation::Change { going, come: None }
            }
            &Event::Change { step, going, .. } => {
                self.roundings += (1 << going) - u64::from(place.is_some());
                let vertex = timeline.order[step];
                let heads = Line { timeline, vertices: heads.to_vec() };
                let weights = self.keep(&timeline.kernel.weights[vertex as usize], formulas);
                let [hard, blocked] = [line, &heads].map(|line| line.rows(self.words, &[vertex]));
                Operation::Change { going, come: Some(Come { place, hard, blocked, weights }) }
            }
            Event::Multiply { step, edges } => {
                let weights = formulas.table(edges.iter().map(|(_, m)| m));
                let weights = self.keep(&weights, formulas);
                let ends = edges.iter().map(|&(u, _)| u).chain([timeline.order[*step]]);
                let find = |u: u32| match line.find(u) {
                    Some(bit) => Place::Local(bit),
                    None => Place::Head(heads.iter().position(|&head| head == u).unwrap_or(0)),
                };
                Operation::Multiply { places: ends.map(find).collect(), weights }
            }
        }
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
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// Elements of the table where it is largest.
    pub fn states(&self) -> usize {
        self.states as usize
    }

    /// Steps there are.
    pub fn steps(&self) -> usize {
        self.rounds.len()
    }

    /// Additions in one step.
    pub fn work(&self, step: usize) -> u64 {
        self.rounds[step].lengths[0] * self.rounds[step].operations.len() as u64
    }

    /// Where the table lies after so many steps.
    pub fn place(&self, steps: usize) -> std::ops::Range<usize> {
        let len = match steps {
            0 => self.rounds.first().map_or(1, |round| round.lengths[0]),
            _ => self.rounds[steps - 1].lengths[1],
        } as usize;
        if steps.is_multiple_of(2) { 0..len } else { self.memory - len..self.memory }
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
        let round = &self.rounds[step];
        with_words!(self.words, W => {
            block::Work::<R, W>::new(weight.ring, round, &self.weights, registers).run(source, target, watch)
        })
    }
}
