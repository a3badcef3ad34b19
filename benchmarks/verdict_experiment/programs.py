"""The programs that are compared, and the neighbour that disturbs them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

SOURCE = Path(__file__).with_name("work.c")
MODES = ("cpu", "mem")
_FEW, _MANY = {"cpu": 2000, "mem": 100}, {"cpu": 14000, "mem": 900}
_TRIES = 40
_BLOCKS = 50


def build(folder: Path, name: str = "work") -> Path:
    """Compile the program with the machine's C compiler; builds of other names differ in a text that is not used."""
    program = folder / name
    subprocess.run(["cc", "-O2", f'-DBUILD="{name}"', "-o", str(program), str(SOURCE)], check=True)
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


@contextlib.contextmanager
def lock_keeper(program: Path, file: Path) -> Iterator[None]:
    """Hold the lock that `work lock` waits for, until each request's time is over."""
    os.mkfifo(f"{file}.asks")
    Path(f"{file}.lock").touch()
    process = subprocess.Popen([program, "keep", file])
    try:
        yield
    finally:
        process.kill()
        process.wait()
        Path(f"{file}.asks").unlink()


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
            found.append(cpu_seconds([str(program), mode, str(amount)]))
    few, many = (median(seconds[amount]) for amount in (_FEW[mode], _MANY[mode]))
    each = (many - few) / (_MANY[mode] - _FEW[mode])
    return Cost(few - each * _FEW[mode], each)


def seconds_of_a_block(program: Path, file: Path) -> float:
    """Wall seconds that one block of the file takes, by the median of differences."""
    found = []
    for _ in range(_TRIES):
        few, many = (_wall_seconds([str(program), "read", "1", str(count), str(file)]) for count in (1, 1 + _BLOCKS))
        found.append((many - few) / _BLOCKS)
    return median(found)


def _wall_seconds(argv: list[str]) -> float:
    began = time.monotonic()
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - began


def cpu_seconds(argv: list[str]) -> float:
    """CPU seconds of one process. Raises CalledProcessError."""
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, argv)
    return usage.ru_utime + usage.ru_stime
