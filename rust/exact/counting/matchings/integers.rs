//! Matchings along a tree decomposition over the integers: one pass for all digits.
//!
//! The messages are those of [`super::tree`], joined by the sums over the ways to split a set in two that [`super::convolution`] has
//! modulo primes.

use crate::Result;
use crate::counting::graph_sums::elimination::{EliminationOrder, Rule, places};
use crate::counting::graph_sums::integers::{Bag, BagSum, ChildMessage, IntegerTree, MessageArithmetic};
use crate::counting::graph_sums::planner::Planner;
use crate::graphs::{Graph, Lists};
use std::collections::HashMap;

/// The widest scope on graphs of fewer than so many vertices, where tables of residues that are wide are faster.
const WIDEST_OF_FEW: usize = 6;
const MANY: usize = 4000;

/// Matchings, all or the perfect ones.
#[derive(Debug)]
pub struct MatchingSum {
    /// Whether a vertex may be left alone.
    alone: bool,
    /// How many edges there are between two places, the lower one first, where they are more than one.
    parallel: HashMap<(u32, u32), u64>,
}

/// Their number on one graph.
pub type MatchingIntegers = IntegerTree<MatchingSum>;

/// The sum over the matchings of a graph, perfect ones unless a vertex may be left `alone`; `None` where no scopes are found that are small enough.
///
/// # Errors
/// [`crate::Error::Interrupted`] when the planner says so.
pub fn plan(graph: &Graph, neighbors: &Lists, alone: bool, planner: &Planner<'_>) -> Result<Option<MatchingIntegers>> {
    let widest = if graph.vertices() < MANY { WIDEST_OF_FEW } else { MatchingSum::WIDEST };
    let found = EliminationOrder::within(neighbors, Rule::Degree, widest, planner);
    planner.check()?;
    let Some(elimination) = found else { return Ok(None) };
    let sum = |elimination: &EliminationOrder| {
        let places = places(&elimination.order);
        let several = graph.multiplicities().into_iter().filter(|&((u, v), times)| u != v && times > 1);
        let by_place = |((u, v), times): ((u32, u32), u64)| {
            let (p, q) = (places[u as usize], places[v as usize]);
            ((p.min(q), p.max(q)), times)
        };
        MatchingSum { alone, parallel: several.map(by_place).collect() }
    };
    IntegerTree::new(elimination, neighbors, sum, planner.progress())
}

/// `sums[S] = sum over A within S of f[A] g[S - A]`.
fn convolved<A: MessageArithmetic>(arithmetic: &A, f: &[A::Number], g: &[A::Number]) -> Result<Vec<A::Number>> {
    let mut sums = vec![arithmetic.number(0); f.len()];
    let present: Vec<usize> = (0..g.len()).filter(|&set| !arithmetic.is_zero(&g[set])).collect();
    for (set, x) in f.iter().enumerate().filter(|(_, x)| !arithmetic.is_zero(x)) {
        for &other in present.iter().filter(|&&other| other & set == 0) {
            arithmetic.add(&mut sums[set | other], &arithmetic.product(x, &g[other])?);
        }
    }
    Ok(sums)
}

/// The message of a child over the subsets of the bag.
fn lifted<A: MessageArithmetic>(arithmetic: &A, child: &ChildMessage<'_, A::Number>, len: usize) -> Vec<A::Number> {
    let mut table = vec![arithmetic.number(0); len];
    for (set, x) in child.message.iter().enumerate() {
        table[child.lifted(set)] = x.clone();
    }
    table
}

/// Some children joined, by halves.
fn joined<A: MessageArithmetic>(
    arithmetic: &A,
    children: &[ChildMessage<'_, A::Number>],
    len: usize,
) -> Result<Vec<A::Number>> {
    match children {
        [] => {
            let mut table = vec![arithmetic.number(0); len];
            table[0] = arithmetic.number(1);
            Ok(table)
        }
        [child] => Ok(lifted(arithmetic, child, len)),
        _ => {
            let (low, high) = children.split_at(children.len() / 2);
            convolved(arithmetic, &joined(arithmetic, low, len)?, &joined(arithmetic, high, len)?)
        }
    }
}

impl BagSum for MatchingSum {
    const STATES: f64 = 2.0;
    const PRODUCTS: f64 = 3.0;
    const SECONDS: f64 = 2.4e-8;
    const PLANNING: f64 = 0.0;
    const PRIME: f64 = 1.7e-9;
    const PRIME_VERTEX: f64 = 1e-7;
    const FEWEST_WITHOUT_CYCLES: usize = 1000;
    const WIDEST: usize = 8;

    fn can_be(&self, _: &[u32], _: usize) -> bool {
        true
    }

    fn table<A: MessageArithmetic>(
        &self,
        arithmetic: &A,
        bag: &Bag<'_>,
        children: &[ChildMessage<'_, A::Number>],
    ) -> Result<Vec<A::Number>> {
        joined(arithmetic, children, 2 << bag.scope.len())
    }

    fn message<A: MessageArithmetic>(
        &self,
        arithmetic: &A,
        bag: &Bag<'_>,
        table: &[A::Number],
        heavy: Option<ChildMessage<'_, A::Number>>,
    ) -> Result<Vec<A::Number>> {
        let table = match heavy {
            Some(child) => &convolved(arithmetic, table, &lifted(arithmetic, &child, table.len()))?,
            None => table,
        };
        (0..table.len() / 2)
            .map(|set| {
                let mut sum = table[2 * set + 1].clone();
                if self.alone {
                    arithmetic.add(&mut sum, &table[2 * set]);
                }
                for (bit, u) in bag.scope.iter().enumerate().filter(|(bit, _)| set >> bit & 1 == 1) {
                    if bag.rows[0] >> (bit + 1) & 1 == 1 {
                        let without = &table[2 * (set ^ 1 << bit)];
                        match self.parallel.get(&(bag.place as u32, *u)) {
                            None => arithmetic.add(&mut sum, without),
                            Some(&times) => {
                                arithmetic.add(&mut sum, &arithmetic.product(&arithmetic.number(times), without)?);
                            }
                        }
                    }
                }
                Ok(sum)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Progress;
    use num_bigint::BigUint;
    use proptest::prelude::*;

    /// The number of matchings within some edges, those to the covered vertices left out; of all vertices, where some must be.
    fn count(edges: &[(u32, u32)], covered: u32, all: Option<u32>) -> u64 {
        let Some((&(u, v), rest)) = edges.split_first() else { return u64::from(all.is_none_or(|all| all == covered)) };
        let both = 1 << u | 1 << v;
        let with = if u == v || covered & both != 0 { 0 } else { count(rest, covered | both, all) };
        with + count(rest, covered, all)
    }

    proptest! {
        #[test]
        fn small_graphs_have_the_matchings_that_are_listed(
            n in 1u32..10, pairs in prop::collection::vec((0u32..10, 0u32..10), 0..18),
        ) {
            let graph = Graph::new(n as usize, pairs.into_iter().map(|(u, v)| (u % n, v % n)).collect()).unwrap();
            let progress = Progress::default();
            for (alone, all) in [(true, None), (false, Some((1 << n) - 1))] {
                let planner = Planner::new(&progress);
                let tree = plan(&graph, &graph.neighbors(), alone, &planner).unwrap();
                if let Some(tree) = tree {
                    prop_assert_eq!(tree.value(&progress).unwrap(), BigUint::from(count(graph.edges(), 0, all)));
                }
            }
        }
    }
}
