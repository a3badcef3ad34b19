//! Readings as some hundred sensors would send them: the same on every machine and in every run.

use crate::Reading;

/// Sensors that take turns, though not in order.
pub const SENSORS: u16 = 200;

/// Returns that many readings, in the order of their times.
pub fn readings(count: usize) -> Vec<Reading> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut levels: Vec<f32> = (0..SENSORS).map(|sensor| f32::from(sensor) * 0.25 - 10.0).collect();
    (0..count)
        .map(|number| {
            let sensor = random.below(u32::from(SENSORS)) as u16;
            let level = &mut levels[usize::from(sensor)];
            *level = (*level + random.below(2_001) as f32 / 1_000.0 - 1.0).clamp(-100.0, 100.0);
            Reading {
                sensor,
                time: number as u32 * 3 + random.below(3),
                value: *level,
            }
        })
        .collect()
}

/// An xorshift generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (((self.0 >> 32) * u64::from(limit)) >> 32) as u32
    }
}
