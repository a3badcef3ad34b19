"""The facts that the rules under ``routes`` are about: their names, types and meanings, and the values they can have.

What a fact's value is in a run is worked out where runs are judged; what can be asked is checked when a file is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Self, SupportsIndex

from perfflow.model.later import dataclass
from perfflow.model.targets import matches


class FactKind(StrEnum):
    """What can be done with a fact."""

    NAMES = "names"
    TRUTH = "truth"
    NUMBER = "number"
    TEXT = "text"


@dataclass(frozen=True)
class Fact:
    """One thing that a rule can ask for."""

    kind: FactKind
    meaning: str


def _names(meaning: str) -> Fact:
    return Fact(FactKind.NAMES, meaning)


FACTS: Mapping[str, Fact] = MappingProxyType(
    {
        "verdict": Fact(FactKind.TEXT, "`pass`, `fail`, `unproven` or `error`"),
        "gate": Fact(FactKind.TEXT, "`pass` or `fail`"),
        "workflow": Fact(FactKind.TEXT, "the workflow's name"),
        "component": Fact(FactKind.TEXT, "the report's title"),
        "benchmarks": _names("benchmarks of which something was measured"),
        "regressions": _names("benchmarks of which a row that gates regressed, of any level"),
        "regressions.action": _names("those of level `action`, which fail the gate"),
        "regressions.concern": _names("those of level `concern`, which pass with a warning"),
        "regressions.worst": Fact(FactKind.NUMBER, "the largest of their changes, 0.25 for 25% worse; 0 without one"),
        "improvements": _names("benchmarks of which a row that gates improved"),
        "unproven": _names("benchmarks of which a row that gates is unproven and may hide a regression over `action`"),
        "new": _names("benchmarks that only the candidate has"),
        "removed": _names("benchmarks that only the baseline has"),
        "targets.met": _names("benchmarks with a target that is met"),
        "targets.not_met": _names("benchmarks with a target that is not met"),
        "targets.unproven": _names("benchmarks with a target that is unproven"),
        "targets.not_measured": _names("benchmarks with a target that was not measured"),
        "hotspots": _names("functions that got slower; where no profile tells, those with the largest shares"),
        "hotspots.localized": Fact(
            FactKind.TRUTH,
            "whether one function, file or crate holds at least half of what each regressed benchmark lost",
        ),
        "hotspots.localized_in": Fact(
            FactKind.TEXT,
            "`function`, `file` or `crate`: the widest that was needed for that; empty where not localized",
        ),
        "hotspots.top": Fact(
            FactKind.TEXT, "the function that lost most, else the costliest one; empty without a profile"
        ),
        "hotspots.file": Fact(FactKind.TEXT, "its file; empty where unknown"),
        "hotspots.crate": Fact(FactKind.TEXT, "its crate or package; empty where unknown"),
        "hotspots.region": Fact(FactKind.TEXT, "the name under `regions` that it belongs to; empty where none"),
        "hotspots.share": Fact(FactKind.NUMBER, "its part of what its benchmark lost, else of the profile, 0 to 1"),
        "hotspots.files": _names("files of the functions that got slower"),
        "hotspots.crates": _names("crates or packages of the functions that got slower"),
        "hotspots.regions": _names("names under `regions` of the functions that got slower"),
        "commits": _names("short revisions between base and head that touched the functions that got slower"),
        "baseline.missing": Fact(FactKind.TRUTH, "whether something was measured, and nothing of it had a baseline"),
        "accepted.used": _names("benchmarks that only pass because of an entry under `accepted`"),
        "accepted.expired": _names("benchmarks that regressed, with an entry under `accepted` whose date is over"),
        "correctness.failed": _names("steps that check, and did not hold"),
        "errors": _names("other steps that failed or took too long, without `continue-on-error`"),
        "recommendations": _names("rules that gave advice on what was found"),
    }
)
"""Every fact by its name in an expression."""

MATCHING = "in"
"""Asks names for those that a glob matches: ``regressions.in("core/**")``."""


class FoundNames(int):
    """Names that were found: a number and a truth value as how many there are, and a list of them otherwise.

    ``parts`` are facts below it: ``regressions.action``.
    """

    names: tuple[str, ...]
    parts: Mapping[str, Any]

    def __new__(cls, names: Iterable[str] = (), parts: Mapping[str, Any] = MappingProxyType({})) -> Self:
        """Each name counts once."""
        each = tuple(dict.fromkeys(names))
        found = super().__new__(cls, len(each))
        found.names, found.parts = each, parts
        return found

    def __getattr__(self, name: str) -> Any:
        """A fact below it, or ``in``, which is no name in Python."""
        if name == MATCHING:
            return self.matching
        try:
            return self.__dict__["parts"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, index: SupportsIndex) -> str:
        return self.names[index]

    def matching(self, glob: str) -> FoundNames:
        """Those that a glob matches, as globs match benchmarks elsewhere: ``*`` stays within a part, ``**`` does not.

        Functions are parted by ``::`` instead of ``/``.
        """
        if not isinstance(glob, str):
            raise TypeError(f'`in` takes a glob, such as .in("core/**"), not {glob!r}')
        return FoundNames(name for name in self.names if matches(_as_path(glob), _as_path(name)))


def _as_path(name: str) -> str:
    return re.sub("::", "/", name)


def context(values: Mapping[str, Any]) -> dict[str, Any]:
    """The facts as expressions read them: ``{"targets.met": x}`` -> ``{"targets": {"met": x}}``.

    Raises KeyError unless ``values`` has a value for each fact.
    """
    found: dict[str, Any] = {}
    for name in FACTS:
        root, _, below = name.partition(".")
        if not below:
            parts = {other.partition(".")[2]: values[other] for other in FACTS if other.startswith(f"{name}.")}
            found[name] = FoundNames(values[name], parts) if parts else values[name]
        elif root not in FACTS:
            found.setdefault(root, {})[below] = values[name]
    return found


def examples() -> Iterator[dict[str, Any]]:
    """Facts of a run that found nothing and of one that found one of everything, on which an expression is tried."""
    for names in ((), ("a/b",)):
        values: Mapping[FactKind, Any] = {
            FactKind.NAMES: FoundNames(names),
            FactKind.TRUTH: bool(names),
            FactKind.NUMBER: float(len(names)),
            FactKind.TEXT: "".join(names),
        }
        yield context({name: values[fact.kind] for name, fact in FACTS.items()})
