//! Graphs: vertices `0..n` and a list of edges.

use crate::{Error, Result};

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
    /// [`Error::Domain`] if an end is not a vertex or there are more than `2^32 - 1` vertices.
    pub fn new(vertices: usize, edges: Vec<(u32, u32)>) -> Result<Self> {
        if vertices > u32::MAX as usize {
            return Err(Error::Domain { name: "n", value: vertices.to_string(), requirement: "below 2**32" });
        }
        match edges.iter().find(|&&(u, v)| u.max(v) as usize >= vertices) {
            Some(edge) => Err(Error::Domain {
                name: "edges",
                value: format!("{edge:?}"),
                requirement: "pairs of vertices in 0..n",
            }),
            None => Ok(Self { vertices, edges }),
        }
    }

    /// Number of vertices.
    pub fn vertices(&self) -> usize {
        self.vertices
    }

    /// The edges, in the order given.
    pub fn edges(&self) -> &[(u32, u32)] {
        &self.edges
    }

    /// The distinct neighbours of each vertex in rising order, without the vertex itself.
    pub fn neighbors(&self) -> Vec<Vec<u32>> {
        let mut lists = vec![Vec::new(); self.vertices];
        for &(u, v) in &self.edges {
            if u != v {
                lists[u as usize].push(v);
                lists[v as usize].push(u);
            }
        }
        for list in &mut lists {
            list.sort_unstable();
            list.dedup();
        }
        lists
    }
}
