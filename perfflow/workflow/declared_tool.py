"""Tools defined by YAML files: the model of a tool file, and the adapter that runs the tool.

``read_tool`` reads a tool file and checks its keys. ``attach_tools`` loads the tool files that steps name (``uses:
./tools/mytool.yaml``); each file is read and checked once.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, WrapValidator, create_model

from perfflow.model.errors import Problem, SourcePosition, ToolOutputError, UserError
from perfflow.model.readings import (
    IN_DISTRIBUTION,
    Hotspot,
    Parsed,
    Profile,
    Reading,
    StackCounts,
    Usage,
    are_enough,
    reading_of_distribution,
)
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
from perfflow.tools.shell import command
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
    client: bool = Field(
        default=False, description="true: it measures another process, such as a server, and is not profiled itself"
    )
    program: str = Field("", description="program to find on PATH before the run starts; default: as `argv` says")
    version: list[Text] = Field(default_factory=list, description="arguments that print the version of the program")
    install: str = Field("", description="command that installs the program")
    python: bool = Field(default=False, description="the command of the step must start with a Python interpreter")
    with_: dict[Identifier, Param] = Field(default_factory=dict, description="options of the tool, as in `params`")
    argv: list[Text] = Field(description="program and its arguments; ${{ command }} is the command of the step")
    prepare: list[Text] = Field(
        default_factory=list, description="program and arguments that run before every sample, and are not timed"
    )
    env: Env = Field(default_factory=dict, description="environment variables")
    exit: list[int] = Field(default=[0], min_length=1, description="exit statuses that mean success")
    outputs: list[FileName] = Field(default_factory=list, description="files that it must write to ${{ folder }}")
    executed: list[Text] | None = Field(
        None, description="programs that it runs, if `argv` does not name them; [] if equal programs say nothing"
    )
    parse: Parse | None = Field(
        None,
        description="how to read its figures, as in a step; `file` is one of `outputs`. Default: the time and the "
        "resources of the process, as `uses: command` measures them",
    )
    distribution: Identifier | Literal[""] = Field(
        "", description="metric whose percentiles `parse` reads under the names p50, p99, n and so on"
    )
    optional: list[Identifier] = Field(
        default_factory=list, description="metrics of `parse` that the output of some benchmarks lacks"
    )
    stacks: FileName | Literal[""] = Field("", description="one of `outputs` with folded stacks, for hotspots")
    finished: str = Field("", description="pattern in the parsed output; without a match the output is incomplete")
    failed: str | dict[str, str] = Field(
        "",
        description="pattern in its output that means failure, whatever the exit status; or several, each with what it "
        "means, in which {GROUP} stands for a named group",
    )
    assert_: dict[str, Requirement] | None = Field(None, description="metric -> requirement, for the role `check`")
    suite: DeclaredSuite | None = Field(None, description="for a program with several benchmarks")

    @property
    def figures(self) -> Parse | None:
        """``parse`` with the units of the percentiles, that of their metric, and of their number."""
        if self.parse is None or self.distribution not in self.parse.units:
            return self.parse
        units = {**dict.fromkeys(IN_DISTRIBUTION, self.parse.units[self.distribution]), "n": "1"}
        return self.parse.model_copy(update={"units": units | self.parse.units})

    @property
    def meanings(self) -> Mapping[str, str]:
        """The patterns of ``failed``, each with what it means, or with ''."""
        one = {self.failed: ""} if isinstance(self.failed, str) else self.failed
        return {pattern: meaning for pattern, meaning in one.items() if pattern}


class DeclaredTool:
    """The contents of one tool file, and its adapter; ``digest`` is a hash of its text."""

    def __init__(self, source: ToolFile, name: str, digest: str) -> None:
        self.source, self.digest = source, digest
        self.adapter = Adapter(
            name=name,
            role=Role(source.role),
            options=_options(source),
            program=Program(source.program, source.install, tuple(source.version)),
            description=source.description,
            metrics=metrics_of_parse(source.parse) if source.parse else command.METRICS if self.is_timed else {},
            deterministic=source.deterministic,
            client=source.client,
            good_statuses=frozenset(source.exit),
            python=source.python,
            is_of_file=name not in registry.FILES,
            invocations=self.invocations,
            outputs=self.outputs,
            parse=self.parse,
            suite=Suite(listing=self.listing) if source.suite else NO_SUITE,
            build=self._builder(),
        )

    @property
    def is_timed(self) -> bool:
        """Whether its figures are the time and the resources of the process."""
        return self.source.role == "measure" and self.source.parse is None

    def _builder(self) -> Builder:
        builder = replace(NO_BUILD, executed=self.executed) if self.source.executed is not None else NO_BUILD
        return replace(builder, before_each=self.before_each) if self.source.prepare else builder

    def invocations(self, call: Call) -> tuple[Invocation, ...]:
        """Return the single process to run. Raises ToolOutputError if ``argv`` or ``env`` cannot be rendered."""
        suite = self.source.suite
        extra = (
            [*(suite.only if call.only else ()), *(suite.brief if call.effort is not Effort.NORMAL else ())]
            if suite
            else []
        )
        invocation = self._invocation(call, [*self.source.argv, *extra], "" if self.is_timed else STDOUT)
        return (replace(invocation, in_bash=bool(call.shell_text) and invocation.argv == call.command),)

    def before_each(self, call: Call) -> tuple[Invocation, ...]:
        """Return the process of ``prepare``. Raises ToolOutputError if it cannot be rendered."""
        return (replace(self._invocation(call, self.source.prepare, "prepare.stdout"), stderr="prepare.stderr"),)

    def outputs(self, call: Call) -> tuple[Path, ...]:
        """Return the paths of the files under ``outputs``."""
        return tuple(call.folder / name for name in self.source.outputs)

    def executed(self, call: Call) -> tuple[Path, ...]:
        """Return the programs under ``executed``. Raises ToolOutputError if they cannot be rendered."""
        return tuple(Path(path) for path in self._rendered(call, self.source.executed or []))

    def parse(self, call: Call, usage: Usage) -> Parsed:
        """Read figures and stacks. Raises ToolOutputError if the output shows a failure or is incomplete."""
        seconds = time_left(call.timeout, usage.wall)
        self._refuse_failure(call.folder, seconds)
        readings = command.parse(call, usage).readings if self.is_timed else self._readings(call.folder, seconds)
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
            ONLY: call.only or (call.benchmark if self.source.role == "profile" else ""),
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
            for pattern, meaning in self.source.meanings.items():
                if found := search(pattern, [text], seconds):
                    line = text[text.rfind("\n", 0, found[0].start) + 1 :].split("\n", 1)[0]
                    shown = f"its output reports a failure: {tool_files.clean_name(line)[:200]!r}"
                    raise ToolOutputError(_told(meaning, found[0].groups) if meaning else shown)

    def _readings(self, folder: Path, seconds: float | None) -> tuple[Reading, ...]:
        """Read the figures of ``parse``. ``figures_in`` refuses negative values of metrics that cannot be negative."""
        parse = self.source.figures
        source = folder / (parse.file if parse and parse.file else STDOUT)
        if self.source.finished:
            text = tool_files.read_text(source)
            if not search(self.source.finished, [text], seconds):
                raise ToolOutputError(f"{source.name} is incomplete: nothing in it matches {self.source.finished!r}")
        if parse is None:
            return ()
        readings = figures_in(tool_files.read_text(source), parse, seconds)
        if self.source.distribution:
            readings = tuple(_with_distribution(self.source.distribution, readings))
        wanted = self.source.parse.units if self.source.parse else {}
        missing = {*wanted} - {*self.source.optional} - {reading.metric for reading in readings}
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


def _told(meaning: str, groups: Mapping[str, str | None]) -> str:
    """Return the text with {GROUP} replaced by what the group matched."""
    return re.sub(r"\{(\w+)\}", lambda match: tool_files.clean_name(groups[match[1]] or "")[:200], meaning)


def _with_distribution(metric: str, readings: Iterable[Reading]) -> Iterator[Reading]:
    """Yield the readings, those with names of percentiles combined to one of ``metric`` for each benchmark.

    Percentiles of too few values are left out. Raises ToolOutputError if they contradict each other.
    """
    found: dict[str, dict[str, float]] = {}
    for item in readings:
        if item.metric in IN_DISTRIBUTION:
            # Several numbers of values, such as one for each status code, are added.
            added = item.metric == "n" and item.inner
            value = item.inner["mean"] * item.inner["n"] if added else item.value
            found.setdefault(item.benchmark, {})[item.metric] = value
        else:
            yield replace(item, inner=_known(item.inner)) if item.metric == metric else item
    for benchmark, figures in found.items():
        yield reading_of_distribution(metric, _known(figures), benchmark)


def _known(figures: Mapping[str, float]) -> dict[str, float]:
    """Return the figures of a distribution without percentiles of too few values."""
    count = figures.get("n", math.inf)
    return {name: value for name, value in figures.items() if are_enough(count, name)}


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
    keys = ("argv", "executed", "prepare")
    lists: dict[tuple[str | int, ...], list[str]] = {(key,): getattr(source, key) or [] for key in keys}
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
    if name in registry.MODULES and draft.path != registry.FILES.get(name):
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
    _check_pattern(draft, ("finished",), source.finished)
    _check_failed(draft, source)
    _check_names(draft, source)
    pseudo = Step.model_construct(parse=source.figures, assert_=source.assert_)
    step_checks.check_parse(draft, "", pseudo, ())


def _check_failed(draft: Draft, source: ToolFile) -> None:
    for pattern, meaning in source.meanings.items():
        loc = ("failed",) if isinstance(source.failed, str) else ("failed", pattern)
        if _check_pattern(draft, loc, pattern):
            groups = re.compile(pattern).groupindex
            for name in set(re.findall(r"\{(\w+)\}", meaning)) - set(groups):
                hint = did_you_mean(name, groups, "groups") or f"name it in the pattern: (?P<{name}>...)"
                draft.complain(loc, f"the pattern has no group `{name}`", hint)


def _check_names(draft: Draft, source: ToolFile) -> None:
    if source.suite and source.suite.names:
        loc = ("suite", "names")
        _check_pattern(draft, loc, source.suite.names)
        if "(?P<name>" not in source.suite.names:
            draft.complain(loc, "the pattern has no group `name`", "names: '^(?P<name>Bench\\S+) '")
    known = source.parse.units if source.parse else {}
    if source.distribution and source.distribution not in known:
        hint = did_you_mean(source.distribution, known, "metrics with a unit") or "units: {time: s}"
        draft.complain(("distribution",), f"`units` of `parse` has no entry for `{source.distribution}`", hint)
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
    if source.suite and source.parse is None:
        hint = "parse: {regex: '(?P<benchmark>\\S+) took (?P<time>[0-9.]+) ms', units: {time: ms}}"
        draft.complain(("suite",), "a suite needs `parse`, which reads its figures", hint, key=True)
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
        elif path[0] == ONLY and loc[:2] != ("suite", "only") and (source.role != "profile" or loc[0] == "prepare"):
            message = "`only` is defined only in `suite: {only: ...}`, and in a tool that profiles"
            draft.complain(loc, message, "move the expression there", find=ONLY)
        elif path[0] == WITH and (len(path) < 2 or path[1] not in source.with_):
            key = path[1] if len(path) > 1 else ""
            hint = did_you_mean(key, source.with_, "keys of `with`")
            draft.complain(loc, f"`with` has no key `{key}`", hint, find=key or WITH)


def _check_pattern(draft: Draft, loc: tuple[str, ...], pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        draft.complain(loc, f"invalid regular expression: {error}", "use the syntax of Python's re module")
        return False
    return True


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
        if step.uses in registry.FILES:
            step.adopt(of_perfflow(step.uses))
        elif step.uses and is_tool_file(step.uses):
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


@cache
def of_perfflow(name: str) -> DeclaredTool:
    """Return one of perfflow's own tools that are tool files. Raises UserError if its file is damaged."""
    tool, problems = load_tools(registry.FILES[name])
    if tool is None:
        raise UserError(problems)
    return tool


def load_tools(path: Path, readable: Readable | None = None) -> tuple[DeclaredTool | None, tuple[Problem, ...]]:
    """Read one tool file. Return its tool, or None if there are errors, and its problems.

    readable: folders that may be read; by default the folder of the file, so that a link out of it is refused.
    """
    return read_tool(path, readable or Readable.of(path.parent))
