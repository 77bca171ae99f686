//! Two-sided bounds from trial vectors on a long ring (theorem D of `docs/mathematics/entropy.md`).
//!
//! With `theta_X` the largest eigenvalue of X = M, N, Q (see [`super::layers`]), n letters on the ring, l rows on a torus:
//!
//!   kappa^sites >= theta_N / theta_M = t                                              (Rayleigh, n to infinity)
//!   kappa^sites <= t (1 + v / (n (1 - b))),   1 + v = tr Q^n tr M^n / (tr N^n)^2,   b^l = tr T_n^l / (t^n)^l - 1   (Temple)
//!
//! What is proved is proved in integers. The tensors and approximate eigenvectors u, w of X and its transpose are rounded to
//! integers; then `theta' = w X u / (w u)`, `c = X u - theta' u` and `e = X^T w - theta' w` are exact rationals. With w u = 1,
//! P the projection away from u, |u| = 1, and Y the part of X on the complement of u, any eigenvalue of X outside the disc of
//! radius s satisfies |theta - theta'| <= |c| |e| |(z - Y')^-1|, and exactly one does, once |Y'^k| < s^k < theta'^k. The norm
//! of `Y^k` comes from `|P X^k P|^2 = |X^k|^2 - |u X^k|^2 - |X^k u|^2 + (u X^k u)^2` in Frobenius norms, and `|X^k|^2` from
//! scalar products of products of k tensors; this needs few digits and is done in doubles with a bound on their errors.

use super::dense::{DenseMatrix, Real};
use super::layers::{Exact, LayerLink, LayerOperator, exact_dot};
use super::model::{Rational, RowModel};
use super::tensors::Tensors;
use super::torus;
use crate::counting::checkpoint::Checkpoint;
use crate::monitor::Progress;
use crate::numeric::double_double::DoubleDouble;
use crate::{Error, Result};
use num_bigint::{BigInt, BigUint, Sign};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Instant;

/// Bits after the binary point of the enclosures.
pub const PRECISION: u32 = 320;

/// Longest products of tensors in a bound on a norm, and most pairs of them.
const MAX_POWER: usize = 4;
const MAX_PAIRS: usize = 40_000;

/// The largest bond dimension whose tensors are part of the result, for proofs by others.
const MAX_SHOWN: usize = 16;

/// A proved interval with what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct CornerBounds {
    /// At most `kappa^sites`, times `2^PRECISION`.
    pub lower: BigUint,
    /// At least `kappa^sites`, times `2^PRECISION`; `None` where no ring is proved to bound from above.
    pub upper: Option<BigUint>,
    /// Sites a letter stands for.
    pub sites: u32,
    /// The bond dimension of the trial vector.
    pub bond_dimension: usize,
    /// Power steps made.
    pub steps: u64,
    /// Letters on the ring.
    pub ring: u64,
    /// Rows of the torus that bounds the second eigenvalue.
    pub rows: usize,
    /// The bound on the second eigenvalue over the first.
    pub second: f64,
    /// The relative gap between the bounds.
    pub gap: f64,
    /// The square of the largest Schmidt value cut, over the largest of all.
    pub cut: f64,
    /// Schmidt values of the trial vector, falling, from 1, before the cut.
    pub spectrum: Vec<f64>,
    /// Occupied sites of a step: an estimate, from the derivative of the bound by the activity.
    pub density: f64,
    /// Occupied sites of a letter: an estimate.
    pub occupied: f64,
    /// The second eigenvalue of M over its first: an estimate.
    pub decay: f64,
    /// Of a small bond dimension, the trial vector's matrices as the proof has them: times `2^bits`, rounded to integers.
    pub tensors: Vec<Exact>,
    /// The power of two they are multiplied by.
    pub bits: u32,
}

/// The largest eigenvalue of an operator, enclosed, and the size of the others.
#[derive(Clone, Debug)]
struct Leading {
    /// At most the eigenvalue, times `2^PRECISION`.
    lower: BigUint,
    /// At least the eigenvalue, times `2^PRECISION`.
    upper: BigUint,
    /// All other eigenvalues are below this fraction of it.
    others: f64,
    /// How many there are.
    dimension: f64,
}

impl Leading {
    /// A bound on the n-th powers of the other eigenvalues, over that of the largest.
    fn rest(&self, n: u64) -> f64 {
        self.dimension * (self.others.ln() * n as f64).exp() * (1.0 + 1e-9)
    }
}

/// Approximate leading eigenvectors of an operator and its transpose.
#[derive(Clone, Debug)]
struct CornerPair<T> {
    right: Vec<DenseMatrix<T>>,
    left: Vec<DenseMatrix<T>>,
}

/// What a proof lacked, and how large the gap seems from the second eigenvalue of M, an estimate.
fn no_gap(activity: f64, lacked: &str, decay: f64) -> Error {
    Error::domain(
        "activity",
        format!("{activity}, where {lacked}, and a row's second eigenvalue is estimated as {decay:.3} of its first"),
        "one where corner tensors prove a spectral gap",
    )
}

/// Traces of tori by their rows, and whether many words were allowed; they are the same for all trial vectors.
type Tori = BTreeMap<(usize, bool), Option<torus::LogTraces>>;

/// Proves bounds from the tensors as they are; for an estimate, without the ring.
///
/// # Errors
/// [`Error::Domain`] if no gap below the largest eigenvalue can be proved, [`Error::Interrupted`].
fn certify<T: Real>(
    model: &RowModel,
    activity: &Rational,
    tensors: &Tensors<T>,
    steps: u64,
    estimate: bool,
    tori: &mut Tori,
    progress: &Progress,
) -> Result<CornerBounds> {
    if !tensors.steps.iter().flat_map(|m| &m.data).all(|x| x.double().is_finite()) {
        return Err(no_gap(activity.value, "power steps found no trial vector", f64::NAN));
    }
    let exact: Vec<Exact> = tensors.steps.iter().map(|m| Exact::rounded(m, T::BITS)).collect();
    let mut layers = vec![LayerOperator::norm(model, activity), LayerOperator::energy(model, activity)];
    if !estimate && model.rings_bound {
        layers.push(LayerOperator::variance(model, activity));
    }
    let mut found = Vec::new();
    let (mut slopes, mut second) = (Vec::new(), 0.0);
    for (i, operator) in layers.iter().enumerate() {
        let pair = eigenvectors(operator, tensors, progress)?;
        if i == 0 {
            second = decay(operator, &tensors.steps, &pair, progress)?;
        }
        let leading = enclose(operator, &tensors.steps, &exact, &pair, progress)?;
        let lacked = "no eigenvalue of the trial vector is alone at the top";
        found.push(leading.ok_or_else(|| no_gap(activity.value, lacked, second))?);
        slopes.push(slope(operator, &tensors.steps, &pair, progress)?);
    }
    let (norm, energy) = (&found[0], &found[1]);
    let lower = (&energy.lower << PRECISION) / &norm.upper;
    let mut bounds = CornerBounds {
        lower,
        upper: None,
        sites: model.sites,
        bond_dimension: tensors.bond_dimension(),
        steps,
        ring: 0,
        rows: 0,
        second: 1.0,
        gap: f64::INFINITY,
        cut: tensors.spectrum.get(tensors.bond_dimension()).copied().unwrap_or(0.0).powi(2),
        spectrum: tensors.spectrum.clone(),
        density: slopes[1] - slopes[0],
        occupied: -slopes[0],
        decay: second,
        tensors: if tensors.bond_dimension() <= MAX_SHOWN { exact } else { Vec::new() },
        bits: T::BITS,
    };
    if estimate || !model.rings_bound {
        return Ok(bounds);
    }
    let variance = &found[2];
    // theta_Q theta_M^2 / (theta_M theta_N^2) - 1, each where it makes the quotient largest.
    let (above, below) = (&variance.upper * &norm.upper * &norm.upper, &norm.lower * &energy.lower * &energy.lower);
    let excess = if above > below { quotient_above(&(&above - &below), &below) } else { 0.0 };
    let log_step = log_below(&bounds.lower);
    let (mut last, mut least) = (f64::INFINITY, f64::INFINITY);
    for rows in (4..=24).step_by(2) {
        progress.check()?;
        let wide = bounds.second > 0.9;
        if let Entry::Vacant(place) = tori.entry((rows, wide)) {
            let most_words = torus::MAX_WORDS[usize::from(wide)];
            place.insert(torus::log_traces(model, rows, activity.value, 4096, most_words, progress)?);
        }
        let Some(traces) = &tori[&(rows, wide)] else { break };
        let before = bounds.gap;
        for (n, log_trace) in traces.iter().copied().filter(|&(n, _)| n >= 16) {
            let rests = [norm.rest(n), energy.rest(n), variance.rest(n)];
            if !rests.iter().all(|&rest| rest < 0.1) {
                continue;
            }
            // ln(1 / (1 - r)) <= 2 r for r <= 1/2.
            let spread = n as f64 * excess + rests[2] + 4.0 * rests[0] + 4.0 * rests[1];
            let v = (spread * (1.0 + 1e-9)).exp_m1() * (1.0 + 1e-9);
            // rho >= t^n (1 - r_N) / (1 + r_M).
            let log_rho = log_step * n as f64 - 2.0 * rests[1] - rests[0];
            let difference = log_trace - log_rho * rows as f64;
            let rounding = 64.0 * f64::EPSILON * (1.0 + log_trace.abs());
            let power = (difference + rounding).exp_m1().max(0.0);
            let second = (power * (1.0 + 1e-12)).powf(1.0 / rows as f64) * (1.0 + 1e-12);
            least = least.min(second);
            if second < 0.999 {
                let gap = v / (n as f64 * (1.0 - second)) * (1.0 + 1e-9);
                if gap < bounds.gap {
                    (bounds.gap, bounds.ring, bounds.rows, bounds.second) = (gap, n, rows, second);
                }
            }
        }
        if bounds.gap < f64::INFINITY && bounds.gap > 0.7 * before.min(last) {
            break; // longer tori hardly help any more
        }
        last = bounds.gap;
    }
    if bounds.gap == f64::INFINITY {
        let lacked = format!("no torus bounds the second eigenvalue by less than {least:.3} of the first");
        return Err(no_gap(activity.value, &lacked, bounds.decay));
    }
    let widest = (&energy.lower << PRECISION) / &norm.upper + 1u32;
    let widening: BigUint = above_scaled(bounds.gap, PRECISION);
    bounds.upper = Some(&widest + ((&widest * widening) >> PRECISION) + 2u32);
    Ok(bounds)
}

/// Power iteration from both sides.
fn eigenvectors<T: Real>(operator: &LayerOperator, tensors: &Tensors<T>, progress: &Progress) -> Result<CornerPair<T>> {
    let run = |transposed: bool| -> Result<Vec<DenseMatrix<T>>> {
        let mut vector = operator.start(&tensors.dimensions);
        normalize(&mut vector);
        let mut moved = f64::INFINITY;
        for _ in 0..2000 {
            progress.check()?;
            let mut image = operator.apply(&tensors.steps, &vector, transposed, progress)?;
            normalize(&mut image);
            let change = vector.iter_mut().zip(&image).fold(T::default(), |sum, (old, new)| {
                old.add(-1.0, new);
                sum + old.squares()
            });
            vector = image;
            let change = change.root().double();
            if change < 16.0 * T::EPSILON || (change < 1e4 * T::EPSILON && change > 0.9 * moved) {
                break;
            }
            moved = change;
        }
        Ok(vector)
    };
    Ok(CornerPair { right: run(false)?, left: run(true)? })
}

fn normalize<T: Real>(vector: &mut [DenseMatrix<T>]) {
    let size = vector.iter().fold(T::default(), |sum, m| sum + m.squares()).root();
    vector.iter_mut().for_each(|m| m.scale(T::from(1.0) / size));
}

fn inner<T: Real>(a: &[DenseMatrix<T>], b: &[DenseMatrix<T>]) -> T {
    a.iter().zip(b).flat_map(|(a, b)| a.data.iter().zip(&b.data)).fold(T::default(), |sum, (&x, &y)| sum + x * y)
}

/// Encloses the largest eigenvalue, if it can be told from the others.
fn enclose<T: Real>(
    operator: &LayerOperator,
    tensors: &[DenseMatrix<T>],
    exact: &[Exact],
    pair: &CornerPair<T>,
    progress: &Progress,
) -> Result<Option<Leading>> {
    let bits = T::BITS;
    let (mut right, mut left): (Vec<Exact>, Vec<Exact>) = (
        pair.right.iter().map(|m| Exact::rounded(m, bits)).collect(),
        pair.left.iter().map(|m| Exact::rounded(m, bits)).collect(),
    );
    if exact_dot(&left, &right).sign() == Sign::Minus {
        left.iter_mut().flat_map(|m| &mut m.data).for_each(|x| *x = -&*x);
    }
    if right.iter().flat_map(|m| &m.data).all(|x| x.sign() == Sign::NoSign) {
        right[0].data[0] = BigInt::from(1);
    }
    let image = operator.apply(exact, &right, false, progress)?;
    progress.check()?;
    let image_left = operator.apply(exact, &left, true, progress)?;
    progress.check()?;
    // theta' = value / overlap, in units of 2^-2 bits / denominator.
    let (overlap, value) = (exact_dot(&left, &right), exact_dot(&left, &image));
    let (Some(overlap), Some(value)) = (overlap.to_biguint(), value.to_biguint()) else { return Ok(None) };
    if overlap == BigUint::ZERO || value == BigUint::ZERO {
        return Ok(None);
    }
    let residual = |image: &[Exact], vector: &[Exact]| -> BigUint {
        let (overlap, value) = (BigInt::from(overlap.clone()), BigInt::from(value.clone()));
        let parts = image.iter().zip(vector).flat_map(|(a, b)| a.data.iter().zip(&b.data));
        parts.fold(BigUint::ZERO, |sum, (x, y)| {
            let rest = (x * &overlap - y * &value).into_parts().1;
            sum + &rest * &rest
        })
    };
    let unit = &operator.denominator << (2 * bits);
    // |c| |e| with w u = 1 and |u| = 1: the lengths multiply to |c| |e| / (w u).
    let squared = residual(&image, &right) * residual(&image_left, &left);
    let scale = overlap.pow(3) * &unit * &unit;
    let residuals = quotient_above(&(squared.sqrt() + 1u32), &scale);
    let lengths = squares(&right) * squares(&left);
    let slant = (quotient_above(&lengths, &(&overlap * &overlap)) - 1.0).max(0.0) + 1e-12;
    let one_sided =
        quotient_above(&(residual(&image, &right).sqrt() + 1u32), &(&overlap * &unit * squares(&right).sqrt()));
    let theta = quotient_below(&value, &(&overlap * &unit));
    let others = other_eigenvalues(operator, tensors, pair, theta, one_sided * (1.0 + slant.sqrt()), progress)?;
    let Some((radius, resolvent)) = others else { return Ok(None) };
    let deviation = residuals * resolvent * (1.0 + 1e-9);
    if deviation.is_nan() || deviation >= 0.5 * (theta - radius) {
        return Ok(None);
    }
    let middle = (&value << PRECISION) / (&overlap * &unit);
    let spread: BigUint = above_scaled(deviation, PRECISION) + 1u32;
    if middle <= spread {
        return Ok(None);
    }
    let dimension = pair.right.iter().map(|m| m.data.len()).sum::<usize>() as f64;
    Ok(Some(Leading {
        lower: &middle - &spread,
        upper: &middle + &spread,
        others: radius / (theta - deviation) * (1.0 + 1e-12),
        dimension,
    }))
}

fn squares(vector: &[Exact]) -> BigUint {
    exact_dot(vector, vector).into_parts().1
}

/// A radius s that holds all eigenvalues but one, and a bound on the resolvent outside.
fn other_eigenvalues<T: Real>(
    operator: &LayerOperator,
    tensors: &[DenseMatrix<T>],
    pair: &CornerPair<T>,
    theta: f64,
    residual: f64,
    progress: &Progress,
) -> Result<Option<(f64, f64)>> {
    let plain: Vec<DenseMatrix<f64>> = tensors.iter().map(doubles).collect();
    let mut unit: Vec<DenseMatrix<f64>> = pair.right.iter().map(doubles).collect();
    normalize(&mut unit);
    let lengths: Vec<f64> = plain.iter().map(|m| m.squares().sqrt()).collect();
    let most: f64 = operator.links.iter().map(|l| l.weight * lengths[l.left] * lengths[l.right]).sum();
    // Errors of scalar products of doubles, relative to the product of the lengths.
    let longest = plain.iter().map(|m| m.rows.max(m.cols)).max().unwrap_or(1) as f64;
    let slack = (longest * longest + operator.links.len() as f64 + 40.0) * 4.0 * f64::EPSILON;
    let (mut column, mut row) = (unit.clone(), unit.clone());
    let mut paths = CornerPaths::new(operator, &lengths);
    let mut products: BTreeMap<Vec<usize>, DenseMatrix<f64>> =
        plain.iter().enumerate().map(|(i, m)| (vec![i], m.clone())).collect();
    let mut whole = 0.0;
    let mut best: Option<(f64, f64)> = None;
    for power in 1..=MAX_POWER {
        progress.check()?;
        if power > 1 {
            if !paths.lengthen(operator, &lengths) {
                break;
            }
            products = paths
                .words()
                .into_iter()
                .map(|word| {
                    let product = products[&word[..power - 1]].times(&plain[word[power - 1]]);
                    (word, product)
                })
                .collect();
        }
        let turns = power as f64;
        let (frobenius, wrong) = paths.frobenius(&products, 4.0 * turns * slack);
        column = operator.apply(&plain, &column, false, progress)?;
        row = operator.apply(&plain, &row, true, progress)?;
        let (cc, rr, ur) = (inner(&column, &column), inner(&row, &row), inner(&unit, &column));
        if power == 1 {
            whole = (frobenius + wrong).sqrt() * (1.0 + 1e-12) + residual;
        }
        // Each application errs by `slack * most` times the length of its argument.
        let drift = turns * slack * most * whole.powi(power as i32 - 1);
        let errors = wrong + 4.0 * drift * (cc.sqrt() + rr.sqrt() + ur.abs() + drift);
        let complement = (frobenius - cc - rr + ur * ur).max(0.0) + errors;
        let tiny = 2.0 * turns * residual * whole.powi(power as i32 - 1) * (1.0 + 1e-9);
        let norm = complement.sqrt() + tiny;
        let radius = (1.02 * norm).powf(1.0 / turns) * (1.0 + 1e-12);
        if radius < 0.98 * theta && best.is_none_or(|(old, _)| radius < old) {
            // |(z - Y)^-1| <= (sum over j < k of |Y|^j / |z|^(j+1)) / (1 - |Y^k| / |z|^k).
            let sum: f64 = (0..power as i32).map(|j| whole.powi(j) / radius.powi(j + 1)).sum();
            best = Some((radius, sum * 52.0));
        }
        if best.is_some_and(|(radius, _)| radius < 0.6 * theta) {
            break;
        }
    }
    Ok(best)
}

fn doubles<T: Real>(matrix: &DenseMatrix<T>) -> DenseMatrix<f64> {
    DenseMatrix { rows: matrix.rows, cols: matrix.cols, data: matrix.data.iter().map(|x| x.double()).collect() }
}

/// Products of links: for each first and last state the weights of pairs of words of tensors.
struct CornerPaths {
    blocks: BTreeMap<(usize, usize), WordPairs>,
}

/// A word of tensors on the left and one on the right.
type Words = (Vec<usize>, Vec<usize>);

/// The weight of each pair of words, and the most its terms can sum to in size.
type WordPairs = BTreeMap<Words, (f64, f64)>;

impl CornerPaths {
    fn new(operator: &LayerOperator, lengths: &[f64]) -> Self {
        let mut paths = Self { blocks: BTreeMap::new() };
        for link in &operator.links {
            let block = paths.blocks.entry((link.from, link.to)).or_default();
            let entry = block.entry((vec![link.left], vec![link.right])).or_insert((0.0, 0.0));
            entry.0 += link.weight;
            entry.1 += link.weight * lengths[link.left] * lengths[link.right];
        }
        paths
    }

    /// Adds a link at the end of each, unless there would be too many.
    fn lengthen(&mut self, operator: &LayerOperator, lengths: &[f64]) -> bool {
        let mut longer = Self { blocks: BTreeMap::new() };
        let mut pairs = 0;
        for (&(first, last), block) in &self.blocks {
            for link in operator.links.iter().filter(|link| link.from == last) {
                for ((left, right), &(weight, size)) in block {
                    let words = ([&left[..], &[link.left]].concat(), [&right[..], &[link.right]].concat());
                    let target = longer.blocks.entry((first, link.to)).or_default();
                    let entry = target.entry(words).or_insert_with(|| {
                        pairs += 1;
                        (0.0, 0.0)
                    });
                    entry.0 += weight * link.weight;
                    entry.1 += size * link.weight * lengths[link.left] * lengths[link.right];
                    if pairs > MAX_PAIRS {
                        return false;
                    }
                }
            }
        }
        *self = longer;
        true
    }

    fn words(&self) -> Vec<Vec<usize>> {
        let mut words: Vec<Vec<usize>> = self
            .blocks
            .values()
            .flat_map(|b| b.keys().flat_map(|(left, right)| [left.clone(), right.clone()]))
            .collect();
        words.sort_unstable();
        words.dedup();
        words
    }

    /// The squared Frobenius norm of the operator's power, and a bound on its error, `slack` that of a scalar product.
    ///
    /// With r_i, s_j at least the norms of the words, `|gram_ik| <= r_i r_k`, so that all terms `gram_ik w_kl gram_lj w_ij`
    /// of a block sum to at most `(sum of w_ij r_i s_j)^2` in size. They pass through sums of as many terms as there are
    /// words on the left, words on the right, pairs of both, and blocks, whatever the bond dimension is.
    fn frobenius(&self, products: &BTreeMap<Vec<usize>, DenseMatrix<f64>>, slack: f64) -> (f64, f64) {
        let (mut norm, mut error) = (0.0, 0.0);
        for block in self.blocks.values() {
            let list = |pick: fn(&Words) -> &Vec<usize>| {
                let mut words: Vec<&Vec<usize>> = block.keys().map(pick).collect();
                words.sort_unstable();
                words.dedup();
                words
            };
            let (left, right) = (list(|k| &k.0), list(|k| &k.1));
            let gram = |words: &[&Vec<usize>]| {
                let mut gram = DenseMatrix::zeros(words.len(), words.len());
                for i in 0..words.len() {
                    for j in 0..=i {
                        let (a, b) = (&products[words[i]], &products[words[j]]);
                        let value: f64 = a.data.iter().zip(&b.data).map(|(x, y)| x * y).sum();
                        gram.data[i * words.len() + j] = value;
                        gram.data[j * words.len() + i] = value;
                    }
                }
                gram
            };
            let mut weights: DenseMatrix<f64> = DenseMatrix::zeros(left.len(), right.len());
            let mut total = 0.0;
            for ((l, r), &(weight, most)) in block {
                let (i, j) = (left.binary_search(&l), right.binary_search(&r));
                if let (Ok(i), Ok(j)) = (i, j) {
                    weights.data[i * right.len() + j] = weight;
                }
                total += most;
            }
            let image = gram(&left).times(&weights).times(&gram(&right));
            norm += image.data.iter().zip(&weights.data).map(|(x, y)| x * y).sum::<f64>();
            let sums = (left.len() + 1) * (right.len() + 1) + self.blocks.len();
            error += (slack + f64::EPSILON * sums as f64) * total * total;
        }
        (norm, error)
    }
}

/// The logarithmic derivative of an operator's largest eigenvalue by the activity, the tensors held fast.
///
/// Rayleigh's quotient does not move with the best tensors to first order, so that this is also its derivative.
fn slope<T: Real>(
    operator: &LayerOperator,
    tensors: &[DenseMatrix<T>],
    pair: &CornerPair<T>,
    progress: &Progress,
) -> Result<f64> {
    let scaled = |link: &LayerLink| LayerLink { weight: link.weight * link.slope, ..link.clone() };
    let links = operator.links.iter().filter(|link| link.slope != 0.0).map(scaled).collect();
    let sloped = LayerOperator { links, ..operator.clone() };
    let part = |layers: &LayerOperator| Ok(inner(&pair.left, &layers.apply(tensors, &pair.right, false, progress)?));
    Ok((part(&sloped)? / part(operator)?).double())
}

/// The second eigenvalue over the first, in size.
fn decay<T: Real>(
    operator: &LayerOperator,
    tensors: &[DenseMatrix<T>],
    pair: &CornerPair<T>,
    progress: &Progress,
) -> Result<f64> {
    let plain: Vec<DenseMatrix<f64>> = tensors.iter().map(doubles).collect();
    let (right, left): (Vec<_>, Vec<_>) =
        (pair.right.iter().map(doubles).collect(), pair.left.iter().map(doubles).collect());
    let overlap = inner(&left, &right);
    let theta = inner(&left, &operator.apply(&plain, &right, false, progress)?) / overlap;
    let mut vector: Vec<DenseMatrix<f64>> = right
        .iter()
        .map(|m| DenseMatrix { data: (0..m.data.len()).map(|i| ((i * 7919 + 13) % 101) as f64 - 50.0).collect(), ..*m })
        .collect();
    let mut growth = Vec::new();
    for _ in 0..60 {
        progress.check()?;
        let share = inner(&left, &vector) / overlap;
        vector.iter_mut().zip(&right).for_each(|(v, r)| v.add(-share, r));
        let before = inner(&vector, &vector).sqrt();
        if before == 0.0 {
            return Ok(0.0);
        }
        vector.iter_mut().for_each(|m| m.scale(1.0 / before));
        vector = operator.apply(&plain, &vector, false, progress)?;
        growth.push(inner(&vector, &vector).sqrt());
    }
    // A pair of opposite or complex eigenvalues makes single steps uneven; their geometric mean is not.
    Ok((growth[40..].iter().map(|g| g.ln()).sum::<f64>() / 20.0).exp() / theta)
}

/// A double at least `numerator / denominator`.
fn quotient_above(numerator: &BigUint, denominator: &BigUint) -> f64 {
    quotient(numerator, denominator, true)
}

/// A double at most `numerator / denominator`.
fn quotient_below(numerator: &BigUint, denominator: &BigUint) -> f64 {
    quotient(numerator, denominator, false)
}

fn quotient(numerator: &BigUint, denominator: &BigUint, upwards: bool) -> f64 {
    if *numerator == BigUint::ZERO {
        return 0.0;
    }
    let shift = denominator.bits() as i64 - numerator.bits() as i64 + 64;
    let scaled = if shift >= 0 {
        (numerator << shift as u64) / denominator
    } else {
        numerator / (denominator << (-shift) as u64)
    };
    let value = scaled.iter_u64_digits().rev().fold(0.0, |sum, digit| sum * 2f64.powi(64) + digit as f64);
    let factor = if upwards { 1.0 + 4.0 * f64::EPSILON } else { 1.0 - 4.0 * f64::EPSILON };
    let (half, rest) = ((-shift / 2) as i32, (-shift - (-shift / 2)) as i32);
    let result = value * factor * 2f64.powi(half) * 2f64.powi(rest);
    if upwards { result.max(f64::MIN_POSITIVE) } else { result }
}

/// An integer at least `x * 2^bits`, for a finite x that is not negative.
fn above_scaled(x: f64, bits: u32) -> BigUint {
    let raw = x.to_bits();
    let (mantissa, exponent) = ((raw & ((1 << 52) - 1)) | (1 << 52), (raw >> 52) as i64 - 1075 + i64::from(bits));
    let mantissa = BigUint::from(mantissa);
    if exponent >= 0 { mantissa << exponent } else { (mantissa >> -exponent) + 1u32 }
}

/// At most the logarithm of `x / 2^PRECISION`.
fn log_below(x: &BigUint) -> f64 {
    let value = quotient_below(x, &(BigUint::from(1u32) << PRECISION));
    let log = value.ln();
    log - log.abs() * 4.0 * f64::EPSILON
}

/// How far to go.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// The relative gap wanted.
    pub gap: f64,
    /// The bond dimension, if it is given.
    pub bond_dimension: Option<usize>,
    /// The largest bond dimension tried otherwise.
    pub max_bond_dimension: usize,
    /// Whether the size of what was cut decides, not the proved gap: for an estimate.
    pub estimate: bool,
    /// Decimals of the constant that both ends shall have in common: an interval as narrow as was wanted may lie about a
    /// round number, one of a tenth most likely does not.
    pub digits: Option<u32>,
    /// What the constant is multiplied by before its decimals are compared, if not by 1.
    pub factor: Option<Rational>,
}

/// Bounds by growing bond dimensions, the last one first proved to reach the goal or the largest allowed.
///
/// A round that proves nothing ends the growth; what was proved before it stays.
///
/// # Errors
/// As [`certify`], if the first round proves nothing.
pub fn bounds(model: &RowModel, activity: &Rational, goal: &Goal, progress: &Progress) -> Result<Vec<CornerBounds>> {
    let mut job = CornerJob::new(model, goal);
    job.run(model, activity, goal, None, progress)?;
    Ok(job.found)
}

/// A job of growing bond dimensions as it stands after a power step.
#[derive(Clone, Debug)]
pub struct CornerJob {
    /// What was proved.
    pub found: Vec<CornerBounds>,
    /// The trial vector.
    pub trial: Trial,
    /// The bond dimension it grows to or has.
    pub size: usize,
    /// Power steps made.
    pub steps: u64,
    /// Those at this bond dimension, and how many of the last of them changed little.
    pub turns: [u64; 2],
    /// Rounds that hardly narrowed the interval.
    pub stalls: u64,
    /// How often an interval that was narrow enough lay about a round number.
    pub narrowed: u64,
}

/// A trial vector in one of both arithmetics.
#[derive(Clone, Debug)]
pub enum Trial {
    /// Doubles, which resolve relative gaps down to about 1e-26.
    Double(Tensors<f64>),
    /// Double-doubles.
    Precise(Tensors<DoubleDouble>),
}

impl CornerJob {
    /// The job before its first step.
    pub fn new(model: &RowModel, goal: &Goal) -> Self {
        let size = goal.bond_dimension.unwrap_or(6);
        let trial = Trial::Double(Tensors::new(model));
        Self { found: Vec::new(), trial, size, steps: 0, turns: [0; 2], stalls: 0, narrowed: 0 }
    }

    /// Goes on to its end.
    ///
    /// # Errors
    /// As [`bounds`], and [`Error::File`] if a checkpoint cannot be written.
    pub fn run(
        &mut self,
        model: &RowModel,
        activity: &Rational,
        goal: &Goal,
        mut checkpoint: Option<&mut Checkpoint>,
        progress: &Progress,
    ) -> Result<()> {
        let reached = |bounds: &CornerBounds| if goal.estimate { bounds.cut } else { bounds.gap };
        let mut tori = Tori::new();
        loop {
            let wanted = goal.gap * 0.1f64.powi(self.narrowed as i32);
            let first =
                if wanted < 1e-25 && matches!(self.trial, Trial::Double(_)) { self.size.min(12) } else { self.size };
            while self.turns[0] < 400 && self.turns[1] < 2 {
                self.step(model, activity.value, first, progress)?;
                if let Some(checkpoint) = checkpoint.as_mut().filter(|kept| kept.due() <= Instant::now()) {
                    checkpoint.save_state(&self.to_words())?;
                }
            }
            if let (true, Trial::Double(tensors)) = (wanted < 1e-25, &self.trial) {
                (self.trial, self.turns) = (Trial::Precise(tensors.converted(Into::into)), [0; 2]);
                continue;
            }
            let proved = match &self.trial {
                Trial::Double(tensors) => {
                    certify(model, activity, tensors, self.steps, goal.estimate, &mut tori, progress)
                }
                Trial::Precise(tensors) => {
                    certify(model, activity, tensors, self.steps, goal.estimate, &mut tori, progress)
                }
            };
            let bounds = match proved {
                Err(Error::Domain { .. }) if !self.found.is_empty() => return Ok(()),
                proved => proved?,
            };
            let gap = reached(&bounds);
            let shrinks = self.found.last().is_none_or(|old| gap < 0.5 * reached(old));
            self.stalls = if shrinks { 0 } else { self.stalls + 1 };
            let complete = gap <= wanted;
            let short = complete
                && self.narrowed < 2
                && goal.digits.is_some_and(|digits| !shares(&bounds, digits, goal.factor.as_ref()));
            self.found.push(bounds);
            self.tell(progress)?;
            self.narrowed += u64::from(short);
            if (complete && !short)
                || goal.bond_dimension.is_some()
                || self.size >= goal.max_bond_dimension
                || self.stalls > 1
            {
                return Ok(());
            }
            let next = next_size(&self.found, goal, goal.gap * 0.1f64.powi(self.narrowed as i32));
            self.size = next.clamp(self.size + 1, goal.max_bond_dimension);
            self.turns = [0; 2];
        }
    }

    /// One power step of the trial vector.
    fn step(&mut self, model: &RowModel, z: f64, size: usize, progress: &Progress) -> Result<()> {
        let calm = match &mut self.trial {
            Trial::Double(tensors) => settled(tensors, model, z, size, progress)?,
            Trial::Precise(tensors) => settled(tensors, model, z, size, progress)?,
        };
        self.steps += 1;
        self.turns = [self.turns[0] + 1, if calm { self.turns[1] + 1 } else { 0 }];
        Ok(())
    }

    /// Says how far the gap is.
    pub(super) fn tell(&self, progress: &Progress) -> Result<()> {
        let Some(last) = self.found.last() else { return Ok(()) };
        let far = tenths(if last.upper.is_some() { last.gap } else { last.cut });
        progress.advance(far.saturating_sub(progress.done()))
    }
}

/// Whether both ends of the constant have so many decimals in common, rounded outwards as they will be.
fn shares(bounds: &CornerBounds, digits: u32, factor: Option<&Rational>) -> bool {
    let Some(upper) = &bounds.upper else { return false };
    let aside = (upper - &bounds.lower) / 8u32;
    let (mut times, mut over) = (BigUint::from(10u32).pow(digits), BigUint::from(1u32));
    if let Some(Rational { numerator, denominator, .. }) = factor {
        (times, over) = (times * numerator, denominator.clone());
    }
    let (times, over) = (times.pow(bounds.sites), over.pow(bounds.sites));
    let cut = |x: BigUint| (((x * &times) >> PRECISION) / &over).nth_root(bounds.sites);
    cut(&bounds.lower - &aside) == cut(upper + &aside)
}

/// How far a gap is, in tenths of a digit: the unit of progress.
pub fn tenths(gap: f64) -> u64 {
    (-10.0 * gap.max(1e-300).log10()).max(0.0) as u64
}

/// A bond dimension that should do: the digits of a gap grow like a power of it.
fn next_size(found: &[CornerBounds], goal: &Goal, gap: f64) -> usize {
    let digits = |gap: f64| -gap.max(1e-300).log10();
    let wanted = digits(gap) + 0.5;
    let last = &found[found.len() - 1];
    let size = last.bond_dimension as f64;
    let ratio = wanted / digits(if goal.estimate { last.cut } else { last.gap }).max(1.0);
    (size * ratio.powf(1.35)).ceil().max(size * 1.1) as usize
}

/// One power step, and whether the tensors stand still.
fn settled<T: Real>(
    tensors: &mut Tensors<T>,
    model: &RowModel,
    z: f64,
    size: usize,
    progress: &Progress,
) -> Result<bool> {
    tensors.advance(model, z, size, progress)?;
    // Values that the arithmetic does not resolve are never kept, whatever the size.
    let resolved = tensors.spectrum.iter().filter(|&&value| value > T::EPSILON * 20.0).count();
    let grown = tensors.bond_dimension() >= size.min(resolved);
    // A vector off by x is seen in the bounds as x^2.
    let tolerance = (T::EPSILON * 32.0).max(tensors.spectrum.get(size).copied().unwrap_or(0.0) * 0.1);
    Ok(grown && tensors.moved <= tolerance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattices::NamedLattice;

    fn activity(numerator: u32, denominator: u32) -> Rational {
        Rational {
            numerator: numerator.into(),
            denominator: denominator.into(),
            value: f64::from(numerator) / f64::from(denominator),
        }
    }

    fn interval(name: &str, gap: f64) -> (f64, f64, CornerBounds) {
        let model = RowModel::new(&NamedLattice::named(name).unwrap().row_tensors[0]);
        let goal =
            Goal { gap, bond_dimension: None, max_bond_dimension: 64, estimate: false, digits: None, factor: None };
        let start = std::time::Instant::now();
        let found = bounds(&model, &activity(1, 1), &goal, &Progress::new(0)).unwrap();
        let last = found.last().unwrap().clone();
        let root = |x: &BigUint| {
            let one = BigUint::from(1u32) << PRECISION;
            (x.iter_u64_digits().rev().fold(0.0, |s, d| s * 2f64.powi(64) + d as f64)
                / quotient_below(&one, &BigUint::from(1u32)))
            .powf(1.0 / f64::from(model.sites))
        };
        eprintln!(
            "{name}: {:?} chi {:?} n {} l {} b {:.3} gap {:.2e} steps {} decay {:.3} {:?}",
            root(&last.lower),
            found.iter().map(|f| (f.bond_dimension, f.gap)).collect::<Vec<_>>(),
            last.ring,
            last.rows,
            last.second,
            last.gap,
            last.steps,
            last.decay,
            start.elapsed()
        );
        (root(&last.lower), last.upper.as_ref().map_or(f64::INFINITY, root), last)
    }

    #[test]
    fn sums_over_words_err_by_more_than_those_over_entries() {
        // One letter of seven above, of two below, all matrices the same number: 38416 equal terms, whose roundings add up.
        let link = |i: usize| LayerLink {
            from: 0,
            to: 0,
            left: i / 2,
            right: 7 + i % 2,
            exact: BigUint::from(1u32),
            weight: 1.0,
            slope: 0.0,
        };
        let operator = LayerOperator {
            states: vec![(0, 0)],
            links: (0..14).map(link).collect(),
            denominator: BigUint::from(1u32),
        };
        let number = 1.0 + 243.0 / 1024.0;
        let tensors = vec![DenseMatrix { rows: 1, cols: 1, data: vec![number] }; 9];
        let mut paths = CornerPaths::new(&operator, &[number; 9]);
        let mut products: BTreeMap<_, _> = tensors.iter().enumerate().map(|(i, m)| (vec![i], m.clone())).collect();
        for _ in 1..MAX_POWER {
            assert!(paths.lengthen(&operator, &[number; 9]));
            let longer = |word: Vec<usize>| {
                let product = products[&word[..word.len() - 1]].times(&tensors[word[word.len() - 1]]);
                (word, product)
            };
            products = paths.words().into_iter().map(longer).collect();
        }
        // What sums over the entries of matrices, links and a few operations may err by, as in `other_eigenvalues`.
        let entries = 4.0 * MAX_POWER as f64 * (1.0 + 14.0 + 40.0) * 4.0 * f64::EPSILON;
        let (found, error) = paths.frobenius(&products, entries);
        // (14^4)^2 (1267 / 1024)^16, exactly, in units of 2^-160.
        let exact = BigUint::from(38416u32).pow(2) * BigUint::from(1267u32).pow(16);
        let scaled = found.scaled(160).into_parts().1;
        let apart = if scaled > exact { &scaled - &exact } else { &exact - &scaled };
        let relative = quotient_above(&apart, &exact);
        assert!(relative > entries, "{relative:e} is within {entries:e}: this case shows nothing");
        assert!(relative * found < error && error < 1e-10 * found, "{relative:e} {error:e}");
    }

    #[test]
    fn each_lattice_gets_its_constant() {
        for (name, value) in [
            ("square", 1.5030480824753322),
            ("king", 1.342643951124601),
            ("4-8-8", 1.5495601013357695),
            ("honeycomb", 1.5464407087875614),
            ("kagome", 1.4737353677742235),
        ] {
            let (lower, upper, bounds) = interval(name, 1e-15);
            assert!(lower <= value * (1.0 + 1e-15) && value <= upper * (1.0 + 1e-15), "{name}: {lower} {upper}");
            assert!(bounds.gap < 1e-15, "{name}: {}", bounds.gap);
        }
    }
}
