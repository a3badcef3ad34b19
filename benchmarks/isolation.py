"""What a sandbox costs a process, beside the same process without one and a bare interpreter.

The cost is not part of any figure: the program is started and timed by the first process of the sandbox.

    python -m benchmarks.isolation [PROCESSES]
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from perfflow.execute import sandbox
from perfflow.execute.child import MARK, Spawner
from perfflow.execute.sandbox import Sandbox


def seconds(work: Callable[[], object]) -> float:
    """Return how long a call takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    """Print the median of each way to run ``true``, measured in turn."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    keeper, why = sandbox.available()
    if not keeper:
        sys.exit(why)
    env = {**os.environ, MARK: "benchmark"}
    with TemporaryDirectory() as place, Spawner() as spawner:
        tree, folder = Path(place) / "tree", Path(place) / "folder"
        for path in (tree, folder):
            path.mkdir()
        box = Sandbox(keeper, (tree,), (Path(place),), ())
        walls: dict[str, list[float]] = {"spawner": [], keeper: []}

        def plain() -> None:
            walls["spawner"].append(spawner.run(("true",), env=env, cwd=tree).usage.wall)

        def isolated() -> None:
            with spawner.within(box.words(env, [folder], builds=False)) as inner:
                walls[keeper].append(inner.run(("true",), env=env, cwd=tree).usage.wall)

        def bare() -> None:
            subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True)

        ways = {"a bare interpreter": bare, "spawner": plain, keeper: isolated}
        taken = {name: [seconds(work) for _ in range(1)] for name, work in ways.items()}
        for _ in range(rounds):
            for name, work in ways.items():
                taken[name].append(seconds(work))
    print("| way to run `true` | ms for each process | in bare interpreters | of which timed, ms |\n|---|--:|--:|--:|")
    whole = median(taken["a bare interpreter"])
    for name, each in taken.items():
        own = f"{median(walls[name]) * 1e3:.2f}" if name in walls else ""
        print(f"| {name} | {median(each) * 1e3:.1f} | {median(each) / whole:.2f} | {own} |")


if __name__ == "__main__":
    main()
