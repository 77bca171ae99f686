//! The hard-core partition function `Z(z)` at a rational activity, exactly, or at a float with a proved error.
//!
//! For `z = a/b` in lowest terms and no independent set larger than d, `b^d Z(a/b)` is an integer: evaluated modulo primes at
//! the residue of `a/b`, recombined in the symmetric range when a is negative.

use super::count::{bound, combine_verified, most_states, primes_beyond};
use super::polynomial::largest_set_bound;
use super::{Engine, Problem};
use crate::counting::evaluation::{self, GRAIN, Options};
use crate::counting::transfer::{Point, Transfer, Weight, evaluate};
use crate::monitor::{Monitor, Watch};
use crate::numeric::residue::{self, Modulus};
use crate::numeric::ring::{Real, Wide, WideNumber};
use crate::{Error, Result, parallel};
use num_bigint::{BigInt, BigUint, Sign};

/// `Z(numerator / denominator)` as a fraction, not necessarily in lowest terms.
///
/// # Errors
/// [`Error::Domain`] for a zero denominator; otherwise as [`super::count_independent_sets`].
pub fn hard_core_rational(
    problem: &Problem,
    numerator: &BigInt,
    denominator: &BigUint,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<(BigInt, BigUint)> {
    if *denominator == BigUint::ZERO {
        return Err(Error::Domain { name: "activity", value: "a zero denominator".into(), requirement: "a number" });
    }
    let engine = Engine::new(problem, most_states(options))?;
    let degree = largest_set_bound(problem, &engine) as u32;
    let negative = numerator.sign() == Sign::Minus;
    let bits = match size(numerator.magnitude(), denominator) {
        Some(activity) => bound(problem, activity, &engine, options, monitor)?,
        None => (problem.vertices() as u64 * (numerator.bits() + 1)) as f64,
    };
    let bits = bits + f64::from(degree) * denominator.bits() as f64 + 1.0;
    let mut primes = primes_beyond(bits)?;
    // A prime that divides the denominator cannot be used; each one takes up at least 54 bits of it.
    let extra = (denominator.bits() / 54) as usize;
    primes = residue::primes(primes.len() + extra)?
        .into_iter()
        .filter(|prime| prime.residue_of(denominator) != 0)
        .take(primes.len())
        .collect();
    let point = |&modulus: &Modulus| {
        let magnitude = modulus.residue_of(numerator.magnitude());
        let signed = if negative && magnitude > 0 { modulus.value() - magnitude } else { magnitude };
        let inverse = modulus.inverse(modulus.residue_of(denominator));
        Point { modulus, activity: modulus.residue(modulus.mul(signed, inverse)) }
    };
    let points: Vec<Point> = primes.iter().map(point).collect();
    let values = evaluation::residues(&engine, &problem.description(), &points, options, monitor)?;
    let scale = |(prime, value): (&Modulus, u64)| {
        let power = prime.pow(prime.residue_of(denominator), u64::from(degree));
        prime.residue(prime.mul(power, value))
    };
    let residues: Vec<u64> = primes.iter().zip(values).map(scale).collect();
    Ok((combine_signed(&primes, &residues, negative)?, denominator.pow(degree)))
}

/// The number with these residues, from the symmetric range if it may be negative.
fn combine_signed(primes: &[Modulus], residues: &[u64], signed: bool) -> Result<BigInt> {
    if !signed {
        return Ok(combine_verified(primes, residues)?.into());
    }
    // Shifted up by half the range, the number is not negative and the spare prime verifies it as any other.
    let half: BigUint = primes[..primes.len() - 1].iter().map(|p| BigUint::from(p.value())).product::<BigUint>() >> 1;
    let shifted: Vec<u64> =
        primes.iter().zip(residues).map(|(prime, &r)| prime.residue(r + prime.residue_of(&half))).collect();
    Ok(BigInt::from(combine_verified(primes, &shifted)?) - BigInt::from(half))
}

/// A double no smaller than the quotient; `None` beyond the range of doubles.
fn size(numerator: &BigUint, denominator: &BigUint) -> Option<f64> {
    let quotient = (numerator << 64u32) / denominator + 1u32;
    let bits = quotient.bits();
    if bits > 1000 {
        return None;
    }
    let shift = bits.saturating_sub(60);
    let leading = ((&quotient >> shift) + 1u32).iter_u64_digits().next().unwrap_or(0);
    Some(leading as f64 * (1.0 + f64::EPSILON) * 2f64.powi(shift as i32 - 64))
}

/// A partition function in floating point, `mantissa * 2^exponent`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloatValue {
    /// Zero or in `[1, 2)`.
    pub mantissa: f64,
    /// The power of two.
    pub exponent: i64,
    /// A proved bound on the relative error.
    pub relative_error: f64,
}

/// `Z(activity)` in floating point for `activity >= 0`, where every term is positive and the error can be proved.
///
/// # Errors
/// [`Error::Domain`] for a negative or non-finite activity; otherwise as [`super::count_independent_sets`].
pub fn hard_core_float(
    problem: &Problem,
    activity: f64,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<FloatValue> {
    if !(activity >= 0.0 && activity.is_finite()) {
        let requirement = "finite and not negative in floating point";
        return Err(Error::Domain { name: "activity", value: activity.to_string(), requirement });
    }
    let engine = Engine::new(problem, most_states(options) / 2)?;
    let needed = 16 * engine.len() as u128;
    if needed > u128::from(options.memory_limit) {
        let limit = u128::from(options.memory_limit);
        return Err(Error::TooLarge { what: "the vector of partial sums", needed, limit });
    }
    let overflows = problem.vertices() as f64 * (1.0 + activity).log2() > 1000.0;
    let run = |watch: &Watch| {
        if overflows {
            evaluate(&engine, &Weight::new(Wide, WideNumber::new(activity)), watch)
        } else {
            evaluate(&engine, &Weight::new(Real, activity), watch).map(WideNumber::new)
        }
    };
    let total = evaluation::work(&engine);
    let value = if engine.len() <= GRAIN {
        let value = parallel::run_here(total, run)?;
        monitor.tick(total, total)?;
        Ok(value)
    } else {
        parallel::run(options.threads, total, monitor, run)
    }?;
    let roundings = engine.roundings() as f64;
    Ok(FloatValue {
        mantissa: value.mantissa,
        exponent: value.exponent,
        relative_error: (roundings * 2f64.powi(-53) * 1.01).exp_m1(),
    })
}
