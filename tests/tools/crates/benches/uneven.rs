//! Every second call does UNEVEN times the work; OWN_SIZE has the group set its own number of samples.
use criterion::{criterion_group, criterion_main, Criterion};
use std::hint::black_box;

fn burn(units: u64) -> u64 {
    (0..units).fold(1u64, |state, _| black_box(state.wrapping_mul(6364136223846793005).wrapping_add(1)))
}

fn uneven(criterion: &mut Criterion) {
    let more = std::env::var("UNEVEN").map_or(1, |text| text.parse().unwrap());
    let units = std::env::var("UNITS").map_or(1_000_000, |text| text.parse().unwrap());
    let mut calls = 0u64;
    let mut group = criterion.benchmark_group("uneven");
    if std::env::var("OWN_SIZE").is_ok() {
        group.sample_size(100);
    }
    group.bench_function("calls", |bencher| {
        bencher.iter(|| {
            calls += 1;
            burn(if calls % 2 == 0 { units * more } else { units })
        })
    });
    group.finish();
}

criterion_group!(benches, uneven);
criterion_main!(benches);
