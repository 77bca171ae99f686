//! Strips and rings that repeat along one axis, whatever their unit cell: the transfer operator of one period, site by site.
//!
//! The sites of a period are introduced one at a time and forgotten once their last neighbor has been introduced; a state is
//! an independent set of the sites in between, the frontier. Site v with neighbors N in the frontier, forgotten sites F and
//! weight z moves a vector x over states by
//!
//!   y[s - F] += x[s],    y[(s - F) + v] += z x[s]    for s disjoint from N.
//!
//! The places of both terms are listed once for each site; the same lists serve doubles, double-doubles and integers. With
//! x = e_0 (the empty state) the sum over states after n periods counts the independent sets of the strip of n periods.
//!
//! The Perron root is enclosed after L. Collatz and H. Wielandt: for positive x it lies between the least and the greatest
//! of `(T x)_i / x_i`. All terms are positive, so that each addition and product errs relatively by one rounding at most; in
//! integers there is no rounding at all.
//!
//! Example: sites 0, 1, 2 of a row of the square lattice, bonds inside the row and one period up. The frontier is the last
//! row, its states 000, 001, 010, 100, 101; site 0 forgets the site below it.
//!
//! Sources: L. Collatz (1942), Einschliessungssatz fuer die charakteristischen Zahlen von Matrizen, Math. Z. 48; H. Wielandt
//! (1950), Unzerlegbare, nicht negative Matrizen, Math. Z. 52.

use crate::monitor::Progress;
use crate::numeric::double_double::DoubleDouble;
use crate::{Error, Result};
use num_bigint::BigUint;
use std::collections::BTreeMap;
use std::ops::Div;

/// Bits after the binary point of an enclosure.
pub const PRECISION: u32 = 256;

/// Bits after the binary point of the integers that a vector is rounded to.
const VECTOR_BITS: u32 = 160;

/// States between two questions whether to go on.
const POLL: usize = 1 << 16;

/// A place that no term goes to.
const NOWHERE: u32 = u32::MAX;

/// Numbers that a vector can hold, zero by default.
pub trait Number: Clone + Default + Send + Sync {
    /// Adds a number.
    fn increase(&mut self, by: &Self);
    /// The product.
    fn times(&self, by: &Self) -> Self;
    /// Whether it is so small or so large that roundings are no longer relative ones.
    fn is_out_of_range(&self) -> bool;
}

/// Numbers with roundings; a quotient is right to three units.
pub trait Float: Number + Copy + PartialOrd + Div<Output = Self> {
    /// The relative error of a sum or product of positive numbers.
    const UNIT: f64;
    /// The nearest double.
    fn double(self) -> f64;
    /// The number times a power of two.
    fn shifted(self, exponent: i32) -> Self;
    /// The integer part of the number times `2^bits`.
    fn scaled(self, bits: u32) -> BigUint;
    /// A positive quotient of integers, to two units.
    fn ratio(numerator: &BigUint, denominator: &BigUint) -> Self;
}

/// Where the vector leaves the range in which its arithmetic is proved.
const SMALLEST: f64 = 1e-240;
const LARGEST: f64 = 1e280;

impl Number for f64 {
    #[inline(always)]
    fn increase(&mut self, by: &Self) {
        *self += by;
    }
    #[inline(always)]
    fn times(&self, by: &Self) -> Self {
        self * by
    }
    #[inline(always)]
    fn is_out_of_range(&self) -> bool {
        !(SMALLEST..LARGEST).contains(self)
    }
}

impl Float for f64 {
    const UNIT: f64 = f64::EPSILON / 2.0;

    fn double(self) -> f64 {
        self
    }
    fn shifted(self, exponent: i32) -> Self {
        self * 2f64.powi(exponent)
    }
    fn scaled(self, bits: u32) -> BigUint {
        let raw = self.to_bits();
        let (mantissa, exponent) = ((raw & ((1 << 52) - 1)) | (1 << 52), (raw >> 52) as i64 - 1075 + i64::from(bits));
        match exponent {
            0.. => BigUint::from(mantissa) << exponent,
            _ => BigUint::from(mantissa) >> -exponent,
        }
    }
    fn ratio(numerator: &BigUint, denominator: &BigUint) -> Self {
        let shift = denominator.bits() as i64 - numerator.bits() as i64 + 64;
        let (up, down) = (shift.max(0), (-shift).max(0));
        let quotient = (numerator << up) / (denominator << down);
        let value = quotient.iter_u64_digits().rev().fold(0.0, |sum, digit| sum * 2f64.powi(64) + digit as f64);
        value * 2f64.powi((-shift) as i32)
    }
}

impl Number for DoubleDouble {
    #[inline(always)]
    fn increase(&mut self, by: &Self) {
        *self += *by;
    }
    #[inline(always)]
    fn times(&self, by: &Self) -> Self {
        *self * *by
    }
    #[inline(always)]
    fn is_out_of_range(&self) -> bool {
        self.hi.is_out_of_range()
    }
}

impl Float for DoubleDouble {
    // A product errs by 7 * 2^-106, a sum by 3 * 2^-106, a quotient by 2^-102.
    const UNIT: f64 = f64::EPSILON * f64::EPSILON * 2.0;

    fn double(self) -> f64 {
        self.hi
    }
    fn shifted(self, exponent: i32) -> Self {
        let factor = 2f64.powi(exponent);
        Self { hi: self.hi * factor, lo: self.lo * factor }
    }
    fn scaled(self, bits: u32) -> BigUint {
        let low = self.lo.abs();
        let low = if low == 0.0 { BigUint::ZERO } else { low.scaled(bits) };
        let high = self.hi.scaled(bits);
        if self.lo < 0.0 { high - low } else { high + low }
    }
    fn ratio(numerator: &BigUint, denominator: &BigUint) -> Self {
        let high = f64::ratio(numerator, denominator);
        // The rest, exactly: high is a multiple of 2^-bits.
        let bits = 1100;
        let parts = (denominator * high.scaled(bits), numerator << bits);
        let unit = denominator << bits;
        let low = match parts.0.cmp(&parts.1) {
            std::cmp::Ordering::Less => f64::ratio(&(&parts.1 - &parts.0), &unit),
            std::cmp::Ordering::Equal => 0.0,
            std::cmp::Ordering::Greater => -f64::ratio(&(&parts.0 - &parts.1), &unit),
        };
        Self::from(high) + Self::from(low)
    }
}

impl Number for BigUint {
    fn increase(&mut self, by: &Self) {
        *self += by;
    }
    fn times(&self, by: &Self) -> Self {
        self * by
    }
    fn is_out_of_range(&self) -> bool {
        false
    }
}

/// What a site multiplies by, `None` for one. Integers have the common denominator as weight of an empty site.
#[derive(Clone, Debug)]
pub struct SiteWeight<T> {
    /// Of the empty site.
    pub empty: Option<T>,
    /// Of the occupied site.
    pub occupied: Option<T>,
}

/// A positive rational number: numerator and denominator.
pub type Ratio = (BigUint, BigUint);

/// Where the states go when a site is introduced.
#[derive(Clone, Debug)]
struct SiteIntroduction {
    site: usize,
    /// For each state its place with the site empty and occupied.
    places: Vec<[u32; 2]>,
    states: usize,
}

/// The arithmetic of an enclosure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Doubles: 14 to 15 digits.
    Double,
    /// Double-doubles: 29 to 30 digits.
    DoubleDouble,
    /// The vector in double-doubles, rounded to integers; what is proved about it, in integers.
    Exact,
}

impl Precision {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Double, Self::DoubleDouble, Self::Exact];

    /// The name users write.
    pub fn name(self) -> &'static str {
        match self {
            Self::Double => "double",
            Self::DoubleDouble => "double-double",
            Self::Exact => "exact",
        }
    }
}

/// An enclosed Perron root.
#[derive(Clone, Debug, PartialEq)]
pub struct Root {
    /// At most the root, times `2^PRECISION`.
    pub lower: BigUint,
    /// At least the root, times `2^PRECISION`.
    pub upper: BigUint,
    /// Applications of the operator.
    pub iterations: u64,
}

/// The operator of one period.
#[derive(Clone, Debug)]
pub struct PeriodicOperator {
    steps: Vec<SiteIntroduction>,
    states: usize,
    most_states: usize,
    frontier: usize,
    /// Most terms of a sum, and for each site a product and its rounded weight.
    roundings: u64,
}

/// A bond from a site to another, so many periods on.
pub type PeriodicBond = (usize, usize, i64);

impl PeriodicOperator {
    /// The operator of a period of `sites` sites, introduced in their order, within so many bytes.
    ///
    /// # Errors
    /// [`Error::Domain`] if a bond leads out of the period's sites or from a site to itself, or more than 63 sites wait for a
    /// neighbor; [`Error::TooLarge`] beyond `memory`; [`Error::Interrupted`].
    pub fn new(sites: usize, bonds: &[PeriodicBond], memory: u128, progress: &Progress) -> Result<Self> {
        let domain = |value: String, requirement| Err(Error::domain("bonds", value, requirement));
        let mut near: Vec<Vec<i64>> = vec![Vec::new(); sites];
        for &(u, v, step) in bonds {
            if u >= sites || v >= sites || step.abs() > 8 {
                return domain(
                    format!("({u}, {v}, {step})"),
                    "between sites of the period, at most eight periods apart",
                );
            }
            if (u, 0) == (v, step) {
                return domain(format!("({u}, {v}, {step})"), "between two sites");
            }
            near[u].push(step * sites as i64 + v as i64);
            near[v].push(-step * sites as i64 + u as i64);
        }
        // Site s of period p has the label p * sites + s; neighbors and lasting are those of a label.
        let size = sites as i64;
        let neighbors = |label: i64| {
            let shift = label.div_euclid(size) * size;
            near[label.rem_euclid(size) as usize].iter().map(move |&other| other + shift)
        };
        let last = |label: i64| neighbors(label).fold(label, i64::max);
        let seam: Vec<i64> = (-16 * size..0).filter(|&label| last(label) >= 0).collect();
        let (mut labels, mut words) = (Vec::new(), vec![0u64]);
        let mut needed = 0u128;
        let mut reserve = |states: usize, bytes: u128| -> Result<()> {
            needed += states as u128 * bytes;
            match needed + states as u128 * 64 > memory || states >= NOWHERE as usize {
                true => Err(Error::TooLarge {
                    what: "a strip or ring of this width",
                    needed: needed + states as u128 * 64,
                    limit: memory,
                }),
                false => Ok(()),
            }
        };
        // Said before anything is built: the states of the seam, with their places for each site and their vectors.
        let most = forecast(&seam, neighbors);
        if !(most * (8.0 * sites as f64 + 64.0) < memory as f64) {
            let needed = (most * (8.0 * sites as f64 + 64.0)) as u128;
            return Err(Error::TooLarge { what: "a strip or ring of this width", needed, limit: memory });
        }
        for &label in &seam {
            let mask = mask(&labels, neighbors(label));
            let bit = place(labels.len())?;
            let joined: Vec<u64> = words.iter().filter(|&&word| word & mask == 0).map(|&word| word | bit).collect();
            reserve(words.len() + joined.len(), 0)?;
            words.extend(joined);
            labels.push(label);
            progress.check()?;
        }
        let start = words.clone();
        let (mut steps, mut roundings, mut most_states) = (Vec::with_capacity(sites), 0, words.len());
        for site in 0..sites {
            let label = site as i64;
            let mask = mask(&labels, neighbors(label));
            let gone: u64 = (0..labels.len()).filter(|&i| last(labels[i]) <= label).map(|i| 1 << i).sum();
            let stays = last(label) > label;
            let kept = labels.len() - gone.count_ones() as usize;
            let bit = if stays { place(kept)? } else { 0 };
            reserve(words.len(), 8)?;
            let moved: Vec<u64> = words.iter().map(|&word| without(word, gone)).collect();
            let mut targets: Vec<u64> = Vec::with_capacity(2 * moved.len());
            targets.extend(&moved);
            targets.extend(words.iter().zip(&moved).filter(|(word, _)| **word & mask == 0).map(|(_, &to)| to | bit));
            progress.check()?;
            targets.sort_unstable();
            progress.check()?;
            targets.dedup();
            let find = |word: u64| targets.binary_search(&word).map_or(NOWHERE, |at| at as u32);
            let mut places: Vec<[u32; 2]> = Vec::with_capacity(words.len());
            for (words, moved) in words.chunks(POLL).zip(moved.chunks(POLL)) {
                progress.check()?;
                let free = |word: u64, to: u64| if word & mask == 0 { find(to | bit) } else { NOWHERE };
                places.extend(words.iter().zip(moved).map(|(&word, &to)| [find(to), free(word, to)]));
            }
            let mut terms = vec![0u32; targets.len()];
            places.iter().flatten().filter(|&&at| at != NOWHERE).for_each(|&at| terms[at as usize] += 1);
            roundings += u64::from(terms.into_iter().max().unwrap_or(1)) + 3;
            labels = labels.iter().enumerate().filter(|(i, _)| gone >> i & 1 == 0).map(|(_, &label)| label).collect();
            if stays {
                labels.push(label);
            }
            steps.push(SiteIntroduction { site, places, states: targets.len() });
            most_states = most_states.max(targets.len());
            words = targets;
        }
        if words != start || !labels.iter().map(|label| label - size).eq(seam.iter().copied()) {
            let detail = format!("{} states became {}", start.len(), words.len());
            return Err(Error::Check { what: "a period returns to its own frontier", detail });
        }
        Ok(Self { states: words.len(), frontier: labels.len(), steps, most_states, roundings })
    }

    /// States between two periods.
    pub fn states(&self) -> usize {
        self.states
    }

    /// Sites between two periods that wait for a neighbor.
    pub fn frontier(&self) -> usize {
        self.frontier
    }

    /// Sites of a period.
    pub fn sites(&self) -> usize {
        self.steps.len()
    }

    /// Moves a vector over states one period on.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; [`Error::Domain`] if a number leaves the range in which its roundings are relative ones.
    pub fn apply<T: Number>(
        &self,
        weights: &[SiteWeight<T>],
        x: &mut Vec<T>,
        spare: &mut Vec<T>,
        progress: &Progress,
    ) -> Result<()> {
        for step in &self.steps {
            spare.clear();
            spare.resize(step.states, T::default());
            let weight = &weights[step.site];
            for (places, values) in step.places.chunks(POLL).zip(x.chunks(POLL)) {
                progress.check()?;
                for (&[empty, occupied], value) in places.iter().zip(values) {
                    let target = &mut spare[empty as usize];
                    match &weight.empty {
                        None => target.increase(value),
                        Some(weight) => target.increase(&value.times(weight)),
                    }
                    if occupied != NOWHERE {
                        let target = &mut spare[occupied as usize];
                        match &weight.occupied {
                            None => target.increase(value),
                            Some(weight) => target.increase(&value.times(weight)),
                        }
                    }
                }
            }
            in_range(spare)?;
            std::mem::swap(x, spare);
        }
        Ok(())
    }

    /// The independent sets of a strip or ring of so many periods.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn count(&self, periods: u64, progress: &Progress) -> Result<BigUint> {
        let weights = vec![SiteWeight { empty: None, occupied: None }; self.sites()];
        let mut x = vec![BigUint::ZERO; self.states];
        x[0] = BigUint::from(1u32);
        let mut spare = Vec::new();
        for _ in 0..periods {
            self.apply(&weights, &mut x, &mut spare, progress)?;
            progress.advance(1)?;
        }
        Ok(x.iter().sum())
    }

    /// Encloses the Perron root at a positive rational weight for each site.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn root(&self, weights: &[Ratio], precision: Precision, progress: &Progress) -> Result<Root> {
        if weights.len() != self.sites() {
            return Err(Error::shape("weights", format!("({},)", self.sites()), format!("({},)", weights.len())));
        }
        let rough: (Vec<f64>, Root) = self.iterate(weights, vec![1.0; self.states], progress)?;
        if precision == Precision::Double {
            return Ok(rough.1);
        }
        let start = rough.0.iter().map(|&x| DoubleDouble::from(x)).collect();
        let (vector, mut root) = self.iterate(weights, start, progress)?;
        root.iterations += rough.1.iterations;
        if precision == Precision::Exact {
            let integers = vector.iter().map(|x| x.scaled(VECTOR_BITS) + 1u32).collect();
            let (lower, upper) = self.quotients(weights, integers, progress)?;
            (root.lower, root.upper, root.iterations) = (lower, upper, root.iterations + 1);
        }
        Ok(root)
    }

    /// Power iteration: the vector and the best enclosure met.
    fn iterate<T: Float>(&self, weights: &[Ratio], start: Vec<T>, progress: &Progress) -> Result<(Vec<T>, Root)> {
        let one = BigUint::from(1u32);
        let weights: Vec<SiteWeight<T>> = weights
            .iter()
            .map(|(numerator, denominator)| {
                let is_one = numerator == denominator || (numerator, denominator) == (&one, &one);
                SiteWeight { empty: None, occupied: (!is_one).then(|| T::ratio(numerator, denominator)) }
            })
            .collect();
        let (mut x, mut spare) = (start, Vec::with_capacity(self.most_states));
        let (mut best, mut best_gap): ((T, T), f64) = ((T::default(), T::default()), f64::INFINITY);
        let (mut calm, mut iterations, mut mark) = (0, 0, f64::INFINITY);
        while calm < 10 && iterations < 4000 {
            let mut image = x.clone();
            self.apply(&weights, &mut image, &mut spare, progress)?;
            iterations += 1;
            let mut ends: Option<(T, T)> = None;
            for (&y, &x) in image.iter().zip(&x) {
                let quotient = y / x;
                let (low, high) = ends.get_or_insert((quotient, quotient));
                if quotient < *low {
                    *low = quotient;
                }
                if quotient > *high {
                    *high = quotient;
                }
            }
            let Some((low, high)) = ends else { break };
            let mut difference = (high / low).double() - 1.0;
            if difference < 8.0 * f64::EPSILON {
                // What a double cannot see.
                let scaled = (low.scaled(PRECISION), high.scaled(PRECISION));
                difference = f64::ratio(&((&scaled.1 - &scaled.0) + 1u32), &scaled.0);
            }
            if difference < 0.9 * mark {
                (calm, mark) = (0, difference);
            } else {
                calm += 1;
            }
            if difference < best_gap {
                (best, best_gap) = ((low, high), difference);
            }
            if best_gap <= T::UNIT {
                break;
            }
            let most = image.iter().fold(0.0, |most, y| y.double().max(most));
            let exponent = -((most.to_bits() >> 52) as i32 - 1023);
            image.iter_mut().for_each(|y| *y = y.shifted(exponent));
            // With it every number that is added, multiplied or divided by has been seen to lie in the range.
            in_range(&image)?;
            x = image;
        }
        // Sums, products, rounded weights, the quotient; second order in the units is far below one hundredth.
        let slack = (self.roundings as f64 + 8.0) * T::UNIT * 1.02;
        let bits = PRECISION - 20;
        let below = BigUint::from(1u32) << bits;
        let error = slack.scaled(bits) + 1u32;
        let lower = (best.0.scaled(PRECISION) * (&below - &error)) >> bits;
        let upper = (((best.1.scaled(PRECISION) + 1u32) * (&below + &error)) >> bits) + 1u32;
        Ok((x, Root { lower, upper, iterations }))
    }

    /// The least and the greatest quotient of a vector of positive integers, times `2^PRECISION`, rounded outwards.
    fn quotients(&self, weights: &[Ratio], vector: Vec<BigUint>, progress: &Progress) -> Result<(BigUint, BigUint)> {
        let one = BigUint::from(1u32);
        let some = |x: &BigUint| (*x != one).then(|| x.clone());
        let exact: Vec<SiteWeight<BigUint>> =
            weights.iter().map(|(a, b)| SiteWeight { empty: some(b), occupied: some(a) }).collect();
        let scale = weights.iter().fold(one.clone(), |product, (_, denominator)| product * denominator);
        let mut image = vector.clone();
        self.apply(&exact, &mut image, &mut Vec::new(), progress)?;
        let mut ends: Option<(BigUint, BigUint)> = None;
        for (i, (y, x)) in image.into_iter().zip(&vector).enumerate() {
            if i % 1024 == 0 {
                progress.check()?;
            }
            let quotient = (y << PRECISION) / (x * &scale);
            let (low, high) = ends.get_or_insert_with(|| (quotient.clone(), quotient.clone()));
            if quotient < *low {
                *low = quotient;
            } else if quotient > *high {
                *high = quotient;
            }
        }
        ends.map(|(low, high)| (low, high + 1u32))
            .ok_or(Error::Check { what: "a vector has states", detail: "none".into() })
    }
}

/// Refuses a vector that has left the range in which its roundings are relative ones.
fn in_range<T: Number>(vector: &[T]) -> Result<()> {
    if vector.iter().any(Number::is_out_of_range) {
        return Err(Error::domain(
            "activity",
            "one with which states differ by more than 1e240",
            "nearer to one, or the width smaller",
        ));
    }
    Ok(())
}

/// The number of independent sets of the sites between two periods, by way of tables over those that have neighbors left.
fn forecast<I: Iterator<Item = i64>>(seam: &[i64], neighbors: impl Fn(i64) -> I) -> f64 {
    let near = |label: i64| neighbors(label).filter(|other| seam.binary_search(other).is_ok());
    let mut open: Vec<i64> = Vec::new();
    let mut table = BTreeMap::from([(Vec::<bool>::new(), 1.0)]);
    for &label in seam {
        let ends: Vec<bool> = open.iter().map(|&other| near(label).any(|near| near == other)).collect();
        open.push(label);
        let stays: Vec<bool> = open.iter().map(|&other| near(other).any(|near| near > label)).collect();
        let mut next = BTreeMap::new();
        for (state, count) in table {
            for occupied in [false, true] {
                if occupied && state.iter().zip(&ends).any(|(&is_set, &is_near)| is_set && is_near) {
                    continue;
                }
                let all = state.iter().copied().chain([occupied]).zip(&stays);
                let kept: Vec<bool> = all.filter(|(_, stays)| **stays).map(|(is_set, _)| is_set).collect();
                *next.entry(kept).or_insert(0.0) += count;
            }
        }
        if next.len() > 1 << 16 {
            return 0.0; // not sparse enough to be foretold
        }
        table = next;
        open = open.iter().zip(&stays).filter(|(_, stays)| **stays).map(|(&label, _)| label).collect();
    }
    table.values().sum()
}

/// The bit of a place, if there is one.
fn place(index: usize) -> Result<u64> {
    match index {
        0..=62 => Ok(1 << index),
        _ => Err(Error::domain(
            "width",
            format!("{} sites that wait for a neighbor", index + 1),
            "such that at most 63 sites wait for a neighbor",
        )),
    }
}

/// The bits of those labels that are listed.
fn mask(labels: &[i64], listed: impl Iterator<Item = i64>) -> u64 {
    listed.filter_map(|other| labels.binary_search(&other).ok()).fold(0, |mask, i| mask | 1 << i)
}

/// The word without some of its bits, the others moved down.
fn without(word: u64, gone: u64) -> u64 {
    let (mut rest, mut gone) = (word, gone);
    while gone != 0 {
        let bit = 63 - gone.leading_zeros();
        let below = (1u64 << bit) - 1;
        rest = (rest & below) | (rest >> 1 & !below);
        gone &= below;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip(width: usize) -> PeriodicOperator {
        let mut bonds: Vec<PeriodicBond> = (1..width).map(|i| (i - 1, i, 0)).collect();
        bonds.extend((0..width).map(|i| (i, i, 1)));
        PeriodicOperator::new(width, &bonds, 1 << 30, &Progress::default()).unwrap()
    }

    fn ones(sites: usize) -> Vec<Ratio> {
        vec![(1u32.into(), 1u32.into()); sites]
    }

    #[test]
    fn integers_count_the_independent_sets_of_strips() {
        // A006506: the square lattice, n x n.
        for (n, count) in [(1usize, 2u64), (2, 7), (3, 63), (4, 1234), (5, 55447), (6, 5_598_861)] {
            let operator = strip(n);
            assert_eq!(operator.count(n as u64, &Progress::default()).unwrap(), count.into());
        }
    }

    #[test]
    fn enclosures_of_all_precisions_meet_and_tighten() {
        let operator = strip(6);
        let roots: Vec<Root> = Precision::ALL
            .iter()
            .map(|&precision| operator.root(&ones(6), precision, &Progress::default()).unwrap())
            .collect();
        let gap = |root: &Root| f64::ratio(&(&root.upper - &root.lower), &root.lower);
        for (root, digits) in roots.iter().zip([1e-13, 1e-28, 1e-28]) {
            assert!(gap(root) < digits, "{}", gap(root));
            assert!(roots.iter().all(|other| root.lower <= other.upper));
        }
        // One site a period: the golden ratio.
        let path = PeriodicOperator::new(1, &[(0, 0, 1)], 1 << 20, &Progress::default()).unwrap();
        let root = path.root(&ones(1), Precision::Exact, &Progress::default()).unwrap();
        let five = (BigUint::from(5u32) << (2 * PRECISION)).sqrt();
        let golden = ((BigUint::from(1u32) << PRECISION) + five) >> 1;
        assert!(root.lower <= golden && golden <= root.upper);
        assert!(gap(&root) < 1e-29);
    }

    #[test]
    fn weights_are_rational_numbers_in_every_arithmetic() {
        // A path at activity a / b: the root of x^2 = x + a / b.
        let path = PeriodicOperator::new(1, &[(0, 0, 1)], 1 << 20, &Progress::default()).unwrap();
        for (a, b) in [(1u32, 3u32), (7, 5), (1_000_003, 999_983), (1, 1_000_000_007)] {
            for precision in Precision::ALL {
                let root = path.root(&[(a.into(), b.into())], precision, &Progress::default()).unwrap();
                let one = BigUint::from(1u32) << PRECISION;
                let square = |x: &BigUint| b * x * x;
                let line = |x: &BigUint| (b * x + a * &one) * &one;
                assert!(square(&root.lower) <= line(&root.lower) && line(&root.upper) <= square(&root.upper));
            }
        }
    }

    #[test]
    fn quotients_of_integers_are_right_to_two_units() {
        let (a, b) = (BigUint::from(10u32).pow(40) + 7u32, BigUint::from(3u32).pow(50));
        let found = DoubleDouble::ratio(&a, &b).scaled(300);
        let wanted = (a << 300u32) / b;
        let error = if found > wanted { &found - &wanted } else { &wanted - &found };
        assert!((error << 103u32) < wanted);
    }

    #[test]
    fn a_vector_that_a_shift_moves_out_of_range_is_refused() {
        // Occupations of 1e120, 1 and 1e-130: in range while a period is made, 1e-250 of the largest after it.
        let ten = |power: u32| BigUint::from(10u32).pow(power);
        let weights = |large: u32, small: u32| vec![(ten(large), ten(0)), (ten(0), ten(small)), (ten(0), ten(0))];
        for precision in Precision::ALL {
            let root = |large, small| strip(3).root(&weights(large, small), precision, &Progress::default());
            assert!(matches!(root(120, 130), Err(Error::Domain { name: "activity", .. })), "{precision:?}");
            assert!(root(100, 100).is_ok(), "{precision:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let build =
            |sites, bonds: &[PeriodicBond], memory| PeriodicOperator::new(sites, bonds, memory, &Progress::default());
        assert!(matches!(build(2, &[(0, 2, 0)], 1 << 20), Err(Error::Domain { .. })));
        assert!(matches!(build(2, &[(1, 1, 0)], 1 << 20), Err(Error::Domain { .. })));
        let row: Vec<PeriodicBond> = (0..30).map(|i| (i, i, 1)).collect();
        assert!(matches!(build(30, &row, 1 << 20), Err(Error::TooLarge { .. })));
        let stopped = Progress::default();
        stopped.cancel();
        assert_eq!(strip(3).root(&ones(3), Precision::Double, &stopped), Err(Error::Interrupted));
    }
}
