//! A stage of a table over independent subsets: what happens to the frontier at once, block by block.
//!
//! `set_table` plans stages, `block` works on one.

use super::family::Mask;

/// The hard edges of some vertices, `words` words for each.
#[derive(Clone, Debug)]
pub struct NeighborRows {
    /// Words of a mask.
    pub words: usize,
    /// The masks, one after the other.
    pub bits: Vec<u64>,
}

impl NeighborRows {
    /// The masks.
    pub fn masks<const W: usize>(&self) -> Vec<Mask<W>> {
        self.bits.chunks_exact(self.words).map(Mask::from_words).collect()
    }
}

/// Where a vertex is during a stage.
#[derive(Clone, Copy, Debug)]
pub enum Location {
    /// A bit of the block.
    Local(usize),
    /// One of the outer vertices.
    OuterSet(usize),
}

/// What happens to a block at once.
#[derive(Debug)]
pub enum StageStep {
    /// The lowest vertices are forgotten, a vertex is introduced, or both.
    Change {
        /// How many go.
        forgotten_now: usize,
        /// What is introduced.
        introduction: Option<Introduction>,
    },
    /// Each element is multiplied by the weight for the states at these places.
    Multiply {
        /// The places, the first the lowest bit of the index.
        places: Vec<Location>,
        /// The first of the weights.
        weights: usize,
    },
}

/// A vertex is introduced.
#[derive(Debug)]
pub struct Introduction {
    /// Its bit among those that stay, unless it is forgotten at once.
    pub place: Option<usize>,
    /// Its hard neighbors in the block.
    pub hard: NeighborRows,
    /// Its hard neighbors among the outer vertices.
    pub blocked: NeighborRows,
    /// Its weights, out and in.
    pub weights: usize,
}

/// The vertices of a block between events.
#[derive(Debug)]
pub struct Frame {
    /// Their number.
    pub width: usize,
    /// Their hard edges.
    pub rows: NeighborRows,
    /// For each outer vertex, its hard neighbors among them.
    pub touching: NeighborRows,
}

/// Events done together, block by block.
#[derive(Debug)]
pub struct Stage {
    /// The frontier before.
    pub width: usize,
    /// Its hard edges.
    pub rows: NeighborRows,
    /// How many of its lowest vertices are in the block.
    pub local: usize,
    /// What happens.
    pub operations: Vec<StageStep>,
    /// The vertices of the block before each operation and at the end.
    pub frames: Vec<Frame>,
    /// How many of the lowest vertices of the block lie below all outer vertices afterwards.
    pub near: usize,
    /// The bits of the others afterwards.
    pub far: Vec<usize>,
    /// The bits of the outer vertices afterwards.
    pub outer: Vec<usize>,
    /// Elements before and after.
    pub lengths: [u64; 2],
    /// Most elements of a block.
    pub block: u64,
}
