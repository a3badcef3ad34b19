//! What is asked of an index: the same on every machine and in every run.

use codec::workload::SENSORS;

use crate::Index;

/// Seconds of an answer.
const WINDOW: u32 = 600;

/// Asks every sensor for its mean in a window of its own, that many times; returns the sum of the answers.
pub fn ask(index: &Index, rounds: u32) -> f64 {
    (0..rounds)
        .flat_map(|round| (0..SENSORS).map(move |sensor| (sensor, (u32::from(sensor) * 31 + round * 97) % 5_400)))
        .filter_map(|(sensor, start)| index.mean(sensor, start..start + WINDOW))
        .sum()
}
