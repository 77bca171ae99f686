//! Matchings of any graph: all of them, those of each size, or the perfect ones.
//!
//! With a weight y for a vertex left alone the sum over all matchings is
//!
//!   Q(y) = sum over k of m_k y^(n-2k):    Q(1) all matchings (the Hosoya index),  Q(0) the perfect ones,
//!
//! and the numbers m_k of matchings of k edges follow from Q at enough points. Q(y) is found by a [`frontier`] or along a [`tree`]
//! decomposition, whichever is forecast to take less time.
//!
//! Source: H. Hosoya (1971), Topological index.

mod convolution;
mod frontier;
mod integers;
mod tree;

use self::frontier::MatchingStep;
use self::integers::MatchingIntegers;
use self::tree::MatchingTree;
use super::evaluation::Options;
use super::exact::{Modular, edge_words, fitting, one_by_one};
use super::graph_sums::integers::INTEGERS;
use super::graph_sums::order::{OrderStep, OrderSum, cost, good_order, planner};
use super::graph_sums::planner::Planner;
use super::graph_sums::quickest;
use super::interpolation::interpolate;
use super::perfect_matchings::log2_bound;
use crate::graphs::{Graph, maximum_matching};
use crate::memory;
use crate::monitor::{Monitor, Progress};
use crate::numeric::residue::Modulus;
use crate::{Result, parallel};
use num_bigint::BigInt;

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
    method: MatchingMethod,
    bits: f64,
    vertices: usize,
    /// The most edges of a matching.
    largest: usize,
}

/// How the sums are found.
#[derive(Debug)]
enum MatchingMethod {
    /// By a frontier, with the states that are passed over.
    Frontier(OrderSum<MatchingStep>, f64),
    /// Along a tree decomposition.
    Tree(MatchingTree),
    /// The same over the integers.
    Integers(MatchingIntegers),
}

/// Seconds of a state that a frontier passes over, and of a product of a tree, about.
const STATE: f64 = 2e-9;
const PRODUCT: f64 = 1.5e-9;
/// Graphs of so many vertices and edges are planned on the calling thread. Larger: a stop is heard later; smaller: a pool is woken for
/// little. Not tuned.
const SHORT: usize = 256;
/// Bytes that planning takes for each vertex and edge, about.
const VERTEX: u32 = 160;
const EDGE: u32 = 64;
/// Bytes it may take however few are allowed.
const LEAST: u64 = 64 << 20;

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
        let is_short = graph.vertices() + graph.edges().len() <= SHORT;
        parallel::run_one(is_short, monitor, |progress| Self::new(graph, which, given, limit, progress))
    }

    fn new(graph: &Graph, which: Which, given: Option<&[u32]>, limit: u64, progress: &Progress) -> Result<Self> {
        let largest = match which {
            Which::BySize => maximum_matching(graph, progress)?.iter().flatten().count() / 2,
            _ => 0,
        };
        let bits = match which {
            Which::Perfect => log2_bound(graph),
            _ => log2_bound_all(graph, progress)?,
        };
        let evaluations = (bits / 55.0 + 2.0) * (largest + 1) as f64;
        let method = match (which, given) {
            (Which::All | Which::Perfect, None) => MatchingMethod::by_integers(graph, which, limit, progress)?,
            _ => None,
        };
        let method = match method {
            Some(method) => method,
            None => MatchingMethod::new(graph, given, evaluations, limit, progress)?,
        };
        let mut words = vec![u64::from_le_bytes(*b"matching"), which as u64, graph.vertices() as u64];
        words.extend(edge_words(graph));
        Ok(Self { which, words, method, bits, vertices: graph.vertices(), largest })
    }

    /// Bytes for one prime.
    pub fn bytes(&self) -> u128 {
        match &self.method {
            MatchingMethod::Frontier(frontier, _) => frontier.bytes(),
            MatchingMethod::Tree(tree) => tree.bytes(),
            MatchingMethod::Integers(tree) => tree.bytes(),
        }
    }

    /// Additions for one prime, roughly.
    pub fn work(&self) -> f64 {
        let one = match &self.method {
            MatchingMethod::Frontier(_, states) => *states,
            MatchingMethod::Tree(tree) => tree.work(),
            MatchingMethod::Integers(tree) => return tree.seconds() * 1e9,
        };
        one * self.points().len() as f64
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
        match &self.method {
            MatchingMethod::Frontier(frontier, _) => frontier.evaluate(&(modulus, y), progress),
            MatchingMethod::Tree(tree) => tree.evaluate(modulus, y, progress),
            MatchingMethod::Integers(tree) => tree.residue(modulus, progress), // its weight of a vertex alone is y
        }
    }
}

impl MatchingMethod {
    /// The method over the integers where it takes less time than one modulo primes.
    fn by_integers(graph: &Graph, which: Which, limit: u64, progress: &Progress) -> Result<Option<Self>> {
        if !MatchingIntegers::is_for(graph) || MatchingIntegers::planning_bytes(graph) > u128::from(limit) {
            return Ok(None);
        }
        let planner = Planner::new(progress);
        let found = integers::plan(graph, &graph.stoppable_neighbors(progress)?, which == Which::All, &planner)?;
        let is_better = |tree: &MatchingIntegers| tree.bytes() <= u128::from(limit) && tree.is_better(1);
        Ok(found.filter(is_better).map(Self::Integers))
    }

    /// The method for so many evaluations; a frontier for an order of the user's.
    fn new(graph: &Graph, given: Option<&[u32]>, evaluations: f64, limit: u64, progress: &Progress) -> Result<Self> {
        let neighbors = graph.stoppable_neighbors(progress)?;
        let planner = planner(graph.vertices(), progress);
        let seconds = |order: &[u32]| cost(&neighbors, order) * STATE * evaluations;
        let along = |order: &[u32]| {
            let steps = frontier::along(graph, &neighbors, order);
            let steps = steps.within(limit, |needed| planner.refused(MatchingStep::STATES, needed))?;
            Ok(Self::Frontier(steps, cost(&neighbors, order)))
        };
        if let Some(order) = given {
            return along(order);
        }
        let plain: Vec<u32> = (0..graph.vertices() as u32).collect();
        let tree = || {
            let tree = MatchingTree::plan(graph, &neighbors, limit, &planner);
            Ok(tree.map(|tree| (tree.work() * PRODUCT * evaluations, Self::Tree(tree))))
        };
        let order = || {
            let order = good_order(&neighbors, &planner)?;
            Ok((seconds(&order), along(&order)?))
        };
        quickest(graph.vertices(), &planner, Some((seconds(&plain), || along(&plain))), tree, order)
    }
}

/// `log2` of a number that all matchings together do not exceed.
///
/// The matching polynomial `sum of (-1)^k m_k x^(n-2k)` has n real zeros, whose squares have the sum `2 m_1`; so
/// `m_0 + m_1 + ... = prod of (1 + zero^2)^(1/2) <= (1 + 2 m_1 / n)^(n/2)` by the means (O. Heilmann, E. Lieb 1972, Theory of
/// monomer-dimer systems, theorem 4.2). Where some vertices have many edges that is too much: `m(G) <= (1 + d_v) m(G - v)`, so those
/// of highest degree are taken out as long as the bound of the rest makes up for it. Vertices without edges do not count.
fn log2_bound_all(graph: &Graph, progress: &Progress) -> Result<f64> {
    let mut around: Vec<Vec<u32>> = vec![Vec::new(); graph.vertices()];
    for (i, &(u, v)) in graph.edges().iter().enumerate().filter(|(_, (u, v))| u != v) {
        progress.check_at(i)?;
        around[u as usize].push(v);
        around[v as usize].push(u);
    }
    let mut degrees: Vec<usize> = around.iter().map(Vec::len).collect();
    let (mut ends, mut vertices) = (degrees.iter().sum::<usize>(), degrees.iter().filter(|&&d| d > 0).count());
    let by_means = |ends: usize, vertices: usize| match vertices {
        0 => 0.0,
        _ => 0.5 * vertices as f64 * (1.0 + ends as f64 / vertices as f64).log2(),
    };
    let mut taken = 0.0;
    let mut best = by_means(ends, vertices);
    let mut queue: std::collections::BinaryHeap<(usize, usize)> = degrees.iter().copied().zip(0..).collect();
    while let Some((degree, v)) = queue.pop() {
        progress.check_at(queue.len())?;
        if degree == 0 || degree != degrees[v] {
            continue;
        }
        taken += (1.0 + degree as f64).log2();
        degrees[v] = 0;
        vertices -= 1;
        ends -= 2 * degree;
        for u in std::mem::take(&mut around[v]) {
            let u = u as usize;
            if degrees[u] > 0 {
                degrees[u] -= 1;
                vertices -= usize::from(degrees[u] == 0);
                queue.push((degrees[u], u));
            }
        }
        best = best.min(taken + by_means(ends, vertices));
    }
    Ok(best * (1.0 + 1e-9) + 0.01)
}

impl Modular for Matchings {
    fn description(&self) -> Vec<u64> {
        self.words.clone()
    }

    fn bits(&self) -> f64 {
        self.bits
    }

    fn method(&self) -> (&'static str, u128, f64) {
        let name = match &self.method {
            MatchingMethod::Frontier(..) => "frontier",
            MatchingMethod::Tree(_) => "tree decomposition",
            MatchingMethod::Integers(_) => INTEGERS,
        };
        (name, self.bytes(), self.work())
    }

    fn values(&self) -> usize {
        self.points().len()
    }

    fn found(&self, options: &Options, monitor: &mut dyn Monitor) -> Result<Option<Vec<BigInt>>> {
        let MatchingMethod::Integers(tree) = &self.method else { return Ok(None) };
        if options.checkpoint.is_some() {
            return Ok(None); // it keeps residues
        }
        let options = fitting(options, self.bytes(), MatchingStep::STATES)?;
        let value = parallel::run(options.threads, tree.steps(), monitor, |progress| tree.value(progress))?;
        Ok(Some(vec![value.into()]))
    }

    fn residues(&self, moduli: &[Modulus], options: &Options, monitor: &mut dyn Monitor) -> Result<Vec<u64>> {
        let points = self.points();
        let options = &fitting(options, self.bytes(), MatchingStep::STATES)?;
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
    /// The numbers `m_k` from `Q(1), Q(2), ...`: with `z = y^-2`, `Q(y) y^-n = sum of m_k z^k`.
    fn by_size(&self, modulus: Modulus, values: &[u64]) -> Vec<u64> {
        let power = |(y, &q): (&u64, &u64)| {
            let scale = modulus.inverse(modulus.pow(*y, self.vertices as u64));
            modulus.residue(modulus.mul(q, scale))
        };
        let points = self.points();
        let squares: Vec<u64> = points.iter().map(|&y| modulus.inverse(modulus.pow(y, 2))).collect();
        let values: Vec<u64> = points.iter().zip(values).map(power).collect();
        interpolate(modulus, &squares, &values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bound(graph: &Graph) -> f64 {
        log2_bound_all(graph, &Progress::default()).unwrap()
    }

    /// The number of matchings within some edges, those to the covered vertices left out.
    fn count(edges: &[(u32, u32)], covered: u32) -> u64 {
        let Some((&(u, v), rest)) = edges.split_first() else { return 1 };
        let (u, v) = (1 << u, 1 << v);
        let with = if u == v || covered & (u | v) != 0 { 0 } else { count(rest, covered | u | v) };
        with + count(rest, covered)
    }

    proptest! {
        #[test]
        fn no_graph_has_more_matchings_than_its_bound(
            n in 1u32..9, pairs in prop::collection::vec((0u32..9, 0u32..9), 0..16), hub in prop::collection::vec(0u32..9, 0..9),
        ) {
            // Loops, parallel edges and a vertex of high degree among them.
            let edges = pairs.into_iter().chain(hub.into_iter().map(|v| (0, v))).map(|(u, v)| (u % n, v % n));
            let graph = Graph::new(n as usize, edges.collect()).unwrap();
            let bits = (count(graph.edges(), 0) as f64).log2();
            prop_assert!(bits <= bound(&graph));
        }
    }

    #[test]
    fn the_bound_is_sharp_for_single_edges_and_stars_and_close_for_others() {
        let pairs = Graph::new(20, (0..10).map(|i| (2 * i, 2 * i + 1)).collect()).unwrap();
        assert!((bound(&pairs) - 10.0).abs() < 0.02);
        let star = Graph::new(100, (1..100).map(|v| (0, v)).collect()).unwrap();
        assert!((bound(&star) - 100f64.log2()).abs() < 0.02);
        let cycle = Graph::new(100, (0..100).map(|v| (v, (v + 1) % 100)).collect()).unwrap();
        let golden = 100.0 * 1.618_034f64.log2();
        assert!((golden..1.15 * golden).contains(&bound(&cycle)), "{}", bound(&cycle));
        assert_eq!(bound(&Graph::new(3, vec![(1, 1)]).unwrap()), 0.01);
    }
}
