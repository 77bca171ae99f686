//! Sums along an order of the vertices, whatever is summed.
//!
//! Vertices come one after another. What came and is still to be met, vertices or edges, is the *frontier*; each of it has a bit, and the
//! table holds for each set of bits the sum over the structures that look like that there. Bits are used again, so that a table is as
//! long as the widest frontier asks. Without further work an order is that of the numbers; a better one is [`search`]ed for.
//!
//! Source: H. Bodlaender (1998), A partial k-arboretum of graphs with bounded treewidth (tables along a path decomposition).

use super::planner::Planner;
use super::search::{self, StateKind};
use crate::error::subsets_bytes;
use crate::graphs::Lists;
use crate::memory::reserved;
use crate::monitor::Progress;
use crate::{Error, Result};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Passes over at most so many states are cheap: a better order is not searched for.
const CHEAP: f64 = 3e6;
/// The most bits of a state: `8 << WIDEST` bytes are a number of 64 bits.
const WIDEST: u32 = 58;

/// What is summed, as it is at one step; what all steps need is in a context.
pub trait OrderStep<C> {
    /// What the table is called where it does not fit.
    const STATES: &'static str;

    /// Moves the table on. Bits that were introduced since the last step are 0 in all states that count.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when told to stop.
    fn take(&self, context: &C, states: &mut [u64], progress: &Progress) -> Result<()>;
}

/// The steps of an order, each with the bits in use until then.
#[derive(Debug)]
pub struct OrderSum<S> {
    steps: Vec<(u32, S)>,
    free: BinaryHeap<Reverse<u32>>,
    width: u32,
}

impl<S> Default for OrderSum<S> {
    fn default() -> Self {
        Self { steps: Vec::new(), free: BinaryHeap::new(), width: 0 }
    }
}

impl<S> OrderSum<S> {
    /// A bit for what comes to the frontier: the lowest, for tables are passed over by the others.
    pub fn introduce(&mut self) -> u32 {
        let Some(Reverse(bit)) = self.free.pop() else {
            self.width += 1;
            return self.width - 1;
        };
        bit
    }

    /// The bit of what leaves it; the step that clears it comes before the next one that introduces something.
    pub fn forget(&mut self, bit: u32) {
        self.free.push(Reverse(bit));
    }

    /// One step more.
    pub fn push(&mut self, step: S) {
        self.steps.push((self.width, step));
    }

    /// States passed over.
    pub fn work(&self) -> f64 {
        self.steps.iter().map(|(bits, _)| f64::from(*bits).exp2()).sum()
    }

    /// Bytes of the table, once it is known to fit.
    pub fn bytes(&self) -> u128 {
        8 << self.width.min(WIDEST)
    }

    /// The same, where the table takes at most so many bytes.
    ///
    /// # Errors
    /// [`Error::TooLarge`] otherwise, of what `said` makes of the bytes that it takes.
    pub fn within(self, limit: u64, said: impl FnOnce(u128) -> &'static str) -> Result<Self> {
        if self.width <= WIDEST && self.bytes() <= limit.into() {
            return Ok(self);
        }
        let needed = subsets_bytes(self.width);
        Err(Error::TooLarge { what: said(needed), needed, limit: limit.into() })
    }

    /// The sum, after the last step.
    ///
    /// # Errors
    /// [`Error::TooLarge`] without memory, [`Error::Interrupted`] when told to stop.
    pub fn evaluate<C>(&self, context: &C, progress: &Progress) -> Result<u64>
    where
        S: OrderStep<C>,
    {
        let mut states: Vec<u64> = reserved(1u128 << self.width, S::STATES)?;
        states.push(1);
        for (i, (bits, step)) in self.steps.iter().enumerate() {
            if states.len() > 1 << 12 || i % 64 == 0 {
                progress.check()?;
            }
            states.resize(1 << bits, 0);
            step.take(context, &mut states, progress)?;
        }
        Ok(states[0])
    }
}

/// A sum of residues.
#[inline(always)]
pub fn sum(a: u64, b: u64, p: u64) -> u64 {
    let sum = a + b;
    sum.min(sum.wrapping_sub(p))
}

/// For each vertex the place of its last neighbor in an order, or its own.
pub fn last_neighbors(neighbors: &Lists, order: &[u32]) -> (Vec<u32>, Vec<u32>) {
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
pub fn good_order(neighbors: &Lists, planner: &Planner<'_>) -> Result<Vec<u32>> {
    let plain: Vec<u32> = (0..neighbors.len() as u32).collect();
    let cost = cost(neighbors, &plain);
    if cost <= CHEAP {
        return Ok(plain);
    }
    let searched = searched_order(neighbors, StateKind::Subsets, planner)?;
    Ok(if self::cost(neighbors, &searched) < cost { searched } else { plain })
}

/// An order that is searched for: for tables of all subsets of a frontier, or of those without both ends of an edge.
///
/// # Errors
/// [`crate::Error::Interrupted`] when the planner says so.
pub fn searched_order(neighbors: &Lists, states: StateKind, planner: &Planner<'_>) -> Result<Vec<u32>> {
    let hard = |list: &[u32]| list.iter().map(|&u| (u, states == StateKind::Independent)).collect();
    let searched = search::search(&neighbors.iter().map(hard).collect::<Vec<_>>(), states, planner).1;
    planner.check()?;
    Ok(searched)
}

/// A planner for sums that are computed a prime at a time: an addition takes two fifths of the time that it takes for eight.
pub fn planner<'w>(vertices: usize, progress: &'w Progress) -> Planner<'w> {
    Planner::new(progress).for_residues(3.2 * (vertices as f64 / 55.0 + 2.0))
}

/// States passed over, at two passes per vertex.
pub fn cost(neighbors: &Lists, order: &[u32]) -> f64 {
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
