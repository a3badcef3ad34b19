"""Whether two sets of samples are from one machine, as far as their facts tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfflow.machine.facts import IDENTITY
from perfflow.model.later import dataclass

_FOREIGN = {"cpu": "cpu", "cpus": "cores", "os": "system", "arch": "architecture", "kernel": "kernel_series"}
"""Facts of other tools' files and what perfflow calls them; clock rates jitter and versions are no machine."""
_SAME = {"amd64": "x86_64", "arm64": "aarch64"}
_SHOWN = ("cpu", "cores", "memory_gib", "system", "architecture")


@dataclass(frozen=True)
class Difference:
    """A fact that differs, with both values as text."""

    fact: str
    first: str
    second: str


def identity_facts(machine: Mapping[str, Any]) -> dict[str, Any]:
    """Those facts that tell machines apart, by perfflow's names, whatever tool wrote them."""
    if "identity" in machine:
        return {name: machine[name] for name in IDENTITY if machine.get(name) is not None}
    found = {ours: machine[theirs] for theirs, ours in _FOREIGN.items() if theirs in machine}
    if "kernel_series" in found:
        found["kernel_series"] = ".".join(str(found["kernel_series"]).split(".")[:2])
    return found


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Difference]:
    """The facts known of both machines that differ; none where they are one machine, or too little is known."""
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
    """Whether both tell enough to say that they are one machine."""
    return "identity" in first and "identity" in second


def shown(machine: Mapping[str, Any]) -> dict[str, str]:
    """The facts of a machine that a reader knows it by."""
    facts = identity_facts(machine)
    return {name: _text(facts[name]) for name in _SHOWN if name in facts}


def described(machine: Mapping[str, Any]) -> str:
    """The same in one line; '' where nothing is known."""
    units = {"cores": "{} cores", "memory_gib": "{} GiB"}
    return ", ".join(units.get(name, "{}").format(value) for name, value in shown(machine).items())


def _comparable(value: Any) -> str:
    text = " ".join(_text(value).split()).casefold()
    return _SAME.get(text, text)


def _text(value: Any) -> str:
    return ", ".join(str(part) for part in value) if isinstance(value, list) else str(value)
