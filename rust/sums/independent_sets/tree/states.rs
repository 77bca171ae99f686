//! The independent subsets of a scope, in rising order of their masks, and the rank of each.
//!
//! A mask is cut into its lowest bits and the rest. The independent low parts are listed once; the independent high parts
//! are listed with the rank of their first state. Which low parts go with a high part depends only on the low vertices that it
//! forbids, so there is one table of positions for each set of forbidden vertices that occurs:
//!
//!   `rank(mask) = first[high(mask)] + position[forbidden(high(mask))][low(mask)]`.
//!
//! Example: the scope a, b, c with the edge a b, one low bit (a). Low parts: 0, a. High parts: 0, b, c, bc; b and bc forbid a.
//! States in order: 0, a | b | c, ac | bc; first = 0, 2, 3, 5; the table for "a forbidden" knows only low part 0.
//!
//! Source: derived here.

use std::collections::HashMap;

/// Bits of a low part.
pub const LOW: usize = 11;
/// The most high parts a scope may have.
const MOST_HIGH: usize = 1 << 20;
/// Parts that are listed before somebody hears of them.
const LISTED: usize = 1 << 10;
/// High parts of at most so many bits are found by a table, others by bisection.
const DIRECT: usize = 16;

/// The independent subsets of some vertices.
#[derive(Clone, Debug)]
pub struct States {
    low_bits: usize,
    /// The independent low parts, rising.
    low: Vec<u64>,
    /// The independent high parts, rising, as masks with the low bits clear.
    high: Vec<High>,
    /// The place in `high` of each combination of high bits, where these are few.
    places: Option<Vec<u32>>,
    /// For each set of forbidden low vertices the position of each low part among those allowed.
    positions: Vec<Vec<u16>>,
    total: u64,
}

#[derive(Clone, Copy, Debug)]
struct High {
    mask: u64,
    forbidden: u64,
    table: u32,
    first: u64,
}

impl States {
    /// The states of a scope whose edges are rows of masks; `None` if there are too many to list the high parts, or more than
    /// `most`. What was listed is said to `goes_on` now and then, which may end it.
    pub fn new(rows: &[u64], most: u64, goes_on: &dyn Fn(usize) -> bool) -> Option<Self> {
        let low_bits = rows.len().min(LOW);
        let below = (1u64 << low_bits) - 1;
        let low = subsets(&rows[..low_bits], 0, usize::MAX, goes_on)?;
        let mut tables: HashMap<u64, (u32, u64)> = HashMap::new();
        let mut positions = Vec::new();
        let mut total = 0;
        let mut high = Vec::new();
        let parts = subsets(&rows[low_bits..], low_bits, MOST_HIGH.min(most as usize), goes_on)?;
        for (number, mask) in parts.into_iter().enumerate() {
            if total > most || (number % LISTED == LISTED - 1 && !goes_on(LISTED)) {
                return None;
            }
            let forbidden = members(mask).fold(0, |union, bit| union | rows[bit]) & below;
            let mut tabulate = || {
                goes_on(1 << low_bits);
                let mut table = vec![0; 1 << low_bits];
                let mut count = 0;
                for &part in low.iter().filter(|&&part| part & forbidden == 0) {
                    table[part as usize] = count;
                    count += 1;
                }
                positions.push(table);
                (positions.len() as u32 - 1, u64::from(count))
            };
            let (table, count) = if mask == 0 { tabulate() } else { *tables.entry(forbidden).or_insert_with(tabulate) };
            high.push(High { mask, forbidden, table, first: total });
            total += count;
        }
        let high_bits = rows.len() - low_bits;
        let places = (high_bits <= DIRECT).then(|| {
            let mut places = vec![0; 1 << high_bits];
            high.iter().enumerate().for_each(|(place, part)| places[(part.mask >> low_bits) as usize] = place as u32);
            places
        });
        Some(Self { low_bits, low, high, places, positions, total })
    }

    /// Their number.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Blocks of states with the same high part.
    pub fn blocks(&self) -> usize {
        self.high.len()
    }

    /// The rank of the first state of a block; the total for the number of blocks.
    pub fn first(&self, block: usize) -> u64 {
        self.high.get(block).map_or(self.total, |part| part.first)
    }

    /// The masks of a block, rising.
    pub fn masks(&self, block: usize) -> impl Iterator<Item = u64> {
        let part = self.high[block];
        self.low.iter().filter(move |&&low| low & part.forbidden == 0).map(move |&low| part.mask | low)
    }

    /// The rank of a state. Of a mask that is not one it is a number below [`States::total`] without meaning.
    #[inline]
    pub fn rank(&self, mask: u64) -> u32 {
        let high = mask >> self.low_bits;
        let place = match &self.places {
            Some(places) => places[high as usize] as usize,
            None => {
                let found = self.high.binary_search_by_key(&(high << self.low_bits), |part| part.mask);
                found.unwrap_or_else(|next| next.saturating_sub(1))
            }
        };
        let part = self.high[place];
        let low = mask & ((1 << self.low_bits) - 1);
        (part.first + u64::from(self.positions[part.table as usize][low as usize])) as u32
    }
}

/// The independent subsets of vertices `from, from + 1, ...` with these edges, rising; `None` if there are more than `most`, or
/// `goes_on` says so.
fn subsets(rows: &[u64], from: usize, most: usize, goes_on: &dyn Fn(usize) -> bool) -> Option<Vec<u64>> {
    let mut masks = vec![0u64];
    for (i, row) in rows.iter().enumerate() {
        let before = masks.len();
        for at in 0..before {
            if masks[at] & row == 0 {
                masks.push(masks[at] | 1 << (from + i));
            }
        }
        if masks.len() > most || !goes_on((masks.len() - before) / 8) {
            return None;
        }
    }
    Some(masks)
}

/// The bits of a mask.
pub fn members(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_all_independent_subsets_in_order_and_know_their_rank() {
        for (bits, step) in [(0, 1), (3, 1), (10, 3), (11, 2), (12, 1), (17, 5), (28, 1)] {
            // A circulant of one chord; of 28 vertices in a ring there are Lucas(28) = 710647 independent sets.
            let rows: Vec<u64> = (0..bits)
                .map(|v| if bits < 3 { 0 } else { 1 << ((v + step) % bits) | 1u64 << ((v + bits - step) % bits) })
                .collect();
            let states = States::new(&rows, u64::MAX, &|_| true).unwrap();
            let all: Vec<u64> = (0..states.blocks()).flat_map(|block| states.masks(block)).collect();
            assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
            assert_eq!(all.len() as u64, states.total());
            for (rank, &mask) in all.iter().enumerate() {
                assert_eq!(states.rank(mask) as usize, rank);
                assert!(members(mask).all(|v| rows[v] & mask == 0));
            }
            if bits <= 17 {
                let independent = |mask: &u64| members(*mask).all(|v| rows[v] & mask == 0);
                assert_eq!((0..1u64 << bits).filter(independent).count() as u64, states.total());
            } else {
                assert_eq!(states.total(), 710_647);
            }
        }
    }
}
