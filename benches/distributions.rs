//! Kernels of the room `distributions`: nanoseconds per draw and per log-mass, in every regime.
//!
//! `cargo bench --bench distributions`; the time of a group `N values` is for all N. Times are processor time,
//! which a busy machine falsifies less than the clock on the wall.

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use quincunx::distributions::arrays::{Family, Output};
use quincunx::distributions::{Bessel, Distribution, Function, RandomSource, Skellam, bessel, poisson};
use quincunx::monitor::Silent;
use quincunx::stream::Stream;
use rand_distr::Distribution as _;
use std::hint::black_box;
use std::time::Duration;

/// Processor time of this process, in nanoseconds.
struct ProcessorTime;

fn processor_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the structure it is given and keeps nothing.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Measurement for ProcessorTime {
    type Intermediate = u64;
    type Value = Duration;
    fn start(&self) -> u64 {
        processor_time()
    }
    fn end(&self, start: u64) -> Duration {
        Duration::from_nanos(processor_time() - start)
    }
    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        *a + *b
    }
    fn zero(&self) -> Duration {
        Duration::ZERO
    }
    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_nanos() as f64
    }
    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

/// The points of the reference table: (order, argument); and four where draws are slowest.
const POINTS: [(f64, f64); 21] = [
    (0.0, 0.1),
    (0.0, 1.0),
    (0.0, 5.0),
    (1.0, 2.0),
    (2.0, 1.0),
    (5.0, 3.0),
    (1.0, 30.0),
    (10.0, 20.0),
    (0.0, 100.0),
    (50.0, 100.0),
    (100.0, 10.0),
    (1e3, 1e3),
    (0.0, 1e4),
    (1e5, 1e3),
    (1e6, 1e5),
    (0.0, 1e6),
    (0.0, 1e8),
    (0.0, 41.0),
    (100.0, 65.0),
    (1e3, 201.0),
    (1e6, 6400.0),
];

/// Orders and arguments as in a sweep of the augmented sampler over a sparse table at one unit of privacy loss per count:
/// rates of mean 1/2, counts and geometric noise from them, and the rates of the noise given it.
fn sweep_mix(cells: usize) -> (Vec<f64>, Vec<f64>) {
    let mut words = Stream::new([7, 11], 0, 0, 0);
    let alpha = (-1f64).exp();
    let exponential = |words: &mut Stream| -words.open_uniform().ln();
    (0..cells)
        .map(|_| {
            let rate = 0.5 * exponential(&mut words);
            let count = poisson::draw(rate, &mut words);
            let mut side = || {
                let noise = (exponential(&mut words) / -alpha.ln()).floor() as i64;
                let shape: f64 = (0..=noise).map(|_| exponential(&mut words)).sum();
                (noise, alpha * shape)
            };
            let ((plus, rate_plus), (minus, rate_minus)) = (side(), side());
            ((count + plus - minus).unsigned_abs() as f64, 2.0 * (rate_minus * (rate_plus + rate)).sqrt())
        })
        .unzip()
}

fn bessel_draws(c: &mut Criterion<ProcessorTime>) {
    let mut group = c.benchmark_group("Bessel draws, 1000 values");
    group.throughput(Throughput::Elements(1000));
    for (order, argument) in POINTS {
        let name = format!("order {order} argument {argument}");
        let mut out = vec![0; 1000];
        let (order, argument) = ([order], [argument]);
        group.bench_function(format!("{name}, cells"), |b| {
            let family = Family::Bessel(&order, &argument);
            b.iter(|| family.draws([1, 2], Output { out: black_box(&mut out), threads: 1, monitor: &mut Silent }));
        });
        group.bench_function(format!("{name}, one stream"), |b| {
            let mut words = Stream::new([1, 2], 0, 0, 0);
            b.iter(|| (0..1000).map(|_| bessel::draw(black_box(order[0]), argument[0], &mut words)).sum::<i64>());
        });
    }
    group.finish();
}

fn sweep_draws(c: &mut Criterion<ProcessorTime>) {
    let (order, argument) = sweep_mix(100_000);
    let mut out = vec![0; order.len()];
    let mut group = c.benchmark_group("Bessel draws over a sweep, 100000 values");
    group.throughput(Throughput::Elements(order.len() as u64));
    group.bench_function("cells", |b| {
        let family = Family::Bessel(&order, &argument);
        b.iter(|| family.draws([1, 2], Output { out: black_box(&mut out), threads: 1, monitor: &mut Silent }));
    });
    let orders: Vec<u32> = order.iter().map(|&v| v as u32).collect();
    group.bench_function("rows of 1000", |b| {
        b.iter(|| {
            for (row, slots) in out.chunks_mut(1000).enumerate() {
                let (orders, arguments) = (&orders[1000 * row..][..1000], &argument[1000 * row..][..1000]);
                let address = bessel::Address { key: [1, 2], purpose: 1, iteration: 1, row: row as u64 };
                bessel::draw_many(orders, arguments, address, 0, black_box(slots)).expect("valid");
            }
        });
    });
    group.bench_function("one stream", |b| {
        let mut words = Stream::new([1, 2], 0, 0, 0);
        b.iter(|| order.iter().zip(&argument).map(|(&v, &a)| bessel::draw(v, a, &mut words)).sum::<i64>());
    });
    group.finish();
}

fn masses(c: &mut Criterion<ProcessorTime>) {
    let mut group = c.benchmark_group("log-masses, 1000 values");
    group.throughput(Throughput::Elements(1000));
    let cases = [(1.0, 1.0), (20.0, 15.0), (100.0, 80.0), (1e3, 1.0), (1e5, 1e5), (1e8, 1e7)];
    for (plus, minus) in cases {
        let law = Skellam::new(plus, minus).expect("rates are positive");
        let center = (plus - minus).round();
        let spread = (plus + minus).sqrt();
        let points: Vec<f64> = (0..1000).map(|i| center + (spread * (i as f64 / 125.0 - 4.0)).round()).collect();
        group.bench_function(format!("Skellam {plus} {minus}"), |b| {
            b.iter(|| points.iter().map(|&k| law.log_mass(black_box(k))).sum::<f64>());
        });
    }
    for (order, argument) in [(0.0, 1.0), (3.0, 50.0), (1e3, 1e3), (0.0, 1e6)] {
        let law = Bessel::new(order, argument).expect("valid");
        let top = law.mode() as i64;
        let points: Vec<f64> = (0..1000).map(|i| ((top + i - 500).max(i % 20)) as f64).collect();
        group.bench_function(format!("Bessel {order} {argument}"), |b| {
            b.iter(|| points.iter().map(|&k| law.log_mass(black_box(k))).sum::<f64>());
        });
        let (orders, arguments) = (vec![order; 1000], vec![argument; 1000]);
        let mut out = vec![0.0; 1000];
        group.bench_function(format!("Bessel {order} {argument}, a law per value"), |b| {
            let family = Family::Bessel(&orders, &arguments);
            b.iter(|| {
                family.values(
                    Function::LogMass,
                    &points,
                    Output { out: black_box(&mut out), threads: 1, monitor: &mut Silent },
                )
            });
        });
    }
    group.finish();
}

/// Our Poisson draw beside the crate's, with the constants of the rate worked out for each draw, as in a sweep.
fn poisson_draws(c: &mut Criterion<ProcessorTime>) {
    let mut group = c.benchmark_group("Poisson draws, 1000 values");
    group.throughput(Throughput::Elements(1000));
    for rate in [0.05, 0.5, 3.0, 9.0, 12.0, 30.0, 1000.0, 1e6] {
        group.bench_function(format!("{rate}, here"), |b| {
            let mut words = Stream::new([1, 2], 0, 0, 0);
            b.iter(|| (0..1000).map(|_| poisson::draw(black_box(rate), &mut words)).sum::<i64>());
        });
        group.bench_function(format!("{rate}, rand_distr"), |b| {
            let mut words = Stream::new([1, 2], 0, 0, 0);
            let mut one = || rand_distr::Poisson::new(black_box(rate)).expect("positive").sample(&mut words);
            b.iter(|| (0..1000).map(|_| one()).sum::<f64>());
        });
    }
    group.finish();
}

fn two_piece_draws(c: &mut Criterion<ProcessorTime>) {
    let mut group = c.benchmark_group("two-piece Poisson draws, 1000 values");
    group.throughput(Throughput::Elements(1000));
    let cases = [
        (0.0, 0.5, 0.37),
        (3.0, 0.5, 0.37),
        (10.0, 4.0, 0.9),
        (100.0, 20.0, 0.5),
        (100.0, 300.0, 0.5),
        (100.0, 100.0, 0.5),
        (1e6, 1e6, 0.999),
    ];
    let mut out = vec![0; 1000];
    for (released, rate, alpha) in cases {
        group.bench_function(format!("released {released} rate {rate} alpha {alpha}"), |b| {
            let (released, rate, alpha) = ([released], [rate], [alpha]);
            let family = Family::TwoPiecePoisson(&released, &rate, &alpha);
            b.iter(|| family.draws([1, 2], Output { out: black_box(&mut out), threads: 1, monitor: &mut Silent }));
        });
    }
    group.finish();
}

fn words(c: &mut Criterion<ProcessorTime>) {
    let mut group = c.benchmark_group("random words, 1000 values");
    group.throughput(Throughput::Elements(1000));
    let mut words = Stream::new([1, 2], 0, 0, 0);
    group.bench_function("one stream", |b| b.iter(|| (0..1000).map(|_| words.uniform()).sum::<f64>()));
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .with_measurement(ProcessorTime)
        .sample_size(20)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400))
        .without_plots();
    targets = words, bessel_draws, sweep_draws, masses, poisson_draws, two_piece_draws
}
criterion_main!(benches);
