"""Write accepted settings into the workflow file (``--apply``). If that is impossible, refuse before the run."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfflow.library.pinned import PROJECT
from perfflow.model.errors import Problem, UserError
from perfflow.model.result import Result
from perfflow.session.open_workflow import Opened
from perfflow.tools.adapter import Role
from perfflow.workflow.document import Loc
from perfflow.workflow.load import Draft
from perfflow.workflow.readable import LARGEST
from perfflow.workflow.replace_file import replace_file
from perfflow.workflow.settings_text import UNTOUCHED, Written, with_settings

_BY_HAND = "run without --apply, which shows the settings, and write them by hand"


@dataclass(frozen=True)
class Target:
    """The workflow file and its bytes when the run began. Links are followed, so that they stay links."""

    path: Path
    shown: str
    raw: bytes

    def written(self, params: Mapping[str, Any], env: Mapping[str, str]) -> tuple[bytes, list[Written]]:
        """Return the file with the settings, and the changes in it. Raises UserError."""
        text, found = with_settings(self.raw.decode("utf-8"), self.shown, params, env)
        return text.encode("utf-8"), found


def target(opened: Opened) -> Target:
    """Return the file that settings are written into. Raises UserError if it can no longer be read."""
    try:
        with opened.path.open("rb") as stream:
            return Target(Path(os.path.realpath(opened.path)), str(opened.path), stream.read(LARGEST + 1))
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


def _require_writable(file: Target) -> None:
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


def apply(file: Target, params: Mapping[str, Any], env: Mapping[str, str]) -> list[Written]:
    """Write the settings atomically and keep the file's mode. Raises UserError, also if the file was changed."""
    new, found = file.written(params, env)
    replace_file(file.path, file.shown, file.raw, new, "write them by hand")
    return found
