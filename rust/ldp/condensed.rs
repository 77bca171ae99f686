//! Many releases with normal noise as few nodes with weights, on which their log-likelihood is the same.

use super::cells::check_finite;
use super::discrete::chebyshev;
use crate::Result;

/// Panels in deviations, for bounds d deviations apart: p has no zero within pi / d of the real line, where all terms of its
/// integral have phases in a half plane, so that sixteen Chebyshev nodes in 1.5 / d leave 1e-14 of ln p a user. Beyond d = 6 the
/// least width serves: between two atoms d apart, where the nearest zeros are, a share e^(-d^2 / 8) of the users lies.
const WIDTHS: [f64; 2] = [0.25, 4.0];
const PER_DISTANCE: f64 = 1.5;
/// A panel with fewer values, twice the nodes that would replace them, keeps them.
const FEW: usize = 32;

/// Values with weights that have the sum of ln p over releases with normal noise: themselves, or Chebyshev nodes.
/// `between` is how far apart the bounds are.
///
/// # Errors
/// [`Error::Domain`] naming the index of a value that is not finite.
pub(super) fn condensed(released: &[f64], sd: f64, between: f64, exact: bool) -> Result<Vec<(f64, f64)>> {
    check_finite(released)?;
    if exact || released.len() < FEW || !(sd > 0.0) {
        return Ok(released.iter().map(|&z| (z, 1.0)).collect());
    }
    let mut values = released.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    let width = sd * (PER_DISTANCE * sd / between).clamp(WIDTHS[0], WIDTHS[1]);
    let panel = |z: f64| (z / width).floor();
    let mut points = Vec::new();
    for values in values.chunk_by(|&one, &other| panel(one) == panel(other)) {
        if values.len() < FEW {
            points.extend(values.iter().map(|&z| (z, 1.0)));
        } else {
            let centre = (panel(values[0]) + 0.5) * width;
            chebyshev(values.iter().map(|z| 2.0 * (z - centre) / width), |node, weight| {
                points.push((centre + 0.5 * width * node, weight));
            });
        }
    }
    Ok(points)
}
