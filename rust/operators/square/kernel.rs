//! The inner loops: runs a program over one block, compiled for each set of vector instructions.
//!
//! An item of the block is what belongs to one word: a few neighboring elements, each of which has the same done to it.
//!
//! Source: the butterfly of [`super`], in the order of [`super::program`].

use super::network::{down, up, whole};
use super::program::{Action, BlockPass, FOLD_IN, FOLD_MIDDLE, FOLD_OUT, order};
use super::words::words;
use crate::numeric::dispatch::{Arithmetic, Kernel};

/// A program and the block it acts on.
#[derive(Clone, Copy)]
pub struct PathBlock<'a, E> {
    program: &'a [BlockPass],
    items: *mut E,
    width: usize,
    outside: *mut E,
    offsets: &'a [usize],
}

impl<'a, E> PathBlock<'a, E> {
    /// A block of `width` elements per item. The items are gathered from and scattered to `outside + offsets`, if the program
    /// does that.
    ///
    /// # Safety
    /// There are as many items, and offsets if needed, as words of the length of the program; nobody else uses the elements.
    pub unsafe fn new(
        program: &'a [BlockPass],
        items: *mut E,
        width: usize,
        outside: *mut E,
        offsets: &'a [usize],
    ) -> Self {
        Self { program, items, width, outside, offsets }
    }
}

impl<E> Kernel<E> for PathBlock<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic<Element = E>>(self, a: A) {
        for operation in self.program {
            // SAFETY: whoever made the block vouched that program, items and offsets fit each other.
            unsafe {
                match operation.order {
                    0 => self.operate::<A, 1, 1>(a, 0, *operation),
                    1 => self.operate::<A, 2, 1>(a, 1, *operation),
                    2 => self.operate::<A, 3, 2>(a, 2, *operation),
                    // What the registers do not hold is not even compiled: the conditions are constants.
                    3 => {
                        if const { words(3) <= A::HELD } {
                            self.operate::<A, 5, 3>(a, 3, *operation)
                        }
                    }
                    4 => {
                        if const { words(4) <= A::HELD } {
                            self.operate::<A, 8, 5>(a, 4, *operation)
                        }
                    }
                    5 => {
                        if const { words(5) <= A::HELD } {
                            self.operate::<A, 13, 8>(a, 5, *operation)
                        }
                    }
                    _ => {
                        if const { words(6) <= A::HELD } {
                            self.operate::<A, 21, 13>(a, 6, *operation)
                        }
                    }
                }
            }
        }
    }
}

impl<E> PathBlock<'_, E> {
    /// One operation with a network over `N` words of `n` symbols, `M` of which end in 0.
    #[inline(always)]
    unsafe fn operate<A: Arithmetic<Element = E>, const N: usize, const M: usize>(
        &self,
        a: A,
        n: usize,
        operation: BlockPass,
    ) {
        // SAFETY: the caller's.
        unsafe {
            match operation.action {
                Action::Down => self.pass::<A, N, M>(a, n, operation, false, true),
                Action::Up => self.pass::<A, N, M>(a, n, operation, true, false),
                Action::Turn => self.pass::<A, N, M>(a, n, operation, true, true),
                _ => self.leaf::<A, N>(a, n, operation),
            }
        }
    }

    /// The last symbols of the words: all that are left, or all that are consumed here.
    #[inline(always)]
    unsafe fn leaf<A: Arithmetic<Element = E>, const N: usize>(&self, a: A, n: usize, operation: BlockPass) {
        let BlockPass { action, folds, at, .. } = operation;
        let at = at as usize;
        let gathers = matches!(action, Action::Gather | Action::GatherClosed);
        let scatters = matches!(action, Action::Scatter | Action::ScatterClosed);
        let offsets = if gathers || scatters { &self.offsets[at..at + N] } else { &[] };
        for i in 0..self.width {
            // SAFETY: the items from `at` on lie in the block, and the offsets outside.
            unsafe {
                let start = self.items.add(at * self.width + i);
                let inside = |s: usize| start.add(s * self.width);
                let outside = |s: usize| self.outside.add(*offsets.get_unchecked(s) + i);
                let mut x = if gathers { load::<A, N>(a, outside) } else { load::<A, N>(a, inside) };
                fold(a, &mut x, folds & FOLD_IN);
                match action {
                    Action::Gather => up(a, &mut x, n),
                    Action::Scatter => down(a, &mut x, n),
                    _ => whole(a, &mut x, n),
                }
                if action == Action::Rows {
                    fold(a, &mut x, folds & FOLD_MIDDLE);
                    whole(a, &mut x, n);
                }
                fold(a, &mut x, folds & FOLD_OUT);
                if scatters { store::<A, N>(a, &x, outside) } else { store::<A, N>(a, &x, inside) }
            }
        }
    }

    /// A pass across streams: all of them where the words go on with 0, those that end in 0 where they go on with 1.
    #[inline(always)]
    unsafe fn pass<A: Arithmetic<Element = E>, const N: usize, const M: usize>(
        &self,
        a: A,
        n: usize,
        operation: BlockPass,
        upwards: bool,
        downwards: bool,
    ) {
        if n < 2 {
            return;
        }
        let rest = operation.length as usize - n;
        let both = if rest == 0 { 1 } else { words(rest - 1) };
        let folds = operation.folds;
        // SAFETY: the run has `length` symbols and lies in the block.
        unsafe {
            let mut start = self.items.add(operation.at as usize * self.width);
            let offsets = streams::<N>(n, rest, self.width);
            for _ in 0..both * self.width {
                let mut x = load::<A, N>(a, |s| start.add(offsets[s]));
                fold(a, &mut x, folds & FOLD_IN);
                if upwards {
                    up(a, &mut x, n);
                }
                if downwards {
                    down(a, &mut x, n);
                }
                fold(a, &mut x, folds & FOLD_OUT);
                store::<A, N>(a, &x, |s| start.add(offsets[s]));
                start = start.add(1);
            }
            let offsets = streams::<M>(n - 1, rest + 1, self.width);
            for _ in both * self.width..words(rest) * self.width {
                let mut x = load::<A, M>(a, |s| start.add(offsets[s]));
                fold(a, &mut x, folds & FOLD_IN);
                whole(a, &mut x, n - 1);
                if upwards && downwards {
                    whole(a, &mut x, n - 1);
                }
                fold(a, &mut x, folds & FOLD_OUT);
                store::<A, M>(a, &x, |s| start.add(offsets[s]));
                start = start.add(1);
            }
        }
    }
}

/// Where the runs of the words of `n` symbols begin, when `rest` more symbols follow.
#[inline(always)]
pub fn streams<const N: usize>(n: usize, rest: usize, width: usize) -> [usize; N] {
    let mut offsets = [0; N];
    for j in 1..=n {
        let first = words(j - 1);
        for i in first..words(j) {
            offsets[i] = offsets[i - first] + words(rest + j - 1) * width;
        }
    }
    offsets
}

#[inline(always)]
unsafe fn load<A: Arithmetic, const N: usize>(a: A, place: impl Fn(usize) -> *mut A::Element) -> [A::Register; N] {
    let mut x = [a.zero(); N];
    for s in 0..N {
        // SAFETY: the caller's.
        x[s] = unsafe { a.load(place(s)) };
    }
    x
}

#[inline(always)]
unsafe fn store<A: Arithmetic, const N: usize>(a: A, x: &[A::Register; N], place: impl Fn(usize) -> *mut A::Element) {
    for s in 0..N {
        // SAFETY: the caller's.
        unsafe { a.store(place(s), x[s]) };
    }
}

#[inline(always)]
fn fold<A: Arithmetic, const N: usize>(a: A, x: &mut [A::Register; N], asked: u8) {
    if asked > 0 {
        for s in 0..N {
            x[s] = a.fold(x[s]);
        }
    }
}

/// Asks for the largest order of networks that the registers hold.
#[derive(Clone, Copy, Debug)]
pub struct Order;

impl<E> Kernel<E> for Order {
    type Output = usize;

    #[inline(always)]
    fn run<A: Arithmetic<Element = E>>(self, _: A) -> usize {
        order(A::HELD)
    }
}
