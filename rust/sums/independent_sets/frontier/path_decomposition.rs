//! When vertices are introduced and forgotten: what both state tables are planned from.
//!
//! Source: H. Bodlaender (1998), A partial k-arboretum of graphs with bounded treewidth.

use super::reduce::{HalfEdge, ReducedGraph};

/// An order of the kernel's vertices with what it implies.
#[derive(Debug)]
pub struct PathDecomposition<'a> {
    /// The kernel.
    pub reduced: &'a ReducedGraph,
    /// Its vertices in the order they are introduced.
    pub order: Vec<u32>,
    /// The step a vertex is introduced at.
    pub introduced: Vec<u32>,
    /// The step a vertex is forgotten at: that of its last neighbor, or its own.
    pub forgotten: Vec<u32>,
}

impl<'a> PathDecomposition<'a> {
    /// What an order implies.
    pub fn new(reduced: &'a ReducedGraph, order: Vec<u32>) -> Self {
        let mut introduced = vec![0; order.len()];
        for (step, &v) in (0..).zip(&order) {
            introduced[v as usize] = step;
        }
        let last =
            |v: usize| reduced.links[v].iter().map(|link| introduced[link.to as usize]).fold(introduced[v], u32::max);
        let forgotten = (0..order.len()).map(last).collect();
        Self { reduced, order, introduced, forgotten }
    }

    /// The edges from the introduced vertex at a step to those introduced before.
    pub fn links_back(&self, step: usize) -> impl Iterator<Item = &'a HalfEdge> {
        let links = &self.reduced.links[self.order[step] as usize];
        links.iter().filter(move |link| (self.introduced[link.to as usize] as usize) < step)
    }

    /// The number of vertices in the frontier after each step.
    pub fn widths(&self) -> Vec<usize> {
        let mut forgotten_now = vec![0; self.order.len()];
        self.forgotten.iter().for_each(|&step| forgotten_now[step as usize] += 1);
        let after = |width: &mut usize, forgotten_now: usize| {
            *width = *width + 1 - forgotten_now;
            Some(*width)
        };
        forgotten_now.into_iter().scan(0, after).collect()
    }
}
