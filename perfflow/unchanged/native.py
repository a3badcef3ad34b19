"""Trace what a program of any kind executes and reads, by the tracer ``drivers/trace.c``."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from platformdirs import user_cache_path

from perfflow.execute import invoke
from perfflow.execute.child import Spawner, StartError, ending
from perfflow.execute.invoke import Failure
from perfflow.execute.prepare import ReadyProcess
from perfflow.machine.private_folder import private_folder
from perfflow.model.errors import UserError
from perfflow.tools.adapter import Call, Invocation
from perfflow.tools.tool_files import last_words
from perfflow.unchanged.model import BenchmarkTrace
from perfflow.unchanged.recorded import RecordedProgram, addresses, merged, trace_of

DRIVER = Path(__file__).parent / "drivers" / "trace.c"
_BUILD = "(build)"
"""How paths in the build folder of a side begin, which lies beside its tree."""
_RECORDS = "traced-"
_CANNOT_TRACE = 125
# A discriminator may follow the line; unknown places are ??:0 or ??:?.
_PLACE = re.compile(r"(?P<file>[^?].*):(?P<line>[1-9]\d*)(?: |$)")
_PATIENCE = 60.0


def trace(spawner: Spawner, ready: ReadyProcess, folder: Path) -> BenchmarkTrace:
    """Run a prepared call under the tracer and return what it executed and read.

    It runs as it does when it is timed, so it enters what timed runs enter. Whatever hinders tracing is in ``unknown``.
    folder: exists; the call's own.

    Raises Failure if the program itself fails, or if its output does not show that the benchmark ran.
    """
    roots = _roots(ready)
    try:
        tracer = compiled(spawner, ready.env)
        invoke.run(spawner, _traced(ready, tracer, roots, folder), folder)
    except (UserError, OSError) as error:
        return BenchmarkTrace(unknown=(f"it cannot be traced: {error}",))
    except Failure as failure:
        if failure.exit_code == _CANNOT_TRACE:
            return BenchmarkTrace(unknown=(f"it cannot be traced: {last_words(folder)}",))
        raise
    records = sorted(folder.glob(f"{_RECORDS}*"))
    return merged(trace_of(RecordedProgram.read(path.read_bytes()), roots) for path in records)


Lines = dict[str, set[int]]
"""Lines by file, relative to the tree."""


def executed_lines(spawner: Spawner, ready: ReadyProcess, folder: Path) -> tuple[Lines, Lines]:
    """Return the source lines of the functions that a traced call entered, and those of all functions of its programs.

    All lines of a function count, and those that are inlined into it. Programs without debug information have none.
    folder: as it was passed to ``trace``.

    Raises Failure if addr2line is missing or fails.
    """
    executed: Lines = {}
    known: Lines = {}
    for records in sorted(folder.glob(f"{_RECORDS}*")):
        for path, entered in RecordedProgram.read(records.read_bytes()).entered.items():
            for lines_of, places in ((executed, addresses(path, entered)), (known, addresses(path))):
                for name, line in _lines(spawner, ready, folder, path, places) if places else ():
                    lines_of.setdefault(name, set()).add(line)
    return executed, known


def _lines(
    spawner: Spawner, ready: ReadyProcess, folder: Path, path: str, places: Iterable[int]
) -> Iterator[tuple[str, int]]:
    """Yield (file, line) of instructions of a program, by their addresses."""
    (folder / "addresses").write_text("\n".join(f"{at:#x}" for at in places))
    # -i: also the places from which code was inlined.
    argv = ("addr2line", "-i", "-e", path, f"@{folder / 'addresses'}")
    out, log = folder / "lines", folder / "addr2line.log"
    try:
        done = spawner.run(argv, env=ready.env, cwd=ready.cwd, stdout=out, stderr=log, timeout=_PATIENCE)
    except StartError as error:
        raise Failure(str(error)) from error
    if done.status:
        raise Failure(f"addr2line {ending(done.status)}", exit_code=done.status, log=log)
    roots = _roots(ready)
    for text in dict.fromkeys(out.read_text("utf-8", "replace").splitlines()):
        if match := _PLACE.match(text):
            place = Path(os.path.normpath(ready.cwd / match["file"]))
            for root in roots:
                if place.is_relative_to(root):
                    yield str(place.relative_to(root)), int(match["line"])


def _roots(ready: ReadyProcess) -> dict[Path, str]:
    """Return the folders whose files count, with the beginning of their paths in a trace."""
    # A tool that builds its programs keeps them in the folder of the run.
    kept = {ready.call.kept.resolve(): _BUILD} if ready.call and ready.call.kept else {}
    if ready.slot is None:
        return {ready.cwd.resolve(): "", **kept}
    return {ready.slot.path.resolve(): "", ready.slot.build.resolve(): _BUILD, **kept}


def _traced(ready: ReadyProcess, tracer: Path, roots: Mapping[Path, str], folder: Path) -> ReadyProcess:
    """Return the call with each of its processes under the tracer."""

    def words(number: int, argv: tuple[str, ...]) -> tuple[str, ...]:
        return (str(tracer), str(folder / f"{_RECORDS}{number}"), *map(str, roots), "--", *argv)

    for old in folder.glob(f"{_RECORDS}*"):
        old.unlink()
    return under(ready, words)


def under(ready: ReadyProcess, words: Callable[[int, tuple[str, ...]], tuple[str, ...]]) -> ReadyProcess:
    """Return the call with another command line for each of its processes, which ``words`` gives by number and argv."""

    def invocations(call: Call) -> tuple[Invocation, ...]:
        processes = tool.invocations(call) if tool else ()
        return tuple(replace(item, argv=words(number, item.argv)) for number, item in enumerate(processes))

    tool = ready.tool
    if tool is None:
        return replace(ready, argv=words(0, ready.argv))
    return replace(ready, tool=replace(tool, invocations=invocations))


def compiled(spawner: Spawner, env: Mapping[str, str]) -> Path:
    """Return the tracer, which is compiled once on a machine. Raises OSError and UserError."""
    name = f"trace-{hashlib.sha256(DRIVER.read_bytes()).hexdigest()[:16]}-{os.uname().machine}"
    path = private_folder(user_cache_path("perfflow") / "tracer") / name
    if path.exists():
        return path
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / name
        argv = ("cc", "-O2", "-o", str(made), str(DRIVER))
        try:
            done = spawner.run(argv, env=env, cwd=path.parent, stderr=Path(folder) / "stderr", timeout=_PATIENCE)
        except StartError as error:
            raise OSError(str(error)) from error
        if done.status:
            raise OSError(f"cc: {last_words(Path(folder))}")
        made.replace(path)
    return path
