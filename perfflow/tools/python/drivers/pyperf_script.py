"""List, run or trace the benchmarks of a script of pyperf.

    python pyperf_script.py list|run|brief|sampled SCRIPT [ARGUMENT ...] [--perfflow-chosen=NAMES]
    python pyperf_script.py trace SCRIPT [ARGUMENT ...] --perfflow-settings=SETTINGS

``list`` prints the names of all, one a line; output of the script goes to stderr. ``run`` is pyperf's own way, with
worker processes for each benchmark. ``brief`` runs the script once, and each benchmark in a fork, from the state that
the script has then. ``sampled`` runs benchmarks in this process, so that a profiler sees them, and writes no file.

NAMES is a JSON list of the benchmarks to run; the script determines the order. Skipped benchmarks are counted, because
pyperf's worker processes run the script directly and select their benchmark by its number. Of two benchmarks with one
name, the first is run, and ``doubled.json`` beside pyperf's file has the name.

The file of a brief run has two more facts of each run of a benchmark that pyperf itself times: ``perfflow_cpu`` and
``perfflow_uncontended``, JSON lists of the values by other clocks (see clocks.py).

SETTINGS is a JSON file: ``benchmarks`` are the names of those to trace, ``out`` is the folder for the record of what
they execute and read. The other keys are described in python_trace.py.

The exit status is the script's own, 1 if a benchmark fails, or 5 if the script has no benchmark, or none of that name.

Run by the measured interpreter, so: standard library and pyperf only, and nothing newer than Python 3.8.
"""

# ruff: noqa: PTH108, PTH113, PTH118, PTH120, PTH123

from __future__ import annotations

import gc
import json
import os
import runpy
import sys
import tempfile
import time
import traceback
from contextlib import nullcontext
from importlib.machinery import SourceFileLoader
from types import ModuleType, SimpleNamespace
from typing import Any, Callable  # noqa: UP035

OUTPUT, DOUBLED = "--output=", "doubled.json"
CHOSEN, SETTINGS = "--perfflow-chosen=", "--perfflow-settings="
# What they measure is of a process.
OF_PROCESSES = {"--track-memory", "--tracemalloc"}
NONE = 5


def main() -> None:
    """Run the mode of the command line."""
    mode, script, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
    wanted, settings = own_arguments(arguments)
    try:
        import pyperf  # type: ignore[import-untyped]
    except ImportError:
        sys.exit("pyperf is not installed for this python: pip install pyperf")
    output = os.dup(1)
    if mode == "list":
        os.dup2(2, 1)
    if mode == "brief" and not OF_PROCESSES.isdisjoint(arguments):
        mode = "run"
    tracer = Tracer(settings) if mode == "trace" else None
    ways: dict[str, Any] = {"run": pyperf.Runner._main, "brief": brief, "sampled": here}  # noqa: SLF001
    found = choose(pyperf.Runner, wanted, tracer.trace if tracer else ways.get(mode))
    if mode in ("brief", "sampled", "trace"):
        work_here(pyperf.Runner)
    with tracer or nullcontext():
        run_script(script, arguments)
    if not found or not set(wanted).issubset(found):
        unknown = "".join(name for name in wanted if name not in found)
        sys.stderr.write(f"{script} has no benchmark {unknown or 'of pyperf'}\n")
        sys.exit(NONE)
    note_doubled(found, arguments)
    if mode == "list":
        with os.fdopen(output, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.writelines(f"{name}\n" for name in dict.fromkeys(found))


def run_script(script: str, arguments: list[str]) -> None:
    """Run the script as with `python SCRIPT`."""
    sys.argv[:] = [script, *arguments]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.realpath(script))
    if not os.path.isfile(script):
        sys.exit(f"there is no script {script}")
    try:
        runpy.run_path(script, run_name="__main__")
    except Exception:  # noqa: BLE001 (the script's own)
        traceback.print_exc()
        # pyperf says the same of a worker, and the file has benchmarks from before.
        sys.exit(f"{script} failed with exit code 1")


def note_doubled(found: list[str], arguments: list[str]) -> None:
    """Write the names that occur twice beside pyperf's file, if it writes one."""
    places = [word[len(OUTPUT) :] for word in arguments if word.startswith(OUTPUT)]
    doubled = sorted({name for name in found if found.count(name) > 1})
    if places and doubled:
        with open(os.path.join(os.path.dirname(places[0]), DOUBLED), "w", encoding="utf-8") as stream:
            json.dump(doubled, stream)


def own_arguments(arguments: list[str]) -> tuple[list[str], dict[str, Any]]:
    """Take the last argument away, if it is for this driver; return the names to run, and the settings to trace."""
    if arguments and arguments[-1].startswith(CHOSEN):
        return json.loads(arguments.pop()[len(CHOSEN) :]), {}
    if arguments and arguments[-1].startswith(SETTINGS):
        with open(arguments.pop()[len(SETTINGS) :], encoding="utf-8") as stream:
            settings = json.load(stream)
        return settings["benchmarks"], settings
    return [], {}


def choose(runner: Any, wanted: list[str], runs: Callable[[Any, Any], Any] | None) -> list[str]:
    """Make every Runner skip all benchmarks but the wanted ones, if any, and run those by ``runs``, if it is set.

    Return a list that gets the names of all.
    """
    found: list[str] = []

    def chosen(self: Any, task: Any) -> Any:
        is_second = task.name in found
        # pyperf itself would end at a second one, but some suites have hundreds of benchmarks and a few such names.
        found.append(task.name)
        self.parse_args()
        if runs and not is_second and (not wanted or task.name in wanted):
            return runs(self, task)
        self._worker_task += 1
        return None

    runner._main = chosen  # noqa: SLF001
    return found


def work_here(runner: Any) -> None:
    """Make every Runner say that this is a worker: some scripts then set up more."""
    original = runner.parse_args

    def parse_args(self: Any, args: Any = None) -> Any:
        parsed = original(self, args)
        parsed.worker = True
        return parsed

    runner.parse_args = parse_args


def brief(runner: Any, task: Any) -> Any:
    """Run one benchmark in a fork, and add its values to pyperf's file."""
    import pyperf

    with tempfile.TemporaryDirectory(dir=os.path.dirname(runner.args.output) or None) as folder:
        path = os.path.join(folder, "run.json")
        status = in_fork(lambda: measure(runner.args, task).dump(path))
        if status:
            sys.exit(f"{task.name} failed with exit code {status}")
        measured = pyperf.Benchmark.load(path)
    runner._display_result(measured, checks=False)  # noqa: SLF001
    runner._worker_task += 1  # noqa: SLF001
    return measured


def here(runner: Any, task: Any) -> None:
    """Run one benchmark in this process."""
    measure(runner.args, task)
    runner._worker_task += 1  # noqa: SLF001


def in_fork(work: Callable[[], Any], fork: Callable[[], int] = os.fork) -> int:
    """Do work in a fork of this process; return its exit status, negative for a signal."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = fork()
    if child == 0:
        beside("forks").finish(work)
    _, status = os.waitpid(child, 0)
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)


def measure(args: Any, task: Any) -> Any:
    """Find the number of loops of a benchmark, and take its values, as two of pyperf's workers do."""
    import pyperf

    clocks = beside("clocks")
    taken: list[Any] = []
    function = task.task_func

    def timed(task: Any, loops: int) -> Any:
        elapsed = function(task, loops)
        taken.append(elapsed / (loops * (task.inner_loops or 1)))
        return elapsed

    task.task_func = timed
    use_timer(clocks.Clocks().read)
    warmups, values = args.warmups, args.values
    if not args.loops:
        # Only the last value counts, since the number of loops is doubled until one takes long enough.
        args.calibrate_loops, args.warmups, args.values = 1, 0, 1
        task.create_run()
    args.calibrate_loops, args.warmups, args.values = 0, warmups, values
    facts = task.collect_metadata

    def with_clocks() -> dict[str, Any]:
        parts = clocks.parts(taken[-values:])
        return {**facts(), **{f"perfflow_{clock}": json.dumps(times) for clock, times in parts.items()}}

    task.collect_metadata = with_clocks
    return pyperf.Benchmark((task.create_run(),))


def use_timer(timer: Callable[[], Any]) -> None:
    """Let pyperf time its benchmarks by a timer; a script's own functions keep theirs."""
    import pyperf._runner  # type: ignore[import-untyped]
    import pyperf._timeit  # type: ignore[import-untyped]

    clock = SimpleNamespace(**vars(time))
    clock.perf_counter = timer
    pyperf._runner.time = pyperf._timeit.time = clock  # noqa: SLF001


class Tracer:
    """Runs each benchmark a few times in a fork, and records what it executes and reads.

    Each starts from the state that the script has then, so what another one does first, such as filling a cache, is not
    hidden from it.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.recorder = beside("python_trace").Recorder(settings)
        self.out = settings["out"]
        self.common: Any = None
        self.done: list[str] = []

    def trace(self, runner: Any, task: Any) -> None:
        """Record one benchmark; one that fails has no record."""
        if self.common is None:
            self.common = self.recorder.record()
            self.recorder.codes.clear()
        path = self._path_of(len(self.done))
        if in_fork(lambda: self.follow(task, path), self.recorder.fork) == 0:
            self.done.append(task.name)
        runner._worker_task += 1  # noqa: SLF001

    def _path_of(self, number: int) -> str:
        return os.path.join(self.out, f"record-{number}")

    def follow(self, task: Any, path: str) -> None:
        """Run a benchmark with two numbers of loops, and write its record."""
        self.recorder.begin_part()
        self.recorder.repeat(lambda loops: task.task_func(task, loops))
        gc.collect()
        with open(path, "w", encoding="utf-8") as stream:
            json.dump(self.recorder.record(), stream)

    def __enter__(self) -> None:
        """Begin to record."""
        self.recorder.start()

    def __exit__(self, *_: object) -> None:
        """Join the records of all benchmarks; before, it would look as if the script read them."""
        records = {}
        for number, name in enumerate(self.done):
            with open(self._path_of(number), encoding="utf-8") as stream:
                records[name] = json.load(stream)
            os.unlink(self._path_of(number))
        with open(os.path.join(self.out, "0.json"), "w", encoding="utf-8") as stream:
            json.dump({"common": self.common, "benchmarks": records}, stream)


def beside(name: str) -> Any:
    """Import a file beside this one, which is not on sys.path."""
    module = ModuleType(name)
    module.__file__ = os.path.join(os.path.dirname(__file__), f"{name}.py")
    SourceFileLoader(name, module.__file__).exec_module(module)
    return module


if __name__ == "__main__":
    main()
