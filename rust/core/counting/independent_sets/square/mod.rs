//! Independent sets of the square lattice, m x n vertices, open or closed along either extent.
//!
//! The cut is a row, a path or a ring; its states are the independent sets of that row, the operator between rows is
//! T[v, w] = 1 exactly if v & w = 0, applied in place by the Fibonacci butterfly (`butterfly`). With activity z the diagonal
//! D = z^(number of ones) acts once per row. Let u_r = T (D T)^(r-2) D 1 be the vector after r rows, row r without its weight.
//!
//!  - Open direction, h rows, met in the middle:  Z = u_a^T D u_a for h = 2a - 1,  Z = (D u_a)^T T (D u_a) for h = 2a.
//!  - Closed direction, h rows:  Z = trace((T D)^h) = sum over seam words s of z^|s| (p_s)^T D q_s with p_s, q_s the vectors
//!    (T D)^(a-1) T e_s after a = floor(h/2) and ceil(h/2) steps. One seam per orbit of the symmetries of the cut serves all.
//!
//! A closed extent of 1 is a loop: no vertex is ever occupied. A closed extent of 2 is a double edge, which counts as one.

mod butterfly;
mod cut;
mod words;

use super::Boundary;
use crate::counting::transfer::{Transfer, Weight};
use crate::monitor::Watch;
use crate::numeric::ring::Ring;
use crate::{Error, Result};
use cut::Cut;
use rayon::prelude::*;

/// The largest number of states of a cut.
const MOST_STATES: u128 = 1 << 40;
/// Seams are worked on in batches of about so many elements.
const BATCH: usize = 1 << 16;

/// The square lattice of `rows` by `cols` vertices.
#[derive(Clone, Debug)]
pub struct Square {
    plan: Plan,
}

/// How the count goes about.
#[derive(Clone, Debug)]
enum Plan {
    /// Loops everywhere: only the empty set.
    Empty,
    /// Rows from an open end to the middle.
    Open { cut: Cut, rows: u64 },
    /// Rows around, once per seam.
    Closed { cut: Cut, rows: u64, seams: Vec<Seam>, batch: usize },
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
        let plan = match boundary {
            Boundary::Free => Plan::open(Cut::Path(within(small, words::LONGEST)?), large),
            Boundary::Cylinder if cols == 1 => Plan::Empty,
            Boundary::Torus if small == 1 => Plan::Empty,
            Boundary::Cylinder => cheaper(
                within(cols, words::LONGEST).map(|cols| Plan::open(Cut::ring(cols), rows)),
                within(rows, LONGEST_SEAM).map(|rows| Plan::closed(Cut::Path(rows), cols)),
            )?,
            Boundary::Torus => cheaper(
                within(cols, LONGEST_SEAM).map(|cols| Plan::closed(Cut::ring(cols), rows)),
                within(rows, LONGEST_SEAM).map(|rows| Plan::closed(Cut::ring(rows), cols)),
            )?,
        };
        Ok(Self { plan })
    }
}

/// The longest cut whose seams are listed.
const LONGEST_SEAM: usize = 30;

/// A length of a cut, if it is short enough.
fn within(length: usize, longest: usize) -> Result<usize> {
    match length <= longest {
        true => Ok(length),
        false => Err(Error::TooLarge { what: "the square lattice", needed: u128::MAX, limit: MOST_STATES * 8 }),
    }
}

/// The plan with less work, if any is possible.
fn cheaper(one: Result<Plan>, other: Result<Plan>) -> Result<Plan> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok(if other.work() < one.work() { other } else { one }),
        (one, other) => one.or(other),
    }
}

impl Plan {
    fn open(cut: Cut, rows: usize) -> Self {
        Self::Open { cut, rows: rows as u64 }
    }

    fn closed(cut: Cut, rows: usize) -> Self {
        let seams = seams(cut);
        let batch = (BATCH / cut.states()).clamp(1, seams.len());
        Self::Closed { cut, rows: rows as u64, seams, batch }
    }

    /// All the additions there are to do.
    fn work(&self) -> u128 {
        match self {
            Self::Empty => 0,
            Self::Open { cut, rows } => u128::from(cut.additions()) * u128::from(rows / 2),
            Self::Closed { cut, rows, seams, .. } => {
                u128::from(cut.additions()) * u128::from(rows.div_ceil(2)) * seams.len() as u128
            }
        }
    }
}

/// The states of a cut up to its symmetries, with the sizes of their orbits.
fn seams(cut: Cut) -> Vec<Seam> {
    let width = cut.width();
    let mask = (1u64 << width) - 1;
    let images = |word: u64| {
        let reversed = word.reverse_bits() >> (64 - width);
        let turns = if matches!(cut, Cut::Ring(_)) { width } else { 1 };
        (0..turns).flat_map(move |i| [word, reversed].map(|w| (w << i | w >> (width - i)) & mask))
    };
    let orbit = |(rank, word): (usize, u64)| {
        let mut least = images(word).all(|image| word <= image).then(|| images(word).collect::<Vec<_>>())?;
        least.sort_unstable();
        least.dedup();
        Some(Seam { word, rank, orbit: least.len() as u64 })
    };
    cut.list().into_iter().enumerate().filter_map(orbit).collect()
}

impl Transfer for Square {
    fn len(&self) -> usize {
        match &self.plan {
            Plan::Empty => 1,
            Plan::Open { cut, rows } => cut.states() * if rows.is_multiple_of(2) { 2 } else { 1 },
            Plan::Closed { cut, rows, batch, .. } => 1 + batch * vectors(*rows) * cut.states(),
        }
    }

    fn steps(&self) -> u64 {
        match &self.plan {
            Plan::Empty => 0,
            Plan::Open { rows, .. } => rows / 2,
            Plan::Closed { seams, batch, .. } => seams.len().div_ceil(*batch) as u64,
        }
    }

    fn work(&self, step: u64) -> u64 {
        match &self.plan {
            Plan::Empty => 0,
            Plan::Open { cut, .. } => cut.additions(),
            Plan::Closed { cut, rows, seams, batch } => {
                let count = seams.chunks(*batch).nth(step as usize).map_or(0, <[_]>::len) as u64;
                cut.additions() * rows.div_ceil(2) * count
            }
        }
    }

    fn roundings(&self) -> u64 {
        let row = |cut: &Cut| 2 * cut.width() as u64 + 8;
        match &self.plan {
            Plan::Empty => 0,
            Plan::Open { cut, rows } => row(cut) * rows + cut.states() as u64 + 2,
            Plan::Closed { cut, rows, seams, .. } => row(cut) * rows + cut.states() as u64 + 64 + seams.len() as u64,
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
            Plan::Empty => {}
            Plan::Open { cut, rows } => {
                let (state, copy) = state.split_at_mut(cut.states());
                if !weight.unit {
                    cut.weigh(&weight.ring, &weight.powers(cut.width()), state);
                }
                if rows % 2 == 0 && step + 1 == self.steps() {
                    copy.copy_from_slice(state);
                }
                cut.apply(&weight.ring, state);
            }
            Plan::Closed { cut, rows, seams, batch } => {
                let (sum, vectors) = state.split_first_mut().expect("the vector starts with the sum");
                let seams = seams.chunks(*batch).nth(step as usize).unwrap_or_default();
                let powers = weight.powers(cut.width());
                let room = self::vectors(*rows) * cut.states();
                let around =
                    |(seam, state): (&Seam, &mut [R::Element])| around(*cut, *rows, *seam, weight, &powers, state);
                // Outside a pool there is nothing to share the work with.
                let parts: Vec<_> = match rayon::current_thread_index() {
                    Some(_) => seams.par_iter().zip(vectors.par_chunks_mut(room)).map(around).collect(),
                    None => seams.iter().zip(vectors.chunks_mut(room)).map(around).collect(),
                };
                for part in parts {
                    *sum = weight.ring.fold(weight.ring.add(*sum, part));
                }
            }
        }
        watch.advance(self.work(step))
    }

    fn finish<R: Ring>(&self, weight: &Weight<R>, state: &[R::Element]) -> R::Element {
        match &self.plan {
            Plan::Empty => weight.ring.one(),
            Plan::Closed { .. } => state[0],
            Plan::Open { cut, rows } if rows % 2 == 0 => {
                let (state, copy) = state.split_at(cut.states());
                dot(&weight.ring, state, copy)
            }
            Plan::Open { cut, .. } => weighted_dot(*cut, weight, state, state),
        }
    }
}

/// Vectors that the way around a closed direction needs: an odd number of rows has two unequal halves.
fn vectors(rows: u64) -> usize {
    1 + (rows % 2) as usize
}

/// The term of one seam, its whole orbit counted.
fn around<R: Ring>(
    cut: Cut,
    rows: u64,
    seam: Seam,
    weight: &Weight<R>,
    powers: &[R::Element],
    state: &mut [R::Element],
) -> R::Element {
    let ring = &weight.ring;
    let (state, copy) = state.split_at_mut(cut.states());
    state.fill(ring.zero());
    state[seam.rank] = ring.one();
    cut.apply(ring, state);
    let next = |state: &mut [R::Element]| {
        if !weight.unit {
            cut.weigh(ring, powers, state);
        }
        cut.apply(ring, state);
    };
    for _ in 1..rows / 2 {
        next(state);
    }
    let value = if rows.is_multiple_of(2) {
        weighted_dot(cut, weight, state, state)
    } else {
        copy.copy_from_slice(state);
        next(state);
        weighted_dot(cut, weight, state, copy)
    };
    let value = ring.mul(value, powers[seam.word.count_ones() as usize]);
    times(ring, value, seam.orbit)
}

/// The sum of products.
fn dot<R: Ring>(ring: &R, left: &[R::Element], right: &[R::Element]) -> R::Element {
    left.iter().zip(right).fold(ring.zero(), |sum, (&x, &y)| ring.fold(ring.add(sum, ring.mul(x, y))))
}

/// The sum of products, each times the weight of its state.
fn weighted_dot<R: Ring>(cut: Cut, weight: &Weight<R>, left: &[R::Element], right: &[R::Element]) -> R::Element {
    if weight.unit {
        return dot(&weight.ring, left, right);
    }
    let mut weighted = left.to_vec();
    cut.weigh(&weight.ring, &weight.powers(cut.width()), &mut weighted);
    dot(&weight.ring, &weighted, right)
}

/// The element added to itself, `count` times in all.
fn times<R: Ring>(ring: &R, x: R::Element, count: u64) -> R::Element {
    (0..count).fold(ring.zero(), |sum, _| ring.fold(ring.add(sum, x)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::transfer::{Point, evaluate_lanes};
    use crate::numeric::residue::{combine, primes};
    use num_bigint::BigUint;
    use std::str::FromStr;

    fn count(rows: usize, cols: usize, boundary: Boundary) -> BigUint {
        let engine = Square::new(rows, cols, boundary).unwrap();
        let moduli = primes(rows * cols / 54 + 2).unwrap();
        let residues = moduli.chunks(4).flat_map(|group| {
            let points: Vec<_> = group.iter().map(|&modulus| Point { modulus, activity: 1 }).collect();
            evaluate_lanes::<4>(&engine, &points, &Watch::default()).unwrap()
        });
        combine(&moduli.iter().map(|m| m.value()).zip(residues).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn squares_have_the_published_counts() {
        for (n, expected) in [
            (1, "2"),
            (2, "7"),
            (3, "63"),
            (4, "1234"),
            (5, "55447"),
            (6, "5598861"),
            (7, "1280128950"),
            (8, "660647962955"),
            (14, "338752110195939290445247645371206783"),
            (19, "105105055066577962012604229608317915229737651637019975757755051314"),
        ] {
            assert_eq!(count(n, n, Boundary::Free), BigUint::from_str(expected).unwrap(), "{n}");
        }
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
    fn tori_have_the_published_counts() {
        for (n, expected) in [(1, 1u32), (2, 7), (3, 34), (4, 743), (5, 25531), (6, 2_406_862)] {
            assert_eq!(count(n, n, Boundary::Torus), BigUint::from(expected), "{n}");
        }
        assert_eq!(count(2, 5, Boundary::Torus), BigUint::from(81u32));
        assert_eq!(count(5, 2, Boundary::Torus), BigUint::from(81u32));
    }
}
