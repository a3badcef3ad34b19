"""The table of a calibration at every width, with every kind of row and hostile names."""

from __future__ import annotations

import pytest

from perfflow.report.bisect_page import render
from perfflow.report.sanitize import cells
from perfflow.store.result_file import CalibrationFinding
from tests.report.results import HOSTILE

FULL = {
    "noise": 0.0123,
    "trials": 20,
    "alarms": 1,
    "alarm_bound": 0.216,
    "same": 18,
    "pairs": 14.0,
    "seconds": 0.61,
    "smallest_change": 0.03,
    "replayed": 64,
    "within": 2.8,
}
WHY = "the program only computes, and CPU time is not disturbed by other processes"
ROWS = [
    CalibrationFinding("s", "decode", "cpu", judged=True, why=WHY, **FULL),  # type: ignore[arg-type]
    CalibrationFinding("s", "decode", "uncontended", noise=0.2),
    CalibrationFinding("s", "count", "", exact=True),
    CalibrationFinding("s", "size", "binary_size", exact=True),
]


@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize("width", [40, 60, 80, 160])
def test_no_line_is_wider_than_the_terminal(width: int, unicode: bool) -> None:
    text = render(
        [*ROWS, *(CalibrationFinding("s", name, name, noise=0.1) for name in HOSTILE)], width=width, unicode=unicode
    )
    assert max(cells(line) for line in text.splitlines()) <= width
    assert unicode or text.isascii()
    assert "\x1b" not in text


def test_a_wide_terminal_shows_everything() -> None:
    text = render(ROWS, width=160, unicode=True)
    line = next(line for line in text.splitlines() if line.startswith("* cpu"))
    assert line.split() == ["*", "cpu", "±1.2%", "3%", "2.80", "s", "1/20", "≤22%", "18/20", "610", "ms", "14"]
    assert f"judged by cpu: {WHY}" in text
    assert "  all metrics: exact, needs no calibration" in text
    assert "  binary_size: exact, needs no calibration" in text


def test_a_narrow_one_keeps_noise_what_is_told_and_the_alarms() -> None:
    text = render(ROWS, width=40, unicode=True)
    line = next(line for line in text.splitlines() if line.startswith("* cpu"))
    for word in ("±1.2%", "3%", "1/20"):
        assert word in line


def test_nothing_found_shows_nothing() -> None:
    assert render([], width=80, unicode=True) == ""
