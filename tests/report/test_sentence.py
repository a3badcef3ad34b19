"""The sentence that ``perfflow compare`` prints."""

from __future__ import annotations

from perfflow.report import terminal
from tests.verdict.records import ended, judged, pairs


def test_what_its_measuring_warned_of_is_said() -> None:
    events = pairs("b", [1.0] * 10, [1.5] * 10)
    quiet, warned = (
        terminal.render_summary(judged(*events, ended("b", warnings=warnings)))
        for warnings in ([], ["took longer\x1b[31m"])
    )
    assert quiet.startswith("the second is 1.50x slower")
    notes = [line for line in warned.splitlines() if line not in quiet.splitlines()]
    assert [line.strip() for line in notes] == ["note: took longer\\u001b[31m"]
    assert "\x1b" not in warned
