//! Interpolation of a polynomial with constant term one, modulo a prime.
//!
//! Source: D. Knuth (1997), The Art of Computer Programming 2, 3rd ed., section 4.6.4 (Newton's form).

use crate::numeric::residue::{Modulus, Montgomery};

/// The coefficients modulo `prime` of the polynomial that is 1 at 0 and has the given values at 1, 2, ...
///
/// Newton's form: divided differences, then Horner. Cost: n^2 multiplications.
pub(super) fn interpolate(prime: Modulus, values: &[u64]) -> Vec<u64> {
    let p = prime.value();
    let field = Montgomery::new(p);
    let subtract = |a: u64, b: u64| if a >= b { a - b } else { a + p - b };
    let mut differences: Vec<u64> = std::iter::once(&1).chain(values).map(|&value| field.enter(value)).collect();
    let n = differences.len();
    for order in 1..n {
        let inverse = field.enter(prime.inverse(order as u64));
        for i in (order..n).rev() {
            differences[i] = field.mul(subtract(differences[i], differences[i - 1]), inverse);
        }
    }
    // c(x) = d_0 + (x - 0) (d_1 + (x - 1) (d_2 + ...)), from the inside out.
    let mut coefficients = vec![0; n];
    for (node, &difference) in differences.iter().enumerate().rev() {
        let at = field.enter(node as u64);
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
        let values: Vec<u64> = (1..9).map(at).collect();
        assert_eq!(interpolate(prime, &values), [&coefficients[..], &[0; 4]].concat());
        assert_eq!(interpolate(prime, &[]), [1]);
    }
}
