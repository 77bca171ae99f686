//! Moves of probabilities that take the records with them.
//!
//! Given the records a row of theta hardly moves, and given theta a record moves alone: where the noise is wider than the root of a
//! count, both together creep. So each sweep also takes every record's category at v as a function of a uniform number and of the row
//! it meets, keeps these numbers, and moves rows. Of two categories j, k of a row the share t = theta_j / (theta_j + theta_k) goes to
//! t', a uniform step of its logit, and the records that are in the way change sides: if t' > t each in k with probability
//! (t' - t) / (1 - t), else each in j with (t - t') / t. Below v, where a record has other parents now, its category follows by inversion
//! of its number, which is drawn within the part of the old row that its old category has. Given the other shares t is
//! Beta(a, a), so that the move is accepted with min(1, (t' (1 - t') / (t (1 - t)))^a exp(-what the noise's energy gains)).
//!
//! Source: Y. Yu, X.-L. Meng (2011), To center or not to center: that is not the question, section 2.

use super::Chain;
use crate::Result;
use crate::distributions::RandomSource;
use crate::monitor::Progress;
use crate::stream::Xoshiro;

/// The share of moves to be accepted: of random walks in one coordinate the best is .44, in many .23.
const ACCEPTED: f64 = 0.4;

impl Chain<'_> {
    /// Moves two categories of each row at a time; `adapt` lets steps become longer or shorter.
    pub(super) fn interweave(&mut self, adapt: bool, rng: &mut Xoshiro, progress: &Progress) -> Result<()> {
        let tables = self.tables;
        let gain = if adapt { (self.sweeps as f64).powf(-0.5) } else { 0.0 };
        for at in 0..tables.nodes.len() {
            let node = &tables.nodes[at];
            let (ends, members) = self.by_cell(at);
            let mut order: Vec<usize> = (0..node.size).collect();
            for first in (0..node.cells).step_by(node.size) {
                progress.check_at(first * tables.parities.stride())?;
                for i in 1..node.size {
                    order.swap(i, super::below(i + 1, rng).expect("one at least"));
                }
                for pair in order.chunks_exact(2) {
                    let sides = [pair[0], pair[1]].map(|category| {
                        let cell = first + category;
                        &members[if cell == 0 { 0 } else { ends[cell - 1] }..ends[cell]]
                    });
                    let accepted = self.move_share(at, first, [pair[0], pair[1]], sides, rng);
                    let scale = &mut self.scales[node.offset + first];
                    *scale = (*scale * (gain * (f64::from(u8::from(accepted)) - ACCEPTED)).exp()).clamp(1e-3, 1e3);
                }
            }
        }
        self.weigh();
        Ok(())
    }

    /// The records by their cells in a node's table: where each cell's end, and which they are.
    fn by_cell(&self, at: usize) -> (Vec<usize>, Vec<usize>) {
        let (tables, width) = (self.tables, self.tables.nodes.len());
        let node = &tables.nodes[at];
        let cells: Vec<_> =
            self.records.chunks_exact(width).map(|record| (tables.cell(at, record) - node.offset) as u32).collect();
        let mut places = vec![0; node.cells];
        cells.iter().for_each(|&cell| places[cell as usize] += 1);
        let mut sum = 0;
        for place in &mut places {
            (*place, sum) = (sum, sum + *place);
        }
        let mut members = vec![0; cells.len()];
        for (record, &cell) in cells.iter().enumerate() {
            members[places[cell as usize]] = record;
            places[cell as usize] += 1;
        }
        (places, members)
    }

    /// Tries to move the share of two categories of the row that begins at `first`; whether it was.
    fn move_share(
        &mut self,
        at: usize,
        first: usize,
        pair: [usize; 2],
        sides: [&[usize]; 2],
        rng: &mut Xoshiro,
    ) -> bool {
        let (tables, width) = (self.tables, self.tables.nodes.len());
        let first = tables.nodes[at].offset + first;
        let both = self.theta[first + pair[0]] + self.theta[first + pair[1]];
        let share = self.theta[first + pair[0]] / both;
        // What a record more or less changes; the number of both sides stays, so that the step has its reverse.
        let unit = tables.exponent + tables.parities.exponent(&self.offsets);
        let step = self.scales[first] / (1.0 + unit * (sides[0].len() + sides[1].len()) as f64);
        let odds = share / (1.0 - share) * (step * (2.0 * rng.uniform() - 1.0)).exp();
        let moved = odds / (1.0 + odds);
        let inside = |share: f64| share > 0.0 && share < 1.0;
        if !inside(share) || !inside(moved) {
            return false;
        }
        let (from, chance) =
            if moved > share { (1, (moved - share) / (1.0 - share)) } else { (0, (share - moved) / share) };
        let (mut steps, mut before) = (0, None);
        let (mut rows, mut old) = (Vec::new(), Vec::new());
        let mut record = vec![0u16; width];
        for &row in sides[from] {
            if rng.uniform() >= chance {
                continue;
            }
            before.get_or_insert_with(|| tables.parities.distance_of_all(&self.offsets));
            let span = row * width..(row + 1) * width;
            record.copy_from_slice(&self.records[span]);
            rows.push(row);
            old.extend_from_slice(&record);
            record[at] = pair[1 - from] as u16;
            self.follow(at, row, &mut record, rng);
            steps += self.replace(at, row, &record);
        }
        let farther = before.map_or(0.0, |before| tables.parities.distance_of_all(&self.offsets) - before);
        let energy = steps as f64 * tables.exponent + farther * tables.parities.exponent(&self.offsets);
        let spread = |share: f64| (share * (1.0 - share)).ln();
        let log_ratio = tables.concentrations[at] * (spread(moved) - spread(share)) - energy;
        if rng.uniform() < log_ratio.exp() {
            self.theta[first + pair[0]] = moved * both;
            self.theta[first + pair[1]] = (1.0 - moved) * both;
            return true;
        }
        for (&row, record) in rows.iter().zip(old.chunks_exact(width)) {
            self.replace(at, row, record);
        }
        false
    }

    /// Lets the categories of a record below a node follow its other parents.
    fn follow(&self, at: usize, row: usize, record: &mut [u16], rng: &mut Xoshiro) {
        let tables = self.tables;
        let old = &self.records[row * record.len()..(row + 1) * record.len()];
        for &below in &tables.reach[at][1..] {
            let node = &tables.nodes[below];
            if node.parents.iter().all(|&(column, _)| old[column] == record[column]) {
                continue;
            }
            let category = usize::from(old[below]);
            let first = tables.cell(below, old) - category;
            let mut number =
                self.theta[first..first + category].iter().sum::<f64>() + rng.uniform() * self.theta[first + category];
            let first = tables.cell(below, record) - category;
            // What is rounded up to the whole sum is for the last that has a mass.
            for (place, &mass) in
                self.theta[first..first + node.size].iter().enumerate().filter(|(_, mass)| **mass > 0.0)
            {
                record[below] = place as u16;
                number -= mass;
                if number < 0.0 {
                    break;
                }
            }
        }
    }

    /// Puts another record in the place of one that is the same but at a node and below; how much farther counts are from releases.
    fn replace(&mut self, at: usize, row: usize, record: &[u16]) -> i64 {
        let (tables, width) = (self.tables, record.len());
        let span = row * width..(row + 1) * width;
        tables.parities.look(&mut self.offsets, &self.records[span.clone()]);
        tables.parities.shift(&mut self.offsets, -1.0);
        let mut steps = 0;
        for &node in &tables.reach[at] {
            let (from, to) = (tables.cell(node, &self.records[span.clone()]), tables.cell(node, record));
            for (cell, way) in [(from, -1), (to, 1)] {
                let before = self.excess[cell].abs();
                self.excess[cell] += way;
                steps += i64::from(tables.noisy[cell]) * (self.excess[cell].abs() - before);
            }
        }
        self.records[span].copy_from_slice(record);
        tables.parities.look(&mut self.offsets, record);
        tables.parities.shift(&mut self.offsets, 1.0);
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_fit, law_of_pairs, pair, tally};
    use super::super::{Chain, Draws};
    use super::*;
    use crate::stream::xoshiro;

    #[test]
    fn moves_alone_have_the_law_that_enumeration_gives() {
        let released = [3, -1, 0, 2];
        let tables = pair(released, 0.4);
        let mut chain = Chain::new(&tables, vec![0, 0, 0, 1, 1, 0, 1, 1], [5, 6], &Progress::default()).unwrap();
        let (mut found, rng) = (Draws::default(), &mut xoshiro([7, 8], 9, 10, 11));
        for number in 0..1_200_000 {
            chain.interweave(false, rng, &Progress::default()).unwrap();
            if number % 60 == 59 {
                chain.record(&mut found);
            }
        }
        assert_fit(&tally(&found.counts, 6), &law_of_pairs(released), 20_000.0);
    }

    #[test]
    fn records_keep_their_tables_where_moves_are_refused() {
        // Noise that nothing moves against: all tables stay what they are.
        let tables = pair([1, 1, 1, 1], 300.0);
        let mut chain = Chain::new(&tables, vec![0, 0, 0, 1, 1, 0, 1, 1], [5, 6], &Progress::default()).unwrap();
        let rng = &mut xoshiro([7, 8], 9, 10, 12);
        for _ in 0..1000 {
            chain.scales.fill(1e3);
            chain.interweave(false, rng, &Progress::default()).unwrap();
            assert_eq!(chain.excess[2..], [0; 4]);
        }
    }
}
