//! Determinants modulo a prime below 2^52, a register of neighboring columns at a time.
//!
//! The upper triangle of a front is kept by rows, of a general matrix also that of its transpose. With U and V the rows of the
//! two found so far, V = U where the matrix is symmetric, and L_tj = V_tj / U_tt, rows are finished by
//!
//!   U_ji = a_ji - sum over t < j of L_tj U_ti,     V_ji = a_ij - sum over t < j of U_tj L_ti,     i >= j,
//!
//! a few rows and two registers of columns at a time: the first factors stand in every lane, the second side by side. Products are
//! summed by their halves ([`Neighbors::add_factors`]) and reduced once. What is computed below the diagonal, where a register
//! reaches beyond it, is never used. Everything else is as in [`super::factor`]; the numbers are residues as they are, but rows that
//! are finished are kept as factors.
//!
//! Rows wait for all before them by blocks, those of a block by panels. Where the terms of a block are too many for a second cache,
//! their factors are packed: as they lie, each term is on a page of its own.
//!
//! Source: K. Goto, R. van de Geijn (2008), Anatomy of high-performance matrix multiplication, ACM TOMS 34, article 12.

use super::matrix::{MatrixKind, PlannedMatrix, room};
use crate::Result;
use crate::monitor::Progress;
use crate::numeric::dispatch::Level;
use crate::numeric::neighbors::{self, FACTORS, NeighborKernel, Neighbors, ShortPrime, TILE};
use crate::numeric::residue::inverse_modulo;
use std::ops::Range;

/// Rows that are brought up to date by all before them at once.
const BLOCK: usize = 64;
/// Rows of a block that are brought up to date by those before them in the block at once, and then by one another.
const PANEL: usize = 4;
/// Neighbors of a block that stay neighbors, on average, for them to be added by registers.
const RUN: usize = 8;
/// Terms whose factors are packed: with a block of rows they fill a second cache, with two registers of columns a nearest one.
const TERMS: usize = 512;
/// Words of the terms from which on they are packed: less stays in a second cache as it lies.
const PACKED: usize = 1 << 17;

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
    let words = plan.front * width(plan.front);
    let (blocks, front, left) = (room(sides * plan.stack)?, room(sides * words)?, room(words)?);
    neighbors::run(level, prime, Determinant { matrix, parameter, prime, progress, sides, blocks, front, left })
}

/// One elimination.
struct Determinant<'a> {
    matrix: &'a PlannedMatrix,
    parameter: u64,
    prime: ShortPrime,
    progress: &'a Progress,
    sides: usize,
    /// Blocks that wait for their parents.
    blocks: Vec<u64>,
    front: Vec<u64>,
    left: Vec<u64>,
}

impl NeighborKernel for Determinant<'_> {
    type Output = Result<Option<u64>>;

    #[inline(always)]
    fn run<A: Neighbors>(mut self, a: A) -> Result<Option<u64>> {
        let (plan, sides) = (self.matrix.plan(), self.sides);
        let (mut value, mut runs, mut packed) = (1, Vec::new(), Vec::new());
        for (s, supernode) in plan.supernodes.iter().enumerate() {
            if s % 64 == 0 {
                self.progress.check()?;
            }
            let (f, k) = (supernode.size(), supernode.columns);
            let wide = width(f);
            for (words, needed) in [(&mut self.front, sides * f * wide), (&mut self.left, k * wide)] {
                if words.len() < needed {
                    words.resize(needed, 0);
                }
            }
            self.assemble(a, s, &mut runs);
            let Self { front, left, blocks, prime, progress, .. } = &mut self;
            let front = &mut front[..sides * f * wide];
            let mut rows = Rows { front, left, packed: &mut packed, f, wide, sides };
            for start in (0..k).step_by(BLOCK) {
                if f > 256 {
                    progress.check()?;
                }
                let block = start..k.min(start + BLOCK);
                let done = rows.eliminate(a, block.clone(), *prime, &mut value);
                if done < block.len() {
                    return Ok((s + 1 == plan.supernodes.len() && start + done + 1 == f).then_some(0));
                }
            }
            for start in (k..f).step_by(BLOCK) {
                if f > 256 {
                    progress.check()?;
                }
                rows.update(a, start..f.min(start + BLOCK), 0..k);
            }
            for side in rows.front.chunks_exact(f * wide) {
                (k..f).for_each(|i| blocks.extend_from_slice(&side[i * wide..][i..f]));
            }
        }
        Ok(Some(value))
    }
}

impl Determinant<'_> {
    /// Fills the front of a supernode: the matrix's own entries and the blocks of its children.
    #[inline(always)]
    fn assemble<A: Neighbors>(&mut self, a: A, s: usize, runs: &mut Vec<[usize; 3]>) {
        let (plan, sides, prime) = (self.matrix.plan(), self.sides, self.prime);
        let (f, modulus) = (plan.supernodes[s].size(), prime.value());
        let wide = width(f);
        let front = &mut self.front[..sides * f * wide];
        for side in front.chunks_exact_mut(f * wide) {
            for (i, row) in side.chunks_exact_mut(wide).enumerate() {
                row[i.saturating_sub(2 * TILE) / TILE * TILE..].fill(0); // two registers reach so far below the diagonal
            }
        }
        let residue = |x: i64| match x.unsigned_abs() {
            size if size >= modulus => x.rem_euclid(modulus as i64) as u64,
            size if x < 0 => modulus - size,
            size => size,
        };
        for (i, j, entry, slope) in self.matrix.entries_of(s) {
            // What lies below the diagonal is that of the transpose, of a symmetric matrix its own.
            let side = if i > j { sides - 1 } else { 0 };
            let at = &mut front[(side * f + i.min(j) as usize) * wide + i.max(j) as usize];
            *at = sum(*at, residue(entry), modulus);
            if slope != 0 {
                *at = sum(*at, prime.mul(residue(slope), self.parameter), modulus);
            }
        }
        for (number, &child) in plan.supernodes[s].children.iter().rev().enumerate() {
            if number % 1024 == 1023 {
                front.iter_mut().for_each(|x| *x = prime.fold(*x)); // sums of so many do not overflow
            }
            let relative = &plan.supernodes[child as usize].relative;
            let start = self.blocks.len() - sides * relative.len() * (relative.len() + 1) / 2;
            let mut block = &self.blocks[start..];
            // Neighbors that stay neighbors: where they begin in the block and in the front, and how many they are.
            runs.clear();
            for (i, &row) in relative.iter().enumerate() {
                match runs.last_mut() {
                    Some([_, to, len]) if *to + *len == row as usize => *len += 1,
                    _ => runs.push([i, row as usize, 1]),
                }
            }
            let few = runs.len() * RUN <= relative.len();
            for side in front.chunks_exact_mut(f * wide) {
                let mut run = 0;
                for (i, &row) in relative.iter().enumerate() {
                    let (entries, rest) = block.split_at(relative.len() - i);
                    let target = &mut side[row as usize * wide..][..wide];
                    if few {
                        run += usize::from(i == runs[run][0] + runs[run][2]);
                        for &[from, to, len] in &runs[run..] {
                            let skip = i.saturating_sub(from);
                            add_words(a, &mut target[to + skip..], &entries[from + skip - i..][..len - skip]);
                        }
                    } else {
                        for (&x, &column) in entries.iter().zip(&relative[i..]) {
                            target[column as usize] += x;
                        }
                    }
                    block = rest;
                }
            }
            self.blocks.truncate(start);
        }
    }
}

/// Adds words to as many others, without a fold.
#[inline(always)]
fn add_words<A: Neighbors>(a: A, to: &mut [u64], words: &[u64]) {
    assert!(words.len() <= to.len());
    let whole = words.len() - words.len() % A::LANES;
    for at in (0..whole).step_by(A::LANES) {
        // SAFETY: as many words follow in both.
        unsafe {
            let to = to.as_mut_ptr().add(at);
            a.store(to, a.add(a.load(to), a.load(words.as_ptr().add(at))));
        }
    }
    to[whole..].iter_mut().zip(&words[whole..]).for_each(|(x, &y)| *x += y);
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
    /// Where factors are packed.
    packed: &'a mut Vec<u64>,
    f: usize,
    wide: usize,
    sides: usize,
}

impl Rows<'_> {
    /// Eliminates the rows of a block up to one whose pivot has no inverse, and says how many; multiplies the value by the pivots.
    #[inline(always)]
    fn eliminate<A: Neighbors>(&mut self, a: A, block: Range<usize>, prime: ShortPrime, value: &mut u64) -> usize {
        if block.start > 0 {
            self.update(a, block.clone(), 0..block.start);
        }
        for first in block.clone().step_by(PANEL) {
            let panel = first..block.end.min(first + PANEL);
            if first > block.start || first == 0 {
                self.update(a, panel.clone(), block.start..first);
            }
            let mut inverses = [0; PANEL];
            let invertible = self.invert_pivots(panel.clone(), prime, value, &mut inverses);
            for (row, &inverse) in panel.clone().zip(&inverses[..invertible]) {
                self.finish(a, row, first, inverse);
            }
            if invertible < panel.len() {
                return first - block.start + invertible;
            }
        }
        block.len()
    }

    /// Brings rows up to date by the rows of these numbers, all before them.
    #[inline(always)]
    fn update<A: Neighbors>(&mut self, a: A, rows: Range<usize>, terms: Range<usize>) {
        a.enter(Update { front: self, rows, terms });
    }

    /// The same, R rows and two registers of columns at a time.
    #[inline(always)]
    fn update_by<A: Neighbors, const R: usize>(&mut self, a: A, rows: Range<usize>, terms: Range<usize>) {
        let (wide, sides) = (self.wide, self.sides);
        assert!(terms.end <= rows.start && rows.end <= self.f && self.f <= wide);
        assert!(wide.is_multiple_of(TILE) && self.front.len() == sides * self.f * wide);
        assert!(self.left.len() >= terms.end * wide);
        let pack = rows.len() > PANEL && terms.len() * wide >= PACKED;
        let most = if pack { TERMS } else { FACTORS };
        if pack {
            self.packed.resize(sides * TERMS * (rows.len() + 2 * A::LANES), 0);
        }
        let (packed_rows, packed_columns) = self.packed.split_at_mut(if pack { sides * TERMS * rows.len() } else { 0 });
        let (front, left) = (self.front.as_mut_ptr(), self.left.as_ptr());
        // Of each side what stands in every lane, and what stands side by side.
        let sources = |side: usize| if side == 0 { (left, front.cast_const()) } else { (front.cast_const(), left) };
        let mut first = terms.start;
        // Once at least: what was added up is brought below the prime here.
        loop {
            let count = most.min(terms.end - first);
            if pack {
                for (side, packed) in packed_rows.chunks_exact_mut(TERMS * rows.len()).enumerate() {
                    for start in rows.clone().step_by(R) {
                        let some = R.min(rows.end - start);
                        let to = &mut packed[(start - rows.start) * TERMS..][..some * count];
                        for (t, to) in to.chunks_exact_mut(some).enumerate() {
                            for (r, to) in to.iter_mut().enumerate() {
                                // SAFETY: rows are columns of the front, terms rows of L, as was asserted.
                                *to = unsafe { *sources(side).0.add((first + t) * wide + start + r) };
                            }
                        }
                    }
                }
            }
            // Columns outside: what a register of columns needs of U stays in the nearest cache for all rows.
            let mut column = rows.start - rows.start % TILE;
            while column < wide {
                let two = column + 2 * A::LANES <= wide;
                let step = if two { 2 * A::LANES } else { A::LANES };
                let last = rows.end.min(column + step); // rows that reach these columns
                for side in 0..sides {
                    // SAFETY: rows and columns are within the front, terms within L, as was asserted.
                    unsafe {
                        let (factors, mut acrosses) = sources(side);
                        acrosses = acrosses.add(first * wide + column);
                        if pack {
                            let to = packed_columns.as_mut_ptr();
                            for t in 0..count {
                                a.store(to.add(t * step), a.load(acrosses.add(t * wide)));
                                if two {
                                    let next = a.load(acrosses.add(t * wide + A::LANES));
                                    a.store(to.add(t * step + A::LANES), next);
                                }
                            }
                            acrosses = to;
                        }
                        let acrosses = (acrosses, if pack { step } else { wide });
                        for row in (rows.start..last).step_by(R) {
                            let factors = if pack {
                                let of_side = packed_rows.as_ptr().add(side * TERMS * rows.len());
                                (of_side.add((row - rows.start) * TERMS), R.min(rows.end - row))
                            } else {
                                (factors.add(first * wide + row), wide)
                            };
                            let at = front.add((side * self.f + row) * wide + column);
                            if row + R <= last {
                                if two {
                                    tile::<A, R, 2>(a, factors, acrosses, count, (at, wide));
                                } else {
                                    tile::<A, R, 1>(a, factors, acrosses, count, (at, wide));
                                }
                                continue;
                            }
                            for r in 0..last - row {
                                let (factors, at) = ((factors.0.add(r), factors.1), (at.add(r * wide), wide));
                                if two {
                                    tile::<A, 1, 2>(a, factors, acrosses, count, at);
                                } else {
                                    tile::<A, 1, 1>(a, factors, acrosses, count, at);
                                }
                            }
                        }
                    }
                }
                column += step;
            }
            first += count;
            if first == terms.end {
                break;
            }
        }
    }

    /// The inverses of the pivots of a panel up to the first that is zero, and how many they are; multiplies the value by the pivots.
    /// The panel is brought up to date by all before it.
    ///
    /// Elimination without division, a_ij a_tt - a_it a_tj, multiplies what is left by a_tt: with the product s of all before, the
    /// pivot is a_tt / s. One inverse, of the product of all, gives those of its parts (Montgomery's trick).
    ///
    /// Source: P. Montgomery (1987), Speeding the Pollard and elliptic curve methods of factorization, section 10.3.1.
    #[inline(always)]
    fn invert_pivots(
        &self,
        panel: Range<usize>,
        prime: ShortPrime,
        value: &mut u64,
        inverses: &mut [u64; PANEL],
    ) -> usize {
        let (first, len, modulus) = (panel.start, panel.len(), prime.value());
        let below = (self.sides - 1) * self.f;
        let mut entries = [[0; PANEL]; PANEL];
        for (i, j) in (0..len).flat_map(|i| (i..len).map(move |j| (i, j))) {
            entries[j][i] = self.front[(below + first + i) * self.wide + first + j];
            entries[i][j] = self.front[(first + i) * self.wide + first + j];
        }
        let (mut products, mut count) = ([1; PANEL + 1], 0);
        while count < len && entries[count][count] != 0 {
            let pivot = entries[count][count];
            products[count + 1] = prime.mul(products[count], pivot);
            for (i, j) in (count + 1..len).flat_map(|i| (count + 1..len).map(move |j| (i, j))) {
                let minus = modulus - prime.mul(entries[i][count], entries[count][j]);
                entries[i][j] = sum(prime.mul(entries[i][j], pivot), minus, modulus);
            }
            count += 1;
        }
        let Some(mut inverse) = inverse_modulo(products[count], modulus) else { return 0 };
        for t in (0..count).rev() {
            inverses[t] = prime.mul(prime.mul(products[t], products[t]), inverse);
            inverse = prime.mul(inverse, entries[t][t]);
            *value = prime.mul(*value, prime.mul(inverse, entries[t][t]));
        }
        count
    }

    /// Finishes a row of a panel by those before it from the first on: U, and L by the inverse of the pivot, both ready to be factors.
    #[inline(always)]
    fn finish<A: Neighbors>(&mut self, a: A, row: usize, first: usize, inverse: u64) {
        assert!(first <= row && row < self.f && self.f <= self.wide && self.wide.is_multiple_of(TILE));
        assert!(self.front.len() == self.sides * self.f * self.wide && self.left.len() >= (row + 1) * self.wide);
        let inverse = a.factor(a.splat(inverse));
        for column in (row - row % TILE..self.wide).step_by(A::LANES) {
            // SAFETY: row and column are within the front and L, as was asserted; the width is a multiple of the lanes.
            unsafe {
                let across = self.finished(a, (0, row), column, first);
                let down = if self.sides == 1 { across } else { self.finished(a, (1, row), column, first) };
                a.store(self.front.as_mut_ptr().add(row * self.wide + column), across);
                a.store(self.left.as_mut_ptr().add(row * self.wide + column), a.multiply_factors(down, inverse));
            }
        }
    }

    /// A register of a row of a side, finished by those from the first on, as factors.
    ///
    /// # Safety
    /// Row and columns are within the front, and the row in L.
    #[inline(always)]
    unsafe fn finished<A: Neighbors>(
        &self,
        a: A,
        (side, row): (usize, usize),
        column: usize,
        first: usize,
    ) -> A::Register {
        let (wide, front, left) = (self.wide, self.front.as_ptr(), self.left.as_ptr());
        let (factors, acrosses) = if side == 0 { (left, front) } else { (front, left) };
        // SAFETY: the caller's.
        unsafe {
            let mut words = a.load(front.add((side * self.f + row) * wide + column));
            if first < row {
                let mut sum = [a.zero(); 2];
                for t in first..row {
                    let factor = a.splat(*factors.add(t * wide + row));
                    sum = a.add_factors(sum, factor, a.load(acrosses.add(t * wide + column)));
                }
                words = a.take(words, sum, row - first);
            }
            a.factor(words)
        }
    }
}

/// Brings rows up to date: a function of its own, which is long.
struct Update<'a, 'b> {
    front: &'a mut Rows<'b>,
    rows: Range<usize>,
    terms: Range<usize>,
}

impl NeighborKernel for Update<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Neighbors>(self, a: A) {
        if A::LANES == TILE {
            self.front.update_by::<A, 4>(a, self.rows, self.terms);
        } else {
            self.front.update_by::<A, 2>(a, self.rows, self.terms);
        }
    }
}

/// Brings R rows and C registers of columns, at `wide` words from row to row, up to date by so many terms: factors that stand in
/// every lane, and those side by side, each with the words from term to term.
///
/// # Safety
/// All can be read, and the rows written; there are at most [`FACTORS`] terms.
#[inline(always)]
unsafe fn tile<A: Neighbors, const R: usize, const C: usize>(
    a: A,
    (factors, down): (*const u64, usize),
    (acrosses, along): (*const u64, usize),
    count: usize,
    (at, wide): (*mut u64, usize),
) {
    let mut sums = [[[a.zero(); 2]; C]; R];
    // SAFETY: the caller's.
    unsafe {
        for t in 0..count {
            let mut across = [a.zero(); C];
            for (c, across) in across.iter_mut().enumerate() {
                *across = a.load(acrosses.add(t * along + c * A::LANES));
            }
            for (r, sums) in sums.iter_mut().enumerate() {
                let factor = a.splat(*factors.add(t * down + r));
                for (sum, &across) in sums.iter_mut().zip(&across) {
                    *sum = a.add_factors(*sum, factor, across);
                }
            }
        }
        for (r, sums) in sums.into_iter().enumerate() {
            for (c, sum) in sums.into_iter().enumerate() {
                let at = at.add(r * wide + c * A::LANES);
                a.store(at, a.take(a.load(at), sum, count));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::residue::{Modulus, Montgomery, short_primes};
    use proptest::prelude::*;

    const LEVELS: [Level; 3] = [Level::Baseline, Level::Avx2, Level::Avx512];

    fn planned(kind: MatrixKind, nodes: usize, entries: &[(u32, u32, i64)]) -> PlannedMatrix {
        PlannedMatrix::new(kind, nodes, entries, &vec![false; nodes], &Progress::default()).unwrap()
    }

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
            let matrix = PlannedMatrix::linear(kind, n, &entries, &slopes, &vec![false; n], &Progress::default()).unwrap();
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
                    let matrix = planned(MatrixKind::Symmetric, n as usize, entries);
                    determinant(&matrix, 0, (prime, level), &Progress::default()).unwrap()
                };
                assert_eq!(found(&entries(n.into())), Some(modulus.pow(u64::from(n) + 1, u64::from(n) - 1)));
                assert_eq!(found(&entries(i64::from(n) - 1)), Some(0));
                assert_eq!(found(&entries(0)[1..]), None, "the first pivot is zero");
            }
        }
    }

    #[test]
    fn fronts_whose_factors_are_packed() {
        // det(a + x y^T) = a^(n - 1) (a + x . y), the matrix determinant lemma.
        let modulus = short_primes(2).unwrap()[1];
        let prime = ShortPrime::new(modulus).unwrap();
        let n = TERMS + 110;
        for kind in [MatrixKind::Symmetric, MatrixKind::General] {
            let x = |i: usize| ((i * i * 7919 + 3 * i) % 30011) as i64 - 15000;
            let y =
                |i: usize| if kind == MatrixKind::Symmetric { x(i) } else { ((i * i * 104_729 + i) % 20011) as i64 };
            let scale = 1_000_003;
            let mut entries = vec![];
            for i in 0..n {
                for j in (0..n).filter(|&j| kind == MatrixKind::General || j <= i) {
                    entries.push((i as u32, j as u32, x(i) * y(j) + if i == j { scale } else { 0 }));
                }
            }
            let matrix = planned(kind, n, &entries);
            assert!(matrix.plan().front * TERMS >= PACKED);
            let product: i64 = scale + (0..n).map(|i| x(i) * y(i)).sum::<i64>();
            let product = product.rem_euclid(modulus.value() as i64) as u64;
            let expected = modulus.residue(modulus.mul(modulus.pow(scale as u64, n as u64 - 1), product));
            for level in LEVELS {
                assert_eq!(determinant(&matrix, 0, (prime, level), &Progress::default()).unwrap(), Some(expected));
            }
        }
    }

    #[test]
    fn a_front_of_many_children_does_not_overflow() {
        // 2 on the diagonal of each leaf, 4001 in the middle: 2^4000 (4001 - 4000 / 2).
        let modulus = short_primes(1).unwrap()[0];
        let leaves = (1..=4000u32).flat_map(|leaf| [(leaf, leaf, 2), (leaf, 0, -1)]);
        let entries: Vec<_> = std::iter::once((0, 0, 4001)).chain(leaves).collect();
        let matrix = planned(MatrixKind::Symmetric, 4001, &entries);
        let expected = modulus.residue(modulus.mul(modulus.pow(2, 4000), 2001));
        for level in LEVELS {
            let at = (ShortPrime::new(modulus).unwrap(), level);
            assert_eq!(determinant(&matrix, 0, at, &Progress::default()).unwrap(), Some(expected));
        }
    }
}
