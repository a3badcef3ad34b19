"""The words beside the verdict."""

from __future__ import annotations

import pytest

from perfflow.report.page import page_of
from tests.report.results import wave
from tests.verdict.records import criteria, ended, judged, pairs, planned


@pytest.mark.parametrize(
    ("factor", "words"),
    [(1.03, "comparisons: 1 improved"), (1.3, "comparisons: 1 improved; concern: rss +30.0%")],
)
def test_a_metric_that_does_not_decide_is_named_beside_the_verdict_if_it_is_a_concern(
    factor: float, words: str
) -> None:
    time = pairs("decode", wave(0.012, 1, 0.02), wave(0.006, 1, 0.02))
    memory = pairs("decode", wave(14e6, 1, 0.001), wave(14e6, factor, 0.001), "rss", at_most=False)
    result = judged(*time, *memory, ended("decode", identical=True), wanted=criteria({}), steps=[planned("decode")])
    assert [(row.decision, row.gating) for row in result.benchmarks] == [("improved", True), ("regressed", False)]
    assert page_of(result).headline == words
