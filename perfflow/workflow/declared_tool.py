"""A tool that a YAML file defines: the file's model, and the adapter that does what it says.

What the program says of itself is checked as far as the file says how.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, create_model

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Hotspot, Parsed, Profile, Reading, StackCounts, Usage
from perfflow.model.stacks import Frame, hotspots_of, read_folded
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Effort, Invocation, Options, Program, Role
from perfflow.tools.pattern_search import search, time_left
from perfflow.workflow.expression_text import ExpressionError, as_text
from perfflow.workflow.expressions import Expression, literals_of, render, render_words, split
from perfflow.workflow.model import Env, Identifier, Param, Parse, Requirement, StepId, Text, WorkflowPart
from perfflow.workflow.roles import figures_in, metrics_of_parse

STDOUT, STDERR = "stdout", "stderr"
COMMAND, FOLDER, PROGRAM, ONLY, WITH = "command", "folder", "program", "only", "with"
NAMES = (COMMAND, FOLDER, PROGRAM, ONLY, WITH)
"""What an expression of a tool file can start from."""
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=100)]


class Suite(WorkflowPart):
    """How a program with several benchmarks lists them, and runs one of them alone."""

    list_: list[Text] = Field(description="the command that prints the benchmarks' names, one a line")
    only: list[Text] = Field(description="words added to `argv` to run just `${{ only }}`")
    brief: list[Text] = Field(default_factory=list, description="words added to `argv` for the shortest honest run")


class ToolFile(WorkflowPart):
    """A tool as a YAML file defines it."""

    perfflow_tool: Literal[1] = Field(description="format version")
    name: StepId = Field("", description="default: the file's name")
    description: str = Field("", description="one line for `perfflow show`")
    role: Literal["measure", "profile", "check"] = Field("measure", description="what it is used for")
    deterministic: bool = Field(default=False, description="a second run says the same, so one a side is enough")
    program: str = Field("", description="the program, looked up on PATH before anything runs; else `argv` tells")
    version: list[Text] = Field(default_factory=list, description="arguments that make it print its version")
    install: str = Field("", description="the command that installs the program")
    python: bool = Field(default=False, description="the command must start with a Python interpreter")
    with_: dict[Identifier, Param] = Field(default_factory=dict, description="keys of `with`, as in `params`")
    argv: list[Text] = Field(description="the program and its arguments; ${{ command }} is a step's command")
    env: Env = Field(default_factory=dict, description="environment variables")
    exit: list[int] = Field(default=[0], min_length=1, description="exit statuses that are no failure")
    outputs: list[FileName] = Field(default_factory=list, description="files it must leave in ${{ folder }}")
    parse: Parse | None = Field(None, description="how to read its figures, as in a step; `file` is one of `outputs`")
    stacks: FileName | Literal[""] = Field("", description="one of `outputs` with folded stacks, for hotspots")
    finished: str = Field("", description="a pattern without which what is parsed was cut short")
    failed: str = Field("", description="a pattern in its output that says it failed, whatever the exit status")
    assert_: dict[str, Requirement] | None = Field(None, description="metric -> requirement, of a tool that checks")
    suite: Suite | None = Field(None, description="for a program with several benchmarks")


class DeclaredTool:
    """What one tool file says, and its adapter; ``digest`` is a hash of its text."""

    def __init__(self, source: ToolFile, name: str, digest: str) -> None:
        self.source, self.digest = source, digest
        self.adapter = Adapter(
            name=name,
            role=Role(source.role),
            options=_options(source),
            program=Program(source.program, source.install, tuple(source.version)),
            metrics=metrics_of_parse(source.parse) if source.parse else {},
            deterministic=source.deterministic,
            good_statuses=frozenset(source.exit),
            python=source.python,
            is_of_file=True,
            invocations=self.invocations,
            outputs=self.outputs,
            parse=self.parse,
            listing=self.listing,
        )

    def invocations(self, call: Call) -> tuple[Invocation, ...]:
        """Return the one process; ``argv`` may not hold what a step did not say. Raises ToolOutputError."""
        suite = self.source.suite
        extra = (
            [*(suite.only if call.only else ()), *(suite.brief if call.effort is Effort.BRIEF else ())] if suite else []
        )
        return (self._invocation(call, [*self.source.argv, *extra], STDOUT),)

    def outputs(self, call: Call) -> tuple[Path, ...]:
        """The files that ``outputs`` names."""
        return tuple(call.folder / name for name in self.source.outputs)

    def parse(self, call: Call, usage: Usage) -> Parsed:
        """Read figures and stacks. Raises ToolOutputError where something says that the run failed or was cut."""
        seconds = time_left(call.timeout, usage.wall)
        self._refuse_failure(call.folder, seconds)
        readings = self._readings(call.folder, seconds)
        profiles = self.source.outputs if self.adapter.role is Role.PROFILE else []
        return Parsed(
            readings,
            self._hotspots(call.folder),
            tuple(map(self._profile, profiles)),
        )

    def _profile(self, name: str) -> Profile:
        if name == self.source.stacks:
            return Profile(name, "folded", StackCounts("samples", "time"))
        return Profile(name, self.adapter.name)

    def listing(self, call: Call) -> Invocation | None:
        """Return the process that lists the suite, None where the file does not say how. Raises ToolOutputError."""
        return self._invocation(call, self.source.suite.list_, "ids") if self.source.suite else None

    def _invocation(self, call: Call, words: list[str], stdout: str) -> Invocation:
        context = {
            COMMAND: list(call.command),
            FOLDER: str(call.folder),
            ONLY: call.only,
            PROGRAM: call.program or self.source.program,
            WITH: call.options.model_dump(by_alias=True),
        }
        try:
            argv = render_words(words, context)
            env = {name: as_text(render(text, context)) for name, text in self.source.env.items()}
        except ExpressionError as error:
            raise ToolOutputError(str(error)) from error
        if not argv or not argv[0]:
            raise ToolOutputError("`argv` is empty once it is rendered")
        if call.program and argv[0] == self.source.program:
            argv[0] = call.program
        return Invocation(tuple(argv), env, stdout)

    def _refuse_failure(self, folder: Path, seconds: float | None) -> None:
        for name in (STDOUT, STDERR):
            text = (folder / name).read_text(encoding="utf-8", errors="replace") if (folder / name).is_file() else ""
            found = search(self.source.failed, [text], seconds) if self.source.failed else []
            if found:
                line = text[text.rfind("\n", 0, found[0].start) + 1 :].split("\n", 1)[0]
                raise ToolOutputError(f"it says {tool_files.clean_name(line)[:200]!r}")

    def _readings(self, folder: Path, seconds: float | None) -> tuple[Reading, ...]:
        """Figures of ``parse``. Where built-in metrics cannot be below zero, ``figures_in`` refuses that."""
        parse = self.source.parse
        source = folder / (parse.file if parse and parse.file else STDOUT)
        if self.source.finished:
            text = tool_files.read_text(source)
            if not search(self.source.finished, [text], seconds):
                raise ToolOutputError(f"{source.name} is cut short: nothing in it matches {self.source.finished!r}")
        if parse is None:
            return ()
        found = figures_in(tool_files.read_text(source), parse, seconds)
        missing = {*parse.units} - {reading.metric for reading in found}
        if missing:
            raise ToolOutputError(f"{source.name} has no {', '.join(sorted(missing))}")
        return found

    def _hotspots(self, folder: Path) -> tuple[Hotspot, ...]:
        if not self.source.stacks:
            return ()
        try:
            stacks = read_folded(tool_files.read_whole(folder / self.source.stacks))
        except ValueError as error:
            raise ToolOutputError(f"{self.source.stacks}: {error}") from error
        leaves = [(Frame(tool_files.clean_name(stack[-1])), count) for stack, count in stacks.items()]
        if not any(count for _, count in leaves):
            raise ToolOutputError(f"{self.source.stacks} holds no sample")
        return hotspots_of(leaves, source=self.adapter.name)


_TYPES: Mapping[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "list": list[str]}
_KIND_OF: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string", list: "list"}


def kind_of(param: Param) -> str:
    """The type of an option: as written, else that of its default, else a text."""
    return param.type or _KIND_OF.get(type(param.default), "string")


def _options(source: ToolFile) -> type[Options]:
    """The pydantic model of ``with``. Fields have names of their own, since pydantic has taken some."""
    fields: dict[str, Any] = {}
    for name, param in source.with_.items():
        kind = Literal[tuple(param.enum)] if param.enum else _TYPES[kind_of(param)]
        default = ... if param.default is None else param.default
        fields[f"with_{name}"] = (kind, Field(default, alias=name, description=param.help or None))
    base = CommandOptions if takes_command(source) else Options
    return create_model("Options", __base__=base, __doc__=f"`with` keys of {source.name}.", **fields)


def takes_command(source: ToolFile) -> bool:
    """Whether a step gives the tool a command to run."""
    return any(path[0] == COMMAND for text in source.argv for path in _names(text))


def _names(text: str) -> list[tuple[str, ...]]:
    try:
        return [path for part in split(text) if isinstance(part, Expression) for path in part.names()]
    except ExpressionError:
        return []  # complained of where the file is checked


def texts_of(source: ToolFile) -> list[tuple[tuple[str | int, ...], str]]:
    """Every text of the file that is rendered, and where it stands."""
    lists: dict[tuple[str | int, ...], list[str]] = {("argv",): source.argv}
    if source.suite:
        for key in ("list_", "only", "brief"):
            lists["suite", key.rstrip("_")] = getattr(source.suite, key)
    found = [((*loc, index), text) for loc, words in lists.items() for index, text in enumerate(words)]
    found += [(("env", name), text) for name, text in source.env.items()]
    return [(loc, text) for loc, text in found if list(literals_of(text))]
