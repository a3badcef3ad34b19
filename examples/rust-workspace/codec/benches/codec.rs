//! `cargo bench -p codec`

use std::hint::black_box;

use codec::{decode, encode, workload};
use criterion::{criterion_group, criterion_main, Criterion, Throughput};

/// Readings of one call.
const COUNT: usize = 2_000;

fn codec(criterion: &mut Criterion) {
    let readings = workload::readings(COUNT);
    let bytes = encode(&readings);
    // Of readings, so that it can be compared between the forms.
    let amount = Throughput::Elements(COUNT as u64);
    let mut group = criterion.benchmark_group("decode");
    group.throughput(amount.clone());
    group.bench_function(COUNT.to_string(), |bencher| bencher.iter(|| decode(black_box(&bytes))));
    group.finish();
    let mut group = criterion.benchmark_group("encode");
    group.throughput(amount);
    group.bench_function(COUNT.to_string(), |bencher| {
        bencher.iter(|| encode(black_box(&readings)))
    });
    group.finish();
}

criterion_group!(benches, codec);
criterion_main!(benches);
