"""The programs that are compared, and the neighbour that disturbs them."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

SOURCE = Path(__file__).with_name("work.c")
MODES = ("cpu", "mem")
_FEW, _MANY = {"cpu": 2000, "mem": 100}, {"cpu": 14000, "mem": 900}
_TRIES = 40


def build(folder: Path) -> Path:
    """Compile the program with the machine's C compiler; returns its path."""
    program = folder / "work"
    subprocess.run(["cc", "-O2", "-o", str(program), str(SOURCE)], check=True)
    return program


@contextlib.contextmanager
def neighbour(program: Path) -> Iterator[None]:
    """Keep one core busy half of the time, in bursts of 5 to 105 ms."""
    process = subprocess.Popen([program, "load"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds of one mode: ``fixed`` of each process, and ``each`` of one unit of its AMOUNT."""

    fixed: float
    each: float

    def amount(self, seconds: float) -> int:
        """The AMOUNT that takes so long."""
        return max(1, round((seconds - self.fixed) / self.each))


def cost(program: Path, mode: str) -> Cost:
    """Measure the cost of a mode at two amounts, alternating, by the median of CPU times."""
    seconds: dict[int, list[float]] = {_FEW[mode]: [], _MANY[mode]: []}
    for _ in range(_TRIES):
        for amount, found in seconds.items():
            found.append(_cpu_seconds([str(program), mode, str(amount)]))
    few, many = (median(seconds[amount]) for amount in (_FEW[mode], _MANY[mode]))
    each = (many - few) / (_MANY[mode] - _FEW[mode])
    return Cost(few - each * _FEW[mode], each)


def _cpu_seconds(argv: list[str]) -> float:
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, argv)
    return usage.ru_utime + usage.ru_stime
