"""``perfflow history`` end to end: real runs, files of real tools, damaged or unreachable stores."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import random
import re
import shutil
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfflow.store.history.stored import checked
from tests.cli.shell import perfflow
from tests.imports.harness import DATA, GOLDEN, source
from tests.repositories import git
from tests.store.history.databases import has_server, server
from tests.store.history.test_data_js import TEXT

FLOW = """\
perfflow: 1
name: nap
stages:
  baseline:
    - {id: nap, uses: command, with: {command: "sleep 0.005"}, runs: 5}
"""


@pytest.fixture(autouse=True)
def _settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of a user of its own for each test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path.parent / f"{tmp_path.name}-config"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with two commits, each with a run."""
    folder = tmp_path_factory.mktemp("history") / "project"
    folder.mkdir()
    (folder / "flow.yaml").write_text(FLOW)
    git(folder, "init", "-q", "-b", "main")
    for number in range(2):
        (folder / "change").write_text(str(number))
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", f"change {number}")
        assert perfflow("run", "flow.yaml", cwd=folder, measured=True).returncode == 0
    return folder


def _json(folder: Path, *words: str) -> list[dict[str, object]]:
    done = perfflow("history", *words, "--json", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    found: list[dict[str, object]] = json.loads(done.stdout)
    return found


def test_every_run_is_in_the_history(project: Path) -> None:
    (row,) = [row for row in _json(project) if row["metric"] == "time"]
    assert (row["benchmark"], row["runs"], row["workflow"], row["unit"]) == ("nap", 2, "nap", "s")
    assert len(row["trend"]) == 2  # type: ignore[arg-type]
    (shown,) = _json(project, "show", "nap", "--metric", "time")
    assert [point["branch"] for point in shown["points"]] == ["main", "main"]  # type: ignore[attr-defined]
    assert len({point["revision"] for point in shown["points"]}) == 2  # type: ignore[attr-defined]
    table = perfflow("history", "show", "nap", "--metric", "time", cwd=project).stdout
    assert table.count("main") == 2
    rows = list(csv.DictReader(io.StringIO(perfflow("history", "--metric", "time", "--csv", cwd=project).stdout)))
    assert [row["benchmark"] for row in rows] == ["nap", "nap"]


def test_filters(project: Path) -> None:
    assert _json(project, "--branch", "topic") == []
    assert _json(project, "--since", "2999-01-01") == []
    assert _json(project, "--regressions") == []
    assert perfflow("history", "--since", "soon", cwd=project).returncode == 2
    missing = perfflow("history", "show", "nop", cwd=project)
    assert missing.returncode == 2
    assert "nap" in missing.stderr


def test_adding_a_run_again_changes_nothing(project: Path, tmp_path: Path) -> None:
    done = perfflow("history", "add", "latest", cwd=project)
    assert done.stdout == "0 runs added, 1 already known\n"
    other = tmp_path / "other"
    other.mkdir()
    run = next(path for path in sorted((project / ".perfflow/runs").iterdir()) if not path.is_symlink())
    done = perfflow("history", "add", str(run / "result.json"), cwd=other)
    assert done.stdout == "1 run added\n", done.stderr
    assert [row["runs"] for row in _json(other, "--metric", "time")] == [1]


def test_a_damaged_store_is_kept_aside_and_made_again(project: Path) -> None:
    path = project / ".perfflow/history.sqlite"
    before = _json(project)
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    done = perfflow("history", "--json", cwd=project)
    assert json.loads(done.stdout) == before
    assert "damaged" in done.stderr
    assert (project / ".perfflow/history.sqlite.damaged-1").is_file()
    assert _json(project) == before


def test_runs_that_lie_elsewhere_are_found_again(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "flow.yaml").write_text(FLOW)
    for name in ("kept", "gone"):
        assert perfflow("run", "flow.yaml", "--out", f"../{name}", cwd=root, measured=True).returncode == 0
    assert [row["runs"] for row in _json(root, "--metric", "time")] == [2]
    shutil.rmtree(tmp_path / "gone")
    (root / ".perfflow/history.sqlite").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    done = perfflow("history", "--metric", "time", "--json", cwd=root)
    assert [row["runs"] for row in json.loads(done.stdout)] == [1]
    assert "1 runs outside the project (`--out`) no longer exist" in done.stderr


@pytest.mark.parametrize(
    "case",
    [
        "pytest-benchmark/5.3.1",
        "asv/0.6.6",
        "hyperfine/1.15.0",
        "go/1.26.8",
        "google-benchmark/1.7.1",
        "pyperf/2.10.0",
        "criterion/0.8.2",
    ],
)
def test_files_of_every_tool_are_imported_once(case: str, tmp_path: Path) -> None:
    cases = (path for path in sorted((DATA / case).iterdir()) if '"error"' not in (path / GOLDEN).read_text()[:20])
    folder = next(cases)
    file = str(source(folder))
    done = perfflow("history", "import", file, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1 set added\n"), done.stderr
    assert perfflow("history", "import", file, cwd=tmp_path).stdout == "0 sets added, 1 already known\n"
    rows = _json(tmp_path)
    assert rows
    assert all(row["runs"] == 1 and row["measured"] for row in rows)


def test_a_folder_of_files_is_imported_without_what_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "notes.json").write_text("{}")
    (folder / "one.json").write_bytes(source(DATA / "pyperf" / "2.10.0" / "time").read_bytes())
    done = perfflow("history", "import", "results", cwd=tmp_path)
    assert done.stdout == "1 set added\n"
    assert "results: 1 file cannot be read: results/notes.json: unknown kind of result file" in done.stderr
    (folder / "one.json").unlink()
    none = perfflow("history", "import", "results", cwd=tmp_path)
    assert none.returncode == 2
    assert "results/notes.json: unknown kind of result file" in none.stderr
    old = json.loads(source(DATA / "asv" / "0.6.6" / "samples").read_text())
    del old["result_columns"]
    for name in ("old.json", "older.json"):
        (folder / name).write_text(json.dumps(old))
    none = perfflow("history", "import", "results", cwd=tmp_path)
    assert "results: 3 files cannot be read; 2 like results/old.json: the file is from asv before 0.5" in none.stderr
    assert "asv update" in none.stderr


def _page(values: list[float]) -> str:
    entries = [
        {
            "commit": {"id": f"{number:040x}", "timestamp": f"2026-01-01T{number // 60:02}:{number % 60:02}:00Z"},
            "date": 1_767_225_600_000 + 60_000 * number,
            "tool": "go",
            "benches": [{"name": "Parse", "value": value, "unit": "ns/op"}],
        }
        for number, value in enumerate(values)
    ]
    return f"window.BENCHMARK_DATA = {json.dumps({'entries': {'Go': entries}})};"


def test_changes_are_told_with_their_commits(tmp_path: Path) -> None:
    luck = random.Random(11)
    values = [100 * math.exp(luck.gauss(0, 0.01)) * (1.15 if number >= 60 else 1.0) for number in range(120)]
    (tmp_path / "data.js").write_text(_page(values))
    assert perfflow("history", "import", "data.js", cwd=tmp_path).stdout == "120 sets added\n"
    (change,) = _json(tmp_path, "changes")
    assert (change["benchmark"], change["metric"]) == ("Parse", "time")
    assert abs(int(change["at"]) - 60) <= 1  # type: ignore[call-overload]
    assert float(change["low"]) < 0.15 < float(change["high"])  # type: ignore[arg-type]
    assert change["commits"] == [f"{change['at']:040x}"]
    assert {"before", "after", "confidence"} <= change.keys()
    (row,) = _json(tmp_path, "--regressions")
    assert row["shift"]
    table = perfflow("history", "changes", cwd=tmp_path).stdout
    assert "Parse" in table
    assert "+15" in table or "+14" in table


def test_a_tiny_change_is_marked_and_stands_below_larger_ones(tmp_path: Path) -> None:
    luck = random.Random(5)

    def write(name: str, noise: float, change: float) -> None:
        values = [100 * math.exp(luck.gauss(0, noise)) * (1 + change * (number >= 60)) for number in range(100)]
        (tmp_path / name).mkdir()
        (tmp_path / name / "data.js").write_text(_page(values).replace("Parse", name))
        assert perfflow("history", "import", f"{name}/data.js", cwd=tmp_path).returncode == 0

    def printed(*words: str) -> str:
        return perfflow("history", *words, cwd=tmp_path).stdout

    write("Atiny", 0.0001, 0.0008)
    write("Blarge", 0.01, 0.15)
    rows = _json(tmp_path, "--regressions")
    assert [row["benchmark"] for row in rows] == ["Blarge", "Atiny"]
    assert [row["shift"]["weight"] for row in rows] == ["action", "below floor"]  # type: ignore[index]
    assert {row["benchmark"]: row["weight"] for row in _json(tmp_path, "changes")} == {
        "Blarge": "action",
        "Atiny": "below floor",
    }
    named = {row["benchmark"] for row in csv.DictReader(io.StringIO(printed("--regressions", "--csv")))}
    assert named == {"Blarge", "Atiny"}
    assert printed("--flaky", "--csv").splitlines()[1:] == []
    write("Cflaky", 0.2, 0.0)
    assert [row["benchmark"] for row in _json(tmp_path, "--flaky")] == ["Cflaky"]
    flaky = list(csv.DictReader(io.StringIO(printed("--flaky", "--csv"))))
    assert {row["benchmark"] for row in flaky} == {"Cflaky"}
    assert len(flaky) == 100
    for words in (("--regressions",), ("changes",)):
        table = perfflow("history", *words, cwd=tmp_path).stdout
        assert table.count("below the floor of a gate") == 1, table
    assert perfflow("history", "build", "site", cwd=tmp_path).returncode == 0
    index = (tmp_path / "site" / "index.html").read_text()
    assert index.count("below the floor of a gate") == 1
    for name, is_small in (("Atiny", True), ("Blarge", False)):
        (page,) = (path.read_text() for path in (tmp_path / "site" / "benchmarks").glob(f"{name}-*.html"))
        shown = perfflow("history", "show", name, cwd=tmp_path).stdout
        for text, said in ((page, r"changed by \+[\d.]+%, below the floor of a gate</td>"), (shown, "below the floor")):
            assert bool(re.search(said, text)) == is_small, name
        assert page.count('<path class="bound small"') == is_small
        assert page.count('<path class="bound"') == (not is_small)


def test_a_page_of_another_action_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.js").write_text(TEXT[:200])
    done = perfflow("history", "import", "data.js", cwd=tmp_path)
    assert done.returncode == 2
    assert "cut short" in done.stderr
    (tmp_path / "data.js").write_text("alert(1)")
    assert "has no window.BENCHMARK_DATA" in perfflow("history", "import", "data.js", cwd=tmp_path).stderr


def test_an_empty_history_says_how_to_begin(tmp_path: Path) -> None:
    done = perfflow("history", cwd=tmp_path)
    assert done.returncode == 0
    assert "perfflow run" in done.stdout


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if not has_server():
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with server() as found:
        yield found


def test_a_store_that_is_away_gets_what_waited(address: str, tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(FLOW)
    away = {"PERFFLOW_HISTORY": "postgresql://tester@127.0.0.1:1/none", "PGPASSWORD": "word"}
    done = perfflow("run", "flow.yaml", cwd=tmp_path, env=away, measured=True)
    assert done.returncode == 0
    assert "1 run waits to be sent" in done.stderr
    assert "word" not in done.stderr.replace("password", "")
    assert (tmp_path / ".perfflow/history-unsent.jsonl").is_file()
    assert perfflow("history", cwd=tmp_path, env=away).returncode == 3
    done = perfflow("history", "use", address, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [row["runs"] for row in _json(tmp_path, "--metric", "time")] == [1]
    assert not (tmp_path / ".perfflow/history-unsent.jsonl").exists()
    (stored,) = (Path(os.environ["XDG_CONFIG_HOME"]) / "perfflow" / "histories").iterdir()
    assert json.loads(stored.read_text()) == {"project": str(tmp_path), "address": address}
    assert [path.stat().st_mode & 0o077 for path in (stored.parent,)] == [0]
    assert perfflow("history", "use", cwd=tmp_path).stdout.endswith("history.sqlite\n")
    assert not stored.exists()


@pytest.mark.parametrize("words", [["history"], ["history", "changes"], ["run", "flow.yaml"]])
def test_an_address_in_the_project_is_not_used(tmp_path: Path, words: list[str]) -> None:
    """Whoever wrote the project would receive PGPASSWORD and the runs."""
    (tmp_path / "flow.yaml").write_text(FLOW)
    (tmp_path / ".perfflow").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as theirs:
        theirs.setblocking(False)  # noqa: FBT003
        address = f"postgresql://tester@127.0.0.1:{theirs.getsockname()[1]}/theirs"
        (tmp_path / ".perfflow/history-address").write_text(address)
        done = perfflow(*words, cwd=tmp_path, env={"PGPASSWORD": "word"}, measured=True)
        with pytest.raises(BlockingIOError):
            theirs.accept()
    assert done.returncode == 0, done.stderr
    assert ".perfflow/history-address is not used" in done.stderr
    assert (tmp_path / ".perfflow/history.sqlite").is_file()


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://tester:word@127.0.0.1/db",
        "postgresql://:word@127.0.0.1/db",
        "postgresql://tester@127.0.0.1/db?passfile=/etc/passwd",
        "postgresql://tester@127.0.0.1/db?host=example.org",
        "postgresql://tester@127.0.0.1/db?sslmode=require&sslkey=/etc/passwd",
        "postgresql://tester@127.0.0.1,example.org/db",
        "postgresql://tester@127.0.0.1/host=example.org",
        "postgresql://tester@127.0.0.1/host%3Dexample.org",
        "postgresql://tester@127.0.0.1/db#x",
        "postgresql://tester@127.0.0.1/db\nx",
    ],
)
def test_an_address_has_a_user_a_host_a_port_a_database_and_sslmode_only(tmp_path: Path, address: str) -> None:
    for words, env in ((("history", "use", address), {}), (("history",), {"PERFFLOW_HISTORY": address})):
        done = perfflow(*words, cwd=tmp_path, env=env)
        assert done.returncode == 2, done.stderr
        assert "word" not in done.stderr.replace("password", "").replace("PGPASSWORD", "")
    assert not (Path(os.environ["XDG_CONFIG_HOME"]) / "perfflow").exists()


@pytest.mark.parametrize("address", ["postgresql://a%40b@h.example:5/db?sslmode=verify-full", "postgresql://[::1]/db"])
def test_an_address_of_a_server(address: str) -> None:
    assert checked(address) == address


def test_an_address_that_is_none(tmp_path: Path) -> None:
    for text in ("mysql://x/y", "history.sqlite"):
        done = perfflow("history", "use", text, cwd=tmp_path)
        assert done.returncode == 2
        assert "not a PostgreSQL address" in done.stderr


def test_the_store_of_another_program_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".perfflow").mkdir()
    path = tmp_path / ".perfflow/history.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE about (name TEXT, value TEXT)")
    other.close()
    assert "kept as history.sqlite.damaged-1" in perfflow("history", cwd=tmp_path).stderr
    assert (tmp_path / ".perfflow/history.sqlite.damaged-1").is_file()
