//! Known answers of automorphism groups, laws, and refusals.

use super::*;
use crate::monitor::Silent;
use proptest::prelude::*;

const PLENTY: u128 = 1 << 32;

fn graph(n: usize, edges: impl IntoIterator<Item = (u32, u32)>) -> Graph {
    Graph::new(n, edges.into_iter().collect()).unwrap()
}

fn found(graph: &Graph) -> AutomorphismGroup {
    automorphism_group(graph, None, None, &mut Silent).unwrap()
}

fn with_clock<T>(work: impl FnOnce(&mut Clock<'_>) -> Result<T>) -> T {
    work(&mut Clock::new("the test", None, &mut Silent)).unwrap()
}

fn order(group: &AutomorphismGroup) -> String {
    with_clock(|clock| group.order(clock).map(ToString::to_string))
}

fn rank(group: &AutomorphismGroup) -> usize {
    with_clock(|clock| group.rank(PLENTY, clock))
}

fn orbit_count(group: &AutomorphismGroup) -> u32 {
    group.orbits().iter().max().map_or(0, |most| most + 1)
}

fn hamming(u: u32, v: u32) -> Graph {
    let n = v.pow(u);
    let joined = |a: u32, b: u32| (0..u).filter(|&i| a / v.pow(i) % v != b / v.pow(i) % v).count() == 1;
    graph(n as usize, (0..n).flat_map(|a| (0..a).map(move |b| (a, b))).filter(|&(a, b)| joined(a, b)))
}

fn cycle(n: u32) -> Graph {
    graph(n as usize, (0..n).map(|v| (v, (v + 1) % n)))
}

fn petersen() -> Graph {
    graph(10, (0..5).flat_map(|v| [(v, (v + 1) % 5), (v, v + 5), (v + 5, (v + 2) % 5 + 5)]))
}

fn torus(side: u32) -> Graph {
    let at = move |r: u32, c: u32| r % side * side + c % side;
    let cells = (0..side).flat_map(move |r| (0..side).map(move |c| (r, c)));
    graph((side * side) as usize, cells.flat_map(|(r, c)| [(at(r, c), at(r, c + 1)), (at(r, c), at(r + 1, c))]))
}

/// All automorphisms, by trying every permutation.
fn by_brute_force(graph: &Graph) -> Vec<Vec<u32>> {
    let lists = graph.neighbors();
    let n = graph.vertices();
    let mut whole = vec![];
    let mut partial = vec![vec![]];
    while let Some(images) = partial.pop() {
        if images.len() == n {
            whole.push(images);
            continue;
        }
        let v = images.len();
        for image in (0..n as u32).filter(|image| !images.contains(image)) {
            let kept = |u: usize| lists[v].contains(&(u as u32)) == lists[image as usize].contains(&images[u]);
            if (0..v).all(kept) {
                partial.push(images.iter().copied().chain([image]).collect());
            }
        }
    }
    whole
}

/// The number of orbits on tuples of `k` points, by Burnside's lemma.
fn orbits_by_burnside(elements: &[Vec<u32>], k: u32) -> usize {
    let fixed = |images: &Vec<u32>| (0..).zip(images).filter(|&(v, &image)| v == image).count().pow(k);
    elements.iter().map(fixed).sum::<usize>() / elements.len()
}

#[test]
fn known_orders_orbits_and_ranks() {
    let star = |leaves: u32| graph(leaves as usize + 1, (1..=leaves).map(|v| (0, v)));
    let path = |n: u32| graph(n as usize, (1..n).map(|v| (v - 1, v)));
    let square = |x: u32| (1..13).any(|y| y * y % 13 == x % 13);
    let paley = graph(13, (0..13).flat_map(|a| (0..a).map(move |b| (a, b))).filter(|&(a, b)| square(a - b)));
    let rook = hamming(2, 4);
    let shrikhande = graph(
        16,
        (0..16u32).flat_map(|v| [(0, 1), (1, 0), (1, 1)].map(|(r, c)| (v, (v / 4 + r) % 4 * 4 + (v % 4 + c) % 4))),
    );
    let known: [(&str, Graph, &str, u32, usize); 22] = [
        ("H(2,3)", hamming(2, 3), "72", 1, 3),
        ("H(3,2)", hamming(3, 2), "48", 1, 4),
        ("C5", cycle(5), "10", 1, 3),
        ("C6", cycle(6), "12", 1, 4),
        ("C7", cycle(7), "14", 1, 4),
        ("K4", hamming(1, 4), "24", 1, 2),
        ("Petersen", petersen(), "120", 1, 3),
        ("Paley(13)", paley, "78", 1, 3),
        ("rook", rook, "1152", 1, 3),
        ("Shrikhande", shrikhande, "192", 1, 4),
        ("P3", path(3), "2", 2, 5),
        ("P4", path(4), "2", 2, 8),
        ("P5", path(5), "2", 3, 13),
        ("star", star(3), "6", 2, 5),
        ("K(2,3)", graph(5, (0..2).flat_map(|a| (2..5).map(move |b| (a, b)))), "12", 2, 6),
        ("diamond", graph(4, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]), "4", 2, 6),
        ("asymmetric", graph(6, [(0, 2), (1, 2), (1, 3), (1, 4), (2, 4), (3, 5)]), "1", 6, 36),
        ("fork", graph(6, [(0, 1), (1, 2), (1, 4), (1, 5), (2, 3)]), "6", 4, 17),
        ("two C4", graph(8, (0..8).map(|v| (v, v / 4 * 4 + (v + 1) % 4))), "128", 1, 4),
        ("Q4", hamming(4, 2), "384", 1, 5),
        ("C4 x C4 = Q4", torus(4), "384", 1, 5),
        ("no edge", graph(30, []), "265252859812191058636308480000000", 1, 2),
    ];
    for (name, graph, expected, orbits, expected_rank) in known {
        let group = found(&graph);
        assert_eq!(
            (order(&group).as_str(), orbit_count(&group), rank(&group)),
            (expected, orbits, expected_rank),
            "{name}"
        );
    }
}

#[test]
fn tori_and_large_hamming_graphs_have_their_orders_and_ranks() {
    for (side, expected) in [(6u32, 10), (8, 15), (10, 21)] {
        let group = found(&torus(side));
        assert_eq!((order(&group), rank(&group)), ((8 * side * side).to_string(), expected));
    }
    for (u, v) in [(0, 3), (1, 1), (3, 1), (1, 2), (1, 5), (2, 2), (2, 3), (2, 5), (3, 3), (3, 4), (5, 2), (4, 3)] {
        let (known, searched) = (AutomorphismGroup::hamming(u, v).unwrap(), found(&hamming(u, v)));
        assert_eq!(order(&known), order(&searched), "H({u},{v})");
        assert_eq!(rank(&known), if v == 1 { 1 } else { u as usize + 1 });
        assert_eq!(rank(&searched), rank(&known));
        check_automorphisms(&hamming(u, v), &known).unwrap();
        let given = AutomorphismGroup::from_generators(known.points(), known.generators().to_vec()).unwrap();
        assert_eq!(order(&given), order(&known), "the generators of H({u},{v}) without a word about them");
        assert_eq!(rank(&given), rank(&known));
    }
}

#[test]
fn every_graph_of_five_vertices_agrees_with_brute_force() {
    let pairs: Vec<(u32, u32)> = (0..5).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
    for set in 0..1u32 << pairs.len() {
        let graph = graph(5, pairs.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1).map(|(_, &pair)| pair));
        let all = by_brute_force(&graph);
        let group = found(&graph);
        assert_eq!(order(&group), all.len().to_string(), "{graph:?}");
        assert_eq!(orbit_count(&group) as usize, orbits_by_burnside(&all, 1));
        let orbitals = with_clock(|clock| group.orbitals(PLENTY, clock));
        assert_eq!(orbitals.rank(), orbits_by_burnside(&all, 2));
        assert_eq!(orbitals.sizes().iter().sum::<u64>(), 25);
        for images in &all {
            assert!(with_clock(|clock| group.contains(images, clock)));
            for (h, k) in (0..25).map(|i| (i / 5, i % 5)) {
                assert_eq!(orbitals.label(h, k), orbitals.label(images[h as usize], images[k as usize]));
            }
        }
    }
}

#[test]
fn copies_of_a_graph_give_a_wreath_product() {
    let copies = 300;
    let group = found(&graph(4 * copies, (0..4 * copies as u32).map(|v| (v, v / 4 * 4 + (v + 1) % 4))));
    let expected: BigUint = (1..=copies).map(|copy| BigUint::from(8 * copy)).product();
    assert_eq!((order(&group), rank(&group)), (expected.to_string(), 4));
}

#[test]
fn long_paths_and_stars_are_searched_without_recursion_in_linear_time() {
    let n = 200_000;
    let path = found(&graph(n, (1..n as u32).map(|v| (v - 1, v))));
    assert_eq!((order(&path).as_str(), orbit_count(&path)), ("2", n as u32 / 2));
    // a binary tree of depth 15: every inner vertex but those of the last row has two equal branches
    let tree = found(&graph(65535, (1..65535).map(|v| (v, (v - 1) / 2))));
    assert_eq!(with_clock(|clock| tree.order(clock).cloned()), BigUint::from(2u32).pow(32767));
}

#[test]
fn stabilizers_have_the_right_order_whatever_the_group_comes_from() {
    let searched = found(&petersen());
    let given = AutomorphismGroup::from_generators(10, searched.generators().to_vec()).unwrap();
    let restored = AutomorphismGroup::hamming(2, 3).unwrap();
    for (group, expected) in [(&searched, "12"), (&given, "12"), (&restored, "8")] {
        for point in 0..group.points() as u32 {
            let stabilizer = with_clock(|clock| group.stabilizer(point, clock));
            assert_eq!(order(&stabilizer), expected);
            assert_eq!(orbit_count(&stabilizer), 3);
            assert!(stabilizer.generators().iter().all(|generator| generator.image(point) == point));
        }
    }
    let twice = with_clock(|clock| searched.stabilizer(3, clock)?.stabilizer(4, clock));
    assert_eq!(order(&twice), "4");
}

#[test]
fn groups_given_by_generators_have_their_order_and_members() {
    let cycle = |points: u32, from: u32, to: u32| {
        let images: Vec<_> = (0..points)
            .map(|v| {
                if v < from || v >= to {
                    v
                } else if v + 1 == to {
                    from
                } else {
                    v + 1
                }
            })
            .collect();
        Permutation::from_images(&images).unwrap()
    };
    let symmetric = AutomorphismGroup::from_generators(40, vec![cycle(40, 0, 40), cycle(40, 0, 2)]).unwrap();
    assert_eq!(order(&symmetric), (1..=40u32).map(BigUint::from).product::<BigUint>().to_string());
    let alternating = AutomorphismGroup::from_generators(9, vec![cycle(9, 0, 9), cycle(9, 0, 3)]).unwrap();
    assert_eq!(order(&alternating), "181440");
    assert!(!with_clock(|clock| alternating.contains(&cycle(9, 0, 2).images(9), clock)));
    assert!(with_clock(|clock| alternating.contains(&cycle(9, 3, 6).images(9), clock)));
    let large = AutomorphismGroup::from_generators(151, vec![cycle(151, 0, 151), cycle(151, 0, 3)]).unwrap();
    assert_eq!(order(&large), ((3..=151u32).map(BigUint::from).product::<BigUint>()).to_string());
    assert!(!with_clock(|clock| large.contains(&cycle(151, 7, 9).images(151), clock)));
    assert!(with_clock(|clock| large.contains(&cycle(151, 7, 10).images(151), clock)));
    // the Mathieu group of degree 12
    let images = |text: &[u32]| Permutation::from_images(text).unwrap();
    let mathieu = AutomorphismGroup::from_generators(
        12,
        vec![
            images(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 11]),
            images(&[0, 1, 6, 9, 5, 3, 10, 2, 8, 4, 7, 11]),
            images(&[11, 10, 5, 7, 8, 2, 9, 3, 4, 6, 1, 0]),
        ],
    );
    assert_eq!(order(&mathieu.unwrap()), "95040");
    let trivial = AutomorphismGroup::from_generators(3, vec![]).unwrap();
    assert_eq!((order(&trivial).as_str(), rank(&trivial)), ("1", 9));
}

#[test]
fn colors_are_kept() {
    let group = automorphism_group(&cycle(6), Some(&[7, 1, 1, 7, 1, 1]), None, &mut Silent).unwrap();
    assert_eq!((order(&group).as_str(), group.orbits()), ("4", &[0, 1, 1, 0, 1, 1][..]));
    let refused = automorphism_group(&cycle(6), Some(&[0; 5]), None, &mut Silent);
    assert!(matches!(refused, Err(Error::Shape { name: "colors", .. })));
}

#[test]
fn the_empty_graph_and_the_point_have_the_trivial_group() {
    for n in 0..2 {
        let group = found(&graph(n, []));
        assert_eq!((order(&group).as_str(), rank(&group), group.generators().len()), ("1", n, 0));
        assert_eq!(with_clock(|clock| group.orbitals(PLENTY, clock)).rank(), n);
    }
}

#[test]
fn transversals_reach_every_point_of_the_orbit() {
    let group = found(&cycle(7));
    let (points, elements) = with_clock(|clock| group.transversal(2, PLENTY, clock));
    assert_eq!(points, (0..7).collect::<Vec<_>>());
    for (point, element) in points.iter().zip(&elements) {
        assert_eq!(element[2], *point);
        assert!(with_clock(|clock| group.contains(element, clock)));
    }
}

#[test]
fn a_time_limit_ends_a_long_search_and_so_does_the_monitor() {
    let large = hamming(3, 12);
    let late = automorphism_group(&large, None, Some(Duration::ZERO), &mut Silent);
    assert!(matches!(late, Err(Error::TimeLimit { .. })));
    let mut silent = Silent;
    let mut clock = Clock::new("the test", None, &mut silent);
    assert!(clock.spend(usize::MAX).is_ok());
    let mut stop = |_: u64, _: u64| false;
    let mut clock = Clock::new("the test", None, &mut stop);
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(clock.spend(usize::MAX), Err(Error::Interrupted));
}

#[test]
fn what_is_no_permutation_or_no_automorphism_is_refused() {
    assert!(Permutation::from_images(&[0, 0]).is_err());
    assert!(Permutation::from_images(&[0, 2]).is_err());
    let shift = Permutation::from_images(&[1, 2, 0]).unwrap();
    assert!(AutomorphismGroup::from_generators(2, vec![shift.clone()]).is_err());
    let group = AutomorphismGroup::from_generators(3, vec![shift]).unwrap();
    let refusal = check_automorphisms(&graph(3, [(0, 1), (1, 2)]), &group).unwrap_err();
    assert!(refusal.to_string().contains("number 0) that maps the edge (1, 2) to (2, 0)"), "{refusal}");
    let mut silent = Silent;
    let mut clock = Clock::new("the test", None, &mut silent);
    assert!(group.contains(&[0, 1], &mut clock).is_err());
    assert!(group.stabilizer(3, &mut clock).is_err());
    assert!(matches!(group.orbitals(1, &mut clock), Err(Error::TooLarge { .. })));
    assert!(AutomorphismGroup::hamming(2, 0).is_err());
    assert!(matches!(AutomorphismGroup::hamming(40, 2), Err(Error::TooLarge { .. })));
}

fn any_graph() -> impl Strategy<Value = Graph> {
    (1usize..9).prop_flat_map(|n| {
        let pairs: Vec<(u32, u32)> = (0..n as u32).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
        proptest::sample::subsequence(pairs.clone(), 0..=pairs.len()).prop_map(move |edges| graph(n, edges))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_complement_has_the_same_group_and_a_relabeling_conjugates_it(graph in any_graph(), seed in 0usize..5040) {
        let n = graph.vertices();
        let group = found(&graph);
        let lists = graph.neighbors();
        let absent = |&(a, b): &(u32, u32)| !lists[a as usize].contains(&b);
        let complement = Graph::new(n, (0..n as u32).flat_map(|a| (0..a).map(move |b| (a, b))).filter(absent).collect());
        let other = found(&complement.unwrap());
        prop_assert_eq!(group.orbits(), other.orbits());
        prop_assert_eq!(order(&group), order(&other));
        let mut names: Vec<u32> = (0..n as u32).collect();
        let mut rest = seed;
        for i in 1..n {
            names.swap(i, rest % (i + 1));
            rest /= i + 1;
        }
        let name = |v: u32| names[v as usize];
        let renamed = found(&Graph::new(n, graph.edges().iter().map(|&(a, b)| (name(a), name(b))).collect()).unwrap());
        prop_assert_eq!(order(&group), order(&renamed));
        prop_assert_eq!(rank(&group), rank(&renamed));
        for generator in group.generators() {
            let mut conjugate = vec![0; n];
            for v in 0..n as u32 {
                conjugate[name(v) as usize] = name(generator.image(v));
            }
            prop_assert!(with_clock(|clock| renamed.contains(&conjugate, clock)));
        }
        let restored = AutomorphismGroup::from_generators(n, group.generators().to_vec()).unwrap();
        prop_assert_eq!(order(&group), order(&restored));
        prop_assert_eq!(rank(&group), rank(&restored));
    }
}
