"""The preloaded clock of CPU time, and the elapsed time from its log."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from perfflow.tools import cpu_clock
from perfflow.tools.cpu_clock import ClockLog

NAP = 200_000_000
PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}
static void *nap(void *waited) {
    long before = now();
    usleep(200000);
    *(long *)waited = now() - before;
    return 0;
}
int main(void) {
    long before = now();
    usleep(200000);
    long napped = now() - before, in_thread;
    before = now();
    for (volatile long i = 0; i < 100000000; i++) {}
    long computed = now() - before;
    pthread_t thread;
    pthread_create(&thread, 0, nap, &in_thread);
    pthread_join(thread, 0);
    printf("%ld %ld %ld %d\n", napped, computed, in_thread, getenv("LD_PRELOAD") != 0);
}
"""


def test_cpu_clock_does_not_advance_while_the_main_thread_waits(cpu_clock_library: Path, tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(PROGRAM)
    program, log = tmp_path / "program", tmp_path / "log"
    subprocess.run(["cc", "-O1", "-pthread", "-o", program, tmp_path / "program.c"], check=True)
    done = subprocess.run(
        [program], env=cpu_clock.environment(cpu_clock_library, log), check=True, capture_output=True, text=True
    )
    napped, computed, in_thread, inherited = map(int, done.stdout.split())
    assert napped < computed
    assert napped < NAP / 2
    # Other threads keep the true clock, and children do not inherit the library.
    assert in_thread >= NAP
    assert not inherited
    found = ClockLog.read(log)
    assert found
    nap, loop = found.elapsed([napped, computed])
    assert nap >= NAP
    assert loop >= computed * 0.99


def _log(path: Path, *readings: tuple[int, int]) -> ClockLog | None:
    path.write_bytes(b"".join(struct.pack("=qq", *reading) for reading in readings))
    return ClockLog.read(path)


def test_clock_log_finds_the_elapsed_time_of_intervals(tmp_path: Path) -> None:
    found = _log(tmp_path / "log", (0, 0), (10, 15), (12, 40), (22, 60), (30, 90))
    assert found
    assert found.elapsed([10.0, 10.0]) == [15.0, 20.0]
    assert found.elapsed([2.0, 8.0]) == [25.0, 30.0]
    # The sum of two intervals, and intervals in another order, are told by the whole log.
    assert found.elapsed([12.0]) == [36.0]
    assert found.elapsed([8.0, 2.0]) == [24.0, 6.0]


@pytest.mark.parametrize("content", [b"", b"\0" * 15, b"\0" * 16, b"\0" * 64])
def test_clock_log_without_two_readings_is_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(content)
    assert ClockLog.read(tmp_path / "log") is None
    assert ClockLog.read(tmp_path / "missing") is None
