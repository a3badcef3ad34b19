//! Readings in the order of sensor and time, to be looked up.
//!
//! Entries are sorted by comparing them. With the feature `compact` sensor and time are one number of six bytes, which
//! is sorted by its digits, and stands apart from the values.

#[cfg_attr(feature = "compact", path = "packed.rs")]
#[cfg_attr(not(feature = "compact"), path = "plain.rs")]
mod entries;
pub mod workload;

use std::ops::Range;

use codec::Reading;

/// Readings that can be looked up by sensor and time.
pub struct Index {
    entries: entries::Entries,
}

impl Index {
    /// Puts readings in order. Those of one sensor and one time stay in the order given.
    pub fn build(readings: &[Reading]) -> Self {
        Self {
            entries: entries::Entries::sorted(readings),
        }
    }

    /// Returns the number of readings.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the values of a sensor at the times of a range, in order.
    pub fn values(&self, sensor: u16, times: Range<u32>) -> impl Iterator<Item = f32> + '_ {
        let first = self.entries.first_from(sensor, times.start);
        // A range that ends before it starts is empty.
        let last = self.entries.first_from(sensor, times.end).max(first);
        (first..last).map(|place| self.entries.value(place))
    }

    /// Returns the mean of the values of a sensor at the times of a range, nothing where there are none.
    pub fn mean(&self, sensor: u16, times: Range<u32>) -> Option<f64> {
        let (count, sum) = self
            .values(sensor, times)
            .fold((0_u32, 0.0), |(count, sum), value| (count + 1, sum + f64::from(value)));
        (count > 0).then(|| sum / f64::from(count))
    }
}
