use criterion::{criterion_group, criterion_main, Criterion};
use std::hint::black_box;

fn conductor(c: &mut Criterion) {
    let version = ["VERSION", "VERSION_MINOR", "VERSION_PRE"].map(|key| std::env::var(format!("CARGO_PKG_{key}")).unwrap());
    assert_eq!(version, ["0.2.0-pre.1", "2", "pre.1"]);
    c.bench_function("conductor/overhead", |b| b.iter(|| hot_loop::mix(black_box(200))));
    c.bench_function("second", |b| b.iter(|| hot_loop::mix(black_box(400))));
}

criterion_group!(benches, conductor);
criterion_main!(benches);
