//! What independent sets are counted on: a lattice with a kernel of its own, or any graph.

use crate::graphs::Graph;

/// How a lattice ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// Open in both directions.
    Free,
    /// Closed in the second direction: the second extent is the circumference.
    Cylinder,
    /// Closed in both directions.
    Torus,
}

/// The lattices with a kernel of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Four neighbours.
    Square,
    /// The square lattice with both diagonals of every cell.
    King,
    /// The square lattice with the diagonal from (r, c) to (r+1, c+1).
    Triangular,
    /// The truncated square tiling; its extents count octagons.
    FourEightEight,
}

/// What is counted on.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// A lattice of `rows` times `cols` vertices (4-8-8: octagons).
    Lattice {
        /// Which lattice.
        kind: Kind,
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
            Self::Lattice { kind: Kind::FourEightEight, rows: m, cols: n, boundary } => {
                4 * m * n
                    + match boundary {
                        Boundary::Free => 2 * (m + n),
                        Boundary::Cylinder => 2 * n,
                        Boundary::Torus => 0,
                    }
            }
            Self::Lattice { rows, cols, .. } => rows * cols,
            Self::Graph { ref graph, .. } => graph.vertices(),
        }
    }

    /// A size no independent set exceeds, where the lattice tells one; `None` for a graph.
    pub fn largest_set_bound(&self) -> Option<usize> {
        let Self::Lattice { kind, rows: m, cols: n, boundary } = *self else { return None };
        Some(match (kind, boundary) {
            // Its links are a perfect matching.
            (Kind::FourEightEight, _) => self.vertices() / 2,
            // Disjoint 2 x 2 blocks are cliques; around a torus every two neighbouring rows are counted twice.
            (Kind::King, Boundary::Free) => m.div_ceil(2) * n.div_ceil(2),
            (Kind::King, Boundary::Cylinder) => m.div_ceil(2) * (n / 2),
            (Kind::King, Boundary::Torus) => m * (n / 2) / 2,
            (_, Boundary::Free) => (m * n).div_ceil(2),
            (_, Boundary::Cylinder) => m * (n / 2),
            (_, Boundary::Torus) => (m * (n / 2)).min(n * (m / 2)),
        })
    }

    /// Words that tell this problem from every other, for a checkpoint's fingerprint.
    pub fn description(&self) -> Vec<u64> {
        match self {
            Self::Lattice { kind, rows, cols, boundary } => {
                vec![*kind as u64, *rows as u64, *cols as u64, *boundary as u64]
            }
            Self::Graph { graph, order } => {
                let edges = graph.edges().iter().map(|&(u, v)| u64::from(u) << 32 | u64::from(v));
                let order = order.iter().flatten().map(|&v| u64::from(v));
                [u64::MAX, graph.vertices() as u64].into_iter().chain(edges).chain([u64::MAX]).chain(order).collect()
            }
        }
    }
}
