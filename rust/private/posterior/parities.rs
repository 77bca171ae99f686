//! Parities of records that were released with noise, as a chain over the records sees them.
//!
//! The coefficient of a set of columns is c = sum over records of (-1)^(ones in these columns); its release is c plus noise. Of an
//! offset d = c - release of each set the noise has a mass proportional to exp(-e |d|), |d| the sum of all or the largest. Where a
//! record turns over in one column, c moves by 2 for each set with this column; where it comes or goes, by 1 for every set.
//!
//! Where e is large a chain would keep to the first records from which each single turn is uphill. So e grows from little to what it
//! is while a chain warms up.
//!
//! Source: Z. Zhang, B. I. P. Rubinstein, C. Dimitrakakis (2016), On the differential privacy of Bayesian inference, section 4.

use crate::monitor::Progress;
use crate::{Error, Result, memory};

/// How far all offsets are from zero together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// The sum of all.
    Sum,
    /// The largest.
    Largest,
}

/// Releases of parities.
#[derive(Clone, Debug)]
pub struct Parities {
    sets: Vec<Vec<usize>>,
    released: Vec<f64>,
    exponent: f64,
    norm: Norm,
    /// Of each column: the sets that have it, and all others.
    with: Vec<Vec<usize>>,
    without: Vec<Vec<usize>>,
}

/// The offsets of all parities, and the signs of the record that is looked at.
#[derive(Clone, Debug)]
pub(super) struct Offsets {
    offsets: Vec<f64>,
    signs: Vec<f64>,
    /// What e is multiplied by: less than one in the first half of the warm-up.
    share: f64,
}

/// What e is at first, at the most: a turn of few sets then costs a tenth.
const MILD: f64 = 0.1;

impl Parities {
    /// No parities of so many columns.
    pub(super) fn none(width: usize) -> Self {
        Self::new(vec![], vec![], 1.0, Norm::Sum, width).expect("nothing that does not fit")
    }

    /// Sets of the columns below `width`, their coefficients as released, and the law of the noise.
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::Domain`] where lengths, columns or numbers do not fit.
    pub fn new(sets: Vec<Vec<usize>>, released: Vec<f64>, exponent: f64, norm: Norm, width: usize) -> Result<Self> {
        Error::require_shape("released", [sets.len()], [released.len()])?;
        Error::require_all(&released, f64::is_finite, "released", "finite")?;
        Error::require(exponent > 0.0 && exponent < f64::INFINITY, "exponent", exponent, "positive")?;
        let entries = sets.len() as u128 * (width as u128 + 5) + sets.iter().map(|set| set.len() as u128).sum::<u128>();
        memory::charge("the parities of a network", 8 * entries)?;
        for set in &sets {
            Error::require_all(set, |column| column < width, "sets", "columns")?;
        }
        let (with, without) =
            (0..width).map(|column| (0..sets.len()).partition::<Vec<usize>, _>(|&g| sets[g].contains(&column))).unzip();
        Ok(Self { sets, released, exponent, norm, with, without })
    }

    /// The offsets of these records, `width` categories each.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(super) fn offsets(&self, records: &[u16], width: usize, progress: &Progress) -> Result<Offsets> {
        let offsets = self.released.iter().map(|c| -c).collect();
        let mut found = Offsets { offsets, signs: vec![], share: 1.0 };
        for (row, record) in records.chunks_exact(width).enumerate() {
            progress.check_at(row * self.stride())?;
            self.look(&mut found, record);
            self.shift(&mut found, 1.0);
        }
        Ok(found)
    }

    /// How many steps of other work a record's are, to look for a stop as often.
    pub(super) fn stride(&self) -> usize {
        self.sets.len().next_power_of_two().min(1 << 12)
    }

    /// Lets e be what it is in this sweep of so many that warm up.
    pub(super) fn temper(&self, state: &mut Offsets, sweep: u64, warmup: u64) {
        let mild = (MILD / self.exponent).min(1.0);
        state.share = mild.powf((1.0 - 2.0 * sweep as f64 / warmup as f64).max(0.0));
    }

    /// Takes the signs of a record.
    pub(super) fn look(&self, state: &mut Offsets, record: &[u16]) {
        let sign = |set: &Vec<usize>| 1.0 - 2.0 * f64::from(set.iter().fold(0, |bits, &column| bits ^ record[column]));
        state.signs.clear();
        state.signs.extend(self.sets.iter().map(sign));
    }

    /// What the energy e |d| gains where the record turns over in a column.
    pub(super) fn energy_of_turn(&self, state: &Offsets, column: usize) -> f64 {
        let after = |&g: &usize| (state.offsets[g] - 2.0 * state.signs[g]).abs();
        let before = |&g: &usize| state.offsets[g].abs();
        let (old, new) = (self.with[column].iter().map(before), self.with[column].iter().map(after));
        self.exponent(state)
            * match self.norm {
                Norm::Sum => new.sum::<f64>() - old.sum::<f64>(),
                Norm::Largest => {
                    let rest = self.without[column].iter().map(before).fold(0.0, f64::max);
                    new.fold(rest, f64::max) - old.fold(rest, f64::max)
                }
            }
    }

    /// Turns the record over in a column.
    pub(super) fn turn(&self, state: &mut Offsets, column: usize) {
        for &g in &self.with[column] {
            state.offsets[g] -= 2.0 * state.signs[g];
            state.signs[g] = -state.signs[g];
        }
    }

    /// What the energy gains where the record comes (1) or goes (-1).
    pub(super) fn energy_of_shift(&self, state: &Offsets, way: f64) -> f64 {
        let after = state.offsets.iter().zip(&state.signs).map(|(offset, sign)| offset + way * sign);
        self.exponent(state) * (self.size(after) - self.distance_of_all(state))
    }

    /// Lets the record come or go.
    pub(super) fn shift(&self, state: &mut Offsets, way: f64) {
        for (offset, sign) in state.offsets.iter_mut().zip(&state.signs) {
            *offset += way * sign;
        }
    }

    /// The exponent e of this sweep; zero where nothing was released.
    pub(super) fn exponent(&self, state: &Offsets) -> f64 {
        if self.sets.is_empty() { 0.0 } else { self.exponent * state.share }
    }

    /// How far all offsets are from zero.
    pub(super) fn distance_of_all(&self, state: &Offsets) -> f64 {
        self.size(state.offsets.iter().copied())
    }

    /// How far the offsets of all sets within these columns are from zero.
    pub(super) fn distance(&self, state: &Offsets, columns: &[usize]) -> f64 {
        let mut inside = vec![false; self.with.len()];
        columns.iter().for_each(|&column| inside[column] = true);
        let within = |set: &Vec<usize>| set.iter().all(|&column| inside[column]);
        self.size(state.offsets.iter().zip(&self.sets).filter(|(_, set)| within(set)).map(|(&offset, _)| offset))
    }

    fn size(&self, offsets: impl Iterator<Item = f64>) -> f64 {
        match self.norm {
            Norm::Sum => offsets.map(f64::abs).sum(),
            Norm::Largest => offsets.map(f64::abs).fold(0.0, f64::max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(one: f64, other: f64) {
        assert!((one - other).abs() < 1e-12, "{one} is not {other}");
    }

    #[test]
    fn energies_are_those_of_offsets_counted_anew() {
        let records = [0u16, 0, 1, 0, 1, 1];
        for norm in [Norm::Sum, Norm::Largest] {
            let sets = vec![vec![], vec![0], vec![1], vec![0, 1]];
            let parities = Parities::new(sets, vec![3.5, -1.0, 2.0, 0.25], 0.7, norm, 2).unwrap();
            let counted = |records: &[u16]| parities.offsets(records, 2, &Progress::default()).unwrap();
            let energy = |state: &Offsets| 0.7 * parities.distance(state, &[0, 1]);
            for row in 0..3 {
                let mut state = counted(&records);
                let before = energy(&state);
                parities.look(&mut state, &records[2 * row..2 * row + 2]);
                let others = [&records[..2 * row], &records[2 * row + 2..]].concat();
                close(parities.energy_of_shift(&state, -1.0), energy(&counted(&others)) - before);
                for column in 0..2 {
                    let mut turned = records;
                    turned[2 * row + column] ^= 1;
                    close(parities.energy_of_turn(&state, column), energy(&counted(&turned)) - before);
                    parities.turn(&mut state, column);
                    assert_eq!(state.offsets, counted(&turned).offsets);
                    parities.turn(&mut state, column);
                }
            }
        }
    }

    #[test]
    fn the_exponent_is_what_it_is_from_the_middle_of_the_warm_up_on() {
        let parities = Parities::new(vec![vec![0]], vec![1.0], 5.0, Norm::Sum, 1).unwrap();
        let mut state = parities.offsets(&[], 1, &Progress::default()).unwrap();
        let mut exponent = |sweep, warmup| {
            parities.temper(&mut state, sweep, warmup);
            parities.exponent(&state)
        };
        assert!(exponent(1, 100) < 0.12 && exponent(1, 100) < exponent(2, 100) && exponent(49, 100) < 5.0);
        assert_eq!([(50, 100), (100, 100), (101, 100), (1, 0), (1, 1)].map(|(k, n)| exponent(k, n)), [5.0; 5]);
    }
}
