"""JSON answers of the server's tools, with schemas: parts of result.json, without samples and diffs.

Numbers are in base units, shares are fractions of 1. Keys have the same meaning as in result.json, whose folder each
answer names.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from perfflow.model.result import (
    Attribution,
    Bounds,
    Decision,
    HotspotResult,
    Level,
    Number,
    Recommendation,
    RouteTaken,
    TargetResult,
    Verification,
)


class Answer(BaseModel):
    """Base of every answer. Keys that a later version of perfflow adds are dropped."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class WorkflowEntry(Answer):
    """A workflow that can be run by name. ``origin`` is ``project``, ``lib:NAME``, or another source."""

    name: str
    path: str
    description: str
    origin: str


class ToolEntry(Answer):
    """A tool for ``uses:``. ``note`` explains how to install it if it is not ``available``."""

    name: str
    available: bool
    version: str | None
    note: str


class Listing(Answer):
    """Workflows and tools that can be run here."""

    workflows: list[WorkflowEntry]
    tools: list[ToolEntry]


class PlannedStep(Answer):
    """A step as it would run: its commands by side, and what it needs but is missing.

    ``prepare``: commands before every sample, by side.
    """

    id: str
    stage: str
    tool: str
    role: str
    benchmark: str
    needs: list[str]
    argv: dict[str, list[str]]
    prepare: dict[str, list[str]] = {}
    missing: str
    outcome: str
    technique: str | None = None
    changes: list[str] = []


class PlanAnswer(Answer):
    """The steps of a workflow in order. ``expected``: the expected duration."""

    workflow: str
    steps: list[PlannedStep]
    expected: dict[str, Any]


class ProblemEntry(Answer):
    """One mistake, its place, and a hint how to fix it."""

    severity: str
    message: str
    hint: str
    rule: str
    file: str | None
    line: int | None
    column: int | None


class CheckedFile(Answer):
    """One workflow file. ``steps`` is null if the file could not be planned."""

    file: str
    valid: bool
    steps: int | None
    problems: list[ProblemEntry]


class Validation(Answer):
    """All mistakes in some workflow files."""

    files: list[CheckedFile]


class Side(Answer):
    """One side of a row, with its number of samples ``n``."""

    value: Number
    low: Number
    high: Number
    n: int


class Row(Answer):
    """One metric of one benchmark. ``gating``: it decides the verdict. ``more``: further pairs that would settle it."""

    name: str
    metric: str
    statistic: str
    unit: str
    better: Literal["lower", "higher", "none"]
    baseline: Side | None
    candidate: Side | None
    change: Bounds | None
    speedup: Bounds | None
    decision: Decision | None
    level: Level | None
    gating: bool
    why: str = ""
    pairs: int
    more: int | None
    accepted: str = ""
    warnings: list[str]


class FailedStep(Answer):
    """A step that failed, and the last lines of its output."""

    id: str
    stage: str
    status: str
    reason: str
    tail: list[str] = []


class Tried(Answer):
    """One candidate of the optimize stage. ``effect``: relative improvement over its baseline; larger is better."""

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
    files: list[str] = []
    lines: int = 0
    diff_file: str = ""
    revision: str | None = None
    tail: list[str] = []


class RunAnswer(Answer):
    """A run that ended or was interrupted.

    ``folder``: contains its files, such as ``report.md`` and ``result.json``. ``text``: the report for humans.
    ``branch``: has a commit for each accepted candidate. ``resume``: the id to resume an interrupted run.
    ``notes``: remarks about the call.
    """

    id: str
    folder: str
    workflow: str
    interrupted: bool
    resume: str | None = None
    seconds: float | None = None
    verdict: Literal["pass", "fail", "unproven", "error"] | None
    gate: Literal["pass", "fail"] | None
    branch: str | None = None
    reasons: list[str]
    benchmarks: list[Row]
    targets: list[TargetResult]
    verification: list[Verification]
    optimizations: list[Tried]
    failed_steps: list[FailedStep]
    attributions: list[Attribution]
    recommendations: list[Recommendation]
    routes: list[RouteTaken]
    warnings: list[str]
    notes: list[str] = []
    text: str


class Judgement(Answer):
    """The decision on a patch: ``kept`` if its checks pass, its effect is proven, and nothing else got worse.

    ``not judged``: the run ended before the patch; ``run`` has the reason. ``reason`` and ``tried`` have the figures.
    A patch that is kept becomes the commit ``revision``. The working tree is not changed. ``patch_file`` has a copy.
    """

    decision: Literal["kept", "rejected", "not judged"]
    reason: str
    tried: Tried | None
    revision: str | None
    branch: str | None
    patch_file: str
    run: RunAnswer


class Hotspot(HotspotResult):
    """A place in the code with its share, and its current source lines.

    ``lines`` start at line number ``first_line``. ``lines_note`` explains why there are none.
    """

    first_line: int
    lines: list[str]
    lines_note: str


class Hotspots(Answer):
    """The hotspots of a run, the largest first. ``note`` explains why there are none, or that there are more."""

    run: str
    folder: str
    hotspots: list[Hotspot]
    note: str = ""


class Commit(Answer):
    """A commit."""

    revision: str
    subject: str
    author: str = ""
    date: str = ""


class FirstBad(Commit):
    """The commit that introduced the regression, the files that it changed, and the size of the regression."""

    files: list[str]
    change: Bounds | None


class TriedRevision(Answer):
    """One measured revision of a bisection, and its change from the good revision."""

    revision: str
    subject: str
    decision: str
    change: Bounds | None
    pairs: int
    reason: str
    seconds: float


class Regressed(Answer):
    """A regression between good and bad."""

    benchmark: str
    metric: str
    step: str
    change: Bounds | None
    confidence: float | None


class Bisection(Answer):
    """bisect.json. ``first_bad`` is null unless ``outcome`` is ``found``. ``left``: the remaining candidates."""

    outcome: Literal["found", "narrowed", "same", "unproven", "not measured", "interrupted"]
    why: str
    good: Commit
    bad: Commit
    regression: Regressed | None
    first_bad: FirstBad | None
    left: list[Commit]
    tried: list[TriedRevision]
    others: list[Regressed]
    notes: list[str]
