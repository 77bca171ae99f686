//! Growth constants of any periodic lattice from a window (theorem C of `docs/mathematics/entropy.md`).
//!
//! Order the cells of the lattice lexicographically and let G be the graph of a cell C and all later ones. Then
//! `kappa^sites = lim Z(G) / Z(G - C)`. Whatever lies outside a finite window W of G only weighs the states t of those sites of
//! W that have neighbors outside, its frontier, by numbers that are not negative. So
//!
//!   min over t of Z_W(t) / Z_(W - C)(t)  <=  kappa^sites  <=  max over t of Z_W(t) / Z_(W - C)(t).
//!
//! W grows site by site about C; sites without neighbors outside are summed over. A table holds for each independent set of
//! the frontier both partition functions; every entry is a sum of positive products, right to one rounding a term.

use crate::memory::available_now;
use crate::monitor::Progress;
use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};

/// A cell of a lattice in the plane.
#[derive(Clone, Debug)]
pub struct WindowCell {
    /// Where its sites are.
    pub positions: Vec<[f64; 2]>,
    /// The two translations.
    pub vectors: [[f64; 2]; 2],
    /// Bonds: site, site, and the cell of the second as numbers of translations.
    pub bonds: Vec<(usize, usize, i64, i64)>,
}

/// Which cells come later: those with a positive first coordinate in this basis, or with zero and a positive second one.
pub type CellOrder = [[i64; 2]; 2];

/// What a window proves.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowBounds {
    /// At most `kappa^sites`.
    pub lower: f64,
    /// At least `kappa^sites`.
    pub upper: f64,
    /// Sites of the window.
    pub window: usize,
    /// Sites of its frontier.
    pub frontier: usize,
    /// Most states of a table.
    pub states: usize,
}

/// A site: its cell and its place there.
type Site = (i64, i64, usize);

/// What one more site of the frontier costs, in distances of neighboring sites.
const GROWTH: f64 = 0.7;

/// Most sites of a window.
const MOST_SITES: usize = 5000;

/// States between two questions whether to go on.
const POLL: usize = 1 << 16;

/// Below this, roundings are no longer relative.
const SMALLEST: f64 = 1e-250;

/// The sites of a lattice from a cell on.
struct Later<'a> {
    cell: &'a WindowCell,
    order: CellOrder,
    near: Vec<Vec<Site>>,
    unit: f64,
}

impl<'a> Later<'a> {
    fn new(cell: &'a WindowCell, order: CellOrder) -> Self {
        let mut near = vec![Vec::new(); cell.positions.len()];
        for &(u, v, i, j) in &cell.bonds {
            near[u].push((i, j, v));
            near[v].push((-i, -j, u));
        }
        let [a, b] = cell.vectors;
        let area = (a[0] * b[1] - a[1] * b[0]).abs();
        let unit = (area / cell.positions.len().max(1) as f64).sqrt();
        Self { cell, order, near, unit }
    }

    fn holds(&self, site: Site) -> bool {
        let [first, second] = self.order.map(|row| row[0] * site.0 + row[1] * site.1);
        (first, second) >= (0, 0)
    }

    fn neighbors(&self, site: Site) -> impl Iterator<Item = Site> + '_ {
        let shifted = self.near[site.2].iter().map(move |&(i, j, v)| (site.0 + i, site.1 + j, v));
        shifted.filter(|&other| self.holds(other))
    }

    /// The distance from the middle of the first cell, in distances of neighbors.
    fn distance(&self, site: Site) -> f64 {
        let middle =
            |axis: usize| self.cell.positions.iter().map(|p| p[axis]).sum::<f64>() / self.cell.positions.len() as f64;
        let [a, b] = self.cell.vectors;
        let along = |axis: usize| {
            self.cell.positions[site.2][axis] + site.0 as f64 * a[axis] + site.1 as f64 * b[axis] - middle(axis)
        };
        along(0).hypot(along(1)) / self.unit
    }
}

/// Both partition functions for each state of the frontier, states in rising order.
struct WindowTable {
    words: Vec<u64>,
    whole: Vec<f64>,
    without: Vec<f64>,
    roundings: u64,
}

impl WindowTable {
    /// A site next to those of `mask`; in the first cell it is empty in one of both.
    fn introduce(&mut self, bit: u64, mask: u64, weight: f64, first: bool, progress: &Progress) -> Result<()> {
        let old = self.words.len();
        let joined = self.words.iter().filter(|&&word| word & mask == 0).count();
        let full = |_| Error::TooLarge {
            what: "a window of this width",
            needed: 24 * (old + joined) as u128,
            limit: available_now().into(),
        };
        self.words.try_reserve_exact(joined).map_err(full)?;
        self.whole.try_reserve_exact(joined).map_err(full)?;
        self.without.try_reserve_exact(joined).map_err(full)?;
        for i in 0..old {
            if i % POLL == 0 {
                progress.check()?;
            }
            if self.words[i] & mask == 0 {
                self.words.push(self.words[i] | bit);
                self.whole.push(self.whole[i] * weight);
                self.without.push(if first { 0.0 } else { self.without[i] * weight });
            }
        }
        // A product and the rounding of the weight.
        self.roundings += 3;
        Ok(())
    }

    /// Sums over the site at a place.
    fn forget(&mut self, place: u32, progress: &Progress) -> Result<()> {
        let below = (1u64 << place) - 1;
        let close = |word: u64| (word & below) | (word >> 1 & !below);
        let is_set = |word: u64| word >> place & 1 == 1;
        let size = self.words.len();
        let after =
            |from: usize, set: bool, words: &[u64]| (from..size).find(|&i| is_set(words[i]) == set).unwrap_or(size);
        let (mut i, mut j) = (after(0, false, &self.words), after(0, true, &self.words));
        let empty = self.words.iter().filter(|&&word| !is_set(word)).count();
        let (mut words, mut whole, mut without) =
            (Vec::with_capacity(empty), Vec::with_capacity(empty), Vec::with_capacity(empty));
        // Every state with the site occupied has one with it empty.
        while i < size {
            if words.len() % POLL == 0 {
                progress.check()?;
            }
            let word = close(self.words[i]);
            let (mut sum, mut other) = (self.whole[i], self.without[i]);
            if j < size && close(self.words[j]) == word {
                sum += self.whole[j];
                other += self.without[j];
                j = after(j + 1, true, &self.words);
            }
            words.push(word);
            whole.push(sum);
            without.push(other);
            i = after(i + 1, false, &self.words);
        }
        (self.words, self.whole, self.without) = (words, whole, without);
        self.roundings += 1;
        Ok(())
    }

    /// Both divided by the same power of two, where they have grown.
    fn scale(&mut self) -> Result<()> {
        let most = self.whole.iter().copied().fold(0.0, f64::max);
        let least = self.whole.iter().chain(&self.without).copied().filter(|&x| x > 0.0).fold(f64::INFINITY, f64::min);
        if least < SMALLEST || most > 1.0 / SMALLEST {
            return Err(Error::domain(
                "activity",
                "one with which states differ by more than 1e250",
                "nearer to one, or the width smaller",
            ));
        }
        if most > 1e50 {
            let factor = 2f64.powi(-(most.log2() as i32));
            self.whole.iter_mut().chain(&mut self.without).for_each(|x| *x *= factor);
        }
        Ok(())
    }

    /// The least and the greatest quotient, with what roundings may have moved them by.
    fn quotients(&self) -> (f64, f64) {
        let quotients = self.whole.iter().zip(&self.without).map(|(a, b)| a / b);
        let ends = quotients.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), q| (low.min(q), high.max(q)));
        let slack = (2.0 * self.roundings as f64 + 4.0) * 1.01 * f64::EPSILON / 2.0;
        (ends.0 * (1.0 - slack), ends.1 * (1.0 + slack))
    }
}

/// Bounds from windows that grow to a frontier of `width` sites, or until they surround the cell, within so many states.
///
/// # Errors
/// [`Error::Domain`] if a cell has a bond of a site with itself; [`Error::TooLarge`] if no window fits;
/// [`Error::Interrupted`].
pub fn window_bounds(
    cell: &WindowCell,
    order: CellOrder,
    activity: f64,
    width: usize,
    states: usize,
    progress: &Progress,
) -> Result<WindowBounds> {
    let later = Later::new(cell, order);
    if cell.bonds.iter().any(|&(u, v, i, j)| (i, j) == (0, 0) && u == v) {
        return Err(Error::domain("bonds", "a loop", "between two sites"));
    }
    let mut table = WindowTable { words: vec![0], whole: vec![1.0], without: vec![1.0], roundings: 0 };
    let mut frontier: Vec<Site> = Vec::new();
    let mut inside: BTreeSet<Site> = BTreeSet::new();
    let mut distances: BTreeMap<Site, f64> = BTreeMap::new();
    let mut best: Option<WindowBounds> = None;
    let mut most_states = 1;
    let first = cell.positions.len();
    loop {
        let site = if inside.len() < first {
            (0, 0, inside.len())
        } else {
            let candidates: BTreeSet<Site> =
                frontier.iter().flat_map(|&site| later.neighbors(site)).filter(|site| !inside.contains(site)).collect();
            let score = |site: Site, distance: f64| {
                let done = |other: Site| later.neighbors(other).all(|near| near == site || inside.contains(&near));
                let closed = frontier.iter().chain([&site]).filter(|&&other| done(other)).count();
                distance + GROWTH * (1.0 - closed as f64)
            };
            let scored = candidates.into_iter().map(|site| {
                let distance = *distances.entry(site).or_insert_with(|| later.distance(site));
                (score(site, distance), site)
            });
            match scored.min_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal)) {
                Some((_, site)) => site,
                // A lattice in finite pieces: the window is all of its piece.
                None => break,
            }
        };
        let near: Vec<Site> = later.neighbors(site).collect();
        let mask = (0..frontier.len()).filter(|&i| near.contains(&frontier[i])).map(|i| 1u64 << i).sum();
        if frontier.len() > 61 || table.words.len() > states {
            break;
        }
        table.introduce(1 << frontier.len(), mask, activity, inside.len() < first, progress)?;
        most_states = most_states.max(table.words.len());
        inside.insert(site);
        frontier.push(site);
        let mut place = 0;
        while place < frontier.len() {
            if later.neighbors(frontier[place]).all(|near| inside.contains(&near)) {
                table.forget(place as u32, progress)?;
                frontier.remove(place);
            } else {
                place += 1;
            }
        }
        table.scale()?;
        if inside.len() >= first && frontier.iter().all(|site| (site.0, site.1) != (0, 0)) {
            let (lower, upper) = table.quotients();
            let old = best.as_ref().map_or((0.0, f64::INFINITY), |old| (old.lower, old.upper));
            let (lower, upper) = (lower.max(old.0), upper.min(old.1));
            best = Some(WindowBounds {
                lower,
                upper,
                window: inside.len(),
                frontier: frontier.len(),
                states: most_states,
            });
        }
        // A frontier that no longer grows: a lattice in strips.
        let tight = best.as_ref().is_some_and(|best| best.upper - best.lower < 1e-15 * best.upper);
        if tight || inside.len() > MOST_SITES || (frontier.len() > width && best.is_some()) {
            break;
        }
    }
    best.ok_or(Error::TooLarge {
        what: "a window around this cell",
        needed: 64 * table.words.len() as u128,
        limit: 64 * states as u128,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDERS: [CellOrder; 4] = [[[1, 0], [0, 1]], [[0, 1], [1, 0]], [[-1, 0], [0, -1]], [[1, 1], [1, 0]]];

    fn square() -> WindowCell {
        let bonds = vec![(0, 0, 1, 0), (0, 0, 0, 1)];
        WindowCell { positions: vec![[0.0, 0.0]], vectors: [[1.0, 0.0], [0.0, 1.0]], bonds }
    }

    #[test]
    fn windows_hold_known_constants_and_tighten() {
        let triangular = WindowCell { bonds: vec![(0, 0, 1, 0), (0, 0, 0, 1), (0, 0, 1, -1)], ..square() };
        for (cell, constant) in [(square(), 1.5030480824753322), (triangular, 1.3954859724793027)] {
            for order in ORDERS {
                let mut last = f64::INFINITY;
                for width in [4, 8, 12] {
                    let found = window_bounds(&cell, order, 1.0, width, 1 << 20, &Progress::default()).unwrap();
                    assert!(found.lower <= constant && constant <= found.upper, "{found:?}");
                    assert!(found.upper - found.lower < last);
                    last = found.upper - found.lower;
                }
            }
        }
    }

    #[test]
    fn a_lattice_of_finite_pieces_has_its_constant_exactly() {
        // Triangles apart from one another: four independent sets each.
        let bonds = vec![(0, 1, 0, 0), (1, 2, 0, 0), (0, 2, 0, 0)];
        let cell = WindowCell { positions: vec![[0.0, 0.0], [0.3, 0.0], [0.0, 0.3]], bonds, ..square() };
        let found = window_bounds(&cell, ORDERS[0], 1.0, 8, 1 << 10, &Progress::default()).unwrap();
        assert!(found.lower <= 4.0 && 4.0 <= found.upper && found.upper - found.lower < 1e-13);
        // A bond to the next cell only: a path, whose constant is the golden ratio.
        let path = WindowCell { bonds: vec![(0, 0, 1, 0)], ..square() };
        let found = window_bounds(&path, ORDERS[0], 1.0, 8, 1 << 10, &Progress::default()).unwrap();
        assert!(found.lower <= 1.618033988749895 && 1.618033988749894 <= found.upper);
    }

    #[test]
    fn a_stop_is_heard() {
        let stopped = Progress::default();
        stopped.cancel();
        assert_eq!(window_bounds(&square(), ORDERS[0], 1.0, 8, 1 << 20, &stopped), Err(Error::Interrupted));
    }
}
