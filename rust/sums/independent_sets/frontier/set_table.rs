//! The short table: one element for each independent subset of the frontier, in rising order.
//!
//! Bits of a subset are ordered by the step at which their vertices go, the next to go lowest. The subsets that agree on
//! all but the forgotten vertices `F` are then neighbors in the table, and what comes of them is
//!
//!   `y0 = sum of x[r + A] over A within F`,   `y1 = z x[r]` if no neighbor of `v` is in `r`,
//!
//! for each subset `r` of what stays. The events of many steps are done in one *stage*: the vertices that stay beyond it
//! and lie highest are its *outer vertices*. For each independent set of outer vertices the subsets of the rest are a block of the table,
//! small enough for the cache, which goes through all events of the stage by itself ([`super::block`]). What comes out of
//! a block is cut into segments by the vertices that came to lie above an outer vertex, and each segment is put where it belongs in the
//! table after the stage. The table moves between the two ends of its memory.
//!
//! Worked example, bits in the order of forgetting. The frontier has a, b, c in bits 0, 1, 2 and the edge a b; the independent
//! subsets 000, 001, 010, 100, 101, 110 (bits c b a) hold x0 .. x5. A stage introduces v, a neighbor of a and c, and forgets a;
//! c stays beyond it and is its outer vertex. The outer sets are {} with the block x0 x1 x2, and {c} with x3 x4 x5.
//!
//!  - v is forgotten between b and c: bits b, v, c. Block {} becomes  x0 + x1, x2, z x0, z x2  (subsets {}, b, v, bv); block {c}
//!    is closed to v, a neighbor of c, and becomes  x3 + x4, x5. One segment each: indices 0..4 and 4..6 of the next table.
//!  - v is forgotten after c: bits b, c, v. Now v lies above the outer vertex, and block {} is cut into the segments
//!    x0 + x1, x2  (v out, indices 0..2)  and  z x0, z x2  (v in, indices 4..6); block {c} goes between them.
//!
//! Source: H. Bodlaender (1998), A partial k-arboretum of graphs with bounded treewidth (tables along a path decomposition).

use super::block;
use super::circuit::{Circuit, Node};
use super::family::{Mask, count};
use super::path_decomposition::PathDecomposition;
use super::reduce::EdgeWeights;
use super::stage::{Frame, Introduction, Location, NeighborRows, Stage, StageStep};
use crate::Result;
use crate::numeric::ring::Ring;
use crate::planner::Planner;
use crate::transfer::StepContext;

/// Elements of a block before a stage; twice as many are possible within.
pub const BLOCK: u64 = 1 << 11;
/// Pieces of a block, about, at the most: they are to be worth moving.
const SEGMENTS: u64 = 128;
/// Most events in a stage, so that a stop is seen.
const EVENTS: usize = 64;
/// Most vertices that go in one event.
pub const FORGOTTEN: usize = 6;
/// Soft neighbors dealt with by one table of weights, as in the dense table.
const SOFT: usize = 3;
/// The widest frontier a mask can hold: masks are compiled for up to sixteen words.
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

/// The schedule of a table with one element for each independent subset.
#[derive(Debug)]
pub struct IndependentSetTable {
    stages: Vec<Stage>,
    words: usize,
    /// Elements of a block.
    block: u64,
    /// Elements of memory, and the most that the table has at any time.
    memory: usize,
    states: u64,
    /// Weights used by the stages.
    pub weights: Vec<Node>,
    /// Most stageings on the way through.
    pub roundings: u64,
}

/// What is done to the frontier at once.
#[derive(Debug)]
enum Event {
    Change { step: usize, forgotten_now: usize, introduced: bool, stays: bool },
    Multiply { step: usize, edges: Vec<(u32, EdgeWeights)> },
}

/// Events and table sizes, found before a table is planned.
#[derive(Debug)]
pub struct Forecast {
    events: Vec<Event>,
    /// The elements before the first event and after each.
    lengths: Vec<u64>,
}

/// Changes of a frontier that take as long as a branching.
const BRANCHING: u64 = 4;

impl Forecast {
    /// Finds the sizes of a table, unless that takes more than `effort` branchings, a length exceeds `most` or the planner
    /// stops.
    pub fn new(decomposition: &PathDecomposition, most: u64, effort: u64, planner: &Planner<'_>) -> Option<Self> {
        if decomposition.widths().into_iter().max().unwrap_or(0) >= WIDEST {
            return None;
        }
        let events = events(decomposition);
        let mut frontier = Bags::new(decomposition);
        let mut lengths = vec![1];
        let mut effort = effort;
        for event in &events {
            if planner.is_stopping() {
                return None;
            }
            frontier.apply(event);
            let words = frontier.words();
            let rows = frontier.rows(words, &frontier.vertices);
            let all = frontier.vertices.len();
            let before = effort;
            let len = with_words!(words, W => count::<W>(&rows.masks(), Mask::below(all), &mut effort));
            planner.make(BRANCHING * (before - effort));
            let len = len?;
            lengths.push(Some(len).filter(|&len| len <= most)?);
        }
        Some(Self { events, lengths })
    }

    /// Elements of memory, if every event were a stage of its own: two tables side by side.
    pub fn states(&self) -> u64 {
        self.lengths.windows(2).map(|pair| pair[0].saturating_add(pair[1])).max().unwrap_or(1)
    }

    /// Additions.
    pub fn work(&self) -> f64 {
        self.lengths.iter().map(|&len| len as f64).sum()
    }
}

/// The events of all steps.
fn events(decomposition: &PathDecomposition) -> Vec<Event> {
    let mut events = Vec::new();
    for step in 0..decomposition.order.len() {
        let vertex = decomposition.order[step];
        let forgotten = |u: u32| decomposition.forgotten[u as usize] as usize == step;
        let soft: Vec<(u32, EdgeWeights)> =
            decomposition.links_back(step).filter_map(|link| Some((link.to, link.soft?))).collect();
        let forgotten_now = decomposition.links_back(step).filter(|link| forgotten(link.to)).count();
        if soft.is_empty() && forgotten_now <= FORGOTTEN {
            events.push(Event::Change { step, forgotten_now, introduced: true, stays: !forgotten(vertex) });
            continue;
        }
        events.push(Event::Change { step, forgotten_now: 0, introduced: true, stays: true });
        events.extend(soft.chunks(SOFT).map(|edges| Event::Multiply { step, edges: edges.to_vec() }));
        let forgotten_now = forgotten_now + usize::from(forgotten(vertex));
        let parts = (0..forgotten_now).step_by(FORGOTTEN).map(|first| (forgotten_now - first).min(FORGOTTEN));
        events.extend(parts.map(|forgotten_now| Event::Change {
            step,
            forgotten_now,
            introduced: false,
            stays: false,
        }));
    }
    events
}

/// Vertices of the frontier, those that go first in front.
#[derive(Clone)]
struct Bags<'t, 'k> {
    decomposition: &'t PathDecomposition<'k>,
    vertices: Vec<u32>,
}

impl<'t, 'k> Bags<'t, 'k> {
    fn new(decomposition: &'t PathDecomposition<'k>) -> Self {
        Self { decomposition, vertices: Vec::new() }
    }

    fn words(&self) -> usize {
        self.vertices.len().div_ceil(64).max(1)
    }

    fn find(&self, vertex: u32) -> Option<usize> {
        self.vertices.iter().position(|&u| u == vertex)
    }

    /// When a vertex is forgotten, ties broken.
    fn key(&self, vertex: u32) -> (u32, u32) {
        (self.decomposition.forgotten[vertex as usize], self.decomposition.introduced[vertex as usize])
    }

    /// The hard edges from some vertices to those of the line.
    fn rows(&self, words: usize, from: &[u32]) -> NeighborRows {
        let mut bits = vec![0; words * from.len()];
        for (row, &v) in bits.chunks_exact_mut(words).zip(from) {
            for link in self.decomposition.reduced.links[v as usize].iter().filter(|link| link.hard) {
                if let Some(j) = self.find(link.to) {
                    row[j / 64] |= 1 << (j % 64);
                }
            }
        }
        NeighborRows { words, bits }
    }

    /// Introduces and forgets vertices; the place of the one introduced, if it stays.
    fn apply(&mut self, event: &Event) -> Option<usize> {
        let &Event::Change { step, forgotten_now, introduced, stays } = event else { return None };
        self.vertices.drain(..forgotten_now);
        if !introduced || !stays {
            return None;
        }
        let vertex = self.decomposition.order[step];
        let place = self.vertices.partition_point(|&u| self.key(u) < self.key(vertex));
        self.vertices.insert(place, vertex);
        Some(place)
    }
}

/// The number of independent sets among the first `n` of some vertices.
fn size(rows: &NeighborRows, n: usize) -> u64 {
    let mut effort = u64::MAX;
    with_words!(rows.words, W => count::<W>(&rows.masks(), Mask::below(n), &mut effort)).unwrap_or(u64::MAX)
}

impl IndependentSetTable {
    /// Plans a table in blocks of about `block` elements.
    pub fn new(decomposition: &PathDecomposition, forecast: &Forecast, circuit: &mut Circuit, block: u64) -> Self {
        // A soft neighbor stays until the introduced vertex is there.
        let words = (decomposition.widths().into_iter().max().unwrap_or(0) + 1).div_ceil(64);
        let states = forecast.lengths.iter().copied().max().unwrap_or(1);
        let stages = Vec::new();
        let mut set_table = Self { stages, words, block, memory: 1, states, weights: Vec::new(), roundings: 0 };
        let mut frontier = Bags::new(decomposition);
        let mut done = 0;
        while done < forecast.events.len() {
            let stage = set_table.stage(&mut frontier, forecast, done, circuit);
            done += stage.operations.len();
            set_table.memory = set_table.memory.max((stage.lengths[0] + stage.lengths[1]) as usize);
            set_table.stages.push(stage);
        }
        set_table
    }

    /// As many events as fit into one stage.
    fn stage(&mut self, frontier: &mut Bags, forecast: &Forecast, first: usize, circuit: &mut Circuit) -> Stage {
        let decomposition = frontier.decomposition;
        let words = self.words;
        let width = frontier.vertices.len();
        let rows = frontier.rows(words, &frontier.vertices);
        let needed = match forecast.events[first] {
            Event::Change { forgotten_now, .. } => forgotten_now,
            Event::Multiply { .. } => 0,
        };
        let mut local = width;
        if forecast.lengths[first] > self.block {
            local = (needed..width).take_while(|&n| size(&rows, n + 1) <= self.block).last().map_or(needed, |n| n + 1);
        }
        let outer = frontier.vertices[local..].to_vec();
        let lowest = outer.iter().map(|&u| frontier.key(u)).min();
        let is_near = |line: &Bags, u: u32| lowest.is_none_or(|lowest| line.key(u) < lowest);
        let mut line = Bags { decomposition, vertices: frontier.vertices[..local].to_vec() };
        let frame = |line: &Bags| Frame {
            width: line.vertices.len(),
            rows: line.rows(words, &line.vertices),
            touching: line.rows(words, &outer),
        };
        let mut frames = vec![frame(&line)];
        let mut block = size(&frames[0].rows, local);
        let mut operations = Vec::new();
        for event in forecast.events[first..].iter().take(EVENTS) {
            if let &Event::Change { step, forgotten_now, .. } = event
                && forgotten_now > 0
                && lowest.is_some_and(|(forgotten, _)| forgotten as usize <= step)
                && !operations.is_empty()
            {
                break;
            }
            let mut next = line.clone();
            let place = next.apply(event);
            let after = frame(&next);
            let len = size(&after.rows, after.width);
            let near = next.vertices.iter().take_while(|&&u| is_near(&next, u)).count();
            let shredded = near < after.width && size(&after.rows, near) < self.block / SEGMENTS;
            if !operations.is_empty() && (len > 2 * self.block || shredded) {
                break;
            }
            operations.push(self.operation(event, &line, place, &outer, circuit));
            frontier.apply(event);
            block = block.max(len);
            line = next;
            frames.push(after);
        }
        let place = |&u: &u32| frontier.find(u).expect("what stays is in the frontier");
        let near = line.vertices.iter().take_while(|&&u| is_near(&line, u)).count();
        let lengths = [forecast.lengths[first], forecast.lengths[first + operations.len()]];
        let far = line.vertices[near..].iter().map(place).collect();
        let outer = outer.iter().map(place).collect();
        Stage { width, rows, local, operations, frames, near, far, outer, lengths, block }
    }

    fn operation(
        &mut self,
        event: &Event,
        line: &Bags,
        place: Option<usize>,
        outer: &[u32],
        circuit: &mut Circuit,
    ) -> StageStep {
        let decomposition = line.decomposition;
        match event {
            &Event::Change { forgotten_now, introduced: false, .. } => {
                self.roundings += (1 << forgotten_now) - 1;
                StageStep::Change { forgotten_now, introduction: None }
            }
            &Event::Change { step, forgotten_now, .. } => {
                self.roundings += (1 << forgotten_now) - u64::from(place.is_some());
                let vertex = decomposition.order[step];
                let outer = Bags { decomposition, vertices: outer.to_vec() };
                let weights = self.keep(&decomposition.reduced.weights[vertex as usize], circuit);
                let [hard, blocked] = [line, &outer].map(|line| line.rows(self.words, &[vertex]));
                StageStep::Change { forgotten_now, introduction: Some(Introduction { place, hard, blocked, weights }) }
            }
            Event::Multiply { step, edges } => {
                let weights = circuit.table(edges.iter().map(|(_, m)| m));
                let weights = self.keep(&weights, circuit);
                let ends = edges.iter().map(|&(u, _)| u).chain([decomposition.order[*step]]);
                let find = |u: u32| match line.find(u) {
                    Some(bit) => Location::Local(bit),
                    None => Location::OuterSet(outer.iter().position(|&outer_set| outer_set == u).unwrap_or(0)),
                };
                StageStep::Multiply { places: ends.map(find).collect(), weights }
            }
        }
    }

    fn keep(&mut self, weights: &[Node], circuit: &Circuit) -> usize {
        let worst = weights.iter().map(|&value| match value {
            Node::Register(_) => circuit.roundings(value).saturating_add(1),
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
        self.stages.len()
    }

    /// Additions in one step.
    pub fn work(&self, step: usize) -> u64 {
        self.stages[step].lengths[0] * self.stages[step].operations.len() as u64
    }

    /// Where the table lies after so many steps.
    pub fn place(&self, steps: usize) -> std::ops::Range<usize> {
        let len = match steps {
            0 => self.stages.first().map_or(1, |stage| stage.lengths[0]),
            _ => self.stages[steps - 1].lengths[1],
        } as usize;
        if steps.is_multiple_of(2) { 0..len } else { self.memory - len..self.memory }
    }

    /// Does one step.
    pub fn step<R: Ring>(
        &self,
        at: StepContext<'_, R>,
        registers: &[R::Element],
        table: &mut [R::Element],
    ) -> Result<()> {
        let step = at.number as usize;
        let (from, to) = (self.place(step), self.place(step + 1));
        let (left, right) = table.split_at_mut(from.end.min(to.end));
        let cut = left.len();
        let (source, target) = match step.is_multiple_of(2) {
            true => (&left[from], &mut right[to.start - cut..]),
            false => (&right[from.start - cut..], &mut left[to]),
        };
        let stage = &self.stages[step];
        with_words!(self.words, W => {
            block::StageWork::<R, W>::new(at.weight.ring, stage, &self.weights, registers).run(source, target, at.progress)
        })
    }
}
