"""Suspicions of ``perfflow history changes`` about the newest runs, and how measuring in pairs settles them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli import past
from tests.cli.past import remember
from tests.cli.shell import perfflow
from tests.long import rest_long


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return past.place(tmp_path, monkeypatch)


QUIET, MOVED = 60, 3


def project(root: Path, cost: int) -> list[str]:
    """A history whose newest values are 30% higher, with revisions that really cost that much."""
    commits = past.make(root, [*[1000] * QUIET, *[cost] * MOVED])
    remember(root, commits, {"cost": around([1000] * QUIET + [1300] * MOVED)}, exact=True, width=0)
    return commits


def around(levels: Sequence[float], seed: int = 1) -> list[float | None]:
    luck = random.Random(seed)
    return [level * (1 + luck.gauss(0, 0.002)) for level in levels]


def changes(root: Path, *words: str, status: int = 0) -> str:
    done = perfflow("history", "changes", *words, cwd=root)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def listed(root: Path, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(changes(root, "--suspicions", "--json", *words))
    return found


def test_a_suspicion_stands_apart_from_changes_with_the_command_that_settles_it(root: Path) -> None:
    commits = project(root, 1300)
    base, head = commits[QUIET - 3], commits[-1]
    # The list of changes only contains changes.
    assert json.loads(changes(root, "--json")) == []
    assert "suspicion" not in changes(root, "--csv")
    text = changes(root)
    assert text.startswith("no change: ")
    assert f"perfflow gate costs --base {base[:12]} --head {head[:12]}" in " ".join(text.split())
    (found,) = listed(root)
    assert (found["state"], found["benchmark"], found["base"], found["head"]) == ("open", "cost", base, head)
    assert abs(found["change"] - 0.3) < 0.01
    assert abs(found["before"] - 1000) < 5
    assert found["at"] == QUIET
    # It stays one suspicion, however often it is shown.
    assert listed(root) == [found]


@pytest.mark.long  # measures pairs, as the test of what they confirm
def test_a_change_among_the_newest_runs_is_one_until_it_is_settled(root: Path) -> None:
    commits = past.make(root, [*[1000] * 40, *[1300] * 8])
    remember(root, commits, {"cost": around([1000] * 40 + [1300] * 8)}, exact=True, width=0)
    # Programs that read the list find it there, with the same mark as before.
    (change,) = json.loads(changes(root, "--json"))
    assert change["at"] == 40
    text = changes(root)
    assert text.startswith("no change: ")
    assert "perfflow gate costs --base" in " ".join(text.split())
    assert "confirmed" in changes(root, "--confirm", "flow.yaml")
    text = changes(root)
    assert "+30" in text
    assert "perfflow bisect costs" in " ".join(text.split())
    assert "perfflow gate" not in text


def test_pairs_confirm_it_and_it_is_told_once(root: Path) -> None:
    project(root, 1300)
    text = " ".join(changes(root, "--confirm", "flow.yaml").split())
    assert "confirmed" in text
    assert "measured in pairs: +30.0%, regressed" in text
    (found,) = listed(root)
    assert (found["state"], found["command"]) == ("confirmed", "")
    run = json.loads((root / ".perfflow/runs" / found["run"] / "result.json").read_text())
    assert {row["name"] for row in run["benchmarks"]} == {"cost"}
    assert "suspicion" not in changes(root).lower()
    done = perfflow("history", "changes", "--confirm", "flow.yaml", cwd=root)
    assert "note: costs has no open suspicion" in done.stderr


@pytest.mark.long  # measures pairs, as the test of what they confirm
def test_pairs_are_measured_with_the_parameters_and_the_budget_that_are_asked_for(root: Path) -> None:
    costs = [*[1000] * QUIET, *[1300] * MOVED]
    flow = past.FLOW.replace("stages:", "params: {file: none}\nstages:").replace(
        "cat costs", '"cat ${{ params.file }}"'
    )
    commits = past.make(root, costs, flow)
    remember(root, commits, {"cost": around(costs)}, exact=True, width=0, params='{"file": "costs"}')
    done = perfflow("history", "changes", "--budget", "9m", cwd=root)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--budget is about measuring" in done.stderr
    done = perfflow("history", "changes", "--confirm", "flow.yaml", cwd=root)
    assert "note: costs has no open suspicion" in done.stderr
    words = ("--confirm", "flow.yaml", "--set", "file=costs", "--budget", "9m", "--trust")
    assert "confirmed" in changes(root, *words)
    run = past.result_of(root)["run"]
    assert (run["params"], run["budget"]) == ({"file": "costs"}, 540)
    assert {"--set=file=costs", "--budget=9m"} <= set(run["command"])


@pytest.mark.long  # settles as other pairs in this file
def test_pairs_withdraw_what_was_the_machine(root: Path) -> None:
    commits = project(root, 1000)
    text = " ".join(changes(root, "--confirm", "flow.yaml").split())
    assert "withdrawn" in text
    assert "measured in pairs: 0.0%, same" in text
    assert [item["state"] for item in listed(root)] == ["withdrawn"]
    # More points at the same level are the same suspicion.
    remember(root, commits[-2:], {"cost": around([1300] * 2, 2)}, ago=[0.2, 0.1], exact=True, width=0)
    assert [item["state"] for item in listed(root)] == ["withdrawn"]


@pytest.mark.parametrize(("level", "state"), rest_long([(1000, "withdrawn"), (1300, "confirmed")]))
def test_later_runs_settle_it_as_well(level: int, state: str, root: Path) -> None:
    commits = project(root, 1300)
    assert [item["state"] for item in listed(root)] == ["open"]
    later = [0.5 - number / 100 for number in range(20)]
    # As long as it is among the newest runs, pairs may settle it.
    few = {"cost": around([level] * 6, 3)}
    remember(root, [commits[-1]] * 6, few, ago=later[:6], exact=True, width=0)
    assert [item["state"] for item in listed(root)] == ["open"]
    more = {"cost": around([level] * 14, 4)}
    remember(root, [commits[-1]] * 14, more, ago=later[6:], exact=True, width=0)
    text = changes(root)
    assert state in text
    (found,) = listed(root)
    assert found["state"] == state
    assert found["why"].startswith("later runs ")
    assert state not in changes(root)


def test_a_suspicion_of_another_machine_stays_open(root: Path) -> None:
    commits = past.make(root, [*[1000] * QUIET, *[1300] * MOVED])
    values = around([1000] * QUIET + [1300] * MOVED)
    remember(root, commits, {"cost": values}, exact=True, width=0, machine="another")
    done = perfflow("history", "changes", "--confirm", "flow.yaml", "--suspicions", cwd=root)
    assert done.returncode == 0, done.stderr
    assert "note: costs has no open suspicion that this machine can measure in pairs" in done.stderr
    assert "open" in done.stdout


def test_a_quiet_history_raises_none(root: Path) -> None:
    commits = past.make(root, [1000] * 30)
    remember(root, commits, {"cost": around([1000] * 30)}, exact=True, width=0)
    assert listed(root) == []
    assert changes(root, "--suspicions").startswith("no suspicion: ")


def test_a_head_that_does_not_measure_leaves_it_open(root: Path) -> None:
    commits = project(root, 1300)
    newest = past.commit(root, costs="none\n")
    remember(root, [newest], {"cost": [1300]}, ago=[0], exact=True, width=0)
    text = changes(root, "--confirm", "flow.yaml", status=3)
    assert "could not be measured in pairs" in " ".join(text.split())
    assert [item["state"] for item in listed(root)] == ["open"]
    assert len(commits) == QUIET + MOVED


def test_what_has_no_table_of_that_kind_is_refused(root: Path) -> None:
    project(root, 1300)
    done = perfflow("history", "changes", "--suspicions", "--csv", cwd=root)
    assert done.returncode == 2
    assert "use --json" in done.stderr
    assert perfflow("history", "changes", "--confirm", "nothing.yaml", cwd=root).returncode == 2
