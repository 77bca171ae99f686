//! How far the statistics of a regression move, in Euclidean distance, when one record is replaced.
//!
//! Linear: t(x, y) = [svec(x x'), y x, y^2] on |x| <= R, |y| <= Y with noise in the proportions c1 = (s1/s2)^2, c2 = (s1/s3)^2:
//! Delta^2 = max over v in V of 2R^4 - 2t^2 + c1 (Y^2 R^2 + v^2 R^2 + 2 Y v t) + c2 (Y^2 - v^2)^2,  t = min(c1 Y v / 2, R^2),
//! V = {0, Y, 2R^2/(c1 Y), (Y +- sqrt(Y^2 - 2 c1 R^2 / c2)) / 2} within [0, Y].
//! Logistic: t(x, y) = [y x, svec(x x')] with y = +-1 and c = (s1/s2)^2:  Delta^2 = 2R^2 + 2q + c (2R^4 - 2q^2),
//! q = min(1/(2c), R^2).
//!
//! svec carries off-diagonal entries times sqrt 2. Both are attained for records of two or more dimensions, bounds for one.
//!
//! In one dimension the directions of x and x' are equal or opposite. With a = R^4, b = c1 R^2 Y^2, g = c2 Y^4,
//! Delta^2 = max of a + b + g, e(b, g) and e(b, a), where e(b, g) = max over t in [0, 1] of (1 + t)^2 (b + g (1 - t)^2) is at
//! t = 1 or at the lesser root of 2 g t (1 - t) = b. For logistic statistics it is e(R^2, c R^4).
//!
//! Source: T. Kulkarni, J. Jälkö, S. Kaski, A. Honkela, Locally differentially private Bayesian inference, lemmas 3.1 and 13.1,
//! which bound each term by itself and are larger; the joint maxima are derived here, see `docs/mathematics/ldp.md`.

use crate::{Error, Result};

/// Statistics are computed in floating point; the sensitivity allows for it.
const ROUNDED: f64 = 1.0 + 1.0 / (1u64 << 40) as f64;

fn positive(name: &'static str, value: f64) -> Result<()> {
    Error::require((1e-60..=1e60).contains(&value), name, value, "positive, and between 1e-60 and 1e60")
}

/// The sensitivity of linear-regression statistics, in units of the noise on `x x'`, times 1 + 2^-40 for their rounding.
///
/// # Errors
/// [`Error::Domain`] for a bound or a ratio that is not positive and finite.
pub fn linear_regression(radius: f64, response: f64, cross: f64, square: f64) -> Result<f64> {
    let named = [("radius", radius), ("response", response), ("ratios", cross), ("ratios", square)];
    named.into_iter().try_for_each(|(name, value)| positive(name, value))?;
    let (r2, y) = (radius * radius, response);
    let moved = |v: f64| {
        let t = (0.5 * cross * y * v).min(r2);
        2.0 * (r2 * r2 - t * t) + cross * (y * y * r2 + v * v * r2 + 2.0 * y * v * t) + square * (y * y - v * v).powi(2)
    };
    let root = (y * y - 2.0 * cross * r2 / square).sqrt(); // NaN where there is none; it fails the range below
    let places = [0.0, y, 2.0 * r2 / (cross * y), 0.5 * (y - root), 0.5 * (y + root)];
    let most = places.into_iter().filter(|v| (0.0..=y).contains(v)).map(moved).fold(0.0, f64::max);
    Ok(most.sqrt() * ROUNDED)
}

/// The largest `(1 + t)^2 (b + g (1 - t)^2)` for t in [0, 1].
fn edge(b: f64, g: f64) -> f64 {
    let at = |t: f64| (1.0 + t) * (1.0 + t) * (b + g * (1.0 - t) * (1.0 - t));
    let root = (1.0 - 2.0 * b / g).sqrt(); // NaN where there is none, which `max` passes over
    at(1.0).max(at(0.5 * (1.0 - root)))
}

/// As [`linear_regression`], for records of one dimension: attained, and never larger.
///
/// # Errors
/// [`Error::Domain`] for a bound or a ratio that is not positive and finite.
pub fn linear_regression_on_a_line(radius: f64, response: f64, cross: f64, square: f64) -> Result<f64> {
    let named = [("radius", radius), ("response", response), ("ratios", cross), ("ratios", square)];
    named.into_iter().try_for_each(|(name, value)| positive(name, value))?;
    let (r2, y2) = (radius * radius, response * response);
    let (a, b, g) = (r2 * r2, cross * r2 * y2, square * y2 * y2);
    Ok((a + b + g).max(edge(b, g)).max(edge(b, a)).sqrt() * ROUNDED)
}

/// As [`logistic_regression`], for records of one dimension: attained, and never larger.
///
/// # Errors
/// [`Error::Domain`] for a radius or a ratio that is not positive and finite.
pub fn logistic_regression_on_a_line(radius: f64, ratio: f64) -> Result<f64> {
    positive("radius", radius)?;
    positive("ratio", ratio)?;
    let r2 = radius * radius;
    Ok(edge(r2, ratio * r2 * r2).sqrt() * ROUNDED)
}

/// The sensitivity of logistic-regression statistics, in units of the noise on `y x`, times 1 + 2^-40 for their rounding.
///
/// # Errors
/// [`Error::Domain`] for a radius or a ratio that is not positive and finite.
pub fn logistic_regression(radius: f64, ratio: f64) -> Result<f64> {
    positive("radius", radius)?;
    positive("ratio", ratio)?;
    let r2 = radius * radius;
    let q = (0.5 / ratio).min(r2);
    Ok((2.0 * (r2 + q) + 2.0 * ratio * (r2 * r2 - q * q)).sqrt() * ROUNDED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Stream;

    /// Rows of a table of the known answers; a missing dimension is NaN.
    fn known(name: &str) -> Vec<Vec<f64>> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/known/privacy.json");
        let all: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let row =
            |row: &serde_json::Value| row.as_array().unwrap().iter().map(|x| x.as_f64().unwrap_or(f64::NAN)).collect();
        all[name].as_array().unwrap().iter().map(row).collect()
    }

    #[test]
    fn squares_are_the_known_ones() {
        for row in known("linear_regression_squared") {
            let of = if row[4] == 1.0 { linear_regression_on_a_line } else { linear_regression };
            let found = of(row[0], row[1], row[2], row[3]).unwrap().powi(2);
            assert!((found / row[5] - 1.0).abs() < 1e-11, "{found} {row:?}");
        }
        for row in known("logistic_regression_squared") {
            let of = if row[2] == 1.0 { logistic_regression_on_a_line } else { logistic_regression };
            let found = of(row[0], row[1]).unwrap().powi(2);
            assert!((found / row[3] - 1.0).abs() < 1e-11, "{found} {row:?}");
        }
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(linear_regression(bad, 1.0, 1.0, 1.0).is_err() && linear_regression(1.0, 1.0, bad, 1.0).is_err());
            assert!(logistic_regression(bad, 1.0).is_err() && logistic_regression(1.0, bad).is_err());
        }
    }

    #[test]
    fn random_pairs_of_records_come_close_and_never_exceed() {
        // x, x' in the plane at a relative angle, |x| and |y| in their domain or on its border.
        let mut stream = Stream::new([5, 6], 0, 0, 0);
        let mut border = |bound: f64| if stream.uniform() < 0.5 { bound } else { bound * stream.uniform() };
        for (radius, response, cross, square) in [
            (1.0, 1.0, 1.0, 1.0),
            (1.0, 2.0, 1.0, 1.0),
            (0.5, 2.0, 10.0, 2.0),
            (1.0, 2.0, 8.0, 3.0),
            (2.0, 0.7, 0.3, 0.4),
        ] {
            let bound = linear_regression(radius, response, cross, square).unwrap();
            let logistic = logistic_regression(radius, cross).unwrap();
            let (mut most, mut most_logistic) = (0.0f64, 0.0f64);
            for _ in 0..100_000 {
                let (a, b, y, v) = (border(radius), border(radius), border(response), border(response));
                let cosine = 2.0 * border(1.0) - 1.0;
                let inner = a * b * cosine;
                let squares = a.powi(4) + b.powi(4) - 2.0 * inner * inner;
                let crosses = |y: f64, v: f64| y * y * a * a + v * v * b * b - 2.0 * y * v * inner;
                most = most.max(squares + cross * crosses(y, v) + square * (y * y - v * v).powi(2));
                most_logistic = most_logistic.max(crosses(1.0, 1.0) + cross * squares);
            }
            assert!(most.sqrt() <= bound && most.sqrt() > 0.97 * bound, "{} {bound}", most.sqrt());
            assert!(most_logistic.sqrt() <= logistic && most_logistic.sqrt() > 0.97 * logistic);
        }
    }

    #[test]
    fn pairs_of_records_on_a_line_attain_the_bound_and_never_exceed_it() {
        for (radius, response, cross, square) in [
            (1.0, 1.0, 1.0, 1.0),
            (1.0, 2.0, 1.0, 1.0),
            (0.5, 2.0, 10.0, 2.0),
            (1.0, 2.0, 0.1, 3.0),
            (2.0, 0.7, 0.3, 0.4),
            (3.0, 1.0, 0.01, 0.001),
        ] {
            let bound = linear_regression_on_a_line(radius, response, cross, square).unwrap();
            let logistic = logistic_regression_on_a_line(radius, cross).unwrap();
            assert!(bound <= linear_regression(radius, response, cross, square).unwrap() * (1.0 + 1e-15));
            assert!(logistic <= logistic_regression(radius, cross).unwrap() * (1.0 + 1e-15));
            let (mut most, mut most_logistic) = (0.0f64, 0.0f64);
            let grid = |bound: f64| (0..=40).map(move |i| bound * f64::from(i) / 40.0);
            for (x, u) in grid(radius).flat_map(|x| grid(radius).map(move |u| (x, u))) {
                let squares = (x * x - u * u).powi(2);
                most_logistic = most_logistic.max((x + u).powi(2) + cross * squares);
                for (y, v) in grid(response).flat_map(|y| grid(response).map(move |v| (y, v))) {
                    let crosses = (x * y + u * v).powi(2);
                    most = most.max(squares + cross * crosses + square * (y * y - v * v).powi(2));
                }
            }
            assert!(most.sqrt() <= bound && most.sqrt() > 0.999 * bound, "{} {bound}", most.sqrt());
            assert!(most_logistic.sqrt() <= logistic && most_logistic.sqrt() > 0.999 * logistic);
        }
    }
}
