//! The papers' sampler of a cell: Skellam, Bessel, binomial and gamma conditionals, with two counts of noise kept per cell.
//!
//! Noise is the difference g+ - g- of two geometric counts, each Poisson given an exponential rate l+ or l-. Then
//! o = (y + g+) - g- is Skellam, and the smaller of its two counts has a Bessel law:
//!   l+- ~ Gamma(1 + g+-, rate 1/alpha),   m ~ Bessel(|o|, 2 sqrt(l- (l+ + mu))),
//!   y + g+ = m + max(o, 0),   g- = m + max(-o, 0),   y ~ Binomial(y + g+, mu / (mu + l+)).
//!
//! Source: A. Schein et al. (2019), sections 4 and 5 of the appendix (equations 18 to 26).

use super::split::binomial;
use crate::distributions::{bessel, gamma};
use crate::stream::Burst;

/// One step of a cell with noise `[g+, g-]`: returns the new y, and leaves the new noise in its place.
#[inline]
pub fn draw(released: i64, rate: f64, alpha: f64, noise: &mut [u32; 2], words: &mut Burst) -> u64 {
    let [plus, minus] = noise.map(|count| gamma::draw(1.0 + f64::from(count), 1.0 / alpha, words));
    let argument = 2.0 * (minus * (plus + rate)).sqrt();
    let smaller = bessel::draw(released.unsigned_abs() as f64, argument, words) as u64;
    let sum = smaller + released.max(0) as u64;
    let count = if sum == 0 { 0 } else { binomial(sum, rate / (rate + plus), words) };
    *noise = [narrow(sum - count), narrow(smaller + released.min(0).unsigned_abs())];
    count
}

/// The callers see to it that releases and rates are below 2^31, so that nothing is cut.
fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
