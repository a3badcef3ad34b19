//! Readings as they are, sorted by comparing them.

use codec::Reading;

pub struct Entries(Vec<Reading>);

impl Entries {
    #[inline(never)] // a name of its own in profiles
    pub fn sorted(readings: &[Reading]) -> Self {
        let mut sorted = readings.to_vec();
        sorted.sort_by_key(|reading| (reading.sensor, reading.time));
        Self(sorted)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the place of the first reading of a sensor from a time on, or of what comes after.
    pub fn first_from(&self, sensor: u16, time: u32) -> usize {
        self.0
            .partition_point(|reading| (reading.sensor, reading.time) < (sensor, time))
    }

    pub fn value(&self, place: usize) -> f32 {
        self.0[place].value
    }
}
