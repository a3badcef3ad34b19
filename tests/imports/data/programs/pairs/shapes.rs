/// Sum the squares of the even numbers.
pub fn even(numbers: &[u64]) -> u64 {
    numbers.iter().filter(|n| *n % 2 == 0).map(|n| n * n).fold(0, u64::wrapping_add)
}
/// Mix each byte into a hash.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(7, |seed: u64, byte| (seed.rotate_left(5) ^ u64::from(*byte)).wrapping_mul(0x9E37_79B9))
}
