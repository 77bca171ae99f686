//! Draws of two-piece Poisson counts for the cells of a row, eight of the same release at a time.
//!
//! With masses relative to that at the joint o > 0, w(o) = 1, w(y-1) = w(y) y alpha/mu downwards and w(y+1) = w(y) alpha mu/(y+1)
//! upwards, the count is found by inversion: a uniform number times the sum of all masses is compared with every partial sum,
//! first of o, o-1, ..., 0 and then of o+1, o+2, ... Sums above the joint end where a term no longer changes them.
//!
//! Releases are grouped once and for all, so that the number of terms below the joint is the same for all cells of a group.
//! Cells whose sums would be long, or leave the range of a double, are left to `two_piece_poisson::draw`.
//! Source: derived here; the law is that of [`super::two_piece_poisson`].

use super::reciprocals;
use super::words::RowWords;
use crate::numeric::floats::{FloatWork, Floats, LANES};

/// Releases up to here are served.
pub const LARGEST_JOINT: usize = 63;
/// Up to this joint alpha/mu may be [`MOST_STEEP`], beyond it [`LEAST_STEEP`]: its power o times o! stays below 1e280.
pub const SMALL_JOINT: usize = 15;
/// See [`SMALL_JOINT`].
pub const MOST_STEEP: f64 = 1e15;
const LEAST_STEEP: f64 = 1e3;
/// The largest alpha mu.
const MOST_ABOVE: f64 = 8.0;
/// Terms above the joint: 8^46 / 47! is below 1e-17.
const TERMS: usize = 48;

/// Reciprocals of whole numbers.
const RECIPROCALS: [f64; LARGEST_JOINT + TERMS + 3] = reciprocals();

/// Cells of a row with the same release, which is at most [`LARGEST_JOINT`].
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// The release, above zero.
    pub released: usize,
    /// The columns of the cells.
    pub columns: &'a [u32],
}

/// The columns of at most eight cells; what fills up the last eight repeats the first.
#[inline(always)]
pub fn whole_eight(cells: &[u32]) -> [u32; LANES] {
    cells
        .first_chunk()
        .copied()
        .unwrap_or_else(|| std::array::from_fn(|lane| cells[if lane < cells.len() { lane } else { 0 }]))
}

/// The draws of a row: writes the counts of the cells of the groups.
pub struct TwoPieceDraws<'a, I> {
    /// The groups.
    pub groups: I,
    /// The rates of all columns.
    pub rates: &'a [f64],
    /// The ratio of the noise, above zero.
    pub alpha: f64,
    /// Where words come from.
    pub words: &'a mut RowWords,
    /// The counts of all columns.
    pub counts: &'a mut [i64],
    /// Columns of the groups that have not been drawn.
    pub left_over: &'a mut Vec<u32>,
}

impl<'g, I: Iterator<Item = Group<'g>>> FloatWork for TwoPieceDraws<'_, I> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, f: F) {
        let Self { groups, rates, alpha, words, counts, left_over } = self;
        let (one, ratio) = (f.splat(1.0), f.splat(alpha));
        let (mut below, mut above) = ([one; LARGEST_JOINT + 1], [one; TERMS + 1]);
        for Group { released, columns } in groups {
            let joint = released.min(LARGEST_JOINT);
            let least = alpha / if joint <= SMALL_JOINT { MOST_STEEP } else { LEAST_STEEP };
            let least = f.splat(least.max(f64::MIN_POSITIVE));
            let most = f.splat(MOST_ABOVE / alpha);
            for cells in columns.chunks(LANES) {
                let indices = whole_eight(cells);
                assert!(indices.iter().all(|&column| (column as usize) < rates.len()));
                // SAFETY: just looked at.
                let rate = unsafe { f.gather(rates, &indices) };
                let served = f.bits(most, rate) & f.bits(rate, least);
                let rate = f.select(most, rate, f.select(rate, least, rate, ratio), ratio);
                let (inverse, up) = (f.div(ratio, rate), f.mul(ratio, rate));

                let (mut term, mut sum) = (one, one);
                for steps in 0..joint {
                    term = f.mul(term, f.mul(f.splat((joint - steps) as f64), inverse));
                    sum = f.add(sum, term);
                    below[steps + 1] = sum;
                }
                let mut terms = 0;
                term = one;
                while terms < TERMS {
                    for _ in 0..2 {
                        term = f.mul(term, f.mul(up, f.splat(RECIPROCALS[joint + terms + 1])));
                        sum = f.add(sum, term);
                        above[terms] = sum;
                        terms += 1;
                    }
                    if f.bits(term, f.mul(sum, f.splat(1e-17))) == 0 {
                        break;
                    }
                }

                let target = f.mul(f.load(&words.eight()), sum);
                let found = found(f, target, &below[..=joint], &above[..terms - 1]);
                set_counts(cells, found, served, counts, left_over);
            }
        }
    }
}

/// The counts of eight cells whose masses were summed up from the joint down to zero, `below`, then from above it, `above`: how many
/// sums a target reaches says which mass it falls on.
#[inline(always)]
pub fn found<F: Floats>(f: F, target: F::Eight, below: &[F::Eight], above: &[F::Eight]) -> [f64; LANES] {
    let joint = below.len() - 1;
    let mut steps = f.splat(0.0);
    for end in below {
        steps = f.count(steps, target, *end);
    }
    let mut count = f.sub(f.splat(joint as f64), steps);
    if f.bits(target, below[joint]) != 0 {
        let mut steps = f.splat((joint + 1) as f64);
        for end in above {
            steps = f.count(steps, target, *end);
        }
        count = f.select(target, below[joint], steps, count);
    }
    let mut found = [0.0; LANES];
    f.store(count, &mut found);
    found
}

/// Sets the counts of some columns; those that are not served are left over.
#[inline(always)]
pub fn set_counts(columns: &[u32], found: [f64; LANES], served: u32, counts: &mut [i64], left_over: &mut Vec<u32>) {
    for ((lane, &column), count) in columns.iter().enumerate().zip(found) {
        counts[column as usize] = count as i64;
        if served >> lane & 1 == 0 {
            left_over.push(column);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::TwoPiecePoisson;
    use crate::distributions::tests::assert_draws_fit;
    use crate::numeric::dispatch::Level;
    use crate::numeric::floats::float_work;

    fn draws(level: Level, released: usize, rate: f64, alpha: f64, row: u64) -> (Vec<i64>, Vec<u32>) {
        let columns: Vec<u32> = (0..100_003).collect();
        let rates = vec![rate; columns.len()];
        let (mut counts, mut left_over) = (vec![-1; columns.len()], vec![]);
        let mut words = RowWords::new(level, [17, 9], 5, 0, row);
        let groups = std::iter::once(Group { released, columns: &columns });
        let (words, counts_of) = (&mut words, &mut counts[..]);
        float_work(
            level,
            TwoPieceDraws { groups, rates: &rates, alpha, words, counts: counts_of, left_over: &mut left_over },
        );
        (counts, left_over)
    }

    #[test]
    fn draws_fit_their_law_at_every_level() {
        // False alarm 1e-6 per cell.
        let cells = [
            (1, 0.02, 0.37),
            (1, 2.7, 0.37),
            (4, 1.0, 0.9),
            (15, 8.0, 0.12),
            (2, 1e-3, 0.2),
            (40, 20.0, 0.37),
            (63, 8.8, 0.9),
            (1, 8.8, 0.9),
        ];
        for (row, (released, rate, alpha)) in cells.into_iter().enumerate() {
            let law = TwoPiecePoisson::new(released as f64, rate, alpha).unwrap();
            let (counts, left_over) = draws(Level::Avx512, released, rate, alpha, row as u64);
            assert!(left_over.is_empty(), "{released} {rate} {alpha}");
            assert_draws_fit(&law, &counts);
            for level in [Level::Baseline, Level::Avx2] {
                assert_eq!(draws(level, released, rate, alpha, row as u64).0, counts);
            }
        }
    }

    #[test]
    fn cells_of_long_sums_are_left_over() {
        for (released, rate, alpha) in [(1, 30.0, 0.37), (40, 1e-4, 0.37), (3, 0.0, 0.37), (3, 1e-300, 0.5)] {
            assert_eq!(draws(Level::Avx512, released, rate, alpha, 0).1.len(), 100_003, "{released} {rate}");
        }
        assert!(draws(Level::Avx512, 15, 1e-14, 0.5, 0).1.is_empty());
    }
}
