"""The comment and the job summary: within their limits, balanced, and safe for any content."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfflow.model.result import Result
from perfflow.report.payloads.comment import COMMENT_BYTES, SUMMARY_BYTES, comment, marker, summary
from perfflow.report.payloads.run_log import MOST_HOPS, Hop, earlier_hops, with_hop
from perfflow.report.text_table import LETTERS
from tests.report.exported import HEAD, gated, hostile_gate, large
from tests.report.optimized import optimized
from tests.report.results import JOINED_OR_EACH, everything, single, stored
from tests.report.test_markdown import every, parsed, tables
from tests.verdict.records import ended, judged, pairs, planned

OWN_HTML = re.compile(r"<details><summary>[A-Z][a-z, ]+</summary>\n|</details>\n|<!-- perfflow:[\w.:-]+ -->\n?")
LINES = (
    "::error title=x::y",
    "::add-mask::x",
    "##[error]x",
    "<!-- perfflow:flow:x -->",
    "<!-- perfflow:hops:end -->",
    "-->",
)


def check_safe(text: str, *, found_again: bool) -> None:
    """Check what must hold for every comment and summary."""
    tokens = parsed(text)
    html = [token.content for token in every(tokens) if token.type in ("html_block", "html_inline")]
    for content in html:
        assert "".join(OWN_HTML.split(content)).strip() == "", content
    assert "".join(html).count("<details>") == "".join(html).count("</details>")
    assert text.count("<!--") == text.count("-->") == (3 if found_again else 0)
    for token in every(tokens):
        assert token.type not in ("link_open", "image", "hr", "blockquote_open", "code_block", "s_open", "em_open")
    plain = "".join(token.content for token in every(tokens) if token.type == "text")
    assert not re.search(r"@\w|#\d|\bGH-\d|://|\bwww\.", plain, re.IGNORECASE), plain
    assert not re.search(r"^\s*::|##\[", text, re.MULTILINE)
    assert all(letter.isprintable() or letter in "\n\t\u200b" for letter in text)
    for title, rows in tables(tokens).items():
        assert len({len(row) for row in rows}) == 1, title


def check_whole(text: str, result: Result, most: int) -> None:
    """Check the limit in bytes and in UTF-16 units, and the parts that are never cut."""
    assert len(text.encode()) <= most
    assert len(text.encode("utf-16-le")) // 2 <= most
    lines = text.splitlines()
    if result.gate:
        assert f"{result.gate.name} = {result.gate.status}" in lines
        said = str(result.verdict).upper()
        assert any(line.startswith(("**❌", "**✅", "**❔")) and said in line for line in lines)


def test_a_gate_is_told_with_its_function_its_commit_and_where_it_goes() -> None:
    text = comment(gated())
    check_safe(text, found_again=True)
    found = tables(parsed(text))
    assert found["Hotspot Analysis"][1] == [
        *("`encode`", "`time`", "`parse_object`", "`src/parse.rs:214`", "1.00 ms → 1.50 ms", "80%", "`perf`"),
        "`3fa2c1d` Parse twice",
    ]
    gates = {line[0]: line[1:] for line in found["Gates"][1:]}
    assert gates["review:gate:perf"] == ["❌ fail", "the verdict is fail"]
    assert gates["regressions"][0] == "❌ fail"
    assert gates["regressions"][1] == "1 of 4 over the action threshold"
    assert "**Next:** perf-engineer\n" in text
    assert "Route: `perf-engineer` by the rule `regression-localized`" in text
    assert [line[0] for line in found["Benchmarks"][1:]] == ["`decode`", "", "`encode`", "`noisy`"]
    bars = [line[5].strip("`") for line in found["Benchmarks"][1:]]
    assert all(len(bar) == LETTERS and "●" in bar for bar in bars)


def test_no_section_stands_twice_in_a_summary() -> None:
    headings = re.findall(r"^### (.*)$", summary(gated()), re.MULTILINE)
    assert len(headings) == len({*headings})
    assert {"Gates", "Routing", "Hotspot Analysis"} <= {*headings}


@pytest.mark.parametrize("name", [*JOINED_OR_EACH, *LINES], ids=ascii)
def test_no_name_acts_or_breaks_the_layout(name: str) -> None:
    result = hostile_gate(name)
    check_safe(comment(result), found_again=True)
    check_safe(summary(result), found_again=False)
    check_whole(comment(result), result, COMMENT_BYTES)


@given(st.text(max_size=40) | st.text(alphabet="`|\\<>[]()*_~#@:/!-+=.1w \n", max_size=24))
def test_any_text_anywhere(name: str) -> None:
    check_safe(comment(hostile_gate(name)), found_again=True)
    check_safe(summary(hostile_gate(name)), found_again=False)


WORDS = st.sampled_from(["x", "wörd|", "日本語", "e\u0301" * 9, "`"]).flatmap(
    lambda word: st.integers(0, 600).map(lambda times: word * times)
)
DECISIONS = [("regressed", "action"), ("unproven", None), ("removed", None), ("same", "ok"), ("improved", "ok")]


@settings(max_examples=8)
@given(
    st.lists(WORDS, min_size=1, max_size=40).flatmap(lambda few: st.integers(1, 12).map(lambda times: few * times)),
    st.lists(st.sampled_from(["met", "not met", "unproven", "not measured"]), min_size=1),
    st.lists(st.sampled_from(DECISIONS), min_size=1),
    st.integers(0, 3).map(lambda size: "because " * 10**size),
)
def test_any_result_fits(
    names: list[str], statuses: list[str], decisions: list[tuple[str, str | None]], detail: str
) -> None:
    result = large(names, statuses, decisions, detail)
    for text, most, found_again in ((comment(result), COMMENT_BYTES, True), (summary(result), SUMMARY_BYTES, False)):
        check_whole(text, result, most)
        check_safe(text, found_again=found_again)


def test_rows_of_what_failed_stay_when_everything_else_goes() -> None:
    names = [f"group/{number:03d}" for number in range(180)]
    # A long detail in each target makes the page three times too long; the failed ones are a twelfth of it.
    result = large(names, ["met"] * 11 + ["not met"], [("same", "ok")] * 11 + [("regressed", "action")], "d" * 900)
    text = comment(result)
    assert len(text.encode()) <= COMMENT_BYTES
    for number in range(11, 180, 12):
        assert f"| ❌ not met | `{number}group/{number:03d} time p50` |" in text
        assert f"| `{number}group/{number:03d}` | `time` |" in text
    assert "unchanged rows" in text.partition("Left out because of the size limit")[2]
    assert "`0group/000`" not in text


def test_what_does_not_fit_at_all_is_counted() -> None:
    result = large(["x" * 900] * 150, ["not met"], [("regressed", "action")], "d" * 1900)
    text = comment(result)
    kept = len([line for line in text.splitlines() if line.startswith("| ❌ not met |")])
    assert 0 < kept < 150
    assert f"{150 - kept} more are in `result.json`." in text


def test_a_single_row_too_long_to_show_does_not_take_the_others_with_it() -> None:
    result = large(["a", "b", "c"], ["not met"], [("regressed", "action")], "d")
    targets = [result.targets[0].model_copy(update={"detail": "d" * 80_000}), *result.targets[1:]]
    text = comment(result.model_copy(update={"targets": targets}))
    assert "`1b time p50`" in text
    assert "`0a time p50`" not in text
    assert "1 more are in `result.json`." in text


def test_the_same_result_gives_the_same_bytes() -> None:
    assert comment(gated()) == comment(gated())
    for result in (everything(), single(), stored(), optimized()):
        check_safe(comment(result), found_again=True)
        assert summary(result) == summary(result)


def test_what_could_not_be_measured_is_not_called_unchanged() -> None:
    result = judged(*pairs("b", [0.01] * 8, [0.01] * 8), steps=[planned("b"), planned("c")], end=None)
    assert result.verdict == "error"
    for text in (comment(result), summary(result)):
        assert "ERROR" in text
        assert "the run did not finish" in text
    assert "Not everything was measured" in comment(result)


def test_the_marker_is_of_the_workflow_and_the_machine() -> None:
    assert marker(gated()) == "<!-- perfflow:flow:0123456789abcdef -->"
    assert comment(gated()).splitlines()[0] == marker(gated())
    named = {marker(judged(ended("b"), workflow=name)) for name in ("a b", "a-b", "a--b", "-->", "a/../b.yaml", "")}
    assert len(named) == 6
    assert all(re.fullmatch(r"<!-- perfflow:[\w.-]+:[0-9a-f]+ -->", text) and text.count("--") == 2 for text in named)


def test_each_run_adds_a_line_to_the_log() -> None:
    first = comment(gated())
    (hop,) = earlier_hops(first)
    assert (hop.run, hop.revision, hop.verdict, hop.route) == ("run-1", HEAD[:12], "FAIL", "perf-engineer")
    again = gated()
    again = again.model_copy(update={"run": again.run.model_copy(update={"id": "run-2"}), "verdict": "pass"})
    second = comment(again, earlier_hops(first.replace("\n", "\r\n")))
    assert [(item.run, item.verdict) for item in earlier_hops(second)] == [("run-1", "FAIL"), ("run-2", "PASS")]
    assert comment(again, earlier_hops(second)) == second, "exported twice is one line"


def test_the_log_keeps_the_newest() -> None:
    hops: tuple[Hop, ...] = ()
    for number in range(MOST_HOPS + 5):
        hops = with_hop(hops, Hop(f"run-{number}", "–", "PASS", "–", "fine"))
    assert [hop.run for hop in hops] == [f"run-{number}" for number in range(5, MOST_HOPS + 5)]
    assert earlier_hops(comment(gated(), hops))[:-1] == hops[1:]


def test_of_an_edited_comment_only_lines_of_the_known_form_are_carried_on() -> None:
    good = "- `run-0` at `abc`: PASS, next `–`: `@team ##[error] <!-- x -->`"
    bad = ["<script>alert(1)</script>", "- [x](javascript:1)", "::error::x", "- `a` at `b`: WON, next `c`: `d`"]
    bad += ["- `run` at `x`: PASS, next `y`: `z` @team", "<!-- perfflow:flow:0123456789abcdef -->"]
    previous = "\n".join(["<!-- perfflow:hops:begin -->", *bad, good, "<!-- perfflow:hops:end -->", good, ""])
    text = comment(gated(), earlier_hops(previous))
    check_safe(text, found_again=True)
    assert [hop.run for hop in earlier_hops(text)] == ["run-0", "run-1"]
    assert earlier_hops(previous.replace("hops:end", "hops:and")) == ()


@given(st.text(max_size=60), st.text(max_size=400))
def test_a_line_of_the_log_is_read_back(run: str, headline: str) -> None:
    hop = Hop(run, "abc", "PASS", "next", headline)
    text = comment(single(), (hop,))
    (back, _) = earlier_hops(text)
    assert back.line() == hop.line()
    check_safe(text, found_again=True)


def test_a_comment_names_a_benchmark_where_it_says_what_became_of_it() -> None:
    text, whole = comment(gated()), summary(gated())
    tables = [line for line in text.splitlines() if "`noisy`" in line]
    assert len(tables) == 1
    assert "unproven: about 1 more pair would settle it" in tables[0]
    # Once in a table, and once in the note on the medians.
    assert text.count("noisy") == 2 < whole.count("noisy")


def test_a_gate_has_the_columns_of_a_gate() -> None:
    for text in (comment(gated()), summary(gated())):
        assert re.search(r"\| Benchmark \| Metric \| Base \| Head \| Change \| \S+ … \S+ \| Pairs \| Decision \|", text)
        assert "Optimized" not in text
        assert "Speedup" not in text
