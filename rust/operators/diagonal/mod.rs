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
//!
//! A complete row stands as 0 x (path) or 0 0 x (ring) before a way down: the first f(w) entries, by the rank of x among the
//! words of a path. Before a way up it stands as x 0 or 0 x 0. The files: `kernel` (the loops), `row` (ends and seams).
//!
//! Source: R. Baxter (1999), Planar lattice gases with nearest-neighbour exclusion, Annals of Combinatorics 3
//! (transfer matrices built one site at a time).

mod kernel;
mod row;
mod start;

use super::Boundary;
use super::square::words::{LONGEST, list, words};
use super::square::{LONGEST_SEAM, too_wide};
use crate::monitor::Progress;
use crate::numeric::ring::Ring;
use crate::strip::{Context, RowOperator, Rows, Strip};
use crate::transfer::Weight;
use crate::{Result, parallel};
use kernel::{MOST_IN_REGISTERS, Way};
use row::{Programs, RowSweep, compact, each_last};
use std::ops::Range;
use std::sync::OnceLock;

/// The diagonals of the cells of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diagonals {
    /// None: the square lattice.
    Neither,
    /// From `(r, c)` to `(r + 1, c + 1)` in each cell: the triangular lattice.
    Falling,
    /// Both in each cell: the king's graph.
    Both,
    /// In each cell independently the falling one with the chance of the point, else the rising one; counts are expected ones.
    Random,
}

/// The transfer operator of a grid with diagonals.
pub type Diagonal = Strip<DiagonalRow>;

impl Diagonal {
    /// The engine for `rows` x `cols` vertices; on a cylinder `cols` is the circumference.
    ///
    /// # Errors
    /// [`Error::Domain`] without vertices, [`Error::TooLarge`] if the words cannot be addressed.
    pub fn new(rows: usize, cols: usize, diagonals: Diagonals, boundary: Boundary) -> Result<Self> {
        Self::with_links(diagonals, rows, cols, boundary, usize::MAX, &Progress::default())
    }
}

/// The operator between two rows of a grid with diagonals.
#[derive(Clone, Debug)]
pub struct DiagonalRow {
    diagonals: Diagonals,
    width: usize,
    ring: bool,
    /// By the symbols that the registers hold.
    programs: Vec<OnceLock<Programs>>,
    /// A column through the first rows, where they are made at once.
    column: Option<Box<Self>>,
}

/// Symbols of the words of a row in the making.
fn symbols(width: usize, ring: bool) -> usize {
    width + if ring { 2 } else { 1 }
}

/// The widest row whose words can be counted.
const WIDEST: usize = LONGEST - 2;

impl RowOperator for DiagonalRow {
    type Links = Diagonals;

    /// With both diagonals, disjoint 2 x 2 blocks are cliques; around a torus every two neighboring rows are counted twice.
    fn largest_set(diagonals: Diagonals, rows: usize, cols: usize, boundary: Boundary) -> usize {
        match (diagonals, boundary) {
            (Diagonals::Both, Boundary::Free) => rows.div_ceil(2) * cols.div_ceil(2),
            (Diagonals::Both, Boundary::Cylinder) => rows.div_ceil(2) * (cols / 2),
            (Diagonals::Both, Boundary::Torus) => rows * (cols / 2) / 2,
            _ => super::square::SquareRow::largest_set((), rows, cols, boundary),
        }
    }

    fn forecast(diagonals: Diagonals, width: usize, ring: bool, rows: Rows) -> f64 {
        if width > WIDEST {
            return f64::INFINITY;
        }
        let cost = (width * words(symbols(width, ring))) as f64;
        match rows {
            Rows::Open(rows) => cost * (rows / 2) as f64,
            Rows::Closed(_) if width > LONGEST_SEAM => f64::INFINITY,
            Rows::Closed(rows) => {
                let seams = words(width) / if ring { 2 * width } else { 2 } + 1;
                let around = if is_symmetric(diagonals) { rows.div_ceil(2) } else { rows };
                cost * around as f64 * seams as f64
            }
        }
    }

    fn new(diagonals: Diagonals, width: usize, ring: bool, rows: Rows) -> Result<Self> {
        let widest = if matches!(rows, Rows::Closed(_)) { LONGEST_SEAM } else { WIDEST };
        if width > widest {
            return Err(too_wide("the transfer vector of a grid", width, widest, rows));
        }
        let row = Self { ring, ..Self::path(diagonals, width) };
        Ok(match rows {
            Rows::Open(rows) if !ring => {
                let begun = start::best(&row, rows);
                row.with_start(begun)
            }
            _ => row,
        })
    }

    fn width(&self) -> usize {
        self.width
    }

    fn is_ring(&self) -> bool {
        self.ring
    }

    fn states(&self) -> usize {
        words(self.width)
    }

    fn len(&self) -> usize {
        words(symbols(self.width, self.ring))
    }

    fn list(&self) -> Vec<(usize, u64)> {
        let wraps = |word: u64| self.ring && word & 1 == 1 && word >> (self.width - 1) == 1;
        list(self.width).into_iter().enumerate().filter(|&(_, word)| !wraps(word)).collect()
    }

    fn cost(&self) -> u64 {
        (self.width * self.len()) as u64
    }

    fn bound(&self) -> u64 {
        4 * self.width as u64 + 13
    }

    fn dot_bound(&self) -> u64 {
        self.states() as u64 + self.width as u64 + 4
    }

    fn is_symmetric(&self) -> bool {
        is_symmetric(self.diagonals)
    }

    fn apply<R: Ring>(&self, context: Context<R>, x: &mut [R::Element]) -> Result<()> {
        self.sweep(context).row(Way::Down, x)?;
        compact(&mut x[..words(self.width + 1)], self.width + 1);
        Ok(())
    }

    fn advance<R: Ring>(&self, context: Context<R>, x: &mut [R::Element], twice: bool) -> Result<()> {
        if !twice {
            return self.apply(context, x);
        }
        let sweep = self.sweep(context);
        sweep.row(Way::Down, x)?;
        self.charge(context, &mut x[..words(self.width + 1)], self.width + 1);
        sweep.row(Way::Up, x)
    }

    fn weigh<R: Ring>(&self, context: Context<R>, x: &mut [R::Element]) {
        self.charge(context, &mut x[..self.states()], self.width);
    }

    /// Words are cut into a high and a low part; the word read backwards has the low part read backwards in front.
    fn dot<R: Ring>(&self, context: Context<R>, x: &[R::Element], y: &[R::Element]) -> R::Element {
        let ring = &context.weight.ring;
        let powers = powers(context.weight, self.width);
        let low = self.width / 2;
        let high = self.width - low;
        // The rank of a high part continued by zeros, and of a low part.
        let rank = |word: u64, symbols: usize, rest: usize| -> usize {
            (0..symbols).filter(|i| word >> i & 1 == 1).map(|i| words(i + rest)).sum()
        };
        let turned = |word: u64, symbols: usize| if symbols == 0 { 0 } else { word.reverse_bits() >> (64 - symbols) };
        let part = |symbols: usize, rest: usize, turned_rest: usize| -> Vec<(u64, usize, usize)> {
            let ranks = |word| (word, rank(word, symbols, rest), rank(turned(word, symbols), symbols, turned_rest));
            list(symbols).into_iter().map(ranks).collect()
        };
        let (highs, lows) = (part(high, low, 0), part(low, 0, high));
        let top = 1u64 << low.saturating_sub(1);
        parallel::reduce(ring, highs.len(), |i| {
            let (word, from, turned_low) = highs[i];
            let fits = |&&(rest, ..): &&(u64, usize, usize)| low == 0 || word & 1 == 0 || rest & top == 0;
            ring.dot(lows.iter().filter(fits).map(|&(rest, at, turned_high)| {
                let other = if self.is_symmetric() { from + at } else { turned_high + turned_low };
                let power = powers.get((word.count_ones() + rest.count_ones()) as usize);
                (power.map_or(x[from + at], |power| ring.mul(x[from + at], *power)), y[other])
            }))
        })
    }

    /// The rows below row a of 2a - 1, or the first a of 2a; before them what is kept.
    fn open_halves(&self, rows: u64) -> Option<Vec<Range<usize>>> {
        let (states, len) = (self.states(), self.len());
        let kept = if rows.is_multiple_of(2) { Some(len..len + states) } else { None };
        Some(std::iter::once(0..states).chain(kept).collect())
    }

    fn open_begun(&self) -> u64 {
        self.column.as_ref().map_or(1, |column| column.width as u64)
    }

    fn begin_cost(&self) -> u64 {
        self.column.as_ref().map_or(0, |column| start::cost(column, self.width))
    }

    fn begin_bound(&self) -> u64 {
        self.column.as_ref().map_or(0, |column| start::bound(column, self.width))
    }

    fn open_begin<R: Ring>(&self, context: Context<R>, x: &mut [R::Element]) -> Result<()> {
        self.column.as_ref().map_or(Ok(()), |column| start::write(context, column, self.width, x))
    }

    fn open_start<R: Ring>(&self, context: Context<R>, _rows: u64, x: &mut [R::Element]) {
        let ring = &context.weight.ring;
        x.fill(ring.zero());
        x[..self.states()].fill(ring.one());
        if self.ring && self.width >= 2 {
            let occupied = &mut x[words(self.width - 1)..words(self.width)];
            each_last(occupied, self.width - 2, &|pair| pair[1] = ring.zero());
        }
    }
}

/// Whether the lattice looks the same after half a turn of a row.
fn is_symmetric(diagonals: Diagonals) -> bool {
    matches!(diagonals, Diagonals::Neither | Diagonals::Both)
}

/// The powers of the activity, none if it is one.
fn powers<R: Ring>(weight: &Weight<R>, highest: usize) -> Vec<R::Element> {
    if weight.unit { Vec::new() } else { weight.powers(highest + 1) }
}

impl DiagonalRow {
    /// A row of a path, for which nothing is made at once.
    fn path(diagonals: Diagonals, width: usize) -> Self {
        Self { diagonals, width, ring: false, programs: vec![OnceLock::new(); MOST_IN_REGISTERS + 1], column: None }
    }

    /// The same with so many rows made at once.
    fn with_start(self, rows: usize) -> Self {
        let column = (rows > 1).then(|| Box::new(Self::path(self.diagonals, rows)));
        Self { column, ..self }
    }

    fn sweep<'a, R: Ring>(&'a self, context: Context<'a, R>) -> RowSweep<'a, R> {
        let leaf = row::leaf(context, self.diagonals);
        let programs = self.programs[leaf].get_or_init(|| Programs::new(self.width, leaf));
        RowSweep::new(context, self.diagonals, self.width, self.ring, programs)
    }

    /// Multiplies words of `k` symbols by the activities of their ones.
    fn charge<R: Ring>(&self, context: Context<R>, x: &mut [R::Element], k: usize) {
        if !context.weight.unit {
            charge(&context.weight.ring, &powers(context.weight, self.width), x, k, 0);
        }
    }
}

/// Multiplies the words of a block with `ones` in front of it.
fn charge<R: Ring>(ring: &R, powers: &[R::Element], block: &mut [R::Element], k: usize, ones: usize) {
    if k == 0 {
        block[0] = ring.mul(block[0], powers[ones]);
        return;
    }
    let (zero, one) = block.split_at_mut(words(k - 1));
    parallel::fork(
        zero.len() > row::GRAIN,
        || charge(ring, powers, zero, k - 1, ones),
        || charge(ring, powers, one, k.saturating_sub(2), ones + 1),
    );
}
