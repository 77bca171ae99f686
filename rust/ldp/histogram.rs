//! Shares of k categories from noisy categories: unary encoding in three forms, and generalized randomized response.
//!
//! A row z of bits from unary encoding with (p, q) has, with r1 = p/q and r0 = (1-p)/(1-q),
//!   p(z | theta) = q^n1 (1-q)^(k-n1) (r0 + (r1 - r0) z.theta),   n1 = sum z,
//! so that only z.theta depends on theta: rows with equal bits are one pattern with a count, and few patterns in many
//! categories share subset sums by bytes. Any report whose probability takes two values, by whether it supports the true category, is such
//! a row z of supported categories: p(z | theta) = outside (1 + (ratio - 1) z.theta). The column sums alone have mean N mu, mu = q + (p - q) theta, and covariance
//! N (diag(mu (1-mu) + (p-q)^2 theta^2) - (p-q)^2 theta theta'), of which the normal law is taken in O(k); where N q < 50, the
//! rule of which must not depend on theta, each sum is taken as binomial by itself. Subsets of fixed size have other chances s, t
//! that two categories are supported, neither or one of them true: the covariance is N (s + (t - s)(theta_i + theta_j) - mu_i mu_j)
//! beside the diagonal, of rank two in (1, theta), and the last sum follows from the others.
//!
//! Sources: T. Wang, J. Blocki, N. Li, S. Jha (2017), Locally differentially private protocols for frequency estimation; T.
//! Kulkarni et al., equations 31 to 33 for rows; in its equation 9 the two probabilities are those of other events.

use super::Likelihood;
use crate::numeric::dispatch::{at_level, level};
use crate::numeric::elementary::ln_normal;
use crate::numeric::special::log_factorial;
use crate::{Error, Result};
use std::sync::Arc;

/// Categories whose subsets are summed together: each pattern is read byte by byte.
const BYTE: usize = 8;
const SUBSETS: usize = 1 << BYTE;

/// Rows of bits with counts.
#[derive(Clone)]
pub struct Patterns {
    categories: usize,
    low: f64,
    slope: f64,
    constant: f64,
    bytes: usize,
    /// The bytes of the patterns: those of the first eight categories of all patterns, then those of the next.
    planes: Arc<Vec<u8>>,
    counts: Arc<Vec<f64>>,
    /// Of each pattern: its factor, then the derivative of the likelihood by its share.
    factors: Vec<f64>,
    /// Sums of theta over the subsets of each byte, and the adjoint of these.
    sums: Vec<f64>,
    adjoint: Vec<f64>,
}

impl Patterns {
    /// From the bytes of the patterns, bit j of byte i being category 8 i + j, their counts, and p and q.
    ///
    /// # Errors
    /// [`Error::Domain`] unless 0 < q < p < 1 or q < p = 1, up to equality of p and q; [`Error::Shape`].
    pub fn new(categories: usize, masks: Vec<u8>, counts: Vec<f64>, p: f64, q: f64) -> Result<Self> {
        let sound = q > 0.0 && q < 1.0 && p > 0.0 && p <= 1.0;
        Error::require(sound, "p", format_args!("{p} and {q}"), "in (0, 1], with q in (0, 1)")?;
        let bytes = categories.div_ceil(BYTE);
        let (log_q, log_not) = (q.ln(), (-q).ln_1p());
        let ones = |pattern: &[u8]| f64::from(pattern.iter().map(|byte| byte.count_ones()).sum::<u32>());
        let constant = masks
            .chunks_exact(bytes.max(1))
            .zip(&counts)
            .map(|(pattern, count)| {
                let ones = ones(pattern);
                count * (ones * log_q + (categories as f64 - ones) * log_not)
            })
            .sum();
        let low = (1.0 - p) / (1.0 - q);
        Self::of_factors(categories, masks, counts, [low, p / q - low, constant])
    }

    /// From the bytes of the supports as in [`Self::new`], and the ratio and the logarithm of the probabilities of a report given a
    /// category that it supports and one that it does not, the latter that of the logarithm.
    ///
    /// # Errors
    /// [`Error::Domain`] unless the ratio is above 1 and both are finite; [`Error::Shape`].
    pub fn of_supports(
        categories: usize,
        masks: Vec<u8>,
        counts: Vec<f64>,
        ratio: f64,
        log_outside: f64,
    ) -> Result<Self> {
        let sound = ratio > 1.0 && ratio.is_finite() && log_outside <= 0.0 && log_outside.is_finite();
        let found = format_args!("{ratio} with {log_outside}");
        Error::require(sound, "ratio", found, "above 1, of finite probabilities")?;
        let constant = log_outside * counts.iter().sum::<f64>();
        Self::of_factors(categories, masks, counts, [1.0, ratio - 1.0, constant])
    }

    fn of_factors(
        categories: usize,
        masks: Vec<u8>,
        counts: Vec<f64>,
        [low, slope, constant]: [f64; 3],
    ) -> Result<Self> {
        let bytes = categories.div_ceil(BYTE);
        Error::require_shape("masks", [counts.len(), bytes], [masks.len()])?;
        let sums = vec![0.0; bytes * SUBSETS];
        let adjoint = sums.clone();
        let number = counts.len();
        let planes = (0..bytes).flat_map(|i| masks.iter().skip(i).step_by(bytes).copied()).collect();
        let (planes, counts, factors) = (Arc::new(planes), Arc::new(counts), vec![0.0; number]);
        Ok(Self { categories, low, slope, constant, bytes, planes, counts, factors, sums, adjoint })
    }
}

impl Likelihood for Patterns {
    fn value(&mut self, natural: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        for (table, theta) in self.sums.chunks_exact_mut(SUBSETS).zip(natural.chunks(BYTE)) {
            table[0] = 0.0;
            for (bit, theta) in theta.iter().enumerate() {
                let (known, fresh) = table.split_at_mut(1 << bit);
                for (sum, known) in fresh.iter_mut().zip(known) {
                    *sum = *known + theta;
                }
            }
        }
        let Self { bytes, low, slope, sums, adjoint, factors, planes, counts, .. } = self;
        let number = factors.len().max(1);
        factors.fill(*low);
        for (plane, table) in planes.chunks_exact(number).zip(sums.chunks_exact(SUBSETS)).take(*bytes) {
            for (factor, &byte) in factors.iter_mut().zip(plane) {
                *factor += *slope * table[byte as usize];
            }
        }
        let total = self.constant
            + if *low > 0.0 {
                weigh(factors, counts, *slope)
            } else {
                // Rows without a one are impossible then.
                let mut total = 0.0;
                for (factor, count) in factors.iter_mut().zip(counts.iter()) {
                    total += count * factor.ln();
                    *factor = count * *slope / *factor;
                }
                total
            };
        if gradient.is_some() {
            adjoint.fill(0.0);
            for (plane, table) in planes.chunks_exact(number).zip(adjoint.chunks_exact_mut(SUBSETS)) {
                // Patterns are sorted: equal bytes often follow each other, and one sum serves them.
                let (mut last, mut sum) = (0, 0.0);
                for (&weight, &byte) in factors.iter().zip(plane) {
                    if byte != last {
                        table[last as usize] += sum;
                        (last, sum) = (byte, 0.0);
                    }
                    sum += weight;
                }
                table[last as usize] += sum;
            }
        }
        if let Some(gradient) = gradient {
            for (table, gradient) in adjoint.chunks_exact_mut(SUBSETS).zip(gradient.chunks_mut(BYTE)) {
                // Fold the highest bit away, again and again: what has it set belongs to its category.
                for bit in (0..gradient.len()).rev() {
                    let (without, with) = table[..2 << bit].split_at_mut(1 << bit);
                    let mut sum = 0.0;
                    for (rest, &mut weight) in without.iter_mut().zip(with) {
                        sum += weight;
                        *rest += weight;
                    }
                    gradient[bit] = sum;
                }
            }
        }
        total
    }

    fn parameters(&self) -> usize {
        self.categories
    }
}

/// The sum of counts times ln factor; the factors become counts times slope / factor.
fn weigh(factors: &mut [f64], counts: &[f64], slope: f64) -> f64 {
    at_level!(level(), {
        let mut sums = [0.0; 8];
        let (blocks, rest) = factors.as_chunks_mut::<8>();
        let (counted, counted_rest) = counts.as_chunks::<8>();
        for (factors, counts) in blocks.iter_mut().zip(counted) {
            for lane in 0..8 {
                sums[lane] += counts[lane] * ln_normal(factors[lane]);
                factors[lane] = counts[lane] * slope / factors[lane];
            }
        }
        for ((sum, factor), count) in sums.iter_mut().zip(rest).zip(counted_rest) {
            *sum += count * ln_normal(*factor);
            *factor = count * slope / *factor;
        }
        ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]))
    })
}

/// Sums of reports over users: how many support each category.
#[derive(Clone, Debug)]
pub struct ColumnSums {
    sums: Vec<f64>,
    users: f64,
    p: f64,
    q: f64,
    /// The probabilities that a report supports two categories, neither of them the truth, or one of them.
    joint: [f64; 2],
    /// Whether reports support equally many categories, so that the last sum follows from the others.
    fixed: bool,
}

impl ColumnSums {
    /// From the sums over `users` rows, whose bits are independent.
    ///
    /// # Errors
    /// [`Error::Domain`] for sums that no rows have.
    pub fn new(sums: Vec<f64>, users: f64, p: f64, q: f64) -> Result<Self> {
        Self::of_joint(sums, users, [p, q, q * q, p * q], false)
    }

    /// From the sums over `users` subsets of `size` categories, which hold the truth with probability `p`; taken as normal
    /// whatever their number.
    ///
    /// # Errors
    /// [`Error::Domain`] for sums that no subsets have.
    pub fn of_subsets(sums: Vec<f64>, users: f64, p: f64, size: f64) -> Result<Self> {
        let (k, total) = (sums.len() as f64, sums.iter().sum::<f64>());
        Error::require(size >= 1.0 && size < k, "size", size, "at least 1 and below the number of categories")?;
        Error::require(p > 0.0 && p < 1.0, "p", p, "in (0, 1)")?;
        Error::require(total == users * size, "released", total, "sums of as many categories as subsets hold")?;
        let (inside, pairs) = ((size - 1.0) / (k - 1.0), (k - 1.0) * (k - 2.0).max(1.0));
        let q = p * inside + (1.0 - p) * size / (k - 1.0);
        let neither = (size - 1.0) * (p * (size - 2.0) + (1.0 - p) * size) / pairs;
        Self::of_joint(sums, users, [p, q, neither, p * inside], true)
    }

    fn of_joint(sums: Vec<f64>, users: f64, [p, q, neither, one]: [f64; 4], fixed: bool) -> Result<Self> {
        let possible = |sum: f64| sum >= 0.0 && sum <= users;
        Error::require_all(&sums, possible, "released", "column sums between 0 and the number of users")?;
        Ok(Self { sums, users, p, q, joint: [neither, one], fixed })
    }

    /// Each sum as binomial by itself.
    fn binomial(&self, natural: &[f64], mut gradient: Option<&mut [f64]>) -> f64 {
        let (n, q, w) = (self.users, self.q, self.p - self.q);
        let mut total = 0.0;
        for (k, (&c, &theta)) in self.sums.iter().zip(natural).enumerate() {
            let mu = q + w * theta;
            total += log_factorial(n) - log_factorial(c) - log_factorial(n - c);
            total += if c > 0.0 { c * mu.ln() } else { 0.0 };
            total += if c < n { (n - c) * (-mu).ln_1p() } else { 0.0 };
            if let Some(gradient) = gradient.as_deref_mut() {
                gradient[k] = w * (c / mu - (n - c) / (1.0 - mu));
            }
        }
        total
    }
}

impl Likelihood for ColumnSums {
    fn value(&mut self, natural: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        let (n, q, w) = (self.users, self.q, self.p - self.q);
        if n == 0.0 {
            if let Some(gradient) = gradient {
                gradient.fill(0.0);
            }
            return 0.0;
        }
        if n * q < 50.0 && !self.fixed {
            return self.binomial(natural, gradient);
        }
        // The covariance is n (D + U A U') with U = [1, theta]; with x = c - n mu, y = U' D^-1 x, G = U' D^-1 U and
        // K = (1 + A G)^-1 A: x'C^-1 x = (x.x/D - y'K y) / n, ln det = sum ln D + ln det(1 + A G).
        let [neither, one] = self.joint;
        let sums = &self.sums[..self.sums.len() - usize::from(self.fixed)];
        let terms = |c: f64, theta: f64| {
            let mu = q + w * theta;
            (c - n * mu, mu - neither - 2.0 * (one - neither) * theta)
        };
        let (mut xx, mut y, mut g, mut logs) = (0.0, [0.0; 2], [0.0; 3], 0.0);
        for (&c, &theta) in sums.iter().zip(natural) {
            let (x, d) = terms(c, theta);
            xx += x * x / d;
            y[0] += x / d;
            y[1] += theta * x / d;
            g[0] += 1.0 / d;
            g[1] += theta / d;
            g[2] += theta * theta / d;
            logs += d.ln();
        }
        let a = [neither - q * q, one - neither - q * w, -w * w];
        let (first, second) = (
            [1.0 + a[0] * g[0] + a[1] * g[1], a[0] * g[1] + a[1] * g[2]],
            [a[1] * g[0] + a[2] * g[1], 1.0 + a[1] * g[1] + a[2] * g[2]],
        );
        let det = first[0] * second[1] - first[1] * second[0];
        let k = [
            (second[1] * a[0] - first[1] * a[1]) / det,
            (second[1] * a[1] - first[1] * a[2]) / det,
            (first[0] * a[2] - second[0] * a[1]) / det,
        ];
        let z = [k[0] * y[0] + k[1] * y[1], k[1] * y[0] + k[2] * y[1]];
        let constant = sums.len() as f64 * (2.0 * std::f64::consts::PI * n).ln();
        let value = -0.5 * (xx - y[0] * z[0] - y[1] * z[1]) / n - 0.5 * (logs + det.ln() + constant);
        if let Some(gradient) = gradient {
            gradient.fill(0.0);
            let (dx, dd) = (-n * w, w - 2.0 * (one - neither));
            for ((slope, &c), &theta) in gradient.iter_mut().zip(sums).zip(natural) {
                let (x, d) = terms(c, theta);
                let of_inverse = -dd / (d * d);
                let d_xx = 2.0 * x * dx / d + x * x * of_inverse;
                let d_y = [dx / d + x * of_inverse, (x + theta * dx) / d + theta * x * of_inverse];
                let d_g = [of_inverse, 1.0 / d + theta * of_inverse, 2.0 * theta / d + theta * theta * of_inverse];
                let bent = z[0] * z[0] * d_g[0] + 2.0 * z[0] * z[1] * d_g[1] + z[1] * z[1] * d_g[2];
                let quadratic = d_xx - 2.0 * (z[0] * d_y[0] + z[1] * d_y[1]) + bent;
                let log_det = dd / d + k[0] * d_g[0] + 2.0 * k[1] * d_g[1] + k[2] * d_g[2];
                *slope = -0.5 * quadratic / n - 0.5 * log_det;
            }
        }
        value
    }

    fn parameters(&self) -> usize {
        self.sums.len()
    }
}

/// Counts of categories released by generalized randomized response; without noise where `other` is 0 and `keep` is 1.
#[derive(Clone, Debug)]
pub struct Categories {
    counts: Vec<f64>,
    keep: f64,
    other: f64,
}

impl Categories {
    /// From the counts and the probabilities of the truth and of each other category.
    pub fn new(counts: Vec<f64>, keep: f64, other: f64) -> Self {
        Self { counts, keep, other }
    }
}

impl Likelihood for Categories {
    fn value(&mut self, natural: &[f64], mut gradient: Option<&mut [f64]>) -> f64 {
        let slope = self.keep - self.other;
        let mut total = 0.0;
        for (k, (&count, &theta)) in self.counts.iter().zip(natural).enumerate() {
            let p = self.other + slope * theta;
            // What nobody released counts for nothing, also where its probability is 0.
            let (log, relative) = if count > 0.0 { (p.ln(), slope / p) } else { (0.0, 0.0) };
            total += count * log;
            if let Some(gradient) = gradient.as_deref_mut() {
                gradient[k] = count * relative;
            }
        }
        total
    }

    fn parameters(&self) -> usize {
        self.counts.len()
    }
}

/// The distinct rows of bits, as bytes, and how often each occurs.
///
/// # Errors
/// [`Error::Domain`] naming the index of what is not a bit.
/// Where `given` holds counts, the rows are patterns already.
pub fn patterns(rows: &[u8], categories: usize, given: Option<&[f64]>) -> Result<(Vec<u8>, Vec<f64>)> {
    if let Some(index) = rows.iter().position(|&bit| bit > 1) {
        let place = (index / categories, index % categories);
        return Err(Error::domain("released", format_args!("{} at index {place:?}", rows[index]), "bits"));
    }
    let pack = |row: &[u8]| -> Vec<u64> {
        let word = |bits: &[u8]| bits.iter().enumerate().fold(0, |word, (i, &bit)| word | u64::from(bit) << i);
        row.chunks(64).map(word).collect()
    };
    let words = categories.div_ceil(64);
    let packed: Vec<u64> = rows.chunks_exact(categories).flat_map(pack).collect();
    let bytes = |words: &[u64]| -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).take(categories.div_ceil(BYTE)).collect()
    };
    if let Some(given) = given {
        return Ok((packed.chunks_exact(words).flat_map(bytes).collect(), given.to_vec()));
    }
    let mut order: Vec<&[u64]> = packed.chunks_exact(words).collect();
    order.sort_unstable();
    let (mut masks, mut counts) = (Vec::new(), Vec::new());
    for group in order.chunk_by(|a, b| a == b) {
        masks.extend(bytes(group[0]));
        counts.push(group.len() as f64);
    }
    Ok((masks, counts))
}
