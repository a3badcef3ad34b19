//! One part of the work for tools that watch a whole process. See USAGE.

use std::hint::black_box;
use std::process::ExitCode;
use std::{env, fs};

use codec::{decode, encode, workload};
use index::Index;

const USAGE: &str = "usage: probe COMMAND ARGUMENT [TIMES]
  report FILE [TIMES]     print the report of a file of readings, made that many times
  accuracy FILE           print how far values are from what comes back after storing
  decode READINGS [TIMES] decode so many readings
  index READINGS [TIMES]  put so many readings in order
  generate READINGS       print the text of so many readings";
/// Seconds of a line of the report.
const WINDOW: u32 = 1_200;

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    match run(&words.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(said) => {
            print!("{said}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("probe: {message}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run(words: &[&str]) -> Result<String, String> {
    match words {
        ["report", path] => report(path, 1),
        ["report", path, times] => report(path, number(times)?),
        ["accuracy", path] => accuracy(path),
        ["decode", count] => decoded(number(count)?, 1),
        ["decode", count, times] => decoded(number(count)?, number(times)?),
        ["index", count] => indexed(number(count)?, 1),
        ["index", count, times] => indexed(number(count)?, number(times)?),
        ["generate", count] => Ok(pipeline::text(&workload::readings(number(count)?))),
        _ => Err("not a command with its arguments".to_owned()),
    }
}

fn number(word: &str) -> Result<usize, String> {
    word.parse().map_err(|_| format!("not a number: {word}"))
}

fn content(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
}

fn report(path: &str, times: usize) -> Result<String, String> {
    let text = content(path)?;
    let mut report = String::new();
    for _ in 0..times {
        report = pipeline::report(black_box(&text), WINDOW).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(report)
}

fn accuracy(path: &str) -> Result<String, String> {
    let readings = pipeline::parse(&content(path)?).map_err(|error| format!("{path}: {error}"))?;
    let off: Vec<f32> = pipeline::stored(&readings)
        .iter()
        .zip(&readings)
        .map(|(back, reading)| (back.value - reading.value).abs())
        .collect();
    let largest = off.iter().fold(0.0_f32, |largest, &one| largest.max(one));
    let mean = off.iter().map(|&one| f64::from(one)).sum::<f64>() / off.len().max(1) as f64;
    Ok(format!("max_abs_diff={largest:.6} mean_abs_diff={mean:.6}\n"))
}

fn decoded(count: usize, times: usize) -> Result<String, String> {
    let bytes = encode(&workload::readings(count));
    let found: usize = (0..times)
        .map(|_| decode(black_box(&bytes)).map_or(0, |readings| readings.len()))
        .sum();
    Ok(format!("{found} readings\n"))
}

fn indexed(count: usize, times: usize) -> Result<String, String> {
    let readings = workload::readings(count);
    let found: usize = (0..times).map(|_| Index::build(black_box(&readings)).len()).sum();
    Ok(format!("{found} readings\n"))
}
