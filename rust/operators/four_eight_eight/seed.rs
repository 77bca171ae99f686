//! Where the vectors begin: after a first column that nothing reaches from behind, or before one at a given seam.
//!
//! Source: derived here from the operator of a column in [`super`].

use super::cut::ColumnCut;
use super::sites::{Activity, Charge, Unit, pass};
use super::tile::Vectors;
use crate::numeric::dispatch::{Arithmetic, Kernel, Level, Plain};
use crate::numeric::ring::Ring;
use crate::transfer::Weight;

/// Which links a first column crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// All of them.
    All,
    /// Those of the low half.
    Low,
}

/// Fills the vector with the sums after a first column whose W corners are all empty.
pub fn first_column<R: Ring>(
    cut: &ColumnCut,
    weight: &Weight<R>,
    level: Level,
    state: &mut [R::Element],
    crossing: Crossing,
) {
    let crossed = if crossing == Crossing::All { cut.sites() } else { cut.low() };
    let (none, carried) = state[..cut.state_len()].split_at_mut(cut.none_len());
    let vectors = Vectors {
        none: none.as_mut_ptr(),
        none_stride: cut.words(),
        carried: carried.as_mut_ptr(),
        carried_stride: cut.words() / 2,
    };
    let (zero, one) = (weight.ring.zero(), weight.ring.one());
    let column = FirstColumn { sites: cut.sites(), crossed, ring: cut.is_ring(), vectors, zero, one };
    if weight.unit {
        weight.ring.dispatch(level, column);
    } else {
        column.go(Plain(weight.ring), Activity(weight.activity));
    }
}

struct FirstColumn<E> {
    sites: u32,
    /// Sites, from bit 0, whose links are crossed.
    crossed: u32,
    ring: bool,
    vectors: Vectors<E>,
    zero: E,
    one: E,
}

impl<E: Copy> Kernel<E> for FirstColumn<E> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic<Element = E>>(self, a: A) {
        self.go(a, Unit);
    }
}

impl<E: Copy> FirstColumn<E> {
    /// The words double with each site. The vectors of a ring begin with any N corner of the second diamond, with an empty one
    /// and with an occupied one.
    #[inline(always)]
    fn go<A: Arithmetic<Element = E>, Z: Charge<A>>(self, a: A, z: Z) {
        let Vectors { none, none_stride, carried, carried_stride } = self.vectors;
        for vector in 0..if self.ring { 3 } else { 1 } {
            // SAFETY: a vector has `2^sites` elements under carry 0 and half as many under carry 1.
            unsafe {
                let (none, carried) = (none.add(vector * none_stride), carried.add(vector * carried_stride));
                none.write(if vector < 2 { self.one } else { self.zero });
                carried.write(if self.ring && vector != 1 { self.one } else { self.zero });
                for bit in 0..self.sites - 1 {
                    for i in 0..1usize << bit {
                        let [x, c] = self.site(a, z, none.add(i), carried.add(i), bit);
                        for (j, (x, c)) in [i, i | 1 << bit].into_iter().zip(x.into_iter().zip(c)) {
                            a.store(none.add(j), a.fold(x));
                            a.store(carried.add(j), a.fold(c));
                        }
                    }
                }
            }
        }
        let last = self.sites - 1;
        for i in 0..1usize << last {
            // SAFETY: as above.
            unsafe {
                let both = [none.add(i), none.add(i | 1 << last)];
                if !self.ring {
                    let [_, ended] = self.site(a, z, none.add(i), carried.add(i), last);
                    (0..2).for_each(|y| a.store(both[y], a.fold(ended[y])));
                    continue;
                }
                let site = |vector: usize| {
                    self.site(a, z, none.add(vector * none_stride + i), carried.add(vector * carried_stride + i), last)
                };
                let [[x1, _], [x2, c2], [_, c3]] = [site(0), site(1), site(2)];
                for y in 0..2 {
                    let once = a.add(x2[y], a.add(c2[y], c3[y]));
                    let y0 = a.add(x1[y], z.charge(a, a.add(once, z.charge(a, c2[y]))));
                    let crossed = a.add(y0, z.charge(a, x1[y]));
                    let first = if self.crossed == self.sites { [crossed, y0] } else { [y0, x1[y]] };
                    a.store(both[y], a.fold(first[0]));
                    a.store(both[y].add(none_stride), a.fold(first[1]));
                }
            }
        }
    }

    /// A site with an empty W corner: the sums under carry 0 and under carry 1.
    #[inline(always)]
    unsafe fn site<A: Arithmetic<Element = E>, Z: Charge<A>>(
        &self,
        a: A,
        z: Z,
        none: *const E,
        carried: *const E,
        bit: u32,
    ) -> [[A::Register; 2]; 2] {
        // SAFETY: the caller's.
        let sums = unsafe { [a.load(none), a.zero(), a.load(carried)] };
        let passed = pass(a, z, sums, bit < self.crossed);
        [passed.none, passed.carried]
    }
}

/// Fills the vector with the E corners' sums that a column allows whose vertical links block the diamonds of `seam`, and moves
/// on to the next W corners if it shall cross.
pub fn seam<R: Ring>(cut: &ColumnCut, weight: &Weight<R>, state: &mut [R::Element], seam: usize, cross: bool) {
    let ring = &weight.ring;
    let diamonds = cut.sites() + u32::from(cut.is_ring());
    let both = Weight::new(*ring, ring.fold(ring.add(ring.one(), weight.activity)));
    let powers = both.powers(diamonds as usize);
    for (word, x) in state[..1 << diamonds].iter_mut().enumerate() {
        *x = match cross {
            true => powers[(diamonds - (word | seam).count_ones()) as usize],
            false if word & seam == 0 => ring.one(),
            false => ring.zero(),
        };
    }
}

/// The sum over vertical links of a column that block exactly the diamonds of `seam`.
pub fn links<R: Ring>(cut: &ColumnCut, weight: &Weight<R>, seam: usize) -> R::Element {
    let ring = &weight.ring;
    let z = weight.activity;
    let sum = |a, b| ring.fold(ring.add(a, b));
    let (zero, one) = (ring.zero(), ring.one());
    let diamonds = cut.sites() as usize + usize::from(cut.is_ring());
    let inner = if cut.is_ring() { diamonds } else { diamonds - 1 };
    // Sums with an empty and with an occupied N corner of the diamond ahead.
    let from = |start: [R::Element; 2]| {
        (0..inner).fold(start, |[empty, occupied], k| match seam >> k & 1 {
            0 => [empty, ring.mul(z, empty)],
            _ => {
                let lower = ring.mul(z, occupied);
                [sum(occupied, ring.fold(ring.add(ring.mul(z, empty), lower))), lower]
            }
        })
    };
    match cut.is_ring() {
        true => sum(from([one, zero])[0], from([zero, one])[1]),
        false => from([one, zero])[seam >> inner & 1],
    }
}
