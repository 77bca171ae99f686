//! Alias tables: the column of an event, given its component, in one lookup.
//!
//! A word w times the number of columns n is (place, fraction) in units of 2^64: the event falls on `place` if the fraction is
//! below its threshold, else on its alias. A table is filled in two walks over its columns, with no list of what is left.
//!
//! Sources: M. Vose (1991), A linear algorithm for generating random numbers with a given distribution; L. Hübschle-Schneider,
//! P. Sanders (2022), Parallel weighted random sampling (sweeping).

use super::factor_matrix::FactorMatrix;
use crate::parallel;

/// One place of a table.
#[derive(Clone, Copy, Debug, Default)]
struct AliasSlot {
    threshold: u64,
    alias: u32,
}

/// A table per component over the rows of a matrix.
#[derive(Clone, Debug, Default)]
pub struct Aliases {
    places: Vec<AliasSlot>,
    cols: usize,
    /// The sum of each component.
    pub sums: Vec<f64>,
}

impl Aliases {
    /// Tables of a matrix whose sums by component are known.
    pub fn new(matrix: &FactorMatrix, sums: Vec<f64>) -> Self {
        let cols = matrix.rows;
        let transposed = matrix.transposed();
        let mut places = vec![AliasSlot::default(); cols * matrix.width];
        let tables = parallel::pieces(
            &mut places,
            cols.max(1),
            || (),
            |(), k, table| {
                fill(table, &transposed[k * cols..][..cols], sums[k]);
                Ok(())
            },
        );
        tables.expect("tables that cannot fail");
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

/// `2^64`.
const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

/// Fills the table of weights with this sum; with no positive sum no event will ask.
///
/// Two fingers walk over the columns, one on those of less than the mean weight and one on the others: a light column is filled
/// up by the heavy one, and a heavy one that falls to the mean or below it by the next heavy one.
fn fill(table: &mut [AliasSlot], weights: &[f64], sum: f64) {
    if sum <= 0.0 || sum.is_nan() {
        return;
    }
    let (cols, scale) = (weights.len(), weights.len() as f64 / sum);
    let is_heavy = |v: usize| weights[v] * scale > 1.0;
    let light_from = |v: usize| (v..cols).find(|&v| !is_heavy(v)).unwrap_or(cols);
    let heavy_from = |v: usize| (v..cols).find(|&v| is_heavy(v)).unwrap_or(cols);
    // What is left at the end is one up to rounding; a column of no weight must not be among it.
    let whole = |v: usize| {
        let alias = if weights[v] > 0.0 { v } else { heaviest(weights) };
        AliasSlot { threshold: if alias == v { u64::MAX } else { 0 }, alias: alias as u32 }
    };
    let (mut light, mut heavy) = (light_from(0), heavy_from(0));
    let mut rest = if heavy < cols { weights[heavy] * scale } else { 0.0 };
    while heavy < cols {
        if rest > 1.0 && light < cols {
            let weight = weights[light] * scale;
            table[light] = AliasSlot { threshold: (weight * TWO_TO_64) as u64, alias: heavy as u32 };
            rest -= 1.0 - weight;
            light = light_from(light + 1);
        } else {
            let next = heavy_from(heavy + 1);
            let threshold = (rest * TWO_TO_64) as u64;
            table[heavy] = if next < cols { AliasSlot { threshold, alias: next as u32 } } else { whole(heavy) };
            rest = if next < cols { weights[next] * scale - (1.0 - rest.min(1.0)) } else { 0.0 };
            heavy = next;
        }
    }
    while light < cols {
        table[light] = whole(light);
        light = light_from(light + 1);
    }
}

fn heaviest(weights: &[f64]) -> usize {
    let heaviest = weights.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    heaviest.map_or(0, |(v, _)| v)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::RandomSource;
    use crate::stream::xoshiro;

    #[test]
    fn tables_carry_each_weight_to_the_last_digits() {
        let weights = [0.0, 3.0, 1e-9, 0.5, 0.25, 7.0, 0.0, 1.0];
        let mut matrix = FactorMatrix::new(weights.len(), 1);
        weights.iter().enumerate().for_each(|(v, &weight)| matrix.row_mut(v)[0] = weight);
        let aliases = Aliases::new(&matrix, matrix.sums());
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
            let aliases = Aliases::new(&matrix, matrix.sums());
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
