"""``perfflow gate --base-results``: only head is measured, and compared unpaired with stored results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli import past
from tests.cli.past import gate
from tests.cli.shell import perfflow

FLOW = past.FLOW + "  verify:\n    - {id: right, run: '! grep -q 666 costs'}\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose baseline costs 1000, and whose head costs 1300."""
    root = past.place(tmp_path, monkeypatch)
    past.make(root, [1000], FLOW)
    assert perfflow("run", "flow.yaml", "--progress", "off", cwd=root).returncode == 0
    assert perfflow("baseline", "save", "main", cwd=root).returncode == 0
    (root / "costs").write_text("1300\n")
    return root


def exported(root: Path) -> dict[str, str]:
    assert perfflow("export", "latest", "--out", "ci", cwd=root).returncode == 0
    return {path.name: path.read_text() for path in (root / "ci").iterdir()}


def test_head_alone_is_measured_and_nothing_is_judged(root: Path) -> None:
    done = gate(root, "--base-results", "main")
    assert done.returncode == 0, done.stderr
    assert "regressed (over 10%, unpaired)" in done.stdout
    assert "nothing is judged" in done.stdout
    assert "review:gate:perf" not in done.stdout
    assert "PASS" not in done.stdout
    found = past.result_of(root)
    assert (found["verdict"], found["gate"], found["run"]["workflow"]) == (None, None, "costs")
    assert found["run"]["command"] == ["perfflow", "gate", "flow.yaml", "--base-results=main"]
    (row,) = found["benchmarks"]
    assert (row["paired"], row["gating"], row["leading"], row["decision"]) == (False, False, True, "regressed")
    assert (row["baseline"]["value"], row["candidate"]["value"]) == (1000, 1300)
    # The run of head is a normal run with its values in the history. The values of the baseline are there once.
    (shown,) = json.loads(perfflow("history", "show", "cost", "--json", cwd=root).stdout)
    assert [point["value"] for point in shown["points"]] == [1000, 1300]
    report = (root / ".perfflow/runs/latest/report.md").read_text()
    assert "unpaired" in report
    assert "head was measured" in report
    assert "perfflow gate flow.yaml --base-results=main\n" in report
    files = exported(root)
    assert json.loads(files["check_run.json"]) == []
    assert "perfflow_gate_passed" not in files["metrics.txt"]
    assert all("unpaired" in files[name] for name in ("summary.md", "comment.md"))
    assert "perfflow:costs:" in files["comment.md"]


def test_of_the_stored_results_the_chosen_are_compared(root: Path) -> None:
    other = FLOW.replace(
        "  verify:",
        "    - {id: other, run: echo ms=1, parse: {regex: 'ms=(?P<time>.*)', units: {time: ms}}}\n  verify:",
    )
    (root / "flow.yaml").write_text(other)
    assert perfflow("run", "flow.yaml", "--progress", "off", cwd=root).returncode == 0
    assert perfflow("baseline", "save", "both", cwd=root).returncode == 0
    done = gate(root, "--base-results", "both", "--benchmark", "cost")
    assert done.returncode == 0, done.stderr
    found = past.result_of(root)
    assert [row["name"] for row in found["benchmarks"]] == ["cost"]
    assert found["run"]["command"][-2:] == ["--benchmark=cost", "--base-results=both"]


def test_a_flag_makes_a_proven_regression_fail(root: Path) -> None:
    done = gate(root, "--base-results", "main", "--fail-on", "regressed")
    assert done.returncode == 1
    assert "regressed: cost instructions +30.0%" in done.stdout
    (root / "costs").write_text("1000\n")
    assert gate(root, "--base-results", "main", "--fail-on", "regressed").returncode == 0


def test_a_run_may_be_the_base_and_the_comparison_goes_where_it_is_told(root: Path) -> None:
    done = gate(root, "--base-results", "latest", "--out", "there", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (root / "there/result.json").read_text()
    assert json.loads(done.stdout)["trees"]["candidate"]["label"] == (root / ".perfflow/runs/latest").resolve().name


def test_what_is_wrong_with_head_alone_fails_as_in_a_run(root: Path) -> None:
    (root / "costs").write_text("666\n")
    done = gate(root, "--base-results", "main")
    assert done.returncode == 1
    assert "✗ FAIL" in done.stdout
    assert "unpaired: 1 improved; nothing is judged" in done.stdout
    assert any("this run failed" in text for text in past.result_of(root)["run"]["warnings"])
    (root / "costs").write_text("none\n")
    done = gate(root, "--base-results", "main")
    assert done.returncode == 3
    assert "ERROR" in done.stdout


def foreign(root: Path) -> None:
    path = root / ".perfflow/baselines/main/baseline.json"
    text = json.loads(path.read_text())
    text["result"]["machine"] |= {"cores": 4096, "identity": "another"}
    path.write_text(json.dumps(text))


def test_a_baseline_of_another_machine_is_refused_before_anything_is_measured(root: Path) -> None:
    foreign(root)
    runs = len(list((root / ".perfflow/runs").iterdir()))
    for more in ([], ["--dry-run"]):
        done = gate(root, "--base-results", "main", *more)
        assert (done.returncode, done.stdout) == (2, "")
        assert "are from different machines (cores: 4096 and" in done.stderr
        assert "use --across-machines to compare them anyway" in done.stderr
    assert len(list((root / ".perfflow/runs").iterdir())) == runs
    done = gate(root, "--base-results", "main", "--across-machines")
    assert done.returncode == 0, done.stderr
    assert "unpaired, across machines" in done.stdout


def test_other_data_are_refused_before_anything_is_measured(root: Path) -> None:
    (root / "flow.yaml").write_text(FLOW + "data: [input]\n")
    (root / "input").write_text("1")
    assert perfflow("run", "flow.yaml", "--progress", "off", cwd=root).returncode == 0
    assert perfflow("baseline", "save", "main", "--force", cwd=root).returncode == 0
    assert gate(root, "--base-results", "main").returncode == 0
    (root / "input").write_text("2")
    done = gate(root, "--base-results", "main")
    assert done.returncode == 2
    assert "were measured over different data: input" in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--base-results", "mian"], "did you mean 'main'?"),
        (["--base-results", "main", "--base", "HEAD"], "leave out all but one"),
        (["--base-results", "main", "--against", "best-3d"], "leave out all but one"),
        (["--base-results", "main", "--head", "HEAD"], "git checkout HEAD"),
        (["--base", "HEAD", "--fail-on", "regressed"], "--fail-on applies only to stored results"),
        (["--base", "HEAD", "--across-machines"], "--across-machines applies only to stored results"),
    ],
)
def test_what_does_not_go_together_is_refused(words: list[str], says: str, root: Path) -> None:
    done = gate(root, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


def test_the_plan_is_that_of_head_alone(root: Path) -> None:
    done = gate(root, "--base-results", "main", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "cat costs" in done.stdout
    assert "both sides" not in done.stdout
