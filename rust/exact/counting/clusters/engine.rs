//! Sums over all subsets of the edges of a graph, weighted by their components, along a tree of bags: the engine.
//!
//! With a weight w for each edge that is taken and q for each component, Fortuin and Kasteleyn's sum is
//!
//!   `Z = sum over subsets A of q^k(A) prod over A of w_e`.
//!
//! A table holds for each set partition of a scope the sum over the subsets below that connect it so. What is done there is in [`tables`];
//! here are the factors: an edge has three, for being left out, for closing a cycle and for joining two blocks.
//!
//! [`tables`]: super::tables

use super::partition;
use super::tables::{BagShape, BagTable, BagTables, Coefficient, Kind, Terms, WHAT};
use crate::counting::graph_sums::elimination::{EliminationOrder, Rule, places};
use crate::counting::graph_sums::order::searched_order;
use crate::counting::graph_sums::planner::Planner;
use crate::counting::graph_sums::search::StateKind;
use crate::counting::graph_sums::tree::{MessageTree, Messages, Summand};
use crate::counting::independent_sets::frontier::circuit::integer;
use crate::counting::transfer::{StepContext, Transfer, Weight};
use crate::error::COUNTLESS;
use crate::graphs::{Graph, Lists};
use crate::monitor::Progress;
use crate::numeric::dispatch::{Kernel, PRODUCTS, Products, level};
use crate::numeric::residue::HEADROOM;
use crate::numeric::ring::Ring;
use crate::{Error, Result, parallel};
use num_bigint::BigInt;
use std::collections::HashMap;
use std::sync::Arc;

/// Sums of one task.
const TASK: usize = 1 << 11;
/// Additions a vertex of the best order that is plain to see up to which a better one is not searched for; what a greedy order takes
/// may be hundreds of times its estimate, for its partitions cross.
const EASY: f64 = 1e3;

/// Scopes beyond which an order is not looked at further.
const WIDEST: usize = 1000;

/// The factors of an edge, or of some that are parallel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Edge {
    /// Of proper colorings: 0 for closing a cycle, else 1.
    Proper,
    /// So many parallel ones with the activity y each: y^k for closing cycles, 1 + ... + y^(k-1) for joining.
    Parallel(u64),
    /// Left out, joining.
    Weights([BigInt; 2]),
}

impl Edge {
    fn is_hard(&self) -> bool {
        match self {
            Self::Proper => true,
            Self::Parallel(_) => false,
            Self::Weights([out, joining]) => *out == -joining,
        }
    }

    /// The factors for being left out, for closing a cycle, for joining.
    fn elements<R: Ring>(&self, weight: &Weight<R>) -> [R::Element; 3] {
        let ring = weight.ring;
        match self {
            Self::Proper => [ring.one(), ring.zero(), ring.one()],
            &Self::Parallel(times) => {
                // By doubling: (y^k, 1 + ... + y^(k-1)).
                let (mut power, mut sum) = (ring.one(), ring.zero());
                for bit in (0..u64::BITS - times.leading_zeros()).rev() {
                    sum = ring.fold(ring.add(sum, ring.mul(sum, power)));
                    power = ring.mul(power, power);
                    if times >> bit & 1 == 1 {
                        sum = ring.fold(ring.add(ring.mul(sum, weight.activity), ring.one()));
                        power = ring.mul(power, weight.activity);
                    }
                }
                [ring.one(), power, sum]
            }
            Self::Weights([out, joining]) => {
                [out.clone(), out + joining, joining.clone()].map(|number| integer(ring, &number))
            }
        }
    }
}

/// The engine for one graph.
#[derive(Debug)]
pub struct Clusters {
    messages: MessageTree<ClusterVertex>,
    kinds: Vec<Edge>,
    /// Colors there are, where the blocks are those of equal color.
    colors: Option<usize>,
    /// Elements of the longest joined table, and of a message times powers.
    room: [usize; 2],
    work: u64,
}

/// A vertex that is eliminated.
#[derive(Debug)]
struct ClusterVertex {
    table: Arc<BagTable>,
    /// Where the messages of its children, in the order of their joins, come among them.
    children: Vec<usize>,
}

impl Clusters {
    /// Plans the sum for edges between different vertices, each pair once, along an order of the user's or the best that is found; by colors,
    /// where there are so many and that takes less.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the tables take more than `limit` bytes, [`Error::Interrupted`] when the planner says so.
    pub fn plan(
        vertices: usize,
        edges: &HashMap<(u32, u32), Edge>,
        colors: Option<usize>,
        given: Option<&[u32]>,
        limit: u64,
        planner: &Planner<'_>,
    ) -> Result<Self> {
        let neighbors = Graph::new(vertices, edges.keys().copied().collect())?.neighbors();
        let is_proper = edges.values().all(Edge::is_hard);
        let costs = |elimination: &EliminationOrder| {
            let by_colors = colors.map_or(f64::INFINITY, |colors| additions_by_color(elimination, colors, is_proper));
            [additions(&neighbors, elimination, is_proper), by_colors]
        };
        let elimination = match given {
            Some(order) => along(&neighbors, order),
            None => {
                let cost = |elimination: &_| costs(elimination).into_iter().fold(f64::INFINITY, f64::min);
                best(&neighbors, is_proper, planner, cost)?
            }
        };
        let refused = |needed: f64| {
            let needed = (needed as u128).min(COUNTLESS);
            Error::TooLarge { what: planner.refused(WHAT, needed), needed, limit: limit.into() }
        };
        let elimination = elimination.ok_or_else(|| refused(f64::INFINITY))?;
        let [by_clusters, by_colors] = costs(&elimination);
        let colors = colors.filter(|_| by_colors < by_clusters);
        let needed = 8.0 * states(elimination.width(), colors, is_proper);
        if elimination.width() >= partition::MOST {
            return Err(refused(needed));
        }
        let found = Self::new(&neighbors, edges, &elimination, colors, limit, planner);
        found.map_err(|error| match error {
            // What was counted until the limit was met says less than what there may be.
            Error::TooLarge { what, needed: counted, limit } if what == WHAT => {
                Error::TooLarge { what, needed: counted.max(needed as u128), limit }
            }
            other => other,
        })
    }

    fn new(
        neighbors: &Lists,
        edges: &HashMap<(u32, u32), Edge>,
        elimination: &EliminationOrder,
        colors: Option<usize>,
        limit: u64,
        planner: &Planner<'_>,
    ) -> Result<Self> {
        let EliminationOrder { order, scopes } = elimination;
        let places = places(order);
        let mut kinds: Vec<Edge> = Vec::new();
        let mut numbers: HashMap<&Edge, Kind> = HashMap::new();
        // For each place the later neighbors, with the kind of the edge.
        let mut later: Vec<Vec<(u32, Kind)>> = Vec::with_capacity(order.len());
        for &v in order {
            let mut found = Vec::new();
            for &u in &neighbors[v as usize] {
                if places[u as usize] > places[v as usize] {
                    let edge = &edges[&(u.min(v), u.max(v))];
                    let kind = *numbers.entry(edge).or_insert_with(|| {
                        kinds.push(edge.clone());
                        kinds.len() as Kind - 1
                    });
                    found.push((places[u as usize], kind));
                }
            }
            found.sort_unstable();
            later.push(found);
        }
        let is_plain = |coefficient: &Coefficient| is_plain(coefficient, &kinds);
        let mut tables = BagTables::new(colors, limit, planner, &is_plain);
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); order.len()];
        let mut lengths = Vec::with_capacity(order.len());
        let mut planned: Vec<Arc<BagTable>> = Vec::with_capacity(order.len());
        for (place, scope) in scopes.iter().enumerate() {
            let bag: Vec<u32> = std::iter::once(place as u32).chain(scope.iter().copied()).collect();
            let find = |place: u32| bag.binary_search(&place).expect("a child's scope lies in the bag") as u8;
            let hard = |&place: &u32| {
                let hard = later[place as usize].iter().filter(|(_, kind)| kinds[*kind as usize].is_hard());
                hard.filter_map(|(u, _)| bag.binary_search(u).ok()).fold(0u32, |mask, at| mask | 1 << at)
            };
            let mut rows: Vec<u32> = bag.iter().map(hard).collect();
            for i in 0..rows.len() {
                partition::members(rows[i] >> (i + 1) << (i + 1)).for_each(|k| rows[k] |= 1 << i);
            }
            let table = tables.table(BagShape {
                children: below[place]
                    .iter()
                    .map(|&child| (planned[child].set, scopes[child].iter().map(|&u| find(u)).collect()))
                    .collect(),
                edges: later[place].iter().map(|&(u, kind)| (find(u), kind)).collect(),
                hard: rows,
            })?;
            lengths.push(tables.set_len(table.set) as u64);
            planned.push(table);
            if let Some(&parent) = scope.first() {
                below[parent as usize].push(place);
            }
        }
        let messages = MessageTree::new(elimination, &lengths, planner, |place, children| {
            let at = |child: &usize| children.iter().position(|c| c == child);
            let children = below[place].iter().map(at).collect::<Option<_>>()?;
            Some(ClusterVertex { table: Arc::clone(&planned[place]), children })
        });
        planner.check()?;
        let messages = messages.ok_or(Error::Interrupted)?;
        let room = planned.iter().map(|table| table.room()).fold([0; 2], |a, b| [a[0].max(b[0]), a[1].max(b[1])]);
        let work = planned.iter().map(|table| step_work(table)).sum();
        Ok(Self { messages, kinds, colors, room, work })
    }

    /// Whether the blocks are those of equal color: then the sum is the whole one, and the activity that of equal ends.
    pub fn is_colored(&self) -> bool {
        self.colors.is_some()
    }

    fn roots(&self) -> usize {
        2 + 3 * self.kinds.len()
    }
}

/// Additions of a step, with what it takes however small.
fn step_work(table: &BagTable) -> u64 {
    table.work() + 8
}

/// Whether a product of factors is 1 wherever it is evaluated.
fn is_plain(coefficient: &Coefficient, kinds: &[Edge]) -> bool {
    let all = coefficient.joined.iter().flatten().chain(&coefficient.apart);
    !coefficient.ends
        && coefficient.own.is_empty()
        && all.copied().all(|kind| matches!(kinds[kind as usize], Edge::Proper | Edge::Parallel(1)))
        && coefficient.joined.iter().all(|block| block.len() == 1 || kinds[block[0] as usize] == Edge::Proper)
}

/// The partitions of so many vertices that are met, about.
fn states(vertices: usize, colors: Option<usize>, is_proper: bool) -> f64 {
    match (colors, is_proper) {
        (Some(colors), true) => colorings(vertices.saturating_sub(1), colors - 1),
        (Some(colors), false) => colorings(vertices, colors),
        (None, true) => proper_partitions(vertices),
        (None, false) => partitions(vertices),
    }
}

/// Partitions of so many vertices on a circle without crossings: Catalan's numbers.
fn partitions(vertices: usize) -> f64 {
    (0..vertices).fold(1.0, |catalan, n| catalan * (4 * n + 2) as f64 / (n + 2) as f64)
}

/// Those without neighbors on a path in one block: Motzkin's numbers.
fn proper_partitions(vertices: usize) -> f64 {
    let next = |(before, now): (f64, f64), n: usize| {
        let n = n as f64;
        (now, ((2.0 * n + 3.0) * now + 3.0 * n * before) / (n + 3.0))
    };
    (0..vertices.saturating_sub(1)).fold((0.0, 1.0), next).1
}

/// Partitions of so many vertices into so many blocks at the most: sums of Stirling's numbers.
fn colorings(vertices: usize, colors: usize) -> f64 {
    let mut blocks = vec![0.0; colors.min(vertices) + 1];
    blocks[0] = 1.0;
    for _ in 0..vertices {
        for k in (1..blocks.len()).rev() {
            blocks[k] = k as f64 * blocks[k] + blocks[k - 1];
        }
        blocks[0] = 0.0;
    }
    blocks.iter().sum()
}

/// The elimination of the vertices in an order; none where a scope is too wide.
fn along(neighbors: &Lists, order: &[u32]) -> Option<EliminationOrder> {
    let places = places(order);
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); order.len()];
    let mut scopes = Lists::with_capacity(order.len(), order.len());
    for (place, &v) in order.iter().enumerate() {
        let below = std::mem::take(&mut children[place]);
        let mut scope: Vec<u32> = neighbors[v as usize].iter().map(|&u| places[u as usize]).collect();
        scope.extend(below.iter().flat_map(|&child| &scopes[child]));
        scope.retain(|&u| u as usize > place);
        scope.sort_unstable();
        scope.dedup();
        if scope.len() > WIDEST {
            return None;
        }
        if let Some(&parent) = scope.first() {
            children[parent as usize].push(place);
        }
        scopes.push(scope);
    }
    Some(EliminationOrder { order: order.to_vec(), scopes })
}

/// The best of the order by number, two greedy ones and, where these are dear, those that are searched for: with small frontiers and, of
/// proper colorings, with such whose vertices are joined.
fn best(
    neighbors: &Lists,
    is_proper: bool,
    planner: &Planner<'_>,
    cost: impl Fn(&EliminationOrder) -> f64,
) -> Result<Option<EliminationOrder>> {
    let plain: Vec<u32> = (0..neighbors.len() as u32).collect();
    let greedy = [Rule::Degree, Rule::Fill].map(|rule| EliminationOrder::greedy(neighbors, rule, planner));
    planner.check()?;
    let cheaper = |all: Vec<EliminationOrder>| {
        all.into_iter().map(|found| (cost(&found), found)).min_by(|(a, _), (b, _)| a.total_cmp(b))
    };
    let found = cheaper(greedy.into_iter().chain([along(neighbors, &plain)]).flatten().collect());
    if found.as_ref().is_some_and(|(work, _)| *work <= EASY * neighbors.len() as f64) {
        return Ok(found.map(|(_, found)| found));
    }
    let mut all: Vec<_> = found.into_iter().map(|(_, found)| found).collect();
    let kinds = [StateKind::Subsets, StateKind::Independent];
    for states in &kinds[..1 + usize::from(is_proper)] {
        // The frontiers of an order are the scopes of its reverse.
        let reverse: Vec<u32> = searched_order(neighbors, *states, planner)?.into_iter().rev().collect();
        all.extend(along(neighbors, &reverse));
    }
    Ok(cheaper(all).map(|(_, found)| found))
}

/// Additions of an elimination by colors, about.
fn additions_by_color(elimination: &EliminationOrder, colors: usize, is_proper: bool) -> f64 {
    elimination.scopes.iter().map(|scope| states(scope.len() + 1, Some(colors), is_proper)).sum()
}

/// Additions of an elimination by clusters, about, were no partition to cross.
fn additions(neighbors: &Lists, elimination: &EliminationOrder, is_proper: bool) -> f64 {
    let is_hard = |a: u32, b: &u32| {
        let (a, b) = (elimination.order[a as usize], elimination.order[*b as usize]);
        is_proper && neighbors[a as usize].binary_search(&b).is_ok()
    };
    // Vertices that are joined are taken for a path: neighbors there are never in one block.
    let met = |scope: &[u32]| {
        let (mut left, mut found) = (scope.to_vec(), partitions(scope.len()));
        while let Some(first) = left.pop() {
            let mut path = vec![first];
            let mut at = 0;
            while at < path.len() {
                path.extend(left.extract_if(.., |u| is_hard(path[at], u)).collect::<Vec<_>>());
                at += 1;
            }
            found *= proper_partitions(path.len()) / partitions(path.len());
        }
        found
    };
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); elimination.scopes.len()];
    let mut work = 0.0;
    for (place, scope) in elimination.scopes.iter().enumerate() {
        let mut joined = 0.0;
        let mut among: Vec<u32> = Vec::new();
        for &child in &below[place] {
            if !among.is_empty() {
                joined += met(&among) * met(&elimination.scopes[child]);
            }
            among.extend(&elimination.scopes[child]);
            among.sort_unstable();
            among.dedup();
        }
        let bag: Vec<u32> = std::iter::once(place as u32).chain(scope.iter().copied()).collect();
        work += 3.0 * joined + met(&bag);
        if let Some(&parent) = scope.first() {
            below[parent as usize].push(place);
        }
    }
    work
}

/// What a vertex needs to know beside its children.
struct Surroundings<'s, R: Ring> {
    weight: &'s Weight<R>,
    /// Three factors for each kind of edge.
    factors: &'s [R::Element],
    /// Two joined tables.
    rooms: &'s mut [R::Element],
    /// A message times the powers of the factor of a cycle.
    powers: &'s mut [R::Element],
    /// What a cycle of edges of different children is worth.
    cycle: R::Element,
    colors: Option<usize>,
}

impl Coefficient {
    fn element<R: Ring>(&self, weight: &Weight<R>, factors: &[R::Element], colors: Option<usize>) -> R::Element {
        let ring = weight.ring;
        let factor = |kind: Kind, which: usize| factors[3 * kind as usize + which];
        let mut product = match (self.ends, colors) {
            (false, _) => ring.one(),
            (true, None) => ring.fold(weight.second),
            (true, Some(colors)) => integer(ring, &BigInt::from(colors - self.colored)),
        };
        self.own.iter().for_each(|&kind| product = ring.mul(product, factor(kind, 1)));
        self.apart.iter().for_each(|&kind| product = ring.mul(product, factor(kind, 0)));
        for block in &self.joined {
            // The first edge that is taken joins, all others then close a cycle or are left out.
            let (mut apart, mut joined) = (ring.one(), ring.zero());
            for &kind in block {
                let more = ring.add(ring.mul(joined, factor(kind, 1)), ring.mul(apart, factor(kind, 2)));
                joined = ring.fold(more);
                apart = ring.mul(apart, factor(kind, 0));
            }
            product = ring.mul(product, joined);
        }
        product
    }
}

impl<R: Ring> Summand<R::Element, Surroundings<'_, R>> for ClusterVertex {
    fn message(
        &self,
        context: &mut Surroundings<'_, R>,
        children: Messages<'_, R::Element>,
        out: &mut [R::Element],
        progress: &Progress,
    ) -> Result<()> {
        let ring = context.weight.ring;
        let messages: Vec<&[R::Element]> = children.iter().collect();
        let one = [ring.one()];
        let (a, b) = context.rooms.split_at_mut(context.rooms.len() / 2);
        let (mut last, mut next) = (a, b);
        for (i, join) in self.table.joins.iter().enumerate() {
            let left = if i == 0 { messages[self.children[0]] } else { &*last };
            let mut right = messages[self.children[i + 1]];
            if join.powers > 1 {
                let (first, further) = context.powers.split_at_mut(join.len);
                first.copy_from_slice(right);
                let mut factor = ring.one();
                for power in further[..(join.powers - 1) * join.len].chunks_exact_mut(join.len) {
                    factor = ring.mul(factor, context.cycle);
                    power.iter_mut().zip(&*first).for_each(|(to, &x)| *to = ring.mul(factor, x));
                }
                right = context.powers;
            }
            add_up(ring, &join.terms, left, right, &mut next[..join.terms.len()], progress)?;
            std::mem::swap(&mut last, &mut next);
        }
        let joined = match (self.table.joins.is_empty(), self.children.first()) {
            (false, _) => &*last,
            (true, Some(&child)) => messages[child],
            (true, None) => &one,
        };
        let element = |coefficient: &Coefficient| coefficient.element(context.weight, context.factors, context.colors);
        let coefficients: Vec<R::Element> = self.table.coefficients.iter().map(element).collect();
        add_up(ring, &self.table.sums, joined, &coefficients, out, progress)?;
        progress.advance(step_work(&self.table))
    }
}

/// Writes the sums of some terms.
fn add_up<R: Ring>(
    ring: R,
    terms: &Terms,
    left: &[R::Element],
    right: &[R::Element],
    out: &mut [R::Element],
    progress: &Progress,
) -> Result<()> {
    if out.len() <= TASK {
        ring.dispatch(level(), PartitionSums { terms, first: 0, left, right, out });
        return progress.check();
    }
    parallel::pieces(
        out,
        TASK,
        || (),
        |(), i, out| {
            ring.dispatch(level(), PartitionSums { terms, first: i * TASK, left, right, out });
            progress.check()
        },
    )
}

/// Some of the sums.
struct PartitionSums<'s, E> {
    terms: &'s Terms,
    first: usize,
    left: &'s [E],
    right: &'s [E],
    out: &'s mut [E],
}

/// Elements that are added before they are folded; one place is that of the products.
const ADDED: usize = HEADROOM as usize - 1;

impl<E> Kernel<E> for PartitionSums<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<A: Products<Element = E>>(self, a: A) {
        for (i, out) in (self.first..).zip(self.out) {
            let (plain, weighted) = self.terms.sum(i);
            let mut sum = a.zero();
            for some in plain.chunks(ADDED - 1) {
                sum = some.iter().fold(a.fold(sum), |sum, &x| a.add(sum, a.read(&self.left[x as usize])));
            }
            for some in weighted.chunks(PRODUCTS) {
                let mut products = a.no_products();
                for &[x, y] in some {
                    let (x, y) = (a.read(&self.left[x as usize]), a.read(&self.right[y as usize]));
                    products = a.add_product(products, a.split(x), a.split(y));
                }
                sum = a.add(a.fold(sum), a.total(products));
            }
            a.write(out, a.fold(sum));
        }
    }
}

/// The memory is the product of the roots done, the factors of a cycle and of the kinds of edges, three rooms, and the stack.
impl Transfer for Clusters {
    fn len(&self) -> usize {
        self.roots() + 2 * self.room[0] + self.room[1] + self.messages.stack()
    }

    fn steps(&self) -> u64 {
        self.messages.summands().len() as u64
    }

    fn work(&self, step: u64) -> u64 {
        step_work(&self.messages.summand(step as usize).table)
    }

    /// No operation is on a way twice.
    fn roundings(&self) -> u64 {
        self.work
    }

    fn start<R: Ring>(&self, weight: &Weight<R>, state: &mut [R::Element]) {
        let ring = weight.ring;
        let is_weighted = matches!(self.kinds.first(), Some(Edge::Weights(_)));
        state[0] = ring.one();
        // y - 1 = 1 - ((1 - y) + 1), where joining has the factor 1.
        let less = || ring.complement(ring.fold(ring.add(ring.complement(ring.fold(weight.activity)), ring.one())));
        state[1] = if is_weighted { ring.one() } else { less() };
        let factors = self.kinds.iter().flat_map(|kind| kind.elements(weight));
        state[2..].iter_mut().zip(factors).for_each(|(place, factor)| *place = factor);
    }

    fn advance<R: Ring>(&self, at: StepContext<'_, R>, state: &mut [R::Element]) -> Result<()> {
        let (roots, rest) = state.split_at_mut(self.roots());
        let (rooms, rest) = rest.split_at_mut(2 * self.room[0]);
        let (powers, stack) = rest.split_at_mut(self.room[1]);
        let (roots, factors) = roots.split_at_mut(2);
        let (total, cycle) = roots.split_at_mut(1);
        let mut context =
            Surroundings { weight: at.weight, factors, rooms, powers, cycle: cycle[0], colors: self.colors };
        if let Some(root) = self.messages.step(at.number as usize, &mut context, stack, at.progress)? {
            total[0] = at.weight.ring.mul(total[0], root);
        }
        Ok(())
    }

    fn finish<R: Ring>(&self, _: &Weight<R>, state: &[R::Element]) -> R::Element {
        state[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::graph_sums::examples::partial_k_tree;
    use crate::counting::transfer::{Point, evaluate_lanes};
    use crate::numeric::residue::primes;

    #[test]
    fn clusters_and_colors_have_the_same_sum() {
        let progress = Progress::default();
        let planner = Planner::new(&progress);
        let modulus = primes(1).unwrap()[0];
        let mul = |a: u64, b: u64| modulus.residue(modulus.mul(a, b));
        for (k, n, seed) in [(2, 60, 1), (4, 30, 2), (5, 16, 3)] {
            let graph = partial_k_tree(k, n, seed);
            let components = graph.components().1 as u64;
            let neighbors = graph.neighbors();
            let edges: HashMap<_, _> = graph
                .edges()
                .iter()
                .map(|&(u, v)| ((u.min(v), u.max(v)), Edge::Parallel(1 + u64::from(u % 3))))
                .collect();
            let order: Vec<u32> = (0..n).rev().collect();
            let elimination = along(&neighbors, &order).unwrap();
            for (q, v) in [(2, 1), (3, 5), (6, 2)] {
                let at = |colors: Option<usize>| {
                    let engine = Clusters::new(&neighbors, &edges, &elimination, colors, 1 << 30, &planner).unwrap();
                    let weight = mul(q, modulus.inverse(v));
                    let point = Point::new(modulus, v + 1).with_second(weight);
                    let steps = (0..engine.steps()).map(|step| engine.work(step)).sum();
                    let progress = Progress::new(steps);
                    let found = evaluate_lanes::<1>(&engine, &[point], &progress).unwrap()[0];
                    assert_eq!(progress.done(), steps);
                    found
                };
                let scale = mul(modulus.pow(q, components), modulus.pow(v, u64::from(n) - components));
                assert_eq!(mul(at(None), scale), at(Some(q as usize)), "{k} {n}: q = {q}, v = {v}");
            }
        }
    }

    #[test]
    fn partitions_on_a_path_are_numbered_by_catalan_and_motzkin() {
        assert_eq!([0, 1, 2, 3, 4, 12].map(partitions).map(f64::round), [1.0, 1.0, 2.0, 5.0, 14.0, 208_012.0]);
        assert_eq!([1, 2, 3, 4, 5, 12].map(proper_partitions).map(f64::round), [1.0, 1.0, 2.0, 4.0, 9.0, 5798.0]);
        assert_eq!([0, 1, 5, 12].map(|n| colorings(n, 2)), [1.0, 1.0, 16.0, 2048.0]);
        assert_eq!(colorings(5, 9), 52.0, "all partitions of five");
    }

    #[test]
    fn an_order_has_the_scopes_of_its_elimination() {
        let ring = Graph::new(6, (0..6).map(|v| (v, (v + 1) % 6)).collect()).unwrap().neighbors();
        let found = along(&ring, &[0, 2, 4, 1, 3, 5]).unwrap();
        let scopes = [vec![3, 5], vec![3, 4], vec![4, 5], vec![4, 5], vec![5], vec![]];
        assert_eq!(found.scopes, scopes.into_iter().collect());
    }
}
