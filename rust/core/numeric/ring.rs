//! What a transfer kernel computes over: several residues at once, or floating-point numbers.
//!
//! A kernel is written once against [`Ring`]. [`Lanes`] runs it modulo `L` moduli side by side, one 64-bit lane each, so that
//! one state is one vector register and no block is too small for the vector unit. [`Real`] runs the very same additions in
//! double precision: that gives bounds, forecasts and float answers. Sums are lazy: a kernel adds at most
//! [`residue::HEADROOM`](super::residue::HEADROOM) folded elements before it folds.

use super::buffer::Zero;
use super::residue::{BITS, Modulus};
use super::simd::{Kernel, Level, Plain, run_lanes};

/// Arithmetic with delayed reduction.
pub trait Ring: Copy + Send + Sync {
    /// One state's value.
    type Element: Zero + Send + Sync + PartialEq + std::fmt::Debug + 'static;
    /// The empty sum. Its bytes are all zero.
    fn zero(&self) -> Self::Element;
    /// The empty product.
    fn one(&self) -> Self::Element;
    /// The sum, not folded.
    fn add(&self, a: Self::Element, b: Self::Element) -> Self::Element;
    /// The same element, small enough to be added [`HEADROOM`](super::residue::HEADROOM) times.
    fn fold(&self, a: Self::Element) -> Self::Element;
    /// The product of two folded elements, folded.
    fn mul(&self, a: Self::Element, b: Self::Element) -> Self::Element;
    /// The sum of products of folded elements, folded.
    #[inline]
    fn dot(&self, pairs: impl Iterator<Item = (Self::Element, Self::Element)>) -> Self::Element {
        pairs.fold(self.zero(), |sum, (a, b)| self.fold(self.add(sum, self.mul(a, b))))
    }
    /// Runs a kernel over this ring, compiled for a level of vector instructions.
    #[inline]
    fn dispatch<K: Kernel<Self::Element>>(&self, level: Level, kernel: K) -> K::Output {
        let _ = level;
        kernel.run(Plain(*self))
    }
}

/// `L` moduli side by side.
#[derive(Clone, Copy, Debug)]
pub struct Lanes<const L: usize> {
    moduli: [Modulus; L],
    excess: [u32; L],
}

impl<const L: usize> Lanes<L> {
    /// A ring over these moduli.
    pub fn new(moduli: [Modulus; L]) -> Self {
        Self { moduli, excess: moduli.map(Modulus::excess) }
    }

    /// The moduli, lane by lane.
    pub fn moduli(&self) -> &[Modulus; L] {
        &self.moduli
    }
}

impl<const L: usize> Ring for Lanes<L> {
    type Element = [u64; L];

    #[inline(always)]
    fn zero(&self) -> [u64; L] {
        [0; L]
    }

    #[inline(always)]
    fn one(&self) -> [u64; L] {
        [1; L]
    }

    #[inline(always)]
    fn add(&self, a: [u64; L], b: [u64; L]) -> [u64; L] {
        std::array::from_fn(|i| a[i] + b[i])
    }

    #[inline(always)]
    fn fold(&self, a: [u64; L]) -> [u64; L] {
        std::array::from_fn(|i| (a[i] & ((1 << BITS) - 1)) + (a[i] >> BITS) * u64::from(self.excess[i]))
    }

    #[inline(always)]
    fn mul(&self, a: [u64; L], b: [u64; L]) -> [u64; L] {
        std::array::from_fn(|i| self.moduli[i].mul(a[i], b[i]))
    }

    #[inline]
    fn dot(&self, pairs: impl Iterator<Item = (Self::Element, Self::Element)>) -> Self::Element {
        let mut sums = [0u128; L];
        let mut room = 1 << 16; // a product is below 2^111
        let reduce = |sums: &[u128; L]| std::array::from_fn(|i| self.moduli[i].fold_wide(sums[i]));
        for (a, b) in pairs {
            for i in 0..L {
                sums[i] += u128::from(a[i]) * u128::from(b[i]);
            }
            room -= 1;
            if room == 0 {
                let reduced: [u64; L] = reduce(&sums);
                (sums, room) = (reduced.map(u128::from), 1 << 16);
            }
        }
        reduce(&sums)
    }

    #[inline]
    fn dispatch<K: Kernel<[u64; L]>>(&self, level: Level, kernel: K) -> K::Output {
        run_lanes(level, *self, kernel)
    }
}

/// Double precision. With non-negative elements each operation has relative error at most 2^-53.
#[derive(Clone, Copy, Debug, Default)]
pub struct Real;

impl Ring for Real {
    type Element = f64;

    #[inline(always)]
    fn zero(&self) -> f64 {
        0.0
    }

    #[inline(always)]
    fn one(&self) -> f64 {
        1.0
    }

    #[inline(always)]
    fn add(&self, a: f64, b: f64) -> f64 {
        a + b
    }

    #[inline(always)]
    fn fold(&self, a: f64) -> f64 {
        a
    }

    #[inline(always)]
    fn mul(&self, a: f64, b: f64) -> f64 {
        a * b
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::residue::{HEADROOM, primes};

    #[test]
    fn the_headroom_holds_for_the_worst_modulus() {
        // 2^55 mod 2^32-1 is large; a folded element is at most 2^55 + 2^41.
        let ring = Lanes::new([Modulus::new((1 << 32) - 1).unwrap(), primes(1).unwrap()[0]]);
        let worst = ring.fold([u64::MAX; 2]);
        let sum = (1..HEADROOM).fold(worst, |sum, _| ring.add(sum, worst)); // overflow checks are on in tests
        assert_eq!(sum[0] % ((1 << 32) - 1), (u128::from(HEADROOM) * u128::from(u64::MAX) % ((1 << 32) - 1)) as u64);
    }
}
