//! The two kinds of sweeps: over tiles of all prefixes at one pair of places, and over blocks of whole runs.
//!
//! T of a row is a congruence: B X B' for every level B of the butterfly, so a symmetric X stays symmetric, and half of it is
//! enough. The tile of places I <= J is gathered for all pairs of prefixes; of those below the diagonal the mirror image is
//! stored, at (J, I). In between, with X0 over the words with 0 in the middle of a row and X1 over those with 1, whose words t
//! stand for 0t,
//!
//!   join:      X1[t, u], X0[0t, 0u] <- sum of X0[at, bu] over the symbols a, b that t, u allow, X0[0t, 0u] + X1[t, u],
//!   part:      X0[at, bu] += X1[t, u] for all such a, b, X1[t, u] <- the old X0[0t, 0u], its transpose,
//!   supersets: X0[0t, 0u] += X1[t, u].
//!
//! Without a middle vertex no two words both begin with 1, and those elements are not stored.
//!
//! Source: derived here, see `docs/mathematics/counting.md`.

use super::activity::{HalfWeights, product, weigh_each};
use super::axis::{PrefixSegment, Symmetric, WordRun};
use super::ring::{LastSymbols, part_ends};
use super::walk::Walk;
use super::{AxisPrograms, BlockPass, Course};
use crate::numeric::neighbors::{NeighborKernel, Neighbors, TILE, TILE_WORDS};

/// Tiles ahead that are asked for.
const AHEAD: usize = 10;

/// What begins at the end of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowEnd {
    /// Nothing.
    Nothing,
    /// Another row.
    Row,
    /// Superset sums.
    Supersets,
}

/// The first symbols of both sides at one pair of places, and the middle of the row.
#[derive(Clone, Copy)]
pub struct PlaceTile<'a> {
    /// The matrices: that of middle 0, and that of middle 1 if there is a vertex in the middle.
    pub halves: &'a [Symmetric],
    /// Their programs.
    pub programs: &'a [AxisPrograms],
    /// The vector.
    pub vector: *mut u64,
    /// Room for the tiles of each matrix.
    pub rooms: [*mut u64; 2],
    /// The places, the first no larger than the second.
    pub places: [usize; 2],
    /// Whether a row ends here.
    pub ends: bool,
    /// What its states are weighed by, by matrix, unless by nothing.
    pub weights: Option<&'a [HalfWeights]>,
    /// The last symbols, by matrix, if both sides meet there.
    pub last: Option<&'a [LastSymbols]>,
    /// What begins.
    pub next: RowEnd,
}

impl NeighborKernel for PlaceTile<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Neighbors>(self, a: A) {
        // SAFETY: whoever made the tile vouched for vector and rooms, and that nobody else works at these places.
        unsafe {
            for k in 0..self.halves.len() {
                self.gather(a, k);
                if self.ends {
                    self.end(a, k);
                }
            }
            if self.ends && self.halves.len() == 2 {
                self.part(a);
            }
            for (k, weights) in self.weights.iter().copied().flatten().enumerate() {
                self.weigh(a, k, weights);
            }
            for (k, last) in self.last.iter().copied().flatten().enumerate().filter(|_| self.ends) {
                self.part_ends(a, k, last);
            }
            if let [_, _] = self.halves {
                match self.next {
                    RowEnd::Row => self.join(a),
                    RowEnd::Supersets => self.close(a),
                    RowEnd::Nothing => {}
                }
            }
            for k in 0..self.halves.len() {
                if self.next != RowEnd::Nothing {
                    self.begin(a, k);
                }
                self.scatter(a, k);
            }
        }
    }
}

impl PlaceTile<'_> {
    #[inline(always)]
    fn segments(&self, k: usize) -> [&[usize]; 2] {
        self.places.map(|place| self.halves[k].axis.at(place))
    }

    #[inline(always)]
    fn pair(&self, k: usize, p: usize, q: usize) -> [PrefixSegment; 2] {
        let [rows, columns] = self.segments(k);
        [self.halves[k].axis.segments[rows[p]], self.halves[k].axis.segments[columns[q]]]
    }

    /// The tile with these segments in the vector, or its mirror image.
    #[inline(always)]
    fn place(&self, k: usize, [p, q]: [PrefixSegment; 2]) -> *mut u64 {
        let [i, j] = self.places;
        let at = if p.run <= q.run {
            self.halves[k].tile((p.run, q.run), p.tile + i, q.tile + j)
        } else {
            self.halves[k].tile((q.run, p.run), q.tile + j, p.tile + i)
        };
        self.vector.wrapping_add(at)
    }

    #[inline(always)]
    fn is_stored(&self, k: usize, [p, q]: [PrefixSegment; 2]) -> bool {
        !(self.halves[k].hollow && p.first && q.first)
    }

    #[inline(always)]
    unsafe fn gather<A: Neighbors>(&self, a: A, k: usize) {
        let [rows, columns] = self.segments(k).map(<[usize]>::len);
        for p in 0..rows {
            for q in 0..columns {
                let (p_ahead, q_ahead) = ((p * columns + q + AHEAD) / columns, (p * columns + q + AHEAD) % columns);
                if p_ahead < rows {
                    let pair = self.pair(k, p_ahead, q_ahead);
                    if self.is_stored(k, pair) {
                        let place = self.place(k, pair);
                        (0..TILE).for_each(|i| a.prefetch(place.wrapping_add(i * TILE)));
                    }
                }
                let pair = self.pair(k, p, q);
                // SAFETY: the caller's.
                unsafe {
                    let room = self.rooms[k].add((p * columns + q) * TILE_WORDS);
                    if !self.is_stored(k, pair) {
                        fill(a, room, TILE_WORDS);
                    } else if pair[0].run <= pair[1].run {
                        copy(a, self.place(k, pair), room, TILE_WORDS);
                    } else {
                        a.transpose(self.place(k, pair), room, [TILE, TILE]);
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn scatter<A: Neighbors>(&self, a: A, k: usize) {
        let [rows, columns] = self.segments(k).map(<[usize]>::len);
        let [i, j] = self.places;
        for p in 0..rows {
            for q in 0..columns {
                let pair = self.pair(k, p, q);
                if !self.is_stored(k, pair) {
                    continue;
                }
                // SAFETY: the caller's.
                unsafe {
                    let room = self.rooms[k].add((p * columns + q) * TILE_WORDS);
                    if pair[0].run <= pair[1].run {
                        copy(a, room, self.place(k, pair), TILE_WORDS);
                    } else if i != j {
                        a.transpose(room, self.place(k, pair), [TILE, TILE]);
                    }
                    if pair[0].run == pair[1].run && i != j {
                        let block = (pair[0].run, pair[0].run);
                        let mirror = self.halves[k].tile(block, pair[1].tile + j, pair[0].tile + i);
                        a.transpose(room, self.vector.add(mirror), [TILE, TILE]);
                    }
                }
            }
        }
    }

    /// The walks along one side: over the rows of tiles, or over the columns.
    #[inline(always)]
    unsafe fn along<A: Neighbors>(&self, a: A, k: usize, side: usize, course: Course) {
        let [rows, columns] = self.segments(k).map(<[usize]>::len);
        let programs = &self.programs[k];
        let open = self.halves[k].axis.is_open(self.places[side]);
        let program = if open { &programs.open } else { &programs.closed }.course(course);
        let supersets = course == Course::Down && self.next == RowEnd::Supersets;
        let (count, step, stride) = match side {
            0 => (columns, TILE_WORDS, columns * TILE_WORDS),
            _ => (rows, columns * TILE_WORDS, TILE_WORDS),
        };
        for i in 0..count {
            let items = self.rooms[k].wrapping_add(i * step);
            a.enter(Walk { program, items, stride, width: TILE_WORDS, supersets });
        }
    }

    /// The last symbols of a row.
    #[inline(always)]
    unsafe fn end<A: Neighbors>(&self, a: A, k: usize) {
        let [rows, columns] = self.segments(k);
        let (half, count) = (&self.halves[k], columns.len());
        // SAFETY: the caller's.
        unsafe {
            self.along(a, k, 1, Course::Up);
            self.along(a, k, 0, Course::Up);
            // Where a rest begins with 1, no prefix ends in 1.
            let last = half.axis.last;
            for (p, q) in (0..rows.len()).flat_map(|p| (0..count).map(move |q| (p, q))) {
                let room = self.rooms[k].add((p * count + q) * TILE_WORDS);
                let pair = self.pair(k, p, q);
                if pair[0].odd && self.places[0] + 1 == half.axis.places[1] {
                    (last * TILE..TILE_WORDS).for_each(|i| *room.add(i) = 0);
                }
                if pair[1].odd && self.places[1] + 1 == half.axis.places[1] {
                    (0..TILE).for_each(|i| (last..TILE).for_each(|j| *room.add(i * TILE + j) = 0));
                }
                if !self.is_stored(k, pair) {
                    fill(a, room, TILE_WORDS);
                }
            }
        }
    }

    /// The weights of the row that has ended.
    #[inline(always)]
    unsafe fn weigh<A: Neighbors>(&self, a: A, k: usize, weights: &HalfWeights) {
        let [rows, columns] = self.segments(k).map(<[usize]>::len);
        let (ones, table) = (weights.ones(self.places[0]), weights.table(self.places[1]));
        for (p, q) in (0..rows).flat_map(|p| (0..columns).map(move |q| (p, q))) {
            let pair = self.pair(k, p, q);
            if !self.is_stored(k, pair) {
                continue;
            }
            let before = (pair[0].ones + pair[1].ones) as usize;
            let room = self.rooms[k].wrapping_add((p * columns + q) * TILE_WORDS);
            for (i, ones) in ones.iter().enumerate() {
                let powers = table[before + ones].as_ptr();
                for j in (0..TILE).step_by(A::LANES) {
                    // SAFETY: the caller's.
                    unsafe {
                        let at = room.add(i * TILE + j);
                        a.store(at, product(a, a.load(at), a.load(powers.add(j))));
                    }
                }
            }
        }
    }

    /// Zeros where the other ends of both sides are in the set.
    #[inline(always)]
    unsafe fn part_ends<A: Neighbors>(&self, a: A, k: usize, last: &LastSymbols) {
        let [rows, columns] = self.places.map(|place| last.place(place));
        let tiles = self.segments(k).map(<[usize]>::len).into_iter().product::<usize>();
        for i in 0..tiles {
            // SAFETY: the caller's.
            unsafe { part_ends(a, self.rooms[k].add(i * TILE_WORDS), rows, columns) };
        }
    }

    /// The first symbols of what is next.
    #[inline(always)]
    unsafe fn begin<A: Neighbors>(&self, a: A, k: usize) {
        // SAFETY: the caller's.
        unsafe {
            self.along(a, k, 0, Course::Down);
            self.along(a, k, 1, Course::Down);
        }
    }

    /// The tiles of (t, u) in X1, of (0t, 0u) in X0, and of the others that t, u allow.
    #[inline(always)]
    fn middle(&self, p: usize, q: usize) -> (*mut u64, *mut u64, [Option<*mut u64>; 3]) {
        let [[rows, columns], [short_rows, short_columns]] = [0, 1].map(|k| self.segments(k).map(<[usize]>::len));
        let one = self.rooms[1].wrapping_add((p * short_columns + q) * TILE_WORDS);
        let zero = self.rooms[0].wrapping_add((p * columns + q) * TILE_WORDS);
        // As many words begin with 10 as short ones with 0.
        let (down, right) = (p < rows - short_rows, q < columns - short_columns);
        let below = zero.wrapping_add(short_rows * columns * TILE_WORDS);
        let beside = short_columns * TILE_WORDS;
        let others = [
            right.then(|| zero.wrapping_add(beside)),
            down.then_some(below),
            (down && right).then(|| below.wrapping_add(beside)),
        ];
        (one, zero, others)
    }

    #[inline(always)]
    fn middles(&self) -> impl Iterator<Item = (*mut u64, *mut u64, [Option<*mut u64>; 3])> + '_ {
        let [rows, columns] = self.segments(1).map(<[usize]>::len);
        (0..rows).flat_map(move |p| (0..columns).map(move |q| self.middle(p, q)))
    }

    #[inline(always)]
    unsafe fn part<A: Neighbors>(&self, a: A) {
        for (one, zero, others) in self.middles() {
            for i in (0..TILE_WORDS).step_by(A::LANES) {
                // SAFETY: the caller's.
                unsafe {
                    let (x, old) = (a.load(one.add(i)), a.load(zero.add(i)));
                    a.store(zero.add(i), a.add(old, x));
                    a.store(one.add(i), old);
                    for other in others.into_iter().flatten() {
                        a.store(other.add(i), a.add(a.load(other.add(i)), x));
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn join<A: Neighbors>(&self, a: A) {
        for (one, zero, others) in self.middles() {
            for i in (0..TILE_WORDS).step_by(A::LANES) {
                // SAFETY: the caller's.
                unsafe {
                    let (x, old) = (a.load(one.add(i)), a.load(zero.add(i)));
                    let mut sum = old;
                    for other in others.into_iter().flatten() {
                        sum = a.add(sum, a.load(other.add(i)));
                    }
                    a.store(zero.add(i), a.add(old, x));
                    a.store(one.add(i), sum);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn close<A: Neighbors>(&self, a: A) {
        for (one, zero, _) in self.middles() {
            for i in (0..TILE_WORDS).step_by(A::LANES) {
                // SAFETY: the caller's.
                unsafe { a.store(zero.add(i), a.add(a.load(zero.add(i)), a.load(one.add(i)))) };
            }
        }
    }
}

/// The last symbols of both sides in one block.
#[derive(Clone, Copy)]
pub struct RunBlock<'a> {
    /// The matrix.
    pub half: &'a Symmetric,
    /// The block.
    pub block: (usize, usize),
    /// The passes for rows of tiles and for columns.
    pub programs: [&'a [BlockPass]; 2],
    /// Superset sums instead of T.
    pub supersets: bool,
    /// What the row that ends here is weighed by, unless by nothing.
    pub weights: Option<&'a HalfWeights>,
    /// The last symbols, if a row ends here whose sides meet there.
    pub last: Option<&'a LastSymbols>,
    /// Whether the passes come once more, for the next row.
    pub again: bool,
    /// The vector.
    pub vector: *mut u64,
    /// Room for as many times eight words as the longest run has, and eight more.
    pub room: *mut u64,
}

impl NeighborKernel for RunBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Neighbors>(self, a: A) {
        // SAFETY: whoever made the block vouched for vector and room, and that nobody else works on this block.
        unsafe {
            // Where the ends of both sides meet, both must have come to the end before either goes on.
            let waits = self.last.is_some();
            self.rows(a, true, self.again && !waits);
            self.columns(a);
            if self.again && waits {
                self.rows(a, false, true);
            }
        }
    }
}

impl RunBlock<'_> {
    #[inline(always)]
    fn tile(&self, r: usize, c: usize) -> *mut u64 {
        self.vector.wrapping_add(self.half.tile(self.block, r, c))
    }

    #[inline(always)]
    fn sides(&self) -> [WordRun; 2] {
        [self.block.0, self.block.1].map(|run| self.half.axis.runs[run])
    }

    /// The passes over the words in the room, those of one side.
    #[inline(always)]
    fn walk<A: Neighbors>(&self, a: A, side: usize) {
        let (program, items, supersets) = (self.programs[side], self.room, self.supersets);
        a.enter(Walk { program, items, stride: TILE, width: TILE, supersets });
    }

    /// The same to the end of a row.
    #[inline(always)]
    unsafe fn end<A: Neighbors>(&self, a: A, side: usize) {
        self.walk(a, side);
        if let Some(weights) = self.weights {
            let run = [self.block.0, self.block.1][side];
            // SAFETY: the room has eight words for each of the run.
            unsafe { weigh_each(a, self.room, weights.run(side, run)) };
        }
    }

    /// Zeros where the words of the columns in the room and of this row of tiles both end in 1.
    #[inline(always)]
    unsafe fn part_ends<A: Neighbors>(&self, a: A, last: &LastSymbols, r: usize) {
        let columns = self.sides()[1];
        let rows = last.tile(self.block.0, r);
        for c in 0..columns.tiles() {
            let (at, valid) = columns.tile(c);
            let bits = last.tile(self.block.1, c);
            for j in (0..valid).filter(|j| bits >> j & 1 == 1) {
                for i in (0..TILE).step_by(A::LANES) {
                    // SAFETY: the caller's.
                    unsafe {
                        let words = self.room.add((at + j) * TILE + i);
                        a.store(words, a.clear(a.load(words), rows >> i));
                    }
                }
            }
        }
    }

    /// The symbols of the rows of the matrix, eight columns at a time.
    #[inline(always)]
    unsafe fn rows<A: Neighbors>(&self, a: A, ends: bool, begins: bool) {
        let [rows, columns] = self.sides();
        // SAFETY: the caller's.
        unsafe {
            for c in 0..columns.tiles() {
                for r in 0..rows.tiles() {
                    let (at, valid) = rows.tile(r);
                    copy(a, self.tile(r, c), self.room.add(at * TILE), valid * TILE);
                }
                if ends {
                    self.end(a, 0);
                }
                if begins {
                    self.walk(a, 0);
                }
                for r in 0..rows.tiles() {
                    let (at, valid) = rows.tile(r);
                    copy(a, self.room.add(at * TILE), self.tile(r, c), valid * TILE);
                }
            }
        }
    }

    /// The symbols of its columns, eight rows at a time.
    #[inline(always)]
    unsafe fn columns<A: Neighbors>(&self, a: A) {
        let [rows, columns] = self.sides();
        // SAFETY: the caller's.
        unsafe {
            for r in 0..rows.tiles() {
                // What a tile has beyond its words is overwritten by the next.
                for c in 0..columns.tiles() {
                    a.transpose(self.tile(r, c), self.room.add(columns.tile(c).0 * TILE), [TILE, TILE]);
                }
                self.end(a, 1);
                if let Some(last) = self.last {
                    self.part_ends(a, last, r);
                }
                if self.again {
                    self.walk(a, 1);
                }
                for c in 0..columns.tiles() {
                    let (at, valid) = columns.tile(c);
                    let room = self.room.add(at * TILE);
                    if valid == TILE {
                        a.transpose(room, self.tile(r, c), [TILE, TILE]);
                    } else {
                        let mut padded = [0u64; TILE_WORDS];
                        copy(a, room, padded.as_mut_ptr(), valid * TILE);
                        a.transpose(padded.as_ptr(), self.tile(r, c), [TILE, TILE]);
                    }
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn copy<A: Neighbors>(a: A, from: *const u64, to: *mut u64, words: usize) {
    for i in (0..words).step_by(A::LANES) {
        // SAFETY: the caller's; `words` is a multiple of eight.
        unsafe { a.store(to.add(i), a.load(from.add(i))) };
    }
}

#[inline(always)]
unsafe fn fill<A: Neighbors>(a: A, to: *mut u64, words: usize) {
    for i in (0..words).step_by(A::LANES) {
        // SAFETY: the caller's; `words` is a multiple of eight.
        unsafe { a.store(to.add(i), a.zero()) };
    }
}
