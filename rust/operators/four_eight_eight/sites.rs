//! One diamond of a column, or a few at once, in registers.
//!
//! A group is the 2^n sums over the symbols of n neighboring sites under carry 0, and the 2^(n-1) sums under carry 1 into the
//! first of them, whose symbol is then 0. When site b is passed to site q = b - 1 or b + 1, the carried sums, numbered by the
//! symbols without that of b, become numbered by those without that of q: the place of x_q is taken over by y_b.
//!
//! Source: the formulas of [`super`], for registers.

use crate::numeric::dispatch::{Arithmetic, Plain};
use crate::numeric::ring::Ring;

/// Multiplication by the activity.
pub trait Charge<A: Arithmetic>: Copy {
    /// The most sites worth fusing.
    const FUSED: usize;
    /// The product.
    fn charge(self, a: A, x: A::Register) -> A::Register;
}

/// Activity one: nothing to do.
#[derive(Clone, Copy, Debug)]
pub struct Unit;

impl<A: Arithmetic> Charge<A> for Unit {
    const FUSED: usize = 3;

    #[inline(always)]
    fn charge(self, _: A, x: A::Register) -> A::Register {
        x
    }
}

/// Any other activity.
#[derive(Clone, Copy, Debug)]
pub struct Activity<E>(pub E);

impl<R: Ring> Charge<Plain<R>> for Activity<R::Element> {
    const FUSED: usize = 1;

    #[inline(always)]
    fn charge(self, a: Plain<R>, x: R::Element) -> R::Element {
        product(&a.0, x, self.0)
    }
}

/// Out of line, for there are many of these.
#[inline(never)]
fn product<R: Ring>(ring: &R, x: R::Element, z: R::Element) -> R::Element {
    ring.mul(ring.fold(x), z)
}

/// Sums after a site, for its symbol 0 and 1: under carry 0, and under carry 1 if asked for.
pub struct Passed<T> {
    /// Under carry 0.
    pub none: [T; 2],
    /// Under carry 1, which does not yet count the vertex carried.
    pub carried: [T; 2],
}

/// A site with sums `a0`, `a1`, and `c` carried into it; crosses the links to the next column, or stays before them.
#[inline(always)]
pub fn pass<A: Arithmetic, Z: Charge<A>>(
    a: A,
    z: Z,
    [a0, a1, c]: [A::Register; 3],
    cross: bool,
) -> Passed<A::Register> {
    let c = z.charge(a, c);
    let s = a.add(a0, z.charge(a, a1));
    let (t, u) = (a.add(a0, c), a.add(s, c));
    leave(a, z, s, t, u, cross)
}

/// The first site of a column: nothing is carried into it.
#[inline(always)]
pub fn begin<A: Arithmetic, Z: Charge<A>>(a: A, z: Z, [a0, a1]: [A::Register; 2], cross: bool) -> Passed<A::Register> {
    let s = a.add(a0, z.charge(a, a1));
    leave(a, z, s, a0, s, cross)
}

/// The first site of a column: `c` is carried into it, and nothing else is there.
#[inline(always)]
pub fn begin_carried<A: Arithmetic, Z: Charge<A>>(a: A, z: Z, c: A::Register, cross: bool) -> Passed<A::Register> {
    let c = z.charge(a, c);
    leave(a, z, a.zero(), c, c, cross)
}

#[inline(always)]
fn leave<A: Arithmetic, Z: Charge<A>>(
    a: A,
    z: Z,
    s: A::Register,
    t: A::Register,
    u: A::Register,
    cross: bool,
) -> Passed<A::Register> {
    let lower = a.add(u, z.charge(a, t));
    if cross {
        let s = z.charge(a, s);
        Passed { none: [a.add(lower, s), lower], carried: [a.add(u, s), u] }
    } else {
        Passed { none: [lower, s], carried: [u, s] }
    }
}

/// The number `i` without its bit `b`.
#[inline(always)]
pub const fn without(i: usize, b: usize) -> usize {
    (i >> (b + 1) << b) | (i & ((1 << b) - 1))
}

/// Passes site `b` of a group on to its site `q`.
#[inline(always)]
pub fn pass_within<A: Arithmetic, Z: Charge<A>, const N: usize, const M: usize>(
    a: A,
    z: Z,
    x: &mut [A::Register; N],
    c: &mut [A::Register; M],
    b: usize,
    q: usize,
    cross: bool,
) {
    // Where x_q = 1 nothing can be carried on; those places are free then for the others.
    for next in [1, 0] {
        for i in (0..N).filter(|i| i >> b & 1 == 0 && i >> q & 1 == next) {
            let j = i | 1 << b;
            let passed = pass(a, z, [x[i], x[j], c[without(i, b)]], cross);
            [x[i], x[j]] = passed.none;
            if next == 0 {
                [c[without(i, q)], c[without(j, q)]] = passed.carried;
            }
        }
    }
}

/// Passes the last site `b` of a group and returns what is carried out of it.
#[inline(always)]
pub fn pass_out<A: Arithmetic, Z: Charge<A>, const N: usize, const M: usize>(
    a: A,
    z: Z,
    x: &mut [A::Register; N],
    c: &[A::Register; M],
    b: usize,
    cross: bool,
) -> [A::Register; N] {
    let mut out = *x;
    for i in (0..N).filter(|i| i >> b & 1 == 0) {
        let j = i | 1 << b;
        let passed = pass(a, z, [x[i], x[j], c[without(i, b)]], cross);
        [x[i], x[j]] = passed.none;
        [out[i], out[j]] = passed.carried;
    }
    out
}

/// Passes the last site of a column, site 0 of the group: it has no link to a next one.
#[inline(always)]
pub fn end<A: Arithmetic, Z: Charge<A>, const N: usize, const M: usize>(
    a: A,
    z: Z,
    x: &mut [A::Register; N],
    c: &[A::Register; M],
    cross: bool,
) {
    for i in (0..N).step_by(2) {
        [x[i], x[i + 1]] = pass(a, z, [x[i], x[i + 1], c[i / 2]], cross).carried;
    }
}
