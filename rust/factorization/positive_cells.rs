//! The cells with a positive release, listed once by row and released value: releases never change, and what the cells of a
//! group do with their rates has the same shape.

use super::cell::SHORT;
use super::row::{HELD_OUT, Row};
use crate::distributions::two_piece_cells::Group;

/// Releases that have groups of their own.
const GROUPS: usize = SHORT as usize;

/// Lists of columns.
#[derive(Clone, Debug)]
pub struct PositiveCells {
    columns: Vec<u32>,
    /// Release and number of cells; 0 for the cells of larger releases, which come last.
    groups: Vec<(u32, u32)>,
    /// Where the columns and the groups of each row start.
    starts: Vec<(usize, usize)>,
    others: Vec<NonPositiveCells>,
}

/// What never changes of the cells of a row whose release is not positive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NonPositiveCells {
    /// How many are not held out.
    pub observed: usize,
    /// The sum of their distances from zero.
    pub distance: i64,
}

/// The lists of a row.
#[derive(Clone, Copy, Debug)]
pub struct RowCells<'a> {
    columns: &'a [u32],
    groups: &'a [(u32, u32)],
    /// The other cells.
    pub others: NonPositiveCells,
}

impl PositiveCells {
    /// The lists of some rows, of which so many cells are positive.
    pub fn new<'a>(rows: impl Iterator<Item = Row<'a>>, positive: usize) -> Self {
        let mut lists =
            Self { columns: Vec::with_capacity(positive), groups: vec![], starts: vec![(0, 0)], others: vec![] };
        for row in rows {
            // Group g holds release g + 1 and the last one whatever is larger: a counting sort, in which `ends[g]` is first the
            // number of its cells, then where its next column goes.
            let group = |code: i8| if i64::from(code) <= SHORT { code as usize - 1 } else { GROUPS };
            let positive = || row.codes.iter().enumerate().filter(|(_, code)| **code > 0);
            let mut ends = [0; GROUPS + 1];
            positive().for_each(|(_, &code)| ends[group(code)] += 1);
            let mut end = lists.columns.len();
            for (released, place) in ends.iter_mut().enumerate() {
                let number = *place;
                if number > 0 {
                    lists.groups.push(((released as u32 + 1) % (GROUPS as u32 + 1), number as u32));
                }
                (*place, end) = (end, end + number);
            }
            lists.columns.resize(end, 0);
            for (column, &code) in positive() {
                let place = &mut ends[group(code)];
                lists.columns[*place] = column as u32;
                *place += 1;
            }
            lists.starts.push((end, lists.groups.len()));
            let others = row.codes.iter().filter(|&&code| code <= 0 && code != HELD_OUT).map(|&code| i64::from(code));
            let add = |sum: NonPositiveCells, code: i64| NonPositiveCells {
                observed: sum.observed + 1,
                distance: sum.distance - code,
            };
            lists.others.push(others.fold(NonPositiveCells::default(), add));
        }
        lists.groups.shrink_to_fit();
        lists
    }

    /// The lists of a row.
    pub fn row(&self, row: usize) -> RowCells<'_> {
        let ((columns, groups), (last, end)) = (self.starts[row], self.starts[row + 1]);
        RowCells { columns: &self.columns[columns..last], groups: &self.groups[groups..end], others: self.others[row] }
    }

    /// Bytes they take.
    pub fn bytes(&self) -> usize {
        4 * self.columns.len() + 8 * self.groups.len() + 32 * self.starts.len()
    }
}

impl<'a> RowCells<'a> {
    /// Number of cells.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// The groups of releases up to `largest`, at most [`SHORT`].
    #[inline(always)]
    pub fn groups(&self, largest: usize) -> impl Iterator<Item = Group<'a>> + use<'a> {
        let mut rest = self.columns;
        self.groups.iter().map_while(move |&(released, number)| {
            let (columns, others) = rest.split_at(number as usize);
            rest = others;
            (released > 0 && released as usize <= largest).then_some(Group { released: released as usize, columns })
        })
    }

    /// The columns of larger releases.
    pub fn beyond(&self, largest: usize) -> &'a [u32] {
        let served: usize = self.groups(largest).map(|group| group.columns.len()).sum();
        &self.columns[served..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::released_counts::{Alpha, ReleasedCounts};

    #[test]
    fn every_positive_cell_is_in_the_list_of_its_release() {
        let values: Vec<i64> =
            (0..700).map(|i: i64| (i * i * 7919) % 83 - 9 + if i % 97 == 5 { 1 << 40 } else { 0 }).collect();
        let mut mask = vec![0; values.len()];
        mask[13] = 1;
        let table = ReleasedCounts::new(&values, 7, 100, Alpha::One(0.5), Some(&mask)).unwrap();
        let lists = PositiveCells::new((0..7).map(|row| table.row(row)), table.positive());
        let mut seen = 0;
        for row in 0..7 {
            let (cells, data) = (lists.row(row), table.row(row));
            for Group { released, columns } in cells.groups(64) {
                assert!(columns.windows(2).all(|pair| pair[0] < pair[1]) && !columns.is_empty());
                assert!(columns.iter().all(|&v| usize::try_from(data.codes[v as usize]) == Ok(released)));
                seen += columns.len();
            }
            assert!(cells.beyond(64).iter().all(|&v| data.codes[v as usize] > 64));
            seen += cells.beyond(64).len();
            let others = || data.codes.iter().filter(|&&code| code <= 0 && code != HELD_OUT);
            let distance = others().map(|&code| -i64::from(code)).sum();
            assert_eq!(cells.others, NonPositiveCells { observed: others().count(), distance });
            let short: usize = cells.groups(20).map(|group| group.columns.len()).sum();
            assert_eq!(short + cells.beyond(20).len(), cells.len());
        }
        assert_eq!(seen, table.positive());
    }
}
