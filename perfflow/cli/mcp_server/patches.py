"""Writes a patch, and a workflow that has it as its only candidate. Both files are kept for humans to read."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from perfflow.cli.mcp_server.limits import MOST_PATCH, Limits
from perfflow.library import search_path
from perfflow.model.errors import UserError
from perfflow.store import run_folder
from perfflow.workflow.roles import CANDIDATES_STAGE

Technique = Literal[
    "algorithm",
    "data-structure",
    "io",
    "memory",
    "concurrency",
    "vectorization",
    "compute",
    "caching",
    "configuration",
]
_STEP = "submitted"
_COMPUTE_FIRST = "compute-first"


@dataclass(frozen=True)
class Submitted:
    """A patch that perfflow can run: the written files, the id of the candidate, and the stages to run."""

    workflow: Path
    patch: Path
    step: str
    stages: tuple[str, ...]


def submit(
    limits: Limits, workflow: str, steps: Sequence[Mapping[str, Any]], patch: str, why: str, technique: Technique
) -> Submitted:
    """Write the patch, and a workflow that extends ``workflow`` with it as the only candidate.

    ``steps``: the steps of the workflow's plan. The same patch is always written to the same place, so that its run can
    be resumed. Raises UserError for a patch that is empty or too large.
    """
    data = _data(patch)
    candidates = list(dict.fromkeys(_plain(step["id"]) for step in steps if step["role"] == "candidate"))
    others = {_plain(step["id"]) for step in steps}
    name = next(name for name in _names() if name not in others)
    key = hashlib.sha256(json.dumps([workflow, patch, why, technique]).encode()).hexdigest()[:16]
    try:
        folder = run_folder.home(limits.root) / run_folder.PATCHES / key
        folder.mkdir(parents=True, exist_ok=True)
        run_folder.write_bytes(folder / "change.patch", [data])
        candidate = {"id": name, "technique": technique, "why": why, "patch": "change.patch"}
        if technique == "compute":
            # The rule orders several candidates. Here there is only one.
            candidate["allow"] = {_COMPUTE_FIRST: "one patch is judged on its own"}
        text = {
            "perfflow": 1,
            "extends": _reference(limits.root, workflow, folder),
            "stages": {CANDIDATES_STAGE: {"steps": [*({other: None} for other in candidates), candidate]}},
        }
        run_folder.write_text(folder / "judge.yaml", json.dumps(text, ensure_ascii=False, indent=1) + "\n")
    except OSError as error:
        raise UserError.of(f"cannot write {error.filename}: {error.strerror}", "make the folder writable") from error
    return Submitted(folder / "judge.yaml", folder / "change.patch", name, _stages(steps))


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


def _plain(step: str) -> str:
    """Return the id of a step as written in the file, without the matrix cell in brackets."""
    return step.partition("[")[0]


def _names() -> Any:
    yield _STEP
    number = 2
    while True:
        yield f"{_STEP}-{number}"
        number += 1


def _reference(root: Path, workflow: str, folder: Path) -> str:
    """Return the reference to the workflow for a file in ``folder``."""
    if (root / workflow).is_file():
        return os.path.relpath(root / workflow, folder)
    return f"{search_path.LIB}{workflow.removeprefix(search_path.LIB)}"


def _stages(steps: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return all stages except those that only profile: profiles of the unpatched code decide nothing."""
    working = dict.fromkeys(str(step["stage"]) for step in steps if step["role"] != "profile")
    return (*(name for name in working if name != CANDIDATES_STAGE), CANDIDATES_STAGE)
