"""What is kept of opened workflows: routes, stages, and keys; their problems are in ``cases``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perfflow.model.criteria import Route, criteria_from_json
from perfflow.plan.plan import building_steps
from perfflow.tools import registry
from perfflow.workflow.criteria_checks import FACTS, FoundNames, context, examples, holds
from perfflow.workflow.model import STAGES
from perfflow.workflow.roles import STAGE_ROLES
from perfflow.workflow.shape import keys_of
from perfflow.workflow.step_checks import near_stage
from tests.cli.shell import perfflow, write
from tests.repositories import git
from tests.workflow.drafts import BENCH, opened, said


@pytest.mark.parametrize(
    "condition",
    [
        *(f'{name} == "x" or {name} != 3' for name in FACTS),
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
    found = opened(tmp_path, f"routes: [{{if: '{condition}', to: team, why: because}}]\n{BENCH}")
    assert said(found) == []
    assert found.plan.criteria.routes == (Route(condition, "team", "because"),)
    assert criteria_from_json(found.plan.criteria.to_json()).routes == found.plan.criteria.routes


def test_true_without_quotes_always_matches(tmp_path: Path) -> None:
    found = opened(tmp_path, f"routes: [{{if: true, to: all}}]\n{BENCH}")
    assert (said(found), found.plan.criteria.routes) == ([], (Route("true", "all"),))


def test_a_route_that_cannot_be_asked_is_left_out(tmp_path: Path) -> None:
    assert opened(tmp_path, f"routes: [{{if: verdic, to: all}}]\n{BENCH}").plan.criteria.routes == ()


def test_names_are_a_number_a_truth_value_and_a_list() -> None:
    found = FoundNames(["core/a", "core/b", "io/c", "core/a"])
    assert (found == 3, bool(found), bool(FoundNames())) == (True, True, False)
    assert list(found) == ["core/a", "core/b", "io/c"]
    assert list(found.matching("core/*")) == ["core/a", "core/b"]
    regions = FoundNames(["codec::decode::step", "codec::encode"])
    assert list(regions.matching("codec::decode**")) == ["codec::decode::step"]
    assert list(FoundNames(["a/b/c"]).matching("a/*")) == []


def test_a_fact_without_a_value_is_a_defect_and_not_silence() -> None:
    with pytest.raises(KeyError):
        context({})
    for facts in examples():
        assert holds("regressions.action >= 0", facts)


OWN = """
warmup warm-up test tests check checks prepare restore teardown cleanup install fetch
download data dataset compare deploy publish upload report lint package release smoke prefill decode rebuild
prebuild build2 build-a build-base baseline-b profile-gpu validate start stop load step base seed pipeline verification
"""


def test_a_name_that_was_chosen_is_not_taken_for_a_misspelt_one() -> None:
    assert {name: near_stage(name) for name in (*OWN.split(), *STAGES) if near_stage(name)} == {}
    assert STAGE_ROLES.keys() >= set(STAGES)


def test_a_failing_check_in_a_stage_for_checks_is_a_failed_check(tmp_path: Path) -> None:
    write(
        tmp_path,
        "stages:\n  baseline: [{id: ok, run: 'true'}]\n  after: {role: check, steps: [{run: 'false'}]}\n",
    )
    assert perfflow("run", "flow.yaml", "--progress", "off", cwd=tmp_path).returncode == 1


def test_a_gate_builds_what_stands_before_a_stage_that_measures(tmp_path: Path) -> None:
    steps = "[{id: get, uses: cargo-build}, {id: one, uses: command, with: {command: ./one}}, {run: x}]"
    text = f"stages:\n  build: [{{id: make, run: make}}]\n  race: {{role: measure, steps: {steps}}}\n"
    assert building_steps(opened(tmp_path, text).plan) == ("make", "get")


@pytest.mark.parametrize("stage", ["optimise", "tuning"])
def test_a_candidate_in_a_misspelt_stage_edits_nothing(stage: str, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "main.c").write_text("a\n")
    write(tmp_path, f"stages: {{{stage}: [{{id: one, technique: memory, run: 'sed -i s/a/b/ main.c'}}]}}\n")
    done = perfflow("run", "flow.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "optimize" in done.stderr
    assert (tmp_path / "main.c").read_text() == "a\n"


def test_valid_parts_of_a_file_with_mistakes_are_kept(tmp_path: Path) -> None:
    text = "params: {a: 1, b: [[1]], c: {default: 2, hlep: x}}\nthresholds: {action: 20%}\nstages: {build: 5}\n"
    found = opened(tmp_path, text)
    assert set(found.draft.workflow.params) == {"a", "c"}
    assert found.draft.params == ("a", "b", "c")
    assert found.plan.criteria.thresholds.action == pytest.approx(0.2)


@pytest.mark.parametrize("name", registry.MODULES)
def test_keys_of_tools_are_in_kebab_case(name: str) -> None:
    tool = registry.find(name)
    assert tool
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", key) for key in keys_of(tool.options))
