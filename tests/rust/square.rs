//! Independent sets of the square lattice, against published sequences and all subsets.

use num_bigint::BigUint;
use quincunx::counting::independent_sets::Boundary;
use quincunx::counting::independent_sets::square::Square;
use quincunx::counting::transfer::{Point, evaluate_lanes};
use quincunx::monitor::Progress;
use quincunx::numeric::residue::{Modulus, combine, primes};

/// The number of independent sets, from residues modulo one prime more than needed.
fn count(rows: usize, cols: usize, boundary: Boundary) -> BigUint {
    let engine = Square::new(rows, cols, boundary).unwrap();
    let moduli = primes(rows * cols / 54 + 2).unwrap();
    let residues = moduli.chunks(4).flat_map(|group| {
        let points: Vec<_> = group.iter().map(|&modulus| Point::new(modulus, 1)).collect();
        evaluate_lanes::<4>(&engine, &points, &Progress::default()).unwrap()
    });
    combine(&moduli.iter().map(|m| m.value()).zip(residues).collect::<Vec<_>>()).unwrap()
}

/// The coefficients of the independence polynomial modulo a prime, by Newton's interpolation at 0, 1, ..., degree.
fn polynomial(engine: &Square, degree: usize, modulus: Modulus) -> Vec<u64> {
    let points: Vec<_> = (0..=degree as u64).map(|activity| Point::new(modulus, activity)).collect();
    let mut values: Vec<_> =
        points.chunks(8).flat_map(|group| evaluate_lanes::<8>(engine, group, &Progress::default()).unwrap()).collect();
    let p = modulus.value();
    let minus = |a: u64, b: u64| (a + (p - b)) % p;
    for level in 1..=degree {
        for i in (level..=degree).rev() {
            values[i] = modulus.residue(modulus.mul(minus(values[i], values[i - 1]), modulus.inverse(level as u64)));
        }
    }
    let mut coefficients = vec![0; degree + 1];
    for i in (0..=degree).rev() {
        // coefficients <- coefficients * (z - i) + values[i]
        for j in (0..=degree).rev() {
            let shifted = if j > 0 { coefficients[j - 1] } else { values[i] };
            coefficients[j] = minus(shifted, modulus.residue(modulus.mul(coefficients[j], i as u64)));
        }
    }
    coefficients
}

/// The number of sets of each size, over all subsets of the vertices.
fn brute_force(rows: usize, cols: usize, boundary: Boundary) -> Vec<u64> {
    let wraps = |extent, closed: bool, i: usize| if i < extent { Some(i) } else { closed.then_some(0) };
    let mut edges = Vec::new();
    for (r, c) in (0..rows).flat_map(|r| (0..cols).map(move |c| (r, c))) {
        let below = wraps(rows, boundary == Boundary::Torus, r + 1).map(|below| (below, c));
        let right = wraps(cols, boundary != Boundary::Free, c + 1).map(|right| (r, right));
        edges.extend(below.into_iter().chain(right).map(|(r2, c2)| 1u32 << (r * cols + c) | 1 << (r2 * cols + c2)));
    }
    let mut counts = vec![0; rows * cols + 1];
    for set in (0u32..1 << (rows * cols)).filter(|set| edges.iter().all(|edge| set & edge != *edge)) {
        counts[set.count_ones() as usize] += 1;
    }
    counts
}

#[test]
fn square_patches_have_the_published_counts() {
    // OEIS A006506; from n = 14 on also confirmed by a site-by-site transfer matrix.
    for (n, expected) in [
        (1, "2"),
        (2, "7"),
        (3, "63"),
        (4, "1234"),
        (5, "55447"),
        (6, "5598861"),
        (7, "1280128950"),
        (8, "660647962955"),
        (14, "338752110195939290445247645371206783"),
        (19, "105105055066577962012604229608317915229737651637019975757755051314"),
        (
            24,
            "23014876830102973080295375510481185265791418130718634637816237986620978856344595418898906840911239867869",
        ),
    ] {
        assert_eq!(count(n, n, Boundary::Free).to_string(), expected, "{n} x {n}");
    }
}

#[test]
fn tori_have_the_published_counts() {
    // OEIS A027683, and 2 x 5 by the trace of the transfer matrix.
    for (m, n, expected) in [
        (1, 1, 1u32),
        (1, 7, 1),
        (2, 2, 7),
        (3, 3, 34),
        (4, 4, 743),
        (5, 5, 25531),
        (6, 6, 2_406_862),
        (2, 5, 81),
        (5, 2, 81),
    ] {
        assert_eq!(count(m, n, Boundary::Torus), BigUint::from(expected), "{m} x {n}");
    }
}

#[test]
fn paths_and_cycles_count_fibonacci_and_lucas_numbers() {
    let (mut f, mut next) = (BigUint::from(2u32), BigUint::from(3u32));
    let (mut l, mut next_l) = (BigUint::from(1u32), BigUint::from(3u32));
    for n in 1..120 {
        assert_eq!(count(1, n, Boundary::Free), f);
        assert_eq!(count(1, n, Boundary::Cylinder), l);
        (f, next) = (next.clone(), f + next);
        (l, next_l) = (next_l.clone(), l + next_l);
    }
}

#[test]
fn polynomials_have_the_coefficients_of_all_subsets() {
    let modulus = primes(1).unwrap()[0];
    for boundary in [Boundary::Free, Boundary::Cylinder, Boundary::Torus] {
        for (rows, cols) in [(3, 3), (2, 5), (4, 4), (5, 3), (3, 6), (1, 9)] {
            let engine = Square::new(rows, cols, boundary).unwrap();
            let expected = brute_force(rows, cols, boundary);
            assert_eq!(polynomial(&engine, rows * cols, modulus), expected, "{rows} x {cols} {boundary:?}");
        }
    }
}
