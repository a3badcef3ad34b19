//! Numbers packed into seven bits a byte, and back.

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
    let mut bytes = Vec::new();
    for _ in 0..4096 {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        pack(u64::from(state >> (state % 29)), &mut bytes);
    }
    bytes
}

#[inline(never)]
pub fn pack(mut value: u64, bytes: &mut Vec<u8>) {
    while value >= 128 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[inline(never)]
pub fn unpack(bytes: &[u8]) -> u64 {
    let (mut sum, mut value, mut shift) = (0u64, 0u64, 0);
    for &byte in bytes {
        value |= u64::from(byte & 127) << (shift & 63);
        shift += 7;
        if byte < 128 {
            sum = sum.wrapping_add(value);
            (value, shift) = (0, 0);
        }
    }
    sum
}

#[inline(never)]
pub fn work(bytes: &[u8]) -> u64 {
    (0..ROUNDS).fold(0, |sum, _| unpack(black_box(bytes)).wrapping_add(sum))
}
