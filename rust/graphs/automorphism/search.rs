//! The search for automorphisms: individualize, refine, compare with the first path.
//!
//! The *first path* fixes base points `b_1 .. b_k` one by one until refinement leaves single vertices. Then, from `i = k`
//! up to `1`, every vertex `v` of the cell of `b_i` that no generator found so far maps to `b_i` is tried in its place:
//! a depth-first search below `v` looks for a node that an automorphism maps the first path to. All generators found at
//! level `i` or later fix `b_1 .. b_{i-1}`, so their orbit of `b_i` ends as the orbit of `b_i` in the stabilizer of
//! `b_1 .. b_{i-1}`, and the group order is the product of these lengths.
//!
//! What keeps the tree small:
//!  - a node whose trace differs from the first path's at its level is dropped at the first word that differs;
//!  - at every node the vertices that stand alone are mapped by position, all others kept; if that respects every edge
//!    it is an automorphism and the search need not go down to a leaf. A chain `x -> y -> .. -> z` that is left open is
//!    closed by `z -> x`, which swaps isomorphic parts of the graph as a whole;
//!  - a vertex in the orbit of one that failed fails as well;
//!  - where children keep failing, the hashes of all children of the first path's node are collected; a node with a child
//!    whose hash is not among them, or comes too often, is no image of it. In graphs without symmetry (Latin squares)
//!    that ends a node at its first child;
//!  - base points stay in one region as long as they can (see `regions`), so that what an individualized vertex changes is
//!    soon settled, and a failure in one part of the graph is not repeated for every branch elsewhere.
//!
//! Source: McKay and Piperno (2014), Practical graph isomorphism II; Junttila and Kaski (2007), Engineering an efficient
//! canonical labeling tool; the closing of chains and the sets of child hashes are our own.

use super::Clock;
use super::adjacency::Adjacency;
use super::partition::{Partition, Refinement, RefinementTrace};
use super::permutation::{Orbits, Permutation};
use super::regions::Regions;
use crate::Result;
use std::collections::HashMap;

/// Children that may fail at a level before its probe is made, and children that a probe looks at.
const PATIENCE: usize = 32;

/// What the search found.
#[derive(Debug)]
pub struct SearchResult {
    /// The base, `b_1 .. b_k`.
    pub base: Vec<u32>,
    /// The orbit length of each base point under the stabilizer of those before it.
    pub lengths: Vec<u32>,
    /// Generators, each with the number of base points it fixes from the front.
    pub generators: Vec<(Permutation, usize)>,
    /// The orbits of all vertices.
    pub orbits: Vec<u32>,
}

/// One step of the first path: a vertex of a target cell is individualized.
#[derive(Debug)]
struct SearchLevel {
    vertex: u32,
    /// First position and length of the target cell.
    target: (u32, u32),
    /// The words of the refinement, as a range of `Search::words`.
    words: std::ops::Range<usize>,
    /// Cells after the refinement.
    cells: usize,
    /// Splits before and after.
    before: usize,
    after: usize,
    /// How many regions lie around the target cell, and the last level of what lies within this one's.
    nesting: usize,
    closed: usize,
    /// Children that failed at nodes of this level.
    failures: usize,
    /// What images of the first path's node look like one step below; worked out when failures abound.
    probe: Option<Probe>,
}

/// How often each hash occurs among the traces of the children that individualize a vertex of one cell.
#[derive(Debug, Default)]
struct Probe {
    /// First position and length of the cell.
    cell: (u32, u32),
    /// How many words of a trace are hashed.
    prefix: usize,
    hashes: HashMap<u64, u32>,
}

/// A node of the tree below a candidate: its children individualize a vertex of the target cell of `level`.
#[derive(Debug)]
struct SearchNode {
    level: usize,
    /// Splits when the node was reached.
    mark: usize,
    /// The child to begin with, until it is tried.
    first: Option<u32>,
    /// The child that was begun with.
    tried: u32,
    /// Children not tried yet; filled after the first failed.
    others: Option<Vec<u32>>,
}

/// How the search below a candidate ended.
enum Verdict {
    Automorphism(Permutation),
    None,
    /// Children of this level fail so often that its probe is wanted before going on.
    WantProbe(usize),
}

struct Search<'g, 'c, 'm> {
    graph: &'g Adjacency,
    colors: &'g [u32],
    clock: &'c mut Clock<'m>,
    partition: Partition<'g>,
    levels: Vec<SearchLevel>,
    words: Vec<u64>,
    /// The vertices in the order of the leaf of the first path, their positions there, and the level (from 1) at which
    /// each position became the start of a cell.
    leaf: Vec<u32>,
    leaf_position: Vec<u32>,
    start_level: Vec<u32>,
    generators: Vec<(Permutation, usize)>,
    orbits: Orbits,
    /// Marks the representatives of orbits that cannot contain the base point at hand.
    failed: Vec<bool>,
    // Scratch of `mapping`: images and their inverse, and the neighbors of an image.
    image: Vec<u32>,
    preimage: Vec<u32>,
    moved: Vec<u32>,
    stamp: Vec<u32>,
    stamped: u32,
}

/// Finds generators of the group of all automorphisms that keep colors.
pub fn search(graph: &Adjacency, colors: &[u32], clock: &mut Clock<'_>) -> Result<SearchResult> {
    let n = graph.vertices();
    let partition = Partition::root(graph, colors, clock)?;
    let mut search = Search {
        graph,
        colors,
        clock,
        partition,
        levels: Vec::new(),
        words: Vec::new(),
        leaf: Vec::new(),
        leaf_position: Vec::new(),
        start_level: vec![0; n],
        generators: Vec::new(),
        orbits: Orbits::new(n),
        failed: vec![false; n],
        image: (0..n as u32).collect(),
        preimage: (0..n as u32).collect(),
        moved: Vec::new(),
        stamp: vec![0; n],
        stamped: 0,
    };
    search.first_path()?;
    let mut lengths = vec![1; search.levels.len()];
    for level in (0..search.levels.len()).rev() {
        search.partition.undo(search.levels[level].before);
        lengths[level] = search.complete(level)?;
    }
    let base = search.levels.iter().map(|level| level.vertex).collect();
    Ok(SearchResult { base, lengths, generators: search.generators, orbits: search.orbits.labels() })
}

impl Search<'_, '_, '_> {
    /// Goes down to a leaf, always by a largest cell, and within one region as long as possible.
    fn first_path(&mut self) -> Result<()> {
        let mut regions = Regions::new(&self.partition);
        while !self.partition.is_discrete() {
            let Some((start, len)) = regions.target(&self.partition) else { break };
            let vertex = self.partition.cell(start)[0];
            let before = self.partition.mark();
            let first_word = self.words.len();
            let trace = RefinementTrace::Record(&mut self.words);
            let work = self.partition.individualize(vertex, trace, self.clock)?.work;
            self.levels.push(SearchLevel {
                vertex,
                target: (start, len),
                words: first_word..self.words.len(),
                cells: self.partition.number(),
                before,
                after: self.partition.mark(),
                nesting: regions.nesting(),
                closed: usize::MAX,
                failures: 0,
                probe: None,
            });
            for &start in self.partition.splits_since(before) {
                self.start_level[start as usize] = self.levels.len() as u32;
            }
            regions.update(self.graph, &self.partition, before, work);
        }
        // A level is closed where the next one lies no deeper than it does itself.
        let mut open: Vec<usize> = Vec::new();
        for level in 0..self.levels.len() {
            while let Some(&above) = open.last()
                && self.levels[level].nesting <= self.levels[above].nesting
            {
                self.levels[above].closed = level - 1;
                open.pop();
            }
            open.push(level);
        }
        self.leaf = self.partition.elements().to_vec();
        self.leaf_position = vec![0; self.leaf.len()];
        for (position, &vertex) in (0..).zip(&self.leaf) {
            self.leaf_position[vertex as usize] = position;
        }
        Ok(())
    }

    /// Finds the whole orbit of the base point of a level in the stabilizer of those before; returns its length.
    ///
    /// The partition is at the node above the level, before and after.
    fn complete(&mut self, level: usize) -> Result<u32> {
        let SearchLevel { vertex: base, target: (start, len), .. } = self.levels[level];
        let mut failed = Vec::new();
        for index in start..start + len {
            if self.orbits.size(base) == len {
                break;
            }
            let candidate = self.leaf[index as usize];
            let root = self.orbits.find(candidate);
            if root == self.orbits.find(base) || self.failed[root as usize] {
                continue;
            }
            let found = loop {
                match self.explore(level, candidate)? {
                    Verdict::WantProbe(wanted) => self.make_probe(level, wanted)?,
                    Verdict::Automorphism(permutation) => break Some(permutation),
                    Verdict::None => break None,
                }
            };
            match found {
                Some(permutation) => {
                    for &(from, to) in permutation.moves() {
                        let (stays, goes) = self.orbits.join(from, to);
                        self.failed[stays as usize] |= self.failed[goes as usize];
                    }
                    self.generators.push((permutation, level));
                }
                None => {
                    self.failed[root as usize] = true;
                    failed.push(root);
                }
            }
        }
        for vertex in failed {
            let root = self.orbits.find(vertex);
            self.failed[root as usize] = false;
        }
        Ok(self.orbits.size(base))
    }

    /// Searches below `candidate`, put in the place of the base point of `level`, for an automorphism.
    ///
    /// The partition is at the node above the level, before and after.
    fn explore(&mut self, level: usize, candidate: u32) -> Result<Verdict> {
        let bottom = self.partition.mark();
        let verdict = self.explore_below(level, candidate);
        self.partition.undo(bottom);
        verdict
    }

    fn explore_below(&mut self, level: usize, candidate: u32) -> Result<Verdict> {
        let root = self.partition.mark();
        if !self.compare(level, candidate)? {
            return Ok(Verdict::None);
        }
        if let Some(permutation) = self.automorphism(level, level, root)? {
            return Ok(Verdict::Automorphism(permutation));
        }
        let mut nodes: Vec<SearchNode> = Vec::new();
        nodes.extend(self.node(level + 1)?);
        while let Some(node) = nodes.last_mut() {
            let depth = node.level;
            self.partition.undo(node.mark);
            let failed = match node.next(&self.partition, self.levels[depth].target.0) {
                Some(child) => {
                    if self.compare(depth, child)? {
                        if let Some(permutation) = self.automorphism(level, depth, root)? {
                            return Ok(Verdict::Automorphism(permutation));
                        }
                        if let Some(below) = self.node(depth + 1)? {
                            nodes.push(below);
                            continue;
                        }
                    }
                    depth
                }
                None => {
                    nodes.pop();
                    depth - 1
                }
            };
            let here = &mut self.levels[failed];
            here.failures += 1;
            if failed > level && here.probe.is_none() && here.failures > PATIENCE + here.target.1 as usize / 8 {
                return Ok(Verdict::WantProbe(failed));
            }
        }
        Ok(Verdict::None)
    }

    /// Individualizes a vertex in the place of a level's base point; whether the trace is the first path's.
    fn compare(&mut self, level: usize, vertex: u32) -> Result<bool> {
        let SearchLevel { words, cells, .. } = &self.levels[level];
        let trace = RefinementTrace::Compare { words: &self.words[words.clone()], prefix: 0 };
        let outcome = self.partition.individualize(vertex, trace, self.clock)?;
        Ok(outcome.matches && self.partition.number() == *cells)
    }

    /// The node whose children belong to `level`. None below a leaf, where the probe shows that it is no image of the
    /// first path's node, or where the target cell is not in its place (which needs a collision of two hashes).
    fn node(&mut self, level: usize) -> Result<Option<SearchNode>> {
        let Some(&SearchLevel { vertex, target: (start, len), .. }) = self.levels.get(level) else { return Ok(None) };
        if !self.is_cell(start, len) || !self.probe(level)? {
            return Ok(None);
        }
        let first = if self.partition.cell_of(vertex) == start { vertex } else { self.partition.cell(start)[0] };
        Ok(Some(SearchNode { level, mark: self.partition.mark(), first: Some(first), tried: first, others: None }))
    }

    fn is_cell(&self, start: u32, len: u32) -> bool {
        let vertex = self.partition.elements()[start as usize];
        self.partition.cell_of(vertex) == start && self.partition.cell_len(start) == len
    }

    /// Whether the partition could be an image of the first path's node above `level`, as far as the probe can tell.
    fn probe(&mut self, level: usize) -> Result<bool> {
        let Some(Probe { cell: (start, len), prefix, .. }) = self.levels[level].probe else { return Ok(true) };
        if !self.is_cell(start, len) {
            return Ok(false);
        }
        let vertices: Vec<u32> = self.partition.cell(start).iter().copied().take(PATIENCE).collect();
        let mut seen = HashMap::new();
        for vertex in vertices {
            let hash = self.hash_of_child(vertex, prefix)?.hash;
            let seen = seen.entry(hash).or_insert(0);
            *seen += 1;
            let expected = self.levels[level].probe.as_ref().and_then(|probe| probe.hashes.get(&hash));
            if *seen > expected.copied().unwrap_or(0) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The hash of the trace of a child, which is then undone.
    fn hash_of_child(&mut self, vertex: u32, prefix: usize) -> Result<Refinement> {
        let mark = self.partition.mark();
        let outcome = self.partition.individualize(vertex, RefinementTrace::Compare { words: &[], prefix }, self.clock);
        self.partition.undo(mark);
        outcome
    }

    /// Works out the probe of `wanted`. The partition is at the node above `level`, before and after.
    fn make_probe(&mut self, level: usize, wanted: usize) -> Result<()> {
        let bottom = self.partition.mark();
        for above in level..wanted {
            self.compare(above, self.levels[above].vertex)?;
        }
        let fixing = self.generators.iter().filter(|(_, fixed)| *fixed >= wanted).map(|(permutation, _)| permutation);
        let mut orbits = Orbits::of(self.leaf.len(), fixing);
        let mut cells: Vec<(u32, u32)> = self
            .partition
            .starts()
            .map(|start| (self.partition.cell_len(start), start))
            .filter(|cell| cell.0 > 1)
            .collect();
        cells.sort_unstable();
        cells.truncate(3);
        let (start, len) = self.levels[wanted].target;
        cells.push((len, start));
        let mut best = Probe::default();
        for (len, start) in cells {
            best = self.probe_of_cell(start, len, &mut orbits)?;
            if best.hashes.len() > 1 {
                break;
            }
        }
        self.levels[wanted].probe = Some(best);
        self.partition.undo(bottom);
        Ok(())
    }

    /// Hashes the children of one cell, one for each orbit, by as few words as tell most of them apart.
    fn probe_of_cell(&mut self, start: u32, len: u32, orbits: &mut Orbits) -> Result<Probe> {
        let mut vertices = self.partition.cell(start).to_vec();
        vertices.retain(|&v| orbits.find(v) == v);
        let mut probe = Probe { cell: (start, len), prefix: 1, hashes: HashMap::new() };
        loop {
            let before = probe.hashes.len();
            let mut complete = true;
            probe.hashes.clear();
            probe.prefix *= 2;
            for &vertex in &vertices {
                let outcome = self.hash_of_child(vertex, probe.prefix)?;
                complete &= outcome.words < probe.prefix;
                *probe.hashes.entry(outcome.hash).or_insert(0) += orbits.size(vertex);
            }
            let found = probe.hashes.len();
            if complete || found > vertices.len() / 2 || (found > 1 && found <= before + before / 8) {
                return Ok(probe);
            }
        }
    }

    /// The automorphism that the partition, a node of `depth`, shows when it is laid over the first path's at that level.
    ///
    /// `level` is where the two paths part and `mark` the number of splits there. Deep below, where a look costs more than
    /// the refinement did, only the end of the region and levels at doubling distances are looked at.
    fn automorphism(&mut self, level: usize, depth: usize, mark: usize) -> Result<Option<Permutation>> {
        let below = depth - level;
        let closed = depth == self.levels[level].closed;
        if closed || self.partition.is_discrete() || below <= 4 || below.is_power_of_two() {
            let possible = self.map_singles(level, depth, mark);
            let permutation = if possible { self.verified()? } else { None };
            for vertex in self.moved.drain(..) {
                self.image[vertex as usize] = vertex;
                self.preimage[vertex as usize] = vertex;
            }
            return Ok(permutation);
        }
        Ok(None)
    }

    /// Maps vertices that stand alone by position and closes open chains; `false` if another cell has changed its set.
    fn map_singles(&mut self, level: usize, depth: usize, mark: usize) -> bool {
        let range = mark..self.partition.mark();
        if range.len() != self.levels[depth].after - self.levels[level].before {
            return false;
        }
        for index in range {
            let start = self.partition.splits_since(index)[0];
            if self.start_level[start as usize] as usize <= level {
                return false; // two hashes collided
            }
            let len = self.partition.cell_len(start);
            if len == 1 {
                self.map(start);
            } else {
                let inside = |&v: &u32| (start..start + len).contains(&self.leaf_position[v as usize]);
                if !self.partition.cell(start).iter().all(inside) {
                    return false;
                }
            }
            let front = self.partition.cell_of(self.partition.elements()[start as usize - 1]);
            if self.start_level[front as usize] as usize <= level && self.partition.cell_len(front) == 1 {
                self.map(front);
            }
        }
        for index in 0..self.moved.len() {
            let first = self.moved[index];
            if self.preimage[first as usize] != first || self.image[first as usize] == first {
                continue;
            }
            let mut last = first;
            while self.image[last as usize] != last {
                last = self.image[last as usize];
            }
            self.image[last as usize] = first;
            self.preimage[first as usize] = last;
            self.moved.push(last);
        }
        true
    }

    fn map(&mut self, position: u32) {
        let from = self.leaf[position as usize];
        let to = self.partition.elements()[position as usize];
        if from != to && self.image[from as usize] == from {
            self.image[from as usize] = to;
            self.preimage[to as usize] = from;
            self.moved.push(from);
            self.moved.push(to);
        }
    }

    /// The map made by [`Search::map_singles`], if it keeps colors and edges.
    fn verified(&mut self) -> Result<Option<Permutation>> {
        self.moved.sort_unstable();
        self.moved.dedup();
        if self.moved.is_empty() {
            return Ok(None);
        }
        let some_stay = self.moved.len() < self.image.len();
        for index in 0..self.moved.len() {
            let from = self.moved[index];
            let to = self.image[from as usize];
            let neighbors = self.graph.neighbors(from);
            if self.colors[from as usize] != self.colors[to as usize] || neighbors.len() != self.graph.degree(to) {
                return Ok(None);
            }
            if let Some(rows) = self.graph.rows() {
                // Each edge once: as many edges with an end here as there, one to one, are the same edges.
                let row = rows.row(to);
                let (below, above) = neighbors.split_at(neighbors.partition_point(|&w| w < from));
                let kept = |&w: &u32| {
                    let w = self.image[w as usize];
                    row[w as usize / 64] >> (w % 64) & 1 == 1
                };
                let stays = |w: &&u32| self.image[**w as usize] == **w;
                if !above.iter().all(kept) || (some_stay && !below.iter().filter(stays).all(kept)) {
                    return Ok(None);
                }
                self.clock.spend(neighbors.len())?;
                continue;
            }
            if self.stamped == u32::MAX {
                self.stamp.fill(0);
                self.stamped = 0;
            }
            self.stamped += 1;
            for &w in self.graph.neighbors(to) {
                self.stamp[w as usize] = self.stamped;
            }
            if neighbors.iter().any(|&w| self.stamp[self.image[w as usize] as usize] != self.stamped) {
                return Ok(None);
            }
            self.clock.spend(2 * neighbors.len())?;
        }
        Ok(Some(Permutation::from_moves(self.moved.iter().map(|&v| (v, self.image[v as usize])).collect())))
    }
}

impl SearchNode {
    /// The next child to try; the others are listed only after the first failed, for most nodes end with it.
    fn next(&mut self, partition: &Partition<'_>, target: u32) -> Option<u32> {
        if let Some(first) = self.first.take() {
            self.tried = first;
            return Some(first);
        }
        let tried = self.tried;
        let list = || partition.cell(target).iter().copied().filter(|&v| v != tried).collect::<Vec<_>>();
        self.others.get_or_insert_with(list).pop()
    }
}
