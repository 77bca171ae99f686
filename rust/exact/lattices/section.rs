//! Sections: finite lattices written out, and those that are no whole number of unit cells.
//!
//! Each of the latter is cut from a lattice of cells by dropping vertices or edges:
//!
//!  - the 4-8-8 lattice of m x n octagons: all link ends of an array of diamonds. On an open axis there is one diamond more
//!    than there are octagons, and the outward tips of the outermost diamonds, which have no link, are dropped.
//!  - the Aztec diamond of order n: the unit squares of the plane with |x + 1/2| + |y + 1/2| <= n as vertices.
//!  - the generalized Aztec diamond: the points of an a x b box with i + j even, joined along diagonals.
//!  - the triangulated grid: m x n cells, each with one diagonal, (i, j)-(i+1, j+1) or (i+1, j)-(i, j+1).
//!
//! Source of the Aztec diamond: N. Elkies, G. Kuperberg, M. Larsen, J. Propp (1992), Alternating-sign matrices and domino
//! tilings, J. Algebraic Combin. 1.

use super::{Bond, Boundary, Lattice, UnitCell};
use crate::graphs::Graph;
use crate::memory::reserved;
use crate::{Error, Result};

/// A finite lattice written out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Where each vertex is.
    pub positions: Vec<[f64; 2]>,
    /// The ends of each edge.
    pub edges: Vec<(u32, u32)>,
    /// How often each edge goes round each axis.
    pub windings: Vec<[i32; 2]>,
    /// The vector along each edge.
    pub displacements: Vec<[f64; 2]>,
}

impl Section {
    pub(super) fn with_room(vertices: u128, edges: u128) -> Result<Self> {
        Ok(Self {
            positions: reserved(vertices, "the vertices of a lattice")?,
            edges: reserved(edges, "the edges of a lattice")?,
            windings: reserved(edges, "the edges of a lattice")?,
            displacements: reserved(edges, "the edges of a lattice")?,
        })
    }

    /// The graph alone.
    ///
    /// # Errors
    /// None for a section made here.
    pub fn graph(&self) -> Result<Graph> {
        Graph::new(self.positions.len(), self.edges.clone())
    }

    /// Drops vertices, and with them their edges; the rest keep their order.
    fn retain_vertices(&mut self, kept: impl Fn(usize) -> bool) {
        let stay: Vec<bool> = (0..self.positions.len()).map(kept).collect();
        let before = |count: &mut u32, &stays: &bool| Some(std::mem::replace(count, *count + u32::from(stays)));
        let renamed: Vec<u32> = stay.iter().scan(0, before).collect();
        let joined = |&(u, v): &(u32, u32)| stay[u as usize] && stay[v as usize];
        let linked: Vec<bool> = self.edges.iter().map(joined).collect();
        retain(&mut self.positions, &stay);
        retain(&mut self.edges, &linked);
        retain(&mut self.windings, &linked);
        retain(&mut self.displacements, &linked);
        for (u, v) in &mut self.edges {
            (*u, *v) = (renamed[*u as usize], renamed[*v as usize]);
        }
    }
}

/// Keeps the values whose mark is set.
fn retain<T>(values: &mut Vec<T>, marks: &[bool]) {
    let mut marks = marks.iter();
    values.retain(|_| marks.next() == Some(&true));
}

/// The 4-8-8 lattice of `rows` x `cols` octagons. There is no loop and no parallel edge, whatever the size.
///
/// # Errors
/// [`Error::Domain`] for no octagons or too many vertices, [`Error::TooLarge`] without memory.
pub fn four_eight_eight(rows: usize, cols: usize, boundary: Boundary) -> Result<Section> {
    if rows == 0 || cols == 0 {
        return Err(Error::domain("extent", format!("({rows}, {cols})"), "positive"));
    }
    let closed = boundary.closed();
    let diamonds = [rows.saturating_add(!closed[0] as usize), cols.saturating_add(!closed[1] as usize)];
    let mut section = Lattice::new(UnitCell::named("4-8-8")?, diamonds, closed)?.section()?;
    // Sites 0, 2 end the links along the first axis, up and down; sites 1, 3 those along the second.
    section.retain_vertices(|vertex| {
        let (i, j) = (vertex / 4 / diamonds[1], vertex / 4 % diamonds[1]);
        match vertex % 4 {
            0 => closed[0] || i + 1 < diamonds[0],
            1 => closed[1] || j + 1 < diamonds[1],
            2 => closed[0] || i > 0,
            _ => closed[1] || j > 0,
        }
    });
    Ok(section)
}

/// The Aztec diamond of the given order: `2n(n+1)` vertices.
///
/// # Errors
/// As [`four_eight_eight`].
pub fn aztec_diamond(order: usize) -> Result<Section> {
    let side = order.saturating_mul(2);
    let mut section = Lattice::new(UnitCell::named("square")?, [side, side], [false, false])?.section()?;
    let twice = |x: usize| (2 * x + 1).abs_diff(side);
    section.retain_vertices(|vertex| twice(vertex / side) + twice(vertex % side) <= side);
    Ok(section)
}

/// The points `(i, j)` of an a x b box with `i + j` even, those one step apart on both axes joined.
///
/// # Errors
/// As [`four_eight_eight`].
pub fn generalized_aztec(rows: usize, cols: usize) -> Result<Section> {
    let diagonals = vec![Bond::new(0, 0, [1, 1]), Bond::new(0, 0, [1, -1])];
    let cell = UnitCell::new([[1.0, 0.0], [0.0, 1.0]], vec![[0.0, 0.0]], diagonals)?;
    let mut section = Lattice::new(cell, [rows, cols], [false, false])?.section()?;
    section.retain_vertices(|vertex| (vertex / cols + vertex % cols).is_multiple_of(2));
    Ok(section)
}

/// The grid of `rows` x `cols` cells with a diagonal in each: where `diagonals` (row by row) is true from `(i, j)` to
/// `(i+1, j+1)`, else from `(i+1, j)` to `(i, j+1)`.
///
/// # Errors
/// [`Error::Shape`] if there are not `rows * cols` diagonals; else as [`four_eight_eight`].
pub fn triangulated_grid(rows: usize, cols: usize, diagonals: &[bool]) -> Result<Section> {
    if rows.checked_mul(cols) != Some(diagonals.len()) {
        return Err(Error::shape("diagonals", format!("({rows}, {cols})"), format!("{} values", diagonals.len())));
    }
    if diagonals.is_empty() {
        return Err(Error::domain("extent", format!("({rows}, {cols})"), "positive"));
    }
    // Bonds 2 and 3 of the king's cell are the diagonals of the cells at (i, j) and at (i, j - 1).
    let king = Lattice::new(UnitCell::named("king")?, [rows + 1, cols + 1], [false, false])?;
    king.section_where(|[i, j], bond| match bond {
        2 => diagonals[i * cols + j],
        3 => !diagonals[i * cols + j - 1],
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of independent sets by looking at every set of vertices.
    fn independent_sets(section: &Section) -> usize {
        let n = section.positions.len();
        assert!(n <= 24);
        let mut neighbors = vec![0u32; n];
        for &(u, v) in &section.edges {
            neighbors[u as usize] |= 1 << v;
            neighbors[v as usize] |= 1 << u;
        }
        (0..1u32 << n).filter(|set| (0..n).all(|v| set >> v & 1 == 0 || set & neighbors[v] == 0)).count()
    }

    #[test]
    fn octagons_have_the_numbers_of_vertices_and_edges_of_their_formulas() {
        for (m, n) in (1..6).flat_map(|m| (1..6).map(move |n| (m, n))) {
            let size = |boundary| {
                let section = four_eight_eight(m, n, boundary).unwrap();
                (section.positions.len(), section.edges.len())
            };
            let diamonds = 4 * (m - 1) * (n - 1) + 4 * (m - 1) + 4 * (n - 1) + 4;
            assert_eq!(size(Boundary::Free), (4 * m * n + 2 * m + 2 * n, m * (n + 1) + n * (m + 1) + diamonds));
            assert_eq!(size(Boundary::Cylinder), (4 * m * n + 2 * n, (2 * m + 1) * n + 4 * n + 4 * n * (m - 1)));
            assert_eq!(size(Boundary::Torus), (4 * m * n, 6 * m * n));
        }
    }

    #[test]
    fn small_sections_of_octagons_have_the_published_numbers_of_independent_sets() {
        use Boundary::{Cylinder, Free, Torus};
        let known = [
            (1, 1, Free, 47),
            (1, 2, Free, 779),
            (2, 1, Free, 779),
            (2, 2, Free, 74753),
            (1, 1, Cylinder, 15),
            (1, 2, Cylinder, 275),
            (2, 1, Cylinder, 81),
            (2, 2, Cylinder, 9223),
            (1, 1, Torus, 5),
            (1, 2, Torus, 29),
            (2, 1, Torus, 29),
            (2, 2, Torus, 1127),
        ];
        for (m, n, boundary, count) in known {
            assert_eq!(independent_sets(&four_eight_eight(m, n, boundary).unwrap()), count, "{m} {n} {boundary:?}");
        }
    }

    #[test]
    fn aztec_diamonds_have_the_published_sizes_and_numbers_of_independent_sets() {
        for (n, count) in [(1, 7), (2, 257), (3, 50128)] {
            let section = aztec_diamond(n).unwrap();
            assert_eq!((section.positions.len(), section.edges.len()), (2 * n * (n + 1), 4 * n * n));
            assert_eq!(independent_sets(&section), count);
        }
        for (n, count) in [(1, 4), (2, 17), (3, 73), (4, 314), (5, 1351)] {
            let section = generalized_aztec(3, 2 * n - 1).unwrap();
            assert_eq!(section.positions.len(), (3 * (2 * n - 1)).div_ceil(2));
            assert_eq!(independent_sets(&section), count);
        }
    }

    #[test]
    fn a_triangulated_grid_has_the_diagonals_asked_for() {
        assert_eq!(triangulated_grid(1, 1, &[true]).unwrap().edges, [(0, 2), (0, 1), (0, 3), (1, 3), (2, 3)]);
        assert_eq!(triangulated_grid(1, 1, &[false]).unwrap().edges, [(0, 2), (0, 1), (1, 3), (1, 2), (2, 3)]);
        let section = triangulated_grid(2, 3, &[true, false, false, false, true, true]).unwrap();
        assert_eq!((section.positions.len(), section.edges.len()), (12, 2 * 4 + 3 * 3 + 6));
        assert_eq!(independent_sets(&triangulated_grid(2, 2, &[true; 4]).unwrap()), 42);
        assert_eq!(independent_sets(&triangulated_grid(2, 2, &[false; 4]).unwrap()), 42);
    }

    #[test]
    fn the_expected_count_of_random_triangulations_is_the_known_polynomial() {
        // Sum over all 16 triangulations of 2 x 2 cells; at p = 1/2 the mean is 42 + 8u + 2u^2 with u = 1/4.
        let all = (0..16).map(|bits| std::array::from_fn::<_, 4, _>(|cell| bits >> cell & 1 == 1));
        let sum: usize = all.map(|diagonals| independent_sets(&triangulated_grid(2, 2, &diagonals).unwrap())).sum();
        assert_eq!(sum * 8, 16 * (42 * 8 + 8 * 2 + 1));
    }

    #[test]
    fn sections_that_cannot_be_are_refused() {
        for size in [(0, 1), (1, 0), (usize::MAX, usize::MAX), (1 << 17, 1 << 17)] {
            assert!(matches!(four_eight_eight(size.0, size.1, Boundary::Free), Err(Error::Domain { .. })), "{size:?}");
            assert!(matches!(generalized_aztec(size.0, size.1), Err(Error::Domain { .. })), "{size:?}");
        }
        assert!(matches!(aztec_diamond(0), Err(Error::Domain { .. })));
        assert!(matches!(aztec_diamond(usize::MAX), Err(Error::Domain { .. })));
        assert!(matches!(triangulated_grid(2, 2, &[true]), Err(Error::Shape { .. })));
        assert!(matches!(triangulated_grid(0, 2, &[]), Err(Error::Domain { .. })));
    }
}
