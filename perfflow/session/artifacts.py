"""Copies of the files that a step lists under `artifacts`, kept in the run folder, where the receipt covers them."""

from __future__ import annotations

import shutil
from pathlib import Path

from perfflow.execute.context import variables_of
from perfflow.execute.invoke import require_space
from perfflow.execute.prepare import PreparationError, rendered
from perfflow.execute.schedule import StepRun
from perfflow.plan.plan import Planned
from perfflow.session.session import RunSession
from perfflow.workflow.artifact_checks import glob_mistake

FOLDER = "artifacts"
MOST_KEPT = 2**30
"""Largest total size (bytes) of the files that one step keeps."""
_OWN = (".perfflow", ".git")
"""Top-level folders that globs skip: their contents are kept already."""


def copy_artifacts(session: RunSession, planned: Planned, run: StepRun) -> None:
    """Copy the files that the step's globs match, relative to the root of its tree. Warn of a glob without a match.

    Raises PreparationError for a glob that leaves the tree, OSError and Failure if a file cannot be copied whole.
    """
    root, folder = session.context.root, session.folder.step(planned.id) / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    context, kept = variables_of(session.context, planned), 0
    for item in planned.step.artifacts:
        glob = str(rendered(item, context))
        if glob_mistake(glob):
            raise PreparationError(f"artifacts: {glob_mistake(glob)}")
        found = [path for path in sorted(root.glob(glob)) if _is_kept(path, root)]
        if not found:
            run.warnings.append(f"artifacts: `{glob}` matches no file")
        for path in found:
            kept += path.stat().st_size
            if kept > MOST_KEPT:
                reason = f"artifacts: {path.relative_to(root)} and all later files are left out"
                run.warnings.append(f"{reason}: a step keeps at most {MOST_KEPT >> 30} GiB")
                return
            copy = folder / path.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    if folder.exists():
        require_space(folder)


def _is_kept(path: Path, root: Path) -> bool:
    return path.is_file() and path.relative_to(root).parts[0] not in _OWN
