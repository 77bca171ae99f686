//! Points of a simplex as softmax(V u), V an orthonormal basis of the vectors of sum zero, and what is pulled back to u.

use libm::lgamma;

/// [`super::PriorBlock::pull`] of probabilities.
pub(super) fn simplex_pull(
    concentration: &[f64],
    natural: &[f64],
    slope_and_gradient: Option<(&[f64], &mut [f64])>,
) -> f64 {
    let k = natural.len();
    let total: f64 = concentration.iter().sum();
    let mut value = lgamma(total) + 0.5 * (k as f64).ln();
    for (a, theta) in concentration.iter().zip(natural) {
        value += a * theta.ln() - if *a == 1.0 { 0.0 } else { lgamma(*a) };
    }
    if let Some((slope, gradient)) = slope_and_gradient {
        let mean: f64 = slope.iter().zip(natural).map(|(g, theta)| g * theta).sum();
        let by_log = |i: usize| natural[i] * (slope[i] - mean) + concentration[i] - total * natural[i];
        let mut before = by_log(0);
        for j in 1..k {
            let here = by_log(j);
            let m = j as f64;
            gradient[j - 1] += (before - m * here) / (m * (m + 1.0)).sqrt();
            before += here;
        }
    }
    value
}

/// `V u` with Helmert's basis V: column j has j entries `1/sqrt(j(j+1))`, then `-j` times that.
pub(super) fn helmert(u: &[f64], out: &mut [f64]) {
    let mut later = 0.0;
    for i in (0..out.len()).rev() {
        // Coordinate j = i acts on entry i by its -j; those after it by their ones.
        let m = i as f64;
        let own = if i > 0 { u[i - 1] / (m * (m + 1.0)).sqrt() } else { 0.0 };
        out[i] = later - m * own;
        later += own;
    }
}

/// `softmax(V u)`.
pub(super) fn softmax(u: &[f64], out: &mut [f64]) {
    helmert(u, out);
    let largest = out.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut total = 0.0;
    for x in out.iter_mut() {
        *x = (*x - largest).exp();
        total += *x;
    }
    for x in out.iter_mut() {
        *x = (*x / total).max(f64::MIN_POSITIVE);
    }
}

/// `V' y`.
pub(super) fn helmert_transposed(y: &[f64], u: &mut [f64]) {
    let mut before = y[0];
    for j in 1..y.len() {
        let m = j as f64;
        u[j - 1] = (before - m * y[j]) / (m * (m + 1.0)).sqrt();
        before += y[j];
    }
}
