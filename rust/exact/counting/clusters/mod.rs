//! Sums over all subsets of the edges of a graph by their components: chromatic and Tutte polynomials, Potts and Ising models.
//!
//! With n vertices, c components, rank r = n - c, and k(A) components of the graph with the edges A alone,
//!
//!   `T(x, y) = sum over A of (x-1)^(k(A)-c) (y-1)^(|A|-n+k(A))`,
//!   `P(q) = (-1)^r q^c T(1 - q, 0)`,
//!   `Z(q, w) = sum over A of q^k(A) prod over A of w_e`.
//!
//! All three are found at points by one engine ([`engine`]): an edge that closes a cycle has the factor y, one that joins two blocks 1, and
//! a block that ends x - 1. Polynomials follow by interpolation modulo each prime.
//!
//! Sources: W. T. Tutte (1954), A contribution to the theory of chromatic polynomials, Canad. J. Math. 6; C. M. Fortuin, P. W. Kasteleyn
//! (1972), On the random-cluster model I, Physica 57; S. D. Noble (1998), Evaluating the Tutte polynomial for graphs of bounded tree-width,
//! Combin. Probab. Comput. 7.

mod engine;
mod partition;
mod tables;

use self::engine::{Clusters, Edge};
use self::tables::WHAT;
use super::evaluation::{self, Options, work};
use super::exact::{self, Modular, edge_words};
use super::graph_sums::order::planner;
use super::interpolation::interpolate;
use super::transfer::{Point, Transfer};
use crate::graphs::Graph;
use crate::monitor::{Monitor, Progress};
use crate::numeric::residue::Modulus;
use crate::{Error, Result, memory, parallel};
use num_bigint::{BigInt, BigUint, Sign};
use std::collections::HashMap;

/// A number of components' weight, as numerator and denominator.
pub type Fraction = (BigInt, BigUint);

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterQuantity {
    /// The coefficients of `T(1 + z, 0)`, from z^0 to z^r: those of the chromatic polynomial without their signs.
    Chromatic,
    /// The coefficients of `x^i y^j` in T, row by row, j from 0 to m - r.
    Tutte,
    /// The coefficients of `v^0, ..., v^m` in Z where each edge has the weight v and a component q, times the n-th power of q's denominator.
    Potts(Fraction),
    /// Z with a weight of each edge, times the n-th power of q's denominator and all denominators of edges.
    Weighted(Fraction, Vec<Fraction>),
}

/// A sum over all subsets of the edges that is sought.
#[derive(Debug)]
pub struct ClusterSums {
    quantity: ClusterQuantity,
    words: Vec<u64>,
    engine: Clusters,
    bits: f64,
    vertices: usize,
    edges: usize,
    components: usize,
}

/// Bytes that planning takes for each vertex and edge, about, and those it may take however few are allowed.
const VERTEX: u32 = 640;
const EDGE: u32 = 256;
const LEAST: u64 = 64 << 20;
/// Colors up to which states by colors are looked at.
const MOST_COLORS: usize = 1000;
/// Graphs of so many vertices and edges are planned on the calling thread, as those with matchings.
const SHORT: usize = 32;

impl ClusterSums {
    /// Plans a sum on a graph without loops, along an order of the vertices or the best that is found.
    ///
    /// # Errors
    /// [`Error::Domain`] for a loop, [`Error::Shape`] unless each edge has its weight, [`Error::TooLarge`] if the tables take more than
    /// `limit` bytes; the monitor's error.
    pub fn plan(
        graph: &Graph,
        quantity: ClusterQuantity,
        given: Option<&[u32]>,
        limit: u64,
        monitor: &mut dyn Monitor,
    ) -> Result<Self> {
        if let Some(&(v, _)) = graph.edges().iter().find(|(u, v)| u == v) {
            let value = format!("one at vertex {v}");
            return Err(Error::domain("graph", value, "a graph without loops"));
        }
        if let ClusterQuantity::Weighted(_, weights) = &quantity
            && weights.len() != graph.edges().len()
        {
            return Err(Error::shape("weight", graph.edges().len(), weights.len()));
        }
        memory::check("planning the sum on a graph", graph.bytes(VERTEX, EDGE), limit.max(LEAST))?;
        memory::charge("planning the sum on a graph", graph.bytes(VERTEX, EDGE))?;
        let is_short = graph.vertices() + graph.edges().len() <= SHORT;
        parallel::run_one(is_short, monitor, |progress| Self::new(graph, quantity, given, limit, progress))
    }

    fn new(
        graph: &Graph,
        quantity: ClusterQuantity,
        given: Option<&[u32]>,
        limit: u64,
        progress: &Progress,
    ) -> Result<Self> {
        let planner = planner(graph.vertices(), progress);
        let edges = edges(graph, &quantity);
        let engine = Clusters::plan(graph.vertices(), &edges, quantity.colors(), given, limit, &planner)?;
        let mut words = vec![u64::from_le_bytes(*b"clusters"), graph.vertices() as u64, engine.len() as u64];
        words.push(u64::from(engine.is_colored()));
        words.extend(edge_words(graph));
        words.extend(quantity.words());
        let components = graph.components().1;
        let (vertices, edges) = (graph.vertices(), graph.edges().len());
        let bits = quantity.bits(graph);
        Ok(Self { quantity, words, engine, bits, vertices, edges, components })
    }

    fn rank(&self) -> usize {
        self.vertices - self.components
    }

    /// The points of one modulus.
    fn points(&self, modulus: Modulus) -> Vec<Point> {
        let at = |activity: u64, second: u64| Point::new(modulus, activity).with_second(second);
        match &self.quantity {
            ClusterQuantity::Chromatic => (0..=self.rank() as u64).map(|z| at(0, z)).collect(),
            ClusterQuantity::Tutte => {
                let ys = (self.edges - self.rank()) as u64;
                let row = |x: u64| (0..=ys).map(move |y| at(y, if x == 0 { modulus.value() - 1 } else { x - 1 }));
                (0..=self.rank() as u64).flat_map(row).collect()
            }
            ClusterQuantity::Potts(q) => {
                let q = residue(modulus, q);
                let weight = |v: u64| modulus.residue(modulus.mul(q, modulus.inverse(v)));
                (1..=self.edges as u64 + 1).map(|v| at(v + 1, weight(v))).collect()
            }
            ClusterQuantity::Weighted(q, _) => vec![at(0, residue(modulus, q))],
        }
    }
}

/// The residue of a fraction.
fn residue(modulus: Modulus, (numerator, denominator): &Fraction) -> u64 {
    let inverse = modulus.inverse(modulus.residue_of(denominator));
    modulus.residue(modulus.mul(modulus.residue_of_signed(numerator), inverse))
}

/// The edges between each pair of vertices as one.
fn edges(graph: &Graph, quantity: &ClusterQuantity) -> HashMap<(u32, u32), Edge> {
    let mut found: HashMap<(u32, u32), Edge> = HashMap::with_capacity(graph.edges().len());
    for (i, &(u, v)) in graph.edges().iter().enumerate() {
        let ends = (u.min(v), u.max(v));
        let edge = match quantity {
            ClusterQuantity::Chromatic => Edge::Proper,
            ClusterQuantity::Tutte | ClusterQuantity::Potts(_) => match found.get(&ends) {
                Some(Edge::Parallel(times)) => Edge::Parallel(times + 1),
                _ => Edge::Parallel(1),
            },
            ClusterQuantity::Weighted(_, weights) => {
                let (joining, out) = (weights[i].0.clone(), BigInt::from(weights[i].1.clone()));
                match found.get(&ends) {
                    // One is taken at least.
                    Some(Edge::Weights([others_out, others])) => {
                        Edge::Weights([others_out * &out, others * &out + (others_out + others) * &joining])
                    }
                    _ => Edge::Weights([out, joining]),
                }
            }
        };
        found.insert(ends, edge);
    }
    found
}

impl ClusterQuantity {
    /// The number of colors, where it is one.
    fn colors(&self) -> Option<usize> {
        match self {
            Self::Potts(q) | Self::Weighted(q, _) if q.1 == BigUint::from(1u32) => {
                usize::try_from(&q.0).ok().filter(|colors| (1..=MOST_COLORS).contains(colors))
            }
            _ => None,
        }
    }

    /// What tells it from others on the same graph.
    fn words(&self) -> Vec<u64> {
        let (kind, numbers): (u64, Vec<&Fraction>) = match self {
            Self::Chromatic => (0, Vec::new()),
            Self::Tutte => (1, Vec::new()),
            Self::Potts(q) => (2, vec![q]),
            Self::Weighted(q, weights) => (3, std::iter::once(q).chain(weights).collect()),
        };
        let mut words = vec![kind];
        for (numerator, denominator) in numbers {
            words.extend([u64::from(numerator.sign() == Sign::Minus), numerator.bits(), denominator.bits()]);
            words.extend(numerator.iter_u64_digits().chain(denominator.iter_u64_digits()));
        }
        words
    }

    /// The bound on the integers sought: all are added up without their signs.
    fn bits(&self, graph: &Graph) -> f64 {
        let (vertices, edges) = (graph.vertices() as f64, graph.edges().len() as f64);
        let of_components = |q: &Fraction| vertices * log2(q.0.magnitude()).max(log2(&q.1));
        let bits = match self {
            // T(2, 0), the number of acyclic orientations: each is known by the vertices' numbers of edges that leave.
            Self::Chromatic => edges.min(graph.degrees().iter().map(|&d| (d as f64 + 1.0).log2()).sum()),
            // T(1, 1), the number of forests that span the components: each vertex but one of a component has an edge towards that one.
            Self::Tutte => {
                let (component, count) = graph.components();
                let mut largest = vec![1; count];
                let degrees = graph.degrees();
                for (&component, &degree) in component.iter().zip(&degrees) {
                    largest[component as usize] = degree.max(largest[component as usize]);
                }
                let log2 = |all: &[u64]| all.iter().map(|&d| (d.max(1) as f64).log2()).sum::<f64>();
                edges.min(log2(&degrees) - log2(&largest))
            }
            Self::Potts(q) => edges + of_components(q),
            Self::Weighted(q, weights) => {
                let edge = |(numerator, denominator): &Fraction| log2(&(numerator.magnitude() + denominator));
                weights.iter().map(edge).sum::<f64>() + of_components(q)
            }
        };
        bits * (1.0 + 1e-9) + 0.01
    }
}

/// A logarithm that is not too small; 0 for zero.
fn log2(x: &BigUint) -> f64 {
    let shift = x.bits().saturating_sub(53);
    let leading = u64::try_from(x >> shift).unwrap_or(u64::MAX).saturating_add(u64::from(shift > 0));
    if leading == 0 { 0.0 } else { (leading as f64).log2() + shift as f64 }
}

impl Modular for ClusterSums {
    fn description(&self) -> Vec<u64> {
        self.words.clone()
    }

    fn bits(&self) -> f64 {
        self.bits
    }

    fn is_signed(&self) -> bool {
        match &self.quantity {
            ClusterQuantity::Chromatic | ClusterQuantity::Tutte => false,
            ClusterQuantity::Potts(q) => q.0.sign() == Sign::Minus,
            ClusterQuantity::Weighted(q, weights) => {
                std::iter::once(q).chain(weights).any(|(numerator, _)| numerator.sign() == Sign::Minus)
            }
        }
    }

    fn allows(&self, prime: Modulus) -> bool {
        match &self.quantity {
            ClusterQuantity::Potts(q) | ClusterQuantity::Weighted(q, _) => prime.residue_of(&q.1) != 0,
            _ => true,
        }
    }

    fn method(&self) -> (&'static str, u128, f64) {
        let bytes = 8 * self.engine.len() as u128;
        ("set partitions", bytes, work(&self.engine) as f64 * self.values() as f64)
    }

    fn values(&self) -> usize {
        match &self.quantity {
            ClusterQuantity::Chromatic => self.rank() + 1,
            ClusterQuantity::Tutte => (self.rank() + 1) * (self.edges - self.rank() + 1),
            ClusterQuantity::Potts(_) => self.edges + 1,
            ClusterQuantity::Weighted(..) => 1,
        }
    }

    fn residues(&self, moduli: &[Modulus], options: &Options, monitor: &mut dyn Monitor) -> Result<Vec<u64>> {
        memory::check(WHAT, 8 * self.engine.len() as u128, options.memory_limit)?;
        let mut points: Vec<Point> = Vec::new();
        for &modulus in moduli {
            monitor.tick(0, 0)?; // a polynomial of a long path has millions of points
            points.extend(self.points(modulus));
        }
        let job = options.checkpoint.as_ref().map_or(0, |_| exact::job(self, moduli));
        evaluation::residues(&self.engine, job, &points, options, monitor)
    }

    fn integers(&self, prime: Modulus, values: &[u64]) -> Vec<u64> {
        let mul = |a: u64, b: u64| prime.residue(prime.mul(a, b));
        let points = |count: usize| (0..count as u64).collect::<Vec<u64>>();
        if self.engine.is_colored() && self.values() == 1 {
            return values.to_vec();
        }
        // The engine's sum has a component less for each of the graph, and `v^-1` for each edge of a forest.
        let ended = |q: &Fraction| {
            let denominators = prime.pow(prime.residue_of(&q.1), self.vertices as u64);
            mul(prime.pow(residue(prime, q), self.components as u64), denominators)
        };
        match &self.quantity {
            ClusterQuantity::Chromatic => interpolate(prime, &points(values.len()), values),
            ClusterQuantity::Tutte => {
                let (rows, columns) = (self.rank() + 1, self.edges - self.rank() + 1);
                let in_y: Vec<Vec<u64>> =
                    values.chunks(columns).map(|row| interpolate(prime, &points(columns), row)).collect();
                let mut found = vec![0; values.len()];
                for j in 0..columns {
                    let column: Vec<u64> = in_y.iter().map(|row| row[j]).collect();
                    let in_x = interpolate(prime, &points(rows), &column);
                    in_x.into_iter().enumerate().for_each(|(i, c)| found[i * columns + j] = c);
                }
                found
            }
            ClusterQuantity::Potts(q) => {
                let ended = ended(q);
                let value = |(v, &x): (u64, &u64)| match self.engine.is_colored() {
                    true => x,
                    false => mul(mul(x, ended), prime.pow(v, self.rank() as u64)),
                };
                let values: Vec<u64> = (1..).zip(values).map(value).collect();
                let points: Vec<u64> = (1..=values.len() as u64).collect();
                interpolate(prime, &points, &values)
            }
            ClusterQuantity::Weighted(q, _) => values.iter().map(|&x| mul(x, ended(q))).collect(),
        }
    }
}
