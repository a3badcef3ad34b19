//! Fletcher's checksum.

/// As many bytes as can be added up before the sums have to be reduced.
const BLOCK: usize = 5_552;

/// Returns Fletcher-32 over single bytes: two sums modulo 65,535.
pub fn fletcher(bytes: &[u8]) -> u32 {
    let (mut low, mut high) = (0_u32, 0_u32);
    for block in bytes.chunks(BLOCK) {
        for &byte in block {
            low += u32::from(byte);
            high += low;
        }
        low %= 65_535;
        high %= 65_535;
    }
    high << 16 | low
}

#[cfg(test)]
mod tests {
    use super::fletcher;

    #[test]
    fn it_is_what_its_definition_says() {
        let slowly = |bytes: &[u8]| {
            let (mut low, mut high) = (0_u64, 0_u64);
            for &byte in bytes {
                low = (low + u64::from(byte)) % 65_535;
                high = (high + low) % 65_535;
            }
            (high << 16 | low) as u32
        };
        for length in [0, 1, 2, 5_551, 5_552, 5_553, 100_000] {
            let bytes = vec![255; length];
            assert_eq!(fletcher(&bytes), slowly(&bytes), "{length} bytes");
        }
    }

    #[test]
    fn two_bytes_that_change_places_are_noticed() {
        assert_ne!(fletcher(&[1, 2, 3]), fletcher(&[2, 1, 3]));
    }
}
