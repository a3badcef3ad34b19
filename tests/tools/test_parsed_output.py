"""``parse``: figures from JSON, patterns and CSV."""

from __future__ import annotations

import json
import math
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Reading
from perfflow.tools.parsed_output import Decimal, from_csv, from_json, from_jsonl, from_regex, read_number


def values(readings: tuple[Reading, ...]) -> dict[tuple[str, str], float]:
    return {(item.benchmark, item.metric): item.value for item in readings}


RESULTS = {"suite": [{"n": "a", "t": {"ms": [1, 2, 9]}}, {"n": "b", "t": {"ms": [4, 5, 6]}}], "total": 12.5}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("total", 12.5),
        ("suite[0].t.ms[1]", 2),
        ("suite[1].t.ms[0]", 4),
        ("suite[].t.ms[2]", 7.5),
        ("suite[0].t.ms[]", 2),
    ],
)
def test_json_paths(path: str, value: float) -> None:
    (found,) = from_json(json.dumps(RESULTS), {"latency": path}, {"latency": "1"})
    assert found.value == value


def test_units_become_base_units() -> None:
    paths, units = {"time": "total", "rss": "total"}, {"time": "us", "rss": "KiB"}
    found = values(from_json(json.dumps(RESULTS), paths, units))
    assert found == {("", "time"): pytest.approx(12.5e-6), ("", "rss"): 12800.0}


def test_names_and_figures_go_together() -> None:
    paths = {"benchmark": "suite[].n", "time": "suite[].t.ms[0]"}
    found = values(from_json(json.dumps(RESULTS), paths, {"time": "ms"}))
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
    assert values(named) == {("sort/10", "time"): 0.0015, ("sort/1000", "time"): 0.015}


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
    assert values(from_json(text, paths, {"time": "s"})) == {("core/a", "time"): 1.0, ("core/b", "time"): 2.0}
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
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
    ],
)
def test_json_lines_that_hold_no_figure(text: str, said: str) -> None:
    with pytest.raises(ToolOutputError, match=said):
        from_jsonl(text, {"benchmark": "n", "time": "t"}, {"time": "s"})


def test_lines_are_not_one_json_document() -> None:
    with pytest.raises(ToolOutputError, match="write `jsonl`"):
        from_json('{"t": 1}\n{"t": 2}\n', {"time": "t"}, {"time": "s"})


def test_two_csv_rows_of_one_name_are_an_error() -> None:
    text = "name,size,note,ms\nx,10,a,1.5\nx,20,a,3.5\n"
    with pytest.raises(ToolOutputError, match=r'\["name", "size"\]` under `csv`'):
        from_csv(text, {"benchmark": "name", "time": "ms"}, {"time": "ms"})
    found = from_csv(text, {"benchmark": ["name", "size"], "time": "ms"}, {"time": "ms"})
    assert values(found) == {("x/10", "time"): 0.0015, ("x/20", "time"): 0.0035}


def test_many_figures_of_one_process_are_one_reading_with_its_distribution() -> None:
    (found,) = from_json(json.dumps(RESULTS), {"time": "suite[0].t.ms[]"}, {"time": "ms"})
    assert found.inner["n"] == 3
    assert [found.inner["min"], found.inner["max"]] == pytest.approx([0.001, 0.009])


@pytest.mark.parametrize(
    ("text", "paths", "said"),
    [
        ("", {"time": "a"}, "not JSON"),
        ("[" * 100_000, {"time": "a"}, "not JSON"),
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
    ],
)
def test_json_that_holds_no_figure(text: str, paths: dict[str, str], said: str) -> None:
    with pytest.raises(ToolOutputError, match=said):
        from_json(text, paths, {"time": "ms"})


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
    found = values(from_regex(text, [r"^bench (?P<benchmark>\S+): (?P<time>[\d.,]+) us$"], {"time": "us"}))
    assert found == {("core/a", "time"): pytest.approx(12e-6), ("core/b", "time"): pytest.approx(1234.5e-6)}


def test_several_patterns_and_groups_that_match_nothing() -> None:
    patterns = [r"t=(?P<time>\d+)(?: m=(?P<rss>\d+))?", r"x=(?P<allocs>\d+)"]
    found = values(from_regex("t=5\nx=7\n", patterns, {"time": "s", "rss": "KB", "allocs": "1"}))
    assert found == {("", "time"): 5.0, ("", "allocs"): 7.0}


@pytest.mark.parametrize(
    ("text", "said"), [("", "nothing in the output"), ("t=x", "nothing"), ("t=1.2.3", "not a number")]
)
def test_text_that_does_not_match(text: str, said: str) -> None:
    with pytest.raises(ToolOutputError, match=said):
        from_regex(text, [r"t=(?P<time>[\d.]+)"], {"time": "s"})


CSV = "# noise, of a kind\nname, ms ,rps\nx,1.5,10\ny,2.5,20\nx,3.5,30\nshort\n"


def test_csv_columns_by_their_heading() -> None:
    columns, units = {"benchmark": "name", "time": "ms", "rate": "rps"}, {"time": "ms", "rate": "/s"}
    found = values(from_csv(CSV, columns, units, samples=True))
    assert found == {
        ("x", "time"): 0.0025,
        ("x", "rate"): 20.0,
        ("y", "time"): 0.0025,
        ("y", "rate"): 20.0,
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has the columns ms"),
        ("a,b\n1,2\n", "has the columns ms"),
        ("ms\n", "no rows"),
        ("ms\nfast\n", "not a number"),
        ("name,x,ms\na,b,1\nc,d\ne,f,2\n", "row 3 of the CSV output ends before 'ms'"),
        ("name,x,ms\na,b,1\nc", "row 3 of the CSV output ends before 'ms'"),
        ("name,x,ms\na,b,1\n" + "c" * 200_000, "is not CSV"),
        ("name,ms\na,0.0\n", "`time` is 0"),
    ],
)
def test_csv_without_what_is_asked_for(text: str, said: str) -> None:
    with pytest.raises(ToolOutputError, match=said):
        from_csv(text, {"time": "ms"}, {"time": "ms"})


def test_csv_with_other_delimiters() -> None:
    for text in ("name;ms;x\na;1.5;\n", "name\tms\na\t1.5\n"):
        found = values(from_csv(text, {"benchmark": "name", "time": "ms"}, {"time": "ms"}))
        assert found == {("a", "time"): 0.0015}


@pytest.mark.parametrize("text", ["name;ms\na;9,95\nb;1.234,5\n", 'name,ms\na,"9,95"\nb,"1.234,5"\n'])
def test_csv_with_a_declared_decimal_comma(text: str) -> None:
    columns = {"benchmark": "name", "time": "ms"}
    found = values(from_csv(text, columns, {"time": "ms"}, "comma"))
    assert found == {("a", "time"): pytest.approx(0.00995), ("b", "time"): pytest.approx(1.2345)}
    with pytest.raises(ToolOutputError, match=r"`time` in row 2 is '9,95', .*: write `decimal: comma`"):
        from_csv(text, columns, {"time": "ms"})


def test_one_column_of_decimal_commas_is_not_taken_for_two() -> None:
    with pytest.raises(ToolOutputError, match=r"row 2 .* has 2 cells, but the heading has 1: is a decimal comma"):
        from_csv("ms\n9,95\n", {"time": "ms"}, {"time": "ms"})
    (found,) = from_csv("ms\n9,95\n", {"time": "ms"}, {"time": "ms"}, "comma")
    assert found.value == pytest.approx(0.00995)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("t=1.5\nt=9,95", r"`time` on line 2 is '9,95', which has a decimal comma: write `decimal: comma`"),
        ("t=10,5", "which has a decimal comma"),
        ("t=1.234,5", "which has a decimal comma"),
        ("t=1.234.567", "which has a decimal comma"),
        ("t=1,234", r"which may be 1234 or 1.234: write `decimal: point` or `decimal: comma`"),
        ("t=1,234\nt=1,5", "which has a decimal comma"),
        ("t=12,34,56", "'12,34,56', not a number"),
        ("t=1,23.4", "not a number"),
    ],
)
def test_commas_that_do_not_group_thousands(text: str, said: str) -> None:
    with pytest.raises(ToolOutputError, match=said):
        from_regex(text, [r"t=(?P<time>\S+)"], {"time": "ms"})


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
        from_regex(f"t={text}", [r"t=(?P<time>\S+)"], {"time": "ms"}, decimal)


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
