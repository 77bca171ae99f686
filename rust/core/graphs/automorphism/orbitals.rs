//! Orbitals: the orbits of a group on ordered pairs of points, without listing the group.
//!
//! Within one orbit of points take a representative v, and for each h in it a group element u_h with u_h(v) = h. Then
//! (h, k) lies in the orbital of (v, u_h^-1(k)), and (v, k), (v, l) share an orbital exactly if k and l share an orbit of
//! the stabilizer of v. So the rows T_h = u_h^-1 and one row of stabilizer classes label all pairs:
//!
//! label(h, k) = class[T_h[k]],   T_{s(h)}[k] = T_h[s^-1(k)]   for a generator s.
//!
//! Where generators of the stabilizer are not known, its classes come from Schreier's lemma: T_h[k] and T_{s(h)}[s(k)] are
//! in one class for all h, k and generators s, and these identities generate all. After the first few rows nearly all classes
//! are there, and the pass over the others only compares.
//!
//! Labels count the orbitals in the order in which they are first met row by row.

use super::Clock;
use super::permutation::{Orbits, Permutation};
use crate::monitor::Monitor;
use crate::{Error, Result, parallel};
use rayon::prelude::*;

/// The orbit of one point under the group, with what labels the pairs that begin there.
#[derive(Debug)]
pub struct Block {
    members: Vec<u32>,
    rows: Vec<u16>,
    labels: Vec<u32>,
    points: usize,
}

impl Block {
    /// The points of the orbit in rising order.
    pub fn members(&self) -> &[u32] {
        &self.members
    }

    /// The row T_h of the `index`-th member: where k comes to lie when the member is moved to the representative.
    #[inline]
    pub fn row(&self, index: usize) -> &[u16] {
        &self.rows[index * self.points..][..self.points]
    }

    /// The label of (representative, k) for each k.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }
}

/// A label for every ordered pair of points, in a few bytes per pair.
#[derive(Debug)]
pub struct Orbitals {
    blocks: Vec<Block>,
    /// For each point its block and its place there.
    places: Vec<(u32, u32)>,
    sizes: Vec<u64>,
    representatives: Vec<(u32, u32)>,
}

/// Classes of the stabilizer of a point, if the caller knows them.
pub type Classes<'a> = dyn FnMut(u32, &mut Clock<'_>) -> Result<Option<Orbits>> + 'a;

impl Orbitals {
    /// Labels the pairs for the group of `generators`. `representative` chooses one point of each orbit from its members,
    /// `classes` may give the orbits of its stabilizer.
    pub(super) fn new(
        points: usize,
        generators: &[Permutation],
        representative: impl Fn(&[u32]) -> u32,
        classes: &mut Classes<'_>,
        memory_limit: u128,
        clock: &mut Clock<'_>,
    ) -> Result<Self> {
        let dense = 8 * generators.len() as u128;
        let needed = 2 * (points as u128).pow(2) + (points as u128) * (dense + 64);
        if points > 1 << 16 || needed > memory_limit {
            return Err(Error::TooLarge { what: "labelling all pairs of vertices", needed, limit: memory_limit });
        }
        let images: Vec<Vec<u32>> = generators.iter().map(|generator| generator.images(points)).collect();
        let inverses: Vec<Vec<u32>> = generators.iter().map(|generator| generator.inverse().images(points)).collect();
        let labels = Orbits::of(points, generators).labels();
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); labels.iter().max().map_or(0, |&most| most as usize + 1)];
        for (point, &label) in (0..).zip(&labels) {
            members[label as usize].push(point);
        }
        let mut orbitals =
            Self { blocks: Vec::new(), places: vec![(0, 0); points], sizes: Vec::new(), representatives: Vec::new() };
        for members in members {
            let chosen = representative(&members);
            for (index, &member) in (0..).zip(&members) {
                orbitals.places[member as usize] = (orbitals.blocks.len() as u32, index);
            }
            let rows = coset_rows(points, &members, chosen, &images, &inverses, &orbitals.places, clock)?;
            let block = Block { members, rows, labels: vec![u32::MAX; points], points };
            let classes = match classes(chosen, clock)? {
                Some(classes) => classes,
                None => stabilizer_classes(&block, &images, &orbitals.places, clock)?,
            };
            orbitals.number(block, classes);
        }
        Ok(orbitals)
    }

    /// Numbers the classes of a block in the order in which the row of its first member meets them.
    fn number(&mut self, mut block: Block, mut classes: Orbits) {
        let mut labels = std::mem::take(&mut block.labels);
        let first = block.members[0];
        for (k, &image) in (0..).zip(block.row(0)) {
            let class = classes.find(u32::from(image)) as usize;
            if labels[class] == u32::MAX {
                labels[class] = self.sizes.len() as u32;
                self.sizes.push(u64::from(classes.size(class as u32)) * block.members.len() as u64);
                self.representatives.push((first, k));
            }
        }
        for point in 0..labels.len() {
            labels[point] = labels[classes.find(point as u32) as usize];
        }
        block.labels = labels;
        self.blocks.push(block);
    }

    /// Number of points.
    pub fn points(&self) -> usize {
        self.places.len()
    }

    /// Number of orbitals.
    pub fn rank(&self) -> usize {
        self.sizes.len()
    }

    /// Number of pairs in each orbital.
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// The first pair of each orbital, row by row.
    pub fn representatives(&self) -> &[(u32, u32)] {
        &self.representatives
    }

    /// The orbits of points with their rows, in the order of their first points.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The label of a pair.
    pub fn label(&self, h: u32, k: u32) -> u32 {
        let (block, index) = self.places[h as usize];
        let block = &self.blocks[block as usize];
        block.labels[block.row(index as usize)[k as usize] as usize]
    }

    /// Writes the labels of (h, k) for all k.
    ///
    /// # Errors
    /// [`Error::Domain`] if `h` is no point.
    pub fn label_row(&self, h: u32, labels: &mut [u32]) -> Result<()> {
        let Some(&(block, index)) = self.places.get(h as usize) else {
            return Err(Error::Domain { name: "v", value: h.to_string(), requirement: "a point in 0..n" });
        };
        let block = &self.blocks[block as usize];
        for (label, &image) in labels.iter_mut().zip(block.row(index as usize)) {
            *label = block.labels[image as usize];
        }
        Ok(())
    }

    /// The labels of all pairs, row by row.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if labels need more than 31 bits, and the monitor's objection.
    pub fn labels(&self, threads: usize, monitor: &mut dyn Monitor) -> Result<Vec<i32>> {
        let n = self.points();
        if self.rank() > i32::MAX as usize {
            let (needed, limit) = (8 * (n as u128).pow(2), 4 * (n as u128).pow(2));
            return Err(Error::TooLarge { what: "labels of more than 2^31 orbitals", needed, limit });
        }
        let mut labels = vec![0; n * n];
        parallel::run(threads, n as u64, monitor, |watch| {
            labels.par_chunks_exact_mut(n.max(1)).zip(&self.places).try_for_each(|(row, &(block, index))| {
                let block = &self.blocks[block as usize];
                for (label, &image) in row.iter_mut().zip(block.row(index as usize)) {
                    *label = block.labels[image as usize] as i32;
                }
                watch.advance(1)
            })
        })?;
        Ok(labels)
    }
}

/// The rows T_h of all members of an orbit, each made from that of the point it was reached from.
fn coset_rows(
    points: usize,
    members: &[u32],
    representative: u32,
    images: &[Vec<u32>],
    inverses: &[Vec<u32>],
    places: &[(u32, u32)],
    clock: &mut Clock<'_>,
) -> Result<Vec<u16>> {
    let mut rows = vec![0u16; members.len() * points];
    let row = |point: u32| places[point as usize].1 as usize * points..(places[point as usize].1 as usize + 1) * points;
    for (k, image) in (0..).zip(&mut rows[row(representative)]) {
        *image = k as u16;
    }
    let mut reached = vec![false; members.len()];
    reached[places[representative as usize].1 as usize] = true;
    let mut queue = vec![representative];
    let mut next = 0;
    while let Some(&h) = queue.get(next) {
        next += 1;
        for (image, inverse) in images.iter().zip(inverses) {
            let target = image[h as usize];
            if std::mem::replace(&mut reached[places[target as usize].1 as usize], true) {
                continue;
            }
            queue.push(target);
            let (from, to) = (row(h), row(target));
            let (from, to) = if from.start < to.start {
                let (low, high) = rows.split_at_mut(to.start);
                (&low[from], &mut high[..points])
            } else {
                let (low, high) = rows.split_at_mut(from.start);
                (&high[..points], &mut low[to])
            };
            for (image, &before) in to.iter_mut().zip(inverse) {
                *image = from[before as usize];
            }
            clock.spend(points)?;
        }
    }
    Ok(rows)
}

/// The orbits of the stabilizer of a block's representative, by Schreier's lemma.
fn stabilizer_classes(
    block: &Block,
    images: &[Vec<u32>],
    places: &[(u32, u32)],
    clock: &mut Clock<'_>,
) -> Result<Orbits> {
    let mut classes = Orbits::new(block.points);
    let mut least: Vec<u16> = (0..=u16::MAX).take(block.points).collect();
    for index in 0..block.members.len() {
        let h = block.members[index];
        for image in images {
            let target = places[image[h as usize] as usize].1 as usize;
            let (from, to) = (block.row(index), block.row(target));
            clock.spend(block.points)?;
            let mut joined = false;
            for (&from, &k) in from.iter().zip(image) {
                // Nearly always the two are known to be together by their class's present name.
                let to = to[k as usize];
                if least[from as usize] != least[to as usize] {
                    joined = true;
                    classes.join(u32::from(from), u32::from(to));
                    let (a, b) = (least[from as usize], least[to as usize]);
                    least[from as usize] = a.min(b);
                    least[to as usize] = a.min(b);
                }
            }
            if joined {
                for (point, name) in (0..).zip(&mut least) {
                    *name = classes.find(point) as u16;
                }
            }
        }
    }
    Ok(classes)
}
