use criterion::{criterion_group, criterion_main, Criterion};
use std::hint::black_box;

fn words(c: &mut Criterion) {
    println!("described {}", black_box(words::describe("words")));
    let input = words::input();
    c.bench_function("words", |b| b.iter(|| words::work(black_box(&input))));
}

criterion_group!(benches, words);
criterion_main!(benches);
