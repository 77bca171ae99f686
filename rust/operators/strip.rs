//! Lattices row by row: one driver for every operator between rows, whatever the boundary.
//!
//! Let T[v, w] = 1 where row v fits beside row w (or the weight of the links between them) and D = z^(number of ones) the
//! weights of a row. With u_r = T (D T)^(r-2) D 1 the vector after r rows, row r without its weights:
//!
//!  - Open direction, h rows, met in the middle:  Z = u_a^T D M u_a for h = 2a - 1,  Z = (T D u_a)^T D M u_a for h = 2a, where
//!    M reads the words of a row backwards, T^T = M T M (the lattice turned by half a turn).
//!  - Closed direction, h rows:  Z = trace((T D)^h) = sum over seam words s of z^|s| e_s^T T (D T)^(h-1) e_s, one word of each
//!    orbit under the symmetries of a row (turns of a ring, reflection). Where T is symmetric both halves of the way around
//!    begin at s, and floor(h/2) rows give p_s, ceil(h/2) rows q_s:  the term is z^|s| p_s^T D q_s.
//!
//! In a count all terms of a seam are small near it: while one residue tells them, eight seams stand side by side where eight residues
//! of one seam would (`numeric::bundle`), then four with two residues each, two with four.
//!
//! A closed extent of one is a loop: no vertex is ever occupied. A closed extent of two is a double edge, which counts as one.
//!
//! A new lattice is a [`RowOperator`]: a file of its own, and a line in `super::registry`. Example: the operator of a
//! row of two vertices of the square lattice has the words 00, 10, 01 and T = [1 1 1; 1 0 1; 1 1 0]; on three open rows
//! u_1 = (1, 1, 1), u_2 = T u_1 = (3, 2, 2), Z = 9 + 4 + 4 = 17, the independent sets of the 3 x 2 grid.
//!
//! Source: N. Calkin, H. Wilf (1998), The number of independent sets in a grid graph, SIAM J. Discrete Math. 11.

use super::Boundary;
use super::transfer::{StepContext, Transfer, TransferRing, Weight};
use crate::monitor::Progress;
use crate::numeric::buffer::Buffer;
use crate::numeric::bundle::{Bundled, Unbundling};
use crate::numeric::dispatch::{self, Level};
use crate::numeric::ring::{F64, Ring};
use crate::parallel::{self, Shared};
use crate::{Error, Result, memory};
use std::ops::Range;

/// Seams are worked on in batches of about so many elements: more leave the caches, at 18 rows of 30 around by a tenth of the time.
const BATCH: usize = 1 << 18;
/// Batches of fewer than so many seams, for which threads wait, may have so many elements.
const FEW: usize = 4;
const MOST: usize = 1 << 22;
/// Seams that stand side by side at most.
const SIDE: usize = 8;
/// Additions that take as long as finding more residues of an element, and for each residue of a number as adding it to sums of products.
const UNBUNDLED: u64 = 15;
const MULTIPLIED: u64 = 9;
/// Bits of a number that one residue tells: all moduli are a little larger.
const TOLD: f64 = 54.999;
/// Words of a row that are looked at between two looks at the progress.
const LOOK: usize = 1 << 14;
/// Bytes of a vector whose words are listed whatever the limit.
const SMALL: u128 = 1 << 20;

/// How many rows there are, and how they end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// So many rows from one open end to the other.
    Open(u64),
    /// So many rows around.
    Closed(u64),
}

/// What an operator needs besides its vector.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a, R: Ring> {
    /// The ring and the parameters of the points.
    pub weight: &'a Weight<R>,
    /// The vector instructions to use.
    pub level: Level,
    /// Who hears of the progress.
    pub progress: &'a Progress,
}

/// A word that the rows around start from, and how many words its orbit has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seam {
    /// The word.
    pub word: u64,
    /// Its index in a vector.
    pub rank: usize,
    /// The size of its orbit.
    pub orbit: u64,
}

/// Rows from a seam on whose numbers so many residues tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Residues of a number.
    residues: usize,
    /// Rows up to the last of these.
    rows: u64,
}

/// The operator between two rows of one lattice. Vectors are indexed by the rank of a row's word.
///
/// Required are the row itself and one application; fused forms of several rows override what is provided.
#[expect(clippy::len_without_is_empty, reason = "a row has one state at the least")]
pub trait RowOperator: Clone + std::fmt::Debug + Send + Sync {
    /// Which member of a family of lattices.
    type Links: Copy;
    /// Vertices of an open extent above its number of cells.
    const FENCE: usize = 0;
    /// Whether a closed extent of one makes loops.
    const LOOPS: bool = true;
    /// The names of the extents.
    const EXTENTS: [&'static str; 2] = ["rows", "cols"];

    /// Vertices of a section.
    fn vertices(rows: usize, cols: usize, _: Boundary) -> usize {
        rows * cols
    }

    /// A size no independent set of a section exceeds: every other vertex of a row, and of a closed column.
    fn largest_set(_: Self::Links, rows: usize, cols: usize, boundary: Boundary) -> usize {
        match boundary {
            Boundary::Free => (rows * cols).div_ceil(2),
            Boundary::Cylinder => rows * (cols / 2),
            Boundary::Torus => (rows * (cols / 2)).min(cols * (rows / 2)),
        }
    }

    /// Sections without the edges between them, and how many further edges lie between vertices of theirs or left over.
    fn pieces(rows: usize, cols: usize, _: Boundary) -> (Vec<(usize, usize, Boundary)>, usize) {
        let (long, short) = (rows.max(cols), rows.min(cols));
        ([long.div_ceil(2), long / 2].map(|rows| (rows, short, Boundary::Free)).into(), 0)
    }

    /// The extents of a section that contains each graph whose sets [`Self::open_halves`] counts, closed like the whole.
    fn half(rows: usize, cols: usize, boundary: Boundary) -> (usize, usize) {
        if boundary == Boundary::Free { (rows.max(cols) / 2, rows.min(cols)) } else { (rows / 2, cols) }
    }

    /// About how many additions a job takes, infinity where it is out of reach: the driver takes the cheaper direction.
    fn forecast(links: Self::Links, width: usize, ring: bool, rows: Rows) -> f64;

    /// A row of `width` sites, closed to a ring or not, for so many rows.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if its states cannot be addressed.
    fn new(links: Self::Links, width: usize, ring: bool, rows: Rows) -> Result<Self>;

    /// Sites of a row.
    fn width(&self) -> usize;
    /// Whether a row is a ring.
    fn is_ring(&self) -> bool;
    /// Elements of a vector.
    fn states(&self) -> usize;
    /// The words of a row with their ranks, one bit per site; ranks without a word hold zero.
    fn list(&self) -> Vec<(usize, u64)>;
    /// Additions of one application.
    fn cost(&self) -> u64;
    /// Most roundings on the way through one row with its weights.
    fn bound(&self) -> u64;

    /// `x <- T x`. Elements are folded before and after; `x` has [`Self::len`] elements, the first are the vector.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the caller says so.
    fn apply<R: Ring>(&self, context: Context<R>, x: &mut [R::Element]) -> Result<()>;
    /// `x <- D x`.
    fn weigh<R: Ring>(&self, context: Context<R>, x: &mut [R::Element]);
    /// `x^T D M y`.
    fn dot<R: Ring>(&self, context: Context<R>, x: &[R::Element], y: &[R::Element]) -> R::Element;

    /// Elements of a vector and of the memory it is worked on with.
    fn len(&self) -> usize {
        self.states()
    }
    /// Most roundings in [`Self::dot`].
    fn dot_bound(&self) -> u64 {
        self.states() as u64 + 2
    }
    /// Whether T is symmetric, and M not needed.
    fn is_symmetric(&self) -> bool {
        true
    }
    /// `x <- T x`, or `x <- T D T x`.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the caller says so.
    fn advance<R: Ring>(&self, context: Context<R>, x: &mut [R::Element], twice: bool) -> Result<()> {
        self.apply(context, x)?;
        if twice {
            self.weigh(context, x);
            self.apply(context, x)?;
        }
        Ok(())
    }

    /// Elements of an open direction of so many rows.
    fn open_len(&self, rows: u64) -> usize {
        self.len() + if rows.is_multiple_of(2) { self.states() } else { 0 }
    }
    /// The rows that an open direction begins with: more than one if [`Self::open_begin`] makes them at once.
    fn open_begun(&self) -> u64 {
        1
    }
    /// The vector after these rows, the first step if they are several; the memory may hold anything.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the caller says so.
    fn open_begin<R: Ring>(&self, _context: Context<R>, _x: &mut [R::Element]) -> Result<()> {
        Ok(())
    }
    /// Additions that take as long.
    fn begin_cost(&self) -> u64 {
        0
    }
    /// Its most roundings.
    fn begin_bound(&self) -> u64 {
        0
    }
    /// A number of rows that takes as many from the first on as `rows` take from those begun with.
    fn open_left(&self, rows: u64) -> u64 {
        rows - 2 * (self.open_begun() - 1)
    }
    /// The step after the beginning, none if it is the beginning.
    fn after_begin(&self, step: u64) -> Option<u64> {
        if self.open_begun() > 1 { step.checked_sub(1) } else { Some(step) }
    }
    /// The steps of an open direction: the beginning, two rows each, and one more to the middle of an even number.
    fn open_steps(&self, rows: u64) -> u64 {
        let begin = u64::from(self.open_begun() > 1);
        begin + moves(self.open_left(rows)).div_ceil(2) + u64::from(rows.is_multiple_of(2))
    }
    /// Additions of one step.
    fn open_cost(&self, rows: u64, step: u64) -> u64 {
        let moves = moves(self.open_left(rows));
        self.after_begin(step)
            .map_or(self.begin_cost(), |step| self.cost() * moves.saturating_sub(2 * step).clamp(1, 2))
    }
    /// Most roundings.
    fn open_bound(&self, rows: u64) -> u64 {
        let rows = self.bound().saturating_mul(self.open_left(rows) / 2 + 2);
        rows.saturating_add(self.begin_bound()).saturating_add(self.dot_bound())
    }
    /// The vector after the first row: all ones.
    fn open_start<R: Ring>(&self, context: Context<R>, _rows: u64, x: &mut [R::Element]) {
        x.fill(context.weight.ring.one());
    }
    /// One step.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the caller says so.
    fn open_step<R: Ring>(&self, context: Context<R>, rows: u64, step: u64, x: &mut [R::Element]) -> Result<()> {
        let Some(step) = self.after_begin(step) else { return self.open_begin(context, x) };
        let (x, kept) = x.split_at_mut(self.len());
        let moves = moves(self.open_left(rows));
        if 2 * step >= moves {
            kept.copy_from_slice(&x[..self.states()]);
        }
        self.weigh(context, x);
        self.advance(context, x, 2 * step + 1 < moves)
    }
    /// The partition function.
    fn open_finish<R: Ring>(&self, context: Context<R>, rows: u64, x: &[R::Element]) -> R::Element {
        let (x, kept) = x.split_at(self.len());
        let x = &x[..self.states()];
        self.dot(context, x, if rows.is_multiple_of(2) { kept } else { x })
    }

    /// The elements that [`Self::open_finish`] reads, where each is a number of independent sets of at most half of the
    /// rows; none where that is not known.
    fn open_halves(&self, _rows: u64) -> Option<Vec<Range<usize>>> {
        None
    }

    /// The seams of a closed direction, one of each orbit.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the progress says so.
    fn seams(&self, progress: &Progress) -> Result<Vec<Seam>> {
        orbits(self.list(), self.width(), self.is_ring(), progress)
    }
    /// Elements that one seam of a closed direction needs.
    fn closed_len(&self, rows: u64) -> usize {
        self.len() + if self.is_symmetric() && rows % 2 == 1 { self.states() } else { 0 }
    }
    /// Additions of one seam.
    fn closed_cost(&self, rows: u64) -> u64 {
        self.cost().saturating_mul(if self.is_symmetric() { rows.div_ceil(2) } else { rows })
    }
    /// Most roundings of one seam.
    fn closed_bound(&self, rows: u64) -> u64 {
        let around = if self.is_symmetric() { rows / 2 + 2 } else { rows + 2 };
        self.bound().saturating_mul(around).saturating_add(self.dot_bound() + 2 * self.width() as u64)
    }
    /// Rows that both ways around have from a seam on, and the longer of them.
    fn closed_halves(&self, rows: u64) -> (u64, u64) {
        if self.is_symmetric() { (rows / 2, rows.div_ceil(2)) } else { (rows, rows) }
    }
    /// Whether [`Self::closed_terms`] is the one that is provided, so that its seams can be bundled.
    fn has_plain_seams(&self) -> bool {
        true
    }
    /// Rows from `done` to `upto` of a closed direction; before any the vector has its seam.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the caller says so.
    fn closed_rows<R: Ring>(
        &self,
        context: Context<R>,
        (mut done, upto): (u64, u64),
        x: &mut [R::Element],
    ) -> Result<()> {
        while done < upto {
            if done > 0 {
                self.weigh(context, x);
            }
            self.advance(context, x, done + 1 < upto)?;
            done += 2;
        }
        Ok(())
    }
    /// The terms of words of a seam: where its rows come back to it. So many rows are done; before any the memory may hold anything.
    /// The ring has bundles with so many residues of each term.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the caller says so.
    fn closed_terms<R: Bundled>(
        &self,
        context: Context<R>,
        (done, rows): (u64, u64),
        (seams, residues): (&[Seam], usize),
        x: &mut [R::Element],
    ) -> Result<Vec<R::Element>> {
        let weight = context.weight;
        let (x, kept) = x.split_at_mut(self.len());
        if done == 0 {
            set_out(&weight.ring, seams, residues, x);
        }
        self.closed_rows(context, (done, self.closed_halves(rows).0), x)?;
        let value = if !self.is_symmetric() {
            None
        } else if rows.is_multiple_of(2) {
            Some(self.dot(context, &x[..self.states()], &x[..self.states()]))
        } else {
            kept.copy_from_slice(&x[..self.states()]);
            self.weigh(context, x);
            self.advance(context, x, false)?;
            Some(self.dot(context, &x[..self.states()], kept))
        };
        let term = |(place, seam): (usize, &Seam)| {
            let value = weight.ring.number(residues, place, value.unwrap_or(x[seam.rank]));
            let ones = if weight.unit { 0 } else { seam.word.count_ones() };
            (0..ones).fold(value, |value, _| weight.ring.mul(value, weight.activity))
        };
        Ok(seams.iter().enumerate().map(term).collect())
    }
}

/// A vector before any row: each seam is one in its bundle.
fn set_out<R: Bundled>(ring: &R, seams: &[Seam], residues: usize, x: &mut [R::Element]) {
    x.fill(ring.zero());
    for (place, seam) in seams.iter().enumerate() {
        x[seam.rank] = ring.add(x[seam.rank], ring.unit(residues, place));
    }
}

/// Moves of a whole row up to the middle of an open direction.
pub fn moves(rows: u64) -> u64 {
    (rows - 1) / 2
}

/// One word of each orbit under reflection, and under the turns of a ring, with the size of its orbit.
///
/// # Errors
/// [`Error::Interrupted`] when the progress says so.
pub fn orbits(words: Vec<(usize, u64)>, width: usize, ring: bool, progress: &Progress) -> Result<Vec<Seam>> {
    let mask = (1u64 << width) - 1;
    let turns = if ring { width } else { 1 };
    let images = |word: u64| {
        let reversed = word.reverse_bits() >> (64 - width);
        (0..turns).flat_map(move |turn| [word, reversed].map(|w| (w << turn | w >> (width - turn)) & mask))
    };
    let orbit = |(rank, word): (usize, u64)| {
        images(word).all(|image| word <= image).then(|| {
            let same = images(word).filter(|&image| image == word).count();
            Seam { word, rank, orbit: (2 * turns / same) as u64 }
        })
    };
    let mut seams = Vec::new();
    for words in words.chunks(LOOK) {
        progress.check()?;
        seams.extend(words.iter().copied().filter_map(orbit));
    }
    Ok(seams)
}

/// `count * x` by doubling, folded.
pub fn multiple<R: Ring>(ring: &R, x: R::Element, count: u64) -> R::Element {
    (0..u64::BITS - count.leading_zeros()).rev().fold(ring.zero(), |sum, bit| {
        let double = ring.add(sum, sum);
        ring.fold(if count >> bit & 1 == 1 { ring.add(double, x) } else { double })
    })
}

/// The transfer operator of a lattice with an operator between its rows.
#[derive(Clone, Debug)]
pub struct Strip<O> {
    direction: Direction<O>,
    level: Level,
}

/// How a strip is counted.
#[derive(Clone, Debug)]
enum Direction<O> {
    /// Loops everywhere: only the empty set.
    Empty,
    /// Rows from an open end to the middle.
    Open { row: Box<O>, rows: u64 },
    /// Rows around, once per seam.
    Closed(Box<Around<O>>),
}

/// Rows around.
#[derive(Clone, Debug)]
struct Around<O> {
    row: O,
    rows: u64,
    seams: Vec<Seam>,
    /// Where seams are bundled, by number of residues; none if they are not.
    stages: Vec<Stage>,
    /// Seams that are worked on at once, in a room each, and how many are taken into a room one after the other.
    rooms: usize,
    each: usize,
}

impl<O: RowOperator> Strip<O> {
    /// The lattice with these extents; on a cylinder the second is the circumference. A vector has at most `most` elements.
    ///
    /// # Errors
    /// [`Error::Domain`] for an extent of zero, [`Error::TooLarge`] if the states cannot be addressed.
    pub fn with_links(
        links: O::Links,
        rows: usize,
        cols: usize,
        boundary: Boundary,
        most: usize,
        progress: &Progress,
    ) -> Result<Self> {
        for (name, extent) in O::EXTENTS.into_iter().zip([rows, cols]) {
            if extent == 0 {
                return Err(Error::domain(name, extent, "at least 1"));
            }
        }
        let (short, long) = (rows.min(cols), rows.max(cols));
        let fenced = |extent: usize| extent.saturating_add(O::FENCE);
        let open = |width, ring, rows| (width, ring, Rows::Open(rows as u64));
        let closed = |width, ring, rows| (width, ring, Rows::Closed(rows as u64));
        let ways = match boundary {
            Boundary::Cylinder if O::LOOPS && cols == 1 => vec![],
            Boundary::Torus if O::LOOPS && short == 1 => vec![],
            Boundary::Free => vec![open(fenced(short), false, fenced(long))],
            Boundary::Cylinder => vec![open(cols, true, fenced(rows)), closed(fenced(rows), false, cols)],
            Boundary::Torus => vec![closed(short, true, long), closed(long, true, short)],
        };
        let cost = |&(width, ring, rows): &(usize, bool, Rows)| O::forecast(links, width, ring, rows);
        let cheapest = ways.into_iter().min_by(|one, other| cost(one).total_cmp(&cost(other)));
        cheapest.map_or_else(
            || Ok(Self::of(Direction::Empty)),
            |(width, ring, rows)| Self::along(links, width, ring, rows, most, progress),
        )
    }

    /// Rows of `width` sites one way, whether or not another would be cheaper.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the states cannot be addressed.
    pub fn along(
        links: O::Links,
        width: usize,
        ring: bool,
        rows: Rows,
        most: usize,
        progress: &Progress,
    ) -> Result<Self> {
        O::new(links, width, ring, rows).and_then(|row| Self::with_row(row, rows, most, progress))
    }

    /// So many rows of an operator made for them.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the words of a row, or one of its vectors, do not fit; the progress's.
    pub fn with_row(row: O, rows: Rows, most: usize, progress: &Progress) -> Result<Self> {
        Ok(Self::of(match rows {
            Rows::Open(rows) => Direction::Open { row: Box::new(row), rows },
            Rows::Closed(rows) => {
                // Small lists are made in any case: the layout then says the figures to the byte.
                let limit = (most as u128).saturating_mul(8).max(SMALL);
                memory::check("the vector of partial sums", 8 * row.closed_len(rows) as u128, limit)?;
                memory::charge("a list of the words of a row", 24 * row.states() as u128)?;
                let seams = row.seams(progress)?;
                Direction::Closed(Box::new(Around::new(row, rows, seams)))
            }
        }))
    }

    fn of(direction: Direction<O>) -> Self {
        Self { direction, level: dispatch::level() }
    }

    /// The same with these vector instructions, or the best there are if they are less. Results do not depend on them.
    pub fn with_level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    fn context<'a, R: Ring>(&self, weight: &'a Weight<R>, progress: &'a Progress) -> Context<'a, R> {
        Context { weight, level: self.level, progress }
    }
}

/// Rooms of so many elements for so many tasks.
fn rooms_of(elements: usize, tasks: usize) -> usize {
    (BATCH / elements).max(FEW.min(MOST / elements)).clamp(1, tasks.max(1))
}

impl<O: RowOperator> Around<O> {
    fn new(row: O, rows: u64, seams: Vec<Seam>) -> Self {
        let rooms = rooms_of(row.closed_len(rows), seams.len());
        Self { row, rows, seams, stages: Vec::new(), rooms, each: 1 }
    }

    /// Elements of a room: a vector for each stage, and what a seam needs.
    fn room(&self) -> usize {
        self.stages.len() * self.row.len() + self.row.closed_len(self.rows)
    }

    /// Seams of a step.
    fn batch(&self) -> usize {
        self.rooms * self.each
    }

    fn of_step(&self, step: u64) -> &[Seam] {
        self.seams.chunks(self.batch()).nth(step as usize).unwrap_or_default()
    }

    /// Whether both ways around meet in a stage, where its sums of products are the terms.
    fn ends_in(&self, stage: &Stage) -> bool {
        self.row.is_symmetric() && stage.rows == self.row.closed_halves(self.rows).1
    }

    /// Additions for a seam by so many points on so many lanes.
    fn cost(&self, points: usize, lanes: usize) -> u64 {
        if self.stages.is_empty() {
            return self.row.closed_cost(self.rows);
        }
        let (residues, states) = (points.next_power_of_two().min(lanes) as u64, self.row.states() as u64);
        let stages: Vec<&Stage> = self.stages.iter().filter(|stage| (stage.residues as u64) < residues).collect();
        let (mut additions, mut left) = (0, self.row.closed_halves(self.rows).1);
        for (i, stage) in stages.iter().enumerate() {
            let rows = stage.rows - i.checked_sub(1).map_or(0, |before| stages[before].rows);
            let after = match stages.get(i + 1) {
                Some(next) => UNBUNDLED * next.residues as u64,
                None if self.ends_in(stage) => MULTIPLIED * (stage.residues * stage.residues) as u64,
                None => UNBUNDLED * residues,
            };
            additions += self.row.cost() * rows * stage.residues as u64 + after * states;
            left -= rows;
        }
        (additions + self.row.cost() * left * residues) / lanes as u64
    }

    /// Finds the stages, whatever the memory limit: the steps of a plan are the same everywhere.
    ///
    /// The word 0 without ones fits beside all words, so after any rows no number of any seam exceeds that of the seam 0 at 0. It is
    /// evaluated in double precision, with twice the proved rate of its roundings.
    fn bundle(&mut self, level: Level, progress: &Progress) -> Result<()> {
        let Some(empty) = self.seams.iter().find(|seam| seam.word == 0).map(|seam| seam.rank) else { return Ok(()) };
        if !self.row.has_plain_seams() {
            return Ok(());
        }
        let weight = Weight::new(F64, 1.0);
        let context = Context { weight: &weight, level, progress };
        let mut x = Buffer::zeroed(self.row.len())?;
        x[empty] = 1.0;
        let mut residues = 1;
        for row in 0..self.row.closed_halves(self.rows).1 {
            self.row.closed_rows(context, (row, row + 1), &mut x)?;
            progress.check()?;
            let error = (row + 1) as f64 * self.row.bound() as f64 * f64::EPSILON;
            let bits = x[empty].log2() + error * std::f64::consts::LOG2_E;
            while residues < SIDE && bits > residues as f64 * TOLD {
                residues *= 2;
            }
            match self.stages.last_mut() {
                _ if residues == SIDE => break,
                Some(stage) if stage.residues == residues => stage.rows = row + 1,
                _ => self.stages.push(Stage { residues, rows: row + 1 }),
            }
        }
        if !self.stages.is_empty() {
            self.each = SIDE;
            self.rooms = rooms_of(self.room(), self.seams.len().div_ceil(SIDE));
        }
        Ok(())
    }

    /// The terms of some seams.
    fn terms<R: TransferRing>(
        &self,
        context: Context<R>,
        seams: &[Seam],
        room: &mut [R::Element],
    ) -> Result<Vec<R::Element>> {
        let bundles = Bundles::new(self, context.weight);
        let first = bundles.stages.first().map_or(bundles.residues, |(stage, ..)| stage.residues);
        let mut terms = Vec::with_capacity(seams.len());
        for seams in seams.chunks(R::SIDE / first) {
            if !bundles.stages.is_empty() {
                set_out(&context.weight.ring, seams, first, &mut room[..self.row.len()]);
            }
            bundles.descend(self, context, (0, 0), seams, room, &mut terms)?;
        }
        Ok(terms)
    }
}

/// The stages of a ring: each with its own ring, and the way to the next; then the ring that is left.
struct Bundles<R: TransferRing> {
    stages: Vec<(Stage, Weight<R>, Unbundling)>,
    /// The ring in the end, and how many residues of each number it has.
    last: Weight<R>,
    residues: usize,
}

impl<R: TransferRing> Bundles<R> {
    /// Those that the ring's moduli allow.
    fn new<O: RowOperator>(around: &Around<O>, weight: &Weight<R>) -> Self {
        let ring = weight.ring;
        let is_bundled = weight.unit && !around.stages.is_empty();
        let (last, residues) = if is_bundled { ring.without_repeats() } else { (ring, R::SIDE) };
        let last = if is_bundled { Weight::new(last, last.one()) } else { weight.clone() };
        let stages = around.stages.iter().filter(|stage| is_bundled && stage.residues < residues);
        let allowed: Vec<(Stage, R)> =
            stages.filter_map(|&stage| ring.bundle(stage.residues).map(|ring| (stage, ring))).collect();
        let next = |i: usize| allowed.get(i + 1).map_or(residues, |(stage, _)| stage.residues);
        let stage = |(i, &(stage, bundle)): (usize, &(Stage, R))| {
            (stage, Weight::new(bundle, bundle.one()), ring.unbundling(stage.residues, next(i)))
        };
        Self { stages: allowed.iter().enumerate().map(stage).collect(), last, residues }
    }

    /// Works through the rows of a stage, the vector of which is there, then seam by seam through what is left.
    fn descend<O: RowOperator>(
        &self,
        around: &Around<O>,
        context: Context<R>,
        (at, done): (usize, u64),
        seams: &[Seam],
        room: &mut [R::Element],
        terms: &mut Vec<R::Element>,
    ) -> Result<()> {
        let (row, ring, states) = (&around.row, &context.weight.ring, around.row.states());
        let Some((stage, weight, way)) = self.stages.get(at) else {
            let own = Context { weight: &self.last, ..context };
            let room = &mut room[..row.closed_len(around.rows)];
            terms.extend(row.closed_terms(own, (done, around.rows), (seams, self.residues), room)?);
            return Ok(());
        };
        let (x, rest) = room.split_at_mut(row.len());
        let own = Context { weight, ..context };
        let (half, _) = row.closed_halves(around.rows);
        row.closed_rows(own, (done, stage.rows.min(half)), x)?;
        if around.ends_in(stage) {
            let kept = &mut rest[..if stage.rows > half { states } else { 0 }];
            kept.copy_from_slice(&x[..kept.len()]);
            row.closed_rows(own, (stage.rows.min(half), stage.rows), x)?;
            let x = &x[..states];
            let products = ring.products(context.level, way, (x, if kept.is_empty() { x } else { kept }));
            terms.extend(products.into_iter().take(seams.len()));
            return context.progress.advance(MULTIPLIED * (stage.residues * states) as u64);
        }
        let next = self.stages.get(at + 1).map_or(self.residues, |(next, ..)| next.residues);
        for (part, seams) in seams.chunks(R::SIDE / next).enumerate() {
            ring.unbundle(context.level, way, part, &x[..states], &mut rest[..states]);
            context.progress.advance(UNBUNDLED * states as u64)?;
            self.descend(around, context, (at + 1, stage.rows), seams, rest, terms)?;
        }
        Ok(())
    }
}

/// The vector of a closed direction is the sum so far and the memory of a batch of seams.
impl<O: RowOperator> Transfer for Strip<O> {
    fn len(&self) -> usize {
        match &self.direction {
            Direction::Empty => 1,
            Direction::Open { row, rows } => row.open_len(*rows),
            Direction::Closed(around) => 1 + around.rooms * around.room(),
        }
    }

    fn steps(&self) -> u64 {
        match &self.direction {
            Direction::Empty => 0,
            Direction::Open { row, rows } => row.open_steps(*rows),
            Direction::Closed(around) => around.seams.len().div_ceil(around.batch()) as u64,
        }
    }

    fn work(&self, step: u64) -> u64 {
        match &self.direction {
            Direction::Empty => 0,
            Direction::Open { row, rows } => row.open_cost(*rows, step),
            Direction::Closed(around) => around.cost(SIDE, SIDE).saturating_mul(around.of_step(step).len() as u64),
        }
    }

    fn roundings(&self) -> u64 {
        match &self.direction {
            Direction::Empty => 0,
            Direction::Open { row, rows } => row.open_bound(*rows),
            // Multiplying by the size of an orbit takes at most 128 roundings.
            Direction::Closed(around) => {
                around.row.closed_bound(around.rows).saturating_add(around.seams.len() as u64 + 128)
            }
        }
    }

    fn start<R: TransferRing>(&self, weight: &Weight<R>, state: &mut [R::Element]) {
        match &self.direction {
            Direction::Open { row, rows } => row.open_start(self.context(weight, &Progress::default()), *rows, state),
            Direction::Empty | Direction::Closed(_) => state.fill(weight.ring.zero()),
        }
    }

    fn advance<R: TransferRing>(&self, at: StepContext<'_, R>, state: &mut [R::Element]) -> Result<()> {
        let ring = &at.weight.ring;
        at.progress.check()?;
        let context = self.context(at.weight, at.progress);
        match &self.direction {
            Direction::Empty => Ok(()),
            Direction::Open { row, rows } => row.open_step(context, *rows, at.number, state),
            Direction::Closed(around) => {
                let Some((sum, vectors)) = state.split_first_mut() else { return Ok(()) };
                let (seams, room) = (around.of_step(at.number), around.room());
                let vectors = Shared::new(vectors);
                let terms = parallel::try_map(seams.len().div_ceil(around.each), |i| {
                    // SAFETY: the rooms do not overlap.
                    let x = unsafe { vectors.part(i * room, room) };
                    let seams = &seams[i * around.each..seams.len().min((i + 1) * around.each)];
                    around.terms(context, seams, x)
                })?;
                for (term, seam) in terms.into_iter().flatten().zip(seams) {
                    *sum = ring.fold(ring.add(*sum, multiple(ring, term, seam.orbit)));
                }
                Ok(())
            }
        }
    }

    fn for_counts(&mut self, progress: &Progress) -> Result<()> {
        if let Direction::Closed(around) = &mut self.direction {
            around.bundle(self.level, progress)?;
        }
        Ok(())
    }

    fn slower(&self, points: usize, lanes: usize) -> f64 {
        match &self.direction {
            Direction::Closed(around) => around.cost(points, lanes) as f64 / around.cost(SIDE, SIDE).max(1) as f64,
            Direction::Empty | Direction::Open { .. } => 1.0,
        }
    }

    fn halves(&self) -> Option<Vec<Range<usize>>> {
        match &self.direction {
            Direction::Open { row, rows } => row.open_halves(*rows),
            Direction::Empty | Direction::Closed(_) => None,
        }
    }

    fn adds_up(&self) -> bool {
        matches!(self.direction, Direction::Closed(_))
    }

    fn finish<R: TransferRing>(&self, weight: &Weight<R>, state: &[R::Element]) -> R::Element {
        match &self.direction {
            Direction::Empty => weight.ring.one(),
            Direction::Closed(_) => state[0],
            Direction::Open { row, rows } => row.open_finish(self.context(weight, &Progress::default()), *rows, state),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::transfer::{Point, evaluate_lanes};

    /// Asserts that eight residues of two engines are equal, of the second with all vector instructions and numbers of lanes.
    pub(crate) fn assert_alike_at_every_level<O: RowOperator + Clone>(
        plain: &Strip<O>,
        other: &Strip<O>,
        points: &[Point],
        what: &str,
    ) {
        let progress = Progress::default();
        let expected = evaluate_lanes::<8>(plain, points, &progress).unwrap();
        for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
            let other = other.clone().with_level(level);
            assert_eq!(evaluate_lanes::<8>(&other, points, &progress).unwrap(), expected, "{what}, {level:?}");
            for few in [3, 4] {
                let found = evaluate_lanes::<4>(&other, &points[..few], &progress).unwrap();
                assert_eq!(found, expected[..few], "{what}, {level:?}");
            }
            let one = evaluate_lanes::<1>(&other, &points[..1], &progress).unwrap();
            assert_eq!(one, expected[..1], "{what}, {level:?}");
        }
    }
}
