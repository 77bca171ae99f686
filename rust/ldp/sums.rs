//! Sums of doubles, and of products of two, without rounding: the same whole number in any order and from any parts.
//!
//! A double is a whole multiple of 2^-1074, and a product of two of 2^-2148. A sum is kept in that unit as digits of base 2^32
//! in words of 64 bits, whose carries are put off: 2^29 products can be added before a digit must be carried.
//!
//! Source: U. Kulisch (2002), Advanced Arithmetic for the Digital Computer, section 1.3 (the long accumulator).

/// Digits: products of doubles lie below 2^2048, and 2^64 of them may be added.
const DIGITS: usize = 136;
/// Additions between two carries: each adds less than 2^32 to a digit, so that none leaves 62 bits.
const PUT_OFF: u32 = 1 << 29;

/// A sum in units of 2^-2148.
#[derive(Clone, Debug)]
pub struct ExactSum {
    digits: [i64; DIGITS],
    fresh: u32,
}

/// The whole number below 2^53 and the power of two, above 2^-1074, whose product is the size of a finite double.
#[inline(always)]
fn parts(x: f64) -> (u64, u32) {
    let (fraction, exponent) = (x.to_bits() & ((1 << 52) - 1), (x.to_bits() >> 52) as u32 & 0x7ff);
    if exponent == 0 { (fraction, 0) } else { (fraction | 1 << 52, exponent - 1) }
}

impl Default for ExactSum {
    fn default() -> Self {
        Self { digits: [0; DIGITS], fresh: 0 }
    }
}

impl ExactSum {
    /// Adds the product of two finite doubles.
    #[inline]
    pub fn add_product(&mut self, x: f64, y: f64) {
        let ((a, i), (b, j)) = (parts(x), parts(y));
        let product = u128::from(a) * u128::from(b);
        let negative = (x.to_bits() ^ y.to_bits()) >> 63 != 0;
        self.add(product as u64, i + j, negative);
        self.add((product >> 64) as u64, i + j + 64, negative);
    }

    /// Adds a finite double.
    #[inline]
    pub fn add_number(&mut self, x: f64) {
        let (a, i) = parts(x);
        self.add(a, i + 1074, x.is_sign_negative());
    }

    /// Adds a whole number times 2^(place - 2148).
    #[inline(always)]
    fn add(&mut self, number: u64, place: u32, negative: bool) {
        let (digit, sign) = ((place / 32) as usize, -i64::from(negative));
        let shifted = u128::from(number) << (place % 32);
        for (k, digit) in self.digits[digit..digit + 3].iter_mut().enumerate() {
            let part = i64::from((shifted >> (32 * k)) as u32);
            *digit += (part ^ sign) - sign;
        }
        self.fresh += 1;
        if self.fresh == PUT_OFF {
            self.carry();
        }
    }

    fn carry(&mut self) {
        let mut over = 0;
        let (last, digits) = (DIGITS - 1, &mut self.digits);
        for digit in &mut digits[..last] {
            *digit += over;
            over = *digit >> 32;
            *digit &= 0xffff_ffff;
        }
        digits[last] += over;
        self.fresh = 0;
    }

    /// The sum in units of 2^-2148, as bytes of a signed whole number, the lowest first.
    #[must_use]
    pub fn to_signed_bytes(mut self) -> Vec<u8> {
        self.carry();
        let (last, digits) = (DIGITS - 1, &self.digits);
        let low = digits[..last].iter().flat_map(|&digit| (digit as u32).to_le_bytes());
        low.chain(digits[last].to_le_bytes()).collect()
    }
}

/// The sums of the columns of rows, or of the products of columns i and j for i <= j, row by row of the triangle.
#[must_use]
pub fn column_sums(rows: &[f64], width: usize, products: bool) -> Vec<ExactSum> {
    let mut sums = vec![ExactSum::default(); if products { width * (width + 1) / 2 } else { width }];
    for row in rows.chunks_exact(width) {
        if products {
            let mut at = sums.iter_mut();
            for (i, &x) in row.iter().enumerate() {
                row[i..].iter().zip(&mut at).for_each(|(&y, sum)| sum.add_product(x, y));
            }
        } else {
            row.iter().zip(&mut sums).for_each(|(&x, sum)| sum.add_number(x));
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cancels_leaves_what_rounding_would_lose() {
        let rows = [1e300, f64::from_bits(1), -1e300, 3.0];
        let [sum] = column_sums(&rows, 1, false).try_into().expect("one column");
        let bytes = sum.to_signed_bytes();
        // 2^-1074 + 3 in units of 2^-2148: bit 1074, and bits 2148 and 2149.
        let ones: Vec<usize> = (0..8 * bytes.len()).filter(|bit| bytes[bit / 8] >> (bit % 8) & 1 == 1).collect();
        assert_eq!(ones, [1074, 2148, 2149]);
        // The whole parts: 2148 = 8 * 268 + 4.
        let whole = |sum: ExactSum| {
            let bytes = sum.to_signed_bytes();
            i128::from_le_bytes(std::array::from_fn(|i| bytes[268 + i])) >> 4
        };
        let products: Vec<i128> = column_sums(&[-1.5, 2.0, 0.5, 6.0], 2, true).into_iter().map(whole).collect();
        assert_eq!(products, [2, 0, 40]);
    }
}
