"""Two steps that measure the same metric of one benchmark are reported if this is known before the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workflow.drafts import opened, said

TWICE = "steps `a` and `b` both measure `time` of `x`"
PLAIN = "uses: command, with: {command: x}"
PARSED = "run: x, parse: {regex: '(?P<time>.*)', units: {time: s}}"


@pytest.mark.parametrize(
    ("first", "second", "wrong"),
    [
        (f"{PLAIN}, benchmark: x", f"{PLAIN}, benchmark: x", True),
        (f"{PLAIN}, benchmark: x", f"{PARSED}, benchmark: x", True),
        (f"{PLAIN}, benchmark: x", f"{PLAIN}, benchmark: x, candidate: y", True),
        (f"{PLAIN}, benchmark: x", f"{PLAIN}, benchmark: y", False),
        (f"{PLAIN}, benchmark: x", f"{PLAIN}, benchmark: x, if: params.fast", False),
        (f"{PLAIN}, benchmark: x", f"{PARSED}, benchmark: 'x*'", False),
        (f"{PLAIN}, benchmark: x", "uses: perf-stat, benchmark: x, with: {command: x}", True),
        (f"{PLAIN}, benchmark: x", "uses: callgrind, benchmark: x, with: {command: x}", False),
        (f"{PLAIN}, benchmark: x, matrix: {{k: [1, 2]}}", f"{PLAIN}, benchmark: x", False),
    ],
)
def test_what_is_known_to_be_measured_twice_is_an_error(first: str, second: str, wrong: bool, tmp_path: Path) -> None:
    steps = f"stages: {{baseline: [{{id: a, {first}}}, {{id: b, {second}}}]}}\n"
    found = said(opened(tmp_path, f"params: {{fast: true}}\n{steps}"))
    assert [text.partition(" ")[2] for text in found] == ([TWICE] if wrong else [])
