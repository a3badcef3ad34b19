"""Describe what a candidate of the optimize stage would change, without applying it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perfflow.execute.context import TreeContext, variables_of
from perfflow.model.errors import UserError
from perfflow.plan.optimize_stage import ATTEMPTS
from perfflow.plan.plan import Planned
from perfflow.workflow.expression_text import ExpressionError, as_text
from perfflow.workflow.expressions import render
from perfflow.workflow.load import Draft
from perfflow.workflow.readable import Readable

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")


def changes(context: TreeContext, planned: Planned, draft: Draft) -> Iterator[str]:
    """Yield a line for each change; patches are relative to the file of ``draft``."""
    step = planned.step
    if step.patch:
        name = _rendered(context, planned, step.patch)
        yield f"patch {name}: {_size_of(draft.path.parent / name, draft.readable)}"
    if step.ref:
        yield f"ref {_rendered(context, planned, step.ref)}: its changes since its merge base with HEAD"
    if step.propose:
        attempts = context.plan.stage(planned.stage).attempts or ATTEMPTS
        yield f"propose: {step.propose.strip()} ({attempts} {'attempts' if attempts > 1 else 'attempt'} at most)"
    for key, values in (("env", step.env), ("params", step.params or {})):
        if values:
            yield f"{key}: " + ", ".join(
                f"{name}={_rendered(context, planned, value)}" for name, value in values.items()
            )


def _rendered(context: TreeContext, planned: Planned, value: Any) -> str:
    """Return a value rendered for this cell; as written if it depends on steps that have not run."""
    try:
        return as_text(render(value, variables_of(context, planned)))
    except ExpressionError:
        return str(value)


def _size_of(path: Path, readable: Readable) -> str:
    """Return ``5 lines in work.c``: the number of removed and added lines in the hunks."""
    try:
        lines = readable.bytes_of(path).decode(errors="replace").splitlines()
    except UserError as error:
        return f"cannot be read ({error.problems[0].message})"
    except (OSError, ValueError) as error:
        return f"cannot be read ({getattr(error, 'strerror', None) or error})"
    files, changed, old, new = [], 0, 0, 0
    for line in lines:
        if old > 0 or new > 0:
            # Inside a hunk, a line may look like a file header.
            old, new, changed = old - (line[:1] != "+"), new - (line[:1] != "-"), changed + (line[:1] in ("+", "-"))
        elif found := _HUNK.match(line):
            old, new = (int(count or 1) for count in found.groups())
        elif line.startswith("diff --git "):
            files.append(line.rpartition(" b/")[2])
        elif line.startswith("+++ ") and not any(other.startswith("diff --git ") for other in lines):
            files.append(line[4:].partition("\t")[0].removeprefix("b/"))
    return f"{changed} {'line' if changed == 1 else 'lines'} in {', '.join(files) or 'no file'}"
