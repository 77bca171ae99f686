//! Words for the elements of an array, many at a time.
//!
//! Elements are drawn in blocks of 4096. A block has eight generators side by side, xoshiro256++ each, whose states are Philox
//! blocks at `[lane, block, side, WORDS]`; element j of the block has word j / 8 of lane j mod 8. So a word is a function of key,
//! element and side, and the eight recurrences run as vectors.
//!
//! Sources: D. Blackman, S. Vigna (2021), Scrambled linear pseudorandom number generators (xoshiro256++); J. Salmon et al.
//! (2011), Parallel random numbers: as easy as 1, 2, 3 (Philox).

use crate::numeric::dispatch::{Level, Work, work};
use crate::stream::philox;

/// The purpose of the states.
const WORDS: u64 = 0x0077_6f72_6473;
/// Generators side by side.
const LANES: usize = 8;
/// Elements of a block.
pub const BLOCK: usize = 4096;

/// The generators of a block.
pub struct BlockWords {
    state: [[u64; LANES]; 4],
}

impl BlockWords {
    /// The words of the elements `block * BLOCK ..`; an element has a word for each side.
    pub fn new(key: [u64; 2], block: u64, side: u64) -> Self {
        let mut state = [[0; LANES]; 4];
        for lane in 0..LANES {
            for (row, word) in state.iter_mut().zip(philox(key, [lane as u64, block, side, WORDS])) {
                row[lane] = word;
            }
        }
        Self { state }
    }

    /// The words of the elements that follow; but for the last of a block, as many as a multiple of the lanes.
    pub fn fill(&mut self, level: Level, out: &mut [u64]) {
        work(level, Fill { state: &mut self.state, out });
    }
}

struct Fill<'a> {
    state: &'a mut [[u64; LANES]; 4],
    out: &'a mut [u64],
}

impl Work for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let [mut a, mut b, mut c, mut d] = *self.state;
        let mut next = || {
            let mut words = [0; LANES];
            for i in 0..LANES {
                words[i] = a[i].wrapping_add(d[i]).rotate_left(23).wrapping_add(a[i]);
                let (third, fourth) = (c[i] ^ a[i], d[i] ^ b[i]);
                (a[i], b[i], c[i], d[i]) = (a[i] ^ fourth, b[i] ^ third, third ^ (b[i] << 17), fourth.rotate_left(45));
            }
            words
        };
        let (groups, rest) = self.out.as_chunks_mut::<LANES>();
        for group in groups {
            *group = next();
        }
        if !rest.is_empty() {
            rest.copy_from_slice(&next()[..rest.len()]);
        }
        *self.state = [a, b, c, d];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn a_lane_is_the_generator_of_the_authors_at_every_level() {
        for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
            let mut words = BlockWords::new([3, 4], 7, 1);
            let mut out = [0; 803];
            let (front, back) = out.split_at_mut(400);
            words.fill(level, front);
            words.fill(level, back);
            for lane in 0..LANES {
                let state = philox([3, 4], [lane as u64, 7, 1, WORDS]).map(u64::to_le_bytes);
                let mut reference = Xoshiro256PlusPlus::from_seed(state.concat().try_into().unwrap());
                assert!(out.iter().skip(lane).step_by(LANES).all(|&word| word == reference.next_u64()));
            }
        }
    }
}
