//! Runs one hot path N times and prints a checksum, for tools that watch a whole process. What does not depend on N is
//! the same for every N, so that a cost per operation is the slope between two of them.

use std::env;
use std::process::ExitCode;

use rust_hotpath::workload::{read, stream, Traffic, LARGE};

const USAGE: &str = "usage: hotloop --ops N [--mode dispatch|decode]";

fn main() -> ExitCode {
    let (ops, mode) = match arguments(env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("hotloop: {message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let checksum = match mode {
        Mode::Dispatch => dispatches(ops),
        Mode::Decode => decodes(ops),
    };
    println!("ops={ops} checksum={checksum:016x}");
    ExitCode::SUCCESS
}

#[derive(Clone, Copy)]
enum Mode {
    Dispatch,
    Decode,
}

fn arguments(mut words: impl Iterator<Item = String>) -> Result<(u64, Mode), String> {
    let (mut ops, mut mode) = (None, Mode::Dispatch);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word}: a value is missing"))?;
        match (word.as_str(), value.as_str()) {
            ("--ops", count) => ops = Some(count.parse().map_err(|_| format!("--ops: not a count: {count}"))?),
            ("--mode", "dispatch") => mode = Mode::Dispatch,
            ("--mode", "decode") => mode = Mode::Decode,
            ("--mode", other) => return Err(format!("--mode: no such mode: {other}")),
            (other, _) => return Err(format!("no such option: {other}")),
        }
    }
    Ok((ops.ok_or("--ops is missing")?, mode))
}

/// One operation is a task submitted and a task dispatched.
fn dispatches(ops: u64) -> u64 {
    let mut traffic = Traffic::new();
    (0..ops).fold(0, |checksum, _| fold(checksum, traffic.step()))
}

/// One operation is a large stream decoded.
fn decodes(ops: u64) -> u64 {
    let stream = stream(LARGE);
    (0..ops).fold(0, |checksum, _| fold(checksum, read(&stream) as u64))
}

fn fold(checksum: u64, value: u64) -> u64 {
    (checksum.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
