"""The number of passed tests, in output that was captured from the programs whose versions the file names tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.tools.passed_tests import passed_tests

CAPTURED = Path(__file__).parent / "passed_tests"
PASSED = {
    "cargo-1.95.0": 3,
    "ctest-3.25.1": 2,
    "go-1.26.8": 3,
    "go-1.26.8-json": 3,
    "jest-29.7.0": 2,
    "junit-4.13.2": 3,
    "mocha-10.8.2": 2,
    "node-20.20.2": 3,
    "node-20.20.2-tap": 3,
    "pytest-9.2.0-colour": 3,
    "pytest-9.2.0-quiet": 2,
    "surefire-2.12.4": 3,
    "test-more-1.302190": 2,
    "unittest-3.11": 1,
    "unittest-3.11-ok": 1,
    "vitest-2.1.9": 2,
}


def output(name: str) -> bytes:
    return (CAPTURED / f"{name}.txt").read_bytes()


@pytest.mark.parametrize("name", sorted(path.stem for path in CAPTURED.glob("*.txt")))
def test_the_passed_tests_of_a_runner(name: str) -> None:
    assert passed_tests(output(name)) == PASSED[name]


def test_several_runners_are_added() -> None:
    assert passed_tests(output("cargo-1.95.0") + output("pytest-9.2.0-quiet")) == 5


@pytest.mark.parametrize("text", [b"", b"all is well\n", b"ok 1 - without a plan\n", b"\xff\xfe 12 passed\n"])
def test_other_output_tells_nothing(text: bytes) -> None:
    assert passed_tests(text) is None
