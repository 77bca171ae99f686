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
use crate::numeric::elementary::{ROUND, exp, ln};
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
/// `E s^2k / (2k)!` of the logistic law, k = 0 to 4.
const CORRECTIONS: [f64; 5] = {
    let square = PI * PI;
    let fourth = square * square;
    [1.0, square / 6.0, 7.0 * fourth / 360.0, 31.0 * fourth * square / 15_120.0, 127.0 * fourth * fourth / 604_800.0]
};
/// Users of a block, whose columns stay in the nearest cache with up to sixty coordinates. Not tuned.
const BLOCK: usize = 64;

/// Nodes and weights of Gauss and Hermite for the standard normal law, for variances too small for the table's grid: they err
/// by 3e-15 of the slope at a deviation of [`NARROW`].
pub static HERMITE: LazyLock<[[f64; 2]; 16]> = LazyLock::new(|| gauss_rule(|k| (k as f64).sqrt()));
/// The deviation of m up to which the rule is Gauss's, not the trapezoid.
const NARROW: f64 = 0.4;

/// Sigmoid and its first two derivatives, each to full relative accuracy.
#[inline(always)]
fn sigmoids(x: f64) -> [f64; 3] {
    let e = exp(-x.abs());
    let large = 1.0 / (1.0 + e);
    let small = e * large;
    let (p, q) = if x >= 0.0 { (large, small) } else { (small, large) };
    [p, p * q, p * q * (q - p)]
}

/// How far the nodes of a rule go: in the tails at -m what is integrated is largest some deviations off the centre.
fn reach(m: f64, root: f64) -> f64 {
    REACH + root.min(m.abs() / root)
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
    if root <= NARROW {
        HERMITE.iter().for_each(|&[t, weight]| add(m + root * t, weight));
    } else {
        let step = (0.5f64).min(0.5 / root);
        let points = (reach(m, root) / step) as i64;
        for k in -points..=points {
            let t = k as f64 * step;
            add(m + root * t, step * exp(-0.5 * t * t) / TAU.sqrt());
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
        let [_, a, b, c, _] = CORRECTIONS;
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
    pieces: Vec<[f64; 6]>,
    ends: [[f64; 3]; 2],
    means: Vec<f64>,
    sigmoids: [Vec<f64>; 3],
    values: [Vec<f64>; 3],
}

impl LikelihoodTable {
    fn fill(&mut self, most: f64, v: f64, keep: f64) {
        let root = v.sqrt();
        // Beyond, the logarithm is taken for a line. It is one where the sigmoid is exponential under all of the law.
        let normal = if root > WIDE { 8.0 * root } else { (v + 8.0 * root).min(36.0 * root) };
        let most = most.min(60.0 + normal);
        // A wide law is as smooth as its deviation is large, and has its own grid.
        self.step = if root > WIDE { root / 64.0 } else { STEP };
        let step = self.step;
        let half = (most / step).ceil() as usize + 1;
        self.low = -(half as f64) * step;
        self.values.iter_mut().for_each(|sums| {
            sums.clear();
            sums.resize(2 * half + 1, 0.0);
        });
        // E(-m) = 1 - E(m): of the means up to zero, where E is small and exact to its last digits.
        let [e, e1, e2] = self.values.each_mut().map(|sums| &mut sums[..=half]);
        if root > WIDE {
            for k in 0..=half {
                [e[k], e1[k], e2[k]] = logistic_normal(self.low + k as f64 * step, v);
            }
        } else if root <= NARROW {
            self.means.clear();
            self.means.extend((0..=half).map(|k| self.low + k as f64 * step));
            let nodes: &[[f64; 2]] = if root == 0.0 { &[[0.0, 1.0]] } else { &*HERMITE };
            at_level!(level(), {
                for &[t, weight] in nodes {
                    add_sigmoids(&self.means, root * t, weight, e, e1, e2);
                }
            });
        } else {
            // Every so many points of the table's grid carry a node of the rule, at most half a deviation and half a unit apart.
            let skip = ((0.5 * root.min(1.0)) / STEP).floor().max(1.0) as usize;
            let taps = (reach(most, root) * root / (skip as f64 * STEP)) as usize;
            let margin = taps * skip;
            let points = half + 2 * margin + 1;
            let first = self.low - margin as f64 * STEP;
            self.means.clear();
            self.means.extend((0..points).map(|k| first + k as f64 * STEP));
            self.sigmoids.iter_mut().for_each(|values| {
                values.clear();
                values.resize(points, 0.0);
            });
            let spacing = skip as f64 * STEP / root;
            let [at, at1, at2] = &mut self.sigmoids;
            at_level!(level(), {
                add_sigmoids(&self.means, 0.0, 1.0, at, at1, at2);
                for k in 0..=2 * taps {
                    let t = (k as f64 - taps as f64) * spacing;
                    let weight = spacing * exp(-0.5 * t * t) / TAU.sqrt();
                    add_multiple(e, weight, &at[k * skip..]);
                    add_multiple(e1, weight, &at1[k * skip..]);
                    add_multiple(e2, weight, &at2[k * skip..]);
                }
            });
        }
        let [e, e1, e2] = &mut self.values;
        at_level!(level(), {
            mirror(e, half, |x| 1.0 - x);
            mirror(e1, half, |x| x);
            mirror(e2, half, |x| -x);
            logarithms(keep, e, e1, e2);
            self.pieces.resize(2 * half, [0.0; 6]);
            quintics(step, e, e1, e2, &mut self.pieces);
        });
        self.ends = [0, 2 * half].map(|k| [e[k], e1[k], e2[k]]);
    }

    /// Writes the values of a block, the derivatives in m and those in v.
    #[inline(always)]
    fn at(&self, means: &[f64; BLOCK], block: &mut Block) {
        let Block { cells, rests, columns, values, slopes, spreads } = block;
        let per_step = 1.0 / self.step;
        let count = self.pieces.len() as f64;
        let mut beyond = false;
        for ((mean, cell), rest) in means.iter().zip(&mut *cells).zip(&mut *rests) {
            let place = (mean - self.low) * per_step;
            let inside = place.max(0.5).min(count - 0.5);
            beyond |= inside != place;
            // At an end of a cell either of the two will do.
            let shifted = (inside - 0.5) + ROUND;
            *cell = shifted.to_bits();
            *rest = place - (shifted - ROUND);
        }
        for (user, &cell) in cells.iter().enumerate() {
            for (column, coefficient) in columns.iter_mut().zip(self.pieces[cell as u32 as usize]) {
                column[user] = coefficient;
            }
        }
        let [a, b, c, d, e, f] = columns;
        for k in 0..BLOCK {
            // Horner's rule for the value, the derivative and half of the second, at once.
            let s = rests[k];
            let (mut value, mut first, mut half) = (f[k] * s + e[k], f[k], 0.0);
            for next in [&*d, &*c, &*b, &*a] {
                half = half * s + first;
                first = first * s + value;
                value = value * s + next[k];
            }
            let first = first * per_step;
            let second = half * (2.0 * per_step * per_step);
            (values[k], slopes[k], spreads[k]) = (value, first, 0.5 * (second + first * first));
        }
        if beyond {
            self.lengthen(means, block);
        }
    }

    /// The same of the means that lie beyond the table: straight lines from its ends.
    #[cold]
    fn lengthen(&self, means: &[f64; BLOCK], block: &mut Block) {
        for (user, mean) in means.iter().enumerate() {
            if !(mean.abs() <= -self.low) {
                let (end, edge) = if *mean < 0.0 { (self.ends[0], self.low) } else { (self.ends[1], -self.low) };
                block.values[user] = end[0] + end[1] * (mean - edge);
                (block.slopes[user], block.spreads[user]) = (end[1], 0.5 * (end[2] + end[1] * end[1]));
            }
        }
    }
}

/// What is computed of a block of users: the cells of their means, the places there, the coefficients of their pieces.
#[derive(Clone, Debug)]
struct Block {
    cells: [u64; BLOCK],
    rests: [f64; BLOCK],
    columns: [[f64; BLOCK]; 6],
    values: [f64; BLOCK],
    slopes: [f64; BLOCK],
    spreads: [f64; BLOCK],
}

impl Block {
    const EMPTY: Self = Self {
        cells: [0; BLOCK],
        rests: [0.0; BLOCK],
        columns: [[0.0; BLOCK]; 6],
        values: [0.0; BLOCK],
        slopes: [0.0; BLOCK],
        spreads: [0.0; BLOCK],
    };
}

/// Adds the sigmoids of shifted numbers, and their derivatives, times a weight.
#[inline(always)]
fn add_sigmoids(means: &[f64], shift: f64, weight: f64, e: &mut [f64], e1: &mut [f64], e2: &mut [f64]) {
    for (((mean, e), e1), e2) in means.iter().zip(e).zip(e1).zip(e2) {
        let [value, first, second] = sigmoids(mean + shift);
        *e += weight * value;
        *e1 += weight * first;
        *e2 += weight * second;
    }
}

/// Fills what comes after a place by what lies before it.
#[inline(always)]
fn mirror(values: &mut [f64], half: usize, image: impl Fn(f64) -> f64) {
    let (before, after) = values.split_at_mut(half + 1);
    for (to, from) in after.iter_mut().zip(before[..half].iter().rev()) {
        *to = image(*from);
    }
}

/// Replaces E and its derivatives by those of `ln(1 - p + (2p - 1) E)`.
#[inline(always)]
fn logarithms(keep: f64, e: &mut [f64], e1: &mut [f64], e2: &mut [f64]) {
    let (rest, slope) = (1.0 - keep, 2.0 * keep - 1.0);
    for ((e, e1), e2) in e.iter_mut().zip(e1).zip(e2) {
        let f = rest + slope * *e;
        let first = slope * *e1 / f;
        (*e, *e1, *e2) = (ln(f), first, slope * *e2 / f - first * first);
    }
}

/// The quintics in s = (m - left)/h with both ends' value, slope and curvature.
#[inline(always)]
fn quintics(h: f64, values: &[f64], slopes: &[f64], curvatures: &[f64], pieces: &mut [[f64; 6]]) {
    for (k, piece) in pieces.iter_mut().enumerate() {
        let (f0, f1) = (values[k], values[k + 1]);
        let (d0, d1) = (slopes[k] * h, slopes[k + 1] * h);
        let (c0, c1) = (curvatures[k] * h * h, curvatures[k + 1] * h * h);
        let (a, b, c) = (f1 - f0 - d0 - 0.5 * c0, d1 - d0 - c0, c1 - c0);
        *piece = [f0, d0, 0.5 * c0, 10.0 * a - 4.0 * b + 0.5 * c, 7.0 * b - 15.0 * a - c, 6.0 * a - 3.0 * b + 0.5 * c];
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
    block: Box<Block>,
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
            block: Box::new(Block::EMPTY),
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
        let (mut left, block) = (self.users as usize, &mut self.block);
        for (means, columns) in self.means.as_chunks::<BLOCK>().0.iter().zip(self.signed.chunks_exact(BLOCK * d)) {
            at_level!(level(), {
                self.table.at(means, block);
                for values in [&mut block.values, &mut block.slopes, &mut block.spreads] {
                    values[left.min(BLOCK)..].fill(0.0);
                }
                sum += total(block.values.iter().copied());
                by_v += total(block.spreads.iter().copied());
                for (sum, column) in by_b.iter_mut().zip(columns.chunks_exact(BLOCK)) {
                    *sum += total(column.iter().zip(&block.slopes).map(|(z, slope)| z * slope));
                }
            });
            left -= left.min(BLOCK);
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

/// The sum of a block, in eight lanes.
#[inline(always)]
fn total(mut numbers: impl Iterator<Item = f64>) -> f64 {
    let mut sums = [0.0; 8];
    for _ in 0..BLOCK / 8 {
        sums.iter_mut().for_each(|sum| *sum += numbers.next().unwrap_or_default());
    }
    ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]))
}

/// `E g^(n)(t)` for n = 1, 3, 5, g = tanh(t/2), t ~ N(0, v).
///
/// Of a large v, which a trajectory may pass through, twice the derivatives of [`expanded`] at 0, where those of the normal law
/// are Hermite numbers: 7e-15 of k5 is left out.
pub fn odd_slopes(v: f64) -> [f64; 3] {
    let root = v.sqrt();
    if root > WIDE {
        return [1, 3, 5].map(|order| {
            let mut term = 2.0 / TAU.sqrt() / root;
            (1..order).step_by(2).for_each(|odd| term *= -f64::from(odd) / v);
            CORRECTIONS.iter().zip((order..).step_by(2)).fold(0.0, |sum, (correction, odd)| {
                let part = correction * term;
                term *= -f64::from(odd) / v;
                sum + part
            })
        });
    }
    let step = if root <= 1.0 { 0.4 } else { 0.4 / root };
    let points = (REACH / step) as i64;
    let mut sums = [0.0; 3];
    for k in -points..=points {
        let t = k as f64 * step;
        let weight = step * (-0.5 * t * t).exp() / TAU.sqrt();
        let [p, slope, _] = sigmoids(root * t);
        let (g, w) = (2.0 * p - 1.0, 4.0 * slope);
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
