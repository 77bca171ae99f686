//! Topics in layers: what a document has of topics is made by what it has of topics of topics, a gamma belief network.
//!
//!   mu_dv = sum_k theta^1_dk phi_kv,      theta^t_dk ~ Gamma(sum_j Phi^(t+1)_kj theta^(t+1)_dj, c^t_d),   t < L,
//!   theta^L_dj ~ Gamma(r_j, c^L_d),       phi_k., Phi^t_.j Dirichlet,      r_j, c^t_d ~ Gamma(a, b).
//!
//! As the phi sum to one, given the parts y_dk of the counts they are redrawn by their own conditionals. The others together, the
//! counts of layer 1 being y and zeta^0 = 1:
//!   1. upward, the tables of the counts n^t of theta^t at its shape, split over j: counts n^(t+1) of theta^(t+1), and of Phi^(t+1).
//!      Each step sums theta^t out, and zeta^t_d = ln(1 + zeta^(t-1)_d / c^t_d) is what a unit of its shape is exposed to;
//!   2. r given the tables of n^L, r_j ~ Gamma(a + tables, b + sum_d zeta^L_d), and Phi given the tables, with theta summed out;
//!   3. downward, theta^t_dk ~ Gamma(its shape + n^t_dk, c^t_d + zeta^(t-1)_d); then c^t_d ~ Gamma(a + sum of shapes, b + sum_k theta^t_dk).
//!
//! Source: M. Zhou, Y. Cong, B. Chen (2016), Augmentable gamma belief networks, sections 2 and 3; there c^1 has a beta prime prior.

use super::cp::Cp;
use super::gamma_chain::{self, mixture, redraw_columns, seat};
use super::gammas::Prior;
use super::split::Splitter;
use super::structure::{Entries, Factors, Layout, Structure};
use crate::distributions::{chinese_restaurant, gamma};
use crate::stream::Xoshiro;

/// Topics in layers; extents are the numbers of documents and words, and the numbers of components of the layers from the second
/// on. Factors are theta^1, phi, theta^2, Phi^2, .., theta^L, Phi^L, the rates c (documents by layers) and r (1 x K_L).
#[derive(Clone, Copy, Debug)]
pub struct Layers;

/// The least rate: what its inverse exposes is far below the greatest double.
const LEAST: f64 = 1e-140;

/// The shape of theta^t_dk, t from zero, and of the highest layer r_k.
fn shape(pairs: &Factors, weights: &[f64], t: usize, d: usize, k: usize) -> f64 {
    match pairs.get(2 * t + 2..) {
        Some([above, mixing, ..]) => mixture(mixing, above.row(d), k),
        _ => weights[k],
    }
}

impl Structure for Layers {
    fn table_shape(&self, extents: &[usize]) -> Option<(usize, usize)> {
        if extents.len() < 3 || extents[2..].contains(&0) { None } else { Cp.table_shape(self.modes(extents)) }
    }

    fn shapes(&self, extents: &[usize], width: usize) -> Vec<(usize, usize)> {
        let mut shapes = Cp.shapes(self.modes(extents), width);
        let mut below = width;
        for &components in &extents[2..] {
            shapes.extend([(extents[0], components), (below, components)]);
            below = components;
        }
        shapes.extend([(extents[0], extents.len() - 1), (1, below)]);
        shapes
    }

    /// The matrix below the layers.
    fn modes<'e>(&self, extents: &'e [usize]) -> &'e [usize] {
        &extents[..2]
    }

    fn imputes(&self) -> bool {
        true
    }

    fn left(&self, layout: &Layout, factors: &Factors, row: usize, out: &mut [f64]) {
        Cp.left(layout, &factors[..2], row, out);
    }

    fn is_product(&self) -> bool {
        true
    }

    fn total_rate(&self, layout: &Layout, factors: &Factors) -> f64 {
        Cp.total_rate(layout, &factors[..2])
    }

    fn exposure(&self, _layout: &Layout, (factor, _): Entries, _factors: &Factors, sums: &[Vec<f64>], out: &mut [f64]) {
        out.fill(0.0);
        if factor < 2 {
            out.copy_from_slice(&sums[1 - factor]);
        }
    }

    fn is_redrawn_together(&self, _layout: &Layout, factor: usize) -> bool {
        factor != 1
    }

    fn redraw(
        &self,
        layout: &Layout,
        priors: &[Prior],
        fixed: &[bool],
        counts: &[Vec<u64>],
        factors: &mut Factors,
        rng: &dyn Fn(usize) -> Xoshiro,
    ) {
        let (documents, layers) = (layout.extents[0], layout.extents.len() - 1);
        let (pairs, last) = factors.split_at_mut(2 * layers);
        let [rates, weights] = last else { unreachable!("rates and weights are the last factors") };
        let [prior_of_rates, prior_of_weights] = [2 * layers, 2 * layers + 1];

        // Upward: counts of each layer, and of each mixing matrix.
        let mut splitters: Vec<_> = (1..layers).map(|t| Splitter::new(pairs[2 * t].stride)).collect();
        let mut moved: Vec<_> = (1..layers).map(|t| vec![0; pairs[2 * t + 1].padded().len()]).collect();
        let mut received: Vec<_> = (1..layers).map(|t| vec![0; pairs[2 * t].padded().len()]).collect();
        let (mut tops, mut exposure) = (vec![0; weights.width], 0.0);
        for d in 0..documents {
            let mut words = rng(d);
            let mut zeta = 1.0;
            for t in 1..layers {
                let (above, mixing) = (&pairs[2 * t], &pairs[2 * t + 1]);
                let (below, here) = received.split_at_mut(t - 1);
                let (below, stride) = (below.last().unwrap_or(&counts[0]), pairs[2 * t - 2].stride);
                let counts = below[d * stride..][..mixing.rows].iter().copied();
                let parts = (moved[t - 1].as_mut_slice(), &mut here[0][d * above.stride..(d + 1) * above.stride]);
                seat(counts, (mixing, above.row(d), 1.0), parts, &mut splitters[t - 1], &mut words);
                zeta = (zeta / rates.row(d)[t - 1]).ln_1p();
            }
            exposure += (zeta / rates.row(d)[layers - 1]).ln_1p();
            let counts = &received[layers - 2][d * weights.stride..];
            for ((top, &count), &weight) in tops.iter_mut().zip(counts).zip(weights.row(0)) {
                *top += chinese_restaurant::draw(count, weight, &mut words);
            }
        }

        let mut words = rng(2 * documents);
        for (k, &tables) in tops.iter().enumerate().filter(|_| !fixed[prior_of_weights]) {
            let (shape, rate) = priors[prior_of_weights].at(k);
            weights.row_mut(0)[k] = gamma_chain::draw(shape + tables as f64, rate + exposure, &mut words);
        }
        for (t, moved) in moved.iter().enumerate().filter(|(t, _)| !fixed[2 * t + 3]) {
            let (prior, width) = (&priors[2 * t + 3], pairs[2 * t + 3].width);
            redraw_columns(&mut pairs[2 * t + 3], |k, j| prior.at(k * width + j).0, moved, &mut words);
        }

        // Downward.
        for d in 0..documents {
            let mut words = rng(documents + d);
            let mut zetas = vec![1.0];
            for &rate in &rates.row(d)[..layers - 1] {
                zetas.push((zetas[zetas.len() - 1] / rate).ln_1p());
            }
            for t in (0..layers).rev() {
                let (below, stride) = (if t == 0 { &counts[0] } else { &received[t - 1] }, pairs[2 * t].stride);
                let (mut shapes, mut sum) = (0.0, 0.0);
                for k in 0..pairs[2 * t].width {
                    let shape = shape(pairs, weights.row(0), t, d, k);
                    let rate = rates.row(d)[t] + zetas[t];
                    let fresh = gamma_chain::draw(shape + below[d * stride + k] as f64, rate, &mut words);
                    pairs[2 * t].row_mut(d)[k] = fresh;
                    shapes += shape;
                    sum += fresh;
                }
                if !fixed[prior_of_rates] {
                    let (shape, rate) = priors[prior_of_rates].at(d * layers + t);
                    rates.row_mut(d)[t] = gamma::draw(shape + shapes, rate + sum, &mut words).max(LEAST);
                }
            }
        }
    }

    /// phi is normalized, layers above have entries near one, and rates and weights are what fits them.
    fn shape_start(&self, layout: &Layout, _priors: &[Prior], factors: &mut Factors) {
        let (documents, layers) = (layout.extents[0], layout.extents.len() - 1);
        let (pairs, last) = factors.split_at_mut(2 * layers);
        for t in 1..layers {
            let entries = (pairs[2 * t].rows * pairs[2 * t].width) as f64;
            let mean = pairs[2 * t].padded().iter().sum::<f64>() / entries;
            pairs[2 * t].padded_mut().iter_mut().for_each(|x| *x /= mean);
            pairs[2 * t + 1].normalize();
        }
        last[1].set_ones();
        for d in 0..documents {
            let sum = |t: usize| pairs[2 * t].row(d).iter().sum::<f64>();
            for t in 0..layers {
                let above = if t + 1 < layers { sum(t + 1) } else { last[1].width as f64 };
                last[0].row_mut(d)[t] = above / sum(t);
            }
        }
    }
}
