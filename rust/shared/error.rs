//! The one error type of the core: few variants, each with the facts a good sentence needs; and how arguments are refused.

use std::fmt::Display;

/// What every fallible function of the core returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a forecast ends at: larger numbers are not counted out.
pub const COUNTLESS: u128 = 1 << 127;

/// Bytes of a vector over all subsets of so many things; `COUNTLESS` at the most.
pub fn subsets_bytes(things: u32) -> u128 {
    1 << things.saturating_add(3).min(127)
}

/// The verb of what asked for memory: the subject is what stands before the first preposition, and "states" is a plural.
fn verb(what: &str) -> &'static str {
    let prepositions = ["of", "from", "for", "in", "on", "by", "with", "around"];
    let subject = what.split(' ').take_while(|word| !prepositions.contains(word)).last();
    if subject.is_some_and(|word| word.ends_with('s') && !word.ends_with("ss")) { "need" } else { "needs" }
}

/// A number of bytes in words.
fn amount(bytes: u128) -> String {
    if bytes == COUNTLESS { "at least 2^127".into() } else { bytes.to_string() }
}

/// Why a computation was refused or stopped.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument lies outside its domain.
    #[error("`{name}` must be {requirement}, got {value}")]
    Domain {
        /// The argument, as the user wrote it.
        name: &'static str,
        /// The value found, printed.
        value: String,
        /// The rule, completing "must be ...".
        requirement: &'static str,
    },
    /// Two arguments do not fit together.
    #[error("`{name}` must have shape {expected}, got {found}")]
    Shape {
        /// The argument, as the user wrote it.
        name: &'static str,
        /// The shape that would fit.
        expected: String,
        /// The shape found.
        found: String,
    },
    /// The job is larger than the stated limit.
    #[error("{what} {} {} bytes, the limit is {limit} bytes", verb(what), amount(*.needed))]
    TooLarge {
        /// What asked for the memory.
        what: &'static str,
        /// Bytes needed.
        needed: u128,
        /// Bytes allowed.
        limit: u128,
    },
    /// An iteration ended without reaching its tolerance.
    #[error("{what} did not converge in {iterations} iterations (residual {residual:e})")]
    NoConvergence {
        /// The iteration.
        what: &'static str,
        /// Iterations done.
        iterations: u64,
        /// What was left.
        residual: f64,
    },
    /// A file could not be read or written, or does not belong to this job.
    #[error("{what} {path}: {reason}")]
    File {
        /// What the file is for.
        what: &'static str,
        /// Its path.
        path: String,
        /// What went wrong.
        reason: String,
    },
    /// A result contradicts its own check: a fault of the machine or of this program, never of the input.
    #[error("{what} failed its own check: {detail}")]
    Check {
        /// The result that was checked.
        what: &'static str,
        /// How it failed.
        detail: String,
    },
    /// The time the caller allowed is over.
    #[error("{what} did not end within {seconds} seconds")]
    TimeLimit {
        /// The work.
        what: &'static str,
        /// Seconds allowed.
        seconds: f64,
    },
    /// The monitor asked the kernel to stop.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// The refusal of an argument outside its domain.
    #[cold]
    pub fn domain(name: &'static str, value: impl Display, requirement: &'static str) -> Self {
        Self::Domain { name, value: value.to_string(), requirement }
    }

    /// The refusal of an argument that does not fit others.
    #[cold]
    pub fn shape(name: &'static str, expected: impl Display, found: impl Display) -> Self {
        Self::Shape { name, expected: expected.to_string(), found: found.to_string() }
    }

    /// Refuses an argument unless it is as it must be. A condition is written so that it does not hold of NaN.
    ///
    /// # Errors
    /// [`Error::Domain`]
    #[inline]
    pub fn require(holds: bool, name: &'static str, value: impl Display, requirement: &'static str) -> Result<()> {
        if holds { Ok(()) } else { Err(Self::domain(name, value, requirement)) }
    }

    /// Refuses the first of some values that is not as all must be.
    ///
    /// # Errors
    /// [`Error::Domain`]
    #[inline]
    pub fn require_all<T: Copy + Display>(
        values: &[T],
        holds: impl Fn(T) -> bool,
        name: &'static str,
        requirement: &'static str,
    ) -> Result<()> {
        values.iter().try_for_each(|&value| Self::require(holds(value), name, value, requirement))
    }

    /// Refuses an array of another shape; one of another number of dimensions, lent flat, if it has another number of entries.
    ///
    /// # Errors
    /// [`Error::Shape`]
    pub fn require_shape<const N: usize, const M: usize>(
        name: &'static str,
        expected: [usize; N],
        found: [usize; M],
    ) -> Result<()> {
        let entries = |shape: &[usize]| shape.iter().try_fold(1, |all: usize, &extent| all.checked_mul(extent));
        let flat = N != M && entries(&expected).is_some() && entries(&expected) == entries(&found);
        let printed = |shape: &[usize]| {
            if let [one] = shape {
                format!("({one},)")
            } else {
                format!("{shape:?}").replace('[', "(").replace(']', ")")
            }
        };
        let fits = flat || expected[..] == found[..];
        if fits { Ok(()) } else { Err(Self::shape(name, printed(&expected), printed(&found))) }
    }

    /// How many rows of a width a flat array has.
    ///
    /// # Errors
    /// [`Error::Shape`] where it does not end with a row.
    pub fn require_rows(name: &'static str, width: usize, len: usize) -> Result<usize> {
        let rows = if len.is_multiple_of(width) { len.checked_div(width) } else { None };
        rows.ok_or_else(|| Self::shape(name, format_args!("(rows, {width})"), format_args!("({len},)")))
    }

    /// The same with the caller's limit, where a forecast of vectors of eight bytes ended at a number of states, or at what
    /// no memory holds; of `vectors` such vectors side by side.
    pub fn under(self, states: usize, vectors: u64, allowed: u64) -> Self {
        let Self::TooLarge { what, needed, limit } = self else { return self };
        let (needed, own) = (needed.saturating_mul(vectors.into()), limit.saturating_mul(vectors.into()));
        let is_callers = limit == 8 * states as u128;
        let limit = if is_callers { allowed.into() } else { own.min(allowed.into()) };
        Self::TooLarge { what, needed, limit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forecast_that_ended_early_names_the_limit_of_the_caller() {
        let refused = |needed, limit| Error::TooLarge { what: "a vector", needed, limit };
        assert_eq!(refused(90, 80).under(10, 1, 83), refused(90, 83), "whole states of a limit");
        assert_eq!(refused(90, 80).under(10, 2, 167), refused(180, 167), "two vectors share it");
        assert_eq!(refused(1 << 50, 1 << 43).under(10, 1, 83), refused(1 << 50, 83), "what no memory holds");
        assert_eq!(refused(90, 50).under(10, 1, 83), refused(90, 50), "what the system leaves");
        assert_eq!(Error::Interrupted.under(1, 1, 1), Error::Interrupted);
        assert_eq!([0, 60, 123].map(subsets_bytes), [8, 8 << 60, 1 << 126]);
        assert_eq!([124, 125, 128, u32::MAX].map(subsets_bytes), [COUNTLESS; 4], "no bit is lost at the end");
        let said = refused(COUNTLESS, 83).to_string();
        assert_eq!(said, "a vector needs at least 2^127 bytes, the limit is 83 bytes");
        assert_eq!(refused(90, 83).to_string(), "a vector needs 90 bytes, the limit is 83 bytes");
    }

    #[test]
    fn what_does_not_hold_is_refused_with_what_was_found() {
        let said = |refused: Result<()>| refused.unwrap_err().to_string();
        assert_eq!(Error::require(true, "rate", 1, "positive"), Ok(()));
        let nothing = f64::NAN;
        let refused = Error::require(nothing > 0.0, "rate", nothing, "positive");
        assert_eq!(said(refused), "`rate` must be positive, got NaN");
        let all = |values: &[f64]| Error::require_all(values, |x| x > 0.0, "rates", "positive");
        assert_eq!((all(&[]), all(&[1.0, 2.0])), (Ok(()), Ok(())));
        assert_eq!(said(all(&[1.0, -0.5, -2.0])), "`rates` must be positive, got -0.5");
        assert_eq!(Error::require_shape("x", [2, 3], [6]), Ok(()));
        assert_eq!(said(Error::require_shape("x", [2, 3], [3, 2])), "`x` must have shape (2, 3), got (3, 2)");
        assert_eq!(said(Error::require_shape("x", [4], [5])), "`x` must have shape (4,), got (5,)");
        assert!(Error::require_shape("x", [usize::MAX, 2], [usize::MAX - 1]).is_err());
        assert_eq!(Error::require_rows("x", 3, 6), Ok(2));
        let odd = Error::require_rows("x", 0, 6).unwrap_err().to_string();
        assert_eq!(odd, "`x` must have shape (rows, 0), got (6,)");
    }

    #[test]
    fn a_refusal_has_the_verb_of_its_subject() {
        for what in
            ["a list of primes", "the table of all distances", "planning the count on a graph", "a family's table"]
        {
            assert_eq!(verb(what), "needs", "{what}");
        }
        for what in ["the states of the matchings", "the edges of a lattice", "draws from a ball", "the draws"] {
            assert_eq!(verb(what), "need", "{what}");
        }
        let refusal = Error::TooLarge { what: "the states of the matchings", needed: 90, limit: 83 };
        assert_eq!(refusal.to_string(), "the states of the matchings need 90 bytes, the limit is 83 bytes");
    }
}
