//! Kernels of the counting room: one step of each engine, in updates per second.
//!
//! An update is one residue of one state passing one site: states x width x lanes per row. `cargo bench --bench counting`;
//! `QUINCUNX_SIMD=avx2` or `baseline` measures a lower level.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use quincunx::counting::independent_sets::planner::Planner;
use quincunx::counting::independent_sets::{Boundary, Engine, Problem, StripKind};
use quincunx::counting::transfer::{Point, Transfer, lane_weight};
use quincunx::monitor::Progress;
use quincunx::numeric::buffer::Buffer;
use quincunx::numeric::residue::primes;
use std::time::Duration;

/// One step of an engine on `L` lanes, again and again on the same vector.
fn step<const L: usize>(c: &mut Criterion, group: &str, kind: StripKind, n: usize, states: u64) {
    let problem = Problem::Lattice { kind, rows: n, cols: n, boundary: Boundary::Free };
    let engine = Engine::new(&problem, usize::MAX, &Planner::new(&Progress::default()))
        .expect("the sizes of this bench are sizes of lattices");
    let points: Vec<Point> = primes(L).expect("few primes").into_iter().map(|modulus| Point::new(modulus, 1)).collect();
    let weight = lane_weight::<L>(&points);
    let mut state = Buffer::zeroed(engine.len()).expect("the vectors of this bench fit into memory");
    engine.start(&weight, &mut state);
    let progress = Progress::default();
    let mut group = c.benchmark_group(group);
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(3))
        .throughput(Throughput::Elements(states * n as u64 * L as u64));
    group.bench_function(BenchmarkId::new(format!("{L} lanes"), n), |bencher| {
        // The first step of a sweep is like every other but the last.
        bencher.iter(|| engine.step(&weight, 1, &mut state, &progress));
    });
    group.finish();
}

/// Words of length `n` without two neighboring ones.
fn words(n: usize) -> u64 {
    (0..n).fold((1, 2), |(a, b), _| (b, a + b)).0
}

fn kernels(c: &mut Criterion) {
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
