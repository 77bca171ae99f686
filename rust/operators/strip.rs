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
use crate::numeric::dispatch::{self, Level};
use crate::numeric::ring::Ring;
use crate::parallel::{self, Shared};
use crate::{Error, Result, memory};
use std::ops::Range;

/// Seams are worked on in batches of about so many elements.
const BATCH: usize = 1 << 16;
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
    /// The term of one word of a seam: where its rows come back to it.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the caller says so.
    fn closed_term<R: Ring>(
        &self,
        context: Context<R>,
        rows: u64,
        seam: Seam,
        x: &mut [R::Element],
    ) -> Result<R::Element> {
        let weight = context.weight;
        let (x, kept) = x.split_at_mut(self.len());
        x.fill(weight.ring.zero());
        x[seam.rank] = weight.ring.one();
        let half = if self.is_symmetric() { rows / 2 } else { rows };
        let mut left = half;
        while left > 0 {
            if left < half {
                self.weigh(context, x);
            }
            self.advance(context, x, left > 1)?;
            left = left.saturating_sub(2);
        }
        let value = if !self.is_symmetric() {
            x[seam.rank]
        } else if rows.is_multiple_of(2) {
            self.dot(context, &x[..self.states()], &x[..self.states()])
        } else {
            kept.copy_from_slice(&x[..self.states()]);
            self.weigh(context, x);
            self.advance(context, x, false)?;
            self.dot(context, &x[..self.states()], kept)
        };
        if weight.unit {
            return Ok(value);
        }
        Ok((0..seam.word.count_ones()).fold(value, |value, _| weight.ring.mul(value, weight.activity)))
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
    /// Rows around, once per seam, `batch` seams side by side.
    Closed { row: Box<O>, rows: u64, seams: Vec<Seam>, batch: usize },
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
        let row = Box::new(row);
        Ok(Self::of(match rows {
            Rows::Open(rows) => Direction::Open { row, rows },
            Rows::Closed(rows) => {
                // Small lists are made in any case: the layout then says the figures to the byte.
                let limit = (most as u128).saturating_mul(8).max(SMALL);
                memory::check("the vector of partial sums", 8 * row.closed_len(rows) as u128, limit)?;
                memory::charge("a list of the words of a row", 24 * row.states() as u128)?;
                let seams = row.seams(progress)?;
                let batch = (BATCH / row.closed_len(rows)).clamp(1, seams.len().max(1));
                Direction::Closed { row, rows, seams, batch }
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

/// The vector of a closed direction is the sum so far and the memory of a batch of seams.
impl<O: RowOperator> Transfer for Strip<O> {
    fn len(&self) -> usize {
        match &self.direction {
            Direction::Empty => 1,
            Direction::Open { row, rows } => row.open_len(*rows),
            Direction::Closed { row, rows, batch, .. } => 1 + batch * row.closed_len(*rows),
        }
    }

    fn steps(&self) -> u64 {
        match &self.direction {
            Direction::Empty => 0,
            Direction::Open { row, rows } => row.open_steps(*rows),
            Direction::Closed { seams, batch, .. } => seams.len().div_ceil(*batch) as u64,
        }
    }

    fn work(&self, step: u64) -> u64 {
        match &self.direction {
            Direction::Empty => 0,
            Direction::Open { row, rows } => row.open_cost(*rows, step),
            Direction::Closed { row, rows, seams, batch } => {
                let count = seams.chunks(*batch).nth(step as usize).map_or(0, <[_]>::len);
                row.closed_cost(*rows).saturating_mul(count as u64)
            }
        }
    }

    fn roundings(&self) -> u64 {
        match &self.direction {
            Direction::Empty => 0,
            Direction::Open { row, rows } => row.open_bound(*rows),
            // Multiplying by the size of an orbit takes at most 128 roundings.
            Direction::Closed { row, rows, seams, .. } => {
                row.closed_bound(*rows).saturating_add(seams.len() as u64 + 128)
            }
        }
    }

    fn start<R: TransferRing>(&self, weight: &Weight<R>, state: &mut [R::Element]) {
        match &self.direction {
            Direction::Open { row, rows } => row.open_start(self.context(weight, &Progress::default()), *rows, state),
            Direction::Empty | Direction::Closed { .. } => state.fill(weight.ring.zero()),
        }
    }

    fn advance<R: TransferRing>(&self, at: StepContext<'_, R>, state: &mut [R::Element]) -> Result<()> {
        let ring = &at.weight.ring;
        at.progress.check()?;
        let context = self.context(at.weight, at.progress);
        match &self.direction {
            Direction::Empty => Ok(()),
            Direction::Open { row, rows } => row.open_step(context, *rows, at.number, state),
            Direction::Closed { row, rows, seams, batch } => {
                let Some((sum, vectors)) = state.split_first_mut() else { return Ok(()) };
                let seams = seams.chunks(*batch).nth(at.number as usize).unwrap_or_default();
                let room = row.closed_len(*rows);
                let vectors = Shared::new(vectors);
                let terms = parallel::try_map(seams.len(), |i| {
                    // SAFETY: the rooms of two seams do not overlap.
                    let x = unsafe { vectors.part(i * room, room) };
                    let value = row.closed_term(context, *rows, seams[i], x)?;
                    Ok(multiple(ring, value, seams[i].orbit))
                })?;
                for term in terms {
                    *sum = ring.fold(ring.add(*sum, term));
                }
                Ok(())
            }
        }
    }

    fn halves(&self) -> Option<Vec<Range<usize>>> {
        match &self.direction {
            Direction::Open { row, rows } => row.open_halves(*rows),
            Direction::Empty | Direction::Closed { .. } => None,
        }
    }

    fn adds_up(&self) -> bool {
        matches!(self.direction, Direction::Closed { .. })
    }

    fn finish<R: TransferRing>(&self, weight: &Weight<R>, state: &[R::Element]) -> R::Element {
        match &self.direction {
            Direction::Empty => weight.ring.one(),
            Direction::Closed { .. } => state[0],
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
