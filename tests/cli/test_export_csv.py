"""``perfflow export --format csv``: tables of samples and decisions. See also ``cases/export.txt``."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import perfflow
from perfflow.api.run import columns_of
from tests.api.stored import project_in
from tests.cli.shell import perfflow as command


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project_in(tmp_path_factory.mktemp("measured") / "project")


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.long  # exports every table; tests/cli/cases/export.txt exports some
def test_the_tables_have_the_rows_of_the_python_api(measured: Path) -> None:
    run = perfflow.load("latest", root=measured)
    done = command("export", "--format", "csv", cwd=measured)
    assert done.stdout.splitlines()[0] == ",".join(columns_of(perfflow.SampleRow))
    for found, sample in zip(read(done.stdout), run.to_rows(), strict=True):
        assert float(found["value"]) == sample["value"]
        assert (int(found["pair"]), int(found["order"])) == (sample["pair"], sample["order"])
        assert (found["side"], found["at_most"]) == (sample["side"], "false")
    done = command("export", "latest", "--format", "csv", "--table", "decisions", cwd=measured)
    assert (done.returncode, done.stderr) == (0, "")
    (found,) = read(done.stdout)
    (decision,) = run.decisions()
    assert list(found) == list(columns_of(perfflow.DecisionRow))
    assert float(found["change"]) == decision["change"]
    assert (found["decision"], found["gating"]) == ("regressed", "true")


def test_names_stay_on_their_lines_and_command_no_terminal(measured: Path, tmp_path: Path) -> None:
    data = json.loads((measured / ".perfflow/runs/latest/result.json").read_text())
    data["benchmarks"][0]["name"] = 'a,"b"\nc\x1b[2J'
    (tmp_path / "result.json").write_text(json.dumps(data))
    done = command("export", "result.json", "--format", "csv", cwd=tmp_path)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 21
    rows = read(done.stdout)
    assert {row["benchmark"] for row in rows} == {'a,"b" c\\u001b[2J'}
    # A result alone does not contain the order of the samples.
    assert {row["order"] for row in rows} == {""}
