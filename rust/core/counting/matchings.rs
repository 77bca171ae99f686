//! Matchings of any graph by a frontier: all of them, those of each size, or the perfect ones.
//!
//! Vertices come in an order. A state says which vertices of the frontier, those with neighbors still to come, are matched.
//! With a weight y for a vertex left alone the sum over all matchings is
//!
//!   Q(y) = sum over k of m_k y^(n-2k):    Q(1) all matchings (the Hosoya index),  Q(0) the perfect ones,
//!
//! and the numbers m_k of matchings of k edges follow from Q at enough points. An edge to a vertex that comes last for its
//! neighbor u replaces u by the new vertex in one pass:  new[free] = old[matched] + y old[free],  new[matched] = old[free].
//!
//! Sources: H. Hosoya (1971), Topological index; M. Jerrum (1987), Two-dimensional monomer-dimer systems are computationally
//! intractable (why the width is in the exponent).

use super::evaluation::Options;
use super::exact::{Modular, edge_words, fitting, one_by_one};
use super::independent_sets::frontier::order::{self, StateKind};
use super::independent_sets::planner::Planner;
use super::perfect_matchings::log2_bound;
use crate::error::subsets_bytes;
use crate::graphs::{Graph, maximum_matching};
use crate::memory::{self, reserved};
use crate::monitor::{Monitor, Progress};
use crate::numeric::residue::{Modulus, inverse_modulo};
use crate::{Error, Result, parallel};

/// Which matchings are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those that cover every vertex.
    Perfect,
    /// All, the empty one too.
    All,
    /// Those of 0, 1, 2, ... edges.
    BySize,
}

impl Which {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Perfect => "perfect",
            Self::All => "all",
            Self::BySize => "by size",
        }
    }
}

/// A number of matchings that is sought.
#[derive(Debug)]
pub struct Matchings {
    which: Which,
    words: Vec<u64>,
    steps: Vec<FrontierStep>,
    width: u32,
    work: f64,
    bits: f64,
    vertices: usize,
    /// The most edges of a matching.
    largest: usize,
}

/// One step of the frontier; vertices are bits of a state.
#[derive(Clone, Copy, Debug)]
enum FrontierStep {
    /// A vertex comes, free, in a bit that is 0 in every state.
    Introduce { grows: bool },
    /// An edge with its multiplicity.
    Edge { bits: [u32; 2], times: u64 },
    /// A vertex leaves.
    Forget { bit: u32 },
    /// A vertex leaves and its last neighbor takes its bit, joined to it so many times.
    Replace { bit: u32, times: u64 },
}

/// Passes over at most so many states are cheap: a better order is not searched for.
const CHEAP: f64 = 3e6;
/// Graphs of so many vertices and edges are planned on the calling thread.
const SHORT: usize = 256;
/// Bytes that planning takes for each vertex and edge, about.
const VERTEX: u32 = 160;
const EDGE: u32 = 64;
/// Bytes it may take however few are allowed.
const LEAST: u64 = 64 << 20;
/// States that are passed over between two looks at the progress.
const LOOK: usize = 1 << 22;

impl Matchings {
    /// Plans a count, with an order of the vertices or the best that is found.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the states of one residue take more than `limit` bytes; the monitor's error.
    pub fn plan(
        graph: &Graph,
        which: Which,
        given: Option<&[u32]>,
        limit: u64,
        monitor: &mut dyn Monitor,
    ) -> Result<Self> {
        memory::check("planning the count on a graph", graph.bytes(VERTEX, EDGE), limit.max(LEAST))?;
        memory::charge("planning the count on a graph", graph.bytes(VERTEX, EDGE))?;
        if graph.vertices() + graph.edges().len() <= SHORT {
            return Self::new(graph, which, given, limit, &Progress::default());
        }
        parallel::run(1, 0, monitor, |progress| Self::new(graph, which, given, limit, progress))
    }

    fn new(graph: &Graph, which: Which, given: Option<&[u32]>, limit: u64, progress: &Progress) -> Result<Self> {
        let largest = maximum_matching(graph, progress)?.iter().flatten().count() / 2;
        let neighbors = graph.neighbors();
        let order = match given {
            Some(order) => order.to_vec(),
            None => good_order(&neighbors, progress)?,
        };
        let (steps, width) = steps(graph, &neighbors, &order);
        if width > 58 || 8u64 << width > limit {
            let what = "the states of the matchings";
            let needed = subsets_bytes(width);
            return Err(Error::TooLarge { what, needed, limit: limit.into() });
        }
        let mut words = vec![u64::from_le_bytes(*b"matching"), which as u64, graph.vertices() as u64];
        words.extend(edge_words(graph));
        let bits = match which {
            Which::Perfect => log2_bound(graph),
            _ => log2_bound_all(graph),
        };
        let work = cost(&neighbors, &order);
        Ok(Self { which, words, steps, width, work, bits, vertices: graph.vertices(), largest })
    }

    /// Bytes for one prime.
    pub fn bytes(&self) -> u128 {
        8u128 << self.width
    }

    /// Additions for one prime, roughly.
    pub fn work(&self) -> f64 {
        self.work * self.points().len() as f64
    }

    /// The weights of a free vertex the sum is evaluated at.
    fn points(&self) -> Vec<u64> {
        match self.which {
            Which::Perfect => vec![0],
            Which::All => vec![1],
            Which::BySize => (1..=self.largest as u64 + 1).collect(),
        }
    }

    /// `Q(y)` modulo a prime.
    fn evaluate(&self, modulus: Modulus, y: u64, progress: &Progress) -> Result<u64> {
        let p = modulus.value();
        let mul = |x: u64, times: u64| if times == 1 { x } else { modulus.residue(modulus.mul(x, times)) };
        let mut states: Vec<u64> = reserved(1u128 << self.width, "the states of the matchings")?;
        states.push(1);
        for (i, &step) in self.steps.iter().enumerate() {
            if states.len() > 1 << 12 || i % 64 == 0 {
                progress.check()?;
            }
            match step {
                FrontierStep::Introduce { grows: true } => states.resize(2 * states.len(), 0),
                FrontierStep::Introduce { grows: false } => {}
                FrontierStep::Edge { bits: [low, high], times } => {
                    add_edge(&mut states, low, high, p, progress, |x| mul(x, times))?
                }
                FrontierStep::Forget { bit } => each_pair(&mut states, bit, progress, |free, matched| {
                    (*free, *matched) = (sum(mul_by(modulus, *free, y), *matched, p), 0);
                })?,
                FrontierStep::Replace { bit, times: 1 } if y == 1 => {
                    each_pair(&mut states, bit, progress, |free, matched| {
                        (*free, *matched) = (sum(*free, *matched, p), *free);
                    })?
                }
                FrontierStep::Replace { bit, times: 1 } if y == 0 => {
                    each_pair(&mut states, bit, progress, std::mem::swap)?
                }
                FrontierStep::Replace { bit, times } => each_pair(&mut states, bit, progress, |free, matched| {
                    (*free, *matched) = (sum(mul_by(modulus, *free, y), *matched, p), mul(*free, times));
                })?,
            }
        }
        Ok(states[0])
    }
}

fn mul_by(modulus: Modulus, x: u64, y: u64) -> u64 {
    match y {
        0 => 0,
        1 => x,
        _ => modulus.residue(modulus.mul(x, y)),
    }
}

#[inline(always)]
pub(super) fn sum(a: u64, b: u64, p: u64) -> u64 {
    let sum = a + b;
    sum.min(sum.wrapping_sub(p))
}

/// Pairs of states that differ in one bit.
#[inline(always)]
fn each_pair(states: &mut [u64], bit: u32, progress: &Progress, pair: impl Fn(&mut u64, &mut u64)) -> Result<()> {
    for part in states.chunks_mut(LOOK.max(2 << bit)) {
        for block in part.chunks_exact_mut(2 << bit) {
            let (free, matched) = block.split_at_mut(1 << bit);
            for (free, matched) in free.chunks_mut(LOOK).zip(matched.chunks_mut(LOOK)) {
                free.iter_mut().zip(matched).for_each(|(free, matched)| pair(free, matched));
                if free.len() == LOOK {
                    progress.check()?;
                }
            }
        }
        progress.check()?;
    }
    Ok(())
}

/// Adds what an edge between two free vertices matches.
#[inline(always)]
fn add_edge(
    states: &mut [u64],
    low: u32,
    high: u32,
    p: u64,
    progress: &Progress,
    times: impl Fn(u64) -> u64,
) -> Result<()> {
    for part in states.chunks_mut(LOOK.max(2 << high)) {
        for block in part.chunks_exact_mut(2 << high) {
            let (first, second) = block.split_at_mut(1 << high);
            let look = LOOK.max(2 << low);
            for (from, to) in first.chunks(look).zip(second.chunks_mut(look)) {
                for (from, to) in from.chunks_exact(2 << low).zip(to.chunks_exact_mut(2 << low)) {
                    from[..1 << low].iter().zip(&mut to[1 << low..]).for_each(|(&x, y)| *y = sum(*y, times(x), p));
                }
                if from.len() >= LOOK {
                    progress.check()?;
                }
            }
        }
        progress.check()?;
    }
    Ok(())
}

/// For each vertex the place of its last neighbor in an order, or its own.
pub(super) fn last_neighbors(neighbors: &[Vec<u32>], order: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut place = vec![0u32; order.len()];
    order.iter().zip(0..).for_each(|(&v, at)| place[v as usize] = at);
    let last = |v: usize| neighbors[v].iter().map(|&u| place[u as usize]).fold(place[v], u32::max);
    let last = (0..order.len()).map(last).collect();
    (place, last)
}

/// The order by number, or a better one where that is dear.
///
/// # Errors
/// [`Error::Interrupted`] when the progress says so.
pub(super) fn good_order(neighbors: &[Vec<u32>], progress: &Progress) -> Result<Vec<u32>> {
    let plain: Vec<u32> = (0..neighbors.len() as u32).collect();
    let cost = cost(neighbors, &plain);
    if cost <= CHEAP {
        return Ok(plain);
    }
    // A prime at a time: an addition takes two fifths of the time that it takes for eight.
    let planner = Planner::new(progress).for_residues(3.2 * (neighbors.len() as f64 / 55.0 + 2.0));
    let hard = |list: &Vec<u32>| list.iter().map(|&u| (u, false)).collect();
    let searched = order::search(&neighbors.iter().map(hard).collect::<Vec<_>>(), StateKind::Subsets, &planner).1;
    progress.check()?;
    Ok(if self::cost(neighbors, &searched) < cost { searched } else { plain })
}

/// States passed over, at two passes per vertex.
fn cost(neighbors: &[Vec<u32>], order: &[u32]) -> f64 {
    let (_, last) = last_neighbors(neighbors, order);
    let mut leaving = vec![0u32; order.len() + 1];
    let (mut width, mut cost) = (0i32, 0.0);
    for (at, &v) in order.iter().enumerate() {
        if last[v as usize] as usize > at {
            width += 1;
            leaving[last[v as usize] as usize] += 1;
        }
        cost += 2.0 * f64::from(width + i32::from(leaving[at] == 0)).exp2();
        width -= leaving[at] as i32;
    }
    cost
}

/// The steps of an order, and the bits of a state.
fn steps(graph: &Graph, neighbors: &[Vec<u32>], order: &[u32]) -> (Vec<FrontierStep>, u32) {
    let (place, last) = last_neighbors(neighbors, order);
    let mut times = std::collections::HashMap::new();
    for &(u, v) in graph.edges() {
        *times.entry((u.min(v), u.max(v))).or_insert(0u64) += 1;
    }
    let mut bit = vec![0u32; order.len()];
    let (mut steps, mut width, mut free) = (Vec::new(), 0u32, Vec::new());
    for (at, &v) in order.iter().enumerate() {
        let times = |u: u32| times[&(u.min(v), u.max(v))];
        let earlier: Vec<u32> =
            neighbors[v as usize].iter().copied().filter(|&u| (place[u as usize] as usize) < at).collect();
        // Of the neighbors that leave now, one with the highest bit hands its bit on.
        let leaves = |u: &u32| last[*u as usize] as usize == at;
        let heir = earlier.iter().copied().filter(leaves).max_by_key(|&u| bit[u as usize]);
        bit[v as usize] = match heir {
            Some(u) => {
                steps.push(FrontierStep::Replace { bit: bit[u as usize], times: times(u) });
                bit[u as usize]
            }
            None => {
                let reused: Option<u32> = free.pop();
                steps.push(FrontierStep::Introduce { grows: reused.is_none() });
                reused.unwrap_or_else(|| {
                    width += 1;
                    width - 1
                })
            }
        };
        for u in earlier.into_iter().filter(|&u| Some(u) != heir) {
            let (a, b) = (bit[u as usize], bit[v as usize]);
            steps.push(FrontierStep::Edge { bits: [a.min(b), a.max(b)], times: times(u) });
            if leaves(&u) {
                steps.push(FrontierStep::Forget { bit: a });
                free.push(a);
            }
        }
        if last[v as usize] as usize == at {
            steps.push(FrontierStep::Forget { bit: bit[v as usize] });
            free.push(bit[v as usize]);
        }
    }
    (steps, width)
}

/// `log2` of a number that all matchings together do not exceed.
///
/// Every edge has an end outside an independent set, so what the vertices outside choose (an edge or none) says it all: their
/// number is at most the product of `1 + d_v` over them.
fn log2_bound_all(graph: &Graph) -> f64 {
    let (degrees, neighbors) = (graph.degrees(), graph.neighbors());
    let mut outside = vec![false; graph.vertices()];
    let mut bits = 0.0;
    for v in 0..graph.vertices() {
        if outside[v] {
            bits += (1.0 + degrees[v] as f64).log2();
        } else {
            neighbors[v].iter().for_each(|&u| outside[u as usize] = true);
        }
    }
    bits * (1.0 + 1e-9) + 0.01
}

impl Modular for Matchings {
    fn description(&self) -> Vec<u64> {
        self.words.clone()
    }

    fn bits(&self) -> f64 {
        self.bits
    }

    fn method(&self) -> (&'static str, u128, f64) {
        ("frontier", self.bytes(), self.work())
    }

    fn values(&self) -> usize {
        self.points().len()
    }

    fn residues(&self, moduli: &[Modulus], options: &Options, monitor: &mut dyn Monitor) -> Result<Vec<u64>> {
        let points = self.points();
        let options = &fitting(options, self.bytes(), "the states of the matchings")?;
        let work = (self.work().max(1.0) as u64).max(points.len() as u64);
        one_by_one(self, moduli, work, options, monitor, |modulus, progress| {
            let value = |&y: &u64| {
                let value = self.evaluate(modulus, y, progress)?;
                progress.advance(work / points.len() as u64)?;
                Ok(value)
            };
            points.iter().map(value).collect()
        })
    }

    fn integers(&self, modulus: Modulus, values: &[u64]) -> Vec<u64> {
        match self.which {
            Which::BySize => self.by_size(modulus, values),
            _ => values.to_vec(),
        }
    }
}

impl Matchings {
    /// The numbers `m_k` from `Q(1), Q(2), ...`: with `z = y^-2`, `Q(y) y^-n = sum of m_k z^k` (Newton's interpolation).
    fn by_size(&self, modulus: Modulus, values: &[u64]) -> Vec<u64> {
        let p = modulus.value();
        let inverse = |x: u64| inverse_modulo(x % p, p).unwrap_or(0);
        let mul = |a: u64, b: u64| modulus.residue(modulus.mul(a, b));
        let subtract = |a: u64, b: u64| if a >= b { a - b } else { a + (p - b) };
        let points: Vec<u64> = self.points().into_iter().map(|y| inverse(y * y)).collect();
        let mut differences: Vec<u64> = self
            .points()
            .into_iter()
            .zip(values)
            .map(|(y, &q)| mul(q, modulus.pow(inverse(y), self.vertices as u64)))
            .collect();
        for level in 1..points.len() {
            for i in (level..points.len()).rev() {
                let slope = inverse(subtract(points[i], points[i - level]));
                differences[i] = mul(subtract(differences[i], differences[i - 1]), slope);
            }
        }
        let mut coefficients = vec![0; points.len()];
        for i in (0..points.len()).rev() {
            // coefficients = coefficients * (z - points[i]) + differences[i]
            for k in (0..points.len()).rev() {
                let above = if k > 0 { coefficients[k - 1] } else { 0 };
                coefficients[k] = subtract(above, mul(coefficients[k], points[i]));
            }
            coefficients[0] = sum(coefficients[0], differences[i], p);
        }
        coefficients
    }
}
