//! `cargo bench -p codec`

use std::hint::black_box;

use codec::{decode, encode, workload};
use criterion::{criterion_group, criterion_main, Criterion, Throughput};

fn codec(criterion: &mut Criterion) {
    let readings = workload::readings(2_000);
    let bytes = encode(&readings);
    let mut group = criterion.benchmark_group("codec");
    // Of readings, so that it can be compared between the forms.
    group.throughput(Throughput::Elements(readings.len() as u64));
    group.bench_function("decode", |bencher| bencher.iter(|| decode(black_box(&bytes))));
    group.bench_function("encode", |bencher| bencher.iter(|| encode(black_box(&readings))));
    group.finish();
}

criterion_group!(benches, codec);
criterion_main!(benches);
