//! What is encoded comes back; what is damaged is refused.

use rust_hotpath::codec::{encode, DecodeError, Decoder, LONGEST};

fn one(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    encode(&mut stream, kind, payload);
    stream
}

fn decoded(stream: &[u8]) -> Result<Vec<(u8, Vec<u8>)>, DecodeError> {
    Decoder::new(stream)
        .map(|frame| frame.map(|frame| (frame.kind(), frame.payload().to_vec())))
        .collect()
}

#[test]
fn a_frame_on_the_wire() {
    assert_eq!(one(7, b"abc"), [7, 3, b'a', b'b', b'c', 0x27, 0x01, 0x4d, 0x02]);
}

#[test]
fn frames_come_back_in_order() {
    let payloads: Vec<Vec<u8>> = [0, 1, 127, 128, 129, 16_383, 16_384, 70_000]
        .iter()
        .map(|&length| (0..length).map(|index: u32| (index * 31) as u8).collect())
        .collect();
    let mut stream = Vec::new();
    for (kind, payload) in payloads.iter().enumerate() {
        encode(&mut stream, kind as u8, payload);
    }
    let expected: Vec<(u8, Vec<u8>)> = (0..).zip(payloads).collect();
    assert_eq!(decoded(&stream), Ok(expected));
}

#[test]
fn the_longest_payload() {
    let payload = vec![0xff; LONGEST];
    assert_eq!(decoded(&one(1, &payload)), Ok(vec![(1, payload)]));
}

#[test]
fn nothing_is_no_frames() {
    assert_eq!(decoded(&[]), Ok(Vec::new()));
}

#[test]
fn a_stream_that_ends_early() {
    let stream = one(1, &[5; 200]);
    for length in 1..stream.len() {
        assert_eq!(
            decoded(&stream[..length]),
            Err(DecodeError::Truncated),
            "{length} bytes"
        );
    }
}

#[test]
fn a_changed_payload() {
    let stream = one(1, &[5; 200]);
    for place in 3..stream.len() {
        let mut changed = stream.clone();
        changed[place] ^= 0x10;
        assert_eq!(decoded(&changed), Err(DecodeError::Checksum), "byte {place}");
    }
}

#[test]
fn a_length_that_is_too_long() {
    assert_eq!(decoded(&[1, 0x80, 0x80, 0x80, 0x00]), Err(DecodeError::TooLong));
    assert_eq!(decoded(&[1, 0xff, 0xff, 0xff, 0xff, 0x7f]), Err(DecodeError::TooLong));
}

#[test]
fn after_an_error_there_are_no_more_frames() {
    let mut stream = one(1, b"first");
    stream.extend([2, 1, b'x', 0, 0, 0, 0]);
    stream.extend(one(3, b"third"));
    let mut frames = Decoder::new(&stream);
    assert_eq!(frames.next().unwrap().unwrap().payload(), b"first");
    assert_eq!(frames.next().unwrap().unwrap_err(), DecodeError::Checksum);
    assert!(frames.next().is_none());
}
