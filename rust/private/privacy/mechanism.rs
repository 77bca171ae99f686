//! Whole arrays at once: clip each record to its declared bounds, add exact noise, write it back.
//!
//! Integers become x + noise. Real numbers become multiples of a power of two, the grid step: the two-sided geometric noise of
//! the Laplace mechanism is added to the value rounded to the grid, the Gaussian noise before rounding. Every output is a
//! function of an integer, so what a float can and cannot represent does not depend on the data.
//!
//! Source: I. Mironov (2012), On significance of the least significant bits for differential privacy (why a grid).

use crate::monitor::Monitor;
use crate::{Error, Result};

/// Values between two looks at the monitor, which may have to wait for the interpreter: 10 to 70 ms.
const BATCH: usize = 1 << 19;

/// The largest whole number that noise is added to; beyond it values are clipped.
pub const LARGEST: i64 = 1 << 62;

/// Acts on each value until it says that the value is done.
fn for_each<T>(values: &mut [T], monitor: &mut dyn Monitor, mut act: impl FnMut(&mut T) -> Result<bool>) -> Result<()> {
    let total = values.len() as u64;
    for (batch, part) in values.chunks_mut(BATCH).enumerate() {
        if batch > 0 {
            monitor.tick((batch * BATCH) as u64, total)?;
        }
        let mut done = 0;
        while let Some(value) = part.get_mut(done) {
            done += usize::from(act(value)?);
        }
    }
    Ok(())
}

/// Clips each value to `[lower, upper]`, within +-2^62, and adds what `noise` draws; an attempt that says it is none adds zero.
///
/// # Errors
/// [`Error::Domain`] if the bounds are not in order; whatever `noise` or the monitor returned.
pub fn add_whole(
    values: &mut [i64],
    (lower, upper): (i64, i64),
    mut noise: impl FnMut() -> Result<(i64, bool)>,
    monitor: &mut dyn Monitor,
) -> Result<()> {
    Error::require(lower <= upper, "lower", lower, "at most `upper`")?;
    let (lower, upper) = (lower.clamp(-LARGEST, LARGEST), upper.clamp(-LARGEST, LARGEST));
    for_each(values, monitor, |value| {
        // Both fit 63 bits, so their sum fits 64.
        let (draw, done) = noise()?;
        *value = (*value).clamp(lower, upper) + draw;
        Ok(done)
    })
}

/// Clips each value to `[lower, upper]`, rounds it to a multiple of `step`, and adds as many steps as `noise` draws.
///
/// # Errors
/// [`Error::Domain`] unless the step is a power of two and the bounds are in order and within 2^53 steps; whatever `noise` or the
/// monitor returned. A NaN is released as the lower bound: callers refuse it before.
pub fn add_on_grid(
    values: &mut [f64],
    (lower, upper): (f64, f64),
    step: f64,
    mut noise: impl FnMut() -> Result<i64>,
    monitor: &mut dyn Monitor,
) -> Result<()> {
    let inverse = inverse_of_power(step)?;
    let within = (lower.abs().max(upper.abs()) * inverse) <= 2f64.powi(53);
    let requirement = "at most `upper`, and both within 2^53 grid steps of zero";
    Error::require(lower <= upper && within, "lower", lower, requirement)?;
    for_each(values, monitor, |value| {
        let clipped = value.max(lower).min(upper);
        let steps = (clipped * inverse).round_ties_even() as i64;
        *value = (steps + noise()?) as f64 * step;
        Ok(true)
    })
}

/// Adds noise to each value and rounds it to a multiple of `step`: in steps, what `draw` makes of the fraction that is cut off. Values
/// are clipped to 2^61 steps; what lies below 2^-64 steps is dropped, which moves no value by more.
///
/// # Errors
/// [`Error::Domain`] unless the step is a power of two; whatever `draw` or the monitor returned.
pub fn add_rounded(
    values: &mut [f64],
    step: f64,
    mut draw: impl FnMut(u64) -> Result<i64>,
    monitor: &mut dyn Monitor,
) -> Result<()> {
    let inverse = inverse_of_power(step)?;
    for_each(values, monitor, |value| {
        let (whole, fraction) = cut(*value * inverse);
        *value = (whole + draw(fraction)?) as f64 * step;
        Ok(true)
    })
}

/// The floor of a number of at most 2^61 and its fraction in units of 2^-64, both of the number cut towards zero to such a unit.
///
/// The fraction is taken of the absolute value: `steps - floor(steps)` of a small negative number would be rounded to 2^-53.
#[inline]
fn cut(steps: f64) -> (i64, u64) {
    let most = 2f64.powi(61);
    let steps = steps.clamp(-most, most);
    let size = steps.abs();
    let whole = size.trunc();
    let fraction = ((size - whole) * 2f64.powi(64)) as u64;
    if steps < 0.0 {
        (-(whole as i64) - i64::from(fraction > 0), fraction.wrapping_neg())
    } else {
        (whole as i64, fraction)
    }
}

/// The inverse of a power of two between 2^-1000 and 2^1000.
fn inverse_of_power(step: f64) -> Result<f64> {
    let power =
        step > 0.0 && step.to_bits() & ((1 << 52) - 1) == 0 && (2f64.powi(-1000)..=2f64.powi(1000)).contains(&step);
    Error::require(power, "step", step, "a power of two")?;
    Ok(1.0 / step)
}

#[cfg(test)]
mod tests {
    use super::super::noise::{Decay, GeometricNoise};
    use super::super::normal::RoundedNormal;
    use super::super::source::Generator;
    use super::*;
    use crate::monitor::Silent;

    fn noise(denominator: u64) -> GeometricNoise {
        GeometricNoise::new(Decay::Exponential { numerator: 1, denominator }).unwrap()
    }

    fn hardly_any() -> GeometricNoise {
        GeometricNoise::new(Decay::Exponential { numerator: 4000, denominator: 1 }).unwrap()
    }

    #[test]
    fn values_outside_their_bounds_are_clipped_one_by_one() {
        let mut source = Generator::insecure([1, 2]);
        let mut values = [-5, 3, 99, i64::MAX, i64::MIN];
        add_whole(&mut values, (0, 10), || hardly_any().attempt(&mut source), &mut Silent).unwrap();
        assert_eq!(values, [0, 3, 10, 10, 0]);
        let mut values = [i64::MAX, i64::MIN];
        add_whole(&mut values, (i64::MIN, i64::MAX), || hardly_any().attempt(&mut source), &mut Silent).unwrap();
        assert_eq!(values, [LARGEST, -LARGEST]);
        let mut values = [-7.0, 0.3, 1e300, f64::INFINITY, f64::NAN];
        add_on_grid(&mut values, (-1.0, 2.0), 0.25, || hardly_any().draw(&mut source), &mut Silent).unwrap();
        assert_eq!(values, [-1.0, 0.25, 2.0, 2.0, -1.0]);
        let normal = RoundedNormal::new(2f64.powi(-10)).unwrap();
        let mut values = [1e300, -1e300, 0.75 + 1e-4, -1e-300];
        add_rounded(&mut values, 0.25, |fraction| normal.draw(fraction, &mut source), &mut Silent).unwrap();
        assert_eq!(values, [2f64.powi(59), -(2f64.powi(59)), 0.75, 0.0]);
    }

    #[test]
    fn inputs_are_cut_to_the_unit_that_the_comment_says_on_both_sides() {
        let unit = 2f64.powi(-64);
        for (steps, exact) in [
            (0.75, (0, 3 << 62)),
            (-0.75, (-1, 1 << 62)),
            (3.0 * unit, (0, 3)),
            (-3.0 * unit, (-1, 0u64.wrapping_sub(3))),
            (-0.5 * unit, (0, 0)),
            (-5.0, (-5, 0)),
            (-1e300, (-(1i64 << 61), 0)),
        ] {
            assert_eq!(cut(steps), exact, "{steps:e}");
        }
    }

    #[test]
    fn released_floats_are_multiples_of_the_step() {
        let mut source = Generator::insecure([1, 3]);
        let mut values = vec![0.1; 2000];
        let noise = noise(1 << 20);
        add_on_grid(&mut values, (0.0, 1.0), 2f64.powi(-20), || noise.draw(&mut source), &mut Silent).unwrap();
        assert!(values.iter().all(|z| (z * 2f64.powi(20)).fract() == 0.0));
        let normal = RoundedNormal::new(1.5 * 2f64.powi(20)).unwrap();
        add_rounded(&mut values, 2f64.powi(-19), |fraction| normal.draw(fraction, &mut source), &mut Silent).unwrap();
        assert!(values.iter().all(|z| (z * 2f64.powi(19)).fract() == 0.0));
    }

    #[test]
    fn steps_and_bounds_that_do_not_fit_are_refused() {
        let mut source = Generator::insecure([1, 3]);
        let mut release =
            |bounds, step| add_on_grid(&mut [1.0], bounds, step, || noise(1).draw(&mut source), &mut Silent);
        assert!(release((0.0, 1.0), 0.3).is_err() && release((0.0, 1.0), f64::NAN).is_err());
        assert!(release((1.0, 0.0), 0.5).is_err() && release((0.0, 1e17), 0.5).is_err());
        assert!(release((f64::NAN, 1.0), 0.5).is_err());
        assert!(add_whole(&mut [1], (1, 0), || noise(1).attempt(&mut source), &mut Silent).is_err());
    }
}
