//! Random streams with an address: Philox4x64-10, bit for bit the generator of `numpy.random.Philox`.
//!
//! A block of four words is a function of a 128-bit key and a 256-bit counter, so every random number has an address,
//! `[block, row, iteration, purpose]`, and draws do not depend on threads, on how rows are split, or on a stop and resume.
//!
//! Source: J. Salmon, M. Moraes, R. Dror, D. Shaw (2011), Parallel random numbers: as easy as 1, 2, 3; Philox with ten rounds.
//!
//! Where one address serves many draws, as a row of a Gibbs sweep does, its first block seeds [`xoshiro`]: xoshiro256++, whose
//! words come at a quarter of the price and depend on the address all the same.
//!
//! Source of the latter: D. Blackman, S. Vigna (2021), Scrambled linear pseudorandom number generators.

use rand_core::{Infallible, SeedableRng, TryRng};
pub use rand_xoshiro::Xoshiro256PlusPlus as Xoshiro;

/// The multipliers of Philox4x64, the authors'.
const MULTIPLIER: [u64; 2] = [0xD2E7_470E_E14C_6C93, 0xCA5A_8263_9512_1157];
/// What its key grows by: the golden ratio and the square root of three, less one each, in 64 bits.
const WEYL: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xBB67_AE85_84CA_A73B];

/// The block of four words at one counter.
#[inline]
pub fn philox(key: [u64; 2], counter: [u64; 4]) -> [u64; 4] {
    philox_blocks(key, [counter])[0]
}

/// The blocks at several counters, round by round side by side: two together take 1.5 times as long as one.
#[inline(always)]
pub fn philox_blocks<const N: usize>(key: [u64; 2], mut blocks: [[u64; 4]; N]) -> [[u64; 4]; N] {
    let [mut k0, mut k1] = key;
    for _ in 0..10 {
        for block in &mut blocks {
            let [c0, c1, c2, c3] = *block;
            let left = u128::from(MULTIPLIER[0]) * u128::from(c0);
            let right = u128::from(MULTIPLIER[1]) * u128::from(c2);
            *block = [(right >> 64) as u64 ^ c1 ^ k0, right as u64, (left >> 64) as u64 ^ c3 ^ k1, left as u64];
        }
        k0 = k0.wrapping_add(WEYL[0]);
        k1 = k1.wrapping_add(WEYL[1]);
    }
    blocks
}

/// Fills `blocks` with those at `counter` and at the counters after it, whose first words follow.
///
/// A function of its own, for the optimizer has a way of spreading its multiplications over vectors, at twice the time.
#[inline(never)]
pub fn fill_blocks(key: [u64; 2], counter: [u64; 4], blocks: &mut [[u64; 4]]) {
    let [first, row, iteration, purpose] = counter;
    let at = |i: usize| [first.wrapping_add(i as u64), row, iteration, purpose];
    let (pairs, rest) = blocks.as_chunks_mut::<2>();
    let last = 2 * pairs.len();
    for (i, pair) in pairs.iter_mut().enumerate() {
        *pair = philox_blocks(key, [at(2 * i), at(2 * i + 1)]);
    }
    if let [block] = rest {
        *block = philox(key, at(last));
    }
}

/// One stream: the words at `[0, row, iteration, purpose]`, `[1, row, iteration, purpose]`, ... of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    key: [u64; 2],
    counter: [u64; 4],
    block: [u64; 4],
    used: usize,
}

impl Stream {
    /// The stream of one address. Nothing is computed before the first draw.
    #[inline]
    pub fn new(key: [u64; 2], purpose: u64, iteration: u64, row: u64) -> Self {
        Self { key, counter: [0, row, iteration, purpose], block: [0; 4], used: 4 }
    }

    /// The next word.
    #[inline]
    pub fn word(&mut self) -> u64 {
        if self.used == 4 {
            self.block = philox(self.key, self.counter);
            self.counter[0] = self.counter[0].wrapping_add(1);
            self.used = 0;
        }
        self.used += 1;
        self.block[self.used - 1]
    }

    /// A uniform number in `[0, 1)` with 53 random bits.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.word() >> 11) as f64 * f64::from_bits(0x3CA0_0000_0000_0000)
    }
}

/// The stream of xoshiro256++ whose state is the first block of an address.
#[inline]
pub fn xoshiro(key: [u64; 2], purpose: u64, iteration: u64, row: u64) -> Xoshiro {
    let mut seed = [0; 32];
    for (bytes, word) in seed.chunks_exact_mut(8).zip(philox(key, [0, row, iteration, purpose])) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    Xoshiro::from_seed(seed)
}

impl TryRng for Stream {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.word() >> 32) as u32)
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.word())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.word().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_those_of_numpy() {
        // The first known answer of the authors' test vectors; `tests/test_rng.py` compares whole streams with NumPy's.
        assert_eq!(
            philox([0, 0], [0; 4]),
            [0x1655_4d9e_ca36_314c, 0xdb20_fe9d_672d_0fdc, 0xd7e7_72ce_e186_176b, 0x7e68_b68a_ec7b_a23b]
        );
    }

    #[test]
    fn an_address_is_the_state_of_its_generator() {
        // The recurrence of xoshiro256++, from the block of the address.
        let [mut a, mut b, mut c, mut d] = philox([1, 2], [0, 5, 4, 3]);
        let mut rng = xoshiro([1, 2], 3, 4, 5);
        for _ in 0..100 {
            assert_eq!(rand_core::Rng::next_u64(&mut rng), a.wrapping_add(d).rotate_left(23).wrapping_add(a));
            (c, d) = (c ^ a, d ^ b);
            (a, b, c, d) = (a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45));
        }
    }

    #[test]
    fn the_upper_bits_make_uniform_numbers_below_one() {
        assert_eq!(f64::from_bits(0x3CA0_0000_0000_0000), 2f64.powi(-53));
        let mut stream = Stream::new([1, 2], 3, 4, 5);
        assert!((0..1000).map(|_| stream.uniform()).all(|u| (0.0..1.0).contains(&u)));
    }
}
