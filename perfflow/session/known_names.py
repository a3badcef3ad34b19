"""The names of a run's benchmarks as far as they are known, and the benchmarks that the user chose by name."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfflow.execute.invoke import Failure
from perfflow.model.errors import Problem, Severity, UserError, in_file_order
from perfflow.model.readings import Reading, Side
from perfflow.model.similar import nearest_of
from perfflow.model.targets import Names, crossing_hint, is_chosen, is_named, matches
from perfflow.plan import plan
from perfflow.plan.cells_of_one import scaling_of
from perfflow.plan.plan import Plan, Planned, has_command, stands_for_suite
from perfflow.tools.adapter import Role
from perfflow.workflow.document import Loc
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Variants
from perfflow.workflow.roles import AUTO, names_its_own_benchmarks

MOST_NAMES = 30
"""Most names that an error shows."""
_NEAREST = 3


class NothingChosenError(Exception):
    """None of the benchmarks of a step was chosen."""


@dataclass
class KnownNames:
    """The names of the benchmarks by step, and ``chosen``, the globs of ``--benchmark``; () for all benchmarks.

    ``selected``: ids of the steps that measure them. ``draft``: the workflow file, to check the names in it; else None.
    """

    chosen: tuple[str, ...] = ()
    draft: Draft | None = None
    selected: Collection[str] = ()
    by_step: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The names of each suite that was listed or has run."""
    listed: dict[tuple[str, Side, Path], tuple[str, ...]] = field(default_factory=dict)
    """The ids of a suite in the tree of a side, until its step measures them."""
    built: set[tuple[str, Side, Path]] = field(default_factory=set)
    """Suites whose benchmarks are already built in the tree of a side."""
    warned: list[Problem] = field(default_factory=list)
    guard: threading.Lock = field(default_factory=threading.Lock)
    """Held while suites are listed: steps that share the machine may start at the same time."""

    def is_chosen(self, name: str) -> bool:
        """Return whether a benchmark is to be measured. A glob spelled like a name stands for this name only."""
        exact = {glob for glob in self.chosen if any(glob in names for names in self.by_step.values())}
        return not self.chosen or any(
            is_named(glob, name) if glob in exact else matches(glob, name) for glob in self.chosen
        )

    def numbers(self) -> dict[str, int]:
        """Return the number of chosen benchmarks of each suite with known names."""
        return {step: sum(map(self.is_chosen, names)) for step, names in self.by_step.items()}

    def require_some(self, step_id: str) -> None:
        """Raise NothingChosenError if the names of a suite are known and none of them is chosen."""
        names = self.by_step.get(step_id)
        if names and not any(map(self.is_chosen, names)):
            raise NothingChosenError

    def require_known(self, plan: Plan) -> list[str]:
        """Raise UserError for all names in the workflow and on the command line that no benchmark can have.

        Return warnings, each only once: a shared workflow may ignore a group of benchmarks that not every project has.
        """
        measured, are_all = self.names(plan, _measuring(plan, self.selected))
        names, is_complete = self.names(plan, plan.by_id)
        unknown = [*_unknown_choices(self.chosen, measured)] if are_all else []
        unknown += self._unknown_names(plan, names) if is_complete else ()
        _require([item for item in unknown if item.severity is Severity.ERROR], names)
        warnings = [item for item in unknown if item not in self.warned]
        self.warned += warnings
        return ["; ".join(filter(None, (item.message, item.hint))) for item in warnings]

    def _unknown_names(self, plan: Plan, names: Sequence[str]) -> Iterator[Problem]:
        """Yield the names in the file that no benchmark has."""
        known = Names(names)
        for loc, name in dict.fromkeys(_names_in(self.draft, plan)) if self.draft else ():
            if self.draft and not known.matching(name):
                place = self.draft.document.place(loc, key=loc[-1] == name)
                is_group = loc[0] in ("ignore", "thresholds") and ("*" in name or "?" in name)
                severity = Severity.WARNING if is_group else Severity.ERROR
                text = f"no benchmark matches `{name}`" + (f" under `{loc[0]}`" if is_group else "")
                yield Problem(text, _meant(name, names), place, severity)

    def names(self, plan: Plan, steps: Collection[str]) -> tuple[list[str], bool]:
        """Return the known names of the benchmarks of some steps, and whether these are all."""
        names: dict[str, None] = {}
        is_complete = True
        for planned in plan.steps:
            if planned.id not in steps:
                continue
            if planned.id in self.by_step:
                names |= dict.fromkeys(self.by_step[planned.id])
            elif has_unknown_names(planned):
                is_complete = False
            elif planned.benchmark and is_source(planned):
                size = scaling_of(planned, plan.params)
                names |= dict.fromkeys([planned.benchmark, *([size.of] if size else [])])
        return list(names), is_complete


def has_unknown_names(item: Planned) -> bool:
    """Return whether only the tool or the output of a step tells the names of its benchmarks."""
    suite = item.tool is not None and item.tool.is_suite
    return names_its_own_benchmarks(item.step) or suite or item.step.variants is not None


def may_be_chosen(plan: Plan, item: Planned, globs: Sequence[str]) -> bool:
    """Return whether a step may measure or profile a chosen benchmark, as far as that is known before it runs."""
    source = plan.by_id.get(item.watches, item)
    if item.role not in (Role.MEASURE, Role.PROFILE) or has_unknown_names(source) or not is_source(source):
        return True
    return not source.benchmark or is_chosen(globs, source.benchmark)


def require_choosable(plan: Plan, globs: Sequence[str], selected: Collection[str]) -> None:
    """Raise UserError for a glob that no benchmark of the steps can match, as far as that is known before they run."""
    names, is_complete = KnownNames().names(plan, _measuring(plan, selected))
    _require(_unknown_choices(globs, names) if is_complete else (), names)


def _unknown_choices(globs: Sequence[str], names: Sequence[str]) -> Iterator[Problem]:
    known = Names(names)
    for glob in globs if names else ():
        if not known.matching(glob):
            yield Problem(f"--benchmark {glob}: no benchmark matches", _meant(glob, names))


def _require(problems: Iterable[Problem], names: Sequence[str]) -> None:
    """Raise UserError with the problems, if there are any; the last one shows the names of all benchmarks."""
    found = in_file_order(problems)
    if not found:
        return
    shown = names[:MOST_NAMES]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    every = f"benchmarks: {', '.join(shown)}{more}"
    last = found[-1]
    raise UserError((*found[:-1], replace(last, hint=f"{last.hint} ({every})" if last.hint else every)))


def _names_in(draft: Draft, plan: Plan) -> Iterator[tuple[Loc, str]]:
    """Yield the names and globs of measured benchmarks in a workflow file, each with its place."""
    if not any("target" in item.step.allow for item in plan.steps):
        yield from ((("targets", target.benchmark), target.benchmark) for target in plan.criteria.targets)
    yield from ((("thresholds", "for", glob), glob) for glob in plan.criteria.per_glob)
    yield from ((("ignore", number), glob) for number, glob in enumerate(plan.criteria.ignore))
    for item in plan.steps:
        loc = draft.steps.get(item.step.id)
        refers = item.role in (Role.PROFILE, Role.MEASURE) and item.step.benchmark and not is_source(item)
        if loc and refers and not any(_stands_for(item.benchmark, source) for source in plan.steps):
            yield (*loc, "benchmark"), item.benchmark


def _stands_for(name: str, source: Planned) -> bool:
    return source.role is Role.MEASURE and has_unknown_names(source) and stands_for_suite(name, source)


def is_source(item: Planned) -> bool:
    """Return whether a step measures or profiles something of its own, not what another step measures."""
    if item.tool is None or has_command(item.step) or "command" not in item.tool.options.model_fields:
        return item.step.uses != AUTO
    return item.tool.is_attached(item.step.with_)


def _measuring(plan: Plan, steps: Collection[str]) -> list[str]:
    return [item.id for item in plan.steps if item.role is Role.MEASURE and item.id in steps]


def _meant(name: str, known: Sequence[str]) -> str:
    """Return a hint with the most similar names; '' if none is similar."""
    near = ", ".join(f"`{other}`" for other in _nearest(name, known))
    return crossing_hint(name, known) or (f"did you mean {near}?" if near else "")


def _nearest(name: str, known: Iterable[str]) -> list[str]:
    """Return the most similar names: those that contain the text, else those whose last part is spelled alike."""
    text = name.strip("*?/").lower()
    if not text:
        return []
    by_last = {other: re.split(r"/|::", other)[-1].lower() for other in known}
    if containing := [other for other in by_last if text in other.lower()]:
        return containing[:_NEAREST]
    last = re.split(r"/|::", text)[-1]
    alike = nearest_of(last, dict.fromkeys(by_last.values()), _NEAREST)
    return [next(other for other, part in by_last.items() if part == word) for word in alike]


@dataclass
class SuiteIds:
    """The suite's ids of each side, by the text that ``*`` matches, in the order of the suite."""

    variants: Variants
    ids: dict[Side, dict[str, str]] = field(default_factory=lambda: {side: {} for side in Side})

    @classmethod
    def among(cls, variants: Variants, ids: Iterable[str]) -> SuiteIds:
        """Sort a suite's ids by the two patterns; ids that match neither are ignored."""
        found = cls(variants)
        for name in ids:
            for side in Side:
                if (stem := found.stem(name, side)) is not None:
                    found.ids[side].setdefault(stem, name)
        return found

    def stem(self, name: str, side: Side) -> str | None:
        """Return the text that ``*`` of a side's pattern matches in an id; None if the pattern does not match."""
        before, _, after = str(getattr(self.variants, side.value)).partition("*")
        match = re.fullmatch(f"{re.escape(before)}(.+){re.escape(after)}", name, re.DOTALL)
        return match[1] if match else None

    def both(self) -> list[str]:
        """Return the stems that exist as both variants. Raises Failure if there are none."""
        baseline, candidate = (self.ids[side] for side in Side)
        found = [stem for stem in baseline if stem in candidate]
        if not found:
            pair = " and ".join(f"`{getattr(self.variants, side.value)}`" for side in Side)
            raise Failure(f"no benchmark of the suite exists as both {pair}")
        return found

    def alone(self) -> list[str]:
        """Return warnings about ids that exist as one variant only."""
        sides = list(Side)
        return [
            f"{name} has no counterpart like `{getattr(self.variants, other.value)}`, so it is not compared"
            for side, other in zip(sides, reversed(sides), strict=True)
            for stem, name in self.ids[side].items()
            if stem not in self.ids[other]
        ]


def benchmark_name(planned: Planned, found: str) -> str:
    """Return the step's name for its benchmark, or a suite's own id with the step's prefix and its matrix cell."""
    pattern = planned.pattern if planned.step.benchmark else "*" + plan.suffix(planned.cell)
    return pattern.replace("*", found, 1) if found and "*" in pattern else planned.benchmark


def benchmark_of_kernel(planned: Planned, kernel: str) -> str:
    """Return the benchmark for a kernel's figures: the kernel's own in a suite of kernels, else the step's."""
    return benchmark_name(planned, kernel if planned.tool and planned.tool.is_suite else "")


def named(planned: Planned, readings: tuple[Reading, ...]) -> tuple[Reading, ...]:
    """Return the readings with the step's benchmark names."""
    return tuple(replace(reading, benchmark=benchmark_name(planned, reading.benchmark)) for reading in readings)
