//! Perfect matchings of the free square lattice m x n: eigenvalues in closed form, inside a prime field.
//!
//!   M = prod over i <= m/2 of prod over j <= n/2 of (4 cos(pi i/(m+1))^2 + 4 cos(pi j/(n+1))^2)      (m n even)
//!
//! Let n be even. With y = 2 + 4 cos(pi j/(n+1))^2 the product over i is U_k(y/2) - U_{k-1}(y/2) for m = 2k and U_k(y/2) for
//! m = 2k + 1 (whose middle factors multiply to 1).
//!
//! Sources: P. W. Kasteleyn (1961), The statistics of dimers on a lattice; H. Temperley, M. Fisher (1961), Dimer problem in
//! statistical mechanics.

use crate::counting::spanning_trees::product::{Chebyshev, inverse, root_of_unity, subtract};
use crate::numeric::residue::Montgomery;

/// The free square lattice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductGrid {
    /// The first extent.
    pub rows: usize,
    /// The second extent.
    pub cols: usize,
}

impl ProductGrid {
    /// The extents with the even one second, of two even ones the smaller.
    fn oriented(&self) -> (usize, usize) {
        match (self.rows % 2, self.cols % 2) {
            (0, 0) => (self.rows.max(self.cols), self.rows.min(self.cols)),
            (0, _) => (self.cols, self.rows),
            _ => (self.rows, self.cols),
        }
    }

    /// The order of the root of unity: the primes are 1 modulo this.
    pub fn order(&self) -> u64 {
        self.oriented().1 as u64 + 1
    }

    /// Multiplications for one prime, roughly.
    pub fn work(&self) -> f64 {
        let (m, n) = self.oriented();
        n as f64 / 2.0 * (3.0 * (m as f64).log2() + 3.0) + 300.0
    }

    /// `log2` of the number, from the closed form in floating point, rounded up.
    ///
    /// With cosh(t) = y/2, U_k = sinh((k+1) t)/sinh(t) and U_k - U_{k-1} = cosh((k + 1/2) t)/cosh(t/2); sinh(t/2) is the cosine.
    pub fn bits(&self) -> f64 {
        let (m, n) = self.oriented();
        let mut log = 0.0;
        for j in 1..=n / 2 {
            let t = 2.0 * (std::f64::consts::PI * j as f64 / (n as f64 + 1.0)).cos().asinh();
            let k = (m / 2) as f64;
            log += if m % 2 == 0 {
                k * t + (-(2.0 * k + 1.0) * t).exp().ln_1p() - (-t).exp().ln_1p()
            } else {
                k * t + (-(-2.0 * (k + 1.0) * t).exp()).ln_1p() - (-(-2.0 * t).exp()).ln_1p()
            };
        }
        log / std::f64::consts::LN_2 * (1.0 + 1e-9) + 0.01
    }

    /// The number modulo a prime that is 1 modulo [`Self::order`].
    pub fn residue(&self, prime: u64) -> u64 {
        let field = Montgomery::new(prime);
        let (m, n) = self.oriented();
        // 4 cos(a)^2 = 2 + 2 cos(2a), and 2 cos(2 pi j/(n+1)) is a sum of two powers of the root.
        let root = root_of_unity(&field, self.order());
        let step = field.sum(root, inverse(&field, root));
        let (mut before, mut cosine) = (field.enter(2), step);
        let four = field.enter(4);
        let mut value = field.enter(1);
        for _ in 0..n / 2 {
            let y = field.sum(four, cosine);
            let Chebyshev { t: [t], u: [u] } = Chebyshev::at(&field, [y], m as u64 / 2);
            let half = |x: u64| field.mul(x, field.enter(prime / 2 + 1));
            // U_k = (y U_{k-1} + 2 T_k)/2.
            let next = half(field.sum(field.mul(y, u), t));
            value = field.mul(value, if m % 2 == 0 { subtract(&field, next, u) } else { next });
            (before, cosine) = (cosine, subtract(&field, field.mul(step, cosine), before));
        }
        field.leave(value)
    }
}
