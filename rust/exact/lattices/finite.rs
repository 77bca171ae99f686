//! Finite lattices: a unit cell repeated `extent` times, each axis open or closed.
//!
//! Vertex `(i*L2 + j)*s + site` is a site of cell `(i, j)`. Edges come cell by cell, in each cell in the order of the bonds;
//! a bond that leaves the box is dropped on an open axis and wrapped on a closed one. The winding of an edge counts how
//! often it wraps: `floor((i + dx)/L1)` and `floor((j + dy)/L2)`, so that
//!
//!   displacement = position(v) - position(u) + winding_1 * L1 * a1 + winding_2 * (L2 * a2 - t * a1).
//!
//! On a torus with twist t, going once round the second axis moves the first coordinate by t: (i, j + L2) = (i + t, j).

use super::{Section, UnitCell};
use crate::{Error, Result};
use std::collections::HashSet;

/// A unit cell repeated over a box.
#[derive(Clone, Debug, PartialEq)]
pub struct Lattice {
    cell: UnitCell,
    extent: [usize; 2],
    closed: [bool; 2],
    twist: usize,
}

impl Lattice {
    /// A finite lattice, which may have loops and parallel edges where a closed extent is small.
    ///
    /// # Errors
    /// [`Error::Domain`] for an extent of zero, or above `2^32 - 1` vertices.
    pub fn new(cell: UnitCell, extent: [usize; 2], closed: [bool; 2]) -> Result<Self> {
        let refused = |requirement| {
            let value = format!("({}, {})", extent[0], extent[1]);
            Err(Error::domain("extent", value, requirement))
        };
        if extent.contains(&0) {
            return refused("positive");
        }
        let cells = (extent[0] as u128).saturating_mul(extent[1] as u128);
        if cells.saturating_mul(cell.sites().len() as u128) > u128::from(u32::MAX) {
            return refused("so small that there are fewer than 2**32 vertices");
        }
        Ok(Self { cell, extent, closed, twist: 0 })
    }

    /// The same on a torus with a twist, reduced modulo the first extent.
    ///
    /// # Errors
    /// [`Error::Domain`] for a twist of a lattice with an open axis.
    pub fn twisted(self, twist: usize) -> Result<Self> {
        if twist > 0 && self.closed != [true, true] {
            return Err(Error::domain("twist", twist, "0 unless both axes are closed"));
        }
        Ok(Self { twist: twist % self.extent[0], ..self })
    }

    /// The cell that is repeated.
    pub fn cell(&self) -> &UnitCell {
        &self.cell
    }

    /// Number of vertices.
    pub fn vertices(&self) -> usize {
        self.extent[0] * self.extent[1] * self.cell.sites().len()
    }

    /// Checks that there is no loop and no parallel edge, by looking at the bonds alone.
    ///
    /// Translations carry every edge along a bond to every other, so two bonds give parallel edges somewhere if and only
    /// if they join the same sites by offsets that a closed axis does not tell apart.
    ///
    /// # Errors
    /// [`Error::Domain`] that says which of the two there would be.
    pub fn check_simple(&self) -> Result<()> {
        let length = self.extent.map(|extent| extent as i64);
        let reduce = |offset: [i32; 2]| {
            let turns = if self.closed[1] { i64::from(offset[1]).div_euclid(length[1]) } else { 0 };
            let moved = [i64::from(offset[0]) + turns * self.twist as i64, i64::from(offset[1])];
            std::array::from_fn(|axis| match self.closed[axis] {
                true => moved[axis].rem_euclid(length[axis]) as i32,
                false => offset[axis],
            })
        };
        let mut seen = HashSet::with_capacity(self.cell.bonds().len());
        for &bond in self.cell.bonds() {
            if (0..2).any(|axis| !self.closed[axis] && i64::from(bond.offset[axis]).abs() >= length[axis]) {
                continue; // leaves the box wherever it starts
            }
            let there = reduce(bond.offset);
            let requirement = if bond.from == bond.to && there == [0, 0] {
                "so large that no loop arises, unless `multigraph=True`"
            } else if !seen.insert(bond.class(reduce))
                || (bond.from == bond.to && there == reduce(bond.offset.map(|d| -d)))
            {
                "so large that no parallel edges arise, unless `multigraph=True`"
            } else {
                continue;
            };
            let value = format!("({}, {})", self.extent[0], self.extent[1]);
            return Err(Error::domain("extent", value, requirement));
        }
        Ok(())
    }

    /// Edges and positions.
    ///
    /// # Errors
    /// [`Error::TooLarge`] without memory.
    pub fn section(&self) -> Result<Section> {
        self.section_where(|_, _| true)
    }

    /// Edges and positions, of the bonds `(i, j), b` that `kept` keeps.
    pub(super) fn section_where(&self, kept: impl Fn([usize; 2], usize) -> bool) -> Result<Section> {
        let [rows, cols] = self.extent;
        let sites = self.cell.sites();
        let cells = rows as u128 * cols as u128;
        let mut section = Section::with_room(self.vertices() as u128, cells * self.cell.bonds().len() as u128)?;
        let along: Vec<_> = self.cell.bonds().iter().map(|&bond| self.cell.displacement(bond)).collect();
        let vertex = |cell: [usize; 2], site: usize| ((cell[0] * cols + cell[1]) * sites.len() + site) as u32;
        for i in 0..rows {
            for j in 0..cols {
                let corner = self.cell.translation([i as f64, j as f64]);
                section.positions.extend(sites.iter().map(|site| [corner[0] + site[0], corner[1] + site[1]]));
                for (b, bond) in self.cell.bonds().iter().enumerate() {
                    let (col, around) = wrapped(j, bond.offset[1].into(), cols);
                    let step = i64::from(bond.offset[0]) + i64::from(around) * self.twist as i64;
                    let (row, across) = wrapped(i, step, rows);
                    let inside = (across == 0 || self.closed[0]) && (around == 0 || self.closed[1]);
                    if inside && kept([i, j], b) {
                        section.edges.push((vertex([i, j], bond.from), vertex([row, col], bond.to)));
                        section.windings.push([across, around]);
                        section.displacements.push(along[b]);
                    }
                }
            }
        }
        Ok(section)
    }
}

/// Where a step along an axis of the given length ends, and how often it goes round.
#[inline]
fn wrapped(start: usize, step: i64, length: usize) -> (usize, i32) {
    let end = start as i64 + step;
    if (0..length as i64).contains(&end) {
        return (end as usize, 0);
    }
    (end.rem_euclid(length as i64) as usize, end.div_euclid(length as i64) as i32)
}

#[cfg(test)]
mod tests {
    use super::super::{Bond, LATTICES};
    use super::*;
    use crate::lattices::Boundary;
    use proptest::prelude::*;

    fn named(name: &str, extent: [usize; 2], closed: [bool; 2]) -> Lattice {
        Lattice::new(UnitCell::named(name).unwrap(), extent, closed).unwrap()
    }

    /// What `check_simple` says, found by looking at every edge.
    fn is_simple(section: &Section) -> bool {
        let mut seen = HashSet::new();
        section.edges.iter().all(|&(u, v)| u != v && seen.insert((u.min(v), u.max(v))))
    }

    #[test]
    fn a_square_has_the_edges_one_expects() {
        let section = named("square", [2, 2], [false, false]).section().unwrap();
        assert_eq!(section.edges, [(0, 2), (0, 1), (1, 3), (2, 3)]);
        assert_eq!(section.positions, [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]);
        assert!(section.windings.iter().all(|&winding| winding == [0, 0]));
    }

    #[test]
    fn a_cylinder_closes_the_second_axis() {
        let section = named("square", [2, 3], Boundary::Cylinder.closed()).section().unwrap();
        assert_eq!(section.edges.len(), 3 + 6);
        let wrapping: Vec<_> = (0..9).filter(|&e| section.windings[e] != [0, 0]).collect();
        assert!(wrapping.iter().all(|&e| section.windings[e] == [0, 1]));
        assert_eq!(wrapping.iter().map(|&e| section.edges[e]).collect::<Vec<_>>(), [(2, 0), (5, 3)]);
    }

    #[test]
    fn a_long_bond_winds_more_than_once() {
        let cell = UnitCell::new([[1.0, 0.0], [0.0, 1.0]], vec![[0.0; 2]], vec![Bond::new(0, 0, [5, -7])]).unwrap();
        let section = Lattice::new(cell, [2, 3], [true, true]).unwrap().section().unwrap();
        assert_eq!((section.edges[0], section.windings[0]), ((0, 3 + 2), [2, -3]));
    }

    #[test]
    fn the_rule_for_loops_and_parallel_edges_agrees_with_looking() {
        for name in LATTICES.each_ref().map(|row| row.name) {
            for (rows, cols) in (1..5).flat_map(|rows| (1..5).map(move |cols| (rows, cols))) {
                for closed in [[false, false], [false, true], [true, false], [true, true]] {
                    let lattice = named(name, [rows, cols], closed);
                    let simple = is_simple(&lattice.section().unwrap());
                    assert_eq!(lattice.check_simple().is_ok(), simple, "{name} {rows} {cols} {closed:?}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn the_rule_holds_for_any_cell_and_displacements_close_up(
            bonds in proptest::collection::vec((0..2usize, 0..2usize, -3..4i32, -3..4i32), 0..6),
            extent in [1..6usize, 1..6], closed in [any::<bool>(), any::<bool>()],
        ) {
            let bonds = bonds.iter().map(|&(u, v, dx, dy)| Bond::new(u, v, [dx, dy])).collect();
            let basis = [[1.0, 0.25], [-0.5, 2.0]];
            let Ok(cell) = UnitCell::new(basis, vec![[0.0, 0.0], [0.25, 0.5]], bonds) else { return Ok(()) };
            let lattice = Lattice::new(cell, extent, closed).unwrap();
            let section = lattice.section().unwrap();
            prop_assert_eq!(lattice.check_simple().is_ok(), is_simple(&section));
            for (e, &(u, v)) in section.edges.iter().enumerate() {
                let (start, end) = (section.positions[u as usize], section.positions[v as usize]);
                let [p, q] = section.windings[e];
                let round = lattice.cell().translation([f64::from(p) * extent[0] as f64, f64::from(q) * extent[1] as f64]);
                for axis in 0..2 {
                    prop_assert_eq!(section.displacements[e][axis], end[axis] - start[axis] + round[axis]);
                }
            }
        }
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        let cell = UnitCell::named("kagome").unwrap();
        for extent in [[0, 3], [3, 0], [1 << 16, 1 << 16], [usize::MAX, usize::MAX]] {
            let refused = Lattice::new(cell.clone(), extent, [true, true]);
            assert!(matches!(refused, Err(Error::Domain { name: "extent", .. })), "{extent:?}");
        }
    }
}
