"""Workflows -> a Makefile fragment: a stamp for each, touched when its verdict is a pass.

Static pattern rules, since implicit ones do nothing for phony targets. No ``+`` and no ``$(shell)``: ``make -n`` runs
nothing. The default goal stays what it is, wherever the fragment is included.

Of what this machine cannot run, a stamp ``NAME.out`` says so. It is looked at again when a folder of programs changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from perfflow.library.search_path import SUFFIXES
from perfflow.model.errors import UserError
from perfflow.model.later import late_pattern

_FIT = late_pattern(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_FIT_PATH = late_pattern(r"[A-Za-z0-9_./-]+")
_STAMPS = Path(".perfflow/make")

_HEAD = """\
# Printed by `perfflow make`: print it again when a workflow is added. In the Makefile of the project:
#     PERF_SOURCES = $(wildcard src/*.c)
#     include perf.mk
# `make perf` runs every workflow that is not up to date and that this machine can run, `make perf-NAME` one of them.
ifndef PERF_STAMPS
PERF_GOAL := $(.DEFAULT_GOAL)
PERFFLOW ?= perfflow
# Options of `perfflow run`.
PERFFLOW_FLAGS ?=
# Where a stamp is kept for each workflow: NAME.pass when it passed, NAME.out when this machine cannot run it.
PERF_STAMPS := @STAMPS@
# Set before the include: files whose change makes every workflow run again, beside its own; and targets that must be
# done before, such as all. Without PERF_SOURCES a workflow that passed runs again only when its own files change.
PERF_SOURCES ?=
PERF_AFTER ?=
# Under make -j, workflows still run one after another: a build beside a measurement would disturb it.
PERF_ONE_AT_A_TIME ?= flock $(PERF_STAMPS)/lock
# What this machine could not run is tried again when a program was installed or a GPU was added.
PERF_MACHINE := $(wildcard $(subst :, ,$(PATH)) /dev/nvidiactl)
PERF_OUT := $(patsubst $(PERF_STAMPS)/%.out,%,$(wildcard $(PERF_STAMPS)/*.out))
"""
_RUN = """
define PERF_RUN
@mkdir -p $(PERF_STAMPS)
@rm -f $(PERF_STAMPS)/$*.pass $(PERF_STAMPS)/$*.out
$(PERF_QUIET)$(PERF_ONE_AT_A_TIME) $(PERFFLOW) run $< $(PERFFLOW_FLAGS) $(PERF_LEFT_OUT)
@test -e $(PERF_STAMPS)/$*.out || touch $(PERF_STAMPS)/$*.pass
endef

.PHONY: perf $(PERF_NAMES:%=perf-%)
perf: $(foreach name,$(PERF_NAMES),$(PERF_STAMPS)/$(name).$(if $(filter $(name),$(PERF_OUT)),out,pass))
perf: PERF_LEFT_OUT = --left-out $(PERF_STAMPS)/$*.out
perf: PERF_QUIET = @
$(PERF_NAMES:%=perf-%): perf-%: $(PERF_STAMPS)/%.pass
"""
_NEW = """
PERF_NEW := $(filter-out @KNOWN@,$(wildcard @ALL@))
ifneq ($(strip $(PERF_NEW)),)
.PHONY: perf-new
perf: perf-new
perf-new: ; @:$(info new, and not run: $(PERF_NEW); to have it run: perfflow make > perf.mk)
endif
"""
_FOOT = """\
.DEFAULT_GOAL := $(PERF_GOAL)
endif
"""


def fragment(files: Mapping[Path, Sequence[Path]], up: Path, *, folder: Path | None = None) -> str:
    """Return the fragment for workflow files and what else each consists of.

    Paths are relative to the top of the project, and ``up`` leads there from the Makefile's folder: ``.``, ``..``.
    ``folder`` is that of all workflows: make names those that are added to it later; None where some were chosen.
    Raises UserError for names that make would take apart.
    """
    for path in files:
        _require_fit(path)
    seen = {up / path: [up / other for other in others] for path, others in files.items()}
    new = _of_new(seen, up / folder) if folder else ""
    return _HEAD.replace("@STAMPS@", str(up / _STAMPS)) + "".join(_rules(seen)) + new + _FOOT


def _require_fit(path: Path) -> None:
    if not _FIT.fullmatch(path.stem) or not _FIT_PATH.fullmatch(str(path)):
        hint = "rename it with letters, digits, `_`, `-` and `.`, or name the others: perfflow make NAME..."
        raise UserError.of(f"make cannot have {str(path)!r} as a target", hint)


def _of_new(files: Mapping[Path, Sequence[Path]], folder: Path) -> str:
    """What names workflows that are not among ``files``: without running them, since anything may be their name."""
    every = " ".join(f"{folder}/*{suffix}" for suffix in SUFFIXES)
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
