"""Tools defined by YAML files: the model of a tool file, and the adapter that runs the tool.

``read_tool`` reads a tool file and checks its keys. ``attach_tools`` loads the tool files that steps name (``uses:
./tools/mytool.yaml``); each file is read and checked once.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, WrapValidator, create_model

from perfflow.model.errors import Problem, SourcePosition, ToolOutputError, UserError
from perfflow.model.readings import Hotspot, Parsed, Profile, Reading, StackCounts, Usage
from perfflow.model.similar import did_you_mean
from perfflow.model.stacks import Frame, hotspots_of, read_folded
from perfflow.tools import registry, tool_files
from perfflow.tools.adapter import (
    NO_BUILD,
    NO_SUITE,
    Adapter,
    Builder,
    Call,
    CommandOptions,
    Effort,
    Invocation,
    Options,
    Program,
    Role,
    Suite,
)
from perfflow.tools.parsed_output import search, time_left
from perfflow.tools.python_command import driver_command
from perfflow.workflow import step_checks
from perfflow.workflow.checks import each_step
from perfflow.workflow.expression_text import OPEN, ExpressionError, as_text
from perfflow.workflow.expressions import Expression, literals_of, render, render_words, split
from perfflow.workflow.load import Draft
from perfflow.workflow.model import (
    Env,
    Identifier,
    Param,
    Parse,
    Requirement,
    Step,
    StepId,
    Text,
    Workflow,
    WorkflowPart,
)
from perfflow.workflow.roles import figures_in, metrics_of_parse
from perfflow.workflow.shape import read_shape
from perfflow.workflow.written_numbers import keep
from perfflow.workflow.yaml_text import Readable, read_file

STDOUT, STDERR = "stdout", "stderr"
COMMAND, FOLDER, PROGRAM, ONLY, WITH = "command", "folder", "program", "only", "with"
NAMES = (COMMAND, FOLDER, PROGRAM, ONLY, WITH)
"""Names with which an expression of a tool file can start."""
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=100)]


class DeclaredSuite(WorkflowPart):
    """How a program with several benchmarks lists them, and runs a single one."""

    list_: list[Text] = Field(description="command that prints the names of the benchmarks, one per line")
    names: str = Field(
        "", description="regular expression for the names in what `list` prints: its group `name`; default: whole lines"
    )
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
    executed: list[Text] = Field(
        default_factory=list, description="programs that it runs, if `argv` does not name them"
    )
    parse: Parse | None = Field(None, description="how to read its figures, as in a step; `file` is one of `outputs`")
    optional: list[Identifier] = Field(
        default_factory=list, description="metrics of `parse` that the output of some benchmarks lacks"
    )
    stacks: FileName | Literal[""] = Field("", description="one of `outputs` with folded stacks, for hotspots")
    finished: str = Field("", description="pattern in the parsed output; without a match the output is incomplete")
    failed: str = Field("", description="pattern in its output that means failure, whatever the exit status")
    assert_: dict[str, Requirement] | None = Field(None, description="metric -> requirement, for the role `check`")
    suite: DeclaredSuite | None = Field(None, description="for a program with several benchmarks")


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
            suite=Suite(listing=self.listing) if source.suite else NO_SUITE,
            build=Builder(executed=self.executed) if source.executed else NO_BUILD,
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

    def executed(self, call: Call) -> tuple[Path, ...]:
        """Return the programs under ``executed``. Raises ToolOutputError if they cannot be rendered."""
        return tuple(Path(path) for path in self._rendered(call, self.source.executed))

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
        suite = self.source.suite
        if suite is None or not suite.names:
            return self._invocation(call, suite.list_, "ids") if suite else None
        listed = self._invocation(call, suite.list_, "ids")
        return replace(listed, argv=(*_NAMES_IN, suite.names, *listed.argv))

    def _context(self, call: Call) -> dict[str, object]:
        return {
            COMMAND: list(call.command),
            FOLDER: str(call.folder),
            ONLY: call.only,
            PROGRAM: call.program or self.source.program,
            WITH: call.options.model_dump(by_alias=True),
        }

    def _rendered(self, call: Call, words: list[str]) -> list[str]:
        try:
            return render_words(words, self._context(call))
        except ExpressionError as error:
            raise ToolOutputError(str(error)) from error

    def _invocation(self, call: Call, words: list[str], stdout: str) -> Invocation:
        argv = self._rendered(call, words)
        try:
            env = {name: as_text(render(text, self._context(call))) for name, text in self.source.env.items()}
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
        readings = figures_in(tool_files.read_text(source), parse, seconds)
        missing = {*parse.units} - {*self.source.optional} - {reading.metric for reading in readings}
        if missing:
            raise ToolOutputError(f"{source.name} has no {', '.join(sorted(missing))}")
        return readings

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


_NAMES_IN = driver_command("names_in.py")
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
    lists: dict[tuple[str | int, ...], list[str]] = {("argv",): source.argv, ("executed",): source.executed}
    if source.suite:
        for key in ("list_", "only", "brief"):
            lists["suite", key.rstrip("_")] = getattr(source.suite, key)
    found = [((*loc, index), text) for loc, words in lists.items() for index, text in enumerate(words)]
    found += [(("env", name), text) for name, text in source.env.items()]
    return [(loc, text) for loc, text in found if list(literals_of(text))]


_TAKEN = {"shell", *CommandOptions.model_fields}


def read_tool(path: Path, readable: Readable) -> tuple[DeclaredTool | None, tuple[Problem, ...]]:
    """Read one tool file inside ``readable``. Return its tool, or None if there are errors, and its problems."""
    try:
        document = read_file(path, readable)
        data = document.data()
    except UserError as error:
        return None, error.problems
    draft = Draft(path, document, Workflow.model_construct(perfflow=1, stages={}), readable)
    draft.add(document.problems, document.wrong)
    shaped = read_shape(document, ToolFile, data, (), draft.wrong)
    draft.add(shaped.problems, shaped.wrong)
    source = shaped.model
    if source is not None:
        name = source.name or path.stem
        _check(draft, source, name)
    if source is None or draft.errors:
        return None, tuple(draft.problems)
    digest = hashlib.sha256("\n".join(document.lines[document.file]).encode()).hexdigest()
    return DeclaredTool(source, name, digest), tuple(draft.problems)


def _check(draft: Draft, source: ToolFile, name: str) -> None:
    if name in registry.MODULES:
        draft.complain(("name",), f"`{name}` is the name of a built-in tool", "choose another `name`")
    if not source.argv and not draft.wrong_keys(("argv",)) and "argv" not in draft.wrong_keys(()):
        draft.complain(("argv",), "`argv` is empty", 'name the program: argv: [wc, -c, "${{ with.file }}"]')
    if source.program and not source.install and "install" not in draft.wrong_keys(()):
        hint = "install: apt-get install " + source.program
        draft.complain(("program",), "`program` needs `install`, the command that installs it", hint, key=True)
    if source.version and not source.program:
        draft.complain(("version",), "`version` needs `program`", "add `program`, whose version is asked for", key=True)
    _check_options(draft, source)
    _check_outputs(draft, source)
    _check_role(draft, source)
    for loc, text in texts_of(source):
        _check_text(draft, source, loc, text)
    for key in ("finished", "failed"):
        _check_pattern(draft, (key,), getattr(source, key))
    _check_names(draft, source)
    pseudo = Step.model_construct(parse=source.parse, assert_=source.assert_)
    step_checks.check_parse(draft, "", pseudo, ())


def _check_names(draft: Draft, source: ToolFile) -> None:
    if source.suite and source.suite.names:
        loc = ("suite", "names")
        _check_pattern(draft, loc, source.suite.names)
        if "(?P<name>" not in source.suite.names:
            draft.complain(loc, "the pattern has no group `name`", "names: '^(?P<name>Bench\\S+) '")
    known = source.parse.units if source.parse else {}
    for index, metric in enumerate(source.optional):
        if metric not in known:
            hint = did_you_mean(metric, known, "metrics of `parse`")
            draft.complain(("optional", index), f"`{metric}` is not one of the metrics of `parse`", hint)


def _check_options(draft: Draft, source: ToolFile) -> None:
    for name, param in source.with_.items():
        loc = ("with", name)
        if name in _TAKEN:
            hint = "write ${{ command }} in `argv`; the keys `command` and `shell` are then added automatically"
            draft.complain(loc, f"`{name}` is a reserved key of `with`", hint, key=True)
        wrong = step_checks.default_mistake(param)
        if wrong:
            message = f"the default of `{name}` is {param.default!r}, {wrong}"
            draft.complain((*loc, "default"), message, "change one of them")


def _check_outputs(draft: Draft, source: ToolFile) -> None:
    for index, name in enumerate(source.outputs):
        if name in (STDOUT, STDERR):
            draft.complain(("outputs", index), f"`{name}` is always kept", "remove it; `parse` reads stdout by default")
    named = {("parse", "file"): source.parse.file if source.parse else "", ("stacks",): source.stacks}
    for loc, name in named.items():
        if name and name not in (*source.outputs, *((STDERR,) if loc[0] == "parse" else ())):
            hint = did_you_mean(name, source.outputs) or f"outputs: [{name}]"
            draft.complain(loc, f"`{name}` is not one of the `outputs`", hint)


def _check_role(draft: Draft, source: ToolFile) -> None:
    if draft.wrong & {("role",), ("parse",), ("assert",), ("outputs",)}:
        return
    if source.role == "measure" and source.parse is None:
        hint = "parse: {regex: 'took (?P<time>[0-9.]+) ms', units: {time: ms}}"
        draft.complain(("role",), "a tool that measures needs `parse`, which reads its figures", hint)
    if source.role == "profile" and not source.outputs:
        message = "a tool that profiles needs `outputs`, the profiles that it writes"
        draft.complain(("role",), message, "outputs: [cpu.prof]")
    if source.role == "check" and source.parse and not source.assert_:
        hint = "add the required value of each metric: assert: {METRIC: 0}"
        draft.complain(("parse",), "a check with `parse` needs `assert`", hint, key=True)
    if source.role != "check" and source.assert_:
        draft.complain(("assert",), "`assert` needs the role check", "role: check", key=True)
    if source.role != "measure" and source.suite:
        draft.complain(("suite",), "`suite` needs the role measure", "role: measure", key=True)


def _check_text(draft: Draft, source: ToolFile, loc: tuple[str | int, ...], text: str) -> None:
    """Report an expression that does not parse, or uses an unknown name."""
    try:
        paths = [path for part in split(text) if isinstance(part, Expression) for path in part.names()]
    except ExpressionError as error:
        draft.complain(loc, str(error), error.hint, find=error.near or OPEN)
        return
    for path in paths:
        if path[0] not in NAMES:
            hint = did_you_mean(path[0], NAMES, "known names")
            draft.complain(loc, f"unknown name `{path[0]}`", hint, find=path[0])
        elif path[0] == ONLY and loc[:2] != ("suite", "only"):
            message = "`only` is defined only in `suite: {only: ...}`"
            draft.complain(loc, message, "move the expression there", find=ONLY)
        elif path[0] == WITH and (len(path) < 2 or path[1] not in source.with_):
            key = path[1] if len(path) > 1 else ""
            hint = did_you_mean(key, source.with_, "keys of `with`")
            draft.complain(loc, f"`with` has no key `{key}`", hint, find=key or WITH)


def _check_pattern(draft: Draft, loc: tuple[str, ...], pattern: str) -> None:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        draft.complain(loc, f"invalid regular expression: {error}", "use the syntax of Python's re module")


SUFFIXES = (".yaml", ".yml")
FindTool = Callable[[str, str], Path]
"""Converts a value of ``uses`` and the name of its file to a path."""


def is_tool_file(name: str) -> bool:
    """Return whether ``uses`` names a file, including files of packages and repositories, and not a tool."""
    elsewhere = name.startswith(("pkg:", "git+")) or ("@" in name and name.count("/") >= 2)
    return elsewhere or name.endswith(SUFFIXES)


def attach_tools(draft: Draft, find: FindTool) -> None:
    """Load the tool of each step that uses a tool file, and add the problems of the files to the draft."""
    read: dict[tuple[str, str], tuple[DeclaredTool | None, tuple[Problem, ...]]] = {}
    for _, step, loc in each_step(draft):
        if step.uses and is_tool_file(step.uses):
            place = draft.document.place((*loc, "uses"))
            reference = (step.uses, place.file)
            if reference not in read:
                read[reference] = _load(find, *reference, draft.readable)
            tool, problems = read[reference]
            # Report a problem without a place, such as a missing file, where the file is named.
            draft.add([_placed(problem, place) for problem in problems], [(*loc, "uses")] if tool is None else [])
            step.adopt(tool)


def _load(find: FindTool, text: str, file: str, readable: Readable) -> tuple[DeclaredTool | None, tuple[Problem, ...]]:
    try:
        path = find(text, file)
    except UserError as error:
        return None, error.problems
    return load_tools(_shown(path), readable)


def _shown(path: Path) -> Path:
    """Return the path relative to the working directory if it is below it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _placed(problem: Problem, place: SourcePosition) -> Problem:
    return problem if problem.place else replace(problem, place=place)


def load_tools(path: Path, readable: Readable | None = None) -> tuple[DeclaredTool | None, tuple[Problem, ...]]:
    """Read one tool file. Return its tool, or None if there are errors, and its problems.

    readable: folders that may be read; by default the folder of the file, so that a link out of it is refused.
    """
    return read_tool(path, readable or Readable.of(path.parent))
