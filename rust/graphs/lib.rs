//! Graphs: vertices `0..n` and a list of edges. The room `graphs` of the wing of exact counts, below its engines.

pub mod automorphism;
pub mod distances;
mod families;
mod lists;
mod matching;

pub use families::{complete, grid, hamming, torus};
pub use lists::Lists;
pub use matching::{largest_matching, maximum_matching};

pub(crate) use quincunx_shared::{Error, Result, memory, monitor, numeric, parallel};

use crate::monitor::Progress;
use std::collections::HashMap;

/// An undirected graph; loops and parallel edges are kept as they are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    vertices: usize,
    edges: Vec<(u32, u32)>,
}

impl Graph {
    /// A graph on `0..vertices`.
    ///
    /// # Errors
    /// [`Error::Domain`] if an end is not a vertex or there are more than `2^32 - 1` vertices; [`Error::TooLarge`] where
    /// nothing could be found out about it: its lists of neighbors would not fit into memory.
    pub fn new(vertices: usize, edges: Vec<(u32, u32)>) -> Result<Self> {
        if vertices > u32::MAX as usize {
            return Err(Error::domain("n", vertices, "below 2**32"));
        }
        let largest = edges.iter().fold(0, |largest, &(u, v)| largest.max(u).max(v));
        if largest as usize >= vertices
            && let Some(edge) = edges.iter().find(|&&(u, v)| u.max(v) as usize >= vertices)
        {
            return Err(Error::domain("edges", format!("{edge:?}"), "pairs of vertices in 0..n"));
        }
        let graph = Self { vertices, edges };
        memory::charge("working on a graph", graph.bytes(48, 16))?;
        Ok(graph)
    }

    /// So many bytes for each vertex, and for each edge.
    pub fn bytes(&self, vertex: u32, edge: u32) -> u128 {
        self.vertices as u128 * u128::from(vertex) + self.edges.len() as u128 * u128::from(edge)
    }

    /// How many edges there are between two vertices, by their numbers in rising order.
    pub fn multiplicities(&self) -> HashMap<(u32, u32), u64> {
        let mut times = HashMap::with_capacity(self.edges.len());
        for &(u, v) in &self.edges {
            *times.entry((u.min(v), u.max(v))).or_insert(0) += 1;
        }
        times
    }

    /// The subgraph on a range of vertices, renumbered from 0.
    pub fn induced(&self, part: std::ops::Range<usize>) -> Self {
        let place = |v: u32| part.contains(&(v as usize)).then(|| v - part.start as u32);
        let edges = self.edges.iter().filter_map(|&(u, v)| Some((place(u)?, place(v)?))).collect();
        Self { vertices: part.len(), edges }
    }

    /// Number of vertices.
    pub fn vertices(&self) -> usize {
        self.vertices
    }

    /// The edges, in the order given.
    pub fn edges(&self) -> &[(u32, u32)] {
        &self.edges
    }

    /// Edge ends at each vertex: parallel edges count one by one, a loop counts twice.
    pub fn degrees(&self) -> Vec<u64> {
        let mut degrees = vec![0; self.vertices];
        for &(u, v) in &self.edges {
            degrees[u as usize] += 1;
            degrees[v as usize] += 1;
        }
        degrees
    }

    /// The component of each vertex, numbered in the order of their first vertices, and how many there are.
    pub fn components(&self) -> (Vec<u32>, usize) {
        let neighbors = self.neighbors();
        let mut component = vec![u32::MAX; self.vertices];
        let mut count = 0;
        let mut waiting = Vec::new();
        for root in 0..self.vertices as u32 {
            if component[root as usize] != u32::MAX {
                continue;
            }
            waiting.push(root);
            component[root as usize] = count;
            while let Some(v) = waiting.pop() {
                for &u in &neighbors[v as usize] {
                    if component[u as usize] == u32::MAX {
                        component[u as usize] = count;
                        waiting.push(u);
                    }
                }
            }
            count += 1;
        }
        (component, count as usize)
    }

    /// One of two colors for each vertex, different at the ends of each edge; `None` if there is an odd cycle or a loop.
    pub fn two_coloring(&self) -> Option<Vec<bool>> {
        if self.edges.iter().any(|(u, v)| u == v) {
            return None;
        }
        let neighbors = self.neighbors();
        let mut color: Vec<Option<bool>> = vec![None; self.vertices];
        let mut waiting = Vec::new();
        for root in 0..self.vertices as u32 {
            if color[root as usize].is_none() {
                color[root as usize] = Some(false);
                waiting.push(root);
            }
            while let Some(v) = waiting.pop() {
                let other = color[v as usize].map(|color| !color);
                for &u in &neighbors[v as usize] {
                    match color[u as usize] {
                        None => {
                            color[u as usize] = other;
                            waiting.push(u);
                        }
                        found if found != other => return None,
                        Some(_) => {}
                    }
                }
            }
        }
        color.into_iter().collect()
    }

    /// The distinct neighbours of each vertex in rising order, without the vertex itself.
    pub fn neighbors(&self) -> Lists {
        self.stoppable_neighbors(&Progress::default()).expect("nobody asks to stop")
    }

    /// The same, where somebody may.
    ///
    /// # Errors
    /// [`Error::Interrupted`] once somebody asked to stop.
    pub fn stoppable_neighbors(&self, progress: &Progress) -> Result<Lists> {
        // Where the list of each vertex ends, while it is filled; it has room for parallel edges.
        let mut ends = vec![0; self.vertices];
        self.edges.iter().filter(|(u, v)| u != v).for_each(|&(u, v)| {
            ends[u as usize] += 1;
            ends[v as usize] += 1;
        });
        let mut total = 0;
        for end in &mut ends {
            (*end, total) = (total, total + *end);
        }
        let mut items = vec![0u32; total];
        for (i, &(u, v)) in self.edges.iter().enumerate() {
            progress.check_at(i)?;
            if u != v {
                for (from, to) in [(u, v), (v, u)] {
                    items[ends[from as usize]] = to;
                    ends[from as usize] += 1;
                }
            }
        }
        let (mut lists, mut start) = (Lists::with_capacity(self.vertices, total), 0);
        for (i, end) in ends.into_iter().enumerate() {
            progress.check_at(i)?;
            let list = &mut items[start..end];
            list.sort_unstable();
            lists.push(list.chunk_by(|a, b| a == b).map(|same| same[0]));
            start = end;
        }
        Ok(lists)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_count_parallel_edges_one_by_one_and_a_loop_twice() {
        let graph = Graph::new(4, vec![(0, 1), (1, 0), (2, 2)]).unwrap();
        assert_eq!(graph.degrees(), [2, 2, 2, 0]);
        assert_eq!(graph.neighbors(), [vec![1], vec![0], vec![], vec![]].into_iter().collect());
    }

    #[test]
    fn components_and_colors_are_found() {
        let graph = Graph::new(5, vec![(0, 3), (1, 2), (2, 4), (4, 1)]).unwrap();
        assert_eq!(graph.components(), (vec![0, 1, 1, 0, 1], 2));
        assert_eq!(graph.two_coloring(), None);
        let square = Graph::new(4, vec![(0, 1), (1, 2), (2, 3), (3, 0)]).unwrap();
        assert_eq!(square.two_coloring(), Some(vec![false, true, false, true]));
    }

    #[test]
    fn an_end_that_is_no_vertex_is_refused() {
        assert!(matches!(Graph::new(2, vec![(0, 2)]), Err(Error::Domain { name: "edges", .. })));
        assert!(Graph::new(0, vec![]).is_ok());
    }
}
