//! Set partitions of the vertices of a bag, as numbers.
//!
//! A partition is written as the number of its block for each vertex, blocks numbered in the order of their first vertices, five bits each.

/// The most vertices of a bag: a block number takes [`BITS`] bits, and 25 of them fit the 128 of a code.
pub const MOST: usize = 25;
const BITS: usize = 5;

/// A partition.
pub type PartitionCode = u128;

/// The number of a partition given by its blocks, masks of vertices; sorts them by their first vertices.
pub fn code(blocks: &mut [u32]) -> PartitionCode {
    blocks.sort_unstable_by_key(|block| block.trailing_zeros());
    (0..)
        .zip(&*blocks)
        .fold(0, |code, (number, &block)| members(block).fold(code, |code, v| code | number << (BITS * v)))
}

/// The blocks of a partition of so many vertices, in the order of their first vertices.
pub fn blocks(code: PartitionCode, vertices: usize, out: &mut Vec<u32>) {
    out.clear();
    for v in 0..vertices {
        let number = (code >> (BITS * v)) as usize % (1 << BITS);
        if number == out.len() {
            out.push(0);
        }
        out[number] |= 1 << v;
    }
}

/// The vertices of a mask.
pub fn members(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let v = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(v)
    })
}

/// The finest partition that is coarser than both; the first becomes it.
pub fn join(blocks: &mut Vec<u32>, others: &[u32]) {
    for &other in others {
        let mut merged = other;
        blocks.retain(|&block| {
            let apart = block & other == 0;
            merged |= if apart { 0 } else { block };
            apart
        });
        blocks.push(merged);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back_from_their_number_in_the_order_of_first_vertices() {
        let mut given = vec![0b1_0010, 1 << 24, 0b0_0101, 0b0_1000, ((1 << 24) - 1) ^ 0b1_1111];
        let number = code(&mut given);
        let mut found = Vec::new();
        blocks(number, MOST, &mut found);
        assert_eq!(found, given);
        assert!(found.is_sorted_by_key(|block| block.trailing_zeros()));
        let mut singles: Vec<u32> = (0..MOST).map(|v| 1 << v).collect();
        let number = code(&mut singles);
        blocks(number, MOST, &mut found);
        assert_eq!(found, singles, "as many blocks as vertices fit");
    }

    #[test]
    fn the_join_connects_what_either_connects() {
        let mut blocks = vec![0b00011, 0b01100, 0b10000];
        join(&mut blocks, &[0b00110, 0b01000, 0b10001]);
        assert_eq!(blocks, [0b11111]);
        let mut apart = vec![0b01, 0b10];
        join(&mut apart, &[0b01, 0b10]);
        apart.sort_unstable();
        assert_eq!(apart, [0b01, 0b10]);
    }
}
