//! Independent sets of the square lattice, m x n vertices, open or closed along either extent.
//!
//! The cut is a row, a path or a ring; its states are the independent sets of that row, the operator between rows is
//! T[v, w] = 1 exactly if v & w = 0, applied in place by the Fibonacci butterfly: the words over {0, 1} without 11 fall into
//! A (00...), B (01...) and C (10...), and with B_i = 0 beyond the end of B
//!
//!   C_i, A_i <- A_i + B_i, A_i + C_i,  then T_{k-1} on [A, B] and T_{k-2} on C.
//!
//! With activity z the diagonal D = z^(number of ones) acts once per row. Let u_r = T (D T)^(r-2) D 1 be the vector after r
//! rows, row r without its weight.
//!
//!  - Open direction, h rows, met in the middle:  Z = u_a^T D u_a for h = 2a - 1,  Z = (D u_a)^T T (D u_a) for h = 2a, the
//!    last product in place (`middle`). Memory: one vector.
//!  - Closed direction, h rows:  Z = trace((T D)^h) = sum over seam words s of z^|s| (p_s)^T D q_s with p_s, q_s the vectors
//!    (T D)^(a-1) T e_s after a = floor(h/2) and ceil(h/2) steps. One seam per orbit of the symmetries of the cut serves all.
//!
//! A closed extent of 1 is a loop: no vertex is ever occupied. A closed extent of 2 is a double edge, which counts as one.
//!
//! The files: `words` (states), `network` (the butterfly in registers), `program` (its passes over a block in the cache and
//! when to fold), `kernel` (the loops), `path` (any size, threads), `cut` (rings), `middle` (even numbers of rows).

mod cut;
mod kernel;
mod middle;
mod network;
mod path;
mod program;
mod words;

use super::Boundary;
use crate::counting::transfer::{Transfer, Weight};
use crate::monitor::Watch;
use crate::numeric::ring::Ring;
use crate::numeric::simd::{self, Level};
use crate::{Error, Result};
use cut::{Cut, Shape};
use middle::HalfRow;
use path::Passage;
use rayon::prelude::*;

/// The largest number of states of a cut.
const MOST_STATES: u128 = 1 << 40;
/// The longest cut whose seams are listed.
const LONGEST_SEAM: usize = 30;
/// Seams are worked on in batches of about so many elements.
const BATCH: usize = 1 << 16;

/// The square lattice of `rows` by `cols` vertices.
#[derive(Clone, Debug)]
pub struct Square {
    plan: Plan,
    level: Level,
}

/// How the count goes about.
#[derive(Clone, Debug)]
enum Plan {
    /// Loops everywhere: only the empty set.
    Empty,
    /// Rows from an open end to the middle.
    Open { cut: Box<Cut>, rows: u64, half: Option<Box<HalfRow>> },
    /// Rows around, once per seam.
    Closed { cut: Box<Cut>, rows: u64, seams: Vec<Seam>, batch: usize },
}

/// A state of the cut that the rows start from and come back to.
#[derive(Clone, Copy, Debug)]
struct Seam {
    word: u64,
    rank: usize,
    orbit: u64,
}

impl Square {
    /// The lattice of `rows` by `cols` vertices with this boundary.
    ///
    /// # Errors
    /// [`Error::Domain`] for an extent of zero, [`Error::TooLarge`] if every cut has more than `2^40` states.
    pub fn new(rows: usize, cols: usize, boundary: Boundary) -> Result<Self> {
        for (name, extent) in [("rows", rows), ("cols", cols)] {
            if extent == 0 {
                return Err(Error::Domain { name, value: extent.to_string(), requirement: "at least 1" });
            }
        }
        let (small, large) = (rows.min(cols), rows.max(cols));
        let path = |width| within(width, words::LONGEST).map(|()| Shape::Path(width));
        let ring = |width| within(width, words::LONGEST).map(|()| Shape::ring(width));
        let seamed = |shape: Result<Shape>| shape.and_then(|shape| within(shape.width(), LONGEST_SEAM).map(|()| shape));
        let plan = match boundary {
            Boundary::Free => Plan::open(path(small)?, large),
            Boundary::Cylinder if cols == 1 => Plan::Empty,
            Boundary::Torus if small == 1 => Plan::Empty,
            Boundary::Cylinder => match (ring(cols), seamed(path(rows))) {
                (Ok(around), Ok(along)) if open_work(around, rows) > closed_work(along, cols) => {
                    Plan::closed(along, cols)
                }
                (Ok(around), _) => Plan::open(around, rows),
                (Err(_), along) => Plan::closed(along?, cols),
            },
            Boundary::Torus => match (seamed(ring(rows)), seamed(ring(cols))) {
                (Ok(one), Ok(other)) if closed_work(one, cols) > closed_work(other, rows) => Plan::closed(other, rows),
                (Ok(one), _) => Plan::closed(one, cols),
                (Err(_), other) => Plan::closed(other?, rows),
            },
        };
        Ok(Self { plan, level: simd::level() })
    }

    /// The same with these vector instructions, or the best there are if they are less. Results do not depend on them.
    pub fn with_level(self, level: Level) -> Self {
        Self { level, ..self }
    }
}

/// Refuses a cut that is too long.
fn within(length: usize, longest: usize) -> Result<()> {
    match length <= longest {
        true => Ok(()),
        false => Err(Error::TooLarge { what: "the square lattice", needed: u128::MAX, limit: MOST_STATES * 8 }),
    }
}

/// About how many additions an open direction takes; filling and reading the vector counts as two.
fn open_work(shape: Shape, rows: usize) -> f64 {
    shape.additions() as f64 * (rows / 2) as f64 + 2.0 * shape.states() as f64
}

/// The same of a closed direction.
fn closed_work(shape: Shape, rows: usize) -> f64 {
    let seams = shape.states() / shape.symmetries() + 1;
    seams as f64 * (shape.additions() as f64 * rows.div_ceil(2) as f64 + 2.0 * shape.states() as f64)
}

impl Plan {
    fn open(shape: Shape, rows: usize) -> Self {
        let cut = Box::new(Cut::new(shape));
        let half = rows.is_multiple_of(2).then(|| Box::new(HalfRow::new(&cut)));
        Self::Open { cut, rows: rows as u64, half }
    }

    fn closed(shape: Shape, rows: usize) -> Self {
        let cut = Box::new(Cut::new(shape));
        let seams = seams(&cut);
        let batch = (BATCH / cut.states()).clamp(1, seams.len());
        Self::Closed { cut, rows: rows as u64, seams, batch }
    }
}

/// Moves of a whole row up to the middle of `rows`.
fn moves(rows: u64) -> u64 {
    (rows - 1) / 2
}

/// Steps that these moves take: a sweep each and one more, or two moves each.
fn sweeps(cut: &Cut, moves: u64) -> u64 {
    match cut.as_path().filter(|path| !path.is_block()) {
        Some(_) if moves > 0 => moves + 1,
        _ => moves.div_ceil(2),
    }
}

/// The states of a cut up to its symmetries, with the sizes of their orbits.
fn seams(cut: &Cut) -> Vec<Seam> {
    let width = cut.shape().width();
    let mask = (1u64 << width) - 1;
    let images = |word: u64| {
        let reversed = word.reverse_bits() >> (64 - width);
        let turns = cut.shape().symmetries() / 2;
        (0..turns).flat_map(move |i| [word, reversed].map(|w| (w << i | w >> (width - i)) & mask))
    };
    let orbit = |(rank, word): (usize, u64)| {
        let mut orbit = images(word).all(|image| word <= image).then(|| images(word).collect::<Vec<_>>())?;
        orbit.sort_unstable();
        orbit.dedup();
        Some(Seam { word, rank, orbit: orbit.len() as u64 })
    };
    cut.list().into_iter().enumerate().filter_map(orbit).collect()
}

impl Transfer for Square {
    fn len(&self) -> usize {
        match &self.plan {
            Plan::Empty => 1,
            Plan::Open { cut, .. } => cut.states(),
            Plan::Closed { cut, rows, batch, .. } => 1 + batch * vectors(*rows) * cut.states(),
        }
    }

    fn steps(&self) -> u64 {
        match &self.plan {
            Plan::Empty => 0,
            Plan::Open { cut, rows, half } => sweeps(cut, moves(*rows)) + u64::from(half.is_some()),
            Plan::Closed { seams, batch, .. } => seams.len().div_ceil(*batch) as u64,
        }
    }

    fn work(&self, step: u64) -> u64 {
        match &self.plan {
            Plan::Empty => 0,
            Plan::Open { cut, rows, .. } => {
                let moves = moves(*rows);
                match cut.as_path().filter(|path| !path.is_block()) {
                    _ if step >= sweeps(cut, moves) => cut.additions() / 2,
                    Some(path) => path.sweep_additions(step > 0, step < moves, step.is_multiple_of(2)),
                    None => cut.additions() * (moves - 2 * step).min(2),
                }
            }
            Plan::Closed { cut, rows, seams, batch } => {
                let count = seams.chunks(*batch).nth(step as usize).map_or(0, <[_]>::len) as u64;
                cut.additions() * rows.div_ceil(2) * count
            }
        }
    }

    fn roundings(&self) -> u64 {
        // Along a row: one addition per symbol, four at the seam of a ring, the weight and the roundings of its power.
        let row = |cut: &Cut| 2 * cut.shape().width() as u64 + 8;
        match &self.plan {
            Plan::Empty => 0,
            Plan::Open { cut, rows, half } => {
                row(cut) * (rows + 1) + half.as_ref().map_or(cut.dot_roundings(), |half| half.roundings())
            }
            Plan::Closed { cut, rows, seams, .. } => {
                row(cut) * (rows + 2) + cut.dot_roundings() + 2 * cut.shape().width() as u64 + seams.len() as u64
            }
        }
    }

    fn start<R: Ring>(&self, weight: &Weight<R>, state: &mut [R::Element]) {
        match &self.plan {
            Plan::Open { .. } => state.fill(weight.ring.one()),
            Plan::Empty | Plan::Closed { .. } => state.fill(weight.ring.zero()),
        }
    }

    fn step<R: Ring>(&self, weight: &Weight<R>, step: u64, state: &mut [R::Element], watch: &Watch) -> Result<()> {
        watch.check()?;
        match &self.plan {
            Plan::Empty => Ok(()),
            Plan::Open { cut, rows, half } => {
                let powers = self.powers(weight, cut);
                let passage = self.passage(weight, powers.as_deref(), watch);
                let moves = moves(*rows);
                match (cut.as_path().filter(|path| !path.is_block()), half) {
                    (_, Some(half)) if step == sweeps(cut, moves) => {
                        cut.weigh(state, passage);
                        half.advance(state, passage)
                    }
                    (Some(path), _) if step == 0 => {
                        cut.weigh(state, passage);
                        path.tiles(state, passage, false, true)
                    }
                    (Some(path), _) if step.is_multiple_of(2) => path.tiles(state, passage, true, step < moves),
                    (Some(path), _) => path.runs(state, passage, true, step < moves),
                    (None, _) => {
                        cut.weigh(state, passage);
                        cut.advance(state, passage, 2 * step + 1 < moves)
                    }
                }
            }
            Plan::Closed { cut, rows, seams, batch } => {
                let Some((sum, vectors)) = state.split_first_mut() else { return Ok(()) };
                let seams = seams.chunks(*batch).nth(step as usize).unwrap_or_default();
                let powers = self.powers(weight, cut);
                let passage = self.passage(weight, powers.as_deref(), watch);
                let room = self::vectors(*rows) * cut.states();
                let around = |(seam, state): (&Seam, &mut [R::Element])| around(cut, *rows, *seam, passage, state);
                // Outside a pool there is nothing to share the work with.
                let parts: Result<Vec<_>> = match rayon::current_thread_index() {
                    Some(_) => seams.par_iter().zip(vectors.par_chunks_mut(room)).map(around).collect(),
                    None => seams.iter().zip(vectors.chunks_mut(room)).map(around).collect(),
                };
                for part in parts? {
                    *sum = weight.ring.fold(weight.ring.add(*sum, part));
                }
                Ok(())
            }
        }
    }

    fn finish<R: Ring>(&self, weight: &Weight<R>, state: &[R::Element]) -> R::Element {
        match &self.plan {
            Plan::Empty => weight.ring.one(),
            Plan::Closed { .. } => state[0],
            Plan::Open { half: Some(half), .. } => half.product(&weight.ring, state),
            Plan::Open { cut, .. } => {
                let powers = self.powers(weight, cut);
                cut.dot(state, state, self.passage(weight, powers.as_deref(), &Watch::default()))
            }
        }
    }
}

impl Square {
    /// The powers of the activity that states of this cut can have, unless all are one.
    fn powers<R: Ring>(&self, weight: &Weight<R>, cut: &Cut) -> Option<Vec<R::Element>> {
        (!weight.unit).then(|| weight.powers(cut.shape().width() + 1))
    }

    fn passage<'a, R: Ring>(
        &self,
        weight: &'a Weight<R>,
        powers: Option<&'a [R::Element]>,
        watch: &'a Watch,
    ) -> Passage<'a, R> {
        Passage { ring: &weight.ring, level: self.level, powers, watch }
    }
}

/// Vectors that the way around a closed direction needs: an odd number of rows has two unequal halves.
fn vectors(rows: u64) -> usize {
    1 + (rows % 2) as usize
}

/// The term of one seam, its whole orbit counted.
fn around<R: Ring>(
    cut: &Cut,
    rows: u64,
    seam: Seam,
    passage: Passage<R>,
    state: &mut [R::Element],
) -> Result<R::Element> {
    let ring = passage.ring;
    let (state, copy) = state.split_at_mut(cut.states());
    state.fill(ring.zero());
    state[seam.rank] = ring.one();
    let mut left = rows / 2;
    while left > 0 {
        cut.advance(state, passage, left > 1)?;
        left = left.saturating_sub(2);
        if left > 0 {
            cut.weigh(state, passage);
        }
    }
    let value = if rows.is_multiple_of(2) {
        cut.dot(state, state, passage)
    } else {
        copy.copy_from_slice(state);
        cut.weigh(state, passage);
        cut.advance(state, passage, false)?;
        cut.dot(state, copy, passage)
    };
    let value = passage.powers.map_or(value, |powers| ring.mul(value, powers[seam.word.count_ones() as usize]));
    Ok((0..seam.orbit).fold(ring.zero(), |sum, _| ring.fold(ring.add(sum, value))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::transfer::{Point, evaluate, evaluate_lanes};
    use crate::monitor::Silent;
    use crate::numeric::residue::primes;
    use crate::numeric::ring::Real;
    use crate::parallel;

    const BOUNDARIES: [Boundary; 3] = [Boundary::Free, Boundary::Cylinder, Boundary::Torus];

    fn points<const L: usize>(activity: u64) -> [Point; L] {
        let primes = primes(L).unwrap();
        std::array::from_fn(|i| Point { modulus: primes[i], activity })
    }

    fn residues<const L: usize>(engine: &Square, activity: u64) -> Vec<u64> {
        evaluate_lanes::<L>(engine, &points::<L>(activity), &Watch::default()).unwrap()
    }

    /// The number of sets of each size, over all subsets of the vertices.
    fn brute_force(rows: usize, cols: usize, boundary: Boundary) -> Vec<u64> {
        let mut conflicts = Vec::new();
        for (r, c) in (0..rows).flat_map(|r| (0..cols).map(move |c| (r, c))) {
            for (down, right) in [(1, 0), (0, 1)] {
                let (r2, c2) = (r + down, c + right);
                if (r2 < rows || boundary == Boundary::Torus) && (c2 < cols || boundary != Boundary::Free) {
                    conflicts.push(1u32 << (r * cols + c) | 1 << ((r2 % rows) * cols + c2 % cols));
                }
            }
        }
        let mut counts = vec![0; rows * cols + 1];
        for set in (0u32..1 << (rows * cols)).filter(|set| conflicts.iter().all(|pair| set & pair != *pair)) {
            counts[set.count_ones() as usize] += 1;
        }
        counts
    }

    #[test]
    fn small_lattices_agree_with_all_subsets_at_several_activities() {
        for boundary in [Boundary::Free, Boundary::Cylinder, Boundary::Torus] {
            for (rows, cols) in (1..=16).flat_map(|r| (1..=16 / r).map(move |c| (r, c))) {
                let counts = brute_force(rows, cols, boundary);
                let engine = Square::new(rows, cols, boundary).unwrap();
                let modulus = primes(1).unwrap()[0];
                let points = [0, 1, 2, 1 << 54].map(|activity| Point { modulus, activity });
                let expected = points.map(|p| {
                    let horner = |sum, &count: &u64| modulus.fold(modulus.mul(sum, p.activity) + count);
                    modulus.residue(counts.iter().rev().fold(0, horner))
                });
                let found = evaluate_lanes::<4>(&engine, &points, &Watch::default()).unwrap();
                assert_eq!(found, expected, "{rows} x {cols} {boundary:?}");
                let found: Vec<_> = points
                    .iter()
                    .flat_map(|p| evaluate_lanes::<1>(&engine, &[*p], &Watch::default()).unwrap())
                    .collect();
                assert_eq!(found, expected, "{rows} x {cols} {boundary:?}, one by one");
            }
        }
    }

    #[test]
    fn every_number_of_lanes_and_every_level_gives_the_same_residues() {
        for (rows, cols, boundary) in [
            (22, 23, Boundary::Free),
            (24, 22, Boundary::Free),
            (5, 23, Boundary::Cylinder),
            (22, 4, Boundary::Cylinder),
            (7, 8, Boundary::Torus),
        ] {
            for activity in [1, 3] {
                let engine = Square::new(rows, cols, boundary).unwrap();
                let expected = residues::<8>(&engine, activity);
                for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
                    let engine = engine.clone().with_level(level);
                    assert_eq!(residues::<8>(&engine, activity), expected, "{rows} x {cols}, {level:?}");
                    assert_eq!(residues::<4>(&engine, activity), expected[..4], "{rows} x {cols}, {level:?}");
                    assert_eq!(residues::<2>(&engine, activity), expected[..2], "{rows} x {cols}, {level:?}");
                }
                assert_eq!(residues::<1>(&engine, activity), expected[..1], "{rows} x {cols}");
            }
        }
    }

    #[test]
    fn any_number_of_threads_gives_the_same_residues_and_counts_all_the_work() {
        for (rows, cols, boundary) in
            [(24, 24, Boundary::Free), (23, 25, Boundary::Free), (6, 24, Boundary::Cylinder), (8, 9, Boundary::Torus)]
        {
            let engine = Square::new(rows, cols, boundary).unwrap();
            let expected = residues::<4>(&engine, 2);
            let total = (0..engine.steps()).map(|step| engine.work(step)).sum();
            for threads in 1..=3 {
                let mut done = 0;
                let found = parallel::run(threads, total, &mut Silent, |watch| {
                    let found = evaluate_lanes::<4>(&engine, &points::<4>(2), watch);
                    done = watch.done();
                    found
                });
                assert_eq!(found.unwrap(), expected, "{rows} x {cols}, {threads} threads");
                assert!(done * 10 > total * 9, "{rows} x {cols}: {done} of {total}");
            }
        }
    }

    #[test]
    fn a_cylinder_has_the_same_residues_around_and_along() {
        for (rows, cols) in (1..8).flat_map(|rows| (2..10).map(move |cols| (rows, cols))) {
            for activity in [1, 5] {
                let plans = [Plan::open(Shape::ring(cols), rows), Plan::closed(Shape::Path(rows), cols)];
                let [around, along] = plans.map(|plan| residues::<4>(&Square { plan, level: simd::level() }, activity));
                assert_eq!(around, along, "{rows} x {cols}");
            }
        }
    }

    #[test]
    fn transposed_lattices_have_the_same_residues() {
        for (rows, cols) in [(3, 50), (21, 22), (7, 12)] {
            let [one, other] = [(rows, cols), (cols, rows)].map(|(m, n)| Square::new(m, n, Boundary::Free).unwrap());
            assert_eq!(residues::<4>(&one, 7), residues::<4>(&other, 7));
        }
        for (rows, cols) in [(3, 12), (5, 8), (2, 9), (6, 7)] {
            let [one, other] = [Plan::closed(Shape::ring(rows), cols), Plan::closed(Shape::ring(cols), rows)]
                .map(|plan| residues::<4>(&Square { plan, level: simd::level() }, 7));
            assert_eq!(one, other, "{rows} x {cols}");
        }
    }

    #[test]
    fn real_numbers_are_within_their_proved_error() {
        for boundary in BOUNDARIES {
            for (rows, cols) in [(4, 4), (6, 7), (7, 6), (3, 13), (2, 21)] {
                for activity in [1u64, 2] {
                    let engine = Square::new(rows, cols, boundary).unwrap();
                    // Below the product of two primes near 2^55.
                    let primes = primes(2).unwrap();
                    let pairs = primes.iter().map(|p| p.value()).zip(residues::<2>(&engine, activity));
                    let exact = crate::numeric::residue::combine(&pairs.collect::<Vec<_>>()).unwrap();
                    let exact: f64 = exact.to_string().parse().unwrap();
                    let real = evaluate(&engine, &Weight::new(Real, activity as f64), &Watch::default()).unwrap();
                    let bound = (engine.roundings() + 1) as f64 * 2f64.powi(-53);
                    assert!((real / exact - 1.0).abs() <= bound, "{rows} x {cols} {boundary:?}: {real} {exact}");
                }
            }
        }
    }

    #[test]
    fn a_cancelled_watch_stops_every_plan() {
        for boundary in BOUNDARIES {
            let engine = Square::new(22, 22, boundary).unwrap();
            let watch = Watch::default();
            watch.cancel();
            let outcome = evaluate_lanes::<4>(&engine, &points::<4>(1), &watch);
            assert_eq!(outcome, Err(Error::Interrupted));
        }
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(matches!(Square::new(0, 3, Boundary::Free), Err(Error::Domain { name: "rows", .. })));
        assert!(matches!(Square::new(3, 0, Boundary::Torus), Err(Error::Domain { name: "cols", .. })));
        for boundary in BOUNDARIES {
            assert!(matches!(Square::new(99, 99, boundary), Err(Error::TooLarge { .. })));
            assert!(Square::new(3, 1_000_000, boundary).is_ok());
        }
        assert!(matches!(Square::new(usize::MAX, usize::MAX, Boundary::Torus), Err(Error::TooLarge { .. })));
    }
}
