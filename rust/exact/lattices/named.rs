//! The registry: one row for each lattice that has a name in the field.
//!
//! A row holds all that the house knows a lattice by: its names, its unit cell, and what theorems and closed forms apply to
//! it. Counting's row operators join by the name (`StripKind`); everybody else, Python too, asks the row.
//!
//! Source: B. Gruenbaum, G. Shephard (1987), Tilings and Patterns, section 2.1, for the uniform tilings and their symbols;
//! F. Y. Wu (2006), Dimers on two-dimensional lattices, and R. Shrock, F. Y. Wu (2000), Spanning trees on graphs and
//! lattices in d dimensions, for the closed forms.

use super::{Bond, UnitCell};
use crate::{Error, Result};
use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

/// `sqrt(3)`.
const ROOT3: f64 = 1.732_050_807_568_877_2;
const SQUARE: [[f64; 2]; 2] = [[1.0, 0.0], [0.0, 1.0]];

/// A closed form `a/b Cl_2(pi/k) / pi` as (a, b, k), with Clausen's function; `Cl_2(pi/2)` is Catalan's constant.
pub type ClausenMultiple = (u32, u32, u32);

/// A lattice of the field.
#[derive(Debug)]
pub struct NamedLattice {
    /// Its name.
    pub name: &'static str,
    /// Its other names, in lower case, words joined by hyphens.
    pub aliases: &'static [&'static str],
    /// How its cell is made, unless it is a clique insertion.
    cell: fn() -> Result<UnitCell>,
    /// Whether its finite sections are cut along lines of their own, not round whole cells.
    pub cut: bool,
    /// The lattice that it is the clique insertion of.
    pub inserted_into: Option<&'static str>,
    /// The lattice that it is the line graph of.
    pub line_graph_of: Option<&'static str>,
    /// As columns of vertices: steps (column, place) from a vertex to its neighbors, by its column plus place modulo the
    /// length. The clique insertions of such a lattice have theorem B.
    pub columns: &'static [&'static [(i32, i32)]],
    /// Its mirror lines, for theorems A and A'.
    pub mirrors: Option<Mirrors>,
    /// Its row operators as products of small tensors, for theorems D and E; the first is the one to take.
    pub row_tensors: &'static [RowTensor],
    /// Row operators of its matchings, the activity the weight of a dimer, letters those dimers that join two rows.
    pub matching_tensors: &'static [RowTensor],
    /// The limit of ln N / n for spanning trees, where there is a closed form.
    pub tree_entropy: Option<ClausenMultiple>,
    /// The limit of (2/n) ln M for perfect matchings on tori, where there is a closed form.
    pub dimer_entropy: Option<ClausenMultiple>,
}

/// A family of mirror lines `x = 0, spacing, ...`, and the sites of a rectangular cell.
#[derive(Debug)]
pub struct Mirrors {
    /// Width and height of the cell.
    pub cell: [f64; 2],
    /// The sites.
    pub sites: &'static [[f64; 2]],
    /// The lengths of bonds.
    pub lengths: &'static [f64],
    /// Mirror lines of a cell: two where no bond crosses any of them (theorem A), one else (theorem A').
    pub lines: u32,
    /// Whether sites are introduced column by column, not row by row: the order with fewer states in between.
    pub by_columns: bool,
}

/// A row operator as a product of small tensors; `entropy/model.rs` says what letters, faces and weights are.
#[derive(Debug)]
pub struct RowTensor {
    /// Whether the weight is of four letters round a face (two above, two below), not of two bonds and two letters at a
    /// vertex.
    pub face: bool,
    /// Whether the next row lies half a cell to the right.
    pub half: bool,
    /// Whether pairs of next neighbors in a face have a weight of their own.
    pub pairs: bool,
    /// Sites of the lattice a letter and step stand for.
    pub sites: u32,
    /// Occupied sites of each letter.
    pub occupied: &'static [u32],
    /// The theorem by which even rings bound the constant from above, if there is one.
    pub theorem: Option<&'static str>,
    /// The weight, a polynomial in the activity.
    pub weight: TensorWeight,
}

type TensorWeight = fn(usize, usize, usize, usize) -> [u64; 4];

/// A row without anything, for others to fill.
const ROW: NamedLattice = NamedLattice {
    name: "",
    aliases: &[],
    cell: || cell(SQUARE, &[[0.0; 2]], &[]),
    cut: false,
    inserted_into: None,
    line_graph_of: None,
    columns: &[],
    mirrors: None,
    row_tensors: &[],
    matching_tensors: &[],
    tree_entropy: None,
    dimer_entropy: None,
};
/// Mirror lines that no bond crosses, between bonds of length 1.
const MIRRORS: Mirrors = Mirrors { cell: [1.0, 1.0], sites: &[], lengths: &[1.0], lines: 2, by_columns: false };

/// Letters empty and occupied; or a link or dimer: empty, one end occupied, the other.
const SITE: &[u32] = &[0, 1];
const LINK: &[u32] = &[0, 1, 1];

const fn face(sites: u32, occupied: &'static [u32], weight: TensorWeight) -> RowTensor {
    RowTensor { face: true, half: false, pairs: false, sites, occupied, theorem: Some("E"), weight }
}

const fn vertex(sites: u32, occupied: &'static [u32], weight: TensorWeight) -> RowTensor {
    RowTensor { half: true, ..row(sites, occupied, weight) }
}

/// A vertex model whose next row lies straight below.
const fn row(sites: u32, occupied: &'static [u32], weight: TensorWeight) -> RowTensor {
    RowTensor { face: false, ..face(sites, occupied, weight) }
}

/// The lattice with a clique in place of each vertex of another.
const fn insertion(name: &'static str, aliases: &'static [&'static str], base: &'static str) -> NamedLattice {
    NamedLattice { name, aliases, inserted_into: Some(base), ..ROW }
}

/// Kagome's rectangular cell, and sites at multiples of an eighth of its sides.
const KAGOME: [f64; 2] = [2.0 * ROOT3, 2.0];
macro_rules! eighths {
    ($($x:literal $y:literal),*) => { &[$([$x as f64 / 8.0 * KAGOME[0], $y as f64 / 8.0 * KAGOME[1]]),*] };
}

/// The registry.
pub static LATTICES: [NamedLattice; 12] = [
    NamedLattice {
        name: "square",
        aliases: &["4-4-4-4"],
        cell: || cell(SQUARE, &[[0.0; 2]], &[[0, 0, 1, 0], [0, 0, 0, 1]]),
        columns: &[&[(0, 1), (0, -1), (1, 0), (-1, 0)]],
        // The lines are diagonals of the squares, which no bond crosses.
        mirrors: Some(Mirrors {
            cell: [SQRT_2, SQRT_2],
            sites: &[[0.0, 0.0], [SQRT_2 / 2.0, SQRT_2 / 2.0]],
            ..MIRRORS
        }),
        row_tensors: &[
            RowTensor { pairs: true, ..face(1, SITE, |a, b, c, d| allowed(a & b | c & d | a & c | b & d)) },
            // A row holds the sites of one sublattice; those of the other, between two rows, are summed over.
            face(2, SITE, |a, b, c, d| [1, u64::from(a + b + c + d == 0), 0, 0]),
        ],
        matching_tensors: &[row(1, SITE, |p, q, s, t| if p + q + s + t > 1 { [0; 4] } else { power(q) })],
        tree_entropy: Some((4, 1, 2)),
        dimer_entropy: Some((2, 1, 2)),
        ..ROW
    },
    NamedLattice {
        name: "king",
        aliases: &["moore", "crossed-square"],
        cell: || cell(SQUARE, &[[0.0; 2]], &[[0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, -1]]),
        mirrors: Some(Mirrors { sites: &[[0.0, 0.0]], lengths: &[1.0, SQRT_2], lines: 1, ..MIRRORS }),
        row_tensors: &[RowTensor {
            theorem: Some("A'"),
            ..face(1, SITE, |a, b, c, d| allowed(a & b | c & d | a & c | b & d | a & d | b & c))
        }],
        ..ROW
    },
    NamedLattice {
        name: "triangular",
        aliases: &["3-3-3-3-3-3"],
        cell: || {
            let basis = [[1.0, 0.0], [0.5, ROOT3 / 2.0]];
            cell(basis, &[[0.0; 2]], &[[0, 0, 1, 0], [0, 0, 0, 1], [0, 0, -1, 1]])
        },
        mirrors: Some(Mirrors { cell: [ROOT3, 1.0], sites: &[[0.0, 0.0], [ROOT3 / 2.0, 0.5]], ..MIRRORS }),
        // The next row lies half a site to the right: its letter c meets a and b.
        row_tensors: &[RowTensor {
            half: true,
            theorem: None,
            ..face(1, SITE, |a, b, c, d| allowed(a & b | c & d | a & c | b & d | b & c))
        }],
        tree_entropy: Some((5, 1, 3)),
        ..ROW
    },
    NamedLattice {
        name: "honeycomb",
        aliases: &["hexagonal", "6-6-6"],
        cell: || {
            let basis = [[ROOT3, 0.0], [ROOT3 / 2.0, 1.5]];
            let sites = [[0.0, 0.0], [ROOT3 / 2.0, 0.5]];
            cell(basis, &sites, &[[0, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]])
        },
        // Bricks.
        columns: &[&[(0, 1), (0, -1), (1, 0)], &[(0, 1), (0, -1), (-1, 0)]],
        mirrors: Some(Mirrors {
            cell: [ROOT3, 3.0],
            sites: &[[0.0, 0.0], [0.0, 1.0], [ROOT3 / 2.0, 1.5], [ROOT3 / 2.0, 2.5]],
            ..MIRRORS
        }),
        row_tensors: &[
            vertex(2, LINK, |p, q, s, t| {
                allowed(usize::from((p == 1 && s == 1) || (s == 2 && t == 1) || (q == 1) != (t == 2)))
            }),
            // Both half steps: letters are dimers, and the two sites between two dimers are summed over.
            face(4, LINK, |a, b, c, d| [1, u64::from(a != 2 && c != 2) + u64::from(b != 1 && d != 1), 0, 0]),
        ],
        tree_entropy: Some((5, 2, 3)),
        dimer_entropy: Some((1, 1, 3)),
        ..ROW
    },
    NamedLattice {
        name: "kagome",
        aliases: &["3-6-3-6", "trihexagonal"],
        cell: || {
            let sites = [[0.0, 0.0], [1.0, 0.0], [0.5, ROOT3 / 2.0]];
            let bonds = [[0, 1, 0, 0], [0, 2, 0, 0], [1, 2, 0, 0], [1, 0, 1, 0], [2, 0, 0, 1], [1, 2, 1, -1]];
            cell([[2.0, 0.0], [1.0, ROOT3]], &sites, &bonds)
        },
        line_graph_of: Some("honeycomb"),
        mirrors: Some(Mirrors { cell: KAGOME, sites: eighths![0 0, 2 2, 2 6, 4 4, 6 2, 6 6], ..MIRRORS }),
        row_tensors: &[vertex(3, SITE, |p, q, s, t| {
            // The vertex of the triangles that no row holds: empty, occupied.
            let fits = |f| u64::from(p + s + f <= 1 && f + t + q <= 1);
            if q == 0 { [fits(0), fits(1), 0, 0] } else { [0, fits(0), 0, 0] }
        })],
        ..ROW
    },
    NamedLattice {
        name: "triangular-kagome",
        // Triangles so large that they touch have their corners and side midpoints where these sites are.
        cell: || UnitCell::named("honeycomb")?.insert_cliques(&[true, true], |_| 0.5)?.line_graph(),
        line_graph_of: Some("3-12-12"),
        // Kagome's sites, and the middles of its bonds.
        mirrors: Some(Mirrors {
            cell: KAGOME,
            sites: eighths![
                0 0, 2 2, 2 6, 4 4, 6 2, 6 6, 1 1, 1 7, 2 0, 2 4, 3 3, 3 5, 5 3, 5 5, 6 0, 6 4, 7 1, 7 7
            ],
            lengths: &[0.5],
            ..MIRRORS
        }),
        ..ROW
    },
    NamedLattice {
        name: "martini",
        cell: || UnitCell::named("honeycomb")?.insert_cliques(&[true, false], |_| 1.0 / (1.0 + ROOT3)),
        dimer_entropy: Some((1, 2, 3)),
        ..ROW
    },
    NamedLattice {
        name: "4-8-8",
        aliases: &["truncated-square", "bathroom", "square-octagon", "four-eight-eight", "488"],
        cell: || {
            let (side, h) = (1.0 + SQRT_2, FRAC_1_SQRT_2);
            let sites = [[h, 0.0], [0.0, h], [-h, 0.0], [0.0, -h]];
            let bonds = [[0, 1, 0, 0], [1, 2, 0, 0], [2, 3, 0, 0], [3, 0, 0, 0], [0, 2, 1, 0], [1, 3, 0, 1]];
            cell([[side, 0.0], [0.0, side]], &sites, &bonds)
        },
        cut: true,
        mirrors: Some(Mirrors {
            cell: [1.0 + SQRT_2, 1.0 + SQRT_2],
            sites: &[
                [0.0, 1.0 / SQRT_2],
                [0.0, 1.0 + SQRT_2 - 1.0 / SQRT_2],
                [1.0 / SQRT_2, 0.0],
                [1.0 + SQRT_2 - 1.0 / SQRT_2, 0.0],
            ],
            lines: 1,
            by_columns: true,
            ..MIRRORS
        }),
        // Letters 1 and 2: the end of the link at the next diamond, and at this one.
        row_tensors: &[face(4, LINK, |a, b, c, d| {
            [1, u64::from(a != 1 && b != 2) + u64::from(c != 1 && d != 2), 0, 0]
        })],
        // The four sites of a diamond, each with a link: on the left, above, on the right, below.
        matching_tensors: &[row(4, SITE, |p, q, s, t| {
            let around = [p, s, q, t];
            let mut weight = power(q);
            weight[q + 1] += (0..4).filter(|&i| around[i] + around[(i + 1) % 4] == 0).count() as u64;
            if p + q + s + t == 0 {
                weight[2] += 2;
            }
            weight
        })],
        ..ROW
    },
    insertion("3-12-12", &["truncated-hexagonal"], "honeycomb"),
    insertion("3-6-24", &[], "3-12-12"),
    insertion("3-6-12-48", &[], "3-6-24"),
    insertion("modified-bathroom", &[], "square"),
];

/// A cell from its basis, its sites and rows `[from, to, dx, dy]` for its bonds.
fn cell(basis: [[f64; 2]; 2], sites: &[[f64; 2]], bonds: &[[i32; 4]]) -> Result<UnitCell> {
    let bond = |&[from, to, dx, dy]: &[i32; 4]| Bond::new(from as usize, to as usize, [dx, dy]);
    UnitCell::new(basis, sites.to_vec(), bonds.iter().map(bond).collect())
}

/// The weight one of what has no clash.
fn allowed(clash: usize) -> [u64; 4] {
    [u64::from(clash == 0), 0, 0, 0]
}

/// A power of the activity, below the fourth.
fn power(exponent: usize) -> [u64; 4] {
    std::array::from_fn(|k| u64::from(k == exponent))
}

impl NamedLattice {
    /// The row with this name.
    ///
    /// # Errors
    /// [`Error::Domain`] if there is none.
    pub fn named(name: &str) -> Result<&'static Self> {
        LATTICES
            .iter()
            .find(|lattice| lattice.name == name)
            .ok_or_else(|| Error::domain("lattice", format!("{name:?}"), "the name of a lattice with a unit cell"))
    }

    /// Its unit cell.
    ///
    /// # Errors
    /// None for a row of the registry.
    pub fn unit_cell(&self) -> Result<UnitCell> {
        self.inserted_into.map_or_else(self.cell, |base| UnitCell::named(base)?.clique_insert())
    }
}

impl UnitCell {
    /// The unit cell of a lattice by its name in [`LATTICES`].
    ///
    /// The basis vectors are those of the lattice it is made from: of `honeycomb` for `martini`, `3-12-12`, `3-6-24`,
    /// `3-6-12-48` and `triangular-kagome`, of `square` for `modified-bathroom`. The diagonals of `triangular` join
    /// `(i+1, j)` to `(i, j+1)`; the other choice is its mirror image.
    ///
    /// # Errors
    /// [`Error::Domain`] for any other name.
    pub fn named(name: &str) -> Result<Self> {
        NamedLattice::named(name)?.unit_cell()
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
            ("martini", 4, 3),
            ("4-8-8", 4, 3),
            ("3-12-12", 6, 3),
            ("3-6-24", 18, 3),
            ("3-6-12-48", 54, 3),
            ("modified-bathroom", 4, 4),
        ];
        assert_eq!(table.map(|row| row.0), LATTICES.each_ref().map(|row| row.name));
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
        let equal = ["square", "triangular", "honeycomb", "kagome", "4-8-8", "martini", "3-12-12"];
        for name in equal.into_iter().chain(["triangular-kagome"]) {
            let (shortest, longest) = lengths(name);
            assert!(longest - shortest < 1e-12, "{name}: {shortest} {longest}");
        }
        assert!((lengths("4-8-8").0 - 1.0).abs() < 1e-12);
        assert!((lengths("king").1 - SQRT_2).abs() < 1e-12);
    }

    #[test]
    fn rows_refer_to_each_other_by_names_that_are_there_and_every_name_is_one_lattice_s() {
        let names: Vec<&str> =
            LATTICES.iter().flat_map(|row| [row.name].into_iter().chain(row.aliases.iter().copied())).collect();
        assert!(names.iter().enumerate().all(|(i, name)| !names[..i].contains(name)));
        for row in &LATTICES {
            for other in [row.inserted_into, row.line_graph_of].into_iter().flatten() {
                assert!(NamedLattice::named(other).is_ok(), "{}", row.name);
            }
            let sites = row.unit_cell().unwrap().sites().len() as u32;
            let mut tensors = row.row_tensors.iter().chain(row.matching_tensors);
            assert!(tensors.all(|tensor| tensor.sites % sites == 0), "{}", row.name);
        }
    }

    #[test]
    fn an_unknown_name_is_refused() {
        assert!(matches!(UnitCell::named("pentagonal"), Err(Error::Domain { name: "lattice", .. })));
    }
}
