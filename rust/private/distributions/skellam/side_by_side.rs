//! Tails of Skellam laws, eight side by side, by the recurrence of their masses.
//!
//! p(j-1) = (j p(j) + l2 p(j+1)) / l1 has positive terms alone, and run down it forgets how it began: an error of the first ratio is
//! multiplied by (h-j) / (h+j) at each step, h = sqrt(j^2 + 4 l1 l2), from b down to a by exp(2 h(a) - 2 h(b)) or less. A law alone
//! waits for a product and a sum at each step; eight do so together.
//!
//! - Where they are few, all masses that matter with l1 >= l2, from above down to zero, and those below zero by
//!   p(-j) = p(j) (l2/l1)^j and Horner's rule; a tail is its part of the sum of all, and no logarithm is needed.
//! - Else P(X >= k) / p(k), k at or above the mode, from where masses are negligible down to k; the part below zero, if k is
//!   negative, in the mirrored law from -k down.
//!
//! Each lane has operations of its own, so a law's tail has the same bits alone and among others, at every level.
//!
//! How far above: p(k+t) / p(k) <= exp(-t^2 / (2 (v + t/3))) at or above the mode, v the variance (Bernstein); and with a = -ln r(k)
//! <= exp(-a t - t^2 / (2 (h(k) + t/3))), for the slope of -ln r(j) is 1/h(j) or so and h grows slower than j. Here e^-42.

use super::law::{Skellam, radius};
use super::masses::{ColumnLanes, exponentials, log_masses};
use crate::distributions::sums::Shape;
use crate::distributions::{Function, LARGEST, Tail};
use crate::numeric::dispatch::{Level, level};
use crate::numeric::floats::{FloatWork, Floats, LANES, float_work};

/// Steps for which the sum of all masses is taken.
const MOST_WHOLE_STEPS: f64 = 200.0;
/// Steps between two places where such a sum can begin.
const BLOCK: f64 = 8.0;
/// The least larger rate for which it is: masses cannot leave the range of a double.
const LEAST_RATE: f64 = 0.01;
/// Probabilities below this are left to logarithms.
const LEAST_PROBABILITY: f64 = 1e-250;
/// Variances up to which tails that are not sums of all masses are those of laws alone.
const FEW: f64 = 40.0;
/// The most steps: beyond, an integral is faster.
const MOST_STEPS: f64 = 4000.0;
/// The logarithm of what is forgotten of a first ratio that is right to a tenth or so.
const FORGOTTEN: f64 = 42.0;
/// Steps that cost as much as a ratio of two masses.
const CHEAP_STEPS: f64 = 16.0;

/// Where the sum of all masses begins, if a value is not too far above the mean: Bennett's inequality, fitted. For variances to 200 at
/// most 1e-17 of the tail from the value on lies beyond.
fn whole_top(place: f64, mean: f64, variance: f64) -> Option<f64> {
    let reach = 8.0 + 9.5 * variance.sqrt();
    let blocks = ((place.max(mean) + reach) / BLOCK).floor() + 1.0;
    (place <= mean + reach).then_some(blocks * BLOCK)
}

/// Sums of all masses; columns: where to begin (a multiple of [`BLOCK`]), l1, l2 <= l1, a sign s and a number m, and 1 if masses below
/// zero are wanted.
struct Whole<'a, const N: usize> {
    lanes: &'a ColumnLanes<6, N>,
    /// Sums over s j >= m, j >= 0 (or j <= -m, m > 0); over j >= 0; and over j < 0.
    sums: &'a mut [[f64; N]; 3],
}

impl<const N: usize> FloatWork for Whole<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let (zero, one) = (floats.splat(0.0), floats.splat(1.0));
        for group in 0..self.lanes.len.div_ceil(LANES) {
            let mut j = greatest(&self.lanes.group(0, group));
            let [top, plus, minus, sign, split, mirrored] =
                std::array::from_fn(|column| floats.load(&self.lanes.group(column, group)));
            let (by, back) = (floats.div(one, plus), floats.div(minus, plus));
            let weight = floats.select(mirrored, one, back, one);
            // Lanes that have not begun hold zeros.
            let (mut mass, mut above) = (zero, zero);
            let (mut wanted, mut all, mut negative) = (zero, zero, zero);
            while j > 0.0 {
                let here = floats.splat(j);
                mass = floats.select(top, here, floats.select(here, top, one, mass), mass);
                // Not a number of steps that the compiler knows: it would take them together, in more registers than there are.
                let end = j - BLOCK;
                while j > end {
                    let at = floats.splat(j);
                    let part = floats.select(floats.mul(at, sign), split, mass, zero);
                    wanted = floats.mul(floats.add(wanted, part), weight);
                    all = floats.add(all, mass);
                    negative = floats.mul(floats.add(negative, mass), back);
                    (mass, above) = (next(floats, (mass, above), at, (by, back)), mass);
                    j -= 1.0;
                }
            }
            wanted = floats.add(wanted, floats.select(zero, split, mass, zero));
            for (to, sums) in self.sums.iter_mut().zip([wanted, floats.add(all, mass), negative]) {
                let (groups, _) = to.as_chunks_mut::<LANES>();
                floats.store(sums, &mut groups[group]);
            }
        }
    }
}

/// Runs from a mass of 1 down; columns: the last value, steps, the ratio above the first one, l1, l2.
struct Descent<'a, const N: usize> {
    lanes: &'a ColumnLanes<5, N>,
    /// The sum of all masses, and the last one.
    sums: &'a mut [[f64; N]; 2],
}

impl<const N: usize> FloatWork for Descent<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        let one = floats.splat(1.0);
        for group in 0..self.lanes.len.div_ceil(LANES) {
            let taken = (self.lanes.len - LANES * group).min(LANES);
            let least = self.lanes.group(1, group)[..taken].iter().fold(f64::INFINITY, |least, &x| least.min(x));
            let mut left = greatest(&self.lanes.group(1, group));
            let first_end = left - least + 1.0;
            let [last, steps, first, plus, minus] =
                std::array::from_fn(|column| floats.load(&self.lanes.group(column, group)));
            let (by, back) = (floats.div(one, plus), floats.div(minus, plus));
            let (mut mass, mut above, mut sum, mut j) = (one, first, one, floats.add(last, steps));
            let (mut sum_there, mut mass_there) = (sum, mass);
            // Lanes that are done go on, and what they find is not kept.
            while left > 0.0 {
                (mass, above) = (next(floats, (mass, above), j, (by, back)), mass);
                sum = floats.add(sum, mass);
                j = floats.sub(j, one);
                if left <= first_end {
                    sum_there = floats.select(j, last, sum, sum_there);
                    mass_there = floats.select(j, last, mass, mass_there);
                }
                left -= 1.0;
            }
            for (all, sums) in self.sums.iter_mut().zip([sum_there, mass_there]) {
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

#[inline(always)]
fn greatest(lanes: &[f64; LANES]) -> f64 {
    lanes.iter().fold(0.0, |most: f64, &x| if x > most { x } else { most })
}

/// How the tail of a law is found.
#[derive(Clone, Copy)]
enum TailMethod {
    Known(Tail),
    /// The lane, and whether the masses below zero belong to it; the law may be the mirrored one.
    Whole {
        lane: usize,
        negative: bool,
    },
    /// The lanes of p(k), of the run down to k, or of the one from k to zero, and of the run down to zero, if any.
    Run {
        mass: usize,
        lane: usize,
        negative: bool,
        rest: Option<usize>,
    },
}

/// Steps above k >= mode after which masses are negligible beside p(k).
fn reach(law: &Skellam, k: f64) -> f64 {
    let [plus, minus] = law.rates();
    let (variance, h) = (plus + minus, radius(k, plus, minus));
    let most = 14.0 + (196.0 + 84.0 * variance).sqrt();
    let ratio = if k >= 0.0 { 2.0 * plus / (k + h) } else { (h - k) / (2.0 * minus) };
    let slope = (-ratio.ln()).max(0.0);
    let width = h + most / 3.0;
    most.min(84.0 / (slope + (slope * slope + 84.0 / width).sqrt())).ceil().max(1.0)
}

/// `p(k+1) / p(k)` for k >= 0: by the recurrence where it forgets soon, for each step multiplies an error by (h-k) / (h+k) or less.
fn ratio(law: &Skellam, k: f64) -> f64 {
    let [plus, minus] = law.rates();
    let sum = radius(k, plus, minus) + k;
    let steps = (FORGOTTEN / (sum * sum / (4.0 * plus * minus)).ln()).ceil();
    if !((1.0..=CHEAP_STEPS).contains(&steps) && k + CHEAP_STEPS < LARGEST) {
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

/// Plans and lanes for up to `N` laws, and twice as many runs.
struct Batch<const N: usize, const RUNS: usize> {
    whole: ColumnLanes<6, N>,
    runs: ColumnLanes<5, RUNS>,
    /// Laws and numbers whose masses are wanted.
    masses: [(Skellam, f64); N],
    len: usize,
}

impl<const N: usize, const RUNS: usize> Batch<N, RUNS> {
    fn plan(&mut self, law: &Skellam, k: f64) -> TailMethod {
        let [plus, minus] = law.rates();
        if !(plus > 0.0 && minus > 0.0) {
            return TailMethod::Known(law.tail_alone(k));
        }
        let lower = law.is_lower(k);
        if let Some(method) = self.plan_whole(law, k, lower) {
            return method;
        }
        let variance = plus + minus;
        // P(X >= k) of the law itself or of the mirrored one
        let (law_of, from) = if lower { (law.mirrored(), -k) } else { (*law, k + 1.0) };
        let run = if variance > FEW { self.plan_run(&law_of, from) } else { None };
        run.unwrap_or_else(|| TailMethod::Known(law.tail_alone(k)))
    }

    /// Where all masses from above down to zero are few.
    fn plan_whole(&mut self, law: &Skellam, k: f64, lower: bool) -> Option<TailMethod> {
        let mirror = law.rates()[0] < law.rates()[1];
        let turned = if mirror { law.mirrored() } else { *law };
        let [plus, minus] = turned.rates();
        // P(X > at) or P(X <= at) of the law turned
        let (upper, at) = (lower == mirror, if mirror { -k - 1.0 } else { k });
        let (sign, split, mirrored, place) = match () {
            () if upper => (1.0, at + 1.0, 0.0, at + 1.0),
            () if at >= 0.0 => (-1.0, -at, 0.0, at + 1.0),
            () => (1.0, -at, 1.0, -at),
        };
        let top = whole_top(place, plus - minus, plus + minus)
            .filter(|&top| plus >= LEAST_RATE && top <= MOST_WHOLE_STEPS)?;
        let lane = self.whole.push([top, plus, minus, sign, split, mirrored]);
        Some(TailMethod::Whole { lane, negative: sign < 0.0 })
    }

    /// P(X >= k) for k at or above the mode; none where there are too many steps.
    fn plan_run(&mut self, law: &Skellam, k: f64) -> Option<TailMethod> {
        let [plus, minus] = law.rates();
        let reach = reach(law, k);
        let (start, top) = (k.max(0.0), k + reach);
        if !(reach <= MOST_STEPS
            && top.max(-k) + 1.0 < 1e8 * plus.min(minus)
            && plus.max(minus) < 1e8 * plus.min(minus))
        {
            return None;
        }
        let above = (top > start).then(|| {
            let forgotten = 2.0 * (radius(top, plus, minus) - radius(start, plus, minus)) >= FORGOTTEN;
            let first = if forgotten { law.near_ratio(top) } else { ratio(law, top) };
            self.runs.push([start, top - start, first, plus, minus])
        });
        let (lane, rest) = if k >= 0.0 {
            (above?, None)
        } else {
            let steps = reach.min(-k);
            (self.runs.push([-k - steps, steps, ratio(&law.mirrored(), -k), minus, plus]), above)
        };
        self.masses[self.len] = (*law, k);
        self.len += 1;
        Some(TailMethod::Run { mass: self.len - 1, lane, negative: k < 0.0, rest })
    }

    fn tails(level: Level, laws: &[(Skellam, f64)], mut take: impl FnMut(usize, Tail)) {
        let masses = [(Skellam::unchecked(1.0, 1.0), 0.0); N];
        let mut batch = Self { whole: ColumnLanes::new(), runs: ColumnLanes::new(), masses, len: 0 };
        let mut plans = [TailMethod::Known(Tail::from_log(true, 0.0)); N];
        for ((law, k), plan) in laws.iter().zip(&mut plans) {
            *plan = batch.plan(law, *k);
        }
        let (mut whole, mut runs, mut logs, mut masses) = ([[0.0; N]; 3], [[0.0; RUNS]; 2], [0.0; N], [0.0; N]);
        float_work(level, Whole { lanes: &batch.whole, sums: &mut whole });
        if batch.len > 0 {
            float_work(level, Descent { lanes: &batch.runs, sums: &mut runs });
            log_masses::<N>(level, &batch.masses[..batch.len], &mut logs);
            masses = logs;
            exponentials(level, &mut masses[..batch.len]);
        }
        for (i, ((law, k), plan)) in laws.iter().zip(plans).enumerate() {
            let (probability, log, ratio) = match plan {
                TailMethod::Known(tail) => {
                    take(i, tail);
                    continue;
                }
                TailMethod::Whole { lane, negative } => {
                    let [wanted, all, below] = [0, 1, 2].map(|sum| whole[sum][lane]);
                    let wanted = if negative { wanted + below } else { wanted };
                    (wanted / (all + below), f64::NAN, 1.0)
                }
                TailMethod::Run { mass, lane, negative, rest } => {
                    let [sum, last] = [runs[0][lane], runs[1][lane]];
                    let ratio = if negative {
                        rest.map_or(sum, |rest| sum + last * (runs[0][rest] / runs[1][rest] - 1.0))
                    } else {
                        sum / last
                    };
                    (masses[mass] * ratio, logs[mass], ratio)
                }
            };
            let lower = law.is_lower(*k);
            take(
                i,
                match () {
                    () if probability >= LEAST_PROBABILITY => Tail::from_probability(lower, probability),
                    () if log.is_finite() && ratio.is_finite() => Tail::from_log(lower, log + ratio.ln()),
                    () => law.tail_alone(*k),
                },
            );
        }
    }
}

/// The shorter tail of a law at a whole number in its support.
pub(super) fn tail(law: Skellam, k: f64) -> Tail {
    let mut found = Tail::from_log(true, 0.0);
    Batch::<LANES, { 2 * LANES }>::tails(level(), &[(law, k)], |_, tail| found = tail);
    found
}

/// Laws at a time.
pub(in crate::distributions) const MOST_LAWS: usize = 64;

/// Values of a function of up to [`MOST_LAWS`] laws and numbers.
pub(in crate::distributions) fn values(function: Function, laws: &[(Skellam, f64)], out: &mut [f64]) {
    let level = level();
    match function {
        Function::LogMass => log_masses::<MOST_LAWS>(level, laws, out),
        Function::Mass => {
            log_masses::<MOST_LAWS>(level, laws, out);
            exponentials(level, out);
        }
        _ => Batch::<MOST_LAWS, { 2 * MOST_LAWS }>::tails(level, laws, |i, tail| {
            out[i] = tail.value(function).unwrap_or(f64::NAN);
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::{Distribution, Function};

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
            Batch::<MOST_LAWS, { 2 * MOST_LAWS }>::tails(level, laws, |i, tail| {
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

    #[test]
    fn masses_above_where_the_sum_of_all_begins_are_nothing_beside_any_tail() {
        for variance in (-46..=54).map(|i| (f64::from(i) / 10.0).exp()) {
            for share in [0.0, 1e-6, 0.01, 0.2, 0.4, 0.5] {
                let (plus, minus) = ((1.0 - share) * variance, share * variance);
                let (law, mean) = (Skellam::unchecked(plus, minus), plus - minus);
                for place in [0.0, 1.0, 3.0, 6.0, 9.0].map(|z| (mean + z * (1.0 + variance.sqrt())).floor()) {
                    let Some(top) = whole_top(place, mean, variance) else { continue };
                    for sign in [1.0, -1.0] {
                        let masses = (0..600).map(|t| place + f64::from(t)).map(|j| (j, law.log_mass(sign * j)));
                        let sum = |from: f64| -> f64 {
                            masses.clone().filter(|(j, _)| *j > from).map(|(_, log)| (log + 0.5 * variance).exp()).sum()
                        };
                        let (beyond, tail) = (sum(top), sum(place - 0.5));
                        assert!(beyond <= 1e-17 * tail, "{plus} {minus} {sign} {place}: {beyond} of {tail}");
                    }
                }
            }
        }
    }
}
