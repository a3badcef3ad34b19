"""Perform steps whose result is a pass or a failure: correctness steps, and steps that run a command.

- ``check`` performs a correctness step: it compares outputs, asserts figures, or checks an exit status.
- ``acceptable`` applies the rules of a benchmark's checks to the output of a measured process.
- ``same_outputs`` compares the printed output of programs, and the files that they write, with the expected ones, run
  by run.
- ``work`` and ``command`` run commands: build, setup, and other steps whose result is an exit status.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from perfflow.execute import invoke
from perfflow.execute.invoke import Failure, require_there, written
from perfflow.execute.prepare import BASH, PreparationError, ReadyProcess, ready
from perfflow.execute.schedule import UNABLE, StepRun, StepStatus
from perfflow.model.readings import Reading, Side
from perfflow.model.units import format_quantity, parse_requirement
from perfflow.plan.plan import Planned
from perfflow.session.bench import read_figures
from perfflow.session.own_code import run_check
from perfflow.session.recorded_links import with_links_recorded
from perfflow.session.session import RunSession
from perfflow.tools.adapter import Role
from perfflow.tools.passed_tests import passed_tests
from perfflow.tools.regular_files import NotRegularError, TooLargeError, read
from perfflow.tools.shell import same_output
from perfflow.tools.shell.same_output import BASELINE, RUNS, STDOUT, SameOutputOptions, difference
from perfflow.tools.tool_files import last_line, last_words
from perfflow.workflow.model import OUTPUT_VARIABLE


def check(session: RunSession, planned: Planned, run: StepRun) -> None:
    """Perform a correctness step."""
    if planned.tool:
        of_tool = same_outputs if planned.tool.name == same_output.ADAPTER.name else _by_tool
        run.detail = of_tool(session, planned, run)
        return
    if planned.step.assert_ is None or planned.step.parse is None:
        work(session, planned, run)
        if session.context.slot:
            # Now, since long output is cut when the step ends.
            run.passed_tests = passed_tests(b"\n".join(_printed(session.folder.step(planned.id))))
        return
    before = written(session.parsed_file(planned, Side.BASELINE))
    folder = command(session, planned, run)
    prepared = ready(session.context, planned, Side.BASELINE, folder)
    readings = read_figures(planned.step.parse, folder / "stdout", prepared.cwd, before, prepared.timeout)
    run.detail = _assert_figures(session, planned.step.assert_, readings)


def _printed(folder: Path) -> Iterator[bytes]:
    for name in ("stdout", "stderr"):
        with contextlib.suppress(OSError):
            yield read(folder / name, MOST_COMPARED)


def _by_tool(session: RunSession, planned: Planned, run: StepRun) -> str:
    """Run a checking tool once per side. It passes if its adapter finds no error and its figures meet ``assert``."""
    said = []
    for side in session.sides_of(planned):
        invoked = run_check(session.prepare(planned, side, run), run, partial(session.start, run=run))
        run.exit_code = invoked.exit_code
        run.warnings += [f"{side.value}: {text}" for text in invoked.parsed.warnings]
        required = planned.step.declared.source.assert_ if planned.step.declared else None
        found = _assert_figures(session, required or {}, invoked.parsed.readings)
        said.append(f"{side.value}: {found or f'exit status {invoked.exit_code}'}")
    return "; ".join(said)


def _assert_figures(session: RunSession, required: Mapping[str, Any], readings: tuple[Reading, ...]) -> str:
    """Compare parsed figures with the requirements of ``assert``. Raises Failure at the first violation."""
    texts = []
    for name, text in required.items():
        metric = session.context.plan.criteria.metric(name)
        requirement = parse_requirement(text, metric.dimension)
        values = [item for item in readings if item.metric == name]
        if not values:
            raise Failure(f"the output has no `{name}`", exit_code=0)
        for item in values:
            ends = [item.inner.get("max", item.value), item.inner.get("min", item.value)]
            failing = [value for value in ends if not requirement.holds_at(value)]
            worst = format_quantity((failing or ends)[0], metric.dimension, unit=requirement.unit)
            what = f"{name} of {item.benchmark}" if item.benchmark else name
            if failing:
                raise Failure(f"{what} is {worst}, required {requirement.text}", exit_code=0)
            texts.append(f"{what} = {worst}, required {requirement.text}")
    return "; ".join(texts)


MOST_COMPARED = 256 * 2**20
"""Most bytes of one output, or of one file, that are compared."""
_PRINTED = ""
"""Key of standard output among the names of files."""


def same_outputs(session: RunSession, planned: Planned, run: StepRun) -> str:
    """Run each side the required number of times and compare every output with the expected one. Raises Failure."""
    expected: dict[str, bytes] = {}
    sides = session.sides_of(planned)
    compared, judged, against = 0, 0, "the baseline's"
    for side in sides:
        number, runs = 0, 1
        while number < runs:
            prepared = session.prepare(planned, side, run)
            options = _options(prepared)
            if not expected and options.expected != BASELINE:
                expected[_PRINTED], against = _content(prepared.cwd / options.expected), options.expected
            is_judged = side is Side.CANDIDATE or options.expected != BASELINE or bool(options.check)
            # With nothing else to compare with, the program must at least agree with itself.
            number, runs = number + 1, options.runs or (RUNS if is_judged else 1 if len(sides) > 1 else 2)
            actual = _outputs(session, prepared, run, options)
            compared += _compare(expected, actual, side, options)
            if fault := _fault(session, planned, options, actual[_PRINTED]):
                raise Failure(f"{side.value}: {fault}", exit_code=0)
            judged += bool(options.check)
            expected = {**actual, **expected}
    if not compared and not judged:
        raise PreparationError("nothing to compare: set `expected: FILE`, `runs: 2` or more, or a candidate")
    same = f"{_outputs_of(compared)} the same as {against}" if compared else ""
    return "; ".join(filter(None, (same, f"{_outputs_of(judged)} right by `check`" if judged else "")))


def _outputs_of(number: int) -> str:
    return f"{number} output{'s' if number > 1 else ''}"


def acceptable(session: RunSession, planned: Planned, expected: bytes, actual: bytes) -> str:
    """Return how the output of a measuring step differs from what the workflow accepts; '' if it is acceptable.

    The rules are those of the same-output steps of the benchmark: a tolerance, or a command that judges the output.
    Without such a step, the output must equal the ``expected`` one. Raises PreparationError, and Failure if the command
    cannot be started.
    """
    rules = [
        item
        for item in session.context.plan.steps
        if item.watches == planned.id and item.tool and item.tool.name == same_output.ADAPTER.name
    ]
    for item in rules:
        folder = session.folder_of(item, Side.BASELINE)
        options = _options(ready(session.tree_context_of(Side.BASELINE), item, Side.BASELINE, folder))
        differing = difference(expected, actual, *options.allowed) if options.compares else ""
        if found := differing or _fault(session, item, options, actual):
            return found
    return "" if rules else difference(expected, actual)


_JUDGED = "output"


def _fault(session: RunSession, planned: Planned, options: SameOutputOptions, output: bytes) -> str:
    """Return what the command of ``check`` says against an output, '' if it finds it right. Raises Failure."""
    if not options.check:
        return ""
    folder = session.folder_of(planned, Side.BASELINE) / "check"
    folder.mkdir(exist_ok=True)
    (folder / _JUDGED).write_bytes(output)
    # The script of the baseline: a candidate must not judge itself.
    base = ready(session.tree_context_of(Side.BASELINE), planned, Side.BASELINE, folder)
    argv = (*BASH, f'exec < "$0"; {options.check}', str(folder / _JUDGED))
    try:
        invoke.run(session.spawner(), replace(base, argv=argv, tool=None, call=None, first=()), folder)
    except Failure as failure:
        if not failure.exit_code:
            raise
        said = last_line("\n".join(invoke.tail(folder / STDOUT))) or last_words(folder)
        return f"`check` exited with {failure.exit_code}{f': {said}' if said else ''}"
    return ""


def _options(prepared: ReadyProcess) -> SameOutputOptions:
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


def _outputs(session: RunSession, prepared: ReadyProcess, run: StepRun, options: SameOutputOptions) -> dict[str, bytes]:
    """Run the command once; return its output and the files. Raises Failure, also for a file that it did not write."""
    files = {name: prepared.cwd / name for name in options.named_files}
    before = {name: written(path) for name, path in files.items()}
    run_check(prepared, run, partial(session.start, run=run))
    run.exit_code = 0
    outputs = {_PRINTED: _left(session.folder_of(prepared.planned, prepared.side) / STDOUT, prepared.side)}
    for name, path in files.items():
        if written(path) in (before[name], None):
            raise Failure(f"{prepared.side.value}: the command did not write {name}", exit_code=0)
        outputs[name] = _left(path, prepared.side)
    return outputs


def _compare(
    expected: Mapping[str, bytes], actual: Mapping[str, bytes], side: Side, options: SameOutputOptions
) -> bool:
    """Return whether there was an expected output to compare with. Raises Failure at the first difference."""
    for name, content in actual.items():
        if name not in expected or (name == _PRINTED and not options.compares):
            continue
        what = f"{name}: " if name else ""
        differing = difference(expected[name], content, *options.allowed)
        if differing:
            raise Failure(f"{side.value}: {what}{differing}", exit_code=0)
        # A command that is compared by its files may print nothing.
        if not content and not options.allow_empty and (name or not options.files):
            reason = "both outputs are empty, so the comparison proves nothing"
            remedy = "print a result, list the files that it is written to under `files`, or set `allow-empty: true`"
            raise Failure(f"{side.value}: {what}{reason}; {remedy}", exit_code=0)
    return any(name in expected and (name != _PRINTED or options.compares) for name in actual)


MOST_OUTPUTS = 2**20
"""Size limit of that file in bytes."""


def work(session: RunSession, planned: Planned, run: StepRun) -> None:
    """Run a command whose result is its exit status, and retry it up to ``retries`` times. Raises Failure."""
    for attempt in range((planned.step.retries or 0) + 1):
        try:
            command(session, planned, run)
        except Failure as failure:
            if failure.exit_code == UNABLE and planned.stage == "setup":
                _skip(run, failure)
                return
            if attempt == (planned.step.retries or 0):
                raise
            run.warnings.append(f"try {attempt + 1} failed: {failure.reason}")
        else:
            return


def _skip(run: StepRun, failure: Failure) -> None:
    """Mark the step as skipped, which blocks all later steps. The reason is the last line it printed."""
    said = last_line("\n".join(invoke.tail(failure.log)))
    run.status, run.exit_code = StepStatus.SKIPPED, failure.exit_code
    run.reason = said or f"step {run.planned.id} exited with {UNABLE} (unable to run here)"
    run.blocked = True


def command(session: RunSession, planned: Planned, run: StepRun) -> Path:
    """Run a command step, read its outputs, and return the folder with its standard output. Raises Failure."""
    folder = session.folder.step(planned.id)
    outputs = f"{folder}{os.sep}outputs"
    # The command creates this file if it has outputs. Creating it for every step is a quarter of perfflow's overhead.
    if os.access(outputs, os.F_OK):
        os.unlink(outputs)  # noqa: PTH108 (a Path for each step costs more than the call)
    prepared = ready(session.context, planned, Side.BASELINE, folder, variables={OUTPUT_VARIABLE: outputs})
    if planned.role is Role.WORK:
        prepared = with_links_recorded(session.context, prepared)
    run.argv = list(prepared.shown)
    run.log = session.log_in(folder, "stderr" if prepared.tool else "stdout")
    invoked = run_check(prepared, run, partial(invoke.run, session.spawner(), folder=folder))
    run.exit_code = invoked.exit_code
    run.warnings += [text for text in invoked.parsed.warnings if text not in run.warnings]
    results = {**dict(read_outputs(outputs)), **_results(prepared, folder)}
    session.context.outputs[planned.id] = run.outputs = results
    return folder


def _results(prepared: ReadyProcess, folder: Path) -> Mapping[str, str]:
    """Return the outputs of a step's tool for later steps. Raises Failure if one of its files is missing."""
    if not prepared.tool or not prepared.call:
        return {}
    with invoke.adapter_failures(prepared.tool, 0, folder / "stderr"):
        for path in prepared.tool.build.made(prepared.call):
            require_there(path, folder / "stderr", prepared.tool.name)
        return prepared.tool.build.results(prepared.call)


def read_outputs(path: str) -> Iterator[tuple[str, str]]:
    """Yield the (name, value) pairs that a command wrote to its file of outputs. Raises Failure."""
    if not os.access(path, os.F_OK):
        return
    try:
        if stat.S_ISLNK(os.lstat(path).st_mode):
            raise NotRegularError(errno.EINVAL, "a link, not a file")
        data = read(Path(path), MOST_OUTPUTS)
    except FileNotFoundError:
        return
    except OSError as error:
        hint = f"append at most {MOST_OUTPUTS >> 20} MiB of name=value lines to the file"
        raise Failure(f"${OUTPUT_VARIABLE}: {error.strerror}; {hint}", exit_code=0) from error
    for line in data.decode("utf-8", "replace").splitlines():
        name, equals, value = line.partition("=")
        if equals and name.strip():
            yield name.strip(), value
