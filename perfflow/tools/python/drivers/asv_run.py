"""List, run or trace the benchmarks of an asv suite with asv_runner, each in a process of its own.

    python asv_run.py list  CONFIG REGEX
    python asv_run.py run   CONFIG REGEX OUT [--attributes=JSON] [--forks=no] [--chosen=NAMES]
    python asv_run.py trace CONFIG REGEX SETTINGS

``asv run`` itself needs a repository with the commit, writes into the home folder and the suite's own results, and
removes PYTHONPATH, which determines the measured code, from the benchmarks' sys.path. So this driver uses asv_runner,
the package that asv runs in every environment, in the same steps: discover, set up the cache, run. As with asv's
launch method ``forkserver``, its default, one process imports the suite, and forks a child for each step. CONFIG is
asv.conf.json; only its ``benchmark_dir`` is used. OUT is like a file of asv's own results, but each combination of
parameters is a benchmark of its own, and the columns ``cpu`` and ``uncontended`` have the samples by other clocks (see
clocks.py). It also contains ``benchmarks.json``, and ``errors`` with the reasons of failures.
The result of a failed benchmark is null, that of a skipped one NaN (not strict JSON). Attributes replace those of the
benchmarks, such as ``{"repeat": 5}``. NAMES is a JSON list of the benchmarks to run, in this order. SETTINGS is a JSON
file: ``benchmarks`` are the names of those to trace, ``out`` is the folder for the record of what they execute and
read, and the other keys are described in python_trace.py. With ``--forks=no``, benchmarks run in this process, so that
a profiler sees them. The exit status is 5 if the suite has no such benchmark.

Run by the measured interpreter, so: standard library and asv_runner only, and nothing newer than Python 3.8.
"""

# ruff: noqa: PTH100, PTH109, PTH110, PTH112, PTH118, PTH119, PTH120, PTH123

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import select
import signal
import statistics
import sys
import tempfile
import time
from functools import partial
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any, Callable  # noqa: UP035

NONE, SKIPPED = 5, 77
CLOCKS = ("cpu", "uncontended")
# asv's own limit (s) for benchmarks without one. A process gets twice as long.
TIMEOUT = 60.0
# Seconds between two looks at a child that closed its files, or left them to a child of its own.
LOOK = 0.2


def main() -> None:
    """Run the mode of the command line."""
    mode = sys.argv[1]
    # As with `python -m asv_runner`: imports are found in the working directory, not in this file's folder.
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd()
    try:
        import asv_runner  # type: ignore[import-untyped]
    except ImportError:
        sys.exit("asv_runner is not installed for this python: pip install asv")
    root, regex, flags = benchmark_dir(sys.argv[2]), sys.argv[3], dict(word.split("=", 1) for word in sys.argv[5:])
    recorder, settings = None, {}
    if mode == "trace":
        with open(sys.argv[4], encoding="utf-8") as stream:
            settings = json.load(stream)
        recorder = beside("python_trace").Recorder(settings)
        recorder.start()
    preimport(root)
    common = recorder.record() if recorder else None
    chosen = settings.get("benchmarks") or json.loads(flags.get("--chosen", "[]"))
    # As in asv, the expression can match anywhere in the name.
    found = [each for each in discover(root) if (each["name"] in chosen if chosen else re.search(regex, each["name"]))]
    if chosen:
        found.sort(key=lambda each: chosen.index(each["name"]))
    if not found:
        sys.stderr.write(f"no benchmark in {root} matches {', '.join(chosen) or regex or 'anything'}\n")
        sys.exit(NONE)
    names = [each["name"] for each in found]
    if len(names) > len(set(names)):
        sys.exit(f"two benchmarks are called {max(names, key=names.count)[:80]!r}")
    if mode == "list":
        with tempfile.TemporaryDirectory() as folder:
            names = [each["name"] for each in found if not skips(root, each, folder)]
        sys.stdout.writelines(f"{name}\n" for name in names)
        return
    if recorder is not None:
        recorder.codes.clear()
        done = trace(root, found, recorder, settings["out"])
        with open(os.path.join(settings["out"], "0.json"), "w", encoding="utf-8") as stream:
            json.dump({"common": common, "benchmarks": done}, stream)
        return
    out = os.path.abspath(sys.argv[4])
    with tempfile.TemporaryDirectory(dir=os.path.dirname(out)) as folder:
        attributes, forks = flags.get("--attributes", "{}"), flags.get("--forks") != "no"
        done = {each["name"]: run(root, each, attributes, folder, forks=forks) for each in found}
    content = {
        "runner": getattr(asv_runner, "__version__", ""),
        "result_columns": ["result", "params", "stats_number", "samples", *CLOCKS],
        "results": {name: row for name, (row, _) in done.items()},
        "benchmarks.json": {each["name"]: {"type": each["type"], "unit": each["unit"]} for each in found},
        "errors": {name: error for name, (_, error) in done.items() if error},
    }
    with open(out, "w", encoding="utf-8") as stream:
        json.dump(content, stream, indent=1)
        stream.write("\n")


def benchmark_dir(config: str) -> str:
    """Return the folder of the benchmarks from asv.conf.json, which can contain comments."""
    try:
        with open(config, encoding="utf-8") as stream:
            lines = [line for line in stream if not line.lstrip().startswith("//")]
    except OSError as error:
        sys.exit(f"{config}: {error.strerror}")
    found = re.search(r'"benchmark_dir"\s*:\s*("(?:[^"\\]|\\.)*")', "".join(lines))
    root = os.path.join(os.path.dirname(os.path.abspath(config)), json.loads(found[1]) if found else "benchmarks")
    if not os.path.isdir(root):
        sys.exit(f"{root}: no such folder, which {config} names as benchmark_dir")
    return os.path.normpath(root)


def preimport(root: str) -> None:
    """Import all modules of the suite, as every child needs some of them. What they print goes to standard error."""
    from asv_runner._aux import update_sys_path  # type: ignore[import-untyped]
    from asv_runner.discovery import disc_modules  # type: ignore[import-untyped]

    output = os.dup(1)
    os.dup2(2, 1)
    try:
        update_sys_path(root)
        for _ in disc_modules(os.path.basename(root)):
            pass
    finally:
        sys.stdout.flush()
        os.dup2(output, 1)
        os.close(output)


def beside(name: str) -> Any:
    """Import a file beside this one, which is not on sys.path."""
    module = ModuleType(name)
    module.__file__ = os.path.join(os.path.dirname(__file__), f"{name}.py")
    SourceFileLoader(name, module.__file__).exec_module(module)
    return module


def discover(root: str) -> list[dict[str, Any]]:
    """Return every benchmark with every combination of its parameters, named as asv names them."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "found.json")
        from asv_runner.discovery import _discover

        status, said = child(lambda: _discover((root, path)), folder, None)
        sys.stderr.write(said)
        if status:
            sys.exit(status)
        with open(path, encoding="utf-8") as stream:
            listed = json.load(stream)
    found = []
    for each in sorted(listed, key=lambda item: str(item["name"])):
        about = {key: each.get(key) for key in ("type", "unit", "setup_cache_key", "rounds")}
        about["limit"] = float(each.get("timeout") or TIMEOUT) * 2
        for index, cell in enumerate(itertools.product(*each.get("params") or [])):
            name = f"{each['name']}({', '.join(cell)})" if cell else each["name"]
            found.append({"name": name, "id": f"{each['name']}-{index}" if cell else each["name"], **about})
    return found


def skips(root: str, benchmark: dict[str, Any], folder: str) -> bool:
    """Return whether the benchmark's setup skips its parameters. A failure is left for the run to report."""
    if "-" not in benchmark["id"]:
        return False
    try:
        here = place_of(root, benchmark, folder)
        return child(lambda: probe(root, benchmark["id"]), here, benchmark["limit"])[0] == SKIPPED
    except (OSError, ValueError):
        return False


def run(root: str, benchmark: dict[str, Any], attributes: str, folder: str, *, forks: bool) -> tuple[list[Any], str]:
    """Run one benchmark for its number of ``rounds``. Return its row with the samples of all rounds, and an error.

    ``forks``: each round in a fork of this process.
    """
    from asv_runner.run import _run  # type: ignore[import-untyped]

    def once() -> None:
        use_clocks()
        _run((root, benchmark["id"], attributes, "None", path))

    rounds = int(json.loads(attributes).get("rounds") or benchmark["rounds"] or 1)
    results = []
    try:
        here = place_of(root, benchmark, folder)
        path = os.path.join(here, "result.json")
        for _ in range(rounds):
            if forks:
                required(once, here, benchmark["limit"])
            else:
                inside(here, once)
            with open(path, encoding="utf-8") as stream:
                results.append(json.load(stream))
            os.unlink(path)  # noqa: PTH108
    except (OSError, ValueError) as error:
        return [None, []], str(error)[-500:]
    if all(isinstance(each, dict) for each in results):
        samples = [value for each in results for value in each["samples"]]
        row = [[statistics.median(samples)], [], [max(each["number"] for each in results)], [samples]]
        clocks = [[value for each in results for value in each.get(clock, [])] for clock in CLOCKS]
        return [*row, *([values if len(values) == len(samples) else None] for values in clocks)], ""
    return [results[-1:], []], "" if results[-1] is not None else "it gave nothing"


def place_of(root: str, benchmark: dict[str, Any], folder: str) -> str:
    """Return the folder to run a benchmark in. Benchmarks with a common cache share it; the cache is made once."""
    key = benchmark["setup_cache_key"]
    if key is None:
        return tempfile.mkdtemp(dir=folder)
    here = os.path.join(folder, re.sub(r"\W", "_", str(key)))
    if not os.path.exists(here):
        from asv_runner.setup_cache import _setup_cache  # type: ignore[import-untyped]

        os.mkdir(here)  # noqa: PTH102
        required(lambda: _setup_cache((root, benchmark["id"], "{}")), here, benchmark["limit"])
    return here


def required(work: Callable[[], None], folder: str, timeout: float) -> None:
    """Do work in a child. Raises ValueError with the last line of its output if it fails."""
    status, text = child(work, folder, timeout)
    sys.stderr.write(text)
    if status:
        lines = [line for line in text.splitlines() if line.strip()] or [f"exit status {status}"]
        raise ValueError(lines[-1])


def child(
    work: Callable[[], None], folder: str, timeout: float | None, fork: Callable[[], int] = os.fork
) -> tuple[int, str]:
    """Do work in a fork of this process, in ``folder``; return its exit status and what it printed.

    Raises ValueError if it takes longer than ``timeout`` (s).
    """
    with tempfile.TemporaryFile() as said:
        sys.stdout.flush()
        sys.stderr.flush()
        reading, writing = os.pipe()
        process = fork()
        if process == 0:
            os.close(reading)
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            beside("forks").finish(partial(inside, folder, work))
        os.close(writing)
        try:
            status = ended(process, reading, timeout)
        finally:
            os.close(reading)
        said.seek(0)
        return status, said.read().decode("utf-8", "replace")


def inside(folder: str, work: Callable[[], None]) -> None:
    """Do work in a folder."""
    os.chdir(folder)
    work()


def ended(process: int, pipe: int, timeout: float | None) -> int:
    """Wait for a child, which holds the other end of a pipe; return its exit status, negative for a signal."""
    last = None if timeout is None else time.monotonic() + timeout
    closed = False
    while True:
        if closed:
            time.sleep(LOOK / 100)
        else:
            # The pipe stays open if a child of the child outlives it.
            closed = bool(select.select([pipe], [], [], LOOK)[0])
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
        if last is not None and time.monotonic() > last:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            raise ValueError(f"it took more than {timeout:g} s")


def trace(root: str, found: list[dict[str, Any]], recorder: Any, out: str) -> dict[str, Any]:
    """Run each benchmark a few times in a fork of this process, and return what each executes and reads.

    All of them start from the same state, so what one does first, such as filling a cache, is not hidden from others.
    """
    done = {}
    for number, benchmark in enumerate(found):
        path = os.path.join(out, f"record-{number}")
        with tempfile.TemporaryDirectory() as folder, contextlib.suppress(OSError, ValueError):
            work = partial(follow, root, benchmark, recorder, path)
            status, said = child(work, folder, benchmark["limit"], recorder.fork)
            sys.stderr.write(said)
            if status == 0:
                with open(path, encoding="utf-8") as stream:
                    done[benchmark["name"]] = json.load(stream)
                os.unlink(path)  # noqa: PTH108
    return done


def follow(root: str, benchmark: dict[str, Any], recorder: Any, path: str) -> None:
    """Run a benchmark with two numbers of calls, and write its record."""
    from asv_runner.benchmarks.timeraw import TimerawBenchmark  # type: ignore[import-untyped]

    # Files that this driver has read are not inputs of the benchmark.
    recorder.inputs.clear()
    recorder.begin_part()
    if benchmark["setup_cache_key"] is not None:
        from asv_runner.setup_cache import _setup_cache

        _setup_cache((root, benchmark["id"], "{}"))
    once = {"number": 1, "repeat": 1, "rounds": 1, "warmup_time": 0.0, "min_run_count": 1}
    made, skip = ready(root, benchmark["id"], once)
    if skip:
        sys.exit(SKIPPED)
    if isinstance(made, TimerawBenchmark):
        # The benchmark is the text of a program, which asv_runner starts, not the code of the tree.
        recorder.unknown["it starts programs: python"] = None

    def calls(number: int) -> None:
        made.number = number
        made.do_run()

    recorder.repeat(calls)
    made.do_teardown()
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(recorder.record(), stream)


def use_clocks() -> None:
    """Time benchmarks by several clocks, unless they choose a timer, and add the other clocks to their results."""
    import asv_runner.benchmarks.time as timed  # type: ignore[import-untyped]

    if not hasattr(timed, "wall_timer"):
        return
    clocks = beside("clocks")
    original = timed.TimeBenchmark.run

    def run(self: Any, *parameters: Any) -> Any:
        result = original(self, *parameters)
        result.update(clocks.parts(result["samples"]))
        return result

    timed.wall_timer, timed.TimeBenchmark.run = clocks.Clocks().read, run


def probe(root: str, name: str) -> None:
    """Exit with SKIPPED if the benchmark's setup skips it, with the same check as asv_runner before a run."""
    benchmark, skip = ready(root, name)
    benchmark.do_teardown()
    sys.exit(SKIPPED if skip else 0)


def ready(root: str, name: str, attributes: Any = None) -> tuple[Any, bool]:
    """Return a benchmark after its setup, and whether the setup skips it."""
    import pickle

    from asv_runner.discovery import get_benchmark_from_name

    benchmark = get_benchmark_from_name(root, name, extra_params=attributes)
    cache = None
    if benchmark.setup_cache_key is not None:
        with open("cache.pickle", "rb") as stream:
            cache = pickle.load(stream)  # noqa: S301 (made a moment ago)
    benchmark.set_cache(cache)
    return benchmark, bool(benchmark.do_setup())


if __name__ == "__main__":
    main()
