//! Columns of a few diamonds: site after site over the whole vector.
//!
//! Source: the formulas of [`super`] as they stand; no tiles, no registers.

use crate::Result;
use crate::numeric::ring::Ring;
use crate::strip::Context;
use crate::transfer::Weight;

/// A column of so many diamonds.
#[derive(Clone, Copy, Debug)]
pub struct Narrow {
    /// Diamonds.
    pub width: u32,
    /// Whether they form a ring.
    pub ring: bool,
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
    fn states(&self) -> usize {
        1 << self.width
    }

    /// Elements of the vectors under carry 0 and 1, for a ring once more with the link across the seam occupied.
    pub fn len(&self) -> usize {
        self.states() * if self.ring { 4 } else { 2 }
    }

    /// Additions in a column.
    pub fn work(&self) -> u64 {
        let passes = if self.ring { 2 } else { 1 };
        passes * u64::from(self.width) * 3 * self.states() as u64
    }

    /// Moves the vector by one column and over the links behind it.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] when the caller says so.
    pub fn apply<R: Ring>(&self, context: Context<R>, state: &mut [R::Element]) -> Result<()> {
        let (weight, ring) = (context.weight, &context.weight.ring);
        let (open, closed) = state.split_at_mut(2 * self.states());
        let (none, carried) = open.split_at_mut(self.states());
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
        context.progress.advance(self.work())
    }
}
