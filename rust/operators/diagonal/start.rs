//! The first rows of a path as a product of two thin matrices.
//!
//! The two sides of a row share one column: its words e over the rows below row r, and the symbol of row r that both sides count
//! as theirs. Columns are passed by the operator of a row of r sites, for the diagonals are the same in a lattice with rows and
//! columns exchanged; from the right to the left they are read from row r downwards, since T^T = M T M. What a side keeps of
//! each column is its symbol in row r: the words of that row grow by one with each column, and so do the fillings G(p, e).
//!
//! Source: [`crate::low_rank`].

use super::DiagonalRow;
use crate::Result;
use crate::low_rank::{self, ThinProduct};
use crate::numeric::ring::Ring;
use crate::parallel::{self, Shared};
use crate::square::words::{list, words};
use crate::strip::{Context, RowOperator};

/// The most rows of a start.
const MOST: usize = 16;
/// Rows of fewer words are swept from the first on.
const WORTH: usize = 1 << 12;
/// Columns of which each symbol is followed on a thread of its own.
const FORKED: usize = 6;

/// Symbols of the left and of the right side, the shared column counted twice.
fn sides(width: usize) -> [usize; 2] {
    [width / 2 + 1, width.div_ceil(2)]
}

/// Words of the shared column, below row r of so many.
fn terms(start: usize) -> usize {
    words(start - 1)
}

/// The element at a word of so many symbols, the first in the highest bit.
fn rank(word: u64, symbols: usize) -> usize {
    (0..symbols).filter(|i| word >> i & 1 == 1).map(words).sum()
}

/// Whether both matrices fit behind the vector that they make.
pub fn fits(width: usize, start: usize) -> bool {
    let rows: usize = sides(width).into_iter().map(words).sum();
    width >= 2 && (2..=MOST).contains(&start) && rows * terms(start) <= words(width + 1) - words(width)
}

/// Additions that take as long as the start.
pub fn cost(column: &DiagonalRow, width: usize) -> u64 {
    let passes: usize = sides(width).into_iter().flat_map(|length| (1..length).map(words)).sum();
    passes as u64 * column.cost() + low_rank::additions((words(width) * terms(column.width)) as u64)
}

/// Most roundings of the start.
pub fn bound(column: &DiagonalRow, width: usize) -> u64 {
    (width as u64 + 2) * (column.bound() + 2) + 2 * terms(column.width) as u64 + 4
}

/// The rows of the start that make the least work, one if nothing is gained.
pub fn best(row: &DiagonalRow, rows: u64) -> usize {
    if row.states() < WORTH {
        return 1;
    }
    let all = |start: usize| {
        let swept = row.cost() * (rows.div_ceil(2) - start as u64);
        let begun = DiagonalRow::path(row.diagonals, start);
        swept + if start > 1 { cost(&begun, row.width) } else { 0 }
    };
    let most = usize::try_from(rows.div_ceil(2)).unwrap_or(MOST).min(MOST);
    (1..=most).filter(|&start| start == 1 || fits(row.width, start)).min_by_key(|&start| all(start)).unwrap_or(1)
}

/// One side of a row, from its end to the shared column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// What moves across the rows.
struct Columns<'a, R: Ring> {
    context: Context<'a, R>,
    column: &'a DiagonalRow,
    side: Side,
    /// Symbols of the side.
    length: usize,
    /// By the symbol of row r: where the word e below it stands in a vector of columns, if it can.
    places: [Vec<Option<usize>>; 2],
    /// By the word e: its ones.
    ones: &'a [u32],
    powers: &'a [R::Element],
    matrix: Shared<R::Element>,
}

/// Writes the vector after the first rows of a path, those of `column`; behind it, `x` is room for both matrices.
///
/// # Errors
/// [`crate::Error::Interrupted`] when the caller says so.
pub fn write<R: Ring>(context: Context<R>, column: &DiagonalRow, width: usize, x: &mut [R::Element]) -> Result<()> {
    let (terms, [left, right]) = (terms(column.width), sides(width));
    let below = column.width - 1;
    let ones: Vec<u32> = list(below).iter().map(|e| e.count_ones()).collect();
    let powers = super::powers(context.weight, below);
    let (vector, room) = x.split_at_mut(words(width));
    let room = &mut room[..(words(left) + words(right)) * terms];
    let (g, h) = room.split_at_mut(words(left) * terms);
    for (side, length, matrix) in [(Side::Left, left, &mut *g), (Side::Right, right, &mut *h)] {
        let places = [0, 1].map(|symbol| {
            let place = |&e: &u64| {
                let (near, word) = match side {
                    Side::Left => (e & 1, e << 1 | symbol),
                    Side::Right => {
                        (e & 1, symbol << below | if below == 0 { 0 } else { e.reverse_bits() >> (64 - below) })
                    }
                };
                (below == 0 || symbol & near == 0).then(|| rank(word, below + 1))
            };
            list(below).iter().map(place).collect()
        });
        matrix.fill(context.weight.ring.zero());
        let columns = Columns {
            context,
            column,
            side,
            length,
            places,
            ones: &ones,
            powers: &powers,
            matrix: Shared::new(matrix),
        };
        columns.begin()?;
    }
    low_rank::split(context, room)?;
    let (g, h) = room.split_at(words(left) * terms);
    // Words of the left side with this symbol in the shared column go on as those of the right side that begin with it.
    let (zero, one) = h.split_at(words(right - 1) * terms);
    let mut runs = [Vec::new(), Vec::new()];
    let mut at = 0;
    for (i, word) in list(left).into_iter().enumerate() {
        let last = (word & 1) as usize;
        runs[last].push((i, at));
        at += [zero, one][last].len() / terms;
    }
    for (right, runs) in [zero, one].into_iter().zip(&runs) {
        ThinProduct { left: g, right, terms, runs }.write(context, vector)?;
    }
    Ok(())
}

impl<R: Ring> Columns<'_, R> {
    /// The first column has any word.
    fn begin(&self) -> Result<()> {
        let ring = &self.context.weight.ring;
        for symbol in [0, 1] {
            let any = |place: &Option<usize>| if place.is_some() { ring.one() } else { ring.zero() };
            self.go_on(1, symbol, &self.places[symbol].iter().map(any).collect::<Vec<_>>(), symbol * self.step(0))?;
        }
        Ok(())
    }

    /// How far a symbol 1 in this column moves the rank of the side's word.
    fn step(&self, column: usize) -> usize {
        match self.side {
            Side::Left => words(self.length - 1 - column),
            Side::Right => words(column),
        }
    }

    /// After so many columns, the last one with this symbol in row r, the fillings of a word of this rank.
    fn go_on(&self, passed: usize, symbol: usize, fillings: &[R::Element], rank: usize) -> Result<()> {
        let ring = &self.context.weight.ring;
        let charged = |e: usize| match self.powers.get(self.ones[e] as usize) {
            Some(power) => ring.mul(fillings[e], *power),
            None => fillings[e],
        };
        if passed == self.length {
            // SAFETY: the matrix has such a row, and no other word has this rank.
            let row = unsafe { self.matrix.part(rank * fillings.len(), fillings.len()) };
            // The shared column is weighed once.
            (0..row.len()).for_each(|e| row[e] = if self.side == Side::Left { charged(e) } else { fillings[e] });
            return Ok(());
        }
        let mut column = vec![ring.zero(); self.column.len()];
        for (e, place) in self.places[symbol].iter().enumerate() {
            if let Some(place) = *place {
                column[place] = charged(e);
            }
        }
        self.column.apply(self.context, &mut column)?;
        let next = |symbol: usize| {
            let taken = |place: &Option<usize>| place.map_or(ring.zero(), |place| column[place]);
            let fillings: Vec<R::Element> = self.places[symbol].iter().map(taken).collect();
            self.go_on(passed + 1, symbol, &fillings, rank + symbol * self.step(passed))
        };
        if symbol == 1 {
            return next(0);
        }
        let (zero, one) = parallel::fork(passed < FORKED, || next(0), || next(1));
        zero.and(one)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Diagonals;
    use super::*;
    use crate::monitor::Progress;
    use crate::numeric::dispatch::Level;
    use crate::numeric::residue::primes;
    use crate::numeric::ring::F64;
    use crate::strip::tests::assert_alike_at_every_level;
    use crate::strip::{Rows, Strip};
    use crate::transfer::{Point, Weight, evaluate, lane_weight};

    const KINDS: [Diagonals; 4] = [Diagonals::Neither, Diagonals::Falling, Diagonals::Both, Diagonals::Random];

    fn engine(diagonals: Diagonals, width: usize, start: usize, rows: u64) -> Strip<DiagonalRow> {
        let row = DiagonalRow::path(diagonals, width).with_start(start);
        Strip::with_row(row, Rows::Open(rows), usize::MAX, &Progress::default()).unwrap()
    }

    #[test]
    fn rows_made_at_once_are_those_swept() {
        for diagonals in KINDS {
            for (width, start) in (11..=15).flat_map(|width| (2..=MOST).map(move |start| (width, start))) {
                if !fits(width, start) {
                    continue;
                }
                for (rows, activity) in
                    [2 * start - 1, 2 * start, 2 * start + 3].map(|rows| (rows as u64, 1 + rows as u64 % 3))
                {
                    let points: Vec<Point> =
                        primes(8).unwrap().into_iter().map(|p| Point::new(p, activity).with_second(12345)).collect();
                    let [plain, begun] = [1, start].map(|start| engine(diagonals, width, start, rows));
                    let what = format!("{diagonals:?} {rows} x {width} from row {start}");
                    assert_alike_at_every_level(&plain, &begun, &points, &what);
                }
            }
        }
    }

    #[test]
    fn doubles_stay_within_the_roundings_of_either_way() {
        let weight = Weight::new(F64, 0.37).with_second(0.3);
        for (diagonals, rows) in KINDS.into_iter().flat_map(|diagonals| [9, 12].map(|rows| (diagonals, rows))) {
            let [plain, begun] = [1, 4].map(|start| {
                let engine = engine(diagonals, 15, start, rows);
                let bound = crate::transfer::Transfer::roundings(&engine) as f64 * 2f64.powi(-53);
                (evaluate(&engine, &weight, &Progress::default()).unwrap(), bound)
            });
            assert!((plain.0 - begun.0).abs() <= (plain.1 + begun.1) * plain.0, "{diagonals:?}, {rows} rows");
        }
    }

    #[test]
    fn work_is_what_the_progress_hears_of() {
        let points = [Point::new(primes(1).unwrap()[0], 1)];
        for (diagonals, start) in [(Diagonals::Both, 3), (Diagonals::Falling, 4)] {
            let column = DiagonalRow::path(diagonals, start);
            let progress = Progress::new(cost(&column, 15));
            let weight = lane_weight::<1>(&points);
            let context = Context { weight: &weight, level: Level::Avx512, progress: &progress };
            let mut x = vec![[0]; words(16)];
            write(context, &column, 15, &mut x).unwrap();
            let heard = progress.done() as f64 / cost(&column, 15) as f64;
            assert!((0.99..=1.0).contains(&heard), "{heard}");
        }
    }

    #[test]
    fn a_start_is_chosen_for_large_sections_only() {
        let begun =
            |width, rows| DiagonalRow::new(Diagonals::Both, width, false, Rows::Open(rows)).unwrap().open_begun();
        assert_eq!([begun(8, 1000), begun(16, 16), begun(28, 1), begun(28, 2)], [1; 4]);
        assert!((8..=11).contains(&begun(28, 28)) && (2..=4).contains(&begun(28, 8)));
        let cylinder = DiagonalRow::new(Diagonals::Both, 28, true, Rows::Open(28)).unwrap();
        assert_eq!(cylinder.open_begun(), 1);
    }
}
