//! Automorphism groups of graphs: generators, exact order, orbits, stabilizers and orbitals.
//!
//! [`automorphism_group`] searches; [`AutomorphismGroup::from_generators`] takes any permutation group and
//! [`AutomorphismGroup::hamming`] knows the answer. What is expensive and not always wanted, a stabilizer chain for
//! groups that come without one, is made when it is first asked for and kept.

mod adjacency;
mod clock;
mod hamming;
mod orbitals;
mod partition;
mod permutation;
mod regions;
mod schreier;
mod search;
mod verify;

pub use clock::Clock;
pub use orbitals::{OrbitalBlock, Orbitals};
pub use permutation::{Orbits, Permutation};

use crate::Graph;
use crate::monitor::Monitor;
use crate::{Error, Result, memory};
use adjacency::Adjacency;
use num_bigint::BigUint;
use schreier::StabilizerChain;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// More generators than this make a second search cheaper than a pass over all pairs for each of them.
const FEW_GENERATORS: usize = 12;

/// A base, and which generators fix how much of it.
#[derive(Clone, Debug)]
struct Strong {
    base: Vec<u32>,
    /// For each generator the number of base points it fixes from the front.
    fixes: Vec<usize>,
    /// Whether the generators are strong for the whole base; otherwise only those that fix the first point generate its
    /// stabilizer.
    complete: bool,
}

/// A graph whose automorphisms, as far as they keep colors, are the whole group.
#[derive(Debug)]
struct Origin {
    adjacency: Arc<Adjacency>,
    /// Numbered from 0 without gaps.
    colors: Vec<u32>,
}

/// A group of permutations of `0..points`.
#[derive(Clone, Debug)]
pub struct AutomorphismGroup {
    points: usize,
    generators: Vec<Permutation>,
    orbits: Vec<u32>,
    strong: Option<Strong>,
    origin: Option<Arc<Origin>>,
    order: OnceLock<BigUint>,
    chain: OnceLock<StabilizerChain>,
}

/// What a group is stored as.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Number of points.
    pub points: usize,
    /// The moves of all generators, one after the other, each point with its image.
    pub moves: Vec<(u32, u32)>,
    /// The number of moves of each generator.
    pub lengths: Vec<u32>,
    /// A base, or its first point; empty if unknown.
    pub base: Vec<u32>,
    /// For each generator the number of base points it fixes from the front; empty if unknown.
    pub fixes: Vec<u32>,
    /// Whether base and generators are strong.
    pub complete: bool,
    /// The order, if known.
    pub order: Option<BigUint>,
}

/// Bytes that the search takes for each vertex and edge, about.
const VERTEX: u32 = 160;
const EDGE: u32 = 24;
/// Bytes of a group for each point, without generators.
const GROUP: u128 = 24;

/// The group of all automorphisms of a graph that keep colors; loops and multiplicities of edges are ignored.
///
/// # Errors
/// [`Error::Shape`] unless there is one color for each vertex, [`Error::TooLarge`] without memory for the search,
/// [`Error::TimeLimit`] when the time is over, and the
/// monitor's objection.
pub fn automorphism_group(
    graph: &Graph,
    colors: Option<&[u32]>,
    time_limit: Option<Duration>,
    monitor: &mut dyn Monitor,
) -> Result<AutomorphismGroup> {
    let n = graph.vertices();
    memory::charge("the search for automorphisms", graph.bytes(VERTEX, EDGE))?;
    let colors = colors.map_or_else(|| vec![0; n], without_gaps);
    if colors.len() != n {
        return Err(Error::shape("colors", format!("({n},)"), format!("({},)", colors.len())));
    }
    let adjacency = Arc::new(Adjacency::shorter(graph));
    let mut clock = Clock::new("the search for automorphisms", time_limit, monitor);
    AutomorphismGroup::search(Arc::new(Origin { adjacency, colors }), &mut clock)
}

/// The same colors in the same order, numbered 0, 1, ...
fn without_gaps(colors: &[u32]) -> Vec<u32> {
    let mut distinct = colors.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    colors.iter().map(|color| distinct.partition_point(|other| other < color) as u32).collect()
}

/// Checks that permutations map edges to edges.
///
/// # Errors
/// [`Error::Domain`] naming the first edge that comes to lie where there is none, [`Error::Shape`] if the numbers of points
/// differ.
pub fn check_automorphisms(graph: &Graph, group: &AutomorphismGroup) -> Result<()> {
    if graph.vertices() != group.points {
        return Err(Error::shape("generators", format!("(k, {})", graph.vertices()), format!("(k, {})", group.points)));
    }
    let adjacency = Adjacency::new(graph);
    for (index, generator) in group.generators.iter().enumerate() {
        for &(u, to) in generator.moves() {
            let lost = |&&v: &&u32| adjacency.neighbors(to).binary_search(&generator.image(v)).is_err();
            if let Some(&v) = adjacency.neighbors(u).iter().find(lost) {
                let value =
                    format!("one (number {index}) that maps the edge ({u}, {v}) to ({to}, {})", generator.image(v));
                return Err(Error::domain("generators", value, "automorphisms of the graph"));
            }
        }
    }
    Ok(())
}

impl AutomorphismGroup {
    fn search(origin: Arc<Origin>, clock: &mut Clock<'_>) -> Result<Self> {
        let found = search::search(&origin.adjacency, &origin.colors, clock)?;
        let (generators, fixes) = found.generators.into_iter().unzip();
        Ok(Self {
            points: origin.colors.len(),
            generators,
            orbits: found.orbits,
            strong: Some(Strong { base: found.base, fixes, complete: true }),
            origin: Some(origin),
            order: OnceLock::from(found.lengths.into_iter().map(BigUint::from).product::<BigUint>()),
            chain: OnceLock::new(),
        })
    }

    /// The group that some permutations generate.
    ///
    /// # Errors
    /// [`Error::Domain`] if one moves a point beyond `0..points`, or there are more than `2^32 - 1` points.
    pub fn from_generators(points: usize, generators: Vec<Permutation>) -> Result<Self> {
        if points > u32::MAX as usize {
            return Err(Error::domain("n", points, "below 2**32"));
        }
        let last = |generator: &Permutation| generator.moves().last().map(|&(point, _)| point);
        if let Some(point) = generators.iter().filter_map(last).find(|&point| point as usize >= points) {
            return Err(Error::domain("generators", format!("one that moves {point}"), "permutations of 0..n"));
        }
        memory::charge("a permutation group", GROUP * points as u128)?;
        let orbits = Orbits::of(points, &generators).labels();
        let (order, chain) = (OnceLock::new(), OnceLock::new());
        Ok(Self { points, generators, orbits, strong: None, origin: None, order, chain })
    }

    /// The group that permutations generate, each given by the images of all points.
    ///
    /// # Errors
    /// [`Error::Shape`] for a row of another length, [`Error::Domain`] naming the first row that is no permutation.
    pub fn from_rows(points: usize, rows: &[Vec<i64>]) -> Result<Self> {
        let mut generators = Vec::with_capacity(rows.len());
        for (index, row) in rows.iter().enumerate() {
            if row.len() != points {
                return Err(Error::shape("generators", format!("(k, {points})"), format!("(k, {})", row.len())));
            }
            // What is no point becomes an image out of range.
            let images: Vec<u32> = row.iter().map(|&image| u32::try_from(image).unwrap_or(u32::MAX)).collect();
            generators.push(Permutation::from_images(&images).map_err(|place| {
                Error::domain(
                    "generators",
                    format!("{} at ({index}, {place})", row[place]),
                    "permutations of 0..n, each number once in a row",
                )
            })?);
        }
        Self::from_generators(points, generators)
    }

    /// All that [`AutomorphismGroup::from_parts`] needs.
    pub fn parts(&self) -> Parts {
        let strong = self.strong.as_ref();
        Parts {
            points: self.points,
            moves: self.generators.iter().flat_map(|generator| generator.moves()).copied().collect(),
            lengths: self.generators.iter().map(|generator| generator.moves().len() as u32).collect(),
            base: strong.map_or_else(Vec::new, |strong| strong.base.clone()),
            fixes: strong.map_or_else(Vec::new, |strong| strong.fixes.iter().map(|&fixes| fixes as u32).collect()),
            complete: strong.is_some_and(|strong| strong.complete),
            order: self.order.get().cloned(),
        }
    }

    /// The group with these parts. That generators are permutations is checked; that base and order belong to them is not.
    ///
    /// # Errors
    /// [`Error::Domain`] or [`Error::Shape`] if the parts do not fit together.
    pub fn from_parts(parts: Parts) -> Result<Self> {
        let mut generators = Vec::with_capacity(parts.lengths.len());
        let mut rest = &parts.moves[..];
        for &length in &parts.lengths {
            let moves = rest.split_off(..length as usize).unwrap_or_default();
            generators.push(Permutation::from_checked_moves(moves.to_vec())?);
        }
        if !rest.is_empty() || (!parts.fixes.is_empty() && parts.fixes.len() != generators.len()) {
            return Err(Error::shape("fixes", format!("({},)", generators.len()), format!("({},)", parts.fixes.len())));
        }
        if let Some(point) = parts.base.iter().find(|&&point| point as usize >= parts.points) {
            return Err(Error::domain("base", point, "points in 0..n"));
        }
        let mut group = Self::from_generators(parts.points, generators)?;
        if parts.fixes.len() == group.generators.len() && (parts.complete || !parts.base.is_empty()) {
            let fixes = parts.fixes.iter().map(|&fixes| fixes as usize).collect();
            group.strong = Some(Strong { base: parts.base, fixes, complete: parts.complete });
        }
        group.order = parts.order.map_or_else(OnceLock::new, OnceLock::from);
        Ok(group)
    }

    /// Sets the order, for groups whose order follows from their construction.
    fn know_order(&mut self, order: BigUint) {
        self.order = OnceLock::from(order);
    }

    /// Number of points.
    pub fn points(&self) -> usize {
        self.points
    }

    /// The generators.
    pub fn generators(&self) -> &[Permutation] {
        &self.generators
    }

    /// For each point the number of its orbit; orbits are counted in the order of their first points.
    pub fn orbits(&self) -> &[u32] {
        &self.orbits
    }

    /// Whether there is at most one orbit.
    pub fn is_transitive(&self) -> bool {
        self.orbits.iter().all(|&orbit| orbit == 0)
    }

    /// The exact order.
    ///
    /// # Errors
    /// The clock's, where a stabilizer chain must be made first.
    pub fn order(&self, clock: &mut Clock<'_>) -> Result<&BigUint> {
        if let Some(order) = self.order.get() {
            return Ok(order);
        }
        let order = self.chain(clock)?.order();
        Ok(self.order.get_or_init(|| order))
    }

    /// Whether the order is there without further work.
    pub fn is_order_known(&self) -> bool {
        self.order.get().is_some()
    }

    /// A base: points that only the identity fixes one and all.
    ///
    /// # Errors
    /// The clock's, where a stabilizer chain must be made first.
    pub fn base(&self, clock: &mut Clock<'_>) -> Result<Vec<u32>> {
        match &self.strong {
            Some(Strong { base, complete: true, .. }) => Ok(base.clone()),
            _ => Ok(self.chain(clock)?.base()),
        }
    }

    fn chain(&self, clock: &mut Clock<'_>) -> Result<&StabilizerChain> {
        if let Some(chain) = self.chain.get() {
            return Ok(chain);
        }
        let chain = match &self.strong {
            Some(Strong { base, fixes, complete: true }) => {
                let strong: Vec<_> = self.generators.iter().cloned().zip(fixes.iter().copied()).collect();
                StabilizerChain::from_strong(self.points, base, &strong)
            }
            _ => {
                if self.order.get().is_none()
                    && let Some(order) = schreier::order_of_giant(self.points, &self.generators, clock)?
                {
                    let _ = self.order.set(order); // another thread may have found the same meanwhile
                }
                StabilizerChain::new(self.points, &self.generators, None, self.order.get(), clock)?
            }
        };
        Ok(self.chain.get_or_init(|| chain))
    }

    /// Whether a permutation, given by the images of all points, belongs to the group.
    ///
    /// # Errors
    /// [`Error::Domain`] if `images` is no permutation, [`Error::Shape`] if it is one of other points, and the clock's.
    pub fn contains(&self, images: &[u32], clock: &mut Clock<'_>) -> Result<bool> {
        if images.len() != self.points {
            return Err(Error::shape("permutation", format!("({},)", self.points), format!("({},)", images.len())));
        }
        let permutation = Permutation::from_images(images).map_err(|place| {
            Error::domain(
                "permutation",
                format!("{} at index {place}", images[place]),
                "a permutation of 0..n, each number once",
            )
        })?;
        match &self.origin {
            Some(origin) => Ok(origin.is_kept_by(&permutation, images)),
            None => self.chain(clock)?.contains(images, clock),
        }
    }

    /// The subgroup that fixes a point.
    ///
    /// # Errors
    /// [`Error::Domain`] if `point` is none, and the clock's.
    pub fn stabilizer(&self, point: u32, clock: &mut Clock<'_>) -> Result<Self> {
        if point as usize >= self.points {
            return Err(Error::domain("v", point, "a point in 0..n"));
        }
        if let Some(Strong { base, complete: true, .. }) = &self.strong
            && base.first() == Some(&point)
        {
            let (generators, fixes) = self.fixing_first().map(|(g, fixes)| (g.clone(), fixes - 1)).unzip();
            let mut group = Self::from_generators(self.points, generators)?;
            group.order = match self.order.get() {
                Some(order) => OnceLock::from(order / self.orbit_length(point)),
                None => OnceLock::new(),
            };
            group.strong = Some(Strong { base: base[1..].to_vec(), fixes, complete: true });
            group.origin = self.origin.as_ref().map(|origin| Arc::new(origin.with_fixed(point)));
            return Ok(group);
        }
        if let Some(origin) = &self.origin {
            return Self::search(Arc::new(origin.with_fixed(point)), clock);
        }
        let chain = StabilizerChain::new(self.points, &self.generators, Some(point), self.order.get(), clock)?;
        let (generators, fixes) = chain.first_stabilizer().into_iter().unzip();
        let mut group = Self::from_generators(self.points, generators)?;
        group.know_order(chain.order() / self.orbit_length(point));
        group.strong = Some(Strong { base: chain.base()[1..].to_vec(), fixes, complete: true });
        Ok(group)
    }

    /// The generators that fix the first base point, with the number of base points they fix.
    fn fixing_first(&self) -> impl Iterator<Item = (&Permutation, usize)> {
        let fixes = self.strong.iter().flat_map(|strong| &strong.fixes).copied();
        self.generators.iter().zip(fixes).filter(|&(_, fixes)| fixes > 0)
    }

    fn orbit_length(&self, point: u32) -> usize {
        self.orbits.iter().filter(|&&orbit| orbit == self.orbits[point as usize]).count()
    }

    /// For each point of the orbit of `point`, in rising order, the images of all points under one group element that
    /// takes `point` there.
    ///
    /// # Errors
    /// [`Error::Domain`] if `point` is none, [`Error::TooLarge`] beyond the memory limit, and the clock's.
    pub fn transversal(
        &self,
        point: u32,
        memory_limit: u128,
        clock: &mut Clock<'_>,
    ) -> Result<(Vec<u32>, Vec<Vec<u32>>)> {
        let Some(&orbit) = self.orbits.get(point as usize) else {
            return Err(Error::domain("v", point, "a point in 0..n"));
        };
        let members: Vec<u32> = (0..self.points as u32).filter(|&v| self.orbits[v as usize] == orbit).collect();
        // Four bytes here and eight in the array that is made of it.
        let needed = (12 * members.len() + 4 * self.generators.len()) as u128 * self.points as u128;
        memory::check("a transversal", needed, memory_limit)?;
        memory::charge("a transversal", needed)?;
        let images: Vec<_> = self.generators.iter().map(|generator| generator.images(self.points)).collect();
        let mut elements: Vec<Option<Vec<u32>>> = vec![None; members.len()];
        let place = |v: u32| members.partition_point(|&member| member < v);
        elements[place(point)] = Some((0..self.points as u32).collect());
        let mut queue = vec![point];
        while let Some(from) = queue.pop() {
            for image in &images {
                let to = image[from as usize];
                if elements[place(to)].is_none() {
                    clock.spend(self.points)?;
                    let before = elements[place(from)].iter().flatten();
                    elements[place(to)] = Some(before.map(|&v| image[v as usize]).collect());
                    queue.push(to);
                }
            }
        }
        Ok((members, elements.into_iter().flatten().collect()))
    }

    /// The orbits on ordered pairs of points.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for more than 65536 points or beyond the memory limit, and the clock's.
    pub fn orbitals(&self, memory_limit: u128, clock: &mut Clock<'_>) -> Result<Orbitals> {
        let first = self.strong.as_ref().and_then(|strong| strong.base.first().copied());
        let representative = |members: &[u32]| match first {
            Some(first) if members.binary_search(&first).is_ok() => first,
            _ => members[0],
        };
        Orbitals::new(
            self.points,
            &self.generators,
            representative,
            &mut |point, clock| self.stabilizer_orbits(point, clock),
            memory_limit,
            clock,
        )
    }

    /// The orbits of the stabilizer of a point, where there is a cheap way to them.
    fn stabilizer_orbits(&self, point: u32, clock: &mut Clock<'_>) -> Result<Option<Orbits>> {
        if self.order.get().is_some_and(|order| *order == BigUint::from(self.orbit_length(point))) {
            return Ok(Some(Orbits::new(self.points)));
        }
        let fixed = self.generators.iter().all(|generator| generator.image(point) == point);
        if fixed {
            return Ok(Some(Orbits::of(self.points, &self.generators)));
        }
        if self.strong.as_ref().is_some_and(|strong| strong.base.first() == Some(&point)) {
            return Ok(Some(Orbits::of(self.points, self.fixing_first().map(|(generator, _)| generator))));
        }
        match &self.origin {
            Some(_) if self.generators.len() > FEW_GENERATORS => {
                Ok(Some(Orbits::of(self.points, &self.stabilizer(point, clock)?.generators)))
            }
            _ => Ok(None),
        }
    }

    /// The number of orbits on ordered pairs; for a transitive group that is its rank.
    ///
    /// # Errors
    /// As [`AutomorphismGroup::orbitals`], unless the stabilizer of the first base point tells.
    pub fn rank(&self, memory_limit: u128, clock: &mut Clock<'_>) -> Result<usize> {
        if self.generators.iter().all(Permutation::is_identity) {
            return Ok(self.points * self.points);
        }
        match self.strong.as_ref().and_then(|strong| strong.base.first()) {
            Some(&first) if self.is_transitive() => {
                let classes = self.stabilizer_orbits(first, clock)?.map(|mut classes| classes.labels());
                Ok(classes.and_then(|labels| labels.into_iter().max()).map_or(0, |most| most as usize + 1))
            }
            _ => Ok(self.orbitals(memory_limit, clock)?.rank()),
        }
    }
}

impl Origin {
    /// The same graph with one vertex in a color of its own.
    fn with_fixed(&self, vertex: u32) -> Self {
        // Within its color the vertex comes last; a color of which nothing is left leaves a gap, which is closed.
        let colors = (0..)
            .zip(&self.colors)
            .map(|(v, &color)| color + u32::from(color > self.colors[vertex as usize] || v == vertex));
        let colors: Vec<u32> = colors.collect();
        Self { adjacency: Arc::clone(&self.adjacency), colors: without_gaps(&colors) }
    }

    /// Whether a permutation keeps colors and edges.
    fn is_kept_by(&self, permutation: &Permutation, images: &[u32]) -> bool {
        let mut marks = vec![u32::MAX; images.len()];
        permutation.moves().iter().all(|&(from, to)| {
            for &neighbor in self.adjacency.neighbors(to) {
                marks[neighbor as usize] = from;
            }
            let neighbors = self.adjacency.neighbors(from);
            self.colors[from as usize] == self.colors[to as usize]
                && neighbors.len() == self.adjacency.degree(to)
                && neighbors.iter().all(|&neighbor| marks[images[neighbor as usize] as usize] == from)
        })
    }
}

#[cfg(test)]
mod tests;
