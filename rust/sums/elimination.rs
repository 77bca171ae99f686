//! Elimination orders of a graph, and the tree of bags that comes of one.
//!
//! Eliminating a vertex joins its neighbors to one another and takes it away. Its *scope* is the set of its neighbors at that
//! moment: all of them are eliminated later, and the first of them is its parent. The sets `{v} + scope(v)` are the bags of a
//! tree decomposition, the largest scope its width. Two greedy rules, both with lazy priorities: least degree, and least
//! number of pairs of neighbors that are not joined yet. The neighbors of a vertex are a rising list, those of a hub a set: an
//! elimination beside it costs what it changes, not what the hub has.
//!
//! Source: H. L. Bodlaender and A. M. C. A. Koster (2010), Treewidth computations I. Upper bounds.

use super::planner::Planner;
use crate::graphs::Lists;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

/// The widest scope; the states of a scope are masks of 64 bits.
pub const WIDEST: usize = 60;
/// Steps of work that one order may cost, for each vertex and in all.
const EFFORT: u64 = 1 << 14;
const MOST_EFFORT: u64 = 1 << 27;
/// Steps that every vertex may cost, however many there are: an order of small scopes takes a tenth of that.
const LEAST_EFFORT: u64 = 1 << 10;
/// A vertex with more neighbors is a hub until it has no more than [`WIDEST`].
const HUB: usize = 2 * WIDEST;
/// Steps that take as long as a change of a frontier.
const STEPS: u64 = 8;

/// Which vertex is eliminated next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// One with the fewest neighbors.
    Degree,
    /// One whose elimination joins the fewest pairs.
    Fill,
}

/// An order with the scope of each vertex.
#[derive(Debug)]
pub struct EliminationOrder {
    /// The vertices as they are eliminated.
    pub order: Vec<u32>,
    /// For each place in the order, the scope as places in the order, rising: the first is the parent.
    pub scopes: Lists,
}

/// The place of each vertex in an order of all.
pub fn places(order: &[u32]) -> Vec<u32> {
    let mut places = vec![0; order.len()];
    (0..).zip(order).for_each(|(place, &v)| places[v as usize] = place);
    places
}

impl EliminationOrder {
    /// An order by a rule; `None` if a scope would be wider than [`WIDEST`], finding out costs too much, or the planner stops.
    pub fn greedy(neighbors: &Lists, rule: Rule, planner: &Planner<'_>) -> Option<Self> {
        Self::within(neighbors, rule, WIDEST, planner)
    }

    /// The same with no scope wider than `widest`, which is at most [`WIDEST`].
    pub fn within(neighbors: &Lists, rule: Rule, widest: usize, planner: &Planner<'_>) -> Option<Self> {
        let n = neighbors.len();
        let around = |(v, list)| {
            planner.progress().check_at(v).ok()?;
            Some(Around::of(Cow::Borrowed(list)))
        };
        let mut adjacent: Vec<Around<'_>> = neighbors.iter().enumerate().map(around).collect::<Option<_>>()?;
        let mut effort = (EFFORT * n as u64).min(MOST_EFFORT.max(LEAST_EFFORT * n as u64));
        let mut spend = |steps: usize| {
            let Some(left) = effort.checked_sub(steps as u64 + 1) else {
                planner.run_out();
                return None;
            };
            effort = left;
            planner.make(steps as u64 / STEPS);
            (!planner.is_stopping()).then_some(())
        };
        let mut current = vec![0u64; n];
        let mut queue = BinaryHeap::with_capacity(n);
        for v in 0..n as u32 {
            spend(cost(&adjacent, v, rule))?;
            current[v as usize] = score(&adjacent, v, rule);
            queue.push(Reverse((current[v as usize], v)));
        }
        let (mut order, mut scopes) = (Vec::with_capacity(n), Lists::with_capacity(n, n));
        let mut place = vec![u32::MAX; n];
        while let Some(Reverse((priority, v))) = queue.pop() {
            if place[v as usize] != u32::MAX || priority != current[v as usize] {
                continue; // gone, or in the queue again with another priority
            }
            if rule == Rule::Fill {
                // Edges between two neighbors may have come since; priorities only fall by that.
                spend(cost(&adjacent, v, rule))?;
                let now = score(&adjacent, v, rule);
                if now != priority {
                    current[v as usize] = now;
                    queue.push(Reverse((now, v)));
                    continue;
                }
            }
            let Around::Few(scope) = std::mem::take(&mut adjacent[v as usize]) else { return None };
            if scope.len() > widest {
                return None;
            }
            place[v as usize] = order.len() as u32;
            order.push(v);
            for &u in scope.iter() {
                spend(scope.len() + adjacent[u as usize].steps())?;
                adjacent[u as usize].join(&scope, u, v);
            }
            for &u in scope.iter() {
                spend(cost(&adjacent, u, rule))?;
                let now = score(&adjacent, u, rule);
                if std::mem::replace(&mut current[u as usize], now) != now {
                    queue.push(Reverse((now, u)));
                }
            }
            scopes.push(scope.iter().copied());
        }
        scopes.change(|scope| {
            scope.iter_mut().for_each(|u| *u = place[*u as usize]);
            scope.sort_unstable();
        });
        Some(Self { order, scopes })
    }

    /// What is planned by the better of two greedy orders, which says its work; the second is looked for where the first takes more than
    /// `easy` for each vertex.
    pub fn better<T>(
        neighbors: &Lists,
        easy: f64,
        planner: &Planner<'_>,
        plan: impl Fn(Self) -> Option<(f64, T)>,
    ) -> Option<T> {
        let by = |rule| plan(Self::greedy(neighbors, rule, planner)?);
        let mut best = by(Rule::Degree);
        if best.as_ref().is_none_or(|(work, _)| *work > easy * neighbors.len() as f64) {
            best = best.into_iter().chain(by(Rule::Fill)).min_by(|(a, _), (b, _)| a.total_cmp(b));
        }
        best.map(|(_, planned)| planned)
    }

    /// The largest scope.
    pub fn width(&self) -> usize {
        self.scopes.iter().map(<[u32]>::len).max().unwrap_or(0)
    }
}

/// The neighbors of a vertex.
enum Around<'n> {
    /// A rising list, the graph's own as long as it has not changed.
    Few(Cow<'n, [u32]>),
    /// Those of a hub.
    Many(HashSet<u32>),
}

impl Default for Around<'_> {
    fn default() -> Self {
        Self::Few(Cow::default())
    }
}

impl<'n> Around<'n> {
    fn of(list: Cow<'n, [u32]>) -> Self {
        if list.len() > HUB { Self::Many(list.iter().copied().collect()) } else { Self::Few(list) }
    }

    fn len(&self) -> usize {
        match self {
            Self::Few(list) => list.len(),
            Self::Many(set) => set.len(),
        }
    }

    fn contains(&self, v: u32) -> bool {
        match self {
            Self::Few(list) => list.binary_search(&v).is_ok(),
            Self::Many(set) => set.contains(&v),
        }
    }

    /// Steps of a [`Self::join`], beside those of the scope.
    fn steps(&self) -> usize {
        match self {
            Self::Few(list) => list.len(),
            Self::Many(_) => 0,
        }
    }

    /// Those of `u` after the elimination of `v`.
    fn join(&mut self, scope: &[u32], u: u32, v: u32) {
        match self {
            Self::Few(list) => *self = Self::of(Cow::Owned(joined(list, scope, u, v))),
            Self::Many(set) => {
                set.remove(&v);
                set.extend(scope.iter().filter(|&&w| w != u));
                if set.len() <= WIDEST {
                    let mut list: Vec<u32> = set.drain().collect();
                    list.sort_unstable();
                    *self = Self::Few(Cow::Owned(list));
                }
            }
        }
    }
}

/// The neighbors of `u` after the elimination of `v`: two rising lists merged, without `u` and `v`.
fn joined(list: &[u32], scope: &[u32], u: u32, v: u32) -> Vec<u32> {
    let mut merged = Vec::with_capacity(list.len() + scope.len());
    let (mut a, mut b) = (list.iter().copied().peekable(), scope.iter().copied().peekable());
    loop {
        let next = match (a.peek().copied(), b.peek().copied()) {
            (Some(x), Some(y)) => {
                let least = x.min(y);
                if x == least {
                    a.next();
                }
                if y == least {
                    b.next();
                }
                least
            }
            (Some(x), None) => {
                a.next();
                x
            }
            (None, Some(y)) => {
                b.next();
                y
            }
            (None, None) => return merged,
        };
        if next != u && next != v {
            merged.push(next);
        }
    }
}

/// What a priority costs to find.
fn cost(adjacent: &[Around<'_>], v: u32, rule: Rule) -> usize {
    let degree = adjacent[v as usize].len();
    if rule == Rule::Fill && degree <= WIDEST { 4 * degree * degree } else { 0 }
}

/// The priority of a vertex, the least is next.
fn score(adjacent: &[Around<'_>], v: u32, rule: Rule) -> u64 {
    let degree = adjacent[v as usize].len() as u64;
    let around = match &adjacent[v as usize] {
        Around::Few(list) if rule == Rule::Fill && list.len() <= WIDEST => list,
        _ => return degree << 32,
    };
    let missing =
        |(i, &a): (usize, &u32)| around[i + 1..].iter().filter(|b| !adjacent[a as usize].contains(**b)).count() as u64;
    (around.iter().enumerate().map(missing).sum::<u64>() << 8) + degree
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Progress;

    fn neighbors(n: usize, edges: &[(u32, u32)]) -> Lists {
        crate::graphs::Graph::new(n, edges.to_vec()).unwrap().neighbors()
    }

    #[test]
    fn cycles_and_grids_have_their_treewidth() {
        let progress = Progress::default();
        let planner = Planner::new(&progress);
        for rule in [Rule::Degree, Rule::Fill] {
            let cycle: Vec<_> = (0..9).map(|v| (v, (v + 1) % 9)).collect();
            assert_eq!(EliminationOrder::greedy(&neighbors(9, &cycle), rule, &planner).unwrap().width(), 2);
            let grid: Vec<_> = (0..25)
                .flat_map(|v: u32| [(v % 5 < 4, v + 1), (v < 20, v + 5)].map(|(is, u)| (is, v, u)))
                .filter_map(|(is, v, u)| is.then_some((v, u)))
                .collect();
            assert_eq!(EliminationOrder::greedy(&neighbors(25, &grid), rule, &planner).unwrap().width(), 5);
        }
    }

    #[test]
    fn an_order_that_ends_with_its_effort_says_so_and_one_that_is_too_wide_does_not() {
        let progress = Progress::default();
        let refused = |n: usize, edges: Vec<(u32, u32)>, rule| {
            let planner = Planner::new(&progress);
            assert!(EliminationOrder::greedy(&neighbors(n, &edges), rule, &planner).is_none());
            [planner.refused("the table", 8 << 58), planner.refused("the table", crate::error::COUNTLESS)]
        };
        assert_eq!(
            refused(2 * WIDEST + 4, with_hubs(2 * WIDEST as u32 + 4, WIDEST as u32 + 1), Rule::Degree),
            ["the table"; 2]
        );
        let band = (0..400u32).flat_map(|v| (v + 1..(v + 51).min(400)).map(move |u| (v, u)));
        let [finite, said] = refused(400, band.collect(), Rule::Fill);
        assert_eq!(finite, "the table");
        assert!(said.contains("ended with its effort") && said.contains("`order`"), "{said}");
    }

    /// Hubs joined to all vertices that are none.
    fn with_hubs(n: u32, hubs: u32) -> Vec<(u32, u32)> {
        (hubs..n).flat_map(|v| (0..hubs).map(move |hub| (hub, v))).collect()
    }

    #[test]
    fn hubs_cost_what_changes_around_them() {
        let progress = Progress::default();
        for (n, hubs, rule) in
            [(13_000, 2, Rule::Degree), (13_000, 2, Rule::Fill), (40_000, 5, Rule::Fill), (2_000, 50, Rule::Degree)]
        {
            let planner = Planner::new(&progress);
            let found = EliminationOrder::greedy(&neighbors(n as usize, &with_hubs(n, hubs)), rule, &planner);
            // With few vertices left, a hub whose neighbors are few may come before one whose priority is an old one.
            let width = found.map_or(usize::MAX, |found| found.width());
            let most = if rule == Rule::Fill { 2 * hubs } else { hubs };
            assert!((hubs..=most).contains(&(width as u32)), "{n} {hubs} {rule:?}: {width}");
        }
    }

    #[test]
    fn an_elimination_with_hubs_is_that_of_the_graph_filled_step_by_step() {
        let graph = crate::examples::partial_k_tree(4, 3000, 7);
        let around = graph.neighbors();
        assert!(around.iter().any(|list| list.len() > 2 * HUB));
        let progress = Progress::default();
        for rule in [Rule::Degree, Rule::Fill] {
            let found = EliminationOrder::greedy(&around, rule, &Planner::new(&progress)).unwrap();
            let mut filled: Vec<std::collections::BTreeSet<u32>> =
                around.iter().map(|list| list.iter().copied().collect()).collect();
            for (&v, scope) in found.order.iter().zip(found.scopes.iter()) {
                let rest = std::mem::take(&mut filled[v as usize]);
                let mut named: Vec<u32> = scope.iter().map(|&place| found.order[place as usize]).collect();
                named.sort_unstable();
                assert_eq!(named, rest.iter().copied().collect::<Vec<_>>());
                for &u in &rest {
                    filled[u as usize].extend(rest.iter().filter(|&&w| w != u));
                    filled[u as usize].remove(&v);
                }
            }
        }
    }

    #[test]
    fn scopes_are_later_places_that_contain_each_others_rest() {
        let edges: Vec<_> = (0..40u32).flat_map(|v| [(v, (v * 7 + 3) % 40), (v, (v * 11 + 5) % 40)]).collect();
        let found =
            EliminationOrder::greedy(&neighbors(40, &edges), Rule::Fill, &Planner::new(&Progress::default())).unwrap();
        for (place, scope) in found.scopes.iter().enumerate() {
            assert!(scope.iter().all(|&u| u as usize > place));
            if let Some((&parent, rest)) = scope.split_first() {
                let above = &found.scopes[parent as usize];
                assert!(rest.iter().all(|u| above.contains(u)), "a bag's tree is connected");
            }
        }
    }

    #[test]
    fn what_is_too_wide_is_given_up() {
        let clique: Vec<_> = (0..70u32).flat_map(|u| (0..u).map(move |v| (u, v))).collect();
        assert!(
            EliminationOrder::greedy(&neighbors(70, &clique), Rule::Degree, &Planner::new(&Progress::default()))
                .is_none()
        );
    }
}
