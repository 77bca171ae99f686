//! Perfect matchings of a clique insertion C(G), counted on G: a sum over its even subgraphs.
//!
//! C(G) has a vertex for each edge end of G, joined to the other end of its edge and to the ends at the same vertex. The
//! edges of G whose link is not in a perfect matching form a subgraph F, and at each vertex v the ends of F are matched among
//! themselves in (d_F(v) - 1)!! ways, none if their number is odd:
//!
//!   M(C(G)) = sum over even subgraphs F of prod over v of (d_F(v) - 1)!!.
//!
//! An end whose link was cut, as at the border of a lattice that was inserted before it was cut, belongs to every F. Vertices
//! come in an order; a state says which edges between those that came and the others are in F.
//!
//! For a square lattice of L columns this takes 2^(L+1) states, a quarter to an eighth of those of a frontier of C(G).
//!
//! Source: derived here, see `docs/mathematics/lattice-statistics.md`; the bound: N. Alon, S. Friedland (2008), The maximum
//! number of perfect matchings in graphs with a given degree sequence, Electron. J. Combin. 15, N13.

use crate::counting::evaluation::Options;
use crate::counting::exact::{Modular, edge_words, one_value};
use crate::counting::graph_sums::order::{OrderStep, OrderSum, good_order, planner, sum};
use crate::graphs::Graph;
use crate::monitor::{Monitor, Progress};
use crate::numeric::residue::Modulus;
use crate::{Error, Result, parallel};

/// A sum over even subgraphs that is sought.
#[derive(Debug)]
pub struct EvenSubgraphs {
    words: Vec<u64>,
    steps: OrderSum<EdgeStep>,
    bits: f64,
}

/// A vertex: bits of its edges to earlier and later vertices, ends that are in every subgraph.
#[derive(Debug)]
struct EdgeStep {
    closed: u64,
    opened: Vec<u32>,
    dangling: u32,
}

impl EvenSubgraphs {
    /// Plans a count on a graph with so many ends of cut links at each vertex.
    ///
    /// # Errors
    /// [`Error::Domain`] for a loop, [`Error::Shape`] unless each vertex has its number of ends, [`Error::TooLarge`] if the
    /// states of one residue take more than `limit` bytes; the monitor's error.
    pub fn new(graph: &Graph, dangling: &[u32], limit: u64, monitor: &mut dyn Monitor) -> Result<Self> {
        if let Some(&(v, _)) = graph.edges().iter().find(|(u, v)| u == v) {
            let value = format!("one at vertex {v}");
            return Err(Error::domain("graph", value, "a graph without loops"));
        }
        if dangling.len() != graph.vertices() {
            return Err(Error::shape("dangling", graph.vertices(), dangling.len()));
        }
        let plain: Vec<u32> = (0..graph.vertices() as u32).collect();
        let searched = parallel::run(1, 0, monitor, |progress| {
            good_order(&graph.neighbors(), &planner(graph.vertices(), progress))
        })?;
        let steps = [&plain, &searched].map(|order| along(graph, dangling, order));
        let [plain, searched] = steps;
        let steps = if searched.work() < plain.work() { searched } else { plain };
        let steps = steps.within(limit, |_| EdgeStep::STATES)?;
        let mut words = vec![u64::from_le_bytes(*b"even sub"), graph.vertices() as u64];
        words.extend(dangling.iter().map(|&ends| u64::from(ends)));
        words.extend(edge_words(graph));
        // Bregman's bound prod (d!)^(1/(2 d)) on the simple graph C(G), whose d ends at a vertex have the degree d.
        let ends = graph.degrees().into_iter().zip(dangling).map(|(degree, &more)| degree + u64::from(more));
        let factorials = ends.map(|d| (2..=d).map(|i| (i as f64).log2()).sum::<f64>() / 2.0);
        let bits = factorials.sum::<f64>() * (1.0 + 1e-9) + 0.01;
        Ok(Self { words, steps, bits })
    }
}

/// The sum modulo a prime.
impl OrderStep<Modulus> for EdgeStep {
    const STATES: &'static str = "the states of the even subgraphs";

    fn take(&self, &modulus: &Modulus, states: &mut [u64], _: &Progress) -> Result<()> {
        let p = modulus.value();
        let opened = self.opened.iter().fold(0u64, |bits, &bit| bits | 1 << bit);
        let mask = self.closed | opened;
        let earlier = subsets(self.closed);
        let later = subsets(opened);
        let (most_in, most_out) = (self.closed.count_ones() as usize, self.opened.len());
        // Ways to match so many ends in pairs.
        let mut weights = vec![0u64; most_in + most_out + self.dangling as usize + 1];
        weights[0] = 1;
        for d in (2..weights.len()).step_by(2) {
            weights[d] = modulus.residue(modulus.mul(weights[d - 2], d as u64 - 1));
        }
        let (mut sums, mut values) = (vec![0u64; most_in + 1], vec![0u64; most_out + 1]);
        let mut rest = 0u64;
        while rest < states.len() as u64 {
            sums.fill(0);
            for &bits in &earlier {
                let state = &mut states[(rest | bits) as usize];
                let total = &mut sums[bits.count_ones() as usize];
                *total = sum(*total, *state, p);
                *state = 0;
            }
            for (out, value) in values.iter_mut().enumerate() {
                *value = 0;
                for (into, &total) in sums.iter().enumerate() {
                    let weight = weights[into + out + self.dangling as usize];
                    let term = match weight {
                        0 => continue,
                        1 => total,
                        _ => modulus.residue(modulus.mul(total, weight)),
                    };
                    *value = sum(*value, term, p);
                }
            }
            for &bits in &later {
                states[(rest | bits) as usize] = values[bits.count_ones() as usize];
            }
            // The next number whose bits lie outside the mask.
            rest = ((rest | mask) + 1) & !mask;
        }
        Ok(())
    }
}

/// All subsets of some bits.
fn subsets(mask: u64) -> Vec<u64> {
    let mut found = vec![0];
    let mut subset = 0u64;
    loop {
        subset = subset.wrapping_sub(mask) & mask;
        if subset == 0 {
            return found;
        }
        found.push(subset);
    }
}

/// The steps of an order.
fn along(graph: &Graph, dangling: &[u32], order: &[u32]) -> OrderSum<EdgeStep> {
    let mut place = vec![0usize; order.len()];
    order.iter().enumerate().for_each(|(at, &v)| place[v as usize] = at);
    let mut at_vertex: Vec<Vec<(u32, u32)>> = vec![Vec::new(); order.len()];
    for (e, &(u, v)) in graph.edges().iter().enumerate() {
        at_vertex[u as usize].push((v, e as u32));
        at_vertex[v as usize].push((u, e as u32));
    }
    let mut bit = vec![0u32; graph.edges().len()];
    let mut steps = OrderSum::default();
    for (at, &v) in order.iter().enumerate() {
        let (mut closed, mut opened) = (0u64, Vec::new());
        let (earlier, later): (Vec<_>, Vec<_>) =
            at_vertex[v as usize].iter().partition(|&&(u, _)| place[u as usize] < at);
        for (_, e) in earlier {
            closed |= 1u64.checked_shl(bit[e as usize]).unwrap_or(0);
            steps.forget(bit[e as usize]);
        }
        for (_, e) in later {
            bit[e as usize] = steps.introduce();
            opened.push(bit[e as usize]);
        }
        steps.push(EdgeStep { closed, opened, dangling: dangling[v as usize] });
    }
    steps
}

impl Modular for EvenSubgraphs {
    fn description(&self) -> Vec<u64> {
        self.words.clone()
    }

    fn bits(&self) -> f64 {
        self.bits
    }

    fn method(&self) -> (&'static str, u128, f64) {
        ("even subgraphs", self.steps.bytes(), self.steps.work())
    }

    fn residues(&self, moduli: &[Modulus], options: &Options, monitor: &mut dyn Monitor) -> Result<Vec<u64>> {
        one_value(self, EdgeStep::STATES, moduli, options, monitor, |modulus, progress| {
            self.steps.evaluate(&modulus, progress)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::exact::tests::solve;
    use crate::counting::matchings::{Matchings, Which};
    use crate::graphs::complete;
    use crate::lattices::clique_insert;
    use crate::monitor::Silent;
    use num_bigint::BigInt;
    use proptest::prelude::*;

    fn count(graph: &Graph, dangling: &[u32]) -> BigInt {
        solve(EvenSubgraphs::new(graph, dangling, u64::MAX, &mut Silent).unwrap())
    }

    #[test]
    fn known_insertions() {
        assert_eq!(count(&complete(5).unwrap(), &[0; 5]), 416.into());
        assert_eq!(count(&complete(4).unwrap(), &[0; 4]), 8.into());
        let tree = Graph::new(4, vec![(0, 1), (0, 2), (0, 3)]).unwrap();
        assert_eq!(count(&tree, &[0; 4]), 1.into());
        assert_eq!(count(&Graph::new(0, vec![]).unwrap(), &[]), 1.into());
        // Four ends of cut links at one vertex are matched in three ways, three in none.
        assert_eq!(count(&Graph::new(1, vec![]).unwrap(), &[4]), 3.into());
        assert_eq!(count(&Graph::new(1, vec![]).unwrap(), &[3]), 0.into());
        assert!(EvenSubgraphs::new(&Graph::new(1, vec![(0, 0)]).unwrap(), &[0], u64::MAX, &mut Silent).is_err());
        assert!(EvenSubgraphs::new(&Graph::new(2, vec![]).unwrap(), &[0], u64::MAX, &mut Silent).is_err());
        assert!(EvenSubgraphs::new(&complete(40).unwrap(), &[0; 40], 1 << 30, &mut Silent).is_err());
    }

    proptest! {
        #[test]
        fn the_sum_is_the_number_of_matchings_of_the_insertion(
            n in 1u32..6,
            pairs in prop::collection::vec((0u32..6, 0u32..6), 0..8),
        ) {
            let edges: Vec<_> = pairs.into_iter().map(|(u, v)| (u % n, v % n)).filter(|(u, v)| u != v).collect();
            let graph = Graph::new(n as usize, edges).unwrap();
            let inserted = clique_insert(&graph, 1).unwrap();
            let frontier = solve(Matchings::plan(&inserted, Which::Perfect, None, u64::MAX, &mut Silent).unwrap());
            prop_assert_eq!(count(&graph, &vec![0; n as usize]), frontier);
        }
    }
}
