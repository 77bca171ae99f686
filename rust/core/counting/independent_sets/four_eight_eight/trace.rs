//! Sections closed in the direction of the columns: a trace over seams.
//!
//! Summed over the vertical links of one column, the operator of a column is R = sum over U of m(U) e_U e_U^T: the links block
//! the diamonds of U, and e_U allows every word on the others. With J the links between columns, columns around the section are
//!
//!   trace((R J)^N) = sum over U of m(U) e_U^T J (R J)^(N-1) e_U = sum over U of m(U) w^T X w,
//!
//! and since the word on the right reads the same backwards, half of the columns do: X = J, w = (R J)^((N-1)/2) e_U for odd N,
//! X = R, w = J (R J)^((N-2)/2) e_U for even N. One U of each orbit under the symmetries of a column serves for all.

use super::cut::{Cut, Half, Passage};
use super::seed;
use super::tile::Turn;
use crate::Result;
use crate::numeric::ring::Ring;
use rayon::prelude::*;

/// Elements in the workspaces of seams in work at the same time, at least one workspace.
const BATCH: usize = 1 << 18;
/// Seams in work at the same time, at most.
const SEAMS: usize = 32;
/// Products in a row; the rows are added separately, which keeps the error of real numbers small.
const ROW: usize = 1 << 10;

/// A sum over seams.
#[derive(Clone, Debug)]
pub struct Trace {
    cut: Cut,
    columns: u64,
    /// Blocked diamonds, and how many seams look like that.
    seams: Vec<(usize, u64)>,
    batch: usize,
}

impl Trace {
    /// Columns of this cut around a closed section.
    pub fn new(cut: Cut, columns: u64) -> Self {
        let seams = orbits(cut.diamonds(), cut.is_ring());
        let batch = (BATCH / workspace(&cut)).clamp(1, SEAMS.min(seams.len()));
        Self { cut, columns, seams, batch }
    }

    /// Elements of all workspaces.
    pub fn len(&self) -> usize {
        self.batch * workspace(&self.cut)
    }

    /// Batches of seams.
    pub fn steps(&self) -> u64 {
        self.seams.len().div_ceil(self.batch) as u64
    }

    /// Additions in one batch.
    pub fn work(&self, step: u64) -> u64 {
        self.batch_of(step).len() as u64 * self.turns().map(|(half, turn)| self.cut.work(half, turn)).sum::<u64>()
    }

    /// Roundings on the way to the sum.
    pub fn roundings(&self) -> u64 {
        let words = 1u64 << self.cut.diamonds();
        let dots = 2 * ROW as u64 + words / ROW as u64;
        let seams = 64 + self.steps() + 4 * u64::from(self.cut.diamonds());
        (self.columns / 2 + 1).saturating_mul(6 * u64::from(self.cut.diamonds()) + 8) + dots + seams
    }

    fn batch_of(&self, step: u64) -> &[(usize, u64)] {
        let first = step as usize * self.batch;
        &self.seams[first..(first + self.batch).min(self.seams.len())]
    }

    /// Whole columns of each seam with all their links, and then without those behind the last one.
    fn parts(&self) -> [(u64, bool); 2] {
        match self.columns % 2 {
            1 => [(0, true), ((self.columns - 1) / 2, false)],
            _ => [((self.columns - 2) / 2, true), (1, false)],
        }
    }

    fn turns(&self) -> impl Iterator<Item = (Half, Turn)> {
        self.parts().into_iter().flat_map(|(columns, cross)| turns(columns, cross))
    }

    /// Adds the seams of one batch, each in its workspace.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] when the watch says so.
    pub fn step<R: Ring>(&self, passage: Passage<R>, step: u64, state: &mut [R::Element]) -> Result<()> {
        let seams = self.batch_of(step);
        let spaces = state.chunks_exact_mut(workspace(&self.cut)).zip(seams);
        if seams.len() == 1 || rayon::current_thread_index().is_none() {
            spaces.into_iter().try_for_each(|(space, seam)| self.add_seam(passage, space, *seam))
        } else {
            let spaces: Vec<_> = spaces.collect();
            spaces.into_par_iter().try_for_each(|(space, seam)| self.add_seam(passage, space, *seam))
        }
    }

    /// The sum of all workspaces.
    pub fn finish<R: Ring>(&self, ring: &R, state: &[R::Element]) -> R::Element {
        let totals = state.chunks_exact(workspace(&self.cut)).map(|space| space[space.len() - 1]);
        totals.fold(ring.zero(), |sum, total| ring.fold(ring.add(sum, total)))
    }

    fn add_seam<R: Ring>(&self, passage: Passage<R>, space: &mut [R::Element], seam: (usize, u64)) -> Result<()> {
        let (weight, ring) = (passage.weight, &passage.weight.ring);
        let (blocked, multiplicity) = seam;
        let all = 1usize << self.cut.diamonds();
        let (total, space) = space.split_last_mut().expect("the total");
        let (vector, kept) = space.split_at_mut(self.cut.len());
        let [(before, _), (after, _)] = self.parts();
        let odd = self.columns % 2 == 1;

        seed::seam(&self.cut, weight, vector, blocked, !odd || after > 0);
        self.columns(passage, vector, before, true)?;
        if self.cut.is_ring() && before > 0 {
            self.cross(passage, &mut vector[..all], self.cut.sites());
        }
        kept.copy_from_slice(&vector[..all]);
        self.columns(passage, vector, after, false)?;
        if odd {
            kept.copy_from_slice(&vector[..all]);
            (0..self.cut.diamonds()).for_each(|bit| self.cross(passage, kept, bit));
        }
        let powers = weight.powers(if weight.unit { 0 } else { self.cut.diamonds() as usize });
        let rows = (0..all).step_by(ROW).map(|first| {
            let words = first..(first + ROW).min(all);
            if weight.unit {
                return ring.dot(words.map(|word| (vector[word], kept[word])));
            }
            ring.dot(words.map(|word| (ring.mul(vector[word], powers[word.count_ones() as usize]), kept[word])))
        });
        let sum = rows.fold(ring.zero(), |sum, row| ring.fold(ring.add(sum, row)));
        let seams = multiple(ring, seed::links(&self.cut, weight, blocked), multiplicity);
        *total = ring.fold(ring.add(*total, ring.mul(sum, seams)));
        passage.watch.check()
    }

    fn columns<R: Ring>(
        &self,
        passage: Passage<R>,
        vector: &mut [R::Element],
        columns: u64,
        cross: bool,
    ) -> Result<()> {
        turns(columns, cross).try_for_each(|(half, turn)| self.cut.turn(passage, vector, half, turn))
    }

    /// Crosses the link behind the diamond of one bit.
    fn cross<R: Ring>(&self, passage: Passage<R>, words: &mut [R::Element], bit: u32) {
        let (weight, ring) = (passage.weight, &passage.weight.ring);
        for block in words.chunks_exact_mut(2 << bit) {
            let (zero, one) = block.split_at_mut(1 << bit);
            for (x, y) in zero.iter_mut().zip(one) {
                let occupied = if weight.unit { *y } else { ring.mul(*y, weight.activity) };
                (*x, *y) = (ring.fold(ring.add(*x, occupied)), *x);
            }
        }
    }
}

/// The turns of whole columns; `cross` says whether the last one crosses its links.
fn turns(columns: u64, cross: bool) -> impl Iterator<Item = (Half, Turn)> {
    let count = if columns == 0 { 0 } else { columns + 1 };
    (0..count).map(move |k| {
        let half = if k % 2 == 0 { Half::Low } else { Half::High };
        (half, Turn { down: k > 0, up: k < columns, cross: cross || k + 1 < columns })
    })
}

/// The vectors of a seam, a copy of one, the total so far.
fn workspace(cut: &Cut) -> usize {
    cut.len() + (1 << cut.diamonds()) + 1
}

/// One word of each orbit under reflection, and under rotation for a ring, with the size of its orbit.
pub fn orbits(width: u32, ring: bool) -> Vec<(usize, u64)> {
    let mask = (1usize << width) - 1;
    let turns = if ring { width } else { 1 };
    let size = |word: usize| {
        let mirrored = word.reverse_bits() >> (usize::BITS - width);
        let mut same = 0;
        for turn in 0..turns {
            for image in [word, mirrored].map(|w| ((w << turn) | (w >> (width - turn))) & mask) {
                if image < word {
                    return None;
                }
                same += u64::from(image == word);
            }
        }
        Some((word, 2 * u64::from(turns) / same))
    };
    (0..=mask).filter_map(size).collect()
}

/// `count * x` by doubling, folded.
pub fn multiple<R: Ring>(ring: &R, x: R::Element, count: u64) -> R::Element {
    (0..u64::BITS - count.leading_zeros()).rev().fold(ring.zero(), |sum, bit| {
        let double = ring.add(sum, sum);
        ring.fold(if count >> bit & 1 == 1 { ring.add(double, x) } else { double })
    })
}
