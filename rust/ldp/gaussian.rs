//! A normal variable, rectified to [a, b] and released with Laplace noise of scale s.
//!
//! With alpha = (a - mu)/sigma, beta = (b - mu)/sigma, lambda = (z - mu)/sigma, r = sigma/s and Mills' ratio m,
//!   2 s p(z) = e^(-(z-a)/s) A + e^(-(b-z)/s) B + phi(lambda) (m(r - lambda) + m(r + lambda)),
//!   A = Phi(alpha) - phi(alpha) m(r - alpha) >= 0,  B = Phi(-beta) - phi(beta) m(r + beta) >= 0,   a <= z <= b,
//! a sum of positive terms, of which only the last costs anything per value. With w3, w4 the shares of the middle terms
//! T3 = phi(lambda) m(r - lambda) - e^(-(z-a)/s) phi(alpha) m(r - alpha) and its mirror image T4,
//!   d ln p / d mu = (w3 - w4)/s,
//!   d ln p / d sigma = sigma (w3 + w4)/s^2 + [e^(-(z-a)/s) phi(alpha) + e^(-(b-z)/s) phi(beta) - 2 phi(lambda)]/(s L),
//! by the heat equation d/d sigma = sigma d^2/d mu^2. Where the mean lies beyond a bound by more than sigma^2/s, both parts of
//! T4 (or T3) contain the same exponential (m(x) = sqrt(2 pi) e^(x^2/2) - m(-x)), however small their difference: it is left
//! out of both, so that a likelihood that hardly depends on theta has its slope to full relative accuracy.
//!
//! Source: T. Kulkarni, J. Jälkö, S. Kaski, A. Honkela, Locally differentially private Bayesian inference; its equation 28 is
//! the same function in error functions, which overflows where sigma/s or a tail is large.

use super::Likelihood;
use super::compressed::{ClippedLaplace, Marginal, Slices};
use crate::numeric::dispatch::{at_level, level};
use crate::numeric::elementary::{exp_normal, ln_normal};
use crate::numeric::special::HALF_LOG_TWO_PI;
use crate::numeric::special::normal::{density, mills, mills_rest, mills_right, scaled_mills};

/// Mean and standard deviation of a normal variable.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gaussian;

/// What all values share at one mean and standard deviation.
pub struct GaussianTerms {
    mean: f64,
    inverse: f64,
    sigma: f64,
    ratio: f64,
    per_scale: f64,
    epsilon: f64,
    /// Whether the mean is beyond a bound, so that an exponential is left out of the next two.
    beyond: bool,
    /// A and B; the parts of T3 and T4 that depend on the bounds; the densities there less sigma/s of these parts.
    edge: [f64; 2],
    middle: [f64; 2],
    bend: [f64; 2],
}

impl Marginal for Gaussian {
    const PARAMETERS: usize = 2;
    type At = GaussianTerms;

    fn at(&self, noise: &ClippedLaplace, natural: &[f64]) -> GaussianTerms {
        let &[mean, sigma] = natural else { unreachable!("two parameters") };
        let ratio = sigma / noise.scale;
        let side = |edge: f64| {
            // Lower: alpha; upper: -beta, by symmetry.
            let height = density(edge);
            let middle = scaled_mills(ratio - edge, height, 0.5 * ratio * ratio - ratio * edge);
            let mass = scaled_mills(-edge, height, 0.0);
            let share = (mass - middle).max(0.0);
            let middle = if edge >= ratio { -height * mills(edge - ratio) } else { middle };
            let bend = if ratio - edge.abs() >= 20.0 {
                height * mills_rest(ratio - edge) - edge * middle
            } else {
                height - ratio * middle
            };
            (share, middle, bend)
        };
        let edges = [(noise.lower - mean) / sigma, (mean - noise.upper) / sigma];
        let [first, second] = edges.map(side);
        GaussianTerms {
            mean,
            sigma,
            inverse: 1.0 / sigma,
            ratio,
            per_scale: 1.0 / noise.scale,
            epsilon: (noise.upper - noise.lower) / noise.scale,
            beyond: edges.iter().any(|&edge| edge >= ratio),
            edge: [first.0, second.0],
            middle: [first.1, second.1],
            bend: [first.2, second.2],
        }
    }

    #[inline(always)]
    fn density<const GRADIENT: bool>(
        at: &GaussianTerms,
        z: f64,
        above_lower: f64,
        below_upper: f64,
    ) -> (f64, [f64; 2]) {
        let place = (z - at.mean) * at.inverse;
        let (r, height) = (at.ratio, density(place));
        let half = 0.5 * r * r;
        let left = scaled_mills(r - place, height, half - r * place);
        let right = scaled_mills(r + place, height, half + r * place);
        let total = above_lower * at.edge[0] + below_upper * at.edge[1] + left + right;
        if !GRADIENT {
            return (total, [0.0; 2]);
        }
        let inverse = 1.0 / total;
        // The shares first: their products with the densities may be too small for a double where the ratio is not.
        let (above_lower, below_upper) = (above_lower * inverse, below_upper * inverse);
        let (left, right) = if at.beyond {
            let own = -height * mills(place.abs() - r);
            if place >= 0.0 { (own, right) } else { (left, own) }
        } else {
            (left, right)
        };
        // left - right, and r (left + right) - 2 phi; where r is large by the expansion of Mills' ratio.
        let (apart, bump) = if r - place.abs() >= 20.0 {
            let (first, second) = (mills_rest(r - place), mills_rest(r + place));
            let apart = 2.0 * place / ((r - place) * (r + place)) - (first / (r - place) - second / (r + place));
            (height * apart, height * (place * apart - (first + second)))
        } else {
            (left - right, r * (left + right) - 2.0 * height)
        };
        let middles = above_lower * at.middle[0] - below_upper * at.middle[1];
        let by_mean = (apart * inverse - middles) * at.per_scale;
        let edges = above_lower * at.bend[0] + below_upper * at.bend[1];
        let by_sigma = (bump * inverse + edges) * at.per_scale;
        (total, [by_mean, by_sigma])
    }

    fn sum<const GRADIENT: bool>(at: &GaussianTerms, points: Slices<'_>) -> [f64; 3] {
        // The blocks know neither the expansion for large r, nor densities that underflow, nor what is not a number.
        if !(at.ratio < 20.0 && at.epsilon < 300.0 && (at.mean * at.inverse).abs() < 1e150 && at.inverse < 1e150) {
            return Self::sum_each::<GRADIENT>(at, points);
        }
        if GRADIENT { sum_with_gradient(at, points) } else { sum_of_values(at, points) }
    }

    #[inline]
    fn resolves(at: &GaussianTerms, left: f64, right: f64) -> bool {
        // A bump of width sigma about the mean, of no height beyond 7.5 sigma.
        let distance = (left - at.mean).max(at.mean - right);
        right - left <= 2.5 * at.sigma || distance >= 7.5 * at.sigma
    }
}

fn sum_with_gradient(at: &GaussianTerms, points: Slices<'_>) -> [f64; 3] {
    at_level!(level(), { sum_in_blocks::<true>(at, points) })
}

fn sum_of_values(at: &GaussianTerms, points: Slices<'_>) -> [f64; 3] {
    at_level!(level(), { sum_in_blocks::<false>(at, points) })
}

/// Points of a block: as many as the widest registers hold.
const LANES: usize = 8;

/// [`Marginal::sum`], eight points at a time; the last ones are filled up with points of no weight.
#[inline(always)]
fn sum_in_blocks<const GRADIENT: bool>(at: &GaussianTerms, points: Slices<'_>) -> [f64; 3] {
    let mut sums = [[0.0; LANES]; 3];
    let whole = points.z.len() / LANES * LANES;
    let parts = points.z.as_chunks::<LANES>().0.iter().zip(points.ea.as_chunks::<LANES>().0);
    let others = points.eb.as_chunks::<LANES>().0.iter().zip(points.weight.as_chunks::<LANES>().0);
    for ((z, ea), (eb, weight)) in parts.zip(others) {
        add_block::<GRADIENT>(at, z, ea, eb, weight, &mut sums);
    }
    if whole < points.z.len() {
        let (mut z, mut ea, mut eb, mut weight) = ([at.mean; LANES], [1.0; LANES], [1.0; LANES], [0.0; LANES]);
        let left = points.z.len() - whole;
        z[..left].copy_from_slice(&points.z[whole..]);
        ea[..left].copy_from_slice(&points.ea[whole..]);
        eb[..left].copy_from_slice(&points.eb[whole..]);
        weight[..left].copy_from_slice(&points.weight[whole..]);
        add_block::<GRADIENT>(at, &z, &ea, &eb, &weight, &mut sums);
    }
    sums.map(|sums| ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7])))
}

/// exp x for `x <= 0`, but never below exp(-708).
#[inline(always)]
fn exp_above(x: f64) -> f64 {
    exp_normal(if x > -708.0 { x } else { -708.0 })
}

/// The terms of eight points, without a branch: [`Marginal::density`] in the same words.
#[inline(always)]
fn add_block<const GRADIENT: bool>(
    at: &GaussianTerms,
    z: &[f64; LANES],
    ea: &[f64; LANES],
    eb: &[f64; LANES],
    weight: &[f64; LANES],
    sums: &mut [[f64; LANES]; 3],
) {
    /// `1 / sqrt(2 pi)`.
    const SCALE: f64 = 0.398_942_280_401_432_7;
    let (r, half) = (at.ratio, 0.5 * at.ratio * at.ratio);
    for lane in 0..LANES {
        let place = (z[lane] - at.mean) * at.inverse;
        let away = place.abs();
        let height = SCALE * exp_above(-0.5 * place * place);
        let far = height * mills_right(r + away);
        let inner = r - away;
        let own = height * mills_right(inner.abs());
        let over = half - r * away;
        let beyond = exp_above(if over < 0.0 { over } else { 0.0 }) - own;
        let near = if inner >= 0.0 { own } else { beyond };
        let total = (ea[lane] * at.edge[0] + eb[lane] * at.edge[1]) + (near + far);
        sums[0][lane] += weight[lane] * ln_normal(total);
        if GRADIENT {
            let per = 1.0 / total;
            let share = weight[lane] * at.per_scale;
            let near = if at.beyond { -own } else { near };
            let turned = if place >= 0.0 { near - far } else { far - near };
            let (ea, eb) = (ea[lane] * per, eb[lane] * per);
            let by_mean = turned * per - (ea * at.middle[0] - eb * at.middle[1]);
            let by_sigma = (r * (near + far) - 2.0 * height) * per + (ea * at.bend[0] + eb * at.bend[1]);
            sums[1][lane] += share * by_mean;
            sums[2][lane] += share * by_sigma;
        }
    }
}

/// Normal numbers released without noise: count, mean and sum of squares about it are sufficient.
#[derive(Clone, Copy, Debug)]
pub struct GaussianSums {
    number: f64,
    mean: f64,
    squares: f64,
}

impl GaussianSums {
    /// From the number of values, their mean and the sum of squares about it.
    #[must_use]
    pub fn of_sums(number: f64, mean: f64, squares: f64) -> Self {
        Self { number, mean, squares }
    }

    /// From the numbers.
    pub fn new(values: &[f64]) -> Self {
        let number = values.len() as f64;
        let mean = if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / number };
        Self { number, mean, squares: values.iter().map(|x| (x - mean) * (x - mean)).sum() }
    }
}

impl Likelihood for GaussianSums {
    fn value(&mut self, natural: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let (mean, sigma) = (natural[0], natural[1]);
        let shift = self.mean - mean;
        let squares = (self.squares + self.number * shift * shift) / (sigma * sigma);
        if let Some(gradient) = gradient {
            gradient[0] = self.number * shift / (sigma * sigma);
            gradient[1] = (squares - self.number) / sigma;
        }
        -self.number * (sigma.ln() + HALF_LOG_TWO_PI) - 0.5 * squares
    }

    fn parameters(&self) -> usize {
        2
    }
}
