//! Draws of gamma variables, by shape and rate.
//!
//! Shape a >= 1: with d = a - 1/3 and c = 1/sqrt(9 d), a normal z gives d (1 + c z)^3, kept with probability
//! exp(z^2/2 + d - d v + d ln v), v = (1 + c z)^3, almost always by the squeeze alone. Shape a < 1: a draw of shape a + 1 times
//! U^(1/a), where U^(1/a) = exp(-E/a) with E exponential. A result below the least double is 0 and stays 0.
//!
//! One draw takes normals and exponentials of `rand_distr` (ziggurat). Many at once take theirs without a jump, so that all steps
//! are loops over vectors: normals in pairs, r cos t and r sin t with r^2/2 exponential and t uniform, t within an eighth of a
//! turn of an axis that two more bits choose; whatever is refused goes together into the next round.
//!
//! Sources: G. Marsaglia, W. W. Tsang (2000), A simple method for generating gamma variables; G. Box, M. Muller (1958), A note on
//! the generation of random normal deviates.

use super::words::{RowWords, uniform};
use crate::distributions::RandomSource;
use crate::numeric::dispatch::{Level, at_level};
use crate::numeric::elementary::{exp, ln, sin_cos};
use crate::numeric::special::gamma::log_gamma;
use rand_distr::{Distribution, Exp1, StandardNormal};
use std::f64::consts::FRAC_PI_2;

/// A gamma law of rate one, with the constants of its draws.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gamma {
    d: f64,
    c: f64,
    /// 1/a where a < 1, else zero.
    inverse: f64,
}

impl Gamma {
    /// The law of a shape > 0.
    #[inline(always)]
    pub fn new(shape: f64) -> Self {
        let (raised, inverse) = if shape < 1.0 { (shape + 1.0, 1.0 / shape) } else { (shape, 0.0) };
        let d = raised - 1.0 / 3.0;
        Self { d, c: 1.0 / (9.0 * d).sqrt(), inverse }
    }

    /// A draw.
    #[inline(always)]
    pub fn draw(&self, rng: &mut (impl RandomSource + rand_core::Rng)) -> f64 {
        let power = if self.inverse > 0.0 {
            let exponential: f64 = Exp1.sample(rng);
            // Nothing that follows could lift a zero, and the callers' next draw does not start from it.
            (-exponential * self.inverse).exp()
        } else {
            1.0
        };
        loop {
            let z: f64 = StandardNormal.sample(rng);
            let root = 1.0 + self.c * z;
            let u = rng.open_uniform();
            let v = root * root * root;
            let square = z * z;
            let kept = u < 1.0 - 0.0331 * square * square
                || (root > 0.0 && u.ln() < 0.5 * square + self.d * (1.0 - v + v.ln()));
            if kept && root > 0.0 {
                return self.d * v * power;
            }
        }
    }
}

/// A draw with shape > 0 and rate > 0: mean shape / rate.
#[inline]
pub fn draw(shape: f64, rate: f64, rng: &mut (impl RandomSource + rand_core::Rng)) -> f64 {
    Gamma::new(shape).draw(rng) / rate
}

/// The logarithm of a draw of rate one with a shape > 0, finite down to shapes of 1e-290, whose draws are below any double.
pub fn draw_log(shape: f64, rng: &mut (impl RandomSource + rand_core::Rng)) -> f64 {
    if shape >= 1.0 {
        return Gamma::new(shape).draw(rng).ln();
    }
    let exponential: f64 = Exp1.sample(rng);
    Gamma::new(shape + 1.0).draw(rng).ln() - exponential / shape
}

/// Strips of a [`ShapeTable`], those below its tails among them: what is looked up of them stays in the nearest cache.
const STRIPS: usize = 1024;
/// The root of a draw that strips are cut by: so high that the density of all shapes of a table is log-concave there.
const ROOT: f64 = 64.0;

/// Draws of one shape, by the root t of the draw: its density t^(64 r - 1) exp(-t^64) is log-concave where 64 r > 1, and a draw is
/// six squares away.
///
/// From the mode on, to either side, there are strips below each of which a rectangle has the same area, as high as the density
/// at the edge nearer to the mode; beyond them the tangent of the logarithm bounds the density. A strip is as likely as another, and
/// a point of it is kept below the density at its farther edge without looking; that fails in one of fifty draws.
///
/// A word is the strip, the first eight bits of the number that the height is compared with, which mostly are enough, and the place
/// in the strip.
///
/// Sources: J. H. Ahrens, U. Dieter (1989), An alternative approach to sampling with tables (strips); L. Devroye (1986), chapter VII
/// (log-concave densities).
#[derive(Clone, Debug)]
pub struct ShapeTable {
    /// 64 r - 1.
    power: f64,
    mode: f64,
    /// Where a strip starts, nearer to the mode, and how far it goes.
    strips: [[f64; 2]; STRIPS],
    /// How many of 256 parts of the rectangle's height are kept at once.
    kept: [u8; STRIPS],
}

/// The tails are the first strips.
const TAILS: usize = 2;

impl ShapeTable {
    /// The table of a shape, if it is neither so small nor so large that its strips would be bad.
    pub fn new(shape: f64) -> Option<Self> {
        if !(0.02..=1e3).contains(&shape) {
            return None;
        }
        let power = ROOT * shape - 1.0;
        let mode = exp(ln(power / ROOT) / ROOT);
        let mut table = Self { power, mode, strips: [[mode, 0.0]; STRIPS], kept: [0; STRIPS] };
        // The area below the density, whose maximum is 1 here, and a bit for what rectangles have beyond it.
        let all = exp(log_gamma(shape) + power_of(mode) - power * ln(mode)) / ROOT;
        let mut area = 1.02 * all / STRIPS as f64;
        while !table.fill(area) {
            area *= 1.01;
        }
        Some(table)
    }

    /// Sets the strips for rectangles of this area, unless there are too many.
    fn fill(&mut self, area: f64) -> bool {
        let mut strip = TAILS;
        for (tail, side) in [-1.0, 1.0].into_iter().enumerate() {
            let (mut edge, mut height) = (self.mode, 1.0);
            // Until what is below the tangent is no more than a rectangle; below zero there is nothing.
            while height > 0.0 && height > area * self.slope(edge).abs() {
                if strip == STRIPS {
                    return false;
                }
                let width = side * area / height;
                let next = exp(self.log_ratio(edge + width, self.mode));
                (self.strips[strip], self.kept[strip]) = ([edge, width], (256.0 * next / height) as u8);
                (edge, height) = (edge + width, next);
                strip += 1;
            }
            // The width of a tail is the share of the strip that is below its tangent.
            self.strips[tail] = [edge, if height > 0.0 { height / (area * self.slope(edge).abs()) } else { 0.0 }];
        }
        self.kept[strip..].fill(0);
        // Where nothing is, no point is: such a strip is refused always.
        self.strips[strip..].fill([f64::INFINITY, 0.0]);
        true
    }

    /// The derivative of the logarithm of the density of t.
    fn slope(&self, t: f64) -> f64 {
        (self.power - ROOT * power_of(t)) / t
    }

    /// The logarithm of the density of t over that at an edge.
    #[inline(always)]
    fn log_ratio(&self, t: f64, edge: f64) -> f64 {
        if t > 0.0 { self.power * ln(t / edge) - (power_of(t) - power_of(edge)) } else { f64::NEG_INFINITY }
    }

    /// The root of a draw, if the proposal of a word is kept.
    fn proposed(&self, word: u64, words: &mut RowWords) -> Option<f64> {
        let (strip, height, place) = parts(word);
        let [edge, width] = self.strips[strip];
        if height < self.kept[strip] {
            return Some(edge + width * place);
        }
        let v = (f64::from(height) + words.uniform()) / 256.0;
        if strip < TAILS {
            if place >= width {
                return None;
            }
            let slope = self.slope(edge);
            let t = edge + ln(1.0 - words.uniform()) / slope;
            let below = self.log_ratio(t, edge) - slope * (t - edge);
            return (v < exp(below)).then_some(t);
        }
        let t = edge + width * place;
        (edge < f64::INFINITY && v < exp(self.log_ratio(t, edge))).then_some(t)
    }

    /// Draws of the shape.
    pub fn draw_many(&self, level: Level, words: &mut RowWords, draws: &mut [f64], scratch: &mut TableScratch) {
        for draws in draws.chunks_mut(TABLE_BATCH) {
            scratch.reserve(draws.len());
            let TableScratch { words: own, others, numbers, looked_at } = scratch;
            words.fill(&mut own[..draws.len()]);
            let open = at_level!(level, self.propose(own, draws, others));
            words.uniforms(&mut numbers[..open]);
            let second = (&mut numbers[..open], &mut looked_at[..open]);
            let open = at_level!(level, self.look_again(own, draws, &mut others[..open], second));
            for &place in &others[..open] {
                // The word of a tail is looked at first here.
                let place = place as usize;
                let mut word = if parts(own[place]).0 < TAILS { own[place] } else { words.word() };
                draws[place] = loop {
                    if let Some(t) = self.proposed(word, words) {
                        break t;
                    }
                    word = words.word();
                };
            }
            at_level!(level, powers(draws));
        }
    }

    /// Keeps roots of strips, all but tails, that are below the density; which are not, and how many.
    #[inline(always)]
    fn look_again(
        &self,
        words: &[u64],
        draws: &[f64],
        others: &mut [u32],
        (numbers, looked_at): (&mut [f64], &mut [[f64; 2]]),
    ) -> usize {
        for (i, &place) in others.iter().enumerate() {
            let (strip, height, _) = parts(words[place as usize]);
            // A tail's own draw comes later: what stands in its place may lie where the density is many times that at the edge.
            let height = if strip < TAILS { f64::INFINITY } else { f64::from(height) };
            numbers[i] = (height + numbers[i]) / 256.0;
            looked_at[i] = [self.strips[strip][0], draws[place as usize]];
        }
        for (number, &[edge, root]) in numbers.iter_mut().zip(&*looked_at) {
            // Of a strip where nothing is this is no number, and it is not kept.
            *number = if *number < exp(self.log_ratio(root, edge)) { 1.0 } else { 0.0 };
        }
        let mut left = 0;
        for i in 0..others.len() {
            others[left] = others[i];
            left += usize::from(numbers[i] == 0.0);
        }
        left
    }

    /// Roots of draws that are kept at once; which are not, and how many.
    #[inline(always)]
    fn propose(&self, words: &[u64], draws: &mut [f64], others: &mut [u32]) -> usize {
        let mut open = 0;
        for ((i, draw), &word) in (0..).zip(draws).zip(words) {
            let (strip, height, place) = parts(word);
            let [edge, width] = self.strips[strip];
            *draw = edge + width * place;
            // Written always and kept where it is meant: no jump to guess wrong.
            others[open] = i;
            open += usize::from(height >= self.kept[strip]);
        }
        open
    }
}

/// Draws of a table worked on together: of forty of them more than their first bits are looked at, side by side. Not tuned.
const TABLE_BATCH: usize = 2048;

/// What draws of a table are made with.
#[derive(Debug, Default)]
pub struct TableScratch {
    words: Vec<u64>,
    /// Places of draws that are not kept at once; what is compared with the density there; edge and root.
    others: Vec<u32>,
    numbers: Vec<f64>,
    looked_at: Vec<[f64; 2]>,
}

impl TableScratch {
    fn reserve(&mut self, number: usize) {
        if self.words.len() < number {
            self.words.resize(number, 0);
            self.others.resize(number, 0);
            self.numbers.resize(number, 0.0);
            self.looked_at.resize(number, [0.0; 2]);
        }
    }
}

/// The strip, the first bits of the height and the place of a word, which have no bit in common.
#[inline(always)]
fn parts(word: u64) -> (usize, u8, f64) {
    (word as usize % STRIPS, (word >> 10) as u8, uniform(word & !0 << 18))
}

/// The power that t is the root of, by six squares.
#[inline(always)]
fn power_of(t: f64) -> f64 {
    (0..6).fold(t, |power, _| power * power)
}

#[inline(always)]
fn powers(roots: &mut [f64]) {
    roots.iter_mut().for_each(|root| *root = power_of(*root));
}

/// Draws worked on together, in 2 KiB for each of what is kept of them. Not tuned.
const BATCH: usize = 256;

/// The largest shape that [`draw_whole`] serves.
pub const WHOLE: u32 = 4;

/// A draw of rate one for each whole shape up to [`WHOLE`]: less the logarithm of a product of so many uniform numbers.
pub fn draw_whole(level: Level, shapes: &[u32], words: &mut RowWords, draws: &mut [f64]) {
    let mut own = [0; WHOLE as usize * BATCH];
    for (shapes, draws) in shapes.chunks(BATCH).zip(draws.chunks_mut(BATCH)) {
        let own = &mut own[..WHOLE as usize * shapes.len()];
        words.fill(own);
        at_level!(level, whole(shapes, own, draws));
    }
}

#[inline(always)]
fn whole(shapes: &[u32], words: &[u64], draws: &mut [f64]) {
    draws.fill(1.0);
    for (number, words) in (0..).zip(words.chunks_exact(shapes.len())) {
        for ((&shape, &word), product) in shapes.iter().zip(words).zip(&mut *draws) {
            *product *= if number < shape { 1.0 - uniform(word) } else { 1.0 };
        }
    }
    for product in draws {
        *product = -ln(*product);
    }
}

/// A draw of rate one for each shape > 0; words are taken as they come, so equal shapes and words give equal draws.
pub fn draw_many(level: Level, shapes: &[f64], words: &mut RowWords, draws: &mut [f64]) {
    let mut batch = ProposalBatch::default();
    for (shapes, draws) in shapes.chunks(BATCH).zip(draws.chunks_mut(BATCH)) {
        let ProposalBatch { words: own, d, c, place, .. } = &mut batch;
        at_level!(level, start(shapes, (d, c), draws));
        if shapes.iter().any(|&shape| shape < 1.0) {
            words.fill(&mut own[..shapes.len()]);
            at_level!(level, lower(shapes, own, draws));
        }
        place.iter_mut().zip(0..).for_each(|(place, i)| *place = i);
        let mut waiting = shapes.len();
        while waiting > 0 {
            let pairs = pairs_of(waiting);
            words.fill(&mut batch.words[..2 * pairs + waiting]);
            waiting = at_level!(level, propose(&mut batch, waiting, draws));
        }
    }
}

/// Pairs of normals for so many entries: whole vectors of them, for what is left of one takes as long.
fn pairs_of(waiting: usize) -> usize {
    waiting.div_ceil(2).next_multiple_of(8)
}

/// Entry i of a batch waits for a proposal that is kept, of constants d and c; `place` is where its draw is, and `u` what is
/// compared with its density. Those that are looked at twice are on a list.
struct ProposalBatch {
    /// Halves of a word for each pair of normals, r before t, and a word for each proposal.
    words: [u64; 3 * BATCH],
    place: [u32; BATCH],
    d: [f64; BATCH],
    c: [f64; BATCH],
    z: [f64; BATCH],
    u: [f64; BATCH],
    list: [u32; BATCH],
}

impl Default for ProposalBatch {
    fn default() -> Self {
        let zeros = [0.0; BATCH];
        Self { words: [0; 3 * BATCH], place: [0; BATCH], d: zeros, c: zeros, z: zeros, u: zeros, list: [0; BATCH] }
    }
}

/// The constants of the draws, and d in their place.
#[inline(always)]
fn start(shapes: &[f64], (d, c): (&mut [f64], &mut [f64]), draws: &mut [f64]) {
    for ((&shape, draw), (d, c)) in shapes.iter().zip(draws).zip(d.iter_mut().zip(c)) {
        *d = (if shape < 1.0 { shape + 1.0 } else { shape }) - 1.0 / 3.0;
        *c = 1.0 / (9.0 * *d).sqrt();
        *draw = *d;
    }
}

/// Multiplies the draws of shapes a < 1 by U^(1/a).
#[inline(always)]
fn lower(shapes: &[f64], words: &[u64], draws: &mut [f64]) {
    for ((&shape, &word), draw) in shapes.iter().zip(words).zip(draws) {
        let power = exp(ln(1.0 - uniform(word)) / shape);
        *draw *= if shape < 1.0 { power } else { 1.0 };
    }
}

/// A proposal for each entry that waits; how many wait on, in front.
#[inline(always)]
fn propose(batch: &mut ProposalBatch, waiting: usize, draws: &mut [f64]) -> usize {
    let ProposalBatch { words, place, d, c, z, u, list } = batch;
    let half = pairs_of(waiting);
    let (first, rest) = words.split_at(half);
    let (second, rest) = rest.split_at(half);
    let (low, high) = z.split_at_mut(half);
    for (((&first, &second), low), high) in first.iter().zip(second).zip(low).zip(high) {
        (*low, *high) = normals(first, second);
    }
    // The squeeze keeps nine of ten. What it does not keep goes to the front, with the number that it was compared with.
    let mut open = 0;
    let entries = c[..waiting].iter().zip(&z[..waiting]).zip(&rest[..waiting]);
    for (((&c, &z), &word), u) in entries.zip(&mut *u) {
        let (root, square, uniform) = (1.0 + c * z, z * z, uniform(word));
        let kept = (uniform < 1.0 - 0.0331 * (square * square)) & (root > 0.0);
        *u = if kept { -(root * root * root) } else { uniform };
    }
    for (i, u) in (0..).zip(&u[..waiting]) {
        list[open] = i;
        open += usize::from(*u >= 0.0);
    }
    if waiting == draws.len() {
        // The first round: entry i is at place i.
        for (draw, &u) in draws.iter_mut().zip(&*u) {
            *draw *= if u < 0.0 { -u } else { 1.0 };
        }
    } else {
        for (&at, &u) in place[..waiting].iter().zip(&*u) {
            draws[at as usize] *= if u < 0.0 { -u } else { 1.0 };
        }
    }
    for (to, &from) in list[..open].iter().enumerate() {
        let from = from as usize;
        (place[to], d[to], c[to], z[to], u[to]) = (place[from], d[from], c[from], z[from], u[from]);
    }
    let entries = c[..open].iter().zip(&d[..open]).zip(&z[..open]);
    for (((&c, &d), &z), u) in entries.zip(&mut *u) {
        let root = 1.0 + c * z;
        let v = root * root * root;
        let kept = (root > 0.0) & (ln(*u) < 0.5 * z * z + d * (1.0 - v + ln(v)));
        *u = if kept { v } else { -1.0 };
    }
    let mut left = 0;
    for i in 0..open {
        let at = place[i];
        let kept = u[i] > 0.0;
        draws[at as usize] *= if kept { u[i] } else { 1.0 };
        (place[left], d[left], c[left]) = (at, d[i], c[i]);
        left += usize::from(!kept);
    }
    left
}

/// Two independent normals from two words.
#[inline(always)]
fn normals(first: u64, second: u64) -> (f64, f64) {
    let radius = (-2.0 * ln(1.0 - uniform(first))).sqrt();
    // Within an eighth of a turn of an axis.
    let t = FRAC_PI_2 * (uniform(second) - 0.5);
    let (sine, cosine) = sin_cos(t);
    let (along, across) = (radius * cosine, radius * sine);
    // Of the lowest bits, which are not in the angle, one turns the axis and one exchanges the two.
    let along = f64::from_bits(along.to_bits() ^ second << 63);
    if second & 2 == 0 { (along, across) } else { (across, along) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::fit::{gamma_cdf, gamma_distance};
    use crate::stream::xoshiro;

    #[test]
    fn draws_have_the_distribution_function_of_the_gamma_law() {
        // Kolmogorov and Smirnov at a false-alarm rate of 1e-6 per shape: a distance of 0.0085 is seen.
        for (row, shape) in [0.05, 0.1, 0.5, 1.0, 1.7, 12.0, 400.0].into_iter().enumerate() {
            let mut words = xoshiro([3, 5], 1, 0, row as u64);
            let draws: Vec<f64> = (0..100_000).map(|_| draw(shape, 2.0, &mut words) * 2.0).collect();
            let distance = gamma_distance(shape, draws);
            assert!(distance < 2.693, "shape {shape}: {distance}");
        }
    }

    #[test]
    fn many_draws_have_their_laws_at_every_level() {
        // As above, each shape among others: 2.693 at 1e-6.
        let shapes = [0.05, 0.1, 0.5, 1.0, 1.7, 12.0, 400.0];
        let mixed: Vec<f64> = (0..700_003).map(|i| shapes[i % 7]).collect();
        let draws = |level| {
            let (mut words, mut draws) = (RowWords::new(level, [3, 5], 1, 0, 9), vec![-1.0; mixed.len()]);
            draw_many(level, &mixed, &mut words, &mut draws);
            draws
        };
        let found = draws(Level::Avx512);
        for (k, shape) in shapes.into_iter().enumerate() {
            let own: Vec<f64> = found.iter().skip(k).step_by(7).copied().collect();
            let neighbors: f64 = own.windows(2).map(|pair| (pair[0] / shape - 1.0) * (pair[1] / shape - 1.0)).sum();
            assert!(
                (neighbors * shape).abs() < 4.9 * (own.len() as f64).sqrt(),
                "shape {shape}: draws depend on draws"
            );
            let distance = gamma_distance(shape, own);
            assert!(distance < 2.693, "shape {shape}: {distance}");
        }
        assert_eq!(draws(Level::Avx2), found);
        assert_eq!(draws(Level::Baseline), found);
    }

    #[test]
    fn draws_of_a_table_have_their_law_at_every_level() {
        // As above, each shape beside its successor in the row: 2.693 at 1e-6.
        for (row, shape) in [0.02, 0.05, 0.3, 1.0, 1.7, 12.0, 1000.0].into_iter().enumerate() {
            let table = ShapeTable::new(shape).unwrap();
            let draws = |level| {
                let (mut words, mut draws) = (RowWords::new(level, [3, 5], 5, 0, row as u64), vec![-1.0; 100_003]);
                table.draw_many(level, &mut words, &mut draws, &mut TableScratch::default());
                draws
            };
            let found = draws(Level::Avx512);
            let neighbors: f64 = found.windows(2).map(|pair| (pair[0] / shape - 1.0) * (pair[1] / shape - 1.0)).sum();
            assert!((neighbors * shape).abs() < 4.9 * (found.len() as f64).sqrt(), "{shape}: draws depend on draws");
            assert!(draws(Level::Avx2) == found && draws(Level::Baseline) == found, "{shape}");
            let distance = gamma_distance(shape, found);
            assert!(distance < 2.693, "shape {shape}: {distance}");
            let kept: f64 = table.kept.iter().map(|&kept| f64::from(kept) / 256.0).sum();
            assert!(kept > 0.97 * STRIPS as f64, "{shape}: {kept}");
        }
        assert!(ShapeTable::new(0.019).is_none() && ShapeTable::new(1001.0).is_none());
    }

    #[test]
    fn tails_of_a_table_have_their_mass() {
        // The number of draws beyond where each tail starts, at a false-alarm rate of 1e-6 each by the normal deviate.
        const DRAWS: usize = 400_000;
        for (row, shape) in [0.05, 0.3, 1.0, 12.0].into_iter().enumerate() {
            let table = ShapeTable::new(shape).unwrap();
            let (mut words, mut draws) = (RowWords::new(Level::best(), [3, 5], 7, 0, row as u64), vec![-1.0; DRAWS]);
            table.draw_many(Level::best(), &mut words, &mut draws, &mut TableScratch::default());
            let [low, high] = [0, 1].map(|tail| power_of(table.strips[tail][0]));
            let beyond = [draws.iter().filter(|x| **x < low).count(), draws.iter().filter(|x| **x > high).count()];
            for (found, chance) in beyond.into_iter().zip([gamma_cdf(shape, low), 1.0 - gamma_cdf(shape, high)]) {
                let due = chance * DRAWS as f64;
                assert!((found as f64 - due).abs() < 4.9 * due.sqrt(), "shape {shape}: {found} of {due}");
            }
        }
    }

    #[test]
    fn draws_of_whole_shapes_have_their_laws_at_every_level() {
        // As above, each shape among others: 2.693 at 1e-6.
        let mixed: Vec<u32> = (0..400_003).map(|i| 1 + i % WHOLE).collect();
        let draws = |level| {
            let (mut words, mut draws) = (RowWords::new(level, [3, 5], 6, 0, 1), vec![-1.0; mixed.len()]);
            draw_whole(level, &mixed, &mut words, &mut draws);
            draws
        };
        let found = draws(Level::Avx512);
        assert!(draws(Level::Avx2) == found && draws(Level::Baseline) == found);
        for shape in 1..=WHOLE {
            let own = found.iter().zip(&mixed).filter(|(_, own)| **own == shape).map(|(draw, _)| *draw).collect();
            let distance = gamma_distance(f64::from(shape), own);
            assert!(distance < 2.693, "shape {shape}: {distance}");
        }
    }

    #[test]
    fn pairs_of_normals_are_normal_and_independent() {
        // False alarm 1e-6 each: for moments up to the fourth, of both and of their products, in units of their spread.
        let (mut words, n) = (xoshiro([3, 5], 3, 0, 0), 1_000_000);
        let mut sums = [0.0; 9];
        for _ in 0..n {
            let (x, y) = normals(words.word(), words.word());
            let (a, b) = (x * x - 1.0, y * y - 1.0);
            let terms =
                [x, y, x * y, a / 2f64.sqrt(), b / 2f64.sqrt(), a * b / 2.0, a * y / 2f64.sqrt(), b * x / 2f64.sqrt()];
            sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
            sums[8] += (x * x * x * x - 6.0 * x * x + 3.0) / 24f64.sqrt();
        }
        assert!(sums.iter().all(|sum| sum.abs() < 4.9 * f64::from(n).sqrt()), "{sums:?}");
    }

    #[test]
    fn logarithms_of_draws_have_their_law_where_draws_underflow() {
        // As above, 2.693 at 1e-6: by the distribution function, which is x^a / Gamma(a + 1) at small x and shapes a.
        for (row, shape) in [1e-280, 1e-5, 0.01, 0.7, 3.0].into_iter().enumerate() {
            let mut words = xoshiro([3, 5], 4, 0, row as u64);
            let mut levels: Vec<f64> = (0..100_000)
                .map(|_| draw_log(shape, &mut words))
                .map(|log| {
                    if log < -30.0 {
                        (shape * log).exp() / libm::tgamma(shape + 1.0)
                    } else {
                        gamma_cdf(shape, log.exp())
                    }
                })
                .collect();
            levels.sort_by(f64::total_cmp);
            let n = levels.len() as f64;
            let away = levels
                .iter()
                .enumerate()
                .map(|(i, &level)| (level - i as f64 / n).abs().max((level - (i + 1) as f64 / n).abs()));
            let distance = away.fold(0.0, f64::max) * n.sqrt();
            assert!(distance < 2.693, "shape {shape}: {distance}");
        }
    }

    #[test]
    fn tiny_shapes_give_zeros_and_nothing_worse() {
        let mut words = xoshiro([3, 5], 2, 0, 0);
        assert!((0..1000).map(|_| draw(1e-8, 1.0, &mut words)).all(|x| x.is_finite() && x >= 0.0));
        let mut draws = [f64::NAN; 1000];
        let shapes: Vec<f64> = (0..1000).map(|i| 10f64.powi(-i / 4)).collect();
        draw_many(Level::best(), &shapes, &mut RowWords::new(Level::best(), [3, 5], 2, 0, 1), &mut draws);
        assert!(draws.iter().all(|x| x.is_finite() && *x >= 0.0));
    }
}
