"""Candidates whose code nobody trusts: each process in a sandbox, and each output compared while it is timed."""

from __future__ import annotations

from typing import Any

import pytest

from perfflow.execute import sandbox
from perfflow.model.judging import Code, Flag
from perfflow.model.readings import Side
from perfflow.model.result import Optimization
from perfflow.session.timed_outputs import TimedOutputs
from tests.session.project import Project, flow

pytestmark = pytest.mark.skipif(not sandbox.available()[0], reason=sandbox.available()[1] or "a sandbox")


def judged(tree: Project, program: str, patched: str, *, check: str = "", more: str = ", runs: 3") -> Optimization:
    """Judge a patch of a shell program, by default with a few pairs of timed runs, whose figures decide nothing."""
    tree.commit({"work.sh": program})
    tree.write("work.sh", patched)
    tree.write("new.patch", tree.git("diff"))
    tree.git("checkout", "-q", "work.sh")
    text = flow(
        baseline=f"{{id: work, run: sh work.sh{more}}}",
        profile="{id: look, run: 'true'}",
        optimize=[],
        verify=f"{{id: right, uses: same-output, benchmark: work, with: {{{check}}}}}",
    ).replace(
        "optimize:\n", "optimize:\n    isolate: strict\n    steps:\n      - {id: x, technique: io, patch: new.patch}\n"
    )
    (tried,) = tree.run(text).optimizations
    return tried


def test_state_does_not_outlive_a_process(tree: Project) -> None:
    cache = "/tmp/perfflow-cache"
    patched = f"[ -e {cache} ] && echo cached && exit\ntouch {cache}; echo 42\n"
    found = judged(tree, "echo 42\n", patched)
    assert "42" not in found.reason
    assert "cached" not in found.reason
    assert found.pairs == 3


def test_an_output_that_is_wrong_while_it_is_timed_rejects(tree: Project) -> None:
    # As the check runs: standard output is a file there, too.
    patched = "case $(readlink /proc/$$/fd/1) in *printed) echo 41;; *) echo 42;; esac\n"
    found = judged(tree, "echo 42\n", patched)
    assert found.decision == "rejected"
    assert found.reason.endswith("wrong output while it was timed: line 1: expected '42', got '41'")


def test_nothing_is_said_about_a_program_whose_output_varies(tree: Project) -> None:
    varies = "[ -e wrong ]; readlink /proc/$$/fd/1 | grep -q printed && date +%N || echo 42\n"
    found = judged(tree, varies, f"{varies}true\n")
    assert "differs from run to run on the baseline too" in found.reason
    allowed = judged(
        tree, varies, f"{varies}true; true\n", more=", runs: 3, allow: {output-varies: it prints the time}"
    )
    assert Flag.OUTPUT_UNCHECKED in allowed.flags


def test_a_tolerance_holds_for_timed_outputs_too_and_is_told(tree: Project) -> None:
    found = judged(tree, "echo 1.0\n", "echo 1.0001\n", check="relative: 0.001")
    assert Flag.OTHER_NUMBERS in found.flags
    assert judged(tree, "echo 1.0\n", "echo 1.01\n", check="relative: 0.001").reason.startswith("correctness")


def test_without_a_sandbox_strict_refuses_and_says_why(tree: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "available", lambda: ("", "the kernel forbids it"))
    found = judged(tree, "echo 42\n", "echo 42; true\n")
    assert found.decision == "skipped"
    assert "nothing can keep the code of a candidate in: the kernel forbids it; install bubblewrap" in found.reason


def test_both_sides_of_a_pair_get_one_seed_that_no_other_pair_gets(tree: Project) -> None:
    figures = "parse: {regex: '(?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}"
    found = flow(
        baseline=f"{{id: a, run: 'echo ${{{{ pair.seed }}}}', runs: 4, {figures}, candidate: {{env: {{X: '1'}}}}}}"
    )
    (row,) = (row for row in tree.run(found).benchmarks if row.metric == "cost")
    assert row.baseline
    assert row.candidate
    assert row.baseline.samples == row.candidate.samples
    assert len(set(row.baseline.samples)) == 4


def test_many_outputs_are_compared_before_a_candidate_is_kept(tree: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    note, sides = TimedOutputs.note, list[Side]()

    def counted(self: TimedOutputs, side: Side, *more: Any) -> None:
        sides.append(side)
        note(self, side, *more)

    monkeypatch.setattr(TimedOutputs, "note", counted)
    found = judged(tree, "sleep 0.1; echo 42\n", "echo 42\n", more="")
    assert found.code is Code.PROVEN
    assert sides.count(Side.CANDIDATE) >= 44
