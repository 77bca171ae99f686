//! Transfer operators: the one shape of every engine, and the loop that evaluates a count at many points.
//!
//! An engine holds a vector of partial sums over states of a cut and moves the cut step by step. It is written once over a
//! [`Ring`]; a *point* is a modulus with an activity, one lane of the vector unit each. A count is an evaluation at activity 1
//! modulo enough primes, a polynomial an evaluation at enough activities. Groups of lanes are independent of one another:
//! the results do not depend on how many lanes run side by side, nor on threads.

use crate::Result;
use crate::monitor::Progress;
use crate::numeric::buffer::{Buffer, Zero};
use crate::numeric::bundle::Bundled;
use crate::numeric::double_ring::{DoubleDoubles, ScaledDoubleDoubles};
use crate::numeric::residue::Modulus;
use crate::numeric::ring::{F64, Lanes, Ring};
use std::fmt::Debug;
use std::ops::Range;

/// Where a partition function is evaluated: the values of its parameters modulo `modulus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The modulus.
    pub modulus: Modulus,
    /// The activity of a vertex, a residue.
    pub activity: u64,
    /// A second parameter, a residue: the chance that a cell of a randomly triangulated grid has the falling diagonal, or the weight of a
    /// component of a sum over subsets of edges.
    pub second: u64,
}

impl Point {
    /// `Z(activity)`.
    pub fn new(modulus: Modulus, activity: u64) -> Self {
        Self { modulus, activity, second: 0 }
    }

    /// The same with a second parameter.
    pub fn with_second(self, second: u64) -> Self {
        Self { second, ..self }
    }
}

/// The parameters of a partition function in a ring.
#[derive(Clone, Debug)]
pub struct Weight<R: Ring> {
    /// The ring computed in.
    pub ring: R,
    /// The activity of a vertex.
    pub activity: R::Element,
    /// The second parameter.
    pub second: R::Element,
    /// Whether the activity is one everywhere, so that no multiplication is needed.
    pub unit: bool,
}

impl<R: Ring> Weight<R> {
    /// A weight, which notices by itself that it is one.
    pub fn new(ring: R, activity: R::Element) -> Self {
        Self { ring, activity, second: ring.zero(), unit: activity == ring.one() }
    }

    /// The same with a second parameter.
    pub fn with_second(self, second: R::Element) -> Self {
        Self { second, ..self }
    }

    /// `activity^0, ..., activity^highest`, folded.
    pub fn powers(&self, highest: usize) -> Vec<R::Element> {
        let next = |power: &R::Element| Some(self.ring.mul(*power, self.activity));
        std::iter::successors(Some(self.ring.one()), next).take(highest + 1).collect()
    }
}

/// One step of an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct StepContext<'a, R: Ring> {
    /// The ring and the parameters.
    pub weight: &'a Weight<R>,
    /// Which step it is.
    pub number: u64,
    /// Who hears of the progress.
    pub progress: &'a Progress,
}

/// An engine: a vector of partial sums, moved step by step.
pub trait Transfer: Debug + Send + Sync {
    /// Elements in the working vector, all steps considered.
    fn len(&self) -> usize;
    /// Whether there is nothing to work on.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Steps from start to finish. A checkpoint can be taken between any two.
    fn steps(&self) -> u64;
    /// Additions of elements in one step, the unit of progress and of the forecast.
    fn work(&self, step: u64) -> u64;
    /// Most roundings on the way from a start value to the result, for a proved error in floating point.
    fn roundings(&self) -> u64;
    /// Fills the vector before the first step; the memory may hold anything.
    fn start<R: TransferRing>(&self, weight: &Weight<R>, state: &mut [R::Element])
    where
        Self: Sized;
    /// Moves the cut once. Elements are folded before and after. Inside, `parallel::fork` can be used where blocks are large.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] when the caller says so.
    fn advance<R: TransferRing>(&self, at: StepContext<'_, R>, state: &mut [R::Element]) -> Result<()>
    where
        Self: Sized;
    /// The elements that [`Self::finish`] reads, where all are numbers of sets of one half; none where that is not known.
    fn halves(&self) -> Option<Vec<Range<usize>>> {
        None
    }
    /// Whether every step adds terms of its own to what is found, so that sums over some of the steps add up to the whole.
    fn adds_up(&self) -> bool {
        false
    }
    /// Prepares for counts, where all activities are one, if the caller asks for nothing else: small numbers are then kept in
    /// [bundles](Bundled).
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`] when the progress says so.
    fn for_counts(&mut self, _progress: &Progress) -> Result<()> {
        Ok(())
    }
    /// How many times the additions of [`Self::work`], which are those of eight points on as many lanes, take place for so many points
    /// on so many lanes.
    fn slower(&self, _points: usize, _lanes: usize) -> f64 {
        1.0
    }
    /// The partition function, folded, after the last step.
    fn finish<R: TransferRing>(&self, weight: &Weight<R>, state: &[R::Element]) -> R::Element
    where
        Self: Sized;
}

/// A ring that engines are compiled for.
pub trait TransferRing: Bundled {
    /// An engine over this ring.
    fn of(engine: &dyn AnyRing) -> &dyn OverRing<Self>;
}

/// What a [`Transfer`] does over one ring.
pub trait OverRing<R: Ring> {
    /// [`Transfer::start`].
    fn start(&self, weight: &Weight<R>, state: &mut [R::Element]);
    /// [`Transfer::advance`].
    ///
    /// # Errors
    /// As there.
    fn advance(&self, at: StepContext<'_, R>, state: &mut [R::Element]) -> Result<()>;
    /// [`Transfer::finish`].
    fn finish(&self, weight: &Weight<R>, state: &[R::Element]) -> R::Element;
}

impl<R: TransferRing, E: Transfer> OverRing<R> for E {
    fn start(&self, weight: &Weight<R>, state: &mut [R::Element]) {
        Transfer::start(self, weight, state);
    }

    fn advance(&self, at: StepContext<'_, R>, state: &mut [R::Element]) -> Result<()> {
        Transfer::advance(self, at, state)
    }

    fn finish(&self, weight: &Weight<R>, state: &[R::Element]) -> R::Element {
        Transfer::finish(self, weight, state)
    }
}

macro_rules! transfer_rings {
    ($($ring:ty),*) => {
        /// An engine over all rings behind one pointer: it is compiled where the pointer is made.
        pub trait AnyRing: Transfer $(+ OverRing<$ring>)* {}

        impl<E: Transfer> AnyRing for E {}

        $(impl TransferRing for $ring {
            fn of(engine: &dyn AnyRing) -> &dyn OverRing<Self> {
                engine
            }
        })*
    };
}

/// Residues side by side that engines are compiled for. Two would take the time of four.
pub const LANES: [usize; 3] = [8, 4, 1];

/// The lanes that take the least time for so many points. One, which no vectors are compiled for, takes twice the time of four: it is for
/// want of memory.
pub fn lanes_for(points: usize) -> usize {
    if points <= 4 { 4 } else { 8 }
}

// Residues, bounds, and values in floating point.
transfer_rings!(Lanes<1>, Lanes<4>, Lanes<8>, F64, DoubleDoubles, ScaledDoubleDoubles);

/// Evaluates an engine over one ring.
///
/// # Errors
/// [`crate::Error::TooLarge`] without memory, [`crate::Error::Interrupted`] when told to stop.
pub fn evaluate<R: TransferRing>(engine: &impl Transfer, weight: &Weight<R>, progress: &Progress) -> Result<R::Element>
where
    R::Element: Zero,
{
    let mut state = Buffer::zeroed(engine.len())?;
    engine.start(weight, &mut state);
    for number in 0..engine.steps() {
        engine.advance(StepContext { weight, number, progress }, &mut state)?;
    }
    Ok(engine.finish(weight, &state))
}

/// The weight of up to `L` points side by side. Missing lanes repeat the last point.
pub fn lane_weight<const L: usize>(points: &[Point]) -> Weight<Lanes<L>> {
    let lane = |i: usize| points[i.min(points.len() - 1)];
    let ring = Lanes::new(std::array::from_fn(|i| lane(i).modulus));
    let residues = |value: fn(&Point) -> u64| std::array::from_fn(|i| lane(i).modulus.residue(value(&lane(i))));
    Weight::new(ring, residues(|point| point.activity)).with_second(residues(|point| point.second))
}

/// Residues of the partition function at up to `L` points, side by side.
///
/// # Errors
/// As [`evaluate`].
pub fn evaluate_lanes<const L: usize>(engine: &impl Transfer, points: &[Point], progress: &Progress) -> Result<Vec<u64>>
where
    Lanes<L>: TransferRing<Element = [u64; L]>,
{
    let value = evaluate(engine, &lane_weight::<L>(points), progress)?;
    Ok(points.iter().zip(value).map(|(point, x)| point.modulus.residue(x)).collect())
}
