use criterion::{black_box, criterion_group, criterion_main, BenchmarkId, Criterion, SamplingMode, Throughput};
fn bytes(c: &mut Criterion) {
    let mut group = c.benchmark_group("decode/bytes");
    for size in [1024usize, 65536] {
        let data = vec![7u8; size];
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_with_input(BenchmarkId::new("hash", size), &data, |b, d| b.iter(|| demo::hash(black_box(d))));
    }
    group.throughput(Throughput::BytesDecimal(1024));
    group.bench_function("sum", |b| b.iter(|| demo::sum(black_box(&[3u8; 1024]))));
    group.finish();
}
fn sort(c: &mut Criterion) {
    let mut group = c.benchmark_group("sort");
    group.sampling_mode(SamplingMode::Flat);
    group.throughput(Throughput::Elements(500));
    group.bench_function("500", |b| b.iter(|| demo::sorted(black_box(500))));
    group.finish();
    c.bench_function("median of 50", |b| b.iter(|| demo::sorted(black_box(50))));
}
criterion_group!(benches, bytes, sort);
criterion_main!(benches);
