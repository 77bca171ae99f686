//! The inner loops of a sweep over sites: a program of butterflies over one block, compiled for each set of vector instructions.
//!
//! A block holds the words on from a prefix ending in 0, `k` symbols each, in lexicographic order. On the way down, site by
//! site, the first symbol to come is decided first, on the way up last:
//!
//!   butterfly   (a, b) <- (a + b, a + q b)   on the words 0 0 .. and 1 0 ..;      between   a <- p a   on the words 1 0 1 ..
//!
//! Words of up to six symbols, the leaves, are done in registers and folded there. Of the levels above, those of 8j, 8j + 1
//! and 8j + 2 symbols fold their sums. A word visits levels in steps of one or two and is left alone on a level only where
//! it is 0 1 .., which the level below adds to; so it is folded once in every such three. Between two folds lie at most five
//! levels and those of a leaf: at most 2^7 folded elements are added, fewer than the 511 that a lane holds.
//!
//! Source: the operator is that of [`super`]; when to fold is derived here.

use crate::numeric::dispatch::{Arithmetic, Kernel, Plain};
use crate::numeric::ring::Ring;
use crate::square::words::words;

/// The most symbols of a leaf: 21 words, where 7 symbols have 34, more than any registers.
pub const MOST_IN_REGISTERS: usize = 6;

/// Which way a row is swept: from its first site down to its last, or back up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the first site to the last.
    Down,
    /// From the last to the first.
    Up,
}

/// The factors of the two diagonals of a cell for one way.
pub trait DiagonalFactors<A: Arithmetic>: Copy {
    /// `q x`: old behind and new ahead.
    fn crossing(self, a: A, x: A::Register) -> A::Register;
    /// `p x`: new behind and old ahead.
    fn between(self, a: A, x: A::Register) -> A::Register;
}

/// Factors that are zero or one.
#[derive(Clone, Copy, Debug)]
pub struct Fixed<const CROSSING: bool, const BETWEEN: bool>;

impl<A: Arithmetic, const CROSSING: bool, const BETWEEN: bool> DiagonalFactors<A> for Fixed<CROSSING, BETWEEN> {
    #[inline(always)]
    fn crossing(self, a: A, x: A::Register) -> A::Register {
        if CROSSING { x } else { a.zero() }
    }

    #[inline(always)]
    fn between(self, a: A, x: A::Register) -> A::Register {
        if BETWEEN { x } else { a.zero() }
    }
}

/// Any other factors.
#[derive(Clone, Copy, Debug)]
pub struct Chances<E> {
    /// Of old behind and new ahead.
    pub crossing: E,
    /// Of new behind and old ahead.
    pub between: E,
}

impl<R: Ring> DiagonalFactors<Plain<R>> for Chances<R::Element> {
    #[inline(always)]
    fn crossing(self, a: Plain<R>, x: R::Element) -> R::Element {
        a.0.mul(a.0.fold(x), self.crossing)
    }

    #[inline(always)]
    fn between(self, a: Plain<R>, x: R::Element) -> R::Element {
        a.0.mul(a.0.fold(x), self.between)
    }
}

/// One pass over a part of a block.
#[derive(Clone, Copy, Debug)]
pub struct SitePass {
    pass: SiteStep,
    /// Where the part begins.
    at: u32,
    /// Symbols of its words.
    k: u32,
    fold: bool,
}

#[derive(Clone, Copy, Debug)]
enum SiteStep {
    Butterfly,
    Between,
    Leaf,
}

/// Whether sums over words of `k` symbols are folded, in rows of `width` sites.
pub fn folds(k: usize, width: usize) -> bool {
    k % 8 < 3 || k + 2 >= width
}

/// The passes over a block of words of `k` symbols, the last `leaf` of them in registers.
pub fn program(way: Way, k: usize, leaf: usize, width: usize) -> Vec<SitePass> {
    let mut program = Vec::new();
    descend(
        way,
        0,
        k,
        &mut |pass, at, k| {
            program.push(SitePass { pass, at: at as u32, k: k as u32, fold: folds(k, width) });
        },
        leaf,
    );
    program
}

fn descend(way: Way, at: usize, k: usize, push: &mut impl FnMut(SiteStep, usize, usize), leaf: usize) {
    if k <= leaf {
        return push(SiteStep::Leaf, at, k);
    }
    let one = at + words(k - 1);
    if way == Way::Down {
        push(SiteStep::Butterfly, at, k);
        push(SiteStep::Between, one, k - 2);
    }
    descend(way, at, k - 1, push, leaf);
    descend(way, one, k - 2, push, leaf);
    if way == Way::Up {
        push(SiteStep::Between, one, k - 2);
        push(SiteStep::Butterfly, at, k);
    }
}

/// A program and the block it acts on.
pub struct SiteBlock<'a, E, F> {
    /// The passes.
    pub program: &'a [SitePass],
    /// As many elements as the program's words.
    pub items: &'a mut [E],
    /// The way of the sweep.
    pub way: Way,
    /// The diagonals.
    pub factors: F,
}

impl<E, const C: bool, const B: bool> Kernel<E> for SiteBlock<'_, E, Fixed<C, B>> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic<Element = E>>(self, a: A) {
        self.go(a);
    }
}

impl<E, F> SiteBlock<'_, E, F> {
    /// Runs the program.
    #[inline(always)]
    pub fn go<A: Arithmetic<Element = E>>(self, a: A)
    where
        F: DiagonalFactors<A>,
    {
        for &SitePass { pass, at, k, fold } in self.program {
            let (at, k) = (at as usize, k as usize);
            let block = &mut self.items[at..at + words(k)];
            match pass {
                SiteStep::Butterfly => {
                    let (zero, one) = block.split_at_mut(words(k - 1));
                    Butterfly { zero, one, fold, factors: self.factors }.go(a);
                }
                SiteStep::Between if k == 0 => {}
                SiteStep::Between => {
                    for x in &mut block[words(k - 1)..] {
                        a.write(x, self.factors.between(a, a.read(x)));
                    }
                }
                SiteStep::Leaf => match k {
                    0 => leaf::<A, F, 1>(a, self.factors, self.way, block, |_, _, _| ()),
                    1 => leaf::<A, F, 2>(a, self.factors, self.way, block, |_, _, _| ()),
                    2 => leaf::<A, F, 3>(a, self.factors, self.way, block, sites_2),
                    // What the registers do not hold is not even compiled: the conditions are constants.
                    3 => {
                        if const { words(3) <= A::HELD } {
                            leaf::<A, F, 5>(a, self.factors, self.way, block, sites_3);
                        }
                    }
                    4 => {
                        if const { words(5) <= A::HELD } {
                            leaf::<A, F, 8>(a, self.factors, self.way, block, sites_4);
                        }
                    }
                    5 => {
                        if const { words(5) <= A::HELD } {
                            leaf::<A, F, 13>(a, self.factors, self.way, block, sites_5);
                        }
                    }
                    _ => {
                        if const { words(6) <= A::HELD } {
                            leaf::<A, F, 21>(a, self.factors, self.way, block, sites_6);
                        }
                    }
                },
            }
        }
    }
}

/// The words of `N` = f(k) in registers.
#[inline(always)]
fn leaf<A: Arithmetic, F: DiagonalFactors<A>, const N: usize>(
    a: A,
    factors: F,
    way: Way,
    block: &mut [A::Element],
    sites: impl Fn(Sites<A, F>, &mut [A::Register; N], usize),
) {
    let block = &mut block[..N];
    let mut x = [a.zero(); N];
    for i in 0..N {
        x[i] = a.read(&block[i]);
    }
    sites(Sites { a, factors, down: way == Way::Down }, &mut x, 0);
    for i in 0..N {
        a.write(&mut block[i], a.fold(x[i]));
    }
}

/// What the sites of a leaf need.
#[derive(Clone, Copy)]
struct Sites<A, F> {
    a: A,
    factors: F,
    down: bool,
}

impl<A: Arithmetic, F: DiagonalFactors<A>> Sites<A, F> {
    #[inline(always)]
    fn butterfly<const N: usize>(self, x: &mut [A::Register; N], at: usize, k: usize) {
        let one = at + words(k - 1);
        for i in 0..words(k - 2) {
            let (p, q) = (x[at + i], x[one + i]);
            x[at + i] = self.a.add(p, q);
            x[one + i] = self.a.add(p, self.factors.crossing(self.a, q));
        }
    }

    #[inline(always)]
    fn between<const N: usize>(self, x: &mut [A::Register; N], at: usize, k: usize) {
        if k > 0 {
            #[expect(clippy::needless_range_loop, reason = "indices that are constants once it is unrolled")]
            for i in at + words(k - 1)..at + words(k) {
                x[i] = self.factors.between(self.a, x[i]);
            }
        }
    }
}

macro_rules! sites {
    ($($k:literal: $name:ident = $zero:ident, $one:ident;)*) => {$(
        #[inline(always)]
        fn $name<A: Arithmetic, F: DiagonalFactors<A>, const N: usize>(s: Sites<A, F>, x: &mut [A::Register; N], at: usize) {
            let one = at + words($k - 1);
            if s.down {
                s.butterfly(x, at, $k);
                s.between(x, one, $k - 2);
            }
            $zero(s, x, at);
            $one(s, x, one);
            if !s.down {
                s.between(x, one, $k - 2);
                s.butterfly(x, at, $k);
            }
        }
    )*};
}

#[inline(always)]
fn nothing<A: Arithmetic, F: DiagonalFactors<A>, const N: usize>(_: Sites<A, F>, _: &mut [A::Register; N], _: usize) {}

sites! {
    2: sites_2 = nothing, nothing;
    3: sites_3 = sites_2, nothing;
    4: sites_4 = sites_3, sites_2;
    5: sites_5 = sites_4, sites_3;
    6: sites_6 = sites_5, sites_4;
}

/// `(a, b) <- (a + b, a + q b)` over two streams; `zero` may be longer.
pub struct Butterfly<'a, E, F> {
    /// The words 0 0 .. first.
    pub zero: &'a mut [E],
    /// The words 1 0 ..
    pub one: &'a mut [E],
    /// Whether the sums are folded.
    pub fold: bool,
    /// The diagonals.
    pub factors: F,
}

impl<E, const C: bool, const B: bool> Kernel<E> for Butterfly<'_, E, Fixed<C, B>> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic<Element = E>>(self, a: A) {
        self.go(a);
    }
}

impl<E, F> Butterfly<'_, E, F> {
    /// Does it.
    #[inline(always)]
    pub fn go<A: Arithmetic<Element = E>>(self, a: A)
    where
        F: DiagonalFactors<A>,
    {
        for (p, q) in self.zero.iter_mut().zip(self.one) {
            let (x, y) = (a.read(p), a.read(q));
            let (mut sum, mut rest) = (a.add(x, y), a.add(x, self.factors.crossing(a, y)));
            if self.fold {
                (sum, rest) = (a.fold(sum), a.fold(rest));
            }
            a.write(p, sum);
            a.write(q, rest);
        }
    }
}

/// Asks for the most symbols that the registers hold.
#[derive(Clone, Copy, Debug)]
pub struct Leaf;

impl<E> Kernel<E> for Leaf {
    type Output = usize;

    #[inline(always)]
    fn run<A: Arithmetic<Element = E>>(self, _: A) -> usize {
        match A::HELD {
            21.. => 6,
            13.. => 5,
            5.. => 3,
            _ => 2,
        }
    }
}
