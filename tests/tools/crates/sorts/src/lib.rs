//! Work whose size is its argument.

/// A loop that the compiler keeps.
pub fn burn(units: u64) -> u64 {
    (0..units).fold(1u64, |state, _| {
        std::hint::black_box(state.wrapping_mul(6364136223846793005).wrapping_add(1))
    })
}
