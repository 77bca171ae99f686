//! Where the words of half a row are in a symmetric matrix: runs, and blocks of 8 x 8 tiles.
//!
//! A half row is read from the middle outwards. Its words over k symbols are cut after L symbols: a *run* is the words w s
//! with a prefix w of L - 1 symbols and a rest s whose first symbol is 0 (its A part) or 1 (its B part, where w does not end
//! in 1). Both parts are padded to whole tiles. A *segment* is the words with the same prefix of L symbols: the A or the B part
//! of a run without that symbol. All A parts have as many words, and so have all B parts, of which those are as many as the
//! words of an A part that begin with 0: place i of every segment has the same rest.
//!
//! Of a symmetric matrix over an axis the blocks (a, b) of runs a <= b are stored, row by row of tiles; blocks (a, a) in full.
//!
//! Source: derived here, see `docs/mathematics/counting.md`.

use super::super::square::words::{count, list, words};
use crate::numeric::neighbors::{TILE, TILE_WORDS};

/// The words with one prefix.
#[derive(Clone, Copy, Debug)]
pub struct PrefixSegment {
    /// The run it is in.
    pub run: usize,
    /// Its first tile in the run.
    pub tile: usize,
    /// Whether its prefix ends in 1.
    pub odd: bool,
    /// Whether its words begin with 1.
    pub first: bool,
    /// Ones in the prefix.
    pub ones: u32,
}

/// The words with one prefix without its last symbol.
#[derive(Clone, Copy, Debug)]
pub struct WordRun {
    /// Symbols from that on.
    pub length: usize,
    /// The rank of its first word.
    pub start: usize,
    /// Words of its A part, and of its B part.
    pub parts: [usize; 2],
    /// Whether its words begin with 1.
    pub first: bool,
    /// Ones in the prefix.
    pub ones: u32,
}

impl WordRun {
    /// Tiles of both parts.
    pub fn tiles(&self) -> usize {
        self.parts.map(|words| words.div_ceil(TILE)).iter().sum()
    }

    /// The first word of a tile, and the number of its words.
    pub fn tile(&self, tile: usize) -> (usize, usize) {
        let [zeros, ones] = self.parts;
        let padded = zeros.div_ceil(TILE);
        if tile < padded {
            (tile * TILE, TILE.min(zeros - tile * TILE))
        } else {
            let at = (tile - padded) * TILE;
            (zeros + at, TILE.min(ones - at))
        }
    }
}

/// The words of half a row.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Symbols of a prefix.
    pub beginning: usize,
    /// Segments in the order of their prefixes.
    pub segments: Vec<PrefixSegment>,
    /// All of them, and those whose prefixes end in 0.
    chosen: [Vec<usize>; 2],
    /// The runs.
    pub runs: Vec<WordRun>,
    /// Tiles of an A part, and of a B part.
    pub places: [usize; 2],
    /// Words in the last tile of a B part.
    pub last: usize,
    /// Symbols of the longest run.
    pub longest: usize,
}

impl Axis {
    /// The words of `length` symbols with prefixes of `beginning >= 1` symbols.
    pub fn new(length: usize, beginning: usize) -> Self {
        let longest = length - beginning + 1;
        let [zeros, ones] = [words(longest - 1), count(longest as isize - 2)];
        let (mut segments, mut runs, mut even, mut start) = (Vec::new(), Vec::<WordRun>::new(), Vec::new(), 0);
        for (i, prefix) in list(beginning).into_iter().enumerate() {
            let first = prefix >> (beginning - 1) & 1 == 1;
            let (odd, ones_before) = (prefix & 1 == 1, prefix.count_ones());
            if odd {
                let tile = zeros.div_ceil(TILE);
                segments.push(PrefixSegment { run: runs.len() - 1, tile, odd, first, ones: ones_before });
                continue;
            }
            let whole = prefix & 2 == 0;
            let parts = [zeros, if whole { ones } else { 0 }];
            let length = longest - usize::from(!whole);
            even.push(i);
            segments.push(PrefixSegment { run: runs.len(), tile: 0, odd, first, ones: ones_before });
            runs.push(WordRun { length, start, parts, first, ones: ones_before });
            start += words(length);
        }
        let places = [zeros.div_ceil(TILE), ones.div_ceil(TILE)];
        let chosen = [(0..segments.len()).collect(), even];
        Self { beginning, segments, chosen, runs, places, last: ones - (places[1] - 1) * TILE, longest }
    }

    /// Tiles of the runs before this one, or of all of them.
    pub fn tiles_before(&self, run: usize) -> usize {
        self.runs[..run].iter().map(WordRun::tiles).sum()
    }

    /// Whether a place holds words whose rest begins with 0, so that prefixes may end in 1.
    #[inline(always)]
    pub fn is_open(&self, place: usize) -> bool {
        place < self.places[1]
    }

    /// The segments that have a place.
    #[inline(always)]
    pub fn at(&self, place: usize) -> &[usize] {
        &self.chosen[usize::from(!self.is_open(place))]
    }
}

/// A symmetric matrix over the words of half a row, somewhere in a vector.
#[derive(Clone, Debug)]
pub struct Symmetric {
    /// The words of rows and columns.
    pub axis: Axis,
    /// Whether blocks of words that both begin with 1 are left out.
    pub hollow: bool,
    /// What stands beside it in the middle of the row.
    pub middle: u32,
    /// Its words in the vector.
    pub len: usize,
    offsets: Vec<usize>,
}

impl Symmetric {
    /// A matrix whose blocks begin at `start` of the vector.
    pub fn new(axis: Axis, hollow: bool, middle: u32, start: usize) -> Self {
        let mut matrix = Self { axis, hollow, middle, len: 0, offsets: Vec::new() };
        let runs = matrix.axis.runs.len();
        for (a, b) in (0..runs).flat_map(|a| (0..runs).map(move |b| (a, b))) {
            matrix.offsets.push(start + matrix.len);
            if a <= b && matrix.has(a, b) {
                matrix.len += matrix.axis.runs[a].tiles() * matrix.axis.runs[b].tiles() * TILE_WORDS;
            }
        }
        matrix
    }

    fn has(&self, a: usize, b: usize) -> bool {
        !(self.hollow && self.axis.runs[a].first && self.axis.runs[b].first)
    }

    /// The blocks that are stored.
    pub fn blocks(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let runs = self.axis.runs.len();
        (0..runs).flat_map(move |a| (a..runs).map(move |b| (a, b))).filter(|&(a, b)| self.has(a, b))
    }

    /// Where a tile of a stored block is in the vector.
    #[inline(always)]
    pub fn tile(&self, (a, b): (usize, usize), row: usize, column: usize) -> usize {
        let runs = &self.axis.runs;
        self.offsets[a * runs.len() + b] + (row * runs[b].tiles() + column) * TILE_WORDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_in_one_place_and_the_places_of_all_segments_have_the_same_rest() {
        for (length, beginning) in [(5, 1), (5, 2), (7, 2), (9, 3), (12, 4), (6, 1)] {
            let axis = Axis::new(length, beginning);
            let all = list(length);
            let mut seen = vec![0; all.len()];
            for run in &axis.runs {
                for tile in 0..run.tiles() {
                    let (at, valid) = run.tile(tile);
                    assert!(valid > 0);
                    seen[run.start + at..run.start + at + valid].iter_mut().for_each(|count| *count += 1);
                }
            }
            assert!(seen.iter().all(|&count| count == 1), "{length} {beginning}");
            let rest = (1u64 << (length - beginning)) - 1;
            for (segment, prefix) in axis.segments.iter().zip(list(beginning)) {
                let run = axis.runs[segment.run];
                for place in 0..axis.places[usize::from(segment.odd)] {
                    let (at, valid) = run.tile(segment.tile + place);
                    for i in 0..valid {
                        let word = all[run.start + at + i];
                        assert_eq!(word >> (length - beginning), prefix);
                        assert_eq!(word & rest, list(length - beginning)[place * TILE + i]);
                    }
                }
            }
        }
    }
}
