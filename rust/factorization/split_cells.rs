//! Splits the counts of many cells of a row over components: [`super::split`] with its partial sums in registers.
//!
//! Products u_k R_vk are summed in eight lanes, component k in lane k mod 8, and every partial sum is kept. An event finds its
//! lane among the sums of lanes and its place among the partial sums of that lane, all by comparisons without a branch.
//!
//! Sums of a tile of cells are formed first and its events follow in one loop, which knows of each its cell: how many events a
//! cell has is a jump that nobody guesses, and what a wrong guess throws away would be the sums of the next cell.
//!
//! Source: derived here; the order of the partial sums is that of [`super::split`].

use super::factor_matrix::FactorMatrix;
use super::split::{MANY, last_positive};
use crate::distributions::words::RowWords;
use crate::numeric::floats::{FloatWork, Floats, LANES};

/// Cells of a tile, 11 KiB. Of 8, 16 and 32 the fastest.
const TILE: usize = 16;
/// Events of a cell at most; a tile ends with the cell that takes it beyond so many.
const MOST: usize = MANY as usize * MOST_COMPONENTS;
/// Components at most.
const MOST_COMPONENTS: usize = LANES * LANES;

/// A cell of a tile, in whole lines of the cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Cell {
    /// `partial[b][l]`, the sum of u_k R_vk over k = l, l + 8, ..., l + 8 b: it never falls with b. Infinity where no b is.
    partial: [[f64; LANES]; LANES],
    /// Where lanes end, behind a zero and what is not used: lane l begins at `edges[7 + l]` and ends at the next.
    edges: [f64; 2 * LANES],
    /// Where its column begins among the sums.
    start: usize,
}

/// One without counts.
const EMPTY: Cell = Cell { partial: [[f64::INFINITY; LANES]; LANES], edges: [0.0; 2 * LANES], start: 0 };

/// The counts of some cells of a row.
pub struct SplitCells<'a> {
    /// Weights of the row.
    pub left: &'a [f64],
    /// Weights of the columns.
    pub right: &'a FactorMatrix,
    /// The columns of the cells.
    pub columns: &'a [u32],
    /// The counts of all columns.
    pub counts: &'a [i64],
    /// Where words come from.
    pub words: &'a mut RowWords,
    /// Sums by column and component.
    pub cells: &'a mut [u64],
    /// Sums by component.
    pub parts: &'a mut [u64],
    /// Columns whose counts have not been split: they are large, or every product is below the least normal double.
    pub left_over: &'a mut Vec<u32>,
}

impl FloatWork for SplitCells<'_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, f: F) {
        // The number of eights is known to the compiler, so that the scans over them have no end to guess.
        match self.right.stride / LANES {
            1 => self.split::<F, 1>(f),
            2 => self.split::<F, 2>(f),
            3 => self.split::<F, 3>(f),
            4 => self.split::<F, 4>(f),
            5 => self.split::<F, 5>(f),
            6 => self.split::<F, 6>(f),
            7 => self.split::<F, 7>(f),
            8 => self.split::<F, 8>(f),
            _ => self.left_over.extend_from_slice(self.columns),
        }
    }
}

impl SplitCells<'_> {
    #[inline(always)]
    fn split<F: Floats, const B: usize>(self, f: F) {
        let Self { left, right, columns, counts, words, cells, parts, left_over } = self;
        // Component k is at (block, lane) = (k / 8, k mod 8); a column v has the blocks B v .. B v + B of `cells`.
        let mut weights = [f.splat(0.0); B];
        for (weight, left) in weights.iter_mut().zip(left.as_chunks::<LANES>().0) {
            *weight = f.load(left);
        }
        let mut own_parts = [0; MOST_COMPONENTS];
        let mut tile = [EMPTY; TILE];
        // The cell of each event, written by eights; the share of its sum that is before the event; its component.
        let mut events = [0; 2 * MOST + LANES];
        let mut uniforms = [0.0; 2 * MOST];
        let mut components = [0; 2 * MOST];
        let mut rest = columns;
        while !rest.is_empty() {
            let (mut used, mut found) = (0, 0);
            while used < TILE && found <= MOST {
                let Some((&column, others)) = rest.split_first() else { break };
                rest = others;
                let count = counts[column as usize] as u64;
                let cell = &mut tile[used];
                let mut sum = f.splat(0.0);
                let factors = right.row(column as usize).as_chunks::<LANES>().0;
                for ((partial, factor), weight) in cell.partial.iter_mut().zip(factors).zip(weights) {
                    sum = f.add(sum, f.mul(weight, f.load(factor)));
                    f.store(sum, partial);
                }
                let ends = &mut cell.edges.as_chunks_mut::<LANES>().0[1];
                f.store(f.prefix(sum), ends);
                if !(ends[LANES - 1] >= f64::MIN_POSITIVE) || count > MANY * (LANES * B) as u64 {
                    left_over.push(column);
                    continue;
                }
                cell.start = B * LANES * column as usize;
                for eight in events[found..].chunks_exact_mut(LANES).take((count as usize).div_ceil(LANES)) {
                    eight.fill(used as u8);
                }
                found += count as usize;
                used += 1;
            }
            words.uniforms(&mut uniforms[..found]);
            for ((&event, &uniform), component) in events.iter().zip(&uniforms[..found]).zip(&mut components) {
                let Cell { partial, edges, .. } = &tile[event as usize % TILE];
                let target = uniform * edges[2 * LANES - 1];
                // The first lane whose end is beyond the target: a run of ones, for rounding may put an end a unit below the one
                // before it. The last lane is never passed, for u * total may round to the total.
                let ends = f.load(&edges.as_chunks().0[1]);
                let lane = (f.bits(f.splat(target), ends) & 0x7f).trailing_ones() as usize % LANES;
                let target = target - edges[LANES - 1 + lane];
                // How many partial sums it reaches, bit by bit.
                let mut block = 0;
                for step in [4, 2, 1] {
                    if step <= B {
                        block += step * usize::from(partial[block + step - 1][lane] <= target);
                    }
                }
                if B == LANES {
                    block += usize::from(partial[block][lane] <= target);
                }
                let (block, lane) = if block < B { (block, lane) } else { last_positive(&partial[..B], lane) };
                *component = (block * LANES + lane) as u8;
            }
            // In a loop of its own, so that what is added to comes from the farther caches side by side.
            for (&event, &component) in events.iter().zip(&components[..found]) {
                let component = component as usize % MOST_COMPONENTS;
                cells[tile[event as usize % TILE].start + component] += 1;
                own_parts[component] += 1;
            }
        }
        for (sum, part) in parts.iter_mut().zip(&own_parts) {
            *sum += part;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::dispatch::Level;
    use crate::numeric::floats::float_work;
    use crate::split::tests::assert_parts_fit;
    use crate::stream::Stream;

    #[test]
    fn parts_follow_the_products_at_every_level() {
        // False alarm 1e-6 per width.
        let mut random = Stream::new([1, 2], 3, 4, 5);
        for width in [1, 3, 8, 11, 50, 64] {
            let cols = 400;
            let values: Vec<f64> = (0..width * (cols + 1)).map(|_| random.uniform()).collect();
            let mut left = FactorMatrix::packed(1, width, &values[..width]).unwrap();
            if width > 8 {
                left.row_mut(0)[5] = 0.0;
            }
            // All columns alike, so that their parts add up to one law.
            let right = FactorMatrix::packed(cols, width, &values[width..2 * width].repeat(cols)).unwrap();
            let columns: Vec<u32> = (0..cols as u32).rev().collect();
            let counts: Vec<i64> = (0..cols as i64).map(|i| if i == 7 { 5000 } else { i % 9 }).collect();
            let mut results = vec![];
            for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
                let (mut cells, mut parts) = (vec![0; cols * right.stride], vec![0; right.stride]);
                let mut left_over = vec![];
                for round in 0..40 {
                    left_over.clear();
                    let mut words = RowWords::new(level, [7, 7], 1, 0, round);
                    let (columns, counts, words) = (&columns[..], &counts[..], &mut words);
                    let (cells, parts, left_over) = (&mut cells[..], &mut parts[..], &mut left_over);
                    let (left, right) = (left.row(0), &right);
                    float_work(level, SplitCells { left, right, columns, counts, words, cells, parts, left_over });
                }
                assert_eq!(left_over, [7]);
                for (column, &count) in counts.iter().enumerate().filter(|(column, _)| *column != 7) {
                    let cell = &cells[column * right.stride..(column + 1) * right.stride];
                    assert_eq!(cell.iter().sum::<u64>(), 40 * count as u64);
                }
                results.push((cells, parts));
            }
            assert!(results[0] == results[1] && results[1] == results[2]);
            let parts = &results[0].1;
            let weights: Vec<f64> = left.row(0).iter().zip(right.row(0)).map(|(a, b)| a * b).collect();
            assert_parts_fit(&weights, parts);
        }
    }

    #[test]
    fn products_below_every_double_are_left_over() {
        let right = FactorMatrix::packed(1, 2, &[1e-200; 2]).unwrap();
        let mut left = [0.0; LANES];
        left[..2].fill(1e-200);
        let (mut cells, mut parts, mut left_over) = ([0; LANES], [0; LANES], vec![]);
        let mut words = RowWords::new(Level::Baseline, [7, 7], 1, 0, 0);
        let (counts, columns) = ([3], [0]);
        let (words, cells, parts, left_over_of) = (&mut words, &mut cells[..], &mut parts[..], &mut left_over);
        let (left, right) = (&left[..], &right);
        let split = SplitCells {
            left,
            right,
            columns: &columns,
            counts: &counts,
            words,
            cells,
            parts,
            left_over: left_over_of,
        };
        float_work(Level::Baseline, split);
        assert_eq!((left_over, parts[..].iter().sum::<u64>()), (vec![0], 0));
    }
}
