//! The row-to-row operator T_k of the square lattice, in place: T_k[v, w] = 1 exactly if v & w = 0.
//!
//! The vector over the words of length k falls into three runs, A (words 00...), B (01...), C (10...), of f(k-2), f(k-3)
//! and f(k-2) elements; without their first two symbols the words of B are the first of those of A and of C. Then
//!
//!   C_i, A_i <- A_i + B_i, A_i + C_i     (B_i = 0 beyond the end of B),
//!   then T_{k-1} on [A, B] and T_{k-2} on C;   T_1: (a, b) -> (a + b, a),  T_0 = 1.
//!
//! For a new first symbol 0 sees an old 0 or 1, and a new 1, which a 0 follows, needs an old 0, the old second symbol being
//! free. After j symbols an element is the sum of at most f(j) old ones; f(12) = 377 is the last below the headroom.

use super::words::{count, words};
use crate::numeric::ring::Ring;

/// Symbols that may be consumed before the next fold.
pub const STRIDE: usize = 12;

/// Applies T_k. `consumed` symbols were consumed since the elements were folded; afterwards all are folded.
pub fn apply<R: Ring>(ring: &R, k: usize, state: &mut [R::Element], consumed: usize) {
    debug_assert_eq!(state.len(), words(k));
    if k == 0 {
        state[0] = ring.fold(state[0]);
        return;
    }
    let consumed = if consumed + 2 > STRIDE {
        state.iter_mut().for_each(|x| *x = ring.fold(*x));
        0
    } else {
        consumed
    };
    if k == 1 {
        let (a, b) = (state[0], state[1]);
        (state[0], state[1]) = (ring.fold(ring.add(a, b)), ring.fold(a));
        return;
    }
    let (left, c) = state.split_at_mut(words(k - 1));
    let (a, b) = left.split_at_mut(words(k - 2));
    for (i, (a, c)) in a.iter_mut().zip(&mut *c).enumerate() {
        let sum = if i < b.len() { ring.add(*a, b[i]) } else { *a };
        (*a, *c) = (ring.add(*a, *c), sum);
    }
    apply(ring, k - 1, left, consumed + 1);
    apply(ring, k - 2, c, consumed + 2);
}

/// The additions of one application of T_k.
pub fn additions(k: usize) -> u64 {
    let (mut last, mut this) = (0, u64::from(k > 0));
    for k in 2..=k as isize {
        (last, this) = (this, this + last + (count(k - 2) + count(k - 3)) as u64);
    }
    this
}
