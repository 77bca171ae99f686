//! Independent sets of a small graph by looking at all of them: the oracle every engine is tested against.
//!
//! An independent set of a graph with an edge at `v` either avoids `v` or holds `v` and avoids its neighbors:
//! `Z(G) = Z(G - v) + z Z(G - N[v])`; without edges `Z = (1 + z)^n`.
//!
//! Source: I. Gutman, F. Harary (1983), Generalizations of the matching polynomial, Utilitas Math. 24 (the recursion).

use crate::graphs::Graph;
#[cfg(test)]
use crate::numeric::residue::primes;
#[cfg(test)]
use crate::transfer::Point;
use crate::{Error, Result};

/// The largest graph this is meant for.
pub const MOST_VERTICES: usize = 30;

/// The number of independent sets of each size, the last one not zero: the independence polynomial.
///
/// # Errors
/// [`Error::Domain`] beyond [`MOST_VERTICES`] vertices.
pub fn polynomial(graph: &Graph) -> Result<Vec<u64>> {
    let vertices = graph.vertices();
    if vertices > MOST_VERTICES {
        return Err(Error::domain("graph", vertices, "of at most 30 vertices"));
    }
    let mut allowed = (1u32 << vertices) - 1;
    let mut adjacent = vec![0u32; vertices];
    for &(u, v) in graph.edges() {
        if u == v {
            allowed &= !(1 << u);
        }
        adjacent[u as usize] |= 1 << v;
        adjacent[v as usize] |= 1 << u;
    }
    let mut coefficients = vec![0; vertices + 1];
    branch(&adjacent, allowed, 0, &mut coefficients);
    let degree = coefficients.iter().rposition(|&x| x != 0).unwrap_or(0);
    coefficients.truncate(degree + 1);
    Ok(coefficients)
}

/// Adds the independent subsets of `allowed`, each with `chosen` vertices more.
fn branch(adjacent: &[u32], allowed: u32, chosen: usize, coefficients: &mut [u64]) {
    let mut rest = allowed;
    while rest != 0 {
        let vertex = rest.trailing_zeros();
        if adjacent[vertex as usize] & allowed != 0 {
            let without = allowed & !(1 << vertex);
            branch(adjacent, without, chosen, coefficients);
            return branch(adjacent, without & !adjacent[vertex as usize], chosen + 1, coefficients);
        }
        rest &= rest - 1;
    }
    let n = u64::from(allowed.count_ones());
    let mut binomial = 1;
    for k in 0..=n {
        coefficients[chosen + k as usize] += binomial;
        binomial = binomial * (n - k) / (k + 1);
    }
}

/// The polynomial of a graph, and its values at four points modulo the largest prime.
#[cfg(test)]
pub(crate) fn values(graph: &Graph) -> (Vec<u64>, [Point; 4], Vec<u64>) {
    let coefficients = polynomial(graph).unwrap();
    let modulus = primes(1).unwrap()[0];
    let points = [1, 0, 2, modulus.value() - 5].map(|activity| Point::new(modulus, activity));
    let horner = |point: &Point| {
        let next = |sum, &c: &u64| modulus.residue(modulus.mul(sum, point.activity) + c);
        coefficients.iter().rev().fold(0, next)
    };
    let expected = points.iter().map(horner).collect();
    (coefficients, points, expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_graphs_have_the_polynomials_one_finds_by_hand() {
        let graph = |n, edges: &[(u32, u32)]| polynomial(&Graph::new(n, edges.to_vec()).unwrap()).unwrap();
        assert_eq!(graph(0, &[]), [1]);
        assert_eq!(graph(3, &[]), [1, 3, 3, 1]);
        assert_eq!(graph(3, &[(0, 1), (1, 2)]), [1, 3, 1]);
        assert_eq!(graph(4, &[(0, 1), (1, 2), (2, 3), (3, 0)]), [1, 4, 2]);
        assert_eq!(graph(2, &[(0, 0), (0, 1), (1, 0)]), [1, 1]);
        assert_eq!(graph(1, &[(0, 0)]), [1]);
    }

    #[test]
    fn graphs_out_of_reach_are_refused() {
        assert!(matches!(polynomial(&Graph::new(31, vec![]).unwrap()), Err(Error::Domain { name: "graph", .. })));
        assert_eq!(polynomial(&Graph::new(30, vec![]).unwrap()).unwrap().iter().sum::<u64>(), 1 << 30);
    }
}
