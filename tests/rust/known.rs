//! The known answers of `tests/known/independent_sets.json`, which the Python tests read too.

use num_bigint::BigUint;
use quincunx::counting::evaluation::Options;
use quincunx::counting::independent_sets::{
    Boundary, Problem, StripKind, count_independent_sets, independence_polynomial,
};
use quincunx::graphs::Graph;
use quincunx::monitor::Silent;
use serde_json::Value;
use std::str::FromStr;

fn known() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/known/independent_sets.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn entries<'a>(known: &'a Value, key: &str) -> &'a [Value] {
    known[key].as_array().unwrap()
}

fn numbers(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect()
}

fn integer(value: &Value) -> BigUint {
    BigUint::from_str(value.as_str().unwrap()).unwrap()
}

fn check(problem: &Problem, entry: &Value) {
    let options = Options { threads: 2, ..Options::default() };
    assert_eq!(count_independent_sets(problem, &options, &mut Silent), Ok(integer(&entry["count"])), "{entry}");
    if let Some(coefficients) = entry["coefficients"].as_array() {
        let expected = coefficients.iter().map(integer).collect();
        assert_eq!(independence_polynomial(problem, &options, &mut Silent), Ok(expected), "{entry}");
    }
    assert!(entry["origins"].as_array().unwrap().len() >= 2, "{entry}");
}

fn graph(vertices: usize, edges: impl IntoIterator<Item = (usize, usize)>) -> Problem {
    let edges = edges.into_iter().map(|(u, v)| (u as u32, v as u32)).collect();
    Problem::Graph { graph: Graph::new(vertices, edges).unwrap(), order: None }
}

fn lattice(kind: &str, extent: &Value, boundary: &str) -> Problem {
    let kind = match kind {
        "square" => StripKind::Square,
        "king" => StripKind::King,
        "4-8-8" => StripKind::FourEightEight,
        other => panic!("{other} has no kernel"),
    };
    let boundary = match boundary {
        "free" => Boundary::Free,
        "cylinder" => Boundary::Cylinder,
        "torus" => Boundary::Torus,
        other => panic!("{other} is no boundary"),
    };
    let extent = numbers(extent);
    Problem::Lattice { kind, rows: extent[0], cols: extent[1], boundary }
}

#[test]
fn known_graphs_have_their_counts() {
    for entry in entries(&known(), "graphs") {
        let edges = entry["edges"].as_array().unwrap().iter().map(|edge| (numbers(edge)[0], numbers(edge)[1]));
        check(&graph(entry["vertices"].as_u64().unwrap() as usize, edges), entry);
    }
}

#[test]
fn known_families_have_their_counts() {
    for entry in entries(&known(), "families") {
        let arguments = numbers(&entry["arguments"]);
        let n = arguments[0];
        let problem = match entry["family"].as_str().unwrap() {
            "path" => graph(n, (1..n).map(|v| (v - 1, v))),
            "cycle" => graph(n, (0..n).map(|v| (v, (v + 1) % n))),
            "complete" => graph(n, (0..n).flat_map(|v| (0..v).map(move |u| (u, v)))),
            "complete bipartite" => {
                graph(n + arguments[1], (0..n).flat_map(|u| (0..arguments[1]).map(move |v| (u, n + v))))
            }
            "isolated" => graph(n, []),
            other => panic!("{other} is no family"),
        };
        check(&problem, entry);
    }
}

#[test]
fn known_lattices_have_their_counts() {
    for entry in entries(&known(), "lattices") {
        check(
            &lattice(entry["lattice"].as_str().unwrap(), &entry["extent"], entry["boundary"].as_str().unwrap()),
            entry,
        );
    }
}

#[test]
fn the_corrected_entries_of_the_published_tables_are_exact() {
    let known = known();
    for (boundary, table) in known["thesis"].as_object().unwrap() {
        assert_eq!(table["corrected"].as_array().unwrap().len() as u64, table["wrong"].as_u64().unwrap());
        for entry in entries(table, "corrected") {
            check(&lattice("4-8-8", &entry["extent"], boundary), entry);
        }
    }
}
