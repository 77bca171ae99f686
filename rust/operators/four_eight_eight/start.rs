//! The first columns as a product of two thin matrices.
//!
//! Between two rows of diamonds lie as many links as there are columns, and they are all that the diamonds above and below
//! share. With n the occupied N corners below them, G(x, n) the sums over the diamonds above that leave room for n, and H(x, n)
//! those over the diamonds below that have n, the vector after r columns is the sum over n of G(x, n) H(x', n). The lattice is the
//! same with rows and columns exchanged, or turned upside down: rows of r diamonds are passed by the formulas of a column, from
//! the top and from the bottom, and what is carried out of a row is its W corner of column r + 1.
//!
//! Source: [`crate::low_rank`], with the operator of [`super`].

use super::cut::ColumnCut;
use super::sites::{Activity, Charge, Unit, begin, pass};
use crate::Result;
use crate::low_rank::{self, ThinProduct};
use crate::numeric::dispatch::{Arithmetic, Kernel, Plain, Products};
use crate::numeric::ring::Ring;
use crate::parallel::{self, Shared};
use crate::strip::Context;

/// The most columns of a start.
const MOST: u64 = 10;
/// The binary logarithm of the elements from which on a vector is not swept from its first column on.
const WORTH: u32 = 12;
/// Rows of which each symbol is followed on a thread of its own.
const FORKED: u32 = 6;

/// Rows of diamonds above and below.
fn sides(cut: &ColumnCut) -> [u32; 2] {
    [cut.sites() / 2, cut.sites().div_ceil(2)]
}

/// Rows of both matrices.
fn rows(cut: &ColumnCut) -> usize {
    sides(cut).into_iter().map(|side| 1 << side).sum()
}

/// Whether both matrices fit behind the vector that they make.
pub fn fits(cut: &ColumnCut, columns: u64) -> bool {
    !cut.is_ring() && (2..=MOST).contains(&columns) && rows(cut) << columns <= cut.state_len() - cut.none_len()
}

/// Additions that take as long as a start of so many columns.
pub fn cost(cut: &ColumnCut, columns: u64) -> u64 {
    if columns == 1 {
        return 0;
    }
    passes(cut, columns) + low_rank::additions((cut.words() << columns) as u64)
}

/// Additions of the sides, three for each word, diamond and side's word.
fn passes(cut: &ColumnCut, columns: u64) -> u64 {
    rows(cut) as u64 * ((3 * columns) << columns)
}

/// Most roundings of the start.
pub fn bound(cut: &ColumnCut, columns: u64) -> u64 {
    u64::from(cut.sites()) * (6 * columns + 12) + columns + (2 << columns) + 4
}

/// The columns of the start that make the least work, of so many to the middle and `most` at the most.
pub fn best(cut: &ColumnCut, middle: u64, most: u64) -> u64 {
    if cut.is_ring() || cut.sites() < WORTH {
        return 1;
    }
    let column = 3 * u64::from(cut.sites()) * cut.words() as u64;
    let possible = (1..=most.min(middle)).filter(|&columns| columns == 1 || fits(cut, columns));
    possible.min_by_key(|&columns| cost(cut, columns) + column * (middle - columns)).unwrap_or(1)
}

/// Writes the vector after the first columns, with all links behind them; behind it, `x` is room for both matrices.
///
/// # Errors
/// [`crate::Error::Interrupted`] when the caller says so.
pub fn write<R: Ring>(context: Context<R>, cut: &ColumnCut, columns: u64, x: &mut [R::Element]) -> Result<()> {
    let (terms, [above, below]) = (1usize << columns, sides(cut));
    let (vector, room) = x.split_at_mut(cut.none_len());
    let room = &mut room[..rows(cut) * terms];
    let (g, h) = room.split_at_mut(terms << above);
    let powers = if context.weight.unit { Vec::new() } else { context.weight.powers(columns as usize) };
    for (is_above, rows, matrix) in [(true, above, &mut *g), (false, below, &mut *h)] {
        let side = DiamondRows { context, is_above, rows, terms, powers: &powers, matrix: Shared::new(matrix) };
        // No corner looks out of the lattice.
        let mut first = vec![context.weight.ring.zero(); terms];
        first[0] = context.weight.ring.one();
        side.go_on(0, first, 0)?;
    }
    context.progress.advance(passes(cut, columns))?;
    low_rank::split(context, room)?;
    let (g, h) = room.split_at(terms << above);
    let runs: Vec<(usize, usize)> = (0..1 << below).map(|word| (word, word << above)).collect();
    ThinProduct { left: h, right: g, terms, runs: &runs }.write(context, vector)
}

/// The rows of diamonds on one side.
struct DiamondRows<'a, R: Ring> {
    context: Context<'a, R>,
    is_above: bool,
    rows: u32,
    terms: usize,
    powers: &'a [R::Element],
    matrix: Shared<R::Element>,
}

impl<R: Ring> DiamondRows<'_, R> {
    /// After so many rows, the sums of a side's word by the corners that look at the next row.
    fn go_on(&self, passed: u32, mut none: Vec<R::Element>, word: usize) -> Result<()> {
        let weight = self.context.weight;
        if passed == self.rows {
            // SAFETY: the matrix has such a row, and nobody else this word.
            let row = unsafe { self.matrix.part(word * self.terms, self.terms) };
            row.copy_from_slice(&none);
            // The corners between both sides are weighed once.
            if !self.is_above && !weight.unit {
                row.iter_mut()
                    .enumerate()
                    .for_each(|(n, x)| *x = weight.ring.mul(*x, self.powers[n.count_ones() as usize]));
            }
            return self.context.progress.check();
        }
        let mut carried = vec![weight.ring.zero(); self.terms];
        // The last row below stays before the links to the first row above.
        let cross = self.is_above || passed + 1 < self.rows;
        let row = DiamondRow { none: &mut none, carried: &mut carried, cross };
        if weight.unit {
            weight.ring.dispatch(self.context.level, row);
        } else {
            row.go(Plain(weight.ring), Activity(weight.activity));
        }
        // From above the first diamond is that of bit 0, from below it is that of the highest bit.
        let bit = 1 << if self.is_above { passed } else { self.rows - 1 - passed };
        let (zero, one) = parallel::fork(
            passed < FORKED,
            || self.go_on(passed + 1, none, word),
            || self.go_on(passed + 1, carried, word | bit),
        );
        zero.and(one)
    }
}

/// Passes a row of diamonds, nothing being carried into it.
struct DiamondRow<'a, E> {
    none: &'a mut [E],
    /// Written.
    carried: &'a mut [E],
    cross: bool,
}

impl<E: Copy> Kernel<E> for DiamondRow<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<A: Products<Element = E>>(self, a: A) {
        self.go(a, Unit);
    }
}

impl<E> DiamondRow<'_, E> {
    #[inline(always)]
    fn go<A: Arithmetic<Element = E>, Z: Charge<A>>(self, a: A, z: Z) {
        for bit in 0..self.none.len().trailing_zeros() {
            for block in (0..self.none.len()).step_by(2 << bit) {
                for i in block..block + (1 << bit) {
                    let j = i | 1 << bit;
                    let (x, y) = (a.read(&self.none[i]), a.read(&self.none[j]));
                    let passed = match bit {
                        0 => begin(a, z, [x, y], self.cross),
                        _ => pass(a, z, [x, y, a.read(&self.carried[i])], self.cross),
                    };
                    let ([x, y], [c, d]) = (passed.none, passed.carried);
                    a.write(&mut self.none[i], a.fold(x));
                    a.write(&mut self.none[j], a.fold(y));
                    a.write(&mut self.carried[i], a.fold(c));
                    a.write(&mut self.carried[j], a.fold(d));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DiamondColumn, Middle};
    use super::*;
    use crate::monitor::Progress;
    use crate::numeric::dispatch::Level;
    use crate::numeric::residue::primes;
    use crate::numeric::ring::F64;
    use crate::strip::tests::assert_alike_at_every_level;
    use crate::strip::{RowOperator, Rows, Strip};
    use crate::transfer::{Point, Transfer, Weight, evaluate, lane_weight};

    fn engine(diamonds: usize, start: u64, columns: u64) -> Strip<DiamondColumn> {
        let rows = Rows::Open(columns);
        let DiamondColumn::Wide(cut, middle, _) = DiamondColumn::new((), diamonds, false, rows).unwrap() else {
            unreachable!("these are many diamonds")
        };
        Strip::with_row(DiamondColumn::Wide(cut, middle, start), rows, usize::MAX, &Progress::default()).unwrap()
    }

    #[test]
    fn columns_made_at_once_are_those_swept() {
        for (diamonds, start) in [(7, 2), (8, 2), (9, 2), (9, 3), (10, 3), (11, 3)] {
            let DiamondColumn::Wide(cut, ..) = DiamondColumn::new((), diamonds, false, Rows::Open(9)).unwrap() else {
                unreachable!("these are many diamonds")
            };
            assert_eq!(fits(&cut, start), diamonds as u64 >= 2 * start + 4, "{diamonds} diamonds, {start} columns");
            if !fits(&cut, start) {
                continue;
            }
            for (columns, activity) in
                [2 * start + 1, 2 * start + 2, 2 * start + 5, 2 * start + 6].into_iter().zip([1, 3, 1, 1])
            {
                let points: Vec<Point> = primes(8).unwrap().into_iter().map(|p| Point::new(p, activity)).collect();
                let [plain, begun] = [1, start].map(|start| engine(diamonds, start, columns));
                let what = format!("{diamonds} x {columns} diamonds from column {start}, activity {activity}");
                assert_alike_at_every_level(&plain, &begun, &points, &what);
            }
        }
    }

    #[test]
    fn doubles_stay_within_the_roundings_of_either_way() {
        let weight = Weight::new(F64, 0.37);
        for columns in [9, 12] {
            let [plain, begun] = [1, 3].map(|start| {
                let engine = engine(11, start, columns);
                (evaluate(&engine, &weight, &Progress::default()).unwrap(), engine.roundings() as f64 * 2f64.powi(-53))
            });
            assert!((plain.0 - begun.0).abs() <= (plain.1 + begun.1) * plain.0, "{columns} columns");
        }
    }

    #[test]
    fn work_is_what_the_progress_hears_of() {
        let cut = ColumnCut::new(11, 5, false);
        let progress = Progress::new(cost(&cut, 3));
        let weight = lane_weight::<1>(&[Point::new(primes(1).unwrap()[0], 1)]);
        let context = Context { weight: &weight, level: Level::Avx512, progress: &progress };
        write(context, &cut, 3, &mut vec![[0]; cut.len()]).unwrap();
        assert_eq!(progress.done(), cost(&cut, 3));
    }

    #[test]
    fn a_start_is_chosen_for_large_sections_only() {
        let begun =
            |diamonds, columns| DiamondColumn::new((), diamonds, false, Rows::Open(columns)).unwrap().open_begun();
        assert_eq!([begun(8, 1000), begun(11, 12), begun(21, 2), begun(21, 3), begun(21, 4)], [1; 5]);
        assert!((6..=8).contains(&begun(21, 21)) && (2..=4).contains(&begun(21, 8)));
        assert_eq!(DiamondColumn::new((), 21, true, Rows::Open(21)).unwrap().open_begun(), 1);
        let DiamondColumn::Wide(_, middle, _) = DiamondColumn::new((), 21, false, Rows::Open(21)).unwrap() else {
            unreachable!("these are many diamonds")
        };
        assert_eq!(middle, Middle::Column);
    }
}
