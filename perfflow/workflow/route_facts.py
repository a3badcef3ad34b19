"""The facts that rules under ``routes`` can use: names, kinds and meanings.

The names are checked when a file is loaded; the values are computed when a run is judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Self, SupportsIndex

from perfflow.model.targets import matches


class FactKind(StrEnum):
    """Type of a fact."""

    NAMES = "names"
    TRUTH = "truth"
    NUMBER = "number"
    TEXT = "text"


@dataclass(frozen=True)
class Fact:
    """A value that a rule can use."""

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
        "benchmarks": _names("benchmarks that were measured"),
        "regressions": _names("benchmarks with a regression of any level in a metric that gates"),
        "regressions.action": _names("benchmarks with a regression of level `action`, which fails the gate"),
        "regressions.concern": _names("benchmarks with a regression of level `concern`, which passes with a warning"),
        "regressions.worst": Fact(FactKind.NUMBER, "the largest regression, 0.25 for 25% worse; 0 without regressions"),
        "improvements": _names("benchmarks with an improvement in a metric that gates"),
        "unproven": _names("benchmarks with an unproven metric that gates and may hide a regression beyond `action`"),
        "new": _names("benchmarks that only the candidate has"),
        "removed": _names("benchmarks that only the baseline has"),
        "targets.met": _names("benchmarks with a target that is met"),
        "targets.not_met": _names("benchmarks with a target that is not met"),
        "targets.unproven": _names("benchmarks with a target that is unproven"),
        "targets.not_measured": _names("benchmarks with a target that was not measured"),
        "hotspots": _names("functions that got slower; without such profiles, the functions with the largest shares"),
        "hotspots.localized": Fact(
            FactKind.TRUTH,
            "whether one function, file or crate explains at least half of the slowdown of each regressed benchmark",
        ),
        "hotspots.localized_in": Fact(
            FactKind.TEXT,
            "`function`, `file` or `crate`: the widest level needed for `localized`; empty if not localized",
        ),
        "hotspots.top": Fact(
            FactKind.TEXT, "the function that slowed down most, else the costliest one; empty without a profile"
        ),
        "hotspots.file": Fact(FactKind.TEXT, "file of `hotspots.top`; empty if unknown"),
        "hotspots.crate": Fact(FactKind.TEXT, "crate or package of `hotspots.top`; empty if unknown"),
        "hotspots.region": Fact(FactKind.TEXT, "name under `regions` of `hotspots.top`; empty if none matches"),
        "hotspots.share": Fact(
            FactKind.NUMBER, "share of `hotspots.top` in the slowdown of its benchmark, else in the profile, 0 to 1"
        ),
        "hotspots.files": _names("files of the functions that got slower"),
        "hotspots.crates": _names("crates or packages of the functions that got slower"),
        "hotspots.regions": _names("names under `regions` of the functions that got slower"),
        "commits": _names("short revisions between base and head that touched the functions that got slower"),
        "baseline.missing": Fact(FactKind.TRUTH, "whether benchmarks were measured and none of them has a baseline"),
        "accepted.used": _names("benchmarks that pass only because of an entry under `accepted`"),
        "accepted.expired": _names("benchmarks that regressed and have an expired entry under `accepted`"),
        "correctness.failed": _names("checks that failed"),
        "errors": _names("other steps that failed or timed out, without `continue-on-error`"),
        "recommendations": _names("rules that gave a recommendation"),
    }
)
"""All facts by their names in an expression."""

MATCHING = "in"
"""Method of lists of names that filters by a glob: ``regressions.in("core/**")``."""


class FoundNames(int):
    """A list of names whose numeric and boolean value is the number of names.

    ``parts`` has the facts below it, such as ``action`` of ``regressions``.
    """

    names: tuple[str, ...]
    parts: Mapping[str, Any]

    def __new__(cls, names: Iterable[str] = (), parts: Mapping[str, Any] = MappingProxyType({})) -> Self:
        """Create the list without duplicates."""
        each = tuple(dict.fromkeys(names))
        found = super().__new__(cls, len(each))
        found.names, found.parts = each, parts
        return found

    def __getattr__(self, name: str) -> Any:
        """Return a fact below this one, or the method ``in``, which is a keyword in Python."""
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
        """Return the names that a glob matches: ``*`` matches within one part of a name, ``**`` across parts.

        Parts are separated by ``/``, in names of functions by ``::``. Raises TypeError unless ``glob`` is a string.
        """
        if not isinstance(glob, str):
            raise TypeError(f'`in` takes a glob, such as .in("core/**"), not {glob!r}')
        return FoundNames(name for name in self.names if matches(_as_path(glob), _as_path(name)))


def _as_path(name: str) -> str:
    return re.sub("::", "/", name)


def context(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts in nested form for expressions: ``{"targets.met": x}`` becomes ``{"targets": {"met": x}}``.

    Raises KeyError if ``values`` lacks a fact.
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
    """Yield the facts of a run without findings and of a run with one finding of each kind, to test conditions."""
    for names in ((), ("a/b",)):
        values: Mapping[FactKind, Any] = {
            FactKind.NAMES: FoundNames(names),
            FactKind.TRUTH: bool(names),
            FactKind.NUMBER: float(len(names)),
            FactKind.TEXT: "".join(names),
        }
        yield context({name: values[fact.kind] for name, fact in FACTS.items()})
