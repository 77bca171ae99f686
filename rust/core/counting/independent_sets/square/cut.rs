//! What a cut between two rows of the square lattice looks like: a path or a ring of vertices, and the operator along it.
//!
//! States of a ring of w >= 3 vertices: the f(w-1) words 0s, then the f(w-3) words 10t0. Its operator first gathers
//!
//!   X0[0t0] += X1[t],   X1[t] <- sum of the old X0[atb] over the symbols a, b that t allows,
//!
//! and then applies T_{w-1} to X0 and T_{w-3} to X1: a new first symbol 0 sees both halves, a new 1 needs an old 0 and leaves
//! the old neighbors of it free.

use super::butterfly;
use super::words::{count, list, words};
use crate::numeric::ring::Ring;

/// The vertices along a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// A path of so many vertices.
    Path(usize),
    /// A ring of so many vertices, three or more.
    Ring(usize),
}

impl Cut {
    /// A ring of `length` vertices; two vertices, joined twice, are as good as a path.
    pub fn ring(length: usize) -> Self {
        if length > 2 { Self::Ring(length) } else { Self::Path(length) }
    }

    /// Vertices along the cut.
    pub fn width(self) -> usize {
        match self {
            Self::Path(w) | Self::Ring(w) => w,
        }
    }

    /// Independent sets of the cut.
    pub fn states(self) -> usize {
        let (open, closed) = self.lengths();
        words(open) + closed.map_or(0, words)
    }

    /// The lengths of the words in the first and the second part of the vector.
    pub fn lengths(self) -> (usize, Option<usize>) {
        match self {
            Self::Path(w) => (w, None),
            Self::Ring(w) => (w - 1, Some(w - 3)),
        }
    }

    /// Additions of one application of the operator.
    pub fn additions(self) -> u64 {
        let (open, closed) = self.lengths();
        let ring = |k| butterfly::additions(k) + words(k) as u64 + words(k + 1) as u64;
        butterfly::additions(open) + closed.map_or(0, ring)
    }

    /// The states in their order, the first vertex in the highest bit.
    pub fn list(self) -> Vec<u64> {
        match self {
            Self::Path(w) => list(w),
            Self::Ring(w) => {
                let closed = list(w - 3).into_iter().map(|t| 1 << (w - 1) | t << 1);
                list(w - 1).into_iter().chain(closed).collect()
            }
        }
    }

    /// Moves the cut over one row.
    pub fn apply<R: Ring>(self, ring: &R, state: &mut [R::Element]) {
        let (open, closed) = self.lengths();
        let (zero, one) = state.split_at_mut(words(open));
        if let Some(closed) = closed {
            gather(ring, closed, zero, one);
            butterfly::apply(ring, closed, one, 0);
        }
        butterfly::apply(ring, open, zero, 0);
    }

    /// Multiplies each element by the weight of its state.
    pub fn weigh<R: Ring>(self, ring: &R, powers: &[R::Element], state: &mut [R::Element]) {
        let (open, closed) = self.lengths();
        let (zero, one) = state.split_at_mut(words(open));
        weigh(ring, powers, open, zero);
        if let Some(closed) = closed {
            weigh(ring, &powers[1..], closed, one);
        }
    }
}

/// Multiplies the elements over words of length `k` by `powers[number of ones]`.
fn weigh<R: Ring>(ring: &R, powers: &[R::Element], k: usize, state: &mut [R::Element]) {
    if k == 0 {
        state[0] = ring.mul(state[0], powers[0]);
        return;
    }
    let (zero, one) = state.split_at_mut(words(k - 1));
    weigh(ring, powers, k - 1, zero);
    if k == 1 {
        one[0] = ring.mul(one[0], powers[1]);
    } else {
        weigh(ring, &powers[1..], k - 2, one);
    }
}

/// The first half of a ring's operator. `zero` holds words of two symbols more than the `k` of those of `one`.
fn gather<R: Ring>(ring: &R, k: usize, zero: &mut [R::Element], one: &mut [R::Element]) {
    let (inner, outer) = zero.split_at_mut(words(k + 1));
    // Inner words 0tb: t0 and, after an even t, t1. Outer words 10...: those with an occupied first symbol.
    let mut next = 0;
    pairs(k as isize, &mut |t, twice| {
        let mut sum = inner[next];
        inner[next] = ring.fold(ring.add(inner[next], one[t]));
        if twice {
            sum = ring.add(sum, inner[next + 1]);
        }
        for x in outer.iter().skip(next).take(1 + usize::from(twice)) {
            sum = ring.add(sum, *x);
        }
        one[t] = ring.fold(sum);
        next += 1 + usize::from(twice);
    });
}

/// Visits the words t of length `k` in order with their rank, and tells whether t1 is a word, too.
fn pairs(k: isize, visit: &mut impl FnMut(usize, bool)) {
    fn walk(k: isize, rank: usize, visit: &mut impl FnMut(usize, bool)) {
        if k <= 0 {
            visit(rank, k == 0);
        } else {
            walk(k - 1, rank, visit);
            walk(k - 2, rank + count(k - 1), visit);
        }
    }
    walk(k, 0, visit);
}
