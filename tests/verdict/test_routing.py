"""The facts of findings, the first rule that matches, and its brief."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from perfflow.model.criteria import Accepted, Criteria, Route
from perfflow.model.result import Attribution, CommitInfo, HotspotResult, Result, RouteTaken
from perfflow.store.record import Record
from perfflow.verdict.attribution import localized_in
from perfflow.verdict.findings import Findings
from perfflow.verdict.from_result import record_of_result
from perfflow.verdict.judge import judge
from perfflow.verdict.routing import built_in, facts_of, routes_taken
from perfflow.workflow.criteria_checks import FACTS
from tests.verdict.records import REVISIONS, criteria, ended, pairs, planned, record, scaled

COMMIT = CommitInfo(revision="d" * 40, subject="Check twice", author="Ada")
UNTIL = Accepted("core/**", 0.5, "a correct parser is slower", "2026-12-31")


def findings(
    factors: Mapping[str, float | None],
    *events: Mapping[str, Any],
    wanted: Criteria | None = None,
    blamed: Sequence[Attribution] = (),
    spots: Sequence[HotspotResult] = (),
    steps: Sequence[Mapping[str, Any]] = (),
) -> tuple[Findings, Result]:
    """Return a judged gate, given how much slower each candidate is; None without a baseline."""
    known = wanted or Criteria()
    every = [planned(name) for name in factors]
    samples = []
    for name, factor in factors.items():
        samples += pairs(name, scaled(1.0), None if factor is None else scaled(factor))
    ends = map(ended, factors)
    made = record(*samples, *ends, *events, steps=[*every, *steps], criteria=known, trees=REVISIONS)
    return _of(made, known, blamed, spots)


def _of(
    made: Record, known: Criteria, blamed: Sequence[Attribution] = (), spots: Sequence[HotspotResult] = ()
) -> tuple[Findings, Result]:
    result = judge(made, known)
    of_result = (result.benchmarks, result.targets, result.verification)
    return Findings(made, known, str(result.verdict), *of_result, blamed, spots), result


def lost(function: str, share: float, benchmark: str = "core/parse", **keys: Any) -> Attribution:
    known: dict[str, Any] = {"file": "src/parse.rs", "line": 12, "crate": "core", "unit": "s"}
    known |= {"metric": "time", "step": "cpu", "tool": "perf", "baseline": 1.0, "candidate": 1.5, "change": 0.5}
    return Attribution(**(known | {"benchmark": benchmark, "function": function, "share": share} | keys))


def spot(location: str, file: str, benchmark: str = "core/parse") -> HotspotResult:
    known: dict[str, Any] = {"rank": 1, "step": "cpu", "tree": "candidate", "line": 1, "unit": "time"}
    known |= {"source": "perf", "cause": "", "impact": ""}
    return HotspotResult(**known, benchmark=benchmark, location=location, file=file, share=0.2)


def taken(found: Findings) -> RouteTaken:
    (route,) = routes_taken(found)
    return route


CHECK = planned("tests", stage="verify", role="check")
TARGET = criteria({"core/parse": {"time": "<1.02s"}})
CASES: list[tuple[str, str, float | None, dict[str, Any]]] = [
    ("all-passed", "merge", 1.0, {}),
    ("within-threshold", "merge-and-watch", 1.07, {}),
    ("within-threshold", "merge-and-watch", 1.03, {}),
    ("regression-spread", "profile-more", 1.25, {}),
    ("regression-localized", "fix", 1.25, {"blamed": [lost("step", 0.8)]}),
    ("regression-spread", "profile-more", 1.25, {"blamed": [lost(f"f{n}", 0.1) for n in range(10)]}),
    ("trade-off-accepted", "confirm-trade-off", 1.25, {"wanted": criteria(accepted=[UNTIL])}),
    ("baseline-missing", "record-baseline", None, {}),
    ("target-missed", "performance-review", 1.04, {"wanted": TARGET}),
    ("correctness-failed", "fix-correctness", 1.25, {"steps": [CHECK]}),
    ("not-measured", "repair-benchmark", 1.0, {"steps": [planned("x")]}),
]


@pytest.mark.parametrize(("rule", "to", "factor", "case"), CASES)
def test_the_built_in_rules(rule: str, to: str, factor: float | None, case: dict[str, Any]) -> None:
    events = [ended(step["id"], "failed", "exit status 1") for step in case.get("steps", [])]
    route = taken(findings({"core/parse": factor}, *events, **case)[0])
    assert (route.rule, route.to) == (rule, to)
    assert route.why
    assert route.next
    assert rule not in route.next


def test_what_is_unproven_is_measured_on() -> None:
    wide = [1.0, 1.6, 0.7, 1.9, 0.6, 1.4, 0.8, 1.7, 0.9, 1.5] * 2
    found, result = _of(record(*pairs("b", scaled(1.0), wide), ended("b"), trees=REVISIONS), Criteria())
    assert result.verdict == "unproven"
    route = taken(found)
    assert (route.rule, route.to) == ("unproven", "measure-more")
    assert route.brief.regressed == []
    assert "a regression over the action threshold of 10% is not excluded" in route.brief.undecided[0]
    assert route.brief.commands == [f"perfflow gate flow.yaml --base {'b' * 40} --head {'c' * 40} --only b"]


def test_every_built_in_rule_has_a_case() -> None:
    assert {name for name, _ in built_in()} == {rule for rule, *_ in CASES} | {"unproven"}


def test_the_workflows_own_rules_come_first_in_their_order() -> None:
    own = (
        Route('regressions.action.in("io/**")', "io-team"),
        Route('hotspots.region == "decode"', "decoding", "the area has its own people"),
        Route("regressions.action", "never reached"),
    )
    blamed = [lost("step", 0.8, region="decode")]
    route = taken(findings({"core/parse": 1.25}, wanted=replace(Criteria(), routes=own), blamed=blamed)[0])
    assert route.rule == 'routes: hotspots.region == "decode"'
    assert (route.to, route.why) == ("decoding", "the area has its own people")
    # None of them matches, so the built-in rules apply.
    assert taken(findings({"core/parse": 1.0}, wanted=replace(Criteria(), routes=own))[0]).rule == "all-passed"


def test_a_run_without_two_trees_is_routed_by_its_own_rules_alone() -> None:
    found, _ = findings({"b": 1.25})
    found.record.trees = {"baseline": {"kind": "working tree", "revision": "b" * 40}, "candidate": None}
    assert list(routes_taken(found)) == []
    own = replace(found, criteria=replace(Criteria(), routes=(Route("baseline.missing", "nobody"),)))
    assert taken(own).rule == "regression-spread"


def test_a_stored_run_is_routed_again_without_its_workflow() -> None:
    wanted = replace(Criteria(), routes=(Route("regressions.action", "team"),))
    _, result = findings({"b": 1.25}, wanted=wanted)
    assert [route.to for route in result.routes] == ["team"]
    assert judge(record_of_result(result), wanted).routes == result.routes


def test_a_rule_that_cannot_be_evaluated_loses_nothing_and_is_said() -> None:
    wanted = replace(Criteria(), routes=(Route("1 / (regressions - 1) > 0", "x"), Route("regressions", "team")))
    route = taken(findings({"b": 1.25}, wanted=wanted)[0])
    assert route.to == "team"
    assert "routes: 1 / (regressions - 1) > 0 could not be evaluated" in route.why


@pytest.mark.parametrize(
    ("blamed", "spots", "place"),
    [
        ([lost("a", 0.5), lost("b", 0.4)], [], "function"),
        ([lost("a", 0.49), lost("b", 0.4)], [], ""),  # only one file is known
        ([lost("a", 0.3), lost("b", 0.3)], [spot("main", "src/main.rs")], "file"),
        ([lost("a", 0.3), lost("b", 0.3, file="src/b.rs"), lost("c", 0.2, file="c.rs", crate="io")], [], "crate"),
        ([lost("a", 0.3, file="", crate=""), lost("b", 0.3, file="", crate="")], [], ""),
        ([lost("a", 0.9, benchmark="other")], [], ""),
        ([lost("a", 0.9), lost("b", -0.9)], [], "function"),
        ([lost("a", 0.4), lost("b", 0.4, file="b.rs", crate="x"), lost("a", 0.4, metric="instructions")], [], ""),
    ],
)
def test_when_a_regression_is_localized(blamed: list[Attribution], spots: list[HotspotResult], place: str) -> None:
    found, _ = findings({"core/parse": 1.25, "other": 1.0}, blamed=blamed, spots=spots)
    assert localized_in(found) == place
    assert facts_of(found)["hotspots"].localized is bool(place)


def test_each_benchmark_that_regressed_has_to_be_localized() -> None:
    blamed = [lost("a", 0.9), *(lost(f"f{n}", 0.1, benchmark="io/read") for n in range(9))]
    assert localized_in(findings({"core/parse": 1.25, "io/read": 1.25}, blamed=blamed)[0]) == ""
    # The gate did not fail for a regression within its threshold.
    assert localized_in(findings({"core/parse": 1.25, "io/read": 1.07}, blamed=blamed)[0]) == "function"


def test_the_facts_are_those_that_are_documented_and_hold_what_was_found() -> None:
    blamed = [lost("step", 0.8, region="decode", commits=[COMMIT])]
    wanted = criteria(
        {"core/parse": {"time": "<1.1s"}, "gone": {"time": "<1ms"}}, accepted=[replace(UNTIL, until="2025-01-01")]
    )
    found, _ = findings({"core/parse": 1.25, "io": 1.07, "new": 0.8}, wanted=wanted, blamed=blamed)
    facts = facts_of(found)
    for name in FACTS:
        value: Any = facts
        for part in name.split("."):
            value = value[part] if isinstance(value, dict) else getattr(value, part)
    assert set(facts) == {name.partition(".")[0] for name in FACTS}
    regressions, hotspots = facts["regressions"], facts["hotspots"]
    for names, expected in (
        *((regressions, ["core/parse", "io"]), (regressions.action, ["core/parse"]), (regressions.concern, ["io"])),
        *((facts["improvements"], ["new"]), (facts["targets"]["not_met"], ["core/parse"])),
        *((facts["targets"]["not_measured"], ["gone"]), (facts["accepted"]["expired"], ["core/parse"])),
        *((hotspots, ["step"]), (facts["commits"], ["d" * 12])),
    ):
        assert list(names) == expected
    assert (hotspots.top, hotspots.region, facts["baseline"]["missing"]) == ("step", "decode", False)
    assert regressions.worst == pytest.approx(0.25)


def test_accepted_is_used_where_it_makes_the_difference() -> None:
    for factors, used in (({"core/a": 1.25, "core/b": 1.07}, ["core/a"]), ({"core/a": 1.8}, [])):
        found, _ = findings(factors, wanted=criteria(accepted=[UNTIL]))
        assert list(facts_of(found)["accepted"]["used"]) == used


def test_the_brief_has_what_whoever_is_next_needs() -> None:
    blamed = [lost("step", 0.8, commits=[COMMIT], note="12 samples are few")]
    steps = [planned("build it", stage="build", role="work")]
    for name, benchmark in (("cpu", "core/parse"), ("heap", "io")):
        steps.append(planned(name, stage="profile", role="profile", benchmark=benchmark))
    events = [ended(step["id"]) for step in steps]
    wanted = criteria({"io": {"time": "<1.005s"}}, per_glob={"core/**": {"action": 0.055}})
    found, _ = findings({"core/parse": 1.25, "io": 1.01}, *events, wanted=wanted, blamed=blamed, steps=steps)
    found.record.run = found.record.run.model_copy(
        update={"params": {"size": "a b", "fast": True, "crates": ["a", "b"]}}
    )
    brief = taken(found).brief
    assert brief.regressed == ["core/parse time: +25.0%, over the action threshold of 5.5%"]
    own_thresholds = "core/parse: concern 5%, action 5.5%, floor 2%"
    assert brief.thresholds == [own_thresholds, "io time p50 <1.005s not met: 1.01 s"]
    touched = f"last touched in {'d' * 12} by Ada: Check twice"
    place = "step (src/parse.rs:12): 80% of the regression of core/parse time"
    assert brief.hotspots == [f"{place}; 1.00 s → 1.50 s; {touched}; 12 samples are few"]
    own = "--set 'size=a b' --set fast=true --set crates=a,b"
    good, bad = "b" * 40, "c" * 40
    assert brief.commands == [
        f"perfflow gate flow.yaml --base {good} --head {bad} {own} --only 'build it' --only core/parse --only io",
        f"perfflow run flow.yaml {own} --only 'build it' --only cpu",
        f"perfflow bisect flow.yaml --good {good} --bad {bad} {own} --only core/parse",
    ]


def test_uncommitted_changes_are_no_commit_to_look_for() -> None:
    found, _ = findings({"b": 1.25})
    found.record.trees["candidate"] = {"kind": "working tree", "revision": "c" * 40, "name": "HEAD", "dirty": True}
    assert taken(found).brief.commands == [f"perfflow gate flow.yaml --base {'b' * 40} --only b"]


def test_the_next_step_is_a_sentence_and_a_command_with_short_revisions() -> None:
    route = taken(findings({"core/parse": 1.25}, blamed=[lost("step", 0.8, commits=[COMMIT])])[0])
    assert route.next == (
        'look at step (src/parse.rs:12), which causes 80% of the slowdown of core/parse; last changed by "Check twice"'
    )
    assert route.command == f"git show {'d' * 12}"
    route = taken(findings({"core/parse": 1.25})[0])
    assert route.next == "find the commit that made core/parse (+25.0%) worse, since no profile names a function"
    assert route.command == f"perfflow bisect flow.yaml --good {'b' * 12} --bad {'c' * 12} --only core/parse"


def test_the_next_step_after_a_failed_check_measures_too() -> None:
    steps = [CHECK, planned("bench")]
    events = [ended("bench"), ended("tests", "failed", "exit status 1")]
    route = taken(findings({"core/parse": 1.0}, *events, steps=steps)[0])
    assert route.command == f"perfflow gate flow.yaml --base {'b' * 12} --head {'c' * 12}"


def test_the_next_step_names_a_slowdown_once_and_every_other_metric() -> None:
    found, _ = findings({"core/parse": 1.25, "core/write": 1.25})
    parse, write = found.rows
    rows = [parse, parse.model_copy(update={"metric": "cpu"}), parse.model_copy(update={"metric": "rss"}), write]
    route = taken(replace(found, rows=rows))
    assert "made core/parse (+25.0%), core/parse rss (+25.0%) and core/write (+25.0%) worse" in route.next


def test_the_next_step_by_a_rule_of_the_workflow_is_its_destination() -> None:
    own = replace(Criteria(), routes=(Route("regressions", "core-team", "they know it"),))
    assert taken(findings({"core/parse": 1.25}, wanted=own)[0]).next == "core-team: they know it"
