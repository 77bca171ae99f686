//! The vector after r rows, as a product of two thin matrices.
//!
//! Row r and the middle column between the halves are all that the halves share. Let G[p, d] be the number of fillings of one
//! half below the word p of row r whose column next to the middle is d, a word over the r - 1 rows below, read downwards: with
//! T over columns and the top of a column 0 beside a 1 in row r,
//!
//!   no middle vertex:  X = G (T G)',    a middle vertex:  X0 = L L' with L = T G, one column for each word of the middle column,
//!
//! and X1 the same over the words 0t of row r and the middle columns that begin with 0. So the vector has rank f(r - 1), and r
//! rows cost a product of f(r - 1) terms an element. The last symbols of row r + 1 are applied to G and L before the product.
//!
//! Source: derived here, see `docs/mathematics/counting.md`.

use super::super::words::{count, words};
use super::axis::{Axis, Symmetric};
use super::walk::Walk;
use super::{AxisPrograms, BlockPass, Course, Reflection};
use crate::monitor::Progress;
use crate::numeric::buffer::Buffer;
use crate::numeric::dispatch::Level;
use crate::numeric::neighbors::{self, NeighborKernel, Neighbors, ShortPrime, TILE};
use crate::{Result, parallel};

/// Words rounded up to whole registers.
pub fn padded(words: usize) -> usize {
    words.next_multiple_of(TILE)
}

/// Both factors of each matrix.
#[derive(Debug)]
pub struct StartFactors {
    /// By matrix, the left and the right factor: tiles of eight words of the axis, each for all words d. One if they are equal.
    panels: Vec<Vec<Buffer<u64>>>,
}

impl StartFactors {
    /// Words of all of them, and of what they are made from.
    pub fn len(reflection: &Reflection) -> usize {
        let column = reflection.start - 1;
        let axis = &reflection.halves[0].axis;
        let own = padded(words(column)) * padded(words(reflection.width / 2)) + TILE;
        let panel =
            |half: &Symmetric, terms: usize| half.axis.runs.iter().map(|run| run.tiles()).sum::<usize>() * TILE * terms;
        let panels = match &reflection.halves[..] {
            [zero, one] => panel(zero, words(column)) + panel(one, words(column - 1)),
            halves => 2 * panel(&halves[0], words(column)),
        };
        own + (words(axis.longest) + TILE) * padded(words(column)) + panels
    }

    /// The factors modulo a prime; with the last symbols of the next row if there is one.
    pub fn new(
        reflection: &Reflection,
        programs: &[AxisPrograms],
        column: &[BlockPass],
        level: Level,
        prime: ShortPrime,
    ) -> Result<Self> {
        let half = reflection.width / 2;
        let (rows, stride) = (words(reflection.start - 1), padded(words(half)));
        let mut fillings = Buffer::zeroed(padded(rows) * stride + TILE)?;
        let go = |fillings: &mut Buffer<u64>, width: usize| {
            let items = fillings.as_mut_ptr();
            neighbors::run(
                level,
                prime,
                Walk { program: column, items, stride, width: padded(width), supersets: false },
            );
        };
        for d in 0..rows {
            fillings[d * stride] = 1;
        }
        for symbols in 0..half {
            let (own, added) = (words(symbols), count(symbols as isize - 1));
            if symbols > 0 {
                go(&mut fillings, own);
            }
            // The words 1 0.. get what those with 0 in front have, where the top of the column is free.
            for d in 0..rows {
                let row = &mut fillings[d * stride..(d + 1) * stride];
                if d < count(reflection.start as isize - 2) {
                    row.copy_within(..added, own);
                } else {
                    row[own..own + added].fill(0);
                }
            }
        }
        let advance = reflection.start < reflection.half_rows();
        let panel = |fillings: &Buffer<u64>, k: usize, terms: usize| {
            let axis = &reflection.halves[k].axis;
            let mut panel = Buffer::zeroed(axis.runs.iter().map(|run| run.tiles()).sum::<usize>() * TILE * terms)?;
            let mut room = Buffer::zeroed((words(axis.longest) + TILE) * padded(rows))?;
            let programs = advance.then_some(&programs[k]);
            let make = FactorPanel {
                axis,
                fillings,
                stride,
                rows: padded(rows),
                terms,
                programs,
                room: &mut room,
                panel: &mut panel,
            };
            neighbors::run(level, prime, make);
            Ok(panel)
        };
        let panels = match &reflection.halves[..] {
            [_, _] => {
                go(&mut fillings, words(half));
                vec![vec![panel(&fillings, 0, rows)?], vec![panel(&fillings, 1, count(reflection.start as isize - 2))?]]
            }
            _ => {
                let left = panel(&fillings, 0, rows)?;
                go(&mut fillings, words(half));
                vec![vec![left, panel(&fillings, 0, rows)?]]
            }
        };
        Ok(Self { panels })
    }

    /// Writes a block of the product.
    ///
    /// # Safety
    /// The vector is the reflection's, and nobody else uses this block.
    pub unsafe fn block(
        &self,
        reflection: &Reflection,
        level: Level,
        prime: ShortPrime,
        (k, block): (usize, (usize, usize)),
        vector: *mut u64,
    ) {
        let panels = &self.panels[k];
        let half = &reflection.halves[k];
        let tiles: usize = half.axis.runs.iter().map(|run| run.tiles()).sum();
        let terms = panels[0].len() / (tiles * TILE);
        let [left, right] = [&panels[0], &panels[panels.len() - 1]];
        neighbors::run(level, prime, FactorProduct { half, block, left, right, terms, vector });
    }
}

/// The tiles of one factor, out of the fillings.
struct FactorPanel<'a> {
    axis: &'a Axis,
    fillings: &'a [u64],
    stride: usize,
    rows: usize,
    terms: usize,
    programs: Option<&'a AxisPrograms>,
    room: &'a mut [u64],
    panel: &'a mut [u64],
}

impl NeighborKernel for FactorPanel<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Neighbors>(self, a: A) {
        let mut tile = self.panel.as_mut_ptr();
        for run in &self.axis.runs {
            let length = words(run.length);
            for (p, d) in (0..length).flat_map(|p| (0..self.terms).map(move |d| (p, d))) {
                self.room[p * self.rows + d] = self.fillings[d * self.stride + run.start + p];
            }
            if let Some(programs) = self.programs {
                let (program, items) = (programs.run(run.length, Course::Down), self.room.as_mut_ptr());
                a.enter(Walk { program, items, stride: self.rows, width: self.rows, supersets: false });
            }
            for i in (0..length * self.rows).step_by(A::LANES) {
                // SAFETY: the room has that many words, a multiple of eight.
                unsafe {
                    let place = self.room.as_mut_ptr().add(i);
                    a.store(place, a.canonical(a.fold(a.load(place))));
                }
            }
            for t in 0..run.tiles() {
                let (at, valid) = run.tile(t);
                for (i, d) in (0..valid).flat_map(|i| (0..self.terms).map(move |d| (i, d))) {
                    // SAFETY: the panel has as many tiles as the axis.
                    unsafe { *tile.add(d * TILE + i) = self.room[(at + i) * self.rows + d] };
                }
                tile = tile.wrapping_add(self.terms * TILE);
            }
        }
    }
}

/// One block of the product of two factors.
struct FactorProduct<'a> {
    half: &'a Symmetric,
    block: (usize, usize),
    left: &'a [u64],
    right: &'a [u64],
    terms: usize,
    vector: *mut u64,
}

impl NeighborKernel for FactorProduct<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Neighbors>(self, a: A) {
        let runs = &self.half.axis.runs;
        let first = |run: usize| runs[..run].iter().map(|run| run.tiles()).sum::<usize>();
        let [left, right] = [(self.left, self.block.0), (self.right, self.block.1)]
            .map(|(panel, run)| panel[first(run) * self.terms * TILE..].as_ptr());
        for r in 0..runs[self.block.0].tiles() {
            for c in 0..runs[self.block.1].tiles() {
                // SAFETY: the panels have these tiles; the block is the caller's.
                unsafe {
                    let tile = self.vector.add(self.half.tile(self.block, r, c));
                    let step = self.terms * TILE;
                    a.outer_products(left.add(r * step), right.add(c * step), self.terms, tile);
                }
            }
        }
    }
}

/// Fills the vector with the first rows.
///
/// # Errors
/// [`crate::Error::Interrupted`] when the caller says so.
pub fn fill(
    reflection: &Reflection,
    factors: &StartFactors,
    level: Level,
    prime: ShortPrime,
    vector: &mut [u64],
    progress: &Progress,
) -> Result<()> {
    let blocks = reflection.blocks();
    let vector = parallel::Shared::new(vector);
    parallel::tiles(
        blocks.len(),
        1,
        || Ok(()),
        |(), i| {
            // SAFETY: blocks are disjoint, and each is worked on once.
            unsafe { factors.block(reflection, level, prime, blocks[i], vector.at(0)) };
            progress.advance(reflection.block_len(blocks[i]) as u64)
        },
    )
}
