"""A history that is read-only, locked or away, and files and folders that a history must not touch."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from perfflow.jobs.history import collect
from perfflow.report.sanitize import csv_cell
from perfflow.store import run_folder
from perfflow.store.history.connections import SqliteConnection
from tests.cli.namespace import script
from tests.cli.shell import perfflow

AWAY = {"PERFFLOW_HISTORY": "postgresql://tester@127.0.0.1:1/none"}


def data_js(*values: float, name: str = "parse") -> str:
    """Return the pages' data of another tool: one commit for each value, beside a benchmark that never changes."""
    entries = [
        {
            "commit": {"id": f"{number:040x}"},
            "date": 1_700_000_000_000 + number * 86_400_000,
            "benches": [
                {"name": name, "value": value, "unit": "ns/iter"},
                {"name": "b", "value": 5, "unit": "ns/iter"},
            ],
        }
        for number, value in enumerate(values)
    ]
    return f"window.BENCHMARK_DATA = {json.dumps({'entries': {'suite': entries}})}"


def imported(root: Path, text: str, env: dict[str, str] | None = None) -> str:
    """Import a text and return what was printed."""
    (root / "data.js").write_text(text)
    done = perfflow("history", "import", "data.js", cwd=root, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_pages_that_are_built_again_leave_all_other_files(tmp_path: Path) -> None:
    imported(tmp_path, data_js(1, 2, 3))
    assert perfflow("history", "build", "site", cwd=tmp_path).returncode == 0
    site = tmp_path / "site"
    first = set(site.rglob("*.html"))
    own = {site / "about.html", site / "benchmarks" / "own.html", site / "docs" / "api" / "x.html"}
    for path in own:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    (tmp_path / ".perfflow/history.sqlite").unlink()
    imported(tmp_path, data_js(1, 2, 3, name="other"))
    assert perfflow("history", "build", "site", cwd=tmp_path).returncode == 0
    assert {path.read_text() for path in own} == {"mine"}
    now = set(site.rglob("*.html")) - own
    assert len(first - now) == len(now - first) == 1


@pytest.mark.parametrize("listed", ["../mine.html", "docs/mine.html", "benchmarks/../docs/mine.html", "/etc/hostname"])
def test_a_list_of_pages_that_names_other_files_removes_none(tmp_path: Path, listed: str) -> None:
    imported(tmp_path, data_js(1, 2, 3))
    (tmp_path / "site" / "docs").mkdir(parents=True)
    files = [tmp_path / "mine.html", tmp_path / "site" / "docs" / "mine.html"]
    for path in files:
        path.write_text("mine")
    (tmp_path / "site" / ".perfflow-history").write_text(json.dumps([listed]))
    assert perfflow("history", "build", "site", cwd=tmp_path).returncode == 0
    assert [path.read_text() for path in files] == ["mine", "mine"]


def test_a_page_that_perfflow_did_not_write_is_not_overwritten(tmp_path: Path) -> None:
    imported(tmp_path, data_js(1, 2, 3))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / ".perfflow-history").write_text("")
    (tmp_path / "site" / "index.html").write_text("mine")
    done = perfflow("history", "build", "site", cwd=tmp_path)
    assert (done.returncode, (tmp_path / "site" / "index.html").read_text()) == (2, "mine")
    assert "was not written by `perfflow history build`" in done.stderr
    (tmp_path / "site" / "index.html").unlink()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "site" / "benchmarks").symlink_to(tmp_path / "elsewhere")
    assert perfflow("history", "build", "site", cwd=tmp_path).returncode == 2
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_one_value_of_0_does_not_refuse_the_others(tmp_path: Path) -> None:
    told = imported(tmp_path, data_js(3, 0, -1, 4))
    assert "4 sets added\n" in told
    assert "2 values are 0 or negative and left out, the first of parse" in told
    (row,) = json.loads(perfflow("history", "show", "parse", "--json", cwd=tmp_path).stdout)
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
    (row,) = json.loads(perfflow("history", "show", "parse", "--json", cwd=tmp_path).stdout)
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
    printed = perfflow("history", "--csv", cwd=tmp_path).stdout
    cells = [cell for row in csv.reader(io.StringIO(printed)) for cell in row]
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
