//! Orders of vertices with small frontiers.
//!
//! An order costs `sum over its steps of 2^w`, where `w` are the bits of a state. For a table of all subsets `w` is the
//! number of vertices in the frontier. For a table of the independent ones it is estimated by
//!
//!   `w = sum over the frontier of b(d_v)`,   `b(d)` halfway between  `log2(d + 2) / (d + 1)`  and  `log2(2^(d+1) - 1) / (2 d)`,
//!
//! with `d_v` the neighbors of `v` in the frontier: sums of either bound from below and above for graphs with all degrees
//! `d`, with equality for cliques and for complete bipartite graphs. Orders to begin with are by number, by breadth from far
//! ends, and greedy, both ways round. They are improved by dynamic programming over the subsets of a few consecutive vertices
//! (a frontier depends only on the set of vertices that came), then by greedy orders with noise for stretches of any length.
//!
//! Sources of the bounds: A. Sah, M. Sawhney, D. Stoner, Y. Zhao (2019), The number of independent sets in an irregular graph;
//! Y. Zhao (2010), The number of independent sets in a regular graph.

use super::planner::Planner;
use crate::stream::Stream;
use std::cell::Cell;

/// A neighbor, and whether the two cannot both be in.
pub type Neighbor = (u32, bool);

/// Whose bits an order is chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateKind {
    /// All subsets of the frontier.
    Subsets,
    /// The independent ones.
    Independent,
}

/// Units of `w`: small integers, so that sums do not depend on their order.
const UNIT: u32 = 1 << 16;
/// Most changes of a frontier looked at for each vertex, about 30 nanoseconds each.
const EFFORT: u64 = 1 << 14;
/// Additions that no improvement of an order brings within reach.
const HOPELESS: f64 = 1e80;
/// Vertices put into their best order at once, by the best orders of their 64 subsets. Larger: better orders, at twice the time and
/// memory for each vertex.
const WINDOW: usize = 6;
/// Orders worked on side by side in the beginning. Larger: fewer bad beginnings, less time for each.
const ORDERS: usize = 4;
/// Rounds of new stretches before the worse half of the orders is given up. Larger: surer which half it is, less time for the best.
const ROUNDS: usize = 8;
/// Noise of the greedy choice, in bits.
const NOISE: f64 = 0.5;

/// A set of vertices that came, with its frontier.
struct Front<'g> {
    neighbors: &'g [Vec<Neighbor>],
    /// Bits of a frontier vertex with so many neighbors in the frontier, in units.
    bits: &'g [u32],
    came: Vec<bool>,
    /// Neighbors still to come.
    open: Vec<u32>,
    /// Hard neighbors in the frontier.
    inner: Vec<u32>,
    weight: u64,
    /// Changes made.
    changes: u64,
}

impl<'g> Front<'g> {
    fn new(neighbors: &'g [Vec<Neighbor>], bits: &'g [u32]) -> Self {
        let n = neighbors.len();
        let open = neighbors.iter().map(|list| list.len() as u32).collect();
        Self { neighbors, bits, came: vec![false; n], open, inner: vec![0; n], weight: 0, changes: 0 }
    }

    fn inside(&self, v: u32) -> bool {
        self.came[v as usize] && self.open[v as usize] > 0
    }

    /// A vertex enters the frontier: it has come and has neighbors to come.
    fn enter(&mut self, v: u32) {
        let neighbors = self.neighbors;
        let mut inner = 0;
        for &(u, hard) in &neighbors[v as usize] {
            if hard && u != v && self.inside(u) {
                let degree = &mut self.inner[u as usize];
                self.weight -= u64::from(self.bits[*degree as usize]);
                *degree += 1;
                self.weight += u64::from(self.bits[*degree as usize]);
                inner += 1;
            }
        }
        self.inner[v as usize] = inner;
        self.weight += u64::from(self.bits[inner as usize]);
    }

    /// A vertex that was in the frontier has left it.
    fn leave(&mut self, v: u32) {
        let neighbors = self.neighbors;
        self.weight -= u64::from(self.bits[self.inner[v as usize] as usize]);
        for &(u, hard) in &neighbors[v as usize] {
            if hard && self.inside(u) {
                let degree = &mut self.inner[u as usize];
                self.weight -= u64::from(self.bits[*degree as usize]);
                *degree -= 1;
                self.weight += u64::from(self.bits[*degree as usize]);
            }
        }
    }

    /// A vertex is introduced.
    fn add(&mut self, v: u32) {
        self.changes += 1;
        let neighbors = self.neighbors;
        for &(u, _) in &neighbors[v as usize] {
            self.open[u as usize] -= 1;
            if self.open[u as usize] == 0 && self.came[u as usize] {
                self.leave(u);
            }
        }
        if self.open[v as usize] > 0 {
            self.enter(v);
        }
        self.came[v as usize] = true;
    }

    /// Undoes that a vertex came.
    fn take(&mut self, v: u32) {
        self.changes += 1;
        let neighbors = self.neighbors;
        self.came[v as usize] = false;
        if self.open[v as usize] > 0 {
            self.leave(v);
        }
        for &(u, _) in &neighbors[v as usize] {
            if self.open[u as usize] == 0 && self.came[u as usize] {
                self.enter(u);
            }
            self.open[u as usize] += 1;
        }
    }

    /// About `2^w`: exact where `w` is whole, linear between.
    fn cost(&self) -> f64 {
        f64::from_bits((self.weight.min(1000 << 16) + (1023 << 16)) << 36)
    }
}

impl StateKind {
    /// The bits of a frontier vertex with so many neighbors in the frontier, in units.
    fn bits(self, degree: usize) -> u32 {
        if self == StateKind::Subsets || degree == 0 {
            return UNIT;
        }
        let d = degree.min(1000) as f64;
        let cliques = (d + 2.0).log2() / (d + 1.0);
        let bipartite = ((d + 1.0).exp2() - 1.0).log2() / (2.0 * d);
        (0.5 * (cliques + bipartite) * f64::from(UNIT)) as u32
    }
}

/// A good order, the components one after another, and what it costs. Half of the planner's effort is there for it, each
/// component's share by its size; after a stop it is any order.
pub fn search(neighbors: &[Vec<Neighbor>], states: StateKind, planner: &Planner<'_>) -> (f64, Vec<u32>) {
    let most = neighbors.iter().map(Vec::len).max().unwrap_or(0);
    let bits: Vec<u32> = (0..=most).map(|degree| states.bits(degree)).collect();
    let mut search = OrderSearch {
        neighbors,
        front: Front::new(neighbors, &bits),
        places: vec![u32::MAX; neighbors.len()],
        planner,
        made: Cell::new(0),
        ends: [neighbors.iter().map(Vec::len).sum::<usize>() as u64, 8 * neighbors.len().max(1) as u64],
        effort: 0,
        began: 0,
        costs: vec![0.0; 1 << WINDOW],
        best: vec![0.0; 1 << WINDOW],
    };
    let (mut total, mut order) = (0.0, Vec::with_capacity(neighbors.len()));
    let effort = planner.granted(neighbors.len() as u64 * EFFORT, 2);
    for component in components(neighbors) {
        search.effort = (u128::from(effort) * component.len() as u128 / neighbors.len() as u128) as u64;
        let (cost, part) = search.run(component);
        total += cost;
        order.extend(part);
    }
    planner.spend(search.front.changes);
    (total, order)
}

/// The components one after another, the vertices of each by rank.
pub fn by_rank(neighbors: &[Vec<Neighbor>], rank: impl Fn(u32) -> u32) -> Vec<u32> {
    let mut components = components(neighbors);
    components.iter_mut().for_each(|component| component.sort_by_key(|&v| rank(v)));
    components.sort_by_key(|component| rank(component[0]));
    components.concat()
}

/// The vertices of each component, rising.
fn components(neighbors: &[Vec<Neighbor>]) -> Vec<Vec<u32>> {
    let mut places = vec![u32::MAX; neighbors.len()];
    let mut found = vec![false; neighbors.len()];
    let mut components = Vec::new();
    for v in 0..neighbors.len() as u32 {
        if !found[v as usize] {
            let mut component = breadth_first(neighbors, v, &mut places);
            component.iter().for_each(|&u| found[u as usize] = true);
            component.sort_unstable();
            components.push(component);
        }
    }
    components
}

/// The vertices reached from one, nearest first, among the neighbors of one vertex those of low degree. `places` is only lent.
fn breadth_first(neighbors: &[Vec<Neighbor>], start: u32, places: &mut [u32]) -> Vec<u32> {
    let mut order = vec![start];
    places[start as usize] = 0;
    let mut next = 0;
    while next < order.len() {
        let first = order.len();
        for &(u, _) in &neighbors[order[next] as usize] {
            if std::mem::replace(&mut places[u as usize], 0) != 0 {
                order.push(u);
            }
        }
        order[first..].sort_by_key(|&u| neighbors[u as usize].len());
        next += 1;
    }
    order.iter().for_each(|&v| places[v as usize] = u32::MAX);
    order
}

/// The search in one component. Between its functions no vertex has come.
struct OrderSearch<'g, 'p> {
    neighbors: &'g [Vec<Neighbor>],
    front: Front<'g>,
    planner: &'g Planner<'p>,
    /// Changes that the planner knows of.
    made: Cell<u64>,
    /// Edge ends, and eight times the vertices: a change looks at a vertex's neighbors, and takes twice as long for eight.
    ends: [u64; 2],
    /// Where a vertex is in an order under construction.
    places: Vec<u32>,
    /// Changes that may be made, and had been made before.
    effort: u64,
    began: u64,
    /// Room for the subsets of a window.
    costs: Vec<f64>,
    best: Vec<f64>,
}

impl OrderSearch<'_, '_> {
    fn run(&mut self, component: Vec<u32>) -> (f64, Vec<u32>) {
        self.began = self.front.changes;
        let mut pool: Vec<(f64, Vec<u32>)> = Vec::new();
        for order in self.beginnings(component) {
            for order in [order.iter().rev().copied().collect(), order] {
                pool.push((self.cost(&order), order));
            }
        }
        let sort = |pool: &mut Vec<(f64, Vec<u32>)>| pool.sort_by(|a, b| a.0.total_cmp(&b.0));
        sort(&mut pool);
        pool.truncate(ORDERS);
        for (cost, order) in &mut pool {
            while self.worthwhile(*cost) {
                let gain = self.arrange(order);
                *cost -= gain;
                if gain <= 1e-3 * *cost {
                    break;
                }
            }
        }
        sort(&mut pool);
        for round in 0.. {
            let mut gained = false;
            for (i, (cost, order)) in pool.iter_mut().enumerate() {
                let before = *cost;
                for sweep in 0..ROUNDS {
                    if !self.worthwhile(*cost) {
                        break;
                    }
                    let mut stream = Stream::new([0, 0], i as u64, round, sweep as u64);
                    *cost -= self.renew(order, &mut stream);
                }
                gained |= *cost < 0.99 * before;
            }
            sort(&mut pool);
            if (!gained && pool.len() == 1) || !self.worthwhile(pool[0].0) {
                break;
            }
            pool.truncate(pool.len().div_ceil(2));
        }
        pool.swap_remove(0)
    }

    /// Whether more changes may be looked at: they take less time than the additions that they could save.
    fn worthwhile(&self, cost: f64) -> bool {
        let changes = self.front.changes - self.began;
        let additions = self.planner.additions(self.time(changes));
        changes < self.effort && additions < cost && cost < HOPELESS && !self.is_stopping() && !self.planner.is_late()
    }

    /// Whether to come to an end; the planner hears of the changes so far.
    fn is_stopping(&self) -> bool {
        let changes = self.front.changes;
        self.planner.make(self.time(changes - self.made.replace(changes)));
        self.planner.is_stopping()
    }

    /// So many changes, in those of a graph of few edges.
    fn time(&self, changes: u64) -> u64 {
        let [ends, vertices] = self.ends;
        changes + (u128::from(changes) * u128::from(ends) / u128::from(vertices)) as u64
    }

    fn beginnings(&mut self, component: Vec<u32>) -> Vec<Vec<u32>> {
        let last = component.len() - 1;
        let mut from = |start: u32| breadth_first(self.neighbors, start, &mut self.places);
        let near = from(component[0]);
        let one = from(near[last]);
        let other = from(one[last]);
        let starts = [one[0], other[0]];
        let greedy = starts.map(|start| self.greedy(component.len(), start));
        let mut orders = vec![component, one, other];
        orders.extend(greedy.into_iter().flatten());
        orders
    }

    /// What an order costs.
    fn cost(&mut self, order: &[u32]) -> f64 {
        let cost = self.introduction(order);
        self.undo(order);
        cost
    }

    fn introduction(&mut self, vertices: &[u32]) -> f64 {
        let cost = vertices.iter().map(|&v| {
            self.front.add(v);
            self.front.cost()
        });
        cost.sum()
    }

    fn undo(&mut self, vertices: &[u32]) {
        vertices.iter().rev().for_each(|&v| self.front.take(v));
    }

    /// The weight of the frontier if a vertex came.
    fn weight_with(&mut self, v: u32) -> u64 {
        self.front.add(v);
        let weight = self.front.weight;
        self.front.take(v);
        weight
    }

    /// The order that takes, again and again, the vertex after which the frontier is smallest, of equals the one next to the
    /// oldest; none if that takes too long.
    fn greedy(&mut self, vertices: usize, start: u32) -> Option<Vec<u32>> {
        let limit = self.front.changes + self.effort / 8;
        let mut candidates = vec![start];
        let mut order = Vec::with_capacity(vertices);
        while order.len() < vertices && self.front.changes < limit && !self.is_stopping() {
            let mut best = (u64::MAX, u32::MAX, 0);
            for (i, &v) in candidates.iter().enumerate() {
                let weight = self.weight_with(v);
                if weight <= best.0 {
                    let age = self.neighbors[v as usize].iter().map(|&(u, _)| self.places[u as usize]).min();
                    best = best.min((weight, age.unwrap_or(0), i));
                }
            }
            let v = candidates.swap_remove(best.2);
            self.places[v as usize] = order.len() as u32;
            order.push(v);
            let neighbors = self.neighbors;
            for &(u, _) in &neighbors[v as usize] {
                let fresh = self.front.open[u as usize] as usize == neighbors[u as usize].len();
                if fresh && !self.front.came[u as usize] && u != start {
                    candidates.push(u);
                }
            }
            self.front.add(v);
        }
        self.undo(&order);
        order.iter().for_each(|&v| self.places[v as usize] = u32::MAX);
        (order.len() == vertices).then_some(order)
    }

    /// Puts windows into their best order, one after another; what is gained.
    fn arrange(&mut self, order: &mut [u32]) -> f64 {
        let (mut gain, mut start) = (0.0, 0);
        while start < order.len() {
            if self.is_stopping() {
                self.introduction(&order[start..]);
                break;
            }
            let end = (start + WINDOW).min(order.len());
            gain += self.arrange_window(&mut order[start..end]);
            let next = end.min(start + WINDOW / 2);
            self.introduction(&order[start..next]);
            start = next;
        }
        self.undo(order);
        gain
    }

    /// Puts the vertices that come next into their best order; what is gained.
    fn arrange_window(&mut self, vertices: &mut [u32]) -> f64 {
        let all = (1usize << vertices.len()) - 1;
        let (costs, best) = (&mut self.costs, &mut self.best);
        // All subsets, each a single vertex away from the last (Gray's code).
        let mut set = 0usize;
        for i in 1..=all {
            let bit = i.trailing_zeros() as usize;
            set ^= 1 << bit;
            if set >> bit & 1 == 1 {
                self.front.add(vertices[bit]);
            } else {
                self.front.take(vertices[bit]);
            }
            costs[set] = self.front.cost();
        }
        self.front.take(vertices[vertices.len() - 1]); // the last subset of the code
        let before: f64 = (1..=vertices.len()).map(|i| costs[(1 << i) - 1]).sum();
        best[0] = 0.0;
        for set in 1..=all {
            let members = (0..vertices.len()).filter(|i| set >> i & 1 == 1);
            best[set] = costs[set] + members.map(|i| best[set & !(1 << i)]).fold(f64::INFINITY, f64::min);
        }
        if best[all] >= before * (1.0 - 1e-9) {
            return 0.0;
        }
        let old: [u32; WINDOW] = std::array::from_fn(|i| vertices.get(i).copied().unwrap_or(0));
        let mut set = all;
        for place in (0..vertices.len()).rev() {
            let members = (0..vertices.len()).filter(|i| set >> i & 1 == 1);
            let rest = |i: &usize| best[set & !(1 << i)];
            let last = members.min_by(|a, b| rest(a).total_cmp(&rest(b))).unwrap_or(0);
            vertices[place] = old[last];
            set &= !(1 << last);
        }
        before - best[all]
    }

    /// Tries a new order for stretches of several lengths, one after another; what is gained.
    fn renew(&mut self, order: &mut [u32], stream: &mut Stream) -> f64 {
        let (mut gain, mut start) = (0.0, 0);
        while start < order.len() {
            if self.is_stopping() {
                self.introduction(&order[start..]);
                break;
            }
            let len = (8 << (stream.word() % 5)) + (stream.word() % 8) as usize;
            let end = (start + len).min(order.len());
            let stretch = &mut order[start..end];
            let before = self.introduction(stretch);
            self.undo(stretch);
            let (mut new, mut after) = self.noisy(stretch, stream);
            if after < 8.0 * before {
                after -= self.arrange(&mut new);
            }
            if after < before {
                gain += before - after;
                stretch.copy_from_slice(&new);
            }
            let next = order.len().min(start + 1 + stream.word() as usize % len);
            self.introduction(&order[start..next]);
            start = next;
        }
        self.undo(order);
        gain
    }

    /// A greedy order of some vertices with noise, and its cost.
    fn noisy(&mut self, vertices: &[u32], stream: &mut Stream) -> (Vec<u32>, f64) {
        let mut rest = vertices.to_vec();
        let mut order = Vec::with_capacity(rest.len());
        let mut cost = 0.0;
        while !rest.is_empty() {
            let mut best = (f64::INFINITY, 0);
            for (i, &v) in rest.iter().enumerate() {
                if i > 0 && self.neighbors[v as usize].iter().all(|&(u, _)| !self.front.came[u as usize]) {
                    continue; // starts nothing new but with the first
                }
                let weight = self.weight_with(v) as f64 / f64::from(UNIT) + NOISE * stream.uniform();
                if weight < best.0 {
                    best = (weight, i);
                }
            }
            let v = rest.remove(best.1);
            cost += self.introduction(&[v]);
            order.push(v);
        }
        self.undo(&order);
        (order, cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Progress;
    use proptest::prelude::*;

    fn lists(n: usize, edges: &[(usize, usize)]) -> Vec<Vec<Neighbor>> {
        let mut lists = vec![Vec::new(); n];
        for &(u, v) in edges.iter().filter(|(u, v)| u % n != v % n) {
            let hard = (u + v) % 3 > 0;
            if !lists[u % n].iter().any(|&(w, _)| w as usize == v % n) {
                lists[u % n].push(((v % n) as u32, hard));
                lists[v % n].push(((u % n) as u32, hard));
            }
        }
        lists
    }

    fn grid(rows: usize, columns: usize) -> Vec<Vec<Neighbor>> {
        // Numbered so that the order by number is a bad one.
        let number = |r: usize, c: usize| (r * columns + c) * 37 % (rows * columns);
        let right = (0..rows).flat_map(|r| (1..columns).map(move |c| (number(r, c - 1), number(r, c))));
        let down = (1..rows).flat_map(|r| (0..columns).map(move |c| (number(r - 1, c), number(r, c))));
        let mut lists = vec![Vec::new(); rows * columns];
        for (u, v) in right.chain(down) {
            lists[u].push((v as u32, true));
            lists[v].push((u as u32, true));
        }
        lists
    }

    #[test]
    fn a_hidden_grid_is_found_again() {
        let lists = grid(8, 20);
        let (cost, order) = search(&lists, StateKind::Subsets, &Planner::new(&Progress::default()));
        let bits = vec![UNIT; 5];
        let mut front = Front::new(&lists, &bits);
        let width = order.iter().map(|&v| {
            front.add(v);
            front.weight / u64::from(UNIT)
        });
        assert!(width.max() <= Some(8));
        assert!(cost < 160.0 * 256.0);
    }

    proptest! {
        #[test]
        fn orders_are_permutations_that_keep_components_together(edges in prop::collection::vec((0usize..40, 0usize..40), 0..70)) {
            let lists = lists(40, &edges);
            for states in [StateKind::Subsets, StateKind::Independent] {
                let (_, order) = search(&lists, states, &Planner::new(&Progress::default()));
                let mut sorted = order.clone();
                sorted.sort_unstable();
                prop_assert_eq!(&sorted, &(0..40).collect::<Vec<u32>>());
                prop_assert_eq!(by_rank(&lists, |v| order.iter().position(|&u| u == v).unwrap() as u32), order);
            }
        }

        #[test]
        fn what_came_can_be_undone(edges in prop::collection::vec((0usize..12, 0usize..12), 0..40), picks in prop::collection::vec(0u32..12, 0..60)) {
            // A frontier reached by any comings and goings is that of the set itself.
            let lists = lists(12, &edges);
            let bits: Vec<u32> = (0..12).map(|degree| StateKind::Independent.bits(degree)).collect();
            let mut front = Front::new(&lists, &bits);
            for v in picks {
                if front.came[v as usize] { front.take(v) } else { front.add(v) }
                let mut fresh = Front::new(&lists, &bits);
                (0..12).filter(|&u| front.came[u as usize]).for_each(|u| fresh.add(u));
                prop_assert_eq!(front.weight, fresh.weight);
                let within = |u: u32| front.came[u as usize] && lists[u as usize].iter().any(|&(w, _)| !front.came[w as usize]);
                let inner = |u: u32| lists[u as usize].iter().filter(|&&(w, hard)| hard && within(w)).count();
                let weight: u64 = (0..12).filter(|&u| within(u)).map(|u| u64::from(bits[inner(u)])).sum();
                prop_assert_eq!(front.weight, weight);
            }
        }
    }
}
