//! Averaging over the automorphisms of a Hamming graph: the label of a pair of words is the number of places where they
//! differ, so no table of classes is read or made.
//!
//! Words of u letters are split into a head and a tail of t letters, w = v^t tails. Within a row the columns with one head
//! form a chunk of w entries, all at the same distance from the row's head, so the sums are made per distance of heads and
//! per tail, whole chunks at a time. All rows with the same tail are done together, and then
//!
//! S_d = sum over head distances c and tails l with c + dist(tail, l) = d of the chunk sums.
//!
//! The means are written back as chunks too. Order of sums and precision are as in `averaging`.
//!
//! Source: derived here from the orbits on pairs of words, which are the distances (Brouwer, Cohen, Neumaier, section 9.2).

use super::ChannelMatrix;
use super::sums::{CompensatedSum, two_sum};
use super::vector::{finish, stream};
use crate::monitor::{Monitor, Progress};
use crate::numeric::dispatch::{at_level, level};
use crate::{Error, Result, parallel};

/// The smallest useful chunk.
const CHUNK: usize = 32;
/// Entries done at a time.
const BLOCK: usize = 1 << 18;

/// Words, cut into heads and tails.
struct SplitWords {
    alphabet: usize,
    /// Number of tails, and of heads.
    tails: usize,
    heads: usize,
    /// Distances between heads, row by row, and the largest.
    head_distances: Vec<u8>,
    length: usize,
    head_length: usize,
}

impl SplitWords {
    fn new(length: usize, alphabet: usize) -> Self {
        let mut tail_length = 1;
        while tail_length < length && alphabet.pow(tail_length as u32) < CHUNK {
            tail_length += 1;
        }
        let tail_length = tail_length.min(length);
        let head_length = length - tail_length;
        let (tails, heads) = (alphabet.pow(tail_length as u32), alphabet.pow(head_length as u32));
        let mut words = Self { alphabet, tails, heads, head_distances: Vec::new(), length, head_length };
        words.head_distances =
            (0..heads * heads).map(|pair| words.distance(pair / heads, pair % heads) as u8).collect();
        words
    }

    /// The number of places where two words differ.
    fn distance(&self, mut a: usize, mut b: usize) -> usize {
        let mut distance = 0;
        while a != b {
            distance += usize::from(a % self.alphabet != b % self.alphabet);
            a /= self.alphabet;
            b /= self.alphabet;
        }
        distance
    }

    /// Heads done at a time.
    fn block(&self) -> usize {
        (BLOCK / (self.heads * self.tails)).clamp(1, self.heads)
    }
}

/// Writes the average of a square matrix over the automorphisms of H(length, alphabet) into `output`.
///
/// # Errors
/// [`Error::Shape`] unless the matrix has `alphabet^length` rows and columns and the output as many entries; the monitor's
/// objection.
pub fn average_hamming(
    matrix: ChannelMatrix<'_>,
    length: usize,
    alphabet: usize,
    output: &mut [f64],
    threads: usize,
    monitor: &mut dyn Monitor,
) -> Result<()> {
    let n = matrix.rows();
    let words = u32::try_from(length).ok().and_then(|length| alphabet.checked_pow(length));
    if words != Some(n) || matrix.cols() != n || output.len() != n * n {
        let expected = words.map_or("too large".to_string(), |words| format!("({words}, {words})"));
        return Err(Error::shape("matrix", expected, format_args!("({n}, {})", matrix.cols())));
    }
    // With one letter there is one word, however long.
    let words = SplitWords::new(if alphabet == 1 { 0 } else { length }, alphabet);
    let block = words.block();
    let blocks = words.heads.div_ceil(block);
    // The rows of one tail, one block of heads after the other.
    let mut targets: Vec<Option<&mut [f64]>> = output.chunks_exact_mut(n).map(Some).collect();
    let tasks: Vec<(usize, usize, Vec<&mut [f64]>)> = (0..words.tails * blocks)
        .map(|task| {
            let (tail, from) = (task / blocks, task % blocks * block);
            let heads = from..(from + block).min(words.heads);
            (tail, from, heads.filter_map(|head| targets[head * words.tails + tail].take()).collect())
        })
        .collect();
    parallel::run(threads, 2 * n as u64, monitor, |progress| {
        let sums = parallel::try_map(tasks.len(), |task| {
            let (tail, from, rows) = &tasks[task];
            add_up(matrix, &words, *tail, *from, rows.len(), progress)
        })?;
        let means = means(&words, &sums);
        parallel::each(tasks, |(tail, from, rows)| write(&words, &means, tail, from, rows, progress))
    })
}

/// The sums for each distance over the rows of one tail and some heads.
fn add_up(
    matrix: ChannelMatrix<'_>,
    words: &SplitWords,
    tail: usize,
    from: usize,
    rows: usize,
    progress: &Progress,
) -> Result<Vec<CompensatedSum>> {
    let size = (words.head_length + 1) * words.tails;
    let (mut high, mut low) = (vec![0.0; size], vec![0.0; size]);
    for head in from..from + rows {
        let distances = &words.head_distances[head * words.heads..][..words.heads];
        add_row(&mut high, &mut low, matrix.row(head * words.tails + tail), distances, words.tails);
        progress.advance(1)?;
    }
    let mut sums = vec![CompensatedSum::default(); words.length + 1];
    for (place, (&high, &low)) in high.iter().zip(&low).enumerate() {
        let (distance, other) = (place / words.tails, place % words.tails);
        sums[distance + words.distance(tail, other)].merge(CompensatedSum::of(high, low));
    }
    Ok(sums)
}

fn add_row(high: &mut [f64], low: &mut [f64], row: &[f64], distances: &[u8], tails: usize) {
    at_level!(level(), {
        for (chunk, &distance) in row.chunks_exact(tails).zip(distances) {
            let high = &mut high[distance as usize * tails..][..tails];
            let low = &mut low[distance as usize * tails..][..tails];
            add_exactly(high, low, chunk);
        }
    })
}

#[inline(always)]
fn add_exactly(high: &mut [f64], low: &mut [f64], entries: &[f64]) {
    for ((high, low), &entry) in high.iter_mut().zip(low).zip(entries) {
        let (sum, error) = two_sum(*high, entry);
        *high = sum;
        *low += error;
    }
}

/// The mean at each distance: of the n words C(u, d) (v-1)^d are at distance d from any word.
fn means(words: &SplitWords, blocks: &[Vec<CompensatedSum>]) -> Vec<f64> {
    let points = (words.heads * words.tails) as f64;
    let mut count = points;
    let mut means = Vec::with_capacity(words.length + 1);
    for distance in 0..=words.length {
        let mut total = CompensatedSum::default();
        blocks.iter().for_each(|sums| total.merge(sums[distance]));
        means.push(if count == 0.0 { 0.0 } else { total.mean(count) });
        count = count * (words.length - distance) as f64 * (words.alphabet - 1) as f64 / (distance + 1) as f64;
    }
    means
}

/// Writes the rows of one tail and some heads.
fn write(
    words: &SplitWords,
    means: &[f64],
    tail: usize,
    from: usize,
    rows: Vec<&mut [f64]>,
    progress: &Progress,
) -> Result<()> {
    let chunk = |distance: usize| (0..words.tails).map(move |other| means[distance + words.distance(tail, other)]);
    let chunks: Vec<f64> = (0..=words.head_length).flat_map(chunk).collect();
    let written = (from..).zip(rows).try_for_each(|(head, row)| {
        let distances = &words.head_distances[head * words.heads..][..words.heads];
        for (target, &distance) in row.chunks_exact_mut(words.tails).zip(distances) {
            stream(target, &chunks[distance as usize * words.tails..][..words.tails]);
        }
        progress.advance(1)
    });
    finish();
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::automorphism::{AutomorphismGroup, Clock};
    use crate::leakage::averaging::average;
    use crate::monitor::Silent;

    fn averaged(entries: &[f64], length: usize, alphabet: usize, threads: usize) -> Vec<f64> {
        let n = alphabet.pow(length as u32);
        let mut output = vec![f64::NAN; n * n];
        average_hamming(
            ChannelMatrix::new(entries, n, n).unwrap(),
            length,
            alphabet,
            &mut output,
            threads,
            &mut Silent,
        )
        .unwrap();
        output
    }

    #[test]
    fn it_agrees_with_labels_and_is_idempotent_for_any_threads() {
        for (length, alphabet) in
            [(0, 3), (1, 1), (4, 1), (1, 2), (3, 2), (9, 2), (1, 40), (2, 3), (4, 3), (5, 3), (2, 40), (3, 7)]
        {
            let n = usize::pow(alphabet, length as u32);
            let mut stream = crate::stream::Stream::new([length as u64, alphabet as u64], 0, 0, 0);
            let entries: Vec<f64> = (0..n * n).map(|_| stream.uniform()).collect();
            let mut expected = vec![0.0; n * n];
            let group = AutomorphismGroup::hamming(length as u32, alphabet as u32).unwrap();
            let orbitals = group.orbitals(u128::MAX, &mut Clock::new("a test", None, &mut Silent)).unwrap();
            average(ChannelMatrix::new(&entries, n, n).unwrap(), &orbitals, &mut expected, 1, &mut Silent).unwrap();
            let once = averaged(&entries, length, alphabet, 1);
            let close = once.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 2.0 * f64::EPSILON * a);
            assert!(close, "H({length}, {alphabet})");
            assert_eq!(once, averaged(&entries, length, alphabet, 3), "H({length}, {alphabet})");
            assert_eq!(once, averaged(&once, length, alphabet, 2), "H({length}, {alphabet})");
        }
    }

    #[test]
    fn another_size_is_refused() {
        let entries = [0.25; 16];
        let matrix = ChannelMatrix::new(&entries, 4, 4).unwrap();
        for (length, alphabet) in [(3, 2), (1, 3), (usize::MAX, 2), (1, 0)] {
            let outcome = average_hamming(matrix, length, alphabet, &mut [0.0; 16], 1, &mut Silent);
            assert!(matches!(outcome, Err(Error::Shape { name: "matrix", .. })));
        }
    }
}
