"""Comparing what both sides of a benchmark execute and read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from perfflow.model.plain_data import from_json, to_json
from perfflow.unchanged.model import ABSENT, BenchmarkTrace, Differs, Unchanged, compare

TRACE = BenchmarkTrace({"app.py": "1"}, {"data.json": "2", "src/": "3"}, {"app.py:run": ("4", "5")})


HEAD = replace(TRACE, loaded={"app.py": "9"})
COMPILED = "numba compiles functions"


@pytest.mark.parametrize(
    ("base", "head", "found"),
    [
        (TRACE, TRACE, Unchanged("files", 3)),
        (replace(TRACE, unseen=(COMPILED,)), replace(TRACE, unseen=(COMPILED,)), Unchanged("files", 3)),
        (TRACE, HEAD, Unchanged("code", 2, 1)),
        (
            TRACE,
            replace(HEAD, functions={"app.py:run": ("4", "6"), "app.py:new": ("7",)}),
            Differs(("app.py:run", "app.py:new")),
        ),
        (TRACE, replace(TRACE, inputs={**TRACE.inputs, "src/": "4"}), Differs(("src/",))),
        (TRACE, replace(TRACE, inputs={**TRACE.inputs, "fast": ABSENT}), Differs(("fast",))),
        (TRACE, replace(HEAD, unseen=(COMPILED,)), Differs((COMPILED,))),
        (TRACE, replace(TRACE, unknown=("not traced",)), Differs(("not traced",))),
        (BenchmarkTrace({"a": "1"}), BenchmarkTrace({"a": "2"}), Differs(("no executed function is known",))),
    ],
    ids=[
        *("equal files", "equal files with code that is not seen", "equal functions in another file"),
        *("functions that differ", "an input that differs", "an input on one side only", "code that is not seen"),
        *("what is not traced", "no function is known"),
    ],
)
def test_compare(base: BenchmarkTrace, head: BenchmarkTrace, found: Unchanged | Differs) -> None:
    assert compare(base, head) == found


def test_compare_never_calls_traces_without_code_equal() -> None:
    assert isinstance(compare(BenchmarkTrace(), BenchmarkTrace()), Differs)


def test_trace_can_be_stored_as_json() -> None:
    assert from_json(BenchmarkTrace, json.loads(json.dumps(to_json(TRACE)))) == TRACE
