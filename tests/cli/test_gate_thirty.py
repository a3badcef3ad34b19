"""The gate on many benchmarks with real work: one gets 25% slower, the others do not change.

CI measures fewer benchmarks, but enough for screening. All thirty, and ten gates of an unchanged
repository, with PERFFLOW_GATE_FULL=1.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli import gated
from tests.cli.shell import perfflow
from tests.repositories import git

FULL = bool(os.environ.get("PERFFLOW_GATE_FULL"))
COUNT, REPEATS = (30, 10) if FULL else (14, 1)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    root = tmp_path / "project"
    gated.project(root, COUNT)
    return root


def gate(root: Path, *words: str) -> tuple[int, dict[str, Any]]:
    done = perfflow("gate", "flow.yaml", "--base", "main", "--json", *words, cwd=root, timeout=1800)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.long  # tests/session/test_screening.py tests this with known costs
def test_exactly_the_one_that_got_slower_is_named(project: Path) -> None:
    # Each function takes half of the time, so 50% more work in one function is 25% of the total.
    gated.edit(project, "b05", "stir_b05(7, STIRRED)", "stir_b05(7, STIRRED + STIRRED / 2)")
    status, result = gate(project)
    assert status == 1
    reasons = [reason["benchmark"] for reason in result["reasons"] if reason["kind"] == "regressed"]
    assert reasons == ["b05"], result["reasons"]
    gating = {row["name"]: row for row in result["benchmarks"] if row["gating"]}
    assert len(gating) == COUNT
    # Fresh code layouts confirm what changed, or fresh pairs if the linker supports none.
    confirmed = {item["benchmark"] for item in result["confirmations"] if item["outcome"] == "confirmed"}
    assert gating["b05"]["design"] == "layouts" or "b05" in confirmed
    assert {name for name, row in gating.items() if row["level"] == "action"} == {"b05"}


@pytest.mark.long  # tests/session/test_screening.py tests this with known costs
def test_an_unchanged_repository_never_fails(project: Path) -> None:
    (project / "README").write_text("nothing that is measured\n")
    gated.commit(project)
    statuses = [gate(project)[0] for _ in range(REPEATS)]
    assert 1 not in statuses, statuses
    # A temporary disturbance may leave one gate unproven.
    assert statuses.count(0) >= 0.8 * REPEATS or (REPEATS == 1 and statuses == [4]), statuses


def test_what_crashes_or_is_lost_on_head_is_named_and_the_rest_is_judged(project: Path) -> None:
    # Few enough to be compared without screening. Failures to measure do not depend on screening.
    names = [f"b{number:02}" for number in range(4)]
    gated.flow(project, names)
    gated.commit(project)
    git(project, "rm", "-q", "src/b01.c")
    gated.edit(project, "b03", "return 0;", "__builtin_trap();")
    status, result = gate(project)
    assert status == 3
    assert "no longer measured: b01 cpu" in [reason["text"] for reason in result["reasons"]]
    (crash,) = [reason["text"] for reason in result["reasons"] if reason["kind"] == "step-failed"]
    assert crash == "step bench[name=b03]: on head: b03 was killed by signal 4"
    measured = {row["name"] for row in result["benchmarks"] if row["gating"] and row["decision"] != "removed"}
    assert measured == {*names} - {"b01", "b03"}
    assert [item["status"] for item in result["verification"]] == ["passed"]


@pytest.mark.long  # a gate of thirty benchmarks; this file has one of what crashes
def test_what_only_head_has_is_new(project: Path) -> None:
    names = [f"b{number:02}" for number in range(2)]
    (project / "src" / "added.c").write_text(gated.SOURCE.replace("@NAME@", "added"))
    gated.flow(project, [*names, "added"])
    gated.commit(project)
    status, result = gate(project)
    assert status in (0, 4), result["reasons"]
    (row,) = [row for row in result["benchmarks"] if row["name"] == "added" and row["gating"]]
    assert (row["decision"], row["level"], row["baseline"]) == ("new", "ok", None)
    assert row["candidate"]["n"] > 1
