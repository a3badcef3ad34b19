//! Benchmarks of divan with arguments, types, counters and options of their own.
use divan::counter::{BytesCount, ItemsCount};
use divan::{AllocProfiler, Bencher};
use sorts::burn;

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

#[divan::bench]
fn plain() -> u64 {
    burn(1000)
}

mod sizes {
    use super::*;

    #[divan::bench(args = [1000, 4000])]
    fn each(bencher: Bencher, units: u64) {
        bencher.counter(ItemsCount::new(units)).bench(|| burn(divan::black_box(units)));
    }

    #[divan::bench(args = ["a b", "(c) │ d"])]
    fn text(name: &str) -> String {
        divan::black_box(name).to_uppercase()
    }
}

#[divan::bench(types = [Vec<u64>, String])]
fn made<T: Default>() -> T {
    T::default()
}

/// Takes more samples of more iterations than anybody wants, unless it is told otherwise.
#[divan::bench(sample_count = 5000, sample_size = 300, min_time = 3)]
fn own(bencher: Bencher) {
    bencher.counter(BytesCount::new(4096u64)).with_inputs(|| vec![1u8; 4096]).bench_values(|bytes| bytes.to_vec());
}

#[divan::bench(ignore)]
fn ignored() {
    panic!("it is ignored");
}
