//! Perfect matchings (dimer coverings) of graphs on the plane, the cylinder and the torus, as exact integers.
//!
//! With a Kasteleyn orientation ([`embedding`]) the count is the Pfaffian of the signed adjacency matrix; on a torus half the
//! signed sum of four. For a bipartite graph it is the determinant of a matrix of half the size. Square grids have their
//! eigenvalues in closed form ([`product`]).
//!
//! Rows and columns are paired by a perfect matching M0, whose term is counted as +. The leading minors are then numbers of
//! perfect matchings of the graph without some pairs of M0, all terms of one sign: an alternating loop encloses an even number
//! of vertices, for those inside are paired by M0 among themselves. So no pivot is zero, in any order of the pairs. On the
//! torus the pairs with an edge that goes round come last, where pivots are searched for.
//!
//! Bounds: M <= prod (d_v!)^(1/(2 d_v)) for simple graphs (Bregman; Kahn and Lovasz), prod sqrt(d_v) for all.
//!
//! Sources: P. W. Kasteleyn (1963), Dimer statistics and phase transitions, J. Math. Phys. 4; the bound: N. Alon, S. Friedland
//! (2008), The maximum number of perfect matchings in graphs with a given degree sequence, Electron. J. Combin. 15, N13.

pub mod coupling;
pub mod embedding;
pub mod even_subgraphs;
pub mod product;

use super::evaluation::Options;
use super::exact::{Modular, edge_words, one_value};
use crate::graphs::{Graph, maximum_matching};
use crate::monitor::{Monitor, Progress};
use crate::numeric::elimination::{MatrixKind, PlannedMatrix};
use crate::numeric::residue::{MOST_SHORT_BITS, Modulus, Montgomery};
use crate::{Error, Result, memory, parallel};
use embedding::Embedding;
use product::ProductGrid;

/// What perfect matchings are counted on.
#[derive(Clone, Debug)]
pub enum MatchingProblem {
    /// The free square lattice of so many rows and columns.
    Grid(ProductGrid),
    /// A graph drawn on a plane or torus, with the windings of its edges.
    Drawn {
        /// The graph.
        graph: Graph,
        /// The drawing.
        embedding: Embedding,
        /// How often each edge goes round each axis.
        windings: Vec<[i32; 2]>,
    },
}

impl MatchingProblem {
    /// A graph drawn with these vectors along its edges.
    ///
    /// # Errors
    /// [`Error::Domain`] if two edges leave a vertex in the same direction; [`Error::Shape`] unless there is one vector and one
    /// pair of windings for each edge.
    pub fn drawn(graph: Graph, displacements: &[[f64; 2]], windings: Vec<[i32; 2]>) -> Result<Self> {
        let edges = graph.edges().len();
        for (name, len) in [("displacements", displacements.len()), ("windings", windings.len())] {
            if len != edges {
                return Err(Error::shape(name, format!("({edges}, 2)"), format!("({len}, 2)")));
            }
        }
        let embedding = Embedding::from_displacements(&graph, displacements).ok_or_else(|| {
            Error::domain("graph", "two edges in one direction", "drawn with one edge in each direction from a vertex")
        })?;
        Ok(Self::Drawn { graph, embedding, windings })
    }

    /// A graph with the darts at each vertex counterclockwise: 2e at the first end of edge e, 2e + 1 at its second.
    ///
    /// # Errors
    /// [`Error::Domain`] if they are not its darts.
    pub fn embedded(graph: Graph, rotation: Vec<Vec<u32>>) -> Result<Self> {
        let mut at = vec![u32::MAX; 2 * graph.edges().len()];
        for (v, darts) in rotation.iter().enumerate() {
            for &dart in darts {
                if let Some(place) = at.get_mut(dart as usize) {
                    *place = v as u32;
                }
            }
        }
        let ends = graph.edges().iter().flat_map(|&(u, v)| [u, v]);
        let listed = rotation.iter().map(Vec::len).sum::<usize>();
        if listed != at.len() || rotation.len() != graph.vertices() || !ends.eq(at) {
            return Err(Error::domain(
                "rotation",
                format!("{listed} darts"),
                "each dart once, at the vertex it leaves",
            ));
        }
        let windings = vec![[0, 0]; graph.edges().len()];
        Ok(Self::Drawn { embedding: Embedding::new(&graph, rotation), graph, windings })
    }
}

/// A number of perfect matchings that is sought.
#[derive(Debug)]
pub struct Dimers {
    problem: MatchingProblem,
    method: PerfectMatchingMethod,
    bits: f64,
}

#[derive(Debug)]
enum PerfectMatchingMethod {
    /// The answer is known at once.
    Known(u64),
    Product,
    /// One determinant or Pfaffian.
    Plane(Box<Signed>),
    /// Four of them, each with its sign.
    Torus(Box<[Signed; 4]>),
}

/// A matrix whose determinant or Pfaffian is a signed count of perfect matchings.
#[derive(Debug)]
struct Signed {
    matrix: PlannedMatrix,
    /// Whether the term of the reference matching, or the sign of the form, is -1.
    negative: bool,
}

impl Signed {
    fn residue(&self, modulus: u64, progress: &Progress) -> Result<u64> {
        let found = self.matrix.evaluate(modulus, progress)?.ok_or_else(|| Error::Check {
            what: "an elimination",
            detail: format!("{modulus} divides a number of perfect matchings that is a pivot"),
        })?;
        Ok(if self.negative && found > 0 { modulus - found } else { found })
    }
}

/// `log2` of a number that the count does not exceed.
pub(super) fn log2_bound(graph: &Graph) -> f64 {
    let mut sorted: Vec<(u32, u32)> = graph.edges().iter().map(|&(u, v)| (u.min(v), u.max(v))).collect();
    sorted.sort_unstable();
    let simple = sorted.windows(2).all(|pair| pair[0] != pair[1]);
    let bits = graph.degrees().into_iter().map(|degree| {
        let d = degree as f64;
        if simple {
            (1..=degree).map(|i| (i as f64).log2()).sum::<f64>() / (2.0 * d).max(1.0)
        } else {
            d.max(1.0).log2() / 2.0
        }
    });
    bits.sum::<f64>() * (1.0 + 1e-9) + 0.01
}

/// Graphs of so many edges are planned on the pool. Larger: a stop is heard later; smaller: a pool is woken for little. Not tuned.
const LARGE: usize = 5000;

impl Dimers {
    /// Plans a count; that of a large graph on the pool, where it can be stopped.
    ///
    /// # Errors
    /// [`Error::Domain`] if the graph is not drawn on a plane, nor on the torus of its windings; [`Error::TooLarge`] for a
    /// number beyond memory; the monitor's error.
    pub fn plan(problem: MatchingProblem, monitor: &mut dyn Monitor) -> Result<Self> {
        let is_large = matches!(&problem, MatchingProblem::Drawn { graph, .. } if graph.edges().len() > LARGE);
        parallel::run_one(!is_large, monitor, |progress| Self::new(problem, progress))
    }

    fn new(problem: MatchingProblem, progress: &Progress) -> Result<Self> {
        if let MatchingProblem::Grid(grid) = &problem {
            memory::charge("an exact count of perfect matchings", grid.rows as u128 * grid.cols as u128 / 8)?;
        }
        let (method, bits) = match &problem {
            MatchingProblem::Grid(grid) if grid.rows % 2 == 1 && grid.cols % 2 == 1 => {
                (PerfectMatchingMethod::Known(0), 1.0)
            }
            MatchingProblem::Grid(grid) => (PerfectMatchingMethod::Product, grid.bits()),
            MatchingProblem::Drawn { graph, embedding, windings } => {
                let genus = embedding.genus();
                let loops = if genus == 1 { embedding.loops(windings) } else { None };
                if genus > 0 && loops.is_none() {
                    return Err(Error::domain(
                        "method",
                        format!("a graph drawn on a surface of genus {genus}"),
                        "\"frontier\" for a graph that is not drawn on a plane, cylinder or torus",
                    ));
                }
                (Self::drawn(graph, embedding, windings, loops, progress)?, log2_bound(graph))
            }
        };
        Ok(Self { problem, method, bits })
    }

    fn drawn(
        graph: &Graph,
        embedding: &Embedding,
        windings: &[[i32; 2]],
        loops: Option<[Vec<u32>; 2]>,
        progress: &Progress,
    ) -> Result<PerfectMatchingMethod> {
        if graph.vertices() == 0 {
            return Ok(PerfectMatchingMethod::Known(1));
        }
        let mate: Option<Vec<u32>> = maximum_matching(graph, progress)?.into_iter().collect();
        let Some(mate) = mate else { return Ok(PerfectMatchingMethod::Known(0)) };
        let mut matched = vec![u32::MAX; graph.vertices()];
        for (e, &(u, v)) in graph.edges().iter().enumerate() {
            if mate[u as usize] == v && matched[u as usize] == u32::MAX {
                (matched[u as usize], matched[v as usize]) = (e as u32, e as u32);
            }
        }
        let Some(flipped) = embedding.orientation() else { return Ok(PerfectMatchingMethod::Known(0)) };
        let pairs = MatchedPairs::new(graph, &mate);
        let Some(loops) = loops else {
            let nowhere = vec![false; pairs.count];
            return Ok(PerfectMatchingMethod::Plane(Box::new(
                pairs.signed(graph, &flipped, &matched, &nowhere, false, progress)?,
            )));
        };
        let last = pairs.going_round(graph, windings);
        let border = last.iter().filter(|&&last| last).count() as u128;
        memory::charge("planning the last front of a Kasteleyn matrix", 8 * border * border)?; // a clique, twice
        let form = |class: usize| {
            let odd = |&[x, y]: &[i32; 2]| ((class & 1) as i32 * x + (class >> 1) as i32 * y) & 1 == 1;
            let flipped: Vec<bool> = flipped.iter().zip(windings).map(|(&flip, winding)| flip ^ odd(winding)).collect();
            let arf = loops.iter().all(|path| embedding.form(path, |e| flipped[e], &matched));
            pairs.signed(graph, &flipped, &matched, &last, arf, progress)
        };
        Ok(PerfectMatchingMethod::Torus(Box::new([form(0)?, form(1)?, form(2)?, form(3)?])))
    }

    /// The number modulo a prime.
    fn residue(&self, modulus: Modulus, progress: &Progress) -> Result<u64> {
        let modulus = modulus.value();
        match (&self.method, &self.problem) {
            (PerfectMatchingMethod::Known(count), _) => Ok(*count),
            (PerfectMatchingMethod::Plane(signed), _) => signed.residue(modulus, progress),
            (PerfectMatchingMethod::Torus(forms), _) => {
                let field = Montgomery::new(modulus);
                let residues =
                    forms.iter().map(|signed| signed.residue(modulus, progress)).collect::<Result<Vec<u64>>>()?;
                let sum = residues.iter().fold(0, |sum, &x| (sum + x) % modulus);
                Ok(field.leave(field.mul(field.enter(sum), field.enter(modulus / 2 + 1))))
            }
            (PerfectMatchingMethod::Product, MatchingProblem::Grid(grid)) => Ok(grid.residue(modulus)),
            (PerfectMatchingMethod::Product, MatchingProblem::Drawn { .. }) => {
                unreachable!("only grids have a product")
            }
        }
    }
}

/// The pairs of a perfect matching, as rows and columns of a matrix.
struct MatchedPairs {
    count: usize,
    /// The pair of each vertex.
    pair: Vec<u32>,
    /// Which of the two it is: of a bipartite graph the first of each pair has the same color.
    second: Vec<bool>,
    bipartite: bool,
}

impl MatchedPairs {
    fn new(graph: &Graph, mate: &[u32]) -> Self {
        let colors = graph.two_coloring();
        let (mut pair, mut count) = (vec![0; mate.len()], 0);
        let mut second = vec![false; mate.len()];
        for (v, &u) in mate.iter().enumerate() {
            if v < u as usize {
                (pair[v], pair[u as usize]) = (count, count);
                count += 1;
                let turned = colors.as_ref().is_some_and(|colors| colors[v]);
                (second[v], second[u as usize]) = (turned, !turned);
            }
        }
        Self { count: count as usize, pair, second, bipartite: colors.is_some() }
    }

    /// Pairs with the outer end of an edge that goes round: without them the rest lies on a plane.
    fn going_round(&self, graph: &Graph, windings: &[[i32; 2]]) -> Vec<bool> {
        let mut last = vec![false; self.count];
        for (&(u, v), winding) in graph.edges().iter().zip(windings) {
            for &around in winding.iter().filter(|&&around| around != 0) {
                last[self.pair[if around > 0 { u } else { v } as usize] as usize] = true;
            }
        }
        last
    }

    /// The matrix of an orientation, with the sign of its reference term times that of the form.
    fn signed(
        &self,
        graph: &Graph,
        flipped: &[bool],
        matched: &[u32],
        last: &[bool],
        arf: bool,
        progress: &Progress,
    ) -> Result<Signed> {
        let mut negative = arf;
        let mut entries = Vec::with_capacity(graph.edges().len());
        for (e, &(u, v)) in graph.edges().iter().enumerate() {
            if u == v {
                continue;
            }
            // The edge points from `from` to `to`: A[from, to] = 1.
            let (from, to) = if flipped[e] { (v, u) } else { (u, v) };
            let place = |v: u32| 2 * self.pair[v as usize] + u32::from(self.second[v as usize]);
            let forward = !self.second[from as usize];
            if matched[u as usize] == e as u32 && matched[v as usize] == e as u32 {
                negative ^= !forward;
            }
            if self.bipartite {
                let (first, second) = if forward { (from, to) } else { (to, from) };
                let value = if forward { 1 } else { -1 };
                entries.push((self.pair[first as usize], self.pair[second as usize], value));
            } else {
                entries.push((place(from), place(to), 1));
            }
        }
        let kind = if self.bipartite { MatrixKind::General } else { MatrixKind::Skew };
        Ok(Signed { matrix: PlannedMatrix::new(kind, self.count, &entries, last, progress)?, negative })
    }
}

impl Modular for Dimers {
    fn description(&self) -> Vec<u64> {
        let mut words = vec![u64::from_le_bytes(*b"dimers\0\0")];
        match &self.problem {
            MatchingProblem::Grid(grid) => words.extend([0, grid.rows as u64, grid.cols as u64]),
            MatchingProblem::Drawn { graph, windings, .. } => {
                words.extend([1, graph.vertices() as u64]);
                words.extend(edge_words(graph));
                words.extend(
                    windings.iter().map(|winding| u64::from(winding[0] as u32) << 32 | u64::from(winding[1] as u32)),
                );
            }
        }
        words
    }

    fn bits(&self) -> f64 {
        self.bits
    }

    fn is_short(&self) -> bool {
        let PerfectMatchingMethod::Plane(signed) = &self.method else { return false };
        signed.matrix.kind() == MatrixKind::General && self.bits < MOST_SHORT_BITS
    }

    fn method(&self) -> (&'static str, u128, f64) {
        match (&self.method, &self.problem) {
            (PerfectMatchingMethod::Plane(signed), _) => {
                ("Kasteleyn elimination", signed.matrix.bytes(), signed.matrix.work())
            }
            (PerfectMatchingMethod::Torus(forms), _) => {
                ("four Pfaffians", forms[0].matrix.bytes(), 4.0 * forms[0].matrix.work())
            }
            (PerfectMatchingMethod::Product, MatchingProblem::Grid(grid)) => {
                ("product of cosines", 8 * grid.cols as u128, grid.work())
            }
            (PerfectMatchingMethod::Known(_), MatchingProblem::Grid(grid)) => ("known", 8 * grid.cols as u128, 1.0),
            _ => ("known", 0, 1.0),
        }
    }

    fn order(&self) -> u64 {
        match (&self.method, &self.problem) {
            (PerfectMatchingMethod::Product, MatchingProblem::Grid(grid)) => grid.order(),
            _ => 1,
        }
    }

    fn residues(&self, moduli: &[Modulus], options: &Options, monitor: &mut dyn Monitor) -> Result<Vec<u64>> {
        one_value(self, "the fronts of the Kasteleyn matrix", moduli, options, monitor, |modulus, progress| {
            self.residue(modulus, progress)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::exact::tests::solve;
    use crate::counting::matchings::{Matchings, Which};
    use crate::lattices::{Lattice, UnitCell};
    use crate::monitor::Silent;
    use num_bigint::BigInt;

    /// Kasteleyn's count and the frontier's.
    fn both(name: &str, extent: [usize; 2], closed: [bool; 2]) -> (BigInt, BigInt) {
        let section = Lattice::new(UnitCell::named(name).unwrap(), extent, closed).unwrap().section().unwrap();
        let graph = section.graph().unwrap();
        let embedding = Embedding::from_displacements(&graph, &section.displacements).unwrap();
        let frontier = solve(Matchings::plan(&graph, Which::Perfect, None, u64::MAX, &mut Silent).unwrap());
        (
            solve(
                Dimers::plan(MatchingProblem::Drawn { graph, embedding, windings: section.windings }, &mut Silent)
                    .unwrap(),
            ),
            frontier,
        )
    }

    #[test]
    fn every_small_lattice_and_boundary_has_the_count_of_the_frontier() {
        let mut cases = 0;
        for name in ["square", "triangular", "honeycomb", "kagome", "4-8-8", "3-12-12", "martini", "triangular-kagome"]
        {
            for extent in [[2, 2], [2, 3], [3, 2], [3, 3], [4, 2], [2, 4], [3, 4], [4, 4]] {
                for closed in [[false, false], [false, true], [true, false], [true, true]] {
                    let (found, expected) = both(name, extent, closed);
                    assert_eq!(found, expected, "{name} {extent:?} {closed:?}");
                    cases += 1;
                }
            }
        }
        assert!(cases >= 184);
    }

    #[test]
    fn grids_by_cosines_have_the_count_of_the_frontier() {
        for (rows, cols) in
            [(1, 1), (1, 2), (2, 1), (2, 2), (3, 4), (4, 3), (4, 4), (5, 5), (5, 6), (6, 5), (8, 8), (7, 10)]
        {
            let (found, expected) = both("square", [rows, cols], [false, false]);
            let product = solve(Dimers::plan(MatchingProblem::Grid(ProductGrid { rows, cols }), &mut Silent).unwrap());
            assert_eq!((&found, &product), (&expected, &expected), "{rows} x {cols}");
        }
    }
}
