"""The Markdown report: its content, and that no name can break it."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from perfflow.model.metrics import METRICS
from perfflow.model.result import Result
from perfflow.report import markdown
from perfflow.report.page import MOST_OPENING
from tests.report.results import HOSTILE, everything, hostile, kernels, on_gpu, single, stored
from tests.verdict.records import ended, judged, pairs, planned

GOLDEN = Path(__file__).parent / "golden"
OWN_HTML = re.compile(r"<details><summary>[A-Z][a-z ]+</summary>\n|</details>\n")
COLUMNS = {
    "Compared": 2,
    "Benchmarks": 8,
    "Further figures": 6,
    "GPU Kernels": 9,
    "Warp Stalls": 5,
    "Roofline": 7,
    "Profiling Results": 6,
    "Verification": 4,
    "Requirements Met": 7,
    "Steps that did not run or failed": 3,
}
FEWER = {("Profiling Results", 5), ("Requirements Met", 6)}
"""Tables without the column of causes if none is known, and without the column of bars if nothing was measured."""
GATE_TABLES = {"Regression Summary", "Hotspot Analysis", "Impact Assessment", "Gates"}


def check_balanced(text: str) -> None:
    """Check that each row of a table has as many bars as its head; readers silently fill or cut other rows."""
    fenced = {line for token in parsed(text) if token.map and token.type == "fence" for line in range(*token.map)}
    block: list[int] = []
    for number, line in enumerate([*text.split("\n"), ""]):
        if line.startswith("|") and number not in fenced:
            block.append(len(re.findall(r"(?<!\\)\|", line)))
        else:
            assert len(set(block)) <= 1, (block, line)
            assert len(block) != 1, line
            block = []


def parsed(text: str) -> list[Token]:
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text)


def every(tokens: list[Token]) -> list[Token]:
    return [inner for token in tokens for inner in (token, *every(token.children or []))]


def tables(tokens: list[Token]) -> dict[str, list[list[str]]]:
    """Return the rows of cells by the heading above, or by the summary of the fold around."""
    found: dict[str, list[list[str]]] = {}
    title = ""
    for token, after in zip(tokens, [*tokens[1:], tokens[-1]], strict=True):
        if token.type == "heading_open":
            title = after.content
        elif token.type == "html_block" and "<summary>" in token.content:
            title = token.content.partition("<summary>")[2].partition("<")[0]
        elif token.type == "tr_open":
            found.setdefault(title, []).append([])
        elif token.type == "inline" and token.level and found.get(title) and after.type in ("td_close", "th_close"):
            found[title][-1].append(token.content)
    return found


def check_safe(text: str, fences: tuple[str, ...] = ("text", "sh")) -> list[Token]:
    """Check what must hold for every report."""
    tokens = parsed(text)
    for token in every(tokens):
        if token.type in ("html_block", "html_inline"):
            assert OWN_HTML.fullmatch(token.content), token.content
        assert token.type not in ("link_open", "image", "hr", "blockquote_open", "code_block", "s_open", "em_open")
    assert [token.info for token in tokens if token.type == "fence"] == [*fences]
    # GitHub extends CommonMark: text outside of code must not be a mention, a reference or a link.
    # One paragraph or cell at a time, so that text does not join with the next one.
    inline = [token.children or [] for token in every(tokens) if token.type == "inline"]
    plain = "\n".join("".join(token.content for token in parts if token.type == "text") for parts in inline)
    assert not re.search(r"@\w|#\d|\bGH-\d|://|\bwww\.", plain, re.IGNORECASE), plain
    assert all(letter.isprintable() or letter in "\n\u200b" for letter in text)
    check_balanced(text)
    for title, rows in tables(tokens).items():
        if title in COLUMNS:
            (width,) = {len(row) for row in rows}
            assert width == COLUMNS[title] or (title, width) in FEWER, title
        else:
            assert title in GATE_TABLES, title
    return tokens


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_no_name_breaks_the_report(name: str) -> None:
    result = hostile(name)
    tokens = check_safe(markdown.render(result))
    headings = [after.content for token, after in itertools.pairwise(tokens) if token.type == "heading_open"]
    assert len(headings) == 9
    assert headings[0].startswith("Performance Report:")
    found = tables(tokens)
    assert len(found["Benchmarks"]) == 1 + 2
    assert len(found["Requirements Met"]) == 1 + len(result.targets)
    assert len(found["Steps that did not run or failed"]) == 1 + 2
    assert len(found["Profiling Results"]) == 2
    items = [token for token in tokens if token.type == "list_item_open"]
    assert {token.level for token in items} == {1}
    assert len(tables(check_safe(markdown.render(stored(name))))["Compared"]) == 3
    of_gpu = tables(check_safe(markdown.render(on_gpu(name))))
    assert len(of_gpu["GPU Kernels"]) == 1 + 4


@given(st.text(max_size=40) | st.text(alphabet="`|\\<>[]()*_~#@:/!-+=.1w \n", max_size=24))
def test_any_text_anywhere(name: str) -> None:
    # hypothesis also draws constants of the code, and perfflow's own metrics have their own tables.
    assume(name not in METRICS)
    check_safe(markdown.render(hostile(name)))
    check_safe(markdown.render(stored(name)))
    check_safe(markdown.render(on_gpu(name)))


@given(st.text(alphabet="`|\\ ab", min_size=1, max_size=30))
def test_a_name_in_a_table_is_one_code_span_that_shows_it(name: str) -> None:
    (row, *others) = tables(parsed(f"### T\n\n| a | b |\n|---|---|\n| {markdown.cell(name)} | end |\n"))["T"][1:]
    assert not others
    assert row[1] == "end"
    (shown,) = (token for token in every(parsed(row[0])) if token.type == "code_inline")
    assert shown.content.split() == name.replace("\\|", "\\ |").split()


def test_evidence_and_gate_stand_at_the_beginning_of_a_line() -> None:
    lines = markdown.render(everything()).splitlines()
    assert lines.count("review:gate:perf = fail") == 1
    assert len([line for line in lines if line.startswith("perf: ")]) == len(everything().evidence)


def test_the_commands_to_reproduce_it_are_quoted_for_a_shell() -> None:
    result = judged(ended("b"), steps=[planned("b")], params={"x": "a'; touch pwned; '", "l": ["a", "b c"], "t": True})
    (line,) = [line for line in markdown.render(result).splitlines() if line.startswith("perfflow run")]
    assert shlex.split(line) == [
        *("perfflow", "run", "flow.yaml", "--set", "x=a'; touch pwned; '", "--set", "l=a,b c", "--set", "t=true"),
        *("--seed", "1"),
    ]


def test_sections_without_data_are_left_out() -> None:
    text = markdown.render(judged(ended("make"), steps=[planned("make", role="work")]))
    headings = re.findall(r"^##+ (.*)$", text, re.MULTILINE)
    assert headings == ["Performance Report: Component", "Why", "How to reproduce it"]
    assert "Further figures" not in text


def test_a_first_run_has_values_and_no_empty_columns() -> None:
    text = markdown.render(single())
    found = tables(parsed(text))
    assert found["Baseline"] == [
        ["Benchmark", "Metric", "Value", "Samples"],
        ["`nap`", "`time p50`", "20.0 ms (n=3)", "3"],
    ]
    assert "3 samples are too few for a 95% interval" in text
    assert "Benchmarks" not in found


def test_rows_of_a_benchmark_stand_together() -> None:
    names = [row[0] for row in tables(parsed(markdown.render(everything())))["Benchmarks"][1:]]
    assert names == sorted(names, key=names.index)


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("everything", everything()),
        ("single", single()),
        ("stored", stored()),
        ("kernels", kernels()),
        ("gpu", on_gpu()),
    ],
)
def test_golden(name: str, result: Result) -> None:
    """To accept a change: look at the .got file, then move it over the golden one."""
    golden, got = GOLDEN / f"{name}.md", GOLDEN / f"{name}.md.got"
    text = markdown.render(result)
    if golden.exists() and golden.read_text(encoding="utf-8") == text:
        got.unlink(missing_ok=True)
        return
    got.write_text(text, encoding="utf-8")
    raise AssertionError(f"differs from {golden}: see {got}")


@pytest.mark.parametrize(("count", "opens"), [(MOST_OPENING, True), (MOST_OPENING + 1, False), (70, False)])
def test_a_report_opens_with_little_evidence_and_folds_much(count: int, opens: bool) -> None:
    names = [f"b{number}" for number in range(count)]
    events = [event for name in names for event in [*pairs(name, [1.0] * 6, None), ended(name)]]
    lines = markdown.render(judged(*events, steps=[planned(name) for name in names])).splitlines()
    evidence = [number for number, line in enumerate(lines) if line.startswith("perf: ")]
    assert len(evidence) == count
    assert (evidence[0] < lines.index("### Baseline")) is opens
    assert ("<details><summary>Evidence</summary>" in lines) is not opens
