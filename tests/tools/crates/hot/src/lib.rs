//! Work whose amount is its argument; twice as much with the feature `slow`.

/// Mixes `rounds` numbers.
pub fn mix(rounds: u64) -> u64 {
    let rounds = if cfg!(feature = "slow") { rounds * 2 } else { rounds };
    (0..rounds).fold(1, |sum: u64, n| std::hint::black_box(sum.rotate_left(7) ^ n))
}
