//! The activity of the vertices: the powers by which the states of a complete row are weighed.
//!
//! With activity z the operator between rows is D T, D the diagonal matrix of z^(number of ones). A row r u_r = D T u_(r-1) stays
//! symmetric, and D acts on both sides alike: an element of the words p, q is weighed by z^(|p| + |q|), and by one z more where
//! the vertex in the middle is in the set. Where a row ends between the symbols S of two sides, that is one product an element;
//! where it ends between U and U, it is one for each side.
//!
//! With the superset sums S of `finish`, an even number of rows has Z = u' T u = sum over t of (-1)^|t| ((S u)(t))^2 for any
//! activity. An odd number 2a - 1 has Z = t' D t with t = T u_(a-1): the last row is not weighed, but its squares are.
//!
//! Source: derived here, see `docs/mathematics/counting.md`.

use super::super::square::words::list;
use super::Reflection;
use super::axis::Symmetric;
use crate::numeric::neighbors::{NeighborKernel, Neighbors, ShortPrime, TILE};

/// Numbers of ones that a row of eight words can be weighed for: no row is longer.
const MOST_ONES: usize = 1 + *super::WIDTHS.end();

/// The powers of an activity modulo a prime, for each matrix.
#[derive(Clone, Debug)]
pub struct ActivityPowers {
    /// z^0, z^1, ... up to all ones of a row and of a column of the start.
    pub powers: Vec<u64>,
    /// By matrix.
    pub halves: Vec<HalfWeights>,
}

/// The powers for the words of one matrix.
#[derive(Clone, Debug)]
pub struct HalfWeights {
    powers: Vec<u64>,
    middle: usize,
    /// For each side and run the powers of its words and eight zeros. A vertex in the middle counts for the rows.
    by_run: [Vec<Vec<u64>>; 2],
    /// Ones of the rests at each place, none where there is no word.
    rests: Vec<[u8; TILE]>,
}

impl ActivityPowers {
    /// Those of a residue below the prime; none for 1.
    pub fn new(reflection: &Reflection, prime: ShortPrime, activity: u64) -> Option<Self> {
        if activity == 1 {
            return None;
        }
        let modulus = prime.modulus();
        let product = |a: u64, b: u64| modulus.residue(modulus.mul(a, b));
        let most = reflection.width + reflection.start;
        let powers: Vec<u64> =
            std::iter::successors(Some(1), |&power| Some(product(power, activity))).take(most + 1).collect();
        let halves = reflection.halves.iter().map(|half| HalfWeights::new(half, &powers)).collect();
        Some(Self { powers, halves })
    }

    /// Words of all of them.
    pub fn len(reflection: &Reflection) -> usize {
        let words =
            |half: &Symmetric| half.axis.runs.iter().map(|run| run.parts[0] + run.parts[1] + TILE).sum::<usize>();
        2 * reflection.halves.iter().map(words).sum::<usize>()
    }
}

impl HalfWeights {
    fn new(half: &Symmetric, powers: &[u64]) -> Self {
        let (axis, middle) = (&half.axis, half.middle as usize);
        let words = list(axis.longest);
        let by_run = [middle, 0].map(|more| {
            let run = axis.runs.iter().map(|run| {
                let ones = words[..run.parts[0] + run.parts[1]].iter().map(|word| word.count_ones() + run.ones);
                ones.map(|ones| powers[ones as usize + more]).chain([0; TILE]).collect()
            });
            run.collect()
        });
        let rest = list(axis.longest - 1);
        let ones = |word: Option<&u64>| word.map_or(0, |word| word.count_ones() as u8);
        let rests = (0..axis.places[0]).map(|i| std::array::from_fn(|j| ones(rest.get(i * TILE + j)))).collect();
        Self { powers: powers.to_vec(), middle, by_run, rests }
    }

    /// The powers of the words of a run, for rows or for columns.
    #[inline(always)]
    pub fn run(&self, side: usize, run: usize) -> &[u64] {
        let powers = &self.by_run[side][run];
        &powers[..powers.len() - TILE]
    }

    /// The powers of eight words from one of a run on.
    #[inline(always)]
    pub fn beside(&self, side: usize, run: usize, at: usize) -> *const u64 {
        self.by_run[side][run][at..at + TILE].as_ptr()
    }

    /// The powers for the words at a place, by the number of ones in what else a state has.
    #[inline(always)]
    pub fn table(&self, place: usize) -> [[u64; TILE]; MOST_ONES] {
        let rest = self.rests[place];
        let power = |ones: usize| self.powers.get(ones).copied().unwrap_or(0);
        std::array::from_fn(|ones| rest.map(|more| power(ones + usize::from(more))))
    }

    /// The ones of each word at a place, with the vertex in the middle.
    #[inline(always)]
    pub fn ones(&self, place: usize) -> [usize; TILE] {
        self.rests[place].map(|ones| usize::from(ones) + self.middle)
    }
}

/// Words multiplied by a power, folded before and after.
pub struct Weighed<'a> {
    /// The words.
    pub words: &'a mut [u64],
    /// The power, below the prime.
    pub power: u64,
}

impl NeighborKernel for Weighed<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Neighbors>(self, a: A) {
        let power = a.splat(self.power);
        let mut chunks = self.words.chunks_exact_mut(TILE);
        // SAFETY: eight words each.
        unsafe {
            for chunk in &mut chunks {
                weigh(a, chunk.as_mut_ptr(), power);
            }
            let rest = chunks.into_remainder();
            let mut words = [0; TILE];
            words[..rest.len()].copy_from_slice(rest);
            weigh(a, words.as_mut_ptr(), power);
            rest.copy_from_slice(&words[..rest.len()]);
        }
    }
}

/// Multiplies eight words by as many, or by the same.
#[inline(always)]
unsafe fn weigh<A: Neighbors>(a: A, words: *mut u64, power: A::Register) {
    for i in (0..TILE).step_by(A::LANES) {
        // SAFETY: the caller's.
        unsafe { a.store(words.add(i), product(a, a.load(words.add(i)), power)) };
    }
}

/// The product of any words and of numbers below the prime, folded.
#[inline(always)]
pub fn product<A: Neighbors>(a: A, x: A::Register, power: A::Register) -> A::Register {
    a.reduce(a.multiply_add([a.zero(); 2], a.canonical(a.fold(x)), power))
}

/// Multiplies each of some groups of eight words by a power of its own.
///
/// # Safety
/// There are eight words for each power.
#[inline(always)]
pub unsafe fn weigh_each<A: Neighbors>(a: A, words: *mut u64, powers: &[u64]) {
    for (i, &power) in powers.iter().enumerate() {
        // SAFETY: the caller's.
        unsafe { weigh(a, words.add(i * TILE), a.splat(power)) };
    }
}
