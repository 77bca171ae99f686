//! A job of growing bond dimensions as words of a checkpoint, and back.
//!
//! Numbers go one after another: integers as they are, doubles by their bits, lists after their length. A file that holds
//! them is read only once its checksum is right (`counting/checkpoint.rs`); that its matrices fit the model is asked here.

use super::corner::{CornerBounds, CornerJob, Goal, Trial};
use super::dense::DenseMatrix;
use super::model::{Rational, RowModel};
use super::tensors::{Environment, Tensors};
use crate::counting::checkpoint::{Checkpoint, fingerprint};
use crate::counting::lock::Lock;
use crate::monitor::Progress;
use crate::numeric::double_double::DoubleDouble;
use crate::{Error, Result};
use num_bigint::{BigInt, BigUint, Sign};
use std::path::Path;
use std::time::Duration;

/// A value that is a sequence of words.
trait AsWords: Sized {
    /// Adds its words.
    fn put(&self, words: &mut Vec<u64>);
    /// Takes it from the front, if it is there.
    fn take(rest: &mut &[u64]) -> Option<Self>;
}

impl AsWords for u64 {
    fn put(&self, words: &mut Vec<u64>) {
        words.push(*self);
    }

    fn take(rest: &mut &[u64]) -> Option<Self> {
        rest.split_off_first().copied()
    }
}

/// Values that go as another.
macro_rules! saved_as {
    ($($kind:ty: |$value:ident| $put:expr, |$word:ident: $other:ty| $take:expr;)*) => {$(
        impl AsWords for $kind {
            fn put(&self, words: &mut Vec<u64>) {
                let $value = self;
                <$other as AsWords>::put(&$put, words);
            }

            fn take(rest: &mut &[u64]) -> Option<Self> {
                let $word = <$other as AsWords>::take(rest)?;
                $take
            }
        }
    )*};
}

saved_as! {
    usize: |x| *x as u64, |word: u64| usize::try_from(word).ok();
    u32: |x| u64::from(*x), |word: u64| u32::try_from(word).ok();
    f64: |x| x.to_bits(), |word: u64| Some(f64::from_bits(word));
    BigUint: |x| x.to_u32_digits(), |digits: Vec<u32>| Some(BigUint::new(digits));
    BigInt: |x| x.magnitude().clone() * 2u32 + u32::from(x.sign() == Sign::Minus), |twice: BigUint| {
        let sign = if twice.bit(0) { Sign::Minus } else { Sign::Plus };
        Some(BigInt::from_biguint(sign, twice >> 1))
    };
}

impl<T: AsWords> AsWords for Vec<T> {
    fn put(&self, words: &mut Vec<u64>) {
        self.len().put(words);
        self.iter().for_each(|x| x.put(words));
    }

    fn take(rest: &mut &[u64]) -> Option<Self> {
        let len = usize::take(rest).filter(|&len| len <= rest.len())?;
        (0..len).map(|_| T::take(rest)).collect()
    }
}

impl<T: AsWords> AsWords for Option<T> {
    fn put(&self, words: &mut Vec<u64>) {
        u64::from(self.is_some()).put(words);
        self.iter().for_each(|x| x.put(words));
    }

    fn take(rest: &mut &[u64]) -> Option<Self> {
        if u64::take(rest)? == 1 { T::take(rest).map(Some) } else { Some(None) }
    }
}

impl<T: AsWords> AsWords for [T; 2] {
    fn put(&self, words: &mut Vec<u64>) {
        self.iter().for_each(|x| x.put(words));
    }

    fn take(rest: &mut &[u64]) -> Option<Self> {
        Some([T::take(rest)?, T::take(rest)?])
    }
}

/// Values that go field by field.
macro_rules! saved_by_fields {
    ($($kind:ty { $($field:ident),* })*) => {$(saved_by_fields!(@ [] $kind { $($field),* });)*};
    (@ [$($of:ident)?] $kind:ty { $($field:ident),* }) => {
        impl$(<$of: AsWords>)? AsWords for $kind {
            fn put(&self, words: &mut Vec<u64>) {
                $(self.$field.put(words);)*
            }

            fn take(rest: &mut &[u64]) -> Option<Self> {
                Some(Self { $($field: AsWords::take(rest)?),* })
            }
        }
    };
}

saved_by_fields! {
    DoubleDouble { hi, lo }
    Rational { numerator, denominator, value }
    CornerBounds {
        lower, upper, sites, bond_dimension, steps, ring, rows, second, gap, cut, spectrum, density, occupied, decay, tensors,
        bits
    }
    CornerJob { found, trial, size, steps, turns, stalls, narrowed }
}
saved_by_fields!(@ [T] DenseMatrix<T> { rows, cols, data });
saved_by_fields!(@ [T] Environment<T> { former, roots });
saved_by_fields!(@ [T] Tensors<T> { steps, dimensions, spectrum, moved, environment });

impl AsWords for Trial {
    fn put(&self, words: &mut Vec<u64>) {
        let (double, precise) = match self {
            Self::Double(tensors) => (Some(tensors), None),
            Self::Precise(tensors) => (None, Some(tensors)),
        };
        double.cloned().put(words);
        precise.cloned().put(words);
    }

    fn take(rest: &mut &[u64]) -> Option<Self> {
        match (AsWords::take(rest)?, AsWords::take(rest)?) {
            (Some(tensors), None) => Some(Self::Double(tensors)),
            (None, Some(tensors)) => Some(Self::Precise(tensors)),
            _ => None,
        }
    }
}

impl CornerJob {
    /// The job as words.
    pub fn to_words(&self) -> Vec<u64> {
        let mut words = Vec::new();
        self.put(&mut words);
        words
    }

    /// The job that words are, if they are one of this model.
    pub fn from_words(words: &[u64], model: &RowModel) -> Option<Self> {
        let mut rest = words;
        let job = Self::take(&mut rest)?;
        let fits = match &job.trial {
            Trial::Double(tensors) => tensors.fits(model),
            Trial::Precise(tensors) => tensors.fits(model),
        };
        (fits && rest.is_empty()).then_some(job)
    }
}

/// What tells a job from others: the operator, its weights, and how far it is to go.
pub fn job_fingerprint(model: &RowModel, activity: &Rational, goal: &Goal) -> u64 {
    let mut words = Vec::new();
    for weight in [activity, &model.pair] {
        weight.put(&mut words);
    }
    for entry in &model.entries {
        words.extend([entry.from, entry.to, entry.above, entry.below, entry.pairs as usize].map(|place| place as u64));
        entry.weight.put(&mut words);
    }
    model.row.put(&mut words);
    model.occupied.put(&mut words);
    words.extend([u64::from(model.sites), u64::from(model.half), u64::from(model.rings_bound)]);
    goal.bond_dimension.put(&mut words);
    goal.digits.put(&mut words);
    goal.factor.put(&mut words);
    words.extend([goal.gap.to_bits(), goal.max_bond_dimension as u64, u64::from(goal.estimate)]);
    fingerprint(words)
}

/// [`super::corner::bounds`], kept in a checkpoint at intervals and when it is stopped, and gone on with from there, bit for bit.
///
/// # Errors
/// As there, and [`Error::File`] if the checkpoint cannot be used.
pub fn bounds(
    model: &RowModel,
    activity: &Rational,
    goal: &Goal,
    path: &Path,
    interval: Option<Duration>,
    progress: &Progress,
) -> Result<Vec<CornerBounds>> {
    let _lock = Lock::hold(path)?;
    let mut checkpoint = Checkpoint::new(path, job_fingerprint(model, activity, goal)).every(interval);
    checkpoint.sweep();
    let mut job = match checkpoint.load_state(progress)? {
        None => CornerJob::new(model, goal),
        Some(words) => {
            CornerJob::from_words(&words, model).ok_or_else(|| checkpoint.damaged("its state is no state"))?
        }
    };
    job.tell(progress)?;
    match job.run(model, activity, goal, Some(&mut checkpoint), progress) {
        Err(Error::Interrupted) => {
            checkpoint.save_state(&job.to_words())?;
            Err(Error::Interrupted)
        }
        Err(error) => Err(error),
        Ok(()) => {
            checkpoint.remove()?;
            Ok(job.found)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattices::NamedLattice;
    use crate::monitor::Progress;

    #[test]
    fn a_job_is_what_its_words_say_and_damaged_words_are_none() {
        let model = RowModel::new(&NamedLattice::named("kagome").unwrap().row_tensors[0]);
        let activity = Rational { numerator: 3u32.into(), denominator: 2u32.into(), value: 1.5 };
        let goal = Goal {
            gap: 1e-30,
            bond_dimension: None,
            max_bond_dimension: 9,
            estimate: false,
            digits: Some(30),
            factor: None,
        };
        let mut job = CornerJob::new(&model, &goal);
        job.run(&model, &activity, &goal, None, &Progress::default()).unwrap();
        assert!(matches!(job.trial, Trial::Precise(_)) && !job.found[0].tensors.is_empty());
        let words = job.to_words();
        let again = CornerJob::from_words(&words, &model).unwrap();
        assert_eq!(format!("{again:?}"), format!("{job:?}"));
        for len in 0..words.len() {
            assert!(CornerJob::from_words(&words[..len], &model).is_none(), "{len}");
        }
        let other = RowModel::new(&NamedLattice::named("king").unwrap().row_tensors[0]);
        assert!(CornerJob::from_words(&words, &other).is_none());
        let goals = [
            goal.clone(),
            Goal { gap: 1e-29, ..goal.clone() },
            Goal { estimate: true, ..goal.clone() },
            Goal { digits: None, ..goal },
        ];
        let prints = goals.map(|goal| job_fingerprint(&model, &activity, &goal));
        assert!((0..4).all(|i| (0..i).all(|j| prints[i] != prints[j])));
    }
}
