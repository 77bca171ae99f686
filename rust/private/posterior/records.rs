//! Records and probabilities of a network given noisy tables that count the same records: data augmentation.
//!
//! Records x_1..x_n are independent with p(x) = prod_v theta_v[parents, x_v], rows of theta_v are Dirichlet of a concentration a_v,
//! and a released cell is its count plus two-sided geometric noise, of mass proportional to exp(-e |release - count|). Given
//! everything else a record's category at v has the weight
//!
//!   w(k) = prod over the tables T of v and of its children: theta_T[cell(k)] g_T[cell(k)],   g = exp(-2 e) or 1,
//!
//! where cell(k) is the one that the record would be in and g says whether the count without it has reached the release: a count
//! that goes away from the release has exp(-e), one that comes nearer exp(e), and the common exp(e) cancels, as does all that is not
//! near v. A sweep draws every category of every record so, then theta | records ~ Dirichlet(a + counts), row by row, and moves rows
//! together with the records that follow them ([`interweaving`]); [`number`] is for a number of records that is not known.
//!
//! Where parities were released instead ([`super::parities`]), all g are 1 and a category that turns a record over has exp(-e times what
//! the parities' distance gains) besides.
//!
//! Source: N. Ju, J. Awan, R. Gong, V. Rao (2022), Data augmentation MCMC for Bayesian inference from privatized data.

mod interweaving;
mod number;

use super::parities::{Offsets, Parities};
use crate::distributions::{RandomSource, gamma};
use crate::monitor::Progress;
use crate::stream::{Xoshiro, xoshiro};
use crate::{Error, Result, memory, parallel};
use rand_core::Rng;

/// The purpose of a sweep's words: "records".
const SWEEP: u64 = 0x0072_6563_6f72_6473;
/// Sums of weights outside are formed again from logarithms: of a sum within, what is below all doubles is no part.
const SAFE: std::ops::Range<f64> = 1e-250..1e250;

/// A node: its table has the parents' axes and its own, the last one fastest.
#[derive(Clone, Debug)]
struct Node {
    size: usize,
    /// Where its table begins among the cells of all.
    offset: usize,
    cells: usize,
    /// Each parent's column, and how far its next category is.
    parents: Vec<(usize, usize)>,
    /// Each child, and how far this node's next category is in its table.
    children: Vec<(usize, usize)>,
}

/// A network whose tables, or their parities, were released with noise.
#[derive(Clone, Debug)]
pub struct NoisyTables {
    nodes: Vec<Node>,
    /// Nodes, parents first.
    order: Vec<usize>,
    /// Of each node: itself, and all that are below it, parents first.
    reach: Vec<Vec<usize>>,
    /// Of all cells, one table after the other; zero where nothing was released.
    released: Vec<i64>,
    /// Whether a cell was released.
    noisy: Vec<bool>,
    concentrations: Vec<f64>,
    exponent: f64,
    /// None where tables were released.
    parities: Parities,
}

/// What is sampled.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// Sweeps before the first draw.
    pub warmup: u64,
    /// Draws that are kept.
    pub draws: u64,
    /// Sweeps to each of them.
    pub thin: u64,
    /// Whether the number of records is known.
    pub known: bool,
}

/// What a chain kept, draw by draw.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draws {
    /// Of all cells.
    pub probabilities: Vec<f64>,
    /// Of all cells.
    pub counts: Vec<i64>,
    /// Of each node: the log-likelihood of the records, in nats.
    pub log_likelihoods: Vec<f64>,
    /// Of each node: how far its counts, or the parities within its table, are from what was released.
    pub distances: Vec<f64>,
}

impl NoisyTables {
    /// Tables of nodes with so many categories and these parents. `noisy` says which cells were released.
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::Domain`] where lengths, columns or numbers do not fit.
    pub fn new(
        sizes: &[usize],
        parents: &[Vec<usize>],
        (released, noisy): (Vec<i64>, Vec<bool>),
        concentrations: Vec<f64>,
        exponent: f64,
    ) -> Result<Self> {
        let count = sizes.len();
        Error::require_shape("parents", [count], [parents.len()])?;
        Error::require_shape("concentrations", [count], [concentrations.len()])?;
        Error::require_all(sizes, |size| (1..=1 << 16).contains(&size), "categories", "between 1 and 65536")?;
        Error::require_all(&concentrations, |a| a > 0.0 && a < f64::INFINITY, "concentrations", "positive")?;
        Error::require((0.0..f64::INFINITY).contains(&exponent), "exponent", exponent, "nonnegative")?;
        let mut nodes: Vec<Node> = Vec::with_capacity(count);
        let mut offset = 0usize;
        for (&size, columns) in sizes.iter().zip(parents) {
            Error::require_all(columns, |column| column < count, "parents", "columns")?;
            let mut cells = size;
            let mut strides: Vec<_> = columns
                .iter()
                .rev()
                .map(|&column| {
                    let stride = cells;
                    cells = cells.saturating_mul(sizes[column]);
                    (column, stride)
                })
                .collect();
            strides.reverse();
            memory::charge("the tables of a network", cells as u128 * 40)?;
            nodes.push(Node { size, offset, cells, parents: strides, children: vec![] });
            offset += cells;
        }
        for child in 0..count {
            for (parent, stride) in nodes[child].parents.clone() {
                nodes[parent].children.push((child, stride));
            }
        }
        Error::require_shape("released", [offset], [released.len()])?;
        Error::require_shape("noisy", [offset], [noisy.len()])?;
        let order = ordered(&nodes)?;
        let reach = (0..count).map(|node| reached_from(node, &nodes, &order)).collect();
        Ok(Self { nodes, order, reach, released, noisy, concentrations, exponent, parities: Parities::none(count) })
    }

    /// The same network with parities that were released.
    ///
    /// # Errors
    /// [`Error::Domain`] if a node is not binary.
    pub fn with_parities(self, parities: Parities) -> Result<Self> {
        let sizes: Vec<_> = self.nodes.iter().map(|node| node.size).collect();
        Error::require_all(&sizes, |size| size == 2, "categories", "2 where parities were released")?;
        Ok(Self { parities, ..self })
    }

    /// The cell of a record in the table of a node, among the cells of all.
    #[inline]
    fn cell(&self, node: usize, record: &[u16]) -> usize {
        let node_of = &self.nodes[node];
        let above = |&(column, stride): &(usize, usize)| stride * usize::from(record[column]);
        node_of.offset + usize::from(record[node]) + node_of.parents.iter().map(above).sum::<usize>()
    }

    /// Room for the masses of a node's categories.
    fn room(&self) -> Vec<f64> {
        vec![0.0; self.nodes.iter().map(|node| node.size).max().unwrap_or(0)]
    }

    /// Runs chains from these records, side by side on the current pool. Chain i has key i.
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::Domain`] for records that are none, [`Error::Interrupted`].
    pub fn sample(
        &self,
        starts: Vec<Vec<u16>>,
        keys: &[[u64; 2]],
        schedule: Schedule,
        progress: &Progress,
    ) -> Result<Vec<Draws>> {
        Error::require_shape("keys", [starts.len()], [keys.len()])?;
        let chains = starts.into_iter().zip(keys).map(|(records, &key)| Chain::new(self, records, key, progress));
        let chains = chains.collect::<Result<Vec<_>>>()?;
        parallel::try_map(chains.len(), |i| chains[i].clone().run(schedule, progress))
    }
}

/// The nodes, parents first.
fn ordered(nodes: &[Node]) -> Result<Vec<usize>> {
    let mut left: Vec<usize> = nodes.iter().map(|node| node.parents.len()).collect();
    let mut order: Vec<usize> = (0..nodes.len()).filter(|&node| left[node] == 0).collect();
    let mut at = 0;
    while let Some(&node) = order.get(at) {
        for &(child, _) in &nodes[node].children {
            left[child] -= 1;
            if left[child] == 0 {
                order.push(child);
            }
        }
        at += 1;
    }
    Error::require(order.len() == nodes.len(), "parents", order.len(), "without a cycle")?;
    Ok(order)
}

/// A node and all that are below it, parents first.
fn reached_from(node: usize, nodes: &[Node], order: &[usize]) -> Vec<usize> {
    let mut found = vec![node];
    for &other in order {
        if nodes[other].parents.iter().any(|(parent, _)| found.contains(parent)) {
            found.push(other);
        }
    }
    found
}

/// A chain: its records, and what follows from them.
#[derive(Clone, Debug)]
struct Chain<'a> {
    tables: &'a NoisyTables,
    key: [u64; 2],
    sweeps: u64,
    /// Record by record.
    records: Vec<u16>,
    /// Of each cell its count less what was released.
    excess: Vec<i64>,
    theta: Vec<f64>,
    /// theta times g of a record that would come.
    weights: Vec<f64>,
    /// exp(-2 e).
    far: f64,
    offsets: Offsets,
    /// Of each row's first cell: how long the steps of its shares are.
    scales: Vec<f64>,
    /// Tries to add or to take away a record, in each sweep: always as many.
    tries: usize,
}

impl<'a> Chain<'a> {
    fn new(tables: &'a NoisyTables, records: Vec<u16>, key: [u64; 2], progress: &Progress) -> Result<Self> {
        let width = tables.nodes.len();
        let rows = Error::require_rows("records", width, records.len())?;
        let mut excess: Vec<i64> = tables.released.iter().map(|released| -released).collect();
        for record in records.chunks_exact(width) {
            for (node, &category) in record.iter().enumerate() {
                let size = tables.nodes[node].size;
                Error::require(usize::from(category) < size, "records", category, "a category of its column")?;
            }
            (0..width).for_each(|node| excess[tables.cell(node, record)] += 1);
        }
        let cells = tables.released.len();
        let far = (-2.0 * tables.exponent).exp();
        let (theta, weights) = (vec![0.0; cells], vec![0.0; cells]);
        let offsets = tables.parities.offsets(&records, width, progress)?;
        let (scales, tries) = (vec![4.0; cells], rows + 16);
        let mut chain = Self { tables, key, sweeps: 0, records, excess, theta, weights, far, offsets, scales, tries };
        chain.draw_probabilities(&mut xoshiro(key, SWEEP, 0, 0));
        Ok(chain)
    }

    fn run(mut self, schedule: Schedule, progress: &Progress) -> Result<Draws> {
        let mut found = Draws::default();
        for number in 1..=schedule.warmup + schedule.draws * schedule.thin {
            self.tables.parities.temper(&mut self.offsets, number, schedule.warmup);
            self.sweep(schedule.known, number <= schedule.warmup, progress)?;
            progress.advance(1)?;
            if number > schedule.warmup && (number - schedule.warmup).is_multiple_of(schedule.thin) {
                self.record(&mut found);
            }
        }
        Ok(found)
    }

    fn sweep(&mut self, known: bool, warm: bool, progress: &Progress) -> Result<()> {
        self.sweeps += 1;
        let rng = &mut xoshiro(self.key, SWEEP, self.sweeps, 0);
        self.draw_categories(rng, progress)?;
        if !known {
            self.draw_number(rng, progress)?;
        }
        self.draw_probabilities(rng);
        self.interweave(warm, rng, progress)
    }

    /// Draws every category of every record given all else.
    fn draw_categories(&mut self, rng: &mut Xoshiro, progress: &Progress) -> Result<()> {
        let tables = self.tables;
        let width = tables.nodes.len();
        let mut cells = vec![0; width];
        let mut masses = tables.room();
        for row in 0..self.records.len() / width {
            progress.check_at(row * tables.parities.stride())?;
            let span = row * width..(row + 1) * width;
            for (node, cell) in cells.iter_mut().enumerate() {
                *cell = tables.cell(node, &self.records[span.clone()]);
            }
            tables.parities.look(&mut self.offsets, &self.records[span.clone()]);
            for (at, node) in tables.nodes.iter().enumerate() {
                let old = usize::from(self.records[span.start + at]);
                let new = self.draw_category(at, old, &cells, &mut masses[..node.size], rng);
                if new == old {
                    continue;
                }
                self.records[span.start + at] = new as u16;
                tables.parities.turn(&mut self.offsets, at);
                for &(table, stride) in std::iter::once(&(at, 1)).chain(&node.children) {
                    let from = cells[table];
                    let to = from + new * stride - old * stride;
                    self.leave(from);
                    self.join(to);
                    cells[table] = to;
                }
            }
        }
        Ok(())
    }

    /// Draws one category of a record that is in these cells of all tables.
    #[inline]
    fn draw_category(&self, at: usize, old: usize, cells: &[usize], masses: &mut [f64], rng: &mut Xoshiro) -> usize {
        let node = &self.tables.nodes[at];
        let first = cells[at] - old;
        masses.copy_from_slice(&self.weights[first..first + node.size]);
        let mut nearer = usize::from(self.excess[cells[at]] == 0);
        for &(child, stride) in &node.children {
            let first = cells[child] - old * stride;
            for (mass, weight) in masses.iter_mut().zip(self.weights[first..].iter().step_by(stride)) {
                *mass *= weight;
            }
            nearer += usize::from(self.excess[cells[child]] == 0);
        }
        // Without the record these cells are below what was released: it would bring them nearer.
        for _ in 0..nearer {
            masses[old] /= self.far;
        }
        // The energy of the other category, of two; zero where tables were released.
        let energy = self.tables.parities.energy_of_turn(&self.offsets, at);
        if energy != 0.0 {
            masses[if energy > 0.0 { 1 - old } else { old }] *= (-energy.abs()).exp();
        }
        if !SAFE.contains(&accumulated(masses)) {
            self.weigh_by_logarithms(at, old, cells, masses);
            accumulated(masses);
        }
        chosen(masses, rng)
    }

    /// The same masses where they leave the range of doubles, the largest being one.
    #[cold]
    fn weigh_by_logarithms(&self, at: usize, old: usize, cells: &[usize], masses: &mut [f64]) {
        let children = &self.tables.nodes[at].children;
        for (category, mass) in masses.iter_mut().enumerate() {
            *mass = 0.0;
            for &(table, stride) in std::iter::once(&(at, 1)).chain(children) {
                let cell = cells[table] + category * stride - old * stride;
                let without = self.excess[cell] - i64::from(category == old);
                let steps = if !self.tables.noisy[cell] { 1.0 } else { 2.0 * f64::from(u8::from(without >= 0)) };
                *mass += self.theta[cell].ln() - steps * self.tables.exponent;
            }
        }
        masses[old] += self.tables.parities.energy_of_turn(&self.offsets, at);
        let largest = masses.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        masses.iter_mut().for_each(|mass| *mass = (*mass - largest).exp());
    }

    #[inline]
    fn leave(&mut self, cell: usize) {
        self.excess[cell] -= 1;
        if self.excess[cell] == -1 {
            self.weights[cell] = self.theta[cell];
        }
    }

    #[inline]
    fn join(&mut self, cell: usize) {
        self.excess[cell] += 1;
        if self.excess[cell] == 0 {
            self.weights[cell] = self.theta[cell] * self.far;
        }
    }

    /// Draws each row of probabilities given the counts.
    fn draw_probabilities(&mut self, rng: &mut Xoshiro) {
        let tables = self.tables;
        for (node, &concentration) in tables.nodes.iter().zip(&tables.concentrations) {
            for first in (node.offset..node.offset + node.cells).step_by(node.size) {
                let mut sum = 0.0;
                for cell in first..first + node.size {
                    let count = self.excess[cell] + tables.released[cell];
                    self.theta[cell] = gamma::draw(concentration + count as f64, 1.0, rng);
                    sum += self.theta[cell];
                }
                self.theta[first..first + node.size].iter_mut().for_each(|theta| *theta /= sum);
            }
        }
        self.weigh();
    }

    /// Forms the weights of all cells.
    fn weigh(&mut self) {
        let near = (-self.tables.exponent).exp();
        for (cell, weight) in self.weights.iter_mut().enumerate() {
            let steps = match (self.tables.noisy[cell], self.excess[cell] >= 0) {
                (false, _) => near,
                (true, true) => self.far,
                (true, false) => 1.0,
            };
            *weight = self.theta[cell] * steps;
        }
    }

    /// Keeps the chain's state as a draw.
    fn record(&self, draws: &mut Draws) {
        draws.probabilities.extend_from_slice(&self.theta);
        draws.counts.extend(self.excess.iter().zip(&self.tables.released).map(|(excess, released)| excess + released));
        for (at, node) in self.tables.nodes.iter().enumerate() {
            let cells = node.offset..node.offset + node.cells;
            let (mut likelihood, mut distance) = (0.0, 0.0);
            for cell in cells {
                let count = self.excess[cell] + self.tables.released[cell];
                if count > 0 {
                    likelihood += count as f64 * self.theta[cell].ln();
                }
                if self.tables.noisy[cell] {
                    distance += self.excess[cell].abs() as f64;
                }
            }
            let family: Vec<_> = std::iter::once(at).chain(node.parents.iter().map(|parent| parent.0)).collect();
            distance += self.tables.parities.distance(&self.offsets, &family);
            draws.log_likelihoods.push(likelihood);
            draws.distances.push(distance);
        }
    }
}

/// Replaces masses by their partial sums, and returns the last.
#[inline]
fn accumulated(masses: &mut [f64]) -> f64 {
    let mut sum = 0.0;
    for mass in masses {
        sum += *mass;
        *mass = sum;
    }
    sum
}

/// The place of one of the masses whose partial sums these are, by its share; without a jump.
#[inline]
fn chosen(sums: &[f64], rng: &mut Xoshiro) -> usize {
    let all = sums[sums.len() - 1];
    let level = rng.uniform() * all;
    let below = sums.iter().map(|&sum| usize::from(sum <= level)).sum();
    // A product that was rounded up to the whole sum is for the last that has a mass.
    if below < sums.len() { below } else { sums.iter().position(|&sum| sum == all).unwrap_or(0) }
}

/// A whole number below `end`, each as likely to 2^-64 times `end`; none below zero.
fn below(end: usize, rng: &mut Xoshiro) -> Option<usize> {
    (end > 0).then(|| ((u128::from(rng.next_u64()) * end as u128) >> 64) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::special::gamma::log_gamma;
    use std::collections::HashMap;

    const LONG: Schedule = Schedule { warmup: 100, draws: 40_000, thin: 20, known: true };

    /// x -> y with releases of y's table, whose sums x's cells are.
    pub(super) fn pair(released: [i64; 4], exponent: f64) -> NoisyTables {
        let cells = [&[0, 0], &released[..]].concat();
        let noisy = vec![false, false, true, true, true, true];
        NoisyTables::new(&[2, 2], &[vec![], vec![0]], (cells, noisy), vec![2.0, 1.0], exponent).unwrap()
    }

    fn draws(tables: &NoisyTables, records: Vec<u16>, schedule: Schedule) -> Draws {
        tables.sample(vec![records], &[[1, 2]], schedule, &Progress::default()).unwrap().remove(0)
    }

    /// Chi-square on bins of 25 expected draws at least; false-alarm rate 1e-6.
    pub(super) fn assert_fit(seen: &HashMap<Vec<i64>, f64>, law: &HashMap<Vec<i64>, f64>, number: f64) {
        let whole: f64 = law.values().sum();
        let mut bins: Vec<_> =
            law.iter().map(|(key, mass)| (mass / whole * number, seen.get(key).copied().unwrap_or(0.0))).collect();
        bins.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (mut expected, mut found, mut distance, mut freedom) = (0.0, 0.0, 0.0f64, -1.0f64);
        for (mean, count) in bins {
            (expected, found) = (expected + mean, found + count);
            if expected >= 25.0 {
                distance += (found - expected) * (found - expected) / expected;
                freedom += 1.0;
                (expected, found) = (0.0, 0.0);
            }
        }
        // Wilson and Hilferty (1931).
        let limit = freedom * (1.0 - 2.0 / (9.0 * freedom) + 4.7534 * (2.0 / (9.0 * freedom)).sqrt()).powi(3);
        assert!(freedom >= 5.0 && distance < limit, "{distance} exceeds {limit} with {freedom} degrees of freedom");
    }

    pub(super) fn tally(counts: &[i64], width: usize) -> HashMap<Vec<i64>, f64> {
        let mut seen = HashMap::new();
        counts.chunks_exact(width).for_each(|draw| *seen.entry(draw.to_vec()).or_insert(0.0) += 1.0);
        seen
    }

    /// Of the tables of four records x -> y that were released so with an exponent of .4.
    pub(super) fn law_of_pairs(released: [i64; 4]) -> HashMap<Vec<i64>, f64> {
        let mut law = HashMap::new();
        for code in 0..4usize.pow(4) {
            let mut counts = vec![0i64; 4];
            (0..4).for_each(|record| counts[code >> (2 * record) & 3] += 1);
            let away: i64 = counts.iter().zip(released).map(|(count, released)| (count - released).abs()).sum();
            let sequence: f64 = counts.iter().map(|&n| log_gamma(1.0 + n as f64)).sum();
            let sums = vec![counts[0] + counts[1], counts[2] + counts[3]];
            *law.entry([sums, counts].concat()).or_insert(0.0) += (sequence - 0.4 * away as f64).exp();
        }
        law
    }

    #[test]
    fn counts_have_the_law_that_enumeration_gives() {
        let released = [3, -1, 0, 2];
        let law = law_of_pairs(released);
        let found = draws(&pair(released, 0.4), vec![0, 0, 0, 1, 1, 0, 1, 1], LONG);
        assert_fit(&tally(&found.counts, 6), &law, LONG.draws as f64);
    }

    #[test]
    fn numbers_of_records_have_their_law_where_they_are_not_known() {
        let cells = (vec![2, 1], vec![true, true]);
        let tables = NoisyTables::new(&[2], &[vec![]], cells, vec![1.0], 0.8).unwrap();
        let mass = |a: i64, b: i64| (-0.8 * ((a - 2).abs() + (b - 1).abs()) as f64).exp() / (a + b + 1) as f64;
        let law = (0..1600).map(|i| (i / 40, i % 40)).map(|(a, b)| (vec![a, b], mass(a, b))).collect();
        let found = draws(&tables, vec![0, 1, 0], Schedule { known: false, ..LONG });
        assert_fit(&tally(&found.counts, 2), &law, LONG.draws as f64);
    }

    #[test]
    fn logarithms_of_masses_are_those_of_the_masses() {
        let tables = pair([1, -1, 0, 3], 0.7);
        let chain = Chain::new(&tables, vec![0, 0, 0, 1, 1, 0, 1, 1], [3, 4], &Progress::default()).unwrap();
        for (row, record) in chain.records.chunks_exact(2).enumerate() {
            let cells = [tables.cell(0, record), tables.cell(1, record)];
            for at in 0..2 {
                let (mut sums, mut logs) = ([0.0; 2], [0.0; 2]);
                let old = usize::from(record[at]);
                chain.draw_category(at, old, &cells, &mut sums, &mut xoshiro([5, 6], 7, 8, row as u64));
                chain.weigh_by_logarithms(at, old, &cells, &mut logs);
                let share = logs[0] / (logs[0] + logs[1]);
                assert!((sums[0] / sums[1] - share).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_stop_ends_a_sweep_and_what_does_not_fit_is_refused() {
        let tables = pair([1, 0, 0, 1], 1.0);
        let progress = Progress::default();
        progress.cancel();
        assert_eq!(tables.sample(vec![vec![0, 0]], &[[1, 2]], LONG, &progress), Err(Error::Interrupted));
        let refused = |starts| tables.sample(starts, &[[1, 2]], LONG, &Progress::default());
        assert!(matches!(refused(vec![]), Err(Error::Shape { name: "keys", .. })));
        assert!(matches!(refused(vec![vec![0, 1, 0]]), Err(Error::Shape { name: "records", .. })));
        assert!(matches!(refused(vec![vec![0, 2]]), Err(Error::Domain { name: "records", .. })));
        let cycle = NoisyTables::new(&[1, 1], &[vec![1], vec![0]], (vec![0; 2], vec![true; 2]), vec![1.0; 2], 1.0);
        assert!(matches!(cycle, Err(Error::Domain { name: "parents", .. })));
    }
}
