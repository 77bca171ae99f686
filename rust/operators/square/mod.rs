//! Independent sets of the square lattice, m x n vertices, open or closed along either extent.
//!
//! A row is a path or a ring; its states are the independent sets of that row, the operator between rows is
//! T[v, w] = 1 exactly if v & w = 0, applied in place by the Fibonacci butterfly: the words over {0, 1} without 11 fall into
//! A (00...), B (01...) and C (10...), and with B_i = 0 beyond the end of B
//!
//!   C_i, A_i <- A_i + B_i, A_i + C_i,  then T_{k-1} on [A, B] and T_{k-2} on C.
//!
//! The driver is [`Strip`]; here are the fused forms of two rows, and the middle of an even number of open rows, whose product
//! (D u)^T T (D u) is taken in place (`middle`), so that one vector is enough.
//!
//! The files: `words` (states), `network` (the butterfly in registers), `program` (its passes over a block in the cache and
//! when to fold), `kernel` (the loops), `path` (any size, threads), `cut` (rings), `middle` (even numbers of rows).
//!
//! Source: N. Calkin, H. Wilf (1998), The number of independent sets in a grid graph, SIAM J. Discrete Math. 11.

mod cut;
pub mod kernel;
mod middle;
pub mod network;
mod path;
pub mod program;
pub mod words;

use super::Boundary;
use crate::error::COUNTLESS;
use crate::monitor::Progress;
use crate::numeric::ring::Ring;
use crate::strip::{Context, RowOperator, Rows, Strip, moves};
use crate::transfer::Weight;
use crate::{Error, Result};
use cut::{CutShape, RowCut};
use middle::HalfRow;
use path::{Passage, Path};
use std::ops::Range;

/// The longest cut whose seams are listed: 0.8 GB of words, and an effort of years.
pub const LONGEST_SEAM: usize = 36;

/// The square lattice.
pub type Square = Strip<SquareRow>;

impl Square {
    /// The lattice of `rows` by `cols` vertices with this boundary.
    ///
    /// # Errors
    /// [`Error::Domain`] for an extent of zero, [`Error::TooLarge`] if every cut has more than `2^40` states.
    pub fn new(rows: usize, cols: usize, boundary: Boundary) -> Result<Self> {
        Self::with_links((), rows, cols, boundary, usize::MAX, &Progress::default())
    }
}

/// The operator between two rows of the square lattice.
#[derive(Clone, Debug)]
pub struct SquareRow {
    cut: RowCut,
    /// HalfPath a row, where an even number of open rows meets.
    half: Option<HalfRow>,
}

fn shape(width: usize, ring: bool) -> CutShape {
    if ring { CutShape::ring(width) } else { CutShape::Path(width) }
}

fn longest(rows: Rows) -> usize {
    if matches!(rows, Rows::Open(_)) { words::LONGEST } else { LONGEST_SEAM }
}

/// The refusal of a row that is longer than those that are counted: open rows take a vector, closed ones a list of the words
/// that seams are chosen from, three words each.
pub fn too_wide(what: &'static str, width: usize, longest: usize, rows: Rows) -> Error {
    match rows {
        Rows::Open(_) => Error::TooLarge { what, needed: words::bytes(width), limit: words::bytes(longest) },
        Rows::Closed(_) => Error::TooLarge {
            what: "a list of the seams that rows are closed along",
            needed: words::bytes(width).saturating_mul(3).min(COUNTLESS),
            limit: 3 * words::bytes(longest),
        },
    }
}

impl RowOperator for SquareRow {
    type Links = ();

    /// Filling and reading the vector counts as two additions.
    fn forecast((): (), width: usize, ring: bool, rows: Rows) -> f64 {
        if width > longest(rows) {
            return f64::INFINITY;
        }
        let shape = shape(width, ring);
        let (additions, states) = (shape.additions() as f64, shape.states() as f64);
        match rows {
            Rows::Open(rows) => additions * (rows / 2) as f64 + 2.0 * states,
            Rows::Closed(rows) => {
                let seams = shape.states() / shape.symmetries() + 1;
                seams as f64 * (additions * rows.div_ceil(2) as f64 + 2.0 * states)
            }
        }
    }

    fn new((): (), width: usize, ring: bool, rows: Rows) -> Result<Self> {
        if width > longest(rows) {
            return Err(too_wide("the vector of partial sums", width, longest(rows), rows));
        }
        let cut = RowCut::new(shape(width, ring));
        let half = matches!(rows, Rows::Open(rows) if rows.is_multiple_of(2)).then(|| HalfRow::new(&cut));
        Ok(Self { cut, half })
    }

    fn width(&self) -> usize {
        self.cut.shape().width()
    }

    fn is_ring(&self) -> bool {
        self.cut.shape().symmetries() > 2
    }

    fn states(&self) -> usize {
        self.cut.states()
    }

    fn list(&self) -> Vec<(usize, u64)> {
        self.cut.list().into_iter().enumerate().collect()
    }

    fn cost(&self) -> u64 {
        self.cut.additions()
    }

    /// Along a row: one addition per symbol, four at the seam of a ring, the weight and the roundings of its power.
    fn bound(&self) -> u64 {
        2 * self.width() as u64 + 8
    }

    fn dot_bound(&self) -> u64 {
        self.cut.dot_roundings()
    }

    fn apply<R: Ring>(&self, context: Context<R>, x: &mut [R::Element]) -> Result<()> {
        self.advance(context, x, false)
    }

    fn advance<R: Ring>(&self, context: Context<R>, x: &mut [R::Element], twice: bool) -> Result<()> {
        let powers = self.powers(context.weight);
        self.cut.advance(x, passage(context, powers.as_deref()), twice)
    }

    fn weigh<R: Ring>(&self, context: Context<R>, x: &mut [R::Element]) {
        let powers = self.powers(context.weight);
        self.cut.weigh(x, passage(context, powers.as_deref()));
    }

    fn dot<R: Ring>(&self, context: Context<R>, x: &[R::Element], y: &[R::Element]) -> R::Element {
        let powers = self.powers(context.weight);
        self.cut.dot(x, y, passage(context, powers.as_deref()))
    }

    fn open_len(&self, _rows: u64) -> usize {
        self.states()
    }

    /// After half a row an element counts sets of the rows below and of a part of the next.
    fn open_halves(&self, _rows: u64) -> Option<Vec<Range<usize>>> {
        Some(std::iter::once(0..self.states()).collect())
    }

    fn open_steps(&self, rows: u64) -> u64 {
        self.sweeps(moves(rows)) + u64::from(self.half.is_some())
    }

    fn open_cost(&self, rows: u64, step: u64) -> u64 {
        let moves = moves(rows);
        match self.tiled() {
            _ if step >= self.sweeps(moves) => self.cost() / 2,
            Some(path) => path.sweep_additions(step > 0, step < moves, step.is_multiple_of(2)),
            None => self.cost() * (moves - 2 * step).min(2),
        }
    }

    fn open_bound(&self, rows: u64) -> u64 {
        let product = self.half.as_ref().map_or(self.dot_bound(), HalfRow::roundings);
        self.bound().saturating_mul(rows + 1).saturating_add(product)
    }

    /// A sweep over tiles or runs ends a row and begins the next; the last step takes half a row.
    fn open_step<R: Ring>(&self, context: Context<R>, rows: u64, step: u64, x: &mut [R::Element]) -> Result<()> {
        let powers = self.powers(context.weight);
        let passage = passage(context, powers.as_deref());
        let moves = moves(rows);
        match (self.tiled(), &self.half) {
            (_, Some(half)) if step == self.sweeps(moves) => {
                self.cut.weigh(x, passage);
                half.advance(x, passage)
            }
            (Some(path), _) if step == 0 => {
                self.cut.weigh(x, passage);
                path.tiles(x, passage, false, true)
            }
            (Some(path), _) if step.is_multiple_of(2) => path.tiles(x, passage, true, step < moves),
            (Some(path), _) => path.runs(x, passage, true, step < moves),
            (None, _) => {
                self.cut.weigh(x, passage);
                self.cut.advance(x, passage, 2 * step + 1 < moves)
            }
        }
    }

    fn open_finish<R: Ring>(&self, context: Context<R>, _rows: u64, x: &[R::Element]) -> R::Element {
        match &self.half {
            Some(half) => half.product(&context.weight.ring, x),
            None => self.dot(context, x, x),
        }
    }
}

impl SquareRow {
    /// The path, if its vector is larger than a block.
    fn tiled(&self) -> Option<&Path> {
        self.cut.as_path().filter(|path| !path.is_block())
    }

    /// Steps that so many moves take: a sweep each and one more, or two moves each.
    fn sweeps(&self, moves: u64) -> u64 {
        match self.tiled() {
            Some(_) if moves > 0 => moves + 1,
            _ => moves.div_ceil(2),
        }
    }

    /// The powers of the activity that states can have, unless all are one.
    fn powers<R: Ring>(&self, weight: &Weight<R>) -> Option<Vec<R::Element>> {
        (!weight.unit).then(|| weight.powers(self.width() + 1))
    }
}

fn passage<'a, R: Ring>(context: Context<'a, R>, powers: Option<&'a [R::Element]>) -> Passage<'a, R> {
    Passage { ring: &context.weight.ring, level: context.level, powers, progress: context.progress }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Silent;
    use crate::numeric::dispatch::Level;
    use crate::numeric::residue::primes;
    use crate::numeric::ring::{F64, Lanes};
    use crate::parallel;
    use crate::transfer::{Point, Transfer, TransferRing, evaluate, evaluate_lanes};

    const BOUNDARIES: [Boundary; 3] = [Boundary::Free, Boundary::Cylinder, Boundary::Torus];

    fn points<const L: usize>(activity: u64) -> [Point; L] {
        let primes = primes(L).unwrap();
        std::array::from_fn(|i| Point::new(primes[i], activity))
    }

    fn residues<const L: usize>(engine: &Square, activity: u64) -> Vec<u64>
    where
        Lanes<L>: TransferRing<Element = [u64; L]>,
    {
        evaluate_lanes::<L>(engine, &points::<L>(activity), &Progress::default()).unwrap()
    }

    fn along((width, ring, rows): (usize, bool, Rows)) -> Square {
        Square::along((), width, ring, rows, usize::MAX, &Progress::default()).unwrap()
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
                let points = [0, 1, 2, 1 << 54].map(|activity| Point::new(modulus, activity));
                let expected = points.map(|p| {
                    let horner = |sum, &count: &u64| modulus.fold(modulus.mul(sum, p.activity) + count);
                    modulus.residue(counts.iter().rev().fold(0, horner))
                });
                let found = evaluate_lanes::<4>(&engine, &points, &Progress::default()).unwrap();
                assert_eq!(found, expected, "{rows} x {cols} {boundary:?}");
                let found: Vec<_> = points
                    .iter()
                    .flat_map(|p| evaluate_lanes::<1>(&engine, &[*p], &Progress::default()).unwrap())
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
                let found = parallel::run(threads, total, &mut Silent, |progress| {
                    let found = evaluate_lanes::<4>(&engine, &points::<4>(2), progress);
                    done = progress.done();
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
                let ways = [(cols, true, Rows::Open(rows as u64)), (rows, false, Rows::Closed(cols as u64))];
                let [around, along] = ways.map(|way| residues::<4>(&along(way), activity));
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
            let [one, other] = [(rows, true, Rows::Closed(cols as u64)), (cols, true, Rows::Closed(rows as u64))]
                .map(|way| residues::<4>(&along(way), 7));
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
                    let pairs = primes.iter().map(|p| p.value()).zip(residues::<4>(&engine, activity));
                    let exact = crate::numeric::residue::combine(&pairs.collect::<Vec<_>>()).unwrap();
                    let exact: f64 = exact.to_string().parse().unwrap();
                    let real = evaluate(&engine, &Weight::new(F64, activity as f64), &Progress::default()).unwrap();
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
            let progress = Progress::default();
            progress.cancel();
            let outcome = evaluate_lanes::<4>(&engine, &points::<4>(1), &progress);
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
