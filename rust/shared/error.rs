//! The one error type of the core: few variants, each with the facts a good sentence needs.

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
    /// An argument outside its domain.
    pub fn domain(name: &'static str, value: impl Display, requirement: &'static str) -> Self {
        Self::Domain { name, value: value.to_string(), requirement }
    }

    /// An argument that does not fit another.
    pub fn shape(name: &'static str, expected: impl Display, found: impl Display) -> Self {
        Self::Shape { name, expected: expected.to_string(), found: found.to_string() }
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
