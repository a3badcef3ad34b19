use std::fs;
use std::process::Command;

use codec::{workload, PRECISION};
use pipeline::{parse, report, stored, text, BadLine};

fn data() -> String {
    fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/readings.csv")).unwrap()
}

#[test]
fn the_data_is_what_the_generator_makes() {
    assert_eq!(text(&workload::readings(2_000)), data());
}

#[test]
fn text_and_readings_are_each_others() {
    let readings = workload::readings(500);
    assert_eq!(parse(&text(&readings)), Ok(readings));
    assert_eq!(parse(""), Ok(vec![]));
}

#[test]
fn a_bad_line_is_named() {
    for line in ["", "1,2", "1,2,3,4", "a,2,3", "70000,2,3", "1,-2,3"] {
        assert_eq!(
            parse(&format!("sensor,time,value\n1,2,3\n{line}\n")),
            Err(BadLine { number: 3 }),
            "{line:?}"
        );
    }
}

#[test]
fn storing_keeps_values_within_the_precision() {
    let readings = parse(&data()).unwrap();
    for (back, reading) in stored(&readings).iter().zip(&readings) {
        assert!((back.value - reading.value).abs() <= PRECISION);
    }
}

#[test]
fn the_report_has_each_sensors_means() {
    let found = report("sensor,time,value\n3,0,1.0\n3,10,2.0\n3,100,5.0\n1,50,-1.5\n", 100).unwrap();
    assert_eq!(found, "1 0 -1.50\n3 0 1.50\n3 100 5.00\n");
}

#[test]
fn probe_prints_the_report_and_says_what_is_wrong() {
    let run = |words: &[&str]| Command::new(env!("CARGO_BIN_EXE_probe")).args(words).output().unwrap();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/readings.csv");
    let once = run(&["report", file]);
    assert!(once.status.success());
    assert_eq!(String::from_utf8_lossy(&once.stdout), report(&data(), 1_200).unwrap());
    assert_eq!(once.stdout, run(&["report", file, "3"]).stdout);
    assert_eq!(run(&["decode", "70", "2"]).stdout, b"140 readings\n");
    assert_eq!(run(&["index", "70", "2"]).stdout, b"140 readings\n");
    for words in [&["report"][..], &["report", "no-such-file"], &["decode", "many"], &[]] {
        let done = run(words);
        assert_eq!(done.status.code(), Some(2));
        assert!(done.stderr.starts_with(b"probe: "));
    }
}
