//! Short butterflies in registers: straight lines of additions over the words of up to six symbols.
//!
//! One level splits the run over words of length k into A (00...), B (01...) and C (10...):
//!
//!   split:  C_i, A_i <- A_i + B_i, A_i + C_i        merge, its transpose:  A_i, B_i, C_i <- A_i + C_i, B_i + C_i, A_i
//!
//! and T_k = (T_{k-1} on [A, B], T_{k-2} on C) after a split, which as a symmetric operator is also a merge after those. An
//! *open* network goes down to the level where A, B and C are single elements and stops: more symbols follow, among them the
//! one that decides the last; a *closed* one ends in T_1: (a, b) -> (a + b, a).
//!
//! Source: derived here; T is that of [`super`].

use super::words::{count, words};
use crate::numeric::dispatch::Arithmetic;

/// The longest words that networks are written for: 21 of them, where those of 7 symbols are 34, more than any registers.
pub const LONGEST: usize = 6;

/// The split of the run at `at` over words of length `k`.
#[inline(always)]
fn split<A: Arithmetic, const N: usize>(a: A, x: &mut [A::Register; N], at: usize, k: usize) {
    let (left, middle) = (words(k - 2), count(k as isize - 3));
    for i in at..at + left {
        let sum = if i < at + middle { a.add(x[i], x[i + left]) } else { x[i] };
        x[i] = a.add(x[i], x[i + left + middle]);
        x[i + left + middle] = sum;
    }
}

/// The merge of the run at `at` over words of length `k`.
#[inline(always)]
fn merge<A: Arithmetic, const N: usize>(a: A, x: &mut [A::Register; N], at: usize, k: usize) {
    let (left, middle) = (words(k - 2), count(k as isize - 3));
    for i in at..at + left {
        let old = x[i];
        x[i] = a.add(x[i], x[i + left + middle]);
        if i < at + middle {
            x[i + left] = a.add(x[i + left], x[i + left + middle]);
        }
        x[i + left + middle] = old;
    }
}

macro_rules! networks {
    ($($k:literal: $down:ident = $down_left:ident, $down_right:ident; $up:ident = $up_left:ident, $up_right:ident;
        $whole:ident = $whole_left:ident, $whole_right:ident;)*) => {$(
        #[inline(always)]
        fn $down<A: Arithmetic, const N: usize>(a: A, x: &mut [A::Register; N], at: usize) {
            split(a, x, at, $k);
            $down_left(a, x, at);
            $down_right(a, x, at + words($k - 1));
        }

        #[inline(always)]
        fn $up<A: Arithmetic, const N: usize>(a: A, x: &mut [A::Register; N], at: usize) {
            $up_left(a, x, at);
            $up_right(a, x, at + words($k - 1));
            merge(a, x, at, $k);
        }

        #[inline(always)]
        fn $whole<A: Arithmetic, const N: usize>(a: A, x: &mut [A::Register; N], at: usize) {
            split(a, x, at, $k);
            $whole_left(a, x, at);
            $whole_right(a, x, at + words($k - 1));
        }
    )*};
}

networks! {
    2: down2 = nothing, nothing; up2 = nothing, nothing; whole2 = whole1, nothing;
    3: down3 = down2, nothing; up3 = up2, nothing; whole3 = whole2, whole1;
    4: down4 = down3, down2; up4 = up3, up2; whole4 = whole3, whole2;
    5: down5 = down4, down3; up5 = up4, up3; whole5 = whole4, whole3;
    6: down6 = down5, down4; up6 = up5, up4; whole6 = whole5, whole4;
}

#[inline(always)]
fn nothing<A: Arithmetic, const N: usize>(_: A, _: &mut [A::Register; N], _: usize) {}

#[inline(always)]
fn whole1<A: Arithmetic, const N: usize>(a: A, x: &mut [A::Register; N], at: usize) {
    (x[at], x[at + 1]) = (a.add(x[at], x[at + 1]), x[at]);
}

macro_rules! choices {
    ($($(#[$what:meta])* $name:ident: $one:ident, $two:ident, $three:ident, $four:ident, $five:ident, $six:ident;)*) => {$(
        $(#[$what])*
        #[inline(always)]
        pub fn $name<A: Arithmetic, const N: usize>(a: A, x: &mut [A::Register; N], k: usize) {
            debug_assert_eq!(N, words(k));
            match k {
                0 => {}
                1 => $one(a, x, 0),
                2 => $two(a, x, 0),
                3 => $three(a, x, 0),
                4 => $four(a, x, 0),
                5 => $five(a, x, 0),
                _ => $six(a, x, 0),
            }
        }
    )*};
}

// The length is a constant wherever they are called.
choices! {
    /// The open network downwards over words of length `k`.
    down: nothing, down2, down3, down4, down5, down6;
    /// The open network upwards, the transpose of the former.
    up: nothing, up2, up3, up4, up5, up6;
    /// The closed network, T_k.
    whole: whole1, whole2, whole3, whole4, whole5, whole6;
}
