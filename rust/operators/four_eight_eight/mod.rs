//! Independent sets of the 4-8-8 lattice (truncated square tiling) cut to m x n octagons.
//!
//! Diamonds with corners N, E, S, W form an array; the links E-W and S-N join neighbors. A column of diamonds maps the
//! occupation x of its W corners to the occupation y of its E corners, site by site with one carried bit: the N corner of
//! the next diamond is occupied. With a0, a1 the sums for x_k = 0, 1 under carry 0 and c the one for x_k = 0 under carry 1,
//!
//!   s = a0 + z a1,   t = a0 + z c,   u = s + z c;     carry 0: y_k = 0: u + z t, y_k = 1: s;   carry 1: u, s,
//!
//! and the links to the next column, with W corners x', are J = (y_k = 0: both x', y_k = 1: x' = 0 only), taken at once:
//!
//!   carry 0: x'_k = 0: u + z t + z s,  x'_k = 1: u + z t;     carry 1: u + z s,  u.
//!
//! The activity z of an E corner is charged when the link is crossed, that of a W or N corner when it is read.
//! A free section has diamonds i = 0..m, j = 0..n; a closed extent identifies the last with the first.
//!
//! With R for a column and q for one that nothing reaches from behind, an open direction is q^T J (R J)^(N-2) q, met in the
//! middle (`join`); a closed one is a trace over seams (`trace`). The vector is moved on by half a column at a time (`cut`),
//! several sites at once in registers (`tile`, `sites`); columns of three diamonds and less do without all that (`narrow`).
//! The driver is [`Strip`], whose rows are columns here.
//!
//! Source: Z. Zhang (2017), Merrifield-Simmons index and its entropy of the 4-8-8 lattice, chapter 7 of a thesis.

mod cut;
mod join;
mod narrow;
mod seed;
mod sites;
mod start;
mod tile;
mod trace;

use super::Boundary;
use crate::monitor::Progress;
use crate::numeric::bundle::Bundled;
use crate::numeric::ring::Ring;
use crate::strip::{Context, RowOperator, Rows, Seam, Strip};
use crate::{Error, Result};
use cut::{ColumnCut, Half};
use join::Middle;
use narrow::Narrow;
use seed::Crossing;
use std::ops::Range;
use tile::Turn;

/// The 4-8-8 lattice.
pub type FourEightEight = Strip<DiamondColumn>;

impl FourEightEight {
    /// The engine for `m` x `n` octagons; on a cylinder `n` is the circumference.
    ///
    /// # Errors
    /// [`Error::Domain`] without octagons, [`Error::TooLarge`] if the states cannot be addressed.
    pub fn new(m: usize, n: usize, boundary: Boundary) -> Result<Self> {
        Self::with_links((), m, n, boundary, usize::MAX, &Progress::default())
    }
}

/// The operator of a column of diamonds and the links behind it.
#[derive(Clone, Debug)]
pub enum DiamondColumn {
    /// Few diamonds.
    Narrow(Narrow),
    /// Many, in two halves; where open columns meet, and how many of them are made at once.
    Wide(ColumnCut, Middle, u64),
}

/// Columns up to this many diamonds are narrow.
const NARROW: usize = 3;
/// The most diamonds in a column of an open direction, far beyond any memory.
const WIDEST: usize = 52;
/// The most diamonds in a column whose seams are listed: there are 2^26, each with a vector of so many elements.
const WIDEST_SEAM: usize = 26;

/// Turns to the middle: from the columns up to it, the first one done, back and forth between the halves.
fn turns_to(middle: Middle, columns: u64) -> u64 {
    match middle {
        Middle::Links if columns == 2 => 0,
        Middle::Links | Middle::Column => columns / 2,
    }
}

/// The turn of this number: towards the links in the middle, the last column begins without crossing them and ends with it;
/// towards the column in the middle, only its first half is done.
fn turn(middle: Middle, columns: u64, number: u64) -> (Half, Turn) {
    let left = turns_to(middle, columns) - 1 - number;
    let (end, uncrossed) = match middle {
        Middle::Links => (Half::Low, left == 1),
        Middle::Column => (Half::High, left == 0),
    };
    let half = if left.is_multiple_of(2) { end } else { end.other() };
    (half, Turn { down: number > 0, up: left > 0 || middle == Middle::Column, cross: !uncrossed })
}

impl RowOperator for DiamondColumn {
    type Links = ();
    const FENCE: usize = 1;
    const LOOPS: bool = false;
    const EXTENTS: [&'static str; 2] = ["m", "n"];

    fn vertices(m: usize, n: usize, boundary: Boundary) -> usize {
        let rim = match boundary {
            Boundary::Free => 2 * (m + n),
            Boundary::Cylinder => 2 * n,
            Boundary::Torus => 0,
        };
        4 * m * n + rim
    }

    /// The links are a perfect matching.
    fn largest_set((): (), m: usize, n: usize, boundary: Boundary) -> usize {
        Self::vertices(m, n, boundary) / 2
    }

    /// The links across the cut are left over as edges of their own.
    fn pieces(m: usize, n: usize, boundary: Boundary) -> (Vec<(usize, usize, Boundary)>, usize) {
        let (long, short) = if boundary == Boundary::Cylinder { (m, n) } else { (m.max(n), m.min(n)) };
        match boundary {
            Boundary::Torus => (vec![(long - 1, short, Boundary::Cylinder)], short),
            Boundary::Cylinder if n > 1 => (vec![(m, n - 1, Boundary::Free)], m + 1),
            _ => {
                let pieces = [long / 2, long - 1 - long / 2].map(|rows| (rows, short, boundary));
                (pieces.into(), short + usize::from(boundary == Boundary::Free))
            }
        }
    }

    /// The columns of diamonds up to the middle one, all corners of it included.
    fn half(m: usize, n: usize, boundary: Boundary) -> (usize, usize) {
        if boundary == Boundary::Free { (m.max(n) / 2 + 1, m.min(n)) } else { (m / 2 + 1, n) }
    }

    fn forecast((): (), diamonds: usize, ring: bool, columns: Rows) -> f64 {
        let width = diamonds as f64;
        let sites = width - f64::from(u8::from(ring));
        match columns {
            Rows::Open(_) if diamonds <= NARROW => 0.0,
            Rows::Open(columns) => 3.0 * sites * sites.exp2() * columns.saturating_sub(1) as f64,
            Rows::Closed(_) if diamonds > WIDEST_SEAM => f64::INFINITY,
            Rows::Closed(columns) => width * width.exp2() * (width - 1.0).exp2() * columns as f64,
        }
    }

    fn new((): (), diamonds: usize, ring: bool, columns: Rows) -> Result<Self> {
        let widest = if matches!(columns, Rows::Open(_)) { WIDEST } else { WIDEST_SEAM };
        if diamonds > widest {
            // Closed columns would take the pairs of seam and column.
            let times = if matches!(columns, Rows::Open(_)) { 1 } else { 2 };
            let bytes = |width: usize| 1u128 << (3 + width.saturating_mul(times).min(124));
            let what = "the transfer vector of a 4-8-8 section";
            return Err(Error::TooLarge { what, needed: bytes(diamonds), limit: bytes(widest) });
        }
        if diamonds <= NARROW {
            return Ok(Self::Narrow(Narrow { width: diamonds as u32, ring }));
        }
        let sites = diamonds as u32 - u32::from(ring);
        let (middle, high) = match columns {
            Rows::Closed(_) => (Middle::Links, sites / 2),
            Rows::Open(columns) if columns.is_multiple_of(2) => (Middle::Links, sites.div_ceil(2)),
            Rows::Open(_) => (Middle::Column, (sites - 1) / 2),
        };
        let cut = ColumnCut::new(sites, high, ring);
        let begun = match columns {
            // After the start comes a turn at least.
            Rows::Open(columns) => start::best(&cut, columns / 2, columns.saturating_sub(1) / 2),
            Rows::Closed(_) => 1,
        };
        Ok(Self::Wide(cut, middle, begun))
    }

    fn width(&self) -> usize {
        match self {
            Self::Narrow(narrow) => narrow.width as usize,
            Self::Wide(cut, ..) => cut.diamonds() as usize,
        }
    }

    fn is_ring(&self) -> bool {
        match self {
            Self::Narrow(narrow) => narrow.ring,
            Self::Wide(cut, ..) => cut.is_ring(),
        }
    }

    /// The words of the W corners.
    fn states(&self) -> usize {
        1 << self.width()
    }

    fn len(&self) -> usize {
        match self {
            Self::Narrow(narrow) => narrow.len(),
            Self::Wide(cut, ..) => cut.len(),
        }
    }

    fn list(&self) -> Vec<(usize, u64)> {
        (0..self.states()).map(|word| (word, word as u64)).collect()
    }

    fn cost(&self) -> u64 {
        match self {
            Self::Narrow(narrow) => narrow.work(),
            Self::Wide(cut, ..) => trace::cost(cut, 3),
        }
    }

    fn bound(&self) -> u64 {
        6 * self.width() as u64 + 12
    }

    /// J R; all weights are in it.
    fn apply<R: Ring>(&self, context: Context<R>, x: &mut [R::Element]) -> Result<()> {
        match self {
            Self::Narrow(narrow) => narrow.apply(context, x),
            Self::Wide(cut, ..) => trace::apply(cut, context, x),
        }
    }

    fn weigh<R: Ring>(&self, _: Context<R>, _: &mut [R::Element]) {}

    fn dot<R: Ring>(&self, context: Context<R>, x: &[R::Element], y: &[R::Element]) -> R::Element {
        context.weight.ring.dot(x.iter().copied().zip(y.iter().copied()))
    }

    fn is_symmetric(&self) -> bool {
        false
    }

    fn open_begun(&self) -> u64 {
        if let Self::Wide(_, _, begun) = self { *begun } else { 1 }
    }

    fn open_len(&self, _columns: u64) -> usize {
        self.len()
    }

    fn open_steps(&self, columns: u64) -> u64 {
        match self {
            Self::Narrow(_) => columns,
            Self::Wide(_, middle, begun) => u64::from(*begun > 1) + turns_to(*middle, self.open_left(columns)),
        }
    }

    fn open_cost(&self, columns: u64, step: u64) -> u64 {
        match self {
            Self::Narrow(narrow) => narrow.work(),
            Self::Wide(cut, middle, begun) => match self.after_begin(step) {
                None => start::cost(cut, *begun),
                Some(step) => {
                    let (half, turn) = turn(*middle, self.open_left(columns), step);
                    cut.work(half, turn)
                }
            },
        }
    }

    fn open_bound(&self, columns: u64) -> u64 {
        match self {
            Self::Narrow(_) => self.bound().saturating_mul(columns),
            Self::Wide(cut, _, begun) => {
                let (products, column) = (8 << (cut.sites() / 2), 6 * u64::from(cut.sites()) + 12);
                let begin = if *begun > 1 { start::bound(cut, *begun) } else { 0 };
                (self.open_left(columns) / 2 + 2).saturating_mul(column).saturating_add(begin + products)
            }
        }
    }

    /// At the links nothing is left under carry 1.
    fn open_halves(&self, _columns: u64) -> Option<Vec<Range<usize>>> {
        let read = match self {
            Self::Narrow(_) => return None,
            Self::Wide(cut, Middle::Links, _) => cut.none_len(),
            Self::Wide(cut, Middle::Column, _) => cut.state_len(),
        };
        Some(std::iter::once(0..read).collect())
    }

    fn open_start<R: Ring>(&self, context: Context<R>, columns: u64, x: &mut [R::Element]) {
        match self {
            // No W corner is occupied at the start.
            Self::Narrow(_) => {
                x.fill(context.weight.ring.zero());
                x[0] = context.weight.ring.one();
            }
            Self::Wide(_, _, 2..) => {}
            Self::Wide(cut, middle, _) => {
                let crossing = if turns_to(*middle, columns) == 0 { Crossing::Low } else { Crossing::All };
                seed::first_column(cut, context.weight, context.level, x, crossing);
            }
        }
    }

    fn open_step<R: Ring>(&self, context: Context<R>, columns: u64, step: u64, x: &mut [R::Element]) -> Result<()> {
        match self {
            Self::Narrow(narrow) => narrow.apply(context, x),
            Self::Wide(cut, middle, begun) => match self.after_begin(step) {
                None => start::write(context, cut, *begun, x),
                Some(step) => {
                    let (half, turn) = turn(*middle, self.open_left(columns), step);
                    cut.turn(context, x, half, turn)
                }
            },
        }
    }

    /// A narrow section ends where nothing is to be linked to: crossing to x' = 1 everywhere asks for y = 0 everywhere.
    fn open_finish<R: Ring>(&self, context: Context<R>, _columns: u64, x: &[R::Element]) -> R::Element {
        match self {
            Self::Narrow(_) => x[self.states() - 1],
            Self::Wide(cut, middle, _) => join::join(cut, context.weight, x, *middle),
        }
    }

    fn closed_len(&self, _columns: u64) -> usize {
        match self {
            Self::Narrow(narrow) => narrow.len(),
            Self::Wide(cut, ..) => trace::len(cut),
        }
    }

    fn closed_cost(&self, columns: u64) -> u64 {
        match self {
            Self::Narrow(narrow) => narrow.work().saturating_mul(columns),
            Self::Wide(cut, ..) => trace::cost(cut, columns),
        }
    }

    fn closed_bound(&self, columns: u64) -> u64 {
        match self {
            Self::Narrow(_) => self.bound().saturating_mul(columns),
            Self::Wide(cut, ..) => trace::bound(cut, columns),
        }
    }

    fn has_plain_seams(&self) -> bool {
        false
    }

    /// Seams are the W corners of a narrow column, and the diamonds blocked by vertical links in a wide one.
    fn closed_terms<R: Bundled>(
        &self,
        context: Context<R>,
        (_, columns): (u64, u64),
        (seams, _): (&[Seam], usize),
        x: &mut [R::Element],
    ) -> Result<Vec<R::Element>> {
        let mut term = |seam: &Seam| match self {
            Self::Narrow(narrow) => {
                x.fill(context.weight.ring.zero());
                x[seam.rank] = context.weight.ring.one();
                (0..columns).try_for_each(|_| narrow.apply(context, x))?;
                Ok(x[seam.rank])
            }
            Self::Wide(cut, ..) => trace::term(cut, context, columns, seam.rank, x),
        };
        seams.iter().map(&mut term).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::dispatch::level;
    use crate::numeric::residue::primes;
    use crate::transfer::{Point, Weight, evaluate_lanes};

    fn residues(engine: &FourEightEight, activity: u64) -> Vec<u64> {
        let points: Vec<Point> = primes(2).unwrap().into_iter().map(|modulus| Point::new(modulus, activity)).collect();
        evaluate_lanes::<4>(engine, &points, &Progress::default()).unwrap()
    }

    #[test]
    fn halves_and_seams_agree_with_one_site_after_the_other() {
        for activity in [1, 5] {
            for diamonds in 4..=8u32 {
                for (columns, ring) in (1..=7).flat_map(|columns| [(columns, false), (columns, true)]) {
                    for rows in [Rows::Open(columns + 1), Rows::Closed(columns)] {
                        let fast =
                            FourEightEight::along((), diamonds as usize, ring, rows, usize::MAX, &Progress::default())
                                .unwrap();
                        let narrow = DiamondColumn::Narrow(Narrow { width: diamonds, ring });
                        let [fast, slow] =
                            [fast, Strip::with_row(narrow, rows, usize::MAX, &Progress::default()).unwrap()]
                                .map(|engine| residues(&engine, activity));
                        assert_eq!(fast, slow, "{diamonds} diamonds, ring {ring}, {rows:?} at {activity}");
                    }
                }
            }
        }
    }

    #[test]
    fn one_application_is_one_column_however_wide() {
        let ring = crate::numeric::ring::Lanes::new([primes(1).unwrap()[0]]);
        for (diamonds, closed, activity) in
            (4..=8).flat_map(|d| [(d, false, 1), (d, true, 1), (d, false, 3), (d, true, 3)])
        {
            let weight = Weight::new(ring, [activity]);
            let progress = Progress::default();
            let context = Context { weight: &weight, level: level(), progress: &progress };
            let wide = DiamondColumn::new((), diamonds, closed, Rows::Open(4)).unwrap();
            let narrow = DiamondColumn::Narrow(Narrow { width: diamonds as u32, ring: closed });
            let [found, expected] = [wide, narrow].map(|row| {
                let mut x = vec![[0]; row.len()];
                (0..row.states()).for_each(|word| x[word] = [word as u64 * word as u64 + 1]);
                (0..3).for_each(|_| row.apply(context, &mut x).unwrap());
                x[..row.states()].iter().map(|x| ring.moduli()[0].residue(x[0])).collect::<Vec<_>>()
            });
            assert_eq!(found, expected, "{diamonds} diamonds, ring {closed}, activity {activity}");
        }
    }
}
