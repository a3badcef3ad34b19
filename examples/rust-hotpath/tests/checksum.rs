//! Adler-32 against published values and its definition.

use rust_hotpath::checksum::adler32;

/// The definition in RFC 1950: two sums, each reduced at every byte.
fn by_definition(bytes: &[u8]) -> u32 {
    let (low, high) = bytes.iter().fold((1_u32, 0_u32), |(low, high), &byte| {
        let low = (low + u32::from(byte)) % 65_521;
        (low, (high + low) % 65_521)
    });
    high << 16 | low
}

#[test]
fn published_values() {
    assert_eq!(adler32(b""), 0x0000_0001);
    assert_eq!(adler32(b"a"), 0x0062_0062);
    assert_eq!(adler32(b"abc"), 0x024d_0127);
    assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
    assert_eq!(
        adler32("Grüße aus Köln".as_bytes()),
        by_definition("Grüße aus Köln".as_bytes())
    );
}

#[test]
fn every_length_up_to_300_and_every_offset() {
    let bytes: Vec<u8> = (0..308_u32).map(|index| (index * 167 + 13) as u8).collect();
    for offset in 0..8 {
        for length in 0..=300 {
            let part = &bytes[offset..offset + length];
            assert_eq!(adler32(part), by_definition(part), "{length} bytes from {offset}");
        }
    }
}

#[test]
fn every_value_of_a_byte_at_every_place_of_a_word() {
    for value in 0..=u8::MAX {
        for place in 0..16 {
            let mut bytes = [0; 16];
            bytes[place] = value;
            assert_eq!(adler32(&bytes), by_definition(&bytes), "{value:#x} at {place}");
        }
    }
}

#[test]
fn long_inputs_of_the_lowest_and_the_highest_bytes() {
    for length in [5_551, 5_552, 5_553, 11_104, 11_105, 65_536, 1 << 20] {
        for value in [0x00, 0x7f, 0x80, 0xff] {
            let bytes = vec![value; length];
            assert_eq!(adler32(&bytes), by_definition(&bytes), "{length} times {value:#x}");
        }
    }
}
