use codec::{decode, encode, workload, Error, Reading, PRECISION};

fn extremes() -> Vec<Reading> {
    let corner = |sensor, time, value| Reading { sensor, time, value };
    vec![
        corner(u16::MAX, u32::MAX, -1000.0),
        corner(0, 0, 1000.0),
        corner(1, u32::MAX, 0.0),
        corner(u16::MAX, 1, -0.015_625),
    ]
}

#[test]
fn what_was_encoded_comes_back() {
    for readings in [vec![], extremes(), workload::readings(5_000)] {
        let back = decode(&encode(&readings)).unwrap();
        assert_eq!(back.len(), readings.len());
        for (one, other) in back.iter().zip(&readings) {
            assert_eq!((one.sensor, one.time), (other.sensor, other.time));
            assert!(
                (one.value - other.value).abs() <= PRECISION,
                "{one:?} instead of {other:?}"
            );
        }
    }
}

#[test]
fn compact_is_smaller_and_else_nothing_is_lost() {
    let readings = workload::readings(1_000);
    let length = encode(&readings).len();
    if cfg!(feature = "compact") {
        assert!(length < 8 * readings.len(), "{length} bytes");
    } else {
        assert_eq!(length, 12 * readings.len() + 8);
        assert_eq!(PRECISION, 0.0);
    }
}

#[test]
fn a_byte_that_changed_is_noticed() {
    let bytes = encode(&workload::readings(20));
    for place in 0..bytes.len() {
        let mut wrong = bytes.clone();
        wrong[place] ^= 0x10;
        assert_eq!(decode(&wrong), Err(Error::Checksum), "byte {place}");
    }
}

#[test]
fn what_was_cut_short_is_no_reading() {
    let bytes = encode(&workload::readings(20));
    for length in 0..bytes.len() {
        assert!(decode(&bytes[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn a_count_that_is_not_true_is_noticed() {
    // Made anew for each count: four bytes of it, no readings, and a checksum that matches.
    for count in [1_u32, 1 << 30, u32::MAX] {
        let mut bytes = count.to_le_bytes().to_vec();
        let (mut low, mut high) = (0_u32, 0_u32);
        for &byte in &bytes {
            low += u32::from(byte);
            high += low;
        }
        bytes.extend_from_slice(&(high << 16 | low).to_le_bytes());
        assert_eq!(decode(&bytes), Err(Error::Length), "{count} readings");
    }
}
