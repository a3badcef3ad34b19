"""The corpus: what each patch does, which workflow judges it, and what must become of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

from perfflow.model.judging import Code, Flag, Outcome

HERE = Path(__file__).parent
PATCHES, VICTIMS = HERE / "patches", HERE / "victims"


class Kind(StrEnum):
    """The tables of the corpus, and the folders of their patches."""

    TRICK = "tricks"
    GAIN = "gains"
    OTHER = "others"


@dataclass(frozen=True, slots=True)
class Package:
    """A public package that is fetched: ``source`` is a key of ``fetch.CLIENTS``, ``sha256`` that of its archive."""

    source: str
    name: str
    version: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A patch of the corpus.

    must: what may become of it, as outcomes, codes, or flags of a kept patch; one of them is enough.
    what: the change in a few words.
    workflow: relative to the folder of victims, or to the project of a package.
    row: the number of the trick in the list of those that were tried first, 0 for others.
    leaves: globs in the workspace that exist if the patch got out of its tree.
    copies: how often it is submitted in one batch.
    subset: whether it is cheap enough for every run of the tests.
    """

    name: str
    kind: Kind
    workflow: str
    must: tuple[str, ...]
    what: str
    row: int = 0
    leaves: tuple[str, ...] = ()
    copies: int = 1
    subset: bool = False
    package: Package | None = None

    @property
    def patch(self) -> Path:
        """The file with the patch."""
        return PATCHES / self.kind / f"{self.name}.patch"

    def allows(self, outcome: str, code: str, flags: Collection[str]) -> bool:
        """Return whether this may become of it. Where no gain is right, so is that more time is needed to tell."""
        found = {outcome, code, *(flags if outcome == Outcome.KEPT else ())}
        if outcome == Outcome.UNDECIDED:
            found.add(Outcome.NO_GAIN)
        return any(word in found for word in self.must)


WORDS = frozenset(str(word) for words in (Outcome, Code, Flag) for word in words)
"""What ``must`` may contain."""
NOT_KEPT = tuple(str(word) for word in Outcome if word not in (Outcome.KEPT, Outcome.CANNOT_JUDGE))
_SHORT = {Kind.GAIN: (str(Outcome.KEPT),), Kind.OTHER: NOT_KEPT}
"""What must become of an entry that does not say it."""


def entries(names: Sequence[str] = ()) -> list[Entry]:
    """Return the entries with these names, or all. Raises KeyError for a name that does not exist."""
    known = {entry.name: entry for kind in Kind for entry in _table(kind)}
    return [known[name] for name in names] if names else list(known.values())


def _table(kind: Kind) -> list[Entry]:
    rows: dict[str, dict[str, Any]] = yaml.safe_load((HERE / f"{kind}.yaml").read_text())
    return [_entry(kind, name, row) for name, row in rows.items()]


def _entry(kind: Kind, name: str, row: dict[str, Any]) -> Entry:
    must = tuple(row.pop("must", _SHORT.get(kind, ())))
    package = Package(**row.pop("package")) if "package" in row else None
    workflow = row.pop("workflow", f"{name}.yaml")
    leaves = tuple(row.pop("leaves", ()))
    return Entry(name, kind, workflow, must, leaves=leaves, package=package, **row)
