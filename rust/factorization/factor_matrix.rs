//! The matrix of a factor: an index of a mode each row, a component each column.
//!
//! Entry (i, k) lies at i * stride + k, where the stride is the number of components rounded up to whole vectors. What pads a row
//! is zero and stays so: sums and products over padded rows need no end.

use super::split::LANES;
use crate::numeric::exact_sum::{self, LIMBS};
use crate::{Error, Result};

/// Rows whose numbers are added up in floating point; a table is split between two such blocks.
pub const ROWS: usize = 128;

/// Rows of components, each padded with zeros to a multiple of eight.
#[derive(Clone, Debug, PartialEq)]
pub struct FactorMatrix {
    /// Number of rows.
    pub rows: usize,
    /// Number of components.
    pub width: usize,
    /// Entries per row in memory.
    pub stride: usize,
    values: Vec<f64>,
}

impl FactorMatrix {
    /// All zeros.
    pub fn new(rows: usize, width: usize) -> Self {
        let stride = width.next_multiple_of(LANES);
        Self { rows, width, stride, values: vec![0.0; rows * stride] }
    }

    /// From entries without padding.
    ///
    /// # Errors
    /// [`Error::Shape`] where there are not `rows * width` of them.
    pub fn packed(rows: usize, width: usize, values: &[f64]) -> Result<Self> {
        Error::require_shape("factors", [rows, width], [values.len()])?;
        Ok(Self { rows, width, stride: width.next_multiple_of(LANES), values: padded(values, width) })
    }

    /// The entries without padding.
    pub fn unpadded(&self) -> Vec<f64> {
        unpadded(&self.values, self.width)
    }

    /// Writes the entries without padding, row by row.
    pub fn unpad_into(&self, values: &mut [f64]) {
        for (row, values) in values.chunks_exact_mut(self.width.max(1)).enumerate() {
            values.copy_from_slice(&self.row(row)[..self.width]);
        }
    }

    /// A padded row.
    #[inline(always)]
    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.stride..(row + 1) * self.stride]
    }

    /// A padded row; what lies beyond the width must stay zero.
    #[inline(always)]
    pub fn row_mut(&mut self, row: usize) -> &mut [f64] {
        &mut self.values[row * self.stride..(row + 1) * self.stride]
    }

    /// All entries with their padding.
    pub fn padded(&self) -> &[f64] {
        &self.values
    }

    /// All entries with their padding, to be written row by row.
    pub fn padded_mut(&mut self) -> &mut [f64] {
        &mut self.values
    }

    /// Sets all entries to one.
    pub fn set_ones(&mut self) {
        (0..self.rows).for_each(|row| self.values[row * self.stride..][..self.width].fill(1.0));
    }

    /// Sums over rows, padded: those of blocks of [`ROWS`] in floating point, and the sums of these exactly, so that parts which
    /// begin at a block have the sums of the whole in [`FactorMatrix::exact_sums`].
    pub fn sums(&self) -> Vec<f64> {
        if self.rows <= ROWS {
            return self.block_sums(&self.values);
        }
        let mut sums: Vec<_> = self.exact_sums().chunks_exact(LIMBS).map(exact_sum::value).collect();
        sums.resize(self.stride, 0.0);
        sums
    }

    /// The same without padding and unrounded, of [`LIMBS`] numbers each.
    pub fn exact_sums(&self) -> Vec<i64> {
        let mut sums = vec![0; self.width * LIMBS];
        for block in self.values.chunks((ROWS * self.stride).max(1)) {
            let of_block = self.block_sums(block);
            sums.chunks_exact_mut(LIMBS).zip(of_block).for_each(|(sum, x)| exact_sum::add(sum, x));
        }
        sums
    }

    fn block_sums(&self, block: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.stride];
        for row in block.chunks_exact(self.stride.max(1)) {
            sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        }
        sums
    }

    /// Divides each component by its sum over the rows; one that has none, by underflow, goes to the first row.
    pub fn normalize(&mut self) {
        let mut sums = self.sums();
        for (sum, entry) in sums[..self.width].iter_mut().zip(&mut self.values).filter(|(sum, _)| **sum == 0.0) {
            (*sum, *entry) = (1.0, 1.0);
        }
        sums[self.width..].fill(1.0);
        for row in self.values.chunks_exact_mut(self.stride.max(1)) {
            row.iter_mut().zip(&sums).for_each(|(x, sum)| *x /= sum);
        }
    }

    /// Components by rows, one component after the other.
    pub fn transposed(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.width * self.rows];
        for row in 0..self.rows {
            for (k, &x) in self.row(row)[..self.width].iter().enumerate() {
                out[k * self.rows + row] = x;
            }
        }
        out
    }
}

/// The sums over rows of all factors, those of the first being given for the rows of all shards.
pub fn sums_of_shards(factors: &[FactorMatrix], first: &[f64]) -> Vec<Vec<f64>> {
    let mut sums: Vec<_> = factors.iter().map(FactorMatrix::sums).collect();
    sums[0].copy_from_slice(first);
    sums
}

/// Rows of `width` entries with the padding of a matrix.
pub fn padded<T: Copy + Default>(entries: &[T], width: usize) -> Vec<T> {
    let (width, stride) = (width.max(1), width.next_multiple_of(LANES));
    let mut found = vec![T::default(); entries.len() / width * stride];
    for (found, entries) in found.chunks_exact_mut(stride.max(1)).zip(entries.chunks_exact(width)) {
        found[..width].copy_from_slice(entries);
    }
    found
}

/// The same without their padding.
pub fn unpadded<T: Copy>(padded: &[T], width: usize) -> Vec<T> {
    padded.chunks_exact(width.next_multiple_of(LANES).max(1)).flat_map(|row| &row[..width]).copied().collect()
}

/// The dot product of two padded rows, summed in eight lanes.
#[inline(always)]
pub fn dot(left: &[f64], right: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    for (a, b) in left.as_chunks::<LANES>().0.iter().zip(right.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum()
}
