"""Turn a candidate's change into a tree, and write accepted settings into the workflow file.

- ``change_of`` applies a patch, a revision, or the edits of a command or a proposer. The limits of the stage are
  checked before anything is built.
- ``brief_of`` makes a proposer's brief: the JSON that a proposing program reads before it edits the tree.
- ``apply_settings`` writes accepted settings (``--apply``). If that is impossible, ``require_appliable`` refuses before
  the run.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfflow.execute.context import Settings, variables_of
from perfflow.execute.invoke import Failure
from perfflow.execute.prepare import PreparationError
from perfflow.execute.schedule import StepRun
from perfflow.jobs.optimize.protect import Protection, covers
from perfflow.library.pinned import PROJECT
from perfflow.model.errors import Problem, UserError
from perfflow.model.judging import Code, RejectedError
from perfflow.model.result import Result
from perfflow.model.targets import matches
from perfflow.plan.plan import Planned, StagePlan
from perfflow.session.open_workflow import Opened
from perfflow.session.session import RunSession
from perfflow.session.steps.check import command
from perfflow.store.record import Record
from perfflow.tools import regular_files
from perfflow.tools.adapter import Role
from perfflow.trees import patches
from perfflow.trees.patches import TreeDifference, changed_paths, difference
from perfflow.trees.repository import Repository
from perfflow.trees.slots import Slot
from perfflow.workflow.document import Loc, replace_file
from perfflow.workflow.expression_text import ExpressionError, as_text
from perfflow.workflow.expressions import render
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Stage
from perfflow.workflow.settings_text import UNTOUCHED, Written, with_settings
from perfflow.workflow.yaml_text import LARGEST

_SHOWN = 5
"""The most paths that a message lists."""


@dataclass(frozen=True)
class AppliedChange:
    """The tree with the change, its difference from the tree below it, and the candidate's own settings."""

    tree: str
    difference: TreeDifference
    own: Settings


def settings_of(session: RunSession, planned: Planned) -> Settings:
    """Return the candidate's own environment and parameters, rendered. Raises PreparationError."""
    try:
        context = variables_of(session.context, planned)
        env = {name: as_text(render(value, context)) for name, value in planned.step.env.items()}
        params = {name: render(value, context) for name, value in (planned.step.params or {}).items()}
    except ExpressionError as error:
        raise PreparationError(str(error)) from error
    return Settings(env, params)


def patched(session: RunSession, repository: Repository, planned: Planned, base: str, draft: Draft) -> str | None:
    """Return ``base`` with the candidate's ``patch`` or ``ref`` applied; None for a candidate that has neither.

    Raises RejectedError if it does not apply.
    """
    step = planned.step
    try:
        if step.patch:
            file = draft.path.parent / str(render(step.patch, variables_of(session.context, planned)))
            raw = draft.readable.bytes_of(file, regular_files.LARGEST)
            return patches.apply(repository, base, raw, name=file.name)
        if step.ref:
            name = str(render(step.ref, variables_of(session.context, planned)))
            revision, head = repository.revision(name), repository.head()
            start = repository.merge_base(revision, head) if head else base
            return patches.apply(repository, base, difference(repository, start, revision).patch, name=name)
    except UserError as error:
        raise RejectedError(Code.MALFORMED, error.in_one_line) from error
    except OSError as error:
        raise RejectedError(Code.MALFORMED, f"cannot read {step.patch}: {error.strerror}") from error
    except ExpressionError as error:
        raise PreparationError(str(error)) from error
    return None


def edited(session: RunSession, planned: Planned, run: StepRun, slot: Slot) -> str:
    """Run the candidate's command in the slot, and return the edited tree.

    Raises RejectedError if the command fails, or writes ignored files, which would be measured but not committed.
    """
    before, wrote = slot.ignored_files(), []
    try:
        command(session, planned, run)
    except Failure as failure:
        run.log = str(failure.log.relative_to(session.folder.path)) if failure.log else run.log
        raise RejectedError(Code.MALFORMED, f"its command failed: {failure.reason}", failure.log) from failure
    finally:
        # Also after a failure: otherwise the next candidate in this slot would be measured with these files.
        wrote = slot.remove_ignored(before)
    if wrote:
        shown = [*wrote[:_SHOWN], *([f"{len(wrote) - _SHOWN} more"] if len(wrote) > _SHOWN else [])]
        raise RejectedError(
            Code.FORBIDDEN_FILE, f"it wrote ignored files {', '.join(shown)}, which cannot be committed"
        )
    recorded = slot.take()
    if recorded.left_out:
        run.warnings.append(f"left out, since they are separate repositories: {', '.join(recorded.left_out)}")
    return recorded.tree


def change_of(
    repository: Repository,
    stage: Stage,
    base: str,
    tree: str,
    settings: Settings,
    protection: Protection | None = None,
) -> AppliedChange:
    """Return the change that a candidate makes. ``protection``: for a candidate whose author is not trusted.

    Raises RejectedError if it changes nothing, or ("needs approval") if the change exceeds the limits of the stage.
    """
    diff = difference(repository, base, tree)
    if base == tree and not settings.env and not settings.params:
        raise RejectedError(Code.CHANGES_NOTHING, "it changes nothing")
    for path in changed_paths(repository, base, tree):
        glob = next((glob for glob in stage.forbid or () if covers(glob, path)), None)
        if glob is not None:
            raise RejectedError(
                Code.FORBIDDEN_FILE, f"needs approval: it touches {path}, which `forbid: {glob}` protects"
            )
    if protection:
        protection.require_untouched(base, tree)
    if stage.max_diff is not None and diff.lines > stage.max_diff:
        raise RejectedError(
            Code.TOO_LARGE, f"needs approval: it changes {diff.lines} lines, `max-diff` is {stage.max_diff}"
        )
    return AppliedChange(tree, diff, settings)


_BUILD_SETTINGS = (
    *("Cargo.toml", "Cargo.lock", "build.rs", ".cargo/**", "rust-toolchain", "rust-toolchain.toml"),
    *("Makefile", "makefile", "GNUmakefile", "*.mk", "CMakeLists.txt", "*.cmake", "CMakePresets.json"),
    *("meson.build", "meson.options", "meson_options.txt", "configure", "configure.ac", "*.am", "*.ninja"),
    *("BUILD", "BUILD.bazel", "WORKSPACE", "MODULE.bazel", ".bazelrc", "conanfile.txt", "conanfile.py", "vcpkg.json"),
    *("pyproject.toml", "setup.py", "setup.cfg", "requirements*.txt", "package.json", "package-lock.json"),
    *("tsconfig*.json", "go.mod", "go.sum", "go.work", "pom.xml", "build.gradle", "build.gradle.kts"),
    *("gradle.properties", "build.zig", "mojoproject.toml", "pixi.toml", "Dockerfile"),
)
"""Globs of files, in any folder, that set how a program is built or what it is built from."""


def sets_build(change: AppliedChange) -> bool:
    """Return whether a change touches a file that sets how the program is built."""
    globs = [each for glob in _BUILD_SETTINGS for each in (glob, f"**/{glob}")]
    return any(matches(glob, file.path) for file in change.difference.files for glob in globs)


BRIEF = "PERFFLOW_BRIEF"
"""Environment variable with the path of the brief, which is also the proposer's standard input."""
SCHEMA = "perfflow.brief/1"
TOP = 5
"""The most hotspots of each profile in a brief."""
_AROUND = 5
"""Source lines shown before and after a hotspot's line."""


def proposing(planned: Planned, brief: Path) -> Planned:
    """Return the candidate as a command that reads the brief."""
    text = f'exec < "${BRIEF}"\n{planned.step.propose}'
    step = planned.step.model_copy(
        update={"run": text, "propose": None, "env": {**planned.step.env, BRIEF: str(brief)}}
    )
    return replace(planned, step=step)


def brief_of(
    stage: StagePlan,
    record: Record,
    targets: Iterable[Mapping[str, Any]],
    ledger: Iterable[Mapping[str, Any]],
    tree: Path,
    attempt: int,
) -> dict[str, Any]:
    """Return the brief as JSON data: shares from 0 to 1, values in base units, files relative to the tree."""
    written = stage.own
    return {
        "schema": SCHEMA,
        "tree": str(tree),
        "attempt": attempt,
        "attempts": stage.attempts,
        "targets": list(targets),
        "objectives": [{"benchmark": name, "metric": metric or "time"} for name, metric in stage.goal.objectives],
        "hotspots": [_hotspot(item, tree) for item in _top(record)],
        "ledger": list(ledger),
        "constraints": {
            "accept": stage.goal.accept,
            "forbid": written.forbid or [],
            "protect": written.protect or "tests",
            "allow": written.allow or [],
            "max_diff": written.max_diff,
            "check": [written.check] if isinstance(written.check, str) else written.check or [],
            "guard": list(stage.goal.guards),
        },
    }


def _top(record: Record) -> list[dict[str, Any]]:
    """Return the largest hotspots of each profile, since shares of time and of bytes cannot be compared."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for step_id, hotspot in record.hotspots():
        spot = hotspot.spot
        benchmark = spot.benchmark or record.planned[step_id].benchmark
        item = {"step": step_id, "benchmark": benchmark, "spot": spot}
        found.setdefault((step_id, benchmark), []).append(item)
    return [item for items in found.values() for item in sorted(items, key=lambda item: -item["spot"].share)[:TOP]]


def _hotspot(item: Mapping[str, Any], tree: Path) -> dict[str, Any]:
    spot = item["spot"]
    found = {"step": item["step"], "benchmark": item["benchmark"], "location": spot.location}
    found |= {"file": spot.file, "line": spot.line, "share": spot.share, "unit": spot.unit}
    return found | {"source": _source(tree, spot.file, spot.line)}


def _source(tree: Path, file: str, line: int | None) -> list[dict[str, Any]]:
    """Return the numbered lines around a line; none if the file is outside the tree."""
    place = tree / file if file else tree
    if not file or not line or not place.resolve().is_relative_to(tree.resolve()):
        return []
    try:
        text = place.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    first = max(0, line - 1 - _AROUND)
    return [{"line": first + number, "text": content} for number, content in enumerate(text[first : line + _AROUND], 1)]


_BY_HAND = "run without --apply, which shows the settings, and write them by hand"


@dataclass(frozen=True)
class WorkflowTarget:
    """The workflow file and its bytes when the run began. Links are followed, so that they stay links."""

    path: Path
    shown: str
    raw: bytes

    def written(self, params: Mapping[str, Any], env: Mapping[str, str]) -> tuple[bytes, list[Written]]:
        """Return the file with the settings, and the changes in it. Raises UserError."""
        text, found = with_settings(self.raw.decode("utf-8"), self.shown, params, env)
        return text.encode("utf-8"), found


def target(opened: Opened) -> WorkflowTarget:
    """Return the file that settings are written into. Raises UserError if it can no longer be read."""
    try:
        with opened.path.open("rb") as stream:
            return WorkflowTarget(Path(os.path.realpath(opened.path)), str(opened.path), stream.read(LARGEST + 1))
    except OSError as error:
        raise UserError.of(f"{opened.path}: {error.strerror}", _BY_HAND) from error


def require_appliable(opened: Opened, selected: Collection[str]) -> None:
    """Raise UserError if the settings of the selected candidates cannot be written into the workflow file."""
    if opened.origin != PROJECT:
        hint = f"write a workflow of your own with `extends: {opened.origin}` and its own values"
        raise UserError.of(f"--apply: {opened.origin} is outside this project and is not changed", hint)
    candidates = [item for item in opened.plan.steps if item.role is Role.CANDIDATE and item.id in selected]
    if not candidates:
        raise UserError.of("--apply: this run has no candidate of an optimize stage, so nothing could be kept")
    file = target(opened)
    _require_writable(file)
    for step in {item.step.id: item.step for item in candidates}.values():
        _require_own(opened.draft, step.params or {}, step.env)
        # Which values will be accepted is not known yet, but where they would be written is.
        file.written(step.params or {}, step.env)


def _require_writable(file: WorkflowTarget) -> None:
    # Root can write every file, but a file without any write bit was protected on purpose.
    protected = not file.path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)
    if protected or not os.access(file.path, os.W_OK) or not os.access(file.path.parent, os.W_OK):
        raise UserError.of(f"--apply: {file.shown} is read-only", f"chmod u+w it and its folder, or {_BY_HAND}")


def _require_own(draft: Draft, params: Collection[str], env: Collection[str]) -> None:
    """Raise UserError if a value that would be replaced comes from another file, which the workflow extends."""
    places: list[Loc] = [("params", name) for name in params]
    places += [("params", name, "default") for name in params]
    places += [(*loc, name) for loc in _environments(draft) for name in env]
    for loc in places:
        if draft.document.written(loc) != loc:
            continue
        place = draft.document.place(loc, key=True)
        if place.file != str(draft.path):
            key = ".".join(map(str, loc))
            hint = f"set it in {draft.path} as well, or change {place.file} by hand"
            raise UserError((Problem(f"--apply: {key} comes from another file, {place.file}", hint, place),))


def _environments(draft: Draft) -> Iterator[Loc]:
    yield from (("env",), ("defaults", "env"))
    seeing = [name for name in draft.workflow.stages if name not in UNTOUCHED]
    yield from (("stages", name, "env") for name in seeing)
    yield from ((*draft.document.written(loc), "env") for loc in draft.steps.values() if loc[1] in seeing)


def accepted_settings(result: Result) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the parameters and environment of all accepted candidates; later ones win."""
    params: dict[str, Any] = {}
    env: dict[str, str] = {}
    for item in result.optimizations:
        if item.decision == "accepted":
            params |= item.params
            env |= item.env
    return params, env


def why_not_applied(result: Result) -> str:
    """Return why accepted settings are not written, for the reasons that also prevent a branch; '' if they can be."""
    failed = [item.id for item in result.verification if item.status == "failed"]
    if result.run.interrupted:
        return "the run was interrupted"
    return f"{', '.join(failed)} failed on the kept changes" if failed else ""


def apply_settings(file: WorkflowTarget, params: Mapping[str, Any], env: Mapping[str, str]) -> list[Written]:
    """Write the settings atomically and keep the file's mode. Raises UserError, also if the file was changed."""
    new, found = file.written(params, env)
    replace_file(file.path, file.shown, file.raw, new, "write them by hand")
    return found
