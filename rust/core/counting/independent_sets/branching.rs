//! Independent sets by branching: dense graphs and those with hubs fall apart after a few steps.
//!
//! Components are counted apart, paths and cycles in closed form: with f(k) the words over {0, 1} without 11, a path of k vertices
//! has f(k) sets and a cycle f(k - 1) + f(k - 3). Of any other component S the vertex v with the most neighbors is left out or
//! taken,
//!
//!   Z(S) = Z(S - v) + Z(S - v - N(v)),
//!
//! and Z of larger components is remembered. How long that takes is not known before it is done. So it can be taken up and put
//! down again: [`Branching::advance`] works for so much effort more, and the planner lets it run as long as planning does.
//!
//! Numbers are carried along modulo 2^61 - 1 as well, computed from the residues alone: a fault of the machine shows in the end.
//!
//! Source: F. Fomin, D. Kratsch (2010), Exact Exponential Algorithms, chapter 2 (branching on vertices of high degree).

use crate::graphs::Graph;
use crate::{Error, Result};
use num_bigint::BigUint;
use std::collections::HashMap;

/// The most vertices of a graph that is tried.
const MOST_VERTICES: usize = 256;
/// Components of so many vertices are remembered.
const REMEMBERED: u32 = 12;
/// The most components that are remembered, and the bytes that one may take while the table grows.
const MOST_REMEMBERED: usize = 1 << 17;
const ENTRY: usize = 256;

/// The effort of a component, and the vertices of a component that take as much as one change more.
const STEP: u64 = 8;
const VERTICES: u64 = 4;

/// A count by branching, begun.
#[derive(Debug)]
pub struct Branching(Box<dyn BranchingSteps>);

impl Branching {
    /// A count on a graph that is not too large, within about so many bytes.
    pub fn new(graph: &Graph, bytes: usize) -> Option<Self> {
        let room = (bytes / ENTRY).min(MOST_REMEMBERED);
        Some(Self(match graph.vertices() {
            0..=64 => Box::new(BranchingSearch::<1>::new(graph, room)),
            65..=128 => Box::new(BranchingSearch::<2>::new(graph, room)),
            129..=MOST_VERTICES => Box::new(BranchingSearch::<4>::new(graph, room)),
            _ => return None,
        }))
    }

    /// Works for about so much effort more, in changes of a frontier (`Planner`).
    pub fn advance(&mut self, effort: u64) {
        let until = self.effort().saturating_add(effort);
        self.0.advance(until);
    }

    /// The effort so far.
    pub fn effort(&self) -> u64 {
        self.0.effort()
    }

    /// Whether there is nothing more to do: the count is found, or some number exceeds 128 bits.
    pub fn is_over(&self) -> bool {
        self.0.state() != SearchState::Going
    }

    /// Whether the count is found.
    pub fn has_found(&self) -> bool {
        matches!(self.0.state(), SearchState::Found(_))
    }

    /// The number of independent sets, once it is found.
    ///
    /// # Errors
    /// [`Error::Check`] if its residue is another than the one computed beside it.
    pub fn found(&self) -> Result<Option<BigUint>> {
        let SearchState::Found(count) = self.0.state() else { return Ok(None) };
        let expected = CheckedCount::residue(count.value);
        if count.residue != expected {
            let detail = format!("modulo 2^61 - 1 it is {expected}, computed was {}", count.residue);
            return Err(Error::Check { what: "an exact count", detail });
        }
        Ok(Some(BigUint::from(count.value)))
    }

    /// Bytes of what is remembered.
    pub fn bytes(&self) -> u64 {
        self.0.bytes()
    }
}

/// A search, whatever the size of its sets.
trait BranchingSteps: std::fmt::Debug + Send {
    fn advance(&mut self, until: u64);
    fn effort(&self) -> u64;
    fn state(&self) -> SearchState;
    fn bytes(&self) -> u64;
}

/// How far a search is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SearchState {
    Going,
    Found(CheckedCount),
    GivenUp,
}

/// A number below 2^128, and what it is modulo 2^61 - 1.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CheckedCount {
    value: u128,
    residue: u64,
}

impl CheckedCount {
    const ONE: Self = Self { value: 1, residue: 1 };
    const PRIME: u64 = (1 << 61) - 1;

    fn residue(x: u128) -> u64 {
        (x % u128::from(Self::PRIME)) as u64
    }

    fn plus(self, other: Self) -> Option<Self> {
        let residue = (self.residue + other.residue) % Self::PRIME;
        Some(Self { value: self.value.checked_add(other.value)?, residue })
    }

    fn times(self, other: Self) -> Option<Self> {
        let product = u128::from(self.residue) * u128::from(other.residue); // below 2^122
        let sum = (product as u64 & Self::PRIME) + (product >> 61) as u64;
        Some(Self { value: self.value.checked_mul(other.value)?, residue: sum % Self::PRIME })
    }
}

/// A set of at most 64 `W` vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct VertexSet<const W: usize>([u64; W]);

impl<const W: usize> VertexSet<W> {
    const EMPTY: Self = Self([0; W]);

    fn insert(&mut self, vertex: usize) {
        self.0[vertex / 64] |= 1 << (vertex % 64);
    }

    fn has(self, vertex: usize) -> bool {
        self.0[vertex / 64] >> (vertex % 64) & 1 == 1
    }

    fn without(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] & !other.0[i]))
    }

    fn intersection(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    fn union(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    fn len(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    fn first(self) -> Option<usize> {
        let word = self.0.iter().position(|&word| word != 0)?;
        Some(64 * word + self.0[word].trailing_zeros() as usize)
    }

    fn iter(mut self) -> impl Iterator<Item = usize> {
        std::iter::from_fn(move || {
            let first = self.first()?;
            self.0[first / 64] &= self.0[first / 64] - 1;
            Some(first)
        })
    }
}

/// A graph being counted.
#[derive(Debug)]
struct BranchingSearch<const W: usize> {
    neighbors: Vec<VertexSet<W>>,
    /// The independent sets of paths by their vertices, as far as they are below 2^128.
    paths: Vec<CheckedCount>,
    remembered: HashMap<VertexSet<W>, CheckedCount>,
    /// Entries there may be.
    room: usize,
    frames: Vec<Pending<W>>,
    next: NextStep<W>,
    state: SearchState,
    effort: u64,
}

/// What waits for a number.
#[derive(Clone, Copy, Debug)]
enum Pending<const W: usize> {
    /// Components that are not counted yet, and the product of those that are, the one in hand left out.
    Product { rest: VertexSet<W>, product: CheckedCount },
    /// A component whose vertex is left out now; with the vertex taken, `rest` is left.
    LeftOut { set: VertexSet<W>, rest: VertexSet<W> },
    /// The same with the vertex taken now.
    Taken { set: VertexSet<W>, without: CheckedCount },
}

/// What is done next.
#[derive(Clone, Copy, Debug)]
enum NextStep<const W: usize> {
    /// Count the sets within these vertices.
    Enter(VertexSet<W>),
    /// Hand a number to what waits for it.
    Return(CheckedCount),
}

impl<const W: usize> BranchingSteps for BranchingSearch<W> {
    fn advance(&mut self, until: u64) {
        while self.state == SearchState::Going && self.effort < until {
            match self.step() {
                Some(next) => self.next = next,
                None if self.state == SearchState::Going => self.state = SearchState::GivenUp,
                None => {}
            }
        }
    }

    fn effort(&self) -> u64 {
        self.effort
    }

    fn state(&self) -> SearchState {
        self.state
    }

    fn bytes(&self) -> u64 {
        (self.remembered.capacity() * size_of::<(VertexSet<W>, CheckedCount)>()) as u64
    }
}

impl<const W: usize> BranchingSearch<W> {
    fn new(graph: &Graph, room: usize) -> Self {
        let mut neighbors = vec![VertexSet::EMPTY; graph.vertices()];
        for &(u, v) in graph.edges() {
            neighbors[u as usize].insert(v as usize);
            neighbors[v as usize].insert(u as usize);
        }
        let mut all = VertexSet::EMPTY;
        // A vertex with a loop is never occupied.
        (0..neighbors.len()).filter(|&v| !neighbors[v].has(v)).for_each(|v| all.insert(v));
        let two = [CheckedCount::ONE, CheckedCount { value: 2, residue: 2 }];
        let fibonacci = std::iter::successors(Some(two), |&[last, this]| Some([this, this.plus(last)?]));
        let paths = fibonacci.map(|[number, _]| number).take(graph.vertices() + 1).collect();
        let (frames, next, state) = (Vec::new(), NextStep::Enter(all), SearchState::Going);
        Self { neighbors, paths, remembered: HashMap::new(), room, frames, next, state, effort: 0 }
    }

    /// One step; none at the end, or if a number is too long.
    fn step(&mut self) -> Option<NextStep<W>> {
        let number = match self.next {
            NextStep::Enter(rest) => {
                self.frames.push(Pending::Product { rest, product: CheckedCount::ONE });
                CheckedCount::ONE
            }
            NextStep::Return(number) => number,
        };
        match self.frames.pop() {
            None => {
                self.state = SearchState::Found(number);
                None
            }
            Some(Pending::Product { rest, product }) => {
                let product = product.times(number)?;
                let Some(first) = rest.first() else { return Some(NextStep::Return(product)) };
                let component = self.component(first, rest);
                self.frames.push(Pending::Product { rest: rest.without(component), product });
                self.connected(component)
            }
            Some(Pending::LeftOut { set, rest }) => {
                self.frames.push(Pending::Taken { set, without: number });
                Some(NextStep::Enter(rest))
            }
            Some(Pending::Taken { set, without }) => {
                let count = without.plus(number)?;
                if set.len() >= REMEMBERED && self.remembered.len() < self.room {
                    self.remembered.insert(set, count);
                }
                Some(NextStep::Return(count))
            }
        }
    }

    /// The vertices that are connected with one.
    fn component(&self, first: usize, set: VertexSet<W>) -> VertexSet<W> {
        let mut found = VertexSet::EMPTY;
        found.insert(first);
        let mut open = found;
        while open != VertexSet::EMPTY {
            let next = open.iter().fold(VertexSet::EMPTY, |next, v| next.union(self.neighbors[v]));
            open = next.intersection(set).without(found);
            found = found.union(open);
        }
        found
    }

    /// A component: counted if that is easy, branched on otherwise.
    fn connected(&mut self, set: VertexSet<W>) -> Option<NextStep<W>> {
        let (mut most, mut vertex, mut ends) = (0, 0, 0);
        for v in set.iter() {
            let degree = self.neighbors[v].intersection(set).len();
            ends += degree;
            if degree > most {
                (most, vertex) = (degree, v);
            }
        }
        let size = set.len();
        self.effort += STEP + u64::from(size) / VERTICES;
        if most <= 2 {
            let path = |vertices: u32| self.paths.get(vertices as usize).copied();
            let is_cycle = size > 2 && ends == 2 * size;
            let count = if is_cycle { path(size - 1)?.plus(path(size - 3)?)? } else { path(size)? };
            return Some(NextStep::Return(count));
        }
        if size >= REMEMBERED
            && let Some(&known) = self.remembered.get(&set)
        {
            return Some(NextStep::Return(known));
        }
        let mut taken = VertexSet::EMPTY;
        taken.insert(vertex);
        let left_out = set.without(taken);
        self.frames.push(Pending::LeftOut { set, rest: left_out.without(self.neighbors[vertex]) });
        Some(NextStep::Enter(left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn count(graph: &Graph, effort: u64) -> Option<BigUint> {
        let mut branching = Branching::new(graph, 1 << 20)?;
        branching.advance(effort);
        branching.found().unwrap()
    }

    fn by_subsets(vertices: usize, edges: &[(u32, u32)]) -> u64 {
        let free = |set: u32| edges.iter().all(|&(u, v)| set >> u & 1 == 0 || set >> v & 1 == 0);
        (0..1u32 << vertices).filter(|&set| free(set)).count() as u64
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn small_graphs_agree_with_all_subsets_whatever_their_words(
            vertices in 1usize..14, pairs in prop::collection::vec((0u32..14, 0u32..14), 0..60),
        ) {
            let n = vertices as u32;
            // Loops and parallel edges among them.
            let edges: Vec<_> = pairs.into_iter().map(|(u, v)| (u % n, v % n)).collect();
            let graph = Graph::new(vertices, edges).unwrap();
            let expected = BigUint::from(by_subsets(vertices, graph.edges()));
            prop_assert_eq!(count(&graph, u64::MAX), Some(expected.clone()));
            // The same graph with its vertices in other words, and free ones between them.
            for apart in [9u32, 18] {
                let spread = graph.edges().iter().map(|&(u, v)| (u * apart, v * apart)).collect();
                let total = (n - 1) * apart + 1;
                let graph = Graph::new(total as usize, spread).unwrap();
                let wide = &expected << (total - n);
                let found = count(&graph, u64::MAX);
                prop_assert_eq!(found, Some(wide).filter(|wide| wide.bits() <= 128));
            }
        }

        #[test]
        fn pauses_and_forgetting_change_nothing(seed in 0u32..40, effort in 1u64..2000) {
            let edges: Vec<_> = (0..44u32).flat_map(|i| (1..4).map(move |j| (i, (i * (j + 2) + seed + j) % 44))).collect();
            let graph = Graph::new(44, edges).unwrap();
            let mut whole = Branching::new(&graph, usize::MAX).unwrap();
            whole.advance(u64::MAX);
            prop_assert!(whole.is_over() && whole.bytes() > 0);
            let mut forgetful = Branching::new(&graph, 0).unwrap();
            while !forgetful.is_over() {
                forgetful.advance(effort);
            }
            prop_assert_eq!(forgetful.bytes(), 0);
            prop_assert_eq!(whole.found().unwrap(), forgetful.found().unwrap());
            prop_assert!(whole.effort() <= forgetful.effort());
        }
    }

    #[test]
    fn paths_and_cycles_have_closed_forms_and_need_one_step() {
        let path = |n: u32| (1..n).map(|v| (v - 1, v)).collect::<Vec<_>>();
        let number = |x: u64| Some(BigUint::from(x));
        for (n, sets) in [(1, 2), (2, 3), (3, 5), (70, 498_454_011_879_264)] {
            assert_eq!(count(&Graph::new(n, path(n as u32)).unwrap(), 1000), number(sets));
        }
        for (n, sets) in [(3u32, 4), (4, 7), (5, 11), (70, 425_730_551_631_123)] {
            let cycle = path(n).into_iter().chain([(0, n - 1)]).collect();
            assert_eq!(count(&Graph::new(n as usize, cycle).unwrap(), 1000), number(sets));
        }
    }

    #[test]
    fn an_effort_that_is_spent_and_numbers_too_long_give_nothing() {
        let complete = |n: u32| (0..n).flat_map(|u| (u + 1..n).map(move |v| (u, v))).collect::<Vec<_>>();
        let graph = Graph::new(20, complete(20)).unwrap();
        assert_eq!(count(&graph, 10_000), Some(BigUint::from(21u32)));
        assert_eq!(count(&graph, 20), None);
        let mut going = Branching::new(&graph, 0).unwrap();
        going.advance(20);
        assert!(!going.is_over());
        let effort = 1_000_000;
        assert_eq!(count(&Graph::new(127, Vec::new()).unwrap(), effort), Some(BigUint::from(1u32) << 127u32));
        let mut long = Branching::new(&Graph::new(128, Vec::new()).unwrap(), 0).unwrap();
        long.advance(effort);
        assert!(long.is_over() && long.found().unwrap().is_none());
        assert!(Branching::new(&Graph::new(257, complete(257)).unwrap(), 0).is_none());
    }

    #[test]
    fn a_wrong_residue_is_found() {
        let mut search = BranchingSearch::<1>::new(&Graph::new(3, vec![(0, 1)]).unwrap(), 0);
        search.advance(1_000_000);
        assert_eq!(search.state, SearchState::Found(CheckedCount { value: 6, residue: 6 }));
        search.state = SearchState::Found(CheckedCount { value: 7, residue: 6 });
        assert!(matches!(Branching(Box::new(search)).found(), Err(Error::Check { .. })));
        let large = CheckedCount { value: u128::MAX / 3, residue: CheckedCount::residue(u128::MAX / 3) };
        let sum = large.plus(large).unwrap();
        assert_eq!(sum.residue, CheckedCount::residue(sum.value));
        let root = CheckedCount { value: u128::from(u64::MAX), residue: CheckedCount::residue(u128::from(u64::MAX)) };
        let square = root.times(root).unwrap();
        assert_eq!(square.residue, CheckedCount::residue(square.value));
    }
}
