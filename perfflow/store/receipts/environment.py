"""What differs between the surroundings of two runs: machine, versions, settings that were seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from perfflow.machine.facts import IDENTITY
from perfflow.model.later import dataclass

_JITTERING = ("load", "noise", "identity")
"""What is never the same twice, or only sums up the rest."""


@dataclass(frozen=True)
class Difference:
    """A fact with both values as text; ``decisive`` where it makes another machine of it."""

    fact: str
    before: str
    now: str
    decisive: bool


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Difference]:
    """Facts of two manifests (``machine``, ``versions``) that differ; what only one of them knows is left out."""
    for part in ("machine", "versions"):
        first, second = before.get(part) or {}, now.get(part) or {}
        for name in first:
            if name in second and name not in _JITTERING and first[name] != second[name]:
                decisive = part == "machine" and name in IDENTITY
                fact = name if part == "machine" else f"version of {name}"
                yield Difference(fact, _text(first[name]), _text(second[name]), decisive)


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
