"""Run a Python program as ``python`` itself would, timing every callback of asyncio's event loops.

    python [flags] slow_callbacks_run.py FILE OVER script|module|code TARGET [ARGUMENT ...]

What a loop does in one go, a step of a task or a callback, is what nothing else can happen in. asyncio's debug mode
measures the same and warns of what takes longer than ``slow_callback_duration``, but keeps a stack of every task and
callback, which would make them slower; so the time is taken around ``asyncio.Handle._run`` here. A thread looks where
the loop's thread is once a callback has taken half of OVER seconds.

FILE is JSON: ``status``, ``seconds`` (of the program), ``callbacks``, ``longest`` (s) and ``slow``, a list of places:
``function``, ``file``, ``line``, ``task`` (whose step it was), ``calls`` and ``seconds``.

Run by the measured interpreter, so: standard library only, and nothing newer than Python 3.8.
"""

# ruff: noqa: PTH100, PTH118, PTH120, PTH123, S102

from __future__ import annotations

import asyncio
import importlib.machinery
import os
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RUNNER_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python_run.py")
_LEAST_LOOK = 0.001
_NOWHERE = ("", "", 0)


class Watch:
    """Times callbacks, and notes the places of those that take longer than ``over`` seconds."""

    def __init__(self, over: float) -> None:
        self.over = over
        self.callbacks, self.longest = 0, 0.0
        self.slow: dict[Any, list[float]] = {}
        # By thread: when its callback began, and where it was when that had taken half of what is too long.
        self._running: dict[int, list[Any]] = {}
        self._lock = threading.Lock()

    def install(self) -> None:
        """Take the place of what runs a handle, and begin to look."""
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
                self._note(seconds, entry[1], task)

        vars(asyncio)["Handle"]._run = timed  # noqa: SLF001
        threading.Thread(target=self._look, daemon=True).start()

    def _note(self, seconds: float, place: Any, task: Any) -> None:
        with self._lock:
            self.callbacks += 1
            self.longest = max(self.longest, seconds)
            if seconds >= self.over:
                key = (*(place if place[0] else task), task[0])
                found = self.slow.setdefault(key, [0, 0.0])
                found[0] += 1
                found[1] += seconds

    def _look(self) -> None:
        pause = max(_LEAST_LOOK, self.over / 4)
        while True:
            time.sleep(pause)
            now = time.perf_counter()
            for thread, entry in list(self._running.items()):
                if entry[1] is _NOWHERE and now - entry[0] >= self.over / 2:
                    # The innermost frame of the program's own is where it waits or computes.
                    entry[1] = _place(sys._current_frames().get(thread))  # noqa: SLF001 (made for this)


def _task_of(handle: asyncio.Handle) -> Any:
    """Return name, file and line of the coroutine whose step a handle is, or of the function that it calls."""
    callback: Any = getattr(handle, "_callback", None)
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        callback = owner.get_coro() if hasattr(owner, "get_coro") else callback
    callback = getattr(callback, "func", callback)
    name = getattr(callback, "__qualname__", None) or type(callback).__name__
    code = getattr(callback, "cr_code", None) or getattr(callback, "gi_code", None)
    code = code or getattr(callback, "__code__", None)
    return (str(name), code.co_filename, code.co_firstlineno) if code else (str(name), "", 0)


def _place(frame: Any) -> Any:
    """Return function, file and line of the innermost frame outside of libraries, or of the innermost of all."""
    innermost = frame
    while frame is not None:
        file = frame.f_code.co_filename
        if not (file.startswith(("<frozen", LIBRARY)) or "site-packages" in file or "dist-packages" in file):
            break
        frame = frame.f_back
    # Below the program is this driver, which nothing of the program is in.
    chosen = innermost if frame is None or frame.f_code.co_filename == os.path.abspath(__file__) else frame
    if chosen is None:
        return _NOWHERE
    code = chosen.f_code
    return (getattr(code, "co_qualname", code.co_name), code.co_filename, chosen.f_lineno)


LIBRARY = os.path.dirname(os.__file__) + os.sep


def main() -> None:
    """Run the program that the command line names; what it raises ends this process as it would have ended."""
    file, over = os.path.abspath(sys.argv[1]), float(sys.argv[2])
    form, target, arguments = sys.argv[3], sys.argv[4], sys.argv[5:]
    runner = _runner()
    watch = Watch(over)
    watch.install()
    began = time.perf_counter()

    def record(status: int) -> None:
        import json

        with watch._lock:  # noqa: SLF001 (a loop of another thread may still run)
            content = {
                "status": status,
                "seconds": time.perf_counter() - began,
                "callbacks": watch.callbacks,
                "longest": watch.longest,
                "slow": [
                    {
                        "function": place[0],
                        "file": place[1],
                        "line": place[2],
                        "task": place[3],
                        "calls": int(calls),
                        "seconds": seconds,
                    }
                    for place, (calls, seconds) in watch.slow.items()
                ],
            }
        with open(file, "w", encoding="utf-8") as stream:
            json.dump(content, stream)

    runner.watch(lambda: runner.perfflow_program(*runner.prepare(form, target, arguments)), record)


def _runner() -> Any:
    """Return the module python_run beside this file, without leaving it where the program could import it."""
    loader = importlib.machinery.SourceFileLoader("perfflow_python_run", RUNNER_FILE)
    module = type(sys)(loader.name)
    module.__dict__.update(__file__=RUNNER_FILE)
    exec(loader.source_to_code(loader.get_data(RUNNER_FILE), RUNNER_FILE), module.__dict__)
    return module


if __name__ == "__main__":
    main()
