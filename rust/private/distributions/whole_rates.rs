//! Draws of Poisson laws of whole rates by table: what cells of differing rates have in common.
//!
//! A Poisson count of rate a + b is the sum of independent counts of rates a and b. So a rate below [`END`] is split into a multiple
//! of [`STEP`], a whole number below it, and the rest: the first two have an alias table each (Walker's, made as by Vose), the rest
//! is found by a short search. A table holds the values whose masses reach 2^-70, and gives each its mass to some units of 2^-53.
//!
//! Sources: as of the tables of one law, in `alias`.

use super::alias::{AliasCell, alias_cells, alias_outcome};
use super::poisson::{END, Poisson};
use super::sums::Shape;
use std::sync::LazyLock;

/// Whole rates below this have tables, and so have its multiples.
pub const STEP: usize = 64;
const MULTIPLES: usize = END as usize / STEP;
/// The least mass that has a cell: 2^-70.
const LEAST: f64 = 8.5e-22;

/// The tables, all their cells in a row.
#[derive(Debug)]
pub struct WholeRates {
    /// Where a rate's cells begin, and the bits that name one: those of the rates 1, 2, ... and then those of the multiples.
    tables: [(u32, u32); STEP + MULTIPLES],
    cells: Vec<AliasCell>,
}

/// The only ones.
pub static WHOLE_RATES: LazyLock<WholeRates> = LazyLock::new(WholeRates::new);

impl WholeRates {
    fn new() -> Self {
        let (mut tables, mut all) = ([(0, 0); STEP + MULTIPLES], Vec::new());
        for (place, table) in tables.iter_mut().enumerate() {
            let rate = rate_of(place);
            let law = Poisson::from(rate);
            // A mass of the law of rate 1023 is below the least from some 12 standard deviations on.
            let values = 0..(rate + 12.0 * rate.sqrt() + 30.0) as i16;
            let masses = values.map(|k| (k, law.log_value(f64::from(k)).exp())).filter(|(_, mass)| *mass >= LEAST);
            let (values, masses): (Vec<i16>, Vec<f64>) = masses.unzip();
            let (bits, cells) =
                if rate > 0.0 { alias_cells(&masses, |i| values[i]) } else { (1, vec![(0, [0; 2]); 2]) };
            *table = (all.len() as u32, bits);
            all.extend(cells);
        }
        Self { tables, cells: all }
    }

    #[inline]
    fn draw(&self, place: usize, word: u64) -> i64 {
        let (start, bits) = self.tables[place];
        alias_outcome(&self.cells[start as usize..], bits, word).into()
    }

    /// Adds to each count a draw of the whole part of its rate, of words of its own for what is left of multiples of [`STEP`] and for
    /// the multiples, if any rate reaches one. Rates are below [`END`].
    pub fn add(&self, whole: &[f64], units: &[u64], multiples: Option<&[u64]>, counts: &mut [i64]) {
        for ((count, &whole), &word) in counts.iter_mut().zip(whole).zip(units) {
            *count += self.draw(whole as usize % STEP, word);
        }
        for ((count, &whole), &word) in counts.iter_mut().zip(whole).zip(multiples.unwrap_or(&[])) {
            *count += self.draw(STEP + whole as usize / STEP, word);
        }
    }
}

/// The rate of a table.
fn rate_of(place: usize) -> f64 {
    if place < STEP { place as f64 } else { (STEP * (place - STEP)) as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_carries_the_masses_of_its_rate() {
        for place in 0..STEP + MULTIPLES {
            let (start, bits) = WHOLE_RATES.tables[place];
            let size = 1 << bits;
            let whole = 2f64.powi(64) * f64::from(size);
            let mut carried = vec![0.0; 2000];
            for &(threshold, [own, other]) in &WHOLE_RATES.cells[start as usize..start as usize + size as usize] {
                carried[own as usize] += threshold as f64 / whole;
                carried[other as usize] += (2f64.powi(64) - threshold as f64) / whole;
            }
            // The masses by the ratio of neighbors, from the mode on: nothing of what made the table.
            let rate = rate_of(place);
            let mut masses = vec![0.0; carried.len()];
            let mode = rate as usize;
            masses[mode] = 1.0;
            (mode + 1..masses.len()).for_each(|k| masses[k] = masses[k - 1] * rate / k as f64);
            (0..mode).rev().for_each(|k| masses[k] = masses[k + 1] * (k + 1) as f64 / rate);
            let sum: f64 = masses.iter().sum();
            for (k, (carried, mass)) in carried.iter().zip(&masses).enumerate() {
                assert!((carried - mass / sum).abs() < 1e-14, "rate {rate}, count {k}: {carried} for {}", mass / sum);
            }
            assert!((carried.iter().sum::<f64>() - 1.0).abs() < 1e-13, "rate {rate}");
        }
    }

    #[test]
    fn a_count_is_made_of_the_parts_of_its_rate() {
        let words = [[1u64 << 63, 3, u64::MAX], [5, 1 << 62, 7]];
        let mut counts = [10; 3];
        WHOLE_RATES.add(&[5.0, 64.0, 1023.0], &words[0], Some(&words[1]), &mut counts);
        let draw = |place, word| WHOLE_RATES.draw(place, word);
        assert_eq!(counts[0], 10 + draw(5, words[0][0]));
        assert_eq!(counts[1], 10 + draw(STEP + 1, words[1][1]));
        assert_eq!(counts[2], 10 + draw(63, words[0][2]) + draw(STEP + 15, words[1][2]));
    }
}
