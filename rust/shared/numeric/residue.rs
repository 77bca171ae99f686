//! Residues: the primes counts are taken modulo, multiplication modulo a word, and the Chinese remainder theorem.
//!
//! Transfer kernels add and almost never multiply. A modulus `M = 2^55 - c` with `c < 2^32` makes additions free of
//! comparisons: since `2^55 = c (mod M)`,
//!
//!   fold(x) = (x mod 2^55) + c * floor(x / 2^55)  is congruent to x and below 2^55 + 2^41,
//!
//! so 511 folded numbers can be added in a 64-bit word before the next fold. A fold is four cheap instructions on any
//! vector unit, down to SSE2 and NEON. Any modulus m up to 2^32 fits too, through its largest multiple below 2^55.
//!
//! Source: A. Menezes, P. van Oorschot, S. Vanstone (1996), Handbook of Applied Cryptography, algorithm 14.47 (moduli b^t - c),
//! stopped before its last step.

use super::big;
use crate::monitor::Progress;
use crate::{Error, Result, memory};
use num_bigint::{BigInt, BigUint, Sign};

/// Bits of a folded residue.
pub const BITS: u32 = 55;
/// How many folded numbers may be added before the sum must be folded again: 511 (2^55 + 2^41) < 2^64.
pub const HEADROOM: u64 = 511;
const MASK: u64 = (1 << BITS) - 1;
/// Bits of a short prime: the multiplier of 52 bits takes no more.
pub const SHORT_BITS: u32 = 52;

/// `2^55 - c` for the 64 largest primes below `2^55`; a test proves them prime and complete.
const FIRST_PRIMES: [u32; 64] = [
    55, 67, 99, 127, 147, 169, 171, 199, 207, 267, 279, 321, 339, 355, 381, 411, 487, 511, 517, 529, 579, 721, 771,
    789, 831, 915, 955, 1021, 1039, 1125, 1189, 1215, 1257, 1315, 1317, 1371, 1419, 1435, 1497, 1531, 1555, 1569, 1585,
    1587, 1629, 1645, 1669, 1677, 1707, 1765, 1819, 1837, 1917, 1945, 2019, 2041, 2061, 2079, 2085, 2121, 2127, 2191,
    2211, 2227,
];

/// A modulus that residues can be folded by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modulus {
    value: u64,
    excess: u32,
}

impl Modulus {
    /// Takes any modulus from 2 to `2^32`, and any above of which a multiple lies within `2^32` below `2^55`.
    ///
    /// # Errors
    /// [`Error::Domain`] for any other value; [`primes`] lists moduli that always serve.
    pub fn new(value: u64) -> Result<Self> {
        let excess = if (2..1 << BITS).contains(&value) { (1u64 << BITS) % value } else { u64::MAX };
        match u32::try_from(excess) {
            Ok(excess) => Ok(Self { value, excess }),
            Err(_) => Err(Error::domain("modulus", value, "from 2 to 2**32, or a prime of `primes(count)`")),
        }
    }

    /// The modulus itself.
    pub fn value(self) -> u64 {
        self.value
    }

    /// What `2^55` is congruent to.
    pub fn excess(self) -> u32 {
        self.excess
    }

    /// A number below `2^55 + 2^41` congruent to `x`.
    #[inline(always)]
    pub fn fold(self, x: u64) -> u64 {
        (x & MASK) + (x >> BITS) * u64::from(self.excess)
    }

    /// The product of two folded numbers, folded.
    #[inline(always)]
    pub fn mul(self, a: u64, b: u64) -> u64 {
        self.fold_wide(u128::from(a) * u128::from(b))
    }

    /// A folded number congruent to `x`, which is below `2^127`.
    #[inline(always)]
    pub fn fold_wide(self, mut x: u128) -> u64 {
        let excess = u128::from(self.excess);
        let mask = u128::from(MASK);
        x = (x & mask) + (x >> BITS) * excess; // below 2^104 + 2^55
        x = (x & mask) + (x >> BITS) * excess; // below 2^82
        x = (x & mask) + (x >> BITS) * excess; // below 2^60
        self.fold(x as u64)
    }

    /// The residue in `0..modulus` of any 64-bit number.
    #[inline]
    pub fn residue(self, x: u64) -> u64 {
        x % self.value
    }

    /// `base^exponent`, folded.
    pub fn pow(self, base: u64, mut exponent: u64) -> u64 {
        let (mut square, mut power) = (self.residue(base), self.residue(1));
        while exponent > 0 {
            if exponent & 1 == 1 {
                power = self.mul(power, square);
            }
            square = self.mul(square, square);
            exponent >>= 1;
        }
        self.residue(power)
    }

    /// The inverse of `x`, for a prime modulus and `x` not divisible by it.
    pub fn inverse(self, x: u64) -> u64 {
        self.pow(x, self.value - 2)
    }

    /// The product of primes, all or all but the one at a place.
    pub fn product_of(self, primes: &[Self], without: Option<usize>) -> u64 {
        let factors = primes.iter().enumerate().filter(|(i, _)| Some(*i) != without);
        self.residue(factors.fold(1, |product, (_, prime)| self.mul(product, self.residue(prime.value()))))
    }

    /// The residue of a big integer.
    pub fn residue_of(self, x: &BigUint) -> u64 {
        x.iter_u64_digits()
            .rev()
            .fold(0, |high, digit| (((u128::from(high) << 64) | u128::from(digit)) % u128::from(self.value)) as u64)
    }

    /// The residue of a big integer of either sign.
    pub fn residue_of_signed(self, x: &BigInt) -> u64 {
        match self.residue_of(x.magnitude()) {
            magnitude if x.sign() == Sign::Minus && magnitude > 0 => self.value - magnitude,
            magnitude => magnitude,
        }
    }
}

/// The `count` largest primes below `2^55`, in falling order: the moduli every exact count is taken by.
///
/// The first 64 are stored; more are found by a deterministic primality test, about 10 microseconds each.
///
/// # Errors
/// [`Error::Domain`] if so many primes do not exist within `2^32` of `2^55`.
pub fn primes(count: usize) -> Result<Vec<Modulus>> {
    stoppable_primes(count, &Progress::default())
}

/// The same, stopped when the progress says so.
///
/// # Errors
/// Also [`Error::Interrupted`], and [`Error::TooLarge`] without memory for so many.
pub fn stoppable_primes(count: usize, progress: &Progress) -> Result<Vec<Modulus>> {
    if count > MOST_PRIMES {
        return Err(too_many_primes(count));
    }
    let mut found = memory::reserved(count as u128, "a list of primes")?;
    let stored = FIRST_PRIMES.iter().take(count);
    found.extend(stored.map(|&excess| Modulus { value: (1 << BITS) - u64::from(excess), excess }));
    let mut excess = FIRST_PRIMES[FIRST_PRIMES.len() - 1];
    while found.len() < count {
        excess = excess.checked_add(2).ok_or_else(|| too_many_primes(count))?;
        if excess & 0x1FF == 1 {
            progress.check()?;
        }
        let value = (1 << BITS) - u64::from(excess);
        if is_prime(value) {
            found.push(Modulus { value, excess });
        }
    }
    Ok(found)
}

/// The `count` largest primes below `2^52`, in falling order, for kernels with one prime at a time
/// ([`neighbors`](super::neighbors)).
///
/// # Errors
/// [`Error::Domain`] if so many primes do not exist within `2^20` of `2^52`.
pub fn short_primes(count: usize) -> Result<Vec<Modulus>> {
    let odd = (1..1u64 << 20).step_by(2).map(|excess| (1 << SHORT_BITS) - excess);
    let found: Vec<Modulus> = odd.filter(|&n| is_prime(n)).take(count).map(Modulus::new).collect::<Result<_>>()?;
    if found.len() < count {
        return Err(Error::domain("count", count, "a number of primes that exist within 2**20 of 2**52"));
    }
    Ok(found)
}

/// Bits that the primes of [`short_primes`] are enough for: there are 29,098.
pub const MOST_SHORT_BITS: f64 = 29_000.0 * 51.999;

/// More primes than there are within `2^32` of `2^55`: on average one number in `55 ln 2 = 38.1` is prime.
const MOST_PRIMES: usize = (1 << 32) / 38;

fn too_many_primes(count: usize) -> Error {
    Error::domain("count", count, "a number of primes that exist within 2**32 of 2**55")
}

/// The `count` largest primes below `2^55` that are 1 modulo `order`, in falling order: their fields have primitive roots of
/// unity of that order.
///
/// # Errors
/// [`Error::Domain`] if so many do not exist within `2^32` of `2^55`; otherwise as [`stoppable_primes`].
pub fn primes_with_roots(count: usize, order: u64, progress: &Progress) -> Result<Vec<Modulus>> {
    if order <= 1 {
        return stoppable_primes(count, progress);
    }
    let refused = || {
        Error::domain(
            "order",
            order,
            "so small that there are enough primes with roots of unity of this order within 2**32 of 2**55",
        )
    };
    let step = if order.is_multiple_of(2) { order } else { 2 * order };
    if count > MOST_PRIMES {
        return Err(refused());
    }
    let mut found = memory::reserved(count as u128, "a list of primes")?;
    let mut value = ((1u64 << BITS) - 2) / step * step + 1;
    while found.len() < count {
        let excess = u32::try_from((1u64 << BITS) - value).map_err(|_| refused())?;
        progress.check()?;
        if is_prime(value) {
            found.push(Modulus { value, excess });
        }
        value = value.checked_sub(step).ok_or_else(refused)?;
    }
    Ok(found)
}

/// Whether `n` is prime: Miller-Rabin to seven bases, which decides every 64-bit number (Sinclair 2011).
pub fn is_prime(n: u64) -> bool {
    for p in [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37] {
        if n.is_multiple_of(p) {
            return n == p;
        }
    }
    if n < 41 * 41 {
        return n > 1;
    }
    let field = Montgomery::new(n);
    let (one, minus_one) = (field.enter(1), field.enter(n - 1));
    let twos = (n - 1).trailing_zeros();
    [2, 325, 9375, 28178, 450_775, 9_780_504, 1_795_265_022].into_iter().all(|base| {
        if base % n == 0 {
            return true;
        }
        let mut x = field.pow(field.enter(base % n), (n - 1) >> twos);
        if x == one || x == minus_one {
            return true;
        }
        (1..twos).any(|_| {
            x = field.mul(x, x);
            x == minus_one
        })
    })
}

/// Multiplication modulo any odd word in Montgomery's form `a -> a 2^64 mod n`.
///
/// Source: P. Montgomery (1985), Modular multiplication without trial division.
#[derive(Clone, Copy, Debug)]
pub struct Montgomery {
    n: u64,
    negative_inverse: u64,
    square: u64,
}

impl Montgomery {
    /// The form for an odd `n > 1`.
    pub fn new(n: u64) -> Self {
        debug_assert!(n % 2 == 1 && n > 1);
        let mut inverse = n; // correct to 3 bits; each step doubles them
        for _ in 0..5 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(n.wrapping_mul(inverse)));
        }
        let r = (u128::from(u64::MAX) % u128::from(n)) + 1;
        Self { n, negative_inverse: inverse.wrapping_neg(), square: ((r * r) % u128::from(n)) as u64 }
    }

    /// The modulus.
    pub fn modulus(&self) -> u64 {
        self.n
    }

    /// The product `a b / 2^64 mod n` of two forms below `n`.
    #[inline(always)]
    pub fn mul(&self, a: u64, b: u64) -> u64 {
        self.reduce(u128::from(a) * u128::from(b))
    }

    /// The form `x / 2^64 mod n` of a sum of products, below `n 2^64`.
    #[inline(always)]
    pub fn reduce(&self, x: u128) -> u64 {
        let quotient = (x as u64).wrapping_mul(self.negative_inverse);
        let (sum, carry) = x.overflowing_add(u128::from(quotient) * u128::from(self.n));
        let high = (sum >> 64) as u64;
        if carry || high >= self.n { high.wrapping_sub(self.n) } else { high }
    }

    /// The sum of two forms, for a modulus below 2^63.
    #[inline(always)]
    pub fn sum(&self, a: u64, b: u64) -> u64 {
        let sum = a + b;
        if sum >= self.n { sum - self.n } else { sum }
    }

    /// The form of `x`.
    #[inline]
    pub fn enter(&self, x: u64) -> u64 {
        self.mul(x % self.n, self.square)
    }

    /// The number whose form is `a`.
    #[inline]
    pub fn leave(&self, a: u64) -> u64 {
        self.mul(a, 1)
    }

    /// The form of the power.
    pub fn pow(&self, mut square: u64, mut exponent: u64) -> u64 {
        let mut power = self.enter(1);
        while exponent > 0 {
            if exponent & 1 == 1 {
                power = self.mul(power, square);
            }
            square = self.mul(square, square);
            exponent >>= 1;
        }
        power
    }
}

/// The number below the product of distinct primes that has the given residues (Chinese remainder theorem).
///
/// Many moduli close to each other, such as those of [`primes`]: `x = sum c_i M/p_i mod M` with `c_i = r_i (M/p_i)^-1 mod p_i`,
/// summed by halves; `M/p_i mod p_i` is a product of differences `p_j - p_i`, two of which fit a word: k^2/2 products of
/// words for k primes. Others: Garner's mixed radix.
///
/// # Errors
/// [`Error::Domain`] if a modulus is even, repeated, or shares a factor with another.
pub fn combine(residues: &[(u64, u64)]) -> Result<BigUint> {
    stoppable_combine(residues, &Progress::default())
}

/// The same, stopped when the progress says so.
///
/// # Errors
/// Also [`Error::Interrupted`].
pub fn stoppable_combine(residues: &[(u64, u64)], progress: &Progress) -> Result<BigUint> {
    let least = residues.iter().map(|&(p, _)| p).min().unwrap_or(0);
    let most = residues.iter().map(|&(p, _)| p).max().unwrap_or(0);
    let odd = residues.iter().all(|(p, _)| p % 2 == 1);
    if residues.len() >= MANY && odd && least >> 33 > 0 && (most - least) >> 32 == 0 {
        return combine_close(residues, progress);
    }
    combine_any(residues, progress)
}

/// From so many moduli on their differences are used.
const MANY: usize = 32;
/// Moduli worked on side by side, so that the multiplier is always busy.
const SIDE_BY_SIDE: usize = 4;

/// The same for odd moduli above `2^33` that lie within `2^32`.
fn combine_close(residues: &[(u64, u64)], progress: &Progress) -> Result<BigUint> {
    let moduli: Vec<u64> = residues.iter().map(|&(p, _)| p).collect();
    let mut coefficients = Vec::with_capacity(residues.len());
    for group in residues.chunks(SIDE_BY_SIDE) {
        progress.check()?;
        let own: [u64; SIDE_BY_SIDE] = std::array::from_fn(|l| group[l.min(group.len() - 1)].0);
        let fields = own.map(Montgomery::new);
        let mut products: [u64; SIDE_BY_SIDE] = std::array::from_fn(|l| fields[l].enter(1));
        let mut factors = 0;
        let difference = |p: u64, q: u64| if p == q { 1 } else { p.abs_diff(q) };
        for pair in moduli.chunks(2) {
            let other = |l: usize| pair.get(1).map_or(1, |&q| difference(own[l], q));
            for l in 0..SIDE_BY_SIDE {
                products[l] = fields[l].mul(products[l], difference(own[l], pair[0]) * other(l));
            }
            factors += 1;
        }
        for (l, &(p, r)) in group.iter().enumerate() {
            let field = &fields[l];
            let same = moduli.iter().filter(|&&q| q == p).count();
            let smaller = moduli.iter().filter(|&&q| q < p).count();
            // Each product lost a factor 2^64: `enter` gives one back.
            let product = field.mul(products[l], field.pow(field.enter(field.enter(1)), factors));
            let inverse = inverse_modulo(field.leave(product), p)
                .filter(|_| same == 1)
                .ok_or_else(|| Error::domain("residues", format!("modulus {p}"), "pairs with coprime moduli"))?;
            let c = field.leave(field.mul(field.enter(r), field.enter(inverse)));
            coefficients.push(if smaller % 2 == 1 && c > 0 { p - c } else { c });
        }
    }
    let (sum, product) = weighted_sum(&coefficients, &moduli, progress)?;
    Ok(sum % product)
}

/// `sum of c_i M/p_i` and the product `M`, by halves.
fn weighted_sum(coefficients: &[u64], moduli: &[u64], progress: &Progress) -> Result<(BigUint, BigUint)> {
    if let (&[c], &[p]) = (coefficients, moduli) {
        return Ok((BigUint::from(c), BigUint::from(p)));
    }
    let half = moduli.len() / 2;
    let (low, low_product) = weighted_sum(&coefficients[..half], &moduli[..half], progress)?;
    let (high, high_product) = weighted_sum(&coefficients[half..], &moduli[half..], progress)?;
    progress.check()?;
    let sum = big::product(&low, &high_product, progress)? + big::product(&high, &low_product, progress)?;
    Ok((sum, big::product(&low_product, &high_product, progress)?))
}

/// Garner's mixed radix: digits `d_i` with `x = d_0 + d_1 p_0 + d_2 p_0 p_1 + ...`, found by word operations, then one
/// evaluation by halves. Cost: k^2/2 multiplications for k primes.
fn combine_any(residues: &[(u64, u64)], progress: &Progress) -> Result<BigUint> {
    let mut digits: Vec<u64> = Vec::with_capacity(residues.len());
    for (i, &(p, r)) in residues.iter().enumerate() {
        let refuse = |requirement| Error::domain("residues", format!("modulus {p}"), requirement);
        if p < 3 || p % 2 == 0 {
            return Err(refuse("pairs with an odd modulus"));
        }
        progress.check()?;
        let field = Montgomery::new(p);
        // Horner over the digits found so far, and the product of their primes, both modulo p.
        let (mut value, mut product) = (0, field.enter(1));
        for (&(q, _), &digit) in residues[..i].iter().zip(&digits) {
            let term = field.mul(field.enter(digit), product);
            value = if value >= p - term { value - (p - term) } else { value + term };
            product = field.mul(product, field.enter(q));
        }
        let inverse = inverse_modulo(field.leave(product), p).ok_or_else(|| refuse("pairs with coprime moduli"))?;
        let r = field.enter(r % p);
        let difference = if r >= value { r - value } else { r + (p - value) };
        digits.push(field.leave(field.mul(difference, field.enter(inverse))));
    }
    let moduli: Vec<u64> = residues.iter().map(|&(p, _)| p).collect();
    Ok(evaluate_mixed_radix(&digits, &moduli, progress)?.0)
}

/// The value of mixed-radix digits and the product of their radices, by halves.
fn evaluate_mixed_radix(digits: &[u64], moduli: &[u64], progress: &Progress) -> Result<(BigUint, BigUint)> {
    match digits.len() {
        0 => Ok((BigUint::ZERO, BigUint::from(1u32))),
        1 => Ok((BigUint::from(digits[0]), BigUint::from(moduli[0]))),
        n => {
            let (low, low_product) = evaluate_mixed_radix(&digits[..n / 2], &moduli[..n / 2], progress)?;
            let (high, high_product) = evaluate_mixed_radix(&digits[n / 2..], &moduli[n / 2..], progress)?;
            Ok((
                low + big::product(&high, &low_product, progress)?,
                big::product(&low_product, &high_product, progress)?,
            ))
        }
    }
}

/// The inverse of `a` modulo `n`, if they are coprime (extended Euclid; the size of a coefficient stays below `n`).
pub fn inverse_modulo(a: u64, n: u64) -> Option<u64> {
    let (mut r0, mut r1) = (n, a % n);
    // The coefficients alternate in sign: only their sizes are kept.
    let (mut t0, mut t1, mut negative) = (0u64, 1u64, false);
    while r1 != 0 {
        let q = r0 / r1;
        (r0, r1) = (r1, r0 - q * r1);
        (t0, t1) = (t1, t0.wrapping_add(q.wrapping_mul(t1)));
        negative = !negative;
    }
    (r0 == 1).then_some(if negative { t0 } else { n - t0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_stored_primes_are_all_the_largest_below_2_to_the_55() {
        let found: Vec<u32> = (1..=2227).filter(|&c| is_prime((1 << BITS) - u64::from(c))).collect();
        assert_eq!(found, FIRST_PRIMES);
    }

    #[test]
    fn more_primes_than_stored_go_on_downwards() {
        let list = primes(80).unwrap();
        assert_eq!(list.len(), 80);
        assert!(list.windows(2).all(|pair| pair[0].value > pair[1].value && is_prime(pair[1].value)));
    }

    #[test]
    fn strong_pseudoprimes_are_told_from_primes() {
        for composite in [2047u64, 3_215_031_751, 3_825_123_056_546_413_051, 18_446_744_073_709_551_615] {
            assert!(!is_prime(composite), "{composite}");
        }
        for prime in [2u64, 3, 41, 1681 + 12, 2_147_483_647, 18_446_744_073_709_551_557] {
            assert!(is_prime(prime), "{prime}");
        }
        let sieve = (2u64..4000).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0));
        assert_eq!(sieve.collect::<Vec<_>>(), (0..4000).filter(|&n| is_prime(n)).collect::<Vec<_>>());
    }

    #[test]
    fn moduli_out_of_reach_are_refused_by_name() {
        for value in [0, 1, 1 << 55, (1 << 54) + 1, u64::MAX] {
            assert!(matches!(Modulus::new(value), Err(Error::Domain { name: "modulus", .. })), "{value}");
        }
        assert!(Modulus::new(1 << 32).is_ok() && Modulus::new(1_000_000_007).is_ok() && Modulus::new(2).is_ok());
    }

    #[test]
    fn primes_with_roots_are_the_largest_there_are() {
        let order = 2000;
        let list = primes_with_roots(20, order, &Progress::default()).unwrap();
        let every = (0..).map(|i| (1u64 << BITS) - 1 - i).filter(|x| x % order == 1 && is_prime(*x)).take(20);
        assert_eq!(list.iter().map(|p| p.value).collect::<Vec<_>>(), every.collect::<Vec<_>>());
        assert!(primes_with_roots(20, 1 << 40, &Progress::default()).is_err());
        assert_eq!(primes_with_roots(70, 1, &Progress::default()).unwrap(), primes(70).unwrap());
    }

    #[test]
    fn a_modulus_given_twice_among_many_is_refused() {
        let mut pairs: Vec<_> = primes(50).unwrap().iter().map(|p| (p.value, 5)).collect();
        assert_eq!(combine(&pairs), Ok(BigUint::from(5u32)));
        pairs[20].0 = pairs[40].0;
        assert!(combine(&pairs).is_err());
    }

    #[test]
    fn combining_refuses_moduli_that_share_a_factor() {
        assert!(combine(&[(15, 1), (21, 1)]).is_err());
        assert!(combine(&[(7, 1), (7, 1)]).is_err());
        assert!(combine(&[(8, 1)]).is_err());
        assert_eq!(combine(&[]), Ok(BigUint::ZERO));
    }

    proptest! {
        #[test]
        fn folding_keeps_the_residue_and_its_bound(x: u64, m in 2u64..=1 << 32) {
            let m = Modulus::new(m).unwrap();
            prop_assert!(m.fold(x) < (1 << 55) + (1 << 41));
            prop_assert_eq!(m.fold(x) % m.value, x % m.value);
        }

        #[test]
        fn products_agree_with_wide_arithmetic(a in 0u64..(1 << 55) + (1 << 41), b in 0u64..(1 << 55) + (1 << 41), m in 2u64..=1 << 32) {
            for m in [Modulus::new(m).unwrap(), primes(1).unwrap()[0]] {
                prop_assert_eq!(u128::from(m.mul(a, b) % m.value), u128::from(a) * u128::from(b) % u128::from(m.value));
                prop_assert!(m.mul(a, b) < (1 << 55) + (1 << 41));
            }
        }

        #[test]
        fn montgomery_products_agree_with_wide_arithmetic(n in 1u64.., a: u64, b: u64) {
            let n = (n | 1).max(3);
            let field = Montgomery::new(n);
            let product = field.leave(field.mul(field.enter(a), field.enter(b)));
            prop_assert_eq!(u128::from(product), u128::from(a) * u128::from(b) % u128::from(n));
        }

        #[test]
        fn numbers_come_back_from_their_residues(digits in prop::collection::vec(any::<u32>(), 0..200)) {
            let x = BigUint::new(digits);
            let count = (x.bits() / 54 + 1) as usize;
            let residues: Vec<_> = primes(count).unwrap().iter().map(|p| (p.value, p.residue_of(&x))).collect();
            prop_assert_eq!(combine(&residues).unwrap(), x.clone());
            prop_assert_eq!(combine_any(&residues, &Progress::default()).unwrap(), x);
        }
    }
}
