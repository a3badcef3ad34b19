"""Names of stages: predefined, misspelt, and other names with a role."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.model.errors import Severity
from perfflow.tools.adapter import Role
from perfflow.workflow.model import STAGES
from perfflow.workflow.roles import STAGE_ROLES
from perfflow.workflow.step_checks import near_stage
from tests.cli.shell import perfflow, write
from tests.repositories import git
from tests.workflow.drafts import opened, said

MISSPELT = {
    "setup": "setpu stup set-up SETUP settup",
    "build": "biuld bulid buld Build buildd",
    "baseline": "basline baselin baesline bseline baseine base-line Baseline",
    "profile": "profil porfile proflie profle",
    "optimize": "optimise optimze optmize optimzie optmise optimiser",
    "verify": "verfy verfiy verifiy vrify",
}
OWN = """
warmup warm-up test tests check checks prepare restore teardown cleanup install fetch
download data dataset compare deploy publish upload report lint package release smoke prefill decode rebuild
prebuild build2 build-a build-base baseline-b profile-gpu validate start stop load step base seed pipeline verification
"""
ONE = "{id: one, uses: command, with: {command: ./one}}"


@pytest.mark.parametrize(("name", "meant"), [(name, meant) for meant in MISSPELT for name in MISSPELT[meant].split()])
def test_a_misspelt_stage_is_an_error_with_the_near_name(name: str, meant: str, tmp_path: Path) -> None:
    found = opened(tmp_path, f"stages:\n  {name}:\n    - {{id: one, run: make}}\n")
    assert said(found) == [f"3:3 unknown stage `{name}`; did you mean `{meant}`?"]
    assert found.problems[0].severity is Severity.ERROR


@pytest.mark.parametrize("name", OWN.split())
def test_a_name_that_was_chosen_is_not_taken_for_a_misspelt_one(name: str) -> None:
    assert near_stage(name) == ""


@pytest.mark.parametrize("name", STAGES)
def test_known_stages_are_what_they_are(name: str) -> None:
    assert near_stage(name) == ""
    assert name in STAGE_ROLES


def test_a_stage_of_ones_own_is_work_and_a_warning_asks_for_its_role(tmp_path: Path) -> None:
    found = opened(tmp_path, "stages:\n  tidy:\n    - {id: one, run: make}\n  baseline: [{run: x}]\n")
    assert said(found) == ["3:3 `tidy` is a stage of your own without a `role`, so its role is work"]
    assert found.problems[0].severity is Severity.WARNING
    assert found.problems[0].hint == "tidy: {role: work, steps: [...]}; other roles are measure, profile and check"
    assert [item.role for item in found.plan.steps] == [Role.WORK, Role.MEASURE]


@pytest.mark.parametrize("name", ["bench", "benchmark", "benchmarks", "measure", "Benchmarks", "perf"])
def test_a_stage_with_a_word_for_measuring_is_baseline_or_needs_a_role(name: str, tmp_path: Path) -> None:
    found = opened(tmp_path, f"stages:\n  {name}: [{ONE}]\n")
    assert said(found) == [f"3:3 unknown stage `{name}`; did you mean `baseline`?"]
    assert found.problems[0].severity is Severity.ERROR
    assert f"{name}: {{role: measure, steps: [...]}}" in found.problems[0].hint
    found = opened(tmp_path, f"stages:\n  {name}: {{role: measure, steps: [{ONE}]}}\n")
    assert said(found) == []
    assert [item.role for item in found.plan.steps] == [Role.MEASURE]


@pytest.mark.parametrize(("role", "becomes"), [("work", Role.WORK), ("check", Role.CHECK), ("measure", Role.MEASURE)])
def test_the_role_says_what_a_plain_command_is(role: str, becomes: Role, tmp_path: Path) -> None:
    found = opened(
        tmp_path, f"stages:\n  mine: {{role: {role}, steps: [{{id: one, run: make}}]}}\n  baseline: [run: x]\n"
    )
    assert said(found) == []
    assert [item.role for item in found.plan.steps] == [becomes, Role.MEASURE]


def test_a_failing_check_in_a_stage_for_checks_is_a_failed_check(tmp_path: Path) -> None:
    write(
        tmp_path,
        "stages:\n  baseline: [{id: ok, run: 'true'}]\n  after: {role: check, steps: [{run: 'false'}]}\n",
    )
    assert perfflow("run", "flow.yaml", "--progress", "off", cwd=tmp_path).returncode == 1


def test_a_gate_builds_what_stands_before_a_stage_that_measures(tmp_path: Path) -> None:
    from perfflow.plan.plan import building_steps

    steps = f"[{{id: get, uses: cargo-build}}, {ONE}, {{run: x}}]"
    text = f"stages:\n  build: [{{id: make, run: make}}]\n  race: {{role: measure, steps: {steps}}}\n"
    assert building_steps(opened(tmp_path, text).plan) == ("make", "get")


def test_a_known_stage_keeps_its_role(tmp_path: Path) -> None:
    found = opened(tmp_path, f"stages:\n  baseline: {{role: check, steps: [{ONE}]}}\n")
    assert said(found) == ["3:20 the stage `baseline` has the role measure, not check"]
    assert said(opened(tmp_path, f"stages:\n  baseline: {{role: measure, steps: [{ONE}]}}\n")) == []


@pytest.mark.parametrize(
    "key", ["patch: a.patch", "ref: topic", "propose: ./tool", "technique: memory", "params: {a: 1}"]
)
@pytest.mark.parametrize("stage", ["tuning: {role: work, steps: [%s]}", "build: [%s]", "baseline: [%s]"])
def test_a_candidate_outside_the_optimize_stage_is_an_error(key: str, stage: str, tmp_path: Path) -> None:
    step = f"{{id: one, run: 'sed -i s/a/b/ main.c', {key}}}"
    found = opened(tmp_path, f"params: {{a: 2}}\nstages:\n  {stage % step}\n")
    name, where = stage.partition(":")[0], key.partition(":")[0]
    assert f"`{where}` is not allowed in the stage `{name}`" in [text.partition(" ")[2] for text in said(found)]
    assert not [item for item in found.problems if not item.place]


def test_a_stage_with_keys_of_the_optimize_stage_is_one(tmp_path: Path) -> None:
    text = "stages:\n  tuning: {role: work, accept: 10%, max-diff: 5, steps: [{id: one, run: make}]}\n"
    assert said(opened(tmp_path, text)) == [
        "3:24 `accept` is not allowed in the stage `tuning`",
        "3:37 `max-diff` is not allowed in the stage `tuning`",
    ]


def test_a_candidate_in_a_misspelt_stage_edits_nothing(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "main.c").write_text("a\n")
    for stage in ("optimise", "tuning"):
        step = "{id: one, technique: memory, run: 'sed -i s/a/b/ main.c'}"
        write(tmp_path, f"stages:\n  {stage}:\n    - {step}\n")
        done = perfflow("run", "flow.yaml", cwd=tmp_path)
        assert done.returncode == 2
        assert "optimize" in done.stderr
        assert (tmp_path / "main.c").read_text() == "a\n"
