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
//! With an activity z a filling is weighed by its vertices, row r included, and D = diag(z^(number of ones)) over the words of the
//! middle column stands between L and L', with one z more for X1: then the factors differ.
//!
//! Source: derived here, see `docs/mathematics/counting.md`.

use super::super::square::words::{count, list, words};
use super::activity::Weighed;
use super::axis::{Symmetric, WordRun};
use super::walk::Walk;
use super::{BlockPass, Course, PrimeJob, Reflection};
use crate::Result;
use crate::monitor::Progress;
use crate::numeric::buffer::Buffer;
use crate::numeric::neighbors::{self, NeighborKernel, Neighbors, TILE, TILE_WORDS};
use crate::parallel::{self, Shared};
use std::ops::Range;

/// Neighboring words that a column is walked for at a time: with all of its words they lie in the second cache.
const STRETCH: usize = 256;

/// Words rounded up to whole registers.
pub fn padded(words: usize) -> usize {
    words.next_multiple_of(TILE)
}

/// Both factors of each matrix, in memory that serves one prime after the other.
#[derive(Debug)]
pub struct StartFactors {
    /// G or T G: for each word d of a column the fillings of all words of half a row.
    fillings: Buffer<u64>,
    /// By matrix, the left and the right factor; one if they are equal.
    panels: Vec<Vec<Buffer<u64>>>,
}

/// Words of the column, by matrix.
fn terms(reflection: &Reflection) -> [usize; 2] {
    [words(reflection.start - 1), count(reflection.start as isize - 2)]
}

/// Words of a factor: tiles of eight words of the axis, each for all words of the column.
fn panel_len(half: &Symmetric, terms: usize) -> usize {
    half.axis.tiles_before(half.axis.runs.len()) * TILE * terms
}

/// Words of all fillings, and from those of one word of the column to those of the next.
fn fillings_len(reflection: &Reflection) -> (usize, usize) {
    let stride = padded(words(reflection.width / 2));
    (padded(terms(reflection)[0]) * stride + TILE, stride)
}

/// Words of the room that a run of a factor takes.
fn room_len(reflection: &Reflection) -> usize {
    (words(reflection.halves[0].axis.longest) + TILE) * padded(terms(reflection)[0])
}

/// Factors of each matrix: one is enough where there is a middle vertex of activity 1.
fn factors(reflection: &Reflection, weighed: bool) -> usize {
    if weighed { 2 } else { 3 - reflection.halves.len() }
}

impl StartFactors {
    /// Words of all of them, and of what they are made from.
    pub fn len(reflection: &Reflection, weighed: bool, threads: usize) -> usize {
        let panels = reflection.halves.iter().zip(terms(reflection)).map(|(half, terms)| panel_len(half, terms));
        fillings_len(reflection).0
            + factors(reflection, weighed) * panels.sum::<usize>()
            + threads * room_len(reflection)
    }

    /// Memory for them, for activities other than 1 if `weighed`.
    ///
    /// # Errors
    /// [`crate::Error::TooLarge`] if the system does not give it.
    pub fn new(reflection: &Reflection, weighed: bool) -> Result<Self> {
        let panels = |(half, terms): (&Symmetric, usize)| {
            (0..factors(reflection, weighed)).map(|_| Buffer::zeroed(panel_len(half, terms))).collect()
        };
        Ok(Self {
            fillings: Buffer::zeroed(fillings_len(reflection).0)?,
            panels: reflection.halves.iter().zip(terms(reflection)).map(panels).collect::<Result<_>>()?,
        })
    }

    /// The factors modulo a prime; with the last symbols of the next row if there is one.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] when the caller says so, [`crate::Error::TooLarge`] without memory.
    pub fn make(&mut self, job: &PrimeJob<'_>, progress: &Progress) -> Result<()> {
        self.fill(job, progress)?;
        if let [_, _] = self.panels[..] {
            self.walk(job, words(job.reflection.width / 2), progress)?;
            let last = self.panels[0].len() - 1;
            self.tile(job, 0, last, progress)?;
            self.tile(job, 1, last, progress)?;
            let Some(weights) = &job.weights else { return Ok(()) }; // the other factor is the same
            // The middle column counts once, and so does its vertex in row r.
            let all = words(job.reflection.width / 2);
            self.weigh(job, 0..all, |d| weights.powers[d.count_ones() as usize], progress)?;
            self.tile(job, 0, 0, progress)?;
            if job.weighs_start() {
                self.weigh(job, 0..all, |_| weights.powers[1], progress)?;
            }
            self.tile(job, 1, 0, progress)
        } else {
            self.tile(job, 0, 0, progress)?;
            self.walk(job, words(job.reflection.width / 2), progress)?;
            self.tile(job, 0, 1, progress)
        }
    }

    /// Fills the halves from the middle outwards.
    fn fill(&mut self, job: &PrimeJob<'_>, progress: &Progress) -> Result<()> {
        let ([rows, free], (_, stride)) = (terms(job.reflection), fillings_len(job.reflection));
        (0..rows).for_each(|d| self.fillings[d * stride] = 1);
        for symbols in 0..job.reflection.width / 2 {
            let (own, added) = (words(symbols), count(symbols as isize - 1));
            if symbols > 0 {
                self.walk(job, own, progress)?;
            }
            // The words 1 0.. get what those with 0 in front have, where the top of the column is free.
            for d in 0..rows {
                let row = &mut self.fillings[d * stride..(d + 1) * stride];
                if d < free {
                    row.copy_within(..added, own);
                } else {
                    row[own..own + added].fill(0);
                }
            }
            if let Some(weights) = &job.weights {
                self.weigh(job, 0..own + added, |d| weights.powers[d.count_ones() as usize], progress)?;
                if job.weighs_start() {
                    self.weigh(job, own..own + added, |_| weights.powers[1], progress)?;
                }
            }
        }
        Ok(())
    }

    /// Multiplies the fillings of some words by a power for each word of the column.
    fn weigh(
        &mut self,
        job: &PrimeJob<'_>,
        words: Range<usize>,
        power: impl Fn(u64) -> u64 + Sync,
        progress: &Progress,
    ) -> Result<()> {
        let (columns, (_, stride)) = (list(job.reflection.start - 1), fillings_len(job.reflection));
        let fillings = Shared::new(&mut self.fillings);
        parallel::tiles(
            columns.len(),
            1,
            || Ok(()),
            |(), i| {
                // SAFETY: each column has fillings of its own.
                let words = unsafe { fillings.part(i * stride + words.start, words.len()) };
                neighbors::run(job.reflection.level, job.prime, Weighed { words, power: power(columns[i]) });
                progress.check()
            },
        )
    }

    /// T over the column, for the first words of half a row.
    fn walk(&mut self, job: &PrimeJob<'_>, words: usize, progress: &Progress) -> Result<()> {
        let ((_, stride), width) = (fillings_len(job.reflection), padded(words));
        let fillings = Shared::new(&mut self.fillings);
        parallel::tiles(
            width.div_ceil(STRETCH),
            1,
            || Ok(()),
            |(), i| {
                let start = i * STRETCH;
                let (items, width) = (fillings.at(start), STRETCH.min(width - start));
                let walk =
                    Walk { program: job.programs.column.course(Course::Down), items, stride, width, supersets: false };
                neighbors::run(job.reflection.level, job.prime, walk);
                progress.check()
            },
        )
    }

    /// Writes a factor of a matrix.
    fn tile(&mut self, job: &PrimeJob<'_>, k: usize, side: usize, progress: &Progress) -> Result<()> {
        let reflection = job.reflection;
        let (axis, terms, (_, stride)) = (&reflection.halves[k].axis, terms(reflection)[k], fillings_len(reflection));
        let advances = reflection.start < reflection.half_rows();
        let (fillings, panel) = (&self.fillings, Shared::new(&mut self.panels[k][side]));
        parallel::tiles(
            axis.runs.len(),
            1,
            || Buffer::zeroed(room_len(reflection)),
            |room, i| {
                let (run, step) = (&axis.runs[i], TILE * terms);
                let program = advances.then(|| job.programs.halves[k].run(run.length, Course::Down));
                // SAFETY: each run has tiles of its own.
                let panel = unsafe { panel.part(axis.tiles_before(i) * step, run.tiles() * step) };
                let kernel = FactorRun { run, fillings, stride, terms, program, room, panel };
                neighbors::run(reflection.level, job.prime, kernel);
                progress.check()
            },
        )
    }

    /// Fills a vector with their products.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] when the caller says so.
    pub fn multiply(&self, job: &PrimeJob<'_>, vector: &mut [u64], progress: &Progress) -> Result<()> {
        let (reflection, blocks, vector) = (job.reflection, job.reflection.blocks(), Shared::new(vector));
        parallel::tiles(
            blocks.len(),
            1,
            || Ok(()),
            |(), i| {
                let (k, block) = blocks[i];
                let (half, terms) = (&reflection.halves[k], terms(reflection)[k]);
                let panels = &self.panels[k];
                let right = &panels[panels.len() - 1];
                let left = if job.has_one_factor() { right } else { &panels[0] };
                let kernel = FactorProduct { half, block, left, right, terms, vector: vector.at(0) };
                neighbors::run(reflection.level, job.prime, kernel);
                progress.advance(reflection.block_len(blocks[i]) as u64)
            },
        )
    }
}

/// The tiles of one run of a factor, out of the fillings.
struct FactorRun<'a> {
    run: &'a WordRun,
    fillings: &'a [u64],
    stride: usize,
    terms: usize,
    program: Option<&'a [BlockPass]>,
    /// The words of the run, each for all words of the column.
    room: &'a mut [u64],
    panel: &'a mut [u64],
}

impl NeighborKernel for FactorRun<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Neighbors>(self, a: A) {
        let (length, stride) = (words(self.run.length), padded(self.terms));
        let (fillings, room) = (self.fillings.as_ptr(), self.room.as_mut_ptr());
        // SAFETY: the fillings have eight words more, the room eight rows more than the run has words, and the panel its tiles.
        unsafe {
            for (p, d) in (0..length).step_by(TILE).flat_map(|p| (0..stride).step_by(TILE).map(move |d| (p, d))) {
                let from = fillings.add(d * self.stride + self.run.start + p);
                a.transpose(from, room.add(p * stride + d), [self.stride, stride]);
            }
            if let Some(program) = self.program {
                a.enter(Walk { program, items: room, stride, width: stride, supersets: false });
            }
            for i in (0..length * stride).step_by(A::LANES) {
                a.store(room.add(i), a.canonical(a.fold(a.load(room.add(i)))));
            }
            for t in 0..self.run.tiles() {
                let (at, valid) = self.run.tile(t);
                for d in (0..self.terms).step_by(TILE) {
                    // Beyond its words a tile has zeros.
                    let mut tile = [0; TILE_WORDS];
                    let tile = tile.as_mut_ptr();
                    for i in (0..valid * TILE).step_by(A::LANES) {
                        let from = room.add((at + i / TILE) * stride + d + i % TILE);
                        a.store(tile.add(i), a.load(from));
                    }
                    a.transpose(tile, tile, [TILE, TILE]);
                    let to = self.panel.as_mut_ptr().add((t * self.terms + d) * TILE);
                    for i in (0..TILE.min(self.terms - d) * TILE).step_by(A::LANES) {
                        a.store(to.add(i), a.load(tile.add(i)));
                    }
                }
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
        let axis = &self.half.axis;
        let step = self.terms * TILE;
        let [left, right] = [(self.left, self.block.0), (self.right, self.block.1)]
            .map(|(panel, run)| panel[axis.tiles_before(run) * step..].as_ptr());
        for r in 0..axis.runs[self.block.0].tiles() {
            for c in 0..axis.runs[self.block.1].tiles() {
                // SAFETY: the panels have these tiles, of at most `MOST_TERMS` terms; the block is the caller's.
                unsafe {
                    let tile = self.vector.add(self.half.tile(self.block, r, c));
                    a.outer_products(left.add(r * step), right.add(c * step), self.terms, tile);
                }
            }
        }
    }
}
