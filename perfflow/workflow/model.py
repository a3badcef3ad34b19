"""The workflow file as pydantic models: the words of the format, their types, and one line about each.

``schemas/workflow.schema.json`` is generated from here, and the reference in docs is checked against it. What one
value alone cannot tell (unique ids, known steps, units of targets) is checked in ``checks`` and in ``plan``.
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
    model_validator,
)

from perfflow.model.metrics import Better
from perfflow.model.peaks import Precision

STAGES = ("setup", "build", "baseline", "profile", "optimize", "verify")
"""Stages with a meaning of their own, in the order in which they belong."""
DOING = ("uses", "run", "argv")
"""Keys of a step that say what it does; each step has one of them."""
MAX_CELLS = 256
"""Cells of one matrix, as many as GitHub Actions allows."""
Scalar = str | int | float | bool
Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)]
StageName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$", max_length=100)]
StepId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=100)]
Template = Annotated[str, StringConstraints(pattern=r"\$\{\{")]
"""A text that holds ``${{ }}`` where another type is expected once it is rendered."""


def _number_as_text(value: object) -> object:
    """YAML reads ``10`` as a number where a text is meant."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _scalar_as_text(value: object) -> object:
    """Environment values are texts; YAML reads ``1`` and ``true`` as other types."""
    return str(value).lower() if isinstance(value, bool) else _number_as_text(value)


_TEXT_OR_NUMBER = WithJsonSchema({"type": ["string", "number"]})
_TEXT_OR_SCALAR = WithJsonSchema({"type": ["string", "number", "boolean"]})
Text = Annotated[str, BeforeValidator(_number_as_text), _TEXT_OR_NUMBER]
EnvText = Annotated[str, BeforeValidator(_scalar_as_text), _TEXT_OR_SCALAR]
Env = dict[str, EnvText]


def _expression_as_list(value: object) -> object:
    """One expression, whose value is the list, stands for a list of it: its items take its place."""
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


def _alias(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


class WorkflowPart(BaseModel):
    """Base of every part of a workflow file: unknown keys are errors, nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=_alias, defer_build=True)


class Param(WorkflowPart):
    """One parameter. The short form is just the default, whose type is the type."""

    default: Scalar | list[Scalar] | None = Field(None, description="value without --set; none means it is required")
    type: Literal["string", "integer", "number", "boolean", "list"] | None = Field(
        None, description="type of the value"
    )
    enum: list[Scalar] | None = Field(None, description="the allowed values")
    help: str = Field("", description="one line for `perfflow show`")

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        return value if isinstance(value, dict) else {"default": value}


class Parse(WorkflowPart):
    """How to read figures from a command's output; ``units`` has an entry for every metric."""

    file: str = Field("", description="file to read, from the working directory; default: standard output")
    json_: dict[str, str] | None = Field(None, description="metric -> path such as results[].mean")
    regex: str | list[str] | None = Field(None, description="patterns with named groups: metrics, and `benchmark`")
    csv: dict[str, str] | None = Field(None, description="metric -> column; `benchmark` -> the column of names")
    units: dict[str, str] = Field(default_factory=dict, description="metric -> unit of the text, such as ms or GiB/s")
    better: dict[str, Annotated[Better, Strict(False)]] = Field(
        default_factory=dict, description="metric -> lower, higher or none"
    )
    decimal: Literal["point", "comma"] | None = Field(
        None, description="what marks decimals in regex and csv; default: a point, and what may be either is refused"
    )


class Work(WorkflowPart):
    """Work done by one run, or by one of its ``ops``: turns time into throughput, rate and flops."""

    bytes: float | Template | None = Field(None, description="bytes processed; gives throughput")
    elements: float | Template | None = Field(None, description="elements processed; gives rate")
    flops: float | Template | None = Field(None, description="floating-point operations; gives flops")
    precision: Precision | None = Field(None, description="of the floating-point operations: whose peak they have")


class Requires(WorkflowPart):
    """What the step needs; unmet, it is skipped and named."""

    gpu: int | None = Field(None, description="number of GPUs")
    tool: list[str] | str | None = Field(
        None, description="programs on PATH, such as ncu>=2022.3; may use params and matrix"
    )
    label: list[str] | str | None = Field(
        None, description="labels given by PERFFLOW_LABELS; may use params and matrix"
    )


class RunsOn(WorkflowPart):
    """Where the step is measured. The short form is a label, or several. The texts may use params and matrix."""

    labels: list[str] | str = Field(default_factory=list, description="what the machine must offer, such as zen4")
    gpus: int | Template = Field(0, description="number of GPUs")
    gpu_type: str = Field("", description="kind of GPU as the cluster names it, such as h100")
    exclusive: bool = Field(True, description="whether nothing else may run on the machine meanwhile")
    minutes: Annotated[int, Field(ge=1, le=60 * 24 * 30)] | Template | None = Field(
        None, description="time limit of the cluster's job; default: by the expected time"
    )
    node: str = Field("", description="this machine alone, by its name")

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        return {"labels": value} if isinstance(value, str | list) else value


class Candidate(WorkflowPart):
    """The other side of a comparison where it stands: another command, settings or tree."""

    command: str | list[Text] | None = Field(None, description="the command instead of the baseline's")
    with_: dict[str, Any] = Field(default_factory=dict, description="`with` keys that differ")
    params: dict[str, Scalar] = Field(default_factory=dict, description="parameters that differ")
    env: Env = Field(default_factory=dict, description="environment that differs")
    ref: str | None = Field(None, description="a git revision")
    patch: str | None = Field(None, description="a patch file, relative to the workflow")
    matrix: dict[str, list[Scalar]] | None = Field(None, description="alternatives of which the best is kept")
    stdout: str | None = Field(None, description="where its output goes, if elsewhere")

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        return {"command": value} if isinstance(value, str | list) else value


class Variants(WorkflowPart):
    """Two benchmarks of one suite that are compared; ``*`` is the benchmark's name."""

    baseline: str = Field(description='such as "*/scalar"')
    candidate: str = Field(description='such as "*/simd"')


class Ready(WorkflowPart):
    """When a background step counts as started: one of these."""

    port: Annotated[int, Field(ge=1, le=65535)] | Template | None = Field(
        None, description="a TCP port on this machine that accepts connections"
    )
    url: str | None = Field(None, description="an http address that answers with a status below 500")
    regex: str | None = Field(None, description="found in a line of its output; named groups are outputs")


class Matrix(BaseModel):
    """Every combination of the listed values is one cell; an item ``${{ }}`` that is a list stands for its items."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, defer_build=True)
    __pydantic_extra__: dict[str, Axis] = Field(init=False)

    include: list[dict[str, Scalar]] = Field(default_factory=list, description="further cells")
    exclude: list[dict[str, Scalar]] = Field(default_factory=list, description="combinations left out")

    @property
    def axes(self) -> Mapping[str, list[Scalar]]:
        """The keys and their values."""
        return self.__pydantic_extra__


class Step(WorkflowPart):
    """One command or one tool call."""

    id: StepId = Field("", description="unique in the file; default: the stage's name and a number")
    name: str = Field("", description="a longer name for people")
    uses: str | None = Field(None, description="a tool, see `perfflow list`")
    with_: dict[str, Any] = Field(default_factory=dict, description="the tool's own keys")
    run: str | None = Field(None, description="shell text")
    argv: list[Text] | None = Field(None, description="a program and its arguments, no shell")
    shell: str | None = Field(None, description="default: bash -eo pipefail")
    env: Env = Field(default_factory=dict, description="environment variables")
    working_directory: str | None = Field(None, description="default: the root of the tree")
    needs: list[str] | str | None = Field(None, description="ids of steps that come first; [] starts at once")
    if_: str | bool | None = Field(None, description="one expression without ${{ }}")
    timeout: Duration | None = Field(None, description="limit of one process, with a unit")
    retries: int | None = Field(None, ge=0, le=100, description="further tries; refused on a step that measures")
    continue_on_error: bool = Field(False, description="go on after a failure, shown as failed (allowed)")
    matrix: Matrix | None = Field(None, description="run once for every combination")
    requires: Requires | None = Field(None, description="skip the step where this is missing")
    runs_on: RunsOn | None = Field(None, description="where it is measured: labels, or labels, gpus, node and so on")
    artifacts: list[str] = Field(default_factory=list, description="files kept with the run, as globs")
    background: bool = Field(False, description="a service that later steps use, stopped at the end")
    ready: Ready | None = Field(None, description="when the service counts as started")
    alone: bool | None = Field(None, description="whether the step has the machine to itself")
    allow: dict[str, str] = Field(default_factory=dict, description="rule -> why it does not apply here")
    # Measuring.
    benchmark: str | None = Field(None, description="whose numbers these are")
    ops: int | list[int] | Template | None = Field(
        None, description="operations of one run; two numbers give the slope"
    )
    work: Work | None = Field(None, description="work of one run or operation")
    expect: list[str] = Field(default_factory=list, description="benchmarks that must appear")
    runs: Count | Template | None = Field(None, description="samples of each side")
    warmup: Annotated[int, Field(ge=0, le=1000)] | Template | None = Field(
        None, description="discarded runs before them"
    )
    budget: Duration | None = Field(None, description="time for measuring")
    metric: str | None = Field(None, description="the timing metric the verdict rests on; default auto")
    stdout: str | None = Field(None, description="where its output goes: discard (the default), pipe or a file")
    parse: Parse | None = Field(None, description="how to read figures from the output")
    assert_: dict[str, Any] | None = Field(None, description="metric -> requirement; makes the step a check")
    candidate: Candidate | None = Field(None, description="the other side of a comparison")
    variants: Variants | None = Field(None, description="two benchmarks of this suite that are compared")
    compare: Literal["baseline"] | None = Field(None, description="compare what was kept with the original")
    confirm: int | None = Field(None, ge=1, le=10, description="confirmations of what stands out")
    layouts: int | str | None = Field(
        None, description="fresh code layouts of each side: a number from 5 on, auto or off"
    )
    scaling: str | None = Field(None, description="matrix key along which the growth is fitted")
    scenario: Literal["synthetic", "realistic"] | None = Field(None, description="kind of evidence")
    confirms: list[str] | str | None = Field(None, description="benchmarks this realistic one confirms")
    candidates: bool = Field(True, description="false: a check that runs once at the end")
    # Candidates of the optimize stage.
    technique: str | None = Field(None, description="algorithm ... caching, or configuration")
    why: str | None = Field(None, description="the reason for this candidate")
    hotspot: str | None = Field(None, description="the hotspot it works on; its share bounds the effect")
    patch: str | None = Field(None, description="a patch file, relative to the workflow")
    ref: str | None = Field(None, description="a git revision")
    params: dict[str, Scalar] | None = Field(None, description="parameters that hold for this candidate")
    propose: str | None = Field(None, description="a program that is given a brief and edits the tree")
    _declared: Any = PrivateAttr(None)

    @property
    def declared(self) -> Any:
        """The tool that the file named by ``uses`` defines, None where it names none or is wrong."""
        # Asked for several times for each step, and pydantic looks for a private attribute in four places.
        return self._declared if self.uses else None

    def adopt(self, tool: object) -> None:
        """Keep the tool of a tool file, once it is read."""
        self._declared = tool


class Stage(WorkflowPart):
    """A list of steps, or a map with defaults for them; the optimize stage has keys of its own."""

    steps: list[Step] = Field(default_factory=list)
    role: Literal["work", "measure", "profile", "check"] | None = Field(
        None, description="of a stage of your own: what it is for; default: work"
    )
    env: Env = Field(default_factory=dict, description="environment of its steps")
    if_: str | bool | None = Field(None, description="condition of its steps")
    working_directory: str | None = Field(None, description="of its steps")
    shell: str | None = Field(None, description="of its steps")
    timeout: Duration | None = Field(None, description="of its steps")
    objective: list[str] | str | None = Field(None, description="optimize: benchmark and metric, or several")
    guard: list[str] | None = Field(
        None, description="optimize: benchmarks, perhaps with a metric, that must not regress"
    )
    accept: Text | None = Field(None, description="optimize: least proven effect, 10%")
    diminishing: Text | None = Field(None, description="optimize: stop below this effect, 2%")
    attempts: Count | None = Field(None, description="optimize: tries of a proposer")
    forbid: list[str] | None = Field(None, description="optimize: files a candidate may not touch")
    max_diff: Count | None = Field(None, description="optimize: most changed lines")
    check: list[str] | str | None = Field(None, description="optimize: steps that must pass on a candidate")
    ruled_out: dict[str, str] | None = Field(None, description="optimize: technique -> why it has no candidate")

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        return {"steps": value} if isinstance(value, list) else value


class Defaults(WorkflowPart):
    """Defaults of every step."""

    working_directory: str | None = Field(None, description="default: the root of the tree")
    env: Env = Field(default_factory=dict, description="environment variables")
    shell: str | None = Field(None, description="default: bash -eo pipefail")
    timeout: Duration | None = Field(None, description="limit of one process")
    runs_on: RunsOn | None = Field(None, description="of steps that measure or profile")


class Worktree(WorkflowPart):
    """What other trees need from the user's."""

    share: list[str] = Field(default_factory=list, description="ignored paths, such as .venv")
    submodules: bool = Field(False, description="check out submodules")


class Route(WorkflowPart):
    """Where a finding goes; the first rule that matches wins."""

    if_: str | bool = Field(description="one expression over the run's facts")
    to: str = Field(description="who or what comes next")
    why: str = Field("", description="the reason")


class MemoryThresholds(WorkflowPart):
    """How much more memory is a concern, and how much fails a gate."""

    concern: Text | None = Field(None, description="default: 5%")
    action: Text | None = Field(None, description="default: 10%")


class Accepted(WorkflowPart):
    """A regression that is justified until a date."""

    benchmark: str = Field(description="a glob")
    metric: str | None = Field(None, description="the metric; default: the one that decides")
    change: Text = Field(description="the largest change it covers, such as 8%")
    why: str = Field(description="the reason")
    until: str = Field(description="YYYY-MM-DD")


class Report(WorkflowPart):
    """What the report looks like."""

    formats: list[Literal["markdown", "html"]] = ["markdown"]
    template: Literal["report", "analysis"] = Field("report")


Requirement = Scalar | dict[str, Scalar] | None
"""``<10μs``, a bare number, or ``{min, max}``; read by ``units`` once the metric is known."""


class Header(WorkflowPart):
    """Everything of a workflow file but its stages."""

    perfflow: Literal[1] = Field(description="format version")
    name: str = Field("", description="default: the file's name")
    component: str = Field("", description="title of the report; default: name")
    description: str = Field("", description="one line for `perfflow list`")
    extends: str | list[str] | None = Field(
        None, description="lib:NAME, a path, pkg:NAME/PATH, git+URL@REV#PATH, or a list of these: later ones win"
    )
    params: dict[Identifier, Param] = Field(default_factory=dict, description="perfflow run FILE --set NAME=VALUE")
    env: Env = Field(default_factory=dict, description="environment of every step")
    # Made without their validators, which would be built with the module, and are parts of this one's.
    defaults: Defaults = Defaults.model_construct()
    targets: dict[str, dict[str, Requirement]] = Field(default_factory=dict, description="benchmark -> requirements")
    thresholds: dict[str, Text | dict[str, Text]] = Field(default_factory=dict, description="concern, action, floor")
    memory_thresholds: MemoryThresholds | Literal["off"] = Field(
        MemoryThresholds.model_construct(),
        description="of rss, heap_peak, alloc and allocs; off: only targets and guards judge them",
    )
    accepted: list[Accepted] = Field(default_factory=list)
    data: list[str] = Field(default_factory=list, description="input files whose hashes go into the receipt")
    worktree: Worktree = Worktree.model_construct()
    routes: list[Route] = Field(default_factory=list)
    regions: dict[str, str] = Field(default_factory=dict, description="name -> glob of functions")
    peaks: dict[str, Text] = Field(default_factory=dict, description="what `of peak` refers to")
    report: Report = Report.model_construct()


class Workflow(Header):
    """A whole workflow file."""

    stages: dict[StageName, Stage] = Field(description="name -> steps, in order")


def as_data(value: Any, *, by_alias: bool = False) -> Any:
    """Return what ``model_dump(mode="json", exclude_unset=True)`` of a part does: what is written, in no order.

    A workflow is put together of parts that were validated one by one, so a serializer of the whole would have to be
    built for this alone.
    """
    if isinstance(value, BaseModel):
        keys, own = _keys(type(value), by_alias), value.__dict__
        extra = value.__pydantic_extra__ or {}
        value = {keys[name]: own[name] for name in value.model_fields_set if name in keys} | extra
    # Most values are plain already: a call for each would be half of the cost of a further step.
    if isinstance(value, dict):
        return {key: item if type(item) in _PLAIN else as_data(item, by_alias=by_alias) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [item if type(item) in _PLAIN else as_data(item, by_alias=by_alias) for item in value]
    return value.value if isinstance(value, Enum) else value


_PLAIN = frozenset({str, int, float, bool, type(None)})


@cache
def _keys(model: type[BaseModel], by_alias: bool) -> Mapping[str, str]:
    """The key of each field of a part."""
    return {name: (by_alias and about.alias) or name for name, about in model.model_fields.items()}
