//! Splits a count over components with probabilities proportional to u_k R_k: what the allocation step of a sweep is made of.
//!
//! Products are summed in eight lanes, component k in lane k mod 8, keeping every partial sum. A count then finds its lane
//! among eight sums and its place among the partial sums of that lane: two short scans without a branch instead of a search
//! through all components. Large counts are split by conditional binomials.
//!
//! Source: L. Devroye (1986), Non-Uniform Random Variate Generation, chapter XI (multinomials by conditional binomials).

use crate::distributions::RandomSource;
use crate::stream::Xoshiro;
use rand_distr::{Binomial, Distribution};

/// Components that are summed side by side.
pub const LANES: usize = 8;
/// Above so many counts per component, binomials cost less than one search per count.
pub const MANY: u64 = 4;

/// Partial sums of the products of one cell.
#[derive(Clone, Debug)]
pub struct Splitter {
    partial: Vec<[f64; LANES]>,
}

impl Splitter {
    /// For vectors of `stride` entries, a multiple of [`LANES`].
    pub fn new(stride: usize) -> Self {
        Self { partial: vec![[0.0; LANES]; stride / LANES] }
    }

    /// Splits a count > 0, adding its parts to both `cell` and `all`.
    #[inline(always)]
    pub fn split(
        &mut self,
        count: u64,
        left: &[f64],
        right: &[f64],
        rng: &mut Xoshiro,
        cell: &mut [u64],
        all: &mut [u64],
    ) {
        let mut sums = [0.0; LANES];
        let (left, right) = (left.as_chunks::<LANES>().0, right.as_chunks::<LANES>().0);
        for ((partial, a), b) in self.partial.iter_mut().zip(left).zip(right) {
            for lane in 0..LANES {
                sums[lane] += a[lane] * b[lane];
            }
            *partial = sums;
        }
        let mut ends = sums;
        for lane in 1..LANES {
            ends[lane] += ends[lane - 1];
        }
        let total = ends[LANES - 1];
        if total < f64::MIN_POSITIVE || count > MANY * (LANES * left.len()) as u64 {
            return self.split_otherwise(count, left, right, rng, |k, n| {
                cell[k] += n;
                all[k] += n;
            });
        }
        for _ in 0..count {
            let target = rng.uniform() * total;
            let mut lane = 0;
            for end in &ends[..LANES - 1] {
                lane += usize::from(*end <= target);
            }
            let target = if lane == 0 { target } else { target - ends[lane - 1] };
            let mut block = 0;
            for partial in &self.partial {
                block += usize::from(partial[lane] <= target);
            }
            let k = self.place(lane, block);
            cell[k] += 1;
            all[k] += 1;
        }
    }

    /// The rare cases: products that have underflowed, and large counts.
    #[cold]
    #[inline(never)]
    fn split_otherwise(
        &self,
        count: u64,
        left: &[[f64; LANES]],
        right: &[[f64; LANES]],
        rng: &mut Xoshiro,
        add: impl FnMut(usize, u64),
    ) {
        let sum: f64 = self.partial.last().map_or(0.0, |last| last.iter().sum());
        if sum >= f64::MIN_POSITIVE {
            self.by_binomials(count, rng, add);
        } else {
            in_logarithms(count, left, right, rng, add);
        }
    }

    /// The component of a lane and a block; beyond the last block by rounding, it is the last one of positive weight.
    #[inline(always)]
    fn place(&self, lane: usize, block: usize) -> usize {
        let (block, lane) = if block < self.partial.len() { (block, lane) } else { last_positive(&self.partial, lane) };
        block * LANES + lane
    }

    fn by_binomials(&self, count: u64, rng: &mut Xoshiro, add: impl FnMut(usize, u64)) {
        let mut weights = vec![0.0; LANES * self.partial.len()];
        let mut before = [0.0; LANES];
        for (block, partial) in self.partial.iter().enumerate() {
            for lane in 0..LANES {
                weights[block * LANES + lane] = (partial[lane] - before[lane]).max(0.0);
            }
            before = *partial;
        }
        binomials(count, &weights, rng, add);
    }
}

/// Block and lane of the last component of positive weight in a lane, or in the last lane that has one.
#[cold]
pub fn last_positive(partial: &[[f64; LANES]], lane: usize) -> (usize, usize) {
    let positive = |lane: usize| {
        let last = partial[partial.len() - 1][lane];
        (last > 0.0).then(|| (partial.iter().filter(|partial| partial[lane] < last).count(), lane))
    };
    positive(lane).or_else(|| (0..LANES).rev().find_map(positive)).unwrap_or((0, 0))
}

/// Conditional binomials, by weights of which one at least is positive.
pub fn binomials(count: u64, weights: &[f64], rng: &mut Xoshiro, mut add: impl FnMut(usize, u64)) {
    let mut rest = weights.to_vec();
    for k in (0..weights.len().saturating_sub(1)).rev() {
        rest[k] += rest[k + 1];
    }
    let mut left = count;
    for (k, &weight) in weights.iter().enumerate() {
        if left == 0 {
            break;
        }
        let last = rest.get(k + 1).is_none_or(|&rest| rest <= 0.0);
        let part = if last { left } else { binomial(left, weight / rest[k], rng) };
        if part > 0 {
            add(k, part);
            left -= part;
        }
    }
}

/// A binomial draw.
#[inline]
pub fn binomial(count: u64, chance: f64, rng: &mut Xoshiro) -> u64 {
    Binomial::new(count, chance.clamp(0.0, 1.0)).map_or(0, |law| law.sample(rng))
}

/// The split where every product is below the least normal double: by sums of logarithms, or evenly where no weight is left.
#[cold]
fn in_logarithms(
    count: u64,
    left: &[[f64; LANES]],
    right: &[[f64; LANES]],
    rng: &mut Xoshiro,
    add: impl FnMut(usize, u64),
) {
    let logs = left.as_flattened().iter().zip(right.as_flattened()).map(|(a, b)| a.ln() + b.ln());
    let logs: Vec<f64> = logs.collect();
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if most > f64::NEG_INFINITY {
        let weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
        binomials(count, &weights, rng, add);
    } else {
        // A count that no component can have given: the factors have underflowed, and the next draw of them mends it.
        let live = left.as_flattened().iter().zip(right.as_flattened()).map(|(a, b)| f64::from(*a > 0.0 || *b > 0.0));
        let mut weights: Vec<f64> = live.collect();
        if weights.iter().all(|&weight| weight == 0.0) {
            weights[0] = 1.0;
        }
        binomials(count, &weights, rng, add);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::distributions::fit::assert_bins_fit;
    use crate::stream::xoshiro;

    /// Asserts that parts fit their expectations, false alarm 1e-6, and are none where the weight is.
    pub(crate) fn assert_parts_fit(weights: &[f64], counts: &[u64]) {
        assert!(weights.iter().zip(counts).all(|(weight, &count)| *weight > 0.0 || count == 0));
        let (total, all): (f64, f64) = (weights.iter().sum(), counts.iter().sum::<u64>() as f64);
        let live = weights.iter().zip(counts).filter(|(w, _)| **w > 0.0);
        assert_bins_fit(&live.map(|(w, &n)| (n as f64, all * w / total)).collect::<Vec<_>>(), &counts);
    }

    #[test]
    fn parts_follow_the_products_for_few_and_for_many_counts() {
        // False alarm 1e-6 per size.
        let left: Vec<f64> = (0..16).map(|k| if k < 11 { 1.0 + f64::from(k % 4) } else { 0.0 }).collect();
        let right: Vec<f64> = (0..16).map(|k| if k == 3 { 0.0 } else { 0.5 + f64::from(k % 3) }).collect();
        let weights: Vec<f64> = left.iter().zip(&right).map(|(a, b)| a * b).collect();
        for (row, (size, times)) in [(1, 60_000), (5, 20_000), (1000, 100)].into_iter().enumerate() {
            let (mut splitter, mut words) = (Splitter::new(16), xoshiro([7, 7], 0, 0, row as u64));
            let mut counts = [0; 16];
            let mut all = [0; 16];
            (0..times).for_each(|_| splitter.split(size, &left, &right, &mut words, &mut counts, &mut all));
            assert_eq!(counts, all);
            assert_eq!(counts.iter().sum::<u64>(), size * times);
            assert!((11..16).all(|k| counts[k] == 0) && counts[3] == 0);
            assert_parts_fit(&weights, &counts);
        }
    }

    #[test]
    fn products_below_every_double_are_split_by_their_logarithms() {
        let mut left = [0.0; 8];
        (left[1], left[2]) = (1e-200, 3e-200);
        let (mut splitter, mut words) = (Splitter::new(8), xoshiro([7, 7], 1, 0, 0));
        let mut counts = [0; 8];
        splitter.split(100_000, &left, &[1e-200; 8], &mut words, &mut counts, &mut [0; 8]);
        assert!(counts[1] + counts[2] == 100_000 && counts[1].abs_diff(25_000) < 700, "{counts:?}");
    }
}
