"""Time a Python statement by ``timeit``, and write all its repeats as JSON.

    python [flags] timeit_run.py OUT NUMBER REPEAT SETUP STATEMENT

``python -m timeit`` prints three digits of the best repeat alone. OUT is ``{"number": N, "seconds": [...],
"resolution": S}``: the time of each repeat of N loops, and the step of the clock, in s. A NUMBER of 0 is found so that
a repeat takes 2 ms or more, a REPEAT of 0 so that all of them take a fifth of a second, and there are five or more
unless these would take more than half a second.
Garbage is not collected meanwhile, as timeit has it, unless SETUP says ``gc.enable()``.

Run by the measured interpreter, so: standard library only, and nothing newer than Python 3.8.
"""

# ruff: noqa: PTH100, PTH109, PTH123

from __future__ import annotations

import json
import os
import sys
import time
import timeit

LEAST = 0.002
WHOLE = 0.2
FEWEST, MOST = 5, 100
PATIENCE = 0.5
"""The most that the fewest repeats may take, s."""


def main() -> None:
    """Time what the command line says; what the statement raises ends this process with its traceback."""
    out, number, repeat = os.path.abspath(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    setup, statement = sys.argv[4], sys.argv[5]
    # As `python -m timeit` does: imports are found in the current folder, not in this file's; with -P in neither.
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd()
    del sys.argv[1:]
    timer = timeit.Timer(statement, setup)
    number = number or enough(timer)
    repeat = repeat or repeats(timer.timeit(number))
    seconds, clock = timer.repeat(repeat, number), time.get_clock_info("perf_counter")
    with open(out, "w", encoding="utf-8") as stream:
        json.dump({"number": number, "seconds": seconds, "resolution": clock.resolution}, stream)


def repeats(seconds: float) -> int:
    """Return how often to repeat what takes so many seconds."""
    fewest, fitting = (int(limit / max(seconds, 1e-9)) for limit in (PATIENCE, WHOLE))
    return max(1, min(FEWEST, fewest), min(MOST, fitting))


def enough(timer: timeit.Timer) -> int:
    """Return the power of two of loops that takes LEAST or more, twice: once may have been an interruption."""
    number = 1
    while timer.timeit(number) < LEAST or timer.timeit(number) < LEAST:
        number *= 2
    return number


if __name__ == "__main__":
    main()
