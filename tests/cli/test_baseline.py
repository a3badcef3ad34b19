"""``perfflow baseline save|list|show|rm`` end to end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli import past
from tests.cli.past import gate
from tests.cli.shell import perfflow, write
from tests.imports.harness import DATA, source
from tests.repositories import git

PYPERF = source(DATA / "pyperf" / "2.10.0" / "time")
NAP = "stages:\n  baseline:\n    - {id: nap, uses: command, runs: 6, with: {command: sleep 0.01}}\n"


def baseline(folder: Path, *arguments: str) -> tuple[int, str, str]:
    done = perfflow("baseline", *arguments, cwd=folder)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def listed(folder: Path) -> dict[str, dict[str, object]]:
    status, stdout, stderr = baseline(folder, "list", "--json")
    assert status == 0, stderr
    return {row["name"]: row for row in json.loads(stdout)["baselines"]}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one run."""
    folder = tmp_path_factory.mktemp("project")
    write(folder, NAP)
    assert perfflow("run", "flow.yaml", cwd=folder).returncode == 0
    return folder


@pytest.fixture
def project(measured: Path, tmp_path: Path) -> Path:
    shutil.copytree(measured, tmp_path / "project", symlinks=True)
    return tmp_path / "project"


def test_a_run_is_kept_listed_shown_and_removed(project: Path) -> None:
    status, stdout, _ = baseline(project, "save", "main")
    assert status == 0
    assert ".perfflow/baselines/main/baseline.json" in stdout
    row = listed(project)["main"]
    assert (row["tool"], row["workflow"], row["benchmarks"]) == ("perfflow", "flow", 1)
    assert row["this_machine"] is True
    assert "main" in baseline(project, "list")[1]
    status, stdout, _ = baseline(project, "show", "main")
    assert status == 0
    assert next(line for line in stdout.splitlines() if line.startswith("  nap        time ")).split()[-1] == "6"
    run = json.loads((project / ".perfflow" / "runs" / "latest" / "result.json").read_text())
    values = next(row["baseline"]["samples"] for row in run["benchmarks"] if row["metric"] == "time")
    shown = json.loads(baseline(project, "show", "main", "--json")[1])
    assert next(item["values"] for item in shown["samples"] if item["metric"] == "time") == values
    assert baseline(project, "rm", "main")[0] == 0
    assert listed(project) == {}
    assert not (project / ".perfflow" / "baselines" / "main").exists()


def test_the_run_may_go_and_its_baseline_stays(project: Path) -> None:
    baseline(project, "save", "main")
    before = baseline(project, "show", "main", "--json")[1]
    shutil.rmtree(project / ".perfflow" / "runs")
    assert baseline(project, "show", "main", "--json")[1] == before
    # A baseline can be saved under another name.
    assert baseline(project, "save", "copy", "main")[0] == 0
    assert perfflow("compare", "main", "copy", "--out", "out", cwd=project).returncode == 0


def test_another_tools_file_is_kept_with_what_it_says_of_its_machine(tmp_path: Path) -> None:
    assert baseline(tmp_path, "save", "loop", str(PYPERF))[0] == 0
    row = listed(tmp_path)["loop"]
    assert (row["tool"], row["measured"]) == ("pyperf", None)
    assert "2 cores" in str(row["machine"])
    samples = json.loads(baseline(tmp_path, "show", "loop", "--json")[1])["samples"]
    golden = json.loads((PYPERF.parent / "parsed.json").read_text())["benchmarks"]
    assert {f"{item['benchmark']} | {item['metric']}": item["values"] for item in samples} == golden


def test_saving_over_one_needs_force(tmp_path: Path) -> None:
    hyperfine = source(DATA / "hyperfine" / "1.15.0" / "named")
    baseline(tmp_path, "save", "main", str(PYPERF))
    status, _, stderr = baseline(tmp_path, "save", "main", str(hyperfine))
    assert status == 2
    assert "use --force to replace it" in stderr
    assert listed(tmp_path)["main"]["tool"] == "pyperf"
    assert baseline(tmp_path, "save", "main", str(hyperfine), "--force")[0] == 0
    assert listed(tmp_path)["main"]["tool"] == "hyperfine"
    assert [path.name for path in (tmp_path / ".perfflow" / "baselines" / "main").iterdir()] == ["baseline.json"]


@pytest.mark.parametrize("name", ["", "a/b", "../x", ".hidden", "-x", "a b", "a\n", "ä", "a" * 101, "latest"])
def test_a_name_is_no_path(name: str, tmp_path: Path) -> None:
    status, stdout, stderr = baseline(tmp_path, "save", "--", name, str(PYPERF))
    assert (status, stdout) == (2, "")
    assert "hint: " in stderr
    assert not (tmp_path / ".perfflow").exists()


def test_a_run_that_ended_in_error_is_refused_unless_forced(tmp_path: Path) -> None:
    steps = "    - {id: nap, uses: command, runs: 6, with: {command: sleep 0.01}}\n    - {id: no, uses: command, "
    write(tmp_path, f"stages:\n  baseline:\n{steps}with: {{command: 'false'}}}}\n")
    assert perfflow("run", "flow.yaml", "--keep-going", cwd=tmp_path).returncode == 3
    status, _, stderr = baseline(tmp_path, "save", "main")
    assert status == 2
    assert "ended in error: step no: " in stderr
    assert baseline(tmp_path, "save", "main", "--force")[0] == 0
    assert "note: ended in error" in baseline(tmp_path, "show", "main")[1]


def test_a_run_without_samples_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "stages:\n  build:\n    - {id: make, run: 'true'}\n")
    assert perfflow("run", "flow.yaml", cwd=tmp_path).returncode == 3
    status, _, stderr = baseline(tmp_path, "save", "main", "--force")
    assert status == 2
    assert "contains no samples" in stderr


def test_names_that_are_none(tmp_path: Path) -> None:
    assert "no baselines yet" in baseline(tmp_path, "list")[1]
    assert "there are no baselines yet" in baseline(tmp_path, "show", "main")[2]
    assert baseline(tmp_path, "save", "main")[0] == 2
    for name in ("main", "other"):
        baseline(tmp_path, "save", name, str(PYPERF))
    assert "did you mean 'main'?" in baseline(tmp_path, "show", "mian")[2]
    assert "baselines: main, other" in baseline(tmp_path, "rm", "main", "zzz")[2]
    assert set(listed(tmp_path)) == {"main", "other"}


def test_a_cut_baseline_is_named_and_the_others_are_listed(tmp_path: Path) -> None:
    for name in ("main", "cut"):
        baseline(tmp_path, "save", name, str(PYPERF))
    path = tmp_path / ".perfflow" / "baselines" / "cut" / "baseline.json"
    path.write_text(path.read_text()[:300])
    status, stdout, stderr = baseline(tmp_path, "show", "cut")
    assert (status, stdout) == (2, "")
    assert "not a baseline" in stderr
    assert "hint: save it again" in stderr
    rows = listed(tmp_path)
    assert rows["main"]["problem"] is None
    assert "not a baseline" in str(rows["cut"]["problem"])
    assert "damaged" in baseline(tmp_path, "list")[1]
    done = perfflow("compare", "cut", "main", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "not a baseline" in done.stderr


@pytest.fixture
def branches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository on the branch main, with a run."""
    root = past.place(tmp_path, monkeypatch)
    past.make(root, [100])
    assert perfflow("run", "flow.yaml", "--progress", "off", cwd=root).returncode == 0
    return root


def test_a_branch_keeps_its_newest_baseline(branches: Path) -> None:
    status, stdout, _ = baseline(branches, "save", "main", "--branch")
    assert (status, stdout) == (0, "baseline main of main: .perfflow/baselines/main/baseline.json\n")
    (branches / "costs").write_text("200\n")
    assert perfflow("run", "flow.yaml", "--progress", "off", cwd=branches).returncode == 0
    # Every night again, without --force.
    assert baseline(branches, "save", "main", "--branch")[0] == 0
    assert set(json.loads(baseline(branches, "show", "main", "--json")[1])["samples"][0]["values"]) == {200}
    assert listed(branches)["main"]["branch"] == "main"
    assert baseline(branches, "save", "main", "--branch=topic")[0] == 2
    assert baseline(branches, "save", "main")[0] == 2
    shown = baseline(branches, "list")[1].splitlines()
    assert shown[0].split()[:2] == ["name", "branch"]
    assert "branch     main" in baseline(branches, "show", "main")[1]


def test_the_branch_of_a_baseline_names_it_unless_something_is_called_so(branches: Path) -> None:
    git(branches, "checkout", "-qb", "feature/x")
    status, _, stderr = baseline(branches, "save", "feature/x", "--branch")
    assert status == 2
    assert "is not a name for a baseline" in stderr
    assert baseline(branches, "save", "feature-x", "--branch=feature/x")[0] == 0
    done = perfflow("compare", "feature/x", "latest", cwd=branches)
    assert done.returncode == 0, done.stderr
    assert "note: feature/x is a branch, whose baseline is called feature-x" in done.stderr
    assert baseline(branches, "show", "feature-x")[0] == 0
    # The run was measured on main, whatever is checked out now.
    assert baseline(branches, "save", "other", "--branch")[1].startswith("baseline other of main: ")
    done = gate(branches, "--base-results", "feature/x")
    assert done.returncode == 0, done.stderr
    assert perfflow("compare", "main", "latest", cwd=branches).returncode == 0
    assert baseline(branches, "save", "main", "feature-x")[0] == 0
    done = perfflow("compare", "main", "latest", cwd=branches)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_branch_without_a_baseline_is_its_newest_run(branches: Path) -> None:
    latest = branches / ".perfflow" / "runs" / "latest"
    older = latest.resolve().name
    git(branches, "checkout", "-qb", "topic")
    (branches / "costs").write_text("200\n")
    assert perfflow("run", "flow.yaml", "--progress", "off", cwd=branches).returncode == 0
    newest = latest.resolve().name
    done = perfflow("compare", "main", "latest", "--json", cwd=branches)
    assert done.returncode == 0, done.stderr
    assert f"note: main is a branch without a baseline; {older} is the newest run that measured it" in done.stderr
    (row,) = json.loads(done.stdout)["benchmarks"]
    assert (row["baseline"]["value"], row["candidate"]["value"]) == (100, 200)
    # A comparison has no branch. The latest run on a branch has that branch.
    assert f"{newest} is the newest run" in perfflow("compare", "main", "topic", "--json", cwd=branches).stderr
    missing = perfflow("compare", "other", "latest", cwd=branches)
    assert missing.returncode == 2
    assert "'other' is not a baseline, a run or a result file" in missing.stderr


def test_a_branch_has_to_be_known(branches: Path, tmp_path: Path) -> None:
    git(branches, "checkout", "-q", "--detach")
    assert perfflow("run", "flow.yaml", "--progress", "off", cwd=branches).returncode == 0
    status, _, stderr = baseline(branches, "save", "main", "--branch")
    assert status == 2
    assert "hint: name it: --branch=main" in stderr
    assert baseline(branches, "save", "main", "--branch=a b")[0] == 2
    assert baseline(branches, "save", "main", "--branch=main")[0] == 0
    assert baseline(tmp_path, "save", "main", str(PYPERF), "--branch")[0] == 2
    assert baseline(tmp_path, "save", "main", str(PYPERF), "--branch", "main")[0] == 0
