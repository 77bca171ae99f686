//! The lattices that have a name in the field, by their unit cells.
//!
//! Source: B. Gruenbaum, G. Shephard (1987), Tilings and Patterns, section 2.1, for the uniform tilings and their symbols.

use super::{Bond, UnitCell};
use crate::{Error, Result};
use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

const ROOT3: f64 = 1.732_050_807_568_877_2;
const SQUARE: [[f64; 2]; 2] = [[1.0, 0.0], [0.0, 1.0]];

/// The names [`UnitCell::named`] knows.
pub const NAMES: [&str; 12] = [
    "square",
    "king",
    "triangular",
    "honeycomb",
    "kagome",
    "triangular-kagome",
    "truncated-square",
    "martini",
    "3-12-12",
    "3-6-24",
    "3-6-12-48",
    "modified-bathroom",
];

/// A list of bonds from rows `[from, to, dx, dy]`.
fn bonds(rows: &[[i32; 4]]) -> Vec<Bond> {
    rows.iter().map(|&[from, to, dx, dy]| Bond::new(from as usize, to as usize, [dx, dy])).collect()
}

impl UnitCell {
    /// The unit cell of a lattice by its name in [`NAMES`].
    ///
    /// The basis vectors are those of the lattice it is made from: of `honeycomb` for `martini`, `3-12-12`, `3-6-24`,
    /// `3-6-12-48` and `triangular-kagome`, of `square` for `modified-bathroom`. The diagonals of `triangular` join
    /// `(i+1, j)` to `(i, j+1)`; the other choice is its mirror image.
    ///
    /// # Errors
    /// [`Error::Domain`] for any other name.
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "square" => Self::new(SQUARE, vec![[0.0; 2]], bonds(&[[0, 0, 1, 0], [0, 0, 0, 1]])),
            "king" => {
                let steps = bonds(&[[0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, -1]]);
                Self::new(SQUARE, vec![[0.0; 2]], steps)
            }
            "triangular" => {
                let basis = [[1.0, 0.0], [0.5, ROOT3 / 2.0]];
                Self::new(basis, vec![[0.0; 2]], bonds(&[[0, 0, 1, 0], [0, 0, 0, 1], [0, 0, -1, 1]]))
            }
            "honeycomb" => {
                let basis = [[ROOT3, 0.0], [ROOT3 / 2.0, 1.5]];
                let sites = vec![[0.0, 0.0], [ROOT3 / 2.0, 0.5]];
                Self::new(basis, sites, bonds(&[[0, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]]))
            }
            "kagome" => {
                let sites = vec![[0.0, 0.0], [1.0, 0.0], [0.5, ROOT3 / 2.0]];
                let triangle = [[0, 1, 0, 0], [0, 2, 0, 0], [1, 2, 0, 0]];
                let links = [[1, 0, 1, 0], [2, 0, 0, 1], [1, 2, 1, -1]];
                Self::new([[2.0, 0.0], [1.0, ROOT3]], sites, bonds(&[triangle, links].concat()))
            }
            "truncated-square" => {
                let (side, h) = (1.0 + SQRT_2, FRAC_1_SQRT_2);
                let sites = vec![[h, 0.0], [0.0, h], [-h, 0.0], [0.0, -h]];
                let diamond = [[0, 1, 0, 0], [1, 2, 0, 0], [2, 3, 0, 0], [3, 0, 0, 0]];
                let links = [[0, 2, 1, 0], [1, 3, 0, 1]];
                Self::new([[side, 0.0], [0.0, side]], sites, bonds(&[&diamond[..], &links].concat()))
            }
            "martini" => Self::named("honeycomb")?.insert_cliques(&[true, false], |_| 1.0 / (1.0 + ROOT3)),
            "3-12-12" => Self::named("honeycomb")?.clique_insert(),
            "3-6-24" => Self::named("3-12-12")?.clique_insert(),
            "3-6-12-48" => Self::named("3-6-24")?.clique_insert(),
            "modified-bathroom" => Self::named("square")?.clique_insert(),
            // Triangles so large that they touch have their corners and side midpoints where these sites are.
            "triangular-kagome" => Self::named("honeycomb")?.insert_cliques(&[true, true], |_| 0.5)?.line_graph(),
            _ => Err(Error::Domain {
                name: "lattice",
                value: format!("{name:?}"),
                requirement: "the name of a lattice with a unit cell",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Lattice;
    use super::*;

    /// The lengths of the bonds, shortest and longest.
    fn lengths(name: &str) -> (f64, f64) {
        let cell = UnitCell::named(name).unwrap();
        let length = |&bond: &Bond| cell.displacement(bond).into_iter().fold(0.0, f64::hypot);
        let all: Vec<f64> = cell.bonds().iter().map(length).collect();
        (all.iter().copied().fold(f64::MAX, f64::min), all.iter().copied().fold(0.0, f64::max))
    }

    #[test]
    fn tori_have_the_degrees_of_the_table() {
        let table = [
            ("square", 1, 4),
            ("king", 1, 8),
            ("triangular", 1, 6),
            ("honeycomb", 2, 3),
            ("kagome", 3, 4),
            ("triangular-kagome", 9, 4),
            ("truncated-square", 4, 3),
            ("martini", 4, 3),
            ("3-12-12", 6, 3),
            ("3-6-24", 18, 3),
            ("3-6-12-48", 54, 3),
            ("modified-bathroom", 4, 4),
        ];
        assert_eq!(table.map(|row| row.0), NAMES);
        for (name, sites, degree) in table {
            let lattice = Lattice::new(UnitCell::named(name).unwrap(), [4, 4], [true, true]).unwrap();
            assert!(lattice.check_simple().is_ok(), "{name}");
            let graph = lattice.section().unwrap().graph().unwrap();
            assert_eq!((graph.vertices(), graph.edges().len()), (16 * sites, 16 * sites * degree / 2), "{name}");
            assert!(graph.degrees().iter().all(|&d| d == degree as u64), "{name}");
        }
    }

    #[test]
    fn bonds_are_equally_long_where_the_lattice_allows_it() {
        let equal = ["square", "triangular", "honeycomb", "kagome", "truncated-square", "martini", "3-12-12"];
        for name in equal.into_iter().chain(["triangular-kagome"]) {
            let (shortest, longest) = lengths(name);
            assert!(longest - shortest < 1e-12, "{name}: {shortest} {longest}");
        }
        assert!((lengths("truncated-square").0 - 1.0).abs() < 1e-12);
        assert!((lengths("king").1 - SQRT_2).abs() < 1e-12);
    }

    #[test]
    fn an_unknown_name_is_refused() {
        assert!(matches!(UnitCell::named("pentagonal"), Err(Error::Domain { name: "lattice", .. })));
    }
}
