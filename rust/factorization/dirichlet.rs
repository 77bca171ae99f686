//! Dirichlet laws of the components of a factor, as gamma laws given their sum.
//!
//! Of Dirichlet(A_1..A_V) with A_0 = sum_v A_v: the mean is A_v / A_0, E ln entry = psi(A_v) - psi(A_0), and
//!   KL(Dirichlet(A) || Dirichlet(a)) = sum_v KL(Gamma(A_v, 1) || Gamma(a_v, 1)) - KL(Gamma(A_0, 1) || Gamma(a_0, 1)).
//! So such laws are kept as [`Gammas`] of shapes A_v and rates A_0, of which the means are right as they are, and what differs is
//! one number for each component.
//! Source: independent gammas of one rate are a Dirichlet vector times their sum, which is independent of it.

use super::factor_matrix::FactorMatrix;
use super::gammas::{Gammas, Prior, divergence};
use crate::distributions::RandomSource;
use crate::numeric::elementary::exp;
use crate::numeric::special::gamma::digamma;
use crate::stream::Xoshiro;

/// Sets the rates of Dirichlet laws, which are sums of their shapes.
pub fn set_rates(laws: &mut Gammas) {
    let sums = laws.shape.sums();
    laws.rate.padded_mut().chunks_exact_mut(sums.len().max(1)).for_each(|row| row.copy_from_slice(&sums));
}

/// Turns exp E ln of gamma laws of these rates into that of Dirichlet laws, given the digammas of the shapes.
pub fn correct(laws: &Gammas, digammas: &FactorMatrix, geometric: &mut FactorMatrix) {
    let sums = laws.shape.sums();
    let ratio = |&sum: &f64| if sum > 0.0 { (sum / exp(digamma(sum)), digamma(sum)) } else { (0.0, 0.0) };
    let ratios: Vec<_> = sums.iter().map(ratio).collect();
    let width = ratios.len().max(1);
    let rows = geometric.padded_mut().chunks_exact_mut(width).zip(digammas.padded().chunks_exact(width));
    for (row, own) in rows {
        for ((x, &psi), &(ratio, of_sum)) in row.iter_mut().zip(own).zip(&ratios) {
            // Of a sum below 1/745 the ratio is none.
            *x = if ratio.is_finite() { *x * ratio } else { exp(psi - of_sum) };
        }
    }
}

/// Makes draws of gamma laws draws of Dirichlet laws. Of a component all of whose draws are below the least double, which has no
/// counts then, they are redrawn given that: their logarithms are ln U / shape apart from one number, for U uniform.
pub fn normalize(draws: &mut FactorMatrix, prior: &Prior, rng: &mut Xoshiro) {
    let (rows, width, sums) = (draws.rows, draws.width, draws.sums());
    for k in (0..width).filter(|&k| sums[k] == 0.0) {
        let logs: Vec<_> = (0..rows).map(|row| rng.open_uniform().ln() / prior.at(row * width + k).0).collect();
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        logs.iter().enumerate().for_each(|(row, log)| draws.row_mut(row)[k] = (log - top).exp());
    }
    draws.normalize();
}

/// What the divergences of gamma laws have too much: those of the sums, one for each component.
pub fn divergence_of_sums(laws: &Gammas, prior: &Prior) -> f64 {
    let (rows, width) = (laws.shape.rows, laws.shape.width);
    let of_sum = |(k, &sum): (usize, &f64)| {
        let before = (0..rows).map(|row| prior.at(row * width + k).0).sum();
        divergence((sum, 1.0), digamma(sum), (before, 1.0))
    };
    laws.shape.sums()[..width].iter().enumerate().map(of_sum).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_entries_have_the_laws_of_a_beta_variable() {
        // Beta(2, 3) beside Beta(1, 1): E ln x = -13/12, KL = ln 12 - 13/12 + 2 (3/2 - 25/12), by E ln and the densities.
        let matrix = |values: [f64; 2]| FactorMatrix::packed(2, 1, &values).unwrap();
        let mut laws = Gammas { shape: matrix([2.0, 3.0]), rate: matrix([1.0, 1.0]) };
        set_rates(&mut laws);
        assert_eq!(laws.means().unpadded(), [0.4, 0.6]);
        let mut found = laws.expectations(crate::numeric::dispatch::level());
        correct(&laws, &found.digammas, &mut found.geometric);
        assert!((found.geometric.row(0)[0].ln() + 13.0 / 12.0).abs() < 1e-14);
        let prior = Prior { shape: vec![1.0], rate: vec![] };
        let entries: f64 = [(2.0, 0), (3.0, 1)]
            .into_iter()
            .map(|(shape, row)| divergence((shape, 1.0), found.digammas.row(row)[0], (1.0, 1.0)))
            .sum();
        let exact = 12f64.ln() - 13.0 / 12.0 + 2.0 * (1.5 - 25.0 / 12.0);
        assert!((entries - divergence_of_sums(&laws, &prior) - exact).abs() < 1e-13);
    }
}
