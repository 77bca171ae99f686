//! An integer matrix, and what its elimination takes.

use super::plan::EliminationPlan;
use crate::memory::available_now;
use crate::monitor::Progress;
use crate::{Error, Result};

/// The kind of matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixKind {
    /// Symmetric; its determinant.
    Symmetric,
    /// Any matrix with a symmetric pattern; its determinant.
    General,
    /// Skew-symmetric, two rows for each node of the plan; its Pfaffian.
    Skew,
}

/// An integer matrix and the plan of its elimination.
#[derive(Clone, Debug)]
pub struct PlannedMatrix {
    pub(super) kind: MatrixKind,
    pub(super) plan: EliminationPlan,
    /// Whether pivots are expected to be searched for in the last front.
    pub(super) searches: bool,
    /// Where the entries of each supernode begin.
    starts: Vec<u32>,
    /// Place in the front, row and column, and value.
    entries: Vec<(u32, u32, i64)>,
    /// What is added to the values for each unit of the parameter; empty where nothing is.
    slopes: Vec<i64>,
}

impl PlannedMatrix {
    /// A matrix from its entries, which add up where a place is named more than once: of a symmetric matrix one triangle, of a
    /// skew one each pair of places once, of a general one all. Scalar rows of a skew matrix are `2 node` and `2 node + 1`.
    ///
    /// `last` marks nodes for the last front.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] when the caller says so.
    pub fn new(
        kind: MatrixKind,
        nodes: usize,
        entries: &[(u32, u32, i64)],
        last: &[bool],
        progress: &Progress,
    ) -> Result<Self> {
        Self::linear(kind, nodes, entries, &[], last, progress)
    }

    /// A matrix whose entries are `value + t slope` for a parameter t; no slopes, or one for each entry.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn linear(
        kind: MatrixKind,
        nodes: usize,
        entries: &[(u32, u32, i64)],
        slopes: &[i64],
        last: &[bool],
        progress: &Progress,
    ) -> Result<Self> {
        let width = if kind == MatrixKind::Skew { 2 } else { 1 };
        let mut neighbors = vec![Vec::new(); nodes];
        for &(row, col, _) in entries {
            let (u, v) = (row / width, col / width);
            if u != v {
                neighbors[u as usize].push(v);
                neighbors[v as usize].push(u);
            }
        }
        for list in &mut neighbors {
            list.sort_unstable();
            list.dedup();
        }
        let plan = EliminationPlan::new(neighbors, last, progress)?;
        let mut placed: Vec<(u32, (u32, u32, i64), i64)> = entries
            .iter()
            .enumerate()
            .map(|(e, &(row, col, value))| {
                let (u, v) = (plan.position[(row / width) as usize], plan.position[(col / width) as usize]);
                let owner = plan.owner[u.min(v) as usize];
                let supernode = &plan.supernodes[owner as usize];
                let local = |position, scalar: u32| supernode.local(position) as u32 * width + scalar % width;
                let (i, j) = (local(u, row), local(v, col));
                let slope = slopes.get(e).copied().unwrap_or(0);
                let (lower, slope) = match kind {
                    MatrixKind::General => ((i, j, value), slope),
                    MatrixKind::Skew if i < j => ((j, i, -value), -slope),
                    MatrixKind::Symmetric | MatrixKind::Skew => ((i.max(j), i.min(j), value), slope),
                };
                (owner, lower, slope)
            })
            .collect();
        placed.sort_unstable_by_key(|&(owner, ..)| owner);
        let mut starts = vec![0u32; plan.supernodes.len() + 1];
        placed.iter().for_each(|&(owner, ..)| starts[owner as usize + 1] += 1);
        (1..starts.len()).for_each(|s| starts[s] += starts[s - 1]);
        let slopes = if slopes.is_empty() { Vec::new() } else { placed.iter().map(|&(.., slope)| slope).collect() };
        let searches = last.contains(&true);
        let entries = placed.into_iter().map(|(_, entry, _)| entry).collect();
        Ok(Self { kind, plan, searches, starts, entries, slopes })
    }

    /// The kind.
    pub fn kind(&self) -> MatrixKind {
        self.kind
    }

    /// The plan.
    pub fn plan(&self) -> &EliminationPlan {
        &self.plan
    }

    /// The entries of a supernode: place in the front, value and slope.
    pub(super) fn entries_of(&self, s: usize) -> impl Iterator<Item = (u32, u32, i64, i64)> {
        let own = self.starts[s] as usize..self.starts[s + 1] as usize;
        let slope = |e: usize| self.slopes.get(e).copied().unwrap_or(0);
        own.map(move |e| (self.entries[e].0, self.entries[e].1, self.entries[e].2, slope(e)))
    }

    /// Scalar rows of a node.
    pub(super) fn width(&self) -> usize {
        if self.kind == MatrixKind::Skew { 2 } else { 1 }
    }

    /// Bytes one elimination takes beside the plan.
    pub fn bytes(&self) -> u128 {
        let (width, front) = (self.width() as u128, self.plan.front as u128);
        8 * width * width * (self.plan.stack as u128 + 3 * front * front)
    }

    /// Multiplications of one elimination, roughly.
    pub fn work(&self) -> f64 {
        self.plan.work * [1.0, 2.0, 8.0][self.kind as usize]
    }
}

/// A vector with room for so many words.
pub(super) fn room(len: usize) -> Result<Vec<u64>> {
    let mut values: Vec<u64> = Vec::new();
    match values.try_reserve_exact(len) {
        Ok(()) => Ok(values),
        Err(_) => {
            let what = "the fronts of an elimination";
            Err(Error::TooLarge { what, needed: 8 * len as u128, limit: available_now().into() })
        }
    }
}
