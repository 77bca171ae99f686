//! How many records there are, where that is not known.
//!
//! The prior of their number is flat. A record is added, drawn from theta, or one is taken away, each with
//! probability 1/2, and accepted with min(1, ratio of the noise's masses). A new one takes the place of any, so that each move has its
//! reverse.

use super::{Chain, accumulated, below, chosen};
use crate::Result;
use crate::distributions::RandomSource;
use crate::monitor::Progress;
use crate::stream::Xoshiro;
use rand_core::Rng;

impl Chain<'_> {
    /// Adds records and takes them away.
    pub(super) fn draw_number(&mut self, rng: &mut Xoshiro, progress: &Progress) -> Result<()> {
        let tables = self.tables;
        let width = tables.nodes.len();
        let mut record = vec![0u16; width];
        let mut masses = tables.room();
        for attempt in 0..self.tries {
            progress.check_at(attempt * tables.parities.stride())?;
            let rows = self.records.len() / width;
            let comes = rng.next_u64() >> 63 == 1;
            if comes {
                for &at in &tables.order {
                    record[at] = 0;
                    let first = tables.cell(at, &record);
                    let masses = &mut masses[..tables.nodes[at].size];
                    masses.copy_from_slice(&self.theta[first..first + masses.len()]);
                    accumulated(masses);
                    record[at] = chosen(masses, rng) as u16;
                }
            }
            let place = below(rows + usize::from(comes), rng);
            let Some(place) = place else { continue };
            if !comes {
                record.copy_from_slice(&self.records[place * width..(place + 1) * width]);
            }
            // How much farther from what was released the counts would be.
            let farther: i64 = (0..width)
                .map(|at| tables.cell(at, &record))
                .filter(|&cell| tables.noisy[cell])
                .map(|cell| if self.goes_away(cell, comes) { 1 } else { -1 })
                .sum();
            let way = if comes { 1.0 } else { -1.0 };
            tables.parities.look(&mut self.offsets, &record);
            let energy = farther as f64 * tables.exponent + tables.parities.energy_of_shift(&self.offsets, way);
            if rng.uniform() >= (-energy).exp() {
                continue;
            }
            tables.parities.shift(&mut self.offsets, way);
            for at in 0..width {
                let cell = tables.cell(at, &record);
                if comes { self.join(cell) } else { self.leave(cell) }
            }
            if comes {
                self.records.extend_from_slice(&record);
                swap(&mut self.records, width, place, rows);
            } else {
                swap(&mut self.records, width, place, rows - 1);
                self.records.truncate((rows - 1) * width);
            }
        }
        Ok(())
    }

    /// Whether a count would go away from what was released where one more comes, or goes.
    fn goes_away(&self, cell: usize, comes: bool) -> bool {
        if comes { self.excess[cell] >= 0 } else { self.excess[cell] <= 0 }
    }
}

/// Exchanges two records.
fn swap(records: &mut [u16], width: usize, one: usize, other: usize) {
    (0..width).for_each(|column| records.swap(one * width + column, other * width + column));
}
