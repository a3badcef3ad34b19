"""Render a planned step for one side into the processes to start."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from perfflow.execute import programs
from perfflow.execute.child import PIPE, find_program
from perfflow.execute.context import TreeContext, compares_cells, note_lock, variables_of
from perfflow.model.errors import StepError
from perfflow.model.readings import Side
from perfflow.model.units import UnitError, duration
from perfflow.plan.plan import Planned
from perfflow.tools.adapter import THE_COMMAND, Adapter, Call, Effort, Invocation, Options
from perfflow.trees.slots import Slot
from perfflow.workflow.expression_text import ExpressionError
from perfflow.workflow.expressions import needs_shell, render, render_shell, render_words
from perfflow.workflow.model import Step
from perfflow.workflow.shell_syntax import BASH_READS_RAW

HASH_SEED = "PYTHONHASHSEED"
BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")


PREPARE = "prepare"
"""The key of a step with commands that run before every sample."""
DISCARD = "discard"
"""Value of a step's ``stdout`` for /dev/null, the default."""


class PreparationError(StepError):
    """A step cannot be started as written: for example, a template fails or an option has the wrong type."""


class NoFolderError(PreparationError):
    """The working directory of a step is missing in its tree."""


@dataclass(frozen=True)
class Ready:
    """One process of a step on one side or, with ``tool``, one call of an adapter."""

    planned: Planned
    side: Side
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    timeout: float | None
    tool: Adapter | None = None
    call: Call | None = None
    ops: int | None = None
    slot: Slot | None = None
    """The slot whose tree it runs in; None for the user's own tree."""
    shell_text: str = ""
    """The text that a shell runs; '' for a command without a shell."""
    first: tuple[Invocation, ...] = ()
    """The processes of ``prepare``, which run before the others and are not timed."""

    @property
    def shown(self) -> tuple[str, ...]:
        """The argv to show in results and dry runs."""
        try:
            return self.invocations()[0].argv
        except StepError:
            # A command that the tool cannot run is an error only when it is started. Until then, show the command that
            # builds it, or else the command as written.
            with suppress(StepError):
                first = self.tool.preparations(self.call) if self.tool and self.call else ()
                return first[0].argv if first else self.argv
            return self.argv

    def invocations(self) -> tuple[Invocation, ...]:
        """The processes to start, in order."""
        return self.tool.invocations(self.call) if self.tool and self.call else (Invocation(self.argv, {}, "stdout"),)


def sides_of(context: TreeContext, planned: Planned) -> tuple[Side, ...]:
    """Return both sides if the step, or the step it watches, compares two commands, settings, variants or cells."""
    source = context.plan.by_id[planned.watches] if planned.watches else planned
    two = source.step.candidate or source.step.variants or planned.step.candidate or planned.step.variants
    cells = source.against and compares_cells(context)
    return (Side.BASELINE, Side.CANDIDATE) if two or cells else (Side.BASELINE,)


def ready(
    context: TreeContext,
    planned: Planned,
    side: Side,
    folder: Path,
    ops: int | None = None,
    chosen: tuple[str, ...] = (),
    variables: Mapping[str, str] | None = None,
) -> Ready:
    """Render a step for one side. ``chosen`` limits a suite to these benchmarks, run briefly.

    ``variables``: further environment variables of its processes. Raises PreparationError.
    """
    try:
        prepared = _ready(context, planned, side, folder, ops, variables or {})
    except (ExpressionError, UnitError) as error:
        raise PreparationError(str(error)) from error
    if chosen and prepared.call:
        return replace(prepared, call=replace(prepared.call, chosen=chosen, effort=Effort.BRIEF))
    return prepared


def of_several(prepared: Ready, chosen: tuple[str, ...]) -> Ready:
    """Return the call of one benchmark of a suite as one of several, which together have the time of each."""
    if len(chosen) < 2 or prepared.call is None:
        return prepared
    timeout = prepared.timeout * len(chosen) if prepared.timeout else None
    return replace(prepared, call=replace(prepared.call, chosen=chosen, timeout=timeout), timeout=timeout)


def _ready(
    context: TreeContext, planned: Planned, side: Side, folder: Path, ops: int | None, further: Mapping[str, str]
) -> Ready:
    variables = variables_of(context, planned, side, ops)
    env: dict[str, str] = variables["env"] | further
    cwd = _cwd(context, planned, variables)
    timeout = _timeout(context, planned, variables)
    if planned.tool and planned.tool.deterministic:
        # Counts of Python programs, such as instructions, repeat only with a fixed hash seed.
        env = {HASH_SEED: "0", **env}
    first = tuple(_preparations(context, planned, variables))
    if planned.tool is None:
        argv, text = _script(context, planned, side, variables)
        return Ready(planned, side, argv, env, cwd, timeout, ops=ops, slot=context.slot, shell_text=text, first=first)
    watched = _watched(context, planned, side, folder)
    if watched:
        env = {**watched.env, **{name: env[name] for name in planned.step.env}}
        note_lock(env, context, planned)
        cwd = cwd if planned.step.working_directory else watched.cwd
        first = first or watched.first
    call = _call(context, planned, side, folder, {**variables, "env": env}, cwd, watched)
    call = replace(call, timeout=timeout)
    if planned.tool.passes_stdout:
        own = _stdout(planned, side, variables, cwd)
        call = replace(call, stdout=watched.call.stdout if own is None and watched and watched.call else own or "")
    return Ready(
        planned, side, call.command, env, cwd, timeout, planned.tool, call, ops, context.slot, call.shell_text, first
    )


def _cwd(context: TreeContext, planned: Planned, variables: Mapping[str, Any]) -> Path:
    stage = context.plan.stage(planned.stage)
    defaults = context.plan.workflow.defaults
    text = planned.step.working_directory or stage.working_directory or defaults.working_directory or "."
    cwd = context.root if text == "." else context.root / str(render(text, variables))
    if not context.dry and not cwd.is_dir():
        raise NoFolderError(f"working-directory {text!r}: no such folder")
    return cwd


def _timeout(context: TreeContext, planned: Planned, variables: Mapping[str, Any]) -> float | None:
    text = planned.step.timeout or context.plan.stage(planned.stage).timeout or context.plan.workflow.defaults.timeout
    return duration(str(render(text, variables))) if text else None


def _script(
    context: TreeContext, planned: Planned, side: Side, variables: Mapping[str, Any]
) -> tuple[tuple[str, ...], str]:
    """Return the argv of a ``run`` or ``argv`` step, and its shell text. A candidate's command replaces it."""
    text = _written(planned.step, side)
    if isinstance(text, list):
        return tuple(_not_empty(render_words(text, variables))), ""
    if text is None:
        return ("true",), ""
    text = render_shell(text, variables)
    return (*_shell(context, planned), text), text


def _written(step: Step, side: Side) -> str | list[str] | None:
    """Return the text or words of a ``run`` or ``argv`` step. A candidate's command replaces it."""
    candidate = step.candidate if side is Side.CANDIDATE else None
    return candidate.command if candidate and candidate.command else step.argv or step.run


def _timed_command(
    context: TreeContext, planned: Planned, side: Side, variables: Mapping[str, Any]
) -> tuple[tuple[str, ...], str]:
    """Return the argv of a timed ``run`` or ``argv`` step, and its shell text.

    Text without shell syntax needs no shell, unless the author chose one that is not bash. If one side needs bash, both
    run in it: a shell starts a program in a little more time than the spawner does.
    """
    text, shell = _written(planned.step, side) or "", _shell(context, planned)
    if not isinstance(text, list) and (needs_shell(text) or not is_bash(shell)):
        text = render_shell(text, variables)
        return (*shell, text), text
    words = tuple(_not_empty(render_words(text, variables, BASH_READS_RAW)))
    both = [_written(planned.step, each) for each in Side]
    if not (is_bash(shell) and any(isinstance(other, str) and needs_shell(other) for other in both)):
        return words, ""
    return (*shell, shlex.join(words)), shlex.join(words)


def _preparations(context: TreeContext, planned: Planned, variables: Mapping[str, Any]) -> Iterator[Invocation]:
    """Yield the processes of ``prepare``."""
    given = planned.step.prepare or []
    for text in [given] if isinstance(given, str) else given:
        argv = (*_shell(context, planned), render_shell(text, variables))
        yield Invocation(argv, stdout=f"{PREPARE}.stdout", stderr=f"{PREPARE}.stderr")


def is_bash(argv: Sequence[str]) -> bool:
    """Return whether a command starts bash."""
    return os.path.basename(argv[0]) == BASH[0]  # noqa: PTH119 (called for each sample)


def _not_empty(words: list[str]) -> list[str]:
    if not words or not words[0]:
        raise PreparationError("the command is empty")
    return words


def _shell(context: TreeContext, planned: Planned) -> list[str]:
    """Return the words of a step's shell, with ``-c`` added if missing. Default: ``bash -eo pipefail``."""
    defaults = context.plan.workflow.defaults
    shell = planned.step.shell or context.plan.stage(planned.stage).shell or defaults.shell
    if not shell:
        return list(BASH)
    words = _not_empty(render_words(shell, {}))
    return words if words[-1] in ("-c", "/c") else [*words, "-c"]


def _call(
    context: TreeContext,
    planned: Planned,
    side: Side,
    folder: Path,
    variables: Mapping[str, Any],
    cwd: Path,
    watched: Ready | None,
) -> Call:
    step, tool = planned.step, planned.tool
    if tool is None:
        raise PreparationError(f"step `{planned.id}` uses no tool")
    values = dict(step.with_)
    candidate = step.candidate if side is Side.CANDIDATE else None
    if candidate:
        values |= candidate.with_ | ({"command": candidate.command} if candidate.command else {})
    # Split the command into words before rendering, so that a rendered value stays one word.
    command_text = values.pop("command", None)
    try:
        options = tool.read_options(render(values, variables))
    except ValidationError as error:
        first = error.errors()[0]
        raise PreparationError(
            f"with.{'.'.join(str(part) for part in first['loc'])}: {first['msg'].removeprefix('Value error, ')}"
        ) from error
    options = _in_this_tree(context, tool, options, cwd)
    command: tuple[str, ...] = ()
    shell_text = ""
    if step.timed:
        command, shell_text = _timed_command(context, planned, side, variables)
    elif command_text is None and watched:
        command = watched.argv
        shell_text = watched.call.shell_text if watched.call else ""
    elif isinstance(command_text, list) and getattr(options, "shell", False):
        raise PreparationError("with.command: `shell: true` takes one text, not a list of words")
    elif command_text is not None and getattr(options, "shell", False):
        shell_text = render_shell(str(command_text), variables)
        command = (*BASH, shell_text)
    elif command_text is not None:
        words = [str(word) for word in command_text] if isinstance(command_text, list) else str(command_text)
        command = tuple(_not_empty(render_words(words, variables)))
    path = variables["env"].get("PATH", os.defpath)
    own = tool.program
    program = (find_program(own.name, path, cwd) or programs.located(own, path) or own.name) if own else ""
    if command and not context.dry:
        command = (find_program(command[0], path, cwd) or command[0], *command[1:])
    # `prepared` lies beside the folders of the step's calls, which share it.
    kept = folder.parent / "prepared" / side.value
    return Call(options, folder, program, command, shell_text, planned.pattern, kept=kept)


def _in_this_tree(context: TreeContext, tool: Adapter, options: Options, cwd: Path) -> Options:
    """Return the options without files and targets that only the other tree of a gate has, if any others remain."""
    absent = absent_parts(context, tool, options, cwd)
    kept = [name for name in tool.parts.names(options) if name not in absent] if tool.parts and absent else []
    return options.model_copy(update={tool.parts.option: kept}) if tool.parts and kept else options


def absent_parts(context: TreeContext, tool: Adapter | None, options: Options, cwd: Path) -> set[str]:
    """Return the files and targets named in a step's options that the other tree of a gate has, and this one lacks."""
    parts = tool.parts if tool else None
    if parts is None or context.other is None or not cwd.is_relative_to(context.root):
        return set()
    there = context.other / cwd.relative_to(context.root)
    return {
        name
        for name in parts.names(options)
        if parts.exist(options, name, there) and not parts.exist(options, name, cwd)
    }


def _stdout(planned: Planned, side: Side, variables: Mapping[str, Any], cwd: Path) -> str | None:
    """Return ``pipe``, the absolute path of a file, '' for /dev/null, or None if the step does not set ``stdout``."""
    candidate = planned.step.candidate if side is Side.CANDIDATE else None
    text = candidate.stdout if candidate and candidate.stdout else planned.step.stdout
    if text is None:
        return None
    target = str(render(text, variables))
    if target in (PIPE, DISCARD):
        return PIPE if target == PIPE else ""
    path = cwd / target
    # Opening a FIFO would block until it has a reader.
    if not target or path.is_fifo():
        raise PreparationError(f"stdout: {target!r} is not a file; write {DISCARD}, {PIPE} or the name of a file")
    return str(path)


def _watched(context: TreeContext, planned: Planned, side: Side, folder: Path) -> Ready | None:
    """Return the watched step, prepared with its larger ``ops``, which shows the loop rather than the start-up."""
    if not planned.watches:
        return None
    source = context.plan.by_id[planned.watches]
    source_side = side if source.step.candidate else Side.BASELINE
    counts = operations(context, source)
    return ready(context, source, source_side, folder, counts[-1] if counts else None)


def operations(context: TreeContext, planned: Planned) -> list[int]:
    """Return the counts of ``ops``: none, one, or two for the slope. Raises PreparationError."""
    if planned.step.ops is None:
        return []
    value = rendered(planned.step.ops, variables_of(context, planned))
    values = value if isinstance(value, list) else [] if value is None else [value]
    counts = [whole("ops", item, least=1) for item in values]
    if len(counts) > 2 or (len(counts) == 2 and counts[0] >= counts[1]):
        raise PreparationError(f"`ops` is {value!r}; write one number, or two increasing numbers for the slope")
    return counts


def first_count(context: TreeContext, planned: Planned) -> int | None:
    """Return a value for ``${{ ops }}`` where any count will do; None without ``ops``. Raises PreparationError."""
    return next(iter(operations(context, planned)), None)


def rendered(value: Any, variables: Mapping[str, Any]) -> Any:
    """Render a value. Raises PreparationError."""
    try:
        return render(value, variables)
    except ExpressionError as error:
        raise PreparationError(str(error)) from error


def whole(key: str, value: object, *, least: int) -> int:
    """Return a rendered value of a key as a whole number of at least ``least``. Raises PreparationError."""
    try:
        number = value if isinstance(value, int) else int(str(value))
    except ValueError as error:
        raise PreparationError(f"`{key}` is {value!r}, not a whole number") from error
    if number < least:
        raise PreparationError(f"`{key}` is {number}, but at least {least} is needed")
    return number


def missing_program(planned: Planned, env_path: str) -> str:
    """Return a message with the install command if a step's tool is not installed, else ''."""
    tool = planned.tool
    try:
        program = tool.program if tool and tool.starts_program(planned.step.with_) else THE_COMMAND
    except StepError as error:
        return str(error)
    if not program or programs.located(program, env_path):
        return ""
    text = f"{program.name} is not on PATH; install it: {program.install}"
    return f"{text}; {program.instead}" if program.instead else text
