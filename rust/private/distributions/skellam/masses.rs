//! Masses of Skellam laws, eight side by side: the series and the expansion of [`super::law`], in columns.
//!
//! Each lane has operations of its own, so a mass has the same bits alone and among others, at every level.

use super::law::{Skellam, excesses, quotients, radius};
use crate::distributions::Distribution;
use crate::numeric::dispatch::{Level, at_level};
use crate::numeric::elementary;
use crate::numeric::floats::{FloatWork, Floats, LANES, float_work};
use crate::numeric::special::bessel::{EXPANSION_FROM, log_correction, log_corrections};
use crate::numeric::special::{HALF_LOG_TWO_PI, lane_deviance, stirling_error};
use std::f64::consts::PI;
use std::sync::LazyLock;

/// Rates from here on are served: nothing leaves the range of a double on the way.
const LEAST_SERVED: f64 = 1e-150;

/// Columns of `N` lanes, of which `len` are taken.
pub(super) struct ColumnLanes<const COLUMNS: usize, const N: usize> {
    columns: [[f64; N]; COLUMNS],
    pub(super) len: usize,
}

impl<const COLUMNS: usize, const N: usize> ColumnLanes<COLUMNS, N> {
    pub(super) fn new() -> Self {
        Self { columns: [[0.0; N]; COLUMNS], len: 0 }
    }

    #[inline]
    pub(super) fn push(&mut self, values: [f64; COLUMNS]) -> usize {
        for (column, value) in self.columns.iter_mut().zip(values) {
            column[self.len] = value;
        }
        self.len += 1;
        self.len - 1
    }

    #[inline(always)]
    pub(super) fn group(&self, column: usize, group: usize) -> [f64; LANES] {
        let (groups, _) = self.columns[column].as_chunks::<LANES>();
        groups[group]
    }

    /// The columns of each eight lanes that are taken, and their places in a result.
    #[inline(always)]
    fn groups<'a>(
        &'a self,
        out: &'a mut [f64; N],
    ) -> impl Iterator<Item = ([[f64; LANES]; COLUMNS], &'a mut [f64; LANES])> {
        let groups = out.as_chunks_mut::<LANES>().0.iter_mut().take(self.len.div_ceil(LANES)).enumerate();
        groups.map(|(group, out)| (std::array::from_fn(|column| self.group(column, group)), out))
    }
}

/// k >= 0, l1 and l2 of laws whose masses are wanted, and where each goes.
struct Asked<const N: usize> {
    lanes: ColumnLanes<3, N>,
    places: [u8; N],
}

/// `-ln k! - k + k ln k` for whole `k < EXPANSION_FROM`: ln p(k; r) = this - D(k, r) for a Poisson law.
pub static AT_MODE: LazyLock<[f64; EXPANSION_FROM as usize]> = LazyLock::new(|| {
    std::array::from_fn(|k| match k as f64 {
        0.0 => 0.0,
        k => -stirling_error(k) - 0.5 * k.ln() - HALF_LOG_TWO_PI,
    })
});

/// ln p(k) = ln pois(k; l1) - l2 + ln S, with S = 1 + sum of (l1 l2)^n / (n! (k+1) ... (k+n)) as a quotient of two sums.
struct Series<'a, const N: usize>(&'a ColumnLanes<3, N>, &'a mut [f64; N]);

impl<const N: usize> FloatWork for Series<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        for ([k, plus, minus], logs) in self.0.groups(self.1) {
            let mut rest = [0.0; LANES];
            floats
                .store(series(floats, floats.load(&k), floats.mul(floats.load(&plus), floats.load(&minus))), &mut rest);
            let mut at_mode = [0.0; LANES];
            for i in 0..LANES {
                at_mode[i] = AT_MODE[(k[i] as usize).min(AT_MODE.len() - 1)];
            }
            for i in 0..LANES {
                let main = at_mode[i] - lane_deviance(k[i] - plus[i], plus[i], k[i] / plus[i]) - minus[i];
                logs[i] = main + elementary::ln_1p(rest[i]);
            }
        }
    }
}

/// S - 1. The n-th sum is P / D with D = n! (k+1) ... (k+n), at most 1e200 for h < 32, and P to P q + x^n, D to D q, q = n (n+k).
#[inline(always)]
fn series<F: Floats>(floats: F, k: F::Eight, x: F::Eight) -> F::Eight {
    let [zero, one, two, small, least] = [0.0, 1.0, 2.0, 1e-17, f64::MIN_POSITIVE].map(|x| floats.splat(x));
    let first = floats.add(one, k);
    let (mut power, mut sum, mut scale) = (x, x, first);
    let (mut factor, mut step) = (first, floats.add(first, two));
    loop {
        let enough = floats.add(floats.mul(small, sum), least);
        if floats.bits(power, enough) == 0 {
            return floats.div(sum, scale);
        }
        factor = floats.add(factor, step);
        step = floats.add(step, two);
        let by = floats.select(power, enough, factor, one);
        power = floats.select(power, enough, floats.mul(power, x), zero);
        sum = floats.add(floats.mul(sum, by), power);
        scale = floats.mul(scale, by);
    }
}

/// ln p(k) = -D(P, l1) - D(M, l2) - ln(2 pi h)/2 + W.
struct Expansion<'a, const N: usize>(&'a ColumnLanes<3, N>, &'a mut [f64; N]);

impl<const N: usize> FloatWork for Expansion<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<F: Floats>(self, floats: F) {
        for ([k, plus, minus], logs) in self.0.groups(self.1) {
            let mut h = [1.0; LANES];
            for i in 0..LANES {
                h[i] = radius(k[i], plus[i], minus[i]);
            }
            floats.store(log_corrections(floats, floats.load(&k), floats.load(&h)), logs);
            for i in 0..LANES {
                logs[i] = expansion([k[i], plus[i], minus[i]], h[i], logs[i]);
            }
        }
    }
}

#[inline(always)]
fn expansion([k, l1, l2]: [f64; 3], h: f64, correction: f64) -> f64 {
    let [excess, minus_excess] = excesses(k, l1, l2, h);
    let [quotient, minus_quotient] = quotients(k, l1, h);
    let main = correction - lane_deviance(excess, l1, quotient) - lane_deviance(minus_excess, l2, minus_quotient);
    main - 0.5 * elementary::ln(2.0 * PI * h)
}

/// Log-masses of up to 256 laws at whole numbers.
pub(super) fn log_masses<const N: usize>(level: Level, laws: &[(Skellam, f64)], out: &mut [f64]) {
    let [mut small, mut large] = std::array::from_fn(|_| Asked { lanes: ColumnLanes::<3, N>::new(), places: [0; N] });
    for (i, ((law, k), out)) in laws.iter().zip(&mut *out).enumerate() {
        let [plus, minus] = if *k < 0.0 { law.mirrored().rates() } else { law.rates() };
        if !(plus.min(minus) >= LEAST_SERVED) {
            *out = law.log_mass(*k);
            continue;
        }
        let squared = k * k + 4.0 * plus * minus;
        let asked = if squared < EXPANSION_FROM * EXPANSION_FROM { &mut small } else { &mut large };
        let lane = asked.lanes.push([k.abs(), plus, minus]);
        asked.places[lane] = i as u8;
    }
    let mut logs = [0.0; N];
    if small.lanes.len > 0 {
        float_work(level, Series(&small.lanes, &mut logs));
        small.give(&logs, out);
    }
    if large.lanes.len == 1 {
        // Alone, as in a search for a quantile: the same operations for one lane.
        let [k, plus, minus] = std::array::from_fn(|column| large.lanes.group(column, 0)[0]);
        let h = radius(k, plus, minus);
        logs[0] = expansion([k, plus, minus], h, log_correction(k, h));
    } else {
        float_work(level, Expansion(&large.lanes, &mut logs));
    }
    large.give(&logs, out);
}

impl<const N: usize> Asked<N> {
    fn give(&self, logs: &[f64; N], out: &mut [f64]) {
        for (place, log) in self.places[..self.lanes.len].iter().zip(logs) {
            out[*place as usize] = log.min(0.0);
        }
    }
}

/// Each number's exponential in its place.
pub(super) fn exponentials(level: Level, logs: &mut [f64]) {
    at_level!(level, logs.iter_mut().for_each(|log| *log = elementary::exp(*log)));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Laws on both sides of the series' end, with points far below and far above their means.
    fn laws() -> Vec<(Skellam, f64)> {
        let rates = [0.0, 1e-300, 1e-9, 0.1, 1.0, 9.0, 15.9, 16.1, 60.0, 1e3, 1e5, 1e9, 9e15];
        let pairs = rates.into_iter().flat_map(|plus| rates.map(|minus| Skellam::unchecked(plus, minus)));
        let places = [-30.0, -3.0, -0.4, 0.0, 0.7, 5.0, 40.0];
        let around =
            |law: Skellam, z: f64| (law.rates()[0] - law.rates()[1] + z * law.rates().map(f64::sqrt)[0]).round();
        pairs.flat_map(|law| places.map(|z| (law, around(law, z)))).collect()
    }

    #[test]
    fn masses_side_by_side_are_those_of_a_law_alone_and_the_same_bits_at_every_level() {
        let laws = laws();
        let found = |level, together: usize| {
            let mut out = vec![0.0; laws.len()];
            for (laws, out) in laws.chunks(together).zip(out.chunks_mut(together)) {
                log_masses::<64>(level, laws, out);
            }
            out
        };
        let expected = found(Level::Baseline, 64);
        for (level, together) in [(Level::Baseline, 1), (Level::Avx2, 64), (Level::Avx512, 64), (Level::Avx512, 7)] {
            assert_eq!(found(level, together), expected);
        }
        for ((law, k), found) in laws.iter().zip(expected) {
            let alone = law.log_mass(*k);
            assert!(found == alone || (found - alone).abs() <= 3e-15 * alone.abs().max(1.0), "{law:?} {k}: {found}");
        }
    }
}
