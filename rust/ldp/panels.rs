//! Rows of points and panels of rows: the rules of one integral over two coordinates, their errors, and the polynomials
//! through the points.
//!
//! A row is the trapezoid rule along the last coordinate. A panel has a row at each node of a rule along the first: the
//! trapezoid's again, or Clenshaw and Curtis'.
//!
//! Sources: L. Trefethen, J. Weideman (2014), The exponentially convergent trapezoidal rule, SIAM Review 56, theorem 5.1;
//! L. Trefethen (2008), Is Gauss quadrature better than Clenshaw-Curtis?, SIAM Review 50, section 2.

use crate::numeric::dispatch::{at_level, level};
use std::f64::consts::PI;
use std::sync::LazyLock;

/// Nodes of a panel. Not tuned: with more, halving a panel costs more, with fewer there are more panels.
pub(super) const NODES: usize = 17;

/// An interval of the first coordinate with a row of points at each node of a rule.
#[derive(Clone, Debug)]
pub(super) struct Panel {
    pub left: f64,
    pub right: f64,
    /// Whether the rule is the trapezoid's, of any number of nodes, a multiple of 4 or 1, and not that of Clenshaw and Curtis.
    pub periodic: bool,
    pub rows: Vec<Row>,
    pub masses: Interpolant,
    /// The integral of the rows' masses over the panel.
    pub mass: f64,
}

/// The rows' masses, as a function of the share of the panel.
#[derive(Clone, Debug)]
pub(super) enum Interpolant {
    Fourier(FourierSeries),
    Chebyshev([f64; NODES]),
}

/// The density along the last coordinate, at one value of the first.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub first: f64,
    pub logs: Vec<f64>,
    /// Integrals of the density, of it times the natural values less those at the mode, and of it times their squares: by
    /// all points, by each second, and by each fourth.
    pub sums: [Vec<f64>; 3],
    pub series: FourierSeries,
}

/// Fourier coefficients of a function with period one, real and imaginary parts apart, for frequencies from 0 on.
#[derive(Clone, Debug, Default)]
pub(super) struct FourierSeries {
    pub re: Vec<f64>,
    pub im: Vec<f64>,
}

impl FourierSeries {
    pub fn zeros(len: usize) -> Self {
        Self { re: vec![0.0; len], im: vec![0.0; len] }
    }

    /// The trigonometric polynomial through values at equal distances, `roots` those of unity of their number.
    pub fn through(values: &[f64], roots: &[[f64; 2]]) -> Self {
        let m = values.len();
        let mut found = Self::zeros(m / 2 + 1);
        for (l, (re, im)) in found.re.iter_mut().zip(&mut found.im).enumerate() {
            for (j, value) in values.iter().enumerate() {
                let [c, s] = roots[j * l % m];
                *re += value * c;
                *im -= value * s;
            }
            // The highest frequency of an even number is its own mirror image.
            let share = if 2 * l == m { 0.5 } else { 1.0 } / m as f64;
            *re *= share;
            *im *= share;
        }
        found
    }

    /// Adds another one, of as many coefficients, times a number.
    pub fn add(&mut self, other: &Self, factor: f64) {
        at_level!(level(), {
            self.re.iter_mut().zip(&other.re).for_each(|(sum, re)| *sum += factor * re);
            self.im.iter_mut().zip(&other.im).for_each(|(sum, im)| *sum += factor * im);
        })
    }

    /// The function and its integral from 0, at the share `t` of the period.
    pub fn at(&self, t: f64) -> (f64, f64) {
        let angle = 2.0 * PI * t;
        let step = [angle.cos(), angle.sin()];
        let mut turn = step;
        let (mut density, mut mass) = (0.5 * self.re[0], 0.0);
        for (l, (re, im)) in self.re.iter().zip(&self.im).enumerate().skip(1) {
            density += re * turn[0] - im * turn[1];
            // The integral from 0 of 2 Re c e^(i w t) is 2 Re c (e^(i w t) - 1)/(i w).
            mass += (re * turn[1] + im * (turn[0] - 1.0)) / l as f64;
            turn = [turn[0] * step[0] - turn[1] * step[1], turn[0] * step[1] + turn[1] * step[0]];
        }
        (2.0 * density, self.re[0] * t + mass / PI)
    }
}

/// Clenshaw and Curtis' rule on [-1, 1].
pub struct Rule {
    /// In increasing order.
    pub nodes: [f64; NODES],
    /// Of the nodes.
    pub weights: [f64; NODES],
    /// Row k: what a value at each node adds to the k-th Chebyshev coefficient.
    pub coefficients: [[f64; NODES]; NODES],
}

/// The rule of every panel that is not the trapezoid's.
pub static RULE: LazyLock<Rule> = LazyLock::new(|| {
    let n = NODES - 1;
    let end = |k: usize| if k == 0 || k == n { 0.5 } else { 1.0 };
    let cosine = |k: usize, j: usize| (PI * ((n - j) * k % (2 * n)) as f64 / n as f64).cos();
    let coefficients: [[f64; NODES]; NODES] =
        std::array::from_fn(|k| std::array::from_fn(|j| 2.0 / n as f64 * end(k) * end(j) * cosine(k, j)));
    // Chebyshev polynomials of even degree have the integrals 2/(1 - k^2), others none.
    let weight = |j: usize| (0..=n).step_by(2).map(|k| coefficients[k][j] * 2.0 / (1.0 - (k * k) as f64)).sum();
    Rule { nodes: std::array::from_fn(|j| cosine(1, j)), weights: std::array::from_fn(weight), coefficients }
});

impl Interpolant {
    /// The function and its integral from 0, at the share `t`.
    pub fn at(&self, t: f64) -> (f64, f64) {
        let coefficients = match self {
            Self::Fourier(series) => return series.at(t),
            Self::Chebyshev(coefficients) => coefficients,
        };
        let x = 2.0 * t - 1.0;
        let angle = x.acos();
        let polynomial = |k: usize| (k as f64 * angle).cos();
        let (mut density, mut mass) = (0.0, coefficients[0] * (x + 1.0) + coefficients[1] * 0.5 * (x * x - 1.0));
        for (k, &coefficient) in coefficients.iter().enumerate() {
            density += coefficient * polynomial(k);
            if k > 1 {
                // The integral from -1 of T_k is that of T_(k+1)/(2k+2) - T_(k-1)/(2k-2), both of which are (-1)^(k+1) there.
                let sign = if k % 2 == 0 { -1.0 } else { 1.0 };
                let [up, down] = [k + 1, k - 1].map(|k| (polynomial(k) - sign) / (2 * k) as f64);
                mass += coefficient * (up - down);
            }
        }
        (density, 0.5 * mass)
    }
}

impl Panel {
    pub fn share(&self, first: f64) -> f64 {
        ((first - self.left) / (self.right - self.left)).clamp(0.0, 1.0)
    }

    /// The weight of a node.
    pub fn weight(&self, j: usize) -> f64 {
        let width = self.right - self.left;
        if self.periodic { width / self.rows.len() as f64 } else { 0.5 * width * RULE.weights[j] }
    }

    /// Integrals over the panel of what the rows have, with the errors along the first coordinate and along the last.
    pub fn integrals(&self) -> (Vec<f64>, [Vec<f64>; 2]) {
        let integrals = |c: usize| {
            let (mut sums, mut inner, mut highest) = ([0.0; 3], 0.0, [0.0; 3]);
            for (j, row) in self.rows.iter().enumerate() {
                let [all, half, quarter] = [0, 1, 2].map(|rule| row.sums[rule][c]);
                let part = self.weight(j) * all;
                inner += self.weight(j) * nested_error(all, half, quarter);
                sums[0] += part;
                if self.periodic {
                    sums[1] += if j % 2 == 0 { 2.0 * part } else { 0.0 };
                    sums[2] += if j % 4 == 0 { 4.0 * part } else { 0.0 };
                } else {
                    let last = &RULE.coefficients[NODES - 3..];
                    highest.iter_mut().zip(last).for_each(|(sum, row)| *sum += row[j] * all);
                }
            }
            let outer = if self.rows.len() == 1 {
                0.0
            } else if self.periodic {
                nested_error(sums[0], sums[1], sums[2])
            } else {
                // Of a function with a kink in some derivative the rule's error is less than the highest coefficients by more
                // than their degree.
                let highest = highest.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
                (self.right - self.left) * highest / (NODES - 1) as f64
            };
            (sums[0], [outer, inner])
        };
        let (sums, errors): (Vec<f64>, Vec<[f64; 2]>) = (0..self.rows[0].sums[0].len()).map(integrals).unzip();
        (sums, [0, 1].map(|axis| errors.iter().map(|pair| pair[axis]).collect()))
    }

    /// The rows' mass at a share of the panel, per unit of that share, and its integral from 0.
    pub fn at(&self, t: f64) -> (f64, f64) {
        let (density, mass) = self.masses.at(t);
        ((self.right - self.left) * density, (self.right - self.left) * mass)
    }

    /// What each row counts at a share of the panel: the basis of Lagrange, of polynomials by the barycentric formula.
    pub fn basis(&self, t: f64) -> Vec<f64> {
        let n = self.rows.len();
        let place = |j: usize| if self.periodic { j as f64 / n as f64 } else { 0.5 * (1.0 + RULE.nodes[j]) };
        if let Some(at) = (0..n).find(|&j| n == 1 || t == place(j)) {
            return (0..n).map(|j| f64::from(j == at)).collect();
        }
        let sign = |j: usize| if j.is_multiple_of(2) { 1.0 } else { -1.0 };
        let raw = |j: usize| {
            if self.periodic {
                sign(j) / (PI * (t - place(j))).tan()
            } else {
                sign(j) * if j == 0 || j == n - 1 { 0.5 } else { 1.0 } / (t - place(j))
            }
        };
        let raw: Vec<f64> = (0..n).map(raw).collect();
        let sum: f64 = raw.iter().sum();
        raw.into_iter().map(|part| part / sum).collect()
    }
}

/// The error of the trapezoid rule, by what it found itself, with half of its points and with a quarter: the last change, made
/// smaller by the root of its ratio to the change before. Where the rule converges geometrically that ratio is the last
/// change's to the error.
fn nested_error(all: f64, half: f64, quarter: f64) -> f64 {
    let (last, before) = ((all - half).abs(), (half - quarter).abs());
    if last < before { last * (last / before).sqrt() } else { last }
}

/// Where an increasing function from [0, 1], given with its slope, has a value; `t` is a first guess.
pub(super) fn invert(at: impl Fn(f64) -> (f64, f64), target: f64, mut t: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..80 {
        let (density, mass) = at(t);
        if mass < target {
            low = t;
        } else {
            high = t;
        }
        let newton = t - (mass - target) / density;
        let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
        let moved = (next - t).abs();
        t = next;
        // Newton's steps square the error: this one's was the last to be seen.
        if moved < 1e-7 {
            break;
        }
    }
    t
}

/// Where a distribution function on a grid of cells, given by its increments, has the share `p` of its sum.
pub(super) fn place(sums: &[f64], p: f64) -> f64 {
    let cells = sums.len() - 1;
    let target = p * sums[cells];
    let cell = sums.partition_point(|&sum| sum <= target).clamp(1, cells) - 1;
    let more = sums[cell + 1] - sums[cell];
    let part = if more > 0.0 { (target - sums[cell]) / more } else { 0.5 };
    ((cell as f64 + part) / cells as f64).clamp(1e-9, 1.0 - 1e-9)
}
