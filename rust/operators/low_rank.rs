//! A vector made at once, as the product of two thin matrices.
//!
//! Cut the first r rows of a lattice by a line across the rows. The two sides share only what lies along that line, words d of
//! some r symbols; so with the fillings G(p, d) of one side below the word p of row r and H(q, d) of the other
//!
//!   u_r(p q) = sum over d of G(p, d) H(q, d)
//!
//! has as few terms as there are words d, where sweeping r rows takes r passes over the whole vector. Both matrices are found by
//! moving across the rows, from either end to the cut, and are much smaller than the vector.
//!
//! Source: derived here, see `docs/mathematics/counting.md`, "A start of low rank".

use super::strip::Context;
use crate::Result;
use crate::numeric::dispatch::{Kernel, PRODUCTS, Products};
use crate::numeric::ring::Ring;
use crate::parallel::{self, Shared};

/// Rows of the left matrix, and of the right one, that are worked on together: with 89 terms and eight lanes 140 kB.
const LEFT: usize = 64;
const RIGHT: usize = 24;

/// Terms that take as long as four additions of a sweep, or a quarter of one: vectors multiply 32-bit words almost as fast as
/// they add, other machines by one word of 55 bits after the other.
const TERMS_OF_FOUR: u64 = if cfg!(target_arch = "x86_64") { 4 } else { 1 };

/// The additions of a sweep that take as long as so many terms of a product.
pub fn additions(terms: u64) -> u64 {
    4 * terms / TERMS_OF_FOUR
}

/// Two matrices whose rows have `terms` elements each, all split.
pub struct ThinProduct<'a, E> {
    /// The left matrix.
    pub left: &'a [E],
    /// The right one.
    pub right: &'a [E],
    /// Elements of their rows.
    pub terms: usize,
    /// Rows of the left matrix, and where their products with the rows of the right one stand, one after the other. The products
    /// of two of them do not overlap: threads write them at the same time.
    pub runs: &'a [(usize, usize)],
}

/// Makes elements ready for products.
///
/// # Errors
/// [`crate::Error::Interrupted`] when the caller says so.
pub fn split<R: Ring>(context: Context<R>, elements: &mut [R::Element]) -> Result<()> {
    /// Elements of a task.
    const BLOCK: usize = 1 << 12;
    let len = elements.len();
    let shared = Shared::new(elements);
    parallel::tiles(
        len.div_ceil(BLOCK),
        1,
        || Ok(()),
        |(), block| {
            // SAFETY: each element is in one block.
            let block = unsafe { shared.part(block * BLOCK, BLOCK.min(len - block * BLOCK)) };
            context.weight.ring.dispatch(context.level, Split(block));
            context.progress.check()
        },
    )
}

struct Split<'a, E>(&'a mut [E]);

impl<E> Kernel<E> for Split<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<A: Products<Element = E>>(self, a: A) {
        for x in self.0 {
            a.write(x, a.split(a.read(x)));
        }
    }
}

impl<E: Send + Sync + Copy> ThinProduct<'_, E> {
    /// Writes all products, folded.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] when the caller says so.
    pub fn write<R: Ring<Element = E>>(&self, context: Context<R>, vector: &mut [E]) -> Result<()> {
        let rows = self.right.len() / self.terms;
        assert!(
            self.runs.iter().all(|&(row, at)| at + rows <= vector.len() && (row + 1) * self.terms <= self.left.len())
        );
        let vector = Shared::new(vector);
        let columns = rows.div_ceil(RIGHT);
        parallel::tiles(
            self.runs.len().div_ceil(LEFT) * columns,
            1,
            || Ok(()),
            |(), tile| {
                let runs = &self.runs[tile / columns * LEFT..self.runs.len().min((tile / columns + 1) * LEFT)];
                let rows = tile % columns * RIGHT..rows.min((tile % columns + 1) * RIGHT);
                let additions = additions((runs.len() * rows.len() * self.terms) as u64);
                let block = ProductBlock { product: self, runs, rows, vector: vector.at(0) };
                context.weight.ring.dispatch(context.level, block);
                context.progress.advance(additions)
            },
        )
    }
}

/// Some rows of one matrix by some of the other.
struct ProductBlock<'a, E> {
    product: &'a ThinProduct<'a, E>,
    runs: &'a [(usize, usize)],
    rows: std::ops::Range<usize>,
    vector: *mut E,
}

impl<E: Copy> Kernel<E> for ProductBlock<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<A: Products<Element = E>>(self, a: A) {
        // Three registers of sums for each product, three for each factor at hand.
        if const { A::HELD >= 31 } {
            self.tiles::<A, 2, 3>(a);
        } else {
            self.tiles::<A, 1, 1>(a);
        }
    }
}

impl<E: Copy> ProductBlock<'_, E> {
    #[inline(always)]
    fn tiles<A: Products<Element = E>, const P: usize, const Q: usize>(&self, a: A) {
        let (pairs, odd) = self.runs.as_chunks::<P>();
        let whole = self.rows.len() / Q * Q;
        let rest = self.rows.start + whole..self.rows.end;
        for runs in pairs {
            for row in (self.rows.start..rest.start).step_by(Q) {
                self.tile::<A, P, Q>(a, *runs, row);
            }
            for row in rest.clone() {
                self.tile::<A, P, 1>(a, *runs, row);
            }
        }
        for &run in odd {
            for row in self.rows.clone() {
                self.tile::<A, 1, 1>(a, [run], row);
            }
        }
    }

    /// The products of `P` rows by `Q` neighboring ones.
    #[inline(always)]
    fn tile<A: Products<Element = E>, const P: usize, const Q: usize>(
        &self,
        a: A,
        runs: [(usize, usize); P],
        row: usize,
    ) {
        let ThinProduct { left, right, terms, .. } = *self.product;
        let mut sums = [[a.zero(); Q]; P];
        for start in (0..terms).step_by(PRODUCTS) {
            let mut products = [[a.no_products(); Q]; P];
            for term in start..terms.min(start + PRODUCTS) {
                // SAFETY: the matrices have these rows, which is asserted before.
                unsafe {
                    let mut y = [a.zero(); Q];
                    for q in 0..Q {
                        y[q] = a.load(right.as_ptr().add((row + q) * terms + term));
                    }
                    for p in 0..P {
                        let x = a.load(left.as_ptr().add(runs[p].0 * terms + term));
                        for q in 0..Q {
                            products[p][q] = a.add_product(products[p][q], x, y[q]);
                        }
                    }
                }
            }
            for p in 0..P {
                for q in 0..Q {
                    sums[p][q] = a.fold(a.add(sums[p][q], a.total(products[p][q])));
                }
            }
        }
        for p in 0..P {
            for q in 0..Q {
                // SAFETY: the run lies in the vector, which is asserted before, and no other product is written there, by the word of
                // whoever made the runs.
                unsafe { a.store(self.vector.add(runs[p].1 + row + q), sums[p][q]) };
            }
        }
    }
}
