//! A row of the released table, a byte per cell, and the shapes of its multipliers where counts are overdispersed.
//!
//! A code is the value itself, or [`HELD_OUT`] for a cell held out, or [`OVERFLOW`] for a value that is looked up in a list of the
//! row, sorted by column.

use std::ops::Range;

/// The code of a cell that is held out.
pub const HELD_OUT: i8 = i8::MIN;
/// The code of a value that is in the list; greater than any value that is not.
pub const OVERFLOW: i8 = i8::MAX;

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// A code per column.
    pub codes: &'a [i8],
    /// The values whose code is [`OVERFLOW`].
    pub overflow: &'a [(u32, i64)],
}

impl Row<'_> {
    /// The value at a column whose code is `code`, not [`HELD_OUT`].
    #[inline(always)]
    pub fn value(&self, column: usize, code: i8) -> i64 {
        if code == OVERFLOW { self.looked_up(column) } else { i64::from(code) }
    }

    #[cold]
    fn looked_up(&self, column: usize) -> i64 {
        let found = self.overflow.binary_search_by_key(&(column as u32), |&(column, _)| column);
        found.map_or(0, |place| self.overflow[place].1)
    }
}

/// The shapes of a row: one for all, or one per column.
#[derive(Clone, Copy, Debug)]
pub struct RowShapes<'a> {
    shapes: &'a [f64],
}

impl<'a> RowShapes<'a> {
    /// One shape, or one per column.
    pub fn new(shapes: &'a [f64]) -> Self {
        Self { shapes }
    }

    /// The shape of all columns, if there is one.
    #[inline(always)]
    pub fn one(&self) -> Option<f64> {
        if let [one] = self.shapes { Some(*one) } else { None }
    }

    /// The shapes of some columns.
    #[inline(always)]
    pub fn part(&self, columns: Range<usize>) -> Self {
        if self.one().is_some() { *self } else { Self { shapes: &self.shapes[columns] } }
    }

    /// The shape at a column.
    #[inline(always)]
    pub fn at(&self, column: usize) -> f64 {
        if let [one] = self.shapes { *one } else { self.shapes[column] }
    }
}
