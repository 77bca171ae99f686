//! The Kirchhoff index of a connected graph, exactly: trees and trees times index are integers.
//!
//! With R the inverse of the Laplacian L_0 without one vertex, the sum of all resistances is Kf = n tr R - 1' R 1, so that
//! with tau spanning trees and J the matrix of ones
//!
//!   det(L_0 + t (n I - J)) = tau + t tau Kf + O(t^2) = det [[L_0 + t n I, 1], [t 1', 1]],
//!
//! whose right side is sparse but for a border. Modulo p^2 and at t = p nothing is left of the higher terms: one elimination
//! gives tau Kf modulo p, tau being known. A resistance is at most a distance, and all distances together are at most those of
//! a path: tau Kf <= tau (n^3 - n)/6 says how many primes are needed.
//!
//! Source: D. Klein, M. Randic (1993), Resistance distance, J. Math. Chem. 12 (the index); the determinant is derived here.

use super::LARGE;
use crate::counting::exact;
use crate::graphs::Graph;
use crate::monitor::{Monitor, Progress};
use crate::numeric::elimination::{MatrixKind, PlannedMatrix};
use crate::numeric::residue::is_prime;
use crate::{Error, Result, memory, parallel};
use num_bigint::BigUint;

/// The squares of primes below this are below 2^54.
const LARGEST: u64 = 1 << 27;

/// `tau Kf` of a connected graph of at least two vertices with `trees` spanning trees, verified by a spare prime.
///
/// # Errors
/// [`Error::TooLarge`] if an elimination takes more than `limit` bytes, [`Error::Check`] if the spare prime contradicts the
/// others, the monitor's error.
pub fn trees_times_index(
    graph: &Graph,
    trees: &BigUint,
    threads: usize,
    limit: u64,
    monitor: &mut dyn Monitor,
) -> Result<BigUint> {
    let n = graph.vertices();
    if n < 2 || n as u64 >= LARGEST {
        return Err(Error::domain("n", n, "between 2 and 2**27"));
    }
    let matrix = parallel::run_one(graph.edges().len() <= LARGE, monitor, |progress| bordered(graph, progress))?;
    let bytes = matrix.bytes();
    memory::check("the fronts of the Laplacian", bytes, limit)?;
    let threads = threads.min(usize::try_from(u128::from(limit) / bytes.max(1)).unwrap_or(threads)).max(1);
    let bits = trees.bits() as f64 + 3.0 * (n as f64).log2();
    let count = (bits / 26.9).ceil() as usize + 2;
    let mut below = LARGEST;
    let mut found: Vec<(u64, u64)> = Vec::with_capacity(count);
    parallel::run(threads, count as u64, monitor, |progress| {
        while found.len() < count {
            let mut primes = Vec::with_capacity(threads);
            while primes.len() < threads.min(count - found.len()) {
                if below < 5 {
                    return Err(Error::domain(
                        "graph",
                        format!("{} bits", trees.bits()),
                        "of at most so many trees as all primes below 2**27 determine",
                    ));
                }
                below -= 1;
                if is_prime(below) && trees % below != BigUint::ZERO {
                    primes.push(below);
                }
            }
            let one = |i: usize| {
                let p = primes[i];
                let square = p * p;
                let Some(value) = matrix.evaluate_at(p, square, progress)? else { return Ok(None) };
                let tau = u64::try_from(trees % square).unwrap_or(0);
                let rest = if value >= tau { value - tau } else { value + (square - tau) };
                if rest % p != 0 {
                    let detail = format!("the trees are not what they are modulo {p}");
                    return Err(Error::Check { what: "a Kirchhoff index", detail });
                }
                Ok(Some((p, rest / p)))
            };
            // A prime that divides a pivot says nothing; another takes its place.
            let wave = parallel::try_map(primes.len(), one)?;
            let before = found.len();
            found.extend(wave.into_iter().flatten());
            progress.advance((found.len() - before) as u64)?;
        }
        Ok(())
    })?;
    let Some((spare, expected)) = found.pop() else { return Ok(BigUint::ZERO) };
    let value = exact::combine_residues(&found, monitor)?;
    if &value % spare != BigUint::from(expected) {
        let detail = format!("the spare prime {spare} contradicts the others");
        return Err(Error::Check { what: "a Kirchhoff index", detail });
    }
    Ok(value)
}

/// `[[L_0 + t n I, 1], [t 1', 1]]`, the vertex of highest degree grounded, the border last.
fn bordered(graph: &Graph, progress: &Progress) -> Result<PlannedMatrix> {
    let (n, degrees) = (graph.vertices(), graph.degrees());
    let ground = (0..n).max_by_key(|&v| (degrees[v], v)).unwrap_or(0);
    let name = |v: u32| v - u32::from(v as usize > ground);
    let border = n as u32 - 1;
    let mut diagonal = vec![0i64; n];
    let (mut entries, mut slopes) = (vec![(border, border, 1)], vec![0]);
    let mut put = |row, col, value, slope| {
        entries.push((row, col, value));
        slopes.push(slope);
    };
    for &(u, v) in graph.edges().iter().filter(|(u, v)| u != v) {
        diagonal[u as usize] += 1;
        diagonal[v as usize] += 1;
        if u as usize != ground && v as usize != ground {
            put(name(u), name(v), -1, 0);
            put(name(v), name(u), -1, 0);
        }
    }
    for v in (0..n as u32).filter(|&v| v as usize != ground) {
        put(name(v), name(v), diagonal[v as usize], n as i64);
        put(name(v), border, 1, 0);
        put(border, name(v), 0, 1);
    }
    let mut last = vec![false; n];
    last[n - 1] = true;
    PlannedMatrix::linear(MatrixKind::General, n, &entries, &slopes, &last, progress)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::complete;
    use crate::monitor::Silent;

    fn index(graph: &Graph, trees: u64) -> BigUint {
        trees_times_index(graph, &BigUint::from(trees), 2, u64::MAX, &mut Silent).unwrap()
    }

    #[test]
    fn known_indices() {
        // K_n has n - 1, a path (n^3 - n)/6, a cycle (n^3 - n)/12.
        assert_eq!(index(&complete(5).unwrap(), 125), BigUint::from(4 * 125u32));
        let path = Graph::new(7, (0..6).map(|v| (v, v + 1)).collect()).unwrap();
        assert_eq!(index(&path, 1), BigUint::from(56u32));
        let cycle = Graph::new(6, (0..6).map(|v| (v, (v + 1) % 6)).collect()).unwrap();
        assert_eq!(index(&cycle, 6), BigUint::from(105u32));
        let double = Graph::new(2, vec![(0, 1), (1, 0), (1, 1)]).unwrap();
        assert_eq!(index(&double, 2), BigUint::from(1u32));
    }

    #[test]
    fn wrong_trees_are_noticed() {
        let path = Graph::new(4, vec![(0, 1), (1, 2), (2, 3)]).unwrap();
        assert!(trees_times_index(&path, &BigUint::from(2u32), 1, u64::MAX, &mut Silent).is_err());
        assert!(trees_times_index(&path, &BigUint::from(1u32), 1, 8, &mut Silent).is_err());
        let vertex = Graph::new(1, vec![]).unwrap();
        assert!(trees_times_index(&vertex, &BigUint::from(1u32), 1, u64::MAX, &mut Silent).is_err());
    }
}
