//! Cylinders: the two halves of a ring meet twice.
//!
//! A ring is read from its middle outwards on both sides, like an open row, and the last symbols of both words are neighbors as
//! well: no element stands for two words that both end in 1. So a complete row is T of the open row, and zeros at these elements.
//! That is no congruence, but it keeps the matrix symmetric. It stands between U and U' of both sides:
//!
//!   U' on the rows of the matrix, U' on its columns, zeros, U on its columns, U on its rows.
//!
//! Between S and S' all symbols of both sides are at hand. There is no start of low rank: the first row is 1 at each of its states.
//!
//! Source: derived here, see `docs/mathematics/counting.md`.

use super::super::square::words::list;
use super::activity::ActivityPowers;
use super::axis::Symmetric;
use crate::numeric::neighbors::{Neighbors, TILE, TILE_WORDS};

/// Which words of one matrix end in 1, as bits of eight words.
#[derive(Clone, Debug)]
pub struct LastSymbols {
    /// By run and tile.
    by_run: Vec<Vec<u8>>,
    /// By the place of the rest.
    by_place: Vec<u8>,
}

impl LastSymbols {
    /// Those of a matrix.
    pub fn new(half: &Symmetric) -> Self {
        let axis = &half.axis;
        let bits = |words: &[u64]| (0..).zip(words).fold(0, |bits, (i, word)| bits | (((word & 1) as u8) << i));
        let words = list(axis.longest);
        let run = axis.runs.iter().map(|run| {
            let tile = |t| {
                let (at, valid) = run.tile(t);
                bits(&words[at..at + valid])
            };
            (0..run.tiles()).map(tile).collect()
        });
        let rests = list(axis.longest - 1);
        Self { by_run: run.collect(), by_place: rests.chunks(TILE).map(bits).collect() }
    }

    /// Those of a tile of a run.
    #[inline(always)]
    pub fn tile(&self, run: usize, tile: usize) -> u8 {
        self.by_run[run][tile]
    }

    /// Those at a place.
    #[inline(always)]
    pub fn place(&self, place: usize) -> u8 {
        self.by_place[place]
    }
}

/// Zeros where both words end in 1, in a tile with these bits for rows and for columns.
///
/// # Safety
/// The tile can be written.
#[inline(always)]
pub unsafe fn part_ends<A: Neighbors>(a: A, tile: *mut u64, rows: u8, columns: u8) {
    for i in (0..TILE_WORDS).step_by(A::LANES).filter(|i| rows >> (i / TILE) & 1 == 1) {
        // SAFETY: the caller's.
        unsafe { a.store(tile.add(i), a.clear(a.load(tile.add(i)), columns >> (i % TILE))) };
    }
}

/// Writes one block of the first row: powers of the activity at the states, zeros elsewhere.
///
/// # Safety
/// The block lies in the vector, and is the caller's alone.
pub unsafe fn first_row(
    half: &Symmetric,
    (a, b): (usize, usize),
    last: &LastSymbols,
    weights: Option<&ActivityPowers>,
    vector: *mut u64,
) {
    let runs = &half.axis.runs;
    let words = list(half.axis.longest);
    for (r, c) in (0..runs[a].tiles()).flat_map(|r| (0..runs[b].tiles()).map(move |c| (r, c))) {
        let [(row, rows), (column, columns)] = [runs[a].tile(r), runs[b].tile(c)];
        for (i, j) in (0..TILE).flat_map(|i| (0..TILE).map(move |j| (i, j))) {
            let meets = last.tile(a, r) >> i & last.tile(b, c) >> j & 1 == 1;
            let value = if i >= rows || j >= columns || meets {
                0
            } else if let Some(weights) = weights {
                let ones = words[row + i].count_ones() + words[column + j].count_ones();
                weights.powers[(ones + runs[a].ones + runs[b].ones + half.middle) as usize]
            } else {
                1
            };
            // SAFETY: the caller's.
            unsafe { *vector.add(half.tile((a, b), r, c) + i * TILE + j) = value };
        }
    }
}
