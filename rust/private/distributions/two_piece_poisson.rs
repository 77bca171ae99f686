//! The two-piece Poisson law: a Poisson count, given its release through two-sided geometric noise.
//!
//! Y ~ Poisson(mu), o = Y + noise, P(noise = t) = (1-alpha)/(1+alpha) alpha^|t|:   p(y | o) ~ mu^y / y! alpha^|o-y|.
//! For o <= 0 that is Poisson(alpha mu). For o > 0 it is Poisson(mu/alpha) up to o and Poisson(alpha mu) above, joined at o.
//! The marginal likelihood is p(o) = (1-alpha)/(1+alpha) pois(o; mu) / p(y = o | o), and
//! d ln p(o) / d mu = E[Y | o] / mu - 1 with E[Y | o] = (mu/alpha) P(Y < o) + alpha mu P(Y >= o).
//!
//! Three probabilities carry everything: P(Y < o), p(o), P(Y > o). They are formed relative to the piece that holds the mode,
//! or to the joint where the mode is there, so that neither large rates nor a release far from its rate cost digits.
//!
//! Draws: one Poisson proposal and a correction where the mode lies inside a piece, sequential search for small cells, and
//! where the mode is the joint a log-concave hat of a constant and two geometric tails.
//! Source: this package; the model is that of A. Schein et al. (2019), Locally private Bayesian inference for count models.

use crate::distributions::poisson::{self, Poisson};
use crate::distributions::sums::{Moments, Shape, outward};
use crate::distributions::{Distribution, LARGEST, RandomSource, Tail, check_rate, reciprocals};
use crate::numeric::special::{deviance, exact_product, log_add_exp, log_poisson, stirling_error};
use crate::{Error, Result};

/// A two-piece Poisson law with its three probabilities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoPiecePoisson {
    released: f64,
    /// max(released, 0)
    joint: f64,
    rate: f64,
    alpha: f64,
    below: Poisson,
    above: Poisson,
    holder: Holder,
    /// ln of P(Y < joint), P(Y = joint), P(Y > joint)
    log_parts: [f64; 3],
    /// ln of the holder's mass outside its piece, to be taken off its log-masses.
    log_scale: f64,
}

/// Where the mode lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Below,
    Joint,
    Above,
}

impl TwoPiecePoisson {
    /// The law of a count of this rate given its release.
    ///
    /// # Errors
    /// [`Error::Domain`]: `released` not a whole number of at most 2^53 in size, `rate` outside [0, 2^53], `alpha` outside
    /// [0, 1); a release that no count can give, negative or of rate zero, where alpha is zero.
    pub fn new(released: f64, rate: f64, alpha: f64) -> Result<Self> {
        let whole = released.abs() <= LARGEST && released == released.floor();
        Error::require(whole, "released", released, "a whole number in [-2^53, 2^53]")?;
        check_rate("rate", rate)?;
        Error::require((0.0..1.0).contains(&alpha), "alpha", alpha, "in [0, 1)")?;
        let possible = alpha > 0.0 || released == 0.0 || (released > 0.0 && rate > 0.0);
        Error::require(possible, "released", released, "a possible count where alpha is 0")?;
        Ok(Self::unchecked(released, rate, alpha))
    }

    /// The law of parameters that are known to be right.
    pub fn unchecked(released: f64, rate: f64, alpha: f64) -> Self {
        let joint = released.max(0.0);
        // A rate's own rounding would cost a mass |y - rate| units in the last place, so what it lost is kept.
        let below = match rate / alpha {
            quotient if (LEAST..MOST).contains(&quotient) => {
                let (product, error) = exact_product(quotient, alpha);
                Poisson { rate: quotient, rest: finite(((rate - product) - error) / alpha), lift: 0.0 }
            }
            quotient if alpha > 0.0 && rate > 0.0 => {
                let near = quotient.clamp(LEAST, MOST);
                Poisson { rate: near, rest: 0.0, lift: rate.ln() - alpha.ln() - near.ln() }
            }
            quotient => Poisson::from(quotient.min(MOST)),
        };
        let above = match exact_product(alpha, rate) {
            (product, _) if product < LEAST && alpha > 0.0 && rate > 0.0 => {
                Poisson { rate: LEAST, rest: 0.0, lift: alpha.ln() + rate.ln() - LEAST.ln() }
            }
            (product, error) => Poisson { rate: product, rest: finite(error), lift: 0.0 },
        };
        let holder = match () {
            () if joint == 0.0 || above.rate >= joint + 1.0 => Holder::Above,
            () if below.rate < joint => Holder::Below,
            () => Holder::Joint,
        };
        let log_joint = match holder {
            Holder::Below => below.log_value(joint),
            Holder::Joint => 0.0,
            Holder::Above => above.log_value(joint),
        };
        let log_below = match holder {
            _ if joint == 0.0 => f64::NEG_INFINITY,
            Holder::Below => below.log_tails(joint - 1.0).0,
            _ => {
                let sum = outward(&below, (joint - 1.0, -1.0, 0.0), |_, _| [1.0])[0];
                log_joint - (below.rate / joint).ln() - below.lift + sum.ln()
            }
        };
        let log_above = match holder {
            Holder::Above => above.log_tails(joint).1,
            _ => {
                let sum = outward(&above, (joint + 1.0, 1.0, f64::INFINITY), |_, _| [1.0])[0];
                log_joint + (above.rate / (joint + 1.0)).ln() + above.lift + sum.ln()
            }
        };
        let log_scale = log_add_exp(log_add_exp(log_below, log_joint), log_above);
        let log_parts = if alpha == 0.0 {
            [f64::NEG_INFINITY, 0.0, f64::NEG_INFINITY]
        } else {
            [log_below, log_joint, log_above].map(|log| log - log_scale)
        };
        Self { released, joint, rate, alpha, below, above, holder, log_parts, log_scale }
    }

    /// `ln p(y) / p(joint)` for y on the side of a piece, by differences from the joint.
    fn relative(&self, y: f64, piece: Poisson) -> f64 {
        let (k, d) = (self.joint, y - self.joint);
        if d == 0.0 {
            return 0.0;
        }
        let step = ((piece.rate - k) + piece.rest) / k;
        let log_ratio = if step.abs() < 0.5 { step.ln_1p() } else { (piece.rate / k).ln() + piece.lift };
        let joint = d * log_ratio - deviance(d, k) + stirling_error(k);
        if y > 0.0 {
            joint - 0.5 * (d / k).ln_1p() - stirling_error(y)
        } else {
            joint + 0.5 * (2.0 * std::f64::consts::PI * k).ln() // 0! = 1 where Stirling has sqrt(2 pi 0)
        }
    }

    /// Log-mass at `y >= 0`, alpha > 0.
    fn log_value(&self, y: f64) -> f64 {
        let (piece, own) = if y <= self.joint { (self.below, Holder::Below) } else { (self.above, Holder::Above) };
        if self.holder == own {
            piece.log_value(y) - self.log_scale
        } else {
            self.log_parts[1] + self.relative(y, piece)
        }
    }

    /// ln P(Y <= y) for y below the mode.
    fn log_lower(&self, y: f64) -> f64 {
        if y < 0.0 {
            return f64::NEG_INFINITY;
        }
        let sum = |piece: &Poisson, end: f64| self.log_value(y) + outward(piece, (y, -1.0, end), |_, _| [1.0])[0].ln();
        if y <= self.joint {
            sum(&self.below, 0.0)
        } else {
            log_add_exp(sum(&self.above, self.joint + 1.0), log_add_exp(self.log_parts[0], self.log_parts[1]))
        }
    }

    /// ln P(Y >= y) for y above the mode.
    fn log_upper(&self, y: f64) -> f64 {
        let sum = |piece: &Poisson, end: f64| self.log_value(y) + outward(piece, (y, 1.0, end), |_, _| [1.0])[0].ln();
        if y > self.joint {
            sum(&self.above, f64::INFINITY)
        } else {
            log_add_exp(sum(&self.below, self.joint), self.log_parts[2])
        }
    }

    fn by_summation(&self) -> ([f64; 4], f64) {
        if self.alpha == 0.0 {
            return ([self.joint, 0.0, 0.0, 0.0], 0.0);
        }
        let (mode, joint) = (self.mode(), self.joint);
        let mut moments = Moments::about(mode);
        let center = self.log_value(mode);
        let runs = [
            (self.below, (mode + 1.0, 1.0, joint)),
            (self.above, (mode.max(joint) + 1.0, 1.0, f64::INFINITY)),
            (self.above, (mode - 1.0, -1.0, joint + 1.0)),
            (self.below, ((mode - 1.0).min(joint), -1.0, 0.0)),
        ];
        for (piece, run) in runs {
            if (run.2 - run.0) * run.1 >= 0.0 {
                moments.add(&piece, run, (self.log_value(run.0) - center).exp());
            }
        }
        let found = moments.cumulants();
        ([self.mean(), found.variance, found.third, found.fourth], found.entropy)
    }

    /// `ln p(o | mu)`, the log-likelihood of the release, and its derivative by the rate.
    ///
    /// Minus infinity and not a number where alpha is 0 and the rate is 0 but the release is not.
    pub fn log_marginal(&self) -> (f64, f64) {
        let alpha = self.alpha;
        let noise = (-alpha).ln_1p() - alpha.ln_1p();
        if self.released <= 0.0 {
            let steps = if self.released == 0.0 { 0.0 } else { self.released * -alpha.ln() };
            return (noise + steps - (1.0 - alpha) * self.rate, alpha - 1.0);
        }
        let joint = log_poisson(self.joint, self.rate, self.joint - self.rate);
        // pois(o; rate) over p(o | o), the part of the holder's mass at the joint taken out of both where it is large
        let (direct, difference) = match self.holder {
            Holder::Below => (self.below.log_value(self.joint), (self.rate * ((1.0 - alpha) / alpha)).max(0.0)), // 0 inf
            Holder::Joint => return (noise + joint - self.log_parts[1], self.scaled_mean() - 1.0),
            Holder::Above => (self.above.log_value(self.joint), -self.rate * (1.0 - alpha)),
        };
        let steps = self.joint * alpha.ln() * if self.holder == Holder::Below { 1.0 } else { -1.0 };
        let ratio = if joint.abs() + direct.abs() < steps.abs() + difference.abs() {
            joint - direct
        } else {
            steps + difference
        };
        (noise + ratio + self.log_scale, self.scaled_mean() - 1.0)
    }

    /// E[Y] / rate.
    pub fn scaled_mean(&self) -> f64 {
        if self.alpha == 0.0 {
            return if self.joint == 0.0 { 0.0 } else { self.joint / self.rate };
        }
        let [below, at, above] = self.log_parts;
        (below - self.alpha.ln()).exp() + self.alpha * (at.exp() + above.exp())
    }

    /// A draw.
    pub fn draw(&self, rng: &mut impl RandomSource) -> i64 {
        draw(self.released, self.rate, self.alpha, rng)
    }
}

/// Outside of these a product or a quotient has lost digits, or is none; its logarithm has not.
const LEAST: f64 = 1e-290;
const MOST: f64 = 1e290;

/// A number, or zero where there is none.
fn finite(x: f64) -> f64 {
    if x.is_finite() { x } else { 0.0 }
}

/// `ln (rate^d k! / (k+d)!)` for k > 0 and k + d >= 0, given `ln(rate / k)`: for draws, good to 1e-16 d.
#[inline]
fn log_relative_poisson(k: f64, d: f64, log_ratio: f64) -> f64 {
    let y = k + d;
    let main = d * log_ratio + d + stirling_error(k);
    if y > 0.0 {
        main - (y + 0.5) * (d / k).ln_1p() - stirling_error(y)
    } else {
        main + 0.5 * (2.0 * std::f64::consts::PI * k).ln() // 0! = 1 where Stirling has sqrt(2 pi 0)
    }
}

impl Distribution for TwoPiecePoisson {
    fn support(&self) -> (f64, f64) {
        match () {
            () if self.alpha == 0.0 => (self.joint, self.joint),
            () if self.rate == 0.0 => (0.0, 0.0),
            () => (0.0, f64::INFINITY),
        }
    }

    fn log_mass(&self, y: f64) -> f64 {
        let (least, greatest) = self.support();
        match () {
            () if y < least || y > greatest => f64::NEG_INFINITY,
            () if least == greatest => 0.0,
            () => self.log_value(y).min(0.0),
        }
    }

    fn short_tail(&self, y: f64) -> Tail {
        let (least, greatest) = self.support();
        if y < least || y >= greatest {
            return Tail::from_log(y < least, f64::NEG_INFINITY);
        }
        let lower = y < self.mode();
        Tail::from_log(lower, if lower { self.log_lower(y) } else { self.log_upper(y + 1.0) })
    }

    fn cumulants(&self) -> [f64; 4] {
        if self.released <= 0.0 && self.alpha > 0.0 { [self.mean(); 4] } else { self.by_summation().0 }
    }

    fn entropy(&self) -> f64 {
        self.by_summation().1
    }

    fn mean(&self) -> f64 {
        if self.alpha == 0.0 {
            return self.joint;
        }
        let [below, at, above] = self.log_parts;
        (below + self.below.rate.ln() + self.below.lift).exp() + self.alpha * self.rate * (at.exp() + above.exp())
    }

    fn mode(&self) -> f64 {
        match self.holder {
            _ if self.alpha == 0.0 => self.joint,
            Holder::Below => self.below.rate.floor(),
            Holder::Joint => self.joint,
            Holder::Above => self.above.rate.floor(),
        }
    }
}

/// A draw; arguments as those of [`TwoPiecePoisson::new`].
#[inline]
pub fn draw(released: f64, rate: f64, alpha: f64, rng: &mut impl RandomSource) -> i64 {
    let up = alpha * rate;
    if released <= 0.0 || alpha == 0.0 {
        return if alpha == 0.0 { released as i64 } else { poisson::draw(up, rng) };
    }
    let down = rate / alpha;
    if released < 16.0 && down < 16.0 {
        search(released, down, up, rng.uniform())
    } else if down <= released {
        by_proposal(down, alpha, |y| y - released, rng)
    } else if up >= released + 1.0 {
        by_proposal(up, alpha, |y| released - y, rng)
    } else {
        around_joint(released, down, up, rng)
    }
}

/// Sequential search on the partial sums of the relative masses.
fn search(released: f64, down: f64, up: f64, u: f64) -> i64 {
    let mut sums = [1.0; 96];
    let (mut term, mut sum, mut last) = (1.0, 1.0, 0);
    while last < 95 {
        last += 1;
        let y = last as f64;
        term *= if y <= released { down } else { up } / y;
        sum += term;
        sums[last] = sum;
        if term < 1e-17 * sum && (y > released || y > down) {
            break;
        }
    }
    let target = u * sum;
    sums[..=last].iter().position(|&s| target < s).unwrap_or(last) as i64
}

/// A Poisson proposal of the piece that holds the mode, kept with probability alpha^(2 x steps into the other piece).
fn by_proposal(rate: f64, alpha: f64, beyond: impl Fn(f64) -> f64, rng: &mut impl RandomSource) -> i64 {
    loop {
        let y = poisson::draw(rate, rng);
        let steps = beyond(y as f64);
        if steps <= 0.0 || rng.open_uniform().ln() <= 2.0 * steps * alpha.ln() {
            return y;
        }
    }
}

/// One side of the hat around the joint: 1 up to `flat` steps from it, then a geometric tail.
struct HatSide {
    flat: f64,
    /// ln of the hat at the first step of the tail, and its fall per step.
    log_first: f64,
    fall: f64,
    /// Sum of the tail.
    tail: f64,
}

impl HatSide {
    /// `log(j)` is the log-mass j steps away, `fall(j) = log(j) - log(j + 1)`; the tangent touches at j.
    fn new(touch: f64, log: impl Fn(f64) -> f64, fall: impl Fn(f64) -> f64) -> Self {
        let (height, fall) = (log(touch), fall(touch));
        if fall == f64::INFINITY {
            return Self { flat: touch, log_first: f64::NEG_INFINITY, fall, tail: 0.0 };
        }
        let flat = (touch + height / fall).floor().max(0.0);
        let log_first = (height - fall * (flat + 1.0 - touch)).min(0.0);
        Self { flat, log_first, fall, tail: log_first.exp() / -(-fall).exp_m1() }
    }
}

fn around_joint(joint: f64, down: f64, up: f64, rng: &mut impl RandomSource) -> i64 {
    let (log_down, log_up) = ((down / joint).ln(), (up / joint).ln());
    let log_at = |d: f64| log_relative_poisson(joint, d, if d < 0.0 { log_down } else { log_up });
    // Touch where the log-mass is about -1: slope s at the joint and curvature 1/joint.
    let reach = |slope: f64| (2.0 / (slope + (slope * slope + 2.0 / joint).sqrt())).ceil();
    let left = reach(log_down.max(0.0)).min(joint);
    let right = reach((-log_up).max(0.0));
    let lower = HatSide::new(left, |j| log_at(-j), |j| (down / (joint - j)).ln());
    let upper = HatSide::new(right, log_at, |j| ((joint + j + 1.0) / up).ln());
    let center = lower.flat + 1.0 + upper.flat;
    let total = center + lower.tail + upper.tail;
    loop {
        let place = rng.uniform() * total;
        let (d, log_hat) = if place < center {
            ((place - lower.flat).floor(), 0.0)
        } else {
            let (side, sign) = if place < center + lower.tail { (&lower, -1.0) } else { (&upper, 1.0) };
            let steps = (rng.open_uniform().ln() / -side.fall).floor();
            (sign * (side.flat + 1.0 + steps), side.log_first - side.fall * steps)
        };
        if joint + d < 0.0 {
            continue;
        }
        if d == 0.0 || rng.open_uniform().ln() <= log_at(d) - log_hat {
            return (joint + d) as i64;
        }
    }
}

/// The largest joint of [`draw_near`].
const NEAR: usize = 15;

/// A draw for a release of at most 15 with alpha rate at most one: most cells of a sparse table.
///
/// Masses relative to the joint are summed downwards; beyond it the first is bounded by z/(o+1) (1 + z), z = alpha rate, which
/// is at least the whole tail where z <= o + 1. A target beyond the true tail is drawn anew: rejection from that bound.
#[inline(always)]
pub fn draw_near(released: i64, rate: f64, alpha: f64, rng: &mut impl RandomSource) -> i64 {
    let (inverse, up) = (alpha / rate, alpha * rate);
    if released <= 0 || released > NEAR as i64 || !(up <= 1.0 && inverse <= 1e15) {
        return draw(released as f64, rate, alpha, rng);
    }
    let joint = released as usize;
    let mut ends = [f64::INFINITY; NEAR + 1];
    let (mut term, mut sum) = (1.0, 1.0);
    for (steps, end) in ends[..joint].iter_mut().enumerate() {
        *end = sum;
        term *= (joint - steps) as f64 * inverse;
        sum += term;
    }
    let first = up * RECIPROCALS[joint + 1];
    let total = sum + first * (1.0 + up);
    loop {
        let target = rng.uniform() * total;
        if target < sum {
            return (joint - ends.iter().map(|end| usize::from(*end <= target)).sum::<usize>()) as i64;
        }
        let (mut term, mut end, mut y) = (first, sum + first, joint + 1);
        while target >= end {
            y += 1;
            term *= up / y as f64;
            end += term;
            if term < 1e-17 * end {
                break;
            }
        }
        if target < end {
            return y as i64;
        }
    }
}

/// Reciprocals of 1..=NEAR+1.
const RECIPROCALS: [f64; NEAR + 2] = reciprocals();

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::tests::assert_draws_fit;
    use crate::stream::Stream;

    #[test]
    fn marginals_and_means_are_the_known_ones() {
        let e = (-1f64).exp();
        let known = [
            (3.0, 0.5, e, -2.957_892_216_935_29, 1.220_681_836_287_2),
            (-2.0, 1.25, e, -3.562_087_531_441, 0.459_849_301_464_3),
            (10.0, 4.0, 0.9, -3.555_215_655_234_83, 4.432_411_499_710_1),
        ];
        for (released, rate, alpha, log_marginal, mean) in known {
            let law = TwoPiecePoisson::new(released, rate, alpha).unwrap();
            assert!((law.log_marginal().0 - log_marginal).abs() < 1e-13);
            assert!((law.mean() / mean - 1.0).abs() < 1e-12);
            assert!((law.log_marginal().1 - (law.mean() / rate - 1.0)).abs() < 1e-14);
        }
    }

    #[test]
    fn marginals_near_zero_keep_their_digits() {
        // -2 atanh(alpha) - (1 - alpha) rate, by the series of atanh.
        for (rate, alpha) in
            [(0.0, 1e-17f64), (1e-18, 1e-12), (0.0, 1e-9), (2.302_349_348_722_363_5e-6, 1e-12), (0.0, 1e-3)]
        {
            let series = alpha + alpha.powi(3) / 3.0 + alpha.powi(5) / 5.0 + alpha.powi(7) / 7.0;
            let known = -2.0 * series - (1.0 - alpha) * rate;
            let found = TwoPiecePoisson::new(0.0, rate, alpha).unwrap().log_marginal().0;
            assert!((found / known - 1.0).abs() < 1e-13, "{rate} {alpha}: {found} {known}");
        }
    }

    #[test]
    fn masses_sum_to_one_whoever_holds_the_mode() {
        for (released, rate, alpha) in
            [(0.0, 3.0, 0.5), (9.0, 2.0, 0.5), (9.0, 40.0, 0.5), (9.0, 9.0, 0.1), (1.0, 9.0, 0.9)]
        {
            let law = TwoPiecePoisson::new(released, rate, alpha).unwrap();
            let total: f64 = (0..300).map(|y| law.log_mass(f64::from(y)).exp()).sum();
            assert!((total - 1.0).abs() < 1e-14, "{released} {rate} {alpha}: {total}");
        }
    }

    #[test]
    fn draws_near_zero_fit_their_law() {
        let cells = [(1, 0.02, 0.37), (1, 2.7, 0.37), (4, 1.0, 0.9), (15, 8.0, 0.12), (2, 1e-3, 0.2)];
        for (row, (released, rate, alpha)) in cells.into_iter().enumerate() {
            let law = TwoPiecePoisson::new(released as f64, rate, alpha).unwrap();
            let mut words = Stream::new([17, 8], 0, 0, row as u64);
            let draws: Vec<i64> = (0..100_000).map(|_| draw_near(released, rate, alpha, &mut words)).collect();
            assert_draws_fit(&law, &draws);
        }
    }

    #[test]
    fn releases_no_count_can_give_are_refused() {
        assert!(TwoPiecePoisson::new(-1.0, 1.0, 0.0).is_err() && TwoPiecePoisson::new(1.0, 0.0, 0.0).is_err());
        assert!(TwoPiecePoisson::new(0.5, 1.0, 0.5).is_err() && TwoPiecePoisson::new(1.0, f64::NAN, 0.5).is_err());
    }

    #[test]
    fn draws_fit_whoever_holds_the_mode() {
        let cells = [(0.0, 3.0, 0.5), (3.0, 0.5, 0.37), (100.0, 20.0, 0.5), (100.0, 300.0, 0.5), (100.0, 100.0, 0.6)];
        for (row, (released, rate, alpha)) in cells.into_iter().enumerate() {
            let law = TwoPiecePoisson::new(released, rate, alpha).unwrap();
            let mut words = Stream::new([17, 7], 0, 0, row as u64);
            let draws: Vec<i64> = (0..40_000).map(|_| law.draw(&mut words)).collect();
            assert_draws_fit(&law, &draws);
        }
    }
}
