"""The answer to ``perfflow compare`` in a sentence."""

from __future__ import annotations

from perfflow.report import sentence
from tests.verdict.records import ended, judged, pairs


def test_what_its_measuring_warned_of_is_said() -> None:
    events = pairs("b", [1.0] * 10, [1.5] * 10)
    quiet, warned = (
        sentence.render(judged(*events, ended("b", warnings=warnings))) for warnings in ([], ["took longer\x1b[31m"])
    )
    assert quiet.startswith("the second is 1.50x slower")
    assert warned.startswith(quiet)
    assert "note: took longer" in warned
    assert "\x1b" not in warned
