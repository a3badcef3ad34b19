"""The sections of a gate: regressions, blamed functions and owners, tasks, and each gate with its evidence."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perfflow.model.criteria import Accepted
from perfflow.model.result import Attribution, HotspotResult, Result
from perfflow.model.targets import matches
from perfflow.report import markdown, terminal
from perfflow.report.blame import MOST_COMMITS
from perfflow.report.html import document
from perfflow.report.page import page_of
from perfflow.report.payloads.comment import comment
from perfflow.report.sanitize import cells
from perfflow.report.text_table import MOST_ROWS
from perfflow.store.result_file import read, to_text
from perfflow.store.sample_order import TakingOrder
from tests.report.gated import BLAMED, ROUTE, advised, as_gate, gated, hostile_gate, passed
from tests.report.results import HOSTILE, everything, single, stored, wave
from tests.report.test_many import suite
from tests.report.test_markdown import check_safe, parsed, tables
from tests.verdict.records import criteria, ended, judged, pairs, planned
from tests.workflow.drafts import BENCH, opened

GOLDEN = Path(__file__).parent / "golden"
SECTIONS = [
    *("Regression Summary", "Hotspot Analysis", "Impact Assessment", "Recommendations", "Action Items", "Gates"),
    "Routing",
]


def shown(result: Result, width: int = 100, *, unicode: bool = True) -> str:
    return terminal.render(result, width=width, color=False, unicode=unicode, where=".perfflow/runs/x/report.md")


def headings(result: Result) -> list[str]:
    return re.findall(r"^### (.*)$", markdown.render(result), re.MULTILINE)


def section(result: Result, title: str) -> str:
    return markdown.render(result).split(f"\n### {title}\n")[1].split("\n### ")[0]


def gate(*events: dict[str, Any], **keys: Any) -> Result:
    return as_gate(judged(*events, ended("b"), **keys))


def gate_lines(result: Result) -> dict[str, tuple[str, str]]:
    rows = tables(parsed(markdown.render(result)))["Gates"][1:]
    return {name: (status, evidence) for name, status, evidence in rows}


@pytest.mark.parametrize("result", [gated(), passed()])
def test_a_gate_has_one_pair_of_names_on_every_page(result: Result) -> None:
    page = re.sub(r"<(script|style).*?</\1>", "", document.render(result, TakingOrder({})), flags=re.DOTALL)
    for text in (re.sub(r'class="[^"]*"', "", page), markdown.render(result), comment(result), shown(result, 200)):
        assert re.search(r"\b[Hh]ead\b", text)
        # The evidence lines have a grammar of their own.
        assert not re.findall(r"baseline|candidate|optimized", text.replace("Δ vs baseline", ""), re.IGNORECASE)


@pytest.mark.parametrize(("name", "result"), [("gated", gated()), ("gate-passed", passed()), ("advised", advised())])
def test_golden(name: str, result: Result) -> None:
    """To accept a change: look at the .got file, then move it over the golden one."""
    golden, got = GOLDEN / f"{name}.md", GOLDEN / f"{name}.md.got"
    text = markdown.render(result)
    if golden.exists() and golden.read_text(encoding="utf-8") == text:
        got.unlink(missing_ok=True)
        return
    got.write_text(text, encoding="utf-8")
    raise AssertionError(f"differs from {golden}: see {got}")


@pytest.mark.parametrize(
    ("name", "width", "unicode"), [("gated", 100, True), ("gated-60", 60, True), ("gated-ascii", 80, False)]
)
def test_golden_screens(name: str, width: int, unicode: bool) -> None:
    golden, got = GOLDEN / f"{name}.txt", GOLDEN / f"{name}.txt.got"
    text = shown(gated(), width, unicode=unicode)
    assert len(text.splitlines()) <= terminal.MOST_ROWS
    if golden.exists() and golden.read_text(encoding="utf-8") == text:
        got.unlink(missing_ok=True)
        return
    got.write_text(text, encoding="utf-8")
    raise AssertionError(f"differs from {golden}: see {got}")


def test_the_sections_of_a_gate_stand_in_their_order() -> None:
    assert [title for title in headings(gated()) if title in SECTIONS] == SECTIONS


@pytest.mark.parametrize("result", [everything(), single(), stored()])
def test_where_no_two_revisions_are_compared_there_are_none_of_them(result: Result) -> None:
    # Recommendations from a profile need no comparison.
    assert not set(headings(result)) & (set(SECTIONS) - {"Recommendations"})


def test_advice_and_a_route_need_no_comparison() -> None:
    assert [title for title in headings(advised()) if title in SECTIONS] == ["Recommendations", "Routing"]
    assert "next: look at parse_object (src/parse.rs:214)\n      git show 3fa2c1d\n" in shown(advised())


def test_what_nothing_is_known_of_is_left_out() -> None:
    assert [title for title in headings(passed()) if title in SECTIONS] == ["Regression Summary", "Gates", "Routing"]


def test_a_page_is_made_from_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(to_text(gated()), encoding="utf-8")
    assert markdown.render(read(path)) == markdown.render(gated())
    assert shown(read(path)) == shown(gated())


def test_each_row_that_gates_is_counted_once() -> None:
    result = gated()
    counts = tables(parsed(section(result, "Regression Summary")))[""][:2]
    counted = dict(zip(*counts, strict=True))
    silent = {"suite/gone", "broken"}
    assert sum(map(int, counted.values())) == sum(row.gating for row in result.benchmarks) + len(silent)
    assert counted == {
        "Improved": "1",
        "Same": "2",
        "Concern": "2",
        "Action": "2",
        "Unproven": "1",
        "Not run": "2",
        "New": "1",
        "Removed": "1",
        "Regressed below concern": "1",
        "Accepted": "1",
    }


@pytest.mark.parametrize("change", [0.0, 0.5])
def test_an_empty_attribution_says_nothing(change: float) -> None:
    result = gate(*pairs("b", wave(1, 1, 0.01), wave(1, 1 + change, 0.01)))
    assert "Hotspot Analysis" not in headings(result)
    assert ("Action Items" in headings(result)) == (change > 0)


@pytest.mark.parametrize(
    ("factor", "metric", "action", "status", "evidence"),
    [
        (
            1.03,
            "time",
            0.1,
            "✅ pass",
            r"b time: \+3.0%, under the concern threshold of 5% \(worst of 1\)",
        ),
        (0.7, "time", 0.1, "✅ pass", r"b time: -30.0%, improved \(worst of 1\)"),
        (1.07, "time", 0.1, "✅ concern", r"1 of 1: b time: \+7.0%, over the concern threshold of 5%"),
        (1.25, "time", 0.1, "❌ fail", r"1 of 1: b time: \+25.0%, over the action threshold of 10%"),
        (1.25, "time", 0.3, "✅ concern", r"1 of 1: b time: \+25.0%, over the concern threshold of 5%"),
        (0.75, "throughput", 0.1, "❌ fail", r"1 of 1: b throughput: -25.0%, over the action threshold of 10%"),
        (0.98, "throughput", 0.1, "✅ pass", r"b throughput: -2.0%, same \(worst of 1\)"),
    ],
)
def test_a_gate_says_by_which_figure(factor: float, metric: str, action: float, status: str, evidence: str) -> None:
    events = pairs("b", wave(1, 1, 0.001), wave(1, factor, 0.001), metric)
    lines = gate_lines(gate(*events, wanted=criteria(action=action)))
    assert lines["regressions"] == (status, evidence)
    assert lines["review:gate:perf"][0] == ("❌ fail" if "fail" in status else "✅ pass")


def test_a_gate_that_is_not_settled_says_how_far_it_reaches() -> None:
    result = gate(*pairs("b", wave(1, 1, 1.5), wave(1, 1, 1.2)))
    assert result.verdict == "unproven"
    status, evidence = gate_lines(result)["regressions"]
    assert status == "❔ unproven"
    assert re.fullmatch(r"1 of 1 unproven: b time", evidence)


@pytest.mark.parametrize(("until", "status"), [("2026-01-02", "✅ accepted"), ("2026-01-01", "❌ fail")])
def test_a_trade_off_is_named_until_its_date(until: str, status: str) -> None:
    wanted = criteria(accepted=[Accepted("b", 0.3, "it is safer", until)])
    result = gate(*pairs("b", wave(1, 1, 0.01), wave(1, 1.25, 0.01)), wanted=wanted)
    found, evidence = gate_lines(result)["regressions"]
    assert found == status
    assert (result.verdict == "pass") == ("accepted" in status)
    if result.verdict == "pass":
        assert f"accepted up to 30% until {until} \\(action threshold 10%\\)" in evidence
        assert f"accepted up to 30% until {until}: it is safer" in section(result, "Regression Summary")
        assert f"- [ ] Fix before {until}: `b time`" in section(result, "Action Items")


def test_globs_with_thresholds_of_their_own_are_gates_of_their_own() -> None:
    lines = gate_lines(gated())
    assert lines["regressions `io/**`"][0] == "❌ fail"
    assert "threshold of 20%" in lines["regressions `io/**`"][1]
    assert lines["targets `core/*`"] == ("✅ pass", "10 of 10 met")


def test_an_owner_is_who_touched_it_or_whom_it_is_routed_to() -> None:
    items = section(gated(), "Action Items")
    assert re.search(
        r"^- \[ \] Fix `core/encode time`: .*src/parse\.rs:214.*3fa2c1d.* \(owner: Ada\)$", items, re.MULTILINE
    )
    assert re.search(r"^- \[ \] Fix `io/read throughput`: .* \(owner: author\)$", items, re.MULTILINE)
    built_in = ROUTE.model_copy(update={"rule": "regression-spread", "to": "profile-more"})
    alone = gated().model_copy(update={"routes": [built_in]})
    assert re.search(
        r"^- \[ \] Fix `io/read throughput`: .* \(owner: –\)$", section(alone, "Action Items"), re.MULTILINE
    )


def test_a_terminal_names_the_function_and_its_commit_in_place_of_the_bare_reason() -> None:
    text = shown(gated(), 160)
    assert (
        "  why: core/encode +13.3% in parse_object src/parse.rs:214 (75% of it)"
        ' by 3fa2c1d "Parse twice, to be sure"\n' in text
    )
    assert "regressed: core/encode" not in text
    assert "regressed: io/read throughput -30.0%" in text
    assert "next: look at parse_object (src/parse.rs:214)\n      git show 3fa2c1d\n" in text


def test_one_function_that_slows_several_benchmarks_is_told_once() -> None:
    also = [item.model_copy(update={"benchmark": "io/read", "metric": "throughput"}) for item in BLAMED[:1]]
    text = shown(gated().model_copy(update={"attributions": [*BLAMED, *also]}), 160)
    assert text.count("in parse_object") == 1
    assert "why: core/encode +13.3% and 1 more in parse_object" in text
    assert "regressed: io/read" not in text


def test_only_what_fails_has_its_functions_on_a_terminal() -> None:
    blamed = [item.model_copy(update={"benchmark": "core/warned"}) for item in BLAMED]
    assert "in parse_object" not in shown(gated().model_copy(update={"attributions": blamed}))


def test_many_commits_and_functions_are_counted() -> None:
    commits = BLAMED[0].commits * 5
    blamed = [item.model_copy(update={"commits": commits}) for item in [BLAMED[0]] * (MOST_ROWS + 7)]
    result = gated().model_copy(update={"attributions": blamed})
    text = section(result, "Hotspot Analysis")
    assert text.count("`parse_object`") == MOST_ROWS
    assert "7 more are in `result.json`." in text
    assert f" and {len(commits) - MOST_COMMITS} more |" in text
    others = [item.model_copy(update={"function": f"f{number}"}) for number, item in enumerate(blamed)]
    screen = shown(result.model_copy(update={"attributions": others}))
    assert f"… {len(blamed) - terminal.MOST_CULPRITS + 1} more functions in result.json" in screen
    assert len(screen.splitlines()) <= terminal.MOST_ROWS


def test_a_cost_that_is_not_known_is_a_dash() -> None:
    unknown = Attribution(
        benchmark="core/encode",
        metric="time",
        step="p",
        tool="perf",
        function="f",
        unit="s",
        baseline=None,
        candidate=0.5,
        change=None,
        share=None,
    )
    text = section(gated().model_copy(update={"attributions": [unknown]}), "Hotspot Analysis")
    assert "| `f` | – | – → 500 ms | – | `perf` | – |" in text
    assert "Crate" not in text


def test_a_large_gate_stays_within_its_limits() -> None:
    result = as_gate(suite())
    page = markdown.render(result)
    assert len(page.encode()) < 200_000
    assert "regressions | ❌ fail | 1 of 300: case299 instructions: \\+100.0%, over the action threshold of 10%" in page
    assert len(section(result, "Regression Summary").splitlines()) < 12
    assert len(shown(result).splitlines()) <= terminal.MOST_ROWS


def test_of_many_regressions_the_page_shows_what_matters() -> None:
    events = [event for number in range(MOST_ROWS + 100) for event in _regressing(number)]
    steps = [planned(f"b{number}") for number in range(MOST_ROWS + 100)]
    result = as_gate(judged(*events, steps=steps))
    for title in ("Regression Summary", "Impact Assessment", "Action Items"):
        assert "100 more are in `result.json`." in section(result, title), title
    assert "300 of 300: b0 instructions" in section(result, "Gates")
    assert "; b3 instructions: \\+100.0%, over the action threshold of 10% and 296 more" in section(result, "Gates")


def test_that_no_function_stands_out_is_said() -> None:
    """Only if both sides have a profile in the unit of the metric; otherwise nothing is known."""
    result = gated()
    spot = {"step": "cpu", "rank": 1, "location": "f", "file": "", "line": 0, "share": 0.5, "source": "perf"}
    spots = [
        HotspotResult.model_validate(spot | {"benchmark": name, "tree": tree, "unit": unit, "cause": "", "impact": ""})
        for name, unit in (
            ("core/encode", "time"),
            ("core/warned", "time"),
            ("io/read", "bytes"),
            ("core/same", "time"),
        )
        for tree in ("baseline", "candidate")
    ]
    told = section(result.model_copy(update={"hotspots": spots}), "Hotspot Analysis")
    _, said = told.split("No function stands out")
    assert re.findall(r"^- (.*)$", said, re.MULTILINE) == ["`core/warned` `time`"]
    assert "No function stands out" not in markdown.render(result)
    alone = section(result.model_copy(update={"hotspots": spots, "attributions": []}), "Hotspot Analysis")
    assert "- `core/encode` `time`" in alone


def _regressing(number: int) -> list[dict[str, Any]]:
    return [*pairs(f"b{number}", [100.0], [200.0], "instructions", exact=True), ended(f"b{number}")]


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_no_name_breaks_a_gate(name: str) -> None:
    result = hostile_gate(name)
    # An entry of `accepted` with a name of 1000 letters is not proposed.
    proposed = ("yaml",) if len(name) < 300 else ()
    tokens = check_safe(markdown.render(result), ("text", *proposed, "sh", "sh"))
    found = [token.content for before, token in itertools.pairwise(tokens) if before.type == "heading_open"]
    assert [title for title in found if title in SECTIONS] == SECTIONS
    for width in (40, 80, 120):
        text = shown(result, width)
        # Unmet targets are shown even if they take more rows.
        missed = sum(target.status != "met" for target in result.targets)
        assert len(text.splitlines()) <= terminal.MOST_ROWS + (missed if width == 40 else 0)
        assert all(cells(line) <= width and line.isprintable() for line in text.split("\n"))


@given(st.text(max_size=40) | st.text(alphabet="`|\\<>[]()*_~#@:/!-+=.1w \n", max_size=24), st.integers(20, 140))
@example("**", 20)
def test_any_text_anywhere_in_a_gate(name: str, width: int) -> None:
    result = hostile_gate(name)
    check_safe(markdown.render(result), ("text", "yaml", "sh", "sh"))
    assert all(cells(line) <= width and line.isprintable() for line in shown(result, width).split("\n"))


def slower_rows(*names: str) -> Result:
    """Return a gate in which the named benchmarks got a third slower, and `other/a` and `same/b` did not."""
    factors = {**dict.fromkeys(names, 1.3), "other/a": 1.0, "same/b": 1.0}
    events = [
        event
        for name, factor in factors.items()
        for event in (*pairs(name, wave(0.004, 1, 0.02), wave(0.004, factor, 0.02)), ended(name))
    ]
    result = judged(*events, steps=[planned(name) for name in factors])
    one = [BLAMED[0].model_copy(update={"benchmark": name}) for name in names]
    bisect = "perfflow bisect flow.yaml --good aaa --bad bbb --only suite"
    route = ROUTE.model_copy(update={"brief": ROUTE.brief.model_copy(update={"commands": ["perfflow gate x", bisect]})})
    return as_gate(result, attributions=one, routes=[route])


def test_red_gate_tells_one_cause_of_many_rows_once_in_ten_lines() -> None:
    result = slower_rows(*(f"decode/{number}" for number in range(20)))
    writer = markdown.MarkdownWriter(page_of(result))
    lines = [line for line in writer.joined(writer.section("culprits")).splitlines() if line]
    assert len(lines) <= 10
    (cause,) = [line for line in lines if "parse_object" in line]
    assert cause.startswith("- `decode/0` +30.0% and 19 more: `parse_object` `src/parse.rs:214`, 75% of it")
    assert '3fa2c1d "Parse twice, to be sure"' in cause
    assert "perfflow bisect flow.yaml --good aaa --bad bbb --only suite" in lines
    told = " ".join(comment(result).splitlines()[:22])
    assert all(text in told for text in ("FAIL", "`parse_object`", "perfflow bisect", "accepted:"))


def test_red_gate_proposes_entries_that_accept_the_failing_rows_and_no_other(tmp_path: Path) -> None:
    result = slower_rows("decode/a", "decode/b", "other/slow", 'odd" {name}')
    page = page_of(result)
    assert page.findings.red is not None
    accepted = opened(tmp_path, "\n".join((*page.findings.red.accept, BENCH))).plan.criteria.accepted
    failing = {row.name for row in result.benchmarks if row.level == "action"}
    assert {
        row.name for row in result.benchmarks if any(matches(item.benchmark, row.name) for item in accepted)
    } == failing
    assert {item.benchmark for item in accepted} == {"decode/**", "other/slow", 'odd" {name}'}
    assert all(0.3 < item.change < 0.4 and item.metric == "time" for item in accepted)


def test_red_gate_names_what_has_no_profile() -> None:
    result = slower_rows("decode/a", "decode/b")
    red = page_of(result.model_copy(update={"attributions": result.attributions[:1]})).findings.red
    assert red is not None
    assert (red.unprofiled, red.unexplained) == (("decode/b",), (("decode/b", "+30.0%"),))
