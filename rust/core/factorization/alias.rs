//! Alias tables: the column of an event, given its component, in one lookup.
//!
//! A word w times the number of columns n is (place, fraction) in units of 2^64: the event falls on `place` if the fraction is
//! below its threshold, else on its alias. Source: M. Vose (1991), A linear algorithm for generating random numbers with a
//! given distribution.

use super::factor_matrix::FactorMatrix;
use crate::parallel;

/// One place of a table.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    threshold: u64,
    alias: u32,
}

/// A table per component over the rows of a matrix.
#[derive(Clone, Debug, Default)]
pub struct Aliases {
    places: Vec<Place>,
    cols: usize,
    /// The sum of each component.
    pub sums: Vec<f64>,
}

impl Aliases {
    /// Tables of a matrix whose sums by component are known.
    pub fn new(matrix: &FactorMatrix, sums: Vec<f64>, threads: usize) -> Self {
        let cols = matrix.rows;
        let transposed = matrix.transposed();
        let mut places = vec![Place::default(); cols * matrix.width];
        let table = |k: usize, table: &mut [Place]| fill(table, &transposed[k * cols..][..cols], sums[k]);
        if threads == 1 {
            places.chunks_exact_mut(cols.max(1)).enumerate().for_each(|(k, places)| table(k, places));
        } else {
            let tables = parallel::pieces(
                &mut places,
                cols.max(1),
                || (),
                |(), k, places| {
                    table(k, places);
                    Ok(())
                },
            );
            tables.expect("tables that cannot fail");
        }
        Self { places, cols, sums }
    }

    /// The column of an event of a component with a positive sum.
    #[inline(always)]
    pub fn column(&self, component: usize, word: u64) -> usize {
        let product = u128::from(word) * self.cols as u128;
        let place = self.places[component * self.cols + (product >> 64) as usize];
        if (product as u64) < place.threshold { (product >> 64) as usize } else { place.alias as usize }
    }
}

const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

/// Fills the table of weights with this sum; with no positive sum no event will ask.
fn fill(table: &mut [Place], weights: &[f64], sum: f64) {
    if sum <= 0.0 || sum.is_nan() {
        return;
    }
    let scale = weights.len() as f64 / sum;
    let mut scaled: Vec<f64> = weights.iter().map(|weight| weight * scale).collect();
    let (mut small, mut large): (Vec<u32>, Vec<u32>) =
        (0..weights.len() as u32).partition(|&v| scaled[v as usize] < 1.0);
    while let Some(&high) = large.last() {
        let Some(low) = small.pop() else { break };
        let weight = scaled[low as usize];
        table[low as usize] = Place { threshold: (weight * TWO_TO_64) as u64, alias: high };
        let rest = &mut scaled[high as usize];
        *rest -= 1.0 - weight;
        if *rest < 1.0 {
            small.extend(large.pop());
        }
    }
    // What is left is one up to rounding; a column of no weight must not be among it.
    for v in small.into_iter().chain(large) {
        let alias = if weights[v as usize] > 0.0 { v } else { heaviest(weights) };
        table[v as usize] = Place { threshold: if alias == v { u64::MAX } else { 0 }, alias };
    }
}

fn heaviest(weights: &[f64]) -> u32 {
    let heaviest = weights.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    heaviest.map_or(0, |(v, _)| v as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::Rng;
    use crate::stream::xoshiro;

    #[test]
    fn tables_carry_each_weight_to_the_last_digits() {
        let weights = [0.0, 3.0, 1e-9, 0.5, 0.25, 7.0, 0.0, 1.0];
        let mut matrix = FactorMatrix::new(weights.len(), 1);
        weights.iter().enumerate().for_each(|(v, &weight)| matrix.row_mut(v)[0] = weight);
        let aliases = Aliases::new(&matrix, matrix.sums(), 1);
        let mut mass = [0.0; 8];
        for (v, place) in aliases.places.iter().enumerate() {
            let kept = place.threshold as f64 / TWO_TO_64;
            mass[v] += kept;
            mass[place.alias as usize] += 1.0 - kept;
        }
        for (mass, weight) in mass.iter().zip(weights) {
            assert!((mass / 8.0 - weight / 11.75 * (1.0 - 1e-9 / 11.75)).abs() < 1e-15, "{mass} {weight}");
        }
        assert_eq!((mass[0], mass[6]), (0.0, 0.0));
    }

    #[test]
    fn every_place_of_a_table_is_filled() {
        let mut words = xoshiro([1, 1], 0, 0, 0);
        for cols in 1..200 {
            let weights: Vec<f64> = (0..cols).map(|_| words.uniform()).collect();
            let matrix = FactorMatrix::packed(cols, 1, &weights).unwrap();
            let aliases = Aliases::new(&matrix, matrix.sums(), 1);
            let mut mass = vec![0.0; cols];
            for (v, place) in aliases.places.iter().enumerate() {
                let kept = place.threshold as f64 / TWO_TO_64;
                mass[v] += kept;
                mass[place.alias as usize] += 1.0 - kept;
            }
            let total: f64 = weights.iter().sum();
            for (mass, weight) in mass.iter().zip(weights) {
                assert!((mass / cols as f64 - weight / total).abs() < 1e-14);
            }
        }
    }
}
