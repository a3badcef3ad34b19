"""List or run the benchmarks of an asv suite with asv_runner, each in a process of its own.

    python asv_run.py list CONFIG REGEX
    python asv_run.py run  CONFIG REGEX OUT [--attributes=JSON] [--chosen=NAMES]

``asv run`` itself needs a repository with the commit, writes into the home folder and the suite's own results, and
removes PYTHONPATH, which determines the measured code, from the benchmarks' sys.path. So this driver uses asv_runner,
the package that asv runs in every environment, in the same steps: discover, set up the cache, run. CONFIG is
asv.conf.json; only its ``benchmark_dir`` is used. OUT is like a file of asv's own results, but each combination of
parameters is a benchmark of its own, and the columns ``cpu`` and ``uncontended`` have the samples by other clocks (see
clocks.py). It also contains ``benchmarks.json``, and ``errors`` with the reasons of failures.
The result of a failed benchmark is null, that of a skipped one NaN (not strict JSON). Attributes replace those of the
benchmarks, such as ``{"repeat": 5}``. NAMES is a JSON list of the benchmarks to run, in this order. Exit status 5:
there is no benchmark.

Run by the measured interpreter, so: standard library and asv_runner only, and nothing newer than Python 3.8.
"""

# ruff: noqa: PTH100, PTH109, PTH110, PTH112, PTH118, PTH120, PTH123

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from typing import Any

PLACE = "PERFFLOW_ASV_STARTED_IN"
NONE, SKIPPED = 5, 77
CLOCKS = ("cpu", "uncontended")
# asv's own limit (s) for benchmarks without one. A process gets twice as long.
TIMEOUT = 60.0


def main() -> None:
    """Run the mode of the command line."""
    mode = sys.argv[1]
    # As with `python -m asv_runner`: imports are found in the working directory, not in this file's folder.
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.environ.setdefault(PLACE, os.getcwd())
    try:
        import asv_runner  # type: ignore[import-untyped]
    except ImportError:
        sys.exit("asv_runner is not installed for this python: pip install asv")
    if mode.startswith("step-"):
        step(mode, tuple(sys.argv[2:]))
        return
    root, regex, flags = benchmark_dir(sys.argv[2]), sys.argv[3], dict(word.split("=", 1) for word in sys.argv[5:])
    chosen = json.loads(flags.get("--chosen", "[]"))
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
    out = os.path.abspath(sys.argv[4])
    with tempfile.TemporaryDirectory(dir=os.path.dirname(out)) as folder:
        done = {each["name"]: run(root, each, flags.get("--attributes", "{}"), folder) for each in found}
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


def discover(root: str) -> list[dict[str, Any]]:
    """Return every benchmark with every combination of its parameters, named as asv names them."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "found.json")
        child("step-discover", [root, path], folder, None)
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
        return child("step-probe", [root, benchmark["id"]], here, benchmark["limit"], good=(0, SKIPPED)) == SKIPPED
    except (OSError, ValueError, subprocess.SubprocessError):
        return False


def run(root: str, benchmark: dict[str, Any], attributes: str, folder: str) -> tuple[list[Any], str]:
    """Run one benchmark for its number of ``rounds``. Return its row with the samples of all rounds, and an error."""
    rounds = int(json.loads(attributes).get("rounds") or benchmark["rounds"] or 1)
    results = []
    try:
        here = place_of(root, benchmark, folder)
        path = os.path.join(here, "result.json")
        for _ in range(rounds):
            child("step-run", [root, benchmark["id"], attributes, "None", path], here, benchmark["limit"])
            with open(path, encoding="utf-8") as stream:
                results.append(json.load(stream))
            os.unlink(path)  # noqa: PTH108
    except (OSError, ValueError, subprocess.SubprocessError) as error:
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
        os.mkdir(here)  # noqa: PTH102
        child("step-cache", [root, benchmark["id"], "{}"], here, benchmark["limit"])
    return here


def child(name: str, words: list[str], folder: str, timeout: float | None, good: tuple[int, ...] = (0,)) -> int:
    """Run one of asv_runner's steps in a new process. Raises ValueError with its last line of output if it fails."""
    argv = [sys.executable, os.path.abspath(__file__), name, *words]
    with tempfile.TemporaryFile() as said:
        done = subprocess.run(argv, cwd=folder, timeout=timeout, check=False, stdout=said, stderr=said)
        said.seek(0)
        text = said.read().decode("utf-8", "replace")
    sys.stderr.write(text)
    if done.returncode not in good:
        if name == "step-discover":
            sys.exit(done.returncode)
        lines = [line for line in text.splitlines() if line.strip()] or [f"exit status {done.returncode}"]
        raise ValueError(lines[-1])
    return done.returncode


def step(name: str, words: tuple[str, ...]) -> None:
    """Run one step in this process, by the functions that asv calls for the same arguments."""
    from asv_runner.discovery import _discover  # type: ignore[import-untyped]
    from asv_runner.run import _run  # type: ignore[import-untyped]
    from asv_runner.setup_cache import _setup_cache  # type: ignore[import-untyped]

    if name == "step-run":
        use_clocks()
    {"step-discover": _discover, "step-cache": _setup_cache, "step-run": _run, "step-probe": probe}[name](words)


def use_clocks() -> None:
    """Time benchmarks by several clocks, unless they choose a timer, and add the other clocks to their results."""
    import asv_runner.benchmarks.time as timed  # type: ignore[import-untyped]

    spec = importlib.util.spec_from_file_location("clocks", os.path.join(os.path.dirname(__file__), "clocks.py"))
    if spec is None or spec.loader is None or not hasattr(timed, "wall_timer"):
        return
    clocks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(clocks)
    original = timed.TimeBenchmark.run

    def run(self: Any, *parameters: Any) -> Any:
        result = original(self, *parameters)
        result.update(clocks.parts(result["samples"]))
        return result

    timed.wall_timer, timed.TimeBenchmark.run = clocks.Clocks().read, run


def probe(words: tuple[str, ...]) -> None:
    """Exit with SKIPPED if the benchmark's setup skips it, with the same check as asv_runner before a run."""
    import pickle

    from asv_runner.discovery import get_benchmark_from_name

    benchmark = get_benchmark_from_name(*words)
    cache = None
    if benchmark.setup_cache_key is not None:
        with open("cache.pickle", "rb") as stream:
            cache = pickle.load(stream)  # noqa: S301 (made by step-cache a moment ago)
    benchmark.set_cache(cache)
    skip = benchmark.do_setup()
    benchmark.do_teardown()
    sys.exit(SKIPPED if skip else 0)


if __name__ == "__main__":
    main()
