//! Matchings by a frontier: vertices come in an order, and a state says which vertices of the frontier are matched.
//!
//! The frontier are those vertices that came and have neighbors still to come. An edge to a vertex that comes last for its neighbor u
//! replaces u by the new vertex in one pass:  new[free] = old[matched] + y old[free],  new[matched] = old[free].
//!
//! Source: M. Jerrum (1987), Two-dimensional monomer-dimer systems are computationally intractable (why the width is in the
//! exponent).

use crate::Result;
use crate::counting::graph_sums::planner::Planner;
use crate::counting::graph_sums::search::{self, StateKind};
use crate::graphs::Graph;
use crate::memory::reserved;
use crate::monitor::Progress;
use crate::numeric::residue::Modulus;

/// Passes over at most so many states are cheap: a better order is not searched for.
const CHEAP: f64 = 3e6;
/// States that are passed over between two looks at the progress.
const LOOK: usize = 1 << 22;

/// The steps of an order.
#[derive(Debug)]
pub struct Frontier {
    steps: Vec<FrontierStep>,
    width: u32,
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

impl Frontier {
    /// The steps of an order.
    pub fn new(graph: &Graph, neighbors: &[Vec<u32>], order: &[u32]) -> Self {
        let (steps, width) = steps(graph, neighbors, order);
        Self { steps, width }
    }

    /// The bits of a state.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// `Q(y)` modulo a prime.
    ///
    /// # Errors
    /// [`crate::Error::TooLarge`] without memory, [`crate::Error::Interrupted`] when told to stop.
    pub fn evaluate(&self, modulus: Modulus, y: u64, progress: &Progress) -> Result<u64> {
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

/// A sum of residues.
#[inline(always)]
pub fn sum(a: u64, b: u64, p: u64) -> u64 {
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
pub fn last_neighbors(neighbors: &[Vec<u32>], order: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut place = vec![0u32; order.len()];
    order.iter().zip(0..).for_each(|(&v, at)| place[v as usize] = at);
    let last = |v: usize| neighbors[v].iter().map(|&u| place[u as usize]).fold(place[v], u32::max);
    let last = (0..order.len()).map(last).collect();
    (place, last)
}

/// The order by number, or a better one where that is dear.
///
/// # Errors
/// [`crate::Error::Interrupted`] when the planner says so.
pub fn good_order(neighbors: &[Vec<u32>], planner: &Planner<'_>) -> Result<Vec<u32>> {
    let plain: Vec<u32> = (0..neighbors.len() as u32).collect();
    let cost = cost(neighbors, &plain);
    if cost <= CHEAP {
        return Ok(plain);
    }
    let hard = |list: &Vec<u32>| list.iter().map(|&u| (u, false)).collect();
    let searched = search::search(&neighbors.iter().map(hard).collect::<Vec<_>>(), StateKind::Subsets, planner).1;
    planner.check()?;
    Ok(if self::cost(neighbors, &searched) < cost { searched } else { plain })
}

/// A planner for sums that are computed a prime at a time: an addition takes two fifths of the time that it takes for eight.
pub fn planner<'w>(vertices: usize, progress: &'w Progress) -> Planner<'w> {
    Planner::new(progress).for_residues(3.2 * (vertices as f64 / 55.0 + 2.0))
}

/// States passed over, at two passes per vertex.
pub fn cost(neighbors: &[Vec<u32>], order: &[u32]) -> f64 {
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
