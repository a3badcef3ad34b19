"""What is said of a base and a head: by perfflow's gate, by hyperfine, by criterion, and by a quick look."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.layout_experiment.projects import Project, Sides, workflow_file
from benchmarks.verdict_experiment import live, programs
from benchmarks.verdict_experiment.log import Entry
from perfflow.model.metrics import TIMES

BEYOND = 0.05
"""A change beyond this is called one; it is the default of `concern`."""
LIMIT = 120.0
"""Seconds that a gate may take."""
_BRIEF = ("--warm-up-time", ".05", "--measurement-time", ".2", "--sample-size", "10", "--nresamples", "1001")
_LOOKS = {"c": 15, "rust": 7}


def gate(project: Project, sides: Sides, layouts: str | int, seed: int) -> Entry:
    """`perfflow gate` on the base commit and a head: whether it calls a time changed, and by more than 5%.

    ``--all``: without it, a gate knows that these edits leave the machine code as it is, and times nothing.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = workflow_file(project.program, layouts)
        options = ["gate", file, "--base", sides.base, "--head", sides.head, "--all", "--json", "--seed", str(seed)]
        done, seconds = live.run([*options, "--out", str(Path(folder) / "run")], project.root, project.cache)
    rows = [row for row in json.loads(done.stdout)["benchmarks"] if row["gating"] and row["metric"] in TIMES]
    told = [row for row in rows if row["decision"] in live.CHANGED]
    return {
        "called": any(abs(row["change"]["value"]) > BEYOND for row in told),
        "decision": rows[0]["decision"],
        "metric": rows[0]["metric"],
        "change": live.change_of(rows[0]),
        "pairs": rows[0]["pairs"],
        "layouts": _layouts(rows[0].get("layouts")),
        "exit": done.returncode,
        "seconds": seconds,
    }


def _layouts(found: Mapping[str, Any] | None) -> Entry | None:
    """How many layouts were drawn, how far the times of one side lie apart between them, and the change as built."""
    if found is None:
        return None
    kept: Entry = {"n": found["n"], "deviation": found["deviation"]}
    return kept | ({"built": live.change_of(found["built"])} if found.get("built") else {})


def hyperfine(project: Project, sides: Sides) -> Entry:
    """The ratio of means that hyperfine prints, with its own defaults and no shell."""
    with tempfile.TemporaryDirectory() as folder:
        out, files = Path(folder) / "times.json", [str(project.executable(name)) for name in sides]
        began = time.monotonic()
        argv = ["hyperfine", "-N", "--style", "none", "--export-json", str(out), *files]
        subprocess.run(argv, capture_output=True, check=True)
        seconds = time.monotonic() - began
        old, new = (fmean(result["times"]) for result in json.loads(out.read_text())["results"])
    return {"called": abs(new / old - 1) > BEYOND, "change": [round(new / old - 1, 5)], "seconds": round(seconds, 3)}


def criterion(project: Project, sides: Sides) -> Entry:
    """What criterion itself says of the head beside a baseline that it kept of the base."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        _bench(project.executable(sides.base), folder, "--save-baseline", "base")
        said = _bench(project.executable(sides.head), folder, "--baseline", "base")
        seconds = time.monotonic() - began
        change = _estimates(folder, "change")["mean"]["point_estimate"]
    # "Performance has regressed." or "improved."; a change within its own noise threshold is called something else.
    told = re.search(r"Performance has (\w+)", said)
    called = told is not None and abs(change) > BEYOND
    return {"called": called, "said": told and told[1], "change": [round(change, 5)], "seconds": round(seconds, 3)}


def moved(ratios: Sequence[float]) -> bool:
    """Whether all looks at the plain builds say more than 5%, to the same side."""
    return min(ratios) > 1 + BEYOND or max(ratios) < 1 - BEYOND


def ratio(project: Project, sides: Sides) -> float:
    """About how much slower the head is as built: medians of a few runs that take turns."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(_LOOKS[project.program.language]):
        for name, found in taken.items():
            found.append(_brief(project.executable(name), project.program.language))
    return median(taken[sides.head]) / median(taken[sides.base])


def _brief(program: Path, language: str) -> float:
    if language == "c":
        return programs.cpu_seconds([str(program)])
    with tempfile.TemporaryDirectory() as folder:
        _bench(program, folder, *_BRIEF)
        return float(_estimates(folder, "new")["median"]["point_estimate"])


def _bench(program: Path, folder: str, *options: str) -> str:
    argv, env = [str(program), "--bench", "--noplot", *options], {**os.environ, "CRITERION_HOME": folder}
    return subprocess.run(argv, env=env, cwd=folder, capture_output=True, text=True, check=True).stdout


def _estimates(folder: str, which: str) -> Mapping[str, Mapping[str, float]]:
    path = next(Path(folder).glob(f"*/{which}/estimates.json"))
    found: Mapping[str, Mapping[str, float]] = json.loads(path.read_text())
    return found
