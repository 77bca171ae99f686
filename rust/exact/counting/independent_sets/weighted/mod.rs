//! The hard-core partition function with an activity for each vertex, as an exact integer.
//!
//! With activities a_v/b_v the integer sought is
//!
//!   prod of b_v * Z = sum over independent sets S of prod over S of a_v * prod over the others of b_v.
//!
//! Vertices come in an order; a state says which vertices of the frontier, those with neighbors still to come, are occupied. Or they
//! are eliminated along a [`tree`] decomposition, where that is forecast to take less time.
//!
//! Source: H. Bodlaender (1998), A partial k-arboretum of graphs with bounded treewidth (tables along a path decomposition).

mod tree;

use self::tree::WeightedTree;
use crate::counting::evaluation::Options;
use crate::counting::exact::{Modular, edge_words, one_value};
use crate::counting::matchings::{cost, good_order, last_neighbors, planner, sum};
use crate::error::subsets_bytes;
use crate::graphs::Graph;
use crate::memory::reserved;
use crate::monitor::{Monitor, Progress};
use crate::numeric::residue::Modulus;
use crate::{Error, Result, parallel};
use num_bigint::BigInt;

/// A weighted sum over independent sets that is sought.
#[derive(Debug)]
pub struct WeightedSets {
    graph: Graph,
    weights: Vec<[BigInt; 2]>,
    steps: Vec<VertexStep>,
    width: u32,
    work: f64,
    /// Instead of the steps, where it takes less time.
    tree: Option<WeightedTree>,
}

/// Seconds of a state that is passed over, and of a product of a tree, about.
const STATE: f64 = 4e-9;
const PRODUCT: f64 = 4e-9;
/// Seconds for each vertex that a tree and that an order take to plan, about.
const TREE_PLANNING: f64 = 1e-5;
const PLANNING: f64 = 1e-4;

/// A vertex: bits of its earlier neighbors that stay and that leave, its own bit if it stays, bits in use until now.
#[derive(Clone, Copy, Debug)]
struct VertexStep {
    vertex: u32,
    staying: u64,
    leaving: u64,
    own: Option<u32>,
    looped: bool,
    active: u32,
}

impl WeightedSets {
    /// Plans a sum with the weights of an empty and of an occupied vertex, in a given order or a good one.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there are weights for each vertex, [`Error::TooLarge`] if the states of one residue take more
    /// than `limit` bytes; the monitor's error.
    pub fn new(
        graph: Graph,
        weights: Vec<[BigInt; 2]>,
        given: Option<&[u32]>,
        limit: u64,
        monitor: &mut dyn Monitor,
    ) -> Result<Self> {
        if weights.len() != graph.vertices() {
            let (expected, found) = (graph.vertices().to_string(), weights.len().to_string());
            return Err(Error::Shape { name: "weights", expected, found });
        }
        let neighbors = graph.neighbors();
        let primes = log2_bound(&weights) / 55.0 + 2.0;
        let (order, tree) = match given {
            Some(order) => (order.to_vec(), None),
            None => parallel::run(1, 0, monitor, |progress| planned(&graph, &neighbors, primes, limit, progress))?,
        };
        let (steps, width) = steps(&graph, &neighbors, &order);
        let work: f64 = steps.iter().map(|step| f64::from(step.active).exp2()).sum();
        let fits = width <= 58 && 8u64 << width <= limit;
        let tree = tree.filter(|tree| !fits || tree.work() * PRODUCT < work * STATE);
        if tree.is_none() && !fits {
            let needed = subsets_bytes(width);
            return Err(Error::TooLarge { what: "the states of the frontier", needed, limit: limit.into() });
        }
        Ok(Self { graph, weights, steps, width, work, tree })
    }

    /// Bytes for one prime.
    pub fn bytes(&self) -> u128 {
        self.tree.as_ref().map_or_else(|| 8u128 << self.width, WeightedTree::bytes)
    }

    fn evaluate(&self, modulus: Modulus, progress: &Progress) -> Result<u64> {
        if let Some(tree) = &self.tree {
            let residues = |v: u32| self.weights[v as usize].each_ref().map(|weight| modulus.residue_of_signed(weight));
            return tree.evaluate(modulus, residues, progress);
        }
        let p = modulus.value();
        let mul = |x: u64, weight: u64| if weight == 1 { x } else { modulus.residue(modulus.mul(x, weight)) };
        let mut states: Vec<u64> = reserved(1u128 << self.width, "the states of the frontier")?;
        states.resize(1 << self.width, 0);
        states[0] = 1;
        for (i, step) in self.steps.iter().enumerate() {
            if self.width > 12 || i % 64 == 0 {
                progress.check()?;
            }
            let [empty, occupied] = &self.weights[step.vertex as usize];
            let (empty, occupied) = (modulus.residue_of_signed(empty), modulus.residue_of_signed(occupied));
            let occupied = if step.looped { 0 } else { occupied };
            let own = step.own.map_or(0, |bit| 1u64 << bit);
            let mask = step.leaving | own;
            let mut rest = 0u64;
            while rest >> step.active == 0 {
                let alone = states[rest as usize];
                let mut total = alone;
                let mut leaving = step.leaving;
                while leaving > 0 {
                    let state = &mut states[(rest | leaving) as usize];
                    total = sum(total, *state, p);
                    *state = 0;
                    leaving = (leaving - 1) & step.leaving;
                }
                let without = mul(total, empty);
                let with = if rest & step.staying == 0 { mul(alone, occupied) } else { 0 };
                if own == 0 {
                    states[rest as usize] = sum(without, with, p);
                } else {
                    states[rest as usize] = without;
                    states[(rest | own) as usize] = with;
                }
                // The next number whose bits lie outside the mask.
                rest = ((rest | mask) + 1) & !mask;
            }
        }
        Ok(states[0])
    }
}

/// A good order, and a tree decomposition where one was looked for. An order is not searched for where the tree would be done
/// sooner, and for no longer than half as long as the tree would take.
fn planned(
    graph: &Graph,
    neighbors: &[Vec<u32>],
    primes: f64,
    limit: u64,
    progress: &Progress,
) -> Result<(Vec<u32>, Option<WeightedTree>)> {
    let vertices = graph.vertices() as f64;
    let plain: Vec<u32> = (0..graph.vertices() as u32).collect();
    let planner = planner(graph.vertices(), progress);
    if cost(neighbors, &plain) * STATE * primes <= TREE_PLANNING * vertices {
        return Ok((plain, None));
    }
    let tree = WeightedTree::plan(graph, neighbors, limit, &planner);
    planner.check()?;
    if let Some(tree) = tree {
        let seconds = tree.work() * PRODUCT * primes;
        if seconds <= PLANNING * vertices {
            return Ok((plain, Some(tree)));
        }
        planner.allow_seconds(seconds);
        return Ok((good_order(neighbors, &planner)?, Some(tree)));
    }
    Ok((good_order(neighbors, &planner)?, None))
}

/// All terms together are at most `prod (|a_v| + b_v)`.
fn log2_bound(weights: &[[BigInt; 2]]) -> f64 {
    let size = |[empty, occupied]: &[BigInt; 2]| {
        // The logarithm of the leading 64 bits, rounded up.
        let total = empty.magnitude() + occupied.magnitude();
        let shift = total.bits().saturating_sub(60);
        let top = u64::try_from(&total >> shift).unwrap_or(u64::MAX) + 1;
        shift as f64 + (top as f64).log2()
    };
    weights.iter().map(size).sum::<f64>() * (1.0 + 1e-9) + 0.01
}

/// The steps of an order, and the bits of a state.
fn steps(graph: &Graph, neighbors: &[Vec<u32>], order: &[u32]) -> (Vec<VertexStep>, u32) {
    let (place, last) = last_neighbors(neighbors, order);
    let mut looped = vec![false; order.len()];
    graph.edges().iter().filter(|(u, v)| u == v).for_each(|&(v, _)| looped[v as usize] = true);
    let mut bit = vec![0u32; order.len()];
    let (mut free, mut width) = (std::collections::BinaryHeap::new(), 0u32);
    let mut steps = Vec::with_capacity(order.len());
    for (at, &v) in order.iter().enumerate() {
        let (mut staying, mut leaving) = (0u64, 0u64);
        for &u in neighbors[v as usize].iter().filter(|&&u| (place[u as usize] as usize) < at) {
            let mark = 1u64.checked_shl(bit[u as usize]).unwrap_or(0);
            if last[u as usize] as usize == at {
                leaving |= mark;
                free.push(std::cmp::Reverse(bit[u as usize]));
            } else {
                staying |= mark;
            }
        }
        let own = (last[v as usize] as usize > at).then(|| {
            let found = free.pop().map_or(width, |std::cmp::Reverse(bit)| bit);
            width = width.max(found + 1);
            bit[v as usize] = found;
            found
        });
        steps.push(VertexStep { vertex: v, staying, leaving, own, looped: looped[v as usize], active: width });
    }
    (steps, width)
}

impl Modular for WeightedSets {
    fn description(&self) -> Vec<u64> {
        let mut words = vec![u64::from_le_bytes(*b"weighted"), self.graph.vertices() as u64];
        words.extend(edge_words(&self.graph));
        for weight in self.weights.iter().flatten() {
            let digits = weight.magnitude().to_u64_digits();
            words.extend([(digits.len() as u64) << 1 | u64::from(weight.sign() == num_bigint::Sign::Minus)]);
            words.extend(digits);
        }
        words
    }

    fn bits(&self) -> f64 {
        log2_bound(&self.weights)
    }

    fn is_signed(&self) -> bool {
        self.weights.iter().flatten().any(|weight| weight.sign() == num_bigint::Sign::Minus)
    }

    fn method(&self) -> (&'static str, u128, f64) {
        match &self.tree {
            Some(tree) => ("weighted tree decomposition", tree.bytes(), tree.work()),
            None => ("weighted frontier", self.bytes(), self.work),
        }
    }

    fn residues(&self, moduli: &[Modulus], options: &Options, monitor: &mut dyn Monitor) -> Result<Vec<u64>> {
        one_value(self, "the states of the frontier", moduli, options, monitor, |modulus, progress| {
            self.evaluate(modulus, progress)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::exact::Plan;
    use crate::monitor::Silent;
    use proptest::prelude::*;

    /// The sum over all subsets.
    fn brute(graph: &Graph, weights: &[[BigInt; 2]]) -> BigInt {
        let n = graph.vertices();
        let independent = |set: u32| graph.edges().iter().all(|&(u, v)| set >> u & set >> v & 1 == 0);
        let weight = |set: u32| (0..n).map(|v| &weights[v][(set >> v & 1) as usize]).product::<BigInt>();
        (0..1u32 << n).filter(|&set| independent(set)).map(weight).sum()
    }

    proptest! {
        #[test]
        fn the_sum_is_that_over_all_subsets(
            n in 1u32..8,
            pairs in prop::collection::vec((0u32..8, 0u32..8), 0..14),
            values in prop::collection::vec((1i64..5, -7i64..8), 8),
            reversed: bool,
        ) {
            let graph = Graph::new(n as usize, pairs.into_iter().map(|(u, v)| (u % n, v % n)).collect()).unwrap();
            let weights: Vec<[BigInt; 2]> = values[..n as usize].iter().map(|&(b, a)| [b.into(), a.into()]).collect();
            let order: Vec<u32> = (0..n).rev().collect();
            let given = reversed.then_some(order.as_slice());
            let expected = brute(&graph, &weights);
            let modulus = crate::numeric::residue::primes(1).unwrap()[0];
            let progress = Progress::default();
            let tree = WeightedTree::plan(&graph, &graph.neighbors(), u64::MAX, &planner(8, &progress)).unwrap();
            let residues = |v: u32| weights[v as usize].each_ref().map(|weight| modulus.residue_of_signed(weight));
            prop_assert_eq!(
                tree.evaluate(modulus, residues, &progress).unwrap(),
                modulus.residue_of_signed(&expected)
            );
            let sets = WeightedSets::new(graph, weights, given, u64::MAX, &mut Silent).unwrap();
            let found = Plan::new(sets, &mut Silent).unwrap().solve(&Options::default(), &mut Silent).unwrap();
            prop_assert_eq!(&found[0], &expected);
        }
    }

    #[test]
    fn bad_weights_and_wide_graphs_are_refused() {
        let complete = crate::graphs::complete(40).unwrap();
        assert!(WeightedSets::new(complete.clone(), vec![[1.into(), 1.into()]], None, u64::MAX, &mut Silent).is_err());
        assert!(WeightedSets::new(complete, vec![[1.into(), 1.into()]; 40], None, 1 << 30, &mut Silent).is_err());
    }
}
