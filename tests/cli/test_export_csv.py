"""``perfflow export --format csv``: tidy samples and decisions for whatever reads CSV."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

import perfflow
from perfflow.api.run import columns_of
from tests.api.stored import project_in
from tests.cli.shell import perfflow as command

SAMPLES, DECISIONS = columns_of(perfflow.SampleRow), columns_of(perfflow.DecisionRow)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project_in(tmp_path_factory.mktemp("measured") / "project")


@pytest.fixture
def project(measured: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(measured, tmp_path / "project", symlinks=True))


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_samples_go_to_stdout_and_nothing_is_written(project: Path) -> None:
    done = command("export", "--format", "csv", cwd=project)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (project / ".perfflow" / "export").exists()
    assert done.stdout.splitlines()[0] == ",".join(SAMPLES)
    assert command("export", "--format", "csv", "--table", "samples", cwd=project).stdout == done.stdout
    expected = perfflow.load("latest", root=project).to_rows()
    for found, row in zip(read(done.stdout), expected, strict=True):
        assert float(found["value"]) == row["value"]
        assert (int(found["pair"]), int(found["order"])) == (row["pair"], row["order"])
        assert (found["side"], found["at_most"]) == (row["side"], "false")


def test_decisions_go_to_stdout_where_they_are_asked_for(project: Path) -> None:
    done = command("export", "latest", "--format", "csv", "--table", "decisions", cwd=project)
    assert (done.returncode, done.stderr) == (0, "")
    (found,) = read(done.stdout)
    (row,) = perfflow.load("latest", root=project).decisions()
    assert list(found) == list(DECISIONS)
    assert float(found["change"]) == row["change"]
    assert (found["decision"], found["gating"]) == ("regressed", "true")


def test_out_writes_files_and_says_so(project: Path) -> None:
    printed = command("export", "--format", "csv", cwd=project).stdout
    done = command("export", "--format", "csv", "--out", "tables", cwd=project)
    assert (done.returncode, done.stdout) == (0, "tables/samples.csv\ntables/decisions.csv\n")
    assert sorted(path.name for path in (project / "tables").iterdir()) == ["decisions.csv", "samples.csv"]
    assert (project / "tables" / "samples.csv").read_text() == printed
    done = command("export", "--format", "csv", "--table", "decisions", "--out", "one", cwd=project)
    assert done.stdout == "one/decisions.csv\n"


def test_beside_other_formats_it_is_files(project: Path) -> None:
    done = command("export", "--format", "junit", "--format", "csv", "--out", "ci", cwd=project)
    assert done.stdout.splitlines() == ["ci/junit.xml", "ci/samples.csv", "ci/decisions.csv"]


def test_without_a_format_no_csv_is_written(project: Path) -> None:
    done = command("export", "--out", "ci", cwd=project)
    assert done.returncode == 0
    assert not [line for line in done.stdout.splitlines() if line.endswith(".csv")]


def test_names_stay_on_their_lines_and_command_no_terminal(project: Path, tmp_path: Path) -> None:
    data = json.loads((project / ".perfflow/runs/latest/result.json").read_text())
    data["benchmarks"][0]["name"] = 'a,"b"\nc\x1b[2J'
    (tmp_path / "result.json").write_text(json.dumps(data))
    done = command("export", "result.json", "--format", "csv", cwd=tmp_path)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 21
    rows = read(done.stdout)
    assert {row["benchmark"] for row in rows} == {'a,"b" c\\u001b[2J'}
    # A result alone does not contain the order of the samples.
    assert {row["order"] for row in rows} == {""}


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--table", "samples"], 2, "add --format csv"),
        (["--format", "csv", "--table", "rows"], 2, "'samples', 'decisions'"),
        (["nothing", "--format", "csv"], 2, "the newest in"),
        (["--format", "csv", "--out", "flow.yaml/x"], 3, "--out DIR"),
    ],
)
def test_bad_usage_is_told_with_a_remedy(words: list[str], status: int, said: str, project: Path) -> None:
    done = command("export", *words, cwd=project)
    assert (done.returncode, done.stdout) == (status, "")
    assert said in done.stderr


def test_damaged_events_print_nothing(project: Path) -> None:
    events = project / ".perfflow/runs/latest/events.jsonl"
    events.write_text(events.read_text().replace('"metric":', '"matric":'))
    for more in ([], ["--out", "tables"]):
        done = command("export", "--format", "csv", *more, cwd=project)
        assert (done.returncode, done.stdout) == (2, "")
        assert "not what this version of perfflow writes" in done.stderr
    assert not (project / "tables").exists()
