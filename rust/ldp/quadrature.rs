//! Posteriors of one or two parameters, computed.
//!
//! The mode is found and whitened by the curvature, u = mode + L sinh(v/2)/(1/2) with L lower triangular: the sine spreads
//! points over tails that are only exponential. A box in v is widened until the density at its edges is below exp(-30) of
//! the mode's; there the trapezoid rule converges geometrically, for the density and its derivatives vanish at the edges.
//! Points are in rows along the last coordinate, and of two coordinates the rows themselves are the points of a rule along
//! the first. Where a small sigma lets single users and bounds be seen, that rule meets a kink in some derivative at each: the
//! box is then cut into panels of Clenshaw and Curtis' rule, and a panel is halved, or its rows get twice the points, until
//! mass, means and deviations are known to nine digits. The rules tell their errors without further points.
//!
//! What a row holds is a trigonometric polynomial as exact as the rule, and so, or a polynomial, is what lies between rows:
//! distribution functions, quantiles and independent draws by inversion come from these.

use super::panels::{FourierSeries, Interpolant, NODES, Panel, RULE, Row, invert, place};
use super::{Posterior, PriorBlock, Support};
use crate::monitor::Progress;
use crate::stream::Stream;
use crate::{Error, Result};
use std::f64::consts::PI;

/// The log density at the edges of the box, below that at the mode, and so of its products with the squares of the values,
/// below their largest: e^-30 is 1e-13, far below [`TOLERANCE`].
const DEPTH: f64 = 30.0;
/// How far from a mode others are looked for, in each coordinate.
const FAR: [f64; 6] = [-40.0, -12.0, -5.0, 5.0, 12.0, 40.0];
/// How soon the points spread out. Not tuned: with more, heavy tails take fewer points and normal ones more.
const SPREAD: f64 = 0.5;
/// The error of the moments, in standard deviations, where no other is asked for.
pub const TOLERANCE: f64 = 1e-9;
/// The error with which a posterior is still taken where roundings, or [`MOST`] evaluations, do not let it be less.
const ENOUGH: f64 = 1e-6;
/// Evaluations after which [`ENOUGH`] will do, and those after which a posterior is refused: a second or two.
const MOST: [u64; 2] = [1 << 17, 1 << 18];
/// Roundings of a log density, relative to its size at the mode: sums over users have a few.
const ROUNDINGS: f64 = 4.0 * f64::EPSILON;
/// The width of a panel to begin with. Not tuned: a normal density is known to nine digits.
const PANEL: f64 = 3.0;
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
    /// The largest log density seen at the mode or on edges, relative to which densities are kept.
    reference: f64,
    /// In increasing order; with one coordinate a single one of a single row.
    panels: Vec<Panel>,
    /// ln of the integral of the density over u: the evidence where priors are normalized.
    pub log_evidence: f64,
    /// Means and variances of the natural values.
    pub mean: Vec<f64>,
    /// Standard deviations of the natural values.
    pub sd: Vec<f64>,
    /// The error of the moments, relative to the standard deviations, as the nested rules tell it.
    pub error: f64,
    /// Evaluations of the density.
    pub evaluations: u64,
}

/// A mode: the place, the log density, the Cholesky factor of the inverse curvature, and the evaluations it took.
type Mode = (Vec<f64>, f64, [[f64; 2]; 2], u64);

/// Modes, the highest first, of those that searches from a start, from places far from the first one and from where the
/// likelihood by itself is largest, uphill of the first one, end at.
fn modes(posterior: &mut Posterior, progress: &Progress) -> Result<Vec<Mode>> {
    let mut found = vec![mode(posterior, posterior.start(), true, progress)?];
    let first = found[0].0.clone();
    let mut starts = Vec::new();
    for axis in 0..first.len() {
        for far in FAR {
            let mut start = first.clone();
            start[axis] += far;
            starts.push(start);
        }
    }
    match mode(posterior, first, false, progress) {
        Err(Error::NoConvergence { .. }) => (),
        other => starts.push(other?.0),
    }
    for start in starts {
        match mode(posterior, start, true, progress) {
            Err(Error::NoConvergence { .. }) => (), // The density is zero there.
            other => found.push(other?),
        }
    }
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    Ok(found)
}

/// Finds a mode by damped Newton steps, with the curvature there as the Cholesky factor of its inverse; without `priors`
/// that of the likelihood, or the way towards it where there is none.
fn mode(posterior: &mut Posterior, mut u: Vec<f64>, priors: bool, progress: &Progress) -> Result<Mode> {
    let d = posterior.dimension();
    // Steps are short along logarithms. What is real has the scale of the data, which may be far.
    let is_short = |b: &PriorBlock| vec![priors || support(b) != Some(Support::Real); b.coordinates()];
    let short: Vec<bool> = posterior.blocks().iter().flat_map(is_short).collect();
    let (most, least) = if priors { (200, 1e-3) } else { (60, 1e-12) };
    let density = |posterior: &mut Posterior, u: &[f64], gradient: &mut [f64]| {
        if priors { posterior.log_density(u, Some(gradient)) } else { posterior.log_likelihood(u, gradient) }
    };
    let mut gradient = vec![0.0; d];
    let mut value = density(posterior, &u, &mut gradient);
    if !value.is_finite() {
        return Err(Error::NoConvergence { what: "the search for a mode", iterations: 0, residual: f64::NAN });
    }
    let mut evaluations = 1;
    let mut hessian = [[1.0, 0.0], [0.0, 1.0]];
    for _ in 0..most {
        progress.check()?;
        let (mut plus, mut minus) = (vec![0.0; d], vec![0.0; d]);
        for i in 0..d {
            let step = 1e-4 * (1.0 + u[i].abs() * 1e-2);
            let mut at = u.clone();
            at[i] = u[i] + step;
            density(posterior, &at, &mut plus);
            at[i] = u[i] - step;
            density(posterior, &at, &mut minus);
            evaluations += 2;
            for j in 0..d {
                hessian[i][j] = (minus[j] - plus[j]) / (2.0 * step);
            }
        }
        if d == 2 {
            let cross = 0.5 * (hessian[0][1] + hessian[1][0]);
            (hessian[0][1], hessian[1][0]) = (cross, cross);
        }
        positive(&mut hessian, d, least);
        let step = solve(&hessian, &gradient);
        let gain: f64 = step.iter().zip(&gradient).map(|(s, g)| s * g).sum();
        let longest =
            step.iter().zip(&short).filter(|(_, short)| **short).fold(0.0f64, |most, (s, _)| most.max(s.abs()));
        if gain < 1e-12 {
            break;
        }
        let mut size = (2.0 / longest).min(1.0);
        loop {
            let at: Vec<f64> = u.iter().zip(&step).map(|(u, s)| u + size * s).collect();
            let mut slope = vec![0.0; d];
            let next = density(posterior, &at, &mut slope);
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
fn positive(h: &mut [[f64; 2]; 2], d: usize, least: f64) {
    let floor = |x: f64| if x.is_finite() { x.abs().max(least) } else { 1.0 };
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
    /// Computes the posterior until the error of the moments is below `tolerance` standard deviations, or as little as
    /// roundings let.
    ///
    /// # Errors
    /// [`Error::Domain`] for more than two coordinates; [`Error::NoConvergence`] where no mode is found or too many points
    /// would be needed; [`Error::Interrupted`].
    pub fn new(posterior: &mut Posterior, tolerance: f64, progress: &Progress) -> Result<Self> {
        let dimension = posterior.dimension();
        let requirement = "\"nuts\" or \"auto\" for more than two parameters";
        Error::require((1..=2).contains(&dimension), "inference", "\"quadrature\"", requirement)?;
        let modes = modes(posterior, progress)?;
        let (mode, value, factor, _) = modes[0].clone();
        let evaluations = modes.iter().map(|(.., evaluations)| evaluations).sum();
        let mut this = Self {
            dimension,
            mode,
            supports: posterior.blocks().iter().filter_map(support).collect(),
            factor,
            low: [-4.0, if dimension == 2 { -4.0 } else { 0.0 }],
            width: [8.0, if dimension == 2 { 8.0 } else { 1.0 }],
            reference: f64::NAN,
            panels: Vec::new(),
            log_evidence: f64::NAN,
            mean: Vec::new(),
            sd: Vec::new(),
            error: f64::INFINITY,
            evaluations,
        };
        // Between modes the density may be less than at an edge.
        for (other, ..) in modes.iter().take_while(|other| other.1 > value - DEPTH) {
            let v = this.v_at(other);
            for (axis, v) in v.into_iter().enumerate().take(dimension) {
                let right = (this.low[axis] + this.width[axis]).max(v.ceil() + 4.0);
                this.low[axis] = this.low[axis].min(v.floor() - 4.0);
                this.width[axis] = right - this.low[axis];
            }
        }
        this.reference = this.widen(posterior, progress)?;
        // Less than a quarter of a standard deviation to begin with, or half of one where few digits are asked for.
        let step = if tolerance < 1e-5 { 0.22 } else { 0.5 };
        let number = |axis: usize, step: f64| 4 * (this.width[axis] / (4.0 * step)).ceil() as usize;
        let points = number(dimension - 1, 2.0 * step); // which are doubled at no loss
        let [left, width] = if dimension == 1 { [0.0, 1.0] } else { [this.low[0], this.width[0]] };
        let rows = if dimension == 1 { 1 } else { number(0, step) };
        let trapezoid: Vec<f64> = (0..rows).map(|k| left + width * k as f64 / rows as f64).collect();
        this.panels = vec![this.panel(posterior, [left, left + width], Some(&trapezoid), points, progress)?];
        let wanted = tolerance.max((ROUNDINGS * this.reference.abs()).min(ENOUGH));
        loop {
            let errors = this.integrate(posterior);
            let enough = if this.evaluations < MOST[0] { wanted } else { wanted.max(ENOUGH) };
            if this.error <= enough {
                break;
            }
            if this.evaluations > MOST[1] || this.error.is_nan() {
                let iterations = this.evaluations;
                return Err(Error::NoConvergence { what: "the quadrature", iterations, residual: this.error });
            }
            let most = 0.5 * wanted / errors.len() as f64;
            let mut finer = Vec::with_capacity(2 * errors.len());
            for (panel, [outer, inner]) in std::mem::take(&mut this.panels).into_iter().zip(errors) {
                if outer + inner <= most {
                    finer.push(panel);
                    continue;
                } else if outer <= if panel.periodic { most } else { inner } {
                    finer.push(this.doubled(posterior, panel, progress)?);
                    continue;
                }
                let (points, width) = (panel.rows[0].logs.len(), panel.right - panel.left);
                let parts = if panel.periodic { (width / PANEL).ceil() as usize } else { 2 };
                let edge = |k: usize| panel.left + width * k as f64 / parts as f64;
                for k in 0..parts {
                    finer.push(this.panel(posterior, [edge(k), edge(k + 1)], None, points, progress)?);
                }
            }
            this.panels = finer;
        }
        if modes[1..].iter().any(|other| this.misses(other)) {
            let (iterations, residual) = (this.evaluations, this.error);
            return Err(Error::NoConvergence { what: "the quadrature over several modes", iterations, residual });
        }
        this.transform(progress)?;
        Ok(this)
    }

    /// The point of the box with these values of the first coordinate and the last.
    fn place(&self, first: f64, last: f64) -> [f64; 2] {
        if self.dimension == 1 { [last, 0.0] } else { [first, last] }
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

    /// The point of the box with these coordinates, but for roundings.
    fn v_at(&self, u: &[f64]) -> [f64; 2] {
        let first = (u[0] - self.mode[0]) / self.factor[0][0];
        let last = u.get(1).map_or(0.0, |u| (u - self.mode[1] - self.factor[1][0] * first) / self.factor[1][1]);
        // What is a step of a search away from the mode is none.
        [first, last].map(|x| if x.abs() < 1.0 { 0.0 } else { unspread(x) })
    }

    /// Whether a mode of much mass is too narrow for the points around it.
    fn misses(&self, (u, value, factor, _): &Mode) -> bool {
        let v = self.v_at(u);
        let mass = value + (factor[0][0] * factor[1][1]).ln() + self.dimension as f64 * (2.0 * PI).sqrt().ln();
        let found = self.panels.iter().find(|panel| v[0] <= panel.right).or(self.panels.last());
        let Some(panel) = found.filter(|_| v != [0.0; 2] && mass > self.log_evidence + self.error.max(1e-9).ln())
        else {
            return false;
        };
        let rows = (panel.right - panel.left) / panel.rows.len() as f64;
        let points = self.width[self.dimension - 1] / panel.rows[0].logs.len() as f64;
        let steps = if self.dimension == 1 { [points, 0.0] } else { [rows, points] };
        (0..self.dimension)
            .any(|axis| self.factor[axis][axis] * (SPREAD * v[axis]).cosh() * steps[axis] > factor[axis][axis])
    }

    /// Moves the four edges until all that is beyond them is negligible; returns the largest log density seen.
    fn widen(&mut self, posterior: &mut Posterior, progress: &Progress) -> Result<f64> {
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
                return Ok(best[0]);
            }
        }
        Err(Error::NoConvergence { what: "the box around the posterior", iterations: 60, residual: self.width[0] })
    }

    /// The row at a value of the first coordinate, of twice the points where half of them are known.
    fn row(&mut self, posterior: &mut Posterior, first: f64, known: &[f64], points: usize) -> Row {
        let (axis, naturals) = (self.dimension - 1, posterior.naturals());
        let (mut u, mut natural, mut centre) = ([0.0; 2], vec![0.0; naturals], vec![0.0; naturals]);
        posterior.natural(&self.mode, &mut centre);
        let mut logs = Vec::with_capacity(points);
        let mut sums = [const { Vec::new() }; 3].map(|_: Vec<f64>| vec![0.0; 1 + 2 * naturals]);
        for j in 0..points {
            let last = self.low[axis] + self.width[axis] * j as f64 / points as f64;
            let stretch = self.u_at(self.place(first, last), &mut u[..self.dimension]);
            if known.is_empty() || j % 2 == 1 {
                logs.push(posterior.log_density(&u[..self.dimension], None) + stretch);
                self.evaluations += 1;
            } else {
                logs.push(known[j / 2]);
            }
            let density = (logs[j] - self.reference).exp();
            // What is far below the largest may have the moments of a heavy tail.
            if density < f64::MIN_POSITIVE {
                continue;
            }
            posterior.natural(&u[..self.dimension], &mut natural);
            for (skip, sums) in [1, 2, 4].into_iter().zip(&mut sums).filter(|(skip, _)| j % skip == 0) {
                let mass = density * skip as f64 * self.width[axis] / points as f64;
                sums[0] += mass;
                for k in 0..naturals {
                    let shift = natural[k] - centre[k];
                    sums[1 + k] += mass * shift;
                    sums[1 + naturals + k] += mass * shift * shift;
                }
            }
        }
        Row { first, logs, sums, series: FourierSeries::default() }
    }

    /// A panel with rows at the nodes of the trapezoid rule, if given, else at those of Clenshaw and Curtis.
    fn panel(
        &mut self,
        posterior: &mut Posterior,
        [left, right]: [f64; 2],
        trapezoid: Option<&[f64]>,
        points: usize,
        progress: &Progress,
    ) -> Result<Panel> {
        let clenshaw = RULE.nodes.map(|node| 0.5 * (left + right + (right - left) * node));
        let row = |&first: &f64| {
            progress.check()?;
            Ok(self.row(posterior, first, &[], points))
        };
        let rows = trapezoid.unwrap_or(&clenshaw).iter().map(row).collect::<Result<_>>()?;
        let masses = Interpolant::Chebyshev([0.0; NODES]);
        Ok(Panel { left, right, periodic: trapezoid.is_some(), rows, masses, mass: 0.0 })
    }

    /// The panel with twice the points in each of its rows.
    fn doubled(&mut self, posterior: &mut Posterior, mut panel: Panel, progress: &Progress) -> Result<Panel> {
        for row in &mut panel.rows {
            progress.check()?;
            *row = self.row(posterior, row.first, &row.logs, 2 * row.logs.len());
        }
        Ok(panel)
    }

    /// Sets the moments and their error; returns what each panel adds to it along the first coordinate and along the last.
    fn integrate(&mut self, posterior: &mut Posterior) -> Vec<[f64; 2]> {
        let naturals = posterior.naturals();
        let found: Vec<_> = self.panels.iter().map(Panel::integrals).collect();
        let mut total = vec![0.0; 1 + 2 * naturals];
        for (sums, _) in &found {
            total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
        let mut centre = vec![0.0; naturals];
        posterior.natural(&self.mode, &mut centre);
        let mass = total[0];
        let shifts: Vec<f64> = total[1..=naturals].iter().map(|sum| sum / mass).collect();
        let squares = total[1 + naturals..].iter().zip(&shifts);
        self.sd = squares.map(|(sum, shift)| (sum / mass - shift * shift).max(0.0).sqrt()).collect();
        self.mean = centre.iter().zip(&shifts).map(|(centre, shift)| centre + shift).collect();
        let cell = self.factor[0][0] * self.factor[1][1];
        self.log_evidence = self.reference + (mass * cell).ln();
        let relative = |errors: &[f64]| {
            let of = |k: usize, sd: f64| (errors[1 + k] / sd).max(0.5 * errors[1 + naturals + k] / (sd * sd));
            let worst = self.sd.iter().enumerate().map(|(k, &sd)| of(k, sd)).fold(errors[0], f64::max);
            if errors.iter().sum::<f64>().is_nan() { f64::NAN } else { worst / mass }
        };
        let errors: Vec<[f64; 2]> =
            found.iter().map(|(_, [outer, inner])| [relative(outer), relative(inner)]).collect();
        self.error = errors.iter().flatten().sum();
        errors
    }

    /// Makes the polynomials through the points.
    fn transform(&mut self, progress: &Progress) -> Result<()> {
        let roots = |size: usize| -> Vec<[f64; 2]> {
            (0..size).map(|k| 2.0 * PI * k as f64 / size as f64).map(|angle| [angle.cos(), angle.sin()]).collect()
        };
        let width = self.width[self.dimension - 1];
        for panel in &mut self.panels {
            let known = roots(panel.rows[0].logs.len());
            for row in &mut panel.rows {
                progress.check()?;
                let densities: Vec<f64> = row.logs.iter().map(|log| width * (log - self.reference).exp()).collect();
                row.series = FourierSeries::through(&densities, &known);
            }
            let masses: Vec<f64> = panel.rows.iter().map(|row| row.sums[0][0]).collect();
            panel.masses = if panel.periodic {
                Interpolant::Fourier(FourierSeries::through(&masses, &roots(masses.len())))
            } else {
                let coefficient = |row: &[f64; NODES]| row.iter().zip(&masses).map(|(x, mass)| x * mass).sum();
                Interpolant::Chebyshev(std::array::from_fn(|k| coefficient(&RULE.coefficients[k])))
            };
            panel.mass = panel.at(1.0).1;
        }
        Ok(())
    }

    /// Independent draws in unconstrained coordinates, row by row; draw `i` has the address `i` of the key.
    pub fn draws(&self, number: usize, key: [u64; 2], progress: &Progress) -> Result<Vec<f64>> {
        let axis = self.dimension - 1;
        // Masses of the panels before each, and distribution functions to guess from: of each panel and of each row.
        let mut before = vec![0.0];
        self.panels.iter().for_each(|panel| before.push(before[before.len() - 1] + panel.mass.max(0.0)));
        let guesses = |row: &Row| {
            let m = row.logs.len();
            let mut sums = vec![0.0; m + 1];
            for j in 0..m {
                let [left, right] = [j, (j + 1) % m].map(|at| (row.logs[at] - self.reference).exp());
                sums[j + 1] = sums[j] + 0.5 * (left + right);
            }
            sums
        };
        let share = |panel: &Panel| (0..=4 * NODES).map(|k| panel.at(k as f64 / (4 * NODES) as f64).1).collect();
        let ends: Vec<Vec<f64>> = self.panels.iter().map(share).collect();
        let rows: Vec<Vec<Vec<f64>>> = self.panels.iter().map(|p| p.rows.iter().map(guesses).collect()).collect();
        let mut out = vec![0.0; number * self.dimension];
        for (draw, u) in out.chunks_exact_mut(self.dimension).enumerate() {
            let mut stream = Stream::new(key, PURPOSE, 0, draw as u64);
            let (mut index, mut t) = (0, 0.0);
            if self.dimension == 2 {
                let target = stream.uniform() * before[self.panels.len()];
                index = before.partition_point(|&sum| sum <= target).clamp(1, self.panels.len()) - 1;
                let (panel, target) = (&self.panels[index], target - before[index]);
                t = invert(|t| panel.at(t), target, place(&ends[index], target / panel.mass));
            }
            let panel = &self.panels[index];
            let basis = panel.basis(t);
            let mut series = FourierSeries::zeros(panel.rows[0].series.re.len());
            basis.iter().zip(&panel.rows).for_each(|(l, row)| series.add(&row.series, *l));
            // A first guess is of the row that counts most.
            let nearest = (0..basis.len()).fold(0, |best, j| if basis[j] > basis[best] { j } else { best });
            let p = stream.uniform();
            let first = panel.left + (panel.right - panel.left) * t;
            let t = invert(|t| series.at(t), p * series.re[0], place(&rows[index][nearest], p));
            self.u_at(self.place(first, self.low[axis] + self.width[axis] * t), u);
            if draw % 1024 == 0 {
                progress.check()?;
            }
        }
        Ok(out)
    }

    /// The probability that one coordinate is at most `u`.
    pub fn cdf(&self, coordinate: usize, u: f64) -> f64 {
        let total: f64 = self.panels.iter().map(|panel| panel.mass).sum();
        let v = |first: f64| {
            let shift = if coordinate == 0 { 0.0 } else { self.factor[1][0] * spread(first) };
            unspread((u - self.mode[coordinate] - shift) / self.factor[coordinate][coordinate])
        };
        let mut below = 0.0;
        for panel in &self.panels {
            if coordinate + 1 < self.dimension {
                below += panel.at(panel.share(v(0.0))).1;
                continue;
            }
            // The masses below the line in each row, by the panel's rule.
            for (j, row) in panel.rows.iter().enumerate() {
                let share = (v(row.first) - self.low[coordinate]) / self.width[coordinate];
                below += panel.weight(j) * row.series.at(share.clamp(0.0, 1.0)).1;
            }
        }
        (below / total).clamp(0.0, 1.0)
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
