//! Twelve bytes a reading: sensor, two bytes of nothing, time, value.

use crate::{Error, Reading};

/// Bytes of a reading.
pub const ROUGHLY: usize = 12;
pub const PRECISION: f32 = 0.0;

pub fn write(bytes: &mut Vec<u8>, readings: &[Reading]) {
    for reading in readings {
        bytes.extend_from_slice(&u32::from(reading.sensor).to_le_bytes());
        bytes.extend_from_slice(&reading.time.to_le_bytes());
        bytes.extend_from_slice(&reading.value.to_le_bytes());
    }
}

#[inline(never)] // a name of its own in profiles
pub fn read(body: &[u8], count: usize) -> Result<Vec<Reading>, Error> {
    if Some(body.len()) != count.checked_mul(ROUGHLY) {
        return Err(Error::Length);
    }
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    Ok(body
        .chunks_exact(ROUGHLY)
        .map(|bytes| Reading {
            sensor: word(&bytes[..4]) as u16,
            time: word(&bytes[4..8]),
            value: f32::from_bits(word(&bytes[8..])),
        })
        .collect())
}
