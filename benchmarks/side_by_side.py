"""How much a pair varies in turn and side by side: ``python -m benchmarks.side_by_side FOLDER --busy 4``.

Writes a suite of 40 Python benchmarks into FOLDER and compares it with itself in 12 pairs: with another environment in
one tree, where both processes of a pair run in turn, and in a gate of two trees, where they run at the same time on one
core. Prints one line of JSON: the median over the benchmarks of the standard deviation of the logarithm of the ratio of
both CPU times, and the seconds that a pair took. Needs pytest-benchmark.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.replay import busy, git
from benchmarks.wide import commented

FLOW = """perfflow: 1
name: pairs
stages:
  baseline:
    - {id: bench, uses: pytest-benchmark, runs: 12, with: {paths: bench}@CANDIDATE@}
"""
CANDIDATE = ", candidate: {env: {SIDE: other}}"


def varied(folder: Path, *words: str) -> tuple[float, float, bool]:
    """Run perfflow; return the median standard deviation, the seconds of a pair, and whether it ran side by side."""
    argv = [sys.executable, "-m", "perfflow", *words, "--benchmark", "**", "--progress", "off"]
    subprocess.run(argv, cwd=folder, check=False, capture_output=True)
    logs: dict[str, list[float]] = {}
    seconds: dict[int, float] = {}
    together = set()
    for line in (folder / ".perfflow/runs/latest/events.jsonl").read_text().splitlines():
        event: dict[str, Any] = json.loads(line)
        if event["event"] != "sample":
            continue
        own = [next(item for item in event[side] if item["metric"] == "cpu") for side in ("baseline", "candidate")]
        logs.setdefault(own[0]["benchmark"], []).append(math.log(own[1]["value"] / own[0]["value"]))
        seconds[event["pair"]] = seconds.get(event["pair"], 0.0) + event["seconds"]
        together.add(bool(event.get("side_by_side")))
    deviations = [statistics.stdev(each) for each in logs.values()]
    return statistics.median(deviations), statistics.median(seconds.values()), together == {True}


def main() -> None:
    """Parse the arguments and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--busy", type=int, default=0, help="number of busy loops beside it")
    asked = parser.parse_args()
    folder = asked.folder.resolve() / "pairs"
    commented(folder)
    for name, more in (("turn", CANDIDATE), ("side", "")):
        (folder / f"{name}.yaml").write_text(FLOW.replace("@CANDIDATE@", more))
        git(folder, "add", f"{name}.yaml")
    git(folder, "commit", "-qm", "workflows")
    with busy(asked.busy):
        turn, turn_seconds, wrong = varied(folder, "run", "turn.yaml", "--trust")
        side, side_seconds, right = varied(folder, "gate", "side.yaml", "--base", "main", "--all")
    if wrong or not right:
        sys.exit("the pairs did not run as they should")
    found = {"kind": "pairs", "busy": asked.busy, "turn": turn, "side": side, "load": os.getloadavg()[1]}
    print(json.dumps(found | {"turn_seconds": turn_seconds, "side_seconds": side_seconds}))


if __name__ == "__main__":
    main()
