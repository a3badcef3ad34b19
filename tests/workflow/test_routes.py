"""``routes`` of a file: valid conditions, and the problems of invalid ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.model.criteria import Route, criteria_from_json
from perfflow.workflow.criteria_checks import FACTS, FoundNames, context, examples, holds
from tests.workflow.drafts import BENCH, opened, said


def routes(condition: str, to: str = "team") -> str:
    quoted = condition.replace("'", "''")
    return f"routes:\n  - {{if: '{quoted}', to: '{to}', why: because}}\n{BENCH}"


@pytest.mark.parametrize("name", FACTS)
def test_every_fact_can_be_asked_for(name: str, tmp_path: Path) -> None:
    found = opened(tmp_path, routes(f'{name} == "x" or {name} != 3'))
    assert said(found) == []


@pytest.mark.parametrize(
    "condition",
    [
        'regressions.action.in("core/**") > 0',
        'regressions.in("core/*") and not hotspots.localized',
        '"core/parse" in regressions and regressions.worst > 0.2',
        'hotspots.top.startswith("codec::") or hotspots.regions.in("decode")',
        "regressions.action | length > 2",
        "regressions.action + regressions.concern > 3",
        'verdict in ["fail", "error"]',
        "true",
    ],
)
def test_what_can_be_asked_goes_with_the_criteria(condition: str, tmp_path: Path) -> None:
    found = opened(tmp_path, routes(condition))
    assert said(found) == []
    assert found.plan.criteria.routes == (Route(condition, "team", "because"),)
    assert criteria_from_json(found.plan.criteria.to_json()).routes == found.plan.criteria.routes


def test_true_without_quotes_always_matches(tmp_path: Path) -> None:
    found = opened(tmp_path, f"routes: [{{if: true, to: all}}]\n{BENCH}")
    assert (said(found), found.plan.criteria.routes) == ([], (Route("true", "all"),))


@pytest.mark.parametrize(
    ("condition", "message", "hint"),
    [
        ("regresions.action", "unknown fact `regresions.action`", "did you mean `regressions.action`?"),
        ("regressions.acton > 0", "unknown fact `regressions.acton`", "did you mean `regressions.action`?"),
        ("verdic == 'fail'", "unknown fact `verdic`", "did you mean `verdict`?"),
        ("params.size > 3", "unknown fact `params.size`", ""),
        ("targets", "`targets` has no value", "use one of targets.met, targets.not_met"),
        ("hotspots.localised", "unknown fact `hotspots.localised`", "did you mean `hotspots.localized`?"),
        ("regressions.real", "unknown fact `regressions.real`", ""),
        ("regressions.worst.in('x')", "unknown fact `regressions.worst.in`", ""),
        ("verdict", "`if: verdict` is a string, not true or false", "write a comparison"),
        (
            "${{ regressions }}",
            "`if` must not contain ${{ }}",
            "write the expression alone, such as `if: regressions.action > 0`",
        ),
        ("regressions > 'many'", "not supported between instances of names and 'str'", ""),
        ("regressions.in(3)", "`in` takes a glob", ""),
        ("regressions.in", "a function is not a value; call it with ()", ""),
        ("regressions.action >", "the expression is incomplete", ""),
        ("hotspots.top.center(9) == 'x'", "unsafe", ""),
        ("", "empty expression", ""),
    ],
)
def test_what_cannot_be_asked_is_said_where_it_stands(condition: str, message: str, hint: str, tmp_path: Path) -> None:
    found = opened(tmp_path, routes(condition))
    (problem,) = found.problems
    assert message in problem.message
    assert hint in problem.hint
    assert problem.place is not None
    assert problem.place.line == 3
    assert found.plan.criteria.routes == ()


def test_a_route_goes_somewhere(tmp_path: Path) -> None:
    assert said(opened(tmp_path, routes("regressions", to=" "))) == ["3:29 `to` is empty"]


def test_names_are_a_number_a_truth_value_and_a_list() -> None:
    found = FoundNames(["core/a", "core/b", "io/c", "core/a"])
    assert (found == 3, bool(found), bool(FoundNames()), list(found)) == (
        True,
        True,
        False,
        ["core/a", "core/b", "io/c"],
    )
    assert list(found.matching("core/*")) == ["core/a", "core/b"]
    assert list(FoundNames(["codec::decode::step", "codec::encode"]).matching("codec::decode**")) == [
        "codec::decode::step"
    ]
    assert list(FoundNames(["a/b/c"]).matching("a/*")) == []


def test_a_fact_without_a_value_is_a_defect_and_not_silence() -> None:
    with pytest.raises(KeyError):
        context({})
    for facts in examples():
        assert holds("regressions.action >= 0", facts)
