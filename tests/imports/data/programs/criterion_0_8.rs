use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use std::hint::black_box;
fn bytes(c: &mut Criterion) {
    let mut group = c.benchmark_group("decode/bytes");
    let data = vec![7u8; 1024];
    group.throughput(Throughput::ElementsAndBytes { elements: 128, bytes: 1024 });
    group.bench_function("hash", |b| b.iter(|| demo::hash(black_box(&data))));
    group.throughput(Throughput::Bits(8192));
    group.bench_function("sum", |b| b.iter(|| demo::sum(black_box(&data))));
    group.finish();
    c.bench_function("median of 50", |b| b.iter(|| demo::sorted(black_box(50))));
}
criterion_group!(benches, bytes);
criterion_main!(benches);
