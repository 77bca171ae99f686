//! Matchings along a tree decomposition: a graph of small treewidth is easy however long its frontiers are.
//!
//! Vertices are eliminated in an order, as for independent sets; the scope of a vertex v are its neighbors when that happens. Its
//! message holds for each subset A of the scope the sum over the matchings of what was eliminated, v among it, that cover A of the
//! scope, with a weight y for each eliminated vertex left alone. With f the messages of the children of v joined
//! ([`super::convolution`]), over subsets of the scope and v,
//!
//!   `m(A) = y f[A] + f[A + v] + sum over neighbors u of v in A of t_uv f[A - u]`,
//!
//! where t_uv counts the edges between both: each edge is matched where its first end is eliminated. Where v has one child nothing
//! is joined, so a path decomposition takes as many passes as a frontier.
//!
//! Source: derived here, from the tree decompositions of S. Arnborg and A. Proskurowski (1989), Linear time algorithms for NP-hard
//! problems restricted to partial k-trees.

use super::convolution::{MOST_SHARED, convolve};
use crate::Result;
use crate::counting::graph_sums::elimination::{EliminationOrder, Rule};
use crate::counting::graph_sums::planner::Planner;
use crate::graphs::Graph;
use crate::memory::reserved;
use crate::monitor::Progress;
use crate::numeric::residue::Modulus;
use std::collections::HashMap;

/// The most vertices of a bag.
const MOST_BAG: usize = 34;
/// What a table's element takes in products: to be moved, folded and summed.
const ELEMENT: f64 = 4.0;
/// What a vertex takes in products, however small its tables.
const NODE: f64 = 100.0;
/// Products with which the first order is good enough, for each vertex.
const EASY: f64 = 2000.0;
/// Vertices of a table whose subsets have their places listed; more vertices, more such blocks.
const LISTED: usize = 8;

const WHAT: &str = "the tables of a tree decomposition";

/// A tree of messages.
#[derive(Debug)]
pub struct MatchingTree {
    /// Children before parents, a vertex right after the trees of all its children.
    nodes: Vec<TreeNode>,
    /// Products, about.
    work: f64,
    /// Elements of all tables at once, where they are most.
    elements: u128,
}

/// A vertex that is eliminated.
#[derive(Debug)]
struct TreeNode {
    /// Vertices of the scope.
    scope: usize,
    joins: Vec<Join>,
    /// Where each vertex of the joined table is: in the scope, or after it the vertex itself.
    places: Places,
    /// Neighbors in the scope, and the edges to each.
    edges: Vec<(u32, u64)>,
}

/// A child's message joined to what its brothers made: those vertices that both have come first.
#[derive(Debug)]
struct Join {
    shared: u32,
    /// Where the vertices of either table go.
    ours: Places,
    theirs: Places,
}

/// Where the bits of a table's index go.
#[derive(Debug)]
struct Places {
    bits: Vec<u32>,
    moves: bool,
    /// Where the elements of a table of the first bits go, a few of them.
    list: Vec<u32>,
}

impl Places {
    fn new(bits: Vec<u32>) -> Self {
        let moves = bits.iter().zip(0..).any(|(&bit, place)| bit != place);
        let mut list = Vec::new();
        if moves {
            list.push(0);
            for &bit in bits.iter().take(LISTED) {
                let further: Vec<u32> = list.iter().map(|index| index | 1 << bit).collect();
                list.extend(further);
            }
        }
        Self { bits, moves, list }
    }

    /// Moves a table to `to`, whose other elements stay.
    fn scatter(&self, from: &[u64], to: &mut [u64]) {
        if !self.moves {
            to[..from.len()].copy_from_slice(from);
            return;
        }
        for (number, block) in from.chunks(self.list.len()).enumerate() {
            let high = self.bits.iter().skip(LISTED).enumerate();
            let high = high.fold(0, |index, (place, &bit)| index | (number >> place & 1) << bit);
            block.iter().zip(&self.list).for_each(|(&x, &low)| to[high | low as usize] = x);
        }
    }

    fn apply(&self, table: Vec<u64>, spare: &mut Spare) -> Result<Vec<u64>> {
        if !self.moves {
            return Ok(table);
        }
        let mut moved = spare.table(table.len(), 0)?;
        self.scatter(&table, &mut moved);
        spare.keep(table);
        Ok(moved)
    }
}

/// Small tables that are done with: the next ones take their memory.
#[derive(Default)]
pub struct Spare(Vec<Vec<u64>>);

/// Elements of a table that is small.
const SMALL: usize = 1 << 12;

impl Spare {
    /// A table of equal elements.
    ///
    /// # Errors
    /// [`crate::Error::TooLarge`] without memory.
    pub fn table(&mut self, len: usize, element: u64) -> Result<Vec<u64>> {
        let mut table = match self.0.pop() {
            Some(table) if len <= SMALL => table,
            other => {
                self.0.extend(other);
                reserved(len as u128, WHAT)?
            }
        };
        table.clear();
        table.resize(len, element);
        Ok(table)
    }

    /// Takes back a table.
    pub fn keep(&mut self, table: Vec<u64>) {
        if table.capacity() <= SMALL {
            self.0.push(table);
        }
    }
}

impl MatchingTree {
    /// The better of two greedy orders; none where a table has more than `limit` bytes, or the planner stops.
    pub fn plan(graph: &Graph, neighbors: &[Vec<u32>], limit: u64, planner: &Planner<'_>) -> Option<Self> {
        let by = |rule| {
            let order = EliminationOrder::greedy(neighbors, rule, planner)?;
            Some((Self::forecast(&order.scopes, limit)?, order))
        };
        let mut best = by(Rule::Degree);
        if best.as_ref().is_none_or(|(work, _)| *work > EASY * neighbors.len() as f64) {
            best = best.into_iter().chain(by(Rule::Fill)).min_by(|(a, _), (b, _)| a.total_cmp(b));
        }
        let (_, order) = best?;
        Self::new(graph, neighbors, &order, planner).filter(|tree| tree.bytes() <= limit.into())
    }

    /// Products of an elimination, about; none if it is too wide.
    fn forecast(scopes: &[Vec<u32>], limit: u64) -> Option<f64> {
        let mut joined: Vec<Vec<u32>> = vec![Vec::new(); scopes.len()];
        let mut work = 0.0;
        for scope in scopes {
            if scope.len() >= MOST_BAG || 16u64 << scope.len() > limit {
                return None;
            }
            work += NODE + 2.0 * ELEMENT * products(scope.len(), 0);
            if let Some(&parent) = scope.first() {
                let ours = &mut joined[parent as usize];
                let shared = ours.iter().filter(|u| scope.binary_search(u).is_ok()).count();
                if shared > MOST_SHARED as usize {
                    return None;
                }
                if !ours.is_empty() {
                    work += products(ours.len() + scope.len() - shared, shared);
                }
                ours.extend(scope.iter().filter(|u| !ours.contains(u)).copied().collect::<Vec<_>>());
            }
        }
        Some(work)
    }

    fn new(
        graph: &Graph,
        neighbors: &[Vec<u32>],
        elimination: &EliminationOrder,
        planner: &Planner<'_>,
    ) -> Option<Self> {
        let EliminationOrder { order, scopes } = elimination;
        let mut places = vec![0u32; order.len()];
        (0..).zip(order).for_each(|(place, &v)| places[v as usize] = place);
        let mut times: HashMap<(u32, u32), u64> = HashMap::new();
        for &(u, v) in graph.edges() {
            let (u, v) = (places[u as usize], places[v as usize]);
            *times.entry((u.min(v), u.max(v))).or_insert(0) += 1;
        }
        let (postorder, children) = elimination.postorder();
        let mut tree = Self { nodes: Vec::with_capacity(order.len()), work: 0.0, elements: 0 };
        let mut held = 0u128;
        for place in postorder {
            if planner.is_stopping() {
                return None;
            }
            let later = neighbors[order[place] as usize].iter().map(|&u| places[u as usize]);
            let mut edges: Vec<(u32, u64)> = later
                .filter(|&u| u as usize > place)
                .filter_map(|u| Some((scopes[place].binary_search(&u).ok()? as u32, times[&(place as u32, u)])))
                .collect();
            edges.sort_unstable();
            let messages: Vec<&[u32]> = children[place].iter().map(|&c| &scopes[c][..]).collect();
            tree.add(place as u32, &scopes[place], &messages, edges, &mut held)?;
        }
        Some(tree)
    }

    /// Adds a vertex whose children have these scopes; `held` counts the elements of messages that wait.
    fn add(
        &mut self,
        place: u32,
        scope: &[u32],
        messages: &[&[u32]],
        edges: Vec<(u32, u64)>,
        held: &mut u128,
    ) -> Option<()> {
        let size = |vertices: usize| 1u128 << vertices;
        let mut most = 0;
        // The children are taken from the last one on, as they lie on the stack.
        let mut ours: Vec<u32> = Vec::new();
        let mut joins = Vec::new();
        for (number, message) in messages.iter().rev().enumerate() {
            if number == 0 {
                ours = message.to_vec();
                continue;
            }
            let mut all: Vec<u32> = ours.iter().filter(|u| message.contains(u)).copied().collect();
            let shared = all.len();
            all.extend(ours.iter().filter(|u| !message.contains(u)));
            all.extend(message.iter().filter(|u| !ours.contains(u)));
            if shared > MOST_SHARED as usize || all.len() > MOST_BAG {
                return None;
            }
            self.work += products(all.len(), shared) + ELEMENT * 2.0 * (all.len() as f64).exp2();
            // Both tables, both moved, the sums of twice the length, and what is made.
            most = most.max(2 * size(ours.len()) + 2 * size(message.len()) + 2 * size(shared) + size(all.len()));
            let fixed = &all[..];
            let own = |list: &[u32], skipped: usize| {
                let bit = |u: &u32| {
                    let at = fixed.iter().position(|w| w == u).unwrap_or(0);
                    if at < shared { at as u32 } else { (at - skipped) as u32 }
                };
                Places::new(list.iter().map(bit).collect())
            };
            let (ours_only, theirs_only) = (own(&ours, 0), own(message, ours.len() - shared));
            joins.push(Join { shared: shared as u32, ours: ours_only, theirs: theirs_only });
            ours = all;
        }
        let place_of = |u: &u32| if *u == place { Some(scope.len()) } else { scope.binary_search(u).ok() };
        let places = ours.iter().map(|u| place_of(u).map(|at| at as u32)).collect::<Option<Vec<u32>>>()?;
        let waiting: u128 = messages.iter().map(|message| size(message.len())).sum();
        most = most.max(size(ours.len()) + 3 * size(scope.len()));
        self.elements = self.elements.max(*held + most);
        *held = *held - waiting + size(scope.len());
        self.work += NODE + (ELEMENT + edges.len() as f64) * (scope.len() as f64).exp2();
        self.nodes.push(TreeNode { scope: scope.len(), joins, places: Places::new(places), edges });
        Some(())
    }

    /// Products of one evaluation, about.
    pub fn work(&self) -> f64 {
        self.work
    }

    /// Bytes of all tables at once.
    pub fn bytes(&self) -> u128 {
        8 * self.elements
    }

    /// The sum over all matchings, with the weight of a vertex left alone.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] when told to stop.
    pub fn evaluate(&self, modulus: Modulus, alone: u64, progress: &Progress) -> Result<u64> {
        let mut total = modulus.residue(1);
        let (mut waiting, mut spare, mut sums) = (Vec::new(), Spare::default(), Vec::new());
        for (number, node) in self.nodes.iter().enumerate() {
            if number % 64 == 0 || node.scope > 10 {
                progress.check()?;
            }
            let message = node.message(modulus, alone, &mut waiting, &mut spare, &mut sums, progress)?;
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

/// Products that join tables of so many vertices together, so many of them in both.
fn products(all: usize, shared: usize) -> f64 {
    3f64.powi(shared as i32) * ((all - shared) as f64).exp2()
}

impl TreeNode {
    fn message(
        &self,
        modulus: Modulus,
        alone: u64,
        waiting: &mut Vec<Vec<u64>>,
        spare: &mut Spare,
        sums: &mut Vec<u128>,
        progress: &Progress,
    ) -> Result<Vec<u64>> {
        let len = 1usize << self.scope;
        // Without children nothing is covered: the table over no vertex.
        let mut table =
            if self.places.bits.is_empty() { spare.table(1, 1)? } else { waiting.pop().unwrap_or_default() };
        for join in &self.joins {
            let ours = join.ours.apply(table, spare)?;
            let theirs = join.theirs.apply(waiting.pop().unwrap_or_default(), spare)?;
            let part = 1usize << join.shared;
            table = spare.table(ours.len() * theirs.len() / part, 0)?;
            if sums.capacity() < part {
                *sums = reserved(part as u128, WHAT)?;
            }
            let pairs = theirs.chunks_exact(part).flat_map(|g| ours.chunks_exact(part).map(move |f| (f, g)));
            for (number, (out, (f, g))) in table.chunks_exact_mut(part).zip(pairs).enumerate() {
                if join.shared > 10 || number % 256 == 255 {
                    progress.check()?;
                }
                convolve(modulus, f, g, sums, out);
            }
            spare.keep(ours);
            spare.keep(theirs);
        }
        // Those that leave v alone below, then those that cover it.
        let mut full = spare.table(2 * len, 0)?;
        self.places.scatter(&table, &mut full);
        spare.keep(table);
        let (free, covered) = full.split_at(len);
        let mut message = spare.table(len, 0)?;
        message.clear();
        match alone {
            0 => message.extend_from_slice(covered),
            1 => message.extend(free.iter().zip(covered).map(|(&f, &c)| f + c)),
            _ => message.extend(free.iter().zip(covered).map(|(&f, &c)| modulus.mul(f, alone) + c)),
        }
        // At most 36 folded numbers: below 2^61.
        for &(bit, times) in &self.edges {
            let half = 1usize << bit;
            for (to, from) in message.chunks_exact_mut(2 * half).zip(free.chunks_exact(2 * half)) {
                for (to, &from) in to[half..].iter_mut().zip(&from[..half]) {
                    *to += if times == 1 { from } else { modulus.mul(from, modulus.residue(times)) };
                }
            }
        }
        message.iter_mut().for_each(|x| *x = modulus.fold(*x));
        spare.keep(full);
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::matchings::{Matchings, Which, frontier::Frontier};
    use crate::numeric::residue::primes;
    use crate::stream::Stream;
    use proptest::prelude::*;

    fn planned(graph: &Graph) -> MatchingTree {
        let progress = Progress::default();
        MatchingTree::plan(graph, &graph.neighbors(), u64::MAX, &Planner::new(&progress)).unwrap()
    }

    /// The sum over all subsets of the edges.
    fn by_subsets(graph: &Graph, modulus: Modulus, alone: u64) -> u64 {
        let mut total = 0;
        let n = graph.vertices() as u64;
        for set in 0..1u32 << graph.edges().len() {
            let mut covered = 0u32;
            let chosen = graph.edges().iter().zip(0..).filter(|(_, i)| set >> i & 1 == 1);
            let fits = chosen.fold(true, |fits, (&(u, v), _)| {
                let (u, v) = (1 << u, 1 << v);
                let free = u != v && covered & (u | v) == 0;
                covered |= u | v;
                fits && free
            });
            if fits {
                total = modulus.residue(total + modulus.pow(alone, n - u64::from(2 * set.count_ones())));
            }
        }
        total
    }

    fn partial_k_tree(k: u32, n: u32, seed: u64) -> Graph {
        let mut words = Stream::new([seed, 1], 0, 0, 0);
        let mut below = |n: u32| ((u128::from(words.word()) * u128::from(n)) >> 64) as u32;
        let mut cliques: Vec<Vec<u32>> = vec![(0..k).collect()];
        let mut edges: Vec<(u32, u32)> = (0..k).flat_map(|v| (0..v).map(move |u| (u, v))).collect();
        for v in k..n {
            let mut clique = cliques[below(cliques.len() as u32) as usize].clone();
            edges.extend(clique.iter().map(|&u| (u, v)));
            clique[below(k) as usize] = v;
            cliques.push(clique);
        }
        edges.retain(|_| below(5) > 0);
        Graph::new(n as usize, edges).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn small_graphs_agree_with_all_subsets_of_their_edges(
            n in 1u32..9, pairs in prop::collection::vec((0u32..9, 0u32..9), 0..12), alone in 0u64..4,
        ) {
            // Loops and parallel edges among them.
            let graph = Graph::new(n as usize, pairs.into_iter().map(|(u, v)| (u % n, v % n)).collect()).unwrap();
            let modulus = primes(1).unwrap()[0];
            let found = planned(&graph).evaluate(modulus, alone, &Progress::default()).unwrap();
            prop_assert_eq!(found, by_subsets(&graph, modulus, alone));
        }

        #[test]
        fn larger_graphs_agree_with_their_frontier(seed in 0u64..100, k in 1u32..6, n in 8u32..40, alone in 0u64..4) {
            let graph = partial_k_tree(k, n, seed);
            let modulus = primes(1).unwrap()[0];
            let progress = Progress::default();
            let order: Vec<u32> = (0..n).collect();
            let frontier = Frontier::new(&graph, &graph.neighbors(), &order);
            let expected = frontier.evaluate(modulus, alone, &progress).unwrap();
            prop_assert_eq!(planned(&graph).evaluate(modulus, alone, &progress).unwrap(), expected);
        }
    }

    #[test]
    fn tables_with_more_than_one_block_of_places_and_wide_joins_are_right() {
        let grid = crate::graphs::torus(&[5, 6]).unwrap();
        let modulus = primes(1).unwrap()[0];
        let progress = Progress::default();
        let tree = planned(&grid);
        assert!(tree.nodes.iter().any(|node| node.places.bits.len() > LISTED && node.places.moves));
        let order: Vec<u32> = (0..30).collect();
        for alone in [0, 1, 5] {
            let expected = Frontier::new(&grid, &grid.neighbors(), &order).evaluate(modulus, alone, &progress).unwrap();
            assert_eq!(tree.evaluate(modulus, alone, &progress).unwrap(), expected);
        }
    }

    #[test]
    fn graphs_of_small_treewidth_have_small_tables_and_memory_limits_are_kept() {
        let graph = partial_k_tree(5, 2000, 1);
        let tree = planned(&graph);
        assert!(tree.bytes() < 1 << 18 && tree.work() < 1e7, "{} {}", tree.bytes(), tree.work());
        let progress = Progress::default();
        let limit = tree.bytes() as u64 - 1;
        let refused = MatchingTree::plan(&graph, &graph.neighbors(), limit, &Planner::new(&progress));
        assert!(refused.is_none_or(|tree| tree.bytes() <= u128::from(limit)));
        let clique = crate::graphs::complete(60).unwrap();
        assert!(MatchingTree::plan(&clique, &clique.neighbors(), 1 << 40, &Planner::new(&progress)).is_none());
        let plan = Matchings::plan(&graph, Which::All, None, 1 << 30, &mut crate::monitor::Silent).unwrap();
        assert_eq!(crate::counting::exact::Modular::method(&plan).0, "tree decomposition");
    }
}
