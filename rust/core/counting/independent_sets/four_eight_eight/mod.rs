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

mod cut;
mod join;
mod narrow;
mod seed;
mod sites;
mod tile;
mod trace;

use super::Boundary;
use crate::counting::transfer::{Transfer, Weight};
use crate::monitor::Watch;
use crate::numeric::ring::Ring;
use crate::numeric::simd::{Level, level};
use crate::{Error, Result};
use cut::{Cut, Half, Passage};
use join::Middle;
use narrow::Narrow;
use seed::Crossing;
use tile::Turn;
use trace::Trace;

/// The transfer operator of the 4-8-8 lattice.
#[derive(Clone, Debug)]
pub struct FourEightEight {
    plan: Plan,
    level: Level,
}

#[derive(Clone, Debug)]
enum Plan {
    /// Few diamonds in a column.
    Narrow(Narrow),
    /// An open direction of so many columns.
    Open { cut: Cut, columns: u64, middle: Middle },
    /// A closed direction.
    Closed(Trace),
}

/// Columns up to this many diamonds are narrow.
const NARROW: usize = 3;
/// The most diamonds in a column of an open direction, far beyond any memory.
const WIDEST: usize = 52;
/// The most diamonds in a column whose seams are listed.
const WIDEST_SEAM: usize = 26;

impl FourEightEight {
    /// The engine for `m` x `n` octagons; on a cylinder `n` is the circumference.
    ///
    /// # Errors
    /// [`Error::Domain`] without octagons, [`Error::TooLarge`] if the states cannot be addressed.
    pub fn new(m: usize, n: usize, boundary: Boundary) -> Result<Self> {
        for (name, value) in [("m", m), ("n", n)] {
            if value == 0 {
                return Err(Error::Domain { name, value: value.to_string(), requirement: "at least 1" });
            }
        }
        let fenced = |size: usize| size.saturating_add(1);
        let plan = match boundary {
            Boundary::Free => Plan::open(fenced(m.min(n)), false, fenced(m.max(n)))?,
            Boundary::Cylinder if around_is_cheaper(m, n) => Plan::closed(fenced(m), false, n)?,
            Boundary::Cylinder => Plan::open(n, true, fenced(m))?,
            Boundary::Torus => Plan::closed(m.min(n), true, m.max(n))?,
        };
        Ok(Self { plan, level: level() })
    }

    /// The same engine with other vector instructions, as far as the machine has them. The results are the same.
    pub fn with_level(self, level: Level) -> Self {
        Self { level, ..self }
    }
}

/// Whether a cylinder is better cut along its open direction, `m + 1` diamonds with a trace, than across, `n` in a ring.
fn around_is_cheaper(m: usize, n: usize) -> bool {
    if m >= WIDEST_SEAM || n <= NARROW {
        return false;
    }
    let path = m as f64 + 1.0;
    let across = 3.0 * (n - 1) as f64 * (n as f64 - 1.0).exp2() * m as f64;
    let around = path * path.exp2() * (path - 1.0).exp2() * n as f64;
    around < across
}

impl Plan {
    /// From nothing at one end to nothing at the other.
    fn open(diamonds: usize, ring: bool, columns: usize) -> Result<Self> {
        let diamonds = checked(diamonds, WIDEST)?;
        let columns = columns as u64;
        if diamonds as usize <= NARROW {
            return Ok(Self::Narrow(Narrow::between(diamonds, ring, columns)));
        }
        let sites = diamonds - u32::from(ring);
        let (middle, high) = match columns % 2 {
            0 => (Middle::Links, sites.div_ceil(2)),
            _ => (Middle::Column, (sites - 1) / 2),
        };
        Ok(Self::Open { cut: Cut::new(sites, high, ring), columns, middle })
    }

    /// Around: the last column is linked to the first.
    fn closed(diamonds: usize, ring: bool, columns: usize) -> Result<Self> {
        let diamonds = checked(diamonds, WIDEST_SEAM)?;
        let columns = columns as u64;
        if diamonds as usize <= NARROW {
            return Ok(Self::Narrow(Narrow::trace(diamonds, ring, columns)));
        }
        let sites = diamonds - u32::from(ring);
        Ok(Self::Closed(Trace::new(Cut::new(sites, sites / 2, ring), columns)))
    }
}

fn checked(diamonds: usize, widest: usize) -> Result<u32> {
    if diamonds <= widest {
        return Ok(diamonds as u32);
    }
    let bytes = |diamonds: usize| 1u128.checked_shl(diamonds.min(120) as u32 + 3).unwrap_or(u128::MAX);
    let (what, needed, limit) = ("the transfer vector of a 4-8-8 section", bytes(diamonds), bytes(widest));
    Err(Error::TooLarge { what, needed, limit })
}

/// Turns to the middle: from the columns up to it, the first one done, back and forth between the halves.
fn turns_to(middle: Middle, columns: u64) -> u64 {
    match middle {
        Middle::Links if columns == 2 => 0,
        Middle::Links => columns / 2,
        Middle::Column => columns / 2,
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

impl Transfer for FourEightEight {
    fn len(&self) -> usize {
        match &self.plan {
            Plan::Narrow(narrow) => narrow.len(),
            Plan::Open { cut, .. } => cut.len(),
            Plan::Closed(trace) => trace.len(),
        }
    }

    fn steps(&self) -> u64 {
        match &self.plan {
            Plan::Narrow(narrow) => narrow.steps(),
            Plan::Open { columns, middle, .. } => turns_to(*middle, *columns),
            Plan::Closed(trace) => trace.steps(),
        }
    }

    fn work(&self, step: u64) -> u64 {
        match &self.plan {
            Plan::Narrow(narrow) => narrow.work(),
            Plan::Open { cut, columns, middle } => {
                let (half, turn) = turn(*middle, *columns, step);
                cut.work(half, turn)
            }
            Plan::Closed(trace) => trace.work(step),
        }
    }

    fn roundings(&self) -> u64 {
        match &self.plan {
            Plan::Narrow(narrow) => narrow.roundings(),
            Plan::Open { cut, columns, .. } => {
                let products = 8 << (cut.sites() / 2);
                (columns / 2 + 2).saturating_mul(6 * u64::from(cut.sites()) + 12).saturating_add(products)
            }
            Plan::Closed(trace) => trace.roundings(),
        }
    }

    fn start<R: Ring>(&self, weight: &Weight<R>, state: &mut [R::Element]) {
        match &self.plan {
            Plan::Open { cut, columns, middle } => {
                let crossing = if (*middle, *columns) == (Middle::Links, 2) { Crossing::Low } else { Crossing::All };
                seed::first_column(cut, weight, self.level, state, crossing);
            }
            Plan::Narrow(_) | Plan::Closed(_) => state.fill(weight.ring.zero()),
        }
    }

    fn step<R: Ring>(&self, weight: &Weight<R>, step: u64, state: &mut [R::Element], watch: &Watch) -> Result<()> {
        let passage = Passage { weight, level: self.level, watch };
        match &self.plan {
            Plan::Narrow(narrow) => narrow.step(weight, step, state, watch),
            Plan::Open { cut, columns, middle } => {
                let (half, turn) = turn(*middle, *columns, step);
                cut.turn(passage, state, half, turn)
            }
            Plan::Closed(trace) => trace.step(passage, step, state),
        }
    }

    fn finish<R: Ring>(&self, weight: &Weight<R>, state: &[R::Element]) -> R::Element {
        match &self.plan {
            Plan::Narrow(_) => state[state.len() - 1],
            Plan::Open { cut, middle, .. } => join::join(cut, weight, state, *middle),
            Plan::Closed(trace) => trace.finish(&weight.ring, state),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::transfer::{Point, evaluate_lanes};
    use crate::numeric::residue::primes;

    fn residues(engine: &FourEightEight, activity: u64) -> Vec<u64> {
        let points: Vec<Point> = primes(2).unwrap().into_iter().map(|modulus| Point { modulus, activity }).collect();
        evaluate_lanes::<2>(engine, &points, &Watch::default()).unwrap()
    }

    #[test]
    fn halves_and_seams_agree_with_one_site_after_the_other() {
        for activity in [1, 5] {
            for diamonds in 4..=8u32 {
                for columns in 1..=7 {
                    for ring in [false, true] {
                        let plans = [
                            (
                                Plan::open(diamonds as usize, ring, columns + 1),
                                Narrow::between(diamonds, ring, columns as u64 + 1),
                            ),
                            (
                                Plan::closed(diamonds as usize, ring, columns),
                                Narrow::trace(diamonds, ring, columns as u64),
                            ),
                        ];
                        for (fast, slow) in plans {
                            let [fast, slow] = [fast.unwrap(), Plan::Narrow(slow)]
                                .map(|plan| residues(&FourEightEight { plan, level: level() }, activity));
                            assert_eq!(fast, slow, "{diamonds} diamonds, ring {ring}, {columns} columns at {activity}");
                        }
                    }
                }
            }
        }
    }
}
