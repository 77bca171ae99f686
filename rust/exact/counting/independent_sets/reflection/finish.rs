//! From the vector in the middle to the count: sums of squares, and residues by more primes than the vector was computed by.
//!
//! Let u be the vector after a rows. An odd number 2a - 1 of rows has Z = u'u. For an even number, T = S' D S with S the superset
//! sums and D = (-1)^(number of ones): the words t with v & w = 0 are counted by sum over t <= v & w of (-1)^|t|. So
//!
//!   Z = u' T u = sum over t of (-1)^|t| ((S u)(t))^2,
//!
//! which needs no element twice. An element of u is at most the number of sets of a - 1 rows, one of S u at most that of a: half
//! of the bits of Z. So half of the primes tell each element x, by k of them
//!
//!   x = sum of y_i P / p_i - q P,   y_i = x (P / p_i)^-1 mod p_i,   q = floor of sum of y_i / p_i,
//!
//! where the sum of fractions misses the whole number below it by x / P < 1/4 at most, far more than its rounding errors. Each
//! element found so is compared modulo a spare prime that the vector was computed by as well.
//!
//! Source: derived here, see `docs/mathematics/counting.md`; the floor q: D. Bernstein, J. Sorenson (2007), Modular
//! exponentiation via the explicit Chinese remainder theorem, Math. Comp. 76, section 2.

use super::activity::{HalfWeights, product};
use super::axis::Symmetric;
use crate::counting::lifting::Lifting;
use crate::numeric::neighbors::{NeighborKernel, Neighbors, PRODUCTS, ShortPrime, TILE, TILE_WORDS};

/// The most primes that elements are found by: the digits of one have an array on the stack.
pub const MOST_KNOWN: usize = 24;
/// The most primes that squares are summed by: their sums have an array on the stack.
pub const MOST_PRIMES: usize = 48;

/// The parities of the words of a matrix, as bits of tiles: whether their squares count as negative.
#[derive(Clone, Debug)]
pub struct Signs {
    by_run: Vec<Vec<u8>>,
}

impl Signs {
    /// By numbers of ones; all positive unless `alternate`.
    pub fn new(half: &Symmetric, alternate: bool) -> Self {
        let words = super::super::square::words::list(half.axis.longest);
        let by_run = half.axis.runs.iter().map(|run| {
            let tile = |t: usize| {
                let (at, valid) = run.tile(t);
                let odd = |i: usize| u8::from(alternate) & (words[at + i].count_ones() + run.ones) as u8 & 1;
                (0..valid).fold(0, |bits, i| bits | odd(i) << i)
            };
            (0..run.tiles()).map(tile).collect()
        });
        Self { by_run: by_run.collect() }
    }

    /// The signs of a row of a tile.
    #[inline(always)]
    fn row(&self, (a, b): (usize, usize), [r, c]: [usize; 2], i: usize) -> u8 {
        let row = if self.by_run[a][r] >> i & 1 == 1 { u8::MAX } else { 0 };
        self.by_run[b][c] ^ row
    }
}

/// The sum of the squares of one block, the mirror image included, without the sign of the middle.
pub struct Squares<'a> {
    /// The matrix.
    pub half: &'a Symmetric,
    /// Its signs.
    pub signs: &'a Signs,
    /// The block.
    pub block: (usize, usize),
    /// The vector.
    pub vector: *const u64,
    /// The prime.
    pub prime: ShortPrime,
    /// What the squares are weighed by, unless by nothing.
    pub weights: Option<&'a HalfWeights>,
}

/// The sum of lanes, all below the prime, twice off the diagonal.
fn total(prime: ShortPrime, lanes: &[u64], (a, b): (usize, usize)) -> u64 {
    let sum: u128 = lanes.iter().map(|&x| u128::from(x)).sum();
    (sum * (1 + u128::from(a != b)) % u128::from(prime.value())) as u64
}

impl NeighborKernel for Squares<'_> {
    type Output = u64;

    #[inline(always)]
    fn run<A: Neighbors>(self, a: A) -> u64 {
        let runs = &self.half.axis.runs;
        let [rows, columns] = [runs[self.block.0], runs[self.block.1]];
        let mut sum = a.zero();
        for r in 0..rows.tiles() {
            let mut squares = [a.zero(); 2];
            for c in 0..columns.tiles() {
                // SAFETY: the block lies in the vector.
                unsafe {
                    let tile = self.vector.add(self.half.tile(self.block, r, c));
                    for at in (0..TILE_WORDS).step_by(A::LANES) {
                        let x = a.canonical(a.fold(a.load(tile.add(at))));
                        let signs = self.signs.row(self.block, [r, c], at / TILE) >> (at % TILE);
                        let mut other = a.negate(x, signs);
                        if let Some(weights) = self.weights {
                            let power = *weights.beside(0, self.block.0, rows.tile(r).0).add(at / TILE);
                            let powers = weights.beside(1, self.block.1, columns.tile(c).0).add(at % TILE);
                            other = product(a, product(a, x, a.splat(power)), a.load(powers));
                            other = a.canonical(other);
                        }
                        squares = a.multiply_add(squares, x, other);
                    }
                }
            }
            sum = a.fold(a.add(sum, a.reduce(squares)));
        }
        let mut lanes = [0; TILE];
        // SAFETY: a register has eight words at most.
        unsafe { a.store(lanes.as_mut_ptr(), a.canonical(sum)) };
        total(self.prime, &lanes, self.block)
    }
}

/// The sums of the squares of one block by all primes, as in [`Squares`]; none if an element contradicts the spare prime.
pub struct LiftedSquares<'a> {
    /// The primes that elements are found by, the spare one, the others.
    pub primes: &'a [ShortPrime],
    /// From the first to the others.
    pub lifting: &'a Lifting,
    /// The matrix.
    pub half: &'a Symmetric,
    /// Its signs.
    pub signs: &'a Signs,
    /// The block.
    pub block: (usize, usize),
    /// The vectors by the known primes and the spare one.
    pub vectors: &'a [*const u64],
}

impl NeighborKernel for LiftedSquares<'_> {
    type Output = Option<Vec<u64>>;

    #[inline(always)]
    fn run<A: Neighbors>(self, a: A) -> Option<Vec<u64>> {
        let Lifting { inverses, reciprocals, products, .. } = self.lifting;
        let (known, others) = self.primes.split_at(inverses.len());
        let runs = &self.half.axis.runs;
        let mut sums = [a.zero(); MOST_PRIMES];
        for r in 0..runs[self.block.0].tiles() {
            let mut squares = [[a.zero(); 2]; MOST_PRIMES];
            for c in 0..runs[self.block.1].tiles() {
                let tile = self.half.tile(self.block, r, c);
                for at in (0..TILE_WORDS).step_by(A::LANES) {
                    let signs = self.signs.row(self.block, [r, c], at / TILE) >> (at % TILE);
                    let mut digits = [a.zero(); MOST_KNOWN];
                    for (i, &prime) in known.iter().enumerate() {
                        let a = a.modulo(prime);
                        let x = self.element(a, i, tile + at);
                        squares[i] = a.multiply_add(squares[i], x, a.negate(x, signs));
                        let digit = a.multiply_add([a.zero(); 2], x, a.splat(inverses[i]));
                        digits[i] = a.canonical(a.reduce(digit));
                    }
                    let whole = a.whole(&digits[..known.len()], reciprocals);
                    for (j, &prime) in others.iter().enumerate() {
                        let a = a.modulo(prime);
                        let row = &products[j];
                        let mut sum = a.multiply_add([a.zero(); 2], whole, a.splat(row[known.len()]));
                        for i in 0..known.len() {
                            sum = a.multiply_add(sum, digits[i], a.splat(row[i]));
                        }
                        let x = a.canonical(a.reduce(sum));
                        if j == 0 && a.differ(x, self.element(a, known.len(), tile + at)) {
                            return None;
                        }
                        let k = known.len() + j;
                        squares[k] = a.multiply_add(squares[k], x, a.negate(x, signs));
                    }
                }
            }
            for (k, &prime) in self.primes.iter().enumerate() {
                let a = a.modulo(prime);
                sums[k] = a.fold(a.add(sums[k], a.reduce(squares[k])));
            }
        }
        let totals = self.primes.iter().enumerate().map(|(k, &prime)| {
            let a = a.modulo(prime);
            let mut lanes = [0; TILE];
            // SAFETY: a register has eight words at most.
            unsafe { a.store(lanes.as_mut_ptr(), a.canonical(sums[k])) };
            total(prime, &lanes, self.block)
        });
        Some(totals.collect())
    }
}

impl LiftedSquares<'_> {
    /// Residues out of one of the vectors.
    #[inline(always)]
    fn element<A: Neighbors>(&self, a: A, vector: usize, at: usize) -> A::Register {
        // SAFETY: the block lies in each vector.
        a.canonical(a.fold(unsafe { a.load(self.vectors[vector].add(at)) }))
    }
}

/// A row of tiles of the longest run has no more squares in a lane than can be summed.
pub const LONGEST_RUN: usize = 16;
const _: () = assert!(super::super::square::words::words(LONGEST_RUN) + 2 * TILE <= PRODUCTS);
