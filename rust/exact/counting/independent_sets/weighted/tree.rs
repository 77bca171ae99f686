//! Weighted sums over independent sets along a tree decomposition: a graph of small treewidth is easy however long its frontiers are.
//!
//! As in [`super::super::tree`], with weights b_v of an empty and a_v of an occupied vertex and a table over all subsets of a scope:
//!
//!   `m(A) = b_v prod over children c of m_c(A)  +  [A holds no neighbor of v] a_v prod over children c of m_c(A + v)`.
//!
//! Tables hold a number for sets that are not independent too; nothing reads it that counts, since such a set of the scope meets
//! an edge whose first end is eliminated later and refuses it.
//!
//! Source: S. Arnborg and A. Proskurowski (1989), Linear time algorithms for NP-hard problems restricted to partial k-trees.

use crate::Result;
use crate::counting::graph_sums::elimination::{EliminationOrder, Rule};
use crate::counting::graph_sums::planner::Planner;
use crate::counting::matchings::Spare;
use crate::graphs::Graph;
use crate::monitor::Progress;
use crate::numeric::residue::Modulus;

/// The widest scope.
const WIDEST: usize = 34;
/// Subsets of the first vertices of a scope whose places in the children's tables are listed.
const LISTED: usize = 8;
/// Products with which the first order is good enough, for each vertex.
const EASY: u128 = 2000;

/// A tree of messages.
#[derive(Debug)]
pub struct WeightedTree {
    /// Children before parents, a vertex right after the trees of all its children.
    nodes: Vec<WeightedNode>,
    /// Products.
    work: u128,
    /// Elements of all tables at once, where they are most.
    elements: u128,
}

#[derive(Debug)]
struct WeightedNode {
    vertex: u32,
    looped: bool,
    /// Vertices of the scope, and those of them that are neighbors.
    scope: usize,
    neighbors: u64,
    children: Vec<ChildPlaces>,
}

/// Where a set of the parent's scope is in the table of a child, the vertex of the parent left out.
#[derive(Debug)]
struct ChildPlaces {
    low: Vec<u32>,
    high: Vec<u32>,
    /// The bit of the parent's vertex.
    parent: u32,
}

impl WeightedTree {
    /// The better of two greedy orders; none where the tables have more than `limit` bytes, or the planner stops.
    pub fn plan(graph: &Graph, neighbors: &[Vec<u32>], limit: u64, planner: &Planner<'_>) -> Option<Self> {
        let by = |rule| Self::new(graph, neighbors, &EliminationOrder::greedy(neighbors, rule, planner)?, planner);
        let mut best = by(Rule::Degree);
        if best.as_ref().is_none_or(|tree| tree.work > EASY * neighbors.len() as u128) {
            best = best.into_iter().chain(by(Rule::Fill)).min_by_key(|tree| tree.work);
        }
        best.filter(|tree| tree.bytes() <= limit.into())
    }

    fn new(
        graph: &Graph,
        neighbors: &[Vec<u32>],
        elimination: &EliminationOrder,
        planner: &Planner<'_>,
    ) -> Option<Self> {
        let EliminationOrder { order, scopes } = elimination;
        if elimination.width() > WIDEST {
            return None;
        }
        let mut places = vec![0u32; order.len()];
        (0..).zip(order).for_each(|(place, &v)| places[v as usize] = place);
        let mut looped = vec![false; order.len()];
        graph.edges().iter().filter(|(u, v)| u == v).for_each(|&(v, _)| looped[v as usize] = true);
        let (postorder, children) = elimination.postorder();
        let mut tree = Self { nodes: Vec::with_capacity(order.len()), work: 0, elements: 0 };
        let mut held = 0u128;
        for place in postorder {
            if planner.is_stopping() {
                return None;
            }
            let (vertex, scope) = (order[place], &scopes[place]);
            let bit = |u: &u32| scope.binary_search(&places[*u as usize]).ok();
            let mask = neighbors[vertex as usize].iter().filter_map(bit).fold(0, |mask, bit| mask | 1 << bit);
            let size = |scope: &[u32]| 1u128 << scope.len();
            let waiting: u128 = children[place].iter().map(|&c| size(&scopes[c])).sum();
            tree.elements = tree.elements.max(held + 2 * size(scope));
            held = held + size(scope) - waiting;
            tree.work += 2 * size(scope) * (1 + children[place].len() as u128) + 16;
            // They are taken from the stack, the last one first.
            let children = children[place].iter().rev().map(|&c| ChildPlaces::new(scope, &scopes[c])).collect();
            let looped = looped[vertex as usize];
            tree.nodes.push(WeightedNode { vertex, looped, scope: scope.len(), neighbors: mask, children });
        }
        Some(tree)
    }

    /// Products of one evaluation, about.
    pub fn work(&self) -> f64 {
        self.work as f64
    }

    /// Bytes of all tables at once.
    pub fn bytes(&self) -> u128 {
        8 * self.elements
    }

    /// The sum modulo a prime, with the weights of an empty and of an occupied vertex.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] when told to stop.
    pub fn evaluate(&self, modulus: Modulus, weights: impl Fn(u32) -> [u64; 2], progress: &Progress) -> Result<u64> {
        let mut total = modulus.residue(1);
        let (mut waiting, mut spare): (Vec<Vec<u64>>, Spare) = Default::default();
        for (number, node) in self.nodes.iter().enumerate() {
            if number % 64 == 0 || node.scope > 10 {
                progress.check()?;
            }
            let [empty, occupied] = weights(node.vertex);
            let occupied = if node.looped { 0 } else { occupied };
            let mut tables = [spare.table(1 << node.scope, empty)?, spare.table(1 << node.scope, occupied)?];
            for places in &node.children {
                let child = waiting.pop().unwrap_or_default();
                places.multiply(modulus, &child, &mut tables, progress)?;
                spare.keep(child);
            }
            let [mut message, taken] = tables;
            for (set, (x, &taken)) in (0u64..).zip(message.iter_mut().zip(&taken)) {
                let allowed = u64::from(set & node.neighbors == 0).wrapping_neg();
                *x = modulus.fold(*x + (taken & allowed));
            }
            spare.keep(taken);
            if node.scope == 0 {
                total = modulus.mul(total, message[0]);
                spare.keep(message);
            } else {
                waiting.push(message);
            }
        }
        Ok(modulus.residue(total))
    }
}

impl ChildPlaces {
    /// For the scope of a vertex and that of its child, which begins with the vertex.
    fn new(scope: &[u32], below: &[u32]) -> Self {
        let place = |u: &u32| below.binary_search(u).map_or(0, |bit| 1u32 << bit);
        let bits: Vec<u32> = scope.iter().map(place).collect();
        let (few, high) = bits.split_at(bits.len().min(LISTED));
        let mut low = vec![0];
        for &bit in few {
            let further: Vec<u32> = low.iter().map(|index| index | bit).collect();
            low.extend(further);
        }
        Self { low, high: high.to_vec(), parent: 1 }
    }

    /// Multiplies what a vertex out and in makes by the child's message.
    fn multiply(
        &self,
        modulus: Modulus,
        child: &[u64],
        [free, taken]: &mut [Vec<u64>; 2],
        progress: &Progress,
    ) -> Result<()> {
        let len = self.low.len();
        for (number, (free, taken)) in free.chunks_mut(len).zip(taken.chunks_mut(len)).enumerate() {
            if number % 4096 == 4095 {
                progress.check()?;
            }
            let high = self.high.iter().enumerate();
            let high = high.fold(0, |index, (place, &bit)| index | (bit * (number >> place & 1) as u32));
            for ((free, taken), &low) in free.iter_mut().zip(taken).zip(&self.low) {
                let index = high | low;
                *free = modulus.mul(*free, child[index as usize]);
                *taken = modulus.mul(*taken, child[(index | self.parent) as usize]);
            }
        }
        Ok(())
    }
}
