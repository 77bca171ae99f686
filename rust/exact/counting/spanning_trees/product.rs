//! Spanning trees of lattices that are products or periodic: eigenvalues in closed form, inside a prime field.
//!
//! A field of p elements has primitive roots of unity of every order that divides p - 1, and with them all cosines of
//! multiples of that angle. With T and U the Chebyshev polynomials, the square lattice m x n has
//!
//!   free      prod over j=1..n-1 of U_{m-1}(2 - cos(pi j/n)),
//!   cylinder  n prod over j=1..n-1 of U_{m-1}(2 - cos(2 pi j/n))           (n around, m high),
//!   torus     (m/n) prod over j=1..n-1 of (2 T_m(2 - cos(2 pi j/n)) - 2)
//!
//! trees, and any periodic lattice on a torus of L1 x L2 cells
//!
//!   N_quotient / (L1 L2) prod over k != 0 of det L(k),   L(k)_uv = d_u [u=v] - sum over bonds of e^{i k.(dx,dy)} - h.c.,
//!
//! with k = (2 pi a/L1, (2 pi b + k_1 t)/L2) where going once round the second axis moves the first coordinate by t, and
//! N_quotient the trees of the torus of one cell. N(k) = N(-k) halves the work.
//!
//! Sources: F. Y. Wu (1977), Number of spanning trees on a lattice, J. Phys. A 10; R. Shrock, F. Y. Wu (2000), Spanning
//! trees on graphs and lattices in d dimensions, J. Phys. A 33.

use super::bits_by_means;
use crate::lattices::Bond;
use crate::monitor::Progress;
use crate::numeric::residue::{Montgomery, inverse_modulo};
use crate::{Error, Result};

/// The square lattice of `rows` x `cols` vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SquareGrid {
    /// The first extent.
    pub rows: usize,
    /// The second extent, the circumference of a cylinder.
    pub cols: usize,
    /// Which axes are closed: neither, the second, or both.
    pub closed: [bool; 2],
}

/// A periodic lattice on a torus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torus {
    /// Sites of the cell.
    pub sites: usize,
    /// Bonds of the cell.
    pub bonds: Vec<Bond>,
    /// Cells along each axis.
    pub extent: [usize; 2],
    /// How far the first coordinate moves once round the second axis.
    pub twist: usize,
}

/// An element of multiplicative order `order` in a prime field with `order` dividing `p - 1`, as a Montgomery form.
pub(in crate::counting) fn root_of_unity(field: &Montgomery, order: u64) -> u64 {
    let (one, exponent) = (field.enter(1), (field.modulus() - 1) / order);
    let factors = prime_factors(order);
    let is_primitive = |&root: &u64| factors.iter().all(|q| field.pow(root, order / q) != one);
    (2..).map(|base| field.pow(field.enter(base), exponent)).find(is_primitive).unwrap_or(one)
}

/// The primes that divide a number.
pub(in crate::counting) fn prime_factors(mut n: u64) -> Vec<u64> {
    let mut found = Vec::new();
    let mut q = 2;
    while q * q <= n {
        if n.is_multiple_of(q) {
            found.push(q);
            while n.is_multiple_of(q) {
                n /= q;
            }
        }
        q += 1;
    }
    found.extend((n > 1).then_some(n));
    found
}

/// The difference of two forms.
#[inline(always)]
pub(in crate::counting) fn subtract(field: &Montgomery, a: u64, b: u64) -> u64 {
    if a >= b { a - b } else { a + (field.modulus() - b) }
}

/// The form of the inverse, 0 if there is none.
pub(in crate::counting) fn inverse(field: &Montgomery, x: u64) -> u64 {
    inverse_modulo(field.leave(x), field.modulus()).map_or(0, |inverse| field.enter(inverse))
}

/// How many factors are worked on side by side, so that the multiplier is always busy.
const BATCH: usize = 8;

impl SquareGrid {
    /// The order of the root of unity: the primes are 1 modulo this.
    pub fn order(&self) -> u64 {
        self.cols as u64 * if self.closed[1] { 1 } else { 2 }
    }

    /// Multiplications for one prime, roughly.
    pub fn work(&self) -> f64 {
        let factors = self.cols as f64 * if self.closed[1] { 0.5 } else { 1.0 };
        factors * (3.0 * (self.rows as f64).log2() + 3.0)
    }

    /// `log2` of the number, rounded up: a part in 10^9 and a hundredth of a bit are ample for the roundings of [`Self::log`].
    pub fn bits(&self) -> f64 {
        self.log().0.max(0.0) / std::f64::consts::LN_2 * (1.0 + 1e-9) + 0.01
    }

    /// The natural logarithm of the number, from the closed form in floating point, and a bound on its error.
    ///
    /// With cosh(t) = x the factors are U_{m-1}(x) = sinh(m t)/sinh(t) and 2 T_m(x) - 2 = 4 sinh(m t/2)^2. Sines of at most pi/2 lose no
    /// digits, so that t is off by 7 parts in 2^52, m t by 8, ln(1 - exp(-2 m t)) and ln(2 sinh(t)) by 2 parts and at most 42 of one together;
    /// what sums round is added at the end.
    pub fn log(&self) -> (f64, f64) {
        let (m, n) = (self.rows as f64, self.cols as f64);
        let mut log = if self.closed[0] { (m / n).ln() } else { f64::from(u8::from(self.closed[1])) * n.ln() };
        let (mut rest, mut parts) = (0.0, 4.0 * log.abs() + 4.0);
        for j in 1..self.cols {
            let halves = if self.closed[1] { 2 * j.min(self.cols - j) } else { j };
            // cosh(t) - 1 = 1 - cos(angle), so that sinh(t/2) = sin(angle/2).
            let t = 2.0 * (std::f64::consts::PI * halves as f64 / (2.0 * n)).sin().asinh();
            let terms = if self.closed[0] {
                [m * t, 2.0 * (-(-m * t).exp_m1()).ln(), 0.0]
            } else {
                [m * t, (-(-2.0 * m * t).exp_m1()).ln(), -(2.0 * t.sinh()).ln()]
            };
            for term in terms {
                let sum = log + term;
                rest += if log.abs() > term.abs() { (log - sum) + term } else { (term - sum) + log };
                log = sum;
                parts += 12.0 * term.abs() + 16.0;
            }
        }
        (log + rest, (parts + 2.0 * log.abs()) * f64::EPSILON)
    }

    /// The number modulo a prime that is 1 modulo [`Self::order`].
    pub fn residue(&self, prime: u64) -> u64 {
        let field = Montgomery::new(prime);
        let (one, two, four) = (field.enter(1), field.enter(2), field.enter(4));
        let root = root_of_unity(&field, self.order());
        // Twice the cosines: c_{j+1} = c_1 c_j - c_{j-1}; 2x = 4 - c_j.
        let step = field.sum(root, inverse(&field, root));
        let (mut before, mut cosine) = (two, step);
        let n = self.cols;
        let last = if self.closed[1] { n.saturating_sub(1) / 2 } else { n - 1 };
        let mut doubled = Vec::with_capacity(last + 1);
        for _ in 0..last {
            doubled.push(subtract(&field, four, cosine));
            (before, cosine) = (cosine, subtract(&field, field.mul(step, cosine), before));
        }
        let mut product = [one; BATCH];
        let mut groups = doubled.chunks_exact(BATCH);
        for group in &mut groups {
            let group: &[u64; BATCH] = group.try_into().unwrap_or(&[0; BATCH]);
            let values = self.factors(&field, *group);
            (0..BATCH).for_each(|l| product[l] = field.mul(product[l], values[l]));
        }
        let mut value = product.iter().fold(one, |value, &x| field.mul(value, x));
        for &y in groups.remainder() {
            value = field.mul(value, self.factors(&field, [y])[0]);
        }
        if self.closed[1] {
            value = field.mul(value, value); // j and n - j
            if n.is_multiple_of(2) {
                value = field.mul(value, self.factors(&field, [field.enter(6)])[0]); // j = n/2: 2x = 6
            }
            value = field.mul(value, field.enter(if self.closed[0] { self.rows as u64 } else { n as u64 }));
        }
        if self.closed[0] {
            value = field.mul(value, inverse(&field, field.enter(n as u64)));
        }
        field.leave(value)
    }

    /// `U_{m-1}(y/2)` or `2 T_m(y/2) - 2`.
    #[inline(always)]
    fn factors<const L: usize>(&self, field: &Montgomery, y: [u64; L]) -> [u64; L] {
        let Chebyshev { t, u } = Chebyshev::at(field, y, self.rows as u64);
        if self.closed[0] { t.map(|t| subtract(field, t, field.enter(2))) } else { u }
    }
}

/// Values `t = 2 T_m(y/2)` and `u = U_{m-1}(y/2)` of Chebyshev polynomials, side by side.
#[derive(Clone, Copy, Debug)]
pub(in crate::counting) struct Chebyshev<const L: usize> {
    /// Twice those of the first kind.
    pub t: [u64; L],
    /// Those of the second kind, one degree lower.
    pub u: [u64; L],
}

impl<const L: usize> Chebyshev<L> {
    /// By doubling: `t_2k = t_k^2 - 2`, `u_2k = t_k u_k`, `u_{k+1} = (y u_k + t_k)/2`,
    /// `t_{k+1} = (y t_k + (y^2 - 4) u_k)/2`.
    #[inline(always)]
    pub fn at(field: &Montgomery, y: [u64; L], m: u64) -> Self {
        let (two, four, modulus) = (field.enter(2), field.enter(4), field.modulus());
        let half = |x: u64| if x & 1 == 1 { (x >> 1) + (modulus >> 1) + 1 } else { x >> 1 };
        let squared: [u64; L] = std::array::from_fn(|l| subtract(field, field.mul(y[l], y[l]), four));
        if m == 0 {
            return Self { t: [two; L], u: [0; L] };
        }
        let mut t = y;
        let mut u = [field.enter(1); L];
        let bits = 64 - m.leading_zeros();
        for bit in (0..bits - 1).rev() {
            for l in 0..L {
                u[l] = field.mul(t[l], u[l]);
                t[l] = subtract(field, field.mul(t[l], t[l]), two);
            }
            if m >> bit & 1 == 1 {
                for l in 0..L {
                    let next = half(field.sum(field.mul(y[l], u[l]), t[l]));
                    t[l] = half(field.sum(field.mul(y[l], t[l]), field.mul(squared[l], u[l])));
                    u[l] = next;
                }
            }
        }
        Self { t, u }
    }
}

impl Torus {
    /// The order of the root of unity: the primes are 1 modulo this.
    pub fn order(&self) -> u64 {
        let [a, b] = self.extent.map(|length| length as u64);
        if self.twist == 0 { a / gcd(a, b) * b } else { a * b }
    }

    /// Multiplications for one prime, roughly.
    pub fn work(&self) -> f64 {
        let (cells, s) = (self.extent[0] as f64 * self.extent[1] as f64, self.sites as f64);
        cells / 2.0 * (s * s * s / 2.0 + 4.0 * self.bonds.len() as f64 + s)
    }

    /// `log2` of a number that the count does not exceed.
    pub fn bits(&self) -> f64 {
        let mut degrees = vec![0; self.sites];
        for bond in &self.bonds {
            degrees[bond.from] += 1;
            degrees[bond.to] += 1;
        }
        bits_by_means(&degrees, self.extent[0] as f64 * self.extent[1] as f64)
    }

    /// The number modulo a prime that is 1 modulo [`Self::order`] and divides no extent.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when told to stop.
    pub fn residue(&self, prime: u64, progress: &Progress) -> Result<u64, Error> {
        let field = Montgomery::new(prime);
        let order = self.order();
        let root = root_of_unity(&field, order);
        let mut powers = vec![field.enter(1); order as usize];
        for i in 1..powers.len() {
            powers[i] = field.mul(powers[i - 1], root);
        }
        let [rows, cols] = self.extent.map(|length| length as u64);
        let s = self.sites;
        let mut block = vec![0; s * s];
        let (mut value, mut denominator) = (field.enter(1), field.enter(1));
        let power = |a: i64, b: i64| powers[(a + b).rem_euclid(order as i64) as usize];
        for a in 0..rows {
            progress.check()?;
            for b in 0..cols {
                let (x, y) = (a * (order / rows), b * (order / cols));
                let y = y + if self.twist == 0 { 0 } else { a * self.twist as u64 };
                // The wave vector of the opposite sign: (-a, -b - t), or (0, -b).
                let opposite =
                    ((rows - a) % rows, (2 * cols - b - if a > 0 { self.twist as u64 % cols } else { 0 }) % cols);
                if (a, b) == (0, 0) || opposite < (a, b) {
                    continue;
                }
                self.laplacian(&field, &mut block, |[dx, dy]| {
                    let angle =
                        |d: i32, z: u64| i64::from(d).rem_euclid(order as i64) * (z % order) as i64 % order as i64;
                    let (across, around) = (angle(dx, x), angle(dy, y));
                    (power(across, around), power(-across, -around))
                });
                let (top, bottom) = determinant(&field, &mut block, s);
                let times = if opposite == (a, b) { 1 } else { 2 };
                for _ in 0..times {
                    value = field.mul(value, top);
                    denominator = field.mul(denominator, bottom);
                }
            }
        }
        // The trees of the torus of one cell: one site grounded.
        self.laplacian(&field, &mut block, |_| (field.enter(1), field.enter(1)));
        let mut reduced: Vec<u64> = (1..s).flat_map(|i| block[i * s + 1..(i + 1) * s].to_vec()).collect();
        let (top, bottom) = determinant(&field, &mut reduced, s - 1);
        value = field.mul(value, top);
        denominator = field.mul(field.mul(denominator, bottom), field.mul(field.enter(rows), field.enter(cols)));
        Ok(field.leave(field.mul(value, inverse(&field, denominator))))
    }

    /// Writes `L(k)`, given `e^{i k.(dx,dy)}` and its inverse.
    fn laplacian(&self, field: &Montgomery, block: &mut [u64], phase: impl Fn([i32; 2]) -> (u64, u64)) {
        let (s, one) = (self.sites, field.enter(1));
        block.fill(0);
        for bond in &self.bonds {
            let (u, v) = (bond.from, bond.to);
            let (there, back) = phase(bond.offset);
            for site in [u, v] {
                block[site * s + site] = field.sum(block[site * s + site], one);
            }
            block[u * s + v] = subtract(field, block[u * s + v], there);
            block[v * s + u] = subtract(field, block[v * s + u], back);
        }
    }
}

/// A determinant as numerator and denominator, without a division: eliminating with the pivot a multiplies each of the r rows
/// below by a, and the determinant by a^r.
fn determinant(field: &Montgomery, a: &mut [u64], n: usize) -> (u64, u64) {
    let (mut top, mut bottom) = (field.enter(1), field.enter(1));
    for j in 0..n {
        let Some(i) = (j..n).find(|&i| a[i * n + j] != 0) else { return (0, field.enter(1)) };
        if i != j {
            (j..n).for_each(|t| a.swap(i * n + t, j * n + t));
            top = subtract(field, 0, top);
        }
        let pivot = a[j * n + j];
        top = field.mul(top, pivot);
        for i in j + 1..n {
            bottom = field.mul(bottom, pivot);
            let factor = a[i * n + j];
            for t in j + 1..n {
                let x = field.mul(a[i * n + t], pivot);
                a[i * n + t] = subtract(field, x, field.mul(factor, a[j * n + t]));
            }
        }
    }
    (top, bottom)
}

/// The greatest common divisor.
pub(in crate::counting) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
