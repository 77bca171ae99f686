//! The event-driven allocation of a row: work follows the number of events instead of the number of cells.
//!
//! Poisson events of rate u_k S_k s over a row, S_k the sum of R over columns, each on a column drawn by R_vk / S_k, have the
//! law of independent Poisson counts of rate s u_k R_vk, already split. They become exact draws of the cells:
//!   all cells, s = 1/alpha: where o <= 0, each event stays with probability alpha^2. Where o > 0 and n events fell, all stay
//!   with probability alpha^(2 max(0, n - o)); otherwise they are thrown away and the cell is drawn directly;
//!   cells with o <= 0 only, s = alpha: every event there stays.
//! For Poisson(mu/alpha) masses times that acceptance are proportional to mu^n / n! alpha^|o-n|; and a proposal from q kept
//! with probability a, else replaced by a draw of p proportional to q a, has exactly the law p.
//! Cells with their own alpha: events come at the greatest rate of the row and are thinned to the cell's first.
//!
//! Source: derived here; the law of a cell is that of `distributions::two_piece_poisson`.

use super::alias::Aliases;
use super::allocation::{Allocation, Ratios};
use super::row::{HELD_OUT, Row};
use crate::distributions::{RandomSource, poisson};
use crate::stream::Xoshiro;
use rand_distr::{Distribution, Exp1};

/// A cell whose events were thrown away.
const REJECTED: u32 = u32::MAX;

/// The events of a row.
#[derive(Clone, Debug)]
pub struct Events {
    list: Vec<(u32, u32)>,
    /// Events on each column with a positive value.
    seen: Vec<u32>,
    /// Columns to be drawn directly.
    pub rejected: Vec<u32>,
}

impl Events {
    /// For rows of so many columns.
    pub fn new(cols: usize) -> Self {
        Self { list: vec![], seen: vec![0; cols], rejected: vec![] }
    }

    /// Draws the counts of the cells whose code is not positive.
    #[inline(always)]
    pub fn where_not_positive(
        aliases: &Aliases,
        left: &[f64],
        row: &Row<'_>,
        ratios: Ratios<'_>,
        rng: &mut Xoshiro,
        share: &mut Allocation<'_>,
    ) {
        let mut clock = EventClock::new(left, &aliases.sums, ratios.greatest, rng);
        for (k, (weight, sum)) in left.iter().zip(&aliases.sums).enumerate() {
            for _ in 0..clock.events(weight * sum * ratios.greatest, rng) {
                let column = aliases.column(k, rng.word());
                let code = row.codes[column];
                if code <= 0 && code != HELD_OUT && ratios.keep(column, |own| own / ratios.greatest, rng) {
                    share.event(column, k);
                }
            }
        }
    }

    /// Draws the counts of all cells but those in `rejected` afterwards.
    #[inline(always)]
    pub fn everywhere(
        &mut self,
        aliases: &Aliases,
        left: &[f64],
        row: &Row<'_>,
        ratios: Ratios<'_>,
        rng: &mut Xoshiro,
        share: &mut Allocation<'_>,
    ) {
        // `list` has the events (v, k) on columns of positive release; `seen[v]` is how many of them fell on v, then also what
        // was decided of v. It is all zeros before a row and after it.
        self.list.clear();
        self.rejected.clear();
        let rate = 1.0 / ratios.least;
        let thin = ratios.least * ratios.least;
        let mut clock = EventClock::new(left, &aliases.sums, rate, rng);
        for (k, (weight, sum)) in left.iter().zip(&aliases.sums).enumerate() {
            for _ in 0..clock.events(weight * sum * rate, rng) {
                let column = aliases.column(k, rng.word());
                let code = row.codes[column];
                if code > 0 {
                    if ratios.keep(column, |own| ratios.least / own, rng) {
                        self.seen[column] += 1;
                        self.list.push((column as u32, k as u32));
                    }
                } else if code != HELD_OUT {
                    let chance = ratios.own.map_or(thin, |own| own[column] * ratios.least);
                    if rng.uniform() < chance {
                        share.event(column, k);
                    }
                }
            }
        }
        // The first event of a column decides for all of them, by their number alone.
        for i in 0..self.list.len() {
            let (column, k) = self.list[i];
            let column = column as usize;
            let seen = self.seen[column];
            if seen == REJECTED {
                continue;
            }
            let excess = i64::from(seen) - row.value(column, row.codes[column]).max(0);
            if excess > 0 && seen & KEPT == 0 {
                let alpha = ratios.at(column);
                if rng.uniform() >= (alpha * alpha).powi(excess.min(1 << 30) as i32) {
                    self.seen[column] = REJECTED;
                    self.rejected.push(column as u32);
                    continue;
                }
                self.seen[column] |= KEPT;
            }
            share.event(column, k as usize);
        }
        for &(column, _) in &self.list {
            self.seen[column as usize] = 0;
        }
    }
}

/// Numbers of events of the components, one after the other.
///
/// Where they are few, one Poisson process runs through all of them by its exponential gaps; else each has a Poisson draw.
struct EventClock {
    next: f64,
    end: f64,
}

/// Below so many events per component, gaps cost less than Poisson draws.
const FEW: f64 = 3.0;

impl EventClock {
    #[inline(always)]
    fn new(left: &[f64], sums: &[f64], scale: f64, rng: &mut Xoshiro) -> Self {
        let expected: f64 = left.iter().zip(sums).map(|(weight, sum)| weight * sum).sum();
        let few = expected * scale < FEW * left.len() as f64;
        Self { next: if few { Exp1.sample(rng) } else { f64::NAN }, end: 0.0 }
    }

    #[inline(always)]
    fn events(&mut self, rate: f64, rng: &mut Xoshiro) -> i64 {
        if self.next.is_nan() {
            return poisson::draw(rate, rng);
        }
        // One process of rate one over [0, sum of all rates): component k has the part that starts where k - 1 ended.
        let mut events = 0;
        self.end += rate;
        while self.next < self.end {
            let gap: f64 = Exp1.sample(rng);
            self.next += gap;
            events += 1;
        }
        events
    }
}

/// Marks a cell whose events were kept although there are more of them than its value.
const KEPT: u32 = 1 << 31;
