"""The CPU time of a service: that of its processes and of those that they have waited for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from perfflow.execute.service import cpu_time

SERVICE = """
import os, subprocess, sys, threading, time

def work():
    for _ in range(300_000):
        pass

def told():
    ended = os.times()
    return time.process_time() + ended.children_user + ended.children_system

child = "for _ in range(1_000_000): pass"
for line in sys.stdin:
    if line.startswith("thread"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    elif line.startswith("child"):
        subprocess.run([sys.executable, "-S", "-c", child], check=True)
    print(told(), flush=True)
"""


@pytest.mark.parametrize("how", ["main", "thread", "child"])
def test_all_that_a_service_computes_is_counted(how: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVICE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as service:
        assert service.stdin
        assert service.stdout
        for _ in range(3):
            service.stdin.write(f"{how}\n")
            service.stdin.flush()
            told = float(service.stdout.readline())
            # It reads its own clock first, and goes back to sleep after that.
            counted = cpu_time([service.pid])
            assert told <= counted <= told + 0.05
        service.stdin.close()


def test_a_running_child_is_counted_and_one_that_is_gone_is_not() -> None:
    text = "import subprocess, sys; subprocess.run([sys.executable, '-c', CHILD])"
    child = "import time; sum(range(3_000_000)); print(time.process_time(), flush=True); input()"
    argv = [sys.executable, "-c", f"CHILD = {child!r}; {text}"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as service:
        assert service.stdout
        told = float(service.stdout.readline())
        counted = cpu_time([service.pid])
        service.kill()
    assert counted > told
    assert cpu_time([service.pid]) == 0.0
