//! A uniform perfect matching of a plane bipartite graph, by coupling from the past.
//!
//! Without the edges that no perfect matching has, each component has its perfect matchings connected by rotations: where a
//! face is walked by edges in and out of the matching in turn, the two change places. One face of each component is never
//! rotated. Color the vertices; a face is up if its edges walked from black to white are matched, down if the others are. With
//! rotations up as steps up the matchings are a distributive lattice, with a least and a greatest one.
//!
//! A sweep puts every face that can be rotated up or down by a fair coin. That keeps the uniform distribution, and the order:
//! started ever further in the past with the same coins, the chains from the least and the greatest matching meet, and what
//! they meet in is exactly uniform.
//!
//! Where faces differ in length, dimers may be in a gaseous phase, whose chains meet only after a time that grows
//! exponentially (4-8-8: 0.02 s for 10 x 10 octagons, 46 s for 16 x 16). A run cannot be given up without bias. So a pilot
//! with coins of its own decides before whether the graph is left to another method: the same for every draw.
//!
//! Sources: J. Propp, D. Wilson (1996), Exact sampling with coupled Markov chains, Random Struct. Algorithms 9; J. Propp (2002),
//! Lattice structure for orientations of graphs, arXiv math/0209005; H. Zhang, F. Zhang (2000), Plane elementary bipartite
//! graphs, Discrete Appl. Math. 105.

use super::MatchingProblem;
use crate::graphs::maximum_matching;
use crate::monitor::{Monitor, Progress};
use crate::stream::xoshiro;
use crate::{Result, parallel};
use rand_core::Rng;

/// Longer faces rotate so seldom that chains meet too late.
const LONGEST_FACE: usize = 20;
/// What the streams of coins are for.
const PURPOSE: u64 = u64::from_le_bytes(*b"coupling");
const PILOT: u64 = u64::from_le_bytes(*b"cplpilot");

/// The edges of a uniform perfect matching for each key, rising, one matching after the other; `None` for a graph to which
/// this does not apply: without perfect matchings, not bipartite, not drawn on a plane, with long faces, or with chains that
/// meet too late.
///
/// # Errors
/// The monitor's error.
pub fn random_perfect_matchings(
    problem: &MatchingProblem,
    keys: &[[u64; 2]],
    monitor: &mut dyn Monitor,
) -> Result<Option<Vec<u32>>> {
    let Some(faces) = Faces::new(problem) else { return Ok(None) };
    let alike = faces.list.windows(2).all(|pair| pair[0][0].len() == pair[1][0].len());
    parallel::run(1, 0, monitor, |progress| {
        // About the time that drawing vertex by vertex takes, in visits of a face.
        let most = 3.0 * (2.0 * faces.start.iter().filter(|&&is| is).count() as f64).powf(2.75) + 1e6;
        if !alike && faces.couple([0, 0], PILOT, most, progress)?.is_none() {
            return Ok(None);
        }
        let drawn: Option<Vec<_>> =
            keys.iter().map(|&key| faces.couple(key, PURPOSE, f64::INFINITY, progress)).collect::<Result<_>>()?;
        Ok(drawn.map(|drawn| drawn.concat()))
    })
}

/// The faces that rotate.
struct Faces {
    /// For each its edges walked from black to white, and the others.
    list: Vec<[Vec<u32>; 2]>,
    /// The faces on which an edge is walked from black to white, and from white to black.
    sides: Vec<[u32; 2]>,
    start: Vec<bool>,
}

/// A matching: which edges, and how many of each face's two kinds.
#[derive(Clone)]
struct FaceMatching {
    matched: Vec<bool>,
    count: Vec<[u32; 2]>,
}

/// No face that rotates.
const NONE: u32 = u32::MAX;

impl Faces {
    fn new(problem: &MatchingProblem) -> Option<Self> {
        let MatchingProblem::Drawn { graph, embedding, .. } = problem else { return None };
        let black = graph.two_coloring()?;
        let mate: Vec<u32> = maximum_matching(graph, &Progress::default()).ok()?.into_iter().collect::<Option<_>>()?;
        if embedding.genus() > 0 {
            return None;
        }
        let mut start = vec![false; graph.edges().len()];
        let mut done = vec![false; graph.vertices()];
        for (e, &(u, v)) in graph.edges().iter().enumerate() {
            if mate[u as usize] == v && !done[u as usize] {
                (start[e], done[u as usize], done[v as usize]) = (true, true, true);
            }
        }
        // From the white end of an edge to the pair of its black end: a loop of pairs is an alternating loop.
        let mut onwards = vec![Vec::new(); graph.vertices()];
        for &(u, v) in graph.edges() {
            let (white, other) = if black[u as usize] { (v, u) } else { (u, v) };
            onwards[white as usize].push(mate[other as usize]);
        }
        let part = strong_components(&onwards);
        let kept: Vec<bool> = graph
            .edges()
            .iter()
            .map(|&(u, v)| {
                let white = |end: u32| if black[end as usize] { mate[end as usize] } else { end };
                part[white(u) as usize] == part[white(v) as usize]
            })
            .collect();
        let walks = embedding.faces_without(&kept);
        let tail = |dart: u32| {
            let (u, v) = graph.edges()[dart as usize / 2];
            if dart.is_multiple_of(2) { u } else { v }
        };
        // The longest face of each part does not rotate, nor does a part of one edge.
        let mut outer = std::collections::HashMap::new();
        for (w, walk) in walks.iter().enumerate() {
            let end = tail(walk[0]) as usize;
            let end = if black[end] { mate[end] as usize } else { end };
            let longest = outer.entry(part[end]).or_insert(w);
            if walk.len() > walks[*longest].len() {
                *longest = w;
            }
        }
        let outer: std::collections::HashSet<usize> = outer.into_values().collect();
        let mut faces = Self { list: Vec::new(), sides: vec![[NONE; 2]; graph.edges().len()], start };
        for (w, walk) in walks.iter().enumerate().filter(|(w, _)| !outer.contains(w)) {
            if walk.len() > LONGEST_FACE {
                return None;
            }
            let mut kinds = [Vec::new(), Vec::new()];
            for &dart in walk {
                let kind = usize::from(!black[tail(dart) as usize]);
                kinds[kind].push(dart / 2);
                faces.sides[dart as usize / 2][kind] = faces.list.len() as u32;
            }
            debug_assert_eq!(kinds[0].len(), kinds[1].len(), "face {w}");
            faces.list.push(kinds);
        }
        Some(faces)
    }

    /// Where the chains meet, `None` if that takes more than so many visits of faces.
    fn couple(&self, key: [u64; 2], purpose: u64, most: f64, progress: &Progress) -> Result<Option<Vec<u32>>> {
        let (least, greatest) = (self.extreme(false), self.extreme(true));
        let (mut sweeps, mut visits) = (1u64, 0.0);
        loop {
            visits += sweeps as f64 * self.list.len() as f64;
            if visits > most {
                return Ok(None);
            }
            let (mut low, mut high) = (least.clone(), greatest.clone());
            // The sweep that many before now has its own coins, whenever the chains were started.
            for before in (0..sweeps).rev() {
                progress.check()?;
                let mut coins = xoshiro(key, purpose, before, 0);
                let mut word = 0;
                for face in 0..self.list.len() {
                    if face % 64 == 0 {
                        word = coins.next_u64();
                    }
                    let up = word >> (face % 64) & 1 == 1;
                    self.put(&mut low, face, up);
                    self.put(&mut high, face, up);
                }
            }
            if low.matched == high.matched {
                let chosen = (0u32..).zip(&low.matched).filter(|&(_, &is)| is);
                return Ok(Some(chosen.map(|(e, _)| e).collect()));
            }
            sweeps *= 2;
        }
    }

    /// Puts a face up or down if it can be rotated; whether that changed it.
    #[inline]
    fn put(&self, state: &mut FaceMatching, face: usize, up: bool) -> bool {
        let (to, from) = if up { (0, 1) } else { (1, 0) };
        let kinds = &self.list[face];
        if state.count[face][from] as usize != kinds[from].len() {
            return false;
        }
        for (kind, is) in [(from, false), (to, true)] {
            for &edge in &kinds[kind] {
                state.matched[edge as usize] = is;
                for side in 0..2 {
                    let around = self.sides[edge as usize][side];
                    if around != NONE {
                        let count = &mut state.count[around as usize][side];
                        *count = if is { *count + 1 } else { *count - 1 };
                    }
                }
            }
        }
        true
    }

    /// The least or the greatest matching: faces are put down, or up, until none can be.
    fn extreme(&self, up: bool) -> FaceMatching {
        let matched = self.start.clone();
        let counted = |edges: &Vec<u32>| edges.iter().filter(|&&e| matched[e as usize]).count() as u32;
        let count = self.list.iter().map(|kinds| [counted(&kinds[0]), counted(&kinds[1])]).collect();
        let mut state = FaceMatching { matched, count };
        let mut waiting: Vec<u32> = (0..self.list.len() as u32).collect();
        while let Some(face) = waiting.pop() {
            if self.put(&mut state, face as usize, up) {
                let around = self.list[face as usize].iter().flatten().flat_map(|&edge| self.sides[edge as usize]);
                waiting.extend(around.filter(|&other| other != NONE && other != face));
            }
        }
        state
    }
}

/// The strongly connected component of each vertex (Tarjan's algorithm, without recursion).
fn strong_components(onwards: &[Vec<u32>]) -> Vec<u32> {
    let n = onwards.len();
    let (mut number, mut low, mut part) = (vec![NONE; n], vec![0u32; n], vec![NONE; n]);
    let (mut stack, mut path) = (Vec::new(), Vec::new());
    let (mut next, mut parts) = (0u32, 0u32);
    for root in 0..n as u32 {
        if number[root as usize] != NONE {
            continue;
        }
        path.push((root, 0usize));
        while let Some((v, at)) = path.pop() {
            if at == 0 {
                (number[v as usize], low[v as usize]) = (next, next);
                next += 1;
                stack.push(v);
            }
            match onwards[v as usize].get(at) {
                Some(&u) => {
                    path.push((v, at + 1));
                    if number[u as usize] == NONE {
                        path.push((u, 0));
                    } else if part[u as usize] == NONE {
                        low[v as usize] = low[v as usize].min(number[u as usize]);
                    }
                }
                None => {
                    if low[v as usize] == number[v as usize] {
                        while let Some(u) = stack.pop() {
                            part[u as usize] = parts;
                            if u == v {
                                break;
                            }
                        }
                        parts += 1;
                    }
                    if let Some(&(above, _)) = path.last() {
                        low[above as usize] = low[above as usize].min(low[v as usize]);
                    }
                }
            }
        }
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::Graph;
    use crate::lattices::{Boundary, Lattice, Section, UnitCell, aztec_diamond, four_eight_eight};
    use crate::monitor::Silent;
    use std::collections::HashMap;

    fn drawn(section: Section) -> MatchingProblem {
        MatchingProblem::drawn(section.graph().unwrap(), &section.displacements, section.windings).unwrap()
    }

    fn section(name: &str, extent: [usize; 2], closed: [bool; 2]) -> Section {
        Lattice::new(UnitCell::named(name).unwrap(), extent, closed).unwrap().section().unwrap()
    }

    /// Every matching is met, and about equally often: chi-square at five standard deviations.
    fn is_uniform(problem: &MatchingProblem, count: usize) {
        let rounds = 60 * count as u64;
        let mut met: HashMap<Vec<u32>, u64> = HashMap::new();
        let keys: Vec<_> = (0..rounds).map(|seed| [seed, 7]).collect();
        let drawn = random_perfect_matchings(problem, &keys, &mut Silent).unwrap().unwrap();
        for matching in drawn.chunks_exact(drawn.len() / keys.len()) {
            *met.entry(matching.to_vec()).or_default() += 1;
        }
        assert_eq!(met.len(), count);
        let chi: f64 = met.values().map(|&m| (m as f64 - 60.0).powi(2) / 60.0).sum();
        let free = count as f64 - 1.0;
        assert!((chi - free).abs() < 5.0 * (2.0 * free).sqrt() + 5.0, "{chi} with {free} degrees of freedom");
    }

    #[test]
    fn all_matchings_are_equally_likely() {
        is_uniform(&drawn(section("square", [4, 4], [false, false])), 36);
        is_uniform(&drawn(aztec_diamond(3).unwrap()), 64);
        is_uniform(&drawn(section("square", [2, 4], [false, true])), 9);
        is_uniform(&drawn(section("honeycomb", [3, 3], [false, true])), 8);
        is_uniform(&drawn(section("honeycomb", [3, 3], [false, false])), 1);
        is_uniform(&drawn(four_eight_eight(1, 2, Boundary::Free).unwrap()), 3);
        // Two parallel edges, and a component beside them.
        let edges = vec![(0, 1), (0, 1), (2, 3), (3, 4), (4, 5), (5, 2)];
        let rotation = vec![vec![0, 2], vec![3, 1], vec![4, 11], vec![6, 5], vec![8, 7], vec![10, 9]];
        is_uniform(&MatchingProblem::embedded(Graph::new(6, edges).unwrap(), rotation).unwrap(), 4);
    }

    #[test]
    fn chains_that_meet_too_late_are_left_to_others() {
        let problem = drawn(section("square", [8, 8], [false, false]));
        let faces = Faces::new(&problem).unwrap();
        assert_eq!(faces.couple([1, 2], PURPOSE, 100.0, &Progress::default()).unwrap(), None);
        let found = faces.couple([1, 2], PURPOSE, f64::INFINITY, &Progress::default()).unwrap();
        assert_eq!(found, random_perfect_matchings(&problem, &[[1, 2]], &mut Silent).unwrap());
    }

    #[test]
    fn what_has_no_heights_is_left_to_others() {
        for problem in [
            drawn(section("square", [4, 4], [true, true])),
            drawn(section("triangular", [2, 4], [false, false])),
            drawn(section("square", [3, 3], [false, false])),
        ] {
            assert_eq!(random_perfect_matchings(&problem, &[[0, 0]], &mut Silent).unwrap(), None);
        }
    }

    #[test]
    fn components_are_those_of_the_definition() {
        let part = strong_components(&[vec![1], vec![2], vec![0, 3], vec![4], vec![3], vec![]]);
        assert!(part[0] == part[1] && part[1] == part[2] && part[3] == part[4]);
        assert!(part[0] != part[3] && part[5] != part[0] && part[5] != part[3]);
    }
}
