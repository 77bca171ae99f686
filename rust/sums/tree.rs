//! Sums along a tree decomposition, whatever is summed.
//!
//! Vertices are eliminated in an order. The *message* of a vertex is a table over the states of its scope, of the sums over all that was
//! eliminated below: the messages of its children are joined, the vertex is introduced with its weight and its edges, and forgotten.
//! Vertices whose scope is empty are roots; the sum is the product of their messages. A path decomposition keeps one table from one
//! end to the other ([`super::order`]); here tables of different branches are joined, so that a graph of small treewidth is easy
//! however long its frontiers are.
//!
//! The messages lie on a stack: those of the children of a vertex next to one another, its own above them, then moved down.
//!
//! Source: S. Arnborg and A. Proskurowski (1989), Linear time algorithms for NP-hard problems restricted to partial k-trees.

use super::elimination::EliminationOrder;
use super::planner::Planner;
use crate::Result;
use crate::monitor::Progress;
use std::cmp::Reverse;
use std::ops::Range;

/// What is summed, as it is at one vertex; what all vertices need is in a context.
pub trait Summand<E, C> {
    /// The message of the vertex, from those of its children.
    ///
    /// # Errors
    /// [`crate::Error::TooLarge`] without memory, [`crate::Error::Interrupted`] when told to stop.
    fn message(&self, context: &mut C, children: Messages<'_, E>, out: &mut [E], progress: &Progress) -> Result<()>;
}

/// The messages of the children of a vertex.
#[derive(Debug)]
pub struct Messages<'s, E> {
    stack: &'s [E],
    ranges: &'s [Range<usize>],
}

impl<'s, E> Messages<'s, E> {
    /// One after another.
    pub fn iter(&self) -> impl Iterator<Item = &'s [E]> + use<'s, E> {
        let stack = self.stack;
        self.ranges.iter().map(move |range| &stack[range.clone()])
    }
}

/// A tree of messages.
#[derive(Debug)]
pub struct MessageTree<S> {
    /// Children before parents, a vertex right after the trees of all its children.
    nodes: Vec<TreeNode<S>>,
    stack: usize,
}

#[derive(Debug)]
struct TreeNode<S> {
    summand: S,
    /// Elements of the message.
    len: usize,
    /// Where the messages of the children begin on the stack, and the message goes.
    base: usize,
    /// The messages of the children, from there on.
    children: Vec<Range<usize>>,
    is_root: bool,
}

impl<S> MessageTree<S> {
    /// The tree of an elimination whose messages have these lengths, by place; `summand` is told a place and those of its children, in
    /// the order of their messages. None where it says none, or the planner stops.
    pub fn new(
        elimination: &EliminationOrder,
        lengths: &[u64],
        planner: &Planner<'_>,
        mut summand: impl FnMut(usize, &[usize]) -> Option<S>,
    ) -> Option<Self> {
        let n = lengths.len();
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); n];
        let mut roots = Vec::new();
        let mut peaks = vec![0u64; n];
        for (place, scope) in elimination.scopes.iter().enumerate() {
            planner.progress().check_at(place).ok()?;
            // A child whose stack is much higher than its message comes first.
            children[place].sort_by_key(|&c| Reverse(peaks[c] - lengths[c]));
            let (mut below, mut peak) = (0u64, 0);
            for &c in &children[place] {
                peak = peak.max(below + peaks[c]);
                below += lengths[c];
            }
            peaks[place] = peak.max(below + lengths[place]);
            match scope.first() {
                Some(&parent) => children[parent as usize].push(place),
                None => roots.push(place),
            }
        }
        let mut bases = vec![0; n];
        for place in (0..n).rev() {
            let mut next = bases[place];
            for &c in &children[place] {
                bases[c] = next;
                next += lengths[c] as usize;
            }
        }
        let mut nodes = Vec::with_capacity(n);
        let mut open: Vec<(usize, usize)> = Vec::new();
        for root in roots {
            open.push((root, 0));
            while let Some((place, next)) = open.last_mut() {
                let (place, number) = (*place, *next);
                *next += 1;
                if let Some(&c) = children[place].get(number) {
                    open.push((c, 0));
                    continue;
                }
                open.pop();
                if planner.is_stopping() {
                    return None;
                }
                let from = |c: &usize| bases[*c] - bases[place]..bases[*c] - bases[place] + lengths[*c] as usize;
                nodes.push(TreeNode {
                    summand: summand(place, &children[place])?,
                    len: lengths[place] as usize,
                    base: bases[place],
                    children: children[place].iter().map(from).collect(),
                    is_root: elimination.scopes[place].is_empty(),
                });
            }
        }
        Some(Self { nodes, stack: peaks.into_iter().max().unwrap_or(0) as usize })
    }

    /// Elements of the stack.
    pub fn stack(&self) -> usize {
        self.stack
    }

    /// The summands, in the order of their steps.
    pub fn summands(&self) -> impl ExactSizeIterator<Item = &S> {
        self.nodes.iter().map(|node| &node.summand)
    }

    /// What is summed at a step.
    pub fn summand(&self, step: usize) -> &S {
        &self.nodes[step].summand
    }

    /// Puts the message of a vertex in the place of those of its children; what it says where it is a root.
    ///
    /// # Errors
    /// As [`Summand::message`].
    pub fn step<E: Copy, C>(
        &self,
        step: usize,
        context: &mut C,
        stack: &mut [E],
        progress: &Progress,
    ) -> Result<Option<E>>
    where
        S: Summand<E, C>,
    {
        let node = &self.nodes[step];
        let stack = &mut stack[node.base..];
        let held = node.children.last().map_or(0, |last| last.end);
        let (below, above) = stack.split_at_mut(held);
        let out = &mut above[..node.len];
        let children = Messages { stack: below, ranges: &node.children };
        node.summand.message(context, children, out, progress)?;
        let root = node.is_root.then(|| out[0]);
        stack.copy_within(held..held + node.len, 0);
        Ok(root)
    }
}
