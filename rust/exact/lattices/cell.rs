//! Unit cells: the sites and bonds that a lattice repeats.
//!
//! Site `s` of cell `(i, j)` lies at `i*a1 + j*a2 + offset[s]`. A bond `(u, v, (dx, dy))` joins site `u` of each cell `(i, j)`
//! to site `v` of cell `(i+dx, j+dy)`; each edge of the infinite lattice is listed once.

use crate::{Error, Result};
use std::collections::HashSet;

/// A bond: from a site of a cell to a site of the cell `offset` away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bond {
    /// Site it starts at.
    pub from: usize,
    /// Site it ends at.
    pub to: usize,
    /// Cells from start to end.
    pub offset: [i32; 2],
}

impl Bond {
    /// A bond from site `from` to site `to` of the cell `offset` away.
    pub const fn new(from: usize, to: usize, offset: [i32; 2]) -> Self {
        Self { from, to, offset }
    }

    /// One name for the bond and its reverse, once offsets are known up to what `reduce` forgets.
    pub(super) fn class(self, reduce: impl Fn([i32; 2]) -> [i32; 2]) -> Self {
        let there = Self { offset: reduce(self.offset), ..self };
        let back = Self { from: self.to, to: self.from, offset: reduce(self.offset.map(|d| -d)) };
        if (there.from, there.to, there.offset) <= (back.from, back.to, back.offset) { there } else { back }
    }

    fn shown(self) -> String {
        format!("({}, {}, ({}, {}))", self.from, self.to, self.offset[0], self.offset[1])
    }
}

/// The part of a lattice that repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitCell {
    basis: [[f64; 2]; 2],
    sites: Vec<[f64; 2]>,
    bonds: Vec<Bond>,
}

/// The farthest cell a bond may reach: enough for every use, and sums of offsets stay far from overflow.
const FARTHEST: i32 = 1 << 20;

impl UnitCell {
    /// A unit cell from its two basis vectors, the offsets of its sites and its bonds.
    ///
    /// # Errors
    /// [`Error::Domain`] if a number is not finite, the basis is singular, there is no site, a bond names a site that is
    /// not there or a cell more than `2^20` away, joins a site to itself, or is listed twice (also in reverse).
    pub fn new(basis: [[f64; 2]; 2], sites: Vec<[f64; 2]>, bonds: Vec<Bond>) -> Result<Self> {
        let determinant = basis[0][0] * basis[1][1] - basis[0][1] * basis[1][0];
        if !(basis.iter().flatten().all(|x| x.is_finite()) && determinant.abs() > 0.0 && determinant.is_finite()) {
            let value = format!("{basis:?}");
            return Err(Error::domain("basis_vectors", value, "finite and independent"));
        }
        if let Some(site) = sites.iter().find(|site| !site.iter().all(|x| x.is_finite())) {
            let value = format!("{site:?}");
            return Err(Error::domain("site_offsets", value, "finite"));
        }
        if sites.is_empty() {
            return Err(Error::domain("site_offsets", "none", "at least one site"));
        }
        let mut seen = HashSet::with_capacity(bonds.len());
        for &bond in &bonds {
            let requirement = if bond.from.max(bond.to) >= sites.len() {
                "between sites of the cell"
            } else if bond.offset.iter().any(|d| d.unsigned_abs() > FARTHEST as u32) {
                "to a cell at most 2**20 away"
            } else if bond.from == bond.to && bond.offset == [0, 0] {
                "between two different sites"
            } else if !seen.insert(bond.class(|offset| offset)) {
                "distinct, also when one is read backwards"
            } else {
                continue;
            };
            return Err(Error::domain("bonds", bond.shown(), requirement));
        }
        Ok(Self { basis, sites, bonds })
    }

    /// The two basis vectors.
    pub fn basis(&self) -> [[f64; 2]; 2] {
        self.basis
    }

    /// Where the sites are, seen from their cell.
    pub fn sites(&self) -> &[[f64; 2]] {
        &self.sites
    }

    /// The bonds, in the order given.
    pub fn bonds(&self) -> &[Bond] {
        &self.bonds
    }

    /// The vector from a cell to the cell `(i, j)` away.
    pub(super) fn translation(&self, [i, j]: [f64; 2]) -> [f64; 2] {
        let [a1, a2] = self.basis;
        [i * a1[0] + j * a2[0], i * a1[1] + j * a2[1]]
    }

    /// The vector along a bond.
    pub fn displacement(&self, bond: Bond) -> [f64; 2] {
        let (start, end, shift) =
            (self.sites[bond.from], self.sites[bond.to], self.translation(bond.offset.map(f64::from)));
        [end[0] + shift[0] - start[0], end[1] + shift[1] - start[1]]
    }

    /// The bond ends at each site, as indices `2b` (the start of bond `b`) and `2b + 1` (its end), in rising order.
    pub(super) fn darts(&self) -> Vec<Vec<usize>> {
        let mut darts = vec![Vec::new(); self.sites.len()];
        for (b, bond) in self.bonds.iter().enumerate() {
            darts[bond.from].push(2 * b);
            darts[bond.to].push(2 * b + 1);
        }
        darts
    }

    /// Bonds at each site in the infinite lattice.
    pub fn degrees(&self) -> Vec<u64> {
        self.darts().iter().map(|darts| darts.len() as u64).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SQUARE: [[f64; 2]; 2] = [[1.0, 0.0], [0.0, 1.0]];

    fn refusal(basis: [[f64; 2]; 2], sites: Vec<[f64; 2]>, bonds: Vec<Bond>) -> (&'static str, &'static str) {
        match UnitCell::new(basis, sites, bonds) {
            Err(Error::Domain { name, requirement, .. }) => (name, requirement),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_cell_without_bonds_is_a_cell() {
        assert_eq!(UnitCell::new(SQUARE, vec![[0.0; 2]; 3], vec![]).unwrap().degrees(), [0, 0, 0]);
    }

    #[test]
    fn what_cannot_be_a_cell_is_refused_with_the_reason() {
        let site = vec![[0.0, 0.0]];
        assert_eq!(refusal([[1.0, 2.0], [2.0, 4.0]], site.clone(), vec![]).0, "basis_vectors");
        assert_eq!(refusal([[f64::NAN, 0.0], [0.0, 1.0]], site.clone(), vec![]).0, "basis_vectors");
        assert_eq!(refusal([[1e300, 0.0], [0.0, 1e300]], site.clone(), vec![]).0, "basis_vectors");
        assert_eq!(refusal(SQUARE, vec![[0.0, f64::INFINITY]], vec![]).0, "site_offsets");
        assert_eq!(refusal(SQUARE, vec![], vec![]).0, "site_offsets");
        let bonds = |list: &[Bond]| refusal(SQUARE, vec![[0.0, 0.0], [0.5, 0.5]], list.to_vec()).1;
        assert_eq!(bonds(&[Bond::new(0, 2, [0, 0])]), "between sites of the cell");
        assert_eq!(bonds(&[Bond::new(0, 0, [0, 0])]), "between two different sites");
        assert_eq!(bonds(&[Bond::new(0, 0, [i32::MIN, 0])]), "to a cell at most 2**20 away");
        let twice = "distinct, also when one is read backwards";
        assert_eq!(bonds(&[Bond::new(0, 1, [0, 1]), Bond::new(0, 1, [0, 1])]), twice);
        assert_eq!(bonds(&[Bond::new(0, 1, [0, 1]), Bond::new(1, 0, [0, -1])]), twice);
        assert_eq!(bonds(&[Bond::new(0, 0, [1, -1]), Bond::new(0, 0, [-1, 1])]), twice);
    }
}
