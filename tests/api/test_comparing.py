"""``perfflow.compare``: the comparison of the command as a typed object with its own display."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, assert_type

import pytest

import perfflow
from perfflow.model.errors import UserError
from tests.cli.shell import perfflow as command

SHORT, LONG = ["sleep", "0.005"], ["sleep", "0.1"]


def test_it_is_the_comparison_of_the_command(here: Path, tmp_path: Path) -> None:
    found = perfflow.compare(SHORT, LONG, seed=7, budget=5, runs=6, out=tmp_path / "api")
    assert_type(found, perfflow.Comparison)
    words = ("--seed", "7", "--runs", "6", "--budget", "5s", "--out", str(tmp_path / "cli"))
    done = command("compare", *words, "--", "sleep 0.005", "sleep 0.1", cwd=here)
    api, cli = (json.loads((tmp_path / name / "result.json").read_text()) for name in ("api", "cli"))
    assert done.returncode == {"pass": 0, "fail": 1, "unproven": 4}[found.verdict or ""]
    for name in ("digest", "seed", "command", "workflow", "component", "params"):
        assert api["run"][name] == cli["run"][name]
    for name in ("name", "metric", "statistic", "design", "pairs"):
        assert [row[name] for row in api["benchmarks"]] == [row[name] for row in cli["benchmarks"]]
    assert sides_in_order(found.run) == sides_in_order(perfflow.load(tmp_path / "cli"))
    assert found.run.folder == tmp_path / "api"
    assert (tmp_path / "api" / "report.md").is_file()


def sides_in_order(run: perfflow.Run) -> list[str]:
    taken = {row["order"]: row["side"] for row in run.to_rows() if row["metric"] == "time"}
    return [taken[number] for number in range(12)]


@pytest.mark.long  # measures as the other tests of this file
def test_the_answer_is_typed_and_shows_itself(here: Path) -> None:
    found = perfflow.compare(SHORT, "sleep 0.1", seed=1)
    assert (found.verdict, found.decision) == ("fail", "regressed")
    assert found.change
    assert found.speedup
    assert (found.change.low or 0) > 0.5
    lines = repr(found).splitlines()
    assert found.answer.startswith("the second is ")
    assert lines[0] == found.answer
    assert any(line.startswith("  time ") and " → " in line for line in lines)
    page = found._repr_html_()
    assert all(part in page for part in (f"<caption>{found.answer}</caption>", "<td>time</td>", "regressed"))
    assert perfflow.load(found.run.folder or "").verdict == "fail"


def test_words_reach_the_program_as_they_are(here: Path, tmp_path: Path) -> None:
    code = "import sys; open(sys.argv[1], 'a').write(repr(sys.argv[2:]) + chr(10))"
    words = ["$HOME", "a b", "*", "'", '"', "${{ env.PATH }}", "&&"]
    script: list[str | os.PathLike[str]] = [sys.executable, "-c", code, tmp_path / "seen", *words]
    perfflow.compare(script, script, runs=1)
    assert set((tmp_path / "seen").read_text().splitlines()) == {repr(words)}


def test_the_page_of_commands_that_look_like_html_is_escaped(here: Path) -> None:
    words = ["sh", "-c", "exit 3 # <img src=x onerror=alert(1)>"]
    found = perfflow.compare(words, words, runs=1)
    assert (found.verdict, found.decision, found.change, found.benchmark) == ("error", None, None, None)
    assert found.answer == "could not measure"
    assert found.run.reasons
    assert "<img" not in found._repr_html_() + found.run._repr_html_()


@pytest.mark.parametrize(
    ("old", "new", "options", "said"),
    [
        ([], ["true"], {}, "one of the commands is empty"),
        ("true", "echo 'a", {}, "close the quotation"),
        (3, "true", {}, "old is 3, which is not a command"),
        ("true", ["true", 1], {}, r"new is \['true', 1\], which is not a command"),
        ("true", "true", {"budget": "20"}, "budget: "),
        ("true", "true", {"budget": -1}, "budget: "),
        ("true", "true", {"budget": float("nan")}, "budget: "),
        ("true", "true", {"lock_timeout": "soon"}, "lock_timeout: "),
        ("true", "true", {"runs": 0}, "runs is 0"),
        ("true", "true", {"runs": 2.5}, "runs is 2.5"),
        ("true", "true", {"seed": -1}, "seed is -1"),
        ("true", "true", {"metric": "rss"}, "write one of: auto, time, cpu, uncontended"),
        ("true", "true", {"out": "."}, "not empty"),
    ],
)
def test_bad_usage_is_told_before_anything_runs(old: Any, new: Any, options: Any, said: str, here: Path) -> None:
    with pytest.raises(UserError, match=said):
        perfflow.compare(old, new, **options)
    assert not (Path(os.environ["XDG_CACHE_HOME"]) / "perfflow").exists()


def test_it_works_outside_of_the_main_thread(here: Path) -> None:
    found: list[perfflow.Comparison] = []
    thread = threading.Thread(target=lambda: found.append(perfflow.compare("true", "true", runs=2)))
    thread.start()
    thread.join()
    assert [item.run.benchmark("true", "time").pairs for item in found] == [2]


def test_an_interruption_is_raised_and_what_was_measured_is_kept(here: Path, tmp_path: Path) -> None:
    code = f"import perfflow; perfflow.compare('sleep 0.05', 'sleep 0.05', runs=1000, out={str(tmp_path / 'out')!r})"
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    process = subprocess.Popen([sys.executable, "-c", code], cwd=here, env=env, stderr=subprocess.PIPE, text=True)
    events = tmp_path / "out" / "events.jsonl"
    while process.poll() is None and not (events.is_file() and '"sample"' in events.read_text()):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=900)
    assert f"KeyboardInterrupt: the results so far are in {tmp_path / 'out'}" in told
    assert perfflow.load(tmp_path / "out").interrupted
