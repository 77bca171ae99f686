//! The frontier engine against published counts, brute force over all subsets, and the laws of the partition function.

use num_bigint::BigUint;
use proptest::prelude::*;
use quincunx::counting::graph_sums::planner::Planner;
use quincunx::counting::independent_sets::{brute, frontier::Frontier};
use quincunx::counting::transfer::{Point, Transfer, Weight, evaluate, evaluate_lanes};
use quincunx::graphs::Graph;
use quincunx::monitor::{Progress, Silent};
use quincunx::numeric::residue::{combine, primes};
use quincunx::numeric::ring::F64;
use quincunx::{Error, Result, parallel};

fn planned(graph: &Graph, order: Option<&[u32]>, max_states: usize) -> Result<Frontier> {
    Frontier::plan(graph, order, None, max_states, &Planner::new(&Progress::default()))
}

const AMPLE: usize = 1 << 28;

fn graph(vertices: usize, edges: impl IntoIterator<Item = (u32, u32)>) -> Graph {
    Graph::new(vertices, edges.into_iter().collect()).unwrap()
}

fn progress() -> Progress {
    Progress::new(0)
}

/// The residues of `Z(activity)` modulo the largest primes.
fn residues(engine: &Frontier, count: usize, activity: u64) -> Vec<(u64, u64)> {
    let points: Vec<Point> = primes(count).unwrap().into_iter().map(|modulus| Point::new(modulus, activity)).collect();
    let groups = points.chunks(4).flat_map(|group| {
        let values = evaluate_lanes::<4>(engine, group, &progress()).unwrap();
        group.iter().map(|point| point.modulus.value()).zip(values).collect::<Vec<_>>()
    });
    groups.collect()
}

/// `Z(activity)`, checked by a prime more than needed.
fn partition_function(engine: &Frontier, activity: u64) -> BigUint {
    let size = evaluate(engine, &Weight::new(F64, activity as f64), &progress()).unwrap();
    let count = (size.log2() / 54.9) as usize + 2;
    let all = residues(engine, count, activity);
    let value = combine(&all[..count - 1]).unwrap();
    assert_eq!(value, combine(&all).unwrap(), "a spare prime agrees");
    value
}

fn count(graph: &Graph) -> BigUint {
    partition_function(&planned(graph, None, AMPLE).unwrap(), 1)
}

/// The coefficients of the polynomial from its value at a power of two above all of them.
fn polynomial(graph: &Graph) -> Vec<u64> {
    let engine = planned(graph, None, AMPLE).unwrap();
    let degree = engine.independence_bound();
    let modulus = primes(1).unwrap()[0];
    let points = (0..=degree as u64).map(|activity| Point::new(modulus, activity)).collect::<Vec<_>>();
    let values: Vec<u64> =
        points.chunks(8).flat_map(|group| evaluate_lanes::<8>(&engine, group, &progress()).unwrap()).collect();
    // Newton's divided differences, then Horner.
    let minus = |a: u64, b: u64| modulus.residue(a + modulus.value() - b);
    let mut differences = values;
    for order in 1..=degree {
        for i in (order..=degree).rev() {
            let step = minus(differences[i], differences[i - 1]);
            differences[i] = modulus.residue(modulus.mul(step, modulus.inverse(order as u64)));
        }
    }
    let mut coefficients = vec![0; degree + 1];
    for node in (0..=degree).rev() {
        for i in (0..=degree).rev() {
            let shifted = if i == 0 { 0 } else { coefficients[i - 1] };
            let scaled = modulus.residue(modulus.mul(coefficients[i], node as u64));
            coefficients[i] = minus(shifted, scaled);
        }
        coefficients[0] = modulus.residue(coefficients[0] + differences[node]);
    }
    while coefficients.last() == Some(&0) {
        coefficients.pop();
    }
    coefficients
}

fn path(n: u32) -> Graph {
    graph(n as usize, (1..n).map(|v| (v - 1, v)))
}

fn cycle(n: u32) -> Graph {
    graph(n as usize, (0..n).map(|v| (v, (v + 1) % n)))
}

fn complete(n: u32) -> Graph {
    graph(n as usize, (0..n).flat_map(|u| (0..u).map(move |v| (u, v))))
}

fn complete_bipartite(a: u32, b: u32) -> Graph {
    graph((a + b) as usize, (0..a).flat_map(|u| (0..b).map(move |v| (u, a + v))))
}

/// The generalized Petersen graph: an outer cycle, spokes, and inner steps of `k`.
fn generalized_petersen(n: u32, k: u32) -> Graph {
    graph(2 * n as usize, (0..n).flat_map(|i| [(i, (i + 1) % n), (i, n + i), (n + i, n + (i + k) % n)]))
}

fn hypercube(dimension: u32) -> Graph {
    graph(1 << dimension, (0..1u32 << dimension).flat_map(|v| (0..dimension).map(move |i| (v, v ^ 1 << i))))
}

/// A cubic graph from the chords of a Hamiltonian cycle (Lederberg, Coxeter and Frucht).
fn from_chords(n: u32, chords: &[i32]) -> Graph {
    let chord = |v: u32| ((v as i32 + chords[v as usize % chords.len()]).rem_euclid(n as i32)) as u32;
    graph(n as usize, (0..n).flat_map(|v| [(v, (v + 1) % n), (v, chord(v))]))
}

fn icosahedron() -> Graph {
    // Two poles, two rings of five.
    let ring = |i: u32| [(0, 1 + i), (11, 6 + i), (1 + i, 1 + (i + 1) % 5), (6 + i, 6 + (i + 1) % 5)];
    let between = |i: u32| [(1 + i, 6 + i), (1 + i, 6 + (i + 1) % 5)];
    graph(12, (0..5).flat_map(|i| ring(i).into_iter().chain(between(i))))
}

fn grid(sides: &[u32]) -> Graph {
    let size: u32 = sides.iter().product();
    let mut edges = Vec::new();
    let mut stride = 1;
    for &side in sides {
        edges.extend((0..size).filter(|v| v / stride % side + 1 < side).map(|v| (v, v + stride)));
        stride *= side;
    }
    graph(size as usize, edges)
}

/// Zachary's karate club (1977).
fn karate_club() -> Graph {
    let friends: [&[u32]; 34] = [
        &[1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31],
        &[2, 3, 7, 13, 17, 19, 21, 30],
        &[3, 7, 8, 9, 13, 27, 28, 32],
        &[7, 12, 13],
        &[6, 10],
        &[6, 10, 16],
        &[16],
        &[],
        &[30, 32, 33],
        &[33],
        &[],
        &[],
        &[],
        &[33],
        &[32, 33],
        &[32, 33],
        &[],
        &[],
        &[32, 33],
        &[33],
        &[32, 33],
        &[],
        &[32, 33],
        &[25, 27, 29, 32, 33],
        &[25, 27, 31],
        &[31],
        &[29, 33],
        &[33],
        &[31, 33],
        &[32, 33],
        &[32, 33],
        &[32, 33],
        &[33],
        &[],
    ];
    let edges: Vec<(u32, u32)> = (0..).zip(friends).flat_map(|(u, list)| list.iter().map(move |&v| (u, v))).collect();
    assert_eq!(edges.len(), 78);
    graph(34, edges)
}

fn fibonacci(n: usize) -> BigUint {
    (0..n).fold((BigUint::ZERO, BigUint::from(1u32)), |(a, b), _| (b.clone(), a + b)).0
}

#[test]
fn paths_have_fibonacci_and_cycles_lucas_numbers() {
    for n in [0u32, 1, 2, 3, 10, 100, 1000] {
        assert_eq!(count(&path(n)), fibonacci(n as usize + 2), "path of {n}");
    }
    for n in [3u32, 4, 5, 10, 100, 1000] {
        let lucas = fibonacci(n as usize - 1) + fibonacci(n as usize + 1);
        assert_eq!(count(&cycle(n)), lucas, "cycle of {n}");
    }
}

#[test]
fn complete_graphs_and_their_bipartite_and_empty_kin_have_closed_forms() {
    for n in [1u32, 2, 3, 4, 5, 17, 40, 63, 64, 65, 66, 150] {
        assert_eq!(count(&complete(n)), BigUint::from(n + 1), "complete graph of {n}");
    }
    for (a, b) in [(1, 1), (3, 3), (4, 7), (12, 12), (5, 100), (100, 100)] {
        let one = BigUint::from(1u32);
        let expected = (&one << a) + (&one << b) - &one;
        assert_eq!(count(&complete_bipartite(a, b)), expected, "K_{a},{b}");
    }
    assert_eq!(count(&graph(300, [])), BigUint::from(1u32) << 300);
    assert_eq!(count(&graph(0, [])), BigUint::from(1u32));
}

#[test]
fn named_graphs_have_their_known_counts() {
    let known: [(&str, Graph, u64); 14] = [
        ("Petersen", generalized_petersen(5, 2), 76),
        ("dodecahedron", generalized_petersen(10, 2), 5828),
        ("icosahedron", icosahedron(), 69),
        ("cube", hypercube(3), 35),
        ("tesseract", hypercube(4), 743),
        ("5-cube", hypercube(5), 254_475),
        ("Heawood", from_chords(14, &[5, -5]), 458),
        ("Desargues", generalized_petersen(10, 3), 6212),
        ("Pappus", from_chords(18, &[5, 7, -7, 7, -7, -5]), 2598),
        ("karate club", karate_club(), 13_393_054),
        ("3x3x3 grid", grid(&[3, 3, 3]), 70_633),
        ("3x3 grid", grid(&[3, 3]), 63),
        ("7x7 grid", grid(&[7, 7]), 1_280_128_950),
        ("8x8 grid", grid(&[8, 8]), 660_647_962_955),
    ];
    for (name, graph, expected) in known {
        assert_eq!(count(&graph), BigUint::from(expected), "{name}");
    }
    assert_eq!(count(&grid(&[14, 14])).to_string(), "338752110195939290445247645371206783");
}

#[test]
fn named_graphs_have_their_known_polynomials() {
    assert_eq!(polynomial(&generalized_petersen(5, 2)), [1, 10, 30, 30, 5]);
    assert_eq!(polynomial(&generalized_petersen(10, 2)), [1, 20, 160, 660, 1510, 1912, 1240, 320, 5]);
    assert_eq!(
        polynomial(&grid(&[3, 3, 3])),
        [1, 27, 297, 1746, 6062, 13027, 17792, 15814, 9530, 4224, 1531, 462, 104, 15, 1]
    );
}

#[test]
fn a_path_of_a_million_vertices_is_summed_out() {
    let engine = planned(&path(1_000_000), None, 16).unwrap();
    let modulus = primes(1).unwrap()[0];
    let value = evaluate_lanes::<1>(&engine, &[Point::new(modulus, 1)], &progress()).unwrap()[0];
    let (mut a, mut b) = (1, 2);
    for _ in 1..1_000_000 {
        (a, b) = (b, modulus.residue(a + b));
    }
    assert_eq!((value, engine.width()), (b, 0));
    assert!(engine.len() < 16);
}

#[test]
fn orders_that_are_none_are_refused_by_name() {
    let square = cycle(4);
    for order in [&[0u32, 1, 2][..], &[0, 1, 2, 2], &[0, 1, 2, 4], &[0, 1, 2, 3, 0]] {
        assert!(matches!(planned(&square, Some(order), AMPLE), Err(Error::Domain { name: "order", .. })));
    }
}

#[test]
fn a_graph_that_no_cut_makes_small_is_refused() {
    assert!(matches!(planned(&hypercube(8), None, 64), Err(Error::TooLarge { .. })));
}

#[test]
fn threads_and_lanes_change_nothing() {
    // Wide enough for tiles and tasks: a full table of 2^15 elements and a short one.
    let full = graph(300, (0..300u32).flat_map(|v| [(v, v + 14), (v, v + 15)]).filter(|&(_, v)| v < 300));
    let short = grid(&[21, 14]);
    for graph in [full, short] {
        let order: Vec<u32> = (0..graph.vertices() as u32).collect();
        let engine = planned(&graph, Some(&order), AMPLE).unwrap();
        assert!(engine.states() >= 1 << 13);
        let points: Vec<Point> =
            (0..).zip(primes(8).unwrap()).map(|(i, modulus)| Point::new(modulus, 1 + i % 3)).collect();
        let one = |point: &Point| evaluate_lanes::<1>(&engine, &[*point], &progress()).unwrap()[0];
        let expected: Vec<u64> = points.iter().map(one).collect();
        let groups = |lanes: usize, run: &dyn Fn(&[Point]) -> Vec<u64>| -> Vec<u64> {
            points.chunks(lanes).flat_map(run).collect()
        };
        assert_eq!(groups(4, &|group| evaluate_lanes::<4>(&engine, group, &progress()).unwrap()), expected);
        for threads in [1, 2, 5] {
            let total = (0..engine.steps()).map(|step| engine.work(step)).sum();
            let outcome = parallel::run(threads, total, &mut Silent, |progress| {
                let values = evaluate_lanes::<8>(&engine, &points, progress)?;
                assert_eq!(progress.done(), total, "work is what was announced");
                Ok(values)
            });
            assert_eq!(outcome, Ok(expected.clone()), "{threads} threads");
        }
    }
}

#[test]
fn a_monitor_stops_the_work() {
    let graph = graph(400, (0..400u32).flat_map(|v| [(v, v + 17), (v, v + 18)]).filter(|&(_, v)| v < 400));
    let order: Vec<u32> = (0..400).collect();
    let engine = planned(&graph, Some(&order), AMPLE).unwrap();
    let points: Vec<Point> = primes(8).unwrap().into_iter().map(|modulus| Point::new(modulus, 1)).collect();
    let outcome: Result<()> = parallel::run(1, u64::MAX, &mut |_: u64, _: u64| false, |progress| {
        loop {
            evaluate_lanes::<8>(&engine, &points, progress)?;
        }
    });
    assert_eq!(outcome, Err(Error::Interrupted));
}

fn small_graph() -> impl Strategy<Value = Graph> {
    (1usize..=14).prop_flat_map(|n| {
        let edge = (0..n as u32, 0..n as u32);
        prop::collection::vec(edge, 0..=2 * n + 4).prop_map(move |edges| {
            // Few loops: a looped vertex hides all its edges.
            let loops = edges.len() / 12;
            let (some, rest) = edges.split_at(loops);
            graph(n, some.iter().copied().chain(rest.iter().copied().filter(|(u, v)| u != v)))
        })
    })
}

/// `Z` modulo a prime from the coefficients.
fn horner(coefficients: &[u64], point: Point) -> u64 {
    let m = point.modulus;
    let next = |sum: u64, &c: &u64| m.residue(m.mul(sum, m.residue(point.activity)) + c);
    coefficients.iter().rev().fold(0, next)
}

fn shuffled(n: usize, mut seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n as u32).collect();
    for i in (1..n).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(i, (seed >> 33) as usize % (i + 1));
    }
    order
}

fn activities() -> [Point; 4] {
    let modulus = primes(1).unwrap()[0];
    [1, 0, 3, modulus.value() - 2].map(|activity| Point::new(modulus, activity))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn small_graphs_agree_with_brute_force(graph in small_graph(), seed: u64, most in 0u32..8) {
        let coefficients = brute::polynomial(&graph).unwrap();
        let order = shuffled(graph.vertices(), seed);
        let natural: Vec<u32> = (0..graph.vertices() as u32).collect();
        let points = activities();
        let expected: Vec<u64> = points.iter().map(|&point| horner(&coefficients, point)).collect();
        for order in [None, Some(&natural[..]), Some(&order[..])] {
            for most in [AMPLE, 1 << most] {
                let engine = planned(&graph, order, most).unwrap();
                prop_assert!(engine.states() <= most);
                prop_assert!(engine.independence_bound() >= coefficients.len() - 1);
                let mut vertices = engine.order().to_vec();
                vertices.sort_unstable();
                prop_assert_eq!(&vertices, &natural);
                prop_assert_eq!(&evaluate_lanes::<4>(&engine, &points, &progress()).unwrap(), &expected);
                let again = planned(&graph, Some(engine.order()), AMPLE).unwrap();
                prop_assert_eq!(&evaluate_lanes::<4>(&again, &points, &progress()).unwrap(), &expected);
                for z in [1.0, 0.37, 2.5] {
                    let exact = coefficients.iter().rev().fold(0.0, |sum, &c| sum * z + c as f64);
                    let real = evaluate(&engine, &Weight::new(F64, z), &progress()).unwrap();
                    let bound = (engine.roundings() as f64 + 40.0) * f64::EPSILON;
                    prop_assert!((real / exact - 1.0).abs() <= bound, "{real} {exact}");
                }
            }
        }
    }

    #[test]
    fn a_disjoint_union_multiplies(a in small_graph(), b in small_graph()) {
        let shift = a.vertices() as u32;
        let edges = a.edges().iter().copied().chain(b.edges().iter().map(|&(u, v)| (u + shift, v + shift)));
        let both = graph(a.vertices() + b.vertices(), edges);
        prop_assert_eq!(count(&both), count(&a) * count(&b));
    }

    #[test]
    fn another_edge_never_raises_the_count(a in small_graph(), u: prop::sample::Index, v: prop::sample::Index) {
        let n = a.vertices();
        let more = graph(n, a.edges().iter().copied().chain([(u.index(n) as u32, v.index(n) as u32)]));
        prop_assert!(count(&more) <= count(&a));
    }

    #[test]
    fn a_vertex_is_in_or_out(a in small_graph(), v: prop::sample::Index) {
        let v = v.index(a.vertices()) as u32;
        let without = |gone: &dyn Fn(u32) -> bool| {
            let edges = a.edges().iter().copied().filter(|&(x, y)| !gone(x) && !gone(y));
            // A loop takes a vertex out without renumbering the others.
            let loops = (0..a.vertices() as u32).filter(|&x| gone(x)).map(|x| (x, x));
            count(&graph(a.vertices(), edges.chain(loops)))
        };
        let joined = |x: u32| a.edges().iter().any(|&(s, t)| (s, t) == (x, v) || (s, t) == (v, x));
        let inside = if joined(v) { BigUint::ZERO } else { without(&|x| x == v || joined(x)) };
        prop_assert_eq!(count(&a), without(&|x| x == v) + inside);
    }
}
