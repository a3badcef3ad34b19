"""Tools defined by YAML files: the model of a tool file, and the adapter that runs the tool."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, WrapValidator, create_model

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
from perfflow.workflow.written_numbers import keep

STDOUT, STDERR = "stdout", "stderr"
COMMAND, FOLDER, PROGRAM, ONLY, WITH = "command", "folder", "program", "only", "with"
NAMES = (COMMAND, FOLDER, PROGRAM, ONLY, WITH)
"""Names with which an expression of a tool file can start."""
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=100)]


class Suite(WorkflowPart):
    """How a program with several benchmarks lists them, and runs a single one."""

    list_: list[Text] = Field(description="command that prints the names of the benchmarks, one per line")
    only: list[Text] = Field(description="arguments added to `argv` to run only the benchmark `${{ only }}`")
    brief: list[Text] = Field(
        default_factory=list, description="arguments added to `argv` for the shortest run with valid figures"
    )


class ToolFile(WorkflowPart):
    """A tool file."""

    perfflow_tool: Literal[1] = Field(description="version of the file format")
    name: StepId = Field("", description="name of the tool; default: the file name")
    description: str = Field("", description="one line, shown by `perfflow show`")
    role: Literal["measure", "profile", "check"] = Field("measure", description="what the tool is used for")
    deterministic: bool = Field(
        default=False, description="true: every run gives the same figures, so two runs of each side are enough"
    )
    program: str = Field("", description="program to find on PATH before the run starts; default: as `argv` says")
    version: list[Text] = Field(default_factory=list, description="arguments that print the version of the program")
    install: str = Field("", description="command that installs the program")
    python: bool = Field(default=False, description="the command of the step must start with a Python interpreter")
    with_: dict[Identifier, Param] = Field(default_factory=dict, description="options of the tool, as in `params`")
    argv: list[Text] = Field(description="program and its arguments; ${{ command }} is the command of the step")
    env: Env = Field(default_factory=dict, description="environment variables")
    exit: list[int] = Field(default=[0], min_length=1, description="exit statuses that mean success")
    outputs: list[FileName] = Field(default_factory=list, description="files that it must write to ${{ folder }}")
    parse: Parse | None = Field(None, description="how to read its figures, as in a step; `file` is one of `outputs`")
    stacks: FileName | Literal[""] = Field("", description="one of `outputs` with folded stacks, for hotspots")
    finished: str = Field("", description="pattern in the parsed output; without a match the output is incomplete")
    failed: str = Field("", description="pattern in its output that means failure, whatever the exit status")
    assert_: dict[str, Requirement] | None = Field(None, description="metric -> requirement, for the role `check`")
    suite: Suite | None = Field(None, description="for a program with several benchmarks")


class DeclaredTool:
    """The contents of one tool file, and its adapter; ``digest`` is a hash of its text."""

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
        """Return the single process to run. Raises ToolOutputError if ``argv`` or ``env`` cannot be rendered."""
        suite = self.source.suite
        extra = (
            [*(suite.only if call.only else ()), *(suite.brief if call.effort is not Effort.NORMAL else ())]
            if suite
            else []
        )
        return (self._invocation(call, [*self.source.argv, *extra], STDOUT),)

    def outputs(self, call: Call) -> tuple[Path, ...]:
        """Return the paths of the files under ``outputs``."""
        return tuple(call.folder / name for name in self.source.outputs)

    def parse(self, call: Call, usage: Usage) -> Parsed:
        """Read figures and stacks. Raises ToolOutputError if the output shows a failure or is incomplete."""
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
        """Return the process that lists the suite, or None without ``suite``. Raises ToolOutputError."""
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
            raise ToolOutputError("`argv` is empty after rendering")
        if call.program and argv[0] == self.source.program:
            argv[0] = call.program
        return Invocation(tuple(argv), env, stdout)

    def _refuse_failure(self, folder: Path, seconds: float | None) -> None:
        for name in (STDOUT, STDERR):
            text = (folder / name).read_text(encoding="utf-8", errors="replace") if (folder / name).is_file() else ""
            found = search(self.source.failed, [text], seconds) if self.source.failed else []
            if found:
                line = text[text.rfind("\n", 0, found[0].start) + 1 :].split("\n", 1)[0]
                raise ToolOutputError(f"its output reports a failure: {tool_files.clean_name(line)[:200]!r}")

    def _readings(self, folder: Path, seconds: float | None) -> tuple[Reading, ...]:
        """Read the figures of ``parse``. ``figures_in`` refuses negative values of metrics that cannot be negative."""
        parse = self.source.parse
        source = folder / (parse.file if parse and parse.file else STDOUT)
        if self.source.finished:
            text = tool_files.read_text(source)
            if not search(self.source.finished, [text], seconds):
                raise ToolOutputError(f"{source.name} is incomplete: nothing in it matches {self.source.finished!r}")
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
            raise ToolOutputError(f"{self.source.stacks} contains no samples")
        return hotspots_of(leaves, source=self.adapter.name)


_TYPES: Mapping[str, Any] = {
    "string": Text,
    "integer": Annotated[int, WrapValidator(keep)],
    "number": Annotated[float, WrapValidator(keep)],
    "boolean": bool,
    "list": list[Text],
}
"""Types of options, which keep numbers as they are written."""


def _options(source: ToolFile) -> type[Options]:
    """Return the pydantic model of ``with``. Fields are prefixed, since pydantic reserves some names."""
    fields: dict[str, Any] = {}
    for name, param in source.with_.items():
        kind = Literal[tuple(param.enum)] if param.enum else _TYPES[param.kind]
        default = ... if param.default is None else param.default
        field = Field(default, alias=name, description=param.help or None, validate_default=True)
        fields[f"with_{name}"] = (kind, field)
    base = CommandOptions if takes_command(source) else Options
    return create_model("Options", __base__=base, __doc__=f"`with` keys of {source.name}.", **fields)


def takes_command(source: ToolFile) -> bool:
    """Return whether a step gives the tool a command to run."""
    return any(path[0] == COMMAND for text in source.argv for path in _names(text))


def _names(text: str) -> list[tuple[str, ...]]:
    try:
        return [path for part in split(text) if isinstance(part, Expression) for path in part.names()]
    except ExpressionError:
        return []  # reported when the tool file is checked


def texts_of(source: ToolFile) -> list[tuple[tuple[str | int, ...], str]]:
    """Return every string of the file that contains an expression, with its location."""
    lists: dict[tuple[str | int, ...], list[str]] = {("argv",): source.argv}
    if source.suite:
        for key in ("list_", "only", "brief"):
            lists["suite", key.rstrip("_")] = getattr(source.suite, key)
    found = [((*loc, index), text) for loc, words in lists.items() for index, text in enumerate(words)]
    found += [(("env", name), text) for name, text in source.env.items()]
    return [(loc, text) for loc, text in found if list(literals_of(text))]
