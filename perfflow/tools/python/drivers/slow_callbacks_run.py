"""Run a Python program as ``python`` itself would, and time every callback of asyncio's event loops.

    python [flags] python_run.py --under=slow_callbacks_run.py FILE OVER script|module|code TARGET [ARGUMENT ...]

While a loop runs a step of a task or a callback, it runs nothing else. asyncio's debug mode measures the same, and
warns of callbacks longer than ``slow_callback_duration``, but it keeps a stack of every task and callback, which slows
them down. So this driver measures the time of ``asyncio.Handle._run``. A thread reads the position of the loop's thread
once a callback has taken half of OVER seconds.

FILE is JSON: ``status``, ``seconds`` (of the program), ``callbacks``, ``longest`` (s) and ``slow``, a list of places:
``function``, ``file``, ``line``, ``task`` (whose step it was), ``calls`` and ``seconds``.

Run by the measured interpreter, so: standard library only, and nothing newer than Python 3.8.
"""

# ruff: noqa: PTH100, PTH120

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from typing import Any

_LEAST_LOOK = 0.001
_NOWHERE = ("", "", 0)


class Watch:
    """Times callbacks, and records the places of those that take at least ``over`` seconds."""

    def __init__(self, runner: Any, over: float) -> None:
        self.runner, self.over = runner, over
        self.callbacks, self.longest = 0, 0.0
        self.slow: dict[Any, list[float]] = {}
        # By thread: the start of its callback, and its place after half of ``over``.
        self._running: dict[int, list[Any]] = {}
        self.lock = threading.Lock()

    def install(self) -> None:
        """Replace the method that runs a handle, and start the thread that finds places."""
        run_handle = asyncio.Handle._run  # noqa: SLF001 (what asyncio's own debug mode times)

        def timed(handle: asyncio.Handle) -> Any:
            task = _task_of(handle)
            thread = threading.get_ident()
            began = time.perf_counter()
            entry = self._running[thread] = [began, _NOWHERE]
            try:
                return run_handle(handle)
            finally:
                seconds = time.perf_counter() - began
                self._running.pop(thread, None)
                with self.lock:
                    self.callbacks += 1
                    self.longest = max(self.longest, seconds)
                    if seconds >= self.over:
                        place = entry[1] if entry[1][0] else task
                        found = self.slow.setdefault((*place, task[0]), [0, 0.0])
                        found[0] += 1
                        found[1] += seconds

        vars(asyncio)["Handle"]._run = timed  # noqa: SLF001
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        pause = max(_LEAST_LOOK, self.over / 4)
        while True:
            time.sleep(pause)
            now = time.perf_counter()
            for thread, entry in list(self._running.items()):
                if entry[1] is _NOWHERE and now - entry[0] >= self.over / 2:
                    # The program waits or computes in the innermost frame of its own code.
                    entry[1] = _place(self.runner, sys._current_frames().get(thread))  # noqa: SLF001 (made for this)


def _task_of(handle: asyncio.Handle) -> Any:
    """Return name, file and line of the coroutine that a handle steps, or of the function that it calls."""
    callback: Any = getattr(handle, "_callback", None)
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        callback = owner.get_coro()
    callback = getattr(callback, "func", callback)
    name = getattr(callback, "__qualname__", None) or type(callback).__name__
    codes = (getattr(callback, key, None) for key in ("cr_code", "gi_code", "__code__"))
    code = next(filter(None, codes), None)
    return (str(name), code.co_filename, code.co_firstlineno) if code else (str(name), "", 0)


def _place(runner: Any, frame: Any) -> Any:
    """Return function, file and line of the innermost frame outside of libraries, else of the innermost frame."""
    chosen = frame
    while chosen is not None and runner.is_library(chosen.f_code.co_filename):
        chosen = chosen.f_back
    # The search reached this driver: no frame is of the program's own code.
    if chosen is None or os.path.dirname(chosen.f_code.co_filename) == runner.FOLDER:
        chosen = frame
    if chosen is None:
        return _NOWHERE
    code = chosen.f_code
    return (getattr(code, "co_qualname", code.co_name), code.co_filename, chosen.f_lineno)


def main(runner: Any, words: list[str]) -> None:
    """Run the program of the command line. Its exceptions end this process as they would have ended the program."""
    file, watch = os.path.abspath(words[0]), Watch(runner, float(words[1]))
    watch.install()
    began = time.perf_counter()

    def record(status: int) -> None:
        # A loop in another thread can still be running.
        with watch.lock:
            places = [(*place, *found) for place, found in watch.slow.items()]
            counts = {"callbacks": watch.callbacks, "longest": watch.longest}
        slow = runner.records("function file line task calls seconds", places)
        runner.write(file, status=status, seconds=time.perf_counter() - began, **counts, slow=slow)

    runner.watch(words[2:], runner.perfflow_program, record)
