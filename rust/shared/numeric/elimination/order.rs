//! Orders of elimination with little fill: approximate minimum degree on the quotient graph.
//!
//! Eliminating a vertex joins its neighbors to a clique. The clique is kept as one element (its list of vertices), elements
//! it covers are absorbed, and vertices with the same neighbors and elements are merged and eliminated together. The degree
//! of a vertex is bounded from above by the sizes of its elements outside the newest one.
//!
//! Source: P. Amestoy, T. Davis, I. Duff (1996), An approximate minimum degree ordering algorithm.

use crate::Result;
use crate::monitor::Progress;

/// An order of the vertices `0..neighbors.len()`; those marked in `last` come at the end, in rising order.
///
/// `neighbors` must be symmetric, without loops and repetitions.
///
/// # Errors
/// [`crate::Error::Interrupted`] when the caller says so.
pub fn minimum_degree(neighbors: &[Vec<u32>], last: &[bool], progress: &Progress) -> Result<Vec<u32>> {
    let mut state = Quotient::new(neighbors, last);
    let mut order: Vec<u32> = Vec::with_capacity(neighbors.len());
    while let Some(pivot) = state.next_pivot() {
        progress.check()?;
        state.eliminate(pivot);
        state.expand(pivot, &mut order);
    }
    order.extend((0..neighbors.len() as u32).filter(|&v| last[v as usize]));
    Ok(order)
}

/// What has become of a vertex.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Variable,
    /// Eliminated and not absorbed: a clique.
    Element,
    /// Merged into another vertex, or an element covered by a later one.
    Gone,
}

struct Quotient<'a> {
    last: &'a [bool],
    role: Vec<Role>,
    /// Vertices a variable stands for.
    weight: Vec<u32>,
    /// Neighbors of a variable that no element covers; the variables of an element.
    variables: Vec<Vec<u32>>,
    /// Elements a variable belongs to.
    elements: Vec<Vec<u32>>,
    degree: Vec<usize>,
    /// Variables by degree; entries may be out of date.
    buckets: Vec<Vec<u32>>,
    lowest: usize,
    /// Vertices merged into a variable.
    merged: Vec<Vec<u32>>,
    mark: Vec<u64>,
    stamp: u64,
    /// Weight of an element outside the newest one, valid where `seen` is the stamp.
    outside: Vec<usize>,
    seen: Vec<u64>,
}

impl<'a> Quotient<'a> {
    fn new(neighbors: &[Vec<u32>], last: &'a [bool]) -> Self {
        let n = neighbors.len();
        let mut state = Self {
            last,
            role: vec![Role::Variable; n],
            weight: vec![1; n],
            variables: neighbors.to_vec(),
            elements: vec![Vec::new(); n],
            degree: neighbors.iter().map(Vec::len).collect(),
            buckets: vec![Vec::new(); n.max(1)],
            lowest: 0,
            merged: vec![Vec::new(); n],
            mark: vec![0; n],
            stamp: 0,
            outside: vec![0; n],
            seen: vec![0; n],
        };
        (0..n as u32).rev().filter(|&v| !last[v as usize]).for_each(|v| state.file(v));
        state
    }

    fn file(&mut self, v: u32) {
        let degree = self.degree[v as usize];
        self.buckets[degree].push(v);
        self.lowest = self.lowest.min(degree);
    }

    fn next_pivot(&mut self) -> Option<u32> {
        while self.lowest < self.buckets.len() {
            match self.buckets[self.lowest].pop() {
                None => self.lowest += 1,
                Some(v) if self.role[v as usize] == Role::Variable && self.degree[v as usize] == self.lowest => {
                    return Some(v);
                }
                Some(_) => {}
            }
        }
        None
    }

    fn eliminate(&mut self, pivot: u32) {
        let p = pivot as usize;
        self.stamp += 1;
        self.mark[p] = self.stamp;
        let mut clique = std::mem::take(&mut self.variables[p]);
        clique.retain(|&v| self.role[v as usize] == Role::Variable && self.mark[v as usize] != self.stamp);
        clique.iter().for_each(|&v| self.mark[v as usize] = self.stamp);
        for element in std::mem::take(&mut self.elements[p]) {
            if self.role[element as usize] != Role::Element {
                continue;
            }
            self.role[element as usize] = Role::Gone;
            for v in std::mem::take(&mut self.variables[element as usize]) {
                if self.role[v as usize] == Role::Variable && self.mark[v as usize] != self.stamp {
                    self.mark[v as usize] = self.stamp;
                    clique.push(v);
                }
            }
        }
        self.role[p] = Role::Element;
        let size: usize = clique.iter().map(|&v| self.weight[v as usize] as usize).sum();
        self.weigh_elements(&clique);
        for &v in &clique {
            self.update(v, pivot, size);
        }
        self.merge_twins(&clique);
        clique.retain(|&v| self.role[v as usize] == Role::Variable);
        for &v in clique.iter().filter(|&&v| !self.last[v as usize]) {
            self.file(v);
        }
        self.variables[p] = clique;
    }

    /// For each element that meets the new clique, what of it lies outside.
    fn weigh_elements(&mut self, clique: &[u32]) {
        for &v in clique {
            for &element in &self.elements[v as usize] {
                let e = element as usize;
                if self.role[e] != Role::Element {
                    continue;
                }
                if self.seen[e] != self.stamp {
                    self.seen[e] = self.stamp;
                    let alive = self.variables[e].iter().filter(|&&u| self.role[u as usize] == Role::Variable);
                    self.outside[e] = alive.map(|&u| self.weight[u as usize] as usize).sum();
                }
                self.outside[e] -= self.weight[v as usize] as usize;
            }
        }
    }

    /// Brings the lists and the degree of a variable of the new clique up to date.
    fn update(&mut self, v: u32, pivot: u32, size: usize) {
        let i = v as usize;
        let (mut elements, mut variables) =
            (std::mem::take(&mut self.elements[i]), std::mem::take(&mut self.variables[i]));
        let mut degree = size - self.weight[i] as usize;
        elements.retain(|&e| {
            let e = e as usize;
            if self.role[e] != Role::Element {
                return false;
            }
            if self.outside[e] == 0 {
                self.role[e] = Role::Gone; // covered by the new element
                return false;
            }
            degree += self.outside[e];
            true
        });
        elements.push(pivot);
        variables.retain(|&u| self.role[u as usize] == Role::Variable && self.mark[u as usize] != self.stamp);
        degree += variables.iter().map(|&u| self.weight[u as usize] as usize).sum::<usize>();
        self.degree[i] = degree.min(self.buckets.len() - 1);
        (self.elements[i], self.variables[i]) = (elements, variables);
    }

    /// Merges the variables of the clique that cannot be told apart any more.
    fn merge_twins(&mut self, clique: &[u32]) {
        let mut keyed: Vec<(u64, u32)> = clique
            .iter()
            .filter(|&&v| !self.last[v as usize])
            .map(|&v| {
                let i = v as usize;
                self.elements[i].sort_unstable();
                self.variables[i].sort_unstable();
                let mix = |key: u64, &x: &u32| (key ^ u64::from(x)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
                let key = self.elements[i].iter().fold(1, mix);
                (self.variables[i].iter().fold(key ^ 0x55, mix), v)
            })
            .collect();
        keyed.sort_unstable();
        for group in keyed.chunk_by(|a, b| a.0 == b.0) {
            let mut kept: Vec<u32> = Vec::new();
            for &(_, v) in group {
                let same = |&u: &u32| {
                    self.elements[u as usize] == self.elements[v as usize]
                        && self.variables[u as usize] == self.variables[v as usize]
                };
                match kept.iter().copied().find(same) {
                    None => kept.push(v),
                    Some(twin) => {
                        self.degree[twin as usize] -= self.weight[v as usize] as usize;
                        self.weight[twin as usize] += self.weight[v as usize];
                        self.role[v as usize] = Role::Gone;
                        self.merged[twin as usize].push(v);
                    }
                }
            }
        }
    }

    /// Writes a variable and all it stands for.
    fn expand(&self, v: u32, order: &mut Vec<u32>) {
        let mut waiting = vec![v];
        while let Some(v) = waiting.pop() {
            order.push(v);
            waiting.extend(&self.merged[v as usize]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order_of(neighbors: &[Vec<u32>], last: &[bool]) -> Vec<u32> {
        minimum_degree(neighbors, last, &Progress::default()).unwrap()
    }
    use proptest::prelude::*;

    /// Entries below the diagonal after elimination in an order.
    fn fill(neighbors: &[Vec<u32>], order: &[u32]) -> usize {
        let mut sets: Vec<std::collections::BTreeSet<u32>> =
            neighbors.iter().map(|list| list.iter().copied().collect()).collect();
        let mut total = 0;
        for &v in order {
            let around: Vec<u32> = std::mem::take(&mut sets[v as usize]).into_iter().collect();
            total += around.len();
            for &u in &around {
                sets[u as usize].extend(around.iter().copied().filter(|&w| w != u));
                sets[u as usize].remove(&v);
            }
        }
        total
    }

    fn grid(side: usize) -> Vec<Vec<u32>> {
        let at = |i: usize, j: usize| (i * side + j) as u32;
        (0..side * side)
            .map(|v| {
                let (i, j) = (v / side, v % side);
                let mut list = Vec::new();
                list.extend((i > 0).then(|| at(i - 1, j)));
                list.extend((j > 0).then(|| at(i, j - 1)));
                list.extend((j + 1 < side).then(|| at(i, j + 1)));
                list.extend((i + 1 < side).then(|| at(i + 1, j)));
                list
            })
            .collect()
    }

    #[test]
    fn a_tree_is_eliminated_without_fill_and_a_grid_with_little() {
        let star: Vec<Vec<u32>> =
            (0..10).map(|v| if v == 4 { vec![0, 1, 2, 3, 5, 6, 7, 8, 9] } else { vec![4] }).collect();
        assert_eq!(fill(&star, &order_of(&star, &[false; 10])), 9);
        let grid = grid(30);
        let order = order_of(&grid, &vec![false; 900]);
        let natural: Vec<u32> = (0..900).collect();
        assert!(fill(&grid, &order) * 2 < fill(&grid, &natural), "{}", fill(&grid, &order));
    }

    proptest! {
        #[test]
        fn an_order_lists_each_vertex_once_and_the_last_ones_last(
            n in 1usize..20,
            pairs in prop::collection::vec((0u32..20, 0u32..20), 0..40),
            seed: u32,
        ) {
            let mut neighbors = vec![Vec::new(); n];
            for (u, v) in pairs {
                let (u, v) = (u % n as u32, v % n as u32);
                if u != v && !neighbors[u as usize].contains(&v) {
                    neighbors[u as usize].push(v);
                    neighbors[v as usize].push(u);
                }
            }
            let last: Vec<bool> = (0..n).map(|v| seed >> v & 1 == 1 && v % 3 == 0).collect();
            let order = order_of(&neighbors, &last);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..n as u32).collect::<Vec<_>>());
            let tail = last.iter().filter(|&&is| is).count();
            prop_assert!(order[n - tail..].iter().all(|&v| last[v as usize]));
        }
    }
}
