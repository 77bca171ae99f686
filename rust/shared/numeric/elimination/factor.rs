//! The numeric half of elimination: determinants and Pfaffians modulo an odd number below 2^56.
//!
//! In each front the columns are eliminated from the left. With L and W the parts found so far, an entry is finished by one
//! inner product,
//!
//!   a_ij - sum_t L_it W_jt,      symmetric:  W_jt = d_t L_jt       general:  W_jt = u_tj
//!                                skew:       (W_j1, W_j2) = (a_j2, -a_j1) / a_21 for each pivot block [[0, -a_21], [a_21, 0]]
//!
//! whose products are added in 128 bits and reduced once (Montgomery). The determinant is the product of the pivots, the
//! Pfaffian that of the entries a_12 = -a_21 of the pivot blocks. In the last front of general and skew matrices pivots are
//! searched for, so that singular leading blocks do no harm there; elsewhere a pivot that is not invertible ends the work.
//!
//! Source: P. Montgomery (1985), Modular multiplication without trial division; skew matrices: J. Bunch (1982), A note on the
//! stable decomposition of skew-symmetric matrices.

use super::matrix::{MatrixKind, PlannedMatrix, room};
use super::vectors;
use crate::Result;
use crate::monitor::Progress;
use crate::numeric::dispatch::level;
use crate::numeric::neighbors::{ShortPrime, multiplies_factors};
use crate::numeric::residue::{Modulus, Montgomery, inverse_modulo};

/// Products that may be added before the sum must be reduced: each is below 2^112, and 2^8 of them below 2^56 * 2^64.
const CHUNK: usize = 256;

impl PlannedMatrix {
    /// The determinant or Pfaffian modulo an odd number below 2^56; `None` if a pivot outside the last front is not
    /// invertible, which says nothing about the answer.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when told to stop, [`Error::TooLarge`] without memory.
    pub fn evaluate(&self, modulus: u64, progress: &Progress) -> Result<Option<u64>> {
        self.evaluate_at(0, modulus, progress)
    }

    /// The same at a value of the parameter below the modulus.
    ///
    /// # Errors
    /// As [`Self::evaluate`].
    pub fn evaluate_at(&self, parameter: u64, modulus: u64, progress: &Progress) -> Result<Option<u64>> {
        debug_assert!(modulus % 2 == 1 && modulus >> 56 == 0);
        let level = level();
        let by_vectors = match self.kind {
            MatrixKind::Symmetric => true,
            MatrixKind::General => !self.searches, // a search would begin again
            MatrixKind::Skew => false,
        };
        if by_vectors
            && multiplies_factors(level)
            && let Some(prime) = Modulus::new(modulus).ok().and_then(ShortPrime::new)
        {
            let found = vectors::determinant(self, parameter, (prime, level), progress)?;
            if found.is_some() || self.kind == MatrixKind::Symmetric {
                return Ok(found);
            }
        }
        let field = Montgomery::new(modulus);
        let mut work = Elimination::new(self, field, parameter)?;
        for s in 0..self.plan.supernodes.len() {
            if s % 64 == 0 {
                progress.check()?;
            }
            match work.supernode(s, progress)? {
                Outcome::Done => {}
                Outcome::Zero => return Ok(Some(0)),
                Outcome::Stuck => return Ok(None),
            }
        }
        Ok(Some(field.leave(work.value)))
    }
}

enum Outcome {
    Done,
    /// The value is zero.
    Zero,
    /// A pivot is not invertible.
    Stuck,
}

/// One elimination under way.
struct Elimination<'a> {
    matrix: &'a PlannedMatrix,
    field: Montgomery,
    parameter: u64,
    /// Blocks that wait for their parents.
    stack: Vec<u64>,
    front: Vec<u64>,
    left: Vec<u64>,
    right: Vec<u64>,
    value: u64,
}

impl<'a> Elimination<'a> {
    fn new(matrix: &'a PlannedMatrix, field: Montgomery, parameter: u64) -> Result<Self> {
        let parameter = field.enter(parameter);
        let scale = matrix.width() * matrix.width();
        let front = matrix.plan.front * matrix.plan.front * scale;
        let stack = room(matrix.plan.stack * scale)?;
        let [front, left, right] = [room(front)?, room(front)?, room(front)?];
        Ok(Self { matrix, field, parameter, stack, front, left, right, value: field.enter(1) })
    }

    /// Eliminates the columns of a supernode and leaves its block on the stack.
    fn supernode(&mut self, s: usize, progress: &Progress) -> Result<Outcome> {
        let (matrix, width) = (self.matrix, self.matrix.width());
        let supernode = &matrix.plan.supernodes[s];
        let (f, k) = (supernode.size() * width, supernode.columns * width);
        self.assemble(s, f);
        let mut dense = Dense {
            field: self.field,
            progress,
            f,
            k,
            a: &mut self.front,
            left: &mut self.left,
            right: &mut self.right,
            value: &mut self.value,
        };
        let search = s + 1 == matrix.plan.supernodes.len();
        let outcome = match matrix.kind {
            MatrixKind::Symmetric => dense.symmetric(search)?,
            MatrixKind::General => dense.general(search)?,
            MatrixKind::Skew => dense.skew(search)?,
        };
        if let Outcome::Done = outcome
            && f > k
        {
            dense.block(matrix.kind == MatrixKind::General, &mut self.stack)?;
        }
        Ok(outcome)
    }

    /// Fills the front of a supernode: the matrix's own entries and the blocks of its children.
    fn assemble(&mut self, s: usize, f: usize) {
        let (matrix, field, width) = (self.matrix, self.field, self.matrix.width());
        let supernode = &matrix.plan.supernodes[s];
        let (modulus, one) = (field.modulus(), field.enter(1));
        self.front.clear();
        self.front.resize(f * f, 0);
        let size = |value: i64| if value.unsigned_abs() == 1 { one } else { field.enter(value.unsigned_abs()) };
        for (i, j, value, slope) in matrix.entries_of(s) {
            let entry = &mut self.front[i as usize * f + j as usize];
            let mut put = |value: i64, x: u64| {
                *entry = if value < 0 { subtract(*entry, x, modulus) } else { add(*entry, x, modulus) };
            };
            put(value, size(value));
            if slope != 0 {
                put(slope, field.mul(size(slope), self.parameter));
            }
        }
        for &child in supernode.children.iter().rev() {
            let child = &matrix.plan.supernodes[child as usize];
            let size = child.rows.len() * width;
            let start = self.stack.len() - size * size;
            let place = |i: usize| child.relative[i / width] as usize * width + i % width;
            for i in 0..size {
                let row = &self.stack[start + i * size..][..size];
                let target = &mut self.front[place(i) * f..][..f];
                let end = if matrix.kind == MatrixKind::General { size } else { i + 1 };
                for (j, &x) in row[..end].iter().enumerate() {
                    let entry = &mut target[place(j)];
                    *entry = add(*entry, x, modulus);
                }
            }
            self.stack.truncate(start);
        }
    }
}

/// A dense front: `a` is f x f, `left` and `right` are f x k, all by rows.
struct Dense<'a> {
    field: Montgomery,
    progress: &'a Progress,
    f: usize,
    k: usize,
    a: &'a mut [u64],
    left: &'a mut Vec<u64>,
    right: &'a mut Vec<u64>,
    value: &'a mut u64,
}

impl Dense<'_> {
    fn prepare(&mut self) {
        for part in [&mut *self.left, &mut *self.right] {
            part.clear();
            part.resize(self.f * self.k, 0);
        }
    }

    /// `a_ij - sum over t < upto of left_it right_jt`.
    #[inline(always)]
    fn finished(&self, i: usize, j: usize, upto: usize) -> u64 {
        let (f, k) = (self.f, self.k);
        let sum = inner(&self.field, &self.left[i * k..][..upto], &self.right[j * k..][..upto]);
        subtract(self.a[i * f + j], sum, self.field.modulus())
    }

    fn inverse(&self, pivot: u64) -> Option<u64> {
        let inverse = inverse_modulo(self.field.leave(pivot), self.field.modulus())?;
        Some(self.field.enter(inverse))
    }

    fn multiply_value(&mut self, factor: u64) {
        *self.value = self.field.mul(*self.value, factor);
    }

    fn symmetric(&mut self, search: bool) -> Result<Outcome> {
        self.prepare();
        let (f, k) = (self.f, self.k);
        for j in 0..k {
            self.progress.check()?;
            let pivot = self.finished(j, j, j);
            if pivot == 0 && search && j + 1 == f {
                return Ok(Outcome::Zero);
            }
            let Some(inverse) = self.inverse(pivot) else { return Ok(Outcome::Stuck) };
            self.multiply_value(pivot);
            for i in j + 1..f {
                let x = self.finished(i, j, j);
                self.right[i * k + j] = x;
                self.left[i * k + j] = self.field.mul(x, inverse);
            }
        }
        Ok(Outcome::Done)
    }

    fn general(&mut self, search: bool) -> Result<Outcome> {
        self.prepare();
        let (f, k) = (self.f, self.k);
        for j in 0..k {
            self.progress.check()?;
            let mut pivot = self.finished(j, j, j);
            if pivot == 0 && search {
                // The column is brought up to date and a row with an invertible entry changes places with row j.
                let Some((i, x)) = (j + 1..f).map(|i| (i, self.finished(i, j, j))).find(|&(_, x)| x != 0) else {
                    return Ok(Outcome::Zero);
                };
                (0..f).for_each(|t| self.a.swap(i * f + t, j * f + t));
                (0..k).for_each(|t| self.left.swap(i * k + t, j * k + t));
                self.multiply_value(self.field.enter(self.field.modulus() - 1));
                pivot = x;
            }
            let Some(inverse) = self.inverse(pivot) else { return Ok(Outcome::Stuck) };
            self.multiply_value(pivot);
            for i in j + 1..f {
                let (down, across) = (self.finished(i, j, j), self.finished(j, i, j));
                self.left[i * k + j] = self.field.mul(down, inverse);
                self.right[i * k + j] = across;
            }
        }
        Ok(Outcome::Done)
    }

    fn skew(&mut self, search: bool) -> Result<Outcome> {
        self.prepare();
        let (f, k, modulus) = (self.f, self.k, self.field.modulus());
        for j in (0..k).step_by(2) {
            self.progress.check()?;
            let mut pivot = self.finished(j + 1, j, j);
            if pivot == 0 && search {
                let Some((i, x)) = (j + 2..f).map(|i| (i, self.finished(i, j, j))).find(|&(_, x)| x != 0) else {
                    return Ok(Outcome::Zero);
                };
                self.exchange(j + 1, i);
                self.multiply_value(self.field.enter(modulus - 1));
                pivot = x;
            }
            let Some(inverse) = self.inverse(pivot) else { return Ok(Outcome::Stuck) };
            self.multiply_value(subtract(0, pivot, modulus));
            for i in j + 2..f {
                let (first, second) = (self.finished(i, j, j), self.finished(i, j + 1, j));
                (self.left[i * k + j], self.left[i * k + j + 1]) = (first, second);
                // S = A + (-a_i1 a_j2 + a_i2 a_j1) / a_12 with a_12 = -a_21.
                self.right[i * k + j] = subtract(0, self.field.mul(second, inverse), modulus);
                self.right[i * k + j + 1] = self.field.mul(first, inverse);
            }
        }
        Ok(Outcome::Done)
    }

    /// Exchanges rows and columns `p < q` of a skew matrix kept below its diagonal.
    fn exchange(&mut self, p: usize, q: usize) {
        let (f, k, modulus) = (self.f, self.k, self.field.modulus());
        (0..p).for_each(|t| self.a.swap(p * f + t, q * f + t));
        for t in p + 1..q {
            // (t, p) and (q, t) lie on different sides of the diagonal once their names are exchanged.
            let (below, right) = (self.a[t * f + p], self.a[q * f + t]);
            self.a[t * f + p] = subtract(0, right, modulus);
            self.a[q * f + t] = subtract(0, below, modulus);
        }
        self.a[q * f + p] = subtract(0, self.a[q * f + p], modulus);
        (q + 1..f).for_each(|t| self.a.swap(t * f + p, t * f + q));
        for t in 0..k {
            self.left.swap(p * k + t, q * k + t);
            self.right.swap(p * k + t, q * k + t);
        }
    }

    /// Pushes what is left: the block of the rows behind.
    fn block(&self, general: bool, stack: &mut Vec<u64>) -> Result<()> {
        let (f, k) = (self.f, self.k);
        for i in k..f {
            self.progress.check()?;
            let end = if general { f } else { i + 1 };
            let mut j = k;
            while j + 1 < end {
                let (first, second) = self.finished_pair(i, j);
                stack.extend([first, second]);
                j += 2;
            }
            stack.extend((j..end).map(|j| self.finished(i, j, k)));
            stack.extend(std::iter::repeat_n(0, f - end));
        }
        Ok(())
    }

    /// Two neighboring entries of the block, whose products share the row's factors.
    #[inline(always)]
    fn finished_pair(&self, i: usize, j: usize) -> (u64, u64) {
        let (f, k, modulus) = (self.f, self.k, self.field.modulus());
        if k > CHUNK {
            return (self.finished(i, j, k), self.finished(i, j + 1, k));
        }
        let row = &self.left[i * k..][..k];
        let (first, second) = (&self.right[j * k..][..k], &self.right[(j + 1) * k..][..k]);
        let (mut x, mut y) = (0u128, 0u128);
        for t in 0..k {
            x += u128::from(row[t]) * u128::from(first[t]);
            y += u128::from(row[t]) * u128::from(second[t]);
        }
        let (x, y) = (self.field.reduce(x), self.field.reduce(y));
        (subtract(self.a[i * f + j], x, modulus), subtract(self.a[i * f + j + 1], y, modulus))
    }
}

/// The inner product of two vectors of forms.
#[inline(always)]
fn inner(field: &Montgomery, a: &[u64], b: &[u64]) -> u64 {
    let mut total = 0;
    for (a, b) in a.chunks(CHUNK).zip(b.chunks(CHUNK)) {
        let sum = a.iter().zip(b).fold(0u128, |sum, (&x, &y)| sum + u128::from(x) * u128::from(y));
        total = add(total, field.reduce(sum), field.modulus());
    }
    total
}

#[inline(always)]
fn add(a: u64, b: u64, modulus: u64) -> u64 {
    let sum = a + b;
    if sum >= modulus { sum - modulus } else { sum }
}

#[inline(always)]
fn subtract(a: u64, b: u64, modulus: u64) -> u64 {
    if a >= b { a - b } else { a + (modulus - b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PRIME: u64 = (1 << 55) - 55;

    /// The determinant by the textbook: first column, all minors.
    fn determinant(a: &[Vec<i128>]) -> i128 {
        (0..a.len()).fold(i128::from(a.is_empty()), |sum, i| {
            let minor: Vec<Vec<i128>> =
                a.iter().enumerate().filter(|&(r, _)| r != i).map(|(_, row)| row[1..].to_vec()).collect();
            let term = if a[i][0] == 0 { 0 } else { a[i][0] * determinant(&minor) };
            if i % 2 == 0 { sum + term } else { sum - term }
        })
    }

    /// The Pfaffian by the textbook: all partners of the first row.
    fn pfaffian(a: &[Vec<i128>]) -> i128 {
        (1..a.len()).fold(i128::from(a.is_empty()), |sum, j| {
            let kept: Vec<usize> = (1..a.len()).filter(|&t| t != j).collect();
            let rest: Vec<Vec<i128>> = kept.iter().map(|&r| kept.iter().map(|&c| a[r][c]).collect()).collect();
            let term = if a[0][j] == 0 { 0 } else { a[0][j] * pfaffian(&rest) };
            if j % 2 == 1 { sum + term } else { sum - term }
        })
    }

    fn residue(x: i128) -> u64 {
        x.rem_euclid(i128::from(PRIME)) as u64
    }

    fn evaluate(kind: MatrixKind, nodes: usize, entries: &[(u32, u32, i64)], last: &[bool]) -> Option<u64> {
        let progress = Progress::default();
        PlannedMatrix::new(kind, nodes, entries, last, &progress).unwrap().evaluate(PRIME, &progress).unwrap()
    }

    proptest! {
        #[test]
        fn determinants_and_pfaffians_are_those_of_the_textbook(
            n in 1usize..7,
            values in prop::collection::vec(-3i64..4, 49),
            tail: u8,
            all: bool,
        ) {
            let last: Vec<bool> = (0..n).map(|v| all || tail >> v & 1 == 1).collect();
            let value = |i: usize, j: usize| if (i + 2 * j) % 3 == 1 { 0 } else { values[7 * i + j] };
            let places: Vec<(usize, usize)> = (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).collect();
            let entry = |&(i, j): &(usize, usize)| (i as u32, j as u32, value(i, j));
            let square: Vec<Vec<i128>> = (0..n).map(|i| (0..n).map(|j| value(i, j).into()).collect()).collect();
            let general: Vec<_> = places.iter().map(entry).collect();
            let found = evaluate(MatrixKind::General, n, &general, &last);
            prop_assert!(found == Some(residue(determinant(&square))) || (!all && found.is_none()));
            let lower: Vec<_> = places.iter().filter(|(i, j)| i >= j).map(entry).collect();
            let mirrored: Vec<Vec<i128>> =
                (0..n).map(|i| (0..n).map(|j| value(i.max(j), i.min(j)).into()).collect()).collect();
            let found = evaluate(MatrixKind::Symmetric, n, &lower, &last);
            prop_assert!(found == Some(residue(determinant(&mirrored))) || found.is_none());
            let pairs = n / 2 * 2;
            let upper: Vec<_> = places.iter().filter(|&&(i, j)| i < j && j < pairs).map(entry).collect();
            let skew: Vec<Vec<i128>> = (0..pairs)
                .map(|i| (0..pairs).map(|j| if i < j { value(i, j) } else { -value(j, i) * i64::from(i != j) }.into()).collect())
                .collect();
            let found = evaluate(MatrixKind::Skew, pairs / 2, &upper, &last[..pairs / 2]);
            prop_assert!(found == Some(residue(pfaffian(&skew))) || (!all && found.is_none()), "{found:?} {skew:?}");
        }
    }

    #[test]
    fn long_sums_are_reduced_in_time() {
        // The complete graph on 601 vertices: 601^599 spanning trees, all in one front.
        let n = 600u32;
        let entries: Vec<_> =
            (0..n).flat_map(|i| (0..=i).map(move |j| (i, j, if i == j { i64::from(n) } else { -1 }))).collect();
        let expected = crate::numeric::residue::primes(1).unwrap()[0].pow(601, 599);
        assert_eq!(evaluate(MatrixKind::Symmetric, 600, &entries, &[false; 600]), Some(expected));
        let all: Vec<_> = entries
            .iter()
            .flat_map(|&(i, j, x)| if i == j { vec![(i, j, x)] } else { vec![(i, j, x), (j, i, x)] })
            .collect();
        assert_eq!(evaluate(MatrixKind::General, 600, &all, &[false; 600]), Some(expected));
    }
}
