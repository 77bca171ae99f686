//! Neighbor lists in one array, of the graph or of its complement, whichever has fewer edges: both have the same group.

use crate::graphs::Graph;

/// The sorted distinct neighbors of every vertex, without the vertex itself.
#[derive(Clone, Debug)]
pub struct Adjacency {
    starts: Vec<usize>,
    lists: Vec<u32>,
    /// One row of bits per vertex, for dense graphs only.
    rows: Option<Rows>,
}

/// The adjacency matrix as bits.
#[derive(Clone, Debug)]
pub struct Rows {
    words: usize,
    bits: Vec<u64>,
}

impl Rows {
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

    /// These lists, or those of the complement if they are shorter.
    pub fn or_complement(self) -> Self {
        let n = self.vertices();
        if self.lists.len() <= n.saturating_mul(n.saturating_sub(1)) / 2 {
            return self;
        }
        let mut lists = Vec::with_capacity(n * (n - 1) - self.lists.len());
        let mut starts = vec![0; n + 1];
        for v in 0..n as u32 {
            let mut listed = self.neighbors(v).iter().copied().peekable();
            for w in 0..n as u32 {
                if listed.next_if_eq(&w).is_none() && w != v {
                    lists.push(w);
                }
            }
            starts[v as usize + 1] = lists.len();
        }
        Self { starts, lists, rows: None }
    }

    /// With rows of bits beside the lists, if those take no more than four times the memory.
    pub fn with_rows(mut self) -> Self {
        let n = self.vertices();
        let words = n.div_ceil(64);
        if n * words * 2 > 4 * self.lists.len() {
            return self;
        }
        let mut bits = vec![0; n * words];
        for v in 0..n {
            let row = &mut bits[v * words..][..words];
            for &w in &self.lists[self.starts[v]..self.starts[v + 1]] {
                row[w as usize / 64] |= 1 << (w % 64);
            }
        }
        self.rows = Some(Rows { words, bits });
        self
    }

    /// The rows of bits, if there are any.
    pub fn rows(&self) -> Option<&Rows> {
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
