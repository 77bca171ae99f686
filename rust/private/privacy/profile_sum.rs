//! Gaussian profiles summed over many losses: Taylor series about the centers of cells of losses.
//!
//! f(epsilon) = sum of p g(epsilon - l), g(r) = Phi(-x1) - q(r), q(r) = e^r Phi(-x2), x1, x2 = r/u -+ u/2. As g' = -q and
//! q' = q - phi(x1) / u, the derivatives of G(t) = g(r - u t), where losses lie t deviations above the center, are
//!
//! ```text
//! c_1 = u q,   c_(k+1) = u (phi(x1) He_(k-1)(x1) - c_k),
//! ```
//!
//! so that a cell has the moments M_k = sum of p t^k / k! once for all epsilon, and its part of f is M_0 g + sum of c_k M_k.
//!
//! Never below: the center is moved up by all that roundings could move a loss, and g falls; g itself is rounded upwards; the
//! series errs by no more than what the same recursions say of the absolute values (e_k, with He_k at i |x|), times a number of
//! ulps, and by its remainder: |c_(K+1)| over the cell is at most e_(K+1) e^(H + t (|x1| + u + 1)), for q grows by no more than
//! e^H and the tail's hazard (below x + 1), phi by e^(t |x1|). Each is added to the sum.

use super::ULP;
use super::calibration::{density, mills, profile_upwards};
use crate::distributions::reciprocals;
use libm::{erfc, exp};
use std::f64::consts::FRAC_1_SQRT_2;
use std::ops::Range;

/// Half the width of a cell: in deviations, and in nats.
const HALF: (f64, f64) = (0.125, 0.25);
/// Terms of a series: its remainder at |x1| = 9 is about 9^19 / (8^19 19!) < 1e-16 of the first.
const TERMS: usize = 18;
/// A cell with fewer losses is not worth a series; one with more would err by too many ulps, one for each.
const FEW: usize = 3;
const MOST: usize = 1024;
/// Beyond this x1 a cell is bounded by its upper edge.
const FAR: f64 = 30.0;

/// A sum of profiles, not below the exact one, with the bound of its error that it contains, and its derivative.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub value: f64,
    pub error: f64,
    pub slope: f64,
}

impl Sum {
    /// One loss, at distance `rest` below epsilon.
    pub fn add(&mut self, rest: f64, u: f64, mass: f64) {
        // One step up: where numbers are subnormal their roundings are more than a share of them.
        self.value += (mass * profile_upwards(rest, u)).next_up();
        self.slope -= mass * tail(rest, u);
    }
}

/// About q(r) = e^r Phi(-x2).
fn tail(rest: f64, u: f64) -> f64 {
    let (x1, x2) = (rest / u - 0.5 * u, rest / u + 0.5 * u);
    if x2 < 0.0 { exp(rest) * 0.5 * erfc(x2 * FRAC_1_SQRT_2) } else { density(x1) * mills(x2) }
}

#[derive(Clone, Debug)]
struct LossCell {
    atoms: Range<usize>,
    center: f64,
    /// Greatest distance of a loss from the center.
    half: f64,
    moments: [f64; TERMS + 1],
}

impl LossCell {
    fn of(all: &[(f64, f64)], atoms: Range<usize>, u: f64) -> Self {
        let own = &all[atoms.clone()];
        let (low, high) = (own[0].0, own[own.len() - 1].0);
        let center = 0.5 * (low + high);
        let half = (high - center).max(center - low) * (1.0 + 4.0 * ULP);
        let mut moments = [0.0; TERMS + 1];
        for &(loss, mass) in own {
            let (t, mut term) = ((loss - center) / u, mass);
            moments[0] += term;
            for (k, moment) in moments.iter_mut().enumerate().skip(1) {
                term *= t * INVERSES[k];
                *moment += term;
            }
        }
        Self { atoms, center, half, moments }
    }

    fn add_to(&self, sum: &mut Sum, epsilon: f64, slack: f64, u: f64) {
        let count = self.atoms.len() as f64;
        let mass = self.moments[0] * (1.0 + ULP * count);
        // All losses of the cell are at most center + u t moved up by the last term but one; `x1` is below the exact one for that
        // center, and `base` below u x1 + u^2 / 2.
        let rest = epsilon - self.center - slack - 8.0 * ULP * (epsilon + self.center.abs() + self.half);
        let center = rest / u;
        let x1 = (center - 0.5 * u) - 2.0 * ULP * (center.abs() + 0.5 * u);
        let base = rest - 6.0 * ULP * (rest.abs() + 0.5 * u * u);
        if x1 > FAR {
            let most = (mass * profile_upwards(base - self.half * (1.0 + 4.0 * ULP), u)).next_up();
            (sum.value, sum.error) = (sum.value + most, sum.error + most);
            return;
        }
        sum.value += (mass * profile_upwards(base, u)).next_up();

        let (x2, half) = (x1 + u, self.half / u * (1.0 + 2.0 * ULP));
        // Beyond 38 the products of density and polynomials are below 1e-285.
        let phi = if x1.abs() < 38.0 { density(x1) } else { 0.0 };
        let q = if x2 < 0.0 { exp(base) * 0.5 * erfc(x2 * FRAC_1_SQRT_2) } else { phi * mills(x2) };
        let far = x1.abs() + half;
        let (mut hermite, mut before) = (1.0, 0.0);
        let (mut size, mut size_before) = (1.0, 0.0);
        let (mut c, mut e, mut power) = (u * q, u * q, half);
        let (mut value, mut error, mut slope) = (0.0, 0.0, 0.0);
        for k in 1..=TERMS {
            value += c * self.moments[k];
            slope += c * self.moments[k - 1];
            error += e * power;
            let (c_next, e_next) = (u * (phi * hermite - c), u * (phi * size + e));
            let order = (k - 1) as f64;
            (hermite, before) = (x1 * hermite - order * before, hermite);
            (size, size_before) = (far * size + order * size_before, size);
            (c, e) = (c_next, e_next);
            power *= half * INVERSES[k + 1];
        }
        // In ulps: q 40 and by its exponent, the density 4, each step of a recursion 4, a moment one for each loss and term.
        let ulps = 200.0 + count + 20.0 * if x2 < 0.0 { rest.abs() + u * u } else { 0.0 };
        let remainder = e * power * exp(self.half + half * (x1.abs() + u + 1.0));
        sum.value += value;
        sum.error += mass * ((error * ulps * ULP + remainder) * (1.0 + 1e-9) + 1e-280);
        sum.slope -= slope / u;
    }
}

/// 1/k.
const INVERSES: [f64; TERMS + 2] = reciprocals();

/// Losses in cells.
#[derive(Clone, Debug)]
pub(super) struct LossCells(Vec<LossCell>);

impl LossCells {
    /// Cells of increasing losses, beside Gaussian noise of ratio u > 0.
    pub fn new(atoms: &[(f64, f64)], u: f64) -> Self {
        let (width, mut start) = (2.0 * HALF.1.min(HALF.0 * u), 0);
        let mut cells = Vec::new();
        while start < atoms.len() {
            let end = start + atoms[start..].partition_point(|atom| atom.0 <= atoms[start].0 + width);
            // A loss that is not a number ends no cell.
            let end = end.clamp(start + 1, start + MOST);
            cells.push(LossCell::of(atoms, start..end, u));
            start = end;
        }
        Self(cells)
    }

    /// Adds all losses, each as `rest` says how far below epsilon it is.
    pub fn add_to(
        &self,
        sum: &mut Sum,
        atoms: &[(f64, f64)],
        epsilon: f64,
        slack: f64,
        u: f64,
        rest: impl Fn(f64) -> f64,
    ) {
        for cell in self.0.iter().rev() {
            if cell.atoms.len() < FEW {
                atoms[cell.atoms.clone()].iter().for_each(|&(loss, mass)| sum.add(rest(loss), u, mass));
            } else {
                cell.add_to(sum, epsilon, slack, u);
            }
        }
    }
}
