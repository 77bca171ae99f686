//! The Poisson law, which the others are made of: log-mass, tails and a draw.
//!
//! p(k) = rate^k exp(-rate) / k!. Draws: inversion by sequential search below rate 10, alone or side by side; from there on
//! Hörmann's transformed rejection with squeeze, whose acceptance test is written with the saddle-point mass so that it holds up
//! to rate 2^53. Arrays of draws take the whole parts of rates below 1024 from tables.
//!
//! Source: W. Hörmann (1993), The transformed rejection method for generating Poisson random variables, algorithm PTRS.

use crate::distributions::sums::{Shape, log_above, outward, upper_sum};
use crate::distributions::{RandomSource, Tail, open_uniform_of, reciprocals, uniform_of};
use crate::numeric::dispatch::{Level, at_level};
use crate::numeric::elementary::{exp_normal, ln_normal};
use crate::numeric::special::{FACTORIALS, LOG_FACTORIALS, log_poisson};

/// A Poisson law with rate > 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Poisson {
    /// Mean and variance.
    pub rate: f64,
    /// What the exact rate has beyond it, below half a unit in its last place.
    pub rest: f64,
    /// For a rate too small for a double, which is exp(lift) times this one; else zero.
    pub lift: f64,
}

impl From<f64> for Poisson {
    fn from(rate: f64) -> Self {
        Self { rate, rest: 0.0, lift: 0.0 }
    }
}

impl Shape for Poisson {
    #[inline]
    fn log_value(&self, x: f64) -> f64 {
        log_poisson(x, self.rate, (x - self.rate) - self.rest) + x * self.lift
    }

    #[inline]
    fn ratio(&self, x: f64, step: f64) -> f64 {
        if self.lift != 0.0 {
            let small = self.lift.exp() * self.rate;
            return if step > 0.0 { small / (x + 1.0) } else { x / small };
        }
        if step > 0.0 { self.rate / (x + 1.0) } else { x / self.rate }
    }
}

impl Poisson {
    /// The shorter tail at a count `k >= -1`.
    pub fn short_tail(&self, k: f64) -> Tail {
        if k < 0.0 {
            return Tail::from_log(true, f64::NEG_INFINITY);
        }
        if self.rate == 0.0 {
            return Tail::from_log(false, f64::NEG_INFINITY);
        }
        let lower = k < self.rate;
        let log = if lower {
            self.log_value(k) + outward(self, (k, -1.0, 0.0), |_, _| [1.0])[0].ln()
        } else {
            log_above(self, k, upper_sum)
        };
        Tail::from_log(lower, log)
    }

    /// `(ln P(Y <= k), ln P(Y > k))`.
    pub fn log_tails(&self, k: f64) -> (f64, f64) {
        self.short_tail(k).both()
    }
}

/// A draw with rate in `[0, 2^53]`.
///
/// Always in line: most draws of a sparse sweep end at the first comparison.
#[inline(always)]
pub fn draw(rate: f64, rng: &mut impl RandomSource) -> i64 {
    if rate >= SMALL {
        return transformed_rejection(rate, rng);
    }
    if rate == 0.0 {
        return 0;
    }
    let u = rng.uniform();
    // exp(-rate) is at least 1 - rate: most small counts need no exponential
    if u < 1.0 - rate { 0 } else { invert_from(rate, u) }
}

/// [`invert`], out of the way.
#[inline(never)]
fn invert_from(rate: f64, u: f64) -> i64 {
    invert(rate, u, (-rate).exp())
}

/// Sequential search: the smallest n whose distribution function exceeds `u`, given `p = exp(-rate)`.
#[inline]
pub(super) fn invert(rate: f64, u: f64, mut p: f64) -> i64 {
    let (mut n, mut sum) = (0.0, p);
    while u >= sum {
        n += 1.0;
        p *= rate / n;
        sum += p;
        if p < 1e-18 {
            break; // beyond the last bit of u
        }
    }
    n as i64
}

/// Rates below this are drawn by sequential search: the constants of the rejection are the paper's for rates from ten on.
pub const SMALL: f64 = 10.0;
/// Cells searched side by side: two registers of eight, which do not wait for each other.
const LANES: usize = 16;
/// A count of a rate below [`SMALL`] is beyond this with probability below 1e-24, where no sum of masses below one is left to pass.
const MOST: usize = 56;
/// 1/n.
const INVERSES: [f64; MOST + 1] = reciprocals();

/// Sequential search for many cells, a word each: the smallest count whose distribution function exceeds the word's upper 52 bits.
/// Where the rate is not below [`SMALL`] the count is 0.
pub fn invert_many(level: Level, rates: &[f64], words: &[u64], counts: &mut [i64]) {
    at_level!(level, search_all(rates, words, counts));
}

#[inline(always)]
fn search_all(rates: &[f64], words: &[u64], counts: &mut [i64]) {
    let (groups, rest) = counts.as_chunks_mut::<LANES>();
    let (rates, last_rates) = rates.as_chunks::<LANES>();
    let (words, last_words) = words.as_chunks::<LANES>();
    for ((counts, rates), words) in groups.iter_mut().zip(rates).zip(words) {
        *counts = search(rates, words);
    }
    if !rest.is_empty() {
        let (mut rates, mut words) = ([0.0; LANES], [0; LANES]);
        rates[..rest.len()].copy_from_slice(last_rates);
        words[..rest.len()].copy_from_slice(last_words);
        rest.copy_from_slice(&search(&rates, &words)[..rest.len()]);
    }
}

#[inline(always)]
fn search(rates: &[f64; LANES], words: &[u64; LANES]) -> [i64; LANES] {
    let mut rate = [0.0; LANES];
    let mut u = [0.0; LANES];
    let mut counts = [0; LANES];
    for i in 0..LANES {
        rate[i] = if rates[i] < SMALL { rates[i] } else { 0.0 };
        // The sum of all masses may end some units in the last place below one.
        u[i] = (f64::from_bits(0x3FF0_0000_0000_0000 | words[i] >> 12) - 1.0).min(1.0 - 1e-15);
    }
    // exp(-rate) is above 1 - rate, and above what is compared here by more than its error: often no count is positive.
    let mut positive = 0;
    for i in 0..LANES {
        positive |= i64::from(u[i] >= 1.0 - rate[i] - 4e-15);
    }
    if positive == 0 {
        return counts;
    }
    let mut mass = [0.0; LANES];
    for i in 0..LANES {
        mass[i] = exp_normal(-rate[i]);
    }
    let mut sum = mass;
    let mut n = 1;
    while n < MOST {
        // Two steps between two looks at whether the last one found all; a count that has been found does not change any more.
        let mut going = 0;
        for n in [n, n + 1] {
            going = 0;
            for i in 0..LANES {
                let more = i64::from(u[i] >= sum[i]);
                counts[i] += more;
                going |= more;
                mass[i] *= rate[i] * INVERSES[n];
                sum[i] += mass[i];
            }
        }
        if going == 0 {
            break;
        }
        n += 2;
    }
    counts
}

/// Rates from here on take no part from a table. Not tuned: with a larger one there are more tables, and longer ones.
pub const END: f64 = 1024.0;
/// The rate from which on a draw of an array takes its whole part from a table: below it a search takes fewer steps than that saves.
pub(super) const TABLED: f64 = 4.0;

/// Splits each rate, none of them negative, into a whole number, which is zero below [`TABLED`] and from [`END`] on, and the rest,
/// which is zero from [`END`] on. Says the greatest whole number.
pub(super) fn split_many(level: Level, rates: &[f64], whole: &mut [f64], rest: &mut [f64]) -> f64 {
    at_level!(level, {
        // Numbers that are not negative are in the order of their bits, whose greatest is found side by side.
        let mut greatest = 0;
        for ((&rate, whole), rest) in rates.iter().zip(whole.iter_mut()).zip(rest.iter_mut()) {
            let below = if rate < END { rate } else { 0.0 };
            *whole = if below >= TABLED { below.floor() } else { 0.0 };
            *rest = below - *whole;
            greatest = whole.to_bits().max(greatest);
        }
        f64::from_bits(greatest)
    })
}

/// Constants of the transformed rejection, by the paper's names: proposals (2 a / (1/2 - |u|) + b) u + rate + 0.43, and v at most
/// 0.9277 - 3.6224 / (b - 2) is accepted at once where |u| <= 0.43.
struct Ptrs {
    b: f64,
    a: f64,
    inverse_alpha: f64,
}

impl Ptrs {
    #[inline(always)]
    fn new(rate: f64) -> Self {
        let b = 0.931 + 2.53 * rate.sqrt();
        Self { b, a: -0.059 + 0.024_83 * b, inverse_alpha: 1.1239 + 1.1328 / (b - 3.4) }
    }

    /// The proposal of two uniform numbers: how far from an edge the first one is, the count, and whether the squeeze keeps it.
    #[inline(always)]
    fn propose(&self, rate: f64, u: f64, v: f64) -> (f64, f64, bool) {
        let edge = 0.5 - u.abs();
        let k = ((2.0 * self.a / edge + self.b) * u + rate + 0.43).floor();
        (edge, k, (edge >= 0.07) & ((0.9277 - v) * (self.b - 2.0) >= 3.6224))
    }
}

/// A proposal that was not kept, or not yet; and one that is left to [`transformed_rejection`].
pub(super) const OPEN: i64 = -1;
pub(super) const LEFT: i64 = -2;

/// The first step of [`transformed_rejection`] for many cells, two words each: the count where the squeeze keeps it, else [`OPEN`].
/// Where the rate is below [`END`] the count stays as it is.
pub(super) fn propose_many(level: Level, rates: &[f64], words: [&[u64]; 2], counts: &mut [i64]) {
    at_level!(level, propose_all(rates, words, counts));
}

#[inline(always)]
fn propose_all(rates: &[f64], [first, second]: [&[u64]; 2], counts: &mut [i64]) {
    let cells = counts.iter_mut().zip(rates).zip(first).zip(second);
    for (((count, &rate), &first), &second) in cells {
        let (_, k, kept) = Ptrs::new(rate).propose(rate, uniform_of(first) - 0.5, open_uniform_of(second));
        let found = if kept { k as i64 } else { OPEN };
        *count = if rate >= END { found } else { *count };
    }
}

/// The whole of a step for many cells of rates from [`END`] on, two words each: the count, [`OPEN`] where it is not kept, [`LEFT`]
/// where it is too far from the rate for the series here.
pub(super) fn judge_many(level: Level, rates: &[f64], words: [&[u64]; 2], counts: &mut [i64]) {
    at_level!(level, judge_all(rates, words, counts));
}

#[inline(always)]
fn judge_all(rates: &[f64], [first, second]: [&[u64]; 2], counts: &mut [i64]) {
    let cells = counts.iter_mut().zip(rates).zip(first).zip(second);
    for (((count, &rate), &first), &second) in cells {
        let (constants, v) = (Ptrs::new(rate), open_uniform_of(second));
        let (edge, k, kept) = constants.propose(rate, uniform_of(first) - 0.5, v);
        // -ln p(k) is the deviance k ln(k / rate) + rate - k, a series in s = ((k - rate) / (k + rate))^2, and Stirling's terms.
        let ratio = (k - rate) / (k + rate);
        let s = ratio * ratio;
        let mut series = 0.0;
        for odd in (3..=19).rev().step_by(2) {
            series = series * s + 1.0 / f64::from(odd);
        }
        let deviance = (k - rate) * ratio + 2.0 * k * ratio * s * series;
        let stirling = (1.0 - 1.0 / (30.0 * k * k)) / (12.0 * k);
        let w = v * constants.inverse_alpha / (constants.a / (edge * edge) + constants.b);
        let excess = 0.5 * ln_normal(2.0 * std::f64::consts::PI * k * w * w) + deviance + stirling;
        let found = if kept | (excess <= 0.0) { k as i64 } else { OPEN };
        *count = if s > SERIES { LEFT } else { found };
    }
}

/// Up to here the series of [`judge_all`] is right to 1e-13 of counts from [`END`] / 2 on: its first term left out is s^9 / 21.
const SERIES: f64 = 0.02;

#[inline(never)]
pub(super) fn transformed_rejection(rate: f64, rng: &mut impl RandomSource) -> i64 {
    let constants = Ptrs::new(rate);
    let factorials = &*LOG_FACTORIALS;
    loop {
        let u = rng.uniform() - 0.5;
        let v = rng.open_uniform();
        let (edge, k, kept) = constants.propose(rate, u, v);
        if kept {
            return k as i64;
        }
        if k < 0.0 || (edge < 0.013 && v > edge) {
            continue;
        }
        let log = if k < FACTORIALS as f64 {
            k * rate.ln() - rate - factorials[k as usize]
        } else {
            log_poisson(k, rate, k - rate)
        };
        if (v * constants.inverse_alpha / (constants.a / (edge * edge) + constants.b)).ln() <= log {
            return k as i64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_side_by_side_finds_what_a_search_alone_finds() {
        let rates: Vec<f64> =
            (0..4003).map(|i| if i % 50 == 0 { 1e3 } else { 9.999 * f64::from(i) / 4003.0 }).collect();
        let mut stream = crate::stream::Stream::new([5, 1], 0, 0, 0);
        let mut words: Vec<u64> = rates.iter().map(|_| stream.word()).collect();
        (words[1], words[4001]) = (u64::MAX, u64::MAX);
        let mut found = vec![0; rates.len()];
        invert_many(Level::Baseline, &rates, &words, &mut found);
        for level in [Level::Avx2, Level::Avx512] {
            let mut again = vec![0; rates.len()];
            invert_many(level, &rates, &words, &mut again);
            assert_eq!(found, again);
        }
        assert!((30..50).contains(&found[4001]) && (3..9).contains(&found[1]));
        let mut apart = 0;
        for ((&rate, &word), &count) in rates.iter().zip(&words).zip(&found) {
            if rate >= SMALL {
                assert_eq!(count, 0);
                continue;
            }
            if word == u64::MAX {
                continue; // as near to the last sums as their rounding
            }
            let u = (word >> 12) as f64 * 2f64.powi(-52);
            apart += usize::from(count != invert(rate, u.min(1.0 - 1e-15), (-rate).exp()));
        }
        assert_eq!(apart, 0, "a uniform number lies within rounding of a threshold with probability below 1e-11");
    }

    #[test]
    fn proposals_side_by_side_are_those_of_a_draw_alone() {
        struct Listed<'a>(&'a mut dyn Iterator<Item = u64>);
        impl RandomSource for Listed<'_> {
            fn word(&mut self) -> u64 {
                self.0.next().unwrap_or(0)
            }
        }
        let rates: Vec<f64> = (0..4003).map(|i| 5.0 * (f64::from(i) / 100.0).exp().min(1e15)).collect();
        let mut stream = crate::stream::Stream::new([5, 1], 1, 0, 0);
        let words: [Vec<u64>; 2] = std::array::from_fn(|_| rates.iter().map(|_| stream.word()).collect());
        // What a draw makes of a pair of words: its count, or nothing where it asks for more.
        let alone = |i: usize| {
            let mut pair = [words[0][i], words[1][i], 1 << 63, 1].into_iter();
            let count = transformed_rejection(rates[i], &mut Listed(&mut pair));
            (pair.len() == 2).then_some(count)
        };
        let (mut kept, mut judged) = (0, [0; 3]);
        for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
            let (mut counts, mut verdicts) = (vec![7; rates.len()], vec![0; rates.len()]);
            propose_many(level, &rates, [&words[0], &words[1]], &mut counts);
            judge_many(level, &rates, [&words[0], &words[1]], &mut verdicts);
            for (i, (&count, &verdict)) in counts.iter().zip(&verdicts).enumerate() {
                if rates[i] < END {
                    assert_eq!(count, 7);
                    continue;
                }
                if count >= 0 {
                    assert_eq!(Some(count), alone(i));
                    kept += 1;
                }
                match verdict {
                    LEFT => judged[2] += 1,
                    OPEN => {
                        assert_eq!(alone(i), None);
                        judged[1] += 1;
                    }
                    count => {
                        assert_eq!(Some(count), alone(i));
                        judged[0] += 1;
                    }
                }
            }
        }
        assert!(
            kept > 3 * 2500 && judged[0] > 3 * 3000 && judged[1] > 3 * 100 && judged[2] < 3 * 30,
            "{kept} {judged:?}"
        );
    }
}
