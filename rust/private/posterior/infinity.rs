//! Integer noise of constant probability on the surface of cubes: the K-norm mechanism of the L-infinity norm.
//!
//! P(z) is proportional to exp(-eps max |z_i|) on the integer vectors of D coordinates.
//!
//! Given a radius R, z is uniform on {-R..R}^D; R has P(R) proportional to (2R+1)^D exp(-eps R). A sum of D + 1 geometric variables has
//! P(R) proportional to C(R+D, D) exp(-eps R), so it is kept with probability prod_{k=1}^D (2R+1) / (2R+2k) <= 1: D coins of rational
//! probability. Everything is in whole numbers. Summing P(R) / (2R+1)^D over R >= |z| gives the law of z, for exp(-eps R) is
//! (1 - exp(-eps)) times its own tail. Source: M. Hardt, K. Talwar (2010), On the geometry of differential privacy.

use crate::monitor::Monitor;
use crate::privacy::noise::{Decay, GeometricNoise, bernoulli};
use crate::privacy::source::Source;
use crate::{Error, Result};

/// The noise of a dimension and a decay.
#[derive(Clone, Debug)]
pub struct InfinityNoise {
    geometric: GeometricNoise,
    dimension: usize,
}

impl InfinityNoise {
    /// The law with `exp(-eps) = exp(-numerator / denominator)`.
    ///
    /// # Errors
    /// [`Error::Domain`] for a decay out of range, or a dimension above 2^20.
    pub fn new(numerator: u64, denominator: u64, dimension: usize) -> Result<Self> {
        Error::require(dimension <= 1 << 20, "dimension", dimension, "at most 2^20")?;
        Ok(Self { geometric: GeometricNoise::new(Decay::Exponential { numerator, denominator })?, dimension })
    }

    /// Draws one vector.
    ///
    /// # Errors
    /// [`Error::Check`] if a radius does not fit 61 bits.
    pub fn draw(&self, vector: &mut [i64], source: &mut impl Source) -> Result<()> {
        let radius = loop {
            let radius = self.radius(source)?;
            let side = 2 * radius + 1;
            if (1..=self.dimension as u64).all(|k| bernoulli(side, side - 1 + 2 * k, source)) {
                break radius;
            }
        };
        for coordinate in vector {
            *coordinate = source.below(2 * radius + 1) as i64 - radius as i64;
        }
        Ok(())
    }

    fn radius(&self, source: &mut impl Source) -> Result<u64> {
        let mut radius = 0u64;
        for _ in 0..=self.dimension {
            radius += self.geometric.draw_one_sided(source)? as u64;
            if radius >> 61 > 0 {
                return Err(Error::Check { what: "a noise draw", detail: "it does not fit 61 bits".into() });
            }
        }
        Ok(radius)
    }

    /// Adds a vector of noise to each row.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `rows` holds whole rows; as [`InfinityNoise::draw`]; whatever the monitor returned.
    pub fn add(&self, rows: &mut [i64], source: &mut impl Source, monitor: &mut dyn Monitor) -> Result<()> {
        let total = Error::require_rows("rows", self.dimension, rows.len())? as u64;
        let mut noise = vec![0; self.dimension];
        for (place, row) in rows.chunks_exact_mut(self.dimension).enumerate() {
            if place % 1024 == 1023 {
                monitor.tick(place as u64, total)?;
            }
            self.draw(&mut noise, source)?;
            row.iter_mut().zip(&noise).for_each(|(value, noise)| *value = value.saturating_add(*noise));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Silent;
    use crate::privacy::source::Generator;

    #[test]
    fn small_dimensions_have_their_rational_probabilities() {
        // D = 2, exp(-eps) = 1/2 (here exp(-ln 2) is no fraction of whole numbers, so eps = 7/10): P(0) and P(|z| = 1).
        let noise = InfinityNoise::new(7, 10, 2).unwrap();
        let a = (-0.7f64).exp();
        let mass = |r: f64| ((2.0 * r + 1.0).powi(2) - (2.0 * r - 1.0).powi(2)) * a.powf(r);
        let whole: f64 = 1.0 + (1..400).map(|r| mass(f64::from(r))).sum::<f64>();
        let mut source = Generator::insecure([3, 9]);
        let (draws, mut counts, mut corner) = (200_000, [0.0; 6], 0.0);
        let mut z = [0; 2];
        for _ in 0..draws {
            noise.draw(&mut z, &mut source).unwrap();
            let norm = z[0].abs().max(z[1].abs());
            if norm < 6 {
                counts[norm as usize] += 1.0;
            }
            corner += f64::from(u8::from(z == [1, -1]));
        }
        for (r, count) in counts.iter().enumerate() {
            let p = if r == 0 { 1.0 } else { mass(r as f64) } / whole;
            let spread = (f64::from(draws) * p * (1.0 - p)).sqrt();
            assert!((count - f64::from(draws) * p).abs() < 5.5 * spread, "radius {r}: {count}");
        }
        let p = a / whole;
        assert!((corner - f64::from(draws) * p).abs() < 5.5 * (f64::from(draws) * p).sqrt());
    }

    #[test]
    fn rows_and_arguments_that_do_not_fit_are_refused() {
        assert!(InfinityNoise::new(1, 1, 1 << 21).is_err() && InfinityNoise::new(0, 1, 2).is_err());
        let noise = InfinityNoise::new(1, 1, 3).unwrap();
        let mut source = Generator::insecure([3, 9]);
        assert!(noise.add(&mut [0; 4], &mut source, &mut Silent).is_err());
        let mut rows = [i64::MAX; 3];
        noise.add(&mut rows, &mut source, &mut Silent).unwrap();
    }
}
