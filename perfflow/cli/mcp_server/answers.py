"""Make the JSON answers of the server's tools from stored runs, and write a submitted patch as a workflow.

- Schemas of the answers: parts of result.json, without samples and diffs. Keys have the same meaning as in result.json,
  whose folder each answer names. Numbers are in base units, shares are fractions of 1.
- Answers from stored runs. This starts nothing and writes nothing.
- ``submit`` writes a patch, and a workflow that has it as its only candidate. Both files are kept for humans to read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from platformdirs import user_cache_path
from pydantic import BaseModel, ConfigDict

from perfflow.cli.mcp_server.limits import MOST_PATCH, SessionLimits
from perfflow.jobs.export.export import read_result
from perfflow.jobs.judge import submit as judging
from perfflow.jobs.judge.submit import Technique
from perfflow.library import search_path
from perfflow.model.errors import UserError
from perfflow.model.readings import Side as TreeSide
from perfflow.model.result import (
    Attribution,
    Bounds,
    Decision,
    HotspotResult,
    Level,
    Recommendation,
    Result,
    RouteTaken,
    StepResult,
    TargetResult,
    Verification,
)
from perfflow.model.result_part import Number
from perfflow.model.tree_facts import tree_of
from perfflow.report import terminal
from perfflow.store import run_folder
from perfflow.tools import regular_files
from perfflow.workflow.roles import CANDIDATES_STAGE


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


WIDTH = 100
_MOST_ROWS = 100
_MOST_SOURCE = 2_000_000
"""Largest source file whose lines are shown, in bytes."""
_COMPARISONS = "compare"
"""Folder with the runs of compared commands, in the user's cache."""


def folder_named(limits: SessionLimits, name: str) -> Path:
    """Return the folder of a run of the project, or of a comparison of two commands, by its id.

    Raises UserError if there is no such run, or if it is still running.
    """
    name = limits.run_name(name)
    run_folder.require_own(limits.root)
    for place in (limits.root / run_folder.HOME / "runs" / name, _comparisons() / name):
        if (place / run_folder.EVENTS).is_file():
            for file in (run_folder.EVENTS, run_folder.RESULT):
                if (place / file).is_symlink():
                    raise UserError.of(f"{place / file} is a link", "delete it")
            run_folder.require_ended(place)
            return place.resolve()
    folder = run_folder.find(limits.root, str(limits.root / run_folder.HOME / "runs" / name))
    raise UserError.of(f"{folder}: no run there")


def folder_of(limits: SessionLimits, result: Result) -> Path:
    """Return the folder of a run that has just ended."""
    return Path(result.run.out) if result.run.out else limits.root / run_folder.HOME / "runs" / result.run.id


def result_of(folder: Path) -> Result:
    """Return a stored result. Raises UserError if there is none."""
    return read_result(folder)


def run_answer(result: Result, folder: Path, notes: Sequence[str] = ()) -> RunAnswer:
    """Return a result without samples and diffs. Rows that decide the verdict come first."""
    rows = sorted(result.benchmarks, key=lambda row: (not row.gating, row.decision in (None, "same")))
    notes = list(notes)
    if len(rows) > _MOST_ROWS:
        notes.append(f"{len(rows) - _MOST_ROWS} rows that do not decide the verdict are left out; result.json has them")
    run = result.run
    text = terminal.render(result, width=WIDTH, color=False, unicode=True, where=str(folder), evidence=True)
    return RunAnswer(
        id=folder.name,
        folder=str(folder),
        workflow=run.workflow,
        interrupted=run.interrupted,
        resume=folder.name if run.interrupted and not run.out else None,
        seconds=run.seconds,
        verdict=result.verdict,
        gate=result.gate.status if result.gate else None,
        branch=tree_of(result.trees, TreeSide.CANDIDATE).branch or None,
        reasons=result.reason_texts,
        benchmarks=[Row.model_validate(row.model_dump()) for row in rows[:_MOST_ROWS]],
        targets=result.targets,
        verification=result.verification,
        optimizations=[Tried.model_validate(item.model_dump()) for item in result.optimizations],
        failed_steps=[FailedStep.model_validate(step.model_dump()) for step in result.steps if _failed(step)],
        attributions=result.attributions,
        recommendations=result.recommendations,
        routes=result.routes,
        warnings=[*run.warnings, *(f"{step.id}: {text}" for step in result.steps for text in step.warnings)],
        notes=notes,
        text=text,
    )


def hotspots(limits: SessionLimits, folder: Path, benchmark: str, most: int, context: int) -> Hotspots:
    """Return the hotspots of a run with the current source lines of the project.

    ``benchmark``: only of this one, '' for all. ``context``: lines before and after. Raises UserError.
    """
    result = result_of(folder)
    known = sorted({item.benchmark for item in result.hotspots})
    if benchmark and result.hotspots and benchmark not in known:
        raise UserError.of(f"no hotspot of {benchmark!r}", f"benchmarks with hotspots: {', '.join(known)}")
    chosen = [item for item in result.hotspots if benchmark in ("", item.benchmark)]
    note = f"{len(chosen) - most} more; ask with a larger `limit`" if len(chosen) > most else ""
    if not result.hotspots:
        note = "the run has no profile: run a workflow whose `profile` stage names a profiler, such as `uses: auto`"
    shown = [_with_lines(limits, item, context) for item in chosen[:most]]
    return Hotspots(run=folder.name, folder=str(folder), hotspots=shown, note=note)


def _failed(step: StepResult) -> bool:
    return step.status in ("failed", "timeout") or (step.status == "skipped" and step.selected and bool(step.reason))


def _with_lines(limits: SessionLimits, hotspot: HotspotResult, context: int) -> Hotspot:
    first, lines, note = 0, list[str](), ""
    if not hotspot.file or hotspot.line < 1:
        note = "the profile does not name a line"
    else:
        try:
            first, lines = _lines(limits.inside(hotspot.file), hotspot.line, context)
            note = "" if lines else f"{hotspot.file} has fewer lines now than when it was profiled"
        except UserError:
            note = f"{hotspot.file} is outside the project"
        except OSError as error:
            note = f"{hotspot.file}: {error.strerror}"
    return Hotspot(**hotspot.model_dump(), first_line=first, lines=lines, lines_note=note)


def _lines(path: Path, line: int, context: int) -> tuple[int, list[str]]:
    """Return the lines around a line, and the number of the first. Empty if the file is too short."""
    text = regular_files.read(path, _MOST_SOURCE).decode("utf-8", "replace").splitlines()
    first = max(1, line - context)
    return (first, text[first - 1 : line + context]) if line <= len(text) else (0, [])


def _comparisons() -> Path:
    return user_cache_path("perfflow") / _COMPARISONS


@dataclass(frozen=True)
class Submitted:
    """A patch that perfflow can run: the written files, the id of the candidate, and the stages to run."""

    workflow: Path
    patch: Path
    step: str
    stages: tuple[str, ...]


def submit(
    limits: SessionLimits, workflow: str, steps: Sequence[Mapping[str, Any]], patch: str, why: str, technique: Technique
) -> Submitted:
    """Write the patch, and a workflow that extends ``workflow`` with it as the only candidate.

    ``steps``: the steps of the workflow's plan. Raises UserError for a patch that is empty or too large.
    """
    file = limits.root / workflow
    extends = file if file.is_file() else f"{search_path.LIB}{workflow.removeprefix(search_path.LIB)}"
    roles = [(str(step["id"]), str(step["role"])) for step in steps]
    written = judging.submit(limits.root, extends, roles, [judging.Patch("", _data(patch), why, technique)])
    (step,) = written.patches
    return Submitted(written.workflow, written.folder / f"{step}.patch", step, _stages(steps))


def require_stage(workflow: str, resolved: Mapping[str, Any]) -> None:
    """Raise UserError for a workflow, as printed by ``perfflow show --resolved``, without an optimize stage."""
    if CANDIDATES_STAGE not in resolved["workflow"]["stages"]:
        hint = "`plan` shows its stages; a human can add an `optimize` stage, with or without candidates"
        text = f"{workflow} has no stage {CANDIDATES_STAGE!r}, so it does not define when a patch is accepted"
        raise UserError.of(text, hint)


def _data(patch: str) -> bytes:
    try:
        data = patch.encode()
    except UnicodeEncodeError as error:
        raise UserError.of("the patch is not UTF-8", "submit the output of `git diff`") from error
    if not patch.strip():
        raise UserError.of("the patch is empty", "submit a unified diff, such as the output of `git diff`")
    if len(data) > MOST_PATCH:
        raise UserError.of(
            f"the patch has {len(data):,} bytes; {MOST_PATCH:,} are allowed", "change one thing at a time"
        )
    return data if data.endswith(b"\n") else data + b"\n"


def _stages(steps: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return all stages except those that only profile: profiles of the unpatched code decide nothing."""
    working = dict.fromkeys(str(step["stage"]) for step in steps if step["role"] != "profile")
    return (*(name for name in working if name != CANDIDATES_STAGE), CANDIDATES_STAGE)
