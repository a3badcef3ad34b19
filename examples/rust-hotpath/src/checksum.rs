//! Adler-32, the checksum of zlib (RFC 1950, section 8.2).

const MODULUS: u32 = 65_521;

/// The longest run of bytes, all of them 0xff, whose sums fit into 32 bits before they are reduced.
const RUN: usize = 5_552;

/// The Adler-32 checksum of `bytes`.
pub fn adler32(bytes: &[u8]) -> u32 {
    let (mut low, mut high) = (1_u32, 0_u32);
    for run in bytes.chunks(RUN) {
        for &byte in run {
            low += u32::from(byte);
            high += low;
        }
        low %= MODULUS;
        high %= MODULUS;
    }
    high << 16 | low
}
