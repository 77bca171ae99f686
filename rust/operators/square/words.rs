//! Words over {0, 1} without 11, in lexicographic order: the states of a row of the square lattice.
//!
//! There are f(k) = f(k-1) + f(k-2) words of length k, f(-1) = f(0) = 1. The words 0... come first, then the words 10...;
//! so the rank of a word is the sum of f(k-1-i) over the positions i of its ones, counted from the left.
//!
//! Source: N. Calkin, H. Wilf (1998), The number of independent sets in a grid graph.

use crate::error::COUNTLESS;

/// The longest words that are used; f(57) is the last number of words below 2^40.
pub const LONGEST: usize = 57;

/// `COUNTS[k + 1]` is f(k).
const COUNTS: [usize; LONGEST + 2] = {
    let mut table = [1; LONGEST + 2];
    let mut k = 2;
    while k < table.len() {
        table[k] = table[k - 1] + table[k - 2];
        k += 1;
    }
    table
};

/// The number of words of length `k >= -1`, where length -1 counts as the empty rest of a word that ended too early.
#[inline(always)]
pub const fn count(k: isize) -> usize {
    COUNTS[(k + 1) as usize]
}

/// The number of words of length `k`.
#[inline(always)]
pub const fn words(k: usize) -> usize {
    COUNTS[k + 1]
}

/// Bytes of a vector over the words of length `k`, however many; `COUNTLESS` at the most.
pub fn bytes(k: usize) -> u128 {
    let (mut shorter, mut count) = (1u128, 1u128);
    for _ in 0..k.min(200) {
        (shorter, count) = (count, shorter.saturating_add(count).min(COUNTLESS));
    }
    count.saturating_mul(8).min(COUNTLESS)
}

/// All words of length `k` in order, the first symbol in the highest of `k` bits.
pub fn list(k: usize) -> Vec<u64> {
    let (mut shorter, mut list) = (vec![0], vec![0]);
    for length in 1..=k {
        let extended = list.iter().copied().chain(shorter.iter().map(|w| w | 1 << (length - 1))).collect();
        shorter = std::mem::replace(&mut list, extended);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rank of a word among those of length `k`.
    fn rank(k: usize, word: u64) -> usize {
        (0..k).filter(|i| word >> i & 1 == 1).map(words).sum()
    }

    #[test]
    fn words_are_listed_in_order_and_ranked_by_their_place() {
        for k in 0..16 {
            let expected: Vec<u64> = (0..1 << k).filter(|w| w & (w >> 1) == 0).collect();
            assert_eq!(list(k), expected);
            assert_eq!(words(k), expected.len());
            assert!(expected.iter().enumerate().all(|(i, &w)| rank(k, w) == i));
        }
        assert!((0..=LONGEST).all(|k| bytes(k) == 8 * words(k) as u128));
        assert_eq!([bytes(185), bytes(usize::MAX)], [COUNTLESS; 2]);
        assert!(words(LONGEST) < 1 << 40 && words(LONGEST) + words(LONGEST - 1) >= 1 << 40);
    }
}
