"""``perfflow history``: files of other tools, changes in generated series, and stores that are away or read-only."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import random
import re
import socket
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from perfflow.jobs.history import collect
from perfflow.report.sanitize import csv_cell
from perfflow.store import run_folder
from perfflow.store.history.connections import SqliteConnection
from perfflow.store.history.stored import checked
from tests.cli.namespace import script
from tests.cli.shell import perfflow, write
from tests.imports.harness import DATA, GOLDEN, source
from tests.store.history.databases import has_server, server

FLOW = """
name: nap
stages:
  baseline:
    - {id: nap, uses: command, with: {command: "sleep 0.005"}, runs: 5}
"""


AWAY = {"PERFFLOW_HISTORY": "postgresql://tester@127.0.0.1:1/none"}


@pytest.fixture(autouse=True)
def _settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of a user of its own for each test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path.parent / f"{tmp_path.name}-config"))


def _json(folder: Path, *words: str) -> list[dict[str, Any]]:
    done = perfflow("history", *words, "--json", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


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
    folders = sorted((DATA / case).iterdir())
    file = str(source(next(path for path in folders if '"error"' not in (path / GOLDEN).read_text()[:20])))
    done = perfflow("history", "import", file, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1 set added\n"), done.stderr
    assert perfflow("history", "import", file, cwd=tmp_path).stdout == "0 sets added, 1 already known\n"
    rows = _json(tmp_path)
    assert rows
    assert all(row["runs"] == 1 and row["measured"] for row in rows)


def data_js(*values: float, name: str = "parse", beside: bool = False) -> str:
    """Return the pages' data of another tool: one commit for each value, ``beside`` a benchmark that never changes."""
    entries = []
    for number, value in enumerate(values):
        named = {name: value, **({"b": 5} if beside else {})}
        benches = [{"name": each, "value": level, "unit": "ns/iter"} for each, level in named.items()]
        date = 1_700_000_000_000 + number * 86_400_000
        entries.append({"commit": {"id": f"{number:040x}"}, "date": date, "benches": benches})
    return f"window.BENCHMARK_DATA = {json.dumps({'entries': {'suite': entries}})}"


def stepped(luck: random.Random, noise: float, change: float, count: int = 100) -> list[float]:
    """Values of which those from the 61st on are higher by a share."""
    return [100 * math.exp(luck.gauss(0, noise)) * (1 + change * (number >= 60)) for number in range(count)]


def imported(root: Path, text: str, env: dict[str, str] | None = None) -> str:
    """Import a text and return what was printed."""
    (root / "data.js").write_text(text)
    done = perfflow("history", "import", "data.js", cwd=root, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def printed(root: Path, *words: str) -> str:
    done = perfflow("history", *words, cwd=root)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def table(root: Path, *words: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(printed(root, *words, "--csv"))))


def test_changes_are_told_with_their_commits(tmp_path: Path) -> None:
    values = stepped(random.Random(11), 0.01, 0.15, 120)
    assert imported(tmp_path, data_js(*values, name="Parse")) == "120 sets added\n"
    (change,) = _json(tmp_path, "changes")
    assert (change["benchmark"], change["metric"]) == ("Parse", "time")
    assert abs(change["at"] - 60) <= 1
    assert change["low"] < 0.15 < change["high"]
    assert change["commits"] == [f"{change['at']:040x}"]
    assert {"before", "after", "confidence"} <= change.keys()
    (row,) = _json(tmp_path, "--regressions")
    assert row["shift"]
    assert re.search(r"Parse.*\+1[45]", printed(tmp_path, "changes"), re.DOTALL)


def test_a_tiny_change_is_marked_and_stands_below_larger_ones(tmp_path: Path) -> None:
    luck, small = random.Random(5), "below the floor of a gate"
    imported(tmp_path, data_js(*stepped(luck, 0.0001, 0.0008), name="Atiny"))
    imported(tmp_path, data_js(*stepped(luck, 0.01, 0.15), name="Blarge"))
    weights = {"Blarge": "action", "Atiny": "below floor"}
    rows = _json(tmp_path, "--regressions")
    assert [(row["benchmark"], row["shift"]["weight"]) for row in rows] == [*weights.items()]
    assert {row["benchmark"]: row["weight"] for row in _json(tmp_path, "changes")} == weights
    assert {row["benchmark"] for row in table(tmp_path, "--regressions")} == {*weights}
    assert table(tmp_path, "--flaky") == []
    imported(tmp_path, data_js(*stepped(luck, 0.2, 0.0), name="Cflaky"))
    assert [row["benchmark"] for row in _json(tmp_path, "--flaky")] == ["Cflaky"]
    assert [row["benchmark"] for row in table(tmp_path, "--flaky")] == ["Cflaky"] * 100
    for words in ("--regressions", "changes"):
        assert printed(tmp_path, words).count(small) == 1
    printed(tmp_path, "build", "site")
    assert (tmp_path / "site" / "index.html").read_text().count(small) == 1
    for name, is_small in (("Atiny", True), ("Blarge", False)):
        (page,) = (path.read_text() for path in (tmp_path / "site" / "benchmarks").glob(f"{name}-*.html"))
        assert bool(re.search(rf"changed by \+[\d.]+%, {small}</td>", page)) == is_small, name
        assert ("below the floor" in printed(tmp_path, "show", name)) == is_small, name
        assert page.count('<path class="bound small"') == is_small
        assert page.count('<path class="bound"') == (not is_small)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if not has_server():
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with server() as found:
        yield found


def test_a_store_that_is_away_gets_what_waited(address: str, tmp_path: Path) -> None:
    write(tmp_path, FLOW)
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
    write(tmp_path, FLOW)
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


def test_one_value_of_0_does_not_refuse_the_others(tmp_path: Path) -> None:
    told = imported(tmp_path, data_js(3, 0, -1, 4, beside=True))
    assert "4 sets added\n" in told
    assert "2 values are 0 or negative and left out, the first of parse" in told
    (row,) = _json(tmp_path, "show", "parse")
    assert [point["value"] for point in row["points"]] == pytest.approx([3e-9, 4e-9])


def test_runs_that_wait_to_be_sent_are_not_called_known(tmp_path: Path) -> None:
    assert imported(tmp_path, data_js(1), AWAY).startswith("1 set waits to be sent\n")
    assert imported(tmp_path, data_js(1, 2, 3), AWAY).startswith("3 sets wait to be sent\n")


def test_imports_at_once_send_what_waits(tmp_path: Path) -> None:
    imported(tmp_path, data_js(*range(1, 60)), AWAY)
    for number in range(4):
        (tmp_path / f"{number}.js").write_text(data_js(number + 1, name=f"n{number}"))
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda n: perfflow("history", "import", f"{n}.js", cwd=tmp_path), range(4)))
    assert [item.returncode for item in done] == [0] * 4, [item.stderr for item in done]
    (row,) = _json(tmp_path, "show", "parse")
    assert len(row["points"]) == 59


def test_runs_that_another_process_sent_while_this_one_waited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    imported(tmp_path, data_js(1), AWAY)
    waiting, real = tmp_path / ".perfflow" / collect.UNSENT, run_folder.only_writer

    def late(folder: Path) -> object:
        waiting.unlink()  # as another process does while this one waits for the lock
        return real(folder)

    monkeypatch.setattr(collect, "only_writer", late)
    with collect.opened(tmp_path, lambda _: None) as history:
        assert history.runs() == []


@pytest.mark.long  # as a history that may be written, which other tests show
def test_a_history_is_shown_without_permission_to_write(tmp_path: Path) -> None:
    imported(tmp_path, data_js(*[1] * 10, *[2] * 10))
    text = (
        "mount --bind . . && mount -o remount,bind,ro . && cd $PWD\n"
        "for words in '--json' 'show parse --json' 'changes' 'changes --suspicions'; do\n"
        "  status perfflow history $words\n"
        "done"
    )
    done = script(text, tmp_path)
    assert done.stdout.count("= 0") == 4, done.stdout + done.stderr
    assert '"runs": 20' in done.stdout


def test_a_writer_that_waits_for_another_says_so(tmp_path: Path) -> None:
    imported(tmp_path, data_js(1))
    path, told = tmp_path / ".perfflow/history.sqlite", threading.Event()
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")

    def release() -> None:
        told.wait(60)
        other.rollback()

    thread = threading.Thread(target=release)
    thread.start()
    own = SqliteConnection(path, waiting=told.set)
    with own.writing():
        assert told.is_set()
    own.close()
    thread.join()
    other.close()


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1+2", "@SUM(A1)"])
def test_no_cell_of_csv_is_a_formula(tmp_path: Path, text: str) -> None:
    assert csv_cell(text) == f"'{text}"
    imported(tmp_path, data_js(1, 2, name=text))
    cells = [cell for row in csv.reader(io.StringIO(printed(tmp_path, "--csv"))) for cell in row]
    assert f"'{text}" in cells
    assert text not in cells


@pytest.mark.parametrize("name", ["big.json", "data.js"])
def test_a_file_with_holes_is_not_read_into_memory(tmp_path: Path, name: str) -> None:
    with (tmp_path / name).open("wb") as stream:
        stream.truncate(3 * 2**30)
    for words in (("history", "import", name), *([("compare", name, name)] if name == "big.json" else [])):
        done = perfflow(*words, cwd=tmp_path)
        assert done.returncode == 2, done.stderr
        assert f"{name}: the file is larger than 1,073,741,824 bytes" in done.stderr
