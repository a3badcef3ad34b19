"""``perfflow export --format folded|speedscope|pprof`` as a user's shell runs it."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pytest

from perfflow.model.stacks import read_folded
from perfflow.store import result_file
from perfflow.store.result_file import stack_profiles
from tests.cli.shell import perfflow, write

FLOW = f"""
name: profiled
stages:
  baseline:
    - id: hot
      run: echo time 100 us
      parse: {{regex: "time (?P<time>[0-9.]+)", units: {{time: us}}}}
      runs: 6
    - id: calls
      uses: cprofile
      benchmark: hot
      with: {{command: {sys.executable} hot.py}}
    - id: stacks
      uses: ./stacks.yaml
      benchmark: hot
"""
TOOL = """
perfflow-tool: 1
role: profile
argv: [cp, out.folded, "${{ folder }}/a.folded"]
outputs: [a.folded]
stacks: a.folded
"""
ENDINGS = (".folded", ".pb.gz", ".speedscope.json")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    write(folder, FLOW)
    (folder / "stacks.yaml").write_text(TOOL)
    (folder / "out.folded").write_text("main;parse 3\nmain;evil\u202e\x1b[2J 1\n")
    (folder / "hot.py").write_text("def inner():\n    return sum(range(10**5))\nfor _ in range(9):\n    inner()\n")
    done = perfflow("run", "flow.yaml", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def run_of(project: Path) -> Path:
    return (project / ".perfflow/runs/latest").resolve()


def test_profiles_are_read_with_the_cost_of_one_operation(project: Path) -> None:
    run = run_of(project)
    calls, stacks = stack_profiles(run, result_file.read(run / "result.json"))
    assert (calls.step, calls.benchmark, calls.side, calls.tool) == ("calls", "hot", "baseline", "cprofile")
    assert (calls.unit, calls.is_call_pairs) == ("ns", True)
    assert any(stack == ("<module> (hot.py)", "inner (hot.py)") for stack in calls.threads[""])
    assert (stacks.unit, stacks.threads[""][("main", "parse")]) == ("samples", 3)
    for profile in (calls, stacks):
        assert profile.per_operation == pytest.approx(100_000)
        assert profile.cost_unit == "ns"


def test_a_file_of_each_profile_is_written_and_lies_beside_the_page(project: Path) -> None:
    names = sorted(f"{step}-hot-baseline{ending}" for step in ("calls", "stacks") for ending in ENDINGS)
    beside = run_of(project) / "profiles"
    assert sorted(path.name for path in beside.iterdir()) == names
    words = ("--format", "folded", "--format", "speedscope", "--format", "pprof")
    done = perfflow("export", *words, "--out", "files", cwd=project)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.split()) == [f"files/{name}" for name in names]
    for name in names:
        assert (project / "files" / name).read_bytes() == (beside / name).read_bytes()
    text = (project / "files/stacks-hot-baseline.folded").read_text()
    assert text == "main;evil\\u202e\\u001b[2J 1\nmain;parse 3\n"
    assert (
        json.loads((project / "files/stacks-hot-baseline.speedscope.json").read_text())["profiles"][0]["endValue"] == 4
    )
    assert b"parse" in gzip.decompress((project / "files/stacks-hot-baseline.pb.gz").read_bytes())
    assert perfflow("receipt", "verify", cwd=project).returncode == 0


def test_without_a_format_no_profile_is_among_the_files(project: Path) -> None:
    done = perfflow("export", "--out", "ci", cwd=project)
    assert done.returncode == 0
    assert not [path for path in (project / "ci").iterdir() if path.name.endswith(ENDINGS)]


def test_the_sum_of_a_folded_file_is_that_of_the_profile(project: Path) -> None:
    run = run_of(project)
    for profile in stack_profiles(run, result_file.read(run / "result.json")):
        text = (run / "profiles" / f"{profile.step}-hot-baseline.folded").read_text()
        assert read_folded(text).total() == sum(sum(own.values()) for own in profile.threads.values())


def test_what_cannot_be_exported_is_said_with_a_remedy(project: Path, tmp_path: Path) -> None:
    run = run_of(project)
    data = json.loads((run / "result.json").read_text())

    def stored(name: str, **changed: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        kept = [{**item, **changed} for item in data["profiles"] if item["step"] == "stacks"]
        (folder / "result.json").write_text(json.dumps({**data, "profiles": kept if changed else []}))
        return folder

    alone = tmp_path / "alone.json"
    alone.write_text(json.dumps(data))
    (tmp_path / "outside.folded").write_text("secret 1\n")
    for words, status, said in (
        (["none"], 2, "no run found"),
        ([str(alone)], 2, "name the run's folder"),
        ([str(stored("empty"))], 2, "add a step that profiles"),
        ([str(stored("gone", path="steps/none.folded"))], 3, "run the workflow again"),
        ([str(stored("elsewhere", path="../outside.folded"))], 3, "none of its profiles can be read"),
        (["--format", "svg"], 2, "folded"),
    ):
        done = perfflow("export", *words, "--format", "pprof", "--out", str(tmp_path / "out"), cwd=project)
        assert (done.returncode, said in done.stderr) == (status, True), done.stderr
    assert not (tmp_path / "out").exists()
