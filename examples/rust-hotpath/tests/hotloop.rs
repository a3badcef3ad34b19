//! The program `hotloop`, as others call it.

use std::process::{Command, Output};

fn hotloop(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hotloop"))
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn the_same_operations_print_the_same_line() {
    for mode in ["dispatch", "decode"] {
        let printed = |ops: &str| {
            let output = hotloop(&["--mode", mode, "--ops", ops]);
            assert!(output.status.success());
            String::from_utf8(output.stdout).unwrap()
        };
        assert!(printed("20").starts_with("ops=20 checksum="));
        assert_eq!(printed("20"), printed("20"));
        assert_ne!(printed("20"), printed("21").replace("ops=21", "ops=20"));
    }
}

#[test]
fn bad_usage_is_said_and_ends_with_2() {
    let cases: [(&[&str], &str); 5] = [
        (&[], "--ops is missing"),
        (&["--ops"], "--ops: a value is missing"),
        (&["--ops", "-1"], "--ops: not a count: -1"),
        (&["--ops", "1", "--mode", "fast"], "--mode: no such mode: fast"),
        (&["--op", "1"], "no such option: --op"),
    ];
    for (arguments, message) in cases {
        let output = hotloop(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            String::from_utf8(output.stderr).unwrap().contains(message),
            "{arguments:?}"
        );
        assert!(output.stdout.is_empty());
    }
}
