"""One benchmark that burns UNITS of work a call, and FACTOR times as much in every EVERY-th call."""

import os
from collections.abc import Callable
from itertools import count
from typing import Any

UNITS, EVERY, FACTOR = float(os.environ["UNITS"]), int(os.environ["EVERY"]), float(os.environ["FACTOR"])


def test_work(benchmark: Callable[..., Any]) -> None:
    """Measured by pytest-benchmark."""
    calls = count(1)

    def work() -> None:
        for _ in range(int(UNITS * FACTOR if next(calls) % EVERY == 0 else UNITS)):
            pass

    benchmark(work)
