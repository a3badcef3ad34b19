//! `cargo bench -p index`

use std::hint::black_box;

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use index::workload::ask;
use index::Index;

fn index(criterion: &mut Criterion) {
    let readings = codec::workload::readings(2_000);
    let mut group = criterion.benchmark_group("index");
    group.throughput(Throughput::Elements(readings.len() as u64));
    group.bench_function("build", |bencher| bencher.iter(|| Index::build(black_box(&readings))));
    let index = Index::build(&readings);
    group.throughput(Throughput::Elements(u64::from(codec::workload::SENSORS)));
    group.bench_function("lookup", |bencher| bencher.iter(|| ask(black_box(&index), 1)));
    group.finish();
}

criterion_group!(benches, index);
criterion_main!(benches);
