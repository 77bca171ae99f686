//! The covariance of the numbers of records in the cells of tables, under a law on a junction tree, and its inverse: what the
//! steps of a fit to noisy tables ask for.
//!
//! The covariance times a direction is the derivative of the expected numbers as the logarithms of the law's factors go along
//! it. With p(C) the law of a clique and p(C | S) that given its separator, cliques send the mean of what pushes them towards
//! the root, and the changes of the separators' laws come back:
//!
//! ```text
//! m(S) = sum of p(C | S) push(C),    push(C) -= m(S),    push(parent) += m(S)
//! dp(C) = p(C) push(C) + p(C | S) dp(S)
//! ```
//!
//! Sources: S. L. Lauritzen and D. J. Spiegelhalter (1988), Local computations with probabilities on graphical structures,
//! J. R. Statist. Soc. B 50, for the passes; M. R. Hestenes and E. Stiefel (1952), Methods of conjugate gradients for solving
//! linear systems, J. Res. NBS 49.

use crate::monitor::Monitor;
use crate::numeric::dispatch::{at_level, level};
use crate::{Error, Result};
use std::ops::Range;

/// A table of some columns of a clique. The clique's own table has rows, of its first columns, and places in them, of its last
/// ones; what is at place j of row i belongs to cell `first + width * rows[i] + places[j]` of the smaller table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells {
    /// Where the smaller table starts, in a vector of several.
    pub first: usize,
    /// How many cells the smaller table has of the last columns.
    pub width: usize,
    /// For each row its row of the smaller table.
    pub rows: Vec<u32>,
    /// For each place in a row its place in that of the smaller table.
    pub places: Vec<u32>,
}

/// A clique of a junction tree, by what its cells belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clique {
    /// The separator towards the root; that of the root has one cell.
    pub separator: Cells,
    /// The clique towards the root, which stands before it, and the separator as a table of that one.
    pub parent: Option<(usize, Cells)>,
    /// The tables that this clique is asked for, in the vector of all.
    pub tables: Vec<Cells>,
}

/// A law: of each clique, one after the other, the probabilities of its cells, and those given the separator.
#[derive(Clone, Copy, Debug)]
pub struct Law<'a> {
    /// Probabilities of cells.
    pub marginals: &'a [f64],
    /// Probabilities of cells given their cell of the separator.
    pub given: &'a [f64],
}

impl Cells {
    fn len(&self) -> usize {
        self.rows.len() * self.places.len()
    }

    /// One more than the last cell of the vector that belongs to this table.
    fn end(&self) -> usize {
        let last = |numbers: &[u32]| numbers.iter().max().map_or(0, |&last| last as usize);
        self.first + self.width * last(&self.rows) + last(&self.places) + 1
    }

    /// Refuses a table that is not one of a clique of this shape, within a vector of so many cells.
    fn check(&self, (rows, places): (usize, usize), cells: usize) -> Result<()> {
        Error::require_shape("cells", [rows, places], [self.rows.len(), self.places.len()])?;
        Error::require(self.end() <= cells && rows > 0 && places > 0, "cells", self.end(), "within the tables")
    }

    /// The row of a buffer that a row of the clique belongs to: as wide as those of the clique.
    #[inline(always)]
    fn of_row(&self, row: u32) -> Range<usize> {
        let width = self.places.len();
        row as usize * width..(row as usize + 1) * width
    }

    /// The rows of the smaller table, each spread over the places of the clique's.
    #[inline(always)]
    fn spread(&self, values: &[f64], buffer: &mut Vec<f64>) {
        buffer.clear();
        for row in values[self.first..self.end()].chunks(self.width) {
            buffer.extend(self.places.iter().map(|&place| row[place as usize]));
        }
    }

    /// Calls `act` with each row of the clique and what the smaller table says of it.
    #[inline(always)]
    fn each<'a, R>(
        &self,
        values: &[f64],
        rows: impl Iterator<Item = R>,
        buffer: &'a mut Vec<f64>,
        act: impl Fn(R, &'a [f64]),
    ) {
        self.spread(values, buffer);
        rows.zip(&self.rows).for_each(|(own, &row)| act(own, &buffer[self.of_row(row)]));
    }

    /// Adds the rows of the clique to the smaller table, each as `add` adds it to a row as wide.
    #[inline(always)]
    fn sum<R>(
        &self,
        rows: impl Iterator<Item = R>,
        values: &mut [f64],
        buffer: &mut Vec<f64>,
        add: impl Fn(&mut [f64], R),
    ) {
        buffer.clear();
        buffer.resize((self.end() - self.first).div_ceil(self.width) * self.places.len(), 0.0);
        rows.zip(&self.rows).for_each(|(own, &row)| add(&mut buffer[self.of_row(row)], own));
        let sums = buffer.chunks_exact(self.places.len());
        for (row, sums) in values[self.first..self.end()].chunks_mut(self.width).zip(sums) {
            self.places.iter().zip(sums).for_each(|(&place, sum)| row[place as usize] += sum);
        }
    }
}

#[inline(always)]
fn add(to: &mut [f64], from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

/// The tables on their tree. Numbers are told in units of their own: the deviations of the noise of the cells.
#[derive(Clone, Debug)]
pub struct TableCovariance {
    cliques: Vec<Clique>,
    cells: Vec<Range<usize>>,
    separators: Vec<Range<usize>>,
    /// One over the unit of each cell of the tables.
    weights: Vec<f64>,
    total: f64,
}

/// What a product works with: the cells of all cliques, those of all separators, and rows of one table.
struct Scratch {
    cells: Vec<f64>,
    separators: Vec<f64>,
    rows: Vec<f64>,
}

impl TableCovariance {
    /// Tables of so many records on a tree.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::Domain`] where cliques, cells and tables do not fit one another.
    pub fn new(cliques: Vec<Clique>, weights: Vec<f64>, total: f64) -> Result<Self> {
        let (mut cells, mut separators) = (vec![0..0; cliques.len()], vec![0..0; cliques.len()]);
        let (mut cell, mut separator) = (0, 0);
        for (place, clique) in cliques.iter().enumerate() {
            let Clique { separator: own, parent, tables } = clique;
            let (shape, shared) = ((own.rows.len(), own.places.len()), own.end());
            own.check(shape, shared)?;
            Error::require(own.first == 0, "first", own.first, "0 of a separator")?;
            if let Some((parent, above)) = parent {
                Error::require(*parent < place, "parent", parent, "before its clique")?;
                let parent = &cliques[*parent].separator;
                above.check((parent.rows.len(), parent.places.len()), shared)?;
                Error::require(above.first == 0, "first", above.first, "0 of a separator")?;
            } else {
                Error::require(shared == 1, "separator", shared, "of one cell where there is no parent")?;
            }
            for table in std::iter::once(own).chain(parent.iter().map(|(_, above)| above)).chain(tables) {
                Error::require(
                    table.places.iter().all(|&at| (at as usize) < table.width),
                    "width",
                    table.width,
                    "above its places",
                )?;
            }
            tables.iter().try_for_each(|table| table.check(shape, weights.len()))?;
            cells[place] = cell..cell + own.len();
            separators[place] = separator..separator + shared;
            (cell, separator) = (cell + own.len(), separator + shared);
        }
        Ok(Self { cliques, cells, separators, weights, total })
    }

    fn check(&self, law: Law<'_>, vectors: &[&[f64]]) -> Result<Scratch> {
        let cells = self.cells.last().map_or(0, |last| last.end);
        Error::require_shape("marginals", [cells], [law.marginals.len()])?;
        Error::require_shape("given", [cells], [law.given.len()])?;
        vectors.iter().try_for_each(|vector| Error::require_shape("vector", [self.weights.len()], [vector.len()]))?;
        let separators = self.separators.last().map_or(0, |last| last.end);
        Ok(Scratch { cells: vec![0.0; cells], separators: vec![0.0; separators], rows: vec![] })
    }

    /// The covariance times a direction.
    ///
    /// # Errors
    /// [`Error::Shape`] unless law and direction are those of the tables.
    pub fn times(&self, law: Law<'_>, direction: &[f64]) -> Result<Vec<f64>> {
        let mut scratch = self.check(law, &[direction])?;
        Ok(at_level!(level(), self.product(law, direction, &mut scratch)))
    }

    #[inline(always)]
    fn product(&self, law: Law<'_>, direction: &[f64], scratch: &mut Scratch) -> Vec<f64> {
        let moved: Vec<f64> = direction.iter().zip(&self.weights).map(|(along, weight)| along * weight).collect();
        let Scratch { cells, separators, rows } = scratch;
        cells.fill(0.0);
        separators.fill(0.0);
        for (place, clique) in self.cliques.iter().enumerate().rev() {
            let (own, width) = (self.cells[place].clone(), clique.separator.places.len());
            let (before, pushes) = cells[..own.end].split_at_mut(own.start);
            for table in &clique.tables {
                table.each(&moved, pushes.chunks_exact_mut(width), rows, add);
            }
            let means = &mut separators[self.separators[place].clone()];
            let pairs = pushes.chunks_exact(width).zip(law.given[own].chunks_exact(width));
            clique.separator.sum(pairs, means, rows, |sums, (pushes, given)| {
                sums.iter_mut().zip(pushes.iter().zip(given)).for_each(|(sum, (push, given))| *sum += given * push);
            });
            clique.separator.each(means, pushes.chunks_exact_mut(width), rows, |pushes, means| {
                pushes.iter_mut().zip(means).for_each(|(push, mean)| *push -= mean);
            });
            if let Some((parent, above)) = &clique.parent {
                let pushes = &mut before[self.cells[*parent].clone()];
                above.each(means, pushes.chunks_exact_mut(above.places.len()), rows, add);
            }
        }
        let mut found = vec![0.0; self.weights.len()];
        for (place, clique) in self.cliques.iter().enumerate() {
            let (own, width) = (self.cells[place].clone(), clique.separator.places.len());
            let (before, changes) = cells[..own.end].split_at_mut(own.start);
            let shared = &mut separators[self.separators[place].clone()];
            shared.fill(0.0);
            if let Some((parent, above)) = &clique.parent {
                let changes = &before[self.cells[*parent].clone()];
                above.sum(changes.chunks_exact(above.places.len()), shared, rows, add);
            }
            let law = law.marginals[own.clone()].chunks_exact(width).zip(law.given[own].chunks_exact(width));
            let of_rows = changes.chunks_exact_mut(width).zip(law);
            clique.separator.each(shared, of_rows, rows, |(changes, (joint, given)), shared| {
                let law = joint.iter().zip(given).zip(shared);
                let change =
                    |change: f64, ((joint, given), shared): ((&f64, &f64), &f64)| joint * change + given * shared;
                changes.iter_mut().zip(law).for_each(|(own, law)| *own = change(*own, law));
            });
            for table in &clique.tables {
                table.sum(changes.chunks_exact(width), &mut found, rows, add);
            }
        }
        found.iter_mut().zip(&self.weights).for_each(|(change, weight)| *change *= self.total * weight);
        found
    }

    /// The x with (covariance + tau) x = right, to a share of the right, by at most so many conjugate gradients after a diagonal.
    ///
    /// # Errors
    /// [`Error::Shape`] unless law, right and diagonal are those of the tables; whatever the monitor returned.
    pub fn solve(
        &self,
        law: Law<'_>,
        (right, diagonal): (&[f64], &[f64]),
        tau: f64,
        (share, directions): (f64, usize),
        monitor: &mut dyn Monitor,
    ) -> Result<Vec<f64>> {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let mut scratch = self.check(law, &[right, diagonal])?;
        let (mut found, mut rest) = (vec![0.0; right.len()], right.to_vec());
        let mut scaled: Vec<f64> = rest.iter().zip(diagonal).map(|(rest, own)| rest / own).collect();
        let mut direction = scaled.clone();
        let mut size = dot(&rest, &direction);
        let enough = share * share * size;
        for done in 0..directions {
            monitor.tick(done as u64, directions as u64)?;
            if size.is_nan() || size <= enough {
                break;
            }
            let mut bent = at_level!(level(), self.product(law, &direction, &mut scratch));
            bent.iter_mut().zip(&direction).for_each(|(bent, along)| *bent += tau * along);
            let length = size / dot(&direction, &bent);
            found.iter_mut().zip(&direction).for_each(|(found, along)| *found += length * along);
            rest.iter_mut().zip(&bent).for_each(|(rest, bent)| *rest -= length * bent);
            scaled.iter_mut().zip(&rest).zip(diagonal).for_each(|((scaled, rest), own)| *scaled = rest / own);
            let before = std::mem::replace(&mut size, dot(&rest, &scaled));
            direction.iter_mut().zip(&scaled).for_each(|(along, scaled)| *along = scaled + size / before * *along);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Silent;

    fn cells(first: usize, width: usize, rows: &[u32], places: &[u32]) -> Cells {
        Cells { first, width, rows: rows.to_vec(), places: places.to_vec() }
    }

    /// Bits a, b, c with p(a, b) p(c | b), and tables of (a, b), of c and of (b, c).
    fn chain() -> (TableCovariance, [Vec<f64>; 2], Vec<[f64; 8]>) {
        let first: [f64; 4] = [0.1, 0.2, 0.3, 0.4]; // a, b
        let given: [f64; 4] = [0.25, 0.75, 0.6, 0.4]; // b, c
        let of_b = [0.4, 0.6];
        // The first clique has its columns apart, the second both in the places of one row.
        let cliques = vec![
            Clique {
                separator: cells(0, 1, &[0, 0], &[0, 0]),
                parent: None,
                tables: vec![cells(0, 2, &[0, 1], &[0, 1])],
            },
            Clique {
                separator: cells(0, 2, &[0], &[0, 0, 1, 1]),
                parent: Some((0, cells(0, 2, &[0, 0], &[0, 1]))),
                tables: vec![cells(4, 2, &[0], &[0, 1, 0, 1]), cells(6, 4, &[0], &[0, 1, 2, 3])],
            },
        ];
        let weights: Vec<f64> = (1..=10).map(|i| 1.0 / f64::from(i)).collect();
        let joint: Vec<f64> = first.iter().copied().chain((0..4).map(|i| of_b[i / 2] * given[i])).collect();
        let given: Vec<f64> = first.iter().copied().chain(given).collect();
        // Of each cell of the tables, in which of the eight states (a, b, c) it holds a record, over its unit.
        let held = (0..10)
            .map(|cell| {
                std::array::from_fn(|state| {
                    let (a, b, c) = (state / 4, state / 2 % 2, state % 2);
                    let cells = [2 * a + b, 4 + c, 6 + 2 * b + c];
                    if cells.contains(&cell) { weights[cell] } else { 0.0 }
                })
            })
            .collect();
        (TableCovariance::new(cliques, weights, 50.0).unwrap(), [joint, given], held)
    }

    fn exact(held: &[[f64; 8]]) -> Vec<Vec<f64>> {
        let states = [0.025, 0.075, 0.12, 0.08, 0.075, 0.225, 0.24, 0.16];
        let mean = |f: &dyn Fn(usize) -> f64| (0..8).map(|state| states[state] * f(state)).sum::<f64>();
        let pair = |i: usize, j: usize| {
            50.0 * (mean(&|s| held[i][s] * held[j][s]) - mean(&|s| held[i][s]) * mean(&|s| held[j][s]))
        };
        (0..10).map(|i| (0..10).map(|j| pair(i, j)).collect()).collect()
    }

    #[test]
    fn columns_of_the_covariance_are_those_of_all_states() {
        let (covariance, [joint, given], held) = chain();
        let law = Law { marginals: &joint, given: &given };
        for (j, row) in exact(&held).iter().enumerate() {
            let direction: Vec<f64> = (0..10).map(|i| f64::from(u8::from(i == j))).collect();
            let found = covariance.times(law, &direction).unwrap();
            assert!(found.iter().zip(row).all(|(a, b)| (a - b).abs() < 1e-14), "{found:?} {row:?}");
        }
    }

    #[test]
    fn what_is_solved_for_gives_the_right_side() {
        let (covariance, [joint, given], held) = chain();
        let law = Law { marginals: &joint, given: &given };
        let right: Vec<f64> = (0..10).map(|i| f64::from(i * i % 7) - 3.0).collect();
        let diagonal: Vec<f64> = exact(&held).iter().enumerate().map(|(i, row)| row[i] + 0.5).collect();
        let found = covariance.solve(law, (&right, &diagonal), 0.5, (1e-12, 60), &mut Silent).unwrap();
        let product = covariance.times(law, &found).unwrap();
        for ((product, found), right) in product.iter().zip(&found).zip(&right) {
            assert!((product + 0.5 * found - right).abs() < 1e-9);
        }
        // Nothing is asked for where the right is nothing, and no direction is taken where none is allowed.
        for (right, directions) in [(vec![0.0; 10], 60), (right, 0)] {
            assert_eq!(
                covariance.solve(law, (&right, &diagonal), 0.5, (0.1, directions), &mut Silent).unwrap(),
                [0.0; 10]
            );
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let (covariance, [joint, given], _) = chain();
        let law = Law { marginals: &joint, given: &given };
        assert!(covariance.times(law, &[0.0; 9]).is_err());
        assert!(covariance.times(Law { marginals: &joint[1..], given: &given }, &[0.0; 10]).is_err());
        assert!(covariance.solve(law, (&[0.0; 10], &[1.0; 9]), 1.0, (0.1, 1), &mut Silent).is_err());
        let alone = || cells(0, 1, &[0], &[0, 0]);
        let root = |tables| Clique { separator: alone(), parent: None, tables };
        let child = |place, above| Clique {
            separator: cells(0, 2, &[0], &[0, 1]),
            parent: Some((place, above)),
            tables: vec![],
        };
        let pair = || cells(0, 2, &[0], &[0, 1]);
        assert!(TableCovariance::new(vec![root(vec![pair()]), child(0, pair())], vec![1.0; 2], 1.0).is_ok());
        for cliques in [
            vec![root(vec![cells(1, 2, &[0], &[0, 1])])],
            vec![root(vec![cells(0, 2, &[0, 1], &[0])])],
            vec![root(vec![cells(0, 1, &[0], &[0, 1])])],
            vec![root(vec![cells(0, 2, &[0], &[0])])],
            vec![Clique { separator: pair(), parent: None, tables: vec![] }],
            vec![Clique { separator: cells(0, 1, &[0], &[]), parent: None, tables: vec![] }],
            vec![root(vec![]), child(1, pair())],
            vec![root(vec![]), child(0, cells(0, 2, &[1], &[0, 1]))],
            vec![root(vec![]), child(0, cells(1, 2, &[0], &[0, 0]))],
            vec![root(vec![]), child(0, cells(0, 2, &[0], &[0]))],
        ] {
            assert!(TableCovariance::new(cliques, vec![1.0; 2], 1.0).is_err());
        }
    }
}
