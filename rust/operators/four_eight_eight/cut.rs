//! The vector along a column of diamonds, and the turns that move it on, one half of the column at a time.
//!
//! The column is cut into a high and a low half of its sites, and the vector is worked on in tiles that hold all words of one
//! half: low tiles are contiguous, high tiles are gathered into working memory with their words in reverse, so that both look
//! alike. A column goes through one half and then the other, the next one back: while a tile is in the cache, the half of a
//! column ends in it and that of the next one begins, and memory is swept once per column, not once per site.
//!
//! Under carry 1 the symbol of the site ahead is 0 and left out of the words. Between the halves that is the first of the
//! other half, bit `low - 1` on the way to the low half and bit `low` on the way to the high one.
//!
//! Source: derived here from the operator of a column in [`super`].

use super::sites::Activity;
use super::tile::{ColumnPass, ColumnTile, Most, Turn, Vectors, program};
use crate::Result;
use crate::numeric::dispatch::Plain;
use crate::numeric::ring::Ring;
use crate::parallel::{self, Shared};
use crate::strip::Context;

/// A half of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// The sites of the lower bits.
    Low,
    /// The sites of the higher bits.
    High,
}

impl Half {
    /// The half passed before or after.
    pub fn other(self) -> Self {
        match self {
            Half::Low => Half::High,
            Half::High => Half::Low,
        }
    }
}

/// The binary logarithm of the elements under carry 0 in a tile, if the halves allow it.
const TILE: u32 = 13;
/// High tiles in work at the same time, at most.
const SLOTS: usize = 32;

/// The shape of the vector.
#[derive(Clone, Copy, Debug)]
pub struct ColumnCut {
    ring: bool,
    low: u32,
    high: u32,
    /// The binary logarithm of the contiguous elements in a row of a high tile.
    run: u32,
}

impl ColumnCut {
    /// A path of `sites` sites, or a ring of one diamond more, with so many of them in the high half; at least one in each.
    pub fn new(sites: u32, high: u32, ring: bool) -> Self {
        debug_assert!(0 < high && high < sites);
        let low = sites - high;
        let run = TILE.saturating_sub(high + if ring { 3 } else { 1 }).max(1).min(low - 1);
        Self { ring, low, high, run }
    }

    /// Sites of the path.
    pub fn sites(&self) -> u32 {
        self.low + self.high
    }

    /// Diamonds of the column.
    pub fn diamonds(&self) -> u32 {
        self.sites() + u32::from(self.ring)
    }

    /// Sites of the low half.
    pub fn low(&self) -> u32 {
        self.low
    }

    /// Whether the path is part of a ring.
    pub fn is_ring(&self) -> bool {
        self.ring
    }

    /// Vectors side by side.
    pub fn vectors(&self) -> usize {
        if self.ring { 3 } else { 1 }
    }

    /// Words of the path.
    pub fn words(&self) -> usize {
        1 << self.sites()
    }

    /// Elements under carry 0; as many again are half under carry 1.
    pub fn none_len(&self) -> usize {
        self.vectors() * self.words()
    }

    /// Elements of all the vectors, without working memory.
    pub fn state_len(&self) -> usize {
        self.none_len() / 2 * 3
    }

    /// Elements of the vectors and the working memory for `slots` tiles.
    pub fn len(&self) -> usize {
        self.state_len() + self.slots() * self.tile_len()
    }

    fn tile_len(&self) -> usize {
        (self.vectors() << (self.high + self.run)) * 3
    }

    fn high_tiles(&self) -> usize {
        1 << (self.low - 1 - self.run)
    }

    fn slots(&self) -> usize {
        self.high_tiles().min(SLOTS)
    }

    /// Additions in a turn of so many halves, three per site and element.
    pub fn work(&self, half: Half, turn: Turn) -> u64 {
        let sites = if half == Half::Low { self.low } else { self.high };
        3 * u64::from(sites) * (u64::from(turn.down) + u64::from(turn.up)) * self.none_len() as u64
    }
}

/// Runs a tile at the activity of the points.
fn run<R: Ring>(context: Context<R>, tile: ColumnTile<R::Element>) {
    let weight = context.weight;
    if weight.unit {
        weight.ring.dispatch(context.level, tile);
    } else {
        tile.go(Plain(weight.ring), Activity(weight.activity));
    }
}

impl ColumnCut {
    /// Takes the vector through a turn in one half of the column. Every element is folded before and after.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] when the caller says so.
    pub fn turn<R: Ring>(&self, context: Context<R>, state: &mut [R::Element], half: Half, turn: Turn) -> Result<()> {
        let weight = context.weight;
        let most = if weight.unit { weight.ring.dispatch(context.level, Most) } else { 1 };
        let (vectors, work) = state[..self.len()].split_at_mut(self.state_len());
        let (none, carried) = vectors.split_at_mut(self.none_len());
        let vectors = Vectors {
            none: none.as_mut_ptr(),
            none_stride: self.words(),
            carried: carried.as_mut_ptr(),
            carried_stride: self.words() / 2,
        };
        match half {
            Half::Low => {
                let program = program(self.low + 1, 0, self.ring, most, turn);
                self.turn_low(context, vectors, &program, self.work(half, turn))
            }
            Half::High => {
                let program = program(self.high + 1, self.run, self.ring, most, turn);
                self.turn_high(context, vectors, work, &program, turn)
            }
        }
    }

    fn turn_low<R: Ring>(
        &self,
        context: Context<R>,
        vectors: Vectors<R::Element>,
        program: &[ColumnPass],
        work: u64,
    ) -> Result<()> {
        let tiles = 1usize << (self.high - 1);
        let elements = self.vectors() << (self.low + 1);
        let tile = |(): &mut (), tile: usize| {
            // SAFETY: each vector has so many tiles.
            let vectors = unsafe { vectors.from(tile << (self.low + 1), tile << self.low) };
            run(context, ColumnTile { program, ring: self.ring, vectors });
            context.progress.advance(work / tiles as u64)
        };
        match tiles * elements <= 1 << TILE {
            true => (0..tiles).try_for_each(|number| tile(&mut (), number)),
            false => parallel::tiles(tiles, ((1 << TILE) / elements).max(1), || Ok(()), tile),
        }
    }

    fn turn_high<R: Ring>(
        &self,
        context: Context<R>,
        vectors: Vectors<R::Element>,
        work: &mut [R::Element],
        program: &[ColumnPass],
        turn: Turn,
    ) -> Result<()> {
        let (tiles, slots) = (self.high_tiles(), self.slots());
        let each = self.work(Half::High, turn) / tiles as u64;
        let work = Shared::new(work);
        parallel::tiles(
            slots,
            1,
            || Ok(()),
            |(), slot| {
                // SAFETY: each slot has its own working memory.
                let work = unsafe { work.part(slot * self.tile_len(), self.tile_len()) };
                let (none, carried) = work.split_at_mut(self.vectors() << (self.high + 1 + self.run));
                let scratch = Vectors {
                    none: none.as_mut_ptr(),
                    none_stride: 1 << (self.high + 1 + self.run),
                    carried: carried.as_mut_ptr(),
                    carried_stride: 1 << (self.high + self.run),
                };
                for tile in tiles * slot / slots..tiles * (slot + 1) / slots {
                    // SAFETY: nobody else has this tile, nor this working memory.
                    unsafe {
                        self.copy(vectors, scratch, tile, true, turn.down);
                        run(context, ColumnTile { program, ring: self.ring, vectors: scratch });
                        self.copy(vectors, scratch, tile, false, turn.up);
                    }
                    context.progress.advance(each)?;
                }
                Ok(())
            },
        )
    }

    /// Gathers a high tile into working memory, or scatters it back.
    unsafe fn copy<E: Copy>(&self, outside: Vectors<E>, scratch: Vectors<E>, tile: usize, gather: bool, carried: bool) {
        let rows = |outside: *mut E, scratch: *mut E, bits: u32| {
            for row in 0..1usize << bits {
                let reversed = row.reverse_bits() >> (usize::BITS - bits);
                // SAFETY: the caller's; a vector has `2^bits` rows of `2^(low - 1)` elements.
                unsafe {
                    let outside = outside.add(row << (self.low - 1) | tile << self.run);
                    let scratch = scratch.add(reversed << self.run);
                    let (from, to) = if gather { (outside, scratch) } else { (scratch, outside) };
                    std::ptr::copy_nonoverlapping(from, to, 1 << self.run);
                }
            }
        };
        for vector in 0..self.vectors() {
            // SAFETY: the caller's.
            unsafe {
                rows(
                    outside.none.add(vector * outside.none_stride),
                    scratch.none.add(vector * scratch.none_stride),
                    self.high + 1,
                );
                if carried {
                    rows(
                        outside.carried.add(vector * outside.carried_stride),
                        scratch.carried.add(vector * scratch.carried_stride),
                        self.high,
                    );
                }
            }
        }
    }
}
