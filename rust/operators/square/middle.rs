//! An even number of rows, met in the middle: the product x^T T y of two vectors, y being its own mirror image, in place.
//!
//! Let p be the first L = floor(k/2) symbols of a word and s the m others. H is the operator that takes p through T and leaves
//! s, so that H x lives on new p and old s, which need not fit each other: at p = ..1 and s = 1.. it equals its value at ..0 and
//! s, an old 0 being forced there, and is not stored. The second half of T is the first half turned by 180 degrees, so
//!
//!   k even:  x^T T y = sum over p, q of X(p, q) Y(q', p')          with X = H x, Y = H y and p' the reverse of p,
//!   k odd:   the same over p, q of X(p, 0q) (Y(q', 0p') + Y(q', 1p')) + X(p, 1q) Y(q', 0p'):
//!            of the old and the new symbol in the middle not both are 1.
//!
//! In a ring (`cut`) the product is X0^T T X0 + 2 E^T T X0, where E[0t0] = X1[t]; there H E is H on the shorter words t, its
//! value not depending on a new first symbol where the old one is 0.
//!
//! Source: derived here; T is that of [`super`].

use super::cut::RowCut;
use super::path::{Passage, Path, Tiles};
use super::words::{count, list, words};
use crate::numeric::ring::Ring;
use crate::{Result, parallel};

/// HalfPath a row of a cut.
#[derive(Clone, Debug)]
pub struct HalfRow {
    open: HalfPath,
    closed: Option<HalfPath>,
}

/// HalfPath a row along a path.
#[derive(Clone, Debug)]
struct HalfPath {
    states: usize,
    length: usize,
    rest: usize,
    tiles: Option<Tiles>,
}

impl HalfRow {
    /// HalfPath a row of this cut.
    pub fn new(cut: &RowCut) -> Self {
        let (open, closed) = cut.halves();
        let length = open.length() / 2;
        Self { open: HalfPath::new(open, length), closed: closed.map(|path| HalfPath::new(path, length - 1)) }
    }

    /// Takes the vector half a row further.
    pub fn advance<R: Ring>(&self, state: &mut [R::Element], passage: Passage<R>) -> Result<()> {
        let (zero, one) = state.split_at_mut(self.open.states);
        self.open.advance(zero, passage)?;
        self.closed.as_ref().map_or(Ok(()), |closed| closed.advance(one, passage.occupied()))
    }

    /// The product of the vector before with the operator and itself, from the vector after.
    pub fn product<R: Ring>(&self, ring: &R, state: &[R::Element]) -> R::Element {
        let (zero, one) = state.split_at(self.open.states);
        let open = self.open.view(zero);
        let value = self.open.product(ring, &open, &open);
        let Some(closed) = &self.closed else { return value };
        let inner = closed.view(one);
        // The rank of s without its last symbol, which is 0; the rank of p without its first.
        let mut shorter = 0..;
        let ranks: Vec<_> =
            list(self.open.rest).iter().map(|s| (s & 1 == 0).then(|| shorter.next()).flatten()).collect();
        let tail = |p| if p < words(closed.length) { p } else { p - words(closed.length) };
        let embedded = |p, s: usize| ranks[s].map_or(ring.zero(), |s| inner(tail(p), s));
        let mixed = self.open.product(ring, embedded, open);
        ring.fold(ring.add(value, ring.add(mixed, mixed)))
    }

    /// Most roundings in the product.
    pub fn roundings(&self) -> u64 {
        3 * words(self.open.length) as u64 + self.open.length as u64 + 8
    }
}

impl HalfPath {
    fn new(path: &Path, length: usize) -> Self {
        let tiles = (length > 0).then(|| Tiles::new(path.length(), length, true));
        Self { states: path.states(), length, rest: path.length() - length, tiles }
    }

    fn advance<R: Ring>(&self, state: &mut [R::Element], passage: Passage<R>) -> Result<()> {
        self.tiles.as_ref().map_or(Ok(()), |tiles| tiles.sweep(state, passage, false, true))
    }

    /// The value at the new symbols of rank `p` and the old ones of rank `s`.
    fn view<'a, E: Copy + Sync>(&'a self, state: &'a [E]) -> impl Fn(usize, usize) -> E + Sync + 'a {
        let odd: Vec<bool> = list(self.length).iter().map(|p| p & 1 == 1).collect();
        let zeros = count(self.rest as isize - 1);
        move |p, s| {
            let p = p - usize::from(odd[p] && s >= zeros);
            state[self.tiles.as_ref().map_or(0, |tiles| tiles.offset(p)) + s]
        }
    }

    /// The sum over all p and q.
    fn product<R: Ring>(
        &self,
        ring: &R,
        x: impl Fn(usize, usize) -> R::Element + Sync,
        y: impl Fn(usize, usize) -> R::Element + Sync,
    ) -> R::Element {
        let reverse = reversals(self.length);
        let (all, zeros) = (words(self.length), count(self.length as isize - 1));
        if self.rest == self.length {
            return parallel::reduce(ring, all, |p| ring.dot((0..all).map(|q| (x(p, q), y(reverse[q], reverse[p])))));
        }
        let first_one = words(self.rest - 1);
        parallel::reduce(ring, all, |p| {
            let p_reversed = reverse[p];
            let below_zero = ring.dot((0..all).map(|q| {
                let free = y(reverse[q], p_reversed);
                let new = if p_reversed < zeros {
                    ring.fold(ring.add(free, y(reverse[q], first_one + p_reversed)))
                } else {
                    free
                };
                (x(p, q), new)
            }));
            let below_one = ring.dot((0..zeros).map(|q| (x(p, first_one + q), y(reverse[q], p_reversed))));
            ring.fold(ring.add(below_zero, below_one))
        })
    }
}

/// The rank of the reverse of each word of this length.
fn reversals(length: usize) -> Vec<usize> {
    let list = list(length);
    let reverse = |word: &u64| if length == 0 { 0 } else { word.reverse_bits() >> (64 - length) };
    list.iter()
        .map(|word| list.binary_search(&reverse(word)).unwrap_or_else(|_| unreachable!("reverses are words")))
        .collect()
}
