//! Determinants modulo a prime below 2^52, a register of neighboring columns at a time.
//!
//! The upper triangle of a front is kept by rows, of a general matrix also that of its transpose. With U and V the rows of the
//! two found so far, V = U where the matrix is symmetric, and L_tj = V_tj / U_tt, rows are finished by
//!
//!   U_ji = a_ji - sum over t < j of L_tj U_ti,     V_ji = a_ij - sum over t < j of U_tj L_ti,     i >= j,
//!
//! a few rows and two registers of columns at a time: the first factors stand in every lane, the second side by side. Products are
//! summed by their halves ([`Neighbors::multiply_add`]) and reduced once. What is computed below the diagonal, where a register
//! reaches beyond it, is never used. Everything else is as in [`super::factor`]; the numbers are residues as they are.

use super::matrix::{MatrixKind, PlannedMatrix, room};
use crate::Result;
use crate::monitor::Progress;
use crate::numeric::dispatch::Level;
use crate::numeric::neighbors::{self, NeighborKernel, Neighbors, PRODUCTS, ShortPrime, TILE};
use crate::numeric::residue::inverse_modulo;
use std::ops::Range;

/// Rows that are finished together: with two registers of columns their sums fill two thirds of 32 registers.
const ROWS: usize = 4;
/// Rows that are brought up to date by all before them at once, and then by one another: two of the blocks above.
const PANEL: usize = 8;

/// The determinant, or `None` if a pivot is zero that is not the last of all; see [`PlannedMatrix::evaluate_at`]. No pivots are
/// searched for.
///
/// # Errors
/// As there.
pub fn determinant(
    matrix: &PlannedMatrix,
    parameter: u64,
    (prime, level): (ShortPrime, Level),
    progress: &Progress,
) -> Result<Option<u64>> {
    let plan = matrix.plan();
    let sides = if matrix.kind == MatrixKind::Symmetric { 1 } else { 2 };
    let mut blocks: Vec<u64> = room(sides * plan.stack)?;
    let mut front: Vec<u64> = room(sides * plan.front * width(plan.front))?;
    let mut left: Vec<u64> = room(plan.front * width(plan.front))?;
    let (mut value, modulus) = (1, prime.value());
    for (s, supernode) in plan.supernodes.iter().enumerate() {
        if s % 64 == 0 {
            progress.check()?;
        }
        let (f, k) = (supernode.size(), supernode.columns);
        let wide = width(f);
        front.clear();
        front.resize(sides * f * wide, 0);
        for (i, j, entry, slope) in matrix.entries_of(s) {
            // What lies below the diagonal is that of the transpose, of a symmetric matrix its own.
            let side = if i > j { sides - 1 } else { 0 };
            let at = &mut front[(side * f + i.min(j) as usize) * wide + i.max(j) as usize];
            *at = sum(*at, entry.rem_euclid(modulus as i64) as u64, modulus);
            *at = sum(*at, prime.mul(slope.rem_euclid(modulus as i64) as u64, parameter), modulus);
        }
        for (number, &child) in supernode.children.iter().rev().enumerate() {
            if number % 1024 == 1023 {
                front.iter_mut().for_each(|x| *x = prime.fold(*x)); // sums of so many do not overflow
            }
            let relative = &plan.supernodes[child as usize].relative;
            let start = blocks.len() - sides * relative.len() * (relative.len() + 1) / 2;
            let mut block = &blocks[start..];
            for side in front.chunks_exact_mut(f * wide) {
                for (i, &row) in relative.iter().enumerate() {
                    let (entries, rest) = block.split_at(relative.len() - i);
                    let target = &mut side[row as usize * wide..][..wide];
                    for (&x, &column) in entries.iter().zip(&relative[i..]) {
                        target[column as usize] += x;
                    }
                    block = rest;
                }
            }
            blocks.truncate(start);
        }
        left.clear();
        left.resize(k * wide, 0);
        let mut rows = Rows { front: &mut front, left: &mut left, f, wide, sides };
        for start in (0..k).step_by(PANEL) {
            if f > 256 {
                progress.check()?;
            }
            let panel = start..k.min(start + PANEL);
            let eliminate = Eliminate { rows: rows.again(), panel: panel.clone(), prime, value: &mut value };
            let done = neighbors::run(level, prime, eliminate);
            if done < panel.len() {
                return Ok((s + 1 == plan.supernodes.len() && start + done + 1 == f).then_some(0));
            }
        }
        for start in (k..f).step_by(64) {
            if f > 256 {
                progress.check()?;
            }
            let finish = Finish { rows: rows.again(), block: start..f.min(start + 64), terms: 0..k };
            neighbors::run(level, prime, finish);
        }
        for side in front.chunks_exact(f * wide) {
            (k..f).for_each(|i| blocks.extend_from_slice(&side[i * wide..][i..f]));
        }
    }
    Ok(Some(value))
}

/// Words of a row: whole registers of every level.
fn width(columns: usize) -> usize {
    columns.next_multiple_of(TILE)
}

#[inline(always)]
fn sum(a: u64, b: u64, modulus: u64) -> u64 {
    let sum = a + b;
    sum.min(sum.wrapping_sub(modulus))
}

/// A front: the rows of one or two sides, of which those eliminated hold U and V, and those of L.
struct Rows<'a> {
    front: &'a mut [u64],
    left: &'a mut [u64],
    f: usize,
    wide: usize,
    sides: usize,
}

impl Rows<'_> {
    fn again(&mut self) -> Rows<'_> {
        Rows { front: self.front, left: self.left, ..*self }
    }

    /// Brings rows up to date by the rows of these numbers, all before them.
    #[inline(always)]
    fn update<A: Neighbors>(&mut self, a: A, rows: Range<usize>, terms: Range<usize>) {
        assert!(terms.end <= rows.start && rows.end <= self.f && self.f <= self.wide);
        assert!(self.wide.is_multiple_of(TILE) && self.front.len() == self.sides * self.f * self.wide);
        assert!(self.left.len() >= terms.end * self.wide);
        let mut first = terms.start;
        // Once at least: what was added up is brought below the prime here.
        loop {
            let some = first..terms.end.min(first + PRODUCTS);
            // Columns outside: what a register of columns needs of U stays in the nearest cache for all rows.
            let mut column = rows.start - rows.start % TILE;
            while column < self.wide {
                let two = column + 2 * A::LANES <= self.wide;
                let last = rows.end.min(column + if two { 2 * A::LANES } else { A::LANES }); // rows that reach these columns
                for side in 0..self.sides {
                    let mut row = rows.start;
                    // SAFETY: rows and columns are within the front, terms within L, as was asserted.
                    unsafe {
                        while row + ROWS <= last {
                            if two {
                                self.tile::<A, ROWS, 2>(a, (side, row), column, &some)
                            } else {
                                self.tile::<A, ROWS, 1>(a, (side, row), column, &some)
                            }
                            row += ROWS;
                        }
                        while row < last {
                            if two {
                                self.tile::<A, 1, 2>(a, (side, row), column, &some)
                            } else {
                                self.tile::<A, 1, 1>(a, (side, row), column, &some)
                            }
                            row += 1;
                        }
                    }
                }
                column += if two { 2 * A::LANES } else { A::LANES };
            }
            first = some.end;
            if first == terms.end {
                break;
            }
        }
    }

    /// Brings R rows of a side and C registers of columns up to date.
    ///
    /// # Safety
    /// Rows and columns are within the front; terms are before the rows, and at most [`PRODUCTS`].
    #[inline(always)]
    unsafe fn tile<A: Neighbors, const R: usize, const C: usize>(
        &mut self,
        a: A,
        (side, row): (usize, usize),
        column: usize,
        terms: &Range<usize>,
    ) {
        let wide = self.wide;
        let mut sums = [[[a.zero(); 2]; C]; R];
        // SAFETY: the caller's.
        unsafe {
            let (front, left) = (self.front.as_mut_ptr(), self.left.as_ptr());
            let (factors, acrosses) = if side == 0 { (left, front.cast_const()) } else { (front.cast_const(), left) };
            for t in terms.clone() {
                let across: [_; C] = std::array::from_fn(|c| a.load(acrosses.add(t * wide + column + c * A::LANES)));
                for (r, sums) in sums.iter_mut().enumerate() {
                    let factor = a.splat(*factors.add(t * wide + row + r));
                    for (sum, &across) in sums.iter_mut().zip(&across) {
                        *sum = a.multiply_add(*sum, factor, across);
                    }
                }
            }
            for (r, sums) in sums.into_iter().enumerate() {
                for (c, sum) in sums.into_iter().enumerate() {
                    let at = front.add((side * self.f + row + r) * wide + column + c * A::LANES);
                    let minus = a.negate(a.canonical(a.reduce(sum)), u8::MAX);
                    a.store(at, a.canonical(a.fold(a.add(a.load(at), minus))));
                }
            }
        }
    }

    /// Divides a row by its pivot, of which the inverse is given, into L.
    #[inline(always)]
    fn divide<A: Neighbors>(&mut self, a: A, row: usize, inverse: u64) {
        let from = &self.front[((self.sides - 1) * self.f + row) * self.wide..][..self.wide];
        let to = &mut self.left[row * self.wide..][..self.wide];
        let inverse = a.splat(inverse);
        for column in (row - row % TILE..self.wide).step_by(A::LANES) {
            // SAFETY: the width is a multiple of the lanes.
            unsafe {
                let product = a.multiply_add([a.zero(); 2], a.load(from.as_ptr().add(column)), inverse);
                a.store(to.as_mut_ptr().add(column), a.canonical(a.reduce(product)));
            }
        }
    }
}

/// Eliminates the rows of a panel up to one whose pivot has no inverse; multiplies the value by the pivots.
struct Eliminate<'a> {
    rows: Rows<'a>,
    panel: Range<usize>,
    prime: ShortPrime,
    value: &'a mut u64,
}

impl NeighborKernel for Eliminate<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<A: Neighbors>(mut self, a: A) -> usize {
        if self.panel.start > 0 {
            self.rows.update(a, self.panel.clone(), 0..self.panel.start);
        }
        for row in self.panel.clone() {
            self.rows.update(a, row..row + 1, self.panel.start..row);
            let pivot = self.rows.front[row * self.rows.wide + row];
            *self.value = self.prime.mul(*self.value, pivot);
            let Some(inverse) = inverse_modulo(pivot, self.prime.value()) else { return row - self.panel.start };
            self.rows.divide(a, row, inverse);
        }
        self.panel.len()
    }
}

/// Brings rows that wait up to date.
struct Finish<'a> {
    rows: Rows<'a>,
    block: Range<usize>,
    terms: Range<usize>,
}

impl NeighborKernel for Finish<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Neighbors>(mut self, a: A) {
        self.rows.update(a, self.block, self.terms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::residue::{Modulus, Montgomery, short_primes};
    use proptest::prelude::*;

    const LEVELS: [Level; 3] = [Level::Baseline, Level::Avx2, Level::Avx512];

    /// The determinant of a dense matrix by the textbook, in Montgomery's form.
    fn dense(mut a: Vec<Vec<u64>>, modulus: u64) -> u64 {
        let field = Montgomery::new(modulus);
        a.iter_mut().flatten().for_each(|x| *x = field.enter(*x));
        let mut value = field.enter(1);
        for j in 0..a.len() {
            let Some(pivot) = (j..a.len()).find(|&i| a[i][j] != 0) else { return 0 };
            if pivot != j {
                a.swap(pivot, j);
                value = field.mul(value, field.enter(modulus - 1));
            }
            value = field.mul(value, a[j][j]);
            let inverse = field.enter(inverse_modulo(field.leave(a[j][j]), modulus).unwrap());
            let (above, below) = a.split_at_mut(j + 1);
            for row in below {
                let factor = field.mul(row[j], inverse);
                let times = field.mul(factor, field.enter(modulus - 1));
                row.iter_mut().zip(&above[j]).for_each(|(x, &y)| *x = field.sum(*x, field.mul(times, y)));
            }
        }
        field.leave(value)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn determinants_are_those_of_the_textbook_at_every_level(
            n in 1usize..70,
            density in 1u64..20,
            parameter in 0u64..1 << 51,
            general: bool,
            seed: u64,
        ) {
            let modulus = short_primes(3).unwrap()[2].value();
            let mut word = seed;
            let mut next = || {
                word = word.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                word >> 33
            };
            let (mut entries, mut slopes) = (vec![], vec![]);
            let mut full = vec![vec![0; n]; n];
            for i in 0..n as u32 {
                for j in 0..=i {
                    if i == j || next() % 20 < density {
                        for (i, j) in [(i, j), (j, i)].into_iter().take(if general && i != j { 2 } else { 1 }) {
                            let (value, slope) = (next() as i64 - (1 << 30), (next() % 5) as i64 - 2);
                            entries.push((i, j, value));
                            slopes.push(slope);
                            let x = i128::from(value) + i128::from(slope) * i128::from(parameter);
                            let x = x.rem_euclid(modulus.into()) as u64;
                            full[i as usize][j as usize] = x;
                            if !general {
                                full[j as usize][i as usize] = x;
                            }
                        }
                    }
                }
            }
            let kind = if general { MatrixKind::General } else { MatrixKind::Symmetric };
            let matrix = PlannedMatrix::linear(kind, n, &entries, &slopes, &vec![false; n]);
            let prime = ShortPrime::new(Modulus::new(modulus).unwrap()).unwrap();
            let expected = dense(full, modulus);
            for level in LEVELS {
                let found = determinant(&matrix, parameter, (prime, level), &Progress::default()).unwrap();
                prop_assert_eq!(found, Some(expected), "{:?}", level);
            }
        }
    }

    #[test]
    fn a_front_of_many_panels_and_pivots_that_are_zero() {
        // The complete graph on n + 1 vertices has (n + 1)^(n - 1) spanning trees; its whole Laplacian none.
        let modulus = short_primes(1).unwrap()[0];
        let prime = ShortPrime::new(modulus).unwrap();
        for n in [7u32, 8, 9, 300] {
            let entries = |degree: i64| -> Vec<_> {
                (0..n).flat_map(|i| (0..=i).map(move |j| (i, j, if i == j { degree } else { -1 }))).collect()
            };
            for level in LEVELS {
                let found = |entries: &[(u32, u32, i64)]| {
                    let matrix =
                        PlannedMatrix::new(MatrixKind::Symmetric, n as usize, entries, &vec![false; n as usize]);
                    determinant(&matrix, 0, (prime, level), &Progress::default()).unwrap()
                };
                assert_eq!(found(&entries(n.into())), Some(modulus.pow(u64::from(n) + 1, u64::from(n) - 1)));
                assert_eq!(found(&entries(i64::from(n) - 1)), Some(0));
                assert_eq!(found(&entries(0)[1..]), None, "the first pivot is zero");
            }
        }
    }

    #[test]
    fn a_front_of_many_children_does_not_overflow() {
        // 2 on the diagonal of each leaf, 4001 in the middle: 2^4000 (4001 - 4000 / 2).
        let modulus = short_primes(1).unwrap()[0];
        let leaves = (1..=4000u32).flat_map(|leaf| [(leaf, leaf, 2), (leaf, 0, -1)]);
        let entries: Vec<_> = std::iter::once((0, 0, 4001)).chain(leaves).collect();
        let matrix = PlannedMatrix::new(MatrixKind::Symmetric, 4001, &entries, &[false; 4001]);
        let expected = modulus.residue(modulus.mul(modulus.pow(2, 4000), 2001));
        for level in LEVELS {
            let at = (ShortPrime::new(modulus).unwrap(), level);
            assert_eq!(determinant(&matrix, 0, at, &Progress::default()).unwrap(), Some(expected));
        }
    }
}
