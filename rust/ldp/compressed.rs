//! Many users' Laplace releases of one bounded number, arranged so that a likelihood does not cost more for more users.
//!
//! A release z = clip(x) + Laplace(s) beyond the bounds depends on theta only through the bound: ln p(z) = ln p(a) - (a-z)/s
//! for z <= a, likewise above b, exactly. Inside, ln p(z) is smooth in z, so that
//! sum_i ln p(z_i) = sum_k w_k ln p(t_k) with Chebyshev nodes t_k in panels and weights w_k = sum_i l_k(z_i) of Lagrange's
//! basis. Panels form a tree: one that is too wide for the theta at hand is replaced by its halves, at the end by the values
//! themselves, so that no theta is served with less accuracy. Of many users the values are those that [`super::cells`] has
//! for them.
//!
//! Source: L. Trefethen (2013), Approximation Theory and Approximation Practice, theorem 8.2 (how fast the error falls).

use super::Likelihood;
use super::cells::{self, Found, check_finite};
use crate::{Error, Result};
use std::f64::consts::PI;
use std::sync::{Arc, LazyLock};

/// Nodes of a panel, which is halved where [`Marginal::resolves`] says that they do not serve. Not tuned: with more, fewer panels
/// are halved, and each costs more.
const NODES: usize = 16;
/// A panel with fewer values, as many as the nodes of its halves, keeps them.
const FEW: usize = 2 * NODES;

/// Laplace noise on numbers clipped to bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClippedLaplace {
    /// The lower bound.
    pub lower: f64,
    /// The upper bound.
    pub upper: f64,
    /// The scale of the noise.
    pub scale: f64,
}

impl ClippedLaplace {
    /// Checks the numbers; `(upper - lower) / scale`, the epsilon, may be at most 700, beyond which densities underflow.
    ///
    /// # Errors
    /// [`Error::Domain`].
    pub fn new(lower: f64, upper: f64, scale: f64) -> Result<Self> {
        let width = upper - lower;
        let bounds = format_args!("{lower} with upper = {upper}");
        Error::require(width > 0.0 && width.is_finite(), "lower", bounds, "below `upper`, both finite")?;
        let requirement = "positive, and the epsilon (upper - lower) / scale at most 700";
        Error::require(scale > 0.0 && scale.is_finite() && width / scale <= 700.0, "scale", scale, requirement)?;
        Ok(Self { lower, upper, scale })
    }
}

/// The law of one user's release, given the parameters.
pub trait Marginal: Clone + Send + Sync + 'static {
    /// The number of parameters, one or two.
    const PARAMETERS: usize;
    /// What all values share at one theta.
    type At;

    /// Prepares one theta.
    fn at(&self, noise: &ClippedLaplace, natural: &[f64]) -> Self::At;

    /// `2 s p(z)` for z within the bounds, and its derivatives over itself where `GRADIENT`. `above_lower` is
    /// `exp(-(z-a)/s)`, `below_upper` is `exp(-(b-z)/s)`.
    fn density<const GRADIENT: bool>(at: &Self::At, z: f64, above_lower: f64, below_upper: f64) -> (f64, [f64; 2]);

    /// The weighted sum of ln of [`Self::density`] over points, and of its derivatives; a family may do it in blocks.
    fn sum<const GRADIENT: bool>(at: &Self::At, points: Slices<'_>) -> [f64; 3] {
        Self::sum_each::<GRADIENT>(at, points)
    }

    /// The same, one point after the other.
    fn sum_each<const GRADIENT: bool>(at: &Self::At, points: Slices<'_>) -> [f64; 3] {
        let mut sums = [0.0; 3];
        for (((&z, &ea), &eb), &weight) in points.z.iter().zip(points.ea).zip(points.eb).zip(points.weight) {
            let (density, derivatives) = Self::density::<GRADIENT>(at, z, ea, eb);
            sums[0] += weight * density.ln();
            if GRADIENT {
                sums[1] += weight * derivatives[0];
                sums[2] += weight * derivatives[1];
            }
        }
        sums
    }

    /// Whether sixteen nodes between two points make an interpolant of `ln p` to full accuracy.
    fn resolves(at: &Self::At, left: f64, right: f64) -> bool;
}

/// Values with weights, and the exponentials that every theta needs of them: `exp(-(z-a)/s)` and `exp(-(b-z)/s)`.
#[derive(Default)]
struct Points {
    z: Vec<f64>,
    ea: Vec<f64>,
    eb: Vec<f64>,
    weight: Vec<f64>,
}

/// Some of the points.
#[derive(Clone, Copy, Debug)]
pub struct Slices<'a> {
    /// The values.
    pub z: &'a [f64],
    /// `exp(-(z-a)/s)`.
    pub ea: &'a [f64],
    /// `exp(-(b-z)/s)`.
    pub eb: &'a [f64],
    /// The weights.
    pub weight: &'a [f64],
}

impl Points {
    fn push(&mut self, noise: &ClippedLaplace, value: f64, weight: f64) {
        self.z.push(value);
        self.ea.push((-(value - noise.lower) / noise.scale).exp());
        self.eb.push((-(noise.upper - value) / noise.scale).exp());
        self.weight.push(weight);
    }

    fn part(&self, nodes: std::ops::Range<usize>) -> Slices<'_> {
        let Self { z, ea, eb, weight } = self;
        Slices { z: &z[nodes.clone()], ea: &ea[nodes.clone()], eb: &eb[nodes.clone()], weight: &weight[nodes] }
    }
}

struct Panel {
    left: f64,
    right: f64,
    nodes: std::ops::Range<usize>,
    /// Whether the nodes are the values themselves.
    exact: bool,
    halves: Option<[usize; 2]>,
}

struct LeafTree {
    points: Points,
    panels: Vec<Panel>,
    roots: Vec<usize>,
}

/// One group of users with the same mechanism.
#[derive(Clone)]
pub struct PatternGroup<M> {
    marginal: M,
    noise: ClippedLaplace,
    below: f64,
    above: f64,
    constant: f64,
    tree: Arc<LeafTree>,
    stack: Vec<usize>,
}

/// Chebyshev nodes and the matrices that carry weights from each half of a panel to the whole.
pub struct Basis {
    nodes: [f64; NODES],
    halves: [[[f64; NODES]; NODES]; 2],
}

/// The nodes and matrices of every panel.
pub static BASIS: LazyLock<Basis> = LazyLock::new(|| {
    let nodes = std::array::from_fn(|k| -(PI * (k as f64 + 0.5) / NODES as f64).cos());
    let mut halves = [[[0.0; NODES]; NODES]; 2];
    for (half, matrix) in halves.iter_mut().enumerate() {
        for (k, row) in matrix.iter_mut().enumerate() {
            *row = lagrange(0.5 * nodes[k] + half as f64 - 0.5);
        }
    }
    Basis { nodes, halves }
});

/// Row j: (2/K) T_j at the nodes, half of it for j = 0.
pub static COSINES: LazyLock<[[f64; NODES]; NODES]> = LazyLock::new(|| {
    std::array::from_fn(|j| {
        std::array::from_fn(|k| {
            let factor = if j == 0 { 1.0 } else { 2.0 } / NODES as f64;
            factor * (j as f64 * PI * (1.0 - (k as f64 + 0.5) / NODES as f64)).cos()
        })
    })
});

/// Lagrange's basis at Chebyshev nodes: l_k(x) = (2/K) sum'_j cos(j theta_k) T_j(x).
fn lagrange(x: f64) -> [f64; NODES] {
    let cosines = &*COSINES;
    let mut out = cosines[0];
    let (mut before, mut here) = (1.0, x);
    for row in &cosines[1..] {
        for (sum, cosine) in out.iter_mut().zip(row) {
            *sum += here * cosine;
        }
        (before, here) = (here, 2.0 * x * here - before);
    }
    out
}

impl LeafTree {
    fn exact(noise: &ClippedLaplace, values: &[(f64, f64)]) -> Self {
        let mut points = Points::default();
        values.iter().for_each(|&(value, weight)| points.push(noise, value, weight));
        let panel = Panel { left: noise.lower, right: noise.upper, nodes: 0..values.len(), exact: true, halves: None };
        Self { points, panels: vec![panel], roots: vec![0] }
    }

    /// Panels of at most the noise's scale; `values` in increasing order.
    fn new(noise: &ClippedLaplace, values: &[(f64, f64)]) -> Self {
        let width = noise.upper - noise.lower;
        let panels = (width / noise.scale).max(1.0).ceil() as usize;
        if values.len() < 2 * NODES * panels {
            return Self::exact(noise, values);
        }
        let mut tree = Self { points: Points::default(), panels: Vec::new(), roots: Vec::new() };
        let mut rest = values;
        for panel in 0..panels {
            let left = noise.lower + width * panel as f64 / panels as f64;
            let right = noise.lower + width * (panel + 1) as f64 / panels as f64;
            let mine = if panel + 1 == panels { rest.len() } else { rest.partition_point(|value| value.0 < right) };
            let (values, later) = rest.split_at(mine);
            let (root, _) = tree.grow(noise, left, right, values, 15);
            tree.roots.push(root);
            rest = later;
        }
        tree
    }

    fn grow(
        &mut self,
        noise: &ClippedLaplace,
        left: f64,
        right: f64,
        values: &[(f64, f64)],
        depth: usize,
    ) -> (usize, [f64; NODES]) {
        let (centre, half) = (0.5 * (left + right), 0.5 * (right - left));
        let mut weights = [0.0; NODES];
        let mut panel = Panel { left, right, nodes: 0..0, exact: false, halves: None };
        let from = |points: &Points| points.weight.len();
        if values.len() <= FEW || depth == 0 {
            for &(value, weight) in values {
                let basis = lagrange((value - centre) / half);
                weights.iter_mut().zip(&basis).for_each(|(sum, l)| *sum += weight * l);
            }
            let start = from(&self.points);
            values.iter().for_each(|&(value, weight)| self.points.push(noise, value, weight));
            panel.nodes = start..from(&self.points);
            panel.exact = true;
        } else {
            let cut = values.partition_point(|value| value.0 < centre);
            let (first, mine) = self.grow(noise, left, centre, &values[..cut], depth - 1);
            let (second, others) = self.grow(noise, centre, right, &values[cut..], depth - 1);
            for (part, matrix) in [mine, others].iter().zip(&BASIS.halves) {
                for (weight, row) in part.iter().zip(matrix) {
                    weights.iter_mut().zip(row).for_each(|(sum, l)| *sum += weight * l);
                }
            }
            let start = from(&self.points);
            for (node, &weight) in BASIS.nodes.iter().zip(&weights) {
                self.points.push(noise, centre + half * node, weight);
            }
            panel.nodes = start..from(&self.points);
            panel.halves = Some([first, second]);
        }
        self.panels.push(panel);
        (self.panels.len() - 1, weights)
    }
}

impl<M: Marginal> PatternGroup<M> {
    /// Arranges the released values of one group. `exact` keeps every value inside the bounds.
    ///
    /// # Errors
    /// [`Error::Domain`] naming the index of a value that is not finite.
    pub fn new(marginal: M, noise: ClippedLaplace, released: &[f64], exact: bool) -> Result<Self> {
        let ClippedLaplace { lower, upper, .. } = noise;
        let (mut below, mut above, mut excess) = (0u64, 0u64, 0.0);
        let mut strange = 0u64;
        for &z in released {
            below += u64::from(z <= lower);
            above += u64::from(z >= upper);
            excess += (lower - z).max(0.0) + (z - upper).max(0.0);
            strange |= u64::from(!z.is_finite());
        }
        if strange != 0 {
            check_finite(released)?;
        }
        let inside = released.iter().copied().filter(|&z| z > lower && z < upper);
        let mut values: Vec<_> = inside.map(|z| (z, 1.0)).collect();
        let tree = if exact {
            LeafTree::exact(&noise, &values)
        } else {
            values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            LeafTree::new(&noise, &values)
        };
        Ok(Self::arranged(marginal, noise, [below as f64, above as f64], excess, released.len() as f64, tree))
    }

    /// Arranges what cells have of one group: how many lie beyond each bound and by how much in all, and the cells that are not
    /// empty, in increasing order, of a number of them.
    #[must_use]
    pub fn of_cells(marginal: M, noise: ClippedLaplace, ends: [f64; 2], excess: f64, found: Found<'_>) -> Self {
        let width = (noise.upper - noise.lower) / found.number as f64;
        let mut users = ends[0] + ends[1];
        let mut values = Vec::with_capacity(4 * found.index.len());
        for (&cell, sums) in found.index.iter().zip(found.sums) {
            users += sums[0] as f64;
            let centre = cell as f64 + 0.5;
            values.extend(cells::nodes(sums).map(|(node, weight)| (noise.lower + (centre + node) * width, weight)));
        }
        let tree = LeafTree::new(&noise, &values);
        Self::arranged(marginal, noise, ends, excess, users, tree)
    }

    fn arranged(
        marginal: M,
        noise: ClippedLaplace,
        [below, above]: [f64; 2],
        excess: f64,
        users: f64,
        tree: LeafTree,
    ) -> Self {
        let constant = -excess / noise.scale - users * (2.0 * noise.scale).ln();
        let stack = Vec::with_capacity(64);
        Self { marginal, noise, below, above, constant, tree: Arc::new(tree), stack }
    }

    /// Evaluations of the density that a value costs at one theta.
    pub fn evaluations(&mut self, natural: &[f64]) -> usize {
        let at = self.marginal.at(&self.noise, natural);
        let mut count = 2;
        let tree = Arc::clone(&self.tree);
        self.walk(&tree, &at, |nodes| count += nodes.len());
        count
    }

    #[inline]
    fn walk(&mut self, tree: &LeafTree, at: &M::At, mut visit: impl FnMut(std::ops::Range<usize>)) {
        for &root in &tree.roots {
            self.stack.push(root);
            while let Some(index) = self.stack.pop() {
                let panel = &tree.panels[index];
                match panel.halves {
                    Some(halves) if !panel.exact && !M::resolves(at, panel.left, panel.right) => {
                        self.stack.extend(halves);
                    }
                    _ => visit(panel.nodes.clone()),
                }
            }
        }
    }

    fn sum<const GRADIENT: bool>(&mut self, natural: &[f64]) -> (f64, [f64; 2]) {
        let ClippedLaplace { lower, upper, scale } = self.noise;
        let at = self.marginal.at(&self.noise, natural);
        let (mut total, mut slope) = (self.constant, [0.0; 2]);
        let far = (-(upper - lower) / scale).exp();
        for (users, z, ea, eb) in [(self.below, lower, 1.0, far), (self.above, upper, far, 1.0)] {
            if users > 0.0 {
                let (density, derivatives) = M::density::<GRADIENT>(&at, z, ea, eb);
                total += users * density.ln();
                slope[0] += users * derivatives[0];
                slope[1] += users * derivatives[1];
            }
        }
        let tree = Arc::clone(&self.tree);
        self.walk(&tree, &at, |nodes| {
            let [value, first, second] = M::sum::<GRADIENT>(&at, tree.points.part(nodes));
            total += value;
            slope[0] += first;
            slope[1] += second;
        });
        (total, slope)
    }
}

impl<M: Marginal> Likelihood for PatternGroup<M> {
    fn value(&mut self, natural: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let Some(gradient) = gradient else { return self.sum::<false>(natural).0 };
        let (total, slope) = self.sum::<true>(natural);
        gradient.copy_from_slice(&slope[..M::PARAMETERS]);
        total
    }

    fn parameters(&self) -> usize {
        M::PARAMETERS
    }
}
