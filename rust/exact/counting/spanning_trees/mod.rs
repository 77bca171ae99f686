//! Spanning trees: the determinant of the grounded Laplacian, an exact integer.
//!
//! Kirchhoff's theorem: with any vertex removed, det L is the number of spanning trees; parallel edges count one by one and
//! loops not at all. Square lattices and tori have their eigenvalues in closed form ([`product`]), cylinders one banded block
//! for each wave vector round them ([`cylinder`]); every other graph is eliminated modulo primes in an order of little fill.
//! The size of the answer is known beforehand: from the closed form, from the same elimination in floating point with a proved
//! error, or from the degrees,
//!
//!   N <= (n/(n-1))^(n-1) prod d_v / (2m)      (the inequality of the means for the nonzero eigenvalues of D^-1/2 L D^-1/2).
//!
//! Source: G. Kirchhoff (1847), Ueber die Aufloesung der Gleichungen, Ann. Phys. 72 (the matrix-tree theorem).

pub mod cylinder;
pub mod kirchhoff;
pub mod product;

use super::evaluation::Options;
use super::exact::{Modular, edge_words, one_value};
use crate::graphs::Graph;
use crate::lattices::Bond;
use crate::monitor::{Monitor, Progress};
use crate::numeric::elimination::{self, MatrixKind, PlannedMatrix};
use crate::numeric::residue::{MOST_SHORT_BITS, Modulus};
use crate::{Error, Result, memory, parallel};
use cylinder::Cylinder;
use product::{SquareGrid, Torus};
use std::f64::consts::LN_2;
use std::sync::OnceLock;

/// What trees are counted on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeProblem {
    /// The square lattice, neither axis, the second or both closed.
    Square(SquareGrid),
    /// A periodic lattice on a torus.
    Torus(Torus),
    /// A periodic lattice on a cylinder.
    Cylinder(Cylinder),
    /// Any graph.
    Graph(Graph),
}

/// A number of trees that is sought.
#[derive(Debug)]
pub struct Trees {
    problem: TreeProblem,
    method: TreeMethod,
    bits: f64,
}

#[derive(Debug)]
enum TreeMethod {
    /// The answer is known at once.
    Known(u64),
    /// Eigenvalues in closed form.
    Product,
    /// A banded block for each wave vector; elimination of the whole for primes that divide a pivot of theirs.
    Strips(Graph, OnceLock<Box<Grounded>>),
    /// Elimination of the grounded Laplacian.
    Elimination(Box<Grounded>),
}

/// A connected graph, grounded at a vertex of highest degree; at another one for primes that divide a pivot.
#[derive(Debug)]
struct Grounded {
    matrix: PlannedMatrix,
    graph: Graph,
    other: OnceLock<PlannedMatrix>,
}

impl Grounded {
    fn new(graph: &Graph, progress: &Progress) -> Result<Self> {
        let degrees = graph.degrees();
        let highest = (0..graph.vertices()).max_by_key(|&v| (degrees[v], v)).unwrap_or(0);
        let matrix = laplacian(graph, highest, progress)?;
        Ok(Self { matrix, graph: graph.clone(), other: OnceLock::new() })
    }

    fn residue(&self, modulus: u64, progress: &Progress) -> Result<u64> {
        if let Some(found) = self.matrix.evaluate(modulus, progress)? {
            return Ok(found);
        }
        let other = planned_once(&self.other, || {
            let degrees = self.graph.degrees();
            let lowest = (0..self.graph.vertices()).min_by_key(|&v| (degrees[v], v)).unwrap_or(0);
            laplacian(&self.graph, lowest, progress)
        })?;
        other.evaluate(modulus, progress)?.ok_or_else(|| Error::Check {
            what: "an elimination",
            detail: format!("{modulus} divides a pivot whichever vertex is removed"),
        })
    }

    /// The logarithm of the number of trees and a bound on its error.
    fn log(&self, progress: &Progress) -> Result<(f64, f64)> {
        let degrees = self.graph.degrees();
        let ground = (0..self.graph.vertices()).max_by_key(|&v| (degrees[v], v)).unwrap_or(0) as u32;
        let mut to_ground = vec![0.0; self.graph.vertices() - 1];
        let mut edges = Vec::with_capacity(self.graph.edges().len());
        let name = |v: u32| v - u32::from(v > ground);
        for &(u, v) in self.graph.edges().iter().filter(|(u, v)| u != v) {
            match (u == ground, v == ground) {
                (true, _) => to_ground[name(v) as usize] += 1.0,
                (_, true) => to_ground[name(u) as usize] += 1.0,
                _ => edges.push((name(u), name(v), 1.0)),
            }
        }
        elimination::log_determinant(self.matrix.plan(), &edges, &to_ground, progress)
    }
}

/// What a cell holds, planned outside of it if there is nothing yet: an interrupt leaves it empty.
fn planned_once<T>(cell: &OnceLock<T>, plan: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(planned) = cell.get() {
        return Ok(planned);
    }
    let planned = plan()?;
    Ok(cell.get_or_init(|| planned))
}

/// The Laplacian without the row and column of a vertex.
fn laplacian(graph: &Graph, ground: usize, progress: &Progress) -> Result<PlannedMatrix> {
    let name = |v: u32| v - u32::from(v as usize > ground);
    let mut degrees = vec![0i64; graph.vertices()];
    let mut entries = Vec::with_capacity(graph.edges().len() + graph.vertices());
    for &(u, v) in graph.edges().iter().filter(|(u, v)| u != v) {
        degrees[u as usize] += 1;
        degrees[v as usize] += 1;
        if u as usize != ground && v as usize != ground {
            entries.push((name(u), name(v), -1));
        }
    }
    let kept = (0..graph.vertices() as u32).filter(|&v| v as usize != ground);
    entries.extend(kept.map(|v| (name(v), name(v), degrees[v as usize])));
    let nodes = graph.vertices() - 1;
    PlannedMatrix::new(MatrixKind::Symmetric, nodes, &entries, &vec![false; nodes], progress)
}

impl Trees {
    /// Plans a count.
    ///
    /// # Errors
    /// [`Error::Domain`] for a graph without vertices.
    pub fn new(problem: TreeProblem, progress: &Progress) -> Result<Self> {
        let (method, bits) = match &problem {
            TreeProblem::Square(square) => {
                memory::charge("an exact count of spanning trees", square.rows as u128 * square.cols as u128 / 4)?;
                (TreeMethod::Product, square.bits())
            }
            TreeProblem::Torus(torus) => (TreeMethod::Product, torus.bits()),
            TreeProblem::Cylinder(cylinder) => {
                let graph = cylinder.graph()?;
                match graph.vertices() {
                    1 => (TreeMethod::Known(1), 1.0),
                    _ if graph.components().1 > 1 => (TreeMethod::Known(0), 1.0),
                    _ => (TreeMethod::Strips(graph, OnceLock::new()), cylinder.bits()),
                }
            }
            TreeProblem::Graph(graph) => match graph.vertices() {
                0 => {
                    return Err(Error::domain("graph", "a graph without vertices", "a graph with a vertex"));
                }
                1 => (TreeMethod::Known(1), 1.0),
                _ if graph.components().1 > 1 => (TreeMethod::Known(0), 1.0),
                _ => {
                    let grounded = Grounded::new(graph, progress)?;
                    let (log, error) = grounded.log(progress)?;
                    (TreeMethod::Elimination(Box::new(grounded)), (log + error) / LN_2 * (1.0 + 1e-12) + 0.01)
                }
            },
        };
        Ok(Self { problem, method, bits })
    }

    /// The number modulo a prime.
    fn residue(&self, modulus: Modulus, progress: &Progress) -> Result<u64> {
        match (&self.method, &self.problem) {
            (TreeMethod::Known(count), _) => Ok(*count),
            (TreeMethod::Elimination(grounded), _) => grounded.residue(modulus.value(), progress),
            (TreeMethod::Product, TreeProblem::Square(square)) => Ok(square.residue(modulus.value())),
            (TreeMethod::Product, TreeProblem::Torus(torus)) => torus.residue(modulus.value(), progress),
            (TreeMethod::Strips(graph, whole), TreeProblem::Cylinder(cylinder)) => {
                match cylinder.residue(modulus.value(), progress)? {
                    Some(residue) => Ok(residue),
                    None => {
                        let grounded = planned_once(whole, || Grounded::new(graph, progress).map(Box::new))?;
                        grounded.residue(modulus.value(), progress)
                    }
                }
            }
            (TreeMethod::Product | TreeMethod::Strips(..), _) => unreachable!("a method belongs to its problem"),
        }
    }
}

/// Graphs of so many edges are planned on the pool, where the monitor is asked; as those with perfect matchings.
const LARGE: usize = 5000;

/// Plans a count; see [`Trees::new`].
///
/// # Errors
/// As [`Trees::new`], and the monitor's error.
pub fn plan(problem: TreeProblem, monitor: &mut dyn Monitor) -> Result<Trees> {
    let is_large = matches!(&problem, TreeProblem::Graph(graph) if graph.edges().len() > LARGE);
    parallel::run_one(!is_large, monitor, |progress| Trees::new(problem, progress))
}

/// The natural logarithm of the number of spanning trees and a bound on its error; minus infinity if there are none.
///
/// # Errors
/// As [`Trees::new`].
pub fn log_spanning_trees(problem: &TreeProblem, monitor: &mut dyn Monitor) -> Result<(f64, f64)> {
    parallel::run(1, 0, monitor, |progress| log_trees(problem, progress))
}

fn log_trees(problem: &TreeProblem, progress: &Progress) -> Result<(f64, f64)> {
    match problem {
        TreeProblem::Square(square) => Ok(square.log()),
        TreeProblem::Torus(_) | TreeProblem::Cylinder(_) => {
            Err(Error::domain("problem", "a periodic lattice", "a graph or a square lattice"))
        }
        TreeProblem::Graph(graph) => match graph.vertices() {
            1 => Ok((0.0, 0.0)),
            n if n > 1 && graph.components().1 > 1 => Ok((f64::NEG_INFINITY, 0.0)),
            n if n > 1 => Grounded::new(graph, progress)?.log(progress),
            _ => Trees::new(problem.clone(), progress).map(|_| (0.0, 0.0)),
        },
    }
}

/// The bound from the degrees of so many copies of some vertices: the inequality of the means.
fn bits_by_means(degrees: &[u64], copies: f64) -> f64 {
    let n = degrees.len() as f64 * copies;
    if degrees.contains(&0) || n < 2.0 {
        return 1.0;
    }
    let logs: f64 = degrees.iter().map(|&d| (d as f64).log2()).sum();
    let ends = degrees.iter().sum::<u64>() as f64 * copies;
    let means = (n - 1.0) * (1.0 / (n - 1.0)).ln_1p() / LN_2;
    (means + copies * logs - ends.log2()).max(1.0) * (1.0 + 1e-9) + 0.01
}

/// The words that tell bonds.
fn bond_words(bonds: &[Bond]) -> impl Iterator<Item = u64> {
    bonds.iter().flat_map(|bond| {
        let [x, y] = bond.offset.map(|d| u64::from(d as u32));
        [bond.from as u64, bond.to as u64, x, y]
    })
}

impl Modular for Trees {
    fn description(&self) -> Vec<u64> {
        let mut words = vec![u64::from_le_bytes(*b"sp.trees")];
        match &self.problem {
            TreeProblem::Square(square) => {
                let closed = square.closed.map(u64::from);
                words.extend([0, square.rows as u64, square.cols as u64, closed[0], closed[1]]);
            }
            TreeProblem::Torus(torus) => {
                let extent = torus.extent.map(|length| length as u64);
                words.extend([1, torus.sites as u64, extent[0], extent[1], torus.twist as u64]);
                words.extend(bond_words(&torus.bonds));
            }
            TreeProblem::Cylinder(cylinder) => {
                let extent = cylinder.extent.map(|length| length as u64);
                words.extend([3, cylinder.sites as u64, extent[0], extent[1]]);
                words.extend(bond_words(&cylinder.bonds));
            }
            TreeProblem::Graph(graph) => {
                words.extend([2, graph.vertices() as u64]);
                words.extend(edge_words(graph));
            }
        }
        words
    }

    fn bits(&self) -> f64 {
        self.bits
    }

    fn is_short(&self) -> bool {
        matches!(self.method, TreeMethod::Elimination(_)) && self.bits < MOST_SHORT_BITS
    }

    fn method(&self) -> (&'static str, u128, f64) {
        match (&self.method, &self.problem) {
            (TreeMethod::Elimination(grounded), _) => {
                ("sparse elimination", grounded.matrix.bytes(), grounded.matrix.work())
            }
            (TreeMethod::Product, TreeProblem::Square(square)) => {
                ("product of cosines", 8 * square.cols as u128, square.work())
            }
            (TreeMethod::Product, TreeProblem::Torus(torus)) => {
                ("product of cosines", 8 * u128::from(torus.order()), torus.work())
            }
            (TreeMethod::Strips(..), TreeProblem::Cylinder(cylinder)) => {
                ("strips round a cylinder", cylinder.bytes(), cylinder.work())
            }
            _ => ("known", 0, 1.0),
        }
    }

    fn order(&self) -> u64 {
        match (&self.method, &self.problem) {
            (TreeMethod::Product, TreeProblem::Square(square)) => square.order(),
            (TreeMethod::Product, TreeProblem::Torus(torus)) => torus.order(),
            (TreeMethod::Strips(..), TreeProblem::Cylinder(cylinder)) => cylinder.order(),
            _ => 1,
        }
    }

    fn residues(&self, moduli: &[Modulus], options: &Options, monitor: &mut dyn Monitor) -> Result<Vec<u64>> {
        one_value(self, "the fronts of the Laplacian", moduli, options, monitor, |modulus, progress| {
            self.residue(modulus, progress)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::exact;
    use crate::lattices::{Lattice, UnitCell};
    use num_bigint::BigInt;

    fn solve(problem: TreeProblem) -> BigInt {
        exact::tests::solve(Trees::new(problem, &Progress::default()).unwrap())
    }

    #[test]
    fn products_and_elimination_agree() {
        for name in ["square", "triangular", "honeycomb", "kagome", "4-8-8", "king", "3-12-12"] {
            let cell = UnitCell::named(name).unwrap();
            for extent in [[1, 1], [1, 2], [2, 1], [2, 2], [1, 5], [3, 4], [5, 3], [4, 6]] {
                let lattice = Lattice::new(cell.clone(), extent, [true, true]).unwrap();
                let torus = Torus { sites: cell.sites().len(), bonds: cell.bonds().to_vec(), extent, twist: 0 };
                let graph = solve(TreeProblem::Graph(lattice.section().unwrap().graph().unwrap()));
                assert_eq!(solve(TreeProblem::Torus(torus)), graph, "{name} {extent:?}");
            }
        }
        for name in ["square", "triangular", "honeycomb", "kagome", "martini", "king", "3-12-12"] {
            let cell = UnitCell::named(name).unwrap();
            for extent in [[1, 1], [1, 2], [2, 1], [2, 2], [1, 5], [3, 4], [5, 3], [2, 17], [4, 6]] {
                let lattice = Lattice::new(cell.clone(), extent, [false, true]).unwrap();
                let cylinder = Cylinder { sites: cell.sites().len(), bonds: cell.bonds().to_vec(), extent };
                let graph = lattice.section().unwrap().graph().unwrap();
                let edges = |graph: &Graph| {
                    let mut edges: Vec<_> = graph.edges().iter().map(|&(u, v)| (u.min(v), u.max(v))).collect();
                    edges.sort_unstable();
                    edges
                };
                assert_eq!(edges(&cylinder.graph().unwrap()), edges(&graph), "{name} {extent:?}");
                assert_eq!(
                    solve(TreeProblem::Cylinder(cylinder)),
                    solve(TreeProblem::Graph(graph)),
                    "{name} {extent:?}"
                );
            }
        }
        let cell = UnitCell::named("square").unwrap();
        for closed in [[false, false], [false, true], [true, true]] {
            for (rows, cols) in
                [(1, 1), (1, 2), (2, 1), (2, 2), (5, 1), (1, 7), (3, 4), (6, 5), (7, 9), (20, 21), (18, 4)]
            {
                let lattice = Lattice::new(cell.clone(), [rows, cols], closed).unwrap();
                let graph = solve(TreeProblem::Graph(lattice.section().unwrap().graph().unwrap()));
                assert_eq!(
                    solve(TreeProblem::Square(SquareGrid { rows, cols, closed })),
                    graph,
                    "{rows} x {cols} {closed:?}"
                );
            }
        }
    }

    #[test]
    fn a_prime_that_divides_a_pivot_is_left_to_elimination() {
        // The square lattice, 4 around: the first pivot of k = 2 is 3 - 2 cos(pi) = 5.
        let bonds = UnitCell::named("square").unwrap().bonds().to_vec();
        let cylinder = Cylinder { sites: 1, bonds, extent: [3, 4] };
        assert_eq!(cylinder.residue(5, &Progress::default()).unwrap(), None);
        let trees = Trees::new(TreeProblem::Cylinder(cylinder.clone()), &Progress::default()).unwrap();
        let count = solve(TreeProblem::Cylinder(cylinder));
        let TreeMethod::Strips(graph, _) = &trees.method else { panic!("no strips") };
        assert_eq!(count, solve(TreeProblem::Graph(graph.clone())));
    }

    #[test]
    fn a_grid_has_the_trees_one_knows() {
        let known = "5694319004079097795957215725765328371712000".parse::<BigInt>().unwrap();
        assert_eq!(solve(TreeProblem::Square(SquareGrid { rows: 10, cols: 10, closed: [false; 2] })), known);
    }
}
