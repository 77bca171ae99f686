//! Grids with diagonals against published numbers and against all subsets of small graphs.

use crate::exact::{BOUNDARIES, at, bits, count, polynomial};
use num_bigint::BigUint;
use quincunx::Error;
use quincunx::counting::independent_sets::Boundary;
use quincunx::counting::independent_sets::diagonal::{Diagonal, Diagonals};
use quincunx::counting::transfer::{Point, Transfer, Weight, evaluate, evaluate_lanes};
use quincunx::monitor::Progress;
use quincunx::numeric::residue::{Modulus, primes};
use quincunx::numeric::ring::F64;

const FIXED: [Diagonals; 3] = [Diagonals::Neither, Diagonals::Falling, Diagonals::Both];

/// The grid as a plain graph; `diagonals` says of each cell whether it has the falling and the rising one.
fn grid(
    rows: usize,
    cols: usize,
    boundary: Boundary,
    mut diagonals: impl FnMut() -> (bool, bool),
) -> Vec<(usize, usize)> {
    let (wrap_rows, wrap_cols) = (boundary == Boundary::Torus, boundary != Boundary::Free);
    let mut edges = Vec::new();
    for r in 0..rows {
        for c in 0..cols {
            let vertex = |dr: usize, dc: usize| (r + dr) % rows * cols + (c + dc) % cols;
            let (below, right) = (wrap_rows || r + 1 < rows, wrap_cols || c + 1 < cols);
            if below {
                edges.push((vertex(0, 0), vertex(1, 0)));
            }
            if right {
                edges.push((vertex(0, 0), vertex(0, 1)));
            }
            if below && right {
                let (falling, rising) = diagonals();
                if falling {
                    edges.push((vertex(0, 0), vertex(1, 1)));
                }
                if rising {
                    edges.push((vertex(0, 1), vertex(1, 0)));
                }
            }
        }
    }
    edges
}

fn fixed(rows: usize, cols: usize, diagonals: Diagonals, boundary: Boundary) -> Vec<(usize, usize)> {
    grid(rows, cols, boundary, || match diagonals {
        Diagonals::Neither => (false, false),
        Diagonals::Falling => (true, false),
        _ => (true, true),
    })
}

#[test]
fn grids_agree_with_all_subsets_at_every_activity() {
    for diagonals in FIXED {
        for (boundary, name) in BOUNDARIES {
            for (rows, cols) in (1..=6).flat_map(|rows| (1..=6).map(move |cols| (rows, cols))) {
                let vertices = rows * cols;
                if vertices > 16 {
                    continue;
                }
                let coefficients = polynomial(vertices, &fixed(rows, cols, diagonals, boundary));
                let engine = Diagonal::new(rows, cols, diagonals, boundary).unwrap();
                for activity in [0u64, 1, 2, 7, 1_000_003] {
                    assert_eq!(
                        count::<4>(&engine, activity, bits(vertices, activity)),
                        at(&coefficients, activity),
                        "{diagonals:?} {name} {rows} x {cols} at {activity}"
                    );
                }
            }
        }
    }
}

#[test]
fn long_cylinders_agree_with_wide_ones_and_with_all_subsets() {
    for diagonals in FIXED {
        for (rows, cols) in [(1, 16), (2, 8), (2, 12), (3, 8), (1, 20)] {
            let coefficients = polynomial(rows * cols, &fixed(rows, cols, diagonals, Boundary::Cylinder));
            let engine = Diagonal::new(rows, cols, diagonals, Boundary::Cylinder).unwrap();
            assert_eq!(count::<8>(&engine, 2, 50), at(&coefficients, 2), "{diagonals:?} {rows} x {cols}");
        }
    }
}

#[test]
fn grids_have_their_published_numbers() {
    let known = [
        (Diagonals::Both, 8, 8, Boundary::Free, "1355115601"),
        (Diagonals::Neither, 8, 8, Boundary::Free, "660647962955"),
        (Diagonals::Neither, 14, 14, Boundary::Free, "338752110195939290445247645371206783"),
        // A027683: tori, loops kept at extent 1 and parallel edges counted once at extent 2.
        (Diagonals::Neither, 1, 1, Boundary::Torus, "1"),
        (Diagonals::Neither, 2, 2, Boundary::Torus, "7"),
        (Diagonals::Neither, 2, 5, Boundary::Torus, "81"),
        (Diagonals::Neither, 3, 3, Boundary::Torus, "34"),
        (Diagonals::Neither, 4, 4, Boundary::Torus, "743"),
        (Diagonals::Neither, 5, 5, Boundary::Torus, "25531"),
        (Diagonals::Neither, 6, 6, Boundary::Torus, "2406862"),
    ];
    for (diagonals, rows, cols, boundary, value) in known {
        let engine = Diagonal::new(rows, cols, diagonals, boundary).unwrap();
        assert_eq!(count::<8>(&engine, 1, (rows * cols) as u64).to_string(), value, "{diagonals:?} {rows} x {cols}");
    }
}

/// The expected number modulo a prime, with chance `a / b` of a falling diagonal.
fn expected(engine: &Diagonal, modulus: Modulus, a: u64, b: u64) -> u64 {
    let chance = modulus.mul(a, modulus.inverse(b));
    evaluate_lanes::<1>(engine, &[Point::new(modulus, 1).with_second(chance)], &Progress::default()).unwrap()[0]
}

#[test]
fn expected_numbers_over_random_triangulations_are_their_polynomials() {
    // Coefficients in u = p (1 - p), by cells; each verified over all triangulations.
    let known: [(usize, usize, &[u64]); 7] = [
        (1, 1, &[6]),
        (1, 2, &[13, 2]),
        (1, 3, &[28, 5]),
        (2, 2, &[42, 8, 2]),
        (2, 3, &[126, 34, 10, 2]),
        (3, 3, &[524, 200, 60, 13, 5]),
        (4, 4, &[13322, 8222, 4074, 1590, 591, 214, 67, 16, 2]),
    ];
    let modulus = primes(3).unwrap()[2];
    for (m, n, coefficients) in known {
        for (a, b) in [(0, 1), (1, 1), (1, 2), (3, 10), (7, 10), (123_456, 1_000_003)] {
            let p = modulus.mul(a, modulus.inverse(b));
            let u = modulus.mul(p, modulus.mul(b - a, modulus.inverse(b)));
            let value = coefficients.iter().rev().fold(0, |sum, &c| modulus.fold(modulus.mul(sum, u) + c));
            for (rows, cols) in [(m + 1, n + 1), (n + 1, m + 1)] {
                let engine = Diagonal::new(rows, cols, Diagonals::Random, Boundary::Free).unwrap();
                assert_eq!(expected(&engine, modulus, a, b), modulus.residue(value), "{m} x {n} cells at {a}/{b}");
            }
        }
    }
}

#[test]
fn expected_numbers_are_means_over_all_triangulations_at_every_boundary() {
    let modulus = primes(1).unwrap()[0];
    let (a, b) = (3u64, 10u64);
    for (boundary, name) in BOUNDARIES {
        for (rows, cols) in [(2, 2), (2, 3), (3, 2), (2, 4), (4, 2), (3, 3), (2, 5), (5, 2), (1, 3), (3, 1)] {
            let mut cells = 0;
            grid(rows, cols, boundary, || {
                cells += 1;
                (false, false)
            });
            let mut scaled = BigUint::ZERO;
            for drawn in 0u32..1 << cells {
                let mut bit = 0;
                let edges = grid(rows, cols, boundary, || {
                    bit += 1;
                    let falling = drawn >> (bit - 1) & 1 == 1;
                    (falling, !falling)
                });
                let number = at(&polynomial(rows * cols, &edges), 1);
                scaled += number * a.pow(drawn.count_ones()) * (b - a).pow(cells - drawn.count_ones());
            }
            let value = modulus.mul(modulus.residue_of(&scaled), modulus.inverse(modulus.pow(b, cells.into())));
            let engine = Diagonal::new(rows, cols, Diagonals::Random, boundary).unwrap();
            assert_eq!(expected(&engine, modulus, a, b), modulus.residue(value), "{name} {rows} x {cols}");
        }
    }
}

#[test]
fn any_number_of_lanes_gives_the_same_residues() {
    for (boundary, name) in BOUNDARIES {
        for diagonals in [Diagonals::Neither, Diagonals::Falling, Diagonals::Both, Diagonals::Random] {
            let engine = Diagonal::new(5, 7, diagonals, boundary).unwrap();
            let points: Vec<Point> = primes(8)
                .unwrap()
                .into_iter()
                .map(|modulus| Point::new(modulus, 1 << 40).with_second(3 << 33))
                .collect();
            let progress = Progress::default();
            let eight = evaluate_lanes::<8>(&engine, &points, &progress).unwrap();
            let one: Vec<u64> =
                points.iter().flat_map(|p| evaluate_lanes::<1>(&engine, &[*p], &progress).unwrap()).collect();
            assert_eq!(eight, one, "{diagonals:?} {name}");
            assert_eq!(
                eight[..3],
                evaluate_lanes::<4>(&engine, &points[..3], &progress).unwrap(),
                "{diagonals:?} {name}"
            );
        }
    }
}

#[test]
fn double_precision_stays_within_its_proved_error() {
    for (boundary, name) in BOUNDARIES {
        for diagonals in FIXED {
            for (rows, cols) in [(1, 2), (4, 5), (6, 6), (3, 9)] {
                let engine = Diagonal::new(rows, cols, diagonals, boundary).unwrap();
                for activity in [1u32, 3] {
                    let exact = count::<8>(&engine, activity.into(), 100).to_string().parse::<f64>().unwrap();
                    let real = evaluate(&engine, &Weight::new(F64, activity.into()), &Progress::default()).unwrap();
                    let bound = (engine.roundings() + 1) as f64 * f64::EPSILON;
                    assert!((real / exact - 1.0).abs() <= bound, "{name} {rows} x {cols}: {real} against {exact}");
                }
            }
        }
        let engine = Diagonal::new(5, 5, Diagonals::Random, Boundary::Free).unwrap();
        let real = evaluate(&engine, &Weight::new(F64, 1.0).with_second(0.3), &Progress::default()).unwrap();
        let u: f64 = 0.3 * 0.7;
        let coefficients = [13322.0, 8222.0, 4074.0, 1590.0, 591.0, 214.0, 67.0, 16.0, 2.0];
        let exact = coefficients.iter().rev().fold(0.0, |sum, c| sum * u + c);
        assert!((real / exact - 1.0).abs() < 1e-12, "{real} against {exact}");
    }
}

#[test]
fn sizes_that_cannot_be_are_refused_by_name() {
    for (boundary, _) in BOUNDARIES {
        let new = |rows, cols| Diagonal::new(rows, cols, Diagonals::Both, boundary);
        assert!(matches!(new(0, 3), Err(Error::Domain { name: "rows", .. })));
        assert!(matches!(new(3, 0), Err(Error::Domain { name: "cols", .. })));
        for size in [100, usize::MAX - 1, usize::MAX] {
            assert!(matches!(new(size, size), Err(Error::TooLarge { .. })));
        }
    }
}
