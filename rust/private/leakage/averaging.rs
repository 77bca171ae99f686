//! Averaging a channel over a group, given its orbits on pairs, without ever listing the group.
//!
//! M'_hk = 1/|G| sum_g M_(g h)(g k) = the mean of M over the pairs in the orbital of (h, k)   (Reynolds operator).
//!
//! Row orbits are done one after the other, for their orbitals are disjoint: a first pass over the rows of an orbit adds
//! up, a second writes the means. Rows are taken in blocks of a size that depends on the matrix alone and the sums of the blocks
//! are joined in order, so the result does not depend on the number of threads. Sums have twice the working precision, so
//! averaging what was averaged changes no bit.
//!
//! Cost: each entry is read and written once, and its class, of two bytes, read twice.
//!
//! Source: B. Sturmfels (1993), Algorithms in Invariant Theory, section 2.1 (the operator); passes and blocks are derived here.

use super::ChannelMatrix;
use super::sums::CompensatedSum;
use super::vector::{finish, stream};
use crate::graphs::automorphism::{OrbitalBlock, Orbitals};
use crate::monitor::{Monitor, Progress};
use crate::{Error, Result, parallel};
use std::ops::Range;

/// Entries of a block of rows, and the largest number of blocks of a row orbit.
const BLOCK: usize = 1 << 18;
const BLOCKS: usize = 64;
/// Up to this many classes each has eight sums, so that equal classes side by side do not wait for each other.
const FEW_CLASSES: usize = 512;
const LANES: usize = 8;

/// The pairs that begin in one row orbit and end in the columns.
struct OrbitPart<'a> {
    block: &'a OrbitalBlock,
    columns: Range<usize>,
}

impl OrbitPart<'_> {
    /// Number of rows.
    fn rows(&self) -> usize {
        self.block.members().len()
    }

    /// The classes of the pairs of the `index`-th row.
    fn classes(&self, index: usize) -> &[u16] {
        &self.block.row(index)[self.columns.clone()]
    }

    fn entries<'m>(&self, matrix: ChannelMatrix<'m>, index: usize) -> &'m [f64] {
        matrix.row(self.block.members()[index] as usize)
    }
}

/// Writes the average of `matrix` into `output`. The points of the group are the rows, which are the columns as well, or the
/// rows followed by the columns.
///
/// # Errors
/// [`Error::Shape`] if the sizes differ, [`Error::Domain`] if rows and columns share an orbit; the monitor's objection.
pub fn average(
    matrix: ChannelMatrix<'_>,
    orbitals: &Orbitals,
    output: &mut [f64],
    threads: usize,
    monitor: &mut dyn Monitor,
) -> Result<()> {
    let (rows, cols, points) = (matrix.rows(), matrix.cols(), orbitals.points());
    let apart = points == rows + cols;
    if !(apart || points == rows && rows == cols) || output.len() != rows * cols {
        return Err(Error::shape("matrix", format_args!("({points}, {points})"), format_args!("({rows}, {cols})")));
    }
    let of_rows = |block: &&OrbitalBlock| (block.members()[0] as usize) < rows;
    let among_rows = |block: &OrbitalBlock| block.members().iter().all(|&h| (h as usize) < rows);
    let unmixed = orbitals.blocks().iter().filter(of_rows).all(among_rows);
    Error::require(unmixed, "orbitals", "one that mixes them", "a group that maps rows to rows")?;
    let columns = if apart { rows..points } else { 0..cols };
    let mut targets: Vec<Option<&mut [f64]>> = output.chunks_exact_mut(cols).map(Some).collect();
    let mut targets_of = |block: &OrbitalBlock| -> Vec<&mut [f64]> {
        block.members().iter().filter_map(|&row| targets[row as usize].take()).collect()
    };
    let (small, large): (Vec<_>, Vec<_>) = orbitals
        .blocks()
        .iter()
        .filter(of_rows)
        .map(|block| (targets_of(block), OrbitPart { block, columns: columns.clone() }))
        .partition(|(_, part)| part.rows() * cols <= BLOCK);
    parallel::run(threads, 2 * rows as u64, monitor, |progress| {
        parallel::each(small, |(targets, part)| {
            let sums = add_up(matrix, &part, 0..part.rows(), progress)?;
            write(&part, &means(&part, sums), 0, targets, progress)
        })?;
        for (mut targets, part) in large {
            let rows = (BLOCK / cols).max(part.rows().div_ceil(BLOCKS)).max(1);
            let starts: Vec<usize> = (0..part.rows()).step_by(rows).collect();
            let blocks = parallel::try_map(starts.len(), |i| {
                add_up(matrix, &part, starts[i]..(starts[i] + rows).min(part.rows()), progress)
            })?;
            let joined = blocks.into_iter().reduce(|mut total, block| {
                total.iter_mut().zip(block).for_each(|(total, sum)| total.merge(sum));
                total
            });
            let means = means(&part, joined.unwrap_or_default());
            parallel::pieces(
                &mut targets,
                rows,
                || (),
                |(), i, targets| {
                    let targets = targets.iter_mut().map(|target| &mut **target).collect();
                    write(&part, &means, starts[i], targets, progress)
                },
            )?;
        }
        Ok(())
    })
}

/// The sum over some rows of an orbit for each of its classes.
fn add_up(
    matrix: ChannelMatrix<'_>,
    part: &OrbitPart<'_>,
    rows: Range<usize>,
    progress: &Progress,
) -> Result<Vec<CompensatedSum>> {
    let count = part.block.count();
    if count > FEW_CLASSES {
        let mut sums = vec![CompensatedSum::default(); count];
        for index in rows {
            let classes = part.classes(index).iter();
            classes.zip(part.entries(matrix, index)).for_each(|(&class, &entry)| sums[usize::from(class)].add(entry));
            progress.advance(1)?;
        }
        return Ok(sums);
    }
    let mut sums = Box::new([[CompensatedSum::default(); LANES]; FEW_CLASSES]);
    for index in rows {
        add_row(&mut sums, part.entries(matrix, index), part.classes(index));
        progress.advance(1)?;
    }
    let join = |lanes: &[CompensatedSum; LANES]| {
        lanes.iter().fold(CompensatedSum::default(), |mut total, &lane| {
            total.merge(lane);
            total
        })
    };
    Ok(sums[..count].iter().map(join).collect())
}

/// Adds a row to the sums.
#[inline]
fn add_row(sums: &mut [[CompensatedSum; LANES]; FEW_CLASSES], entries: &[f64], classes: &[u16]) {
    // Classes are below the number of sums; saying so again spares the check.
    let mut add = |lane: usize, entry: f64, class: u16| sums[usize::from(class) % FEW_CLASSES][lane].add(entry);
    let (entries, classes) = (entries.chunks_exact(LANES), classes.chunks_exact(LANES));
    let rest = entries.remainder().iter().zip(classes.remainder());
    rest.enumerate().for_each(|(lane, (&entry, &class))| add(lane, entry, class));
    for (entries, classes) in entries.zip(classes) {
        for lane in 0..LANES {
            add(lane, entries[lane], classes[lane]);
        }
    }
}

/// The mean for each class of an orbit: in each of its rows a class occurs as often as in the first.
fn means(part: &OrbitPart<'_>, sums: Vec<CompensatedSum>) -> Vec<f64> {
    let mut counts = vec![0u64; sums.len()];
    for &class in part.classes(0) {
        counts[usize::from(class)] += part.rows() as u64;
    }
    sums.into_iter().zip(counts).map(|(sum, count)| if count == 0 { 0.0 } else { sum.mean(count as f64) }).collect()
}

/// Writes the means into some rows of an orbit, from the `start`-th on.
fn write(
    part: &OrbitPart<'_>,
    means: &[f64],
    start: usize,
    targets: Vec<&mut [f64]>,
    progress: &Progress,
) -> Result<()> {
    let mut buffer = [0.0; 512];
    let written = (start..).zip(targets).try_for_each(|(index, target)| {
        for (target, classes) in target.chunks_mut(buffer.len()).zip(part.classes(index).chunks(buffer.len())) {
            for (value, &class) in buffer.iter_mut().zip(classes) {
                *value = means[usize::from(class)];
            }
            stream(target, &buffer[..classes.len()]);
        }
        progress.advance(1)
    });
    finish();
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::automorphism::{AutomorphismGroup, Clock};
    use crate::monitor::Silent;
    use proptest::prelude::*;

    /// The orbits on pairs of the group that some permutations generate.
    fn orbitals(points: usize, images: &[Vec<i64>]) -> Orbitals {
        let mut silent = Silent;
        let group = AutomorphismGroup::from_rows(points, images).unwrap();
        group.orbitals(u128::MAX, &mut Clock::new("a test", None, &mut silent)).unwrap()
    }

    fn averaged(entries: &[f64], rows: usize, orbitals: &Orbitals, threads: usize) -> Result<Vec<f64>> {
        let matrix = ChannelMatrix::new(entries, rows, entries.len() / rows)?;
        let mut output = vec![f64::NAN; entries.len()];
        average(matrix, orbitals, &mut output, threads, &mut Silent)?;
        Ok(output)
    }

    #[test]
    fn the_path_of_three_is_averaged_over_its_reflection() {
        let entries = [0.5, 0.3, 0.2, 0.4, 0.4, 0.2, 0.4, 0.2, 0.4];
        let found = averaged(&entries, 3, &orbitals(3, &[vec![2, 1, 0]]), 1).unwrap();
        let known = [0.45, 0.25, 0.3, 0.3, 0.4, 0.3, 0.3, 0.25, 0.45];
        assert!(found.iter().zip(known).all(|(a, b)| (a - b).abs() < 1e-16), "{found:?}");
    }

    #[test]
    fn columns_may_be_permuted_in_their_own_way() {
        // The rows are exchanged, of the columns the last two.
        let entries = [0.5, 0.25, 0.25, 0.0, 1.0, 0.0];
        let found = averaged(&entries, 2, &orbitals(5, &[vec![1, 0, 2, 4, 3]]), 1).unwrap();
        assert_eq!(found, [0.25, 0.125, 0.625, 0.25, 0.625, 0.125]);
    }

    #[test]
    fn groups_that_do_not_fit_are_refused() {
        let entries = [0.5; 4];
        assert!(matches!(averaged(&entries, 2, &orbitals(3, &[]), 1), Err(Error::Shape { .. })));
        assert!(matches!(averaged(&entries, 1, &orbitals(1, &[]), 1), Err(Error::Shape { .. })));
        assert!(matches!(averaged(&entries, 2, &orbitals(4, &[vec![2, 1, 0, 3]]), 1), Err(Error::Domain { .. })));
    }

    /// The orbits on pairs of the rotations of `n` points by multiples of `step`.
    fn cyclic(n: usize, step: usize) -> Orbitals {
        orbitals(n, &[(0..n).map(|h| ((h + step) % n) as i64).collect()])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn twice_is_once_and_threads_do_not_matter(seed in 0..u64::MAX, half in 2..400usize, step in 1..3usize) {
            let n = 2 * half;
            let mut stream = crate::stream::Stream::new([seed, 1], 0, 0, 0);
            let entries: Vec<f64> = (0..n * n).map(|_| stream.uniform()).collect();
            let orbitals = cyclic(n, step);
            let once = averaged(&entries, n, &orbitals, 1).unwrap();
            prop_assert_eq!(&once, &averaged(&entries, n, &orbitals, 3).unwrap());
            prop_assert_eq!(&once, &averaged(&once, n, &orbitals, 2).unwrap());
            for (h, k) in [(0, 0), (0, n / 2), (1, n - 1)] {
                let at = || (0..n).step_by(step).map(|turn| (h + turn) % n * n + (k + turn) % n);
                let mean = at().map(|i| entries[i]).sum::<f64>() / at().count() as f64;
                prop_assert!(at().all(|i| (once[i] - mean).abs() < 1e-13));
            }
        }
    }

    #[test]
    fn large_orbits_are_done_in_blocks_with_the_same_outcome() {
        let n = 1200;
        let mut stream = crate::stream::Stream::new([7, 7], 0, 0, 0);
        let entries: Vec<f64> = (0..n * n).map(|_| stream.uniform()).collect();
        // Many classes with one generator; few with the symmetric group on triples of thirds: the distance modulo 3.
        let few = [
            (0..n as i64).map(|h| (h + 1) % n as i64).collect(),
            (0..n as i64).map(|h| if h % 3 == 0 { (h + 3) % n as i64 } else { h }).collect(),
            (0..n as i64).map(|h| if h < 6 && h % 3 == 0 { 3 - h } else { h }).collect(),
        ];
        for orbitals in [cyclic(n, 1), orbitals(n, &few)] {
            let once = averaged(&entries, n, &orbitals, 1).unwrap();
            assert_eq!(once, averaged(&entries, n, &orbitals, 2).unwrap());
            assert_eq!(once, averaged(&once, n, &orbitals, 1).unwrap());
        }
        assert_eq!((cyclic(n, 1).rank(), orbitals(n, &few).rank()), (n, 4));
    }
}
