//! Normal vectors truncated to a ball, by rejection from a tilted normal: exact up to the rounding of doubles.
//!
//! Target: exp(-(w - m)' P (w - m) / 2) on |w| <= W. For any nu >= 0, w ~ N((P + nu)^-1 P m, (P + nu)^-1) is kept if |w| <= W with
//! probability exp(-nu (W^2 - |w|^2) / 2). The best nu solves tr (P + nu)^-1 + |(P + nu)^-1 P m|^2 = W^2 if the left side at 0 is
//! larger, else it is 0. Everything happens in the eigenbasis of P, where coordinates are independent and the norm is the same.
//!
//! The loop goes on until it accepts; how long that took depends on the data and can be timed. Nothing is ever clipped instead.
//!
//! Source: derived here; nu is the multiplier of the constraint E |w|^2 = W^2.

use crate::monitor::Monitor;
use crate::privacy::source::Source;
use crate::{Error, Result};
use rand_core::{Infallible, TryRng};
use rand_distr::{Distribution, Exp1, StandardNormal};

/// A source of bits as a generator of words.
struct SourceRng<'a, S>(&'a mut S);

impl<S: Source> TryRng for SourceRng<'_, S> {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0.bits(32) as u32)
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.bits(64))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.0.fill(bytes);
        Ok(())
    }
}

/// A normal law truncated to a ball, in the eigenbasis of its precision.
#[derive(Clone, Debug)]
pub struct BallNormal {
    square: f64,          // W^2
    tilt: f64,            // nu
    order: Vec<usize>,    // coordinates, the largest first: a proposal that is too long is found out early
    means: Vec<f64>,      // of the proposal
    deviations: Vec<f64>, // of the proposal
}

impl BallNormal {
    /// The law of eigenvalues and mean of the untruncated normal, on the ball of a radius.
    ///
    /// # Errors
    /// [`Error::Domain`] for a radius or an eigenvalue that is not positive and finite, or a mean that is not finite;
    /// [`Error::Shape`] for as many means as there are not eigenvalues.
    pub fn new(eigenvalues: &[f64], means: &[f64], radius: f64) -> Result<Self> {
        Error::require_shape("means", [eigenvalues.len()], [means.len()])?;
        let positive = |value: f64| value > 0.0 && value.is_finite();
        Error::require(positive(radius), "radius", radius, "positive and finite")?;
        Error::require_all(eigenvalues, positive, "eigenvalues", "positive and finite")?;
        Error::require_all(means, f64::is_finite, "means", "finite")?;
        let square = radius * radius;
        let excess = |nu: f64| {
            let term = |(l, m): (&f64, &f64)| 1.0 / (l + nu) + (l * m / (l + nu)).powi(2);
            eigenvalues.iter().zip(means).map(term).sum::<f64>() - square
        };
        let mut tilt = 0.0;
        if excess(0.0) > 0.0 {
            let (mut low, mut high) = (0.0, 1.0);
            while excess(high) > 0.0 {
                (low, high) = (high, 2.0 * high);
            }
            for _ in 0..80 {
                let middle = 0.5 * (low + high);
                if excess(middle) > 0.0 { low = middle } else { high = middle }
            }
            tilt = 0.5 * (low + high);
        }
        let of = |(l, m): (&f64, &f64)| (l * m / (l + tilt), 1.0 / (l + tilt).sqrt());
        let (shifted, deviations): (Vec<f64>, Vec<f64>) = eigenvalues.iter().zip(means).map(of).unzip();
        let mut order: Vec<usize> = (0..means.len()).collect();
        let size = |&i: &usize| shifted[i].powi(2) + deviations[i].powi(2);
        order.sort_by(|i, j| size(j).total_cmp(&size(i)));
        Ok(Self {
            square,
            tilt,
            means: order.iter().map(|&i| shifted[i]).collect(),
            deviations: order.iter().map(|&i| deviations[i]).collect(),
            order,
        })
    }

    /// Draws one vector and says how many proposals it took.
    pub fn draw(&self, vector: &mut [f64], source: &mut impl Source) -> u64 {
        let mut words = SourceRng(source);
        let mut proposals = 0;
        loop {
            proposals += 1;
            // Kept with probability exp(-tilt (W^2 - |w|^2) / 2): an exponential variable above that exponent, drawn first.
            let exponential: f64 = Exp1.sample(&mut words);
            let least = if self.tilt > 0.0 { self.square - 2.0 * exponential / self.tilt } else { f64::NEG_INFINITY };
            let mut norm = 0.0;
            for ((&i, mean), deviation) in self.order.iter().zip(&self.means).zip(&self.deviations) {
                let normal: f64 = StandardNormal.sample(&mut words);
                let value = mean + deviation * normal;
                vector[i] = value;
                norm += value * value;
                if norm > self.square {
                    break;
                }
            }
            if norm <= self.square && norm >= least {
                return proposals;
            }
        }
    }

    /// Draws a vector into each row; returns the number of proposals.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `rows` holds whole rows; whatever the monitor returned.
    pub fn draw_rows(&self, rows: &mut [f64], source: &mut impl Source, monitor: &mut dyn Monitor) -> Result<u64> {
        let width = self.order.len();
        let total = Error::require_rows("rows", width, rows.len())? as u64;
        let (mut proposals, mut told) = (0, 0);
        for (place, row) in rows.chunks_exact_mut(width).enumerate() {
            proposals += self.draw(row, source);
            if proposals - told > 1 << 16 {
                told = proposals;
                monitor.tick(place as u64, total)?;
            }
        }
        Ok(proposals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Silent;
    use crate::privacy::source::Generator;

    #[test]
    fn a_plane_has_the_moments_of_quadrature() {
        // Precision diag(4, 1), mean (1.5, 0.5), unit disc: moments on a fine grid.
        let (values, means) = ([4.0, 1.0], [1.5, 0.5]);
        let (steps, mut mass, mut first, mut square, mut cross) = (800, 0.0, 0.0, 0.0, 0.0);
        for i in 0..steps {
            for j in 0..steps {
                let point = |i: i32| (2.0 * f64::from(i) + 1.0) / f64::from(steps) - 1.0;
                let (x, y) = (point(i), point(j));
                if x * x + y * y <= 1.0 {
                    let e = values[0] * (x - means[0]).powi(2) + values[1] * (y - means[1]).powi(2);
                    let weight = (-0.5 * e).exp();
                    mass += weight;
                    first += weight * x;
                    square += weight * x * x;
                    cross += weight * x * y;
                }
            }
        }
        let law = BallNormal::new(&values, &means, 1.0).unwrap();
        let mut source = Generator::insecure([2, 3]);
        let draws = 200_000;
        let mut rows = vec![0.0; 2 * draws];
        let proposals = law.draw_rows(&mut rows, &mut source, &mut Silent).unwrap();
        assert!(proposals as usize >= draws && (proposals as usize) < 4 * draws);
        let mean = |of: fn(f64, f64) -> f64| rows.chunks(2).map(|r| of(r[0], r[1])).sum::<f64>() / draws as f64;
        // Deviations of x, x^2, xy are below 0.5 here: 4.9 standard errors are below 0.0055.
        assert!((mean(|x, _| x) - first / mass).abs() < 0.0055);
        assert!((mean(|x, _| x * x) - square / mass).abs() < 0.0055);
        assert!((mean(|x, y| x * y) - cross / mass).abs() < 0.0055);
    }

    #[test]
    fn what_is_no_law_is_refused() {
        assert!(BallNormal::new(&[1.0], &[], 1.0).is_err());
        assert!(BallNormal::new(&[0.0], &[1.0], 1.0).is_err());
        assert!(BallNormal::new(&[1.0], &[f64::NAN], 1.0).is_err());
        assert!(BallNormal::new(&[1.0], &[1.0], 0.0).is_err());
        let law = BallNormal::new(&[1.0, 1.0], &[0.0, 0.0], 1.0).unwrap();
        assert!(law.draw_rows(&mut [0.0; 3], &mut Generator::insecure([1, 1]), &mut Silent).is_err());
    }
}
