//! Released numbers by cells of a grid that their mechanism fixes: whole numbers, so that parts of the users add up exactly.
//!
//! A release z within the bounds lies in cell c = floor(w) of w = (z - lower) cells / (upper - lower), at t = w - c - 1/2. A cell
//! keeps the number of its values and the sums of t, t^2 and t^3, each rounded to a multiple of 2^-30: below 2^33 users no sum
//! leaves 64 bits. Four Chebyshev nodes with weights of both signs have the same moments, which leaves an error of the fourth
//! power of a cell. Beyond the bounds the numbers of values count, and by how much they lie beyond, as an exact sum.
//!
//! Source: L. Trefethen (2013), Approximation Theory and Approximation Practice, theorem 8.2 (how fast the error falls).

use super::sums::ExactSum;
use crate::{Error, Result};
use std::f64::consts::PI;

/// Binary places of the moments, of which sums over fewer than 2^33 users fit 64 bits; and half of their unit, for rounding.
const PLACES: u32 = 30;
const HALF: i64 = 1 << (PLACES - 1);

/// What the users of one mechanism released.
#[derive(Clone, Debug)]
pub struct Cells {
    /// How many released the lower bound or less.
    pub below: u64,
    /// How many released the upper bound or more.
    pub above: u64,
    /// The sum of what lies above less that of what lies below.
    pub beyond: ExactSum,
    /// Number of values, sums of t, t^2, t^3 of each cell.
    pub sums: Vec<[i64; 4]>,
}

impl Cells {
    /// Sorts releases into a number of cells between two bounds.
    ///
    /// # Errors
    /// [`Error::Domain`] naming the index of a value that is not finite.
    pub fn new(released: &[f64], (lower, upper): (f64, f64), number: usize) -> Result<Self> {
        let (mut below, mut above, mut beyond) = (0, 0, ExactSum::default());
        let mut sums = vec![[0; 4]; number];
        let per_unit = number as f64 / (upper - lower) * (1u64 << PLACES) as f64;
        for (index, &z) in released.iter().enumerate() {
            if z > lower && z < upper {
                let place = ((z - lower) * per_unit + 0.5) as i64;
                let cell = ((place >> PLACES) as usize).min(number - 1);
                let t = place - ((cell as i64) << PLACES) - HALF;
                let square = (t * t + HALF) >> PLACES;
                let sums = &mut sums[cell];
                sums[0] += 1;
                sums[1] += t;
                sums[2] += square;
                sums[3] += (square * t + HALF) >> PLACES;
            } else if z.is_finite() {
                below += u64::from(z <= lower);
                above += u64::from(z >= upper);
                beyond.add_number(if z <= lower { -z } else { z });
            } else {
                return Err(not_finite(index, z));
            }
        }
        Ok(Self { below, above, beyond, sums })
    }
}

/// The refusal of a release that is not finite, by its index.
fn not_finite(index: usize, z: f64) -> Error {
    Error::domain("released", format_args!("{z} at index ({index},)"), "finite numbers")
}

/// Refuses releases of which one is not finite.
///
/// # Errors
/// [`Error::Domain`] naming its index.
pub(super) fn check_finite(released: &[f64]) -> Result<()> {
    let strange = released.iter().position(|z| !z.is_finite());
    strange.map_or(Ok(()), |index| Err(not_finite(index, released[index])))
}

/// The cells that are not empty: their indices, below a number of them, and their sums.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// How many cells there are.
    pub number: usize,
    /// Which of them, in increasing order.
    pub index: &'a [i64],
    /// Number of values, sums of t, t^2, t^3 of each.
    pub sums: &'a [[i64; 4]],
}

/// The nodes of a cell on [-1/2, 1/2] and their weights, by its sums.
#[must_use]
pub fn nodes(sums: &[i64; 4]) -> [(f64, f64); 4] {
    let unit = 1.0 / (1u64 << PLACES) as f64;
    let [zeroth, first, second, third] =
        [sums[0] as f64, sums[1] as f64 * unit, sums[2] as f64 * unit, sums[3] as f64 * unit];
    let nodes: [f64; 4] = std::array::from_fn(|k| -0.5 * (PI * (k as f64 + 0.5) / 4.0).cos());
    // Lagrange's polynomials by their monomials.
    std::array::from_fn(|k| {
        let [p, q, r]: [f64; 3] = std::array::from_fn(|j| nodes[if j < k { j } else { j + 1 }]);
        let scale = (nodes[k] - p) * (nodes[k] - q) * (nodes[k] - r);
        let weight = third - (p + q + r) * second + (p * q + p * r + q * r) * first - p * q * r * zeroth;
        (nodes[k], weight / scale)
    })
}
