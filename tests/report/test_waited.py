"""Every page shows the time that a run waited for the machine apart from its duration."""

from __future__ import annotations

from perfflow.report import markdown
from perfflow.report.payloads import files
from tests.verdict.records import ended, judged, pairs, planned


def test_waiting_is_named_beside_what_the_run_took() -> None:
    events = pairs("bench", [0.1] * 8, [0.1] * 8)
    quiet, waited = (judged(*events, ended("bench") | keys, steps=[planned("bench")]) for keys in ({}, {"waited": 6.0}))
    assert quiet.run.seconds == waited.run.seconds == 10
    assert quiet.waited == 0
    assert "took 10.0 s\n" in markdown.render(quiet)
    assert "took 4.00 s, plus 6.00 s waiting for the machine\n" in markdown.render(waited)
    assert 'time="4.000"' in files.junit_text(waited)
