"""The spine of ``perfflow run``: plan, measure, judge, write, in one walk."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfflow.errors import UserError
from perfflow.flow import resuming, tree_work
from perfflow.flow.judging_again import conclude
from perfflow.flow.keeping import kept
from perfflow.flow.moment import now
from perfflow.flow.opening import Opened, select
from perfflow.flow.optimize.stage import stage_plan
from perfflow.flow.pausing import pausing
from perfflow.flow.perform import Performer
from perfflow.flow.progress import Progress
from perfflow.flow.resuming import Earlier
from perfflow.flow.run_events import step_event
from perfflow.flow.total_budget import TotalBudget
from perfflow.flow.workshop import Workshop
from perfflow.library import shelf
from perfflow.machine.facts import facts
from perfflow.plan.cell_globs import confirmed_by, expected_of
from perfflow.plan.layouts import draws_layouts
from perfflow.plan.plan import Plan, Planned
from perfflow.plan.requirements import requires_of
from perfflow.plan.scaling import scaling_of
from perfflow.receipt import files as receipt_files
from perfflow.receipt import manifest
from perfflow.result import Result
from perfflow.run import programs
from perfflow.run.context import Scene, search_path
from perfflow.run.prepare import missing_program
from perfflow.run.schedule import Schedule, StepRun
from perfflow.run.states import UNABLE, StepStatus
from perfflow.rundir import calibration
from perfflow.rundir import folder as rundir
from perfflow.rundir.folder import RunFolder
from perfflow.rundir.json_text import json_lines
from perfflow.rundir.record import SCHEMA, record_of
from perfflow.tools.adapter import LOOKING_ON, Role
from perfflow.trees import project
from perfflow.trees.in_place import ASIDE, restore
from perfflow.version import VERSION


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for beside the workflow."""

    stages: Sequence[str] = ()
    only: Sequence[str] = ()
    start: str | None = None
    jobs: int = 1
    keep_going: bool = False
    out: Path | None = None
    resume: Path | None = None
    """Folder of an interrupted run to go on with."""
    seed: int | None = None
    lock_timeout: float = 1800.0
    look_at_noise: bool = True
    command: Sequence[str] = ()
    """What to type to do it again, where that is not `perfflow run`."""
    report: bool = True
    """Whether report.md is written now; `perfflow report` can do it later."""
    budget: float | None = None
    """Seconds for all measuring together; None without a limit."""
    base: str | None = None
    """The revision whose merge base with head is the baseline, where two trees are compared."""
    head: str | None = None
    """The candidate's revision; None for the tree as it stands."""
    typed: bool = False
    """Whether the workflow is made of the command line, so that its texts hold what a shell put there."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that ended or was interrupted: its result and where its files are."""

    result: Result
    folder: Path
    interrupted: bool


def run(opened: Opened, request: Request, progress: Progress) -> Finished:
    """Run a plan; ^C ends in an interrupted result.

    Raises UserError for bad usage before anything is executed, and where the run's folder can no longer be written.
    """
    plan = opened.plan
    selected = select(plan, request.stages, request.only, request.start)
    before = resuming.trees(request.resume) if request.resume else {}
    if request.base is not None or tree_work.are_two(before):
        selected = tree_work.with_builds(opened, selected)
    if tree_work.are_two(before):
        wanted = tree_work.asked_again(opened, before, request.base)
    else:
        wanted = tree_work.asked(opened, selected, request.base, request.head, resume=request.resume)
    expected, cautions = _expected(opened) if request.look_at_noise else ([], [])
    opened, unsure = tree_work.without_spent(opened, wanted)
    plan = opened.plan
    with (
        _folder(opened, request) as folder,
        kept(folder.path, can_resume=wanted.base is not None or not request.command),
    ):
        if request.resume:
            earlier = resuming.earlier(folder.path, digest(opened), selected)
            scene = _scene(opened, folder, earlier.seed, typed=request.typed)
            folder.append({"event": "resumed", "time": now(), "selected": sorted(selected)})
        else:
            earlier = Earlier()
            seed = secrets.randbelow(2**31) if request.seed is None else request.seed
            scene = _scene(opened, folder, seed, typed=request.typed)
            opening = opening_event(opened, scene, selected, request)
            absent = opening["run"]["data_missing"]
            opening["run"]["warnings"] = [
                *cautions,
                *wanted.cautions(),
                *unsure,
                *(f"data: `{glob}` matches no file" for glob in absent),
            ]
            opening["trees"] |= wanted.told or {}
            folder.append(opening | {"expected": expected})
        shop = Workshop(scene, folder, progress, _budget(plan, request, selected), request.look_at_noise, earlier)
        shop.comparing = _comparing(plan, selected, gate=wanted.base is not None)
        with tree_work.working_in(wanted, shop, request.lock_timeout):
            # A benchmark of a gate that cannot be measured keeps nobody from the verdict on the others.
            interrupted = _walk(shop, request, selected, keep_going=request.keep_going or wanted.base is not None)
            if shop.trees and not interrupted:
                shop.trees.finish()
        folder.append({"event": "interrupted" if interrupted else "end", "time": now()})
        record = record_of(rundir.events(folder.path))
        result = conclude(record, folder.path, report=request.report)
        _write_receipt(opened, result, folder)
        return Finished(result, folder.path, interrupted)


def _folder(opened: Opened, request: Request) -> RunFolder:
    return rundir.reopen(request.resume) if request.resume else rundir.create(opened.root, request.out)


def _budget(plan: Plan, request: Request, selected: frozenset[str]) -> TotalBudget:
    return TotalBudget(request.budget, [i.id for i in plan.steps if i.id in selected and i.role is Role.MEASURE])


def _comparing(plan: Plan, selected: frozenset[str], *, gate: bool) -> int:
    """How many steps compare two sides and look at noisy figures until their verdict is settled."""
    return sum(
        item.role is Role.MEASURE
        and item.id in selected
        and item.step.runs is None
        and not (item.tool and item.tool.deterministic)
        and (gate or item.step.candidate is not None)
        for item in plan.steps
    )


def digest(opened: Opened) -> str:
    """A hash of the workflow and its parameters: what must not change while a run is resumed."""
    workflow = opened.plan.workflow.model_dump(mode="json")
    tools = {item.step.uses: item.step.declared.digest for item in opened.plan.steps if item.step.declared}
    parts = [workflow, dict(opened.plan.params), *([tools] if tools else [])]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _expected(opened: Opened) -> tuple[list[dict[str, Any]], list[str]]:
    """What the calibration of this machine says of the workflow, and a warning where its file is damaged."""
    plan = opened.plan
    try:
        return list(calibration.expected(opened.root, facts()["identity"], plan.workflow.name, plan.params)), []
    except UserError as error:
        problem = error.problems[0]
        return [], [f"{problem.message}; {problem.hint}"]


def _walk(shop: Workshop, request: Request, selected: frozenset[str], *, keep_going: bool) -> bool:
    """Run the steps; each is an event when it ends. Returns whether ^C stopped it."""
    folder, plan, progress = shop.folder, shop.scene.plan, shop.progress
    progress.began(folder.path, [item for item in plan.steps if item.id in selected])
    missing = not_startable(shop.scene, selected)
    if missing:
        for item in missing:
            progress.ended(item)
            folder.append(step_event(item))
        return False
    performer = Performer(shop, request.lock_timeout)
    schedule = Schedule(
        plan,
        performer,
        performer.allows,
        selected=selected,
        jobs=request.jobs,
        keep_going=keep_going,
        stop=shop.stop,
    )
    ended: set[str] = set()
    unable = False
    try:
        with pausing(shop):
            for step in schedule:
                shop.budget.passed(step.planned.id)
                cached = step.status is StepStatus.CACHED
                folder.append({"event": "cached", "id": step.planned.id} if cached else step_event(step))
                unable = unable or (step.status is StepStatus.SKIPPED and step.exit_code == UNABLE)
                # All that is left is skipped for the one reason that the summary gives.
                if not (unable and step.status is StepStatus.SKIPPED):
                    progress.ended(step)
                ended.add(step.planned.id)
                if not shop.trees:
                    shop.services.stop_unneeded(plan, selected, ended)
        shop.services.stop()
        for died in shop.services.deaths():
            folder.append(step_event(died))
            progress.ended(died)
    except KeyboardInterrupt:
        return True
    finally:
        shop.close()
    return False


def not_startable(scene: Scene, selected: frozenset[str]) -> list[StepRun]:
    """Steps that cannot run for want of a program, known before an hour of building and measuring is spent."""
    plan = scene.plan
    found = {}
    for item in plan.steps:
        if item.id not in selected or item.tool is None or item.role in LOOKING_ON or item.step.continue_on_error:
            continue
        path = search_path(scene, item)
        if path is not None and not programs.unmet(requires_of(item, plan.params), path):
            problem = missing_program(item, path)
            if problem:
                found[item.id] = StepRun(item, StepStatus.FAILED, problem, details={"not_started": True})
    if not found:
        return []
    reason = "nothing was run, since a tool is missing"
    return [
        found.get(item.id) or StepRun(item, StepStatus.SKIPPED, reason) for item in plan.steps if item.id in selected
    ]


def _scene(opened: Opened, folder: RunFolder, seed: int, *, typed: bool) -> Scene:
    tree = project.describe(opened.root)
    layouts = opened.root / rundir.HOME / "layouts"
    if layouts.is_dir():
        restore(layouts / ASIDE)
    drawn = rundir.home(opened.root) / layouts.name if draws_layouts(opened.plan, in_trees=False) else None
    where = (opened.plan, opened.root, folder.id, seed, folder.path)
    scene = Scene(*where, machine=facts(), git=tree, layouts=drawn, typed=typed)
    folder.secrets = scene.secrets
    return scene


def opening_event(opened: Opened, scene: Scene, selected: frozenset[str], request: Request) -> dict[str, Any]:
    """What a run set out to do, and where: its first event."""
    workflow = opened.plan.workflow
    return {
        "event": "run",
        "schema": SCHEMA,
        "run": {
            "id": scene.run_id,
            "workflow": workflow.name,
            "component": workflow.component or workflow.name,
            "started": now(),
            "seed": scene.seed,
            "file": _shown(opened.path, opened.root),
            "params": dict(opened.plan.params),
            "digest": digest(opened),
            "version": VERSION,
            "budget": request.budget,
            "command": list(request.command),
            "out": str(request.out.absolute()) if request.out else "",
            "data_missing": receipt_files.unmatched(opened.root, workflow.data),
            "template": workflow.report.template,
            **_optimizing_info(opened.plan),
        },
        "machine": dict(scene.machine),
        "trees": {"baseline": {**scene.git, **_untracked(opened)}, "candidate": None},
        "criteria": opened.plan.criteria.to_json(),
        "data": receipt_files.data_hashes(opened.root, workflow.data),
        "steps": [
            {
                "id": item.id,
                "stage": item.stage,
                "tool": item.step.uses or "run",
                "role": item.role.value,
                **({"compare": True} if item.role is Role.COMPARE else {}),
                "benchmark": item.benchmark,
                "metric": item.step.metric,
                "expect": expected_of(item, opened.plan.params),
                "allowed": item.step.continue_on_error,
                "selected": item.id in selected,
                **(_candidate_info(item) if item.role is Role.CANDIDATE else {}),
                **_evidence_info(item, opened.plan.params),
            }
            for item in opened.plan.steps
        ],
    }


def _optimizing_info(plan: Plan) -> dict[str, Any]:
    """What the optimize stage asks of a candidate, what it was told to guard and to rule out; empty without one."""
    stage = stage_plan(plan)
    if stage is None:
        return {}
    own = stage.own
    return {"accept": stage.goal.accept, "guard": own.guard or [], "ruled_out": dict(own.ruled_out or {})}


def _untracked(opened: Opened) -> dict[str, Any]:
    """Whether there are untracked files, which candidates start from, too; looked for only where there are any."""
    candidates = any(item.role is Role.CANDIDATE for item in opened.plan.steps)
    return {"untracked": project.has_untracked(opened.root)} if candidates else {}


def _candidate_info(item: Planned) -> dict[str, str]:
    return {"technique": item.step.technique or "", "why": item.step.why or ""}


def _evidence_info(item: Planned, params: Mapping[str, Any]) -> dict[str, Any]:
    """What the figures are evidence of: one size of a growth, a kind of scenario, what it confirms, its precision."""
    found: dict[str, Any] = {
        "scaling": scaling_of(item, params),
        "scenario": item.step.scenario,
        "confirms": confirmed_by(item, params),
        "precision": item.step.work.precision if item.step.work else None,
        "in_one_tree": bool(item.step.candidate or item.step.variants),
    }
    return {key: value for key, value in found.items() if value}


def _shown(path: Path, root: Path) -> str:
    """The workflow in words that `perfflow run` takes at the root: a path in the project, lib:NAME, or the whole path.

    The file of a comparison of two commands is gone by now, and just a name.
    """
    if path.is_relative_to(shelf.SHIPPED):
        return shelf.origin(path)
    resolved = path.resolve()
    if resolved.is_relative_to(root):
        return str(resolved.relative_to(root))
    return str(resolved) if resolved.is_file() else path.name


def _write_receipt(opened: Opened, result: Result, folder: RunFolder) -> None:
    used = {item.step.uses: item.tool for item in opened.plan.steps if item.tool and item.step.uses}
    versions = {name: programs.version_of(tool) or "" for name, tool in used.items() if tool.program}
    made = manifest.make(result, folder.path, versions)
    rundir.write_text(folder.path / rundir.RECEIPT, json_lines(made.items()))
