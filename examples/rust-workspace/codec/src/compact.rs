//! Differences from the reading before, seven bits a byte, the lowest first: sensor, time, value in 64ths.

use crate::{Error, Reading};

/// Bytes of a reading, more or less.
pub const ROUGHLY: usize = 6;
const STEPS: f64 = 64.0;
/// Half a step, and the rounding of a value near 1000.
pub const PRECISION: f32 = 0.5 / STEPS as f32 + 0.0001;

pub fn write(bytes: &mut Vec<u8>, readings: &[Reading]) {
    let mut last = [0; 3];
    for reading in readings {
        let steps = (f64::from(reading.value) * STEPS).round() as i64;
        let next = [i64::from(reading.sensor), i64::from(reading.time), steps];
        for (value, before) in next.iter().zip(last) {
            put(bytes, value.wrapping_sub(before));
        }
        last = next;
    }
}

#[inline(never)] // a name of its own in profiles
pub fn read(mut body: &[u8], count: usize) -> Result<Vec<Reading>, Error> {
    // Each takes three bytes at least, so a count that is not true asks for no memory.
    if count > body.len() / 3 {
        return Err(Error::Length);
    }
    let mut readings = Vec::with_capacity(count);
    let mut last = [0_i64; 3];
    for _ in 0..count {
        for value in &mut last {
            *value = value.wrapping_add(take(&mut body).ok_or(Error::Length)?);
        }
        readings.push(Reading {
            sensor: last[0] as u16,
            time: last[1] as u32,
            value: (last[2] as f64 / STEPS) as f32,
        });
    }
    if body.is_empty() {
        Ok(readings)
    } else {
        Err(Error::Length)
    }
}

/// The sign goes to the lowest bit, so that small negative numbers are short too.
fn put(bytes: &mut Vec<u8>, value: i64) {
    let mut rest = (value << 1 ^ value >> 63) as u64;
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

#[inline]
fn take(bytes: &mut &[u8]) -> Option<i64> {
    let mut rest = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = bytes.split_first()?;
        *bytes = after;
        rest |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some((rest >> 1) as i64 ^ -((rest & 1) as i64));
        }
    }
    None
}
