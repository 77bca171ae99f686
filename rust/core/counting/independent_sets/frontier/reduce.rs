//! What is done to a graph before its states are listed: vertices with at most two neighbors are summed out.
//!
//! Every vertex carries a pair of weights, out and in; every edge `a b` a matrix over their states, for an edge of the
//! graph `[[1, 1], [1, 0]]`. Summing out a vertex `v`
//!
//!   without neighbors   multiplies the result by  `out_v + in_v`,
//!   with neighbor `a`   multiplies `w_a[x]` by  `sum_s w_v[s] M_av[x][s]`,
//!   between `a` and `b` leaves an edge  `M_ab[x][y] = sum_s w_v[s] M_av[x][s] M_vb[s][y]`,
//!
//! where parallel edges multiply entry by entry. A looped vertex is never in. What remains, the [`Kernel`], has vertices
//! of degree three or more; trees, cycles and series-parallel graphs vanish. An edge whose lower right entry is zero is
//! *hard* and forbids states, what else the matrix says is *soft*.

use super::formula::{Formulas, Value};
use crate::graphs::Graph;
use std::collections::HashMap;

/// Weights of an edge over the states of its two ends.
pub type Matrix = [[Value; 2]; 2];

const PLAIN: Matrix = [[Value::One, Value::One], [Value::One, Value::Zero]];

/// An edge of the kernel as one of its ends sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The other end.
    pub to: u32,
    /// Whether the ends cannot both be in.
    pub hard: bool,
    /// The weights `[here][there]`, unless all that are possible are one.
    pub soft: Option<Matrix>,
}

/// A graph whose small degrees are summed out.
#[derive(Debug)]
pub struct Kernel {
    /// The vertices of the graph that are left, in rising order.
    pub labels: Vec<u32>,
    /// Their weights, out and in.
    pub weights: Vec<[Value; 2]>,
    /// Their edges, by position in `labels`, ends rising.
    pub links: Vec<Vec<Link>>,
    /// What the vertices summed out contribute by themselves.
    pub factor: Value,
    /// The vertices that are not left, in the order they went.
    pub eliminated: Vec<u32>,
}

impl Kernel {
    /// Reduces a graph without the vertices of `cut`, which are in or out as the branch says.
    pub fn new(graph: &Graph, neighbors: &[Vec<u32>], cut: &[u32], formulas: &mut Formulas) -> Self {
        let mut reduction = Reduction::new(graph, neighbors, cut, formulas);
        reduction.run(formulas);
        reduction.finish()
    }

    /// The neighbors of each vertex, and whether the edge is hard.
    pub fn neighbors(&self) -> Vec<Vec<(u32, bool)>> {
        self.links.iter().map(|links| links.iter().map(|link| (link.to, link.hard)).collect()).collect()
    }
}

struct Reduction<'a> {
    neighbors: &'a [Vec<u32>],
    gone: Vec<bool>,
    degree: Vec<u32>,
    weights: Vec<[Value; 2]>,
    /// Edges that are not as in the graph, by ends in rising order.
    changed: HashMap<(u32, u32), Matrix>,
    /// Neighbors gained.
    gained: Vec<Vec<u32>>,
    waiting: Vec<u32>,
    factor: Value,
    eliminated: Vec<u32>,
}

fn transposed(m: Matrix) -> Matrix {
    [[m[0][0], m[1][0]], [m[0][1], m[1][1]]]
}

impl<'a> Reduction<'a> {
    fn new(graph: &Graph, neighbors: &'a [Vec<u32>], cut: &[u32], formulas: &mut Formulas) -> Self {
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
        let loops: Vec<u32> = graph.edges().iter().filter(|(u, v)| u == v).map(|&(v, _)| v).collect();
        loops.iter().copied().for_each(remove);
        let mut activities = HashMap::new();
        let mut activity = |unless| *activities.entry(unless).or_insert_with(|| formulas.activity(unless));
        let weights =
            (0..vertices).map(|v| [Value::One, activity(unless.get(v).copied().unwrap_or(0))]).collect::<Vec<_>>();
        let waiting = (0..vertices as u32).rev().filter(|&v| !gone[v as usize] && degree[v as usize] <= 2).collect();
        let eliminated = (0..vertices as u32).filter(|&v| gone[v as usize]).collect();
        Self {
            neighbors,
            gone,
            degree,
            weights,
            changed: HashMap::new(),
            gained: vec![Vec::new(); vertices],
            waiting,
            factor: Value::One,
            eliminated,
        }
    }

    /// The neighbors a vertex has now.
    fn present(&self, v: u32) -> impl Iterator<Item = u32> {
        let lists = self.neighbors[v as usize].iter().chain(&self.gained[v as usize]);
        lists.copied().filter(|&u| !self.gone[u as usize])
    }

    /// The weights `[here][there]` of an edge, if there is one.
    fn matrix(&self, here: u32, there: u32) -> Option<Matrix> {
        match self.changed.get(&(here.min(there), here.max(there))) {
            Some(&m) => Some(if here < there { m } else { transposed(m) }),
            None => self.neighbors[here as usize].binary_search(&there).is_ok().then_some(PLAIN),
        }
    }

    fn run(&mut self, formulas: &mut Formulas) {
        while let Some(v) = self.waiting.pop() {
            if self.gone[v as usize] {
                continue;
            }
            let around: Vec<u32> = self.present(v).collect();
            self.gone[v as usize] = true;
            self.eliminated.push(v);
            let links: Vec<(u32, Matrix)> =
                around.iter().map(|&u| (u, self.matrix(v, u).expect("an edge to a neighbor"))).collect();
            match links[..] {
                [] => {
                    let [out, inside] = self.weights[v as usize];
                    let sum = formulas.add(out, inside);
                    self.factor = formulas.multiply(self.factor, sum);
                }
                [(a, m)] => self.leaf(v, a, m, formulas),
                [(a, m), (b, n)] => self.chain(v, (a, m), (b, n), formulas),
                _ => unreachable!("only vertices of degree two or less wait"),
            }
        }
    }

    fn leaf(&mut self, v: u32, a: u32, m: Matrix, formulas: &mut Formulas) {
        for (x, column) in transposed(m).into_iter().enumerate() {
            let terms = [0, 1].map(|s| formulas.multiply(self.weights[v as usize][s], column[s]));
            let sum = formulas.add(terms[0], terms[1]);
            let weight = &mut self.weights[a as usize][x];
            *weight = formulas.multiply(*weight, sum);
        }
        self.lose(a);
    }

    fn chain(&mut self, v: u32, (a, m): (u32, Matrix), (b, n): (u32, Matrix), formulas: &mut Formulas) {
        let old = self.matrix(a, b);
        let mut new = old.unwrap_or([[Value::One; 2]; 2]);
        let weighted = [0, 1].map(|s| [0, 1].map(|x| formulas.multiply(self.weights[v as usize][s], m[s][x])));
        for (x, row) in new.iter_mut().enumerate() {
            for (y, entry) in row.iter_mut().enumerate() {
                let terms = [0, 1].map(|s| formulas.multiply(weighted[s][x], n[s][y]));
                let sum = formulas.add(terms[0], terms[1]);
                *entry = formulas.multiply(*entry, sum);
            }
        }
        self.changed.remove(&(a.min(v), a.max(v)));
        self.changed.remove(&(b.min(v), b.max(v)));
        self.changed.insert((a.min(b), a.max(b)), if a < b { new } else { transposed(new) });
        if old.is_some() {
            self.lose(a);
            self.lose(b);
        } else {
            self.gained[a as usize].push(b);
            self.gained[b as usize].push(a);
        }
    }

    /// A vertex has one neighbor less.
    fn lose(&mut self, v: u32) {
        self.degree[v as usize] -= 1;
        if self.degree[v as usize] <= 2 {
            self.waiting.push(v);
        }
    }

    fn finish(self) -> Kernel {
        let labels: Vec<u32> = (0..self.gone.len() as u32).filter(|&v| !self.gone[v as usize]).collect();
        let position = |v: u32| labels.binary_search(&v).expect("what is left has a label") as u32;
        let link = |v: u32, u: u32| {
            let m = self.matrix(v, u).expect("an edge to a neighbor");
            let hard = m[1][1] == Value::Zero;
            let trivial = m[0] == [Value::One; 2] && m[1][0] == Value::One && (hard || m[1][1] == Value::One);
            Link { to: position(u), hard, soft: (!trivial).then_some(m) }
        };
        let links = labels.iter().map(|&v| {
            let mut links: Vec<Link> = self.present(v).map(|u| link(v, u)).collect();
            links.sort_unstable_by_key(|link| link.to);
            links
        });
        Kernel {
            links: links.collect(),
            weights: labels.iter().map(|&v| self.weights[v as usize]).collect(),
            factor: self.factor,
            eliminated: self.eliminated,
            labels,
        }
    }
}
