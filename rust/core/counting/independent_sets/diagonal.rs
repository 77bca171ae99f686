//! Independent sets of grids with diagonals: king, triangular, and randomly triangulated ones in expectation.
//!
//! Rows are swept site by site. After some sites of a row, y is its new part, x what is left of the row before, and c the
//! old symbol just passed, still needed for one diagonal. The word y_1 .. y_i c x_{i+1} .. x_w has no two adjacent ones and
//! always w + 1 symbols, and the next site changes only its symbol z at c, between its neighbors:
//!
//!   0 z 0:  (z=0, z=1) <- (a + b, a + q b);      1 0 1:  a <- p a;
//!
//! p is the weight of a cell with both ends of its rising diagonal occupied (new left, old right), q that of the falling
//! one (old left, new right): 0 for an edge, 1 for none, and a chance for a triangulation drawn cell by cell. The next row
//! goes back from right to left, where p and q change roles; so the vector stays in place, one entry per word in
//! lexicographic order. The words on from a prefix ending in 0 are contiguous: A (0 0 ..), B (0 1 ..), C (1 0 ..), and both
//! the step and the way down are the same for each. A row of n vertices closed to a ring carries its first old symbol in
//! front, one symbol more: x_1 y_1 .. y_i c x_{i+1} .. on the way down, x_n x_1 .. x_{j-1} c y_j .. y_n on the way up.

use super::Boundary;
use crate::counting::transfer::{Transfer, Weight};
use crate::monitor::Watch;
use crate::numeric::ring::Ring;
use crate::{Error, Result};

/// The diagonals of the cells of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diagonals {
    /// None: the square lattice.
    Neither,
    /// From `(r, c)` to `(r + 1, c + 1)` in each cell: the triangular lattice.
    Falling,
    /// Both in each cell: the king's graph.
    Both,
    /// In each cell independently the falling one with a chance, else the rising one; counts are expected ones. The
    /// activity of the point is that chance, and vertices have activity one.
    Random,
}

/// The factor of a diagonal with both ends occupied.
#[derive(Clone, Copy, Debug)]
enum Factor<E> {
    Zero,
    One,
    Times(E),
}

impl<E: Copy> Factor<E> {
    #[inline(always)]
    fn apply<R: Ring<Element = E>>(self, ring: &R, x: E) -> E {
        match self {
            Factor::Zero => ring.zero(),
            Factor::One => x,
            Factor::Times(factor) => ring.mul(x, factor),
        }
    }
}

/// Which way a row is swept: from its first site down to its last, or back up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Down,
    Up,
}

/// What becomes of the vector.
#[derive(Clone, Debug)]
enum Goal {
    /// The row in the middle joins both halves; of an even number of rows, the vector of the row before is kept.
    Meet { behind: bool },
    /// A trace over words, one of each orbit with its size.
    Trace { seams: Vec<(u64, u64)> },
    /// Every vertex is looped.
    Nothing,
}

/// The transfer operator of a grid with diagonals.
#[derive(Clone, Debug)]
pub struct Diagonal {
    diagonals: Diagonals,
    width: usize,
    closed: bool,
    /// Rows swept from one start.
    sweeps: u64,
    goal: Goal,
    /// The number of words without adjacent ones, by length.
    words: Vec<usize>,
}

impl Diagonal {
    /// The engine for `rows` x `cols` vertices; on a cylinder `cols` is the circumference.
    ///
    /// A closed extent of one makes loops, and a looped vertex is never occupied; one of two makes parallel edges, which
    /// count once, and parallel cells, each with its own diagonals.
    ///
    /// # Errors
    /// [`Error::Domain`] without vertices, [`Error::TooLarge`] if the words cannot be addressed.
    pub fn new(rows: usize, cols: usize, diagonals: Diagonals, boundary: Boundary) -> Result<Self> {
        for (name, value) in [("rows", rows), ("cols", cols)] {
            if value == 0 {
                return Err(Error::Domain { name, value: value.to_string(), requirement: "at least 1" });
            }
        }
        let (short, long) = (rows.min(cols), rows.max(cols));
        let meet = |rows: usize| (rows as u64 / 2 + 1, Goal::Meet { behind: rows.is_multiple_of(2) });
        let trace = |width, closed| Ok(Goal::Trace { seams: orbits(checked_width(width)?, closed) });
        let build = |width, closed, (sweeps, goal)| {
            let words = words(checked_width(width)? + 2)?;
            Ok(Self { diagonals, width, closed, sweeps, goal, words })
        };
        match boundary {
            Boundary::Cylinder if cols == 1 => build(1, false, (0, Goal::Nothing)),
            Boundary::Torus if short == 1 => build(1, false, (0, Goal::Nothing)),
            Boundary::Free => build(short, false, meet(long)),
            Boundary::Cylinder if rows.saturating_mul(2) < cols => {
                build(rows, false, (cols as u64, trace(rows, false)?))
            }
            Boundary::Cylinder => build(cols, true, meet(rows)),
            Boundary::Torus => build(short, true, (long as u64, trace(short, true)?)),
        }
    }

    /// Symbols of a word.
    fn length(&self) -> usize {
        self.width + if self.closed { 2 } else { 1 }
    }

    fn sweep<'a, R: Ring>(&'a self, weight: &'a Weight<R>) -> Sweep<'a, R> {
        let ring = &weight.ring;
        let (rising, falling) = match self.diagonals {
            Diagonals::Neither => (Factor::One, Factor::One),
            Diagonals::Falling => (Factor::One, Factor::Zero),
            Diagonals::Both => (Factor::Zero, Factor::Zero),
            Diagonals::Random => (Factor::Times(weight.activity), Factor::Times(ring.complement(weight.activity))),
        };
        let unit = weight.unit || self.diagonals == Diagonals::Random;
        Sweep {
            ring,
            rising,
            falling,
            powers: if unit { Vec::new() } else { weight.powers(self.width) },
            words: &self.words,
        }
    }

    /// Where the word of a complete row stands before it is swept over that way.
    fn place(&self, word: u64, next: Way) -> usize {
        (0..self.width).filter(|i| word >> i & 1 == 1).map(|i| self.words[self.width - 1 - i + shift(next)]).sum()
    }
}

/// A complete row waits at the end of the words for a way down, one symbol earlier for a way up.
fn shift(next: Way) -> usize {
    usize::from(next == Way::Up)
}

/// The way of the sweep with this number.
fn way(sweep: u64) -> Way {
    if sweep.is_multiple_of(2) { Way::Down } else { Way::Up }
}

fn checked_width(width: usize) -> Result<usize> {
    if width <= 80 {
        return Ok(width);
    }
    Err(Error::TooLarge { what: "the transfer vector of a grid", needed: u128::MAX, limit: isize::MAX as u128 })
}

/// The number of words of each length up to `longest` without adjacent ones.
fn words(longest: usize) -> Result<Vec<usize>> {
    let mut words = vec![1usize, 2];
    while words.len() <= longest {
        let next = words[words.len() - 1] as u128 + words[words.len() - 2] as u128;
        let bytes = 16 * next; // two vectors of at least 8 bytes an entry
        if bytes > isize::MAX as u128 {
            let limit = isize::MAX as u128;
            return Err(Error::TooLarge { what: "the transfer vector of a grid", needed: bytes, limit });
        }
        words.push(next as usize);
    }
    Ok(words)
}

/// Words of a row, the first symbol in the lowest bit, one of each orbit with the size of its orbit.
///
/// A trace does not change under rotation of a ring, nor under reflection, which transposes the operator.
fn orbits(width: usize, closed: bool) -> Vec<(u64, u64)> {
    let mask = (1u64 << width) - 1;
    let turns = if closed { width } else { 1 };
    let mut found = Vec::new();
    let mut word = 0u64;
    while word <= mask {
        let clash = word & (word >> 1);
        if clash != 0 {
            // The least word above without adjacent ones at this place.
            let high = 63 - clash.leading_zeros();
            word = ((word >> (high + 1)) + 1) << (high + 1);
            continue;
        }
        if !(closed && word & 1 == 1 && word >> (width - 1) == 1 && width > 1) {
            let mirrored = word.reverse_bits() >> (64 - width);
            let mut images: Vec<u64> = [word, mirrored]
                .into_iter()
                .flat_map(|w| (0..turns).map(move |turn| ((w << turn) | (w >> (width - turn))) & mask))
                .collect();
            images.sort_unstable();
            images.dedup();
            if images[0] == word {
                found.push((word, images.len() as u64));
            }
        }
        word += 1;
    }
    found
}

/// The row operator over one ring.
struct Sweep<'a, R: Ring> {
    ring: &'a R,
    rising: Factor<R::Element>,
    falling: Factor<R::Element>,
    /// Powers of the activity, none if it is one.
    powers: Vec<R::Element>,
    words: &'a [usize],
}

impl<R: Ring> Sweep<'_, R> {
    fn sum(&self, a: R::Element, b: R::Element) -> R::Element {
        self.ring.fold(self.ring.add(a, b))
    }

    /// Factors for new behind and old ahead, and for old behind and new ahead.
    fn factors(&self, way: Way) -> (Factor<R::Element>, Factor<R::Element>) {
        match way {
            Way::Down => (self.rising, self.falling),
            Way::Up => (self.falling, self.rising),
        }
    }

    /// The sites between the first symbol and the last, on from a prefix ending in 0 with `k` symbols to come.
    fn inner(&self, way: Way, block: &mut [R::Element], k: usize) {
        if k < 2 {
            return;
        }
        if way == Way::Down {
            self.butterfly(way, block, k);
        }
        self.deeper(way, block, k);
        if way == Way::Up {
            self.butterfly(way, block, k);
        }
    }

    /// The same without the first site.
    fn deeper(&self, way: Way, block: &mut [R::Element], k: usize) {
        let (zero, one) = block.split_at_mut(self.words[k - 1]);
        self.inner(way, zero, k - 1);
        self.after_one(way, one, k - 2);
    }

    /// On from a prefix ending in 1 0: the site between that 1 and a 1 ahead, then the others.
    fn after_one(&self, way: Way, block: &mut [R::Element], k: usize) {
        if way == Way::Up {
            self.inner(way, block, k);
        }
        let (factor, _) = self.factors(way);
        if k > 0 && !matches!(factor, Factor::One) {
            block[self.words[k - 1]..].iter_mut().for_each(|x| *x = factor.apply(self.ring, *x));
        }
        if way == Way::Down {
            self.inner(way, block, k);
        }
    }

    /// `(a, b) <- (a + b, a + q b)` at the first symbol to come, where a 0 follows.
    fn butterfly(&self, way: Way, block: &mut [R::Element], k: usize) {
        let (_, factor) = self.factors(way);
        let (zero, one) = block.split_at_mut(self.words[k - 1]);
        for (a, b) in zero.iter_mut().zip(one) {
            (*a, *b) = (self.sum(*a, *b), self.sum(*a, factor.apply(self.ring, *b)));
        }
    }

    /// Calls `visit` with each block of the last symbol.
    fn last(&self, block: &mut [R::Element], k: usize, visit: &impl Fn(&mut [R::Element])) {
        match k {
            0 => {}
            1 => visit(block),
            _ => {
                let (zero, one) = block.split_at_mut(self.words[k - 1]);
                self.last(zero, k - 1, visit);
                self.last(one, k - 2, visit);
            }
        }
    }

    /// Charges the activity of a complete row with `ones` in front of the block.
    fn charge(&self, block: &mut [R::Element], k: usize, ones: usize) {
        if self.powers.is_empty() {
        } else if k == 0 {
            block[0] = self.ring.mul(block[0], self.powers[ones]);
        } else {
            let (zero, one) = block.split_at_mut(self.words[k - 1]);
            self.charge(zero, k - 1, ones);
            self.charge(one, k.saturating_sub(2), (ones + 1).min(self.powers.len() - 1));
        }
    }

    /// A row of a path: words of `k` symbols, the old symbol c behind the first site or before the last being 0.
    fn path(&self, way: Way, block: &mut [R::Element], k: usize) {
        let (zero, one) = block.split_at_mut(self.words[k - 1]);
        if way == Way::Down {
            one.copy_from_slice(&zero[..self.words[k - 2]]);
            self.deeper(way, block, k);
            self.last(block, k, &|pair| (pair[0], pair[1]) = (self.sum(pair[0], pair[1]), self.ring.zero()));
        } else {
            self.last(block, k, &|pair| pair[1] = pair[0]);
            self.deeper(way, block, k);
            let (zero, one) = block.split_at_mut(self.words[k - 1]);
            for (a, b) in zero.iter_mut().zip(one) {
                (*a, *b) = (self.sum(*a, *b), self.ring.zero());
            }
        }
    }

    /// A row of a ring of `n` sites, words of `n + 2` symbols: 0 0 .., 0 1 0 .., 1 0 ...
    fn ring(&self, way: Way, block: &mut [R::Element], n: usize) {
        let (x, rest) = block.split_at_mut(self.words[n]);
        let (y, l) = rest.split_at_mut(self.words[n - 1]);
        if way == Way::Down {
            self.open_front(x, y, l, n);
        } else {
            self.open_back(x, Some(l), n);
            self.open_back(y, None, n - 1);
        }
        self.inner(way, x, n);
        self.inner(way, l, n);
        self.after_one(way, y, n - 1);
        if way == Way::Down {
            self.close_back(x, Some(l), n);
            self.close_back(y, None, n - 1);
        } else {
            self.close_front(x, y, l, n);
        }
    }

    /// From words 0 0 x to x_1 y_1 x: the first site, at the front of the seam.
    fn open_front(&self, x: &mut [R::Element], y: &mut [R::Element], l: &mut [R::Element], n: usize) {
        let half = self.words[n - 1];
        y.copy_from_slice(&x[..half]);
        self.last(y, n - 1, &|pair| pair[1] = self.falling.apply(self.ring, pair[1]));
        l[..half].fill(self.ring.zero());
        l[half..].copy_from_slice(&x[half..]);
        x[half..].fill(self.ring.zero());
    }

    /// From words x_n x_1 y, both ends of the row new, to 0 0 y.
    fn close_front(&self, x: &mut [R::Element], y: &mut [R::Element], l: &mut [R::Element], n: usize) {
        let half = self.words[n - 1];
        for ((x, y), l) in x.iter_mut().zip(y.iter_mut()).zip(l.iter_mut()) {
            *x = self.sum(self.sum(*x, *y), *l);
        }
        for (x, l) in x[half..].iter_mut().zip(&l[half..]) {
            *x = self.sum(*x, self.falling.apply(self.ring, *l));
        }
        self.last(&mut x[half..], n - 2, &|pair| pair[1] = self.ring.zero());
        y.fill(self.ring.zero());
        l.fill(self.ring.zero());
    }

    /// At the back of the seam: sums over x_1 in front and the last old symbol. `l` are the words with x_1 = 1, which exist
    /// where y_1 = 0.
    fn close_back(&self, x: &mut [R::Element], l: Option<&mut [R::Element]>, k: usize) {
        match (k, l) {
            (1 | 2, Some(l)) => {
                x[0] = self.sum(self.sum(x[0], x[1]), self.sum(l[0], l[1]));
                x[1] = self.ring.zero();
                if k == 2 {
                    x[2] = self.sum(x[2], self.rising.apply(self.ring, l[2]));
                }
                l.fill(self.ring.zero());
            }
            (1 | 2, None) => {
                x[0] = self.sum(x[0], x[1]);
                x[1..].fill(self.ring.zero());
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
                    (l[2], x[2]) = (x[2], self.ring.zero());
                }
            }
            (1 | 2, None) => x[1] = self.rising.apply(self.ring, x[0]),
            (_, l) => self.halves(x, l, k, &|x, l, k| self.open_back(x, l, k)),
        }
    }

    #[allow(clippy::type_complexity)]
    fn halves(
        &self,
        x: &mut [R::Element],
        l: Option<&mut [R::Element]>,
        k: usize,
        visit: &dyn Fn(&mut [R::Element], Option<&mut [R::Element]>, usize),
    ) {
        let (x0, x1) = x.split_at_mut(self.words[k - 1]);
        let (l0, l1) = l.map(|l| l.split_at_mut(self.words[k - 1])).unzip();
        visit(x0, l0, k - 1);
        visit(x1, l1, k - 2);
    }
}

impl Transfer for Diagonal {
    fn len(&self) -> usize {
        let vector = self.words[self.length()];
        match self.goal {
            Goal::Meet { behind: true } => 2 * vector,
            Goal::Meet { behind: false } => vector,
            Goal::Trace { .. } => vector + 1,
            Goal::Nothing => 1,
        }
    }

    fn steps(&self) -> u64 {
        match &self.goal {
            Goal::Trace { seams } => self.sweeps.saturating_mul(seams.len() as u64),
            _ => self.sweeps,
        }
    }

    fn work(&self, _step: u64) -> u64 {
        self.width as u64 * self.words[self.length()] as u64
    }

    fn roundings(&self) -> u64 {
        self.sweeps.saturating_mul(4 * self.width as u64 + 12) + self.width as u64 + 4 + self.words[self.width] as u64
    }

    fn start<R: Ring>(&self, weight: &Weight<R>, state: &mut [R::Element]) {
        state.fill(weight.ring.zero());
        if let Goal::Meet { .. } = self.goal {
            state[0] = weight.ring.one();
        }
    }

    fn step<R: Ring>(&self, weight: &Weight<R>, step: u64, state: &mut [R::Element], watch: &Watch) -> Result<()> {
        let sweep = self.sweep(weight);
        let (number, of_run) = (step / self.sweeps, step % self.sweeps);
        let (vector, rest) = state.split_at_mut(self.words[self.length()]);
        if let (Goal::Trace { seams }, 0) = (&self.goal, of_run) {
            vector.fill(weight.ring.zero());
            vector[self.place(seams[number as usize].0, Way::Down)] = weight.ring.one();
        }
        if self.closed {
            sweep.ring(way(of_run), vector, self.width);
        } else {
            sweep.path(way(of_run), vector, self.width + 1);
        }
        if let (Goal::Meet { behind: true }, true) = (&self.goal, of_run + 2 == self.sweeps) {
            rest.copy_from_slice(vector);
        }
        if of_run + 1 < self.sweeps || matches!(self.goal, Goal::Trace { .. }) {
            sweep.charge(vector, self.length(), 0);
        }
        if let (Goal::Trace { seams }, true) = (&self.goal, of_run + 1 == self.sweeps) {
            let (seam, size) = seams[number as usize];
            let value = multiple(&weight.ring, vector[self.place(seam, way(self.sweeps))], size);
            rest[0] = sweep.sum(rest[0], value);
        }
        watch.advance(self.work(step))
    }

    fn finish<R: Ring>(&self, weight: &Weight<R>, state: &[R::Element]) -> R::Element {
        match self.goal {
            Goal::Nothing => weight.ring.one(),
            Goal::Trace { .. } => state[state.len() - 1],
            Goal::Meet { behind } => {
                let sweep = self.sweep(weight);
                let (vector, rest) = state.split_at(self.words[self.length()]);
                let (here, there) = (way(self.sweeps), way(self.sweeps - u64::from(behind)));
                let other = if behind { rest } else { vector };
                let join = |word: u64| {
                    let turned = word.reverse_bits() >> (64 - self.width);
                    let product = weight.ring.mul(vector[self.place(word, here)], other[self.place(turned, there)]);
                    let power = sweep.powers.get(word.count_ones() as usize);
                    power.map_or(product, |power| weight.ring.mul(product, *power))
                };
                let wraps = |word: u64| self.closed && word & 1 == 1 && word >> (self.width - 1) == 1;
                (0..1u64 << self.width)
                    .filter(|&word| word & (word >> 1) == 0 && !wraps(word))
                    .fold(weight.ring.zero(), |sum, word| sweep.sum(sum, join(word)))
            }
        }
    }
}

/// `count * x` by doubling, folded.
fn multiple<R: Ring>(ring: &R, x: R::Element, count: u64) -> R::Element {
    (0..u64::BITS - count.leading_zeros()).rev().fold(ring.zero(), |sum, bit| {
        let double = ring.add(sum, sum);
        ring.fold(if count >> bit & 1 == 1 { ring.add(double, x) } else { double })
    })
}
