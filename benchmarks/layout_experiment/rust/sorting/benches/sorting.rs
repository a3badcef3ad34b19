use criterion::{criterion_group, criterion_main, Criterion};
use std::hint::black_box;

fn sorting(c: &mut Criterion) {
    println!("described {}", black_box(sorting::describe("sorting")));
    let input = sorting::input();
    c.bench_function("sorting", |b| b.iter(|| sorting::work(black_box(&input))));
}

criterion_group!(benches, sorting);
criterion_main!(benches);
