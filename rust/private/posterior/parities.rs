//! Parities of records that were released with noise, as a chain over the records sees them.
//!
//! The coefficient of a set of columns is c = sum over records of (-1)^(ones in these columns); its release is c plus noise. Of an
//! offset d = c - release of each set the noise has a mass proportional to exp(-e |d|), |d| the sum of all or the largest. Where a
//! record turns over in one column, c moves by 2 for each set with this column; where it comes or goes, by 1 for every set.
//!
//! Source: Z. Zhang, B. I. P. Rubinstein, C. Dimitrakakis (2016), On the differential privacy of Bayesian inference, section 4.

use crate::{Error, Result};

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
#[derive(Clone, Debug, Default)]
pub(super) struct Offsets {
    pub offsets: Vec<f64>,
    signs: Vec<f64>,
}

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
        for set in &sets {
            Error::require_all(set, |column| column < width, "sets", "columns")?;
        }
        let (with, without) =
            (0..width).map(|column| (0..sets.len()).partition::<Vec<usize>, _>(|&g| sets[g].contains(&column))).unzip();
        Ok(Self { sets, released, exponent, norm, with, without })
    }

    /// The offsets of these records, `width` categories each.
    pub(super) fn offsets(&self, records: &[u16], width: usize) -> Offsets {
        let mut found = Offsets { offsets: self.released.iter().map(|c| -c).collect(), signs: vec![] };
        for record in records.chunks_exact(width) {
            self.look(&mut found, record);
            self.shift(&mut found, 1.0);
        }
        found
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
        self.exponent
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
        self.exponent * (self.size(after) - self.distance_of_all(state))
    }

    /// Lets the record come or go.
    pub(super) fn shift(&self, state: &mut Offsets, way: f64) {
        for (offset, sign) in state.offsets.iter_mut().zip(&state.signs) {
            *offset += way * sign;
        }
    }

    /// The exponent of the noise; zero where there is none.
    pub(super) fn exponent(&self) -> f64 {
        if self.sets.is_empty() { 0.0 } else { self.exponent }
    }

    /// How far all offsets are from zero.
    pub(super) fn distance_of_all(&self, state: &Offsets) -> f64 {
        self.size(state.offsets.iter().copied())
    }

    /// How far the offsets of all sets within these columns are from zero.
    pub(super) fn distance(&self, state: &Offsets, columns: &[usize]) -> f64 {
        let within = |set: &Vec<usize>| set.iter().all(|column| columns.contains(column));
        self.size(state.offsets.iter().zip(&self.sets).filter(|(_, set)| within(set)).map(|(&offset, _)| offset))
    }

    fn size(&self, offsets: impl Iterator<Item = f64>) -> f64 {
        match self.norm {
            Norm::Sum => offsets.map(f64::abs).sum(),
            Norm::Largest => offsets.map(f64::abs).fold(0.0, f64::max),
        }
    }
}
