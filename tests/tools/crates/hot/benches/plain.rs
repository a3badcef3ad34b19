#![feature(test)]
extern crate test;

#[bench]
fn mixes(b: &mut test::Bencher) {
    b.bytes = 800;
    b.iter(|| hot_loop::mix(test::black_box(1000)));
}

#[bench]
fn shared(b: &mut test::Bencher) {
    b.iter(|| hot_loop::mix(test::black_box(2000)));
}
