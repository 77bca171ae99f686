//! Regions of an equitable partition, and the choice of the next cell to individualize from.
//!
//! Two cells are *joined* if some but not all pairs between them are edges; where all or none are, what happens in one cell
//! cannot be seen in the other. A region is a set of cells closed under joining: individualizing and refining within it
//! leaves all others as they are. The copies of a component, or the branches of a tree at a fixed vertex, are regions.
//!
//! Regions are found by walking from newly split cells over joined ones, one vertex per cell, for as long as that takes no
//! more than the refinement before it. They nest; the innermost is finished first, and in it a largest cell is chosen.
//!
//! Source: Junttila and Kaski (2011), Conflict propagation and component recursion for canonical labeling.

use super::adjacency::Adjacency;
use super::partition::Partition;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Candidates for the next target: largest first, then the one furthest to the front. Entries of changed cells are skipped.
type Queue = BinaryHeap<(u32, Reverse<u32>)>;

/// The nest of regions around the next target.
#[derive(Debug)]
pub struct Regions {
    /// From the outermost inwards, each with its number.
    nest: Vec<(u32, Queue)>,
    /// The innermost region each vertex has been put in.
    region: Vec<u32>,
    numbers: u32,
    /// Scratch: for each cell the neighbors one vertex has there.
    met: Vec<u32>,
}

impl Regions {
    /// One region for all.
    pub fn new(partition: &Partition<'_>) -> Self {
        let n = partition.elements().len();
        let queue = partition.starts().map(|start| (partition.cell_len(start), Reverse(start))).collect();
        Self { nest: vec![(0, queue)], region: vec![0; n], numbers: 1, met: vec![0; n] }
    }

    /// How many regions lie around the last target.
    pub fn nesting(&self) -> usize {
        self.nest.len()
    }

    /// The first position and the length of the cell to individualize from, of more than one vertex; none at a leaf.
    pub fn target(&mut self, partition: &Partition<'_>) -> Option<(u32, u32)> {
        while let Some((number, queue)) = self.nest.last_mut() {
            while let Some((len, Reverse(start))) = queue.pop() {
                let vertex = partition.elements()[start as usize];
                let unchanged = partition.cell_of(vertex) == start && partition.cell_len(start) == len;
                if len > 1 && unchanged && self.region[vertex as usize] == *number {
                    return Some((start, len));
                }
            }
            self.nest.pop();
        }
        None
    }

    /// Takes note of the cells split off since `mark`, by a refinement that visited `work` neighbors.
    pub fn update(&mut self, graph: &Adjacency, partition: &Partition<'_>, mark: usize, work: usize) {
        let Some(&(outer, _)) = self.nest.last() else { return };
        let outermost_new = self.nest.len();
        let mut budget = 4 * work + 64;
        for &start in partition.splits_since(mark) {
            if partition.cell_len(start) > 1 && self.region_of(partition, start) == outer {
                self.close(graph, partition, start, &mut budget);
            }
        }
        for &start in partition.splits_since(mark) {
            let front = partition.cell_of(partition.elements()[start as usize - 1]);
            for cell in [start, front] {
                let len = partition.cell_len(cell);
                let number = self.region_of(partition, cell);
                // What went into a new region is queued there already.
                if len > 1 && number == outer {
                    self.nest[outermost_new - 1].1.push((len, Reverse(cell)));
                }
            }
        }
    }

    fn region_of(&self, partition: &Partition<'_>, start: u32) -> u32 {
        self.region[partition.elements()[start as usize] as usize]
    }

    /// Makes the cells that `start` is joined with, directly or not, a region of their own, if the budget lasts.
    fn close(&mut self, graph: &Adjacency, partition: &Partition<'_>, start: u32, budget: &mut usize) {
        let outer = self.region_of(partition, start);
        let number = self.numbers;
        self.numbers += 1;
        let first = |cell: u32| partition.elements()[cell as usize] as usize;
        // While the walk lasts, only the first vertex of each cell carries the new number.
        let mut cells = vec![start];
        self.region[first(start)] = number;
        let mut next = 0;
        let mut closed = true;
        while let Some(&cell) = cells.get(next) {
            next += 1;
            let neighbors = graph.neighbors(first(cell) as u32);
            let cost = neighbors.len() + partition.cell_len(cell) as usize;
            closed = cost <= *budget;
            if !closed {
                break;
            }
            *budget -= cost;
            for &w in neighbors {
                self.met[partition.cell_of(w) as usize] += 1;
            }
            for &w in neighbors {
                let other = partition.cell_of(w);
                let met = std::mem::take(&mut self.met[other as usize]);
                let joined = met > 0 && met < partition.cell_len(other);
                if joined && self.region[first(other)] == outer && other != cell {
                    self.region[first(other)] = number;
                    cells.push(other);
                }
            }
        }
        if closed {
            for &cell in &cells {
                for &vertex in partition.cell(cell) {
                    self.region[vertex as usize] = number;
                }
            }
            let queue = cells.iter().map(|&cell| (partition.cell_len(cell), Reverse(cell))).collect();
            self.nest.push((number, queue));
        } else {
            for &cell in &cells {
                self.region[first(cell)] = outer;
            }
        }
    }
}
