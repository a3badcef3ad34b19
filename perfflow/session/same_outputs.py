"""Compare the printed output of programs, and the files that they write, with the expected ones, run by run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from perfflow.execute.invoke import Failure, written
from perfflow.execute.prepare import PreparationError, Ready
from perfflow.execute.schedule import StepRun
from perfflow.model.readings import Side
from perfflow.plan.plan import Planned
from perfflow.session.own_code import run_check
from perfflow.session.session import RunSession
from perfflow.tools.regular_files import TooLargeError, read
from perfflow.tools.shell.same_output import BASELINE, RUNS, STDOUT, SameOutputOptions, difference

MOST_COMPARED = 256 * 2**20
"""Most bytes of one output, or of one file, that are compared."""
_PRINTED = ""
"""Key of standard output among the names of files."""


def same_outputs(session: RunSession, planned: Planned, run: StepRun) -> str:
    """Run each side the required number of times and compare every output with the expected one. Raises Failure."""
    expected: dict[str, bytes] = {}
    compared, against = 0, "the baseline's"
    for side in session.sides_of(planned):
        number, wanted = 0, 1
        while number < wanted:
            prepared = session.prepare(planned, side, run)
            options = _options(prepared)
            if not expected and options.expected != BASELINE:
                expected[_PRINTED], against = _content(prepared.cwd / options.expected), options.expected
            is_judged = side is Side.CANDIDATE or options.expected != BASELINE
            number, wanted = number + 1, options.runs or (RUNS if is_judged else 1)
            actual = _outputs(session, prepared, run, options)
            compared += _compare(expected, actual, side, options)
            expected = {**actual, **expected}
    if not compared:
        raise PreparationError("nothing to compare: set `expected: FILE`, `runs: 2` or more, or a candidate")
    return f"{compared} output{'s' if compared > 1 else ''} the same as {against}"


def _options(prepared: Ready) -> SameOutputOptions:
    options = prepared.call.options if prepared.call else None
    if not isinstance(options, SameOutputOptions):
        raise PreparationError("same-output has no options")
    return options


def _content(path: Path) -> bytes:
    try:
        return read(path, MOST_COMPARED)
    except OSError as error:
        raise PreparationError(f"expected output {path}: {error.strerror}") from error


def _left(path: Path, side: Side) -> bytes:
    try:
        return read(path, MOST_COMPARED)
    except OSError as error:
        hint = "compare less, such as a checksum" if isinstance(error, TooLargeError) else "does it still exist?"
        raise Failure(f"{side.value}: cannot compare {path.name}: {error.strerror}; {hint}", exit_code=0) from error


def _outputs(session: RunSession, prepared: Ready, run: StepRun, options: SameOutputOptions) -> dict[str, bytes]:
    """Run the command once; return its output and the files. Raises Failure, also for a file that it did not write."""
    files = {name: prepared.cwd / name for name in options.named_files}
    before = {name: written(path) for name, path in files.items()}
    run_check(prepared, run, partial(session.start, run=run))
    run.exit_code = 0
    found = {_PRINTED: _left(session.folder_of(prepared.planned, prepared.side) / STDOUT, prepared.side)}
    for name, path in files.items():
        if written(path) in (before[name], None):
            raise Failure(f"{prepared.side.value}: the command did not write {name}", exit_code=0)
        found[name] = _left(path, prepared.side)
    return found


def _compare(
    expected: Mapping[str, bytes], actual: Mapping[str, bytes], side: Side, options: SameOutputOptions
) -> bool:
    """Return whether there was an expected output to compare with. Raises Failure at the first difference."""
    for name, content in actual.items():
        if name not in expected:
            continue
        what = f"{name}: " if name else ""
        found = difference(expected[name], content, *options.allowed)
        if found:
            raise Failure(f"{side.value}: {what}{found}", exit_code=0)
        # A command that is compared by its files may print nothing.
        if not content and not options.allow_empty and (name or not options.files):
            reason = "both outputs are empty, so the comparison proves nothing"
            remedy = "print a result, list the files that it is written to under `files`, or set `allow-empty: true`"
            raise Failure(f"{side.value}: {what}{reason}; {remedy}", exit_code=0)
    return any(name in expected for name in actual)
