//! Kernels of the counting room: one step of each engine, in updates per second.
//!
//! An update is one residue of one state passing one site: states x width x lanes per row. `cargo bench --bench counting`;
//! `QUINCUNX_SIMD=avx2` or `baseline` measures a lower level.
//!
//! First the machine's limits on one thread: additions of words that never leave the registers, and a sweep that reads and
//! writes memory beyond all caches. Below each kernel stand its additions and the memory it sweeps, in parts of those limits.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use quincunx::counting::evaluation::Options;
use quincunx::counting::exact::Modular;
use quincunx::counting::graph_sums::planner::Planner;
use quincunx::counting::independent_sets::reflection::Reflection;
use quincunx::counting::independent_sets::{Boundary, Engine, Problem, StripKind};
use quincunx::counting::transfer::{Point, StepContext, Transfer, TransferRing, lane_weight};
use quincunx::monitor::{Monitor, Progress, Silent};
use quincunx::numeric::buffer::Buffer;
use quincunx::numeric::dispatch;
use quincunx::numeric::neighbors::{self, NeighborKernel, Neighbors, ShortPrime, TILE};
use quincunx::numeric::residue::{Modulus, primes, short_primes};
use quincunx::numeric::ring::Lanes;
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Sums in registers that are added to one another, and how often.
const SUMS: usize = 12;
const ROUNDS: usize = 1 << 20;
/// Words of the sweep: 256 MB.
const SWEPT: usize = 1 << 25;

/// Additions that never leave the registers.
struct RegisterLoop;

impl NeighborKernel for RegisterLoop {
    type Output = u64;

    #[inline(always)]
    fn run<A: Neighbors>(self, a: A) -> u64 {
        let mut sums = [a.splat(black_box(1)); SUMS];
        for _ in 0..ROUNDS {
            for k in 0..SUMS {
                sums[k] = a.add(sums[k], sums[(k + 1) % SUMS]);
            }
        }
        let mut words = [0; TILE];
        for sum in sums {
            // SAFETY: a register has eight words at most.
            unsafe { a.store(words.as_mut_ptr(), a.fold(sum)) };
            black_box(words);
        }
        A::LANES as u64
    }
}

/// Adds to every word of memory.
struct MemorySweep<'a>(&'a mut [u64]);

impl NeighborKernel for MemorySweep<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Neighbors>(self, a: A) {
        let one = a.splat(black_box(1));
        for i in (0..self.0.len()).step_by(A::LANES) {
            // SAFETY: as many words are left, a multiple of eight.
            unsafe {
                let place = self.0.as_mut_ptr().add(i);
                a.store(place, a.add(a.load(place), one));
            }
        }
    }
}

/// What one thread of this machine can do in a second.
#[derive(Clone, Copy)]
struct Limits {
    additions: f64,
    /// Bytes read and bytes written.
    bytes: f64,
}

/// The least seconds of a few calls.
fn least(mut call: impl FnMut()) -> f64 {
    let timed = |_| {
        let start = Instant::now();
        call();
        start.elapsed().as_secs_f64()
    };
    (0..7).map(timed).fold(f64::INFINITY, f64::min)
}

/// The limits, measured once.
fn limits() -> Limits {
    static LIMITS: OnceLock<Limits> = OnceLock::new();
    *LIMITS.get_or_init(|| {
        let level = dispatch::level();
        let prime = ShortPrime::new(short_primes(1).expect("a prime")[0]).expect("a short prime");
        let mut lanes = 0;
        let seconds = least(|| lanes = neighbors::run(level, prime, RegisterLoop));
        let additions = (SUMS * ROUNDS) as f64 * lanes as f64 / seconds;
        let mut memory = Buffer::zeroed(SWEPT).expect("256 MB");
        let seconds = least(|| neighbors::run(level, prime, MemorySweep(&mut memory)));
        let bytes = 16.0 * SWEPT as f64 / seconds;
        println!("limits of a thread: {additions:.2e} additions of words a second, {:.1} GB/s swept", bytes * 1e-9);
        Limits { additions, bytes }
    })
}

/// Says which parts of the limits work of so many additions and bytes reaches.
fn report(name: &str, additions: f64, bytes: f64, mut work: impl FnMut()) {
    let (limits, seconds) = (limits(), least(&mut work));
    println!(
        "{name}: {:.0} % of the additions in registers, {:.0} % of the sweep of memory",
        100.0 * additions / seconds / limits.additions,
        100.0 * bytes / seconds / limits.bytes
    );
}

/// One step of an engine on `L` lanes, again and again on the same vector.
fn step<const L: usize>(c: &mut Criterion, group: &str, kind: StripKind, n: usize, states: u64)
where
    Lanes<L>: TransferRing<Element = [u64; L]>,
{
    let problem = Problem::Lattice { kind, rows: n, cols: n, boundary: Boundary::Free };
    let engine = Engine::new(&problem, usize::MAX, &Planner::new(&Progress::default()))
        .expect("the sizes of this bench are sizes of lattices");
    let points: Vec<Point> = primes(L).expect("few primes").into_iter().map(|modulus| Point::new(modulus, 1)).collect();
    let weight = lane_weight::<L>(&points);
    let mut state = Buffer::zeroed(engine.len()).expect("the vectors of this bench fit into memory");
    engine.start(&weight, &mut state);
    let progress = Progress::default();
    // The first step of a sweep is like every other but the last.
    let at = StepContext { weight: &weight, number: 1, progress: &progress };
    let mut group = c.benchmark_group(group);
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(3))
        .throughput(Throughput::Elements(states * n as u64 * L as u64));
    group.bench_function(BenchmarkId::new(format!("{L} lanes"), n), |bencher| {
        bencher.iter(|| engine.advance(at, &mut state));
    });
    group.finish();
    let (additions, bytes) = (engine.work(1) as f64 * L as f64, 16.0 * (engine.len() * L) as f64);
    report(&format!("{kind:?} {n}, {L} lanes"), additions, bytes, || {
        engine.advance(at, &mut state).expect("nobody stops it");
    });
}

/// Residues and nothing else.
#[derive(Debug)]
struct Residues;

impl Modular for Residues {
    fn description(&self) -> Vec<u64> {
        Vec::new()
    }
    fn bits(&self) -> f64 {
        0.0
    }
    fn residues(&self, _: &[Modulus], _: &Options, _: &mut dyn Monitor) -> quincunx::Result<Vec<u64>> {
        Ok(Vec::new())
    }
}

/// The square lattice by one prime from start to end.
fn reflection(c: &mut Criterion, n: usize, states: u64) {
    let problem = Problem::Lattice { kind: StripKind::Square, rows: n, cols: n, boundary: Boundary::Free };
    let reflection =
        Reflection::for_problem(&problem, None, &Progress::default()).expect("nobody stops it").expect("wide");
    let prime = short_primes(1).expect("a prime");
    let work = || {
        let residues = reflection.residues(&Residues, |_, _| 1, &prime, &Options::default(), &mut Silent);
        black_box(residues.expect("memory for one vector"));
    };
    let mut group = c.benchmark_group("square reflection");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(3))
        .throughput(Throughput::Elements(states * (n * n / 2) as u64));
    group.bench_function(BenchmarkId::new("one prime", n), |bencher| bencher.iter(work));
    group.finish();
    report(&format!("Square {n}, reflection"), reflection.additions(), reflection.swept_bytes(), work);
}

/// Words of length `n` without two neighboring ones.
fn words(n: usize) -> u64 {
    (0..n).fold((1, 2), |(a, b), _| (b, a + b)).0
}

fn kernels(c: &mut Criterion) {
    limits();
    for n in [26, 30, 34] {
        reflection(c, n, words(n));
    }
    for n in [20, 26, 32] {
        step::<4>(c, "square", StripKind::Square, n, words(n));
        step::<8>(c, "square", StripKind::Square, n, words(n));
    }
    for n in [14, 18] {
        step::<8>(c, "4-8-8", StripKind::FourEightEight, n, 2 << (n + 1));
    }
    for n in [16, 22] {
        step::<8>(c, "king", StripKind::King, n, words(n + 1));
    }
}

criterion_group!(benches, kernels);
criterion_main!(benches);
