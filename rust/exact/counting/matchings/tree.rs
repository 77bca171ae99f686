//! Matchings along a tree decomposition: a graph of small treewidth is easy however long its frontiers are.
//!
//! Vertices are eliminated in an order ([`crate::counting::graph_sums::tree`]); the scope of a vertex v are its neighbors when that
//! happens. Its message holds for each subset A of the scope the sum over the matchings of what was eliminated, v among it, that cover A of the
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
use crate::counting::graph_sums::elimination::{EliminationOrder, places};
use crate::counting::graph_sums::planner::Planner;
use crate::counting::graph_sums::tree::{MessageTree, Messages, Summand};
use crate::graphs::{Graph, Lists};
use crate::memory::reserved;
use crate::monitor::Progress;
use crate::numeric::residue::Modulus;
use std::borrow::Cow;
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
    messages: MessageTree<MatchingVertex>,
    /// Products, about.
    work: f64,
    /// Elements of all tables beside the messages, where they are most.
    room: u128,
}

/// A vertex that is eliminated.
#[derive(Debug)]
struct MatchingVertex {
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

    fn apply<'t>(&self, table: Cow<'t, [u64]>, spare: &mut Spare) -> Result<Cow<'t, [u64]>> {
        if !self.moves {
            return Ok(table);
        }
        let mut moved = spare.table(table.len(), 0)?;
        self.scatter(&table, &mut moved);
        spare.keep(table);
        Ok(Cow::Owned(moved))
    }
}

/// Small tables that are done with: the next ones take their memory.
#[derive(Default)]
struct Spare(Vec<Vec<u64>>);

/// Elements of a table that is small.
const SMALL: usize = 1 << 12;

impl Spare {
    /// A table of equal elements.
    fn table(&mut self, len: usize, element: u64) -> Result<Vec<u64>> {
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
    fn keep(&mut self, table: Cow<'_, [u64]>) {
        if let Cow::Owned(table) = table
            && table.capacity() <= SMALL
        {
            self.0.push(table);
        }
    }
}

impl MatchingTree {
    /// The better of two greedy orders; none where a table has more than `limit` bytes, or the planner stops.
    pub fn plan(graph: &Graph, neighbors: &Lists, limit: u64, planner: &Planner<'_>) -> Option<Self> {
        let times = graph.multiplicities();
        let plan = |order: EliminationOrder| {
            let tree = Self::new(&times, neighbors, &order, limit, planner)?;
            Some((tree.work, tree))
        };
        EliminationOrder::better(neighbors, EASY, planner, plan).filter(|tree| tree.bytes() <= limit.into())
    }

    fn new(
        times: &HashMap<(u32, u32), u64>,
        neighbors: &Lists,
        elimination: &EliminationOrder,
        limit: u64,
        planner: &Planner<'_>,
    ) -> Option<Self> {
        let width = elimination.width();
        if width >= MOST_BAG || 16u64 << width > limit {
            return None;
        }
        let EliminationOrder { order, scopes } = elimination;
        let places = places(order);
        let lengths: Vec<u64> = scopes.iter().map(|scope| 1 << scope.len()).collect();
        let (mut work, mut room) = (0.0, 0);
        let messages = MessageTree::new(elimination, &lengths, planner, |place, children| {
            let v = order[place];
            let edge = |&u: &u32| {
                let bit = scopes[place].binary_search(&places[u as usize]).ok()?;
                Some((bit as u32, times[&(u.min(v), u.max(v))]))
            };
            let mut edges: Vec<(u32, u64)> = neighbors[v as usize].iter().filter_map(edge).collect();
            edges.sort_unstable();
            let below: Vec<&[u32]> = children.iter().map(|&c| &scopes[c][..]).collect();
            work += NODE + (ELEMENT + edges.len() as f64) * (scopes[place].len() as f64).exp2();
            MatchingVertex::new(place as u32, &scopes[place], &below, edges, &mut work, &mut room)
        })?;
        Some(Self { messages, work, room })
    }

    /// Products of one evaluation, about.
    pub fn work(&self) -> f64 {
        self.work
    }

    /// Bytes of all tables at once.
    pub fn bytes(&self) -> u128 {
        8 * (self.messages.stack() as u128 + self.room)
    }

    /// The sum over all matchings, with the weight of a vertex left alone.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] when told to stop.
    pub fn evaluate(&self, modulus: Modulus, alone: u64, progress: &Progress) -> Result<u64> {
        let mut stack: Vec<u64> = reserved(self.messages.stack() as u128, WHAT)?;
        stack.resize(self.messages.stack(), 0);
        let mut context = Workspace { modulus, alone, spare: Spare::default(), sums: Vec::new() };
        let mut total = modulus.residue(1);
        for step in 0..self.messages.summands().len() {
            if step % 64 == 0 {
                progress.check()?;
            }
            if let Some(root) = self.messages.step(step, &mut context, &mut stack, progress)? {
                total = modulus.mul(total, root);
            }
        }
        Ok(modulus.residue(total))
    }
}

/// Products that join tables of so many vertices together, so many of them in both.
fn products(all: usize, shared: usize) -> f64 {
    3f64.powi(shared as i32) * ((all - shared) as f64).exp2()
}

impl MatchingVertex {
    /// A vertex with the scopes of its children; adds to the products, and to the elements that its tables take at once.
    fn new(
        place: u32,
        scope: &[u32],
        messages: &[&[u32]],
        edges: Vec<(u32, u64)>,
        work: &mut f64,
        room: &mut u128,
    ) -> Option<Self> {
        let size = |vertices: usize| 1u128 << vertices;
        let (mut ours, mut joins) = (messages.first().map_or(Vec::new(), |first| first.to_vec()), Vec::new());
        for message in messages.iter().skip(1) {
            let mut all: Vec<u32> = ours.iter().filter(|u| message.contains(u)).copied().collect();
            let shared = all.len();
            all.extend(ours.iter().filter(|u| !message.contains(u)));
            all.extend(message.iter().filter(|u| !ours.contains(u)));
            if shared > MOST_SHARED as usize || all.len() > MOST_BAG {
                return None;
            }
            *work += products(all.len(), shared) + ELEMENT * 2.0 * (all.len() as f64).exp2();
            // What was made before, both tables moved, the sums of twice the length, and what is made.
            *room = (*room).max(2 * size(ours.len()) + size(message.len()) + 2 * size(shared) + size(all.len()));
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
        *room = (*room).max(size(ours.len()) + 2 * size(scope.len()));
        Some(Self { joins, places: Places::new(places), edges })
    }
}

/// What all vertices need.
struct Workspace {
    modulus: Modulus,
    /// The weight of a vertex left alone.
    alone: u64,
    spare: Spare,
    sums: Vec<u128>,
}

impl Summand<u64, Workspace> for MatchingVertex {
    fn message(
        &self,
        Workspace { modulus, alone, spare, sums }: &mut Workspace,
        children: Messages<'_, u64>,
        out: &mut [u64],
        progress: &Progress,
    ) -> Result<()> {
        let modulus = *modulus;
        if out.len() > 1 << 10 {
            progress.check()?;
        }
        let mut children = children.iter();
        // Without children nothing is covered: the table over no vertex.
        let mut table = Cow::Borrowed(children.next().unwrap_or(&[1]));
        for (join, theirs) in self.joins.iter().zip(children) {
            let ours = join.ours.apply(table, spare)?;
            let theirs = join.theirs.apply(Cow::Borrowed(theirs), spare)?;
            let part = 1usize << join.shared;
            let mut joined = spare.table(ours.len() * theirs.len() / part, 0)?;
            if sums.capacity() < part {
                *sums = reserved(part as u128, WHAT)?;
            }
            let pairs = theirs.chunks_exact(part).flat_map(|g| ours.chunks_exact(part).map(move |f| (f, g)));
            for (number, (out, (f, g))) in joined.chunks_exact_mut(part).zip(pairs).enumerate() {
                if join.shared > 10 || number % 256 == 255 {
                    progress.check()?;
                }
                convolve(modulus, f, g, sums, out);
            }
            spare.keep(ours);
            spare.keep(theirs);
            table = Cow::Owned(joined);
        }
        // Those that leave v alone below, then those that cover it.
        let mut full = spare.table(2 * out.len(), 0)?;
        self.places.scatter(&table, &mut full);
        spare.keep(table);
        let (free, covered) = full.split_at(out.len());
        let pairs = out.iter_mut().zip(free.iter().zip(covered));
        match *alone {
            0 => out.copy_from_slice(covered),
            1 => pairs.for_each(|(out, (&f, &c))| *out = f + c),
            y => pairs.for_each(|(out, (&f, &c))| *out = modulus.mul(f, y) + c),
        }
        // At most 36 folded numbers: below 2^61.
        for &(bit, times) in &self.edges {
            let half = 1usize << bit;
            for (to, from) in out.chunks_exact_mut(2 * half).zip(free.chunks_exact(2 * half)) {
                for (to, &from) in to[half..].iter_mut().zip(&from[..half]) {
                    *to += if times == 1 { from } else { modulus.mul(from, modulus.residue(times)) };
                }
            }
        }
        out.iter_mut().for_each(|x| *x = modulus.fold(*x));
        spare.keep(Cow::Owned(full));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::graph_sums::examples::partial_k_tree;
    use crate::counting::matchings::{Matchings, Which, frontier::along};
    use crate::numeric::residue::primes;
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
            let frontier = along(&graph, &graph.neighbors(), &order);
            let expected = frontier.evaluate(&(modulus, alone), &progress).unwrap();
            prop_assert_eq!(planned(&graph).evaluate(modulus, alone, &progress).unwrap(), expected);
        }
    }

    #[test]
    fn tables_with_more_than_one_block_of_places_and_wide_joins_are_right() {
        let grid = crate::graphs::torus(&[5, 6]).unwrap();
        let modulus = primes(1).unwrap()[0];
        let progress = Progress::default();
        let tree = planned(&grid);
        assert!(tree.messages.summands().any(|node| node.places.bits.len() > LISTED && node.places.moves));
        let order: Vec<u32> = (0..30).collect();
        for alone in [0, 1, 5] {
            let expected = along(&grid, &grid.neighbors(), &order).evaluate(&(modulus, alone), &progress).unwrap();
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
        assert_eq!(crate::counting::exact::Modular::method(&plan).0, crate::counting::graph_sums::integers::INTEGERS);
    }
}
