"""Compare the environments of two runs: machine, versions and settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from perfflow.machine.facts import IDENTITY

_JITTERING = ("load", "noise", "identity")
"""Facts that differ on every run, or that only summarize other facts."""


@dataclass(frozen=True)
class Difference:
    """A fact with both values as text; ``decisive`` if it identifies another machine."""

    fact: str
    before: str
    now: str
    decisive: bool


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield the facts of two manifests (``machine``, ``versions``) that differ. Facts of only one are skipped."""
    for part in ("machine", "versions"):
        first, second = before.get(part) or {}, now.get(part) or {}
        for name in first:
            if name in second and name not in _JITTERING and first[name] != second[name]:
                decisive = part == "machine" and name in IDENTITY
                fact = name if part == "machine" else f"version of {name}"
                yield Difference(fact, _text(first[name]), _text(second[name]), decisive)


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
