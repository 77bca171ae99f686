//! Modified Bessel functions I_v(a) of the first kind, only ever in logarithms and with the large parts taken out.
//!
//! Power series: I_v(a) = (a/2)^v / v! S(x),  S(x) = sum_n x^n / (n! (v+1)_n),  x = a^2/4.
//! Uniform expansion, h = hypot(v, a), s = (v/h)^2, t = 1/h:
//!   ln I_v(a) = h + v ln(a / (v+h)) - ln(2 pi h)/2 + W,   W = sum_k V_k(s) t^k.
//! The polynomials come from Debye's u_k by the recurrence DLMF 10.41.9 and the logarithm of the series, in double precision
//! when first needed: an error in V_k is divided by h^k, so that none is visible.
//! Cumulants are the operator (1/2) d/du, u = ln a, applied to W; it maps c Q(s) t^k, c = 1 - s, onto
//! c t^k (s Q - s c Q' - k c Q / 2), and the factor c stays outside.
//!
//! Source: F. Olver (1954); NIST Digital Library of Mathematical Functions, 10.25.2 and 10.41.

use crate::numeric::floats::Floats;
use std::sync::LazyLock;

/// From here on the expansion of the logarithm is used, with at most [`TERMS`] terms; the rest is below 2e-16.
pub const EXPANSION_FROM: f64 = 32.0;
/// From here on the expansion of the first four cumulants is used; the rest is below 1e-16 of each.
pub const CUMULANTS_FROM: f64 = 48.0;
/// Terms of the expansion.
const TERMS: usize = 14;
/// `ENOUGH[k]`: the h from which k terms leave less than 1.5e-16, that is max over s of |V_(k+1)| / h^(k+1).
const ENOUGH: [f64; TERMS] =
    [f64::INFINITY, 20.5e6, 75_800.0, 5110.0, 1080.0, 393.0, 197.0, 120.0, 83.0, 62.0, 50.0, 42.0, 36.0, 32.0];

/// A polynomial in s, lowest degree first.
type Polynomial = Vec<f64>;

/// `V_k` for k = 1..=TERMS in rows of equal length, and for each of the first four cumulants its `Q_k`.
pub struct Expansion {
    log: [[f64; TERMS + 1]; TERMS],
    cumulants: [Vec<Polynomial>; 4],
}

/// The uniform asymptotic expansion.
pub static EXPANSION: LazyLock<Expansion> = LazyLock::new(expansion);

fn add(a: &[f64], factor: f64, b: &[f64]) -> Polynomial {
    let at = |p: &[f64], i: usize| p.get(i).copied().unwrap_or(0.0);
    (0..a.len().max(b.len())).map(|i| at(a, i) + factor * at(b, i)).collect()
}

fn product(a: &[f64], b: &[f64]) -> Polynomial {
    let mut result = vec![0.0; a.len() + b.len() - 1];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            result[i + j] += x * y;
        }
    }
    result
}

/// `s P'(s)`.
fn scaled_derivative(p: &[f64]) -> Polynomial {
    p.iter().enumerate().map(|(i, x)| i as f64 * x).collect()
}

fn expansion() -> Expansion {
    // u_k as a polynomial in s times p^k: with p d/dp = k + 2 s d/ds the recurrence is
    // u_(k+1) = (1 - s)/2 (k u_k + 2 s u_k') + (1/8) sum_i u_(k,i) s^i (1/(k+2i+1) - 5 s/(k+2i+3)).
    let mut debye = vec![vec![1.0]];
    for k in 0..TERMS {
        let last = &debye[k];
        let order = k as f64;
        let moved: Polynomial = last.iter().enumerate().map(|(i, x)| (order + 2.0 * i as f64) * x).collect();
        let mut next = product(&[0.5, -0.5], &moved);
        for (i, x) in last.iter().enumerate() {
            let exponent = order + 2.0 * i as f64;
            next[i] += x / (8.0 * (exponent + 1.0));
            next[i + 1] -= 5.0 * x / (8.0 * (exponent + 3.0));
        }
        debye.push(next);
    }
    // The logarithm of a series: k u_k = sum_j j V_j u_(k-j).
    let mut log: Vec<Polynomial> = vec![vec![0.0]];
    for k in 1..=TERMS {
        let mut sum: Polynomial = debye[k].iter().map(|x| k as f64 * x).collect();
        for j in 1..k {
            sum = add(&sum, -(j as f64), &product(&log[j], &debye[k - j]));
        }
        log.push(sum.iter().map(|x| x / k as f64).collect());
    }
    let mut cumulants: [Vec<Polynomial>; 4] = Default::default();
    for (k, polynomial) in log.iter().enumerate().skip(1) {
        let k = k as f64;
        let first = add(&scaled_derivative(polynomial), k / 2.0, polynomial);
        let mut q: Polynomial = first.iter().map(|x| -x).collect();
        for rows in &mut cumulants {
            rows.push(q.clone());
            let shrunk = product(&[1.0, -1.0], &add(&scaled_derivative(&q), k / 2.0, &q));
            q = add(&product(&[0.0, 1.0], &q), -1.0, &shrunk);
        }
    }
    let mut rows = [[0.0; TERMS + 1]; TERMS];
    for (row, polynomial) in rows.iter_mut().zip(&log[1..]) {
        row[..polynomial.len()].copy_from_slice(polynomial);
    }
    Expansion { log: rows, cumulants }
}

/// The correction `W` of the uniform expansion, absolute error below 2e-16, for `radius = hypot(order, argument) >= 32`.
#[inline]
pub fn log_correction(order: f64, radius: f64) -> f64 {
    let t = 1.0 / radius;
    let s = (order * t) * (order * t);
    let terms = ENOUGH.iter().position(|&from| radius >= from).unwrap_or(TERMS);
    let rows = &EXPANSION.log;
    (1..=terms).rev().fold(0.0, |sum, k| (sum + rows[k - 1][..=k].iter().rev().fold(0.0, |p, c| p * s + c)) * t)
}

/// The same side by side, bit for bit.
#[inline(always)]
pub fn log_corrections<F: Floats>(floats: F, order: F::Eight, radius: F::Eight) -> F::Eight {
    let (zero, t) = (floats.splat(0.0), floats.div(floats.splat(1.0), radius));
    let ratio = floats.mul(order, t);
    let s = floats.mul(ratio, ratio);
    let mut sum = zero;
    for (k, (row, &enough)) in EXPANSION.log.iter().zip(&ENOUGH).enumerate().rev() {
        let enough = floats.splat(enough);
        if floats.bits(radius, enough) != 0xFF {
            let mut polynomial = zero;
            for &c in row[..k + 2].iter().rev() {
                polynomial = floats.add(floats.mul(polynomial, s), floats.splat(c));
            }
            let more = floats.mul(floats.add(sum, polynomial), t);
            sum = floats.select(radius, enough, zero, more);
        }
    }
    sum
}

/// What W adds to the first four cumulants of the Bessel distribution, for `radius >= 48`.
pub fn cumulant_corrections(order: f64, argument: f64, radius: f64) -> [f64; 4] {
    let t = 1.0 / radius;
    let s = (order * t) * (order * t);
    let c = (argument * t) * (argument * t);
    EXPANSION.cumulants.each_ref().map(|rows| {
        c * rows.iter().rev().fold(0.0, |sum, row| (sum + row.iter().rev().fold(0.0, |p, x| p * s + x)) * t)
    })
}

/// `ln S(x)` of the series `S(x) = sum_n x^n / (n! (order + 1)_n)`, for x <= 600.
///
/// Relative error 1e-15 where S is near one, absolute error 1e-15 elsewhere.
#[inline]
pub fn log_series(order: f64, x: f64) -> f64 {
    let (mut n, mut term) = (1.0, x / (1.0 + order));
    let mut rest = term; // S - 1
    while term > 1e-17 * rest {
        n += 1.0;
        term *= x / (n * (n + order));
        rest += term;
    }
    rest.ln_1p()
}

/// The ratio `I_(v+1)(a) / I_v(a)` for argument > 0 by its continued fraction, about `argument + 20` steps at order 0.
///
/// R_v = 1 / (2 (v+1)/a + R_(v+1)), begun high enough with Amos's bound and taken backward, where errors shrink.
pub fn ratio(order: f64, argument: f64) -> f64 {
    let steps = (argument + 20.0).min(1e7).floor();
    let top = order + steps;
    let mut ratio = argument / (top + 0.5 + (top + 1.5).hypot(argument));
    for step in (0..steps as u64).rev() {
        ratio = 1.0 / (2.0 * (order + step as f64 + 1.0) / argument + ratio);
    }
    ratio
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_polynomials_are_debyes() {
        let row = |k: usize| &EXPANSION.log[k - 1][..=k];
        let near = |found: &[f64], expected: &[f64]| {
            assert!(found.iter().zip(expected).all(|(f, e)| (f - e).abs() < 1e-13 * (1.0 + e.abs())), "{found:?}");
        };
        near(row(1), &[3.0 / 24.0, -5.0 / 24.0]);
        near(row(2), &[1.0 / 16.0, -6.0 / 16.0, 5.0 / 16.0]);
        near(row(3), &[375.0 / 5760.0, -4779.0 / 5760.0, 9945.0 / 5760.0, -5525.0 / 5760.0]);
        near(row(4), &[13.0 / 128.0, -284.0 / 128.0, 1062.0 / 128.0, -1356.0 / 128.0, 565.0 / 128.0]);
        near(&row(8)[..3], &[23797.0 / 4096.0, -1_956_312.0 / 4096.0, 28_279_916.0 / 4096.0]);
        near(&row(8)[7..], &[-387_494_040.0 / 4096.0, 80_727_925.0 / 4096.0]);
    }

    #[test]
    fn series_and_expansion_agree_where_they_meet() {
        for order in [0.0f64, 1.0, 5.0, 20.0, 30.0, 31.5] {
            for radius in [EXPANSION_FROM, 40.0] {
                let argument = (radius * radius - order * order).sqrt();
                let main = radius + order * (argument / (order + radius)).ln()
                    - 0.5 * (2.0 * std::f64::consts::PI * radius).ln();
                let factorial = crate::numeric::special::log_factorial(order.floor());
                if order == order.floor() {
                    let exact =
                        order * (argument / 2.0).ln() - factorial + log_series(order, argument * argument / 4.0);
                    assert!((exact - main - log_correction(order, radius)).abs() < 4e-14, "{order} {radius}");
                }
            }
        }
    }

    #[test]
    fn ratios_obey_the_recurrence_of_the_function() {
        // I_1(1)/I_0(1), and the ratio of two series
        assert!((ratio(0.0, 1.0) - 0.446_389_965_896_534_5).abs() < 1e-15);
        for (order, argument) in [(0.0, 1e-8), (3.0, 5.0), (1000.0, 20.0), (0.0, 40.0)] {
            let x = argument * argument / 4.0;
            let by_series = argument / 2.0 / (order + 1.0) * (log_series(order + 1.0, x) - log_series(order, x)).exp();
            assert!((ratio(order, argument) / by_series - 1.0).abs() < 1e-14, "{order} {argument}");
        }
    }
}
