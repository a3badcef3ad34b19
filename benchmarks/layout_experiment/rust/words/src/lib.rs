//! Words and numbers of a text counted, byte by byte.

use std::hint::black_box;

pub const ROUNDS: usize = 20;

#[inline(never)]
pub fn describe(name: &str) -> u64 {
    let total = extra::describe(name);
    // added
    total
}

#[inline(never)]
pub fn input() -> Vec<u8> {
    let mut state = 1u32;
    let mut text = Vec::new();
    for _ in 0..8192 {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        text.push(b"etaoin 12 srhl,"[(state >> 16) as usize % 15]);
    }
    text
}

#[inline(never)]
pub fn count(text: &[u8]) -> u64 {
    let (mut words, mut sum, mut number, mut inside) = (0u64, 0u64, 0u64, false);
    for &byte in text {
        match byte {
            b'a'..=b'z' => {
                words += u64::from(!inside);
                inside = true;
            }
            b'0'..=b'9' => number = number.wrapping_mul(10) + u64::from(byte - b'0'),
            _ => {
                sum = sum.wrapping_add(number);
                (number, inside) = (0, false);
            }
        }
    }
    words.wrapping_add(sum)
}

#[inline(never)]
pub fn work(text: &[u8]) -> u64 {
    (0..ROUNDS).fold(0, |sum, _| count(black_box(text)).wrapping_add(sum))
}
