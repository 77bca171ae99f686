//! Runs a program of passes (`program`) over strided items of neighboring words, one prime at a time.
//!
//! An item is what belongs to one word: `width` neighboring words of a vector, the next item `stride` words behind it. Besides
//! T and its halves there are superset sums, y(w) = sum over words v with w & v = w of x(v): symbol by symbol
//! x(..0..) += x(..1..), where that is a word. They take the course of T downwards.
//!
//! Source: derived here, see `docs/mathematics/counting.md`.

use super::super::square::kernel::streams;
use super::super::square::network::{LONGEST, down, up, whole};
use super::super::square::program::{Action, BlockPass, FOLD_IN, FOLD_MIDDLE, FOLD_OUT};
use super::super::square::words::words;
use crate::numeric::dispatch::Arithmetic;
use crate::numeric::neighbors::{NeighborKernel, Neighbors};

/// A program and what it acts on.
#[derive(Clone, Copy)]
pub struct Walk<'a> {
    /// The passes, over as many items as there are words of their length.
    pub program: &'a [BlockPass],
    /// The first item.
    pub items: *mut u64,
    /// From one item to the next.
    pub stride: usize,
    /// Words of an item, a multiple of eight.
    pub width: usize,
    /// Superset sums instead of T.
    pub supersets: bool,
}

impl NeighborKernel for Walk<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Neighbors>(self, a: A) {
        for operation in self.program {
            // SAFETY: whoever made the walk vouched that the items are there, and his alone.
            unsafe {
                match operation.order {
                    0 => self.operate::<A, 1, 1>(a, 0, *operation),
                    1 => self.operate::<A, 2, 1>(a, 1, *operation),
                    2 => self.operate::<A, 3, 2>(a, 2, *operation),
                    3 => self.operate::<A, 5, 3>(a, 3, *operation),
                    4 => self.operate::<A, 8, 5>(a, 4, *operation),
                    5 => self.operate::<A, 13, 8>(a, 5, *operation),
                    _ => {
                        if const { words(LONGEST) <= A::HELD } {
                            self.operate::<A, 21, 13>(a, 6, *operation)
                        }
                    }
                }
            }
        }
    }
}

impl Walk<'_> {
    #[inline(always)]
    unsafe fn operate<A: Neighbors, const N: usize, const M: usize>(&self, a: A, n: usize, operation: BlockPass) {
        // The network is a constant in each arm, so that the loops have no choice left.
        // SAFETY: the caller's.
        unsafe {
            match (operation.action, self.supersets) {
                (Action::Down, false) => self.pass::<A, N, M>(a, n, operation, [Network::Down, Network::Whole]),
                (Action::Down, true) => {
                    self.pass::<A, N, M>(a, n, operation, [Network::OpenSupersets, Network::Supersets])
                }
                (Action::Up, _) => self.pass::<A, N, M>(a, n, operation, [Network::Up, Network::Whole]),
                (Action::Turn, _) => unreachable!("rows turn between two walks"),
                (Action::Gather, _) => self.leaf::<A, N>(a, n, operation, Network::Up),
                (Action::Scatter, false) => self.leaf::<A, N>(a, n, operation, Network::Down),
                (Action::Scatter, true) => self.leaf::<A, N>(a, n, operation, Network::OpenSupersets),
                (_, true) => self.leaf::<A, N>(a, n, operation, Network::Supersets),
                (Action::Rows, false) => self.leaf::<A, N>(a, n, operation, Network::Twice),
                (_, false) => self.leaf::<A, N>(a, n, operation, Network::Whole),
            }
        }
    }

    /// The last symbols of the words.
    #[inline(always)]
    unsafe fn leaf<A: Neighbors, const N: usize>(&self, a: A, n: usize, operation: BlockPass, network: Network) {
        debug_assert_eq!(N, words(n));
        for i in (0..self.width).step_by(A::LANES) {
            // SAFETY: the items from `at` on are the walk's.
            unsafe {
                let start = self.items.add(operation.at as usize * self.stride + i);
                let mut x = [a.zero(); N];
                for (s, x) in x.iter_mut().enumerate() {
                    *x = a.load(start.add(s * self.stride));
                }
                fold(a, &mut x, operation.folds & FOLD_IN);
                network.apply(a, &mut x, n, operation.folds);
                fold(a, &mut x, operation.folds & FOLD_OUT);
                for (s, x) in x.into_iter().enumerate() {
                    a.store(start.add(s * self.stride), x);
                }
            }
        }
    }

    /// A pass across streams: all of them where the words go on with 0, those that end in 0 where they go on with 1.
    #[inline(always)]
    unsafe fn pass<A: Neighbors, const N: usize, const M: usize>(
        &self,
        a: A,
        n: usize,
        operation: BlockPass,
        [open, closed]: [Network; 2],
    ) {
        if n < 2 {
            return;
        }
        let rest = operation.length as usize - n;
        let both = if rest == 0 { 1 } else { words(rest - 1) };
        // SAFETY: the run has `length` symbols, and its items are the walk's.
        unsafe {
            let start = self.items.add(operation.at as usize * self.stride);
            let offsets = streams::<N>(n, rest, self.stride);
            for i in 0..both {
                self.across(a, n, start.add(i * self.stride), &offsets, operation.folds, open);
            }
            let offsets = streams::<M>(n - 1, rest + 1, self.stride);
            for i in both..words(rest) {
                self.across(a, n - 1, start.add(i * self.stride), &offsets, operation.folds, closed);
            }
        }
    }

    /// One item of each stream.
    #[inline(always)]
    unsafe fn across<A: Neighbors, const N: usize>(
        &self,
        a: A,
        n: usize,
        start: *mut u64,
        offsets: &[usize; N],
        folds: u8,
        network: Network,
    ) {
        for i in (0..self.width).step_by(A::LANES) {
            // SAFETY: the caller's.
            unsafe {
                let mut x = [a.zero(); N];
                for (x, offset) in x.iter_mut().zip(offsets) {
                    *x = a.load(start.add(offset + i));
                }
                fold(a, &mut x, folds & FOLD_IN);
                network.apply(a, &mut x, n, folds);
                fold(a, &mut x, folds & FOLD_OUT);
                for (x, offset) in x.into_iter().zip(offsets) {
                    a.store(start.add(offset + i), x);
                }
            }
        }
    }
}

/// What is done to the words of `n` symbols in registers.
#[derive(Clone, Copy)]
enum Network {
    Down,
    Up,
    Whole,
    Twice,
    OpenSupersets,
    Supersets,
}

impl Network {
    #[inline(always)]
    fn apply<A: Arithmetic, const N: usize>(self, a: A, x: &mut [A::Register; N], n: usize, folds: u8) {
        match self {
            Self::Down => down(a, x, n),
            Self::Up => up(a, x, n),
            Self::Whole => whole(a, x, n),
            Self::Twice => {
                whole(a, x, n);
                fold(a, x, folds & FOLD_MIDDLE);
                whole(a, x, n);
            }
            Self::OpenSupersets => supersets(a, x, n, false),
            Self::Supersets => supersets(a, x, n, true),
        }
    }
}

#[inline(always)]
fn fold<A: Arithmetic, const N: usize>(a: A, x: &mut [A::Register; N], asked: u8) {
    if asked > 0 {
        for x in x {
            *x = a.fold(*x);
        }
    }
}

/// Superset sums over all symbols, or over all but those that the next symbols decide.
#[inline(always)]
fn supersets<A: Arithmetic, const N: usize>(a: A, x: &mut [A::Register; N], k: usize, closed: bool) {
    match k {
        0 => {}
        1 if closed => supersets1(a, x, 0, true),
        1 => {}
        2 => supersets2(a, x, 0, closed),
        3 => supersets3(a, x, 0, closed),
        4 => supersets4(a, x, 0, closed),
        5 => supersets5(a, x, 0, closed),
        _ => supersets6(a, x, 0, closed),
    }
}

#[inline(always)]
fn supersets0<A: Arithmetic, const N: usize>(_: A, _: &mut [A::Register; N], _: usize, _: bool) {}

#[inline(always)]
fn supersets1<A: Arithmetic, const N: usize>(a: A, x: &mut [A::Register; N], at: usize, closed: bool) {
    if closed {
        x[at] = a.add(x[at], x[at + 1]);
    }
}

macro_rules! superset_networks {
    ($($k:literal: $name:ident = $left:ident, $right:ident;)*) => {$(
        #[inline(always)]
        fn $name<A: Arithmetic, const N: usize>(a: A, x: &mut [A::Register; N], at: usize, closed: bool) {
            for i in at..at + words($k - 2) {
                x[i] = a.add(x[i], x[i + words($k - 1)]);
            }
            $left(a, x, at, closed);
            $right(a, x, at + words($k - 1), closed);
        }
    )*};
}

superset_networks! {
    2: supersets2 = supersets1, supersets0;
    3: supersets3 = supersets2, supersets1;
    4: supersets4 = supersets3, supersets2;
    5: supersets5 = supersets4, supersets3;
    6: supersets6 = supersets5, supersets4;
}

#[cfg(test)]
mod tests {
    use super::super::super::square::program::{Course, Ending, program};
    use super::super::super::square::words::list;
    use super::super::{NeighborOrder, SHORT_STRIDE};
    use super::*;
    use crate::numeric::dispatch::Level;
    use crate::numeric::neighbors::{ShortPrime, TILE, run};
    use crate::numeric::residue::short_primes;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn walks_are_the_operator_and_superset_sums(length in 0usize..13, seed: u64, level in 0usize..3) {
            let prime = ShortPrime::new(short_primes(1).unwrap()[0]).unwrap();
            let level = [Level::Baseline, Level::Avx2, Level::Avx512][level];
            let order = run(level, prime, NeighborOrder);
            let mut word = seed;
            let stride = 3 * TILE;
            let list = list(length);
            let start: Vec<u64> = (0..list.len() * stride).map(|_| {
                word = word.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                prime.fold(word)
            }).collect();
            let sum = |fits: &dyn Fn(u64, u64) -> bool, x: &[u64]| -> Vec<u64> {
                (0..x.len()).map(|k| {
                    let (w, i) = (list[k / stride], k % stride);
                    let terms = list.iter().enumerate().filter(|(_, v)| fits(w, **v));
                    (terms.map(|(s, _)| u128::from(x[s * stride + i])).sum::<u128>() % u128::from(prime.value())) as u64
                }).collect()
            };
            let once = sum(&|w, v| w & v == 0, &start);
            for (course, supersets, expected) in [
                (Course::Down, false, once.clone()),
                (Course::Both, false, sum(&|w, v| w & v == 0, &once)),
                (Course::Down, true, sum(&|w, v| w & v == w, &start)),
            ] {
                let program = program(length, order, SHORT_STRIDE, Ending::Whole, course);
                let mut x = start.clone();
                let walk = Walk { program: &program, items: x.as_mut_ptr(), stride, width: 2 * TILE, supersets };
                run(level, prime, walk);
                for (k, x) in x.iter().enumerate().filter(|(k, _)| k % stride < 2 * TILE) {
                    prop_assert_eq!(x % prime.value(), expected[k]);
                }
                let kept = x.iter().zip(&start).enumerate().filter(|(k, _)| k % stride >= 2 * TILE);
                prop_assert!(kept.map(|(_, pair)| pair).all(|(x, y)| x == y));
            }
        }
    }
}
