//! Exact draws from a table: a uniform real number, of which only as many bits are drawn as the answer needs.
//!
//! The answer is the k with `c(k) <= r < c(k+1)` for cumulative probabilities c and a uniform r in [0, 1). The first word of r
//! is compared with the first words of the c(k); only if it hits one of them (probability 2^-60 or so) are more bits of r drawn
//! and the c(k) computed to match. The c(k) come as enclosures in integers, so the law is exact, not exact up to rounding.
//!
//! Source: D. Knuth, A. Yao (1976), The complexity of nonuniform random number generation.

use super::source::Source;
use crate::numeric::interval::Interval;
use num_bigint::BigUint;

/// The cumulative probabilities `c(1), c(2), ...` of a law on 0, 1, 2, ..., to any precision.
pub trait CumulativeLaw {
    /// Enclosures of `c(1), c(2), ...` with `precision` bits, until they are one or the law says that it ends.
    fn cumulative(&self, precision: u64) -> Vec<Interval>;
}

/// Bits of the uniform number that pick the place where the search begins: it ends there but for an eighth of the words, for the tables
/// of [`super::noise`] have 2^8 entries.
const GUIDE_BITS: u32 = 11;

/// A law's table of first words.
#[derive(Clone, Debug)]
pub struct InverseCdfTable<L> {
    law: L,
    bits: u32,
    firsts: Vec<u64>, // floor(c(k) 2^bits), from c(0) = 0, closed by a sentinel
    guide: Vec<u16>,
}

impl<L: CumulativeLaw> InverseCdfTable<L> {
    /// The table of a law for words of `bits <= 63` bits.
    pub fn new(law: L, bits: u32) -> Self {
        let mut firsts = vec![0];
        for threshold in law.cumulative(u64::from(bits) + 64) {
            // A probability too close to one for this word length belongs to the last word, where more bits are drawn.
            let first = (&threshold.lower >> 64u32).iter_u64_digits().next().unwrap_or(0);
            firsts.push(first.min((1 << bits) - 1));
            debug_assert!(threshold.upper <= BigUint::from(first + 2) << 64u32, "`value` relies on narrow enclosures");
        }
        firsts.push(u64::MAX);
        let guide_bits = GUIDE_BITS.min(bits);
        let mut k = 0;
        let place = |top: u64| {
            while firsts[k + 1] <= top << (bits - guide_bits) {
                k += 1;
            }
            k as u16
        };
        let guide = (0..1u64 << guide_bits).map(place).collect();
        Self { law, bits, firsts, guide }
    }

    /// The law's value for a uniform number that begins with the `bits` bits of `word`.
    #[inline(always)]
    pub fn value(&self, word: u64, source: &mut impl Source) -> u64 {
        let mut k = usize::from(self.guide[(word >> self.bits.saturating_sub(GUIDE_BITS)) as usize]);
        while self.firsts[k + 1] <= word {
            k += 1;
        }
        // An enclosure is much narrower than a word, so c(k) lies below `firsts[k] + 2` words.
        if word - self.firsts[k] < 2 && k > 0 {
            return self.undecided(word, source);
        }
        k as u64
    }

    /// Draws further bits of the uniform number until it is clear between which two thresholds it lies.
    #[cold]
    fn undecided(&self, word: u64, source: &mut impl Source) -> u64 {
        let (mut number, mut bits) = (BigUint::from(word), u64::from(self.bits));
        loop {
            let thresholds = self.law.cumulative(bits + 64);
            let (from, to) = (&number << 64u32, (&number + 1u32) << 64u32);
            let below = thresholds.iter().take_while(|threshold| threshold.upper <= from).count();
            if thresholds.get(below).is_none_or(|next| to <= next.lower) {
                return below as u64;
            }
            number = (number << self.bits) + source.bits(self.bits);
            bits += u64::from(self.bits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::tests::walk;
    use super::*;

    /// A law with four values of probabilities 1/3, 1/4, 1/6, 1/4: one threshold is dyadic, two are not.
    struct Twelfths;

    impl CumulativeLaw for Twelfths {
        fn cumulative(&self, precision: u64) -> Vec<Interval> {
            [4u32, 7, 9].iter().map(|&n| Interval::ratio(&n.into(), &12u32.into(), precision)).collect()
        }
    }

    #[test]
    fn enumerated_probabilities_close_in_on_the_exact_rationals() {
        for bits in [1, 2, 3, 5] {
            let table = InverseCdfTable::new(Twelfths, bits);
            let depth = if bits < 4 { 9 } else { 5 };
            let whole = BigUint::from(1u32) << (bits as usize * depth);
            let tree = walk(depth, whole, |source| {
                let word = source.bits(bits);
                table.value(word, source) as i64
            });
            let few = if bits < 4 { 20u32 } else { 5000 };
            assert!(&tree.undecided * few < tree.whole, "bits = {bits}");
            for (k, twelfths) in [4u32, 3, 2, 3].into_iter().enumerate() {
                let decided = &tree.weights[&(k as i64)] * 12u32;
                let exact = &tree.whole * twelfths;
                assert!(decided <= exact && exact <= decided + &tree.undecided * 12u32, "bits = {bits}, k = {k}");
            }
        }
    }
}
