"""Compare the machines of two sets of samples by their recorded facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perfflow.machine.facts import IDENTITY

_FOREIGN = {"cpu": "cpu", "cpus": "cores", "os": "system", "arch": "architecture", "kernel": "kernel_series"}
"""Facts in other tools' files and their names in perfflow, without clock rates (they vary) and versions."""
_SAME = {"amd64": "x86_64", "arm64": "aarch64"}
_SHOWN = ("cpu", "cores", "memory_gib", "system", "architecture")


@dataclass(frozen=True)
class Difference:
    """A fact that differs, with both values as text."""

    fact: str
    first: str
    second: str


def identity_facts(machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that identify a machine, by perfflow's names, whatever tool wrote them."""
    if "identity" in machine:
        return {name: machine[name] for name in IDENTITY if machine.get(name) is not None}
    found = {ours: machine[theirs] for theirs, ours in _FOREIGN.items() if theirs in machine}
    if "kernel_series" in found:
        found["kernel_series"] = ".".join(str(found["kernel_series"]).split(".")[:2])
    return found


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Difference]:
    """Return the facts known of both machines that differ; none if they are the same or too little is known."""
    facts = identity_facts(first), identity_facts(second)
    found = [
        Difference(name, _text(facts[0][name]), _text(facts[1][name]))
        for name in IDENTITY
        if name in facts[0] and name in facts[1] and _comparable(facts[0][name]) != _comparable(facts[1][name])
    ]
    if not found and certain(first, second) and first["identity"] != second["identity"]:
        return [Difference("identity", _text(first["identity"]), _text(second["identity"]))]
    return found


def certain(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Return whether both have enough facts to conclude that they are the same machine."""
    return "identity" in first and "identity" in second


def shown(machine: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts by which a reader recognizes a machine."""
    facts = identity_facts(machine)
    return {name: _text(facts[name]) for name in _SHOWN if name in facts}


def described(machine: Mapping[str, Any]) -> str:
    """Return these facts in one line; '' if none is known."""
    units = {"cores": "{} cores", "memory_gib": "{} GiB"}
    return ", ".join(units.get(name, "{}").format(value) for name, value in shown(machine).items())


def _comparable(value: Any) -> str:
    text = " ".join(_text(value).split()).casefold()
    return _SAME.get(text, text)


def _text(value: Any) -> str:
    return ", ".join(str(part) for part in value) if isinstance(value, list) else str(value)
