//! Sums of twice the working precision, so that a mean of equal numbers is that number, bit for bit.
//!
//! TwoSum (Knuth): s = fl(a + b), and a + b = s + e exactly. A sum keeps s and adds up the errors e. For up to 2^40 terms
//! of one sign the relative error of s + e is below 2^-60, so the rounded mean of n equal numbers is exact.
//!
//! Source: T. Ogita, S. Rump, S. Oishi (2005), Accurate sum and dot product, SIAM J. Sci. Comput. 26 (algorithm Sum2).

/// The rounded sum and what rounding lost.
#[inline(always)]
pub fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// A running sum: its leading part and the errors left over.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CompensatedSum {
    high: f64,
    low: f64,
}

impl CompensatedSum {
    /// A sum whose two parts were kept elsewhere.
    #[inline(always)]
    pub fn of(high: f64, low: f64) -> Self {
        Self { high, low }
    }

    /// Adds one number.
    #[inline(always)]
    pub fn add(&mut self, value: f64) {
        let (high, error) = two_sum(self.high, value);
        self.high = high;
        self.low += error;
    }

    /// Adds another sum.
    #[inline(always)]
    pub fn merge(&mut self, other: Self) {
        self.add(other.high);
        self.low += other.low;
    }

    /// The rounded mean of `count` numbers that were added.
    #[inline]
    pub fn mean(self, count: f64) -> f64 {
        let (high, low) = two_sum(self.high, self.low);
        let quotient = high / count;
        // One step of Newton: the remainder high - quotient count is exact where neither part underflows.
        let (product, error) = two_product(quotient, count);
        quotient + (((high - product) - error) + low) / count
    }
}

/// The rounded product and what rounding lost, without a fused instruction (Dekker).
#[inline]
fn two_product(a: f64, b: f64) -> (f64, f64) {
    const SPLIT: f64 = 134_217_729.0; // 2^27 + 1
    let halves = |x: f64| {
        let scaled = SPLIT * x;
        let high = scaled - (scaled - x);
        (high, x - high)
    };
    let (product, (a1, a2), (b1, b2)) = (a * b, halves(a), halves(b));
    (product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_mean_of_equal_numbers_is_that_number(value in 0.0..1.0f64, scale in 0..300i32, count in 1..5000usize) {
            let value = value * 10f64.powi(-scale);
            let mut sum = CompensatedSum::default();
            (0..count).for_each(|_| sum.add(value));
            prop_assert_eq!(sum.mean(count as f64).to_bits(), value.to_bits());
        }

        #[test]
        fn a_sum_does_not_depend_on_how_it_is_split(values in prop::collection::vec(0.0..1.0f64, 2..200), at in 0..200usize) {
            let (left, right) = values.split_at(at % values.len());
            let total = |values: &[f64]| values.iter().fold(CompensatedSum::default(), |mut sum, &x| { sum.add(x); sum });
            let mut merged = total(left);
            merged.merge(total(right));
            prop_assert!((merged.mean(1.0) - total(&values).mean(1.0)).abs() <= f64::EPSILON * merged.mean(1.0));
        }
    }

    #[test]
    fn the_smallest_numbers_have_an_exact_mean_too() {
        for value in [f64::from_bits(1), f64::from_bits(3), f64::MIN_POSITIVE, 1e-310] {
            let mut sum = CompensatedSum::default();
            (0..7).for_each(|_| sum.add(value));
            assert_eq!(sum.mean(7.0), value);
        }
    }
}
