"""The sections of a gate: regressions, blamed functions and owners, tasks, and each gate with its evidence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.criteria import Accepted, criteria_from_json
from perfflow.model.result import Attribution, HotspotResult, Result
from perfflow.model.targets import matches
from perfflow.report import markdown, terminal
from perfflow.report.blame import MOST_COMMITS
from perfflow.report.gate_table import GateLine, gates_of
from perfflow.report.html import document
from perfflow.report.page import page_of
from perfflow.report.payloads.comment import comment
from perfflow.report.text_table import MOST_ROWS
from perfflow.store.result_file import read, to_text
from perfflow.store.sample_order import TakingOrder
from tests.report.gated import BLAMED, ROUTE, as_gate, gated, passed
from tests.report.rendered import check_golden, headings, rows, screen, section
from tests.report.results import wave
from tests.report.test_terminal import suite
from tests.verdict.records import criteria, ended, judged, pairs, planned
from tests.workflow.drafts import BENCH, opened

SECTIONS = [
    *("Regression Summary", "Hotspot Analysis", "Impact Assessment", "Recommendations", "Action Items", "Gates"),
    "Routing",
]


def gate(*events: dict[str, Any], **keys: Any) -> Result:
    return as_gate(judged(*events, ended("b"), **keys))


def slower(factor: float, metric: str = "time", **keys: Any) -> Result:
    return gate(*pairs("b", wave(1, 1, 0.001), wave(1, factor, 0.001), metric), **keys)


def blaming(*blamed: Attribution) -> Result:
    return gated().model_copy(update={"attributions": list(blamed)})


def gates(result: Result) -> tuple[GateLine, ...]:
    return tuple(gates_of(result, criteria_from_json(result.criteria)).shown)


@pytest.mark.parametrize("result", [gated(), passed()])
def test_a_gate_has_one_pair_of_names_on_every_page(result: Result) -> None:
    page = re.sub(r"<(script|style).*?</\1>", "", document.render(result, TakingOrder({})), flags=re.DOTALL)
    for text in (re.sub(r'class="[^"]*"', "", page), markdown.render(result), comment(result), screen(result, 200)):
        assert re.search(r"\b[Hh]ead\b", text)
        # The evidence lines have a grammar of their own.
        assert not re.findall(r"baseline|candidate|optimized", text.replace("Δ vs baseline", ""), re.IGNORECASE)


def test_a_page_is_made_from_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(to_text(gated()), encoding="utf-8")
    assert markdown.render(read(path)) == markdown.render(gated())
    assert screen(read(path)) == screen(gated())


@pytest.mark.parametrize("change", [0.0, 0.5])
def test_an_empty_attribution_says_nothing(change: float) -> None:
    found = headings(slower(1 + change))
    assert "Hotspot Analysis" not in found
    assert ("Action Items" in found) == (change > 0)


def accepted_until(date: str) -> Result:
    accepted = [Accepted("b", 0.3, "it is safer", date), Accepted("*", 0.1, "it is safer", date)]
    return slower(1.25, wanted=criteria(accepted=accepted))


def checked() -> Result:
    """Return a run with a failed check, and a failed one that is allowed to fail."""
    steps = [planned("b"), planned("tests", role="check"), planned("lint", role="check", allowed=True)]
    events = [ended("b"), ended("tests", "failed", "exited with 1"), ended("lint", "failed", "exited with 1")]
    return judged(*pairs("b", [0.01] * 6, [0.01] * 6), *events, steps=steps)


ALONE = pairs("b", [0.01] * 6, None)
GATES: dict[str, Result] = {
    "under the concern threshold": slower(1.03),
    "improved": slower(0.7),
    "over the concern threshold": slower(1.07),
    "over the action threshold": slower(1.25),
    "over the concern threshold, where action is 30%": slower(1.25, wanted=criteria(action=0.3)),
    "less throughput over the action threshold": slower(0.75, "throughput"),
    "the same throughput": slower(0.98, "throughput"),
    "not settled": gate(*pairs("b", wave(1, 1, 1.5), wave(1, 1, 1.2))),
    "accepted until the day of the run": accepted_until("2026-01-02"),
    "accepted until the day before": accepted_until("2026-01-01"),
    "a target without a figure": judged(*ALONE, ended("b"), wanted=criteria({"b": {"time p99": "<1s"}})),
    "a failed check and an allowed one": checked(),
    "a step that failed": judged(*ALONE, ended("b", "failed", "exited with 139")),
    "a benchmark that was not run": judged(ended("b"), steps=[planned("b", expect=["b/fast"])]),
    "a run without its end": judged(*pairs("b", [0.01] * 6, [0.01] * 6), end=None),
}


def test_each_gate_is_told_with_the_figures_behind_its_status() -> None:
    parts = [
        f"{name}: {result.verdict}\n"
        + "".join(f"  {line.gate}: {line.status}: {line.evidence}\n" for line in gates(result))
        for name, result in GATES.items()
    ]
    check_golden("gates.txt", "\n".join(parts))


def test_a_trade_off_is_named_with_its_reason_and_its_date() -> None:
    result = accepted_until("2026-01-02")
    assert "accepted up to 30% until 2026-01-02: it is safer" in section(result, "Regression Summary")
    assert "- [ ] Fix before 2026-01-02: `b time`" in section(result, "Action Items")
    assert ["regressions", "✅ accepted"] in [row[:2] for row in rows(result, "Gates")]


def test_without_a_route_of_the_project_nobody_owns_what_no_commit_explains() -> None:
    built_in = ROUTE.model_copy(update={"rule": "regression-spread", "to": "profile-more"})
    items = section(gated().model_copy(update={"routes": [built_in]}), "Action Items")
    assert re.search(r"^- \[ \] Fix `io/read throughput`: .* \(owner: –\)$", items, re.MULTILINE)


def test_one_function_that_slows_several_benchmarks_is_told_once() -> None:
    also = BLAMED[0].model_copy(update={"benchmark": "io/read", "metric": "throughput"})
    text = screen(blaming(*BLAMED, also), 160)
    assert text.count("in parse_object") == 1
    assert "why: core/encode +13.3% and 1 more in parse_object" in text
    assert "regressed: io/read" not in text


def test_only_what_fails_has_its_functions_on_a_terminal() -> None:
    blamed = [item.model_copy(update={"benchmark": "core/warned"}) for item in BLAMED]
    assert "in parse_object" not in screen(blaming(*blamed))


def test_many_commits_and_functions_are_counted() -> None:
    commits = BLAMED[0].commits * 5
    blamed = [BLAMED[0].model_copy(update={"commits": commits})] * (MOST_ROWS + 7)
    text = section(blaming(*blamed), "Hotspot Analysis")
    assert text.count("`parse_object`") == MOST_ROWS
    assert "7 more are in `result.json`." in text
    assert f" and {len(commits) - MOST_COMMITS} more |" in text
    others = [item.model_copy(update={"function": f"f{number}"}) for number, item in enumerate(blamed)]
    shown = screen(blaming(*others))
    assert f"… {len(blamed) - terminal.MOST_CULPRITS + 1} more functions in result.json" in shown
    assert len(shown.splitlines()) <= terminal.MOST_ROWS


def test_a_cost_that_is_not_known_is_a_dash() -> None:
    known: dict[str, Any] = {"benchmark": "core/encode", "metric": "time", "step": "p", "tool": "perf", "unit": "s"}
    unknown = Attribution(**known, function="f", baseline=None, candidate=0.5, change=None, share=None)
    text = section(blaming(unknown), "Hotspot Analysis")
    assert "| `f` | – | – → 500 ms | – | `perf` | – |" in text
    assert "Crate" not in text


def test_a_large_gate_stays_within_its_limits() -> None:
    result = as_gate(suite())
    page = markdown.render(result)
    assert len(page.encode()) < 200_000
    assert "regressions | ❌ fail | 1 of 300: case299 instructions: \\+100.0%, over the action threshold of 10%" in page
    assert len(section(result, "Regression Summary").splitlines()) < 12
    assert len(screen(result).splitlines()) <= terminal.MOST_ROWS


def test_of_many_regressions_the_page_shows_what_matters() -> None:
    names = [f"b{number}" for number in range(MOST_ROWS + 100)]
    events = [
        event for name in names for event in (*pairs(name, [100.0], [200.0], "instructions", exact=True), ended(name))
    ]
    result = as_gate(judged(*events, steps=[planned(name) for name in names]))
    for title in ("Regression Summary", "Impact Assessment", "Action Items"):
        assert "100 more are in `result.json`." in section(result, title), title
    assert "300 of 300: b0 instructions" in section(result, "Gates")
    assert "; b3 instructions: \\+100.0%, over the action threshold of 10% and 296 more" in section(result, "Gates")


def test_that_no_function_stands_out_is_said() -> None:
    """Only if both sides have a profile in the unit of the metric; otherwise nothing is known."""
    result = gated()
    spot = {"step": "cpu", "rank": 1, "location": "f", "file": "", "line": 0, "share": 0.5, "source": "perf"}
    units = {"core/encode": "time", "core/warned": "time", "io/read": "bytes", "core/same": "time"}
    spots = [
        HotspotResult.model_validate(spot | {"benchmark": name, "tree": tree, "unit": unit, "cause": "", "impact": ""})
        for name, unit in units.items()
        for tree in ("baseline", "candidate")
    ]
    told = section(result.model_copy(update={"hotspots": spots}), "Hotspot Analysis")
    _, said = told.split("No function stands out")
    assert re.findall(r"^- (.*)$", said, re.MULTILINE) == ["`core/warned` `time`"]
    assert "No function stands out" not in markdown.render(result)
    alone = section(result.model_copy(update={"hotspots": spots, "attributions": []}), "Hotspot Analysis")
    assert "- `core/encode` `time`" in alone


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
    shown = document.render(result, TakingOrder({}))
    assert shown.index("Next: ") < shown.index("perfflow bisect")
    told = " ".join(comment(result).splitlines()[:22])
    assert all(text in told for text in ("FAIL", "`parse_object`", "perfflow bisect", "accepted:"))


def test_red_gate_proposes_entries_that_accept_the_failing_rows_and_no_other(tmp_path: Path) -> None:
    result = slower_rows("decode/a", "decode/b", "other/slow", 'odd" {name}')
    page = page_of(result)
    assert page.findings.red is not None
    accepted = opened(tmp_path, "\n".join((*page.findings.red.accept, BENCH))).plan.criteria.accepted
    names = [row.name for row in result.benchmarks]
    covered = {name for name in names if any(matches(item.benchmark, name) for item in accepted)}
    assert covered == {row.name for row in result.benchmarks if row.level == "action"}
    assert {item.benchmark for item in accepted} == {"decode/**", "other/slow", 'odd" {name}'}
    assert all(0.3 < item.change < 0.4 and item.metric == "time" for item in accepted)


def test_red_gate_names_what_has_no_profile() -> None:
    result = slower_rows("decode/a", "decode/b")
    red = page_of(result.model_copy(update={"attributions": result.attributions[:1]})).findings.red
    assert red is not None
    assert (red.unprofiled, red.unexplained) == (("decode/b",), (("decode/b", "+30.0%"),))
