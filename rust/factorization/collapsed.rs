//! The cells of a row with the noise summed out, eight at a time: weights E[y | o, mu] / mu, and logarithms of likelihoods.
//!
//! The sums are those of [`super::cell`], as polynomials whose coefficients depend on the release alone:
//!   B = sum_{y<o} x^y / y!,   A = x^o / o! sum_j z^j o! / (o+j)!,   x = mu / alpha,  z = alpha mu.
//! So cells of the same release go together, see [`super::positive_cells`]; the number of terms of A follows from the largest z
//! of eight cells, and those added for the others' sake are below half a unit in the last place. Logarithms are taken of
//! products of many cells at once.
//!
//! Source: the two-piece Poisson law, derived in `distributions::two_piece_poisson`.

use super::cell::{SHORT, log_sum, most_short, scaled_mean};
use super::positive_cells::RowCells;
use super::row::{HELD_OUT, Row};
use crate::distributions::two_piece_cells::whole_eight;
use crate::numeric::floats::{FloatWork, Floats, LANES};
use std::sync::LazyLock;

/// A row whose noise has one ratio: turns rates into weights, and returns the sum of `ln p(o | rate) + rate` over observed cells.
pub struct CollapsedRow<'a> {
    /// The releases.
    pub data: Row<'a>,
    /// Those that are positive.
    pub positive: RowCells<'a>,
    /// The ratio of the noise, above zero.
    pub alpha: f64,
    /// The rates, which become weights.
    pub rates: &'a mut [f64],
    /// Whether the logarithms are wanted.
    pub logarithms: bool,
}

/// Numbers of terms of A to choose from, all even.
const TERMS: [usize; 9] = [6, 8, 12, 16, 24, 36, 56, 84, 124];
/// The last of them.
const MOST_TERMS: usize = TERMS[TERMS.len() - 1];

/// Coefficients of the series that are the same for all rates.
pub struct Coefficients {
    /// 1/y!
    below: [f64; SHORT as usize + 1],
    /// o!/(o+j)! for each o.
    above: Vec<[f64; MOST_TERMS]>,
    /// The largest z for which so many terms are enough, whatever the release: z^n / (n+1)! is below 2^-55 there.
    limits: [f64; TERMS.len()],
}

/// The coefficients, made once.
pub static COEFFICIENTS: LazyLock<Coefficients> = LazyLock::new(|| {
    let mut below = [1.0; SHORT as usize + 1];
    (1..below.len()).for_each(|y| below[y] = below[y - 1] / y as f64);
    let mut above = vec![[1.0; MOST_TERMS]; below.len()];
    for (o, terms) in above.iter_mut().enumerate() {
        (1..MOST_TERMS).for_each(|j| terms[j] = terms[j - 1] / (o + j) as f64);
    }
    let limits = TERMS.map(|n| {
        let log_factorial: f64 = (1..=n + 1).map(|i| (i as f64).ln()).sum();
        // The terms that follow sum to less than twice the first where z <= (n + 2) / 2.
        ((log_factorial - 55.0 * std::f64::consts::LN_2) / n as f64).exp().min(0.5 * n as f64)
    });
    Coefficients { below, above, limits }
});

impl FloatWork for CollapsedRow<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<F: Floats>(self, f: F) -> f64 {
        let Self { data, positive, alpha, rates, logarithms } = self;
        // Where the release is not positive the weight is alpha and the logarithm linear: such rates are added up, a column v in
        // lane v mod 8, before they are written over. The rates of positive cells stay for what follows.
        let mut plain = [0.0; LANES];
        if logarithms {
            let (codes, last_codes) = data.codes.as_chunks::<LANES>();
            let (eights, last_rates) = rates.as_chunks::<LANES>();
            for (codes, rates) in codes.iter().zip(eights) {
                for lane in 0..LANES {
                    plain[lane] += plain_rate(codes[lane], rates[lane]);
                }
            }
            for (lane, (&code, &rate)) in last_codes.iter().zip(last_rates).enumerate() {
                plain[lane] += plain_rate(code, rate);
            }
        }
        for (&code, rate) in data.codes.iter().zip(&mut *rates) {
            let weight = if code == HELD_OUT { 0.0 } else { alpha };
            *rate = if code <= 0 { weight } else { *rate };
        }
        let observed = positive.others.observed + positive.len();
        let mut distance = positive.others.distance;
        let mut logs = LogProducts { sum: 0.0, product: f.splat(1.0) };
        let coefficients = &*COEFFICIENTS;
        // Where 1/alpha is beyond a double, no cell is short.
        let inverse = 1.0 / alpha;
        let most = if inverse < f64::INFINITY { most_short(alpha) } else { -1.0 };
        let (most, ratio, inverse) = (f.splat(most), f.splat(alpha), f.splat(inverse));
        for group in positive.groups(SHORT as usize) {
            let released = group.released.clamp(1, SHORT as usize);
            let (below, above) = (&coefficients.below, &coefficients.above[released]);
            for cells in group.columns.chunks(LANES) {
                let indices = whole_eight(cells);
                assert!(indices.iter().all(|&column| (column as usize) < rates.len()));
                // SAFETY: just looked at.
                let own = unsafe { f.gather(rates, &indices) };
                let short = f.bits(most, own);
                let rate = f.select(most, own, own, ratio);
                let (x, z) = (f.mul(rate, inverse), f.mul(rate, ratio));
                // B by Horner from y = o - 1 down; A below it by even and odd powers of z, half as long a chain each.
                let mut sum_below = f.splat(below[released - 1]);
                for coefficient in below[..released - 1].iter().rev() {
                    sum_below = f.mul_add(sum_below, x, f.splat(*coefficient));
                }
                let enough = |&i: &usize| f.bits(z, f.splat(coefficients.limits[i])) == 0;
                let terms = (0..TERMS.len()).find(enough).map_or(MOST_TERMS, |i| TERMS[i]);
                let square = f.mul(z, z);
                let (mut even, mut odd) = (f.splat(0.0), f.splat(0.0));
                for pair in above[..terms].as_chunks::<2>().0.iter().rev() {
                    even = f.mul_add(even, square, f.splat(pair[0]));
                    odd = f.mul_add(odd, square, f.splat(pair[1]));
                }
                let first = f.mul(power(f, x, released), f.splat(below[released]));
                let sum_above = f.mul(first, f.mul_add(z, odd, even));
                let sum = f.add(sum_below, sum_above);
                let weight = f.div(f.mul_add(sum_below, inverse, f.mul(sum_above, ratio)), sum);
                let mut weights = [0.0; LANES];
                f.store(weight, &mut weights);
                if cells.len() == LANES && short == (1 << LANES) - 1 {
                    distance += (LANES * released) as i64;
                    for (&column, weight) in cells.iter().zip(weights) {
                        rates[column as usize] = weight;
                    }
                    if logarithms {
                        logs.add(f, sum);
                    }
                    continue;
                }
                // What fills up the last eight repeats a cell and is not written; sums that are not short count for nothing here.
                let mut factors = [1.0; LANES];
                let mut sums = [0.0; LANES];
                f.store(sum, &mut sums);
                for (lane, &column) in cells.iter().enumerate() {
                    if short >> lane & 1 == 1 {
                        distance += released as i64;
                        (rates[column as usize], factors[lane]) = (weights[lane], sums[lane]);
                    } else {
                        logs.sum += long(released as i64, &mut rates[column as usize], alpha, logarithms);
                    }
                }
                if logarithms {
                    logs.add(f, f.load(&factors));
                }
            }
        }
        for &column in positive.beyond(SHORT as usize) {
            let released = data.value(column as usize, data.codes[column as usize]);
            logs.sum += long(released, &mut rates[column as usize], alpha, logarithms);
        }
        if !logarithms {
            return 0.0;
        }
        let noise = if distance == 0 { 0.0 } else { distance as f64 * alpha.ln() };
        let plain: f64 = plain.iter().sum();
        logs.total(f) + observed as f64 * ((1.0 - alpha) / (1.0 + alpha)).ln() + noise + alpha * plain
    }
}

/// The rate of a cell whose release is not positive, zero elsewhere.
#[inline(always)]
fn plain_rate(code: i8, rate: f64) -> f64 {
    if code <= 0 && code != HELD_OUT { rate } else { 0.0 }
}

/// A cell whose sums are not short: turns its rate into its weight, and returns the logarithm if it is wanted.
#[cold]
#[inline(never)]
fn long(released: i64, rate: &mut f64, alpha: f64, logarithm: bool) -> f64 {
    let log = if logarithm { log_sum(released, *rate, alpha) } else { 0.0 };
    *rate = scaled_mean(released, rate.max(f64::MIN_POSITIVE), alpha);
    log
}

/// `x^n` for n > 0 by squares.
#[inline(always)]
fn power<F: Floats>(f: F, x: F::Eight, n: usize) -> F::Eight {
    let (mut result, mut square, mut rest) = (f.splat(1.0), x, n);
    while rest > 0 {
        if rest % 2 == 1 {
            result = f.mul(result, square);
        }
        square = f.mul(square, square);
        rest /= 2;
    }
    result
}

/// A sum of logarithms, taken of eight products.
struct LogProducts<E> {
    sum: f64,
    product: E,
}

impl<E: Copy> LogProducts<E> {
    /// Adds the logarithms of numbers between 1 and 1e145.
    #[inline(always)]
    fn add<F: Floats<Eight = E>>(&mut self, f: F, factors: E) {
        self.product = f.mul(self.product, factors);
        if f.bits(self.product, f.splat(1e150)) != 0 {
            self.sum = self.total(f);
            self.product = f.splat(1.0);
        }
    }

    #[inline(always)]
    fn total<F: Floats<Eight = E>>(&self, f: F) -> f64 {
        let mut products = [0.0; LANES];
        f.store(self.product, &mut products);
        products.iter().fold(self.sum, |sum, product| sum + product.ln())
    }
}
