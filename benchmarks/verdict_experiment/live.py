"""Comparisons of real processes: perfflow's own command, and hyperfine beside it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.verdict_experiment.log import Entry
from benchmarks.verdict_experiment.peers import RULES

CHANGED = ("improved", "regressed")


def perfflow(old: list[str], new: list[str], seed: int, budget: str = "") -> Entry:
    """``perfflow compare -- OLD NEW`` as a user types it, start-up and report included in ``seconds``.

    ``decision`` and what follows are of the first row that gates; ``called`` are all metrics that gate and are called
    changed; ``waiting`` is the change of the time that includes waiting.
    """
    limit = ["--budget", budget] if budget else []
    done, seconds = run(["compare", "--json", "--seed", str(seed), *limit, "--", shlex.join(old), shlex.join(new)])
    shown = json.loads(done.stdout)["benchmarks"]
    rows = [row for row in shown if row["gating"]]
    row = rows[0]
    return {
        "seconds": seconds,
        "decision": row["decision"],
        "metric": row["metric"],
        "pairs": row["pairs"],
        "change": change_of(row),
        "called": [row["metric"] for row in rows if row["decision"] in CHANGED],
        "waiting": next((change_of(row) for row in shown if row["metric"] == "uncontended"), None),
        "exit": done.returncode,
    }


def run(
    options: list[str], cwd: Path | None = None, cache: Path | None = None
) -> tuple[subprocess.CompletedProcess[str], float]:
    """Run perfflow with ``--json``, and without a cache that others use; also returns the seconds it took."""
    with tempfile.TemporaryDirectory() as folder:
        # Where the run's folder goes without --out, and the trees of a gate with their builds.
        env = {**os.environ, "XDG_CACHE_HOME": str(cache or folder)}
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "perfflow", *options], capture_output=True, cwd=cwd, env=env, text=True, check=False
        )
        seconds = time.monotonic() - began
    if not done.stdout:
        raise RuntimeError(done.stderr)
    return done, round(seconds, 3)


def change_of(row: Mapping[str, Any]) -> list[float | None]:
    """Estimate, low and high of a row's change, as shares."""
    found = row["change"] or {}
    return [None if found.get(key) is None else round(found[key], 5) for key in ("value", "low", "high")]


def hyperfine(old: list[str], new: list[str]) -> Entry:
    """Hyperfine with its own defaults and no shell, and what four rules say of its times."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "times.json"
        began = time.monotonic()
        subprocess.run(
            ["hyperfine", "-N", "--style", "none", "--export-json", str(out), shlex.join(old), shlex.join(new)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        seconds = time.monotonic() - began
        a, b = (result["times"] for result in json.loads(out.read_text())["results"])
    said = {name: bool(rule(a, b)) for name, rule in RULES.items()}
    return {"seconds": round(seconds, 3), "runs": [len(a), len(b)], "different": said}


def trace(command: list[str], pairs: int, seed: int) -> Iterator[dict[str, float]]:
    """Yield the timings of so many pairs of processes in the order they were taken, recorded by perfflow itself."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        text = shlex.join(command)
        run(["compare", "--json", "--seed", str(seed), "--out", str(out), "--runs", str(pairs), "--", text, text])
        for line in (out / "events.jsonl").read_text().splitlines():
            event = json.loads(line)
            if event["event"] == "sample":
                sides = ("baseline", "candidate") if event["first"] == "baseline" else ("candidate", "baseline")
                for side in sides:
                    yield {item["metric"]: item["value"] for item in event[side]}


def suite(commands: list[tuple[list[str], list[str]]], seed: int) -> Entry:
    """Run a workflow whose benchmarks are these commands, old and new; which of them are called changed."""
    steps = [
        {"id": f"b{at:02}", "uses": "command", "with": {"command": shlex.join(old)}, "candidate": shlex.join(new)}
        for at, (old, new) in enumerate(commands)
    ]
    workflow = {"perfflow": 1, "name": "suite", "stages": {"baseline": steps}}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "suite.yaml").write_text(json.dumps(workflow))
        done, seconds = run(["run", "suite.yaml", "--json", "--seed", str(seed)], Path(folder))
    rows = [row for row in json.loads(done.stdout)["benchmarks"] if row["gating"]]
    called = sorted({row["name"] for row in rows if row["decision"] in CHANGED})
    pairs = sum(row["pairs"] or 0 for row in rows) / len(commands)
    return {"seconds": seconds, "called": called, "pairs": round(pairs, 2), "exit": done.returncode}
