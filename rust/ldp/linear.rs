//! Linear regression from noisy records or noisy second moments: x ~ N(0, S), y | x ~ N(theta.x, sigma^2).
//!
//! The covariance of (x, y) is C = B S B' + sigma^2 e e', B = [I; theta'], e the last unit vector. Noisy records have the
//! covariance K = C + noise, for which the scatter matrix W is sufficient:
//!   ln L = -N/2 ln det(2 pi K) - tr(K^-1 W)/2,   dL = tr(G dK),  G = (K^-1 W K^-1 - N K^-1)/2.
//! The sum Z of noisy svec(z z') is nearly normal with mean N svec C and covariance N (2 C (x) C + s^2 I) (Isserlis), which is
//! diagonal in the eigenbasis C = Q diag(l) Q': with W = Q'(smat(Z)/N - C)Q and D_ij = 2 l_i l_j + s^2,
//!   ln L = -N/2 sum_ij W_ij^2/D_ij - sum_{i<=j} ln D_ij / 2 - p(p+1)/4 ln(2 pi N),
//! in O(p^3). Where the square of y has other noise, a rank-one term more. From G for C follow B'GB for S, 2 S B'Ge for
//! theta, 2 sigma G_pp for sigma. Natural parameters: theta, sigma, S row by row.
//!
//! Source: T. Kulkarni, J. Jälkö, S. Kaski, A. Honkela, Locally differentially private Bayesian inference, equation 41, of which
//! the scatter matrix is sufficient; section 13.1 for summed moments, whose covariance is N times that of one user.

use super::Likelihood;
use super::matrix::{cholesky, dot, eigen, inverse_of_cholesky, multiply, multiply_by_transposed, multiply_transposed};
use crate::{Error, Result};
use std::f64::consts::TAU;

/// Writes C from theta, sigma and S.
fn joint(d: usize, theta: &[f64], sigma: f64, s: &[f64], out: &mut [f64]) {
    let p = d + 1;
    for i in 0..d {
        out[i * p..i * p + d].copy_from_slice(&s[i * d..(i + 1) * d]);
        let cross = dot(&s[i * d..(i + 1) * d], theta);
        out[i * p + d] = cross;
        out[d * p + i] = cross;
    }
    out[p * p - 1] = (0..d).map(|i| theta[i] * out[d * p + i]).sum::<f64>() + sigma * sigma;
}

/// Carries a symmetric G for C to theta, sigma and S.
fn carry(d: usize, theta: &[f64], sigma: f64, s: &[f64], g: &[f64], gradient: &mut [f64]) {
    let p = d + 1;
    let last = g[p * p - 1];
    let (scalars, by_s) = gradient.split_at_mut(p);
    for i in 0..d {
        for j in 0..d {
            by_s[i * d + j] =
                g[i * p + j] + theta[i] * g[d * p + j] + g[i * p + d] * theta[j] + last * theta[i] * theta[j];
        }
    }
    for i in 0..d {
        scalars[i] = 2.0 * (0..d).map(|j| s[i * d + j] * (g[d * p + j] + theta[j] * last)).sum::<f64>();
    }
    scalars[d] = 2.0 * sigma * last;
}

/// The log-density of normal records of mean zero by their scatter matrix, and its derivative by their covariance.
#[derive(Clone, Debug)]
pub(super) struct Scattered {
    p: usize,
    users: f64,
    /// The covariance on the way in, its Cholesky factor after.
    pub(super) k: Vec<f64>,
    pub(super) inverse: Vec<f64>,
    product: Vec<f64>,
    /// G of `tr(G dK)`.
    pub(super) g: Vec<f64>,
}

impl Scattered {
    pub(super) fn new(p: usize, users: f64) -> Self {
        let [k, inverse, product, g] = std::array::from_fn(|_| vec![0.0; p * p]);
        Self { p, users, k, inverse, product, g }
    }

    /// The value at the covariance `k` and variances beside it; `g` where it is wanted.
    pub(super) fn value(&mut self, noise: &[f64], scatter: &[f64], wanted: bool) -> f64 {
        let p = self.p;
        for i in 0..p {
            self.k[i * p + i] += noise[i];
        }
        let half_log = cholesky(&mut self.k, p);
        inverse_of_cholesky(&self.k, &mut self.inverse, p);
        if wanted {
            multiply(&self.inverse, scatter, &mut self.product, p, p, p);
            multiply(&self.product, &self.inverse, &mut self.g, p, p, p);
            for (g, inverse) in self.g.iter_mut().zip(&self.inverse) {
                *g = 0.5 * (*g - self.users * inverse);
            }
        }
        -self.users * (half_log + 0.5 * p as f64 * TAU.ln()) - 0.5 * dot(&self.inverse, scatter)
    }
}

/// Records released with normal noise, or without.
#[derive(Clone, Debug)]
pub struct LinearRecords {
    scatter: Vec<f64>,
    noise: Vec<f64>,
    law: Scattered,
}

impl LinearRecords {
    /// From the scatter matrix of the released (x, y) and the variances of the noise on each coordinate.
    ///
    /// # Errors
    /// [`Error::Shape`].
    pub fn new(scatter: Vec<f64>, users: f64, noise: Vec<f64>) -> Result<Self> {
        let p = noise.len();
        Error::require_shape("scatter", [p, p], [scatter.len()])?;
        Ok(Self { scatter, noise, law: Scattered::new(p, users) })
    }
}

impl Likelihood for LinearRecords {
    fn value(&mut self, natural: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let p = self.noise.len();
        let d = p - 1;
        let (theta, sigma, s) = (&natural[..d], natural[d], &natural[p..]);
        joint(d, theta, sigma, s, &mut self.law.k);
        let value = self.law.value(&self.noise, &self.scatter, gradient.is_some());
        if let Some(gradient) = gradient {
            carry(d, theta, sigma, s, &self.law.g, gradient);
        }
        value
    }

    fn parameters(&self) -> usize {
        let d = self.noise.len() - 1;
        d + 1 + d * d
    }
}

/// Sums of second moments released with normal noise.
#[derive(Clone, Debug)]
pub struct LinearSums {
    d: usize,
    users: f64,
    /// smat(Z)/N with y in units of `unit`.
    mean: Vec<f64>,
    noise: f64,
    /// How much more variance the square of y has.
    more: f64,
    unit: f64,
    constant: f64,
    scratch: [Vec<f64>; 9],
}

impl LinearSums {
    /// From smat of the sum with y in units of `sqrt(2 / first ratio)`, the variance of the noise on each coordinate, and
    /// the ratios of the variances of x x' to those of x y and y y.
    ///
    /// # Errors
    /// [`Error::Shape`]; [`Error::Domain`] without users.
    pub fn new(total: &[f64], p: usize, users: f64, noise: f64, ratios: (f64, f64)) -> Result<Self> {
        Error::require_shape("total", [p, p], [total.len()])?;
        Error::require(users >= 1.0, "n", users, "at least 1")?;
        let (first, second) = ratios;
        let stretch = first * first / (4.0 * second);
        let size = (p * (p + 1)) as f64 / 4.0;
        let constant = -size * (TAU * users).ln() + 0.5 * stretch.ln();
        let mean = total.iter().map(|z| z / users).collect();
        let scratch = std::array::from_fn(|_| vec![0.0; p * p]);
        let (more, unit) = (noise * (stretch - 1.0), (2.0 / first).sqrt());
        Ok(Self { d: p - 1, users, mean, noise, more, unit, constant, scratch })
    }
}

impl Likelihood for LinearSums {
    fn value(&mut self, natural: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let (d, p, n) = (self.d, self.d + 1, self.users);
        let [theta, c, q, w, x, y, product, g, vectors] = &mut self.scratch;
        for (scaled, &theta) in theta.iter_mut().zip(&natural[..d]) {
            *scaled = theta / self.unit;
        }
        let theta = &theta[..d];
        let (sigma, s) = (natural[d] / self.unit, &natural[p..]);
        joint(d, theta, sigma, s, c);
        q.copy_from_slice(c);
        let (values, off) = vectors.split_at_mut(p);
        eigen(q, values, off, p);
        let values = &*values;
        for (w, (m, c)) in w.iter_mut().zip(self.mean.iter().zip(c.iter())) {
            *w = m - c;
        }
        multiply_transposed(q, w, product, p, p, p);
        multiply(product, q, w, p, p, p);
        let (mut quadratic, mut logs) = (0.0, 1.0f64);
        let mut log_sum = 0.0;
        for i in 0..p {
            for j in 0..p {
                let spread = 2.0 * values[i] * values[j] + self.noise;
                x[i * p + j] = w[i * p + j] / spread;
                quadratic += w[i * p + j] * x[i * p + j];
                if j <= i {
                    logs *= spread;
                    if !(1e-200..1e200).contains(&logs) {
                        log_sum += logs.ln();
                        logs = 1.0;
                    }
                }
            }
        }
        log_sum += logs.ln();
        let mut value = self.constant - 0.5 * n * quadratic - 0.5 * log_sum;
        let last = &q[(p - 1) * p..];
        let more = self.more;
        let (mut t, mut h) = (0.0, 0.0);
        if more != 0.0 {
            for i in 0..p {
                for j in 0..p {
                    let e = last[i] * last[j];
                    y[i * p + j] = e / (2.0 * values[i] * values[j] + self.noise);
                    t += w[i * p + j] * y[i * p + j];
                    h += e * y[i * p + j];
                }
            }
            value += 0.5 * n * more * t * t / (1.0 + more * h) - 0.5 * (more * h).ln_1p();
        }
        let Some(gradient) = gradient else { return value };
        // In the eigenbasis: N (X + 2 X l X) - diag(g)/2, and the rank-one term's share.
        let a = t / (1.0 + more * h);
        let square = 2.0 * more * (n * more * a * a + 1.0 / (1.0 + more * h));
        let weigh = |from: &[f64], to: &mut [f64]| {
            for (to, from) in to.chunks_exact_mut(p).zip(from.chunks_exact(p)) {
                to.iter_mut().zip(from.iter().zip(values)).for_each(|(to, (x, value))| *to = x * value);
            }
        };
        weigh(x, w);
        multiply(w, x, product, p, p, p);
        for (sum, x) in product.iter_mut().zip(x.iter()) {
            *sum = n * (x + 2.0 * *sum);
        }
        if more != 0.0 {
            multiply(w, y, c, p, p, p);
            weigh(y, w);
            multiply(w, y, g, p, p, p);
            for i in 0..p {
                for j in 0..p {
                    let xy = c[i * p + j] + c[j * p + i];
                    product[i * p + j] += square * g[i * p + j] - n * more * a * (y[i * p + j] + 2.0 * xy);
                }
            }
        }
        for i in 0..p {
            let spread = |k: usize| 2.0 * values[i] * values[k] + self.noise;
            let slope: f64 = (0..p).map(|k| 2.0 * values[k] / spread(k)).sum();
            product[i * p + i] -= 0.5 * (slope + 2.0 * values[i] / spread(i));
        }
        multiply(q, product, w, p, p, p);
        multiply_by_transposed(w, q, g, p, p, p);
        carry(d, theta, sigma, s, g, gradient);
        for slope in &mut gradient[..p] {
            *slope /= self.unit;
        }
        value
    }

    fn parameters(&self) -> usize {
        self.d + 1 + self.d * self.d
    }
}
