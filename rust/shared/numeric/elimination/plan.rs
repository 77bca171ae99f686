//! The symbolic half of elimination: which columns are eliminated together, and what each front holds.
//!
//! Nodes are taken in an order of little fill. Node j leaves behind its later neighbors, `rows(j)`; the smallest of them is
//! its parent in the elimination tree, and `rows(j) = (neighbors after j) + rows(children) - j`. Consecutive columns with the
//! same rows make a supernode; small ones join their parent though a few zeros come in. A supernode of k columns and b rows
//! is eliminated in a dense front of size k + b, whose lower right b x b block is added into the front of its parent.
//!
//! Sources: I. Duff and J. Reid (1983), The multifrontal solution of indefinite sparse symmetric linear equations;
//! J. Liu (1990), The role of elimination trees in sparse factorization.

use super::order::minimum_degree;
use crate::Result;
use crate::monitor::Progress;

/// Columns that are eliminated together.
#[derive(Clone, Debug, Default)]
pub struct Supernode {
    /// The position of its first column in the order.
    pub first: usize,
    /// How many columns it has.
    pub columns: usize,
    /// The positions it leaves behind, rising.
    pub rows: Vec<u32>,
    /// Supernodes that add into its front, in the order their blocks lie on the stack.
    pub children: Vec<u32>,
    /// Where its rows lie in the front of its parent.
    pub relative: Vec<u32>,
}

impl Supernode {
    /// Nodes in its front.
    pub fn size(&self) -> usize {
        self.columns + self.rows.len()
    }

    /// Where a position lies in its front.
    pub fn local(&self, position: u32) -> usize {
        match (position as usize).checked_sub(self.first) {
            Some(column) if column < self.columns => column,
            _ => self.columns + self.rows.partition_point(|&row| row < position),
        }
    }
}

/// An order and its supernodes, children before parents.
#[derive(Clone, Debug)]
pub struct EliminationPlan {
    /// Position of each node in the order.
    pub position: Vec<u32>,
    /// The supernodes.
    pub supernodes: Vec<Supernode>,
    /// The supernode of each position.
    pub owner: Vec<u32>,
    /// Entries of all blocks that wait on the stack at once, at most.
    pub stack: usize,
    /// The largest front.
    pub front: usize,
    /// Multiplications of one elimination, in nodes.
    pub work: f64,
}

/// Nodes of a supernode that is merged with its parent whatever zeros come in.
const SMALL: usize = 4;

impl EliminationPlan {
    /// Plans the elimination of a symmetric pattern; nodes marked in `last` make the end of the last supernode, all dense.
    ///
    /// `neighbors` must be symmetric, without loops and repetitions.
    pub fn new(mut neighbors: Vec<Vec<u32>>, last: &[bool], progress: &Progress) -> Result<Self> {
        let tail: Vec<u32> = (0..neighbors.len() as u32).filter(|&v| last[v as usize]).collect();
        for (i, &v) in tail.iter().enumerate() {
            progress.check()?;
            let list = &mut neighbors[v as usize];
            list.retain(|&u| !last[u as usize]);
            list.extend(tail[..i].iter().chain(&tail[i + 1..]));
        }
        let order = minimum_degree(&neighbors, last, progress)?;
        let (parent, rows) = eliminate(&neighbors, &order, progress)?;
        let (order, parent, rows) = postorder(&order, &parent, rows);
        let mut position = vec![0; order.len()];
        order.iter().zip(0..).for_each(|(&v, at)| position[v as usize] = at);
        Ok(Self::with_supernodes(position, supernodes(&parent, rows)))
    }

    fn with_supernodes(position: Vec<u32>, mut supernodes: Vec<Supernode>) -> Self {
        let mut owner = vec![0u32; position.len()];
        for (s, supernode) in supernodes.iter().enumerate() {
            owner[supernode.first..][..supernode.columns].fill(s as u32);
        }
        for s in 0..supernodes.len() {
            if let Some(&row) = supernodes[s].rows.first() {
                let parent = owner[row as usize] as usize;
                let relative = supernodes[s].rows.iter().map(|&row| supernodes[parent].local(row) as u32).collect();
                supernodes[s].relative = relative;
                supernodes[parent].children.push(s as u32);
            }
        }
        let (mut waiting, mut blocks, mut stack, mut work) = (0, Vec::new(), 0, 0.0);
        for supernode in &supernodes {
            let own = supernode.rows.len() * supernode.rows.len();
            stack = stack.max(waiting + own);
            let children: usize = blocks.drain(blocks.len() - supernode.children.len()..).sum();
            waiting = waiting + own - children;
            if own > 0 {
                blocks.push(own);
            }
            let (f, b) = (supernode.size() as f64, supernode.rows.len() as f64);
            work += (f * (f + 1.0) * (f + 2.0) - b * (b + 1.0) * (b + 2.0)) / 6.0;
        }
        let front = supernodes.iter().map(Supernode::size).max().unwrap_or(0);
        Self { position, supernodes, owner, stack, front, work }
    }

    /// Nodes.
    pub fn nodes(&self) -> usize {
        self.position.len()
    }
}

/// The parent of each position in the elimination tree (itself for a root), and the positions it leaves behind.
fn eliminate(neighbors: &[Vec<u32>], order: &[u32], progress: &Progress) -> Result<(Vec<u32>, Vec<Vec<u32>>)> {
    let n = order.len();
    let mut position = vec![0u32; n];
    order.iter().zip(0..).for_each(|(&v, at)| position[v as usize] = at);
    let mut rows: Vec<Vec<u32>> = Vec::with_capacity(n);
    let mut parent = Vec::with_capacity(n);
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); n];
    let mut mark = vec![u32::MAX; n];
    for (j, &v) in order.iter().enumerate() {
        progress.check()?;
        let mut found = Vec::new();
        let own = neighbors[v as usize].iter().map(|&u| &position[u as usize]);
        for &row in own.chain(children[j].iter().flat_map(|&child| &rows[child as usize])) {
            if row as usize > j && mark[row as usize] != j as u32 {
                mark[row as usize] = j as u32;
                found.push(row);
            }
        }
        found.sort_unstable();
        parent.push(found.first().map_or(j as u32, |&row| row));
        if let Some(&row) = found.first() {
            children[row as usize].push(j as u32);
        }
        rows.push(found);
    }
    Ok((parent, rows))
}

/// The same elimination with subtrees side by side, children before parents.
fn postorder(order: &[u32], parent: &[u32], mut rows: Vec<Vec<u32>>) -> (Vec<u32>, Vec<u32>, Vec<Vec<u32>>) {
    let n = order.len();
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); n];
    let mut waiting: Vec<(u32, bool)> = Vec::new();
    for j in 0..n as u32 {
        match parent[j as usize] {
            root if root == j => waiting.push((j, false)),
            above => children[above as usize].push(j),
        }
    }
    waiting.reverse();
    let (mut sequence, mut place) = (Vec::with_capacity(n), vec![0u32; n]);
    while let Some((j, ready)) = waiting.pop() {
        if ready {
            place[j as usize] = sequence.len() as u32;
            sequence.push(j);
            continue;
        }
        waiting.push((j, true));
        // The child with the largest front comes last, right before its parent: the two may be one supernode.
        children[j as usize].sort_by_key(|&child| std::cmp::Reverse((rows[child as usize].len(), child)));
        waiting.extend(children[j as usize].iter().map(|&child| (child, false)));
    }
    let renamed = |j: &u32| place[*j as usize];
    let new_rows = sequence.iter().map(|&j| {
        let mut list: Vec<u32> = std::mem::take(&mut rows[j as usize]).iter().map(renamed).collect();
        list.sort_unstable();
        list
    });
    let new_rows: Vec<_> = new_rows.collect();
    let new_parent = sequence.iter().map(|&j| renamed(&parent[j as usize])).collect();
    (sequence.iter().map(|&j| order[j as usize]).collect(), new_parent, new_rows)
}

/// Joins columns with the same rows, and small supernodes with their parents at the price of a few zeros.
fn supernodes(parent: &[u32], rows: Vec<Vec<u32>>) -> Vec<Supernode> {
    let mut found: Vec<Supernode> = Vec::new();
    for (j, list) in rows.into_iter().enumerate() {
        let joins = |below: &&mut Supernode| {
            let zeros = below.columns * (list.len() + 1).saturating_sub(below.rows.len());
            let entries = below.columns * below.rows.len() + list.len() + 1;
            let cheap = zeros == 0 || (below.columns < SMALL && zeros <= 2 * SMALL) || zeros * 12 < entries;
            cheap && parent[j - 1] as usize == j
        };
        match found.last_mut().filter(joins) {
            Some(below) => (below.columns, below.rows) = (below.columns + 1, list),
            None => found.push(Supernode { first: j, columns: 1, rows: list, ..Supernode::default() }),
        }
    }
    found
}
