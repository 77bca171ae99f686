//! How a finite lattice ends.

use crate::{Error, Result};

/// How a finite lattice ends. A cylinder closes the second axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Boundary {
    /// Both axes open.
    Free,
    /// The first axis open, the second closed: the second extent is the circumference.
    Cylinder,
    /// Both axes closed.
    Torus,
}

impl Boundary {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Free, Self::Cylinder, Self::Torus];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Cylinder => "cylinder",
            Self::Torus => "torus",
        }
    }

    /// The boundary of that name: `free`, `cylinder` or `torus`.
    ///
    /// # Errors
    /// [`Error::Domain`] for any other word.
    pub fn named(name: &str) -> Result<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|boundary| boundary.name() == name)
            .ok_or_else(|| Error::domain("boundary", format!("{name:?}"), "\"free\", \"cylinder\" or \"torus\""))
    }

    /// Which axes are closed.
    pub fn closed(self) -> [bool; 2] {
        [self == Self::Torus, self != Self::Free]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_have_three_names() {
        assert_eq!(Boundary::named("free").unwrap().closed(), [false, false]);
        assert_eq!(Boundary::named("cylinder").unwrap().closed(), [false, true]);
        assert_eq!(Boundary::named("torus").unwrap().closed(), [true, true]);
        assert!(Boundary::named("open").is_err());
    }
}
