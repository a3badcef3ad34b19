"""Answers from stored runs. Starts nothing and writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from platformdirs import user_cache_path

from perfflow.cli.mcp_server.answers import FailedStep, Hotspot, Hotspots, Row, RunAnswer, Tried
from perfflow.cli.mcp_server.limits import Limits
from perfflow.jobs.export.export import read_result
from perfflow.model.errors import UserError
from perfflow.model.readings import Side
from perfflow.model.result import HotspotResult, Result, StepResult
from perfflow.model.version import tree_of
from perfflow.report import terminal
from perfflow.store import run_folder
from perfflow.tools import regular_files

WIDTH = 100
_MOST_ROWS = 100
_MOST_SOURCE = 2_000_000
"""Largest source file whose lines are shown, in bytes."""
_COMPARISONS = "compare"
"""Folder with the runs of compared commands, in the user's cache."""


def folder_named(limits: Limits, name: str) -> Path:
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
    found = run_folder.find(limits.root, str(limits.root / run_folder.HOME / "runs" / name))
    raise UserError.of(f"{found}: no run there")


def folder_of(limits: Limits, result: Result) -> Path:
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
        branch=tree_of(result.trees, Side.CANDIDATE).branch or None,
        reasons=result.reasons,
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


def hotspots(limits: Limits, folder: Path, benchmark: str, most: int, context: int) -> Hotspots:
    """Return the hotspots of a run with the current source lines of the project.

    ``benchmark``: only of this one, '' for all. ``context``: lines before and after. Raises UserError.
    """
    result = result_of(folder)
    known = sorted({item.benchmark for item in result.hotspots})
    if benchmark and result.hotspots and benchmark not in known:
        raise UserError.of(f"no hotspot of {benchmark!r}", f"benchmarks with hotspots: {', '.join(known)}")
    found = [item for item in result.hotspots if benchmark in ("", item.benchmark)]
    note = f"{len(found) - most} more; ask with a larger `limit`" if len(found) > most else ""
    if not result.hotspots:
        note = "the run has no profile: run a workflow whose `profile` stage names a profiler, such as `uses: auto`"
    shown = [_with_lines(limits, item, context) for item in found[:most]]
    return Hotspots(run=folder.name, folder=str(folder), hotspots=shown, note=note)


def _failed(step: StepResult) -> bool:
    return step.status in ("failed", "timeout") or (step.status == "skipped" and step.selected and bool(step.reason))


def _with_lines(limits: Limits, item: HotspotResult, context: int) -> Hotspot:
    first, lines, note = 0, list[str](), ""
    if not item.file or item.line < 1:
        note = "the profile does not name a line"
    else:
        try:
            first, lines = _lines(limits.inside(item.file), item.line, context)
            note = "" if lines else f"{item.file} has fewer lines now than when it was profiled"
        except UserError:
            note = f"{item.file} is outside the project"
        except OSError as error:
            note = f"{item.file}: {error.strerror}"
    return Hotspot(**item.model_dump(), first_line=first, lines=lines, lines_note=note)


def _lines(path: Path, line: int, context: int) -> tuple[int, list[str]]:
    """Return the lines around a line, and the number of the first. Empty if the file is too short."""
    text = regular_files.read(path, _MOST_SOURCE).decode("utf-8", "replace").splitlines()
    first = max(1, line - context)
    return (first, text[first - 1 : line + context]) if line <= len(text) else (0, [])


def _comparisons() -> Path:
    return user_cache_path("perfflow") / _COMPARISONS
