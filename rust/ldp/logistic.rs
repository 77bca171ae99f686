//! Logistic regression from noisy records or noisy moments: x ~ N(0, S), P(y = 1 | x) = sigmoid(theta.x).
//!
//! A noisy input z = x + N(0, noise) leaves theta.x normal with mean m = b.z, b = K^-1 S theta, K = S + noise, and variance
//! v = theta'S theta - theta'S b, so that P(y = 1 | z) = E(m, v), the logistic-normal integral; an answer kept with
//! probability p has P(1) = 1 - p + (2p - 1) E. The variance is the same for all users: ln P is tabulated in m once per call,
//! with its first two derivatives, and E_v = E_mm / 2 (heat equation). The trapezoid rule of the table has its points on the
//! table's own grid, so that one sweep of sigmoids serves all entries. Of a large v the sigmoid is nearly a step: then, with
//! s a logistic variate and z = m / sqrt(v), E = E_s Phi(z - s / sqrt(v)) is expanded in the moments of s.
//!
//! Moments: with a = S theta, v = theta.a, g = tanh(t/2), k_n = E g^(n)(t) for t ~ N(0, v), the sum of (y x, x x'), y = -1 or
//! 1, has mean N (k1 a, S) and per-user covariances S - k1^2 a a', k1 (S_ik a_j + S_jk a_i) + k3 a_i a_j a_k and
//! S_ik S_jl + S_il S_jk. In the eigenbasis of S the last is diagonal; Schur's complement on d columns gives O(d^4).
//! dk1/dv = k3/2, dk3/dv = k5/2.
//!
//! Source: T. Kulkarni, J. Jälkö, S. Kaski, A. Honkela, Locally differentially private Bayesian inference, sections 12.2 (records;
//! E is integrated, where equation 44 expands the sigmoid) and 13.2 (moments).

use super::Likelihood;
use super::matrix::{
    add_multiple, cholesky, dot, eigen, gauss_rule, inverse_of_cholesky, multiply, multiply_by_transposed,
    multiply_transposed, solve_lower, solve_upper,
};
use crate::numeric::dispatch::{at_level, level};
use crate::numeric::special::normal::{cdf, density};
use crate::{Error, Result};
use std::f64::consts::{PI, TAU};
use std::sync::{Arc, LazyLock};

/// The steps h of the grid of means that the integral is tabled on: a quintic errs by h^6 / 46080 = 1.3e-12 times a sixth
/// derivative.
const STEP: f64 = 1.0 / 16.0;
/// Deviations beyond which the normal density is below 5e-16 of its maximum.
const REACH: f64 = 8.4;
/// Deviations of m from which on the integral is expanded: what is left out is below 1e-13 then.
const WIDE: f64 = 64.0;
/// `E s^2k / (2k)!` of the logistic law, k = 1, 2, 3.
const CORRECTIONS: [f64; 3] = {
    let square = PI * PI;
    [square / 6.0, 7.0 * square * square / 360.0, 31.0 * square * square * square / 15_120.0]
};
/// Users of a block, whose columns stay in the nearest cache with up to sixty coordinates. Not tuned.
const BLOCK: usize = 64;

/// Nodes and weights of Gauss and Hermite for the standard normal law, for variances too small for the table's grid.
pub static HERMITE: LazyLock<[[f64; 2]; 24]> = LazyLock::new(|| gauss_rule(|k| (k as f64).sqrt()));

fn sigmoid(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    if x >= 0.0 { 1.0 / (1.0 + e) } else { e / (1.0 + e) }
}

/// Sigmoid and its first two derivatives, each to full relative accuracy.
fn sigmoids(x: f64) -> [f64; 3] {
    let e = (-x.abs()).exp();
    let (large, small) = (1.0 / (1.0 + e), e / (1.0 + e));
    let (p, q) = if x >= 0.0 { (large, small) } else { (small, large) };
    [p, p * q, p * q * (q - p)]
}

/// `E sigmoid(m + sqrt(v) t)` and its first two derivatives in m, for a standard normal t.
pub fn logistic_normal(m: f64, v: f64) -> [f64; 3] {
    let root = v.sqrt();
    if root > WIDE {
        return expanded(m / root, root);
    }
    let mut sums = [0.0; 3];
    let mut add = |x: f64, weight: f64| {
        sums.iter_mut().zip(sigmoids(x)).for_each(|(sum, value)| *sum += weight * value);
    };
    if root <= 0.4 {
        HERMITE.iter().for_each(|&[t, weight]| add(m + root * t, weight));
    } else {
        let step = (0.5f64).min(0.5 / root);
        let points = (REACH / step) as i64;
        for k in -points..=points {
            let t = k as f64 * step;
            add(m + root * t, step * (-0.5 * t * t).exp() / TAU.sqrt());
        }
    }
    sums
}

/// The same at `m = z root` for a large root, by `E Phi(z - s / root)` of a logistic s.
fn expanded(z: f64, root: f64) -> [f64; 3] {
    let density = density(z);
    // Derivatives of the normal distribution function over the density, of the orders 1 to 8: Hermite's polynomials.
    let mut orders = [1.0, -z, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    for k in 2..8 {
        orders[k] = -z * orders[k - 1] - (k - 1) as f64 * orders[k - 2];
    }
    let per = 1.0 / (root * root);
    let corrected = |first: usize| {
        let [a, b, c] = CORRECTIONS;
        density * per * (a * orders[first] + per * (b * orders[first + 2] + per * c * orders[first + 4]))
    };
    let first = (density + corrected(2)) / root;
    let second = per * (density * orders[1] + corrected(3));
    [(cdf(z) + corrected(1)).clamp(0.0, 1.0), first, second]
}

/// `ln(1 - p + (2p - 1) E(m, v))` on a grid of m, as quintic polynomials.
#[derive(Clone, Debug, Default)]
struct LikelihoodTable {
    low: f64,
    step: f64,
    cells: usize,
    pieces: Vec<[f64; 6]>,
    ends: [[f64; 3]; 2],
    sigmoids: Vec<[f64; 3]>,
    weights: Vec<f64>,
    values: Vec<[f64; 3]>,
}

impl LikelihoodTable {
    fn fill(&mut self, most: f64, v: f64, keep: f64) {
        let root = v.sqrt();
        let most = most.min(60.0 + 8.0 * root);
        // A wide law is as smooth as its deviation is large, and has its own grid.
        self.step = if root > WIDE { root / 64.0 } else { STEP };
        let step = self.step;
        let half = (most / step).ceil() as usize + 1;
        self.low = -(half as f64) * step;
        self.cells = 2 * half;
        self.values.clear();
        let (rest, slope) = (1.0 - keep, 2.0 * keep - 1.0);
        let logs = |[e, e1, e2]: [f64; 3]| {
            let f = rest + slope * e;
            let first = slope * e1 / f;
            [f.ln(), first, slope * e2 / f - first * first]
        };
        if root <= 0.4 || root > WIDE {
            let low = self.low;
            self.values.extend((0..=2 * half).map(|k| logs(logistic_normal(low + k as f64 * step, v))));
        } else {
            // Every so many points of the table's grid carry a node of the rule, at most half a deviation and half a unit apart.
            let skip = ((0.5 * root.min(1.0)) / STEP).floor().max(1.0) as usize;
            let taps = (REACH * root / (skip as f64 * STEP)) as usize;
            let margin = taps * skip;
            self.weights.clear();
            let spacing = skip as f64 * STEP / root;
            self.weights.extend((0..=2 * taps).map(|k| {
                let t = (k as f64 - taps as f64) * spacing;
                spacing * (-0.5 * t * t).exp() / TAU.sqrt()
            }));
            self.sigmoids.clear();
            let first = self.low - margin as f64 * STEP;
            self.sigmoids.extend((0..=2 * (half + margin)).map(|k| sigmoids(first + k as f64 * STEP)));
            for place in 0..=2 * half {
                let mut sums = [0.0; 3];
                for (k, weight) in self.weights.iter().enumerate() {
                    let at = self.sigmoids[place + k * skip];
                    sums[0] += weight * at[0];
                    sums[1] += weight * at[1];
                    sums[2] += weight * at[2];
                }
                self.values.push(logs(sums));
            }
        }
        self.ends = [self.values[0], self.values[self.cells]];
        self.pieces.clear();
        let h = step;
        self.pieces.extend(self.values.windows(2).map(|pair| {
            // The quintic in s = (m - left)/h with both ends' value, slope and curvature.
            let ([f0, d0, c0], [f1, d1, c1]) = (pair[0], pair[1]);
            let (d0, d1, c0, c1) = (d0 * h, d1 * h, c0 * h * h, c1 * h * h);
            let (a, b, c) = (f1 - f0 - d0 - 0.5 * c0, d1 - d0 - c0, c1 - c0);
            [f0, d0, 0.5 * c0, 10.0 * a - 4.0 * b + 0.5 * c, 7.0 * b - 15.0 * a - c, 6.0 * a - 3.0 * b + 0.5 * c]
        }));
    }

    /// The value, the derivative in m and the derivative in v.
    #[inline]
    fn at(&self, m: f64) -> [f64; 3] {
        let per_step = 1.0 / self.step;
        let place = (m - self.low) * per_step;
        if !(place >= 0.0 && place < self.cells as f64) {
            let (end, edge) = if place < 0.0 { (self.ends[0], self.low) } else { (self.ends[1], -self.low) };
            return [end[0] + end[1] * (m - edge), end[1], 0.5 * (end[2] + end[1] * end[1])];
        }
        let cell = place as usize;
        let s = place - cell as f64;
        // Horner's rule for the value, the derivative and half of the second, at once.
        let [a, b, c, d, e, f] = self.pieces[cell];
        let (mut value, mut first, mut half) = (f * s + e, f, 0.0);
        for next in [d, c, b, a] {
            half = half * s + first;
            first = first * s + value;
            value = value * s + next;
        }
        let first = first * per_step;
        let second = half * (2.0 * per_step * per_step);
        [value, first, 0.5 * (second + first * first)]
    }
}

/// Records released with normal noise on x and randomized response on y.
#[derive(Clone, Debug)]
pub struct LogisticRecords {
    d: usize,
    /// Noisy inputs, turned by the sign of the noisy label: block by block of users, coordinate by coordinate within.
    signed: Arc<Vec<f64>>,
    scatter: Vec<f64>,
    users: f64,
    noise: Vec<f64>,
    keep: f64,
    k: Vec<f64>,
    inverse: Vec<f64>,
    product: Vec<f64>,
    g: Vec<f64>,
    vectors: Vec<f64>,
    means: Vec<f64>,
    table: LikelihoodTable,
}

impl LogisticRecords {
    /// From noisy inputs, row by row, noisy labels 0 and 1, the variances of the noise and the probability of the truth.
    ///
    /// # Errors
    /// [`Error::Shape`].
    pub fn new(x: &[f64], y: &[f64], noise: Vec<f64>, keep: f64) -> Result<Self> {
        let d = noise.len();
        Error::require_shape("x", [y.len(), d], [x.len()])?;
        let mut scatter = vec![0.0; d * d];
        multiply_transposed(x, x, &mut scatter, d, y.len(), d);
        let mut signed = vec![0.0; y.len().div_ceil(BLOCK) * BLOCK * d];
        for (user, (row, &y)) in x.chunks_exact(d).zip(y).enumerate() {
            let start = user / BLOCK * BLOCK * d + user % BLOCK;
            for (j, z) in row.iter().enumerate() {
                signed[start + j * BLOCK] = if y > 0.5 { *z } else { -z };
            }
        }
        let [k, inverse, product, g] = std::array::from_fn(|_| vec![0.0; d * d]);
        let (vectors, means) = (vec![0.0; 5 * d], vec![0.0; y.len().div_ceil(BLOCK) * BLOCK]);
        let users = y.len() as f64;
        Ok(Self {
            d,
            signed: Arc::new(signed),
            scatter,
            users,
            noise,
            keep,
            k,
            inverse,
            product,
            g,
            vectors,
            means,
            table: LikelihoodTable::default(),
        })
    }
}

impl Likelihood for LogisticRecords {
    fn value(&mut self, natural: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let d = self.d;
        let (theta, s) = natural.split_at(d);
        self.k.copy_from_slice(s);
        for i in 0..d {
            self.k[i * d + i] += self.noise[i];
        }
        let half_log = cholesky(&mut self.k, d);
        inverse_of_cholesky(&self.k, &mut self.inverse, d);
        let (a, rest) = self.vectors.split_at_mut(d);
        let (b, rest) = rest.split_at_mut(d);
        let (by_b, rest) = rest.split_at_mut(d);
        let (r, difference) = rest.split_at_mut(d);
        for i in 0..d {
            a[i] = dot(&s[i * d..(i + 1) * d], theta);
        }
        for i in 0..d {
            b[i] = dot(&self.inverse[i * d..(i + 1) * d], a);
        }
        for i in 0..d {
            // theta - b = K^-1 noise theta, without cancellation.
            difference[i] = (0..d).map(|j| self.inverse[i * d + j] * self.noise[j] * theta[j]).sum();
        }
        let v = dot(a, difference).max(0.0);
        if !v.is_finite() || half_log.is_nan() {
            if let Some(gradient) = gradient {
                gradient.fill(f64::NAN);
            }
            return f64::NAN;
        }
        let most = project(&self.signed, b, &mut self.means);
        self.table.fill(most, v, self.keep);
        let mut value = -self.users * (half_log + 0.5 * d as f64 * TAU.ln()) - 0.5 * dot(&self.inverse, &self.scatter);
        by_b.fill(0.0);
        let (mut by_v, mut sum) = (0.0, 0.0);
        let (mut slopes, mut left) = ([0.0; BLOCK], self.users as usize);
        for (means, columns) in self.means.as_chunks::<BLOCK>().0.iter().zip(self.signed.chunks_exact(BLOCK * d)) {
            slopes.fill(0.0);
            for (mean, slope) in means.iter().zip(&mut slopes).take(left) {
                let [log, first, spread] = self.table.at(*mean);
                sum += log;
                by_v += spread;
                *slope = first;
            }
            left -= left.min(BLOCK);
            add_products(columns, &slopes, by_b);
        }
        value += sum;
        if let Some(gradient) = gradient {
            for i in 0..d {
                r[i] = dot(&self.inverse[i * d..(i + 1) * d], by_b);
            }
            multiply(&self.inverse, &self.scatter, &mut self.product, d, d, d);
            multiply(&self.product, &self.inverse, &mut self.g, d, d, d);
            let (by_theta, by_s) = gradient.split_at_mut(d);
            for i in 0..d {
                for j in 0..d {
                    by_s[i * d + j] = 0.5 * (self.g[i * d + j] - self.users * self.inverse[i * d + j])
                        + 0.5 * (r[i] * difference[j] + difference[i] * r[j])
                        + by_v * difference[i] * difference[j];
                }
            }
            for i in 0..d {
                let row = &s[i * d..(i + 1) * d];
                by_theta[i] = dot(row, r) + 2.0 * by_v * dot(row, difference);
            }
        }
        value
    }

    fn parameters(&self) -> usize {
        self.d + self.d * self.d
    }
}

/// Writes the products of all users' inputs with a vector; the largest size of one.
fn project(blocks: &[f64], vector: &[f64], out: &mut [f64]) -> f64 {
    at_level!(level(), {
        let mut most = [0.0f64; 8];
        let blocks = blocks.chunks_exact(BLOCK * vector.len());
        for (out, columns) in out.as_chunks_mut::<BLOCK>().0.iter_mut().zip(blocks) {
            out.fill(0.0);
            for (weight, column) in vector.iter().zip(columns.chunks_exact(BLOCK)) {
                add_multiple(out, *weight, column);
            }
            for part in out.as_chunks::<8>().0 {
                for (most, x) in most.iter_mut().zip(part) {
                    *most = if x.abs() > *most { x.abs() } else { *most };
                }
            }
        }
        most.into_iter().fold(0.0, f64::max)
    })
}

/// Adds the products of a block's columns with weights of its users.
fn add_products(columns: &[f64], weights: &[f64; BLOCK], out: &mut [f64]) {
    at_level!(level(), {
        for (sum, column) in out.iter_mut().zip(columns.chunks_exact(BLOCK)) {
            let mut sums = [0.0; 8];
            for (column, weights) in column.as_chunks::<8>().0.iter().zip(weights.as_chunks::<8>().0) {
                for lane in 0..8 {
                    sums[lane] += column[lane] * weights[lane];
                }
            }
            *sum += ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
        }
    })
}

/// `E g^(n)(t)` for n = 1, 3, 5, g = tanh(t/2), t ~ N(0, v).
pub fn odd_slopes(v: f64) -> [f64; 3] {
    let root = v.sqrt();
    let step = if root <= 1.0 { 0.4 } else { 0.4 / root };
    let points = (REACH / step) as i64;
    let mut sums = [0.0; 3];
    for k in -points..=points {
        let t = k as f64 * step;
        let weight = step * (-0.5 * t * t).exp() / TAU.sqrt();
        let g = 2.0 * sigmoid(root * t) - 1.0;
        let w = 4.0 * sigmoids(root * t)[1];
        let square = g * g;
        sums[0] += weight * w * 0.5;
        sums[1] += weight * w * (3.0 * square - 1.0) * 0.25;
        sums[2] += weight * w * (2.0 - 15.0 * square * (1.0 - square)) * 0.25;
    }
    sums
}

/// Sums of (y x, sqrt(c) svec(x x')) released with normal noise.
#[derive(Clone, Debug)]
pub struct LogisticSums {
    d: usize,
    users: f64,
    /// Means of y x and of x x', and the variances of the noise on each of their coordinates.
    first: Vec<f64>,
    second: Vec<f64>,
    noise: [f64; 2],
    constant: f64,
    square: [Vec<f64>; 9],
    cubes: [Vec<f64>; 3],
    vectors: Vec<f64>,
}

impl LogisticSums {
    /// From the sums of y x and of x x' as a matrix, unscaled, and the variances of the noise on each coordinate of y x and
    /// of svec(x x').
    ///
    /// # Errors
    /// [`Error::Shape`]; [`Error::Domain`] without users.
    pub fn new(first: &[f64], second: &[f64], users: f64, noise: [f64; 2]) -> Result<Self> {
        let d = first.len();
        Error::require_shape("total", [d, d], [second.len()])?;
        Error::require(users >= 1.0, "n", users, "at least 1")?;
        let size = d as f64 + (d * (d + 1)) as f64 / 2.0;
        let pairs = (d * (d + 1)) as f64 / 2.0;
        // Densities are of the released coordinates, whose second block is sqrt(c) times ours, c = noise[0] / noise[1].
        let constant = -0.5 * size * (2.0 * PI * users).ln() - 0.5 * pairs * (noise[0] / noise[1]).ln();
        let mean = |sums: &[f64]| sums.iter().map(|sum| sum / users).collect::<Vec<_>>();
        Ok(Self {
            d,
            users,
            first: mean(first),
            second: mean(second),
            noise,
            constant,
            square: std::array::from_fn(|_| vec![0.0; d * d]),
            cubes: std::array::from_fn(|_| vec![0.0; d * d * d]),
            vectors: vec![0.0; 9 * d],
        })
    }
}

impl Likelihood for LogisticSums {
    fn value(&mut self, natural: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let (d, n) = (self.d, self.users);
        let (theta, s) = natural.split_at(d);
        let [q, spread, residual, schur, inverse, rho, by_s, product, other] = &mut self.square;
        let [x, u, by_x] = &mut self.cubes;
        let mut vectors = self.vectors.chunks_exact_mut(d);
        let [values, off, a, alpha, r1, rho1, by_a, turned, line] =
            std::array::from_fn(|_| vectors.next().unwrap_or_default());
        q.copy_from_slice(s);
        eigen(q, values, off, d);
        for i in 0..d {
            a[i] = dot(&s[i * d..(i + 1) * d], theta);
        }
        let v = dot(a, theta);
        if !(v >= 0.0 && v.is_finite()) {
            return f64::NAN;
        }
        let [k1, k3, k5] = odd_slopes(v);
        let rotate = |vector: &[f64], out: &mut [f64], q: &[f64]| {
            for j in 0..d {
                out[j] = (0..d).map(|i| q[i * d + j] * vector[i]).sum();
            }
        };
        rotate(a, alpha, q);
        rotate(&self.first, r1, q);
        for k in 0..d {
            r1[k] -= k1 * alpha[k];
        }
        multiply_transposed(q, &self.second, product, d, d, d);
        multiply(product, q, residual, d, d, d);
        let (mut quadratic, mut logs) = (0.0, 0.0);
        for i in 0..d {
            residual[i * d + i] -= values[i];
            for j in 0..d {
                spread[i * d + j] = 2.0 * values[i] * values[j] + self.noise[1];
                if j <= i {
                    logs += spread[i * d + j].ln();
                }
            }
        }
        for (w, spread) in residual.iter().zip(spread.iter()) {
            quadratic += w * w / spread;
        }
        let dd = d * d;
        for k in 0..d {
            for i in 0..d {
                for j in 0..d {
                    let mut cross = k3 * alpha[i] * alpha[j] * alpha[k];
                    if i == k {
                        cross += k1 * values[k] * alpha[j];
                    }
                    if j == k {
                        cross += k1 * values[k] * alpha[i];
                    }
                    x[k * dd + i * d + j] = cross;
                    u[k * dd + i * d + j] = cross / spread[i * d + j];
                }
            }
        }
        for k in 0..d {
            for l in 0..=k {
                let own = if k == l { values[k] + self.noise[0] } else { 0.0 };
                schur[k * d + l] =
                    own - k1 * k1 * alpha[k] * alpha[l] - dot(&x[k * dd..(k + 1) * dd], &u[l * dd..(l + 1) * dd]);
            }
            rho1[k] = r1[k] - dot(&u[k * dd..(k + 1) * dd], residual);
        }
        let half_log = cholesky(schur, d);
        solve_lower(schur, rho1, d);
        quadratic += dot(rho1, rho1);
        let value = self.constant - 0.5 * n * quadratic - 0.5 * logs - half_log;
        let Some(gradient) = gradient else { return value };
        solve_upper(schur, rho1, d);
        inverse_of_cholesky(schur, inverse, d);
        for (index, rho) in rho.iter_mut().enumerate() {
            let joined: f64 = (0..d).map(|k| rho1[k] * u[k * dd + index]).sum();
            *rho = residual[index] / spread[index] - joined;
        }
        // The adjoints of the cross-covariances.
        for k in 0..d {
            for index in 0..dd {
                let joined: f64 = (0..d).map(|l| inverse[k * d + l] * u[l * dd + index]).sum();
                by_x[k * dd + index] = n * rho1[k] * rho[index] + joined;
            }
        }
        // U <- L^-1 U, so that the sum over inverse[k, l] U_k . U_l is one over squares.
        for k in 0..d {
            for l in 0..k {
                let factor = schur[k * d + l];
                let (before, after) = u.split_at_mut(k * dd);
                for (x, y) in after[..dd].iter_mut().zip(&before[l * dd..(l + 1) * dd]) {
                    *x -= factor * y;
                }
            }
            let pivot = schur[k * d + k];
            u[k * dd..(k + 1) * dd].iter_mut().for_each(|x| *x /= pivot);
        }
        let (mut by_k1, mut by_k3) = (n * dot(rho1, alpha), 0.0);
        for i in 0..d {
            let edge = |i: usize, j: usize| 0.5 * (n * rho1[i] * rho1[j] - inverse[i * d + j]);
            for j in 0..d {
                let through = |m: &[f64]| (0..d).map(|k| m[i * d + k] * values[k] * m[k * d + j]).sum::<f64>();
                let squares: f64 = u.chunks_exact(dd).map(through).sum();
                by_s[i * d + j] = n * rho[i * d + j] + edge(i, j) + 2.0 * n * through(rho) - 2.0 * squares;
            }
            let slope: f64 = (0..d).map(|k| 2.0 * values[k] / spread[i * d + k]).sum();
            by_s[i * d + i] -= 0.5 * (slope + 2.0 * values[i] / spread[i * d + i]);
            let edged: f64 = (0..d).map(|j| edge(i, j) * alpha[j]).sum();
            by_a[i] = n * k1 * rho1[i] - 2.0 * k1 * k1 * edged;
            by_k1 -= 2.0 * k1 * alpha[i] * edged;
        }
        for k in 0..d {
            let here = &by_x[k * dd..(k + 1) * dd];
            for i in 0..d {
                line[i] = dot(&here[i * d..(i + 1) * d], alpha);
            }
            let whole = dot(line, alpha);
            by_k1 += 2.0 * values[k] * line[k];
            by_k3 += alpha[k] * whole;
            by_a[k] += k3 * whole;
            for i in 0..d {
                by_s[i * d + k] += k1 * line[i];
                by_s[k * d + i] += k1 * line[i];
                by_a[i] += 2.0 * k1 * values[k] * here[k * d + i] + 2.0 * k3 * alpha[k] * line[i];
            }
        }
        let by_v = 0.5 * (by_k1 * k3 + by_k3 * k5);
        // Back from the eigenbasis.
        multiply(q, by_s, product, d, d, d);
        multiply_by_transposed(product, q, other, d, d, d);
        for i in 0..d {
            turned[i] = dot(&q[i * d..(i + 1) * d], by_a);
        }
        let (by_theta, out) = gradient.split_at_mut(d);
        for i in 0..d {
            by_theta[i] = dot(&s[i * d..(i + 1) * d], turned) + 2.0 * by_v * a[i];
            for j in 0..d {
                out[i * d + j] =
                    other[i * d + j] + 0.5 * (turned[i] * theta[j] + theta[i] * turned[j]) + by_v * theta[i] * theta[j];
            }
        }
        value
    }

    fn parameters(&self) -> usize {
        self.d + self.d * self.d
    }
}
