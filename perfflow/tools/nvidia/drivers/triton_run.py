"""Run a script of Triton's benchmarks, one of them alone, or print their names, one a line.

    python triton_run.py list|run OUTPUT SCRIPT [ARGUMENT ...] [--perfflow-brief] [--perfflow-only=NAME]

Every call of ``triton.testing.do_bench`` and ``do_bench_cudagraph`` is a benchmark. Its name is the function that
``perf_report`` marked with its arguments, else the timed function, else the line; repeated names get ``#2`` and so on.
All times of each call go to OUTPUT as JSON, whatever the script does with them; a skipped call returns NaN. The exit
status is the script's own, or 5 if it has no benchmark, or none of that name. In list mode, output of the script goes
to stderr.

Run by the measured interpreter, so: standard library and Triton only, and nothing newer than Python 3.8.
"""

# ruff: noqa: PTH113, PTH119, PTH120, PTH123

from __future__ import annotations

import json
import os
import runpy
import statistics
import sys
from collections.abc import Callable
from typing import Any

ONLY, BRIEF = "--perfflow-only=", "--perfflow-brief"
NONE = 5
# Times (ms) of launches and of warm-up in a brief call.
LEAST = {"rep": 20, "warmup": 5}


class Benches:
    """The calls of the benchmarking functions, in order, and the times of each in ms."""

    def __init__(self, mode: str, only: str) -> None:
        self.mode, self.only = mode, only
        self.found: dict[str, list[float] | None] = {}
        self.within = ""

    def watch(self, testing: Any) -> None:
        """Wrap Triton's benchmarking functions."""
        for name in ("do_bench", "do_bench_cudagraph"):
            if hasattr(testing, name):
                setattr(testing, name, self._watched(getattr(testing, name)))
        original = testing.Mark.__init__

        def marked(mark: Any, fn: Callable[..., Any], *args: Any, **keys: Any) -> None:
            original(mark, self._named(fn), *args, **keys)

        testing.Mark.__init__ = marked

    def _named(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **keys: Any) -> Any:
            given = ",".join(f"{key}={value}" for key, value in keys.items())
            self.within = f"{getattr(fn, '__name__', 'benchmark')}[{given}]"
            try:
                return fn(*args, **keys)
            finally:
                self.within = ""

        return called

    def _watched(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def bench(fn: Callable[..., Any], *args: Any, **keys: Any) -> Any:
            quantiles, return_mode = keys.pop("quantiles", None), keys.pop("return_mode", "mean")
            name = self._name(fn, sys._getframe(1))  # noqa: SLF001 (whose line names the benchmark)
            self.found[name] = None
            times = [float("nan")]
            if self.mode != "list" and self.only in ("", name):
                if self.mode == BRIEF:
                    known = original.__code__.co_varnames[: original.__code__.co_argcount]
                    keys.update({key: least for key, least in LEAST.items() if key in known})
                    args = ()
                times = [float(time) for time in original(fn, *args, return_mode="all", **keys)]
                self.found[name] = times
            return summary(times, quantiles, return_mode)

        return bench

    def _name(self, fn: Callable[..., Any], frame: Any) -> str:
        own = getattr(fn, "__name__", "<lambda>")
        line = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
        base = self.within or (line if own.startswith("<") else own)
        again = 1 + sum(name == base or name.startswith(f"{base}#") for name in self.found)
        return base if again == 1 else f"{base}#{again}"


def summary(times: list[float], quantiles: list[float] | None, mode: str) -> Any:
    """Return the result of do_bench: a list of quantiles, all times, or one figure."""
    if quantiles is not None:
        found = [_quantile(sorted(times), q) for q in quantiles]
        return found[0] if len(found) == 1 else found
    mean, median = statistics.fmean(times), statistics.median(times)
    return {"all": times, "min": min(times), "max": max(times), "mean": mean, "median": median}[mode]


def _quantile(ordered: list[float], q: float) -> float:
    at = q * (len(ordered) - 1)
    low, high = ordered[int(at)], ordered[min(int(at) + 1, len(ordered) - 1)]
    return low + (high - low) * (at - int(at))


def main() -> None:
    """Run the mode of the command line."""
    mode, output, script, *arguments = sys.argv[1:]
    only = arguments.pop()[len(ONLY) :] if arguments and arguments[-1].startswith(ONLY) else ""
    if arguments[-1:] == [BRIEF]:
        mode = arguments.pop()
    try:
        import triton  # type: ignore[import-not-found, unused-ignore]
        import triton.testing  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        sys.exit(f"triton is not installed for this python ({error}): pip install triton torch")
    printed = os.dup(1)
    if mode == "list":
        os.dup2(2, 1)
    benches = Benches(mode, only)
    benches.watch(triton.testing)
    # As with `python SCRIPT`.
    sys.argv[:] = [script, *arguments]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.realpath(script))
    if not os.path.isfile(script):
        sys.exit(f"there is no script {script}")
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    if not benches.found or (only and only not in benches.found):
        what = f"benchmark {only}" if only else "call of triton.testing.do_bench"
        sys.stderr.write(f"{script} has no {what}\n")
        sys.exit(NONE)
    if mode == "list":
        with os.fdopen(printed, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.writelines(f"{name}\n" for name in benches.found)
        return
    rows = [{"name": name, "ms": times} for name, times in benches.found.items() if times is not None]
    with open(output, "w", encoding="utf-8") as stream:
        json.dump({"triton": triton.__version__, "gpu": gpu(), "benchmarks": rows}, stream)


def gpu() -> str:
    """Return the name of the device that PyTorch uses; '' if it has none."""
    torch = sys.modules.get("torch")
    try:
        return str(torch.cuda.get_device_name()) if torch is not None and torch.cuda.is_available() else ""
    except RuntimeError:
        return ""


if __name__ == "__main__":
    main()
