//! Sums of doubles without rounding, so that they can be taken in any order and in any parts.
//!
//! A sum is `sum_i limbs[i] 2^(32 i - 1074)`, over the whole range of doubles: an addend is a whole multiple of 2^-1074 and goes into
//! three limbs, and sums of two parts are sums of limbs. Limbs are 64 bits wide for 32 bits of weight, so fewer than 2^31 addends fit.
//! Two more count what is not finite. The value is rounded once, to the nearest double, ties to even.
//!
//! Source: U. Kulisch (2013), Computer arithmetic and validity, chapter 8 (the long accumulator); the carries are put off here.

/// The limbs that have a weight.
const WEIGHTS: usize = 66;
/// Numbers that hold one sum.
pub const LIMBS: usize = WEIGHTS + 2;

/// Adds a double to a sum.
#[inline]
pub fn add(limbs: &mut [i64], x: f64) {
    let bits = x.to_bits();
    let (exponent, mut significand) = (((bits >> 52) & 0x7ff) as usize, u128::from(bits & ((1 << 52) - 1)));
    if exponent == 0x7ff {
        // What is no number is both infinities at once.
        limbs[WEIGHTS] += i64::from(x != f64::NEG_INFINITY);
        limbs[WEIGHTS + 1] += i64::from(x != f64::INFINITY);
        return;
    }
    if exponent > 0 {
        significand |= 1 << 52;
    }
    let place = exponent.max(1) - 1;
    significand <<= place % 32;
    for (part, limb) in (0..3).zip(&mut limbs[place / 32..]) {
        let digit = (significand >> (32 * part)) as u32;
        *limb += if bits >> 63 == 0 { i64::from(digit) } else { -i64::from(digit) };
    }
}

/// The value of a sum.
pub fn value(limbs: &[i64]) -> f64 {
    match (limbs[WEIGHTS], limbs[WEIGHTS + 1]) {
        (0, 0) => {}
        (_, 0) => return f64::INFINITY,
        (0, _) => return f64::NEG_INFINITY,
        _ => return f64::NAN,
    }
    let limbs = &limbs[..WEIGHTS];
    let Some(last) = limbs.iter().rposition(|&limb| limb != 0) else { return 0.0 };
    let first = limbs.iter().position(|&limb| limb != 0).unwrap_or(last);
    // Two's complement digits, two more than limbs; what is carried out of them has the sign.
    let digits = |sign: i64| {
        let mut digits = [0u32; WEIGHTS + 2];
        let mut carry = 0;
        for (digit, limb) in digits[first..].iter_mut().zip(limbs[first..=last].iter().chain(&[0, 0])) {
            carry += sign * limb;
            (*digit, carry) = (carry as u32, carry >> 32);
        }
        (digits, carry)
    };
    let (found, carry) = digits(1);
    let (digits, sign) = if carry < 0 { (digits(-1).0, -1.0) } else { (found, 1.0) };
    let Some(top) = digits.iter().rposition(|&digit| digit > 0) else { return 0.0 };
    // 65 bits at the least, and whether there is anything below them: enough to round by.
    let low = top.saturating_sub(2);
    let head = (low..=top).rev().fold(0u128, |head, i| (head << 32) | u128::from(digits[i]));
    let rest = u128::from(digits[..low].iter().any(|&digit| digit > 0));
    sign * (head | rest) as f64 * power(32 * low as i32 - 1074)
}

/// 2^n, of which no less than 2^-1074 is asked for.
fn power(n: i32) -> f64 {
    f64::from_bits(if n < -1022 { 1 << (n + 1074) } else { ((n + 1023) as u64) << 52 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(numbers: &[f64]) -> f64 {
        let mut limbs = [0; LIMBS];
        numbers.iter().for_each(|&x| add(&mut limbs, x));
        value(&limbs)
    }

    #[test]
    fn a_number_is_its_own_sum() {
        for x in [0.0, 1.0, -1.5, 5e-324, -2.2e-308, 1e-300, 0.1, -3e200, f64::MAX, f64::MIN_POSITIVE] {
            assert_eq!(sum(&[x]), x);
        }
        assert_eq!(sum(&[f64::INFINITY, 1.0]), f64::INFINITY);
        assert_eq!(sum(&[f64::NEG_INFINITY, f64::MAX]), f64::NEG_INFINITY);
        assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan() && sum(&[f64::NAN]).is_nan());
    }

    #[test]
    fn what_cancels_is_gone_and_what_is_left_is_right() {
        assert_eq!(sum(&[1e308, 1e308, -1e308, 1e-308, -1e308]), 1e-308);
        assert_eq!(sum(&[1.0, 2f64.powi(-53), 2f64.powi(-1074)]), 1.0 + 2f64.powi(-52)); // above the tie
        assert_eq!(sum(&[1.0, 2f64.powi(-53)]), 1.0); // a tie, to even
        assert_eq!(sum(&[-1.0, 2f64.powi(-54)]), -1.0 + 2f64.powi(-54));
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
    }

    #[test]
    fn whole_numbers_add_up_in_any_order_and_parts() {
        // Origins: integers of 128 bits, and the same numbers the other way round in two parts.
        let mut state = 7u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as i64 - (1 << 52)) >> (state % 50)
        };
        let whole: Vec<i64> = (0..3000).map(|_| next()).collect();
        let numbers: Vec<f64> = whole.iter().map(|&n| n as f64 * 2f64.powi(-40)).collect();
        let expected = whole.iter().map(|&n| i128::from(n)).sum::<i128>() as f64 * 2f64.powi(-40);
        let (mut first, mut second) = ([0; LIMBS], [0; LIMBS]);
        numbers.iter().rev().take(1234).for_each(|&x| add(&mut first, x));
        numbers.iter().rev().skip(1234).for_each(|&x| add(&mut second, x));
        first.iter_mut().zip(second).for_each(|(a, b)| *a += b);
        assert_eq!((sum(&numbers), value(&first)), (expected, expected));
    }
}
