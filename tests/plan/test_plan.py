"""Plans: large ones, selected parts, counted targets, and values of cells; more is in ``cases``."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.model.errors import Exit, UserError
from perfflow.plan.coverage import requires_of
from perfflow.plan.plan import confirmed_by, expected_of
from perfflow.session import reading_limit
from perfflow.session.open_workflow import Opened, select
from tests.long import rest_long
from tests.workflow.drafts import opened, said

MEASURED = "uses: command, with: {command: x}, matrix: {k: [1, 2]}"


def setup(folder: Path, steps: list[str]) -> Opened:
    return opened(folder, "stages:\n  setup:\n" + "".join(f"    - {{{step}}}\n" for step in steps))


@pytest.fixture(autouse=True)
def slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a busy machine read thousands of steps, which may take it more than the usual limit."""
    monkeypatch.setenv(reading_limit.NAME, "600")


@pytest.mark.parametrize("named", rest_long([True, False]), ids=["by needs", "by order"])
def test_a_chain_of_thousands_of_steps_is_planned(named: bool, tmp_path: Path) -> None:
    needs = [f", needs: [s{number - 1}]" if named and number else "" for number in range(5000)]
    plan = setup(tmp_path, [f"id: s{number}, run: x{text}" for number, text in enumerate(needs)]).plan
    assert [item.id for item in plan.steps] == [f"s{number}" for number in range(5000)]
    assert sum(len(item.needs) + len(item.after) for item in plan.steps) == 5000 - 1


def test_a_cycle_of_thousands_of_steps_is_found(tmp_path: Path) -> None:
    (message,) = said(setup(tmp_path, [f"id: s{n}, run: x, needs: [s{(n - 1) % 3000}]" for n in range(3000)]))
    assert message.count(" -> ") == 3000


def test_steps_that_start_at_once_do_not_multiply_what_follows(tmp_path: Path) -> None:
    found = setup(tmp_path, [f"id: s{n}, run: x{', needs: []' if n % 10 else ''}" for n in range(1000)])
    assert sum(len(item.after) for item in found.plan.steps) < 1000


@pytest.mark.parametrize(
    ("stages", "steps", "start", "selected"),
    [
        ([], [], None, {"x[k=1]", "x[k=2]", "y", "z"}),
        (["b"], [], None, {"y", "z"}),
        ([], ["x"], None, {"x[k=1]", "x[k=2]"}),
        ([], ["x[k=2]"], None, {"x[k=2]"}),
        (["b"], [], "z", {"z"}),
    ],
)
def test_parts_of_a_plan_are_selected(
    stages: list[str], steps: list[str], start: str | None, selected: set[str], tmp_path: Path
) -> None:
    text = "stages: {a: [{id: x, run: x, matrix: {k: [1, 2]}}], b: [{id: y, run: x}, {id: z, run: x}]}"
    plan = opened(tmp_path, text).plan
    assert select(plan, stages, steps, start) == selected
    assert [item.id for item in plan.cells_of("x")] == ["x[k=1]", "x[k=2]"]
    with pytest.raises(UserError, match="--from and --stage have no step in common") as found:
        select(plan, ["a"], [], "z")
    assert found.value.exit is Exit.USAGE
    assert "stages with steps from z on: b" in str(found.value)


def test_a_floor_of_nothing_is_allowed(tmp_path: Path) -> None:
    found = opened(tmp_path, "thresholds: {floor: 0%}\nstages: {baseline: [{id: a, run: x}]}\n")
    assert found.plan.criteria.thresholds.floor == 0


def test_thresholds_can_be_parameters(tmp_path: Path) -> None:
    text = (
        "params: {limit: 8%}\n"
        "thresholds: {action: '${{ params.limit }}', for: {'core/*': {concern: '${{ params.limit }}'}}}\n"
        "stages: {build: [{id: a, run: x}]}\n"
    )
    criteria = opened(tmp_path, text, "limit=9%").plan.criteria
    core = criteria.thresholds_of("core/a")
    assert (criteria.thresholds.action, core.concern, core.action) == pytest.approx((0.09, 0.09, 0.09))
    wrong = said(opened(tmp_path, text, "limit=soon"))
    assert [message[:5] for message in wrong] == ["3:22 ", "3:71 "]
    assert all("'soon'" in message for message in wrong)
    misspelt = text.replace("params.limit }}', for", "params.limti }}', for")
    assert said(opened(tmp_path, misspelt)) == ["3:27 undefined `params.limti`"]


@pytest.mark.parametrize(
    ("targets", "counted"),
    [("time: <1s", []), ("alloc: <2KB/op, allocs: <9", ["suite-dhat"]), ("instructions: <1M", ["suite-callgrind"])],
)
def test_what_targets_need_of_a_suite_is_selected_with_it(targets: str, counted: list[str], tmp_path: Path) -> None:
    suite = "{id: suite, uses: google-benchmark, with: {command: ./suite}}"
    found = opened(tmp_path, f"targets: {{parse: {{{targets}}}}}\nstages: {{baseline: [{suite}]}}\n")
    assert [item.id for item in found.plan.steps if item.for_targets and item.watches == "suite"] == counted
    assert select(found.plan, (), ("suite",), None) == {"suite", *counted}


@pytest.mark.parametrize(
    ("keys", "globs"),
    [
        ("scenario: realistic, confirms: '${{ params.area }}/${{ matrix.k }}'", [["core/1"], ["core/2"]]),
        ("scenario: realistic, confirms: [core/*, 'a[k=1]']", [["core/*", "a[k=1]"]] * 2),
        ("expect: ['${{ matrix.k }}', other/*]", [["1", "other/*"], ["2", "other/*"]]),
        ("expect: []", [[], []]),
    ],
)
def test_globs_of_a_cell_are_filled_in(keys: str, globs: list[list[str]], tmp_path: Path) -> None:
    steps = f'{{id: a, {MEASURED}, benchmark: "core/${{{{ matrix.k }}}}"}}, {{id: b, {MEASURED}, {keys}}}'
    plan = opened(tmp_path, f"params: {{area: core}}\nstages: {{baseline: [{steps}]}}\n").plan
    globs_of = confirmed_by if "confirms" in keys else expected_of
    assert [globs_of(item, plan.params) for item in plan.steps] == [[], [], *globs]


@pytest.mark.parametrize(("labelled", "labels"), [("true", [["1"], ["2"]]), ("false", [[], []])])
def test_a_cell_asks_for_its_own_label_or_for_none(labelled: str, labels: list[list[str]], tmp_path: Path) -> None:
    label = "\"${{ matrix.k if params.labelled else '' }}\""
    requires = f'requires: {{gpu: 1, tool: ["${{{{ params.tool }}}}>=2022"], label: {label}}}'
    head = f"params: {{labelled: {labelled}, tool: ncu}}\n"
    found = opened(tmp_path, f"{head}stages: {{baseline: [{{id: a, {MEASURED}, {requires}}}, {{id: b, run: x}}]}}\n")
    assert said(found) == []
    *asked, none = [requires_of(item, found.plan.params) for item in found.plan.steps]
    assert [item and (item.gpu, item.tool, item.label) for item in asked] == [
        (1, ["ncu>=2022"], label) for label in labels
    ]
    assert none is None
