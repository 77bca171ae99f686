//! Clique insertion, C(G) = L(S(G)): each vertex becomes a clique with one vertex for each edge end there.
//!
//! The vertices of C(G) are the edge ends ("darts"): edge `e` gives `2e` at its start and `2e + 1` at its end. The two darts
//! of an edge are joined, and so are any two at the same vertex. A dart has the degree d of its vertex; repeating this k
//! times therefore gives `sum d^k` vertices and `sum d^(k+1) / 2` edges, summed over the vertices of G. Isolated vertices
//! vanish, and a loop joins its two darts twice.
//!
//! In a unit cell the end dart of a bond belongs to the cell where the bond ends, so that cliques stay inside a cell. A
//! finite lattice with an open axis then cuts links only; the same lattice cut first and inserted afterwards is smaller.
//!
//! Source: F. Zhang, Y.-C. Chen, Z. Chen (2009), Clique-inserted-graphs and spectral dynamics of clique-inserting.

use super::{Bond, UnitCell};
use crate::graphs::Graph;
use crate::memory::reserved;
use crate::{Error, Result};

/// Vertices and edges of a graph with these degrees after `times` clique insertions; `u128::MAX` stands for more.
pub fn clique_insertion_size(degrees: &[u64], times: u32) -> (u128, u128) {
    let sum = |exponent| {
        let power = |&degree: &u64| u128::from(degree).saturating_pow(exponent);
        degrees.iter().map(power).fold(0, u128::saturating_add)
    };
    (sum(times), sum(times.saturating_add(1)) / 2)
}

/// Refuses a result above `2^32 - 1` vertices, before anything is built.
fn check_size(degrees: &[u64], times: u32) -> Result<()> {
    match clique_insertion_size(degrees, times).0 {
        vertices if vertices <= u128::from(u32::MAX) => Ok(()),
        _ => Err(Error::domain("k", times, "so small that there are fewer than 2**32 vertices")),
    }
}

/// Inserts cliques into a graph `times` times.
///
/// # Errors
/// [`Error::Domain`] above `2^32 - 1` vertices, [`Error::TooLarge`] without memory.
pub fn clique_insert(graph: &Graph, times: u32) -> Result<Graph> {
    let degrees = graph.degrees();
    check_size(&degrees, times)?;
    (0..effective(&degrees, times)).try_fold(graph.clone(), |inserted, _| insert_once(&inserted))
}

/// How many insertions change anything: separate edges are their own insertion, so one time drops the isolated vertices and
/// the rest do nothing. With a vertex of degree 2 or more the size doubles at least, and few insertions fit.
fn effective(degrees: &[u64], times: u32) -> u32 {
    if degrees.iter().all(|&degree| degree < 2) { times.min(1) } else { times }
}

fn insert_once(graph: &Graph) -> Result<Graph> {
    let degrees = graph.degrees();
    let darts = 2 * graph.edges().len();
    let (_, size) = clique_insertion_size(&degrees, 1);
    // Darts sorted by vertex: those at v are `sorted[first[v]..first[v + 1]]`.
    let mut first = vec![0usize; graph.vertices() + 1];
    for (v, &degree) in degrees.iter().enumerate() {
        first[v + 1] = first[v] + degree as usize;
    }
    let mut sorted: Vec<u32> = reserved(darts as u128, "clique insertion")?;
    sorted.resize(darts, 0);
    let mut next = first.clone();
    for (dart, &vertex) in graph.edges().iter().flat_map(|(u, v)| [u, v]).enumerate() {
        sorted[next[vertex as usize]] = dart as u32;
        next[vertex as usize] += 1;
    }
    let mut edges = reserved(size, "clique insertion")?;
    edges.extend((0..darts as u32).step_by(2).map(|dart| (dart, dart + 1)));
    for clique in first.windows(2).map(|range| &sorted[range[0]..range[1]]) {
        edges.extend(clique.iter().enumerate().flat_map(|(i, &a)| clique[i + 1..].iter().map(move |&b| (a, b))));
    }
    Graph::new(darts, edges)
}

/// How far along its edge a dart lies, so that the sides of a regular clique are as long as what is left of the edges: with
/// d edges at equal angles, reach * 2 sin(pi/d) = 1 - 2 reach. The only dart of a leaf stays where the leaf is.
fn equal_sides(degree: usize) -> f64 {
    if degree == 1 { 0.0 } else { 1.0 / (2.0 + 2.0 * (std::f64::consts::PI / degree as f64).sin()) }
}

impl UnitCell {
    /// The cell with a clique inserted at each site. Isolated sites vanish.
    ///
    /// # Errors
    /// [`Error::Domain`] if nothing is left.
    pub fn clique_insert(&self) -> Result<Self> {
        self.insert_cliques(&vec![true; self.sites().len()], equal_sides)
    }

    /// The cell with cliques inserted `times` times.
    ///
    /// # Errors
    /// [`Error::Domain`] if nothing is left, or above `2^32 - 1` sites.
    pub fn clique_inserted(&self, times: u32) -> Result<Self> {
        let degrees = self.degrees();
        check_size(&degrees, times)?;
        (0..effective(&degrees, times)).try_fold(self.clone(), |cell, _| cell.clique_insert())
    }

    /// The cell with a clique inserted at the chosen sites, darts lying `reach(degree)` along their bonds.
    ///
    /// New sites come first, in the order of the darts, then the sites that stay.
    ///
    /// # Errors
    /// [`Error::Domain`] if nothing is left.
    pub(super) fn insert_cliques(&self, chosen: &[bool], reach: impl Fn(usize) -> f64) -> Result<Self> {
        let darts = self.darts();
        let mut sites = Vec::new();
        let mut name = vec![usize::MAX; 2 * self.bonds().len()];
        for (b, &bond) in self.bonds().iter().enumerate() {
            let along = self.displacement(bond);
            for (dart, site, sign) in [(2 * b, bond.from, 1.0), (2 * b + 1, bond.to, -1.0)] {
                if chosen[site] {
                    let (at, step) = (self.sites()[site], sign * reach(darts[site].len()));
                    name[dart] = sites.len();
                    sites.push([at[0] + step * along[0], at[1] + step * along[1]]);
                }
            }
        }
        for (site, at) in darts.iter().enumerate().filter(|&(site, _)| !chosen[site]) {
            at.iter().for_each(|&dart| name[dart] = sites.len());
            sites.push(self.sites()[site]);
        }
        let links = self.bonds().iter().enumerate();
        let mut bonds: Vec<Bond> =
            links.map(|(b, bond)| Bond::new(name[2 * b], name[2 * b + 1], bond.offset)).collect();
        for clique in darts.iter().zip(chosen).filter_map(|(clique, &chosen)| chosen.then_some(clique)) {
            for (i, &a) in clique.iter().enumerate() {
                bonds.extend(clique[i + 1..].iter().map(|&b| Bond::new(name[a], name[b], [0, 0])));
            }
        }
        Self::new(self.basis(), sites, bonds)
    }

    /// The cell of the line graph: a site in the middle of each bond, joined where bonds meet.
    ///
    /// # Errors
    /// [`Error::Domain`] without bonds, or if two bonds meet at both ends.
    pub(super) fn line_graph(&self) -> Result<Self> {
        let middle = |&bond: &Bond| {
            let (start, along) = (self.sites()[bond.from], self.displacement(bond));
            [start[0] + along[0] / 2.0, start[1] + along[1] / 2.0]
        };
        let sites = self.bonds().iter().map(middle).collect();
        // A dart at a site belongs to a bond of this cell (even) or of the cell `-offset` away (odd).
        let home = |dart: usize| match dart % 2 {
            0 => [0, 0],
            _ => self.bonds()[dart / 2].offset.map(|d| -d),
        };
        let mut bonds = Vec::new();
        for at in self.darts() {
            for (i, &a) in at.iter().enumerate() {
                for &b in &at[i + 1..] {
                    let offset = [home(b)[0] - home(a)[0], home(b)[1] - home(a)[1]];
                    bonds.push(Bond::new(a / 2, b / 2, offset));
                }
            }
        }
        Self::new(self.basis(), sites, bonds)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Lattice;
    use super::*;
    use crate::graphs::{complete, grid, torus};
    use proptest::prelude::*;

    #[test]
    fn small_graphs_have_the_known_insertions() {
        let inserted = clique_insert(&grid(&[4]).unwrap(), 1).unwrap();
        assert_eq!((inserted.vertices(), inserted.edges().len()), (6, 5));
        assert_eq!(inserted.edges(), [(0, 1), (2, 3), (4, 5), (1, 2), (3, 4)]);
        let ring = clique_insert(&torus(&[5]).unwrap(), 1).unwrap();
        assert_eq!((ring.vertices(), ring.edges().len()), (10, 10));
        let two = clique_insert(&complete(4).unwrap(), 2).unwrap();
        assert_eq!((two.vertices(), two.edges().len()), (36, 54));
    }

    #[test]
    fn isolated_vertices_vanish_and_loops_join_their_darts_twice() {
        let graph = Graph::new(3, vec![(1, 1)]).unwrap();
        assert_eq!(clique_insert(&graph, 0).unwrap(), graph);
        assert_eq!(clique_insert(&graph, 1).unwrap(), Graph::new(2, vec![(0, 1), (0, 1)]).unwrap());
        let empty = Graph::new(5, vec![]).unwrap();
        assert_eq!(clique_insert(&empty, u32::MAX).unwrap().vertices(), 0);
        let separate = Graph::new(5, vec![(1, 4), (3, 2)]).unwrap();
        assert_eq!(clique_insert(&separate, u32::MAX).unwrap(), Graph::new(4, vec![(0, 1), (2, 3)]).unwrap());
    }

    #[test]
    fn a_result_too_large_is_refused_before_it_is_built() {
        let k4 = complete(4).unwrap();
        for times in [20, 80, u32::MAX] {
            assert!(matches!(clique_insert(&k4, times), Err(Error::Domain { name: "k", .. })));
            let cell = UnitCell::named("honeycomb").unwrap();
            assert!(matches!(cell.clique_inserted(times), Err(Error::Domain { name: "k", .. })));
        }
        let bare = UnitCell::new([[1.0, 0.0], [0.0, 1.0]], vec![[0.0; 2]], vec![]).unwrap();
        assert!(matches!(bare.clique_insert(), Err(Error::Domain { .. })));
    }

    #[test]
    fn cutting_before_and_after_insertion_gives_different_lattices() {
        let honeycomb = UnitCell::named("honeycomb").unwrap();
        let cut = |cell: UnitCell| Lattice::new(cell, [3, 3], [false, false]).unwrap().section().unwrap();
        let before = clique_insert(&cut(honeycomb.clone()).graph().unwrap(), 1).unwrap();
        assert_eq!((cut(honeycomb.clique_insert().unwrap()).positions.len(), before.vertices()), (54, 42));
    }

    /// Edges of a torus with the vertices named by where they are: the same for any numbering of sites.
    fn degree_pairs(graph: &Graph) -> (usize, usize, Vec<u64>) {
        let mut degrees = graph.degrees();
        degrees.sort_unstable();
        (graph.vertices(), graph.edges().len(), degrees)
    }

    #[test]
    fn inserting_into_the_cell_is_inserting_into_the_torus() {
        for name in ["square", "king", "honeycomb", "kagome", "martini"] {
            let cell = UnitCell::named(name).unwrap();
            let torus =
                |cell: UnitCell| Lattice::new(cell, [3, 4], [true, true]).unwrap().section().unwrap().graph().unwrap();
            let (inside, outside) = (torus(cell.clique_insert().unwrap()), clique_insert(&torus(cell), 1).unwrap());
            assert_eq!(degree_pairs(&inside), degree_pairs(&outside), "{name}");
        }
    }

    #[test]
    fn the_line_graph_of_the_honeycomb_is_the_kagome_lattice() {
        let line = UnitCell::named("honeycomb").unwrap().line_graph().unwrap();
        let kagome = UnitCell::named("kagome").unwrap();
        assert_eq!((line.sites().len(), line.bonds().len()), (kagome.sites().len(), kagome.bonds().len()));
        assert_eq!(line.degrees(), kagome.degrees());
    }

    proptest! {
        #[test]
        fn the_size_is_known_beforehand(
            ends in proptest::collection::vec((0..6u32, 0..6u32), 0..10), times in 0..3u32,
        ) {
            let graph = Graph::new(6, ends).unwrap();
            let (vertices, edges) = clique_insertion_size(&graph.degrees(), times);
            let inserted = clique_insert(&graph, times).unwrap();
            if times > 0 {
                prop_assert_eq!((vertices, edges), (inserted.vertices() as u128, inserted.edges().len() as u128));
            }
        }
    }
}
