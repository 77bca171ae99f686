//! When vertices come and go: what both state tables are planned from.

use super::reduce::{Kernel, Link};

/// An order of the kernel's vertices with what it implies.
#[derive(Debug)]
pub struct Timeline<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Its vertices in the order they come.
    pub order: Vec<u32>,
    /// The step a vertex comes at.
    pub comes: Vec<u32>,
    /// The step a vertex goes at: that of its last neighbor, or its own.
    pub goes: Vec<u32>,
}

impl<'a> Timeline<'a> {
    /// What an order implies.
    pub fn new(kernel: &'a Kernel, order: Vec<u32>) -> Self {
        let mut comes = vec![0; order.len()];
        for (step, &v) in (0..).zip(&order) {
            comes[v as usize] = step;
        }
        let last = |v: usize| kernel.links[v].iter().map(|link| comes[link.to as usize]).fold(comes[v], u32::max);
        let goes = (0..order.len()).map(last).collect();
        Self { kernel, order, comes, goes }
    }

    /// The edges from the vertex that comes at a step to those that came before.
    pub fn links_back(&self, step: usize) -> impl Iterator<Item = &'a Link> {
        let links = &self.kernel.links[self.order[step] as usize];
        links.iter().filter(move |link| (self.comes[link.to as usize] as usize) < step)
    }

    /// The number of vertices in the frontier after each step.
    pub fn widths(&self) -> Vec<usize> {
        let mut going = vec![0; self.order.len()];
        self.goes.iter().for_each(|&step| going[step as usize] += 1);
        let after = |width: &mut usize, going: usize| {
            *width = *width + 1 - going;
            Some(*width)
        };
        going.into_iter().scan(0, after).collect()
    }
}
