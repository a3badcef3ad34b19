use criterion::{black_box, criterion_group, criterion_main, Criterion};
use shapes::{even, hash};
fn hot(c: &mut Criterion) {
    let size: usize = option_env!("SIZE").map_or(4096, |text| text.parse().unwrap());
    let bytes: Vec<u8> = (0..size).map(|n| n as u8).collect();
    let numbers: Vec<u64> = (0..4096).collect();
    let mut group = c.benchmark_group("decode");
    group.bench_function("even", |b| b.iter(|| even(black_box(&numbers))));
    group.bench_function("hash", |b| b.iter(|| hash(black_box(&bytes))));
    group.finish();
}
criterion_group!(benches, hot);
criterion_main!(benches);
