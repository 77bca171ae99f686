//! Neighbor lists in one array, of the graph or of its complement, whichever has fewer edges: both have the same group.

use crate::Graph;

/// The sorted distinct neighbors of every vertex, without the vertex itself.
#[derive(Clone, Debug)]
pub struct Adjacency {
    starts: Vec<usize>,
    lists: Vec<u32>,
    /// One row of bits per vertex, for dense graphs only.
    rows: Option<AdjacencyRows>,
}

/// The adjacency matrix as bits.
#[derive(Clone, Debug)]
pub struct AdjacencyRows {
    words: usize,
    bits: Vec<u64>,
}

impl AdjacencyRows {
    /// The rows of `graph`; loops are ignored.
    fn new(graph: &Graph) -> Self {
        let n = graph.vertices();
        let words = n.div_ceil(64);
        let mut bits = vec![0u64; n * words];
        for run in graph.edges().chunk_by(|a, b| a.0 == b.0) {
            let u = run[0].0 as usize;
            for &(_, v) in run {
                bits[u * words + v as usize / 64] |= 1 << (v % 64);
                bits[v as usize * words + u / 64] |= 1 << (u % 64);
            }
        }
        (0..n).for_each(|v| bits[v * words + v / 64] &= !(1 << (v % 64)));
        Self { words, bits }
    }

    /// The rows of the complement.
    fn complement(mut self, n: usize) -> Self {
        let last = u64::MAX >> (self.words * 64 - n);
        for (v, row) in self.bits.chunks_exact_mut(self.words).enumerate() {
            row.iter_mut().for_each(|word| *word = !*word);
            row[self.words - 1] &= last;
            row[v / 64] &= !(1 << (v % 64));
        }
        self
    }

    /// Number of bits set: twice the number of edges.
    fn ones(&self) -> usize {
        self.bits.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Words of one row.
    pub fn words(&self) -> usize {
        self.words
    }

    /// The neighbors of a vertex: bit `w % 64` of word `w / 64`.
    #[inline]
    pub fn row(&self, vertex: u32) -> &[u64] {
        &self.bits[vertex as usize * self.words..][..self.words]
    }
}

impl Adjacency {
    /// The lists of `graph`; loops are ignored, parallel edges merged.
    pub fn new(graph: &Graph) -> Self {
        let n = graph.vertices();
        let mut starts = vec![0; n + 1];
        // Edges mostly come in runs with the same first end; a run is counted at once.
        for run in graph.edges().chunk_by(|a, b| a.0 == b.0) {
            let u = run[0].0;
            let mut others = 0;
            for &(_, v) in run.iter().filter(|edge| edge.1 != u) {
                others += 1;
                starts[v as usize + 1] += 1;
            }
            starts[u as usize + 1] += others;
        }
        for v in 0..n {
            starts[v + 1] += starts[v];
        }
        let mut lists = vec![0; starts[n]];
        let mut next = starts[..n].to_vec();
        for run in graph.edges().chunk_by(|a, b| a.0 == b.0) {
            let u = run[0].0;
            let mut own = next[u as usize];
            for &(_, v) in run.iter().filter(|edge| edge.1 != u) {
                lists[own] = v;
                own += 1;
                lists[next[v as usize]] = u;
                next[v as usize] += 1;
            }
            next[u as usize] = own;
        }
        let mut adjacency = Self { starts, lists, rows: None };
        adjacency.sort();
        adjacency
    }

    /// Sorts each list and drops its duplicates; edges given in rising order need neither.
    fn sort(&mut self) {
        let n = self.vertices();
        let strictly_rising = |list: &[u32]| list.windows(2).all(|pair| pair[0] < pair[1]);
        if (0..n).all(|v| strictly_rising(self.neighbors(v as u32))) {
            return;
        }
        let mut lists = Vec::with_capacity(self.lists.len());
        let mut starts = vec![0; n + 1];
        for v in 0..n {
            let list = &mut self.lists[self.starts[v]..self.starts[v + 1]];
            list.sort_unstable();
            let first = lists.len();
            for &w in list.iter() {
                if lists.len() == first || lists[lists.len() - 1] != w {
                    lists.push(w);
                }
            }
            starts[v + 1] = lists.len();
        }
        *self = Self { starts, lists, rows: None };
    }

    /// The lists of `graph` or of its complement, whichever are shorter, with rows of bits beside them where those take no
    /// more than four times the memory.
    pub fn shorter(graph: &Graph) -> Self {
        let n = graph.vertices();
        // Where rows would take more than that, the complement is not shorter.
        if n * n.div_ceil(64) >= 4 * graph.edges().len() {
            return Self::new(graph);
        }
        let mut rows = AdjacencyRows::new(graph);
        let mut ones = rows.ones();
        if ones > n * (n - 1) / 2 {
            rows = rows.complement(n);
            ones = n * (n - 1) - ones;
        }
        let mut lists = Vec::with_capacity(ones);
        let mut starts = Vec::with_capacity(n + 1);
        starts.push(0);
        for row in rows.bits.chunks_exact(rows.words) {
            for (at, &word) in (0..).step_by(64).zip(row) {
                let mut left = word;
                while left != 0 {
                    lists.push(at + left.trailing_zeros());
                    left &= left - 1;
                }
            }
            starts.push(lists.len());
        }
        let small = rows.bits.len() <= 2 * lists.len();
        Self { starts, lists, rows: small.then_some(rows) }
    }

    /// The rows of bits, if there are any.
    pub fn rows(&self) -> Option<&AdjacencyRows> {
        self.rows.as_ref()
    }

    /// Number of vertices.
    pub fn vertices(&self) -> usize {
        self.starts.len() - 1
    }

    /// The neighbors of `vertex` in rising order.
    #[inline]
    pub fn neighbors(&self, vertex: u32) -> &[u32] {
        &self.lists[self.starts[vertex as usize]..self.starts[vertex as usize + 1]]
    }

    /// Number of neighbors of `vertex`.
    #[inline]
    pub fn degree(&self, vertex: u32) -> usize {
        self.starts[vertex as usize + 1] - self.starts[vertex as usize]
    }
}
