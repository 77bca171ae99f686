//! Independent sets of any graph, along a tree decomposition.
//!
//! The vertices of the reduced graph are eliminated in an order ([`crate::counting::graph_sums::elimination`]); the *message* of a vertex `v` is the sum over
//! everything eliminated below it, one element for each independent subset `A` of its scope:
//!
//!   `m_v(A) = w_v[0] prod_u M_vu[0][A_u] prod_c m_c(A)  +  [A joins no neighbor of v] w_v[1] prod_u M_vu[1][A_u] prod_c m_c(A + v)`,
//!
//! where `c` are the children of `v` in the tree, each read at the part of the set that lies in its own scope. Vertices whose
//! scope is empty are roots; the partition function is the product of their messages. A path decomposition keeps one table
//! from one end to the other ([`super::frontier`]); here tables of different branches are joined, so that a graph of small
//! treewidth is easy however long its frontiers are.
//!
//! The messages lie on a stack: those of the children of a vertex next to one another, its own above them, then moved down.
//!
//! Source: S. Arnborg and A. Proskurowski (1989), Linear time algorithms for NP-hard problems restricted to partial k-trees.

mod states;

use self::states::States;
use super::frontier::circuit::{Circuit, Factor, Node, Tape, read};
use super::frontier::independence;
use super::frontier::reduce::ReducedGraph;
use crate::Result;
use crate::counting::graph_sums::elimination::{EliminationOrder, Rule};
use crate::counting::graph_sums::planner::Planner;
use crate::counting::transfer::{Transfer, Weight};
use crate::graphs::Graph;
use crate::monitor::Progress;
use crate::numeric::ring::Ring;
use crate::parallel;

/// Instructions for weights done in one step.
const INSTRUCTIONS: usize = 1 << 12;
/// States that are worth a task of their own.
const TASK: usize = 1 << 13;
/// States for each vertex with which the first order is good enough.
const EASY: u64 = 64;
/// The most states of one message; ranks are 32 bits.
const MOST_STATES: u64 = 1 << 31;

/// The engine for one graph.
#[derive(Debug)]
pub struct Tree {
    /// Children before parents.
    nodes: Vec<TreeNode>,
    tape: Tape,
    /// The weights of vertices and edges that the nodes refer to.
    weights: Vec<Node>,
    /// What the vertices summed out contribute.
    factor: Node,
    /// Elements of the stack.
    stack: usize,
    width: usize,
    independence_bound: usize,
    roundings: u64,
}

/// A vertex with its message.
#[derive(Debug)]
struct TreeNode {
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
    /// Where the messages of the children begin on the stack, and the message goes.
    base: usize,
    /// Where the message is written before it goes there.
    scratch: usize,
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
    /// Where its message is on the stack, from the base of the parent on.
    offset: usize,
    len: usize,
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
    node: &'n TreeNode,
    states: States,
    children: Vec<(States, Vec<u64>)>,
}

impl<'n> Listing<'n> {
    fn new(node: &'n TreeNode) -> Self {
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
    /// Plans the count for a graph; `None` if no decomposition that was tried has messages of at most `max_states`
    /// elements in all.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] when the planner says so.
    pub fn plan(graph: &Graph, max_states: usize, planner: &Planner<'_>) -> Result<Option<Self>> {
        let found = Self::found(graph, max_states, planner);
        planner.check().map(|()| found)
    }

    fn found(graph: &Graph, max_states: usize, planner: &Planner<'_>) -> Option<Self> {
        let neighbors = graph.neighbors();
        let mut circuit = Circuit::default();
        let reduced = ReducedGraph::new(graph, &neighbors, &[], &mut circuit, planner.progress()).ok()?;
        let joined: Vec<Vec<u32>> =
            reduced.links.iter().map(|links| links.iter().map(|link| link.to).collect()).collect();
        let plan =
            |rule| Scopes::new(&reduced, EliminationOrder::greedy(&joined, rule, planner)?, max_states as u64, planner);
        let mut scopes = plan(Rule::Degree);
        if scopes.as_ref().is_none_or(|found| found.total() > EASY * joined.len() as u64) {
            scopes = scopes.into_iter().chain(plan(Rule::Fill)).min_by_key(Scopes::total);
        }
        let scopes = scopes?;
        let mut nodes = Vec::new();
        let mut weights = Vec::new();
        let mut roundings = circuit.roundings(reduced.factor);
        for place in 0..joined.len() {
            if planner.is_stopping() {
                return None;
            }
            let node = TreeNode::new(&reduced, &scopes, place, &mut weights);
            roundings = roundings.saturating_add((node.soft.len() + 2) as u64);
            nodes.push(node);
        }
        roundings = weights.iter().fold(roundings, |sum, &w| sum.saturating_add(circuit.roundings(w)));
        roundings = roundings.saturating_add(nodes.len() as u64); // each message is multiplied to its parent once
        let (order, stack) = arrange(&mut nodes, &scopes.elimination.scopes);
        let mut factor = reduced.factor;
        let tape = circuit.compile(weights.iter_mut().chain([&mut factor]), planner.progress()).ok()?;
        let mut nodes: Vec<Option<TreeNode>> = nodes.into_iter().map(Some).collect();
        let nodes: Vec<TreeNode> = order.into_iter().filter_map(|place| nodes[place].take()).collect();
        Some(Self {
            nodes,
            tape,
            weights,
            factor,
            stack,
            width: scopes.elimination.width(),
            independence_bound: independence(graph, &neighbors, planner.progress()).ok()?,
            roundings,
        })
        .filter(|tree| tree.stack <= max_states)
    }

    /// Vertices in the largest scope.
    pub fn width(&self) -> usize {
        self.width
    }

    /// A number no independent set has more vertices than.
    pub fn independence_bound(&self) -> usize {
        self.independence_bound
    }

    /// Additions of elements in all.
    pub fn total_work(&self) -> u64 {
        self.nodes.iter().map(TreeNode::work).fold(0, u64::saturating_add)
    }

    fn preparations(&self) -> u64 {
        self.tape.length().div_ceil(INSTRUCTIONS) as u64
    }

    fn instructions(&self, step: u64) -> std::ops::Range<usize> {
        let start = step as usize * INSTRUCTIONS;
        start..self.tape.length().min(start + INSTRUCTIONS)
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
        let mut places = vec![0; elimination.order.len()];
        (0u32..).zip(&elimination.order).for_each(|(place, &v)| places[v as usize] = place);
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

/// Puts the messages on the stack: sorts children so that the stack stays low, gives each its place; returns the order of
/// the nodes and the elements of the stack.
fn arrange(nodes: &mut [TreeNode], scopes: &[Vec<u32>]) -> (Vec<usize>, usize) {
    let n = nodes.len();
    let lengths: Vec<u64> = nodes.iter().map(|node| node.len as u64).collect();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut roots = Vec::new();
    let mut peaks = vec![0u64; n];
    for place in 0..n {
        // A child whose stack is much higher than its message comes first.
        children[place].sort_by_key(|&c| std::cmp::Reverse(peaks[c] - lengths[c]));
        let mut below = 0u64;
        let mut peak = 0;
        for &c in &children[place] {
            peak = peak.max(below + peaks[c]);
            below += lengths[c];
        }
        peaks[place] = peak.max(below + lengths[place]);
        match scopes[place].first() {
            Some(&parent) => children[parent as usize].push(place),
            None => roots.push(place),
        }
    }
    for place in (0..n).rev() {
        let mut next = nodes[place].base;
        for &c in &children[place] {
            nodes[c].base = next;
            next += lengths[c] as usize;
        }
        nodes[place].scratch = next;
        let base = nodes[place].base;
        nodes[place].children = children[place].iter().map(|&c| child(nodes, scopes, c, base)).collect();
        if nodes[place].rows.len() <= states::LOW {
            let mut block = Block::default();
            Listing::new(&nodes[place]).fill(0, &mut block);
            nodes[place].block = Some(block);
        }
    }
    let mut order = Vec::with_capacity(n);
    let mut open: Vec<(usize, usize)> = Vec::new();
    for root in roots {
        open.push((root, 0));
        while let Some((place, next)) = open.last_mut() {
            if let Some(&c) = children[*place].get(*next) {
                *next += 1;
                open.push((c, 0));
            } else {
                order.push(*place);
                open.pop();
            }
        }
    }
    (order, peaks.into_iter().max().unwrap_or(0) as usize)
}

/// A child as its parent sees it, once its place is known.
fn child(nodes: &[TreeNode], scopes: &[Vec<u32>], place: usize, base: usize) -> Child {
    let scope = &scopes[place];
    let above = &scopes[scope[0] as usize];
    let bit = |u: &u32| above.binary_search(u).expect("the rest of a scope lies in the scope above") as u32;
    Child {
        rows: nodes[place].rows.clone(),
        bits: scope[1..].iter().map(bit).collect(),
        offset: nodes[place].base - base,
        len: nodes[place].len,
    }
}

impl TreeNode {
    fn new(reduced: &ReducedGraph, scopes: &Scopes, place: usize, weights: &mut Vec<Node>) -> Self {
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
        Self {
            rows: scopes.rows[place].clone(),
            blocked: within(&scopes.hard[place], scope),
            children: Vec::new(),
            weights: first,
            soft,
            len: scopes.lengths[place] as usize,
            base: 0,
            scratch: 0,
            block: None,
        }
    }

    /// Additions of elements.
    fn work(&self) -> u64 {
        (self.len * (1 + self.children.len() + self.soft.len())) as u64
    }

    /// The message from those of the children.
    fn message<R: Ring>(&self, meeting: &MessageParts<R>, out: &mut [R::Element], progress: &Progress) -> Result<()> {
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
        1 + self.tape.registers() + self.stack
    }

    fn steps(&self) -> u64 {
        self.preparations() + self.nodes.len() as u64
    }

    fn work(&self, step: u64) -> u64 {
        match step.checked_sub(self.preparations()) {
            None => self.instructions(step).len() as u64,
            Some(node) => self.nodes[node as usize].work(),
        }
    }

    fn roundings(&self) -> u64 {
        self.roundings
    }

    fn start<R: Ring>(&self, weight: &Weight<R>, state: &mut [R::Element]) {
        state[0] = weight.ring.one();
    }

    fn step<R: Ring>(
        &self,
        weight: &Weight<R>,
        step: u64,
        state: &mut [R::Element],
        progress: &Progress,
    ) -> Result<()> {
        let ring = weight.ring;
        let (total, rest) = state.split_at_mut(1);
        let (registers, stack) = rest.split_at_mut(self.tape.registers());
        let Some(number) = step.checked_sub(self.preparations()) else {
            let instructions = self.instructions(step);
            let units = instructions.len() as u64;
            self.tape.run(instructions, weight, 0, registers);
            return progress.advance(units);
        };
        let node = &self.nodes[number as usize];
        let (below, above) = stack[node.base..].split_at_mut(node.scratch - node.base);
        let factor = |place: usize| Factor::of(ring, self.weights[place], registers);
        let meeting = MessageParts {
            ring,
            blocked: node.blocked,
            children: node.children.iter().map(|child| &below[child.offset..child.offset + child.len]).collect(),
            weights: [0, 1].map(|state| factor(node.weights + state)),
            soft: node
                .soft
                .iter()
                .map(|&(bit, at)| (bit, [0, 1].map(|here| [0, 1].map(|there| factor(at + 2 * here + there)))))
                .collect(),
        };
        node.message(&meeting, &mut above[..node.len], progress)?;
        stack.copy_within(node.scratch..node.scratch + node.len, node.base);
        if node.rows.is_empty() {
            total[0] = ring.mul(total[0], stack[node.base]);
        }
        Ok(())
    }

    fn finish<R: Ring>(&self, weight: &Weight<R>, state: &[R::Element]) -> R::Element {
        weight.ring.mul(state[0], read(weight.ring, self.factor, &state[1..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::independent_sets::brute;
    use crate::counting::transfer::{Point, evaluate, evaluate_lanes};
    use crate::numeric::residue::primes;
    use crate::numeric::ring::F64;
    use crate::stream::Stream;
    use proptest::prelude::*;

    fn planned(graph: &Graph, states: usize) -> Tree {
        Tree::plan(graph, states, &Planner::new(&Progress::default())).unwrap().unwrap()
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
            let coefficients = brute::polynomial(&graph).unwrap();
            let modulus = primes(1).unwrap()[0];
            let points = [1, 0, 2, modulus.value() - 5].map(|activity| Point::new(modulus, activity));
            let horner = |point: &Point| {
                let next = |sum, &c: &u64| modulus.residue(modulus.mul(sum, point.activity) + c);
                coefficients.iter().rev().fold(0, next)
            };
            let expected: Vec<u64> = points.iter().map(horner).collect();
            let engine = planned(&graph, 1 << 20);
            let progress = Progress::new((0..engine.steps()).map(|step| engine.work(step)).sum());
            prop_assert_eq!(&evaluate_lanes::<4>(&engine, &points, &progress).unwrap(), &expected);
            prop_assert_eq!(progress.done(), progress.total());
            let real = evaluate(&engine, &Weight::new(F64, 1.0), &progress).unwrap();
            prop_assert_eq!(real, coefficients.iter().sum::<u64>() as f64);
            prop_assert!(engine.independence_bound() + 1 >= coefficients.len());
        }
    }

    /// A random partial k-tree: each new vertex is joined to k of a clique, a fifth of the edges is left out.
    fn partial_k_tree(k: u32, n: u32, seed: u64) -> Graph {
        let mut words = Stream::new([seed, 0], 0, 0, 0);
        let mut below = |n: u64| ((u128::from(words.word()) * u128::from(n)) >> 64) as u64;
        let mut cliques: Vec<Vec<u32>> = vec![(0..k).collect()];
        let mut edges: Vec<(u32, u32)> = (0..k).flat_map(|u| (0..u).map(move |v| (v, u))).collect();
        for v in k..n {
            let clique = cliques[below(cliques.len() as u64) as usize].clone();
            edges.extend(clique.iter().map(|&u| (u, v)));
            let out = below(u64::from(k)) as usize;
            cliques.push(clique.iter().enumerate().filter(|&(i, _)| i != out).map(|(_, &u)| u).chain([v]).collect());
        }
        edges.retain(|_| below(5) > 0);
        Graph::new(n as usize, edges).unwrap()
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
