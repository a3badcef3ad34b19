"""Comparing what both sides of a benchmark execute and read."""

from __future__ import annotations

import json
from dataclasses import replace

from perfflow.model.plain_data import from_json, to_json
from perfflow.unchanged.model import ABSENT, BenchmarkTrace, Differs, Unchanged, compare

TRACE = BenchmarkTrace({"app.py": "1"}, {"data.json": "2", "src/": "3"}, {"app.py:run": ("4", "5")})


def test_compare_calls_equal_files_unchanged() -> None:
    assert compare(TRACE, TRACE) == Unchanged("files", 3)


def test_compare_calls_equal_files_unchanged_whatever_code_is_not_seen() -> None:
    compiled = replace(TRACE, unseen=("numba compiles functions",))
    assert compare(compiled, compiled) == Unchanged("files", 3)


def test_compare_calls_equal_functions_in_other_files_unchanged() -> None:
    assert compare(TRACE, replace(TRACE, loaded={"app.py": "9"})) == Unchanged("code", 2, 1)


def test_compare_names_functions_that_differ() -> None:
    head = replace(TRACE, loaded={"app.py": "9"}, functions={"app.py:run": ("4", "6"), "app.py:new": ("7",)})
    assert compare(TRACE, head) == Differs(("app.py:run", "app.py:new"))


def test_compare_names_inputs_that_differ_or_exist_on_one_side_only() -> None:
    assert compare(TRACE, replace(TRACE, inputs={**TRACE.inputs, "src/": "4"})) == Differs(("src/",))
    head = replace(TRACE, inputs={**TRACE.inputs, "fast": ABSENT})
    assert compare(TRACE, head) == Differs(("fast",))


def test_compare_does_not_settle_by_code_what_it_cannot_see() -> None:
    head = replace(TRACE, loaded={"app.py": "9"}, unseen=("numba compiles functions",))
    assert compare(TRACE, head) == Differs(("numba compiles functions",))
    assert compare(TRACE, replace(TRACE, unknown=("not traced",))) == Differs(("not traced",))


def test_compare_never_calls_traces_without_code_equal() -> None:
    assert isinstance(compare(BenchmarkTrace(), BenchmarkTrace()), Differs)
    base, head = BenchmarkTrace({"a": "1"}), BenchmarkTrace({"a": "2"})
    assert compare(base, head) == Differs(("no executed function is known",))


def test_trace_can_be_stored_as_json() -> None:
    assert from_json(BenchmarkTrace, json.loads(json.dumps(to_json(TRACE)))) == TRACE
