//! Contingency tables of the families of a network, from columns of bits or of category codes.
//!
//! Bits: 64 records a word. For a family S the numbers m(T) of records with all bits of T set, T within S, are popcounts of
//! conjunctions; the table follows by subtraction (Moebius inversion over the subsets). Wider families and categories that are not binary
//! are counted record by record. Values outside a column's categories are clipped, each record by itself.
//!
//! Source: R. Stanley (2012), Enumerative Combinatorics 1, 2nd ed., theorem 2.1.1 (inclusion and exclusion).

use crate::monitor::Monitor;
use crate::numeric::dispatch::{at_level, level};
use crate::{Error, Result};

/// Families wider than this are counted record by record: of 64 records they would take 2^width conjunctions.
const WIDE: usize = 8;
/// Records between two looks at the monitor.
const BATCH: usize = 1 << 18;

/// A value in a table of data.
pub trait Code: Copy {
    /// The category, clipped to 0..categories.
    fn category(self, categories: u32) -> u32;
}

impl Code for u8 {
    #[inline(always)]
    fn category(self, categories: u32) -> u32 {
        u32::from(self).min(categories - 1)
    }
}

impl Code for i64 {
    #[inline(always)]
    fn category(self, categories: u32) -> u32 {
        self.clamp(0, i64::from(categories) - 1) as u32
    }
}

/// Columns of bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitColumns {
    rows: usize,
    columns: Vec<Vec<u64>>,
}

/// Writes the bits of some records, 64 to a word, into the words of each column from `first` on.
#[inline(always)]
fn pack<T: Code>(data: &[T], width: usize, columns: &mut [Vec<u64>], first: usize) {
    for (place, rows) in data.chunks(64 * width).enumerate() {
        for (j, column) in columns.iter_mut().enumerate() {
            let mut word = 0;
            for (i, row) in rows.chunks_exact(width).enumerate() {
                word |= u64::from(row[j].category(2)) << i;
            }
            column[first + place] = word;
        }
    }
}

impl BitColumns {
    /// Packs a row-major table of records.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `data` holds whole rows; whatever the monitor returned.
    pub fn pack<T: Code>(data: &[T], width: usize, monitor: &mut dyn Monitor) -> Result<Self> {
        let rows = Error::require_rows("data", width, data.len())?;
        let mut columns = vec![vec![0; rows.div_ceil(64)]; width];
        for (batch, part) in data.chunks(BATCH * width).enumerate() {
            monitor.tick((batch * BATCH) as u64, rows as u64)?;
            at_level!(level(), pack(part, width, &mut columns, batch * BATCH / 64));
        }
        Ok(Self { rows, columns })
    }

    /// Records.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// The table of a family of columns, the last one fastest.
    ///
    /// # Errors
    /// [`Error::Domain`] for a column that does not exist or a family of more than 25.
    pub fn count(&self, family: &[usize]) -> Result<Vec<i64>> {
        check_family(family, self.columns.len())?;
        // Axis by axis as bits of the cell's index, the last column lowest.
        let columns: Vec<&[u64]> = family.iter().rev().map(|&j| &self.columns[j][..]).collect();
        let mut table =
            if columns.len() <= WIDE { at_level!(level(), conjunctions(&columns)) } else { self.one_by_one(&columns) };
        if columns.len() <= WIDE {
            table[0] = self.rows as i64;
            for bit in 0..columns.len() {
                for cell in (0..table.len()).filter(|cell| cell >> bit & 1 == 0) {
                    table[cell] -= table[cell | 1 << bit];
                }
            }
        }
        Ok(table)
    }

    fn one_by_one(&self, columns: &[&[u64]]) -> Vec<i64> {
        let mut table = vec![0; 1 << columns.len()];
        for row in 0..self.rows {
            let bit = |(j, column): (usize, &&[u64])| ((column[row / 64] >> (row % 64) & 1) as usize) << j;
            table[columns.iter().enumerate().map(bit).sum::<usize>()] += 1;
        }
        table
    }
}

/// For each set of columns the number of records that have all of its bits.
#[inline(always)]
fn conjunctions(columns: &[&[u64]]) -> Vec<i64> {
    let width = columns.len();
    let mut sums = vec![0i64; 1 << width];
    match *columns {
        [a] => sums[1] = a.iter().map(|word| i64::from(word.count_ones())).sum(),
        [a, b] => {
            for (a, b) in a.iter().zip(b) {
                sums[1] += i64::from(a.count_ones());
                sums[2] += i64::from(b.count_ones());
                sums[3] += i64::from((a & b).count_ones());
            }
        }
        _ => {
            let mut conjunctions = [!0u64; 1 << WIDE];
            for place in 0..columns.first().map_or(0, |column| column.len()) {
                for (bit, column) in columns.iter().enumerate() {
                    for cell in 0..1usize << bit {
                        let both = conjunctions[cell] & column[place];
                        conjunctions[cell | 1 << bit] = both;
                        sums[cell | 1 << bit] += i64::from(both.count_ones());
                    }
                }
            }
        }
    }
    sums
}

fn check_family(family: &[usize], width: usize) -> Result<()> {
    Error::require_all(family, |column| column < width, "family", "columns of the data")?;
    Error::require(family.len() <= 25, "family", family.len(), "of at most 25 columns")
}

/// The tables of families of columns with any numbers of categories, from row-major data; the last column of a family is fastest.
///
/// # Errors
/// [`Error::Shape`] and [`Error::Domain`] for what does not fit; whatever the monitor returned.
pub fn count_families<T: Code>(
    data: &[T],
    categories: &[u32],
    families: &[Vec<usize>],
    monitor: &mut dyn Monitor,
) -> Result<Vec<Vec<i64>>> {
    let width = categories.len();
    let rows = Error::require_rows("data", width, data.len())?;
    Error::require_all(categories, |number| number > 0, "cardinalities", "at least 1")?;
    let mut tables = Vec::with_capacity(families.len());
    for family in families {
        check_family(family, width)?;
        let cells = family.iter().try_fold(1usize, |cells, &j| cells.checked_mul(categories[j] as usize));
        let cells = cells.filter(|&cells| cells <= 1 << 28).ok_or(Error::TooLarge {
            what: "a family's table",
            needed: family.iter().map(|&j| u128::from(categories[j])).product::<u128>() * 8,
            limit: 8 << 28,
        })?;
        tables.push(vec![0i64; cells]);
    }
    for (batch, part) in data.chunks(BATCH * width).enumerate() {
        monitor.tick((batch * BATCH) as u64, rows as u64)?;
        for (family, table) in families.iter().zip(&mut tables) {
            for row in part.chunks_exact(width) {
                let cell = family
                    .iter()
                    .fold(0usize, |cell, &j| cell * categories[j] as usize + row[j].category(categories[j]) as usize);
                table[cell] += 1;
            }
        }
    }
    Ok(tables)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Silent;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bits_and_codes_are_counted_alike(bytes in proptest::collection::vec(0u8..3, 0..900)) {
            let data = &bytes[..bytes.len() / 9 * 9];
            let packed = BitColumns::pack(data, 9, &mut Silent).unwrap();
            let families = vec![vec![0], vec![3, 1], vec![8, 2, 5], vec![], (0..9).collect(), (0..7).rev().collect()];
            let tables = count_families(data, &[2; 9], &families, &mut Silent).unwrap();
            let wide: Vec<i64> = data.iter().map(|&byte| i64::from(byte)).collect();
            prop_assert_eq!(&tables, &count_families(&wide, &[2; 9], &families, &mut Silent).unwrap());
            for (family, table) in families.iter().zip(tables) {
                prop_assert_eq!(packed.count(family).unwrap(), table);
            }
        }
    }

    #[test]
    fn cells_follow_the_axes_and_values_outside_are_clipped() {
        let data = [0i64, 2, 1, 5, -3, 1];
        let tables = count_families(&data, &[2, 3], &[vec![0, 1], vec![1]], &mut Silent).unwrap();
        assert_eq!(tables, [vec![0, 1, 1, 0, 0, 1], vec![0, 1, 2]]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(BitColumns::pack(&[0u8; 5], 2, &mut Silent).is_err());
        assert!(BitColumns::pack(&[0u8; 4], 2, &mut Silent).unwrap().count(&[2]).is_err());
        assert!(count_families(&[0u8; 4], &[2, 0], &[vec![0]], &mut Silent).is_err());
        assert!(count_families(&[0u8; 4], &[1 << 16; 2], &[vec![0, 1]], &mut Silent).is_err());
    }
}
