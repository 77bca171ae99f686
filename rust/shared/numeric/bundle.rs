//! Bundles: several numbers side by side in one element of a ring, as long as few residues tell them.
//!
//! A ring of L lanes keeps a number by L moduli. While it is below the product P of the first m of them, these are enough, and an
//! element has room for L/m numbers: lane l holds number l / m modulo p_{l mod m}. With y_i = v (P/p_i)^-1 modulo p_i,
//!
//!   v = sum of y_i P/p_i - k P,  k = floor(sum of y_i / p_i),  and since p_j = p_j - q modulo q,
//!   v = sum over i of y_i prod over j /= i of (p_j - q)  -  k prod over j of (p_j - q)   modulo q,
//!
//! where differences of neighboring primes are so small that words of 32 bits hold their products. Sums of products v w, with z and l
//! of w as y and k of v, need no more residues than v and w have: they follow from sums over integers,
//!
//!   sum of v w = sum over i, j of (P/p_i) (P/p_j) S(y_i z_j) - P sum over i of (P/p_i) (S(y_i l) + S(k z_i)) + P^2 S(k l).
//!
//! Source: S. Kawamura, M. Koike, F. Sano, A. Shimbo (2000), Cox-Rower architecture for fast parallel Montgomery multiplication,
//! EUROCRYPT (extension of a base with k from floating point).

use super::dispatch::{Level, at_level};
use super::double_ring::{DoubleDoubles, ScaledDoubleDoubles};
use super::residue::{BITS, Modulus};
use super::ring::{F64, Lanes, Ring, lanes};
use crate::parallel;

/// Most moduli a number of a bundle has.
pub const MOST: usize = 4;
/// Numbers of a bundle by m moduli are below P times 1 less this, so that rounding does not change k.
const MARGIN: f64 = 1.0 / (1 << 20) as f64;
/// Moduli are at least this: so m of them tell all numbers below 2^(54.999 m).
const LEAST: u64 = (1 << BITS) - (1 << 32);
/// Bits of the lower part of a y, and of a product of differences.
const LOW: u32 = 28;
const LOWER: u64 = (1 << LOW) - 1;
/// Elements that are taken apart at a time.
const BLOCK: usize = 16;
/// Elements of a task.
const PART: usize = 1 << 14;
/// Between 2^52 and 2^53 doubles are integers.
const INTEGERS: f64 = 1.5 * (1u64 << 52) as f64;
/// What a product of 32-bit words takes of each.
const WORD: u64 = (1 << 32) - 1;

/// A ring that may keep small numbers side by side.
pub trait Bundled: Ring {
    /// Numbers that an element has room for, if one modulus each is enough.
    const SIDE: usize = 1;

    /// The ring of bundles with so many residues of each number, fewer than [`Self::SIDE`]; none if its moduli do not allow it.
    fn bundle(&self, _residues: usize) -> Option<Self> {
        None
    }

    /// The ring of bundles with as few residues of each number as tell all that this ring does, where lanes repeat a modulus, and how
    /// many these are.
    fn without_repeats(&self) -> (Self, usize) {
        (*self, Self::SIDE)
    }

    /// The bundle in which the number at this place is one, and the others are zero.
    fn unit(&self, _residues: usize, _place: usize) -> Self::Element {
        self.one()
    }

    /// The number at this place of a bundle [`Self::without_repeats`], as this ring has it.
    fn number(&self, _residues: usize, _place: usize, bundle: Self::Element) -> Self::Element {
        bundle
    }

    /// How bundles with `from` residues of each number become bundles with `to`, both of this ring.
    fn unbundling(&self, from: usize, to: usize) -> Unbundling {
        Unbundling { from, to, ..Unbundling::default() }
    }

    /// Bundles with more residues of each number, of which they have fewer: those of one part.
    fn unbundle(
        &self,
        _level: Level,
        _way: &Unbundling,
        _part: usize,
        from: &[Self::Element],
        to: &mut [Self::Element],
    ) {
        to.copy_from_slice(from);
    }

    /// The sum of products of two vectors of bundles with `way.from` residues of each number: an element of this ring for each number.
    fn products(
        &self,
        _level: Level,
        _way: &Unbundling,
        pairs: (&[Self::Element], &[Self::Element]),
    ) -> Vec<Self::Element> {
        vec![self.dot(pairs.0.iter().copied().zip(pairs.1.iter().copied()))]
    }
}

impl Bundled for F64 {}
impl Bundled for DoubleDoubles {}
impl Bundled for ScaledDoubleDoubles {}

/// Constants of the way from few residues of a number to more.
#[derive(Clone, Debug, Default)]
pub struct Unbundling {
    from: usize,
    to: usize,
    /// By known prime: itself, and the inverse of P / p_i.
    primes: [u64; MOST],
    inverses: [u64; MOST],
    /// By known prime and lane: the product of the other differences.
    products: [[u64; 8]; MOST],
    /// By lane: -P.
    whole: [u64; 8],
}

/// `prod of (p - q)` over the known primes without one; none if a difference is negative or the product too large.
fn product(known: &[Modulus], without: Option<usize>, q: Modulus, bits: u32) -> Option<u64> {
    let others = known.iter().enumerate().filter(|(i, _)| Some(*i) != without);
    let product = others.map(|(_, p)| p.value().checked_sub(q.value())).try_fold(1u64, |x, y| x.checked_mul(y?))?;
    (product < 1 << bits).then_some(product)
}

impl<const L: usize> Bundled for Lanes<L> {
    const SIDE: usize = L;

    fn bundle(&self, residues: usize) -> Option<Self> {
        let (known, others) = self.moduli().split_at_checked(residues)?;
        let fits = |&q: &Modulus| {
            let cofactors = (0..residues).all(|i| product(known, Some(i), q, LOW).is_some());
            cofactors && product(known, None, q, BITS - 1).is_some()
        };
        let is_room = residues > 0 && residues <= MOST && residues < L && L.is_multiple_of(residues);
        let are_distinct = known.windows(2).all(|pair| pair[0].value() > pair[1].value());
        let are_large = known.iter().all(|p| p.value() >= LEAST);
        let ring = || Self::new(std::array::from_fn(|lane| known[lane % residues]));
        (is_room && are_distinct && are_large && others.iter().all(fits)).then(ring)
    }

    fn without_repeats(&self) -> (Self, usize) {
        let repeats = self.moduli().iter().rev().take_while(|modulus| **modulus == self.moduli()[L - 1]).count();
        let residues = (L + 1 - repeats).next_power_of_two().min(L);
        (Self::new(std::array::from_fn(|lane| self.moduli()[lane % residues])), residues)
    }

    fn number(&self, residues: usize, place: usize, bundle: [u64; L]) -> [u64; L] {
        lanes(|lane| bundle[place * residues + lane.min(residues - 1)])
    }

    fn unit(&self, residues: usize, place: usize) -> [u64; L] {
        lanes(|lane| u64::from(lane / residues == place))
    }

    fn unbundling(&self, from: usize, to: usize) -> Unbundling {
        let mut way = Unbundling { from, to, ..Unbundling::default() };
        let known = &self.moduli()[..from];
        for (i, &p) in known.iter().enumerate() {
            way.primes[i] = p.value();
            way.inverses[i] = p.inverse(p.product_of(known, Some(i)));
        }
        for lane in (0..L).filter(|lane| lane % to >= from) {
            let q = self.moduli()[lane % to];
            for (i, products) in way.products.iter_mut().enumerate().take(from) {
                products[lane] = product(known, Some(i), q, LOW).unwrap_or(0);
            }
            way.whole[lane] = q.value() - product(known, None, q, BITS - 1).unwrap_or(0);
        }
        way
    }

    fn unbundle(&self, level: Level, way: &Unbundling, part: usize, from: &[[u64; L]], to: &mut [[u64; L]]) {
        let moduli = self.moduli();
        let excess = lanes(|lane| u64::from(moduli[lane % way.to].excess()));
        macro_rules! one_of {
            ($($from:literal to $to:literal),*) => {
                match (way.from, way.to) {
                    $(($from, $to) if $to <= L => {
                        let place = part * (L / $to) * $from;
                        at_level!(level, Wider::<$from, $to, L> { way, excess, place, from, to }.write());
                    })*
                    _ => unreachable!("numbers of residues are powers of two below the number of lanes"),
                }
            };
        }
        one_of!(1 to 2, 1 to 4, 1 to 8, 2 to 4, 2 to 8, 4 to 8);
    }

    fn products(&self, level: Level, way: &Unbundling, (x, y): (&[[u64; L]], &[[u64; L]])) -> Vec<[u64; L]> {
        let of = |i: usize| {
            let (x, y) = (&x[i * PART..x.len().min((i + 1) * PART)], &y[i * PART..y.len().min((i + 1) * PART)]);
            match (way.from, std::ptr::eq(x, y)) {
                (1, true) => at_level!(level, DigitSums::<1, L, true> { way, x, y }.sums()),
                (1, false) => at_level!(level, DigitSums::<1, L, false> { way, x, y }.sums()),
                (2, true) => at_level!(level, DigitSums::<2, L, true> { way, x, y }.sums()),
                (2, false) => at_level!(level, DigitSums::<2, L, false> { way, x, y }.sums()),
                (_, true) => at_level!(level, DigitSums::<4, L, true> { way, x, y }.sums()),
                (_, false) => at_level!(level, DigitSums::<4, L, false> { way, x, y }.sums()),
            }
        };
        let all = parallel::map(x.len().div_ceil(PART), of).into_iter().reduce(Sums::plus);
        let Some(sums) = all else { return vec![[0; L]; L / way.from] };
        let of = |number| lanes(|i| sums.of(number, &self.moduli()[..way.from], self.moduli()[i]));
        (0..L / way.from).map(of).collect()
    }
}

/// Sums over integers, by lane. Of products of digits, by how far the lane of the second is ahead: those of the lower parts, of a lower
/// and a higher one, of the higher parts.
struct Sums<const L: usize> {
    digits: [[[u128; L]; 3]; MOST],
    /// Of the digits of each times the wholes of the other, both ways added.
    mixed: [u128; L],
    /// Of the wholes of both.
    wholes: [u128; L],
}

impl<const L: usize> Sums<L> {
    fn plus(mut self, other: Self) -> Self {
        for lane in 0..L {
            for (sums, more) in self.digits.as_flattened_mut().iter_mut().zip(other.digits.as_flattened()) {
                sums[lane] += more[lane];
            }
            self.mixed[lane] += other.mixed[lane];
            self.wholes[lane] += other.wholes[lane];
        }
        self
    }

    /// The sum of products of one number, modulo q.
    fn of(&self, number: usize, known: &[Modulus], q: Modulus) -> u64 {
        let m = known.len();
        let cofactors: Vec<u64> = (0..m).map(|i| q.product_of(known, Some(i))).collect();
        let whole = q.product_of(known, None);
        let (mut sum, mut less) = (q.mul(q.mul(whole, whole), q.fold_wide(self.wholes[number * m])), 0);
        for i in 0..m {
            let lane = number * m + i;
            for (ahead, [low, middle, high]) in self.digits[..m].iter().enumerate() {
                let [low, middle, high] = [low, middle, high].map(|sums| q.fold_wide(sums[lane]));
                let shift = q.residue(1 << LOW);
                let products = q.fold(low + q.mul(shift, q.fold(middle + q.mul(shift, high))));
                sum = q.fold(sum + q.mul(products, q.mul(cofactors[i], cofactors[(i + ahead) % m])));
            }
            less = q.fold(less + q.mul(cofactors[i], q.fold_wide(self.mixed[lane])));
        }
        q.residue(sum + q.value() - q.residue(q.mul(less, whole)))
    }
}

/// Adds up the products of digits.
struct DigitSums<'a, const M: usize, const L: usize, const SQUARES: bool> {
    way: &'a Unbundling,
    x: &'a [[u64; L]],
    y: &'a [[u64; L]],
}

impl<const M: usize, const L: usize, const SQUARES: bool> DigitSums<'_, M, L, SQUARES> {
    #[inline(always)]
    fn sums(self) -> Sums<L> {
        let Self { way, x, y } = self;
        let taking = Taking::<M, L>::new(way);
        // Of squares, digits three lanes ahead are those one lane behind, and digits times wholes are the same both ways.
        let (mut digits, mut mixed, mut wholes) = ([[[0u128; L]; 3]; MOST], [0u128; L], [0u128; L]);
        for (x, y) in x.chunks(BLOCK).zip(y.chunks(BLOCK)) {
            let (mut sums, mut mix, mut both) = ([[[0u64; L]; 3]; M], [0u64; L], [0u64; L]);
            for (x, y) in x.iter().zip(y) {
                one_by_one();
                let x = taking.apart(x);
                let y = if SQUARES { x } else { taking.apart(y) };
                let (k, l) = (wholes_of::<M, L>(&x.share), wholes_of::<M, L>(&y.share));
                for lane in 0..L {
                    mix[lane] += (x.low[lane] + (x.high[lane] << LOW)) * l[lane];
                    both[lane] += k[lane] * l[lane];
                }
                add_products::<M, L, 0>(&mut sums, &x, &y);
                add_products::<M, L, 1>(&mut sums, &x, &y);
                add_products::<M, L, 2>(&mut sums, &x, &y);
                if !SQUARES {
                    add_products::<M, L, 3>(&mut sums, &x, &y);
                    for lane in 0..L {
                        mix[lane] += (y.low[lane] + (y.high[lane] << LOW)) * k[lane];
                    }
                }
            }
            let twice = |of: bool, x: u64| u128::from(x) << u32::from(of && SQUARES);
            for lane in 0..L {
                for ahead in 0..M {
                    for part in 0..3 {
                        digits[ahead][part][lane] += twice(M == 4 && ahead == 1, sums[ahead][part][lane]);
                    }
                }
                mixed[lane] += twice(true, mix[lane]);
                wholes[lane] += u128::from(both[lane]);
            }
        }
        Sums { digits, mixed, wholes }
    }
}

/// Adds the products with the digits so many lanes ahead.
#[inline(always)]
fn add_products<const M: usize, const L: usize, const AHEAD: usize>(
    sums: &mut [[[u64; L]; 3]; M],
    x: &Digits<L>,
    y: &Digits<L>,
) {
    if AHEAD < M {
        let [lows, middles, highs] = &mut sums[AHEAD];
        for lane in 0..L {
            let (x_low, x_high) = (x.low[lane] & WORD, x.high[lane] & WORD);
            let at = ahead::<M>(lane, AHEAD);
            let (y_low, y_high) = (y.low[at] & WORD, y.high[at] & WORD);
            lows[lane] += x_low * y_low;
            middles[lane] += x_low * y_high + x_high * y_low;
            highs[lane] += x_high * y_high;
        }
    }
}

/// Keeps compilers from vectors of neighboring elements, whose lanes they would gather: those of one element are vectors as they are.
#[inline(always)]
fn one_by_one() {
    std::hint::black_box(());
}

/// Another lane of the same number, in a circle.
#[inline(always)]
const fn ahead<const M: usize>(lane: usize, by: usize) -> usize {
    lane / M * M + (lane % M + by) % M
}

/// The k of each number, in all of its lanes.
#[inline(always)]
fn wholes_of<const M: usize, const L: usize>(share: &[f64; L]) -> [u64; L] {
    let mut sum = [MARGIN - 0.5; L];
    for lane in 0..L {
        // Each lane adds in another order: the margin covers a rounding.
        if M == 1 {
            sum[lane] += share[lane];
        } else if M == 2 {
            sum[lane] += share[lane] + share[ahead::<M>(lane, 1)];
        } else {
            sum[lane] +=
                (share[lane] + share[ahead::<M>(lane, 1)]) + (share[ahead::<M>(lane, 2)] + share[ahead::<M>(lane, 3)]);
        }
    }
    let mut wholes = [0; L];
    for lane in 0..L {
        wholes[lane] = nearest(sum[lane]);
    }
    wholes
}

/// The nearest integer to a small number, which stands in the last bits of a sum.
#[inline(always)]
fn nearest(x: f64) -> u64 {
    (x + INTEGERS).to_bits() & LOWER
}

/// What takes elements apart.
struct Taking<const M: usize, const L: usize> {
    primes: [u64; L],
    inverses: [u64; L],
    /// Inverse / 16 p, and 1 / p.
    quotients: [f64; L],
    reciprocals: [f64; L],
}

/// `2^52`: what is added to it is an integer.
const WHOLE: f64 = (1u64 << 52) as f64;

impl<const M: usize, const L: usize> Taking<M, L> {
    #[inline(always)]
    fn new(way: &Unbundling) -> Self {
        let [primes, inverses] = [way.primes, way.inverses].map(|of| lanes(|lane| of[lane % M]));
        let (mut quotients, mut reciprocals) = ([0.0; L], [0.0; L]);
        for lane in 0..L {
            reciprocals[lane] = 1.0 / primes[lane] as f64;
            quotients[lane] = inverses[lane] as f64 * reciprocals[lane] / 16.0;
        }
        Self { primes, inverses, quotients, reciprocals }
    }

    /// The y of an element. A quotient q of x times the inverse by p, a multiple of 16, is right to 8 and five roundings of 2^55, so
    /// that x times the inverse less q p is between -32 p and 32 p.
    #[inline(always)]
    fn apart(&self, x: &[u64; L]) -> Digits<L> {
        let mut digits = Digits { low: [0; L], high: [0; L], share: [0.0; L] };
        for lane in 0..L {
            let mut y = x[lane];
            if M > 1 {
                let p = self.primes[lane];
                let quotient = (x[lane] as f64 * self.quotients[lane] + WHOLE).to_bits() & ((1 << 52) - 1);
                y = x[lane]
                    .wrapping_mul(self.inverses[lane])
                    .wrapping_sub((quotient << 4).wrapping_sub(32).wrapping_mul(p));
                y = (y & ((1 << BITS) - 1)) + (y >> BITS) * (((1 << BITS) - p) & WORD);
            }
            (digits.low[lane], digits.high[lane]) = (y & LOWER, y >> LOW);
            digits.share[lane] = y as f64 * self.reciprocals[lane];
        }
        digits
    }
}

/// From `M` residues of each number to `N`; the first number that is asked for has its residues from lane `place` on.
struct Wider<'a, const M: usize, const N: usize, const L: usize> {
    way: &'a Unbundling,
    /// By lane, of the moduli that are asked for.
    excess: [u64; L],
    place: usize,
    from: &'a [[u64; L]],
    to: &'a mut [[u64; L]],
}

impl<const M: usize, const N: usize, const L: usize> Wider<'_, M, N, L> {
    #[inline(always)]
    fn write(self) {
        let Self { way, excess, place, from, to } = self;
        let taking = Taking::<M, L>::new(way);
        // By how far the residue is ahead that a lane has the product of.
        let mut products = [[0; L]; M];
        for lane in 0..L {
            for i in 0..M {
                products[i][lane] = way.products[ahead::<M>(lane, i) % M][lane];
            }
        }
        for (x, wide) in from.iter().zip(to) {
            one_by_one();
            // The residues of each number, one after the other, as often as they fill its lanes.
            let mut part = [0; L];
            part[..L * M / N].copy_from_slice(&x[place..place + L * M / N]);
            let x = lanes(|lane| part[lane / N * M + lane % M]);
            let digits = taking.apart(&x);
            let (mut lows, mut highs) = (wholes_of::<M, L>(&digits.share), [0; L]);
            for lane in 0..L {
                lows[lane] *= way.whole[lane];
            }
            add_multiples::<M, L, 0>(&mut lows, &mut highs, &digits, &products);
            add_multiples::<M, L, 1>(&mut lows, &mut highs, &digits, &products);
            add_multiples::<M, L, 2>(&mut lows, &mut highs, &digits, &products);
            add_multiples::<M, L, 3>(&mut lows, &mut highs, &digits, &products);
            for lane in 0..L {
                // 2^28 highs: what is above 2^55 of it times the excess.
                let above = BITS - LOW;
                let sum = lows[lane]
                    + ((highs[lane] & ((1 << above) - 1)) << LOW)
                    + ((highs[lane] >> above) & WORD) * (excess[lane] & WORD);
                let sum = (sum & ((1 << BITS) - 1)) + (sum >> BITS) * (excess[lane] & WORD);
                wide[lane] = if lane % N < M { x[lane] } else { sum };
            }
        }
    }
}

/// Adds the multiples of the digits so many lanes ahead.
#[inline(always)]
fn add_multiples<const M: usize, const L: usize, const AHEAD: usize>(
    lows: &mut [u64; L],
    highs: &mut [u64; L],
    digits: &Digits<L>,
    products: &[[u64; L]; M],
) {
    if AHEAD < M {
        for lane in 0..L {
            let at = ahead::<M>(lane, AHEAD);
            lows[lane] += (digits.low[at] & WORD) * (products[AHEAD][lane] & WORD);
            highs[lane] += (digits.high[at] & WORD) * (products[AHEAD][lane] & WORD);
        }
    }
}

/// The y of an element: their lower and higher bits, and what they are of their primes.
#[derive(Clone, Copy)]
struct Digits<const L: usize> {
    low: [u64; L],
    high: [u64; L],
    share: [f64; L],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::residue::primes;
    use num_bigint::BigUint;
    use proptest::prelude::*;

    /// Numbers below the product of so many primes, less the margin.
    fn numbers(moduli: &[Modulus], words: &[u64]) -> Vec<BigUint> {
        let product: BigUint = moduli.iter().map(|p| BigUint::from(p.value())).product();
        let most = &product - (&product >> 19u32);
        let random = words.chunks(4).map(|w| w.iter().fold(BigUint::ZERO, |x, &word| (x << 64u32) + word));
        random.chain([BigUint::ZERO, BigUint::from(1u32), &most - 1u32]).map(|x| x % &most).collect()
    }

    /// What lies side by side; folded numbers need not be below the modulus.
    fn element<const L: usize>(moduli: &[Modulus], bundle: &[BigUint], residues: usize) -> [u64; L] {
        std::array::from_fn(|lane| {
            let (number, p) = (&bundle[lane / residues], moduli[lane % residues]);
            let residue = p.residue_of(number);
            if residue < 1 << 40 { residue + p.value() } else { residue }
        })
    }

    fn check_products<const L: usize>(skipped: usize, from: usize, words: &[u64]) {
        let moduli = primes(skipped + L).unwrap().split_off(skipped);
        let ring = Lanes::<L>::new(std::array::from_fn(|i| moduli[i]));
        let numbers = numbers(&moduli[..from], words);
        let bundles: Vec<&[BigUint]> = numbers.chunks_exact(L / from).collect();
        let x: Vec<[u64; L]> = bundles.iter().map(|bundle| element(&moduli, bundle, from)).collect();
        let y: Vec<[u64; L]> = bundles.iter().rev().map(|bundle| element(&moduli, bundle, from)).collect();
        for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
            let found = ring.products(level, &ring.unbundling(from, L), (&x, &y));
            for (number, found) in found.into_iter().enumerate() {
                let pairs = bundles.iter().zip(bundles.iter().rev());
                let sum: BigUint = pairs.map(|(x, y)| &x[number] * &y[number]).sum();
                assert_eq!(found, std::array::from_fn(|i| moduli[i].residue_of(&sum)), "{from} of {L}, {level:?}");
            }
        }
    }

    fn check<const L: usize>(skipped: usize, from: usize, to: usize, words: &[u64]) {
        let moduli = primes(skipped + L).unwrap().split_off(skipped);
        let ring = Lanes::<L>::new(std::array::from_fn(|i| moduli[i]));
        assert!(ring.bundle(from).is_some());
        let numbers = numbers(&moduli[..from], words);
        let bundles: Vec<&[BigUint]> = numbers.chunks_exact(L / from).collect();
        let elements: Vec<[u64; L]> = bundles.iter().map(|bundle| element(&moduli, bundle, from)).collect();
        let way = ring.unbundling(from, to);
        for (level, part) in [Level::Baseline, Level::Avx2, Level::Avx512]
            .into_iter()
            .flat_map(|level| (0..to / from).map(move |p| (level, p)))
        {
            let mut found = vec![[0; L]; elements.len()];
            ring.unbundle(level, &way, part, &elements, &mut found);
            for (found, bundle) in found.iter().zip(&bundles) {
                let bundle = &bundle[part * (L / to)..];
                for lane in 0..L {
                    let (number, p) = (&bundle[lane / to], moduli[lane % to]);
                    assert_eq!(p.residue(found[lane]), p.residue_of(number), "{from} to {to} of {L}, {level:?}");
                    assert!(found[lane] < (1 << BITS) + (1 << 41));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn numbers_have_the_residues_they_have(words in prop::collection::vec(any::<u64>(), 32 * 4), skipped in 0usize..70) {
            for (from, to) in [(1, 2), (1, 4), (1, 8), (2, 4), (2, 8), (4, 8)] {
                check::<8>(skipped, from, to, &words);
                if to <= 4 {
                    check::<4>(skipped, from, to, &words);
                }
            }
            for from in [1, 2, 4] {
                check_products::<8>(skipped, from, &words);
                if from < 4 {
                    check_products::<4>(skipped, from, &words);
                }
            }
        }
    }

    #[test]
    fn lanes_that_repeat_a_modulus_are_left_out() {
        let p = primes(8).unwrap();
        for (points, residues) in [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (8, 8)] {
            let ring = Lanes::<8>::new(std::array::from_fn(|i| p[i.min(points - 1)]));
            let (bundles, found) = ring.without_repeats();
            assert_eq!(found, residues);
            for place in 0..8 / residues {
                let number = ring.number(residues, place, std::array::from_fn(|lane| lane as u64));
                for lane in 0..8 {
                    let of = number[lane] as usize;
                    assert_eq!((bundles.moduli()[of], of / residues), (ring.moduli()[lane], place));
                }
            }
        }
    }

    #[test]
    fn moduli_that_are_the_same_small_or_far_apart_make_no_bundles() {
        let p = primes(400).unwrap();
        let ring = |of: [usize; 8]| Lanes::<8>::new(of.map(|i| p[i]));
        let bundles = |of| [1, 2, 4, 8].map(|residues| ring(of).bundle(residues).is_some());
        assert_eq!(bundles([0, 1, 2, 3, 4, 5, 6, 7]), [true, true, true, false]);
        assert_eq!(bundles([0, 1, 2, 3, 4, 5, 5, 5]), [true, true, true, false]);
        assert_eq!(bundles([0, 1, 2, 2, 2, 2, 2, 2]), [true, true, false, false]);
        assert_eq!(bundles([0, 0, 0, 0, 0, 0, 0, 0]), [true, false, false, false]);
        assert_eq!(bundles([1, 0, 2, 3, 4, 5, 6, 7]), [false, false, false, false]);
        assert_eq!(bundles([0, 1, 2, 3, 4, 5, 6, 399]), [true, true, false, false]);
        assert!(Lanes::<8>::new([Modulus::new(7).unwrap(); 8]).bundle(1).is_none());
    }
}
