//! From a file of readings to a report: parsed, stored as bytes, read again, put in order, and asked.

use std::fmt::{self, Write};

use codec::workload::SENSORS;
use codec::Reading;
use index::Index;

/// A line that is no reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Its number, from 1 on.
    pub number: usize,
}

impl fmt::Display for BadLine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {} is no reading: sensor,time,value", self.number)
    }
}

impl std::error::Error for BadLine {}

/// Reads `sensor,time,value` from each line after the first.
///
/// # Errors
/// At the first line that is something else.
pub fn parse(text: &str) -> Result<Vec<Reading>, BadLine> {
    text.lines()
        .enumerate()
        .skip(1)
        .map(|(place, line)| reading(line).ok_or(BadLine { number: place + 1 }))
        .collect()
}

fn reading(line: &str) -> Option<Reading> {
    let mut fields = line.split(',');
    let reading = Reading {
        sensor: fields.next()?.parse().ok()?,
        time: fields.next()?.parse().ok()?,
        value: fields.next()?.parse().ok()?,
    };
    fields.next().is_none().then_some(reading)
}

/// Returns the text that `parse` reads.
pub fn text(readings: &[Reading]) -> String {
    readings
        .iter()
        .fold("sensor,time,value\n".to_owned(), |mut text, reading| {
            writeln!(text, "{},{},{}", reading.sensor, reading.time, reading.value).expect("a String grows");
            text
        })
}

/// Stores readings and reads them again, as every consumer gets them.
///
/// # Panics
/// Never: what is decoded is what was encoded.
pub fn stored(readings: &[Reading]) -> Vec<Reading> {
    codec::decode(&codec::encode(readings)).expect("what was encoded can be decoded")
}

/// Reports every sensor's mean over each `window` of seconds: a line for each that measured something.
///
/// # Errors
/// At the first line of the text that is no reading.
pub fn report(text: &str, window: u32) -> Result<String, BadLine> {
    let readings = stored(&parse(text)?);
    let end = readings.iter().map(|reading| reading.time).max().unwrap_or_default();
    let index = Index::build(&readings);
    let mut report = String::new();
    for sensor in 0..SENSORS {
        for start in (0..=end).step_by(window as usize) {
            if let Some(mean) = index.mean(sensor, start..start.saturating_add(window)) {
                writeln!(report, "{sensor} {start} {mean:.2}").expect("a String grows");
            }
        }
    }
    Ok(report)
}
