use codec::{workload, Reading};
use index::Index;

fn values(readings: &[Reading], sensor: u16, from: u32, to: u32) -> Vec<f32> {
    let mut found: Vec<_> = readings
        .iter()
        .filter(|reading| reading.sensor == sensor && (from..to).contains(&reading.time))
        .collect();
    found.sort_by_key(|reading| reading.time);
    found.iter().map(|reading| reading.value).collect()
}

#[test]
fn it_finds_what_a_search_from_end_to_end_finds() {
    let mut readings = workload::readings(3_000);
    readings.reverse();
    readings.extend_from_slice(&[
        Reading {
            sensor: u16::MAX,
            time: u32::MAX,
            value: 1.0,
        },
        Reading {
            sensor: 0,
            time: u32::MAX,
            value: 2.0,
        },
        Reading {
            sensor: u16::MAX,
            time: 0,
            value: 3.0,
        },
    ]);
    let index = Index::build(&readings);
    assert_eq!(index.len(), readings.len());
    for sensor in [0, 1, 57, 199, 200, u16::MAX] {
        for (from, to) in [
            (0, u32::MAX),
            (100, 2_000),
            (2_000, 100),
            (9_000, 9_001),
            (u32::MAX, u32::MAX),
        ] {
            let found: Vec<f32> = index.values(sensor, from..to).collect();
            assert_eq!(
                found,
                values(&readings, sensor, from, to),
                "sensor {sensor}, {from}..{to}"
            );
        }
    }
}

#[test]
fn readings_of_one_time_stay_in_order() {
    let readings: Vec<Reading> = (0..100)
        .map(|number| Reading {
            sensor: 7,
            time: 42 + number % 2,
            value: number as f32,
        })
        .collect();
    let found: Vec<f32> = Index::build(&readings).values(7, 0..u32::MAX).collect();
    assert_eq!(found, values(&readings, 7, 0, u32::MAX));
}

#[test]
fn there_is_no_mean_of_nothing() {
    assert!(Index::build(&[]).is_empty());
    assert_eq!(Index::build(&[]).mean(0, 0..10), None);
    let index = Index::build(&[
        Reading {
            sensor: 1,
            time: 5,
            value: 1.0,
        },
        Reading {
            sensor: 1,
            time: 6,
            value: 2.0,
        },
    ]);
    assert_eq!(index.mean(1, 0..10), Some(1.5));
    assert_eq!(index.mean(1, 7..10), None);
}
