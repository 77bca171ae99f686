//! Distances: numbers of edges on shortest paths.
//!
//! A breadth-first search from every vertex; rows are shared out over threads. Cost O(n (n + m)) and four bytes per pair.
//! Around a vertex a, the sphere of radius d is the set of vertices at distance d. A graph is *distance-degree regular* if
//! the sizes of its spheres are the same around every vertex (Bloom, Kennedy and Quintas 1981).
//!
//! Source: E. Moore (1959), The shortest path through a maze (breadth first).

use super::{Graph, Lists};
use crate::monitor::Monitor;
use crate::{Error, Result, memory, parallel};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// What stands for the distance between different components.
pub const UNREACHABLE: i32 = -1;

/// Fills `row` with the distances from `source`, using `queue` as scratch, and returns the sizes of the spheres.
fn search(neighbors: &Lists, source: u32, row: &mut [i32], queue: &mut Vec<u32>) -> Vec<u32> {
    row.fill(UNREACHABLE);
    row[source as usize] = 0;
    queue.clear();
    queue.push(source);
    let mut sizes = Vec::new();
    let mut from = 0;
    while from < queue.len() {
        let to = queue.len();
        sizes.push((to - from) as u32);
        for index in from..to {
            if queue.len() == row.len() {
                break; // all are found: in dense graphs long before all edges are seen
            }
            let v = queue[index] as usize;
            for &w in &neighbors[v] {
                if row[w as usize] == UNREACHABLE {
                    row[w as usize] = sizes.len() as i32;
                    queue.push(w);
                }
            }
        }
        from = to;
    }
    sizes
}

/// All distances, row by row; [`UNREACHABLE`] between different components.
///
/// # Errors
/// [`Error::TooLarge`] beyond the memory limit, and the monitor's objection.
pub fn distances(graph: &Graph, threads: usize, memory_limit: u128, monitor: &mut dyn Monitor) -> Result<Vec<i32>> {
    let n = graph.vertices();
    let pairs = (n as u128).pow(2);
    memory::check("the table of all distances", 4 * pairs, memory_limit)?;
    let mut table = memory::filled_patiently(UNREACHABLE, n * n, "the table of all distances", monitor)?;
    let lists = graph.neighbors();
    parallel::run(threads, n as u64, monitor, |progress| {
        parallel::pieces(&mut table, n.max(1), Vec::new, |queue, source, row| {
            search(&lists, source as u32, row, queue);
            progress.advance(1)
        })
    })?;
    Ok(table)
}

/// The distances from one vertex.
///
/// # Errors
/// [`Error::Domain`] if `source` is no vertex, and the monitor's objection.
pub fn distances_from(graph: &Graph, source: u32, monitor: &mut dyn Monitor) -> Result<Vec<i32>> {
    if source as usize >= graph.vertices() {
        return Err(Error::domain("v", source, "a vertex"));
    }
    let mut row = memory::filled(UNREACHABLE, graph.vertices(), "the distances from a vertex")?;
    monitor.tick(0, 0)?;
    search(&graph.neighbors(), source, &mut row, &mut Vec::new());
    Ok(row)
}

/// The number of vertices at distance 0, 1, 2, ... of each vertex, one row each, and the length of the rows.
///
/// # Errors
/// [`Error::TooLarge`] as soon as the rows seen show that all together exceed the memory limit; the monitor's objection.
pub fn sphere_sizes(
    graph: &Graph,
    threads: usize,
    memory_limit: u128,
    monitor: &mut dyn Monitor,
) -> Result<(Vec<i64>, usize)> {
    const WHAT: &str = "the table of the sizes of spheres";
    let n = graph.vertices();
    let lists = graph.neighbors();
    // The table has as many columns as the longest row. No row is longer than twice any other of its component.
    let (columns, kept) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let rows: Vec<Vec<u32>> = parallel::run(threads, n as u64, monitor, |progress| {
        let mut rows = vec![Vec::new(); n];
        let scratch = || (vec![UNREACHABLE; n], Vec::new());
        parallel::pieces(&mut rows, 1, scratch, |(row, queue), source, sizes| {
            progress.advance(1)?;
            let sizes = sizes.first_mut().expect("a piece is a row");
            *sizes = search(&lists, source as u32, row, queue);
            let longest = columns.fetch_max(sizes.len(), Relaxed).max(sizes.len());
            let kept = kept.fetch_add(4 * sizes.len(), Relaxed) + 4 * sizes.len();
            memory::check(WHAT, (8 * n as u128 * longest as u128) + kept as u128, memory_limit)
        })?;
        Ok(rows)
    })?;
    let columns = columns.into_inner();
    let mut padded = memory::reserved(n as u128 * columns as u128, WHAT)?;
    for row in rows {
        padded.extend(row.into_iter().map(i64::from).chain(std::iter::repeat(0)).take(columns));
    }
    Ok((padded, columns))
}

/// Whether the spheres around all vertices have the same sizes.
///
/// # Errors
/// The monitor's objection.
pub fn is_distance_degree_regular(graph: &Graph, threads: usize, monitor: &mut dyn Monitor) -> Result<bool> {
    let n = graph.vertices();
    let lists = graph.neighbors();
    if n == 0 {
        return Ok(true);
    }
    let expected = search(&lists, 0, &mut vec![UNREACHABLE; n], &mut Vec::new());
    parallel::run(threads, n as u64, monitor, |progress| {
        let (regular, scratch) = (AtomicBool::new(true), || Ok((vec![UNREACHABLE; n], Vec::new())));
        parallel::tiles(n, 1, scratch, |(row, queue), source| {
            progress.advance(1)?;
            // Nothing is searched after the first vertex that differs.
            if regular.load(Relaxed) && search(&lists, source as u32, row, queue) != expected {
                regular.store(false, Relaxed);
            }
            Ok(())
        })?;
        Ok(regular.into_inner())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Silent;
    use crate::{grid, hamming, torus};

    #[test]
    fn distances_in_a_hamming_graph_count_differing_letters() {
        let table = distances(&hamming(3, 3).unwrap(), 2, 1 << 20, &mut Silent).unwrap();
        for (a, b) in (0..27).flat_map(|a| (0..27).map(move |b| (a, b))) {
            let differing = [1, 3, 9].iter().filter(|&place| a / place % 3 != b / place % 3).count();
            assert_eq!(table[a * 27 + b], differing as i32);
        }
        assert_eq!(
            sphere_sizes(&hamming(3, 3).unwrap(), 1, 1 << 20, &mut Silent).unwrap(),
            ([1, 6, 12, 8].repeat(27), 4)
        );
    }

    #[test]
    fn different_components_have_no_distance() {
        let graph = Graph::new(4, vec![(0, 1), (2, 2), (3, 2), (2, 3)]).unwrap();
        let expected = [0, 1, -1, -1, 1, 0, -1, -1, -1, -1, 0, 1, -1, -1, 1, 0];
        assert_eq!(distances(&graph, 1, 1 << 20, &mut Silent).unwrap(), expected);
        assert_eq!(distances_from(&graph, 2, &mut Silent).unwrap(), expected[8..12]);
        assert!(distances_from(&graph, 4, &mut Silent).is_err());
        assert!(matches!(distances(&graph, 1, 63, &mut Silent), Err(Error::TooLarge { needed: 64, .. })));
        assert!(matches!(sphere_sizes(&graph, 1, 63, &mut Silent), Err(Error::TooLarge { needed: 64.., .. })));
    }

    #[test]
    fn tori_are_distance_degree_regular_and_grids_are_not() {
        let regular = |graph| is_distance_degree_regular(&graph, 2, &mut Silent).unwrap();
        assert!(regular(torus(&[4, 7]).unwrap()));
        assert!(!regular(grid(&[4, 7]).unwrap()));
        assert!(regular(Graph::new(0, vec![]).unwrap()));
    }
}
