//! What the tests of exact counts share: exact values from residues, and all subsets of small graphs.

use num_bigint::BigUint;
use quincunx::counting::independent_sets::Boundary;
use quincunx::counting::transfer::{Point, Transfer, TransferRing, evaluate_lanes};
use quincunx::monitor::Progress;
use quincunx::numeric::residue::{combine, primes};
use quincunx::numeric::ring::Lanes;

/// The boundaries and their names.
pub const BOUNDARIES: [(Boundary, &str); 3] =
    [(Boundary::Free, "free"), (Boundary::Cylinder, "cylinder"), (Boundary::Torus, "torus")];

/// The exact value at an activity, by groups of `L` primes, with a spare prime.
pub fn count<const L: usize>(engine: &impl Transfer, activity: u64, bits: u64) -> BigUint
where
    Lanes<L>: TransferRing<Element = [u64; L]>,
{
    let points: Vec<Point> =
        primes((bits / 54 + 2) as usize).unwrap().into_iter().map(|modulus| Point::new(modulus, activity)).collect();
    let residues: Vec<(u64, u64)> = points
        .chunks(L)
        .flat_map(|group| {
            let values = evaluate_lanes::<L>(engine, group, &Progress::default()).unwrap();
            group.iter().map(|point| point.modulus.value()).zip(values)
        })
        .collect();
    let (spare, rest) = residues.split_last().unwrap();
    let value = combine(rest).unwrap();
    assert_eq!(&value % spare.0, BigUint::from(spare.1), "the spare prime");
    value
}

/// The independence polynomial over all subsets; a looped vertex is in none.
pub fn polynomial(vertices: usize, edges: &[(usize, usize)]) -> Vec<u64> {
    assert!(vertices <= 26);
    let mut neighbors = vec![0u32; vertices];
    let mut looped = 0u32;
    for &(a, b) in edges {
        neighbors[a] |= 1 << b;
        neighbors[b] |= 1 << a;
        looped |= u32::from(a == b) << a;
    }
    let mut coefficients = vec![0; vertices + 1];
    grow(&neighbors, 0, !looped, 0, &mut coefficients);
    coefficients
}

fn grow(neighbors: &[u32], vertex: usize, allowed: u32, size: usize, coefficients: &mut [u64]) {
    if vertex == neighbors.len() {
        coefficients[size] += 1;
        return;
    }
    grow(neighbors, vertex + 1, allowed, size, coefficients);
    if allowed >> vertex & 1 == 1 {
        grow(neighbors, vertex + 1, allowed & !neighbors[vertex], size + 1, coefficients);
    }
}

/// The polynomial at an activity.
pub fn at(coefficients: &[u64], activity: u64) -> BigUint {
    coefficients.iter().rev().fold(BigUint::ZERO, |sum, &c| sum * activity + c)
}

/// Bits that hold a polynomial of `vertices` vertices at an activity.
pub fn bits(vertices: usize, activity: u64) -> u64 {
    vertices as u64 * u64::from(64 - activity.leading_zeros() + 1)
}
