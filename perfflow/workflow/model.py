"""Pydantic models of the workflow file: its keys, their types, and one line about each.

``schemas/workflow.schema.json`` is generated from these models, and the reference in docs is checked against them.
Rules that involve several values (unique ids, known steps, units of targets) are checked in ``checks`` and ``plan``.
"""

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    Strict,
    StringConstraints,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)

from perfflow.model.metrics import Better
from perfflow.model.peaks import Precision
from perfflow.model.similar import kebab
from perfflow.workflow import written_numbers

COMMAND = "command"
"""The tool that times a command."""
OUTPUT_VARIABLE = "PERFFLOW_OUTPUT"
"""Environment variable with the path of a file to which a step's command appends name=value lines."""
STAGES = ("setup", "build", "baseline", "profile", "optimize", "verify")
"""Stages with a predefined meaning, in their usual order."""
DOING = ("uses", "run", "argv")
"""Keys that define the action of a step; each step has exactly one of them."""
MAX_CELLS = 256
"""Most cells of one matrix; GitHub Actions has the same limit."""
Scalar = Annotated[str | int | float | bool, WrapValidator(written_numbers.keep)]
Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)]
StageName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$", max_length=100)]
StepId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=100)]
Template = Annotated[str, StringConstraints(pattern=r"\$\{\{")]
"""A string with ``${{ }}`` that is rendered to another type."""


def _number_as_text(value: object) -> object:
    """Convert a number to a string: YAML reads an unquoted ``10`` as a number."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _scalar_as_text(value: object) -> object:
    """Convert a number or boolean to a string: environment values are strings."""
    return str(value).lower() if isinstance(value, bool) else _number_as_text(value)


_TEXT_OR_NUMBER = WithJsonSchema({"type": ["string", "number"]})
_TEXT_OR_SCALAR = WithJsonSchema({"type": ["string", "number", "boolean"]})
Text = Annotated[str, BeforeValidator(_number_as_text), _TEXT_OR_NUMBER]
EnvText = Annotated[str, BeforeValidator(_scalar_as_text), _TEXT_OR_SCALAR]
Env = dict[str, EnvText]


def _expression_as_list(value: object) -> object:
    """Wrap a single expression in a list; when it is rendered, the items of its value replace it."""
    return [value] if isinstance(value, str) and "${{" in value else value


_SCALARS = {"type": "array", "items": {"type": ["string", "number", "boolean"]}}
Axis = Annotated[
    list[Scalar],
    BeforeValidator(_expression_as_list),
    WithJsonSchema({"anyOf": [_SCALARS, {"type": "string", "pattern": r"\$\{\{"}]}),
]
"""Values of one key of a matrix."""
Duration = Annotated[str, BeforeValidator(_number_as_text), WithJsonSchema({"type": "string", "examples": ["90s"]})]
Count = Annotated[int, Field(ge=1, le=10**9)]


class WorkflowPart(BaseModel):
    """Base of every part of a workflow file: unknown keys are errors, and instances are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=kebab, defer_build=True)


class Param(WorkflowPart):
    """A parameter. The short form is the default value alone; its type becomes the type of the parameter."""

    default: Scalar | list[Scalar] | None = Field(
        None, description="value if --set gives none; without a default the parameter is required"
    )
    type: Literal["string", "integer", "number", "boolean", "list"] | None = Field(
        None, description="type of the value; default: the type of `default`"
    )
    enum: list[Scalar] | None = Field(None, description="allowed values")
    help: str = Field("", description="one line of help, shown by `perfflow show`")

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        return value if isinstance(value, dict) else {"default": value}

    @property
    def kind(self) -> str:
        """Its type: as written, else the type of its default, else ``string``."""
        return self.type or written_numbers.type_of(self.default)


Paths = dict[str, str | list[str]]
"""Metric -> path or column; only ``benchmark`` may have several."""


class Parse(WorkflowPart):
    """How to read figures from the output of a command; ``units`` has an entry for every metric."""

    file: str = Field("", description="file to read, relative to the working directory; default: standard output")
    json_: Paths | None = Field(
        None,
        description="metric -> path in a JSON document, such as results[].mean; `benchmark` -> the path of the names, "
        "or several paths whose values are joined by /",
    )
    jsonl: Paths | None = Field(None, description="the same for output whose lines are JSON objects")
    regex: str | list[str] | None = Field(
        None, description="regular expressions with named groups: one group for each metric, and `benchmark`"
    )
    csv: Paths | None = Field(
        None, description="metric -> column of a CSV table; `benchmark` -> the column with the names, or several"
    )
    units: dict[str, str] = Field(
        default_factory=dict, description="metric -> unit of the number in the output, such as ms or GiB/s"
    )
    better: dict[str, Annotated[Better, Strict(False)]] = Field(
        default_factory=dict, description="metric -> lower, higher or none"
    )
    decimal: Literal["point", "comma"] | None = Field(
        None, description="decimal separator in regex and csv; default: point, and ambiguous numbers are errors"
    )
    samples: bool = Field(
        False, description="figures of one name are samples of one benchmark; default: two of them are an error"
    )


class Work(WorkflowPart):
    """Work done by one run, or by each of its ``ops``; perfflow computes throughput, rate and flops from it."""

    bytes: float | Template | None = Field(None, description="bytes processed; gives throughput")
    elements: float | Template | None = Field(None, description="elements processed; gives rate")
    flops: float | Template | None = Field(None, description="floating-point operations; gives flops")
    precision: Precision | None = Field(
        None, description="precision of the floating-point operations; selects the peak they are compared with"
    )


class Requires(WorkflowPart):
    """Requirements of a step. If one is not met, the step is skipped and the report names it."""

    gpu: int | None = Field(None, description="number of GPUs")
    tool: list[str] | str | None = Field(
        None, description="programs on PATH, such as ncu>=2022.3; expressions may use params and matrix"
    )
    label: list[str] | str | None = Field(
        None, description="labels of this machine, from PERFFLOW_LABELS; expressions may use params and matrix"
    )


class RunsOn(WorkflowPart):
    """The machine on which a step is measured. The short form is one label or a list of labels.

    Expressions may use ``params`` and ``matrix``.
    """

    labels: list[str] | str = Field(default_factory=list, description="labels the machine must have, such as zen4")
    gpus: int | Template = Field(0, description="number of GPUs")
    gpu_type: str = Field("", description="type of GPU as the cluster names it, such as h100")
    exclusive: bool = Field(True, description="true: no other job may run on the machine at the same time")
    minutes: Annotated[int, Field(ge=1, le=60 * 24 * 30)] | Template | None = Field(
        None, description="time limit of the cluster job in minutes; default: from the expected time"
    )
    node: str = Field("", description="name of the only machine that may be used")

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        return {"labels": value} if isinstance(value, str | list) else value


class Candidate(WorkflowPart):
    """The candidate side of a comparison within one step: another command, settings or tree."""

    command: str | list[Text] | None = Field(None, description="command of the candidate; default: as the baseline")
    with_: dict[str, Any] = Field(default_factory=dict, description="`with` keys that differ from the baseline")
    params: dict[str, Scalar] = Field(default_factory=dict, description="parameters that differ from the baseline")
    env: Env = Field(default_factory=dict, description="environment variables that differ from the baseline")
    ref: str | None = Field(None, description="git revision of the candidate")
    patch: str | None = Field(None, description="patch file, relative to the workflow")
    matrix: dict[str, list[Scalar]] | None = Field(None, description="alternatives; the best one is kept")
    stdout: str | None = Field(None, description="destination of its output, if it differs from the baseline")

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        return {"command": value} if isinstance(value, str | list) else value


class Variants(WorkflowPart):
    """Two variants of the benchmarks of a suite that are compared; ``*`` stands for the name of the benchmark."""

    baseline: str = Field(description='benchmarks of the baseline, such as "*/scalar"')
    candidate: str = Field(description='benchmarks of the candidate, such as "*/simd"')


class Ready(WorkflowPart):
    """The condition under which a background step counts as started: exactly one of these keys."""

    port: Annotated[int, Field(ge=1, le=65535)] | Template | None = Field(
        None, description="TCP port on this machine that accepts connections"
    )
    url: str | None = Field(None, description="http URL that answers with a status below 500")
    regex: str | None = Field(
        None, description="regular expression that matches a line of its output; named groups become outputs"
    )


class Matrix(BaseModel):
    """Each combination of the listed values is one cell. An expression whose value is a list adds each of its items."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, defer_build=True)
    __pydantic_extra__: dict[str, Axis] = Field(init=False)

    include: list[dict[str, Scalar]] = Field(default_factory=list, description="additional cells")
    exclude: list[dict[str, Scalar]] = Field(default_factory=list, description="combinations to leave out")

    @property
    def axes(self) -> Mapping[str, list[Scalar]]:
        """The keys and their values."""
        return self.__pydantic_extra__


ORIGINAL = "baseline"
"""The value of ``compare`` for the original code, with which the kept candidates are compared."""


class Step(WorkflowPart):
    """One command or one tool call."""

    id: StepId = Field("", description="unique id of the step; default: the name of the stage and a number")
    name: str = Field("", description="longer name for readers")
    uses: str | None = Field(None, description="name of a tool (see `perfflow list`) or path of a tool file")
    with_: dict[str, Any] = Field(default_factory=dict, description="options of the tool")
    run: str | None = Field(
        None, description="command to run; a stage that measures times it, other stages run it as a shell script"
    )
    argv: list[Text] | None = Field(None, description="program and its arguments, run without a shell")
    shell: str | None = Field(None, description="shell for `run`; default: bash -eo pipefail")
    env: Env = Field(default_factory=dict, description="environment variables of the step")
    working_directory: str | None = Field(None, description="working directory; default: the root of the tree")
    needs: list[str] | str | None = Field(
        None, description="ids of steps that must finish first; [] lets the step start at once"
    )
    if_: str | bool | None = Field(
        None, description="condition: the step runs if it is true; one expression without ${{ }}"
    )
    timeout: Duration | None = Field(None, description="time limit of one process, with a unit")
    retries: int | None = Field(
        None, ge=0, le=100, description="number of retries after a failure; not allowed on a step that measures"
    )
    continue_on_error: bool = Field(
        False, description="continue the run if the step fails; it is shown as failed (allowed)"
    )
    matrix: Matrix | None = Field(
        None, description="run the step once for each combination of values: {key: [values], include, exclude}"
    )
    requires: Requires | None = Field(None, description="{tool, gpu, label}; the step is skipped if one is missing")
    runs_on: RunsOn | None = Field(
        None, description="machine to measure on: a label, a list of labels, or a map with labels, gpus, node, ..."
    )
    artifacts: list[str] = Field(default_factory=list, description="globs of files to keep in steps/ID/artifacts")
    background: bool = Field(
        False, description="start a service that later steps use; it is stopped at the end of the run"
    )
    ready: Ready | None = Field(None, description="condition under which the service counts as started")
    alone: bool | None = Field(None, description="true: no other step runs at the same time")
    allow: dict[str, str] = Field(default_factory=dict, description="rule -> reason why it does not apply to this step")
    # Measuring.
    benchmark: str | None = Field(
        None, description="name of the benchmark; default: the step id, or the names that a suite prints"
    )
    ops: int | list[int] | Template | None = Field(
        None, description="operations per run, by which totals are divided; two numbers measure the slope"
    )
    work: Work | None = Field(
        None, description="amount of work per run or operation: {bytes, elements, flops, precision}"
    )
    expect: list[str] = Field(default_factory=list, description="globs of benchmarks that must appear")
    runs: Count | Template | None = Field(
        None, description="fixed number of samples of each side, judged once at the end"
    )
    warmup: Annotated[int, Field(ge=0, le=1000)] | Template | None = Field(
        None, description="number of warm-up runs, whose results are discarded"
    )
    prepare: str | list[str] | None = Field(
        None, description="command, or list of commands, to run before every sample; not timed"
    )
    budget: Duration | None = Field(
        None, description="longest time to measure one benchmark; default: 20s, in a gate the time that is left"
    )
    metric: str | None = Field(
        None,
        description="timing metric that decides the verdict: auto (the default), time, cpu, uncontended or service_cpu",
    )
    stdout: str | None = Field(
        None, description="destination of the program's output: discard (the default), pipe or a file"
    )
    parse: Parse | None = Field(
        None, description="how to read figures from the output: {json, jsonl, regex or csv, file, units, ...}"
    )
    assert_: dict[str, Any] | None = Field(None, description="metric -> requirement; makes the step a check")
    candidate: Candidate | None = Field(
        None, description="the other side of a comparison: a command, or {command, with, params, env, stdout}"
    )
    variants: Variants | None = Field(None, description="two variants of the suite's benchmarks to compare")
    compare: str | None = Field(
        None,
        description="matrix key whose first value is the baseline of its other values; or `baseline`: compare the kept "
        "candidates with the original code",
    )
    confirm: int | None = Field(
        None,
        ge=1,
        le=10,
        description="how often fresh pairs must confirm a regression over `concern`; default: 1 if more than 12 "
        "benchmarks are compared or one process measures several, else 0",
    )
    rounds: Literal["suite", "benchmark"] | None = Field(
        None, description="what one process of a suite measures: suite (all benchmarks that are undecided) or benchmark"
    )
    layouts: int | str | None = Field(
        None, description="number of fresh code layouts of each side, from 5 to 64, or auto or off"
    )
    scaling: str | None = Field(
        None, description="matrix key with the sizes over which the growth is fitted, or with numbers of `threads`"
    )
    scenario: Literal["synthetic", "realistic"] | None = Field(
        None, description="kind of benchmark: synthetic or realistic"
    )
    confirms: list[str] | str | None = Field(
        None, description="globs of synthetic benchmarks that this realistic one confirms"
    )
    candidates: bool = Field(True, description="false: the check runs once at the end instead of on every candidate")
    # Candidates of the optimize stage.
    technique: str | None = Field(
        None, description="technique of this candidate, such as algorithm, caching or configuration"
    )
    why: str | None = Field(None, description="reason for this candidate")
    hotspot: str | None = Field(
        None, description="glob of functions or files that it changes; their share limits its effect"
    )
    patch: str | None = Field(None, description="patch file, relative to the workflow")
    ref: str | None = Field(None, description="git revision")
    params: dict[str, Scalar] | None = Field(None, description="parameters that this candidate changes")
    propose: str | None = Field(None, description="program that receives a brief and edits the tree")
    _declared: Any = PrivateAttr(None)
    _timed: bool = PrivateAttr(False)

    @property
    def axis(self) -> str:
        """The matrix key whose values are compared, '' for none."""
        is_key = self.compare != ORIGINAL or (self.matrix is not None and ORIGINAL in self.matrix.axes)
        return self.compare if self.compare and is_key else ""

    @property
    def timed(self) -> bool:
        """Whether `run` or `argv` is a program to time, because its stage measures. Then it is as `uses: command`."""
        return self._timed

    def time(self) -> None:
        """Mark ``run`` or ``argv`` as a program to time."""
        self._timed = True

    @property
    def tool_name(self) -> str:
        """The name of its tool to show; ``run`` for a command without a tool."""
        return self.uses or (COMMAND if self._timed else "run")

    @property
    def declared(self) -> Any:
        """The tool defined by the tool file that ``uses`` names; None if there is no such file or it is invalid."""
        # Read several times for each step, and pydantic looks for a private attribute in four places.
        return self._declared if self.uses else None

    def adopt(self, tool: object) -> None:
        """Store the tool that was read from a tool file."""
        self._declared = tool


class Holdout(WorkflowPart):
    """Inputs outside of the tree, on which a candidate must print what its base prints. No message shows them."""

    files: list[str] | str = Field(description="globs of input files, relative to the workflow file")
    run: Text = Field(description="command that reads `${{ holdout.file }}`")
    relative: float = Field(0.0, ge=0, description="allowed difference of numbers, as a share of the base's")
    absolute: float = Field(0.0, ge=0, description="allowed absolute difference of numbers")


class Stage(WorkflowPart):
    """A list of steps, or a map with ``steps`` and defaults for them; some keys belong to the optimize stage."""

    steps: list[Step] = Field(default_factory=list, description="its steps")
    role: Literal["work", "measure", "profile", "check"] | None = Field(
        None, description="role of a stage whose name is not predefined; default: work"
    )
    env: Env = Field(default_factory=dict, description="environment variables of its steps")
    if_: str | bool | None = Field(None, description="condition of its steps")
    working_directory: str | None = Field(None, description="working directory of its steps")
    shell: str | None = Field(None, description="shell of its steps")
    timeout: Duration | None = Field(None, description="time limit of each process of its steps")
    objective: list[str] | str | None = Field(
        None, description="optimize: one or several benchmarks, each with its metric, to improve"
    )
    guard: list[str] | None = Field(
        None, description="optimize: benchmarks that must not regress, each optionally with a metric"
    )
    accept: Text | None = Field(
        None, description="optimize: smallest proven effect for a candidate to be kept; default: 10%"
    )
    diminishing: Text | None = Field(None, description="optimize: stop below this effect; default: 2%")
    attempts: Count | None = Field(None, description="optimize: attempts of each proposer; default: 3")
    forbid: list[str] | None = Field(None, description="optimize: globs of files that a candidate must not change")
    allow: list[str] | None = Field(
        None, description="optimize: globs of files that a candidate may change although `protect` covers them"
    )
    max_diff: Count | None = Field(None, description="optimize: most lines that a candidate may change")
    check: list[str] | str | None = Field(
        None, description="optimize: commands that must pass on a candidate, besides the checks after the stage"
    )
    ruled_out: dict[str, str] | None = Field(None, description="optimize: technique -> reason why it has no candidate")
    isolate: Literal["strict", "auto", "off"] | None = Field(
        None,
        description="optimize: run candidates in a sandbox: strict (or refuse), auto (if possible) or off; default: "
        "strict for patches of others and of `propose`, else off",
    )
    protect: Literal["tests", "off"] | None = Field(
        None,
        description="optimize: forbid changes of tests, of their settings and data, and of the build's settings; "
        "default: tests for patches of others and of `propose`, else off",
    )
    holdout: Holdout | None = Field(
        None, description="optimize: inputs that a candidate cannot know: {files, run, relative, absolute}"
    )

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        return {"steps": value} if isinstance(value, list) else value


class Defaults(WorkflowPart):
    """Defaults of every step."""

    working_directory: str | None = Field(None, description="working directory; default: the root of the tree")
    env: Env = Field(default_factory=dict, description="environment variables")
    shell: str | None = Field(None, description="shell for `run`; default: bash -eo pipefail")
    timeout: Duration | None = Field(None, description="time limit of one process")
    runs_on: RunsOn | None = Field(None, description="machine for steps that measure or profile")


class Worktree(WorkflowPart):
    """Parts of the user's tree that perfflow makes available in the trees it creates."""

    share: list[str] = Field(default_factory=list, description="paths that git ignores, such as .venv")
    submodules: bool | Literal["auto"] = Field(
        "auto", description="fill submodules in each tree; auto: those that are checked out in yours"
    )


class Route(WorkflowPart):
    """A rule that routes the result of a run; the first matching rule applies."""

    if_: str | bool = Field(description="condition: one expression over the facts of the run")
    to: str = Field(description="recipient or next step")
    why: str = Field("", description="reason for the rule")


class MemoryThresholds(WorkflowPart):
    """Thresholds for memory growth."""

    concern: Text | None = Field(None, description="growth that causes a warning; default: 5%")
    action: Text | None = Field(None, description="growth that fails a gate; default: 10%")


class OwnThresholds(WorkflowPart):
    """Thresholds of the benchmarks that a glob matches; what is missing is as for all other benchmarks."""

    concern: Text | None = Field(None, description="change for the worse that causes a warning; default: 5%")
    action: Text | None = Field(None, description="change for the worse that fails a gate; default: 10%")
    floor: Text | None = Field(None, description="changes below it never count; default: 2%")
    memory: MemoryThresholds | Literal["off"] | None = Field(
        None, description="thresholds for rss, heap_peak, alloc and allocs; off: only targets and guards judge memory"
    )


class Thresholds(OwnThresholds):
    """Thresholds of all benchmarks, and of some."""

    for_: dict[str, OwnThresholds] = Field(
        default_factory=dict, description="glob of benchmarks -> their own thresholds"
    )


class Accepted(WorkflowPart):
    """A regression that is accepted until a date."""

    benchmark: str = Field(description="glob of the benchmarks")
    metric: str | None = Field(None, description="metric that may get worse; default: the metric that decides")
    change: Text = Field(description="largest accepted change, such as 8%")
    why: str = Field(description="reason")
    until: str = Field(description="last day on which it is accepted, YYYY-MM-DD")


class Report(WorkflowPart):
    """Files and template of the report."""

    formats: list[Literal["markdown", "html"]] = Field(
        ["markdown", "html"],
        description="files that a run writes; without html no report.html (report.md is always written)",
    )
    template: str = Field(
        "report",
        description="layout of report.md: report, analysis (baseline, bottlenecks, plan, after), or a file of your own "
        "beside the workflow, such as report.md.j2",
    )


Requirement = Scalar | dict[str, Scalar] | None
"""``<10μs``, a bare number, or ``{min, max}``; ``units`` parses it once the metric is known."""


class Header(WorkflowPart):
    """All keys of a workflow file except ``stages``."""

    perfflow: Literal[1] = Field(description="version of the file format: 1; required")
    name: str = Field("", description="name of the workflow; default: the file name")
    component: str = Field("", description="title of the report; default: name")
    description: str = Field("", description="one line, shown by `perfflow list`")
    extends: str | list[str] | None = Field(
        None,
        description="workflows to extend: lib:NAME, a path, pkg:NAME/PATH or git+URL@REV#PATH; maps are merged by key, "
        "lists of steps by id, and later ones win; `ID: null` removes an inherited step",
    )
    params: dict[Identifier, Param] = Field(
        default_factory=dict,
        description="parameters: name -> default, or {default, type, enum, help}; `--set NAME=VALUE` sets one",
    )
    env: Env = Field(default_factory=dict, description="environment variables of every step")
    # Constructed without validators: those would be built on import, and are part of this model's validator anyway.
    defaults: Defaults = Field(
        Defaults.model_construct(),
        description="values for every step: working-directory, env, shell, timeout and runs-on",
    )
    targets: dict[str, dict[str, Requirement]] = Field(
        default_factory=dict, description="benchmark -> metric -> requirement"
    )
    thresholds: Thresholds = Field(
        Thresholds.model_construct(),
        description="how much worse a benchmark may get: {concern, action, floor, memory, for}",
    )
    ignore: list[str] = Field(
        default_factory=list, description="globs of benchmarks that are measured and shown, but never decide"
    )
    accepted: list[Accepted] = Field(
        default_factory=list,
        description="regressions that pass until a date: {benchmark, metric, change, why, until}",
    )
    data: list[str] = Field(default_factory=list, description="input files whose hashes are recorded in the receipt")
    worktree: Worktree = Field(
        Worktree.model_construct(),
        description="what other trees get: {share: ignored paths, submodules: auto (those that are checked out), true, "
        "false}",
    )
    routes: list[Route] = Field(
        default_factory=list, description="where findings go: {if, to, why}; the first rule that matches wins"
    )
    regions: dict[str, str] = Field(default_factory=dict, description="name -> glob of functions")
    peaks: dict[str, Text] = Field(default_factory=dict, description="metric -> peak of the machine, for `of peak`")
    report: Report = Field(
        Report.model_construct(),
        description="{template: report, analysis or a file, formats}; `formats: [markdown]` writes no report.html",
    )


class Workflow(Header):
    """A workflow file."""

    stages: dict[StageName, Stage] = Field(description="name -> list of steps, or {steps, role, ...}; in this order")


def as_data(value: Any, *, by_alias: bool = False) -> Any:
    """Return the same data as ``model_dump(mode="json", exclude_unset=True)``, with keys in any order.

    The parts of a workflow are validated one by one, so pydantic would have to build a serializer of the whole for
    this call alone.
    """
    if isinstance(value, BaseModel):
        keys, fields = _keys(type(value), by_alias), value.__dict__
        extra = value.__pydantic_extra__ or {}
        value = {keys[name]: fields[name] for name in value.model_fields_set if name in keys} | extra
    # Most values are plain already; a call for each would take half of the time that one more step costs.
    if isinstance(value, dict):
        return {key: item if type(item) in _PLAIN else as_data(item, by_alias=by_alias) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [item if type(item) in _PLAIN else as_data(item, by_alias=by_alias) for item in value]
    return value.value if isinstance(value, Enum) else value


_PLAIN = frozenset({str, int, float, bool, type(None)})


@cache
def _keys(model: type[BaseModel], by_alias: bool) -> Mapping[str, str]:
    """Return the key of each field of a part."""
    return {name: (by_alias and about.alias) or name for name, about in model.model_fields.items()}
