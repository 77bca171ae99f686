//! Privacy-loss laws: how likely each value of ln(P/Q) is under P, for the pairs (P, Q) that dominate a mechanism.
//!
//! delta(epsilon) = sum over losses l > epsilon of P(l) (1 - e^(epsilon - l)) + P(infinite loss).
//!
//! A law may be replaced by one that dominates it: more mass, greater losses, or a loss l between two points lo < hi split
//! between them as it keeps both P and Q, that is with the share (1 - e^(lo - l)) / (1 - e^(lo - hi)) at hi (the chord of the
//! convex function delta of e^epsilon). All rounding goes that way: masses and losses are never below the exact ones.
//! Source: V. Doroshenko et al. (2022), Connect the dots: tighter discrete approximations of privacy loss distributions.

use super::ULP;
use crate::{Error, Result};
use libm::{exp, expm1, log, log1p, sqrt};

/// Points of a discretized law. Not tuned: with more, a bound is closer and takes longer.
pub const POINTS: usize = 2048;
/// Atoms that are enumerated at most: 64 MiB.
pub const MAX_ATOMS: usize = 1 << 22;

/// Losses and their probabilities.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LossLaw {
    /// Losses, increasing, with their masses; each at least the exact one but for `slack` and rounding.
    pub atoms: Vec<(f64, f64)>,
    /// The probability of an infinite loss.
    pub infinite: f64,
    /// A bound of the absolute error of a loss, beyond four roundings of it.
    pub slack: f64,
}

impl LossLaw {
    /// The law, or one that is lost for sure where losses or masses are beyond the range of doubles, and no numbers.
    pub(super) fn numbers(self) -> Self {
        let wrong = |&(loss, mass): &(f64, f64)| loss.is_nan() || mass.is_nan();
        if self.slack.is_nan() || self.infinite.is_nan() || self.atoms.iter().any(wrong) {
            return Self { atoms: vec![(0.0, 0.0)], infinite: 1.0, slack: 0.0 };
        }
        self
    }
}

/// The pair of laws that dominates a mechanism for two neighbors.
#[derive(Clone, Debug, PartialEq)]
pub enum Pair {
    /// Randomized response, which dominates every pure guarantee.
    Response(f64),
    /// A sample of a posterior or of an exponential mechanism: loss of density e^(l/2) on an interval [-R, R].
    Ranged(f64),
    /// Laplace noise, shifted by this many scales.
    Laplace(f64),
    /// Two-sided geometric noise of ratio `e^-decay`, shifted by a whole number.
    Geometric {
        /// -ln alpha.
        decay: f64,
        /// Distance of the two inputs.
        shift: u64,
    },
    /// Discrete Gaussian noise, shifted by a whole number.
    DiscreteGaussian {
        /// The parameter.
        variance: f64,
        /// Distance of the two inputs.
        shift: u64,
    },
    /// Normal noise, shifted by `u` standard deviations.
    Gaussian(f64),
    /// Finitely many outcomes with their two probabilities, P rounded upwards and Q downwards.
    Outcomes(Vec<(f64, f64)>),
    /// (q P + (1 - q) Q, Q): a record is there and is sampled with this rate.
    Added(f64, Box<Pair>),
    /// (P, (1 - q) P + q Q): a record is not there, and would be sampled with this rate.
    Removed(f64, Box<Pair>),
}

fn whole(value: f64) -> Result<u64> {
    let sound = value >= 0.0 && value <= 2f64.powi(53) && value.fract() == 0.0;
    Error::require(sound, "shift", value, "a whole number of at most 2^53")?;
    Ok(value as u64)
}

impl Pair {
    /// The pair of a name and its parameters: `response`, `ranged`, `laplace`, `geometric`, `discrete-gaussian`, `gaussian`,
    /// `outcomes`; before them, with a rate as first parameter, `added` or `removed`.
    ///
    /// # Errors
    /// [`Error::Domain`] for another name or a parameter outside its domain.
    pub fn named(name: &str, parameters: &[f64]) -> Result<Self> {
        Error::require_all(parameters, |x| x >= 0.0 && x.is_finite(), "parameters", "at least 0 and finite")?;
        if let Some((way, base)) = name.split_once(' ') {
            let (&rate, rest) = parameters.split_first().ok_or_else(|| Error::domain("parameters", 0, "complete"))?;
            Error::require(rate > 0.0 && rate <= 1.0, "rate", rate, "in (0, 1]")?;
            let base = Box::new(Self::named(base, rest)?);
            return match way {
                "added" => Ok(Self::Added(rate, base)),
                "removed" => Ok(Self::Removed(rate, base)),
                _ => Err(Error::domain("kind", name, "a pair of laws")),
            };
        }
        match (name, parameters) {
            ("response", &[epsilon]) => Ok(Self::Response(epsilon)),
            ("ranged", &[range]) => Ok(Self::Ranged(range)),
            ("laplace", &[shift]) => Ok(Self::Laplace(shift)),
            ("geometric", &[decay, shift]) => Ok(Self::Geometric { decay, shift: whole(shift)? }),
            ("discrete-gaussian", &[variance, shift]) if variance > 0.0 => {
                Ok(Self::DiscreteGaussian { variance, shift: whole(shift)? })
            }
            ("gaussian", &[u]) => Ok(Self::Gaussian(u)),
            ("outcomes", flat) if flat.len() % 2 == 0 => {
                Ok(Self::Outcomes(flat.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()))
            }
            _ => Err(Error::domain("kind", name, "a pair of laws")),
        }
    }

    /// Its law of losses.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if it has more than [`MAX_ATOMS`] atoms.
    pub fn law(&self) -> Result<LossLaw> {
        let mut law = match self {
            Self::Response(epsilon) => return binomial(*epsilon, 1),
            Self::Ranged(range) => exponential(*range, -log(-expm1(-range)), 0.0, 0.0),
            // Of density e^((l - x)/2) / 4 on [-x, x], with atoms 1/2 at x and e^-x / 2 at -x.
            Self::Laplace(x) => exponential(*x, -std::f64::consts::LN_2, 0.5, 0.5 * exp(-x)),
            Self::Geometric { decay, shift } => geometric(*decay, *shift),
            Self::DiscreteGaussian { variance, shift } => discrete_gaussian(*variance, *shift)?,
            Self::Gaussian(u) => gaussian(*u),
            Self::Outcomes(pairs) => outcomes(pairs),
            Self::Added(rate, base) => added(*rate, &base.law()?),
            Self::Removed(rate, base) => removed(*rate, &base.law()?),
        };
        law.atoms.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(law)
    }

    /// The Rényi divergence of order above 1, rounded upwards.
    ///
    /// # Errors
    /// [`Error::Domain`] unless the order is above 1 and finite, and at most 10^4 for a sampled mechanism;
    /// [`Error::TooLarge`] as for [`Self::law`].
    pub fn renyi(&self, order: f64) -> Result<f64> {
        if !(order > 1.0 && order.is_finite()) {
            return Err(Error::domain("order", order, "above 1 and finite"));
        }
        match self {
            Self::Gaussian(u) => return Ok(0.5 * order * u * u * (1.0 + 4.0 * ULP)),
            Self::DiscreteGaussian { variance, shift } => {
                return Ok(order * (*shift as f64).powi(2) / (2.0 * variance) * (1.0 + 6.0 * ULP));
            }
            // Hoeffding's lemma for each pair of neighbors; the pair that dominates them all for every epsilon has more.
            Self::Ranged(range) => return Ok((order * range * range / 8.0).min(*range) * (1.0 + 4.0 * ULP)),
            // The other way is below it for normal noise (Mironov, Talwar, Zhang 2019, theorem 5).
            Self::Added(rate, base) => return sampled(*rate, base, order),
            Self::Removed(rate, base) if matches!(**base, Self::Gaussian(_)) => return sampled(*rate, base, order),
            _ => {}
        }
        let law = self.law()?;
        if law.infinite > 0.0 {
            return Ok(f64::INFINITY);
        }
        // ln sum p e^((a-1) l) = ln(1 + sum p expm1((a-1) l)) where that is small: masses sum to one.
        let tilt = |l: f64| (order - 1.0) * (l + law.slack + 4.0 * ULP * l.abs());
        let largest = law.atoms.iter().fold(0.0, |most: f64, atom| most.max(tilt(atom.0)));
        let count = law.atoms.len() as f64;
        let value = if largest < 0.5 {
            let (mut sum, mut size) = (0.0, 0.0);
            for &(l, p) in &law.atoms {
                let term = p * expm1(tilt(l));
                (sum, size) = (sum + term, size + term.abs());
            }
            log1p(sum + size * ULP * (count + 60.0))
        } else {
            let sum: f64 = law.atoms.iter().map(|&(l, p)| p * exp(tilt(l) - largest)).sum();
            largest + log(sum) + ULP * (count + 60.0 + 4.0 * largest)
        };
        Ok((value / (order - 1.0) * (1.0 + 8.0 * ULP)).max(0.0))
    }
}

/// ln sum over j of C(a, j) (1 - q)^(a - j) q^j e^((j - 1) D_j) / (a - 1) for a whole order a; between two of them
/// (a - 1) D_a is convex in a, so the chord bounds it. The terms j = 0 and 1 together are 1 - sum of the other binomials.
fn sampled(rate: f64, base: &Pair, order: f64) -> Result<f64> {
    let (low, high) = (order.floor(), order.ceil());
    let requirement = "at most 10000 for a sample of the records: its divergence is a sum of so many terms";
    Error::require(high <= 1e4, "order", order, requirement)?;
    let moment = |a: f64| -> Result<f64> {
        if a <= 1.0 {
            return Ok(0.0);
        }
        let (mut log_choose, mut sum) = (0.0, 0.0);
        for j in 1..=a as u64 {
            let j = j as f64;
            log_choose += log((a - j + 1.0) / j);
            if j > 1.0 {
                let weight = log_choose + j * log(rate) + if rate < 1.0 { (a - j) * log1p(-rate) } else { 0.0 };
                let weight = if rate == 1.0 && j < a { f64::NEG_INFINITY } else { weight };
                sum += exp(weight) * expm1((j - 1.0) * base.renyi(j)?);
            }
        }
        Ok(log1p(sum * (1.0 + 1e-13 * (1.0 + a))))
    };
    let (below, above) = (moment(low)?, moment(high)?);
    let value = if high > low { below + (order - low) * (above - below) } else { below };
    Ok(value / (order - 1.0) * (1.0 + 8.0 * ULP))
}

/// The losses of `times` randomized responses together: (2k - times) epsilon with binomial probability.
///
/// Weights go out from the mode by their ratios (times - k) / (k + 1) e^epsilon; each step errs by at most five half-ulps, so
/// a weight m steps away by 2.5 m ulps, and their sum by the mean of that. Tails below 1e-290 go to the neighboring atom or to
/// infinity, by the geometric series that bounds them.
///
/// # Errors
/// [`Error::TooLarge`] if there are more than [`MAX_ATOMS`] atoms that count.
pub fn binomial(epsilon: f64, times: u64) -> Result<LossLaw> {
    let n = times as f64;
    let (odds, least) = (exp(epsilon), if times <= 20_000 { 1e-290 } else { 1e-60 });
    let (up, down) = (1.0 / (1.0 + exp(-epsilon)), exp(-epsilon));
    let mode = (((n + 1.0) * up).floor() as u64).min(times);
    let reach = 60.0 * sqrt(n * up * (1.0 - up)) + 2000.0;
    if times > 1 << 50 || (times as usize > MAX_ATOMS && reach > MAX_ATOMS as f64) {
        let needed = 16 * u128::from(times);
        return Err(Error::TooLarge {
            what: "the law of the total privacy loss",
            needed,
            limit: 16 * MAX_ATOMS as u128,
        });
    }
    let mut below = Vec::new();
    let (mut k, mut weight, mut low_tail, mut high_tail) = (mode, 1.0f64, 0.0, 0.0);
    while k > 0 {
        let next = weight * (k as f64 / (n - k as f64 + 1.0) * down);
        if next < least {
            low_tail = next + f64::MIN_POSITIVE;
            break;
        }
        (k, weight) = (k - 1, next);
        below.push((k, weight));
    }
    let mut weights: Vec<(u64, f64)> = below.into_iter().rev().collect();
    weights.push((mode, 1.0));
    (k, weight) = (mode, 1.0);
    while k < times {
        let ratio = (n - k as f64) / (k as f64 + 1.0) * odds;
        if weight * ratio < least {
            high_tail = weight * ratio / (1.0 - ratio.min(0.999_999)) * 2.0;
            break;
        }
        (k, weight) = (k + 1, weight * ratio);
        weights.push((k, weight));
    }
    let steps = |k: u64| 2.5 * ULP * k.abs_diff(mode) as f64;
    let (mut whole, mut error) = (0.0, 0.0);
    for &(k, weight) in &weights {
        whole += weight;
        error += weight * steps(k);
    }
    whole -= error + whole * ULP * (weights.len() as f64).min(0.5 / ULP) * 0.5;
    let mut atoms: Vec<(f64, f64)> = weights
        .into_iter()
        .map(|(k, weight)| {
            let loss = 2.0 * k as f64 - n;
            (loss * epsilon, weight * (1.0 + steps(k) + 2.0 * ULP) / whole)
        })
        .collect();
    // The low tail has at most `times` terms, none above its first.
    atoms[0].1 += low_tail * n / whole;
    let infinite = if high_tail > 0.0 { high_tail / whole + f64::MIN_POSITIVE } else { 0.0 };
    Ok(LossLaw { atoms, infinite, slack: 0.0 })
}

/// Density e^(l/2 + log_scale - range/2) / 2 on [-range, range], and two atoms at its ends, in bins of equal width h.
///
/// A bin from l has the mass e^(l/2) 2 expm1(h/2) times that factor; its share at the upper end is
/// 8 sinh(h/4)^2 / ((1 - e^-h) 2 expm1(h/2)) = tanh(h/4) / (1 - e^-h) = 1 / (1 + e^(-h/2)).
fn exponential(range: f64, log_scale: f64, top: f64, bottom: f64) -> LossLaw {
    let h = 2.0 * range / POINTS as f64;
    let share = 1.0 / (1.0 + exp(-0.5 * h));
    let mut atoms: Vec<(f64, f64)> = (0..=POINTS).map(|i| (i as f64 * h - range, 0.0)).collect();
    for i in 0..POINTS {
        let mass = exp(0.5 * (atoms[i].0 - range) + log_scale) * expm1(0.5 * h) * (1.0 + ULP * (16.0 + range));
        atoms[i + 1].1 += mass * share;
        atoms[i].1 += mass * (1.0 - share) * (1.0 + 4.0 * ULP);
    }
    atoms[POINTS].1 += top;
    atoms[0].1 += bottom * (1.0 + 4.0 * ULP);
    LossLaw { atoms, infinite: 0.0, slack: 4.0 * ULP * range }
}

/// Losses (d - 2z) decay with probability a^z (1 - a)/(1 + a) for 0 < z < d, 1/(1 + a) for z = 0 and a^d/(1 + a) for z = d.
///
/// Where d is large, c values z0, z0 + 1, ... are split between the ends z0 and z0 + c of their block: summed,
/// a^z0 (1 - a^(c+1)) / ((1 + a)(1 + a^c)) and a^(z0+c+1) (1 - a^(c-1)) / ((1 + a)(1 + a^c)), beside a/(1 + a) more at z = 0.
fn geometric(decay: f64, shift: u64) -> LossLaw {
    let block = shift.div_ceil(POINTS as u64).max(1);
    let a = exp(-decay);
    let d = shift as f64;
    let mut atoms = vec![(d * decay, a / (1.0 + a))];
    let mut start = 0;
    while start < shift {
        let size = block.min(shift - start);
        let (z, c) = (start as f64, size as f64);
        let below = (1.0 + a) * (1.0 + exp(-c * decay));
        let near = exp(-z * decay) * -expm1(-(c + 1.0) * decay) / below;
        let far = exp(-(z + c + 1.0) * decay) * -expm1(-(c - 1.0) * decay) / below;
        if let Some(last) = atoms.last_mut() {
            last.1 += near;
        }
        atoms.push(((d - 2.0 * (z + c)) * decay, far));
        start += size;
    }
    if let Some(last) = atoms.last_mut() {
        last.1 += exp(-d * decay) / (1.0 + a);
    }
    for atom in &mut atoms {
        atom.1 *= 1.0 + ULP * (24.0 + 3.0 * d * decay);
    }
    LossLaw { atoms, infinite: 0.0, slack: 4.0 * ULP * d * decay }
}

/// Losses (2y + d) d / (2 variance) with probability proportional to exp(-y^2 / (2 variance)), in blocks of neighboring y.
fn discrete_gaussian(variance: f64, shift: u64) -> Result<LossLaw> {
    let d = shift as f64;
    let reach = (26.0 * sqrt(variance)).ceil() + 8.0; // e^-338 of the largest mass and less beyond
    if reach > (MAX_ATOMS / 2) as f64 {
        let needed = 32 * reach as u128;
        return Err(Error::TooLarge { what: "the law of the privacy loss", needed, limit: 16 * MAX_ATOMS as u128 });
    }
    let mass = |y: f64| exp(-y * y / (2.0 * variance));
    let last = reach as i64;
    let whole = 1.0 + 2.0 * (1..=last).map(|y| mass(y as f64)).sum::<f64>();
    let scale = (1.0 + ULP * (2000.0 + 2.0 * reach)) / whole;
    let block = (2 * last as u64 + 1).div_ceil(2 * POINTS as u64).max(1) as i64;
    let loss = |y: i64| (2.0 * y as f64 + d) * d / (2.0 * variance);
    let mut atoms: Vec<(f64, f64)> = Vec::new();
    let mut start = -last;
    while start <= last {
        let (low, high) = (loss(start), loss(start + block));
        let (mut near, mut far) = (0.0, 0.0);
        for y in start..(start + block).min(last + 1) {
            let (up, down) = shares((y - start) as f64 * d / variance, high - low);
            near += mass(y as f64) * down;
            far += mass(y as f64) * up;
        }
        match atoms.last_mut() {
            Some(last) => last.1 += near * scale,
            None => atoms.push((low, near * scale)),
        }
        atoms.push((high, far * scale));
        start += block;
    }
    // The lower tail goes up to the first atom, the upper one to infinity.
    let tail = mass(reach) * scale * 2.0;
    atoms[0].1 += tail;
    Ok(LossLaw { atoms, infinite: tail, slack: 16.0 * ULP * (2.0 * reach + d) * d / variance })
}

/// How a mass at x above the lower of two points a width h apart is split: the shares of the upper and the lower point.
#[inline]
pub fn shares(x: f64, h: f64) -> (f64, f64) {
    if x <= 0.0 {
        return (0.0, 1.0);
    }
    if x >= h {
        return (1.0, 0.0);
    }
    let below = -expm1(-h);
    (-expm1(-x) / below, exp(-x) * -expm1(-(h - x)) / below)
}

/// Six-point Gauss-Legendre rule.
const LEGENDRE: [(f64, f64); 3] = [
    (0.238_619_186_083_196_9, 0.467_913_934_572_691),
    (0.661_209_386_466_264_5, 0.360_761_573_048_138_6),
    (0.932_469_514_203_152, 0.171_324_492_379_170_36),
];

/// Losses of mean u^2/2 and variance u^2, between -38 and 38 deviations, in bins of 1/40 deviation.
///
/// In a bin the rule errs by (1/40)^13 (6!)^4 / (13 (12!)^3) times a twelfth derivative, which is below 40^12 times the density:
/// relatively below 1e-16. The factor 1 + 1e-13 covers it and all rounding.
fn gaussian(u: f64) -> LossLaw {
    const BINS: i32 = 38 * 40;
    let (h, mean) = (u / 40.0, 0.5 * u * u);
    let place = |i: i32| mean + f64::from(i) * h;
    let mut atoms: Vec<(f64, f64)> = (-BINS..=BINS).map(|i| (place(i), 0.0)).collect();
    for i in -BINS..BINS {
        let (mut up, mut down) = (0.0, 0.0);
        for (node, weight) in LEGENDRE.iter().flat_map(|&(g, w)| [(0.5 - 0.5 * g, w), (0.5 + 0.5 * g, w)]) {
            let z = (f64::from(i) + node) / 40.0;
            let mass = 0.5 * weight / 40.0 * exp(-0.5 * z * z) * 0.398_942_280_401_432_7;
            let (high, low) = shares(node * h, h);
            up += mass * high;
            down += mass * low;
        }
        let at = (i + BINS) as usize;
        atoms[at].1 += down * (1.0 + 1e-13);
        atoms[at + 1].1 += up * (1.0 + 1e-13);
    }
    let tail = 1e-315; // Phi(-38) = 2.9e-316
    atoms[0].1 += tail;
    LossLaw { atoms, infinite: tail, slack: 4.0 * ULP * (mean + 38.0 * u) }
}

/// The losses of two laws on finitely many outcomes.
fn outcomes(pairs: &[(f64, f64)]) -> LossLaw {
    let mut law = LossLaw::default();
    for &(p, q) in pairs.iter().filter(|pair| pair.0 > 0.0) {
        if q > 0.0 {
            let loss = if p < 2.0 * q && q < 2.0 * p { log1p((p - q) / q) } else { log(p) - log(q) };
            law.atoms.push((loss, p));
            law.slack = law.slack.max(8.0 * ULP * (1.0 + log(p).abs() + log(q).abs()));
        } else {
            law.infinite += p;
        }
    }
    law
}

/// (q P + (1 - q) Q, Q): the loss ln(1 + q (e^l - 1)) with the mass p (q + (1 - q) e^-l).
fn added(rate: f64, base: &LossLaw) -> LossLaw {
    let mut result = LossLaw { infinite: rate * base.infinite, slack: base.slack, ..LossLaw::default() };
    let mut covered = 0.0;
    for &(l, p) in &base.atoms {
        let loss = if l < 30.0 { log1p(rate * expm1(l)) } else { l + log(rate + (1.0 - rate) * exp(-l)) };
        let other = p * exp(-l);
        covered += other;
        result.slack = result.slack.max(base.slack + 8.0 * ULP * (1.0 + l.abs()));
        result.atoms.push((loss, (rate * p + (1.0 - rate) * other) * (1.0 + ULP * (8.0 + l.abs()))));
    }
    // What Q has where P has nothing.
    let rest = (1.0 - covered).max(0.0) + ULP * base.atoms.len() as f64;
    if rate < 1.0 {
        result.atoms.push((log1p(-rate), (1.0 - rate) * rest));
    }
    result
}

/// (P, (1 - q) P + q Q): the loss -ln(1 - q + q e^-l) with the mass p; an infinite one becomes -ln(1 - q).
fn removed(rate: f64, base: &LossLaw) -> LossLaw {
    let mut result = LossLaw { slack: base.slack, ..LossLaw::default() };
    for &(l, p) in &base.atoms {
        let loss = if l > -30.0 { -log1p(rate * expm1(-l)) } else { l - log((1.0 - rate) * exp(l) + rate) };
        result.slack = result.slack.max(base.slack + 8.0 * ULP * (1.0 + l.abs()));
        result.atoms.push((loss, p));
    }
    if rate < 1.0 {
        result.atoms.push((-log1p(-rate), base.infinite));
    } else {
        result.infinite = base.infinite;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// delta at epsilon by its definition.
    fn delta(law: &LossLaw, epsilon: f64) -> f64 {
        law.atoms.iter().map(|&(l, p)| p * (-expm1(epsilon - l)).max(0.0)).sum::<f64>() + law.infinite
    }

    fn of(name: &str, parameters: &[f64]) -> LossLaw {
        Pair::named(name, parameters).unwrap().law().unwrap()
    }

    #[test]
    fn laws_have_the_known_profiles() {
        // Rule: 1/2, 1/6, 1 - e^-.375, the posterior sample's closed form, in multiple precision.
        let two = 2f64.ln();
        assert!((delta(&of("geometric", &[two, 3.0]), two) - 0.5).abs() < 1e-14);
        let outcomes = [0.5, 1.0 / 6.0, 1.0 / 6.0, 0.5, 1.0 / 6.0, 1.0 / 6.0, 1.0 / 6.0, 1.0 / 6.0];
        assert!((delta(&of("outcomes", &outcomes), two) - 1.0 / 6.0).abs() < 1e-14);
        assert!((delta(&of("laplace", &[1.0]), 0.25) - 0.31271072120902780145).abs() < 1e-13);
        assert!((delta(&of("ranged", &[1.0]), 0.25) - 0.15469833055309968329).abs() < 1e-13);
        assert!(
            (delta(&of("gaussian", &[0.5]), 0.5) / super::super::calibration::profile(0.5, 0.5) - 1.0).abs() < 1e-12
        );
        let dg = of("discrete-gaussian", &[16.0, 1.0]);
        assert!((delta(&dg, 1.0) / 3.0554546492668226426e-6 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn every_law_is_a_probability_and_so_is_its_other() {
        let cases: [(&str, &[f64]); 8] = [
            ("response", &[0.7]),
            ("ranged", &[3.0]),
            ("laplace", &[2.0]),
            ("geometric", &[0.001, 5001.0]),
            ("discrete-gaussian", &[900.0, 7.0]),
            ("gaussian", &[1.5]),
            ("added gaussian", &[0.1, 1.0]),
            ("removed laplace", &[0.3, 1.0]),
        ];
        for (name, parameters) in cases {
            let law = of(name, parameters);
            let (p, q): (f64, f64) = law.atoms.iter().fold((0.0, 0.0), |s, a| (s.0 + a.1, s.1 + a.1 * exp(-a.0)));
            assert!((p + law.infinite - 1.0).abs() < 1e-11 && (q - 1.0).abs() < 1e-11, "{name}: {p} {q}");
        }
    }

    #[test]
    fn renyi_divergences_are_the_known_ones() {
        let divergence = |name, parameters: &[f64], order| Pair::named(name, parameters).unwrap().renyi(order).unwrap();
        assert!((divergence("response", &[1.0], 2.0) - 0.735_325_664_055_52).abs() < 1e-13);
        let laplace = divergence("laplace", &[1.0], 8.0);
        assert!((0.0..1e-5).contains(&(laplace - 0.910_198_801_177_45)), "{laplace}");
        let sampled = divergence("added gaussian", &[0.01, 1.0], 8.0);
        assert!((0.0..1e-14).contains(&(sampled - 8.936_439_076_060_3e-4)), "{sampled}");
        let beyond = Pair::named("added gaussian", &[0.01, 1.0]).unwrap().renyi(10_001.0);
        assert!(matches!(beyond, Err(Error::Domain { name: "order", .. })), "{beyond:?}");
        let sampled = divergence("added gaussian", &[0.01, 1.0], 2.0);
        assert!((0.0..1e-14).contains(&(sampled - 1.718_134_220_745_5e-4)), "{sampled}");
        assert!((divergence("ranged", &[1.0], 2.0) - 0.25).abs() < 1e-15);
    }

    #[test]
    fn many_responses_have_binomial_losses() {
        let law = binomial(0.25, 12).unwrap();
        assert_eq!(law.atoms.len(), 13);
        assert!((law.atoms.iter().map(|a| a.1).sum::<f64>() - 1.0).abs() < 1e-14);
        assert!(binomial(0.1, 1 << 33).unwrap().atoms.len() < MAX_ATOMS);
        assert!(matches!(binomial(1e-9, 1 << 60), Err(Error::TooLarge { .. })));
        assert!(binomial(800.0, 3).unwrap().atoms.iter().all(|atom| atom.1.is_finite()));
    }
}
