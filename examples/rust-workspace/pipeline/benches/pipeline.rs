//! `cargo bench -p pipeline`

use std::hint::black_box;

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use pipeline::{report, stored, text};

/// Readings of one report.
const COUNT: usize = 2_000;

fn pipeline(criterion: &mut Criterion) {
    let readings = codec::workload::readings(COUNT);
    let text = text(&readings);
    let mut group = criterion.benchmark_group("report");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function(COUNT.to_string(), |bencher| {
        bencher.iter(|| report(black_box(&text), 1_200))
    });
    group.finish();
    let mut group = criterion.benchmark_group("stored");
    group.throughput(Throughput::Elements(COUNT as u64));
    group.bench_function(COUNT.to_string(), |bencher| {
        bencher.iter(|| stored(black_box(&readings)))
    });
    group.finish();
}

criterion_group!(benches, pipeline);
criterion_main!(benches);
