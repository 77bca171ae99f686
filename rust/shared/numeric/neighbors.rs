//! Residues of neighboring states modulo one prime, a whole register of them at a time.
//!
//! Where states are many, one prime at a time needs the least memory and fills registers of any width. The primes are
//! `p = 2^52 - e` with `e < 2^20`, the size of the products that AVX-512 IFMA multiplies:
//!
//!   fold(x) = (x mod 2^52) + e floor(x / 2^52)  is congruent to x and below 2^52 + 2^32,
//!
//! so 4095 folded numbers can be added before the next fold. A product of two numbers below 2^52 is kept as its low and its
//! high 52 bits, each summed on its own, 4096 products at most. All levels compute the same residues.
//!
//! Source: A. Menezes, P. van Oorschot, S. Vanstone (1996), Handbook of Applied Cryptography, algorithm 14.47 (moduli b^t - c),
//! stopped before its last step.

use super::dispatch::{Arithmetic, EVERY_LEVEL, Level};
use super::residue::{Modulus, SHORT_BITS};

/// How many products may be summed before [`Neighbors::reduce`]: halves are below 2^52, and 2^12 of them fit a word.
pub const PRODUCTS: usize = 4096;
/// The same of factors, before [`Neighbors::take`].
pub const FACTORS: usize = 1024;
/// Rows and columns of a tile: words of the widest register.
pub const TILE: usize = 8;
/// Words of a tile.
pub const TILE_WORDS: usize = TILE * TILE;

/// The lower half of a sum.
const MASK: u64 = (1 << SHORT_BITS) - 1;

/// A prime `2^52 - e`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortPrime {
    modulus: Modulus,
    excess: u64,
}

impl ShortPrime {
    /// The prime, if it is of this form.
    pub fn new(modulus: Modulus) -> Option<Self> {
        let excess = (1u64 << SHORT_BITS).checked_sub(modulus.value()).filter(|e| (1..1 << 20).contains(e))?;
        Some(Self { modulus, excess })
    }

    /// The same as any modulus.
    pub fn modulus(self) -> Modulus {
        self.modulus
    }

    /// The prime.
    pub fn value(self) -> u64 {
        self.modulus.value()
    }

    /// A number below `2^52 + 2^32` congruent to `x`.
    #[inline(always)]
    pub fn fold(self, x: u64) -> u64 {
        (x & MASK) + (x >> SHORT_BITS) * self.excess
    }

    /// The residue of `low + 2^52 high`.
    #[inline(always)]
    fn reduce(self, low: u64, high: u64) -> u64 {
        let wide = u128::from(low) + u128::from(self.canonical(self.fold(high))) * u128::from(self.excess);
        self.reduce_wide(wide)
    }

    /// A folded number congruent to a number below `2^115`.
    #[inline(always)]
    fn reduce_wide(self, mut x: u128) -> u64 {
        let (mask, excess) = (u128::from(MASK), u128::from(self.excess));
        x = (x & mask) + (x >> SHORT_BITS) * excess; // below 2^84
        x = (x & mask) + (x >> SHORT_BITS) * excess; // below 2^53
        self.fold(x as u64)
    }

    /// The product of two numbers below the prime.
    #[inline(always)]
    pub fn mul(self, a: u64, b: u64) -> u64 {
        self.canonical(self.reduce_wide(u128::from(a) * u128::from(b)))
    }

    /// The residue of a folded number.
    #[inline(always)]
    pub fn canonical(self, x: u64) -> u64 {
        if x >= self.value() { x - self.value() } else { x }
    }
}

/// Additions, folds and products on registers of neighboring words, and what is done to tiles of 8 x 8 words.
///
/// Loads and stores move [`Self::LANES`] words from the one pointed at on.
pub trait Neighbors: Arithmetic<Element = u64> {
    /// Words of a register.
    const LANES: usize;

    /// Runs a kernel as a function of its own, compiled for these registers.
    fn enter<K: NeighborKernel>(self, kernel: K) -> K::Output;
    /// The same for another prime.
    fn modulo(self, prime: ShortPrime) -> Self;
    /// A word in every lane.
    fn splat(self, x: u64) -> Self::Register;
    /// Folded numbers taken below the prime.
    fn canonical(self, x: Self::Register) -> Self::Register;
    /// `p - x` in the lanes whose bits are set, for numbers below the prime; zero may become `p`.
    fn negate(self, x: Self::Register, lanes: u8) -> Self::Register;
    /// Zeros in the lanes whose bits are set.
    fn clear(self, x: Self::Register, lanes: u8) -> Self::Register;
    /// Adds the low and the high halves of products of numbers up to `2^52 - 1`.
    fn multiply_add(self, sum: [Self::Register; 2], a: Self::Register, b: Self::Register) -> [Self::Register; 2];
    /// Folded numbers congruent to `low + 2^52 high`.
    fn reduce(self, sum: [Self::Register; 2]) -> Self::Register;
    /// Residues made ready for [`Self::add_factors`].
    #[inline(always)]
    fn factor(self, x: Self::Register) -> Self::Register {
        x
    }
    /// Adds the products of factors to a sum, at first two zeros, in the form that [`Self::take`] understands.
    #[inline(always)]
    fn add_factors(self, sum: [Self::Register; 2], a: Self::Register, b: Self::Register) -> [Self::Register; 2] {
        self.multiply_add(sum, a, b)
    }
    /// The products of factors, factors themselves.
    #[inline(always)]
    fn multiply_factors(self, a: Self::Register, b: Self::Register) -> Self::Register {
        self.canonical(self.reduce(self.multiply_add([self.zero(); 2], a, b)))
    }
    /// The residues of numbers up to 2^62 from which the sum of so many products of factors is taken, at most [`FACTORS`].
    #[inline(always)]
    fn take(self, from: Self::Register, sum: [Self::Register; 2], _count: usize) -> Self::Register {
        let minus = self.negate(self.canonical(self.reduce(sum)), u8::MAX);
        self.canonical(self.fold(self.add(from, minus)))
    }
    /// The whole parts of `2^-20 + sum of x_i y_i` in double precision.
    fn whole(self, x: &[Self::Register], y: &[f64]) -> Self::Register;
    /// Whether any lane differs.
    fn differ(self, a: Self::Register, b: Self::Register) -> bool;
    /// Asks for the cache line of a word.
    #[inline(always)]
    fn prefetch(self, _: *const u64) {}

    /// Writes the transpose of 8 rows of 8 words, `strides` words apart.
    ///
    /// # Safety
    /// The rows can be read and written, and do not overlap unless they are the same.
    #[inline(always)]
    unsafe fn transpose(self, from: *const u64, to: *mut u64, strides: [usize; 2]) {
        let mut tile = [0; TILE_WORDS];
        for (k, x) in tile.iter_mut().enumerate() {
            // SAFETY: the caller's.
            *x = unsafe { *from.add(k / TILE * strides[0] + k % TILE) };
        }
        for k in 0..TILE_WORDS {
            // SAFETY: the caller's.
            unsafe { *to.add(k / TILE * strides[1] + k % TILE) = tile[k % TILE * TILE + k / TILE] };
        }
    }

    /// Writes the tile `sum over d < count of left[d] right[d]^T`, `left` and `right` being 8 words below the prime for each d.
    ///
    /// # Safety
    /// There are as many words, and the tile can be written; `count` is at most [`PRODUCTS`].
    unsafe fn outer_products(self, left: *const u64, right: *const u64, count: usize, tile: *mut u64);
}

/// Work that is compiled once per level. Everything in `run` must be `#[inline(always)]`, or called by [`Neighbors::enter`].
pub trait NeighborKernel {
    /// What comes of it.
    type Output;
    /// Does the work.
    fn run<A: Neighbors>(self, a: A) -> Self::Output;
}

/// Runs a kernel modulo a prime at a level, or at the best level of the machine if that is lower.
#[inline]
pub fn run<K: NeighborKernel>(level: Level, prime: ShortPrime, kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    if const { EVERY_LEVEL } {
        // SAFETY: the machine has what the level says, and what is asked for here.
        unsafe {
            match level.min(Level::best()) {
                Level::Avx512 if is_x86_feature_detected!("avx512ifma") => {
                    return x86::NeighborZmm::new(prime).enter(kernel);
                }
                Level::Avx512 | Level::Avx2 => {
                    return x86::NeighborYmm::new(prime).enter(kernel);
                }
                Level::Baseline => {}
            }
        }
    }
    let _ = level;
    Pairs { prime }.enter(kernel)
}

/// Whether products are as fast as additions at this level.
pub fn multiplies_fast(level: Level) -> bool {
    #[cfg(target_arch = "x86_64")]
    if EVERY_LEVEL && level.min(Level::best()) == Level::Avx512 {
        return is_x86_feature_detected!("avx512ifma");
    }
    let _ = level;
    false
}

/// Whether there are instructions for sums of products of factors at this level.
pub fn multiplies_factors(level: Level) -> bool {
    EVERY_LEVEL && level.min(Level::best()) >= Level::Avx2
}

/// Operations on a register by way of its words, where there are no instructions for them: `Self::words`, and back `Self::register`.
macro_rules! word_by_word {
    ($register:ty) => {
        #[inline(always)]
        fn negate(self, x: $register, lanes: u8) -> $register {
            let (x, prime) = (Self::words(x), self.prime.value());
            Self::register(std::array::from_fn(|i| if lanes >> i & 1 == 1 { prime - x[i] } else { x[i] }))
        }

        #[inline(always)]
        fn clear(self, x: $register, lanes: u8) -> $register {
            let x = Self::words(x);
            Self::register(std::array::from_fn(|i| if lanes >> i & 1 == 1 { 0 } else { x[i] }))
        }

        #[inline(always)]
        fn multiply_add(self, sum: [$register; 2], a: $register, b: $register) -> [$register; 2] {
            let ([low, high], a, b) = (sum.map(Self::words), Self::words(a), Self::words(b));
            let product = |i: usize| u128::from(a[i]) * u128::from(b[i]);
            [
                Self::register(std::array::from_fn(|i| low[i] + (product(i) as u64 & MASK))),
                Self::register(std::array::from_fn(|i| high[i] + (product(i) >> SHORT_BITS) as u64)),
            ]
        }

        #[inline(always)]
        fn reduce(self, sum: [$register; 2]) -> $register {
            let [low, high] = sum.map(Self::words);
            Self::register(std::array::from_fn(|i| self.prime.reduce(low[i], high[i])))
        }

        #[inline(always)]
        fn whole(self, x: &[$register], y: &[f64]) -> $register {
            let sum = |i: usize| {
                let words = x.iter().map(|x| Self::words(*x)[i]);
                words.zip(y).fold(2f64.powi(-20), |sum, (x, y)| sum + x as f64 * y)
            };
            Self::register(std::array::from_fn(|i| sum(i) as u64))
        }

        #[inline(always)]
        fn differ(self, a: $register, b: $register) -> bool {
            Self::words(a) != Self::words(b)
        }

        #[inline(always)]
        unsafe fn outer_products(self, left: *const u64, right: *const u64, count: usize, tile: *mut u64) {
            // SAFETY: the caller's.
            unsafe { outer_products(self.prime, left, right, count, tile) }
        }
    };
}

/// Pairs of words, for machines of which no more is known: the compiler finds their registers.
#[derive(Clone, Copy, Debug)]
struct Pairs {
    prime: ShortPrime,
}

impl Pairs {
    #[inline(always)]
    fn words(x: [u64; 2]) -> [u64; 2] {
        x
    }

    #[inline(always)]
    fn register(x: [u64; 2]) -> [u64; 2] {
        x
    }
}

impl Arithmetic for Pairs {
    type Element = u64;
    type Register = [u64; 2];
    const HELD: usize = 15;

    #[inline(always)]
    fn zero(self) -> [u64; 2] {
        [0; 2]
    }

    #[inline(always)]
    unsafe fn load(self, from: *const u64) -> [u64; 2] {
        // SAFETY: the caller's.
        unsafe { from.cast::<[u64; 2]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u64, x: [u64; 2]) {
        // SAFETY: the caller's.
        unsafe { to.cast::<[u64; 2]>().write_unaligned(x) }
    }

    #[inline(always)]
    fn add(self, a: [u64; 2], b: [u64; 2]) -> [u64; 2] {
        [a[0] + b[0], a[1] + b[1]]
    }

    #[inline(always)]
    fn fold(self, a: [u64; 2]) -> [u64; 2] {
        a.map(|x| self.prime.fold(x))
    }
}

impl Neighbors for Pairs {
    const LANES: usize = 2;

    #[inline(never)]
    fn enter<K: NeighborKernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }

    #[inline(always)]
    fn modulo(self, prime: ShortPrime) -> Self {
        Self { prime }
    }

    #[inline(always)]
    fn splat(self, x: u64) -> [u64; 2] {
        [x; 2]
    }

    #[inline(always)]
    fn canonical(self, x: [u64; 2]) -> [u64; 2] {
        x.map(|x| self.prime.canonical(x))
    }

    word_by_word!([u64; 2]);
}

/// [`Neighbors::outer_products`], a word at a time.
#[inline(always)]
unsafe fn outer_products(prime: ShortPrime, left: *const u64, right: *const u64, count: usize, tile: *mut u64) {
    for i in 0..TILE {
        let mut sums = [0u128; TILE];
        for d in 0..count {
            // SAFETY: the caller's.
            unsafe {
                let x = u128::from(*left.add(d * TILE + i));
                for (j, sum) in sums.iter_mut().enumerate() {
                    *sum += x * u128::from(*right.add(d * TILE + j));
                }
            }
        }
        for (j, sum) in sums.into_iter().enumerate() {
            // Below 2^116: the high half is folded first.
            let (low, high) = (sum as u64 & MASK, (sum >> SHORT_BITS) as u64);
            // SAFETY: the caller's.
            unsafe { *tile.add(i * TILE + j) = prime.reduce(low, high) };
        }
    }
}

/// Registers of x86-64.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Arithmetic, MASK, NeighborKernel, Neighbors, SHORT_BITS, ShortPrime, TILE, outer_products};
    use crate::numeric::dispatch::compiled::{avx2, avx512_ifma};
    use std::arch::x86_64::*;

    const SHIFT: u32 = SHORT_BITS;

    /// What registers of any width have alike, of which so many are held.
    macro_rules! arithmetic_registers {
        ($register:ty, $held:literal: $zero:ident, $load:ident, $store:ident, $add:ident) => {
            type Element = u64;
            type Register = $register;
            const HELD: usize = $held;

            #[inline(always)]
            fn zero(self) -> $register {
                // SAFETY: a value of this type exists only where the instructions do; so below.
                unsafe { $zero() }
            }

            #[inline(always)]
            unsafe fn load(self, from: *const u64) -> $register {
                // SAFETY: the caller's.
                unsafe { $load(from.cast()) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut u64, x: $register) {
                // SAFETY: the caller's.
                unsafe { $store(to.cast(), x) }
            }

            #[inline(always)]
            fn add(self, a: $register, b: $register) -> $register {
                // SAFETY: as in `zero`.
                unsafe { $add(a, b) }
            }
        };
    }

    /// The same for [`Neighbors`]: so many words, and the function that is compiled for them.
    macro_rules! neighbor_registers {
        ($lanes:literal, $compiled:ident) => {
            const LANES: usize = $lanes;

            #[inline(always)]
            fn enter<K: NeighborKernel>(self, kernel: K) -> K::Output {
                // SAFETY: as in `zero`.
                unsafe {
                    $compiled(
                        #[inline(always)]
                        || kernel.run(self),
                    )
                }
            }

            #[inline(always)]
            fn modulo(self, prime: ShortPrime) -> Self {
                // SAFETY: as in `zero`.
                unsafe { Self::new(prime) }
            }

            #[inline(always)]
            fn prefetch(self, at: *const u64) {
                // SAFETY: a hint about any address.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
            }
        };
    }

    /// What the high halves of products of factors are added to, 3 2^102, so that they end at the bit 2^51.
    const HIGH: f64 = 3.0 * ((1u128 << 102) as f64);
    /// What their low halves are added to, 3 2^51, so that they end at the bit 1.
    const LOW: f64 = 3.0 * ((1u64 << 51) as f64);

    /// Four words, AVX2 with fused products of doubles.
    ///
    /// Factors are residues between -p/2 and p/2 in double precision. Of a product, below 2^102 in size, two fused operations give
    /// the halves h 2^51 + l without error, h and l being the lower bits of what is rounded once:
    ///
    ///   H = a b + 3 2^102 = 3 2^102 + h 2^51,    L = a b + (3 2^102 + 3 2^51 - H) = 3 2^51 + l,    |h| <= 2^51, |l| <= 2^50.
    ///
    /// H and L are summed as words; what they were added to is taken off at the end.
    ///
    /// Source: N. Emmart, F. Zheng, C. Weems (2018), Faster modular exponentiation using double precision floating point
    /// arithmetic on the GPU, ARITH 25; here rounded to nearest, of numbers of either sign.
    #[derive(Clone, Copy)]
    pub struct NeighborYmm {
        prime: ShortPrime,
        excess: __m256i,
        mask: __m256i,
    }

    impl NeighborYmm {
        /// # Safety
        /// The machine has AVX2 and FMA.
        #[inline(always)]
        pub unsafe fn new(prime: ShortPrime) -> Self {
            // SAFETY: the caller's.
            unsafe {
                Self { prime, excess: _mm256_set1_epi64x(prime.excess as i64), mask: _mm256_set1_epi64x(MASK as i64) }
            }
        }

        #[inline(always)]
        fn words(x: __m256i) -> [u64; 4] {
            // SAFETY: both are 32 bytes without invalid patterns.
            unsafe { std::mem::transmute(x) }
        }

        #[inline(always)]
        fn register(x: [u64; 4]) -> __m256i {
            // SAFETY: as above.
            unsafe { std::mem::transmute(x) }
        }
    }

    impl Arithmetic for NeighborYmm {
        arithmetic_registers!(__m256i, 15: _mm256_setzero_si256, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_add_epi64);

        #[inline(always)]
        fn fold(self, a: __m256i) -> __m256i {
            // SAFETY: as in `zero`.
            unsafe {
                let high = _mm256_mul_epu32(_mm256_srli_epi64::<{ SHIFT as i32 }>(a), self.excess);
                _mm256_add_epi64(_mm256_and_si256(a, self.mask), high)
            }
        }
    }

    impl Neighbors for NeighborYmm {
        neighbor_registers!(4, avx2);

        #[inline(always)]
        fn splat(self, x: u64) -> __m256i {
            Self::register([x; 4])
        }

        #[inline(always)]
        fn canonical(self, x: __m256i) -> __m256i {
            // SAFETY: as in `zero`; both are below 2^63.
            unsafe {
                let prime = self.splat(self.prime.value());
                let below = _mm256_cmpgt_epi64(prime, x);
                _mm256_sub_epi64(x, _mm256_andnot_si256(below, prime))
            }
        }

        #[inline(always)]
        fn factor(self, x: __m256i) -> __m256i {
            // SAFETY: as in `zero`; a word below 2^52 is the fraction of a double from 2^52 on.
            unsafe {
                let (bit, prime) = ((1u64 << SHIFT) as f64, self.prime.value() as f64);
                let word = _mm256_castsi256_pd(_mm256_or_si256(x, self.splat(bit.to_bits())));
                let x = _mm256_sub_pd(word, _mm256_set1_pd(bit));
                let over = _mm256_cmp_pd::<_CMP_GT_OQ>(x, _mm256_set1_pd(prime / 2.0));
                _mm256_castpd_si256(_mm256_sub_pd(x, _mm256_and_pd(over, _mm256_set1_pd(prime))))
            }
        }

        #[inline(always)]
        fn add_factors(self, [low, high]: [__m256i; 2], a: __m256i, b: __m256i) -> [__m256i; 2] {
            // SAFETY: as in `zero`.
            unsafe {
                let (a, b) = (_mm256_castsi256_pd(a), _mm256_castsi256_pd(b));
                let h = _mm256_fmadd_pd(a, b, _mm256_set1_pd(HIGH));
                let l = _mm256_fmadd_pd(a, b, _mm256_sub_pd(_mm256_set1_pd(HIGH + LOW), h));
                [_mm256_add_epi64(low, _mm256_castpd_si256(l)), _mm256_add_epi64(high, _mm256_castpd_si256(h))]
            }
        }

        /// The product is x + y with x rounded, and as many primes are taken off as its quotient rounded says: what is left is below
        /// 0.8 p in size. Then once more, for that quotient was wrong by 1/4; now what is left is at most (p + 1)/2.
        #[inline(always)]
        fn multiply_factors(self, a: __m256i, b: __m256i) -> __m256i {
            const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
            // SAFETY: as in `zero`.
            unsafe {
                let (a, b) = (_mm256_castsi256_pd(a), _mm256_castsi256_pd(b));
                let (prime, inverse) = (self.prime.value() as f64, 1.0 / self.prime.value() as f64);
                let (prime, inverse) = (_mm256_set1_pd(prime), _mm256_set1_pd(inverse));
                let x = _mm256_mul_pd(a, b);
                let y = _mm256_fmsub_pd(a, b, x);
                let quotient = _mm256_round_pd::<NEAREST>(_mm256_mul_pd(x, inverse));
                let rest = _mm256_add_pd(_mm256_fnmadd_pd(quotient, prime, x), y);
                let quotient = _mm256_round_pd::<NEAREST>(_mm256_mul_pd(rest, inverse));
                _mm256_castpd_si256(_mm256_fnmadd_pd(quotient, prime, rest))
            }
        }

        /// With H and L the sums of h and l, at most 2^61 in size, and c = 2^10 p: x + c - L + 2^51 (c - H), where both differences
        /// are positive and below 2^63. Of the second, 2 m + o, comes 2^51 o + e m, and of m by its halves 2^32 g + l,
        ///
        ///   e m = e l + 2^32 (e g mod 2^20) + 2^52 floor(e g / 2^20).
        #[inline(always)]
        fn take(self, from: __m256i, [low, high]: [__m256i; 2], count: usize) -> __m256i {
            let multiple = self.prime.value() << 10;
            let [low_offset, high_offset] = [LOW, HIGH]
                .map(|added: f64| self.splat(multiple.wrapping_add(added.to_bits().wrapping_mul(count as u64))));
            // SAFETY: as in `zero`.
            unsafe {
                let sum = _mm256_add_epi64(from, _mm256_sub_epi64(low_offset, low));
                let high = _mm256_sub_epi64(high_offset, high);
                let half = _mm256_srli_epi64::<1>(high);
                let odd = _mm256_srli_epi64::<12>(_mm256_slli_epi64::<63>(high));
                let near = _mm256_mul_epu32(half, self.excess);
                let far = _mm256_mul_epu32(_mm256_srli_epi64::<32>(half), self.excess); // below 2^50
                let middle = _mm256_srli_epi64::<12>(_mm256_slli_epi64::<44>(far));
                let sum = _mm256_add_epi64(_mm256_add_epi64(sum, odd), _mm256_add_epi64(near, middle));
                let over = _mm256_add_epi64(_mm256_srli_epi64::<{ SHIFT as i32 }>(sum), _mm256_srli_epi64::<20>(far));
                let rest = _mm256_and_si256(sum, self.mask);
                self.canonical(_mm256_add_epi64(rest, _mm256_mul_epu32(over, self.excess))) // below 2^52 + 2^51
            }
        }

        word_by_word!(__m256i);
    }

    /// Eight words, AVX-512 with products of 52 bits.
    #[derive(Clone, Copy)]
    pub struct NeighborZmm {
        excess: __m512i,
        mask: __m512i,
        prime: __m512i,
    }

    impl NeighborZmm {
        /// # Safety
        /// The machine has AVX-512 F, DQ, BW, VL and IFMA.
        #[inline(always)]
        pub unsafe fn new(prime: ShortPrime) -> Self {
            // SAFETY: the caller's.
            unsafe {
                Self {
                    excess: _mm512_set1_epi64(prime.excess as i64),
                    mask: _mm512_set1_epi64(MASK as i64),
                    prime: _mm512_set1_epi64(prime.value() as i64),
                }
            }
        }
    }

    impl Arithmetic for NeighborZmm {
        arithmetic_registers!(__m512i, 31: _mm512_setzero_si512, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_add_epi64);

        #[inline(always)]
        fn fold(self, a: __m512i) -> __m512i {
            // SAFETY: as in `zero`.
            unsafe {
                let high = _mm512_srli_epi64::<SHIFT>(a);
                _mm512_madd52lo_epu64(_mm512_and_si512(a, self.mask), high, self.excess)
            }
        }
    }

    impl Neighbors for NeighborZmm {
        neighbor_registers!(8, avx512_ifma);

        #[inline(always)]
        fn splat(self, x: u64) -> __m512i {
            // SAFETY: as in `zero`.
            unsafe { _mm512_set1_epi64(x as i64) }
        }

        #[inline(always)]
        fn canonical(self, x: __m512i) -> __m512i {
            // SAFETY: as in `zero`. A number below the prime wraps around to a huge one.
            unsafe { _mm512_min_epu64(x, _mm512_sub_epi64(x, self.prime)) }
        }

        #[inline(always)]
        fn negate(self, x: __m512i, lanes: u8) -> __m512i {
            // SAFETY: as in `zero`.
            unsafe { _mm512_mask_sub_epi64(x, lanes, self.prime, x) }
        }

        #[inline(always)]
        fn clear(self, x: __m512i, lanes: u8) -> __m512i {
            // SAFETY: as in `zero`.
            unsafe { _mm512_mask_mov_epi64(x, lanes, self.zero()) }
        }

        #[inline(always)]
        fn multiply_add(self, [low, high]: [__m512i; 2], a: __m512i, b: __m512i) -> [__m512i; 2] {
            // SAFETY: as in `zero`.
            unsafe { [_mm512_madd52lo_epu64(low, a, b), _mm512_madd52hi_epu64(high, a, b)] }
        }

        #[inline(always)]
        fn reduce(self, [low, high]: [__m512i; 2]) -> __m512i {
            // SAFETY: as in `zero`. With h the high half below p, h e = g 2^52 + l and g < 2^20.
            unsafe {
                let high = self.canonical(self.fold(high));
                let low = _mm512_madd52lo_epu64(self.fold(low), high, self.excess);
                let rest = _mm512_madd52hi_epu64(_mm512_setzero_si512(), high, self.excess);
                self.fold(_mm512_madd52lo_epu64(low, rest, self.excess))
            }
        }

        #[inline(always)]
        fn whole(self, x: &[__m512i], y: &[f64]) -> __m512i {
            // SAFETY: as in `zero`.
            unsafe {
                let mut sum = _mm512_set1_pd(2f64.powi(-20));
                for (x, y) in x.iter().zip(y) {
                    sum = _mm512_fmadd_pd(_mm512_cvtepu64_pd(*x), _mm512_set1_pd(*y), sum);
                }
                _mm512_cvttpd_epu64(sum)
            }
        }

        #[inline(always)]
        fn differ(self, a: __m512i, b: __m512i) -> bool {
            // SAFETY: as in `zero`.
            unsafe { _mm512_cmpneq_epu64_mask(a, b) != 0 }
        }

        #[inline(always)]
        unsafe fn transpose(self, from: *const u64, to: *mut u64, [from_stride, to_stride]: [usize; 2]) {
            // SAFETY: the caller's.
            unsafe {
                let row = |i: usize| self.load(from.add(i * from_stride));
                let mut t = [self.zero(); TILE];
                let mut u = [self.zero(); TILE];
                for i in [0, 2, 4, 6] {
                    let (a, b) = (row(i), row(i + 1));
                    t[i] = _mm512_unpacklo_epi64(a, b);
                    t[i + 1] = _mm512_unpackhi_epi64(a, b);
                }
                let even = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
                let odd = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
                for h in [0, 4] {
                    for j in [0, 1] {
                        u[h + j] = _mm512_permutex2var_epi64(t[h + j], even, t[h + 2 + j]);
                        u[h + 2 + j] = _mm512_permutex2var_epi64(t[h + j], odd, t[h + 2 + j]);
                    }
                }
                for j in 0..4 {
                    self.store(to.add(j * to_stride), _mm512_shuffle_i64x2::<0x44>(u[j], u[4 + j]));
                    self.store(to.add((4 + j) * to_stride), _mm512_shuffle_i64x2::<0xee>(u[j], u[4 + j]));
                }
            }
        }

        #[inline(always)]
        unsafe fn outer_products(self, left: *const u64, right: *const u64, count: usize, tile: *mut u64) {
            let mut sums = [[self.zero(); 2]; TILE];
            // SAFETY: the caller's.
            unsafe {
                for d in 0..count {
                    let y = self.load(right.add(d * TILE));
                    for (i, sum) in sums.iter_mut().enumerate() {
                        *sum = self.multiply_add(*sum, self.splat(*left.add(d * TILE + i)), y);
                    }
                }
                for (i, sum) in sums.into_iter().enumerate() {
                    self.store(tile.add(i * TILE), self.reduce(sum));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::residue::short_primes;
    use proptest::prelude::*;

    const LEVELS: [Level; 3] = [Level::Baseline, Level::Avx2, Level::Avx512];

    /// Every operation on eight words, as residues.
    struct All<'a> {
        prime: ShortPrime,
        words: &'a [u64; 24],
        lanes: u8,
    }

    impl NeighborKernel for All<'_> {
        type Output = Vec<u64>;

        fn run<A: Neighbors>(self, a: A) -> Vec<u64> {
            let mut results = vec![0; 6 * TILE];
            for j in (0..TILE).step_by(A::LANES) {
                // SAFETY: eight words follow each start.
                unsafe {
                    let at = |k: usize| self.words.as_ptr().add(k * TILE + j);
                    let [x, y, z] = [0, 1, 2].map(|k| a.load(at(k)));
                    let [low_x, low_y] = [x, y].map(|x| a.canonical(a.fold(x)));
                    let product = a.multiply_add([z, y], low_x, low_y);
                    let negated = a.negate(low_x, self.lanes >> j);
                    let quotient = a.whole(&[low_x, low_y], &[2f64.powi(-52), 2f64.powi(-52)]);
                    let cleared = a.clear(low_x, self.lanes >> j);
                    let values = [a.fold(x), low_x, a.reduce(product), negated, quotient, cleared];
                    for (k, value) in values.into_iter().enumerate() {
                        a.store(results.as_mut_ptr().add(k * TILE + j), value);
                    }
                }
            }
            results.iter().map(|x| x % self.prime.value()).collect()
        }
    }

    /// The tile of outer products, and its transpose.
    struct OuterProducts<'a>(&'a [u64], usize);

    impl NeighborKernel for OuterProducts<'_> {
        type Output = [Vec<u64>; 2];

        fn run<A: Neighbors>(self, a: A) -> [Vec<u64>; 2] {
            let Self(words, count) = self;
            let mut tiles = [vec![0; TILE_WORDS], vec![0; TILE_WORDS]];
            // SAFETY: there are twice `count` times eight words.
            unsafe {
                a.outer_products(words.as_ptr(), words.as_ptr().add(count * TILE), count, tiles[0].as_mut_ptr());
                a.transpose(tiles[0].as_ptr(), tiles[1].as_mut_ptr(), [TILE, TILE]);
            }
            tiles
        }
    }

    /// What is left of words from which the products of factors are taken, then the products of the last factors.
    struct Taken<'a>(&'a [u64], usize);

    impl NeighborKernel for Taken<'_> {
        type Output = [Vec<u64>; 2];

        fn run<A: Neighbors>(self, a: A) -> [Vec<u64>; 2] {
            let Self(words, count) = self;
            let mut results = [vec![0; TILE], vec![0; TILE]];
            for j in (0..TILE).step_by(A::LANES) {
                // SAFETY: there are `2 count + 1` times eight words.
                unsafe {
                    let at = |k: usize| words.as_ptr().add(k * TILE + j);
                    let (mut sum, mut product) = ([a.zero(); 2], a.zero());
                    for d in 0..count {
                        let [x, y] = [2 * d + 1, 2 * d + 2].map(|k| a.factor(a.load(at(k))));
                        sum = a.add_factors(sum, x, y);
                        product = a.multiply_factors(x, y);
                    }
                    // A product is a factor: one is taken from zero.
                    let one = a.add_factors([a.zero(); 2], product, a.factor(a.splat(1)));
                    a.store(results[0].as_mut_ptr().add(j), a.take(a.load(at(0)), sum, count));
                    a.store(results[1].as_mut_ptr().add(j), a.take(a.zero(), one, 1));
                }
            }
            results
        }
    }

    #[test]
    fn products_of_factors_are_taken_from_words() {
        for (number, seed) in [(0, 0), (40, 1), (5000, 2)] {
            let modulus = short_primes(number + 1).unwrap()[number];
            let (prime, p) = (ShortPrime::new(modulus).unwrap(), modulus.value());
            let edges = [0, 1, 2, p / 2 - 1, p / 2, p / 2 + 1, p / 2 + 2, p - 2, p - 1];
            let mut word: u64 = seed;
            let mut next = || {
                word = word.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                if word >> 62 == 0 { edges[(word >> 20) as usize % edges.len()] } else { (word >> 3) % p }
            };
            for count in (0..81).chain([FACTORS - 1, FACTORS]) {
                // All pairs of edges come once one by one; then as many at once of the same sign and size, which no sum exceeds.
                let mut words: Vec<u64> = (0..(2 * count + 1) * TILE).map(|_| next()).collect();
                let mut wanted = [vec![], vec![]];
                for i in 0..TILE {
                    words[i] = [0, p - 1, 1 << 62, (1 << 62) - 1][i % 4];
                    for d in 0..count {
                        let extreme = [p / 2, p / 2 + 1];
                        let (x, y) = match i {
                            0 => (edges[d % 9], edges[d / 9 % 9]),
                            1 => (extreme[0], extreme[0]),
                            2 => (extreme[0], extreme[1]),
                            3 => (extreme[1], extreme[1]),
                            _ => continue,
                        };
                        (words[(2 * d + 1) * TILE + i], words[(2 * d + 2) * TILE + i]) = (x, y);
                    }
                    let at = |k: usize| u128::from(words[k * TILE + i]);
                    let product = |d: usize| at(2 * d + 1) * at(2 * d + 2) % u128::from(p);
                    let sum = (0..count).map(product).sum::<u128>() % u128::from(p);
                    wanted[0].push(((at(0) + u128::from(p) - sum) % u128::from(p)) as u64);
                    let last = count.checked_sub(1).map_or(0, product);
                    wanted[1].push(((u128::from(p) - last) % u128::from(p)) as u64);
                }
                for level in LEVELS {
                    assert_eq!(run(level, prime, Taken(&words, count)), wanted, "{level:?} {p} {count}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn every_level_computes_residues_by_wide_arithmetic(
            words in prop::array::uniform24(any::<u64>().prop_map(|x| x >> (x & 7))), k in 0usize..40, lanes: u8,
        ) {
            let prime = ShortPrime::new(short_primes(k + 1).unwrap()[k]).unwrap();
            // Sums of 4096 products leave room for one more.
            let mut words = words;
            words[8..].iter_mut().for_each(|x| *x >>= 1);
            let p = u128::from(prime.value());
            let residue = |x: u64| u128::from(x) % p;
            let expected: Vec<u64> = (0..6).flat_map(|k| (0..TILE).map(move |i| (k, i))).map(|(k, i)| {
                let [x, y, z] = [words[i], words[8 + i], words[16 + i]];
                (match k {
                    0 | 1 => residue(x),
                    2 => (residue(x) * residue(y) % p + residue(z) + (1 << 52) % p * residue(y)) % p,
                    3 => if lanes >> i & 1 == 1 { (p - residue(x)) % p } else { residue(x) },
                    5 => if lanes >> i & 1 == 1 { 0 } else { residue(x) },
                    _ => ((residue(x) as f64 + residue(y) as f64) * 2f64.powi(-52) + 2f64.powi(-20)) as u128,
                }) as u64
            }).collect();
            for level in LEVELS {
                prop_assert_eq!(&run(level, prime, All { prime, words: &words, lanes }), &expected, "{:?}", level);
            }
        }

        #[test]
        fn outer_products_are_those_of_their_words(seed: u64, count in 1usize..90) {
            let prime = ShortPrime::new(short_primes(1).unwrap()[0]).unwrap();
            let mut word = seed;
            let words: Vec<u64> = (0..2 * count * TILE).map(|i| {
                word = word.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                if i % 7 == 0 { prime.value() - 1 } else { (word >> 3) % prime.value() }
            }).collect();
            let sum = |i: usize, j: usize| (0..count).fold(0, |sum, d| {
                (sum + u128::from(words[d * TILE + i]) * u128::from(words[(count + d) * TILE + j])) % u128::from(prime.value())
            }) as u64;
            for level in LEVELS {
                let [tile, turned] = run(level, prime, OuterProducts(&words, count));
                for (i, j) in (0..TILE).flat_map(|i| (0..TILE).map(move |j| (i, j))) {
                    prop_assert_eq!(tile[i * TILE + j] % prime.value(), sum(i, j));
                    prop_assert_eq!(turned[j * TILE + i], tile[i * TILE + j]);
                }
            }
        }
    }
}
