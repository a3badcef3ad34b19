"""result.json: the one file in which measuring and judging meet, and the only input of every report.

Values are in base units; ``change`` is candidate/baseline - 1; ``speedup`` above 1 is better whatever the direction.
A number that is not finite is null.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import to_jsonable_python

from perfflow.errors import UserError
from perfflow.rundir.json_text import json_lines
from perfflow.samples.criteria import criteria_from_json

SCHEMA: Literal["perfflow.result/1"] = "perfflow.result/1"
GATE = "review:gate:perf"
HAS_TARGET = "has a target"
"""Why a row is gating although another metric times the benchmark."""
CONCERN, ACCEPTED, ALLOWED = "concern: ", "accepted until ", "failed (allowed): "
UNMEASURED = "nothing was measured: "
WARNED = (CONCERN, ACCEPTED, ALLOWED, UNMEASURED)
"""How those reasons begin that stand beside a verdict without being why it is what it is."""
STORED = "stored"
"""Kind of a tree that is no state of the code, but a stored set of samples: with label, tool, version, machine."""


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


Number = Annotated[float | None, BeforeValidator(_finite)]


class Part(BaseModel):
    """Base of every part; later versions may add keys."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class RunInfo(Part):
    """Which run this is. Times are RFC 3339 in UTC; ``seconds`` is what it took.

    Of stored results that were compared: the ``command`` that did it, and ``across_machines`` where they are from two.
    ``warnings`` are about the run or the comparison as a whole.
    """

    id: str
    workflow: str
    component: str
    started: str
    finished: str | None
    seconds: float | None = None
    seed: int
    file: str = ""
    params: dict[str, Any] = {}
    version: str = ""
    budget: float | None = None
    """Seconds for all measuring together, where there was a limit."""
    judged_by: list[str] = []
    """Other thresholds than the run's own, as they were given to judge it again."""
    interrupted: bool = False
    digest: str = ""
    """Of the workflow and its parameters, by which a run is gone on with."""
    resumed: list[str] = []
    """When the run was gone on with."""
    template: Literal["report", "analysis"] = "report"
    """Layout of the report."""
    accept: Number = None
    """The least proven effect for which a candidate is kept, as a share; None without an optimize stage."""
    guard: list[str] = []
    """Globs of benchmarks that the optimize stage was told to guard: all of their metrics gate."""
    ruled_out: dict[str, str] = {}
    """Techniques of the optimization hierarchy that have no candidate, and why."""
    command: list[str] = []
    across_machines: bool = False
    data_missing: list[str] = []
    """Globs under ``data`` that matched no file when the run started."""
    warnings: list[str] = []


class Gate(Part):
    """What other systems read."""

    name: str = GATE
    status: Literal["pass", "fail"]


class StepResult(Part):
    """How one step went."""

    id: str
    stage: str
    tree: str
    tool: str
    status: Literal["done", "failed", "skipped", "timeout", "cached"]
    reason: str
    seconds: float
    argv: list[str]
    exit_code: int | None
    warnings: list[str]
    role: str = "work"
    benchmark: str = ""
    log: str = ""
    outputs: dict[str, str] = {}
    allowed: bool = False
    metric: str | None = None
    expect: list[str] | None = None
    """None in files of earlier versions, which cannot be judged again."""
    selected: bool = True
    technique: str = ""
    why: str = ""
    ended: bool = True
    identical: bool = False
    not_started: bool = False
    scaling: dict[str, Any] | None = None
    """Of a size of a benchmark whose growth is fitted: its key, size, own name and that of all sizes together."""
    scenario: str = ""
    confirms: list[str] = []


class Sample(Part):
    """One side of a row. ``readings`` is there when values have more to them: a distribution, or being a bound."""

    value: Number
    low: Number
    high: Number
    n: int
    samples: list[float]
    readings: list[dict[str, Any]] | None = None
    screened: list[float] = []


class Bounds(Part):
    """An estimate with its interval."""

    value: Number
    low: Number
    high: Number


class Expected(Part):
    """What calibrating this machine found: spread of ln ratios, smallest change told, in how many seconds, when."""

    noise: Number
    smallest_change: Number
    within: Number
    calibrated: str


Decision = Literal["improved", "regressed", "same", "unproven", "not measured", "new", "removed"]
Level = Literal["ok", "concern", "action"]


class Benchmark(Part):
    """One metric of one benchmark. ``gating`` rows are those a verdict rests on.

    ``leading`` rows are those a verdict would rest on, if two sets without pairs had any.
    """

    name: str
    step: str
    tool: str
    metric: str
    statistic: str
    unit: str
    better: Literal["lower", "higher", "none"]
    confidence: float | None
    baseline: Sample | None
    candidate: Sample | None
    change: Bounds | None
    speedup: Bounds | None
    decision: Decision | None
    level: Level | None
    gating: bool
    pairs: int
    paired: bool = True
    leading: bool = False
    design: str | None = None
    """How its samples were taken; None in files of earlier versions, which cannot be judged again."""
    stopped: str = ""
    """Why its measuring ended: settled, last look, budget, total budget; empty where the workflow says how many."""
    more: int | None
    warnings: list[str]
    why: str = ""
    expected: Expected | None = None
    accepted: str = ""
    """``until DATE: WHY`` of the trade-off by which a row passes that is beyond its own action threshold."""


class TargetResult(Part):
    """One requirement on one benchmark."""

    benchmark: str
    metric: str
    statistic: str
    requirement: str
    measured: Number
    low: Number
    high: Number
    unit: str
    status: Literal["met", "not met", "unproven", "not measured"]
    detail: str = ""


class Grown(Part):
    """How one side grows: the exponent of the size, and the class whose curve comes closest to it."""

    exponent: Bounds
    best: str
    sizes: list[float]


class Growth(Part):
    """How a metric grows with the matrix key that ``scaling`` names, on each side where there are two.

    ``worse`` and ``better`` are proven: the exponents' intervals lie apart, and in other classes.
    """

    benchmark: str
    metric: str
    key: str
    baseline: Grown | None
    candidate: Grown | None
    decision: Literal["worse", "better", "same", "unproven"] | None
    detail: str = ""


class ProfileResult(Part):
    """A profile on disk, its path relative to the run's folder."""

    step: str
    benchmark: str
    tree: str
    path: str
    sha256: str
    kind: str = ""


class HotspotResult(Part):
    """A place in the code with its share (0..1); ``impact`` is what removing it would save, by Amdahl's law.

    ``share`` is what it is ranked by: of a sampling profiler, the samples of the function itself and of what it calls
    in libraries. ``self_share`` is without any callee, ``inclusive_share`` with all of them; null where unknown.
    """

    rank: int
    step: str
    benchmark: str
    tree: str
    location: str
    file: str
    line: int
    share: float
    unit: str
    source: str
    cause: str
    impact: str
    self_share: float | None = None
    inclusive_share: float | None = None
    function: str = ""
    """Of Python in the tree: the function that the line stands in, by its source; ``<module>`` where in none."""
    begins: int = 0
    """The first line of that function."""
    uses: list[str] = []
    """What the source shows the line to do, such as ``in a loop``."""


class Cheaper(Part):
    """A technique before another one in the optimization hierarchy, and what had become of it when that was tried."""

    technique: str
    status: Literal["tried", "ruled out", "open"]
    detail: str = ""


class Optimization(Part):
    """One try of the optimize stage. ``effect`` is a share of the tree it was measured against, up is better.

    ``before`` and ``after`` are in base units; ``bound`` is the share of its hotspot, the most it could bring;
    ``revision`` is the commit of what was kept; ``diff_file`` is relative to the run's folder.
    """

    id: str
    technique: str
    why: str
    decision: Literal["accepted", "rejected", "skipped"]
    reason: str
    benchmark: str = ""
    metric: str = ""
    unit: str = ""
    effect: Bounds | None = None
    before: Number = None
    after: Number = None
    pairs: int = 0
    bound: Number = None
    diff: str = ""
    diff_file: str = ""
    files: list[str] = []
    lines: int = 0
    env: dict[str, str] = {}
    params: dict[str, Any] = {}
    revision: str | None = None
    cheaper: list[Cheaper] = []
    """The cheaper techniques, in the order of the hierarchy."""


class CommitInfo(Part):
    """A commit between base and head that touched a place: its full revision, its subject, and who wrote it."""

    revision: str
    subject: str
    author: str = ""


class Attribution(Part):
    """A function that costs more on the candidate, of a benchmark that regressed.

    ``baseline`` and ``candidate`` are its own cost per operation (per run where no ``ops`` is known) in ``unit``,
    ``share`` is its part of all that the benchmark lost; ``crate`` is the crate or package it belongs to, ``region``
    the name that the workflow gives the area. ``commits`` touched its lines, newest first; empty where unknown.
    """

    benchmark: str
    metric: str
    step: str
    tool: str
    function: str
    file: str = ""
    line: int = 0
    crate: str = ""
    region: str = ""
    unit: str
    baseline: Number
    candidate: Number
    change: Number
    share: Number
    commits: list[CommitInfo] = []
    note: str = ""
    """What keeps this from being certain, such as too few samples."""
    samples: list[int] = []
    """Of a sampling profiler, how many it took of each side; empty of others."""
    region_share: Number = None
    """The part of all that the benchmark lost which the functions of its region have together."""


class Recommendation(Part):
    """Advice that a rule gives on what this run found; ``evidence`` is what it found, with its figures."""

    finding: str
    advice: str
    evidence: str
    rule: str = ""
    benchmark: str = ""


class Brief(Part):
    """What whoever a run is routed to needs to begin: one line each, names as they are."""

    regressed: list[str] = []
    thresholds: list[str] = []
    hotspots: list[str] = []
    commands: list[str] = []


class RouteTaken(Part):
    """The rule that matched first, and where it sends the run."""

    rule: str
    to: str
    why: str
    brief: Brief = Brief()


class Verification(Part):
    """The outcome of one correctness step."""

    id: str
    status: Literal["passed", "failed", "skipped", "not run"]
    detail: str


class Result(Part):
    """The whole file."""

    schema_: Literal["perfflow.result/1"]
    run: RunInfo
    verdict: Literal["pass", "fail", "unproven", "error"]
    gate: Gate
    evidence: list[str]
    reasons: list[str] = []
    machine: dict[str, Any]
    trees: dict[str, dict[str, Any] | None]
    steps: list[StepResult]
    benchmarks: list[Benchmark]
    targets: list[TargetResult]
    growth: list[Growth] = []
    profiles: list[ProfileResult]
    hotspots: list[HotspotResult]
    optimizations: list[Optimization]
    verification: list[Verification]
    attributions: list[Attribution] = []
    recommendations: list[Recommendation]
    confirmations: list[dict[str, Any]]
    routes: list[RouteTaken]
    criteria: dict[str, Any]
    data: dict[str, str] | None = None

    model_config = ConfigDict(
        extra="ignore", frozen=True, alias_generator=lambda name: name.rstrip("_"), populate_by_name=True
    )


def to_text(result: Result) -> str:
    """The file's text: the same result gives the same bytes."""
    return "".join(chunks(result))


def chunks(result: Result) -> Iterator[str]:
    """The file's text part by part: that of many benchmarks is too much to hold several times."""
    parts = ((about.alias or name, getattr(result, name)) for name, about in Result.model_fields.items())
    return json_lines(parts, lambda value: _nulled(to_jsonable_python(value, by_alias=True)))


def _nulled(data: Any) -> Any:
    """Numbers that are not finite as null, also inside what the workflow brought along."""
    if isinstance(data, dict):
        return {key: _nulled(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_nulled(value) for value in data]
    return _finite(data)


def read(path: Path) -> Result:
    """Read a result file. Raises UserError when it is missing, truncated or of another kind."""
    try:
        result = Result.model_validate_json(path.read_bytes())
        criteria_from_json(result.criteria)
    except OSError as error:
        raise UserError.of(f"{path}: {error.strerror}", "name a run's folder or its result.json") from error
    except ValidationError as error:
        raise _foreign(path) or _invalid(path, error) from error
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        text = f"{path}: its criteria cannot be read ({type(error).__name__}: {error})"
        raise UserError.of(text, "`perfflow report` can rebuild it from events.jsonl beside it") from error
    return result


def _invalid(path: Path, error: ValidationError) -> UserError:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    what = f"{where}: {first['msg']}" if where else first["msg"]
    hint = "the file may be truncated; `perfflow report` can rebuild it from events.jsonl beside it"
    return UserError.of(f"{path}: not a result of perfflow ({what})", hint)


def _foreign(path: Path) -> UserError | None:
    """The error for a whole file that is another version's, or another tool's; None for what is just damaged."""
    from perfflow.imports.read import OWN, kind_of

    schema, tool = kind_of(path)
    if schema.startswith(OWN) and schema != SCHEMA:
        text = f"{path}: its schema is {schema!r}, and this version of perfflow reads {SCHEMA!r}"
        return UserError.of(text, "read it with the version of perfflow that wrote it")
    if tool:
        text = f"{path}: a result file of {tool}, not of perfflow"
        return UserError.of(text, "`perfflow compare` reads it: perfflow compare OLD-RESULT NEW-RESULT")
    return None
