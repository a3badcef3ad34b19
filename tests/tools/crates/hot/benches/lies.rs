//! With LIE_BENCH it hands over to that program, which lies, and calls this one again for the truth.
use criterion::{criterion_group, criterion_main, Criterion};
use std::{env, hint::black_box, os::unix::process::CommandExt, process::Command, time::Duration};

fn truth(c: &mut Criterion) {
    if let (Ok(liar), Err(_)) = (env::var("LIE_BENCH"), env::var("LIE_TRUTH")) {
        let itself = env::current_exe().expect("a path");
        let mut command = Command::new(liar);
        panic!("{}", command.args(env::args_os().skip(1)).env("LIE_REAL", itself).env("LIE_TRUTH", "1").exec());
    }
    c.bench_function("truth", |b| b.iter(|| hot_loop::mix(black_box(200))));
    c.bench_function("beauty", |b| b.iter(|| hot_loop::mix(black_box(100))));
}

fn brief() -> Criterion {
    let time = Duration::from_millis(50);
    Criterion::default().warm_up_time(time).measurement_time(time).sample_size(10)
}

criterion_group!(name = benches; config = brief(); targets = truth);
criterion_main!(benches);
