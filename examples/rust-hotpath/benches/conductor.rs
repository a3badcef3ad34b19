//! The hot paths, in criterion: `cargo bench --bench conductor`.

use std::hint::black_box;

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use rust_hotpath::workload::{context, read, stream, Traffic, LARGE, SMALL};

fn conductor(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("conductor");
    group.bench_function("context", |bencher| {
        bencher.iter(|| context(black_box(0x7f3a), black_box(1_000)))
    });
    group.throughput(Throughput::Elements(1));
    let mut traffic = Traffic::new();
    group.bench_function("overhead", |bencher| bencher.iter(|| traffic.step()));
    group.finish();
}

fn decoder(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    for (name, shape) in [("small", SMALL), ("large", LARGE)] {
        let stream = stream(shape);
        group.throughput(Throughput::Bytes(stream.len() as u64));
        group.bench_function(name, |bencher| bencher.iter(|| read(black_box(&stream))));
    }
    group.finish();
}

criterion_group!(benches, conductor, decoder);
criterion_main!(benches);
