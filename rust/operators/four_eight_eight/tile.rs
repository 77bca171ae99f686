//! A block of the vector that fits a cache, and what is done to it while it is there.
//!
//! A tile holds all words of some neighboring sites, the last of a column and the first of the next one, and one site more:
//! the neighbor, bit `bits - 1` of the number of a word, which is not passed. A turn passes the sites from bit `bits - 2` down
//! to bit 0, where the column ends, and those of the next column back up. Under carry 1 the tile comes with the words without
//! bit `bits - 2` and leaves with those without bit `bits - 1`, in the same places. Several sites are passed at once in
//! registers, in steps over the whole tile first, then over parts of it that fit the first cache.
//!
//! A ring is a path from its second site to its last, and three vectors, one for each way its first diamond can look at both
//! ends of that path. With i, j for an occupied N corner of the second and S corner of the last diamond, that diamond's matrix
//!
//!   T(x, i; y, j) = z^(x + y) for x + y > 0,   (1 + z [i = 0]) (1 + z [j = 0]) for x = y = 0
//!
//! is all ones plus, for x = y = 0, z (2 + z, 1; 1, 0): the vectors begin with any i from x_1 = 0 or 1, with i = 0 from x_1 = 0,
//! and with i = 1 from x_1 = 0. Between columns the first two are the sums over y_1 = 0 and y_1 = 1.
//!
//! Source: derived here from the operator of a column in [`super`].

use super::sites::{Charge, Passed, Unit, begin, begin_carried, end, pass, pass_out, pass_within, without};
use crate::numeric::dispatch::{Arithmetic, Kernel};

/// What a turn does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Whether a column is ended.
    pub down: bool,
    /// Whether a column is begun.
    pub up: bool,
    /// Whether the later half crosses the links to the next column; the earlier half always does.
    pub cross: bool,
}

/// The turn that almost all are.
const FULL: Turn = Turn { down: true, up: true, cross: true };

/// A pass over a part of a tile.
#[derive(Clone, Copy, Debug)]
pub struct ColumnPass {
    pass: ColumnStep,
    /// Sites at once.
    sites: u32,
    /// Elements between the words of a group whose numbers differ by one.
    unit: usize,
    /// Where the part begins, and its length.
    start: usize,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
enum ColumnStep {
    Across { up: bool, cross: bool },
    Turn(Turn),
}

/// The binary logarithm of the elements under carry 0 in a part that stays in the first cache.
const PART: u32 = 8;

/// The passes of a turn, `most` sites at once, over a tile of `2^bits` words of `2^run` elements in each vector.
pub fn program(bits: u32, run: u32, ring: bool, most: u32, turn: Turn) -> Vec<ColumnPass> {
    let base = if ring || turn != FULL { 1 } else { most.min(bits - 1) };
    let part = PART.saturating_sub(run + if ring { 2 } else { 0 });
    let most = if turn.down && !turn.up && !turn.cross { 1 } else { most };
    // Passes on the way down, each with the bits of the blocks it is done in and its sites; the first ones over all of the tile.
    let mut passes = Vec::new();
    let (mut block, mut left) = (bits, bits - 1 - base);
    while left > 0 {
        let sites = left.div_ceil(left.div_ceil(most));
        passes.push((block, sites));
        (block, left) = (block - sites, left - sites);
    }
    let outer = passes.iter().take_while(|&&(block, _)| block > part).count();
    let within = passes.get(outer).map_or(block, |&(block, _)| block);
    let crossing = turn.cross || turn.up;
    let down = |&(block, sites): &(u32, u32), start: usize, words: u32| ColumnPass {
        pass: ColumnStep::Across { up: false, cross: crossing },
        sites,
        unit: 1 << (block - 2 - sites + run),
        start,
        len: 1 << (words + run),
    };
    let up = |&(block, sites): &(u32, u32), start: usize, words: u32| ColumnPass {
        pass: ColumnStep::Across { up: true, cross: turn.cross },
        sites,
        unit: 1 << (block - 1 - sites + run),
        start,
        len: 1 << (words + run),
    };
    let mut program = Vec::new();
    if turn.down {
        program.extend(passes[..outer].iter().map(|pass| down(pass, 0, bits)));
    }
    for at in 0..1usize << (bits - within) {
        let start = at << (within + run);
        if turn.down {
            program.extend(passes[outer..].iter().map(|pass| down(pass, start, within)));
        }
        program.push(ColumnPass {
            pass: ColumnStep::Turn(turn),
            sites: base,
            unit: 1 << run,
            start,
            len: 1 << (within + run),
        });
        if turn.up {
            program.extend(passes[outer..].iter().rev().map(|pass| up(pass, start, within)));
        }
    }
    if turn.up {
        program.extend(passes[..outer].iter().rev().map(|pass| up(pass, 0, bits)));
    }
    program
}

/// The vectors of a tile, one for a path and three for a ring, each in the same distance from the one before.
#[derive(Clone, Copy, Debug)]
pub struct Vectors<E> {
    /// Under carry 0.
    pub none: *mut E,
    /// From one vector under carry 0 to the next.
    pub none_stride: usize,
    /// Under carry 1, half as long.
    pub carried: *mut E,
    /// From one vector under carry 1 to the next.
    pub carried_stride: usize,
}

// SAFETY: tiles are disjoint, and each is visited by one thread.
unsafe impl<E: Send> Send for Vectors<E> {}
// SAFETY: as above.
unsafe impl<E: Send> Sync for Vectors<E> {}

impl<E> Vectors<E> {
    /// The vectors from an element under carry 0 and one under carry 1 on.
    ///
    /// # Safety
    /// Every vector has these elements.
    pub unsafe fn from(&self, none: usize, carried: usize) -> Self {
        // SAFETY: the caller's.
        let (none, carried) = unsafe { (self.none.add(none), self.carried.add(carried)) };
        Self { none, carried, none_stride: self.none_stride, carried_stride: self.carried_stride }
    }
}

/// A program and the tile it acts on.
#[derive(Clone, Copy, Debug)]
pub struct ColumnTile<'a, E> {
    /// The passes.
    pub program: &'a [ColumnPass],
    /// Whether the path is part of a ring.
    pub ring: bool,
    /// Where the words are.
    pub vectors: Vectors<E>,
}

impl<E> Kernel<E> for ColumnTile<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic<Element = E>>(self, a: A) {
        self.go(a, Unit);
    }
}

/// Asks how many sites the registers hold.
#[derive(Clone, Copy, Debug)]
pub struct Most;

impl<E> Kernel<E> for Most {
    type Output = u32;

    #[inline(always)]
    fn run<A: Arithmetic<Element = E>>(self, _: A) -> u32 {
        most::<A>()
    }
}

/// Sites worth passing at once: three take twelve registers and a few to work with. Small elements are not worth the code.
const fn most<A: Arithmetic>() -> u32 {
    match A::HELD {
        _ if size_of::<A::Element>() < 32 => 1,
        15.. => 3,
        7.. => 2,
        _ => 1,
    }
}

/// The places of a group in memory.
struct TileGroup<E> {
    none: *mut E,
    carried: *mut E,
    unit: usize,
}

impl<E> ColumnTile<'_, E> {
    /// Runs the program with an activity.
    #[inline(always)]
    pub fn go<A: Arithmetic<Element = E>, Z: Charge<A>>(self, a: A, z: Z) {
        for operation in self.program {
            // SAFETY: whoever made the tile vouches that program and vectors fit each other.
            unsafe {
                match operation.sites {
                    1 if self.ring && matches!(operation.pass, ColumnStep::Turn(_)) => self.turn_ring(a, z, *operation),
                    1 => self.single(a, z, *operation),
                    2 if Z::FUSED >= 2 && most::<A>() >= 2 => self.fused::<A, Z, 2, 4, 2>(a, z, *operation),
                    3 if Z::FUSED >= 3 && most::<A>() >= 3 => self.fused::<A, Z, 3, 8, 4>(a, z, *operation),
                    sites => unreachable!("no program passes {sites} sites at once"),
                }
            }
        }
    }

    /// One operation on one site at once.
    #[inline(always)]
    unsafe fn single<A: Arithmetic<Element = E>, Z: Charge<A>>(&self, a: A, z: Z, operation: ColumnPass) {
        let vectors = if self.ring { 3 } else { 1 };
        // SAFETY: the caller's.
        unsafe {
            match operation.pass {
                ColumnStep::Across { up, cross } => {
                    self.groups(operation, 4, vectors, |group| group.across::<A, Z, 1, 2, 1>(a, z, up, cross));
                }
                ColumnStep::Turn(turn) => {
                    self.groups(operation, 4, vectors, |group| group.turn::<A, Z, 1, 2, 1>(a, z, turn));
                }
            }
        }
    }

    /// One of the operations worth fusing, on `C` sites at once, `N` words of them, half as many under carry 1.
    #[inline(always)]
    unsafe fn fused<A: Arithmetic<Element = E>, Z: Charge<A>, const C: usize, const N: usize, const M: usize>(
        &self,
        a: A,
        z: Z,
        operation: ColumnPass,
    ) {
        let vectors = if self.ring { 3 } else { 1 };
        macro_rules! every {
            ($pass:ident($($of:expr),*)) => {
                self.groups(operation, 2 * N, vectors, |group| group.$pass::<A, Z, C, N, M>(a, z, $($of),*))
            };
        }
        // SAFETY: the caller's.
        unsafe {
            match operation.pass {
                ColumnStep::Across { up: false, cross: true } => every!(across(false, true)),
                ColumnStep::Across { up: true, cross: true } => every!(across(true, true)),
                ColumnStep::Across { up: true, cross: false } => every!(across(true, false)),
                ColumnStep::Turn(FULL) => every!(turn(FULL)),
                pass => unreachable!("no program fuses {pass:?}"),
            }
        }
    }

    /// Visits the groups of `words` words in the first vectors.
    #[inline(always)]
    unsafe fn groups(&self, operation: ColumnPass, words: usize, vectors: usize, visit: impl Fn(TileGroup<E>)) {
        let ColumnPass { unit, start, len, .. } = operation;
        for vector in 0..vectors {
            for block in (start..start + len).step_by(words * unit) {
                for i in 0..unit {
                    // SAFETY: the part lies in the tile.
                    unsafe {
                        let none = self.vectors.none.add(vector * self.vectors.none_stride + block + i);
                        let carried = self.vectors.carried.add(vector * self.vectors.carried_stride + block / 2 + i);
                        visit(TileGroup { none, carried, unit });
                    }
                }
            }
        }
    }

    /// The turn of a ring at its first diamond, with the neighbor of that diamond.
    #[inline(always)]
    unsafe fn turn_ring<A: Arithmetic<Element = E>, Z: Charge<A>>(&self, a: A, z: Z, operation: ColumnPass) {
        let ColumnStep::Turn(turn) = operation.pass else { return };
        let (none, carried) = (self.vectors.none_stride, self.vectors.carried_stride);
        // SAFETY: the caller's.
        unsafe { self.groups(operation, 4, 1, |group| group.turn_ring(a, z, none, carried, turn)) }
    }
}

impl<E> TileGroup<E> {
    #[inline(always)]
    unsafe fn load<A: Arithmetic<Element = E>, const N: usize>(
        a: A,
        from: *mut E,
        place: impl Fn(usize) -> usize,
    ) -> [A::Register; N] {
        let mut x = [a.zero(); N];
        for i in 0..N {
            // SAFETY: the caller's.
            x[i] = unsafe { a.load(from.add(place(i))) };
        }
        x
    }

    /// Stores folded.
    #[inline(always)]
    unsafe fn store<A: Arithmetic<Element = E>, const N: usize>(
        a: A,
        to: *mut E,
        x: [A::Register; N],
        place: impl Fn(usize) -> usize,
    ) {
        for i in 0..N {
            // SAFETY: the caller's.
            unsafe { a.store(to.add(place(i)), a.fold(x[i])) };
        }
    }

    /// Passes `C` sites, upwards to the neighbor above them or downwards to the one below.
    ///
    /// Sums grow by at most 291 under carry 0 and 213 under carry 1 over three sites.
    #[inline(always)]
    unsafe fn across<A, Z, const C: usize, const N: usize, const M: usize>(&self, a: A, z: Z, up: bool, cross: bool)
    where
        A: Arithmetic<Element = E>,
        Z: Charge<A>,
    {
        let site = |k: usize| if up { k } else { C - 1 - k };
        for next in [1, 0] {
            let word = |i: usize| self.unit * if up { next << C | i } else { i << 1 | next };
            let carried = |i: usize| self.unit * if up { next << (C - 1) | i } else { i << 1 | next };
            // SAFETY: the group's words are those of `C + 1` sites.
            unsafe {
                let mut x = Self::load::<A, N>(a, self.none, word);
                let mut c = Self::load::<A, M>(a, self.carried, carried);
                for k in 1..C {
                    pass_within::<A, Z, N, M>(a, z, &mut x, &mut c, site(k - 1), site(k), cross);
                }
                let out = pass_out::<A, Z, N, M>(a, z, &mut x, &c, site(C - 1), cross);
                Self::store(a, self.none, x, word);
                if next == 0 {
                    Self::store(a, self.carried, out, |i| self.unit * i);
                }
            }
        }
    }

    /// Ends a column in the `C` lowest sites and begins the next one there.
    #[inline(always)]
    unsafe fn turn<A, Z, const C: usize, const N: usize, const M: usize>(&self, a: A, z: Z, turn: Turn)
    where
        A: Arithmetic<Element = E>,
        Z: Charge<A>,
    {
        let Turn { down, up, cross } = turn;
        for next in [1, 0] {
            let word = |i: usize| self.unit * (next << C | i);
            // SAFETY: the group's words are those of `C + 1` sites.
            unsafe {
                let mut x = Self::load::<A, N>(a, self.none, word);
                let mut c = [a.zero(); M];
                if down {
                    c = Self::load::<A, M>(a, self.carried, |i| self.unit * (next << (C - 1) | i));
                    for b in (1..C).rev() {
                        pass_within::<A, Z, N, M>(a, z, &mut x, &mut c, b, b - 1, up || cross);
                    }
                    end::<A, Z, N, M>(a, z, &mut x, &c, up || cross);
                }
                if up {
                    if down {
                        (0..N).for_each(|i| x[i] = a.fold(x[i]));
                    }
                    let mut out = x;
                    for i in (0..N).step_by(2) {
                        let passed = begin(a, z, [x[i], x[i + 1]], cross);
                        [x[i], x[i + 1]] = passed.none;
                        [out[i], out[i + 1]] = passed.carried;
                    }
                    if C > 1 {
                        for i in (0..N).filter(|i| i >> 1 & 1 == 0) {
                            c[without(i, 1)] = out[i];
                        }
                        for b in 1..C - 1 {
                            pass_within::<A, Z, N, M>(a, z, &mut x, &mut c, b, b + 1, cross);
                        }
                        out = pass_out::<A, Z, N, M>(a, z, &mut x, &c, C - 1, cross);
                    }
                    if next == 0 {
                        Self::store(a, self.carried, out, |i| self.unit * i);
                    }
                }
                Self::store(a, self.none, x, word);
            }
        }
    }

    /// Ends a column at the end of a path that is part of a ring, passes the first diamond, and begins the next column.
    ///
    /// Sums grow by at most 455.
    #[inline(always)]
    unsafe fn turn_ring<A, Z>(&self, a: A, z: Z, none_stride: usize, carried_stride: usize, turn: Turn)
    where
        A: Arithmetic<Element = E>,
        Z: Charge<A>,
    {
        let Turn { down, up, cross } = turn;
        for next in [1, 0] {
            let word = |i: usize| self.unit * (next << 1 | i);
            // SAFETY: the group's words are those of two sites, in each of three vectors.
            unsafe {
                let none = |vector: usize| self.none.add(vector * none_stride);
                let carried = |vector: usize| self.carried.add(vector * carried_stride);
                let load = |vector| Self::load::<A, 2>(a, none(vector), word);
                let [mut y0, mut y1] = [load(0), load(1)];
                if down {
                    let end = |vector| {
                        let [a0, a1] = load(vector);
                        let [c] = Self::load::<A, 1>(a, carried(vector), |_| self.unit * next);
                        pass(a, z, [a0, a1, c], up || cross)
                    };
                    let ended = [end(0), end(1), end(2)];
                    y1 = ended[0].none;
                    for i in 0..2 {
                        // z (any j) + (z + z^2) (j = 0) from i = 0, and z (j = 0) from i = 1.
                        let once = a.add(ended[1].none[i], a.add(ended[1].carried[i], ended[2].carried[i]));
                        let sum = a.add(once, z.charge(a, ended[1].carried[i]));
                        y0[i] = a.add(y1[i], z.charge(a, sum));
                    }
                }
                if !up {
                    Self::store(a, none(0), y0, word);
                    Self::store(a, none(1), y1, word);
                    continue;
                }
                if down {
                    for i in 0..2 {
                        [y0[i], y1[i]] = [a.add(y0[i], z.charge(a, y1[i])), y0[i]];
                    }
                }
                let both = [a.add(y0[0], z.charge(a, y1[0])), a.add(y0[1], z.charge(a, y1[1]))];
                let begun: [Passed<A::Register>; 3] = [
                    pass(a, z, [both[0], both[1], both[0]], cross),
                    begin(a, z, y0, cross),
                    begin_carried(a, z, y0[0], cross),
                ];
                for (vector, begun) in begun.iter().enumerate() {
                    Self::store(a, none(vector), begun.none, word);
                    if next == 0 {
                        Self::store(a, carried(vector), begun.carried, |i| self.unit * i);
                    }
                }
            }
        }
    }
}
