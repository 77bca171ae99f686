//! Orbitals: the orbits of a group on ordered pairs of points, without listing the group.
//!
//! Within one orbit of points take a representative v, and for each h in it a group element u_h with u_h(v) = h. Then
//! (h, k) lies in the orbital of (v, u_h^-1(k)), and (v, k), (v, l) share an orbital exactly if k and l share an orbit of
//! the stabilizer of v. So one row of stabilizer classes, carried over to all members, tells the class of every pair:
//!
//! C_v[k] = class of k,   C_{s(h)}[k] = C_h[s^-1(k)]   for a generator s.
//!
//! Where generators of the stabilizer are not known, its classes come from Schreier's lemma: they are the finest ones for
//! which the second equation holds for all h, k and s, and not only for the pairs h, s(h) by which s(h) was first reached. A
//! few members near v give nearly all classes; then the rows are made, and all other equations are compared, which proves that
//! no two classes are one, or joins them.
//!
//! Labels count the orbitals in the order in which they are first met row by row.
//!
//! Source: J. Dixon, B. Mortimer (1996), Permutation Groups, section 3.2 (orbits of stabilizers); the labels are derived here.

use super::Clock;
use super::permutation::{Orbits, Permutation};
use crate::monitor::Monitor;
use crate::numeric::buffer::Buffer;
use crate::{Error, Result, memory, parallel};
use std::collections::HashMap;

/// Members near the representative whose equations are looked at first, and equations in a row that may bring nothing new.
const NEAR: usize = 64;
const IDLE: usize = 30;

/// The orbit of one point under the group, with what labels the pairs that begin there.
#[derive(Debug)]
pub struct OrbitalBlock {
    members: Vec<u32>,
    classes: Buffer<u16>,
    points: usize,
    /// The label of each class.
    labels: Vec<u32>,
}

impl OrbitalBlock {
    /// The points of the orbit in rising order.
    pub fn members(&self) -> &[u32] {
        &self.members
    }

    /// For each k the class of (h, k), for the `index`-th member h: a number below [`OrbitalBlock::count`].
    #[inline]
    pub fn row(&self, index: usize) -> &[u16] {
        &self.classes[index * self.points..][..self.points]
    }

    /// The number of classes.
    pub fn count(&self) -> usize {
        self.labels.len()
    }
}

/// A label for every ordered pair of points, in a few bytes per pair.
#[derive(Debug)]
pub struct Orbitals {
    blocks: Vec<OrbitalBlock>,
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
            return Err(Error::TooLarge { what: "the labels of all pairs of vertices", needed, limit: memory_limit });
        }
        let maps: Vec<Map> = generators.iter().map(|generator| Map::new(generator, points)).collect();
        let labels = Orbits::of(points, generators).labels();
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); labels.iter().max().map_or(0, |&most| most as usize + 1)];
        for (point, &label) in (0..).zip(&labels) {
            members[label as usize].push(point);
        }
        let mut places = vec![(0, 0); points];
        for (block, members) in (0..).zip(&members) {
            (0..).zip(members).for_each(|(index, &member)| places[member as usize] = (block, index));
        }
        let mut orbitals =
            Self { blocks: Vec::new(), places: places.clone(), sizes: Vec::new(), representatives: Vec::new() };
        let mut carrier = Carrier { points, maps: &maps, places: &places, row: Box::new([0; 1 << 16]) };
        for members in members {
            let chosen = representative(&members);
            let (classes, proved) = match classes(chosen, clock)? {
                Some(classes) => (classes, true),
                None => (likely_classes(points, chosen, &maps, clock)?, false),
            };
            orbitals.add(carrier.block(members, chosen, classes, proved, clock)?);
        }
        Ok(orbitals)
    }

    /// Takes a block, and labels its classes in the order in which the row of its first member meets them.
    fn add(&mut self, mut block: OrbitalBlock) {
        let mut labels = std::mem::take(&mut block.labels);
        for (k, &class) in (0..).zip(block.row(0)) {
            let label = &mut labels[usize::from(class)];
            if *label == u32::MAX {
                *label = self.sizes.len() as u32;
                self.sizes.push(0);
                self.representatives.push((block.members[0], k));
            }
            self.sizes[*label as usize] += block.members.len() as u64;
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
    pub fn blocks(&self) -> &[OrbitalBlock] {
        &self.blocks
    }

    /// The label of a pair.
    pub fn label(&self, h: u32, k: u32) -> u32 {
        let (block, index) = self.places[h as usize];
        let block = &self.blocks[block as usize];
        block.labels[usize::from(block.row(index as usize)[k as usize])]
    }

    /// Writes the labels of (h, k) for all k.
    ///
    /// # Errors
    /// [`Error::Domain`] if `h` is no point.
    pub fn label_row(&self, h: u32, labels: &mut [u32]) -> Result<()> {
        let Some(&(block, index)) = self.places.get(h as usize) else {
            return Err(Error::domain("v", h, "a point in 0..n"));
        };
        let block = &self.blocks[block as usize];
        for (label, &class) in labels.iter_mut().zip(block.row(index as usize)) {
            *label = block.labels[usize::from(class)];
        }
        Ok(())
    }

    /// The labels of all pairs, row by row.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if labels need more than 31 bits or the table more memory than there is, and the monitor's objection.
    pub fn labels(&self, threads: usize, monitor: &mut dyn Monitor) -> Result<Vec<i32>> {
        let n = self.points();
        if self.rank() > i32::MAX as usize {
            let (needed, limit) = (8 * (n as u128).pow(2), 4 * (n as u128).pow(2));
            return Err(Error::TooLarge { what: "labels of more than 2^31 orbitals", needed, limit });
        }
        let mut labels = memory::filled_patiently(0, n * n, "a table of the labels of all pairs", monitor)?;
        parallel::run(threads, n as u64, monitor, |progress| {
            parallel::pieces(
                &mut labels,
                n.max(1),
                || (),
                |(), member, row| {
                    let (block, index) = self.places[member];
                    let block = &self.blocks[block as usize];
                    for (label, &class) in row.iter_mut().zip(block.row(index as usize)) {
                        *label = block.labels[usize::from(class)] as i32;
                    }
                    progress.advance(1)
                },
            )
        })?;
        Ok(labels)
    }
}

/// A generator as a table, and its inverse.
struct Map {
    image: Vec<u16>,
    inverse: Vec<u16>,
    is_involution: bool,
}

impl Map {
    fn new(generator: &Permutation, points: usize) -> Self {
        let narrow = |images: Vec<u32>| images.into_iter().map(|image| image as u16).collect();
        let (image, inverse): (Vec<u16>, Vec<u16>) =
            (narrow(generator.images(points)), narrow(generator.inverse().images(points)));
        let is_involution = image == inverse;
        Self { image, inverse, is_involution }
    }

    fn image(&self, point: u32) -> u32 {
        self.image[point as usize].into()
    }
}

/// Joins points that Schreier's lemma puts in one class of the stabilizer of `point`, as far as members near it tell.
///
/// Here T_h = u_h^-1 is known for some members h, and T_h[k] and T_{s(h)}[s(k)] are in one class.
fn likely_classes(points: usize, point: u32, maps: &[Map], clock: &mut Clock<'_>) -> Result<Orbits> {
    let mut classes = Orbits::new(points);
    let mut near: Vec<(u32, Vec<u16>)> = vec![(point, (0..=u16::MAX).take(points).collect())];
    let mut places = HashMap::from([(point, 0)]);
    let mut idle = 0;
    for index in 0..NEAR {
        for map in maps {
            let Some((h, row)) = near.get(index) else { return Ok(classes) };
            let target = map.image(*h);
            clock.spend(points)?;
            match places.get(&target) {
                None if near.len() < NEAR => {
                    let row = map.inverse.iter().map(|&k| row[usize::from(k)]).collect();
                    places.insert(target, near.len());
                    near.push((target, row));
                }
                None => {}
                Some(&place) => {
                    idle += 1;
                    let to: &[u16] = &near[place].1;
                    for (&from, &k) in row.iter().zip(&map.image) {
                        let (from, to) = (classes.find(from.into()), classes.find(to[usize::from(k)].into()));
                        if from != to {
                            classes.join(from, to);
                            idle = 0;
                        }
                    }
                    if idle == IDLE {
                        return Ok(classes);
                    }
                }
            }
        }
    }
    Ok(classes)
}

/// The classes of all pairs that begin in one orbit, made row by row and compared.
struct Carrier<'a> {
    points: usize,
    maps: &'a [Map],
    places: &'a [(u32, u32)],
    /// The row carried on, in an array as long as indices of 16 bits go, so that none needs a check.
    row: Box<[u16; 1 << 16]>,
}

impl Carrier<'_> {
    /// The block of an orbit, from the classes of one member's stabilizer; unless these are `proved` to be complete, those
    /// that turn out to be one are joined.
    fn block(
        &mut self,
        members: Vec<u32>,
        representative: u32,
        mut sets: Orbits,
        proved: bool,
        clock: &mut Clock<'_>,
    ) -> Result<OrbitalBlock> {
        let points = self.points;
        let rows = |point: u32| self.places[point as usize].1 as usize;
        let mut classes = Buffer::zeroed(members.len() * points)?;
        for (class, set) in classes[rows(representative) * points..].iter_mut().zip(sets.labels()) {
            *class = set as u16;
        }
        let mut joins = Joins::new(sets.labels().into_iter().max().map_or(0, |most| most as usize + 1));
        let (mut reached, mut done) = (vec![false; members.len()], vec![false; members.len()]);
        reached[rows(representative)] = true;
        let mut queue = vec![representative];
        let mut next = 0;
        while let Some(&h) = queue.get(next) {
            next += 1;
            self.row[..points].copy_from_slice(&classes[rows(h) * points..][..points]);
            let carried = |k: u16| self.row[usize::from(k)];
            done[rows(h)] = true;
            for map in self.maps {
                let target = map.image(h);
                let to = &mut classes[rows(target) * points..][..points];
                if !std::mem::replace(&mut reached[rows(target)], true) {
                    queue.push(target);
                    to.iter_mut().zip(&map.inverse).for_each(|(class, &k)| *class = carried(k));
                } else if proved || (map.is_involution && done[rows(target)] && target != h) {
                    continue; // the equations from h to s(h) are those from s(h) to h if s is an involution
                } else {
                    let pairs = to.iter().zip(&map.inverse).map(|(&class, &k)| (class, carried(k)));
                    if pairs.clone().fold(0, |differ, (a, b)| differ | (a ^ b)) != 0 {
                        joins.join(pairs);
                    }
                }
                clock.spend(points)?;
            }
        }
        let count = joins.finish(&mut classes);
        Ok(OrbitalBlock { members, classes, points, labels: vec![u32::MAX; count] })
    }
}

/// Classes that turn out to be one.
struct Joins {
    sets: Orbits,
    /// A name for each class: those joined have the same.
    names: Vec<u16>,
    any: bool,
}

impl Joins {
    fn new(count: usize) -> Self {
        Self { sets: Orbits::new(count), names: (0..=u16::MAX).take(count).collect(), any: false }
    }

    fn join(&mut self, pairs: impl Iterator<Item = (u16, u16)>) {
        let mut renamed = false;
        for (a, b) in pairs {
            if self.names[usize::from(a)] != self.names[usize::from(b)] {
                self.sets.join(a.into(), b.into());
                renamed = true;
            }
        }
        if renamed {
            self.any = true;
            (0..).zip(&mut self.names).for_each(|(class, name)| *name = self.sets.find(class) as u16);
        }
    }

    /// Numbers the classes that are left without gaps. Returns how many there are.
    fn finish(mut self, classes: &mut [u16]) -> usize {
        if !self.any {
            return self.names.len();
        }
        let labels = self.sets.labels();
        classes.iter_mut().for_each(|class| *class = labels[usize::from(*class)] as u16);
        labels.into_iter().max().map_or(0, |most| most as usize + 1)
    }
}
