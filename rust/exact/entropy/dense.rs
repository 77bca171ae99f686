//! Small dense matrices over doubles and double-doubles: products, a triangular factor, singular values.
//!
//! Singular values come from one-sided Jacobi rotations, which find the small ones of a graded matrix
//! to a relative accuracy; that is what decides how many digits a truncation keeps.
//!
//! Sources: M. Hestenes (1958), Inversion of matrices by biorthogonalization and related results, J. SIAM 6; J. Demmel,
//! K. Veselic (1992), Jacobi's method is more accurate than QR, SIAM J. Matrix Anal. Appl. 13.

use crate::Result;
use crate::monitor::Progress;
use crate::numeric::dispatch::{at_level, level};
use crate::numeric::double_double::DoubleDouble;
use num_bigint::BigInt;
use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

/// A real number of some precision.
pub trait Real:
    Copy
    + Debug
    + Default
    + Send
    + Sync
    + PartialOrd
    + From<f64>
    + Add<Output = Self>
    + AddAssign
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// The relative error of an operation.
    const EPSILON: f64;
    /// Bits that hold every number of size at most one to that error.
    const BITS: u32;
    /// The square root.
    fn root(self) -> Self;
    /// The nearest double.
    fn double(self) -> f64;
    /// The number times `2^bits`, rounded.
    fn scaled(self, bits: u32) -> BigInt;
}

/// A double times `2^bits`, cut.
fn scaled_double(x: f64, bits: u32) -> BigInt {
    let raw = x.abs().to_bits();
    let (fraction, exponent) = (raw & ((1 << 52) - 1), (raw >> 52) as i64);
    if exponent == 0 {
        return BigInt::ZERO;
    }
    let (mantissa, shift) = (BigInt::from(fraction | (1 << 52)), exponent - 1075 + i64::from(bits));
    let size = if shift >= 0 { mantissa << shift } else { mantissa >> -shift };
    if x < 0.0 { -size } else { size }
}

impl Real for f64 {
    const EPSILON: f64 = f64::EPSILON;
    const BITS: u32 = 60;

    #[inline(always)]
    fn root(self) -> f64 {
        self.max(0.0).sqrt()
    }

    #[inline(always)]
    fn double(self) -> f64 {
        self
    }

    fn scaled(self, bits: u32) -> BigInt {
        scaled_double(self, bits)
    }
}

impl Real for DoubleDouble {
    const EPSILON: f64 = 5e-32;
    const BITS: u32 = 112;

    #[inline(always)]
    fn root(self) -> Self {
        self.sqrt()
    }

    #[inline(always)]
    fn double(self) -> f64 {
        self.hi
    }

    fn scaled(self, bits: u32) -> BigInt {
        scaled_double(self.hi, bits) + scaled_double(self.lo, bits)
    }
}

/// A matrix, row after row.
#[derive(Clone, Debug, PartialEq)]
pub struct DenseMatrix<T> {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// The entries.
    pub data: Vec<T>,
}

/// `c[j] += a * b[j]`.
#[inline(always)]
fn accumulate<T: Real>(c: &mut [T], a: T, b: &[T]) {
    for (c, &b) in c.iter_mut().zip(b) {
        *c += a * b;
    }
}

/// The scalar product, in eight interleaved sums.
#[inline(always)]
fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    let mut sums = [T::default(); 8];
    let (left, right) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest = left.remainder().iter().zip(right.remainder()).fold(T::default(), |sum, (&x, &y)| sum + x * y);
    for (x, y) in left.zip(right) {
        for i in 0..8 {
            sums[i] += x[i] * y[i];
        }
    }
    sums.into_iter().fold(rest, |sum, x| sum + x)
}

#[inline(always)]
fn multiply<T: Real>(a: &DenseMatrix<T>, b: &DenseMatrix<T>, c: &mut DenseMatrix<T>) {
    for (row, out) in a.data.chunks_exact(a.cols).zip(c.data.chunks_exact_mut(b.cols)) {
        for (&x, line) in row.iter().zip(b.data.chunks_exact(b.cols)) {
            if x != T::default() {
                accumulate(out, x, line);
            }
        }
    }
}

/// Reflections from the right that leave nothing above the diagonal.
#[inline(always)]
fn reflect<T: Real>(DenseMatrix { rows, cols, data }: &mut DenseMatrix<T>, progress: &Progress) -> Result<()> {
    for i in 0..(*rows).min(*cols) {
        progress.check()?;
        let (above, below) = data.split_at_mut((i + 1) * *cols);
        let mirror = &mut above[i * *cols + i..];
        let size = dot(mirror, mirror).root();
        if size == T::default() {
            continue;
        }
        let diagonal = if mirror[0] < T::default() { size } else { -size };
        mirror[0] += -diagonal;
        let half =
            size * (size + if mirror[0] < T::default() { -(mirror[0] + diagonal) } else { mirror[0] + diagonal });
        for row in below.chunks_exact_mut(*cols) {
            let factor = -(dot(&row[i..], mirror) / half);
            accumulate(&mut row[i..], factor, mirror);
        }
        mirror.fill(T::default());
        mirror[0] = diagonal;
    }
    Ok(())
}

/// Rotates pairs of rows of the first matrix until all are orthogonal, and the second along with it.
#[inline(always)]
fn rotate<T: Real>(a: &mut DenseMatrix<T>, b: &mut DenseMatrix<T>, progress: &Progress) -> Result<()> {
    let tolerance = T::from(T::EPSILON * T::EPSILON * 64.0);
    for _ in 0..40 {
        let mut turned = false;
        for p in 0..a.rows {
            progress.check()?;
            for q in p + 1..a.rows {
                let (x, y) = two(a, p, q);
                let (xx, yy, xy) = (dot(x, x), dot(y, y), dot(x, y));
                if xy * xy <= tolerance * (xx * yy) {
                    continue;
                }
                turned = true;
                let zeta = (yy - xx) / (xy + xy);
                let size = (T::from(1.0) + zeta * zeta).root();
                let tangent = T::from(1.0) / if zeta < T::default() { zeta - size } else { zeta + size };
                let cosine = T::from(1.0) / (T::from(1.0) + tangent * tangent).root();
                let sine = cosine * tangent;
                turn(x, y, cosine, sine);
                let (x, y) = two(b, p, q);
                turn(x, y, cosine, sine);
            }
        }
        if !turned {
            break;
        }
    }
    Ok(())
}

#[inline(always)]
fn two<T>(matrix: &mut DenseMatrix<T>, p: usize, q: usize) -> (&mut [T], &mut [T]) {
    let cols = matrix.cols;
    let (head, tail) = matrix.data.split_at_mut(q * cols);
    (&mut head[p * cols..(p + 1) * cols], &mut tail[..cols])
}

#[inline(always)]
fn turn<T: Real>(x: &mut [T], y: &mut [T], cosine: T, sine: T) {
    for (x, y) in x.iter_mut().zip(y) {
        (*x, *y) = (cosine * *x - sine * *y, sine * *x + cosine * *y);
    }
}

impl<T: Clone + Default> DenseMatrix<T> {
    /// A matrix of zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { rows, cols, data: vec![T::default(); rows * cols] }
    }

    /// The transpose.
    pub fn transposed(&self) -> Self {
        let mut matrix = Self::zeros(self.cols, self.rows);
        for (i, row) in self.data.chunks_exact(self.cols.max(1)).enumerate() {
            for (j, x) in row.iter().enumerate() {
                matrix.data[j * self.rows + i] = x.clone();
            }
        }
        matrix
    }
}

impl<T: Real> DenseMatrix<T> {
    /// The matrix with ones on its diagonal.
    pub fn identity(rows: usize, cols: usize) -> Self {
        let mut matrix = Self::zeros(rows, cols);
        (0..rows.min(cols)).for_each(|i| matrix.data[i * cols + i] = T::from(1.0));
        matrix
    }

    /// The product.
    pub fn times(&self, other: &Self) -> Self {
        let mut product = Self::zeros(self.rows, other.cols);
        if !product.data.is_empty() && self.cols > 0 {
            at_level!(level(), multiply(self, other, &mut product));
        }
        product
    }

    /// Adds a multiple of another matrix.
    pub fn add(&mut self, factor: f64, other: &Self) {
        let factor = T::from(factor);
        self.data.iter_mut().zip(&other.data).for_each(|(x, &y)| *x += factor * y);
    }

    /// Multiplies all entries.
    pub fn scale(&mut self, factor: T) {
        self.data.iter_mut().for_each(|x| *x = *x * factor);
    }

    /// The sum of squares.
    pub fn squares(&self) -> T {
        dot(&self.data, &self.data)
    }

    /// The lower triangular square matrix with the same product with its transpose.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`].
    pub fn triangle(mut self, progress: &Progress) -> Result<Self> {
        at_level!(level(), reflect(&mut self, progress))?;
        let mut factor = Self::zeros(self.rows, self.rows);
        for i in 0..self.rows {
            let held = (i + 1).min(self.cols);
            factor.data[i * self.rows..i * self.rows + held]
                .copy_from_slice(&self.data[i * self.cols..i * self.cols + held]);
        }
        Ok(factor)
    }

    /// Singular values of the matrix, falling, with the rows of `U^T * self = S V^T` and the same rotation of `other`.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`].
    pub fn rotated(mut self, mut other: Self, progress: &Progress) -> Result<(Vec<T>, Self, Self)> {
        at_level!(level(), rotate(&mut self, &mut other, progress))?;
        let values: Vec<T> = self.data.chunks_exact(self.cols).map(|row| dot(row, row).root()).collect();
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&i, &j| values[j].partial_cmp(&values[i]).unwrap_or(std::cmp::Ordering::Equal));
        let pick = |matrix: &Self| Self {
            data: order.iter().flat_map(|&i| &matrix.data[i * matrix.cols..(i + 1) * matrix.cols]).copied().collect(),
            ..*matrix
        };
        Ok((order.iter().map(|&i| values[i]).collect(), pick(&self), pick(&other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample<T: Real>(rows: usize, cols: usize) -> DenseMatrix<T> {
        let entry =
            |i: usize| T::from(((i * 37 + 11) % 101) as f64 / 50.0 - 1.0) * T::from(0.5f64.powi((i % cols) as i32));
        DenseMatrix { rows, cols, data: (0..rows * cols).map(entry).collect() }
    }

    fn distance<T: Real>(a: &DenseMatrix<T>, b: &DenseMatrix<T>) -> f64 {
        let mut rest = a.clone();
        rest.add(-1.0, b);
        rest.squares().root().double()
    }

    fn factors_are_right<T: Real>(tolerance: f64) {
        let a: DenseMatrix<T> = sample(9, 23);
        let progress = Progress::default();
        let triangle = a.clone().triangle(&progress).unwrap();
        assert!((0..9).all(|i| (i + 1..9).all(|j| triangle.data[i * 9 + j] == T::default())));
        assert!(distance(&triangle.times(&triangle.transposed()), &a.times(&a.transposed())) < tolerance);
        let tall: DenseMatrix<T> = sample(23, 9);
        assert!({
            let triangle = tall.clone().triangle(&progress).unwrap();
            distance(&triangle.times(&triangle.transposed()), &tall.times(&tall.transposed())) < tolerance
        });
        let (values, turned, rotation) = a.clone().rotated(DenseMatrix::identity(9, 9), &progress).unwrap();
        assert!(values.windows(2).all(|pair| pair[0] >= pair[1]));
        assert!(distance(&rotation.times(&a), &turned) < tolerance);
        let gram = turned.times(&turned.transposed());
        for i in 0..9 {
            for j in 0..9 {
                let wanted = if i == j { values[i] * values[i] } else { T::default() };
                assert!((gram.data[i * 9 + j] - wanted).double().abs() < tolerance);
            }
        }
    }

    #[test]
    fn triangles_and_singular_values_are_right_at_both_precisions() {
        factors_are_right::<f64>(1e-13);
        factors_are_right::<DoubleDouble>(1e-28);
    }

    #[test]
    fn scaled_integers_hold_both_parts() {
        let third = DoubleDouble::from(1.0) / DoubleDouble::from(3.0);
        let found: BigInt = third.scaled(100) * 3 - (BigInt::from(1) << 100u32);
        assert!(found.magnitude() < &8u32.into());
        assert_eq!((-0.375f64).scaled(3), BigInt::from(-3));
        assert_eq!(0.0f64.scaled(3), BigInt::ZERO);
    }
}
