//! A largest matching: augmenting paths through shrunken blossoms.
//!
//! Each search grows an alternating tree from a free vertex. An edge between two outer vertices closes a blossom, whose
//! vertices all become outer with the tree's common ancestor as their base; an edge to a free vertex ends an augmenting path.
//!
//! Source: J. Edmonds (1965), Paths, trees, and flowers.

use super::{Graph, Lists};
use crate::monitor::{Monitor, Progress};
use crate::{Result, parallel};

/// No vertex.
const NONE: u32 = u32::MAX;

/// The partner of each vertex in a largest matching, `None` for those left out. Loops are ignored.
///
/// # Errors
/// [`crate::Error::Interrupted`] when the progress says so.
pub fn maximum_matching(graph: &Graph, progress: &Progress) -> Result<Vec<Option<u32>>> {
    let neighbors = graph.neighbors();
    let n = neighbors.len();
    let mut search = MatchingSearch {
        neighbors: &neighbors,
        mate: vec![NONE; n],
        parent: vec![NONE; n],
        base: (0..n as u32).collect(),
        outer: vec![false; n],
        touched: Vec::new(),
        mark: vec![0; n],
        stamp: 0,
    };
    search.start();
    for root in 0..n as u32 {
        if search.mate[root as usize] == NONE
            && let Some(end) = search.path(root, progress)?
        {
            search.augment(end);
        }
    }
    Ok(search.mate.into_iter().map(|mate| (mate != NONE).then_some(mate)).collect())
}

/// The same, on the pool: there it can be stopped.
///
/// # Errors
/// The monitor's objection.
pub fn largest_matching(graph: &Graph, monitor: &mut dyn Monitor) -> Result<Vec<Option<u32>>> {
    parallel::run(1, 0, monitor, |progress| maximum_matching(graph, progress))
}

struct MatchingSearch<'a> {
    neighbors: &'a Lists,
    mate: Vec<u32>,
    parent: Vec<u32>,
    base: Vec<u32>,
    outer: Vec<bool>,
    /// Vertices whose entries a search has changed.
    touched: Vec<u32>,
    mark: Vec<u32>,
    stamp: u32,
}

impl MatchingSearch<'_> {
    /// A maximal matching: vertices of low degree choose first, among their free neighbors the one with fewest.
    fn start(&mut self) {
        let mut order: Vec<u32> = (0..self.neighbors.len() as u32).collect();
        order.sort_by_key(|&v| self.neighbors[v as usize].len());
        for v in order {
            if self.mate[v as usize] == NONE {
                let free = self.neighbors[v as usize].iter().filter(|&&u| self.mate[u as usize] == NONE);
                if let Some(&u) = free.min_by_key(|&&u| self.neighbors[u as usize].len()) {
                    (self.mate[v as usize], self.mate[u as usize]) = (u, v);
                }
            }
        }
    }

    fn lowest_common_base(&mut self, mut a: u32, mut b: u32) -> u32 {
        self.stamp += 1;
        loop {
            a = self.base[a as usize];
            self.mark[a as usize] = self.stamp;
            if self.mate[a as usize] == NONE {
                break;
            }
            a = self.parent[self.mate[a as usize] as usize];
        }
        loop {
            b = self.base[b as usize];
            if self.mark[b as usize] == self.stamp {
                return b;
            }
            b = self.parent[self.mate[b as usize] as usize];
        }
    }

    /// Marks the bases on the way from `v` up to `base`, and turns the way round.
    fn mark_path(&mut self, mut v: u32, base: u32, mut child: u32, inside: &mut Vec<u32>) {
        while self.base[v as usize] != base {
            let mate = self.mate[v as usize];
            inside.extend([self.base[v as usize], self.base[mate as usize]]);
            self.parent[v as usize] = child;
            self.touched.push(v);
            child = mate;
            v = self.parent[mate as usize];
        }
    }

    /// The free end of an augmenting path from a free vertex.
    fn path(&mut self, root: u32, progress: &Progress) -> Result<Option<u32>> {
        progress.check()?;
        for v in std::mem::take(&mut self.touched) {
            (self.parent[v as usize], self.base[v as usize], self.outer[v as usize]) = (NONE, v, false);
        }
        self.outer[root as usize] = true;
        self.touched.push(root);
        let mut queue = std::collections::VecDeque::from([root]);
        while let Some(v) = queue.pop_front() {
            for i in 0..self.neighbors[v as usize].len() {
                let u = self.neighbors[v as usize][i];
                if self.base[v as usize] == self.base[u as usize] || self.mate[v as usize] == u {
                    continue;
                }
                let mate = self.mate[u as usize];
                if u == root || (mate != NONE && self.parent[mate as usize] != NONE) {
                    let base = self.lowest_common_base(v, u);
                    let mut inside = Vec::new();
                    self.mark_path(v, base, u, &mut inside);
                    self.mark_path(u, base, v, &mut inside);
                    progress.check()?;
                    // Every vertex with one of these bases has been touched by this search.
                    for j in 0..self.touched.len() {
                        let w = self.touched[j];
                        if inside.contains(&self.base[w as usize]) {
                            self.base[w as usize] = base;
                            if !self.outer[w as usize] {
                                self.outer[w as usize] = true;
                                queue.push_back(w);
                            }
                        }
                    }
                } else if self.parent[u as usize] == NONE {
                    self.parent[u as usize] = v;
                    self.touched.push(u);
                    if mate == NONE {
                        return Ok(Some(u));
                    }
                    self.outer[mate as usize] = true;
                    self.touched.push(mate);
                    queue.push_back(mate);
                }
            }
        }
        Ok(None)
    }

    fn augment(&mut self, mut v: u32) {
        loop {
            let parent = self.parent[v as usize];
            let next = self.mate[parent as usize];
            (self.mate[v as usize], self.mate[parent as usize]) = (parent, v);
            if next == NONE {
                return;
            }
            v = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The size of a largest matching, trying all.
    fn largest(edges: &[(u32, u32)], used: u32) -> usize {
        match edges.split_first() {
            None => 0,
            Some((&(u, v), rest)) => {
                let without = largest(rest, used);
                if u == v || used >> u & 1 == 1 || used >> v & 1 == 1 {
                    return without;
                }
                without.max(1 + largest(rest, used | 1 << u | 1 << v))
            }
        }
    }

    proptest! {
        #[test]
        fn no_matching_is_larger(n in 1u32..11, pairs in prop::collection::vec((0u32..11, 0u32..11), 0..16)) {
            let edges: Vec<(u32, u32)> = pairs.into_iter().map(|(u, v)| (u % n, v % n)).collect();
            let graph = Graph::new(n as usize, edges.clone()).unwrap();
            let mate = maximum_matching(&graph, &Progress::default()).unwrap();
            for (v, partner) in mate.iter().enumerate() {
                if let Some(u) = partner {
                    prop_assert_eq!(mate[*u as usize], Some(v as u32));
                    prop_assert!(edges.iter().any(|&(a, b)| (a, b) == (*u, v as u32) || (b, a) == (*u, v as u32)));
                }
            }
            prop_assert_eq!(mate.iter().flatten().count(), 2 * largest(&edges, 0));
        }
    }
}
