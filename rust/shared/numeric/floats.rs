//! Eight doubles or words side by side, in the registers of each vector level: kernels whose loops compilers do not turn into vectors.
//!
//! A kernel is written once as [`FloatWork`] against [`Floats`], and [`float_work`] runs it compiled for the level asked for.
//! A product is contracted with a sum where [`Floats::mul_add`] says so and nowhere else, and every sum has its order written down, so
//! all levels give the same bits.

use super::dispatch::{Level, at_level};

/// Doubles side by side: a register of the widest level.
pub const LANES: usize = 8;

/// Operations on eight doubles.
pub trait Floats: Copy {
    /// Eight doubles in registers.
    type Eight: Copy;
    /// How many eights can be held at once as sums of a product, some registers left free.
    const HELD: usize;
    /// The same number eight times.
    fn splat(self, x: f64) -> Self::Eight;
    /// Reads.
    fn load(self, from: &[f64; LANES]) -> Self::Eight;
    /// Writes.
    fn store(self, x: Self::Eight, to: &mut [f64; LANES]);
    /// Sum.
    fn add(self, a: Self::Eight, b: Self::Eight) -> Self::Eight;
    /// Difference.
    fn sub(self, a: Self::Eight, b: Self::Eight) -> Self::Eight;
    /// Product.
    fn mul(self, a: Self::Eight, b: Self::Eight) -> Self::Eight;
    /// Product and sum, rounded once; without the instruction the baseline takes some ten times as long.
    fn mul_add(self, a: Self::Eight, b: Self::Eight, c: Self::Eight) -> Self::Eight;
    /// Quotient.
    fn div(self, a: Self::Eight, b: Self::Eight) -> Self::Eight;
    /// Adds one where `a >= b`.
    fn count(self, counts: Self::Eight, a: Self::Eight, b: Self::Eight) -> Self::Eight;
    /// `x` where `a >= b`, else `y`.
    fn select(self, a: Self::Eight, b: Self::Eight, x: Self::Eight, y: Self::Eight) -> Self::Eight;
    /// A bit for each place where `a >= b`.
    fn bits(self, a: Self::Eight, b: Self::Eight) -> u32;
    /// Elements of a slice.
    ///
    /// # Safety
    /// Every index is below the length.
    unsafe fn gather(self, from: &[f64], indices: &[u32; LANES]) -> Self::Eight;
    /// Partial sums, in the order of [`prefix_sums`].
    fn prefix(self, x: Self::Eight) -> Self::Eight;
    /// Eight words in registers.
    type Words: Copy;
    /// Reads.
    fn load_words(self, from: &[u64; LANES]) -> Self::Words;
    /// Writes.
    fn store_words(self, x: Self::Words, to: &mut [u64; LANES]);
    /// A step of eight generators xoshiro256++ side by side: their next words.
    fn xoshiro(self, state: &mut [Self::Words; 4]) -> Self::Words;
    /// Lists the places of the words that are not zero, the first of which has a place, in front of eight that are written; how many
    /// these are.
    fn places(self, x: Self::Words, first: u32, list: &mut [u32; LANES]) -> usize;
}

/// The places of the ones of each byte, in front.
static ONES: [[u8; LANES]; 256] = {
    let mut ones = [[0; LANES]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut place, mut found) = (0, 0);
        while place < LANES {
            if byte >> place & 1 == 1 {
                ones[byte][found] = place as u8;
                found += 1;
            }
            place += 1;
        }
        byte += 1;
    }
    ones
};

/// Lists the places of the ones of a byte, as [`Floats::places`] does.
#[inline(always)]
fn places_of_ones(byte: u8, first: u32, list: &mut [u32; LANES]) -> usize {
    for (place, one) in list.iter_mut().zip(ONES[usize::from(byte)]) {
        *place = first + u32::from(one);
    }
    byte.count_ones() as usize
}

/// Partial sums by adding what is one, two and four places before.
#[inline(always)]
fn prefix_sums(mut x: [f64; LANES]) -> [f64; LANES] {
    for step in [1, 2, 4] {
        for i in (step..LANES).rev() {
            x[i] += x[i - step];
        }
    }
    x
}

/// A kernel. Everything in `run` must be `#[inline(always)]` to be compiled for the level.
pub trait FloatWork {
    /// What comes of it.
    type Output;
    /// Does the work.
    fn run<F: Floats>(self, floats: F) -> Self::Output;
}

/// Does work at a level, or at the best level of the machine if that is lower.
#[inline]
pub fn float_work<W: FloatWork>(level: Level, work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    use x86::{FloatYmm, FloatZmm};
    #[cfg(not(target_arch = "x86_64"))]
    use {Arrays as FloatYmm, Arrays as FloatZmm};
    at_level!(level, work => work.run(FloatZmm), work.run(FloatYmm), work.run(Arrays))
}

/// Arrays, for machines without these registers.
#[derive(Clone, Copy, Debug)]
struct Arrays;

#[inline(always)]
fn map(of: impl Fn(usize) -> f64) -> [f64; LANES] {
    let mut out = [0.0; LANES];
    for (i, out) in out.iter_mut().enumerate() {
        *out = of(i);
    }
    out
}

impl Floats for Arrays {
    type Eight = [f64; LANES];
    const HELD: usize = 2;

    #[inline(always)]
    fn splat(self, x: f64) -> [f64; LANES] {
        [x; LANES]
    }

    #[inline(always)]
    fn load(self, from: &[f64; LANES]) -> [f64; LANES] {
        *from
    }

    #[inline(always)]
    fn store(self, x: [f64; LANES], to: &mut [f64; LANES]) {
        *to = x;
    }

    #[inline(always)]
    fn add(self, a: [f64; LANES], b: [f64; LANES]) -> [f64; LANES] {
        map(|i| a[i] + b[i])
    }

    #[inline(always)]
    fn sub(self, a: [f64; LANES], b: [f64; LANES]) -> [f64; LANES] {
        map(|i| a[i] - b[i])
    }

    #[inline(always)]
    fn mul(self, a: [f64; LANES], b: [f64; LANES]) -> [f64; LANES] {
        map(|i| a[i] * b[i])
    }

    #[inline(always)]
    fn mul_add(self, a: [f64; LANES], b: [f64; LANES], c: [f64; LANES]) -> [f64; LANES] {
        map(|i| a[i].mul_add(b[i], c[i]))
    }

    #[inline(always)]
    fn div(self, a: [f64; LANES], b: [f64; LANES]) -> [f64; LANES] {
        map(|i| a[i] / b[i])
    }

    #[inline(always)]
    fn count(self, counts: [f64; LANES], a: [f64; LANES], b: [f64; LANES]) -> [f64; LANES] {
        map(|i| counts[i] + if a[i] >= b[i] { 1.0 } else { 0.0 })
    }

    #[inline(always)]
    fn select(self, a: [f64; LANES], b: [f64; LANES], x: [f64; LANES], y: [f64; LANES]) -> [f64; LANES] {
        map(|i| if a[i] >= b[i] { x[i] } else { y[i] })
    }

    #[inline(always)]
    fn bits(self, a: [f64; LANES], b: [f64; LANES]) -> u32 {
        (0..LANES).fold(0, |bits, i| bits | u32::from(a[i] >= b[i]) << i)
    }

    #[inline(always)]
    unsafe fn gather(self, from: &[f64], indices: &[u32; LANES]) -> [f64; LANES] {
        // SAFETY: the caller's.
        map(|i| unsafe { *from.get_unchecked(indices[i] as usize) })
    }

    #[inline(always)]
    fn prefix(self, x: [f64; LANES]) -> [f64; LANES] {
        prefix_sums(x)
    }

    type Words = [u64; LANES];

    #[inline(always)]
    fn load_words(self, from: &[u64; LANES]) -> [u64; LANES] {
        *from
    }

    #[inline(always)]
    fn store_words(self, x: [u64; LANES], to: &mut [u64; LANES]) {
        *to = x;
    }

    #[inline(always)]
    fn xoshiro(self, [a, b, c, d]: &mut [[u64; LANES]; 4]) -> [u64; LANES] {
        let mut words = [0; LANES];
        for i in 0..LANES {
            words[i] = a[i].wrapping_add(d[i]).rotate_left(23).wrapping_add(a[i]);
            let (third, fourth) = (c[i] ^ a[i], d[i] ^ b[i]);
            (a[i], b[i], c[i], d[i]) = (a[i] ^ fourth, b[i] ^ third, third ^ (b[i] << 17), fourth.rotate_left(45));
        }
        words
    }

    #[inline(always)]
    fn places(self, x: [u64; LANES], first: u32, list: &mut [u32; LANES]) -> usize {
        // Bytes of one bit each, which a product moves to the bits of the highest one.
        let mut bytes = [0; LANES];
        for (byte, word) in bytes.iter_mut().zip(x) {
            *byte = u8::from(word != 0);
        }
        let bits = u64::from_le_bytes(bytes).wrapping_mul(0x0102_0408_1020_4080);
        places_of_ones((bits >> 56) as u8, first, list)
    }
}

/// Registers of x86-64. A value of [`FloatZmm`] or [`FloatYmm`] exists only where the instructions do: [`float_work`] makes them.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Floats, LANES, places_of_ones, prefix_sums};
    use std::arch::x86_64::*;

    /// One register of eight.
    #[derive(Clone, Copy)]
    pub struct FloatZmm;

    /// Two registers of four.
    #[derive(Clone, Copy)]
    pub struct FloatYmm;

    impl Floats for FloatZmm {
        type Eight = __m512d;
        const HELD: usize = 4;

        #[inline(always)]
        fn splat(self, x: f64) -> __m512d {
            // SAFETY: a value of this type exists only where the instructions do.
            unsafe { _mm512_set1_pd(x) }
        }

        #[inline(always)]
        fn load(self, from: &[f64; LANES]) -> __m512d {
            // SAFETY: as above; there are eight doubles.
            unsafe { _mm512_loadu_pd(from.as_ptr()) }
        }

        #[inline(always)]
        fn store(self, x: __m512d, to: &mut [f64; LANES]) {
            // SAFETY: as above; there is room for eight doubles.
            unsafe { _mm512_storeu_pd(to.as_mut_ptr(), x) }
        }

        #[inline(always)]
        fn add(self, a: __m512d, b: __m512d) -> __m512d {
            // SAFETY: as above.
            unsafe { _mm512_add_pd(a, b) }
        }

        #[inline(always)]
        fn sub(self, a: __m512d, b: __m512d) -> __m512d {
            // SAFETY: as above.
            unsafe { _mm512_sub_pd(a, b) }
        }

        #[inline(always)]
        fn mul(self, a: __m512d, b: __m512d) -> __m512d {
            // SAFETY: as above.
            unsafe { _mm512_mul_pd(a, b) }
        }

        #[inline(always)]
        fn mul_add(self, a: __m512d, b: __m512d, c: __m512d) -> __m512d {
            // SAFETY: as above.
            unsafe { _mm512_fmadd_pd(a, b, c) }
        }

        #[inline(always)]
        fn div(self, a: __m512d, b: __m512d) -> __m512d {
            // SAFETY: as above.
            unsafe { _mm512_div_pd(a, b) }
        }

        #[inline(always)]
        fn count(self, counts: __m512d, a: __m512d, b: __m512d) -> __m512d {
            // SAFETY: as above.
            unsafe {
                let more = _mm512_cmp_pd_mask::<_CMP_GE_OQ>(a, b);
                _mm512_mask_add_pd(counts, more, counts, _mm512_set1_pd(1.0))
            }
        }

        #[inline(always)]
        fn select(self, a: __m512d, b: __m512d, x: __m512d, y: __m512d) -> __m512d {
            // SAFETY: as above.
            unsafe { _mm512_mask_blend_pd(_mm512_cmp_pd_mask::<_CMP_GE_OQ>(a, b), y, x) }
        }

        #[inline(always)]
        fn bits(self, a: __m512d, b: __m512d) -> u32 {
            // SAFETY: as above.
            unsafe { u32::from(_mm512_cmp_pd_mask::<_CMP_GE_OQ>(a, b)) }
        }

        #[inline(always)]
        unsafe fn gather(self, from: &[f64], indices: &[u32; LANES]) -> __m512d {
            // SAFETY: as above; the indices lie within the slice, by the caller's word.
            unsafe {
                let indices = _mm512_cvtepu32_epi64(_mm256_loadu_si256(indices.as_ptr().cast()));
                _mm512_i64gather_pd::<8>(indices, from.as_ptr())
            }
        }

        #[inline(always)]
        fn prefix(self, x: __m512d) -> __m512d {
            // SAFETY: as above.
            unsafe {
                let zero = _mm512_setzero_si512();
                let x = _mm512_add_pd(x, _mm512_castsi512_pd(_mm512_alignr_epi64::<7>(_mm512_castpd_si512(x), zero)));
                let x = _mm512_add_pd(x, _mm512_castsi512_pd(_mm512_alignr_epi64::<6>(_mm512_castpd_si512(x), zero)));
                _mm512_add_pd(x, _mm512_castsi512_pd(_mm512_alignr_epi64::<4>(_mm512_castpd_si512(x), zero)))
            }
        }

        type Words = __m512i;

        #[inline(always)]
        fn load_words(self, from: &[u64; LANES]) -> __m512i {
            // SAFETY: as above; there are eight words.
            unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
        }

        #[inline(always)]
        fn store_words(self, x: __m512i, to: &mut [u64; LANES]) {
            // SAFETY: as above; there is room for eight words.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), x) }
        }

        #[inline(always)]
        fn xoshiro(self, [a, b, c, d]: &mut [__m512i; 4]) -> __m512i {
            // SAFETY: as above.
            unsafe {
                let words = _mm512_add_epi64(_mm512_rol_epi64::<23>(_mm512_add_epi64(*a, *d)), *a);
                let (third, fourth) = (_mm512_xor_si512(*c, *a), _mm512_xor_si512(*d, *b));
                *c = _mm512_xor_si512(third, _mm512_slli_epi64::<17>(*b));
                (*a, *b) = (_mm512_xor_si512(*a, fourth), _mm512_xor_si512(*b, third));
                *d = _mm512_rol_epi64::<45>(fourth);
                words
            }
        }

        #[inline(always)]
        fn places(self, x: __m512i, first: u32, list: &mut [u32; LANES]) -> usize {
            // SAFETY: as above; there is room for eight places.
            unsafe {
                let kept = _mm512_test_epi64_mask(x, x);
                let all = _mm256_add_epi32(_mm256_set1_epi32(first as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
                _mm256_storeu_si256(list.as_mut_ptr().cast(), _mm256_maskz_compress_epi32(kept, all));
                kept.count_ones() as usize
            }
        }
    }

    impl Floats for FloatYmm {
        type Eight = [__m256d; 2];
        const HELD: usize = 1;

        #[inline(always)]
        fn splat(self, x: f64) -> [__m256d; 2] {
            // SAFETY: a value of this type exists only where the instructions do.
            [unsafe { _mm256_set1_pd(x) }; 2]
        }

        #[inline(always)]
        fn load(self, from: &[f64; LANES]) -> [__m256d; 2] {
            // SAFETY: as above; there are eight doubles.
            unsafe { [_mm256_loadu_pd(from.as_ptr()), _mm256_loadu_pd(from.as_ptr().add(4))] }
        }

        #[inline(always)]
        fn store(self, x: [__m256d; 2], to: &mut [f64; LANES]) {
            // SAFETY: as above; there is room for eight doubles.
            unsafe {
                _mm256_storeu_pd(to.as_mut_ptr(), x[0]);
                _mm256_storeu_pd(to.as_mut_ptr().add(4), x[1]);
            }
        }

        #[inline(always)]
        fn add(self, a: [__m256d; 2], b: [__m256d; 2]) -> [__m256d; 2] {
            // SAFETY: as above.
            unsafe { [_mm256_add_pd(a[0], b[0]), _mm256_add_pd(a[1], b[1])] }
        }

        #[inline(always)]
        fn sub(self, a: [__m256d; 2], b: [__m256d; 2]) -> [__m256d; 2] {
            // SAFETY: as above.
            unsafe { [_mm256_sub_pd(a[0], b[0]), _mm256_sub_pd(a[1], b[1])] }
        }

        #[inline(always)]
        fn mul(self, a: [__m256d; 2], b: [__m256d; 2]) -> [__m256d; 2] {
            // SAFETY: as above.
            unsafe { [_mm256_mul_pd(a[0], b[0]), _mm256_mul_pd(a[1], b[1])] }
        }

        #[inline(always)]
        fn mul_add(self, a: [__m256d; 2], b: [__m256d; 2], c: [__m256d; 2]) -> [__m256d; 2] {
            // SAFETY: as above.
            unsafe { [_mm256_fmadd_pd(a[0], b[0], c[0]), _mm256_fmadd_pd(a[1], b[1], c[1])] }
        }

        #[inline(always)]
        fn div(self, a: [__m256d; 2], b: [__m256d; 2]) -> [__m256d; 2] {
            // SAFETY: as above.
            unsafe { [_mm256_div_pd(a[0], b[0]), _mm256_div_pd(a[1], b[1])] }
        }

        #[inline(always)]
        fn count(self, counts: [__m256d; 2], a: [__m256d; 2], b: [__m256d; 2]) -> [__m256d; 2] {
            // SAFETY: as above.
            unsafe {
                let one = _mm256_set1_pd(1.0);
                let low = _mm256_and_pd(_mm256_cmp_pd::<_CMP_GE_OQ>(a[0], b[0]), one);
                let high = _mm256_and_pd(_mm256_cmp_pd::<_CMP_GE_OQ>(a[1], b[1]), one);
                [_mm256_add_pd(counts[0], low), _mm256_add_pd(counts[1], high)]
            }
        }

        #[inline(always)]
        fn select(self, a: [__m256d; 2], b: [__m256d; 2], x: [__m256d; 2], y: [__m256d; 2]) -> [__m256d; 2] {
            // SAFETY: as above.
            unsafe {
                let low = _mm256_cmp_pd::<_CMP_GE_OQ>(a[0], b[0]);
                let high = _mm256_cmp_pd::<_CMP_GE_OQ>(a[1], b[1]);
                [_mm256_blendv_pd(y[0], x[0], low), _mm256_blendv_pd(y[1], x[1], high)]
            }
        }

        #[inline(always)]
        fn bits(self, a: [__m256d; 2], b: [__m256d; 2]) -> u32 {
            // SAFETY: as above.
            unsafe {
                let low = _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_GE_OQ>(a[0], b[0])) as u32;
                let high = _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_GE_OQ>(a[1], b[1])) as u32;
                low | high << 4
            }
        }

        #[inline(always)]
        unsafe fn gather(self, from: &[f64], indices: &[u32; LANES]) -> [__m256d; 2] {
            // SAFETY: as above; the indices lie within the slice, by the caller's word.
            unsafe {
                let x = indices.map(|i| *from.get_unchecked(i as usize));
                [_mm256_setr_pd(x[0], x[1], x[2], x[3]), _mm256_setr_pd(x[4], x[5], x[6], x[7])]
            }
        }

        #[inline(always)]
        fn prefix(self, x: [__m256d; 2]) -> [__m256d; 2] {
            let mut words = [0.0; LANES];
            self.store(x, &mut words);
            self.load(&prefix_sums(words))
        }

        type Words = [__m256i; 2];

        #[inline(always)]
        fn load_words(self, from: &[u64; LANES]) -> [__m256i; 2] {
            // SAFETY: as above; there are eight words.
            unsafe { [_mm256_loadu_si256(from.as_ptr().cast()), _mm256_loadu_si256(from.as_ptr().add(4).cast())] }
        }

        #[inline(always)]
        fn store_words(self, x: [__m256i; 2], to: &mut [u64; LANES]) {
            // SAFETY: as above; there is room for eight words.
            unsafe {
                _mm256_storeu_si256(to.as_mut_ptr().cast(), x[0]);
                _mm256_storeu_si256(to.as_mut_ptr().add(4).cast(), x[1]);
            }
        }

        #[inline(always)]
        fn xoshiro(self, [a, b, c, d]: &mut [[__m256i; 2]; 4]) -> [__m256i; 2] {
            let mut words = *a;
            for half in 0..2 {
                let (a, b, c, d) = (&mut a[half], &mut b[half], &mut c[half], &mut d[half]);
                // SAFETY: as above.
                unsafe {
                    let sum = _mm256_add_epi64(*a, *d);
                    let turned = _mm256_or_si256(_mm256_slli_epi64::<23>(sum), _mm256_srli_epi64::<41>(sum));
                    words[half] = _mm256_add_epi64(turned, *a);
                    let (third, fourth) = (_mm256_xor_si256(*c, *a), _mm256_xor_si256(*d, *b));
                    *c = _mm256_xor_si256(third, _mm256_slli_epi64::<17>(*b));
                    (*a, *b) = (_mm256_xor_si256(*a, fourth), _mm256_xor_si256(*b, third));
                    *d = _mm256_or_si256(_mm256_slli_epi64::<45>(fourth), _mm256_srli_epi64::<19>(fourth));
                }
            }
            words
        }

        #[inline(always)]
        fn places(self, x: [__m256i; 2], first: u32, list: &mut [u32; LANES]) -> usize {
            // SAFETY: as above.
            let zeros = x.map(|x| unsafe {
                let zeros = _mm256_cmpeq_epi64(x, _mm256_setzero_si256());
                _mm256_movemask_pd(_mm256_castsi256_pd(zeros)) as u8
            });
            places_of_ones(!(zeros[0] | zeros[1] << 4), first, list)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Xoshiro;
    use rand_core::{Rng, SeedableRng};

    /// Every operation on some numbers, one after the other.
    struct AllOperations<'a>(&'a [[f64; LANES]; 3]);

    impl FloatWork for AllOperations<'_> {
        type Output = Vec<[u64; LANES]>;

        fn run<F: Floats>(self, f: F) -> Self::Output {
            let [a, b, c] = self.0.map(|x| f.load(&x));
            let indices = [3, 1, 1, 0, 7, 6, 2, 5];
            // SAFETY: all below eight.
            let gathered = unsafe { f.gather(&self.0[2], &indices) };
            let results = [
                f.add(a, b),
                f.sub(a, b),
                f.mul(a, b),
                f.div(a, b),
                f.count(c, a, b),
                f.select(a, b, c, f.splat(0.3)),
                gathered,
                f.prefix(b),
                f.mul_add(a, b, c),
            ];
            let mut out = results.map(|x| {
                let mut words = [0.0; LANES];
                f.store(x, &mut words);
                words.map(f64::to_bits)
            });
            out[0][0] ^= u64::from(f.bits(a, b));
            let mut state = [0, 1, 2, 3].map(|i| f.load_words(&out[i]));
            for out in &mut out[4..] {
                let mut words = [0; LANES];
                f.store_words(f.xoshiro(&mut state), &mut words);
                out.iter_mut().zip(words).for_each(|(out, word)| *out ^= word.rotate_left(1));
            }
            out.to_vec()
        }
    }

    #[test]
    fn every_level_gives_the_same_bits() {
        let mut words = crate::stream::Stream::new([1, 2], 3, 4, 5);
        for _ in 0..100 {
            let mut numbers = [[0.0; LANES]; 3];
            numbers.iter_mut().flatten().for_each(|x| *x = words.uniform());
            numbers[0][3] = numbers[1][3];
            let expected = float_work(Level::Baseline, AllOperations(&numbers));
            assert_eq!(float_work(Level::Avx2, AllOperations(&numbers)), expected);
            assert_eq!(float_work(Level::Avx512, AllOperations(&numbers)), expected);
            // The generator of the last lane.
            let mut seed = [0; 32];
            for (bytes, results) in seed.as_chunks_mut::<8>().0.iter_mut().zip(&expected) {
                *bytes = results[7].to_le_bytes();
            }
            let mut generator = Xoshiro::from_seed(seed);
            let words: Vec<u64> = (4..8).map(|_| generator.next_u64().rotate_left(1)).collect();
            let total: f64 = numbers[1].iter().sum();
            assert!((f64::from_bits(expected[7][7] ^ words[3]) - total).abs() < 1e-14);
            assert_eq!(f64::from_bits(expected[6][7] ^ words[2]), numbers[2][5]);
        }
    }
}
