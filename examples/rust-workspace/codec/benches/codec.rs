//! `cargo bench -p codec`

use std::hint::black_box;

use codec::{decode, encode, workload};
use criterion::{criterion_group, criterion_main, Criterion, Throughput};

/// Readings of one call.
const COUNT: usize = 2_000;

fn codec(criterion: &mut Criterion) {
    let readings = workload::readings(COUNT);
    let bytes = encode(&readings);
    let mut group = criterion.benchmark_group("decode");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function(COUNT.to_string(), |bencher| bencher.iter(|| decode(black_box(&bytes))));
    group.finish();
    let mut group = criterion.benchmark_group("encode");
    // Not of bytes: how many there are is up to the form.
    group.throughput(Throughput::Elements(COUNT as u64));
    group.bench_function(COUNT.to_string(), |bencher| {
        bencher.iter(|| encode(black_box(&readings)))
    });
    group.finish();
}

criterion_group!(benches, codec);
criterion_main!(benches);
