//! The cells of a row with the noise summed out, eight at a time: weights E[y | o, mu] / mu, and logarithms of likelihoods.
//!
//! The sums are those of [`super::cell`]. Logarithms are taken of products of many cells at once.
//!
//! Source: the two-piece Poisson law, derived in `distributions::two_piece_poisson`.

use super::cell::{RECIPROCALS, is_short, log_sum, scaled_mean};
use super::released_counts::{HELD_OUT, Row};
use super::split::LANES;
use crate::numeric::dispatch::Work;

/// A row whose noise has one ratio: turns rates into weights, and returns the sum of `ln p(o | rate) + rate` over observed cells.
///
/// Cells with a positive release are worked on eight at a time. A cell's sums do not depend on its neighbors: terms that are
/// added for their sake are below half a unit in the last place.
pub struct CollapsedRow<'a> {
    /// The releases.
    pub data: Row<'a>,
    /// The ratio of the noise, above zero.
    pub alpha: f64,
    /// The rates, which become weights.
    pub rates: &'a mut [f64],
    /// Whether the logarithms are wanted.
    pub logarithms: bool,
}

impl Work for CollapsedRow<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let Self { data, alpha, rates, logarithms } = self;
        let (mut columns, mut released, mut rate) = ([0; LANES], [1.0; LANES], [1.0; LANES]);
        let mut held = 0;
        let (mut observed, mut distance, mut plain) = (0usize, 0i64, 0.0);
        let mut logs = Logarithms::default();
        for column in 0..=rates.len() {
            if held == LANES || (column == rates.len() && held > 0) {
                let (below, above) = near(&released, &rate, alpha);
                for lane in 0..held {
                    let sum = below[lane] + above[lane];
                    rates[columns[lane]] = (below[lane] / alpha + alpha * above[lane]) / sum;
                    if logarithms {
                        logs.add(sum);
                    }
                }
                // A lane that is left over repeats a cell it has served.
                held = 0;
            }
            let Some(&code) = data.codes.get(column) else { continue };
            if code == HELD_OUT {
                rates[column] = 0.0;
                continue;
            }
            observed += 1;
            if code <= 0 {
                distance -= i64::from(code);
                plain += rates[column];
                rates[column] = alpha;
                continue;
            }
            let (value, own) = (data.value(column, code), rates[column]);
            if value > 0 && is_short(value, own, alpha) {
                distance += value;
                (columns[held], released[held], rate[held]) = (column, value as f64, own);
                held += 1;
            } else {
                if logarithms {
                    logs.sum += log_sum(value, own, alpha);
                }
                rates[column] = scaled_mean(value, own.max(f64::MIN_POSITIVE), alpha);
            }
        }
        if !logarithms {
            return 0.0;
        }
        let noise = if distance == 0 { 0.0 } else { distance as f64 * alpha.ln() };
        logs.total() + observed as f64 * ((1.0 - alpha) / (1.0 + alpha)).ln() + noise + alpha * plain
    }
}

/// Masses below each joint, and from it on, relative to the mass at zero; see [`super::cell`].
#[inline(always)]
fn near(released: &[f64; LANES], rate: &[f64; LANES], alpha: f64) -> ([f64; LANES], [f64; LANES]) {
    let (mut below, mut term) = ([0.0; LANES], [1.0; LANES]);
    let most = released.iter().copied().fold(0.0, f64::max) as usize;
    let (mut up, mut x) = ([0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        (up[lane], x[lane]) = (alpha * rate[lane], rate[lane] / alpha);
    }
    for (y, reciprocal) in RECIPROCALS[1..=most].iter().enumerate() {
        for lane in 0..LANES {
            let inside = (y as f64) < released[lane];
            below[lane] += if inside { term[lane] } else { 0.0 };
            term[lane] *= if inside { x[lane] * reciprocal } else { 1.0 };
        }
    }
    let (mut above, mut next) = (term, *released);
    loop {
        let mut more = false;
        for _ in 0..3 {
            for lane in 0..LANES {
                next[lane] += 1.0;
                term[lane] *= up[lane] / next[lane];
                above[lane] += term[lane];
            }
        }
        for lane in 0..LANES {
            more |= term[lane] > 1e-17 * (above[lane] + below[lane]);
        }
        if !more {
            return (below, above);
        }
    }
}

/// A sum of logarithms, taken of products.
#[derive(Clone, Copy, Debug)]
struct Logarithms {
    sum: f64,
    product: f64,
}

impl Default for Logarithms {
    fn default() -> Self {
        Self { sum: 0.0, product: 1.0 }
    }
}

impl Logarithms {
    /// Adds the logarithm of a number between 1 and 1e140.
    #[inline(always)]
    fn add(&mut self, factor: f64) {
        self.product *= factor;
        if self.product > 1e150 {
            self.sum += self.product.ln();
            self.product = 1.0;
        }
    }

    fn total(self) -> f64 {
        self.sum + self.product.ln()
    }
}
