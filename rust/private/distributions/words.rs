//! Words for the elements of an array, many at a time.
//!
//! Elements are drawn in blocks of 4096. A block has eight generators side by side, xoshiro256++ each, whose states are Philox
//! blocks at `[lane, block, side, WORDS]`; element j of the block has word j / 8 of lane j mod 8. So a word is a function of key,
//! element and side, and the eight recurrences run as vectors; where four elements share a word, j is its place.
//! A row of a sweep has eight generators of its own, [`RowWords`].
//!
//! Sources: D. Blackman, S. Vigna (2021), Scrambled linear pseudorandom number generators (xoshiro256++); J. Salmon et al.
//! (2011), Parallel random numbers: as easy as 1, 2, 3 (Philox).

use crate::numeric::dispatch::Level;
use crate::numeric::floats::{FloatWork, Floats, LANES, float_work};
use crate::stream::{Xoshiro, philox};
use rand_core::SeedableRng;

/// The purpose of the states.
const WORDS: u64 = 0x0077_6f72_6473;
/// Elements of a block, which has its own generators: draws depend on it.
pub const BLOCK: usize = 4096;

/// Words of a block beside those of its elements, one after another.
pub fn spare(key: [u64; 2], block: u64) -> Xoshiro {
    let state = philox(key, [LANES as u64, block, 0, WORDS]);
    Xoshiro::from_seed(std::array::from_fn(|i| state[i / 8].to_le_bytes()[i % 8]))
}

/// The generators of a block.
#[derive(Clone, Debug)]
pub struct BlockWords {
    state: [[u64; LANES]; 4],
}

impl BlockWords {
    /// The words of the elements `block * BLOCK ..`; an element has a word for each side.
    pub fn new(key: [u64; 2], block: u64, side: u64) -> Self {
        Self::at(key, [block, side, WORDS])
    }

    /// The words of generators whose states are the blocks at `[lane, row, iteration, purpose]`.
    fn at(key: [u64; 2], [row, iteration, purpose]: [u64; 3]) -> Self {
        let mut state = [[0; LANES]; 4];
        for lane in 0..LANES {
            for (of_lane, word) in state.iter_mut().zip(philox(key, [lane as u64, row, iteration, purpose])) {
                of_lane[lane] = word;
            }
        }
        Self { state }
    }

    /// The words of the elements that follow; but for the last of a block, as many as a multiple of the lanes.
    pub fn fill(&mut self, level: Level, out: &mut [u64]) {
        float_work(level, Fill { state: &mut self.state, out });
    }
}

/// Words made ahead, 4 KiB. Not tuned.
const AHEAD: usize = 512;

/// The words of a row of cells, from eight generators side by side, made some hundred at a time.
#[derive(Clone, Debug)]
pub struct RowWords {
    generators: BlockWords,
    level: Level,
    buffer: [u64; AHEAD],
    used: usize,
}

impl RowWords {
    /// The words of a row: the states of the generators are the blocks at `[lane, row, iteration, purpose]`.
    pub fn new(level: Level, key: [u64; 2], purpose: u64, iteration: u64, row: u64) -> Self {
        let generators = BlockWords::at(key, [row, iteration, purpose]);
        Self { generators, level, buffer: [0; AHEAD], used: AHEAD }
    }

    /// Goes to another row.
    pub fn restart(&mut self, key: [u64; 2], purpose: u64, iteration: u64, row: u64) {
        self.generators = BlockWords::at(key, [row, iteration, purpose]);
        self.used = AHEAD;
    }

    #[inline(never)]
    fn refill(&mut self) {
        self.generators.fill(self.level, &mut self.buffer);
        self.used = 0;
    }

    /// The next eight uniform numbers, of 52 bits each; what was left of eight words before is not used.
    #[inline(always)]
    pub fn eight(&mut self) -> [f64; LANES] {
        self.used = self.used.next_multiple_of(LANES);
        if self.used == AHEAD {
            self.refill();
        }
        let words = &self.buffer[self.used..self.used + LANES];
        self.used += LANES;
        let mut out = [0.0; LANES];
        for (out, word) in out.iter_mut().zip(words) {
            *out = uniform(*word);
        }
        out
    }

    /// The next word.
    #[inline(always)]
    pub fn word(&mut self) -> u64 {
        if self.used == AHEAD {
            self.refill();
        }
        let word = self.buffer[self.used % AHEAD];
        self.used += 1;
        word
    }

    /// The next uniform number.
    #[inline(always)]
    pub fn uniform(&mut self) -> f64 {
        uniform(self.word())
    }

    /// The next uniform numbers.
    #[inline(always)]
    pub fn uniforms(&mut self, mut out: &mut [f64]) {
        while !out.is_empty() {
            if self.used == AHEAD {
                self.refill();
            }
            let words = &self.buffer[self.used..];
            let (now, later) = out.split_at_mut(words.len().min(out.len()));
            now.iter_mut().zip(words).for_each(|(out, word)| *out = uniform(*word));
            self.used += now.len();
            out = later;
        }
    }

    /// Fills a slice with the next words.
    pub fn fill(&mut self, out: &mut [u64]) {
        self.used = AHEAD;
        self.generators.fill(self.level, out);
    }
}

/// A uniform number in `[0, 1)` of the upper 52 bits of a word, by operations that every vector unit has.
#[inline(always)]
pub fn uniform(word: u64) -> f64 {
    f64::from_bits(0x3FF0_0000_0000_0000 | word >> 12) - 1.0
}

struct Fill<'a> {
    state: &'a mut [[u64; LANES]; 4],
    out: &'a mut [u64],
}

impl FloatWork for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, f: F) {
        let mut state = [f.load_words(&self.state[0]); 4];
        for (registers, state) in state.iter_mut().zip(&*self.state) {
            *registers = f.load_words(state);
        }
        let (groups, rest) = self.out.as_chunks_mut::<LANES>();
        for group in groups {
            f.store_words(f.xoshiro(&mut state), group);
        }
        if !rest.is_empty() {
            let mut words = [0; LANES];
            f.store_words(f.xoshiro(&mut state), &mut words);
            rest.copy_from_slice(&words[..rest.len()]);
        }
        for (registers, state) in state.into_iter().zip(self.state) {
            f.store_words(registers, state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::Rng;
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
