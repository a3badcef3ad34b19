"""Workflows -> a Makefile fragment: a stamp for each, touched when its verdict is a pass.

Static pattern rules, since implicit ones do nothing for phony targets. No ``+`` and no ``$(shell)``: ``make -n`` runs
nothing. The default goal stays what it is, wherever the fragment is included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from perfflow.errors import UserError

_FIT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_FIT_PATH = re.compile(r"[A-Za-z0-9_./-]+")
_STAMPS = Path(".perfflow/make")

_HEAD = """\
# Printed by `perfflow make`: print it again when a workflow is added. In the Makefile of the project:
#     PERF_SOURCES = $(wildcard src/*.c)
#     include perf.mk
# `make perf` runs every workflow that is not up to date, `make perf-NAME` one of them.
ifndef PERF_STAMPS
PERF_GOAL := $(.DEFAULT_GOAL)
PERFFLOW ?= perfflow
# Options of `perfflow run`.
PERFFLOW_FLAGS ?=
# Where a stamp is kept for each workflow that passed.
PERF_STAMPS := @STAMPS@
# Set before the include: files whose change makes every workflow run again, beside its own; and targets that must be
# done before, such as all. Without PERF_SOURCES a workflow that passed runs again only when its own files change.
PERF_SOURCES ?=
PERF_AFTER ?=
# Under make -j, workflows still run one after another: a build beside a measurement would disturb it.
PERF_ONE_AT_A_TIME ?= flock $(PERF_STAMPS)/lock
"""
_RECIPE = """\
	@mkdir -p $(PERF_STAMPS)
	@rm -f $@
	$(PERF_ONE_AT_A_TIME) $(PERFFLOW) run $< $(PERFFLOW_FLAGS)
	@touch $@
"""
_FOOT = """\
.DEFAULT_GOAL := $(PERF_GOAL)
endif
"""


def fragment(files: Mapping[Path, Sequence[Path]], up: Path) -> str:
    """Return the fragment for workflow files and what else each consists of.

    Paths are relative to the top of the project, and ``up`` leads there from the Makefile's folder: ``.``, ``..``.
    Raises UserError for names that make would take apart.
    """
    for path in files:
        _require_fit(path)
    seen = {up / path: [up / other for other in others] for path, others in files.items()}
    return _HEAD.replace("@STAMPS@", str(up / _STAMPS)) + "".join(_rules(seen)) + _FOOT


def _require_fit(path: Path) -> None:
    if not _FIT.fullmatch(path.stem) or not _FIT_PATH.fullmatch(str(path)):
        hint = "rename it with letters, digits, `_`, `-` and `.`, or name the others: perfflow make NAME..."
        raise UserError.of(f"make cannot have {str(path)!r} as a target", hint)


def _rules(files: Mapping[Path, Sequence[Path]]) -> Iterator[str]:
    groups: dict[tuple[Path, str], list[str]] = {}
    for path in files:
        groups.setdefault((path.parent, path.suffix), []).append(path.stem)
    names = [path.stem for path in files]
    # Immediately expanded and a phony target of each name: a file called perf-NAME is not in the way.
    yield f"\n.PHONY: perf {' '.join(f'perf-{name}' for name in names)}\n"
    yield f"perf: {' '.join(f'perf-{name}' for name in names)}\n"
    yield f"{' '.join(f'perf-{name}' for name in names)}: perf-%: $(PERF_STAMPS)/%.pass\n"
    for (folder, suffix), group in groups.items():
        stamps = " ".join(f"$(PERF_STAMPS)/{name}.pass" for name in group)
        yield f"\n{stamps}: $(PERF_STAMPS)/%.pass: {folder}/%{suffix} $(PERF_SOURCES) | $(PERF_AFTER)\n{_RECIPE}"
    yield "\n"
    for path, others in files.items():
        fit = [str(other) for other in others if _FIT_PATH.fullmatch(str(other))]
        if fit:
            yield f"$(PERF_STAMPS)/{path.stem}.pass: {' '.join(fit)}\n"
