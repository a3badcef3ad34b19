//! `cargo bench -p index`

use std::hint::black_box;

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use index::workload::ask;
use index::Index;

/// Readings that are put in order, and looked up.
const COUNT: usize = 2_000;

fn index(criterion: &mut Criterion) {
    let readings = codec::workload::readings(COUNT);
    let mut group = criterion.benchmark_group("build");
    group.throughput(Throughput::Elements(COUNT as u64));
    group.bench_function(COUNT.to_string(), |bencher| {
        bencher.iter(|| Index::build(black_box(&readings)))
    });
    group.finish();
    let index = Index::build(&readings);
    let mut group = criterion.benchmark_group("lookup");
    group.throughput(Throughput::Elements(u64::from(codec::workload::SENSORS)));
    group.bench_function(COUNT.to_string(), |bencher| bencher.iter(|| ask(black_box(&index), 1)));
    group.finish();
}

criterion_group!(benches, index);
criterion_main!(benches);
