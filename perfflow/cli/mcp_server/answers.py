"""Make the answers of the server's tools from stored runs, and write a submitted patch as a workflow.

- An answer is brief: what decides, and where the rest is. With ``detail`` it has the parts of result.json, without
  samples and diffs, and the report in words. Keys have the same meaning as in result.json. Numbers are in base units,
  shares are fractions of 1.
- Answers from stored runs. This starts nothing and writes nothing.
- ``submit`` writes a patch, and a workflow that has it as its only candidate. Both files are kept for humans to read.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from perfflow.cli.mcp_server.limits import MOST_PATCH, SessionLimits
from perfflow.jobs.export.export import read_result
from perfflow.jobs.judge import submit as judging
from perfflow.jobs.judge.submit import Technique
from perfflow.library import search_path
from perfflow.model.errors import UserError
from perfflow.model.judging import Code
from perfflow.model.readings import HOTSPOT
from perfflow.model.readings import Side as TreeSide
from perfflow.model.result import Benchmark, Bounds, HotspotResult, Optimization, Result, StepResult
from perfflow.model.tree_facts import tree_of
from perfflow.report import terminal
from perfflow.store import run_folder
from perfflow.tools import regular_files
from perfflow.verdict.attribution import current
from perfflow.workflow.roles import CANDIDATES_STAGE

Answer = dict[str, Any]
"""An answer, to be sent as JSON."""
WIDTH = 100
_MOST_SOURCE = 2_000_000
"""Largest source file whose lines are shown, in bytes."""
_MOST_BYTES = 3_600
"""Size of a brief answer: less than 1,000 tokens of a language model, of about four bytes each."""
_MOST_TEXT = 400
"""Characters of a text in a brief answer."""
_TAIL = 8
"""Lines that a failed program printed last, in a brief answer."""
_COMPARISONS = "compare"
"""Folder with the runs of compared commands, in the user's cache."""


def sent(answer: Answer, *, detail: bool = False) -> str:
    """Return an answer as compact JSON.

    Unless ``detail`` is asked for, numbers have four digits, long texts are cut, and the longest lists lose their ends
    until the answer is small; ``left_out`` then has the number of entries that are missing.
    """
    if detail:
        return _compact(answer)
    answer, left_out = _brief(answer), Counter[str]()
    while len(text := _compact(answer).encode()) > _MOST_BYTES:
        sizes = {key: len(_compact(item)) for key, item in answer.items() if isinstance(item, list) and item}
        if not sizes:
            break
        longest = max(sizes, key=sizes.__getitem__)
        answer[longest].pop()
        left_out[longest] += 1
        answer["left_out"] = {**left_out, "hint": "ask with detail: true"}
    return text.decode()


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _brief(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.4g}") if math.isfinite(value) else None
    if isinstance(value, str):
        return value if len(value) <= _MOST_TEXT else f"{value[:_MOST_TEXT]}..."
    if isinstance(value, list):
        return [_brief(item) for item in value]
    return {key: _brief(item) for key, item in value.items()} if isinstance(value, dict) else value


def _given(**parts: Any) -> Answer:
    """Return the parts that say something."""
    return {key: value for key, value in parts.items() if value not in (None, "", [], {})}


def listing(data: Mapping[str, Any], *, detail: bool) -> Answer:
    """Return the workflows and tools of ``perfflow list --json``; briefly, others than the project's by name."""
    if detail:
        return {"workflows": data["workflows"], "tools": data["tools"]}
    own = [item for item in data["workflows"] if item["origin"] == "project"]
    return {
        "workflows": [{"name": item["name"], "description": item["description"]} for item in own],
        "library": [item["origin"] for item in data["workflows"] if item["origin"] != "project"],
        "tools": [tool["name"] for tool in data["tools"] if tool["available"]],
        "hint": "" if own else "this project has no workflow: `start` writes one",
    }


def checked(data: Mapping[str, Any], plan: Mapping[str, Any] | None, note: str, *, detail: bool) -> Answer:
    """Return the mistakes in a workflow, by ``perfflow validate``, and the steps of its plan.

    ``plan``: None if it has none, and ``note`` why although the file is valid.
    """
    (file,) = data["files"]
    problems = [{key: item[key] for key in ("severity", "message", "hint", "line")} for item in file["problems"]]
    found = {"valid": file["valid"], "problems": file["problems"] if detail else problems}
    if plan is None:
        return {**found, **_given(note=note)}
    steps = plan["steps"] if detail else [_planned(step) for step in plan["steps"]]
    return {"workflow": plan["workflow"], **found, "steps": steps, "expected": plan["expected"]["text"]}


def _planned(step: Mapping[str, Any]) -> Answer:
    argv: list[str] = step["argv"].get("baseline") or next(iter(step["argv"].values()), [])
    named = {key: step[key] for key in ("id", "stage", "tool", "missing")}
    return _given(**named, command=" ".join(argv))


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


def run_answer(result: Result, folder: Path, notes: Sequence[str] = (), *, detail: bool = False) -> Answer:
    """Return what a run decided. Rows that decide the verdict come first.

    ``detail``: with all rows, targets, checks, functions, advice and the report, without samples and diffs.
    """
    rows = sorted(result.benchmarks, key=lambda row: (not row.gating, row.decision in (None, "same")))
    run = result.run
    answer = _given(
        run=folder.name,
        workflow=run.workflow,
        verdict=result.verdict,
        gate=result.gate.status if result.gate else None,
        reasons=result.reason_texts,
        failed=[_failure(step) for step in result.steps if _failed(step)],
        checks=[{"id": item.id, "detail": item.detail} for item in result.verification if item.status == "failed"],
        targets=[
            {key: getattr(item, key) for key in ("benchmark", "metric", "requirement", "measured", "status")}
            for item in result.targets
        ],
        benchmarks=[_row(row) for row in rows if row.gating] or [_row(row) for row in rows],
        patches=[{"id": item.id, **_outcome(item, result), "reason": item.reason} for item in result.optimizations],
        blamed=[
            {"function": item.function, "place": _place(item.file, item.line), "share": item.share}
            for item in result.attributions
        ],
        branch=tree_of(result.trees, TreeSide.CANDIDATE).branch or None,
        resume=folder.name if run.interrupted and not run.out else None,
        notes=list(notes),
        report=str(folder / "report.md"),
    )
    return {**answer, **_detail(result, rows, folder)} if detail else answer


def _detail(result: Result, rows: Sequence[Benchmark], folder: Path) -> Answer:
    whole = {"targets", "verification", "attributions", "recommendations", "routes"}
    samples = {"samples", "readings", "confirming"}
    text = terminal.render(result, width=WIDTH, color=False, unicode=True, where=str(folder), evidence=True)
    return {
        **result.model_dump(mode="json", include=whole),
        "benchmarks": [
            row.model_dump(mode="json", exclude={"baseline": samples, "candidate": samples, "layouts": True})
            for row in rows
        ],
        "optimizations": [_tried(item) for item in result.optimizations],
        "failed": [step.model_dump(mode="json") for step in result.steps if _failed(step)],
        "warnings": [*result.run.warnings, *(f"{step.id}: {text}" for step in result.steps for text in step.warnings)],
        "text": text,
    }


def _tried(item: Optimization) -> Answer:
    return item.model_dump(mode="json", exclude={"diff"})


def _failed(step: StepResult) -> bool:
    return step.status in ("failed", "timeout") or (step.status == "skipped" and step.selected and bool(step.reason))


def _failure(step: StepResult) -> Answer:
    return _given(id=step.id, status=step.status, reason=step.reason, tail=step.tail[-_TAIL:])


def _row(row: Benchmark) -> Answer:
    sides = {"value": row.baseline} if row.candidate is None else {"before": row.baseline, "after": row.candidate}
    values = {key: side.value for key, side in sides.items() if side is not None}
    named = {"name": row.name, "metric": row.metric, "unit": row.unit, **values}
    return _given(**named, change=_bounds(row.change), decision=row.decision, level=row.level)


def _bounds(found: Bounds | None) -> Answer | None:
    return found.model_dump(mode="json") if found else None


def _place(file: str, line: int) -> str:
    return f"{file}:{line}" if file and line else file


def judgement(
    result: Result, folder: Path, step: str, patch: Path, notes: Sequence[str] = (), *, detail: bool = False
) -> Answer:
    """Return what became of a patch, which ``step`` of the run tried, in words for programs.

    A patch that is kept is the commit ``revision`` of ``branch``.
    """
    tried = next((item for item in result.optimizations if item.id == step), None)
    failed = [item for item in result.verification if item.status == "failed"]
    if tried is None:
        code, reason = Code.OUT_OF_TIME if result.run.interrupted else Code.BASE_FAILS, "; ".join(result.reason_texts)
        answer: Answer = {"decision": code.outcome, "code": code, "reason": reason, "effect": None}
    else:
        answer = {**_outcome(tried, result), "reason": tried.reason, "effect": _bounds(tried.effect)}
        if tried.decision == "accepted" and failed:
            answer["reason"] = f"{failed[0].id}: {failed[0].detail}"
    kept = tried is not None and tried.revision is not None and not failed
    answer |= {
        "flags": list(tried.flags) if tried else [],
        "needs": tried.needs.model_dump() if tried and tried.needs else None,
        "branch": (tree_of(result.trees, TreeSide.CANDIDATE).branch or None) if kept else None,
        "revision": tried.revision if tried and kept else None,
        "run": folder.name,
        **_given(
            tail=tried.tail[-_TAIL:] if tried else [],
            failed=[] if tried else [_failure(item) for item in result.steps if _failed(item)],
            resume=folder.name if result.run.interrupted else None,
            notes=list(notes),
        ),
    }
    if detail:
        answer |= {"tried": _tried(tried) if tried else None, "patch_file": str(patch)}
        answer["detail"] = run_answer(result, folder, detail=True)
    return answer


def _outcome(tried: Optimization, result: Result) -> Answer:
    code = tried.code or Code.OUT_OF_TIME
    if tried.decision == "accepted" and any(item.status == "failed" for item in result.verification):
        code = Code.CHECK_FAILED
    return {"decision": code.outcome, "code": code}


def hotspots(limits: SessionLimits, folder: Path, benchmark: str, most: int, context: int) -> Answer:
    """Return the functions of a run's profiles by what they spend with all that they call, with their source lines.

    Those that only call all of the rest come last. ``benchmark``: only of this one, '' for all. ``context``: lines
    before and after. Raises UserError.
    """
    result = result_of(folder)
    found = current(result.hotspots)
    known = sorted({item.benchmark for item in found})
    if benchmark and found and benchmark not in known:
        raise UserError.of(f"no hotspot of {benchmark!r}", f"benchmarks with hotspots: {', '.join(known)}")
    chosen = sorted((item for item in found if benchmark in ("", item.benchmark)), key=_by_inclusive)
    note = f"{len(chosen) - most} more; ask with a larger `limit`" if len(chosen) > most else ""
    if not found:
        note = "the run has no profile: run a workflow whose `profile` stage names a profiler, such as `uses: auto`"
    shown = [_hotspot(limits, item, context) for item in chosen[:most]]
    return {"run": folder.name, "hotspots": shown, **_given(note=note)}


def _by_inclusive(spot: HotspotResult) -> tuple[bool, float, float]:
    inclusive = _inclusive(spot)
    return inclusive >= 1 and spot.share < HOTSPOT, -inclusive, -spot.share


def _inclusive(spot: HotspotResult) -> float:
    return max(spot.share, spot.inclusive_share or 0.0)


def _hotspot(limits: SessionLimits, spot: HotspotResult, context: int) -> Answer:
    first, lines, note = 0, list[str](), ""
    if not spot.file or spot.line < 1:
        note = "the profile does not name a line"
    else:
        try:
            first, lines = _lines(limits.inside(spot.file), spot.line, context)
            note = "" if lines else f"{spot.file} has fewer lines now than when it was profiled"
        except UserError:
            note = f"{spot.file} is outside the project"
        except OSError as error:
            note = f"{spot.file}: {error.strerror}"
    shown = {"function": spot.function or spot.location, "place": _place(spot.file, spot.line)}
    shares = {"self": spot.share, "inclusive": _inclusive(spot), "gain": spot.impact}
    named = _given(benchmark=spot.benchmark, unit=spot.unit if spot.unit != "time" else "", cause=spot.cause)
    return {**shown, **shares, **named, **_given(first_line=first or None, lines=lines, lines_note=note)}


def bisection(data: Mapping[str, Any], *, detail: bool = False) -> Answer:
    """Return the end of a bisection: bisect.json, briefly with the number of remaining candidates."""
    if detail:
        return dict(data)
    kept = {key: data[key] for key in ("outcome", "why", "regression", "first_bad", "notes")}
    tried = [{key: item[key] for key in ("revision", "subject", "decision")} for item in data["tried"]]
    return {**kept, "left": len(data["left"]), "tried": tried}


def _lines(path: Path, line: int, context: int) -> tuple[int, list[str]]:
    """Return the lines around a line, and the number of the first. Empty if the file is too short."""
    text = regular_files.read(path, _MOST_SOURCE).decode("utf-8", "replace").splitlines()
    first = max(1, line - context)
    return (first, text[first - 1 : line + context]) if line <= len(text) else (0, [])


def _comparisons() -> Path:
    return user_cache_path("perfflow") / _COMPARISONS


_OF_STRANGERS = {"isolate": "strict", "protect": "tests"}


@dataclass(frozen=True)
class Submitted:
    """A patch that perfflow can run: the written files, the id of the candidate, and the stages to run."""

    workflow: Path
    patch: Path
    step: str
    stages: tuple[str, ...]


def submit(
    limits: SessionLimits,
    workflow: str,
    steps: Sequence[Mapping[str, Any]],
    patch: str,
    why: str,
    technique: Technique,
    settings: Mapping[str, str] = {},
) -> Submitted:
    """Write the patch, and a workflow that extends ``workflow`` with it as the only candidate.

    ``steps``: the steps of the workflow's plan. ``settings``: those of the stage. The same patch is always written to
    the same place, so that its run can be resumed. Raises UserError for a patch that is empty or too large.
    """
    file = limits.root / workflow
    extends = file if file.is_file() else f"{search_path.LIB}{workflow.removeprefix(search_path.LIB)}"
    roles = [(str(step["id"]), str(step["role"])) for step in steps]
    written = judging.submit(limits.root, extends, roles, [judging.Patch("", _data(patch), why, technique)], settings)
    (step,) = written.patches
    return Submitted(written.workflow, written.folder / f"{step}.patch", step, _stages(steps))


def settings_for_strangers(workflow: str, resolved: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of the optimize stage for a patch that nobody has read, unless the workflow has its own.

    ``resolved``: the workflow as printed by ``perfflow show --resolved``. Raises UserError if it has no such stage.
    """
    if CANDIDATES_STAGE not in resolved["workflow"]["stages"]:
        hint = "`start` writes a workflow that has one; or a human can add it, with or without candidates"
        text = f"{workflow} has no stage {CANDIDATES_STAGE!r}, so it does not define when a patch is accepted"
        raise UserError.of(text, hint)
    own = resolved["workflow"]["stages"][CANDIDATES_STAGE]
    return {key: value for key, value in _OF_STRANGERS.items() if not own.get(key)}


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
    """Return the stages that a patch needs: it is built, checked and compared with the original in trees of its own."""
    return (*(name for name in ("setup",) if any(step["stage"] == name for step in steps)), CANDIDATES_STAGE)
