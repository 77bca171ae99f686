//! Vertices cut out of a graph that is too wide: which ones, and the ways they can be occupied.
//!
//! Source: R. Dechter (1990), Enhancement schemes for constraint processing, Artificial Intelligence 41 (cutset conditioning).

use super::path_decomposition::PathDecomposition;
use crate::graphs::Lists;

/// Some of the vertices without which no frontier is wider than `most`: those met most often where it is wider.
///
/// About half of what is missing, at least one; the rest of the graph is reduced before more are chosen.
pub fn heaviest(decomposition: &PathDecomposition, most: usize) -> Vec<u32> {
    let mut widths = decomposition.widths();
    let excess = widths.iter().max().copied().unwrap_or(0).saturating_sub(most);
    let mut chosen: Vec<u32> = Vec::new();
    for _ in 0..excess.div_ceil(2).max(1) {
        let mut crowded = vec![0u32; widths.len() + 1]; // steps before this one that are too wide
        for (step, &width) in widths.iter().enumerate() {
            crowded[step + 1] = crowded[step] + u32::from(width > most);
        }
        let span = |v: u32| decomposition.introduced[v as usize] as usize..decomposition.forgotten[v as usize] as usize;
        let met = |v: u32| crowded[span(v).end] - crowded[span(v).start];
        let left = decomposition.order.iter().copied().filter(|v| !chosen.contains(v));
        let Some(best) =
            left.max_by_key(|&v| (met(v), decomposition.reduced.links[v as usize].len(), std::cmp::Reverse(v)))
        else {
            break;
        };
        widths[span(best)].iter_mut().for_each(|width| *width -= 1);
        chosen.push(best);
    }
    chosen
}

/// The independent subsets of the cut, as masks in rising order.
pub fn assignments(neighbors: &Lists, cut: &[u32]) -> Vec<u32> {
    let rows: Vec<u32> = cut
        .iter()
        .map(|v| {
            (0..cut.len()).filter(|&j| neighbors[*v as usize].binary_search(&cut[j]).is_ok()).map(|j| 1 << j).sum()
        })
        .collect();
    let mut masks = vec![0];
    for (i, row) in rows.iter().enumerate() {
        let with: Vec<u32> = masks.iter().filter(|&&mask| mask & row == 0).map(|mask| mask | 1 << i).collect();
        masks.extend(with);
    }
    masks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_of_a_cut_are_its_independent_sets() {
        // The path 0-1-2 and a vertex 3 beside it.
        let neighbors: Lists = [vec![1], vec![0, 2], vec![1], vec![]].into_iter().collect();
        assert_eq!(
            assignments(&neighbors, &[0, 1, 2, 3]),
            [0b0, 0b1, 0b10, 0b100, 0b101, 0b1000, 0b1001, 0b1010, 0b1100, 0b1101]
        );
        assert_eq!(assignments(&neighbors, &[]), [0]);
    }
}
