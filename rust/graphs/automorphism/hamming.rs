//! The automorphism group of the Hamming graph H(u, v) without a search.
//!
//! Words of length u over v symbols, joined where they differ in one place, numbered by sum_i w_i v^i. The group is the
//! wreath product S_v wr S_u of order (v!)^u u!: permute the symbols in each place, and the places. For v = 1 or u = 0
//! there is one vertex.
//!
//! Source: A. Brouwer, A. Cohen, A. Neumaier (1989), Distance-Regular Graphs, section 9.2.

use super::permutation::Permutation;
use super::{AutomorphismGroup, Strong};
use crate::{Error, Result};
use num_bigint::BigUint;

/// The largest number of vertices: four generators that move nearly all take 32 bytes each.
const MOST: u64 = 1 << 26;

impl AutomorphismGroup {
    /// The full automorphism group of H(u, v).
    ///
    /// # Errors
    /// [`Error::Domain`] unless `v` is positive, [`Error::TooLarge`] for more than 2^26 vertices.
    pub fn hamming(u: u32, v: u32) -> Result<Self> {
        if v == 0 {
            return Err(Error::domain("alphabet_size", v, "at least 1"));
        }
        let points = u64::from(v).checked_pow(u).filter(|&points| points <= MOST).ok_or_else(|| Error::TooLarge {
            what: "the group of a Hamming graph",
            needed: u128::from(v).checked_pow(u).map_or(u128::MAX, |points| points.saturating_mul(32)),
            limit: 32 * u128::from(MOST),
        })? as u32;
        if points == 1 {
            return Self::from_generators(1, Vec::new());
        }
        // In place 0: the symbols 0, 1 exchanged, and all others and 0 left alone; 1 .. v-1 moved round, and 1, 2 exchanged.
        // Places: 0, 1 exchanged; all moved round. All but the first fix the word of zeros.
        let symbol = |map: &dyn Fn(u32) -> u32| {
            Permutation::from_moves((0..points).map(|word| (word, word - word % v + map(word % v))).collect())
        };
        let rotate = |word: u32| word % (points / v) * v + word / (points / v);
        let exchange = |word: u32| word - word % (v * v) + word % v * v + word % (v * v) / v;
        let fixing = [
            (v >= 4).then(|| symbol(&|s| if s == 0 { 0 } else { s % (v - 1) + 1 })),
            (v >= 3).then(|| symbol(&|s| [0, 2, 1].get(s as usize).copied().unwrap_or(s))),
            (u >= 2).then(|| Permutation::from_moves((0..points).map(|word| (word, exchange(word))).collect())),
            (u >= 3).then(|| Permutation::from_moves((0..points).map(|word| (word, rotate(word))).collect())),
        ];
        let swap = symbol(&|s| if s < 2 { 1 - s } else { s });
        let generators: Vec<_> = std::iter::once(swap).chain(fixing.into_iter().flatten()).collect();
        let factorial = |n: u32| (2..=n).map(BigUint::from).product::<BigUint>();
        let order = factorial(v).pow(u) * factorial(u);
        let fixes = (0..generators.len()).map(|index| usize::from(index > 0)).collect();
        let mut group = Self::from_generators(points as usize, generators)?;
        group.strong = Some(Strong { base: vec![0], fixes, complete: false });
        group.know_order(order);
        Ok(group)
    }
}
