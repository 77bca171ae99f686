//! The independence polynomial: evaluations at 1, 2, ..., interpolated modulo each prime, recombined and verified.
//!
//! Every point is one lane of the vector unit, so a polynomial costs as many lanes as it has coefficients, times primes.

use super::count::{bound, combine_verified, most_states, primes_beyond};
use super::{Engine, Problem};
use crate::Result;
use crate::counting::evaluation::{self, Options};
use crate::counting::transfer::Point;
use crate::monitor::Monitor;
use crate::numeric::residue::{Modulus, Montgomery};
use num_bigint::BigUint;
use rayon::prelude::*;

/// The numbers of independent sets of 0, 1, 2, ... vertices, up to the largest there are.
///
/// # Errors
/// As [`super::count_independent_sets`].
pub fn independence_polynomial(
    problem: &Problem,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Vec<BigUint>> {
    let engine = Engine::new(problem, most_states(options))?;
    let degree = largest_set_bound(problem, &engine);
    // Every coefficient is at most their sum.
    let primes = primes_beyond(bound(problem, 1.0, &engine, options, monitor)?)?;
    let activities = 1..=degree as u64;
    let points: Vec<Point> = primes
        .iter()
        .flat_map(|&modulus| activities.clone().map(move |activity| Point { modulus, activity }))
        .collect();
    let values = evaluation::residues(&engine, &problem.description(), &points, options, monitor)?;
    crate::parallel::run(options.threads, 0, monitor, |watch| {
        let by_prime: Vec<Vec<u64>> = primes
            .par_iter()
            .enumerate()
            .map(|(i, &prime)| watch.check().map(|()| interpolate(prime, &values[i * degree..(i + 1) * degree])))
            .collect::<Result<_>>()?;
        let coefficient = |k: usize| {
            let residues: Vec<u64> = by_prime.iter().map(|coefficients| coefficients[k]).collect();
            combine_verified(&primes, &residues)
        };
        let mut coefficients: Vec<BigUint> = (0..=degree).into_par_iter().map(coefficient).collect::<Result<_>>()?;
        let size = coefficients.iter().rposition(|c| *c != BigUint::ZERO).map_or(0, |last| last + 1);
        coefficients.truncate(size);
        Ok(coefficients)
    })
}

/// A size no independent set exceeds.
pub(super) fn largest_set_bound(problem: &Problem, engine: &Engine) -> usize {
    match engine {
        Engine::Frontier(frontier) => frontier.independence_bound(),
        _ => problem.largest_set_bound().unwrap_or_else(|| problem.vertices()),
    }
}

/// The coefficients modulo `prime` of the polynomial that is 1 at 0 and has the given values at 1, 2, ...
///
/// Newton's form: divided differences, then Horner. Cost: n^2 multiplications.
fn interpolate(prime: Modulus, values: &[u64]) -> Vec<u64> {
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
