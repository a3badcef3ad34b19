use criterion::{criterion_group, criterion_main, Criterion};
use std::hint::black_box;

fn odd(c: &mut Criterion) {
    if std::env::var_os("HOT_PANIC").is_some() {
        c.bench_function("panics", |b| b.iter(|| panic!("the input is missing")));
    }
    c.bench_function("a (b+c) [d]/e \"f\" 'g' ü* $h\\i", |b| b.iter(|| hot_loop::mix(black_box(20))));
    c.bench_function("new/x", |b| b.iter(|| hot_loop::mix(black_box(20))));
    c.bench_function("shared", |b| b.iter(|| hot_loop::mix(black_box(20))));
    let long = "long ".repeat(30);
    c.bench_function(long.trim(), |b| b.iter(|| hot_loop::mix(black_box(20))));
    let mut group = c.benchmark_group("own");
    group.sample_size(20);
    group.bench_function("size", |b| b.iter(|| hot_loop::mix(black_box(20))));
    group.finish();
}

criterion_group!(benches, odd);
criterion_main!(benches);
