//! Draws of overdispersed counts for the cells of a row, many at a time; the law is that of [`super::negative_binomial`].
//!
//! Where the release is o > 0, eight cells of the same o: masses relative to that at o are summed down to zero and then upwards, as in
//! `distributions::two_piece_cells`, until what is left is small beside the sum. There a bound takes the place of the masses: with z
//! the limit of their ratios and q the larger of z and the next ratio, which no later ratio exceeds, at most the last mass times
//! q / (1 - q) is left. A uniform number times sum and bound is compared with every partial sum. One that lies beyond them goes on
//! along the tail by itself, and where the tail ends below it the cell is drawn again: rejection, so that the law is exact.
//!
//! Where the release is not positive, the count is negative binomial: zero with probability 1 - mean at the least, which settles
//! most cells; sixteen of the others are searched together.
//! Cells whose sums would be long, or leave the range of a double, are left to [`super::negative_binomial`]: which, their rates say and
//! not their words.
//!
//! Source: derived here.

use super::allocation::Ratios;
use super::negative_binomial::SEARCHED;
use super::row::{HELD_OUT, RowShapes};
use crate::distributions::two_piece_cells::{
    Group, LARGEST_JOINT, MOST_STEEP, SMALL_JOINT, found, set_counts, whole_eight,
};
use crate::distributions::words::{RowWords, uniform};
use crate::numeric::dispatch::{Level, at_level};
use crate::numeric::elementary::{exp, ln_1p};
use crate::numeric::floats::{FloatWork, Floats, LANES};
use crate::numeric::places::places_of;

/// The largest alpha / p beyond [`SMALL_JOINT`]: its power o times o / r stays below 1e280.
const LEAST_STEEP: f64 = 1e3;
/// Terms above the joint.
const TERMS: usize = 48;
/// The bound of what is left above them is at most this share of the sum, if they are enough.
const SHARE: f64 = 1.0 / 64.0;
/// Where the ratios of the masses come nearer to one than this at the last term, the cell is left over.
const LEAST_FALL: f64 = 1e-3;

/// Ratios of neighboring coefficients of one r.
#[derive(Clone, Debug)]
pub struct CoefficientRatios {
    r: f64,
    /// (r + y) / (y + 1) at y.
    up: [f64; LARGEST_JOINT + TERMS + 1],
    /// y / (r + y - 1) at y > 0.
    down: [f64; LARGEST_JOINT + 1],
}

impl Default for CoefficientRatios {
    fn default() -> Self {
        Self { r: 0.0, up: [0.0; LARGEST_JOINT + TERMS + 1], down: [0.0; LARGEST_JOINT + 1] }
    }
}

impl CoefficientRatios {
    /// Goes to another r.
    pub fn set(&mut self, r: f64) {
        if r != self.r {
            self.r = r;
            for (y, up) in (0..).zip(&mut self.up) {
                *up = (r + f64::from(y)) / f64::from(y + 1);
            }
            for (y, down) in (1..).zip(&mut self.down[1..]) {
                *down = f64::from(y) / (r + f64::from(y - 1));
            }
        }
    }
}

/// A cell whose uniform number lies beyond the masses that were summed.
#[derive(Clone, Copy, Debug)]
pub struct Beyond {
    column: u32,
    /// The last count that was summed and its mass.
    last: u64,
    mass: f64,
    /// How far the number lies beyond the sum.
    left: f64,
    /// The limit of the ratios.
    z: f64,
}

impl Beyond {
    /// The cell's column, and its count unless the tail ends below the number.
    pub fn count(&self, shapes: RowShapes<'_>) -> (u32, Option<u64>) {
        let Self { column, last, mut mass, mut left, z } = *self;
        let (r, least) = (shapes.at(column as usize), 1e-17 * mass);
        let mut y = last;
        let count = loop {
            mass *= (r + y as f64) / (y + 1) as f64 * z;
            (y, left) = (y + 1, left - mass);
            if left < 0.0 {
                break Some(y);
            }
            if mass < least {
                break None;
            }
        };
        (column, count)
    }
}

/// The draws of the positive releases of a row: writes the counts of the cells of the groups.
pub struct NegativeBinomialDraws<'a, I> {
    /// The groups.
    pub groups: I,
    /// The rates of all columns.
    pub rates: &'a [f64],
    /// The shapes of all columns.
    pub shapes: RowShapes<'a>,
    /// Where there is one shape, its ratios.
    pub coefficients: &'a CoefficientRatios,
    /// The ratios of the noise.
    pub ratios: Ratios<'a>,
    /// Where words come from.
    pub words: &'a mut RowWords,
    /// The counts of all columns.
    pub counts: &'a mut [i64],
    /// Columns of the groups that have not been drawn.
    pub left_over: &'a mut Vec<u32>,
    /// Cells that go on along their tail.
    pub beyond: &'a mut Vec<Beyond>,
}

impl<'g, I: Iterator<Item = Group<'g>>> FloatWork for NegativeBinomialDraws<'_, I> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, f: F) {
        let Self { groups, rates, shapes, coefficients, ratios, words, counts, left_over, beyond } = self;
        let one_shape = shapes.one();
        let (one, share) = (f.splat(1.0), f.splat(SHARE));
        let (mut below, mut above) = ([one; LARGEST_JOINT + 1], [one; TERMS]);
        let (mut r, mut ratio) = (f.splat(one_shape.unwrap_or(1.0)), f.splat(ratios.greatest));
        for Group { released, columns } in groups {
            let joint = released.min(LARGEST_JOINT);
            let steepest = f.splat(if joint <= SMALL_JOINT { MOST_STEEP } else { LEAST_STEEP });
            for cells in columns.chunks(LANES) {
                let indices = whole_eight(cells);
                assert!(indices.iter().all(|&column| (column as usize) < rates.len()));
                // SAFETY: just looked at.
                let rate = unsafe { f.gather(rates, &indices) };
                if one_shape.is_none() {
                    r = f.load(&indices.map(|column| shapes.at(column as usize)));
                }
                if ratios.own.is_some() {
                    ratio = f.load(&indices.map(|column| ratios.at(column as usize)));
                }
                let p = f.div(rate, f.add(rate, r));
                let inverse = f.div(ratio, p);
                let mut served = f.bits(steepest, inverse);
                let inverse = f.select(steepest, inverse, inverse, one);
                let z = f.select(steepest, inverse, f.mul(ratio, p), ratio);

                let (mut term, mut sum) = (one, one);
                for steps in 0..joint {
                    let y = joint - steps;
                    let fall = match one_shape {
                        Some(_) => f.splat(coefficients.down[y]),
                        None => f.div(f.splat(y as f64), f.add(r, f.splat(y as f64 - 1.0))),
                    };
                    term = f.mul(term, f.mul(fall, inverse));
                    sum = f.add(sum, term);
                    below[steps + 1] = sum;
                }
                let rise = |y: usize| match one_shape {
                    Some(_) => f.splat(coefficients.up[y]),
                    None => f.div(f.add(r, f.splat(y as f64)), f.splat(y as f64 + 1.0)),
                };
                let mut terms = 0;
                term = one;
                let (mut most, mut open) = (one, one);
                while terms < TERMS {
                    for _ in 0..2 {
                        term = f.mul(term, f.mul(rise(joint + terms), z));
                        sum = f.add(sum, term);
                        above[terms] = sum;
                        terms += 1;
                    }
                    let next = f.mul(rise(joint + terms), z);
                    most = f.select(next, z, next, z);
                    open = f.sub(one, most);
                    if f.bits(f.mul(share, f.mul(open, sum)), f.mul(term, most)) == 0xff {
                        break;
                    }
                }
                let least = f.splat(LEAST_FALL);
                served &= f.bits(open, least);
                let bound = f.div(f.mul(term, most), f.select(open, least, open, one));

                let target = f.mul(f.load(&words.eight()), f.add(sum, bound));
                let found = found(f, target, &below[..=joint], &above[..terms]);
                set_counts(cells, found, served, counts, left_over);
                let outside = f.bits(target, sum) & served;
                if outside != 0 {
                    let mut of_lanes = [[0.0; LANES]; 3];
                    for (out, x) in of_lanes.iter_mut().zip([term, f.sub(target, sum), z]) {
                        f.store(x, out);
                    }
                    for (lane, &column) in cells.iter().enumerate().filter(|(lane, _)| outside >> lane & 1 != 0) {
                        let [mass, left, z] = of_lanes.map(|of_lane| of_lane[lane]);
                        beyond.push(Beyond { column, last: (joint + terms) as u64, mass, left, z });
                    }
                }
            }
        }
    }
}

/// Cells searched together.
const TOGETHER: usize = 16;
/// Counts below this are found together.
const MOST: usize = 40;
/// What a mean is multiplied by where it is compared without a division.
const WIDENED: f64 = 1.0 + 1e-14;
/// A uniform number is at most this, for the sum of all masses may end some units in the last place below one.
const LARGEST_UNIFORM: f64 = 1.0 - 1e-15;

/// The uniform number that a count behind a release which is not positive is found by.
#[inline(always)]
pub fn uniform_of(word: u64) -> f64 {
    uniform(word).min(LARGEST_UNIFORM)
}

/// Columns whose release is not positive and whose count may be, by a bound of its mean and a word each: in front, and how many.
pub fn unsettled(
    level: Level,
    (codes, rates, shapes, ratios): (&[i8], &[f64], RowShapes<'_>, Ratios<'_>),
    words: &[u64],
    margins: &mut [f64],
    columns: &mut [u32],
) -> usize {
    let data = (codes, rates);
    match (shapes.one(), ratios.own) {
        (Some(r), None) => at_level!(level, set_margins(data, |_| (r, ratios.greatest), words, margins)),
        _ => {
            let at = |column: usize| (shapes.at(column), ratios.at(column));
            at_level!(level, set_margins(data, at, words, margins));
        }
    }
    places_of(level, margins, 0, columns, |margin| margin >= 0.0)
}

/// How far the mean r alpha mu / (r + mu (1 - alpha)) of a count exceeds the chance that its word leaves to counts that are
/// positive, times the denominator; less than nothing where the cell is not one of these.
#[inline(always)]
fn set_margins((codes, rates): (&[i8], &[f64]), at: impl Fn(usize) -> (f64, f64), words: &[u64], margins: &mut [f64]) {
    let cells = codes.iter().zip(rates).zip(words).zip(margins).enumerate();
    for (column, (((&code, &rate), &word), margin)) in cells {
        let (r, alpha) = at(column);
        // What is rounded is less than the widening, and the search settles what is listed beyond need.
        let excess = r * alpha * rate * WIDENED - (1.0 - uniform(word)) * (r + rate * (1.0 - alpha));
        *margin = if (code <= 0) & (code != HELD_OUT) { excess } else { -1.0 };
    }
}

/// Finds the counts of such columns by inversion; those that it does not find go to the list.
#[inline(always)]
pub fn search_many(
    columns: &[u32],
    (rates, shapes, ratios): (&[f64], RowShapes<'_>, Ratios<'_>),
    words: &[u64],
    counts: &mut [i64],
    left_over: &mut Vec<u32>,
) {
    for cells in columns.chunks(TOGETHER) {
        let (mut odds, mut r, mut u) = ([0.0; TOGETHER], [1.0; TOGETHER], [0.0; TOGETHER]);
        for (lane, &column) in cells.iter().enumerate() {
            let column = column as usize;
            let (rate, alpha) = (rates[column], ratios.at(column));
            (r[lane], u[lane]) = (shapes.at(column), uniform_of(words[column]));
            odds[lane] = alpha * rate / (r[lane] + rate * (1.0 - alpha));
        }
        let (found, going) = search(&odds, &r, &u);
        for (lane, &column) in cells.iter().enumerate() {
            counts[column as usize] = found[lane] as i64;
            if going[lane] > 0.0 {
                left_over.push(column);
            }
        }
    }
}

/// The smallest counts whose distribution function exceeds the numbers, and a one where it has not been found.
#[inline(always)]
fn search(odds: &[f64; TOGETHER], r: &[f64; TOGETHER], u: &[f64; TOGETHER]) -> ([f64; TOGETHER], [f64; TOGETHER]) {
    let (mut z, mut mass) = ([0.0; TOGETHER], [0.0; TOGETHER]);
    for i in 0..TOGETHER {
        z[i] = odds[i] / (1.0 + odds[i]);
        // Larger means are never found here, whatever the number.
        mass[i] = if r[i] * odds[i] > SEARCHED { 0.0 } else { exp(-r[i] * ln_1p(odds[i])) };
    }
    let (mut counts, mut sum, mut going) = ([0.0; TOGETHER], mass, [0.0; TOGETHER]);
    for y in (0..MOST).step_by(2) {
        let mut some = 0.0;
        for y in [y, y + 1] {
            let (y, inverse) = (y as f64, 1.0 / (y + 1) as f64);
            for i in 0..TOGETHER {
                going[i] = if u[i] >= sum[i] { 1.0 } else { 0.0 };
                counts[i] += going[i];
                some += going[i];
                mass[i] *= (r[i] + y) * inverse * z[i];
                sum[i] += mass[i];
            }
        }
        if some == 0.0 {
            break;
        }
    }
    (counts, going)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispersion::{Dispersion, DispersionAxis};
    use crate::distributions::fit::{assert_bins_fit, pooled};
    use crate::negative_binomial::{Masses, draw};
    use crate::numeric::floats::float_work;
    use crate::released_counts::{Alpha, ReleasedCounts};
    use crate::stream::xoshiro;

    const CELLS: usize = 40_000;

    /// Counts of cells all alike, with one shape for all or one for each, and how many were left over or went beyond.
    fn drawn(level: Level, (o, rate, r, alpha): (i64, f64, f64, f64), each: bool, row: u64) -> (Vec<i64>, usize) {
        let table = ReleasedCounts::new(&vec![o; CELLS], 1, CELLS, Alpha::One(alpha), None).unwrap();
        let axis = if each { DispersionAxis::Columns } else { DispersionAxis::Table };
        let dispersion = Dispersion::new(axis, vec![r; if each { CELLS } else { 1 }], None, &table).unwrap();
        let (shapes, ratios, rates) = (dispersion.in_row(0), Ratios::new(alpha, None), vec![rate; CELLS]);
        let (mut counts, mut left_over, mut beyond) = (vec![0; CELLS], vec![], vec![]);
        let (mut words, mut rng) = (RowWords::new(level, [3, 5], 1, 0, row), xoshiro([3, 5], 2, 0, row));
        let mut coefficients = CoefficientRatios::default();
        coefficients.set(r);
        let columns: Vec<u32> = (0..CELLS as u32).collect();
        if o > 0 {
            let groups = std::iter::once(Group { released: o as usize, columns: &columns });
            let (words, rates, counts, left_over) = (&mut words, &rates[..], &mut counts[..], &mut left_over);
            let (coefficients, beyond) = (&coefficients, &mut beyond);
            let draws =
                NegativeBinomialDraws { groups, rates, shapes, coefficients, ratios, words, counts, left_over, beyond };
            float_work(level, draws);
        } else {
            let mut own = vec![0; CELLS];
            words.fill(&mut own);
            let (mut columns, mut margins) = (vec![0; CELLS + LANES], vec![0.0; CELLS]);
            let data = (table.row(0).codes, &rates[..], shapes, ratios);
            let found = unsettled(level, data, &own, &mut margins, &mut columns);
            let laws = (&rates[..], shapes, ratios);
            at_level!(level, search_many(&columns[..found], laws, &own, &mut counts, &mut left_over));
            for &column in &left_over {
                counts[column as usize] = draw(rate, r, alpha, uniform_of(own[column as usize]), &mut rng) as i64;
            }
        }
        let apart = left_over.len() + beyond.len();
        for cell in &beyond {
            let (column, count) = cell.count(shapes);
            let again = || Masses::default().draw(o, rate, r, alpha, &mut xoshiro([3, 5], 3, row, u64::from(column)));
            counts[column as usize] = count.unwrap_or_else(again) as i64;
        }
        if o > 0 {
            for &column in &left_over {
                counts[column as usize] = Masses::default().draw(o, rate, r, alpha, &mut rng) as i64;
            }
        }
        (counts, apart)
    }

    #[test]
    fn draws_have_the_masses_of_the_sum_over_counts_at_every_level() {
        // Chi-square over counts whose expectation is ten at least; false alarm 1e-6 per cell by the normal deviate.
        let cells = [
            (3, 0.5, 0.7, 0.37),
            (1, 0.01, 0.05, 0.37),
            (1, 900.0, 0.05, 0.78),
            (40, 0.3, 0.05, 0.37),
            (40, 30.0, 2.5, 0.9),
            (63, 0.02, 0.2, 0.3),
            (2, 300.0, 400.0, 0.999),
            (-2, 1.25, 0.6, 0.37),
            (0, 4.0, 1.0, 0.5),
            (0, 60.0, 0.3, 0.9),
            (-1, 80.0, 30.0, 0.8),
            (0, 1e-3, 1e6, 0.4),
            (12, 8.0, 1e6, 0.5),
        ];
        for (row, cell) in cells.into_iter().enumerate() {
            let (o, rate, r, alpha) = cell;
            let (found, apart) = drawn(Level::Avx512, cell, row % 2 == 1, row as u64);
            for level in [Level::Baseline, Level::Avx2] {
                assert_eq!(drawn(level, cell, row % 2 == 1, row as u64).0, found, "{cell:?}");
            }
            assert!(apart < CELLS / 8 || rate >= 60.0, "{cell:?} {apart}");
            let (mut log_c, mut masses) = (0.0, vec![]);
            for y in 0..20_000 {
                let away = (o - y).abs() as f64 * f64::ln(alpha);
                masses.push(log_c - y as f64 * f64::ln_1p(r / rate) + away);
                log_c += ((r + y as f64) / (y as f64 + 1.0)).ln();
            }
            let most = masses.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = masses.iter().map(|log| (log - most).exp()).sum();
            let mut counts = vec![0.0; masses.len()];
            found.iter().for_each(|&count| counts[(count as usize).min(19_999)] += 1.0);
            let due = masses.iter().map(|log| (log - most).exp() / total * CELLS as f64);
            assert_bins_fit(&pooled(counts.into_iter().zip(due)), &cell);
        }
    }
}
