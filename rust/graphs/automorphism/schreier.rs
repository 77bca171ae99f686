//! Stabilizer chains: exact order and membership of a permutation group given by generators.
//!
//! For a base b_1, .., b_k the chain is G = G_1 >= G_2 >= .. >= G_{k+1} = 1, where G_{i+1} fixes b_1, .., b_i; the order is
//! the product of the lengths of the orbits of b_i under G_i. Random elements of G are divided by coset representatives
//! level by level (*sifted*); what is left over enlarges the chain. When 24 in a row leave nothing the chain is almost
//! surely complete, and then it is proved (`verify.rs`). Where the order is known beforehand, reaching it is the proof.
//!
//! Source: Holt, Eick and O'Brien (2005), Handbook of Computational Group Theory, section 4.4; random elements
//! by product replacement, Celler et al. (1995).

use super::Clock;
use super::permutation::{Orbits, Permutation};
use crate::{Error, Result};
use num_bigint::BigUint;

/// Random elements in a row that must sift to the identity before the proof begins.
const IDLE: usize = 24;
/// Random elements among which one in log(m)/log(2) shows a group of degree m to be alternating or symmetric.
const TRIALS: usize = 200;

/// The order of a group that holds all even permutations of the points it moves, if some of `TRIALS` random elements show
/// that it does: a transitive group of degree m with an element that has a cycle of prime length p, m/2 < p < m - 2, holds
/// the alternating group (Jordan's theorem; Seress 2003, Permutation Group Algorithms, section 10.2).
pub fn order_of_giant(points: usize, generators: &[Permutation], clock: &mut Clock<'_>) -> Result<Option<BigUint>> {
    let mut orbits = Orbits::of(points, generators);
    let moved: Vec<u32> = (0..points as u32).filter(|&point| orbits.size(point) > 1).collect();
    let degree = moved.len();
    if degree < 8 || orbits.size(moved[0]) as usize != degree {
        return Ok(None);
    }
    let elements: Vec<_> =
        generators.iter().filter(|g| !g.is_identity()).map(|g| Element::new(g.images(points), 0)).collect();
    let is_prime = |p: usize| (2..).take_while(|d| d * d <= p).all(|d| !p.is_multiple_of(d));
    let mut random = Replacement::new(&elements, clock)?;
    for _ in 0..TRIALS {
        let longest = cycle_lengths(random.next(clock)?).max().unwrap_or(0);
        if 2 * longest > degree && longest + 2 < degree && is_prime(longest) {
            let order: BigUint = (1..=degree).map(BigUint::from).product();
            let even = |e: &Element| cycle_lengths(&e.images).filter(|length| length % 2 == 0).count() % 2 == 0;
            return Ok(Some(if elements.iter().all(even) { order / 2u32 } else { order }));
        }
    }
    Ok(None)
}

/// The lengths of the cycles of a permutation.
fn cycle_lengths(images: &[u32]) -> impl Iterator<Item = usize> + '_ {
    let mut seen = vec![false; images.len()];
    let lengths = (0..images.len()).map(move |start| {
        let mut length = 0;
        let mut point = start;
        while !std::mem::replace(&mut seen[point], true) {
            length += 1;
            point = images[point] as usize;
        }
        length
    });
    lengths.filter(|&length| length > 0) // a point seen before begins no cycle
}

/// Images of all points, and preimages.
#[derive(Clone, Debug)]
pub(super) struct Element {
    pub images: Vec<u32>,
    pub inverse: Vec<u32>,
    /// How many base points it fixes from the front.
    fixes: usize,
}

/// One base point, its orbit under the elements that fix those before it, and how the orbit was reached.
#[derive(Clone, Debug)]
pub(super) struct ChainLevel {
    pub point: u32,
    pub generators: Vec<u32>,
    /// Further elements of the group of this level, which make its tree shallow.
    helpers: Vec<u32>,
    /// Begins with the base point.
    pub orbit: Vec<u32>,
    /// For each point the element that led to it, plus one; zero outside the orbit, `ROOT` for the base point.
    pub via: Vec<u32>,
}

/// What led to the root of a tree.
pub(super) const ROOT: u32 = u32::MAX;

/// A base, a strong generating set and its orbits.
#[derive(Clone, Debug)]
pub struct StabilizerChain {
    pub(super) points: usize,
    pub(super) elements: Vec<Element>,
    pub(super) levels: Vec<ChainLevel>,
}

impl StabilizerChain {
    /// The chain of the group that `generators` generate. The base begins with `first`, if given.
    ///
    /// With the order known, the work ends when it is reached; otherwise the chain is proved complete.
    pub fn new(
        points: usize,
        generators: &[Permutation],
        first: Option<u32>,
        order: Option<&BigUint>,
        clock: &mut Clock<'_>,
    ) -> Result<Self> {
        let mut chain = Self::begin(points, generators, first);
        chain.fill(order, clock)?;
        if order.is_none() {
            chain.thin_out();
            chain.prove(clock)?;
        }
        Ok(chain)
    }

    /// A chain that holds the generators and may lack much of what they generate.
    pub(super) fn begin(points: usize, generators: &[Permutation], first: Option<u32>) -> Self {
        let levels = first.map(|point| ChainLevel::new(points, point)).into_iter().collect();
        let mut chain = Self { points, elements: Vec::new(), levels };
        for generator in generators.iter().filter(|generator| !generator.is_identity()) {
            chain.insert(generator.images(points), 0);
        }
        chain
    }

    /// The chain of a strong generating set: each generator comes with the number of base points it fixes from the front.
    pub fn from_strong(points: usize, base: &[u32], strong: &[(Permutation, usize)]) -> Self {
        let levels = base.iter().map(|&point| ChainLevel::new(points, point)).collect();
        let mut chain = Self { points, elements: Vec::new(), levels };
        for (permutation, fixes) in strong {
            let index = chain.elements.len() as u32;
            chain.elements.push(Element::new(permutation.images(points), *fixes));
            for level in chain.levels.iter_mut().take(fixes + 1) {
                level.generators.push(index);
            }
        }
        for level in 0..base.len() {
            chain.grow(level);
        }
        chain
    }

    /// The base points.
    pub fn base(&self) -> Vec<u32> {
        self.levels.iter().map(|level| level.point).collect()
    }

    /// The exact order of the group.
    pub fn order(&self) -> BigUint {
        self.levels.iter().map(|level| BigUint::from(level.orbit.len())).product()
    }

    /// Generators of the stabilizer of the first base point, each with the number of later base points it fixes.
    pub fn first_stabilizer(&self) -> Vec<(Permutation, usize)> {
        let Some(level) = self.levels.get(1) else { return Vec::new() };
        let element = |&index: &u32| &self.elements[index as usize];
        level
            .generators
            .iter()
            .map(element)
            .map(|e| (Permutation::from_moves((0..).zip(e.images.iter().copied()).collect()), e.fixes - 1))
            .collect()
    }

    /// Whether the permutation with these images belongs to the group.
    pub fn contains(&self, images: &[u32], clock: &mut Clock<'_>) -> Result<bool> {
        let mut rest = images.to_vec();
        Ok(images.len() == self.points && self.sift(0, &mut rest, clock)?.is_none())
    }

    /// Divides `rest` by coset representatives from `level` on. The level at which that fails; none if nothing is left.
    fn sift(&self, level: usize, rest: &mut [u32], clock: &mut Clock<'_>) -> Result<Option<usize>> {
        self.sift_by(level, rest, |level, rest, image| self.divide(&self.levels[level].via, rest, image, clock))
    }

    /// Sifts where `divide` knows how to divide by the representative of a level that maps its base point to an image.
    pub(super) fn sift_by(
        &self,
        level: usize,
        rest: &mut [u32],
        mut divide: impl FnMut(usize, &mut [u32], u32) -> Result<()>,
    ) -> Result<Option<usize>> {
        for (index, level) in self.levels.iter().enumerate().skip(level) {
            let image = rest[level.point as usize];
            if level.via[image as usize] == 0 {
                return Ok(Some(index));
            }
            divide(index, rest, image)?;
        }
        let identity = (0..).zip(&*rest).all(|(point, &image)| point == image);
        Ok(if identity { None } else { Some(self.levels.len()) })
    }

    /// Multiplies by the inverse of the element that maps the root of a tree to `image`.
    pub(super) fn divide(&self, via: &[u32], rest: &mut [u32], mut image: u32, clock: &mut Clock<'_>) -> Result<()> {
        while via[image as usize] != ROOT {
            let inverse = &self.elements[via[image as usize] as usize - 1].inverse;
            for point in rest.iter_mut() {
                *point = inverse[*point as usize];
            }
            image = inverse[image as usize];
            clock.spend(self.points)?;
        }
        Ok(())
    }

    /// Adds an element that fixes at least the first `known` base points, and base points if it fixes all of them.
    pub(super) fn insert(&mut self, images: Vec<u32>, known: usize) {
        let moved = |point: u32| images[point as usize] != point;
        let fixes = self.levels.iter().position(|level| moved(level.point)).unwrap_or_else(|| {
            let point = (0..self.points as u32).find(|&point| moved(point)).unwrap_or(0);
            self.levels.push(ChainLevel::new(self.points, point));
            // Every element so far that fixes the earlier base points belongs here too, but those were all sifted.
            self.levels.len() - 1
        });
        let index = self.elements.len() as u32;
        self.elements.push(Element::new(images, fixes));
        for level in known..=fixes {
            self.levels[level].generators.push(index);
            self.extend(level, index);
        }
    }

    /// Extends the orbit of a level by a new generator, leaving its tree otherwise as it is.
    fn extend(&mut self, level: usize, generator: u32) {
        let ChainLevel { generators, helpers, orbit, via, .. } = &mut self.levels[level];
        let before = orbit.len();
        let mut next = 0;
        while next < orbit.len() {
            let from = orbit[next] as usize;
            let fresh = [generator];
            let (all, more) = if next < before { (&fresh[..], &[][..]) } else { (&generators[..], &helpers[..]) };
            next += 1;
            for &element in all.iter().chain(more) {
                let to = self.elements[element as usize].images[from];
                if via[to as usize] == 0 {
                    via[to as usize] = element + 1;
                    orbit.push(to);
                }
            }
        }
    }

    /// Finds the orbit of a level afresh, breadth first.
    fn grow(&mut self, level: usize) {
        let ChainLevel { point, generators, helpers, orbit, via } = &mut self.levels[level];
        via.fill(0);
        via[*point as usize] = ROOT;
        orbit.clear();
        orbit.push(*point);
        let mut next = 0;
        while next < orbit.len() {
            let from = orbit[next] as usize;
            next += 1;
            for &element in helpers.iter().chain(&*generators) {
                let to = self.elements[element as usize].images[from];
                if via[to as usize] == 0 {
                    via[to as usize] = element + 1;
                    orbit.push(to);
                }
            }
        }
    }

    /// Enlarges the chain by random elements.
    fn fill(&mut self, order: Option<&BigUint>, clock: &mut Clock<'_>) -> Result<()> {
        if self.elements.is_empty() {
            return Ok(());
        }
        let mut random = Replacement::new(&self.elements, clock)?;
        if self.points >= 64 {
            for _ in 0..4 {
                let helper = self.elements.len() as u32;
                self.elements.push(Element::new(random.next(clock)?.to_vec(), 0));
                self.levels[0].helpers.push(helper);
            }
            self.grow(0);
        }
        let mut idle = 0;
        while order.map_or(idle < IDLE, |order| self.order() != *order) {
            let mut rest = random.next(clock)?.to_vec();
            match self.sift(0, &mut rest, clock)? {
                None => idle += 1,
                Some(level) => {
                    idle = 0;
                    // What was divided out belongs to the chain, so the rest may be added below the first level.
                    self.insert(rest, level.min(1));
                }
            }
            if idle > 100_000 {
                let detail = "the known order is out of reach of the generators".to_string();
                return Err(Error::Check { what: "a stabilizer chain", detail });
            }
        }
        Ok(())
    }

    /// Keeps below the first level only as many elements as reach the same orbits. If the chain is complete they generate
    /// the same stabilizers, and the proof has fewer equations; if it is not, the proof adds what is missing.
    fn thin_out(&mut self) {
        let mut kept = Vec::new();
        for index in (1..self.levels.len()).rev() {
            let full = self.levels[index].orbit.len();
            let all = std::mem::replace(&mut self.levels[index].generators, kept);
            self.grow(index);
            // The last ones are products of many, which lead far.
            for &element in all.iter().rev() {
                let reached = self.levels[index].orbit.len();
                if reached == full {
                    break;
                }
                if self.elements[element as usize].fixes > index {
                    continue;
                }
                self.levels[index].generators.push(element);
                self.extend(index, element);
                if self.levels[index].orbit.len() == reached {
                    self.levels[index].generators.pop();
                }
            }
            if self.levels[index].orbit.len() < full {
                self.levels[index].generators = all;
            }
            self.grow(index);
            kept = self.levels[index].generators.clone();
        }
    }
}

impl ChainLevel {
    fn new(points: usize, point: u32) -> Self {
        let mut via = vec![0; points];
        via[point as usize] = ROOT;
        Self { point, generators: Vec::new(), helpers: Vec::new(), orbit: vec![point], via }
    }
}

impl Element {
    fn new(images: Vec<u32>, fixes: usize) -> Self {
        let mut inverse = vec![0; images.len()];
        for (point, &image) in (0..).zip(&images) {
            inverse[image as usize] = point;
        }
        Self { images, inverse, fixes }
    }
}

/// Pseudorandom numbers (splitmix64), the same in every run.
#[derive(Default)]
pub(super) struct Random(u64);

impl Random {
    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) % bound as u64) as usize
    }
}

/// Nearly uniform random elements: products of a changing list of generators.
struct Replacement {
    slots: Vec<Vec<u32>>,
    product: Vec<u32>,
    random: Random,
}

impl Replacement {
    fn new(elements: &[Element], clock: &mut Clock<'_>) -> Result<Self> {
        let slots: Vec<_> =
            elements.iter().cycle().take(elements.len().max(10)).map(|element| element.images.clone()).collect();
        let product = (0..slots[0].len() as u32).collect();
        let mut replacement = Self { slots, product, random: Random::default() };
        for _ in 0..60 + replacement.slots.len() {
            replacement.next(clock)?;
        }
        Ok(replacement)
    }

    fn next(&mut self, clock: &mut Clock<'_>) -> Result<&[u32]> {
        let count = self.slots.len();
        let changed = self.random.below(count);
        let other = (changed + 1 + self.random.below(count - 1)) % count;
        let factor = self.slots[other].clone();
        let slot = &mut self.slots[changed];
        for image in slot.iter_mut() {
            *image = factor[*image as usize];
        }
        for image in &mut self.product {
            *image = slot[*image as usize];
        }
        clock.spend(2 * factor.len())?;
        Ok(&self.product)
    }
}
