//! Draws of the number of tables of a Chinese restaurant: a sum of independent indicators, sum_{i<n} Bernoulli(r / (r + i)).
//!
//! Few customers are seated one by one. Of many, those a <= i < b are seated together, with chances between least = r / (r + b - 1)
//! and greatest = r / (r + a): Binomial(b - a, least) of them open a table whoever they are; each of the others is a candidate
//! with probability (greatest - least) / (1 - least), candidates lie at distinct uniform places, and the one at i opens a table
//! with probability (r / (r + i) - least) / (greatest - least). Blocks of 3 (r + a) / sqrt(r) have at most nine candidates in the
//! mean, so the cost is that of sqrt(r) ln(1 + n / r) binomials, not of n or of the number of tables, r (psi(n + r) - psi(r)).
//!
//! Sources: M. Zhou, L. Carin (2015), Negative binomial process count and mixture modeling (the law); the blocks are ours.

use super::{RandomSource, gamma};
use crate::stream::Xoshiro;
use rand_distr::{Binomial, Distribution};

/// Customers up to so many are seated one by one: 2 ns each, a binomial some 50.
const ONE_BY_ONE: u64 = 1024;

/// The number of tables of n customers at concentration r >= 0; at none all sit at one table.
pub fn draw(n: u64, r: f64, rng: &mut Xoshiro) -> u64 {
    if n <= 1 || r <= 0.0 {
        return n.min(1);
    }
    let first = n.min(ONE_BY_ONE);
    let seated = (1..first).filter(|&i| rng.uniform() * (r + i as f64) < r).count() as u64;
    let (mut tables, mut a) = (1 + seated, first);
    let mut places = vec![];
    while a < n {
        let length = (3.0 * (r + a as f64) / r.max(1.0).sqrt()).ceil().min((n - a) as f64) as u64;
        tables += block(a, length, r, rng, &mut places);
        a += length;
    }
    tables
}

/// -ln q of q ~ Beta(r, n), zero for no customers: what a concentration r is exposed to if it is that of n customers, or the sum
/// of those of restaurants that have n together. For Gamma(r) / Gamma(r + n) = int q^(r-1) (1-q)^(n-1) dq / Gamma(n) is exp(r ln q)
/// given q, so that with the numbers of tables concentrations have the likelihood of gamma laws.
pub fn exposure(n: u64, r: f64, rng: &mut Xoshiro) -> f64 {
    if n == 0 {
        return 0.0;
    }
    let odds = gamma::draw_log(n as f64, rng) - gamma::draw_log(r, rng);
    if odds > 40.0 { odds } else { odds.exp().ln_1p() }
}

/// Tables that the customers a, a + 1, .. open.
fn block(a: u64, length: u64, r: f64, rng: &mut Xoshiro, places: &mut Vec<u64>) -> u64 {
    let chance = |i: u64| r / (r + (a + i) as f64);
    let (greatest, least) = (chance(0), chance(length - 1));
    let whoever = binomial(length, least, rng);
    // greatest - least and 1 - least, without the difference of what is nearly equal
    let spread = greatest * ((length - 1) as f64 / (r + (a + length - 1) as f64));
    let rest = (a + length - 1) as f64 / (r + (a + length - 1) as f64);
    let candidates = binomial(length - whoever, (spread / rest).min(1.0), rng);
    // Distinct uniform places, by Floyd's algorithm.
    places.clear();
    for last in length - candidates..length {
        let place = ((rng.uniform() * (last + 1) as f64) as u64).min(last);
        places.push(if places.contains(&place) { last } else { place });
    }
    let mut opens = |place: u64| {
        let excess = chance(place) * ((length - 1 - place) as f64 / (r + (a + length - 1) as f64));
        rng.uniform() * spread < excess
    };
    whoever + places.iter().filter(|place| opens(**place)).count() as u64
}

fn binomial(n: u64, p: f64, rng: &mut Xoshiro) -> u64 {
    Binomial::new(n, p).expect("a probability").sample(rng)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::fit::assert_bins_fit;
    use crate::numeric::special::gamma::digamma;
    use crate::stream::xoshiro;

    /// P(number of tables = l), l = 0, 1, ..: customer after customer, what is below 1e-30 left away.
    fn masses(n: u64, r: f64) -> Vec<f64> {
        let mut masses = vec![0.0, 1.0];
        for i in 1..n {
            let chance = r / (r + i as f64);
            let mut before = 0.0;
            for mass in &mut masses {
                let here = *mass;
                *mass = here * (1.0 - chance) + before * chance;
                before = here;
            }
            if before * chance > 1e-30 {
                masses.push(before * chance);
            }
        }
        masses
    }

    #[test]
    fn draws_have_the_law_of_the_number_of_tables() {
        // Bins of at least 25, false alarm 1e-6 each.
        let cases =
            [(2, 0.3), (7, 2.5), (1000, 0.7), (1025, 1e-3), (1500, 40.0), (2500, 1200.0), (4000, 9.0), (5000, 0.2)];
        for (row, (n, r)) in cases.into_iter().enumerate() {
            let (masses, draws) = (masses(n, r), 100_000);
            let mut words = xoshiro([8, 3], 1, 0, row as u64);
            let mut seen = vec![0.0; masses.len() + 1];
            (0..draws).for_each(|_| seen[(draw(n, r, &mut words) as usize).min(masses.len())] += 1.0);
            let mut bins = vec![(0.0, 0.0)];
            for (seen, mass) in seen.iter().zip(masses.iter().chain([&0.0])) {
                if bins.last().is_some_and(|bin: &(f64, f64)| bin.1 >= 25.0) {
                    bins.push((0.0, 0.0));
                }
                let bin = bins.last_mut().unwrap();
                *bin = (bin.0 + seen, bin.1 + f64::from(draws) * mass);
            }
            let last = bins.pop().unwrap();
            let bin = bins.last_mut().unwrap();
            *bin = (bin.0 + last.0, bin.1 + last.1);
            assert_bins_fit(&bins, &(n, r));
        }
    }

    #[test]
    fn many_customers_have_their_mean_and_variance() {
        for (row, (n, r)) in [(1_000_000, 3.0), (1_000_000_000, 5e4), (1 << 52, 2e4)].into_iter().enumerate() {
            let size = n as f64;
            let mean = r * (digamma(size + r) - digamma(r));
            // sum p (1 - p), the sum of p^2 = r^2 (psi'(r) - psi'(r + n)) by its integral with the corrections of Euler and Maclaurin
            let trigamma = |x: f64| 1.0 / x + 0.5 / (x * x) + 1.0 / (6.0 * x * x * x) - 1.0 / (30.0 * x.powi(5));
            let variance = mean - r * r * (trigamma(r) - trigamma(r + size));
            let (mut words, draws) = (xoshiro([8, 3], 2, 0, row as u64), 400);
            let draws: Vec<f64> = (0..draws).map(|_| draw(n, r, &mut words) as f64).collect();
            let number = draws.len() as f64;
            let found = draws.iter().sum::<f64>() / number;
            assert!((found - mean).abs() < 4.9 * (variance / number).sqrt(), "n {n}, r {r}: {found}, due {mean}");
            let spread = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / number;
            // A chi-square with 400 degrees of freedom, over its number: 0.7 to 1.4 at 1e-6.
            assert!((0.68..1.42).contains(&(spread / variance)), "n {n}, r {r}: {spread}, due {variance}");
        }
    }

    #[test]
    fn the_ends_of_the_domain_are_exact() {
        let mut words = xoshiro([8, 3], 3, 0, 0);
        for r in [0.0, 5e-324, 1e-300, 1e300] {
            let tables = [0, 1, 2, 5000].map(|n| draw(n, r, &mut words));
            assert_eq!(tables, if r < 1.0 { [0, 1, 1, 1] } else { [0, 1, 2, 5000] });
        }
    }
}
