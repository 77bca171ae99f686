//! Coordinates of groups with a common law in which each is about standard normal, given that law and the data.
//!
//! A group's number is y = m + t z with z standard normal before the data, m and t of the law ([`super::population`]). What
//! the data say of y is taken as a normal law too, ln L(y) ~ q y - p y^2 / 2. Then y given (m, t) is normal with precision
//! p + 1/t^2, so that
//!
//!   z = t (q - p m) r + sqrt(r) w,   r = 1 / (1 + p t^2),
//!
//! leaves w standard normal whatever m and t are. Where the data know nothing (p = 0) w is z, the coordinate that is not
//! centred; where they know all, y = q/p + w / sqrt(p), the centred one; and each group moves from one to the other as t
//! does, which no fixed choice between the two can. The mean of the law, before the data normal with mean m0 and standard
//! deviation d0, is likewise normal given t:
//!
//!   m = (B + sqrt(A) v) / A,   A = 1/d0^2 + sum p r,   B = m0/d0^2 + sum q r.
//!
//! The logarithm of t has a prior that ends in a wall where t has reached its scale c, so that t = c ln(1 + e^s), a logarithm
//! on the left and t itself on the right; so has the strength of a law of shares, where its prior has a wall.
//!
//! A stick of shares has y = logit v, v ~ Beta(a, b), with tails of rates a to the left and b to the right: with e(w) =
//! ln(1 + e^w),
//!
//!   y = g + R e(w) - L e(-w),   1/L^2 = p' + 1 / (1/a + 1/a^2 + 1/(1 + b)),   1/R^2 = p" + 1 / (1/b + 1/b^2 + 1/(1 + a)),
//!
//! p' and p" what the data say of y to either side: of a share that they only bound from above, p' = 0. The centre g weighs
//! ln(a/b) and the data's value as above, by the mean of both precisions before the data.
//!
//! The posterior is the same whatever p and q are: where the likelihood is not normal, v and w only are less so. They come of
//! the likelihood's slopes at a mode and to either side: for numbers one standard deviation away, for sticks where the
//! likelihood has fallen, which may be far from the mode or, for a share that is only bounded, on one side alone.
//!
//! Sources: O. Papaspiliopoulos, G. Roberts, M. Sköld (2007), A general framework for the parametrization of hierarchical
//! models, section 4 (coordinates that depend on the data); M. Betancourt, M. Girolami (2015), Hamiltonian Monte Carlo for
//! hierarchical models.

use super::population::{Stick, sticks};
use super::simplex::{add_helmert_transposed, soft_back, soft_log, softmax};
use super::{Posterior, ScalarPrior};

/// How often p and q are found with the standard deviations that they gave, at first those of the law. Not tuned.
const ROUNDS: usize = 6;
/// How far a fall of the likelihood of a stick is looked for, in its widths before the data or of four logits. Not tuned.
const REACH: f64 = 3.0;
/// Where the search begins, in logits, and how often it looks.
const NEAR: f64 = 1e-4;
const LOOKS: usize = 25;

/// The coordinate s of the logarithm of a positive number.
#[derive(Clone, Debug)]
struct Softened {
    /// c, where there is a wall.
    scale: Option<f64>,
    /// The slope of ln t in s at the last point, and that of its logarithm.
    slopes: [f64; 2],
}

impl Softened {
    fn new(prior: ScalarPrior) -> Self {
        Self { scale: prior.wall(), slopes: [1.0, 0.0] }
    }

    /// Replaces s by ln t; the logarithm of the stretch.
    fn place(&mut self, coordinate: &mut f64) -> f64 {
        let Some(scale) = self.scale else { return 0.0 };
        let log;
        (log, self.slopes) = soft_log(*coordinate);
        *coordinate = scale.ln() + log;
        self.slopes[0].ln()
    }

    fn pull(&self, gradient: &mut f64) {
        *gradient = *gradient * self.slopes[0] + self.slopes[1];
    }

    fn back(&self, coordinate: &mut f64) {
        if let Some(scale) = self.scale {
            *coordinate = soft_back(coordinate.exp() / scale);
        }
    }
}

/// A fall of a slope, per unit, as a precision; none where it is not a positive number.
fn precision(fall: f64, step: f64) -> f64 {
    let found = fall / step;
    if found > 0.0 && found.is_finite() { found } else { 0.0 }
}

/// The coordinates (v, s, w) of a block of numbers.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    start: usize,
    /// The mean and the standard deviation of m before the data.
    centre: [f64; 2],
    spread: Softened,
    /// What the data say of each group: p and q.
    sites: Vec<[f64; 2]>,
    /// At the last point: m and t, v, r and w of each group.
    law: [f64; 2],
    standard: f64,
    kept: Vec<[f64; 2]>,
}

impl Numbers {
    /// Finds p and q near the mode u, where the block of these laws has its coordinates from `start` on.
    pub fn new(posterior: &mut Posterior, start: usize, u: &[f64], size: usize, laws: [ScalarPrior; 2]) -> Self {
        let [centre, spread] = laws;
        let centre = match centre {
            ScalarPrior::Normal { mean, sd } => [mean, sd],
            _ => [0.0, f64::INFINITY],
        };
        let (sites, kept) = (vec![[0.0; 2]; size], vec![[1.0, 0.0]; size]);
        let mut found =
            Self { start, centre, spread: Softened::new(spread), sites, law: [0.0; 2], standard: 0.0, kept };
        found.look(u);
        let [mut here, mut plus, mut minus] = std::array::from_fn(|_| vec![0.0; u.len()]);
        posterior.log_likelihood(u, &mut here);
        let (mut moved, [m, t]) = (u.to_vec(), found.law);
        for _ in 0..ROUNDS {
            // The groups' numbers do not meet in the likelihood: all are moved at once.
            for (slope, sign) in [(&mut plus, 1.0), (&mut minus, -1.0)] {
                for (i, [rest, _]) in found.kept.iter().enumerate() {
                    moved[start + 2 + i] = u[start + 2 + i] + sign * rest.sqrt();
                }
                posterior.log_likelihood(&moved, slope);
            }
            for (i, site) in found.sites.iter_mut().enumerate() {
                let at = start + 2 + i;
                let fall = (minus[at] - here[at]).min(here[at] - plus[at]);
                let p = precision(fall, found.kept[i][0].sqrt() * t * t);
                *site = if p > 0.0 { [p, here[at] / t + p * (m + t * u[at])] } else { [0.0; 2] };
            }
            found.look(u);
        }
        found
    }

    /// Finds m, t and r.
    fn look(&mut self, coordinates: &[f64]) {
        let t = coordinates[self.start + 1].exp();
        self.law = [coordinates[self.start], t];
        for (kept, [p, _]) in self.kept.iter_mut().zip(&self.sites) {
            kept[0] = 1.0 / (1.0 + p * t * t);
        }
    }

    /// A and B.
    fn sums(&self) -> [f64; 2] {
        let [mean, sd] = self.centre;
        let mut sums = [1.0 / (sd * sd), mean / (sd * sd)];
        for ([p, q], [rest, _]) in self.sites.iter().zip(&self.kept) {
            sums[0] += p * rest;
            sums[1] += q * rest;
        }
        sums
    }

    /// Replaces (v, s, w) by (m, ln t, z); the logarithm of the stretch.
    pub fn place(&mut self, coordinates: &mut [f64]) -> f64 {
        let mut stretch = self.spread.place(&mut coordinates[self.start + 1]);
        self.look(coordinates);
        let [a, b] = self.sums();
        self.standard = coordinates[self.start];
        let (m, t) = (b / a + self.standard / a.sqrt(), self.law[1]);
        (self.law[0], coordinates[self.start]) = (m, m);
        stretch -= 0.5 * a.ln();
        let own = coordinates[self.start + 2..].iter_mut().zip(&mut self.kept);
        for ((z, [rest, w]), [p, q]) in own.zip(&self.sites) {
            *w = *z;
            *z = t * (q - p * m) * *rest + rest.sqrt() * *w;
            stretch += 0.5 * rest.ln();
        }
        stretch
    }

    /// Replaces a gradient in (m, ln t, z) by that in (v, s, w), with that of the stretch.
    pub fn pull(&mut self, gradient: &mut [f64]) {
        let ([m, t], [a, b]) = (self.law, self.sums());
        let (law, own) = gradient[self.start..].split_at_mut(2);
        let (mut by_centre, mut by_log_spread, mut bends) = (law[0], law[1], [0.0; 2]);
        for ((slope, [rest, w]), [p, q]) in own.iter_mut().zip(&self.kept).zip(&self.sites) {
            // 1 - r without cancellation; by ln t: dr = -2 r (1 - r), d(t r) = t r (2 r - 1), d sqrt(r) = -sqrt(r) (1 - r).
            let (root, known) = (rest.sqrt(), p * t * t * rest);
            by_centre -= *slope * p * t * rest;
            by_log_spread += *slope * ((q - p * m) * t * rest * (rest - known) - w * root * known) - known;
            bends[0] -= 2.0 * p * rest * known;
            bends[1] -= 2.0 * q * rest * known;
            *slope *= root;
        }
        let moves = (bends[1] - b / a * bends[0]) / a - 0.5 * self.standard * bends[0] / (a * a.sqrt());
        law[0] = by_centre / a.sqrt();
        law[1] = by_log_spread + by_centre * moves - 0.5 * bends[0] / a;
        self.spread.pull(&mut law[1]);
    }

    /// Replaces (m, ln t, z) by (v, s, w).
    pub fn back(&mut self, coordinates: &mut [f64]) {
        self.look(coordinates);
        let ([m, t], [a, b]) = (self.law, self.sums());
        let own = coordinates[self.start + 2..].iter_mut().zip(&self.kept);
        for ((z, [rest, _]), [p, q]) in own.zip(&self.sites) {
            *z = (*z - t * (q - p * m) * rest) / rest.sqrt();
        }
        coordinates[self.start] = (m - b / a) * a.sqrt();
        self.spread.back(&mut coordinates[self.start + 1]);
    }
}

/// What the data say of one logit: the precisions to the left and the right, and q with the larger of them.
#[derive(Clone, Copy, Debug, Default)]
struct Side {
    left: f64,
    right: f64,
    q: f64,
}

/// One stick's coordinate, given its law: the centre and the squared widths, with their derivatives in a and b.
struct Skewed {
    centre: f64,
    squares: [f64; 2],
    by_a: [f64; 3],
    by_b: [f64; 3],
}

impl Skewed {
    fn new(stick: &Stick, side: Side) -> Self {
        let (a, b) = (stick.a, stick.b);
        let tail = |near: f64, far: f64| 1.0 / near + 1.0 / (near * near) + 1.0 / (1.0 + far);
        let near_bend = |x: f64| -(1.0 + 2.0 / x) / (x * x);
        let far_bend = |x: f64| -1.0 / ((1.0 + x) * (1.0 + x));
        // Before the data, left and right.
        let wide = [tail(a, b), tail(b, a)];
        let wide_by_a = [near_bend(a), far_bend(a)];
        let wide_by_b = [far_bend(b), near_bend(b)];
        let p = side.left.max(side.right);
        let prior = 0.5 * (1.0 / wide[0] + 1.0 / wide[1]);
        let bend = |wide_by: [f64; 2]| -0.5 * (wide_by[0] / (wide[0] * wide[0]) + wide_by[1] / (wide[1] * wide[1]));
        let centre = (side.q + prior * stick.place) / (p + prior);
        let shift = (stick.place - centre) / (p + prior);
        let squares = [wide[0] / (1.0 + side.left * wide[0]), wide[1] / (1.0 + side.right * wide[1])];
        let narrowed = [0, 1].map(|i| (squares[i] / wide[i]) * (squares[i] / wide[i]));
        let by = |wide_by: [f64; 2], place_by: f64| {
            let centre_by = shift * bend(wide_by) + prior * place_by / (p + prior);
            [centre_by, narrowed[0] * wide_by[0], narrowed[1] * wide_by[1]]
        };
        Self { centre, squares, by_a: by(wide_by_a, 1.0 / a), by_b: by(wide_by_b, -1.0 / b) }
    }
}

/// `ln(1 + e^w)` and its derivative.
fn rise(w: f64) -> (f64, f64) {
    let e = (-w.abs()).exp();
    if w > 0.0 { (w + e.ln_1p(), 1.0 / (1.0 + e)) } else { (e.ln_1p(), e / (1.0 + e)) }
}

/// The coordinates (law, s, w) of a block of shares.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    start: usize,
    strength: Softened,
    /// By coordinate of groups.
    sides: Vec<Side>,
    /// At the last point: w; the mean and the strength of the law, and what is pulled back to the mean.
    kept: Vec<f64>,
    mean: Vec<f64>,
    total: f64,
    by_mean: Vec<f64>,
}

impl Shares {
    /// As [`Numbers::new`].
    pub fn new(
        posterior: &mut Posterior,
        start: usize,
        u: &[f64],
        size: usize,
        categories: usize,
        strength: ScalarPrior,
    ) -> Self {
        let free = categories - 1;
        let mut found = Self {
            start,
            strength: Softened::new(strength),
            sides: vec![Side::default(); size * free],
            kept: vec![0.0; size * free],
            mean: vec![0.0; categories],
            total: 0.0,
            by_mean: vec![0.0; categories],
        };
        found.look(u);
        let [mut here, mut there] = [u.to_vec(), u.to_vec()];
        posterior.log_likelihood(u, &mut here);
        let mut moved = u.to_vec();
        for (j, stick) in sticks(&found.mean, found.total).enumerate() {
            let at = |g: usize| start + categories + g * free + j;
            let wide = Skewed::new(&stick, Side::default()).squares.map(f64::sqrt);
            // By side and group: how far away the likelihood falls, and its slope there; none where it does not.
            let falls = [(-1.0, wide[0]), (1.0, wide[1])].map(|(sign, wide)| {
                // Twice as far again and again, as far tails may be flat, then halved: below, above, none above yet.
                let mut brackets = vec![[0.0, f64::INFINITY]; size];
                let mut falls = vec![None; size];
                let next = |[low, high]: [f64; 2]| match high.is_finite() {
                    true => 0.5 * (low + high),
                    false => (2.0 * low).clamp(NEAR, REACH * wide.max(4.0)),
                };
                for _ in 0..LOOKS {
                    for g in 0..size {
                        moved[at(g)] = u[at(g)] + sign * next(brackets[g]) / stick.scale;
                    }
                    posterior.log_likelihood(&moved, &mut there);
                    for g in 0..size {
                        let far = next(brackets[g]);
                        let (before, slope) = (here[at(g)] / stick.scale, there[at(g)] / stick.scale);
                        if sign * (before - slope) * far.min(1.0) < 1.0 {
                            brackets[g][0] = far;
                        } else {
                            brackets[g][1] = far;
                            falls[g] = Some([far, slope]);
                        }
                    }
                }
                (0..size).for_each(|g| moved[at(g)] = u[at(g)]);
                falls
            });
            for g in 0..size {
                let (y, before) = (stick.place + stick.scale * u[at(g)], here[at(g)] / stick.scale);
                let one = |sign: f64, [far, slope]: [f64; 2]| {
                    let steep = (before - slope).abs();
                    (steep * steep, steep * steep * (y + sign * far) - sign * steep)
                };
                let side = match (falls[0][g], falls[1][g]) {
                    (Some([left, rising]), Some([right, falling])) => {
                        let p = (rising - falling) / (left + right);
                        let q = p * (y + 0.5 * (right - left)) + 0.5 * (rising + falling);
                        Side { left: p, right: p, q }
                    }
                    (Some(fall), None) => {
                        let (left, q) = one(-1.0, fall);
                        Side { left, right: 0.0, q }
                    }
                    (None, Some(fall)) => {
                        let (right, q) = one(1.0, fall);
                        Side { left: 0.0, right, q }
                    }
                    (None, None) => Side::default(),
                };
                let known = side.left.is_finite() && side.right.is_finite() && side.q.is_finite();
                found.sides[g * free + j] = if known { side } else { Side::default() };
            }
        }
        found
    }

    /// The number of categories.
    fn categories(&self) -> usize {
        self.mean.len()
    }

    /// Finds the mean and the strength.
    fn look(&mut self, coordinates: &[f64]) {
        let free = self.categories() - 1;
        let law = &coordinates[self.start..=self.start + free];
        softmax(&law[..free], &mut self.mean);
        self.total = law[free].exp();
    }

    /// Replaces (law, s, w) by (law, ln strength, z); the logarithm of the stretch.
    pub fn place(&mut self, coordinates: &mut [f64]) -> f64 {
        let (categories, free) = (self.categories(), self.categories() - 1);
        let mut stretch = self.strength.place(&mut coordinates[self.start + free]);
        self.look(coordinates);
        let own = &mut coordinates[self.start + categories..];
        for (j, stick) in sticks(&self.mean, self.total).enumerate() {
            for k in (j..self.sides.len()).step_by(free) {
                let skewed = Skewed::new(&stick, self.sides[k]);
                let [left, right] = skewed.squares.map(f64::sqrt);
                let w = own[k];
                self.kept[k] = w;
                let ((up, up_slope), (down, down_slope)) = (rise(w), rise(-w));
                own[k] = (skewed.centre + right * up - left * down - stick.place) / stick.scale;
                stretch += ((right * up_slope + left * down_slope) / stick.scale).ln();
            }
        }
        stretch
    }

    /// Replaces a gradient in (law, ln strength, z) by that in (law, s, w), with that of the stretch.
    pub fn pull(&mut self, gradient: &mut [f64]) {
        let (categories, free) = (self.categories(), self.categories() - 1);
        let (law, own) = gradient[self.start..].split_at_mut(categories);
        self.by_mean.fill(0.0);
        for (j, stick) in sticks(&self.mean, self.total).enumerate() {
            let (mut by_a, mut by_b) = (0.0, 0.0);
            for k in (j..self.sides.len()).step_by(free) {
                let skewed = Skewed::new(&stick, self.sides[k]);
                let [left, right] = skewed.squares.map(f64::sqrt);
                let w = self.kept[k];
                let ((up, up_slope), (down, down_slope)) = (rise(w), rise(-w));
                let (z, slope) = (
                    (skewed.centre + right * up - left * down - stick.place) / stick.scale,
                    right * up_slope + left * down_slope,
                );
                let by_y = own[k] / stick.scale;
                let by_right = (by_y * up + up_slope / slope) * 0.5 / right;
                let by_left = (-by_y * down + down_slope / slope) * 0.5 / left;
                // z = (y - place) / scale, and the stretch has - ln scale.
                let by_scale = -(own[k] * z + 1.0) / stick.scale;
                let by = |own: [f64; 3]| by_y * own[0] + by_left * own[1] + by_right * own[2];
                by_a += by(skewed.by_a) - by_y / stick.a + by_scale * stick.bends[0];
                by_b += by(skewed.by_b) + by_y / stick.b + by_scale * stick.bends[1];
                own[k] = by_y * slope + up_slope * down_slope * (right - left) / slope;
            }
            // a and b are the strength times sums of the mean.
            self.by_mean[j] += self.total * by_a;
            self.by_mean[j + 1..].iter_mut().for_each(|sum| *sum += self.total * by_b);
        }
        let total: f64 = self.by_mean.iter().zip(&self.mean).map(|(by, mean)| by * mean).sum();
        self.by_mean.iter_mut().zip(&self.mean).for_each(|(by, mean)| *by = mean * (*by - total));
        add_helmert_transposed(&self.by_mean, law);
        law[free] += total;
        self.strength.pull(&mut law[free]);
    }

    /// Replaces (law, ln strength, z) by (law, s, w).
    pub fn back(&mut self, coordinates: &mut [f64]) {
        let (categories, free) = (self.categories(), self.categories() - 1);
        self.look(coordinates);
        for (j, stick) in sticks(&self.mean, self.total).enumerate() {
            for k in (j..self.sides.len()).step_by(free) {
                let skewed = Skewed::new(&stick, self.sides[k]);
                let [left, right] = skewed.squares.map(f64::sqrt);
                let z = &mut coordinates[self.start + categories + k];
                // R e(w) - L e(-w) = y rises with slopes from L to R, all of w - y/L and w - y/R within ln 2.
                let y = stick.place + stick.scale * *z - skewed.centre;
                let mut w = if y > 0.0 { y / right } else { y / left };
                for _ in 0..60 {
                    let ((up, up_slope), (down, down_slope)) = (rise(w), rise(-w));
                    let step = (right * up - left * down - y) / (right * up_slope + left * down_slope);
                    w -= step;
                    if step.abs() <= 1e-14 * (1.0 + w.abs()) {
                        break;
                    }
                }
                *z = w;
            }
        }
        self.strength.back(&mut coordinates[self.start + free]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discrete::Bits;
    use crate::histogram::Categories;
    use crate::matrix::cholesky;
    use crate::population::Selected;
    use crate::{Likelihood, PriorBlock, SummedLikelihood, Support};

    type Change<'a> = dyn FnMut(&mut [f64]) -> f64 + 'a;

    /// A sum of all coordinates with weights of both signs, whose gradient is the weights.
    fn weights(d: usize) -> Vec<f64> {
        (0..d).map(|i| 0.7 - 0.4 * (i % 5) as f64).collect()
    }

    /// The Jacobian of a change of coordinates by central differences, its stretch, and the slopes of the weighted sum.
    fn differences(place: &mut Change<'_>, w: &[f64]) -> (f64, Vec<f64>) {
        let (d, step) = (w.len(), 1e-5);
        let mut at = |i: usize, sign: f64| {
            let mut moved = w.to_vec();
            moved[i] += sign * step;
            let stretch = place(&mut moved);
            (moved, stretch)
        };
        let (mut rows, mut slopes) = (Vec::new(), Vec::new());
        for i in 0..d {
            let ((up, more), (down, less)) = (at(i, 1.0), at(i, -1.0));
            let row: Vec<f64> = up.iter().zip(&down).map(|(up, down)| (up - down) / (2.0 * step)).collect();
            let sum: f64 = row.iter().zip(weights(d)).map(|(slope, weight)| slope * weight).sum();
            slopes.push(sum + (more - less) / (2.0 * step));
            rows.push(row);
        }
        let mut square: Vec<f64> =
            (0..d * d).map(|at| rows[at / d].iter().zip(&rows[at % d]).map(|(x, y)| x * y).sum()).collect();
        (cholesky(&mut square, d), slopes)
    }

    fn check(
        d: usize,
        place: &mut Change<'_>,
        pull: &mut dyn FnMut(&mut [f64]) -> Vec<f64>,
        back: &mut dyn FnMut(&mut [f64]),
        what: &str,
    ) {
        for shift in [-1.5, -0.3, 0.0, 0.4, 1.2] {
            let w: Vec<f64> = (0..d).map(|i| shift + 0.9 * ((7 * i + 3) as f64).sin()).collect();
            let (stretch, slopes) = differences(place, &w);
            let mut u = w.clone();
            let own = place(&mut u);
            assert!((own - stretch).abs() < 1e-6 * (1.0 + stretch.abs()), "{what} {shift}: {own} {stretch}");
            let pulled = pull(&mut weights(d));
            for (pulled, slope) in pulled.iter().zip(&slopes) {
                assert!((pulled - slope).abs() < 1e-6 * (1.0 + slope.abs()), "{what} {shift}: {pulled} {slope}");
            }
            back(&mut u);
            for (back, w) in u.iter().zip(&w) {
                assert!((back - w).abs() < 1e-8 * (1.0 + w.abs()), "{what} {shift}: {back} {w}");
            }
        }
    }

    fn posterior(block: PriorBlock, parts: Vec<Box<dyn Likelihood>>, law: usize) -> Posterior {
        let all = block.naturals();
        let each = (all - law) / parts.len();
        let placed = |(g, part): (usize, Box<dyn Likelihood>)| -> Box<dyn Likelihood> {
            let first = law + g * each;
            Box::new(Selected::new(part, (first..first + each).collect(), all))
        };
        let parts = parts.into_iter().enumerate().map(placed).collect();
        Posterior::new(vec![block], Box::new(SummedLikelihood::new(parts, all))).expect("of one shape")
    }

    const SPREADS: [ScalarPrior; 4] = [
        ScalarPrior::HalfNormal { sd: 0.8 },
        ScalarPrior::Gamma { shape: 2.0, rate: 3.0 },
        ScalarPrior::Normal { mean: 0.2, sd: 1.0 },
        ScalarPrior::LogNormal { mean: -0.5, sd: 0.7 },
    ];

    #[test]
    fn coordinates_of_numbers_have_their_jacobian_and_gradient() {
        for spread in SPREADS {
            for users in [[0.0, 0.0, 0.0, 0.0], [3.0, 0.0, 40.0, 2000.0], [2e6, 1e6, 5e5, 3e6]] {
                let centre = ScalarPrior::Normal { mean: 0.3, sd: 1.2 };
                let block = PriorBlock::Numbers { support: Support::Unit, centre, spread, size: 4 };
                let bits = |n: f64| -> Box<dyn Likelihood> { Box::new(Bits::new(0.4 * n, 0.6 * n, 0.8)) };
                let mut posterior = posterior(block, users.map(bits).to_vec(), 2);
                let u = posterior.start();
                let warp = Numbers::new(&mut posterior, 0, &u, 4, [centre, spread]);
                assert!(users.iter().zip(&warp.sites).all(|(n, [p, _])| (*n > 100.0) <= (*p > 0.01 * n)), "{users:?}");
                let warp = std::cell::RefCell::new(warp);
                check(
                    6,
                    &mut |w| warp.borrow_mut().place(w),
                    &mut |g| {
                        warp.borrow_mut().pull(g);
                        g.to_vec()
                    },
                    &mut |u| warp.borrow_mut().back(u),
                    &format!("{spread:?} {users:?}"),
                );
            }
        }
    }

    #[test]
    fn coordinates_of_shares_have_their_jacobian_and_gradient() {
        for strength in SPREADS {
            for users in [[0.0, 0.0], [3.0, 500.0], [4e5, 1e6]] {
                let concentration = vec![1.0, 2.0, 1.0];
                let block = PriorBlock::Shares { concentration, strength, size: 2 };
                let counts = |n: f64| -> Box<dyn Likelihood> {
                    Box::new(Categories::new(vec![0.5 * n, 0.0, 0.5 * n], 0.9, 0.05))
                };
                let mut posterior = posterior(block, users.map(counts).to_vec(), 4);
                let u = posterior.start();
                let warp = Shares::new(&mut posterior, 0, &u, 2, 3, strength);
                let warp = std::cell::RefCell::new(warp);
                check(
                    7,
                    &mut |w| warp.borrow_mut().place(w),
                    &mut |g| {
                        warp.borrow_mut().pull(g);
                        g.to_vec()
                    },
                    &mut |u| warp.borrow_mut().back(u),
                    &format!("{strength:?} {users:?}"),
                );
            }
        }
    }

    /// Where likelihoods are normal, the density by v and w is that of independent standard normal numbers.
    #[test]
    fn numbers_of_which_normal_data_tell_are_independent_and_standard_normal() {
        use crate::gaussian::GaussianSums;
        let (centre, spread) = (ScalarPrior::Normal { mean: 0.5, sd: 2.0 }, ScalarPrior::HalfNormal { sd: 1.0 });
        let block = PriorBlock::Numbers { support: Support::Real, centre, spread, size: 3 };
        let fixed =
            |n: f64| -> Box<dyn Likelihood> { Box::new(Fixed(GaussianSums::of_sums(n, 1.0 - 0.1 * n.ln(), n))) };
        let mut posterior = posterior(block, [2.0, 50.0, 1e5].map(fixed).to_vec(), 2);
        let u = posterior.start();
        let mut warp = Numbers::new(&mut posterior, 0, &u, 3, [centre, spread]);
        for s in [-8.0, -1.0, 0.5, 3.0] {
            for shift in [-3.0, 0.2, 1.0] {
                let w = [shift, s, 0.7 * shift, -0.4 * shift, 1.0 - shift];
                let (mut at, mut gradient) = (w, [0.0; 5]);
                warp.place(&mut at);
                posterior.log_density(&at, Some(&mut gradient));
                warp.pull(&mut gradient);
                for i in [0, 2, 3, 4] {
                    assert!((gradient[i] + w[i]).abs() < 1e-5, "{s} {shift} {i}: {gradient:?} {w:?}");
                }
            }
        }
    }

    /// Normal numbers of known standard deviation 1.
    #[derive(Clone)]
    struct Fixed(crate::gaussian::GaussianSums);

    impl Likelihood for Fixed {
        fn value(&mut self, natural: &[f64], gradient: Option<&mut [f64]>) -> f64 {
            let mut slope = [0.0; 2];
            let value = self.0.value(&[natural[0], 1.0], Some(&mut slope));
            if let Some(gradient) = gradient {
                gradient[0] = slope[0];
            }
            value
        }

        fn parameters(&self) -> usize {
            1
        }
    }
}
