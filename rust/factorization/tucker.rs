//! The Tucker structure of tensors: mu_i = sum_q G_q prod_m F^m[i_m, q_m], each mode with components of its own.
//!
//! The rows of the table are the first M - 1 modes, u_r[q_M] = sum over the other q of G_q prod F^m[i_m, q_m], and R = F^M. The
//! core G is a factor, q_1..q_{M-1} its rows. Modes may share a factor; cells in which such modes have the same index must be held
//! out then, so that no rate has an entry twice. Exposures are derivatives of the sum of the observed rates:
//!   of F^m[i, q]: sum over the observed cells with i_m = i and over q_m = q of G_q prod of the other entries, for each mode of F;
//!   of G_q: sum over the observed cells of prod_m F^m[i_m, q_m].
//!
//! Counts are allocated mode by mode: a sweep draws q_M; given it and i_1..i_{M-1}, q_{M-1} has the weights F^{M-1} times the sum
//! of the rest, and given q_{M-1} the rest does not depend on i_{M-1}, so counts are summed over that index before they go on.
//! Source: A. Schein, M. Zhou, D. M. Blei, H. Wallach (2016), Bayesian Poisson Tucker decomposition for learning the structure of
//! international relations, ICML ("compositional allocation"); the sums over i_m between its steps are derived here.

use super::cp::{add_rounded, anchor};
use super::factor_matrix::{FactorMatrix, dot, padded};
use super::split::Splitter;
use super::structure::{Entries, Factors, Layout, Structure, mode_index};
use crate::stream::Xoshiro;
use std::borrow::Cow;
use std::ops::Range;

/// Tensors with a core; `tied` ones have modes that share a factor.
#[derive(Clone, Copy, Debug)]
pub struct Tucker {
    /// Whether modes share a factor, whose rows are exposed to one another then.
    pub tied: bool,
}

/// What extents say of each mode: its extent, its number of components, and its factor.
#[derive(Clone, Copy)]
struct Modes<'a> {
    extents: &'a [usize],
    components: &'a [usize],
    factors: &'a [usize],
}

impl<'a> Modes<'a> {
    fn new(sizes: &'a [usize]) -> Self {
        let (extents, rest) = sizes.split_at(sizes.len() / 3);
        let (components, factors) = rest.split_at(extents.len());
        Self { extents, components, factors }
    }

    /// The last mode, that of the columns.
    fn last(&self) -> usize {
        self.extents.len() - 1
    }

    /// The modes of a factor.
    fn of(self, factor: usize) -> impl Iterator<Item = usize> + 'a {
        (0..self.factors.len()).filter(move |&mode| self.factors[mode] == factor)
    }

    /// The number of factors but the core, which is the next.
    fn core(&self) -> usize {
        self.factors.iter().max().map_or(0, |most| most + 1)
    }

    /// Whether factors are numbered in the order of their modes, and modes that share one agree in extent and components.
    fn fit(&self) -> bool {
        let mut known = 0;
        (0..self.factors.len()).all(|mode| {
            let (factor, first) = (self.factors[mode], self.of(self.factors[mode]).next().unwrap_or(mode));
            known += usize::from(factor == known);
            factor < known
                && self.extents[mode] == self.extents[first]
                && self.components[mode] == self.components[first]
                && self.components[mode] > 0
        })
    }

    /// Calls `found` with each row of the core and the product of its entries, one of a vector of each mode before `mode`. A
    /// vector is asked for by its mode and the index that a row of the table has there.
    fn core_rows<'v>(
        &self,
        vector: &impl Fn(usize, usize) -> &'v [f64],
        (mode, row): Entries,
        (at, step, product): (usize, usize, f64),
        found: &mut impl FnMut(usize, f64),
    ) {
        let Some(mode) = mode.checked_sub(1) else { return found(at, product) };
        let (extent, components) = (self.extents[mode], self.components[mode]);
        for (q, x) in vector(mode, row % extent)[..components].iter().enumerate() {
            let next = (at + q * step, step * components, product * x);
            self.core_rows(vector, (mode, row / extent), next, found);
        }
    }

    /// Adds to `out` the core times the vectors of a row of the table, summed over all components but those of the last mode.
    fn left<'v>(&self, core: &FactorMatrix, row: usize, vector: &impl Fn(usize, usize) -> &'v [f64], out: &mut [f64]) {
        self.core_rows(vector, (self.last(), row), (0, 1, 1.0), &mut |at, product| {
            out.iter_mut().zip(core.row(at)).for_each(|(out, x)| *out += product * x);
        });
    }

    /// Adds to `out` the derivatives, by the entries at a place, of the sum over some columns of the rates of a row of the table:
    /// those of the row's vectors and of the sum `right` of the columns' own.
    fn derivative<'v>(
        &self,
        core: &FactorMatrix,
        (place, row): (EntryPlace, usize),
        vector: &impl Fn(usize, usize) -> &'v [f64],
        right: &[f64],
        out: &mut [f64],
    ) {
        match place {
            EntryPlace::Mode(mode) if mode == self.last() => self.left(core, row, vector, out),
            EntryPlace::Mode(mode) => {
                let ones = vec![1.0; self.components[mode]];
                let others = |other: usize, index: usize| if other == mode { &ones[..] } else { vector(other, index) };
                let inner: usize = self.components[mode + 1..self.last()].iter().product();
                self.core_rows(&others, (self.last(), row), (0, 1, 1.0), &mut |at, product| {
                    out[at / inner % self.components[mode]] += product * dot(core.row(at), right);
                });
            }
            EntryPlace::Core(at) => {
                let (mut rest, mut product) = (at, 1.0);
                for mode in (0..self.last()).rev() {
                    product *= vector(mode, mode_index(self.extents, mode, row, 0))[rest % self.components[mode]];
                    rest /= self.components[mode];
                }
                out.iter_mut().zip(right).for_each(|(out, x)| *out += product * x);
            }
        }
    }

    /// Adds to `out` what the entries at a place are exposed to: over all cells a product of sums, less the cells held out.
    fn exposure(
        &self,
        layout: &Layout,
        place: EntryPlace,
        factors: &Factors,
        sums: &[Vec<f64>],
        index: usize,
        out: &mut [f64],
    ) {
        let number = match place {
            EntryPlace::Core(_) => layout.rows * layout.cols,
            EntryPlace::Mode(mode) => layout.rows * layout.cols / self.extents[mode].max(1),
        };
        // Where nothing is observed there is none, and nothing that rounding leaves of a difference.
        if held_at(layout, place, index).len() == number {
            return;
        }
        let (mut found, mut taken) = (vec![0.0; out.len()], vec![0.0; out.len()]);
        self.of_all_cells(place, factors, sums, &mut found);
        self.add_held(layout, (place, index), factors, &found, &mut taken);
        out.iter_mut().zip(found.iter().zip(&taken)).for_each(|(out, (all, taken))| *out += (all - taken).max(0.0));
    }

    /// Where the entries of a factor are that is no other mode's.
    fn place(&self, (factor, row): Entries) -> EntryPlace {
        self.of(factor).next().map_or(EntryPlace::Core(row), EntryPlace::Mode)
    }

    /// Adds to `out` what the entries at a place would be exposed to in all cells.
    fn of_all_cells(&self, place: EntryPlace, factors: &Factors, sums: &[Vec<f64>], out: &mut [f64]) {
        let of_all = |mode: usize, _: usize| &sums[self.factors[mode]][..];
        self.derivative(&factors[self.core()], (place, 0), &of_all, &sums[self.factors[self.last()]], out);
    }

    /// Adds what they would be exposed to in the cells held out, given what they are in all cells. What each row of the table adds
    /// is rounded to a unit of which all cells have less than 2^51, so that these sums are exact.
    fn add_held(
        &self,
        layout: &Layout,
        (place, index): (EntryPlace, usize),
        factors: &Factors,
        whole: &[f64],
        held: &mut [f64],
    ) {
        let (core, right) = (&factors[self.core()], &factors[self.factors[self.last()]]);
        let of_row = |mode: usize, index: usize| factors[self.factors[mode]].row(index);
        let anchors: Vec<f64> = whole.iter().map(|&x| anchor(x)).collect();
        let (mut of_one, mut columns) = (vec![0.0; held.len()], vec![0.0; right.stride]);
        for (row, cells) in by_row(layout, held_at(layout, place, index)) {
            columns.fill(0.0);
            for &cell in cells {
                columns.iter_mut().zip(right.row(layout.cell(cell).1)).for_each(|(sum, x)| *sum += x);
            }
            of_one.fill(0.0);
            self.derivative(core, (place, row), &of_row, &columns, &mut of_one);
            add_rounded(held, &of_one, &anchors);
        }
    }

    /// Sums over the indices i_m of a mode, and before of all later ones, what falls to the components q_m, q_{m+1}, ...: adds it
    /// to `above`. `weights`, of the same shape, are the core times the entries of the modes before, summed over their components.
    fn marginalize<N: Copy + Default, M: ModeSum<N>>(
        &self,
        marginal: &mut M,
        factors: &Factors,
        (mode, row, weights): (usize, usize, &[f64]),
        above: &mut [N],
    ) {
        let factor = &factors[self.factors[mode]];
        let (width, suffix) = (factor.width, weights.len() / factor.width);
        // The weights of one place among the later modes side by side, padded as the factor's rows are.
        let mut columns = vec![0.0; suffix * factor.stride];
        for (q, weights) in weights.chunks_exact(suffix).enumerate() {
            weights.iter().enumerate().for_each(|(s, &weight)| columns[s * factor.stride + q] = weight);
        }
        let mut below = vec![N::default(); suffix];
        for index in marginal.indices(mode, self.extents[mode]) {
            marginal.begin(mode, index);
            let row = row * self.extents[mode] + index;
            below.fill(N::default());
            if mode + 1 == self.last() {
                marginal.start(row, &mut below);
            } else {
                let mut inner = vec![0.0; suffix];
                for (x, weights) in factor.row(index)[..width].iter().zip(weights.chunks_exact(suffix)) {
                    inner.iter_mut().zip(weights).for_each(|(inner, weight)| *inner += x * weight);
                }
                self.marginalize(marginal, factors, (mode + 1, row, &inner), &mut below);
            }
            marginal.step((mode, index), factor.row(index), &columns, &below, above);
        }
    }

    /// The expected counts of the entries of a factor, of some rows of the first mode and of what is right of the product.
    fn expected_counts(
        &self,
        factor: usize,
        geometric: &Factors,
        (left, right): (&[f64], &[f64]),
        first: Range<usize>,
    ) -> Vec<f64> {
        let (stride, rows) = (geometric[self.core()].stride, geometric[factor].rows);
        let start = |row: usize, out: &mut [f64]| out.copy_from_slice(&left[row * stride..][..out.len()]);
        let mut sums = if right.is_empty() { vec![0.0; rows * geometric[factor].stride] } else { right.to_vec() };
        let places = self.of(factor).filter(|&mode| mode < self.last()).map(|mode| Some((mode, 0..rows)));
        for place in places.chain((factor == self.core()).then_some(None)) {
            let more = self.derivatives(geometric, place, first.clone(), start);
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
        // The sums lack the factor's own entries.
        sums.iter_mut().zip(geometric[factor].padded()).for_each(|(sum, x)| *sum *= x);
        sums
    }

    /// The derivatives by the entries of the core, or of some rows of a mode's factor, of the sum over the rows of the table of
    /// u_r times what `start` writes: the sum of R over its columns, weighted. Of the first mode some rows are summed over.
    fn derivatives(
        &self,
        factors: &Factors,
        within: Option<(usize, Range<usize>)>,
        first: Range<usize>,
        start: impl FnMut(usize, &mut [f64]),
    ) -> Vec<f64> {
        let core = &factors[self.core()];
        let stride = within.as_ref().map_or(core.stride, |(mode, _)| factors[self.factors[*mode]].stride);
        let number = within.as_ref().map_or(0, |(_, range)| range.len());
        let mut marginal = Derivatives { start, within, first, found: vec![0.0; number * stride] };
        let mut above = vec![0.0; core.rows * core.width];
        self.marginalize(&mut marginal, factors, (0, 0, &core.unpadded()), &mut above);
        if marginal.within.is_some() { marginal.found } else { padded(&above, core.width) }
    }
}

/// The cells held out that the entries at a place are in; of a mode at an index.
fn held_at(layout: &Layout, place: EntryPlace, index: usize) -> &[u64] {
    match place {
        EntryPlace::Core(_) => &layout.held[0].cells,
        EntryPlace::Mode(mode) => layout.held[mode + 1].at(index),
    }
}

/// Cells, which are sorted, by the row of the table that they lie in.
fn by_row<'a>(layout: &'a Layout, cells: &'a [u64]) -> impl Iterator<Item = (usize, &'a [u64])> {
    let row = |cell: &u64| layout.cell(*cell).0;
    cells.chunk_by(move |a, b| row(a) == row(b)).map(move |cells| (row(&cells[0]), cells))
}

/// Where entries are: in the factor of a mode, or in a row of the core.
#[derive(Clone, Copy)]
enum EntryPlace {
    Mode(usize),
    Core(usize),
}

/// What is summed over the indices of one mode after the other: counts, or weighted sums.
trait ModeSum<N> {
    /// The indices of a mode that are asked for.
    fn indices(&self, _mode: usize, extent: usize) -> Range<usize> {
        0..extent
    }

    /// Makes ready for what lies at an index of a mode.
    fn begin(&mut self, _mode: usize, _index: usize) {}

    /// Sets what a row of the table begins with, by the components of the last mode.
    fn start(&mut self, row: usize, below: &mut [N]);

    /// Takes what the later modes have to the components of a place, (mode, index), whose entries and weights are given.
    fn step(&mut self, place: Entries, entries: &[f64], columns: &[f64], below: &[N], above: &mut [N]);
}

/// Counts, which are split over the components of one mode after the other.
struct SplitCounts<'a> {
    modes: Modes<'a>,
    tally: &'a [u64],
    stride: usize,
    counts: Vec<Vec<u64>>,
    splitters: Vec<Splitter>,
    parts: Vec<u64>,
    /// The words of an index of the first mode, whichever part of the mode it is in.
    words: &'a dyn Fn(usize) -> Xoshiro,
    rng: Xoshiro,
}

impl ModeSum<u64> for SplitCounts<'_> {
    fn begin(&mut self, mode: usize, index: usize) {
        if mode == 0 {
            self.rng = (self.words)(index);
        }
    }

    fn start(&mut self, row: usize, below: &mut [u64]) {
        below.copy_from_slice(&self.tally[row * self.stride..][..below.len()]);
    }

    fn step(&mut self, (mode, index): Entries, row: &[f64], columns: &[f64], below: &[u64], above: &mut [u64]) {
        let (stride, suffix, factor) = (row.len(), below.len(), self.modes.factors[mode]);
        let cell = &mut self.counts[factor][index * stride..(index + 1) * stride];
        let parts = &mut self.parts[..stride];
        for (s, (&count, column)) in below.iter().zip(columns.chunks_exact(stride)).enumerate() {
            if count > 0 {
                parts.fill(0);
                self.splitters[factor].split(count, row, column, &mut self.rng, cell, parts);
                above[s..].iter_mut().step_by(suffix).zip(&*parts).for_each(|(above, part)| *above += part);
            }
        }
    }
}

/// Weighted sums over cells, of which derivatives by rows of the factor of a mode are made.
struct Derivatives<S> {
    start: S,
    within: Option<(usize, Range<usize>)>,
    first: Range<usize>,
    found: Vec<f64>,
}

impl<S: FnMut(usize, &mut [f64])> ModeSum<f64> for Derivatives<S> {
    fn indices(&self, mode: usize, extent: usize) -> Range<usize> {
        let all = if mode == 0 { self.first.clone() } else { 0..extent };
        self.within.as_ref().filter(|(own, _)| *own == mode).map_or(all, |(_, range)| range.clone())
    }

    fn start(&mut self, row: usize, below: &mut [f64]) {
        (self.start)(row, below);
    }

    fn step(&mut self, (mode, index): Entries, row: &[f64], columns: &[f64], below: &[f64], above: &mut [f64]) {
        let (stride, suffix) = (row.len(), below.len());
        if let Some((own, range)) = &self.within
            && *own == mode
        {
            let found = &mut self.found[(index - range.start) * stride..][..stride];
            for (sum, column) in below.iter().zip(columns.chunks_exact(stride)) {
                found.iter_mut().zip(column).for_each(|(found, weight)| *found += weight * sum);
            }
        }
        for (s, sum) in below.iter().enumerate() {
            above[s..].iter_mut().step_by(suffix).zip(row).for_each(|(above, x)| *above += x * sum);
        }
    }
}

impl Structure for Tucker {
    fn table_shape(&self, extents: &[usize]) -> Option<(usize, usize)> {
        let modes = Modes::new(extents);
        let [rest @ .., last] = modes.extents else { return None };
        let core = modes.components.iter().try_fold(1, |size: usize, &more| size.checked_mul(more));
        let fits = extents.len() == 3 * modes.extents.len() && !rest.is_empty() && core.is_some() && modes.fit();
        (fits && self.tied == (modes.core() < modes.extents.len())).then(|| (rest.iter().product(), *last))
    }

    fn shapes(&self, extents: &[usize], _width: usize) -> Vec<(usize, usize)> {
        let modes = Modes::new(extents);
        let first = (0..modes.core()).filter_map(|factor| modes.of(factor).next());
        let mut shapes: Vec<_> = first.map(|mode| (modes.extents[mode], modes.components[mode])).collect();
        let rows = modes.components[..modes.last()].iter().product();
        shapes.push((rows, modes.components[modes.last()]));
        shapes
    }

    /// Counts by row of the table and component of the last mode, and by column and component.
    fn tally_shapes(&self, extents: &[usize], _width: usize) -> Vec<(usize, usize)> {
        let (modes, last) = (Modes::new(extents), extents.len() / 3 - 1);
        let rows = modes.extents[..last].iter().product();
        vec![(rows, modes.components[last]), (modes.extents[last], modes.components[last])]
    }

    fn modes<'e>(&self, extents: &'e [usize]) -> &'e [usize] {
        Modes::new(extents).extents
    }

    fn left_tallies(&self, _extents: &[usize]) -> usize {
        1
    }

    fn right(&self, extents: &[usize]) -> usize {
        let modes = Modes::new(extents);
        modes.factors[modes.last()]
    }

    /// The row of the table, and the modes after it.
    fn indices(&self, extents: &[usize]) -> usize {
        1 + self.modes(extents).len()
    }

    fn extent(&self, extents: &[usize], number: usize) -> usize {
        let modes = Modes::new(extents);
        number.checked_sub(1).map_or_else(|| modes.extents[..modes.last()].iter().product(), |mode| modes.extents[mode])
    }

    fn index(&self, extents: &[usize], number: usize, row: usize, column: usize) -> usize {
        number.checked_sub(1).map_or(row, |mode| mode_index(self.modes(extents), mode, row, column))
    }

    fn left(&self, layout: &Layout, factors: &Factors, row: usize, out: &mut [f64]) {
        let modes = Modes::new(&layout.extents);
        out.fill(0.0);
        modes.left(&factors[modes.core()], row, &|mode, index| factors[modes.factors[mode]].row(index), out);
    }

    fn terms(&self, extents: &[usize], _width: usize) -> (f64, f64) {
        let modes = Modes::new(extents);
        let terms = modes.components.iter().map(|&components| components as f64).product();
        (terms, modes.extents.len() as f64 + 1.0)
    }

    fn in_turn(&self) -> bool {
        self.tied
    }

    fn is_split_by_rows(&self) -> bool {
        !self.tied
    }

    fn total_rate(&self, layout: &Layout, factors: &Factors) -> f64 {
        let modes = Modes::new(&layout.extents);
        let (core, right) = (&factors[modes.core()], self.right(&layout.extents));
        let sums: Vec<_> = factors.iter().map(FactorMatrix::sums).collect();
        let mut left = vec![0.0; core.stride];
        modes.left(core, 0, &|mode, _| &sums[modes.factors[mode]][..], &mut left);
        let mut total = dot(&left, &sums[right]);
        for (row, cells) in by_row(layout, &layout.held[0].cells) {
            self.left(layout, factors, row, &mut left);
            total -= cells.iter().map(|&cell| dot(&left, factors[right].row(layout.cell(cell).1))).sum::<f64>();
        }
        total
    }

    fn exposure(&self, layout: &Layout, (factor, row): Entries, factors: &Factors, sums: &[Vec<f64>], out: &mut [f64]) {
        let modes = Modes::new(&layout.extents);
        out.fill(0.0);
        if factor == modes.core() {
            modes.exposure(layout, EntryPlace::Core(row), factors, sums, 0, out);
        } else {
            modes.of(factor).for_each(|mode| modes.exposure(layout, EntryPlace::Mode(mode), factors, sums, row, out));
        }
    }

    fn of_all_cells(&self, layout: &Layout, place: Entries, factors: &Factors, sums: &[Vec<f64>], out: &mut [f64]) {
        let modes = Modes::new(&layout.extents);
        modes.of_all_cells(modes.place(place), factors, sums, out);
    }

    fn add_held(&self, layout: &Layout, place: Entries, factors: &Factors, whole: &[f64], held: &mut [f64]) {
        let modes = Modes::new(&layout.extents);
        modes.add_held(layout, (modes.place(place), place.1), factors, whole, held);
    }

    fn weighted_exposure(
        &self,
        layout: &Layout,
        (factor, row): Entries,
        factors: &Factors,
        weights: &[f64],
        out: &mut [f64],
    ) {
        let modes = Modes::new(&layout.extents);
        let (right, stride) = (&factors[self.right(&layout.extents)], factors[factor].stride);
        let sum_of_columns = |row: usize, out: &mut [f64]| {
            for (column, weight) in weights[row * layout.cols..(row + 1) * layout.cols].iter().enumerate() {
                out.iter_mut().zip(right.row(column)).for_each(|(out, x)| *out += weight * x);
            }
        };
        if factor == modes.core() {
            let all = modes.derivatives(factors, None, 0..modes.extents[0], sum_of_columns);
            out.copy_from_slice(&all[row * stride..(row + 1) * stride]);
            return;
        }
        out.fill(0.0);
        for mode in modes.of(factor) {
            if mode == modes.last() {
                let mut left = vec![0.0; stride];
                for other in 0..layout.rows {
                    self.left(layout, factors, other, &mut left);
                    let weight = weights[other * layout.cols + row];
                    out.iter_mut().zip(&left).for_each(|(out, x)| *out += weight * x);
                }
            } else {
                let within = Some((mode, row..row + 1));
                let more = modes.derivatives(factors, within, 0..modes.extents[0], sum_of_columns);
                out.iter_mut().zip(more).for_each(|(out, more)| *out += more);
            }
        }
    }

    fn counts<'t>(
        &self,
        layout: &Layout,
        factors: &Factors,
        tallies: &'t [Vec<u64>],
        rng: &dyn Fn(usize) -> Xoshiro,
    ) -> Cow<'t, [Vec<u64>]> {
        let modes = Modes::new(&layout.extents);
        let (core, right) = (&factors[modes.core()], self.right(&layout.extents));
        let mut counts: Vec<_> = factors.iter().map(|factor| vec![0; factor.rows * factor.stride]).collect();
        counts[right].copy_from_slice(&tallies[1]);
        let mut split = SplitCounts {
            modes,
            tally: &tallies[0],
            stride: core.stride,
            counts,
            splitters: factors.iter().map(|factor| Splitter::new(factor.stride)).collect(),
            parts: vec![0; factors.iter().map(|factor| factor.stride).max().unwrap_or(0)],
            words: rng,
            rng: rng(0),
        };
        let mut above = vec![0; core.rows * core.width];
        modes.marginalize(&mut split, factors, (0, 0, &core.unpadded()), &mut above);
        let mut counts = split.counts;
        counts[modes.core()] = padded(&above, core.width);
        Cow::Owned(counts)
    }

    fn sums_for(&self, layout: &Layout, factor: usize) -> (Option<usize>, bool) {
        let modes = Modes::new(&layout.extents);
        // Only the factor of the last mode alone is made of nothing but sums to the right.
        let (first, last) = (modes.of(factor).next(), modes.factors[modes.last()] == factor);
        ((first != Some(modes.last())).then_some(0), last)
    }

    fn expected_counts(&self, layout: &Layout, factor: usize, geometric: &Factors, sums: (&[f64], &[f64])) -> Vec<f64> {
        let modes = Modes::new(&layout.extents);
        modes.expected_counts(factor, geometric, sums, 0..modes.extents[0])
    }

    fn counts_of_rows(
        &self,
        layout: &Layout,
        factor: usize,
        geometric: &Factors,
        left: &[f64],
        rows: Range<usize>,
    ) -> Vec<f64> {
        if left.is_empty() {
            return vec![];
        }
        Modes::new(&layout.extents).expected_counts(factor, geometric, (left, &[]), rows)
    }
}
