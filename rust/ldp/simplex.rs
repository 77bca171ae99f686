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
    u[..y.len() - 1].fill(0.0);
    add_helmert_transposed(y, u);
}

/// Adds `V' y`.
pub(super) fn add_helmert_transposed(y: &[f64], u: &mut [f64]) {
    let mut before = y[0];
    for j in 1..y.len() {
        let m = j as f64;
        u[j - 1] += (before - m * y[j]) / (m * (m + 1.0)).sqrt();
        before += y[j];
    }
}

/// `ln ln(1 + e^t)`, its derivative, and the derivative of the logarithm of that: a coordinate of positive numbers, a
/// logarithm on the left and the number itself on the right.
pub(super) fn soft_log(t: f64) -> (f64, [f64; 2]) {
    let e = (-t.abs()).exp();
    let (rise, share) = if t > 0.0 { (t + e.ln_1p(), 1.0 / (1.0 + e)) } else { (e.ln_1p(), e / (1.0 + e)) };
    let (log_rise, slope) = if t < -40.0 { (t, 1.0) } else { (rise.ln(), share / rise) };
    (log_rise, [slope, (1.0 - share) - slope])
}

/// The t of `ln(1 + e^t)`.
pub(super) fn soft_back(rise: f64) -> f64 {
    let rise = rise.max(1e-300);
    rise + (-(-rise).exp_m1()).ln()
}
