//! Matchings along an order: a state says which vertices of the frontier are matched.
//!
//! The frontier are those vertices that came and have neighbors still to come. An edge to a vertex that comes last for its neighbor u
//! replaces u by the new vertex in one pass:  new[free] = old[matched] + y old[free],  new[matched] = old[free].
//!
//! Source: M. Jerrum (1987), Two-dimensional monomer-dimer systems are computationally intractable (why the width is in the
//! exponent).

use crate::Result;
use crate::counting::graph_sums::order::{OrderStep, OrderSum, last_neighbors, sum};
use crate::graphs::{Graph, Lists};
use crate::monitor::Progress;
use crate::numeric::residue::Modulus;

/// States that are passed over between two looks at the progress.
const LOOK: usize = 1 << 22;

/// What happens to the vertices of the frontier, which are bits of a state; one that comes is free.
#[derive(Clone, Copy, Debug)]
pub enum MatchingStep {
    /// An edge with its multiplicity.
    Edge {
        /// The bits of its ends, rising.
        bits: [u32; 2],
        /// Edges between both.
        times: u64,
    },
    /// A vertex leaves.
    Forget {
        /// Its bit.
        bit: u32,
    },
    /// A vertex leaves and its last neighbor takes its bit.
    Replace {
        /// Their bit.
        bit: u32,
        /// Edges between both.
        times: u64,
    },
}

/// `Q(y)` modulo a prime, from the modulus and y.
impl OrderStep<(Modulus, u64)> for MatchingStep {
    const STATES: &'static str = "the states of the matchings";

    fn take(&self, &(modulus, y): &(Modulus, u64), states: &mut [u64], progress: &Progress) -> Result<()> {
        let p = modulus.value();
        let mul = |x: u64, times: u64| if times == 1 { x } else { modulus.residue(modulus.mul(x, times)) };
        match *self {
            Self::Edge { bits: [low, high], times } => add_edge(states, low, high, p, progress, |x| mul(x, times)),
            Self::Forget { bit } => each_pair(states, bit, progress, |free, matched| {
                (*free, *matched) = (sum(mul_by(modulus, *free, y), *matched, p), 0);
            }),
            Self::Replace { bit, times: 1 } if y == 1 => each_pair(states, bit, progress, |free, matched| {
                (*free, *matched) = (sum(*free, *matched, p), *free);
            }),
            Self::Replace { bit, times: 1 } if y == 0 => each_pair(states, bit, progress, std::mem::swap),
            Self::Replace { bit, times } => each_pair(states, bit, progress, |free, matched| {
                (*free, *matched) = (sum(mul_by(modulus, *free, y), *matched, p), mul(*free, times));
            }),
        }
    }
}

fn mul_by(modulus: Modulus, x: u64, y: u64) -> u64 {
    match y {
        0 => 0,
        1 => x,
        _ => modulus.residue(modulus.mul(x, y)),
    }
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

/// The steps of an order.
pub fn along(graph: &Graph, neighbors: &Lists, order: &[u32]) -> OrderSum<MatchingStep> {
    let (place, last) = last_neighbors(neighbors, order);
    let times = graph.multiplicities();
    let mut bit = vec![0u32; order.len()];
    let mut steps = OrderSum::default();
    for (at, &v) in order.iter().enumerate() {
        let times = |u: u32| times[&(u.min(v), u.max(v))];
        let earlier: Vec<u32> =
            neighbors[v as usize].iter().copied().filter(|&u| (place[u as usize] as usize) < at).collect();
        // Of the neighbors that leave now, one with the highest bit hands its bit on.
        let leaves = |u: &u32| last[*u as usize] as usize == at;
        let heir = earlier.iter().copied().filter(leaves).max_by_key(|&u| bit[u as usize]);
        bit[v as usize] = match heir {
            Some(u) => {
                steps.push(MatchingStep::Replace { bit: bit[u as usize], times: times(u) });
                bit[u as usize]
            }
            None => steps.introduce(),
        };
        for u in earlier.into_iter().filter(|&u| Some(u) != heir) {
            let (a, b) = (bit[u as usize], bit[v as usize]);
            steps.push(MatchingStep::Edge { bits: [a.min(b), a.max(b)], times: times(u) });
            if leaves(&u) {
                steps.push(MatchingStep::Forget { bit: a });
                steps.forget(a);
            }
        }
        if last[v as usize] as usize == at {
            steps.push(MatchingStep::Forget { bit: bit[v as usize] });
            steps.forget(bit[v as usize]);
        }
    }
    steps
}
