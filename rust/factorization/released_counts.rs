//! The released table: a byte per cell, and a list for the values that do not fit in one.
//!
//! The value of a cell held out is not kept at all, so nothing can leak from it.

use super::positive_cells::PositiveCells;
use super::row::{HELD_OUT, OVERFLOW, Row};
use crate::{Error, Result};
use std::sync::OnceLock;

/// The ratio of the noise, one for all cells or one for each.
#[derive(Clone, Debug, PartialEq)]
pub enum Alpha {
    /// One ratio for all.
    One(f64),
    /// A ratio per cell, row by row.
    Each(Vec<f64>),
}

/// Released counts, rows by columns.
#[derive(Clone, Debug, PartialEq)]
pub struct ReleasedCounts {
    rows: usize,
    cols: usize,
    codes: Vec<i8>,
    overflow: Vec<(u32, i64)>,
    /// Where the list of each row starts in `overflow`.
    starts: Vec<usize>,
    alpha: Alpha,
    /// The least ratio above zero and the greatest one.
    range: (f64, f64),
    held_out: usize,
    lists: CellLists,
}

/// What chains ask of a whole table, of which there may be several parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// Number of rows.
    pub rows: u64,
    /// The sum of what is not held out.
    pub total: i128,
    /// How many cells hold a positive value.
    pub positive: u64,
    /// How many are held out.
    pub held_out: u64,
    /// The ratio of the noise, if it is one for all.
    pub alpha: Option<f64>,
    /// The least ratio above zero and the greatest one; 1 and 0 if there is none.
    pub alpha_range: (f64, f64),
}

/// The lists of positive cells, made when they are first asked for. They follow from the codes, so all are equal.
#[derive(Debug, Default)]
struct CellLists(OnceLock<PositiveCells>);

impl Clone for CellLists {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for CellLists {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl ReleasedCounts {
    /// Packs a table.
    ///
    /// # Errors
    /// [`Error::Shape`] where lengths do not fit; [`Error::Domain`]: a ratio outside [0, 1), a value beyond 2^53 in size, a
    /// negative value where the ratio is 0.
    pub fn new<T: Copy + Into<i64>>(
        values: &[T],
        rows: usize,
        cols: usize,
        alpha: Alpha,
        held_out: Option<&[u8]>,
    ) -> Result<Self> {
        let cells = rows.checked_mul(cols).filter(|_| u32::try_from(cols).is_ok());
        let shape = |name, found: usize| {
            let refusal = || Error::shape(name, format_args!("({rows} * {cols},)"), format_args!("({found},)"));
            if Some(found) == cells { Ok(()) } else { Err(refusal()) }
        };
        shape("released", values.len())?;
        held_out.map_or(Ok(()), |held_out| shape("mask", held_out.len()))?;
        match &alpha {
            Alpha::One(alpha) => check_alpha(*alpha, None)?,
            Alpha::Each(alphas) => {
                shape("alpha", alphas.len())?;
                alphas.iter().enumerate().try_for_each(|(i, &alpha)| check_alpha(alpha, Some((i / cols, i % cols))))?;
            }
        }
        // Equal ratios are one ratio, with which everything is faster.
        let alpha = match alpha {
            Alpha::Each(alphas) if alphas.windows(2).all(|pair| pair[0] == pair[1]) => {
                Alpha::One(alphas.first().copied().unwrap_or(0.0))
            }
            other => other,
        };
        let range = match &alpha {
            Alpha::One(alpha) => (*alpha, *alpha),
            Alpha::Each(alphas) => {
                let positive = alphas.iter().copied().filter(|&alpha| alpha > 0.0);
                (positive.clone().fold(1.0, f64::min), positive.fold(0.0, f64::max))
            }
        };
        let mut table = Self {
            rows,
            cols,
            codes: Vec::with_capacity(values.len()),
            overflow: vec![],
            starts: vec![0],
            alpha,
            range,
            held_out: 0,
            lists: CellLists::default(),
        };
        for (i, value) in values.iter().map(|&value| value.into()).enumerate() {
            // Columns come in rising order within a row, so the list of what has no code is sorted as it grows.
            let column = i % cols;
            if held_out.is_some_and(|held_out| held_out[i] != 0) {
                table.held_out += 1;
                table.codes.push(HELD_OUT);
            } else {
                table.check(i, value)?;
                let code = i8::try_from(value).ok().filter(|&code| code > HELD_OUT && code < OVERFLOW);
                if code.is_none() {
                    table.overflow.push((column as u32, value));
                }
                table.codes.push(code.unwrap_or(OVERFLOW));
            }
            if column + 1 == cols {
                table.starts.push(table.overflow.len());
            }
        }
        table.starts.resize(rows + 1, table.overflow.len()); // rows of no columns
        table.overflow.shrink_to_fit();
        Ok(table)
    }

    fn check(&self, cell: usize, value: i64) -> Result<()> {
        let requirement = match () {
            () if value.unsigned_abs() > 1 << 53 => "at most 2^53 in size",
            () if value < 0 && self.alpha_at(cell) == 0.0 => "at least 0 where alpha is 0",
            () => return Ok(()),
        };
        let (row, column) = (cell / self.cols, cell % self.cols);
        Err(Error::domain("released", format_args!("{value} at cell ({row}, {column})"), requirement))
    }

    /// Holds out the cells that `hide(row, column)` names.
    pub fn hide(&mut self, hide: impl Fn(usize, usize) -> bool) {
        let cols = self.cols;
        self.lists = CellLists::default();
        for (i, code) in self.codes.iter_mut().enumerate() {
            if *code != HELD_OUT && hide(i / cols, i % cols) {
                *code = HELD_OUT;
                self.held_out += 1;
            }
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of cells held out.
    pub fn held_out(&self) -> usize {
        self.held_out
    }

    /// A row.
    #[inline]
    pub fn row(&self, row: usize) -> Row<'_> {
        Row {
            codes: &self.codes[row * self.cols..(row + 1) * self.cols],
            overflow: &self.overflow[self.starts[row]..self.starts[row + 1]],
        }
    }

    /// The ratio of the noise.
    pub fn alpha(&self) -> &Alpha {
        &self.alpha
    }

    /// The ratio of the noise in a cell.
    #[inline]
    pub fn alpha_at(&self, cell: usize) -> f64 {
        match &self.alpha {
            Alpha::One(alpha) => *alpha,
            Alpha::Each(alphas) => alphas[cell],
        }
    }

    /// The least ratio above zero and the greatest one.
    pub fn alpha_range(&self) -> (f64, f64) {
        self.range
    }

    /// The ratios of a row where cells have their own.
    #[inline]
    pub fn alphas(&self, row: usize) -> Option<&[f64]> {
        match &self.alpha {
            Alpha::One(_) => None,
            Alpha::Each(alphas) => Some(&alphas[row * self.cols..(row + 1) * self.cols]),
        }
    }

    /// The columns held out in a row.
    pub fn held_out_in(&self, row: usize) -> impl Iterator<Item = usize> + '_ {
        self.row(row).codes.iter().enumerate().filter(|(_, code)| **code == HELD_OUT).map(|(column, _)| column)
    }

    /// The sum of what is not held out.
    pub fn total(&self) -> i128 {
        let bytes: i64 =
            self.codes.iter().filter(|&&code| code != HELD_OUT && code != OVERFLOW).map(|&c| i64::from(c)).sum();
        let overflow = |row: usize| {
            let row = self.row(row);
            let here = row.overflow.iter().filter(|(v, _)| row.codes[*v as usize] == OVERFLOW);
            here.map(|&(_, x)| i128::from(x)).sum::<i128>()
        };
        i128::from(bytes) + (0..self.rows).map(overflow).sum::<i128>()
    }

    /// What is to be known of all tables to draw from one.
    pub fn facts(&self) -> Facts {
        let alpha = if let Alpha::One(alpha) = self.alpha { Some(alpha) } else { None };
        // Of one ratio, which may be zero, as of several.
        let alpha_range = if alpha == Some(0.0) { (1.0, 0.0) } else { self.range };
        let (rows, positive, held_out) = (self.rows as u64, self.positive() as u64, self.held_out as u64);
        Facts { rows, total: self.total(), positive, held_out, alpha, alpha_range }
    }

    /// The table as one of several that these facts tell of.
    #[must_use]
    pub fn among(mut self, facts: &Facts) -> Self {
        if facts.alpha.is_none() {
            self.range = facts.alpha_range;
            if let Alpha::One(alpha) = self.alpha {
                self.alpha = Alpha::Each(vec![alpha; self.codes.len()]);
            }
        }
        self
    }

    /// A value of at least this size, if there is one.
    pub fn beyond(&self, size: u64) -> Option<i64> {
        self.overflow.iter().map(|&(_, value)| value).find(|value| value.unsigned_abs() >= size)
    }

    /// How many cells hold a positive value.
    pub fn positive(&self) -> usize {
        self.codes.iter().filter(|&&code| code > 0).count()
    }

    /// The cells that hold a positive value, listed by row and value when first asked for.
    pub fn positive_cells(&self) -> &PositiveCells {
        let rows = (0..self.rows).map(|row| self.row(row));
        if let Some(lists) = self.lists.0.get() {
            return lists;
        }
        // Made before the cell is touched: a thread that a fork takes away must not leave it half made.
        let lists = PositiveCells::new(rows, self.positive());
        self.lists.0.get_or_init(|| lists)
    }

    /// Bytes the table takes.
    pub fn bytes(&self) -> usize {
        let ratios = if let Alpha::Each(alphas) = &self.alpha { 8 * alphas.len() } else { 0 };
        let lists = self.lists.0.get().map_or(0, PositiveCells::bytes);
        self.codes.len() + size_of::<(u32, i64)>() * self.overflow.len() + 8 * self.starts.len() + ratios + lists
    }
}

fn check_alpha(alpha: f64, cell: Option<(usize, usize)>) -> Result<()> {
    let holds = (0.0..1.0).contains(&alpha);
    match cell {
        Some(cell) => Error::require(holds, "alpha", format_args!("{alpha} at cell {cell:?}"), "in [0, 1)"),
        None => Error::require(holds, "alpha", alpha, "in [0, 1)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_any_size_come_back_and_held_out_ones_do_not() {
        let values = [0, -127, 127, -128, 126, 1 << 40, 5, -3];
        let held_out = [0, 0, 0, 0, 0, 0, 1, 0];
        let table = ReleasedCounts::new(&values, 2, 4, Alpha::One(0.5), Some(&held_out)).unwrap();
        for (i, &value) in values.iter().enumerate().filter(|(i, _)| *i != 6) {
            let row = table.row(i / 4);
            assert_eq!(row.value(i % 4, row.codes[i % 4]), value);
        }
        assert_eq!((table.held_out(), table.row(1).codes[2], table.positive()), (1, HELD_OUT, 4));
        assert_eq!(table.total(), i128::from(values.iter().sum::<i64>() - 5));
    }

    #[test]
    fn what_no_count_can_have_given_is_refused_with_its_place() {
        let refused = |values: &[i64], alpha| ReleasedCounts::new(values, 1, 2, alpha, None).unwrap_err().to_string();
        assert_eq!(
            refused(&[1, -2], Alpha::One(0.0)),
            "`released` must be at least 0 where alpha is 0, got -2 at cell (0, 1)"
        );
        assert_eq!(refused(&[1, 2], Alpha::Each(vec![0.5, 1.0])), "`alpha` must be in [0, 1), got 1 at cell (0, 1)");
        assert_eq!(refused(&[1], Alpha::One(0.5)), "`released` must have shape (1 * 2,), got (1,)");
    }
}
