"""Comparisons of real processes: perfflow's own command, and hyperfine beside it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.verdict_experiment.peers import RULES

Entry = dict[str, Any]
"""One line of the log."""


def perfflow(old: list[str], new: list[str], seed: int) -> Entry:
    """``perfflow compare -- OLD NEW`` as a user types it, start-up and report included in ``seconds``."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["compare", "--json", "--seed", str(seed)]
        # Where the run's folder goes without --out.
        env = {**os.environ, "XDG_CACHE_HOME": folder}
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "perfflow", *options, "--", shlex.join(old), shlex.join(new)],
            capture_output=True,
            env=env,
            text=True,
            check=False,
        )
        seconds = time.monotonic() - began
    if not done.stdout:
        raise RuntimeError(done.stderr)
    row = next(row for row in json.loads(done.stdout)["benchmarks"] if row["gating"])
    return {
        "seconds": round(seconds, 3),
        "decision": row["decision"],
        "metric": row["metric"],
        "pairs": row["pairs"],
        "change": [_short(row["change"][key]) for key in ("value", "low", "high")],
        "exit": done.returncode,
    }


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 5)


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


def trace(command: list[str], runs: int, seed: int) -> Iterator[dict[str, float]]:
    """Yield the timings of ``runs`` processes in the order they were taken, recorded by perfflow itself."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        options = ["compare", "--json", "--seed", str(seed), "--out", str(out), "--runs", str(runs // 2)]
        text = shlex.join(command)
        subprocess.run(
            [sys.executable, "-m", "perfflow", *options, "--", text, text], stdout=subprocess.DEVNULL, check=False
        )
        for line in (out / "events.jsonl").read_text().splitlines():
            event = json.loads(line)
            if event["event"] == "sample":
                sides = ("baseline", "candidate") if event["first"] == "baseline" else ("candidate", "baseline")
                for side in sides:
                    yield {item["metric"]: item["value"] for item in event[side]}
