"""Benchmarks that rest on one code layout are measured over new ones, with builds whose cost depends on a seed."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from perfflow.model.criteria import criteria_from_json
from perfflow.model.result import Benchmark, Result
from perfflow.plan.plan import Planned
from perfflow.sampling.pairs import SamplingProgress
from perfflow.session.steps import over_layouts
from perfflow.store.result_file import to_text
from perfflow.trees.repository import open_repository
from perfflow.trees.slots import open_slots
from perfflow.verdict.from_result import record_of_result
from perfflow.verdict.judge import judge
from tests.cli.shell import perfflow, start
from tests.session.project import Project, change_of, flow, row
from tests.toolchains import has_layouts, needs_go
from tests.tools.harness import GO_MODULE

# Without a seed the program has the bias of its one layout; with a seed that of the seed, up to 3% either way.
BUILD = """
read -r work < work; read -r luck < luck
case $1 in 0) parts=$luck ;; *) parts=$(( ($1 * 7919 % 13 - 6) * 5 )) ;; esac
echo $(( work * (1000 + parts) / 1000 )) > built
"""


MAKE = "{id: make, run: 'sh build.sh \"$PERFFLOW_LAYOUT_SEED\"'}"
HOT = "{id: hot, run: 'cat built', %sparse: {regex: '(?P<time>\\d+)', units: {time: us}}}"
FLOW = flow("name: layouts", build=MAKE, baseline=HOT)
AUTO = FLOW % ""


@pytest.fixture
def tree(tree: Project) -> Project:
    tree.write("build.sh", BUILD)
    commit(tree)
    return tree


def commit(project: Project, work: int = 100_000, luck: int = 0) -> str:
    """Costs of the program in microseconds, and the bias of its one layout in thousandths."""
    return project.commit({"work": f"{work}\n", "luck": f"{luck}\n"})


def hot(result: Result) -> Benchmark:
    return row(result, "hot", "time")


def gated(tree: Project, text: str = AUTO, **costs: int) -> Benchmark:
    """Commit these costs, and return what a gate finds against the commit before."""
    commit(tree, **costs)
    return hot(tree.run(text, base="HEAD~1"))


def test_an_accident_of_code_layout_does_not_fail_a_gate(tree: Project) -> None:
    commit(tree, luck=200)
    result = tree.run(AUTO, base="HEAD~1")
    found = hot(result)
    assert (result.verdict, found.decision, found.level) == ("pass", "same", "ok")
    assert found.layouts
    assert found.layouts.built.change
    assert found.layouts.built.change.value == pytest.approx(0.2)
    assert 0.01 < found.layouts.deviation < 0.03
    assert abs(change_of(found)) < 0.02
    (note,) = [text for text in found.warnings if "accident" in text]
    assert "as built +20.0%" in note
    report = (tree.folder / ".perfflow/runs/latest/report.md").read_text()
    assert f"same ({found.layouts.n} layouts)" in report
    # What was built stands in its place again.
    assert {path.read_text() for path in _built()} == BOTH_BUILT
    assert _set_aside() == []


def test_a_true_regression_is_confirmed_over_layouts(tree: Project) -> None:
    commit(tree, work=125_000)
    result = tree.run(AUTO, base="HEAD~1")
    found = hot(result)
    assert (result.verdict, found.decision, found.level) == ("fail", "regressed", "action")
    assert found.layouts
    assert found.layouts.n >= 11
    assert found.change
    assert found.change.low is not None
    assert 0.2 < found.change.low < 0.25


def test_one_that_is_not_confirmed_is_unproven_and_says_what_would_show(tree: Project) -> None:
    found = gated(tree, FLOW % "layouts: 5, ", work=102_000, luck=150)
    assert (found.decision, found.design) == ("unproven", "few layouts")
    assert found.layouts
    assert (found.layouts.n, found.pairs) == (5, 5)
    assert found.layouts.numbers
    (note,) = [text for text in found.warnings if text.startswith("between layouts ±")]
    assert "would show a change of about" in note


def test_where_layouts_are_dear_a_few_are_run_several_times(tree: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(over_layouts, "DEAR", 0.0)
    found = gated(tree, work=150_000)
    assert (found.decision, found.level, found.design) == ("regressed", "action", "few layouts")
    assert found.layouts
    assert found.layouts.numbers == [[number for number in range(1, 9) for _ in range(3)]] * 2


def test_off_decides_by_what_was_built(tree: Project) -> None:
    found = gated(tree, FLOW % "layouts: off, ", luck=200)
    assert (found.decision, found.layouts, found.as_built) == ("regressed", None, "")


def test_without_layouts_the_verdict_is_as_before_and_says_why(tree: Project) -> None:
    commit(tree, luck=200)
    result = tree.run(AUTO.replace('"$PERFFLOW_LAYOUT_SEED"', "0"), base="HEAD~1")
    found = hot(result)
    assert (result.verdict, found.decision, found.layouts) == ("fail", "regressed", None)
    assert found.as_built.startswith("the command names no executable of the tree")
    assert any("by more than the floor of 2%" in text for text in found.warnings)


def test_a_build_that_does_not_use_its_seed_is_refused(tree: Project) -> None:
    tree.write("build.sh", BUILD.replace("$1", "0"))
    commit(tree)
    found = gated(tree, luck=200)
    assert found.decision == "regressed"
    assert "the build makes the same files whatever PERFFLOW_LAYOUT_SEED is" in found.as_built


BOTH_BUILT = {"100000\n", "120000\n"}


def _built() -> list[Path]:
    return _in_slots("????????/built")


def _set_aside() -> list[Path]:
    return _in_slots("*.layouts/aside/places.json")


def _in_slots(pattern: str) -> list[Path]:
    return list(Path(os.environ["XDG_CACHE_HOME"]).glob(f"perfflow/trees/*/1/{pattern}"))


def test_an_expression_has_the_seed_too(tree: Project) -> None:
    found = gated(tree, AUTO.replace('"$PERFFLOW_LAYOUT_SEED"', "${{ layout.seed }}"), luck=200)
    assert found.decision == "same"
    assert found.layouts


@pytest.mark.parametrize("after", [2, pytest.param(5, marks=pytest.mark.long)])
def test_an_interrupted_run_goes_on_in_the_middle_of_its_layouts(
    tree: Project, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    # The third seed gives base's program as built, which is no reason to give up.
    whole = gated(tree, luck=200)
    taken = tree.told.sampled

    def stop(planned: Planned, item: SamplingProgress) -> None:
        taken(planned, item)
        if len(_layouts(tree)) == after:
            raise KeyboardInterrupt

    monkeypatch.setattr(tree.told, "sampled", stop)
    interrupted = tree.finish(AUTO, base="HEAD~1")
    assert interrupted.interrupted
    monkeypatch.setattr(tree.told, "sampled", taken)
    again = hot(tree.run(AUTO, resume=interrupted.folder))
    assert (again.change, again.layouts) == (whole.change, whole.layouts)
    assert sorted(_layouts(tree)) == list(range(1, len(_layouts(tree)) + 1))


def _layouts(project: Project) -> list[int]:
    """Return the layouts of the samples in the order in which they were taken."""
    return [event["layout"] for event in project.events() if event.get("design") == "layouts"]


def test_a_stored_result_is_judged_to_the_same_bytes(tree: Project) -> None:
    commit(tree, work=102_000, luck=150)
    for keys in ("", "layouts: 5, ", "layouts: 12, "):
        result = tree.run(FLOW % keys, base="HEAD~1")
        assert hot(result).layouts
        again = judge(record_of_result(result), criteria_from_json(result.criteria))
        assert to_text(again) == to_text(result)


OPTIMIZE = flow(
    "name: layouts",
    build=MAKE,
    baseline=HOT % "",
    profile="{id: look, run: 'true'}",
    optimize=[f"{{id: {name}, technique: memory, patch: {name}.patch}}" for name in ("lucky", "faster")],
    verify=["{id: tests, run: 'true'}", "{id: after, compare: baseline}"],
)


def patch(project: Project, name: str, file: str, text: str) -> None:
    """Write a patch that changes the content of a file, and leave the tree unchanged."""
    project.write(file, text)
    project.write(f"{name}.patch", project.git("diff"))
    project.git("checkout", "-q", ".")


def test_a_candidate_is_kept_for_its_code_and_not_for_its_layout(tree: Project) -> None:
    patch(tree, "lucky", "luck", "-200\n")
    patch(tree, "faster", "work", "70000\n")
    result = tree.run(OPTIMIZE)
    found = {item.id: item for item in result.optimizations}
    assert [item.decision for item in found.values()] == ["rejected", "accepted"]
    assert found["lucky"].reason.startswith("same: ")
    assert "an accident of code layout" in found["lucky"].reason
    # Accepted changes are also compared with the original over layouts, because the layout as built may be biased.
    assert hot(result).layouts
    assert hot(result).decision == "improved"


def test_one_side_alone_is_measured_over_layouts_where_that_is_asked_for(tree: Project) -> None:
    found = hot(tree.run(FLOW % "layouts: 6, "))
    assert found.layouts
    assert found.layouts.n == 6
    assert found.baseline
    assert len(set(found.baseline.samples)) > 3


@pytest.mark.parametrize(
    ("side", "candidate"),
    [
        ("run", "{env: {SIDE: b}}"),
        ("run", "[python3, show.py]"),
        ("argv", "python3 show.py; true"),
        ("command", "{env: {SIDE: b}}"),
    ],
)
def test_hashes_and_environment_of_python_are_drawn_for_each_pair(project: Project, side: str, candidate: str) -> None:
    code = 'import os; e = os.environ; print("seed", e["PYTHONHASHSEED"], "pad", len(e["PERFFLOW_PADDING"]))'
    project.write("show.py", f"{code}\nopen('log', 'a').write(e['PYTHONHASHSEED'] + ' ')\n")
    parse = "parse: {regex: 'pad (?P<size>.*)', units: {size: '1'}}"
    one = {
        "run": f"run: python3 show.py, {parse}",
        "argv": f"argv: [python3, show.py], {parse}",
        "command": "uses: command, with: {command: python3 show.py}",
    }[side]
    project.run(f"stages: {{baseline: [{{id: one, {one}, candidate: {candidate}, runs: 6, warmup: 0}}]}}\n")
    seeds = (project.folder / "log").read_text().split()
    pairs = list(zip(seeds[::2], seeds[1::2], strict=True))[-6:]
    assert all(one == other for one, other in pairs)
    assert len(set(pairs)) == 6


def test_a_hash_seed_of_the_users_own_stays(project: Project) -> None:
    project.write("show.py", "import os; open('log', 'a').write(os.environ['PYTHONHASHSEED'] + ' ')\n")
    step = "{id: one, uses: command, with: {command: python3 show.py}, env: {PYTHONHASHSEED: '7'}, runs: 3}"
    project.run(f"stages: {{baseline: [{step}]}}\n")
    assert set((project.folder / "log").read_text().split()) == {"7"}


@pytest.mark.long  # finds its commits as without layouts
def test_a_bisection_is_not_led_astray_by_an_accident(tree: Project) -> None:
    costs = [(100_000, 0), (100_000, 600), (100_000, 600), (130_000, 600), (130_000, 600)]
    ids = [commit(tree, *cost) for cost in costs]
    tree.write("flow.yaml", f"perfflow: 1\n{AUTO}")
    done = perfflow("bisect", "flow.yaml", "--good", ids[0], "--json", "--progress", "off", cwd=tree.folder)
    found = json.loads(done.stdout)
    assert found["outcome"] == "found", done.stderr
    assert found["first_bad"]["revision"] == ids[3]


def test_killed_in_the_middle_of_its_layouts_a_tree_is_put_right_on_the_next_start(tree: Project) -> None:
    commit(tree, luck=200)
    tree.write("flow.yaml", f"perfflow: 1\n{AUTO}")
    process = start("gate", "flow.yaml", "--base", "HEAD~1", "--progress", "off", cwd=tree.folder)
    events = tree.folder / ".perfflow/runs/latest/events.jsonl"
    while process.poll() is None and not (events.exists() and '"design":"layouts"' in events.read_text()):
        time.sleep(0.02)
    process.kill()
    process.communicate()
    assert _set_aside()
    with open_slots(open_repository(tree.folder)):
        assert {path.read_text() for path in _built()} == BOTH_BUILT
    done = perfflow("gate", "flow.yaml", "--resume", "--progress", "off", cwd=tree.folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.read_text() for path in _built()} == BOTH_BUILT
    assert sorted(_layouts(tree)) == list(range(1, len(_layouts(tree)) + 1))


PROGRAM = """
#include <stdio.h>
#include "pad.h"
unsigned long steps(unsigned long limit) {
    unsigned long total = 0;
    for (unsigned long start = 1; start < limit; start++)
        for (unsigned long n = start; n != 1; n = n & 1 ? 3 * n + 1 : n / 2) total++;
    return total;
}
int main(void) { return printf("%lu\\n", steps(WORK)) < 0; }
"""
PAD = '__asm__(".text; .skip {}, 0x90");\n#define WORK {}\n'


LINKED = flow(
    "name: linked",
    build="{id: make, run: 'cc -O2 -ffunction-sections prog.c -o prog'}",
    baseline="{id: steps, uses: command, with: {command: ./prog}%s}",
)


@pytest.fixture
def linked(tree: Project) -> Project:
    """A C program whose hot loop starts at the beginning of an alignment slot."""
    tree.write(".gitignore", "prog\na\nb\n.perfflow\nflow.yaml\n")
    tree.commit({"prog.c": PROGRAM, "pad.h": PAD.format(8, 15_000)})
    return tree


def steps_of(linked: Project, text: str, work: int = 15_000) -> tuple[Result, Benchmark]:
    """Commit a program whose hot loop starts at another place; return what a gate finds."""
    linked.commit({"pad.h": PAD.format(24, work)})
    result = linked.run(text, base="HEAD~1")
    return result, row(result, "steps", "cpu")


def test_a_program_that_is_linked_again_is_measured_over_its_layouts(linked: Project) -> None:
    # One of four slots is slow for this loop on many processors, so head may be 10% slower as built.
    _, found = steps_of(linked, LINKED % ", layouts: 6")
    assert found.as_built == ""
    assert found.layouts
    assert (found.layouts.n, found.design) == (6, "few layouts")
    assert found.level != "action"


@pytest.mark.long  # a measured layout above, and an accident with costs that are known
def test_padding_before_a_hot_loop_does_not_fail_a_gate(linked: Project) -> None:
    result, found = steps_of(linked, LINKED % "")
    assert result.verdict != "fail"
    assert found.as_built == ""
    assert found.level != "action"


@pytest.mark.long  # a measured layout above, and a true regression with costs that are known
def test_a_true_regression_of_a_linked_program_is_confirmed(linked: Project) -> None:
    _, found = steps_of(linked, LINKED % "", work=30_000)
    assert (found.decision, found.level, found.as_built) == ("regressed", "action", "")
    assert found.layouts
    assert found.layouts.n >= 11


@pytest.mark.long  # as one program, with a second of its kind
def test_two_programs_whose_objects_have_one_name_are_both_linked_again(linked: Project) -> None:
    compiled = "cc -O2 -ffunction-sections -c prog.c -o %s/main.o && cc %s/main.o -o %s/prog"
    build = f"mkdir -p a b && {compiled.replace('%s', 'a')} && {compiled.replace('%s', 'b')} -lm"
    text = (LINKED % ", layouts: 5").replace("cc -O2 -ffunction-sections prog.c -o prog", build)
    # The program ignores its arguments. The second argument is an executable that the command names.
    _, found = steps_of(linked, text.replace("./prog", "a/prog b/prog"))
    assert found.as_built == ""
    assert found.layouts
    assert found.layouts.n == 5


def test_a_build_that_cannot_be_linked_again_says_why(linked: Project) -> None:
    _, found = steps_of(linked, (LINKED % "").replace("cc -O2", "cc -O2 -fprofile-use"), work=30_000)
    assert (found.decision, found.layouts) == ("regressed", None)
    assert "profile" in found.as_built


@pytest.mark.skipif(not shutil.which("valgrind"), reason="no valgrind")
def test_counted_figures_of_python_have_one_hash_seed(project: Project) -> None:
    project.write("shown.sh", '#!/bin/sh\necho "$PYTHONHASHSEED" >> log\n', executable=True)
    project.run("stages: {baseline: [{id: one, uses: callgrind, with: {command: ./shown.sh}}]}\n")
    assert set((project.folder / "log").read_text().split()) == {"0"}


@pytest.mark.long  # compiles a suite of Go; other tests link what Go built
@needs_go
@pytest.mark.skipif(not has_layouts(), reason="the linker of this Go has no -randlayout")
def test_the_tool_that_built_a_suite_links_it_again(tree: Project) -> None:
    shutil.copytree(GO_MODULE, tree.folder, dirs_exist_ok=True)
    tree.commit()
    count = tree.folder / "text/text.go"
    count.write_text(count.read_text().replace("Work = 100", "Work = 400"))
    step = "{id: suite, uses: go-bench, benchmark: '*', layouts: 5, with: {package: ./text, filter: Other}}"
    result = tree.run(flow(baseline=step), base="HEAD")
    changed = row(result, "text.BenchmarkCountOther", "time")
    assert changed.decision == "regressed"
    assert changed.layouts
    assert changed.layouts.n == 5
