//! How well draws fit their laws: what the tests of samplers here and in the room of factorization share.

use std::fmt::Debug;

/// Asserts that bins of (seen, due) fit by a chi-square; false alarm 1e-6 (normal quantile 4.7534, Wilson and Hilferty's cube
/// root).
pub fn assert_bins_fit(bins: &[(f64, f64)], case: &dyn Debug) {
    let freedom = bins.len() as f64 - 1.0;
    if freedom < 1.0 {
        return;
    }
    let statistic: f64 = bins.iter().map(|(seen, due)| (seen - due).powi(2) / due).sum();
    let spread = 2.0 / (9.0 * freedom);
    let z = ((statistic / freedom).cbrt() - (1.0 - spread)) / spread.sqrt();
    assert!(z < 4.7534, "{case:?}: chi-square {statistic} with {freedom} degrees of freedom");
}

/// Those of the pairs of (seen, due) that are due ten or more, and one of all others together.
pub fn pooled(pairs: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let (mut bins, rest): (Vec<_>, Vec<_>) = pairs.partition(|(_, due)| *due >= 10.0);
    let rest = rest.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    if rest.1 > 5.0 {
        bins.push(rest);
    } else {
        assert!(rest.0 < 30.0);
    }
    bins
}

/// The distribution function of the gamma law by its power series, good where x is not far beyond the shape.
pub fn gamma_cdf(shape: f64, x: f64) -> f64 {
    let mut term = (shape * x.ln() - x - libm::lgamma(shape + 1.0)).exp();
    let (mut sum, mut n) = (term, shape);
    while term > 1e-17 * sum {
        n += 1.0;
        term *= x / n;
        sum += term;
    }
    sum
}

/// The distance of Kolmogorov and Smirnov from the gamma law of a shape, times the root of the number of draws.
pub fn gamma_distance(shape: f64, mut draws: Vec<f64>) -> f64 {
    draws.sort_by(f64::total_cmp);
    let n = draws.len() as f64;
    let distance = draws.iter().enumerate().map(|(i, &x)| {
        let level = if x > 0.0 { gamma_cdf(shape, x) } else { 0.0 };
        (level - i as f64 / n).abs().max((level - (i + 1) as f64 / n).abs())
    });
    distance.fold(0.0, f64::max) * n.sqrt()
}
