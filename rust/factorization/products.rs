//! The three matrix products of a factorization, a tile of rows at a time: rates, and weighted sums over columns and over rows.
//!
//!   rates_rv = sum_k u_rk R_vk,      over_columns_rk = sum_v W_rv R_vk,      over_rows_vk += sum_r W_rv u_rk.
//!
//! Sums are held in registers, four or eight rows or columns by a few eights, and what they read again stays in the nearest cache.
//! Each is added up in the order of its index, every product contracted with the sum: so its bits depend neither on the tile it is
//! formed in nor on the vector level, which libraries for such products do not offer. `benches/bench_factorization.py` prints their
//! share of the machine's limit.
//!
//! Source: K. Goto, R. van de Geijn (2008), Anatomy of high-performance matrix multiplication (panels and register tiles).

use super::factor_matrix::FactorMatrix;
use crate::numeric::dispatch::Level;
use crate::numeric::floats::{FloatWork, Floats, LANES, float_work};
use crate::numeric::places::places_of;
use std::array;

/// The most rows that share what is read.
pub const TILE: usize = 32;

/// Rows to form together where a row is so long: the columns' factor is read once for them, and what is formed takes 4 MiB at most, but
/// where that were fewer rows than are held together. With four rows of 10^4 columns a pass of an ascent takes 1.4 times as long.
pub fn tile_of(cols: usize) -> usize {
    (0x80000 / cols.max(1)).clamp(HELD, TILE)
}

/// Rows, or columns, whose sums are held together.
const HELD: usize = 4;
/// Rows whose rates are held together where registers are many.
const MOST: usize = 8;
/// Columns of a panel.
const PANEL: usize = 2 * LANES;
/// Columns whose factors stay in the nearest cache.
const BLOCK: usize = 64;

/// The factor of the columns, in panels of sixteen columns, one component after the other.
#[derive(Clone, Debug, Default)]
pub struct Panels {
    values: Vec<f64>,
    width: usize,
    cols: usize,
}

impl Panels {
    /// The panels of a factor.
    pub fn new(matrix: &FactorMatrix) -> Self {
        let (width, cols) = (matrix.width, matrix.rows);
        let mut values = vec![0.0; cols.div_ceil(PANEL) * PANEL * width];
        for (panel, values) in values.chunks_exact_mut(PANEL * width).enumerate() {
            for column in panel * PANEL..cols.min((panel + 1) * PANEL) {
                for (k, &x) in matrix.row(column)[..width].iter().enumerate() {
                    values[k * PANEL + column % PANEL] = x;
                }
            }
        }
        Self { values, width, cols }
    }

    /// The rates of the rows of weights in `left`, `stride` apart: one row of columns after the other.
    pub fn rates(&self, level: Level, left: &[f64], stride: usize, out: &mut [f64]) {
        debug_assert!(left.len() / stride * self.cols <= out.len());
        if !left.is_empty() {
            float_work(level, RateProducts { panels: self, left, stride, out });
        }
    }
}

/// The eight at a place of a slice.
#[inline(always)]
fn eight(values: &[f64], at: usize) -> &[f64; LANES] {
    values[at..].first_chunk().unwrap_or(&[0.0; LANES])
}

struct RateProducts<'a> {
    panels: &'a Panels,
    left: &'a [f64],
    stride: usize,
    out: &'a mut [f64],
}

impl FloatWork for RateProducts<'_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, f: F) {
        let Self { panels, left, stride, out } = self;
        // Entry (k, c) of panel p is R_vk of column v = 16 p + c; columns beyond the last are zeros, formed and not written.
        let rows = left.len() / stride;
        for (number, panel) in panels.values.chunks_exact(PANEL * panels.width).enumerate() {
            let panel = panel.as_chunks::<PANEL>().0;
            let mut row = 0;
            while row < rows {
                let at = |i: usize| &left[(row + i) * stride..(row + i) * stride + panels.width];
                let place = (panels.cols, row, number * PANEL);
                // Eight or four rows, two eights of columns or one at a time, as registers allow.
                row += match rows - row {
                    MOST.. if F::HELD == 4 => {
                        tile::<F, MOST, 2>(f, panel, 0, array::from_fn(at), place, out);
                        MOST
                    }
                    HELD.. => {
                        (0..2).for_each(|half| tile::<F, HELD, 1>(f, panel, half, array::from_fn(at), place, out));
                        HELD
                    }
                    _ => {
                        tile::<F, 1, 2>(f, panel, 0, [at(0)], place, out);
                        1
                    }
                };
            }
        }
    }
}

/// The rates of some rows in some eights of a panel, written to their place in rows of `cols`.
#[inline(always)]
fn tile<F: Floats, const N: usize, const C: usize>(
    f: F,
    panel: &[[f64; PANEL]],
    first: usize,
    left: [&[f64]; N],
    (cols, row, column): (usize, usize, usize),
    out: &mut [f64],
) {
    let mut sums = [[f.splat(0.0); C]; N];
    let left = left.map(|left| &left[..panel.len()]);
    for (k, columns) in panel.iter().enumerate() {
        let mut factors = [f.splat(0.0); C];
        for (c, factor) in factors.iter_mut().enumerate() {
            *factor = f.load(eight(columns, (first + c) * LANES));
        }
        for (sums, left) in sums.iter_mut().zip(left) {
            let weight = f.splat(left[k]);
            for (sum, factor) in sums.iter_mut().zip(factors) {
                *sum = f.mul_add(weight, factor, *sum);
            }
        }
    }
    for (out, sums) in out[row * cols..].chunks_exact_mut(cols).zip(sums) {
        for (at, sum) in (column + first * LANES..cols).step_by(LANES).zip(sums) {
            if let Some(out) = out[at..].first_chunk_mut() {
                f.store(sum, out);
            } else {
                let mut last = [0.0; LANES];
                f.store(sum, &mut last);
                out[at..].copy_from_slice(&last[..cols - at]);
            }
        }
    }
}

/// Weights of some rows that are not one, and by how much they differ: row by row, and column by column.
#[derive(Debug, Default)]
pub struct Excesses {
    by_row: Sparse,
    by_column: Sparse,
}

/// Entries of a sparse matrix, those of one row or column after those of the one before.
#[derive(Debug, Default)]
struct Sparse {
    places: Vec<u32>,
    values: Vec<f64>,
    /// Where the entries of each row or column end.
    ends: Vec<usize>,
}

impl Sparse {
    #[inline(always)]
    fn rows(&self) -> impl Iterator<Item = (&[u32], &[f64])> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| (&self.places[start..end], &self.values[start..end]))
    }
}

impl Excesses {
    /// Finds those of some rows; whether they are so few that sums over them are cheaper than over all cells.
    pub fn find(&mut self, level: Level, weights: &[f64], cols: usize) -> bool {
        // Room for all, and eight that are written and not kept.
        let Sparse { places, values, ends } = &mut self.by_row;
        places.resize(weights.len() + LANES, 0);
        values.resize(weights.len(), 0.0);
        ends.clear();
        let mut found = 0;
        for (number, row) in (1..).zip(weights.chunks_exact(cols)) {
            let start = found;
            found += places_of(level, row, 0, &mut places[start..], |weight| weight != 1.0);
            for (value, &column) in values[start..found].iter_mut().zip(&places[start..found]) {
                *value = row[column as usize] - 1.0;
            }
            // At more, products of whole rows take less.
            if found > number * cols / 2 {
                return false;
            }
            ends.push(found);
        }
        true
    }

    /// Sorts them by columns.
    fn turn(&mut self, cols: usize) {
        let Self { by_row, by_column: Sparse { places, values, ends } } = self;
        let number = by_row.ends.last().copied().unwrap_or(0);
        ends.clear();
        ends.resize(cols + 1, 0);
        by_row.places[..number].iter().for_each(|&column| ends[column as usize + 1] += 1);
        (0..cols).for_each(|column| ends[column + 1] += ends[column]);
        places.resize(number.max(places.len()), 0);
        values.resize(number.max(values.len()), 0.0);
        for (row, (columns, excesses)) in (0..).zip(by_row.rows()) {
            for (&column, &excess) in columns.iter().zip(excesses) {
                let at = &mut ends[column as usize];
                (places[*at], values[*at]) = (row, excess);
                *at += 1;
            }
        }
        ends.truncate(cols);
    }

    /// [`over_columns`] given the sums of `right` over all columns.
    pub fn over_columns(&self, level: Level, (right, sums): (&FactorMatrix, &[f64]), out: &mut [f64]) {
        out.chunks_exact_mut(sums.len()).for_each(|out| out.copy_from_slice(sums));
        float_work(level, SparseSums { weights: &self.by_row, of: right.padded(), stride: sums.len(), out });
        // What differs from nothing by rounding may be below it.
        out.iter_mut().for_each(|sum| *sum = sum.max(0.0));
    }

    /// [`over_rows`] but for the sums of `left` over all rows, which `all` gets.
    pub fn over_rows(&mut self, level: Level, left: &[f64], all: &mut [f64], out: &mut [f64]) {
        let stride = all.len();
        self.turn(out.len() / stride);
        left.chunks_exact(stride).for_each(|left| all.iter_mut().zip(left).for_each(|(sum, x)| *sum += x));
        float_work(level, SparseSums { weights: &self.by_column, of: left, stride, out });
    }
}

/// Adds to each row of `out` the weighted sum of some rows of another matrix.
struct SparseSums<'a> {
    weights: &'a Sparse,
    of: &'a [f64],
    stride: usize,
    out: &'a mut [f64],
}

impl FloatWork for SparseSums<'_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, f: F) {
        let Self { weights, of, stride, out } = self;
        let rows = weights.rows().zip(out.chunks_exact_mut(stride));
        for ((places, values), out) in rows.filter(|((places, _), _)| !places.is_empty()) {
            // Four eights at a time are held in registers.
            let mut at = 0;
            while at < stride {
                let of = (of, stride, at);
                match (stride - at) / LANES {
                    1 => sparse_sum::<F, 1>(f, (places, values), of, out),
                    2 => sparse_sum::<F, 2>(f, (places, values), of, out),
                    3 => sparse_sum::<F, 3>(f, (places, values), of, out),
                    _ => sparse_sum::<F, 4>(f, (places, values), of, out),
                }
                at += 4 * LANES;
            }
        }
    }
}

#[inline(always)]
fn sparse_sum<F: Floats, const N: usize>(
    f: F,
    (places, values): (&[u32], &[f64]),
    (of, stride, at): (&[f64], usize, usize),
    out: &mut [f64],
) {
    let out = &mut out.as_chunks_mut::<LANES>().0[at / LANES..];
    let mut sums = [f.splat(0.0); N];
    sums.iter_mut().zip(&*out).for_each(|(sum, out)| *sum = f.load(out));
    for (&place, &value) in places.iter().zip(values) {
        let (start, value) = (place as usize * stride + at, f.splat(value));
        let eights = of[start..start + N * LANES].as_chunks::<LANES>().0;
        for (sum, eight) in sums.iter_mut().zip(eights) {
            *sum = f.mul_add(value, f.load(eight), *sum);
        }
    }
    sums.iter().zip(out).for_each(|(&sum, out)| f.store(sum, out));
}

/// `out_r = sum_v W_rv R_v` for rows of weights that are `right.rows` long.
pub fn over_columns(level: Level, weights: &[f64], right: &FactorMatrix, out: &mut [f64]) {
    out.fill(0.0);
    if right.rows > 0 {
        float_work(level, OverColumns { weights, right, out });
    }
}

struct OverColumns<'a> {
    weights: &'a [f64],
    right: &'a FactorMatrix,
    out: &'a mut [f64],
}

impl FloatWork for OverColumns<'_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, f: F) {
        let Self { weights, right, out } = self;
        // Blocks of columns outermost, so that sums go through memory once a block: each is still added up by rising column.
        let (stride, cols) = (right.stride, right.rows);
        for (block, right) in right.padded().chunks(BLOCK * stride).enumerate() {
            let columns = block * BLOCK..block * BLOCK + right.len() / stride;
            for (weights, out) in weights.chunks(HELD * cols).zip(out.chunks_mut(HELD * stride)) {
                let weight = |r: usize| &weights[r * cols..(r + 1) * cols][columns.clone()];
                if weights.len() == HELD * cols {
                    add_rows(f, right, stride, [weight(0), weight(1), weight(2), weight(3)], out);
                } else {
                    for (r, out) in out.chunks_exact_mut(stride).enumerate().take(weights.len() / cols) {
                        add_rows(f, right, stride, [weight(r)], out);
                    }
                }
            }
        }
    }
}

/// Adds `sum_v W_v R_v` of some columns to the sums of some rows.
#[inline(always)]
fn add_rows<F: Floats, const N: usize>(f: F, right: &[f64], stride: usize, weights: [&[f64]; N], out: &mut [f64]) {
    let mut start = 0;
    while start < stride {
        // Up to four eights of components at a time, as registers allow.
        let held = F::HELD.min((stride - start) / LANES);
        match held {
            4 => add_components::<F, N, 4>(f, right, (stride, start), weights, out),
            3 => add_components::<F, N, 3>(f, right, (stride, start), weights, out),
            2 => add_components::<F, N, 2>(f, right, (stride, start), weights, out),
            _ => add_components::<F, N, 1>(f, right, (stride, start), weights, out),
        }
        start += held * LANES;
    }
}

#[inline(always)]
fn add_components<F: Floats, const N: usize, const C: usize>(
    f: F,
    right: &[f64],
    (stride, start): (usize, usize),
    weights: [&[f64]; N],
    out: &mut [f64],
) {
    let mut sums = [[f.splat(0.0); C]; N];
    for (r, sums) in sums.iter_mut().enumerate() {
        for (c, sum) in sums.iter_mut().enumerate() {
            *sum = f.load(eight(out, r * stride + start + c * LANES));
        }
    }
    let weights = weights.map(|weights| &weights[..right.len() / stride]);
    for (v, right) in right.chunks_exact(stride).enumerate() {
        let right = &right[start..start + C * LANES];
        let mut factors = [f.splat(0.0); C];
        for (c, factor) in factors.iter_mut().enumerate() {
            *factor = f.load(eight(right, c * LANES));
        }
        for (sums, weights) in sums.iter_mut().zip(weights) {
            let weight = f.splat(weights[v]);
            for (sum, factor) in sums.iter_mut().zip(factors) {
                *sum = f.mul_add(weight, factor, *sum);
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        for (c, sum) in sums.iter().enumerate() {
            let mut words = [0.0; LANES];
            f.store(*sum, &mut words);
            out[r * stride + start + c * LANES..][..LANES].copy_from_slice(&words);
        }
    }
}

/// `sums_v += sum_r W_rv u_r`, row after row, for rows of weights that are `cols` long.
pub fn over_rows(level: Level, weights: &[f64], cols: usize, left: &[f64], stride: usize, sums: &mut [f64]) {
    if cols > 0 {
        float_work(level, OverRows { weights, cols, left, stride, sums });
    }
}

struct OverRows<'a> {
    weights: &'a [f64],
    cols: usize,
    left: &'a [f64],
    stride: usize,
    sums: &'a mut [f64],
}

impl FloatWork for OverRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, f: F) {
        let Self { weights, cols, left, stride, sums } = self;
        // The sums of a column are those of a row whose weights are a column of W, and whose factors are u.
        let rows = weights.len() / cols;
        let left = &left[..rows * stride];
        let mut columns = [[0.0; TILE]; HELD];
        for (at, sums) in sums.chunks_mut(HELD * stride).enumerate() {
            let start = at * HELD;
            let held = sums.len() / stride;
            for (r, weights) in weights.chunks_exact(cols).enumerate() {
                for (column, weight) in columns.iter_mut().zip(&weights[start..start + held]) {
                    column[r] = *weight;
                }
            }
            if held == HELD {
                add_rows(f, left, stride, columns.each_ref().map(|column| &column[..rows]), sums);
            } else {
                for (column, sums) in columns.iter().zip(sums.chunks_exact_mut(stride)) {
                    add_rows(f, left, stride, [&column[..rows]], sums);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Stream;

    fn random(rng: &mut Stream, rows: usize, width: usize) -> FactorMatrix {
        let values: Vec<f64> = (0..rows * width).map(|_| rng.uniform()).collect();
        FactorMatrix::packed(rows, width, &values).unwrap()
    }

    #[test]
    fn products_are_sums_in_order_whatever_the_tile_and_the_level() {
        let mut words = Stream::new([1, 2], 3, 4, 5);
        for (rows, cols, width) in [(32, 37, 50), (7, 16, 8), (1, 1, 1), (4, 130, 3), (15, 65, 17)] {
            let (left, right) = (random(&mut words, rows, width), random(&mut words, cols, width));
            let stride = left.stride;
            let weights: Vec<f64> = (0..rows * cols).map(|_| words.uniform()).collect();
            let sum = |start: f64, terms: &mut dyn Iterator<Item = (f64, f64)>| {
                terms.fold(start, |sum, (x, y)| x.mul_add(y, sum))
            };
            for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
                let mut rates = vec![0.0; rows * cols];
                Panels::new(&right).rates(level, left.padded(), stride, &mut rates);
                let (mut of_rows, mut of_columns) = (vec![1.0; rows * stride], vec![1.0; cols * stride]);
                over_columns(level, &weights, &right, &mut of_rows);
                over_rows(level, &weights, cols, left.padded(), stride, &mut of_columns);
                for r in 0..rows {
                    for v in 0..cols {
                        let expected = sum(0.0, &mut (0..width).map(|k| (left.row(r)[k], right.row(v)[k])));
                        assert_eq!(rates[r * cols + v], expected);
                    }
                    for k in 0..width {
                        let expected = sum(0.0, &mut (0..cols).map(|v| (weights[r * cols + v], right.row(v)[k])));
                        assert_eq!(of_rows[r * stride + k], expected);
                    }
                }
                for v in 0..cols {
                    for k in 0..width {
                        let expected = sum(1.0, &mut (0..rows).map(|r| (weights[r * cols + v], left.row(r)[k])));
                        assert_eq!(of_columns[v * stride + k], expected);
                    }
                }
            }
        }
    }

    #[test]
    fn sums_over_what_is_not_one_are_those_over_all_cells() {
        let mut words = Stream::new([1, 3], 3, 4, 5);
        for (rows, cols, width) in [(16, 37, 50), (7, 16, 8), (1, 1, 1), (4, 130, 3), (15, 65, 33), (3, 9, 72)] {
            let (left, right) = (random(&mut words, rows, width), random(&mut words, cols, width));
            let stride = left.stride;
            for share in [0.0, 0.1, 0.6, 1.0] {
                let mut weight = || if words.uniform() < share { 3.0 * words.uniform() } else { 1.0 };
                let mut weights: Vec<f64> = (0..rows * cols).map(|_| weight()).collect();
                weights[rows * cols / 2] = 0.0;
                let (mut dense, mut expected) = (vec![0.0; rows * stride], vec![0.0; cols * stride]);
                over_columns(Level::Baseline, &weights, &right, &mut dense);
                over_rows(Level::Baseline, &weights, cols, left.padded(), stride, &mut expected);
                let mut bits = vec![];
                for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
                    let mut excesses = Excesses::default();
                    let few = excesses.find(level, &weights, cols);
                    assert_eq!(few, share < 0.5 && cols > 1, "{cols} {share}");
                    if few {
                        let (mut all, mut of_rows) = (vec![0.0; stride], vec![0.0; rows * stride]);
                        let mut of_columns = vec![0.0; cols * stride];
                        excesses.over_columns(level, (&right, &right.sums()), &mut of_rows);
                        excesses.over_rows(level, left.padded(), &mut all, &mut of_columns);
                        of_columns
                            .chunks_mut(stride)
                            .for_each(|of| of.iter_mut().zip(&all).for_each(|(x, one)| *x += one));
                        for (found, expected) in of_rows.iter().zip(&dense).chain(of_columns.iter().zip(&expected)) {
                            assert!((found - expected).abs() < 1e-13 * cols as f64, "{found} {expected}");
                        }
                        bits.push((of_rows, of_columns));
                    }
                }
                assert!(bits.windows(2).all(|pair| pair[0] == pair[1]));
            }
        }
    }
}
