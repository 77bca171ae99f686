//! The 4-8-8 lattice against published tables and against all subsets of small graphs.

use crate::exact::{BOUNDARIES, at, bits, count, polynomial};
use num_bigint::BigUint;
use quincunx::Error;
use quincunx::counting::independent_sets::Boundary;
use quincunx::counting::independent_sets::four_eight_eight::FourEightEight;
use quincunx::counting::transfer::{Transfer, Weight, evaluate};
use quincunx::monitor::Progress;
use quincunx::numeric::ring::F64;

/// The number of independent sets; three bits a diamond are enough.
fn octagons(m: usize, n: usize, boundary: Boundary) -> BigUint {
    count::<8>(&FourEightEight::new(m, n, boundary).unwrap(), 1, (3 * (m + 1) * (n + 1)) as u64)
}

/// The 4-8-8 section as a plain graph: diamonds, and the links between them; a corner exists iff its link does.
fn section(m: usize, n: usize, boundary: Boundary) -> (usize, Vec<(usize, usize)>) {
    let (wrap_m, wrap_n) = (boundary == Boundary::Torus, boundary != Boundary::Free);
    let (rows, cols) = (m + usize::from(!wrap_m), n + usize::from(!wrap_n));
    let mut corners = std::collections::HashMap::new();
    let mut edges = Vec::new();
    let mut corner = |i: usize, j: usize, name: char| {
        let next = corners.len();
        *corners.entry((i, j, name)).or_insert(next)
    };
    for i in 0..rows {
        for j in 0..cols {
            if wrap_n || j + 1 < cols {
                edges.push((corner(i, j, 'E'), corner(i, (j + 1) % cols, 'W')));
            }
            if wrap_m || i + 1 < rows {
                edges.push((corner(i, j, 'S'), corner((i + 1) % rows, j, 'N')));
            }
        }
    }
    for i in 0..rows {
        for j in 0..cols {
            for (a, b) in [('N', 'E'), ('E', 'S'), ('S', 'W'), ('W', 'N')] {
                if let (Some(&a), Some(&b)) = (corners.get(&(i, j, a)), corners.get(&(i, j, b))) {
                    edges.push((a, b));
                }
            }
        }
    }
    (corners.len(), edges)
}

#[test]
fn sections_of_octagons_agree_with_all_subsets_at_every_activity() {
    for (boundary, name) in BOUNDARIES {
        for (m, n) in [(1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (2, 2), (1, 4), (4, 1), (2, 3), (3, 2), (1, 6), (6, 1)] {
            let (vertices, edges) = section(m, n, boundary);
            if vertices > 26 {
                continue;
            }
            let coefficients = polynomial(vertices, &edges);
            let engine = FourEightEight::new(m, n, boundary).unwrap();
            for activity in [0u64, 1, 2, 5, 1_000_003] {
                assert_eq!(
                    count::<4>(&engine, activity, bits(vertices, activity)),
                    at(&coefficients, activity),
                    "{name} {m} x {n} at {activity}"
                );
            }
        }
    }
}

#[test]
fn small_sections_have_their_known_numbers() {
    let known = [
        (Boundary::Free, 1, 1, "47"),
        (Boundary::Free, 1, 2, "779"),
        (Boundary::Free, 2, 2, "74753"),
        (Boundary::Free, 2, 3, "7144259"),
        (Boundary::Free, 5, 5, "400989410760263909570575"),
        (Boundary::Free, 6, 6, "775674397726884512656078556955489"),
        (Boundary::Free, 9, 3, "110194449810190525007086711"),
        (Boundary::Cylinder, 1, 1, "15"),
        (Boundary::Cylinder, 1, 2, "275"),
        (Boundary::Cylinder, 2, 1, "81"),
        (Boundary::Cylinder, 2, 2, "9223"),
        (Boundary::Cylinder, 2, 3, "872817"),
        (Boundary::Cylinder, 3, 2, "308007"),
        (Boundary::Cylinder, 3, 5, "50808099454115"),
        (Boundary::Cylinder, 5, 4, "112585183506896767"),
        (Boundary::Torus, 1, 1, "5"),
        (Boundary::Torus, 1, 2, "29"),
        (Boundary::Torus, 1, 3, "155"),
        (Boundary::Torus, 2, 2, "1127"),
        (Boundary::Torus, 2, 3, "37235"),
        (Boundary::Torus, 5, 5, "10491381016588919025"),
        (Boundary::Torus, 8, 4, "2222168789066392235359759"),
    ];
    for (boundary, m, n, value) in known {
        assert_eq!(octagons(m, n, boundary).to_string(), value, "{boundary:?} {m} x {n}");
    }
}

#[test]
fn the_three_tables_up_to_ten_octagons_agree() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data/exact_488_tables.json");
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("skipped: no tables at {path}");
        return;
    };
    let tables: serde_json::Value = serde_json::from_str(&text).unwrap();
    for (boundary, name) in BOUNDARIES {
        for m in 1..=10usize {
            for n in 1..=10usize {
                let value = tables[name][m.to_string()][n.to_string()].as_str().unwrap();
                assert_eq!(octagons(m, n, boundary).to_string(), value, "{name} {m} x {n}");
            }
        }
    }
}

#[test]
fn any_number_of_lanes_gives_the_same_residues() {
    for (boundary, name) in BOUNDARIES {
        for (m, n) in [(3, 4), (4, 3), (7, 7), (2, 9), (9, 2)] {
            let engine = FourEightEight::new(m, n, boundary).unwrap();
            for activity in [1, 3] {
                let eight = count::<8>(&engine, activity, 400);
                assert_eq!(count::<4>(&engine, activity, 400), eight, "{name} {m} x {n}");
                assert_eq!(count::<1>(&engine, activity, 400), eight, "{name} {m} x {n}");
            }
        }
    }
}

#[test]
fn double_precision_stays_within_its_proved_error() {
    for (boundary, name) in BOUNDARIES {
        for (m, n) in [(1, 1), (3, 4), (5, 3), (6, 6), (2, 9)] {
            let engine = FourEightEight::new(m, n, boundary).unwrap();
            for activity in [1u32, 3] {
                let exact = count::<8>(&engine, activity.into(), 400).to_string().parse::<f64>().unwrap();
                let real = evaluate(&engine, &Weight::new(F64, activity.into()), &Progress::default()).unwrap();
                let bound = (engine.roundings() + 1) as f64 * f64::EPSILON;
                assert!((real / exact - 1.0).abs() <= bound, "{name} {m} x {n}: {real} against {exact}");
            }
        }
    }
}

#[test]
fn sizes_that_cannot_be_are_refused_by_name() {
    for (boundary, _) in BOUNDARIES {
        assert!(matches!(FourEightEight::new(0, 3, boundary), Err(Error::Domain { name: "m", .. })));
        assert!(matches!(FourEightEight::new(3, 0, boundary), Err(Error::Domain { name: "n", .. })));
        for size in [100, usize::MAX - 1, usize::MAX] {
            assert!(matches!(FourEightEight::new(size, size, boundary), Err(Error::TooLarge { .. })));
        }
    }
}
