//! loops dot|add ROUNDS: a sum of floats, which cannot be vectorized in program order, and a loop that can.
use std::hint::black_box;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let (work, rounds): (fn(&[f32], &mut [f32]) -> f32, usize) =
        (if words[1] == "dot" { dot } else { add }, words[2].parse().unwrap());
    let (x, mut y) = (vec![1.0f32; 4096], vec![0.0f32; 4096]);
    let mut total = 0.0f32;
    for _ in 0..rounds {
        total += black_box(work(black_box(&x), &mut y));
    }
    eprintln!("{} {}", total, y[7]);
}

#[inline(never)]
pub fn dot(x: &[f32], y: &mut [f32]) -> f32 {
    x.iter().zip(y).map(|(a, b)| a * *b).sum()
}

#[inline(never)]
pub fn add(x: &[f32], y: &mut [f32]) -> f32 {
    for (a, b) in x.iter().zip(y.iter_mut()) {
        *b += a;
    }
    y[0]
}
