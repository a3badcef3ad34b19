"""Time a Python statement with ``timeit``, and write all its repeats as JSON.

    python [flags] timeit_run.py OUT NUMBER REPEAT SETUP STATEMENT

``python -m timeit`` only prints three digits of the best repeat. OUT is ``{"number": N, "seconds": [...],
"resolution": S, "cpu": [...], "uncontended": [...]}``: the time of each repeat of N loops, the resolution of the clock,
and the times by other clocks as far as they are known (see clocks.py), in s. NUMBER 0 chooses loops so
that a repeat takes 2 ms or more. REPEAT 0 chooses repeats so that all of them take 0.2 s, but at least five, unless
five would take more than 0.5 s. As in timeit, the garbage collector is off, unless SETUP calls ``gc.enable()``.

Run by the measured interpreter, so: standard library only, and nothing newer than Python 3.8.
"""

# ruff: noqa: PTH100, PTH109, PTH118, PTH120, PTH123

from __future__ import annotations

import json
import os
import sys
import time
import timeit
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

LEAST = 0.002
WHOLE = 0.2
FEWEST, MOST = 5, 100
PATIENCE = 0.5
"""The longest time of the fewest repeats (s)."""


def main() -> None:
    """Time the statement of the command line. Its exceptions end this process with a traceback."""
    out, number, repeat = os.path.abspath(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    setup, statement = sys.argv[4], sys.argv[5]
    # As with `python -m timeit`, imports are found in the working directory, not in this file's; with -P in neither.
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd()
    del sys.argv[1:]
    clocks = beside("clocks")
    timer = timeit.Timer(statement, setup, timer=clocks.Clocks().read)
    number = number or enough(timer)
    repeat = repeat or repeats(timer.timeit(number))
    seconds, clock = timer.repeat(repeat, number), time.get_clock_info("perf_counter")
    with open(out, "w", encoding="utf-8") as stream:
        found = {"number": number, "seconds": seconds, "resolution": clock.resolution, **clocks.parts(seconds)}
        json.dump(found, stream)


def beside(name: str) -> Any:
    """Import a file beside this one, which is not on sys.path."""
    module = ModuleType(name)
    module.__file__ = os.path.join(os.path.dirname(__file__), f"{name}.py")
    SourceFileLoader(name, module.__file__).exec_module(module)
    return module


def repeats(seconds: float) -> int:
    """Return the number of repeats for a repeat of so many seconds."""
    fewest, fitting = (int(limit / max(seconds, 1e-9)) for limit in (PATIENCE, WHOLE))
    return max(1, min(FEWEST, fewest), min(MOST, fitting))


def enough(timer: timeit.Timer) -> int:
    """Return the power of two of loops that takes LEAST or more, twice: a single time can be an interruption."""
    number = 1
    while timer.timeit(number) < LEAST or timer.timeit(number) < LEAST:
        number *= 2
    return number


if __name__ == "__main__":
    main()
