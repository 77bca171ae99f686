//! Independent sets along a tree decomposition over the integers: one pass for all digits.
//!
//! Tables and messages are over the independent subsets of bags and scopes; children are multiplied entry by entry, and a message is
//! the sum over the vertex out and in.

use crate::Result;
use crate::elimination::{EliminationOrder, Rule};
use crate::graphs::Graph;
use crate::integers::{Bag, BagSum, ChildMessage, IntegerTree, MessageArithmetic};
use crate::planner::Planner;

/// Independent sets; which vertices have loops, by their places.
#[derive(Debug)]
pub struct IndependentSum {
    looped: Vec<bool>,
}

/// Their number on one graph.
pub type IndependentIntegers = IntegerTree<IndependentSum>;

impl IndependentIntegers {
    /// The count on a graph; `None` where no scopes are found that are small enough.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] when the planner says so.
    pub fn plan(graph: &Graph, planner: &Planner<'_>) -> Result<Option<Self>> {
        let neighbors = graph.stoppable_neighbors(planner.progress())?;
        let found = EliminationOrder::within(&neighbors, Rule::Degree, IndependentSum::WIDEST, planner);
        planner.check()?;
        let Some(elimination) = found else { return Ok(None) };
        let mut has_loop = vec![false; graph.vertices()];
        graph.edges().iter().filter(|(u, v)| u == v).for_each(|&(v, _)| has_loop[v as usize] = true);
        let looped = |elimination: &EliminationOrder| elimination.order.iter().map(|&v| has_loop[v as usize]).collect();
        Self::new(elimination, &neighbors, |order| IndependentSum { looped: looped(order) }, planner.progress())
    }
}

/// The independent subsets of a bag, rising.
fn independent(rows: &[u32]) -> Vec<u32> {
    let mut sets = vec![0u32];
    for (bit, row) in rows.iter().enumerate() {
        for at in 0..sets.len() {
            if sets[at] & row == 0 {
                sets.push(sets[at] | 1 << bit);
            }
        }
    }
    sets
}

impl BagSum for IndependentSum {
    const STATES: f64 = 1.7;
    const PRODUCTS: f64 = 1.7;
    const SECONDS: f64 = 6e-8;
    const PLANNING: f64 = 2e-7;
    const PRIME: f64 = 3.7e-9;
    const PRIME_VERTEX: f64 = 0.0;
    const FEWEST_WITHOUT_CYCLES: usize = 12_000;
    const WIDEST: usize = 12;

    fn can_be(&self, rows: &[u32], set: usize) -> bool {
        rows.iter().enumerate().all(|(bit, row)| set >> bit & 1 == 0 || *row as usize & set == 0)
    }

    fn table<A: MessageArithmetic>(
        &self,
        arithmetic: &A,
        bag: &Bag<'_>,
        children: &[ChildMessage<'_, A::Number>],
    ) -> Result<Vec<A::Number>> {
        let mut table = vec![arithmetic.number(0); 2 << bag.scope.len()];
        for set in independent(&bag.rows) {
            if set & 1 == 1 && self.looped[bag.place] {
                continue;
            }
            let factors: Vec<&A::Number> =
                children.iter().map(|child| &child.message[child.seen(set as usize)]).collect();
            table[set as usize] = arithmetic.product_of(&factors)?;
        }
        Ok(table)
    }

    fn message<A: MessageArithmetic>(
        &self,
        arithmetic: &A,
        _: &Bag<'_>,
        table: &[A::Number],
        heavy: Option<ChildMessage<'_, A::Number>>,
    ) -> Result<Vec<A::Number>> {
        let term = |set: usize| match &heavy {
            Some(child) if !arithmetic.is_zero(&table[set]) => {
                arithmetic.product(&table[set], &child.message[child.seen(set)])
            }
            _ => Ok(table[set].clone()),
        };
        (0..table.len() / 2)
            .map(|set| {
                let mut sum = term(2 * set)?;
                if !arithmetic.is_zero(&table[2 * set + 1]) {
                    arithmetic.add(&mut sum, &term(2 * set + 1)?);
                }
                Ok(sum)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::partial_k_tree;
    use crate::independent_sets::brute;
    use crate::independent_sets::tree::Tree;
    use crate::monitor::Progress;
    use crate::numeric::residue::primes;
    use crate::transfer::{Point, evaluate_lanes};
    use num_bigint::BigUint;
    use proptest::prelude::*;

    fn count(graph: &Graph) -> BigUint {
        let progress = Progress::default();
        IndependentIntegers::plan(graph, &Planner::new(&progress)).unwrap().unwrap().value(&progress).unwrap()
    }

    proptest! {
        #[test]
        fn small_graphs_have_the_sets_that_are_listed(
            n in 1u32..11, pairs in prop::collection::vec((0u32..11, 0u32..11), 0..24),
        ) {
            let graph = Graph::new(n as usize, pairs.into_iter().map(|(u, v)| (u % n, v % n)).collect()).unwrap();
            let expected: u64 = brute::polynomial(&graph).unwrap().into_iter().sum();
            prop_assert_eq!(count(&graph), BigUint::from(expected));
        }
    }

    #[test]
    fn products_by_halves_agree_with_the_engine_of_residues() {
        let ladder = (0..3000u32).flat_map(|i| [(2 * i, 2 * i + 1), (2 * i, 2 * i + 2), (2 * i + 1, 2 * i + 3)]);
        for graph in [Graph::new(6002, ladder.collect()).unwrap(), partial_k_tree(3, 3000, 5)] {
            let progress = Progress::default();
            let engine = Tree::plan(&graph, None, 1 << 20, &Planner::new(&progress)).unwrap().unwrap();
            let moduli = primes(4).unwrap();
            let points: Vec<Point> = moduli.iter().map(|&modulus| Point::new(modulus, 1)).collect();
            let expected = evaluate_lanes::<4>(&engine, &points, &progress).unwrap();
            let found = count(&graph);
            assert_eq!(moduli.iter().map(|modulus| modulus.residue_of(&found)).collect::<Vec<_>>(), expected);
        }
    }
}
