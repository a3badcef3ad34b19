"""Details of a failed step: its command, how it ended, its last output, its log, and how to repeat it."""

from __future__ import annotations

import os
import re
import shlex
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from perfflow.execute.schedule import StepRun, StepStatus
from perfflow.model.result import Optimization
from perfflow.plan.plan import Planned
from perfflow.report.sanitize import NO_EDGE, visible, wrapped

MOST_COMMAND_LINES = 12
_OUTPUTS = re.compile(r"\bsteps(?:\.|\[\\?[\"'])([\w.\[\]=,-]+?)(?:\\?[\"']\])?\.outputs\b")


def failure_block(
    run: StepRun, folder: Path, steps: Mapping[str, Planned], typed: Sequence[str], width: int = NO_EDGE
) -> list[str]:
    """Return lines about a failed step, or about a candidate rejected for a failure. Empty if no command was run.

    ``folder``: of the run. ``steps``: of the run, by id. ``typed``: the command line that started it. Output of
    programs is wrapped at ``width``. Commands and paths are not, so that users can copy them as one line.
    """
    if run.status not in (StepStatus.FAILED, StepStatus.TIMEOUT) or not (run.argv or run.log):
        return [line for item in run.found.optimizations for line in _rejected(item, folder, width)]
    argv = run.failing or run.argv
    lines = [*_command(argv), *_ending(run), *_said(run.tail, width)]
    if run.log and (folder / run.log).exists():  # a program that was not found wrote none
        lines.append(_log(folder / run.log))
    if typed and run.planned.id in steps:
        only = [word for name in _with_sources(run.planned, steps) for word in ("--only", name)]
        lines.append(f"    repeat: {visible(shlex.join([*typed, *only]))}")
    return lines


def _rejected(item: Optimization, folder: Path, width: int) -> list[str]:
    """Return the output of a candidate that failed and was rejected. Empty for other candidates."""
    if item.decision != "rejected" or not item.log:
        return []
    heading = f"    {visible(item.id)}: {visible(item.reason)}"
    return [heading, *_said(item.tail, width), _log(folder / item.log)]


def _said(tail: Sequence[str], width: int) -> list[str]:
    return [line for text in tail for line in wrapped(f"    | {visible(text)}", width, "      ")]


def _log(path: Path) -> str:
    return f"    log:    {visible(_shown(path))}"


def _command(argv: Sequence[str]) -> list[str]:
    """Return a command as shell text. Line breaks inside it are kept, since they are part of the syntax."""
    # A YAML block ends with a line break that is not part of the command.
    lines = shlex.join([*argv[:-1], argv[-1].rstrip("\n")]).split("\n") if argv else []
    shown = [f"    {'$' if number == 0 else '>'} {visible(line)}" for number, line in enumerate(lines)]
    if len(shown) <= MOST_COMMAND_LINES:
        return shown
    left = len(shown) - MOST_COMMAND_LINES + 1
    return [*shown[: MOST_COMMAND_LINES - 1], f"    > ({left} more lines)"]


def _ending(run: StepRun) -> list[str]:
    if run.status is StepStatus.TIMEOUT:
        return ["    ended after its time limit"]
    if run.exit_code is None:
        return []
    if run.exit_code >= 0:
        return [f"    exit status {run.exit_code}"]
    try:
        name = f" ({signal.Signals(-run.exit_code).name})"
    except ValueError:  # a real-time signal
        name = ""
    return [f"    killed by signal {-run.exit_code}{name}"]


def _shown(path: Path) -> str:
    """Return a path that can be opened from the current folder, relative if it is inside it."""
    here = Path.cwd()
    return os.fspath(path.relative_to(here) if path.is_relative_to(here) else path)


def _with_sources(planned: Planned, steps: Mapping[str, Planned]) -> list[str]:
    """Return the step, preceded by the steps whose outputs it uses."""
    names, waiting = [planned.id], [planned]
    while waiting:
        step = waiting.pop()
        watched = steps.get(step.watches)
        texts = [one.step.model_dump_json() for one in (step, watched) if one]
        for name in (name for text in texts for name in _OUTPUTS.findall(text)):
            if name not in names:
                names.insert(0, name)
                waiting += [steps[name]] if name in steps else []
    return names
