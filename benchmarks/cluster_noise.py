"""Whether Slurm's daemons disturb what is measured beside them: ``python -m benchmarks.cluster_noise LOG``.

A short program is compared with itself, with slurmctld and two slurmd running and idle on this machine and without
them, in blocks that take turns. Each comparison is a line of the log, and a log that has lines is gone on with. Then
the table of the log is printed: an alarm is a clock that says improved or regressed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from benchmarks import two_nodes
from benchmarks.overhead.peers import PERFFLOW

WITH, WITHOUT = "slurmctld and two slurmd, idle", "none"
PROGRAM = "awk 'BEGIN { for (n = 0; n < 150000; n++) sum += n }'"
SETTLE = 2.0
"""Seconds after the daemons have started or ended."""


def take(log: Path, count: int, block: int, pairs: int) -> None:
    """Add comparisons to a log until it has ``count`` of each way."""
    with tempfile.TemporaryDirectory() as made:
        os.environ |= {"PERFFLOW_LOCK_FILE": f"{made}/lock", "XDG_STATE_HOME": f"{made}/state"}
        number = 0
        while True:
            done = [entry["way"] for entry in entries(log)] if log.exists() else []
            way = min((WITHOUT, WITH), key=done.count)
            if done.count(way) >= count:
                return
            folder = Path(made) / str(number)
            nodes: AbstractContextManager[Path | None] = two_nodes.two_nodes(folder) if way == WITH else nullcontext()
            with nodes:
                time.sleep(SETTLE)
                for _ in range(min(block, count - done.count(way))):
                    _append(log, {"way": way, "pairs": pairs, "load": os.getloadavg()[0], **_compared(made, pairs)})
            number += 1


def _compared(made: str, pairs: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=made) as folder:
        words = (
            "compare",
            f"--runs={pairs}",
            "--json",
            f"--out={folder}/run",
            "--",
            PROGRAM,
            PROGRAM,
        )
        done = subprocess.run([*PERFFLOW, *words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 4):
        raise RuntimeError(done.stderr)
    rows = [row for row in json.loads(done.stdout)["benchmarks"] if row["gating"] or row["metric"] == "time"]
    return {
        "rows": [
            {key: row[key] for key in ("metric", "gating", "decision")}
            | {key: row["change"][key] for key in ("value", "low", "high")}
            for row in rows
            if row["change"]
        ]
    }


def _append(log: Path, entry: dict[str, Any]) -> None:
    with log.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(entry) + "\n")


def entries(log: Path) -> list[dict[str, Any]]:
    """The comparisons of a log."""
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def table(found: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Lines of a table with two rows for each way: the clock that decides, mostly ``cpu``, and the wall."""
    yield "| daemons | clock | comparisons | alarms | change, median of its size | interval, median of its width |"
    yield "|---|---|--:|--:|--:|--:|"
    known = list(found)
    for way in (WITHOUT, WITH):
        own = [row for entry in known if entry["way"] == way for row in entry["rows"]]
        for clock, rows in (
            ("that decides", [row for row in own if row["gating"]]),
            ("wall", [row for row in own if row["metric"] == "time"]),
        ):
            alarms = sum(row["decision"] in ("improved", "regressed") for row in rows)
            size = statistics.median(abs(row["value"]) for row in rows)
            width = statistics.median(row["high"] - row["low"] for row in rows)
            yield f"| {way} | {clock} | {len(rows)} | {alarms} | {size:.2%} | {width:.2%} |"


def main() -> int:
    """Add to the log, then print the table; where Slurm is not installed, say so."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    for name, count in {"count": 200, "block": 10, "pairs": 20}.items():
        parser.add_argument(f"--{name}", type=int, default=count, help="default: %(default)s")
    asked = parser.parse_args()
    absent = two_nodes.missing()
    if absent and asked.count:
        print(f"skipped: {absent}")
        return 0
    take(asked.log, asked.count, asked.block, asked.pairs)
    for line in table(entries(asked.log)):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
