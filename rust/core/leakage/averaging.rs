//! Averaging a channel over a group, given a label for the orbit of each pair, without ever listing the group.
//!
//! M'_hk = 1/|G| sum_g M_(g h)(g k) = the mean of M over the pairs with the label of (h, k)   (Reynolds operator).
//!
//! Row orbits are done one after the other, for their labels are disjoint: a first pass over the rows of an orbit adds
//! up, a second writes the means. Rows are taken in blocks of a size that depends on the matrix alone and the sums of the blocks
//! are joined in order, so the result does not depend on the number of threads. Sums have twice the working precision, so
//! averaging what was averaged changes no bit.
//!
//! Cost: each entry and its label is read twice and written once.

use super::Matrix;
use super::sums::Sum;
use super::vector::{finish, stream};
use crate::monitor::{Monitor, Watch};
use crate::{Error, Result, parallel};
use rayon::prelude::*;

/// Entries of a block of rows, and the largest number of blocks of a row orbit.
const BLOCK: usize = 1 << 18;
const BLOCKS: usize = 64;
/// Up to this many labels each has eight sums, so that equal labels side by side do not wait for each other.
const FEW_LABELS: usize = 512;
const LANES: usize = 8;

/// The labels of the pairs that begin in one row orbit.
struct Orbit {
    rows: Vec<u32>,
    /// The smallest label, and how many there are from it on.
    first: u32,
    labels: usize,
}

/// Labels of all pairs: those of one row orbit are numbered without large gaps, and no label belongs to two.
#[derive(Debug)]
pub struct Labels<'a> {
    labels: &'a [u32],
    rows: &'a [u32],
    cols: usize,
}

impl<'a> Labels<'a> {
    /// `labels` holds the orbit of each pair in row-major order, `rows` the orbit of each row.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there are as many labels as pairs.
    pub fn new(labels: &'a [u32], rows: &'a [u32], cols: usize) -> Result<Self> {
        if labels.len() != rows.len() * cols {
            let (expected, found) = (format!("({}, {cols})", rows.len()), format!("{} entries", labels.len()));
            return Err(Error::Shape { name: "labels", expected, found });
        }
        Ok(Self { labels, rows, cols })
    }

    fn row(&self, row: u32) -> &'a [u32] {
        &self.labels[row as usize * self.cols..][..self.cols]
    }

    /// The row orbits, in the order of their numbers.
    fn orbits(&self) -> Result<Vec<Orbit>> {
        let mut members: Vec<Vec<u32>> = Vec::new();
        for (row, &orbit) in (0..).zip(self.rows) {
            if orbit as usize >= self.rows.len() {
                return Err(disorder());
            }
            if members.len() <= orbit as usize {
                members.resize(orbit as usize + 1, Vec::new());
            }
            members[orbit as usize].push(row);
        }
        let orbit = |rows: Vec<u32>| {
            let labels = self.row(*rows.first()?);
            let (first, last) = (*labels.iter().min()?, *labels.iter().max()?);
            Some(Orbit { rows, first, labels: (last - first) as usize + 1 })
        };
        let orbits: Vec<Orbit> = members.into_iter().filter_map(orbit).collect();
        let sparse = |orbit: &Orbit| orbit.labels > 8 * (self.cols + self.rows.len());
        if orbits.iter().any(sparse) { Err(disorder()) } else { Ok(orbits) }
    }
}

fn disorder() -> Error {
    let value = "labels that are not".to_string();
    Error::Domain { name: "labels", value, requirement: "numbered one row orbit after the other" }
}

/// Writes the average of `matrix` into `output`.
///
/// # Errors
/// [`Error::Shape`] if the sizes differ, [`Error::Domain`] if labels are not numbered row orbit by row orbit; the
/// monitor's objection.
pub fn average(
    matrix: Matrix<'_>,
    labels: &Labels<'_>,
    output: &mut [f64],
    threads: usize,
    monitor: &mut dyn Monitor,
) -> Result<()> {
    if labels.cols != matrix.cols() || labels.rows.len() != matrix.rows() || output.len() != matrix.entries().len() {
        let (expected, found) =
            (format!("({}, {})", labels.rows.len(), labels.cols), format!("({}, {})", matrix.rows(), matrix.cols()));
        return Err(Error::Shape { name: "matrix", expected, found });
    }
    let orbits = labels.orbits()?;
    let mut targets: Vec<Option<&mut [f64]>> = output.chunks_exact_mut(matrix.cols()).map(Some).collect();
    let mut targets_of = |orbit: &Orbit| -> Vec<&mut [f64]> {
        orbit.rows.iter().filter_map(|&row| targets[row as usize].take()).collect()
    };
    let (small, large): (Vec<_>, Vec<_>) = orbits
        .into_iter()
        .map(|orbit| (targets_of(&orbit), orbit))
        .partition(|(_, orbit)| orbit.rows.len() * matrix.cols() <= BLOCK);
    parallel::run(threads, 2 * matrix.rows() as u64, monitor, |watch| {
        small.into_par_iter().try_for_each(|(targets, orbit)| {
            let sums = add_up(matrix, labels, &orbit, &orbit.rows, watch)?;
            write(labels, &orbit, &means(matrix, labels, &orbit, sums), &orbit.rows, targets, watch)
        })?;
        for (mut targets, orbit) in large {
            let rows = (BLOCK / matrix.cols()).max(orbit.rows.len().div_ceil(BLOCKS)).max(1);
            let blocks = orbit.rows.par_chunks(rows).map(|rows| add_up(matrix, labels, &orbit, rows, watch));
            let blocks = blocks.collect::<Result<Vec<_>>>()?;
            let joined = blocks.into_iter().reduce(|mut total, block| {
                total.iter_mut().zip(block).for_each(|(total, sum)| total.merge(sum));
                total
            });
            let means = means(matrix, labels, &orbit, joined.unwrap_or_default());
            let written = orbit.rows.par_chunks(rows).zip(targets.par_chunks_mut(rows));
            written.try_for_each(|(rows, targets)| {
                let targets = targets.iter_mut().map(|target| &mut **target).collect();
                write(labels, &orbit, &means, rows, targets, watch)
            })?;
        }
        Ok(())
    })
}

/// The sum over some rows of an orbit for each of its labels.
fn add_up(matrix: Matrix<'_>, labels: &Labels<'_>, orbit: &Orbit, rows: &[u32], watch: &Watch) -> Result<Vec<Sum>> {
    let lanes = if orbit.labels <= FEW_LABELS { LANES } else { 1 };
    let mut sums = vec![Sum::default(); orbit.labels * lanes];
    for &row in rows {
        let (entries, labels) = (matrix.row(row as usize), labels.row(row));
        let known = if lanes == 1 {
            add_row::<1>(&mut sums, entries, labels, orbit.first)
        } else {
            add_row::<LANES>(&mut sums, entries, labels, orbit.first)
        };
        if !known {
            return Err(disorder());
        }
        watch.advance(1)?;
    }
    if lanes == 1 {
        return Ok(sums);
    }
    let join = |lanes: &[Sum]| {
        lanes.iter().fold(Sum::default(), |mut total, &lane| {
            total.merge(lane);
            total
        })
    };
    Ok(sums.chunks_exact(lanes).map(join).collect())
}

/// Adds a row to the sums; whether all its labels are known.
#[inline]
fn add_row<const LANES: usize>(sums: &mut [Sum], entries: &[f64], labels: &[u32], first: u32) -> bool {
    let mut known = true;
    let mut add =
        |lane: usize, entry: f64, label: u32| match sums.get_mut(label.wrapping_sub(first) as usize * LANES + lane) {
            Some(sum) => sum.add(entry),
            None => known = false,
        };
    let (entries, labels) = (entries.chunks_exact(LANES), labels.chunks_exact(LANES));
    let rest = entries.remainder().iter().zip(labels.remainder());
    rest.enumerate().for_each(|(lane, (&entry, &label))| add(lane, entry, label));
    for (entries, labels) in entries.zip(labels) {
        for lane in 0..LANES {
            add(lane, entries[lane], labels[lane]);
        }
    }
    known
}

/// The mean for each label of an orbit: in each of its rows a label occurs as often as in the first.
fn means(matrix: Matrix<'_>, labels: &Labels<'_>, orbit: &Orbit, sums: Vec<Sum>) -> Vec<f64> {
    let mut counts = vec![0u64; sums.len()];
    debug_assert!(matrix.cols() == labels.cols);
    for &label in labels.row(orbit.rows[0]) {
        counts[(label - orbit.first) as usize] += orbit.rows.len() as u64;
    }
    sums.into_iter().zip(counts).map(|(sum, count)| if count == 0 { 0.0 } else { sum.mean(count as f64) }).collect()
}

/// Writes the means into some rows of an orbit.
fn write(
    labels: &Labels<'_>,
    orbit: &Orbit,
    means: &[f64],
    rows: &[u32],
    targets: Vec<&mut [f64]>,
    watch: &Watch,
) -> Result<()> {
    let mut buffer = [0.0; 512];
    for (&row, target) in rows.iter().zip(targets) {
        let labels = labels.row(row);
        for (target, labels) in target.chunks_mut(buffer.len()).zip(labels.chunks(buffer.len())) {
            for (value, &label) in buffer.iter_mut().zip(labels) {
                *value = means[label.wrapping_sub(orbit.first) as usize];
            }
            stream(target, &buffer[..labels.len()]);
        }
        watch.advance(1)?;
    }
    finish();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Silent;
    use proptest::prelude::*;

    fn averaged(entries: &[f64], rows: usize, labels: &[u32], orbits: &[u32], threads: usize) -> Result<Vec<f64>> {
        let matrix = Matrix::new(entries, rows, entries.len() / rows)?;
        let mut output = vec![f64::NAN; entries.len()];
        average(matrix, &Labels::new(labels, orbits, matrix.cols())?, &mut output, threads, &mut Silent)?;
        Ok(output)
    }

    #[test]
    fn the_path_of_three_is_averaged_over_its_reflection() {
        let labels = [0, 1, 2, 3, 4, 3, 2, 1, 0];
        let entries = [0.5, 0.3, 0.2, 0.4, 0.4, 0.2, 0.4, 0.2, 0.4];
        // Row orbits {0, 2} and {1}: labels 0 1 2 and 3 4.
        let found = averaged(&entries, 3, &labels, &[0, 1, 0], 1).unwrap();
        let known = [0.45, 0.25, 0.3, 0.3, 0.4, 0.3, 0.3, 0.25, 0.45];
        assert!(found.iter().zip(known).all(|(a, b)| (a - b).abs() < 1e-16), "{found:?}");
    }

    #[test]
    fn labels_that_do_not_fit_are_refused() {
        let entries = [0.5; 4];
        assert!(matches!(averaged(&entries, 2, &[0, 1, 1], &[0, 0], 1), Err(Error::Shape { .. })));
        assert!(matches!(averaged(&entries, 2, &[0, 1, 5, 0], &[0, 0], 1), Err(Error::Domain { .. })));
        assert!(matches!(averaged(&entries, 2, &[0, 1, 1, 0], &[0, 7], 1), Err(Error::Domain { .. })));
        assert!(matches!(averaged(&entries, 2, &[0, u32::MAX, 1, 0], &[0, 0], 1), Err(Error::Domain { .. })));
    }

    /// Labels of the cyclic group on `n` points, or of its square for two row orbits.
    fn cyclic(n: usize, orbits: usize) -> (Vec<u32>, Vec<u32>) {
        let label = |h: usize, k: usize| ((h % orbits) * n + (k + n - h) % n) as u32;
        let labels = (0..n * n).map(|i| label(i / n, i % n)).collect();
        (labels, (0..n).map(|h| (h % orbits) as u32).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn twice_is_once_and_threads_do_not_matter(seed in 0..u64::MAX, half in 2..400usize, orbits in 1..3usize) {
            let n = 2 * half;
            let mut stream = crate::stream::Stream::new([seed, 1], 0, 0, 0);
            let entries: Vec<f64> = (0..n * n).map(|_| stream.uniform()).collect();
            let (labels, rows) = cyclic(n, orbits);
            let once = averaged(&entries, n, &labels, &rows, 1).unwrap();
            prop_assert_eq!(&once, &averaged(&entries, n, &labels, &rows, 3).unwrap());
            prop_assert_eq!(&once, &averaged(&once, n, &labels, &rows, 2).unwrap());
            for label in [0, n as u32 / 2, n as u32 - 1] {
                let at = || (0..n * n).filter(|&i| labels[i] == label);
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
        let (labels, rows) = cyclic(n, 1);
        let once = averaged(&entries, n, &labels, &rows, 1).unwrap();
        assert_eq!(once, averaged(&entries, n, &labels, &rows, 2).unwrap());
        assert_eq!(once, averaged(&once, n, &labels, &rows, 1).unwrap());
        // Few labels: the distance around the cycle modulo 3.
        let labels: Vec<u32> = labels.iter().map(|label| label % 3).collect();
        let once = averaged(&entries, n, &labels, &rows, 2).unwrap();
        assert_eq!(once, averaged(&once, n, &labels, &rows, 1).unwrap());
    }
}
