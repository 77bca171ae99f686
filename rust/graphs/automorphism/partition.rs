//! Ordered partitions of the vertices: individualization, equitable refinement and their undoing.
//!
//! A partition is *equitable* if any two vertices of a cell have equally many neighbors in every cell. Refinement takes
//! cells from a queue, counts the neighbors that every vertex has in that cell, and splits the touched cells by the
//! count: uncounted vertices keep the front, higher counts go further back. Of the pieces of a cell that waits no longer,
//! all but the largest are queued (Hopcroft), since the counts to the largest follow from the others.
//!
//! Every step is the same for two vertices that an automorphism maps to one another, so the words written to the
//! [`RefinementTrace`] are invariants: unequal traces prove that no automorphism exists, equal ones prove nothing.
//!
//! Source: McKay and Piperno (2014), Practical graph isomorphism II, J. Symbolic Comput. 60, sections 2 and 3.

use super::Clock;
use super::adjacency::{Adjacency, AdjacencyRows};
use crate::Result;
use crate::numeric::dispatch::with_bits;
use std::collections::VecDeque;

/// A cell is named by the position of its first vertex.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    len: u32,
    /// Vertices of the cell reached from the splitter at hand; they sit at its back.
    touched: u32,
}

/// Where a vertex is.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    cell: u32,
    position: u32,
}

/// What refinement does with the words it makes.
#[derive(Debug)]
pub enum RefinementTrace<'a> {
    /// Keeps them: this is the path that others are compared with.
    Record(&'a mut Vec<u64>),
    /// Stops at the first word that differs from `words`, but not before `prefix` words are made.
    Compare {
        /// The trace to compare with.
        words: &'a [u64],
        /// The number of words that are hashed.
        prefix: usize,
    },
}

/// How a refinement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refinement {
    /// Whether the partition is equitable or discrete and the words are those given; otherwise it is only fit to be undone.
    pub matches: bool,
    /// The hash of the first words, as many as the prefix has (or as there are).
    pub hash: u64,
    /// Words made.
    pub words: usize,
    /// Neighbors visited.
    pub work: usize,
}

/// An ordered partition and what refining it needs.
#[derive(Debug)]
pub struct Partition<'g> {
    graph: &'g Adjacency,
    elements: Vec<u32>,
    places: Vec<Place>,
    cells: Vec<Cell>,
    number: usize,
    /// First positions of the cells split off since the root, for undoing in reverse order.
    splits: Vec<u32>,
    /// Cells that wait to be splitters, by the logarithm of their size when they came: small ones are cheap and tell much.
    queues: [VecDeque<u32>; 32],
    /// Bit `t` is set if queue `t` is not empty.
    waiting: u32,
    queued: Vec<bool>,
    counts: Vec<u32>,
    touched: Vec<u32>,
    splitter: Vec<u32>,
    mask: Vec<u64>,
    sorted: Vec<u32>,
    buckets: Vec<u32>,
    pieces: Vec<(u32, u32)>,
}

/// Mixes a word into a hash.
#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    let product = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ (product >> 32)
}

/// A pseudorandom word for a cell, to be summed in any order.
#[inline]
fn spread(cell: u32) -> u64 {
    let product = u64::from(cell).wrapping_mul(0xd6e8_feb8_6659_fd93);
    product ^ (product >> 32)
}

/// Writes for each vertex the number of bits its row has in common with the mask.
fn count_common(rows: &AdjacencyRows, mask: &[u64], counts: &mut [u32]) {
    with_bits::<true, _>(
        #[inline(always)]
        || count_common_plain(rows, mask, counts),
    );
}

#[inline(always)]
fn count_common_plain(rows: &AdjacencyRows, mask: &[u64], counts: &mut [u32]) {
    for (vertex, count) in (0..).zip(counts) {
        *count = rows.row(vertex).iter().zip(mask).map(|(row, mask)| (row & mask).count_ones()).sum();
    }
}

impl<'g> Partition<'g> {
    /// The equitable partition that colors and degrees lead to; cells of smaller colors come first.
    pub fn root(graph: &'g Adjacency, colors: &[u32], clock: &mut Clock<'_>) -> Result<Self> {
        let n = graph.vertices();
        let mut elements: Vec<u32> = (0..n as u32).collect();
        let key = |v: u32| (colors[v as usize], graph.degree(v));
        if (1..n as u32).any(|v| key(v) != key(0)) {
            elements.sort_by_key(|&v| key(v));
        }
        let mut partition = Self {
            graph,
            places: vec![Place::default(); n],
            cells: vec![Cell::default(); n],
            number: 0,
            splits: Vec::new(),
            queues: [const { VecDeque::new() }; 32],
            waiting: 0,
            queued: vec![false; n],
            counts: vec![0; n],
            touched: Vec::new(),
            splitter: Vec::new(),
            mask: Vec::new(),
            sorted: Vec::new(),
            buckets: Vec::new(),
            pieces: Vec::new(),
            elements,
        };
        let mut start = 0;
        let mut largest = 0;
        for position in 0..n {
            let vertex = partition.elements[position];
            if position > 0 && key(vertex) != key(partition.elements[position - 1]) {
                start = position;
            }
            if start == position {
                partition.number += 1;
            }
            partition.cells[start].len += 1;
            partition.places[vertex as usize] = Place { cell: start as u32, position: position as u32 };
            if partition.cells[start].len > partition.cells[largest].len {
                largest = start;
            }
        }
        // The degree is the sum of the counts to all cells, so the largest cell need not be counted.
        for start in partition.starts().filter(|&start| start != largest as u32).collect::<Vec<_>>() {
            partition.enqueue(start);
        }
        partition.refine(RefinementTrace::Record(&mut Vec::new()), clock)?;
        partition.splits.clear();
        Ok(partition)
    }

    /// Number of cells.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Whether every cell has one vertex.
    pub fn is_discrete(&self) -> bool {
        self.number == self.elements.len()
    }

    /// The vertices in their order.
    pub fn elements(&self) -> &[u32] {
        &self.elements
    }

    /// The first position of the cell of a vertex.
    #[inline]
    pub fn cell_of(&self, vertex: u32) -> u32 {
        self.places[vertex as usize].cell
    }

    /// Number of vertices of the cell that starts here; meaningless elsewhere.
    #[inline]
    pub fn cell_len(&self, start: u32) -> u32 {
        self.cells[start as usize].len
    }

    /// The vertices of the cell that starts here.
    #[inline]
    pub fn cell(&self, start: u32) -> &[u32] {
        &self.elements[start as usize..(start + self.cells[start as usize].len) as usize]
    }

    /// The first positions of all cells, in order.
    pub fn starts(&self) -> impl Iterator<Item = u32> + '_ {
        let first = (!self.elements.is_empty()).then_some(0);
        std::iter::successors(first, |&start| {
            let next = start + self.cells[start as usize].len;
            ((next as usize) < self.elements.len()).then_some(next)
        })
    }

    /// A mark to return to with [`Partition::undo`].
    pub fn mark(&self) -> usize {
        self.splits.len()
    }

    /// The first positions of the cells split off since a mark.
    pub fn splits_since(&self, mark: usize) -> &[u32] {
        &self.splits[mark..]
    }

    /// Joins again what was split since the mark. Within a cell the order of the vertices may have changed.
    pub fn undo(&mut self, mark: usize) {
        for index in (mark..self.splits.len()).rev() {
            let start = self.splits[index];
            let parent = self.places[self.elements[start as usize - 1] as usize].cell;
            let len = self.cells[start as usize].len;
            for &vertex in &self.elements[start as usize..(start + len) as usize] {
                self.places[vertex as usize].cell = parent;
            }
            self.cells[parent as usize].len += len;
        }
        self.number -= self.splits.len() - mark;
        self.splits.truncate(mark);
    }

    /// Splits `vertex` off to the back of its cell, which must have more vertices, and refines.
    pub fn individualize(
        &mut self,
        vertex: u32,
        trace: RefinementTrace<'_>,
        clock: &mut Clock<'_>,
    ) -> Result<Refinement> {
        let start = self.places[vertex as usize].cell;
        let back = start + self.cells[start as usize].len - 1;
        self.swap_to(vertex, back);
        self.cells[start as usize].len -= 1;
        self.cut(back, 1);
        self.enqueue(back);
        self.refine(trace, clock)
    }

    /// Exchanges a vertex with the one at `position`.
    #[inline]
    fn swap_to(&mut self, vertex: u32, position: u32) {
        let from = self.places[vertex as usize].position;
        let other = self.elements[position as usize];
        self.elements[position as usize] = vertex;
        self.elements[from as usize] = other;
        self.places[vertex as usize].position = position;
        self.places[other as usize].position = from;
    }

    /// Makes the `len` vertices from `start` on a cell of their own.
    fn cut(&mut self, start: u32, len: u32) {
        self.cells[start as usize].len = len;
        for &vertex in &self.elements[start as usize..(start + len) as usize] {
            self.places[vertex as usize].cell = start;
        }
        self.splits.push(start);
        self.number += 1;
    }

    #[inline]
    fn enqueue(&mut self, start: u32) {
        self.queued[start as usize] = true;
        let tier = self.cells[start as usize].len.ilog2();
        self.queues[tier as usize].push_back(start);
        self.waiting |= 1 << tier;
    }

    #[inline]
    fn dequeue(&mut self) -> Option<u32> {
        let tier = self.waiting.trailing_zeros();
        let queue = self.queues.get_mut(tier as usize)?;
        let start = queue.pop_front()?;
        if queue.is_empty() {
            self.waiting &= !(1 << tier);
        }
        self.queued[start as usize] = false;
        Some(start)
    }

    fn clear_queues(&mut self) {
        while self.dequeue().is_some() {}
    }

    /// Refines until the partition is equitable or discrete, or the trace differs.
    fn refine(&mut self, mut trace: RefinementTrace<'_>, clock: &mut Clock<'_>) -> Result<Refinement> {
        let mut outcome = Refinement { matches: true, hash: 0, words: 0, work: 0 };
        while let Some(start) = self.dequeue() {
            let (word, work) = if self.cells[start as usize].len == 1 {
                self.split_by_vertex(start)
            } else {
                self.split_by_cell(start)
            };
            outcome.work += work;
            let looked = clock.spend(work);
            match &mut trace {
                RefinementTrace::Record(words) => words.push(word),
                RefinementTrace::Compare { words, prefix } => {
                    if outcome.words < *prefix {
                        outcome.hash = mix(outcome.hash, word);
                    }
                    outcome.matches &= words.get(outcome.words) == Some(&word);
                }
            }
            outcome.words += 1;
            let stop =
                !outcome.matches && !matches!(trace, RefinementTrace::Compare { prefix, .. } if outcome.words < prefix);
            if looked.is_err() || stop || self.is_discrete() {
                self.clear_queues();
            }
            looked?;
        }
        if let RefinementTrace::Compare { words, .. } = trace {
            outcome.matches &= words.len() == outcome.words;
        }
        Ok(outcome)
    }

    /// Moves a vertex that is not touched yet to the touched ones at the back of its cell.
    #[inline(always)]
    fn touch(&mut self, w: u32) {
        let Place { cell, position } = self.places[w as usize];
        let found = &mut self.cells[cell as usize];
        if found.touched == 0 {
            self.touched.push(cell);
        }
        found.touched += 1;
        let back = cell + found.len - found.touched;
        let other = self.elements[back as usize];
        self.elements[back as usize] = w;
        self.elements[position as usize] = other;
        self.places[other as usize].position = position;
        self.places[w as usize].position = back;
    }

    /// Splits by adjacency to a single vertex. Returns the word of the trace and the work done.
    fn split_by_vertex(&mut self, start: u32) -> (u64, usize) {
        let graph = self.graph;
        let neighbors = graph.neighbors(self.elements[start as usize]);
        let mut sum = 0u64;
        for &w in neighbors {
            let cell = self.places[w as usize].cell;
            sum = sum.wrapping_add(spread(cell));
            if self.cells[cell as usize].len > 1 {
                self.touch(w);
            }
        }
        let mut touched = std::mem::take(&mut self.touched);
        touched.retain(|&cell| {
            let found = &mut self.cells[cell as usize];
            sum = sum.wrapping_add(mix(u64::from(cell), u64::from(found.touched)));
            let splits = found.touched < found.len;
            if !splits {
                found.touched = 0;
            }
            splits
        });
        touched.sort_unstable();
        for &cell in &touched {
            let Cell { len, touched } = self.cells[cell as usize];
            let back = cell + len - touched;
            self.cells[cell as usize] = Cell { len: len - touched, touched: 0 };
            self.cut(back, touched);
            // Where the front waits already, it goes on waiting in its place.
            let smaller_or_only = self.queued[cell as usize] || touched <= len - touched;
            self.enqueue(if smaller_or_only { back } else { cell });
        }
        touched.clear();
        self.touched = touched;
        (mix(u64::from(start), sum), neighbors.len() + 1)
    }

    /// Splits by the number of neighbors in a cell. Returns the word of the trace and the work done.
    fn split_by_cell(&mut self, start: u32) -> (u64, usize) {
        let graph = self.graph;
        let mut splitter = std::mem::take(&mut self.splitter);
        splitter.extend_from_slice(self.cell(start));
        let visits = splitter.iter().map(|&v| graph.degree(v) + 1).sum();
        let (sum, work) = match graph.rows() {
            // Measured: eight words of bits take about as long as one visit to a neighbor.
            Some(rows) if visits > self.elements.len() * (rows.words() / 8 + 2) => {
                (self.count_by_rows(rows, &splitter), self.elements.len() * (rows.words() / 8 + 2))
            }
            _ => (self.count_by_lists(&splitter), visits),
        };
        splitter.clear();
        self.splitter = splitter;
        let mut word = mix(u64::from(start) | 1 << 63, sum);
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        for &cell in &touched {
            word = self.split_by_counts(cell, word);
        }
        touched.clear();
        self.touched = touched;
        (word, work)
    }

    /// Counts, for each vertex that does not stand alone, its neighbors among `splitter`, and moves the touched vertices of
    /// each cell to its back. Returns a sum that tells what single vertices were met.
    fn count_by_lists(&mut self, splitter: &[u32]) -> u64 {
        let graph = self.graph;
        let mut sum = 0u64;
        for &v in splitter {
            for &w in graph.neighbors(v) {
                let cell = self.places[w as usize].cell;
                if self.cells[cell as usize].len == 1 {
                    sum = sum.wrapping_add(spread(cell));
                    continue;
                }
                self.counts[w as usize] += 1;
                if self.counts[w as usize] > 1 {
                    continue;
                }
                self.touch(w);
            }
        }
        sum
    }

    /// The same by intersecting rows of bits: for splitters with many edges in dense graphs. Here whole cells are touched.
    fn count_by_rows(&mut self, rows: &AdjacencyRows, splitter: &[u32]) -> u64 {
        self.mask.clear();
        self.mask.resize(rows.words(), 0);
        for &v in splitter {
            self.mask[v as usize / 64] |= 1 << (v % 64);
        }
        count_common(rows, &self.mask, &mut self.counts);
        let mut sum = 0u64;
        let mut start = 0;
        while start < self.elements.len() as u32 {
            let found = &mut self.cells[start as usize];
            if found.len == 1 {
                let vertex = self.elements[start as usize] as usize;
                sum = sum.wrapping_add(spread(start).wrapping_mul(u64::from(std::mem::take(&mut self.counts[vertex]))));
            } else {
                found.touched = found.len;
                self.touched.push(start);
            }
            start += found.len;
        }
        sum
    }

    /// Splits one touched cell by the counts of its vertices, clears them, and queues the pieces.
    fn split_by_counts(&mut self, cell: u32, mut word: u64) -> u64 {
        let Cell { len, touched } = self.cells[cell as usize];
        self.cells[cell as usize].touched = 0;
        let end = cell + len;
        let back = end - touched;
        let (mut least, mut most) = (u32::MAX, 0);
        for &w in &self.elements[back as usize..end as usize] {
            let count = self.counts[w as usize];
            least = least.min(count);
            most = most.max(count);
        }
        word = mix(word, u64::from(cell) << 32 | u64::from(touched));
        self.pieces.clear();
        if touched < len {
            self.pieces.push((cell, len - touched));
        }
        if least == most {
            word = mix(word, u64::from(least));
            self.pieces.push((back, touched));
        } else {
            word = self.sort_by_counts(back, end, least, most, word);
        }
        for &w in &self.elements[back as usize..end as usize] {
            self.counts[w as usize] = 0;
        }
        if self.pieces.len() == 1 {
            return word;
        }
        let pieces = std::mem::take(&mut self.pieces);
        self.cells[cell as usize].len = pieces[0].1;
        for &(start, len) in pieces[1..].iter().rev() {
            self.cut(start, len);
        }
        let waits = self.queued[cell as usize];
        let skipped = if waits {
            0
        } else {
            (0..pieces.len()).rev().max_by_key(|&piece| pieces[piece].1).unwrap_or(0) // first on ties
        };
        for (piece, &(start, _)) in pieces.iter().enumerate() {
            if piece != skipped {
                self.enqueue(start);
            }
        }
        self.pieces = pieces;
        word
    }

    /// Sorts the vertices at `back..end` by count and appends the pieces of equal count.
    fn sort_by_counts(&mut self, back: u32, end: u32, least: u32, most: u32, mut word: u64) -> u64 {
        let range = back as usize..end as usize;
        let width = (most - least) as usize + 1;
        if width <= 4 * range.len() + 16 {
            self.sorted.clear();
            self.sorted.extend_from_slice(&self.elements[range.clone()]);
            self.buckets.clear();
            self.buckets.resize(width + 1, 0);
            for &w in &self.sorted {
                self.buckets[(self.counts[w as usize] - least) as usize + 1] += 1;
            }
            for count in 0..width {
                self.buckets[count + 1] += self.buckets[count];
            }
            for &w in &self.sorted {
                let bucket = &mut self.buckets[(self.counts[w as usize] - least) as usize];
                self.elements[(back + *bucket) as usize] = w;
                *bucket += 1;
            }
        } else {
            let counts = &self.counts;
            self.elements[range].sort_unstable_by_key(|&w| counts[w as usize]);
        }
        let mut start = back;
        for position in back..end {
            let vertex = self.elements[position as usize];
            self.places[vertex as usize].position = position;
            let count = self.counts[vertex as usize];
            let next = self.elements.get(position as usize + 1).filter(|_| position + 1 < end);
            if next.is_none_or(|&next| self.counts[next as usize] != count) {
                self.pieces.push((start, position + 1 - start));
                word = mix(word, u64::from(start) << 32 | u64::from(count));
                start = position + 1;
            }
        }
        word
    }
}
