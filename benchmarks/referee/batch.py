"""Judge 100 patches in one command, of which 30 are forbidden: ``python -m benchmarks.referee.batch``.

Prints for each outcome how many patches came to it, and the median and the most of their seconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

from benchmarks.referee.corpus import VICTIMS, entries
from benchmarks.referee.workspace import prepared

CORE = Path("tally/core.py")
COUNT = "        counts[seen.index(word)] += 1\n"
LOOP = """    seen, counts = [], []
    for word in words:
        if word not in seen:
            seen.append(word)
            counts.append(0)
        counts[seen.index(word)] += 1
    return sorted(zip(seen, counts), key"""
TABLE = """    counts = {{}}  # no. {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return sorted(counts.items(), key"""
TWICE = """        for _ in range(2):  # no. {}
            place = seen.index(word)
        counts[place] += 1
"""
EDITS = {
    "forbidden": (30, Path("fixed.yaml"), "    protect: tests\n", "    protect: tests\n    # no. {}\n"),
    "gain": (25, CORE, LOOP, TABLE),
    "comment": (25, CORE, COUNT, "        # no. {}\n" + COUNT),
    "slower": (10, CORE, COUNT, TWICE),
    "wrong": (10, CORE, COUNT, "        counts[seen.index(word)] += 1 + (len(seen) == 9)  # no. {}\n"),
}
"""How many patches of each kind, which file they edit, what they replace there, and by what."""


def main() -> None:
    """Write the patches, judge them, and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--budget", default="60s", help="time for each patch; default: %(default)s")
    parser.add_argument("--isolate", default="strict")
    asked = parser.parse_args()
    entry = next(each for each in entries() if each.workflow == "tally/fixed.yaml")
    with prepared(entry) as space, tempfile.TemporaryDirectory() as made:
        for kind, (number, file, old, new) in EDITS.items():
            path = space.project / file
            text = path.read_text()
            if text.count(old) != 1:
                sys.exit(f"{VICTIMS / file} has another text than the patches")
            for count in range(number):
                path.write_text(text.replace(old, new.format(count)))
                diff = subprocess.run(["git", "diff"], cwd=space.project, check=True, capture_output=True).stdout
                (Path(made) / f"{kind}-{count}.patch").write_bytes(diff)
            path.write_text(text)
        options = ("--isolate", asked.isolate, "--budget", asked.budget, "--progress", "off", "--json")
        argv = [sys.executable, "-m", "perfflow", "judge", made, "--workflow", space.workflow, *options]
        began = time.monotonic()
        done = subprocess.run(argv, cwd=space.project, env=space.env, capture_output=True, text=True, check=False)
        minutes = (time.monotonic() - began) / 60
    outcomes: Counter[tuple[str, str]] = Counter()
    seconds: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for line in done.stdout.splitlines():
        judged = json.loads(line)
        key = (Path(judged["patch"]).name.partition("-")[0], judged["decision"])
        outcomes[key] += 1
        seconds[key].append(judged["seconds"])
    if not outcomes:
        sys.exit(done.stderr)
    print("| patches | outcome | number | median seconds | most seconds |\n| --- | --- | --: | --: | --: |")
    for key, number in sorted(outcomes.items()):
        cells = (*key, number, f"{statistics.median(seconds[key]):.3g}", f"{max(seconds[key]):.3g}")
        print(f"| {' | '.join(map(str, cells))} |")
    print(f"\n{sum(outcomes.values())} patches in {minutes:.1f} minutes, exit status {done.returncode}")


if __name__ == "__main__":
    main()
