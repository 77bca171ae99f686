//! Random bits that protect people: whole words from a ChaCha generator that the operating system has keyed.
//!
//! A [`Generator`] is made for one release and dropped after it. Nothing survives from one release to the next, so a forked
//! child, a second thread and a restored snapshot of a machine each begin with a key of their own.
//!
//! Source: D. Bernstein (2008), ChaCha, a variant of Salsa20; here with twelve rounds.

use crate::{Error, Result};
use rand::SeedableRng;
use rand::rngs::{StdRng, SysRng};
use rand_core::{Rng, TryRng};

/// Where a sampler takes its randomness from: independent fair bits.
pub trait Source {
    /// The next `count` bits as a number below `2^count`, for `1 <= count <= 64`.
    fn bits(&mut self, count: u32) -> u64;

    /// A whole number below `bound`, each equally likely; `bound >= 1`.
    ///
    /// The product of a word and the bound, as in Lemire (2019), Fast random integer generation in an interval: the lower
    /// half decides in the rare case that the word must be drawn again.
    #[inline]
    fn below(&mut self, bound: u64) -> u64 {
        let mut product = u128::from(self.bits(64)) * u128::from(bound);
        if (product as u64) < bound {
            let uneven = bound.wrapping_neg() % bound;
            while (product as u64) < uneven {
                product = u128::from(self.bits(64)) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// Fills `bytes` with fair bits.
    fn fill(&mut self, bytes: &mut [u8]) {
        bytes.fill_with(|| self.bits(8) as u8);
    }
}

/// Words kept in hand, so that the cipher works on many blocks at once.
const BUFFER: usize = 256;

/// ChaCha with twelve rounds, keyed by the operating system (or, for tests, by a number).
pub struct Generator {
    cipher: StdRng,
    hand: [u64; BUFFER],
    used: usize,
}

impl Generator {
    /// A generator with a fresh key from the operating system.
    ///
    /// # Errors
    /// [`Error::Check`] if the operating system gives no random bytes.
    pub fn secure() -> Result<Self> {
        let mut key = [0; 32];
        SysRng
            .try_fill_bytes(&mut key)
            .map_err(|reason| Error::Check { what: "the system's random source", detail: reason.to_string() })?;
        Ok(Self::keyed(key))
    }

    /// A generator whose output anybody who knows the two words can repeat: no protection, for tests only.
    pub fn insecure(seed: [u64; 2]) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed[0].to_le_bytes());
        key[8..16].copy_from_slice(&seed[1].to_le_bytes());
        Self::keyed(key)
    }

    /// A secure generator, or an insecure one where a seed is given.
    ///
    /// # Errors
    /// As [`Generator::secure`].
    pub fn new(insecure_seed: Option<[u64; 2]>) -> Result<Self> {
        insecure_seed.map_or_else(Self::secure, |seed| Ok(Self::insecure(seed)))
    }

    fn keyed(key: [u8; 32]) -> Self {
        Self { cipher: StdRng::from_seed(key), hand: [0; BUFFER], used: BUFFER }
    }

    #[cold]
    fn refill(&mut self) {
        let mut bytes = [0; 8 * BUFFER];
        self.cipher.fill_bytes(&mut bytes);
        for (word, eight) in self.hand.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_le_bytes(*eight);
        }
        self.used = 0;
    }
}

impl Source for Generator {
    #[inline]
    fn bits(&mut self, count: u32) -> u64 {
        if self.used == BUFFER {
            self.refill();
        }
        let word = self.hand[self.used];
        self.used += 1;
        word >> (64 - count)
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        self.cipher.fill_bytes(bytes);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use num_bigint::BigUint;

    /// Walks every branch of a sampler's decisions: a run follows a written path and extends it by first choices; the next
    /// path is the successor in lexicographic order. Each leaf has the probability 1 / product of its choices, exactly.
    pub(crate) struct Paths {
        path: Vec<(u64, u64)>, // the choice and the number of choices
        depth: usize,
        limit: usize,
        lost: Option<crate::stream::Stream>,
    }

    impl Paths {
        fn choose(&mut self, choices: u64) -> u64 {
            if self.depth == self.limit {
                let stream = self.lost.get_or_insert_with(|| crate::stream::Stream::new([1, 2], 3, 4, 5));
                return stream.word() % choices;
            }
            if self.depth == self.path.len() {
                self.path.push((0, choices));
            }
            self.depth += 1;
            assert_eq!(self.path[self.depth - 1].1, choices, "the sampler is a function of its bits");
            self.path[self.depth - 1].0
        }
    }

    impl Source for Paths {
        fn bits(&mut self, count: u32) -> u64 {
            assert!(count < 20, "a branch over words is too wide to walk");
            self.choose(1 << count)
        }

        fn below(&mut self, bound: u64) -> u64 {
            self.choose(bound)
        }
    }

    /// Exact probability of each outcome as far as decided within `limit` decisions, over the common denominator, and the
    /// weight of what is still undecided there.
    pub(crate) struct DecisionTree {
        pub weights: std::collections::BTreeMap<i64, BigUint>,
        pub undecided: BigUint,
        pub whole: BigUint,
    }

    /// Walks the tree of `sampler` down to `limit` decisions; `whole` must be divisible by every product of choices.
    pub(crate) fn walk(limit: usize, whole: BigUint, mut sampler: impl FnMut(&mut Paths) -> i64) -> DecisionTree {
        let mut tree = DecisionTree { weights: Default::default(), undecided: BigUint::ZERO, whole };
        let mut paths = Paths { path: Vec::new(), depth: 0, limit, lost: None };
        loop {
            (paths.depth, paths.lost) = (0, None);
            let outcome = sampler(&mut paths);
            let product: BigUint = paths.path.iter().map(|&(_, choices)| BigUint::from(choices)).product();
            let weight = &tree.whole / &product;
            assert_eq!(&weight * &product, tree.whole, "the common denominator fits");
            if paths.lost.is_some() {
                tree.undecided += weight;
            } else {
                *tree.weights.entry(outcome).or_default() += weight;
            }
            while let Some((choice, choices)) = paths.path.pop() {
                if choice + 1 < choices {
                    paths.path.push((choice + 1, choices));
                    break;
                }
            }
            if paths.path.is_empty() {
                return tree;
            }
        }
    }

    #[test]
    fn two_secure_generators_differ_and_two_insecure_ones_agree() {
        let word = |generator: &mut Generator| (generator.bits(64), generator.bits(64));
        assert_ne!(word(&mut Generator::secure().unwrap()), word(&mut Generator::secure().unwrap()));
        assert_eq!(word(&mut Generator::insecure([1, 2])), word(&mut Generator::insecure([1, 2])));
        assert_ne!(word(&mut Generator::insecure([1, 2])), word(&mut Generator::insecure([1, 3])));
    }

    /// Words from a list.
    struct Given<'a>(std::slice::Iter<'a, u64>);

    impl Source for Given<'_> {
        fn bits(&mut self, count: u32) -> u64 {
            self.0.next().unwrap() >> (64 - count)
        }
    }

    #[test]
    fn a_number_below_a_bound_is_redrawn_exactly_where_words_are_uneven() {
        // 2^64 = 1 mod 3: of the words with product 3w the one whose lower half is 0 must be redrawn, w = 0.
        assert_eq!(Given([0, 1 << 63].iter()).below(3), 1);
        assert_eq!(Given([1].iter()).below(3), 0);
        assert_eq!(Given([u64::MAX].iter()).below(3), 2);
        // Each of the three intervals then holds (2^64 - 1) / 3 words; their edges:
        let third = u64::MAX / 3;
        assert_eq!(Given([third].iter()).below(3), 0);
        assert_eq!(Given([third + 1].iter()).below(3), 1);
        assert_eq!(Given([2 * third].iter()).below(3), 1);
        assert_eq!(Given([2 * third + 1].iter()).below(3), 2);
        assert_eq!(Given([7].iter()).below(1), 0);
    }

    #[test]
    fn every_number_below_a_power_of_two_has_its_own_words() {
        for word in [0, 1, 1 << 61, u64::MAX] {
            assert_eq!(Given([word].iter()).below(8), word >> 61);
        }
    }
}
