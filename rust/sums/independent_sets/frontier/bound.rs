//! How many vertices an independent set can have at most.
//!
//! A vertex with at most one neighbor is in some largest set, so it is counted and its neighbor removed; an independent
//! set meets each clique of what remains at most once, so the cliques of any partition bound the rest.
//!
//! Source: both steps are proved by the sentences above; the second is a clique cover.

use crate::Result;
use crate::graphs::{Graph, Lists};
use crate::monitor::Progress;

/// An upper bound on the size of independent sets; exact for forests.
///
/// # Errors
/// [`crate::Error::Interrupted`] once somebody asked to stop.
pub fn independence(graph: &Graph, neighbors: &Lists, progress: &Progress) -> Result<usize> {
    let vertices = neighbors.len();
    let mut gone = vec![false; vertices];
    graph.edges().iter().filter(|(u, v)| u == v).for_each(|&(v, _)| gone[v as usize] = true);
    let present = |gone: &[bool], v: u32| neighbors[v as usize].iter().filter(|&&u| !gone[u as usize]).count();
    let mut degree: Vec<usize> = (0..vertices as u32).map(|v| present(&gone, v)).collect();
    let mut waiting: Vec<u32> = (0..vertices as u32).rev().filter(|&v| degree[v as usize] <= 1).collect();
    let mut bound = 0;
    while let Some(v) = waiting.pop() {
        if std::mem::replace(&mut gone[v as usize], true) {
            continue;
        }
        bound += 1;
        progress.check_at(bound)?;
        let Some(&u) = neighbors[v as usize].iter().find(|&&u| !gone[u as usize]) else { continue };
        gone[u as usize] = true;
        for &w in neighbors[u as usize].iter().filter(|&&w| !gone[w as usize]) {
            degree[w as usize] -= 1;
            if degree[w as usize] <= 1 {
                waiting.push(w);
            }
        }
    }
    let mut order: Vec<u32> = (0..vertices as u32).filter(|&v| !gone[v as usize]).collect();
    order.sort_by_key(|&v| degree[v as usize]);
    for v in order {
        if std::mem::replace(&mut gone[v as usize], true) {
            continue;
        }
        bound += 1;
        progress.check_at(bound)?;
        let mut clique: Vec<u32> = Vec::new();
        for &u in &neighbors[v as usize] {
            let joins = |w: &u32| neighbors[u as usize].binary_search(w).is_ok();
            if !gone[u as usize] && clique.iter().all(joins) {
                gone[u as usize] = true;
                clique.push(u);
            }
        }
    }
    Ok(bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forests_and_cliques_have_their_exact_number() {
        let bound = |n, edges: &[(u32, u32)]| {
            let graph = Graph::new(n, edges.to_vec()).unwrap();
            independence(&graph, &graph.neighbors(), &Progress::default()).unwrap()
        };
        assert_eq!(bound(5, &[(0, 1), (1, 2), (2, 3), (3, 4)]), 3);
        assert_eq!(bound(6, &[(0, 1), (0, 2), (0, 3), (0, 4)]), 5);
        assert_eq!(bound(4, &[(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]), 1);
        assert_eq!(bound(3, &[(0, 0), (0, 1), (1, 2)]), 1);
        assert_eq!(bound(0, &[]), 0);
    }
}
