//! The finite-n epsilon of continuous posteriors, by Gauss-Legendre panels around the mode.
//!
//! With a density exp(-E(u)), E = x f + y g as in [`super::grid`], and a neighbor of statistics (x + dx, y + dy), the logarithm of
//! the ratio of the two posteriors is -(dx f + dy g) - d with d = ln of the mean of exp(-(dx f + dy g)): one quotient of two
//! integrals with the same maximum taken out. Differences of incomplete beta or gamma functions would cancel to nothing here.
//!
//! E is convex in the coordinate u, so a panel of a few standard deviations sees a smooth function and 16 points leave nothing.
//!
//! Source: derived here; the rule is Gauss's with 16 points.

use super::grid::Coordinate;
use crate::{Error, Result};

/// Sixteen-point Gauss-Legendre rule: nodes and weights on (0, 1] half of [-1, 1] (Abramowitz and Stegun 25.4.30).
const RULE: [(f64, f64); 8] = [
    (0.095_012_509_837_637_44, 0.189_450_610_455_068_5),
    (0.281_603_550_779_258_9, 0.182_603_415_044_923_6),
    (0.458_016_777_657_227_4, 0.169_156_519_395_002_54),
    (0.617_876_244_402_643_7, 0.149_595_988_816_576_73),
    (0.755_404_408_355_003, 0.124_628_971_255_533_87),
    (0.865_631_202_387_831_7, 0.095_158_511_682_492_78),
    (0.944_575_023_073_232_6, 0.062_253_523_938_647_89),
    (0.989_400_934_991_649_9, 0.027_152_459_411_754_095),
];

/// Where a density has fallen so far below its maximum that nothing more is added: e^-44 is 8e-20 of it.
const DEPTH: f64 = 44.0;

struct ConjugateLaw {
    coordinate: Coordinate,
    x: f64,
    y: f64,
}

impl ConjugateLaw {
    fn ends(&self) -> (f64, f64) {
        match self.coordinate {
            Coordinate::Logit { half } => (-half, half),
            Coordinate::Log { width, .. } => (0.0, width),
        }
    }

    /// f and g at a coordinate.
    fn functions(&self, u: f64) -> (f64, f64) {
        match self.coordinate {
            Coordinate::Logit { .. } => {
                let l = libm::log1p(libm::exp(-u.abs()));
                (l + (-u).max(0.0), l + u.max(0.0))
            }
            Coordinate::Log { upper, .. } => (u, upper * libm::exp(-u)),
        }
    }

    /// E' and E'' at a coordinate.
    fn derivatives(&self, u: f64) -> (f64, f64) {
        match self.coordinate {
            Coordinate::Logit { .. } => {
                let t = 1.0 / (1.0 + libm::exp(-u));
                (self.y * t - self.x * (1.0 - t), (self.x + self.y) * t * (1.0 - t))
            }
            Coordinate::Log { upper, .. } => {
                let t = upper * libm::exp(-u);
                (self.x - self.y * t, self.y * t)
            }
        }
    }

    /// The mode within the ends.
    fn mode(&self) -> f64 {
        let (low, high) = self.ends();
        let mode = match self.coordinate {
            Coordinate::Logit { .. } => libm::log(self.x / self.y),
            Coordinate::Log { upper, .. } => libm::log(self.y * upper / self.x),
        };
        // Statistics of zero: the mode is an end, or everything is flat.
        if mode.is_nan() { 0.5 * (low + high) } else { mode.clamp(low, high) }
    }

    fn log_ratio(&self, dx: f64, dy: f64) -> f64 {
        let ((low, high), mode) = (self.ends(), self.mode());
        let (f, g) = self.functions(mode);
        let (slope, curvature) = self.derivatives(mode);
        // A panel: three halves of a scale of the density, no more than what the functions themselves are smooth on.
        let scale = (1.0 / (slope.abs() + 1e-300)).min(1.0 / (curvature.sqrt() + 1e-300));
        let panel = (1.5 * scale).min(1.0).min(1.0 / (dx.abs() + dy.abs() + 1e-300)).max((high - low) * 1e-5);
        let (mut above, mut below) = (0.0, 0.0);
        for direction in [1.0, -1.0] {
            let end = if direction > 0.0 { high } else { low };
            let (mut start, mut done) = (mode, false);
            while !done && (end - start) * direction > 0.0 {
                let width = panel.min((end - start) * direction);
                let middle = start + 0.5 * width * direction;
                for (node, weight) in RULE {
                    for side in [-0.5, 0.5] {
                        let (p, q) = self.functions(middle + side * width * node);
                        let (df, dg) = (p - f, q - g);
                        let density = weight * width * libm::exp(-(self.x * df + self.y * dg));
                        above += density * libm::exp(-(dx * df + dy * dg));
                        below += density;
                    }
                }
                start += width * direction;
                let (p, q) = self.functions(start);
                done = self.x * (p - f) + self.y * (q - g) > DEPTH + (dx * (p - f) + dy * (q - g)).abs();
            }
        }
        libm::log(above / below) - (dx * f + dy * g)
    }
}

/// The largest absolute logarithm of the ratio of the posteriors of statistics (x, y) and (x, y) + `step`.
///
/// # Errors
/// [`Error::Domain`] unless the statistics of both are at least zero and finite.
pub fn replace_epsilon(coordinate: Coordinate, (x, y): (f64, f64), step: (f64, f64)) -> Result<f64> {
    let sound = [x, y, x + step.0, y + step.1].iter().all(|&value| (0.0..1e300).contains(&value));
    Error::require(sound, "statistics", format_args!("({x}, {y})"), "at least 0 and finite, with the step too")?;
    let law = ConjugateLaw { coordinate, x, y };
    let ratio = law.log_ratio(step.0, step.1);
    let (low, high) = law.ends();
    let at = |u: f64| {
        let (f, g) = law.functions(u);
        -(step.0 * f + step.1 * g)
    };
    let (one, other) = (at(low), at(high));
    Ok((one.max(other) - ratio).max(ratio - one.min(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beta(a: f64, b: f64, n: f64, w: f64, tau: f64) -> f64 {
        let coordinate = Coordinate::Logit { half: ((1.0 - w) / w).ln() };
        let at = |k: f64| replace_epsilon(coordinate, (a + tau * k, b + tau * (n - k)), (tau, -tau)).unwrap();
        at(0.0).max(at(n - 1.0))
    }

    #[test]
    fn beta_epsilons_are_the_known_ones() {
        // 30-digit quadrature over all data sets.
        for (a, b, n, w, tau, exact) in [
            (1.0, 1.0, 50.0, 0.25, 1.0, 2.120_263_536_2),
            (1.0, 1.0, 10.0, 0.25, 1.0, 1.860_787_824_6),
            (1.0, 1.0, 1.0, 0.25, 1.0, 1.098_612_288_7),
            (2.0, 3.0, 20.0, 0.2, 1.0, 2.541_683_165_6),
            (1.0, 1.0, 50.0, 0.05, 0.3, 1.541_802_159_6),
        ] {
            let found = beta(a, b, n, w, tau);
            assert!((found - exact).abs() < 1e-10, "{found} against {exact}");
        }
    }

    #[test]
    fn exponential_epsilons_are_the_known_ones() {
        let coordinate = Coordinate::Log { upper: 2.0, width: 4f64.ln() };
        for (n, exact) in [(1.0, 1.013_537_308_1), (10.0, 1.251_501_996_9), (100.0, 1.479_402_394_7)] {
            let at = |s: f64| replace_epsilon(coordinate, (1.0 + n, s), (0.0, 1.0)).unwrap();
            let found = at(2.0).max(at(2.0 + n - 1.0));
            assert!((found - exact).abs() < 1e-10, "{found} against {exact}");
        }
    }

    #[test]
    fn large_data_sets_and_flat_laws_stay_below_the_range() {
        for n in [0.0f64, 1.0, 1e3, 1e6, 1e9] {
            let found = beta(1.0, 1.0, n.max(1.0), 0.25, 1.0);
            assert!(found <= 2.0 * 3f64.ln() + 1e-9 && found > 1.0, "{n}: {found}");
        }
        assert!(replace_epsilon(Coordinate::Logit { half: 1.0 }, (f64::NAN, 1.0), (0.0, 0.0)).is_err());
    }
}
