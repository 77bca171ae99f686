//! Shannon capacity with a certificate.
//!
//! For an input distribution p let q = p C and D_x = sum_y C_xy log2(C_xy / q_y). Then  sum_x p_x D_x <= capacity <= max_x D_x
//! for every p (Arimoto 1972, Blahut 1972), so each step gives an interval that holds the capacity, and the best of either
//! side so far is kept. The step is p_x <- p_x 2^(m (D_x - max D)), normalized: m = 1 is the classical one, which never
//! lowers the left side; larger m go faster and are grown until the left side falls, when the step is taken back and m
//! is 1 again.
//!
//! The interval returned is widened by a bound for the rounding errors of D, so that it holds the capacity of the channel
//! whose rows are the given ones divided by their sums.
//!
//! Source: S. Arimoto (1972), An algorithm for computing the capacity of arbitrary discrete memoryless channels; R. Blahut
//! (1972), Computation of channel capacity and rate-distortion functions. Larger steps: G. Matz, P. Duhamel (2004),
//! Information geometric formulation and interpretation of accelerated Blahut-Arimoto-type algorithms.

use super::ChannelMatrix;
use crate::monitor::Monitor;
use crate::numeric::dispatch::{at_level, level};
use crate::{Error, Result};

/// The smallest probability an input keeps: it can come back, and its products with entries are not subnormal.
const LEAST: f64 = 1e-60;
/// Smaller entries before and after the others are passed over. What they add to any D_x is below 2^11 of it each, and q
/// comes out smaller by so little that the left side rises by less than their sum.
const TINY: f64 = 1.0 / (1u128 << 80) as f64;
/// How fast the step grows, and its largest value. Not tuned: with more, fewer steps are taken and more of them are taken back.
const GROWTH: f64 = 1.1;
const LARGEST: f64 = 1e6;
/// Keeps a step that overshoots within the range of floats; any distribution gives valid bounds.
const LARGEST_EXPONENT: f64 = 500.0;

/// What is known of a capacity after some steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// The capacity is at least this, in bits.
    pub lower: f64,
    /// The capacity is at most this, in bits.
    pub upper: f64,
    /// An input distribution that reaches `lower`, up to rounding.
    pub prior: Vec<f64>,
    /// Steps taken.
    pub iterations: u64,
}

/// Rows that sum to 1, and the negative entropy of each.
struct ChannelRows {
    entries: Vec<f64>,
    cols: usize,
    negentropies: Vec<f64>,
    /// Where each row has its entries of at least [`TINY`], from the first to behind the last.
    spans: Vec<(usize, usize)>,
    /// Bounds the rounding error of any D_x.
    margin: f64,
}

impl ChannelRows {
    fn new(matrix: ChannelMatrix<'_>) -> Self {
        let cols = matrix.cols();
        let mut entries = matrix.entries().to_vec();
        let mut negentropies = Vec::with_capacity(matrix.rows());
        let mut spans = Vec::with_capacity(matrix.rows());
        for row in entries.chunks_exact_mut(cols) {
            let total: f64 = row.iter().sum();
            row.iter_mut().for_each(|entry| *entry /= total);
            let start = row.iter().position(|&entry| entry >= TINY).unwrap_or(0);
            let end = row.iter().rposition(|&entry| entry >= TINY).map_or(0, |last| last + 1);
            let kept = row[start..end].iter().filter(|&&entry| entry > 0.0);
            negentropies.push(kept.map(|entry| entry * entry.log2()).sum());
            spans.push((start, end));
        }
        // Each D_x is a sum of `cols` products of a probability and a logarithm of at most 1100 in size; where a logarithm is
        // large its probability is small unless D_x itself is large, so the terms add up to little more than log2(cols) + D_x.
        let terms = (cols + matrix.rows() + 16) as f64;
        let margin = terms * (f64::EPSILON * (2.0 + 2.0 * (cols as f64).log2()) + TINY * 2048.0);
        Self { entries, cols, negentropies, spans, margin }
    }

    /// The part of a row that counts, and where it begins.
    #[inline]
    fn row(&self, x: usize) -> (&[f64], usize) {
        let (start, end) = self.spans[x];
        (&self.entries[x * self.cols + start..x * self.cols + end], start)
    }

    /// q = p C.
    fn mix(&self, prior: &[f64], outputs: &mut [f64]) {
        outputs.fill(0.0);
        for (x, &weight) in prior.iter().enumerate() {
            let (row, start) = self.row(x);
            add_scaled(&mut outputs[start..], row, weight);
        }
    }

    /// For a trial distribution with outputs q = p C: D_x for all x, and with one look at each row also the next trial,
    /// p_x 2^(step (D_x - reference)), not normalized, and its outputs. Turns q into its logarithms.
    fn advance(&self, now: &mut InputTrial, reference: f64, step: f64, next: &mut InputTrial) {
        for output in now.outputs.iter_mut() {
            // An output that no input makes counts nothing; one that lost its mass by underflow counts as the least float.
            *output = output.max(f64::MIN_POSITIVE).log2();
        }
        next.outputs.fill(0.0);
        for (x, negentropy) in self.negentropies.iter().enumerate() {
            let (row, start) = self.row(x);
            let divergence = negentropy - dot(row, &now.outputs[start..start + row.len()]);
            now.divergences[x] = divergence;
            let factor = (step * (divergence - reference)).min(LARGEST_EXPONENT).exp2();
            next.prior[x] = (now.prior[x] * factor).max(LEAST);
            add_scaled(&mut next.outputs[start..], row, next.prior[x]);
        }
    }
}

/// An input distribution, its outputs (or their logarithms), and the divergences D_x from them.
#[derive(Clone)]
struct InputTrial {
    prior: Vec<f64>,
    outputs: Vec<f64>,
    divergences: Vec<f64>,
}

impl InputTrial {
    /// The sum of the bounds' left side, and the largest divergence.
    fn bounds(&self) -> (f64, f64) {
        let reached = self.prior.iter().zip(&self.divergences).map(|(p, d)| p * d).sum();
        (reached, self.divergences.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    }

    fn normalize(&mut self) {
        let total: f64 = self.prior.iter().sum();
        self.prior.iter_mut().for_each(|p| *p /= total);
        self.outputs.iter_mut().for_each(|output| *output /= total);
    }
}

fn add_scaled(totals: &mut [f64], row: &[f64], weight: f64) {
    at_level!(level(), {
        for (total, entry) in totals.iter_mut().zip(row) {
            *total += weight * entry;
        }
    })
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    at_level!(level(), {
        let mut parts = [0.0; 32];
        let (left, right) = (left.chunks_exact(32), right.chunks_exact(32));
        let rest: f64 = left.remainder().iter().zip(right.remainder()).map(|(a, b)| a * b).sum();
        for (left, right) in left.zip(right) {
            for lane in 0..32 {
                parts[lane] += left[lane] * right[lane];
            }
        }
        parts.iter().sum::<f64>() + rest
    })
}

/// The mutual information of input and output for an input distribution, in bits.
///
/// # Errors
/// [`Error::Shape`] unless there is a probability for each row.
pub fn mutual_information(matrix: ChannelMatrix<'_>, prior: &[f64]) -> Result<f64> {
    Error::require_shape("prior", [matrix.rows()], [prior.len()])?;
    let mut outputs = vec![0.0; matrix.cols()];
    for (row, &weight) in matrix.iter().zip(prior) {
        add_scaled(&mut outputs, row, weight);
    }
    let information = |row: &[f64]| -> f64 {
        let pairs = row.iter().zip(&outputs).filter(|&(&entry, _)| entry > 0.0);
        pairs.map(|(entry, output)| entry * (entry / output).log2()).sum()
    };
    let rows = matrix.iter().zip(prior).filter(|&(_, &weight)| weight > 0.0);
    Ok(rows.map(|(row, weight)| weight * information(row)).sum::<f64>().max(0.0))
}

/// The Shannon capacity within `tolerance`, in bits, or what is known of it after `most` steps.
///
/// # Errors
/// [`Error::Domain`] unless the tolerance is positive; the monitor's objection.
pub fn shannon_capacity(
    matrix: ChannelMatrix<'_>,
    tolerance: f64,
    most: u64,
    monitor: &mut dyn Monitor,
) -> Result<Capacity> {
    Error::require(tolerance > 0.0, "tolerance", tolerance, "positive")?;
    let rows = ChannelRows::new(matrix);
    let n = matrix.rows();
    let uniform = vec![1.0 / n as f64; n];
    let mut trial = InputTrial { prior: uniform, outputs: vec![0.0; matrix.cols()], divergences: vec![0.0; n] };
    rows.mix(&trial.prior, &mut trial.outputs);
    let (mut next, mut kept) = (trial.clone(), trial.clone());
    let (mut lower, mut upper, mut reference) = (f64::NEG_INFINITY, f64::INFINITY, 0.0);
    let (mut step, mut iterations) = (1.0, 0);
    loop {
        rows.advance(&mut trial, reference, step, &mut next);
        iterations += 1;
        let (reached, largest) = trial.bounds();
        upper = upper.min(largest);
        // Near the end the left side changes by less than its rounding error.
        let gained = reached >= lower - rows.margin;
        if gained {
            lower = lower.max(reached);
            reference = largest;
            std::mem::swap(&mut kept, &mut trial);
        }
        if upper - lower + 2.0 * rows.margin <= tolerance || iterations >= most {
            break;
        }
        if gained {
            step = (step * GROWTH).min(LARGEST);
        } else {
            // Back to the last trial that gained, and a classical step from there.
            step = 1.0;
            for ((next, p), d) in next.prior.iter_mut().zip(&kept.prior).zip(&kept.divergences) {
                *next = (p * (d - reference).exp2()).max(LEAST);
            }
            rows.mix(&next.prior, &mut next.outputs);
        }
        next.normalize();
        std::mem::swap(&mut trial, &mut next);
        if iterations % 16 == 0 {
            monitor.tick(iterations, most)?;
        }
    }
    let bound = (n as f64).log2().min((matrix.cols() as f64).log2());
    let (lower, upper) = ((lower - rows.margin).max(0.0), (upper + rows.margin).clamp(0.0, bound));
    Ok(Capacity { lower: lower.min(upper), upper, prior: kept.prior, iterations })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Silent;
    use proptest::prelude::*;

    fn capacity(entries: &[f64], rows: usize, tolerance: f64) -> Capacity {
        let matrix = ChannelMatrix::new(entries, rows, entries.len() / rows).unwrap();
        shannon_capacity(matrix, tolerance, 100_000, &mut Silent).unwrap()
    }

    /// q^|h-k| with the ends made heavier: the truncated geometric channel.
    fn geometric(n: usize, q: f64) -> Vec<f64> {
        let weight = |k: usize| if k == 0 || k + 1 == n { 1.0 / (1.0 + q) } else { (1.0 - q) / (1.0 + q) };
        (0..n * n).map(|i| q.powi((i / n).abs_diff(i % n) as i32) * weight(i % n)).collect()
    }

    #[test]
    fn known_capacities_lie_in_their_intervals() {
        for (entries, rows, known) in [
            (vec![0.89, 0.11, 0.11, 0.89], 2, 0.500_084_041_835_472),
            (vec![1.0, 0.0, 0.5, 0.5], 2, 1.25f64.log2()),
            (geometric(3, 0.5), 3, 0.231_726_587_589_3),
            (geometric(5, 0.5), 5, 0.537_645_467_679_5),
            (geometric(20, 0.5), 20, 1.780_517_68),
            (vec![1.0], 1, 0.0),
            (vec![1.0, 0.0, 0.0, 1.0], 2, 1.0),
            (vec![0.5, 0.5, 0.5, 0.5], 2, 0.0),
        ] {
            let found = capacity(&entries, rows, 1e-9);
            assert!(found.upper - found.lower <= 1e-9, "{found:?}");
            let slack = if known.to_string().len() < 12 { 5e-9 } else { 1e-12 };
            assert!(found.lower - slack <= known && known <= found.upper + slack, "{found:?} {known}");
        }
    }

    #[test]
    fn the_prior_reaches_the_lower_bound() {
        let entries = geometric(6, 0.3);
        let found = capacity(&entries, 6, 1e-10);
        let information = mutual_information(ChannelMatrix::new(&entries, 6, 6).unwrap(), &found.prior).unwrap();
        assert!((information - found.lower).abs() < 1e-11 && information >= found.lower - 1e-13);
    }

    #[test]
    fn a_row_that_is_dominated_is_given_up_and_an_output_of_its_own_is_not_lost() {
        // The third row is a mixture of the others, the fourth alone reaches the last output.
        let entries = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 1.0];
        let found = capacity(&entries, 4, 1e-9);
        assert!(found.lower <= 3f64.log2() && 3f64.log2() <= found.upper + 1e-15 && found.prior[2] < 1e-6);
    }

    #[test]
    fn too_few_steps_give_a_wide_interval_that_still_holds_the_capacity() {
        let entries = geometric(20, 0.5);
        let matrix = ChannelMatrix::new(&entries, 20, 20).unwrap();
        let found = shannon_capacity(matrix, 1e-12, 3, &mut Silent).unwrap();
        assert!(found.lower < 1.780_517_68 && 1.780_517_68 < found.upper && found.iterations == 3);
        assert!(shannon_capacity(matrix, 0.0, 3, &mut Silent).is_err());
    }

    proptest! {
        #[test]
        fn the_interval_is_narrow_and_above_the_information_of_any_prior(
            entries in prop::collection::vec(0.0..1.0f64, 20), weights in prop::collection::vec(0.01..1.0f64, 4)
        ) {
            let mut entries = entries;
            for row in entries.chunks_exact_mut(5) {
                row[0] += 0.01;
                let total: f64 = row.iter().sum();
                row.iter_mut().for_each(|entry| *entry /= total);
            }
            let total: f64 = weights.iter().sum();
            let prior: Vec<f64> = weights.iter().map(|w| w / total).collect();
            let found = capacity(&entries, 4, 1e-8);
            let information = mutual_information(ChannelMatrix::new(&entries, 4, 5).unwrap(), &prior).unwrap();
            prop_assert!(found.upper - found.lower <= 1e-8 && information <= found.upper);
        }
    }
}
