//! `cargo bench -p pipeline`

use std::hint::black_box;

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use pipeline::{report, stored, text};

fn pipeline(criterion: &mut Criterion) {
    let readings = codec::workload::readings(2_000);
    let text = text(&readings);
    let mut group = criterion.benchmark_group("pipeline");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("report", |bencher| bencher.iter(|| report(black_box(&text), 1_200)));
    group.throughput(Throughput::Elements(readings.len() as u64));
    group.bench_function("stored", |bencher| bencher.iter(|| stored(black_box(&readings))));
    group.finish();
}

criterion_group!(benches, pipeline);
criterion_main!(benches);
