//! A sweep over one row: the blocks in between, and both ends of a path or the seam of a ring.
//!
//! Source: the operator is that of [`super`].

use super::Diagonals;
use super::kernel::{Butterfly, Chances, Fixed, Leaf, SiteBlock, SitePass, Way, folds, program};
use crate::Result;
use crate::numeric::dispatch::{Kernel, Plain};
use crate::numeric::ring::Ring;
use crate::parallel::fork;
use crate::square::words::words;
use crate::strip::Context;

/// Blocks of words of at most so many symbols are worked on as one: 1597 elements, 100 kB with eight lanes.
const BLOCK: usize = 15;
/// Blocks of more elements than this are divided among threads.
pub const GRAIN: usize = 1 << 12;

/// The factors of both diagonals, for one ring.
#[derive(Clone, Copy, Debug)]
enum RowPair<E> {
    /// King: neither is allowed.
    Both,
    /// Triangular: only the falling one is an edge.
    Falling,
    /// Chances, by `(rising, falling)`.
    Chances(E, E),
}

/// A row being swept: its ring, its diagonals and the programs of its blocks.
pub struct RowSweep<'a, R: Ring> {
    context: Context<'a, R>,
    pair: RowPair<R::Element>,
    /// Sites of the row.
    width: usize,
    closed: bool,
    programs: &'a Programs,
}

/// The programs of the blocks of a row, by way: for the longest words and for those of one symbol less. No other words come
/// before a block: the sites of longer words leave words of one and of two symbols less.
#[derive(Clone, Debug)]
pub struct Programs([[Vec<SitePass>; 2]; 2]);

impl Programs {
    /// The programs for rows of this width, with so many symbols in registers.
    pub fn new(width: usize, leaf: usize) -> Self {
        let longest = BLOCK.min(width);
        Self([Way::Down, Way::Up].map(|way| [0, 1].map(|less| program(way, longest - less, leaf, width))))
    }
}

/// The symbols that the registers hold.
pub fn leaf<R: Ring>(context: Context<R>, diagonals: Diagonals) -> usize {
    match diagonals {
        Diagonals::Both | Diagonals::Falling => context.weight.ring.dispatch(context.level, Leaf),
        Diagonals::Neither | Diagonals::Random => Leaf.run(Plain(context.weight.ring)),
    }
}

impl<'a, R: Ring> RowSweep<'a, R> {
    /// The sweep of one row.
    pub fn new(
        context: Context<'a, R>,
        diagonals: Diagonals,
        width: usize,
        closed: bool,
        programs: &'a Programs,
    ) -> Self {
        let (ring, falling) = (&context.weight.ring, context.weight.second);
        let pair = match diagonals {
            Diagonals::Both => RowPair::Both,
            Diagonals::Falling => RowPair::Falling,
            Diagonals::Neither => RowPair::Chances(ring.one(), ring.one()),
            // Both ends of the falling diagonal can be occupied where the rising one was drawn, and the other way round.
            Diagonals::Random => RowPair::Chances(falling, ring.complement(falling)),
        };
        Self { context, pair, width, closed, programs }
    }

    /// Sweeps the row: from 0 x (path) or 0 0 x (ring) to y 0 or 0 y 0 on the way down, and back on the way up.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] when the caller says so.
    pub fn row(&self, way: Way, x: &mut [R::Element]) -> Result<()> {
        if self.closed { self.ring(way, x, self.width) } else { self.path(way, x, self.width + 1) }?;
        self.context.progress.advance((self.width * x.len()) as u64)
    }

    fn arithmetic(&self) -> &'a R {
        &self.context.weight.ring
    }

    fn sum(&self, a: R::Element, b: R::Element) -> R::Element {
        let ring = self.arithmetic();
        ring.fold(ring.add(a, b))
    }

    fn rising(&self, x: R::Element) -> R::Element {
        match self.pair {
            RowPair::Both => self.arithmetic().zero(),
            RowPair::Falling => x,
            RowPair::Chances(rising, _) => self.arithmetic().mul(x, rising),
        }
    }

    fn falling(&self, x: R::Element) -> R::Element {
        match self.pair {
            RowPair::Both | RowPair::Falling => self.arithmetic().zero(),
            RowPair::Chances(_, falling) => self.arithmetic().mul(x, falling),
        }
    }

    /// The chances of one way: down, old behind is the falling diagonal's upper end; up, it is the rising one's.
    fn chances(way: Way, (rising, falling): (R::Element, R::Element)) -> Chances<R::Element> {
        match way {
            Way::Down => Chances { crossing: falling, between: rising },
            Way::Up => Chances { crossing: rising, between: falling },
        }
    }

    /// The sites between the first symbol and the last, on from a prefix ending in 0 with `k` symbols to come.
    fn inner(&self, way: Way, block: &mut [R::Element], k: usize) -> Result<()> {
        if k <= BLOCK.min(self.width) {
            return self.block(way, block, k);
        }
        self.context.progress.check()?;
        if way == Way::Down {
            self.butterfly(way, block, k);
        }
        self.deeper(way, block, k)?;
        if way == Way::Up {
            self.butterfly(way, block, k);
        }
        Ok(())
    }

    /// The same without the first site.
    fn deeper(&self, way: Way, block: &mut [R::Element], k: usize) -> Result<()> {
        let (zero, one) = block.split_at_mut(words(k - 1));
        let (left, right) =
            fork(zero.len() > GRAIN, || self.inner(way, zero, k - 1), || self.after_one(way, one, k.saturating_sub(2)));
        left.and(right)
    }

    /// On from a prefix ending in 1 0: the site between that 1 and a 1 ahead, then the others.
    fn after_one(&self, way: Way, block: &mut [R::Element], k: usize) -> Result<()> {
        if way == Way::Up {
            self.inner(way, block, k)?;
        }
        if k > 0 {
            self.between(way, &mut block[words(k - 1)..]);
        }
        if way == Way::Down { self.inner(way, block, k) } else { Ok(()) }
    }

    /// `a <- p a` on the words 1 0 1 ..
    fn between(&self, way: Way, block: &mut [R::Element]) {
        match (self.pair, way) {
            (RowPair::Both, _) | (RowPair::Falling, Way::Up) => block.fill(self.arithmetic().zero()),
            (RowPair::Falling, Way::Down) => {}
            (RowPair::Chances(rising, falling), way) => {
                let chances = Self::chances(way, (rising, falling));
                block.iter_mut().for_each(|x| *x = self.arithmetic().mul(*x, chances.between));
            }
        }
    }

    /// A block that is worked on as one.
    fn block(&self, way: Way, items: &mut [R::Element], k: usize) -> Result<()> {
        let program = &self.programs.0[usize::from(way == Way::Up)][BLOCK.min(self.width) - k];
        let (ring, level) = (self.arithmetic(), self.context.level);
        match (self.pair, way) {
            (RowPair::Both, _) => {
                ring.dispatch(level, SiteBlock { program, items, way, factors: Fixed::<false, false> })
            }
            (RowPair::Falling, Way::Down) => {
                ring.dispatch(level, SiteBlock { program, items, way, factors: Fixed::<false, true> });
            }
            (RowPair::Falling, Way::Up) => {
                ring.dispatch(level, SiteBlock { program, items, way, factors: Fixed::<true, false> });
            }
            (RowPair::Chances(rising, falling), _) => {
                SiteBlock { program, items, way, factors: Self::chances(way, (rising, falling)) }.go(Plain(*ring));
            }
        }
        Ok(())
    }

    /// `(a, b) <- (a + b, a + q b)` at the first symbol to come, where a 0 follows.
    fn butterfly(&self, way: Way, block: &mut [R::Element], k: usize) {
        let (zero, one) = block.split_at_mut(words(k - 1));
        self.streams(way, zero, one, folds(k, self.width));
    }

    fn streams(&self, way: Way, zero: &mut [R::Element], one: &mut [R::Element], fold: bool) {
        if one.len() > 2 * GRAIN {
            let half = one.len() / 2;
            let ((zero, zero_rest), (one, one_rest)) = (zero.split_at_mut(half), one.split_at_mut(half));
            fork(true, || self.streams(way, zero, one, fold), || self.streams(way, zero_rest, one_rest, fold));
            return;
        }
        let (ring, level) = (self.arithmetic(), self.context.level);
        match (self.pair, way) {
            (RowPair::Both, _) => ring.dispatch(level, Butterfly { zero, one, fold, factors: Fixed::<false, false> }),
            (RowPair::Falling, Way::Down) => {
                ring.dispatch(level, Butterfly { zero, one, fold, factors: Fixed::<false, true> });
            }
            (RowPair::Falling, Way::Up) => {
                ring.dispatch(level, Butterfly { zero, one, fold, factors: Fixed::<true, false> });
            }
            (RowPair::Chances(rising, falling), _) => {
                let factors = Self::chances(way, (rising, falling));
                Butterfly { zero, one, fold: true, factors }.go(Plain(*ring));
            }
        }
    }

    /// A row of a path: words of `k` symbols, the old symbol c behind the first site or before the last being 0.
    fn path(&self, way: Way, block: &mut [R::Element], k: usize) -> Result<()> {
        let (zero, one) = block.split_at_mut(words(k - 1));
        if way == Way::Down {
            one.copy_from_slice(&zero[..one.len()]);
            self.deeper(way, block, k)?;
            each_last(block, k, &|pair| pair[0] = self.sum(pair[0], pair[1]));
        } else {
            each_last(block, k, &|pair| pair[1] = pair[0]);
            self.deeper(way, block, k)?;
            let (zero, one) = block.split_at_mut(words(k - 1));
            self.add(zero, one);
        }
        Ok(())
    }

    /// `a <- a + b`.
    fn add(&self, zero: &mut [R::Element], one: &[R::Element]) {
        if one.len() > 2 * GRAIN {
            let half = one.len() / 2;
            let (zero, zero_rest) = zero.split_at_mut(half);
            fork(true, || self.add(zero, &one[..half]), || self.add(zero_rest, &one[half..]));
            return;
        }
        zero.iter_mut().zip(one).for_each(|(a, b)| *a = self.sum(*a, *b));
    }

    /// A row of a ring of `n` sites, words of `n + 2` symbols: 0 0 .., 0 1 0 .., 1 0 ...
    fn ring(&self, way: Way, block: &mut [R::Element], n: usize) -> Result<()> {
        let (x, rest) = block.split_at_mut(words(n));
        let (y, l) = rest.split_at_mut(words(n - 1));
        if way == Way::Down {
            self.open_front(x, y, l, n);
        } else {
            self.open_back(x, Some(l), n);
            self.open_back(y, None, n - 1);
        }
        let (first, second) = fork(
            x.len() > GRAIN,
            || self.inner(way, x, n),
            || self.inner(way, l, n).and_then(|()| self.after_one(way, y, n - 1)),
        );
        first.and(second)?;
        if way == Way::Down {
            self.close_back(x, Some(l), n);
            self.close_back(y, None, n - 1);
        } else {
            self.close_front(x, y, l, n);
        }
        Ok(())
    }

    /// From words 0 0 x to x_1 y_1 x: the first site, at the front of the seam.
    fn open_front(&self, x: &mut [R::Element], y: &mut [R::Element], l: &mut [R::Element], n: usize) {
        let half = words(n - 1);
        y.copy_from_slice(&x[..half]);
        each_last(y, n - 1, &|pair| pair[1] = self.falling(pair[1]));
        l[..half].fill(self.arithmetic().zero());
        l[half..].copy_from_slice(&x[half..]);
        x[half..].fill(self.arithmetic().zero());
    }

    /// From words x_n x_1 y, both ends of the row new, to 0 0 y.
    fn close_front(&self, x: &mut [R::Element], y: &mut [R::Element], l: &mut [R::Element], n: usize) {
        let half = words(n - 1);
        for ((x, y), l) in x.iter_mut().zip(y.iter_mut()).zip(l.iter_mut()) {
            *x = self.sum(self.sum(*x, *y), *l);
        }
        for (x, l) in x[half..].iter_mut().zip(&l[half..]) {
            *x = self.sum(*x, self.falling(*l));
        }
        each_last(&mut x[half..], n - 2, &|pair| pair[1] = self.arithmetic().zero());
    }

    /// At the back of the seam: sums over x_1 in front and the last old symbol. `l` are the words with x_1 = 1, which exist
    /// where y_1 = 0.
    fn close_back(&self, x: &mut [R::Element], l: Option<&mut [R::Element]>, k: usize) {
        match (k, l) {
            (1 | 2, Some(l)) => {
                x[0] = self.sum(self.sum(x[0], x[1]), self.sum(l[0], l[1]));
                x[1] = self.arithmetic().zero();
                if k == 2 {
                    x[2] = self.sum(x[2], self.rising(l[2]));
                }
                l.fill(self.arithmetic().zero());
            }
            (1 | 2, None) => {
                x[0] = self.sum(x[0], x[1]);
                x[1..].fill(self.arithmetic().zero());
            }
            (_, l) => self.halves(x, l, k, &|x, l, k| self.close_back(x, l, k)),
        }
    }

    /// At the back of the seam: sets the last site and remembers its old symbol in front.
    fn open_back(&self, x: &mut [R::Element], l: Option<&mut [R::Element]>, k: usize) {
        match (k, l) {
            (1 | 2, Some(l)) => {
                x[1] = x[0];
                if k == 2 {
                    (l[2], x[2]) = (x[2], self.arithmetic().zero());
                }
            }
            (1 | 2, None) => x[1] = self.rising(x[0]),
            (_, l) => self.halves(x, l, k, &|x, l, k| self.open_back(x, l, k)),
        }
    }

    #[allow(clippy::type_complexity)]
    fn halves(
        &self,
        x: &mut [R::Element],
        l: Option<&mut [R::Element]>,
        k: usize,
        visit: &(dyn Fn(&mut [R::Element], Option<&mut [R::Element]>, usize) + Sync),
    ) {
        let (x0, x1) = x.split_at_mut(words(k - 1));
        let (l0, l1) = l.map(|l| l.split_at_mut(words(k - 1))).unzip();
        fork(x0.len() > GRAIN, || visit(x0, l0, k - 1), || visit(x1, l1, k - 2));
    }
}

/// Calls `visit` with each block of the last symbol: the words that end in 0 and in 1, alike otherwise.
pub fn each_last<E: Send>(block: &mut [E], k: usize, visit: &(impl Fn(&mut [E]) + Sync)) {
    match k {
        0 => {}
        1 => visit(block),
        _ => {
            let (zero, one) = block.split_at_mut(words(k - 1));
            fork(zero.len() > GRAIN, || each_last(zero, k - 1, visit), || each_last(one, k - 2, visit));
        }
    }
}

/// Moves the words of `k` symbols that end in 0 to the front, in their order: each is then at its rank without that 0.
pub fn compact<E: Copy>(block: &mut [E], k: usize) {
    fn go<E: Copy>(block: &mut [E], at: usize, k: usize, to: &mut usize) {
        if k < 2 {
            block[*to] = block[at];
            *to += 1;
            return;
        }
        go(block, at, k - 1, to);
        go(block, at + words(k - 1), k - 2, to);
    }
    go(block, 0, k, &mut 0);
}
