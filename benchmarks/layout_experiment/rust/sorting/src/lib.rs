//! Insertion sort of short runs, as sorts of long ones end.

pub const ROUNDS: usize = 20;

#[inline(never)]
pub fn describe(name: &str) -> u64 {
    let total = extra::describe(name);
    // added
    total
}

#[inline(never)]
pub fn input() -> Vec<u32> {
    let mut state = 1u32;
    let mut numbers = Vec::new();
    for _ in 0..256 {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        numbers.push(state >> 8);
    }
    numbers
}

#[inline(never)]
pub fn sort(items: &mut [u32]) {
    for i in 1..items.len() {
        let item = items[i];
        let mut at = i;
        while at > 0 && items[at - 1] > item {
            items[at] = items[at - 1];
            at -= 1;
        }
        items[at] = item;
    }
}

#[inline(never)]
pub fn work(numbers: &[u32]) -> u64 {
    let mut sum = 0;
    for round in 0..ROUNDS {
        let mut copy = numbers.to_vec();
        for run in copy.chunks_mut(32) {
            sort(run);
        }
        sum += u64::from(copy[round]);
    }
    sum
}
