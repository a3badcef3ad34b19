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
from perfflow.model.errors import UserError

_FIT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_FIT_PATH = re.compile(r"[A-Za-z0-9_./-]+")
_STAMPS = Path(".perfflow/make")

_HEAD = """\
# Printed by `perfflow make`. Print it again after adding a workflow. Use it in the Makefile of the project:
#     PERF_SOURCES = $(wildcard src/*.c)
#     include perf.mk
# `make perf` runs all workflows that are out of date and that this machine can run. `make perf-NAME` runs one.
ifndef PERF_STAMPS
PERF_GOAL := $(.DEFAULT_GOAL)
PERFFLOW ?= perfflow
# Options of `perfflow run`.
PERFFLOW_FLAGS ?=
# Folder with a stamp for each workflow: NAME.pass if it passed, NAME.out if this machine cannot run it.
PERF_STAMPS := @STAMPS@
# Set these before the include. PERF_SOURCES: files that make every workflow out of date when they change; without it,
# only changes to its own files do. PERF_AFTER: targets to make before any workflow, such as all.
PERF_SOURCES ?=
PERF_AFTER ?=
# Workflows run one after another, even under make -j: a build would disturb a measurement.
PERF_ONE_AT_A_TIME ?= flock $(PERF_STAMPS)/lock
# Workflows that could not run are tried again after a program was installed or a GPU was added.
PERF_MACHINE := $(wildcard $(subst :, ,$(PATH)) /dev/nvidiactl)
PERF_OUT := $(patsubst $(PERF_STAMPS)/%.out,%,$(wildcard $(PERF_STAMPS)/*.out))
"""
_RUN = """
define PERF_RUN
@mkdir -p $(PERF_STAMPS)
@rm -f $(PERF_STAMPS)/$*.pass $(PERF_STAMPS)/$*.out
$(PERF_QUIET)$(PERF_LEFT_OUT) $(PERF_ONE_AT_A_TIME) $(PERFFLOW) run $< $(PERFFLOW_FLAGS)
@test -e $(PERF_STAMPS)/$*.out || touch $(PERF_STAMPS)/$*.pass
endef

.PHONY: perf $(PERF_NAMES:%=perf-%)
perf: $(foreach name,$(PERF_NAMES),$(PERF_STAMPS)/$(name).$(if $(filter $(name),$(PERF_OUT)),out,pass))
perf: PERF_LEFT_OUT = PERFFLOW_LEFT_OUT=$(PERF_STAMPS)/$*.out
perf: PERF_QUIET = @
$(PERF_NAMES:%=perf-%): perf-%: $(PERF_STAMPS)/%.pass
"""
_NEW = """
PERF_NEW := $(filter-out @KNOWN@,$(wildcard @ALL@))
ifneq ($(strip $(PERF_NEW)),)
.PHONY: perf-new
perf: perf-new
perf-new: ; @:$(info new workflows, not run: $(PERF_NEW); to include them: perfflow make > perf.mk)
endif
"""
_FOOT = """\
.DEFAULT_GOAL := $(PERF_GOAL)
endif
"""


def fragment(files: Mapping[Path, Sequence[Path]], up: Path, *, folder: Path | None = None) -> str:
    """Return the fragment for workflow files and the further files that each consists of.

    Paths are relative to the top of the project. ``up``: path from the Makefile's folder to the top, such as ``..``.
    ``folder``: the folder of all workflows, in which make reports new workflows; None if workflows were chosen.
    Raises UserError for names that make would split.
    """
    for path in files:
        _require_fit(path)
    seen = {up / path: [up / other for other in others] for path, others in files.items()}
    new = _of_new(seen, up / folder) if folder else ""
    return _HEAD.replace("@STAMPS@", str(up / _STAMPS)) + "".join(_rules(seen)) + new + _FOOT


def _require_fit(path: Path) -> None:
    if not _FIT.fullmatch(path.stem) or not _FIT_PATH.fullmatch(str(path)):
        hint = "rename it with letters, digits, `_`, `-` and `.`, or choose other workflows: perfflow make NAME..."
        raise UserError.of(f"make cannot have {str(path)!r} as a target", hint)


def _of_new(files: Mapping[Path, Sequence[Path]], folder: Path) -> str:
    """Return the rule that reports workflows not in ``files``. It does not run them: their names may be unsafe."""
    every = " ".join(f"{folder}/*{suffix}" for suffix in WORKFLOW_SUFFIXES)
    return _NEW.replace("@KNOWN@", " ".join(map(str, files))).replace("@ALL@", every)


def _rules(files: Mapping[Path, Sequence[Path]]) -> Iterator[str]:
    groups: dict[tuple[Path, str], list[str]] = {}
    for path in files:
        groups.setdefault((path.parent, path.suffix), []).append(path.stem)
    yield f"PERF_NAMES := {' '.join(path.stem for path in files)}\n{_RUN}"
    for (folder, suffix), group in groups.items():
        for kind, also in (("pass", ""), ("out", " $(PERF_MACHINE)")):
            stamps = " ".join(f"$(PERF_STAMPS)/{name}.{kind}" for name in group)
            source = f"$(PERF_STAMPS)/%.{kind}: {folder}/%{suffix}"
            yield f"\n{stamps}: {source} $(PERF_SOURCES){also} | $(PERF_AFTER)\n\t$(PERF_RUN)\n"
    yield "\n"
    for path, others in files.items():
        fit = [str(other) for other in others if _FIT_PATH.fullmatch(str(other))]
        if fit:
            yield f"$(PERF_STAMPS)/{path.stem}.pass $(PERF_STAMPS)/{path.stem}.out: {' '.join(fit)}\n"
