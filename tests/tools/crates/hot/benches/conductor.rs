use criterion::{criterion_group, criterion_main, BenchmarkId, Criterion, Throughput};
use std::hint::black_box;

fn conductor(c: &mut Criterion) {
    // Where cargo starts it, and what it finds there, is part of what is tested.
    assert!(std::path::Path::new("src/lib.rs").exists());
    assert_eq!(std::env::var("CARGO_PKG_NAME").unwrap(), "hot-loop");
    assert_eq!(std::env::var("CARGO_MANIFEST_DIR").unwrap(), env!("CARGO_MANIFEST_DIR"));
    let mut group = c.benchmark_group("conductor");
    group.throughput(Throughput::Bytes(4096));
    group.bench_function("overhead", |b| b.iter(|| hot_loop::mix(black_box(200))));
    group.throughput(Throughput::BytesDecimal(5000));
    group.bench_function("decimal", |b| b.iter(|| hot_loop::mix(black_box(100))));
    group.throughput(Throughput::Elements(64));
    for size in [1u64, 8] {
        group.bench_with_input(BenchmarkId::new("context", size), &size, |b, n| b.iter(|| hot_loop::mix(black_box(*n * 50))));
    }
    group.finish();
}

criterion_group!(benches, conductor);
criterion_main!(benches);
