//! A group that sets everything itself, with each way of timing.
use criterion::{criterion_group, criterion_main, BatchSize, Criterion};
use std::hint::black_box;
use std::time::{Duration, Instant};

fn burn(units: u64) -> u64 {
    (0..units).fold(1u64, |state, _| black_box(state.wrapping_mul(6364136223846793005).wrapping_add(1)))
}

fn own(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("own");
    group.sample_size(50).measurement_time(Duration::from_secs(20)).warm_up_time(Duration::from_secs(10));
    group.bench_function("plain", |bencher| bencher.iter(|| burn(2000)));
    group.bench_function("small", |bencher| bencher.iter_batched(|| 2000, burn, BatchSize::SmallInput));
    group.bench_function("each", |bencher| bencher.iter_batched(|| 2000, burn, BatchSize::PerIteration));
    group.bench_function("custom", |bencher| {
        bencher.iter_custom(|iterations| {
            let start = Instant::now();
            for _ in 0..iterations {
                burn(2000);
            }
            start.elapsed()
        })
    });
    group.finish();
}

criterion_group!(benches, own);
criterion_main!(benches);
