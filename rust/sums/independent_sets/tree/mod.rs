//! Independent sets of any graph, along a tree decomposition.
//!
//! The vertices of the reduced graph are eliminated in an order ([`crate::tree`]); the *message* of a vertex `v` is
//! the sum over everything eliminated below it, one element for each independent subset `A` of its scope:
//!
//!   `m_v(A) = w_v[0] prod_u M_vu[0][A_u] prod_c m_c(A)  +  [A joins no neighbor of v] w_v[1] prod_u M_vu[1][A_u] prod_c m_c(A + v)`,
//!
//! where `c` are the children of `v` in the tree, each read at the part of the set that lies in its own scope.
//!
//! Source: S. Arnborg and A. Proskurowski (1989), Linear time algorithms for NP-hard problems restricted to partial k-trees.

pub mod integers;
mod states;

use self::states::States;
use super::frontier::circuit::{Circuit, Factor, Node, Tape, read};
use super::frontier::independence;
use super::frontier::reduce::ReducedGraph;
use crate::Result;
use crate::elimination::{EliminationOrder, places};
use crate::graphs::{Graph, Lists};
use crate::monitor::Progress;
use crate::numeric::ring::Ring;
use crate::parallel;
use crate::planner::Planner;
use crate::transfer::{AnyRing, StepContext, Transfer, TransferRing, Weight};
use crate::tree::{MessageTree, Messages, Summand};
use num_bigint::BigInt;

/// States that are worth a task of their own.
const TASK: usize = 1 << 13;
/// States for each vertex with which the first order is good enough.
const EASY: f64 = 64.0;
/// The most states of one message; ranks are 32 bits.
const MOST_STATES: u64 = 1 << 31;

/// The engine for one graph.
#[derive(Debug)]
pub struct Tree {
    messages: MessageTree<SetVertex>,
    tape: Tape,
    /// The weights of vertices and edges that the messages refer to.
    weights: Vec<Node>,
    /// What the vertices summed out contribute.
    factor: Node,
    width: usize,
    independence_bound: usize,
    roundings: u64,
}

/// A vertex with its message.
#[derive(Debug)]
struct SetVertex {
    /// The edges among the scope, a mask for each of its vertices.
    rows: Vec<u64>,
    /// The vertices of the scope that cannot be in together with this one.
    blocked: u64,
    children: Vec<Child>,
    /// Where its two weights are.
    weights: usize,
    /// The vertices of the scope with weighted edges to this one, and where the four weights `[here][there]` are.
    soft: Vec<(u32, usize)>,
    /// Elements of the message.
    len: usize,
    /// The only block of a small message; larger ones are listed anew each time.
    block: Option<Block>,
}

/// A child as its parent sees it.
#[derive(Debug)]
struct Child {
    /// The edges among its scope, whose vertex 0 is the parent.
    rows: Vec<u64>,
    /// The bit in the parent's scope of each further vertex of its scope.
    bits: Vec<u32>,
}

impl Child {
    /// The mask over the child's scope of a set over the parent's, the parent itself left out.
    fn seen(&self, mask: u64) -> u64 {
        self.bits.iter().zip(1..).fold(0, |seen, (bit, place)| seen | (mask >> bit & 1) << place)
    }
}

/// States of a message that follow one another, and where the children's elements are for them.
#[derive(Clone, Debug, Default)]
struct Block {
    masks: Vec<u64>,
    /// For each child one run: the ranks for each mask, with the vertex out and in.
    ranks: Vec<[u32; 2]>,
}

/// The states of a message and of its children, and how the low parts of a mask are seen by them.
struct Listing<'n> {
    node: &'n SetVertex,
    states: States,
    children: Vec<(States, Vec<u64>)>,
}

impl<'n> Listing<'n> {
    fn new(node: &'n SetVertex) -> Self {
        let listed =
            |rows: &[u64]| States::new(rows, u64::MAX, &|_| true).expect("states that were counted can be listed");
        let low = 1u64 << node.rows.len().min(states::LOW);
        let children =
            node.children.iter().map(|child| (listed(&child.rows), (0..low).map(|m| child.seen(m)).collect()));
        Self { node, states: listed(&node.rows), children: children.collect() }
    }

    /// Lists a block.
    fn fill(&self, number: usize, block: &mut Block) {
        block.masks.clear();
        block.masks.extend(self.states.masks(number));
        block.ranks.clear();
        let Some(&first) = block.masks.first() else { return };
        let low = (1u64 << self.node.rows.len().min(states::LOW)) - 1;
        for (child, (states, seen)) in self.node.children.iter().zip(&self.children) {
            let high = child.seen(first & !low);
            let ranks = block.masks.iter().map(|&mask| {
                let mask = high | seen[(mask & low) as usize];
                [states.rank(mask), states.rank(mask | 1)]
            });
            block.ranks.extend(ranks);
        }
    }
}

impl Tree {
    /// Plans the count for a graph, whose vertices may have weights of their own, out and in; `None` if no decomposition that was
    /// tried has messages of at most `max_states` elements in all.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] when the planner says so.
    pub fn plan(
        graph: &Graph,
        weights: Option<&[[BigInt; 2]]>,
        max_states: usize,
        planner: &Planner<'_>,
    ) -> Result<Option<Self>> {
        let found = Self::found(graph, weights, max_states, planner);
        planner.check().map(|()| found)
    }

    fn found(graph: &Graph, weights: Option<&[[BigInt; 2]]>, max_states: usize, planner: &Planner<'_>) -> Option<Self> {
        let neighbors = graph.stoppable_neighbors(planner.progress()).ok()?;
        let mut circuit = Circuit::new(weights);
        let reduced = ReducedGraph::new(graph, &neighbors, &[], &mut circuit, planner.progress()).ok()?;
        let joined: Lists = reduced.links.iter().map(|links| links.iter().map(|link| link.to)).collect();
        let plan = |elimination| {
            let scopes = Scopes::new(&reduced, elimination, max_states as u64, planner)?;
            Some((scopes.total() as f64, scopes))
        };
        let scopes = EliminationOrder::better(&joined, EASY, planner, plan)?;
        let mut weights = Vec::new();
        let messages = MessageTree::new(&scopes.elimination, &scopes.lengths, planner, |place, children| {
            Some(SetVertex::new(&reduced, &scopes, place, children, &mut weights))
        })?;
        // Each message is multiplied to its parent once.
        let own = messages.summands().map(|vertex| vertex.soft.len() as u64 + 3);
        let given = weights.iter().chain([&reduced.factor]).map(|&weight| circuit.roundings(weight));
        let roundings = own.chain(given).fold(0, u64::saturating_add);
        let mut factor = reduced.factor;
        let tape = circuit.compile(weights.iter_mut().chain([&mut factor]), planner.progress()).ok()?;
        Some(Self {
            messages,
            tape,
            weights,
            factor,
            width: scopes.elimination.width(),
            independence_bound: independence(graph, &neighbors, planner.progress()).ok()?,
            roundings,
        })
        .filter(|tree| tree.messages.stack() <= max_states)
    }

    /// Vertices in the largest scope.
    pub fn width(&self) -> usize {
        self.width
    }

    /// A number no independent set has more vertices than.
    pub fn independence_bound(&self) -> usize {
        self.independence_bound
    }

    /// The same over all rings behind one pointer: compiled here, not where it is called.
    #[inline(never)]
    pub fn over_rings(&self) -> &dyn AnyRing {
        self
    }

    /// Additions of elements in all.
    pub fn total_work(&self) -> u64 {
        self.messages.summands().map(SetVertex::work).fold(0, u64::saturating_add)
    }
}

/// The scopes of an elimination, with the edges among each and the states of its message.
struct Scopes {
    elimination: EliminationOrder,
    /// For each place the hard neighbors at later places, all of them in its scope, rising.
    hard: Vec<Vec<u32>>,
    /// For each place the edges among its scope, a mask for each vertex.
    rows: Vec<Vec<u64>>,
    lengths: Vec<u64>,
}

impl Scopes {
    /// Counts the states; `None` if a message has more than `most`, or the planner stops.
    fn new(reduced: &ReducedGraph, elimination: EliminationOrder, most: u64, planner: &Planner<'_>) -> Option<Self> {
        let places = places(&elimination.order);
        let later = |(place, &v): (u32, &u32)| {
            let links = reduced.links[v as usize].iter().filter(|link| link.hard);
            let mut found: Vec<u32> = links.map(|link| places[link.to as usize]).filter(|&p| p > place).collect();
            found.sort_unstable();
            found
        };
        let hard: Vec<Vec<u32>> = (0..).zip(&elimination.order).map(later).collect();
        let rows: Vec<Vec<u64>> = elimination.scopes.iter().map(|scope| among(scope, &hard)).collect();
        let goes_on = |listed: usize| {
            planner.make(listed as u64);
            !planner.is_stopping()
        };
        let most = most.min(MOST_STATES);
        let length = |rows: &Vec<u64>| {
            Some(States::new(rows, most, &goes_on)?.total()).filter(|&len| len <= most && !planner.is_stopping())
        };
        let lengths = rows.iter().map(length).collect::<Option<_>>()?;
        Some(Self { elimination, hard, rows, lengths })
    }

    fn total(&self) -> u64 {
        self.lengths.iter().sum()
    }
}

/// The hard edges among a scope.
fn among(scope: &[u32], hard: &[Vec<u32>]) -> Vec<u64> {
    let mut rows = vec![0; scope.len()];
    for (i, &p) in scope.iter().enumerate() {
        let above = within(&hard[p as usize], &scope[i + 1..]) << 1 << i;
        rows[i] |= above;
        states::members(above).for_each(|j| rows[j] |= 1 << i);
    }
    rows
}

/// Which of some rising places are in a rising list.
fn within(list: &[u32], places: &[u32]) -> u64 {
    let mut list = list.iter().copied().peekable();
    places.iter().zip(0..).fold(0, |mask, (&place, bit)| {
        while list.next_if(|&found| found < place).is_some() {}
        mask | u64::from(list.peek() == Some(&place)) << bit
    })
}

impl Child {
    /// A child as a vertex of this scope sees it.
    fn new(scopes: &Scopes, above: &[u32], place: usize) -> Self {
        let bit = |u: &u32| above.binary_search(u).expect("the rest of a scope lies in the scope above") as u32;
        Self { rows: scopes.rows[place].clone(), bits: scopes.elimination.scopes[place][1..].iter().map(bit).collect() }
    }
}

impl SetVertex {
    fn new(reduced: &ReducedGraph, scopes: &Scopes, place: usize, children: &[usize], weights: &mut Vec<Node>) -> Self {
        let EliminationOrder { order, scopes: all } = &scopes.elimination;
        let (v, scope) = (order[place], &all[place]);
        let first = weights.len();
        weights.extend(reduced.weights[v as usize]);
        let mut soft = Vec::new();
        let weighted = reduced.links[v as usize].iter().any(|link| link.soft.is_some());
        for (bit, &p) in (0..).zip(scope).take(if weighted { scope.len() } else { 0 }) {
            let links = &reduced.links[v as usize];
            let link = links.binary_search_by_key(&order[p as usize], |link| link.to);
            if let Some(m) = link.ok().and_then(|i| links[i].soft) {
                soft.push((bit, weights.len()));
                weights.extend(m.concat());
            }
        }
        let mut vertex = Self {
            rows: scopes.rows[place].clone(),
            blocked: within(&scopes.hard[place], scope),
            children: children.iter().map(|&c| Child::new(scopes, scope, c)).collect(),
            weights: first,
            soft,
            len: scopes.lengths[place] as usize,
            block: None,
        };
        if scope.len() <= states::LOW {
            let mut block = Block::default();
            Listing::new(&vertex).fill(0, &mut block);
            vertex.block = Some(block);
        }
        vertex
    }

    /// Additions of elements.
    fn work(&self) -> u64 {
        (self.len * (1 + self.children.len() + self.soft.len())) as u64
    }

    fn sum<R: Ring>(&self, meeting: &MessageParts<R>, out: &mut [R::Element], progress: &Progress) -> Result<()> {
        if let Some(block) = &self.block {
            meeting.sum(block, out);
            return progress.advance(self.work());
        }
        let listing = Listing::new(self);
        let mut tasks = Vec::new();
        let (mut rest, mut start) = (out, 0);
        for number in 1..=listing.states.blocks() {
            let len = (listing.states.first(number) - listing.states.first(start)) as usize;
            if len >= TASK || number == listing.states.blocks() {
                let (part, more) = rest.split_at_mut(len);
                tasks.push((start..number, part));
                (rest, start) = (more, number);
            }
        }
        let each = (1 + self.children.len() + self.soft.len()) as u64;
        parallel::pieces(&mut tasks, 1, Block::default, |block, _, task| {
            let (numbers, part) = &mut task[0];
            let mut rest = &mut **part;
            for number in numbers.clone() {
                listing.fill(number, block);
                let (now, more) = rest.split_at_mut(block.masks.len());
                meeting.sum(block, now);
                progress.advance(each * now.len() as u64)?;
                rest = more;
            }
            Ok(())
        })
    }
}

/// The weights that the messages refer to, in one ring.
struct RingWeights<'r, R: Ring> {
    ring: R,
    weights: &'r [Node],
    registers: &'r [R::Element],
}

impl<R: Ring> Summand<R::Element, RingWeights<'_, R>> for SetVertex {
    fn message(
        &self,
        context: &mut RingWeights<'_, R>,
        children: Messages<'_, R::Element>,
        out: &mut [R::Element],
        progress: &Progress,
    ) -> Result<()> {
        let factor = |place: usize| Factor::of(context.ring, context.weights[place], context.registers);
        let soft =
            |&(bit, at): &(u32, usize)| (bit, [0, 1].map(|here| [0, 1].map(|there| factor(at + 2 * here + there))));
        let meeting = MessageParts {
            ring: context.ring,
            blocked: self.blocked,
            children: children.iter().collect(),
            weights: [0, 1].map(|state| factor(self.weights + state)),
            soft: self.soft.iter().map(soft).collect(),
        };
        self.sum(&meeting, out, progress)
    }
}

/// Neighbors with the factors of their four joint states.
type Soft<E> = Vec<(u32, [[Factor<E>; 2]; 2])>;

/// What a message is made of, in one ring.
struct MessageParts<'s, R: Ring> {
    ring: R,
    blocked: u64,
    children: Vec<&'s [R::Element]>,
    weights: [Factor<R::Element>; 2],
    soft: Soft<R::Element>,
}

impl<R: Ring> MessageParts<'_, R> {
    /// The message for the states of a block.
    fn sum(&self, block: &Block, out: &mut [R::Element]) {
        let ring = self.ring;
        let states = block.masks.len();
        for (i, (&mask, sum)) in block.masks.iter().zip(out).enumerate() {
            let term = |state: usize| {
                let mut product: Option<R::Element> = None;
                for (c, child) in self.children.iter().enumerate() {
                    let element = child[block.ranks[c * states + i][state] as usize];
                    product = Some(product.map_or(element, |so_far| ring.mul(so_far, element)));
                }
                let mut product = product.unwrap_or_else(|| ring.one());
                for (bit, m) in &self.soft {
                    product = ring.fold(m[state][(mask >> bit & 1) as usize].times(ring, product));
                }
                ring.fold(self.weights[state].times(ring, product))
            };
            *sum = term(0);
            if mask & self.blocked == 0 {
                *sum = ring.fold(ring.add(*sum, term(1)));
            }
        }
    }
}

/// The memory is the product of the roots done, the registers of the weights, and the stack.
impl Transfer for Tree {
    fn len(&self) -> usize {
        1 + self.tape.registers() + self.messages.stack()
    }

    fn steps(&self) -> u64 {
        self.tape.steps() + self.messages.summands().len() as u64
    }

    fn work(&self, step: u64) -> u64 {
        match step.checked_sub(self.tape.steps()) {
            None => self.tape.work(step),
            Some(step) => self.messages.summand(step as usize).work(),
        }
    }

    fn roundings(&self) -> u64 {
        self.roundings
    }

    fn start<R: TransferRing>(&self, weight: &Weight<R>, state: &mut [R::Element]) {
        state[0] = weight.ring.one();
    }

    fn advance<R: TransferRing>(&self, at: StepContext<'_, R>, state: &mut [R::Element]) -> Result<()> {
        let ring = at.weight.ring;
        let (total, rest) = state.split_at_mut(1);
        let (registers, stack) = rest.split_at_mut(self.tape.registers());
        let Some(number) = at.number.checked_sub(self.tape.steps()) else {
            return self.tape.step(at, 0, registers);
        };
        let mut context = RingWeights { ring, weights: &self.weights, registers };
        if let Some(root) = self.messages.step(number as usize, &mut context, stack, at.progress)? {
            total[0] = ring.mul(total[0], root);
        }
        Ok(())
    }

    fn finish<R: TransferRing>(&self, weight: &Weight<R>, state: &[R::Element]) -> R::Element {
        weight.ring.mul(state[0], read(weight.ring, self.factor, &state[1..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::partial_k_tree;
    use crate::independent_sets::brute;
    use crate::numeric::residue::primes;
    use crate::numeric::ring::F64;
    use crate::transfer::{Point, evaluate, evaluate_lanes};
    use proptest::prelude::*;

    fn planned(graph: &Graph, states: usize) -> Tree {
        Tree::plan(graph, None, states, &Planner::new(&Progress::default())).unwrap().unwrap()
    }

    fn any_graph() -> impl Strategy<Value = Graph> {
        (1usize..=20).prop_flat_map(|n| {
            let edge = (0..n as u32, 0..n as u32);
            prop::collection::vec(edge, 0..=3 * n).prop_map(move |edges| Graph::new(n, edges).unwrap())
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

        #[test]
        fn values_agree_with_brute_force(graph in any_graph()) {
            let (coefficients, points, expected) = brute::values(&graph);
            let engine = planned(&graph, 1 << 20);
            let progress = Progress::new((0..engine.steps()).map(|step| engine.work(step)).sum());
            prop_assert_eq!(&evaluate_lanes::<4>(&engine, &points, &progress).unwrap(), &expected);
            prop_assert_eq!(progress.done(), progress.total());
            let real = evaluate(&engine, &Weight::new(F64, 1.0), &progress).unwrap();
            prop_assert_eq!(real, coefficients.iter().sum::<u64>() as f64);
            prop_assert!(engine.independence_bound() + 1 >= coefficients.len());
        }
    }

    #[test]
    fn partial_k_trees_have_small_tables() {
        for (k, n) in [(3, 500), (5, 300), (8, 200)] {
            let graph = partial_k_tree(k, n, 7);
            let engine = planned(&graph, 1 << 24);
            assert!(engine.width() <= k as usize + 2, "{k} {n}: {}", engine.width());
            assert!(engine.len() < 1 << 14, "{k} {n}: {}", engine.len());
        }
    }

    #[test]
    fn wide_scopes_are_listed_in_blocks_and_on_several_threads_alike() {
        // A grid of 14 x 14 has scopes of 14 vertices, more than one block of states each.
        let side = 14u32;
        let edges = (0..side * side).flat_map(|v| {
            let right = (v % side + 1 < side).then_some((v, v + 1));
            right.into_iter().chain((v + side < side * side).then_some((v, v + side)))
        });
        let graph = Graph::new((side * side) as usize, edges.collect()).unwrap();
        let engine = planned(&graph, 1 << 24);
        let moduli = primes(4).unwrap();
        let points: Vec<Point> = moduli.iter().map(|&modulus| Point::new(modulus, 1)).collect();
        let found = evaluate_lanes::<4>(&engine, &points, &Progress::default()).unwrap();
        let pairs: Vec<(u64, u64)> = moduli.iter().map(|m| m.value()).zip(found).collect();
        assert_eq!(
            crate::numeric::residue::combine(&pairs).unwrap().to_string(),
            "338752110195939290445247645371206783"
        );
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let again = pool.install(|| evaluate_lanes::<4>(&engine, &points, &Progress::default()).unwrap());
        assert_eq!(again, pairs.iter().map(|&(_, r)| r).collect::<Vec<_>>());
    }
}
