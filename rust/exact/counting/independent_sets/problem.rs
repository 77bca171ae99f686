//! What independent sets are counted on: a lattice with a kernel of its own, or any graph.

use super::StripKind;
use crate::counting::exact::edge_words;
use crate::graphs::Graph;
use crate::lattices::Boundary;

/// What is counted on.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// A lattice of `rows` times `cols` vertices (4-8-8: octagons).
    Lattice {
        /// Which lattice.
        kind: StripKind,
        /// The first extent.
        rows: usize,
        /// The second extent, the circumference of a cylinder.
        cols: usize,
        /// How it ends.
        boundary: Boundary,
    },
    /// Any graph, with the order in which its vertices are to be taken, if the user has one.
    Graph {
        /// The graph.
        graph: Graph,
        /// A permutation of its vertices.
        order: Option<Vec<u32>>,
    },
}

impl Problem {
    /// Number of vertices.
    pub fn vertices(&self) -> usize {
        match *self {
            Self::Lattice { kind, rows, cols, boundary } => kind.vertices(rows, cols, boundary),
            Self::Graph { ref graph, .. } => graph.vertices(),
        }
    }

    /// A size no independent set exceeds, where the lattice tells one; `None` for a graph.
    pub fn largest_set_bound(&self) -> Option<usize> {
        let Self::Lattice { kind, rows, cols, boundary } = *self else { return None };
        Some(kind.largest_set(rows, cols, boundary))
    }

    /// Words that tell this problem from every other, for a checkpoint's fingerprint.
    pub fn description(&self) -> Vec<u64> {
        match self {
            Self::Lattice { kind, rows, cols, boundary } => {
                vec![*kind as u64, *rows as u64, *cols as u64, *boundary as u64]
            }
            Self::Graph { graph, order } => {
                let edges = edge_words(graph);
                let order = order.iter().flatten().map(|&v| u64::from(v));
                [u64::MAX, graph.vertices() as u64].into_iter().chain(edges).chain([u64::MAX]).chain(order).collect()
            }
        }
    }
}
