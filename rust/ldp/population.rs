//! Groups of users whose parameters are drawn from a common law, which is learnt with them: partial pooling.
//!
//! Numbers: link(x_g) = m + t z_g with z_g standard normal, the link the identity, ln or logit by the support.
//! Shares: theta_g ~ Dirichlet(kappa pi). Its sticks v_j = theta_j / (theta_j + ... + theta_k) are independent Beta(a_j, b_j),
//! a_j = kappa pi_j, b_j = a_(j+1) + ... + a_k, and
//!
//!   logit v_j = ln(a_j/b_j) + s_j z_j,  s_j^2 = 1/a_j + 1/a_j^2 + 1/b_j + 1/b_j^2,
//!
//! so that z_j has about unit variance whatever kappa is (psi'(a) is about 1/a + 1/(2 a^2), and 1/a^2 for small a). Either way
//! coordinates are not centred: the funnel of a small spread, in which the density of centred ones has no bound, is not there.
//!
//! Sources: D. Lindley, A. Smith (1972), Bayes estimates for the linear model; O. Papaspiliopoulos, G. Roberts, M. Sköld
//! (2007), A general framework for the parametrization of hierarchical models; J. Sethuraman (1994) for the sticks.

use super::simplex::{helmert_transposed, simplex_pull, softmax};
use super::{Likelihood, PriorBlock, ScalarPrior, Support};
use crate::numeric::special::HALF_LOG_TWO_PI;
use crate::numeric::special::gamma::digamma;
use libm::lgamma;

/// The two numbers of a law of numbers, as blocks of their own.
pub(super) fn centre_and_spread(centre: ScalarPrior, spread: ScalarPrior) -> [PriorBlock; 2] {
    [
        PriorBlock::Scalar { support: Support::Real, prior: centre },
        PriorBlock::Scalar { support: Support::Positive, prior: spread },
    ]
}

/// Writes m, t and the number of each group.
pub(super) fn natural_numbers(support: Support, u: &[f64], out: &mut [f64]) {
    let (centre, spread) = (u[0], u[1].exp());
    (out[0], out[1]) = (centre, spread);
    for (x, z) in out[2..].iter_mut().zip(&u[2..]) {
        *x = support.natural(centre + spread * z).0;
    }
}

/// The coordinates of m, t and numbers.
pub(super) fn coordinates_of_numbers(support: Support, natural: &[f64], u: &mut [f64]) {
    (u[0], u[1]) = (natural[0], natural[1].ln());
    for (z, x) in u[2..].iter_mut().zip(&natural[2..]) {
        *z = (support.coordinate(*x) - natural[0]) / natural[1];
    }
}

/// As [`PriorBlock::pull`].
pub(super) fn pull_numbers(
    support: Support,
    laws: [ScalarPrior; 2],
    u: &[f64],
    natural: &[f64],
    mut slope_and_gradient: Option<(&[f64], &mut [f64])>,
) -> f64 {
    let mut value = 0.0;
    for (i, block) in centre_and_spread(laws[0], laws[1]).iter().enumerate() {
        let own = slope_and_gradient.as_mut().map(|(slope, gradient)| (&slope[i..=i], &mut gradient[i..=i]));
        value += block.pull(&u[i..=i], &natural[i..=i], own, &mut []);
    }
    value -= u[2..].iter().map(|z| HALF_LOG_TWO_PI + 0.5 * z * z).sum::<f64>();
    let Some((slope, gradient)) = slope_and_gradient else { return value };
    let (centre, spread) = (natural[0], natural[1]);
    for g in 2..u.len() {
        let z = u[g];
        let by_link = slope[g] * support.natural(centre + spread * z).1;
        gradient[0] += by_link;
        gradient[1] += by_link * z * spread;
        gradient[g] += by_link * spread - z;
    }
    value
}

/// One stick's Beta law in the coordinate z, but for what depends on z.
pub(super) struct Stick {
    pub a: f64,
    pub b: f64,
    pub place: f64,
    pub scale: f64,
    /// The derivatives of the scale in a and b.
    pub bends: [f64; 2],
}

impl Stick {
    fn new(a: f64, b: f64) -> Self {
        let scale = (1.0 / a + 1.0 / (a * a) + 1.0 / b + 1.0 / (b * b)).sqrt();
        let bend = |x: f64| -(1.0 + 2.0 / x) / (2.0 * scale * x * x);
        Self { a, b, place: (a / b).ln(), scale, bends: [bend(a), bend(b)] }
    }

    /// The logit, ln v and ln(1 - v).
    fn logs(&self, z: f64) -> (f64, f64, f64) {
        let y = self.place + self.scale * z;
        let tail = (-y.abs()).exp().ln_1p();
        (y, y.min(0.0) - tail, (-y).min(0.0) - tail)
    }
}

/// The sticks of a law kappa pi, the first share's first.
pub(super) fn sticks(mean: &[f64], strength: f64) -> impl ExactSizeIterator<Item = Stick> + DoubleEndedIterator + '_ {
    (0..mean.len().saturating_sub(1))
        .map(move |j| Stick::new(strength * mean[j], strength * mean[j + 1..].iter().sum::<f64>()))
}

/// Writes pi, kappa and the shares of each group.
pub(super) fn natural_shares(categories: usize, u: &[f64], out: &mut [f64]) {
    let free = categories - 1;
    let (law, groups) = out.split_at_mut(categories + 1);
    softmax(&u[..free], &mut law[..categories]);
    law[categories] = u[free].exp();
    let (mean, strength) = (&law[..categories], law[categories]);
    for (j, stick) in sticks(mean, strength).enumerate() {
        for (theta, z) in groups.chunks_exact_mut(categories).zip(u[categories..].chunks_exact(free)) {
            // The last place keeps what is left so far.
            let left = if j == 0 { 0.0 } else { theta[free] };
            let (_, log, rest) = stick.logs(z[j]);
            theta[j] = (left + log).exp().max(f64::MIN_POSITIVE);
            theta[free] = left + rest;
        }
    }
    for theta in groups.chunks_exact_mut(categories) {
        theta[free] = theta[free].exp().max(f64::MIN_POSITIVE);
    }
}

/// The coordinates of pi, kappa and shares.
pub(super) fn coordinates_of_shares(categories: usize, natural: &[f64], u: &mut [f64]) {
    let free = categories - 1;
    let (law, groups) = natural.split_at(categories + 1);
    let logs: Vec<f64> = law[..categories].iter().map(|x| x.ln()).collect();
    helmert_transposed(&logs, &mut u[..free]);
    u[free] = law[categories].ln();
    for (j, stick) in sticks(&law[..categories], law[categories]).enumerate() {
        for (theta, z) in groups.chunks_exact(categories).zip(u[categories..].chunks_exact_mut(free)) {
            let logit = theta[j].ln() - theta[j + 1..].iter().sum::<f64>().ln();
            z[j] = (logit - stick.place) / stick.scale;
        }
    }
}

/// As [`PriorBlock::pull`].
pub(super) fn pull_shares(
    concentration: &[f64],
    strength_prior: ScalarPrior,
    u: &[f64],
    natural: &[f64],
    mut slope_and_gradient: Option<(&[f64], &mut [f64])>,
    scratch: &mut [f64],
) -> f64 {
    let (categories, free) = (concentration.len(), concentration.len() - 1);
    let (law, groups) = natural.split_at(categories + 1);
    let (mean, strength) = (&law[..categories], law[categories]);
    let number = (groups.len() / categories) as f64;
    // Derivatives by the parameters kappa pi_i of the law, and, group by group, the mass of slopes beyond a stick.
    let (by_law, beyond) = scratch.split_at_mut(categories);
    by_law.fill(0.0);
    beyond.fill(0.0);
    if let Some((slope, _)) = &slope_and_gradient {
        for ((mass, theta), slope) in
            beyond.iter_mut().zip(groups.chunks_exact(categories)).zip(slope[categories + 1..].chunks_exact(categories))
        {
            *mass = theta[free] * slope[free];
        }
    }
    let mut value = 0.0;
    for (j, stick) in sticks(mean, strength).enumerate().rev() {
        let Stick { a, b, scale, bends, .. } = stick;
        value += number * (lgamma(a + b) - lgamma(a) - lgamma(b) + scale.ln());
        let (mut by_a, mut by_b) = (0.0, 0.0);
        for (g, z) in u[categories..].chunks_exact(free).enumerate() {
            let (z, at) = (z[j], categories + g * free + j);
            let (_, log, rest) = stick.logs(z);
            value += a * log + b * rest;
            let Some((slope, gradient)) = &mut slope_and_gradient else { continue };
            let (share, left) = (log.exp(), rest.exp());
            let own = groups[g * categories + j] * slope[categories + 1 + g * categories + j];
            let by_logit = own * left - share * beyond[g] + a * left - b * share;
            beyond[g] += own;
            gradient[at] += by_logit * scale;
            by_a += by_logit * (1.0 / a + z * bends[0]) + log;
            by_b += by_logit * (z * bends[1] - 1.0 / b) + rest;
        }
        if slope_and_gradient.is_some() {
            let both = digamma(a + b);
            by_law[j] += by_a + number * (both - digamma(a) + bends[0] / scale);
            let rest = by_b + number * (both - digamma(b) + bends[1] / scale);
            by_law[j + 1..].iter_mut().for_each(|sum| *sum += rest);
        }
    }
    let block = PriorBlock::Scalar { support: Support::Positive, prior: strength_prior };
    let own = slope_and_gradient
        .as_mut()
        .map(|(slope, gradient)| (&slope[categories..=categories], &mut gradient[free..=free]));
    value += block.pull(&u[free..=free], &law[categories..], own, &mut []);
    let Some((slope, gradient)) = slope_and_gradient else { return value + simplex_pull(concentration, mean, None) };
    gradient[free] += strength * mean.iter().zip(&*by_law).map(|(mean, by)| mean * by).sum::<f64>();
    by_law.iter_mut().zip(slope).for_each(|(by, slope)| *by = strength * *by + slope);
    value + simplex_pull(concentration, mean, Some((by_law, &mut gradient[..free])))
}

/// A likelihood of some of the parameters: those of one group, and those that all groups share.
#[derive(Clone)]
pub struct Selected {
    part: Box<dyn Likelihood>,
    which: Vec<usize>,
    parameters: usize,
    natural: Vec<f64>,
    slope: Vec<f64>,
}

impl Selected {
    /// The parameter i of `part` is that of index `which[i]` among as many as `parameters`.
    pub fn new(part: Box<dyn Likelihood>, which: Vec<usize>, parameters: usize) -> Self {
        let empty = vec![0.0; which.len()];
        Self { part, which, parameters, natural: empty.clone(), slope: empty }
    }
}

impl Likelihood for Selected {
    fn value(&mut self, natural: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        for (own, &i) in self.natural.iter_mut().zip(&self.which) {
            *own = natural[i];
        }
        let Some(gradient) = gradient else { return self.part.value(&self.natural, None) };
        let value = self.part.value(&self.natural, Some(&mut self.slope));
        gradient.fill(0.0);
        for (slope, &i) in self.slope.iter().zip(&self.which) {
            gradient[i] += slope;
        }
        value
    }

    fn parameters(&self) -> usize {
        self.parameters
    }
}
