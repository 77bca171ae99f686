//! Markov chains and the buffers they write into: what every sampler of the house is to the loop that runs it.
//!
//! A [`Chain`] takes steps and writes its state; a [`Trace`] is memory of the caller's, filled from the front. [`run`] joins
//! them: it takes steps, writes statistics of every one and the state after those that are kept, each value once.
//! A stop between two steps loses nothing, for a trace counts what is in it.

use crate::monitor::{Monitor, Progress};
use crate::{Error, Result, parallel};

/// A sampler that goes from state to state.
pub trait Chain: Send {
    /// Steps done in the chain's life; it addresses the random words of the next one.
    fn iteration(&self) -> u64;

    /// Units that one step adds to its progress.
    fn work_per_step(&self) -> u64 {
        1
    }

    /// Whether so many steps take less than about a tenth of a second on one thread, so that nobody need wait for them.
    fn is_short(&self, _steps: u64) -> bool {
        false
    }

    /// Numbers per draw of each variable.
    fn sizes(&self) -> Vec<usize>;

    /// How many numbers describe a draw, and how many a step.
    fn statistics(&self) -> [usize; 2];

    /// Takes one step.
    ///
    /// # Errors
    /// Leave the chain as the last whole step left it.
    fn step(&mut self, progress: &Progress) -> Result<()>;

    /// Writes what describes the last step.
    fn describe(&self, statistics: &mut [f64]);

    /// Writes the state, one slice per variable, and what describes it as a draw.
    ///
    /// # Errors
    /// What works out the description may find wrong.
    fn record(&mut self, variables: &mut [&mut [f64]], statistics: &mut [f64]) -> Result<()>;
}

/// Which steps are taken and kept.
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    /// How many.
    pub number: u64,
    /// The draws are the states after steps whose number in the chain's life this divides; none for 0.
    pub keep_every: u64,
}

impl Steps {
    /// How many of the steps after a given one are kept.
    pub fn kept(self, iteration: u64) -> u64 {
        match self.keep_every {
            0 => 0,
            every => iteration.saturating_add(self.number) / every - iteration / every,
        }
    }
}

/// Memory for draws and statistics, and how much of it is filled.
#[derive(Debug)]
pub struct Trace<'a> {
    /// Per variable its draws, one after the other.
    pub draws: Vec<&'a mut [f64]>,
    /// The number of the step of each draw.
    pub kept: &'a mut [i64],
    /// Per statistic of a draw its values.
    pub of_draws: Vec<&'a mut [f64]>,
    /// Per statistic of a step its values.
    pub of_steps: Vec<&'a mut [f64]>,
    /// Draws and steps that are in it.
    pub filled: [usize; 2],
}

impl Trace<'_> {
    /// Refuses a trace of another shape, or without room for so many draws and steps more.
    fn check(&self, chain: &impl Chain, draws: u64, steps: u64) -> Result<()> {
        let sizes = chain.sizes();
        let [of_draws, of_steps] = chain.statistics();
        let room = |length: usize, filled: usize, more: u64| (length as u64) >= (filled as u64).saturating_add(more);
        let fits = self.draws.len() == sizes.len()
            && self.of_draws.len() == of_draws
            && self.of_steps.len() == of_steps
            && self
                .draws
                .iter()
                .zip(&sizes)
                .all(|(all, &size)| size == 0 || room(all.len() / size, self.filled[0], draws))
            && self.of_draws.iter().all(|all| room(all.len(), self.filled[0], draws))
            && room(self.kept.len(), self.filled[0], draws)
            && self.of_steps.iter().all(|all| room(all.len(), self.filled[1], steps));
        if fits {
            return Ok(());
        }
        let expected =
            format!("of variables of sizes {sizes:?}, with room for {draws} more draws and {steps} more steps");
        let found = format!("{} variables, {:?} filled", self.draws.len(), self.filled);
        Err(Error::shape("trace", expected, found))
    }

    fn add_step(&mut self, chain: &impl Chain, values: &mut [f64]) {
        chain.describe(values);
        for (all, value) in self.of_steps.iter_mut().zip(values) {
            all[self.filled[1]] = *value;
        }
        self.filled[1] += 1;
    }

    fn add_draw(&mut self, chain: &mut impl Chain, sizes: &[usize], values: &mut [f64]) -> Result<()> {
        let draw = self.filled[0];
        let mut variables: Vec<&mut [f64]> =
            self.draws.iter_mut().zip(sizes).map(|(all, &size)| &mut all[draw * size..(draw + 1) * size]).collect();
        chain.record(&mut variables, values)?;
        for (all, value) in self.of_draws.iter_mut().zip(values) {
            all[draw] = *value;
        }
        self.kept[draw] = chain.iteration() as i64;
        self.filled[0] += 1;
        Ok(())
    }
}

/// Takes steps and writes them into the trace.
///
/// # Errors
/// Of the chain or the monitor: what is in the trace until then stays; [`Error::Shape`] for a trace without room.
pub fn run<C: Chain>(
    chain: &mut C,
    steps: Steps,
    trace: &mut Trace<'_>,
    threads: usize,
    monitor: &mut dyn Monitor,
) -> Result<()> {
    trace.check(chain, steps.kept(chain.iteration()), steps.number)?;
    let (sizes, [of_draws, of_steps]) = (chain.sizes(), chain.statistics());
    let (mut draw, mut step) = (vec![0.0; of_draws], vec![0.0; of_steps]);
    let total = steps.number * chain.work_per_step();
    let here = threads == 1 && chain.is_short(steps.number);
    let mut all = |progress: &Progress| {
        (0..steps.number).try_for_each(|_| {
            chain.step(progress)?;
            trace.add_step(chain, &mut step);
            if steps.keep_every > 0 && chain.iteration().is_multiple_of(steps.keep_every) {
                trace.add_draw(chain, &sizes, &mut draw)?;
            }
            Ok(())
        })
    };
    if here { parallel::run_here(total, all) } else { parallel::run(threads, total, monitor, |progress| all(progress)) }
}

/// A trace that owns its memory and grows with every run.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// As in [`Trace`].
    pub draws: Vec<Vec<f64>>,
    /// As in [`Trace`].
    pub kept: Vec<i64>,
    /// As in [`Trace`].
    pub of_draws: Vec<Vec<f64>>,
    /// As in [`Trace`].
    pub of_steps: Vec<Vec<f64>>,
}

impl Records {
    /// Empty records of a chain.
    pub fn of(chain: &impl Chain) -> Self {
        let [of_draws, of_steps] = chain.statistics();
        let empty = |number| vec![vec![]; number];
        Self { draws: empty(chain.sizes().len()), kept: vec![], of_draws: empty(of_draws), of_steps: empty(of_steps) }
    }

    /// Takes steps and adds them.
    ///
    /// # Errors
    /// As [`run`].
    pub fn run<C: Chain>(
        &mut self,
        chain: &mut C,
        steps: Steps,
        threads: usize,
        monitor: &mut dyn Monitor,
    ) -> Result<()> {
        self.with_room(chain, steps, |chain, trace| run(chain, steps, trace, threads, monitor))
    }

    /// Adds a step that was taken in another way.
    pub fn add_step<C: Chain>(&mut self, chain: &mut C) {
        let mut values = vec![0.0; self.of_steps.len()];
        self.with_room(chain, Steps { number: 1, keep_every: 0 }, |chain, trace| trace.add_step(chain, &mut values));
    }

    /// Lends room for some steps to `work` as a trace, and keeps what was filled.
    fn with_room<C: Chain, T>(
        &mut self,
        chain: &mut C,
        steps: Steps,
        work: impl FnOnce(&mut C, &mut Trace<'_>) -> T,
    ) -> T {
        let sizes = chain.sizes();
        let (draws, all_steps) = (self.kept.len(), self.of_steps.first().map_or(0, Vec::len));
        let room = [draws + steps.kept(chain.iteration()) as usize, all_steps + steps.number as usize];
        let resize = |records: &mut Self, [draws, steps]: [usize; 2]| {
            records.kept.resize(draws, 0);
            records.draws.iter_mut().zip(&sizes).for_each(|(all, size)| all.resize(draws * size, 0.0));
            records.of_draws.iter_mut().for_each(|all| all.resize(draws, 0.0));
            records.of_steps.iter_mut().for_each(|all| all.resize(steps, 0.0));
        };
        resize(self, room);
        let mut trace = Trace {
            draws: self.draws.iter_mut().map(Vec::as_mut_slice).collect(),
            kept: &mut self.kept,
            of_draws: self.of_draws.iter_mut().map(Vec::as_mut_slice).collect(),
            of_steps: self.of_steps.iter_mut().map(Vec::as_mut_slice).collect(),
            filled: [draws, all_steps],
        };
        let outcome = work(chain, &mut trace);
        let filled = trace.filled;
        resize(self, filled);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Silent;

    /// Counts its steps; the state is the count, the description of a draw its square, of a step its negative.
    struct Counter {
        iteration: u64,
        last: u64,
    }

    impl Chain for Counter {
        fn iteration(&self) -> u64 {
            self.iteration
        }

        fn sizes(&self) -> Vec<usize> {
            vec![1, 2, 0]
        }

        fn statistics(&self) -> [usize; 2] {
            [1, 1]
        }

        fn step(&mut self, _watch: &Progress) -> Result<()> {
            if self.iteration == self.last {
                return Err(Error::Interrupted);
            }
            self.iteration += 1;
            Ok(())
        }

        fn describe(&self, statistics: &mut [f64]) {
            statistics[0] = -(self.iteration as f64);
        }

        fn record(&mut self, variables: &mut [&mut [f64]], statistics: &mut [f64]) -> Result<()> {
            let now = self.iteration as f64;
            variables[0].fill(now);
            variables[1].copy_from_slice(&[now, -now]);
            statistics[0] = now * now;
            Ok(())
        }
    }

    #[test]
    fn steps_are_described_and_every_third_is_kept_in_however_many_parts() {
        let mut chain = Counter { iteration: 0, last: 100 };
        let mut records = Records::of(&chain);
        for number in [2, 0, 5, 3] {
            records.run(&mut chain, Steps { number, keep_every: 3 }, 1, &mut Silent).unwrap();
        }
        assert_eq!(records.kept, [3, 6, 9]);
        assert_eq!(records.draws, [vec![3.0, 6.0, 9.0], vec![3.0, -3.0, 6.0, -6.0, 9.0, -9.0], vec![]]);
        assert_eq!(records.of_draws, [[9.0, 36.0, 81.0]]);
        assert_eq!(records.of_steps[0], (1..=10).map(|i| -f64::from(i)).collect::<Vec<_>>());
    }

    #[test]
    fn a_stop_keeps_what_was_done_until_then() {
        let mut chain = Counter { iteration: 0, last: 7 };
        let mut records = Records::of(&chain);
        let outcome = records.run(&mut chain, Steps { number: 20, keep_every: 2 }, 1, &mut Silent);
        assert_eq!(outcome, Err(Error::Interrupted));
        assert_eq!((records.kept.as_slice(), records.of_steps[0].len()), (&[2, 4, 6][..], 7));
    }

    #[test]
    fn a_trace_without_room_is_refused_before_the_first_step() {
        let mut chain = Counter { iteration: 0, last: 100 };
        let (mut kept, mut one, mut two, mut squares, mut steps) = ([0], [0.0], [0.0; 2], [0.0], [0.0; 4]);
        let mut trace = Trace {
            draws: vec![&mut one, &mut two, &mut []],
            kept: &mut kept,
            of_draws: vec![&mut squares],
            of_steps: vec![&mut steps],
            filled: [0, 0],
        };
        let outcome = run(&mut chain, Steps { number: 4, keep_every: 2 }, &mut trace, 1, &mut Silent);
        assert!(matches!(outcome, Err(Error::Shape { name: "trace", .. })) && chain.iteration == 0);
        run(&mut chain, Steps { number: 4, keep_every: 3 }, &mut trace, 1, &mut Silent).unwrap();
        assert_eq!((trace.filled, kept, two), ([1, 4], [3], [3.0, -3.0]));
    }
}
