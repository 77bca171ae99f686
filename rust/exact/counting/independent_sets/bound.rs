//! A proved upper bound on the partition function: it says how many primes an exact result needs.
//!
//! Leaving out edges never lowers Z(z) for z >= 0, so a large problem is cut into pieces and the bounds multiply; a cut costs
//! about a tenth of a bit per site on it. A piece is evaluated in double precision: all terms are non-negative, so the relative
//! error is at most `(1 + 2^-53)^d - 1` with d roundings on the longest path, and the result times that is a bound.
//!
//! Source: N. Higham (2002), Accuracy and Stability of Numerical Algorithms, 2nd ed., lemma 3.1.

use super::{Boundary, Engine, Problem};
use crate::counting::evaluation::work;
use crate::counting::graph_sums::planner::Planner;
use crate::counting::transfer::{Transfer, Weight, evaluate};
use crate::monitor::Progress;
use crate::numeric::double_ring::{OPERATION_ERROR, ScaledDoubleDouble, ScaledDoubleDoubles};
use crate::numeric::ring::F64;
use crate::{Error, Result};
use num_bigint::BigInt;

/// Bits up to which "every vertex is free" is good enough: all residues of such a count fit in one group.
const TRIVIAL_BITS: f64 = 220.0;
/// Vertices up to which it always is: there is no smaller section of some lattices to cut off.
const FEW: usize = 8;
/// Bits up to which double precision is tried; it overflows at 1024, and counts have about 0.6 bits per vertex.
const DOUBLE_BITS: f64 = 1600.0;
/// States up to which a piece is evaluated rather than cut.
pub const STATES: usize = 1 << 16;

/// An upper bound on `log2 Z(activity)`, proved for every `activity >= 0`.
///
/// # Errors
/// [`crate::Error::Interrupted`] when the caller says so.
pub fn log2_bound(problem: &Problem, activity: f64, progress: &Progress) -> Result<f64> {
    // One effort for all pieces: a bound may be a little worse, but is not planned longer than the count.
    let planner = Planner::new(progress);
    let mut bits = 0.0;
    let free = |problem: &Problem| problem.vertices() as f64 * (1.0 + activity).log2();
    let is_small = free(problem) <= TRIVIAL_BITS;
    let mut open = vec![(problem.clone(), 1.0)];
    while let Some((problem, times)) = open.pop() {
        progress.check()?;
        let free = free(&problem);
        // A piece of a lattice is evaluated in no time, a piece of a graph must be planned first.
        let is_trivial = is_small || matches!(problem, Problem::Graph { .. }) && free <= TRIVIAL_BITS;
        if is_trivial || problem.vertices() <= FEW {
            bits += times * free;
        } else if let Some(found) = evaluated(&problem, activity, free, &planner)? {
            bits += times * found.min(free);
        } else {
            let (pieces, links) = cut(&problem);
            bits += times * links as f64 * (1.0 + 2.0 * activity).log2();
            match &pieces[..] {
                [one, other] if one == other => open.push((one.clone(), 2.0 * times)),
                _ => open.extend(pieces.into_iter().map(|piece| (piece, times))),
            }
        }
    }
    Ok(bits * (1.0 + 1e-12) + 1e-9)
}

/// The bound by evaluation, for a piece that is small enough.
fn evaluated(problem: &Problem, activity: f64, free: f64, planner: &Planner<'_>) -> Result<Option<f64>> {
    // A ring of one diamond is as easy as a path; any other ring is cut first.
    let open = match problem {
        Problem::Lattice { boundary: Boundary::Cylinder, cols, .. } => *cols == 1,
        Problem::Lattice { boundary, .. } => *boundary == Boundary::Free,
        Problem::Graph { .. } => true,
    };
    if !open || free > DOUBLE_BITS {
        return Ok(None);
    }
    let engine = match Engine::new(problem, STATES, planner) {
        Err(Error::Interrupted) => return Err(Error::Interrupted),
        Err(_) => return Ok(None),
        Ok(engine) => engine,
    };
    // In little memory an engine may add up many sums: then pieces are less work.
    if engine.len() > STATES || work(&engine) > STATES as u64 * problem.vertices() as u64 {
        return Ok(None);
    }
    let value = evaluate(&engine, &Weight::new(F64, activity), &Progress::default())?;
    planner.check()?;
    let error = engine.roundings() as f64 * f64::EPSILON; // twice the proved rate, for the roundings of this line
    Ok(value.is_finite().then(|| value.log2() + error * std::f64::consts::LOG2_E + 1e-12))
}

/// The bound by evaluation of an engine that is cheap, whatever the size of the number.
///
/// # Errors
/// As [`evaluate`].
fn evaluated_log2(engine: &impl Transfer, activity: f64, progress: &Progress) -> Result<f64> {
    let value = evaluate(engine, &Weight::new(ScaledDoubleDoubles, ScaledDoubleDouble::from(activity)), progress)?;
    let error = engine.roundings() as f64 * OPERATION_ERROR; // and what these lines round is below the last number here
    Ok(value.log2().max(0.0) * (1.0 + 1e-12) + error * std::f64::consts::LOG2_E + 1e-9)
}

/// The bound for a graph by the engine that will count on it; every vertex is free where that is good enough.
///
/// # Errors
/// As [`evaluate`].
pub fn graph_log2(engine: &Engine, problem: &Problem, activity: f64, progress: &Progress) -> Result<f64> {
    let free = problem.vertices() as f64 * (1.0 + activity).log2();
    if free <= TRIVIAL_BITS {
        return Ok(free * (1.0 + 1e-12) + 1e-9);
    }
    Ok(evaluated_log2(engine, activity, progress)?.min(free))
}

/// All terms together are at most `prod (|a_v| + b_v)`.
pub fn weights_log2(weights: &[[BigInt; 2]]) -> f64 {
    let size = |[empty, occupied]: &[BigInt; 2]| {
        // The logarithm of the leading 64 bits, rounded up.
        let total = empty.magnitude() + occupied.magnitude();
        let shift = total.bits().saturating_sub(60);
        let top = u64::try_from(&total >> shift).unwrap_or(u64::MAX) + 1;
        shift as f64 + (top as f64).log2()
    };
    weights.iter().map(size).sum::<f64>() * (1.0 + 1e-9) + 0.01
}

/// Pieces without the edges between them, and the number of further edges cut free of both with their two ends.
fn cut(problem: &Problem) -> (Vec<Problem>, usize) {
    match problem {
        &Problem::Lattice { kind, rows, cols, boundary } => {
            let (pieces, links) = kind.pieces(rows, cols, boundary);
            let lattice = |(rows, cols, boundary)| Problem::Lattice { kind, rows, cols, boundary };
            (pieces.into_iter().map(lattice).collect(), links)
        }
        Problem::Graph { graph, .. } => {
            let half = graph.vertices() / 2;
            let piece = |part| Problem::Graph { graph: graph.induced(part), order: None };
            ([0..half, half..graph.vertices()].map(piece).into(), 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::evaluation::Options;
    use crate::counting::independent_sets::StripKind;
    use crate::counting::independent_sets::count_independent_sets;
    use crate::monitor::Silent;

    #[test]
    fn sections_that_cannot_be_cut_have_a_bound_at_any_activity() {
        for kind in [StripKind::Square, StripKind::King, StripKind::Triangular, StripKind::FourEightEight] {
            for boundary in [Boundary::Free, Boundary::Cylinder, Boundary::Torus] {
                for (rows, cols) in [(1, 1), (2, 1), (1, 2), (2, 2), (5, 1)] {
                    let problem = Problem::Lattice { kind, rows, cols, boundary };
                    for exponent in (0..1023).step_by(31) {
                        let activity = f64::from(exponent).exp2();
                        let bound = log2_bound(&problem, activity, &Progress::default()).unwrap();
                        let free = problem.vertices() as f64 * (1.0 + activity).log2();
                        assert!(bound.is_finite() && bound <= 4.0 * free + 1.0, "{problem:?} {exponent}: {bound}");
                    }
                }
            }
        }
    }

    #[test]
    fn bounds_hold_and_are_within_a_few_bits_of_the_count() {
        use {Boundary::*, StripKind::*};
        for kind in [Square, King, Triangular, FourEightEight] {
            for (boundary, rows, cols) in
                [(Free, 16, 17), (Free, 3, 60), (Cylinder, 12, 18), (Torus, 8, 9), (Cylinder, 40, 5), (Torus, 6, 60)]
            {
                let problem = Problem::Lattice { kind, rows, cols, boundary };
                let bound = log2_bound(&problem, 1.0, &Progress::default()).unwrap();
                let count = count_independent_sets(&problem, &Options::default(), &mut Silent).unwrap();
                let bits = count.bits() as f64;
                assert!(bits - 1.0 < bound, "{problem:?}: {bits} {bound}");
                assert!(bound <= TRIVIAL_BITS.max(1.15 * bits), "{problem:?}: {bits} {bound}");
            }
        }
    }
}
