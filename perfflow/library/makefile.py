"""Write a Makefile fragment with a stamp file for each workflow, which is touched when its verdict is a pass.

It uses static pattern rules, since make ignores implicit rules for phony targets. It has no ``+`` and no ``$(shell)``,
so ``make -n`` runs nothing. It keeps the default goal, wherever it is included. A workflow that this machine cannot run
gets a stamp ``NAME.out``. It is tried again when a folder of programs changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from perfflow.library.search_path import WORKFLOW_SUFFIXES
from perfflow.library.starter_for import templates
from perfflow.model.errors import UserError

_FIT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_FIT_PATH = re.compile(r"[A-Za-z0-9_./-]+")
_STAMPS = Path(".perfflow/make")


def fragment(files: Mapping[Path, Sequence[Path]], up: Path, *, folder: Path | None = None) -> str:
    """Return the fragment for workflow files and the further files that each consists of.

    Paths are relative to the top of the project. ``up``: path from the Makefile's folder to the top, such as ``..``.
    ``folder``: the folder of all workflows, in which make reports new workflows; None if workflows were chosen.
    Raises UserError for names that make would split.
    """
    for path in files:
        _require_fit(path)
    seen = {up / path: [up / other for other in others] for path, others in files.items()}
    fit = {
        path.stem: [str(other) for other in others if _FIT_PATH.fullmatch(str(other))] for path, others in seen.items()
    }
    return (
        templates()
        .get_template("perf.mk.j2")
        .render(
            stamps=up / _STAMPS,
            names=[path.stem for path in seen],
            rules=list(_rules(seen)),
            consists=[(name, others) for name, others in fit.items() if others],
            known=list(seen),
            # New workflows are reported and not run: their names may be unsafe.
            every=[f"{up / folder}/*{suffix}" for suffix in WORKFLOW_SUFFIXES] if folder else [],
        )
    )


def _require_fit(path: Path) -> None:
    if not _FIT.fullmatch(path.stem) or not _FIT_PATH.fullmatch(str(path)):
        hint = "rename it with letters, digits, `_`, `-` and `.`, or choose other workflows: perfflow make NAME..."
        raise UserError.of(f"make cannot have {str(path)!r} as a target", hint)


def _rules(files: Mapping[Path, Sequence[Path]]) -> Iterator[dict[str, str]]:
    """Yield the rules of the stamps of each folder of workflows."""
    groups: dict[tuple[Path, str], list[str]] = {}
    for path in files:
        groups.setdefault((path.parent, path.suffix), []).append(path.stem)
    for (folder, suffix), group in groups.items():
        for kind, also in (("pass", ""), ("out", " $(PERF_MACHINE)")):
            stamps = " ".join(f"$(PERF_STAMPS)/{name}.{kind}" for name in group)
            yield {"stamps": stamps, "source": f"$(PERF_STAMPS)/%.{kind}: {folder}/%{suffix}", "also": also}
