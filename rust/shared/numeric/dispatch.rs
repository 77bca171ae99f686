//! The widest vector unit there is, found once, and the way kernels reach it.
//!
//! A kernel over residues is additions and folds of whole vectors of lanes. It is written once as a [`Kernel`], against an
//! [`Arithmetic`] that keeps one element in registers, and [`Ring::dispatch`] runs it compiled for the level asked for. All
//! levels compute the same words. `QUINCUNX_SIMD=baseline|avx2|avx512|auto` lowers the level of a process.

use super::residue::BITS;
use super::ring::{Lanes, Ring};
use std::sync::LazyLock;

/// Whether kernels are compiled for every level. Development builds compile the baseline alone, in half of the time.
pub const EVERY_LEVEL: bool = cfg!(any(not(debug_assertions), feature = "every-level"));

/// A set of vector instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every machine of this architecture has.
    Baseline,
    /// 256-bit integers, and products contracted with sums.
    Avx2,
    /// 512-bit integers, and twice as many registers at any width.
    Avx512,
}

impl Level {
    /// The best level of this machine.
    pub fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("popcnt");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl");
            match (avx2, avx512) {
                (true, true) => return Self::Avx512,
                (true, false) => return Self::Avx2,
                _ => {}
            }
        }
        Self::Baseline
    }
}

/// What [`level`] says.
pub static LEVEL: LazyLock<Level> = LazyLock::new(|| {
    let asked = match std::env::var("QUINCUNX_SIMD").as_deref() {
        Ok("baseline") => Level::Baseline,
        Ok("avx2") => Level::Avx2,
        _ => Level::Avx512,
    };
    asked.min(Level::best())
});

/// The level of this process: the best there is, unless the environment asked for a lower one when first looked at.
pub fn level() -> Level {
    *LEVEL
}

/// Additions and folds on elements held in registers.
pub trait Arithmetic: Copy {
    /// An element in memory.
    type Element: Copy;
    /// An element in registers.
    type Register: Copy;
    /// How many elements can be held at once, one register left free.
    const HELD: usize;
    /// The empty sum.
    fn zero(self) -> Self::Register;
    /// Reads an element.
    ///
    /// # Safety
    /// The element can be read.
    unsafe fn load(self, from: *const Self::Element) -> Self::Register;
    /// Writes an element.
    ///
    /// # Safety
    /// The element can be written.
    unsafe fn store(self, to: *mut Self::Element, x: Self::Register);
    /// Reads an element that is borrowed.
    #[inline(always)]
    fn read(self, from: &Self::Element) -> Self::Register {
        // SAFETY: a reference can be read.
        unsafe { self.load(from) }
    }
    /// Writes an element that is borrowed.
    #[inline(always)]
    fn write(self, to: &mut Self::Element, x: Self::Register) {
        // SAFETY: a reference can be written.
        unsafe { self.store(to, x) }
    }
    /// The sum, not folded.
    fn add(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The same element, folded.
    fn fold(self, a: Self::Register) -> Self::Register;
}

/// Sums of products of elements held in registers.
///
/// Residues are multiplied by halves: with `x = x0 + 2^28 x1` and likewise y,
///
///   x y = x0 y0 + 2^28 ((x0 + x1)(y0 + y1) - x0 y0 - x1 y1) + 2^56 x1 y1
///
/// takes three products of 32-bit words, which every vector unit has (Karatsuba). A folded element has x0 < 2^28 and
/// x1 <= 2^27 + 2^13, so each product is below 2^57.2, and [`PRODUCTS`] of each kind fit a word.
pub trait Products: Arithmetic {
    /// A sum of products.
    type Sum: Copy;
    /// A folded element made ready for products: its halves in 32 bits each.
    fn split(self, x: Self::Register) -> Self::Register;
    /// The empty sum.
    fn no_products(self) -> Self::Sum;
    /// Adds the product of two elements that are split.
    fn add_product(self, sum: Self::Sum, a: Self::Register, b: Self::Register) -> Self::Sum;
    /// The sum of at most [`PRODUCTS`] products, folded.
    fn total(self, sum: Self::Sum) -> Self::Register;
}

/// How many products may be summed before [`Products::total`]: each is below 2^57.2, and 2^6 of them below 2^64.
pub const PRODUCTS: usize = 64;

/// Work that is compiled once per level. Everything in `run` must be `#[inline(always)]` to be compiled for the level.
pub trait Kernel<E> {
    /// What comes of it.
    type Output;
    /// Does the work.
    fn run<A: Products<Element = E>>(self, arithmetic: A) -> Self::Output;
}

/// `at_level!(level, work)` does work compiled for a level, or for the best level of the machine if that is lower: the compiler
/// finds the vectors. What it calls is `#[inline(always)]`, else it is compiled for the baseline; slices that an inner loop writes
/// are best the arguments of such a function, for then the compiler knows them apart.
///
/// `at_level!(level, x => a, b, c)` does `a`, `b` or `c` with `x` at AVX-512, AVX2 and the baseline. No level contracts products and
/// sums of floats by itself, so all give the same bits.
#[macro_export]
macro_rules! at_level {
    ($level:expr, $work:expr) => {
        $crate::numeric::dispatch::work(
            $level,
            #[inline(always)]
            || $work,
        )
    };
    ($level:expr, $x:ident => $avx512:expr, $avx2:expr, $baseline:expr) => {
        $crate::numeric::dispatch::by_level(
            $level,
            $x,
            #[inline(always)]
            |$x| $avx512,
            #[inline(always)]
            |$x| $avx2,
            #[inline(always)]
            |$x| $baseline,
        )
    };
}
pub use at_level;

/// What [`at_level`] calls, with a closure that is `#[inline(always)]`.
#[inline]
pub fn work<T>(level: Level, work: impl FnOnce() -> T) -> T {
    at_level!(level, work => work(), work(), work())
}

/// The same with one for each level.
#[inline]
pub fn by_level<W, T>(
    level: Level,
    work: W,
    avx512: impl FnOnce(W) -> T,
    avx2: impl FnOnce(W) -> T,
    baseline: impl FnOnce(W) -> T,
) -> T {
    #[cfg(target_arch = "x86_64")]
    if const { EVERY_LEVEL } {
        // SAFETY: the level is at most what the machine has.
        unsafe {
            match level.min(Level::best()) {
                Level::Avx512 => {
                    return compiled::avx512(
                        #[inline(always)]
                        || avx512(work),
                    );
                }
                Level::Avx2 => {
                    return compiled::avx2(
                        #[inline(always)]
                        || avx2(work),
                    );
                }
                Level::Baseline => {}
            }
        }
    }
    let _ = (level, avx512, avx2);
    baseline(work)
}

/// Does work on words of bits, compiled for machines that count and find bits in one instruction where this is one; `many` are
/// counted by vectors where there are such.
#[inline]
pub fn with_bits<const MANY: bool, T>(work: impl FnOnce() -> T) -> T {
    #[cfg(target_arch = "x86_64")]
    if level() >= Level::Avx2 && is_x86_feature_detected!("popcnt") && is_x86_feature_detected!("bmi1") {
        // SAFETY: the machine has the instructions.
        unsafe {
            if const { MANY } && level() == Level::Avx512 && is_x86_feature_detected!("avx512vpopcntdq") {
                return compiled::bit_vectors(work);
            }
            return compiled::bits(work);
        }
    }
    work()
}

/// Functions that do their work compiled for instructions: the only ones that are. Never in line: loops turn into vectors best in
/// functions of their own.
#[cfg(target_arch = "x86_64")]
pub(super) mod compiled {
    macro_rules! compiled_for {
        ($($name:ident: $instructions:literal;)*) => {
            $(
                #[inline(never)]
                #[target_feature(enable = $instructions)]
                pub fn $name<T>(work: impl FnOnce() -> T) -> T {
                    work()
                }
            )*
        };
    }

    compiled_for! {
        avx2: "avx2,fma,popcnt";
        avx512: "avx512f,avx512dq,avx512bw,avx512vl,popcnt";
        avx512_ifma: "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma";
        bits: "avx2,popcnt,bmi1";
        bit_vectors: "avx512f,avx512vl,avx512vpopcntdq,popcnt,bmi1";
    }
}

/// The operations of a ring as they are, for rings and machines without vectors.
#[derive(Clone, Copy, Debug)]
pub struct Plain<R>(pub R);

impl<R: Ring> Arithmetic for Plain<R> {
    type Element = R::Element;
    type Register = R::Element;
    // Fifteen registers of one word each; an element may be of two or three.
    const HELD: usize = match size_of::<R::Element>() {
        ..=8 => 15,
        9..=16 => 7,
        _ => 3,
    };

    #[inline(always)]
    fn zero(self) -> R::Element {
        self.0.zero()
    }

    #[inline(always)]
    unsafe fn load(self, from: *const R::Element) -> R::Element {
        // SAFETY: the caller's.
        unsafe { *from }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut R::Element, x: R::Element) {
        // SAFETY: the caller's.
        unsafe { *to = x }
    }

    #[inline(always)]
    fn add(self, a: R::Element, b: R::Element) -> R::Element {
        self.0.add(a, b)
    }

    #[inline(always)]
    fn fold(self, a: R::Element) -> R::Element {
        self.0.fold(a)
    }
}

impl<R: Ring> Products for Plain<R> {
    type Sum = R::Element;

    #[inline(always)]
    fn split(self, x: R::Element) -> R::Element {
        x
    }

    #[inline(always)]
    fn no_products(self) -> R::Element {
        self.0.zero()
    }

    #[inline(always)]
    fn add_product(self, sum: R::Element, a: R::Element, b: R::Element) -> R::Element {
        self.0.fold(self.0.add(sum, self.0.mul(a, b)))
    }

    #[inline(always)]
    fn total(self, sum: R::Element) -> R::Element {
        sum
    }
}

/// Runs a kernel over lanes at a level, or at the best level of the machine if that is lower.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn run_lanes<const L: usize, K: Kernel<[u64; L]>>(level: Level, ring: Lanes<L>, kernel: K) -> K::Output {
    use x86::{Xmm, Ymm, Zmm, avx2, avx512};
    let excess = ring.excess();
    let level = level.min(Level::best());
    // The conditions are constants, so that only what fits the number of lanes is compiled.
    // SAFETY: `level` is at most what the machine has; `L` lanes fill the registers of each arm.
    unsafe {
        if const { L == 8 && EVERY_LEVEL } {
            match level {
                Level::Avx512 => avx512(kernel, Zmm::<1, L, 31>::new(&excess)),
                Level::Avx2 => avx2(kernel, Ymm::<2, L, 7>::new(&excess)),
                Level::Baseline => kernel.run(Xmm::<4, L, 3>::new(&excess)),
            }
        } else if const { L == 4 && EVERY_LEVEL } {
            match level {
                Level::Avx512 => avx512(kernel, Ymm::<1, L, 31>::new(&excess)),
                Level::Avx2 => avx2(kernel, Ymm::<1, L, 15>::new(&excess)),
                Level::Baseline => kernel.run(Xmm::<2, L, 7>::new(&excess)),
            }
        } else if const { L == 8 } {
            kernel.run(Xmm::<4, L, 3>::new(&excess))
        } else if const { L == 4 } {
            kernel.run(Xmm::<2, L, 7>::new(&excess))
        } else {
            kernel.run(Plain(ring))
        }
    }
}

/// Runs a kernel over lanes: the compiler finds the vectors of this architecture by itself.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub fn run_lanes<const L: usize, K: Kernel<[u64; L]>>(_level: Level, ring: Lanes<L>, kernel: K) -> K::Output {
    kernel.run(Plain(ring))
}

/// Registers of x86-64.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Arithmetic, BITS, Kernel, Products};
    use std::arch::x86_64::*;

    /// Compiles a kernel for AVX2.
    #[target_feature(enable = "avx2")]
    pub fn avx2<A: Products, K: Kernel<A::Element>>(kernel: K, arithmetic: A) -> K::Output {
        kernel.run(arithmetic)
    }

    /// Compiles a kernel for AVX-512.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
    pub fn avx512<A: Products, K: Kernel<A::Element>>(kernel: K, arithmetic: A) -> K::Output {
        kernel.run(arithmetic)
    }

    /// The overflow check of plain additions, which the instructions do not have.
    #[cfg(debug_assertions)]
    #[inline(never)]
    fn assert_headroom(a: &[u64], b: &[u64]) {
        assert!(a.iter().zip(b).all(|(a, b)| a.checked_add(*b).is_some()), "a sum left its headroom: {a:?} + {b:?}");
    }

    macro_rules! registers {
        ($name:ident, $words:literal, $register:ty: $set:ident, $add:ident, $sub:ident, $and:ident, $shift:ident, $left:ident, $multiply:ident) => {
            /// `L` lanes in `K` registers.
            #[derive(Clone, Copy)]
            pub struct $name<const K: usize, const L: usize, const HELD: usize> {
                excess: [$register; K],
                mask: $register,
            }

            impl<const K: usize, const L: usize, const HELD: usize> $name<K, L, HELD> {
                /// # Safety
                /// The machine has the instructions, and `L` is `K` times the lanes of a register.
                #[inline(always)]
                pub unsafe fn new(excess: &[u64; L]) -> Self {
                    debug_assert_eq!(L, K * $words);
                    // SAFETY: the arrays have the same size, by the caller's word; the instructions exist, likewise.
                    unsafe {
                        Self {
                            excess: excess.as_ptr().cast::<[$register; K]>().read_unaligned(),
                            mask: $set((1 << BITS) - 1),
                        }
                    }
                }
            }

            impl<const K: usize, const L: usize, const HELD: usize> Arithmetic for $name<K, L, HELD> {
                type Element = [u64; L];
                type Register = [$register; K];
                const HELD: usize = HELD;

                #[inline(always)]
                fn zero(self) -> [$register; K] {
                    // SAFETY: a value of this type exists only where the instructions do.
                    [unsafe { $set(0) }; K]
                }

                #[inline(always)]
                unsafe fn load(self, from: *const [u64; L]) -> [$register; K] {
                    // SAFETY: the caller's; both types have the same size.
                    unsafe { from.cast::<[$register; K]>().read_unaligned() }
                }

                #[inline(always)]
                unsafe fn store(self, to: *mut [u64; L], x: [$register; K]) {
                    // SAFETY: the caller's; both types have the same size.
                    unsafe { to.cast::<[$register; K]>().write_unaligned(x) }
                }

                #[inline(always)]
                fn add(self, mut a: [$register; K], b: [$register; K]) -> [$register; K] {
                    #[cfg(debug_assertions)]
                    {
                        // SAFETY: both are `L` words, without invalid bit patterns.
                        let words = |x: &[$register; K]| unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), L) };
                        assert_headroom(words(&a), words(&b));
                    }
                    for i in 0..K {
                        // SAFETY: a value of this type exists only where the instructions do.
                        a[i] = unsafe { $add(a[i], b[i]) };
                    }
                    a
                }

                #[inline(always)]
                fn fold(self, mut a: [$register; K]) -> [$register; K] {
                    for i in 0..K {
                        // SAFETY: a value of this type exists only where the instructions do.
                        a[i] = unsafe {
                            let high = $multiply($shift::<{ BITS as _ }>(a[i]), self.excess[i]);
                            $add($and(a[i], self.mask), high)
                        };
                    }
                    a
                }
            }

            impl<const K: usize, const L: usize, const HELD: usize> Products for $name<K, L, HELD> {
                type Sum = [[$register; K]; 3];

                #[inline(always)]
                fn split(self, mut x: [$register; K]) -> [$register; K] {
                    for x in &mut x {
                        // SAFETY: a value of this type exists only where the instructions do; so below.
                        *x = unsafe {
                            let high = $left::<32>($shift::<28>(*x));
                            $add($and(*x, $set((1 << 28) - 1)), high)
                        };
                    }
                    x
                }

                #[inline(always)]
                fn no_products(self) -> Self::Sum {
                    [self.zero(); 3]
                }

                #[inline(always)]
                fn add_product(
                    self,
                    [mut low, mut both, mut high]: Self::Sum,
                    a: [$register; K],
                    b: [$register; K],
                ) -> Self::Sum {
                    for i in 0..K {
                        // SAFETY: as above.
                        unsafe {
                            let (a, b) = (a[i], b[i]);
                            let (a1, b1) = ($shift::<32>(a), $shift::<32>(b));
                            low[i] = $add(low[i], $multiply(a, b));
                            high[i] = $add(high[i], $multiply(a1, b1));
                            both[i] = $add(both[i], $multiply($add(a, a1), $add(b, b1)));
                        }
                    }
                    [low, both, high]
                }

                /// With 2^55 = c:  low + 2^28 middle + 2^56 high  where  2^56 h = 2 c (h mod 2^28) + 2^28 2 c floor(h / 2^28)  and
                /// 2^28 m = 2^28 (m mod 2^27) + c floor(m / 2^27).
                #[inline(always)]
                fn total(self, [low, both, high]: Self::Sum) -> [$register; K] {
                    let high_folded = self.fold(high);
                    let (mut middle, mut carried, mut twice) = (both, both, both);
                    for i in 0..K {
                        // SAFETY: as above.
                        unsafe {
                            let h = high_folded[i];
                            middle[i] = $sub(both[i], $add(low[i], high[i]));
                            carried[i] = $multiply($shift::<28>(h), self.excess[i]);
                            twice[i] = $multiply($and(h, $set((1 << 28) - 1)), self.excess[i]);
                        }
                    }
                    let (carried, twice) = (self.fold(carried), self.fold(twice));
                    let middle = self.fold(self.add(self.fold(middle), self.add(carried, carried)));
                    let (mut shifted, mut rest) = (middle, middle);
                    for i in 0..K {
                        // SAFETY: as above.
                        unsafe {
                            shifted[i] = $left::<28>($and(middle[i], $set((1 << 27) - 1)));
                            rest[i] = $multiply($shift::<27>(middle[i]), self.excess[i]);
                        }
                    }
                    let sum = self.add(self.fold(low), self.add(twice, twice));
                    self.fold(self.add(sum, self.add(shifted, self.fold(rest))))
                }
            }
        };
    }

    registers!(
        Xmm, 2, __m128i: _mm_set1_epi64x, _mm_add_epi64, _mm_sub_epi64, _mm_and_si128, _mm_srli_epi64, _mm_slli_epi64,
        _mm_mul_epu32
    );
    registers!(
        Ymm, 4, __m256i: _mm256_set1_epi64x, _mm256_add_epi64, _mm256_sub_epi64, _mm256_and_si256, _mm256_srli_epi64, _mm256_slli_epi64,
        _mm256_mul_epu32
    );
    registers!(
        Zmm, 8, __m512i: _mm512_set1_epi64, _mm512_add_epi64, _mm512_sub_epi64, _mm512_and_si512, _mm512_srli_epi64, _mm512_slli_epi64,
        _mm512_mul_epu32
    );
}
