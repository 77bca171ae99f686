//! What several releases guarantee together: the law of the sum of their privacy losses.
//!
//! delta(epsilon) = sum over totals l of P(l) delta_u(epsilon - l) + P(infinite),   delta_0(x) = max(0, 1 - e^x).
//!
//! Losses of independent draws from the dominating pairs add, so their laws are convolved; Gaussian noise, of which only
//! u^2 = sum of (sensitivity / sigma)^2 matters, is kept apart and enters by its exact profile. Few atoms are enumerated as
//! they are; many lie on a grid, whose steps double when it grows beyond [`GRID`] points. Both convolutions add positive
//! products: a mass errs by the number of terms times half an ulp, relatively, at every depth of the tail.
//!
//! Source: P. Kairouz, S. Oh, P. Viswanath (2015), The composition theorem for differential privacy, for pure parts.

use super::ULP;
use super::calibration::{gaussian_epsilon, gaussian_sigma, tail_quantile};
use super::loss::{LossLaw, Pair, binomial, shares};
use super::profile_sum::{LossCells, Sum};
use crate::{Error, Result};
use libm::{expm1, log, log1p, sqrt};

/// Atoms of different parts that are enumerated together. Not tuned: with more, a delta is exact for more parts and takes longer.
const ENUMERATED: usize = 20_000;
/// Points of a grid before it is made coarser. Not tuned: with more, losses are finer, and a convolution takes their square.
const GRID: usize = 4096;
/// What is cut off an end of a grid goes to infinity or to the lowest point kept; so little that no delta shows it.
const CUT: f64 = 1e-40;
/// Losses that are put in cells beside Gaussian noise, at the least. Not tuned: fewer are soon added one by one.
const MANY: usize = 64;
/// The relative error of a sum over cells that is taken; beyond, losses are added one by one.
const SHARP: f64 = 1e-12;
/// As is a sum below this, parts of which may be subnormal.
const LEAST: f64 = 1e-280;

/// Masses on `origin + i step`.
#[derive(Clone, Debug)]
struct LossGrid {
    origin: f64,
    step: f64,
    masses: Vec<f64>,
    infinite: f64,
    /// Absolute error of a point.
    slack: f64,
    /// Relative error of a mass, in ulps.
    error: f64,
}

impl LossGrid {
    /// A law whose losses have a common distance stays as it is; another one is split between the points of a fine grid.
    fn of(law: &LossLaw) -> Self {
        let (low, high) = ends(law);
        let gap = law.atoms.windows(2).map(|pair| pair[1].0 - pair[0].0).filter(|gap| *gap > 1e-9 * (high - low));
        let gap = gap.fold(f64::INFINITY, f64::min);
        let regular = |loss: f64| {
            let place = (loss - low) / gap;
            place < GRID as f64 && (place - place.round()).abs() < 1e-9
        };
        let step = if high == low {
            1.0
        } else if law.atoms.iter().all(|atom| regular(atom.0)) {
            gap
        } else {
            (high - low) / (GRID - 2) as f64
        };
        Self::with_step(law, step)
    }

    fn with_step(law: &LossLaw, step: f64) -> Self {
        let (low, high) = ends(law);
        let mut masses = vec![0.0; ((high - low) / step).floor() as usize + 2];
        for &(loss, mass) in &law.atoms {
            let at = (((loss - low) / step).floor() as usize).min(masses.len() - 2);
            let lower = low + at as f64 * step;
            let above = loss - lower;
            // On the point but for rounding: `slack` has room for it.
            let above = if (above - step).abs() < 1e-13 * loss.abs() { step } else { above };
            let (up, down) = shares(if above < 1e-13 * loss.abs() { 0.0 } else { above }, step);
            masses[at] += mass * down;
            masses[at + 1] += mass * up;
        }
        let far = low.abs().max(high.abs());
        let slack = law.slack + 2e-13 * far;
        let error = 16.0 + law.atoms.len() as f64;
        Self { origin: low, step, masses, infinite: law.infinite, slack, error }.trimmed(0.0)
    }

    fn law(&self) -> LossLaw {
        let margin = 1.0 + ULP * (self.error + 4.0);
        let points = self.masses.iter().enumerate().filter(|(_, mass)| **mass > 0.0);
        let atoms = points.map(|(i, mass)| (self.origin + i as f64 * self.step, mass * margin)).collect();
        LossLaw { atoms, infinite: self.infinite * margin, slack: self.slack }
    }

    fn times(&self, other: &Self) -> Self {
        let (a, b) = if self.masses.len() < other.masses.len() { (self, other) } else { (other, self) };
        let mut masses = vec![0.0; a.masses.len() + b.masses.len() - 1];
        for (i, &mass) in a.masses.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
            masses[i..].iter_mut().zip(&b.masses).for_each(|(sum, other)| *sum += mass * other);
        }
        let far = |grid: &Self| grid.origin.abs() + grid.step * grid.masses.len() as f64;
        let result = Self {
            origin: self.origin + other.origin,
            step: self.step,
            masses,
            // Products that vanish below the smallest double are covered by the last term.
            infinite: either(self.infinite, other.infinite) + 1e-300,
            slack: self.slack + other.slack + 2.0 * ULP * (far(self) + far(other)),
            error: self.error + other.error + a.masses.len() as f64 + 2.0,
        };
        let long = result.masses.len() > GRID;
        let mut result = result.trimmed(if long { CUT } else { 0.0 });
        while result.masses.len() > GRID {
            result = result.coarser();
        }
        result
    }

    /// Every second point, the others split between their neighbors: a share 1 / (1 + e^-step) goes up.
    fn coarser(&self) -> Self {
        let mut masses = vec![0.0; self.masses.len() / 2 + 1];
        let up = 1.0 / (1.0 + libm::exp(-self.step));
        for (i, &mass) in self.masses.iter().enumerate() {
            if i % 2 == 0 {
                masses[i / 2] += mass;
            } else {
                masses[i / 2] += mass * (1.0 - up) * (1.0 + 2.0 * ULP);
                masses[i / 2 + 1] += mass * up;
            }
        }
        Self { step: 2.0 * self.step, masses, error: self.error + 6.0, ..self.clone() }
    }

    /// Without its ends of zeros, or of no more than `cut`.
    fn trimmed(mut self, cut: f64) -> Self {
        let mut lost = 0.0;
        while let Some(&mass) = self.masses.last() {
            if lost + mass > cut || self.masses.len() == 1 {
                break;
            }
            lost += mass;
            self.masses.pop();
        }
        self.infinite += lost * (1.0 + 1e-9);
        let (mut low, mut lost) = (0, 0.0);
        while low + 1 < self.masses.len() && lost + self.masses[low] <= cut {
            lost += self.masses[low];
            low += 1;
        }
        self.masses[low] += lost * (1.0 + 1e-9);
        self.masses.drain(..low);
        self.slack += ULP * (self.origin.abs() + low as f64 * self.step);
        self.origin += low as f64 * self.step;
        self
    }
}

fn ends(law: &LossLaw) -> (f64, f64) {
    let first = law.atoms.first().map_or(0.0, |atom| atom.0);
    (first, law.atoms.last().map_or(first, |atom| atom.0))
}

/// The law of `times` independent losses, by squaring from the highest bit of `times`.
fn power(law: &LossLaw, times: u64) -> LossLaw {
    if times == 1 {
        return law.clone();
    }
    let first = LossGrid::of(law);
    let mut total = first.clone();
    for bit in (0..times.ilog2()).rev() {
        total = total.times(&total);
        if times >> bit & 1 == 1 {
            let one = if total.step == first.step { first.clone() } else { LossGrid::with_step(law, total.step) };
            total = total.times(&one);
        }
    }
    total.law()
}

/// The law of a total privacy loss, but for its Gaussian part.
#[derive(Clone, Debug)]
pub struct Losses {
    law: LossLaw,
    /// Where many losses stand beside Gaussian noise: the same in cells.
    cells: Option<LossCells>,
    u: f64,
    error: f64,
}

impl Losses {
    /// Pairs, each with how often it is used, beside Gaussian noise of ratio `u = sensitivity / sigma >= 0`.
    ///
    /// # Errors
    /// [`Error::Domain`] for a negative or infinite `u`; [`Error::TooLarge`] if the law has too many atoms.
    pub fn new(parts: &[(Pair, u64)], u: f64) -> Result<Self> {
        Error::require(u >= 0.0 && u.is_finite(), "ratio", u, "at least 0 and finite")?;
        let mut laws = Vec::with_capacity(parts.len());
        for (pair, times) in parts.iter().filter(|part| part.1 > 0) {
            laws.push(match pair {
                Pair::Response(epsilon) => binomial(*epsilon, *times)?,
                _ => power(&pair.law()?, *times),
            });
        }
        let count = laws.iter().fold(1usize, |n, law| n.saturating_mul(law.atoms.len()));
        let law = match laws.len() {
            0 => LossLaw { atoms: vec![(0.0, 1.0)], ..LossLaw::default() },
            1 => laws.swap_remove(0),
            _ if count <= ENUMERATED => enumerated(&laws),
            _ => gridded(&laws),
        }
        .numbers();
        let cells = (u > 0.0 && law.atoms.len() >= MANY).then(|| LossCells::new(&law.atoms, u));
        Ok(Self { error: 40.0 + law.atoms.len() as f64, law, cells, u })
    }

    /// delta at epsilon >= 0, rounded upwards; 0 only where no loss exceeds epsilon.
    pub fn delta(&self, epsilon: f64) -> f64 {
        self.profile(epsilon).0
    }

    /// delta at epsilon >= 0, rounded upwards, and about its derivative.
    fn profile(&self, epsilon: f64) -> (f64, f64) {
        let atoms = &self.law.atoms;
        // Losses are known up to their rounding; what lies at epsilon counts as above it.
        let rest = |loss: f64| epsilon - loss - self.law.slack - 4.0 * ULP * (epsilon + loss.abs());
        let upwards = |value: f64| (value * (1.0 + ULP * self.error)).next_up().clamp(f64::from_bits(1), 1.0);
        let start = Sum { value: self.law.infinite, ..Sum::default() };
        if self.u > 0.0 {
            if let Some(cells) = &self.cells {
                let mut sum = start;
                cells.add_to(&mut sum, atoms, epsilon, self.law.slack, self.u, rest);
                if sum.error <= SHARP * sum.value && sum.value >= LEAST {
                    return (upwards(sum.value + sum.error), sum.slope);
                }
            }
            let mut sum = start;
            atoms.iter().rev().for_each(|&(loss, mass)| sum.add(rest(loss), self.u, mass));
            return (upwards(sum.value), sum.slope);
        }
        let (mut sum, mut any) = (start, self.law.infinite > 0.0);
        for (rest, mass) in atoms.iter().rev().map(|atom| (rest(atom.0), atom.1)).take_while(|atom| atom.0 < 0.0) {
            let share = -expm1(rest);
            sum.value += (mass * share).next_up();
            sum.slope -= mass * (1.0 - share);
            any = true;
        }
        (if any { upwards(sum.value) } else { 0.0 }, sum.slope)
    }

    /// An epsilon >= 0 with `delta(epsilon) <= delta`, the least one up to rounding.
    ///
    /// # Errors
    /// [`Error::Domain`] unless `0 <= delta < 1`, if no epsilon has this delta, or as [`gaussian_epsilon`].
    pub fn epsilon(&self, delta: f64) -> Result<f64> {
        let none = || Error::domain("delta", delta, "one that some epsilon has");
        let sure = delta > 0.0 || (self.u == 0.0 && self.law.infinite == 0.0);
        if !((0.0..1.0).contains(&delta) && sure && self.law.infinite * (1.0 + ULP * self.error) <= delta) {
            return Err(none());
        }
        let guess = if self.u > 0.0 { self.newton(delta)? } else { self.crossing(delta) };
        if guess == 0.0 && self.delta(0.0) <= delta {
            return Ok(0.0);
        }
        // A last step of Newton's, then up until it is found to be enough, so that rounding in the search does no harm.
        let (found, slope) = self.profile(guess);
        let noise = if slope < 0.0 { 64.0 * found / -slope } else { 0.0 };
        let mut epsilon =
            if slope < 0.0 { guess + ((found - delta) / -slope).clamp(-1e-6 * guess, 1e-6 * guess) } else { guess };
        let mut step = (ULP * (8.0 * guess + self.law.slack + noise)).max(f64::MIN_POSITIVE);
        while epsilon.is_finite() && step <= guess.max(1.0) {
            epsilon += step;
            if self.delta(epsilon) <= delta {
                return Ok(epsilon);
            }
            step *= 2.0;
        }
        Err(none())
    }

    /// Where delta is reached without Gaussian noise, in one pass from the greatest loss. With A = delta(l) at a loss l and B the
    /// sum of p e^(l - l') over the losses l' >= l, the next one below by h has A + B (1 - e^-h) and p + B e^-h; in between,
    /// delta(epsilon) = A + B (1 - e^(epsilon - l)). Only the end of the search is certain.
    fn crossing(&self, delta: f64) -> f64 {
        let margin = 1.0 + ULP * self.error;
        let raised = |loss: f64| loss + self.law.slack + 8.0 * ULP * loss.abs();
        let (mut a, mut b, mut above) = (self.law.infinite * margin, 0.0, f64::INFINITY);
        let (mut gap, mut share) = (0.0, 0.0);
        for &(loss, mass) in self.law.atoms.iter().rev() {
            let loss = raised(loss);
            if b > 0.0 {
                // The gaps of a grid differ by rounding.
                let next: f64 = above - loss;
                if (next - gap).abs() > 1e-13 * (above.abs() + loss.abs()) {
                    (gap, share) = (next, -expm1(-next));
                }
                if a + b * share > delta {
                    break;
                }
                (a, b) = (a + b * share, b * (1.0 - share));
            }
            (b, above) = (b + mass * margin, loss);
        }
        (above + log1p(-((delta - a) / b).clamp(0.0, 1.0))).max(0.0)
    }

    /// About where delta is reached beside Gaussian noise: Newton's method for its logarithm, which is nearly concave, between
    /// bounds.
    fn newton(&self, delta: f64) -> Result<f64> {
        if self.delta(0.0) <= delta {
            return Ok(0.0);
        }
        let (mut below, mut above) = (0.0, f64::INFINITY);
        let (mut mean, mut square) = (0.0, 0.0);
        for &(loss, mass) in &self.law.atoms {
            (mean, square) = (mean + mass * loss, square + mass * loss * loss);
        }
        let deviation = sqrt((square - mean * mean).max(0.0) + self.u * self.u);
        let high = ends(&self.law).1.max(0.0) + gaussian_epsilon(0.5 * delta, 1.0, self.u)?;
        let z = tail_quantile(delta.min(0.5));
        let mut epsilon = (mean + 0.5 * self.u * self.u + z * deviation).clamp(0.5 * deviation.min(high), high);
        for _ in 0..200 {
            let (value, slope) = self.profile(epsilon);
            if value <= delta {
                above = epsilon
            } else {
                below = epsilon
            }
            let next = epsilon - log(value / delta) * value / slope;
            let step = (next - epsilon).abs();
            if step <= 1e-9 * epsilon && next > 0.0 {
                return Ok(next);
            }
            if above < f64::INFINITY && above - below <= 4.0 * ULP * above {
                return Ok(above);
            }
            epsilon = if next > below && next < above {
                next
            } else if above < f64::INFINITY {
                0.5 * (below + above)
            } else {
                2.0 * epsilon
            };
        }
        Ok(above.min(high))
    }
}

/// The probability that either of two independent losses is infinite, rounded up.
fn either(a: f64, b: f64) -> f64 {
    (a + b - a * b) * (1.0 + 4.0 * ULP)
}

/// All sums of losses.
fn enumerated(laws: &[LossLaw]) -> LossLaw {
    let mut total = LossLaw { atoms: vec![(0.0, 1.0)], ..LossLaw::default() };
    for law in laws {
        let sums =
            total.atoms.iter().flat_map(|&(l, p)| law.atoms.iter().map(move |&(m, q)| (l + m, (p * q).next_up())));
        let (_, far) = ends(law);
        total = LossLaw {
            atoms: sums.collect(),
            infinite: either(total.infinite, law.infinite),
            slack: total.slack + law.slack + 4.0 * ULP * far.abs().max(ends(law).0.abs()),
        };
    }
    total.atoms.sort_by(|a, b| a.0.total_cmp(&b.0));
    let count = laws.len() as f64;
    total.atoms.iter_mut().for_each(|atom| atom.1 *= 1.0 + 2.0 * count * ULP);
    total
}

/// All laws on the grid of the widest one.
fn gridded(laws: &[LossLaw]) -> LossLaw {
    let width = |law: &LossLaw| ends(law).1 - ends(law).0;
    let widest = laws.iter().map(width).fold(0.0, f64::max);
    let step = widest / (GRID - 2) as f64;
    let mut total: Option<LossGrid> = None;
    for law in laws {
        let mut next = LossGrid::with_step(law, total.as_ref().map_or(step, |grid| grid.step));
        total = Some(match total {
            None => next,
            Some(grid) => {
                if next.step != grid.step {
                    next = LossGrid::with_step(law, grid.step);
                }
                grid.times(&next)
            }
        });
    }
    total.map_or_else(LossLaw::default, |grid| grid.law())
}

/// The least sigma of Gaussian noise that, beside a release of randomized response with `alongside`, is (epsilon, delta)-private.
///
/// # Errors
/// [`Error::Domain`] as for the Gaussian mechanism alone, and unless `0 <= alongside < epsilon`.
pub fn gaussian_sigma_alongside(epsilon: f64, delta: f64, sensitivity: f64, alongside: f64) -> Result<f64> {
    Error::require(alongside >= 0.0 && alongside < epsilon, "alongside", alongside, "at least 0 and below `epsilon`")?;
    // Adding both losses in the worst case is enough; no release beside it is not.
    let mut above = gaussian_sigma(epsilon - alongside, delta, 1.0)?;
    let pair = [(Pair::Response(alongside), 1)];
    let fits = |sigma: f64| Losses::new(&pair, 1.0 / sigma).is_ok_and(|losses| losses.delta(epsilon) <= delta);
    let mut below = 0.5 * gaussian_sigma(epsilon, delta, 1.0)?;
    while above - below > 4.0 * ULP * above {
        let middle = 0.5 * (below + above);
        if fits(middle) { above = middle } else { below = middle }
    }
    gaussian_sigma(epsilon, delta, sensitivity)?; // checks the sensitivity
    Ok((above * sensitivity * (1.0 + 2.0 * ULP)).next_up())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(parts: &[(f64, u64)]) -> Vec<(Pair, u64)> {
        parts.iter().map(|&(epsilon, times)| (Pair::Response(epsilon), times)).collect()
    }

    #[test]
    fn randomized_response_beside_gaussian_noise_needs_the_known_sigma() {
        for (epsilon, alongside, exact) in [
            (1.0, 0.5, 6.80765495085),
            (0.5, 0.25, 12.7183232106),
            (2.0, 1.0, 3.65977278798),
            (1.0, 0.25, 4.67280510826),
        ] {
            let sigma = gaussian_sigma_alongside(epsilon, 1e-5, 1.0, alongside).unwrap();
            assert!((sigma / exact - 1.0).abs() < 1e-11, "{sigma}");
        }
        assert!(gaussian_sigma_alongside(1.0, 1e-5, 1.0, 1.0).is_err());
        assert!(gaussian_sigma_alongside(1.0, 1e-5, 1.0, f64::NAN).is_err());
    }

    #[test]
    fn nothing_beside_it_leaves_the_gaussian_calibration() {
        let alone = gaussian_sigma(1.0, 1e-5, 2.0).unwrap();
        let beside = gaussian_sigma_alongside(1.0, 1e-5, 2.0, 0.0).unwrap();
        assert!((beside / alone - 1.0).abs() < 1e-12);
    }

    #[test]
    fn pure_guarantees_compose_as_their_binomial_sum() {
        // Two of log 2: losses log 4, 0, -log 4 with probabilities 4/9, 4/9, 1/9; delta(log 2) = 4/9 (1 - 2/4) = 2/9.
        let losses = Losses::new(&pairs(&[(2f64.ln(), 2)]), 0.0).unwrap();
        assert!((losses.delta(2f64.ln()) - 2.0 / 9.0).abs() < 1e-14);
        assert!((losses.delta(0.0) - 1.0 / 3.0).abs() < 1e-14);
        assert!((losses.epsilon(2.0 / 9.0 + 1e-13).unwrap() - 2f64.ln()).abs() < 1e-11);
        assert!((losses.epsilon(0.0).unwrap() - 4f64.ln()).abs() < 1e-14);
        let apart = Losses::new(&pairs(&[(2f64.ln(), 1), (2f64.ln(), 1)]), 0.0).unwrap();
        assert!((apart.delta(0.3) - losses.delta(0.3)).abs() < 1e-14);
    }

    #[test]
    fn compositions_have_the_known_deltas_and_are_never_below() {
        for (epsilon, times, at, exact) in
            [(0.1, 20, 0.5, 0.038255573847233130476), (0.01, 10_000, 2.0, 0.020915810707248357324)]
        {
            let found = Losses::new(&pairs(&[(epsilon, times)]), 0.0).unwrap().delta(at);
            assert!((0.0..2e-12).contains(&(found / exact - 1.0)), "{found}");
        }
        let beside = Losses::new(&pairs(&[(0.5, 1)]), 0.5).unwrap().delta(1.0);
        assert!((0.0..1e-13).contains(&(beside / 0.032790612518120909395 - 1.0)));
    }

    #[test]
    fn a_grid_finds_what_the_enumeration_does() {
        // Randomized response as two outcomes goes by squaring on a grid of its own steps.
        let keep = 1.0 / (1.0 + (-0.1f64).exp());
        let outcomes = Pair::Outcomes(vec![(keep, 1.0 - keep), (1.0 - keep, keep)]);
        for times in [7, 20, 1000] {
            let (grid, exact) =
                (Losses::new(&[(outcomes.clone(), times)], 0.0), Losses::new(&pairs(&[(0.1, times)]), 0.0));
            let (grid, exact) = (grid.unwrap().delta(0.5), exact.unwrap().delta(0.5));
            assert!((0.0..1e-9).contains(&(grid / exact - 1.0)), "{times}: {grid} {exact}");
        }
        // Two grids, and a Gaussian as a grid of its own beside the exact profile.
        let both = [(Pair::Gaussian(0.3), 9), (Pair::Response(0.2), 3)];
        let found = Losses::new(&both, 0.0).unwrap().delta(1.0);
        let exact = Losses::new(&both[1..], 0.9).unwrap().delta(1.0);
        assert!((0.0..1e-3).contains(&(found / exact - 1.0)), "{found} {exact}");
        let many = Losses::new(&[(Pair::Gaussian(0.03), 10_000)], 0.0).unwrap().delta(10.0);
        let exact = Losses::new(&[], 3.0).unwrap().delta(10.0);
        assert!((0.0..2e-2).contains(&(many / exact - 1.0)), "{many} {exact}");
    }

    #[test]
    fn bad_numbers_are_refused_and_large_counts_are_not() {
        assert!(Losses::new(&[], f64::NAN).is_err());
        let many = Losses::new(&pairs(&[(1e-6, 1 << 33)]), 0.0).unwrap();
        assert!(many.delta(0.5) > 0.0 && many.delta(0.5) < 1e-4);
        assert_eq!(Losses::new(&pairs(&[(0.1, 3)]), 0.0).unwrap().delta(1.0), 0.0);
    }
}
