//! The dense table: one element for each subset of the frontier, changed in place.
//!
//! Every frontier vertex owns one bit of the index; when vertex `v` is introduced as `u` is forgotten, it takes over the bit of `u`:
//!
//!   `(x[u out], x[u in])  becomes  (x[v out], x[v in]) = (x0 + x1, [no neighbor of v is in] z x0)`.
//!
//! A vertex introduced alone takes an idle bit, one forgotten alone leaves its bit idle, and only indices with idle bits
//! zero are looked at. Steps touch the table in pairs along one bit, so as many consecutive steps as have few bits between
//! them are done tile by tile: a tile holds all values of those bits, fits into the cache, and is read and written once.
//!
//! Source: that of [`super::set_table`].

use super::circuit::{Circuit, Factor, Node};
use super::path_decomposition::PathDecomposition;
use super::reduce::EdgeWeights;
use crate::Result;
use crate::numeric::buffer::Buffer;
use crate::numeric::dispatch::{Arithmetic, Kernel, level};
use crate::numeric::residue::HEADROOM;
use crate::numeric::ring::Ring;
use crate::parallel::{self, Shared};
use crate::transfer::{StepContext, Weight};

/// Bits of a tile: 32 kilobytes of eight lanes.
pub const TILE: u32 = 9;
/// Lowest bits that are always in the tile, so that memory moves in stretches.
const BLOCK: u32 = 2;
/// Most operations in a pass, so that a stop is seen.
const PASS: usize = 256;
/// Soft neighbors dealt with by one table of weights. Larger: fewer passes, tables twice as long.
const SOFT: usize = 3;

/// What happens to the table.
#[derive(Debug)]
enum Step {
    /// Along a bit, `(x0, x1)` becomes `(c0 x0 + c1 x1, c2 x0 + c3 x1)`, the second zero where `hard` is met.
    Turn { bit: u32, live: bool, hard: u64, weights: usize },
    /// Along a bit, `x0` becomes `x0 + x1`; the bit is idle then.
    Sum { bit: u32 },
    /// Each element is multiplied by the weight for its values at `bits`, of a second table where `hard` is met.
    Multiply { hard: u64, bits: Vec<u32>, weights: usize },
}

/// Operations done together, tile by tile.
#[derive(Debug)]
struct TilePass {
    operations: std::ops::Range<usize>,
    /// The bits of a tile.
    local: u64,
    /// The bits in use before.
    live: u64,
}

/// The schedule of a table with one element for each subset.
#[derive(Debug)]
pub struct DenseTable {
    bits: u32,
    operations: Vec<Step>,
    passes: Vec<TilePass>,
    /// Weights used by the operations.
    pub weights: Vec<Node>,
    /// Most roundings on the way through.
    pub roundings: u64,
}

impl DenseTable {
    /// The number of elements a schedule would need, and the additions it would take.
    pub fn forecast(decomposition: &PathDecomposition) -> (u32, f64) {
        let widths = decomposition.widths();
        let widest = widths.iter().max().copied().unwrap_or(0);
        (widest as u32, widths.iter().map(|&width| (width as f64).exp2()).sum())
    }

    /// Plans a table in tiles of `2^tile` elements, unless it has more than `2^most` elements.
    pub fn new(decomposition: &PathDecomposition, circuit: &mut Circuit, tile: u32, most: u32) -> Option<Self> {
        let mut builder = Schedule::new(circuit, decomposition.order.len());
        for step in 0..decomposition.order.len() {
            builder.step(decomposition, step);
            if builder.bits > most.min(62) {
                return None;
            }
        }
        let passes = passes(&builder.operations, builder.bits, tile);
        let Schedule { bits, operations, weights, roundings, .. } = builder;
        Some(Self { bits, operations, passes, weights, roundings })
    }

    /// Elements of memory.
    pub fn memory(&self) -> usize {
        self.states()
    }

    /// Elements of the table.
    pub fn states(&self) -> usize {
        1 << self.bits
    }

    /// Steps there are.
    pub fn steps(&self) -> usize {
        self.passes.len()
    }

    /// Additions in one step.
    pub fn work(&self, step: usize) -> u64 {
        let pass = &self.passes[step];
        let mut live = pass.live;
        self.operations[pass.operations.clone()].iter().map(|operation| operation.advance(&mut live)).sum()
    }

    /// Does one step.
    pub fn step<R: Ring>(
        &self,
        at: StepContext<'_, R>,
        registers: &[R::Element],
        table: &mut [R::Element],
    ) -> Result<()> {
        let StepContext { weight: &Weight { ring, .. }, progress, .. } = at;
        let step = at.number as usize;
        let pass = &self.passes[step];
        let mut live = pass.live;
        let mut prepared = Vec::with_capacity(pass.operations.len() + 4);
        let mut bound = 1;
        for operation in &self.operations[pass.operations.clone()] {
            let factor = |i: usize| Factor::of(ring, self.weights[i], registers);
            let next = Prepared::new(operation, pass.local, live, factor);
            let mut grown = next.growth(bound);
            if grown > HEADROOM {
                prepared.push(Prepared::fold(pass.local, live));
                grown = next.growth(1);
            }
            bound = grown;
            operation.advance(&mut live);
            prepared.push(next);
        }
        let all = table.len() as u64 - 1;
        let tile = 1usize << pass.local.count_ones();
        if pass.local == all {
            prepared.push(Prepared::fold(pass.local, live));
            ring.dispatch(level(), DenseTile { ring, operations: &prepared, base: 0, elements: table, route: None });
            return progress.advance(self.work(step));
        }
        let route = Route::new(pass.local, pass.live, live);
        let outer = pass.live & !pass.local;
        let tiles = 1u64 << outer.count_ones();
        let share = self.work(step) / tiles;
        let shared = Shared::new(table);
        let work = |scratch: &mut Buffer<R::Element>, number: usize| {
            let base = deposit(number as u64, outer);
            let route = Some((&route, &shared));
            ring.dispatch(level(), DenseTile { ring, operations: &prepared, base, elements: scratch, route });
            progress.advance(share)
        };
        parallel::tiles(tiles as usize, 1, || Buffer::zeroed(tile), work)
    }
}

impl Step {
    /// Additions, given the bits in use, which are brought up to date.
    fn advance(&self, live: &mut u64) -> u64 {
        match *self {
            Step::Turn { bit, .. } => *live |= 1 << bit,
            Step::Sum { bit } => *live &= !(1 << bit),
            Step::Multiply { .. } => {}
        }
        1 << live.count_ones()
    }
}

/// A schedule under construction.
struct Schedule<'f> {
    circuit: &'f mut Circuit,
    /// The bit of each vertex in the frontier.
    places: Vec<u32>,
    live: u64,
    bits: u32,
    operations: Vec<Step>,
    weights: Vec<Node>,
    roundings: u64,
}

impl<'f> Schedule<'f> {
    fn new(circuit: &'f mut Circuit, vertices: usize) -> Self {
        let (operations, weights) = (Vec::new(), Vec::new());
        Self { circuit, places: vec![0; vertices], live: 0, bits: 0, operations, weights, roundings: 0 }
    }

    fn step(&mut self, decomposition: &PathDecomposition, step: usize) {
        let vertex = decomposition.order[step];
        let [out, inside] = decomposition.reduced.weights[vertex as usize];
        let forgotten = |u: u32| decomposition.forgotten[u as usize] as usize == step;
        let place = |places: &[u32], u: u32| places[u as usize];
        let hard = decomposition.links_back(step).filter(|link| link.hard);
        let hard = hard.fold(0, |mask, link| mask | 1u64 << place(&self.places, link.to));
        let mut soft: Vec<(u32, EdgeWeights)> = decomposition
            .links_back(step)
            .filter_map(|link| Some((place(&self.places, link.to), link.soft?)))
            .collect();
        let mut leaving: Vec<u32> = decomposition
            .links_back(step)
            .filter(|link| forgotten(link.to))
            .map(|link| place(&self.places, link.to))
            .collect();
        let bit = if !leaving.is_empty() {
            // A bit whose edge has no weights of its own is changed without multiplications.
            let easy = leaving.iter().position(|bit| soft.iter().all(|(other, _)| other != bit));
            let bit = leaving.swap_remove(easy.unwrap_or(0));
            let m = match soft.iter().position(|(other, _)| *other == bit) {
                Some(i) => soft.swap_remove(i).1,
                None => [[Node::One, Node::One], [Node::One, Node::Zero]],
            };
            let weights = [(out, m[0][0]), (out, m[0][1]), (inside, m[1][0]), (inside, m[1][1])];
            let weights = weights.map(|(a, b)| self.circuit.multiply(a, b));
            self.turn(bit, true, hard & !(1 << bit), weights);
            bit
        } else if forgotten(vertex) && soft.is_empty() {
            let sum = self.circuit.add(out, inside);
            let weights = if hard == 0 { vec![sum] } else { vec![sum, out] };
            return self.multiply(hard, Vec::new(), &weights);
        } else {
            let bit = (!self.live).trailing_zeros();
            self.turn(bit, false, hard, [out, Node::Zero, inside, Node::Zero]);
            bit
        };
        self.places[vertex as usize] = bit;
        for some in soft.chunks(SOFT) {
            let weights = self.circuit.table(some.iter().map(|(_, m)| m));
            self.multiply(0, some.iter().map(|&(other, _)| other).chain([bit]).collect(), &weights);
        }
        for bit in leaving.into_iter().chain(forgotten(vertex).then_some(bit)) {
            self.operations.push(Step::Sum { bit });
            self.live &= !(1 << bit);
            self.roundings += 1;
        }
    }

    fn keep(&mut self, weights: &[Node], additions: u64) -> usize {
        let worst = weights.iter().map(|&value| match value {
            Node::Register(_) => self.circuit.roundings(value).saturating_add(1),
            _ => 0,
        });
        self.roundings = self.roundings.saturating_add(worst.max().unwrap_or(0)).saturating_add(additions);
        self.weights.extend(weights);
        self.weights.len() - weights.len()
    }

    fn turn(&mut self, bit: u32, live: bool, hard: u64, weights: [Node; 4]) {
        let weights = self.keep(&weights, u64::from(live));
        self.operations.push(Step::Turn { bit, live, hard, weights });
        self.live |= 1 << bit;
        self.bits = self.bits.max(bit + 1);
    }

    fn multiply(&mut self, hard: u64, bits: Vec<u32>, weights: &[Node]) {
        let weights = self.keep(weights, 0);
        self.operations.push(Step::Multiply { hard, bits, weights });
    }
}

/// Cuts the operations into passes.
fn passes(operations: &[Step], bits: u32, tile: u32) -> Vec<TilePass> {
    let tile = tile.min(bits);
    let lowest = (1u64 << BLOCK.min(tile)) - 1;
    let (mut passes, mut start, mut local, mut before, mut live) = (Vec::new(), 0, lowest, 0, 0);
    for (i, operation) in operations.iter().enumerate() {
        let wanted = match *operation {
            Step::Turn { bit, .. } | Step::Sum { bit } => local | 1 << bit,
            Step::Multiply { .. } => local,
        };
        if wanted.count_ones() > tile || i - start == PASS {
            passes.push(TilePass { operations: start..i, local: filled(local, tile), live: before });
            (start, before, local) = (i, live, lowest | (wanted & !local));
        } else {
            local = wanted;
        }
        operation.advance(&mut live);
    }
    passes.push(TilePass { operations: start..operations.len(), local: filled(local, tile), live: before });
    passes
}

/// The bits of a tile, made up to a full tile with the lowest ones.
fn filled(mut local: u64, tile: u32) -> u64 {
    while local.count_ones() < tile {
        local |= local + 1;
    }
    local
}

/// The bits of `x` at the positions of `mask`, side by side.
fn extract(x: u64, mut mask: u64) -> u64 {
    let (mut result, mut place) = (0, 0);
    while mask != 0 {
        result |= (x >> mask.trailing_zeros() & 1) << place;
        place += 1;
        mask &= mask - 1;
    }
    result
}

/// The lowest bits of `x`, moved to the positions of `mask`.
fn deposit(mut x: u64, mut mask: u64) -> u64 {
    let mut result = 0;
    while mask != 0 && x != 0 {
        result |= (x & 1) << mask.trailing_zeros();
        x >>= 1;
        mask &= mask - 1;
    }
    result
}

/// An operation on a tile, in one ring.
#[derive(Debug)]
struct Prepared<E> {
    /// Local indices with one of these bits are passed over.
    dead: usize,
    /// Neighbors in the tile.
    hard: usize,
    /// Neighbors outside.
    far: u64,
    kind: DenseAction<E>,
}

#[derive(Debug)]
enum DenseAction<E> {
    Turn {
        bit: usize,
        live: bool,
        factors: [Factor<E>; 4],
    },
    Sum {
        bit: usize,
    },
    /// The factor at the local and outer bits given, in this order of places.
    Multiply {
        near: Vec<(usize, usize)>,
        outer: Vec<(u64, usize)>,
        open: Vec<Factor<E>>,
        met: Vec<Factor<E>>,
    },
    Fold,
}

impl<E: Copy + PartialEq> Prepared<E> {
    fn new(operation: &Step, local: u64, live: u64, factor: impl Fn(usize) -> Factor<E>) -> Self {
        let near = |bit: u32| extract(1 << bit, local) as usize;
        let dead = extract(!live, local) as usize;
        let plain = |dead, kind| Self { dead, hard: 0, far: 0, kind };
        let masked = |dead, hard, kind| Self { dead, hard: extract(hard, local) as usize, far: hard & !local, kind };
        match operation {
            &Step::Turn { bit, live, hard, weights } => {
                let factors = std::array::from_fn(|i| factor(weights + i));
                masked(dead | near(bit), hard, DenseAction::Turn { bit: near(bit), live, factors })
            }
            &Step::Sum { bit } => plain(dead | near(bit), DenseAction::Sum { bit: near(bit) }),
            Step::Multiply { hard, bits, weights } => {
                let table = |first: usize| (first..first + (1 << bits.len())).map(&factor).collect::<Vec<_>>();
                let places = || bits.iter().enumerate().map(|(i, &bit)| (bit, 1 << i));
                let here = |bit: u32| local >> bit & 1 == 1;
                let open = table(*weights);
                let kind = DenseAction::Multiply {
                    near: places().filter(|&(bit, _)| here(bit)).map(|(bit, i)| (near(bit), i)).collect(),
                    outer: places().filter(|&(bit, _)| !here(bit)).map(|(bit, i)| (1 << bit, i)).collect(),
                    met: if *hard == 0 { Vec::new() } else { table(weights + open.len()) },
                    open,
                };
                masked(dead, *hard, kind)
            }
        }
    }

    fn fold(local: u64, live: u64) -> Self {
        Self { dead: extract(!live, local) as usize, hard: 0, far: 0, kind: DenseAction::Fold }
    }

    /// How many folded elements an element may amount to afterwards.
    fn growth(&self, bound: u64) -> u64 {
        let times = |factor: &Factor<E>| match factor {
            Factor::Zero => 0,
            Factor::One => bound,
            Factor::Two => 2 * bound,
            Factor::General(_) => 1,
        };
        match &self.kind {
            DenseAction::Turn { factors, .. } => {
                (times(&factors[0]) + times(&factors[1])).max(times(&factors[2]) + times(&factors[3]))
            }
            DenseAction::Sum { .. } => 2 * bound,
            DenseAction::Multiply { open, met, .. } => open.iter().chain(met).map(times).max().unwrap_or(0),
            DenseAction::Fold => 1,
        }
    }

    /// Does it to the tile whose first element is that of index `base` of the table.
    #[inline(always)]
    fn run<R: Ring<Element = E>, A: Arithmetic<Element = E>>(&self, ring: R, a: A, base: u64, tile: &mut [E]) {
        let blocked = base & self.far != 0;
        let size = tile.len();
        match &self.kind {
            DenseAction::Turn { bit, live, factors } => {
                let plain = matches!(
                    (live, factors),
                    (true, [Factor::One, Factor::One, _, Factor::Zero]) | (false, [Factor::One, _, _, _])
                );
                runs(size, self.dead, self.hard, |start, len| {
                    let open = !blocked && start & self.hard == 0;
                    let inside = if open { &factors[2] } else { &Factor::Zero };
                    match (plain, *live, inside) {
                        (true, true, Factor::Zero) => pairs(a, tile, start, len, *bit, |x, y| (a.add(x, y), a.zero())),
                        (true, true, Factor::One) => pairs(a, tile, start, len, *bit, |x, y| (a.add(x, y), x)),
                        (true, false, Factor::Zero) => pairs(a, tile, start, len, *bit, |x, _| (x, a.zero())),
                        (true, false, Factor::One) => pairs(a, tile, start, len, *bit, |x, _| (x, x)),
                        _ => {
                            let (lower, upper) = tile[start..].split_at_mut(*bit);
                            for (x, y) in lower[..len].iter_mut().zip(&mut upper[..len]) {
                                let both = |a: &Factor<E>, b: &Factor<E>| {
                                    let first = scaled(ring, a, *x);
                                    if *live { ring.add(first, scaled(ring, b, *y)) } else { first }
                                };
                                let second = if open { both(&factors[2], &factors[3]) } else { ring.zero() };
                                (*x, *y) = (both(&factors[0], &factors[1]), second);
                            }
                        }
                    }
                });
            }
            DenseAction::Sum { bit } => runs(size, self.dead, 0, |start, len| {
                let (lower, upper) = tile[start..].split_at_mut(*bit);
                for (x, y) in lower[..len].iter_mut().zip(&upper[..len]) {
                    a.write(x, a.add(a.read(x), a.read(y)));
                }
            }),
            DenseAction::Multiply { near, outer, open, met } => {
                let fixed: usize = outer.iter().filter(|(bit, _)| base & bit != 0).map(|(_, i)| i).sum();
                let bits = near.iter().fold(0, |mask, (bit, _)| mask | bit);
                runs(size, self.dead, self.hard | bits, |start, len| {
                    let moving: usize = near.iter().filter(|(bit, _)| start & bit != 0).map(|(_, i)| i).sum();
                    let table = if blocked || start & self.hard != 0 { met } else { open };
                    let run = tile[start..start + len].iter_mut();
                    match &table[fixed + moving] {
                        Factor::One => {}
                        factor => run.for_each(|x| *x = scaled(ring, factor, *x)),
                    }
                });
            }
            DenseAction::Fold => runs(size, self.dead, 0, |start, len| {
                for x in &mut tile[start..start + len] {
                    a.write(x, a.fold(a.read(x)));
                }
            }),
        }
    }
}

/// The elements of a tile, and what is done to them.
struct DenseTile<'t, R: Ring> {
    ring: R,
    operations: &'t [Prepared<R::Element>],
    base: u64,
    elements: &'t mut [R::Element],
    /// The way to them, if they are not in place.
    route: Option<(&'t Route, &'t Shared<R::Element>)>,
}

impl<R: Ring> Kernel<R::Element> for DenseTile<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic<Element = R::Element>>(self, a: A) {
        let Self { ring, operations, base, elements, route } = self;
        if let Some((route, table)) = route {
            // SAFETY: tiles are told apart by the bits of `base`, and those of `route` are the others: indices of two tiles differ.
            // `tables_in_the_smallest_parts_agree_with_brute_force` has tiles of eight elements, on every vector level.
            unsafe { route.load(a, table, base as usize, elements) };
        }
        for operation in operations {
            operation.run(ring, a, base, elements);
        }
        if let Some((route, table)) = route {
            // SAFETY: as for `load`.
            unsafe { route.store(a, elements, table, base as usize) };
        }
    }
}

/// Changes a stretch of elements and those one bit above.
#[inline(always)]
fn pairs<A: Arithmetic>(
    a: A,
    tile: &mut [A::Element],
    start: usize,
    len: usize,
    bit: usize,
    change: impl Fn(A::Register, A::Register) -> (A::Register, A::Register),
) {
    let (lower, upper) = tile[start..].split_at_mut(bit);
    for (x, y) in lower[..len].iter_mut().zip(&mut upper[..len]) {
        let (sum, inside) = change(a.read(x), a.read(y));
        a.write(x, sum);
        a.write(y, inside);
    }
}

/// The product of any element and a factor.
#[inline(always)]
fn scaled<R: Ring>(ring: R, factor: &Factor<R::Element>, x: R::Element) -> R::Element {
    match factor {
        Factor::General(_) => factor.times(ring, ring.fold(x)),
        _ => factor.times(ring, x),
    }
}

/// Calls for every stretch of indices below `size` without a bit of `dead` on which the bits of `fixed` do not change.
#[inline(always)]
fn runs(size: usize, dead: usize, fixed: usize, mut each: impl FnMut(usize, usize)) {
    let len = 1 << (dead | fixed | size).trailing_zeros();
    let mut start = 0;
    while start < size {
        each(start, len);
        start = ((start | dead | (len - 1)) + 1) & !dead;
    }
}

/// The way between the table and a tile.
struct Route {
    /// Elements that lie side by side in both.
    block: usize,
    /// Places in the tile and in the table, of what is there before.
    load: Vec<(usize, usize)>,
    /// The same of what is there after.
    store: Vec<(usize, usize)>,
}

impl Route {
    fn new(local: u64, before: u64, after: u64) -> Self {
        let block = 1u64 << local.trailing_ones();
        let tile = 1u64 << local.count_ones();
        let blocks = (0..tile).step_by(block as usize).map(|near| (near as usize, deposit(near, local) as usize));
        let within = |live: u64| {
            let idle = (local & !live & !(block - 1)) as usize;
            blocks.clone().filter(|(_, far)| far & idle == 0).collect()
        };
        Self { block: block as usize, load: within(before), store: within(after) }
    }

    /// # Safety
    /// Nobody else uses the elements of the tile at `base`.
    #[inline(always)]
    unsafe fn load<A: Arithmetic>(&self, a: A, table: &Shared<A::Element>, base: usize, tile: &mut [A::Element]) {
        for &(near, far) in &self.load {
            // SAFETY: guaranteed by the caller; `part` checks that the block lies in the table.
            let block = unsafe { table.part(base + far, self.block) };
            tile[near..].iter_mut().zip(block).for_each(|(to, from)| a.write(to, a.read(from)));
        }
    }

    /// # Safety
    /// As [`Route::load`].
    #[inline(always)]
    unsafe fn store<A: Arithmetic>(&self, a: A, tile: &[A::Element], table: &Shared<A::Element>, base: usize) {
        for &(near, far) in &self.store {
            // SAFETY: guaranteed by the caller; `part` checks that the block lies in the table.
            let block = unsafe { table.part(base + far, self.block) };
            block.iter_mut().zip(&tile[near..]).for_each(|(to, from)| a.write(to, a.fold(a.read(from))));
        }
    }
}
