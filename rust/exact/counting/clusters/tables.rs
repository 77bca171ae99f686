//! What happens to the tables of a tree of bags, written down once: which partition of a scope comes of which, and with what factor.
//!
//! A vertex v with its scope is a bag. The partitions of the children's scopes are joined over the bag, where vertices that no child has are
//! blocks of their own; then each edge from v into the scope is left out, or taken and joins two blocks or closes a cycle, and v leaves
//! its block or ends it. All partitions that come of one are listed at once, with a [`Coefficient`] for what was done.
//!
//! Which partitions there are depends on the graph alone. Only those are listed that are reached: in an order that sweeps over the plane
//! they do not cross. An edge that no term closes a cycle with (one of a proper coloring) is *hard*: both its ends in one block are worth
//! nothing from then on, so that such partitions are left out, before the edge itself is met.
//!
//! Where the number q of colors is a small integer, the blocks may be those of equal color instead, q at the most: then an edge has a factor
//! for ends of one color and one for others, a vertex of a new color has as many as are left, and children are multiplied, each at its own
//! part of the bag's partition. These states are fewer on graphs that are not planar, and for two or three colors; for others more.
//!
//! Bags that look alike have one table between them; so the plan of a lattice is as long as a few of its rows.
//!
//! Source: J. Salas, A. D. Sokal (2001), Transfer matrices and partition-function zeros for antiferromagnetic Potts models I, J. Stat. Phys. 104
//! (partitions without crossings and without neighbors in a block); R. Andrzejak (1998), An algorithm for the Tutte polynomials of graphs of
//! bounded treewidth, Discrete Math. 190 (trees of bags).

use super::partition::{self, PartitionCode, members};
use crate::Result;
use crate::counting::graph_sums::planner::Planner;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// What a table is called where it does not fit.
pub const WHAT: &str = "the set partitions of a frontier";
/// Partitions that are worked on between two looks at the memory and the planner.
const LOOK: usize = 256;
/// Bytes of a partition and of a term while they are collected, about.
const LISTED: usize = 64;
const TERM: usize = 20;
/// Bytes up to which all terms have numbers of 32 bits: at [`TERM`] bytes each there are fewer than 2^32.
const MOST_BYTES: u64 = 1 << 36;

/// An edge, or some that are parallel: the number of its kind.
pub type Kind = u32;

/// What a vertex, its scope and its children look like.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BagShape {
    /// The set of partitions of each child, and where the vertices of its scope are in the bag.
    pub children: Vec<(u32, Vec<u8>)>,
    /// The edges of the vertex into the scope: the other end's place in the bag, the kind.
    pub edges: Vec<(u8, Kind)>,
    /// For each vertex of the bag, those it is joined to by hard edges.
    pub hard: Vec<u32>,
}

/// What is done with the edges of a vertex at once: the product of the factors of all that is listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Coefficient {
    /// Edges with both ends in one block.
    pub own: Vec<Kind>,
    /// For each block that is joined, the edges to it.
    pub joined: Vec<Vec<Kind>>,
    /// Edges that are left out.
    pub apart: Vec<Kind>,
    /// Whether a block ends.
    pub ends: bool,
    /// How many colors others have, where a color's block ends.
    pub colored: usize,
}

/// Sums of the elements of one or two tables.
#[derive(Debug, Default)]
pub struct Terms {
    /// Where the terms of each sum begin, those without and those with a factor.
    starts: Vec<[u32; 2]>,
    plain: Vec<u32>,
    weighted: Vec<[u32; 2]>,
}

/// Terms of one sum: plain elements, and pairs of an element and a factor.
pub type SumTerms<'t> = (&'t [u32], &'t [[u32; 2]]);

impl Terms {
    /// Sorts terms: what they are added to, an element, and perhaps a factor.
    fn new(sums: usize, terms: &[(u32, u32, Option<u32>)]) -> Self {
        let mut starts = vec![[0u32; 2]; sums + 1];
        for &(sum, _, factor) in terms {
            starts[sum as usize + 1][usize::from(factor.is_some())] += 1;
        }
        for i in 0..sums {
            for kind in 0..2 {
                starts[i + 1][kind] += starts[i][kind];
            }
        }
        let [plain, weighted] = starts[sums];
        let mut found = Self { starts, plain: vec![0; plain as usize], weighted: vec![[0; 2]; weighted as usize] };
        let mut next = found.starts.clone();
        for &(sum, element, factor) in terms {
            let next = &mut next[sum as usize];
            match factor {
                None => {
                    found.plain[next[0] as usize] = element;
                    next[0] += 1;
                }
                Some(factor) => {
                    found.weighted[next[1] as usize] = [element, factor];
                    next[1] += 1;
                }
            }
        }
        found
    }

    /// Sums there are.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The terms of a sum.
    #[inline(always)]
    pub fn sum(&self, i: usize) -> SumTerms<'_> {
        let ([a, b], [c, d]) = (self.starts[i], self.starts[i + 1]);
        (&self.plain[a as usize..c as usize], &self.weighted[b as usize..d as usize])
    }

    /// Additions; a product takes as long as a few.
    pub fn work(&self) -> u64 {
        (self.len() + self.plain.len() + 3 * self.weighted.len()) as u64
    }

    fn bytes(&self) -> usize {
        8 * self.starts.len() + 4 * self.plain.len() + 8 * self.weighted.len()
    }
}

/// How a child is joined to those before.
#[derive(Debug)]
pub struct ChildJoin {
    /// Pairs of elements, the second times a power of the factor of a cycle: that of the k-th power is k tables further.
    pub terms: Terms,
    /// Powers there are.
    pub powers: usize,
    /// Elements of the child's message.
    pub len: usize,
}

/// What happens at bags that look alike.
#[derive(Debug)]
pub struct BagTable {
    /// For the second child and each further one.
    pub joins: Vec<ChildJoin>,
    /// The sums over the elements of the joined table.
    pub sums: Terms,
    /// The factors that these refer to.
    pub coefficients: Vec<Coefficient>,
    /// The set of partitions that come of it.
    pub set: u32,
}

impl BagTable {
    /// Additions.
    pub fn work(&self) -> u64 {
        self.terms().map(Terms::work).sum()
    }

    /// Elements of the longest joined table, and of a message times the powers.
    pub fn room(&self) -> [usize; 2] {
        let join = |join: &ChildJoin| [join.terms.len(), if join.powers > 1 { join.powers * join.len } else { 0 }];
        self.joins.iter().map(join).fold([0; 2], |a, b| [a[0].max(b[0]), a[1].max(b[1])])
    }

    fn bytes(&self) -> usize {
        self.terms().map(Terms::bytes).sum()
    }

    fn terms(&self) -> impl Iterator<Item = &Terms> {
        self.joins.iter().map(|join| &join.terms).chain([&self.sums])
    }
}

/// How children are joined, and the partitions of the bag with their elements.
type Joined = (Vec<ChildJoin>, Vec<(PartitionCode, u32)>);

/// All tables of a plan.
pub struct BagTables<'p, 'w> {
    tables: Vec<Arc<BagTable>>,
    known: HashMap<BagShape, u32>,
    sets: Vec<Arc<[PartitionCode]>>,
    set_numbers: HashMap<Arc<[PartitionCode]>, u32>,
    plain: &'p dyn Fn(&Coefficient) -> bool,
    /// Colors there are, where the blocks are those of equal color.
    colors: Option<usize>,
    bytes: usize,
    limit: u64,
    planner: &'p Planner<'w>,
}

impl<'p, 'w> BagTables<'p, 'w> {
    /// None yet; `plain` says which products of factors are always 1.
    pub fn new(
        colors: Option<usize>,
        limit: u64,
        planner: &'p Planner<'w>,
        plain: &'p dyn Fn(&Coefficient) -> bool,
    ) -> Self {
        Self {
            tables: Vec::new(),
            known: HashMap::new(),
            sets: Vec::new(),
            set_numbers: HashMap::new(),
            plain,
            colors,
            bytes: 0,
            limit: limit.min(MOST_BYTES),
            planner,
        }
    }

    /// How many partitions a set has.
    pub fn set_len(&self, set: u32) -> usize {
        self.sets[set as usize].len()
    }

    /// The table of a bag.
    ///
    /// # Errors
    /// [`crate::Error::TooLarge`] beyond the limit, [`crate::Error::Interrupted`] when the planner says so.
    pub fn table(&mut self, bag: BagShape) -> Result<Arc<BagTable>> {
        if let Some(&number) = self.known.get(&bag) {
            return Ok(Arc::clone(&self.tables[number as usize]));
        }
        let (joins, joined) = match self.colors {
            Some(colors) => self.colored(&bag, colors)?,
            None => self.joined(&bag)?,
        };
        let mut listing = BagListing::new(&bag, self.plain, self.colors.is_some());
        let mut blocks = Vec::new();
        for (number, &(code, source)) in joined.iter().enumerate() {
            if number.is_multiple_of(LOOK) {
                self.look(LISTED * (joined.len() + listing.found.len()) + TERM * listing.terms.len())?;
            }
            partition::blocks(code, bag.hard.len(), &mut blocks);
            listing.expand(&blocks, source);
        }
        let BagListing { found, mut terms, coefficients, .. } = listing;
        let mut codes: Vec<(PartitionCode, u32)> = found.into_iter().collect();
        if codes.is_empty() {
            codes.push((0, 0)); // of which nothing comes: the sum is zero
        }
        codes.sort_unstable();
        let mut rank = vec![0u32; codes.len()];
        codes.iter().zip(0..).for_each(|(&(_, number), place)| rank[number as usize] = place);
        terms.iter_mut().for_each(|(sum, ..)| *sum = rank[*sum as usize]);
        let table = BagTable {
            joins,
            sums: Terms::new(codes.len(), &terms),
            coefficients,
            set: self.set(codes.into_iter().map(|(code, _)| code).collect()),
        };
        self.bytes += table.bytes();
        self.look(0)?;
        self.known.insert(bag, self.tables.len() as u32);
        self.tables.push(Arc::new(table));
        Ok(Arc::clone(&self.tables[self.tables.len() - 1]))
    }

    fn set(&mut self, codes: Arc<[PartitionCode]>) -> u32 {
        let number = self.sets.len() as u32;
        match self.set_numbers.entry(Arc::clone(&codes)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                self.bytes += size_of_val(&*codes);
                self.sets.push(codes);
                *place.insert(number)
            }
        }
    }

    /// Goes on where the planner does and so many bytes more fit.
    fn look(&self, more: usize) -> Result<()> {
        self.planner.check()?;
        crate::memory::check(WHAT, (self.bytes + more) as u128, self.limit)?;
        crate::memory::charge(WHAT, more as u128)
    }

    /// The partitions of the bag that the children make together, and where the element of each is in the joined table.
    fn joined(&self, bag: &BagShape) -> Result<Joined> {
        let Some(((set, places), others)) = bag.children.split_first() else {
            let mut singles: Vec<u32> = (0..bag.hard.len()).map(|v| 1 << v).collect();
            return Ok((Vec::new(), vec![(partition::code(&mut singles), 0)]));
        };
        let mut codes = self.lifted(*set, places, bag.hard.len());
        let mut joins = Vec::new();
        for (set, places) in others {
            let theirs = self.lifted(*set, places, bag.hard.len());
            let mut found: HashMap<PartitionCode, u32> = HashMap::new();
            let (mut terms, mut powers) = (Vec::new(), 1);
            let (mut ours, mut their, mut both) = (Vec::new(), Vec::new(), Vec::new());
            for (i, &code) in codes.iter().enumerate() {
                partition::blocks(code, bag.hard.len(), &mut ours);
                for (k, &code) in theirs.iter().enumerate() {
                    if k.is_multiple_of(LOOK) {
                        self.look(LISTED * found.len() + TERM * terms.len())?;
                    }
                    partition::blocks(code, bag.hard.len(), &mut their);
                    both.clone_from(&ours);
                    partition::join(&mut both, &their);
                    if !both.iter().any(|&block| is_worthless(&bag.hard, block)) {
                        // Forests on either side make so many cycles together.
                        let cycles = bag.hard.len() + both.len() - ours.len() - their.len();
                        powers = powers.max(cycles + 1);
                        let next = found.len() as u32;
                        let number = *found.entry(partition::code(&mut both)).or_insert(next);
                        terms.push((number, i as u32, Some((k + cycles * theirs.len()) as u32)));
                    }
                }
            }
            codes = vec![0; found.len()];
            found.into_iter().for_each(|(code, number)| codes[number as usize] = code);
            joins.push(ChildJoin { terms: Terms::new(codes.len(), &terms), powers, len: theirs.len() });
        }
        Ok((joins, codes.into_iter().zip(0..).collect()))
    }

    /// The same of colors.
    fn colored(&self, bag: &BagShape, colors: usize) -> Result<Joined> {
        let mut joins = Vec::new();
        let (mut codes, mut covered) = (vec![(0, 0)], 0u32);
        for (number, (set, places)) in bag.children.iter().enumerate() {
            let mask = places.iter().fold(0u32, |mask, &place| mask | 1 << place);
            let theirs = &self.sets[*set as usize];
            if number == 0 {
                codes = self.lifted(*set, places, bag.hard.len()).into_iter().zip(0..).collect();
                covered = mask;
                continue;
            }
            let ranks: HashMap<PartitionCode, u32> = theirs.iter().copied().zip(0..).collect();
            let (mut all, mut terms, mut part) = (Vec::new(), Vec::new(), Vec::new());
            self.colorings(bag, colors, &codes, (covered, covered | mask), |blocks, source| {
                part.clear();
                let seen = |block: &u32| {
                    places.iter().zip(0..).fold(0u32, |seen, (&place, bit)| seen | (block >> place & 1) << bit)
                };
                part.extend(blocks.iter().map(seen).filter(|&block| block != 0));
                if let Some(&rank) = ranks.get(&partition::code(&mut part)) {
                    terms.push((all.len() as u32, source, Some(rank)));
                    all.push((partition::code(blocks), all.len() as u32));
                }
                all.len()
            })?;
            joins.push(ChildJoin { terms: Terms::new(all.len(), &terms), powers: 1, len: theirs.len() });
            (codes, covered) = (all, covered | mask);
        }
        let mut all = Vec::new();
        self.colorings(bag, colors, &codes, (covered, (1 << bag.hard.len()) - 1), |blocks, source| {
            all.push((partition::code(blocks), source));
            all.len()
        })?;
        Ok((joins, all))
    }

    /// Gives the vertices of `wanted` beyond `covered` colors in all ways; `found` is told blocks and says how many it has.
    fn colorings(
        &self,
        bag: &BagShape,
        colors: usize,
        codes: &[(PartitionCode, u32)],
        (covered, wanted): (u32, u32),
        mut found: impl FnMut(&mut Vec<u32>, u32) -> usize,
    ) -> Result<()> {
        let new: Vec<usize> = members(wanted & !covered).collect();
        let (mut blocks, mut copy, mut looked) = (Vec::new(), Vec::new(), 0);
        for &(code, source) in codes {
            partition::blocks(code, bag.hard.len(), &mut blocks);
            // Vertices that are not covered have the number of the first block.
            blocks.iter_mut().for_each(|block| *block &= covered);
            blocks.retain(|&block| block != 0);
            // For each new vertex the block it is in; one beyond the last is a block of its own.
            let mut chosen: Vec<usize> = Vec::with_capacity(new.len());
            let mut next = 0;
            loop {
                if chosen.len() == new.len() {
                    copy.clone_from(&blocks);
                    let count = found(&mut copy, source);
                    if count >= looked + LOOK {
                        looked = count;
                        self.look(2 * LISTED * count)?;
                    }
                } else {
                    let v = new[chosen.len()];
                    let free = |&at: &usize| blocks.get(at).is_none_or(|block| bag.hard[v] & block == 0);
                    if let Some(at) = (next..colors.min(blocks.len() + 1)).find(free) {
                        if at == blocks.len() {
                            blocks.push(0);
                        }
                        blocks[at] |= 1 << v;
                        chosen.push(at);
                        next = 0;
                        continue;
                    }
                }
                let Some(at) = chosen.pop() else { break };
                blocks[at] &= !(1 << new[chosen.len()]);
                if blocks[at] == 0 {
                    blocks.pop();
                }
                next = at + 1;
            }
        }
        Ok(())
    }

    /// The partitions of a set over a bag.
    fn lifted(&self, set: u32, places: &[u8], vertices: usize) -> Vec<PartitionCode> {
        let among = places.iter().fold(0u32, |mask, &place| mask | 1 << place);
        let (mut below, mut above) = (Vec::new(), Vec::new());
        let lift = |&code: &PartitionCode| {
            partition::blocks(code, places.len(), &mut below);
            above.clear();
            above.extend(below.iter().map(|&block| members(block).fold(0u32, |mask, v| mask | 1 << places[v])));
            above.extend((0..vertices).map(|v| 1 << v).filter(|v| v & among == 0));
            partition::code(&mut above)
        };
        self.sets[set as usize].iter().map(lift).collect()
    }
}

/// Whether a block has both ends of a hard edge.
fn is_worthless(hard: &[u32], block: u32) -> bool {
    members(block).any(|v| hard[v] & block != 0)
}

/// What comes of the partitions of a bag.
struct BagListing<'b> {
    bag: &'b BagShape,
    is_colored: bool,
    plain: &'b dyn Fn(&Coefficient) -> bool,
    found: HashMap<PartitionCode, u32>,
    terms: Vec<(u32, u32, Option<u32>)>,
    coefficients: Vec<Coefficient>,
    numbers: HashMap<Coefficient, Option<u32>>,
    /// The same by what is done with each edge.
    patterns: HashMap<u128, Option<u32>>,
    /// The vertices that the edges go to.
    around: u32,
    rest: Vec<u32>,
}

/// A partition of a bag while its blocks are joined.
struct Branch<'s> {
    source: u32,
    /// All blocks but that of the vertex, those with edges to it first.
    others: &'s [u32],
    touching: usize,
}

impl<'b> BagListing<'b> {
    fn new(bag: &'b BagShape, plain: &'b dyn Fn(&Coefficient) -> bool, is_colored: bool) -> Self {
        Self {
            bag,
            is_colored,
            plain,
            found: HashMap::new(),
            terms: Vec::new(),
            coefficients: Vec::new(),
            numbers: HashMap::new(),
            patterns: HashMap::new(),
            around: bag.edges.iter().fold(0, |mask, (place, _)| mask | 1 << place),
            rest: Vec::new(),
        }
    }

    /// Lists what comes of a partition, whose first block has the vertex.
    fn expand(&mut self, blocks: &[u32], source: u32) {
        if is_worthless(&self.bag.hard, blocks[0]) {
            return;
        }
        let (touching, free): (Vec<u32>, Vec<u32>) = blocks[1..].iter().partition(|&block| block & self.around != 0);
        let count = touching.len();
        let others = [touching, free].concat();
        let branch = Branch { source, others: &others, touching: count };
        match self.is_colored {
            true => self.add(&branch, blocks[0], 0),
            false => self.choose(&branch, 0, blocks[0], 0),
        }
    }

    /// Joins each further block with edges to the vertex, or does not.
    fn choose(&mut self, branch: &Branch<'_>, next: usize, merged: u32, chosen: u32) {
        if next == branch.touching {
            return self.add(branch, merged, chosen);
        }
        self.choose(branch, next + 1, merged, chosen);
        let block = branch.others[next];
        // The edges of the vertex itself are met now.
        if !members(block).any(|v| self.bag.hard[v] & merged & !1 != 0) {
            self.choose(branch, next + 1, merged | block, chosen | 1 << next);
        }
    }

    fn add(&mut self, branch: &Branch<'_>, merged: u32, chosen: u32) {
        let mut rest = std::mem::take(&mut self.rest);
        rest.clear();
        rest.extend((0..).zip(branch.others).filter(|(i, _)| chosen >> i & 1 == 0).map(|(_, block)| block >> 1));
        let ends = merged == 1;
        if !ends {
            rest.push(merged >> 1);
        }
        let next = self.found.len() as u32;
        let sum = *self.found.entry(partition::code(&mut rest)).or_insert(next);
        let factor = self.factor(branch, chosen, ends);
        self.terms.push((sum, branch.source, factor));
        self.rest = rest;
    }

    /// The number of a product of factors, none where it is 1.
    fn factor(&mut self, branch: &Branch<'_>, chosen: u32, ends: bool) -> Option<u32> {
        // What is done with an edge: 0 left out, 1 within the block of the vertex, more by the block that is joined.
        let what = |place: u8| {
            let block = branch.others[..branch.touching].iter().position(|block| block >> place & 1 == 1);
            match block {
                None => 1,
                Some(block) if chosen >> block & 1 == 1 => 2 + block,
                Some(_) => 0,
            }
        };
        let colored = if ends && self.is_colored { branch.others.len() } else { 0 };
        let mut pattern = if ends { 1 + colored as u128 } else { 0 };
        for &(place, _) in &self.bag.edges {
            pattern = pattern << 5 | what(place) as u128;
        }
        if let Some(&known) = self.patterns.get(&pattern) {
            return known;
        }
        // The last block of a component is no factor, the last color is.
        let ends = ends && (self.is_colored || self.bag.hard.len() > 1);
        let mut coefficient = Coefficient { ends, colored, ..Coefficient::default() };
        coefficient.joined.resize(branch.touching, Vec::new());
        for &(place, kind) in &self.bag.edges {
            match what(place) {
                0 => coefficient.apart.push(kind),
                1 => coefficient.own.push(kind),
                block => coefficient.joined[block - 2].push(kind),
            }
        }
        coefficient.joined.retain(|kinds| !kinds.is_empty());
        coefficient.own.sort_unstable();
        coefficient.apart.sort_unstable();
        coefficient.joined.iter_mut().for_each(|kinds| kinds.sort_unstable());
        coefficient.joined.sort_unstable();
        let number = self.number(coefficient);
        self.patterns.insert(pattern, number);
        number
    }

    fn number(&mut self, coefficient: Coefficient) -> Option<u32> {
        if let Some(&known) = self.numbers.get(&coefficient) {
            return known;
        }
        let number = if (self.plain)(&coefficient) {
            None
        } else {
            self.coefficients.push(coefficient.clone());
            Some(self.coefficients.len() as u32 - 1)
        };
        self.numbers.insert(coefficient, number);
        number
    }
}
