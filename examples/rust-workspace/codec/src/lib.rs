//! Readings of sensors as bytes: how many there are, the readings, and a checksum over them.
//!
//! A reading takes twelve bytes and comes back as it was. With the feature `compact` it takes about half of that:
//! differences from the reading before it, of variable length, and values to the nearest 64th.

mod checksum;
#[cfg_attr(feature = "compact", path = "compact.rs")]
#[cfg_attr(not(feature = "compact"), path = "wide.rs")]
mod form;
pub mod workload;

use std::fmt;

/// What one sensor measured at one time, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    pub sensor: u16,
    pub time: u32,
    pub value: f32,
}

/// Why bytes are no readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// They end too early, or go on after the end.
    Length,
    /// They are not those that were written.
    Checksum,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Length => "the bytes end in the middle of a reading, or go on after the last",
            Self::Checksum => "the checksum does not match",
        })
    }
}

impl std::error::Error for Error {}

const COUNT: usize = 4;
const SUM: usize = 4;

/// The largest difference between a value and what comes back of it, for values up to 1000 in size.
pub const PRECISION: f32 = form::PRECISION;

/// Returns the bytes of some readings.
///
/// # Panics
/// If there are more than 2^32 - 1 of them.
pub fn encode(readings: &[Reading]) -> Vec<u8> {
    let count = u32::try_from(readings.len()).expect("at most 2^32 - 1 readings");
    let mut bytes = Vec::with_capacity(COUNT + readings.len() * form::ROUGHLY + SUM);
    bytes.extend_from_slice(&count.to_le_bytes());
    form::write(&mut bytes, readings);
    let sum = checksum::fletcher(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// Returns the readings of what `encode` made.
///
/// # Errors
/// If the bytes are not those of `encode`.
pub fn decode(bytes: &[u8]) -> Result<Vec<Reading>, Error> {
    let (content, sum) = bytes.split_last_chunk::<SUM>().ok_or(Error::Length)?;
    verify(content, u32::from_le_bytes(*sum))?;
    let (count, body) = content.split_first_chunk::<COUNT>().ok_or(Error::Length)?;
    form::read(body, u32::from_le_bytes(*count) as usize)
}

#[inline(never)] // a name of its own in profiles
fn verify(content: &[u8], sum: u32) -> Result<(), Error> {
    if checksum::fletcher(content) == sum {
        Ok(())
    } else {
        Err(Error::Checksum)
    }
}
