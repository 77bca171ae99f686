//! Sums over the structures of any graph: one engine along trees of bags, one along orders of the vertices, and the choice between both.
//!
//! What is summed says what happens to a table where a vertex is introduced, joined to others and forgotten ([`tree::Summand`],
//! [`order::OrderStep`]); the engines know when and where. Independent sets along an order have an engine of their own, for their states
//! are few ([`independent_sets::frontier`]). Both work modulo primes; [`integers`] sums large sparse graphs in one pass.

pub mod elimination;
pub mod independent_sets;
pub mod integers;
pub mod order;
pub mod planner;
pub mod search;
pub mod tree;

pub(crate) use quincunx_graphs as graphs;
pub(crate) use quincunx_shared::{Error, Result, error, memory, monitor, numeric, parallel, stream, transfer};

use self::planner::Planner;

/// Seconds for each vertex that a tree, and that a good order takes to plan, about.
const TREE_PLANNING: f64 = 1e-5;
const ORDER_PLANNING: f64 = 1e-4;

/// A plan, after the seconds that it will take.
pub type Timed<P> = (f64, P);

/// What takes less time: an order that is `plain` to see, where there is one, a tree, or a good order. A tree is not looked for where the
/// plain order is done sooner; a good order, which takes long to find, not where the tree is, and for no longer than half as long as
/// the tree will take.
///
/// # Errors
/// [`Error::Interrupted`] when the planner says so; what was wrong with the order, where there is no tree.
pub fn quickest<P>(
    vertices: usize,
    planner: &Planner<'_>,
    plain: Option<Timed<impl FnOnce() -> Result<P>>>,
    tree: impl FnOnce() -> Result<Option<Timed<P>>>,
    order: impl FnOnce() -> Result<Timed<P>>,
) -> Result<P> {
    let vertices = vertices as f64;
    let mut plain = plain;
    let mut plain_within = |most: f64| plain.take_if(|(seconds, _)| *seconds <= most).map(|(_, plan)| plan());
    if let Some(plan) = plain_within(TREE_PLANNING * vertices) {
        return plan;
    }
    let found = tree()?;
    planner.check()?;
    let Some((seconds, tree)) = found else { return order().map(|(_, plan)| plan) };
    if seconds <= ORDER_PLANNING * vertices {
        return Ok(plain_within(seconds).and_then(Result::ok).unwrap_or(tree));
    }
    planner.allow_seconds(seconds);
    match order() {
        Err(Error::Interrupted) => Err(Error::Interrupted),
        Ok((needed, plan)) if needed <= seconds => Ok(plan),
        _ => Ok(tree),
    }
}

/// Graphs for the tests of this crate and of those above it.
#[doc(hidden)]
pub mod examples {
    use crate::graphs::Graph;
    use crate::stream::Stream;

    /// Words below a bound, from a seed.
    pub fn random(seed: u64) -> impl FnMut(u32) -> u32 {
        let mut words = Stream::new([seed, 0], 0, 0, 0);
        move |n| ((u128::from(words.word()) * u128::from(n)) >> 64) as u32
    }

    /// Each new vertex is joined to k of a clique, a fifth of the edges is left out.
    pub fn partial_k_tree(k: u32, n: u32, seed: u64) -> Graph {
        let mut below = random(seed);
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
}
