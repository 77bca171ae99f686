//! Coordinates in which a posterior looks like a standard normal law: u = w(mode + F v), F F' the inverse curvature there.
//!
//! Chains that start from there need no long search for scales, and correlations, which scales alone do not remove, are gone.
//! The mode is found by the method of Broyden, Fletcher, Goldfarb and Shanno, the curvature by central differences of the
//! gradient, F = Q diag(l^-1/2) from its eigenvectors; a direction with hardly any curvature keeps its unit.
//!
//! The warp w leaves all parameters as they are but shares theta on the simplex and groups with a common law. A share that the data only bound from above
//! has a posterior with an edge at 0, so that its logarithm is steep on one side and flat on the other. Against the largest
//! share, theta_j / theta_r = c_j ln(1 + e^t_j), with c_j the standard deviation of the ratio: a normal law on the right, an
//! exponential tail on the left, both of unit scale. Groups with a common law are warped by [`super::pooling`].
//!
//! Source: J. Nocedal, S. Wright (2006), Numerical optimization, algorithm 6.1.

use super::matrix::{dot, eigen};
use super::pooling::{Numbers, Shares};
use super::simplex::{helmert, helmert_transposed, soft_back, soft_log};
use super::{Posterior, PriorBlock};
use crate::Result;
use crate::monitor::Progress;

/// The most steps of the climb to the mode, which is a place to start from wherever it ends. Not tuned.
const ITERATIONS: usize = 400;
/// The least curvature that a scale is taken from, so that no scale is above ten. Not tuned.
const FLAT: f64 = 1e-2;

/// A value with its gradient, which is written into the second argument.
type Objective<'a> = dyn FnMut(&[f64], &mut [f64]) -> f64 + 'a;

/// A change of coordinates.
#[derive(Clone, Debug)]
pub struct Whitening {
    centre: Vec<f64>,
    /// Row by row; its columns are orthogonal.
    factor: Vec<f64>,
    /// The squared lengths of the columns.
    squares: Vec<f64>,
    warps: Vec<Warp>,
}

impl Whitening {
    /// Finds the mode from the priors' typical point, and the curvature there.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`]. Where the density is not finite the coordinates stay as they are.
    pub fn new(posterior: &mut Posterior, progress: &Progress) -> Result<Self> {
        let mut mode = posterior.start();
        let mut warps: Vec<Warp> = Vec::new();
        let grouped = |block: &PriorBlock| matches!(block, PriorBlock::Numbers { .. } | PriorBlock::Shares { .. });
        let groups = posterior.blocks().iter().any(grouped);
        // Those of groups are made where the mode seems to be, and again where it is found by their help.
        for _ in 0..if groups { 2 } else { 1 } {
            ascend(posterior, &mut warps, &mut mode, progress)?;
            for warp in &mut warps {
                warp.place(&mut mode);
            }
            warps = Warp::all(posterior, &mode, progress)?;
            warps.iter_mut().for_each(|warp| warp.back(&mut mode));
        }
        ascend(posterior, &mut warps, &mut mode, progress)?;
        let mut u = mode.clone();
        let mut density = |t: &[f64], gradient: &mut [f64]| warped(posterior, &mut warps, t, &mut u, gradient);
        let (factor, squares) = scales(&mut density, &mode, progress)?;
        Ok(Self { centre: mode, factor, squares, warps })
    }

    /// Writes the coordinates of the posterior at `v`; the logarithm of the warp's stretch there.
    pub fn place(&mut self, v: &[f64], u: &mut [f64]) -> f64 {
        for ((u, centre), row) in u.iter_mut().zip(&self.centre).zip(self.factor.chunks_exact(v.len())) {
            *u = centre + dot(row, v);
        }
        self.warps.iter_mut().map(|warp| warp.place(u)).sum()
    }

    /// Writes the whitened coordinates of `u`.
    pub fn whiten(&mut self, u: &[f64], v: &mut [f64]) {
        let mut t = u.to_vec();
        self.warps.iter_mut().for_each(|warp| warp.back(&mut t));
        t.iter_mut().zip(&self.centre).for_each(|(t, centre)| *t -= centre);
        self.turn(&t, v);
        v.iter_mut().zip(&self.squares).for_each(|(v, square)| *v /= square);
    }

    /// Writes the gradient in v of a density in u and of the stretch, at the point that was placed last.
    pub fn pull(&mut self, gradient: &mut [f64], out: &mut [f64]) {
        self.warps.iter_mut().for_each(|warp| warp.pull(gradient));
        self.turn(gradient, out);
    }

    fn turn(&self, from: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for (g, row) in from.iter().zip(self.factor.chunks_exact(out.len())) {
            out.iter_mut().zip(row).for_each(|(sum, entry)| *sum += g * entry);
        }
    }
}

/// A change of the coordinates of one block.
#[derive(Clone, Debug)]
enum Warp {
    Simplex(SimplexWarp),
    Numbers(Numbers),
    Shares(Shares),
}

impl Warp {
    /// The warps of all blocks that have one, from a point near the mode.
    fn all(posterior: &mut Posterior, mode: &[f64], progress: &Progress) -> Result<Vec<Self>> {
        let (mut found, mut start, mut known) = (Vec::new(), 0, None);
        for block in posterior.blocks().to_vec() {
            match &block {
                PriorBlock::Simplex { .. } => {
                    let factor = match known.take() {
                        Some(factor) => factor,
                        None => {
                            let mut density =
                                |u: &[f64], gradient: &mut [f64]| posterior.log_density(u, Some(gradient));
                            scales(&mut density, mode, progress)?.0
                        }
                    };
                    found.push(Self::Simplex(SimplexWarp::new(start, mode, &factor, block.naturals())));
                    known = Some(factor);
                }
                PriorBlock::Numbers { centre, spread, size, .. } => {
                    found.push(Self::Numbers(Numbers::new(posterior, start, mode, *size, [*centre, *spread])));
                }
                PriorBlock::Shares { concentration, strength, size } => {
                    let categories = concentration.len();
                    found.push(Self::Shares(Shares::new(posterior, start, mode, *size, categories, *strength)));
                }
                _ => {}
            }
            start += block.coordinates();
        }
        Ok(found)
    }

    /// Replaces t by u; the logarithm of the stretch.
    fn place(&mut self, coordinates: &mut [f64]) -> f64 {
        match self {
            Self::Simplex(warp) => warp.place(coordinates),
            Self::Numbers(warp) => warp.place(coordinates),
            Self::Shares(warp) => warp.place(coordinates),
        }
    }

    /// Replaces a gradient in u by that in t, with that of the stretch.
    fn pull(&mut self, gradient: &mut [f64]) {
        match self {
            Self::Simplex(warp) => warp.pull(gradient),
            Self::Numbers(warp) => warp.pull(gradient),
            Self::Shares(warp) => warp.pull(gradient),
        }
    }

    /// Replaces u by t.
    fn back(&mut self, coordinates: &mut [f64]) {
        match self {
            Self::Simplex(warp) => warp.back(coordinates),
            Self::Numbers(warp) => warp.back(coordinates),
            Self::Shares(warp) => warp.back(coordinates),
        }
    }
}

/// The warp of the coordinates of one simplex.
#[derive(Clone, Debug)]
struct SimplexWarp {
    start: usize,
    /// The category that the others are compared with.
    reference: usize,
    /// By category.
    scales: Vec<f64>,
    /// At the last point, by category: the derivative of ln ratio in t, and that of its logarithm.
    slopes: Vec<[f64; 2]>,
    scratch: Vec<f64>,
}

impl SimplexWarp {
    /// From the mode and the scales of all coordinates.
    fn new(start: usize, mode: &[f64], factor: &[f64], categories: usize) -> Self {
        let (d, free) = (mode.len(), categories - 1);
        let mut logs = vec![0.0; categories];
        helmert(&mode[start..start + free], &mut logs);
        let reference = (0..categories).fold(0, |best, k| if logs[k] > logs[best] { k } else { best });
        // The variance of a difference of logarithms, column by column of the factor.
        let mut variances = vec![0.0; categories];
        let (mut column, mut turned) = (vec![0.0; free], vec![0.0; categories]);
        for j in 0..d {
            (0..free).for_each(|i| column[i] = factor[(start + i) * d + j]);
            helmert(&column, &mut turned);
            for k in 0..categories {
                variances[k] += (turned[k] - turned[reference]) * (turned[k] - turned[reference]);
            }
        }
        let ratio = |k: usize| (logs[k] - logs[reference]).exp();
        let scales = (0..categories).map(|k| (ratio(k) * variances[k].sqrt().clamp(1e-8, 1.0)).max(1e-300)).collect();
        Self { start, reference, scales, slopes: vec![[0.0; 2]; categories], scratch: logs }
    }

    /// Replaces t by u; the logarithm of the stretch.
    fn place(&mut self, coordinates: &mut [f64]) -> f64 {
        let free = self.scales.len() - 1;
        let own = &mut coordinates[self.start..self.start + free];
        let (mut stretch, mut at) = (0.0, 0);
        for (k, log) in self.scratch.iter_mut().enumerate() {
            *log = 0.0;
            if k == self.reference {
                continue;
            }
            let t = own[at];
            at += 1;
            let (log_rise, slopes) = soft_log(t);
            *log = self.scales[k].ln() + log_rise;
            self.slopes[k] = slopes;
            stretch += slopes[0].ln();
        }
        helmert_transposed(&self.scratch, own);
        stretch
    }

    /// Replaces a gradient in u by that in t, with that of the stretch.
    fn pull(&mut self, gradient: &mut [f64]) {
        let own = &mut gradient[self.start..self.start + self.scales.len() - 1];
        helmert(own, &mut self.scratch);
        let others = (0..self.scales.len()).filter(|&k| k != self.reference);
        for (g, k) in own.iter_mut().zip(others) {
            let [slope, bend] = self.slopes[k];
            *g = self.scratch[k] * slope + bend;
        }
    }

    /// Replaces u by t.
    fn back(&mut self, coordinates: &mut [f64]) {
        let own = &mut coordinates[self.start..self.start + self.scales.len() - 1];
        helmert(own, &mut self.scratch);
        let others = (0..self.scales.len()).filter(|&k| k != self.reference);
        for (t, k) in own.iter_mut().zip(others) {
            *t = soft_back((self.scratch[k] - self.scratch[self.reference]).exp() / self.scales[k]);
        }
    }
}

/// The factor of the inverse curvature, and the squared lengths of its columns.
fn scales(function: &mut Objective<'_>, at: &[f64], progress: &Progress) -> Result<(Vec<f64>, Vec<f64>)> {
    let (d, mut u) = (at.len(), at.to_vec());
    let mut factor = vec![0.0; d * d];
    let (mut plus, mut minus) = (vec![0.0; d], vec![0.0; d]);
    for i in 0..d {
        progress.check()?;
        let (here, step) = (u[i], 1e-4 * (1.0 + 1e-2 * u[i].abs()));
        u[i] = here + step;
        function(&u, &mut plus);
        u[i] = here - step;
        function(&u, &mut minus);
        u[i] = here;
        for j in 0..d {
            let curvature = 0.25 * (minus[j] - plus[j]) / step;
            factor[i * d + j] += curvature;
            factor[j * d + i] += curvature;
        }
    }
    let mut squares = vec![1.0; d];
    if factor.iter().all(|entry| entry.is_finite()) {
        let mut off = vec![0.0; d];
        eigen(&mut factor, &mut squares, &mut off, d);
        for square in &mut squares {
            *square = if *square > FLAT { 1.0 / *square } else { 1.0 };
        }
    } else {
        factor.fill(0.0);
        (0..d).for_each(|i| factor[i * d + i] = 1.0);
    }
    for row in factor.chunks_exact_mut(d) {
        row.iter_mut().zip(&squares).for_each(|(entry, square)| *entry *= square.sqrt());
    }
    Ok((factor, squares))
}

/// The density of a posterior in warped coordinates, with its gradient; `u` is scratch.
fn warped(posterior: &mut Posterior, warps: &mut [Warp], t: &[f64], u: &mut [f64], gradient: &mut [f64]) -> f64 {
    u.copy_from_slice(t);
    let stretch: f64 = warps.iter_mut().map(|warp| warp.place(u)).sum();
    let value = posterior.log_density(u, Some(gradient));
    warps.iter_mut().for_each(|warp| warp.pull(gradient));
    value + stretch
}

/// Climbs to a mode in warped coordinates.
fn ascend(posterior: &mut Posterior, warps: &mut [Warp], mode: &mut Vec<f64>, progress: &Progress) -> Result<()> {
    let mut u = mode.clone();
    climb(&mut |t, gradient| warped(posterior, warps, t, &mut u, gradient), mode, progress)
}

/// Climbs to a mode, as far as it goes.
fn climb(function: &mut Objective<'_>, u: &mut Vec<f64>, progress: &Progress) -> Result<()> {
    let d = u.len();
    let mut gradient = vec![0.0; d];
    let mut value = function(u, &mut gradient);
    let mut inverse = vec![0.0; d * d];
    let reset = |inverse: &mut [f64], scale: f64| {
        inverse.fill(0.0);
        (0..d).for_each(|i| inverse[i * d + i] = scale);
    };
    let (mut fresh, mut product) = (true, vec![0.0; d]);
    for _ in 0..ITERATIONS {
        progress.check()?;
        let steepest = dot(&gradient, &gradient);
        if !(value.is_finite() && steepest.is_finite()) || steepest < 1e-12 {
            break;
        }
        if fresh {
            reset(&mut inverse, 0.1 / steepest.sqrt());
        }
        let mut direction: Vec<f64> = inverse.chunks_exact(d).map(|row| dot(row, &gradient)).collect();
        let longest = direction.iter().fold(0.0f64, |most, x| most.max(x.abs()));
        if longest > 2.0 {
            direction.iter_mut().for_each(|x| *x *= 2.0 / longest);
        }
        let gain = dot(&direction, &gradient);
        let (mut size, mut found) = (1.0, None);
        while size > 1e-8 {
            let at: Vec<f64> = u.iter().zip(&direction).map(|(u, x)| u + size * x).collect();
            let mut slope = vec![0.0; d];
            let next = function(&at, &mut slope);
            if next >= value + 1e-4 * size * gain && slope.iter().all(|g| g.is_finite()) {
                found = Some((at, next, slope));
                break;
            }
            size *= 0.4;
        }
        let Some((at, next, slope)) = found else {
            if fresh {
                break;
            }
            fresh = true;
            continue;
        };
        let s: Vec<f64> = at.iter().zip(&*u).map(|(x, y)| x - y).collect();
        let y: Vec<f64> = gradient.iter().zip(&slope).map(|(x, y)| x - y).collect();
        let bend = dot(&s, &y);
        let small = next - value < 1e-9 && gain < 1e-8;
        (*u, value, gradient) = (at, next, slope);
        if small {
            break;
        }
        if bend > 1e-12 * dot(&y, &y).sqrt() * dot(&s, &s).sqrt() {
            if fresh {
                reset(&mut inverse, bend / dot(&y, &y));
            }
            fresh = false;
            // H <- (1 - s y'/b) H (1 - y s'/b) + s s'/b.
            for (out, row) in product.iter_mut().zip(inverse.chunks_exact(d)) {
                *out = dot(row, &y);
            }
            let scale = (1.0 + dot(&y, &product) / bend) / bend;
            for i in 0..d {
                for j in 0..d {
                    inverse[i * d + j] += scale * s[i] * s[j] - (product[i] * s[j] + s[i] * product[j]) / bend;
                }
            }
        }
    }
    Ok(())
}
