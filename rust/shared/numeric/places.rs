//! Places of what a test holds for, listed without a jump that could be guessed wrong.

use super::dispatch::Level;
use super::floats::{FloatWork, Floats, LANES, float_work};

/// Lists the places of the values that a test holds for, the first of which has a place, and says how many these are. The list has
/// room for eight more than that.
#[inline]
pub fn places_of<T: Copy>(
    level: Level,
    values: &[T],
    first: u32,
    list: &mut [u32],
    holds: impl Fn(T) -> bool + Copy,
) -> usize {
    float_work(level, Places { values, first, list, holds })
}

struct Places<'a, T, H> {
    values: &'a [T],
    first: u32,
    list: &'a mut [u32],
    holds: H,
}

impl<T: Copy, H: Fn(T) -> bool + Copy> FloatWork for Places<'_, T, H> {
    type Output = usize;

    #[inline(always)]
    fn run<F: Floats>(self, f: F) -> usize {
        let Self { values, first, list, holds } = self;
        let (eights, rest) = values.as_chunks::<LANES>();
        let (mut found, mut place) = (0, first);
        for eight in eights {
            let mut kept = [0; LANES];
            kept.iter_mut().zip(eight).for_each(|(kept, &value)| *kept = u64::from(holds(value)));
            found += f.places(f.load_words(&kept), place, room(list, found));
            place += LANES as u32;
        }
        if !rest.is_empty() {
            let mut kept = [0; LANES];
            kept.iter_mut().zip(rest).for_each(|(kept, &value)| *kept = u64::from(holds(value)));
            found += f.places(f.load_words(&kept), place, room(list, found));
        }
        found
    }
}

/// Eight elements of a list, from one on.
#[inline(always)]
fn room(list: &mut [u32], found: usize) -> &mut [u32; LANES] {
    list[found..].first_chunk_mut().expect("room for eight more")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn places_are_those_of_a_filter(values in prop::collection::vec(0..9u32, 0..70), least in 0..9u32) {
            for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
                let mut list = vec![0; values.len() + LANES];
                let found = places_of(level, &values, 7, &mut list, |value| value >= least);
                let due = (7..).zip(&values).filter(|(_, value)| **value >= least).map(|(place, _)| place);
                prop_assert!(list[..found].iter().copied().eq(due));
            }
        }
    }
}
