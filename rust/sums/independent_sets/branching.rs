//! Independent sets by branching: dense graphs and those with hubs fall apart after a few steps.
//!
//! Components are counted apart, paths and cycles in closed form: with f(k) the words over {0, 1} without 11, a path of k vertices
//! has f(k) sets and a cycle f(k - 1) + f(k - 3). Of any other component S the vertex v with the most neighbors is left out or
//! taken,
//!
//!   Z(S) = Z(S - v) + Z(S - v - N(v)),
//!
//! and Z of larger components is remembered, as long as that pays. Of six vertices and fewer one word holds all subsets, a bit for
//! each: those that contain both ends of an edge are crossed out, and the rest are counted. How long that takes is not known before it is done. So it can be taken up and put
//! down again: [`Branching::advance`] works for so much effort more, and the planner lets it run as long as planning does.
//!
//! Numbers are carried along modulo 2^61 - 1 as well, computed from the residues alone: a fault of the machine shows in the end.
//!
//! Source: F. Fomin, D. Kratsch (2010), Exact Exponential Algorithms, chapter 2 (branching on vertices of high degree).

use crate::graphs::Graph;
use crate::numeric::dispatch::with_bits;
use crate::planner::Rival;
use crate::{Error, Result};
use num_bigint::BigUint;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// The most vertices of a graph that is tried: sets are compiled for up to four words.
const MOST_VERTICES: usize = 256;
/// Components of so many vertices are remembered.
const REMEMBERED: u32 = 14;
/// The most components that are remembered, and the bytes that one may take while the table grows.
const MOST_REMEMBERED: usize = 1 << 17;
const ENTRY: usize = 256;

/// The most vertices of a set that is counted by a table of all its subsets, the bits of one word.
const TABLE: usize = 6;

/// The subsets with a vertex in them, as bits of that word.
const WITH: [u64; TABLE] = [
    0xaaaa_aaaa_aaaa_aaaa,
    0xcccc_cccc_cccc_cccc,
    0xf0f0_f0f0_f0f0_f0f0,
    0xff00_ff00_ff00_ff00,
    0xffff_0000_ffff_0000,
    0xffff_ffff_0000_0000,
];

/// The effort of a set, besides one for each of its words, and the vertices of a set that take as much as one change more.
const STEP: u64 = 1;
const VERTICES: u64 = 32;
/// The effort of looking for a set among those remembered, and of remembering one.
const LOOKING: u64 = 1;
const REMEMBERING: u64 = 5;
/// After so many sets were looked for, and each time they have doubled, one of so many has to have been remembered;
/// otherwise nothing is remembered any more.
const FIRST_LOOKS: u64 = 1 << 11;
const LOOKS: u64 = 64;

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

/// Over also where some number exceeds 128 bits; the forecast is guessed from the part that is done.
impl Rival for Branching {
    fn advance(&mut self, effort: u64) {
        let until = self.effort().saturating_add(effort);
        self.0.advance(until);
    }

    fn effort(&self) -> u64 {
        self.0.effort()
    }

    fn forecast(&self) -> f64 {
        self.effort() as f64 / self.0.done().clamp(1e-30, 1.0)
    }

    fn has_found(&self) -> bool {
        matches!(self.0.state(), SearchState::Found(_))
    }

    fn is_over(&self) -> bool {
        self.0.state() != SearchState::Going
    }
}

/// A search, whatever the size of its sets.
trait BranchingSteps: std::fmt::Debug + Send {
    fn advance(&mut self, until: u64);
    fn effort(&self) -> u64;
    fn done(&self) -> f64;
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
    /// A Mersenne prime: numbers are reduced by a shift and an addition.
    const PRIME: u64 = (1 << 61) - 1;

    fn residue(x: u128) -> u64 {
        (x % u128::from(Self::PRIME)) as u64
    }

    /// A number below the prime.
    #[inline(always)]
    fn small(x: u64) -> Self {
        Self { value: u128::from(x), residue: x }
    }

    /// A residue of a number below twice the prime.
    #[inline(always)]
    fn folded(x: u64) -> u64 {
        x.min(x.wrapping_sub(Self::PRIME))
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Option<Self> {
        let residue = Self::folded(self.residue + other.residue);
        Some(Self { value: self.value.checked_add(other.value)?, residue })
    }

    #[inline(always)]
    fn times(self, other: Self) -> Option<Self> {
        let product = u128::from(self.residue) * u128::from(other.residue); // below 2^122
        let sum = (product as u64 & Self::PRIME) + (product >> 61) as u64;
        Some(Self { value: self.value.checked_mul(other.value)?, residue: Self::folded(sum) })
    }
}

/// A set of at most 64 `W` vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct VertexSet<const W: usize>([u64; W]);

impl<const W: usize> VertexSet<W> {
    const EMPTY: Self = Self([0; W]);

    #[inline(always)]
    fn insert(&mut self, vertex: usize) {
        self.0[vertex / 64] |= 1 << (vertex % 64);
    }

    #[inline(always)]
    fn has(&self, vertex: usize) -> bool {
        self.0[vertex / 64] >> (vertex % 64) & 1 == 1
    }

    #[inline(always)]
    fn without(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] & !other.0[i]))
    }

    #[inline(always)]
    fn intersection(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    #[inline(always)]
    fn union(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    #[inline(always)]
    fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    #[inline(always)]
    fn each(&self, mut visit: impl FnMut(usize)) {
        for (i, &word) in self.0.iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                visit(64 * i + rest.trailing_zeros() as usize);
                rest &= rest - 1;
            }
        }
    }
}

/// Sets are remembered under their words, multiplied and folded: they have no order that would make them collide.
impl<const W: usize> Hash for VertexSet<W> {
    #[inline(always)]
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.0.iter().for_each(|&word| hasher.write_u64(word));
    }
}

/// The hasher of vertex sets.
#[derive(Clone, Copy, Debug, Default)]
struct SetHasher(u64);

impl Hasher for SetHasher {
    #[inline(always)]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0.rotate_left(29) ^ word ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    #[inline(always)]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// A graph being counted.
#[derive(Debug)]
struct BranchingSearch<const W: usize> {
    neighbors: Vec<VertexSet<W>>,
    /// The independent sets of paths by their vertices, as far as they are below 2^128.
    paths: Vec<CheckedCount>,
    remembered: HashMap<VertexSet<W>, CheckedCount, BuildHasherDefault<SetHasher>>,
    /// Entries there may be.
    room: usize,
    /// Sets that were looked for among those remembered, and those that were there.
    looks: u64,
    hits: u64,
    pending: Vec<Pending<W>>,
    next: NextStep<W>,
    state: SearchState,
    effort: u64,
    /// The part of the work that is done, as far as can be told.
    done: f64,
    /// The part of the work on a set that is done with its vertex taken, by the neighbors of that vertex.
    taken: Vec<f64>,
}

/// What waits for a number; `weight` is the part of the work that it will be.
#[derive(Clone, Copy, Debug)]
enum Pending<const W: usize> {
    /// A component is being counted; the rest of the set waits.
    Rest { rest: VertexSet<W>, weight: f64 },
    /// The rest is being counted, and the component has this number.
    Times { number: CheckedCount },
    /// A set whose vertex is left out now; with the vertex taken, `rest` is left.
    LeftOut { set: VertexSet<W>, rest: VertexSet<W>, weight: f64 },
    /// The other of both numbers is known.
    Plus { set: VertexSet<W>, number: CheckedCount },
}

/// What is done next.
#[derive(Clone, Copy, Debug)]
enum NextStep<const W: usize> {
    /// Count the sets within these vertices, which is this part of the work.
    Enter(VertexSet<W>, f64),
    /// Hand a number to what waits for it.
    Return(CheckedCount),
}

/// Where work grows like x^size and a vertex has d neighbors, 1 = x^-1 + x^-(d+1): the second term.
fn share_of_taken(degree: usize) -> f64 {
    let (mut low, mut high) = (0.0f64, 1.0f64);
    for _ in 0..40 {
        let left_out = 0.5 * (low + high);
        if left_out + left_out.powi(degree as i32 + 1) < 1.0 { low = left_out } else { high = left_out }
    }
    1.0 - low
}

impl<const W: usize> BranchingSteps for BranchingSearch<W> {
    fn advance(&mut self, until: u64) {
        with_bits::<false, _>(
            #[inline(always)]
            || self.go_on(until),
        );
    }

    fn effort(&self) -> u64 {
        self.effort
    }

    fn done(&self) -> f64 {
        self.done
    }

    fn state(&self) -> SearchState {
        self.state
    }

    fn bytes(&self) -> u64 {
        (self.remembered.capacity() * size_of::<(VertexSet<W>, CheckedCount)>()) as u64
    }
}

impl<const W: usize> BranchingSearch<W> {
    /// Goes on until the effort is so much.
    #[inline(always)]
    fn go_on(&mut self, until: u64) {
        while self.state == SearchState::Going && self.effort < until {
            let next = match self.next {
                NextStep::Enter(set, weight) => self.enter(set, weight),
                NextStep::Return(number) => self.give(number),
            };
            match next {
                Some(next) => self.next = next,
                None if self.state == SearchState::Going => self.state = SearchState::GivenUp,
                None => {}
            }
        }
    }

    fn new(graph: &Graph, room: usize) -> Self {
        let mut neighbors = vec![VertexSet::EMPTY; graph.vertices()];
        for &(u, v) in graph.edges() {
            neighbors[u as usize].insert(v as usize);
            neighbors[v as usize].insert(u as usize);
        }
        let mut all = VertexSet::EMPTY;
        // A vertex with a loop is never occupied.
        (0..neighbors.len()).filter(|&v| !neighbors[v].has(v)).for_each(|v| all.insert(v));
        let two = [CheckedCount::ONE, CheckedCount::small(2)];
        let fibonacci = std::iter::successors(Some(two), |&[last, this]| Some([this, this.plus(last)?]));
        let paths = fibonacci.map(|[number, _]| number).take(graph.vertices() + 1).collect();
        Self {
            neighbors,
            paths,
            remembered: HashMap::default(),
            room,
            looks: 0,
            hits: 0,
            pending: Vec::new(),
            next: NextStep::Enter(all, 1.0),
            state: SearchState::Going,
            effort: 0,
            done: 0.0,
            taken: (0..graph.vertices().max(1)).map(share_of_taken).collect(),
        }
    }

    /// Hands a number to what waits for it; none at the end, or if a number is too long.
    #[inline(always)]
    fn give(&mut self, number: CheckedCount) -> Option<NextStep<W>> {
        Some(match self.pending.pop() {
            None => {
                self.state = SearchState::Found(number);
                return None;
            }
            Some(Pending::Rest { rest, weight }) => {
                self.pending.push(Pending::Times { number });
                NextStep::Enter(rest, weight)
            }
            Some(Pending::Times { number: other }) => NextStep::Return(number.times(other)?),
            Some(Pending::LeftOut { set, rest, weight }) => {
                self.pending.push(Pending::Plus { set, number });
                NextStep::Enter(rest, weight)
            }
            Some(Pending::Plus { set, number: other }) => {
                let count = number.plus(other)?;
                if set.len() >= REMEMBERED && self.remembered.len() < self.room {
                    self.effort += REMEMBERING;
                    self.remembered.insert(set, count);
                }
                NextStep::Return(count)
            }
        })
    }

    /// Counts a set at once where that is easy; otherwise says what is counted first.
    #[inline(always)]
    fn enter(&mut self, set: VertexSet<W>, weight: f64) -> Option<NextStep<W>> {
        let size = set.len();
        self.effort += STEP + W as u64 + u64::from(size) / VERTICES;
        if size <= TABLE as u32 {
            self.done += weight;
            return Some(NextStep::Return(self.table(&set)));
        }
        let (mut most, mut vertex) = (0, 0);
        set.each(|v| {
            let degree = self.neighbors[v].intersection(&set).len();
            if degree > most {
                (most, vertex) = (degree, v);
            }
        });
        if most <= 2 {
            self.done += weight;
            return Some(NextStep::Return(self.paths_and_cycles(set)?));
        }
        let component = self.component(vertex, &set);
        if component != set {
            let rest = set.without(&component);
            let (sizes, here) = (f64::from(size).powi(4), f64::from(component.len()).powi(4));
            let other = weight * (1.0 - here / sizes);
            self.pending.push(Pending::Rest { rest, weight: other });
            return Some(self.branch(component, component.len(), vertex, most, weight - other));
        }
        Some(self.branch(set, size, vertex, most, weight))
    }

    /// A component that is branched on at a vertex with so many neighbors, unless it is remembered.
    #[inline(always)]
    fn branch(&mut self, set: VertexSet<W>, size: u32, vertex: usize, degree: u32, weight: f64) -> NextStep<W> {
        if size >= REMEMBERED && self.room > 0 {
            self.looks += 1;
            self.effort += LOOKING;
            if let Some(&known) = self.remembered.get(&set) {
                self.hits += 1;
                self.done += weight;
                return NextStep::Return(known);
            }
            if self.looks.is_power_of_two() && self.looks >= FIRST_LOOKS && LOOKS * self.hits < self.looks {
                self.room = 0;
                self.remembered = HashMap::default();
            }
        }
        let mut taken = VertexSet::EMPTY;
        taken.insert(vertex);
        let left_out = set.without(&taken);
        let rest = left_out.without(&self.neighbors[vertex]);
        if size - 1 - degree <= TABLE as u32 {
            let number = self.table(&rest);
            self.pending.push(Pending::Plus { set, number });
            return NextStep::Enter(left_out, weight);
        }
        let part = weight * self.taken[degree as usize];
        self.pending.push(Pending::LeftOut { set, rest, weight: part });
        NextStep::Enter(left_out, weight - part)
    }

    /// The vertices that are connected with one.
    #[inline(always)]
    fn component(&self, first: usize, set: &VertexSet<W>) -> VertexSet<W> {
        let mut found = VertexSet::EMPTY;
        found.insert(first);
        let mut open = found;
        while open != VertexSet::EMPTY {
            let mut next = VertexSet::EMPTY;
            open.each(|v| next = next.union(&self.neighbors[v]));
            open = next.intersection(set).without(&found);
            found = found.union(&open);
        }
        found
    }

    /// The independent sets among a few vertices, by a table over all of their subsets.
    #[inline(always)]
    fn table(&self, set: &VertexSet<W>) -> CheckedCount {
        let mut vertices = [0usize; TABLE];
        let mut size = 0;
        set.each(|v| {
            vertices[size] = v;
            size += 1;
        });
        let mut free = u64::MAX;
        for i in 1..size {
            let row = &self.neighbors[vertices[i]];
            let joined = (0..i).fold(0, |joined, j| joined | WITH[j] & u64::from(row.has(vertices[j])).wrapping_neg());
            free &= !(WITH[i] & joined);
        }
        // Vertices beyond those there are double the table.
        CheckedCount::small(u64::from(free.count_ones() >> (TABLE - size)))
    }

    /// The number for a set without a vertex of three neighbors.
    #[inline(always)]
    fn paths_and_cycles(&self, set: VertexSet<W>) -> Option<CheckedCount> {
        let mut product = CheckedCount::ONE;
        let mut rest = set;
        while let Some(word) = rest.0.iter().position(|&word| word != 0) {
            let component = self.component(64 * word + rest.0[word].trailing_zeros() as usize, &rest);
            rest = rest.without(&component);
            let (size, mut ends) = (component.len(), 0);
            component.each(|v| ends += self.neighbors[v].intersection(&component).len());
            let path = |vertices: u32| self.paths.get(vertices as usize).copied();
            let is_cycle = size > 2 && ends == 2 * size;
            product = product.times(if is_cycle { path(size - 1)?.plus(path(size - 3)?)? } else { path(size)? })?;
        }
        Some(product)
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
        assert_eq!(count(&graph, 8), None);
        let mut going = Branching::new(&graph, 0).unwrap();
        going.advance(8);
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
