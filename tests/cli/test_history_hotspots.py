"""The function that caused a change in the history, from real profiles of the runs on both sides."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests import histories
from tests.cli import past
from tests.cli.past import remember
from tests.cli.shell import perfflow
from tests.repositories import git

SOURCE = """\
__attribute__((noinline)) long steady(long n) { volatile long s = 0; for (long i = 0; i < n; i++) s += i; return s; }
__attribute__((noinline)) long slower(long n) { volatile long s = 0; for (long i = 0; i < n; i++) s -= i; return s; }
int main(void) { return (steady(20000) + slower(COUNT)) == 1; }
"""
FLOW = (
    past.NOISY.replace("run: cat", "runs: 3, run: cat")
    + """\
  profile:
    - {id: spots, uses: callgrind, benchmark: cost, with: {command: ./program}}
"""
)
EACH = 20
"""Among the newest 15 runs, a change is only a suspicion."""


@pytest.mark.skipif(not (shutil.which("valgrind") and shutil.which("cc")), reason="needs valgrind and a C compiler")
def test_a_change_names_the_function_that_the_profiles_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = past.place(tmp_path, monkeypatch)
    build = "stages:\n  build:\n    - {id: make, run: cc -g -O1 -o program program.c}\n"
    first = {"flow.yaml": FLOW.replace("stages:\n", build), ".gitignore": ".perfflow/\nprogram\n"}
    costs, counts = [*[1000] * EACH, *[2000] * EACH], [*["2000"] * EACH, *["40000"] * EACH]
    states = [
        {"costs": f"{cost}\n", "n": f"{at}\n", "program.c": SOURCE.replace("COUNT", count)}
        for at, (cost, count) in enumerate(zip(costs, counts, strict=True))
    ]
    commits = histories.make(root, [{**first, **states[0]}, *states[1:]])
    runs = []
    for at in (EACH - 1, EACH):
        git(root, "checkout", "-q", commits[at])
        done = perfflow("run", "flow.yaml", "--progress", "off", cwd=root)
        assert done.returncode == 0, done.stdout + done.stderr
        # By their order, since names do not sort runs within one second.
        runs.append((root / ".perfflow" / "runs" / "latest").resolve().name)
    others: list[float | None] = [cost * (1 + 0.002 * (at % 3)) for at, cost in enumerate(costs)]
    others[EACH - 1] = others[EACH] = None
    remember(root, commits, {"cost": others}, width=0)
    done = perfflow("history", "changes", "--json", "--metric", "cost", cwd=root)
    (change,) = json.loads(done.stdout)
    assert change["at"] == EACH
    spot = change["hotspots"][0]
    assert spot["function"] == "slower"
    assert spot["before"] < 0.2
    assert spot["after"] > 0.4
    assert spot["runs"] == runs
    assert "slower" in perfflow("history", "changes", "--metric", "cost", cwd=root).stdout
    assert "slower" in perfflow("history", "changes", "--csv", "--metric", "cost", cwd=root).stdout
