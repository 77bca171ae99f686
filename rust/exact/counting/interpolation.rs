//! Interpolation of a polynomial modulo a prime.
//!
//! Sources: D. Knuth (1997), The Art of Computer Programming 2, 3rd ed., section 4.6.4 (Newton's form); P. Montgomery (1987), Speeding
//! the Pollard and elliptic curve methods of factorization (many inverses by one).

use crate::numeric::residue::{Modulus, Montgomery};

/// The coefficients modulo `prime` of the polynomial with these values at as many different points, all residues.
///
/// Newton's form: divided differences, then Horner. Cost: 3 n^2 multiplications and n inverses: those of all differences of points at one
/// distance in the list follow from that of their product.
pub fn interpolate(prime: Modulus, points: &[u64], values: &[u64]) -> Vec<u64> {
    let p = prime.value();
    let field = Montgomery::new(p);
    let subtract = |a: u64, b: u64| if a >= b { a - b } else { a + p - b };
    let points: Vec<u64> = points.iter().map(|&point| field.enter(point)).collect();
    let mut differences: Vec<u64> = values.iter().map(|&value| field.enter(value)).collect();
    let n = differences.len();
    let mut before = vec![0; n];
    for order in 1..n {
        let apart = |i: usize| subtract(points[i], points[i - order]);
        let mut product = field.enter(1);
        for i in order..n {
            before[i] = product;
            product = field.mul(product, apart(i));
        }
        let mut inverse = field.enter(prime.inverse(field.leave(product)));
        for i in (order..n).rev() {
            let one = field.mul(inverse, before[i]);
            inverse = field.mul(inverse, apart(i));
            differences[i] = field.mul(subtract(differences[i], differences[i - 1]), one);
        }
    }
    // c(x) = d_0 + (x - x_0) (d_1 + (x - x_1) (d_2 + ...)), from the inside out.
    let mut coefficients = vec![0; n];
    for (&at, &difference) in points.iter().zip(&differences).rev() {
        for k in (1..n).rev() {
            coefficients[k] = subtract(coefficients[k - 1], field.mul(at, coefficients[k]));
        }
        coefficients[0] = subtract(difference, field.mul(at, coefficients[0]));
    }
    coefficients.into_iter().map(|c| field.leave(c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::residue::primes;

    #[test]
    fn interpolation_finds_the_polynomial_its_values_came_from() {
        let prime = primes(1).unwrap()[0];
        let coefficients = [1, 5, 0, prime.value() - 3, 17];
        let at = |x: u64| coefficients.iter().rev().fold(0, |sum, &c| prime.residue(prime.mul(sum, x) + c));
        for points in [(0..9).collect::<Vec<u64>>(), vec![7, 1, 1 << 40, 3, 0, prime.value() - 1]] {
            let values: Vec<u64> = points.iter().map(|&x| at(x)).collect();
            let zeros = vec![0; points.len() - coefficients.len()];
            assert_eq!(interpolate(prime, &points, &values), [&coefficients[..], &zeros].concat());
        }
    }
}
