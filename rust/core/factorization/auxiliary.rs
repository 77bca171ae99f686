//! The papers' sampler of a cell: Skellam, Bessel, binomial and gamma conditionals, with two counts of noise kept per cell.
//!
//! Noise is the difference g+ - g- of two geometric counts, each Poisson given an exponential rate l+ or l-. Then
//! o = (y + g+) - g- is Skellam, and the smaller of its two counts has a Bessel law:
//!   l+- ~ Gamma(1 + g+-, rate 1/alpha),   m ~ Bessel(|o|, 2 sqrt(l- (l+ + mu))),
//!   y + g+ = m + max(o, 0),   g- = m + max(-o, 0),   y ~ Binomial(y + g+, mu / (mu + l+)).
//!
//! Source: A. Schein et al. (2019), sections 4 and 5 of the appendix (equations 18 to 26).

use super::events::Ratios;
use super::released_counts::{HELD_OUT, Row};
use super::split::binomial;
use crate::Result;
use crate::distributions::bessel::{Address, draw_many};
use crate::distributions::gamma;
use crate::stream::Xoshiro;
use rand_distr::{Distribution, Exp1};

/// Up to here a gamma variable of whole shape is a sum of exponentials, which are cheaper.
const FEW: u32 = 4;

/// What the cells of a row keep between the steps of their draw.
#[derive(Clone, Debug)]
pub struct Auxiliary {
    plus: Vec<f64>,
    orders: Vec<f64>,
    arguments: Vec<f64>,
    smaller: Vec<i64>,
}

impl Auxiliary {
    /// For rows of so many columns.
    pub fn new(cols: usize) -> Self {
        Self { plus: vec![0.0; cols], orders: vec![0.0; cols], arguments: vec![0.0; cols], smaller: vec![0; cols] }
    }

    /// Draws the rates of the noise and then the smaller Skellam counts of all cells of a row.
    ///
    /// # Errors
    /// None that rates and releases below 2^31 could cause.
    #[inline(always)]
    pub fn draw_row(
        &mut self,
        data: &Row<'_>,
        rates: &[f64],
        ratios: &Ratios<'_>,
        noise: &[[u32; 2]],
        address: Address,
        words: &mut Xoshiro,
    ) -> Result<()> {
        for (column, &code) in data.codes.iter().enumerate() {
            let alpha = ratios.at(column);
            if code == HELD_OUT || alpha == 0.0 {
                (self.orders[column], self.arguments[column]) = (0.0, 0.0);
                continue;
            }
            let [plus, minus] = noise[column].map(|count| alpha * standard_gamma(count, words));
            self.plus[column] = plus;
            self.orders[column] = data.value(column, code).unsigned_abs() as f64;
            self.arguments[column] = 2.0 * (minus * (plus + rates[column])).sqrt();
        }
        draw_many(&self.orders, &self.arguments, address, 0, &mut self.smaller)
    }

    /// The count of a cell of a row that has been drawn; leaves the new noise in its place.
    #[inline(always)]
    pub fn count(&self, column: usize, released: i64, rate: f64, noise: &mut [u32; 2], words: &mut Xoshiro) -> u64 {
        let smaller = self.smaller[column] as u64;
        let sum = smaller + released.max(0) as u64;
        let chance = rate / (rate + self.plus[column]);
        let count = match sum {
            0 => 0,
            1 => u64::from(crate::distributions::Rng::uniform(words) < chance),
            _ => binomial(sum, chance, words),
        };
        *noise = [narrow(sum - count), narrow(smaller + released.min(0).unsigned_abs())];
        count
    }
}

/// A gamma variable of shape `1 + count` and rate one.
#[inline(always)]
fn standard_gamma(count: u32, words: &mut Xoshiro) -> f64 {
    if count < FEW {
        let exponentials = (0..=count).map(|_| {
            let exponential: f64 = Exp1.sample(words);
            exponential
        });
        return exponentials.sum();
    }
    gamma::draw(1.0 + f64::from(count), 1.0, words)
}

/// The callers see to it that releases and rates are below 2^31, so that nothing is cut.
fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
