//! What a transfer kernel computes over: several residues at once, or floating-point numbers.
//!
//! A kernel is written once against [`Ring`]. [`Lanes`] runs it modulo `L` moduli side by side, one 64-bit lane each, so that
//! one state is one vector register and no block is too small for the vector unit. [`F64`] runs the very same additions in
//! double precision: that gives bounds, forecasts and float answers. Sums are lazy: a kernel adds at most
//! [`residue::HEADROOM`](super::residue::HEADROOM) folded elements before it folds.

use super::buffer::Zero;
use super::dispatch::{Kernel, Level, PRODUCTS, Plain, Products, level, run_lanes};
use super::residue::{BITS, Modulus};
use std::mem::MaybeUninit;

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
    /// The same element, small enough to be added [`HEADROOM`](super::residue::HEADROOM) times: as it is, where sums need no room.
    #[inline(always)]
    fn fold(&self, a: Self::Element) -> Self::Element {
        a
    }
    /// The product of two folded elements, folded.
    fn mul(&self, a: Self::Element, b: Self::Element) -> Self::Element;
    /// One less a folded element, folded.
    fn complement(&self, a: Self::Element) -> Self::Element;
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

/// An array by its places. `std::array::from_fn` is made for elements that must be dropped: hundreds of kernels would compile
/// what it does for them, and optimize it away again.
#[inline(always)]
pub(super) fn lanes<const L: usize>(lane: impl Fn(usize) -> u64) -> [u64; L] {
    let mut all = [0; L];
    for i in 0..L {
        all[i] = lane(i);
    }
    all
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

    /// By how much 2^55 exceeds each modulus, in words: what folds multiply by.
    pub fn excess(&self) -> [u64; L] {
        lanes(|i| u64::from(self.excess[i]))
    }

    /// An element plus the products of at most [`PRODUCTS`] pairs of folded elements, folded: one kernel for the pairs of all callers.
    #[inline(never)]
    fn add_products(&self, sum: [u64; L], pairs: &[([u64; L], [u64; L])]) -> [u64; L] {
        if const { L > 1 && cfg!(target_arch = "x86_64") } {
            return run_lanes(level(), *self, Dot { sum, pairs });
        }
        lanes(|i| {
            let mut wide = u128::from(sum[i]); // a product is below 2^111
            for (a, b) in pairs {
                wide += u128::from(a[i]) * u128::from(b[i]);
            }
            self.moduli[i].fold_wide(wide)
        })
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
        lanes(|i| a[i] + b[i])
    }

    #[inline(always)]
    fn fold(&self, a: [u64; L]) -> [u64; L] {
        lanes(|i| (a[i] & ((1 << BITS) - 1)) + (a[i] >> BITS) * u64::from(self.excess[i]))
    }

    #[inline(always)]
    fn mul(&self, a: [u64; L], b: [u64; L]) -> [u64; L] {
        lanes(|i| self.moduli[i].mul(a[i], b[i]))
    }

    fn complement(&self, a: [u64; L]) -> [u64; L] {
        // Twice a multiple of the modulus exceeds every folded number.
        self.fold(lanes(|i| 1 + 2 * ((1 << BITS) - u64::from(self.excess[i])) - a[i]))
    }

    #[inline]
    fn dot(&self, pairs: impl Iterator<Item = (Self::Element, Self::Element)>) -> Self::Element {
        let (mut sum, mut held, mut count) = ([0; L], [MaybeUninit::uninit(); PRODUCTS], 0);
        for pair in pairs {
            held[count].write(pair);
            count += 1;
            if count == PRODUCTS {
                // SAFETY: all are written.
                sum = self.add_products(sum, unsafe { std::slice::from_raw_parts(held.as_ptr().cast(), count) });
                count = 0;
            }
        }
        // SAFETY: so many are written.
        self.add_products(sum, unsafe { std::slice::from_raw_parts(held.as_ptr().cast(), count) })
    }

    #[inline]
    fn dispatch<K: Kernel<[u64; L]>>(&self, level: Level, kernel: K) -> K::Output {
        run_lanes(level, *self, kernel)
    }
}

/// A folded element plus products of at most [`PRODUCTS`] pairs of them, folded.
struct Dot<'a, E> {
    sum: E,
    pairs: &'a [(E, E)],
}

impl<E: Copy> Kernel<E> for Dot<'_, E> {
    type Output = E;

    #[inline(always)]
    fn run<A: Products<Element = E>>(mut self, a: A) -> E {
        let mut products = a.no_products();
        for (x, y) in self.pairs {
            products = a.add_product(products, a.split(a.read(x)), a.split(a.read(y)));
        }
        let sum = a.add(a.read(&self.sum), a.total(products));
        a.write(&mut self.sum, a.fold(sum));
        self.sum
    }
}

/// Double precision. With non-negative elements each operation has relative error at most 2^-53.
#[derive(Clone, Copy, Debug, Default)]
pub struct F64;

impl Ring for F64 {
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
    fn mul(&self, a: f64, b: f64) -> f64 {
        a * b
    }

    fn complement(&self, a: f64) -> f64 {
        1.0 - a
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

    /// Sums of products as every level takes them.
    fn dots<const L: usize>(moduli: [Modulus; L], pairs: &[(u64, u64)]) {
        let ring = Lanes::new(moduli);
        let pairs: Vec<([u64; L], [u64; L])> =
            pairs.iter().map(|&(a, b)| (ring.fold([a; L]), ring.fold([b; L]))).collect();
        let residues = |x: [u64; L]| lanes::<L>(|i| x[i] % moduli[i].value());
        let expected = lanes::<L>(|i| {
            let m = u128::from(moduli[i].value());
            let product = |&(a, b): &([u64; L], [u64; L])| u128::from(a[i]) * u128::from(b[i]) % m;
            (pairs.iter().map(product).sum::<u128>() % m) as u64
        });
        assert_eq!(residues(ring.dot(pairs.iter().copied())), expected);
        for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
            let kernel = |sum, pairs| ring.dispatch(level, Dot { sum, pairs });
            let found = pairs.chunks(PRODUCTS).fold([0; L], kernel);
            assert!(ring.fold(found) == found || found[0] < (1 << BITS) + (1 << 41), "not folded");
            assert_eq!(residues(found), expected, "{level:?}, {L} lanes, {} products", pairs.len());
        }
    }

    #[test]
    fn products_by_halves_are_those_by_wide_words() {
        let all: Vec<Modulus> =
            primes(6).unwrap().into_iter().chain([3, (1 << 32) - 1].map(|m| Modulus::new(m).unwrap())).collect();
        let mut word = 1u64;
        let mut next = || {
            word = word.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            [word, word >> 9, u64::MAX, (1 << 55) - 1, 1 << 28, 0][(word >> 60) as usize % 6]
        };
        for count in [0, 1, 2, 63, 64, 65, 200] {
            let random: Vec<(u64, u64)> = (0..count).map(|_| (next(), next())).collect();
            for pairs in [random, vec![(u64::MAX, u64::MAX); count]] {
                dots::<8>(std::array::from_fn(|i| all[i]), &pairs);
                dots::<4>(std::array::from_fn(|i| all[i + 4]), &pairs);
                dots::<2>(std::array::from_fn(|i| all[i + 6]), &pairs);
                dots::<1>([all[7]], &pairs);
            }
        }
    }
}
