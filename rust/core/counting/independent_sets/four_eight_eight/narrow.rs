//! Columns of a few diamonds: site after site over the whole vector.

use super::trace::{multiple, orbits};
use crate::Result;
use crate::counting::transfer::Weight;
use crate::monitor::Watch;
use crate::numeric::ring::Ring;

/// One power of the column operator read at one entry: `multiplicity * (column^columns)[read, start]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    start: usize,
    read: usize,
    multiplicity: u64,
}

/// Powers of the column operator, read at single entries.
#[derive(Clone, Debug)]
pub struct Narrow {
    width: u32,
    ring: bool,
    columns: u64,
    runs: Vec<Run>,
}

impl Narrow {
    /// From nothing at one end to nothing at the other: no W corner at the start, none to link to at the end.
    pub fn between(width: u32, ring: bool, columns: u64) -> Self {
        let nothing = (1 << width) - 1; // crossing to x' = 1 everywhere asks for y = 0 everywhere
        Self { width, ring, columns, runs: vec![Run { start: 0, read: nothing, multiplicity: 1 }] }
    }

    /// Closed in the direction of the columns: one start for each orbit of W corners under the symmetries of a column.
    pub fn trace(width: u32, ring: bool, columns: u64) -> Self {
        let run = |(word, multiplicity)| Run { start: word, read: word, multiplicity };
        Self { width, ring, columns, runs: orbits(width, ring).into_iter().map(run).collect() }
    }

    fn states(&self) -> usize {
        1 << self.width
    }
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

impl Narrow {
    /// Elements of the vectors, and the total.
    pub fn len(&self) -> usize {
        self.states() * if self.ring { 4 } else { 2 } + 1
    }

    /// Columns of all runs.
    pub fn steps(&self) -> u64 {
        (self.runs.len() as u64).saturating_mul(self.columns)
    }

    /// Additions in a column.
    pub fn work(&self) -> u64 {
        let passes = if self.ring { 2 } else { 1 };
        passes * u64::from(self.width) * 3 * self.states() as u64
    }

    /// Roundings on the way to the total.
    pub fn roundings(&self) -> u64 {
        self.columns.saturating_mul(6 * u64::from(self.width) + 1) + self.runs.len() as u64 + 128
    }

    /// Moves one run by one column.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] when the watch says so.
    pub fn step<R: Ring>(&self, weight: &Weight<R>, step: u64, state: &mut [R::Element], watch: &Watch) -> Result<()> {
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
        watch.advance(self.work())
    }
}
