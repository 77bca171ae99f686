//! Columns of a trial vector's scalar products: `M`, `N` and `Q` of `<phi, phi>`, `<phi, H phi>` and `|H phi|^2`.
//!
//! On a ring of n letters each of these is the trace of the n-th power of a small operator on matrices,
//! `(X V)_i = sum over links i -> j of w F_l V_j F_r^T`, with one matrix for each state of the bonds in between. Weights are
//! integers over one common denominator: with activity `z = a / b` and tensor entries of degree `g` in z they are
//!
//! | operator | states | weight | denominator |
//! |---|---|---|---|
//! | M | sector | z^-abs(s) | a |
//! | N | sector, bond, sector | O(s, t) | b^g |
//! | Q | sector, bond, bond, sector | z^abs(s) O(s, t) O(s, t') | b^(1 + 2g) |
//!
//! What a step adds to D besides divides M and multiplies Q; the denominators of weights of a user's own come on top.
//!
//! Source: derived here for theorem D of `docs/mathematics/entropy.md`.

use super::dense::{DenseMatrix, Real};
use super::model::{Entry, Rational, RowModel};
use crate::Result;
use crate::monitor::Progress;
use num_bigint::{BigInt, BigUint};
use std::ops::AddAssign;

/// A link of an operator on matrices.
#[derive(Clone, Debug)]
pub struct LayerLink {
    /// The state it leads to the result of.
    pub from: usize,
    /// The state it reads.
    pub to: usize,
    /// The matrix multiplied from the left.
    pub left: usize,
    /// The matrix multiplied from the right, transposed.
    pub right: usize,
    /// The weight times the denominator.
    pub exact: BigUint,
    /// The weight.
    pub weight: f64,
    /// Its logarithmic derivative by the activity.
    pub slope: f64,
}

/// An operator on matrices.
#[derive(Clone, Debug)]
pub struct LayerOperator {
    /// The sectors on the two sides of each state.
    pub states: Vec<(usize, usize)>,
    /// The links.
    pub links: Vec<LayerLink>,
    /// The denominator of the weights.
    pub denominator: BigUint,
}

/// Names of states in the order they are met.
struct LayerStates {
    names: Vec<(usize, usize, usize, usize)>,
}

impl LayerStates {
    fn index(&mut self, name: (usize, usize, usize, usize)) -> usize {
        self.names.iter().position(|&known| known == name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        })
    }
}

impl LayerOperator {
    fn new(states: LayerStates, mut links: Vec<LayerLink>, denominator: BigUint) -> Self {
        // A state that nothing enters, or that leads nowhere, adds nothing to a trace.
        loop {
            let alive = |state: usize| links.iter().any(|l| l.from == state) && links.iter().any(|l| l.to == state);
            let live: Vec<bool> = (0..states.names.len()).map(alive).collect();
            let before = links.len();
            links.retain(|link| live[link.from] && live[link.to]);
            if links.len() == before {
                break;
            }
        }
        let mut order: Vec<usize> = links.iter().map(|link| link.from).collect();
        order.sort_unstable();
        order.dedup();
        let place = |state: usize| order.binary_search(&state).unwrap_or(0);
        links.iter_mut().for_each(|link| (link.from, link.to) = (place(link.from), place(link.to)));
        links.sort_by_key(|link| (link.from, link.left));
        let states = order.iter().map(|&i| (states.names[i].0, states.names[i].3)).collect();
        Self { states, links, denominator }
    }

    /// The operator of `<phi, phi>`.
    pub fn norm(model: &RowModel, z: &Rational) -> Self {
        let mut states = LayerStates { names: Vec::new() };
        let (multiple, _) = model.row_multiples();
        let links = model.steps.iter().enumerate().map(|(i, step)| {
            let activity = match model.occupied[step.letter] {
                0 => &z.numerator,
                _ => &z.denominator,
            };
            let exact = activity * &model.row[i].denominator * (&multiple / &model.row[i].numerator);
            let weight = 1.0 / model.row_weight(i, z.value);
            let (from, to) = (states.index((step.from, 0, 0, step.from)), states.index((step.to, 0, 0, step.to)));
            let slope = -f64::from(model.occupied[step.letter]);
            LayerLink { from, to, left: i, right: i, exact, weight, slope }
        });
        let links = links.collect();
        Self::new(states, links, &z.numerator * multiple)
    }

    /// The operator of `<phi, H phi>`.
    pub fn energy(model: &RowModel, z: &Rational) -> Self {
        let mut states = LayerStates { names: Vec::new() };
        let mut links = Vec::new();
        for entry in &model.entries {
            let (exact, weight, slope) = tensor_weight(model, entry, z);
            for (left, up) in lying(model, None, entry.above) {
                for (right, down) in lying(model, Some(entry), entry.below) {
                    if model.bond_sector[entry.from] != up.0 || model.bond_sector[entry.to] != up.1 {
                        continue;
                    }
                    let from = states.index((up.0, entry.from, 0, down.0));
                    let to = states.index((up.1, entry.to, 0, down.1));
                    links.push(LayerLink { from, to, left, right, exact: exact.clone(), weight, slope });
                }
            }
        }
        let pairs = model.pair.denominator.pow(model.most_pairs());
        Self::new(states, links, z.denominator.pow(model.degree()) * pairs * model.denominator())
    }

    /// The operator of `|H phi|^2`.
    pub fn variance(model: &RowModel, z: &Rational) -> Self {
        let mut states = LayerStates { names: Vec::new() };
        let mut links = Vec::new();
        let (_, multiple) = model.row_multiples();
        for first in &model.entries {
            let step = model.step_above(first);
            let row = &model.row[step];
            let row_exact = &row.numerator * (&multiple / &row.denominator);
            for second in model.entries.iter().filter(|second| second.above == first.above) {
                let same = |bond: usize| model.bond_sector[bond];
                if same(first.from) != same(second.from) || same(first.to) != same(second.to) {
                    continue;
                }
                let ((a, x, one), (b, y, other)) = (tensor_weight(model, first, z), tensor_weight(model, second, z));
                let activity = match model.occupied[first.above] {
                    0 => &z.denominator,
                    _ => &z.numerator,
                };
                let (exact, weight) = (a * b * activity * &row_exact, x * y * model.row_weight(step, z.value));
                let slope = one + other + f64::from(model.occupied[first.above]);
                for (left, up) in lying(model, Some(first), first.below) {
                    for (right, down) in lying(model, Some(second), second.below) {
                        let from = states.index((up.0, first.from, second.from, down.0));
                        let to = states.index((up.1, first.to, second.to, down.1));
                        links.push(LayerLink { from, to, left, right, exact: exact.clone(), weight, slope });
                    }
                }
            }
        }
        let pairs = model.pair.denominator.pow(2 * model.most_pairs());
        let denominators = pairs * model.denominator().pow(2) * multiple;
        Self::new(states, links, z.denominator.pow(1 + 2 * model.degree()) * denominators)
    }

    /// A vector to start from: the identity where both sides are alike.
    pub fn start<T: Real>(&self, dimensions: &[usize]) -> Vec<DenseMatrix<T>> {
        self.states.iter().map(|&(left, right)| DenseMatrix::identity(dimensions[left], dimensions[right])).collect()
    }

    /// The image of a vector, transposed if asked for; of integers times the denominator.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`].
    pub fn apply<T: LayerNumber>(
        &self,
        tensors: &[DenseMatrix<T>],
        vector: &[DenseMatrix<T>],
        transposed: bool,
        progress: &Progress,
    ) -> Result<Vec<DenseMatrix<T>>> {
        let turned: Vec<DenseMatrix<T>> = tensors.iter().map(DenseMatrix::transposed).collect();
        let (left, right) = if transposed { (&turned[..], tensors) } else { (tensors, &turned[..]) };
        let mut halves: Vec<Option<DenseMatrix<T>>> = vec![None; vector.len() * right.len()];
        let mut sums: Vec<Option<DenseMatrix<T>>> = vec![None; vector.len() * left.len()];
        for link in &self.links {
            let (from, to) = if transposed { (link.to, link.from) } else { (link.from, link.to) };
            let half = &mut halves[to * right.len() + link.right];
            let half = match half {
                Some(half) => half,
                None => half.insert(T::product(&vector[to], &right[link.right], progress)?),
            };
            let sum = &mut sums[from * left.len() + link.left];
            let sum = sum.get_or_insert_with(|| DenseMatrix::zeros(half.rows, half.cols));
            let weight = T::weight(link);
            sum.data.iter_mut().zip(&half.data).for_each(|(x, y)| *x += y.times(&weight));
        }
        let mut image: Vec<DenseMatrix<T>> = vector.iter().map(|m| DenseMatrix::zeros(m.rows, m.cols)).collect();
        for (place, sum) in sums.iter().enumerate() {
            if let Some(sum) = sum {
                let part = T::product(&left[place % left.len()], sum, progress)?;
                image[place / left.len()].data.iter_mut().zip(part.data).for_each(|(x, y)| *x += y);
            }
        }
        Ok(image)
    }
}

/// What an operator is applied over: real numbers, or integers.
pub trait LayerNumber: Clone + Default + AddAssign {
    /// The weight of a link; of integers times the denominator.
    fn weight(link: &LayerLink) -> Self;
    /// The product of two numbers.
    fn times(&self, other: &Self) -> Self;
    /// The product of two matrices.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`].
    fn product(a: &DenseMatrix<Self>, b: &DenseMatrix<Self>, progress: &Progress) -> Result<DenseMatrix<Self>>;
}

impl<T: Real> LayerNumber for T {
    fn weight(link: &LayerLink) -> Self {
        T::from(link.weight)
    }

    fn times(&self, other: &Self) -> Self {
        *other * *self
    }

    fn product(a: &DenseMatrix<Self>, b: &DenseMatrix<Self>, _: &Progress) -> Result<DenseMatrix<Self>> {
        Ok(a.times(b))
    }
}

impl LayerNumber for BigInt {
    fn weight(link: &LayerLink) -> Self {
        link.exact.clone().into()
    }

    fn times(&self, other: &Self) -> Self {
        self * other
    }

    fn product(a: &DenseMatrix<Self>, b: &DenseMatrix<Self>, progress: &Progress) -> Result<DenseMatrix<Self>> {
        let mut product = DenseMatrix::zeros(a.rows, b.cols);
        for (row, out) in a.data.chunks_exact(a.cols).zip(product.data.chunks_exact_mut(b.cols)) {
            progress.check()?;
            for (x, line) in row.iter().zip(b.data.chunks_exact(b.cols)) {
                if *x != BigInt::ZERO {
                    out.iter_mut().zip(line).for_each(|(sum, y)| *sum += x * y);
                }
            }
        }
        Ok(product)
    }
}

/// Steps with a letter, and their sectors; below an entry of a face model only those that fit its bonds.
fn lying<'a>(
    model: &'a RowModel,
    entry: Option<&'a Entry>,
    letter: usize,
) -> impl Iterator<Item = (usize, (usize, usize))> + 'a {
    let fits = move |from: usize, to: usize| match (entry, &model.bond_letters) {
        (Some(entry), Some(letters)) => (letters[entry.from].1, letters[entry.to].1) == (from, to),
        _ => true,
    };
    let steps = model.steps.iter().enumerate();
    steps.filter(move |(_, s)| s.letter == letter && fits(s.from, s.to)).map(|(i, s)| (i, (s.from, s.to)))
}

/// The weight of an entry times `b^g` and the denominators of pairs, as a double, and its logarithmic derivative.
fn tensor_weight(model: &RowModel, entry: &Entry, z: &Rational) -> (BigUint, f64, f64) {
    let (degree, powers) = (model.degree(), || (0u32..).zip(&entry.weight));
    let exact: BigUint = powers().map(|(k, c)| &c.numerator * z.numerator.pow(k) * z.denominator.pow(degree - k)).sum();
    let pair = model.pair.numerator.pow(entry.pairs) * model.pair.denominator.pow(model.most_pairs() - entry.pairs);
    let sum =
        |factor: fn(u32) -> f64| -> f64 { powers().map(|(k, c)| factor(k) * c.value * z.value.powi(k as i32)).sum() };
    (exact * pair, model.weight(entry, z.value), sum(f64::from) / sum(|_| 1.0))
}

/// A matrix of integers.
pub type Exact = DenseMatrix<BigInt>;

impl Exact {
    /// The entries of a matrix times `2^bits`, rounded to integers.
    pub fn rounded<T: Real>(matrix: &DenseMatrix<T>, bits: u32) -> Self {
        Self { rows: matrix.rows, cols: matrix.cols, data: matrix.data.iter().map(|x| x.scaled(bits)).collect() }
    }
}

/// The scalar product of two integer vectors.
pub fn exact_dot(a: &[Exact], b: &[Exact]) -> BigInt {
    a.iter().zip(b).flat_map(|(a, b)| a.data.iter().zip(&b.data)).fold(BigInt::ZERO, |sum, (x, y)| sum + x * y)
}
