//! Mixed-membership blockmodels of networks: mu_ij = sum_cd T_ic P_cd T_jd, i != j; undirected, for i < j and P symmetric.
//!
//! A row has the weights u_i = P' T_i, and R = T. Memberships are redrawn actor by actor, for each is exposed to all others:
//!   exposure of T_ic = sum_d P_cd sum_j T_jd, and if directed + sum_d P_dc sum_j T_jd, over observed j /= i;
//!   exposure of P_cd = sum_i T_ic sum_j T_jd - sum_i T_ic T_id, over observed pairs; halved on the diagonal if undirected.
//!
//! Source: A. Schein et al. (2019), section 4 of the appendix; the sums over pairs i < j are derived here.

use super::coordinate_ascent::CoordinateAscent;
use super::factor_matrix::FactorMatrix;
use super::gibbs::{GibbsChain, SHARES, Tally};
use super::model::Model;
use super::split::binomials;
use super::structure::{Pass, Structure};
use crate::Result;
use crate::distributions::gamma;
use crate::stream::xoshiro;

/// Networks; `undirected` ones have one count for each pair.
#[derive(Clone, Copy, Debug)]
pub struct Blockmodel {
    /// Whether (i, j) and (j, i) are the same count.
    pub undirected: bool,
}

/// What of a pair (i, j) is the actor's own place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Sender,
    Receiver,
}

impl Blockmodel {
    /// What the memberships of one actor are exposed to (blockmodels), given the sums of all memberships.
    pub fn exposure_of_actor(
        &self,
        model: &Model,
        actor: usize,
        factors: &[FactorMatrix],
        sums: &[f64],
        out: &mut [f64],
    ) {
        let (members, blocks) = (&factors[0], &factors[1]);
        // The sum of T_j over those an actor is observed with: over all, less the actor itself and the pairs held out.
        let others = |side: Side| {
            let mut others: Vec<f64> = sums.iter().zip(members.row(actor)).map(|(sum, own)| sum - own).collect();
            let mut take = |side: Side| {
                let cells = model.held[usize::from(side == Side::Receiver)].at(actor);
                for &cell in cells {
                    let (i, j) = model.cell(cell, model.extents()[0]);
                    let other = if side == Side::Sender { j } else { i };
                    others.iter_mut().zip(members.row(other)).for_each(|(sum, x)| *sum -= x);
                }
                cells.len()
            };
            let mut taken = take(side);
            if self.undirected {
                taken += take(Side::Receiver);
            }
            // Where nobody is left the sum is zero, and nothing that rounding leaves of a difference.
            let nobody = taken + 1 == model.extents()[0];
            others.iter_mut().for_each(|x| *x = if nobody { 0.0 } else { x.max(0.0) });
            others
        };
        let sent = others(Side::Sender);
        out.fill(0.0);
        for (c, out) in out[..model.width()].iter_mut().enumerate() {
            *out = blocks.row(c).iter().zip(&sent).map(|(p, t)| p * t).sum();
        }
        // As receiver the actor has the component of the columns: P_dc in place of P_cd.
        if !self.undirected {
            let received = others(Side::Receiver);
            for (d, &weight) in received[..model.width()].iter().enumerate() {
                for (c, out) in out[..model.width()].iter_mut().enumerate() {
                    *out += blocks.row(d)[c] * weight;
                }
            }
        }
    }

    /// What a row of the block matrix is exposed to, given sums and second moments of the memberships. Below the diagonal
    /// of an undirected model nothing is written.
    pub fn exposure_of_block(
        &self,
        model: &Model,
        c: usize,
        members: &FactorMatrix,
        sums: &[f64],
        gram: &[f64],
        out: &mut [f64],
    ) {
        let (width, undirected) = (model.width(), self.undirected);
        let from = if undirected { c } else { 0 };
        for d in from..width {
            out[d] = sums[c] * sums[d] - gram[c * width + d];
            if undirected && d == c {
                out[d] *= 0.5;
            }
        }
        // Each pair held out, from its sender's list; an undirected one counts for (c, d) and for (d, c).
        for i in 0..model.extents()[0] {
            for &cell in model.held[0].at(i) {
                let (sender, receiver) = model.cell(cell, model.extents()[0]);
                let (a, b) = (members.row(sender), members.row(receiver));
                for (d, out) in out.iter_mut().enumerate().take(width).skip(from) {
                    *out -= a[c] * b[d] + if undirected && d != c { a[d] * b[c] } else { 0.0 };
                }
            }
        }
        let actors = model.extents()[0];
        let pairs = actors * actors.saturating_sub(1) / if undirected { 2 } else { 1 };
        let nothing = model.held[0].cells.len() == pairs;
        out[from..width].iter_mut().for_each(|x| *x = if nothing { 0.0 } else { x.max(0.0) });
    }

    fn update_members(&self, fit: &mut CoordinateAscent, sent: &[f64], received: &[f64]) {
        let mut means = fit.means.clone();
        let geometric = &fit.geometric;
        let (stride, width) = (means[0].stride, means[0].width);
        let mut totals = means[0].sums();
        let mut exposure = vec![0.0; stride];
        // Actors follow one another: `totals` has the new means of those before, so that each step is an optimum of its own.
        for actor in 0..means[0].rows {
            self.exposure_of_actor(&fit.model, actor, &means, &totals, &mut exposure);
            let sent = &sent[actor * stride..(actor + 1) * stride];
            for c in 0..width {
                let (shape, rate) = fit.model.prior(0).at(actor * width + c);
                // Both sums lack the actor's own T_ic; those by sender, over components d of R, P_cd as well.
                let as_sender: f64 = geometric[1].row(c).iter().zip(sent).map(|(p, sum)| p * sum).sum();
                let counts = geometric[0].row(actor)[c] * (as_sender + received[actor * stride + c]);
                let (shape, rate) = (shape + counts, rate + exposure[c]);
                fit.factors[0].shape.row_mut(actor)[c] = shape;
                fit.factors[0].rate.row_mut(actor)[c] = rate;
                let old = std::mem::replace(&mut means[0].row_mut(actor)[c], shape / rate);
                totals[c] += shape / rate - old;
            }
        }
        fit.refresh(0);
    }

    fn update_blocks(&self, fit: &mut CoordinateAscent, sent: &[f64]) {
        let (members, geometric) = (&fit.means[0], &fit.geometric);
        let (stride, width) = (members.stride, members.width);
        let undirected = self.undirected;
        let (sums, gram) = (members.sums(), gram(members));
        let mut counts = vec![0.0; width * width];
        for actor in 0..members.rows {
            for c in 0..width {
                let weight = geometric[0].row(actor)[c];
                for d in 0..width {
                    counts[c * width + d] += weight * geometric[1].row(c)[d] * sent[actor * stride + d];
                }
            }
        }
        let mut exposure = vec![0.0; stride];
        for c in 0..width {
            self.exposure_of_block(&fit.model, c, members, &sums, &gram, &mut exposure);
            for d in (if undirected { c } else { 0 })..width {
                let (shape, rate) = fit.model.prior(1).at(c * width + d);
                let both = undirected && d != c;
                let counts = counts[c * width + d] + if both { counts[d * width + c] } else { 0.0 };
                let exposed = exposure[d];
                let mut set = |c: usize, d: usize| {
                    fit.factors[1].shape.row_mut(c)[d] = shape + counts;
                    fit.factors[1].rate.row_mut(c)[d] = rate + exposed;
                };
                set(c, d);
                if undirected {
                    set(d, c);
                }
            }
        }
        fit.refresh(1);
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

    fn left(&self, factors: &[FactorMatrix], row: usize, out: &mut [f64]) {
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

    fn total_rate(&self, model: &Model, factors: &[FactorMatrix]) -> f64 {
        let mut total = 0.0;
        let mut exposure = vec![0.0; factors[1].stride];
        let sums = factors[0].sums();
        let gram = gram(&factors[0]);
        for c in 0..model.width() {
            self.exposure_of_block(model, c, &factors[0], &sums, &gram, &mut exposure);
            let from = if self.undirected { c } else { 0 };
            total += (from..model.width()).map(|d| factors[1].row(c)[d] * exposure[d]).sum::<f64>();
        }
        total
    }

    fn redraw(&self, chain: &mut GibbsChain, tally: &Tally) -> Option<f64> {
        let (actors, width, stride) = (chain.factors[0].rows, chain.model.width(), chain.factors[0].stride);
        let undirected = self.undirected;
        // Counts by actor, as sender and receiver, and by block.
        let mut members = tally.parts[1].clone();
        let mut blocks = vec![0u64; width * width];
        let mut weights = vec![0.0; width];
        for actor in 0..actors {
            let mut words = xoshiro(chain.key, SHARES, chain.iteration, actor as u64);
            for d in 0..width {
                let count = tally.parts[0][actor * stride + d];
                if count == 0 {
                    continue;
                }
                for (c, weight) in weights.iter_mut().enumerate() {
                    *weight = chain.factors[0].row(actor)[c] * chain.factors[1].row(c)[d];
                }
                if weights.iter().all(|&weight| weight == 0.0) {
                    weights.fill(1.0); // all underflowed: any share will do until the next sweep
                }
                // Part d of the row's counts is of the blocks (c, d), shared in proportion to T_ic P_cd.
                binomials(count, &weights, &mut words, |c, part| {
                    members[actor * stride + c] += part;
                    blocks[c * width + d] += part;
                });
            }
        }
        if !chain.fixed[0] {
            let mut sums = chain.factors[0].sums();
            let mut exposure = vec![0.0; stride];
            for actor in 0..actors {
                let mut words = chain.words(0, actor);
                self.exposure_of_actor(&chain.model, actor, &chain.factors, &sums, &mut exposure);
                for c in 0..width {
                    let (shape, rate) = chain.model.prior(0).at(actor * width + c);
                    let counts = members[actor * stride + c] as f64;
                    // Given the fresh memberships of the actors before: a Gibbs step for each actor.
                    let fresh = gamma::draw(shape + counts, rate + exposure[c], &mut words);
                    let old = std::mem::replace(&mut chain.factors[0].row_mut(actor)[c], fresh);
                    sums[c] += fresh - old;
                }
            }
        }
        if !chain.fixed[1] {
            let (sums, gram) = (chain.factors[0].sums(), gram(&chain.factors[0]));
            let mut exposure = vec![0.0; stride];
            for c in 0..width {
                let mut words = chain.words(1, c);
                self.exposure_of_block(&chain.model, c, &chain.factors[0], &sums, &gram, &mut exposure);
                for d in (if undirected { c } else { 0 })..width {
                    let (shape, rate) = chain.model.prior(1).at(c * width + d);
                    let mut counts = blocks[c * width + d];
                    if undirected && d != c {
                        counts += blocks[d * width + c];
                    }
                    let fresh = gamma::draw(shape + counts as f64, rate + exposure[d], &mut words);
                    chain.factors[1].row_mut(c)[d] = fresh;
                    if undirected {
                        chain.factors[1].row_mut(d)[c] = fresh;
                    }
                }
            }
        }
        None
    }

    fn ascend(&self, fit: &mut CoordinateAscent, pass: &mut Pass<'_>) -> Result<()> {
        if !fit.fixed[0] {
            // Both in one pass: the law of the noise moves on with each.
            let sums = pass(fit, Some(0), true)?;
            self.update_members(fit, &sums.left, &sums.right);
        }
        if !fit.fixed[1] {
            let sums = pass(fit, Some(0), false)?;
            self.update_blocks(fit, &sums.left);
        }
        Ok(())
    }
}

/// Second moments of the rows of a matrix: entry (c, d) sums the products of components c and d.
pub fn gram(matrix: &FactorMatrix) -> Vec<f64> {
    let width = matrix.width;
    let mut gram = vec![0.0; width * width];
    for row in 0..matrix.rows {
        let row = &matrix.row(row)[..width];
        for (c, gram) in gram.chunks_exact_mut(width).enumerate() {
            gram.iter_mut().zip(row).for_each(|(sum, x)| *sum += row[c] * x);
        }
    }
    gram
}
