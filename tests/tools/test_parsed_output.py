"""``parse``: figures from JSON, patterns and CSV, models of tools' JSON, and patterns of users that backtrack."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import time
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Annotated, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed, Reading, reading_of_many
from perfflow.tools import parsed_output
from perfflow.tools.parsed_output import (
    Counted,
    Decimal,
    Figure,
    Json,
    Name,
    PatternMatch,
    PatternTimeoutError,
    Positive,
    Whole,
    checked_json,
    from_csv,
    from_json,
    from_jsonl,
    from_regex,
    one_of_keys,
    read_json,
    read_number,
    search,
    time_left,
)
from tests.tools.harness import values_by_name
from tests.tools.tables import answers, refused_by

RESULTS = {"suite": [{"n": "a", "t": {"ms": [1, 2, 9]}}, {"n": "b", "t": {"ms": [4, 5, 6]}}], "total": 12.5}


def _at(path: str) -> float:
    (found,) = from_json(json.dumps(RESULTS), {"latency": path}, {"latency": "1"})
    return found.value


test_json_paths = answers(
    _at,
    ("total", 12.5),
    ("suite[0].t.ms[1]", 2),
    ("suite[1].t.ms[0]", 4),
    ("suite[].t.ms[2]", 7.5),
    ("suite[0].t.ms[]", 2),
)


def test_units_become_base_units() -> None:
    paths, units = {"time": "total", "rss": "total"}, {"time": "us", "rss": "KiB"}
    found = values_by_name(from_json(json.dumps(RESULTS), paths, units))
    assert found == {("", "time"): pytest.approx(12.5e-6), ("", "rss"): 12800.0}


def test_names_and_figures_go_together() -> None:
    paths = {"benchmark": "suite[].n", "time": "suite[].t.ms[0]"}
    found = values_by_name(from_json(json.dumps(RESULTS), paths, {"time": "ms"}))
    assert found == {("a", "time"): 0.001, ("b", "time"): 0.004}


JMH = json.dumps(
    [
        {
            "benchmark": "sort",
            "params": {"size": size},
            "primaryMetric": {"score": score, "scoreConfidence": [1.0, 2.0]},
        }
        for size, score in (("10", 1.5), ("1000", 15.0))
    ]
)
SCORE = "[].primaryMetric.score"


def test_two_json_entries_of_one_name_are_an_error_that_names_the_fix() -> None:
    with pytest.raises(ToolOutputError) as raised:
        from_json(JMH, {"benchmark": "[].benchmark", "time": SCORE}, {"time": "ms"})
    assert "two values of `time` for 'sort', 1.5 and 15" in str(raised.value)
    assert '`benchmark: ["[].benchmark", "[].params.size"]` under `json`' in str(raised.value)
    named = from_json(JMH, {"benchmark": ["[].benchmark", "[].params.size"], "time": SCORE}, {"time": "ms"})
    assert values_by_name(named) == {("sort/10", "time"): 0.0015, ("sort/1000", "time"): 0.015}


def test_samples_of_one_name_are_one_reading_where_the_workflow_says_so() -> None:
    (found,) = from_json(JMH, {"benchmark": "[].benchmark", "time": SCORE}, {"time": "ms"}, samples=True)
    assert (found.benchmark, found.inner["n"]) == ("sort", 2)
    lines = "x took 1 ms\nx took 3 ms\n"
    pattern = r"(?P<benchmark>\S+) took (?P<time>\S+) ms"
    (found,) = from_regex(lines, [pattern], {"time": "ms"}, samples=True)
    assert found.inner["n"] == 2
    with pytest.raises(ToolOutputError, match="in the group `benchmark`"):
        from_regex(lines, [pattern], {"time": "ms"})


def test_a_name_without_a_list_in_its_path_holds_for_all_figures() -> None:
    text = json.dumps({"suite": "core", "results": [{"n": "a", "t": 1}, {"n": "b", "t": 2}]})
    paths = {"benchmark": ["suite", "results[].n"], "time": "results[].t"}
    assert values_by_name(from_json(text, paths, {"time": "s"})) == {("core/a", "time"): 1.0, ("core/b", "time"): 2.0}
    (found,) = from_json(text, {"benchmark": "suite", "time": "results[].t"}, {"time": "s"})
    assert (found.benchmark, found.inner["n"]) == ("core", 2)


LINES = """starting
{"event": "started", "name": "parse"}
{"name": "parse", "args": {"size": 10}, "ms": [1.5, 2.5], "mem": 7}
{"name": "print", "ms": [4]}

{"event": "done"}
"""


def test_json_lines_have_a_name_each() -> None:
    found = from_jsonl(LINES, {"benchmark": "name", "time": "ms[]", "rss": "mem"}, {"time": "ms", "rss": "KB"})
    assert [(item.benchmark, item.metric) for item in found] == [("parse", "time"), ("parse", "rss"), ("print", "time")]
    assert [found[0].inner["n"], found[1].value, found[2].value] == [2, 7000.0, 0.004]


def test_json_lines_without_names_are_samples() -> None:
    (found,) = from_jsonl('{"t": 1}\n{"t": 3}\n', {"time": "t"}, {"time": "ms"})
    assert (found.benchmark, found.inner["n"]) == ("", 2)


test_json_lines_that_hold_no_figure = refused_by(
    partial(from_jsonl, paths={"benchmark": "n", "time": "t"}, units={"time": "s"}),
    ("", "no line of the output is a JSON object with 't'"),
    ("[1]\nt: 1\n", "no line of the output"),
    ('{"n": "a", "t": 1}\n{"n": "b", "t": ', "line 2 of the output is not JSON"),
    ('{"n": "a", "t": "1"}', "line 1: 't' is '1', not a number"),
    ('{"t": 1}', "line 1: there is a value at 't', but no name at 'n'"),
    ('{"n": "a", "t": 1}\n{"n": "b", "error": "x"}\n', "line 2 names 'b', but no line has a figure for it"),
    (
        '{"n": "a", "t": 1, "k": 5}\n{"n": "a", "t": 2, "k": 6}\n',
        r'two values of `time` for \'a\'.*\["n", "k"\]` under `jsonl`',
    ),
    ('{"n": "a", "t": 1}\n{"n": "a", "t": 2}\n', r'\["n", "ANOTHER_PATH"\]'),
)


def test_two_csv_rows_of_one_name_are_an_error() -> None:
    text = "name,size,note,ms\nx,10,a,1.5\nx,20,a,3.5\n"
    with pytest.raises(ToolOutputError, match=r'\["name", "size"\]` under `csv`'):
        from_csv(text, {"benchmark": "name", "time": "ms"}, {"time": "ms"})
    found = from_csv(text, {"benchmark": ["name", "size"], "time": "ms"}, {"time": "ms"})
    assert values_by_name(found) == {("x/10", "time"): 0.0015, ("x/20", "time"): 0.0035}


def test_many_figures_of_one_process_are_one_reading_with_its_distribution() -> None:
    (found,) = from_json(json.dumps(RESULTS), {"time": "suite[0].t.ms[]"}, {"time": "ms"})
    assert found.inner["n"] == 3
    assert [found.inner["min"], found.inner["max"]] == pytest.approx([0.001, 0.009])


test_json_that_holds_no_figure = refused_by(
    partial(from_json, units={"time": "ms"}),
    ("", {"time": "a"}, "not JSON"),
    ("[" * 100_000, {"time": "a"}, "not JSON"),
    ('{"t": 1}\n{"t": 2}\n', {"time": "t"}, "write `jsonl`"),
    ("{}", {"time": "a"}, "nothing at 'a'"),
    ('{"a": []}', {"time": "a[]"}, "nothing at"),
    ('{"a": [1]}', {"time": "a[3]"}, "nothing at"),
    ('{"a": 1}', {"time": "a.b"}, "nothing at"),
    ('{"a": "1"}', {"time": "a"}, "not a number"),
    ('{"a": true}', {"time": "a"}, "not a number"),
    ('{"a": null}', {"time": "a"}, "not a number"),
    ('{"a": NaN}', {"time": "a"}, "cannot be a measurement"),
    ('{"a": 1e999}', {"time": "a"}, "cannot be a measurement"),
    ('{"a": -1}', {"time": "a"}, "cannot be a measurement"),
    ('{"a": 1' + "0" * 400 + "}", {"time": "a"}, "too large"),
    ('{"n": ["x"], "a": [1, 2]}', {"benchmark": "n[]", "time": "a[]"}, "1 names but 2 values"),
    ('{"a": 0}', {"time": "a"}, "`time` is 0"),
    ('{"a": -0.0}', {"time": "a"}, "`time` is 0"),
    ('{"r": [{"t": 1}, {"error": "x"}, {"t": 2}]}', {"time": "r[].t"}, r"item 2 at .* has no 't'"),
    ('{"r": [[], {"t": 1}]}', {"time": "r[].t"}, r"item 1 at .* has no 't'"),
    ('{"r": [{"n": "x", "t": 1}, 0]}', {"benchmark": "r[].n", "time": "r[].t"}, r"item 2 at .* has no 't'"),
)


@pytest.mark.parametrize("path", ["a", "b[]", "c[0].x", "a.b.c", "d[][]"])
@given(
    st.recursive(
        st.none() | st.floats() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.sampled_from("abcd"), x)
    )
)
def test_any_json_gives_finite_figures_or_a_reason(path: str, data: object) -> None:
    try:
        found = from_json(json.dumps(data), {"time": path}, {"time": "ms"})
    except ToolOutputError:
        return
    assert all(math.isfinite(item.value) and item.value >= 0 for item in found)


def test_a_figure_of_the_workflows_own_may_be_negative() -> None:
    (found,) = from_json('{"a": -2.5}', {"drift": "a"}, {"drift": "1"})
    assert found.value == -2.5


def test_patterns_with_names_in_every_line() -> None:
    text = "bench core/a: 12 us\nnoise\nbench core/b: 1,234.5 us\n"
    found = values_by_name(from_regex(text, [r"^bench (?P<benchmark>\S+): (?P<time>[\d.,]+) us$"], {"time": "us"}))
    assert found == {("core/a", "time"): pytest.approx(12e-6), ("core/b", "time"): pytest.approx(1234.5e-6)}


def test_several_patterns_and_groups_that_match_nothing() -> None:
    patterns = [r"t=(?P<time>\d+)(?: m=(?P<rss>\d+))?", r"x=(?P<allocs>\d+)"]
    found = values_by_name(from_regex("t=5\nx=7\n", patterns, {"time": "s", "rss": "KB", "allocs": "1"}))
    assert found == {("", "time"): 5.0, ("", "allocs"): 7.0}


test_text_that_does_not_match = refused_by(
    partial(from_regex, patterns=[r"t=(?P<time>[\d.]+)"], units={"time": "s"}),
    ("", "nothing in the output"),
    ("t=x", "nothing"),
    ("t=1.2.3", "not a number"),
)
CSV = "# noise, of a kind\nname, ms ,rps\nx,1.5,10\ny,2.5,20\nx,3.5,30\nshort\n"


def test_csv_columns_by_their_heading() -> None:
    columns, units = {"benchmark": "name", "time": "ms", "rate": "rps"}, {"time": "ms", "rate": "/s"}
    found = values_by_name(from_csv(CSV, columns, units, samples=True))
    assert found == {("x", "time"): 0.0025, ("x", "rate"): 20.0, ("y", "time"): 0.0025, ("y", "rate"): 20.0}


test_csv_without_what_is_asked_for = refused_by(
    partial(from_csv, columns={"time": "ms"}, units={"time": "ms"}),
    ("", "has the columns ms"),
    ("a,b\n1,2\n", "has the columns ms"),
    ("ms\n", "no rows"),
    ("ms\nfast\n", "not a number"),
    ("name,x,ms\na,b,1\nc,d\ne,f,2\n", "row 3 of the CSV output ends before 'ms'"),
    ("name,x,ms\na,b,1\nc", "row 3 of the CSV output ends before 'ms'"),
    ("name,x,ms\na,b,1\n" + "c" * 200_000, "is not CSV"),
    ("name,ms\na,0.0\n", "`time` is 0"),
    ("ms\n9,95\n", r"row 2 .* has 2 cells, but the heading has 1: is a decimal comma"),
)


def test_csv_with_other_delimiters() -> None:
    for text in ("name;ms;x\na;1.5;\n", "name\tms\na\t1.5\n"):
        found = values_by_name(from_csv(text, {"benchmark": "name", "time": "ms"}, {"time": "ms"}))
        assert found == {("a", "time"): 0.0015}


@pytest.mark.parametrize("text", ["name;ms\na;9,95\nb;1.234,5\n", 'name,ms\na,"9,95"\nb,"1.234,5"\n'])
def test_csv_with_a_declared_decimal_comma(text: str) -> None:
    columns = {"benchmark": "name", "time": "ms"}
    found = values_by_name(from_csv(text, columns, {"time": "ms"}, "comma"))
    assert found == {("a", "time"): pytest.approx(0.00995), ("b", "time"): pytest.approx(1.2345)}
    with pytest.raises(ToolOutputError, match=r"`time` in row 2 is '9,95', .*: write `decimal: comma`"):
        from_csv(text, columns, {"time": "ms"})


def test_one_column_of_decimal_commas_is_not_taken_for_two() -> None:
    (found,) = from_csv("ms\n9,95\n", {"time": "ms"}, {"time": "ms"}, "comma")
    assert found.value == pytest.approx(0.00995)


PRINTED = partial(from_regex, patterns=[r"t=(?P<time>\S+)"], units={"time": "ms"})
test_commas_that_do_not_group_thousands = refused_by(
    PRINTED,
    ("t=1.5\nt=9,95", r"`time` on line 2 is '9,95', which has a decimal comma: write `decimal: comma`"),
    ("t=10,5", "which has a decimal comma"),
    ("t=1.234,5", "which has a decimal comma"),
    ("t=1.234.567", "which has a decimal comma"),
    ("t=1,234", r"which may be 1234 or 1.234: write `decimal: point` or `decimal: comma`"),
    ("t=1,234\nt=1,5", "which has a decimal comma"),
    ("t=12,34,56", "'12,34,56', not a number"),
    ("t=1,23.4", "not a number"),
)


@pytest.mark.parametrize(
    ("text", "decimal", "ms"),
    [
        ("t=1,234.5", None, 1234.5),
        ("t=1,234,567", None, 1_234_567),
        ("t=1,234\nt=1.5", None, 617.75),
        ("t=1'234.5", None, 1234.5),
        ("t=1_234", None, 1234),
        ("t=1,234", "point", 1234),
        ("t=1,234", "comma", 1.234),
        ("t=1.234", "comma", 1234),
        ("t=1.234,5e1", "comma", 12345),
        ("t=1\u202f234,5", "comma", 1234.5),
        ("t=,5", "comma", 0.5),
    ],
)
def test_groups_and_decimals(text: str, decimal: Decimal | None, ms: float) -> None:
    (found,) = from_regex(text, ["t=(?P<time>.+)"], {"time": "ms"}, decimal)
    assert found.value == pytest.approx(ms / 1000)


@pytest.mark.parametrize(("text", "decimal"), [("1.5", "comma"), ("1,5", "point"), ("12.34,5", "comma")])
def test_a_declared_notation_is_kept_to(text: str, decimal: Decimal) -> None:
    with pytest.raises(ToolOutputError, match=f"not a number with a decimal {decimal}"):
        PRINTED(f"t={text}", decimal=decimal)


@given(st.floats(1e-3, 1e12), st.integers(0, 6))
def test_a_number_in_either_notation_reads_as_it_was_written(value: float, digits: int) -> None:
    english = f"{value:,.{digits}f}"
    german = english.translate(str.maketrans(",.", ".,"))
    for text, decimal in ((english, "point"), (german, "comma")):
        assert read_number(text, "x", cast("Decimal", decimal), frozenset()).value == round(value, digits)


@pytest.mark.parametrize(
    ("text", "tick"), [("t=1.2", 0.1), ("t=12", 1.0), ("t=1.20\nt=1.31\nt=1", 0.01), ("t=1.2e1", 1), ("t=1.20001", 0)]
)
def test_the_last_printed_digit_is_kept_where_it_is_coarse(text: str, tick: float) -> None:
    (found,) = from_regex(text, [r"t=(?P<time>\S+)"], {"time": "s"})
    assert found.tick == pytest.approx(tick)


@given(st.text(alphabet='a,b\n"1 .\0é', max_size=60))
def test_any_csv_text_gives_figures_or_a_reason(text: str) -> None:
    try:
        from_csv(text, {"time": "a"}, {"time": "ms"})
    except ToolOutputError:
        return


class Benchmark(Json):
    name: Name
    times: list[Figure] = Field(default=[])
    loops: Whole = 1
    unit: Annotated[float, one_of_keys({"ms": 1e-3})] = 1.0
    rate: Positive = 1.0
    rounds: Counted = 1
    note: str | None = None
    ended: bool = True


class Suite(Json):
    benchmarks: list[Benchmark]
    groups: dict[str, Benchmark] = Field(default={})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"times": 3}, "times of b c is not a list"),
        ({"times": [1, "2"]}, "times[1] of b c is '2', not a number"),
        ({"times": [True]}, "times[0] of b c is True, not a number"),
        ({"times": [None]}, "times[0] of b c is null, not a number"),
        ({"times": [-1.5]}, "times[0] of b c is -1.5, which is not valid"),
        ({"times": [float("nan")]}, "times[0] of b c is nan, which is not valid"),
        ({"times": [float("inf")]}, "times[0] of b c is inf, which is not valid"),
        ({"times": [1e24]}, "times[0] of b c is 1e+24, which is not valid"),
        ({"times": [10**400]}, "times[0] of b c is too large, not a number"),
        ({"loops": 1.5}, "loops of b c is 1.5, not a whole number"),
        ({"loops": 2**63}, "loops of b c is too large, which is not valid"),
        ({"rounds": 0}, "rounds of b c is 0, which is not valid"),
        ({"rate": 0}, "rate of b c is 0, which is not valid"),
        ({"unit": "h"}, "unit of b c is 'h', which perfflow does not know"),
        ({"unit": ["ms"]}, "unit of b c is ['ms'], which perfflow does not know"),
        ({"note": 3}, "note of b c is not text"),
        ({"ended": 1}, "ended of b c is neither true nor false"),
        ({"name": 3}, "benchmarks[1].name is not text"),
    ],
)
def test_a_wrong_value_is_told_with_its_key_and_its_benchmark(change: dict[str, object], reason: str) -> None:
    with pytest.raises(ToolOutputError) as caught:
        checked_json(Suite, {"benchmarks": [{"name": "a"}, {"name": "b c", **change}]}, "out.json")
    assert str(caught.value) == f"out.json: {reason}"


class Sized(Json):
    by_size: dict[Whole, list[Whole]]


test_a_wrong_shape_is_told_with_its_place = refused_by(
    checked_json,
    (Suite, [], "out.json", r"^out\.json is not an object"),
    (Suite, {}, "out.json", r"^out\.json: benchmarks is missing"),
    (Suite, {"benchmarks": [{}]}, "out.json", r"^out\.json: benchmarks\[0\]\.name is missing"),
    (Suite, {"benchmarks": [3]}, "out.json", r"^out\.json: benchmarks\[0\] is not an object"),
    (Suite, {"benchmarks": [], "groups": []}, "out.json", r"^out\.json: groups is not an object"),
    (
        Suite,
        {"benchmarks": [], "groups": {"x\n": {"name": "n", "loops": "1"}}},
        "o",
        r"^o: loops of n is '1'(?!.*pydantic)",
    ),
    (Sized, {"by_size": {"many": [1]}}, r"^by_size\.many\.\[key\] is 'many', not a whole number$"),
)


def test_other_keys_are_left_aside() -> None:
    found = checked_json(Suite, {"benchmarks": [{"name": "a\x00", "of the next version": [float("nan")]}], "more": {}})
    assert found.benchmarks[0].name == "a?"


def test_a_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "stats.json"
    with pytest.raises(ToolOutputError, match=r"stats\.json was not written: run it again"):
        read_json(Suite, path, "run it again")
    path.write_text(json.dumps({"benchmarks": 1}))
    with pytest.raises(ToolOutputError, match=r"stats\.json: benchmarks is not a list"):
        read_json(Suite, path)


@pytest.mark.parametrize("value", [1e24, float("nan"), float("inf"), -1e24])
def test_a_figure_that_scaling_made_absurd_is_refused_of_every_tool(value: float) -> None:
    with pytest.raises(ToolOutputError, match=r"rss of a is \S+ in base units, which is not valid"):
        Parsed((Reading("rss", value, "a"),))
    with pytest.raises(ToolOutputError, match=r"^rss is"):
        Parsed((reading_of_many("rss", [1.0, 2.0, value]),))


ENDLESS = "(?P<x>(a+)+)$"
TEXT = "a" * 40 + "b"


def test_matches_are_the_same_here_and_elsewhere() -> None:
    pattern, text = r"^(?P<name>\w+)(?: took)? (?P<time>[\d.]+) ms$", "one took 1.5 ms\ntwo 3 ms\n\udcffé\n"
    here = [PatternMatch(match.start(), match.groupdict()) for match in re.finditer(pattern, text, re.MULTILINE)]
    assert search(pattern, [text]) == here
    assert [found.groups["time"] for found in here] == ["1.5", "3"]
    assert search("a", ["ba", "", "aa"]) == [PatternMatch(1, {}), PatternMatch(0, {}), PatternMatch(1, {})]
    assert search("^b", ["a\nb"], flags=0) == []


@given(st.text(st.sampled_from("ab\n"), max_size=30), st.sampled_from(["(a|b)*", "(?P<x>a+b?)+", "^(?:ab)*$", "a*|b"]))
def test_any_text_is_searched_as_python_does(text: str, pattern: str) -> None:
    here = [PatternMatch(match.start(), match.groupdict()) for match in re.finditer(pattern, text, re.MULTILINE)]
    assert search(pattern, [text]) == here


@pytest.mark.parametrize(
    "pattern", [ENDLESS, "(a|aa)+$", "(.*a){20}c", "a?" * 40 + "a" * 40 + "c", "a*" * 12 + "c", "(?P<x>a*)*(?P=x)c"]
)
def test_a_pattern_that_backtracks_ends_with_the_time(pattern: str) -> None:
    with pytest.raises(PatternTimeoutError, match=r"did not end within 0\.3 s: it has too many ways"):
        search(pattern, ["a" * 60 + "b"], 0.3)
    assert search("(a)+", ["aa"], 10) == [PatternMatch(0, {})]


def test_figures_end_with_the_time_too() -> None:
    with pytest.raises(ToolOutputError, match="too many ways to match"):
        from_regex(TEXT, [ENDLESS], {"x": "1"}, seconds=0.3)


def test_a_searching_process_that_was_ended_is_replaced() -> None:
    assert search("(a)+", ["aa"])
    for child in parsed_output._idle:
        os.kill(child.pid, signal.SIGKILL)
    assert search("(a)+", ["aa"]) == [PatternMatch(0, {})]


def test_searches_beside_each_other_do_not_wait_for_each_other() -> None:
    ended: list[str] = []

    def endless() -> None:
        with pytest.raises(PatternTimeoutError):
            search(ENDLESS, [TEXT], 3)
        ended.append("endless")

    thread = Thread(target=endless)
    thread.start()
    time.sleep(0.2)
    search("(a)+", ["aa"])
    ended.append("quick")
    thread.join()
    assert ended == ["quick", "endless"]


def test_what_cannot_take_long_is_searched_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def elsewhere(request: bytes) -> bytes:
        raise AssertionError(request)

    monkeypatch.setattr(parsed_output, "_answer_to", elsewhere)
    assert search(r"took (?P<time>[0-9.]+) ms", ["took 12 ms\n" * 100])
    assert search(r"^(?P<copied>\d+) bytes .* copied, (?P<time>[\d.e-]+) s", ["5 bytes, copied, 1 s"]) == []


def test_a_pattern_has_what_is_left_of_the_time() -> None:
    assert (time_left(None, 5), time_left(10, 4), time_left(10, 9.9)) == (None, 6, 1.0)
