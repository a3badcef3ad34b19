//! Keys of six bytes, sorted by their digits, and the values beside them.

use codec::Reading;

pub struct Entries {
    keys: Vec<u64>,
    values: Vec<f32>,
}

/// Digits of a key, of eight bits each.
const DIGITS: u32 = 6;

impl Entries {
    #[inline(never)] // a name of its own in profiles
    pub fn sorted(readings: &[Reading]) -> Self {
        let mut pairs: Vec<(u64, f32)> = readings
            .iter()
            .map(|reading| (key(reading.sensor, reading.time), reading.value))
            .collect();
        let mut spare = pairs.clone();
        for digit in 0..DIGITS {
            if sort_by_digit(&pairs, &mut spare, digit * 8) {
                std::mem::swap(&mut pairs, &mut spare);
            }
        }
        let (keys, values) = pairs.into_iter().unzip();
        Self { keys, values }
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the place of the first reading of a sensor from a time on, or of what comes after.
    pub fn first_from(&self, sensor: u16, time: u32) -> usize {
        let wanted = key(sensor, time);
        self.keys.partition_point(|&key| key < wanted)
    }

    pub fn value(&self, place: usize) -> f32 {
        self.values[place]
    }
}

fn key(sensor: u16, time: u32) -> u64 {
    u64::from(sensor) << 32 | u64::from(time)
}

/// Copies pairs to `sorted` in the order of one digit; does nothing and returns false where all have the same.
fn sort_by_digit(pairs: &[(u64, f32)], sorted: &mut [(u64, f32)], shift: u32) -> bool {
    let digit = |key: u64| (key >> shift) as usize & 0xff;
    let mut counts = [0_usize; 256];
    for &(key, _) in pairs {
        counts[digit(key)] += 1;
    }
    if counts.contains(&pairs.len()) {
        return false;
    }
    let mut place = 0;
    for count in &mut counts {
        place += std::mem::replace(count, place);
    }
    for &pair in pairs {
        let next = &mut counts[digit(pair.0)];
        sorted[*next] = pair;
        *next += 1;
    }
    true
}
