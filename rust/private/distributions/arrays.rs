//! Whole arrays at a time: values, quantiles, statistics and draws for parameters that are shared or differ by element.
//!
//! Element i of an array of draws has an address of its own, so the result does not depend on threads or on how an array is
//! cut: its first word is word i mod 4 of the block at `[0, i / 4, 0, FIRST]`, all further words are those of the stream at
//! row i of purpose `FURTHER`. Most cells of a sparse sweep need one word, and then four of them share a block.

use super::bessel::Address;
use super::whole_rates::{self, WHOLE_RATES};
use super::words::{self, BLOCK, BlockWords};
use super::{Bessel, Distribution, Function, RandomSource, Skellam, Statistic, TwoPiecePoisson, TwoSidedGeometric};
use super::{alias, poisson, skellam};
use super::{bessel, evaluate, quantile, statistic_of, two_piece_poisson, two_sided_geometric};
use crate::monitor::{Monitor, Progress};
use crate::numeric::dispatch::{self, Level, at_level};
use crate::stream::{Stream, philox};
use crate::{Error, Result, parallel};

/// The purpose of the blocks that hold first words.
const FIRST: u64 = 0x0066_6972_7374;
/// The purpose of the streams of further words.
const FURTHER: u64 = 0x0066_7572_7468_6572;
/// The sides of second words follow those of first words, and those of third words follow them.
const SECOND: u64 = 2;
const THIRD: u64 = 4;
const FOURTH: u64 = 6;
const FIFTH: u64 = 8;
/// Elements whose words are made at a time; a divisor of the block.
const BATCH: usize = alias::MOST_DRAWS;
/// Elements between two looks at the stop flag where one element may take a fraction of a millisecond.
const POLL: usize = 64;
/// The same for values that are found side by side. Four times as many stay on the calling thread: to wake others would cost 50 ns
/// a value of a thousand.
const SIDE_BY_SIDE: usize = 1024;

/// The words of one element of an array of draws.
#[derive(Clone, Debug)]
pub struct CellRng {
    first: Option<u64>,
    further: Stream,
}

impl CellRng {
    /// The words of element `index`, whose first word is known.
    #[inline]
    pub fn new(key: [u64; 2], index: u64, first: u64) -> Self {
        Self { first: Some(first), further: Stream::new(key, FURTHER, 0, index) }
    }
}

impl RandomSource for CellRng {
    #[inline]
    fn word(&mut self) -> u64 {
        self.first.take().unwrap_or_else(|| self.further.word())
    }
}

/// Two words that are known, and then those of a stream.
struct PairRng {
    words: [u64; 2],
    used: usize,
    further: Stream,
}

impl RandomSource for PairRng {
    #[inline]
    fn word(&mut self) -> u64 {
        let used = self.used;
        self.used += 1;
        self.words.get(used).copied().unwrap_or_else(|| self.further.word())
    }
}

/// An array that results are written into, with the threads that may work on it and the monitor that hears of it.
pub struct Output<'a, T> {
    /// An element for each result.
    pub out: &'a mut [T],
    /// Threads.
    pub threads: usize,
    /// The monitor.
    pub monitor: &'a mut dyn Monitor,
}

impl<T: Send> Output<'_, T> {
    /// Runs `work(index of first element, elements)` over blocks, on this thread where the array is small.
    fn blocks(self, poll: usize, work: impl Fn(usize, &mut [T]) -> Result<()> + Sync) -> Result<()> {
        let Self { out, threads, monitor } = self;
        let total = out.len() as u64;
        let run = |start: usize, block: &mut [T], progress: &Progress| {
            block.chunks_mut(poll).enumerate().try_for_each(|(i, chunk)| {
                work(start + i * poll, chunk)?;
                progress.advance(chunk.len() as u64)
            })
        };
        if out.len() <= 4 * poll {
            return parallel::run_here(total, |progress| run(0, out, progress));
        }
        let size = BLOCK.min(out.len().div_ceil(4 * threads)).next_multiple_of(poll);
        parallel::run(threads, total, monitor, |progress| {
            parallel::pieces(out, size, || (), |(), i, block| run(i * size, block, progress))
        })
    }

    /// Sets each element, given its index.
    fn each(self, of: impl Fn(usize) -> T + Sync) -> Result<()> {
        self.blocks(POLL, |first, chunk| {
            chunk.iter_mut().zip(first..).for_each(|(slot, i)| *slot = of(i));
            Ok(())
        })
    }
}

/// A family of laws with its columns of parameters, already checked; a column of length one is shared.
#[derive(Clone, Copy, Debug)]
pub enum Family<'a> {
    /// Order and argument.
    Bessel(&'a [f64], &'a [f64]),
    /// Rates of the positive and of the negative count.
    Skellam(&'a [f64], &'a [f64]),
    /// Decay.
    TwoSidedGeometric(&'a [f64]),
    /// Released value, rate and alpha.
    TwoPiecePoisson(&'a [f64], &'a [f64], &'a [f64]),
}

/// Entry i of a column that repeats.
#[inline]
fn at(column: &[f64], i: usize) -> f64 {
    if i < column.len() { column[i] } else { column[i % column.len()] }
}

impl<'a> Family<'a> {
    /// The family of this name with these columns.
    ///
    /// # Errors
    /// As [`Self::unchecked`], and [`Error::Domain`] for the first parameter a constructor refuses.
    pub fn named(name: &str, columns: &[&'a [f64]]) -> Result<Self> {
        let family = Self::unchecked(name, columns)?;
        family.check()?;
        Ok(family)
    }

    /// The same, of parameters that were checked.
    ///
    /// # Errors
    /// [`Error::Domain`] for another name or number of columns, [`Error::Shape`] for columns that do not fit.
    pub fn unchecked(name: &str, columns: &[&'a [f64]]) -> Result<Self> {
        let family = match (name, columns) {
            ("bessel", [order, argument]) => Self::Bessel(order, argument),
            ("skellam", [plus, minus]) => Self::Skellam(plus, minus),
            ("two_sided_geometric", [decay]) => Self::TwoSidedGeometric(decay),
            ("two_piece_poisson", [released, rate, alpha]) => Self::TwoPiecePoisson(released, rate, alpha),
            _ => return Err(Error::domain("family", name, "a family with its columns of parameters")),
        };
        if let Some(longest) = columns.iter().map(|c| c.len()).max()
            && let Some(odd) = columns.iter().map(|c| c.len()).find(|&n| n != 1 && n != longest)
        {
            return Err(Error::shape("parameters", format_args!("({longest},)"), format_args!("({odd},)")));
        }
        Ok(family)
    }

    /// Whether draws look at each batch of parameters themselves, as they copy it: then they need neither a check nor a copy before.
    pub fn draws_check(&self) -> bool {
        matches!(self, Self::Bessel(..) | Self::Skellam(..))
    }

    /// The number of different laws.
    pub fn len(&self) -> usize {
        let columns: &[&[f64]] = match self {
            Self::Bessel(a, b) | Self::Skellam(a, b) => &[a, b],
            Self::TwoSidedGeometric(a) => &[a],
            Self::TwoPiecePoisson(a, b, c) => &[a, b, c],
        };
        if columns.iter().any(|c| c.is_empty()) { 0 } else { columns.iter().map(|c| c.len()).max().unwrap_or(0) }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn check(&self) -> Result<()> {
        match self {
            Self::Bessel(order, argument) => {
                check_whole("order", order, 0.0)?;
                check_rates("argument", argument)?;
            }
            Self::Skellam(plus, minus) => {
                check_rates("rate_plus", plus)?;
                check_rates("rate_minus", minus)?;
            }
            Self::TwoSidedGeometric(decay) => {
                decay.iter().try_for_each(|&e| TwoSidedGeometric::from_decay(e).map(drop))?;
            }
            Self::TwoPiecePoisson(released, mu, alpha) => {
                check_whole("released", released, -super::LARGEST)?;
                check_rates("rate", mu)?;
                alpha.iter().try_for_each(|&a| TwoSidedGeometric::new(a).map(drop))?;
                if alpha.contains(&0.0) {
                    (0..self.len())
                        .try_for_each(|i| TwoPiecePoisson::new(at(released, i), at(mu, i), at(alpha, i)).map(drop))?;
                }
            }
        }
        Ok(())
    }

    /// Values of one function: element i of `out` belongs to point i and law i (both repeat).
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the monitor says so.
    pub fn values(&self, function: Function, points: &[f64], output: Output<'_, f64>) -> Result<()> {
        let Some((least, greatest)) = self.repeated(points) else {
            return self.values_of(function, points, output);
        };
        let all: Vec<f64> = (0..(greatest - least) as usize + 1).map(|i| least + i as f64).collect();
        let mut values = vec![0.0; all.len()];
        let Output { out, threads, monitor } = output;
        self.values_of(function, &all, Output { out: &mut values, threads, monitor })?;
        for (slot, point) in out.iter_mut().zip(points) {
            *slot = values[(point - least) as usize];
        }
        Ok(())
    }

    /// The same, point by point.
    fn values_of(&self, function: Function, points: &[f64], output: Output<'_, f64>) -> Result<()> {
        if let Self::Skellam(plus, minus) = *self {
            return skellam_values((plus, minus), function, points, output);
        }
        self.each(output, |law, i| law.evaluate(function, at(points, i)))
    }

    /// The least and the greatest of many points of one law, if they are whole and each stands there twice or more on average:
    /// then every value between them is found once.
    fn repeated(&self, points: &[f64]) -> Option<(f64, f64)> {
        if self.len() != 1 || points.len() < POLL {
            return None;
        }
        let (least, greatest) =
            points.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &x| (a.min(x), b.max(x)));
        let few = 2.0 * (greatest - least + 1.0) <= points.len() as f64;
        (few && points.iter().all(|point| point.fract() == 0.0)).then_some((least, greatest))
    }

    /// Quantiles, see [`quantile`].
    ///
    /// # Errors
    /// As [`Self::values`].
    pub fn quantiles(&self, lower: bool, probabilities: &[f64], output: Output<'_, f64>) -> Result<()> {
        self.each(output, |law, i| law.quantile(at(probabilities, i), lower))
    }

    /// One statistic of each law.
    ///
    /// # Errors
    /// As [`Self::values`].
    pub fn statistics(&self, statistic: Statistic, output: Output<'_, f64>) -> Result<()> {
        self.each(output, |law, _| law.statistic(statistic))
    }

    /// Log-likelihood of each release of a two-piece Poisson family, and its derivative by the rate.
    ///
    /// # Errors
    /// [`Error::Domain`] for another family; as [`Self::values`].
    pub fn log_marginals(&self, output: Output<'_, [f64; 2]>) -> Result<()> {
        let Self::TwoPiecePoisson(released, rate, alpha) = *self else {
            return Err(Error::domain("family", "another", "two_piece_poisson"));
        };
        let law = |i| TwoPiecePoisson::unchecked(at(released, i), at(rate, i), at(alpha, i));
        output.each(|i| law(i).log_marginal().into())
    }

    /// Draws: element i belongs to law i mod [`Self::len`] and to address i of the key.
    ///
    /// # Errors
    /// As [`Self::values`]; where [`Self::draws_check`], as [`Self::named`].
    pub fn draws(&self, key: [u64; 2], output: Output<'_, i64>) -> Result<()> {
        match *self {
            Self::Bessel(order, argument) => {
                output.blocks(BLOCK, |start, chunk| bessel_cells((order, argument), key, start, chunk))
            }
            Self::Skellam(plus, minus) => self.skellam_draws((plus, minus), key, output),
            Self::TwoSidedGeometric(decay) => {
                fill(output, key, |i, cell| two_sided_geometric::draw(at(decay, i), cell))
            }
            Self::TwoPiecePoisson(released, rate, alpha) => {
                fill(output, key, |i, cell| two_piece_poisson::draw(at(released, i), at(rate, i), at(alpha, i), cell))
            }
        }
    }

    /// Draws of one law from its table, where there is one; else two searches side by side, or rejection where rates are large.
    fn skellam_draws(&self, (plus, minus): (&[f64], &[f64]), key: [u64; 2], output: Output<'_, i64>) -> Result<()> {
        let level = dispatch::level();
        if let ([plus], [minus]) = (plus, minus) {
            self.check()?;
            let law = Skellam::unchecked(*plus, *minus);
            if let Some(table) = alias::kept("skellam", [*plus, *minus], &law, output.out.len()) {
                return output.blocks(BLOCK, |start, chunk| {
                    let block = (start / BLOCK) as u64;
                    let (mut words, mut further) = (BlockWords::new(key, block, 0), words::spare(key, block));
                    let mut buffer = [0; BATCH / alias::PER_WORD];
                    for slots in chunk.chunks_mut(BATCH) {
                        let batch = &mut buffer[..slots.len().div_ceil(alias::PER_WORD)];
                        words.fill(level, batch);
                        table.draw(&law, level, batch, slots, &mut further);
                    }
                    Ok(())
                });
            }
        }
        output.blocks(BLOCK, |start, chunk| {
            poisson_cells(("rate_plus", plus), key, 0, level, start, chunk)?;
            if minus != [0.0] {
                poisson_cells(("rate_minus", minus), key, 1, level, start, chunk)?;
            }
            Ok(())
        })
    }

    /// Applies `of` to law i for each element i, building a shared law once.
    fn each(&self, output: Output<'_, f64>, of: impl Fn(&dyn Law, usize) -> f64 + Sync) -> Result<()> {
        match *self {
            Self::Bessel(order, argument) => {
                apply(output, self.len(), |i| Bessel::unchecked(at(order, i), at(argument, i)), of)
            }
            Self::Skellam(plus, minus) => {
                apply(output, self.len(), |i| Skellam::unchecked(at(plus, i), at(minus, i)), of)
            }
            Self::TwoSidedGeometric(decay) => {
                apply(output, self.len(), |i| TwoSidedGeometric::unchecked(at(decay, i)), of)
            }
            Self::TwoPiecePoisson(released, rate, alpha) => {
                let make = |i| TwoPiecePoisson::unchecked(at(released, i), at(rate, i), at(alpha, i));
                apply(output, self.len(), make, of)
            }
        }
    }
}

/// Checks a column; a look at all without a jump takes a tenth of the time of a look for the first wrong one.
fn check_whole(name: &'static str, column: &[f64], least: f64) -> Result<()> {
    if column.iter().fold(true, |all, &x| all & (x >= least) & bessel::is_whole(x.abs())) {
        return Ok(());
    }
    column.iter().try_for_each(|&x| super::check_whole(name, x, least, "a whole number of size at most 2^53"))
}

/// The same for rates: the greatest of them. Not negative and no NaN they are in the order of their bits, all others beyond.
fn check_rates(name: &'static str, column: &[f64]) -> Result<f64> {
    let greatest =
        at_level!(dispatch::level(), column.iter().fold(0, |greatest, &x| (x + 0.0).to_bits().max(greatest)));
    if greatest > super::LARGEST.to_bits() {
        column.iter().try_for_each(|&x| super::check_rate(name, x))?;
    }
    Ok(f64::from_bits(greatest))
}

/// A law behind one pointer: the loop over elements is compiled once for all families.
trait Law {
    fn evaluate(&self, function: Function, k: f64) -> f64;
    fn quantile(&self, probability: f64, lower: bool) -> f64;
    fn statistic(&self, statistic: Statistic) -> f64;
}

impl<L: Distribution> Law for L {
    fn evaluate(&self, function: Function, k: f64) -> f64 {
        evaluate(self, function, k)
    }
    fn quantile(&self, probability: f64, lower: bool) -> f64 {
        quantile(self, probability, lower)
    }
    fn statistic(&self, statistic: Statistic) -> f64 {
        statistic_of(self, statistic)
    }
}

fn apply<L: Distribution>(
    output: Output<'_, f64>,
    laws: usize,
    make: impl Fn(usize) -> L + Sync,
    of: impl Fn(&dyn Law, usize) -> f64 + Sync,
) -> Result<()> {
    let shared = (laws == 1 && !output.out.is_empty()).then(|| make(0));
    output.each(|i| shared.as_ref().map_or_else(|| of(&make(i), i), |law| of(law, i)))
}

/// Values of Skellam laws, some side by side; a millisecond's work stays on this thread.
fn skellam_values(
    (plus, minus): (&[f64], &[f64]),
    function: Function,
    points: &[f64],
    output: Output<'_, f64>,
) -> Result<()> {
    output.blocks(SIDE_BY_SIDE, |start, chunk| {
        let mut laws = [(Skellam::unchecked(0.0, 0.0), 0.0); skellam::MOST_LAWS];
        for (batch, values) in chunk.chunks_mut(laws.len()).enumerate() {
            let start = start + batch * laws.len();
            for (i, law) in laws[..values.len()].iter_mut().enumerate().map(|(i, law)| (start + i, law)) {
                *law = (Skellam::unchecked(at(plus, i), at(minus, i)), at(points, i));
            }
            skellam::values(function, &laws[..values.len()], values);
        }
        Ok(())
    })
}

fn fill(output: Output<'_, i64>, key: [u64; 2], draw: impl Fn(usize, &mut CellRng) -> i64 + Sync) -> Result<()> {
    output.blocks(BLOCK, |start, chunk| {
        for (four, slots) in chunk.chunks_mut(4).enumerate() {
            let first = start + 4 * four;
            let words = philox(key, [0, first as u64 / 4, 0, FIRST]);
            for (lane, slot) in slots.iter_mut().enumerate() {
                *slot = draw(first + lane, &mut CellRng::new(key, (first + lane) as u64, words[lane]));
            }
        }
        Ok(())
    })
}

/// Adds a Poisson count to each element of a block, or takes it away on the second side, of the words of its side; the first side
/// begins with none.
///
/// # Errors
/// [`Error::Domain`] for a rate that no law has: it was changed while it was used.
fn poisson_cells(
    (name, rates): (&'static str, &[f64]),
    key: [u64; 2],
    side: u64,
    level: Level,
    start: usize,
    out: &mut [i64],
) -> Result<()> {
    let words = |purpose| LateWords::new(key, (start / BLOCK) as u64, purpose + side);
    let (mut first, mut tabled, mut late) = (words(0), None, None);
    let (mut rate, mut apart) = ([0.0; BATCH], [0; BATCH]);
    for (batch, slots) in out.chunks_mut(BATCH).enumerate() {
        let (start, len) = (start + batch * BATCH, slots.len());
        let rate = &mut rate[..len];
        repeat(rates, start, rate);
        let greatest = check_rates(name, rate)?;
        let counts = if side == 0 { &mut *slots } else { &mut apart[..len] };
        let first = first.of(level, batch, len);
        if greatest < poisson::TABLED {
            poisson::invert_many(level, rate, first, counts);
        } else {
            let (whole, rest, second, third) =
                tabled.get_or_insert_with(|| ([0.0; BATCH], [0.0; BATCH], words(SECOND), words(THIRD)));
            let (whole, rest, second) = (&mut whole[..len], &mut rest[..len], second.of(level, batch, len));
            let greatest_whole = poisson::split_many(level, rate, whole, rest);
            poisson::invert_many(level, rest, first, counts);
            if greatest_whole > 0.0 {
                let third = (greatest_whole >= whole_rates::STEP as f64).then(|| third.of(level, batch, len));
                WHOLE_RATES.add(whole, second, third, counts);
            }
            if greatest >= poisson::END {
                poisson::propose_many(level, rate, [first, second], counts);
                let further = |i: usize| Stream::new(key, FURTHER, side, (start + i) as u64);
                let (late, fourth, fifth) = late.get_or_insert_with(|| (Late::default(), words(FOURTH), words(FIFTH)));
                late.find(counts);
                late.settle(level, rate, [first, second], counts, further);
                if late.number > 0 {
                    let next = [fourth.of(level, batch, len), fifth.of(level, batch, len)];
                    late.settle(level, rate, next, counts, further);
                }
                for i in late.cells[..late.number].iter().copied().map(usize::from) {
                    counts[i] = poisson::transformed_rejection(rate[i], &mut further(i));
                }
            }
        }
        if side != 0 {
            slots.iter_mut().zip(&apart).for_each(|(slot, count)| *slot -= count);
        }
    }
    Ok(())
}

/// The cells of a batch whose count is open, to be judged side by side.
struct Late {
    cells: [u16; BATCH],
    number: usize,
    rates: [f64; BATCH],
    words: [[u64; BATCH]; 2],
    counts: [i64; BATCH],
}

impl Default for Late {
    fn default() -> Self {
        Self { cells: [0; BATCH], number: 0, rates: [0.0; BATCH], words: [[0; BATCH]; 2], counts: [0; BATCH] }
    }
}

impl Late {
    /// Finds them.
    fn find(&mut self, counts: &[i64]) {
        self.number = 0;
        for (cell, &count) in (0..).zip(counts) {
            self.cells[self.number] = cell;
            self.number += usize::from(count == poisson::OPEN);
        }
    }

    /// Takes a step of each, and all steps of those few that are not judged here; what stays open is left.
    fn settle(
        &mut self,
        level: Level,
        rates: &[f64],
        words: [&[u64]; 2],
        counts: &mut [i64],
        further: impl Fn(usize) -> Stream,
    ) {
        let number = std::mem::take(&mut self.number);
        for (place, &cell) in self.cells[..number].iter().enumerate() {
            let cell = usize::from(cell);
            self.rates[place] = rates[cell];
            (self.words[0][place], self.words[1][place]) = (words[0][cell], words[1][cell]);
        }
        let late = self.words.each_ref().map(|words| &words[..number]);
        poisson::judge_many(level, &self.rates[..number], late, &mut self.counts[..number]);
        for place in 0..number {
            let (cell, mut found) = (self.cells[place], self.counts[place]);
            let i = usize::from(cell);
            if found == poisson::LEFT {
                let mut words = PairRng { words: words.map(|words| words[i]), used: 0, further: further(i) };
                found = poisson::transformed_rejection(rates[i], &mut words);
            }
            counts[i] = found;
            self.cells[self.number] = cell;
            self.number += usize::from(found == poisson::OPEN);
        }
    }
}

/// The words of a block, batch by batch, where not every batch has a use for them.
struct LateWords {
    words: BlockWords,
    made: usize,
    buffer: [u64; BATCH],
}

impl LateWords {
    fn new(key: [u64; 2], block: u64, side: u64) -> Self {
        Self { words: BlockWords::new(key, block, side), made: 0, buffer: [0; BATCH] }
    }

    /// The words of a batch after all that were asked for; a cell's words depend on its place alone, so those between are made, too.
    fn of(&mut self, level: Level, batch: usize, len: usize) -> &[u64] {
        (self.made..batch).for_each(|_| self.words.fill(level, &mut self.buffer));
        self.made = batch + 1;
        self.words.fill(level, &mut self.buffer[..len]);
        &self.buffer[..len]
    }
}

/// The draws of [`bessel::draw_many`] for cells `start, start + 1, ...`, whose parameters may repeat.
///
/// # Errors
/// As [`poisson_cells`].
fn bessel_cells((order, argument): (&[f64], &[f64]), key: [u64; 2], start: usize, out: &mut [i64]) -> Result<()> {
    let address = Address { key, purpose: FIRST, iteration: 0, row: 0 };
    bessel::with_scratch(|scratch| {
        for (group, slots) in out.chunks_mut(bessel::BATCH).enumerate() {
            let start = start + group * bessel::BATCH;
            let (orders, arguments) = (&mut scratch.order[..slots.len()], &mut scratch.x[..slots.len()]);
            repeat(order, start, orders);
            repeat(argument, start, arguments);
            check_whole("order", orders, 0.0)?;
            check_rates("argument", arguments)?;
            scratch.draw(address, start as u64, slots);
        }
        Ok(())
    })
}

/// Copies entries `start, start + 1, ...` of a column that repeats.
fn repeat(column: &[f64], start: usize, to: &mut [f64]) {
    if let [only] = column {
        to.fill(*only);
    } else if let Some(part) = column.get(start..start + to.len()) {
        to.copy_from_slice(part);
    } else {
        to.iter_mut().enumerate().for_each(|(i, x)| *x = at(column, start + i));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Silent;

    #[test]
    fn draws_of_a_bessel_family_are_those_of_its_cells() {
        let (order, argument) = ([0.0, 2.0, 0.0, 1.0, 4.0, 1e4, 300.0], [0.3, 1.5, 3.0, 6.0, 50.0, 1e5, 40.0]);
        let (mut out, mut expected) = (vec![0; 5003], vec![0; 5003]);
        Family::named("bessel", &[&order, &argument])
            .unwrap()
            .draws([5, 6], Output { out: &mut out, threads: 2, monitor: &mut Silent })
            .unwrap();
        let address = Address { key: [5, 6], purpose: FIRST, iteration: 0, row: 0 };
        for (i, slot) in expected.iter_mut().enumerate() {
            let j = i % 7;
            bessel::draw_many(&[order[j]], &[argument[j]], address, i as u64, std::slice::from_mut(slot)).unwrap();
        }
        assert_eq!(out, expected);
    }

    #[test]
    fn columns_and_values_that_do_not_fit_are_refused() {
        assert!(matches!(Family::named("bessel", &[&[1.0], &[f64::NAN]]), Err(Error::Domain { name: "argument", .. })));
        assert!(matches!(Family::named("skellam", &[&[1.0; 3], &[1.0; 2]]), Err(Error::Shape { .. })));
        assert!(matches!(Family::named("normal", &[&[1.0]]), Err(Error::Domain { name: "family", .. })));
        assert!(Family::named("two_piece_poisson", &[&[-1.0], &[1.0], &[0.0]]).is_err());
    }

    #[test]
    fn a_monitor_that_objects_stops_the_draws() {
        let mut out = vec![0; 20_000_000];
        let family = Family::named("bessel", &[&[0.0], &[100.0]]).unwrap();
        let outcome = family.draws([1, 2], Output { out: &mut out, threads: 1, monitor: &mut |_: u64, _: u64| false });
        assert_eq!(outcome, Err(Error::Interrupted));
    }
}
