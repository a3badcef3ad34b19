"""Write patches as the candidates of a workflow that extends the user's. The files are kept for humans to read."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

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
class Patch:
    """A patch of somebody else. ``name``: its path or id, for the answer."""

    name: str
    data: bytes
    why: str = ""
    technique: Technique = "algorithm"


@dataclass(frozen=True)
class Submitted:
    """Patches that perfflow can run: the workflow, and the patches by the ids of their candidates.

    ``folder``: the folder of the workflow, with the file of each patch.
    """

    workflow: Path
    patches: Mapping[str, Patch]

    @property
    def folder(self) -> Path:
        """The folder of the workflow, in which each patch is ``ID.patch``."""
        return self.workflow.parent


def submit(
    root: Path,
    extends: str | Path,
    steps: Collection[tuple[str, str]],
    patches: Sequence[Patch],
    stage: Mapping[str, Any] | None = None,
) -> Submitted:
    """Write the patches, and a workflow that extends another one with them as its only candidates.

    root: the project, whose perfflow folder gets the files. extends: the other workflow, a file or a reference. steps:
    ids and roles of the steps of its plan. stage: further keys of the stage. The same patches are always written to the
    same place, so that their run can be resumed. Raises UserError if that is impossible.
    """
    written = {name.partition("[")[0]: role for name, role in steps}
    ids = dict(zip(_names(written), patches, strict=False))
    told = [(str(extends), stage or {}), *((item.data.decode("latin-1"), item.why, item.technique) for item in patches)]
    key = hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]
    try:
        folder = run_folder.home(root) / run_folder.PATCHES / key
        folder.mkdir(parents=True, exist_ok=True)
        for name, patch in ids.items():
            run_folder.write_bytes(folder / f"{name}.patch", [patch.data])
        others = [{other: None} for other, role in written.items() if role == "candidate"]
        text = {
            "perfflow": 1,
            "extends": os.path.relpath(extends, folder) if isinstance(extends, Path) else extends,
            "stages": {
                CANDIDATES_STAGE: {
                    **(stage or {}),
                    "steps": [*others, *(_candidate(name, patch) for name, patch in ids.items())],
                }
            },
        }
        run_folder.write_text(folder / "judge.yaml", json.dumps(text, ensure_ascii=False, indent=1) + "\n")
    except OSError as error:
        raise UserError.of(f"cannot write {error.filename}: {error.strerror}", "make the folder writable") from error
    return Submitted(folder / "judge.yaml", ids)


def _candidate(name: str, patch: Patch) -> dict[str, Any]:
    found: dict[str, Any] = {"id": name, "technique": patch.technique, "why": patch.why or patch.name}
    if patch.technique == "compute":
        # The rule orders several candidates of one author. Here each is judged on its own.
        found["allow"] = {_COMPUTE_FIRST: "each patch is judged on its own"}
    return found | {"patch": f"{name}.patch"}


def _names(taken: Collection[str]) -> Iterator[str]:
    """Yield ``submitted``, ``submitted-2`` and so on, without the names of other steps."""
    number = 1
    while True:
        name = _STEP if number == 1 else f"{_STEP}-{number}"
        if name not in taken:
            yield name
        number += 1
