//! Channels: the check that a matrix is one, and the best guess for each output.
//!
//! With prior p the Bayes vulnerability after the output is sum_y max_x p_x C_xy: the chance that the best guess is right.
//!
//! Source: G. Smith (2009), On the foundations of quantitative information flow.

use crate::numeric::dispatch::{at_level, level};
use crate::{Error, Result};

/// A matrix in row-major order, seen and not owned.
#[derive(Clone, Copy, Debug)]
pub struct ChannelMatrix<'a> {
    entries: &'a [f64],
    rows: usize,
    cols: usize,
}

impl<'a> ChannelMatrix<'a> {
    /// A view of `rows * cols` entries.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are more or fewer, [`Error::Domain`] if there are none.
    pub fn new(entries: &'a [f64], rows: usize, cols: usize) -> Result<Self> {
        Error::require(rows > 0 && cols > 0, "matrix", format_args!("shape ({rows}, {cols})"), "not empty")?;
        if rows.checked_mul(cols) != Some(entries.len()) {
            let found = format_args!("{} entries", entries.len());
            return Err(Error::shape("matrix", format_args!("({rows}, {cols})"), found));
        }
        Ok(Self { entries, rows, cols })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// One row.
    #[inline]
    pub fn row(&self, row: usize) -> &'a [f64] {
        &self.entries[row * self.cols..][..self.cols]
    }

    /// The rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [f64]> {
        self.entries.chunks_exact(self.cols)
    }

    /// All entries, row by row.
    pub fn entries(&self) -> &'a [f64] {
        self.entries
    }
}

/// Checks that the entries are probabilities and each row adds up to 1 within `atol`.
///
/// # Errors
/// [`Error::Domain`] with the place and value of the first entry or row that fails.
pub fn check_channel(matrix: ChannelMatrix<'_>, atol: f64) -> Result<()> {
    for (x, row) in matrix.iter().enumerate() {
        if let Some(y) = row.iter().position(|&entry| !(0.0..f64::INFINITY).contains(&entry)) {
            let found = format_args!("{:?} at row {x}, column {y}", row[y]);
            return Err(Error::domain("matrix", found, "made of finite entries of at least 0"));
        }
        let total = sum(row);
        let whole = (total - 1.0).abs() <= atol;
        Error::require(whole, "matrix", format_args!("the sum {total:?} in row {x}"), "made of rows that sum to 1")?;
    }
    Ok(())
}

/// The sum of a row in eight interleaved parts: the same on every machine.
fn sum(row: &[f64]) -> f64 {
    at_level!(level(), {
        let mut parts = [0.0; 8];
        let chunks = row.chunks_exact(8);
        let rest = chunks.remainder();
        for chunk in chunks {
            for (part, entry) in parts.iter_mut().zip(chunk) {
                *part += entry;
            }
        }
        parts.iter().sum::<f64>() + rest.iter().sum::<f64>()
    })
}

/// For each column the largest of the weighted entries, and the first row where it is reached; weights of 1 if not given.
///
/// # Errors
/// [`Error::Shape`] unless there is one weight for each row.
pub fn column_maxima(matrix: ChannelMatrix<'_>, weights: Option<&[f64]>) -> Result<(Vec<f64>, Vec<i64>)> {
    if let Some(weights) = weights
        && weights.len() != matrix.rows()
    {
        return Err(Error::shape("prior", format_args!("({},)", matrix.rows()), format_args!("({},)", weights.len())));
    }
    let mut maxima = vec![f64::NEG_INFINITY; matrix.cols()];
    let mut places = vec![0; matrix.cols()];
    for (x, row) in matrix.iter().enumerate() {
        raise(&mut maxima, &mut places, row, weights.map_or(1.0, |weights| weights[x]), x as i64);
    }
    Ok((maxima, places))
}

fn raise(maxima: &mut [f64], places: &mut [i64], row: &[f64], weight: f64, place: i64) {
    at_level!(level(), {
        for ((most, at), entry) in maxima.iter_mut().zip(places).zip(row) {
            let value = weight * entry;
            let higher = value > *most;
            *at = if higher { place } else { *at };
            *most = if higher { value } else { *most };
        }
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn view(entries: &[f64], rows: usize) -> ChannelMatrix<'_> {
        ChannelMatrix::new(entries, rows, entries.len() / rows).unwrap()
    }

    #[test]
    fn a_channel_passes_and_the_first_fault_is_named() {
        assert!(check_channel(view(&[0.5, 0.5, 0.0, 1.0], 2), 0.0).is_ok());
        for (entries, part) in [
            ([0.5, 0.5, -0.1, 1.1], "-0.1 at row 1, column 0"),
            ([0.5, 0.5, f64::NAN, 1.0], "NaN at row 1, column 0"),
            ([0.5, 0.5, 0.0, f64::INFINITY], "inf at row 1, column 1"),
            ([0.5, 0.5, 0.25, 0.5], "the sum 0.75 in row 1"),
        ] {
            let message = check_channel(view(&entries, 2), 1e-9).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn an_empty_matrix_is_refused() {
        assert!(matches!(ChannelMatrix::new(&[], 0, 3), Err(Error::Domain { name: "matrix", .. })));
        assert!(matches!(ChannelMatrix::new(&[1.0; 3], 2, 2), Err(Error::Shape { name: "matrix", .. })));
    }

    #[test]
    fn ties_go_to_the_first_row() {
        let entries = [0.5, 0.25, 0.25, 0.5, 0.0, 0.5];
        assert_eq!(column_maxima(view(&entries, 2), None).unwrap(), (vec![0.5, 0.25, 0.5], vec![0, 0, 1]));
        let weighted = column_maxima(view(&entries, 2), Some(&[0.25, 0.75])).unwrap();
        assert_eq!(weighted, (vec![0.375, 0.0625, 0.375], vec![1, 0, 1]));
        assert!(column_maxima(view(&entries, 2), Some(&[1.0])).is_err());
    }
}
