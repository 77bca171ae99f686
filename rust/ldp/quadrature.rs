//! Posteriors of one or two parameters, computed.
//!
//! The mode is found and whitened by the curvature, u = mode + L sinh(v/2)/(1/2) with L lower triangular: the sine spreads
//! points over tails that are only exponential. A box in v is widened until the density at its edges is below exp(-30) of
//! the mode's; there the trapezoid rule converges geometrically, for the density
//! and its derivatives vanish at the edges. It gets a third more points per axis until the moments of two rules agree to
//! 1e-6 of their standard deviations; nine digits take ten times the points where a small sigma lets single users be seen,
//! for then the density has a kink at each of them. What the grid holds is a
//! trigonometric polynomial as exact as the rule, p(v) = sum c_lm exp(i (w_l v_1 + w_m v_2)), whose integrals are known:
//! distribution functions, quantiles and independent draws by inversion come from it.
//!
//! Source: L. Trefethen, J. Weideman (2014), The exponentially convergent trapezoidal rule, SIAM Review 56, theorem 5.1.

use super::{Posterior, PriorBlock, Support};
use crate::monitor::Progress;
use crate::numeric::dispatch::{at_level, level};
use crate::stream::Stream;
use crate::{Error, Result};
use std::f64::consts::PI;

/// The log density at the edges of the box, below that at the mode, and so of its products with the squares of the values,
/// below their largest: e^-30 is 1e-13, far below [`TOLERANCE`].
const DEPTH: f64 = 30.0;
/// How soon the points spread out. Not tuned: with more, heavy tails take fewer points and normal ones more.
const SPREAD: f64 = 0.5;
/// What the next finer grid may change in the moments, in standard deviations, where nothing less is asked for.
pub const TOLERANCE: f64 = 1e-6;
/// The points of the finest grid of one and of two coordinates, 2 MiB: a posterior that needs more is refused. Not tuned. The
/// transform takes the product of all points and the longest side: a second here.
const FINEST: [usize; 2] = [1 << 14, 1 << 18];
/// The purpose of the words of draws: "ldp", 1.
const PURPOSE: u64 = 0x6c64_7001;

/// A computed posterior.
#[derive(Clone, Debug)]
pub struct Computed {
    /// One or two.
    pub dimension: usize,
    mode: Vec<f64>,
    /// Of each coordinate, where all parameters are scalars.
    supports: Vec<Support>,
    /// `[[l11, 0], [l21, l22]]`; l22 = 1 with one coordinate.
    factor: [[f64; 2]; 2],
    low: [f64; 2],
    width: [f64; 2],
    /// Points of the grid, per axis.
    pub size: [usize; 2],
    /// The density at the points, largest 1.
    grid: Vec<f64>,
    /// Coefficients by first and non-negative second frequency.
    coefficients: ChebyshevSeries,
    /// ln of the integral of the density over u: the evidence where priors are normalized.
    pub log_evidence: f64,
    /// Means and variances of the natural values.
    pub mean: Vec<f64>,
    /// Standard deviations of the natural values.
    pub sd: Vec<f64>,
    /// What the last refinement changed in the moments, relative to the standard deviations.
    pub change: f64,
    /// Evaluations of the density.
    pub evaluations: u64,
}

/// Fourier coefficients, real and imaginary parts apart.
#[derive(Clone, Debug, Default)]
struct ChebyshevSeries {
    re: Vec<f64>,
    im: Vec<f64>,
}

impl ChebyshevSeries {
    fn zeros(len: usize) -> Self {
        Self { re: vec![0.0; len], im: vec![0.0; len] }
    }

    /// Density and distribution function, per period of one, of a real series at the share `t` of its period.
    fn at(&self, t: f64) -> (f64, f64) {
        let angle = 2.0 * PI * t;
        let step = [angle.cos(), angle.sin()];
        let mut turn = step;
        let (mut density, mut mass) = (0.5 * self.re[0], 0.0);
        for (l, (re, im)) in self.re.iter().zip(&self.im).enumerate().skip(1) {
            density += re * turn[0] - im * turn[1];
            // The integral from 0 of 2 Re c e^(i w t) is 2 Re c (e^(i w t) - 1)/(i w).
            mass += (re * turn[1] + im * (turn[0] - 1.0)) / l as f64;
            turn = [turn[0] * step[0] - turn[1] * step[1], turn[0] * step[1] + turn[1] * step[0]];
        }
        (2.0 * density, self.re[0] * t + mass / PI)
    }

    /// The share `t` where the distribution function, of total mass `re[0]`, has the share `p`; `t` is a first guess.
    fn invert(&self, p: f64, mut t: f64) -> f64 {
        let target = p * self.re[0];
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..80 {
            let (density, mass) = self.at(t);
            if mass < target {
                low = t;
            } else {
                high = t;
            }
            let newton = t - (mass - target) / density;
            let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
            let moved = (next - t).abs();
            t = next;
            // Newton's steps square the error: this one's was the last to be seen.
            if moved < 1e-7 {
                break;
            }
        }
        t
    }
}

/// Where a distribution function on a grid of cells, given by its increments, has the share `p` of its sum.
fn place(sums: &[f64], p: f64) -> f64 {
    let cells = sums.len() - 1;
    let target = p * sums[cells];
    let cell = sums.partition_point(|&sum| sum <= target).clamp(1, cells) - 1;
    let more = sums[cell + 1] - sums[cell];
    let part = if more > 0.0 { (target - sums[cell]) / more } else { 0.5 };
    ((cell as f64 + part) / cells as f64).clamp(1e-9, 1.0 - 1e-9)
}

struct QuadratureMoments {
    log_mass: f64,
    mean: Vec<f64>,
    sd: Vec<f64>,
    grid: Vec<f64>,
}

/// A mode: the place, the log density, the Cholesky factor of the inverse curvature, and the evaluations it took.
type Mode = (Vec<f64>, f64, [[f64; 2]; 2], u64);

/// Finds a mode by damped Newton steps, with the curvature there as the Cholesky factor of its inverse.
fn mode(posterior: &mut Posterior, progress: &Progress) -> Result<Mode> {
    let d = posterior.dimension();
    let mut u = posterior.start();
    let mut gradient = vec![0.0; d];
    let mut value = posterior.log_density(&u, Some(&mut gradient));
    if !value.is_finite() {
        return Err(Error::NoConvergence { what: "the search for a mode", iterations: 0, residual: f64::NAN });
    }
    let mut evaluations = 1;
    let mut hessian = [[1.0, 0.0], [0.0, 1.0]];
    for _ in 0..200 {
        progress.check()?;
        let (mut plus, mut minus) = (vec![0.0; d], vec![0.0; d]);
        for i in 0..d {
            let step = 1e-4 * (1.0 + u[i].abs() * 1e-2);
            let mut at = u.clone();
            at[i] = u[i] + step;
            posterior.log_density(&at, Some(&mut plus));
            at[i] = u[i] - step;
            posterior.log_density(&at, Some(&mut minus));
            evaluations += 2;
            for j in 0..d {
                hessian[i][j] = (minus[j] - plus[j]) / (2.0 * step);
            }
        }
        if d == 2 {
            let cross = 0.5 * (hessian[0][1] + hessian[1][0]);
            (hessian[0][1], hessian[1][0]) = (cross, cross);
        }
        positive(&mut hessian, d);
        let step = solve(&hessian, &gradient);
        let gain: f64 = step.iter().zip(&gradient).map(|(s, g)| s * g).sum();
        let longest = step.iter().take(d).fold(0.0f64, |most, s| most.max(s.abs()));
        if gain < 1e-12 {
            break;
        }
        let mut size = (2.0 / longest).min(1.0);
        loop {
            let at: Vec<f64> = u.iter().zip(&step).map(|(u, s)| u + size * s).collect();
            let mut slope = vec![0.0; d];
            let next = posterior.log_density(&at, Some(&mut slope));
            evaluations += 1;
            if next >= value + 1e-4 * size * gain - 1e-9 * value.abs().max(1.0) * f64::from(gain < 1e-6) {
                (u, value, gradient) = (at, next, slope);
                break;
            }
            size *= 0.4;
            if size < 1e-10 {
                break;
            }
        }
        if size < 1e-10 {
            break;
        }
    }
    // The inverse of the Hessian is L L'.
    let inverse = if d == 1 {
        [[1.0 / hessian[0][0], 0.0], [0.0, 1.0]]
    } else {
        let determinant = hessian[0][0] * hessian[1][1] - hessian[0][1] * hessian[0][1];
        let cross = -hessian[0][1] / determinant;
        [[hessian[1][1] / determinant, cross], [cross, hessian[0][0] / determinant]]
    };
    let first = inverse[0][0].sqrt();
    let below = inverse[1][0] / first;
    let factor = [[first, 0.0], [below, (inverse[1][1] - below * below).sqrt()]];
    Ok((u, value, factor, evaluations))
}

/// Makes a symmetric matrix safely positive, by its eigenvalues' sizes.
fn positive(h: &mut [[f64; 2]; 2], d: usize) {
    let floor = |x: f64| if x.is_finite() { x.abs().max(1e-3) } else { 1.0 };
    if d == 1 {
        h[0][0] = floor(h[0][0]);
        h[1] = [0.0, 1.0];
        h[0][1] = 0.0;
        return;
    }
    let angle = 0.5 * (2.0 * h[0][1]).atan2(h[0][0] - h[1][1]);
    let (s, c) = angle.sin_cos();
    let first = floor(c * c * h[0][0] + 2.0 * s * c * h[0][1] + s * s * h[1][1]);
    let second = floor(s * s * h[0][0] - 2.0 * s * c * h[0][1] + c * c * h[1][1]);
    h[0][0] = c * c * first + s * s * second;
    h[1][1] = s * s * first + c * c * second;
    h[0][1] = s * c * (first - second);
    h[1][0] = h[0][1];
}

fn solve(h: &[[f64; 2]; 2], g: &[f64]) -> Vec<f64> {
    if g.len() == 1 {
        return vec![g[0] / h[0][0]];
    }
    let determinant = h[0][0] * h[1][1] - h[0][1] * h[1][0];
    vec![(h[1][1] * g[0] - h[0][1] * g[1]) / determinant, (h[0][0] * g[1] - h[1][0] * g[0]) / determinant]
}

fn spread(v: f64) -> f64 {
    (SPREAD * v).sinh() / SPREAD
}

fn unspread(x: f64) -> f64 {
    (SPREAD * x).asinh() / SPREAD
}

fn support(block: &PriorBlock) -> Option<Support> {
    match block {
        PriorBlock::Scalar { support, .. } => Some(*support),
        _ => None,
    }
}

impl Computed {
    /// Computes the posterior until a finer grid changes the moments by less than `tolerance` standard deviations; of one
    /// coordinate, whose points cost little, by a thousandth of that, or as little as roundings let.
    ///
    /// # Errors
    /// [`Error::Domain`] for more than two coordinates; [`Error::NoConvergence`] where no mode is found or the grid would
    /// be too fine; [`Error::Interrupted`].
    pub fn new(posterior: &mut Posterior, tolerance: f64, progress: &Progress) -> Result<Self> {
        let dimension = posterior.dimension();
        let requirement = "\"nuts\" or \"auto\" for more than two parameters";
        Error::require((1..=2).contains(&dimension), "inference", "\"quadrature\"", requirement)?;
        let (mode, _, factor, evaluations) = mode(posterior, progress)?;
        let size = if dimension == 1 { [1, 1] } else { [2, 2] };
        let mut this = Self {
            dimension,
            mode,
            supports: posterior.blocks().iter().filter_map(support).collect(),
            factor,
            low: [-4.0, if dimension == 2 { -4.0 } else { 0.0 }],
            width: [8.0, if dimension == 2 { 8.0 } else { 1.0 }],
            size,
            grid: Vec::new(),
            coefficients: ChebyshevSeries::default(),
            log_evidence: f64::NAN,
            mean: Vec::new(),
            sd: Vec::new(),
            change: f64::INFINITY,
            evaluations,
        };
        this.widen(posterior, progress)?;
        for axis in 0..dimension {
            // A step of about half a standard deviation to begin with, a whole one where few digits are asked for.
            let step = if tolerance < 1e-5 { 0.6 } else { 1.0 };
            this.size[axis] = (this.width[axis] / step).ceil() as usize;
        }
        let mut last = this.integrate(posterior, progress)?;
        loop {
            for size in &mut this.size[..dimension] {
                *size = (4 * *size).div_ceil(3);
            }
            if this.size[0] * this.size[1] > FINEST[dimension - 1] {
                let iterations = this.size[0] as u64;
                return Err(Error::NoConvergence { what: "the quadrature", iterations, residual: this.change });
            }
            let next = this.integrate(posterior, progress)?;
            let before = this.change;
            this.change = (next.log_mass - last.log_mass).abs();
            for i in 0..next.mean.len() {
                let sd = next.sd[i];
                this.change = this.change.max((next.mean[i] - last.mean[i]).abs() / sd);
                this.change = this.change.max((sd - last.sd[i]).abs() / sd);
            }
            last = next;
            let wanted = if dimension == 1 && this.change < before { 1e-3 * tolerance } else { tolerance };
            if this.change < wanted {
                break;
            }
        }
        this.log_evidence = last.log_mass;
        (this.mean, this.sd, this.grid) = (last.mean, last.sd, last.grid);
        this.transform(progress)?;
        Ok(this)
    }

    /// The coordinates at a point of the box, and the logarithm of the volume's stretch there.
    fn u_at(&self, v: [f64; 2], u: &mut [f64]) -> f64 {
        let first = spread(v[0]);
        u[0] = self.mode[0] + self.factor[0][0] * first;
        let mut stretch = (SPREAD * v[0]).cosh();
        if self.dimension == 2 {
            u[1] = self.mode[1] + self.factor[1][0] * first + self.factor[1][1] * spread(v[1]);
            stretch *= (SPREAD * v[1]).cosh();
        }
        stretch.ln()
    }

    /// Moves the four edges until all that is beyond them is negligible.
    fn widen(&mut self, posterior: &mut Posterior, progress: &Progress) -> Result<()> {
        let mut u = vec![0.0; self.dimension];
        // The density, and its products with the squares of natural values: heavy tails have their moments far out. Real
        // parameters have none: their priors are normal.
        let heavy: Vec<bool> =
            posterior.blocks().iter().flat_map(|b| vec![support(b) != Some(Support::Real); b.naturals()]).collect();
        let mut natural = vec![0.0; heavy.len()];
        let mut best = vec![f64::NEG_INFINITY; natural.len() + 1];
        let mut most = best.clone();
        let mut raise = |posterior: &mut Posterior, u: &[f64], stretch: f64, most: &mut [f64]| {
            let log = posterior.log_density(u, None) + stretch;
            posterior.natural(u, &mut natural);
            most[0] = most[0].max(log);
            for ((most, x), heavy) in most[1..].iter_mut().zip(&natural).zip(&heavy) {
                *most = if *heavy { most.max(log + 2.0 * x.abs().ln()) } else { *most };
            }
        };
        raise(posterior, &self.mode, 0.0, &mut best);
        let points = if self.dimension == 2 { 25 } else { 1 };
        for _ in 0..60 {
            let mut settled = true;
            for axis in 0..self.dimension {
                for upper in [false, true] {
                    progress.check()?;
                    most.fill(f64::NEG_INFINITY);
                    for k in 0..points {
                        let mut v = [0.0; 2];
                        v[axis] = self.low[axis] + if upper { self.width[axis] } else { 0.0 };
                        if self.dimension == 2 {
                            let other = 1 - axis;
                            v[other] = self.low[other] + self.width[other] * k as f64 / (points - 1) as f64;
                        }
                        let stretch = self.u_at(v, &mut u);
                        raise(posterior, &u, stretch, &mut most);
                        self.evaluations += 1;
                    }
                    best.iter_mut().zip(&most).for_each(|(best, most)| *best = best.max(*most));
                    let above = |depth: f64| best.iter().zip(&most).any(|(best, most)| *most > best - depth);
                    if above(DEPTH) {
                        let more = if above(0.5 * DEPTH) { 1.0 } else { 0.5 };
                        self.width[axis] += more;
                        if !upper {
                            self.low[axis] -= more;
                        }
                        settled = false;
                    }
                }
            }
            if settled {
                return Ok(());
            }
        }
        Err(Error::NoConvergence { what: "the box around the posterior", iterations: 60, residual: self.width[0] })
    }

    fn integrate(&mut self, posterior: &mut Posterior, progress: &Progress) -> Result<QuadratureMoments> {
        let [n, m] = self.size;
        let naturals = posterior.naturals();
        let mut u = vec![0.0; self.dimension];
        let mut natural = vec![0.0; naturals];
        let mut logs = Vec::with_capacity(n * m);
        for i in 0..n {
            progress.check()?;
            for j in 0..m {
                let v = [self.point(0, i), self.point(1, j)];
                let stretch = self.u_at(v, &mut u);
                logs.push(posterior.log_density(&u, None) + stretch);
            }
        }
        self.evaluations += (n * m) as u64;
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (mut mass, mut mean, mut squares) = (0.0, vec![0.0; naturals], vec![0.0; naturals]);
        let mut centre = vec![0.0; naturals];
        posterior.natural(&self.mode, &mut centre);
        for (index, log) in logs.iter_mut().enumerate() {
            *log = (*log - largest).exp();
            // What is far below the largest may have the moments of a heavy tail.
            if *log < f64::MIN_POSITIVE {
                continue;
            }
            let v = [self.point(0, index / m), self.point(1, index % m)];
            self.u_at(v, &mut u);
            posterior.natural(&u, &mut natural);
            mass += *log;
            for k in 0..naturals {
                let shift = natural[k] - centre[k];
                mean[k] += *log * shift;
                squares[k] += *log * shift * shift;
            }
        }
        for k in 0..naturals {
            mean[k] /= mass;
            squares[k] = (squares[k] / mass - mean[k] * mean[k]).max(0.0).sqrt();
            mean[k] += centre[k];
        }
        let cell = self.width[0] / n as f64
            * self.factor[0][0]
            * if self.dimension == 2 { self.width[1] / m as f64 * self.factor[1][1] } else { 1.0 };
        Ok(QuadratureMoments { log_mass: largest + (mass * cell).ln(), mean, sd: squares, grid: logs })
    }

    fn point(&self, axis: usize, index: usize) -> f64 {
        if axis == 1 && self.dimension == 1 {
            return 0.0;
        }
        self.low[axis] + self.width[axis] * index as f64 / self.size[axis] as f64
    }

    /// The coefficients of the trigonometric polynomial through the grid, scaled to an integral of one per period.
    fn transform(&mut self, progress: &Progress) -> Result<()> {
        let [n, m] = self.size;
        let half = m / 2 + 1;
        let total: f64 = self.grid.iter().sum();
        let mut rows = vec![[0.0; 2]; n * half];
        let roots = |size: usize| -> Vec<[f64; 2]> {
            (0..size).map(|k| -2.0 * PI * k as f64 / size as f64).map(|angle| [angle.cos(), angle.sin()]).collect()
        };
        let (first, second) = (roots(n), roots(m));
        for i in 0..n {
            progress.check()?;
            for l in 0..half {
                let mut sum = [0.0; 2];
                for j in 0..m {
                    let [c, s] = second[j * l % m];
                    sum[0] += self.grid[i * m + j] * c;
                    sum[1] += self.grid[i * m + j] * s;
                }
                // The highest frequency of an even size is its own mirror image.
                let share = if m % 2 == 0 && l == m / 2 { 0.5 } else { 1.0 } / total;
                rows[i * half + l] = [sum[0] * share, sum[1] * share];
            }
        }
        self.coefficients = ChebyshevSeries::zeros(n * half);
        for k in 0..n {
            progress.check()?;
            let re = &mut self.coefficients.re[k * half..(k + 1) * half];
            let im = &mut self.coefficients.im[k * half..(k + 1) * half];
            for i in 0..n {
                let [c, s] = first[i * k % n];
                for ((re, im), row) in re.iter_mut().zip(&mut *im).zip(&rows[i * half..(i + 1) * half]) {
                    *re += row[0] * c - row[1] * s;
                    *im += row[0] * s + row[1] * c;
                }
            }
        }
        Ok(())
    }

    /// Coefficients in the second coordinate at one value of the first; those of frequency 0 are the marginal density.
    fn conditional(&self, v: f64, out: &mut ChebyshevSeries) {
        let n = self.size[0];
        let half = out.re.len();
        out.re.fill(0.0);
        out.im.fill(0.0);
        let angle = 2.0 * PI * (v - self.low[0]) / self.width[0];
        let step = [angle.cos(), angle.sin()];
        let mut turn = [1.0, 0.0];
        // Frequencies 0, +-1, ..., in pairs; that of n/2 counts half from each side.
        for k in 0..=n / 2 {
            let own = if k > 0 && 2 * k == n { 0.5 } else { 1.0 };
            let (c, s) = (own * turn[0], own * turn[1]);
            add_turned(&self.coefficients, k * half, c, s, out);
            if k > 0 {
                add_turned(&self.coefficients, (n - k) * half, c, -s, out);
            }
            turn = [turn[0] * step[0] - turn[1] * step[1], turn[0] * step[1] + turn[1] * step[0]];
        }
    }

    /// The coefficients of the first coordinate's marginal, for frequencies from 0 on.
    fn first_marginal(&self) -> ChebyshevSeries {
        let [n, m] = self.size;
        let half = m / 2 + 1;
        let part = |of: &[f64]| {
            (0..=n / 2).map(|k| of[k * half] * if k > 0 && 2 * k == n { 0.5 } else { 1.0 }).collect::<Vec<_>>()
        };
        ChebyshevSeries { re: part(&self.coefficients.re), im: part(&self.coefficients.im) }
    }

    /// Independent draws in unconstrained coordinates, row by row; draw `i` has the address `i` of the key.
    pub fn draws(&self, number: usize, key: [u64; 2], progress: &Progress) -> Result<Vec<f64>> {
        let [n, m] = self.size;
        let marginal = self.first_marginal();
        // Distribution functions to guess from: of the marginal, and of the conditional at each row of the grid.
        let mut first = vec![0.0];
        let cells = 4 * n;
        first.extend((1..=cells).map(|k| marginal.at(k as f64 / cells as f64).1));
        let mut rows = vec![0.0; n * (m + 1)];
        for (sums, row) in rows.chunks_exact_mut(m + 1).zip(self.grid.chunks_exact(m)) {
            for j in 0..m {
                sums[j + 1] = sums[j] + 0.5 * (row[j] + row[(j + 1) % m]);
            }
        }
        let mut conditional = ChebyshevSeries::zeros(m / 2 + 1);
        let mut out = vec![0.0; number * self.dimension];
        for (draw, u) in out.chunks_exact_mut(self.dimension).enumerate() {
            let mut stream = Stream::new(key, PURPOSE, 0, draw as u64);
            let mut v = [0.0; 2];
            let p = stream.uniform();
            let t = marginal.invert(p, place(&first, p));
            v[0] = self.low[0] + self.width[0] * t;
            if self.dimension == 2 {
                self.conditional(v[0], &mut conditional);
                let p = stream.uniform();
                let row = (t * n as f64).round() as usize % n;
                let guess = place(&rows[row * (m + 1)..(row + 1) * (m + 1)], p);
                v[1] = self.low[1] + self.width[1] * conditional.invert(p, guess);
            }
            self.u_at(v, u);
            if draw % 1024 == 0 {
                progress.check()?;
            }
        }
        Ok(out)
    }

    /// The probability that one coordinate is at most `u`.
    pub fn cdf(&self, coordinate: usize, u: f64) -> f64 {
        let share = |axis: usize, v: f64| ((v - self.low[axis]) / self.width[axis]).clamp(0.0, 1.0);
        if coordinate == 0 {
            let v = unspread((u - self.mode[0]) / self.factor[0][0]);
            return self.first_marginal().at(share(0, v)).1.clamp(0.0, 1.0);
        }
        // The trapezoid rule over the first coordinate, of the conditional masses below the line.
        let [n, m] = self.size;
        let mut conditional = ChebyshevSeries::zeros(m / 2 + 1);
        let mut sum = 0.0;
        for i in 0..n {
            let first = self.point(0, i);
            let v = unspread((u - self.mode[1] - self.factor[1][0] * spread(first)) / self.factor[1][1]);
            self.conditional(first, &mut conditional);
            sum += conditional.at(share(1, v)).1;
        }
        (sum / n as f64).clamp(0.0, 1.0)
    }

    /// The coordinate below which it lies with probability `p`.
    pub fn quantile(&self, coordinate: usize, p: f64) -> f64 {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut u = [0.0; 2];
        for corner in 0..4 {
            let v = [
                self.low[0] + if corner & 1 == 1 { self.width[0] } else { 0.0 },
                self.low[1] + if corner & 2 == 2 && self.dimension == 2 { self.width[1] } else { 0.0 },
            ];
            self.u_at(v, &mut u[..self.dimension]);
            low = low.min(u[coordinate]);
            high = high.max(u[coordinate]);
        }
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.cdf(coordinate, middle) < p {
                low = middle;
            } else {
                high = middle;
            }
        }
        0.5 * (low + high)
    }

    fn support(&self, parameter: usize) -> Result<Support> {
        let scalar = self.supports.len() == self.dimension;
        let found = self.supports.get(parameter).copied().filter(|_| scalar);
        found.ok_or_else(|| Error::domain("parameter", parameter, "a scalar parameter"))
    }

    /// The probabilities that a scalar parameter is at most each value.
    ///
    /// # Errors
    /// [`Error::Domain`] where the parameters are not scalars.
    pub fn probabilities(&self, parameter: usize, values: &[f64]) -> Result<Vec<f64>> {
        let support = self.support(parameter)?;
        let probability = |&x: &f64| {
            let below = self.cdf(parameter, support.coordinate(x));
            if support == Support::Negative { 1.0 - below } else { below }
        };
        Ok(values.iter().map(probability).collect())
    }

    /// The values that a scalar parameter is below with each probability.
    ///
    /// # Errors
    /// [`Error::Domain`] where the parameters are not scalars or a probability is not one.
    pub fn quantiles(&self, parameter: usize, probabilities: &[f64]) -> Result<Vec<f64>> {
        let support = self.support(parameter)?;
        Error::require_all(probabilities, |p| p > 0.0 && p < 1.0, "probabilities", "between 0 and 1")?;
        let quantile = |&p: &f64| {
            let p = if support == Support::Negative { 1.0 - p } else { p };
            support.natural(self.quantile(parameter, p)).0
        };
        Ok(probabilities.iter().map(quantile).collect())
    }
}

/// Adds the coefficients from `from` on, times `c + i s`.
fn add_turned(all: &ChebyshevSeries, from: usize, c: f64, s: f64, out: &mut ChebyshevSeries) {
    at_level!(level(), {
        let half = out.re.len();
        let (from_re, from_im) = (&all.re[from..from + half], &all.im[from..from + half]);
        let out = out.re.iter_mut().zip(&mut out.im);
        for ((sum_re, sum_im), (re, im)) in out.zip(from_re.iter().zip(from_im)) {
            *sum_re += re * c - im * s;
            *sum_im += re * s + im * c;
        }
    })
}
