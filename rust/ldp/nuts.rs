//! Sampling of posteriors with more than two parameters: chains of the No-U-Turn sampler of the crate nuts-rs.
//!
//! This file alone knows that crate. A chain is addressed by a key, so that its draws do not depend on threads
//! or on who else is sampled; what was drawn before an interruption is kept.
//!
//! Source: M. Hoffman, A. Gelman (2014), The No-U-Turn sampler.

use super::Posterior;
use crate::monitor::{Monitor, Progress};
use crate::stream::Stream;
use crate::{Error, Result, parallel};
use std::sync::Mutex;

/// How chains are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Draws for finding the step size and the scales, not kept.
    pub warmup: u64,
    /// Draws to keep.
    pub draws: u64,
    /// The largest depth of a tree.
    pub max_depth: u64,
    /// The rate of acceptance that the step size is chosen for.
    pub target_accept: f64,
}

/// The kept draws of one chain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NutsDraws {
    /// Natural values, row by row.
    pub naturals: Vec<f64>,
    /// The last position, unconstrained.
    pub last: Vec<f64>,
    /// The log density of each draw.
    pub log_density: Vec<f64>,
    /// Whether the trajectory diverged.
    pub diverging: Vec<bool>,
    /// Depth of the tree.
    pub depth: Vec<i64>,
    /// Leapfrog steps.
    pub steps: Vec<i64>,
    /// The Hamiltonian at the draw.
    pub energy: Vec<f64>,
    /// The step size.
    pub step_size: Vec<f64>,
}

mod with_crate {
    use super::Posterior;
    use crate::whiten::Whitening;
    use nuts_rs::{CpuLogpFunc, CpuMathError, HasDims, LogpError};
    use std::collections::HashMap;

    /// The density in whitened coordinates.
    pub struct Density {
        posterior: Posterior,
        whitening: Whitening,
        u: Vec<f64>,
        slope: Vec<f64>,
    }

    impl Density {
        pub fn new(posterior: Posterior, whitening: Whitening) -> Self {
            let empty = vec![0.0; posterior.dimension()];
            Self { posterior, whitening, u: empty.clone(), slope: empty }
        }

        /// The value at `v`; not a number unless that and the gradient are finite.
        pub fn value(&mut self, v: &[f64], gradient: &mut [f64]) -> f64 {
            let stretch = self.whitening.place(v, &mut self.u);
            let value = self.posterior.log_density(&self.u, Some(&mut self.slope)) + stretch;
            self.whitening.pull(&mut self.slope, gradient);
            if value.is_finite() && gradient.iter().all(|g| g.is_finite()) { value } else { f64::NAN }
        }
    }

    /// The density is not a number or infinite there: the trajectory ends.
    #[derive(Debug, thiserror::Error)]
    #[error("the log density is not finite")]
    pub struct NotFinite;

    impl LogpError for NotFinite {
        fn is_recoverable(&self) -> bool {
            true
        }
    }

    impl HasDims for Density {
        fn dim_sizes(&self) -> HashMap<String, u64> {
            HashMap::from([("unconstrained_parameter".to_owned(), self.u.len() as u64)])
        }
    }

    impl CpuLogpFunc for Density {
        type LogpError = NotFinite;
        type FlowParameters = ();
        type ExpandedVector = ();

        fn dim(&self) -> usize {
            self.u.len()
        }

        fn logp(&mut self, position: &[f64], gradient: &mut [f64]) -> Result<f64, NotFinite> {
            let value = self.value(position, gradient);
            if value.is_finite() { Ok(value) } else { Err(NotFinite) }
        }

        fn expand_vector<R: rand::Rng + ?Sized>(&mut self, _: &mut R, _: &[f64]) -> Result<(), CpuMathError> {
            Ok(())
        }
    }
}

/// Draws one chain into `chain`, from `start` or from a random point about the priors.
///
/// # Errors
/// [`Error::Interrupted`], with the draws so far kept; [`Error::NoConvergence`] where no point of finite density is found.
pub fn sample(
    posterior: &Posterior,
    settings: &Settings,
    key: [u64; 2],
    start: Option<&[f64]>,
    chain: &mut NutsDraws,
    progress: &Progress,
) -> Result<()> {
    use crate::whiten::Whitening;
    use nuts_rs::{Chain as _, CpuMath, DiagNutsSettings, Settings as _};
    /// The purpose of the words of chains: "ldp", 2.
    const PURPOSE: u64 = 0x6c64_7002;

    let mut posterior = posterior.clone();
    let dimension = posterior.dimension();
    let mut stream = Stream::new(key, PURPOSE, 0, 0);
    let mut whitening = Whitening::new(&mut posterior, progress)?;
    let mut centre = vec![0.0; dimension];
    if let Some(start) = start {
        whitening.whiten(start, &mut centre);
    }
    let mut density = with_crate::Density::new(posterior.clone(), whitening.clone());
    let mut gradient = vec![0.0; dimension];
    let mut position = centre.clone();
    // Two standard deviations about the mode, more than the posterior's own spread.
    let mut spread = if start.is_some() { 0.0 } else { 2.0 };
    for attempt in 0.. {
        for (v, centre) in position.iter_mut().zip(&centre) {
            *v = centre + spread * (2.0 * stream.uniform() - 1.0);
        }
        let value = density.value(&position, &mut gradient);
        if value.is_finite() {
            break;
        }
        if attempt == 100 {
            return Err(Error::NoConvergence { what: "the search for a start", iterations: 100, residual: value });
        }
        spread *= 0.9;
    }
    let mut plan = DiagNutsSettings {
        num_tune: settings.warmup,
        num_draws: settings.draws,
        maxdepth: settings.max_depth,
        ..DiagNutsSettings::default()
    };
    plan.adapt_options.step_size_settings.target_accept = settings.target_accept;
    let failed = |_| Error::NoConvergence { what: "the sampler", iterations: 0, residual: f64::NAN };
    let naturals = posterior.naturals();
    let (mut natural, mut u) = (vec![0.0; naturals], vec![0.0; dimension]);
    let mut sampler = plan.new_chain(0, CpuMath::new(density), &mut stream);
    sampler.set_position(&position).map_err(failed)?;
    for draw in 0..settings.warmup + settings.draws {
        let (position, _, stats, state) = sampler.expanded_draw().map_err(failed)?;
        if draw >= settings.warmup {
            let stretch = whitening.place(&position, &mut u);
            posterior.natural(&u, &mut natural);
            chain.naturals.extend_from_slice(&natural);
            chain.log_density.push(stats.point.logp - stretch);
            chain.diverging.push(state.diverging);
            chain.depth.push(stats.depth as i64);
            chain.steps.push(state.num_steps as i64);
            chain.energy.push(stats.point.energy);
            chain.step_size.push(state.step_size);
            chain.last.clone_from(&u);
        }
        progress.advance(1)?;
    }
    Ok(())
}

/// Draws several chains at once on `threads` threads, each into its own place; what was drawn stays there on an error.
///
/// # Errors
/// As [`sample`].
pub fn sample_all(
    posterior: &Posterior,
    settings: &Settings,
    keys: &[[u64; 2]],
    starts: &[Option<Vec<f64>>],
    chains: &mut [NutsDraws],
    threads: usize,
    monitor: &mut dyn Monitor,
) -> Result<()> {
    let total = keys.len() as u64 * (settings.warmup + settings.draws);
    let places: Vec<_> = chains.iter_mut().map(Mutex::new).collect();
    parallel::run(threads, total, monitor, |progress| {
        parallel::tiles(
            keys.len(),
            1,
            || Ok(()),
            |(), i| {
                let mut chain = places[i].lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                sample(posterior, settings, keys[i], starts[i].as_deref(), &mut chain, progress)
            },
        )
    })
}
