//! One benchmark that burns UNITS of work a call, and FACTOR times as much in every EVERY-th call.
use criterion::{criterion_group, criterion_main, Criterion};
use std::hint::black_box;

fn number(name: &str) -> f64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(1.0)
}

fn burn(units: u64) -> u64 {
    let mut state = black_box(1u64);
    for _ in 0..units {
        state = black_box(state.wrapping_mul(6364136223846793005).wrapping_add(1));
    }
    state
}

fn work(criterion: &mut Criterion) {
    let (units, every, factor) = (number("UNITS"), number("EVERY") as u64, number("FACTOR"));
    let mut calls = 0u64;
    criterion.bench_function("work", |bencher| {
        bencher.iter(|| {
            calls += 1;
            burn(if calls % every == 0 { units * factor } else { units } as u64)
        })
    });
}

criterion_group!(benches, work);
criterion_main!(benches);
