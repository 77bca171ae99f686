//! Poisson-gamma dynamical systems: counts over times whose components drive one another.
//!
//!   mu_ti = delta_t sum_k theta_tk prod_m phi^m[i_m, k],      phi^m_.k ~ Dirichlet(eta),
//!   theta_1k ~ Gamma(tau nu_k, tau),      theta_tk ~ Gamma(tau sum_j Pi_kj theta_(t-1)j, tau),      delta_t ~ Gamma(e, e),
//!   Pi_.j ~ Dirichlet(c_.j),  c_kj = nu_k nu_j, but xi nu_j where k = j,      nu_k ~ Gamma(g / K, beta),      xi, beta, tau ~ Gamma(e, e).
//!
//! The rows of the table are the times, or with several modes of the counts the times and all modes but the last. As the phi
//! sum to one, given the parts y_tk of the counts they are redrawn by their own Dirichlet conditionals. The others together:
//!   1. backward, zeta_(T+1) = 0 and zeta_t = ln(1 + delta_t / tau + zeta_(t+1)): the tables l_tk ~ CRT(y_tk + l_(t+1).k, shape of
//!      theta_tk), split over j by Pi_kj theta_(t-1)j into l_tkj; l_t.j = sum_k l_tkj. Each step sums theta_t out;
//!   2. tau, nu, xi, beta and Pi given the tables alone, with theta and, but for itself, Pi summed out;
//!   3. forward, theta_tk ~ Gamma(its shape + y_tk + l_(t+1).k, tau + delta_t + tau zeta_(t+1)); then delta_t ~ Gamma(e + y_t, e + theta_t).
//!
//! In another order step 2 would condition on theta and on tables from which theta was summed out: it leaves no law invariant.
//!
//! For step 2, L_kj = sum_t l_tkj: q_j ~ Beta(L_.j, sum_k c_kj), h_kj ~ CRT(L_kj, c_kj) make nu and xi gamma variables with
//! rates in p_j = -ln(1 - q_j). And the tables and counts have, as a function of tau, the probability
//!   tau^(l_1 - y) exp(-sum_t (y_t + l_(t+1)) zeta_t - tau zeta_1 sum_k nu_k):   a slice sampler on ln tau, T logarithms a look.
//! It is drawn once more given theta: where one of the two moves little, the other may.
//!
//! Source: A. Schein, H. Wallach, M. Zhou (2016), Poisson-gamma dynamical systems, sections 2 and 3; there tau is given. The
//! probability of tau is that of their bivariate counts (SumLog and Poisson), multiplied out here.

use super::cp::Cp;
use super::dispersion::{each, slice};
use super::factor_matrix::FactorMatrix;
use super::gamma_chain::{self, mixture, redraw_columns, seat};
use super::gammas::Prior;
use super::split::Splitter;
use super::structure::{Entries, Factors, Layout, Structure};
use crate::distributions::{chinese_restaurant, gamma};
use crate::numeric::special::gamma::log_gamma;
use crate::stream::Xoshiro;

/// Dynamical systems; extents are the number of times and those of the modes of the counts. theta and Pi are never fixed.
#[derive(Clone, Copy, Debug)]
pub struct Dynamics;

/// Where the factors after theta and the phi are: Pi (K x K), delta (1 x T), nu (1 x K) and three numbers.
const PI: usize = 0;
const DELTA: usize = 1;
const NU: usize = 2;
const XI: usize = 3;
const BETA: usize = 4;
const TAU: usize = 5;

/// The least nu, xi or beta: products of two are concentrations whose gamma draws have logarithms yet.
const LEAST: f64 = 1e-140;

/// zeta_1 .. zeta_(T+1): what the counts of a time and of those after it, theta summed out, make of a unit of its shape.
fn zetas(delta: &[f64], tau: f64) -> Vec<f64> {
    let mut zeta = vec![0.0; delta.len() + 1];
    for (t, &delta) in delta.iter().enumerate().rev() {
        zeta[t] = (delta / tau + zeta[t + 1]).ln_1p();
    }
    zeta
}

/// The shape of theta_tk, over tau.
fn shape(theta: &FactorMatrix, pi: &FactorMatrix, nu: &[f64], t: usize, k: usize) -> f64 {
    if t == 0 { nu[k] } else { mixture(pi, theta.row(t - 1), k) }
}

/// What the backward pass draws.
struct TableCounts {
    /// l_(t+1).k: what theta_tk has of the time after it, padded as theta is; the last row is zero.
    received: Vec<u64>,
    /// L_kj, padded as Pi is.
    moved: Vec<u64>,
    /// l_1k.
    first: Vec<u64>,
    /// l_t, summed over components.
    totals: Vec<u64>,
}

/// Draws the tables, the last time first, given the parts y_tk.
fn backward(
    counts: &[u64],
    theta: &FactorMatrix,
    (pi, nu, tau): (&FactorMatrix, &[f64], f64),
    rng: &dyn Fn(usize) -> Xoshiro,
) -> TableCounts {
    let (stride, width, times) = (theta.stride, theta.width, theta.rows);
    let (mut received, mut moved) = (vec![0; times * stride], vec![0; width * stride]);
    let (mut first, mut totals) = (vec![], vec![0; times]);
    let mut splitter = Splitter::new(stride);
    for t in (0..times).rev() {
        let mut words = rng(t);
        let (before, here) = received.split_at_mut(t * stride);
        let counts = counts[t * stride..][..width].iter().zip(&*here).map(|(count, more)| count + more);
        if t == 0 {
            first = counts.zip(nu).map(|(n, nu)| chinese_restaurant::draw(n, tau * nu, &mut words)).collect();
            totals[0] = first.iter().sum();
        } else {
            let parts = (moved.as_mut_slice(), &mut before[(t - 1) * stride..]);
            totals[t] = seat(counts, (pi, theta.row(t - 1), tau), parts, &mut splitter, &mut words);
        }
    }
    TableCounts { received, moved, first, totals }
}

/// Draws theta, the first time first.
fn forward(
    counts: &[u64],
    received: &[u64],
    theta: &mut FactorMatrix,
    (pi, nu, tau): (&FactorMatrix, &[f64], f64),
    (delta, zeta): (&[f64], &[f64]),
    rng: &dyn Fn(usize) -> Xoshiro,
) {
    let stride = theta.stride;
    for t in 0..theta.rows {
        let mut words = rng(t);
        for k in 0..theta.width {
            let number = counts[t * stride + k] + received[t * stride + k];
            let shape = tau * shape(theta, pi, nu, t, k) + number as f64;
            theta.row_mut(t)[k] = gamma_chain::draw(shape, tau + delta[t] + tau * zeta[t + 1], &mut words);
        }
    }
}

/// nu, xi and beta.
struct Hyperparameters {
    nu: Vec<f64>,
    xi: f64,
    beta: f64,
}

impl Hyperparameters {
    /// c_kj.
    fn concentration(&self, k: usize, j: usize) -> f64 {
        self.nu[j] * if k == j { self.xi } else { self.nu[k] }
    }

    /// Draws nu, xi and beta given the tables, Pi summed out; `exposure` is tau zeta_1, and the priors are those of nu, xi, beta.
    fn redraw(
        &mut self,
        tables: &TableCounts,
        exposure: f64,
        priors: [&Prior; 3],
        fixed: [bool; 3],
        rng: &mut Xoshiro,
    ) {
        let width = self.nu.len();
        let stride = tables.moved.len() / width;
        let mut p = vec![0.0; width];
        // h_kj adds to nu_k and nu_j, on the diagonal to nu_k and xi.
        let (mut counts, mut stays) = (tables.first.clone(), 0);
        for j in 0..width {
            let column: u64 = (0..width).map(|k| tables.moved[k * stride + j]).sum();
            if column == 0 {
                continue;
            }
            let all: f64 = (0..width).map(|k| self.concentration(k, j)).sum();
            p[j] = chinese_restaurant::exposure(column, all, rng);
            for k in 0..width {
                let seated = chinese_restaurant::draw(tables.moved[k * stride + j], self.concentration(k, j), rng);
                counts[j] += seated;
                if k == j {
                    stays += seated;
                } else {
                    counts[k] += seated;
                }
            }
        }
        for k in (0..width).filter(|_| !fixed[0]) {
            let others = (0..width).filter(|&j| j != k);
            let rate: f64 = others.map(|j| (p[k] + p[j]) * self.nu[j]).sum();
            let rate = self.beta + exposure + p[k] * self.xi + rate;
            self.nu[k] = gamma::draw(priors[0].at(k).0 + counts[k] as f64, rate, rng).max(LEAST);
        }
        if !fixed[1] {
            let (shape, rate) = priors[1].at(0);
            let weight: f64 = p.iter().zip(&self.nu).map(|(p, nu)| p * nu).sum();
            self.xi = gamma::draw(shape + stays as f64, rate + weight, rng).max(LEAST);
        }
        if !fixed[2] {
            let (shape, rate) = priors[2].at(0);
            let shapes: f64 = (0..width).map(|k| priors[0].at(k).0).sum();
            self.beta = gamma::draw(shape + shapes, rate + self.nu.iter().sum::<f64>(), rng).max(LEAST);
        }
    }

    /// Draws Pi given the tables.
    fn transitions(&self, moved: &[u64], pi: &mut FactorMatrix, rng: &mut Xoshiro) {
        redraw_columns(pi, |k, j| self.concentration(k, j), moved, rng);
    }
}

/// Draws tau given tables and counts of times.
fn redraw_tau(
    tau: f64,
    (totals, counts): (&[u64], &[u64]),
    delta: &[f64],
    total_nu: f64,
    prior: (f64, f64),
    rng: &mut Xoshiro,
) -> f64 {
    let power = totals[0] as f64 - counts.iter().sum::<u64>() as f64;
    let log_density = |log: f64| {
        let tau = log.exp();
        let zeta = zetas(delta, tau);
        let after = totals[1..].iter().chain([&0]);
        let below: f64 = counts.iter().zip(after).zip(&zeta).map(|((y, l), zeta)| (y + l) as f64 * zeta).sum();
        (power + prior.0) * log - below - tau * (zeta[0] * total_nu + prior.1)
    };
    slice_of_log(tau, log_density, rng)
}

/// Draws tau given theta. A theta of zero is one below the least double.
fn redraw_tau_given(
    tau: f64,
    theta: &FactorMatrix,
    (pi, nu): (&FactorMatrix, &[f64]),
    prior: (f64, f64),
    rng: &mut Xoshiro,
) -> f64 {
    let least = f64::from_bits(1).ln();
    let (mut shapes, mut linear, mut power) = (vec![], prior.1, 0.0);
    for t in 0..theta.rows {
        for (k, &theta_tk) in theta.row(t)[..theta.width].iter().enumerate() {
            let shape = shape(theta, pi, nu, t, k);
            if shape > 0.0 {
                // ln Gamma(a + 1) where P(theta < least) = (tau least)^a / Gamma(a + 1), else ln Gamma(a), a = tau shape
                shapes.push((shape, f64::from(theta_tk == 0.0)));
                linear += theta_tk - shape * if theta_tk > 0.0 { theta_tk.ln() } else { least };
                power += shape;
            }
        }
    }
    let log_density = |log: f64| {
        let tau = log.exp();
        let gammas: f64 = shapes.iter().map(|(shape, more)| log_gamma(tau * shape + more)).sum();
        prior.0 * log + tau * (power * log - linear) - gammas
    };
    slice_of_log(tau, log_density, rng)
}

/// A slice sampler on a logarithm, of width one before it is doubled.
fn slice_of_log(value: f64, log_density: impl Fn(f64) -> f64, rng: &mut Xoshiro) -> f64 {
    slice::<1>(value.ln().clamp(-300.0, 300.0), 1.0, [-300.0, 300.0], each(log_density), rng).exp()
}

/// The entries of a factor of one row.
fn only(factor: &FactorMatrix) -> Vec<f64> {
    factor.row(0)[..factor.width].to_vec()
}

impl Structure for Dynamics {
    fn table_shape(&self, extents: &[usize]) -> Option<(usize, usize)> {
        Cp.table_shape(extents)
    }

    fn shapes(&self, extents: &[usize], width: usize) -> Vec<(usize, usize)> {
        let own = [(width, width), (1, extents[0]), (1, width), (1, 1), (1, 1), (1, 1)];
        Cp.shapes(extents, width).into_iter().chain(own).collect()
    }

    fn imputes(&self) -> bool {
        true
    }

    fn left(&self, layout: &Layout, factors: &Factors, row: usize, out: &mut [f64]) {
        let modes = factors.len() - TAU - 1;
        Cp.left(layout, &factors[..modes], row, out);
        let inner: usize = factors[1..modes - 1].iter().map(|factor| factor.rows).product();
        let delta = factors[modes + DELTA].row(0)[row / inner];
        out.iter_mut().for_each(|out| *out *= delta);
    }

    /// The sum over all cells: none are held out of a model that imputes.
    fn total_rate(&self, layout: &Layout, factors: &Factors) -> f64 {
        let sums: Vec<_> = factors.iter().map(FactorMatrix::sums).collect();
        let mut out = vec![0.0; layout.stride()];
        (0..layout.extents[0])
            .map(|t| {
                self.exposure(layout, (0, t), factors, &sums, &mut out);
                out.iter().zip(factors[0].row(t)).map(|(exposure, theta)| exposure * theta).sum::<f64>()
            })
            .sum()
    }

    fn exposure(&self, layout: &Layout, (factor, row): Entries, factors: &Factors, sums: &[Vec<f64>], out: &mut [f64]) {
        let modes = layout.extents.len();
        let (theta, delta) = (&factors[0], factors[modes + DELTA].row(0));
        let product = |k: usize| {
            let others = (1..modes).filter(|&mode| mode != factor);
            others.map(|mode| sums[mode][k]).product::<f64>()
        };
        out.fill(0.0);
        if factor == modes + DELTA {
            let rate = |t: usize| (0..layout.width).map(|k| theta.row(t)[k] * product(k)).sum();
            (0..theta.rows).for_each(|t| out[t] = rate(t));
        } else if factor < modes {
            let times = if factor == 0 { row..row + 1 } else { 0..theta.rows };
            for t in times {
                for k in 0..layout.width {
                    out[k] += delta[t] * product(k) * if factor == 0 { 1.0 } else { theta.row(t)[k] };
                }
            }
        }
    }

    fn is_redrawn_together(&self, layout: &Layout, factor: usize) -> bool {
        factor == 0 || factor >= layout.extents.len()
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
        let (front, own) = factors.split_at_mut(layout.extents.len());
        let (priors, fixed) = (&priors[front.len()..], &fixed[front.len()..]);
        let (theta, counts) = (&mut front[0], &counts[0]);
        let times = theta.rows;
        let mut delta = only(&own[DELTA]);
        let mut tau = own[TAU].row(0)[0];
        let mut weights = Hyperparameters { nu: only(&own[NU]), xi: own[XI].row(0)[0], beta: own[BETA].row(0)[0] };
        let at_times: Vec<u64> = counts.chunks_exact(theta.stride).map(|row| row.iter().sum()).collect();

        let tables = backward(counts, theta, (&own[PI], &weights.nu, tau), &|t| rng(t));

        let mut words = rng(2 * times);
        if !fixed[TAU] {
            let seen = (tables.totals.as_slice(), at_times.as_slice());
            tau = redraw_tau(tau, seen, &delta, weights.nu.iter().sum(), priors[TAU].at(0), &mut words);
        }
        let zeta = zetas(&delta, tau);
        let others = [NU, XI, BETA];
        weights.redraw(&tables, tau * zeta[0], others.map(|i| &priors[i]), others.map(|i| fixed[i]), &mut words);
        weights.transitions(&tables.moved, &mut own[PI], &mut words);

        let chain = (&own[PI], weights.nu.as_slice(), tau);
        forward(counts, &tables.received, theta, chain, (&delta, &zeta), &|t| rng(times + t));
        if !fixed[TAU] {
            tau = redraw_tau_given(tau, theta, (&own[PI], &weights.nu), priors[TAU].at(0), &mut words);
        }
        if !fixed[DELTA] {
            for (t, delta) in delta.iter_mut().enumerate() {
                let (shape, rate) = priors[DELTA].at(t);
                *delta = gamma::draw(shape + at_times[t] as f64, rate + theta.row(t).iter().sum::<f64>(), &mut words);
            }
        }
        let numbers =
            [(DELTA, delta), (NU, weights.nu), (XI, vec![weights.xi]), (BETA, vec![weights.beta]), (TAU, vec![tau])];
        for (factor, values) in numbers {
            own[factor].row_mut(0)[..values.len()].copy_from_slice(&values);
        }
    }

    /// The phi and Pi are normalized, nu is the mean of theta, and what has a prior of its own starts at its mean.
    fn shape_start(&self, layout: &Layout, priors: &[Prior], factors: &mut Factors) {
        let (front, own) = factors.split_at_mut(layout.extents.len());
        let first = front.len();
        let (theta, phis) = front.split_first_mut().expect("theta");
        for phi in phis {
            let sums = phi.sums();
            phi.normalize();
            (0..theta.rows).for_each(|t| theta.row_mut(t).iter_mut().zip(&sums).for_each(|(theta, sum)| *theta *= sum));
        }
        own[PI].normalize();
        let mean = theta.sums().iter().sum::<f64>() / (theta.rows * theta.width).max(1) as f64;
        own[NU].row_mut(0)[..layout.width].fill(mean);
        for i in [DELTA, XI, BETA, TAU] {
            for k in 0..own[i].width {
                let (shape, rate) = priors[first + i].at(k);
                own[i].row_mut(0)[k] = shape / rate;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::poisson;
    use crate::stream::xoshiro;

    const DELTAS: [f64; 3] = [1.0, 0.5, 2.0];
    const RATE: f64 = 2.0;
    const REPLICATES: usize = 20_000;

    /// What may be wrong with a sweep.
    #[derive(Clone, Copy, PartialEq)]
    enum Fault {
        None,
        TransitionsLast,
        NoRecursion,
    }

    fn weights() -> Hyperparameters {
        Hyperparameters { nu: vec![0.7, 1.2], xi: 0.8, beta: 1.0 }
    }

    /// Pi and theta from their prior.
    fn prior(words: &mut Xoshiro, rng: &dyn Fn(usize) -> Xoshiro) -> (FactorMatrix, FactorMatrix) {
        let (mut pi, mut theta) = (FactorMatrix::new(2, 2), FactorMatrix::new(3, 2));
        weights().transitions(&[0; 16], &mut pi, words);
        let none = [0; 24];
        forward(&none, &none, &mut theta, (&pi, &weights().nu, RATE), (&[0.0; 3], &[0.0; 4]), rng);
        (pi, theta)
    }

    /// One sweep given new counts of the components; tau, nu and delta are known.
    fn sweep(
        pi: &mut FactorMatrix,
        theta: &mut FactorMatrix,
        fault: Fault,
        words: &mut Xoshiro,
        rng: &dyn Fn(usize) -> Xoshiro,
    ) {
        let mut counts = vec![0; 24];
        for t in 0..3 {
            for k in 0..2 {
                counts[t * 8 + k] = poisson::draw(DELTAS[t] * theta.row(t)[k], words) as u64;
            }
        }
        let weights = weights();
        let tables = backward(&counts, theta, (pi, &weights.nu, RATE), &|t| rng(t + 3));
        let zeta = match fault {
            Fault::NoRecursion => DELTAS.iter().map(|delta| (delta / RATE).ln_1p()).chain([0.0]).collect(),
            _ => zetas(&DELTAS, RATE),
        };
        if fault != Fault::TransitionsLast {
            weights.transitions(&tables.moved, pi, words);
        }
        forward(&counts, &tables.received, theta, (pi, &weights.nu, RATE), (&DELTAS, &zeta), rng);
        if fault == Fault::TransitionsLast {
            weights.transitions(&tables.moved, pi, words);
        }
    }

    /// sqrt(n / 2) times the largest distance of two empirical distribution functions of n draws each.
    fn distance(mut first: Vec<f64>, mut second: Vec<f64>) -> f64 {
        first.sort_by(f64::total_cmp);
        second.sort_by(f64::total_cmp);
        let n = first.len() as f64;
        let away =
            first.iter().enumerate().map(|(i, x)| (second.partition_point(|y| y <= x) as f64 - (i + 1) as f64).abs());
        away.fold(0.0, f64::max) / n * (0.5 * n).sqrt()
    }

    /// The largest such distance between the prior and what twelve sweeps, each with new counts, make of it.
    fn moved(fault: Fault) -> f64 {
        let state = |replicate: usize, sweeps: usize| {
            let generator = |purpose, step: usize| xoshiro([6, 1], purpose, step as u64, replicate as u64);
            let rng = |step: usize| move |t: usize| generator(10 + t as u64, step);
            let mut words = generator(1, sweeps);
            let (mut pi, mut theta) = prior(&mut words, &rng(100 + sweeps));
            (0..sweeps).for_each(|step| sweep(&mut pi, &mut theta, fault, &mut words, &rng(step)));
            let log = |t: usize, k: usize| theta.row(t)[k].max(1e-290).ln();
            let step = |t: usize, k: usize| log(t, k) - shape(&theta, &pi, &[], t, k).max(1e-290).ln();
            let places = || (0..3).flat_map(|t| [(t, 0), (t, 1)]);
            let steps = places().skip(2).map(|(t, k)| step(t, k));
            let moves = (0..2).flat_map(|k| pi.row(k)[..2].to_vec());
            places().map(|(t, k)| log(t, k)).chain(steps).chain(moves).collect::<Vec<_>>()
        };
        let (before, after): (Vec<_>, Vec<_>) = (0..REPLICATES).map(|i| (state(i, 0), state(i, 12))).unzip();
        let column = |states: &[Vec<f64>], i: usize| states.iter().map(|state| state[i]).collect::<Vec<_>>();
        (0..before[0].len()).map(|i| distance(column(&before, i), column(&after, i))).fold(0.0, f64::max)
    }

    /// Kolmogorov and Smirnov at 1e-6 over fourteen distances: 2.93.
    const LIMIT: f64 = 2.93;

    #[test]
    fn sweeps_leave_the_joint_law_as_it_is_and_planted_faults_are_seen() {
        let found = [Fault::None, Fault::TransitionsLast, Fault::NoRecursion].map(moved);
        println!("{found:?}");
        assert!(found[0] < LIMIT, "{found:?}");
        assert!(found[1..].iter().all(|distance| *distance > LIMIT), "a fault is not seen: {found:?}");
    }

    #[test]
    fn tau_has_the_law_that_its_tables_give_it() {
        // One time and one component: y ~ NB(tau nu, delta / (tau + delta)), l ~ CRT(y, tau nu), tau ~ Gamma(2, 1): the joint law
        // of tau, y and l must stay as it is. Kolmogorov and Smirnov at 1e-6: 2.69.
        let draws = |sweeps: usize| {
            let one = |i: usize| {
                let mut words = xoshiro([6, 2], sweeps as u64, 0, i as u64);
                let mut tau = gamma::draw(2.0, 1.0, &mut words);
                for _ in 0..sweeps {
                    let y = poisson::draw(1.5 * gamma::draw(0.8 * tau, tau, &mut words), &mut words) as u64;
                    let tables = chinese_restaurant::draw(y, 0.8 * tau, &mut words);
                    tau = redraw_tau(tau, (&[tables], &[y]), &[1.5], 0.8, (2.0, 1.0), &mut words);
                }
                tau
            };
            (0..100_000).map(one).collect::<Vec<_>>()
        };
        let found = distance(draws(0), draws(5));
        assert!(found < 2.69, "{found}");
    }
}
