//! Chains of gamma variables whose shapes are mixtures of the ones above: what times of dynamics and layers of topics share.
//!
//!   x_k ~ Gamma(s sum_j Pi_kj above_j, rate),     Pi_.j ~ Dirichlet(c_.j).
//!
//! A count n_k of x_k, x_k summed out, has l_k ~ CRT(n_k, shape of x_k) tables, and those tables are Poisson counts of the shape:
//! split over j they are counts of above_j and of Pi_kj, whose column is then Dirichlet(c_.j + sum l_kj) whatever above_j is.
//!
//! A variable below the least double is stored as zero. That zero tells on a draw only if counts fall to what has no other
//! origin, and it was above 1e-20 from a shape below 1e-300: with probability below 1e-297.
//!
//! Sources: A. Schein, H. Wallach, M. Zhou (2016), Poisson-gamma dynamical systems, section 3; M. Zhou, Y. Cong, B. Chen (2016),
//! Augmentable gamma belief networks, section 3.

use super::factor_matrix::FactorMatrix;
use super::split::Splitter;
use crate::distributions::{chinese_restaurant, gamma};
use crate::stream::Xoshiro;

/// sum_j Pi_kj above_j.
pub fn mixture(mixing: &FactorMatrix, above: &[f64], k: usize) -> f64 {
    above.iter().zip(mixing.row(k)).map(|(x, share)| x * share).sum()
}

/// Draws the tables of counts at shapes of a scale times the mixtures, splits them, and adds the parts to those of each (k, j) and
/// of each j; tells how many tables there are.
pub fn seat(
    counts: impl Iterator<Item = u64>,
    (mixing, above, scale): (&FactorMatrix, &[f64], f64),
    (moved, received): (&mut [u64], &mut [u64]),
    splitter: &mut Splitter,
    words: &mut Xoshiro,
) -> u64 {
    let (stride, mut total) = (mixing.stride, 0);
    for (k, count) in counts.enumerate() {
        let tables = chinese_restaurant::draw(count, scale * mixture(mixing, above, k), words);
        if tables > 0 {
            splitter.split(tables, above, mixing.row(k), words, &mut moved[k * stride..(k + 1) * stride], received);
        }
        total += tables;
    }
    total
}

/// A gamma draw; zero at a shape of no draw above the least double.
pub fn draw(shape: f64, rate: f64, rng: &mut Xoshiro) -> f64 {
    if shape < 1e-300 { 0.0 } else { gamma::draw(shape, rate, rng) }
}

/// Draws the columns of a mixing matrix given their counts; concentrations may be small for a whole column, whose shares come
/// from logarithms.
pub fn redraw_columns(
    mixing: &mut FactorMatrix,
    concentration: impl Fn(usize, usize) -> f64,
    counts: &[u64],
    rng: &mut Xoshiro,
) {
    for j in 0..mixing.width {
        let log = |k: usize| gamma::draw_log(concentration(k, j) + counts[k * mixing.stride + j] as f64, rng);
        let logs: Vec<f64> = (0..mixing.rows).map(log).collect();
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = logs.iter().map(|log| (log - top).exp()).sum();
        logs.iter().enumerate().for_each(|(k, log)| mixing.row_mut(k)[j] = (log - top).exp() / sum);
    }
}
