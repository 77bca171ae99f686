//! Counts and bits, rectified to a..=b and released with two-sided geometric or Laplace noise of decay d = -ln alpha per unit.
//!
//! With f the mass of the clipped number (tails at the bounds), the sums A(j) = sum_{x<=j} f(x) alpha^(j-x) and
//! B(j) = sum_{x>j} f(x) alpha^(x-j-1) follow by recursion, and a release z in [j, j+1) has
//! p(z) ~ A(j) e^(-d (z-j)) + B(j) e^(-d (j+1-z)): a table of b - a + 1 entries serves all users. With g(x) the derivative of
//! P(X > x), of one sign for all x, and w(x) = e^(-d |z-x|), summation by parts gives
//! dp ~ sum over x of g(x) (w(x+1) - w(x)): what rises before z less what falls after it, by recursions without cancellation.
//! Where many releases fall between two whole numbers they are replaced by Chebyshev nodes, as in [`super::compressed`], or by
//! what [`super::cells`] has for them.
//!
//! Source: derived here; the sum over x of f(x) times the noise's law, split at z.

use super::Likelihood;
use super::cells::{self, Found, check_finite};
use crate::numeric::special::log_factorial;
use crate::{Error, Result};
use std::f64::consts::PI;
use std::sync::Arc;

/// Bounds further apart than this would need tables too large to be of use: there are six, of 32 MiB each here.
pub const WIDEST: i64 = 1 << 22;
/// Nodes of a panel, over which the noise falls by e at the most.
const NODES: usize = 16;

/// The law of a count before clipping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountFamily {
    /// Poisson, by its rate.
    Poisson,
    /// Geometric on 0, 1, 2, ..., by its probability of success.
    Geometric,
    /// A bit, by its probability of being one.
    Bernoulli,
}

impl CountFamily {
    /// The mass at a whole number.
    fn mass(self, theta: f64, x: f64) -> f64 {
        if x < 0.0 {
            return 0.0;
        }
        match self {
            CountFamily::Poisson => (x * theta.ln() - theta - log_factorial(x)).exp(),
            CountFamily::Geometric => theta * (x * (-theta).ln_1p()).exp(),
            CountFamily::Bernoulli if x == 0.0 => 1.0 - theta,
            CountFamily::Bernoulli if x == 1.0 => theta,
            CountFamily::Bernoulli => 0.0,
        }
    }

    /// The derivative of `P(X > x)`.
    fn rise(self, theta: f64, x: f64) -> f64 {
        if x < 0.0 {
            return 0.0;
        }
        match self {
            CountFamily::Poisson => self.mass(theta, x),
            CountFamily::Geometric => -(x + 1.0) * (x * (-theta).ln_1p()).exp(),
            CountFamily::Bernoulli => f64::from(x == 0.0),
        }
    }

    /// `P(X >= x)`.
    fn upper_tail(self, theta: f64, x: f64) -> f64 {
        if x <= 0.0 {
            return 1.0;
        }
        match self {
            CountFamily::Poisson => {
                let first = self.mass(theta, x);
                let (mut term, mut sum, mut k) = (first, first, x);
                if x > theta {
                    while term > 1e-17 * sum {
                        k += 1.0;
                        term *= theta / k;
                        sum += term;
                    }
                    sum
                } else {
                    sum = 0.0;
                    while k > 0.0 && (term > 1e-17 * sum || sum == 0.0) {
                        term *= k / theta;
                        sum += term;
                        k -= 1.0;
                    }
                    1.0 - sum
                }
            }
            CountFamily::Geometric => (x * (-theta).ln_1p()).exp(),
            CountFamily::Bernoulli if x == 1.0 => theta,
            CountFamily::Bernoulli => 0.0,
        }
    }

    /// `P(X <= x)`.
    fn lower_tail(self, theta: f64, x: f64) -> f64 {
        if x < 0.0 {
            return 0.0;
        }
        match self {
            CountFamily::Poisson if x >= theta => 1.0 - self.upper_tail(theta, x + 1.0),
            CountFamily::Poisson => {
                let first = self.mass(theta, x);
                let (mut term, mut sum, mut k) = (first, first, x);
                while k > 0.0 && term > 1e-17 * sum {
                    term *= k / theta;
                    sum += term;
                    k -= 1.0;
                }
                sum
            }
            CountFamily::Geometric => -((x + 1.0) * (-theta).ln_1p()).exp_m1(),
            CountFamily::Bernoulli if x == 0.0 => 1.0 - theta,
            CountFamily::Bernoulli => 1.0,
        }
    }

    /// The logarithm of the mass at a whole number.
    pub(super) fn log_mass(self, theta: f64, x: f64) -> f64 {
        match self {
            _ if x < 0.0 => f64::NEG_INFINITY,
            CountFamily::Poisson => x * theta.ln() - theta - log_factorial(x),
            CountFamily::Geometric => theta.ln() + x * (-theta).ln_1p(),
            CountFamily::Bernoulli if x == 0.0 => (-theta).ln_1p(),
            CountFamily::Bernoulli if x == 1.0 => theta.ln(),
            CountFamily::Bernoulli => f64::NEG_INFINITY,
        }
    }

    /// The logarithm of the size of the derivative of `P(X > x)`, which is negative for a geometric count alone.
    pub(super) fn log_rise(self, theta: f64, x: f64) -> f64 {
        match self {
            CountFamily::Poisson => self.log_mass(theta, x),
            CountFamily::Geometric if x >= 0.0 => (x + 1.0).ln() + x * (-theta).ln_1p(),
            CountFamily::Bernoulli if x == 0.0 => 0.0,
            _ => f64::NEG_INFINITY,
        }
    }

    /// `ln P(X >= x)`.
    pub(super) fn log_upper_tail(self, theta: f64, x: f64) -> f64 {
        match self {
            _ if x <= 0.0 => 0.0,
            CountFamily::Poisson if x > theta => {
                let (mut term, mut sum, mut k) = (1.0, 1.0, x);
                while term > 1e-17 * sum {
                    k += 1.0;
                    term *= theta / k;
                    sum += term;
                }
                self.log_mass(theta, x) + f64::ln(sum)
            }
            CountFamily::Poisson => (-self.log_lower_tail(theta, x - 1.0).exp()).ln_1p(),
            CountFamily::Geometric => x * (-theta).ln_1p(),
            CountFamily::Bernoulli => self.log_mass(theta, x),
        }
    }

    /// `ln P(X <= x)`.
    pub(super) fn log_lower_tail(self, theta: f64, x: f64) -> f64 {
        match self {
            _ if x < 0.0 => f64::NEG_INFINITY,
            CountFamily::Poisson if x >= theta => (-self.log_upper_tail(theta, x + 1.0).exp()).ln_1p(),
            CountFamily::Poisson => {
                let (mut term, mut sum, mut k) = (1.0, 1.0, x);
                while k > 0.0 && term > 1e-17 * sum {
                    term *= k / theta;
                    sum += term;
                    k -= 1.0;
                }
                self.log_mass(theta, x) + f64::ln(sum)
            }
            CountFamily::Geometric => (-((x + 1.0) * (-theta).ln_1p()).exp_m1()).ln(),
            CountFamily::Bernoulli if x == 0.0 => (-theta).ln_1p(),
            CountFamily::Bernoulli => 0.0,
        }
    }
}

/// A released number: its cell, its distances to both ends of it as exponentials, and its weight.
#[derive(Clone, Copy, Debug)]
struct NodePoint {
    cell: usize,
    left: f64,
    right: f64,
    /// `right - left`.
    bend: f64,
    weight: f64,
}

/// One group of users with the same mechanism.
#[derive(Clone)]
pub struct UserGroup {
    family: CountFamily,
    lower: i64,
    alpha: f64,
    /// 1 - alpha.
    loss: f64,
    constant: f64,
    points: Arc<Vec<NodePoint>>,
    /// f, A, B, g and the sums of g before and after each cell.
    tables: [Vec<f64>; 6],
}

/// What noise the whole numbers got.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CountNoise {
    /// Two-sided geometric of this decay, so that releases are whole.
    Geometric(f64),
    /// Laplace of this decay, the inverse of its scale.
    Laplace(f64),
}

impl UserGroup {
    /// Arranges the released values of one group.
    ///
    /// # Errors
    /// [`Error::Domain`] for bounds or releases that cannot be.
    pub fn new(
        family: CountFamily,
        lower: i64,
        upper: i64,
        noise: CountNoise,
        released: &[f64],
        exact: bool,
    ) -> Result<Self> {
        check_finite(released)?;
        let law = ReleaseLaw::new(lower, upper, noise)?;
        let decay = law.decay;
        let (low, high) = (lower as f64, upper as f64);
        let last = (upper - lower) as usize;
        let mut excess = 0.0;
        let mut cells: Vec<Vec<f64>> = vec![Vec::new(); last + 1];
        let mut ends = [0.0; 2];
        for &z in released {
            if z <= low {
                excess += low - z;
                ends[0] += 1.0;
            } else if z >= high {
                excess += z - high;
                ends[1] += 1.0;
            } else {
                let cell = (z.floor() - low) as usize;
                cells[cell].push(z - z.floor());
            }
        }
        let mut points = law.ends(ends);
        let panels = decay.max(1.0).ceil() as usize;
        for (cell, values) in cells.iter_mut().enumerate() {
            let whole = values.iter().filter(|&&t| t == 0.0).count();
            values.retain(|&t| t != 0.0);
            let mut add = |t: f64, weight: f64| points.push(law.point(cell, t, weight));
            if whole > 0 {
                add(0.0, whole as f64);
            }
            if exact || values.len() < 2 * NODES * panels {
                values.iter().for_each(|&t| add(t, 1.0));
            } else {
                for panel in 0..panels {
                    let centre = (panel as f64 + 0.5) / panels as f64;
                    let mine = values.iter().copied().filter(|&t| (t * panels as f64) as usize == panel);
                    chebyshev(mine.map(|t| (t - centre) * 2.0 * panels as f64), |node, weight| {
                        add(centre + 0.5 * node / panels as f64, weight);
                    });
                }
            }
        }
        Ok(law.group(family, released.len() as f64, excess, points))
    }

    /// Arranges what cells have of one group: how many lie beyond each bound and by how much in all, and the cells that are not
    /// empty. With geometric noise a cell is a whole number, else each unit has as many cells as any other.
    ///
    /// # Errors
    /// [`Error::Domain`] for bounds that cannot be.
    pub fn of_cells(
        family: CountFamily,
        (lower, upper): (i64, i64),
        noise: CountNoise,
        ends: [f64; 2],
        excess: f64,
        found: Found<'_>,
    ) -> Result<Self> {
        let law = ReleaseLaw::new(lower, upper, noise)?;
        let each = found.number / (upper - lower) as usize;
        let mut users = ends[0] + ends[1];
        let mut points = law.ends(ends);
        for (&cell, sums) in found.index.iter().zip(found.sums) {
            users += sums[0] as f64;
            let (cell, part) = (cell as usize / each, cell as usize % each);
            if let CountNoise::Geometric(_) = noise {
                points.push(law.point(cell, 0.0, sums[0] as f64));
            } else {
                let centre = part as f64 + 0.5;
                let add = |(node, weight)| law.point(cell, (centre + node) / each as f64, weight);
                points.extend(cells::nodes(sums).map(add));
            }
        }
        Ok(law.group(family, users, excess, points))
    }
}

/// The noise and the bounds, checked.
struct ReleaseLaw {
    lower: i64,
    last: usize,
    decay: f64,
    log_scale: f64,
}

impl ReleaseLaw {
    fn new(lower: i64, upper: i64, noise: CountNoise) -> Result<Self> {
        let bounds = format_args!("{lower} with upper = {upper}");
        Error::require(lower < upper && upper - lower <= WIDEST, "lower", bounds, "below `upper` by at most 2**22")?;
        let (decay, log_scale) = match noise {
            CountNoise::Geometric(decay) => (decay, (0.5 * decay).tanh().ln()),
            CountNoise::Laplace(decay) => (decay, (0.5 * decay).ln()),
        };
        let requirement = "positive, with an epsilon decay * (upper - lower) of at most 700";
        Error::require(decay > 0.0 && decay * (upper - lower) as f64 <= 700.0, "decay", decay, requirement)?;
        Ok(Self { lower, last: (upper - lower) as usize, decay, log_scale })
    }

    /// A release between two whole numbers, at t above the lower one.
    fn point(&self, cell: usize, t: f64, weight: f64) -> NodePoint {
        let decay = self.decay;
        let (left, right) = ((-decay * t).exp(), (-decay * (1.0 - t)).exp());
        NodePoint { cell, left, right, bend: left * (decay * (2.0 * t - 1.0)).exp_m1(), weight }
    }

    /// All that was released at the bounds or beyond.
    fn ends(&self, ends: [f64; 2]) -> Vec<NodePoint> {
        let (right, bend) = ((-self.decay).exp(), (-self.decay).exp_m1());
        [0, self.last]
            .into_iter()
            .zip(ends)
            .map(|(cell, weight)| NodePoint { cell, left: 1.0, right, bend, weight })
            .collect()
    }

    fn group(&self, family: CountFamily, users: f64, excess: f64, mut points: Vec<NodePoint>) -> UserGroup {
        points.retain(|point| point.weight != 0.0);
        let Self { lower, last, decay, log_scale } = *self;
        let (alpha, loss) = ((-decay).exp(), -(-decay).exp_m1());
        let tables = std::array::from_fn(|_| vec![0.0; last + 1]);
        let constant = users * log_scale - decay * excess;
        UserGroup { family, lower, alpha, loss, constant, points: Arc::new(points), tables }
    }
}

/// Chebyshev nodes on [-1, 1] with the weights that sum a polynomial over the values.
pub(super) fn chebyshev(values: impl Iterator<Item = f64>, mut add: impl FnMut(f64, f64)) {
    let mut sums = [0.0; NODES];
    for x in values {
        let (mut before, mut here) = (1.0, x);
        sums[0] += 0.5;
        for sum in &mut sums[1..] {
            *sum += here;
            (before, here) = (here, 2.0 * x * here - before);
        }
    }
    for k in 0..NODES {
        let angle = PI * (k as f64 + 0.5) / NODES as f64;
        let weight: f64 = sums.iter().enumerate().map(|(j, sum)| sum * (j as f64 * angle).cos()).sum();
        add(angle.cos(), 2.0 * weight / NODES as f64);
    }
}

impl Likelihood for UserGroup {
    fn value(&mut self, natural: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let theta = natural[0];
        let Self { alpha, loss, .. } = *self;
        let [mass, before, after, rise, rising, falling] = &mut self.tables;
        let last = mass.len() - 1;
        for x in 0..=last {
            let number = (self.lower + x as i64) as f64;
            mass[x] = if x == 0 {
                self.family.lower_tail(theta, number)
            } else if x == last {
                self.family.upper_tail(theta, number)
            } else {
                self.family.mass(theta, number)
            };
            // Nothing is above the upper bound; a Poisson variable's derivative is its mass, which is known but at the lower one.
            rise[x] = match self.family {
                _ if x == last => 0.0,
                CountFamily::Poisson if x > 0 => mass[x],
                family => family.rise(theta, number),
            };
            let (a, g) = if x == 0 { (0.0, 0.0) } else { (before[x - 1], alpha * rising[x - 1] + loss * rise[x - 1]) };
            (before[x], rising[x]) = (alpha * a + mass[x], g);
        }
        (after[last], falling[last]) = (0.0, 0.0);
        for x in (0..last).rev() {
            after[x] = alpha * after[x + 1] + mass[x + 1];
            falling[x] = alpha * falling[x + 1] + loss * rise[x + 1];
        }
        let (mut total, mut derivative) = (self.constant, 0.0);
        for &NodePoint { cell, left, right, bend, weight } in self.points.iter() {
            let p = before[cell] * left + after[cell] * right;
            let dp = (rising[cell] * left - falling[cell] * right) + rise[cell] * bend;
            total += weight * p.ln();
            derivative += weight * dp / p;
        }
        if let Some(gradient) = gradient {
            gradient[0] = derivative;
        }
        total
    }

    fn parameters(&self) -> usize {
        1
    }
}

/// Whole numbers released without noise.
#[derive(Clone, Copy, Debug)]
pub struct CountSums {
    family: CountFamily,
    number: f64,
    sum: f64,
    constant: f64,
}

impl CountSums {
    /// From the number of values, their sum, and for Poisson counts that of ln x!.
    #[must_use]
    pub fn of_sums(family: CountFamily, number: f64, sum: f64, log_factorials: f64) -> Self {
        Self { family, number, sum, constant: if family == CountFamily::Poisson { -log_factorials } else { 0.0 } }
    }

    /// From the numbers.
    pub fn new(family: CountFamily, values: &[f64]) -> Self {
        let constant =
            if family == CountFamily::Poisson { -values.iter().map(|&x| log_factorial(x)).sum::<f64>() } else { 0.0 };
        Self { family, number: values.len() as f64, sum: values.iter().sum(), constant }
    }
}

impl Likelihood for CountSums {
    fn value(&mut self, natural: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let (theta, n, sum) = (natural[0], self.number, self.sum);
        let (value, slope) = match self.family {
            CountFamily::Poisson => (sum * theta.ln() - n * theta, sum / theta - n),
            CountFamily::Geometric => (n * theta.ln() + sum * (-theta).ln_1p(), n / theta - sum / (1.0 - theta)),
            CountFamily::Bernoulli => {
                (sum * theta.ln() + (n - sum) * (-theta).ln_1p(), sum / theta - (n - sum) / (1.0 - theta))
            }
        };
        if let Some(gradient) = gradient {
            gradient[0] = slope;
        }
        value + self.constant
    }

    fn parameters(&self) -> usize {
        1
    }
}

/// Bits released by randomized response: one with probability q + (p - q) theta.
#[derive(Clone, Copy, Debug)]
pub struct Bits {
    zeros: f64,
    ones: f64,
    keep: f64,
}

impl Bits {
    /// From the numbers of zeros and ones and the probability of the truth.
    pub fn new(zeros: f64, ones: f64, keep: f64) -> Self {
        Self { zeros, ones, keep }
    }
}

impl Likelihood for Bits {
    fn value(&mut self, natural: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let (theta, flip) = (natural[0], 1.0 - self.keep);
        let (one, zero) = (flip + (self.keep - flip) * theta, self.keep - (self.keep - flip) * theta);
        if let Some(gradient) = gradient {
            gradient[0] = (self.keep - flip) * (self.ones / one - self.zeros / zero);
        }
        let part = |count: f64, p: f64| if count > 0.0 { count * p.ln() } else { 0.0 };
        part(self.ones, one) + part(self.zeros, zero)
    }

    fn parameters(&self) -> usize {
        1
    }
}
