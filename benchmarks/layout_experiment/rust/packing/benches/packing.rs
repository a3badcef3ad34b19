use criterion::{criterion_group, criterion_main, Criterion};
use std::hint::black_box;

fn packing(c: &mut Criterion) {
    println!("described {}", black_box(packing::describe("packing")));
    let input = packing::input();
    c.bench_function("packing", |b| b.iter(|| packing::work(black_box(&input))));
}

criterion_group!(benches, packing);
criterion_main!(benches);
