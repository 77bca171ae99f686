//! What is done to a graph before its states are listed: vertices with at most two neighbors are summed out.
//!
//! Every vertex carries a pair of weights, out and in; every edge `a b` a matrix over their states, for an edge of the
//! graph `[[1, 1], [1, 0]]`. Summing out a vertex `v`
//!
//!   without neighbors   multiplies the result by  `out_v + in_v`,
//!   with neighbor `a`   multiplies `w_a[x]` by  `sum_s w_v[s] M_av[x][s]`,
//!   between `a` and `b` leaves an edge  `M_ab[x][y] = sum_s w_v[s] M_av[x][s] M_vb[s][y]`,
//!
//! where parallel edges multiply entry by entry. Two vertices with the same neighbors, by plain edges, are taken as one: with
//! an edge between them it is in with weight `in_u out_v + out_u in_v`, without also with `in_u in_v`. A looped vertex is
//! never in. What remains, the [`ReducedGraph`], has vertices
//! of degree three or more; trees, cycles, series-parallel graphs and cographs vanish. An edge whose lower right entry is zero is
//! *hard* and forbids states, what else the matrix says is *soft*.
//!
//! Source: R. Dechter (1999), Bucket elimination, Artificial Intelligence 113 (buckets of two neighbors).

use super::circuit::{Circuit, Node};
use crate::Result;
use crate::graphs::{Graph, Lists};
use crate::monitor::Progress;
use std::collections::HashMap;

/// Weights of an edge over the states of its two ends.
pub type EdgeWeights = [[Node; 2]; 2];

const PLAIN: EdgeWeights = [[Node::One, Node::One], [Node::One, Node::Zero]];

/// An edge of the kernel as one of its ends sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HalfEdge {
    /// The other end.
    pub to: u32,
    /// Whether the ends cannot both be in.
    pub hard: bool,
    /// The weights `[here][there]`, unless all that are possible are one.
    pub soft: Option<EdgeWeights>,
}

/// A graph whose small degrees are summed out.
#[derive(Debug)]
pub struct ReducedGraph {
    /// The vertices of the graph that are left, in rising order.
    pub labels: Vec<u32>,
    /// Their weights, out and in.
    pub weights: Vec<[Node; 2]>,
    /// Their edges, by position in `labels`, ends rising.
    pub links: Vec<Vec<HalfEdge>>,
    /// What the vertices summed out contribute by themselves.
    pub factor: Node,
    /// The vertices that are not left, in the order they went.
    pub eliminated: Vec<u32>,
}

impl ReducedGraph {
    /// Reduces a graph without the vertices of `cut`, which are in or out as the branch says.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] once somebody asked to stop.
    pub fn new(
        graph: &Graph,
        neighbors: &Lists,
        cut: &[u32],
        circuit: &mut Circuit,
        progress: &Progress,
    ) -> Result<Self> {
        progress.check()?;
        let mut reduction = Reduction::new(graph, neighbors, cut, circuit, progress)?;
        reduction.run(circuit, progress)?;
        while reduction.merge_twins(circuit, progress)? {
            reduction.run(circuit, progress)?;
        }
        Ok(reduction.finish())
    }

    /// The neighbors of each vertex, and whether the edge is hard.
    pub fn neighbors(&self) -> Vec<Vec<(u32, bool)>> {
        self.links.iter().map(|links| links.iter().map(|link| (link.to, link.hard)).collect()).collect()
    }
}

struct Reduction<'a> {
    neighbors: &'a Lists,
    gone: Vec<bool>,
    degree: Vec<u32>,
    weights: Vec<[Node; 2]>,
    /// Edges that are not as in the graph, by ends in rising order.
    changed: HashMap<(u32, u32), EdgeWeights>,
    /// Neighbors gained.
    gained: Vec<Vec<u32>>,
    waiting: Vec<u32>,
    factor: Node,
    eliminated: Vec<u32>,
}

fn transposed(m: EdgeWeights) -> EdgeWeights {
    [[m[0][0], m[1][0]], [m[0][1], m[1][1]]]
}

/// A number for a vertex such that sums of them tell sets of vertices apart.
fn scattered(v: u32) -> u64 {
    let x = (u64::from(v) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (x ^ (x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

impl<'a> Reduction<'a> {
    fn new(
        graph: &Graph,
        neighbors: &'a Lists,
        cut: &[u32],
        circuit: &mut Circuit,
        progress: &Progress,
    ) -> Result<Self> {
        let vertices = neighbors.len();
        let mut gone = vec![false; vertices];
        let mut degree: Vec<u32> = neighbors.iter().map(|list| list.len() as u32).collect();
        let mut remove = |v: u32| {
            if !std::mem::replace(&mut gone[v as usize], true) {
                neighbors[v as usize].iter().for_each(|&u| degree[u as usize] -= 1);
            }
        };
        let mut unless = vec![0u32; if cut.is_empty() { 0 } else { vertices }];
        for (i, &v) in cut.iter().enumerate() {
            remove(v);
            neighbors[v as usize].iter().for_each(|&u| unless[u as usize] |= 1 << i);
        }
        let mut loops: Vec<u32> = graph.edges().iter().filter(|(u, v)| u == v).map(|&(v, _)| v).collect();
        loops.sort_unstable();
        loops.dedup();
        let mut factor = Node::One;
        for v in loops {
            remove(v);
            let [out, _] = circuit.vertex(v, 0);
            factor = circuit.multiply(factor, out);
        }
        let weight = |v: usize| {
            progress.check_at(v)?;
            Ok(circuit.vertex(v as u32, unless.get(v).copied().unwrap_or(0)))
        };
        let weights = (0..vertices).map(weight).collect::<Result<_>>()?;
        let waiting = (0..vertices as u32).rev().filter(|&v| !gone[v as usize] && degree[v as usize] <= 2).collect();
        let eliminated = (0..vertices as u32).filter(|&v| gone[v as usize]).collect();
        progress.check()?;
        Ok(Self {
            neighbors,
            gone,
            degree,
            weights,
            changed: HashMap::new(),
            gained: vec![Vec::new(); vertices],
            waiting,
            factor,
            eliminated,
        })
    }

    /// The neighbors a vertex has now.
    fn present(&self, v: u32) -> impl Iterator<Item = u32> {
        let lists = self.neighbors[v as usize].iter().chain(&self.gained[v as usize]);
        lists.copied().filter(|&u| !self.gone[u as usize])
    }

    /// The weights `[here][there]` of an edge, if there is one.
    fn matrix(&self, here: u32, there: u32) -> Option<EdgeWeights> {
        match self.changed.get(&(here.min(there), here.max(there))) {
            Some(&m) => Some(if here < there { m } else { transposed(m) }),
            None => self.neighbors[here as usize].binary_search(&there).is_ok().then_some(PLAIN),
        }
    }

    fn run(&mut self, circuit: &mut Circuit, progress: &Progress) -> Result<()> {
        while let Some(v) = self.waiting.pop() {
            progress.check_at(self.eliminated.len())?;
            if self.gone[v as usize] {
                continue;
            }
            let around: Vec<u32> = self.present(v).collect();
            self.gone[v as usize] = true;
            self.eliminated.push(v);
            let links: Vec<(u32, EdgeWeights)> =
                around.iter().map(|&u| (u, self.matrix(v, u).expect("an edge to a neighbor"))).collect();
            match links[..] {
                [] => {
                    let [out, inside] = self.weights[v as usize];
                    let sum = circuit.add(out, inside);
                    self.factor = circuit.multiply(self.factor, sum);
                }
                [(a, m)] => self.leaf(v, a, m, circuit),
                [(a, m), (b, n)] => self.chain(v, (a, m), (b, n), circuit),
                _ => unreachable!("only vertices of degree two or less wait"),
            }
        }
        Ok(())
    }

    fn leaf(&mut self, v: u32, a: u32, m: EdgeWeights, circuit: &mut Circuit) {
        for (x, column) in transposed(m).into_iter().enumerate() {
            let terms = [0, 1].map(|s| circuit.multiply(self.weights[v as usize][s], column[s]));
            let sum = circuit.add(terms[0], terms[1]);
            let weight = &mut self.weights[a as usize][x];
            *weight = circuit.multiply(*weight, sum);
        }
        self.lose(a);
    }

    fn chain(&mut self, v: u32, (a, m): (u32, EdgeWeights), (b, n): (u32, EdgeWeights), circuit: &mut Circuit) {
        let old = self.matrix(a, b);
        let mut new = old.unwrap_or([[Node::One; 2]; 2]);
        let weighted = [0, 1].map(|s| [0, 1].map(|x| circuit.multiply(self.weights[v as usize][s], m[s][x])));
        for (x, row) in new.iter_mut().enumerate() {
            for (y, entry) in row.iter_mut().enumerate() {
                let terms = [0, 1].map(|s| circuit.multiply(weighted[s][x], n[s][y]));
                let sum = circuit.add(terms[0], terms[1]);
                *entry = circuit.multiply(*entry, sum);
            }
        }
        self.changed.remove(&(a.min(v), a.max(v)));
        self.changed.remove(&(b.min(v), b.max(v)));
        // A vertex of weight zero leaves an edge that says nothing, which is none.
        let nothing = new == [[Node::One; 2]; 2];
        if !nothing {
            self.changed.insert((a.min(b), a.max(b)), if a < b { new } else { transposed(new) });
        }
        if old.is_some() || nothing {
            self.lose(a);
            self.lose(b);
        } else {
            self.gained[a as usize].push(b);
            self.gained[b as usize].push(a);
        }
    }

    /// Takes vertices with the same neighbors as one; whether there were any.
    fn merge_twins(&mut self, circuit: &mut Circuit, progress: &Progress) -> Result<bool> {
        let before = self.eliminated.len();
        for adjacent in [true, false] {
            let mut first: HashMap<u64, u32> = HashMap::new();
            for v in (0..self.gone.len() as u32).filter(|&v| !self.gone[v as usize]).collect::<Vec<_>>() {
                progress.check_at(v as usize)?;
                let around = self.present(v).chain(adjacent.then_some(v));
                let u = *first.entry(around.map(scattered).fold(0, u64::wrapping_add)).or_insert(v);
                if u != v && self.are_twins(u, v) {
                    self.merge(u, v, adjacent, circuit);
                }
            }
        }
        Ok(self.eliminated.len() > before)
    }

    /// Whether two vertices have the same neighbors apart from one another, by plain edges.
    fn are_twins(&self, u: u32, v: u32) -> bool {
        let around = |v: u32, other: u32| {
            let mut list: Vec<u32> = self.present(v).filter(|&w| w != other).collect();
            list.sort_unstable();
            list
        };
        let plain = |v: u32| self.present(v).all(|w| self.matrix(v, w) == Some(PLAIN));
        plain(u) && plain(v) && around(u, v) == around(v, u)
    }

    /// Takes twins as one.
    fn merge(&mut self, u: u32, v: u32, adjacent: bool, circuit: &mut Circuit) {
        let ([out_u, in_u], [out_v, in_v]) = (self.weights[u as usize], self.weights[v as usize]);
        let beside = if adjacent { out_v } else { circuit.add(out_v, in_v) };
        let terms = [circuit.multiply(in_u, beside), circuit.multiply(out_u, in_v)];
        self.weights[u as usize] = [circuit.multiply(out_u, out_v), circuit.add(terms[0], terms[1])];
        self.gone[v as usize] = true;
        self.eliminated.push(v);
        self.present(v).collect::<Vec<_>>().into_iter().for_each(|w| self.lose(w));
    }

    /// A vertex has one neighbor less.
    fn lose(&mut self, v: u32) {
        self.degree[v as usize] -= 1;
        if self.degree[v as usize] <= 2 {
            self.waiting.push(v);
        }
    }

    fn finish(self) -> ReducedGraph {
        let labels: Vec<u32> = (0..self.gone.len() as u32).filter(|&v| !self.gone[v as usize]).collect();
        let position = |v: u32| labels.binary_search(&v).expect("what is left has a label") as u32;
        let link = |v: u32, u: u32| {
            let m = self.matrix(v, u).expect("an edge to a neighbor");
            let hard = m[1][1] == Node::Zero;
            let trivial = m[0] == [Node::One; 2] && m[1][0] == Node::One && (hard || m[1][1] == Node::One);
            HalfEdge { to: position(u), hard, soft: (!trivial).then_some(m) }
        };
        let links = labels.iter().map(|&v| {
            let mut links: Vec<HalfEdge> = self.present(v).map(|u| link(v, u)).collect();
            links.sort_unstable_by_key(|link| link.to);
            links
        });
        ReducedGraph {
            links: links.collect(),
            weights: labels.iter().map(|&v| self.weights[v as usize]).collect(),
            factor: self.factor,
            eliminated: self.eliminated,
            labels,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::ring::F64;
    use crate::transfer::Weight;

    fn reduction(vertices: usize, edges: &[(u32, u32)]) -> (ReducedGraph, f64) {
        let graph = Graph::new(vertices, edges.to_vec()).unwrap();
        let mut circuit = Circuit::default();
        let mut reduced =
            ReducedGraph::new(&graph, &graph.neighbors(), &[], &mut circuit, &Progress::default()).unwrap();
        let tape = circuit.compile([&mut reduced.factor].into_iter(), &Progress::default()).unwrap();
        let mut registers = vec![0.0; tape.registers()];
        tape.run(0..tape.length(), &Weight::new(F64, 1.0), 0, &mut registers);
        let factor = super::super::circuit::read(F64, reduced.factor, &registers);
        (reduced, factor)
    }

    #[test]
    fn series_parallel_graphs_and_cographs_vanish() {
        // A triangle with a tail, two squares sharing an edge, K_5 with an isolated vertex, K_{3,4}.
        assert_eq!(reduction(4, &[(0, 1), (1, 2), (2, 0), (2, 3)]).1, 7.0);
        assert_eq!(reduction(6, &[(0, 1), (1, 2), (2, 3), (3, 0), (2, 4), (4, 5), (5, 3)]).1, 17.0);
        let complete: Vec<_> = (0..5).flat_map(|u| (0..u).map(move |v| (u, v))).collect();
        assert_eq!(reduction(6, &complete).1, 12.0);
        let bipartite: Vec<_> = (0..3).flat_map(|u| (3..7).map(move |v| (u, v))).collect();
        let (reduced, factor) = reduction(7, &bipartite);
        assert_eq!((reduced.labels.len(), factor), (0, 23.0));
    }

    #[test]
    fn a_subdivided_graph_keeps_only_its_branch_vertices() {
        // The cube without twins, each edge with one more vertex on it.
        let cube: Vec<(u32, u32)> =
            (0..8).flat_map(|v| (0..3).map(move |i| (v, v ^ 1 << i))).filter(|(u, v)| u < v).collect();
        let edges: Vec<_> = (8..).zip(&cube).flat_map(|(w, &(u, v))| [(u, w), (w, v)]).collect();
        let (reduced, _) = reduction(20, &edges);
        assert_eq!(reduced.labels, (0..8).collect::<Vec<_>>());
        assert!(reduced.links.iter().all(|links| links.iter().all(|link| !link.hard && link.soft.is_some())));
        assert_eq!(reduced.links[0].iter().map(|link| link.to).collect::<Vec<_>>(), [1, 2, 4]);
    }

    #[test]
    fn looped_vertices_are_out() {
        let (reduced, factor) = reduction(3, &[(0, 0), (0, 1), (1, 2), (2, 2)]);
        assert_eq!((reduced.labels.len(), factor), (0, 2.0));
        assert_eq!(reduced.eliminated, [0, 2, 1]);
    }
}
