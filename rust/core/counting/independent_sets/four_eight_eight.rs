//! Independent sets of the 4-8-8 lattice (truncated square tiling) cut to m x n octagons.
//!
//! Diamonds with corners N, E, S, W form an array; the links E-W and S-N join neighbors. A column of diamonds maps the
//! occupation x of its W corners to the occupation y of its E corners, site by site with one carried bit (the N corner of
//! the next diamond is occupied). With a0, a1 the sums for x_k = 0, 1 under carry 0 and c the one for x_k = 0 under carry 1,
//!
//!   s = a0 + z a1,   t = a0 + z c,   u = s + z c;     carry 0: y_k = 0: u + z t, y_k = 1: s;   carry 1: u, s,
//!
//! and the links to the next column, with W corners x', are J = (y_k = 0: both x', y_k = 1: x' = 0 only), taken at once:
//!
//!   carry 0: x'_k = 0: u + z t + z s,  x'_k = 1: u + z t;     carry 1: u + z s,  u.
//!
//! The activity z of an E corner is charged when the link is crossed, that of a W or N corner when it is read.
//! A free section has diamonds i = 0..m, j = 0..n; a closed extent identifies the last with the first.

use super::Boundary;
use crate::counting::transfer::{Transfer, Weight};
use crate::monitor::Watch;
use crate::numeric::ring::Ring;
use crate::{Error, Result};

/// One power of the column operator read at one entry: `multiplicity * (column^columns)[read, start]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    start: usize,
    read: usize,
    multiplicity: u64,
}

/// The transfer operator of the 4-8-8 lattice.
#[derive(Clone, Debug)]
pub struct FourEightEight {
    width: u32,
    ring: bool,
    columns: u64,
    runs: Vec<Run>,
}

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
        match boundary {
            Boundary::Free => Self::between(fenced(m.min(n)), false, fenced(m.max(n)) as u64),
            Boundary::Cylinder if fenced(m).saturating_mul(2) < n => Self::trace(fenced(m), false, n as u64),
            Boundary::Cylinder => Self::between(n, true, fenced(m) as u64),
            Boundary::Torus => Self::trace(m.min(n), true, m.max(n) as u64),
        }
    }

    /// From nothing at one end to nothing at the other: no W corner at the start, none to link to at the end.
    fn between(width: usize, ring: bool, columns: u64) -> Result<Self> {
        let width = checked_width(width)?;
        let nothing = (1 << width) - 1; // crossing to x' = 1 everywhere asks for y = 0 everywhere
        Ok(Self { width, ring, columns, runs: vec![Run { start: 0, read: nothing, multiplicity: 1 }] })
    }

    /// Closed in the direction of the columns: one start for each orbit of seam states under the symmetries of a column.
    fn trace(width: usize, ring: bool, columns: u64) -> Result<Self> {
        let width = checked_width(width.saturating_add(SEAM_MARGIN))? - SEAM_MARGIN as u32;
        let runs = orbits(width, ring)
            .into_iter()
            .map(|(seam, multiplicity)| Run { start: seam, read: seam, multiplicity })
            .collect();
        Ok(Self { width, ring, columns, runs })
    }

    fn states(&self) -> usize {
        1 << self.width
    }
}

/// Seam states are enumerated, so that the vector of a closed run is kept this many powers of two below the limit.
const SEAM_MARGIN: usize = 24;

fn checked_width(width: usize) -> Result<u32> {
    let limit = usize::BITS - 12; // four vectors, a total, 64 bytes an element
    match u32::try_from(width) {
        Ok(width) if width <= limit => Ok(width),
        _ => Err(Error::TooLarge {
            what: "the transfer vector of a 4-8-8 section",
            needed: 1u128.checked_shl(width.min(127) as u32).unwrap_or(u128::MAX),
            limit: 1 << limit,
        }),
    }
}

/// One word of each orbit under reflection, and under rotation for a ring, with the size of its orbit.
fn orbits(width: u32, ring: bool) -> Vec<(usize, u64)> {
    let mask = (1usize << width) - 1;
    let turns = if ring { width } else { 1 };
    (0..=mask)
        .filter_map(|word| {
            let mirrored = word.reverse_bits() >> (usize::BITS - width);
            let mut images: Vec<usize> = [word, mirrored]
                .into_iter()
                .flat_map(|w| (0..turns).map(move |turn| ((w << turn) | (w >> (width - turn))) & mask))
                .collect();
            images.sort_unstable();
            images.dedup();
            (images[0] == word).then_some((word, images.len() as u64))
        })
        .collect()
}

/// A column in the making: sums under carry 0 and carry 1.
struct Column<'a, E> {
    none: &'a mut [E],
    carried: &'a mut [E],
}

impl<E: Copy> Column<'_, E> {
    /// Passes site `k`; without a link behind it, the last site leaves no carry.
    fn pass<R: Ring<Element = E>>(&mut self, weight: &Weight<R>, k: u32, last: bool) {
        let ring = &weight.ring;
        let times = |x: E| if weight.unit { x } else { ring.mul(ring.fold(x), weight.activity) };
        let half = 1 << k;
        for block in (0..self.none.len()).step_by(2 * half) {
            for i in block..block + half {
                let (a0, a1, c) = (self.none[i], times(self.none[i + half]), times(self.carried[i]));
                let (s, t) = (ring.add(a0, a1), ring.add(a0, c));
                let u = ring.add(s, c);
                let (zs, zt) = (times(s), times(t));
                let carried = (ring.fold(ring.add(u, zs)), ring.fold(u));
                let lower = ring.add(u, zt);
                let none = (ring.fold(ring.add(lower, zs)), ring.fold(lower));
                (self.none[i], self.none[i + half]) = if last { carried } else { none };
                (self.carried[i], self.carried[i + half]) = carried;
            }
        }
    }
}

impl Transfer for FourEightEight {
    fn len(&self) -> usize {
        self.states() * if self.ring { 4 } else { 2 } + 1
    }

    fn steps(&self) -> u64 {
        (self.runs.len() as u64).saturating_mul(self.columns)
    }

    fn work(&self, _step: u64) -> u64 {
        let passes = if self.ring { 2 } else { 1 };
        passes * u64::from(self.width) * 3 * self.states() as u64
    }

    fn roundings(&self) -> u64 {
        self.columns.saturating_mul(6 * u64::from(self.width) + 1) + self.runs.len() as u64 + 128
    }

    fn start<R: Ring>(&self, weight: &Weight<R>, state: &mut [R::Element]) {
        state.fill(weight.ring.zero());
    }

    fn step<R: Ring>(&self, weight: &Weight<R>, step: u64, state: &mut [R::Element], watch: &Watch) -> Result<()> {
        let ring = &weight.ring;
        let run = self.runs[(step / self.columns) as usize];
        let (total, state) = state.split_last_mut().expect("a total");
        let (open, closed) = state.split_at_mut(2 * self.states());
        let (none, carried) = open.split_at_mut(self.states());
        if step.is_multiple_of(self.columns) {
            none.fill(ring.zero());
            none[run.start] = ring.one();
        }
        carried.fill(ring.zero());
        if self.ring {
            // The same with the link across the seam occupied at its lower end.
            let (seam_none, seam_carried) = closed.split_at_mut(self.states());
            seam_carried.copy_from_slice(none);
            seam_none.fill(ring.zero());
            let mut column = Column { none: seam_none, carried: seam_carried };
            (0..self.width).for_each(|k| column.pass(weight, k, false));
        }
        let mut column = Column { none, carried };
        (0..self.width).for_each(|k| column.pass(weight, k, !self.ring && k + 1 == self.width));
        if self.ring {
            for (x, &y) in none.iter_mut().zip(&closed[self.states()..]) {
                *x = ring.fold(ring.add(*x, y));
            }
        }
        if step % self.columns == self.columns - 1 {
            *total = ring.fold(ring.add(*total, multiple(ring, none[run.read], run.multiplicity)));
        }
        watch.advance(self.work(step))
    }

    fn finish<R: Ring>(&self, _weight: &Weight<R>, state: &[R::Element]) -> R::Element {
        state[state.len() - 1]
    }
}

/// `count * x` by doubling, folded.
fn multiple<R: Ring>(ring: &R, x: R::Element, count: u64) -> R::Element {
    (0..u64::BITS - count.leading_zeros()).rev().fold(ring.zero(), |sum, bit| {
        let double = ring.add(sum, sum);
        ring.fold(if count >> bit & 1 == 1 { ring.add(double, x) } else { double })
    })
}
