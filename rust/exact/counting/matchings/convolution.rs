//! Sums over the ways to split a set in two: what matchings on either side of a bag make together.
//!
//! Tables over the subsets of s vertices, `f[A]` for the matchings that cover A of them on one side, `g[B]` on the other, are joined by
//!
//!   `h[S] = sum over A within S of f[A] g[S - A]`,
//!
//! since no vertex is covered twice. Halves by the highest vertex give h0 = f0 * g0, h1 = f0 * g1 + f1 * g0: three halves for four,
//! 3^s products in all. Products of folded numbers are below 2^111, so sums of 2^16 of them are kept unfolded until the end.
//!
//! Source: A. Björklund, T. Husfeldt, P. Kaski, M. Koivisto (2007), Fourier meets Möbius: fast subset convolution, section 1 (the
//! direct way, which is faster for the few vertices that two sides share).

use crate::numeric::residue::Modulus;

/// The most vertices that two tables may share: 2^16 products of residues below 2^55 sum to less than 2^127.
pub const MOST_SHARED: u32 = 16;
/// Vertices of the tables that are joined in registers.
const LEAF: usize = 3;

/// Joins two tables over the same vertices; `sums` is room for as many wide sums, and anything may be in it.
pub fn convolve(modulus: Modulus, f: &[u64], g: &[u64], sums: &mut Vec<u128>, out: &mut [u64]) {
    sums.clear();
    sums.resize(out.len(), 0);
    add(sums, f, g);
    out.iter_mut().zip(&*sums).for_each(|(out, &sum)| *out = modulus.fold_wide(sum));
}

fn add(sums: &mut [u128], f: &[u64], g: &[u64]) {
    match sums.len() {
        0..8 => {
            for set in 0..sums.len() {
                let mut part = set;
                loop {
                    sums[set] += u128::from(f[part]) * u128::from(g[set ^ part]);
                    if part == 0 {
                        break;
                    }
                    part = (part - 1) & set;
                }
            }
        }
        8 => {
            let (Ok(sums), Ok(f), Ok(g)) = (sums.try_into(), f.try_into(), g.try_into()) else { unreachable!() };
            add_leaf(sums, f, g);
        }
        len => {
            let (low, high) = sums.split_at_mut(len / 2);
            let ((f0, f1), (g0, g1)) = (f.split_at(len / 2), g.split_at(len / 2));
            add(low, f0, g0);
            add(high, f0, g1);
            add(high, f1, g0);
        }
    }
}

#[inline]
fn add_leaf(sums: &mut [u128; 1 << LEAF], f: &[u64; 1 << LEAF], g: &[u64; 1 << LEAF]) {
    // The bounds are constants: what is left of both loops are 27 products.
    for set in 0..1 << LEAF {
        for part in 0..1 << LEAF {
            if part & set == part {
                sums[set] += u128::from(f[part]) * u128::from(g[set ^ part]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::residue::primes;
    use crate::stream::Stream;

    #[test]
    fn tables_are_joined_as_the_polynomials_without_squares_that_they_are() {
        let modulus = primes(1).unwrap()[0];
        let mut words = Stream::new([3, 0], 0, 0, 0);
        for shared in 0..9 {
            let mut table = || (0..1 << shared).map(|_| words.word() % modulus.value()).collect::<Vec<u64>>();
            let (f, g) = (table(), table());
            let mut out = vec![0; 1 << shared];
            convolve(modulus, &f, &g, &mut vec![7; 3], &mut out);
            let mut expected = vec![0u128; 1 << shared];
            for (a, &x) in f.iter().enumerate() {
                for (b, &y) in g.iter().enumerate().filter(|(b, _)| a & b == 0) {
                    expected[a | b] += u128::from(x) * u128::from(y) % u128::from(modulus.value());
                }
            }
            let expected: Vec<u64> = expected.iter().map(|sum| (sum % u128::from(modulus.value())) as u64).collect();
            assert_eq!(out.iter().map(|&x| modulus.residue(x)).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn the_largest_sums_there_can_be_do_not_overflow() {
        let modulus = primes(1).unwrap()[0];
        // Folded numbers are below 2^55 + 2^41; a set of s vertices is a sum of 2^s products.
        let largest = (1u128 << 55) + (1 << 41) - 1;
        assert!((largest * largest).checked_mul(1 << MOST_SHARED).is_some_and(|sum| sum < 1 << 127));
        let table = vec![largest as u64; 1 << 10];
        let mut out = vec![0; 1 << 10];
        convolve(modulus, &table, &table, &mut Vec::new(), &mut out);
        let square = (largest * largest) % u128::from(modulus.value());
        let expected = (square << 10) % u128::from(modulus.value());
        assert_eq!(u128::from(modulus.residue(out[(1 << 10) - 1])), expected);
    }
}
