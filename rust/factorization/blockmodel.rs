//! Mixed-membership blockmodels of networks: mu_ij = sum_cd T_ic P_cd T_jd, i != j; undirected, for i < j and P symmetric.
//!
//! A row has the weights u_i = P' T_i, and R = T. Memberships are redrawn actor by actor, for each is exposed to all others:
//!   exposure of T_ic = sum_d P_cd sum_j T_jd, and if directed + sum_d P_dc sum_j T_jd, over observed j /= i;
//!   exposure of P_cd = sum_i T_ic sum_j T_jd - sum_i T_ic T_id, over observed pairs; halved on the diagonal if undirected.
//!
//! Source: A. Schein et al. (2019), section 4 of the appendix; the sums over pairs i < j are derived here.

use super::factor_matrix::FactorMatrix;
use super::split::binomials;
use super::structure::{Entries, Factors, Layout, Structure};
use crate::stream::Xoshiro;
use std::borrow::Cow;
use std::ops::AddAssign;

/// Networks; `undirected` ones have one count for each pair.
#[derive(Clone, Copy, Debug)]
pub struct Blockmodel {
    /// Whether (i, j) and (j, i) are the same count.
    pub undirected: bool,
}

/// What of a pair (i, j) is the actor's own place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PairEnd {
    Sender,
    Receiver,
}

impl Blockmodel {
    /// What the memberships of one actor are exposed to (blockmodels), given the sums of all memberships.
    fn exposure_of_actor(&self, layout: &Layout, actor: usize, factors: &Factors, sums: &[f64], out: &mut [f64]) {
        let (members, blocks) = (&factors[0], &factors[1]);
        // The sum of T_j over those an actor is observed with: over all, less the actor itself and the pairs held out.
        let others = |side: PairEnd| {
            let mut others: Vec<f64> = sums.iter().zip(members.row(actor)).map(|(sum, own)| sum - own).collect();
            let mut take = |side: PairEnd| {
                let cells = layout.held[usize::from(side == PairEnd::Receiver)].at(actor);
                for &cell in cells {
                    let (i, j) = layout.cell(cell);
                    let other = if side == PairEnd::Sender { j } else { i };
                    others.iter_mut().zip(members.row(other)).for_each(|(sum, x)| *sum -= x);
                }
                cells.len()
            };
            let mut taken = take(side);
            if self.undirected {
                taken += take(PairEnd::Receiver);
            }
            // Where nobody is left the sum is zero, and nothing that rounding leaves of a difference.
            let nobody = taken + 1 == layout.rows;
            others.iter_mut().for_each(|x| *x = if nobody { 0.0 } else { x.max(0.0) });
            others
        };
        let sent = others(PairEnd::Sender);
        out.fill(0.0);
        for (c, out) in out[..layout.width].iter_mut().enumerate() {
            *out = blocks.row(c).iter().zip(&sent).map(|(p, t)| p * t).sum();
        }
        // As receiver the actor has the component of the columns: P_dc in place of P_cd.
        if !self.undirected {
            let received = others(PairEnd::Receiver);
            for (d, &weight) in received[..layout.width].iter().enumerate() {
                for (c, out) in out[..layout.width].iter_mut().enumerate() {
                    *out += blocks.row(d)[c] * weight;
                }
            }
        }
    }

    /// What a row of the block matrix is exposed to, given the memberships and their sums.
    fn exposure_of_block(&self, layout: &Layout, c: usize, members: &FactorMatrix, sums: &[f64], out: &mut [f64]) {
        let (width, undirected) = (layout.width, self.undirected);
        let from = if undirected { c } else { 0 };
        let mut second = vec![0.0; width];
        for actor in 0..members.rows {
            let row = members.row(actor);
            second[from..].iter_mut().zip(&row[from..]).for_each(|(sum, x)| *sum += row[c] * x);
        }
        for d in from..width {
            out[d] = sums[c] * sums[d] - second[d];
            if undirected && d == c {
                out[d] *= 0.5;
            }
        }
        // Each pair held out, from its sender's list; an undirected one counts for (c, d) and for (d, c).
        for &cell in &layout.held[0].cells {
            let (sender, receiver) = layout.cell(cell);
            let (a, b) = (members.row(sender), members.row(receiver));
            for (d, out) in out.iter_mut().enumerate().take(width).skip(from) {
                *out -= a[c] * b[d] + if undirected && d != c { a[d] * b[c] } else { 0.0 };
            }
        }
        let pairs = layout.rows * layout.rows.saturating_sub(1) / if undirected { 2 } else { 1 };
        let nothing = layout.held[0].cells.len() == pairs;
        out[from..width].iter_mut().for_each(|x| *x = if nothing { 0.0 } else { x.max(0.0) });
    }

    /// Adds to each entry above the diagonal of an undirected model's block matrix the one below.
    fn fold<T: Copy + AddAssign>(&self, blocks: &mut [T], width: usize, stride: usize) {
        for c in 0..if self.undirected { width } else { 0 } {
            for d in c + 1..width {
                let below = blocks[d * stride + c];
                blocks[c * stride + d] += below;
            }
        }
    }
}

impl Structure for Blockmodel {
    fn table_shape(&self, extents: &[usize]) -> Option<(usize, usize)> {
        if let [actors] = extents { Some((*actors, *actors)) } else { None }
    }

    fn shapes(&self, extents: &[usize], width: usize) -> Vec<(usize, usize)> {
        vec![(extents[0], width), (width, width)]
    }

    fn tally_shapes(&self, extents: &[usize], width: usize) -> Vec<(usize, usize)> {
        vec![(extents[0], width); 2]
    }

    fn left_tallies(&self, _extents: &[usize]) -> usize {
        1
    }

    fn right(&self, _extents: &[usize]) -> usize {
        0
    }

    fn has_rate(&self, row: usize, column: usize) -> bool {
        if self.undirected { row < column } else { row != column }
    }

    fn first_column(&self, row: usize) -> usize {
        if self.undirected { row + 1 } else { 0 }
    }

    fn index(&self, _extents: &[usize], number: usize, row: usize, column: usize) -> usize {
        if number == 0 { row } else { column }
    }

    fn left(&self, _layout: &Layout, factors: &Factors, row: usize, out: &mut [f64]) {
        out.fill(0.0);
        for (c, &weight) in factors[0].row(row)[..factors[0].width].iter().enumerate() {
            out.iter_mut().zip(factors[1].row(c)).for_each(|(out, x)| *out += weight * x);
        }
    }

    fn terms(&self, _extents: &[usize], width: usize) -> (f64, f64) {
        ((width * width) as f64, 3.0)
    }

    fn is_symmetric(&self, factor: usize) -> bool {
        self.undirected && factor == 1
    }

    fn in_turn(&self) -> bool {
        true
    }

    fn total_rate(&self, layout: &Layout, factors: &Factors) -> f64 {
        let mut total = 0.0;
        let mut exposure = vec![0.0; layout.stride()];
        let sums = factors[0].sums();
        for c in 0..layout.width {
            self.exposure_of_block(layout, c, &factors[0], &sums, &mut exposure);
            let from = if self.undirected { c } else { 0 };
            total += (from..layout.width).map(|d| factors[1].row(c)[d] * exposure[d]).sum::<f64>();
        }
        total
    }

    fn exposure(&self, layout: &Layout, (factor, row): Entries, factors: &Factors, sums: &[Vec<f64>], out: &mut [f64]) {
        if factor == 0 {
            self.exposure_of_actor(layout, row, factors, &sums[0], out);
        } else {
            self.exposure_of_block(layout, row, &factors[0], &sums[0], out);
        }
    }

    fn weighted_exposure(
        &self,
        layout: &Layout,
        (factor, row): Entries,
        factors: &Factors,
        weights: &[f64],
        out: &mut [f64],
    ) {
        let (members, blocks, cols) = (&factors[0], &factors[1], layout.cols);
        let add =
            |sum: &mut [f64], weight: f64, x: &[f64]| sum.iter_mut().zip(x).for_each(|(sum, x)| *sum += weight * x);
        out.fill(0.0);
        let (mut sent, mut received) = (vec![0.0; out.len()], vec![0.0; out.len()]);
        if factor == 0 {
            for other in 0..cols {
                add(&mut sent, weights[row * cols + other], members.row(other));
                add(&mut received, weights[other * cols + row], members.row(other));
            }
            for (c, out) in out[..members.width].iter_mut().enumerate() {
                *out = blocks.row(c).iter().zip(&sent).map(|(p, sum)| p * sum).sum();
            }
            (0..members.width).for_each(|d| add(out, received[d], blocks.row(d)));
            return;
        }
        for actor in 0..cols {
            sent.fill(0.0);
            received.fill(0.0);
            for other in 0..cols {
                add(&mut sent, weights[actor * cols + other], members.row(other));
            }
            add(out, members.row(actor)[row], &sent);
            // An undirected pair counts for (c, d) and for (d, c).
            if self.undirected {
                let own = sent[row];
                received.copy_from_slice(members.row(actor));
                received[row] = 0.0;
                add(out, own, &received);
            }
        }
    }

    /// Counts by actor, as sender and receiver, and by block.
    fn counts<'t>(
        &self,
        layout: &Layout,
        factors: &Factors,
        tallies: &'t [Vec<u64>],
        rng: &dyn Fn(usize) -> Xoshiro,
    ) -> Cow<'t, [Vec<u64>]> {
        let (width, stride) = (layout.width, layout.stride());
        let mut members = tallies[1].clone();
        let mut blocks = vec![0; width * stride];
        let mut weights = vec![0.0; width];
        for actor in 0..layout.rows {
            let mut rng = rng(actor);
            for d in 0..width {
                let count = tallies[0][actor * stride + d];
                if count == 0 {
                    continue;
                }
                for (c, weight) in weights.iter_mut().enumerate() {
                    *weight = factors[0].row(actor)[c] * factors[1].row(c)[d];
                }
                if weights.iter().all(|&weight| weight == 0.0) {
                    weights.fill(1.0); // all underflowed: any share will do until the next sweep
                }
                // Part d of the row's counts is of the blocks (c, d), shared in proportion to T_ic P_cd.
                binomials(count, &weights, &mut rng, |c, part| {
                    members[actor * stride + c] += part;
                    blocks[c * stride + d] += part;
                });
            }
        }
        self.fold(&mut blocks, width, stride);
        Cow::Owned(vec![members, blocks])
    }

    /// Memberships need both sums of one pass: the law of the noise moves on with each.
    fn sums_for(&self, _layout: &Layout, factor: usize) -> (Option<usize>, bool) {
        (Some(0), factor == 0)
    }

    fn expected_counts(
        &self,
        layout: &Layout,
        factor: usize,
        geometric: &Factors,
        (sent, received): (&[f64], &[f64]),
    ) -> Vec<f64> {
        let [members, blocks] = geometric else { return vec![] };
        let (width, stride) = (layout.width, layout.stride());
        let mut counts = vec![0.0; geometric[factor].padded().len()];
        for (actor, sent) in sent.chunks_exact(stride).enumerate() {
            for (c, &weight) in members.row(actor)[..width].iter().enumerate() {
                // Both sums lack the actor's own T_ic; those by sender, over components d of R, P_cd as well.
                let as_sender = blocks.row(c).iter().zip(sent);
                if factor == 0 {
                    let as_sender: f64 = as_sender.map(|(p, sum)| p * sum).sum();
                    counts[actor * stride + c] = weight * (as_sender + received[actor * stride + c]);
                } else {
                    let counts = counts[c * stride..].iter_mut().zip(as_sender);
                    counts.for_each(|(count, (p, sum))| *count += weight * p * sum);
                }
            }
        }
        if factor == 1 {
            self.fold(&mut counts, width, stride);
        }
        counts
    }
}
