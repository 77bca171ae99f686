//! Where the two halves of a section meet.
//!
//! The section is the same from both ends, and each column is its own mirror image. So one vector does for both sides, and
//! mirroring its words does for a half of the column that has not been passed yet.
//!
//!  - At the links between two columns the low half has crossed them (u = J_low v), and v^T J v = sum of u(s) u(mirrored s),
//!    with J for the site in the middle of an odd number of sites.
//!  - In a column the high half has been passed, one or two diamonds in the middle have not. With a0, a1, c as they come to
//!    one diamond and the mirrored a0', a1', c':   (a0 + z a1)(a0' + z a1') + (a0 + z c) z c' + z c a0'.   With two, passing the
//!    first gives B (its S corner empty: u, s) and D (occupied: z t, 0), and the link between them (B + D) B' + B D'.
//!
//! The corners of all words are charged here. The vectors of a ring meet by its first diamond, a quadratic form in them.
//!
//! Source: derived here from the operator of a column in [`super`].

use super::cut::ColumnCut;
use crate::numeric::ring::Ring;
use crate::parallel;
use crate::transfer::Weight;

/// Where the halves meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Middle {
    /// At the links between two columns.
    Links,
    /// In a column.
    Column,
}

/// The partition function of both halves together.
pub fn join<R: Ring>(cut: &ColumnCut, weight: &Weight<R>, state: &[R::Element], middle: Middle) -> R::Element {
    let ring = &weight.ring;
    let z = weight.activity;
    let twice = ring.fold(ring.add(z, z));
    let forms: Vec<(usize, usize, R::Element)> = match (cut.is_ring(), middle) {
        (false, _) => vec![(0, 0, ring.one())],
        (true, Middle::Links) => vec![(0, 0, ring.one()), (0, 1, twice)],
        (true, Middle::Column) => {
            vec![(0, 0, ring.one()), (1, 1, ring.fold(ring.add(twice, ring.mul(z, z)))), (1, 2, twice)]
        }
    };
    let sites = cut.sites();
    let outer = match middle {
        Middle::Links => sites / 2,
        Middle::Column => (sites - 1) / 2,
    };
    let meeting = Meeting { cut, weight, state, middle, outer, powers: weight.powers(sites as usize) };
    forms.into_iter().fold(ring.zero(), |sum, (p, q, factor)| {
        let form = meeting.form(p, q);
        ring.fold(ring.add(sum, if factor == ring.one() { form } else { ring.mul(form, factor) }))
    })
}

struct Meeting<'a, R: Ring> {
    cut: &'a ColumnCut,
    weight: &'a Weight<R>,
    state: &'a [R::Element],
    middle: Middle,
    /// Sites on either side of the middle.
    outer: u32,
    powers: Vec<R::Element>,
}

impl<R: Ring> Meeting<'_, R> {
    /// The sum for vectors `p` on one side and `q` on the other.
    fn form(&self, p: usize, q: usize) -> R::Element {
        let ring = &self.weight.ring;
        let all = 1usize << self.outer;
        let row = |i: usize| {
            if p != q {
                return self.row(p, q, i, 0..all);
            }
            // Mirrored pairs of words are worth the same.
            let half = self.row(p, q, i, i + 1..all);
            ring.fold(ring.add(ring.add(half, half), self.row(p, q, i, i..i + 1)))
        };
        let rows: Vec<R::Element> = if self.outer < 7 { (0..all).map(row).collect() } else { parallel::map(all, row) };
        rows.into_iter().fold(ring.zero(), |sum, row| ring.fold(ring.add(sum, row)))
    }

    /// Words whose upper half is `i`, with a lower half that mirrors one of `js`.
    fn row(&self, p: usize, q: usize, i: usize, js: std::ops::Range<usize>) -> R::Element {
        match (self.middle, (self.cut.sites() - 2 * self.outer)) {
            (Middle::Links, 0) => self.sum(i, js, |j| [(self.none(p, i, 0, j), self.none(q, j, 0, i))]),
            (Middle::Links, _) => self.sum(i, js, |j| self.over_links(p, q, i, j)),
            (Middle::Column, 1) => self.sum(i, js, |j| self.in_one(p, q, i, j)),
            (Middle::Column, _) => self.sum(i, js, |j| self.in_two(p, q, i, j)),
        }
    }

    /// Sums products and charges the outer corners.
    fn sum<const K: usize>(
        &self,
        i: usize,
        js: std::ops::Range<usize>,
        products: impl Fn(usize) -> [(R::Element, R::Element); K],
    ) -> R::Element {
        let ring = &self.weight.ring;
        if self.weight.unit {
            return ring.dot(js.flat_map(products));
        }
        ring.dot(js.flat_map(|j| {
            let power = self.powers[(i.count_ones() + j.count_ones()) as usize];
            products(j).map(|(a, b)| (ring.mul(a, power), b))
        }))
    }

    /// The sum of vector `p` under carry 0 for a word of three parts, the last one mirrored.
    #[inline(always)]
    fn none(&self, p: usize, high: usize, middle: usize, low: usize) -> R::Element {
        self.state[p * self.cut.words() + self.place(high, middle, low, self.cut.sites())]
    }

    /// The same under carry 1, where the first site in the middle has no symbol.
    #[inline(always)]
    fn carried(&self, p: usize, high: usize, middle: usize, low: usize) -> R::Element {
        let at = self.place(high, middle, low, self.cut.sites() - 1);
        let c = self.state[self.cut.none_len() + p * self.cut.words() / 2 + at];
        if self.weight.unit { c } else { self.weight.ring.mul(c, self.weight.activity) }
    }

    #[inline(always)]
    fn place(&self, high: usize, middle: usize, low: usize, sites: u32) -> usize {
        let mirrored = if self.outer == 0 { 0 } else { low.reverse_bits() >> (usize::BITS - self.outer) };
        high << (sites - self.outer) | middle << self.outer | mirrored
    }

    fn add(&self, a: R::Element, b: R::Element) -> R::Element {
        self.weight.ring.fold(self.weight.ring.add(a, b))
    }

    fn times(&self, a: R::Element) -> R::Element {
        if self.weight.unit { a } else { self.weight.ring.mul(a, self.weight.activity) }
    }

    fn over_links(&self, p: usize, q: usize, i: usize, j: usize) -> [(R::Element, R::Element); 2] {
        let here = [self.none(p, i, 0, j), self.none(p, i, 1, j)];
        let there = [self.none(q, j, 0, i), self.none(q, j, 1, i)];
        [(here[0], self.add(there[0], self.times(there[1]))), (self.times(here[1]), there[0])]
    }

    fn in_one(&self, p: usize, q: usize, i: usize, j: usize) -> [(R::Element, R::Element); 3] {
        let side = |p, i, j| {
            let (a0, c) = (self.none(p, i, 0, j), self.carried(p, i, 0, j));
            (a0, self.add(a0, self.times(self.none(p, i, 1, j))), c)
        };
        let ((a0, s, c), (a0_there, s_there, c_there)) = (side(p, i, j), side(q, j, i));
        [(s, s_there), (self.add(a0, c), c_there), (c, a0_there)]
    }

    fn in_two(&self, p: usize, q: usize, i: usize, j: usize) -> [(R::Element, R::Element); 6] {
        // By x, the symbol of the second diamond: S corner of the first empty and y = 0, empty and y = 1, occupied.
        let side = |p, i, x, j| {
            let (a0, c) = (self.none(p, i, x, j), self.carried(p, i, x, j));
            let s = self.add(a0, self.times(self.none(p, i, 2 | x, j)));
            [self.add(s, c), s, self.times(self.add(a0, c))]
        };
        let here = [side(p, i, 0, j), side(p, i, 1, j)];
        let there = [side(q, j, 0, i), side(q, j, 1, i)];
        // (B + D)(y, x) B'(x, y) + B(y, x) D'(x, y), where D is zero for its first symbol 1.
        let pair = |y: usize, x: usize| (here[x][y], there[y][x]);
        let [(b00, c00), (b01, c01), (b10, c10), (b11, c11)] = [pair(0, 0), pair(0, 1), pair(1, 0), pair(1, 1)];
        [
            (self.add(b00, here[0][2]), c00),
            (self.times(self.add(b01, here[1][2])), c01),
            (self.times(b10), c10),
            (self.times(self.times(b11)), c11),
            (b00, there[0][2]),
            (self.times(b10), there[1][2]),
        ]
    }
}
