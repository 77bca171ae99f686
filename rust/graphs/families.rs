//! Standard families: grids, tori, complete graphs and Hamming graphs.
//!
//! Vertices of a grid are its points in C order (the last coordinate runs fastest); vertices of a Hamming graph are the
//! words in lexicographic order. Edges come vertex by vertex, from the smaller end, positions in order; an edge that a
//! torus wraps comes at its last point.

use super::Graph;
use crate::memory::reserved;
use crate::{Error, Result};

/// The largest number of vertices a graph may have.
const MOST: u128 = u32::MAX as u128;

/// The grid of the given extents: points that differ by one in one coordinate are joined.
///
/// # Errors
/// [`Error::Domain`] above `2^32 - 1` vertices, [`Error::TooLarge`] without memory.
pub fn grid(shape: &[usize]) -> Result<Graph> {
    product_of_lines(shape, false)
}

/// The grid with every axis closed. Extent 1 makes loops and extent 2 parallel edges; both are kept.
///
/// # Errors
/// As [`grid`].
pub fn torus(shape: &[usize]) -> Result<Graph> {
    product_of_lines(shape, true)
}

fn product_of_lines(shape: &[usize], closed: bool) -> Result<Graph> {
    let vertices = checked_vertices("shape", || format!("{shape:?}"), shape.iter().map(|&extent| extent as u128))?;
    if vertices == 0 {
        return Graph::new(0, Vec::new());
    }
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    let mut edges = reserved(vertices as u128 * shape.len() as u128, "the edges of a grid")?;
    for vertex in 0..vertices {
        for (&extent, &stride) in shape.iter().zip(&strides) {
            let coordinate = vertex / stride % extent;
            if coordinate + 1 < extent {
                edges.push((vertex as u32, (vertex + stride) as u32));
            } else if closed {
                edges.push((vertex as u32, (vertex - coordinate * stride) as u32));
            }
        }
    }
    Graph::new(vertices, edges)
}

/// The complete graph.
///
/// # Errors
/// As [`grid`].
pub fn complete(vertices: usize) -> Result<Graph> {
    checked_vertices("n", || vertices.to_string(), [vertices as u128])?;
    let n = vertices as u32;
    let mut edges = reserved(u128::from(n) * u128::from(n.saturating_sub(1)) / 2, "the edges of a complete graph")?;
    edges.extend((0..n).flat_map(|u| (u + 1..n).map(move |v| (u, v))));
    Graph::new(vertices, edges)
}

/// The Hamming graph: words of a length over an alphabet, joined when they differ in one position.
///
/// # Errors
/// As [`grid`].
pub fn hamming(length: usize, alphabet_size: usize) -> Result<Graph> {
    let shown = || format!("{alphabet_size}**{length} words");
    // Above 32 letters and two symbols the product below is too large anyway; one symbol makes one word of any length.
    let positions = if alphabet_size == 1 { 0 } else { length };
    if positions > 32 && alphabet_size > 1 {
        return Err(too_many("length", shown()));
    }
    let vertices = checked_vertices("length", shown, std::iter::repeat_n(alphabet_size as u128, positions))?;
    let degree = positions as u128 * (alphabet_size.saturating_sub(1)) as u128;
    let mut edges = reserved(vertices as u128 * degree / 2, "the edges of a Hamming graph")?;
    for word in 0..vertices {
        for position in (0..positions as u32).rev() {
            let stride = alphabet_size.pow(position);
            let letter = word / stride % alphabet_size;
            edges.extend((1..alphabet_size - letter).map(|step| (word as u32, (word + step * stride) as u32)));
        }
    }
    Graph::new(vertices, edges)
}

/// The product of the extents, if a graph may have so many vertices.
fn checked_vertices(
    name: &'static str,
    shown: impl Fn() -> String,
    extents: impl IntoIterator<Item = u128> + Clone,
) -> Result<usize> {
    if extents.clone().into_iter().any(|extent| extent == 0) {
        return Ok(0);
    }
    let product = extents
        .into_iter()
        .try_fold(1u128, |product, extent| product.checked_mul(extent).filter(|&vertices| vertices <= MOST));
    product.map(|vertices| vertices as usize).ok_or_else(|| too_many(name, shown()))
}

fn too_many(name: &'static str, value: String) -> Error {
    Error::domain(name, value, "so small that there are fewer than 2**32 vertices")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_has_the_edges_of_its_axes() {
        assert_eq!(grid(&[4]).unwrap().edges(), [(0, 1), (1, 2), (2, 3)]);
        assert_eq!(grid(&[2, 2]).unwrap().edges(), [(0, 2), (0, 1), (1, 3), (2, 3)]);
        let graph = grid(&[2, 3, 4]).unwrap();
        assert_eq!((graph.vertices(), graph.edges().len()), (24, 3 * 4 + 2 * 2 * 4 + 2 * 3 * 3));
    }

    #[test]
    fn a_torus_is_regular_and_keeps_loops_and_parallel_edges() {
        for shape in [&[5][..], &[3, 4], &[1, 3], &[2, 2, 2]] {
            let graph = torus(shape).unwrap();
            assert!(graph.degrees().iter().all(|&degree| degree == 2 * shape.len() as u64), "{shape:?}");
        }
        assert_eq!(torus(&[1]).unwrap().edges(), [(0, 0)]);
        assert_eq!(torus(&[2]).unwrap().edges(), [(0, 1), (1, 0)]);
    }

    #[test]
    fn empty_and_single_graphs_exist() {
        assert_eq!(grid(&[0, usize::MAX, usize::MAX]).unwrap().vertices(), 0);
        assert_eq!(grid(&[]).unwrap().vertices(), 1);
        assert_eq!((complete(0).unwrap().vertices(), complete(1).unwrap().edges().len()), (0, 0));
        assert_eq!(hamming(0, 3).unwrap().vertices(), 1);
        assert_eq!(hamming(usize::MAX, 1).unwrap().vertices(), 1);
        assert_eq!(hamming(2, 0).unwrap().vertices(), 0);
    }

    #[test]
    fn words_are_joined_when_they_differ_in_one_position() {
        let graph = hamming(3, 4).unwrap();
        assert_eq!(graph.vertices(), 64);
        let letters = |word: u32| [word / 16, word / 4 % 4, word % 4];
        let mut expected = Vec::new();
        for u in 0..64 {
            for v in u + 1..64 {
                if (0..3).filter(|&i| letters(u)[i] != letters(v)[i]).count() == 1 {
                    expected.push((u, v));
                }
            }
        }
        let mut edges = graph.edges().to_vec();
        edges.sort_unstable();
        assert_eq!(edges, expected);
        assert_eq!(hamming(1, 5).unwrap(), complete(5).unwrap());
    }

    #[test]
    fn families_too_large_for_a_graph_are_refused() {
        assert!(matches!(grid(&[1 << 20, 1 << 20]), Err(Error::Domain { name: "shape", .. })));
        assert!(matches!(torus(&[usize::MAX; 9]), Err(Error::Domain { .. })));
        assert!(matches!(complete(1 << 32), Err(Error::Domain { .. })));
        assert!(matches!(hamming(33, 2), Err(Error::Domain { name: "length", .. })));
        assert!(matches!(hamming(32, 2), Err(Error::Domain { .. })));
        assert!(matches!(hamming(2, usize::MAX), Err(Error::Domain { .. })));
    }
}
