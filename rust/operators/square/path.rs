//! T_k on a vector of any size, two rows in little more than two sweeps over memory.
//!
//! A vector beyond the cache is cut into words p s of L and m symbols. The first L symbols are consumed in *tiles*: a few
//! neighboring s, all p, gathered into a block; the others in *runs*: one p, all s, as they lie. With S the operator of the
//! tiles and U that of the runs, T = U S = S' U' as T is symmetric, so rows go in pairs: S, then U' U, then S S', then U' U, ...
//! where each product is done while its block is in the cache: one sweep over memory per row.
//!
//! A tile of s that begin with 0 has all p, and is open: its last symbol is decided together with the next. A tile of s that
//! begin with 1 has the p that end in 0, which are as many as the words of L - 1 symbols, and is closed.
//!
//! Source: derived here; T is that of [`super`].

use super::kernel::{Order, PathBlock};
use super::network::LONGEST;
use super::program::{Course, Courses, Ending, STRIDE};
use super::words::{count, list, words};
use crate::Result;
use crate::monitor::Progress;
use crate::numeric::buffer::Buffer;
use crate::numeric::dispatch::Level;
use crate::numeric::ring::Ring;
use crate::parallel::{self, Shared};
use std::ops::Range;
use std::sync::OnceLock;

/// The longest words whose vector is worked on as one block: 196,418 elements, 12.6 MB with eight lanes. Its passes go depth first, so
/// that few leave the nearest caches: a torus of 24 x 24 takes .8 of the time of tiles.
const BLOCK: usize = 25;
/// Bytes of a tile.
const TILE: usize = 1 << 19;
/// Bytes of neighboring elements in a tile, at least and at most.
const SPAN: Range<usize> = 64..4096;

/// What happens between two rows, and with what.
#[derive(Clone, Copy)]
pub struct Passage<'a, R: Ring> {
    /// The ring.
    pub ring: &'a R,
    /// The vector instructions to use.
    pub level: Level,
    /// The powers of the activity, from that of the occupied vertices outside the path on; none for activity one.
    pub powers: Option<&'a [R::Element]>,
    /// Who watches.
    pub progress: &'a Progress,
}

impl<R: Ring> Passage<'_, R> {
    /// The same with one more occupied vertex outside the path.
    pub fn occupied(self) -> Self {
        Self { powers: self.powers.map(|powers| &powers[1..]), ..self }
    }
}

/// The words of one length, and how their vector is cut.
#[derive(Clone, Debug)]
pub struct Path {
    length: usize,
    runs: Vec<PathRun>,
    /// The ones in the words of a run, which are the first of the words of the longest.
    ones: Vec<u8>,
    tiles: Option<Tiles>,
    /// By the order of the networks.
    programs: Vec<OnceLock<Vec<Courses>>>,
}

/// Words with the same beginning.
#[derive(Clone, Copy, Debug)]
struct PathRun {
    at: usize,
    length: usize,
    ones: usize,
}

/// The first `length` symbols of words with `rest` more, and whether all of them are decided before the others.
#[derive(Clone, Debug)]
pub struct Tiles {
    length: usize,
    rest: usize,
    decided: bool,
    open: Beginnings,
    closed: Beginnings,
    /// By the order of the networks.
    programs: Vec<OnceLock<[Courses; 2]>>,
}

/// Where the words with each beginning start, and the ones in it.
#[derive(Clone, Debug)]
struct Beginnings {
    offsets: Vec<usize>,
    ones: Vec<u8>,
}

impl Path {
    /// The words of this length.
    pub fn new(length: usize) -> Self {
        Self::cut(length, BLOCK)
    }

    /// The words of this length, where words up to `block` are worked on as one.
    fn cut(length: usize, block: usize) -> Self {
        // Up to twice the length of a block, runs are blocks; beyond, tiles and runs share what is too long for both.
        let beginning = if length <= block { 0 } else { (length - block + 1).min(length / 2) };
        let mut runs = Vec::new();
        let longest = length + 1 - beginning.max(1);
        collect_runs(PathRun { at: 0, length, ones: 0 }, longest, &mut runs);
        let tiles = (beginning > 0).then(|| Tiles::new(length, beginning, false));
        Self { length, runs, ones: ones(longest), tiles, programs: vec![OnceLock::new(); LONGEST + 1] }
    }

    /// Whether the vector is one block.
    pub fn is_block(&self) -> bool {
        self.tiles.is_none()
    }

    /// The number of words.
    pub fn states(&self) -> usize {
        words(self.length)
    }

    /// Symbols of a word.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Additions of a sweep over the tiles or the runs.
    pub fn sweep_additions(&self, ends: bool, begins: bool, tiles: bool) -> u64 {
        let runs: u64 = self.runs.iter().map(|run| additions(run.length)).sum();
        let one = if tiles { additions(self.length) - runs } else { runs };
        one * (u64::from(ends) + u64::from(begins))
    }

    /// Applies T once, or T D T.
    pub fn advance<R: Ring>(&self, state: &mut [R::Element], passage: Passage<R>, twice: bool) -> Result<()> {
        self.tiles(state, passage, false, true)?;
        self.runs(state, passage, true, twice)?;
        if twice { self.tiles(state, passage, true, false) } else { Ok(()) }
    }

    /// One sweep over the tiles: ends a row or begins one; in between, it multiplies by the weights.
    pub fn tiles<R: Ring>(
        &self,
        state: &mut [R::Element],
        passage: Passage<R>,
        ends: bool,
        begins: bool,
    ) -> Result<()> {
        self.tiles.as_ref().map_or(Ok(()), |tiles| tiles.sweep(state, passage, ends, begins))
    }

    /// One sweep over the runs: ends a row or begins one; in between, it multiplies by the weights.
    pub fn runs<R: Ring>(&self, state: &mut [R::Element], passage: Passage<R>, ends: bool, begins: bool) -> Result<()> {
        let order = passage.ring.dispatch(passage.level, Order);
        let shortest = self.runs.iter().map(|run| run.length).min().unwrap_or(0);
        let programs = self.programs[order].get_or_init(|| {
            (shortest..=shortest + 1).map(|length| Courses::new(length, order, STRIDE, Ending::Whole)).collect()
        });
        let state = Shared::new(state);
        parallel::tiles(
            self.runs.len(),
            1,
            || Ok(()),
            |(), i| {
                let run = self.runs[i];
                // SAFETY: runs are disjoint, and each is worked on once.
                let items = unsafe { state.part(run.at, words(run.length)) }.as_mut_ptr();
                let courses = &programs[run.length - shortest];
                let go = |course| {
                    // SAFETY: the program is for words of the length of this run, and nobody borrows its elements meanwhile.
                    let block = unsafe { PathBlock::new(courses.course(course), items, 1, items, &[]) };
                    passage.ring.dispatch(passage.level, block);
                };
                // Towards the end of a row the last symbols come last; the next row goes the opposite way.
                match passage.powers {
                    None if ends && begins => go(Course::Both),
                    powers => {
                        if ends {
                            go(Course::Down);
                        }
                        if let (true, true, Some(powers)) = (ends, begins, powers) {
                            // SAFETY: the elements of the run, between two programs.
                            let block = unsafe { std::slice::from_raw_parts_mut(items, words(run.length)) };
                            self.weigh_run(passage.ring, powers, run, block);
                        }
                        if begins {
                            go(Course::Up);
                        }
                    }
                }
                passage.progress.advance(additions(run.length) * (u64::from(ends) + u64::from(begins)))
            },
        )
    }

    /// Multiplies each element by the weight of its word.
    pub fn weigh<R: Ring>(&self, state: &mut [R::Element], passage: Passage<R>) {
        let Some(powers) = passage.powers else { return };
        let state = Shared::new(state);
        let done: Result<()> = parallel::tiles(
            self.runs.len(),
            1,
            || Ok(()),
            |(), i| {
                let run = self.runs[i];
                // SAFETY: runs are disjoint, and each is worked on once.
                let block = unsafe { state.part(run.at, words(run.length)) };
                self.weigh_run(passage.ring, powers, run, block);
                Ok(())
            },
        );
        debug_assert!(done.is_ok());
    }

    fn weigh_run<R: Ring>(&self, ring: &R, powers: &[R::Element], run: PathRun, block: &mut [R::Element]) {
        for (x, ones) in block.iter_mut().zip(&self.ones) {
            *x = ring.mul(*x, powers[run.ones + usize::from(*ones)]);
        }
    }

    /// The sum of products, each times the weight of its word.
    pub fn dot<R: Ring>(&self, left: &[R::Element], right: &[R::Element], passage: Passage<R>) -> R::Element {
        let ring = passage.ring;
        parallel::reduce(ring, self.runs.len(), |i| {
            let run = self.runs[i];
            let range = run.at..run.at + words(run.length);
            let pairs = left[range.clone()].iter().zip(&right[range]);
            match passage.powers {
                None => ring.dot(pairs.map(|(&x, &y)| (x, y))),
                Some(powers) => {
                    let weight = |ones: u8| powers[run.ones + usize::from(ones)];
                    ring.dot(pairs.zip(&self.ones).map(|((&x, &y), &ones)| (ring.mul(x, weight(ones)), y)))
                }
            }
        })
    }

    /// Most roundings in the sum of products.
    pub fn dot_roundings(&self) -> u64 {
        (self.ones.len() + self.runs.len() + 2) as u64
    }
}

/// The number of ones in each word of this length.
fn ones(length: usize) -> Vec<u8> {
    list(length).into_iter().map(|word| word.count_ones() as u8).collect()
}

/// The parts that a run is cut into, none longer than `longest`.
fn collect_runs(run: PathRun, longest: usize, list: &mut Vec<PathRun>) {
    let PathRun { at, length, ones } = run;
    if length <= longest {
        return list.push(run);
    }
    collect_runs(PathRun { at, length: length - 1, ones }, longest, list);
    collect_runs(PathRun { at: at + words(length - 1), length: length - 2, ones: ones + 1 }, longest, list);
}

impl Tiles {
    /// The first `beginning` symbols of words of this length.
    pub fn new(length: usize, beginning: usize, decided: bool) -> Self {
        let rest = length - beginning;
        let beginnings = |symbols, rest| {
            let mut offsets = vec![0; words(symbols)];
            for j in 1..=symbols {
                let first = words(j - 1);
                for i in first..words(j) {
                    offsets[i] = offsets[i - first] + words(rest + j - 1);
                }
            }
            Beginnings { offsets, ones: ones(symbols) }
        };
        let open = beginnings(beginning, rest);
        let closed = beginnings(beginning - 1, rest + 1);
        Self { length: beginning, rest, decided, open, closed, programs: vec![OnceLock::new(); LONGEST + 1] }
    }

    /// Where the words start whose first symbols have this rank.
    pub fn offset(&self, rank: usize) -> usize {
        self.open.offsets[rank]
    }

    /// Gathers each tile, ends a row or begins one, in between multiplies by the weights, and puts the tile back.
    pub fn sweep<R: Ring>(
        &self,
        state: &mut [R::Element],
        passage: Passage<R>,
        ends: bool,
        begins: bool,
    ) -> Result<()> {
        assert!(words(self.length + self.rest) <= state.len(), "a vector shorter than its words");
        let order = passage.ring.dispatch(passage.level, Order);
        let programs = self.programs[order].get_or_init(|| {
            let ending = if self.decided { Ending::Closed } else { Ending::Open };
            [(self.length, ending), (self.length - 1, Ending::Closed)]
                .map(|(length, ending)| Courses::new(length, order, STRIDE, ending))
        });
        let ones = passage.powers.map_or_else(Vec::new, |_| ones(self.rest));
        let size = size_of::<R::Element>();
        let width = (TILE / (words(self.length) * size)).clamp(SPAN.start.div_ceil(size), SPAN.end / size);
        let (zeros, all) = (count(self.rest as isize - 1), words(self.rest));
        let opens = zeros.div_ceil(width);
        let tiles = opens + (all - zeros).div_ceil(width);
        let state = Shared::new(state);
        parallel::tiles(
            tiles,
            1,
            || Buffer::zeroed(words(self.length) * width),
            |block, i| {
                let (beginnings, courses, at, end) = if i < opens {
                    (&self.open, &programs[0], i * width, zeros)
                } else {
                    (&self.closed, &programs[1], zeros + (i - opens) * width, all)
                };
                let width = width.min(end - at);
                let items: *mut R::Element = block.as_mut_ptr();
                let go = |course| {
                    // SAFETY: the program is for words of the length of the beginnings, of which the block has one item each;
                    // outside, `width` elements follow each offset.
                    let block = unsafe {
                        PathBlock::new(courses.course(course), items, width, state.at(at), &beginnings.offsets)
                    };
                    passage.ring.dispatch(passage.level, block);
                };
                let copy = |outwards: bool| {
                    for (r, offset) in beginnings.offsets.iter().enumerate() {
                        // SAFETY: the words of this tile lie in the vector, and no other tile has them.
                        unsafe {
                            let (inside, outside) = (items.add(r * width), state.at(at + offset));
                            let (from, to) = if outwards { (inside, outside) } else { (outside, inside) };
                            std::ptr::copy_nonoverlapping(from, to, width);
                        }
                    }
                };
                match passage.powers {
                    None if ends && begins => go(Course::Both),
                    powers => {
                        if ends {
                            go(Course::Up)
                        } else {
                            copy(false)
                        }
                        if let (true, true, Some(powers)) = (ends, begins, powers) {
                            // SAFETY: the items of the block, between two programs: by their own pointer, which is used again.
                            let block = unsafe { std::slice::from_raw_parts_mut(items, beginnings.ones.len() * width) };
                            for (block, outer) in block.chunks_exact_mut(width).zip(&beginnings.ones) {
                                for (x, inner) in block.iter_mut().zip(&ones[at..]) {
                                    *x = passage.ring.mul(*x, powers[usize::from(outer + inner)]);
                                }
                            }
                        }
                        if begins { go(Course::Down) } else { copy(true) }
                    }
                }
                let column = if i < opens && !self.decided {
                    additions_open(self.length)
                } else {
                    additions(self.length - usize::from(i >= opens))
                };
                passage.progress.advance(width as u64 * column * (u64::from(ends) + u64::from(begins)))
            },
        )
    }
}

/// The additions of one application of T_k.
pub fn additions(k: usize) -> u64 {
    tally(k, u64::from(k > 0))
}

/// The same without those of the last symbol.
fn additions_open(k: usize) -> u64 {
    tally(k, 0)
}

fn tally(k: usize, one: u64) -> u64 {
    let (mut last, mut this) = (0, one);
    for k in 2..=k as isize {
        (last, this) = (this, this + last + (count(k - 2) + count(k - 3)) as u64);
    }
    this
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::residue::primes;
    use crate::numeric::ring::Lanes;
    use proptest::prelude::*;

    type Four = Lanes<4>;

    fn ring() -> Four {
        let primes = primes(4).unwrap();
        Lanes::new(std::array::from_fn(|i| primes[i]))
    }

    /// T by its definition.
    fn by_definition(ring: &Four, length: usize, state: &[[u64; 4]]) -> Vec<[u64; 4]> {
        let list = list(length);
        let sum = |v: &u64| {
            let seen = list.iter().zip(state).filter(|(w, _)| v & **w == 0);
            seen.fold([0; 4], |sum, (_, x)| ring.fold(ring.add(sum, *x)))
        };
        list.iter().map(sum).collect()
    }

    fn residues(ring: &Four, state: &[[u64; 4]]) -> Vec<[u64; 4]> {
        state.iter().map(|x| std::array::from_fn(|i| ring.moduli()[i].residue(x[i]))).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn one_and_two_rows_are_the_operator_however_the_vector_is_cut(
            length in 0usize..14, block in 4usize..16, seed: u64, level in 0usize..3, weighted: bool, threads in 1usize..4,
        ) {
            let ring = ring();
            let level = [Level::Baseline, Level::Avx2, Level::Avx512][level];
            let path = Path::cut(length, block);
            let mut word = seed;
            let mut next = || { word = word.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407); word };
            let start: Vec<[u64; 4]> = (0..words(length)).map(|_| ring.fold(std::array::from_fn(|_| next()))).collect();
            let powers: Vec<_> = (0..=length).map(|i| ring.fold([seed.wrapping_mul(i as u64 + 1); 4])).collect();
            let weigh = |state: &mut Vec<[u64; 4]>| if weighted {
                for (x, w) in state.iter_mut().zip(list(length)) {
                    *x = ring.mul(*x, powers[w.count_ones() as usize]);
                }
            };
            let once = by_definition(&ring, length, &start);
            let mut between = once.clone();
            weigh(&mut between);
            let twice = by_definition(&ring, length, &between);
            for (rows, expected) in [(1, once), (2, twice)] {
                let mut state = Buffer::zeroed(start.len()).unwrap();
                state.copy_from_slice(&start);
                parallel::run(threads, 0, &mut crate::monitor::Silent, |progress| {
                    let powers = weighted.then_some(&powers[..]);
                    path.advance(&mut state, Passage { ring: &ring, level, powers, progress }, rows == 2)
                }).unwrap();
                prop_assert_eq!(residues(&ring, &state), residues(&ring, &expected));
            }
        }
    }

    #[test]
    fn a_vector_shorter_than_its_words_is_refused_and_nothing_behind_it_is_touched() {
        let ring = ring();
        let powers: Vec<_> = (0..=11).map(|i| ring.fold([i + 2; 4])).collect();
        for (block, weighted, ends) in
            [4, 16].into_iter().flat_map(|b| [(b, false, true), (b, true, true), (b, true, false)])
        {
            let path = Path::cut(11, block);
            let whole: Vec<[u64; 4]> = (1..=path.states() as u64).map(|x| [x; 4]).collect();
            let mut state = whole.clone();
            let (short, behind) = state.split_at_mut(path.states() - 1);
            let progress = Progress::default();
            let passage = Passage {
                ring: &ring,
                level: Level::Baseline,
                powers: weighted.then_some(&powers[..]),
                progress: &progress,
            };
            let work = std::panic::AssertUnwindSafe(|| match ends {
                true => path.advance(short, passage, true).is_ok(),
                false => {
                    path.weigh(short, passage);
                    true
                }
            });
            assert!(std::panic::catch_unwind(work).is_err());
            assert_eq!(behind, &whole[path.states() - 1..]);
        }
    }

    #[test]
    fn additions_are_counted_as_they_are_done() {
        assert_eq!((0..7).map(additions).collect::<Vec<_>>(), [0, 1, 3, 7, 15, 30, 58]);
        let path = Path::cut(30, 12);
        let total = path.sweep_additions(true, false, false) + path.sweep_additions(false, true, true);
        assert_eq!(total, additions(30));
    }
}
