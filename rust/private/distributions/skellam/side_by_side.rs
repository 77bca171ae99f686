//! Tails of Skellam laws, eight side by side, by the recurrence of their masses.
//!
//! p(j-1) = (j p(j) + l2 p(j+1)) / l1 has positive terms alone, and run down it forgets how it began: an error of the first ratio is
//! multiplied by (h-j) / (h+j) at each step, h = sqrt(j^2 + 4 l1 l2), from b down to a by exp(2 h(a) - 2 h(b)) or less. A law alone
//! waits for a product and a sum at each step; eight do so together.
//!
//! - Laws of small variance need no logarithm: with l1 >= l2 all masses that matter from above down to zero, those below zero by
//!   p(-j) = p(j) (l2/l1)^j and Horner's rule; a tail is its part of the sum of all.
//! - Else P(X >= k) / p(k), k at or above the mode, from where masses are negligible down to k; the part below zero, if k is
//!   negative, in the mirrored law from -k down.
//!
//! Each lane has operations of its own, so a law's tail has the same bits alone and among others, at every level.
//!
//! How far above: p(k+t) / p(k) <= exp(-t^2 / (2 (v + t/3))) at or above the mode, v the variance (Bernstein); and with a = -ln r(k)
//! <= exp(-a t - t^2 / (2 (v + |k - mean| + t))), for the slope of -ln r(j) is 1/h(j) or so and h grows slower than j.

use super::law::Skellam;
use crate::distributions::Tail;
use crate::distributions::sums::Shape;
use crate::numeric::dispatch::{Level, level};
use crate::numeric::floats::{FloatWork, Floats, LANES, float_work};

/// Variances up to which the sum of all masses is taken.
const SMALL_VARIANCE: f64 = 40.0;
/// The least larger rate for which it is: masses cannot leave the range of a double.
const LEAST_RATE: f64 = 0.01;
/// Probabilities below this are left to logarithms.
const LEAST_PROBABILITY: f64 = 1e-250;
/// The most steps: beyond, an integral is faster.
const MOST_STEPS: f64 = 4000.0;
/// The logarithm of what is forgotten of a first ratio that is right to a tenth or so.
const FORGOTTEN: f64 = 42.0;
/// Steps that cost as much as a ratio of two masses.
const CHEAP_STEPS: f64 = 16.0;

/// Columns of `N` lanes, of which `len` are taken.
struct ColumnLanes<const COLUMNS: usize, const N: usize> {
    columns: [[f64; N]; COLUMNS],
    len: usize,
}

impl<const COLUMNS: usize, const N: usize> ColumnLanes<COLUMNS, N> {
    fn new() -> Self {
        Self { columns: [[0.0; N]; COLUMNS], len: 0 }
    }

    fn push(&mut self, values: [f64; COLUMNS]) -> usize {
        for (column, value) in self.columns.iter_mut().zip(values) {
            column[self.len] = value;
        }
        self.len += 1;
        self.len - 1
    }

    #[inline(always)]
    fn group(&self, column: usize, group: usize) -> [f64; LANES] {
        let (groups, _) = self.columns[column].as_chunks::<LANES>();
        groups[group]
    }
}

/// Sums of all masses; columns: where to begin (at least 1), its first ratio, 1 / l1, l2 / l1 <= 1, and the value m >= 0 that splits.
struct Whole<'a, const N: usize> {
    lanes: &'a ColumnLanes<5, N>,
    /// Sums over j >= m, 0 <= j < m, j < 0, and j <= -m if m > 0.
    sums: &'a mut [[f64; N]; 4],
}

impl<const N: usize> FloatWork for Whole<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let zero = floats.splat(0.0);
        for group in 0..self.lanes.len.div_ceil(LANES) {
            let [top, first, by, back, split] = std::array::from_fn(|column| self.lanes.group(column, group));
            let [by, back, split] = [by, back, split].map(|column| floats.load(&column));
            let (mut mass, mut above) = (zero, zero);
            let (mut upper, mut lower, mut negative, mut below) = (zero, zero, zero, zero);
            let mut j = next_of(&top, f64::INFINITY);
            while j >= 1.0 {
                (mass, above) = begin(floats, (mass, above), (&top, &first), j);
                let stop = next_of(&top, j);
                while j > stop {
                    let at = floats.splat(j);
                    let part = floats.select(at, split, mass, zero);
                    upper = floats.add(upper, part);
                    lower = floats.add(lower, floats.sub(mass, part));
                    negative = floats.mul(floats.add(negative, mass), back);
                    below = floats.mul(floats.add(below, part), back);
                    (mass, above) = (next(floats, (mass, above), at, (by, back)), mass);
                    j -= 1.0;
                }
            }
            let part = floats.select(zero, split, mass, zero);
            upper = floats.add(upper, part);
            lower = floats.add(lower, floats.sub(mass, part));
            for (all, sums) in self.sums.iter_mut().zip([upper, lower, negative, below]) {
                let (groups, _) = all.as_chunks_mut::<LANES>();
                floats.store(sums, &mut groups[group]);
            }
        }
    }
}

/// Runs from a mass of 1 down; columns: the last value, steps (at least 1), the ratio above the first one, 1 / l1, l2 / l1.
struct Descent<'a, const N: usize> {
    lanes: &'a ColumnLanes<5, N>,
    /// The sum of all masses, and the last one.
    sums: &'a mut [[f64; N]; 2],
}

impl<const N: usize> FloatWork for Descent<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let zero = floats.splat(0.0);
        for group in 0..self.lanes.len.div_ceil(LANES) {
            let [last, steps, first, by, back] = std::array::from_fn(|column| self.lanes.group(column, group));
            let [last, by, back] = [last, by, back].map(|column| floats.load(&column));
            let (mut mass, mut above, mut sum) = (zero, zero, zero);
            let mut left = next_of(&steps, f64::INFINITY);
            while left >= 1.0 {
                (mass, above) = begin(floats, (mass, above), (&steps, &first), left);
                let stop = next_of(&steps, left);
                while left > stop {
                    sum = floats.add(sum, mass);
                    let j = floats.add(last, floats.splat(left));
                    (mass, above) = (next(floats, (mass, above), j, (by, back)), mass);
                    left -= 1.0;
                }
            }
            for (all, sums) in self.sums.iter_mut().zip([floats.add(sum, mass), mass]) {
                let (groups, _) = all.as_chunks_mut::<LANES>();
                floats.store(sums, &mut groups[group]);
            }
        }
    }
}

/// p(j-1) from p(j) and p(j+1).
#[inline(always)]
fn next<F: Floats>(
    floats: F,
    (mass, above): (F::Eight, F::Eight),
    j: F::Eight,
    (by, back): (F::Eight, F::Eight),
) -> F::Eight {
    floats.add(floats.mul(floats.mul(j, by), mass), floats.mul(back, above))
}

/// Puts a mass of 1 into the lanes that begin here; lanes that have not begun hold zeros.
#[inline(always)]
fn begin<F: Floats>(
    floats: F,
    (mass, above): (F::Eight, F::Eight),
    (begins, first): (&[f64; LANES], &[f64; LANES]),
    here: f64,
) -> (F::Eight, F::Eight) {
    let mut both = [[0.0; LANES]; 2];
    floats.store(mass, &mut both[0]);
    floats.store(above, &mut both[1]);
    for i in 0..LANES {
        if begins[i] == here {
            (both[0][i], both[1][i]) = (1.0, first[i]);
        }
    }
    (floats.load(&both[0]), floats.load(&both[1]))
}

/// The largest of the places where a lane begins below `here`, or zero.
#[inline(always)]
fn next_of(begins: &[f64; LANES], here: f64) -> f64 {
    begins.iter().fold(0.0, |most: f64, &place| if place < here { most.max(place) } else { most })
}

/// How the tail of a law is found.
#[derive(Clone, Copy)]
enum TailMethod {
    Known(Tail),
    /// The lane, and which of P(X >= m), P(X < m), P(X <= -m) it is; X may be the mirrored law.
    Whole {
        lane: usize,
        part: Part,
    },
    /// The logarithm of p(k), the lane of the run down to k, or that of the run from k to zero and the one down to zero, if any.
    Run {
        log: f64,
        lane: usize,
        negative: bool,
        rest: Option<usize>,
    },
}

#[derive(Clone, Copy)]
enum Part {
    Upper,
    Lower,
    Below,
}

/// `sqrt(k^2 + 4 l1 l2)`.
fn radius(law: &Skellam, k: f64) -> f64 {
    let [plus, minus] = law.rates();
    (k * k + 4.0 * plus * minus).sqrt()
}

/// Steps above k >= mode after which masses are negligible beside p(k).
fn reach(law: &Skellam, k: f64) -> f64 {
    let [plus, minus] = law.rates();
    let (variance, h) = (plus + minus, radius(law, k));
    let most = 14.7 + (216.0 + 88.0 * variance).sqrt();
    let ratio = if k >= 0.0 { 2.0 * plus / (k + h) } else { (h - k) / (2.0 * minus) };
    let slope = (-ratio.ln()).max(0.0);
    let width = variance + (k - (plus - minus)).abs() + most;
    most.min(92.0 / (slope + (slope * slope + 92.0 / width).sqrt())).ceil().max(1.0)
}

/// `p(k+1) / p(k)` for k >= 0: by the recurrence where it forgets soon.
fn ratio(law: &Skellam, k: f64) -> f64 {
    let [plus, minus] = law.rates();
    let far = radius(law, k) + 0.5 * FORGOTTEN;
    let steps = ((far * far - 4.0 * plus * minus).sqrt() - k).ceil();
    if !(steps <= CHEAP_STEPS) {
        return law.ratio(k, 1.0);
    }
    let mut j = k + steps;
    let mut ratio = law.near_ratio(j);
    while j > k {
        ratio = plus / (j + minus * ratio);
        j -= 1.0;
    }
    ratio
}

/// Plans and lanes for up to `N / 2` laws.
struct Batch<const N: usize> {
    whole: ColumnLanes<5, N>,
    runs: ColumnLanes<5, N>,
}

impl<const N: usize> Batch<N> {
    fn plan(&mut self, law: &Skellam, k: f64) -> TailMethod {
        let [plus, minus] = law.rates();
        let lower = law.is_lower(k);
        if !(plus > 0.0 && minus > 0.0) {
            return TailMethod::Known(law.tail_alone(k));
        }
        if plus + minus <= SMALL_VARIANCE {
            return self.plan_whole(law, k, lower);
        }
        // P(X >= k) of the law itself or of the mirrored one
        let run = if lower { self.plan_run(&law.mirrored(), -k) } else { self.plan_run(law, k + 1.0) };
        run.unwrap_or_else(|| TailMethod::Known(law.tail_alone(k)))
    }

    fn plan_whole(&mut self, law: &Skellam, k: f64, lower: bool) -> TailMethod {
        let mirror = law.rates()[0] < law.rates()[1];
        let turned = if mirror { law.mirrored() } else { *law };
        let [plus, minus] = turned.rates();
        let (split, part) = match (lower, mirror) {
            (false, false) => (k + 1.0, Part::Upper),
            (true, true) => (-k, Part::Upper),
            // P(X <= at)
            (true, false) | (false, true) => {
                let at = if mirror { -k - 1.0 } else { k };
                if at >= 0.0 { (at + 1.0, Part::Lower) } else { (-at, Part::Below) }
            }
        };
        let (mean, variance) = (plus - minus, plus + minus);
        let reach = (13.4 + (178.0 + 80.0 * variance).sqrt()).ceil();
        if !(plus >= LEAST_RATE && split <= mean + reach) {
            return TailMethod::Known(law.tail_alone(k));
        }
        let top = split.max(mean.ceil()) + reach;
        let lane = self.whole.push([top, turned.near_ratio(top), 1.0 / plus, minus / plus, split]);
        TailMethod::Whole { lane, part }
    }

    /// P(X >= k) for k at or above the mode; none where there are too many steps.
    fn plan_run(&mut self, law: &Skellam, k: f64) -> Option<TailMethod> {
        let [plus, minus] = law.rates();
        let reach = reach(law, k);
        let (start, top) = (k.max(0.0), k + reach);
        if !(reach <= MOST_STEPS
            && (top.max(-k) + 1.0) / plus.min(minus) < 1e8
            && plus.max(minus) < 1e8 * plus.min(minus))
        {
            return None;
        }
        let log = law.log_value(k);
        let above = (top > start).then(|| {
            let forgotten = 2.0 * (radius(law, top) - radius(law, start)) >= FORGOTTEN;
            let first = if forgotten { law.near_ratio(top) } else { ratio(law, top) };
            self.runs.push([start, top - start, first, 1.0 / plus, minus / plus])
        });
        if k >= 0.0 {
            return Some(TailMethod::Run { log, lane: above?, negative: false, rest: None });
        }
        let steps = reach.min(-k);
        let lane = self.runs.push([-k - steps, steps, ratio(&law.mirrored(), -k), 1.0 / minus, plus / minus]);
        Some(TailMethod::Run { log, lane, negative: true, rest: above })
    }

    fn tails(level: Level, laws: &[(Skellam, f64)], mut take: impl FnMut(usize, Tail)) {
        let mut batch = Self { whole: ColumnLanes::new(), runs: ColumnLanes::new() };
        let mut plans = [TailMethod::Known(Tail::from_log(true, 0.0)); N];
        for ((law, k), plan) in laws.iter().zip(&mut plans) {
            *plan = batch.plan(law, *k);
        }
        let (mut whole, mut runs) = ([[0.0; N]; 4], [[0.0; N]; 2]);
        float_work(level, Whole { lanes: &batch.whole, sums: &mut whole });
        float_work(level, Descent { lanes: &batch.runs, sums: &mut runs });
        for (i, ((law, k), plan)) in laws.iter().zip(plans).enumerate() {
            let (lower, probability, log) = match plan {
                TailMethod::Known(tail) => {
                    take(i, tail);
                    continue;
                }
                TailMethod::Whole { lane, part } => {
                    let [upper, lower, negative, below] = [0, 1, 2, 3].map(|sum| whole[sum][lane]);
                    let part = match part {
                        Part::Upper => upper,
                        Part::Lower => lower + negative,
                        Part::Below => below,
                    };
                    let probability = part / (upper + lower + negative);
                    (law.is_lower(*k), probability, f64::NAN)
                }
                TailMethod::Run { log, lane, negative, rest } => {
                    let [sum, mass] = [runs[0][lane], runs[1][lane]];
                    let ratio = if negative {
                        rest.map_or(sum, |rest| sum + mass * (runs[0][rest] / runs[1][rest] - 1.0))
                    } else {
                        sum / mass
                    };
                    (law.is_lower(*k), log.exp() * ratio, log + ratio.ln())
                }
            };
            take(
                i,
                match () {
                    () if probability >= LEAST_PROBABILITY => Tail::from_probability(lower, probability),
                    () if log.is_finite() => Tail::from_log(lower, log),
                    () => law.tail_alone(*k),
                },
            );
        }
    }
}

/// The shorter tail of a law at a whole number in its support.
pub(super) fn tail(law: Skellam, k: f64) -> Tail {
    let mut found = Tail::from_log(true, 0.0);
    Batch::<LANES>::tails(level(), &[(law, k)], |_, tail| found = tail);
    found
}

/// Laws at a time.
pub(in crate::distributions) const MOST_LAWS: usize = 64;

/// The same for up to [`MOST_LAWS`] laws and numbers; element i goes to `take(i, tail)`.
pub(in crate::distributions) fn tails(laws: &[(Skellam, f64)], take: impl FnMut(usize, Tail)) {
    Batch::<{ 2 * MOST_LAWS }>::tails(level(), laws, take);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::Function;

    /// Laws of all sizes with points from far below to far above their means, where they are found side by side and where not.
    fn laws() -> Vec<(Skellam, f64)> {
        let rates = [0.0, 1e-300, 1e-9, 0.005, 0.1, 1.0, 9.0, 19.0, 21.0, 60.0, 300.0, 1e3, 1e4, 1e5, 1e7];
        let mut laws = Vec::new();
        for plus in rates {
            for minus in rates {
                let law = Skellam::new(plus, minus).unwrap();
                let (mean, deviation) = (plus - minus, (plus + minus).sqrt());
                for z in [-30.0, -6.0, -2.0, -0.3, 0.0, 0.4, 3.0, 9.0, 50.0] {
                    laws.push((law, (mean + z * (deviation + 0.5)).round()));
                }
                laws.extend([-700.0, -5.0, -1.0, 0.0, 1.0, 12.0].map(|k| (law, k)));
            }
        }
        laws
    }

    fn found(level: Level) -> Vec<[u64; 4]> {
        let mut all = Vec::new();
        for laws in laws().chunks(MOST_LAWS) {
            let mut tails = vec![[0; 4]; laws.len()];
            Batch::<{ 2 * MOST_LAWS }>::tails(level, laws, |i, tail| {
                let functions = [Function::Cdf, Function::Ccdf, Function::LogCdf, Function::LogCcdf];
                tails[i] = functions.map(|function| tail.value(function).unwrap().to_bits());
            });
            all.extend(tails);
        }
        all
    }

    #[test]
    fn a_tail_has_the_same_bits_alone_and_among_others_at_every_level() {
        let together = found(Level::Baseline);
        assert!(together == found(Level::Avx2) && together == found(Level::Avx512));
        for ((law, k), bits) in laws().into_iter().zip(together) {
            let tail = tail(law, k);
            let functions = [Function::Cdf, Function::Ccdf, Function::LogCdf, Function::LogCcdf];
            assert_eq!(functions.map(|function| tail.value(function).unwrap().to_bits()), bits, "{law:?} {k}");
        }
    }

    #[test]
    fn tails_side_by_side_are_those_of_a_law_alone() {
        for (law, k) in laws() {
            let (side, alone) = (tail(law, k).both(), law.tail_alone(k).both());
            for (side, alone) in [(side.0, alone.0), (side.1, alone.1)] {
                // Both are right to 1e-13 and 4e-15 of the logarithm.
                let error = 2e-13 + 8e-15 * alone.abs();
                assert!(side == alone || (side - alone).abs() <= error, "{law:?} {k}: {side} for {alone}");
            }
        }
    }
}
