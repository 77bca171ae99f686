//! The registry: each lattice with an operator between rows, its names, its sizes, and its engine.
//!
//! A lattice with an operator of its own is a file with a [`RowOperator`] and a line here.

use crate::diagonal::{DiagonalRow, Diagonals};
use crate::four_eight_eight::DiamondColumn;
use crate::monitor::Progress;
use crate::square::SquareRow;
use crate::strip::{RowOperator, Strip};
use crate::transfer::AnyRing;
use crate::{Boundary, Result};

macro_rules! registry {
    ($($(#[$doc:meta])* $kind:ident, $name:literal: $row:ty, $links:expr, $label:literal, $nanoseconds:literal;)*) => {
        /// The lattices with an operator of their own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum StripKind {
            $($(#[$doc])* $kind,)*
        }

        impl StripKind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// The name of its engine, for a forecast.
            pub fn engine_name(self) -> &'static str {
                match self { $(Self::$kind => $label,)* }
            }

            /// The measured nanoseconds of one addition of one residue, eight lanes on one thread (`benches/counting.rs`).
            ///
            /// Hardly any of it depends on the size: the engines work in blocks that fit the caches.
            pub fn nanoseconds(self) -> f64 {
                match self { $(Self::$kind => $nanoseconds,)* }
            }

            /// Vertices of a section.
            pub fn vertices(self, rows: usize, cols: usize, boundary: Boundary) -> usize {
                match self { $(Self::$kind => <$row>::vertices(rows, cols, boundary),)* }
            }

            /// A size no independent set of a section exceeds.
            pub fn largest_set(self, rows: usize, cols: usize, boundary: Boundary) -> usize {
                match self { $(Self::$kind => <$row>::largest_set($links, rows, cols, boundary),)* }
            }

            /// The extents of a section that holds the half of one, up to the vector in its middle.
            pub fn half(self, rows: usize, cols: usize, boundary: Boundary) -> (usize, usize) {
                match self { $(Self::$kind => <$row>::half(rows, cols, boundary),)* }
            }

            /// Sections without the edges between them, and how many further edges lie between their vertices.
            pub fn pieces(self, rows: usize, cols: usize, boundary: Boundary) -> (Vec<(usize, usize, Boundary)>, usize) {
                match self { $(Self::$kind => <$row>::pieces(rows, cols, boundary),)* }
            }

            /// The engine of a section, with vectors of at most so many states.
            ///
            /// # Errors
            /// [`crate::Error::Domain`] for sizes that make no lattice, [`crate::Error::TooLarge`] for one no memory could
            /// hold, [`crate::Error::Interrupted`] when told to stop.
            pub fn engine(
                self,
                rows: usize,
                cols: usize,
                boundary: Boundary,
                states: usize,
                progress: &Progress,
            ) -> Result<Box<dyn AnyRing>> {
                Ok(match self {
                    $(Self::$kind => Box::new(Strip::<$row>::with_links($links, rows, cols, boundary, states, progress)?),)*
                })
            }
        }
    };
}

// Its name, its operator with the member of the family, the name of the engine, nanoseconds of an addition.
registry! {
    /// Four neighbours.
    Square, "square": SquareRow, (), "square butterfly", 0.18;
    /// The square lattice with both diagonals of every cell.
    King, "king": DiagonalRow, Diagonals::Both, "one-site", 0.16;
    /// The square lattice with the diagonal from (r, c) to (r+1, c+1).
    Triangular, "triangular": DiagonalRow, Diagonals::Falling, "one-site", 0.18;
    /// The truncated square tiling; its extents count octagons.
    FourEightEight, "4-8-8": DiamondColumn, (), "4-8-8 columns", 0.21;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::residue::primes;
    use crate::strip::Rows;
    use crate::strip::tests::assert_alike_at_every_level;
    use crate::transfer::{Point, Transfer, evaluate_lanes};

    /// Asserts that counts with bundled seams are those without.
    fn check_bundles<O: RowOperator>(links: O::Links, width: usize, ring: bool, rows: u64, what: &str) {
        let progress = Progress::default();
        let plain = Strip::<O>::along(links, width, ring, Rows::Closed(rows), usize::MAX, &progress).unwrap();
        let mut bundled = plain.clone();
        bundled.for_counts(&progress).unwrap();
        let work = |engine: &Strip<O>| (0..engine.steps()).map(|step| engine.work(step)).sum::<u64>();
        assert!(work(&bundled) < work(&plain), "{what}: {} {}", work(&bundled), work(&plain));
        let points: Vec<Point> = primes(8).unwrap().into_iter().map(|modulus| Point::new(modulus, 1)).collect();
        assert_alike_at_every_level(&plain, &bundled, &points, what);
        // Missing lanes repeat the last point.
        for few in [1, 2, 3, 5] {
            let [expected, found] =
                [&plain, &bundled].map(|engine| evaluate_lanes::<8>(engine, &points[..few], &progress).unwrap());
            assert_eq!(found, expected, "{what}, {few} points");
        }
        // A polynomial is evaluated at other activities.
        let points: Vec<Point> = (1..=8).map(|activity| Point::new(points[0].modulus, activity)).collect();
        let [expected, found] =
            [&plain, &bundled].map(|engine| evaluate_lanes::<8>(engine, &points, &progress).unwrap());
        assert_eq!(found, expected, "{what}, activities");
        let slower = |points, lanes| bundled.slower(points, lanes);
        assert!(slower(8, 8) == 1.0 && slower(1, 4) < slower(4, 4) && slower(4, 4) < slower(1, 1), "{what}");
    }

    #[test]
    fn seams_side_by_side_have_the_terms_of_seams_alone() {
        // Some end where one residue tells all numbers, or two, or four, or more; in the middle of a row, or of two.
        for (width, ring, rows) in [
            (5, true, 4),
            (6, true, 9),
            (8, false, 12),
            (9, true, 10),
            (7, true, 23),
            (7, true, 60),
            (8, true, 61),
            (4, false, 200),
            (12, true, 12),
            (11, true, 13),
        ] {
            let what = format!("{width} {ring} {rows}");
            check_bundles::<SquareRow>((), width, ring, rows, &format!("square {what}"));
            check_bundles::<DiagonalRow>(Diagonals::Both, width, ring, rows, &format!("king {what}"));
            check_bundles::<DiagonalRow>(Diagonals::Falling, width, ring, rows, &format!("triangular {what}"));
        }
    }

    #[test]
    fn lattices_with_seams_of_their_own_are_not_bundled() {
        let progress = Progress::default();
        let mut torus = Strip::<DiamondColumn>::with_links((), 5, 5, Boundary::Torus, usize::MAX, &progress).unwrap();
        let (len, steps) = (torus.len(), torus.steps());
        torus.for_counts(&progress).unwrap();
        assert_eq!((torus.len(), torus.steps()), (len, steps));
    }
}
