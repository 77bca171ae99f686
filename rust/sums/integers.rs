//! Sums along a tree decomposition over the integers themselves: one pass for all digits.
//!
//! Modulo primes an engine makes a pass for every 55 bits, and a count of a sparse graph has about a bit for each vertex: that is
//! quadratic. Here the messages of [`super::tree`] hold integers. The *heavy* child of a vertex is the one with most vertices below it;
//! a message is linear in that of the heavy child, `m_v = T_v m_c`, with a small matrix that the messages of the other children give.
//! Along a path of heavy children messages are handed up one by one or, where that is forecast to take less time,
//!
//!   `m = (T_k ... T_{h+1}) (T_h ... T_1 m_0)`,   the matrix on the left multiplied up by halves in its turn,
//!
//! so that the factors of long products are about equally long. Any vertex lies below at most `log2 n` children that are not heavy.
//! The result is verified by its residue modulo a prime, which is found message by message: one wrong digit passes unnoticed with
//! probability about 2^-55.
//!
//! Sources: D. Sleator, R. Tarjan (1983), A data structure for dynamic trees (heavy paths); D. Bernstein (2008), Fast multiplication
//! and its applications, section 12 (products by halves).

use super::elimination::{EliminationOrder, places};
use crate::graphs::{Graph, Lists};
use crate::monitor::Progress;
use crate::numeric::big;
use crate::numeric::residue::{Modulus, primes};
use crate::{Error, Result};
use num_bigint::BigUint;
use std::ops::Range;

/// Seconds of an element of a message, of a word of it that is added or multiplied by another, and of a vertex, about.
const ELEMENT: f64 = 6e-8;
const WORD: f64 = 1.5e-9;
const VERTEX: f64 = 1e-6;
/// Seconds of a product of two numbers of [`SHORT`] words, and how it grows beyond that.
const PRODUCT: f64 = 1.2e-6;
const SHORT: f64 = 32.0;
const EXPONENT: f64 = 1.6;
/// Bits of a sum for each vertex, about.
const BITS: f64 = 0.75;
/// Messages of less time than that are handed up one by one, and matrices of shorter words are not halved.
const INSTANT: f64 = 2e-5;
const SMALL_WORDS: f64 = 8.0;
/// Vertices of the smallest graphs that are summed so, unless they have fewer edges for each vertex than that; and the most edges.
const FEW_CYCLES: f64 = 1.05;
const FEWEST: usize = 1000;
const MOST_EDGES: usize = 10;
/// Bytes of a vertex with its scope and its children, of each place in a scope, and of an element.
const VERTEX_BYTES: u128 = 240;
const PLACE_BYTES: u128 = 16;
const ELEMENT_BYTES: u128 = 32;

/// The name of the method.
pub const INTEGERS: &str = "tree decomposition over the integers";
/// What messages are made of: integers, or residues to verify them.
pub trait MessageArithmetic {
    /// A number that is not negative.
    type Number: Clone;
    /// A small number.
    fn number(&self, value: u64) -> Self::Number;
    /// Whether it is certainly zero.
    fn is_zero(&self, x: &Self::Number) -> bool;
    /// Adds to a sum.
    fn add(&self, sum: &mut Self::Number, x: &Self::Number);
    /// The product.
    ///
    /// # Errors
    /// [`Error::Interrupted`] once somebody asked to stop.
    fn product(&self, x: &Self::Number, y: &Self::Number) -> Result<Self::Number>;

    /// The product of several, by halves.
    ///
    /// # Errors
    /// As [`Self::product`].
    fn product_of(&self, factors: &[&Self::Number]) -> Result<Self::Number> {
        match factors {
            [] => Ok(self.number(1)),
            [x] => Ok((*x).clone()),
            [x, y] => self.product(x, y),
            _ => {
                let (low, high) = factors.split_at(factors.len() / 2);
                self.product(&self.product_of(low)?, &self.product_of(high)?)
            }
        }
    }
}

/// An integer, in a word as long as it fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Natural {
    /// One word.
    Word(u64),
    /// More.
    Long(BigUint),
}

impl Natural {
    /// The integer.
    pub fn into_integer(self) -> BigUint {
        match self {
            Self::Word(x) => x.into(),
            Self::Long(x) => x,
        }
    }
}

/// The integers; their products can be stopped.
#[derive(Debug)]
pub struct Naturals<'p>(pub &'p Progress);

impl MessageArithmetic for Naturals<'_> {
    type Number = Natural;

    fn number(&self, value: u64) -> Natural {
        Natural::Word(value)
    }

    fn is_zero(&self, x: &Natural) -> bool {
        *x == Natural::Word(0)
    }

    fn add(&self, sum: &mut Natural, x: &Natural) {
        match (&mut *sum, x) {
            (Natural::Word(a), Natural::Word(b)) => {
                *sum = a.checked_add(*b).map_or_else(|| Natural::Long(BigUint::from(*a) + *b), Natural::Word);
            }
            (Natural::Long(a), Natural::Word(b)) => *a += *b,
            (Natural::Word(a), Natural::Long(b)) => *sum = Natural::Long(b + *a),
            (Natural::Long(a), Natural::Long(b)) => *a += b,
        }
    }

    fn product(&self, x: &Natural, y: &Natural) -> Result<Natural> {
        Ok(match (x, y) {
            (Natural::Word(0), _) | (_, Natural::Word(0)) => Natural::Word(0),
            (Natural::Word(1), z) | (z, Natural::Word(1)) => z.clone(),
            (Natural::Word(a), Natural::Word(b)) => {
                a.checked_mul(*b).map_or_else(|| Natural::Long(BigUint::from(*a) * *b), Natural::Word)
            }
            (Natural::Word(a), Natural::Long(b)) | (Natural::Long(b), Natural::Word(a)) => Natural::Long(b * *a),
            (Natural::Long(a), Natural::Long(b)) => Natural::Long(big::product(a, b, self.0)?),
        })
    }
}

/// Residues modulo a prime.
#[derive(Debug)]
pub struct Residues(pub Modulus);

impl MessageArithmetic for Residues {
    type Number = u64;

    fn number(&self, value: u64) -> u64 {
        self.0.residue(value)
    }

    fn is_zero(&self, x: &u64) -> bool {
        *x == 0
    }

    fn add(&self, sum: &mut u64, x: &u64) {
        *sum = self.0.fold(*sum + x);
    }

    fn product(&self, x: &u64, y: &u64) -> Result<u64> {
        Ok(self.0.mul(*x, *y))
    }
}

/// A bag: a vertex, which is bit 0 of its subsets, and its scope, rising.
#[derive(Debug)]
pub struct Bag<'t> {
    /// The place of the vertex in the elimination.
    pub place: usize,
    /// The places of its scope.
    pub scope: &'t [u32],
    /// The edges of the graph among the bag, a mask for each member.
    pub rows: Vec<u32>,
}

/// The message of a child, over the subsets of its scope, and the bit of the bag at which each place of that scope is.
#[derive(Debug)]
pub struct ChildMessage<'m, N> {
    /// An element for each subset.
    pub message: &'m [N],
    bits: Vec<u32>,
}

impl<N> ChildMessage<'_, N> {
    /// The subset of the child's scope that is in a subset of the bag.
    pub fn seen(&self, set: usize) -> usize {
        self.bits.iter().enumerate().fold(0, |seen, (place, bit)| seen | (set >> bit & 1) << place)
    }

    /// The subset of the bag that a subset of the child's scope is.
    pub fn lifted(&self, set: usize) -> usize {
        self.bits.iter().enumerate().fold(0, |lifted, (place, bit)| lifted | (set >> place & 1) << bit)
    }
}

/// What is summed, as a bag sees it. Tables have an element for each subset of a bag, messages for each of a scope; elements of
/// subsets that cannot be are zero.
pub trait BagSum {
    /// Subsets of a scope that can be, about so many for each vertex of it, multiplied.
    const STATES: f64;
    /// Products of a table, about so many for each vertex of a scope, multiplied.
    const PRODUCTS: f64;
    /// Seconds of a product of short numbers, about.
    const SECONDS: f64;
    /// Seconds of a product to be planned modulo primes, of one modulo a prime, and of a vertex modulo a prime.
    const PLANNING: f64;
    /// See [`Self::PLANNING`].
    const PRIME: f64;
    /// See [`Self::PLANNING`].
    const PRIME_VERTEX: f64;
    /// Vertices of the smallest graphs that are summed so and have hardly more edges than vertices.
    const FEWEST_WITHOUT_CYCLES: usize;
    /// The widest scope.
    const WIDEST: usize;

    /// Whether a subset of a scope can be.
    fn can_be(&self, rows: &[u32], set: usize) -> bool;

    /// The table of some children together, none or more.
    ///
    /// # Errors
    /// As [`MessageArithmetic::product`].
    fn table<A: MessageArithmetic>(
        &self,
        arithmetic: &A,
        bag: &Bag<'_>,
        children: &[ChildMessage<'_, A::Number>],
    ) -> Result<Vec<A::Number>>;

    /// The message of the vertex from the table of its other children and the message of the heavy one, which it is linear in.
    ///
    /// # Errors
    /// As [`MessageArithmetic::product`].
    fn message<A: MessageArithmetic>(
        &self,
        arithmetic: &A,
        bag: &Bag<'_>,
        table: &[A::Number],
        heavy: Option<ChildMessage<'_, A::Number>>,
    ) -> Result<Vec<A::Number>>;
}

/// A sum that is found over the integers.
#[derive(Debug)]
pub struct IntegerTree<S> {
    sum: S,
    scopes: Lists,
    /// The neighbors of each place among its scope.
    beside: Vec<u32>,
    /// The children of place p, the heavy one last: those from `starts[p]` to `starts[p + 1]`.
    starts: Vec<u32>,
    children: Vec<u32>,
    /// Vertices at and below each place.
    below: Vec<u32>,
    elements: f64,
    seconds: f64,
    bytes: u128,
}

impl<S: BagSum> IntegerTree<S> {
    /// The tree of an elimination; `None` where a scope is too wide. `sum` is told the order.
    pub fn new(
        elimination: EliminationOrder,
        neighbors: &Lists,
        sum: impl FnOnce(&EliminationOrder) -> S,
        progress: &Progress,
    ) -> Result<Option<Self>> {
        if elimination.width() > S::WIDEST {
            return Ok(None);
        }
        let sum = sum(&elimination);
        let EliminationOrder { order, scopes } = elimination;
        let n = order.len();
        let places = places(&order);
        let mut beside = vec![0u32; n];
        let (mut starts, mut below) = (vec![0u32; n + 1], vec![1u32; n]);
        for (place, scope) in scopes.iter().enumerate() {
            progress.check_at(place)?;
            for u in &neighbors[order[place] as usize] {
                if let Ok(bit) = scope.binary_search(&places[*u as usize]) {
                    beside[place] |= 1 << bit;
                }
            }
            if let Some(&parent) = scope.first() {
                below[parent as usize] += below[place];
                starts[parent as usize + 1] += 1;
            }
        }
        (0..n).for_each(|place| starts[place + 1] += starts[place]);
        let mut next = starts.clone();
        let mut children = vec![0u32; starts[n] as usize];
        for (place, scope) in scopes.iter().enumerate() {
            progress.check_at(place)?;
            if let Some(&parent) = scope.first() {
                let at = &mut next[parent as usize];
                children[*at as usize] = place as u32;
                let first = starts[parent as usize] as usize;
                if let Some(&last) = children[first..*at as usize].last()
                    && below[last as usize] > below[place]
                {
                    children.swap(*at as usize - 1, *at as usize);
                }
                *at += 1;
            }
        }
        let mut tree = Self { sum, scopes, beside, starts, children, below, elements: 0.0, seconds: 0.0, bytes: 0 };
        tree.seconds = tree.forecast(progress)?;
        tree.bytes = tree.room();
        Ok(Some(tree))
    }

    /// About how many seconds the sum takes.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Elements of tables that are multiplied, about.
    pub fn elements(&self) -> f64 {
        self.elements
    }

    /// Whether it is forecast to take less time than modulo primes, on so many threads.
    pub fn is_better(&self, threads: usize) -> bool {
        let primes = self.scopes.len() as f64 * BITS / 55.0 + 2.0;
        let one = self.elements * S::PRIME + self.scopes.len() as f64 * S::PRIME_VERTEX;
        self.seconds < self.elements * S::PLANNING + 8.0 * (primes / 8.0).ceil() * one / threads as f64
    }

    /// Whether a graph may be one for it: large, the larger the fewer cycles it has, and sparse.
    pub fn is_for(graph: &Graph) -> bool {
        let (vertices, edges) = (graph.vertices(), graph.edges().len());
        let fewest = if edges as f64 <= FEW_CYCLES * vertices as f64 { S::FEWEST_WITHOUT_CYCLES } else { FEWEST };
        vertices >= fewest && edges <= MOST_EDGES * vertices
    }

    /// Bytes that planning takes on a graph.
    pub fn planning_bytes(graph: &Graph) -> u128 {
        graph.bytes(256, 48)
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> u128 {
        self.bytes
    }

    /// Elements of the largest message.
    pub fn states(&self) -> usize {
        1 << self.scopes.iter().map(<[u32]>::len).max().unwrap_or(0)
    }

    /// Vertices that are passed: twice each, once to verify.
    pub fn steps(&self) -> u64 {
        2 * self.scopes.len() as u64
    }

    /// The sum.
    ///
    /// # Errors
    /// [`Error::Check`] if its residue is another, [`Error::Interrupted`] once somebody asked to stop.
    pub fn value(&self, progress: &Progress) -> Result<BigUint> {
        let prime = primes(1)?[0];
        let expected = self.residue(prime, progress)?;
        let arithmetic = Naturals(progress);
        let mut roots = Vec::new();
        for place in (0..self.scopes.len()).filter(|&place| self.scopes[place].is_empty()) {
            roots.extend(self.climbed(&arithmetic, place, progress)?);
        }
        let value = arithmetic.product_of(&roots.iter().collect::<Vec<_>>())?.into_integer();
        let found = prime.residue_of(&value);
        if found != expected {
            let detail = format!("modulo {} it is {found}, message by message {expected}", prime.value());
            return Err(Error::Check { what: "an exact count", detail });
        }
        Ok(value)
    }

    /// Its residue, message by message in the order of the elimination.
    ///
    /// # Errors
    /// [`Error::Interrupted`] once somebody asked to stop.
    pub fn residue(&self, prime: Modulus, progress: &Progress) -> Result<u64> {
        let arithmetic = Residues(prime);
        let mut messages: Vec<Vec<u64>> = vec![Vec::new(); self.scopes.len()];
        let mut total = 1;
        for place in 0..self.scopes.len() {
            progress.advance(1)?;
            let children = self.children(place);
            let below: Vec<Vec<u64>> = children.iter().map(|&c| std::mem::take(&mut messages[c as usize])).collect();
            let bag = self.bag(place);
            let mut seen: Vec<ChildMessage<'_, u64>> =
                children.iter().zip(&below).map(|(&c, message)| self.child(place, c as usize, message)).collect();
            let heavy = seen.pop();
            let table = self.sum.table(&arithmetic, &bag, &seen)?;
            messages[place] = self.sum.message(&arithmetic, &bag, &table, heavy)?;
            if self.scopes[place].is_empty() {
                total = prime.mul(total, messages[place][0]);
            }
        }
        Ok(prime.residue(total))
    }

    fn children(&self, place: usize) -> &[u32] {
        &self.children[self.starts[place] as usize..self.starts[place + 1] as usize]
    }

    fn bag(&self, place: usize) -> Bag<'_> {
        let scope = &self.scopes[place];
        let mut rows = self.rows(scope, 1);
        rows.insert(0, self.beside[place] << 1);
        for bit in 0..scope.len() {
            rows[bit + 1] |= self.beside[place] >> bit & 1;
        }
        Bag { place, scope, rows }
    }

    /// The edges among a scope whose first place is at a bit.
    fn rows(&self, scope: &[u32], first: usize) -> Vec<u32> {
        let mut rows = Vec::with_capacity(scope.len() + first);
        rows.resize(scope.len(), 0);
        for (i, &p) in scope.iter().enumerate() {
            let (mut among, beside) = (0, self.beside[p as usize]);
            for (j, q) in scope.iter().enumerate().skip(i + 1) {
                if beside != 0
                    && let Ok(bit) = self.scopes[p as usize].binary_search(q)
                    && beside >> bit & 1 == 1
                {
                    among |= 1 << (j + first);
                    rows[j] |= 1 << (i + first);
                }
            }
            rows[i] |= among;
        }
        rows
    }

    fn child<'m, N>(&self, place: usize, child: usize, message: &'m [N]) -> ChildMessage<'m, N> {
        let above = &self.scopes[place];
        let bit = |u: &u32| above.binary_search(u).map_or(0, |bit| bit as u32 + 1);
        ChildMessage { message, bits: self.scopes[child].iter().map(bit).collect() }
    }

    /// The table of the children of a place that are not heavy.
    fn others<A: MessageArithmetic>(
        &self,
        arithmetic: &A,
        bag: &Bag<'_>,
        progress: &Progress,
    ) -> Result<Vec<A::Number>> {
        let children = self.children(bag.place);
        let light = &children[..children.len().saturating_sub(1)];
        let messages =
            light.iter().map(|&c| self.climbed(arithmetic, c as usize, progress)).collect::<Result<Vec<_>>>()?;
        let seen: Vec<ChildMessage<'_, A::Number>> =
            light.iter().zip(&messages).map(|(&c, message)| self.child(bag.place, c as usize, message)).collect();
        self.sum.table(arithmetic, bag, &seen)
    }

    /// The message of a place, along the path of heavy children below it.
    fn climbed<A: MessageArithmetic>(&self, arithmetic: &A, top: usize, progress: &Progress) -> Result<Vec<A::Number>> {
        let path = HeavyPath::new(self, top);
        path.climb(arithmetic, 0..path.places.len(), Vec::new(), progress)
    }

    /// Seconds in all: of the vertices, and of the long numbers on the long paths.
    fn forecast(&mut self, progress: &Progress) -> Result<f64> {
        self.elements = 0.0;
        let mut seconds = VERTEX * self.scopes.len() as f64;
        for place in 0..self.scopes.len() {
            let scope = &self.scopes[place];
            progress.check_at(place)?;
            self.elements += S::PRODUCTS.powi(scope.len() as i32) * (1 + self.children(place).len()) as f64;
            let is_top =
                scope.first().is_none_or(|&parent| self.children(parent as usize).last() != Some(&(place as u32)));
            if is_top && self.below[place] > 1 << 12 {
                let path = HeavyPath::new(self, place);
                seconds += path.climb_seconds(0..path.places.len());
            }
        }
        Ok(seconds + self.elements * S::SECONDS)
    }

    fn room(&self) -> u128 {
        let places: usize = self.scopes.iter().map(<[u32]>::len).sum();
        let most = self.scopes.iter().map(<[u32]>::len).max().unwrap_or(0);
        let long = (S::STATES.powi(most as i32) * self.scopes.len() as f64 * BITS / 2.0) as u128;
        let n = self.scopes.len() as u128;
        n * (VERTEX_BYTES + ELEMENT_BYTES) + PLACE_BYTES * places as u128 + (ELEMENT_BYTES << (most + 5)) + long
    }
}

/// A path of heavy children, from a leaf upwards, with what tells its cost.
struct HeavyPath<'t, S> {
    tree: &'t IntegerTree<S>,
    places: Vec<u32>,
    /// Up to each place: the states, those times the words they are multiplied by, and those times the words below.
    states: Vec<f64>,
    factors: Vec<f64>,
    words: Vec<f64>,
}

/// A matrix from the messages at the lower end of a path to those at the upper one: columns by their subset.
struct Matrix<N> {
    rows: usize,
    columns: Vec<(usize, Vec<N>)>,
}

/// Seconds of a product of numbers of so many words.
fn product_seconds(a: f64, b: f64) -> f64 {
    let (short, long) = (a.min(b).max(1.0), a.max(b).max(1.0));
    let square =
        if short <= SHORT { PRODUCT * (short / SHORT).powi(2) } else { PRODUCT * (short / SHORT).powf(EXPONENT) };
    ELEMENT + square * long / short
}

impl<'t, S: BagSum> HeavyPath<'t, S> {
    fn new(tree: &'t IntegerTree<S>, top: usize) -> Self {
        let mut places = vec![top as u32];
        while let Some(&heavy) = tree.children(places[places.len() - 1] as usize).last() {
            places.push(heavy);
        }
        places.reverse();
        let mut path = Self { tree, places, states: vec![0.0], factors: vec![0.0], words: vec![0.0] };
        if tree.below[top] as usize <= 1 << 10 {
            return path; // it is climbed one by one
        }
        let mut sums = [0.0; 3];
        for (i, &place) in path.places.iter().enumerate() {
            let heavy = path.words_below(i);
            let light = tree.below[place as usize] as f64 * BITS / 64.0 - heavy;
            let factor = 1.0 + if light <= SHORT { light } else { SHORT * (light / SHORT).powf(EXPONENT - 1.0) };
            let states = S::STATES.powi(tree.scopes[place as usize].len() as i32);
            sums = [sums[0] + states, sums[1] + states * factor, sums[2] + states * factor * heavy];
            path.states.push(sums[0]);
            path.factors.push(sums[1]);
            path.words.push(sums[2]);
        }
        path
    }

    /// Words of a message before a step.
    fn words_below(&self, step: usize) -> f64 {
        match step.checked_sub(1) {
            Some(last) => f64::from(self.tree.below[self.places[last] as usize]) * BITS / 64.0,
            None => 0.0,
        }
    }

    /// Seconds of a stretch one by one, with so many words less at every step.
    fn plain_seconds(&self, part: &Range<usize>, less: f64) -> f64 {
        let over = |sums: &[f64]| sums[part.end] - sums[part.start];
        ELEMENT * over(&self.states) + WORD * (over(&self.words) - less * over(&self.factors))
    }

    /// States at the upper end of a step.
    fn states_at(&self, step: usize) -> f64 {
        self.states[step + 1] - self.states[step]
    }

    /// The step in the middle third of a stretch, by words, with the fewest states below it.
    fn middle(&self, part: &Range<usize>) -> usize {
        let (low, high) = (self.words_below(part.start + 1), self.words_below(part.end));
        let at = |share: f64| {
            let words = low + share * (high - low);
            let (mut from, mut to) = (part.start + 1, part.end - 1);
            while from < to {
                let half = (from + to) / 2;
                if self.words_below(half) < words { from = half + 1 } else { to = half }
            }
            from
        };
        let (first, middle, last) = (at(0.4), at(0.5), at(0.6));
        let key = |step: &usize| (self.states_at(step - 1), step.abs_diff(middle));
        (first..=last).min_by(|a, b| key(a).partial_cmp(&key(b)).expect("numbers")).unwrap_or(middle)
    }

    /// Seconds of the matrix of a stretch, and where it is halved.
    fn matrix_seconds(&self, part: &Range<usize>) -> (f64, Option<usize>) {
        let below = self.words_below(part.start);
        let columns = self.states_at(part.start - 1);
        let plain = columns * self.plain_seconds(part, below);
        let words = self.words_below(part.end) - below;
        if words < SMALL_WORDS || part.len() < 2 {
            return (plain, None);
        }
        let middle = self.middle(part);
        let (low, _) = self.matrix_seconds(&(part.start..middle));
        let (high, _) = self.matrix_seconds(&(middle..part.end));
        let through = columns * self.states_at(middle - 1) * self.states_at(part.end - 1);
        let halves = low + high + through * product_seconds(words / 2.0, words / 2.0);
        if halves < plain { (halves, Some(middle)) } else { (plain, None) }
    }

    /// Where a stretch is divided, whether the upper part is a matrix, and the seconds of that part.
    fn divided(&self, part: &Range<usize>) -> Option<(usize, Option<f64>)> {
        if part.len() < 2 || self.states.len() == 1 || self.plain_seconds(part, 0.0) < INSTANT {
            return None;
        }
        let middle = self.middle(part);
        let upper = middle..part.end;
        let (below, all) = (self.words_below(middle), self.words_below(part.end));
        let applied = self.states_at(middle - 1) * self.states_at(part.end - 1) * product_seconds(below, all - below);
        let matrix = self.matrix_seconds(&upper).0 + applied;
        Some((middle, (matrix < self.plain_seconds(&upper, 0.0)).then_some(matrix)))
    }

    /// Seconds of the numbers of a stretch.
    fn climb_seconds(&self, part: Range<usize>) -> f64 {
        match self.divided(&part) {
            None if self.states.len() == 1 => 0.0,
            None => self.plain_seconds(&part, 0.0),
            Some((middle, upper)) => {
                let upper = upper.unwrap_or_else(|| self.climb_seconds(middle..part.end));
                self.climb_seconds(part.start..middle) + upper
            }
        }
    }

    /// The message at the upper end of a stretch, from the one below it.
    fn climb<A: MessageArithmetic>(
        &self,
        arithmetic: &A,
        part: Range<usize>,
        message: Vec<A::Number>,
        progress: &Progress,
    ) -> Result<Vec<A::Number>> {
        match self.divided(&part) {
            None => {
                let mut message = message;
                for step in part {
                    progress.advance(1)?;
                    let bag = self.tree.bag(self.places[step] as usize);
                    let table = self.tree.others(arithmetic, &bag, progress)?;
                    message = self.step(arithmetic, step, &bag, &table, &message)?;
                }
                Ok(message)
            }
            Some((middle, None)) => {
                let message = self.climb(arithmetic, part.start..middle, message, progress)?;
                self.climb(arithmetic, middle..part.end, message, progress)
            }
            Some((middle, Some(_))) => {
                let message = self.climb(arithmetic, part.start..middle, message, progress)?;
                self.matrix(arithmetic, middle..part.end, progress)?.times(arithmetic, &message)
            }
        }
    }

    fn step<A: MessageArithmetic>(
        &self,
        arithmetic: &A,
        step: usize,
        bag: &Bag<'_>,
        table: &[A::Number],
        message: &[A::Number],
    ) -> Result<Vec<A::Number>> {
        let heavy = step.checked_sub(1).map(|last| self.tree.child(bag.place, self.places[last] as usize, message));
        self.tree.sum.message(arithmetic, bag, table, heavy)
    }

    /// The matrix of a stretch, which does not begin at the leaf.
    fn matrix<A: MessageArithmetic>(
        &self,
        arithmetic: &A,
        part: Range<usize>,
        progress: &Progress,
    ) -> Result<Matrix<A::Number>> {
        if let (_, Some(middle)) = self.matrix_seconds(&part) {
            let low = self.matrix(arithmetic, part.start..middle, progress)?;
            let high = self.matrix(arithmetic, middle..part.end, progress)?;
            let column = |(set, column): &(usize, Vec<A::Number>)| Ok((*set, high.times(arithmetic, column)?));
            let columns = low.columns.iter().map(column).collect::<Result<_>>()?;
            return Ok(Matrix { rows: high.rows, columns });
        }
        // A column is what becomes of one subset.
        let scope = &self.tree.scopes[self.places[part.start - 1] as usize];
        let (rows, sets) = (self.tree.rows(scope, 0), 1 << scope.len());
        let unit = |set: usize| (0..sets).map(|other| arithmetic.number(u64::from(other == set))).collect();
        let can_be = |&set: &usize| self.tree.sum.can_be(&rows, set);
        let mut columns: Vec<(usize, Vec<A::Number>)> = (0..sets).filter(can_be).map(|set| (set, unit(set))).collect();
        for step in part.clone() {
            progress.advance(1)?;
            let bag = self.tree.bag(self.places[step] as usize);
            let table = self.tree.others(arithmetic, &bag, progress)?;
            for (_, column) in &mut columns {
                *column = self.step(arithmetic, step, &bag, &table, column)?;
            }
        }
        Ok(Matrix { rows: 1 << self.tree.scopes[self.places[part.end - 1] as usize].len(), columns })
    }
}

impl<N: Clone> Matrix<N> {
    fn times<A: MessageArithmetic<Number = N>>(&self, arithmetic: &A, message: &[N]) -> Result<Vec<N>> {
        let mut sums = vec![arithmetic.number(0); self.rows];
        for (set, column) in &self.columns {
            if arithmetic.is_zero(&message[*set]) {
                continue;
            }
            for (sum, entry) in sums.iter_mut().zip(column) {
                if !arithmetic.is_zero(entry) {
                    arithmetic.add(sum, &arithmetic.product(entry, &message[*set])?);
                }
            }
        }
        Ok(sums)
    }
}
