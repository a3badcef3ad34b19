"""Render a planned step for one side into the processes to start, and check that this machine can run it.

The parts in order: ``ready`` renders a step; ``version_of`` and ``facts_of`` locate programs and read their versions;
``lacking`` checks a step's ``requires``; ``why_elsewhere`` checks a workflow's ``runs-on``.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from perfflow.execute import gpus
from perfflow.execute.child import PIPE, find_program
from perfflow.execute.context import TreeContext, compares_cells, note_lock, variables_of
from perfflow.execute.sandbox import Sandbox
from perfflow.machine.facts import lies_in, outside
from perfflow.model.errors import StepError
from perfflow.model.readings import PREPARED, Side
from perfflow.model.units import UnitError, duration
from perfflow.plan.groups import NodeRequirement
from perfflow.plan.plan import Planned
from perfflow.tools import registry
from perfflow.tools.adapter import THE_COMMAND, Adapter, Call, Effort, Invocation, Options, Program
from perfflow.trees.slots import Slot
from perfflow.workflow.expression_text import ExpressionError
from perfflow.workflow.expressions import needs_shell, render, render_shell, render_words
from perfflow.workflow.model import Requires, Step
from perfflow.workflow.shell_text import BASH_READS_RAW

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
class ReadyProcess:
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
    sandbox: Sandbox | None = None
    """What its processes see, if the tree has code of strangers."""
    visible: tuple[Path, ...] = ()
    """Private folders outside of its tree that it reads."""

    @property
    def shown(self) -> tuple[str, ...]:
        """The argv to show in results and dry runs."""
        try:
            return self.invocations()[0].argv
        except StepError:
            # A command that the tool cannot run is an error only when it is started. Until then, show the command that
            # builds it, or else the command as written.
            with suppress(StepError):
                first = self.tool.build.preparations(self.call) if self.tool and self.call else ()
                return first[0].argv if first else self.argv
            return self.argv

    def invocations(self) -> tuple[Invocation, ...]:
        """The processes to start, in order."""
        return self.tool.invocations(self.call) if self.tool and self.call else (Invocation(self.argv, {}, "stdout"),)


def sides_of(context: TreeContext, planned: Planned) -> tuple[Side, ...]:
    """Return both sides if the step, or the step it watches, compares two commands, settings, variants or cells."""
    source = context.plan.by_id[planned.watches] if planned.watches else planned
    two = source.in_one_tree or planned.in_one_tree
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
) -> ReadyProcess:
    """Render a step for one side. ``chosen`` limits a suite to these benchmarks, run briefly.

    ``variables``: further environment variables of its processes. Raises PreparationError.
    """
    try:
        prepared = _ready(context, planned, side, folder, ops, variables or {})
    except (ExpressionError, UnitError) as error:
        raise PreparationError(str(error)) from error
    prepared = replace(prepared, sandbox=context.sandbox) if context.sandbox else prepared
    if chosen and prepared.call:
        return replace(prepared, call=replace(prepared.call, chosen=chosen, effort=Effort.BRIEF))
    return prepared


def of_several(prepared: ReadyProcess, chosen: tuple[str, ...]) -> ReadyProcess:
    """Return the call of one benchmark of a suite as one of several, which together have the time of each."""
    if len(chosen) < 2 or prepared.call is None:
        return prepared
    timeout = prepared.timeout * len(chosen) if prepared.timeout else None
    return replace(prepared, call=replace(prepared.call, chosen=chosen, timeout=timeout), timeout=timeout)


def _ready(
    context: TreeContext, planned: Planned, side: Side, folder: Path, ops: int | None, further: Mapping[str, str]
) -> ReadyProcess:
    variables = variables_of(context, planned, side, ops)
    env: dict[str, str] = variables["env"] | further
    if context.sandbox:
        env = context.sandbox.environment(env)
    cwd = _cwd(context, planned, variables)
    timeout = _timeout(context, planned, variables)
    if planned.tool and planned.tool.deterministic:
        # Counts of Python programs, such as instructions, repeat only with a fixed hash seed.
        env = {HASH_SEED: "0", **env}
    first = tuple(_preparations(context, planned, variables))
    if planned.tool is None:
        argv, text = _script(context, planned, side, variables)
        return ReadyProcess(
            planned, side, argv, env, cwd, timeout, ops=ops, slot=context.slot, shell_text=text, first=first
        )
    watched = _watched(context, planned, side, folder)
    if watched:
        env = {**watched.env, **{name: env[name] for name in planned.step.env}}
        note_lock(env, context, planned)
        cwd = cwd if planned.step.working_directory else watched.cwd
        first = first or watched.first
    call = _call(context, planned, side, folder, {**variables, "env": env}, cwd, watched)
    call = replace(call, timeout=timeout)
    first = (*first, *planned.tool.build.before_each(call))
    if planned.tool.passes_stdout:
        own = _stdout(planned, side, variables, cwd)
        call = replace(call, stdout=watched.call.stdout if own is None and watched and watched.call else own or "")
    return ReadyProcess(
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
    watched: ReadyProcess | None,
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
    declared = tool.program
    program = (find_program(declared.name, path, cwd) or located(declared, path) or declared.name) if declared else ""
    if command and not context.dry:
        command = (find_program(command[0], path, cwd) or command[0], *command[1:])
    # It lies beside the folders of the step's calls, which share it.
    kept = folder.parent / PREPARED / side.value
    return Call(options, folder, program, command, shell_text, planned.pattern, kept=kept)


def _in_this_tree(context: TreeContext, tool: Adapter, options: Options, cwd: Path) -> Options:
    """Return the options without files and targets that only the other tree of a gate has, if any others remain."""
    absent, parts = absent_parts(context, tool, options, cwd), tool.suite.parts
    kept = [name for name in parts.names(options) if name not in absent] if parts and absent else []
    return options.model_copy(update={parts.option: kept}) if parts and kept else options


def absent_parts(context: TreeContext, tool: Adapter | None, options: Options, cwd: Path) -> set[str]:
    """Return the files and targets named in a step's options that the other tree of a gate has, and this one lacks."""
    parts = tool.suite.parts if tool else None
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


def _watched(context: TreeContext, planned: Planned, side: Side, folder: Path) -> ReadyProcess | None:
    """Return the watched step, prepared with its larger ``ops``, which shows the loop rather than the start-up.

    Of a tool that makes its command line itself, this is the first process of its call.
    """
    if not planned.watches:
        return None
    source = context.plan.by_id[planned.watches]
    source_side = side if source.step.candidate else Side.BASELINE
    counts = operations(context, source)
    found = ready(context, source, source_side, folder, counts[-1] if counts else None)
    if found.argv or (source.tool and source.tool.is_suite):
        return found
    first = found.invocations()[0]
    return replace(found, argv=first.argv, env={**found.env, **first.env})


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
    if not program or located(program, env_path):
        return ""
    text = f"{program.name} is not on PATH; install it: {program.install}"
    return f"{text}; {program.instead}" if program.instead else text


_REQUIREMENT = re.compile(r"^\s*(?P<name>[^\s<>=]+)\s*(?:(?P<relation>>=|==|>)\s*(?P<version>[\d.]+))?\s*$")
_VERSION = re.compile(r"\d+(?:\.\d+)+")
NOT_ASKED = "not asked: lies in the project"
_VERSION_ARGUMENTS = frozenset({("--version",), ("-version",), ("-V",), ("version",)})
"""Version arguments that a project's tool file may use: with them, any program only prints its version."""


@dataclass(frozen=True)
class ProgramFacts:
    """Facts about a tool's program, found without running any program of the project.

    ``version`` is '' if it has none, or if perfflow did not ask; ``remark`` then gives the reason.
    """

    available: bool
    version: str = ""
    remark: str = ""


@dataclass(frozen=True)
class Inspection:
    """Rules for reading versions while perfflow inspects a project, when it must not start programs of the project.

    ``project`` is None if the current folder is not in a project.
    """

    project: Path | None

    @property
    def path(self) -> str:
        """PATH of perfflow without folders in the project."""
        return outside(os.environ.get("PATH", os.defpath), self.project)

    def may_ask(self, path: str, name: str) -> bool:
        """Return whether a program may be started: it has a bare name, and perfflow's own PATH finds the same file.

        A step's PATH is not trusted.
        """
        return os.sep not in name and not lies_in(path, self.project) and path == locate(name, self.path)

    def version(self, path: str, arguments: tuple[str, ...] = ("--version",)) -> str:
        """Return the version that a program prints without access to the project's settings, modules or helpers."""
        return version(path, arguments, self.path)


@cache
def version(program: str, arguments: tuple[str, ...] = ("--version",), alone: str | None = None) -> str:
    """Return the version that a program prints, '' if it prints none. Raises nothing.

    alone: PATH for a program that must not use the current folder. For example, cargo runs the toolchain named in a
    file there, and a script may run an interpreter from PATH or load modules from PYTHONPATH.
    """
    lent = None
    if alone is not None:
        lent = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PATH": alone}
    try:
        done = subprocess.run(
            [program, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20,
            check=False,
            stdin=subprocess.DEVNULL,
            cwd=os.sep if lent else None,
            env=lent,
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return ""
    match = _VERSION.search(done.stdout + done.stderr)
    return match[0] if match else ""


def locate(program: str, env_path: str) -> str | None:
    """Return the absolute path of a program on PATH, or beside perfflow's interpreter; None if there is none.

    The extra `tools` installs Python tools there, and ``.venv/bin/perfflow`` is often called without activation.
    """
    return shutil.which(program, path=env_path) or shutil.which(program, path=str(Path(sys.executable).parent))


def located(program: Program, env_path: str) -> str | None:
    """Return the absolute path of a tool's program, from PATH or else its ``places``; None if there is none.

    ``places`` may hold ``$NAME`` for environment variables. If several folders match, the highest version is used.
    """
    path = locate(program.name, env_path)
    for pattern in () if path else program.places:
        place = os.path.expandvars(pattern)
        for folder in (
            () if "$" in place else sorted(map(str, Path("/").glob(place.lstrip("/"))), key=_by_version, reverse=True)
        ):
            path = path or shutil.which(program.name, path=folder)
    return path


def _by_version(path: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that puts ``cuda-9.2`` before ``cuda-12.0``."""
    return tuple((int(digits or 0), text) for text, digits in re.findall(r"(\D+)(\d*)", path))


def version_of(tool: Adapter) -> str | None:
    """Return the version of a tool's program: None if the program is missing, '' if its version is not known."""
    if not tool.program:
        return ""
    path = located(tool.program, os.environ.get("PATH", os.defpath))
    if path is None:
        return None
    return version(path, tool.program.version) if tool.program.version else ""


def facts_of(tool: Adapter, inspection: Inspection) -> ProgramFacts:
    """Return the facts about a tool's program that are known without starting programs of the project."""
    program = tool.program
    if not program:
        return ProgramFacts(available=True)
    path = located(program, os.environ.get("PATH", os.defpath))
    if path is None:
        return ProgramFacts(available=False)
    present = located(program, inspection.path)
    if not program.version:
        return ProgramFacts(available=True)
    if path != present or lies_in(path, inspection.project):
        return ProgramFacts(available=True, remark=NOT_ASKED)
    if tool.is_of_file and program.version not in _VERSION_ARGUMENTS:
        return ProgramFacts(available=True, remark="not asked: `version` is more than --version")
    return ProgramFacts(available=True, version=inspection.version(path, program.version))


def unmet(requires: Requires | None, env_path: str) -> str:
    """Return why a step's requirements are not met, '' if they are met."""
    return "; ".join(lacking(requires, env_path))


def lacking(requires: Requires | None, env_path: str, inspection: Inspection | None = None) -> list[str]:
    """Return the reasons why a step's requirements are not met, one for each.

    With ``inspection``, a program whose version perfflow may not read counts as new enough.
    """
    if requires is None:
        return []
    reasons = [_tool_unmet(text, env_path, inspection) for text in _listed(requires.tool)]
    labels = given_labels()
    reasons += [f"label {label!r} is not in {LABELS}" for label in _listed(requires.label) if label not in labels]
    if requires.gpu:
        usable = gpus.visible(inspection.path if inspection else env_path)
        if usable.count < requires.gpu:
            message = f"needs {requires.gpu} GPU{'s' if requires.gpu > 1 else ''}, {usable.count or 'none'} found"
            reasons.append(f"{message}: {usable.why}" if usable.why else message)
    return [reason for reason in reasons if reason]


def _listed(value: list[str] | str | None) -> list[str]:
    return [value] if isinstance(value, str) else value or []


def _tool_unmet(text: str, env_path: str, inspection: Inspection | None) -> str:
    match = _REQUIREMENT.match(text)
    if not match:
        return f"cannot read the requirement {text!r}; write it as perf>=6"
    path = locate(match["name"], env_path) or _in_known_places(match["name"], env_path)
    if path is None:
        install = install_command(match["name"])
        return f"{match['name']} is not on PATH" + (f"; install it: {install}" if install else "")
    if not match["relation"]:
        return ""
    if inspection and not inspection.may_ask(path, match["name"]):
        return ""
    have = inspection.version(path) if inspection else version(path)
    required, actual = _numbers(match["version"]), _numbers(have)
    holds = {">=": actual >= required, "==": actual == required, ">": actual > required}[match["relation"]]
    return "" if have and holds else f"needs {text}, found {have or 'no version'}"


def _in_known_places(program: str, env_path: str) -> str | None:
    """Return the absolute path of a program that a built-in adapter uses, searched in its ``places`` too."""
    return located(_own_program(program), env_path)


def install_command(program: str) -> str:
    """Return the command that installs a program of a built-in adapter, '' for other programs."""
    return _own_program(program).install


def _own_program(name: str) -> Program:
    """Return the program called ``name`` as a built-in adapter defines it, else one with only this name."""
    tools = (registry.find(name) for name in registry.MODULES)
    return next((tool.program for tool in tools if tool and tool.program.name == name), Program(name))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part)


LABELS = "PERFFLOW_LABELS"
"""Environment variable with the labels of the machine, separated by spaces or commas."""


def given_labels() -> list[str]:
    """Return the labels in PERFFLOW_LABELS."""
    return os.environ.get(LABELS, "").replace(",", " ").split()


def labels() -> tuple[str, ...]:
    """Return the machine's labels: those in PERFFLOW_LABELS, its system and its architecture."""
    return tuple(dict.fromkeys([*given_labels(), platform.system().lower(), platform.machine()]))


def why_elsewhere(place: NodeRequirement, env_path: str) -> str:
    """Return why this machine does not satisfy ``place``, '' if it does."""
    present, reasons = labels(), []
    absent = [label for label in place.labels if label not in present]
    if absent:
        named = ", ".join(map(repr, absent))
        reasons.append(f"it needs a machine with the label {named}; this machine has {', '.join(present)}")
    if place.node and place.node not in (platform.node(), platform.node().partition(".")[0]):
        reasons.append(f"it runs on {place.node}; this machine is {platform.node()}")
    if place.gpus and (seen := gpus.visible(env_path)).count < place.gpus:
        reason = f"it needs {place.gpus} GPU{'s' if place.gpus > 1 else ''}, {seen.count or 'none'} found"
        reasons.append(f"{reason}: {seen.why}" if seen.why else reason)
    return "; ".join(reasons)
